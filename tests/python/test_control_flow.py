"""If, Loop and Scan against ONNX Runtime: conditions, trip counts, captured values, nesting, symbolic sizes."""

import cuvil
import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

F, INT, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name, dtype=F, shape=None):
    return helper.make_tensor_value_info(name, dtype, shape)


def constant(name, value):
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(value), name))


def model_of(nodes, inputs, outputs, weights=None):
    initializers = [numpy_helper.from_array(np.asarray(w), n) for n, w in (weights or {}).items()]
    graph = helper.make_graph(nodes, "test", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def check(model, *feeds, path=None):
    names = [i.name for i in model.graph.input]
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    exe = cuvil.build(cuvil.import_onnx(model))
    loaded = []
    if path:
        exe.save(str(path), targets=["host"])
        loaded = [cuvil.load(str(path))]
    for feed in feeds:
        want = session.run(None, dict(zip(names, feed, strict=True)))
        for e in [exe, *loaded]:
            got = e(*feed)
            for g, w in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
                assert g.dtype == w.dtype
                if w.shape == (0,):  # of no iterations ONNX Runtime does not know the shape
                    assert g.shape[0] == 0
                    continue
                assert g.shape == w.shape
                np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


def arr(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def if_model(shape):
    then = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["t0"]), helper.make_node("Relu", ["t0"], ["t"]),
                              helper.make_node("Identity", ["x"], ["t2"])],
                             "then", [], [info("t"), info("t2")])  # fmt: skip
    other = helper.make_graph([helper.make_node("Neg", ["y"], ["e"]), helper.make_node("Exp", ["x"], ["e2"])], "else",
                              [], [info("e"), info("e2")])  # fmt: skip
    nodes = [
        helper.make_node("Add", ["x", "x"], ["y"]),
        helper.make_node("If", ["c"], ["r", "s"], then_branch=then, else_branch=other),
        helper.make_node("Mul", ["r", "y"], ["z"]),
    ]
    w = (np.arange(64).reshape(8, 8) % 7).astype(np.float32)
    return model_of(nodes, [info("c", B, []), info("x", F, shape)], [info("z"), info("s")], {"w": w})


@pytest.mark.parametrize("shape", [[4, 8], ["N", 8]])
def test_if(rng, tmp_path, shape):
    x = arr(rng, 4, 8)
    feeds = [(np.array(True), x), (np.array(False), x)]
    if shape[0] == "N":
        feeds += [(np.array(True), arr(rng, 1, 8)), (np.array(False), arr(rng, 9, 8))]
    check(if_model(shape), *feeds, path=tmp_path / "if.cvl")


def test_a_known_condition_leaves_no_if(rng):
    model = if_model([4, 8])
    model.graph.initializer.append(numpy_helper.from_array(np.array(True), "c"))
    del model.graph.input[0]
    assert not [n for n in cuvil.import_onnx(model).nodes if n.op == "If"]
    check(model, (arr(rng, 4, 8),))


def test_branches_of_different_shapes_are_named():
    then = helper.make_graph([helper.make_node("Relu", ["x"], ["t"])], "then", [], [info("t")])
    other = helper.make_graph([helper.make_node("Transpose", ["x"], ["e"])], "else", [], [info("e")])
    node = helper.make_node("If", ["c"], ["r"], then_branch=then, else_branch=other, name="branching")
    model = model_of([node], [info("c", B, []), info("x", F, [2, 3])], [info("r")])
    with pytest.raises(cuvil.UnsupportedError, match="different shapes"):
        cuvil.import_onnx(model)


def loop_model(condition=False, stacked=True, shape=(2, 8)):
    """h = tanh(h @ w + x + i), while sum(h) < limit; yields h * 2 and the number of the iteration."""
    nodes = [
        helper.make_node("MatMul", ["h", "w"], ["a"]),
        helper.make_node("Cast", ["i"], ["fi"], to=F),
        helper.make_node("Add", ["a", "x"], ["b"]),
        helper.make_node("Add", ["b", "fi"], ["b2"]),
        helper.make_node("Tanh", ["b2"], ["h2"]),
        helper.make_node("Add", ["h2", "h2"], ["twice"]),
        helper.make_node("ReduceSum", ["h2"], ["sum"], keepdims=0),
        helper.make_node("Less", ["sum", "limit"], ["below"]),
        helper.make_node("Identity", ["c"], ["same"]),
        helper.make_node("Identity", ["i"], ["number"]),
    ]
    outputs = [info("below" if condition else "same", B, []), info("h2")]
    if stacked:
        outputs += [info("twice"), info("number", INT, [])]
    body = helper.make_graph(nodes, "body", [info("i", INT, []), info("c", B, []), info("h")], outputs)
    names = ["last", "all", "numbers"] if stacked else ["last"]
    node = helper.make_node("Loop", ["trips", "start", "h0"], names, body=body)
    dtypes = [F, F, INT]
    inputs = [info("trips", INT, []), info("start", B, []), info("h0", F, shape), info("x", F, shape)]
    w = (0.2 * (np.arange(64).reshape(8, 8) % 7 - 3)).astype(np.float32)
    limit = np.asarray(6.0, np.float32)
    return model_of([node], inputs, [info(n, d) for n, d in zip(names, dtypes, strict=False)], {"w": w, "limit": limit})


@pytest.mark.parametrize("condition", [False, True])
def test_loop_with_a_trip_count_that_is_data(rng, tmp_path, condition):
    h, x = arr(rng, 2, 8), arr(rng, 2, 8)
    feeds = [(np.array(n), np.array(go), h, x) for n in (0, 1, 5, 20) for go in (True, False)]
    check(loop_model(condition, stacked=False), *feeds, path=tmp_path / "loop.cvl")


@pytest.mark.parametrize("condition", [False, True])
def test_loop_with_stacked_results(rng, condition):
    model = loop_model(condition, shape=["N", 8])
    model.graph.initializer.append(numpy_helper.from_array(np.array(7), "trips"))
    del model.graph.input[0]
    check(model, *[(np.array(go), arr(rng, n, 8), arr(rng, n, 8)) for n in (2, 1, 3) for go in (True, False)])


def test_what_a_loop_carries_may_swap_places(rng):
    nodes = [helper.make_node("Identity", ["c"], ["c2"]), helper.make_node("Add", ["p", "q"], ["s"])]
    body = helper.make_graph(nodes, "body", [info("i", INT, []), info("c", B, []), info("p"), info("q")],
                             [info("c2", B, []), info("q"), info("s")])  # fmt: skip
    node = helper.make_node("Loop", ["n", "", "a", "b"], ["x", "y"], body=body)
    model = model_of([node], [info("n", INT, []), info("a", F, [3]), info("b", F, [3])], [info("x"), info("y")])
    check(model, *[(np.array(n), arr(rng, 3), arr(rng, 3)) for n in range(5)])
    # A plain swap.
    del body.node[1]
    body.output[2].name = "p"
    node = helper.make_node("Loop", ["n", "", "a", "b"], ["x", "y"], body=body)
    model = model_of([node], [info("n", INT, []), info("a", F, [3]), info("b", F, [3])], [info("x"), info("y")])
    check(model, *[(np.array(n), arr(rng, 3), arr(rng, 3)) for n in range(4)])


def test_an_if_in_a_loop_in_a_loop(rng):
    then = helper.make_graph([helper.make_node("Mul", ["v", "x"], ["t"])], "then", [], [info("t")])
    other = helper.make_graph([helper.make_node("Sub", ["v", "u"], ["e"])], "else", [], [info("e")])
    inner = helper.make_graph(
        [helper.make_node("Greater", ["j", "i"], ["more"]),
         helper.make_node("If", ["more"], ["v2"], then_branch=then, else_branch=other),
         helper.make_node("Identity", ["c"], ["c2"])],
        "inner", [info("j", INT, []), info("c", B, []), info("v")], [info("c2", B, []), info("v2"), info("v2")],
    )  # fmt: skip
    outer = helper.make_graph(
        [helper.make_node("Add", ["u", "x"], ["u1"]),
         helper.make_node("Loop", ["three", "", "u1"], ["u2", "steps"], body=inner),
         helper.make_node("ReduceMean", ["steps", "zero"], ["mean"], keepdims=0),
         helper.make_node("Identity", ["d"], ["d2"])],
        "outer", [info("i", INT, []), info("d", B, []), info("u")], [info("d2", B, []), info("u2"), info("mean")],
    )  # fmt: skip
    node = helper.make_node("Loop", ["four", "", "a"], ["z", "means"], body=outer)
    weights = {"three": np.array(3), "four": np.array(4), "zero": np.array([0])}
    model = model_of([node], [info("a", F, ["N"]), info("x", F, ["N"])], [info("z"), info("means")], weights)
    check(model, *[(0.3 * arr(rng, n), 0.3 * arr(rng, n)) for n in (5, 1, 40)])


@pytest.mark.parametrize("steps", [6, "T"])
@pytest.mark.parametrize(
    "attributes, shape",
    [
        ({}, (6, 4)),
        ({"scan_input_directions": [1], "scan_output_directions": [1]}, (6, 4)),
        ({"scan_input_axes": [1], "scan_output_axes": [1]}, (4, 6)),
    ],
)
def test_scan(rng, attributes, shape, steps):
    nodes = [helper.make_node("Mul", ["s", "decay"], ["d"]), helper.make_node("Add", ["d", "x"], ["s2"]),
             helper.make_node("Relu", ["s2"], ["y"])]  # fmt: skip
    body = helper.make_graph(nodes, "body", [info("s", F, [4]), info("x", F, [4])], [info("s2", F), info("y", F)])
    node = helper.make_node("Scan", ["s0", "xs"], ["last", "ys"], body=body, num_scan_inputs=1, **attributes)
    declared = [steps if n == 6 else n for n in shape]
    inputs = [info("s0", F, [4]), info("xs", F, declared)]
    model = model_of([node], inputs, [info("last"), info("ys")], {"decay": np.asarray(0.5, np.float32)})
    feeds = [(arr(rng, 4), arr(rng, *shape))]
    if steps == "T":
        feeds.append((arr(rng, 4), arr(rng, *[3 if n == 6 else n for n in shape])))
    check(model, *feeds)


def test_a_loop_whose_value_grows_is_named():
    nodes = [helper.make_node("Concat", ["v", "v"], ["w"], axis=0), helper.make_node("Identity", ["c"], ["c2"])]
    body = helper.make_graph(nodes, "body", [info("i", INT, []), info("c", B, []), info("v")],
                             [info("c2", B, []), info("w")])  # fmt: skip
    model = model_of([helper.make_node("Loop", ["n", "", "a"], ["z"], body=body)],
                     [info("n", INT, []), info("a", F, [3])], [info("z")])  # fmt: skip
    with pytest.raises(cuvil.UnsupportedError, match="begins as"):
        cuvil.import_onnx(model)
