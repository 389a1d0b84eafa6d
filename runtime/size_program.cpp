#include "runtime/size_program.h"

#include "core/abi/abi.h"

namespace cuvil::runtime {

bool check_size_program(const cvl::SizeOp* ops, uint32_t count, uint32_t symbol_count, int64_t* highest) {
  uint32_t depth = 0;
  *highest = -1;
  for (uint32_t i = 0; i < count; ++i) {
    const int64_t operand = ops[i].operand();
    switch (ops[i].op()) {
      case CUVIL_EXPR_SYMBOL:
        if (operand < 0 || operand >= symbol_count) return false;
        if (operand > *highest) *highest = operand;
        [[fallthrough]];
      case CUVIL_EXPR_CONST:
        if (++depth > kMaxSizeStack) return false;
        break;
      case CUVIL_EXPR_ADD:
      case CUVIL_EXPR_MUL:
      case CUVIL_EXPR_FLOORDIV:
      case CUVIL_EXPR_MOD:
      case CUVIL_EXPR_MIN:
      case CUVIL_EXPR_MAX:
        if (depth < 2) return false;
        --depth;
        break;
      default:
        return false;
    }
  }
  return depth == 1;
}

SizeError run_size_program(const cvl::SizeOp* ops, uint32_t count, const int64_t* symbols, int64_t* value) {
  int64_t stack[kMaxSizeStack];
  uint32_t top = 0;  // number of values
  for (uint32_t i = 0; i < count; ++i) {
    const int64_t operand = ops[i].operand();
    const uint8_t op = ops[i].op();
    if (op == CUVIL_EXPR_CONST || op == CUVIL_EXPR_SYMBOL) {
      stack[top++] = op == CUVIL_EXPR_CONST ? operand : symbols[operand];
      continue;
    }
    const int64_t b = stack[--top];
    int64_t& a = stack[top - 1];
    switch (op) {
      case CUVIL_EXPR_ADD:
        if (__builtin_add_overflow(a, b, &a)) return SizeError::overflow;
        break;
      case CUVIL_EXPR_MUL:
        if (__builtin_mul_overflow(a, b, &a)) return SizeError::overflow;
        break;
      case CUVIL_EXPR_FLOORDIV:
        if (b <= 0) return SizeError::divisor;
        a = a / b - (a % b < 0);
        break;
      case CUVIL_EXPR_MOD:
        if (b <= 0) return SizeError::divisor;
        a = a % b < 0 ? a % b + b : a % b;
        break;
      case CUVIL_EXPR_MIN:
        a = b < a ? b : a;
        break;
      default:
        a = b > a ? b : a;
        break;
    }
  }
  *value = stack[0];
  return SizeError::none;
}

}  // namespace cuvil::runtime
