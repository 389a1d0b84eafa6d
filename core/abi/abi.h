/* What compiler and runtime agree on. Plain C: the runtime, generated code and other languages read it. */
#ifndef CUVIL_CORE_ABI_ABI_H_
#define CUVIL_CORE_ABI_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One error enum for the whole project; docs/errors.md maps it to Python exceptions and C return codes. */
typedef enum cuvil_status {
  CUVIL_OK = 0,
  CUVIL_MODEL_ERROR = 1,       /* the model is malformed */
  CUVIL_UNSUPPORTED_ERROR = 2, /* the model is fine, Cuvil cannot do it (yet) */
  CUVIL_SHAPE_ERROR = 3,       /* shapes or dtypes of inputs do not fit */
  CUVIL_ARTIFACT_ERROR = 4,    /* a .cvl file is damaged, foreign or cannot be loaded */
  CUVIL_TARGET_ERROR = 5,      /* this machine lacks what the code needs */
  CUVIL_INTERNAL_ERROR = 6     /* our bug */
} cuvil_status;

/* Element types. The numbers are stored in .cvl files: append only. */
typedef enum cuvil_dtype {
  CUVIL_F32 = 0,
  CUVIL_F64 = 1,
  CUVIL_F16 = 2,
  CUVIL_BF16 = 3,
  CUVIL_I64 = 4,
  CUVIL_I32 = 5,
  CUVIL_I16 = 6,
  CUVIL_I8 = 7,
  CUVIL_U64 = 8,
  CUVIL_U32 = 9,
  CUVIL_U16 = 10,
  CUVIL_U8 = 11,
  CUVIL_BOOL = 12
} cuvil_dtype;

/*
 * One phase of a kernel: runs the tasks [task_begin, task_end).
 *   buffers  pointers in the kernel's parameter order; outputs and workspaces are cast from const
 *   dims     values of the kernel's symbolic dimensions, in declaration order
 *   scratch  per-thread memory, 64-byte aligned, of the size that the kernel asks for
 * Phases of one kernel run one after the other with a barrier in between; tasks of one phase are independent.
 * Returns 0, or a nonzero code the kernel reports (out-of-range index in a checked gather, ...).
 * Kernels import no symbol: no libc, no libm.
 */
typedef int32_t (*cuvil_kernel_fn)(const void* const* buffers, const int64_t* dims, int64_t task_begin,
                                   int64_t task_end, void* scratch);

/* Codes a kernel may return. */
#define CUVIL_KERNEL_INDEX_OUT_OF_RANGE 1
#define CUVIL_KERNEL_BROKEN 2 /* the interpreter found an access outside a buffer, or of memory never written */

/*
 * Arena buffers, constants and scratch start at a multiple of this many bytes (plus the byte offset that the plan gives
 * an argument or a view). Inputs and outputs are the caller's memory: a kernel may assume the alignment of their
 * element type only.
 */
#define CUVIL_ALIGNMENT 64

/* Instruction-set architectures of a variant of a .cvl. Append only. */
typedef enum cuvil_arch { CUVIL_ARCH_X86_64 = 0, CUVIL_ARCH_AARCH64 = 1 } cuvil_arch;

/* Instruction-set features a variant of a .cvl may need, as bits of cvl.fbs Variant.features. Append only. */
typedef enum cuvil_feature {
  CUVIL_FEATURE_AVX2 = 0,   /* x86-64-v3: AVX2, FMA, BMI, F16C */
  CUVIL_FEATURE_AVX512 = 1, /* x86-64-v4: F, BW, CD, DQ, VL */
  CUVIL_FEATURE_VNNI = 2,
  CUVIL_FEATURE_AVX512_FP16 = 3,
  CUVIL_FEATURE_AVX512_BF16 = 4,
  CUVIL_FEATURE_NEON = 16, /* armv8-a */
  CUVIL_FEATURE_DOTPROD = 17,
  CUVIL_FEATURE_I8MM = 18,
  CUVIL_FEATURE_FP16 = 19,
  CUVIL_FEATURE_BF16 = 20,
  CUVIL_FEATURE_SVE = 21
} cuvil_feature;

/* Opcodes of a size expression: postfix over int64, the symbols' values given. Append only. */
typedef enum cuvil_expr_op {
  CUVIL_EXPR_CONST = 0,  /* operand: the value */
  CUVIL_EXPR_SYMBOL = 1, /* operand: the symbol's number */
  CUVIL_EXPR_ADD = 2,
  CUVIL_EXPR_MUL = 3,
  CUVIL_EXPR_FLOORDIV = 4, /* divisor positive, else the program fails */
  CUVIL_EXPR_MOD = 5,
  CUVIL_EXPR_MIN = 6,
  CUVIL_EXPR_MAX = 7
} cuvil_expr_op;

#ifdef __cplusplus
}
#endif
#endif /* CUVIL_CORE_ABI_ABI_H_ */
