"""What the suites of small programs share: see test_torch_semantics_*.py.

A program is a function that gets `compile` (cuvil.compile, or the identity for the expected answer) and returns what
there is to compare, with all that it leaves behind; it makes all that it changes itself.
"""

import itertools
import sys
import warnings

import cuvil
import torch
from torch import nn


def check(run):
    """Runs a program both ways."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = run(lambda f: f)
        torch._dynamo.reset()
        equal(run(cuvil.compile), want)


def randn(*shape, seed=0, dtype=torch.float32):
    g = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=g, dtype=dtype)


def equal(got, want, path="result"):
    """Equal in type, dtype, shape, strides, and in value up to rounding."""
    assert type(got) is type(want), f"{path}: {type(got).__name__} instead of {type(want).__name__}"
    if isinstance(want, torch.Tensor):
        assert got.dtype == want.dtype and got.shape == want.shape, f"{path}: {got.dtype}{list(got.shape)}"
        assert got.requires_grad == want.requires_grad, f"{path}: requires_grad"
        if want.numel() and want.dim():
            assert got.stride() == want.stride() or 1 in want.shape, f"{path}: strides {got.stride()}, {want.stride()}"
        if want.dtype.is_floating_point:
            torch.testing.assert_close(got, want, rtol=2e-5, atol=2e-5, equal_nan=True, msg=lambda m: f"{path}: {m}")
        else:
            assert torch.equal(got, want), path
    elif isinstance(want, dict):
        assert list(got) == list(want), f"{path}: keys"
        for k in want:
            equal(got[k], want[k], f"{path}[{k!r}]")
    elif isinstance(want, (list, tuple)):
        assert len(got) == len(want), f"{path}: length"
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            equal(g, w, f"{path}[{i}]")
    else:
        assert got == want or (got != got and want != want), f"{path}: {got} instead of {want}"


def net(*sizes, seed=0):
    layers = []
    for i, (a, b) in enumerate(itertools.pairwise(sizes)):
        layer = nn.Linear(a, b)
        with torch.no_grad():
            layer.weight.copy_(randn(b, a, seed=seed + i) / a**0.5)
            layer.bias.copy_(randn(b, seed=seed + i))
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers).eval()


def settle():
    """Waits until changed weights are packed anew."""
    if packing := sys.modules.get("cuvil.torch.weights"):
        packing.wait()
