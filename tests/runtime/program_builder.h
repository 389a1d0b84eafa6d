// Programs written by hand, for tests of the executor without a compiler.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/abi/cvl_file.h"
#include "core/artifact/writer.h"
#include "cuvil/runtime.h"
#include "runtime/executor.h"

namespace cuvil::testing {

/// Sizes are postfix text: "N 2 * 15 + 16 /". Words: numbers, names of symbols, + * / % min max.
class ProgramBuilder {
 public:
  cvl::ProgramT program;
  std::vector<std::vector<uint8_t>> constants;

  void symbol(const std::string& name, uint32_t input, uint32_t axis) {
    auto s = std::make_unique<cvl::SymbolT>();
    s->name = name;
    s->input = input;
    s->axis = axis;
    program.symbols.push_back(std::move(s));
  }
  /// Set by host step `step`, at most `upper`.
  void data_symbol(const std::string& name, uint32_t step, const std::string& upper) {
    auto s = std::make_unique<cvl::SymbolT>();
    s->name = name;
    s->step = step;
    s->upper = size(upper);
    program.symbols.push_back(std::move(s));
  }

  uint32_t size(const std::string& postfix) {
    const auto begin = static_cast<uint32_t>(program.size_ops.size());
    std::istringstream words(postfix);
    static const std::map<std::string, uint8_t> ops = {{"+", CUVIL_EXPR_ADD},      {"*", CUVIL_EXPR_MUL},
                                                       {"/", CUVIL_EXPR_FLOORDIV}, {"%", CUVIL_EXPR_MOD},
                                                       {"min", CUVIL_EXPR_MIN},    {"max", CUVIL_EXPR_MAX}};
    for (std::string word; words >> word;) {
      if (ops.count(word)) {
        program.size_ops.emplace_back(0, ops.at(word));
      } else if (std::isalpha(static_cast<unsigned char>(word[0]))) {
        int64_t index = 0;
        while (program.symbols.at(static_cast<size_t>(index))->name != word) ++index;
        program.size_ops.emplace_back(index, CUVIL_EXPR_SYMBOL);
      } else {
        program.size_ops.emplace_back(std::stoll(word), CUVIL_EXPR_CONST);
      }
    }
    program.sizes.emplace_back(begin, static_cast<uint32_t>(program.size_ops.size()) - begin);
    return static_cast<uint32_t>(program.sizes.size()) - 1;
  }

  /// Border tensors and their buffers; return the buffer. Call them in order of inputs and outputs.
  uint32_t input(const std::string& name, const std::vector<std::string>& shape, cuvil_dtype dtype = CUVIL_F32) {
    return border(program.inputs, cvl::BufferKind::input, name, shape, dtype);
  }
  uint32_t output(const std::string& name, const std::vector<std::string>& shape, cuvil_dtype dtype = CUVIL_F32) {
    return border(program.outputs, cvl::BufferKind::output, name, shape, dtype);
  }
  uint32_t arena(const std::string& bytes, uint32_t first, uint32_t last, int64_t offset = -1) {
    auto& b = buffer(cvl::BufferKind::arena, bytes);
    b.first = first;
    b.last = last;
    b.arena_offset = offset;
    return last_buffer();
  }
  uint32_t view(uint32_t of, const std::string& offset, const std::string& bytes) {
    auto& b = buffer(cvl::BufferKind::view, bytes);
    b.index = of;
    b.offset = size(offset);
    return last_buffer();
  }
  uint32_t constant(const std::vector<float>& values) {
    const auto* p = reinterpret_cast<const uint8_t*>(values.data());
    constants.emplace_back(p, p + values.size() * sizeof(float));
    auto c = std::make_unique<cvl::ConstantT>();
    c->bytes = constants.back().size();
    program.constants.push_back(std::move(c));
    buffer(cvl::BufferKind::constant, std::to_string(constants.back().size())).index =
        static_cast<uint32_t>(constants.size()) - 1;
    return last_buffer();
  }

  cvl::StepT& step(const std::string& kernel, const std::vector<uint32_t>& buffers,
                   const std::vector<std::string>& tasks, const std::vector<std::string>& dims) {
    uint32_t index = 0;
    while (index < program.kernels.size() && program.kernels[index]->name != kernel) ++index;
    if (index == program.kernels.size()) {
      auto k = std::make_unique<cvl::KernelT>();
      k->name = kernel;
      k->phases = static_cast<uint32_t>(tasks.size());
      program.kernels.push_back(std::move(k));
    }
    auto s = std::make_unique<cvl::StepT>();
    s->kernel = index;
    s->label = kernel + "_step";
    for (uint32_t b : buffers) s->arguments.emplace_back(b, cvl::kNone, cvl::kNone);
    for (const auto& t : tasks) s->tasks.push_back(size(t));
    for (const auto& d : dims) s->dims.push_back(size(d));
    program.steps.push_back(std::move(s));
    return *program.steps.back();
  }

  struct HostOperand {
    uint32_t buffer;
    std::vector<std::string> shape;
    cuvil_dtype dtype;
  };
  cvl::StepT& host(const std::string& name, const std::vector<HostOperand>& inputs,
                   const std::vector<HostOperand>& outputs, const std::vector<uint32_t>& symbols = {}) {
    auto s = std::make_unique<cvl::StepT>();
    s->host = name;
    s->label = name;
    s->symbols = symbols;
    const auto add = [&](const HostOperand& o, auto& list) {
      auto operand = std::make_unique<cvl::OperandT>();
      operand->buffer = o.buffer;
      operand->dtype = static_cast<uint8_t>(o.dtype);
      for (const auto& d : o.shape) operand->dims.push_back(size(d));
      list.push_back(std::move(operand));
    };
    for (const auto& o : inputs) add(o, s->inputs);
    for (const auto& o : outputs) add(o, s->outputs);
    program.steps.push_back(std::move(s));
    return *program.steps.back();
  }
  cvl::StepT& jump(uint32_t target, const std::vector<HostOperand>& condition = {}) {
    cvl::StepT& s = host("", condition, {});
    s.host.clear();
    s.target = target;
    return s;
  }

 private:
  cvl::BufferT& buffer(cvl::BufferKind kind, const std::string& bytes) {
    auto b = std::make_unique<cvl::BufferT>();
    b->kind = kind;
    b->bytes = size(bytes);
    program.buffers.push_back(std::move(b));
    return *program.buffers.back();
  }
  uint32_t last_buffer() const { return static_cast<uint32_t>(program.buffers.size()) - 1; }
  uint32_t border(std::vector<std::unique_ptr<cvl::TensorInfoT>>& list, cvl::BufferKind kind, const std::string& name,
                  const std::vector<std::string>& shape, cuvil_dtype dtype) {
    auto t = std::make_unique<cvl::TensorInfoT>();
    t->name = name;
    t->dtype = static_cast<uint8_t>(dtype);
    std::string bytes = std::to_string(cuvil_dtype_size(dtype));
    for (const auto& d : shape) {
      t->dims.push_back(size(d));
      t->dim_texts.push_back(d);
      bytes += " " + d + " *";
    }
    list.push_back(std::move(t));
    buffer(kind, bytes).index = static_cast<uint32_t>(list.size()) - 1;
    return last_buffer();
  }
};

/// Function of a symbol of kernels.c, linked into the test.
cuvil_kernel_fn find_test_kernel(void*, const char* symbol);

/// Model of a program whose kernels are those of kernels.c. `memory` gets the aligned constants.
struct TestModel {
  explicit TestModel(ProgramBuilder& builder);
  ~TestModel();
  TestModel(const TestModel&) = delete;
  TestModel& operator=(const TestModel&) = delete;
  cuvil_status status = CUVIL_OK;
  std::string error;
  cuvil_model* model = nullptr;

 private:
  std::vector<void*> constants_;
};

/// A tensor of floats for the C API.
struct TestTensor {
  TestTensor(std::vector<int64_t> shape, std::vector<float> values);
  explicit TestTensor(std::vector<int64_t> shape);
  DLTensor* get();
  std::vector<int64_t> shape;
  std::vector<float> values;
  DLTensor tensor = {};
};

/// x -> twice -> +c -> y over [N, 4], or with N fixed.
ProgramBuilder example(const std::string& n);

/// The example as a .cvl with the code of kernels.c; variants with the names and features given.
artifact::File example_file(ProgramBuilder& builder, std::vector<uint8_t>& program);
std::vector<uint8_t> read_bytes(const std::string& path);

}  // namespace cuvil::testing
