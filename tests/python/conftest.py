"""Helpers: tiny ONNX models made with onnx.helper."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

_TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64,
          np.dtype(np.int32): TensorProto.INT32, np.dtype(np.bool_): TensorProto.BOOL}  # fmt: skip


@pytest.fixture
def make_model() -> Callable[..., onnx.ModelProto]:
    def make(
        nodes: Sequence[onnx.NodeProto],
        inputs: dict[str, Sequence[int | str]],
        outputs: Sequence[str],
        weights: dict[str, np.ndarray] | None = None,
        opset: int = 18,
        dtypes: dict[str, Any] | None = None,
    ) -> onnx.ModelProto:
        dtypes = dtypes or {}

        def info(name: str, shape: Sequence[int | str] | None) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(name, _TYPES[np.dtype(dtypes.get(name, np.float32))], shape)

        graph = helper.make_graph(
            list(nodes),
            "test",
            [info(n, s) for n, s in inputs.items()],
            [info(n, None) for n in outputs],
            [numpy_helper.from_array(w, n) for n, w in (weights or {}).items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)

    return make


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def conv_model(make_model, rng):
    """Conv + BatchNormalization + Relu + pooling + Gemm, with a symbolic batch."""
    f = lambda *s: rng.standard_normal(s).astype(np.float32)  # noqa: E731
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], name="conv1"),
        helper.make_node("BatchNormalization", ["c", "s", "o", "m", "v"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["p"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gemm", ["f", "fw", "fb"], ["y"], transB=1),
    ]
    weights = {"w": f(20, 3, 3, 3), "b": f(20), "s": f(20), "o": f(20), "m": f(20), "v": np.abs(f(20)) + 0.5,
               "fw": f(7, 20), "fb": f(7)}  # fmt: skip
    return make_model(nodes, {"x": ["N", 3, 18, 14]}, ["y"], weights)
