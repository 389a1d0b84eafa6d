// The first OpenCL device of the machine (in CI PoCL, a CPU), to run printed kernels on.
#pragma once

#include <CL/cl.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/kernel/ir.h"

namespace cuvil::testing {

class Device {
 public:
  Device();
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  bool available() const { return device_ != nullptr; }
  const std::string& name() const { return name_; }

  /// Compiles the printed kernel and runs all phases; `buffers` are one per parameter, copied in and out.
  /// Returns the status word that `fail` sets. Build errors fail the test with the log.
  int run(const kernel::Kernel& kernel, const std::string& source, std::vector<std::vector<uint8_t>>& buffers,
          const std::vector<int64_t>& dims, const std::vector<int64_t>& tasks, size_t group_size);

 private:
  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  std::string name_;
};

}  // namespace cuvil::testing
