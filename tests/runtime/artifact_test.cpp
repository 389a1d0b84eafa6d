#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/abi/cpu_features.h"
#include "core/abi/hash.h"
#include "core/base/error.h"
#include "tests/runtime/program_builder.h"

namespace cuvil::testing {
namespace {

/// A file's bytes at an aligned address, as the loader wants them.
class Image {
 public:
  explicit Image(const std::vector<uint8_t>& bytes) : Image(bytes, bytes.size()) {}
  Image(const std::vector<uint8_t>& bytes, size_t n) : bytes_(n) {
    data_ = static_cast<uint8_t*>(std::aligned_alloc(4096, (n + 4096) / 4096 * 4096));
    std::memcpy(data_, bytes.data(), n);
  }
  ~Image() { std::free(data_); }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  uint8_t* data() { return data_; }
  size_t size() const { return bytes_; }

  cuvil_status open(cuvil_model** model, const cuvil_open_options* options = nullptr) {
    return cuvil_open_memory(data_, bytes_, options, model);
  }
  /// Makes header and checksums fit the bytes again, so that a change gets past them.
  void reseal() {
    cvl::Header header;
    if (bytes_ < sizeof(header)) return;
    std::memcpy(&header, data_, sizeof(header));
    header.file_bytes = bytes_;
    const size_t room = (bytes_ - sizeof(header)) / sizeof(cvl::Section);
    auto* sections = reinterpret_cast<cvl::Section*>(data_ + sizeof(header));
    const size_t n = std::min<size_t>(header.section_count, room);
    for (size_t i = 0; i < n; ++i) {
      cvl::Section& s = sections[i];
      if (s.kind == static_cast<uint32_t>(cvl::SectionKind::weights)) continue;
      if (s.offset <= bytes_ && s.bytes <= bytes_ - s.offset) s.checksum = xxh64(data_ + s.offset, s.bytes);
    }
    header.checksum = 0;
    header.checksum = xxh64(sections, n * sizeof(cvl::Section), xxh64(&header, sizeof(header)));
    std::memcpy(data_, &header, sizeof(header));
  }

 private:
  uint8_t* data_;
  size_t bytes_;
};

const std::vector<uint8_t>& example_bytes() {
  static const std::vector<uint8_t> bytes = [] {
    ProgramBuilder b = example("N");
    std::vector<uint8_t> program;
    return artifact::to_bytes(example_file(b, program));
  }();
  return bytes;
}

void expect_runs(cuvil_model* model) {
  cuvil_context* context = nullptr;
  ASSERT_EQ(cuvil_context_create(model, 2, &context), CUVIL_OK) << cuvil_last_error();
  TestTensor x({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), y({3, 4});
  DLTensor *in = x.get(), *out = y.get();
  ASSERT_EQ(cuvil_run(context, &in, 1, &out, 1), CUVIL_OK) << cuvil_last_error();
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(y.values[i], 2 * x.values[i] + static_cast<float>(i));
  cuvil_context_destroy(context);
}

TEST(Artifact, OpensFromMemoryAndFileAndRuns) {
  Image image(example_bytes());
  cuvil_model* model = nullptr;
  ASSERT_EQ(image.open(&model), CUVIL_OK) << cuvil_last_error();
  expect_runs(model);
  EXPECT_STREQ(cuvil_producer(model), "cuvil test");
  ASSERT_EQ(cuvil_metadata_count(model), 1u);
  const char *key, *value;
  ASSERT_EQ(cuvil_metadata(model, 0, &key, &value), 1);
  EXPECT_STREQ(value, "by hand");
  EXPECT_EQ(cuvil_verify_weights(model), CUVIL_OK) << cuvil_last_error();
  cuvil_variant_info info;
  ASSERT_EQ(cuvil_variant(model, 0, &info), CUVIL_OK);
  EXPECT_STREQ(info.name, "plain");
  EXPECT_TRUE(info.supported && info.selected);
  EXPECT_EQ(info.weight_bytes, 16384u);
  cuvil_close(model);

  const auto folder = std::filesystem::temp_directory_path() / ("cuvil_artifact_test_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string path = folder / "m.cvl";
  ProgramBuilder b = example("N");
  std::vector<uint8_t> program;
  artifact::write_file(example_file(b, program), path);
  EXPECT_EQ(read_bytes(path), example_bytes()) << "the same contents give the same bytes";
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1) << "a temporary file was left";
  ASSERT_EQ(cuvil_open_file(path.c_str(), nullptr, &model), CUVIL_OK) << cuvil_last_error();
  std::filesystem::remove_all(folder);
  expect_runs(model);
  cuvil_close(model);
  EXPECT_THROW(artifact::write_file(example_file(b, program), "/nonexistent/m.cvl"), Error);
}

TEST(Artifact, SeveralModelsWithTheSameCodeKeepApart) {
  Image image(example_bytes());
  cuvil_model *first, *second;
  ASSERT_EQ(image.open(&first), CUVIL_OK);
  ASSERT_EQ(image.open(&second), CUVIL_OK);
  cuvil_close(first);
  expect_runs(second);
  ASSERT_EQ(image.open(&first), CUVIL_OK);
  expect_runs(first);
  cuvil_close(first);
  cuvil_close(second);
}

TEST(Artifact, UnalignedMemoryIsCopied) {
  std::vector<uint8_t> shifted(example_bytes().size() + 128);
  uint8_t* start = shifted.data();
  while (reinterpret_cast<uintptr_t>(start) % 64 != 1) ++start;
  std::memcpy(start, example_bytes().data(), example_bytes().size());
  cuvil_model* model;
  ASSERT_EQ(cuvil_open_memory(start, example_bytes().size(), nullptr, &model), CUVIL_OK) << cuvil_last_error();
  std::fill(shifted.begin(), shifted.end(), uint8_t{0});
  expect_runs(model);
  cuvil_close(model);
}

TEST(Artifact, ForeignAndMissingFilesAreArtifactErrors) {
  cuvil_model* model;
  EXPECT_EQ(cuvil_open_file("/nonexistent.cvl", nullptr, &model), CUVIL_ARTIFACT_ERROR);
  EXPECT_NE(std::string(cuvil_last_error()).find("/nonexistent.cvl: cannot be opened"), std::string::npos);
  EXPECT_EQ(cuvil_open_file("/", nullptr, &model), CUVIL_ARTIFACT_ERROR);
  EXPECT_EQ(cuvil_open_file(RUNTIME_TEST_KERNELS, nullptr, &model), CUVIL_ARTIFACT_ERROR);
  EXPECT_NE(std::string(cuvil_last_error()).find("not a .cvl file"), std::string::npos);
  EXPECT_EQ(cuvil_open_memory(nullptr, 0, nullptr, &model), CUVIL_ARTIFACT_ERROR);
}

TEST(Artifact, OtherVersionsSayWhatToDo) {
  Image image(example_bytes());
  cvl::Header header;
  std::memcpy(&header, image.data(), sizeof(header));
  header.needs = header.version = cvl::kVersion + 1;
  std::memcpy(image.data(), &header, sizeof(header));
  image.reseal();
  cuvil_model* model;
  EXPECT_EQ(image.open(&model), CUVIL_ARTIFACT_ERROR);
  EXPECT_NE(std::string(cuvil_last_error()).find("use a newer one"), std::string::npos) << cuvil_last_error();
}

TEST(Artifact, TheBestVariantThatTheProcessorHasRuns) {
  ProgramBuilder b = example("N");
  std::vector<uint8_t> program;
  artifact::File file = example_file(b, program);
  const auto add = [&](const std::string& name, cuvil_arch arch, uint64_t features) {
    file.variants.push_back(file.variants[0]);
    file.variants.back().name = name;
    file.variants.back().arch = arch;
    file.variants.back().features = features;
  };
  const cuvil_arch other = host_arch() == CUVIL_ARCH_X86_64 ? CUVIL_ARCH_AARCH64 : CUVIL_ARCH_X86_64;
  add("host", host_arch(), host_features());
  add("foreign", other, 0);
  add("future", host_arch(), host_features() | uint64_t{1} << 63);
  const std::vector<uint8_t> bytes = artifact::to_bytes(file);
  EXPECT_LT(bytes.size(), example_bytes().size() + 3 * (file.variants[0].code.size() + program.size() + 1024))
      << "weights are stored once";
  Image image(bytes);
  cuvil_model* model;
  const auto selected = [&] {
    for (size_t i = 0; i < cuvil_variant_count(model); ++i) {
      cuvil_variant_info info;
      if (cuvil_variant(model, i, &info) == CUVIL_OK && info.selected) return std::string(info.name);
    }
    return std::string();
  };
  ASSERT_EQ(image.open(&model), CUVIL_OK) << cuvil_last_error();
  EXPECT_EQ(selected(), host_features() ? "host" : "plain");
  expect_runs(model);
  cuvil_close(model);
  cuvil_open_options options = {};
  options.variant = "plain";
  ASSERT_EQ(image.open(&model, &options), CUVIL_OK);
  EXPECT_EQ(selected(), "plain");
  cuvil_close(model);
  options.variant = "future";
  EXPECT_EQ(image.open(&model, &options), CUVIL_TARGET_ERROR);
  options.variant = "none";
  EXPECT_EQ(image.open(&model, &options), CUVIL_TARGET_ERROR);

  file.variants.erase(file.variants.begin(), file.variants.begin() + 2);
  Image unusable(artifact::to_bytes(file));
  EXPECT_EQ(unusable.open(&model), CUVIL_TARGET_ERROR);
  EXPECT_NE(std::string(cuvil_last_error()).find("it has: foreign, future"), std::string::npos) << cuvil_last_error();
  options = {};
  options.inspect_only = 1;
  ASSERT_EQ(unusable.open(&model, &options), CUVIL_OK) << cuvil_last_error();
  cuvil_context* context;
  EXPECT_EQ(cuvil_context_create(model, 1, &context), CUVIL_TARGET_ERROR);
  cuvil_close(model);
}

bool is_typed(cuvil_status status) { return status >= CUVIL_MODEL_ERROR && status <= CUVIL_TARGET_ERROR; }

TEST(Artifact, TruncatedAnywhereIsAnError) {
  const cuvil_open_options inspect = {nullptr, 0, 1};
  for (size_t n = 0; n < example_bytes().size(); ++n) {
    Image image(example_bytes(), n);
    cuvil_model* model = nullptr;
    ASSERT_EQ(image.open(&model), CUVIL_ARTIFACT_ERROR) << n;
    image.reseal();
    const cuvil_status status = image.open(&model, &inspect);
    ASSERT_TRUE(is_typed(status)) << n << " " << cuvil_last_error();
  }
}

/// Where the weights begin; metadata and code lie before.
size_t weights_offset() {
  const auto* sections = reinterpret_cast<const cvl::Section*>(example_bytes().data() + sizeof(cvl::Header));
  return sections[3].offset;
}

TEST(Artifact, FlippedMetadataAndCodeAreErrors) {
  Image image(example_bytes());
  uint32_t state = 7;
  for (int i = 0; i < 10000; ++i) {
    state = state * 1664525 + 1013904223;
    const size_t at = (state >> 8) % weights_offset();
    const auto bit = static_cast<uint8_t>(1 << (state >> 4 & 7));
    image.data()[at] ^= bit;
    cuvil_model* model = nullptr;
    const cuvil_status status = image.open(&model);
    ASSERT_TRUE(is_typed(status)) << "byte " << at << ": " << status;
    image.data()[at] ^= bit;
  }
}

TEST(Artifact, FlippedAndResealedMetadataNeverCrashes) {
  const cuvil_open_options inspect = {nullptr, 1, 1};
  const auto* sections = reinterpret_cast<const cvl::Section*>(example_bytes().data() + sizeof(cvl::Header));
  const size_t metadata = sections[2].offset;  // the code is not looked at when inspecting
  uint32_t state = 11;
  int opened = 0;
  for (int i = 0; i < 10000; ++i) {
    Image image(example_bytes(), weights_offset() + 16384);
    for (int flips = 0; flips < 1 + i % 3; ++flips) {
      state = state * 1664525 + 1013904223;
      image.data()[(state >> 8) % metadata] ^= static_cast<uint8_t>(1 << (state >> 4 & 7));
    }
    image.reseal();
    cuvil_model* model = nullptr;
    const cuvil_status status = image.open(&model, &inspect);
    ASSERT_TRUE(status == CUVIL_OK || is_typed(status));
    opened += status == CUVIL_OK;
    cuvil_close(model);
  }
  EXPECT_GT(opened, 0) << "names may change without harm";
}

TEST(Artifact, FlippedWeightsAreFoundByVerifying) {
  Image image(example_bytes());
  const cuvil_open_options verify = {nullptr, 1, 0};
  for (size_t at = weights_offset(); at < image.size(); at += 97) {
    image.data()[at] ^= 4;
    cuvil_model* model;
    ASSERT_EQ(image.open(&model), CUVIL_OK) << cuvil_last_error();
    ASSERT_EQ(cuvil_verify_weights(model), CUVIL_ARTIFACT_ERROR);
    cuvil_close(model);
    ASSERT_EQ(image.open(&model, &verify), CUVIL_ARTIFACT_ERROR);
    ASSERT_NE(std::string(cuvil_last_error()).find("weights 0"), std::string::npos) << cuvil_last_error();
    image.data()[at] ^= 4;
  }
}

}  // namespace
}  // namespace cuvil::testing
