"""Element types at the border and inside: bfloat16 arrays of ml_dtypes, f64 functions, small and unsigned integers."""

import cuvil
import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator


def run(op, arrays, out_dtype=None, opset=21, **attributes):
    names = [f"x{i}" for i in range(len(arrays))]
    kinds = [helper.np_dtype_to_tensor_dtype(a.dtype) for a in arrays]
    out = helper.np_dtype_to_tensor_dtype(np.dtype(out_dtype or arrays[0].dtype))
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], **attributes)],
        "test",
        [helper.make_tensor_value_info(n, k, a.shape) for n, k, a in zip(names, kinds, arrays, strict=True)],
        [helper.make_tensor_value_info("y", out, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return cuvil.build(cuvil.import_onnx(model))(*arrays), model


def test_bfloat16_arrays_come_in_and_go_out():
    x = np.array([[1, -2.5, 3], [0.1, 1e30, -0.0]], ml_dtypes.bfloat16)
    y, _ = run("Relu", [x])
    assert y.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(y.astype(np.float32), np.maximum(x.astype(np.float32), 0))
    y, _ = run("Relu", [np.ascontiguousarray(x.T).T])  # strides
    np.testing.assert_array_equal(y.astype(np.float32), np.maximum(x.astype(np.float32), 0))


@pytest.mark.parametrize("op", ["Exp", "Log", "Tanh", "Sigmoid", "Sinh", "Cosh", "Softplus", "Elu", "Softmax"])
def test_f64_functions(rng, op):
    x = rng.standard_normal((7, 33)) * 3
    if op == "Log":
        x = np.exp(x)
    y, model = run(op, [x])
    assert y.dtype == np.float64
    want = ReferenceEvaluator(model).run(None, {"x0": x})[0]
    np.testing.assert_allclose(y, want, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_bit_shift(rng, dtype, direction):
    x = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (3, 17), dtype=dtype)
    by = rng.integers(0, x.itemsize * 8, (17,)).astype(dtype)
    y, _ = run("BitShift", [x, by], direction=direction)
    np.testing.assert_array_equal(y, x << by if direction == "LEFT" else x >> by)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("exponent", [np.int32, np.int64, np.float32])
def test_powers_of_integers(rng, dtype, exponent):
    x = rng.integers(-9, 9, (4, 9)).astype(dtype)
    e = rng.integers(0, 12, (9,)).astype(exponent)
    y, _ = run("Pow", [x, e])
    np.testing.assert_array_equal(y, np.power(x, e.astype(dtype)))


def test_bits_of_another_type():
    x = np.array([1.0, -2.5, 0], np.float32)
    y, _ = run("BitCast", [x], np.int32, opset=26, to=onnx.TensorProto.INT32)
    np.testing.assert_array_equal(y, x.view(np.int32))


@pytest.mark.parametrize("op, attributes", [("MaxPool", {}), ("AveragePool", {}), ("LpPool", {"p": 2}),
                                            ("AveragePool", {"count_include_pad": 1}), ("MaxPool", {"ceil_mode": 1}),
                                            ("AveragePool", {"ceil_mode": 1})])  # fmt: skip
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_pooling_over_any_number_of_axes(rng, op, attributes, axes):
    import onnxruntime as ort

    x = rng.standard_normal((2, 3, 7, 9, 8)[: axes + 2]).astype(np.float32)
    window = {
        "kernel_shape": [3, 2, 3][:axes],
        "strides": [2, 1, 2][:axes],
        "pads": [1, 0, 1][:axes] + [1, 1, 0][:axes],
    }
    y, model = run(op, [x], opset=18, **window, **attributes)
    want = ort.InferenceSession(model.SerializeToString()).run(None, {"x0": x})[0]
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)


def test_convolution_over_three_axes(rng):
    import onnxruntime as ort

    x = rng.standard_normal((2, 4, 7, 9, 8)).astype(np.float32)
    w = rng.standard_normal((6, 2, 3, 3, 2)).astype(np.float32)
    b = rng.standard_normal(6).astype(np.float32)
    attributes = {"pads": [1, 1, 0, 1, 0, 1], "strides": [2, 1, 2], "dilations": [1, 2, 1], "group": 2}
    y, model = run("Conv", [x, w, b], opset=18, **attributes)
    want = ort.InferenceSession(model.SerializeToString()).run(None, {"x0": x, "x1": w, "x2": b})[0]
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)
