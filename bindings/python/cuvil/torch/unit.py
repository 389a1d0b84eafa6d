"""One ATen graph, compiled: regions, the PyTorch code between them, and the packings of its weights."""

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from cuvil import _core
from cuvil.errors import CuvilError, UnsupportedError
from cuvil.torch import locations, weights
from cuvil.torch.convert import ConstantOutput, Converted, InputOutput, TensorOutput, convert, why_not
from cuvil.torch.options import Options
from cuvil.torch.partition import Partition, Region, extract, name_of, partition


@dataclass
class Variant:
    """Code for one set of weights."""

    statics: _core.StaticInputs
    packed: dict[int, tuple[torch.Tensor, int]]
    packed_at: float
    call: _core.TorchCall | None  # the whole unit
    function: Any  # or PyTorch code around the regions
    models: list[_core.Model]

    def install(self, dispatch: _core.Dispatch) -> None:
        if self.call is not None:
            dispatch.set_call(self.call)
        else:
            dispatch.set_function(self.function, self.statics)

    def __call__(self, args: Sequence[Any]) -> Any:
        return self.call(*args) if self.call is not None else self.function(*args)


class Unit:
    """A functional ATen graph, as AOTAutograd makes it, that runs as native code where it can.

    `static`: placeholders that are weights, by index. Raises UnsupportedError if options.fallback is False and
    something would stay eager. The function that `start` returns owns the unit: no cycle keeps either alive.
    """

    def __init__(self, gm: GraphModule, static: dict[int, torch.Tensor], options: Options, name: str) -> None:
        self.gm = gm
        self.options = options
        self.name = name
        self.candidates = {i: t for i, t in static.items() if weights.can_be_static(t)}
        self.changes = weights.Changes()
        self.variants: list[Variant] = []
        self.failure: str | None = None
        self.repacks = 0
        self.eager_calls = 0
        self._lock = threading.Lock()
        self._packing = False
        self.placeholders: list[Node] = gm.graph.find_nodes(op="placeholder")
        self.partition: Partition = partition(gm, why_not)
        self.places = locations.places(gm.graph)
        if not options.fallback:
            self._refuse_eager()
        if self.partition.regions:
            self.variants = [self._build(self.candidates)]
        self._dispatch: weakref.ref[_core.Dispatch] | None = None

    def start(self) -> Callable[..., Any]:
        """The function to call: all placeholders as positional arguments, returns the graph's outputs as a tuple."""
        dispatch = _core.Dispatch(self._slow)
        self._dispatch = weakref.ref(dispatch)
        if self.variants:
            self.variants[0].install(dispatch)
        return dispatch.function  # type: ignore[no-any-return, return-value]

    def eager(self, *args: Any) -> Any:
        """The whole graph in PyTorch."""
        with torch.no_grad(), torch._C._DisableAutocast():
            return self.gm.forward(*args)

    # ---- calls that the native path does not take ----

    def _slow(self, *args: Any) -> Any:
        if self.variants:
            with self._lock:
                for v in self.variants:
                    if v.statics.unchanged(args):
                        self._use(v)
                        break
                else:
                    v = None
                    self._repack(args)
            if v is not None and (result := v(args)) is not None:
                return result
        self.eager_calls += 1
        return self.eager(*args)

    def _use(self, v: Variant) -> None:
        self.variants.remove(v)
        self.variants.insert(0, v)
        dispatch = self._dispatch() if self._dispatch is not None else None
        if dispatch is not None:
            v.install(dispatch)

    def _repack(self, args: Sequence[Any]) -> None:
        if self._packing or self.failure:
            return
        self.changes.record(self.variants[0].packed, args, self.variants[0].packed_at)
        tensors = {i: args[i] for i in self.candidates if i not in self.changes.ordinary}
        if not all(weights.can_be_static(t) for t in tensors.values()):
            tensors = {i: t for i, t in tensors.items() if weights.can_be_static(t)}
        self._packing = True
        unit = weakref.ref(self)
        weights.in_background(lambda: _pack_again(unit, tensors))

    # ---- compiling ----

    def _build(self, tensors: dict[int, torch.Tensor]) -> Variant:
        packed = {i: (t, t._version) for i, t in tensors.items()}
        statics = _core.StaticInputs(list(tensors.items()))
        whole = self._whole_outputs()
        models: list[_core.Model] = []
        if whole is not None:
            (region,) = self.partition.regions.values()
            converted, model, inputs = self._compile_region(region, tensors, models)
            index = {n: i for i, n in enumerate(self.placeholders)}
            outputs = [
                _output(region, converted, n) if isinstance(n, Node) and n in region.outputs
                else ("argument", index[n]) if isinstance(n, Node)
                else ("value", n)
                for n in whole
            ]  # fmt: skip
            call = _core.TorchCall(model, [index[n] for n in inputs], outputs, statics, self.options.num_threads or 0)
            return Variant(statics, packed, time.monotonic(), call, None, models)
        function = self._host(tensors, models)
        return Variant(statics, packed, time.monotonic(), None, function, models)

    def _whole_outputs(self) -> list[Any] | None:
        """The graph's outputs if one region computes all of them, else None."""
        if not self.partition.is_whole():
            return None
        (region,) = self.partition.regions.values()
        (output,) = self.gm.graph.find_nodes(op="output")
        outputs = list(output.args[0])
        for n in outputs:
            if isinstance(n, Node):
                if n not in region.outputs and n.op != "placeholder":
                    return None
            elif n is not None and not isinstance(n, (int, float, bool)):
                return None
        return outputs

    def _compile_region(
        self, region: Region, tensors: dict[int, torch.Tensor], models: list[_core.Model]
    ) -> tuple[Converted, _core.Model, list[Node]]:
        """The converted region, its model, and the nodes that are the model's inputs."""
        sub = extract(self.gm, region)
        by_node = {self.placeholders[i]: t for i, t in tensors.items()}
        static = {i: by_node[n] for i, n in enumerate(region.inputs) if n in by_node}
        converted = convert(sub, static=static, name=self.name)
        built = _core.build(converted.graph, "cpu", self.options.precision, self.options.numerics, self.options.target)
        model = _core.Model(built, self.options.num_threads or 0)
        models.append(model)
        return converted, model, [region.inputs[i] for i in converted.inputs]

    def _host(self, tensors: dict[int, torch.Tensor], models: list[_core.Model]) -> Any:
        """PyTorch code that calls the regions and runs the rest."""
        graph = Graph()
        env: dict[Node, Node] = {}
        for n in self.gm.graph.nodes:
            if n.op in ("placeholder", "get_attr"):
                env[n] = graph.node_copy(n)
        levels = sorted(set(self.partition.regions) | {self.partition.levels[n] for n in self.partition.eager})
        for k in levels:
            if k in self.partition.regions:
                region = self.partition.regions[k]
                function = self._region_function(k, region, tensors, models)
                results = graph.call_function(function, tuple(env[n] for n in region.inputs))
                for i, n in enumerate(region.outputs):
                    env[n] = graph.call_function(_item, (results, i))
            for n in self.partition.eager:
                if self.partition.levels[n] == k:
                    env[n] = graph.node_copy(n, lambda x: env[x])
        (output,) = self.gm.graph.find_nodes(op="output")
        graph.output(torch.fx.node.map_arg(output.args[0], lambda n: env[n]))
        host = GraphModule(self.gm, graph)
        forward = host.forward

        def run(*args: Any) -> Any:
            with torch.no_grad(), torch._C._DisableAutocast():
                return forward(*args)

        return run

    def _region_function(
        self, k: int, region: Region, tensors: dict[int, torch.Tensor], models: list[_core.Model]
    ) -> Any:
        sub = extract(self.gm, region)
        dispatch = _core.Dispatch(sub.forward)
        converted, model, inputs = self._compile_region(region, tensors, models)
        index = {n: i for i, n in enumerate(region.inputs)}
        outputs = [_output(region, converted, n) for n in region.outputs]
        dispatch.set_call(
            _core.TorchCall(model, [index[n] for n in inputs], outputs, None, self.options.num_threads or 0)
        )
        return dispatch.function

    def _refuse_eager(self) -> None:
        reasons = self.partition.reasons
        if not reasons:
            return
        lines = []
        for n, reason in reasons.items():
            where = locations.text(self.places[n])
            lines.append(f"{name_of(n)}{' at ' + where if where else ''}: {reason}")
        unique = list(dict.fromkeys(lines))
        more = [f"and {len(unique) - 8} more"] if len(unique) > 8 else []
        raise UnsupportedError(
            "with fallback=False nothing may stay PyTorch's, but these would:\n  " + "\n  ".join(unique[:8] + more)
        )


def _item(results: Any, i: int) -> Any:
    return results[i]


def _output(region: Region, converted: Converted, n: Node) -> tuple[Any, ...]:
    """How TorchCall returns a region's output."""
    o = converted.outputs[region.outputs.index(n)]
    if isinstance(o, TensorOutput):
        return ("result", o.index, n.meta["val"].dtype, o.permute)
    if isinstance(o, InputOutput):
        return ("argument", o.index)
    if isinstance(o, ConstantOutput):
        return ("value", o.value)
    raise UnsupportedError("a region that returns a number")


def _pack_again(unit_ref: "weakref.ref[Unit]", tensors: dict[int, torch.Tensor]) -> None:
    unit = unit_ref()
    if unit is None:
        return
    try:
        v = unit._build(tensors)
        with unit._lock:
            unit.variants.insert(0, v)
            del unit.variants[weights.MAX_VARIANTS :]
            unit.repacks += 1
            unit._use(v)
    except CuvilError as e:
        unit.failure = str(e)
    finally:
        unit._packing = False
