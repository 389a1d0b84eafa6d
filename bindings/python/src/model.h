// A model that runs: compiled in this process or loaded from a .cvl. Contexts wait in a pool for the next call.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bindings/python/src/bindings.h"

namespace cuvil::python {

/// A model and its idle contexts: a call takes one, so that threads may call at the same time.
class Model {
 public:
  Model(std::shared_ptr<driver::Executable> executable, int threads);
  Model(const std::string& path, int threads, bool inspect_only, bool verify);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model();

  nb::object call(const nb::args& args, const nb::kwargs& kwargs);
  nb::list ports(bool outputs) const;
  nb::dict memory();
  /// Runs with timing on; returns [(label, kernel, location, ns)] of the steps.
  nb::list profile(const nb::args& args, const nb::kwargs& kwargs);
  /// The kernels' labels, which name the operators fused in each.
  nb::list steps();
  nb::list variants() const;
  nb::dict metadata() const;
  void verify() const { check(cuvil_verify_weights(model_)); }
  int threads();
  cuvil_model* get() const { return model_; }

  /// A context for the duration of a call.
  class Lease {
   public:
    /// `threads`: at most this many, 0 = as the model was made.
    explicit Lease(Model& m, int threads = 0);
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease();
    cuvil_context* get() const { return idle_.context; }

   private:
    friend class Model;
    struct Idle {
      cuvil_context* context = nullptr;
      int threads = 0;
    };
    Model& model_;
    Idle idle_;
  };

 private:
  using AnyArray = nb::ndarray<nb::ro>;

  void bind_arguments(const nb::args& args, const nb::kwargs& kwargs, std::vector<nb::handle>& given) const;
  std::string names() const;
  AnyArray to_array(nb::handle h, size_t i, DLDataType* dtype) const;

  std::shared_ptr<driver::Executable> executable_;
  cuvil_model* owned_ = nullptr;
  cuvil_model* model_ = nullptr;
  int threads_;
  std::mutex mutex_;
  std::vector<Lease::Idle> idle_;
};

enum class Framework : uint8_t { numpy, torch };

/// An output as an array of a framework, which then owns it.
nb::object wrap_output(DLManagedTensor* t, Framework framework);

}  // namespace cuvil::python
