"""PyTorch graphs to CIR: values, types, locations, refusals."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import cuvil  # noqa: E402
import torch.nn.functional as F  # noqa: E402, N812
from cuvil.torch import convert, why_not  # noqa: E402
from cuvil.torch.decompositions import keep_composites  # noqa: E402
from torch import nn  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.utils._python_dispatch import _disable_current_modes  # noqa: E402


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


def aot(f: Callable[..., Any], *args: Any, dynamic: bool = False, target: str = "reference") -> Any:
    """f through Dynamo and AOTAutograd; every graph must convert whole."""
    from torch._dynamo.backends.common import aot_autograd

    def compiler(gm: torch.fx.GraphModule, _: Any) -> Any:
        r = convert(gm)
        with _disable_current_modes():
            exe = cuvil.build(r.graph, target=target) if r.graph.outputs else None

        def call(*given: Any) -> Any:
            y = exe(*[torch.as_tensor(given[i]) for i in r.inputs]) if exe is not None else ()
            return r.rebuild(y if isinstance(y, tuple) else (torch.as_tensor(y),), given)

        return call

    torch._dynamo.reset()
    with torch.no_grad(), keep_composites():
        return torch.compile(f, backend=aot_autograd(fw_compiler=compiler), dynamic=dynamic, fullgraph=True)(*args)


def same(f: Callable[..., Any], *args: Any, target: str = "reference") -> None:
    torch.testing.assert_close(aot(f, *args, target=target), f(*args), equal_nan=True)


def test_linear_and_gelu():
    same(lambda x, w, b: F.gelu(F.linear(x, w, b)) + 1, torch.randn(3, 4, 8), torch.randn(5, 8), torch.randn(5))


def test_static_weights_share_memory():
    w = torch.randn(64, 64)
    x = torch.randn(2, 64)
    gm = trace(lambda w, x: x @ w, w, x)
    r = convert(gm, static={0: w})
    assert r.inputs == [1]
    w.mul_(2)  # seen by the graph: it holds no copy
    torch.testing.assert_close(cuvil.build(r.graph, target="reference")(x), x @ w)


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int32, torch.uint8, torch.bool])
@pytest.mark.parametrize("other", [torch.float32, torch.int64, torch.bool, 2, 2.5, True])
def test_promotion(dtype, other):
    x = torch.tensor([[3, 0, 5], [1, 7, 0]]).to(dtype)
    y = torch.tensor([2, 3, 1]).to(other) if isinstance(other, torch.dtype) else other
    kinds = [dtype, torch.as_tensor(y).dtype]
    truth, number = torch.bool in kinds, y

    def f(x: torch.Tensor, y: Any = None) -> Any:
        y = number if y is None else y
        results = [x + y, x * y, x == y, x < y, torch.where(x != 0, x, y)]
        if kinds != [torch.bool, torch.bool]:
            results += [x / y, x // y, x % y]
        return results if truth else [*results, x - y, torch.clamp(x * 2, max=5)]

    same(f, x, *([y] if isinstance(y, torch.Tensor) else []))


def test_integer_division_and_shifts():
    a = torch.tensor([7, -7, 7, -7, -8, 0, 2**62])
    b = torch.tensor([2, 2, -2, -2, 3, 5, 3])
    same(lambda a, b: (a // b, a % b, torch.fmod(a, b), torch.div(a, b, rounding_mode="trunc")), a, b)
    n = torch.tensor([0, 1, 3, 63, 64, 2, 5])
    same(lambda a, n: (a << n.clamp(max=63), a >> n), a, n)
    same(lambda a: (a**3, a**0, -a, ~a, a.abs()), a)


def test_nan_infinity_and_signed_zero():
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([nan, inf, -inf, 0.0, -0.0, 1.5, -1.5, 1e-8])
    y = torch.tensor([1.0, 2.0, -0.0, 0.0, 0.0, nan, -inf, 3.0])
    same(lambda x, y: (torch.maximum(x, y), torch.minimum(x, y), x.clamp(-1, 1), x.relu(), x.sign(), x.trunc()), x, y)
    same(lambda x, y: (torch.atan2(x, y), torch.hypot(x, y), torch.copysign(x, y), torch.signbit(x)), x, y)
    same(lambda x, y: (x // y, x % y, torch.fmod(x, y), x == y, x != y, torch.nan_to_num(x)), x, y)
    same(lambda x, y: (x.isnan(), x.isinf(), x.isfinite(), x.amax(), x.argmax(), x.log1p(), x.expm1()), x, y)
    same(lambda x, y: (torch.xlogy(x, y), torch.logaddexp(x, y), x.logsumexp(0), F.threshold(x, 0, 7)), x, y)


def test_views_and_parts():
    x = torch.randn(4, 6, 5)
    same(lambda x: (x.view(24, 5), x.permute(2, 0, 1), x[1:, ::2, -3:], x[2], x.flatten(1), x.unsqueeze(-1)), x)
    same(lambda x: (*x.split(4, 1), *x.chunk(3, 1), *x.unbind(2), x.roll((1, -2), (0, 1)), x.flip(0, 2)), x)
    same(lambda x: (x.repeat(2, 1, 3), x[:, None].expand(4, 3, 6, 5), torch.stack([x, x], 1), x.tril(-1)), x)
    same(lambda x: (F.pad(x, (1, -2, 0, 3), value=2.0), F.pad(x, (1, 2), mode="reflect"), x.diagonal(1, 0, 2)), x)


def test_indexing():
    x = torch.randn(4, 5, 6)
    i, j = torch.tensor([0, 3, -1]), torch.tensor([[1], [2]])
    same(lambda x, i, j: (x[i], x[:, i], x[:, i, j], x[i, :, j], x[j, i], x[..., i]), x, i, j)
    same(lambda x, i: (x.gather(1, i.view(1, 1, 3).clamp(min=0).expand(4, 2, 3)), x.index_select(2, i % 6)), x, i)
    v = torch.randn(3, 6)
    same(lambda x, i, v: (x.index_put((i, i), v), x.index_put((i % 4,), v[:, None], accumulate=True)), x, i, v)
    same(lambda x: x.masked_fill(x > 0, 7.0), x)
    same(lambda x, i: x.scatter_add(1, i.view(1, 3, 1).clamp(min=0).expand(4, 3, 6), x[:, :3]), x, i)


@pytest.mark.parametrize("mode", ["causal", "mask", "bool", "grouped", "scale"])
def test_attention(mode):
    q, k, v = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 7, 8), torch.randn(2, 4, 7, 8)
    mask = torch.randn(2, 1, 5, 7)
    extra: dict[str, Any] = {
        "causal": {"is_causal": True},
        "mask": {"attn_mask": mask},
        "bool": {"attn_mask": (mask > 0) & (torch.arange(5) != 2)[:, None]},  # row 2 sees nothing
        "grouped": {"enable_gqa": True},
        "scale": {"scale": 0.3},
    }[mode]
    if mode == "grouped":
        k, v = k[:, :2], v[:, :2]
    f = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **extra)  # noqa: E731
    torch.testing.assert_close(aot(f, q, k, v), f(q, k, v))


class _Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(10, 4, batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, _ = self.rnn(x)
        x, _ = self.gru(x)
        return self.head(x).log_softmax(-1)


def test_recurrent_layers():
    net, x = _Tagger().eval(), torch.randn(2, 7, 6)
    graph = cuvil.import_torch(net, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    assert {n.op for n in graph.nodes} >= {"LSTM", "GRU"}
    exe = cuvil.build(graph)
    for batch in (2, 3, 11):
        x = torch.randn(batch, 7, 6)
        torch.testing.assert_close(exe(x), net(x).detach())


def test_dynamic_image_sizes():
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Upsample(scale_factor=2.0), nn.AdaptiveAvgPool2d(1)
    ).eval()
    dims = ({0: torch.export.Dim("n"), 2: 2 * torch.export.Dim("h", min=2), 3: torch.export.Dim("w", min=3)},)
    exe = cuvil.build(cuvil.import_torch(net, (torch.randn(2, 3, 8, 10),), dynamic_shapes=dims))
    for n, h, w in ((2, 8, 10), (1, 12, 7), (3, 6, 31)):
        x = torch.randn(n, 3, h, w)
        torch.testing.assert_close(exe(x), net(x).detach())


def test_results_keep_pytorch_memory_order():
    y = aot(lambda x: (x + 1).permute(2, 0, 1), torch.randn(3, 4, 5))
    assert y.stride() == (1, 20, 5)


def test_sizes_and_inputs_as_results():
    def f(x: torch.Tensor) -> Any:
        return x, x.shape[0] * 2, x * x.shape[1], None

    x = torch.randn(3, 4)
    got = run(trace(f, x, symbolic=True), x)
    assert got[0] is x and got[1] == 6 and got[3] is None
    torch.testing.assert_close(got[2], x * 4)


def test_locations():
    graph = cuvil.import_torch(_Block().eval(), (torch.randn(2, 8),))
    hidden = next(n for n in graph.nodes if n.name == "hidden")
    assert hidden.op == "Add" and hidden.location.module_path == "inner" and hidden.location.variable == "hidden"
    assert hidden.location.file == __file__ and hidden.location.function == "forward"
    relu = next(n for n in graph.nodes if n.op == "Relu")
    assert relu.location.line == hidden.location.line + 1


def test_training_mode_is_refused():
    with pytest.raises(cuvil.UnsupportedError, match="eval"):
        cuvil.import_torch(nn.Dropout(0.5).train(), (torch.randn(2),))


def test_all_missing_operators_are_named_with_their_lines():
    def f(x: torch.Tensor) -> torch.Tensor:
        a = torch.linalg.det(x)
        return a + torch.linalg.inv(x).sum()

    with pytest.raises(cuvil.UnsupportedError) as e:
        cuvil.import_torch(f, (torch.randn(3, 3),))
    assert "_linalg_det" in str(e.value) and "linalg_inv" in str(e.value) and "test_torch_convert.py" in str(e.value)


def test_composites_stay_whole():
    seen: set[str] = set()

    def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.interpolate(F.linear(x, w) @ w, scale_factor=2, mode="bilinear")

    def record(gm: torch.fx.GraphModule, _: Any) -> Any:
        seen.update(str(n.target) for n in gm.graph.nodes if n.op == "call_function")
        return gm.forward

    from torch._dynamo.backends.common import aot_autograd

    with torch.no_grad(), keep_composites():
        torch.compile(f, backend=aot_autograd(fw_compiler=record))(torch.randn(1, 2, 3, 4), torch.randn(4, 4))
    assert seen == {"aten.linear.default", "aten.matmul.default", "aten.upsample_bilinear2d.vec"}


def test_sizes_that_agree_only_at_run_time():
    torch.testing.assert_close(aot(lambda x: x.view(2, -1, 3) * (x.shape[0] / x.shape[1]), x := torch.randn(4, 6),
                                   dynamic=True), x.view(2, -1, 3) * (4 / 6))  # fmt: skip
