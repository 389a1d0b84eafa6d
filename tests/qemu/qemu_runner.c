/* Runs kernels of a shared object on memory from a file: qemu_runner CODE.so JOBS RESULTS. All numbers are int64.
 * JOBS:    count, then per job: phases, per phase a name of 64 bytes and its tasks; dims, their values; scratch bytes;
 *          buffers, per buffer its bytes and contents.
 * RESULTS: per job: the code returned, then all buffers' contents. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef int32_t (*kernel_fn)(const void* const*, const int64_t*, int64_t, int64_t, void*);

enum { kMost = 256 };

static FILE* jobs;

static void get(void* to, size_t bytes) {
  if (fread(to, 1, bytes, jobs) != bytes) {
    fprintf(stderr, "the jobs end too early\n");
    exit(2);
  }
}
static int64_t number(void) {
  int64_t n;
  get(&n, sizeof(n));
  return n;
}
static int64_t count(void) {
  const int64_t n = number();
  if (n < 0 || n > kMost) exit(3);
  return n;
}

int main(int argc, char** argv) {
  if (argc != 4) return 1;
  void* code = dlopen(argv[1], RTLD_NOW);
  if (!code) {
    fprintf(stderr, "%s\n", dlerror());
    return 4;
  }
  jobs = fopen(argv[2], "rb");
  FILE* results = fopen(argv[3], "wb");
  if (!jobs || !results) return 5;
  for (int64_t left = number(); left > 0; --left) {
    char names[kMost][64];
    int64_t tasks[kMost], dims[kMost], bytes[kMost];
    void* buffers[kMost];
    const int64_t phases = count();
    for (int64_t p = 0; p < phases; ++p) {
      get(names[p], sizeof(names[p]));
      tasks[p] = number();
    }
    const int64_t dim_count = count();
    for (int64_t d = 0; d < dim_count; ++d) dims[d] = number();
    const int64_t scratch_bytes = number();
    void* scratch = aligned_alloc(64, (size_t)(scratch_bytes + 127) / 64 * 64);
    const int64_t buffer_count = count();
    for (int64_t b = 0; b < buffer_count; ++b) {
      bytes[b] = number();
      buffers[b] = malloc((size_t)bytes[b] + 1);
      get(buffers[b], (size_t)bytes[b]);
    }
    int64_t result = 0;
    for (int64_t p = 0; p < phases && result == 0; ++p) {
      kernel_fn f = (kernel_fn)dlsym(code, names[p]);
      if (!f) {
        fprintf(stderr, "no symbol %s\n", names[p]);
        return 6;
      }
      result = f((const void* const*)buffers, dims, 0, tasks[p], scratch);
    }
    fwrite(&result, sizeof(result), 1, results);
    for (int64_t b = 0; b < buffer_count; ++b) {
      fwrite(buffers[b], 1, (size_t)bytes[b], results);
      free(buffers[b]);
    }
    free(scratch);
  }
  return fclose(results) == 0 ? 0 : 7;
}
