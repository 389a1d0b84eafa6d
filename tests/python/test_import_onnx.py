"""The ONNX importer: what it reads, and what it says about what it cannot read."""

import contextlib
import os

import cuvil
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

FULL = "CUVIL_TEST_FULL" in os.environ


def check(model, feeds, rtol=1e-5):
    want = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    got = cuvil.build(cuvil.import_onnx(model))(**feeds)
    for g, w in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape
        np.testing.assert_allclose(g, w, rtol=rtol, atol=1e-5)


def test_every_missing_operator_is_named_at_once(make_model):
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Frobnicate", ["a"], ["b"], name="first"),
             helper.make_node("Widget", ["b"], ["c"], name="second"),
             helper.make_node("Gizmo", ["x"], ["d"], name="third", domain="com.example")]  # fmt: skip
    with pytest.raises(cuvil.UnsupportedError) as e:
        cuvil.import_onnx(make_model(nodes, {"x": [2, 2]}, ["c", "d"]))
    for part in ("Frobnicate", "first", "Widget", "second", "com.example.Gizmo", "third", "3 node(s)"):
        assert part in str(e.value)


def test_shape_computations_vanish(make_model, rng):
    """Shape -> Gather -> Concat -> Reshape with a symbolic batch, as exporters write it."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Unsqueeze", ["n", "axes"], ["n1"]),
        helper.make_node("Concat", ["n1", "minus"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["y"]),
        helper.make_node("Mul", ["n1", "two"], ["double"]),
    ]
    weights = {"zero": np.array(0), "axes": np.array([0]), "minus": np.array([-1]), "two": np.array([2])}
    model = make_model(nodes, {"x": ["N", 3, 4]}, ["y", "double"], weights, dtypes={"double": np.int64})
    graph = cuvil.import_onnx(model)
    assert {n.op for n in graph.nodes} <= {"Constant", "Reshape", "Sizes"}
    check(model, {"x": rng.standard_normal((5, 3, 4)).astype(np.float32)})


def test_symbolic_sizes_that_must_agree_are_checked_when_they_run(make_model, rng):
    model = make_model([helper.make_node("Add", ["a", "b"], ["y"])], {"a": ["N", 4], "b": ["M", 4]}, ["y"])
    exe = cuvil.build(cuvil.import_onnx(model))
    a = rng.standard_normal((3, 4)).astype(np.float32)
    np.testing.assert_array_equal(exe(a, a), a + a)
    with pytest.raises(cuvil.ShapeError):
        exe(a, a[:2])


@pytest.mark.parametrize("name", ["batch-size", "2*n", "-1", "5", "?", "批", "N + 1"])
def test_any_text_names_a_symbolic_size(make_model, rng, name):
    model = make_model([helper.make_node("Neg", ["x"], ["y"])], {"x": [name, 3]}, ["y"])
    for n in (1, 4):
        check(model, {"x": rng.standard_normal((n, 3)).astype(np.float32)})


def test_names_of_sizes_that_differ_in_signs_alone_are_two_sizes(make_model, rng):
    nodes = [helper.make_node("Neg", ["a"], ["y"]), helper.make_node("Neg", ["b"], ["z"])]
    model = make_model(nodes, {"a": ["x.y"], "b": ["x/y"]}, ["y", "z"])
    check(model, {"a": np.ones(2, np.float32), "b": np.ones(5, np.float32)})


def test_an_expression_over_other_sizes_is_one(make_model):
    nodes = [helper.make_node("Neg", ["a"], ["y"]), helper.make_node("Neg", ["b"], ["z"])]
    exe = cuvil.build(cuvil.import_onnx(make_model(nodes, {"a": ["2*n"], "b": ["n"]}, ["y", "z"])))
    exe(np.ones(4, np.float32), np.ones(2, np.float32))
    with pytest.raises(cuvil.ShapeError):
        exe(np.ones(5, np.float32), np.ones(2, np.float32))


def test_attributes_of_another_type_are_refused(make_model):
    for node in (
        helper.make_node("LeakyRelu", ["x"], ["y"], alpha=1),
        helper.make_node("Softmax", ["x"], ["y"], axis="0"),
    ):
        with pytest.raises(cuvil.ModelError, match=r"alpha|axis"):
            cuvil.import_onnx(make_model([node], {"x": [2, 3]}, ["y"]))


def test_impossible_sizes_are_refused_by_name(make_model):
    ones = np.ones((1, 1, 1, 1), np.float32)
    conv = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1 << 40] * 4)
    expand = helper.make_node("Expand", ["x", "s"], ["y"])
    resize = helper.make_node("Resize", ["x", "", "s"], ["y"])
    for model in (
        make_model([conv], {"x": [1, 1, 4, 4]}, ["y"], {"w": ones}),
        make_model([expand], {"x": [1]}, ["y"], {"s": np.array([1 << 40, 1 << 20])}),
        make_model([resize], {"x": [1, 1, 2, 2]}, ["y"], {"s": np.array([1, 1, 1e30, 1e30], np.float32)}),
        make_model([helper.make_node("Neg", ["x"], ["y"])], {"x": [1] * 40}, ["y"]),
    ):
        with pytest.raises((cuvil.ShapeError, cuvil.ModelError, cuvil.UnsupportedError), match=r"y|x|Resize"):
            cuvil.build(cuvil.import_onnx(model))


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 18, 21])
def test_opsets_with_axes_as_attribute_or_input(make_model, rng, opset):
    axes = np.array([1], np.int64)
    nodes, weights = [], {}
    if opset >= 13:
        nodes.append(helper.make_node("Unsqueeze", ["x", "axes"], ["u"]))
        weights["axes"] = axes
    else:
        nodes.append(helper.make_node("Unsqueeze", ["x"], ["u"], axes=[1]))
    nodes.append(helper.make_node("Softmax", ["u"], ["y"], axis=1))
    model = make_model(nodes, {"x": [3, 5]}, ["y"], weights, opset=opset)
    check(model, {"x": rng.standard_normal((3, 5)).astype(np.float32)})


def test_unknown_opsets_say_what_is_supported(make_model):
    model = make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": [1]}, ["y"], opset=6)
    with pytest.raises(cuvil.UnsupportedError, match="7 to 28"):
        cuvil.import_onnx(model)


def test_external_data_stays_inside_the_folder(make_model, tmp_path, rng):
    weight = rng.standard_normal((4, 4)).astype(np.float32)
    model = make_model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [2, 4]}, ["y"], {"w": weight})
    tensor = model.graph.initializer[0]
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "w.bin").write_bytes(bytes(8) + weight.tobytes())
    (tmp_path / "outside.bin").write_bytes(weight.tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")

    def save(**external):
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        del tensor.external_data[:]
        for key, value in external.items():
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
        (folder / "m.onnx").write_bytes(model.SerializeToString())
        return folder / "m.onnx"

    x = np.eye(4, dtype=np.float32)[:2]
    exe = cuvil.build(cuvil.import_onnx(save(location="w.bin", offset=8, length=64)))
    np.testing.assert_allclose(exe(x), weight[:2], rtol=1e-6)
    for bad in (
        {"location": "../outside.bin"},
        {"location": str(tmp_path / "outside.bin")},
        {"location": "link.bin"},
        {"location": "missing.bin"},
        {"location": "w.bin", "offset": 60},
        {"location": "w.bin", "offset": -8},
        {"location": "w.bin", "offset": 8, "length": 1 << 60},
        {"location": "w.bin", "offset": "x"},
        {},
    ):
        with pytest.raises(cuvil.ModelError):
            cuvil.import_onnx(save(**bad))
    with pytest.raises(cuvil.ModelError, match="path"):
        cuvil.import_onnx(save(location="w.bin").read_bytes())


def test_damaged_models_are_model_errors(conv_model, rng):
    data = conv_model.SerializeToString()
    refusals = (cuvil.ModelError, cuvil.UnsupportedError, cuvil.ShapeError)
    for size in range(0, len(data), 1 if FULL else 7):
        with contextlib.suppress(*refusals):
            cuvil.import_onnx(data[:size])
    built = 0
    for _ in range(10000 if FULL else 500):
        flipped = bytearray(data)
        flipped[rng.integers(len(data))] ^= 1 << rng.integers(8)
        with contextlib.suppress(*refusals):
            graph = cuvil.import_onnx(bytes(flipped))
            # Most flips hit weights; what still is a model must build.
            if built < (1000 if FULL else 20):
                cuvil.build(graph)
                built += 1


def test_values_used_before_they_exist_and_wrong_sizes(make_model):
    with pytest.raises(cuvil.ModelError, match="nowhere"):
        cuvil.import_onnx(make_model([helper.make_node("Relu", ["nowhere"], ["y"])], {"x": [1]}, ["y"]))
    model = make_model([helper.make_node("Relu", ["w"], ["y"])], {}, ["y"], {"w": np.zeros(3, np.float32)})
    model.graph.initializer[0].dims[0] = 1 << 40
    with pytest.raises(cuvil.ModelError, match="w"):
        cuvil.import_onnx(model)
    model.graph.initializer[0].dims[0] = -3
    with pytest.raises(cuvil.ModelError):
        cuvil.import_onnx(model)


def test_functions_of_the_model_are_inlined(rng):
    function = helper.make_function(
        "local", "Scale", ["a"], ["b"],
        [helper.make_node("LeakyRelu", ["a"], ["l"]), helper.make_node("Add", ["l", "a"], ["b"])],
        [helper.make_opsetid("", 18)], ["alpha"],
    )  # fmt: skip
    function.node[0].attribute.append(
        onnx.AttributeProto(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT)
    )
    graph = helper.make_graph(
        [helper.make_node("Scale", ["x"], ["y"], domain="local", alpha=0.5)], "g",
        [helper.make_tensor_value_info("x", 1, [5])], [helper.make_tensor_value_info("y", 1, [5])])  # fmt: skip
    model = helper.make_model(graph, functions=[function], ir_version=10,
                              opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("local", 1)])  # fmt: skip
    x = np.array([-2, -1, 0, 1, 2], np.float32)
    np.testing.assert_allclose(cuvil.build(cuvil.import_onnx(model))(x), np.where(x < 0, 0.5 * x, x) + x)


def test_stack_traces_of_pytorchs_exporter_become_locations(make_model):
    node = helper.make_node("Relu", ["x"], ["y"], name="node_relu")
    entry = node.metadata_props.add()
    entry.key = "pkg.torch.onnx.stack_trace"
    entry.value = 'File "/a/torch/x.py", line 3, in call\n    y\nFile "net.py", line 17, in forward\n    return relu(x)'
    graph = cuvil.import_onnx(make_model([node], {"x": [1]}, ["y"]))
    where = graph.nodes[-1].location
    assert (where.file, where.line, where.function) == ("net.py", 17, "forward")


def test_weights_given_as_typed_fields(make_model):
    model = make_model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": [3]}, ["y"], {"w": np.zeros(3, np.float32)})
    tensor = model.graph.initializer[0]
    tensor.CopyFrom(helper.make_tensor("w", onnx.TensorProto.FLOAT, [3], [1.0, 2.0, 3.0]))
    assert numpy_helper.to_array(tensor).tolist() == [1, 2, 3]
    y = cuvil.build(cuvil.import_onnx(model))(np.zeros(3, np.float32))
    np.testing.assert_array_equal(y, [1, 2, 3])


def test_anonymous_sizes_are_not_equal(make_model, rng):
    """Exporters write "?" for sizes they do not know: each is a size of its own."""
    model = make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": ["?", 3, "?", "?"]}, ["y"])
    check(model, {"x": rng.standard_normal((2, 3, 4, 5)).astype(np.float32)})


def test_known_sizes_stay_known_through_reshape(make_model, rng):
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "last"], ["w"]),
        helper.make_node("Reshape", ["w", "scalar"], ["n"]),
        helper.make_node("Reshape", ["n", "list"], ["m"]),
        helper.make_node("Concat", ["minus", "m"], ["to"], axis=0),
        helper.make_node("Reshape", ["x", "to"], ["y"]),
    ]
    weights = {"last": np.array([2]), "scalar": np.zeros(0, np.int64), "list": np.array([1]), "minus": np.array([-1])}
    model = make_model(nodes, {"x": ["A", "B", "C"]}, ["y"], weights)
    check(model, {"x": rng.standard_normal((2, 3, 4)).astype(np.float32)})
