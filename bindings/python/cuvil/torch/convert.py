"""ATen-level FX graphs to CIR. Dynamo and torch.export share it; the operators stand in the aten_*.py tables."""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from cuvil import _core
from cuvil.errors import CuvilError, ModelError, ShapeError, UnsupportedError
from cuvil.torch import (  # noqa: F401  the tables register themselves
    aten_elementwise,
    aten_index,
    aten_more,
    aten_neural,
    aten_pool,
    aten_recurrent,
    aten_reduce,
    aten_shape,
    aten_transformer,
    locations,
    sizes,
)
from cuvil.torch.table import Context, Tensor, dtype_name, find

_ASSERTS = {
    "aten::_assert_scalar",
    "aten::_assert_tensor_metadata",
    "aten::sym_constrain_range",
    "aten::sym_constrain_range_for_size",
}


@dataclass(frozen=True)
class TensorOutput:
    """Result `index` of the CIR graph; `permute`: its axes as PyTorch has them, None if they agree."""

    index: int
    permute: tuple[int, ...] | None = None


@dataclass(frozen=True)
class InputOutput:
    """Placeholder `index`, as it is."""

    index: int


@dataclass(frozen=True)
class SizeOutput:
    """A number that is computed from the inputs' sizes."""

    size: _core.Dim


@dataclass(frozen=True)
class ConstantOutput:
    """Anything else: None, a number, a tensor of the module."""

    value: Any


Output = TensorOutput | InputOutput | SizeOutput | ConstantOutput


@dataclass
class Converted:
    """A CIR graph, and how it stands for the FX graph.

    `inputs`: indices of the placeholders that are run-time inputs of the CIR graph, in its order. A SymInt placeholder
    is among them (as an i64 scalar) only if no tensor input's shape tells its value and the graph needs it.
    `outputs`: what the FX graph returns, flat; `rebuild` makes it from results.
    """

    graph: _core.Graph
    inputs: list[int]
    outputs: list[Output]
    spec: Any = None
    symbols: dict[str, tuple[int, int | None]] = field(default_factory=dict)  # name -> placeholder, axis

    def rebuild(self, results: Sequence[torch.Tensor], placeholders: Sequence[Any]) -> Any:
        """What the FX graph returns, from the CIR graph's results and all of the FX graph's arguments. Views of arguments
        or of other results come as tensors of their own; who needs them to alias keeps them out of the graph."""
        values: dict[str, int] | None = None
        flat: list[Any] = []
        for o in self.outputs:
            if isinstance(o, TensorOutput):
                t = results[o.index]
                flat.append(t if o.permute is None else t.permute(o.permute))
            elif isinstance(o, InputOutput):
                flat.append(placeholders[o.index])
            elif isinstance(o, SizeOutput):
                if values is None:
                    values = {
                        name: int(placeholders[i] if axis is None else placeholders[i].shape[axis])
                        for name, (i, axis) in self.symbols.items()
                    }
                flat.append(o.size.evaluate(values))
            else:
                flat.append(o.value)
        return pytree.tree_unflatten(flat, self.spec)


def why_not(node: torch.fx.Node) -> str | None:
    """None if the converter can take this call_function node, else the reason in the user's terms."""
    with _disable_current_modes(), torch.no_grad():  # a compiler's callback runs under fake tensors
        return _why_not(node)


def _why_not(node: torch.fx.Node) -> str | None:
    if node.op != "call_function":
        return f"{node.op} is no operator"
    name = _name(node.target)
    if name in _ASSERTS or node.target is operator.getitem or _is_size(node.meta.get("val")):
        return None
    handler = find(node.target)
    if handler is None:
        return f"{name} has no counterpart in Cuvil"
    c = Context(_core.GraphBuilder("probe"))

    def stand_in(x: Any) -> Any:
        if not isinstance(x, torch.fx.Node):
            return x
        val = x.meta.get("val")
        if isinstance(val, torch.Tensor):
            owner = x.graph.owning_module
            if x.op == "get_attr" and owner is not None:
                t = _attribute(owner, x.target)
                if isinstance(t, torch.Tensor):
                    return c.constant(t)
            return _input(c, x.name, val)
        if isinstance(val, (tuple, list)):
            return tuple(_input(c, x.name, v) if isinstance(v, torch.Tensor) else v for v in val)
        return val

    try:
        args = torch.fx.node.map_aggregate(node.args, stand_in)
        kwargs = torch.fx.node.map_aggregate(node.kwargs, stand_in)
        _run(c, handler, node, args, kwargs)
    except CuvilError as e:
        return _first_line(e)
    return None


def convert(
    gm: torch.fx.GraphModule,
    *,
    static: Mapping[int, torch.Tensor] | None = None,
    name: str = "main",
    whole: bool = False,
) -> Converted:
    """An ATen-level FX graph (functional: no in-place operators) as CIR.

    Placeholders' meta["val"] tells dtypes and (symbolic) shapes. `static`: placeholders, by index, that are weights:
    they become constants that share the tensors' memory. `whole`: inputs and sizes that are returned become results of
    the CIR graph, too. Raises UnsupportedError, which lists every node that CIR
    cannot say, with its line.
    """
    with _disable_current_modes(), torch.no_grad():
        return _Converter(gm, dict(static or {}), name, whole).run()


class _Converter:
    def __init__(self, gm: torch.fx.GraphModule, static: dict[int, torch.Tensor], name: str, whole: bool) -> None:
        self.gm = gm
        self.whole = whole
        self.static = static
        self.c = Context(_core.GraphBuilder(name))
        self.env: dict[torch.fx.Node, Any] = {}
        self.converted = Converted(None, [], [])  # type: ignore[arg-type]
        self.placeholder_index: dict[torch.fx.Node, int] = {}
        self.missing: list[str] = []
        self.failed: set[torch.fx.Node] = set()

    def run(self) -> Converted:
        self._placeholders()
        places = locations.places(self.gm.graph)
        for node in self.gm.graph.nodes:
            if node.op == "get_attr":
                value = _attribute(self.gm, node.target)
                if not isinstance(value, torch.Tensor):
                    self.missing.append(f"{node.target}: a submodule as a value")
                    self.failed.add(node)
                    continue
                self.env[node] = self.c.constant(value)
            elif node.op == "call_function":
                self._call(node, places[node])
            elif node.op in ("call_module", "call_method"):
                raise ModelError(f"convert takes ATen-level graphs; {node.op} {node.target} is none")
        if self.missing:
            shown = self.missing[:8]
            more = [f"and {len(self.missing) - 8} more"] if len(self.missing) > 8 else []
            raise UnsupportedError("not supported:\n  " + "\n  ".join(shown + more))
        self._outputs()
        self.converted.graph = self.c.builder.finish()
        return self.converted

    def _placeholders(self) -> None:
        nodes = [n for n in self.gm.graph.nodes if n.op == "placeholder"]
        symbols = self.converted.symbols
        self._symbols([n.meta.get("val") for i, n in enumerate(nodes) if i not in self.static])
        for i, node in enumerate(nodes):
            self.placeholder_index[node] = i
            val = node.meta.get("val")
            if i in self.static:
                self.env[node] = self.c.constant(self.static[i])
            elif isinstance(val, torch.Tensor):
                if not node.users and all(isinstance(n, int) for n in val.shape) and not self.whole:
                    continue  # nobody reads it, and no size
                self.env[node] = _input(self.c, node.name, val)
                self.converted.inputs.append(i)
                for axis, s in enumerate(self.env[node].shape):
                    if isinstance(s, _core.Dim) and [str(s)] == s.symbols:
                        symbols.setdefault(str(s), (i, axis))
            else:
                self.env[node] = val
        self.c.bound = {name for name, (_, axis) in symbols.items() if axis is not None}
        for i, node in enumerate(nodes):
            val = node.meta.get("val")
            if isinstance(val, (torch.SymInt, torch.SymFloat)) and i not in self.static:
                self._loose(i, node, val)

    def _symbols(self, values: list[Any]) -> None:
        """CIR reads symbols off whole axes: where PyTorch has only 4*s + b there, a symbol stands for that."""
        dims = [s for v in values if isinstance(v, torch.Tensor) for s in sizes.shape_of(v) if isinstance(s, _core.Dim)]
        bare = {str(d) for d in dims if d.symbols == [str(d)]}
        for d in dims:
            if len(d.symbols) != 1 or d.symbols[0] in bare or d.symbols[0] in self.c.replaced:
                continue
            s = d.symbols[0]
            b, step = d.evaluate({s: 0}), d.evaluate({s: 1})
            if b is None or step is None or step <= b or d != _core.Dim.symbol(s) * (step - b) + b:
                continue
            whole = _core.Dim.symbol(f"{s}_{step - b}" + (f"_{b}" if b > 0 else ""))
            self.c.wholes[d] = whole
            self.c.replaced[s] = (whole - b) // (step - b)

    def _loose(self, i: int, node: torch.fx.Node, val: torch.SymInt | torch.SymFloat) -> None:
        """A number that no shape may tell becomes an input of its own when an operator asks for it."""
        symbol = str(val.node.expr)
        if symbol in self.converted.symbols:
            return
        if isinstance(val, torch.SymInt):
            self.converted.symbols[symbol] = (i, None)

        def make() -> Tensor:
            self.converted.inputs.append(i)
            kind = "i64" if isinstance(val, torch.SymInt) else "f64"
            return self.c.wrap(self.c.builder.add_input(_friendly(node.name), kind, []))

        self.c.loose[symbol] = make

    def _call(self, node: torch.fx.Node, place: locations.Place) -> None:
        val = node.meta.get("val")
        if _name(node.target) in _ASSERTS:
            return
        if _is_size(val):
            self.env[node] = val
            return
        if any(n in self.failed for n in node.all_input_nodes):
            self.failed.add(node)
            return
        args = torch.fx.node.map_aggregate(node.args, self._argument)
        if node.target is operator.getitem:
            self.env[node] = args[0][args[1]]  # type: ignore[index]
            if self.env[node] is None and node.users:
                self.failed.add(node)
                self.missing.append(f"result {args[1]} of {_name(node.args[0].target)}")  # type: ignore[union-attr]
            if isinstance(self.env[node], Tensor) and place.variable:
                self._give_name(self.env[node], place.variable)
            return
        self.c.builder.at(
            place.file, place.line, place.function, place.module_path, place.variable or _friendly(node.name)
        )
        handler = find(node.target)
        try:
            if handler is None:
                raise UnsupportedError(f"{_name(node.target)} has no counterpart in Cuvil")
            kwargs = torch.fx.node.map_aggregate(node.kwargs, self._argument)
            result = _run(self.c, handler, node, args, kwargs)
        except UnsupportedError as e:
            where = locations.text(place)
            self.missing.append(f"{_name(node.target)}{' at ' + where if where else ''}: {_first_line(e)}")
            self.failed.add(node)
            return
        except CuvilError as e:
            raise type(e)(f"{e}\n  in {_name(node.target)} at {locations.text(place)}") from None
        self.env[node] = result
        if isinstance(result, Tensor) and not any(result is a for a in self._tensors(args)):
            self._give_name(result, place.variable or node.name)

    def _give_name(self, t: Tensor, name: str) -> None:
        if t.core.producer not in ("", "Constant"):
            self.c.builder.rename(t.core, name)

    def _tensors(self, args: Any) -> list[Tensor]:
        found: list[Tensor] = []
        torch.fx.node.map_aggregate(args, lambda a: found.append(a) if isinstance(a, Tensor) else None)
        return found

    def _argument(self, x: Any) -> Any:
        return self.env[x] if isinstance(x, torch.fx.Node) else x

    def _outputs(self) -> None:
        (output,) = [n for n in self.gm.graph.nodes if n.op == "output"]
        flat, self.converted.spec = pytree.tree_flatten(output.args[0])
        index: dict[torch.fx.Node, TensorOutput] = {}
        for x in flat:
            if not isinstance(x, torch.fx.Node):
                self.converted.outputs.append(ConstantOutput(x))
            elif x in self.placeholder_index and not self.whole:
                self.converted.outputs.append(InputOutput(self.placeholder_index[x]))
            elif isinstance(self.env[x], Tensor):
                if x not in index:
                    index[x] = self._tensor_output(x, len(index))
                self.converted.outputs.append(index[x])
            else:
                value = self.env[x]
                if self.whole and isinstance(value, (int, torch.SymInt)):
                    index[x] = TensorOutput(len(index))
                    self.c.builder.add_output(x.name, self.c.size_tensor(value).core)
                    self.converted.outputs.append(index[x])
                    continue
                known = self.c.in_symbols(value) if isinstance(value, (int, torch.SymInt)) else value
                if not isinstance(known, _core.Dim):
                    self.converted.outputs.append(ConstantOutput(known))
                    continue
                if not set(known.symbols) <= set(self.converted.symbols):
                    raise UnsupportedError(f"the graph returns a number {known} that no input's shape tells")
                self.converted.outputs.append(SizeOutput(known))

    def _tensor_output(self, node: torch.fx.Node, index: int) -> TensorOutput:
        """A result lies in memory as PyTorch would lay it, up to gaps: views that others made of it stay right."""
        t: Tensor = self.env[node]
        order = None if self.whole else _memory_order(node.meta.get("val"))
        permute = None
        if order is not None and len(order) == t.rank:
            self.c.builder.at()
            t = self.c.transpose(t, order)
            permute = tuple(order.index(i) for i in range(len(order)))
        self.c.builder.add_output(_friendly(node.name), t.core)
        return TensorOutput(index, permute)


def _memory_order(val: Any) -> list[int] | None:
    """Axes from the outermost in memory to the innermost if they are not in order; None if they are, or overlap."""
    if not isinstance(val, torch.Tensor) or val.layout != torch.strided:
        return None
    strides = []
    for n, s in zip(val.shape, val.stride(), strict=True):
        known = s if isinstance(s, int) else s.node.hint
        size = n if isinstance(n, int) else n.node.hint
        if known is None or size is None or size == 0:
            return None
        strides.append((int(known), int(size)))
    if any(s == 0 and n > 1 for s, n in strides):
        return None
    # Axes of extent 1 have any stride: they stay where they are.
    real = [a for a, (_, n) in enumerate(strides) if n != 1]
    ordered = sorted(real, key=lambda a: -strides[a][0])
    if ordered == real:
        return None
    slots = iter(ordered)
    return [next(slots) if n != 1 else a for a, (_, n) in enumerate(strides)]


def _run(c: Context, handler: Any, node: torch.fx.Node, args: Any, kwargs: Any) -> Any:
    """Calls a handler and holds its results against what PyTorch says of them."""
    c.node, c.name = node, _name(node.target)
    try:
        result = handler(c, *args, **kwargs)
    except TypeError as e:
        raise UnsupportedError(f"arguments of {_name(node.target)} that are not known here ({e})") from e
    wanted: Any = node.meta.get("val")
    pairs = zip(result, wanted, strict=False) if isinstance(result, (tuple, list)) else [(result, wanted)]
    for got, want in pairs:
        if isinstance(got, Tensor) and isinstance(want, torch.Tensor):
            _agree(got, want)
    return tuple(result) if isinstance(result, list) else result


def _agree(got: Tensor, want: torch.Tensor) -> None:
    if got.dtype != want.dtype:
        raise UnsupportedError(f"a result of {want.dtype} (it would be {got.dtype})")
    shape = sizes.shape_of(want)
    fits = len(shape) == got.rank and all(
        a == b for a, b in zip(got.shape, shape, strict=True) if isinstance(a, int) and isinstance(b, int)
    )
    if not fits:
        raise ShapeError(f"a result of shape {list(shape)} (it would be {list(got.shape)})")


def _input(c: Context, name: str, val: torch.Tensor) -> Tensor:
    if val.layout != torch.strided:
        raise UnsupportedError(f"a tensor of layout {val.layout}")
    if val.device.type not in ("cpu", "meta"):
        raise UnsupportedError(f"a tensor on {val.device}")
    if val.is_quantized:
        raise UnsupportedError("a quantized tensor")
    shape = [c.in_symbols(s) for s in val.shape]
    return c.wrap(c.builder.add_input(_friendly(name), dtype_name(val.dtype), shape), val.dtype)


def _is_size(val: Any) -> bool:
    return isinstance(val, (int, float, torch.SymInt, torch.SymFloat, torch.SymBool))


def _friendly(name: str) -> str:
    return name


def _attribute(gm: torch.fx.GraphModule, target: Any) -> Any:
    value: Any = gm
    for part in str(target).split("."):
        value = getattr(value, part)
    return value


def _name(target: Any) -> str:
    if isinstance(target, torch._ops.OpOverload):
        return str(target._schema.name)
    return getattr(target, "__name__", str(target))


def _first_line(e: Exception) -> str:
    return str(e).splitlines()[0] if str(e) else type(e).__name__
