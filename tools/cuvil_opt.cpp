// cuvil-opt: text CIR through named passes, and back to text.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/passes/run.h"

namespace {

constexpr char kHelp[] = R"(usage: cuvil-opt [OPTION]... FILE

Reads a graph in CIR's text form (docs/cir.md) from FILE, or from standard input if FILE is "-",
runs passes over it, and prints it.

  --passes=NAME,NAME   passes to run, in this order; none by default
  --pipeline           all passes, in the compiler's order
  --list               list the passes and stop
  --target=NAME        machine that layouts are chosen for: host (default), x86-64-v3, x86-64-v4, aarch64, ...
  --strict             strict numerics: no rewrite that changes rounding
  --verify-each        check the graph after every pass
  --brief              large constants as a hash; the result cannot be read back
  --help               this text

example: echo 'graph @main(%x: f32[N]) -> (%y) { %a = Neg(%x) : f32[N]  %y = Exp(%a) : f32[N] }' |
           cuvil-opt --passes=fuse_elementwise -
)";

struct Options {
  std::string passes, target = "host", file;
  bool strict = false, verify = false, brief = false;
};

int usage_error(const std::string& message) {
  std::fprintf(stderr, "cuvil-opt: %s\nTry cuvil-opt --help.\n", message.c_str());
  return 2;
}

void list_passes() {
  for (const cuvil::passes::Pass& p : cuvil::passes::all())
    std::printf("%-34s %s\n", std::string(p.name).c_str(), std::string(p.doc).c_str());
}

int run(const Options& o) {
  std::string text;
  if (o.file == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    std::ifstream in(o.file, std::ios::binary);
    if (!in) return usage_error("cannot read '" + o.file + "'");
    try {
      text.assign(std::istreambuf_iterator<char>(in), {});
    } catch (const std::ios_base::failure&) {  // a folder opens, and then cannot be read
      return usage_error("cannot read '" + o.file + "'");
    }
  }
  const cuvil::TargetInfo target = o.target == "host" ? cuvil::TargetInfo::host() : cuvil::TargetInfo::named(o.target);
  cuvil::ir::Graph graph = cuvil::passes::read(text, o.file == "-" ? "standard input" : o.file);
  graph = cuvil::passes::run_named(std::move(graph), o.passes, {target, o.strict}, o.verify);
  std::fputs(cuvil::ir::print(graph, !o.brief).c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    const auto value = [&](const std::string& name) -> std::optional<std::string> {
      if (a.rfind(name + "=", 0) != 0) return std::nullopt;
      return a.substr(name.size() + 1);
    };
    if (a == "--help" || a == "-h") {
      std::fputs(kHelp, stdout);
      return 0;
    }
    if (a == "--list") {
      list_passes();
      return 0;
    }
    if (a == "--pipeline")
      o.passes = "all";
    else if (a == "--strict")
      o.strict = true;
    else if (a == "--verify-each")
      o.verify = true;
    else if (a == "--brief")
      o.brief = true;
    else if (auto names = value("--passes"))
      o.passes = *names;
    else if (auto target = value("--target"))
      o.target = *target;
    else if (a != "-" && a.rfind('-', 0) == 0)
      return usage_error("unknown option '" + a + "'");
    else if (!o.file.empty())
      return usage_error("more than one FILE");
    else
      o.file = a;
  }
  if (o.file.empty()) return usage_error("which FILE?");
  try {
    return run(o);
  } catch (const cuvil::Error& e) {
    std::fprintf(stderr, "cuvil-opt: %s\n", e.what());
    return 1;
  }
}
