"""What became of a decorated function, per line of Python."""

import linecache
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch.fx import Node

from cuvil.torch.partition import is_size, name_of

if TYPE_CHECKING:
    from cuvil.torch.backend import Frame, Session
    from cuvil.torch.unit import Unit


@dataclass
class Line:
    """One line of Python: the operators it became, by where they run. `reasons`: why some stay PyTorch's."""

    file: str
    number: int
    source: str
    compiled: list[str] = field(default_factory=list)
    eager: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        where = f"{os.path.basename(self.file)}:{self.number}" if self.file else "(no line)"
        parts = []
        if self.compiled:
            parts.append("compiled: " + _counted(self.compiled))
        if self.eager:
            why = f" ({'; '.join(self.reasons)})" if self.reasons else ""
            parts.append("PyTorch: " + _counted(self.eager) + why)
        return f"{where:<24} {self.source[:48]:<48}  {', '.join(parts)}"


@dataclass
class GraphReport:
    """One graph that Dynamo made: what each line became, and the kernels, each with the operators fused in it."""

    lines: list[Line]
    kernels: list[str]
    regions: int
    reason: str | None  # why the whole graph runs in PyTorch
    graph_break: str | None  # why it ends where it ends
    repacks: int
    eager_calls: int

    def __str__(self) -> str:
        if self.reason is not None:
            text = [f"in PyTorch: {self.reason}"]
        else:
            count = sum(len(line.compiled) for line in self.lines)
            left = sum(len(line.eager) for line in self.lines)
            text = [f"{count} operators compiled into {len(self.kernels)} kernels, {left} left to PyTorch"]
        if self.repacks or self.eager_calls:
            text.append(f"  weights packed again {self.repacks} times; {self.eager_calls} calls ran in PyTorch")
        text += [f"  {line}" for line in self.lines]
        if self.kernels:
            text.append(f"  kernels: {', '.join(self.kernels)}")
        if self.graph_break:
            text.append(f"  ends at: {self.graph_break}")
        return "\n".join(text)


@dataclass
class Report:
    """Graphs in the order in which they were compiled."""

    name: str
    graphs: list[GraphReport]

    @property
    def compilations(self) -> int:
        """How many graphs were compiled."""
        return sum(1 for g in self.graphs if g.reason is None)

    @property
    def eager(self) -> list[str]:
        """Why something stays PyTorch's: all reasons."""
        reasons = [g.reason for g in self.graphs if g.reason] + [
            r for g in self.graphs for n in g.lines for r in n.reasons
        ]
        return list(dict.fromkeys(reasons))

    def __str__(self) -> str:
        if not self.graphs:
            return f"{self.name}: nothing compiled yet; it compiles at its first call"
        text = [f"{self.name}: {len(self.graphs)} graph{'s' if len(self.graphs) > 1 else ''}"]
        for i, g in enumerate(self.graphs):
            text.append(f"graph {i + 1}: {g}")
        return "\n".join(text)

    __repr__ = __str__


def make(session: "Session") -> Report:
    """The report of a decorated function."""
    return Report(session.name, [g for f in session.frames if (g := _graph(f)) is not None])


def _graph(frame: "Frame") -> GraphReport | None:
    graph_break = None
    reason = frame.break_reason
    if reason is not None and getattr(reason, "graph_break", False):
        stack = getattr(reason, "user_stack", None) or []
        where = f"{stack[-1].filename}:{stack[-1].lineno}: " if stack else ""
        graph_break = where + _first_sentence(str(reason.reason))
    if frame.unit is None:
        return GraphReport([], [], 0, frame.reason or "", graph_break, 0, 0)
    unit = frame.unit()
    if unit is None:
        return None  # Dynamo has dropped it
    kernels = [label for v in unit.variants[:1] for m in v.models for label in m.steps]
    return GraphReport(
        _lines(unit), kernels, len(unit.partition.regions), None, graph_break, unit.repacks, unit.eager_calls
    )


def _first_sentence(reason: str) -> str:
    """Dynamo's explanation, or its first line if there is none."""
    lines = [line.strip() for line in reason.splitlines()]
    explained = [line.removeprefix("Explanation: ") for line in lines if line.startswith("Explanation: ")]
    return explained[0] if explained else lines[0]


def _lines(unit: "Unit") -> list[Line]:
    inside = {n for r in unit.partition.regions.values() for n in r.nodes}
    lines: dict[tuple[str, int, str], Line] = {}
    for n in unit.gm.graph.nodes:
        if n.op != "call_function" or is_size(n) or _is_item(n):
            continue
        place = unit.places[n]
        key = (place.file, place.line, "" if place.file else place.module_path)
        if key not in lines:
            source = linecache.getline(place.file, place.line).strip() if place.file else place.module_path
            lines[key] = Line(place.file, place.line, source)
        line = lines[key]
        (line.compiled if n in inside else line.eager).append(name_of(n))
        reason = unit.partition.reasons.get(n)
        if reason and reason not in line.reasons:
            line.reasons.append(reason)
    return list(lines.values())


def _is_item(n: Node) -> bool:
    return getattr(n.target, "__name__", "") == "getitem"


def _counted(names: list[Any]) -> str:
    counts: dict[str, int] = {}
    for n in names:
        counts[n] = counts.get(n, 0) + 1
    return ", ".join(n if k == 1 else f"{n} x{k}" for n, k in counts.items())
