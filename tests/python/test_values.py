"""Inputs whose values decide shapes or axes: fixed at import, or one compilation per value."""

import threading

import cuvil
import numpy as np
import pytest
from onnx import helper


@pytest.fixture
def reduce_model(make_model):
    """y = ReduceSum(x, axes); z = Reshape(x, Concat(shape)), with both as inputs."""
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0),
             helper.make_node("Reshape", ["x", "shape"], ["z"])]  # fmt: skip
    return make_model(nodes, {"x": [2, 3, 4], "axes": [1], "shape": ["R"]}, ["y", "z"],
                      dtypes={"axes": np.int64, "shape": np.int64})  # fmt: skip


@pytest.fixture
def x(rng):
    return rng.standard_normal((2, 3, 4)).astype(np.float32)


def i64(*v):
    return np.array(v, np.int64)


def test_a_graph_that_waits_says_for_what(reduce_model):
    graph = cuvil.import_onnx(reduce_model)
    assert isinstance(graph, cuvil.ValueGraph)
    assert graph.value_inputs == ("axes", "shape")
    assert "axes, shape" in str(graph) and "value needed" in str(graph)


def test_one_compilation_per_value(reduce_model, x):
    exe = cuvil.build(cuvil.import_onnx(reduce_model))
    for axis in (0, 1, 2, 0):
        for shape in ((6, 4), (2, 2, 6)):
            y, z = exe(x, i64(axis), shape=i64(*shape))
            np.testing.assert_allclose(y, x.sum(axis), rtol=1e-6)
            np.testing.assert_array_equal(z, x.reshape(shape))
    assert "compiled for 6 value(s) of axes, shape" in exe.report()
    assert "axes = [2]" in exe.report()
    with pytest.raises(cuvil.ShapeError, match="shape"):
        exe(x, i64(0))
    with pytest.raises(cuvil.ModelError, match="axis"):
        exe(x, i64(7), i64(24))


def test_concurrent_first_calls_compile_once(reduce_model, x):
    exe = cuvil.build(cuvil.import_onnx(reduce_model))
    results = [None] * 8
    barrier = threading.Barrier(8)

    def call(i):
        barrier.wait()
        results[i] = exe(x, i64(1), i64(24))

    threads = [threading.Thread(target=call, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for y, z in results:
        np.testing.assert_allclose(y, x.sum(1), rtol=1e-6)
        np.testing.assert_array_equal(z, x.reshape(24))
    assert "compiled for 1 value(s)" in exe.report()


def test_only_the_latest_values_are_kept(make_model):
    node = helper.make_node("Tile", ["x", "n"], ["y"])
    exe = cuvil.build(cuvil.import_onnx(make_model([node], {"x": [1], "n": [1]}, ["y"], dtypes={"n": np.int64})))
    for n in range(1, 19):
        assert exe(np.ones(1, np.float32), i64(n)).shape == (n,)
    assert "compiled for 18 value(s) of n; kept: 16" in exe.report()


def test_save_needs_values(reduce_model, x, tmp_path):
    with pytest.raises(cuvil.UnsupportedError, match=r"axes, shape.*values="):
        cuvil.build(cuvil.import_onnx(reduce_model)).save(tmp_path / "m.cvl")


def test_fixed_values_are_checked_in_every_call(reduce_model, x, tmp_path):
    values = {"axes": i64(2), "shape": i64(4, 6)}
    graph = cuvil.import_onnx(reduce_model, values=values)
    assert isinstance(graph, cuvil.Graph)
    again = cuvil.parse(graph.text(full=True))
    built = cuvil.build(graph)
    built.save(tmp_path / "m.cvl", targets=["host"])
    for exe in (built, cuvil.build(again), cuvil.load(tmp_path / "m.cvl")):
        y, z = exe(x, i64(2), i64(9, 4, 9, 6)[1::2])  # strides are honoured
        np.testing.assert_allclose(y, x.sum(2), rtol=1e-6)
        np.testing.assert_array_equal(z, x.reshape(4, 6))
        with pytest.raises(cuvil.ShapeError, match="axes"):
            exe(x, i64(1), i64(4, 6))


def test_some_values_may_be_fixed_and_others_wait(reduce_model, x):
    graph = cuvil.import_onnx(reduce_model, values={"axes": i64(0)})
    assert graph.value_inputs == ("shape",)
    exe = cuvil.build(graph)
    np.testing.assert_allclose(exe(x, i64(0), i64(24))[0], x.sum(0), rtol=1e-6)
    with pytest.raises(cuvil.ShapeError, match="axes"):
        exe(x, i64(1), i64(24))


def test_values_that_do_not_fit_are_refused(reduce_model):
    for bad in ({"axes": i64(1, 2)}, {"axes": np.array([1.0])}, {"nothing": i64(1)}, {"axes": "text"}):
        with pytest.raises(cuvil.ShapeError):
            cuvil.import_onnx(reduce_model, values=bad)


def test_large_inputs_are_data(make_model, rng):
    node = helper.make_node("Tile", ["x", "n"], ["y"])
    model = make_model([node], {"x": [1], "n": ["K"]}, ["y"], dtypes={"n": np.int64})
    exe = cuvil.build(cuvil.import_onnx(model))
    with pytest.raises(cuvil.UnsupportedError, match=r"'n'.*1024"):
        exe(np.ones(1, np.float32), np.ones(2000, np.int64))
    nodes = [helper.make_node("ReduceMax", ["image"], ["m"], keepdims=0),
             helper.make_node("Cast", ["m"], ["i"], to=7),
             helper.make_node("Unsqueeze", ["i", "zero"], ["n"]),
             helper.make_node("Expand", ["image", "n"], ["y"])]  # fmt: skip
    model = make_model(nodes, {"image": [64, 64]}, ["y"], {"zero": i64(0)})
    with pytest.raises(cuvil.UnsupportedError, match="'image'"):
        cuvil.import_onnx(model)


def test_arithmetic_on_values_is_folded(make_model, rng):
    """Reshape to Concat(n * 2, Shape(x)[1]): computed while importing, for each n."""
    nodes = [helper.make_node("Mul", ["n", "two"], ["m"]),
             helper.make_node("Unsqueeze", ["m", "zero"], ["m1"]),
             helper.make_node("Concat", ["m1", "minus"], ["shape"], axis=0),
             helper.make_node("Reshape", ["x", "shape"], ["y"]),
             helper.make_node("Range", ["first", "n", "step"], ["r"])]  # fmt: skip
    weights = {"two": np.array(2), "zero": i64(0), "minus": i64(-1), "first": np.array(0), "step": np.array(1)}
    model = make_model(nodes, {"x": [12], "n": []}, ["y", "r"], weights, dtypes={"n": np.int64, "r": np.int64})
    exe = cuvil.build(cuvil.import_onnx(model))
    x = np.arange(12, dtype=np.float32)
    for n in (1, 2, 3):
        y, r = exe(x, np.array(n))
        np.testing.assert_array_equal(y, x.reshape(2 * n, -1))
        np.testing.assert_array_equal(r, np.arange(n))


def test_constants_wrap_as_they_do_at_run_time(make_model):
    """Integers that are no sizes are computed by operators, also while importing."""
    nodes = [helper.make_node("Mul", ["big", "big"], ["a"]), helper.make_node("Mul", ["a", "big"], ["b"]),
             helper.make_node("Add", ["b", "x"], ["y"])]  # fmt: skip
    model = make_model(nodes, {"x": [1]}, ["y"], {"big": i64(3037000500)}, dtypes={"x": np.int64, "y": np.int64})
    with np.errstate(over="ignore"):
        want = i64(3037000500) * i64(3037000500) * i64(3037000500) + 1
    np.testing.assert_array_equal(cuvil.build(cuvil.import_onnx(model))(i64(1)), want)
