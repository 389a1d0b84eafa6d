// Symbolic integers: sizes of tensors, task counts, byte counts. An immutable value in canonical form, so that equal
// expressions compare equal: a sum of products of atoms; an atom is a symbol or floordiv/mod/min/max of Dims.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil {

class Dim {
 public:
  Dim() : Dim(0) {}
  Dim(int64_t value);  // NOLINT: a number is a Dim
  /// A named nonnegative unknown, e.g. a batch size. Names are [A-Za-z_][A-Za-z0-9_]*; equal names are equal symbols.
  static Dim symbol(std::string_view name);
  /// Reads what str() writes, e.g. "2*N+1", "floordiv(N, 2)", "ceildiv(H, 16)". Nullopt if malformed or overflowing.
  static std::optional<Dim> parse(std::string_view text);

  bool is_const() const;
  /// The value if it is_const().
  std::optional<int64_t> as_const() const;
  /// Shorthand for tests and schedules that have checked is_const(); throws an internal error otherwise.
  int64_t value() const;

  /// Canonical text; round-trips through parse().
  std::string str() const;
  /// Names of all symbols in it, sorted.
  std::vector<std::string> symbols() const;
  /// Replaces symbols by Dims.
  Dim substitute(const std::map<std::string, Dim>& values) const;
  /// Value for given symbols; nullopt if one is missing, a divisor is not positive, or int64 overflows.
  std::optional<int64_t> evaluate(const std::map<std::string, int64_t>& values) const;
  /// Lower bound known from "symbols are >= 0", or nullopt.
  std::optional<int64_t> lower_bound() const;
  /// Upper bound if there is one, e.g. 3 for mod(N, 4).
  std::optional<int64_t> upper_bound() const;
  /// True if this is known to be a multiple of n (n > 0).
  bool divisible_by(int64_t n) const;

  // Arithmetic throws ShapeError with the expression if a coefficient leaves int64, a constant divisor is not positive
  // or the expression grows out of bounds. A symbolic divisor is taken to be positive.
  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b);
  /// A total order for deterministic containers; has no arithmetic meaning.
  friend bool operator<(const Dim& a, const Dim& b);

  friend Dim floordiv(const Dim& a, const Dim& b);
  friend Dim mod(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);

  /// Visits the canonical tree: used by the converters to Kernel IR and to .cvl size programs.
  enum class Kind : uint8_t { constant, symbol, add, mul, floordiv, mod, min, max };
  struct View {
    Kind kind;
    int64_t value = 0;          // constant
    std::string_view name;      // symbol
    std::vector<Dim> operands;  // the rest; add, mul, min and max have two or more
  };
  View view() const;

 private:
  struct Node;
  friend struct DimImpl;
  explicit Dim(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

Dim floordiv(const Dim& a, const Dim& b);
Dim ceildiv(const Dim& a, const Dim& b);  ///< b a positive constant or symbol: floordiv(a + b - 1, b)
Dim mod(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);
/// a rounded up to a multiple of n.
Dim round_up(const Dim& a, int64_t n);

using Shape = std::vector<Dim>;
/// Product of all dimensions; 1 for a scalar.
Dim num_elements(const Shape& shape);
/// "[N, 3, 2*H]"
std::string to_string(const Shape& shape);
bool is_static(const Shape& shape);

}  // namespace cuvil
