#include "core/driver/pipeline.h"

#include <chrono>
#include <cstdio>
#include <functional>

#include "core/base/env.h"
#include "core/ops/op.h"
#include "core/passes/pass.h"
#include "core/plan/choose_schedules.h"
#include "core/plan/memory.h"

namespace cuvil::driver {
namespace {

bool listed(const std::string& list, std::string_view name) {
  return ("," + list + ",").find("," + std::string(name) + ",") != std::string::npos;
}

/// What the environment asks for, read once per compilation.
struct Wishes {
  std::string dump = env::get("CUVIL_DUMP").value_or("");
  std::string skip = env::get("CUVIL_SKIP").value_or("");
  bool verify = env::get("CUVIL_VERIFY").value_or("") == "1";
};

/// What no runtime could hold is refused before schedules look at it.
void refuse_impossible_sizes(const ir::Graph& graph) {
  constexpr int64_t kMost = int64_t{1} << 46;  // bytes; the runtime's kMaxBytes
  constexpr int kMostAxes = 26;                // the letters of a layout's tag
  const auto check = [&](const ir::Value& v, const Location& where) {
    if (v.type.rank() > kMostAxes)
      throw_unsupported("'" + v.name + "' has " + std::to_string(v.type.rank()) + " axes; tensors have at most " +
                            std::to_string(kMostAxes),
                        where);
    int64_t bytes = size_of(v.type.dtype);
    for (const Dim& d : v.type.shape) {
      const int64_t size = d.as_const().value_or(1);
      if (size == 0) return;
      if (size > kMost / bytes)
        throw_shape_error("'" + v.name + "' of " + v.type.str() + " is larger than any memory", where);
      bytes *= size;
    }
  };
  for (const auto& v : graph.body.params) check(*v, {});
  for (const auto& n : graph.body.nodes)
    for (const auto& v : n->outputs) check(*v, n->location);
}

int count_nodes(ir::Graph& graph) {
  int n = 0;
  graph.for_each_node([&](ir::Node&) { ++n; });
  return n;
}

class Runner {
 public:
  explicit Runner(std::vector<StepTime>* times) : times_(times) {}

  ir::Graph step(std::string_view name, ir::Graph graph, const std::function<ir::Graph(ir::Graph)>& run) {
    const auto begin = std::chrono::steady_clock::now();
    ir::Graph out = run(std::move(graph));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (times_) times_->push_back({std::string(name), took.count(), count_nodes(out)});
    if (wishes_.dump == "all" || wishes_.dump == "after:" + std::string(name))
      std::fprintf(stderr, "// after %s\n%s\n", std::string(name).c_str(), ir::print(out, false).c_str());
    if (wishes_.verify) ops::check(out);
    return out;
  }

  bool skipped(const passes::Pass& pass) const { return pass.optional && listed(wishes_.skip, pass.name); }

 private:
  std::vector<StepTime>* times_;
  Wishes wishes_;
};

ir::Graph run_passes(ir::Graph graph, const TargetInfo& target, bool strict_numerics, bool optimize, Runner& runner) {
  const passes::PassContext context{target, strict_numerics};
  for (const passes::Pass& pass : passes::all()) {
    if (runner.skipped(pass) || (pass.optional && !optimize)) continue;
    graph = runner.step(pass.name, std::move(graph),
                        [&](ir::Graph g) { return passes::apply(pass, std::move(g), context); });
  }
  return graph;
}

}  // namespace

ir::Graph run_passes(ir::Graph graph, const TargetInfo& target, bool strict_numerics, std::vector<StepTime>* times) {
  Runner runner(times);
  return run_passes(std::move(graph), target, strict_numerics, true, runner);
}

Lowered lower(ir::Graph graph, const TargetInfo& target, bool strict_numerics, bool optimize) {
  Lowered result{ir::Graph(), {}, {}};
  refuse_impossible_sizes(graph);
  Runner runner(&result.times);
  graph = run_passes(std::move(graph), target, strict_numerics, optimize, runner);
  graph = runner.step("add_output_copies", std::move(graph), plan::add_output_copies);
  graph = runner.step("choose_schedules", std::move(graph),
                      [&](ir::Graph g) { return plan::choose_schedules(std::move(g), target, !optimize); });
  graph = runner.step("make_plan", std::move(graph), [&](ir::Graph g) {
    result.plan = plan::make_plan(g, target);
    return g;
  });
  result.graph = std::move(graph);
  return result;
}

}  // namespace cuvil::driver
