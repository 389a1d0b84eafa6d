"""Import, build, load."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from cuvil import _core
from cuvil.errors import TargetError, UnsupportedError
from cuvil.executable import Executable, path_text
from cuvil.specialize import SpecializingExecutable, ValueGraph, as_value


class ModelProto(Protocol):
    """onnx.ModelProto, without importing onnx."""

    def SerializeToString(self) -> bytes:
        """The bytes of the model."""
        ...


def import_onnx(
    model: str | os.PathLike[str] | bytes | bytearray | memoryview | ModelProto,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, Any] | None = None,
) -> _core.Graph | ValueGraph:
    """An ONNX model (opsets 7 to 28) as a graph.

    `model` is a path, the bytes of a model, or an onnx.ModelProto. From a path the weights are mapped, not copied, and
    external data may lie in the model's folder. `shapes` gives symbolic inputs sizes, e.g. {"x": [1, 3, 640, 640]}:
    kernels are then made for exactly these; -1 leaves an axis symbolic. `values` fixes inputs that decide shapes or
    axes, e.g. {"axes": np.array([1])}: they stay inputs, and a call with another value is refused. A model that needs
    such values and does not get them here becomes a ValueGraph: what `build` makes of it compiles once per value.
    Raises ModelError for a damaged model, UnsupportedError, which lists every unsupported node, for one with operators
    that Cuvil lacks, and ShapeError for sizes or values that contradict the model.
    """
    sizes = {name: list(map(int, shape)) for name, shape in (shapes or {}).items()}
    fixed = {name: as_value(name, value) for name, value in (values or {}).items()}
    source: str | bytes
    if isinstance(model, (str, os.PathLike)):
        source = path_text(model)
    elif isinstance(model, (bytes, bytearray, memoryview)):
        source = bytes(model)
    elif hasattr(model, "SerializeToString"):
        source = model.SerializeToString()
    else:
        raise TypeError(f"import_onnx takes a path, bytes or an onnx.ModelProto, not {type(model).__name__}")

    def read(more: Mapping[str, np.ndarray[Any, Any]]) -> tuple[_core.Graph, list[tuple[str, int]]]:
        if isinstance(source, str):
            return _core.import_onnx_file(source, sizes, {**fixed, **more})
        return _core.import_onnx_bytes(source, "model.onnx", sizes, {**fixed, **more})

    graph, waits_for = read({})
    return ValueGraph(read, graph, dict(waits_for)) if waits_for else graph


def import_torch(
    module: Any,
    args: Any,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> _core.Graph:
    """A PyTorch module or function as a graph, through torch.export.

    `module` is an nn.Module in eval mode, a function of tensors, or an ExportedProgram (then `args` is not looked at).
    `args`, `kwargs` are example inputs; `dynamic_shapes` is torch.export's: which sizes stay symbolic. Parameters and
    buffers become constants that share their memory. Raises UnsupportedError, which lists every operator that Cuvil
    lacks with the line it comes from.
    """
    from cuvil.torch.export import import_torch as convert  # torch is imported only where it is used

    return convert(module, args, dict(kwargs or {}) or None, dynamic_shapes)


def parse(text: str) -> _core.Graph:
    """A graph from its text form (what print(graph.text(full=True)) shows). Raises ModelError with line and column."""
    return _core.parse(text)


def compile(fn: Any = None, /, **options: Any) -> Any:
    """Compiles PyTorch functions and modules: see cuvil.torch.compile. Imports torch, which `import cuvil` does not."""
    try:
        from cuvil.torch import compile as compile_torch
    except ModuleNotFoundError as e:
        if e.name != "torch":
            raise
        raise ImportError("cuvil.compile needs PyTorch, which is not installed: pip install torch") from None
    return compile_torch(fn, **options)


def build(
    graph: _core.Graph | ValueGraph,
    target: str = "cpu",
    precision: str = "fp32",
    num_threads: int | None = None,
    calibration: Any = None,
    tune: bool | str = False,
    numerics: str = "default",
    optimize: bool = True,
) -> Executable:
    """Compiles a graph for this machine. A ValueGraph compiles when it is called, once per value of its `value_inputs`.

    `target`: "cpu", or "reference" for the interpreter (slow, exact: the oracle). `numerics="strict"` keeps the
    order of all sums and leaves out rewrites that change rounding. `num_threads`: at most this many threads per
    call, by default CUVIL_NUM_THREADS, else the cores that cgroup and affinity allow. `optimize=False`: no optional
    pass, every operator by its plain loop nest; what `cuvil diff` compares with. Raises UnsupportedError for what is
    not there yet (other precisions and targets, calibration, tuning).
    """
    if not isinstance(graph, (_core.Graph, ValueGraph)):
        raise TypeError(f"build takes a Graph (from import_onnx or parse), not {type(graph).__name__}")
    if target in ("gpu", "npu", "auto"):
        raise UnsupportedError(f'target="{target}" is not implemented yet. Use target="cpu".')
    if target not in ("cpu", "reference"):
        raise TargetError(
            f'unknown target {target!r}; build() compiles for this machine: "cpu" or "reference". '
            "For other machines save a .cvl with targets=[...]"
        )
    if calibration is not None:
        raise UnsupportedError('calibration is for precision="int8", which is not implemented yet.')
    if tune not in (False, None):
        raise UnsupportedError("tune is not implemented yet: schedules are chosen by rules. Use tune=False.")
    threads = _threads(num_threads)

    def compile_one(graph: _core.Graph) -> Executable:
        compiled = _core.build(graph, "cpu", precision, numerics, target, bool(optimize))
        return Executable(_core.Model(compiled, threads), compiled)

    return SpecializingExecutable(graph, compile_one) if isinstance(graph, ValueGraph) else compile_one(graph)


def load(path: str | os.PathLike[str], num_threads: int | None = None) -> Executable:
    """Opens a .cvl and loads its code: no compiler involved. A .cvl is code: load only files you would also run.

    Raises ArtifactError (damaged or foreign) and TargetError (no variant for this processor).
    """
    return Executable(_core.Model(path_text(path), _threads(num_threads)), None)


def _threads(num_threads: int | None) -> int:
    if num_threads is None:
        return 0
    if not isinstance(num_threads, int) or isinstance(num_threads, bool) or num_threads < 1:
        raise ValueError(f"num_threads must be a positive number or None, not {num_threads!r}")
    return num_threads
