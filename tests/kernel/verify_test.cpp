// Every rule of the verifier has a kernel that breaks it.
#include "core/kernel/verify.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/kernel/parse.h"

namespace cuvil::kernel {
namespace {

std::string error_of(const Kernel& k) {
  try {
    verify(k);
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), CUVIL_INTERNAL_ERROR);
    return e.what();
  }
  return "(no error)";
}
void expect_broken(const Kernel& k, const std::string& rule) {
  EXPECT_NE(error_of(k).find(rule), std::string::npos) << error_of(k);
}
Kernel in_body(const std::string& statements) {
  return parse("kernel @k<%N>(%a: f32[%N, 16] in, %c: f32[%N] out) { phase %t in 0 .. %N {" + statements + "} }");
}
Kernel with(StmtNode s) {
  Kernel k = in_body("");
  k.phases[0].body.push_back(std::make_shared<const StmtNode>(std::move(s)));
  return k;
}
StmtNode let(const Expr& value) {
  StmtNode n{StmtKind::let};
  n.variable = make_var("x", value.type());
  n.value = value;
  return n;
}
Expr raw(ExprNode n) { return Expr(std::make_shared<const ExprNode>(std::move(n))); }

TEST(Verify, AcceptsWhatIsRight) {
  EXPECT_EQ(error_of(in_body("for %i in 0 .. 4 unroll { for %j in %i .. 4 unroll { %c[%t] = 1.0 } }")), "(no error)");
  EXPECT_EQ(error_of(in_body(R"(alloc %s: f32[8] shared
    for %y in 0 .. 2 gpu_thread_y { for %x in 0 .. 4 gpu_thread_x {
      alloc %r: f32[1] reg
      for %k in 0 .. %N { %s[%x] = 1.0 barrier %r[0] = %s[%y] barrier } } })")),
            "(no error)");
}

TEST(Verify, TheErrorNamesKernelAndPlace) {
  expect_broken(in_body("for %k in 0 .. %N { if %k > 2 { %a[0, 0] = 1.0 } }"),
                "kernel k, phase 0 > loop k > branch > store to a: ");
}

TEST(Verify, Heads) {
  Kernel k = in_body("");
  k.name = "Bad name";
  expect_broken(k, "a kernel's name is made of");
  k = in_body("");
  k.dims[0] = make_var("N", {DType::i32, 1});
  expect_broken(k, "a dim is an i64 scalar");
  k = in_body("");
  k.dims.push_back(k.dims[0]);
  expect_broken(k, "variable N is bound where it is visible already");
  k = in_body("");
  k.params.push_back(make_buffer("x", {DType::f32, 1}, {4}, Space::scratch));
  expect_broken(k, "parameter x is in global memory");
  k = in_body("");
  k.params.push_back(make_buffer("x", {DType::f32, 4}, {4}, Space::global));
  expect_broken(k, "only reg holds vectors");
  k = in_body("");
  k.params.push_back(make_buffer("x", {DType::f32, 1}, {4, 4}, Space::global, Access::in, {Expr(1)}));
  expect_broken(k, "one stride per dimension");
  k = in_body("");
  k.params.push_back(k.params[0]);
  expect_broken(k, "buffer a is declared where it is visible already");
  k = in_body("");
  k.phases[0].tasks = load(k.params[0], {0, 0});
  expect_broken(k, "the number of tasks is an i64 scalar");
  k = in_body("");
  k.phases[0].tasks = cast(kIndex, load(k.params[0], {0, 0}));
  expect_broken(k, "the number of tasks is made of constants and dims");
}

TEST(Verify, Scopes) {
  const Var stranger = make_var("stranger");
  expect_broken(with(let(Expr(stranger))), "variable stranger is not visible here");
  expect_broken(with(let(load(make_buffer("b", {DType::f32, 1}, {4}, Space::scratch), {0}))),
                "buffer b is not visible here");
  Kernel k = in_body("");
  StmtNode first = let(1);
  StmtNode again = let(2);
  again.variable = first.variable;
  k.phases[0].body = {std::make_shared<const StmtNode>(first), std::make_shared<const StmtNode>(again)};
  expect_broken(k, "variable x is bound where it is visible already");
  // A let ends with its body.
  StmtNode block{StmtKind::block};
  block.body = {std::make_shared<const StmtNode>(first)};
  k.phases[0].body = {std::make_shared<const StmtNode>(block),
                      std::make_shared<const StmtNode>(let(Expr(first.variable)))};
  expect_broken(k, "variable x is not visible here");
}

TEST(Verify, Statements) {
  StmtNode wrong = let(1);
  wrong.variable = make_var("x", {DType::f32, 1});
  expect_broken(with(wrong), "a let's variable has its value's type");
  StmtNode loop{StmtKind::loop};
  loop.variable = make_var("i");
  loop.begin = 0;
  loop.end = 4;
  loop.step = 0;
  expect_broken(with(loop), "a loop's step is positive");
  loop.step = 1;
  loop.end = const_int({DType::i32, 1}, 4);
  expect_broken(with(loop), "a loop's end is an i64 scalar");
  loop.end = {};
  expect_broken(with(loop), "a loop's end is an i64 scalar");
  StmtNode fail{StmtKind::fail};
  expect_broken(with(fail), "a fail code is not 0");
  fail.code = int64_t{1} << 40;
  expect_broken(with(fail), "a fail code is not 0 and fits 32 bits");
  StmtNode branch{StmtKind::branch};
  branch.value = 1;
  expect_broken(with(branch), "a branch's condition is a scalar bool");
  StmtNode prefetch{StmtKind::prefetch};
  prefetch.buffer = in_body("").params[0];
  expect_broken(with(prefetch), "the buffer is not visible here");
  expect_broken(in_body("alloc %r: f32[2] reg prefetch %r[0] level 1"), "a prefetch is of memory, not of reg");
  expect_broken(in_body("%a[0, 0] = 1.0"), "nothing is stored to an `in` parameter");
  expect_broken(in_body("alloc %r: f32[%N] reg"), "a reg extent is constant");
  expect_broken(in_body("alloc %r: f32[%t] scratch"), "an extent is made of constants and dims");
  StmtNode alloc{StmtKind::alloc};
  alloc.buffer = make_buffer("g", {DType::f32, 1}, {4}, Space::global);
  expect_broken(with(alloc), "an alloc is in scratch, reg or shared memory");
}

TEST(Verify, Loops) {
  expect_broken(in_body("for %i in 0 .. %N unroll { }"), "an unroll loop's bound is made of");
  expect_broken(in_body("for %i in 0 .. %N vector { for %j in 0 .. 2 { } }"), "a vector loop holds no loop");
  expect_broken(in_body("for %i in 0 .. %N vector { fail 1 }"), "a vector loop holds no loop");
  expect_broken(in_body("for %i in 0 .. %N vector { %c[0] = reduce_add(%a[%i, 0 : 16]) }"),
                "a vector loop computes scalars");
}

TEST(Verify, Threads) {
  expect_broken(in_body("for %x in 0 .. %N gpu_thread_x { }"), "runs from 0 by 1 to a constant");
  expect_broken(in_body("for %x in 0 .. 4 gpu_thread_x { for %y in 0 .. 4 gpu_thread_x { } }"),
                "occurs once in a nest");
  expect_broken(in_body("for %x in 0 .. 4 gpu_thread_x { alloc %s: f32[4] shared }"), "allocates only reg");
  expect_broken(in_body("alloc %r: f32[1] reg for %x in 0 .. 4 gpu_thread_x { %r[0] = 1.0 }"),
                "its own reg buffers only");
  expect_broken(in_body("alloc %s: f32[1] scratch for %x in 0 .. 4 gpu_thread_x { %s[0] = 1.0 }"), "not scratch");
  expect_broken(in_body("for %x in 0 .. 4 gpu_thread_x { if %x > 1 { barrier } }"), "reached by all threads alike");
  expect_broken(in_body("for %x in 0 .. 4 gpu_thread_x { for %k in 0 .. %x { barrier } }"),
                "reached by all threads alike");
  expect_broken(in_body("for %x in 0 .. 4 gpu_thread_x { let %n = %x + 1 for %k in 0 .. %n { barrier } }"),
                "reached by all threads alike");
  expect_broken(in_body("for %x in 0 .. 4 gpu_thread_x { { for %y in 0 .. 4 gpu_thread_y { barrier } } }"),
                "nest directly");
}

TEST(Verify, Expressions) {
  const Expr x = broadcast(const_float({DType::f32, 1}, 1), 4), one(1);
  auto broken = [](ExprNode n, const char* rule) { expect_broken(with(let(raw(std::move(n)))), rule); };
  broken({Op::add, kIndex, {one}}, "add with 1 operands");
  broken({Op::add, kIndex, {one, Expr()}}, "an operand is missing");
  broken({Op::add, kIndex, {one, const_int(kBool, 1)}}, "operands of add differ");
  broken({Op::add, {DType::i32, 1}, {one, one}}, "add of i64 has type i32");
  broken({Op::sqrt, kIndex, {one}}, "sqrt is not defined for i64");
  broken({Op::add, kBool, {const_int(kBool, 1), const_int(kBool, 1)}}, "add is not defined for bool");
  broken({Op::bit_and, {DType::f32, 4}, {x, x}}, "bit_and is not defined for f32x4");
  broken({Op::lt, kIndex, {one, one}}, "lt of i64 has type i64");
  broken({Op::select, kIndex, {one, one, one}}, "the condition of a select");
  broken({Op::broadcast, {DType::f32, 8}, {x}}, "broadcast from f32x4 to f32x8");
  broken({Op::broadcast, {DType::i64, 65}, {one}}, "1 to 64 lanes, not 65");
  broken({Op::ramp, {DType::i32, 4}, {one, one}}, "ramp makes an i64 vector");
  broken({Op::lane, {DType::f32, 1}, {x}, 4}, "lane 4 of f32x4");
  broken({Op::reduce_add, {DType::f32, 4}, {x}}, "reduce_add from f32x4");
  broken({Op::cast, {DType::i32, 1}, {x}}, "cast keeps the number of lanes");
  broken({Op::bitcast, {DType::i64, 1}, {x}}, "bitcast from f32x4 to i64");
  broken({Op::dot, {DType::f32, 4}, {x, x, x}}, "dot(f32x4, f32x4, f32x4)");
  broken({Op::const_int, {DType::i8, 1}, {}, 300}, "a constant that i8 cannot hold");
  broken({Op::const_int, {DType::f32, 1}, {}, 1}, "const_int of type f32");
  ExprNode shuffle{Op::shuffle, {DType::f32, 2}, {x}};
  shuffle.lanes = {0, 4};
  broken(shuffle, "shuffle picks lane 4");
  ExprNode load{Op::load, {DType::f32, 1}, {one}};
  load.buffer = in_body("").params[0];
  broken(load, "has 2 dimensions and 1 indices");
}

TEST(Verify, Accesses) {
  Kernel k = parse("kernel @k(%a: f32[8, 8] in strides [1, 8]) { phase %t in 0 .. 1 { let %x = %a[0, 0] } }");
  verify(k);
  k.phases[0].body = {std::make_shared<const StmtNode>(let(load(k.params[0], {0, 0}, 4)))};
  expect_broken(k, "a vector needs stride 1");
  k = in_body("");
  k.phases[0].body = {
      std::make_shared<const StmtNode>(let(load(k.params[0], {0, 0}, 4, const_int({DType::i32, 1}, 1))))};
  expect_broken(k, "the mask of a value of type f32x4 is i32x4");
}

}  // namespace
}  // namespace cuvil::kernel
