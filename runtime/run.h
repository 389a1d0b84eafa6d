// One run of a context.
#pragma once

#include "runtime/model.h"

namespace cuvil::runtime {

/// Holds a context for one call; refused if another thread is in it.
class Claim {
 public:
  explicit Claim(cuvil_context* context);
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  bool refused() const { return context_ == nullptr; }
  cuvil_status status() const;

 private:
  cuvil_context* context_;
};

/// Runs all steps. context->pointers holds the memory of inputs and outputs.
cuvil_status run_steps(cuvil_context* context);

}  // namespace cuvil::runtime
