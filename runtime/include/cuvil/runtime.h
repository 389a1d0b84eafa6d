/*
 * Cuvil's runtime: opens .cvl files and runs them. Plain C, no compiler involved, no dependency beyond libc.
 *
 *   cuvil_model* model;                      one per file, shared by all threads
 *   cuvil_context* context;                  one per thread: arena, plans, profile
 *   cuvil_open_file("model.cvl", NULL, &model);
 *   cuvil_context_create(model, 0, &context);
 *   cuvil_run(context, inputs, n, outputs, m);
 *
 * Functions return CUVIL_OK or another cuvil_status; the message is then in cuvil_last_error() of the same thread.
 * A .cvl file is code: open only files that you would also load as a shared library.
 */
#ifndef CUVIL_RUNTIME_H_
#define CUVIL_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#include "core/abi/abi.h"
#include "core/abi/dlpack.h"

#if defined(__GNUC__)
#define CUVIL_API __attribute__((visibility("default")))
#else
#define CUVIL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuvil_model cuvil_model;
typedef struct cuvil_context cuvil_context;

/* "0.1.0" */
CUVIL_API const char* cuvil_version(void);
/* "ShapeError", ...; "OK" */
CUVIL_API const char* cuvil_status_name(cuvil_status status);
/* Text of this thread's last error; "" if there was none. Valid until the thread's next call. */
CUVIL_API const char* cuvil_last_error(void);
/* "f32", "i64", "bool", ...; bytes of one element */
CUVIL_API const char* cuvil_dtype_name(cuvil_dtype dtype);
CUVIL_API size_t cuvil_dtype_size(cuvil_dtype dtype);

/* ---- models ----------------------------------------------------------------------------------------------------- */

typedef struct cuvil_open_options {
  const char* variant;    /* run this variant; NULL = the best one that this processor can run */
  int32_t verify_weights; /* 1: check the weights, too (reads all of them) */
  int32_t inspect_only;   /* 1: load no code; the model answers questions but does not run. For any processor. */
} cuvil_open_options;

/*
 * Opens a file: maps it, checks metadata and code against their checksums, loads the code. Options may be NULL.
 * ArtifactError: damaged, foreign or not loadable. TargetError: no variant for this processor.
 * The file must not be changed in place while it is open; replacing it by rename is fine.
 */
CUVIL_API cuvil_status cuvil_open_file(const char* path, const cuvil_open_options* options, cuvil_model** model);
/* The same from memory, which must stay unchanged until the model is closed (copied if not 64-byte aligned). */
CUVIL_API cuvil_status cuvil_open_memory(const void* data, size_t bytes, const cuvil_open_options* options,
                                         cuvil_model** model);
/* Contexts keep their model alive; closing it early is safe. NULL is allowed. */
CUVIL_API void cuvil_close(cuvil_model* model);

typedef struct cuvil_tensor_info {
  const char* name;
  cuvil_dtype dtype;
  int32_t ndim;
  const int64_t* dims;          /* -1 = depends on the inputs' shapes */
  const char* const* dim_texts; /* "224", "N", "2*H" */
} cuvil_tensor_info;

CUVIL_API size_t cuvil_input_count(const cuvil_model* model);
CUVIL_API size_t cuvil_output_count(const cuvil_model* model);
/* NULL if there is no such input or output. Valid until the model is closed. */
CUVIL_API const cuvil_tensor_info* cuvil_input_info(const cuvil_model* model, size_t index);
CUVIL_API const cuvil_tensor_info* cuvil_output_info(const cuvil_model* model, size_t index);

typedef struct cuvil_variant_info {
  const char* name; /* "x86-64-v3" */
  cuvil_arch arch;
  uint64_t features; /* bits of cuvil_feature */
  int32_t supported; /* this processor can run it */
  int32_t selected;  /* this model runs it */
  uint64_t code_bytes;
  uint64_t weight_bytes;
  uint64_t file_bytes; /* of a file with this variant alone, about */
} cuvil_variant_info;

/* 0 for models that were compiled in this process. */
CUVIL_API size_t cuvil_variant_count(const cuvil_model* model);
CUVIL_API cuvil_status cuvil_variant(const cuvil_model* model, size_t index, cuvil_variant_info* info);
/* "cuvil 0.1.0"; "" if unknown */
CUVIL_API const char* cuvil_producer(const cuvil_model* model);
CUVIL_API size_t cuvil_metadata_count(const cuvil_model* model);
/* Key and value number `index`; 0 if there is none. */
CUVIL_API int cuvil_metadata(const cuvil_model* model, size_t index, const char** key, const char** value);
/* Checks the weights against their checksums; the message names the damaged constants. */
CUVIL_API cuvil_status cuvil_verify_weights(const cuvil_model* model);

/* ---- contexts --------------------------------------------------------------------------------------------------- */

/*
 * num_threads: threads that a run uses at most, the caller included; 0 = CUVIL_NUM_THREADS, else the cores that
 * cgroup quota, cpuset and affinity allow. All contexts share one pool of threads.
 */
CUVIL_API cuvil_status cuvil_context_create(cuvil_model* model, int32_t num_threads, cuvil_context** context);
CUVIL_API void cuvil_context_destroy(cuvil_context* context);
CUVIL_API int32_t cuvil_context_threads(const cuvil_context* context);

/*
 * Allocates ahead all that runs with these input shapes, or any already reserved, need. shapes[i] has as many numbers
 * as input i has dimensions.
 */
CUVIL_API cuvil_status cuvil_reserve(cuvil_context* context, const int64_t* const* shapes, size_t count);

/*
 * Checks the inputs and works out the outputs' shapes without running. cuvil_output_dims then holds until the next
 * prepare, reserve or run; its array has as many numbers as the output has dimensions. NULL if there is no such output.
 * The dimensions of outputs whose shape depends on data (NonZero) are upper bounds until a run has finished.
 */
CUVIL_API cuvil_status cuvil_prepare(cuvil_context* context, const DLTensor* const* inputs, size_t count);
CUVIL_API const int64_t* cuvil_output_dims(const cuvil_context* context, size_t index);

/*
 * Runs into the caller's outputs: contiguous, of exactly the right shape and dtype, not overlapping each other.
 * Inputs are read in place if they are contiguous and do not overlap an output, else copied first.
 * Nothing is allocated after the first run, unless a shape needs more memory than any before.
 * An output whose shape depends on data cannot be given: use cuvil_run_alloc.
 */
CUVIL_API cuvil_status cuvil_run(cuvil_context* context, const DLTensor* const* inputs, size_t input_count,
                                 DLTensor* const* outputs, size_t output_count);
/* Runs into fresh memory (64-byte aligned). The caller owns each output and ends it by its deleter. All or none are
 * set. */
CUVIL_API cuvil_status cuvil_run_alloc(cuvil_context* context, const DLTensor* const* inputs, size_t input_count,
                                       DLManagedTensor** outputs, size_t output_count);

typedef struct cuvil_memory_info {
  int64_t arena_bytes;          /* of the last shape; intermediate tensors */
  int64_t arena_lower_bound;    /* largest sum of tensors alive at one step */
  int64_t arena_reserved_bytes; /* held by the context: the largest shape so far */
  int64_t scratch_bytes_per_thread;
  int64_t staging_bytes; /* copies of strided inputs */
  int64_t weight_bytes;  /* of the model, shared by its contexts */
  int64_t cached_plans;  /* shapes whose plan is kept */
} cuvil_memory_info;

CUVIL_API cuvil_status cuvil_memory(const cuvil_context* context, cuvil_memory_info* info);

typedef struct cuvil_step_profile {
  const char* label;    /* "conv1+relu" */
  const char* kernel;   /* symbol's base name, or the host operator's name */
  const char* location; /* "net.py:12 in forward (layer1.conv2) 'h'"; "" if unknown */
  int64_t runs;
  int64_t last_ns;
  int64_t total_ns;
} cuvil_step_profile;

/* Switches timing of every step on (and resets it) or off. Costs about 50 ns per step. */
CUVIL_API cuvil_status cuvil_profile_enable(cuvil_context* context, int enable);
CUVIL_API size_t cuvil_step_count(const cuvil_context* context);
CUVIL_API cuvil_status cuvil_step(const cuvil_context* context, size_t index, cuvil_step_profile* profile);

#ifdef __cplusplus
}
#endif
#endif /* CUVIL_RUNTIME_H_ */
