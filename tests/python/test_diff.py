"""`cuvil diff`: agreement, and the first operator that differs."""

import cuvil
import numpy as np
import pytest
from cuvil import diff as module
from cuvil.cli import main
from cuvil.diff import diff


def test_agreement(conv_model, rng):
    graph = cuvil.import_onnx(conv_model)
    x = rng.standard_normal((2, 3, 18, 14)).astype(np.float32)
    result = diff(graph, {"x": x})
    assert result.first is None and result.builds == 1
    assert [d.name for d in result.outputs] == ["y"] and result.outputs[0].error < 1e-5
    assert diff(graph, {"x": x}, against="reference").first is None


@pytest.mark.parametrize("culprit", ["Conv2D", "MaxPool2D", "MatMul"])
def test_the_first_wrong_operator_is_named(conv_model, rng, monkeypatch, culprit):
    """A compiler that gets every value wrong from one operator on."""
    graph = cuvil.import_onnx(conv_model)
    nodes = [n for n in graph.nodes if n.op != "Constant"]
    bad = next(n for n in nodes if n.op == culprit)
    build = cuvil.build

    def wrong_from_there(part, optimize=True, **options):
        exe = build(part, **options)
        if not optimize or bad.name not in {n.name for n in part.nodes}:
            return exe
        broken = {n.name for n in nodes[nodes.index(bad) :]}
        names = part.result_names

        def call(**inputs):
            y = exe(**inputs)
            y = y if isinstance(y, tuple) else (y,)
            return tuple(v + 1 if name in broken else v for name, v in zip(names, y, strict=True))

        return call

    monkeypatch.setattr(module.api, "build", wrong_from_there)
    result = diff(graph, {"x": rng.standard_normal((1, 3, 18, 14)).astype(np.float32)})
    assert result.first is not None and result.first.node is not None
    assert result.first.node.name == bad.name and result.first.error > 1e-4
    assert result.builds <= 2 + np.ceil(np.log2(len(nodes)))


def test_command_line(conv_model, tmp_path, capsys):
    path = tmp_path / "m.onnx"
    path.write_bytes(conv_model.SerializeToString())
    assert main(["diff", str(path)]) == 0
    assert "no output differs" in capsys.readouterr().out
    assert main(["diff", str(path), "--tolerance", "0"]) in (0, 1)


def test_a_prefix_has_only_what_it_needs(conv_model):
    graph = cuvil.import_onnx(conv_model)
    conv = next(n for n in graph.nodes if n.op == "Conv2D")
    part = graph.prefix([conv.name])
    assert [n.op for n in part.nodes if n.op != "Constant"] == ["Conv2D"]
    assert part.outputs[0][0] == conv.name
    with pytest.raises(cuvil.ModelError, match="nothing"):
        graph.prefix(["nothing"])
