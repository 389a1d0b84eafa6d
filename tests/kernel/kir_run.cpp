// kir-run: runs a kernel in text form by the interpreter, on raw files.
//   kir-run KERNEL.kir DIM=VALUE... PARAM=FILE...
// A parameter's file holds its elements as they lie in memory; it is written back unless the parameter is `in`. A file
// that does not exist is taken as zeros of the size that BYTES in PARAM=FILE:BYTES says.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/kernel/interpret.h"
#include "core/kernel/parse.h"

namespace {

std::vector<char> read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int run(int argc, char** argv) {
  using namespace cuvil::kernel;
  const std::vector<char> text = read(argv[1]);
  const Kernel kernel = parse({text.data(), text.size()});
  std::map<std::string, std::string> given;
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) cuvil::throw_model_error("expected NAME=VALUE, found '" + argument + "'");
    given[argument.substr(0, equals)] = argument.substr(equals + 1);
  }
  auto take = [&](const std::string& name) {
    if (!given.contains(name)) cuvil::throw_model_error("no value for " + name);
    return given[name];
  };
  std::vector<int64_t> dims;
  for (const Var& d : kernel.dims) dims.push_back(std::stoll(take(d->name)));
  std::vector<std::vector<char>> memory;
  std::vector<std::string> paths;
  std::vector<Argument> arguments;
  for (const Buffer& b : kernel.params) {
    std::string path = take(b->name);
    size_t bytes = 0;
    if (const size_t colon = path.rfind(':'); colon != std::string::npos) {
      bytes = std::stoull(path.substr(colon + 1));
      path.resize(colon);
    }
    memory.push_back(read(path));
    if (bytes) memory.back().resize(bytes);
    paths.push_back(path);
  }
  for (auto& m : memory) arguments.push_back({m.data(), static_cast<int64_t>(m.size())});
  const int32_t code = interpret(kernel, arguments, dims);
  for (size_t i = 0; i < memory.size(); ++i)
    if (kernel.params[i]->access != Access::in)
      std::ofstream(paths[i], std::ios::binary).write(memory[i].data(), static_cast<std::streamsize>(memory[i].size()));
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: kir-run KERNEL.kir DIM=VALUE... PARAM=FILE[:BYTES]...\n");
    return 2;
  }
  try {
    const int code = run(argc, argv);
    if (code) std::fprintf(stderr, "kir-run: the kernel failed with code %d\n", code);
    return code ? 1 : 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kir-run: %s\n", e.what());
    return 2;
  }
}
