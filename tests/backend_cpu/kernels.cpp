#include "tests/backend_cpu/kernels.h"

#include "core/kernel/parse.h"
#include "core/kernel/scalar.h"

namespace cuvil::backends::testing {
namespace {

using kernel::Access;
using kernel::Buffer;
using kernel::Builder;
using kernel::Expr;
using kernel::Op;
using kernel::Space;

constexpr int64_t kCount = 480;

std::string suffix(DType dtype, int lanes) { return std::string(name_of(dtype)) + "x" + std::to_string(lanes); }

std::vector<DType> all_dtypes() {
  std::vector<DType> all;
  for (int i = 0; i < kDTypeCount; ++i) all.push_back(static_cast<DType>(i));
  return all;
}

kernel::Kernel operators(DType dtype, int lanes) {
  Builder b("operators_" + suffix(dtype, lanes));
  const kernel::Type type{dtype};
  std::vector<Buffer> in;
  for (const char* name : {"a", "b", "c"}) in.push_back(b.param(name, type, {kCount}, Access::in));
  const Buffer condition = b.param("condition", {DType::boolean}, {kCount}, Access::in);
  std::vector<std::pair<Op, Buffer>> outputs;
  for (int i = static_cast<int>(Op::add); i <= static_cast<int>(Op::select); ++i) {
    const auto op = static_cast<Op>(i);
    if (!kernel::lane_function(op, dtype) || (op >= Op::exp && op <= Op::pow)) continue;
    const bool compares = op >= Op::eq && op <= Op::ge;
    outputs.emplace_back(
        op, b.param(std::string(kernel::info(op).name), compares ? kernel::kBool : type, {kCount}, Access::out));
  }
  b.phase(kCount / lanes, [&](Expr t) {
    const Expr at = t * lanes;
    for (const auto& [op, out] : outputs) {
      std::vector<Expr> args;
      if (op == Op::select) args.push_back(kernel::load(condition, {at}, lanes));
      for (int i = 0; static_cast<int>(args.size()) < kernel::info(op).arity; ++i)
        args.push_back(kernel::load(in[static_cast<size_t>(i)], {at}, lanes));
      b.store(out, {at}, kernel::make(op, args));
    }
  });
  return b.finish();
}

/// One operand is a constant: the paths that skip guards.
kernel::Kernel constants(DType dtype, int lanes) {
  Builder b("constants_" + suffix(dtype, lanes));
  const kernel::Type type{dtype};
  const Buffer in = b.param("a", type, {kCount}, Access::in);
  std::vector<std::pair<std::function<Expr(Expr)>, Buffer>> outputs;
  for (const Op op : {Op::div, Op::floordiv, Op::floormod, Op::min, Op::max, Op::shl, Op::shr}) {
    if (!kernel::lane_function(op, dtype)) continue;
    for (const int64_t c : {0, 1, 3, 4, -1, -4, 100}) {
      if (c < 0 && is_unsigned_int(dtype)) continue;
      for (const bool swapped : {false, true}) {
        const Expr constant = kernel::constant(type, static_cast<double>(c));
        const std::string name = std::string(kernel::info(op).name) + std::to_string(outputs.size());
        outputs.emplace_back(
            [=](const Expr& x) {
              return kernel::make(op, swapped ? std::vector{constant, x} : std::vector{x, constant});
            },
            b.param(name, type, {kCount}, Access::out));
      }
    }
  }
  b.phase(kCount / lanes, [&](Expr t) {
    const Expr x = kernel::load(in, {t * lanes}, lanes);
    for (const auto& [f, out] : outputs) b.store(out, {t * lanes}, f(x));
  });
  return b.finish();
}

kernel::Kernel casts(DType from, int lanes) {
  Builder b("casts_" + suffix(from, lanes));
  const Buffer in = b.param("a", {from}, {kCount}, Access::in);
  std::vector<Buffer> outputs;
  for (const DType to : all_dtypes()) outputs.push_back(b.param(std::string(name_of(to)), {to}, {kCount}, Access::out));
  b.phase(kCount / lanes, [&](Expr t) {
    for (const Buffer& out : outputs)
      b.store(out, {t * lanes}, kernel::cast(out->type, kernel::load(in, {t * lanes}, lanes)));
  });
  return b.finish();
}

kernel::Kernel accesses(DType dtype, int lanes) {
  Builder b("accesses_" + suffix(dtype, lanes));
  const kernel::Type type{dtype};
  const Expr n = b.dim("n");
  const Buffer a = b.param("a", type, {n}, Access::in);
  const Buffer table = b.param("table", type, {4, 25}, Access::in);
  std::vector<Buffer> out;
  for (const char* name : {"masked", "store_masked", "gathered", "gathered_masked", "scattered", "shuffled", "via_reg",
                           "via_scratch", "ramped", "conditional"})
    out.push_back(b.param(name, type, {n + 64}, Access::inout));
  const Buffer reduced = b.param("reduced", type, {kernel::ceildiv(n, lanes), 4}, Access::out);
  b.phase(kernel::ceildiv(n, lanes), [&](Expr t) {
    const Expr at = b.let("at", t * lanes);
    const Expr mask = b.let("mask", kernel::lane_mask(at, n, lanes));
    const Expr x = b.let("x", kernel::load(a, {at}, lanes, mask));
    b.store(out[0], {at}, x);
    b.store(out[1], {at}, x, mask);
    const Expr lanes_index = kernel::ramp(at, 1, lanes);
    const Expr row = lanes_index % kernel::broadcast(Expr(4), lanes);
    const Expr column = (lanes_index * kernel::broadcast(Expr(7), lanes)) % kernel::broadcast(Expr(25), lanes);
    b.store(out[2], {at}, kernel::load(table, {row, column}));
    const Expr odd =
        kernel::make(Op::ne, {lanes_index % kernel::broadcast(Expr(2), lanes), kernel::broadcast(Expr(0), lanes)});
    b.store(out[3], {at}, kernel::load(table, {row, column}, lanes, odd));
    b.store(out[4], {kernel::ramp(t, kernel::ceildiv(n, lanes), lanes)}, x, mask & odd);
    std::vector<int> picks;
    for (int i = 0; i < lanes; ++i) picks.push_back((i * 5 + 3) % (2 * lanes));
    b.store(out[5], {at}, kernel::shuffle({x, kernel::load(table, {1, 0}, lanes)}, picks));
    const Buffer reg = b.alloc("r", type.with_lanes(lanes), {2}, Space::reg);
    b.store(reg, {0}, x);
    b.store(reg, {1}, kernel::load(table, {0, 3}, lanes));
    b.store(reg, {1}, kernel::load(reg, {0}), odd);
    b.store(out[6], {at}, kernel::load(reg, {1}));
    const Buffer scratch = b.alloc("s", type, {2, lanes}, Space::scratch);
    b.store(scratch, {t % 2, 0}, x);
    b.loop("i", lanes,
           [&](Expr i) { b.store(scratch, {(t + 1) % 2, lanes - 1 - i}, kernel::load(scratch, {t % 2, i})); });
    b.store(out[7], {at}, kernel::load(scratch, {(t + 1) % 2, 0}, lanes));
    b.store(out[8], {lanes_index}, kernel::load(a, {lanes_index}, lanes, mask), mask);
    const Expr inside = (at + lanes) <= n;
    b.store(out[9], {at}, kernel::load(a, {at}, lanes, kernel::broadcast(inside, lanes)));
    b.store(reduced, {t, 3}, kernel::lane(x, lanes - 1));
    if (dtype == DType::boolean) {
      for (int i = 0; i < 3; ++i) b.store(reduced, {t, i}, kernel::load(a, {at}, 1, at < n));
    } else {
      b.store(reduced, {t, 0}, kernel::make(Op::reduce_add, {x}));
      b.store(reduced, {t, 1}, kernel::make(Op::reduce_max, {x}));
      b.store(reduced, {t, 2}, kernel::make(Op::reduce_min, {x}));
    }
  });
  return b.finish();
}

kernel::Kernel dots(int lanes) {
  Builder b("dots_x" + std::to_string(lanes));
  const Buffer acc = b.param("acc", {DType::i32}, {lanes}, Access::in),
               u = b.param("u", {DType::u8}, {4 * lanes}, Access::in),
               s = b.param("s", {DType::i8}, {4 * lanes}, Access::in),
               facc = b.param("facc", {DType::f32}, {lanes}, Access::in),
               h = b.param("h", {DType::bf16}, {2 * lanes}, Access::in),
               g = b.param("g", {DType::bf16}, {2 * lanes}, Access::in),
               us = b.param("us", {DType::i32}, {lanes}, Access::out),
               ss = b.param("ss", {DType::i32}, {lanes}, Access::out),
               hg = b.param("hg", {DType::f32}, {lanes}, Access::out);
  b.phase(1, [&](Expr) {
    const Expr x = kernel::load(acc, {0}, lanes), bytes = kernel::load(s, {0}, 4 * lanes);
    b.store(us, {0}, kernel::dot(x, kernel::load(u, {0}, 4 * lanes), bytes));
    b.store(ss, {0}, kernel::dot(x, bytes, bytes));
    b.store(
        hg, {0},
        kernel::dot(kernel::load(facc, {0}, lanes), kernel::load(h, {0}, 2 * lanes), kernel::load(g, {0}, 2 * lanes)));
  });
  return b.finish();
}

kernel::Kernel failing() {
  Builder b("failing");
  const Expr n = b.dim("n");
  const Buffer out = b.param("out", {DType::f32}, {8}, Access::out);
  b.phase(1, [&](Expr) {
    b.loop("i", 8, [&](Expr i) {
      b.branch(i == n, [&] { b.fail(7); }, [&] { b.store(out, {i}, kernel::cast({DType::f32}, i)); });
    });
  });
  return b.finish();
}

kernel::Kernel prefetching() {
  Builder b("prefetching");
  const Buffer in = b.param("in", {DType::f32}, {8}, Access::in), out = b.param("out", {DType::f32}, {8}, Access::out);
  b.phase(8, [&](Expr t) {
    b.prefetch(in, {t * 100000000}, 1);
    b.prefetch(in, {t + 64}, 2);
    b.store(out, {t}, kernel::load(in, {t}));
  });
  return b.finish();
}

}  // namespace

std::vector<Case> typed_cases(DType dtype) {
  std::vector<Case> all;
  for (const int lanes : {1, 3, 4, 16}) {
    all.push_back({operators(dtype, lanes), {{}}});
    all.push_back({casts(dtype, lanes), {{}}});
    if (dtype != DType::boolean) all.push_back({constants(dtype, lanes), {{}}});
    if (lanes > 1) all.push_back({accesses(dtype, lanes), {{3}, {lanes}, {37}}});
  }
  return all;
}

std::vector<Case> other_cases() {
  std::vector<Case> all = {{failing(), {{3}, {20}}}, {prefetching(), {{}}}};
  for (const int lanes : {1, 3, 4, 8, 16}) all.push_back({dots(lanes), {{}}});
  return all;
}

}  // namespace cuvil::backends::testing
