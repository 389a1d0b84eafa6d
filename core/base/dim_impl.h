// Representation of Dim, private to dim*.cpp: a sum of terms, a term being coefficient * product of atoms.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/base/dim.h"

namespace cuvil {

/// A closed interval; the extremes of int64 stand for "unbounded".
struct DimRange {
  static constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  int64_t lo = kMin;
  int64_t hi = kMax;
};

/// A symbol, or floordiv/mod/min/max of Dims.
struct DimAtom {
  Dim::Kind kind;
  std::string name;           ///< symbol
  std::vector<Dim> operands;  ///< the rest; those of min and max are sorted and at least two
  DimRange range;
  int64_t weight = 1;
};
using DimAtomPtr = std::shared_ptr<const DimAtom>;

struct DimTerm {
  int64_t coefficient = 0;          ///< never 0 in a node
  std::vector<DimAtomPtr> factors;  ///< sorted by compare(); empty: the constant term
};

/// Terms have pairwise different factors and are sorted: higher degree first, then by factors, the constant last.
struct Dim::Node {
  std::vector<DimTerm> terms;
  DimRange range;
  int64_t weight = 1;  ///< number of leaves of the whole tree: bounds the time of everything
};

struct DimImpl {
  static const std::vector<DimTerm>& terms(const Dim& d) { return d.node_->terms; }
  static DimRange range(const Dim& d) { return d.node_->range; }
  static int64_t weight(const Dim& d) { return d.node_->weight; }
  /// Sorts and merges terms. Throws ShapeError on overflow or if the result is too large.
  static Dim make(std::vector<DimTerm> terms);
  static Dim from_atom(DimAtom atom);
  /// -1, 0 or 1; a total order over canonical Dims.
  static int compare(const Dim& a, const Dim& b);
};

int compare(const DimAtom& a, const DimAtom& b);
/// floor(a / b) for b > 0.
inline int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace cuvil
