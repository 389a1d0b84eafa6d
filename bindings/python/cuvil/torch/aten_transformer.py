"""PyTorch's fused layers, which nn.MultiheadAttention and nn.TransformerEncoderLayer call in inference."""

import math
from typing import Any

import torch

from cuvil.torch.aten_elementwise import multiply, where
from cuvil.torch.aten_neural import layer_norm, linear
from cuvil.torch.aten_reduce import reduce, softmax
from cuvil.torch.table import Context, Tensor, aten, refuse


def _mask(c: Context, scores: Tensor, mask: Tensor, kind: int | None) -> Tensor:
    """Adds a mask to scores [batch, heads, queries, keys]: 0 is [queries, keys], 1 is [batch, keys]; True hides."""
    if kind == 1:
        mask = c.reshape(mask, [mask.shape[0], 1, 1, mask.shape[1]])
    elif kind == 0 and mask.rank == 2:
        mask = c.reshape(mask, [1, 1, *mask.shape])
    elif mask.rank != 4:
        refuse("an attention mask of this kind")
    if mask.dtype == torch.bool:
        return where(c, mask, -math.inf, scores, scores.dtype)
    return c.emit("Add", scores, c.cast(mask, scores.dtype))


def _heads(c: Context, x: Tensor, heads: int) -> Tensor:
    batch, rows, width = x.shape
    size = width // heads if isinstance(width, int) else refuse("attention over a symbolic width")
    return c.transpose(c.reshape(x, [batch, rows, heads, size]), [0, 2, 1, 3])


def _attend(c: Context, q: Tensor, k: Tensor, v: Tensor, heads: int, mask: Any, kind: Any) -> tuple[Tensor, Tensor]:
    q, k, v = (_heads(c, t, heads) for t in (q, k, v))
    q = multiply(c, q, 1 / math.sqrt(q.known(3)))
    scores = c.emit("MatMul", q, k, transpose_b=1)
    if mask is not None:
        scores = _mask(c, scores, mask, kind)
    weights = softmax(c, "Softmax", scores, -1, None)
    y = c.transpose(c.emit("MatMul", weights, v), [0, 2, 1, 3])
    return c.reshape(y, [*y.shape[:2], y.known(2) * y.known(3)]), weights


def _projected(c: Context, x: Tensor, w: Tensor, b: Tensor | None, part: int, parts: int = 3) -> Tensor:
    n = w.known(0) // 3
    w = c.slice(w, 0, part * n, parts * n)
    return linear(c, x, w, None if b is None else c.slice(b, 0, part * n, parts * n))


@aten("_native_multi_head_attention")
def multi_head_attention(
    c: Context, query: Tensor, key: Tensor, value: Tensor, embed_dim: int, heads: int, qkv_weight: Tensor,
    qkv_bias: Tensor | None, proj_weight: Tensor, proj_bias: Tensor | None, mask: Tensor | None = None,
    need_weights: bool = True, average_attn_weights: bool = True, mask_type: int | None = None,
) -> Any:  # fmt: skip
    q = _projected(c, query, qkv_weight, qkv_bias, 0, 1)
    k = _projected(c, key, qkv_weight, qkv_bias, 1, 1)
    v = _projected(c, value, qkv_weight, qkv_bias, 2, 1)
    y, weights = _attend(c, q, k, v, heads, mask, mask_type)
    y = linear(c, y, proj_weight, proj_bias)
    if not need_weights:
        return y, None
    return y, reduce(c, "ReduceMean", weights, [1], False) if average_attn_weights else weights


@aten("_transformer_encoder_layer_fwd")
def encoder_layer(
    c: Context, x: Tensor, embed_dim: int, heads: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor,
    proj_bias: Tensor, use_gelu: bool, norm_first: bool, eps: float, norm1_weight: Tensor, norm1_bias: Tensor,
    norm2_weight: Tensor, norm2_bias: Tensor, ffn1_weight: Tensor, ffn1_bias: Tensor, ffn2_weight: Tensor,
    ffn2_bias: Tensor, mask: Tensor | None = None, mask_type: int | None = None,
) -> Tensor:  # fmt: skip
    def norm(t: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return layer_norm(c, t, w.shape, w, b, eps)

    def attend(t: Tensor) -> Tensor:
        q, k, v = (_projected(c, t, qkv_weight, qkv_bias, i, 1) for i in range(3))
        return linear(c, _attend(c, q, k, v, heads, mask, mask_type)[0], proj_weight, proj_bias)

    def feed(t: Tensor) -> Tensor:
        hidden = linear(c, t, ffn1_weight, ffn1_bias)
        hidden = c.emit("Gelu", hidden, approximate="none") if use_gelu else c.emit("Relu", hidden)
        return linear(c, hidden, ffn2_weight, ffn2_bias)

    if norm_first:
        x = c.emit("Add", x, attend(norm(x, norm1_weight, norm1_bias)))
        return c.emit("Add", x, feed(norm(x, norm2_weight, norm2_bias)))
    x = norm(c.emit("Add", x, attend(x)), norm1_weight, norm1_bias)
    return norm(c.emit("Add", x, feed(x)), norm2_weight, norm2_bias)
