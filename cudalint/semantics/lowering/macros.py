"""Macro uses in expressions and statements: expanded, parsed as a fragment, lowered at the place of the use."""

from __future__ import annotations

import re

from tree_sitter import Node

from cudalint.semantics import constants, ir
from cudalint.semantics.lowering.context import MAX_EXPANSION, Context, children_of, field, text_of
from cudalint.semantics.preprocess import Macro, expand_text
from cudalint.syntax import kinds
from cudalint.syntax.tree import parse_fragment

_TYPEOF = re.compile(r"\b(?:__typeof__|typeof|__typeof)\s*\(\s*[^()]*\)\s*(?=\w+\s*=)")
PLACEHOLDER = "cudalint_attached_body"


def macro_named(ctx: Context, node: Node) -> Macro | None:
    """The macro that an identifier in front of `(` uses, None in text that is expanded already."""
    if ctx.fragment or node.type != kinds.IDENTIFIER:
        return None
    name = text_of(node)
    macro = ctx.unit.macro(name, node.start_byte)
    if macro is not None and macro.params is None and ctx.lookup(name) is not None:
        return None
    return macro


def expansion(ctx: Context, node: Node, text: str) -> str | None:
    """`text` with its macros expanded as they stand at `node`; None once the function's budget is spent."""
    offset = node.start_byte

    def lookup(name: str) -> Macro | None:
        return ctx.unit.macro(name, offset)

    budget = min(1 << 16, MAX_EXPANSION - ctx.expanded)
    expanded = expand_text(text, lookup, budget) if budget > 0 else None
    ctx.expanded += len(expanded) if expanded is not None else 1 << 16
    return expanded


def named_value(ctx: Context, node: Node, name: str) -> ir.Expr:
    """An object-like macro as an expression."""
    found = constants.named(name, ctx.scope)
    if found is not None:
        return ir.Const(*ctx.span(node), found[1], found[0])
    return expanded_expression(ctx, node, name)


def expanded_expression(ctx: Context, node: Node, text: str | None = None) -> ir.Expr:
    """A macro use as a raw expression."""
    text = ctx.source(node) if text is None else text
    expanded = text if ctx.fragment else expansion(ctx, node, text)
    if expanded is None:
        return ctx.unknown(node, text="macro too large")
    expanded = _TYPEOF.sub("auto ", expanded)
    if not expanded.strip():
        return ctx.unknown(node, text="empty macro")
    fragment, _, broken = parse_fragment(expanded.rstrip("; \t\n").encode(), "expression")
    if broken:
        return ctx.unknown(node, text="macro " + text.partition("(")[0])
    with ctx.expanding(ctx.span(node)):
        return ctx.raw(fragment)


_JOINS = re.compile(r"&&|\|\||[(\[{]|[)\]}]")


def misread_comparison(ctx: Context, node: Node, first: Node | None) -> ir.Expr | None:
    """`i < n && j > (m)`, which the grammar takes for a call of a template i<n && j>, read again operand by operand.

    `first` is the leftmost part of the expression `node`; None unless it is such a template of a variable's name.
    """
    if first is not None and first.type == kinds.CALL_EXPRESSION:
        first = field(first, kinds.F_FUNCTION)
    name = field(first, kinds.F_NAME) if first is not None and first.type == kinds.TEMPLATE_FUNCTION else None
    if name is None or ctx.lookup(text_of(name)) is None:
        return None
    text = ctx.source(node)
    depth, start, pieces = 0, 0, ""
    for found in _JOINS.finditer(text):
        token = found.group()
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        elif depth == 0:
            pieces += f"({text[start : found.start()]}) {token} "
            start = found.end()
    if not pieces:
        return None
    return expanded_expression(ctx, node, f"{pieces}({text[start:]})")


def expanded_statements(ctx: Context, node: Node, text: str, out: list[ir.Stmt], body: Node | None = None) -> bool:
    """A macro use as statements, spliced where it stands; false if its expansion is none.

    `body` is the statement behind a loop macro: it becomes the body of whatever the macro opens.
    """
    expanded = text if ctx.fragment else expansion(ctx, node, text)
    if expanded is None:
        return False
    suffix = f"{{ {PLACEHOLDER}; }}" if body is not None else ";"
    fragment, _, broken = parse_fragment(f"{expanded}{suffix}".encode(), "statements")
    if broken:
        return False
    if body is not None:
        ctx.attached.append(body)
    try:
        with ctx.expanding(ctx.span(node)):
            for child in children_of(fragment):
                ctx.statement(child, out)
    finally:
        if body is not None:
            ctx.attached.pop()
    return True


def lower_attached(ctx: Context, out: list[ir.Stmt]) -> None:
    """The body of a loop macro, at the placeholder in its expansion."""
    body = ctx.attached[-1]
    with ctx.written(None, False):
        ctx.statement(body, out)


def is_placeholder(node: Node) -> bool:
    """Whether an expression stands for the body behind a loop macro."""
    return node.type == kinds.IDENTIFIER and text_of(node) == PLACEHOLDER


def opens_statement(ctx: Context, node: Node) -> bool:
    """Whether a call that ends without `;` is a macro that opens a loop or branch."""
    function = field(node, kinds.F_FUNCTION)
    return function is not None and macro_named(ctx, function) is not None
