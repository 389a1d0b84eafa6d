#include "tests/schedules/cases.h"

namespace cuvil::schedules::test {

using Ints = std::vector<int64_t>;

Case conv2d(const ConvCase& v, Epilogue epilogue) {
  Case c;
  c.op = "Conv2D";
  c.inputs = {Shape{v.n, v.c, v.h, v.w}, Shape{v.oc, v.c / v.groups, v.kh, v.kw}};
  if (v.bias) c.inputs.emplace_back(Shape{v.oc});
  c.attributes = {{"strides", Ints{v.stride, v.stride_w ? v.stride_w : v.stride}},
                  {"pads", Ints{v.pad, v.pad, v.pad, v.pad}},
                  {"dilations", Ints{v.dilation, v.dilation}},
                  {"groups", v.groups}};
  c.epilogue = epilogue;
  return c;
}

Case matmul(Shape a, Shape b, Epilogue epilogue, bool transposed_b) {
  Case c;
  c.op = "MatMul";
  c.inputs = {std::move(a), std::move(b)};
  c.attributes = {{"transpose_b", int64_t{transposed_b}}};
  c.epilogue = epilogue;
  c.block_input = c.block_output = false;
  return c;
}

Case symbolic_image(Case c) {
  Shape& x = *c.inputs[0];
  c.symbols = {{"N", x[0].value()}, {"H", x[2].value()}, {"W", x[3].value()}};
  x[0] = Dim::symbol("N"), x[2] = Dim::symbol("H"), x[3] = Dim::symbol("W");
  return c;
}

namespace {

/// Image sizes and windows around which borders, remainders and strides differ.
std::vector<ConvCase> windows() {
  std::vector<ConvCase> all;
  const auto add = [&](int64_t h, int64_t w, int64_t k, int64_t stride, int64_t pad, int64_t dilation) {
    ConvCase c;
    c.h = h, c.w = w, c.kh = c.kw = k, c.stride = stride, c.pad = pad, c.dilation = dilation;
    all.push_back(c);
  };
  add(7, 7, 1, 1, 0, 1);
  add(1, 1, 1, 1, 0, 1);
  add(5, 9, 1, 2, 0, 1);
  add(7, 7, 3, 1, 1, 1);
  add(1, 1, 3, 1, 1, 1);
  add(3, 33, 3, 1, 1, 1);
  add(14, 15, 3, 2, 1, 1);
  add(6, 30, 3, 1, 0, 1);
  add(9, 10, 5, 1, 4, 2);
  add(4, 5, 2, 2, 0, 1);
  add(5, 18, 3, 1, 3, 1);
  add(5, 6, 1, 1, 1, 1);  // padding around a kernel of one tap
  add(2, 1, 1, 8, 3, 1);  // a stride beyond the image
  ConvCase uneven;
  uneven.h = 8, uneven.w = 21, uneven.kh = 1, uneven.kw = 5, uneven.pad = 2, uneven.stride = 1, uneven.stride_w = 3;
  all.push_back(uneven);
  return all;
}

Epilogue rotate(size_t i) { return static_cast<Epilogue>(i % 4); }

std::vector<Case> dense() {
  std::vector<Case> all;
  const std::pair<int64_t, int64_t> channels[] = {{16, 32}, {19, 40}, {4, 5}, {33, 17}, {8, 80}};
  size_t i = 0;
  for (ConvCase w : windows()) {
    for (int pick = 0; pick < 2; ++pick) {
      std::tie(w.c, w.oc) = channels[i % 5];
      w.n = i % 3 == 0 ? 2 : 1;
      w.bias = i % 4 != 1;
      all.push_back(conv2d(w, rotate(i)));
      if (pick == 0) all.push_back(symbolic_image(all.back()));
      ++i;
    }
  }
  ConvCase grouped;
  grouped.c = 64, grouped.oc = 96, grouped.groups = 2, grouped.h = 6, grouped.w = 9;
  all.push_back(conv2d(grouped, Epilogue::relu));
  return all;
}

std::vector<Case> first_layer() {
  std::vector<Case> all;
  size_t i = 0;
  for (ConvCase w : windows()) {
    w.c = i % 2 ? 3 : 1, w.oc = i % 3 ? 24 : 64, w.n = i % 3 == 0 ? 2 : 1;
    if (i == 3) w.kh = w.kw = 7, w.pad = 3, w.stride = 2;
    Case c = conv2d(w, rotate(i));
    c.block_input = false;
    all.push_back(c);
    all.push_back(symbolic_image(c));
    ++i;
  }
  return all;
}

std::vector<Case> depthwise() {
  std::vector<Case> all;
  size_t i = 0;
  for (ConvCase w : windows()) {
    w.c = w.oc = w.groups = i % 2 ? 16 : 20;
    w.n = i % 3 == 0 ? 2 : 1;
    w.bias = i % 4 != 1;
    all.push_back(conv2d(w, rotate(i++)));
    all.push_back(symbolic_image(all.back()));
  }
  return all;
}

std::vector<Case> transposed() {
  std::vector<Case> all;
  const auto add = [&](int64_t c, int64_t oc, int64_t h, int64_t w, int64_t k, int64_t stride, int64_t pad,
                       int64_t extra, int64_t dilation) {
    Case x;
    x.op = "ConvTranspose2D";
    x.inputs = {Shape{1, c, h, w}, Shape{c, oc, k, k}};
    if (all.size() % 3 != 1) x.inputs.emplace_back(Shape{oc});
    x.attributes = {{"strides", Ints{stride, stride}},
                    {"pads", Ints{pad, pad, pad, pad}},
                    {"output_padding", Ints{extra, extra}},
                    {"dilations", Ints{dilation, dilation}},
                    {"groups", int64_t{1}}};
    x.epilogue = rotate(all.size() / 2);
    all.push_back(x);
    all.push_back(symbolic_image(x));
  };
  add(16, 16, 4, 5, 2, 2, 0, 0, 1);
  add(24, 1, 5, 17, 2, 2, 0, 0, 1);
  add(24, 40, 5, 9, 3, 2, 1, 1, 1);
  add(5, 20, 3, 3, 4, 2, 1, 0, 1);
  add(16, 16, 4, 4, 3, 1, 1, 0, 1);
  add(16, 33, 6, 4, 2, 3, 0, 2, 1);
  add(8, 16, 5, 5, 3, 2, 2, 0, 2);
  return all;
}

std::vector<Case> transposed_plain() {
  std::vector<Case> all;
  for (Case c : transposed()) {
    Shape& w = *c.inputs[1];
    const Ints& strides = std::get<Ints>(c.attributes["strides"]);
    if (strides[1] > 2) continue;
    w[1] = all.size() % 4 ? 1 : 3;
    if (c.inputs.size() > 2) c.inputs[2] = Shape{w[1]};
    c.block_output = false;
    all.push_back(c);
  }
  return all;
}

std::vector<Case> packed() {
  std::vector<Case> all;
  const Dim m = Dim::symbol("M");
  size_t i = 0;
  for (int64_t rows : {1, 3, 13, 14, 29, 49}) {
    const std::pair<int64_t, int64_t> inner[] = {{33, 19}, {40, 96}, {16, 5}, {7, 160}};
    for (const auto& [k, n] : inner) {
      all.push_back(matmul({rows, k}, {k, n}, rotate(i++)));
      Case symbolic = matmul({m, k}, {k, n}, rotate(i));
      symbolic.symbols = {{"M", rows}};
      if (i % 2 == 0) all.push_back(symbolic);
    }
  }
  all.push_back(matmul({2, 9, 24}, {24, 48}, Epilogue::residual_relu));
  all.push_back(matmul({3, 1, 24}, {24, 48}));
  all.push_back(matmul({9, 24}, {48, 24}, Epilogue::relu, true));
  all.push_back(matmul({48, 2100}, {2100, 20}, Epilogue::relu));  // several blocks of the sum on small caches
  return all;
}

std::vector<Case> batched() {
  std::vector<Case> all;
  const Dim s = Dim::symbol("S"), b = Dim::symbol("B");
  all.push_back(matmul({2, 3, 20, 8}, {2, 3, 8, 17}));
  all.push_back(matmul({3, 1, 4, 8}, {2, 8, 5}, Epilogue::relu));
  all.push_back(matmul({2, 7, 24}, {5, 24}, Epilogue::residual_relu, true));
  all.push_back(matmul({2, 3, 37, 20}, {3, 50, 20}, Epilogue::none, true));
  for (int64_t length : {1, 5, 14, 40}) {
    all.push_back(matmul({b, s, 24}, {b, s, 24}, Epilogue::none, true));
    all.back().symbols = {{"B", 2}, {"S", length}};
    all.push_back(matmul({b, s, s}, {b, s, 24}, Epilogue::relu));
    all.back().symbols = {{"B", 2}, {"S", length}};
  }
  return all;
}

std::vector<Case> pools() {
  std::vector<Case> all;
  size_t i = 0;
  for (const ConvCase& w : windows()) {
    if (w.pad >= w.kh || w.pad >= w.kw) continue;
    Case c;
    c.op = i % 2 ? "AveragePool2D" : "MaxPool2D";
    c.inputs = {Shape{i % 3 ? 1 : 2, i % 2 ? 16 : 20, w.h, w.w}};
    c.attributes = {{"kernel", Ints{w.kh, w.kw}},
                    {"strides", Ints{w.stride, w.stride_w ? w.stride_w : w.stride}},
                    {"pads", Ints{w.pad, w.pad, w.pad, w.pad}},
                    {"dilations", Ints{w.dilation, w.dilation}}};
    if (i % 4 == 3) c.attributes["count_include_pad"] = int64_t{1};
    c.epilogue = rotate(i++);
    all.push_back(c);
    all.push_back(symbolic_image(c));
  }
  return all;
}

std::vector<Case> resizes() {
  std::vector<Case> all;
  const auto add = [&](int64_t c, int64_t h, int64_t w, int64_t fh, int64_t fw, const char* coordinates,
                       const char* nearest) {
    Case x;
    x.op = "Resize";
    x.inputs = {Shape{1, c, h, w}};
    x.attributes = {{"shape", Shape{1, c, h * fh, w * fw}},
                    {"mode", std::string("nearest")},
                    {"coordinates", std::string(coordinates)},
                    {"nearest", std::string(nearest)}};
    x.epilogue = rotate(all.size());
    all.push_back(x);
    const Dim sh = Dim::symbol("H"), sw = Dim::symbol("W");
    x.inputs = {Shape{1, c, sh, sw}};
    x.attributes["shape"] = Shape{1, c, sh * Dim(fh), sw * Dim(fw)};
    x.symbols = {{"H", h}, {"W", w}};
    all.push_back(x);
  };
  add(16, 3, 5, 2, 2, "asymmetric", "floor");
  add(20, 4, 3, 2, 3, "half_pixel", "round_prefer_floor");
  add(20, 4, 3, 4, 1, "half_pixel", "round_prefer_ceil");
  return all;
}

}  // namespace

std::vector<Case> cases_of(std::string_view schedule) {
  if (schedule == "conv2d_nchwc") return dense();
  if (schedule == "conv2d_first_layer") return first_layer();
  if (schedule == "conv2d_depthwise") return depthwise();
  if (schedule == "conv_transpose2d_nchwc") return transposed();
  if (schedule == "conv_transpose2d_plain") return transposed_plain();
  if (schedule == "matmul_packed") return packed();
  if (schedule == "matmul_batched") return batched();
  if (schedule == "pool2d_nchwc") return pools();
  if (schedule == "resize_nchwc") return resizes();
  return {};
}

}  // namespace cuvil::schedules::test
