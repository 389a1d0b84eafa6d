"""Which composite operators PyTorch takes apart before conversion, and which CIR has itself."""

from collections.abc import Callable
from typing import Any

import torch

from cuvil.torch import convert as _convert  # noqa: F401  registers the tables
from cuvil.torch.table import find

_KEPT_WITH_STATE = ("aten::native_batch_norm", "aten::_native_batch_norm_legit")


def table() -> dict[Any, Callable[..., Any]]:
    """A decomposition table for torch.export and AOTAutograd: PyTorch's for core ATen and what else it can take apart,
    without the operators that the converter knows."""
    from torch._decomp import core_aten_decompositions, decomposition_table

    merged: dict[Any, Callable[..., Any]] = dict(core_aten_decompositions())
    for op, rule in decomposition_table.items():
        if op not in merged and isinstance(op, torch._ops.OpOverload) and not _leave(op):
            merged[op] = rule
    return {op: rule for op, rule in merged.items() if find(op) is None}


def _leave(op: torch._ops.OpOverload) -> bool:
    """Rules that would change what a program computes (random numbers), or that serve gradients only."""
    name = op._schema.name
    return "backward" in name or torch.Tag.nondeterministic_seeded in op.tags
