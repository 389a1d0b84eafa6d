// Evaluates an expression over one f32 variable (or two) at many points at once: the expression's graph is flattened
// into a list of operations, each of which runs over a block of points. Only what expanded math uses.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <vector>

#include "core/kernel/ir.h"

namespace cuvil::kernel {

class FlatEvaluator {
 public:
  static constexpr int kBlock = 1024;

  /// `e` is scalar and contains no variables but the f32 ones of `inputs`.
  FlatEvaluator(const Expr& e, const std::vector<Var>& inputs) : inputs_(inputs) { root_ = add(e); }

  /// inputs[i] points to `n` <= kBlock values of variable i.
  void run(const std::vector<const float*>& inputs, int n, float* out) {
    for (Step& s : steps_) {
      if (s.node->op == Op::var) {
        for (size_t v = 0; v < inputs_.size(); ++v)
          if (inputs_[v] == s.node->variable) std::memcpy(s.values.data(), inputs[v], sizeof(float) * n);
        continue;
      }
      const Slot* a = s.args.size() > 0 ? steps_[s.args[0]].values.data() : nullptr;
      const Slot* b = s.args.size() > 1 ? steps_[s.args[1]].values.data() : nullptr;
      const Slot* c = s.args.size() > 2 ? steps_[s.args[2]].values.data() : nullptr;
      step(s, a, b, c, n);
    }
    const float* r = reinterpret_cast<const float*>(steps_[root_].values.data());
    std::memcpy(out, r, sizeof(float) * n);
  }

  /// Constants and variables not counted.
  int operations() const {
    int n = 0;
    for (const Step& s : steps_) n += !s.args.empty();
    return n;
  }

 private:
  using Slot = uint64_t;
  struct Step {
    const ExprNode* node;
    std::vector<int> args;
    std::vector<Slot> values;  ///< kBlock elements of the node's type, packed
  };
  std::vector<Var> inputs_;
  std::vector<Step> steps_;
  std::vector<Expr> alive_;
  std::map<const ExprNode*, int> known_;
  int root_ = 0;

  int add(const Expr& e) {
    if (const auto it = known_.find(e.get()); it != known_.end()) return it->second;
    Step s{e.get(), {}, std::vector<Slot>(kBlock)};
    for (const Expr& a : e->args) s.args.push_back(add(a));
    if (e->op == Op::const_int || e->op == Op::const_float) fill(s);
    alive_.push_back(e);
    steps_.push_back(std::move(s));
    return known_[e.get()] = static_cast<int>(steps_.size()) - 1;
  }

  static void fill(Step& s) {
    const ExprNode& n = *s.node;
    for (int i = 0; i < kBlock; ++i) {
      switch (n.type.dtype) {
        case DType::f32:
          as<float>(s.values)[i] = static_cast<float>(n.float_value);
          break;
        case DType::f64:
          as<double>(s.values)[i] = n.float_value;
          break;
        case DType::i32:
          as<int32_t>(s.values)[i] = static_cast<int32_t>(n.int_value);
          break;
        case DType::i64:
          as<int64_t>(s.values)[i] = n.int_value;
          break;
        default:
          as<uint8_t>(s.values)[i] = n.int_value != 0;
      }
    }
  }

  template <class T>
  static T* as(std::vector<Slot>& v) {
    return reinterpret_cast<T*>(v.data());
  }
  template <class T>
  static const T* as(const Slot* v) {
    return reinterpret_cast<const T*>(v);
  }

  [[noreturn]] static void unknown(const ExprNode& n) {
    throw std::runtime_error("flat evaluator: " + std::string(info(n.op).name) + " of " + n.type.str());
  }

  static void step(Step& s, const Slot* a, const Slot* b, const Slot* c, int n) {
    const ExprNode& node = *s.node;
    const DType operand = node.args.empty() ? node.type.dtype : node.args[0]->type.dtype;
    switch (node.op) {
      case Op::const_int:
      case Op::const_float:
        return;
      case Op::cast:
        if (operand == DType::f32) return convert<float>(s, a, n);
        if (operand == DType::f64) return convert<double>(s, a, n);
        if (operand == DType::i32) return convert<int32_t>(s, a, n);
        if (operand == DType::i64) return convert<int64_t>(s, a, n);
        unknown(node);
      case Op::bitcast:
        std::memcpy(s.values.data(), a, static_cast<size_t>(size_of(operand)) * n);
        return;
      case Op::select:
        switch (node.type.dtype) {
          case DType::f32:
            return pick<float>(s, a, b, c, n);
          case DType::f64:
            return pick<double>(s, a, b, c, n);
          case DType::i32:
            return pick<int32_t>(s, a, b, c, n);
          default:
            unknown(node);
        }
      default:
        break;
    }
    switch (operand) {
      case DType::f32:
        return floats<float>(s, a, b, c, n);
      case DType::f64:
        return floats<double>(s, a, b, c, n);
      case DType::i32:
        return ints<int32_t, uint32_t>(s, a, b, n);
      case DType::i64:
        return ints<int64_t, uint64_t>(s, a, b, n);
      case DType::boolean:
        return ints<uint8_t, uint8_t>(s, a, b, n);
      default:
        unknown(node);
    }
  }

  template <class From>
  static void convert(Step& s, const Slot* a, int n) {
    const From* x = as<From>(a);
    for (int i = 0; i < n; ++i) {
      switch (s.node->type.dtype) {
        case DType::f32:
          as<float>(s.values)[i] = static_cast<float>(x[i]);
          break;
        case DType::f64:
          as<double>(s.values)[i] = static_cast<double>(x[i]);
          break;
        case DType::i32:
          if constexpr (std::is_integral_v<From>) {
            as<int32_t>(s.values)[i] = static_cast<int32_t>(x[i]);
            break;
          }
          [[fallthrough]];
        default:
          unknown(*s.node);
      }
    }
  }

  template <class T>
  static void pick(Step& s, const Slot* a, const Slot* b, const Slot* c, int n) {
    const uint8_t* m = as<uint8_t>(a);
    for (int i = 0; i < n; ++i) as<T>(s.values)[i] = m[i] ? as<T>(b)[i] : as<T>(c)[i];
  }

  template <class T, class F>
  static void each(Step& s, int n, F f) {
    T* out = as<T>(s.values);
    for (int i = 0; i < n; ++i) out[i] = f(i);
  }

  template <class T>
  static bool compare(Step& s, const T* x, const T* y, int n) {
    switch (s.node->op) {
      case Op::eq:
        each<uint8_t>(s, n, [=](int i) { return x[i] == y[i]; });
        return true;
      case Op::ne:
        each<uint8_t>(s, n, [=](int i) { return x[i] != y[i]; });
        return true;
      case Op::lt:
        each<uint8_t>(s, n, [=](int i) { return x[i] < y[i]; });
        return true;
      case Op::le:
        each<uint8_t>(s, n, [=](int i) { return x[i] <= y[i]; });
        return true;
      case Op::gt:
        each<uint8_t>(s, n, [=](int i) { return x[i] > y[i]; });
        return true;
      case Op::ge:
        each<uint8_t>(s, n, [=](int i) { return x[i] >= y[i]; });
        return true;
      default:
        return false;
    }
  }

  template <class T>
  static void floats(Step& s, const Slot* a, const Slot* b, const Slot* c, int n) {
    const T *x = as<T>(a), *y = as<T>(b), *z = as<T>(c);
    if (compare(s, x, y, n)) return;
    switch (s.node->op) {
      case Op::add:
        return each<T>(s, n, [=](int i) { return x[i] + y[i]; });
      case Op::sub:
        return each<T>(s, n, [=](int i) { return x[i] - y[i]; });
      case Op::mul:
        return each<T>(s, n, [=](int i) { return x[i] * y[i]; });
      case Op::div:
        return each<T>(s, n, [=](int i) { return x[i] / y[i]; });
      case Op::fma:
        return each<T>(s, n, [=](int i) { return std::fma(x[i], y[i], z[i]); });
      case Op::neg:
        return each<T>(s, n, [=](int i) { return -x[i]; });
      case Op::abs:
        return each<T>(s, n, [=](int i) { return std::fabs(x[i]); });
      case Op::sqrt:
        return each<T>(s, n, [=](int i) { return std::sqrt(x[i]); });
      case Op::trunc:
        return each<T>(s, n, [=](int i) { return std::trunc(x[i]); });
      default:
        unknown(*s.node);
    }
  }

  template <class T, class U>
  static void ints(Step& s, const Slot* a, const Slot* b, int n) {
    const T *x = as<T>(a), *y = as<T>(b);
    if (compare(s, x, y, n)) return;
    const bool boolean = s.node->type.dtype == DType::boolean;
    switch (s.node->op) {
      case Op::add:
        return each<T>(s, n, [=](int i) { return static_cast<T>(U(x[i]) + U(y[i])); });
      case Op::sub:
        return each<T>(s, n, [=](int i) { return static_cast<T>(U(x[i]) - U(y[i])); });
      case Op::shl:
        return each<T>(s, n, [=](int i) { return static_cast<T>(U(x[i]) << y[i]); });
      case Op::shr:
        return each<T>(s, n, [=](int i) { return static_cast<T>(x[i] >> y[i]); });
      case Op::bit_and:
        return each<T>(s, n, [=](int i) { return x[i] & y[i]; });
      case Op::bit_or:
        return each<T>(s, n, [=](int i) { return x[i] | y[i]; });
      case Op::bit_xor:
        return each<T>(s, n, [=](int i) { return x[i] ^ y[i]; });
      case Op::bit_not:
        return each<T>(s, n, [=](int i) { return boolean ? !x[i] : ~x[i]; });
      default:
        unknown(*s.node);
    }
  }
};

}  // namespace cuvil::kernel
