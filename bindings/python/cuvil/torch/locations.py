"""Where the user wrote what became a node: file, line, function, module path, variable."""

import ast
import linecache
import os
import re
from dataclasses import dataclass, replace
from functools import lru_cache

import torch

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_TORCH = os.path.dirname(torch.__file__) + os.sep
_HERE = os.path.dirname(__file__) + os.sep
_ROOT = re.compile(r"^(L__self__|L\['[^']*'\]|\(L\['[^']*'\]\)|self)\.?")
_INDEX = re.compile(r"\._modules\['([^']*)'\]|\['([^']*)'\]|\[(\d+)\]")


@dataclass(frozen=True)
class Place:
    """One node's location; `variable` is the target of the assignment that the node belongs to, "" if there is none."""

    file: str = ""
    line: int = 0
    function: str = ""
    module_path: str = ""
    variable: str = ""
    statement: tuple[object, ...] = ()  # equal for nodes of one statement


def _target(t: ast.expr) -> tuple[str, ...]:
    if isinstance(t, ast.Name):
        return (t.id,)
    if isinstance(t, ast.Attribute):
        return (t.attr,)
    if isinstance(t, (ast.Tuple, ast.List)):
        names = tuple(_target(e) for e in t.elts)
        return tuple(n[0] for n in names) if all(len(n) == 1 for n in names) else ()
    return ()


@lru_cache(maxsize=256)
def _assignments(file: str) -> dict[int, tuple[str, ...]]:
    """Line -> targets of the innermost statement there; () for statements that assign nothing."""
    source = "".join(linecache.getlines(file))
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return {}
    lines: dict[int, tuple[str, ...]] = {}
    stack: list[ast.AST] = [tree]
    while stack:  # outer statements first, so that inner ones overwrite them
        node = stack.pop()
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)):
            names: tuple[str, ...] = ()
            if isinstance(node, ast.Assign):
                names = _target(node.targets[0])
            elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
                names = _target(node.target)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                lines[line] = names
        stack.extend(ast.iter_child_nodes(node))
    return lines


def _module_path(node: torch.fx.Node) -> str:
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return ""
    last = list(stack.values())[-1]
    path = last[0] if isinstance(last, tuple) else str(last)
    if path.startswith("_empty_nn_module_stack"):
        return ""
    return _INDEX.sub(lambda m: "." + (m[1] or m[2] or m[3]), _ROOT.sub("", path)).lstrip(".")


def _place(node: torch.fx.Node) -> tuple[Place, tuple[str, ...]]:
    path = _module_path(node)
    frames = [(f, int(n), fn) for f, n, fn in _FRAME.findall(node.meta.get("stack_trace") or "")]
    own = [f for f in frames if not f[0].startswith((_TORCH, _HERE, "torch/"))]
    if not own:
        return Place(module_path=path), ()
    file, line, function = own[-1]
    for depth in range(len(own), 0, -1):  # the innermost frame that assigns; a `return` passes on to its caller
        f, n, _ = own[depth - 1]
        names = _assignments(f).get(n, ())
        if names:
            return Place(file, line, function, path, names[0], tuple(own[:depth])), names
    return Place(file, line, function, path, "", tuple(own)), ()


def places(graph: torch.fx.Graph) -> dict[torch.fx.Node, Place]:
    """Places of all call_function nodes. Of the nodes of one statement the last bears the variable."""
    found: dict[torch.fx.Node, Place] = {}
    last: tuple[torch.fx.Node, Place, tuple[str, ...]] | None = None

    def close() -> None:
        if last is None:
            return
        node, place, names = last
        if len(names) > 1:  # `a, b = ...`: elements of one tuple, in order
            parts = [n for n in found if n.args[:1] == node.args[:1] and found[n].statement == place.statement]
            for n in parts:
                k = n.args[1] if len(n.args) == 2 else None
                if isinstance(k, int) and k < len(names):
                    found[n] = replace(found[n], variable=names[k])
            return
        found[node] = place

    for node in graph.nodes:
        if node.op != "call_function":
            continue
        place, names = _place(node)
        if last is not None and last[1].statement != place.statement:
            close()
            last = None
        found[node] = replace(place, variable="")
        if names:
            last = (node, place, names)
    close()
    return found


def place_of(node: torch.fx.Node) -> Place:
    """The place of one node, for messages."""
    return _place(node)[0]


def text(place: Place) -> str:
    """'net.py:12 in forward (layer1.conv2)', or what is known of it."""
    where = f"{place.file}:{place.line} in {place.function}" if place.file else ""
    if place.module_path:
        where += f" ({place.module_path})" if where else place.module_path
    return where
