"""Cuvil: an AI inference compiler.

A first example:

    graph = cuvil.import_onnx("model.onnx")
    exe = cuvil.build(graph)
    y = exe(x)                       # NumPy in, NumPy out
    exe.save("model.cvl")            # one file, runs without this package
    exe = cuvil.load("model.cvl")    # no compiler involved
"""

from cuvil._core import Graph, Location, Node
from cuvil.api import build, compile, import_onnx, import_torch, load, parse
from cuvil.errors import (
    ArtifactError,
    CuvilError,
    InternalError,
    ModelError,
    ShapeError,
    TargetError,
    UnsupportedError,
)
from cuvil.executable import Executable
from cuvil.not_yet import (
    QATRecompile,
    QuantConfig,
    import_tensorflow,
    import_tflite,
)
from cuvil.specialize import ValueGraph

__version__ = "0.1.0"

__all__ = [
    "ArtifactError",
    "CuvilError",
    "Executable",
    "Graph",
    "InternalError",
    "Location",
    "ModelError",
    "Node",
    "QATRecompile",
    "QuantConfig",
    "ShapeError",
    "TargetError",
    "UnsupportedError",
    "ValueGraph",
    "build",
    "compile",
    "import_onnx",
    "import_tensorflow",
    "import_tflite",
    "import_torch",
    "load",
    "parse",
]
