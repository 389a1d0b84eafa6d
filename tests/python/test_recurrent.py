"""LSTM, GRU and RNN against ONNX Runtime: directions, states, lengths, peepholes, activations, layouts."""

import cuvil
import numpy as np
import onnxruntime as ort
import pytest
from onnx import helper

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def model_of(make_model, rng, op, inputs, steps, batch, hidden=24, features=7, sizes=None, **attributes):
    """A model of one node with the named optional inputs, its feeds, and the names of its outputs."""
    f = lambda *s: (0.4 * rng.standard_normal(s)).astype(np.float32)  # noqa: E731
    d = 2 if attributes.get("direction") == "bidirectional" else 1
    g, first = GATES[op], attributes.get("layout", 0) == 1
    weights = {"W": f(d, g * hidden, features), "R": f(d, g * hidden, hidden), "B": f(d, 2 * g * hidden),
               "P": f(d, 3 * hidden)}  # fmt: skip
    state = (batch, d, hidden) if first else (d, batch, hidden)
    feeds = {"X": f(batch, steps, features) if first else f(steps, batch, features),
             "lens": np.asarray([steps, *rng.integers(1, steps + 1, batch)][:batch], np.int32),
             "h": f(*state), "c": f(*state)}  # fmt: skip
    order = ["X", "W", "R", "B", "lens", "h", "c", "P"][: 8 if op == "LSTM" else 6]
    names = [n if n in ("X", "W", "R", *inputs) else "" for n in order]
    while names[-1] == "":
        names.pop()
    outputs = ["Y", "Y_h", "Y_c"][: 3 if op == "LSTM" else 2]
    feeds = {n: v for n, v in feeds.items() if n in names}
    node = helper.make_node(op, names, outputs, hidden_size=hidden, **attributes)
    shapes = {n: (sizes or {}).get(n, v.shape) for n, v in feeds.items()}
    weights = {n: v for n, v in weights.items() if n in names}
    return make_model([node], shapes, outputs, weights, dtypes={"lens": np.int32}), feeds


def check(model, feeds):
    want = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    got = cuvil.build(cuvil.import_onnx(model))(**feeds)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("inputs", [(), ("B", "h", "c"), ("B", "lens"), ("B", "lens", "h", "c", "P")])
@pytest.mark.parametrize("op", GATES)
def test_directions_and_optional_inputs(make_model, rng, op, inputs, direction):
    inputs = [i for i in inputs if op == "LSTM" or i not in ("c", "P")]
    check(*model_of(make_model, rng, op, inputs, steps=6, batch=5, direction=direction))


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("op", GATES)
def test_clip(make_model, rng, op, batch):
    check(*model_of(make_model, rng, op, ["B", "h"], steps=5, batch=batch, hidden=37, clip=0.3))


@pytest.mark.parametrize("inputs", [("B", "h"), ("B", "h", "lens")])
def test_gru_that_is_linear_before_the_reset(make_model, rng, inputs):
    check(*model_of(make_model, rng, "GRU", inputs, 5, 3, linear_before_reset=1, direction="bidirectional"))


def test_lstm_whose_forget_gate_is_coupled(make_model, rng):
    check(*model_of(make_model, rng, "LSTM", ["B"], 5, 3, input_forget=1))


@pytest.mark.parametrize(
    "names, alpha, beta",
    [
        (["Relu", "Softsign", "Affine"], [0.5], [0.1]),
        (["HardSigmoid", "ScaledTanh", "LeakyRelu"], [0.3, 0.7, 0.1], [0.4, 0.9]),
        (["sigmoid", "tanh", "Elu"], [0.5], []),
        (["Sigmoid", "Softplus", "ThresholdedRelu"], [0.2], []),
    ],
)
def test_activations(make_model, rng, names, alpha, beta):
    given = {"activation_alpha": alpha, "activation_beta": beta}
    given = {name: values for name, values in given.items() if values}
    check(*model_of(make_model, rng, "LSTM", ["B", "h", "c"], 4, 3, activations=names, **given))


@pytest.mark.parametrize("op", GATES)
def test_symbolic_steps_and_batch(make_model, rng, op):
    sizes = {"X": ("T", "N", 7), "h": (2, "N", 24), "c": (2, "N", 24)}
    model, feeds = model_of(make_model, rng, op, ["B", "h", "c"], 6, 5, sizes=sizes, direction="bidirectional")
    check(model, feeds)
    exe = cuvil.build(cuvil.import_onnx(model))
    for steps, batch in ((1, 1), (9, 6)):
        part = {"X": rng.standard_normal((steps, batch, 7)).astype(np.float32)}
        part |= {n: rng.standard_normal((2, batch, 24)).astype(np.float32) for n in ("h", "c") if n in feeds}
        want = ort.InferenceSession(model.SerializeToString()).run(None, part)
        for g, w in zip(exe(**part), want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)


def test_weights_that_do_not_fit_are_named(make_model, rng):
    model, _ = model_of(make_model, rng, "LSTM", ["B"], 3, 2)
    model.graph.initializer[1].dims[:] = [1, 24, 96]
    with pytest.raises(cuvil.ModelError, match="do not fit"):
        cuvil.import_onnx(model)
