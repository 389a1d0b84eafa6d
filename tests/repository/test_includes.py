"""Holds every #include line against the table of folders: dependencies go downward only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from repository import ROOT, files, name, sources, text

# folder: the folders it may include, and with them whatever those may. Itself always. The order is a model's way.
TABLE: dict[str, list[str]] = {
    "core/abi": [],
    "core/base": ["core/abi"],
    "core/ir": ["core/base"],
    "core/kernel": ["core/base"],
    "core/ops": ["core/ir", "core/kernel"],
    "core/schedules": ["core/kernel", "core/ops"],
    "core/frontends/onnx": ["core/ir", "core/ops"],
    "core/passes": ["core/ir", "core/ops", "core/kernel"],
    "core/plan": ["core/ir", "core/ops", "core/schedules"],
    "core/backends": ["core/kernel", "core/abi"],
    "core/backends/reference": ["core/backends"],
    "core/backends/cpu": ["core/backends"],
    "core/backends/gpu": ["core/backends"],
    "core/artifact": ["core/plan", "core/abi"],
    "runtime": ["core/abi"],
    "core/driver": [
        "core/frontends/onnx",
        "core/passes",
        "core/plan",
        "core/backends/reference",
        "core/backends/cpu",
        "core/backends/gpu",
        "core/artifact",
        "runtime",
    ],
    "bindings": ["core/driver", "runtime"],
    "tools": ["core/driver"],
    "tests": ["tools", "bindings"],
    "bench": ["core/driver", "tests"],
    "examples": ["runtime", "core/driver"],
}

# Headers of libraries, by how their names begin: the only folders that may include them.
LIBRARIES: dict[str, list[str]] = {
    "llvm": ["core/backends/cpu", "core/backends/cpu/"],
    "lld/": ["core/backends/cpu"],
    "clang": [],
    "protozero/": ["core/frontends/onnx"],
    "flatbuffers/": ["core/abi", "core/artifact", "runtime"],
    "zstd": ["core/backends/cpu", "core/artifact", "core/driver"],
    "CL/": ["core/backends/gpu", "tests"],
    "nanobind/": ["bindings"],
    "gtest/": ["tests"],
    "benchmark/": ["bench"],
    "Python.h": [],
}

# The runtime links no C++ library: of the C++ headers only those that are nothing but templates and types.
RUNTIME_ALLOWS = re.compile(
    r"[\w/]+\.h|c(?:assert|errno|float|inttypes|limits|math|stdarg|stddef|stdint|stdio|stdlib|string|time)|algorithm|array|atomic|bit|compare|concepts|initializer_list|iterator|limits|new|span|tuple|type_traits|utility"
)

# Header-only, for users: compiled into their programs, not into the runtime.
CXX_WRAPPER = "runtime/include/cuvil/cuvil.hpp"

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
CXX_FOLDERS = ("core", "runtime", "bindings", "tools", "tests", "bench", "examples")


def folder_of(path: str) -> str | None:
    """The row of the table a path belongs to: its longest prefix there."""
    rows = [row for row in TABLE if path.startswith(row + "/")]
    return max(rows, key=len, default=None)


def reachable(folder: str) -> set[str]:
    found: set[str] = set()
    todo = [folder]
    while todo:
        row = todo.pop()
        if row not in found:
            found.add(row)
            todo += TABLE[row]
    return found


def violations(path: str, content: str) -> list[str]:
    """What is wrong with the #include lines of a file, in words."""
    folder = folder_of(path)
    if folder is None:
        return [f"{path}: its folder is not in the table of tests/repository/test_includes.py"]
    wrong = []
    for quote, included in INCLUDE.findall(content):
        target = folder_of(included)
        if included.startswith("cuvil/"):  # public headers
            if included.startswith("cuvil/compiler"):
                target = "core/driver"
            else:
                target = "runtime"
        if target is not None:
            if target not in reachable(folder):
                wrong.append(f"{path}: {folder} may not include {included}")
            continue
        if quote == '"' and "/" not in included and folder not in ("examples", "tests", "bindings"):
            wrong.append(f"{path}: write {included} relative to the repository's root")
        for library, allowed in LIBRARIES.items():
            if included.startswith(library) and not any(folder.startswith(a) for a in allowed):
                wrong.append(f"{path}: only {', '.join(allowed) or 'nobody'} may include <{included}>")
        if folder == "runtime" and path != CXX_WRAPPER and quote == "<" and not RUNTIME_ALLOWS.fullmatch(included):
            wrong.append(f"{path}: the runtime does without <{included}>")
    return wrong


def test_includes_follow_the_table() -> None:
    wrong = [w for p in sources(*CXX_FOLDERS) for w in violations(name(p), text(p))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("core/ir/x.cpp", '#include "core/ops/op.h"'),
        ("core/kernel/x.cpp", '#include "core/ir/graph.h"'),
        ("core/plan/x.cpp", '#include "llvm/IR/Module.h"'),
        ("core/passes/x.cpp", '#include "core/plan/plan.h"'),
        ("runtime/x.cpp", '#include "core/base/dim.h"'),
        ("runtime/x.cpp", "#include <iostream>"),
        ("runtime/x.cpp", "#include <vector>"),
        ("runtime/x.cpp", "#include <chrono>"),
        ("core/ops/x.cpp", '#include "op.h"'),
        ("core/driver/x.cpp", "#include <protozero/pbf_reader.hpp>"),
        ("core/new_folder/x.cpp", ""),
    ],
)
def test_the_check_sees_a_violation(path: str, line: str) -> None:
    assert violations(path, line + "\n")


def test_the_table_has_no_cycle() -> None:
    for row, below in TABLE.items():
        assert all(row not in reachable(b) for b in below), row


def test_every_folder_with_sources_is_a_target() -> None:
    def has_target(folder: Path) -> bool:
        lists = folder / "CMakeLists.txt"
        return lists.exists() and any(
            word in text(lists) for word in ("add_library(", "cuvil_library(", "add_executable(", "cuvil_test(",
                                             "cuvil_executables(", "cuvil_fuzzers(", "nanobind_add_module(")
        )  # fmt: skip

    folders = {p.parent for p in files() if p.suffix == ".cpp" and name(p).startswith(CXX_FOLDERS)}
    # A folder may hold files of the target above it (runtime/host_ops).
    missing = [f for f in folders if not has_target(f) and not has_target(f.parent)]
    assert not missing, [f.relative_to(ROOT).as_posix() for f in missing]
