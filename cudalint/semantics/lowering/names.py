"""Lowering of names: variables, constants, members, special registers."""

from __future__ import annotations

import re
from dataclasses import replace

from tree_sitter import Node

from cudalint.semantics import constants, ir
from cudalint.semantics.constants import evaluate_typed
from cudalint.semantics.lowering import macros, objects, values
from cudalint.semantics.lowering.context import Alias, Context, Variable, expression, field, text_of
from cudalint.semantics.types import DOUBLE, FLOAT, INT, INT64, UINT, UINT64, UNKNOWN, Type, pointer_to
from cudalint.semantics.typing import member_constant, member_field
from cudalint.syntax import kinds

AXES = ("x", "y", "z")
SPECIALS = {"threadIdx": "tid", "blockIdx": "ctaid", "blockDim": "ntid", "gridDim": "nctaid"}

_KNOWN_CONSTANTS: dict[str, tuple[int | float, Type]] = {
    "CHAR_BIT": (8, INT),
    "SCHAR_MAX": (127, INT),
    "UCHAR_MAX": (255, INT),
    "SHRT_MAX": (32767, INT),
    "USHRT_MAX": (65535, INT),
    "INT_MAX": (2**31 - 1, INT),
    "INT_MIN": (-(2**31), INT),
    "UINT_MAX": (2**32 - 1, UINT),
    "LONG_MAX": (2**63 - 1, INT64),
    "LLONG_MAX": (2**63 - 1, INT64),
    "LLONG_MIN": (-(2**63), INT64),
    "ULONG_MAX": (2**64 - 1, UINT64),
    "ULLONG_MAX": (2**64 - 1, UINT64),
    "SIZE_MAX": (2**64 - 1, UINT64),
    "INT8_MAX": (127, INT),
    "UINT8_MAX": (255, INT),
    "INT16_MAX": (32767, INT),
    "UINT16_MAX": (65535, INT),
    "INT32_MAX": (2**31 - 1, INT),
    "INT32_MIN": (-(2**31), INT),
    "UINT32_MAX": (2**32 - 1, UINT),
    "INT64_MAX": (2**63 - 1, INT64),
    "UINT64_MAX": (2**64 - 1, UINT64),
    "FLT_MAX": (3.4028234663852886e38, FLOAT),
    "FLT_MIN": (1.1754943508222875e-38, FLOAT),
    "FLT_EPSILON": (1.1920928955078125e-07, FLOAT),
    "DBL_MAX": (1.7976931348623157e308, DOUBLE),
    "DBL_MIN": (2.2250738585072014e-308, DOUBLE),
    "DBL_EPSILON": (2.220446049250313e-16, DOUBLE),
    "HUGE_VAL": (float("inf"), DOUBLE),
    "HUGE_VALF": (float("inf"), FLOAT),
    "INFINITY": (float("inf"), FLOAT),
    "NAN": (float("nan"), FLOAT),
    "CUDART_INF_F": (float("inf"), FLOAT),
    "CUDART_NAN_F": (float("nan"), FLOAT),
    "CUDART_PI_F": (3.141592654, FLOAT),
    "CUDART_INF": (float("inf"), DOUBLE),
    "M_E": (2.718281828459045, DOUBLE),
    "M_PI": (3.141592653589793, DOUBLE),
    "M_PI_2": (1.5707963267948966, DOUBLE),
    "M_PI_4": (0.7853981633974483, DOUBLE),
    "M_1_PI": (0.3183098861837907, DOUBLE),
    "M_2_PI": (0.6366197723675814, DOUBLE),
    "M_SQRT2": (1.4142135623730951, DOUBLE),
    "M_SQRT1_2": (0.7071067811865476, DOUBLE),
    "M_LN2": (0.6931471805599453, DOUBLE),
    "M_2_SQRTPI": (1.1283791670955126, DOUBLE),
}


@expression(kinds.IDENTIFIER)
def _identifier(ctx: Context, node: Node) -> ir.Expr:
    name = text_of(node)
    entry = ctx.lookup(name)
    if entry is not None:
        return read(ctx, entry, node)
    if not ctx.fragment:
        macro = ctx.unit.macro(name, node.start_byte)
        if macro is not None and macro.params is None:
            return macros.named_value(ctx, node, name)
    return named(ctx, node, name)


def read(ctx: Context, entry: object, node: Node) -> ir.Expr:
    """The raw expression that a variable in scope stands for."""
    start, end = ctx.span(node)
    if isinstance(entry, Variable):
        symbol = entry.symbol
        if entry.value is not None:
            return ir.Const(start, end, entry.type, entry.value)
        if entry.reference:
            return ir.Load(start, end, entry.type, ir.Var(start, end, symbol.type, symbol))
        if symbol.space == "register":
            return ir.Var(start, end, symbol.type, symbol)
        return ir.Load(start, end, symbol.type, values.base(symbol, start, end))
    if isinstance(entry, Alias):
        return replace(entry.expr, start=start, end=end)
    return ctx.unknown(node, text="pack")


def named(ctx: Context, node: Node, name: str) -> ir.Expr:
    """A name that is neither a local variable nor a macro."""
    start, end = ctx.span(node)
    if name in SPECIALS:
        return whole_special(ctx, name, node)
    if name == "warpSize":
        return ir.Special(start, end, INT, "warpsize")
    if ctx.this is not None:
        member = own_member(ctx, name, start, end)
        if member is not None:
            return member
    found = constants.named(name, ctx.scope)
    if found is not None:
        return ir.Const(start, end, found[1], found[0])
    variable = ctx.scope.variable(name)
    if variable is not None:
        symbol = ctx.cache.global_symbol(variable)
        return ir.Load(start, end, symbol.type, values.base(symbol, start, end))
    known = _KNOWN_CONSTANTS.get(name)
    if known is not None:
        return ir.Const(start, end, known[1], known[0])
    return unresolved(ctx, node, name)


_CONSTANT_LIKE = re.compile(r"(?:k[A-Z]\w*|cuda[A-Z]\w*|[A-Z][A-Z0-9_]*)$")
_THREAD_LIKE = re.compile(r"(?:^|_)(?:TID|T[XYZ]|IDX|IDY|IDZ|ID|LANE\w*|INDEX|RANK|GID|LID)\d*(?:_|$)")


def unresolved(ctx: Context, node: Node, name: str) -> ir.Expr:
    """A name that nothing declares: spelled like a constant, it is one unknown of the whole grid."""
    last = name.rpartition("::")[2]
    if "::" not in name and (not _CONSTANT_LIKE.match(last) or _THREAD_LIKE.search(last)):
        return ctx.unknown(node, text="name " + name)
    start, end = ctx.span(node)
    symbol = ctx.cache.unresolved.get(name)
    if symbol is None:
        symbol = ir.Symbol(name, UNKNOWN, "register", ctx.path, start, end, parameter=True)
        ctx.cache.unresolved[name] = symbol
    return ir.Var(start, end, UNKNOWN, symbol)


def own_member(ctx: Context, name: str, start: int, end: int) -> ir.Expr | None:
    """`name` as a member of `*this`."""
    this = ctx.this
    if this is None or this.type.element is None:
        return None
    found = member_field(this.type.element, name)
    if found is None:
        return None
    pointer = ir.Var(start, end, this.type, this)
    return values.load(ir.FieldPtr(start, end, pointer_to(found.type), pointer, found.offset, name), start, end)


def whole_special(ctx: Context, name: str, node: Node) -> ir.Expr:
    """`threadIdx` and its like as a struct."""
    start, end = ctx.span(node)
    type_ = ctx.scope.type("dim3" if name in ("blockDim", "gridDim") else "uint3") or UNKNOWN
    return ir.Construct(start, end, type_, tuple(ir.Special(start, end, UINT, f"{SPECIALS[name]}.{axis}") for axis in AXES))


@expression(kinds.THIS)
def _this(ctx: Context, node: Node) -> ir.Expr:
    if ctx.this is None:
        return ctx.unknown(node, text="this")
    return ir.Var(*ctx.span(node), ctx.this.type, ctx.this)


@expression(kinds.QUALIFIED_IDENTIFIER, kinds.TEMPLATE_FUNCTION)
def _qualified(ctx: Context, node: Node) -> ir.Expr:
    found = evaluate_typed(node, ctx.scope)
    start, end = ctx.span(node)
    if found is not None:
        return ir.Const(start, end, found[1], found[0])
    if node.type == kinds.QUALIFIED_IDENTIFIER:
        name = "".join(text_of(node).split())
        variable = ctx.scope.variable(name)
        if variable is not None:
            symbol = ctx.cache.global_symbol(variable)
            return ir.Load(start, end, symbol.type, values.base(symbol, start, end))
        last = name.rpartition("::")[2]
        if last in _KNOWN_CONSTANTS or last in SPECIALS:
            return named(ctx, node, last)
        member = own_member(ctx, last, start, end)
        if member is not None:
            return member
        if not name.endswith(">"):
            return unresolved(ctx, node, name)
    return ctx.unknown(node, text="qualified name")


@expression(kinds.FIELD_EXPRESSION)
def _field(ctx: Context, node: Node) -> ir.Expr:
    owner, member = field(node, kinds.F_ARGUMENT), field(node, kinds.F_FIELD)
    if owner is None or member is None:
        return ctx.unknown(node, text="member")
    name = text_of(member)
    start, end = ctx.span(node)
    if owner.type == kinds.IDENTIFIER and name in AXES:
        spelled = text_of(owner)
        if spelled in SPECIALS and ctx.lookup(spelled) is None:
            return ir.Special(start, end, UINT, f"{SPECIALS[spelled]}.{name}")
    operator = field(node, kinds.F_OPERATOR)
    if operator is not None and operator.type == "->":
        pointer = ctx.value(owner)
        if pointer.type.kind == "struct":
            pointer = objects.overloaded(ctx, node, "operator->", pointer, ()) or pointer
        operand = values.load(pointer, pointer.start, pointer.end)
    else:
        operand = ctx.raw(owner)
    return member_of(ctx, operand, name, start, end)


def member_of(ctx: Context, operand: ir.Expr, name: str, start: int, end: int) -> ir.Expr:
    """The raw expression `operand.name`."""
    type_ = operand.type
    found = member_field(type_, name) if type_.kind == "struct" else None
    if found is None:
        known = member_constant(type_, name) if type_.record is not None else None
        if known is not None:
            return ir.Const(start, end, values.integer_type(known), known)
        if isinstance(operand, ir.Load):
            return values.load(ir.FieldPtr(start, end, pointer_to(UNKNOWN), operand.pointer, None, name), start, end)
        return ir.FieldValue(start, end, UNKNOWN, operand, None, name)
    if isinstance(operand, ir.Construct):
        for declared, value in zip(type_.fields, operand.args, strict=False):
            if declared.name == name:
                return value
    if isinstance(operand, ir.Load):
        pointer: ir.Expr | None = operand.pointer
    elif isinstance(operand, ir.Select | ir.Assign) or (isinstance(operand, ir.Binary) and operand.op == ","):
        pointer = ctx.address(operand)
    else:
        pointer = None
    if pointer is not None:
        return values.load(ir.FieldPtr(start, end, pointer_to(found.type), pointer, found.offset, name), start, end)
    return ir.FieldValue(start, end, found.type, operand, found.offset, name)
