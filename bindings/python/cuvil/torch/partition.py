"""Splits an ATen graph into regions that Cuvil compiles and operators that stay PyTorch's.

Every node gets a level: a region of level k needs only placeholders, regions below k and eager operators below k; an
eager operator of level k runs after region k. So all convertible nodes of one level are one region, however they lie,
and the order of levels has no cycle. Eager operators with side effects (random numbers) keep their order.

Some cheap nodes are wanted on both sides: sizes, and views that must stay views because they alias another output.
They run eagerly, and a region that needs them computes them again.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from cuvil.torch.convert import why_not as converter_refuses

_HEAVY = (
    "mm", "bmm", "addmm", "baddbmm", "linear", "matmul", "scaled_dot_product_attention", "lstm", "gru", "convolution", "_softmax", "_log_softmax", "native_layer_norm",
    "native_group_norm", "_native_batch_norm_legit_no_training", "einsum", "sum", "mean", "amax", "embedding",
)  # fmt: skip

WhyNot = Callable[[Node], "str | None"]


@dataclass
class Region:
    """Nodes that become one call; `nodes` are in the graph's order and include copies of nodes that also run eagerly."""

    nodes: list[Node]
    inputs: list[Node]
    outputs: list[Node]


@dataclass
class Partition:
    """What runs where. `reasons`: why a node stays eager although that is not what the user asked for."""

    regions: dict[int, Region] = field(default_factory=dict)  # by level
    reasons: dict[Node, str] = field(default_factory=dict)
    levels: dict[Node, int] = field(default_factory=dict)
    eager: list[Node] = field(default_factory=list)

    def is_whole(self) -> bool:
        """Whether one region is all there is."""
        return len(self.regions) == 1 and not self.eager


def partition(gm: GraphModule, why_not: WhyNot) -> Partition:
    """Decides for every node; `why_not` says why the converter refuses one."""
    graph = gm.graph
    nodes = [n for n in graph.nodes if n.op == "call_function"]
    reasons: dict[Node, str] = {}
    effects = set()
    for n in nodes:
        if _has_effect(n):
            effects.add(n)
            reasons[n] = _effect_reason(n)
        elif not is_size(n) and (reason := why_not(n)):
            reasons[n] = reason
    shared = _views_to_keep(graph, reasons) - set(reasons)
    eager = set(reasons)
    while True:
        p = _levels(graph, nodes, eager, shared, effects)
        small = [r for r in p.regions.values() if not _is_worth_a_call(r, alone=p.is_whole())]
        if not small:
            p.reasons = reasons
            return p
        for r in small:
            eager.update(n for n in r.nodes if not is_size(n) and n not in shared)


def is_size(n: Node) -> bool:
    """A number computed from sizes: cheap, and known to whoever knows the shapes."""
    return isinstance(n.meta.get("val"), (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool))


def extract(gm: GraphModule, region: Region) -> GraphModule:
    """The region as a graph of its own: placeholders are its inputs, it returns the tuple of its outputs."""
    graph = Graph()
    env: dict[Node, Node] = {}
    for n in region.inputs:
        env[n] = graph.placeholder(n.name)
        env[n].meta = dict(n.meta)
    attributes: dict[str, Any] = {}
    for n in region.nodes:
        env[n] = graph.node_copy(n, lambda x: env[x])
        if n.op == "get_attr":
            attributes[str(n.target)] = _attribute(gm, str(n.target))
    graph.output(tuple(env[n] for n in region.outputs))
    return GraphModule(attributes, graph)


def _levels(graph: Graph, nodes: list[Node], eager: set[Node], copied: set[Node], effects: set[Node]) -> Partition:
    # An element of a tuple is where the tuple is.
    eager = eager | {n for n in nodes if n.target is operator.getitem and n.args[0] in eager}
    ready: dict[Node, int] = {}  # the lowest region that may use the node
    level: dict[Node, int] = {}  # the phase in which it is computed
    last_effect = 0
    for n in graph.nodes:
        if n.op in ("placeholder", "get_attr"):
            ready[n] = level[n] = 0
        elif n.op == "call_function":
            inputs = n.all_input_nodes
            here = max((level[i] for i in inputs), default=0)
            wanted = max((ready[i] for i in inputs), default=0)
            if n in eager:
                if n in effects:
                    here = last_effect = max(here, last_effect)
                level[n], ready[n] = here, here + 1
            elif is_size(n) or n in copied:
                level[n], ready[n] = here, wanted
            else:
                level[n] = ready[n] = wanted
    p = Partition(levels=level)
    members: dict[int, list[Node]] = {}
    for n in nodes:
        if n not in eager and not is_size(n) and n not in copied:
            members.setdefault(level[n], []).append(n)
    position = {n: i for i, n in enumerate(graph.nodes)}
    of: dict[Node, int] = {n: k for k, ns in members.items() for n in ns}
    for k in sorted(members):
        p.regions[k] = _region(members[k], k, of, eager, copied, position)
    p.eager = _needed_eagerly(graph, nodes, p, of)
    _outputs(graph, p, of)
    return p


def _region(
    members: list[Node], k: int, of: dict[Node, int], eager: set[Node], copied: set[Node], position: dict[Node, int]
) -> Region:
    inside = set(members)
    inputs: set[Node] = set()
    todo = list(members)
    while todo:
        for i in todo.pop().all_input_nodes:
            if i in inside or i in inputs:
                continue
            copy = i.op == "get_attr" or (i.op == "call_function" and i not in of and i not in eager)
            if copy and (i.op == "get_attr" or is_size(i) or i in copied):
                inside.add(i)
                todo.append(i)
            else:
                inputs.add(i)
    ordered = sorted(inside, key=position.__getitem__)
    return Region(ordered, sorted(inputs, key=position.__getitem__), [])


def _needed_eagerly(graph: Graph, nodes: list[Node], p: Partition, of: dict[Node, int]) -> list[Node]:
    """Nodes that run eagerly: outside all regions, and used by another such node, by a region or by the caller."""
    (output,) = graph.find_nodes(op="output")
    needed = set(output.all_input_nodes)
    for r in p.regions.values():
        needed.update(r.inputs)
    for n in reversed(nodes):
        if n not in of and (n in needed or _has_effect(n)):
            needed.update(n.all_input_nodes)
    return [n for n in nodes if n not in of and (n in needed or _has_effect(n))]


def _outputs(graph: Graph, p: Partition, of: dict[Node, int]) -> None:
    (output,) = graph.find_nodes(op="output")
    outside = set(p.eager) | {output}
    for k, r in p.regions.items():
        inside = set(r.nodes)
        for n in r.nodes:
            if of.get(n) == k and any(
                u in outside or (u not in inside and _used_by_region(u, p, k, n)) for u in n.users
            ):
                r.outputs.append(n)
        # Regions that take a node as an input need it too, even if only a copied node uses it.
        for other, s in p.regions.items():
            if other != k:
                r.outputs.extend(n for n in s.inputs if of.get(n) == k and n not in r.outputs)


def _used_by_region(user: Node, p: Partition, own: int, n: Node) -> bool:
    return any(k != own and n in r.inputs and user in r.nodes for k, r in p.regions.items())


def _is_worth_a_call(region: Region, *, alone: bool) -> bool:
    """A call costs as much as a small operator: views alone, or one cheap operator among eager ones, are not worth it."""
    work = [n for n in region.nodes if not is_size(n) and n.op == "call_function" and not is_view(n)]
    if any(name_of(n) in _HEAVY for n in work):
        return True
    return len(work) >= (1 if alone else 2)


def name_of(n: Node) -> str:
    """'addmm' of aten.addmm.default."""
    target = n.target
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.name.split("::")[-1]
    return getattr(target, "__name__", str(target))


def is_view(n: Node) -> bool:
    """Whether the node's result lies in the memory of one of its inputs; for a tuple: all of its elements do."""
    return base_of(n) is not None


def base_of(n: Node) -> Node | None:
    """The input whose memory a view lies in. Of an element of a tuple (split) it is the input of the tuple's operator."""
    source = n.args[0] if n.target is operator.getitem and isinstance(n.args[0], Node) else n
    val = n.meta.get("val")
    keys = {_storage_of(v) for v in (val if isinstance(val, (tuple, list)) else (val,))}
    if len(keys) != 1 or None in keys:
        return None
    return next((i for i in source.all_input_nodes if _storage(i) in keys), None)


def _storage(n: Node) -> int | None:
    """Which memory the node's result lies in; None if it is no plain tensor."""
    return _storage_of(n.meta.get("val"))


def _storage_of(val: Any) -> int | None:
    if not isinstance(val, torch.Tensor) or val.layout != torch.strided:
        return None
    return int(val.untyped_storage()._cdata)


def _views_to_keep(graph: Graph, refused: dict[Node, str]) -> set[Node]:
    """Views that must be real views: of outputs that alias each other or a placeholder, that have gaps or overlap, or
    under an eager as_strided, which reads the memory as it lies."""
    (output,) = graph.find_nodes(op="output")
    results = [n for n in output.all_input_nodes if _storage(n) is not None]
    by_storage: dict[int, set[Node]] = {}
    for n in results:
        key = _storage(n)
        assert key is not None
        by_storage.setdefault(key, set()).add(n)
    owned = {_storage(n) for n in graph.find_nodes(op="placeholder")}
    kept: set[Node] = set()

    def keep(n: Node) -> None:
        while n.op == "call_function" and n not in kept and (base := base_of(n)) is not None:
            kept.update(m for m in (n, n.args[0]) if m is n or (n.target is operator.getitem and isinstance(m, Node)))
            n = base

    for n in results:
        key = _storage(n)
        if key in owned or (key is not None and len(by_storage[key]) > 1) or not _is_dense(n):
            keep(n)
    for n in refused:
        if "as_strided" in name_of(n):
            for i in n.all_input_nodes:
                keep(i)
    return kept


def _is_dense(n: Node) -> bool:
    """Without gaps and overlaps, axes in any order: what a region's result looks like."""
    val = n.meta["val"]
    sizes = [_hint(s) for s in val.shape]
    strides = [_hint(s) for s in val.stride()]
    if None in sizes or None in strides:
        return True
    if 0 in sizes:
        return True
    expected = 1
    for size, stride in sorted(((n, s) for n, s in zip(sizes, strides, strict=True) if n != 1), key=lambda p: p[1]):
        if stride != expected:
            return False
        expected *= size
    return True


def _hint(size: Any) -> Any:
    return size if isinstance(size, int) else size.node.hint


def _has_effect(n: Node) -> bool:
    target = n.target
    if not isinstance(target, torch._ops.OpOverload):
        return isinstance(target, torch._ops.HigherOrderOperator)
    # Attention and recurrent layers are random only with dropout, which the converter refuses.
    random = torch.Tag.nondeterministic_seeded in target.tags and converter_refuses(n) is not None
    return target._schema.is_mutable or random


def _effect_reason(n: Node) -> str:
    target = n.target
    if isinstance(target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in target.tags:
        return "draws random numbers from PyTorch's generator"
    if isinstance(target, torch._ops.OpOverload):
        return "writes to its inputs"
    return "an operator over functions"


def _attribute(gm: GraphModule, target: str) -> Any:
    value: Any = gm
    for part in target.split("."):
        value = getattr(value, part)
    return value
