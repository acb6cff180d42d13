"""Building and folding of expressions: pure functions of `ir`, no names and no trees.

A *raw* expression keeps its place: a `Load` of whatever type, arrays included,
or a `Var`.  `decay` turns it into the value that C++ computes with.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from cudalint.semantics import ir
from cudalint.semantics.types import BOOL, DOUBLE, INT, INT64, UNKNOWN, Type, pointer_to
from cudalint.semantics.typing import common_type

Number = int | float

COMPARISONS = frozenset(("<", ">", "<=", ">=", "==", "!="))
_SCALARS = frozenset(("int", "uint", "bool", "float"))
_MAX_SHIFT = 128


def is_scalar(type_: Type) -> bool:
    """A number."""
    return type_.kind in _SCALARS


def same_type(a: Type, b: Type) -> bool:
    """Whether a conversion between the two changes nothing."""
    if a is b:
        return True
    if a.kind != b.kind or a.size != b.size:
        return False
    if a.kind in _SCALARS:
        return True
    if a.kind == "pointer" and a.element is not None and b.element is not None:
        return same_type(a.element, b.element)
    return a.name == b.name


def promoted(type_: Type) -> Type:
    """Integral promotion."""
    return INT if type_.is_integer and type_.size is not None and type_.size < 4 else type_


def arithmetic_type(a: Type, b: Type) -> Type:
    """The type of `a op b`; where one side is unknown, floating types win and the rest is unknown."""
    if a is b and (a.size or 0) >= 4:
        return a
    if is_scalar(a) and is_scalar(b):
        return common_type(a, b)
    for known in (a, b):
        if known.kind == "struct":
            return known
    for known in (a, b):
        if known.kind == "float":
            return known
    return UNKNOWN


# ------------------------------------------------------------------ constants


def wrapped(value: Number, type_: Type) -> Number | None:
    """A number as a value of `type_`; None where C++ leaves it undefined."""
    if type_.kind == "float":
        return float(value)
    if type_.kind == "bool":
        return int(value != 0)
    if type_.kind not in ("int", "uint"):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = int(value)
    if type_.size is None:
        return value
    bits = 8 * type_.size
    value &= (1 << bits) - 1
    if type_.kind == "int" and value >> (bits - 1):
        value -= 1 << bits
    return value


def constant(value: Number, type_: Type, start: int, end: int) -> ir.Const:
    """A constant of a type."""
    known = wrapped(value, type_)
    return ir.Const(start, end, type_, value if known is None else known)


def integer_type(value: Number) -> Type:
    """The type of a constant of which only the value is known."""
    if isinstance(value, float):
        return DOUBLE
    return INT if -(1 << 31) <= value < 1 << 31 else INT64


def _divide(a: Number, b: Number) -> Number | None:
    if not b:
        return None
    if isinstance(a, float) or isinstance(b, float):
        return a / b
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: Number, b: Number) -> Number | None:
    if not b or isinstance(a, float) or isinstance(b, float):
        return None
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def _bits(operation: Callable[[int, int], int]) -> Callable[[Number, Number], Number | None]:
    def apply(a: Number, b: Number) -> Number | None:
        return None if isinstance(a, float) or isinstance(b, float) else operation(a, b)

    return apply


def _shift(operation: Callable[[int, int], int]) -> Callable[[Number, Number], Number | None]:
    def apply(a: Number, b: Number) -> Number | None:
        if isinstance(a, float) or isinstance(b, float) or not 0 <= b < _MAX_SHIFT:
            return None
        return operation(a, b)

    return apply


_FOLD: dict[str, Callable[[Number, Number], Number | None]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "%": _remainder,
    "<<": _shift(lambda a, b: a << b),
    ">>": _shift(lambda a, b: a >> b),
    "&": _bits(lambda a, b: a & b),
    "|": _bits(lambda a, b: a | b),
    "^": _bits(lambda a, b: a ^ b),
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "min": min,
    "max": max,
}


def fold(op: str, left: ir.Expr, right: ir.Expr, operands: Type, type_: Type) -> Number | None:
    """`left op right` of two constants computed in the type `operands`, None where it has no value."""
    if not (isinstance(left, ir.Const) and isinstance(right, ir.Const)) or not is_scalar(operands):
        return None
    action = _FOLD.get(op)
    if action is None:
        return None
    shift = op in ("<<", ">>")
    a = wrapped(left.value, operands)
    b = right.value if shift else wrapped(right.value, operands)
    if a is None or b is None:
        return None
    try:
        result = action(a, b)
    except OverflowError:
        return None
    return None if result is None else wrapped(result, type_)


# ------------------------------------------------------------------ operators


def truth(expr: ir.Expr) -> bool | None:
    """The truth of a constant, None of anything else."""
    return bool(expr.value) if isinstance(expr, ir.Const) else None


def logical(op: str, left: ir.Expr, right: ir.Expr, start: int, end: int) -> ir.Expr:
    """`&&` and `||`; a constant left side decides."""
    known = truth(left)
    if known is not None:
        if known == (op == "||"):
            return constant(int(known), BOOL, start, end)
        return as_bool(right)
    return ir.Binary(start, end, BOOL, op, left, right)


def as_bool(expr: ir.Expr) -> ir.Expr:
    """An expression as a condition."""
    if isinstance(expr, ir.Const) and expr.type is not BOOL:
        return constant(int(bool(expr.value)), BOOL, expr.start, expr.end)
    return expr


def binary(op: str, left: ir.Expr, right: ir.Expr, start: int, end: int) -> ir.Expr:
    """`left op right` of two values, folded where both are constants; pointers become `PtrAdd` and "ptrdiff"."""
    a, b = left.type, right.type
    if op in ("+", "-"):
        if a.kind == "pointer":
            if b.kind == "pointer":
                return ir.Binary(start, end, INT64, "ptrdiff" if op == "-" else op, left, right)
            return pointer_add(left, right if op == "+" else negated(right), start, end)
        if b.kind == "pointer" and op == "+":
            return pointer_add(right, left, start, end)
    if op in COMPARISONS:
        operands, type_ = arithmetic_type(a, b), BOOL
    elif op in ("<<", ">>"):
        operands = type_ = promoted(a)
    else:
        operands = type_ = arithmetic_type(a, b)
    value = fold(op, left, right, operands, type_)
    if value is not None:
        return ir.Const(start, end, type_, value)
    return ir.Binary(start, end, type_, op, left, right)


def negated(expr: ir.Expr) -> ir.Expr:
    """`-expr`."""
    return unary("-", expr, expr.start, expr.end)


def unary(op: str, operand: ir.Expr, start: int, end: int) -> ir.Expr:
    """`+ - ~ !` of a value."""
    type_ = BOOL if op == "!" else promoted(operand.type)
    if op == "+":
        return operand
    if isinstance(operand, ir.Const):
        value = operand.value
        if op == "!":
            return constant(int(not value), BOOL, start, end)
        if op == "-":
            return constant(-value, type_, start, end)
        if isinstance(value, int):
            return constant(~value, type_, start, end)
    return ir.Unary(start, end, type_, op, operand)


def select(condition: ir.Expr, then: ir.Expr, other: ir.Expr, start: int, end: int) -> ir.Expr:
    """`condition ? then : other` of two values."""
    known = truth(condition)
    if known is not None:
        return then if known else other
    a, b = then.type, other.type
    if same_type(a, b) or a.kind == "pointer":
        type_ = a
    elif b.kind == "pointer":
        type_ = b
    else:
        type_ = arithmetic_type(a, b)
    return ir.Select(start, end, type_, condition, then, other)


def convert(expr: ir.Expr, type_: Type) -> ir.Expr:
    """An implicit conversion: constants are folded, everything else is converted by whatever takes it."""
    if isinstance(expr, ir.Const) and expr.type is not type_ and is_scalar(type_):
        return constant(expr.value, type_, expr.start, expr.end)
    return expr


def cast(expr: ir.Expr, type_: Type, start: int, end: int) -> ir.Expr:
    """An explicit conversion of a value."""
    if type_.kind == "void":
        return expr
    if isinstance(expr, ir.Const) and is_scalar(type_):
        return constant(expr.value, type_, start, end)
    if type_.kind != "unknown" and same_type(expr.type, type_):
        return expr
    return ir.Cast(start, end, type_, expr)


# --------------------------------------------------------------------- memory


def retyped(pointer: ir.Expr, type_: Type) -> ir.Expr:
    """The same address as a pointer of another type."""
    if pointer.type is type_:
        return pointer
    if isinstance(pointer, ir.PtrAdd | ir.FieldPtr | ir.Base):
        return replace(pointer, type=type_)
    return ir.Cast(pointer.start, pointer.end, type_, pointer)


def decay(expr: ir.Expr) -> ir.Expr:
    """The value of a raw expression: arrays become pointers to their first element."""
    if expr.type.kind == "array" and isinstance(expr, ir.Load):
        element = expr.type.element
        return retyped(expr.pointer, pointer_to(element if element is not None else UNKNOWN))
    return expr


def base(symbol: ir.Symbol, start: int, end: int) -> ir.Expr:
    """The address of a variable in memory."""
    type_ = symbol.type
    element = type_.element if type_.kind == "array" and type_.element is not None else type_
    return ir.Base(start, end, pointer_to(element), symbol)


def pointer_add(pointer: ir.Expr, index: ir.Expr, start: int, end: int) -> ir.Expr:
    """`pointer + index`."""
    if isinstance(index, ir.Const) and not index.value:
        return pointer
    element = pointer.type.element
    return ir.PtrAdd(start, end, pointer.type, pointer, index, element.size if element is not None else None)


def load(pointer: ir.Expr, start: int, end: int, hint: str = "") -> ir.Expr:
    """The raw expression `*pointer`."""
    element = pointer.type.element
    return ir.Load(start, end, element if element is not None else UNKNOWN, pointer, hint)


def element(array: ir.Expr, index: ir.Expr, start: int, end: int) -> ir.Expr:
    """The raw expression `array[index]` of a pointer value; also `index[array]`."""
    if index.type.kind == "pointer" and array.type.kind != "pointer":
        array, index = index, array
    return load(pointer_add(array, index, start, end), start, end)


def null(type_: Type, start: int, end: int) -> ir.Expr:
    """What `T{}` is."""
    if type_.kind in ("struct", "array"):
        return ir.Construct(start, end, type_, ())
    if is_scalar(type_):
        return constant(0, type_, start, end)
    return ir.Const(start, end, type_, 0)
