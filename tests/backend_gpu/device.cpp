#include "tests/backend_gpu/device.h"

#include <gtest/gtest.h>

namespace cuvil::testing {

Device::Device() {
  cl_platform_id platforms[8];
  cl_uint count = 0;
  if (clGetPlatformIDs(8, platforms, &count) != CL_SUCCESS) return;
  for (cl_uint i = 0; i < count && !device_; ++i)
    if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &device_, nullptr) != CL_SUCCESS) device_ = nullptr;
  if (!device_) return;
  char text[256] = "";
  clGetDeviceInfo(device_, CL_DEVICE_NAME, sizeof text, text, nullptr);
  name_ = text;
  cl_int error = CL_SUCCESS;
  context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &error);
  queue_ = clCreateCommandQueue(context_, device_, 0, &error);
}

Device::~Device() {
  if (queue_) clReleaseCommandQueue(queue_);
  if (context_) clReleaseContext(context_);
}

int Device::run(const kernel::Kernel& kernel, const std::string& source, std::vector<std::vector<uint8_t>>& buffers,
                const std::vector<int64_t>& dims, const std::vector<int64_t>& tasks, size_t group_size) {
  cl_int error = CL_SUCCESS;
  const char* text = source.c_str();
  cl_program program = clCreateProgramWithSource(context_, 1, &text, nullptr, &error);
  if (clBuildProgram(program, 1, &device_, "-cl-std=CL1.2 -Werror", nullptr, nullptr) != CL_SUCCESS) {
    std::string log(1 << 16, '\0');
    clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), nullptr);
    ADD_FAILURE() << log.c_str() << "\n" << source;
    return -1;
  }
  std::vector<cl_mem> memory;
  for (std::vector<uint8_t>& b : buffers)
    memory.push_back(
        clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, b.empty() ? 1 : b.size(), b.data(), &error));
  int status = 0;
  cl_mem status_memory =
      clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof status, &status, &error);
  for (size_t p = 0; p < kernel.phases.size(); ++p) {
    cl_kernel k = clCreateKernel(program, (kernel.name + "_p" + std::to_string(p)).c_str(), &error);
    EXPECT_EQ(error, CL_SUCCESS);
    cl_uint argument = 0;
    for (cl_mem m : memory) clSetKernelArg(k, argument++, sizeof m, &m);
    for (int64_t d : dims) clSetKernelArg(k, argument++, sizeof d, &d);
    clSetKernelArg(k, argument, sizeof status_memory, &status_memory);
    const size_t global = static_cast<size_t>(tasks[p]) * group_size;
    EXPECT_EQ(clEnqueueNDRangeKernel(queue_, k, 1, nullptr, &global, &group_size, 0, nullptr, nullptr), CL_SUCCESS);
    clReleaseKernel(k);
  }
  for (size_t i = 0; i < memory.size(); ++i)
    if (!buffers[i].empty())
      clEnqueueReadBuffer(queue_, memory[i], CL_TRUE, 0, buffers[i].size(), buffers[i].data(), 0, nullptr, nullptr);
  clEnqueueReadBuffer(queue_, status_memory, CL_TRUE, 0, sizeof status, &status, 0, nullptr, nullptr);
  for (cl_mem m : memory) clReleaseMemObject(m);
  clReleaseMemObject(status_memory);
  clReleaseProgram(program);
  return status;
}

}  // namespace cuvil::testing
