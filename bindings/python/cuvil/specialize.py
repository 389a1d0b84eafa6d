"""Models whose inputs decide shapes or axes: one compilation per value of these inputs."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NoReturn

import numpy as np

from cuvil import _core
from cuvil.errors import ShapeError, UnsupportedError
from cuvil.executable import Executable, Port, StepTime

Values = Mapping[str, np.ndarray[Any, Any]]
_Key = tuple[tuple[str, str, tuple[int, ...], bytes], ...]

KEPT = 16  # executables: the least recently used goes first


def as_value(name: str, value: Any) -> np.ndarray[Any, Any]:
    """A private contiguous copy of a NumPy, PyTorch or DLPack array. Raises ShapeError naming the input."""
    try:
        array = np.from_dlpack(value) if hasattr(value, "__dlpack__") else np.asarray(value)
        return np.array(array, order="C")
    except (TypeError, ValueError, RuntimeError, BufferError) as e:
        raise ShapeError(f"the value of input '{name}' must be an array on the CPU: {e}") from None


class ValueGraph:
    """An imported model that waits for the values of some inputs, its `value_inputs`, because they decide shapes, axes
    or the like. `build` accepts it; `specialize` gives the graph for one set of values."""

    def __init__(
        self,
        read: Callable[[Values], tuple[_core.Graph, list[tuple[str, int]]]],
        partial: _core.Graph,
        most: dict[str, int],
    ) -> None:
        self._read = read
        self._partial = partial  # its inputs only
        self._most = most  # elements of each value input

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._partial.name

    @property
    def inputs(self) -> tuple[Port, ...]:
        """All inputs, those whose values decide included."""
        return tuple(Port(*p) for p in self._partial.inputs)

    @property
    def value_inputs(self) -> tuple[str, ...]:
        """Names of the inputs whose values are needed, in the model's order. Values may show that more are."""
        return tuple(p.name for p in self.inputs if p.name in self._most)

    def specialize(self, values: Mapping[str, Any]) -> _core.Graph:
        """The graph for these values. Raises UnsupportedError naming those that are missing or too large."""
        graph, waits_for = self._read(self.check({name: as_value(name, v) for name, v in values.items()}))
        if waits_for:
            raise UnsupportedError(f"'{self.name}' also needs the values of {', '.join(n for n, _ in waits_for)}")
        return graph

    def check(self, values: Values) -> Values:
        """`values`, if a compilation for them is reasonable: large ones are data, not shapes."""
        for name, value in values.items():
            if name in self._most and value.size > self._most[name]:
                raise UnsupportedError(
                    f"input '{name}' decides shapes or axes, so code is made for its value; {value.size} elements are "
                    f"too many for that (the most are {self._most[name]}). Where it never changes, import with "
                    f'values={{"{name}": ...}}'
                )
        return values

    def extend(self, values: Values) -> _core.Graph | None:
        """The graph for `values`; None if it needs others too, which then count among the value inputs."""
        graph, waits_for = self._read(self.check(values))
        if not waits_for:
            return graph
        self._most = {**self._most, **dict(waits_for)}
        return None

    def refuse(self, what: str) -> NoReturn:
        """For what needs code for all values at once."""
        raise UnsupportedError(
            f"{what}: the values of input(s) {', '.join(self.value_inputs)} decide shapes or axes, and code is made for "
            "one value at a time. Fix them when importing: import_onnx(model, values={...})"
        )

    def __str__(self) -> str:
        inputs = "".join(f"\n  %{p}{'  <- value needed' if p.name in self._most else ''}" for p in self.inputs)
        return (
            f"graph {self.name} waits for the values of {', '.join(self.value_inputs)}, which decide shapes or axes:"
            f"{inputs}\nbuild() compiles once per value; specialize({{...}}), or import_onnx(..., values={{...}}), "
            "gives the graph for one."
        )

    def __repr__(self) -> str:
        return f'ValueGraph("{self.name}", waits for {", ".join(self.value_inputs)})'


class SpecializingExecutable(Executable):
    """Runs a ValueGraph: each new value of its value inputs is compiled once, whichever thread asks first; the 16 most
    recently used are kept."""

    __slots__ = ("_build", "_cache", "_compilations", "_graph", "_lock")

    def __init__(self, graph: ValueGraph, build: Callable[[_core.Graph], Executable]) -> None:
        self._graph = graph
        self._build = build
        self._lock = threading.Lock()
        self._cache: OrderedDict[_Key, Future[Executable]] = OrderedDict()
        self._compilations = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the model, as Executable's does; compiles first if the value inputs have values not seen lately."""
        return self.specialized(*args, **kwargs)(*args, **kwargs)

    def profile(self, *args: Any, **kwargs: Any) -> list[StepTime]:
        """Runs once, specialised to these values, with every step timed."""
        return self.specialized(*args, **kwargs).profile(*args, **kwargs)

    def specialized(self, *args: Any, **kwargs: Any) -> Executable:
        """The executable for a call's values of the value inputs."""
        while True:
            names = self._graph.value_inputs
            values = self._values(names, args, kwargs)
            key = tuple((n, v.dtype.str, v.shape, v.tobytes()) for n, v in values.items())
            with self._lock:
                future = self._cache.get(key)
                mine = future is None
                if future is None:
                    self._graph.check(values)
                    future = self._cache[key] = Future()
                self._cache.move_to_end(key)
            exe: Executable | None = self._compile(key, future, values) if mine else future.result()
            if exe is not None:  # else more inputs turned out to be needed
                return exe

    def _compile(self, key: _Key, future: Future[Any], values: Values) -> Executable | None:
        try:
            graph = self._graph.extend(values)
            exe = None if graph is None else self._build(graph)
        except BaseException as e:
            with self._lock:
                self._cache.pop(key, None)
            future.set_exception(e)
            raise
        with self._lock:
            if exe is None:
                self._cache.pop(key, None)
            else:
                self._compilations += 1
                while len(self._cache) > KEPT:
                    self._cache.popitem(last=False)
        future.set_result(exe)
        return exe

    def _values(self, names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Values:
        order = [p.name for p in self._graph.inputs]
        given = dict(zip(order, args, strict=False))
        given.update({n: v for n, v in kwargs.items() if n not in given})
        missing = [n for n in names if n not in given]
        if missing:
            raise ShapeError(f"input '{missing[0]}' is missing; the inputs are {', '.join(order)}")
        return {n: as_value(n, given[n]) for n in names}

    def _latest(self, what: str) -> Executable:
        with self._lock:
            done = [f.result() for f in self._cache.values() if f.done() and not f.exception()]
        if not done or done[-1] is None:
            raise UnsupportedError(
                f"{what} depends on the values of {', '.join(self._graph.value_inputs)}; call the executable first"
            )
        return done[-1]

    @property
    def inputs(self) -> tuple[Port, ...]:
        """All inputs, those whose values decide included."""
        return self._graph.inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        """Of the latest call's values."""
        return self._latest("outputs").outputs

    @property
    def num_threads(self) -> int:
        """Threads of a call, as of Executable."""
        return self._latest("num_threads").num_threads

    @property
    def memory(self) -> dict[str, int]:
        """Of the latest call's values."""
        return self._latest("memory").memory

    @property
    def memory_plan(self) -> str:
        """Of the latest call's values."""
        return self._latest("memory_plan").memory_plan

    def report(self) -> str:
        """How many values were compiled for, and the report of each that is kept."""
        names = ", ".join(self._graph.value_inputs)
        with self._lock:
            kept = [(k, f) for k, f in self._cache.items() if f.done() and not f.exception() and f.result()]
            count = self._compilations
        text = f"compiled for {count} value(s) of {names}; kept: {len(kept)} of at most {KEPT}\n"
        for key, future in kept:
            value = ", ".join(f"{n} = {np.frombuffer(b, d).reshape(s).tolist()}" for n, d, s, b in key)
            text += f"\n== {value}\n{future.result().report()}"
        return text

    def save(self, path: str | os.PathLike[str], targets: Sequence[str] | None = None) -> None:
        """Refused: a .cvl holds no compiler."""
        self._graph.refuse("save()")

    def __repr__(self) -> str:
        return (
            f"SpecializingExecutable({', '.join(map(str, self.inputs))}; one compilation per value of "
            f"{', '.join(self._graph.value_inputs)})"
        )
