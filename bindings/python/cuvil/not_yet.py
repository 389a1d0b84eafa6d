"""Parts of the public interface that are not there yet: each refuses by name and says what to do instead."""

from typing import Any, NoReturn

from cuvil.errors import UnsupportedError


def _refuse(what: str, instead: str) -> NoReturn:
    raise UnsupportedError(f"{what} is not implemented yet. {instead}")


def import_tflite(*args: Any, **kwargs: Any) -> NoReturn:
    """Import of TFLite models: not implemented yet."""
    _refuse("cuvil.import_tflite", "Convert the model to ONNX and use cuvil.import_onnx.")


def import_tensorflow(*args: Any, **kwargs: Any) -> NoReturn:
    """Import of TensorFlow saved models: not implemented yet."""
    _refuse("cuvil.import_tensorflow", "Convert the model to ONNX and use cuvil.import_onnx.")


def QATRecompile(*args: Any, **kwargs: Any) -> NoReturn:
    """Quantization-aware training: not implemented yet."""
    _refuse("cuvil.QATRecompile", 'Build with precision="fp32".')


def QuantConfig(*args: Any, **kwargs: Any) -> NoReturn:
    """Settings of quantization: not implemented yet."""
    _refuse("cuvil.QuantConfig", 'Build with precision="fp32".')
