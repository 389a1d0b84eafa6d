#include "core/kernel/intern.h"

#include <bit>

namespace cuvil::kernel {

size_t Interner::Hash::operator()(const Expr& e) const {
  uint64_t h = static_cast<uint64_t>(e->op) * 0x9e3779b97f4a7c15u;
  const auto mix = [&h](uint64_t v) { h = (std::rotl(h, 5) ^ v) * 0x9e3779b97f4a7c15u; };
  mix(static_cast<uint64_t>(e->type.dtype) << 16 | e->type.lanes);
  mix(static_cast<uint64_t>(e->int_value));
  mix(std::bit_cast<uint64_t>(e->float_value));
  mix(reinterpret_cast<uintptr_t>(e->variable.get()));
  mix(reinterpret_cast<uintptr_t>(e->buffer.get()));
  for (const Expr& a : e->args) mix(reinterpret_cast<uintptr_t>(a.get()));
  return h ^ h >> 32;
}

bool Interner::Same::operator()(const Expr& a, const Expr& b) const {
  if (a.get() == b.get()) return true;
  if (a->op != b->op || !(a->type == b->type) || a->args.size() != b->args.size() || a->int_value != b->int_value ||
      std::bit_cast<uint64_t>(a->float_value) != std::bit_cast<uint64_t>(b->float_value) ||
      a->variable != b->variable || a->buffer != b->buffer || a->has_mask != b->has_mask || a->lanes != b->lanes)
    return false;
  for (size_t i = 0; i < a->args.size(); ++i)
    if (a->args[i].get() != b->args[i].get()) return false;
  return true;
}

Expr Interner::operator()(const Expr& e) {
  const auto [it, fresh] = known_.try_emplace(e, static_cast<int>(known_.size()));
  if (fresh) ids_[it->first.get()] = it->second;
  return it->first;
}

}  // namespace cuvil::kernel
