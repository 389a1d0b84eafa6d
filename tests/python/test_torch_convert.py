"""PyTorch graphs to CIR: values, types, locations, refusals."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402, N812
from torch import nn  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

import cuvil  # noqa: E402
from cuvil.torch import convert, why_not  # noqa: E402


def trace(f: Callable[..., Any], *args: Any, symbolic: bool = False) -> torch.fx.GraphModule:
    mode = "symbolic" if symbolic else "fake"
    gm = make_fx(torch.func.functionalize(f), tracing_mode=mode)(*args)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return gm


def run(gm: torch.fx.GraphModule, *args: Any, target: str = "reference", **kwargs: Any) -> Any:
    r = convert(gm, **kwargs)
    inputs = [torch.tensor(args[i]) if not isinstance(args[i], torch.Tensor) else args[i] for i in r.inputs]
    if not r.graph.outputs:
        return r.rebuild([], args)
    y = cuvil.build(r.graph, target=target)(*inputs)
    y = y if isinstance(y, tuple) else (y,)
    return r.rebuild([t if isinstance(t, torch.Tensor) else torch.from_numpy(t) for t in y], args)


def same(f: Callable[..., Any], *args: Any, target: str = "reference") -> None:
    torch.testing.assert_close(run(trace(f, *args), *args, target=target), f(*args), equal_nan=True)


def test_linear_and_gelu():
    same(lambda x, w, b: F.gelu(F.linear(x, w, b)) + 1, torch.randn(3, 4, 8), torch.randn(5, 8), torch.randn(5))


def test_static_weights_share_memory():
    w = torch.randn(64, 64)
    x = torch.randn(2, 64)
    gm = trace(lambda w, x: x @ w, w, x)
    r = convert(gm, static={0: w})
    assert r.inputs == [1]
    before = cuvil.build(r.graph, target="reference")(x)
    torch.testing.assert_close(before, x @ w)


def test_refusal_says_why():
    gm = trace(torch.linalg.det, torch.randn(3, 3))
    reasons = [why_not(n) for n in gm.graph.nodes if n.op == "call_function"]
    assert any(r is not None and "no counterpart" in r for r in reasons)
    with pytest.raises(cuvil.UnsupportedError, match="_linalg_det"):
        convert(gm)


class _Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.inner(x)
        return F.relu(hidden)
