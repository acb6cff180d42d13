"""Expansion of parameter packs."""

from __future__ import annotations

from tree_sitter import Node

from cudalint.semantics import ir
from cudalint.semantics.lowering import values
from cudalint.semantics.lowering.context import Context, Pack, expression, field, text_of
from cudalint.syntax import kinds


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
