// Opening .cvl files, and questions about them.
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/artifact.h"
#include "runtime/error.h"
#include "runtime/model.h"

namespace cuvil::runtime {

void close_artifact(Artifact* artifact) {
  unload_code(&artifact->code);
  if (artifact->mapping) munmap(artifact->mapping, artifact->bytes);
  free(artifact->copy);
  artifact->~Artifact();
  free(artifact);
}

namespace {

Artifact* new_artifact() {
  void* memory = malloc(sizeof(Artifact));
  return memory ? new (memory) Artifact : nullptr;
}

cuvil_status bind_constants(const Artifact& a, cuvil_model* model) {
  const cvl::Variant* v = a.model->variants()->Get(a.selected);
  const auto* constants = model->program.source->constants();
  const uint32_t count = constants ? constants->size() : 0, given = v->constants() ? v->constants()->size() : 0;
  if (count != given) return fail(CUVIL_ARTIFACT_ERROR, "the program has %u constants, the file %u", count, given);
  if (!model->constants.allocate(count)) return out_of_memory("the table of constants", count * uint64_t{8});
  for (uint32_t i = 0; i < count; ++i) {
    const cvl::Blob* blob = a.model->blobs()->Get(v->constants()->Get(i));
    if (blob->bytes() != constants->Get(i)->bytes())
      return fail(CUVIL_ARTIFACT_ERROR, "the file is damaged: constant %u has the wrong size", i);
    model->constants[i] = a.weights + blob->offset();
  }
  return CUVIL_OK;
}

cuvil_status load(Artifact* a, const cuvil_open_options& options, cuvil_model* model) {
  a->inspect_only = options.inspect_only != 0;
  cuvil_status status;
  if ((status = parse_artifact(a)) || (status = select_variant(a, options.variant))) return status;
  if (options.verify_weights && (status = verify_weights(*a))) return status;
  const cvl::Variant* v = a->model->variants()->Get(a->selected);
  const cvl::Section& program = a->sections[v->program()];
  const cvl::Section& code = a->sections[v->code()];
  if ((status = load_program(a->section_data(v->program()), program.bytes, &model->program)) ||
      (status = bind_constants(*a, model)) || (status = check_static_plan(model->program)))
    return status;
  if (a->inspect_only) return CUVIL_OK;
  if ((status = load_code(a->section_data(v->code()), code.bytes, &a->code))) return status;
  const auto find = [](void* user, const char* symbol) { return find_kernel(*static_cast<const Code*>(user), symbol); };
  if ((status = resolve_kernels(model, find, &a->code))) return status;
  model->runnable = true;
  return CUVIL_OK;
}

cuvil_status open_artifact(Artifact* artifact, const char* what, const cuvil_open_options* options,
                           cuvil_model** model) {
  cuvil_model* made = new_model();
  if (!made) {
    close_artifact(artifact);
    return out_of_memory("the model", sizeof(cuvil_model));
  }
  made->artifact = artifact;
  const cuvil_status status = load(artifact, options ? *options : cuvil_open_options{}, made);
  if (status) {
    release_model(made);
    return what ? explain(status, "%.400s", what) : status;
  }
  *model = made;
  return CUVIL_OK;
}

cuvil_status cannot_open(const char* path, int error) {
  char text[128] = "";
  return fail(CUVIL_ARTIFACT_ERROR, "%.400s: cannot be opened: %s", path, strerror_r(error, text, sizeof(text)));
}

}  // namespace

}  // namespace cuvil::runtime

namespace cvl = cuvil::cvl;
using namespace cuvil::runtime;

extern "C" {

cuvil_status cuvil_open_file(const char* path, const cuvil_open_options* options, cuvil_model** model) {
  *model = nullptr;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe is refused below, not waited for
  if (fd < 0) return cannot_open(path, errno);
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size <= 0) {
    close(fd);
    return fail(CUVIL_ARTIFACT_ERROR, "%.400s: is empty or no file", path);
  }
  const auto bytes = static_cast<size_t>(info.st_size);
  void* mapping = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  close(fd);
  if (mapping == MAP_FAILED) return cannot_open(path, error);
  Artifact* artifact = new_artifact();
  if (!artifact) {
    munmap(mapping, bytes);
    return out_of_memory("the model", sizeof(Artifact));
  }
  artifact->mapping = mapping;
  artifact->data = static_cast<const uint8_t*>(mapping);
  artifact->bytes = bytes;
  return open_artifact(artifact, path, options, model);
}

cuvil_status cuvil_open_memory(const void* data, size_t bytes, const cuvil_open_options* options, cuvil_model** model) {
  *model = nullptr;
  Artifact* artifact = new_artifact();
  if (!artifact) return out_of_memory("the model", sizeof(Artifact));
  artifact->data = static_cast<const uint8_t*>(data);
  artifact->bytes = bytes;
  if (bytes > 0 && reinterpret_cast<uintptr_t>(data) % CUVIL_ALIGNMENT != 0) {
    if (posix_memalign(&artifact->copy, cvl::kPage, bytes) != 0) {
      artifact->copy = nullptr;
      close_artifact(artifact);
      return out_of_memory("the model", bytes);
    }
    memcpy(artifact->copy, data, bytes);
    artifact->data = static_cast<const uint8_t*>(artifact->copy);
  }
  return open_artifact(artifact, nullptr, options, model);
}

size_t cuvil_variant_count(const cuvil_model* model) {
  return model->artifact ? model->artifact->model->variants()->size() : 0;
}

cuvil_status cuvil_variant(const cuvil_model* model, size_t index, cuvil_variant_info* info) {
  if (index >= cuvil_variant_count(model)) return fail(CUVIL_ARTIFACT_ERROR, "there is no variant %zu", index);
  const Artifact& a = *model->artifact;
  const cvl::Variant* v = a.model->variants()->Get(static_cast<uint32_t>(index));
  *info = {};
  info->name = v->name()->c_str();
  info->arch = static_cast<cuvil_arch>(v->arch());
  info->features = v->features();
  info->supported = is_supported(*v);
  info->selected = index == a.selected;
  info->code_bytes = a.sections[v->code()].bytes;
  for (uint32_t i = 0; v->constants() && i < v->constants()->size(); ++i)
    info->weight_bytes += a.model->blobs()->Get(v->constants()->Get(i))->bytes();
  info->file_bytes = info->weight_bytes + info->code_bytes + a.sections[v->program()].bytes + 2 * cvl::kPage;
  return CUVIL_OK;
}

const char* cuvil_producer(const cuvil_model* model) {
  const auto* text = model->artifact ? model->artifact->model->producer() : nullptr;
  return text ? text->c_str() : "";
}

size_t cuvil_metadata_count(const cuvil_model* model) {
  const auto* metadata = model->artifact ? model->artifact->model->metadata() : nullptr;
  return metadata ? metadata->size() : 0;
}

int cuvil_metadata(const cuvil_model* model, size_t index, const char** key, const char** value) {
  if (index >= cuvil_metadata_count(model)) return 0;
  const cvl::KeyValue* pair = model->artifact->model->metadata()->Get(static_cast<uint32_t>(index));
  *key = pair->key()->c_str();
  *value = pair->value() ? pair->value()->c_str() : "";
  return 1;
}

cuvil_status cuvil_verify_weights(const cuvil_model* model) {
  return model->artifact ? verify_weights(*model->artifact) : CUVIL_OK;
}
}
