"""Where optimised code and plain code part: the first operator, by bisection."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuvil import _core, api

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Difference:
    """One value, computed both ways."""

    name: str
    error: (
        float  # largest absolute difference over the largest absolute value; inf: one has NaN, inf or an integer wrong
    )
    node: _core.Node | None  # what computes it; None for an input that is handed through

    def __str__(self) -> str:
        made = f"  {self.node.op}  {self.node.location}" if self.node else ""
        return f"{self.name}: error {self.error:.1e}{made}"


@dataclass(frozen=True)
class Comparison:
    """`outputs`: the model's results. `first`: the first value that differs by more than the tolerance, or None."""

    outputs: tuple[Difference, ...]
    first: Difference | None
    builds: int


def diff(
    graph: _core.Graph,
    inputs: Mapping[str, Array],
    tolerance: float = 1e-4,
    against: str = "plain",
    numerics: str = "default",
    progress: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Runs a graph optimised and plainly, and finds the first operator after which the two differ.

    `against`: "plain" (native code without optional passes, by the operators' plain loop nests) or "reference" (the
    interpreter: slow). `tolerance` is relative to a value's largest absolute element; integers must be equal. If an
    output differs, the graph is cut in two, at all values that cross the cut, again and again: about log2(nodes)
    builds. Fusion stays as it is on either side of a cut. What only fusion across the last cut causes is blamed on the
    operator behind it.
    """
    nodes = [n for n in graph.nodes if n.op != "Constant"]
    producers = {name: n for n in nodes for name, _, _ in n.outputs}
    plain: dict[str, Any] = {"optimize": False} if against == "plain" else {"target": "reference"}
    builds = 0

    def compare(part: _core.Graph, names: Sequence[str]) -> list[Difference]:
        nonlocal builds
        builds += 1
        given = {name: inputs[name] for name, _, _ in part.inputs}
        both = [api.build(part, numerics=numerics, **how)(**given) for how in ({}, plain)]
        fast, slow = (y if isinstance(y, tuple) else (y,) for y in both)
        return [
            Difference(name, _error(a, b), producers.get(name)) for name, a, b in zip(names, fast, slow, strict=True)
        ]

    names = [name for name, _, _ in graph.outputs]
    outputs = compare(graph, names)
    if all(d.error <= tolerance for d in outputs):
        return Comparison(tuple(outputs), None, builds)

    # A cut after a node passes all values that later nodes, or the results, still read.
    last_use = {name: i for i, n in enumerate(nodes) for name in n.input_names}
    last_use.update(dict.fromkeys(graph.result_names, len(nodes)))
    low, high, first = -1, len(nodes) - 1, None  # no difference after low, one after high
    while high - low > 1:
        middle = (low + high) // 2
        progress(f"{nodes[middle].name} ({high - low} operators left)")
        alive = [v for i, n in enumerate(nodes[: middle + 1]) for v, _, _ in n.outputs if last_use.get(v, -1) > middle]
        wrong = [d for d in compare(graph.prefix(alive), alive) if d.error > tolerance]
        if wrong:
            high, first = middle, wrong[-1]
        else:
            low = middle
    if first is None or first.node is not nodes[high]:
        made = [v for v, _, _ in nodes[high].outputs if last_use.get(v, -1) >= 0]
        found = compare(graph.prefix(made), made)
        first = max(found, key=lambda d: d.error)
    return Comparison(tuple(outputs), first, builds)


def _error(a: Array, b: Array) -> float:
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if a.size == 0:
        return 0.0
    if a.dtype.kind != "f":
        return 0.0 if np.array_equal(a, b) else float("inf")
    x, y = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(y)
    if not np.array_equal(x[~finite], y[~finite], equal_nan=True) or not np.isfinite(x[finite]).all():
        return float("inf")
    worst = float(np.abs(x[finite] - y[finite]).max(initial=0.0))
    return worst / max(float(np.abs(y[finite]).max(initial=0.0)), 1e-30)
