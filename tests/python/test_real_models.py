"""Trained models that packages ship: the same answers as their reference runtimes, on data that the tests make."""

import importlib.util
import sys
from pathlib import Path

import cuvil
import numpy as np
import onnxruntime as ort
import pytest

ROOT = Path(__file__).resolve().parents[2]


def files_of(package: str, folder: str, pattern: str) -> list[Path]:
    spec = importlib.util.find_spec(package)
    assert spec and spec.origin, f"{package} is not installed; ./dev setup installs it"
    found = sorted((Path(spec.origin).parent / folder).glob(pattern))
    assert found, f"{package} ships no {pattern}"
    return found


def reference(model: Path) -> ort.InferenceSession:
    return ort.InferenceSession(model, providers=["CPUExecutionProvider"])


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    assert got.shape == want.shape and got.dtype == want.dtype
    return float(np.abs(got - want).max() / np.abs(want).max())


def text_line(width: int, seed: int) -> np.ndarray:
    """A grey picture [1, 3, 48, width] of strokes that look like a line of text, in [-1, 1]."""
    rng = np.random.default_rng(seed)
    page = np.ones((48, width), np.float32)
    for x in range(6, width - 12, 14):
        page[rng.integers(6, 14) : rng.integers(30, 44), x : x + 3] = -1
        page[rng.integers(10, 40), x : x + 10] = -1
    return np.repeat(page[None, None], 3, axis=1).copy()


@pytest.mark.parametrize("width, batch", [(320, 1), (96, 2)])
def test_text_recognition(width, batch):
    """PP-OCR's recogniser: convolutions, attention, a CTC head; any width, any batch."""
    model = files_of("rapidocr", "models", "*rec*.onnx")[0]
    x = np.concatenate([text_line(width, seed) for seed in range(batch)])
    want = reference(model).run(None, {"x": x})[0]
    got = cuvil.build(cuvil.import_onnx(model))(x)
    assert relative_error(got, want) < 1e-4
    np.testing.assert_array_equal(got.argmax(-1), want.argmax(-1))


def test_text_direction():
    """PP-OCR's classifier: is a line of text upside down?"""
    model = files_of("rapidocr", "models", "*cls*.onnx")[0]
    session = reference(model)
    exe = cuvil.build(cuvil.import_onnx(model))
    for seed in range(3):
        x = text_line(192, seed)
        want = session.run(None, {session.get_inputs()[0].name: x})[0]
        assert relative_error(exe(x), want) < 1e-4


def test_text_detection():
    """PP-OCR's detector on the demo's picture, cut to a size that is quick to run."""
    sys.path.insert(0, str(ROOT / "examples/demo"))
    from picture import draw, to_input

    model = files_of("rapidocr", "models", "*det*.onnx")[0]
    x = np.ascontiguousarray(to_input(draw())[:, :, :320, :320])
    want = reference(model).run(None, {"x": x})[0]
    exe = cuvil.build(cuvil.import_onnx(model))
    assert relative_error(exe(x), want) < 1e-4
    smaller = np.ascontiguousarray(x[:, :, :160, :288])
    assert relative_error(exe(smaller), reference(model).run(None, {"x": smaller})[0]) < 1e-4


def speech(seconds: float, rate: int) -> np.ndarray:
    """Vowel-like sound between pauses: harmonics of a gliding pitch under formants, in syllables."""
    t = np.arange(int(seconds * rate)) / rate
    phase = 2 * np.pi * np.cumsum(120 + 20 * np.sin(2 * np.pi * 0.7 * t)) / rate
    formants = [(700, 130), (1200, 170), (2600, 250)]
    sound = np.zeros_like(t)
    for k in range(1, 30):
        gain = sum(np.exp(-(((k * 120 - f) / w) ** 2)) for f, w in formants) + 0.02
        sound += gain * np.sin(k * phase)
    syllables = np.clip(np.sin(2 * np.pi * 3 * t), 0, None) * (np.sin(2 * np.pi * 0.4 * t) > -0.3)
    noise = np.random.default_rng(0).standard_normal(len(t))
    return (0.15 * sound * syllables + 0.002 * noise).astype(np.float32)


@pytest.mark.parametrize("rate, chunk, context", [(16000, 512, 64), (8000, 256, 32)])
def test_voice_activity(rate, chunk, context):
    """Silero VAD: control flow on the sampling rate, an LSTM whose state the caller carries."""
    model = files_of("silero_vad", "data", "silero_vad.onnx")[0]
    session = reference(model)
    audio = speech(1.5, rate)
    sampling = np.array(rate, np.int64)
    # The model is two networks in one: the rate picks one, and a branch inside asks how many frames there are.
    sizes = {"input": [1, context + chunk], "state": [2, 1, 128]}
    exe = cuvil.build(cuvil.import_onnx(model, shapes=sizes, values={"sr": sampling}))
    states = [np.zeros((2, 1, 128), np.float32)] * 2
    probabilities = []
    before = np.zeros((1, context), np.float32)
    for begin in range(0, len(audio) - chunk, chunk):
        x = np.concatenate([before, audio[None, begin : begin + chunk]], axis=1)
        before = x[:, -context:]
        want, states[0] = session.run(None, {"input": x, "state": states[0], "sr": sampling})
        got, states[1] = exe(input=x, state=states[1], sr=sampling)
        probabilities.append(float(want[0, 0]))
        assert abs(float(got[0, 0]) - probabilities[-1]) < 1e-4
        assert relative_error(states[1], states[0]) < 1e-3
    assert max(probabilities) > min(probabilities) + 0.01  # the sound moves the detector
