"""The table ATen -> CIR: how an operator's handler is registered, and what it builds with."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, TypeVar

import sympy
import torch

from cuvil import _core
from cuvil.errors import UnsupportedError
from cuvil.torch.sizes import Size, from_sympy, simple, size_of

DTYPES: dict[torch.dtype, str] = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint64: "u64",
    torch.uint32: "u32",
    torch.uint16: "u16",
    torch.uint8: "u8",
    torch.bool: "bool",
}
_HALVES = (torch.float16, torch.bfloat16)

Number: TypeAlias = bool | int | float | torch.SymInt | torch.SymFloat


def refuse(what: str) -> NoReturn:
    """Raises UnsupportedError."""
    raise UnsupportedError(what)


def dtype_name(dtype: torch.dtype) -> str:
    """CIR's name of an element type; UnsupportedError if it has none."""
    return DTYPES.get(dtype) or refuse(f"element type {str(dtype).removeprefix('torch.')}")


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value of the CIR graph, with PyTorch's view of its type."""

    core: _core.Value
    dtype: torch.dtype
    shape: tuple[Size, ...]
    transposed: "Tensor | None" = None  # this is that one with its last two axes exchanged
    constant: torch.Tensor | None = None  # the numbers, if they are known and few

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether the element type is a float."""
        return self.dtype.is_floating_point

    def axis(self, dim: Any) -> int:
        """A dim as an index from the front; of a 0-d tensor 0."""
        n = max(self.rank, 1)
        d = int(dim)
        if not -n <= d < n:
            refuse(f"axis {d} of a tensor with {self.rank} axes")
        return d % n

    def axes(self, dims: Any) -> list[int]:
        """A dim or several, sorted; None and [] mean all."""
        if dims is None:
            return list(range(self.rank))
        if isinstance(dims, int):
            dims = [dims]
        if len(dims) == 0:
            return list(range(self.rank))
        return sorted({self.axis(d) for d in dims}) if self.rank else []

    def known(self, axis: int, what: str = "this operator") -> int:
        """The size of an axis, which must be a number."""
        n = self.shape[axis]
        return n if isinstance(n, int) else refuse(f"{what} along an axis of symbolic size {n}")


Handler = Callable[..., Any]
F = TypeVar("F", bound=Handler)
TABLE: dict[str, Handler] = {}


def aten(*names: str) -> Callable[[F], F]:
    """Registers a handler for overload packets ("aten::add") or overloads ("aten::add.Tensor"). It is called with the
    context and the node's arguments, tensors as Tensor, and returns a Tensor or a tuple of such."""

    def register(handler: F) -> F:
        for name in names:
            full = name if "::" in name else "aten::" + name
            if full in TABLE:
                raise AssertionError(f"{full} is registered twice")
            TABLE[full] = handler
        return handler

    return register


def find(target: Any) -> Handler | None:
    """The handler of an operator, by overload and then by packet; None for what changes its arguments."""
    if not isinstance(target, torch._ops.OpOverload):
        return None
    schema = target._schema
    if schema.is_mutable:
        return None
    name = schema.name
    overload = schema.overload_name
    return TABLE.get(f"{name}.{overload or 'default'}") or TABLE.get(name)


class Context:
    """Builds the CIR of one graph."""

    def __init__(self, builder: _core.GraphBuilder) -> None:
        self.builder = builder
        self.bound: set[str] | None = None  # symbols that sizes of inputs give; None: all
        self.replaced: dict[str, _core.Dim] = {}  # symbols that stand for no whole axis, by symbols that do
        self.wholes: dict[_core.Dim, _core.Dim] = {}  # sizes of inputs' axes, by the symbols that stand for them
        self.loose: dict[str, Callable[[], Tensor]] = {}  # makes an input of a symbol that no shape tells
        self.scalars: dict[str, Tensor] = {}  # those made
        self.name = ""  # of the operator being converted, e.g. "aten::add"
        self.node: torch.fx.Node | None = None
        self._constants: dict[tuple[Any, ...], Tensor] = {}
        self._sizes: dict[Any, Tensor] = {}

    # ---- nodes
    def wrap(self, value: _core.Value, dtype: torch.dtype | None = None) -> Tensor:
        """A CIR value as a Tensor."""
        return Tensor(value, dtype or _FROM_NAME[value.dtype], tuple(value.shape))

    def emit(self, op: str, *inputs: Tensor | None, **attributes: Any) -> Tensor:
        """Adds a node; its first result."""
        return self.wrap(self.builder.emit(op, [x.core if x is not None else None for x in inputs], attributes)[0])

    def emit_all(self, op: str, *inputs: Tensor | None, **attributes: Any) -> list[Tensor]:
        """Adds a node; all of its results."""
        values = self.builder.emit(op, [x.core if x is not None else None for x in inputs], attributes)
        return [self.wrap(v) for v in values]

    # ---- constants and scalars
    def constant(self, t: torch.Tensor) -> Tensor:
        """A constant that shares the tensor's memory (contiguous ones)."""
        dtype_name(t.dtype)
        t = t.detach()
        if t.device.type != "cpu":
            refuse(f"a constant on {t.device}")
        if t.is_sparse or t.is_quantized:
            refuse("a constant that is sparse or quantized")
        if t.is_conj() or t.is_neg():
            t = t.resolve_conj().resolve_neg()
        core = self.builder.constant(t.contiguous())  # type: ignore[arg-type]  # by DLPack
        return Tensor(core, t.dtype, tuple(t.shape), constant=t if t.numel() <= 4096 else None)

    def scalar(self, value: Number, dtype: torch.dtype) -> Tensor:
        """A number as a 0-d tensor."""
        if isinstance(value, torch.SymInt):
            return self.cast(self.size_tensor(value), dtype)
        if isinstance(value, torch.SymFloat):
            known = value.node.maybe_as_float()
            if known is None:
                return self.cast(self._real(value.node.expr), dtype)
            value = known
        assert isinstance(value, (int, float))
        key = (type(value), repr(value), dtype)
        if key not in self._constants:
            dtype_name(dtype)
            self._constants[key] = self.constant(_number_as(value, dtype))
        return self._constants[key]

    def in_symbols(self, x: Any) -> Size:
        """A number, SymInt or Dim over the graph's own symbols."""
        d = size_of(x)
        if isinstance(d, _core.Dim) and self.replaced:
            d = simple(self.wholes.get(d) or d.substitute(self.replaced))
        return d

    def _real(self, e: Any) -> Tensor:
        """An expression of sizes that is no integer, as an f64 scalar of the graph."""
        name = type(e).__name__
        if isinstance(e, sympy.Symbol) and e.name in self.loose:
            return self.cast(self._loose(e.name), torch.float64)
        if e.is_number:
            return self.scalar(float(e), torch.float64)
        if name in ("IntTrueDiv", "FloatTrueDiv"):
            return self.emit("Div", *[self._real(a) for a in e.args])
        if name == "ToFloat":
            return self._real(e.args[0])
        if name in ("Add", "Mul") and not e.is_integer:
            total = self._real(e.args[0])
            for a in e.args[1:]:
                total = self.emit(name, total, self._real(a))
            return total
        try:
            return self.cast(self.size_tensor(from_sympy(e)), torch.float64)
        except UnsupportedError:
            return refuse(f"a number of the form {e}")

    def size(self, x: Any) -> Size:
        """A number or SymInt as a size."""
        d = self.in_symbols(x)
        if isinstance(d, _core.Dim):
            for s in d.symbols:
                if self.bound is not None and s not in self.bound:
                    refuse(f"a size {d} that no input's shape tells")
        return d

    def sizes(self, xs: Any) -> list[Size]:
        """Several sizes."""
        return [self.size(x) for x in xs]

    def size_tensor(self, x: Any) -> Tensor:
        """A size as an i64 scalar of the graph."""
        d = self.in_symbols(x)
        if isinstance(d, int):
            return self.scalar(d, torch.int64)
        loose = [s for s in d.symbols if self.bound is not None and s not in self.bound]
        if not loose:
            return self.emit("Sizes", values=[d], shape=[])
        if len(d.symbols) == 1 and loose[0] in self.loose:
            x = self._loose(loose[0])
            offset = simple(d - _core.Dim.symbol(loose[0]))
            if isinstance(offset, int):
                return x if offset == 0 else self.emit("Add", x, self.scalar(offset, torch.int64))
        return refuse(f"a number {d} that no input's shape tells")

    def _loose(self, symbol: str) -> Tensor:
        if symbol not in self.scalars:
            self.scalars[symbol] = self.loose[symbol]()
        return self.scalars[symbol]

    def wants(self, i: int) -> bool:
        """Whether anybody reads result i of the node being converted."""
        return self.node is None or any(len(u.args) == 2 and u.args[1] == i for u in self.node.users)

    def told(self, axis: int) -> Size | None:
        """The size of an axis of the node's result by PyTorch."""
        val = self.node.meta.get("val") if self.node is not None else None
        return self.in_symbols(val.shape[axis]) if isinstance(val, torch.Tensor) else None

    # ---- element types
    def cast(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """x in another element type."""
        if x.dtype == dtype:
            return x
        if x.constant is not None and x.rank == 0:
            return self.constant(x.constant.to(dtype))
        return self.emit("Cast", x, to=dtype_name(dtype))

    def tensor(self, x: Any, dtype: torch.dtype | None = None) -> Tensor:
        """A Tensor or a number as a Tensor, in the given element type."""
        if isinstance(x, Tensor):
            return self.cast(x, dtype) if dtype is not None else x
        if isinstance(x, (bool, int, float, torch.SymInt, torch.SymFloat)):
            return self.scalar(x, dtype or result_type(x))
        return refuse(f"an argument of type {type(x).__name__}")

    # ---- shapes
    def reshape(self, x: Tensor, shape: Sequence[Size]) -> Tensor:
        """The same elements under another shape; that they are as many is checked, at run time if it takes symbols."""
        want = list(shape)
        if list(x.shape) == want:
            return x
        return self.emit("Reshape", x, shape=want)

    def transpose(self, x: Tensor, perm: Sequence[int]) -> Tensor:
        """Axes in another order."""
        n = x.rank
        perm = [int(p) for p in perm]
        if perm == list(range(n)):
            return x
        y = self.emit("Transpose", x, perm=perm)
        if n >= 2 and perm == [*range(n - 2), n - 1, n - 2]:
            return Tensor(y.core, y.dtype, y.shape, transposed=x)
        return y

    def expand(self, x: Tensor, shape: Sequence[Size]) -> Tensor:
        """Broadcast to a shape."""
        return x if list(x.shape) == list(shape) else self.emit("Expand", x, shape=list(shape))

    def slice(self, x: Tensor, axis: int, begin: Size, size: Size, step: int = 1) -> Tensor:
        """Elements begin, begin + step, ... of an axis."""
        if step == 1 and begin == 0 and size == x.shape[axis]:
            return x
        begins: list[Size] = [0] * x.rank
        sizes = list(x.shape)
        steps = [1] * x.rank
        begins[axis], sizes[axis], steps[axis] = begin, size, step
        return self.emit("Slice", x, begin=begins, size=sizes, step=steps)

    def full(self, shape: Sequence[Size], value: Number, dtype: torch.dtype) -> Tensor:
        """A tensor of equal numbers."""
        return self.expand(self.scalar(value, dtype), shape)

    def positions(self, n: Size) -> Tensor:
        """0, 1, ... n - 1 as i64."""
        if isinstance(n, int):
            key = ("positions", n)
            if key not in self._constants:
                self._constants[key] = self.constant(torch.arange(n))
            return self._constants[key]
        ones = self.full([n], 1, torch.int64)
        return self.emit("CumSum", ones, axis=0, exclusive=1)


_FROM_NAME = {name: dtype for dtype, name in DTYPES.items()}


def _number_as(value: bool | int | float, dtype: torch.dtype) -> torch.Tensor:
    if dtype.is_floating_point or dtype == torch.bool:
        return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None).to(dtype)
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value)):
        refuse(f"the number {value} as {str(dtype).removeprefix('torch.')}")
    n = int(value)
    if dtype == torch.uint64:
        return torch.tensor(n % 2**64, dtype=dtype)
    return torch.tensor((n + 2**63) % 2**64 - 2**63, dtype=torch.int64).to(dtype)


def result_type(*args: Any) -> torch.dtype:
    """PyTorch's type promotion: of tensors with axes before 0-d tensors before numbers, each kind only where it is
    higher (bool < integer < float)."""
    best: list[torch.dtype | None] = [None, None, None]  # tensors, 0-d tensors, numbers
    for a in args:
        if isinstance(a, Tensor):
            k, dtype = (0 if a.rank else 1), a.dtype
        elif isinstance(a, (bool, torch.SymBool)):
            k, dtype = 2, torch.bool
        elif isinstance(a, (int, torch.SymInt)):
            k, dtype = 2, torch.int64
        elif isinstance(a, (float, torch.SymFloat)):
            k, dtype = 2, torch.get_default_dtype()
        elif a is None:
            continue
        else:
            refuse(f"an argument of type {type(a).__name__}")
        before = best[k]
        best[k] = dtype if before is None else torch.promote_types(before, dtype)
    result = best[0]
    for lower in best[1:]:
        if lower is None:
            continue
        if result is None or _kind(lower) > _kind(result):
            result = lower if result is None else torch.promote_types(result, lower)
    if result is None:
        refuse("an operator without operands")
    return result


def _kind(dtype: torch.dtype) -> int:
    return 0 if dtype == torch.bool else 2 if dtype.is_floating_point else 1


def float_type(*args: Any) -> torch.dtype:
    """result_type(), integers as the default float."""
    t = result_type(*args)
    return t if t.is_floating_point else torch.get_default_dtype()


def is_half(dtype: torch.dtype) -> bool:
    """f16 or bf16."""
    return dtype in _HALVES
