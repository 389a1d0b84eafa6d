"""Sizes: PyTorch's symbolic integers as CIR's Dims."""

from typing import Any

import sympy
import torch

from cuvil import _core
from cuvil.errors import UnsupportedError

Size = int | _core.Dim


def _binary(op: str) -> Any:
    return {
        "FloorDiv": lambda a, b: _divide(a, b),
        "CleanDiv": lambda a, b: _divide(a, b),
        "Mod": lambda a, b: _lift(a) % b,
        "PythonMod": lambda a, b: _lift(a) % b,
        "CeilDiv": lambda a, b: _divide(_lift(a) + b - 1, b),
    }.get(op)


def _lift(a: Size) -> _core.Dim:
    return a if isinstance(a, _core.Dim) else _core.Dim(a)


def _divide(a: Size, b: Size) -> Size:
    if isinstance(b, int) and b < 0:  # Dims divide by positive numbers only
        a, b = -a, -b
    return simple(_lift(a) // b)


def simple(d: Size) -> Size:
    """A constant Dim as a number."""
    if isinstance(d, _core.Dim) and d.value is not None:
        return d.value
    return d


def from_sympy(e: sympy.Expr) -> Size:
    """An expression of PyTorch's shape environment as a number or a Dim. Raises UnsupportedError for what Dims lack."""
    if isinstance(e, sympy.Integer):
        return int(e)
    if isinstance(e, sympy.Symbol):
        return _core.Dim.symbol(e.name)
    name = type(e).__name__
    args = [from_sympy(a) for a in e.args if not isinstance(a, sympy.Rational) or isinstance(a, sympy.Integer)]
    if len(args) == len(e.args) and args:
        if isinstance(e, sympy.Add):
            total: Size = args[0]
            for a in args[1:]:
                total = total + a
            return simple(total)
        if isinstance(e, sympy.Mul):
            product: Size = args[0]
            for a in args[1:]:
                product = product * a
            return simple(product)
        if isinstance(e, sympy.Pow) and isinstance(args[1], int) and 0 < args[1] <= 8:
            power: Size = args[0]
            for _ in range(args[1] - 1):
                power = power * args[0]
            return simple(power)
        if name in ("Max", "Min"):
            pick = _core.dim_max if name == "Max" else _core.dim_min
            bound: Size = args[0]
            for a in args[1:]:
                bound = pick(bound, a)
            return simple(bound)
        if name in ("TruncToInt", "FloorToInt", "CeilToInt", "Identity", "ToInt") and len(args) == 1:
            return args[0]  # of an integer expression
        divide = _binary(name)
        if divide is not None:
            return simple(divide(args[0], args[1]))
    raise UnsupportedError(f"a size of the form {e}")


def size_of(x: Any) -> Size:
    """A number or SymInt as a number or a Dim."""
    if isinstance(x, bool):
        return int(x)
    if isinstance(x, (int, _core.Dim)):
        return x
    if isinstance(x, torch.SymInt):
        known = x.node.maybe_as_int()
        return known if known is not None else from_sympy(x.node.expr)
    raise UnsupportedError(f"a size given as {type(x).__name__}")


def shape_of(t: torch.Tensor) -> tuple[Size, ...]:
    """Shape of a (fake) tensor."""
    return tuple(size_of(s) for s in t.shape)


def product(sizes: Any) -> Size:
    """Product of sizes; 1 for none."""
    n: Size = 1
    for s in sizes:
        n = n * s
    return simple(n)
