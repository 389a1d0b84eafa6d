#include "core/ops/define.h"

namespace cuvil::ops {

// Inputs: trip count, condition, `carried` values, then what the region reads. Region: parameters are the number of the
// iteration, the carried values, the captured ones; results are the condition, the carried values, the stacked ones.
OpDef define_loop() {
  OpDef d;
  d.name = "Loop";
  d.doc =
      "Runs its region while the condition is true, at most `trips` times (ONNX Loop). The region is closed: its "
      "parameters are the number of the iteration, the carried values and the captured ones; its results are the next "
      "condition, the next carried values (types stay the same) and one slice of each stacked result.";
  d.inputs = {{"trips", "i64, one element; absent: no limit", true},
              {"condition", "bool, one element: whether the first iteration runs; absent: true", true},
              {"values", "first values of the carried ones, then captured ones", true, true}};
  d.outputs = {{"results", "last carried values, then stacked slices [length, ...]", false, true}};
  d.attributes = {required("carried", AttrKind::integer, "number of carried values"),
                  absent_ok("length", AttrKind::shape,
                            "one size: how many iterations there are; absent: there are no stacked results"),
                  optional("sets", AttrKind::strings, "the symbol that `length` is, if it depends on data",
                           std::vector<std::string>()),
                  optional("upper", AttrKind::shape, "the largest value of that symbol", Shape())};
  d.traits = kPure | kControl;
  d.dtypes = {DType::i64};
  d.infer = [](const InferContext& c) {
    if (c.node.regions.size() != 1) c.fail("Loop has one region");
    const ir::Region& region = c.node.regions[0];
    const auto carried = static_cast<size_t>(c.node.attr<int64_t>("carried"));
    const size_t values = c.inputs().size() < 2 ? 0 : c.inputs().size() - 2;
    for (size_t i = 0; i < 2; ++i)
      if (c.has_in(i) && num_elements(c.in(i).shape).as_const() != 1) c.fail("trips and condition have one element");
    if (c.has_in(1)) need_dtype(c, 1, DType::boolean);
    if (carried > values || region.params.size() != values + 1 || region.results.size() < carried + 1)
      c.fail("the region has another number of parameters or results");
    if (region.params[0]->type != i64({})) c.fail("the first parameter of the region must be an i64 scalar");
    const ir::Type& condition = region.results[0]->type;
    if (condition.dtype != DType::boolean || num_elements(condition.shape).as_const() != 1)
      c.fail("the first result of the region must be one bool");
    std::vector<ir::Type> types;
    for (size_t i = 0; i < values; ++i) {
      const ir::Type& type = region.params[i + 1]->type;
      if (!c.has_in(i + 2) || type != c.in(i + 2))
        c.fail("parameter " + std::to_string(i + 1) + " of the region has another type than what it stands for");
      if (i >= carried) continue;
      if (region.results[i + 1]->type != type)
        c.fail("carried value " + std::to_string(i) + " begins as " + type.str() + " and becomes " +
               region.results[i + 1]->type.str() + "; its type must stay the same");
      types.push_back(type);
    }
    const size_t stacked = region.results.size() - 1 - carried;
    if (stacked == 0) return types;
    if (!c.node.has("length") || c.node.attr<Shape>("length").size() != 1) c.fail("stacked results need a length");
    for (size_t i = 0; i < stacked; ++i) {
      ir::Type type = region.results[1 + carried + i]->type;
      type.shape.insert(type.shape.begin(), c.node.attr<Shape>("length")[0]);
      types.push_back(type);
    }
    return types;
  };
  d.flops = [](const ir::Node& node) {
    Dim sum = 0;
    for (const auto& n : node.regions[0].nodes) sum = sum + flops_of(*n);
    return node.has("length") ? sum * node.attr<Shape>("length")[0] : sum;
  };
  return d;
}

}  // namespace cuvil::ops
