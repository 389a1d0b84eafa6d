"""Executables: compiled in this process, or loaded from a .cvl."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cuvil import _core
from cuvil.errors import UnsupportedError


def path_text(path: str | os.PathLike[str]) -> str:
    """A path as text, for C++, which would end it at a null byte."""
    text = os.fspath(path)
    if "\0" in text:
        raise ValueError(f"embedded null byte in the path {text!r}")
    return text


@dataclass(frozen=True)
class Port:
    """An input or output: symbolic dimensions are strings."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class StepTime:
    """One kernel or host operator of a profiled run."""

    name: str
    kernel: str
    location: str
    nanoseconds: int


class Executable:
    """A model ready to run. Calls are thread-safe: each takes a context of its own from a pool."""

    __slots__ = ("_compiled", "_model")

    def __init__(self, model: _core.Model, compiled: _core.Compiled | None) -> None:
        self._model = model
        self._compiled = compiled

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Runs the model. Inputs positional or by name: NumPy, PyTorch or any DLPack array on the CPU, read in place if
        contiguous. Returns fresh memory in the framework of the first input: one array, or a tuple of several.
        Raises ShapeError naming the input."""
        return self._model(*args, **kwargs)

    @property
    def inputs(self) -> tuple[Port, ...]:
        return tuple(Port(*p) for p in self._model.inputs)

    @property
    def outputs(self) -> tuple[Port, ...]:
        return tuple(Port(*p) for p in self._model.outputs)

    @property
    def num_threads(self) -> int:
        return self._model.num_threads

    @property
    def memory(self) -> dict[str, int]:
        """Bytes: arena (with the lower bound that no plan can beat), scratch per thread, weights."""
        return self._model.memory

    @property
    def memory_plan(self) -> str:
        """Where every intermediate tensor lives, as a table. Only of executables compiled in this process."""
        return self._need_compiled("memory_plan").memory_plan

    def report(self) -> str:
        """What was compiled and how: steps, schedules, times. Only of executables compiled in this process."""
        return self._need_compiled("report()").report()

    def profile(self, /, *args: Any, **kwargs: Any) -> list[StepTime]:
        """Runs once with every step timed."""
        return [StepTime(*row) for row in self._model.profile(*args, **kwargs)]

    def save(self, path: str | os.PathLike[str], targets: Sequence[str] | None = None) -> None:
        """Writes one .cvl file that the runtime loads without a compiler.

        `targets`: names such as "x86-64-v3", "x86-64-v4", "aarch64"; ["host"] for exactly this machine. Default: this
        machine and a baseline of its architecture. The file appears whole or not at all.
        """
        if isinstance(targets, str):
            raise TypeError(f"targets is a list of names: targets=[{targets!r}]")
        self._need_compiled("save()").save(path_text(path), list(targets or []))

    def _need_compiled(self, what: str) -> _core.Compiled:
        if self._compiled is None:
            raise UnsupportedError(f"{what} needs the compiler's view; this executable was loaded from a .cvl")
        return self._compiled

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self.inputs))
        outputs = ", ".join(map(str, self.outputs))
        return f"Executable({inputs} -> {outputs})"

    def __reduce__(self) -> Any:
        raise TypeError("an Executable cannot be pickled; use save() and cuvil.load()")
