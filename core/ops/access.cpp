#include "core/ops/access.h"

#include <algorithm>

#include "core/base/error.h"

namespace cuvil::ops {

using kernel::Expr;
namespace k = cuvil::kernel;

Expr DimBinder::operator()(const Dim& dim) {
  const Dim::View v = dim.view();
  switch (v.kind) {
    case Dim::Kind::constant:
      return Expr(v.value);
    case Dim::Kind::symbol: {
      auto [it, fresh] = dims_.try_emplace(std::string(v.name));
      if (fresh) it->second = builder_.dim(std::string(v.name));
      return it->second;
    }
    default:
      break;
  }
  Expr result = (*this)(v.operands[0]);
  for (size_t i = 1; i < v.operands.size(); ++i) {
    Expr next = (*this)(v.operands[i]);
    switch (v.kind) {
      case Dim::Kind::add:
        result = result + next;
        break;
      case Dim::Kind::mul:
        result = result * next;
        break;
      case Dim::Kind::floordiv:
        result = k::floordiv(result, next);
        break;
      case Dim::Kind::mod:
        result = result % next;
        break;
      case Dim::Kind::min:
        result = k::min(result, next);
        break;
      default:
        result = k::max(result, next);
        break;
    }
  }
  return result;
}

Dim to_dim(const Expr& expr) {
  CUVIL_CHECK(expr, "to_dim of a null expression");
  const auto arg = [&](size_t i) { return to_dim(expr->args[i]); };
  switch (expr->op) {
    case k::Op::const_int:
      return Dim(expr->int_value);
    case k::Op::var:
      return Dim::symbol(expr->variable->name);
    case k::Op::add:
      return arg(0) + arg(1);
    case k::Op::sub:
      return arg(0) - arg(1);
    case k::Op::mul:
      return arg(0) * arg(1);
    case k::Op::neg:
      return Dim(0) - arg(0);
    case k::Op::floordiv:
      return cuvil::floordiv(arg(0), arg(1));
    case k::Op::floormod:
      return cuvil::mod(arg(0), arg(1));
    case k::Op::min:
      return cuvil::min(arg(0), arg(1));
    case k::Op::max:
      return cuvil::max(arg(0), arg(1));
    default:
      throw_internal("operator '" + std::string(k::info(expr->op).name) + "' has no meaning in a size expression");
  }
}

// ---- Coords

Expr Coords::at(int a) const {
  const Expr& base = index[static_cast<size_t>(a)];
  if (a != axis || lanes == 1 || base.type().is_vector()) return base;
  return k::ramp(base, Expr(1), lanes);
}

Expr Coords::predicate() const {
  if (!where) return mask;
  const Expr all = k::broadcast(where, lanes);
  return mask ? mask & all : all;
}

Coords Coords::with(int a, Expr value) const {
  Coords c = *this;
  c.index[static_cast<size_t>(a)] = std::move(value);
  if (c.axis == a) c.axis = -1;
  return c;
}

Coords Coords::moved(int a, const Expr& factor, const Expr& offset) const {
  Coords c = *this;
  Expr& i = c.index[static_cast<size_t>(a)];
  if (a == axis && lanes > 1 && !factor.is_const_int(1)) {
    i = k::ramp(i * factor + offset, factor, lanes);
    c.axis = -1;
  } else {
    i = i * factor + offset;
  }
  return c;
}

Coords Coords::shifted(int a, const Expr& offset, bool blocked) const {
  const bool aligned = offset->op == k::Op::const_int && offset->int_value % lanes == 0;
  if (a != axis || !blocked || aligned) return moved(a, Expr(1), offset);
  return with(a, at(a) + offset);
}

Coords Coords::only(const Expr& condition) const {
  Coords c = *this;
  if (condition.type().is_vector())
    c.mask = mask ? mask & condition : condition;
  else
    c.where = where ? where & condition : condition;
  return c;
}

// ---- TensorAccess

TensorAccess TensorAccess::param(k::Builder& b, DimBinder& dims, std::string name, const ir::Type& type,
                                 k::Access access) {
  std::vector<Expr> shape;
  for (const Dim& d : type.layout.physical_shape(type.shape)) shape.push_back(dims(d));
  return {b.param(std::move(name), {type.dtype, 1}, std::move(shape), access), type};
}

std::vector<Expr> TensorAccess::physical(const std::vector<Expr>& index) const {
  const ir::Layout& layout = type_.layout;
  if (layout.is_plain()) return index;
  const size_t rank = index.size();
  // size[i]: elements of its axis that one step of block i covers; inner[a]: those of all blocks of axis a.
  std::vector<int64_t> size(layout.blocks.size()), inner(rank, 1);
  for (size_t i = layout.blocks.size(); i-- > 0;) {
    const ir::Layout::Block& block = layout.blocks[i];
    size[i] = inner[static_cast<size_t>(block.axis)];
    inner[static_cast<size_t>(block.axis)] *= block.size;
  }
  std::vector<Expr> result;
  for (size_t p = 0; p < rank; ++p) {
    const size_t a = layout.order.empty() ? p : static_cast<size_t>(layout.order[p]);
    result.push_back(inner[a] == 1 ? index[a] : k::floordiv(index[a], Expr(inner[a])));
  }
  for (size_t i = 0; i < layout.blocks.size(); ++i) {
    const ir::Layout::Block& block = layout.blocks[i];
    Expr x = index[static_cast<size_t>(block.axis)];
    if (size[i] != 1) x = k::floordiv(x, Expr(size[i]));
    result.push_back(x % Expr(static_cast<int64_t>(block.size)));
  }
  return result;
}

bool TensorAccess::contiguous(int axis, int lanes) const {
  const ir::Layout& layout = type_.layout;
  if (!layout.blocks.empty()) return layout.blocks.back().axis == axis && layout.blocks.back().size % lanes == 0;
  return axis == (layout.order.empty() ? type_.rank() - 1 : layout.order.back());
}

namespace {
/// Physical indices for a vector access: scalar for a contiguous run, else with vectors; `runs` tells which.
std::vector<Expr> vector_indices(const TensorAccess& t, const Coords& at, bool& runs, bool& varies) {
  bool vectors = false;
  for (const Expr& i : at.index) vectors = vectors || i.type().is_vector();
  varies = vectors || at.axis >= 0;
  runs = at.axis >= 0 && !vectors && t.contiguous(at.axis, at.lanes);
  if (runs || !varies) return t.physical(at.index);
  std::vector<Expr> index = at.index;
  if (at.axis >= 0) index[static_cast<size_t>(at.axis)] = at.at(at.axis);
  return t.physical(index);
}
/// A gather's indices all have the access's lanes.
void broadcast_all(std::vector<Expr>& indices, int lanes) {
  for (Expr& i : indices)
    if (!i.type().is_vector()) i = k::broadcast(i, lanes);
}
}  // namespace

Expr TensorAccess::load(const Coords& at) const {
  CUVIL_CHECK(static_cast<int>(at.index.size()) == type_.rank(), "coordinates of another rank than the tensor");
  if (at.lanes == 1) return k::load(buffer_, physical(at.index), 1, at.predicate());
  bool runs = false, varies = false;
  std::vector<Expr> indices = vector_indices(*this, at, runs, varies);
  // A vector of equal positions is one scalar; only `where` may turn it off, since a lane mask says nothing of it.
  if (!varies) return k::broadcast(k::load(buffer_, std::move(indices), 1, at.where), at.lanes);
  if (!runs) broadcast_all(indices, at.lanes);
  return k::load(buffer_, std::move(indices), at.lanes, at.predicate());
}

void TensorAccess::store(k::Builder& b, const Coords& at, Expr value) const {
  CUVIL_CHECK(static_cast<int>(at.index.size()) == type_.rank(), "coordinates of another rank than the tensor");
  if (at.lanes == 1) {
    b.store(buffer_, physical(at.index), std::move(value), at.predicate());
    return;
  }
  bool runs = false, varies = false;
  std::vector<Expr> indices = vector_indices(*this, at, runs, varies);
  CUVIL_CHECK(varies, "a vector store needs an axis");
  if (!value.type().is_vector()) value = k::broadcast(value, at.lanes);
  if (!runs) broadcast_all(indices, at.lanes);
  b.store(buffer_, std::move(indices), std::move(value), at.predicate());
}

Coords broadcast_coords(const Coords& at, const Shape& result, const Shape& operand) {
  CUVIL_CHECK(at.index.size() == result.size() && operand.size() <= result.size(), "operand of a higher rank");
  if (result == operand) return at;
  Coords c = at;
  const size_t shift = result.size() - operand.size();
  c.index.assign(at.index.begin() + static_cast<std::ptrdiff_t>(shift), at.index.end());
  c.axis = at.axis - static_cast<int>(shift);
  for (size_t i = 0; i < operand.size(); ++i) {
    if (operand[i] == result[i + shift] || operand[i].as_const() != 1) continue;
    c.index[i] = Expr(0);
    if (c.axis == static_cast<int>(i)) c.axis = -1;
  }
  if (c.axis < 0) c.axis = -1;
  return c;
}

Coords drop_axes(const Coords& at, const std::vector<int>& axes) {
  Coords c = at;
  c.index.clear();
  c.axis = -1;
  for (int a = 0; a < static_cast<int>(at.index.size()); ++a) {
    if (std::find(axes.begin(), axes.end(), a) != axes.end()) continue;
    if (a == at.axis) c.axis = static_cast<int>(c.index.size());
    c.index.push_back(at.index[static_cast<size_t>(a)]);
  }
  return c;
}

}  // namespace cuvil::ops
