"""From a model to answers, through the public interface."""

import copy
import pickle
import threading

import cuvil
import numpy as np
import onnxruntime as ort
import pytest
from onnx import helper


def reference(model, feeds):
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)


def test_conv_net_agrees_with_onnx_runtime_for_several_batches(conv_model, rng):
    exe = cuvil.build(cuvil.import_onnx(conv_model))
    for batch in (1, 3, 2):
        x = rng.standard_normal((batch, 3, 18, 14)).astype(np.float32)
        np.testing.assert_allclose(exe(x), reference(conv_model, {"x": x})[0], rtol=2e-5, atol=2e-5)


def test_backends_agree(conv_model, rng):
    graph = cuvil.import_onnx(conv_model)
    x = rng.standard_normal((2, 3, 18, 14)).astype(np.float32)
    np.testing.assert_allclose(cuvil.build(graph)(x), cuvil.build(graph, target="reference")(x), rtol=2e-5, atol=2e-5)


def test_strict_numerics_agrees(conv_model, rng):
    x = rng.standard_normal((1, 3, 18, 14)).astype(np.float32)
    exe = cuvil.build(cuvil.import_onnx(conv_model), numerics="strict")
    np.testing.assert_allclose(exe(x), reference(conv_model, {"x": x})[0], rtol=2e-5, atol=2e-5)


def test_inputs_by_name_strided_and_read_only(make_model, rng):
    model = make_model([helper.make_node("Sub", ["a", "b"], ["y"])], {"a": [4, 6], "b": [4, 6]}, ["y"])
    exe = cuvil.build(cuvil.import_onnx(model))
    a, b = rng.standard_normal((2, 4, 6)).astype(np.float32)
    np.testing.assert_array_equal(exe(b=b, a=a), a - b)
    wide = rng.standard_normal((6, 4)).astype(np.float32)
    np.testing.assert_array_equal(exe(wide.T, b), wide.T - b)
    a.flags.writeable = False
    np.testing.assert_array_equal(exe(a, b), a - b)
    np.testing.assert_array_equal(exe(a[::-1], b), a[::-1] - b)


def test_outputs_are_fresh_memory(make_model):
    model = make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": [8]}, ["y"])
    exe = cuvil.build(cuvil.import_onnx(model))
    first = exe(np.full(8, 1, np.float32))
    second = exe(np.full(8, 2, np.float32))
    assert (first == 1).all() and (second == 2).all()
    first[:] = 5
    assert (second == 2).all()


def test_output_that_is_an_input_or_a_constant_or_given_twice(make_model):
    nodes = [helper.make_node("Identity", ["x"], ["same"]), helper.make_node("Identity", ["w"], ["constant"]),
             helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Identity", ["r"], ["r2"])]  # fmt: skip
    model = make_model(nodes, {"x": [3]}, ["same", "constant", "r", "r2"], {"w": np.arange(4, dtype=np.float32)})
    x = np.array([-1, 0, 2], np.float32)
    same, constant, r, r2 = cuvil.build(cuvil.import_onnx(model))(x)
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(constant, [0, 1, 2, 3])
    np.testing.assert_array_equal(r, [0, 0, 2])
    np.testing.assert_array_equal(r2, r)
    assert not np.shares_memory(r, r2) and not np.shares_memory(same, x)


def test_nan_and_signed_zero_pass_as_in_ieee(make_model):
    model = make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": [3]}, ["y"])
    y = cuvil.build(cuvil.import_onnx(model))(np.array([np.nan, -np.inf, np.inf], np.float32))
    assert np.isnan(y[0]) and y[1] == 0 and y[2] == np.inf


def test_threads_share_one_executable(conv_model, rng):
    exe = cuvil.build(cuvil.import_onnx(conv_model))
    xs = [rng.standard_normal((1 + i % 3, 3, 18, 14)).astype(np.float32) for i in range(12)]
    want = [exe(x) for x in xs]
    got: list = [None] * len(xs)

    def work(i):
        for _ in range(5):
            got[i] = exe(xs[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(xs))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)


def test_wrong_inputs_are_shape_errors_that_name_the_input(conv_model):
    exe = cuvil.build(cuvil.import_onnx(conv_model))
    x = np.zeros((1, 3, 18, 14), np.float32)
    for args, kwargs, text in [
        ((), {}, "x"),
        ((x, x), {}, "takes 1"),
        ((), {"z": x}, "no input 'z'"),
        ((x,), {"x": x}, "twice"),
        ((x[:, :2],), {}, "x"),
        ((x[0],), {}, "x"),
        ((x.astype(np.float64),), {}, "f32"),
        (("text",), {}, "array"),
    ]:
        with pytest.raises(cuvil.ShapeError, match=text):
            exe(*args, **kwargs)
    assert issubclass(cuvil.ShapeError, ValueError)


def test_what_is_not_there_is_refused_by_name(conv_model):
    graph = cuvil.import_onnx(conv_model)
    for kwargs, text in [
        ({"target": "gpu"}, "gpu"),
        ({"target": "npu"}, "npu"),
        ({"precision": "int8"}, "int8"),
        ({"precision": "fp16"}, "fp16"),
        ({"tune": "fast"}, "tune"),
        ({"calibration": []}, "calibration"),
    ]:
        with pytest.raises(cuvil.UnsupportedError, match=text):
            cuvil.build(graph, **kwargs)
    for function in (
        cuvil.import_tflite,
        cuvil.import_tensorflow,
        cuvil.QATRecompile,
    ):
        with pytest.raises(NotImplementedError):
            function()


def test_executables_are_not_pickled_and_graphs_print(conv_model):
    graph = cuvil.import_onnx(conv_model)
    exe = cuvil.build(graph)
    with pytest.raises(TypeError, match="save"):
        pickle.dumps(exe)
    with pytest.raises(TypeError, match="save"):
        copy.deepcopy(exe)
    assert "Conv2D" in str(graph)
    node = next(n for n in graph.nodes if n.op == "Conv2D")
    assert repr(node).startswith(f'Node(id={node.id}, op="Conv2D", inputs=[')
    assert node.location.variable == "conv1"
    assert "conv2d" in exe.report() and "arena" in exe.memory_plan


def test_text_round_trips_through_parse(conv_model, rng):
    graph = cuvil.import_onnx(conv_model)
    again = cuvil.parse(graph.text(full=True))
    x = rng.standard_normal((2, 3, 18, 14)).astype(np.float32)
    np.testing.assert_array_equal(cuvil.build(graph)(x), cuvil.build(again)(x))


def test_text_may_leave_out_defaults():
    exe = cuvil.build(cuvil.parse("graph @g(%x: f32[2, 3]) -> (%y) { %y = Softmax(%x) : f32[2, 3] }"))
    np.testing.assert_allclose(exe(np.zeros((2, 3), np.float32)), np.full((2, 3), 1 / 3), rtol=1e-6)


def test_an_input_may_have_any_name():
    exe = cuvil.build(cuvil.parse("graph @g(%self: f32[2]) -> (%y) { %y = Neg(%self) : f32[2] }"))
    x = np.ones(2, np.float32)
    np.testing.assert_array_equal(exe(self=x), -x)
    assert exe.profile(self=x)
