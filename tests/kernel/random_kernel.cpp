#include "tests/kernel/random_kernel.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/base/error.h"
#include "core/kernel/interpret.h"
#include "core/kernel/scalar.h"

namespace cuvil::kernel::testing {
namespace {

/// SplitMix64 (Steele, Lea and Flood, 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int below(int n) { return static_cast<int>(bits() % static_cast<uint64_t>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  template <class T>
  const T& of(const std::vector<T>& v) {
    return v[static_cast<size_t>(below(static_cast<int>(v.size())))];
  }

 private:
  uint64_t state_;
};

class Generator {
 public:
  Generator(uint64_t seed, const RandomKernelOptions& options)
      : random_(seed), options_(options), b_("random_" + std::to_string(seed)) {
    types_ = {DType::f32, DType::f32, DType::f32, DType::i32, DType::i64, DType::u8,
              DType::f64, DType::i8,  DType::u32, DType::i16, DType::u16, DType::u64};
    if (options.halves)
      for (DType t : {DType::f16, DType::bf16}) types_.push_back(t);
  }

  RandomKernel run() {
    RandomKernel out;
    const Expr n = b_.dim("N"), m = b_.dim("M");
    out.dims = {1 + random_.below(40), 1 + random_.below(9)};
    extents_ = {n, m, Expr(16), Expr(37)};
    tasks_ = random_.one_in(2) ? m : Expr(1 + random_.below(5));
    for (int i = 0; i < 4; ++i) {
      std::vector<Expr> shape = {random_.of(extents_)};
      if (random_.one_in(2)) shape.insert(shape.begin(), random_.of(extents_));
      if (random_.one_in(5)) shape.insert(shape.begin(), Expr(3));
      std::vector<Expr> strides;
      if (shape.size() == 2 && random_.one_in(4)) strides = {shape[1] + 5, Expr(1)};
      readable_.push_back(b_.param("x" + std::to_string(i), {type(), 1}, shape, Access::in, strides));
    }
    const Buffer work = b_.param("work", {type(), 1}, {tasks_, n}, Access::work);
    for (int i = 0; i < 3; ++i)
      outputs_.push_back(b_.param("y" + std::to_string(i), {type(), 1}, {tasks_, random_.of(extents_)}, Access::out));
    outputs_.push_back(work);
    const bool two = random_.one_in(2);
    phase(two ? &work : nullptr);
    outputs_.pop_back();
    if (two) {
      readable_.push_back(work);
      phase(nullptr);
    }
    out.kernel = b_.finish();
    fill(out);
    return out;
  }

 private:
  struct Scope {
    size_t values, buffers, ranges;
  };
  /// A scalar index known to lie in 0 .. extent - 1.
  struct Range {
    Expr index, extent;
  };

  DType type() { return random_.of(types_); }
  int lanes() { return 2 << random_.below(4); }
  Scope open() const { return {values_.size(), readable_.size(), ranges_.size()}; }
  void close(Scope s) {
    values_.resize(s.values);
    readable_.resize(s.buffers);
    ranges_.resize(s.ranges);
  }

  // ---- expressions. Operands are made in braces, whose order is fixed: the same seed gives the same kernel
  // everywhere.

  Expr constant_of(DType t) {
    static const std::vector<double> kFloats = {0, -0.0, 1, -1, 0.5, 3.25, -117, 1e6, 1e-6, 255, 256, -3e9};
    if (is_float(t)) return const_float({t, 1}, random_.of(kFloats));
    if (random_.one_in(4)) return const_int({t, 1}, static_cast<int64_t>(random_.bits()));
    return const_int({t, 1}, random_.below(20) - 6);
  }

  Expr index(const Expr& extent) {
    for (const Range& r : ranges_)
      if (equal(r.extent, extent) && random_.one_in(2)) return r.index;
    const Expr any = scalar_index();
    return random_.one_in(3) ? min(max(any, 0), extent - 1) : any % extent;
  }
  /// Any i64 built from what is in scope; may be negative.
  Expr scalar_index() {
    const Expr a = ranges_.empty() ? Expr(random_.below(50)) : random_.of(ranges_).index;
    switch (random_.below(4)) {
      case 0:
        return a;
      case 1:
        return a + (random_.below(9) - 4);
      case 2:
        return a * (1 + random_.below(3)) + random_.below(5);
      default:
        return floordiv(a + random_.below(7), 1 + random_.below(4));
    }
  }

  Expr load_from(const Buffer& buffer, int lanes) {
    std::vector<Expr> indices;
    for (size_t d = 0; d + 1 < buffer->shape.size(); ++d) indices.push_back(index(buffer->shape[d]));
    if (buffer->space == Space::reg)  // registers are named by constants
      return broadcast(load(buffer, {Expr(random_.below(static_cast<int>(buffer->shape[0]->int_value)))}), lanes);
    const Expr extent = buffer->shape.back();
    if (lanes > 1 && random_.one_in(3)) {  // a gather
      const Expr spread = ramp(scalar_index(), random_.below(5) - 1, lanes);
      indices.push_back(spread % broadcast(extent, lanes));
      return load(buffer, indices, lanes, random_.one_in(3) ? expr({DType::boolean, lanes16(lanes)}, 1) : Expr());
    }
    indices.push_back(index(extent));
    const Expr last = indices.back();
    if (lanes == 1) return load(buffer, indices, 1, random_.one_in(6) ? expr(kBool, 1) : Expr());
    return load(buffer, indices, lanes, lane_mask(last, extent, lanes));
  }
  static uint16_t lanes16(int n) { return static_cast<uint16_t>(n); }

  Expr leaf(Type t) {
    std::vector<Expr> fitting;
    for (const Expr& v : values_)
      if (v.type() == t || v.type() == t.element()) fitting.push_back(broadcast(v, t.lanes));
    if (!fitting.empty() && random_.one_in(2)) return random_.of(fitting);
    std::vector<Buffer> buffers;
    for (const Buffer& b : readable_)
      if (b->type.dtype == t.dtype && (!b->type.is_vector() || (b->type == t && !in_vector_loop_)))
        buffers.push_back(b);
    if (!buffers.empty() && !random_.one_in(4)) return load_from(random_.of(buffers), t.lanes);
    return broadcast(constant_of(t.dtype), t.lanes);
  }

  Expr expr(Type t, int depth) {
    if (t.dtype == DType::boolean) return condition(t.lanes, depth);
    if (depth <= 0 || random_.one_in(6)) return leaf(t);
    switch (random_.below(12)) {
      case 0:  // from another type
        return convert(t, depth);
      case 1:
        return make(Op::select,
                    {condition(random_.one_in(3) ? 1 : t.lanes, depth - 1), expr(t, depth - 1), expr(t, depth - 1)});
      case 2:
        return make(Op::fma, {expr(t, depth - 1), expr(t, depth - 1), expr(t, depth - 1)});
      case 3:
        if (!in_vector_loop_) return across_lanes(t, depth);
        break;
      default:
        break;
    }
    return is_float(t.dtype) ? float_arithmetic(t, depth) : int_arithmetic(t, depth);
  }

  Expr convert(Type t, int depth) {
    if (!is_float(t.dtype) && random_.one_in(3)) {
      static const std::vector<DType> kSame[] = {
          {DType::i8, DType::u8}, {DType::i16, DType::u16}, {DType::i32, DType::u32}, {DType::i64, DType::u64}};
      const int size = size_of(t.dtype);
      const auto& same = kSame[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3];
      return bitcast(t, expr({random_.of(same), t.lanes}, depth - 1));
    }
    const DType from = random_.one_in(6) ? DType::boolean : type();
    return cast(t, expr({from, t.lanes}, depth - 1));
  }

  /// Not zero, not NaN: what may stand below a float.
  Expr divisor(Type t, int depth) {
    const Expr magnitude = make(Op::abs, {expr(t, depth)});
    const Expr half = const_float(t, 0.5);
    return select(magnitude < const_float(t, 1e4), magnitude + half, half);
  }

  Expr float_arithmetic(Type t, int depth) {
    static const std::vector<Op> kUnary = {Op::neg, Op::abs, Op::floor, Op::ceil, Op::trunc, Op::round};
    static const std::vector<Op> kBinary = {Op::add, Op::sub, Op::mul, Op::min, Op::max};
    static const std::vector<Op> kMath = {Op::exp, Op::tanh, Op::erf, Op::sigmoid, Op::sin, Op::cos, Op::atan};
    const int pick = random_.below(10);
    if (pick == 0) return make(Op::sqrt, {make(Op::abs, {expr(t, depth - 1)})});
    if (pick == 1) return make(Op::div, {expr(t, depth - 1), divisor(t, depth - 2)});
    if (pick == 2)
      return make(random_.one_in(2) ? Op::floordiv : Op::floormod, {expr(t, depth - 1), divisor(t, depth - 2)});
    if (pick == 3 && options_.transcendentals) return make(random_.of(kMath), {expr(t, depth - 1)});
    if (pick <= 4) return make(random_.of(kUnary), {expr(t, depth - 1)});
    return make(random_.of(kBinary), {expr(t, depth - 1), expr(t, depth - 1)});
  }

  Expr int_arithmetic(Type t, int depth) {
    static const std::vector<Op> kBinary = {Op::add, Op::sub, Op::mul, Op::div,     Op::floordiv, Op::floormod, Op::min,
                                            Op::max, Op::shl, Op::shr, Op::bit_and, Op::bit_or,   Op::bit_xor};
    static const std::vector<Op> kUnary = {Op::neg, Op::abs, Op::bit_not};
    if (random_.one_in(6)) return make(random_.of(kUnary), {expr(t, depth - 1)});
    const Op op = random_.of(kBinary);
    if ((op == Op::shl || op == Op::shr) && !random_.one_in(3))
      return make(op, {expr(t, depth - 1), const_int(t, random_.below(8 * size_of(t.dtype)))});
    return make(op, {expr(t, depth - 1), expr(t, depth - 1)});
  }

  Expr across_lanes(Type t, int depth) {
    if (t.is_vector()) {
      if (t == kIndex.with_lanes(t.lanes) && random_.one_in(2))
        return ramp(scalar_index(), random_.below(7) - 3, t.lanes);
      if (options_.dots && t.dtype == DType::i32 && t.lanes <= 16 && random_.one_in(2)) {
        const auto wide = lanes16(4 * t.lanes);
        return make(Op::dot, {expr(t, depth - 1), expr({random_.one_in(2) ? DType::u8 : DType::i8, wide}, depth - 2),
                              expr({DType::i8, wide}, depth - 2)});
      }
      std::vector<int> picks;
      const int sources = 1 + random_.below(2);
      std::vector<Expr> vectors;
      for (int i = 0; i < sources; ++i) vectors.push_back(expr(t, depth - 1));
      for (int i = 0; i < t.lanes; ++i) picks.push_back(random_.below(sources * t.lanes));
      return shuffle(vectors, picks);
    }
    const int n = lanes();
    const Expr v = expr(t.with_lanes(n), depth - 1);
    switch (random_.below(4)) {
      case 0:
        return lane(v, random_.below(n));
      case 1:
        return make(Op::reduce_max, {v});
      case 2:
        return make(Op::reduce_min, {v});
      default:
        return make(Op::reduce_add, {v});
    }
  }

  Expr condition(int n, int depth) {
    if (depth <= 0) return random_.one_in(2) ? const_int(kBool.with_lanes(n), random_.below(2)) : compare(n, 0);
    switch (random_.below(5)) {
      case 0:
        return make(Op::bit_and, {condition(n, depth - 1), condition(n, depth - 1)});
      case 1:
        return make(Op::bit_or, {condition(n, depth - 1), condition(n, depth - 1)});
      case 2:
        return make(Op::bit_not, {condition(n, depth - 1)});
      default:
        return compare(n, depth - 1);
    }
  }
  Expr compare(int n, int depth) {
    static const std::vector<Op> kOps = {Op::eq, Op::ne, Op::lt, Op::le, Op::gt, Op::ge};
    const Type t{type(), lanes16(n)};
    return make(random_.of(kOps), {expr(t, depth), expr(t, depth)});
  }

  // ---- statements

  void phase(const Buffer* fill_work) {
    b_.phase(tasks_, [&](Expr task) {
      const Scope s = open();
      task_ = task;
      ranges_.push_back({task, tasks_});
      if (fill_work) {
        const Expr extent = (*fill_work)->shape[1];
        b_.loop("f", extent, [&](Expr i) {
          ranges_.push_back({i, extent});
          b_.store(*fill_work, {task, i}, expr((*fill_work)->type, 2));
          ranges_.pop_back();
        });
      }
      body(options_.size, 2);
      close(s);
    });
  }

  void body(int statements, int nesting) {
    for (int i = 0; i < statements; ++i) statement(nesting);
  }

  void statement(int nesting) {
    switch (random_.below(nesting > 0 ? 10 : 4)) {
      case 0: {
        const Type t{random_.one_in(8) ? DType::boolean : type(), lanes16(random_.one_in(2) ? 1 : lanes())};
        values_.push_back(b_.let("v", expr(t, 3)));
        return;
      }
      case 4:
        array(nesting);
        return;
      case 5:
        registers();
        return;
      case 6: {
        const Expr condition = this->condition(1, 2);
        const Scope s = open();
        auto part = [&] {
          body(2, nesting - 1);
          close(s);
        };
        b_.branch(condition, part, random_.one_in(2) ? std::function<void()>(part) : nullptr);
        return;
      }
      case 7:
        vector_loop();
        return;
      case 8:
      case 9:
        loop(nesting);
        return;
      default:
        store_output();
        return;
    }
  }

  void loop(int nesting) {
    const bool unroll = random_.one_in(3);
    const Expr extent = unroll ? Expr(1 + random_.below(4)) : random_.of(extents_);
    const int step = unroll || random_.one_in(2) ? 1 : 1 + random_.below(8);
    b_.loop(
        "i", 0, extent, unroll ? LoopKind::unroll : LoopKind::serial,
        [&](Expr i) {
          const Scope s = open();
          ranges_.push_back({i, extent});
          body(1 + random_.below(2), nesting - 1);
          close(s);
        },
        step);
  }

  /// Scalar code; what is stored is indexed by the loop and read by nobody in it.
  void vector_loop() {
    const Buffer out = random_.of(outputs_);
    const Expr extent = out->shape.back();
    const bool outer = in_vector_loop_;
    b_.loop("w", 0, extent, LoopKind::vector, [&](Expr i) {
      const Scope s = open();
      const std::vector<Expr> outside = values_;
      in_vector_loop_ = true;
      std::erase_if(values_, [](const Expr& v) { return v.type().is_vector(); });
      ranges_.push_back({i, extent});
      if (random_.one_in(2)) values_.push_back(b_.let("u", expr({type(), 1}, 2)));
      b_.store(out, {task_, i}, expr(out->type, 3));
      in_vector_loop_ = outer;
      values_ = outside;
      close(s);
    });
  }

  /// A scratch array, written whole, then read by what follows.
  void array(int nesting) {
    const Expr extent = random_.of(extents_);
    const Buffer a = b_.alloc("a", {type(), 1}, {extent}, Space::scratch);
    const bool vectors = random_.one_in(2);
    const int n = vectors ? lanes() : 1;
    b_.loop(
        "k", 0, extent, LoopKind::serial,
        [&](Expr i) {
          const Scope s = open();
          ranges_.push_back({i, extent});
          if (random_.one_in(3)) values_.push_back(b_.let("v", expr({type(), lanes16(n)}, 2)));
          b_.store(a, {i}, expr(a->type.with_lanes(n), 2), vectors ? lane_mask(i, extent, n) : Expr());
          close(s);
        },
        n);
    readable_.push_back(a);
    if (nesting > 1) statement(nesting - 1);
  }

  /// Vector registers: set, accumulated over a loop, readable afterwards.
  void registers() {
    const int count = 1 + random_.below(3);
    const Type t{type(), lanes16(random_.one_in(4) ? 1 : lanes())};
    const Buffer r = b_.alloc("r", t, {count}, Space::reg);
    b_.loop("z", 0, count, LoopKind::unroll, [&](Expr i) { b_.store(r, {i}, expr(t, 1)); });
    const Expr extent = random_.of(extents_);
    b_.loop("k", extent, [&](Expr k) {
      const Scope s = open();
      ranges_.push_back({k, extent});
      b_.loop("z", 0, count, LoopKind::unroll,
              [&](Expr i) { b_.store(r, {i}, make(Op::fma, {expr(t, 1), expr(t, 1), load(r, {i})})); });
      close(s);
    });
    readable_.push_back(r);
  }

  void store_output() {
    const Buffer out = random_.of(outputs_);
    const Expr extent = out->shape.back();
    const int n = random_.one_in(2) ? 1 : lanes();
    const Expr at = index(extent);
    if (random_.one_in(5)) b_.prefetch(random_.of(outputs_), {task_, scalar_index()}, 1 + random_.below(2));
    if (n > 1 && random_.one_in(4)) {  // a scatter; lanes may meet, the last wins
      const Expr spread = ramp(scalar_index(), 1 + random_.below(3), n) % broadcast(extent, n);
      b_.store(out, {task_, spread}, expr(out->type.with_lanes(n), 2), random_.one_in(2) ? condition(n, 1) : Expr());
    } else if (n > 1) {
      b_.store(out, {task_, at}, expr(out->type.with_lanes(n), 3), lane_mask(at, extent, n));
    } else {
      b_.store(out, {task_, at}, expr(out->type, 4), random_.one_in(5) ? condition(1, 1) : Expr());
    }
  }

  // ---- memory

  void fill(RandomKernel& out) {
    std::vector<std::pair<Var, int64_t>> values;
    for (size_t i = 0; i < out.dims.size(); ++i) values.emplace_back(out.kernel.dims[i], out.dims[i]);
    for (const Buffer& b : out.kernel.params) {
      int64_t elements = 1;
      for (size_t d = 0; d < b->shape.size(); ++d) {
        const int64_t extent = *evaluate(b->shape[d], values);
        elements *= d == 0 && !b->strides.empty() ? extent * *evaluate(b->strides[0], values)
                    : b->strides.empty()          ? extent
                                                  : 1;
      }
      const auto size = static_cast<size_t>(size_of(b->type.dtype));
      std::vector<unsigned char> memory(static_cast<size_t>(elements) * size);
      for (size_t i = 0; i < memory.size(); i += size) {
        Scalar s;
        s.f = static_cast<double>(static_cast<int64_t>(random_.bits() % 2001) - 1000) / 64;
        s.i = random_.one_in(4) ? static_cast<int64_t>(random_.bits()) : static_cast<int64_t>(random_.bits() % 41) - 20;
        store_scalar(memory.data() + i, b->type.dtype, s);
      }
      out.memory.push_back(std::move(memory));
    }
  }

  Random random_;
  RandomKernelOptions options_;
  Builder b_;
  std::vector<DType> types_;
  std::vector<Expr> extents_;
  Expr tasks_, task_;
  std::vector<Buffer> readable_, outputs_;
  std::vector<Expr> values_;
  std::vector<Range> ranges_;
  bool in_vector_loop_ = false;
};

}  // namespace

std::string first_difference(const Kernel& kernel, const std::vector<std::vector<unsigned char>>& a,
                             const std::vector<std::vector<unsigned char>>& b) {
  for (size_t p = 0; p < kernel.params.size(); ++p) {
    const BufferInfo& buffer = *kernel.params[p];
    const auto size = static_cast<size_t>(size_of(buffer.type.dtype));
    for (size_t i = 0; i + size <= a[p].size() && buffer.access != Access::work; i += size) {
      const Scalar x = load_scalar(a[p].data() + i, buffer.type.dtype),
                   y = load_scalar(b[p].data() + i, buffer.type.dtype);
      if (x.i != y.i || !(x.f == y.f || (x.f != x.f && y.f != y.f))) {
        const bool floating = is_float(buffer.type.dtype);
        return buffer.name + "[" + std::to_string(i / size) +
               "]: " + (floating ? std::to_string(x.f) : std::to_string(x.i)) + " and " +
               (floating ? std::to_string(y.f) : std::to_string(y.i));
      }
    }
  }
  return "";
}

RandomKernel random_kernel(uint64_t seed, const RandomKernelOptions& options) { return Generator(seed, options).run(); }

}  // namespace cuvil::kernel::testing
