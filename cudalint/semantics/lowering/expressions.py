"""Lowering of literals and of expressions that are neither names nor operators."""

from __future__ import annotations

from functools import lru_cache

from tree_sitter import Node

from cudalint.semantics import ir, literals
from cudalint.semantics.constants import evaluate, evaluate_typed
from cudalint.semantics.lowering import calls, lambdas, macros, statements, values
from cudalint.semantics.lowering.context import Context, Pack, children_of, expression, field, first_child, text_of
from cudalint.semantics.types import UINT64, UNKNOWN, Type, pointer_to
from cudalint.semantics.typing import sizeof
from cudalint.syntax import kinds


@lru_cache(maxsize=4096)
def _number(text: str) -> tuple[int | float, Type] | None:
    return literals.number(text)


@expression(kinds.NUMBER_LITERAL)
def _number_literal(ctx: Context, node: Node) -> ir.Expr:
    found = _number(text_of(node))
    if found is None:
        return ctx.unknown(node, text="literal")
    return ir.Const(*ctx.span(node), found[1], found[0])


@expression(kinds.CHAR_LITERAL, kinds.TRUE, kinds.FALSE, kinds.USER_DEFINED_LITERAL)
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
