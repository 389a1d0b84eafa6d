// Schedules on the layers of ResNet-50, MobileNetV2 and BERT, one thread: time, GFLOP/s and share of the FMA peak,
// which is measured between the runs of each layer. Machines drift: trust the share. Usage: bench-schedules [PART OF A
// NAME]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "core/backends/cpu/cpu_backend.h"
#include "core/base/error.h"
#include "core/ops/op.h"
#include "tests/schedules/cases.h"

namespace cuvil::schedules::test {
namespace {

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct Aligned {
  explicit Aligned(size_t bytes) : data(std::aligned_alloc(64, (bytes + 127) / 64 * 64)) {}
  ~Aligned() { std::free(data); }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  void* data;
};

/// A kernel without symbols, ready to run.
class Compiled {
 public:
  Compiled(const kernel::Kernel& kernel, const TargetInfo& target)
      : library_(backends::cpu::backend().load({&kernel, 1}, target, &statistics)),
        scratch_(static_cast<size_t>(kernel::evaluate(kernel::scratch_bytes(kernel), {}).value_or(0))) {
    for (size_t i = 0; i < kernel.phases.size(); ++i) {
      functions_.push_back(library_->find(kernel.name + "_p" + std::to_string(i)));
      tasks_.push_back(*kernel::evaluate(kernel.phases[i].tasks, {}));
    }
  }
  void run(const void* const* buffers) const {
    for (size_t i = 0; i < functions_.size(); ++i) functions_[i](buffers, nullptr, 0, tasks_[i], scratch_.data);
  }
  backends::CompileStatistics statistics;

 private:
  std::unique_ptr<backends::KernelLibrary> library_;
  std::vector<cuvil_kernel_fn> functions_;
  std::vector<int64_t> tasks_;
  Aligned scratch_;
};

constexpr int64_t kPeakSteps = 20000;

/// Independent chains of FMAs in registers.
kernel::Kernel peak_kernel(const TargetInfo& target) {
  using kernel::Expr;
  const int chains = target.vector_registers - 4, lanes = target.lanes_f32();
  const kernel::Type vector{DType::f32, static_cast<uint16_t>(lanes)};
  kernel::Builder b("peak");
  const kernel::Buffer in = b.param("in", {DType::f32}, {Expr(2 * lanes)}, kernel::Access::in);
  const kernel::Buffer out = b.param("out", {DType::f32}, {Expr(chains * lanes)}, kernel::Access::out);
  b.phase(1, [&](Expr) {
    const kernel::Buffer acc = b.alloc("acc", vector, {Expr(chains)}, kernel::Space::reg);
    const Expr x = b.let("x", kernel::load(in, {0}, lanes)), y = b.let("y", kernel::load(in, {Expr(lanes)}, lanes));
    for (int i = 0; i < chains; ++i) b.store(acc, {i}, kernel::constant(vector, i));
    b.loop("step", Expr(kPeakSteps), [&](Expr) {
      for (int i = 0; i < chains; ++i) b.store(acc, {i}, kernel::fma(kernel::load(acc, {i}), x, y));
    });
    for (int i = 0; i < chains; ++i) b.store(out, {Expr(i * lanes)}, kernel::load(acc, {i}));
  });
  return b.finish();
}

class Peak {
 public:
  explicit Peak(const TargetInfo& target)
      : compiled_(peak_kernel(target), target),
        flops_(2.0 * kPeakSteps * (target.vector_registers - 4) * target.lanes_f32()),
        in_(1024),
        out_(8192) {
    std::memset(in_.data, 0, 1024);
  }
  double measure() const {  ///< FLOP/s
    const void* buffers[] = {in_.data, out_.data};
    const double begin = cpu_seconds();
    compiled_.run(buffers);
    return flops_ / (cpu_seconds() - begin);
  }

 private:
  Compiled compiled_;
  double flops_;
  Aligned in_, out_;
};

void measure(const Schedule& schedule, const Case& c, const TargetInfo& target, const Peak& peak) {
  const Problem p = laid_out(c, schedule, target);
  if (const auto reason = schedule.refuse(p.group(), target)) {
    std::printf("%-22s refused: %s  (%s)\n", std::string(schedule.name).c_str(), reason->c_str(), c.name().c_str());
    return;
  }
  const Compiled compiled(schedule.build(p.group(), target, "layer"), target);
  const auto inputs = random_inputs(c);
  std::vector<std::unique_ptr<Aligned>> memory;
  std::vector<const void*> buffers;
  for (size_t i = 0; i < p.node->inputs().size(); ++i) {
    const ir::Value* v = p.node->input(i);
    if (!v) continue;
    std::vector<float> values = to_physical(v->type, inputs[i], {});
    for (float& x : values)
      if (x != x) x = 0;  // padding
    memory.push_back(std::make_unique<Aligned>(values.size() * 4));
    std::memcpy(memory.back()->data, values.data(), values.size() * 4);
    buffers.push_back(memory.back()->data);
  }
  memory.push_back(std::make_unique<Aligned>(static_cast<size_t>(p.node->output()->type.bytes().value())));
  buffers.push_back(memory.back()->data);

  const double flops = static_cast<double>(ops::flops_of(*p.group().anchor).value());
  const auto seconds = [&](int times) {
    const double begin = cpu_seconds();
    for (int i = 0; i < times; ++i) compiled.run(buffers.data());
    return (cpu_seconds() - begin) / times;
  };
  seconds(1);
  const int times = std::max(1, static_cast<int>(2e-3 / seconds(1)));
  std::vector<double> shares;
  double best = 1e9, before = peak.measure();
  for (int round = 0; round < 15; ++round) {
    const double taken = seconds(times), after = peak.measure();
    best = std::min(best, taken);
    shares.push_back(flops / taken / ((before + after) / 2));
    before = after;
  }
  std::sort(shares.begin(), shares.end());
  std::printf("%-22s %9.1f us %7.1f GFLOP/s  share of peak %.2f  compiled in %4.0f ms  %s\n",
              std::string(schedule.name).c_str(), best * 1e6, flops / best * 1e-9, shares[shares.size() / 2],
              compiled.statistics.seconds * 1e3, c.name().c_str());
  std::fflush(stdout);
}

struct Row {
  const char* schedule;
  Case problem;
};

Case square(int64_t c, int64_t size, int64_t oc, int64_t k, int64_t stride, int64_t groups = 1) {
  ConvCase v;
  v.c = c, v.h = v.w = size, v.oc = oc, v.kh = v.kw = k, v.stride = stride, v.pad = k / 2, v.groups = groups;
  return conv2d(v, Epilogue::relu);
}
Case plain_input(Case c) {
  c.block_input = false;
  return c;
}
Case max_pool() {
  Case c;
  c.op = "MaxPool2D";
  c.inputs = {Shape{1, 64, 112, 112}};
  using Ints = std::vector<int64_t>;
  c.attributes = {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}};
  return c;
}
Case doubled(int64_t c, int64_t oc, int64_t size) {
  Case t;
  t.op = "ConvTranspose2D";
  t.inputs = {Shape{1, c, size, size}, Shape{c, oc, 2, 2}, Shape{oc}};
  t.attributes = {{"strides", std::vector<int64_t>{2, 2}}};
  return t;
}

std::vector<Row> rows() {
  std::vector<Row> all;
  const char* conv = "conv2d_nchwc";
  all.push_back({"conv2d_first_layer", plain_input(square(3, 224, 64, 7, 2))});
  all.push_back({"pool2d_nchwc", max_pool()});
  // ResNet-50: channels, size, output channels, kernel, stride
  const int64_t resnet[][5] = {{64, 56, 64, 1, 1},   {64, 56, 64, 3, 1},   {64, 56, 256, 1, 1},   {256, 56, 64, 1, 1},
                               {256, 56, 512, 1, 2}, {128, 56, 128, 3, 2}, {512, 28, 128, 1, 1},  {128, 28, 128, 3, 1},
                               {128, 28, 512, 1, 1}, {256, 14, 256, 3, 1}, {1024, 14, 256, 1, 1}, {256, 14, 1024, 1, 1},
                               {512, 7, 512, 3, 1},  {2048, 7, 512, 1, 1}, {512, 7, 2048, 1, 1}};
  for (const auto& r : resnet) all.push_back({conv, square(r[0], r[1], r[2], r[3], r[4])});
  // MobileNetV2
  all.push_back({"conv2d_first_layer", plain_input(square(3, 224, 32, 3, 2))});
  const int64_t depthwise[][4] = {{32, 112, 3, 1}, {96, 112, 3, 2}, {144, 56, 3, 1}, {192, 28, 3, 1},
                                  {384, 14, 3, 1}, {960, 7, 3, 1},  {240, 28, 5, 1}};
  for (const auto& r : depthwise) all.push_back({"conv2d_depthwise", square(r[0], r[1], r[0], r[2], r[3], r[0])});
  const int64_t pointwise[][3] = {{32, 112, 16}, {16, 112, 96}, {24, 56, 144}, {144, 56, 24}, {192, 28, 32},
                                  {384, 14, 64}, {96, 14, 576}, {960, 7, 160}, {320, 7, 1280}};
  for (const auto& r : pointwise) all.push_back({conv, square(r[0], r[1], r[2], 1, 1)});
  // A text detector's last layers.
  all.push_back({"conv_transpose2d_nchwc", doubled(24, 24, 160)});
  // BERT-base, 128 tokens, and DeiT-small
  const int64_t products[][3] = {{128, 768, 768},  {128, 768, 3072}, {128, 3072, 768},
                                 {197, 384, 1536}, {197, 1536, 384}, {1, 2048, 1000}};
  for (const auto& r : products) all.push_back({"matmul_packed", matmul({r[0], r[1]}, {r[1], r[2]})});
  all.push_back({"matmul_batched", matmul({12, 128, 64}, {12, 128, 64}, Epilogue::none, true)});
  all.push_back({"matmul_batched", matmul({12, 128, 128}, {12, 128, 64})});
  return all;
}

}  // namespace
}  // namespace cuvil::schedules::test

int main(int argc, char** argv) {
  using namespace cuvil::schedules;
  const cuvil::TargetInfo target = cuvil::TargetInfo::host();
  const test::Peak peak(target);
  for (int i = 0; i < 20; ++i) peak.measure();
  std::printf("%s, vectors of %d bytes, FMA peak of one core %.1f GFLOP/s\n", target.cpu.c_str(), target.vector_bytes,
              peak.measure() * 1e-9);
  for (const test::Row& row : test::rows()) {
    if (argc > 1 && (row.schedule + (" " + row.problem.name())).find(argv[1]) == std::string::npos) continue;
    test::measure(*find(row.schedule), row.problem, target, peak);
  }
  return 0;
}
