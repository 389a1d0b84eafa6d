"""Saving, loading, damage."""

import os
import stat
import subprocess
import sys

import cuvil
import numpy as np
import pytest
from cuvil.cli import main

FULL = "CUVIL_TEST_FULL" in os.environ


@pytest.fixture
def saved(conv_model, tmp_path):
    path = tmp_path / "model.cvl"
    exe = cuvil.build(cuvil.import_onnx(conv_model))
    exe.save(path)
    return path, exe


def test_loaded_gives_the_same_bits(saved, rng):
    path, exe = saved
    loaded = cuvil.load(path)
    for batch in (1, 4):
        x = rng.standard_normal((batch, 3, 18, 14)).astype(np.float32)
        np.testing.assert_array_equal(loaded(x), exe(x))
    assert loaded.inputs[0].shape == ("N", 3, 18, 14)
    with pytest.raises(cuvil.UnsupportedError, match="cvl"):
        loaded.report()


def test_same_model_same_bytes(saved, conv_model, tmp_path):
    path, _ = saved
    again = tmp_path / "again.cvl"
    cuvil.build(cuvil.import_onnx(conv_model)).save(again)
    assert path.read_bytes() == again.read_bytes()


def test_cross_targets_are_stored_side_by_side(conv_model, tmp_path, capsys):
    path = tmp_path / "all.cvl"
    cuvil.build(cuvil.import_onnx(conv_model)).save(path, targets=["x86-64-v3", "x86-64-v4", "aarch64"])
    assert main(["inspect", str(path), "--verify"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in ("x86-64-v3", "x86-64-v4", "aarch64", "undamaged"))


def test_truncation_and_flips_are_typed_errors(saved, rng):
    path, exe = saved
    data = path.read_bytes()
    x = rng.standard_normal((1, 3, 18, 14)).astype(np.float32)
    want = exe(x)
    bad = path.with_name("bad.cvl")
    # The long suite cuts at every byte.
    for size in range(len(data)) if FULL else sorted({int(s) for s in np.linspace(0, len(data) - 1, 100)}):
        bad.write_bytes(data[:size])
        with pytest.raises(cuvil.ArtifactError):
            cuvil.load(bad)
    for _ in range(10000 if FULL else 200):
        flipped = bytearray(data)
        flipped[rng.integers(len(data))] ^= 1 << rng.integers(8)
        bad.write_bytes(flipped)
        try:
            loaded = cuvil.load(bad)
        except (cuvil.ArtifactError, cuvil.TargetError):
            continue
        # Not metadata or code, so weights or padding: found on request, or without any effect.
        if main(["inspect", str(bad), "--verify"]) == 0:
            np.testing.assert_array_equal(loaded(x), want)


def test_saving_is_all_or_nothing(saved, tmp_path):
    _, exe = saved
    with pytest.raises(cuvil.ArtifactError):
        exe.save(tmp_path / "missing" / "model.cvl")
    with pytest.raises(cuvil.TargetError, match="x86-64-v3"):
        exe.save(tmp_path / "other.cvl", targets=["sparc"])
    assert not (tmp_path / "other.cvl").exists()


def test_missing_and_foreign_files(tmp_path):
    with pytest.raises(cuvil.ArtifactError):
        cuvil.load(tmp_path / "nothing.cvl")
    foreign = tmp_path / "foreign.cvl"
    foreign.write_bytes(b"\x7fELF" + bytes(1000))
    with pytest.raises(cuvil.ArtifactError):
        cuvil.load(foreign)
    with pytest.raises(cuvil.ArtifactError):
        cuvil.load(tmp_path)


def test_command_line_from_model_to_outputs(conv_model, tmp_path):
    model, artifact, out = tmp_path / "m.onnx", tmp_path / "m.cvl", tmp_path / "y.npz"
    model.write_bytes(conv_model.SerializeToString())
    np.save(tmp_path / "x.npy", np.ones((2, 3, 18, 14), np.float32))

    def cuvil_command(*args):
        return subprocess.run(
            [sys.executable, "-m", "cuvil", *map(str, args)], capture_output=True, text=True, env=os.environ
        )

    done = cuvil_command("compile", model, "-o", artifact)
    assert done.returncode == 0, done.stderr
    done = cuvil_command("run", artifact, "--input", f"x={tmp_path / 'x.npy'}", "--output", out, "--repeat", 3)
    assert done.returncode == 0, done.stderr
    want = cuvil.build(cuvil.import_onnx(model))(np.ones((2, 3, 18, 14), np.float32))
    np.testing.assert_array_equal(np.load(out)["y"], want)
    done = cuvil_command("run", tmp_path / "none.onnx")
    assert done.returncode == 1 and "ModelError" in done.stderr and "Traceback" not in done.stderr
    assert "Conv2D" in cuvil_command("compile", model, "--emit", "cir").stdout
    assert "kernel" in cuvil_command("compile", model, "--emit", "kir").stdout


def test_pipes_are_neither_waited_for_nor_replaced(saved, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(cuvil.ArtifactError):
        cuvil.load(pipe)
    with pytest.raises(cuvil.ArtifactError):
        saved[1].save(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_outputs_of_any_name_are_written(tmp_path):
    (tmp_path / "m.cir").write_text("graph @g(%self: f32[2]) -> (file = %y) { %y = Neg(%self) : f32[2] }")
    assert main(["run", str(tmp_path / "m.cir"), "--output", str(tmp_path / "y.npz")]) == 0
    assert np.load(tmp_path / "y.npz")["file"].shape == (2,)


@pytest.mark.parametrize(
    "words",
    [["--threads", "-1"], ["--seed", "-1"], ["--shape", "N=-3"], ["--shape", "N=two"], ["--shape", "Q=3"],
     ["--shape", "N=99999999999999999999"], ["--output", "/dev/null/y.npz"]],
)  # fmt: skip
def test_bad_words_on_the_command_line_are_said_in_a_line(saved, words, capsys):
    try:
        status = main(["run", str(saved[0]), *words])
    except SystemExit as e:
        status = e.code
    assert status in (1, 2)
    assert "Traceback" not in capsys.readouterr().err
