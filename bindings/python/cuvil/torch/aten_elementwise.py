"""Elementwise operators, with PyTorch's promotion, integer division and NaN rules."""

import math
from typing import Any

import torch

from cuvil.torch.table import (
    Context,
    Tensor,
    aten,
    dtype_name,
    float_type,
    is_half,
    refuse,
    result_type,
)

_SMALL = (torch.int8, torch.int16)


# ---- helpers
def math_type(dtype: torch.dtype, *args: Any) -> torch.dtype:
    """Where the sum of half-precision tensors and numbers is computed: as PyTorch, in f32."""
    return torch.float32 if is_half(dtype) and any(not isinstance(a, Tensor) for a in args) else dtype


def binary(c: Context, op: str, a: Any, b: Any, dtype: torch.dtype | None = None, **attributes: Any) -> Tensor:
    """op in the operands' common type (or `dtype`); the result has it."""
    dtype = dtype or result_type(a, b)
    inner = math_type(dtype, a, b)
    return c.cast(c.emit(op, c.tensor(a, inner), c.tensor(b, inner), **attributes), dtype)


def compare(c: Context, op: str, a: Any, b: Any) -> Tensor:
    """A comparison; truth values compare as numbers."""
    dtype = result_type(a, b)
    dtype = math_type(dtype, a, b)
    if dtype == torch.bool and op != "Equal":
        dtype = torch.uint8
    return c.emit(op, c.tensor(a, dtype), c.tensor(b, dtype))


def where(c: Context, condition: Tensor, a: Any, b: Any, dtype: torch.dtype | None = None) -> Tensor:
    """condition ? a : b in the operands' common type."""
    dtype = dtype or result_type(a, b)
    return c.emit("Where", c.cast(condition, torch.bool), c.tensor(a, dtype), c.tensor(b, dtype))


def negate(c: Context, condition: Tensor) -> Tensor:
    """Logical not."""
    return c.emit("Not", condition)


def in_float(c: Context, x: Tensor) -> Tensor:
    """x, integers as the default float."""
    return c.cast(x, float_type(x))


# ---- unary
def _unary(aten_name: str, op: str) -> None:
    @aten(aten_name, *((f"special_{aten_name}",) if aten_name in _SPECIAL else ()))
    def handler(c: Context, x: Tensor) -> Tensor:
        return c.emit(op, in_float(c, x))


_SPECIAL = ("erf",)
for _name, _op in {
    "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh",
    "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "log": "Log", "reciprocal": "Reciprocal",
    "rsqrt": "Rsqrt", "sigmoid": "Sigmoid", "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "tan": "Tan",
    "tanh": "Tanh",
}.items():  # fmt: skip
    _unary(_name, _op)


def _keeping(aten_name: str, op: str, integers: bool) -> None:
    @aten(aten_name)
    def handler(c: Context, x: Tensor) -> Tensor:
        if not x.is_float and not integers:
            return x  # rounding leaves integers alone
        if x.dtype == torch.bool:
            return refuse(f"{aten_name} of truth values") if op == "Neg" else x
        return c.emit(op, x)


for _name, _op, _integers in [
    ("abs", "Abs", True), ("neg", "Neg", True), ("relu", "Relu", True),
    ("ceil", "Ceil", False), ("floor", "Floor", False), ("round", "Round", False),
]:  # fmt: skip
    _keeping(_name, _op, _integers)


@aten("sign", "sgn")
def sign(c: Context, x: Tensor) -> Tensor:
    """0 for NaN."""
    if x.dtype == torch.bool:
        return x
    return where(c, c.emit("IsNaN", x), 0, c.emit("Sign", x), x.dtype) if x.is_float else c.emit("Sign", x)


@aten("positive", "real", "conj", "resolve_conj", "resolve_neg", "_conj")
def identity(c: Context, x: Tensor) -> Tensor:
    return x


@aten("round.decimals")
def round_decimals(c: Context, x: Tensor, *, decimals: int) -> Tensor:
    if not x.is_float:
        return refuse("rounding integers to decimals") if decimals < 0 else x
    if decimals == 0:
        return c.emit("Round", x)
    factor = 10.0 ** abs(decimals)
    there, back = ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
    y = c.emit("Round", binary(c, there, x, factor, torch.float32 if is_half(x.dtype) else x.dtype))
    return c.cast(binary(c, back, y, factor), x.dtype)


@aten("trunc", "fix")
def trunc(c: Context, x: Tensor) -> Tensor:
    if not x.is_float:
        return x
    return where(c, compare(c, "Less", x, 0), c.emit("Ceil", x), c.emit("Floor", x))


@aten("frac")
def frac(c: Context, x: Tensor) -> Tensor:
    return c.emit("Sub", x, trunc(c, x))


@aten("square")
def square(c: Context, x: Tensor) -> Tensor:
    return multiply(c, x, x)


@aten("exp2", "special_exp2")
def exp2(c: Context, x: Tensor) -> Tensor:
    x = in_float(c, x)
    return c.emit("Pow", c.scalar(2.0, x.dtype), x)


@aten("expm1", "special_expm1")
def expm1(c: Context, x: Tensor) -> Tensor:
    x = in_float(c, x)
    half = binary(c, "Mul", x, 0.5)
    near = binary(c, "Mul", c.emit("Mul", c.emit("Sinh", half), c.emit("Exp", half)), 2.0)  # keeps small x exact
    far = binary(c, "Sub", c.emit("Exp", x), 1.0)
    return where(c, compare(c, "Less", c.emit("Abs", x), 0.5), near, far)


@aten("log1p", "special_log1p")
def log1p(c: Context, x: Tensor) -> Tensor:
    """log(1 + x) with the error of 1 + x taken out (Kahan)."""
    x = in_float(c, x)
    u = binary(c, "Add", x, 1.0)
    y = c.emit("Div", c.emit("Mul", c.emit("Log", u), x), binary(c, "Sub", u, 1.0))
    y = where(c, compare(c, "Equal", u, 1.0), x, y)
    return where(c, compare(c, "Equal", u, math.inf), u, y)


@aten("log2")
def log2(c: Context, x: Tensor) -> Tensor:
    return binary(c, "Mul", c.emit("Log", in_float(c, x)), 1.0 / math.log(2.0))


@aten("log10")
def log10(c: Context, x: Tensor) -> Tensor:
    return binary(c, "Mul", c.emit("Log", in_float(c, x)), 1.0 / math.log(10.0))


@aten("sinc")
def sinc(c: Context, x: Tensor) -> Tensor:
    t = binary(c, "Mul", in_float(c, x), math.pi)
    return where(c, compare(c, "Equal", t, 0.0), 1.0, c.emit("Div", c.emit("Sin", t), t), t.dtype)


@aten("deg2rad")
def deg2rad(c: Context, x: Tensor) -> Tensor:
    return binary(c, "Mul", in_float(c, x), math.pi / 180)


@aten("rad2deg")
def rad2deg(c: Context, x: Tensor) -> Tensor:
    return binary(c, "Mul", in_float(c, x), 180 / math.pi)


@aten("logit", "special_logit")
def logit(c: Context, x: Tensor, eps: float | None = None) -> Tensor:
    x = in_float(c, x)
    if eps is not None:
        x = clamp(c, x, eps, 1 - eps)
    return c.emit("Log", c.emit("Div", x, binary(c, "Sub", 1.0, x)))


@aten("isnan")
def isnan(c: Context, x: Tensor) -> Tensor:
    return c.emit("IsNaN", x) if x.is_float else c.full(x.shape, False, torch.bool)


def _isinf(c: Context, x: Tensor, negative: int, positive: int) -> Tensor:
    if not x.is_float:
        return c.full(x.shape, False, torch.bool)
    return c.emit("IsInf", x, detect_negative=negative, detect_positive=positive)


@aten("isinf")
def isinf(c: Context, x: Tensor) -> Tensor:
    return _isinf(c, x, 1, 1)


@aten("isposinf")
def isposinf(c: Context, x: Tensor) -> Tensor:
    return _isinf(c, x, 0, 1)


@aten("isneginf")
def isneginf(c: Context, x: Tensor) -> Tensor:
    return _isinf(c, x, 1, 0)


@aten("isfinite")
def isfinite(c: Context, x: Tensor) -> Tensor:
    if not x.is_float:
        return c.full(x.shape, True, torch.bool)
    return negate(c, c.emit("Or", c.emit("IsNaN", x), _isinf(c, x, 1, 1)))


@aten("signbit")
def signbit(c: Context, x: Tensor) -> Tensor:
    if x.dtype == torch.bool:
        return c.full(x.shape, False, torch.bool)
    below = compare(c, "Less", x, 0)
    if not x.is_float:
        return below
    minus_zero = c.emit("And", compare(c, "Equal", x, 0), compare(c, "Less", c.emit("Reciprocal", x), 0))
    return c.emit("Or", below, minus_zero)


@aten("nan_to_num")
def nan_to_num(
    c: Context, x: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    if not x.is_float:
        return x
    limits = torch.finfo(x.dtype)
    y = where(c, c.emit("IsNaN", x), 0.0 if nan is None else nan, x, x.dtype)
    y = where(c, _isinf(c, x, 0, 1), limits.max if posinf is None else posinf, y, x.dtype)
    return where(c, _isinf(c, x, 1, 0), limits.min if neginf is None else neginf, y, x.dtype)


# ---- arithmetic
def _scaled(c: Context, b: Any, alpha: Any, dtype: torch.dtype) -> Any:
    if isinstance(alpha, (int, float)) and alpha == 1:
        return b
    return binary(c, "Mul", c.tensor(b, math_type(dtype, alpha)), alpha, math_type(dtype, alpha))


@aten("add")
def add(c: Context, a: Any, b: Any, alpha: Any = 1) -> Tensor:
    dtype = result_type(a, b)
    if dtype == torch.bool:
        return c.emit("Or", c.tensor(a, dtype), c.tensor(b, dtype)) if alpha else c.tensor(a, dtype)
    inner = math_type(dtype, a, b, *(() if alpha == 1 else (alpha,)))
    return c.cast(binary(c, "Add", c.tensor(a, inner), _scaled(c, b, alpha, dtype), inner), dtype)


@aten("sub")
def sub(c: Context, a: Any, b: Any, alpha: Any = 1) -> Tensor:
    dtype = result_type(a, b)
    if dtype == torch.bool:
        refuse("the difference of truth values")
    inner = math_type(dtype, a, b, *(() if alpha == 1 else (alpha,)))
    return c.cast(binary(c, "Sub", c.tensor(a, inner), _scaled(c, b, alpha, dtype), inner), dtype)


@aten("rsub")
def rsub(c: Context, a: Any, b: Any, alpha: Any = 1) -> Tensor:
    return sub(c, b, a, alpha)


@aten("mul", "multiply")
def multiply(c: Context, a: Any, b: Any) -> Tensor:
    return binary(c, "And" if result_type(a, b) == torch.bool else "Mul", a, b)


@aten("div", "true_divide", "divide")
def div(c: Context, a: Any, b: Any, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode is None:
        return binary(c, "Div", a, b, float_type(a, b))
    dtype = result_type(a, b)
    if dtype == torch.bool:
        refuse("the rounded quotient of truth values")
    if rounding_mode == "trunc":
        if not dtype.is_floating_point:
            return binary(c, "Div", a, b, dtype)
        inner = math_type(dtype, a, b)
        return c.cast(trunc(c, binary(c, "Div", a, b, inner)), dtype)
    return floor_divide(c, a, b)


@aten("floor_divide")
def floor_divide(c: Context, a: Any, b: Any) -> Tensor:
    """Python's //: for floats by fmod, so that it agrees with the remainder."""
    dtype = result_type(a, b)
    if dtype == torch.bool:
        refuse("the rounded quotient of truth values")
    inner = torch.float32 if is_half(dtype) else dtype
    x, y = c.tensor(a, inner), c.tensor(b, inner)
    if not dtype.is_floating_point:
        return c.emit("Div", c.emit("Sub", x, c.emit("Mod", x, y)), y)
    rest = c.emit("Mod", x, y, fmod=1)
    quotient = c.emit("Div", c.emit("Sub", x, rest), y)
    differ = c.emit("Xor", compare(c, "Less", y, 0), compare(c, "Less", rest, 0))
    less = c.emit("And", negate(c, compare(c, "Equal", rest, 0)), differ)
    quotient = where(c, less, binary(c, "Sub", quotient, 1.0), quotient)
    floor = c.emit("Floor", quotient)
    floor = where(c, compare(c, "Greater", c.emit("Sub", quotient, floor), 0.5), binary(c, "Add", floor, 1.0), floor)
    plain = c.emit("Div", x, y)
    zero = copysign(c, c.scalar(0.0, inner), plain)
    floor = where(c, compare(c, "Equal", quotient, 0), zero, floor)
    return c.cast(where(c, compare(c, "Equal", y, 0), plain, floor), dtype)


def _mod(c: Context, a: Any, b: Any, fmod: int) -> Tensor:
    dtype = result_type(a, b)
    if dtype == torch.bool:
        refuse("the remainder of truth values")
    inner = torch.float32 if is_half(dtype) else dtype
    x, y = c.tensor(a, inner), c.tensor(b, inner)
    if fmod or not dtype.is_floating_point:
        return c.cast(c.emit("Mod", x, y, fmod=fmod), dtype)
    rest = c.emit("Mod", x, y, fmod=1)
    differ = c.emit("Xor", compare(c, "Less", y, 0), compare(c, "Less", rest, 0))
    differ = c.emit("And", negate(c, compare(c, "Equal", rest, 0)), differ)
    return c.cast(where(c, differ, c.emit("Add", rest, y), rest), dtype)


@aten("remainder")
def remainder(c: Context, a: Any, b: Any) -> Tensor:
    return _mod(c, a, b, 0)


@aten("fmod")
def fmod(c: Context, a: Any, b: Any) -> Tensor:
    return _mod(c, a, b, 1)


@aten("pow", "float_power")
def power(c: Context, a: Any, b: Any) -> Tensor:
    dtype = result_type(a, b)
    if dtype == torch.bool:
        refuse("a power of truth values")
    if dtype.is_floating_point:
        inner = math_type(dtype, a, b)
        if not isinstance(b, Tensor) and b == 2:
            x = c.tensor(a, inner)
            return c.cast(c.emit("Mul", x, x), dtype)
        return c.cast(c.emit("Pow", c.tensor(a, inner), c.tensor(b, inner)), dtype)
    if not isinstance(b, int) or not 0 <= b <= 64:
        refuse("a power of integers whose exponent is a tensor or not in 0 to 64")
    x = c.tensor(a, dtype)
    result: Tensor | None = None
    while b:
        if b & 1:
            result = x if result is None else c.emit("Mul", result, x)
        b >>= 1
        x = c.emit("Mul", x, x) if b else x
    return result if result is not None else c.full(x.shape, 1, dtype)


@aten("maximum", "fmax")
def maximum(c: Context, a: Any, b: Any) -> Tensor:
    return binary(c, "Or" if result_type(a, b) == torch.bool else "Max", a, b)


@aten("minimum", "fmin")
def minimum(c: Context, a: Any, b: Any) -> Tensor:
    return binary(c, "And" if result_type(a, b) == torch.bool else "Min", a, b)


@aten("clamp", "clip")
def clamp(c: Context, x: Tensor, low: Any = None, high: Any = None, **names: Any) -> Tensor:
    low, high = names.get("min", low), names.get("max", high)
    dtype = result_type(x, low, high)
    if dtype == torch.bool:
        refuse("the bounds of truth values")
    numbers = all(b is None or (isinstance(b, (int, float)) and not math.isnan(b)) for b in (low, high))
    if numbers and not is_half(dtype):
        y = c.cast(x, dtype)
        low, high = (None if b is None else c.scalar(b, dtype) for b in (low, high))
        return c.emit("Clip", y, low, high)
    y = c.cast(x, dtype)
    if low is not None:
        y = binary(c, "Max", y, low, dtype)
    return y if high is None else binary(c, "Min", y, high, dtype)


@aten("clamp_min")
def clamp_min(c: Context, x: Tensor, low: Any = None, **names: Any) -> Tensor:
    return clamp(c, x, names.get("min", low), None)


@aten("clamp_max")
def clamp_max(c: Context, x: Tensor, high: Any = None, **names: Any) -> Tensor:
    return clamp(c, x, None, names.get("max", high))


@aten("addcmul")
def addcmul(c: Context, x: Tensor, a: Tensor, b: Tensor, *, value: Any = 1) -> Tensor:
    return add(c, x, multiply(c, a, b), value)


@aten("addcdiv")
def addcdiv(c: Context, x: Tensor, a: Tensor, b: Tensor, *, value: Any = 1) -> Tensor:
    return add(c, x, binary(c, "Div", a, b, float_type(a, b)), value)


@aten("lerp")
def lerp(c: Context, a: Tensor, b: Tensor, weight: Any) -> Tensor:
    """As PyTorch, from the nearer end."""
    d = c.emit("Sub", b, a)
    if isinstance(weight, Tensor):
        near = add(c, a, multiply(c, weight, d))
        far = sub(c, b, multiply(c, d, binary(c, "Sub", 1.0, weight)))
        return where(c, compare(c, "Less", c.emit("Abs", weight), 0.5), near, far)
    if abs(weight) < 0.5:
        return add(c, a, multiply(c, d, weight))
    return sub(c, b, multiply(c, d, 1.0 - weight))


@aten("copysign")
def copysign(c: Context, a: Any, b: Any) -> Tensor:
    dtype = float_type(a, b)
    x, y = c.tensor(a, dtype), c.tensor(b, dtype)
    size = c.emit("Abs", x)
    return where(c, signbit(c, y), c.emit("Neg", size), size)


@aten("atan2", "arctan2")
def atan2(c: Context, a: Any, b: Any) -> Tensor:
    dtype = float_type(a, b)
    y, x = c.tensor(a, dtype), c.tensor(b, dtype)
    ay, ax = c.emit("Abs", y), c.emit("Abs", x)
    high, low = c.emit("Max", ay, ax), c.emit("Min", ay, ax)
    same = where(c, compare(c, "Equal", high, 0), 0.0, 1.0, dtype)  # 0/0 and inf/inf
    q = where(c, c.emit("Equal", high, low), same, c.emit("Div", low, high))
    r = c.emit("Atan", q)
    r = where(c, c.emit("Greater", ay, ax), binary(c, "Sub", math.pi / 2, r), r)
    r = where(c, signbit(c, x), binary(c, "Sub", math.pi, r), r)
    return where(c, signbit(c, y), c.emit("Neg", r), r)


@aten("hypot")
def hypot(c: Context, a: Any, b: Any) -> Tensor:
    dtype = result_type(a, b)
    x, y = c.emit("Abs", c.tensor(a, dtype)), c.emit("Abs", c.tensor(b, dtype))
    high, low = c.emit("Max", x, y), c.emit("Min", x, y)
    q = c.emit("Div", low, high)
    r = c.emit("Mul", high, c.emit("Sqrt", binary(c, "Add", c.emit("Mul", q, q), 1.0)))
    r = where(c, compare(c, "Equal", high, 0), high, r)
    return where(c, c.emit("Or", isinf(c, x), isinf(c, y)), math.inf, r, dtype)


@aten("logaddexp")
def logaddexp(c: Context, a: Tensor, b: Tensor) -> Tensor:
    dtype = float_type(a, b)
    x, y = c.cast(a, dtype), c.cast(b, dtype)
    high = c.emit("Max", x, y)
    d = c.emit("Neg", c.emit("Abs", c.emit("Sub", x, y)))
    r = c.emit("Add", high, log1p(c, c.emit("Exp", d)))
    return where(c, c.emit("And", isinf(c, x), c.emit("Equal", x, y)), x, r)


@aten("xlogy", "special_xlogy")
def xlogy(c: Context, a: Any, b: Any) -> Tensor:
    dtype = float_type(a, b)
    x, y = c.tensor(a, dtype), c.tensor(b, dtype)
    r = where(c, compare(c, "Equal", x, 0), 0.0, c.emit("Mul", x, c.emit("Log", y)), dtype)
    return where(c, c.emit("IsNaN", y), y, r)


# ---- comparisons and logic
def _comparison(aten_name: str, op: str) -> None:
    @aten(aten_name)
    def handler(c: Context, a: Any, b: Any) -> Tensor:
        return compare(c, op, a, b)


for _name, _op in {
    "eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual",
}.items():  # fmt: skip
    _comparison(_name, _op)


@aten("ne")
def ne(c: Context, a: Any, b: Any) -> Tensor:
    return negate(c, compare(c, "Equal", a, b))


def _logic(aten_name: str, op: str) -> None:
    @aten(f"logical_{aten_name}")
    def handler(c: Context, a: Tensor, b: Tensor) -> Tensor:
        return c.emit(op, c.cast(a, torch.bool), c.cast(b, torch.bool))

    @aten(f"bitwise_{aten_name}", f"__{aten_name}__")
    def bits(c: Context, a: Any, b: Any) -> Tensor:
        dtype = result_type(a, b)
        return binary(c, op if dtype == torch.bool else f"Bitwise{op}", a, b, dtype)


for _name, _op in {"and": "And", "or": "Or", "xor": "Xor"}.items():
    _logic(_name, _op)


@aten("logical_not")
def logical_not(c: Context, x: Tensor) -> Tensor:
    return negate(c, c.cast(x, torch.bool))


@aten("bitwise_not")
def bitwise_not(c: Context, x: Tensor) -> Tensor:
    return c.emit("Not" if x.dtype == torch.bool else "BitwiseNot", x)


_UNSIGNED = {torch.int64: torch.uint64, torch.int32: torch.uint32, torch.int16: torch.uint16, torch.int8: torch.uint8}


@aten("bitwise_left_shift", "__lshift__")
def left_shift(c: Context, a: Any, b: Any) -> Tensor:
    dtype = result_type(a, b)
    raw = _UNSIGNED.get(dtype, dtype)
    x, n = c.cast(c.tensor(a, dtype), raw), c.cast(c.tensor(b, dtype), raw)
    return c.cast(c.emit("BitShift", x, n, direction="LEFT"), dtype)


@aten("bitwise_right_shift", "__rshift__")
def right_shift(c: Context, a: Any, b: Any) -> Tensor:
    """Of negative numbers: ~(~x >> n)."""
    dtype = result_type(a, b)
    raw = _UNSIGNED.get(dtype, dtype)
    x, n = c.tensor(a, dtype), c.cast(c.tensor(b, dtype), raw)
    y = c.cast(c.emit("BitShift", c.cast(x, raw), n, direction="RIGHT"), dtype)
    if raw == dtype:
        return y
    flipped = c.cast(c.emit("BitwiseNot", x), raw)
    z = c.emit("BitwiseNot", c.cast(c.emit("BitShift", flipped, n, direction="RIGHT"), dtype))
    return where(c, compare(c, "Less", x, 0), z, y)


@aten("where")
def where_(c: Context, condition: Tensor, a: Any = None, b: Any = None) -> Tensor:
    if a is None or b is None:
        refuse("where with only a condition: its result's size depends on values")
    return where(c, condition, a, b)


@aten("masked_fill")
def masked_fill(c: Context, x: Tensor, mask: Tensor, value: Any) -> Tensor:
    return where(c, mask, value, x, x.dtype)


# ---- element types
@aten("_to_copy", "to")
def to_copy(c: Context, x: Tensor, *, dtype: torch.dtype | None = None, device: Any = None, **_: Any) -> Tensor:
    if device is not None and torch.device(device).type != "cpu":
        refuse(f"a copy to {device}")
    return convert_to(c, x, dtype or x.dtype)


def convert_to(c: Context, x: Tensor, dtype: torch.dtype) -> Tensor:
    """x.to(dtype). Floats become small integers by way of larger ones and wrap, as in PyTorch."""
    dtype_name(dtype)
    if x.is_float and dtype == torch.uint8:
        x = c.cast(x, torch.int64)
    elif x.is_float and dtype in _SMALL:
        x = c.cast(x, torch.int32)
    return c.cast(x, dtype)


@aten("prims::convert_element_type")
def convert_element_type(c: Context, x: Tensor, dtype: torch.dtype) -> Tensor:
    return convert_to(c, x, dtype)


# ---- activations
@aten("gelu")
def gelu(c: Context, x: Tensor, *, approximate: str = "none") -> Tensor:
    return c.emit("Gelu", x, approximate=approximate)


@aten("silu")
def silu(c: Context, x: Tensor) -> Tensor:
    return c.emit("Silu", in_float(c, x))


@aten("mish")
def mish(c: Context, x: Tensor) -> Tensor:
    return c.emit("Mish", x)


@aten("hardswish")
def hardswish(c: Context, x: Tensor) -> Tensor:
    return c.emit("HardSwish", x)


@aten("hardsigmoid")
def hardsigmoid(c: Context, x: Tensor) -> Tensor:
    return c.emit("HardSigmoid", x, alpha=1 / 6, beta=0.5)


@aten("hardtanh")
def hardtanh(c: Context, x: Tensor, low: Any = -1, high: Any = 1) -> Tensor:
    return clamp(c, x, *((low, high) if x.is_float else (int(low), int(high))))


@aten("relu6")
def relu6(c: Context, x: Tensor) -> Tensor:
    return clamp(c, x, 0, 6)


@aten("leaky_relu")
def leaky_relu(c: Context, x: Tensor, slope: float = 0.01) -> Tensor:
    return c.emit("LeakyRelu", x, alpha=float(slope))


@aten("elu")
def elu(c: Context, x: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    if input_scale == 1 and scale == 1:
        return c.emit("Elu", x, alpha=float(alpha))
    low = binary(c, "Mul", expm1(c, binary(c, "Mul", x, float(input_scale))), float(alpha) * float(scale))
    return where(c, compare(c, "Greater", x, 0), binary(c, "Mul", x, float(scale)), low)


@aten("selu")
def selu(c: Context, x: Tensor) -> Tensor:
    return c.emit("Selu", x, alpha=1.6732632423543772848170429916717, gamma=1.0507009873554804934193349852946)


@aten("celu")
def celu(c: Context, x: Tensor, alpha: float = 1.0) -> Tensor:
    return c.emit("Celu", x, alpha=float(alpha))


@aten("softplus")
def softplus(c: Context, x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    if beta == 1 and threshold >= 20:
        return c.emit("Softplus", x)
    t = binary(c, "Mul", x, float(beta))
    y = binary(c, "Div", c.emit("Softplus", t), float(beta))
    return where(c, compare(c, "Greater", t, float(threshold)), x, y)


@aten("log_sigmoid", "log_sigmoid_forward")
def log_sigmoid(c: Context, x: Tensor) -> Any:
    y = c.emit("Neg", c.emit("Softplus", c.emit("Neg", x)))
    return (y, None) if c.name.endswith("forward") else y


@aten("threshold")
def threshold(c: Context, x: Tensor, limit: Any, value: Any) -> Tensor:
    return where(c, compare(c, "LessOrEqual", x, limit), value, x, x.dtype)


@aten("hardshrink")
def hardshrink(c: Context, x: Tensor, lambd: float = 0.5) -> Tensor:
    return where(c, compare(c, "LessOrEqual", c.emit("Abs", x), float(lambd)), 0.0, x, x.dtype)


@aten("softshrink")
def softshrink(c: Context, x: Tensor, lambd: float = 0.5) -> Tensor:
    inside = binary(c, "Mul", x, 0.0)
    y = where(c, compare(c, "Less", x, -float(lambd)), binary(c, "Add", x, float(lambd)), inside)
    return where(c, compare(c, "Greater", x, float(lambd)), binary(c, "Sub", x, float(lambd)), y)


@aten("prelu", "_prelu_kernel")
def prelu(c: Context, x: Tensor, slope: Tensor) -> Tensor:
    if x.rank >= 2 and slope.rank == 1 and c.name == "aten::prelu":
        slope = c.reshape(slope, [1, slope.shape[0], *[1] * (x.rank - 2)])
    if slope.rank == 1 and slope.shape[0] == 1 and x.rank == 0:
        slope = c.reshape(slope, [])
    return c.emit("PRelu", x, slope)
