"""Convolutions, matrix products, normalisation, pooling, attention."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from cuvil.torch.aten_elementwise import add, binary, where
from cuvil.torch.aten_reduce import reduce, safe_softmax, softmax
from cuvil.torch.aten_shape import constant_pad
from cuvil.torch.sizes import Size
from cuvil.torch.table import Context, Tensor, aten, is_half, refuse


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

    def wide(v: Any, first: int) -> list[int]:
        return _two([v] * spatial if isinstance(v, int) else list(v) * (spatial // len(v)), first)

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


def _pad_same(c: Context, x: Tensor, w: Tensor, dilation: Any) -> tuple[Tensor, list[int]]:
    """Half of what the kernel lacks on each side; an odd rest behind, as an explicit pad."""
    spatial = w.rank - 2
    steps = [dilation] * spatial if isinstance(dilation, int) else list(dilation) * (spatial // len(dilation))
    totals = [d * (w.known(2 + i, "a convolution") - 1) for i, d in enumerate(steps)]
    odd = [n for t in reversed(totals) for n in (0, t % 2)]
    if any(odd):
        x = constant_pad(c, x, odd)
    return x, [t // 2 for t in totals]


def _conv(c: Context, x: Tensor, w: Tensor, b: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
          groups: int = 1) -> Tensor:  # fmt: skip
    if isinstance(padding, str):
        if padding == "valid":
            padding = 0
        else:
            x, padding = _pad_same(c, x, w, dilation)
    return convolution(c, x, w, b, stride, padding, dilation, False, 0, groups)


aten("conv1d", "conv2d")(_conv)


@aten("conv_transpose1d", "conv_transpose2d")
def conv_transpose(c: Context, x: Tensor, w: Tensor, b: Any = None, stride: Any = 1, padding: Any = 0,
                   output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Tensor:  # fmt: skip
    return convolution(c, x, w, b, stride, padding, dilation, True, output_padding, groups)


# ---- normalisation
def _ones(c: Context, n: Sequence[Size], dtype: torch.dtype) -> Tensor:
    return c.full(n, 1.0, dtype)


@aten("layer_norm")
def layer_norm(
    c: Context, x: Tensor, shape: Any, w: Tensor | None = None, b: Tensor | None = None, eps: float = 1e-5,
    *_: Any, **__: Any,
) -> Tensor:  # fmt: skip
    k = len(shape)
    if w is None:
        w = _ones(c, c.sizes(shape), x.dtype)
    w, b = c.cast(w, x.dtype), None if b is None else c.cast(b, x.dtype)
    return c.emit("LayerNormalization", x, w, b, axis=x.rank - k, epsilon=float(eps))


@aten("native_layer_norm")
def native_layer_norm(c: Context, x: Tensor, shape: Any, w: Tensor | None, b: Tensor | None, eps: float) -> Any:
    y = layer_norm(c, x, shape, w, b, eps)
    if not c.wants(1) and not c.wants(2):
        return y, None, None
    inner = c.cast(x, torch.float32) if is_half(x.dtype) else x
    axes = list(range(x.rank - len(shape), x.rank))
    average = reduce(c, "ReduceMean", inner, axes, True)
    d = c.emit("Sub", inner, average)
    variance = reduce(c, "ReduceMean", c.emit("Mul", d, d), axes, True)
    return y, average, c.emit("Rsqrt", binary(c, "Add", variance, float(eps), inner.dtype))


@aten("rms_norm", "_fused_rms_norm")
def rms_norm(c: Context, x: Tensor, shape: Any, w: Tensor | None = None, eps: float | None = None) -> Any:
    if w is None:
        w = _ones(c, c.sizes(shape), x.dtype)
    if eps is None:
        eps = torch.finfo(torch.float32 if is_half(x.dtype) else x.dtype).eps
    if c.name == "aten::_fused_rms_norm" and c.wants(1):
        refuse("the second result of _fused_rms_norm")
    y = c.emit("RMSNormalization", x, c.cast(w, x.dtype), axis=x.rank - len(shape), epsilon=float(eps))
    return (y, None) if c.name == "aten::_fused_rms_norm" else y


@aten("group_norm")
def group_norm(
    c: Context, x: Tensor, groups: int, w: Tensor | None = None, b: Tensor | None = None, eps: float = 1e-5,
    *_: Any, **__: Any,
) -> Tensor:  # fmt: skip
    channels = [x.shape[1]]
    w = _ones(c, channels, x.dtype) if w is None else w
    b = c.full(channels, 0.0, x.dtype) if b is None else b
    return c.emit("GroupNormalization", x, w, b, num_groups=int(groups), epsilon=float(eps))


@aten("native_group_norm")
def native_group_norm(
    c: Context, x: Tensor, w: Tensor | None, b: Tensor | None, n: Any, ch: Any, hw: Any, groups: int, eps: float
) -> Any:
    y = group_norm(c, x, groups, w, b, eps)
    if not c.wants(1) and not c.wants(2):
        return y, None, None
    return refuse("the mean and deviation of native_group_norm")


def _batch_norm(
    c: Context, x: Tensor, w: Tensor | None, b: Tensor | None, mean: Tensor | None, variance: Tensor | None, eps: float
) -> Tensor:
    if mean is None or variance is None:
        refuse("batch normalisation without running statistics")
    n = [x.shape[1]]
    inner = torch.float32 if is_half(x.dtype) else x.dtype
    y = c.cast(x, inner)
    parts = [
        _ones(c, n, inner) if w is None else w, c.full(n, 0.0, inner) if b is None else b, mean, variance,
    ]  # fmt: skip
    return c.cast(c.emit("BatchNormalization", y, *[c.cast(p, inner) for p in parts], epsilon=float(eps)), x.dtype)


@aten("batch_norm")
def batch_norm(
    c: Context,
    x: Tensor,
    w: Any,
    b: Any,
    mean: Any,
    variance: Any,
    training: bool,
    momentum: float,
    eps: float,
    *_: Any,
) -> Tensor:
    return _instance(c, x, w, b, eps) if training else _batch_norm(c, x, w, b, mean, variance, eps)


@aten("_native_batch_norm_legit_no_training")
def batch_norm_inference(
    c: Context, x: Tensor, w: Any, b: Any, mean: Any, variance: Any, momentum: float, eps: float
) -> Any:
    return (
        _batch_norm(c, x, w, b, mean, variance, eps),
        c.full([0], 0.0, torch.float32),
        c.full([0], 0.0, torch.float32),
    )


@aten("native_batch_norm")
def native_batch_norm(
    c: Context, x: Tensor, w: Any, b: Any, mean: Any, variance: Any, training: bool, momentum: float, eps: float
) -> Any:
    if training:
        refuse("batch normalisation in training mode")
    return batch_norm_inference(c, x, w, b, mean, variance, momentum, eps)


@aten("_batch_norm_no_update")
def batch_norm_no_update(
    c: Context, x: Tensor, w: Any, b: Any, mean: Any, variance: Any, momentum: float, eps: float
) -> Any:
    return _batch_norm(c, x, w, b, mean, variance, eps), None, None, None


def _instance(c: Context, x: Tensor, w: Tensor | None, b: Tensor | None, eps: float) -> Tensor:
    """Statistics of the batch itself; of one image that is instance normalisation."""
    if x.shape[0] != 1 or x.rank < 3:
        axes = [0, *range(2, x.rank)]
        inner = c.cast(x, torch.float32) if is_half(x.dtype) else x
        d = c.emit("Sub", inner, reduce(c, "ReduceMean", inner, axes, True))
        variance = reduce(c, "ReduceMean", c.emit("Mul", d, d), axes, True)
        y = c.emit("Mul", d, c.emit("Rsqrt", binary(c, "Add", variance, float(eps), inner.dtype)))
        lift = [1, x.shape[1], *[1] * (x.rank - 2)]
        if w is not None:
            y = c.emit("Mul", y, c.reshape(c.cast(w, inner.dtype), lift))
        if b is not None:
            y = c.emit("Add", y, c.reshape(c.cast(b, inner.dtype), lift))
        return c.cast(y, x.dtype)
    n = [x.shape[1]]
    w = _ones(c, n, x.dtype) if w is None else c.cast(w, x.dtype)
    b = c.full(n, 0.0, x.dtype) if b is None else c.cast(b, x.dtype)
    return c.emit("InstanceNormalization", x, w, b, epsilon=float(eps))


@aten("_native_batch_norm_legit.no_stats")
def batch_norm_no_stats(
    c: Context, x: Tensor, w: Any, b: Any, training: bool, momentum: float, eps: float
) -> Any:  # fmt: skip
    if not training:
        refuse("batch normalisation without statistics")
    if c.wants(1) or c.wants(2):
        refuse("the statistics of a batch as results")
    return _instance(c, x, w, b, eps), None, None


@aten("instance_norm")
def instance_norm(
    c: Context, x: Tensor, w: Any, b: Any, mean: Any, variance: Any, use_input_stats: bool, momentum: float,
    eps: float, *_: Any,
) -> Tensor:  # fmt: skip
    if not use_input_stats:
        return _batch_norm(c, x, w, b, mean, variance, eps)
    if mean is not None:
        refuse("instance normalisation that updates its statistics")
    n = [x.shape[1]]
    w = _ones(c, n, x.dtype) if w is None else w
    b = c.full(n, 0.0, x.dtype) if b is None else b
    return c.emit("InstanceNormalization", x, w, b, epsilon=float(eps))


@aten("dropout", "feature_dropout", "alpha_dropout", "native_dropout")
def dropout(c: Context, x: Tensor, p: float, train: bool | None) -> Any:
    if train is not False and p != 0:
        refuse("dropout in training mode: it is random")
    if c.name == "aten::native_dropout":
        return x, c.full(x.shape, True, torch.bool)
    return x


# ---- attention
def attention(
    c: Context, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: Any, grouped: bool = False
) -> Tensor:
    """softmax(q k^T * scale + mask) v; rows that are masked entirely give 0."""
    if q.dtype != k.dtype or q.dtype != v.dtype:
        refuse("attention over operands of several element types")
    if grouped and q.shape[-3] != k.shape[-3]:
        k, v = (_repeat_heads(c, t, q.shape[-3]) for t in (k, v))
    kept = q.dtype
    if is_half(kept):
        q, k, v = (c.cast(t, torch.float32) for t in (q, k, v))
        mask = mask if mask is None or mask.dtype == torch.bool else c.cast(mask, torch.float32)
    width = q.shape[-1]
    if scale is None:
        if not isinstance(width, int):
            refuse("attention over heads of symbolic size")
        scale = 1 / math.sqrt(width) if width else 1.0
    scores = c.emit("MatMul", c.emit("Mul", q, c.scalar(float(scale), q.dtype)), k, transpose_b=1)
    empty_rows = mask is not None
    if causal:
        below = _below_diagonal(c, q.shape[-2], k.shape[-2])
        scores = where(c, below, scores, -math.inf, scores.dtype)
    if mask is not None:
        if mask.dtype == torch.bool:
            scores = where(c, mask, scores, -math.inf, scores.dtype)
        else:
            scores = c.emit("Add", scores, c.cast(mask, scores.dtype))
            empty_rows = mask.constant is None or bool((mask.constant == -math.inf).all(-1).any())
    weights = (safe_softmax if empty_rows else _plain_softmax)(c, scores, -1)
    return c.cast(c.emit("MatMul", weights, v), kept)


def _plain_softmax(c: Context, x: Tensor, dim: int) -> Tensor:
    return softmax(c, "Softmax", x, dim, None)


def _below_diagonal(c: Context, rows: Size, columns: Size) -> Tensor:
    """Element [i, j]: j <= i."""
    if isinstance(rows, int) and isinstance(columns, int):
        return c.constant(torch.ones(rows, columns, dtype=torch.bool).tril())
    i = c.reshape(c.positions(rows), [rows, 1])
    return c.emit("LessOrEqual", c.reshape(c.positions(columns), [1, columns]), i)


def _repeat_heads(c: Context, x: Tensor, heads: Size) -> Tensor:
    own = x.known(x.rank - 3, "grouped attention")
    if not isinstance(heads, int) or heads % own:
        refuse("grouped attention whose heads do not divide")
    front, (rows, width) = x.shape[:-3], x.shape[-2:]
    y = c.expand(c.reshape(x, [*front, own, 1, rows, width]), [*front, own, heads // own, rows, width])
    return c.reshape(y, [*front, heads, rows, width])


@aten("scaled_dot_product_attention")
def sdpa(
    c: Context, q: Tensor, k: Tensor, v: Tensor, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    *, scale: Any = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    if dropout_p:
        refuse("attention with dropout: it is random")
    return attention(c, q, k, v, attn_mask, is_causal, scale, enable_gqa)


@aten("_scaled_dot_product_flash_attention_for_cpu")
def sdpa_flash(
    c: Context, q: Tensor, k: Tensor, v: Tensor, dropout_p: float = 0.0, is_causal: bool = False, *,
    attn_mask: Any = None, scale: Any = None,
) -> Any:  # fmt: skip
    if dropout_p:
        refuse("attention with dropout: it is random")
    if c.wants(1):
        refuse("the second result of attention")
    return attention(c, q, k, v, attn_mask, is_causal, scale, True), None


@aten("_scaled_dot_product_attention_math")
def sdpa_math(
    c: Context, q: Tensor, k: Tensor, v: Tensor, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    dropout_mask: Any = None, *, scale: Any = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    if dropout_p or dropout_mask is not None:
        refuse("attention with dropout: it is random")
    if c.wants(1):
        refuse("the second result of attention")
    return attention(c, q, k, v, attn_mask, is_causal, scale, enable_gqa), None


# ---- other products
@aten("addr")
def addr(c: Context, x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    outer = c.emit("Mul", c.reshape(a, [a.shape[0], 1]), c.reshape(b, [1, b.shape[0]]))
    return add(c, binary(c, "Mul", x, beta, x.dtype) if beta != 1 else x, outer, alpha)


@aten("outer", "ger")
def outer(c: Context, a: Tensor, b: Tensor) -> Tensor:
    return binary(c, "Mul", c.reshape(a, [a.shape[0], 1]), c.reshape(b, [1, b.shape[0]]))
