"""Pooling and resizing."""

from typing import Any

import torch

from cuvil.torch.aten_elementwise import binary
from cuvil.torch.aten_neural import as_image, from_image
from cuvil.torch.aten_reduce import reduce
from cuvil.torch.aten_shape import cat
from cuvil.torch.sizes import Size, simple
from cuvil.torch.table import Context, Tensor, aten, refuse


def _batched(c: Context, x: Tensor, spatial: int) -> tuple[Tensor, bool]:
    alone = x.rank == spatial + 1
    return (c.reshape(x, [1, *x.shape]) if alone else x), alone


def _window(v: Any, spatial: int, first: int) -> list[int]:
    v = [int(v)] if isinstance(v, int) else [int(n) for n in v]
    v = v * (spatial // len(v)) if len(v) < spatial else v
    return [first, *v] if spatial == 1 else v


def _pool(c: Context, op: str, x: Tensor, spatial: int, kernel: Any, stride: Any, padding: Any, **more: Any) -> Tensor:
    if spatial not in (1, 2):
        refuse(f"pooling over {spatial} axes")
    x, alone = _batched(c, x, spatial)
    k = _window(kernel, spatial, 1)
    p = _window(padding, spatial, 0)
    s = _window(stride, spatial, 1) if stride is not None and stride != [] and stride != () else k
    dilation = _window(more.pop("dilation", 1), spatial, 1)
    y = c.emit(op, as_image(c, x), kernel=k, strides=s, pads=[*p, *p], dilations=dilation, **more)
    y = from_image(c, y, spatial + 2)
    return c.reshape(y, y.shape[1:]) if alone else y


@aten("max_pool1d", "max_pool2d")
def max_pool(
    c: Context, x: Tensor, kernel: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    spatial = int(c.name[-2])
    return _pool(c, "MaxPool2D", x, spatial, kernel, stride, padding, dilation=dilation, ceil_mode=int(ceil_mode))


@aten("max_pool2d_with_indices", "_max_pool2d_with_indices")
def max_pool_with_indices(
    c: Context, x: Tensor, kernel: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    if c.wants(1):
        refuse("max pooling that returns indices")
    return _pool(c, "MaxPool2D", x, 2, kernel, stride, padding, dilation=dilation, ceil_mode=int(ceil_mode)), None


@aten("_low_memory_max_pool_with_offsets", "prims::_low_memory_max_pool_with_offsets")
def max_pool_with_offsets(
    c: Context, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> Any:
    return max_pool_with_indices(c, x, kernel, stride, padding, dilation, ceil_mode)


@aten("avg_pool1d", "avg_pool2d")
def avg_pool(
    c: Context, x: Tensor, kernel: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Tensor:  # fmt: skip
    spatial = int(c.name[-2])
    more = {"ceil_mode": int(ceil_mode), "count_include_pad": int(count_include_pad)}
    if divisor_override is not None:
        if ceil_mode:
            refuse("average pooling with ceil_mode and a divisor of its own")
        k = _window(kernel, spatial, 1)
        more["count_include_pad"] = 1
        y = _pool(c, "AveragePool2D", x, spatial, kernel, stride, padding, **more)
        return binary(c, "Mul", y, float(k[0] * k[1]) / float(divisor_override), y.dtype)
    return _pool(c, "AveragePool2D", x, spatial, kernel, stride, padding, **more)


def _averages(n: int, m: int) -> torch.Tensor:
    """[n, m]: column j averages the rows floor(j n / m) to ceil((j + 1) n / m)."""
    w = torch.zeros(n, m, dtype=torch.float64)
    for j in range(m):
        a, b = j * n // m, -(-(j + 1) * n // m)
        w[a:b, j] = 1.0 / (b - a)
    return w


@aten("adaptive_avg_pool1d", "adaptive_avg_pool2d", "_adaptive_avg_pool2d")
def adaptive_avg_pool(c: Context, x: Tensor, size: Any) -> Tensor:
    spatial = 1 if c.name.endswith("1d") else 2
    want = c.sizes([size] if isinstance(size, int) else size)
    want = want * (spatial // len(want))
    axes = list(range(x.rank - spatial, x.rank))
    if all(n == 1 for n in want):
        return reduce(c, "ReduceMean", x, axes, True)
    for a, m in zip(axes, want, strict=True):  # the windows are products of intervals: one axis after the other
        n = x.known(a, "adaptive pooling")
        if not isinstance(m, int) or n == 0:
            refuse("adaptive pooling to a symbolic size")
        if n == m:
            continue
        if n % m == 0:
            parts = c.reshape(x, [*x.shape[:a], m, n // m, *x.shape[a + 1 :]])
            x = reduce(c, "ReduceMean", parts, [a + 1], False)
            continue
        w = c.constant(_averages(n, m).to(x.dtype))
        if a == x.rank - 1:
            x = c.emit("MatMul", x, w)
        else:
            x = c.emit("MatMul", c.constant(_averages(n, m).t().contiguous().to(x.dtype)), x)
    return x


@aten("adaptive_max_pool1d", "adaptive_max_pool2d")
def adaptive_max_pool(c: Context, x: Tensor, size: Any) -> Any:
    if c.wants(1):
        refuse("max pooling that returns indices")
    spatial = 1 if c.name.endswith("1d") else 2
    want = c.sizes([size] if isinstance(size, int) else size)
    want = want * (spatial // len(want))
    for a, m in zip(range(x.rank - spatial, x.rank), want, strict=True):
        n = x.known(a, "adaptive pooling")
        if not isinstance(m, int) or n == 0 or m > 64:
            refuse("adaptive max pooling to a symbolic size, or one above 64")
        if n % m == 0:
            x = reduce(c, "ReduceMax", c.reshape(x, [*x.shape[:a], m, n // m, *x.shape[a + 1 :]]), [a + 1], False)
            continue
        parts = []
        for j in range(m):
            begin, end = j * n // m, -(-(j + 1) * n // m)
            parts.append(reduce(c, "ReduceMax", c.slice(x, a, begin, end - begin), [a], True))
        x = cat(c, parts, a)
    return x, None


# ---- resizing
def _resize(c: Context, x: Tensor, size: Any, scales: list[Any], mode: str, coordinates: str, nearest: str) -> Tensor:
    spatial = x.rank - 2
    if size is None:
        out: list[Size] = []
        for i, f in enumerate(scales):
            told = c.told(2 + i)
            n = x.shape[2 + i]
            if told is not None:
                out.append(told)
            elif isinstance(n, int):
                out.append(int(n * float(f)))
            else:
                out.append(simple(n * int(f)) if float(f) == int(f) else refuse("a symbolic size scaled by a fraction"))
    else:
        out = c.sizes(size)
    attributes: dict[str, Any] = {"mode": mode, "coordinates": coordinates, "nearest": nearest}
    # A scale that was given is used as it is; else it is the ratio of the sizes.
    if all(f is not None for f in scales) and len(scales) == spatial and coordinates != "align_corners":
        attributes["scales"] = [1.0, 1.0, *[float(f) for f in scales]]
    if mode == "cubic":
        attributes["cubic_coeff_a"] = -0.75
    return c.emit("Resize", x, shape=[*x.shape[:2], *out], **attributes)


def _scales(args: tuple[Any, ...]) -> list[Any]:
    """scales_h, scales_w of the plain overloads, or the list of the .vec ones."""
    flat = [a for a in args if not isinstance(a, (list, tuple))]
    lists = [a for a in args if isinstance(a, (list, tuple))]
    return list(lists[0]) if lists else flat


@aten("upsample_nearest1d", "upsample_nearest2d")
def upsample_nearest(c: Context, x: Tensor, size: Any, *scales: Any, **named: Any) -> Tensor:
    return _resize(c, x, size, _scales((*scales, *named.values())), "nearest", "asymmetric", "floor")


@aten("_upsample_nearest_exact1d", "_upsample_nearest_exact2d")
def upsample_nearest_exact(c: Context, x: Tensor, size: Any, *scales: Any, **named: Any) -> Tensor:
    return _resize(c, x, size, _scales((*scales, *named.values())), "nearest", "half_pixel", "round_prefer_ceil")


def _smooth(mode: str, *names: str) -> None:
    @aten(*names)
    def handler(c: Context, x: Tensor, size: Any, align_corners: bool, *scales: Any, **named: Any) -> Tensor:
        coordinates = "align_corners" if align_corners else "half_pixel"
        return _resize(c, x, size, _scales((*scales, *named.values())), mode, coordinates, "floor")


_smooth("linear", "upsample_linear1d", "upsample_bilinear2d")
_smooth("cubic", "upsample_bicubic2d")
