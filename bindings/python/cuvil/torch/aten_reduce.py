"""Reductions, and what works along one axis."""

import math
from typing import Any

import torch

from cuvil.torch.aten_elementwise import binary, compare, convert_to, multiply, power, where
from cuvil.torch.sizes import Size, product
from cuvil.torch.table import Context, Tensor, aten, is_half, refuse


def reduce(c: Context, op: str, x: Tensor, axes: list[int], keepdim: bool) -> Tensor:
    """op over axes."""
    return c.emit(op, x, axes=axes, keepdims=int(keepdim))


def _sum_type(x: Tensor, dtype: torch.dtype | None) -> torch.dtype:
    return dtype or (x.dtype if x.is_float else torch.int64)


@aten("sum")
def sum_(c: Context, x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    return reduce(c, "ReduceSum", convert_to(c, x, _sum_type(x, dtype)), x.axes(dim), keepdim)


@aten("nansum")
def nansum(c: Context, x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    if x.is_float:
        x = where(c, c.emit("IsNaN", x), 0, x, x.dtype)
    return sum_(c, x, dim, keepdim, dtype=dtype)


@aten("mean")
def mean(c: Context, x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    dtype = dtype or x.dtype
    if not dtype.is_floating_point:
        refuse("the mean of integers")
    return reduce(c, "ReduceMean", c.cast(x, dtype), x.axes(dim), keepdim)


@aten("prod")
def prod(c: Context, x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    return reduce(c, "ReduceProd", convert_to(c, x, _sum_type(x, dtype)), x.axes(dim), keepdim)


def _extreme(aten_name: str, op: str, arg: str) -> None:
    @aten(f"a{aten_name}")
    def amax(c: Context, x: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
        return reduce(c, op, x, x.axes(dim), keepdim)

    @aten(f"{aten_name}.default")
    def whole(c: Context, x: Tensor) -> Tensor:
        return reduce(c, op, x, x.axes(None), False)

    @aten(f"{aten_name}.dim")
    def along(c: Context, x: Tensor, dim: int, keepdim: bool = False) -> Any:
        index = argument(c, x, dim, keepdim, op=arg) if c.wants(1) else None
        return reduce(c, op, x, [x.axis(dim)] if x.rank else [], keepdim), index

    @aten(f"arg{aten_name}")
    def argument(
        c: Context, x: Tensor, dim: int | None = None, keepdim: bool = False, *, op: str = arg
    ) -> Tensor:  # fmt: skip
        rank = x.rank
        if x.dtype == torch.bool:
            x = c.cast(x, torch.uint8)
        if rank == 0:
            return c.scalar(0, torch.int64)
        if dim is None:
            y = c.emit(op, c.reshape(x, [product(x.shape)]), axis=0, keepdims=0)
            return c.reshape(y, [1] * rank) if keepdim else y
        return c.emit(op, x, axis=x.axis(dim), keepdims=int(keepdim))


_extreme("max", "ReduceMax", "ArgMax")
_extreme("min", "ReduceMin", "ArgMin")


@aten("max.other", "min.other")
def extreme_of_two(c: Context, a: Tensor, b: Tensor) -> Tensor:
    return binary(c, "Max" if c.name == "aten::max" else "Min", a, b)


@aten("aminmax")
def aminmax(c: Context, x: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    axes = x.axes(dim)
    return reduce(c, "ReduceMin", x, axes, keepdim), reduce(c, "ReduceMax", x, axes, keepdim)


def _truth(aten_name: str, op: str) -> None:
    @aten(aten_name)
    def handler(c: Context, x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
        axes = x.axes(dim) if not (isinstance(dim, (list, tuple)) and not dim) else []
        y = reduce(c, op, c.cast(x, torch.bool), axes, keepdim)
        return c.cast(y, torch.uint8) if x.dtype == torch.uint8 else y


_truth("any", "ReduceMax")
_truth("all", "ReduceMin")


@aten("count_nonzero")
def count_nonzero(c: Context, x: Tensor, dim: Any = None) -> Tensor:
    return sum_(c, c.cast(x, torch.bool), dim)


# ---- moments
def _count(c: Context, x: Tensor, axes: list[int], correction: float, dtype: torch.dtype) -> Tensor:
    n: Size = product(x.shape[a] for a in axes)
    if isinstance(n, int):
        return c.scalar(max(0.0, n - correction), dtype)
    d = binary(c, "Sub", c.cast(c.emit("Sizes", values=[n], shape=[]), dtype), correction, dtype)
    return binary(c, "Max", d, 0.0, dtype)


def moments(c: Context, x: Tensor, dim: Any, correction: Any, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Variance and mean, in two passes; of half-precision in f32, not rounded yet."""
    x = c.cast(x, torch.float32) if is_half(x.dtype) else x
    axes = x.axes(dim)
    average = reduce(c, "ReduceMean", x, axes, True)
    d = c.emit("Sub", x, average)
    squares = reduce(c, "ReduceSum", c.emit("Mul", d, d), axes, keepdim)
    variance = c.emit("Div", squares, _count(c, x, axes, 1.0 if correction is None else float(correction), x.dtype))
    if not keepdim:
        average = reduce(c, "ReduceMean", x, axes, False)
    return variance, average


def _unbiased(dim: Any, unbiased: Any, correction: Any) -> tuple[Any, Any]:
    """var(x, unbiased) and var(x, dim, unbiased, keepdim) beside var(x, dim, *, correction, keepdim)."""
    if isinstance(dim, bool):
        return None, int(dim)
    if unbiased is not None:
        return dim, int(unbiased)
    return dim, correction


def _moment(aten_name: str, root: bool, both: bool) -> None:
    @aten(aten_name)
    def handler(
        c: Context, x: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
    ) -> Any:
        dim, correction = _unbiased(dim, unbiased, correction)
        variance, average = moments(c, x, dim, correction, keepdim)
        y = c.cast(c.emit("Sqrt", variance) if root else variance, x.dtype)
        return (y, c.cast(average, x.dtype)) if both else y


for _name, _root, _both in [("var", False, False), ("std", True, False), ("var_mean", False, True),
                            ("std_mean", True, True)]:  # fmt: skip
    _moment(_name, _root, _both)


# ---- norms
@aten("linalg_vector_norm")
def vector_norm(
    c: Context, x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    x = c.cast(x, dtype) if dtype is not None else x
    kept = x.dtype
    axes = x.axes(dim)
    if is_half(kept):
        x = c.cast(x, torch.float32)
    p = float(ord)
    if p == 2:
        y = reduce(c, "ReduceL2", x, axes, keepdim)
    elif p == 1:
        y = reduce(c, "ReduceL1", x, axes, keepdim)
    elif p == 0:
        y = reduce(c, "ReduceSum", c.cast(c.cast(x, torch.bool), x.dtype), axes, keepdim)
    elif math.isinf(p):
        y = reduce(c, "ReduceMax" if p > 0 else "ReduceMin", c.emit("Abs", x), axes, keepdim)
    else:
        total = reduce(c, "ReduceSum", power(c, c.emit("Abs", x), p), axes, keepdim)
        y = power(c, total, 1.0 / p)
    return c.cast(y, kept)


@aten("norm")
def norm(c: Context, x: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    return vector_norm(c, x, 2 if p is None else p, dim, keepdim, dtype=dtype)


@aten("dist")
def dist(c: Context, a: Tensor, b: Tensor, p: Any = 2) -> Tensor:
    return vector_norm(c, binary(c, "Sub", a, b), p)


# ---- along an axis
def softmax(c: Context, op: str, x: Tensor, dim: int, dtype: torch.dtype | None) -> Tensor:
    """Softmax or LogSoftmax."""
    x = c.cast(x, dtype) if dtype is not None else x
    if not x.is_float:
        refuse(f"{op} of integers")
    if x.rank == 0:
        return c.reshape(c.emit(op, c.reshape(x, [1]), axis=0), [])
    return c.emit(op, x, axis=x.axis(dim))


@aten("_softmax", "softmax", "special_softmax")
def softmax_(c: Context, x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    return softmax(c, "Softmax", x, dim, dtype if isinstance(dtype, torch.dtype) else None)


@aten("_log_softmax", "log_softmax", "special_log_softmax")
def log_softmax(c: Context, x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    return softmax(c, "LogSoftmax", x, dim, dtype if isinstance(dtype, torch.dtype) else None)


@aten("_safe_softmax")
def safe_softmax(c: Context, x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """0 where a whole row is masked."""
    y = softmax(c, "Softmax", x, dim, dtype)
    masked = reduce(c, "ReduceMin", compare(c, "Equal", x, -math.inf), [x.axis(dim)], True)
    return where(c, masked, 0.0, y, y.dtype)


@aten("logsumexp")
def logsumexp(c: Context, x: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    x = x if x.is_float else c.cast(x, torch.get_default_dtype())
    axes = x.axes(dim)
    y = reduce(c, "ReduceLogSumExp", x, axes, keepdim)
    high = reduce(c, "ReduceMax", x, axes, keepdim)  # of infinities
    return where(c, c.emit("IsInf", high), high, y)


@aten("cumsum")
def cumsum(c: Context, x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    x = convert_to(c, x, _sum_type(x, dtype))
    return x if x.rank == 0 else c.emit("CumSum", x, axis=x.axis(dim))


@aten("cumprod", "cummax", "cummin", "logcumsumexp")
def cumulative(c: Context, x: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    return refuse(f"{c.name.removeprefix('aten::')}: there is no such scan")


@aten("cosine_similarity")
def cosine_similarity(c: Context, a: Tensor, b: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    def length(x: Tensor) -> Tensor:
        return binary(c, "Max", reduce(c, "ReduceL2", x, [p.axis(dim)], True), float(eps))

    p = multiply(c, a, b)
    if a.rank != p.rank:
        a = c.expand(a, p.shape)
    if b.rank != p.rank:
        b = c.expand(b, p.shape)
    q = c.emit("Mul", c.emit("Div", a, length(a)), c.emit("Div", b, length(b)))
    return reduce(c, "ReduceSum", q, [p.axis(dim)], False)
