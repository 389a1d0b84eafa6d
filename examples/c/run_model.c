/* Runs a .cvl on inputs that count 0, 1/8, 2/8, ... and prints the outputs' first values: run_model MODEL
 * [SYMBOL=SIZE...] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuvil/runtime.h"

static void check(cuvil_status status) {
  if (status == CUVIL_OK) return;
  fprintf(stderr, "%s: %s\n", cuvil_status_name(status), cuvil_last_error());
  exit(1);
}

static void* need(void* memory) {
  if (!memory) {
    fprintf(stderr, "out of memory\n");
    exit(1);
  }
  return memory;
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

static DLDataType dlpack_type(cuvil_dtype dtype) {
  DLDataType type = {kDLFloat, (uint8_t)(8 * cuvil_dtype_size(dtype)), 1};
  if (dtype == CUVIL_BOOL) type.code = kDLBool;
  if (dtype >= CUVIL_I64 && dtype <= CUVIL_I8) type.code = kDLInt;
  if (dtype >= CUVIL_U64 && dtype <= CUVIL_U8) type.code = kDLUInt;
  return type;
}

static DLTensor* make_input(const cuvil_tensor_info* info, int argc, char** argv) {
  DLTensor* t = need(calloc(1, sizeof(*t)));
  int64_t count = 1;
  t->shape = need(calloc((size_t)info->ndim + 1, sizeof(int64_t)));
  for (int i = 0; i < info->ndim; ++i) count *= t->shape[i] = size_of(info, i, argc, argv);
  t->ndim = info->ndim;
  t->dtype = dlpack_type(info->dtype);
  t->device.device_type = kDLCPU;
  t->data = need(calloc((size_t)count + 1, cuvil_dtype_size(info->dtype)));
  if (info->dtype == CUVIL_F32)
    for (int64_t i = 0; i < count; ++i) ((float*)t->data)[i] = (float)(i % 64) / 8;
  return t;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    printf("usage: run_model MODEL.cvl [SYMBOL=SIZE...]   (cuvil %s)\n", cuvil_version());
    return 2;
  }
  cuvil_model* model;
  cuvil_context* context;
  check(cuvil_open_file(argv[1], NULL, &model));
  check(cuvil_context_create(model, 0, &context));

  const size_t inputs = cuvil_input_count(model), outputs = cuvil_output_count(model);
  const DLTensor** in = need(calloc(inputs + 1, sizeof(*in)));
  DLManagedTensor** out = need(calloc(outputs + 1, sizeof(*out)));
  for (size_t i = 0; i < inputs; ++i) in[i] = make_input(cuvil_input_info(model, i), argc, argv);
  check(cuvil_run_alloc(context, in, inputs, out, outputs));

  for (size_t i = 0; i < outputs; ++i) {
    const cuvil_tensor_info* info = cuvil_output_info(model, i);
    const DLTensor* t = &out[i]->dl_tensor;
    int64_t count = 1;
    printf("%s: %s[", info->name, cuvil_dtype_name(info->dtype));
    for (int d = 0; d < t->ndim; ++d) {
      printf("%s%lld", d ? ", " : "", (long long)t->shape[d]);
      count *= t->shape[d];
    }
    printf("]");
    if (info->dtype == CUVIL_F32)
      for (int64_t k = 0; k < count && k < 5; ++k) printf(" %g", ((const float*)t->data)[k]);
    printf("\n");
    out[i]->deleter(out[i]);
  }
  cuvil_context_destroy(context);
  cuvil_close(model);
  return 0;
}
