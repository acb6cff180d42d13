"""Lowering of statements."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tree_sitter import Node

from cudalint.semantics import ir
from cudalint.semantics.constants import evaluate, evaluate_text
from cudalint.semantics.lowering import declarations, initializers, macros, values
from cudalint.semantics.lowering.context import (
    Context,
    Variable,
    children_of,
    field,
    first_child,
    statement,
    text_of,
)
from cudalint.semantics.symbols import active_children
from cudalint.semantics.types import BOOL, INT, UNKNOWN, array_of, pointer_to
from cudalint.semantics.typing import declare_local, resolve_type
from cudalint.syntax import kinds

_UNROLL = re.compile(r"\s*(no)?unroll\b\s*\(?([^)]*)\)?")
_DECLARES = re.compile(r"\s*(\w+)[\w:\s]*<[^;=(){}\"]*>\s*\w+\s*(?:[=({]|$)")
_POINTS_TO_ARRAY = re.compile(r"\s*([A-Za-z_][\w:\s]*)\(\s*[*&]\s*(?:const\s+|__restrict__\s+)?\w+\s*\)\s*\[[^=]*\]\s*(?:=|$|,)")
_OPENS = re.compile(r"\b(?:for|while|if)\s*\(")

# What loop macros of frameworks expand to whose headers are rarely part of a project.
_KNOWN_LOOPS = {
    "CUDA_KERNEL_LOOP": "int",
    "CUDA_1D_KERNEL_LOOP": "int",
    "CUDA_KERNEL_LOOP_TYPE": "",
    "CUDA_1D_KERNEL_LOOP_T": "",
}


# ---------------------------------------------------------------------- blocks


def body_children(ctx: Context, node: Node) -> list[Node]:
    """The statements of a block that the target compiles."""
    return children_of(node) if ctx.fragment else active_children(node, ctx.unit)


def sequence(ctx: Context, nodes: Sequence[Node], out: list[ir.Stmt]) -> None:
    """Statements in order; a loop macro takes the statement behind it."""
    position = 0
    while position < len(nodes):
        node = nodes[position]
        position += 1
        if node.type == kinds.EXPRESSION_STATEMENT and node.has_error and position < len(nodes):
            call = first_child(node)
            if call is not None and _opens(ctx, call):
                body = nodes[position]
                if macros.expanded_statements(ctx, call, ctx.source(call), out, body) or _known_loop(ctx, call, body, out):
                    position += 1
                    continue
        ctx.statement(node, out)


def _opens(ctx: Context, call: Node) -> bool:
    """Whether a call that ends without `;` is the head of a loop or branch."""
    function = field(call, kinds.F_FUNCTION)
    if call.type != kinds.CALL_EXPRESSION or call.has_error or function is None or function.type != kinds.IDENTIFIER:
        return False
    if text_of(function) in _KNOWN_LOOPS:
        return True
    if macros.macro_named(ctx, function) is None:
        return False
    expanded = macros.expansion(ctx, call, ctx.source(call)) or ""
    return expanded.rstrip().endswith(")") and _OPENS.search(expanded) is not None


def block_of(ctx: Context, node: Node) -> ir.Block:
    """A statement as a block with a scope of its own."""
    start, end = ctx.span(node)
    out: list[ir.Stmt] = []
    with ctx.block():
        if node.type == kinds.COMPOUND_STATEMENT:
            sequence(ctx, body_children(ctx, node), out)
        else:
            sequence(ctx, (node,), out)
    return ir.Block(start, end, tuple(out))


def _wrapped(start: int, end: int, before: list[ir.Stmt], node: ir.Stmt, out: list[ir.Stmt]) -> None:
    """`node`, in a block with what must run before it."""
    out.append(ir.Block(start, end, (*before, node)) if before else node)


@statement(kinds.COMPOUND_STATEMENT)
def _compound(ctx: Context, node: Node, out: list[ir.Stmt]) -> None:
    out.append(block_of(ctx, node))


@statement(
    kinds.STATIC_ASSERT_DECLARATION,
    kinds.ATTRIBUTE_DECLARATION,
    kinds.TEMPLATE_INSTANTIATION,
    kinds.FRIEND_DECLARATION,
    kinds.LINKAGE_SPECIFICATION,
)
def _ignored(_ctx: Context, _node: Node, _out: list[ir.Stmt]) -> None:
    """Nothing that runs."""


@statement(
    kinds.USING_DECLARATION,
    kinds.ALIAS_DECLARATION,
    kinds.TYPE_DEFINITION,
    kinds.NAMESPACE_ALIAS_DEFINITION,
    kinds.TEMPLATE_DECLARATION,
    kinds.STRUCT_SPECIFIER,
    kinds.CLASS_SPECIFIER,
    kinds.UNION_SPECIFIER,
    kinds.ENUM_SPECIFIER,
)
def _local_name(ctx: Context, node: Node, _out: list[ir.Stmt]) -> None:
    declare_local(node, ctx.scope)


@statement(kinds.DECLARATION)
def _declaration(ctx: Context, node: Node, out: list[ir.Stmt]) -> None:
    if node.has_error and _broken(node):
        _skipped(ctx, node, out)
        return
    declarations.declaration(ctx, node, out)


def _broken(node: Node) -> bool:
    """Whether a statement has an error other than a missing `;` at its end."""
    children = node.children
    if any(c.is_error or (c.has_error and not c.is_missing) for c in children):
        return True
    return any(c.is_missing for c in children[:-1])


def _skipped(ctx: Context, node: Node, out: list[ir.Stmt]) -> None:
    ctx.has_errors = True
    out.append(ir.Evaluate(*ctx.span(node), ctx.unknown(node, text="syntax error")))


@statement("")
def _other(ctx: Context, node: Node, out: list[ir.Stmt]) -> None:
    if node.is_error:
        _skipped(ctx, node, out)
        return
    out.append(ir.Evaluate(*ctx.span(node), ctx.unknown(node, text=node.type)))


# ----------------------------------------------------------------- expressions


@statement(kinds.EXPRESSION_STATEMENT)
def _expression_statement(ctx: Context, node: Node, out: list[ir.Stmt]) -> None:
    expr = first_child(node)
    if expr is None:
        return
    if node.has_error and _broken(node):
        _skipped(ctx, node, out)
        return
    if ctx.fragment and macros.is_placeholder(expr) and ctx.attached:
        macros.lower_attached(ctx, out)
        return
    if expr.type in _MISREAD and _misread_declaration(ctx, expr, out):
        return
    used = field(expr, kinds.F_FUNCTION) if expr.type == kinds.CALL_EXPRESSION else expr
    macro = macros.macro_named(ctx, used) if used is not None else None
    if used is not None and macro is not None and (macro.params is None or used is not expr):
        if not macros.expanded_statements(ctx, expr, ctx.source(expr), out):
            out.append(ir.Evaluate(*ctx.span(expr), ctx.unknown(expr, text="macro " + text_of(used))))
        return
    out.append(ir.Evaluate(*ctx.span(expr), ctx.value(expr)))


def _misread_declaration(ctx: Context, expr: Node, out: list[ir.Stmt]) -> bool:
    """`ns::tile<32> t = x;` and `float (*row)[4] = x;`, which the grammar may take for expressions."""
    left = field(expr, kinds.F_LEFT)
    if left is None or left.type not in _MISREAD_LEFT:
        return False
    spelled = left.text or b""
    if b"<" not in spelled and b"(" not in spelled:
        return False
    text = ctx.source(expr)
    found = _DECLARES.match(text)
    if found is not None and ctx.lookup(found.group(1)) is None:
        return macros.expanded_statements(ctx, expr, "typename " + text, out)
    found = _POINTS_TO_ARRAY.match(text)
    if found is not None and ctx.scope.type(found.group(1).strip()) is not None:
        return macros.expanded_statements(ctx, expr, "const " + text, out)
    return False


_MISREAD = frozenset((kinds.BINARY_EXPRESSION, kinds.COMMA_EXPRESSION, kinds.ASSIGNMENT_EXPRESSION))
_MISREAD_LEFT = frozenset((kinds.BINARY_EXPRESSION, kinds.ASSIGNMENT_EXPRESSION, kinds.SUBSCRIPT_EXPRESSION))


@statement(kinds.FUNCTION_DEFINITION)
def _loop_macro(ctx: Context, node: Node, out: list[ir.Stmt]) -> None:
    """`LOOP(i, n) { ... }`: no function is defined in a body, so its name is a macro."""
    body, declarator = field(node, kinds.F_BODY), field(node, kinds.F_DECLARATOR)
    name = field(declarator, kinds.F_DECLARATOR) if declarator is not None else None
    if body is None or declarator is None or name is None:
        return
    known = macros.macro_named(ctx, name) is not None
    if known and macros.expanded_statements(ctx, declarator, ctx.source(declarator), out, body):
        return
    if not _known_loop(ctx, declarator, body, out):
        out.append(_unknown_loop(ctx, declarator, body))


def _known_loop(ctx: Context, use: Node, body: Node, out: list[ir.Stmt]) -> bool:
    """A grid-stride loop of a well-known macro whose definition is not at hand."""
    text = ctx.source(use)
    found = re.match(r"(\w+)\s*\(", text)
    if found is None or found.group(1) not in _KNOWN_LOOPS:
        return False
    type_ = _KNOWN_LOOPS[found.group(1)]
    args = [a.strip() for a in text[found.end() : -1].split(",")]
    if len(args) < (2 if type_ else 3):
        return False
    counter, bound = args[0], ",".join(args[1:] if type_ else args[1:-1])
    head = (
        f"for ({type_ or args[-1]} {counter} = blockIdx.x * blockDim.x + threadIdx.x; {counter} < ({bound});"
        f" {counter} += blockDim.x * gridDim.x)"
    )
    return macros.expanded_statements(ctx, use, head, out, body)


def _unknown_loop(ctx: Context, use: Node, body: Node) -> ir.Stmt:
    """A loop of which only its body is known; names that its macro must declare are unknown integers."""
    start, end = ctx.span(use)
    with ctx.block():
        params = field(use, kinds.F_PARAMETERS)
        for child in children_of(params) if params is not None else ():
            name = text_of(child)
            if name.isidentifier() and ctx.lookup(name) is None and ctx.scope.value(name) is None:
                ctx.enter(name, Variable(ir.Symbol(name, INT, "register", ctx.path, start, end), INT))
        block = block_of(ctx, body)
    return ir.Loop(start, end, "for", None, ir.Unknown(start, end, BOOL, (), "loop macro"), None, block)


# -------------------------------------------------------------------- branches


def _condition(ctx: Context, clause: Node, before: list[ir.Stmt]) -> ir.Expr:
    """A condition with what it declares."""
    initializer = field(clause, kinds.F_INITIALIZER)
    if initializer is not None:
        inner = first_child(initializer) if initializer.type == kinds.INIT_STATEMENT else initializer
        if inner is not None:
            ctx.statement(inner, before)
    value = field(clause, kinds.F_VALUE)
    if value is None:
        value = first_child(clause)
    if value is None or value.is_error:
        return ctx.unknown(clause, text="condition", type_=BOOL)
    if value.type == kinds.DECLARATION:
        declarations.declaration(ctx, value, before)
        last = before[-1] if before else None
        if isinstance(last, ir.Declare):
            start, end = ctx.span(value)
            return ir.Var(start, end, last.symbol.type, last.symbol)
        return ctx.unknown(value, text="condition", type_=BOOL)
    if clause.has_error and _broken(clause):
        ctx.has_errors = True
        return ctx.unknown(value, text="syntax error", type_=BOOL)
    return values.as_bool(ctx.value(value))


@statement(kinds.IF_STATEMENT)
def _if(ctx: Context, node: Node, out: list[ir.Stmt]) -> None:
    clause, then, other = (field(node, n) for n in (kinds.F_CONDITION, kinds.F_CONSEQUENCE, kinds.F_ALTERNATIVE))
    if clause is None or then is None:
        _skipped(ctx, node, out)
        return
    start, end = ctx.span(node)
    other_body = _else_body(other)
    before: list[ir.Stmt] = []
    with ctx.block():
        condition = _condition(ctx, clause, before)
        known = values.truth(condition)
        keyword = node.child(1)
        if known is None and keyword is not None and keyword.type == "constexpr":
            value = field(clause, kinds.F_VALUE)
            folded = evaluate(value, ctx.scope) if value is not None else None
            known = None if folded is None else bool(folded)
        if known is not None:
            live = then if known else other_body
            if live is not None:
                _wrapped(start, end, before, block_of(ctx, live), out)
            else:
                out.extend(before)
            return
        first = block_of(ctx, then)
        second = block_of(ctx, other_body) if other_body is not None else None
    _wrapped(start, end, before, ir.If(start, end, condition, first, second), out)


def _else_body(node: Node | None) -> Node | None:
    return first_child(node) if node is not None and node.type == kinds.ELSE_CLAUSE else node


@statement(kinds.SWITCH_STATEMENT)
def _switch(ctx: Context, node: Node, out: list[ir.Stmt]) -> None:
    clause, body = field(node, kinds.F_CONDITION), field(node, kinds.F_BODY)
    if clause is None or body is None:
        _skipped(ctx, node, out)
        return
    start, end = ctx.span(node)
    before: list[ir.Stmt] = []
    cases: list[tuple[tuple[ir.Expr, ...], ir.Block]] = []
    with ctx.block():
        value = _condition(ctx, clause, before)
        labels: list[ir.Expr] = []
        default = False
        for child in body_children(ctx, body):
            if child.type != kinds.CASE_STATEMENT:
                continue
            label = field(child, kinds.F_VALUE)
            if label is None:
                default = True
            else:
                labels.append(ctx.value(label))
            statements = [c for c in body_children(ctx, child) if c != label]
            if not statements:
                continue
            inner: list[ir.Stmt] = []
            sequence(ctx, statements, inner)
            cases.append((() if default else tuple(labels), ir.Block(*ctx.span(child), tuple(inner))))
            labels, default = [], False
    _wrapped(start, end, before, ir.Switch(start, end, value, tuple(cases)), out)


# ----------------------------------------------------------------------- loops


def _unroll(ctx: Context, node: Node) -> int | None:
    """The factor of the `#pragma unroll` before a loop: 0 unrolls it all."""
    if ctx.at is not None:
        return None
    pragma = ctx.unit.parsed.pragma_before(node.start_byte)
    found = _UNROLL.match(pragma) if pragma else None
    if found is None:
        return None
    if found.group(1):
        return 1
    text = found.group(2).strip()
    if not text:
        return 0
    factor = evaluate_text(text, ctx.scope)
    return int(factor) if factor is not None and factor >= 0 else 0


@statement(kinds.FOR_STATEMENT)
def _for(ctx: Context, node: Node, out: list[ir.Stmt]) -> None:
    start, end = ctx.span(node)
    first, test, update, body = (field(node, n) for n in (kinds.F_INITIALIZER, kinds.F_CONDITION, kinds.F_UPDATE, kinds.F_BODY))
    before: list[ir.Stmt] = []
    with ctx.block():
        if first is not None:
            if first.type == kinds.DECLARATION:
                ctx.statement(first, before)
            else:
                before.append(ir.Evaluate(*ctx.span(first), ctx.value(first)))
        condition = values.as_bool(ctx.value(test)) if test is not None else None
        known = None if condition is None else values.truth(condition)
        init = ir.Block(start, before[-1].end, tuple(before)) if before else None
        if known is False:
            if init is not None:
                out.append(init)
            return
        step = ctx.value(update) if update is not None else None
        block = block_of(ctx, body) if body is not None else ir.Block(end, end, ())
    out.append(ir.Loop(start, end, "for", init, None if known else condition, step, block, _unroll(ctx, node)))


@statement(kinds.WHILE_STATEMENT)
def _while(ctx: Context, node: Node, out: list[ir.Stmt]) -> None:
    clause, body = field(node, kinds.F_CONDITION), field(node, kinds.F_BODY)
    if clause is None or body is None:
        _skipped(ctx, node, out)
        return
    start, end = ctx.span(node)
    before: list[ir.Stmt] = []
    with ctx.block():
        condition: ir.Expr | None = _condition(ctx, clause, before)
        known = values.truth(condition) if condition is not None else None
        if known is False:
            return
        block = block_of(ctx, body)
    loop = ir.Loop(start, end, "while", None, None if known else condition, None, block, _unroll(ctx, node))
    _wrapped(start, end, before, loop, out)


@statement(kinds.DO_STATEMENT)
def _do(ctx: Context, node: Node, out: list[ir.Stmt]) -> None:
    clause, body = field(node, kinds.F_CONDITION), field(node, kinds.F_BODY)
    if body is None:
        _skipped(ctx, node, out)
        return
    start, end = ctx.span(node)
    block = block_of(ctx, body)
    condition = values.as_bool(ctx.value(clause)) if clause is not None else ctx.unknown(node, text="condition", type_=BOOL)
    known = values.truth(condition)
    if known is False and not _leaves(block):
        out.append(block)
        return
    out.append(ir.Loop(start, end, "do", None, None if known else condition, None, block, _unroll(ctx, node)))


def _leaves(block: ir.Block) -> bool:
    """Whether a `break` or `continue` in a block concerns the loop around it."""
    pending: list[ir.Stmt] = list(block.body)
    while pending:
        current = pending.pop()
        if isinstance(current, ir.Break | ir.Continue):
            return True
        if isinstance(current, ir.Block):
            pending.extend(current.body)
        elif isinstance(current, ir.If):
            pending.extend(current.then.body)
            if current.other is not None:
                pending.extend(current.other.body)
        elif isinstance(current, ir.Switch):
            pending.extend(s for _, b in current.cases for s in b.body if isinstance(s, ir.Continue | ir.If | ir.Block))
    return False


@statement(kinds.FOR_RANGE_LOOP)
def _range_for(ctx: Context, node: Node, out: list[ir.Stmt]) -> None:
    """A range-for over an array counts; over anything else only its body is known."""
    type_node, declarator, right, body = (field(node, n) for n in (kinds.F_TYPE, kinds.F_DECLARATOR, kinds.F_RIGHT, kinds.F_BODY))
    if right is None or body is None or declarator is None:
        _skipped(ctx, node, out)
        return
    start, end = ctx.span(node)
    with ctx.block():
        raw = ctx.raw(right) if right.type != kinds.INITIALIZER_LIST else initializers.initializer(ctx, right, UNKNOWN)
        if isinstance(raw, ir.Construct) and raw.args and raw.type.kind == "unknown":
            raw = _listed(ctx, raw, out)
        reference = declarator.type == kinds.REFERENCE_DECLARATOR
        name_node = first_child(declarator) if reference else declarator
        name = text_of(name_node) if name_node is not None else ""
        array = values.decay(raw)
        element = array.type.element if array.type.kind == "pointer" and array.type.element is not None else UNKNOWN
        index = ir.Symbol("(index)", INT, "register", ctx.path, start, end)
        place = ir.Var(start, end, INT, index)
        pointer = ir.PtrAdd(start, end, pointer_to(element), array, place, element.size)
        count = raw.type.count if raw.type.kind == "array" else None
        head: list[ir.Stmt] = []
        if reference:
            symbol = ir.Symbol(name, pointer_to(element), "register", ctx.path, *ctx.span(declarator))
            head.append(ir.Declare(start, end, symbol, pointer))
            ctx.enter(name, Variable(symbol, element, reference=True))
        else:
            type_ = resolve_type(type_node, ctx.scope) if type_node is not None else UNKNOWN
            type_ = element if type_.kind == "unknown" else type_
            at = ctx.span(declarator)
            symbol = ir.Symbol(name, type_, ctx.storage(type_, at[0], name), ctx.path, *at)
            head.append(ir.Declare(start, end, symbol, ir.Load(start, end, element, pointer)))
            ctx.enter(name, Variable(symbol, type_))
        block = block_of(ctx, body)
    condition: ir.Expr
    if count is None:
        condition = ir.Unknown(start, end, BOOL, (), "range")
    else:
        condition = ir.Binary(start, end, BOOL, "<", place, ir.Const(start, end, INT, count))
    one = ir.Binary(start, end, INT, "+", place, ir.Const(start, end, INT, 1))
    step = ir.Assign(start, end, INT, place, one, post=True, compound=True)
    init = ir.Block(start, end, (ir.Declare(start, end, index, ir.Const(start, end, INT, 0)),))
    whole = ir.Block(block.start, block.end, (*head, *block.body))
    out.append(ir.Loop(start, end, "for", init, condition, step, whole, _unroll(ctx, node)))


def _listed(ctx: Context, value: ir.Construct, out: list[ir.Stmt]) -> ir.Expr:
    """A braced list as an array in memory."""
    type_ = array_of(value.args[0].type, len(value.args))
    at = (value.start, value.end)
    symbol = ctx.temporary(type_, at)
    out.append(ir.Declare(*at, symbol, ir.Construct(*at, type_, value.args)))
    return ir.Load(*at, type_, values.base(symbol, *at))


# ---------------------------------------------------------------------- leaving


@statement(kinds.BREAK_STATEMENT)
def _break(ctx: Context, node: Node, out: list[ir.Stmt]) -> None:
    out.append(ir.Break(*ctx.span(node)))


@statement(kinds.CONTINUE_STATEMENT)
def _continue(ctx: Context, node: Node, out: list[ir.Stmt]) -> None:
    out.append(ir.Continue(*ctx.span(node)))


@statement(kinds.RETURN_STATEMENT)
def _return(ctx: Context, node: Node, out: list[ir.Stmt]) -> None:
    start, end = ctx.span(node)
    value = first_child(node)
    if value is None:
        out.append(ir.Return(start, end, None))
        return
    if node.has_error and _broken(node):
        ctx.has_errors = True
        out.append(ir.Return(start, end, ctx.unknown(value, text="syntax error")))
        return
    if value.type == kinds.INITIALIZER_LIST:
        result: ir.Expr = initializers.initializer(ctx, value, ctx.returns)
    elif ctx.returns_reference:
        result = ctx.materialised(ctx.raw(value))
    else:
        result = values.convert(ctx.value(value), ctx.returns)
    if result.type.kind == "void":
        out.append(ir.Evaluate(start, end, result))
        out.append(ir.Return(start, end, None))
        return
    out.append(ir.Return(start, end, result))


@statement(kinds.LABELED_STATEMENT, kinds.ATTRIBUTED_STATEMENT)
def _labeled(ctx: Context, node: Node, out: list[ir.Stmt]) -> None:
    inner = [c for c in children_of(node) if c.type not in (kinds.STATEMENT_IDENTIFIER, kinds.ATTRIBUTE_DECLARATION)]
    sequence(ctx, inner, out)


@statement(kinds.TRY_STATEMENT)
def _try(ctx: Context, node: Node, out: list[ir.Stmt]) -> None:
    body = field(node, kinds.F_BODY)
    if body is not None:
        out.append(block_of(ctx, body))
