"""Lowering of casts and braced lists."""

from __future__ import annotations

from tree_sitter import Node

from cudalint.semantics import ir
from cudalint.semantics.lowering import objects, values
from cudalint.semantics.lowering.context import Context, children_of, expression, field, text_of
from cudalint.semantics.types import INT, UNKNOWN, Type, pointer_to
from cudalint.semantics.typing import resolve_type
from cudalint.syntax import kinds


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
        return objects.constructed(ctx, node, type_, (raw,))
    return values.cast(objects.as_value(ctx, node, values.decay(raw), type_.kind), type_, start, end)


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
        if not any(n.type == kinds.INITIALIZER_PAIR for n in nodes) and objects.has_constructor(type_):
            return objects.constructed(ctx, node, type_, tuple(ctx.raw(n) for n in nodes))
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
    positions = {f.name: i for i, f in enumerate(fields)}
    for node in nodes:
        if node.type == kinds.INITIALIZER_PAIR:
            designator = field(node, kinds.F_DESIGNATOR)
            name = text_of(designator).lstrip(".").strip() if designator is not None else ""
            position = positions.get(name, position)
        args[position] = _item(ctx, node, fields[position].type if position < len(fields) else UNKNOWN)
        position += 1
    last = max(args, default=-1)
    filled = (args.get(i) or values.null(fields[i].type if i < len(fields) else INT, start, end) for i in range(last + 1))
    return ir.Construct(start, end, type_, tuple(filled))
