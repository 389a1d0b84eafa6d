"""Quantized operators against ONNX Runtime: equal integers, equal floats."""

import cuvil
import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.uint8): TensorProto.UINT8,
         np.dtype(np.int8): TensorProto.INT8, np.dtype(np.int32): TensorProto.INT32,
         np.dtype(np.uint16): TensorProto.UINT16, np.dtype(np.int16): TensorProto.INT16}  # fmt: skip


def check(nodes, inputs, outputs, weights=None, shapes=None, opset=21, off_by_one=False):
    """`off_by_one`: of products of three scales two orders of rounding may differ by a step."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "test",
        [value(n, TYPES[x.dtype], (shapes or {}).get(n, x.shape)) for n, x in inputs.items()],
        [value(n, TYPES[np.dtype(t)], None) for n, t in outputs.items()],
        [numpy_helper.from_array(np.asarray(w), n) for n, w in (weights or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    want = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, inputs)
    got = cuvil.build(cuvil.import_onnx(model))(**inputs)
    for g, w in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape
        if off_by_one:
            difference = np.abs(g.astype(np.int64) - w.astype(np.int64))
            assert difference.max() <= 1 and (difference > 0).mean() < 0.01
        else:
            np.testing.assert_array_equal(g, w)


def f32(x):
    return np.asarray(x, np.float32)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
@pytest.mark.parametrize("channels", [False, True])
def test_quantize_and_back(rng, dtype, channels):
    x = f32(40 * rng.standard_normal((3, 5, 7)))
    middle = (np.iinfo(dtype).max + np.iinfo(dtype).min + 1) // 2
    scale = f32(rng.random(5) + 0.1) if channels else f32(0.37)
    zero = np.asarray(middle + rng.integers(-9, 9, 5) if channels else middle + 3, dtype)
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=1)]  # fmt: skip
    check(nodes, {"x": x}, {"q": dtype, "y": np.float32}, {"s": scale, "z": zero}, {"x": ["N", 5, 7]})


def test_blocks_of_scales(rng):
    x = f32(3 * rng.standard_normal((4, 11)))
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1, block_size=4)
    weights = {"s": f32(rng.random((4, 3)) + 0.1), "z": rng.integers(0, 200, (4, 3)).astype(np.uint8)}
    check([node], {"x": x}, {"q": np.uint8}, weights)


@pytest.mark.parametrize("x", [[0.0, 2, -3, -2.5, 1.34, 0.5], [1, 2.1, 1.3, 2.5, 3.34, 4], [-0.5, -3], [0, 0]])
def test_dynamic_quantization(x):
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])
    check([node], {"x": f32(x)}, {"q": np.uint8, "s": np.float32, "z": np.uint8})


@pytest.mark.parametrize("b_type", [np.uint8, np.int8])
def test_matmul_integer(rng, b_type):
    a = rng.integers(0, 255, (5, 70)).astype(np.uint8)
    b = rng.integers(np.iinfo(b_type).min, np.iinfo(b_type).max, (70, 19)).astype(b_type)
    node = helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])
    check([node], {"a": a}, {"y": np.int32}, {"b": b, "za": np.uint8(7), "zb": b_type(3)}, {"a": ["N", 70]})


def test_qlinear_matmul(rng):
    a = rng.integers(0, 255, (5, 70)).astype(np.uint8)
    weights = {"b": rng.integers(0, 255, (70, 19)).astype(np.uint8), "sa": f32(0.02), "za": np.uint8(120),
               "sb": f32(0.03), "zb": np.uint8(130), "sy": f32(0.7), "zy": np.uint8(128)}  # fmt: skip
    node = helper.make_node("QLinearMatMul", ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"], ["y"])
    check([node], {"a": a}, {"y": np.uint8}, weights, off_by_one=True)


def test_conv_integer(rng):
    x = rng.integers(0, 255, (2, 6, 9, 8)).astype(np.uint8)
    w = rng.integers(0, 255, (4, 3, 3, 3)).astype(np.uint8)
    node = helper.make_node("ConvInteger", ["x", "w", "zx", "zw"], ["y"], pads=[1, 1, 1, 1], strides=[2, 1], group=2)
    check([node], {"x": x}, {"y": np.int32}, {"w": w, "zx": np.uint8(11), "zw": np.uint8(100)})


def test_qlinear_conv(rng):
    x = rng.integers(0, 255, (2, 6, 9, 8)).astype(np.uint8)
    weights = {"w": rng.integers(-127, 127, (8, 6, 3, 3)).astype(np.int8), "sx": f32(0.02), "zx": np.uint8(117),
               "sw": f32(0.01 + 0.02 * rng.random(8)), "zw": np.zeros(8, np.int8), "sy": f32(0.4), "zy": np.uint8(128),
               "b": rng.integers(-900, 900, 8).astype(np.int32)}  # fmt: skip
    names = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "b"]
    node = helper.make_node("QLinearConv", names, ["y"], pads=[1, 1, 1, 1])
    check([node], {"x": x}, {"y": np.uint8}, weights, off_by_one=True)
