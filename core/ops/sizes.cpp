#include "core/ops/define.h"
#include "core/ops/lower.h"

namespace cuvil::ops {

OpDef define_sizes() {
  OpDef d;
  d.name = "Sizes";
  d.doc =
      "y = values: sizes known as expressions over the model's symbols, as an i64 tensor (what ONNX Shape leads to).";
  d.outputs = {{"y", "i64 of the given shape"}};
  d.attributes = {required("values", AttrKind::shape, "the numbers, in row-major order"),
                  required("shape", AttrKind::shape, "of y: its number of elements is that of values")};
  d.traits = kPure;
  d.infer = [](const InferContext& c) {
    const Shape& shape = c.node.attr<Shape>("shape");
    const int64_t count = static_cast<int64_t>(c.node.attr<Shape>("values").size());
    if (num_elements(shape).as_const() != count) c.fail("values and shape differ in their number of elements");
    return std::vector<ir::Type>{{DType::i64, shape, {}}};
  };
  d.lower = [](LowerContext& c) {
    const Shape& shape = c.out_type().shape;
    const Shape& values = c.node().attr<Shape>("values");
    std::vector<kernel::Expr> numbers = c.extents(values);
    c.b().phase(1, [&](kernel::Expr) {
      for (size_t i = 0; i < values.size(); ++i) {
        std::vector<kernel::Expr> index(shape.size());
        int64_t rest = static_cast<int64_t>(i);
        for (size_t a = shape.size(); a-- > 0;) {
          index[a] = kernel::Expr(rest % shape[a].value());
          rest /= shape[a].value();
        }
        c.store(std::move(index), numbers[i]);
      }
    });
  };
  d.samples = [] {
    return std::vector<Sample>{
        {"by_hand", {}, {{"values", Shape{3, 4}}, {"shape", Shape{2}}}, {}, {3, 4}},
        {"scalar", {}, {{"values", Shape{7}}, {"shape", Shape{}}}, {}, {7}},
    };
  };
  return d;
}

}  // namespace cuvil::ops
