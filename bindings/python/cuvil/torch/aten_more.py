"""Order statistics, sampling, and composites of what the other tables have."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from cuvil.torch.aten_elementwise import binary, compare, multiply, power, where
from cuvil.torch.aten_index import scatter_reduce, spread
from cuvil.torch.aten_neural import matmul
from cuvil.torch.aten_reduce import reduce, vector_norm
from cuvil.torch.aten_shape import narrow, take
from cuvil.torch.sizes import Size, product
from cuvil.torch.table import Context, Tensor, aten, refuse


# ---- order
def _top(c: Context, x: Tensor, k: Size, axis: int, largest: bool) -> tuple[Tensor, Tensor]:
    if x.dtype == torch.bool:
        values, indices = c.emit_all("TopK", c.cast(x, torch.uint8), k=[k], axis=axis, largest=int(largest))
        return c.cast(values, torch.bool), indices
    values, indices = c.emit_all("TopK", x, k=[k], axis=axis, largest=int(largest))
    return values, indices


@aten("topk")
def topk(c: Context, x: Tensor, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    if x.rank == 0:
        return x, c.scalar(0, torch.int64)
    return _top(c, x, c.size(k), x.axis(dim), largest)


@aten("sort.default")
def sort(c: Context, x: Tensor, dim: int = -1, descending: bool = False) -> Any:
    if x.rank == 0:
        return x, c.scalar(0, torch.int64)
    a = x.axis(dim)
    return _top(c, x, x.shape[a], a, descending)


@aten("sort.stable")
def sort_stable(c: Context, x: Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False) -> Any:
    return sort(c, x, dim, descending)


@aten("argsort")
def argsort(c: Context, x: Tensor, dim: int = -1, descending: bool = False, **_: Any) -> Tensor:
    result: Tensor = sort(c, x, dim, descending)[1]
    return result


@aten("kthvalue")
def kthvalue(c: Context, x: Tensor, k: Any, dim: int = -1, keepdim: bool = False) -> Any:
    if x.rank == 0:
        return x, c.scalar(0, torch.int64)
    a, n = x.axis(dim), c.size(k)
    both = [c.slice(t, a, n - 1, 1) for t in _top(c, x, n, a, False)]
    return tuple(t if keepdim else take(c, t, a, 0) for t in both)


@aten("median.default", "nanmedian.default")
def median(c: Context, x: Tensor) -> Tensor:
    """The lower one; NaN if any is."""
    n = product(x.shape)
    if not isinstance(n, int) or n == 0 or c.name == "aten::nanmedian":
        refuse("a median of a symbolic number of elements, of none, or of those that are no NaN")
    values, _ = _top(c, c.reshape(x, [n]), (n + 1) // 2, 0, False)
    y = take(c, values, 0, (n + 1) // 2 - 1)
    if x.is_float:
        y = where(c, reduce(c, "ReduceMax", c.emit("IsNaN", x), x.axes(None), False), math.nan, y, x.dtype)
    return y


@aten("bucketize.Tensor")
def bucketize(c: Context, x: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    return _positions(c, c.reshape(x, [*x.shape, 1]), boundaries, out_int32, right)


@aten("searchsorted.Tensor")
def searchsorted(
    c: Context, sequence: Tensor, x: Tensor, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Any = None,
) -> Tensor:  # fmt: skip
    if sorter is not None:
        refuse("searchsorted with a sorter")
    if sequence.rank > 1:
        sequence = c.reshape(sequence, [*sequence.shape[:-1], 1, sequence.shape[-1]])
    return _positions(c, c.reshape(x, [*x.shape, 1]), sequence, out_int32, right or side == "right")


def _positions(c: Context, x: Tensor, sequence: Tensor, small: bool, right: bool) -> Tensor:
    """How many elements of the sequence come before x."""
    n = sequence.shape[-1]
    if not isinstance(n, int) or n > 4096:
        refuse("a search among more than 4096 elements, or a symbolic number of them")
    before = compare(c, "LessOrEqual" if right else "Less", sequence, x)
    if x.is_float:
        before = c.emit("Or", before, c.emit("IsNaN", x))
    dtype = torch.int32 if small else torch.int64
    return reduce(c, "ReduceSum", c.cast(before, dtype), [before.rank - 1], False)


# ---- sampling
@aten("grid_sampler_2d", "grid_sampler_3d", "grid_sampler")
def grid_sampler(c: Context, x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Tensor:
    return c.emit(
        "GridSample", x, grid, mode=("linear", "nearest", "cubic")[mode],
        padding=("zeros", "border", "reflection")[padding], align_corners=int(align_corners),
    )  # fmt: skip


@aten("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")
def upsample_antialiased(c: Context, x: Tensor, size: Any, align_corners: bool, *scales: Any) -> Tensor:
    """One matrix per axis: what PyTorch makes of the identity."""
    flat = [s for f in scales for s in (f if isinstance(f, (list, tuple)) else [f])]
    mode = "bilinear" if "bilinear" in c.name else "bicubic"
    for i, a in enumerate((2, 3)):
        n, want = x.known(a, "antialiased resizing"), c.told(a) if size is None else c.sizes(size)[i]
        if not isinstance(want, int) or align_corners or (any(s is not None for s in flat) and size is not None):
            refuse("antialiased resizing to a symbolic size, or by scales of its own")
        eye = torch.eye(n)[None, None]
        w = torch.nn.functional.interpolate(eye, size=(n, want), mode=mode, antialias=True)[0, 0].to(x.dtype)
        x = c.emit("MatMul", x, c.constant(w)) if a == 3 else c.emit("MatMul", c.constant(w.t().contiguous()), x)
    return x


# ---- products and distances
@aten("addbmm")
def addbmm(c: Context, x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    y = reduce(c, "ReduceSum", matmul(c, a, b), [0], False)
    y = y if alpha == 1 else binary(c, "Mul", y, alpha, y.dtype)
    if beta == 0:
        return y
    return c.emit("Add", x if beta == 1 else binary(c, "Mul", x, beta, x.dtype), y)


@aten("_trilinear")
def trilinear(
    c: Context, a: Tensor, b: Tensor, d: Tensor, expand1: Sequence[int], expand2: Sequence[int],
    expand3: Sequence[int], sumdim: Sequence[int], unroll_dim: int = 1,
) -> Tensor:  # fmt: skip
    def widen(t: Tensor, axes: Sequence[int]) -> Tensor:
        shape = list(t.shape)
        for axis in sorted(axes):
            shape.insert(axis, 1)
        return c.reshape(t, shape)

    y = c.emit("Mul", c.emit("Mul", widen(a, expand1), widen(b, expand2)), widen(d, expand3))
    return reduce(c, "ReduceSum", y, y.axes(list(sumdim)), False)


@aten("_cdist_forward")
def cdist(c: Context, a: Tensor, b: Tensor, p: float, mode: Any = None) -> Tensor:
    x = c.reshape(a, [*a.shape[:-1], 1, a.shape[-1]])
    y = c.reshape(b, [*b.shape[:-2], 1, *b.shape[-2:]])
    return vector_norm(c, c.emit("Sub", x, y), p, -1)


@aten("_pdist_forward")
def pdist(c: Context, x: Tensor, p: float = 2) -> Tensor:
    n = x.known(0, "pdist")
    i, j = torch.triu_indices(n, n, 1)
    first, second = (c.emit("Gather", x, c.constant(t.contiguous()), axis=0) for t in (i, j))
    return vector_norm(c, c.emit("Sub", first, second), p, -1)


# ---- elementwise
@aten("ldexp.Tensor")
def ldexp(c: Context, x: Tensor, other: Tensor) -> Tensor:
    return multiply(c, x, power(c, 2.0, other))


@aten("angle")
def angle(c: Context, x: Tensor) -> Tensor:
    dtype = x.dtype if x.is_float else torch.get_default_dtype()
    y = where(c, compare(c, "Less", x, 0), math.pi, 0.0, dtype)
    return where(c, c.emit("IsNaN", x), x, y) if x.is_float else y


# ---- parts
@aten("narrow_copy")
def narrow_copy(c: Context, x: Tensor, dim: int, start: Any, length: Any) -> Tensor:
    return narrow(c, x, dim, start, length)


@aten("diagonal_scatter")
def diagonal_scatter(c: Context, x: Tensor, part: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    a, b = x.axis(dim1), x.axis(dim2)
    rest = [i for i in range(x.rank) if i not in (a, b)]
    order = [a, b, *rest]
    n = part.known(part.rank - 1, "diagonal_scatter")
    rows = torch.arange(n) + max(0, -offset)
    where_ = torch.stack([rows, torch.arange(n) + max(0, offset)], 1)
    values = c.transpose(c.cast(part, x.dtype), [part.rank - 1, *range(part.rank - 1)])
    y = c.emit("ScatterND", c.transpose(x, order), c.constant(where_), values, reduction="none")
    return c.transpose(y, [order.index(i) for i in range(x.rank)])


@aten("masked_scatter")
def masked_scatter(c: Context, x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The source's elements, in order, where the mask is set."""
    mask = c.expand(c.cast(mask, torch.bool), x.shape)
    n = product(x.shape)
    if n == 0 or any(d == 0 for d in source.shape):
        return x
    set_ = c.reshape(mask, [n])
    place = c.emit("CumSum", c.cast(set_, torch.int64), axis=0, exclusive=1)
    place = where(c, set_, place, 0, torch.int64)
    values = c.emit("Gather", c.reshape(source, [product(source.shape)]), place, axis=0)
    return where(c, mask, c.reshape(values, x.shape), x, x.dtype)


@aten("index_reduce")
def index_reduce(
    c: Context, x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    if x.rank == 0:
        one = [c.reshape(t, [1]) for t in (x, index, source)]
        return c.reshape(index_reduce(c, one[0], 0, one[1], one[2], reduce, include_self=include_self), [])
    if source.rank == 0:
        source = c.reshape(source, [1])
    spread_index = spread(c, x, dim, index, source.shape)
    return scatter_reduce(c, x, dim, spread_index, source, reduce, include_self=include_self)
