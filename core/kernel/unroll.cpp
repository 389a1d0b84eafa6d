#include "core/base/error.h"
#include "core/kernel/copy.h"
#include "core/kernel/transform.h"

namespace cuvil::kernel {
namespace {

// Code grows with the copies: past this, a schedule has made a mistake.
constexpr int64_t kMaxCopies = 4096;

class Unroller {
 public:
  explicit Unroller(const Kernel& kernel) : kernel_(kernel) {}

  std::vector<Stmt> body(const std::vector<Stmt>& statements) {
    std::vector<Stmt> r;
    for (const Stmt& s : statements) {
      if (s->kind == StmtKind::loop && s->loop == LoopKind::unroll) {
        copies(*s, r);
      } else {
        r.push_back(with_bodies(s, [&](const std::vector<Stmt>& inner) { return body(inner); }));
      }
    }
    return r;
  }

 private:
  const Kernel& kernel_;

  void copies(const StmtNode& loop, std::vector<Stmt>& out) {
    const Expr begin = simplify(loop.begin);
    const Expr trips = simplify(loop.end - loop.begin);
    const std::string where = "kernel " + kernel_.name + ", unroll loop " + loop.variable->name + ": ";
    CUVIL_CHECK(trips->op == Op::const_int, where + "the extent is not constant");
    CUVIL_CHECK(trips->int_value <= kMaxCopies * loop.step, where + "too many copies");
    // Inner loops are unrolled per copy: their bounds may be constant only once this variable is.
    for (int64_t i = 0; i < trips->int_value; i += loop.step) {
      Copier copier;
      copier.replace(loop.variable, simplify(begin + i));
      std::vector<Stmt> copy = body(copier.copy(loop.body));
      if (allocates_scratch(copy)) {
        // In a body of its own, so that the copies share the memory that scratch_bytes() counts once.
        StmtNode block{StmtKind::block};
        block.body = std::move(copy);
        out.push_back(std::make_shared<const StmtNode>(std::move(block)));
      } else {
        for (Stmt& s : copy) out.push_back(std::move(s));
      }
    }
  }
};

}  // namespace

Kernel unroll_loops(const Kernel& kernel) {
  Kernel r = kernel;
  Unroller unroller(kernel);
  for (Phase& p : r.phases) p.body = unroller.body(p.body);
  return r;
}

}  // namespace cuvil::kernel
