#include <algorithm>
#include <bit>
#include <limits>

#include "core/base/error.h"
#include "core/kernel/copy.h"
#include "core/kernel/transform.h"
#include "core/kernel/vector_body.h"

namespace cuvil::kernel {
namespace {

/// Bytes of the widest element that the body computes with; index arithmetic does not count.
int widest(const std::vector<Stmt>& body) {
  int bytes = 1;
  visit(
      body,
      [&](const StmtNode& s) {
        if (s.kind == StmtKind::store) bytes = std::max(bytes, size_of(s.buffer->type.dtype));
      },
      [&](const ExprNode& e) {
        if (e.op == Op::load || e.type.dtype != DType::i64) bytes = std::max(bytes, size_of(e.type.dtype));
      });
  return bytes;
}

/// What the verifier asks of a vector loop, and that its values are scalars.
bool is_simple(const std::vector<Stmt>& body) {
  bool simple = true;
  visit(
      body,
      [&](const StmtNode& s) {
        simple = simple && s.kind != StmtKind::loop && s.kind != StmtKind::alloc && s.kind != StmtKind::barrier &&
                 s.kind != StmtKind::fail && !(s.buffer && s.buffer->type.is_vector());
      },
      [&](const ExprNode& e) { simple = simple && !e.type.is_vector() && !(e.buffer && e.buffer->type.is_vector()); });
  return simple;
}

/// The value that changes nothing: -0 for a float sum, because 0 + -0 is 0.
Expr identity(Op op, Type type) {
  if (is_float(type.dtype)) {
    const double inf = std::numeric_limits<double>::infinity();
    return constant(type, op == Op::add ? -0.0 : op == Op::min ? inf : -inf);
  }
  const int bits = 8 * size_of(type.dtype);
  const bool is_signed = is_signed_int(type.dtype);
  const uint64_t ones = ~uint64_t{0} >> (64 - bits);
  const int64_t high = static_cast<int64_t>(is_signed ? ones >> 1 : ones);
  const int64_t low = is_signed ? -high - 1 : 0;
  return const_int(type, op == Op::add ? 0 : op == Op::min ? high : low);
}

/// Scalars of reg buffers that the body touches only to update them in one way.
void find_reductions(const std::vector<Stmt>& body, std::vector<Reduction>& found) {
  struct Use {
    Buffer buffer;
    int loads = 0, updates = 0, stores = 0;
  };
  std::vector<Use> uses;
  const auto use = [&](const Buffer& b) -> Use& {
    for (Use& u : uses)
      if (u.buffer == b) return u;
    uses.push_back({b});
    return uses.back();
  };
  visit(
      body,
      [&](const StmtNode& s) {
        if (s.kind != StmtKind::store || s.buffer->space != Space::reg || s.buffer->type.dtype == DType::boolean)
          return;
        Use& u = use(s.buffer);
        ++u.stores;
        const bool fixed =
            std::all_of(s.indices.begin(), s.indices.end(), [](const Expr& i) { return i->op == Op::const_int; });
        const ExprNode* load = nullptr;
        const auto op = VectorBody::update_of(s, &load);
        if (!fixed || !op) return;
        for (const Reduction& r : found) {
          if (r.buffer != s.buffer || !std::equal(r.indices.begin(), r.indices.end(), s.indices.begin(), equal))
            continue;
          if (r.op == *op) ++u.updates;
          return;
        }
        ++u.updates;
        found.push_back({s.buffer, s.indices, *op, nullptr});
      },
      [&](const ExprNode& e) {
        if (e.op == Op::load && e.buffer->space == Space::reg) ++use(e.buffer).loads;
      });
  // Every store an update, every load the update's own.
  std::erase_if(found, [&](const Reduction& r) {
    const Use& u = use(r.buffer);
    return u.updates != u.stores || u.loads != u.updates;
  });
}

class Vectorizer {
 public:
  explicit Vectorizer(int vector_bytes) : vector_bytes_(vector_bytes) {}

  std::vector<Stmt> body(const std::vector<Stmt>& statements) {
    std::vector<Stmt> r;
    for (const Stmt& s : statements) {
      if (s->kind == StmtKind::loop && s->loop == LoopKind::vector) {
        std::vector<Stmt> out;
        if (vectorize(*s, out)) {
          r.insert(r.end(), out.begin(), out.end());
          continue;
        }
        StmtNode serial = *s;
        serial.loop = LoopKind::serial;
        serial.body = body(s->body);
        r.push_back(std::make_shared<const StmtNode>(std::move(serial)));
      } else {
        r.push_back(with_bodies(s, [&](const std::vector<Stmt>& inner) { return body(inner); }));
      }
    }
    return r;
  }

 private:
  int vector_bytes_;

  static void add(std::vector<Stmt>& out, StmtNode n) { out.push_back(std::make_shared<const StmtNode>(std::move(n))); }
  static void store(std::vector<Stmt>& out, const Buffer& buffer, std::vector<Expr> indices, Expr value) {
    StmtNode n{StmtKind::store};
    n.buffer = buffer;
    n.indices = std::move(indices);
    n.value = std::move(value);
    add(out, std::move(n));
  }

  bool vectorize(const StmtNode& loop, std::vector<Stmt>& out) {
    if (!is_simple(loop.body)) return false;
    const int most = std::min(vector_bytes_ / widest(loop.body), 64);
    if (most < 2) return false;
    std::vector<Reduction> reductions;
    find_reductions(loop.body, reductions);
    int lanes = most;
    const Expr trips = simplify(ceildiv(max(loop.end - loop.begin, 0), loop.step));
    const bool constant_trips = trips->op == Op::const_int;
    if (constant_trips && trips->int_value < most && reductions.empty())
      lanes = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(trips->int_value, 1))));

    for (Reduction& r : reductions) {
      const Type type = r.buffer->type.with_lanes(lanes);
      r.partial = make_buffer(r.buffer->name + "_lanes", type, {Expr(1)}, Space::reg);
      StmtNode alloc{StmtKind::alloc};
      alloc.buffer = r.partial;
      add(out, std::move(alloc));
      store(out, r.partial, {Expr(0)}, identity(r.op, type));
    }
    const Expr full = simplify(floordiv(trips, Expr(lanes)));  // whole vectors
    const Expr rest = simplify(trips % Expr(lanes));
    if (!whole_vectors(loop, full, lanes, reductions, out)) return false;
    const Expr start = simplify(loop.begin + full * Expr(loop.step * lanes));
    if (!remainder(loop, start, rest, lanes, reductions, out)) return false;
    for (const Reduction& r : reductions) {
      const Op op = r.op == Op::add ? Op::reduce_add : r.op == Op::min ? Op::reduce_min : Op::reduce_max;
      const Expr total = make(op, {load(r.partial, {0})});
      store(out, r.buffer, r.indices, make(r.op, {load(r.buffer, r.indices), total}));
    }
    return true;
  }

  static bool whole_vectors(const StmtNode& loop, const Expr& full, int lanes, const std::vector<Reduction>& reductions,
                            std::vector<Stmt>& out) {
    if (full.is_const_int(0)) return true;
    StmtNode n{StmtKind::loop};
    n.variable = make_var(loop.variable->name);
    n.begin = loop.begin;
    n.step = loop.step * lanes;
    n.end = simplify(loop.begin + full * Expr(n.step));
    VectorBody body(loop.variable, Expr(n.variable), loop.step, lanes, {}, reductions);
    if (!body.emit(loop.body, n.body)) return false;
    add(out, std::move(n));
    return true;
  }

  static bool remainder(const StmtNode& loop, const Expr& start, const Expr& rest, int lanes,
                        const std::vector<Reduction>& reductions, std::vector<Stmt>& out) {
    if (rest.is_const_int(0)) return true;
    // A known remainder is one narrower vector, without mask if it fills it.
    const bool known = rest->op == Op::const_int;
    if (known && reductions.empty()) lanes = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(rest->int_value)));
    StmtNode let{StmtKind::let};
    let.variable = make_var(loop.variable->name);
    let.value = start;
    const Expr first(let.variable);
    Expr mask;
    if (!rest.is_const_int(lanes)) mask = ramp(first, loop.step, lanes) < loop.end;
    std::vector<Stmt> statements;
    add(statements, std::move(let));
    if (mask) {
      StmtNode name{StmtKind::let};
      name.variable = make_var("mask", mask.type());
      name.value = mask;
      mask = Expr(name.variable);
      add(statements, std::move(name));
    }
    if (!VectorBody(loop.variable, first, loop.step, lanes, mask, reductions).emit(loop.body, statements)) return false;
    if (known) {
      out.insert(out.end(), statements.begin(), statements.end());
      return true;
    }
    StmtNode n{StmtKind::branch};
    n.value = Expr(int64_t{0}) < rest;
    n.body = std::move(statements);
    add(out, std::move(n));
    return true;
  }
};

}  // namespace

Kernel vectorize_loops(const Kernel& kernel, int vector_bytes) {
  CUVIL_CHECK(vector_bytes >= 2, "a vector has at least two bytes");
  Kernel r = kernel;
  Vectorizer vectorizer(vector_bytes);
  for (Phase& p : r.phases) p.body = vectorizer.body(p.body);
  return r;
}

}  // namespace cuvil::kernel
