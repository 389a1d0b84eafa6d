"""Results whose sizes depend on data, and TopK, against ONNX Runtime: also through a saved file."""

import cuvil
import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64,
         np.dtype(np.int32): TensorProto.INT32, np.dtype(np.bool_): TensorProto.BOOL}  # fmt: skip


def model_of(nodes, inputs, outputs, weights=None):
    inputs = [helper.make_tensor_value_info(n, TYPES[np.dtype(t)], s) for n, (t, s) in inputs.items()]
    outputs = [helper.make_tensor_value_info(n, TYPES[np.dtype(t)], None) for n, t in outputs.items()]
    initializers = [numpy_helper.from_array(np.asarray(w), n) for n, w in (weights or {}).items()]
    graph = helper.make_graph(nodes, "test", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def check(model, *feeds, path=None):
    names = [i.name for i in model.graph.input]
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    exe = cuvil.build(cuvil.import_onnx(model))
    if path:
        exe.save(str(path), targets=["host"])
        exe = cuvil.load(str(path))
    for feed in feeds:
        want = session.run(None, dict(zip(names, feed, strict=True)))
        got = exe(*feed)
        for g, w in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
            assert g.dtype == w.dtype and g.shape == w.shape
            np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


def sparse(rng, *shape):
    x = rng.standard_normal(shape).astype(np.float32)
    return np.where(rng.random(shape) < 0.5, x, np.float32(0))


def test_nonzero_and_what_is_computed_from_it(rng, tmp_path):
    nodes = [
        helper.make_node("NonZero", ["x"], ["i"]),
        helper.make_node("Transpose", ["i"], ["t"], perm=[1, 0]),
        helper.make_node("GatherND", ["x", "t"], ["found"]),
        helper.make_node("Exp", ["found"], ["e"]),
        helper.make_node("ReduceSum", ["e"], ["sum"], keepdims=0),
        helper.make_node("Shape", ["t"], ["n"]),
    ]
    outputs = {"i": np.int64, "e": np.float32, "sum": np.float32, "n": np.int64}
    model = model_of(nodes, {"x": (np.float32, ["N", 7])}, outputs)
    feeds = [(sparse(rng, n, 7),) for n in (5, 1, 9, 5)] + [(np.zeros((3, 7), np.float32),)]
    check(model, *feeds, path=tmp_path / "m.cvl")


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_compress(rng, axis):
    attributes = {} if axis is None else {"axis": axis}
    node = helper.make_node("Compress", ["x", "c"], ["y"], **attributes)
    model = model_of([node], {"x": (np.float32, [4, 6]), "c": (bool, [4])}, {"y": np.float32})
    for c in ([True, False, True, True], [False] * 4, [True] * 4):
        check(model, (rng.standard_normal((4, 6)).astype(np.float32), np.array(c)))


@pytest.mark.parametrize("axis, ordered", [(None, 1), (None, 0), (0, 1), (1, 0)])
def test_unique(rng, axis, ordered):
    attributes = {"sorted": ordered} | ({} if axis is None else {"axis": axis})
    node = helper.make_node("Unique", ["x"], ["y", "first", "inverse", "counts"], **attributes)
    outputs = {"y": np.float32, "first": np.int64, "inverse": np.int64, "counts": np.int64}
    model = model_of([node], {"x": (np.float32, ["N", 3])}, outputs)
    check(model, *[(rng.integers(0, 2, (n, 3)).astype(np.float32),) for n in (8, 1, 17)])


@pytest.mark.parametrize("most", [3, 100])
def test_non_max_suppression(rng, most):
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["picked"])
    weights = {"most": np.array([most]), "overlap": np.array([0.4], np.float32), "least": np.array([0.2], np.float32)}
    inputs = {"boxes": (np.float32, [2, "N", 4]), "scores": (np.float32, [2, 3, "N"])}
    model = model_of([node], inputs, {"picked": np.int64}, weights)
    feeds = []
    for n in (40, 1, 90):
        corner = rng.random((2, n, 2))
        boxes = np.concatenate([corner, corner + 0.3 * rng.random((2, n, 2))], -1).astype(np.float32)
        feeds.append((boxes, rng.random((2, 3, n)).astype(np.float32)))
    check(model, *feeds)


@pytest.mark.parametrize("k, axis, largest", [(1, -1, 1), (5, 1, 0), (7, 0, 1), (12, -1, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32])
def test_topk(rng, k, axis, largest, dtype):
    node = helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=axis, largest=largest)
    model = model_of([node], {"x": (dtype, [7, 12])}, {"v": dtype, "i": np.int64}, {"k": np.array([k])})
    check(model, *[((10 * rng.standard_normal((7, 12))).astype(dtype),) for _ in range(3)])


def test_nonzero_in_a_loop(rng):
    """The number of elements found differs from one iteration to the next, and grows."""
    body_nodes = [
        helper.make_node("Cast", ["i"], ["fi"], to=TensorProto.FLOAT),
        helper.make_node("Less", ["x", "fi"], ["below"]),
        helper.make_node("NonZero", ["below"], ["found"]),
        helper.make_node("Gather", ["x", "found0"], ["few"]),
        helper.make_node("ReduceSum", ["few"], ["sum"], keepdims=0),
        helper.make_node("Identity", ["c"], ["c2"]),
    ]
    body_nodes.insert(3, helper.make_node("Squeeze", ["found", "zero"], ["found0"]))
    value = lambda n, t, s=None: helper.make_tensor_value_info(n, t, s)  # noqa: E731
    body = helper.make_graph(body_nodes, "body", [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, [])],
                             [value("c2", TensorProto.BOOL, []), value("sum", TensorProto.FLOAT)])  # fmt: skip
    node = helper.make_node("Loop", ["six", ""], ["sums"], body=body)
    weights = {"six": np.array(6), "zero": np.array([0])}
    model = model_of([node], {"x": (np.float32, ["N"])}, {"sums": np.float32}, weights)
    check(model, *[((6 * rng.random(n)).astype(np.float32),) for n in (20, 3)])
