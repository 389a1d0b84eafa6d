"""Views, copies, joins and pads. Memory is CIR's business: views become plain data movement that passes remove."""

import sys
from collections.abc import Sequence
from typing import Any

import torch

from cuvil import _core
from cuvil.torch.aten_elementwise import convert_to
from cuvil.torch.sizes import Size, product, simple
from cuvil.torch.table import Context, Tensor, aten, refuse, result_type


@aten(
    "alias", "clone", "contiguous", "detach", "lift", "lift_fresh", "lift_fresh_copy", "alias_copy", "detach_copy",

)  # fmt: skip
def same(c: Context, x: Tensor, **_: Any) -> Tensor:
    return x


@aten("copy")
def copy(c: Context, x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    return c.expand(convert_to(c, source, x.dtype), x.shape)


def _wanted(c: Context, shape: Any, total: Size) -> list[Size]:
    """A shape with -1 resolved."""
    out = c.sizes(shape)
    if -1 in [d for d in out if isinstance(d, int)]:
        rest = product(d for d in out if not (isinstance(d, int) and d == -1))
        if rest == 0:
            left: Size = 0
        elif isinstance(total, int) and isinstance(rest, int):
            left = total // rest
        else:
            left = simple((total if isinstance(total, _core.Dim) else _core.Dim(total)) // rest)
        out = [left if isinstance(d, int) and d == -1 else d for d in out]
    return out


@aten("view", "_unsafe_view", "reshape", "view_copy", "_reshape_copy")
def view(c: Context, x: Tensor, shape: Any) -> Tensor:
    if isinstance(shape, torch.dtype):
        refuse("memory seen as another element type")
    return c.reshape(x, _wanted(c, shape, product(x.shape)))


@aten("_reshape_alias")
def reshape_alias(c: Context, x: Tensor, shape: Any, stride: Any) -> Tensor:
    return view(c, x, shape)


@aten("flatten.using_ints")
def flatten(c: Context, x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    if x.rank == 0:
        return c.reshape(x, [1])
    a, b = x.axis(start_dim), x.axis(end_dim)
    return c.reshape(x, [*x.shape[:a], product(x.shape[a : b + 1]), *x.shape[b + 1 :]])


@aten("unflatten.int")
def unflatten(c: Context, x: Tensor, dim: int, sizes: Any) -> Tensor:
    a = x.axis(dim)
    return c.reshape(x, [*x.shape[:a], *_wanted(c, sizes, x.shape[a]), *x.shape[a + 1 :]])


@aten("squeeze", "squeeze_copy")
def squeeze(c: Context, x: Tensor, dim: Any = None) -> Tensor:
    axes = x.axes(dim) if not (isinstance(dim, (list, tuple)) and not dim) else []
    return c.reshape(x, [n for a, n in enumerate(x.shape) if not (a in axes and isinstance(n, int) and n == 1)])


@aten("unsqueeze", "unsqueeze_copy")
def unsqueeze(c: Context, x: Tensor, dim: int) -> Tensor:
    a = dim % (x.rank + 1)
    return c.reshape(x, [*x.shape[:a], 1, *x.shape[a:]])


@aten("permute", "permute_copy")
def permute(c: Context, x: Tensor, dims: Sequence[int]) -> Tensor:
    return c.transpose(x, [x.axis(d) for d in dims])


@aten("transpose.int", "swapaxes", "transpose_copy", "swapdims")
def transpose(c: Context, x: Tensor, a: int, b: int) -> Tensor:
    if x.rank == 0:
        return x
    perm = list(range(x.rank))
    i, j = x.axis(a), x.axis(b)
    perm[i], perm[j] = j, i
    return c.transpose(x, perm)


@aten("t", "t_copy")
def t(c: Context, x: Tensor) -> Tensor:
    return c.transpose(x, [1, 0]) if x.rank == 2 else x


@aten("numpy_T", "matrix_H", "mT", "mH")
def reversed_axes(c: Context, x: Tensor) -> Tensor:
    if c.name == "aten::numpy_T":
        return c.transpose(x, list(range(x.rank))[::-1])
    return transpose(c, x, -2, -1)


@aten("movedim.int", "moveaxis.int")
def movedim(c: Context, x: Tensor, source: int, destination: int) -> Tensor:
    order = [a for a in range(x.rank) if a != x.axis(source)]
    order.insert(x.axis(destination), x.axis(source))
    return c.transpose(x, order)


@aten("expand", "broadcast_to", "expand_copy")
def expand(c: Context, x: Tensor, sizes: Any, *, implicit: bool = False) -> Tensor:
    wanted = c.sizes(sizes)
    front = len(wanted) - x.rank
    return c.expand(x, [x.shape[i - front] if isinstance(d, int) and d == -1 else d for i, d in enumerate(wanted)])


@aten("expand_as")
def expand_as(c: Context, x: Tensor, other: Tensor) -> Tensor:
    return c.expand(x, other.shape)


@aten("view_as", "reshape_as")
def view_as(c: Context, x: Tensor, other: Tensor) -> Tensor:
    return c.reshape(x, other.shape)


@aten("as_strided", "as_strided_copy")
def as_strided(c: Context, x: Tensor, size: Any, stride: Any, storage_offset: Any = None) -> Tensor:
    """Of a tensor whose memory is in order: a plain view, or gathered elements."""
    want, strides = c.sizes(size), c.sizes(stride)
    val = c.node.args[0].meta["val"] if c.node is not None and isinstance(c.node.args[0], torch.fx.Node) else None
    if not isinstance(val, torch.Tensor) or not val.is_contiguous() or val.storage_offset() != 0:
        refuse("as_strided of a tensor that is a view itself")
    begin = c.size(storage_offset or 0)
    row: Size = 1
    plain = begin == 0
    for n, s in zip(reversed(want), reversed(strides), strict=True):
        plain = plain and (n == 1 or s == row)
        row = simple(row * n)
    total = product(x.shape)
    if plain and row == total:
        return c.reshape(x, want)
    known = [n for n in (*want, *strides, begin) if isinstance(n, int)]
    if len(known) != 2 * len(want) + 1 or not isinstance(row, int) or row > 1 << 20:
        refuse("as_strided with symbolic sizes, or of many elements")
    index = torch.full([], known[-1], dtype=torch.int64)
    for n, s in zip(known[: len(want)], known[len(want) : -1], strict=True):
        index = index[..., None] + torch.arange(n) * s
    if row and isinstance(total, int) and int(index.max()) >= total:
        refuse("as_strided beyond the tensor's elements")
    return c.emit("Gather", c.reshape(x, [total]), c.constant(index), axis=0)


# ---- parts
def _bound(c: Context, v: Any, n: Size, fallback: Size) -> Size:
    if v is None:
        return fallback
    d = c.size(v)
    if isinstance(d, int):
        if d >= sys.maxsize or d == 2**31 - 1:
            return n
        if isinstance(n, int):
            return max(0, min(n, d + n if d < 0 else d))
        if d < 0:
            return simple(_core.dim_max(n + d, 0))
        return simple(_core.dim_min(n, d))
    if (d.lower_bound is None or d.lower_bound < 0) and not _seen_nonnegative(v):
        return simple(_core.dim_max(n + d, 0))
    return d if d == n else simple(_core.dim_min(n, d))


def _seen_nonnegative(v: Any) -> bool:
    """By PyTorch's hint for a SymInt: it traced with this sign, and guards on it."""
    if isinstance(v, torch.SymInt):
        hint = v.node.hint
        return hint is not None and int(hint) >= 0
    return True


@aten("slice.Tensor", "slice_copy")
def slice_(c: Context, x: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    a = x.axis(dim)
    n = x.shape[a]
    begin, stop = _bound(c, start, n, 0), _bound(c, end, n, n)
    size = simple(stop - begin)
    if isinstance(size, int):
        size = max(0, -(-size // step))
    else:
        size = simple((size + (step - 1)) // step) if step != 1 else size
        told = c.told(a)  # PyTorch may know more of it than the bounds say
        size = told if told is not None else simple(_core.dim_max(size, 0))
        if start is not None and isinstance(c.size(start), int) and not isinstance(begin, int):
            first = int(start)
            begin = first if first >= 0 else simple(n + first)
    return c.slice(x, a, begin, size, int(step))


@aten("narrow")
def narrow(c: Context, x: Tensor, dim: int, start: Any, length: Any) -> Tensor:
    a = x.axis(dim)
    s = c.size(start)
    if isinstance(s, int) and s < 0:
        s = simple(x.shape[a] + s)
    return c.slice(x, a, s, c.size(length))


def take(c: Context, x: Tensor, axis: int, index: Size) -> Tensor:
    """x[..., index, ...], without the axis."""
    y = c.slice(x, axis, index, 1)
    return c.reshape(y, [*x.shape[:axis], *x.shape[axis + 1 :]])


@aten("select.int", "select_copy")
def select(c: Context, x: Tensor, dim: int, index: Any) -> Tensor:
    a = x.axis(dim)
    i = c.size(index)
    if isinstance(i, int):
        i = simple(x.shape[a] + i) if i < 0 else i
    elif not _seen_nonnegative(index):
        i = simple(x.shape[a] + i)
    return take(c, x, a, i)


@aten("unbind.int", "unbind_copy")
def unbind(c: Context, x: Tensor, dim: int = 0) -> Any:
    a = x.axis(dim)
    return [take(c, x, a, i) for i in range(x.known(a, "unbind"))]


@aten("split_with_sizes", "split.sizes", "split_with_sizes_copy")
def split_with_sizes(c: Context, x: Tensor, sizes: Any, dim: int = 0) -> Any:
    a = x.axis(dim)
    at: Size = 0
    parts = []
    for n in c.sizes(sizes):
        parts.append(c.slice(x, a, at, n))
        at = simple(at + n)
    return parts


@aten("split.Tensor", "split_copy")
def split(c: Context, x: Tensor, each: Any, dim: int = 0) -> Any:
    a = x.axis(dim)
    n, k = x.shape[a], c.size(each)
    if isinstance(n, int) and isinstance(k, int):
        if k == 0:
            return [x]
        return split_with_sizes(c, x, [min(k, n - i) for i in range(0, max(n, 1), k)], a)
    told = c.node.meta.get("val") if c.node is not None else None
    if not isinstance(told, (list, tuple)):
        refuse(f"a split of an axis of symbolic size {n}")
    return split_with_sizes(c, x, [part.shape[a] for part in told], a)


@aten("chunk")
def chunk(c: Context, x: Tensor, chunks: int, dim: int = 0) -> Any:
    n = x.shape[x.axis(dim)]
    if not isinstance(n, int):
        return split(c, x, 0, dim)
    return split(c, x, max(1, -(-n // chunks)), dim)


@aten("flip")
def flip(c: Context, x: Tensor, dims: Sequence[int]) -> Tensor:
    for d in dims:
        a = x.axis(d)
        if x.rank and x.shape[a] != 0:
            x = c.slice(x, a, simple(x.shape[a] - 1), x.shape[a], -1)
    return x


@aten("fliplr", "flipud")
def flip_one(c: Context, x: Tensor) -> Tensor:
    return flip(c, x, [1 if c.name == "aten::fliplr" else 0])


@aten("roll")
def roll(c: Context, x: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    shifts = [shifts] if isinstance(shifts, (int, torch.SymInt)) else list(shifts)
    dims = [dims] if isinstance(dims, int) else list(dims or [])
    if not dims:
        return c.reshape(roll(c, c.reshape(x, [product(x.shape)]), shifts, [0]), x.shape)
    for s, d in zip(shifts, dims, strict=True):
        a = x.axis(d)
        n = x.shape[a]
        k = c.size(s)
        if n == 0 or x.rank == 0:
            continue
        if isinstance(n, int) and isinstance(k, int):
            k = k % n
            if k == 0:
                continue
        elif isinstance(k, int):
            k = k if k >= 0 else simple(n + k)
        if isinstance(k, int) and k == 0:
            continue
        x = cat(c, [c.slice(x, a, simple(n - k), k), c.slice(x, a, 0, simple(n - k))], a)
    return x


# ---- joins
@aten("cat", "concat", "concatenate")
def cat(c: Context, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    dtype = result_type(*tensors)
    # PyTorch passes over empty 1-d tensors.
    parts = [x for x in tensors if not (x.rank == 1 and x.shape[0] == 0 and any(y.rank > 1 for y in tensors))]
    parts = [c.cast(x, dtype) for x in parts]
    a = parts[0].axis(dim)
    if len(parts) == 1:
        return parts[0]
    return c.emit("Concat", *parts, axis=a)


@aten("stack")
def stack(c: Context, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    a = dim % (tensors[0].rank + 1)
    return cat(c, [unsqueeze(c, x, a) for x in tensors], a)


@aten("repeat", "tile")
def repeat(c: Context, x: Tensor, repeats: Any) -> Tensor:
    times = c.sizes(repeats)
    front = len(times) - x.rank
    if front < 0:
        times, front = [*[1] * -front, *times], 0
    if front > 0:
        x = c.reshape(x, [*[1] * front, *x.shape])
    if all(isinstance(n, int) for n in times):
        return x if all(n == 1 for n in times) else c.emit("Tile", x, repeats=times)
    if any(n == 0 for n in x.shape):
        refuse("an empty tensor repeated a symbolic number of times")
    inner: list[Size] = []
    outer: list[Size] = []
    for n, size in zip(times, x.shape, strict=True):
        inner += [1, size]
        outer += [n, size]
    y = c.expand(c.reshape(x, inner), outer)
    return c.reshape(y, [simple(n * size) for n, size in zip(times, x.shape, strict=True)])


@aten("repeat_interleave.self_int")
def repeat_interleave(c: Context, x: Tensor, repeats: Any, dim: int | None = None, **_: Any) -> Tensor:
    if dim is None:
        x, dim = c.reshape(x, [product(x.shape)]), 0
    a = x.axis(dim)
    n = c.size(repeats)
    y = c.expand(c.reshape(x, [*x.shape[: a + 1], 1, *x.shape[a + 1 :]]), [*x.shape[: a + 1], n, *x.shape[a + 1 :]])
    return c.reshape(y, [*x.shape[:a], simple(x.shape[a] * n), *x.shape[a + 1 :]])


# ---- pads
def _pad(c: Context, x: Tensor, pads: Any, mode: str, value: Any = 0.0) -> Tensor:
    """PyTorch's pads: of the last axis first, before and behind."""
    p = c.sizes(pads)
    k = len(p) // 2
    if not all(isinstance(n, int) for n in p):
        if mode != "constant":
            refuse("pads that are symbolic")
        return _pad_symbolic(c, x, p, value)
    before = [0] * (x.rank - k) + [p[2 * (k - 1 - i)] for i in range(k)]
    behind = [0] * (x.rank - k) + [p[2 * (k - 1 - i) + 1] for i in range(k)]
    if not any(p):
        return x
    number = float(value) if isinstance(value, (bool, int, float)) else refuse("a pad's value that is no number")
    if not x.is_float and abs(number) > 2**53:
        refuse("a pad's value beyond 2^53")
    return c.emit("Pad", x, pads=[*before, *behind], mode=mode, value=number)


def _pad_symbolic(c: Context, x: Tensor, pads: list[Size], value: Any) -> Tensor:
    """Blocks of the constant at both ends of an axis."""
    for i in range(len(pads) // 2):
        a = x.rank - 1 - i
        sides: list[Tensor | None] = []
        for n in pads[2 * i : 2 * i + 2]:
            if isinstance(n, int) and n < 0:
                refuse("pads that are symbolic, and others that are negative")
            none = isinstance(n, int) and n == 0
            sides.append(None if none else c.full([*x.shape[:a], n, *x.shape[a + 1 :]], value, x.dtype))
        parts = [t for t in (sides[0], x, sides[1]) if t is not None]
        x = parts[0] if len(parts) == 1 else c.emit("Concat", *parts, axis=a)
    return x


@aten("constant_pad_nd")
def constant_pad(c: Context, x: Tensor, pad: Any, value: Any = 0) -> Tensor:
    return _pad(c, x, pad, "constant", value)


@aten("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(c: Context, x: Tensor, pad: Any) -> Tensor:
    return _pad(c, x, pad, "reflect")


@aten("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(c: Context, x: Tensor, pad: Any) -> Tensor:
    return _pad(c, x, pad, "edge")


@aten("pad")
def pad(c: Context, x: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    return _pad(c, x, pad, modes.get(mode) or refuse(f"pad mode {mode}"), value or 0.0)


# ---- triangles, diagonals, pixels
@aten("tril", "triu")
def triangle(c: Context, x: Tensor, diagonal: Any = 0) -> Tensor:
    k = c.size(diagonal)
    if not isinstance(k, int):
        refuse("a diagonal that is symbolic")
    return c.emit("Trilu", x, upper=int(c.name == "aten::triu"), k=k)


@aten("diagonal", "diagonal_copy")
def diagonal(c: Context, x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Of a matrix as a row: every (columns + 1)-th element."""
    a, b = x.axis(dim1), x.axis(dim2)
    rest = [i for i in range(x.rank) if i not in (a, b)]
    rows, columns = x.known(a, "a diagonal"), x.known(b, "a diagonal")
    n = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    y = c.transpose(x, [*rest, a, b])
    y = c.reshape(y, [*y.shape[:-2], rows * columns])
    begin = offset if offset >= 0 else -offset * columns
    return c.slice(y, y.rank - 1, begin if n else 0, n, columns + 1)


@aten("pixel_shuffle")
def pixel_shuffle(c: Context, x: Tensor, factor: int) -> Tensor:
    *front, ch, h, w = x.shape
    y = c.reshape(x, [product(front), ch, h, w])
    y = c.emit("DepthToSpace", y, blocksize=int(factor), mode="CRD")
    return c.reshape(y, [*front, *y.shape[1:]])


@aten("pixel_unshuffle")
def pixel_unshuffle(c: Context, x: Tensor, factor: int) -> Tensor:
    *front, ch, h, w = x.shape
    k = int(factor)
    y = c.reshape(x, [product(front), ch, _parts(h, k), k, _parts(w, k), k])
    y = c.transpose(y, [0, 1, 3, 5, 2, 4])
    return c.reshape(y, [*front, simple(ch * (k * k)), _parts(h, k), _parts(w, k)])


def _parts(n: Size, k: int) -> Size:
    return n // k if isinstance(n, int) else simple(n // k)


@aten("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(c: Context, x: Tensor, groups: int) -> Tensor:
    n, ch, *rest = x.shape
    y = c.reshape(x, [n, int(groups), _parts(ch, int(groups)), *rest])
    return c.reshape(c.transpose(y, [0, 2, 1, *range(3, y.rank)]), x.shape)


@aten("unfold")
def unfold(c: Context, x: Tensor, dimension: int, size: Any, step: Any) -> Tensor:
    """Windows of an axis, as a new last axis."""
    if x.rank == 0:
        return c.reshape(x, [1])
    a = x.axis(dimension)
    n, k = x.known(a, "unfold"), int(size)
    count = (n - k) // int(step) + 1
    index = torch.arange(count)[:, None] * int(step) + torch.arange(k)[None, :]
    y = c.emit("Gather", x, c.constant(index), axis=a)  # [.., count, k, ..]
    return c.transpose(y, [*range(a + 1), *range(a + 2, y.rank), a + 1])


def _scatter_part(c: Context, x: Tensor, part: Tensor, a: int, begin: Size, size: Size, step: int) -> Tensor:
    if size == 0:
        return x
    part = c.expand(c.cast(part, x.dtype), [*x.shape[:a], size, *x.shape[a + 1 :]])
    n = x.shape[a]
    if step == 1:
        end = simple(begin + size)
        pieces = [c.slice(x, a, 0, begin), part, c.slice(x, a, end, simple(n - end))]
        return cat(c, [p for p in pieces if p.shape[a] != 0], a)
    if not isinstance(begin, int) or not isinstance(size, int):
        refuse("a slice of symbolic size with a step as a target")
    index = torch.arange(begin, begin + size * step, step).reshape([-1] + [1] * (x.rank - 1 - a))
    where = c.expand(c.constant(index), part.shape)
    return c.emit("ScatterElements", x, where, part, axis=a, reduction="none")


@aten("slice_scatter")
def slice_scatter(
    c: Context, x: Tensor, part: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensor:
    a = x.axis(dim)
    n = x.shape[a]
    begin, stop = _bound(c, start, n, 0), _bound(c, end, n, n)
    size = part.shape[a]
    if isinstance(begin, int) and isinstance(stop, int):
        size = max(0, -(-(stop - begin) // int(step)))
    elif isinstance(start, int) and start < 0:
        begin = simple(n + start)
    return _scatter_part(c, x, part, a, begin, size, int(step))


@aten("select_scatter")
def select_scatter(c: Context, x: Tensor, part: Tensor, dim: int, index: Any) -> Tensor:
    a = x.axis(dim)
    i = c.size(index)
    if isinstance(i, int) and i < 0:
        i = simple(x.shape[a] + i)
    part = c.reshape(part, [*x.shape[:a], 1, *x.shape[a + 1 :]])
    return _scatter_part(c, x, part, a, i, 1, 1)
