// The text form: round trips, canonical text, messages of the parser.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/ir/graph.h"

namespace cuvil::ir {
namespace {

std::string again(const std::string& text) { return print(parse(text)); }

std::string error_of(std::string_view text, std::string source = "") {
  try {
    parse(text, std::move(source));
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), CUVIL_MODEL_ERROR) << e.what();
    return e.what();
  }
  return "no error";
}

TEST(Text, Canonical) {
  const std::string text =
      R"(graph @main(%x: f32[N, 3, 2*H, ceildiv(H, 16)], %"odd name": i64[] = dense<i64[], [7]>) -> (prob = %y, %x, "a b" = %h) source("resnet.onnx") {
  %w = Constant() {value = dense<f32[2, 2], [1.0, -0.0, 1e-05, inf]>} : f32[2, 2]
  %h, %z = Two(%x, _, %w) {groups = 1, pads = [3, -3]} : f32[N, 3; aB16b], bool[] loc("net.py":12 in "forward" module "layer1.conv2" 'h')
  Sink(%z)
  %y = Fused(%h, %x) { (%p0: f32[N, 3; aB16b], %p1: f32[N])
    %q = Neg(%p0) : f32[N, 3; aB16b]
    yield %q
  } : f32[N, 3; aB16b] loc('only_a_name')
}
)";
  EXPECT_EQ(again(text), text);
}

TEST(Text, EveryKindOfAttribute) {
  const std::string good = R"(graph @main(%n: f32[N]) -> () {
  %y = Op() {d = f32, empty = [], f = 2.0, g = [1.0, nan, -inf], h = reals[], i = -9223372036854775808, l = layout("aBcd16b"), l2 = layout(""), l3 = layout("bac"), "odd key" = 1, s = "a\"\\\n\t\x01é", sh = shape[N, 3], sh0 = shape[], ss = ["a", "b"], ss0 = strings[], t = dense<bool[2], [true, false]>} : f32[1, 2, 3, 4]
}
)";
  EXPECT_EQ(again(good), good);
}

TEST(Text, ConstantsOfAllTypes) {
  for (const char* body :
       {"f32[3], [1.0, 0.1, -2.5]", "f64[1], [0.1]", "f16[2], [65504.0, 5.9604645e-08]", "bf16[1], [3.140625]",
        "i64[2], [-9223372036854775808, 9223372036854775807]", "u64[1], [18446744073709551615]", "i32[1], [-5]",
        "i16[1], [-32768]", "i8[1], [-128]", "u8[1], [255]", "u16[1], [65535]", "u32[1], [4294967295]", "f32[], [7.0]",
        "f32[0], []", "f32[1], 0x0100c07f", "bool[1], [7]"}) {
    const std::string text =
        std::string("graph @main() -> () {\n  %c = Constant() {value = dense<") + body + ">} : f32[]\n}\n";
    EXPECT_EQ(again(text), text);
  }
}

TEST(Text, BigConstantsAreHexOrAHash) {
  Graph g;
  const Tensor t = Tensor::from_floats({17}, std::vector<float>(17, 1.5f));
  g.create("Constant", {}, {{"value", t}}, {t.type});
  const std::string full = print(g), brief = print(g, false);
  EXPECT_NE(full.find("dense<f32[17], 0x0000c03f0000c03f"), std::string::npos) << full;
  EXPECT_TRUE(equal(parse(full).body.nodes.front()->attr<Tensor>("value"), t));
  EXPECT_NE(brief.find("dense<f32[17], #"), std::string::npos) << brief;
  EXPECT_EQ(error_of(brief),
            "CIR text:2:43: this constant was printed without its values; print the graph in full to read it back");
}

TEST(Text, CommentsAndSpaceAreFree) {
  EXPECT_EQ(again("// first\ngraph@main(%x:f32[ N ,2 ])->(%y){%y=Neg(%x):f32[N,2]// last\n}\n//"),
            "graph @main(%x: f32[N, 2]) -> (%y) {\n  %y = Neg(%x) : f32[N, 2]\n}\n");
}

TEST(Text, NamesWithAnyBytes) {
  Graph g("a\"b");
  Value* v = g.add_input(std::string("\0\xff//x%", 7), {DType::f32, {}, {}});
  g.add_output("1 = %y, )", v);
  const std::string text = print(g);
  EXPECT_EQ(again(text), text);
  EXPECT_EQ(parse(text).body.params[0]->name, v->name);
}

TEST(Text, RegionsMayReadOuterValues) {
  const std::string text = R"(graph @main(%x: f32[]) -> (%y) {
  %y = If(%x) { ()
    %a = Neg(%x) : f32[]
    yield %a
  } { ()
    yield %x
  } : f32[]
}
)";
  EXPECT_EQ(again(text), text);
}

TEST(Text, Errors) {
  EXPECT_EQ(error_of(""), "CIR text:1:1: expected 'graph', found the end of the text");
  EXPECT_EQ(error_of("grahp", "m.cir"), "m.cir:1:1: expected 'graph', found 'grahp'");
  const auto body = [](const std::string& b) { return error_of("graph @main(%x: f32[N]) -> (%x) {\n" + b + "\n}"); };
  EXPECT_EQ(body("%y = Neg(%z) : f32[N]"), "CIR text:2:10: value %z is used but not defined above");
  EXPECT_EQ(body("%x = Neg(%x) : f32[N]"), "CIR text:3:1: value %x is defined twice");
  EXPECT_EQ(body("%y = Neg(%x)"), "CIR text:2:6: Neg defines 1 values, but 0 types are written behind it");
  EXPECT_EQ(body("%y = Neg(%x) : f31[N]"), "CIR text:2:16: there is no element type 'f31'");
  EXPECT_EQ(body("%y = Neg(%x) : f32[N/2]"), "CIR text:2:20: expected a size, like 3, N or 2*N+1, found 'N/2'");
  EXPECT_EQ(body("%y = Neg(%x) : f32[M]"),
            "CIR text:3:2: this is no valid graph: 'y' has a size of M, which occurs in no input of the graph and is "
            "set by no node before");
  EXPECT_EQ(body("%y = Neg(%x) : f32[N; aB]"), "CIR text:2:23: 'aB' is no layout of a tensor of rank 1");
  EXPECT_EQ(body("Op() {a = 1, a = 2}"), "CIR text:2:14: attribute a is given twice");
  EXPECT_EQ(body("Op() {a = [1, 2.0]}"), "CIR text:2:12: a list holds integers or reals, not both");
  EXPECT_EQ(body("Op() {a = 99999999999999999999}"), "CIR text:2:11: '99999999999999999999' is no integer of 64 bits");
  EXPECT_EQ(body("Op() {a = blue}"), "CIR text:2:11: expected an attribute's value, found 'blue'");
  EXPECT_EQ(body("Op() {a = \"x}"), "CIR text:2:11: this string has no end");
  EXPECT_EQ(body("Op() {a = dense<f32[2], [1.0]>}"),
            "CIR text:2:25: a constant of type f32[2] has 2 elements in memory, given are 1");
  EXPECT_EQ(body("Op() {a = dense<u8[1], [256]>}"), "CIR text:2:25: 256 is out of the range of u8");
  EXPECT_EQ(body("Op() {a = dense<f32[N], [1.0]>}"), "CIR text:2:17: a constant's type must have known sizes");
  EXPECT_EQ(body("%y = If() { () %a = Neg(%x) : f32[N] yield %a } : f32[N] Op(%a)"),
            "CIR text:2:61: value %a is not visible outside of its region");
  EXPECT_EQ(error_of("graph @main() -> (%nothing) {}"), "CIR text:1:19: value %nothing is used but not defined above");
}

TEST(Text, HostileInput) {
  std::string deep = "graph @main() -> () {";
  for (int i = 0; i < 100000; ++i) deep += "A() { () ";
  EXPECT_NE(error_of(deep).find("regions are nested more than 32 deep"), std::string::npos);
  const auto attribute = [](const std::string& a) { return error_of("graph @main() -> () { A() {a = " + a + "} }"); };
  EXPECT_NE(attribute(std::string(100000, '[')), "no error");
  EXPECT_NE(attribute("dense<f32[9000000000000000000, 9000000000000000000], 0x00>"), "no error");
  EXPECT_NE(attribute("dense<f32[1000000000000], 0x00>"), "no error");
  EXPECT_NE(attribute("dense<f32[-1], []>"), "no error");
  EXPECT_NE(attribute("shape[" + std::string(100000, '(')), "no error");
  EXPECT_NE(error_of("graph @main(%x: f32[9223372036854775807*N*N*9223372036854775807]) -> () {}"), "no error");
}

TEST(Text, TruncatedAnywhereIsAnError) {
  const std::string text = R"(graph @main(%x: f32[N, 3]) -> (prob = %y) source("m") {
  %w = Constant() {value = dense<f32[2], [1.0, -0.5]>} : f32[2]
  %y = Fused(%x, %w) {a = [1], l = layout("aB16b")} { (%p: f32[N, 3], %q: f32[2])
    yield %p
  } : f32[N, 3; aB16b] loc("f":3 in "g" module "m" 'v')
})";
  ASSERT_EQ(error_of(text), "no error");
  for (size_t n = 0; n < text.size(); ++n) EXPECT_NE(error_of(text.substr(0, n)), "no error") << n;
}

}  // namespace
}  // namespace cuvil::ir
