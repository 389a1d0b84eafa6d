/* Runs a .cvl from C. Prints the time from open to the first output, and the median of further runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuvil/runtime.h"

static const char kHelp[] =
    "usage: c_runner MODEL.cvl [--threads N] [--runs N] [SYMBOL=SIZE ...] [INPUT.bin ...]\n"
    "\n"
    "  --threads N   threads to run on; 0, the default: CUVIL_NUM_THREADS, or all that this process may use\n"
    "  --runs N      timed runs after the first; default 20\n"
    "  SYMBOL=SIZE   size of a dimension that the model leaves open; 1 unless given\n"
    "  INPUT.bin     raw file of an input's elements, in the model's order; without one, pseudo-random numbers\n"
    "  --help        this text\n";

static int usage_error(const char* what, const char* word) {
  fprintf(stderr, "c_runner: %s%s\n\n%s", what, word, kHelp);
  return 2;
}

/* Reads a whole number that is not negative; 0 if the word is none. */
static int read_count(const char* word, int* count) {
  char* end;
  const long value = strtol(word, &end, 10);
  if (end == word || *end || value < 0 || value > 1000000) return 0;
  *count = (int)value;
  return 1;
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void check(cuvil_status status) {
  if (status == CUVIL_OK) return;
  fprintf(stderr, "%s: %s\n", cuvil_status_name(status), cuvil_last_error());
  exit(1);
}

static DLDataType dlpack_type(cuvil_dtype dtype) {
  DLDataType type = {kDLInt, (uint8_t)(8 * cuvil_dtype_size(dtype)), 1};
  if (dtype <= CUVIL_F16) type.code = kDLFloat;
  if (dtype == CUVIL_BF16) type.code = kDLBfloat;
  if (dtype >= CUVIL_U64) type.code = kDLUInt;
  if (dtype == CUVIL_BOOL) type.code = 6;
  return type;
}

/* Small positive numbers: integers 0 or 1, so that they are valid indices, too. */
static void fill(void* data, cuvil_dtype dtype, size_t n) {
  unsigned state = 1;
  const size_t size = cuvil_dtype_size(dtype);
  memset(data, 0, n * size);
  for (size_t i = 0; i < n; ++i) {
    state = state * 1664525u + 1013904223u;
    if (dtype == CUVIL_F32)
      ((float*)data)[i] = (float)(state >> 8) / (float)(1 << 24);
    else if (dtype == CUVIL_F64)
      ((double*)data)[i] = (double)(state >> 8) / (double)(1 << 24);
    else if (dtype != CUVIL_F16 && dtype != CUVIL_BF16)
      ((char*)data)[i * size] = (char)(state >> 31);
  }
}

/* The size of a dimension: fixed, or from the command line, or 1. */
static int64_t size_of(const cuvil_tensor_info* info, int axis, int argc, char** argv) {
  if (info->dims[axis] >= 0) return info->dims[axis];
  const size_t length = strlen(info->dim_texts[axis]);
  for (int i = 2; i < argc; ++i)
    if (strncmp(argv[i], info->dim_texts[axis], length) == 0 && argv[i][length] == '=')
      return atoll(argv[i] + length + 1);
  return 1;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char** argv) {
  const char *path = NULL, *files[64] = {NULL};
  int threads = 0, runs = 20;
  size_t file_count = 0;
  for (int i = 1; i < argc; ++i) {
    const char* word = argv[i];
    int* count = !strcmp(word, "--threads") ? &threads : !strcmp(word, "--runs") ? &runs : NULL;
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
      fputs(kHelp, stdout);
      return 0;
    }
    if (count) {
      if (++i == argc || !read_count(argv[i], count)) return usage_error("a number belongs after ", word);
    } else if (word[0] == '-') {
      return usage_error("unknown option ", word);
    } else if (!path) {
      path = word;
    } else if (strchr(word, '=')) {
      /* size_of() reads it */
    } else if (file_count < 64) {
      files[file_count++] = word;
    } else {
      return usage_error("too many inputs: ", word);
    }
  }
  if (!path) return usage_error("which MODEL.cvl?", "");

  double start = now_ms(), spent = 0; /* making up inputs does not count */
  cuvil_model* model;
  cuvil_context* context;
  check(cuvil_open_file(path, NULL, &model));
  if (file_count > cuvil_input_count(model))
    return usage_error("more inputs than the model has: ", files[file_count - 1]);
  check(cuvil_context_create(model, threads, &context));
  const double opened = now_ms() - start;

  const size_t n_in = cuvil_input_count(model), n_out = cuvil_output_count(model);
  DLTensor* inputs = calloc(n_in + 1, sizeof(DLTensor));
  const DLTensor** in = calloc(n_in + 1, sizeof(DLTensor*));
  DLManagedTensor** out = calloc(n_out + 1, sizeof(DLManagedTensor*));
  if (!inputs || !in || !out) return 1;
  spent = now_ms();
  for (size_t i = 0; i < n_in; ++i) {
    const cuvil_tensor_info* info = cuvil_input_info(model, i);
    size_t n = 1;
    int64_t* shape = calloc((size_t)info->ndim + 1, sizeof(int64_t));
    if (!shape) return 1;
    for (int k = 0; k < info->ndim; ++k) {
      shape[k] = size_of(info, k, argc, argv);
      n *= (size_t)shape[k];
    }
    inputs[i].data = malloc(n * cuvil_dtype_size(info->dtype) + 1);
    if (!inputs[i].data) return 1;
    inputs[i].device.device_type = kDLCPU;
    inputs[i].ndim = info->ndim;
    inputs[i].dtype = dlpack_type(info->dtype);
    inputs[i].shape = shape;
    in[i] = &inputs[i];
    FILE* file = i < file_count ? fopen(files[i], "rb") : NULL;
    if (i < file_count && (!file || fread(inputs[i].data, cuvil_dtype_size(info->dtype), n, file) != n)) {
      fprintf(stderr, "%s: cannot be read, or is shorter than input '%s'\n", files[i], info->name);
      return 1;
    }
    if (file) fclose(file);
    if (!file) fill(inputs[i].data, info->dtype, n);
  }
  spent = now_ms() - spent;

  check(cuvil_run_alloc(context, in, n_in, out, n_out));
  const double first = now_ms() - start - spent;
  for (size_t i = 0; i < n_out; ++i) {
    printf("output %zu '%s': %s [", i, cuvil_output_info(model, i)->name,
           cuvil_dtype_name(cuvil_output_info(model, i)->dtype));
    for (int k = 0; k < out[i]->dl_tensor.ndim; ++k)
      printf("%s%lld", k ? ", " : "", (long long)out[i]->dl_tensor.shape[k]);
    printf("]");
    if (cuvil_output_info(model, i)->dtype == CUVIL_F32) {
      int64_t count = 1;
      for (int k = 0; k < out[i]->dl_tensor.ndim; ++k) count *= out[i]->dl_tensor.shape[k];
      for (int64_t k = 0; k < count && k < 5; ++k) printf(" %g", ((const float*)out[i]->dl_tensor.data)[k]);
    }
    printf("\n");
    out[i]->deleter(out[i]);
  }

  double* times = calloc((size_t)runs + 1, sizeof(double));
  if (!times) return 1;
  for (int r = 0; r < runs; ++r) {
    const double before = now_ms();
    check(cuvil_run_alloc(context, in, n_in, out, n_out));
    times[r] = now_ms() - before;
    for (size_t i = 0; i < n_out; ++i) out[i]->deleter(out[i]);
  }
  qsort(times, (size_t)runs, sizeof(double), by_value);
  cuvil_memory_info memory;
  check(cuvil_memory(context, &memory));
  printf("open %.2f ms, open to first output %.2f ms", opened, first);
  if (runs > 0) printf(", then %.3f ms (median of %d, best %.3f)", times[runs / 2], runs, times[0]);
  printf(", %d threads\n", cuvil_context_threads(context));
  printf("arena %lld bytes (lower bound %lld), scratch %lld per thread, weights %lld\n", (long long)memory.arena_bytes,
         (long long)memory.arena_lower_bound, (long long)memory.scratch_bytes_per_thread,
         (long long)memory.weight_bytes);

  for (size_t i = 0; i < n_in; ++i) {
    free(inputs[i].data);
    free(inputs[i].shape);
  }
  free(inputs);
  free(in);
  free(out);
  free(times);
  cuvil_context_destroy(context);
  cuvil_close(model);
  return 0;
}
