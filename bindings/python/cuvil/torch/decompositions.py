"""Which composite operators PyTorch takes apart before conversion, and which CIR has itself."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from cuvil.torch import convert as _convert  # noqa: F401  registers the tables
from cuvil.torch.table import find


def table() -> dict[Any, Callable[..., Any]]:
    """A decomposition table for torch.export and AOTAutograd: PyTorch's for core ATen, without the operators that the
    converter knows."""
    from torch._decomp import core_aten_decompositions

    rules: dict[Any, Callable[..., Any]] = dict(core_aten_decompositions())
    return {op: rule for op, rule in rules.items() if find(op) is None}


_KEPT = (
    "linear.default", "matmul.default", "scaled_dot_product_attention.default", "lstm.input", "gru.input",
    "rnn_tanh.input", "rnn_relu.input", "upsample_nearest1d.vec", "upsample_nearest2d.vec",
    "_upsample_nearest_exact1d.vec", "_upsample_nearest_exact2d.vec", "upsample_linear1d.vec",
    "upsample_bilinear2d.vec", "upsample_bicubic2d.vec",
)  # fmt: skip


def keep_composites() -> AbstractContextManager[Any]:
    """While it is open, AOTAutograd leaves composite operators whole that CIR has itself: a linear layer is no reshape,
    product and reshape, resizing no arithmetic on indices, an LSTM no chain of its steps. Not for graphs with
    gradients. torch.export does the same for the operators that its user keeps."""
    try:
        from torch.export.exported_program import _override_composite_implicit_decomp as override
    except ImportError:  # they come in parts, which are right, too
        return nullcontext()
    ops = {}
    for name in _KEPT:
        packet, overload = name.split(".")
        op = getattr(getattr(torch.ops.aten, packet, None), overload, None)
        if op is not None:
            ops[op] = _keep
    return override(ops)


def _keep(*args: Any, **kwargs: Any) -> Any:
    return NotImplemented
