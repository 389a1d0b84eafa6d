// Every operator's loop nest, compiled for this machine, against the scalar loop nest in the interpreter.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "core/backends/cpu/cpu_backend.h"
#include "tests/conformance/case.h"

namespace cuvil::conformance {
namespace {

/// Memory as the executor hands it to kernels, with a border behind it that must stay as it is.
class Guarded {
 public:
  explicit Guarded(int64_t bytes) : bytes_(static_cast<size_t>(bytes)), memory_(bytes_ + 64 + kBorder, 0xa5) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    data_ = memory_.data() + (64 - address % 64) % 64;
  }
  uint8_t* data() { return data_; }
  bool whole() const {
    for (size_t i = 0; i < kBorder; ++i)
      if (data_[bytes_ + i] != 0xa5) return false;
    return true;
  }

 private:
  static constexpr size_t kBorder = 256;
  size_t bytes_;
  std::vector<uint8_t> memory_;
  uint8_t* data_ = nullptr;
};

int32_t run_compiled(const backends::KernelLibrary& library, const kernel::Kernel& kernel,
                     std::span<const kernel::Argument> arguments, std::span<const int64_t> dims) {
  std::vector<std::pair<kernel::Var, int64_t>> values;
  for (size_t i = 0; i < dims.size(); ++i) values.emplace_back(kernel.dims[i], dims[i]);
  std::vector<Guarded> memory;
  for (const kernel::Argument& a : arguments) {
    memory.emplace_back(a.bytes);
    if (a.bytes > 0) std::memcpy(memory.back().data(), a.data, static_cast<size_t>(a.bytes));
  }
  std::vector<const void*> buffers;
  for (Guarded& m : memory) buffers.push_back(m.data());
  Guarded scratch(kernel::evaluate(kernel::scratch_bytes(kernel), values).value());
  int32_t code = 0;
  for (size_t p = 0; p < kernel.phases.size() && code == 0; ++p) {
    const cuvil_kernel_fn f = library.find(kernel.name + "_p" + std::to_string(p));
    if (!f) throw_internal("no function for phase " + std::to_string(p) + " of " + kernel.name);
    const int64_t tasks = kernel::evaluate(kernel.phases[p].tasks, values).value();
    // In two calls, as two threads would share them.
    code = f(buffers.data(), dims.data(), 0, tasks / 2, scratch.data());
    if (code == 0) code = f(buffers.data(), dims.data(), tasks / 2, tasks, scratch.data());
  }
  for (size_t i = 0; i < memory.size(); ++i) {
    EXPECT_TRUE(memory[i].whole()) << kernel.name << " writes behind buffer " << i;
    if (arguments[i].bytes > 0)
      std::memcpy(arguments[i].data, memory[i].data(), static_cast<size_t>(arguments[i].bytes));
  }
  EXPECT_TRUE(scratch.whole()) << kernel.name << " writes behind its scratch";
  return code;
}

class ConformanceCpu : public testing::TestWithParam<const ops::OpDef*> {};

TEST_P(ConformanceCpu, Samples) {
  const ops::OpDef& op = *GetParam();
  const TargetInfo host = TargetInfo::host();
  const std::vector<ops::Sample> samples = op.samples();
  std::vector<Case> cases;
  for (const ops::Sample& sample : samples) {
    cases.push_back(plain_case(op, sample));
    std::vector<Case> more = variants(cases.back());
    // The variants differ in index arithmetic, which the interpreter has seen: two of them are enough to compile.
    if (more.size() > 2) more.erase(more.begin() + 1, more.end() - 1);
    for (Case& c : more) cases.push_back(std::move(c));
  }
  std::vector<BuiltCase> built;
  std::vector<kernel::Kernel> kernels;
  for (const Case& c : cases) {
    built.push_back(build(c));
    kernels.push_back(kernel_of(*built.back().node, host, "k" + std::to_string(kernels.size())));
  }
  const std::unique_ptr<backends::KernelLibrary> library = backends::cpu::backend().load(kernels, host);
  const auto runner = [&](const kernel::Kernel& k, std::span<const kernel::Argument> arguments,
                          std::span<const int64_t> dims) { return run_compiled(*library, k, arguments, dims); };
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    SCOPED_TRACE(c.name);
    Memory memory = input_memory(c, built[i]);
    const int32_t code = run_kernel(kernels[i], *built[i].node, memory, c.symbols, runner);
    const Outcome got = outcome_of(c, built[i], memory, code);
    const Outcome want = interpret(plain_case(op, *c.sample), 4);
    ASSERT_EQ(got.code, 0);
    for (size_t o = 0; o < got.outputs.size(); ++o)
      EXPECT_EQ(difference(got.outputs[o], want.outputs[o], built[i].node->output(o)->type.dtype, c.sample->tolerance),
                "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConformanceCpu, testing::ValuesIn(operators_with_kernels()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace cuvil::conformance
