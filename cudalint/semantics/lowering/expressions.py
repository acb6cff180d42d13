"""Lowering of expressions other than calls."""

from __future__ import annotations

import re

from tree_sitter import Node

from cudalint.semantics import constants, ir
from cudalint.semantics.constants import evaluate, evaluate_typed
from cudalint.semantics.lowering import calls, lambdas, macros, statements, values
from cudalint.semantics.lowering.context import (
    Alias,
    Context,
    Pack,
    Variable,
    children_of,
    expression,
    field,
    first_child,
    text_of,
)
from cudalint.semantics.types import DOUBLE, FLOAT, INT, INT64, UINT, UINT64, UNKNOWN, Type, pointer_to
from cudalint.semantics.typing import member_constant, member_field, resolve_type, sizeof
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


# -------------------------------------------------------------------- literals


@expression(kinds.NUMBER_LITERAL, kinds.CHAR_LITERAL, kinds.TRUE, kinds.FALSE, kinds.USER_DEFINED_LITERAL)
def _literal(ctx: Context, node: Node) -> ir.Expr:
    found = evaluate_typed(node, ctx.scope)
    if found is None:
        return ctx.unknown(node, text="literal")
    return ir.Const(*ctx.span(node), found[1], found[0])


@expression(kinds.NULL)
def _null(ctx: Context, node: Node) -> ir.Expr:
    return ir.Const(*ctx.span(node), pointer_to(UNKNOWN), 0)


@expression(kinds.STRING_LITERAL, kinds.CONCATENATED_STRING, kinds.RAW_STRING_LITERAL)
def _string(ctx: Context, node: Node) -> ir.Expr:
    return ctx.unknown(node, text="string", type_=pointer_to(Type("int", 1, 1, "char")))


@expression(kinds.SIZEOF_EXPRESSION)
def _sizeof(ctx: Context, node: Node) -> ir.Expr:
    operand = field(node, kinds.F_VALUE)
    size: int | float | None = None
    if operand is not None:
        inner = operand
        while inner.type == kinds.PARENTHESIZED_EXPRESSION:
            inner = first_child(inner) or inner
            if inner is operand:
                break
        name = text_of(inner) if inner.type == kinds.IDENTIFIER else ""
        entry = ctx.lookup(name) if name else None
        if isinstance(entry, Pack):
            size = len(entry.elements)
        elif entry is not None or (not name and inner.type not in (kinds.PRIMITIVE_TYPE, kinds.TYPE_IDENTIFIER)):
            effects, shared = ctx.effects, len(ctx.shared)
            size = sizeof(ctx.raw(inner).type)
            ctx.effects = effects
            del ctx.shared[shared:]
    if size is None:
        size = evaluate(node, ctx.scope)
    if size is None:
        return ctx.unknown(node, text="sizeof", type_=UINT64)
    return values.constant(size, UINT64, *ctx.span(node))


@expression(kinds.ALIGNOF_EXPRESSION, kinds.OFFSETOF_EXPRESSION, kinds.REQUIRES_EXPRESSION)
def _folded(ctx: Context, node: Node) -> ir.Expr:
    value = evaluate(node, ctx.scope)
    if value is None:
        return ctx.unknown(node, text=node.type)
    return values.constant(value, UINT64, *ctx.span(node))


# ----------------------------------------------------------------------- names


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
        return entry.expr
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
            pointer = calls.overloaded(ctx, node, "operator->", pointer, ()) or pointer
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


# ------------------------------------------------------------------- operators


@expression(kinds.BINARY_EXPRESSION)
def _binary(ctx: Context, node: Node) -> ir.Expr:
    spine = [node]
    left = field(node, kinds.F_LEFT)
    while left is not None and left.type == kinds.BINARY_EXPRESSION and len(spine) <= MAX_SPINE:
        spine.append(left)
        left = field(left, kinds.F_LEFT)
    if len(spine) + ctx.depth > MAX_SPINE:
        return _long_chain(ctx, node)
    if left is not None and left.type == kinds.CALL_EXPRESSION:
        again = macros.misread_comparison(ctx, node, left)
        if again is not None:
            return again
    if left is not None and left.type == kinds.PARENTHESIZED_EXPRESSION:
        cast = _misread_cast(ctx, spine, left)
        if cast is not None:
            return cast
    result = ctx.value(left) if left is not None else ctx.unknown(node, text="operand")
    for part in reversed(spine):
        result = _apply(ctx, part, result)
    return result


MAX_SPINE = 120
_SIGNS = frozenset("+-*&")


def _misread_cast(ctx: Context, spine: list[Node], left: Node) -> ir.Expr | None:
    """`(T)-1.0`, which the grammar takes for a subtraction unless T is spelled like a built-in type."""
    inner, innermost = first_child(left), spine[-1]
    operator, operand = field(innermost, kinds.F_OPERATOR), field(innermost, kinds.F_RIGHT)
    if inner is None or inner.type != kinds.IDENTIFIER or operator is None or operand is None or operator.type not in _SIGNS:
        return None
    name = text_of(inner)
    if ctx.lookup(name) is not None:
        return None
    type_ = ctx.scope.type(name) or (UNKNOWN if name in ctx.unbound_types else None)
    if type_ is None:
        return None
    start, end = ctx.span(innermost)
    raw = ctx.raw(operand)
    if operator.type == "&":
        pointer = ctx.address(raw)
        value = raw if pointer is None else pointer
    elif operator.type == "*":
        value = values.load(values.decay(raw), start, end)
    else:
        value = values.unary(operator.type, values.decay(raw), start, end)
    result: ir.Expr = values.cast(values.decay(value), type_, start, end)
    for part in reversed(spine[:-1]):
        result = _apply(ctx, part, result)
    return result


def _apply(ctx: Context, node: Node, left: ir.Expr) -> ir.Expr:
    operator, right_node = field(node, kinds.F_OPERATOR), field(node, kinds.F_RIGHT)
    if operator is None or right_node is None:
        return ctx.unknown(node, left, text="operator")
    op = operator.type
    start, end = ctx.span(node)
    if op in ("&&", "||"):
        if values.truth(left) == (op == "||"):
            return values.logical(op, left, left, start, end)
        return values.logical(op, left, ctx.value(right_node), start, end)
    right = ctx.value(right_node)
    return combined(ctx, node, op, left, right)


def combined(ctx: Context, node: Node, op: str, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """`left op right`, by an overloaded operator if an operand is a struct."""
    if left.type.kind == "struct" or right.type.kind == "struct":
        call = calls.overloaded(ctx, node, "operator" + op, left, (right,))
        if call is not None:
            return values.decay(call)
        left, right = calls.as_value(ctx, node, left), calls.as_value(ctx, node, right)
    start, end = ctx.span(node)
    return values.binary(op, left, right, start, end)


def _long_chain(ctx: Context, node: Node) -> ir.Expr:
    parts: list[ir.Expr] = []
    current: Node | None = node
    while current is not None and current.type == kinds.BINARY_EXPRESSION:
        right = field(current, kinds.F_RIGHT)
        if right is not None:
            parts.append(ctx.value(right))
        current = field(current, kinds.F_LEFT)
    if current is not None:
        parts.append(ctx.value(current))
    parts.reverse()
    return ctx.unknown(node, *parts, text="long chain", type_=parts[0].type if parts else UNKNOWN)


@expression(kinds.UNARY_EXPRESSION)
def _unary(ctx: Context, node: Node) -> ir.Expr:
    operator, argument = field(node, kinds.F_OPERATOR), field(node, kinds.F_ARGUMENT)
    if operator is None or argument is None:
        return ctx.unknown(node, text="operator")
    operand = ctx.value(argument)
    if operand.type.kind == "struct":
        call = calls.overloaded(ctx, node, "operator" + operator.type, operand, ())
        if call is not None:
            return call
    op = {"not": "!", "compl": "~"}.get(operator.type, operator.type)
    return values.unary(op, operand, *ctx.span(node))


@expression(kinds.POINTER_EXPRESSION)
def _pointer(ctx: Context, node: Node) -> ir.Expr:
    operator, argument = field(node, kinds.F_OPERATOR), field(node, kinds.F_ARGUMENT)
    if operator is None or argument is None:
        return ctx.unknown(node, text="operator")
    if operator.type == "*":
        pointer = ctx.value(argument)
        if pointer.type.kind == "struct":
            call = calls.overloaded(ctx, node, "operator*", pointer, ())
            if call is not None:
                return call
            pointer = calls.as_value(ctx, node, pointer, "pointer")
        return values.load(pointer, *ctx.span(node))
    operand = _addressable(ctx, argument)
    pointer_or_none = ctx.address(operand)
    if pointer_or_none is None:
        return ctx.unknown(node, operand, text="address")
    return pointer_or_none


def _addressable(ctx: Context, node: Node) -> ir.Expr:
    """The operand of `&`: a constant with a name has a place, too."""
    raw = ctx.raw(node)
    if not isinstance(raw, ir.Const):
        return raw
    while node.type == kinds.PARENTHESIZED_EXPRESSION:
        node = first_child(node) or node
    entry = ctx.lookup(text_of(node)) if node.type == kinds.IDENTIFIER else None
    if not isinstance(entry, Variable):
        return raw
    symbol = entry.symbol
    if symbol.space == "register":
        return ir.Var(raw.start, raw.end, symbol.type, symbol)
    return ir.Load(raw.start, raw.end, symbol.type, values.base(symbol, raw.start, raw.end))


@expression(kinds.SUBSCRIPT_EXPRESSION)
def _subscript(ctx: Context, node: Node) -> ir.Expr:
    argument, indices = field(node, kinds.F_ARGUMENT), field(node, kinds.F_INDICES)
    nodes = children_of(indices) if indices is not None else []
    if argument is None or not nodes:
        return ctx.unknown(node, text="subscript")
    array = ctx.value(argument)
    if array.type.kind == "struct":
        call = calls.overloaded(ctx, node, "operator[]", array, tuple(ctx.raw(n) for n in nodes))
        if call is not None:
            return call
        array = calls.as_value(ctx, node, array, "pointer")
    index = ctx.value(nodes[-1])
    if array.type.kind in ("struct", "unknown") and index.type.kind != "pointer":
        return _element_of_unknown(ctx, node, array, index)
    return values.element(array, index, *ctx.span(node))


def _element_of_unknown(ctx: Context, node: Node, array: ir.Expr, index: ir.Expr) -> ir.Expr:
    """`array[index]` where nothing is known of `array`: it may be a pointer or an object that holds its elements."""
    start, end = ctx.span(node)
    if isinstance(array, ir.Load) and array.type.kind == "unknown" and isinstance(array.pointer, ir.FieldPtr):
        return values.load(values.pointer_add(array.pointer, index, start, end), start, end)
    if array.type.kind == "unknown":
        return values.load(values.pointer_add(values.retyped(array, pointer_to(UNKNOWN)), index, start, end), start, end)
    ctx.effects += 1
    holder = ctx.address(array)
    held = ir.Call(start, end, pointer_to(UNKNOWN), "operator[]", (index,), None, array.type.name, holder or array)
    return values.load(held, start, end)


@expression(kinds.CONDITIONAL_EXPRESSION)
def _conditional(ctx: Context, node: Node) -> ir.Expr:
    parts = [field(node, name) for name in (kinds.F_CONDITION, kinds.F_CONSEQUENCE, kinds.F_ALTERNATIVE)]
    condition_node, then_node, other_node = parts
    if condition_node is None or other_node is None:
        return ctx.unknown(node, text="conditional")
    condition = ctx.value(condition_node)
    known = values.truth(condition)
    if known is not None:
        live = then_node if known else other_node
        return ctx.raw(live) if live is not None else condition
    then = ctx.raw(then_node) if then_node is not None else condition
    other = ctx.raw(other_node)
    if then.type.kind == "array" or other.type.kind == "array":
        then, other = values.decay(then), values.decay(other)
    return values.select(condition, then, other, *ctx.span(node))


@expression(kinds.COMMA_EXPRESSION)
def _comma(ctx: Context, node: Node) -> ir.Expr:
    left, right = field(node, kinds.F_LEFT), field(node, kinds.F_RIGHT)
    if left is None or right is None:
        return ctx.unknown(node, text="comma")
    first, second = ctx.value(left), ctx.raw(right)
    if isinstance(first, ir.Const):
        return second
    return ir.Binary(*ctx.span(node), second.type, ",", first, second)


# ------------------------------------------------------------------ assignment


@expression(kinds.ASSIGNMENT_EXPRESSION)
def _assignment(ctx: Context, node: Node) -> ir.Expr:
    left, operator, right = field(node, kinds.F_LEFT), field(node, kinds.F_OPERATOR), field(node, kinds.F_RIGHT)
    if left is None or operator is None or right is None:
        return ctx.unknown(node, text="assignment")
    if left.type == kinds.TEMPLATE_FUNCTION:
        again = macros.misread_comparison(ctx, node, left)
        if again is not None:
            return again
    effects = ctx.effects
    target = ctx.raw(left)
    pure = ctx.effects == effects
    braced = right.type == kinds.INITIALIZER_LIST
    value = initializer(ctx, right, target.type) if braced else ctx.value(right)
    op = operator.type
    if target.type.kind == "struct" and not values.same_type(target.type, value.type):
        call = calls.overloaded(ctx, node, "operator" + op, target, (value,))
        if call is not None:
            return call
    if op == "=":
        return assign(ctx, node, target, value)
    return update(ctx, node, target, op[:-1], value, pure=pure)


@expression(kinds.UPDATE_EXPRESSION)
def _update(ctx: Context, node: Node) -> ir.Expr:
    operator, argument = field(node, kinds.F_OPERATOR), field(node, kinds.F_ARGUMENT)
    if operator is None or argument is None:
        return ctx.unknown(node, text="update")
    post = operator.start_byte > argument.start_byte
    effects = ctx.effects
    target = ctx.raw(argument)
    pure = ctx.effects == effects
    op = operator.type
    if target.type.kind == "struct":
        call = calls.overloaded(ctx, node, "operator" + op, target, ())
        if call is not None:
            return call
    one = ir.Const(*ctx.span(node), INT, 1)
    return update(ctx, node, target, op[0], one, pure=pure, post=post)


def assign(ctx: Context, node: Node, target: ir.Expr, value: ir.Expr) -> ir.Expr:
    """`target = value` for a raw target."""
    value = values.convert(value, target.type)
    ctx.effects += 1
    if isinstance(target, ir.Var):
        return ir.Assign(*ctx.span(node), target.type, target, value)
    if isinstance(target, ir.Load):
        return ir.Assign(target.start, target.end, target.type, target.pointer, value, memory=True)
    pointer = ctx.address(target)
    if pointer is None:
        return ctx.unknown(node, target, value, text="assignment to a value")
    return ir.Assign(target.start, target.end, target.type, pointer, value, memory=True)


def update(ctx: Context, node: Node, target: ir.Expr, op: str, operand: ir.Expr, *, pure: bool, post: bool = False) -> ir.Expr:
    """`target op= operand` and increments: the target's address is computed once."""
    ctx.effects += 1
    if isinstance(target, ir.Var):
        start, end = ctx.span(node)
        value = combined(ctx, node, op, target, operand)
        return ir.Assign(start, end, target.type, target, value, post=post, compound=True)
    start, end = target.start, target.end
    pointer = target.pointer if isinstance(target, ir.Load) else ctx.address(target)
    if pointer is None:
        return ctx.unknown(node, target, operand, text="update of a value")
    before: ir.Expr | None = None
    if not pure:
        holder = ir.Symbol("(address)", pointer.type, "register", ctx.path, start, end)
        held = ir.Var(start, end, pointer.type, holder)
        before = ir.Assign(start, end, pointer.type, held, pointer)
        pointer = held
    old = ir.Load(start, end, target.type, pointer)
    value = combined(ctx, node, op, old, operand)
    result: ir.Expr = ir.Assign(start, end, target.type, pointer, value, memory=True, post=post, compound=True)
    return result if before is None else ir.Binary(start, end, target.type, ",", before, result)


# ----------------------------------------------------------------- conversions


@expression(kinds.CAST_EXPRESSION)
def _cast(ctx: Context, node: Node) -> ir.Expr:
    type_node, operand = field(node, kinds.F_TYPE), field(node, kinds.F_VALUE)
    if type_node is None or operand is None:
        return ctx.unknown(node, text="cast")
    return cast_to(ctx, node, type_node, operand)


def cast_to(ctx: Context, node: Node, type_node: Node, operand: Node) -> ir.Expr:
    """A cast of any spelling."""
    type_ = resolve_type(type_node, ctx.scope)
    start, end = ctx.span(node)
    declarator = field(type_node, kinds.F_DECLARATOR)
    if declarator is not None and declarator.type == kinds.ABSTRACT_REFERENCE_DECLARATOR:
        raw = ctx.raw(operand)
        if type_.kind == "unknown" or values.same_type(raw.type, type_):
            return raw
        pointer = ctx.address(raw)
        if pointer is not None:
            return values.load(ir.Cast(start, end, pointer_to(type_), pointer), start, end)
        return values.cast(values.decay(raw), type_, start, end)
    raw = ctx.raw(operand)
    if type_.kind == "struct":
        return calls.constructed(ctx, node, type_, (raw,))
    return values.cast(calls.as_value(ctx, node, values.decay(raw), type_.kind), type_, start, end)


@expression(kinds.COMPOUND_LITERAL_EXPRESSION)
def _compound_literal(ctx: Context, node: Node) -> ir.Expr:
    type_node, value = field(node, kinds.F_TYPE), field(node, kinds.F_VALUE)
    if type_node is None or value is None:
        return ctx.unknown(node, text="compound literal")
    type_ = ctx.scope.type(text_of(type_node)) if type_node.type == kinds.TYPE_IDENTIFIER else None
    return initializer(ctx, value, type_ or resolve_type(type_node, ctx.scope))


@expression(kinds.INITIALIZER_LIST)
def _initializer_list(ctx: Context, node: Node) -> ir.Expr:
    return initializer(ctx, node, UNKNOWN)


def initializer(ctx: Context, node: Node, type_: Type) -> ir.Expr:
    """A braced list as a value of a type."""
    start, end = ctx.span(node)
    nodes = children_of(node)
    if type_.kind == "array":
        inner = type_.element or UNKNOWN
        return ir.Construct(start, end, type_, tuple(_item(ctx, n, inner) for n in nodes))
    if type_.kind == "struct":
        if not any(n.type == kinds.INITIALIZER_PAIR for n in nodes) and calls.has_constructor(type_):
            return calls.constructed(ctx, node, type_, tuple(ctx.raw(n) for n in nodes))
        return _aggregate(ctx, nodes, type_, start, end)
    if not nodes:
        return values.null(type_, start, end)
    if len(nodes) == 1 and type_.kind != "unknown":
        return values.cast(_item(ctx, nodes[0], type_), type_, start, end)
    return ir.Construct(start, end, type_, tuple(_item(ctx, n, UNKNOWN) for n in nodes))


def _item(ctx: Context, node: Node, type_: Type) -> ir.Expr:
    if node.type == kinds.INITIALIZER_PAIR:
        inner = field(node, kinds.F_VALUE)
        if inner is None:
            return ctx.unknown(node, text="initializer")
        node = inner
    if node.type == kinds.INITIALIZER_LIST:
        return initializer(ctx, node, type_)
    return values.convert(ctx.value(node), type_)


def _aggregate(ctx: Context, nodes: list[Node], type_: Type, start: int, end: int) -> ir.Expr:
    """Fields in order or by name; those left out before the last named one are zero."""
    fields = type_.fields
    if len(nodes) == 1 and nodes[0].type not in (kinds.INITIALIZER_PAIR, kinds.INITIALIZER_LIST):
        only = ctx.value(nodes[0])
        if values.same_type(only.type, type_):
            return only
        return ir.Construct(start, end, type_, (values.convert(only, fields[0].type) if fields else only,))
    args: dict[int, ir.Expr] = {}
    position = 0
    names = {f.name: i for i, f in enumerate(fields)}
    for node in nodes:
        if node.type == kinds.INITIALIZER_PAIR:
            designator = field(node, kinds.F_DESIGNATOR)
            name = text_of(designator).lstrip(".").strip() if designator is not None else ""
            position = names.get(name, position)
        args[position] = _item(ctx, node, fields[position].type if position < len(fields) else UNKNOWN)
        position += 1
    last = max(args, default=-1)
    filled = (args.get(i) or values.null(fields[i].type if i < len(fields) else INT, start, end) for i in range(last + 1))
    return ir.Construct(start, end, type_, tuple(filled))


# ---------------------------------------------------------------------- others


@expression(kinds.LAMBDA_EXPRESSION)
def _lambda(ctx: Context, node: Node) -> ir.Expr:
    return lambdas.lowered(ctx, node)


@expression(kinds.CALL_EXPRESSION)
def _call(ctx: Context, node: Node) -> ir.Expr:
    return macros.misread_comparison(ctx, node, node) or calls.call(ctx, node)


@expression(kinds.COMPOUND_STATEMENT)
def _statement_expression(ctx: Context, node: Node) -> ir.Expr:
    """`({ ...; value; })`: a lambda that is called at once."""
    block = statements.block_of(ctx, node)
    last = block.body[-1] if block.body else None
    start, end = ctx.span(node)
    type_ = UNKNOWN
    if isinstance(last, ir.Evaluate):
        type_ = last.expr.type
        block = ir.Block(block.start, block.end, (*block.body[:-1], ir.Return(last.start, last.end, last.expr)))
    ctx.effects += 1
    return ir.Call(start, end, type_, "", (), ir.Lambda(start, end, UNKNOWN, (), block))


@expression(kinds.GNU_ASM_EXPRESSION)
def _asm(ctx: Context, node: Node) -> ir.Expr:
    code = field(node, kinds.F_ASSEMBLY_CODE)
    outputs: list[ir.Expr] = []
    inputs: list[ir.Expr] = []
    ctx.effects += 1
    for name, written in ((kinds.F_OUTPUT_OPERANDS, True), (kinds.F_INPUT_OPERANDS, False)):
        listed = field(node, name)
        for operand in children_of(listed) if listed is not None else ():
            value, constraint = field(operand, kinds.F_VALUE), field(operand, kinds.F_CONSTRAINT)
            if value is None:
                continue
            if not written:
                inputs.append(ctx.value(value))
                continue
            raw = ctx.raw(value)
            target = raw if isinstance(raw, ir.Var) else ctx.address(raw)
            if target is not None:
                outputs.append(target)
            if constraint is not None and "+" in text_of(constraint):
                inputs.append(values.decay(raw))
    return ir.Asm(*ctx.span(node), UNKNOWN, string_contents(code) if code is not None else "", tuple(outputs), tuple(inputs))


_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\"}


def string_contents(node: Node) -> str:
    """What a string literal or several in a row say."""
    pieces: list[str] = []
    pending = [node]
    while pending:
        current = pending.pop()
        if current.type in (kinds.STRING_CONTENT, kinds.RAW_STRING_CONTENT):
            pieces.append(text_of(current))
        elif current.type == kinds.ESCAPE_SEQUENCE:
            spelled = text_of(current)
            pieces.append(_ESCAPES.get(spelled, spelled))
        else:
            pending.extend(reversed(current.named_children))
    return "".join(pieces)


@expression(kinds.PARAMETER_PACK_EXPANSION)
def _expansion(ctx: Context, node: Node) -> ir.Expr:
    pattern = field(node, kinds.F_PATTERN)
    if pattern is None:
        return ctx.unknown(node, text="pack expansion")
    return ctx.unknown(node, *(values.decay(e) for e in expanded(ctx, pattern)), text="pack expansion")


def expanded(ctx: Context, pattern: Node) -> list[ir.Expr]:
    """The raw expressions of `pattern...`, one per element of the packs named in it."""
    packs = packs_in(ctx, pattern)
    if not packs:
        return [ctx.raw(pattern)]
    result = []
    for position in range(min(len(p.elements) for p in packs.values())):
        ctx.frames.append({name: pack.elements[position] for name, pack in packs.items()})
        try:
            result.append(ctx.raw(pattern))
        finally:
            ctx.frames.pop()
    return result


def packs_in(ctx: Context, node: Node) -> dict[str, Pack]:
    """The parameter packs named in an expression."""
    found: dict[str, Pack] = {}
    pending = [node]
    while pending:
        current = pending.pop()
        if current.type == kinds.IDENTIFIER:
            name = text_of(current)
            entry = ctx.lookup(name)
            if isinstance(entry, Pack):
                found[name] = entry
        pending.extend(current.named_children)
    return found


@expression(kinds.FOLD_EXPRESSION)
def _fold(ctx: Context, node: Node) -> ir.Expr:
    left, operator, right = field(node, kinds.F_LEFT), field(node, kinds.F_OPERATOR), field(node, kinds.F_RIGHT)
    if left is None or right is None or operator is None:
        return ctx.unknown(node, text="fold")
    terms: list[ir.Expr] = []
    for side in (left, right):
        if side.type != "..." and side.is_named:
            terms.extend(values.decay(e) for e in (expanded(ctx, side) if packs_in(ctx, side) else [ctx.raw(side)]))
    if not terms:
        return ctx.unknown(node, text="fold")
    op = operator.type
    start, end = ctx.span(node)
    result = terms[0]
    for term in terms[1:]:
        if op == ",":
            result = ir.Binary(start, end, term.type, ",", result, term)
        elif op in ("&&", "||"):
            result = values.logical(op, result, term, start, end)
        else:
            result = values.binary(op, result, term, start, end)
    return result
