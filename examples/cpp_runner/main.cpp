// Runs a .cvl from C++: inputs from .npy files, the first output to one, and the time it takes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "cuvil/cuvil.hpp"

namespace {

constexpr char kHelp[] =
    R"(usage: cpp_runner MODEL.cvl [--input NAME=FILE.npy ...] [--output FILE.npy] [--repeat N] [--threads N]

  --input NAME=FILE.npy   an input, little-endian in C order; without one, floats are random, integers 1, open dimensions 1
  --output FILE.npy       write the first output there
  --repeat N              timed runs after the first; default 20
  --threads N             threads to run on; 0, the default: CUVIL_NUM_THREADS, or all that this process may use
  --help                  this text
)";

/// Arguments that cannot be understood.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Array {
  std::vector<unsigned char> bytes;
  DLDataType dtype{};
  std::vector<int64_t> shape;
};

/// Element types as numpy writes them.
constexpr struct {
  const char* name;
  DLDataType dtype;
} kTypes[] = {
    {"<f4", {kDLFloat, 32, 1}}, {"<f8", {kDLFloat, 64, 1}}, {"<f2", {kDLFloat, 16, 1}}, {"<i8", {kDLInt, 64, 1}},
    {"<i4", {kDLInt, 32, 1}},   {"<i2", {kDLInt, 16, 1}},   {"|i1", {kDLInt, 8, 1}},    {"<u8", {kDLUInt, 64, 1}},
    {"<u4", {kDLUInt, 32, 1}},  {"<u2", {kDLUInt, 16, 1}},  {"|u1", {kDLUInt, 8, 1}},   {"|b1", {kDLBool, 8, 1}},
};

/// Source of the format: numpy.lib.format, versions 1 to 3.
Array read_npy(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (bytes.size() < 12 || bytes.compare(0, 6, "\x93NUMPY") != 0) throw std::runtime_error(path + ": no .npy file");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  const bool first_version = bytes[6] == 1;
  const size_t start = first_version ? 10 : 12;
  const size_t length = byte(8) | byte(9) << 8 | (first_version ? 0 : byte(10) << 16 | byte(11) << 24);
  if (length > bytes.size() - start) throw std::runtime_error(path + ": is cut short");
  const std::string header = bytes.substr(start, length);
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) {
    return header.find("'" + std::string(t.name) + "'") != std::string::npos;
  });
  if (type == std::end(kTypes) || header.find("'fortran_order': False") == std::string::npos)
    throw std::runtime_error(path + ": is not of little-endian numbers in C order");
  Array array;
  array.dtype = type->dtype;
  const size_t element = type->dtype.bits / 8U, room = (bytes.size() - start - length) / element;
  size_t count = 1, at = header.find('('), end = header.find(')');
  if (at == std::string::npos || end == std::string::npos) throw std::runtime_error(path + ": has no shape");
  while ((at = header.find_first_of("0123456789", at)) < end) {
    size_t used = 0;
    const size_t extent = std::stoull(header.substr(at, end - at), &used);
    if (extent > room || count * extent > room) throw std::runtime_error(path + ": is cut short");
    array.shape.push_back(static_cast<int64_t>(extent));
    count *= extent;
    at += used;
  }
  if (count > room) throw std::runtime_error(path + ": is cut short");
  array.bytes.resize(count * element);
  std::memcpy(array.bytes.data(), bytes.data() + start + length, array.bytes.size());
  return array;
}

bool same(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

void write_npy(const std::string& path, const cuvil::Tensor& tensor) {
  const auto type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return same(t.dtype, tensor.dtype()); });
  if (type == std::end(kTypes)) throw std::runtime_error(path + ": numpy has no such element type");
  std::string shape;
  for (int64_t d : tensor.shape()) shape += std::to_string(d) + ", ";
  std::string header =
      std::string("{'descr': '") + type->name + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.append(63 - (10 + header.size()) % 64, ' ') += '\n';
  std::ofstream out(path, std::ios::binary);
  out.write("\x93NUMPY\x01\x00", 8);
  out.put(static_cast<char>(header.size() & 0xFF)).put(static_cast<char>(header.size() >> 8)) << header;
  out.write(static_cast<const char*>(tensor.raw()), tensor.size() * (type->dtype.bits / 8));
  if (!out.flush()) throw std::runtime_error(path + ": cannot be written");
}

/// Floats from a normal distribution; integers and truth values are 1: valid as indices and as masks.
Array random_array(const cuvil_tensor_info& info) {
  Array array;
  size_t count = 1;
  for (int i = 0; i < info.ndim; ++i) {
    array.shape.push_back(info.dims[i] < 0 ? 1 : info.dims[i]);
    count *= static_cast<size_t>(array.shape.back());
  }
  if (info.dtype == CUVIL_F32) {
    array.dtype = {kDLFloat, 32, 1};
    std::mt19937 generator(0);
    std::normal_distribution<float> normal;
    array.bytes.resize(count * sizeof(float));
    for (size_t i = 0; i < count; ++i) {
      const float value = normal(generator);
      std::memcpy(&array.bytes[i * sizeof(float)], &value, sizeof(float));
    }
    return array;
  }
  if (info.dtype < CUVIL_I64)
    throw std::runtime_error(std::string("input '") + info.name + "' is " + cuvil_dtype_name(info.dtype) +
                             ": give it with --input");
  const size_t element = cuvil_dtype_size(info.dtype);
  array.dtype = {static_cast<uint8_t>(info.dtype == CUVIL_BOOL ? kDLBool
                                      : info.dtype < CUVIL_U64 ? kDLInt
                                                               : kDLUInt),
                 static_cast<uint8_t>(8 * element), 1};
  array.bytes.resize(count * element);
  for (size_t i = 0; i < count; ++i) array.bytes[i * element] = 1;
  return array;
}

struct Options {
  std::string model, output;
  std::map<std::string, std::string> inputs;
  int repeat = 20, threads = 0;
  bool help = false;
};

int read_count(const std::string& option, const std::string& word) {
  if (word.empty() || word.size() > 6 || word.find_first_not_of("0123456789") != std::string::npos)
    throw UsageError("a number belongs after " + option);
  return std::stoi(word);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool takes_value = word == "--input" || word == "--output" || word == "--repeat" || word == "--threads";
    if (takes_value && i + 1 == argc) throw UsageError(word + " needs a value");
    const std::string value = takes_value ? argv[++i] : "";
    const size_t equals = value.find('=');
    if (word == "--help" || word == "-h")
      options.help = true;
    else if (word == "--output")
      options.output = value;
    else if (word == "--repeat")
      options.repeat = read_count(word, value);
    else if (word == "--threads")
      options.threads = read_count(word, value);
    else if (word == "--input" && equals != std::string::npos)
      options.inputs[value.substr(0, equals)] = value.substr(equals + 1);
    else if (options.model.empty() && !takes_value && word[0] != '-')
      options.model = word;
    else
      throw UsageError("cannot understand '" + word + (takes_value ? " " + value : "") + "'");
  }
  if (options.model.empty() && !options.help) throw UsageError("which MODEL.cvl?");
  return options;
}

void run(const Options& options) {
  using Clock = std::chrono::steady_clock;
  const auto ms = [](Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  const auto start = Clock::now();
  const cuvil::Model model = cuvil::Model::open(options.model);
  cuvil::Context context(model, options.threads);
  const auto opened = Clock::now();

  std::vector<Array> arrays;
  for (size_t i = 0; i < model.input_count(); ++i) {
    const auto given = options.inputs.find(model.input(i).name);
    arrays.push_back(given == options.inputs.end() ? random_array(model.input(i)) : read_npy(given->second));
  }
  std::vector<cuvil::View> inputs;
  for (Array& a : arrays) inputs.emplace_back(a.bytes.data(), a.dtype, a.shape);

  const auto before = Clock::now();
  std::vector<cuvil::Tensor> outputs = context.run(inputs);
  const auto after = Clock::now();
  std::vector<double> times;
  for (int i = 0; i < options.repeat; ++i) {
    const auto then = Clock::now();
    outputs = context.run(inputs);
    times.push_back(ms(Clock::now() - then));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::printf("%s [", model.output(i).name);
    for (int64_t d : outputs[i].shape()) std::printf(" %lld", static_cast<long long>(d));
    std::printf(" ]");
    if (model.output(i).dtype == CUVIL_F32)
      for (int64_t k = 0; k < outputs[i].size() && k < 5; ++k)
        std::printf(" %g", static_cast<double>(outputs[i].data<float>()[k]));
    std::printf("\n");
  }
  if (!options.output.empty() && !outputs.empty()) write_npy(options.output, outputs[0]);
  std::printf("open %.2f ms, open to first output %.2f ms", ms(opened - start), ms(opened - start + (after - before)));
  std::sort(times.begin(), times.end());
  if (!times.empty())
    std::printf(", then %.3f ms (median of %zu), %d threads", times[times.size() / 2], times.size(),
                cuvil_context_threads(context.get()));
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = parse(argc, argv);
  if (options.help)
    std::fputs(kHelp, stdout);
  else
    run(options);
  return 0;
} catch (const UsageError& error) {
  std::fprintf(stderr, "cpp_runner: %s\n\n%s", error.what(), kHelp);
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
