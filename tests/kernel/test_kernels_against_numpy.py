"""The hand-written kernels of text/ run by kir-run against numpy."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")

ROOT = Path(__file__).resolve().parents[2]
TEXT = Path(__file__).parent / "text"


def kir_run() -> Path:
    found = list(ROOT.glob("build/*/tests/kernel/kir-run"))
    if not found:
        pytest.skip("kir-run is not built")
    return max(found, key=lambda p: p.stat().st_mtime)


def run(tmp_path: Path, name: str, dims: dict[str, int], inputs: dict, output: str, shape: tuple[int, ...]):
    """Runs text/NAME.kir; inputs are f32 arrays by parameter name."""
    arguments = [f"{k}={v}" for k, v in dims.items()]
    for key, value in inputs.items():
        np.ascontiguousarray(value, np.float32).tofile(tmp_path / key)
        arguments.append(f"{key}={tmp_path / key}")
    arguments.append(f"{output}={tmp_path / 'result'}:{4 * int(np.prod(shape))}")
    subprocess.run([str(kir_run()), str(TEXT / f"{name}.kir"), *arguments], check=True)
    return np.fromfile(tmp_path / "result", np.float32).reshape(shape)


@pytest.fixture
def noise():
    return np.random.default_rng(5).standard_normal


def blocked(x):
    """[N, C, H, W] -> [N, C / 16, H, W, 16]"""
    n, c, h, w = x.shape
    return x.reshape(n, c // 16, 16, h, w).transpose(0, 1, 3, 4, 2)


def plain(x):
    n, blocks, h, w, _ = x.shape
    return x.transpose(0, 1, 4, 2, 3).reshape(n, blocks * 16, h, w)


def patches(x):
    """The nine shifted images of a 3x3 window with padding 1: [3, 3, N, C, H, W]."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    h, w = x.shape[2:]
    return np.stack([np.stack([padded[:, :, r : r + h, s : s + w] for s in range(3)]) for r in range(3)])


def test_gemm_tile(tmp_path, noise):
    a, b = noise((45, 33)), noise((33, 32))
    c = run(tmp_path, "gemm_tile", {"M": 45, "K": 33}, {"a": a, "b": b}, "c", (45, 32))
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "h", "s", "d"), [("attention", 3, 50, 24), ("attention_online", 2, 50, 64)])
def test_attention(tmp_path, noise, name, h, s, d):
    q, k, v = noise((h, s, d)), noise((h, s, d)), noise((h, s, d))
    inputs = {"q": q, "k": k, "v": v, "scale": np.array([d**-0.5])}
    out = run(tmp_path, name, {"H": h, "S": s, "D": d}, inputs, "out", (h, s, d))
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(d)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(out, weights / weights.sum(-1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("n", "ci", "co", "h", "w"), [(1, 32, 48, 13, 10), (2, 16, 16, 4, 7)])
def test_winograd(tmp_path, noise, n, ci, co, h, w):
    x, g, bias = noise((n, ci, h, w)), noise((co, ci, 3, 3)), noise(co)
    # Rows of G at the points 0, 5/8, -5/8, 3/2, -3/2 and infinity: powers of the point over the product of distances.
    points = np.array([0, 0.625, -0.625, 1.5, -1.5])
    distance = [np.prod([p - q for q in points if q != p]) for p in points]
    transform = np.vstack([[[1, p, p * p] / d for p, d in zip(points, distance, strict=True)], [[0, 0, 1]]])
    u = np.einsum("ar,oirs,bs->abio", transform, g, transform).reshape(36, ci, co)
    groups = (co + 31) // 32
    packed = np.zeros((groups, 36, ci, 32))
    for o in range(groups):
        part = u[:, :, 32 * o : 32 * o + 32]
        packed[o, :, :, : part.shape[2]] = part
    dims = {"N": n, "CI": ci // 16, "CO": co // 16, "H": h, "W": w}
    shape = (n, co // 16, h, w, 16)
    y = plain(run(tmp_path, "winograd_f43", dims, {"x": blocked(x), "u": packed, "bias": bias}, "y", shape))
    expected = np.einsum("rsnihw,oirs->nohw", patches(x), g) + bias[:, None, None]
    assert np.abs(y - expected).max() < 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("rows", [1, 4, 14])
def test_inverted_residual(tmp_path, noise, rows):
    n, c, e, h, w = 2, 16, 64, 9, 7
    x, we, be = noise((n, c, h, w)), noise((e, c)), noise(e)
    wd, bd, wp, bp = noise((e, 3, 3)), noise(e), noise((c, e)), noise(c)
    pack = lambda m: m.reshape(m.shape[0] // 16, 16, m.shape[1] // 16, 16).transpose(0, 2, 3, 1)  # noqa: E731
    inputs = {"x": blocked(x), "we": pack(we), "be": be, "bd": bd, "wp": pack(wp), "bp": bp}
    inputs["wd"] = wd.reshape(e // 16, 16, 3, 3).transpose(0, 2, 3, 1)
    dims = {"N": n, "CI": c // 16, "CE": e // 16, "H": h, "W": w, "R": rows}
    y = plain(run(tmp_path, "inverted_residual", dims, inputs, "y", (n, c // 16, h, w, 16)))
    relu6 = lambda v: np.clip(v, 0, 6)  # noqa: E731
    wide = relu6(np.einsum("nchw,ec->nehw", x, we) + be[:, None, None])
    deep = relu6(np.einsum("rsnehw,ers->nehw", patches(wide), wd) + bd[:, None, None])
    expected = np.einsum("nehw,ce->nchw", deep, wp) + bp[:, None, None] + x
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=2e-4)
