"""Operators of ONNX that are spelled out in several of CIR's: against ONNX's reference evaluator."""

import cuvil
import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator


def _type(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def run(op, feeds, outputs=1, opset=22, used=None, **attributes):
    """One node on these inputs (None: left out), through Cuvil and through the reference."""
    names = [n if v is not None else "" for n, v in feeds.items()]
    given = {n: v for n, v in feeds.items() if v is not None}
    outs = [f"y{i}" if used is None or i in used else "" for i in range(outputs)]
    kept = [o for o in outs if o]
    node = helper.make_node(op, names, outs, **attributes)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info(n, _type(v), v.shape) for n, v in given.items()],
        [helper.make_tensor_value_info(o, TensorProto.UNDEFINED, None) for o in kept])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    got = cuvil.build(cuvil.import_onnx(model))(**given)
    want = ReferenceEvaluator(model).run(None, given)
    return list(got) if isinstance(got, tuple) else [got], want


def check(op, feeds, outputs=1, rtol=1e-4, atol=1e-5, **more):
    got, want = run(op, feeds, outputs, **more)
    for g, w in zip(got, want, strict=True):
        w = np.asarray(w)
        assert g.shape == w.shape and g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=rtol, atol=atol)


@pytest.fixture
def f(rng):
    return lambda *s: rng.standard_normal(s).astype(np.float32)


class TestAttention:
    @pytest.mark.parametrize("causal", [0, 1])
    @pytest.mark.parametrize("heads", [(3, 3), (6, 2)])
    def test_heads_and_causal(self, f, causal, heads):
        feeds = {"q": f(2, heads[0], 4, 8), "k": f(2, heads[1], 7, 8), "v": f(2, heads[1], 7, 5)}
        check("Attention", feeds, opset=24, is_causal=causal)

    def test_three_dimensions_with_past(self, f):
        feeds = {"q": f(2, 3, 24), "k": f(2, 3, 24), "v": f(2, 3, 24), "mask": None,
                 "pk": f(2, 3, 4, 8), "pv": f(2, 3, 4, 8)}  # fmt: skip
        check("Attention", feeds, 3, opset=24, q_num_heads=3, kv_num_heads=3, is_causal=1, scale=0.3)

    @pytest.mark.parametrize("shape", [(4, 7), (2, 1, 4, 7), (3, 4, 7), (4, 5)])
    def test_masks(self, f, rng, shape):
        feeds = {"q": f(2, 3, 4, 8), "k": f(2, 3, 7, 8), "v": f(2, 3, 7, 8)}
        check("Attention", {**feeds, "mask": f(*shape)}, opset=24)
        boolean = rng.random(shape) < 0.6
        boolean[..., 0, :] = False  # a query without keys: zeros
        check("Attention", {**feeds, "mask": boolean}, opset=24)

    @pytest.mark.parametrize("mode", [0, 1, 2, 3])
    def test_scores(self, f, mode):
        feeds = {"q": f(2, 3, 4, 8), "k": f(2, 3, 7, 8), "v": f(2, 3, 7, 8), "mask": f(4, 7)}
        check("Attention", feeds, 4, opset=24, used=[0, 3], qk_matmul_output_mode=mode)

    def test_softcap_and_windows(self, f):
        feeds = {"q": f(1, 2, 6, 8), "k": f(1, 2, 6, 8), "v": f(1, 2, 6, 8)}
        check("Attention", feeds, opset=24, softcap=2.0)
        check("Attention", feeds, opset=25, left_window_size=2, right_window_size=1)

    def test_padded_cache(self, f):
        feeds = {"q": f(2, 3, 2, 8), "k": f(2, 3, 7, 8), "v": f(2, 3, 7, 8), "mask": None, "pk": None, "pv": None,
                 "n": np.array([3, 7])}  # fmt: skip
        check("Attention", feeds, opset=24)
        check("Attention", feeds, opset=24, is_causal=1)

    def test_symbolic_sizes(self, f):
        node = helper.make_node("Attention", ["q", "k", "v"], ["y"], is_causal=1)
        info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["B", 2, s, 8])
                for n, s in (("q", "S"), ("k", "T"), ("v", "T"))]  # fmt: skip
        graph = helper.make_graph([node], "g", info, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)
        exe = cuvil.build(cuvil.import_onnx(model))
        for s, t in ((3, 3), (1, 9), (5, 6)):
            feeds = {"q": f(2, 2, s, 8), "k": f(2, 2, t, 8), "v": f(2, 2, t, 8)}
            want = ReferenceEvaluator(model).run(None, feeds)[0]
            np.testing.assert_allclose(exe(**feeds), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("dim", [0, 4])
def test_rotary_embedding(f, rng, interleaved, dim):
    half = (dim or 8) // 2
    feeds = {"x": f(2, 3, 5, 8), "cos": f(50, half), "sin": f(50, half), "p": rng.integers(0, 50, (2, 5))}
    check("RotaryEmbedding", feeds, opset=23, interleaved=interleaved, rotary_embedding_dim=dim)
    feeds = {"x": f(2, 5, 24), "cos": f(2, 5, half), "sin": f(2, 5, half)}
    check("RotaryEmbedding", feeds, opset=23, interleaved=interleaved, rotary_embedding_dim=dim, num_heads=3)


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_tensor_scatter(f, mode):
    feeds = {"cache": f(2, 3, 6, 4), "update": f(2, 3, 2, 4), "at": np.array([1, 4 if mode == "linear" else 5])}
    check("TensorScatter", feeds, opset=24, mode=mode)


@pytest.mark.parametrize("op", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("extra", [(), (4, 3)])
def test_losses(f, rng, op, reduction, weighted, extra):
    target = rng.integers(0, 5, (6, *extra))
    target.flat[0] = target.flat[3] = 1
    feeds = {"x": f(6, 5, *extra), "t": target, "w": np.abs(f(5)) if weighted else None}
    check(op, feeds, reduction=reduction, ignore_index=1)
    target[target == 1] = 2
    target.flat[0] = -100  # outside, and ignored
    check(op, feeds, reduction=reduction, ignore_index=-100)


@pytest.mark.parametrize("axis", [-1, 1])
def test_layer_normalization_with_statistics(f, axis):
    feeds = {"x": f(2, 3, 5), "s": f(*(3, 5)[axis - 1 if axis > 0 else axis :]), "b": None}
    check("LayerNormalization", feeds, 3, axis=axis)


def test_other_normalizations(f):
    for p in (1, 2):
        x = f(2, 3, 4)
        x[0, 1] = 0
        norm = np.abs(x).sum(1, keepdims=True) if p == 1 else np.sqrt((x * x).sum(1, keepdims=True))
        got, _ = run("LpNormalization", {"x": x}, axis=1, p=p)
        np.testing.assert_allclose(got[0], np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm)), rtol=1e-5)
    feeds = {"x": f(2, 3, 4, 5), "s": f(3), "b": f(3), "m": f(3), "v": np.abs(f(3)) + 0.1}
    check("BatchNormalization", feeds, 3, training_mode=1, momentum=0.7)
    check("MeanVarianceNormalization", {"x": f(2, 3, 4, 5)}, opset=13)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
        ("ij->ji", [(2, 3)]),
        ("ij->", [(2, 3)]),
        ("ii->i", [(4, 4)]),
        ("ii", [(4, 4)]),
        ("bii->b", [(2, 3, 3)]),
        ("i,j->ij", [(3,), (4,)]),
        ("i,i", [(3,), (3,)]),
        ("...ij,...jk->...ik", [(5, 1, 2, 3), (4, 3, 6)]),
        ("...ii ->...i", [(2, 3, 3)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("bhqd,bkhd->bhqk", [(2, 3, 4, 5), (2, 6, 3, 5)]),
        ("ba,ac", [(2, 3), (3, 4)]),
        ("ij,k->i", [(2, 3), (4,)]),
        ("ij,ij->ij", [(2, 3), (2, 3)]),
    ],
)
def test_einsum(f, equation, shapes):
    check("Einsum", {f"x{i}": f(*s) for i, s in enumerate(shapes)}, opset=12, equation=equation)


def test_windows_and_mel_filters():
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        for periodic in (0, 1):
            check(op, {"n": np.array(17)}, periodic=periodic)
    feeds = {"bins": np.array(8), "n": np.array(64), "rate": np.array(8192), "low": np.array(0, np.float32),
             "high": np.array(4000, np.float32)}  # fmt: skip
    check("MelWeightMatrix", feeds)


@pytest.mark.parametrize("n", [None, 6, 16])
@pytest.mark.parametrize("axis", [1, 2])
def test_dft(f, n, axis):
    length = None if n is None else np.array(n)
    for parts in (1, 2):
        x = f(2, 9, 10, parts)
        for inverse in (0, 1):
            got, _ = run("DFT", {"x": x, "n": length, "axis": np.array(axis)}, opset=20, inverse=inverse)
            z = x[..., 0] if parts == 1 else x[..., 0] + 1j * x[..., 1]
            y = (np.fft.ifft if inverse else np.fft.fft)(z, n=n, axis=axis)
            np.testing.assert_allclose(got[0], np.stack([y.real, y.imag], -1), rtol=1e-3, atol=1e-4)
    spectrum = f(2, 9, 10, 2)
    got, _ = run("DFT", {"x": spectrum, "n": length, "axis": np.array(axis)}, opset=20, inverse=1, onesided=1)
    z = spectrum[..., 0] + 1j * spectrum[..., 1]
    np.testing.assert_allclose(got[0][..., 0], np.fft.irfft(z, n=n, axis=axis), rtol=1e-3, atol=1e-4)


def test_stft(f):
    feeds = {"x": f(2, 40, 1), "step": np.array(5), "w": np.hanning(16).astype(np.float32), "n": np.array(16)}
    check("STFT", feeds, opset=17, rtol=1e-3, atol=1e-4)


def test_images(f, rng):
    check("AffineGrid", {"theta": f(2, 2, 3), "size": np.array([2, 3, 4, 5])}, opset=20, align_corners=1)
    check("AffineGrid", {"theta": f(2, 3, 4), "size": np.array([2, 3, 4, 5, 6])}, opset=20)
    check("CenterCropPad", {"x": f(5, 9, 4), "shape": np.array([8, 4, 4])}, opset=18)
    check("CenterCropPad", {"x": f(5, 9, 4), "shape": np.array([3, 12])}, opset=18, axes=[-1, 0])
    check("Col2Im", {"x": f(2, 3 * 6, 12), "image": np.array([5, 5]), "block": np.array([2, 3])}, opset=18)
    check("Col2Im", {"x": f(1, 2 * 4, 9), "image": np.array([5, 5]), "block": np.array([2, 2])}, opset=18,
          strides=[2, 2], pads=[1, 0, 0, 1])  # fmt: skip
    check("LpPool", {"x": f(2, 3, 9, 8)}, kernel_shape=[3, 2], strides=[2, 1], p=3)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [0, 1])
def test_grid_sample(f, mode, padding, corners):
    x, grid = f(2, 3, 5, 7), 1.5 * f(2, 4, 3, 2)
    if mode == "cubic" and padding == "border":  # ONNX draws positions in, PyTorch their neighbours
        check("GridSample", {"x": x, "grid": grid}, opset=20, mode=mode, padding_mode=padding, align_corners=corners)
        return
    torch = pytest.importorskip("torch")
    names = {"nearest": "nearest", "linear": "bilinear", "cubic": "bicubic"}
    want = torch.nn.functional.grid_sample(torch.from_numpy(x), torch.from_numpy(grid), names[mode], padding,
                                           align_corners=bool(corners))  # fmt: skip
    got, _ = run("GridSample", {"x": x, "grid": grid}, opset=20, mode=mode, padding_mode=padding, align_corners=corners)
    np.testing.assert_allclose(got[0], want.numpy(), rtol=1e-4, atol=1e-5)


def test_cumulative_product(f):
    check("CumProd", {"x": f(3, 4), "axis": np.array(1)}, opset=26, exclusive=1, reverse=1)


def test_dropout_in_training_mode_is_refused_unless_nothing_is_dropped(f):
    feeds = {"x": f(3, 4), "ratio": np.array(0, np.float32), "mode": np.array(True)}
    got, _ = run("Dropout", feeds, 2)
    np.testing.assert_array_equal(got[0], feeds["x"])
    assert got[1].all()
    with pytest.raises(cuvil.UnsupportedError, match="random"):
        run("Dropout", {**feeds, "ratio": np.array(0.5, np.float32)}, 2)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_resize_with_antialias_and_crops(f, mode):
    feeds = {"x": f(1, 2, 9, 12), "roi": None, "scales": None, "sizes": np.array([1, 2, 4, 5])}
    for exclude in (0, 1):
        check("Resize", feeds, opset=18, mode=mode, antialias=1, exclude_outside=exclude)
    feeds = {"x": f(1, 2, 9, 12), "roi": np.array([0, 0, 0.4, 0.6, 1, 1, 0.9, 1.3], np.float32), "scales": None,
             "sizes": np.array([1, 2, 4, 5])}  # fmt: skip
    check("Resize", feeds, opset=18, mode=mode, coordinate_transformation_mode="tf_crop_and_resize",
          extrapolation_value=7.0)  # fmt: skip


def test_deformable_convolution(f):
    feeds = {"x": f(2, 4, 6, 7), "w": f(6, 2, 2, 3), "o": f(2, 2 * 12, 5, 5), "b": f(6), "m": f(2, 2 * 6, 5, 5)}
    check("DeformConv", feeds, group=2, offset_group=2)
    feeds = {"x": f(1, 1, 5, 5), "w": f(1, 1, 3, 3), "o": f(1, 18, 3, 3)}
    check("DeformConv", feeds, strides=[2, 2], pads=[1, 1, 1, 1])
