#include "runtime/artifact.h"

#include <cstdio>

#include "core/abi/cpu_features.h"
#include "core/abi/hash.h"
#include "runtime/error.h"

namespace cuvil::runtime {

namespace {

using cvl::Header;
using cvl::kNone;
using cvl::Section;
using cvl::SectionKind;
constexpr auto kBroken = CUVIL_ARTIFACT_ERROR;

const char* kind_name(uint32_t kind) {
  switch (static_cast<SectionKind>(kind)) {
    case SectionKind::model:
      return "model";
    case SectionKind::program:
      return "program";
    case SectionKind::code:
      return "code";
    case SectionKind::weights:
      return "weights";
  }
  return "unknown";
}

cuvil_status check_header(Artifact* a) {
  if (a->bytes < sizeof(Header) || memcmp(a->data, cvl::kMagic, sizeof(cvl::kMagic)) != 0)
    return fail(kBroken, "this is not a .cvl file");
  Header header;
  memcpy(&header, a->data, sizeof(header));
  if (header.needs > cvl::kVersion)
    return fail(kBroken, "the file needs a runtime that reads format %u; this one (%s) reads up to %u: use a newer one",
                header.needs, CUVIL_VERSION, cvl::kVersion);
  if (header.version < cvl::kOldestVersion)
    return fail(kBroken, "the file has format %u, this runtime (%s) reads %u to %u: compile the model again",
                header.version, CUVIL_VERSION, cvl::kOldestVersion, cvl::kVersion);
  if (header.file_bytes != a->bytes)
    return fail(kBroken, "the file is damaged: it has %zu bytes, its header says %llu", a->bytes,
                static_cast<unsigned long long>(header.file_bytes));
  if (header.section_count == 0 || header.section_count > cvl::kMaxSections ||
      header.section_count * sizeof(Section) > a->bytes - sizeof(Header))
    return fail(kBroken, "the file is damaged: malformed table of sections");
  a->sections = reinterpret_cast<const Section*>(a->data + sizeof(Header));
  a->section_count = header.section_count;
  const uint64_t checksum = header.checksum;
  header.checksum = 0;
  const uint64_t seed = xxh64(&header, sizeof(header));
  if (xxh64(a->sections, a->section_count * sizeof(Section), seed) != checksum)
    return fail(kBroken, "the file is damaged: the header does not match its checksum");
  return CUVIL_OK;
}

cuvil_status check_sections(Artifact* a) {
  uint64_t end = sizeof(Header) + a->section_count * sizeof(Section);
  bool has_weights = false;
  for (uint32_t i = 0; i < a->section_count; ++i) {
    const Section& s = a->sections[i];
    const bool weights = s.kind == static_cast<uint32_t>(SectionKind::weights);
    if (s.kind > static_cast<uint32_t>(SectionKind::weights) || s.offset < end || s.offset > a->bytes ||
        s.bytes > a->bytes - s.offset || s.offset % (weights ? cvl::kPage : cvl::kSectionAlignment) != 0 ||
        s.offset - end >= cvl::kPage || (weights && has_weights))
      return fail(kBroken, "the file is damaged: section %u is malformed", i);
    for (uint64_t gap = end; gap < s.offset; ++gap)
      if (a->data[gap] != 0) return fail(kBroken, "the file is damaged: bytes before section %u are not zero", i);
    end = s.offset + s.bytes;
    if (weights) {
      has_weights = true;
      a->weights = a->section_data(i);
      a->weight_bytes = s.bytes;
      if (i + 1 != a->section_count || s.checksum != 0)
        return fail(kBroken, "the file is damaged: section %u is malformed", i);
    } else if (xxh64(a->section_data(i), s.bytes) != s.checksum) {
      return fail(kBroken, "the file is damaged: section %u (%s) does not match its checksum", i, kind_name(s.kind));
    }
  }
  return end == a->bytes ? CUVIL_OK : fail(kBroken, "the file is damaged: bytes follow its last section");
}

bool is_section(const Artifact& a, uint32_t i, SectionKind kind) {
  return i < a.section_count && a.sections[i].kind == static_cast<uint32_t>(kind);
}

cuvil_status check_model(Artifact* a) {
  uint32_t found = kNone;
  for (uint32_t i = 0; i < a->section_count; ++i) {
    if (!is_section(*a, i, SectionKind::model)) continue;
    if (found != kNone) return fail(kBroken, "the file is damaged: it has two models");
    found = i;
  }
  if (found == kNone) return fail(kBroken, "the file is damaged: it has no model");
  const Section& s = a->sections[found];
  if (s.bytes < 8 || s.bytes > uint64_t{1} << 30) return fail(kBroken, "the file is damaged: malformed model");
  flatbuffers::Verifier verifier(a->section_data(found), s.bytes, 16, 10000000);
  if (!verifier.VerifyBuffer<cvl::Model>(nullptr)) return fail(kBroken, "the file is damaged: malformed model");
  a->model = flatbuffers::GetRoot<cvl::Model>(a->section_data(found));
  const auto* variants = a->model->variants();
  const auto* blobs = a->model->blobs();
  const uint32_t blob_count = blobs ? blobs->size() : 0;
  if (!variants || variants->size() == 0) return fail(kBroken, "the file has no variant");
  if (blobs && reinterpret_cast<uintptr_t>(blobs->Data()) % alignof(cvl::Blob) != 0)
    return fail(kBroken, "the file is damaged: malformed table of weights");
  uint64_t end = 0;
  for (uint32_t i = 0; i < blob_count; ++i) {
    const cvl::Blob* b = blobs->Get(i);
    if (b->offset() % CUVIL_ALIGNMENT != 0 || b->offset() < end || b->offset() - end >= CUVIL_ALIGNMENT ||
        b->offset() > a->weight_bytes || b->bytes() > a->weight_bytes - b->offset())
      return fail(kBroken, "the file is damaged: weights %u lie outside their section", i);
    end = b->offset() + b->bytes();
  }
  if (end != a->weight_bytes) return fail(kBroken, "the file is damaged: bytes follow the last weights");
  for (uint32_t i = 0; i < variants->size(); ++i) {
    const cvl::Variant* v = variants->Get(i);
    if (!is_section(*a, v->program(), SectionKind::program) || !is_section(*a, v->code(), SectionKind::code))
      return fail(kBroken, "the file is damaged: variant '%.40s' has no program or code", v->name()->c_str());
    for (uint32_t k = 0; v->constants() && k < v->constants()->size(); ++k)
      if (v->constants()->Get(k) >= blob_count)
        return fail(kBroken, "the file is damaged: variant '%.40s' uses weights that do not exist", v->name()->c_str());
  }
  return CUVIL_OK;
}

}  // namespace

cuvil_status parse_artifact(Artifact* artifact) {
  cuvil_status status;
  if ((status = check_header(artifact)) || (status = check_sections(artifact))) return status;
  return check_model(artifact);
}

bool is_supported(const cvl::Variant& variant) {
  const uint64_t features = host_features();
  return variant.arch() == host_arch() && (variant.features() & ~features) == 0;
}

cuvil_status select_variant(Artifact* artifact, const char* name) {
  const auto& variants = *artifact->model->variants();
  char names[400] = "";
  size_t used = 0;
  int best = -1;
  for (uint32_t i = 0; i < variants.size(); ++i) {
    const cvl::Variant* v = variants.Get(i);
    const bool usable = is_supported(*v) || artifact->inspect_only;
    const int features = __builtin_popcountll(v->features());
    const bool wanted = name ? strcmp(v->name()->c_str(), name) == 0 : usable && features > best;
    if (used + 1 < sizeof(names)) {
      const int n = snprintf(names + used, sizeof(names) - used, "%s%.40s", used ? ", " : "", v->name()->c_str());
      if (n > 0) used += static_cast<size_t>(n);
    }
    if (!wanted) continue;
    if (name && !usable)
      return fail(CUVIL_TARGET_ERROR, "this processor cannot run the variant '%.40s'", v->name()->c_str());
    best = features;
    artifact->selected = i;
    if (name) return CUVIL_OK;
  }
  if (artifact->selected != kNone) return CUVIL_OK;
  return fail(CUVIL_TARGET_ERROR, "the file has no variant %s%.40s%s; it has: %s. Compile the model for this target.",
              name ? "called '" : "that this processor can run", name ? name : "", name ? "'" : "", names);
}

cuvil_status verify_weights(const Artifact& a) {
  const auto* blobs = a.model->blobs();
  char damaged[400] = "";
  size_t used = 0;
  uint64_t end = 0;
  for (uint32_t i = 0; blobs && i < blobs->size(); ++i) {
    const cvl::Blob* b = blobs->Get(i);
    bool sound = xxh64(a.weights + b->offset(), b->bytes()) == b->hash();
    for (; end < b->offset(); ++end) sound &= a.weights[end] == 0;
    end = b->offset() + b->bytes();
    if (sound) continue;
    if (used + 1 < sizeof(damaged)) {
      const int n = snprintf(damaged + used, sizeof(damaged) - used, "%s%u", used ? ", " : "", i);
      if (n > 0) used += static_cast<size_t>(n);
    }
  }
  if (used > 0) return fail(kBroken, "the file is damaged: weights %s do not match their checksums", damaged);
  return CUVIL_OK;
}

}  // namespace cuvil::runtime
