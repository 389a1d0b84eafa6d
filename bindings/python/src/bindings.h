// The extension module: thin. Policy (defaults, deprecations, messages about Python) lives in the package's .py files.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>

#include "core/driver/compiler.h"

namespace cuvil::python {

namespace nb = nanobind;

void bind_errors(nb::module_& m);
void bind_builder(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_model(nb::module_& m);
void bind_torch(nb::module_& m);

/// Throws cuvil::Error with the runtime's last message if status is not CUVIL_OK.
void check(cuvil_status status);

}  // namespace cuvil::python
