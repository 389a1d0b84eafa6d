#include "tests/random/random_inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

namespace cuvil::test {

uint64_t Random::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

ir::Tensor random_tensor(const ir::Type& type, Random& random) {
  auto [tensor, data] = ir::Tensor::allocate(type);
  const int64_t width = size_of(type.dtype), n = tensor.bytes() / width;
  for (int64_t i = 0; i < n; ++i) {
    double v = 0;
    if (is_float(type.dtype))
      v = random.real(-2, 2);
    else if (type.dtype == DType::boolean)
      v = static_cast<double>(random.in(0, 1));
    else
      v = static_cast<double>(is_signed_int(type.dtype) ? random.in(-4, 4) : random.in(0, 8));
    std::memcpy(data + i * width, ir::Tensor::scalar(type.dtype, v).raw(), static_cast<size_t>(width));
  }
  return tensor;
}

std::vector<ir::Tensor> random_inputs(const ir::Graph& graph, uint64_t seed) {
  Random random(seed);
  std::map<std::string, int64_t> symbols;
  for (const std::string& s : graph.symbols()) symbols[s] = s == "N" ? random.in(1, 3) : random.in(kLeastExtent, 9);
  std::vector<ir::Tensor> inputs;
  for (const auto& p : graph.body.params) {
    ir::Type type = p->type;
    for (Dim& d : type.shape) d = Dim(d.evaluate(symbols).value());
    inputs.push_back(random_tensor(type, random));
  }
  return inputs;
}

std::optional<std::string> difference(const std::vector<ir::Tensor>& expected, const std::vector<ir::Tensor>& actual,
                                      double tolerance) {
  if (expected.size() != actual.size()) return "another number of results";
  for (size_t r = 0; r < expected.size(); ++r) {
    const ir::Tensor &e = expected[r], &a = actual[r];
    const std::string where = "result " + std::to_string(r);
    if (!(e.type == a.type)) return where + " is " + a.type.str() + ", expected " + e.type.str();
    const int64_t n = e.bytes() / size_of(e.type.dtype);
    for (int64_t i = 0; i < n; ++i) {
      const double x = e.as_double(i), y = a.as_double(i);
      const bool same = is_float(e.type.dtype) ? (std::isnan(x) && std::isnan(y)) || x == y ||
                                                     std::fabs(x - y) <= tolerance * (1 + std::fabs(x))
                                               : e.as_int(i) == a.as_int(i);
      if (!same)
        return where + ", element " + std::to_string(i) + ": " + std::to_string(y) + ", expected " + std::to_string(x);
    }
  }
  return std::nullopt;
}

std::vector<ir::Tensor> perturbed(const std::vector<ir::Tensor>& inputs, uint64_t seed) {
  Random random(seed);
  std::vector<ir::Tensor> r = inputs;
  for (ir::Tensor& t : r) {
    if (t.type.dtype != DType::f32) continue;
    std::vector<float> values(static_cast<size_t>(t.bytes()) / sizeof(float));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(t.as_double(static_cast<int64_t>(i)) * (1 + random.real(-1, 1) * 0x1p-21));
    t = ir::Tensor::from_floats(t.type.shape, values);
  }
  return r;
}

double distance(const std::vector<ir::Tensor>& a, const std::vector<ir::Tensor>& b) {
  double worst = 0;
  for (size_t r = 0; r < a.size(); ++r)
    for (int64_t i = 0; is_float(a[r].type.dtype) && i < a[r].bytes() / size_of(a[r].type.dtype); ++i)
      worst = std::max(worst, std::fabs(a[r].as_double(i) - b[r].as_double(i)) / (1 + std::fabs(a[r].as_double(i))));
  return worst;
}

}  // namespace cuvil::test
