"""Lowering of operators and assignments."""

from __future__ import annotations

from tree_sitter import Node

from cudalint.semantics import ir
from cudalint.semantics.lowering import initializers, macros, objects, values
from cudalint.semantics.lowering.context import Context, Variable, children_of, expression, field, first_child, text_of
from cudalint.semantics.types import INT, UNKNOWN, pointer_to
from cudalint.syntax import kinds

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
        call = objects.overloaded(ctx, node, "operator" + op, left, (right,))
        if call is not None:
            return values.decay(call)
        left, right = objects.as_value(ctx, node, left), objects.as_value(ctx, node, right)
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
        call = objects.overloaded(ctx, node, "operator" + operator.type, operand, ())
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
            call = objects.overloaded(ctx, node, "operator*", pointer, ())
            if call is not None:
                return call
            pointer = objects.as_value(ctx, node, pointer, "pointer")
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
        call = objects.overloaded(ctx, node, "operator[]", array, tuple(ctx.raw(n) for n in nodes))
        if call is not None:
            return call
        array = objects.as_value(ctx, node, array, "pointer")
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
    value = initializers.initializer(ctx, right, target.type) if braced else ctx.value(right)
    op = operator.type
    if target.type.kind == "struct" and not values.same_type(target.type, value.type):
        call = objects.overloaded(ctx, node, "operator" + op, target, (value,))
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
        call = objects.overloaded(ctx, node, "operator" + op, target, ())
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
