#include "core/artifact/writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <map>

#include "core/abi/cvl_file.h"
#include "core/abi/hash.h"
#include "core/base/error.h"

namespace cuvil::artifact {
namespace {

using Bytes = std::span<const uint8_t>;

uint64_t round_up(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

template <class Table, class Object>
std::vector<uint8_t> pack_table(const Object& object) {
  flatbuffers::FlatBufferBuilder builder(4096);
  builder.Finish(Table::Pack(builder, &object));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

/// All blobs of a file, equal ones once, in order of first use.
class Blobs {
 public:
  uint32_t add(Bytes bytes) {
    const uint64_t hash = xxh64(bytes.data(), bytes.size());
    auto [first, last] = by_hash_.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      const Bytes other = data_[it->second];
      if (other.size() == bytes.size() && (bytes.empty() || std::memcmp(other.data(), bytes.data(), bytes.size()) == 0))
        return it->second;
    }
    const auto index = static_cast<uint32_t>(data_.size());
    const uint64_t offset = round_up(end_, CUVIL_ALIGNMENT);
    table_.emplace_back(offset, bytes.size(), hash);
    data_.push_back(bytes);
    by_hash_.emplace(hash, index);
    end_ = offset + bytes.size();
    return index;
  }
  const std::vector<cvl::Blob>& table() const { return table_; }
  const std::vector<Bytes>& data() const { return data_; }
  uint64_t bytes() const { return end_; }

 private:
  std::vector<cvl::Blob> table_;
  std::vector<Bytes> data_;
  std::multimap<uint64_t, uint32_t> by_hash_;
  uint64_t end_ = 0;
};

using Sink = std::function<void(const void* data, size_t bytes)>;

class Writer {
 public:
  explicit Writer(Sink sink) : sink_(std::move(sink)) {}

  void run(const File& file) {
    Blobs blobs;
    cvl::ModelT model;
    model.producer = file.producer;
    model.name = file.name;
    for (const auto& [key, value] : file.metadata) {
      auto pair = std::make_unique<cvl::KeyValueT>();
      pair->key = key;
      pair->value = value;
      model.metadata.push_back(std::move(pair));
    }
    uint32_t section = 1;  // 0 is the model
    for (const Variant& v : file.variants) {
      auto out = std::make_unique<cvl::VariantT>();
      out->name = v.name;
      out->arch = static_cast<uint8_t>(v.arch);
      out->features = v.features;
      out->program = section++;
      out->code = section++;
      for (Bytes constant : v.constants) out->constants.push_back(blobs.add(constant));
      model.variants.push_back(std::move(out));
    }
    model.blobs = blobs.table();
    const std::vector<uint8_t> packed = pack_table<cvl::Model>(model);

    add(cvl::SectionKind::model, packed);
    for (const Variant& v : file.variants) {
      add(cvl::SectionKind::program, v.program);
      add(cvl::SectionKind::code, v.code);
    }
    if (!blobs.data().empty())  // checked blob by blob, so without a checksum of its own
      sections_.push_back({static_cast<uint32_t>(cvl::SectionKind::weights), 0, 0, blobs.bytes(), 0});

    place();
    write_frame();
    for (size_t i = 0; i < contents_.size(); ++i) {
      pad_to(sections_[i].offset);
      put(contents_[i].data(), contents_[i].size());
    }
    if (blobs.data().empty()) return;
    const uint64_t start = sections_.back().offset;
    pad_to(start);
    for (size_t i = 0; i < blobs.data().size(); ++i) {
      pad_to(start + blobs.table()[i].offset());
      put(blobs.data()[i].data(), blobs.data()[i].size());
    }
  }

 private:
  void add(cvl::SectionKind kind, Bytes bytes) {
    contents_.push_back(bytes);
    sections_.push_back({static_cast<uint32_t>(kind), 0, 0, bytes.size(), xxh64(bytes.data(), bytes.size())});
  }

  void place() {
    uint64_t end = sizeof(cvl::Header) + sections_.size() * sizeof(cvl::Section);
    for (cvl::Section& s : sections_) {
      const bool weights = s.kind == static_cast<uint32_t>(cvl::SectionKind::weights);
      s.offset = round_up(end, weights ? cvl::kPage : cvl::kSectionAlignment);
      end = s.offset + s.bytes;
    }
    file_bytes_ = end;
  }

  void write_frame() {
    cvl::Header header = {};
    std::memcpy(header.magic, cvl::kMagic, sizeof(header.magic));
    header.version = cvl::kVersion;
    header.needs = 1;
    header.file_bytes = file_bytes_;
    header.section_count = static_cast<uint32_t>(sections_.size());
    const size_t table_bytes = sections_.size() * sizeof(cvl::Section);
    header.checksum = xxh64(sections_.data(), table_bytes, xxh64(&header, sizeof(header)));
    put(&header, sizeof(header));
    put(sections_.data(), table_bytes);
  }

  void put(const void* data, size_t bytes) {
    if (bytes > 0) sink_(data, bytes);
    written_ += bytes;
  }
  void pad_to(uint64_t offset) {
    static const uint8_t zeros[cvl::kPage] = {};
    CUVIL_CHECK(offset >= written_ && offset - written_ <= sizeof(zeros), "sections in order");
    put(zeros, offset - written_);
  }

  Sink sink_;
  std::vector<Bytes> contents_;
  std::vector<cvl::Section> sections_;
  uint64_t file_bytes_ = 0, written_ = 0;
};

[[noreturn]] void cannot_write(const std::string& path) {
  throw Error(CUVIL_ARTIFACT_ERROR, path + ": cannot be written: " + std::strerror(errno));
}

/// A file that vanishes unless it is renamed to its place.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path) : path_(path), temporary_(path + ".XXXXXX") {
    // A device or pipe would be replaced by the file.
    struct stat there = {};
    if (stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode))
      throw Error(CUVIL_ARTIFACT_ERROR, path + ": cannot be written: it is not a regular file");
    fd_ = mkostemp(temporary_.data(), O_CLOEXEC);
    if (fd_ < 0) cannot_write(path_);
  }
  ~TemporaryFile() {
    if (fd_ >= 0) close(fd_);
    if (!done_) unlink(temporary_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(const void* data, size_t bytes) {
    const auto* p = static_cast<const uint8_t*>(data);
    while (bytes > 0) {
      const ssize_t n = ::write(fd_, p, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) cannot_write(path_);
      p += n;
      bytes -= static_cast<size_t>(n);
    }
  }
  void publish() {
    const mode_t mask = umask(0);  // mkostemp gives 0600; a model is an ordinary file
    umask(mask);
    const bool closed = fchmod(fd_, 0666 & ~mask) == 0 && close(fd_) == 0;
    fd_ = -1;
    if (!closed || rename(temporary_.c_str(), path_.c_str()) != 0) cannot_write(path_);
    done_ = true;
  }

 private:
  std::string path_, temporary_;
  int fd_ = -1;
  bool done_ = false;
};

}  // namespace

std::vector<uint8_t> pack(const cvl::ProgramT& program) { return pack_table<cvl::Program>(program); }

std::vector<uint8_t> to_bytes(const File& file) {
  std::vector<uint8_t> bytes;
  Writer([&](const void* data, size_t n) {
    const auto* p = static_cast<const uint8_t*>(data);
    bytes.insert(bytes.end(), p, p + n);
  }).run(file);
  return bytes;
}

void write_file(const File& file, const std::string& path) {
  TemporaryFile out(path);
  Writer([&](const void* data, size_t n) { out.write(data, n); }).run(file);
  out.publish();
}

}  // namespace cuvil::artifact
