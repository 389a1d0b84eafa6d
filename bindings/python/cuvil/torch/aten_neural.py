"""Convolutions, matrix products, normalisation, pooling, attention."""

from typing import Any

import torch

from cuvil.torch.aten_elementwise import binary
from cuvil.torch.table import Context, Tensor, aten, refuse


# ---- matrix products
def matmul(c: Context, a: Tensor, b: Tensor) -> Tensor:
    """MatMul; a transposed operand is read in place."""
    if a.dtype != b.dtype:
        refuse(f"the product of {a.dtype} and {b.dtype}")
    attributes = {}
    if b.transposed is not None and a.rank >= 2:
        b, attributes["transpose_b"] = b.transposed, 1
    if a.transposed is not None and b.rank >= 2:
        a, attributes["transpose_a"] = a.transposed, 1
    return c.emit("MatMul", a, b, **attributes)


@aten("mm", "bmm", "matmul", "dot", "mv", "vdot", "inner")
def mm(c: Context, a: Tensor, b: Tensor) -> Tensor:
    return matmul(c, a, b)


@aten("addmm", "addmv", "baddbmm")
def addmm(c: Context, x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    y = matmul(c, a, b)
    if alpha != 1:
        y = binary(c, "Mul", y, alpha, y.dtype)
    if beta == 0:
        return y
    if beta != 1:
        x = binary(c, "Mul", x, beta, y.dtype)
    return c.emit("Add", y, c.cast(x, y.dtype))


@aten("linear")
def linear(c: Context, x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    if w.rank == 1:
        y = c.emit("MatMul", x, w)
    else:
        y = c.emit("MatMul", x, w, transpose_b=1)
    return y if b is None else c.emit("Add", y, b)


# ---- convolution
def _two(v: Any, first: int) -> list[int]:
    v = [v] if isinstance(v, int) else [int(n) for n in v]
    return [first, v[0]] if len(v) == 1 else v


def as_image(c: Context, x: Tensor) -> Tensor:
    """A signal [N, C, L] as an image [N, C, 1, L]."""
    return c.reshape(x, [*x.shape[:2], 1, x.shape[2]]) if x.rank == 3 else x


def from_image(c: Context, y: Tensor, rank: int) -> Tensor:
    """The inverse of as_image."""
    return c.reshape(y, [*y.shape[:2], y.shape[3]]) if rank == 3 else y


@aten("convolution", "_convolution")
def convolution(
    c: Context, x: Tensor, w: Tensor, b: Tensor | None, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, *_: Any,
) -> Tensor:  # fmt: skip
    spatial = w.rank - 2
    if spatial not in (1, 2):
        refuse(f"a convolution over {spatial} axes")
    if any(n == 0 for n in x.shape[1:]) or any(n == 0 for n in w.shape):
        refuse("a convolution of nothing")
    alone = x.rank == w.rank - 1
    if alone:
        x = c.reshape(x, [1, *x.shape])
    wide = lambda v, first: _two([v] * spatial if isinstance(v, int) else list(v) * (spatial // len(v)), first)  # noqa: E731
    pads = wide(padding, 0)
    attributes: dict[str, Any] = {
        "strides": wide(stride, 1),
        "dilations": wide(dilation, 1),
        "pads": [*pads, *pads],
        "groups": int(groups),
    }
    if transposed:
        attributes["output_padding"] = wide(output_padding, 0)
    y = c.emit("ConvTranspose2D" if transposed else "Conv2D", as_image(c, x), as_image(c, w), b, **attributes)
    y = from_image(c, y, w.rank)
    return c.reshape(y, y.shape[1:]) if alone else y


def _conv(c: Context, x: Tensor, w: Tensor, b: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
          groups: int = 1) -> Tensor:  # fmt: skip
    if isinstance(padding, str):
        refuse("a convolution whose padding is a word")
    return convolution(c, x, w, b, stride, padding, dilation, False, 0, groups)


aten("conv1d", "conv2d")(_conv)


@aten("conv_transpose1d", "conv_transpose2d")
def conv_transpose(c: Context, x: Tensor, w: Tensor, b: Any = None, stride: Any = 1, padding: Any = 0,
                   output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Tensor:  # fmt: skip
    return convolution(c, x, w, b, stride, padding, dilation, True, output_padding, groups)


