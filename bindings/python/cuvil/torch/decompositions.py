"""Which composite operators PyTorch takes apart before conversion, and which CIR has itself."""

from collections.abc import Callable
from typing import Any

from cuvil.torch import convert as _convert  # noqa: F401  registers the tables
from cuvil.torch.table import find


def table() -> dict[Any, Callable[..., Any]]:
    """A decomposition table for torch.export and AOTAutograd: PyTorch's for core ATen, without the operators that the
    converter knows."""
    from torch._decomp import core_aten_decompositions

    rules: dict[Any, Callable[..., Any]] = dict(core_aten_decompositions())
    return {op: rule for op, rule in rules.items() if find(op) is None}
