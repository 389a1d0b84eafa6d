"""Gathers, scatters, embeddings, and tensors made from nothing."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from cuvil import _core
from cuvil.torch.aten_elementwise import convert_to, where
from cuvil.torch.sizes import Size, product, simple
from cuvil.torch.table import Context, Tensor, aten, dtype_name, refuse, result_type

_LARGE = 1 << 24


def _index(c: Context, x: Tensor) -> Tensor:
    """An index in an element type that CIR takes."""
    if x.dtype in (torch.int64, torch.int32):
        return x
    return refuse(f"an index of {x.dtype}")


# ---- gathers
@aten("embedding")
def embedding(c: Context, weight: Tensor, indices: Tensor, *_: Any, **__: Any) -> Tensor:
    return c.emit("Gather", weight, _index(c, indices), axis=0)


@aten("index_select")
def index_select(c: Context, x: Tensor, dim: int, index: Tensor) -> Tensor:
    if x.rank == 0:
        return c.reshape(c.emit("Gather", c.reshape(x, [1]), c.reshape(_index(c, index), [1]), axis=0), [])
    flat = c.reshape(index, [product(index.shape)])
    return c.emit("Gather", x, _index(c, flat), axis=x.axis(dim))


@aten("gather")
def gather(c: Context, x: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    index = _index(c, index)
    if x.rank == 0 or index.rank == 0:
        y = c.emit("GatherElements", c.reshape(x, [product(x.shape)]), c.reshape(index, [product(index.shape)]), axis=0)
        return c.reshape(y, index.shape)
    return c.emit("GatherElements", x, index, axis=x.axis(dim))


@aten("take")
def take(c: Context, x: Tensor, index: Tensor) -> Tensor:
    return c.emit("Gather", c.reshape(x, [product(x.shape)]), _index(c, index), axis=0)


@aten("take_along_dim")
def take_along_dim(c: Context, x: Tensor, index: Tensor, dim: int | None = None) -> Tensor:
    if dim is None:
        return gather(c, c.reshape(x, [product(x.shape)]), 0, c.reshape(index, [product(index.shape)]))
    a = x.axis(dim)
    both = _broadcast([(*x.shape[:a], 1, *x.shape[a + 1 :]), (*index.shape[:a], 1, *index.shape[a + 1 :])])
    x = c.expand(x, [*both[:a], x.shape[a], *both[a + 1 :]])
    return gather(c, x, a, c.expand(index, [*both[:a], index.shape[a], *both[a + 1 :]]))


def _broadcast(shapes: Sequence[Sequence[Size]]) -> list[Size]:
    rank = max(len(s) for s in shapes)
    out: list[Size] = []
    for i in range(rank):
        sizes = [s[i - rank + len(s)] for s in shapes if i - rank + len(s) >= 0]
        big = [n for n in sizes if n != 1]
        out.append(big[0] if big else 1)
    return out


def _tuples(c: Context, x: Tensor, indices: Sequence[Tensor | None]) -> tuple[Tensor, Tensor, list[int]]:
    """x with the indexed axes in front, the indices as tuples of positions, and the order of x's axes."""
    axes = [i for i, t in enumerate(indices) if t is not None]
    given = [t for t in indices if t is not None]
    for t in given:
        if t.dtype in (torch.bool, torch.uint8):
            refuse("an index that is a mask: its result's size depends on values")
    given = [c.cast(_index(c, t), torch.int64) for t in given]
    shape = _broadcast([t.shape for t in given])
    order = [*axes, *[a for a in range(x.rank) if a not in axes]]
    parts = [c.reshape(c.expand(t, shape), [*shape, 1]) for t in given]
    tuples = parts[0] if len(parts) == 1 else c.emit("Concat", *parts, axis=len(shape))
    return c.transpose(x, order), tuples, order


@aten("index.Tensor", "_unsafe_index.Tensor")
def index(c: Context, x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    axes = [i for i, t in enumerate(indices) if t is not None]
    if not axes:
        return x
    if len(axes) == 1:
        t = indices[axes[0]]
        assert t is not None
        if t.dtype not in (torch.bool, torch.uint8):
            return c.emit("Gather", x, _index(c, t), axis=axes[0])
    front, tuples, _ = _tuples(c, x, indices)
    y = c.emit("GatherND", front, tuples)
    k = tuples.rank - 1
    if axes != list(range(axes[0], axes[0] + len(axes))) or axes[0] == 0:
        return y  # indices apart from each other: their axes come first
    a = axes[0]
    return c.transpose(y, [*range(k, k + a), *range(k), *range(k + a, y.rank)])


# ---- scatters
_REDUCTIONS = {"add": "add", "multiply": "mul", "sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


def _scatter(c: Context, x: Tensor, dim: int, index: Tensor, source: Tensor, reduction: str) -> Tensor:
    if x.dtype == torch.bool and reduction != "none":
        refuse("truth values that are added")
    index = _index(c, index)
    if x.rank == 0:
        flat = [c.reshape(t, [1]) for t in (x, index, source)]
        return c.reshape(c.emit("ScatterElements", *flat, axis=0, reduction=reduction), [])
    if index.rank == 0:
        index, source = c.reshape(index, [1]), c.reshape(source, [1])
    if list(source.shape) != list(index.shape):  # only the part that the index covers counts
        for a, n in enumerate(index.shape):
            source = c.slice(source, a, 0, n)
    return c.emit("ScatterElements", x, index, source, axis=x.axis(dim), reduction=reduction)


@aten("scatter")
def scatter(c: Context, x: Tensor, dim: int, index: Tensor, source: Any, *, reduce: str | None = None) -> Tensor:
    if not isinstance(source, Tensor):
        source = c.full(index.shape, source, x.dtype)
    return _scatter(c, x, dim, index, c.cast(source, x.dtype), _REDUCTIONS[reduce] if reduce else "none")


@aten("scatter_add")
def scatter_add(c: Context, x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    return _scatter(c, x, dim, index, source, "add")


@aten("scatter_reduce.two")
def scatter_reduce(
    c: Context, x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    if reduce == "mean":
        return _scatter_mean(c, x, dim, index, source, include_self)
    if reduce not in _REDUCTIONS:
        refuse(f"scatter_reduce with {reduce}")
    if not include_self:
        start = {"sum": 0, "prod": 1, "amax": -math.inf, "amin": math.inf}[reduce]
        if not x.is_float and reduce in ("amax", "amin"):
            limits = torch.iinfo(x.dtype)
            start = limits.min if reduce == "amax" else limits.max
        x = _scatter(c, x, dim, index, c.full(index.shape, start, x.dtype), "none")
    return _scatter(c, x, dim, index, source, _REDUCTIONS[reduce])


def _scatter_mean(c: Context, x: Tensor, dim: int, index: Tensor, source: Tensor, include_self: bool) -> Tensor:
    if not x.is_float:
        refuse("scatter_reduce with mean of integers")
    total = scatter_reduce(c, x, dim, index, source, "sum", include_self=include_self)
    ones = c.full(x.shape, 1.0 if include_self else 0.0, x.dtype)
    count = _scatter(c, ones, dim, index, c.full(index.shape, 1.0, x.dtype), "add")
    return c.emit("Div", total, c.emit("Max", count, c.scalar(1.0, x.dtype)))


def spread(c: Context, x: Tensor, dim: int, index: Tensor, shape: Sequence[Size]) -> Tensor:
    """A 1-d index along dim, for every element of `shape`."""
    a = x.axis(dim)
    flat = c.reshape(index, [product(index.shape), *[1] * (x.rank - 1 - a)])
    return c.expand(flat, shape)


@aten("index_add")
def index_add(c: Context, x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    if x.rank == 0:
        one = [c.reshape(t, [1]) for t in (x, index, source)]
        return c.reshape(index_add(c, one[0], 0, one[1], one[2], alpha=alpha), [])
    if source.rank == 0:
        source = c.reshape(source, [1])
    if alpha != 1:
        source = c.emit("Mul", source, c.scalar(alpha, source.dtype))
    return _scatter(c, x, dim, spread(c, x, dim, index, source.shape), source, "add")


@aten("index_copy")
def index_copy(c: Context, x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    if x.rank == 0:
        return c.reshape(source, [])
    if source.rank == 0:
        source = c.reshape(source, [1])
    return _scatter(c, x, dim, spread(c, x, dim, index, source.shape), source, "none")


@aten("index_fill")
def index_fill(c: Context, x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    if x.rank == 0:
        return c.tensor(value, x.dtype)
    a = x.axis(dim)
    shape = [*x.shape[:a], product(index.shape), *x.shape[a + 1 :]]
    return _scatter(c, x, dim, spread(c, x, dim, index, shape), c.expand(c.tensor(value, x.dtype), shape), "none")


@aten("index_put", "_unsafe_index_put", "_index_put_impl")
def index_put(
    c: Context, x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False, *_: Any
) -> Tensor:
    given = [t for t in indices if t is not None]
    values = c.cast(values, x.dtype)
    if given[0].dtype == torch.bool and len(given) == 1:
        one = all(n == 1 for n in values.shape)
        if not one or indices[0] is None:
            refuse("a mask as an index, unless one value is put everywhere")
        mask = c.reshape(given[0], [*given[0].shape, *[1] * (x.rank - given[0].rank)])
        value = c.reshape(values, [])
        if accumulate:
            value = c.emit("Add", x, value)
        return where(c, mask, value, x, x.dtype)
    front, tuples, order = _tuples(c, x, indices)
    k, axes = tuples.rank - 1, [i for i, t in enumerate(indices) if t is not None]
    shape = [*tuples.shape[:-1], *front.shape[len(axes) :]]
    together = axes == list(range(axes[0], axes[0] + len(axes)))
    if together and axes[0] > 0:  # values have the indices' axes where x has the indexed ones
        a = axes[0]
        there = [*shape[k : k + a], *shape[:k], *shape[k + a :]]
        values = c.expand(values, there)
        values = c.transpose(values, [*range(a, a + k), *range(a), *range(a + k, values.rank)])
    else:
        values = c.expand(values, shape)
    if accumulate and x.dtype == torch.bool:
        refuse("truth values that are added")
    y = c.emit("ScatterND", front, tuples, values, reduction="add" if accumulate else "none")
    return c.transpose(y, [order.index(i) for i in range(x.rank)])


@aten("one_hot")
def one_hot(c: Context, x: Tensor, classes: int = -1) -> Tensor:
    if classes < 1:
        refuse("one_hot without a number of classes")
    return c.emit("OneHot", x, c.constant(torch.tensor([0, 1])), depth=int(classes), axis=-1)


# ---- tensors from nothing
def _default(dtype: torch.dtype | None) -> torch.dtype:
    return dtype or torch.get_default_dtype()


def _on_cpu(options: dict[str, Any]) -> None:
    device = options.get("device")
    if device is not None and torch.device(device).type != "cpu":
        refuse(f"a tensor made on {device}")


def _made(c: Context, shape: Any, value: Any, dtype: torch.dtype, options: dict[str, Any]) -> Tensor:
    _on_cpu(options)
    dtype_name(dtype)
    return c.full(c.sizes(shape), value, dtype)


@aten("full")
def full(c: Context, shape: Any, value: Any, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    if isinstance(value, Tensor):
        return c.expand(convert_to(c, value, dtype or value.dtype), c.sizes(shape))
    return _made(c, shape, value, dtype or result_type(value), options)


def _constant_maker(name: str, value: int) -> None:
    @aten(name)
    def plain(c: Context, shape: Any, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
        return _made(c, shape, value, _default(dtype), options)

    @aten(f"{name}_like")
    def like(c: Context, x: Tensor, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
        return _made(c, x.shape, value, dtype or x.dtype, options)

    @aten(f"new_{name}")
    def new(c: Context, x: Tensor, shape: Any, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
        return _made(c, shape, value, dtype or x.dtype, options)


for _name, _value in (("zeros", 0), ("ones", 1), ("empty", 0)):  # nobody may rely on what `empty` holds
    _constant_maker(_name, _value)


@aten("empty_strided", "new_empty_strided", "empty_permuted")
def empty_strided(c: Context, *args: Any, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    shape, kept = (args[1], args[0].dtype) if isinstance(args[0], Tensor) else (args[0], torch.get_default_dtype())
    return _made(c, shape, 0, dtype or kept, options)


@aten("full_like")
def full_like(c: Context, x: Tensor, value: Any, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    if isinstance(value, Tensor):
        return c.expand(convert_to(c, value, dtype or x.dtype), x.shape)
    return _made(c, x.shape, value, dtype or x.dtype, options)


@aten("new_full")
def new_full(c: Context, x: Tensor, shape: Any, value: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    return _made(c, shape, value, dtype or x.dtype, options)


@aten("fill")
def fill(c: Context, x: Tensor, value: Any) -> Tensor:
    return c.expand(c.tensor(value, x.dtype), x.shape)


@aten("scalar_tensor")
def scalar_tensor(c: Context, value: Any, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    _on_cpu(options)
    return c.scalar(value, dtype or torch.get_default_dtype())


@aten("arange")
def arange(c: Context, *bounds: Any, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    _on_cpu(options)
    start, end, step = ((0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1))[:3]
    if "step" in options:
        step = options["step"]
    if all(isinstance(b, (int, float)) for b in (start, end, step)):
        values = torch.arange(start, end, step, dtype=dtype)
        return c.constant(values) if values.numel() <= _LARGE else refuse("arange of more than 2^24 elements")
    if any(isinstance(b, (float, torch.SymFloat)) for b in (start, end, step)):
        refuse("arange of symbolic numbers that are no integers")
    n = c.told(0)
    if n is None:
        d = simple(c.size(end) - _lift(c.size(start)))
        n = d if step == 1 else refuse("arange with a symbolic end and a step")
    y = c.positions(n)
    if step != 1:
        y = c.emit("Mul", y, c.scalar(step, torch.int64))
    if not (isinstance(start, int) and start == 0):
        y = c.emit("Add", y, c.scalar(start, torch.int64))
    return c.cast(y, dtype or torch.int64)


def _lift(d: Size) -> _core.Dim:
    return d if isinstance(d, _core.Dim) else _core.Dim(d)


@aten("prims::iota")
def iota(c: Context, length: Any, *, start: Any, step: Any, dtype: torch.dtype, **options: Any) -> Tensor:
    _on_cpu(options)
    y = c.positions(c.size(length))
    if step != 1:
        y = c.emit("Mul", y, c.scalar(step, torch.int64))
    if not (isinstance(start, int) and start == 0):
        y = c.emit("Add", y, c.scalar(start, torch.int64))
    return c.cast(y, dtype)


def _computed(name: str) -> None:
    """Operators on numbers alone: PyTorch computes them now."""

    @aten(name)
    def handler(c: Context, *args: Any, **options: Any) -> Tensor:
        _on_cpu(options)
        flat = [a for x in (*args, *options.values()) for a in (x if isinstance(x, (list, tuple)) else [x])]
        if any(isinstance(a, (torch.SymInt, torch.SymFloat, Tensor)) for a in flat):
            refuse(f"{name} of symbolic numbers")
        assert c.node is not None
        value = c.node.target(*args, **options)  # type: ignore[operator]
        return c.constant(value) if value.numel() <= _LARGE else refuse(f"{name} of more than 2^24 elements")


for _name in ("eye", "linspace", "logspace", "tril_indices", "triu_indices", "hann_window", "hamming_window",
              "blackman_window", "bartlett_window", "kaiser_window"):  # fmt: skip
    _computed(_name)
