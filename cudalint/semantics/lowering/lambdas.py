"""Lambdas: their parameters, bodies and, for generic ones, an instance per set of argument types."""

from __future__ import annotations

from dataclasses import replace

from tree_sitter import Node

from cudalint.semantics import ir
from cudalint.semantics.lowering import declarations, statements, values
from cudalint.semantics.lowering.cache import normalised, passed_by_pointer
from cudalint.semantics.lowering.context import Closure, Context, field
from cudalint.semantics.types import UNKNOWN, VOID, Type
from cudalint.semantics.typing import Declared, lambda_parameters
from cudalint.syntax import kinds

MAX_INSTANCES = 8


def lowered(ctx: Context, node: Node) -> ir.Expr:
    """A lambda used as a value."""
    return closure_of(ctx, node).plain or ctx.unknown(node, text="lambda")


def closure_of(ctx: Context, node: Node) -> Closure:
    """A lambda with the names that it can see."""
    closure = Closure(node, list(ctx.frames), ctx.scope, ctx.at, None, {})
    closure.plain = _body(ctx, closure, None)
    return closure


def instance(ctx: Context, closure: Closure, types: tuple[Type, ...]) -> ir.Lambda | None:
    """The lambda for arguments of these types; the plain one unless it has `auto` parameters that they make known."""
    plain = closure.plain
    if plain is None or not any(p.type.kind == "unknown" for p in plain.params):
        return plain
    found = closure.instances.get(types)
    if found is None:
        if len(closure.instances) >= MAX_INSTANCES:
            return plain
        fragment = closure.at is not None
        with ctx.inside(closure.frames, closure.scope), ctx.written(closure.at, fragment):
            found = _body(ctx, closure, types) or plain
        closure.instances[types] = found
    return found


def _body(ctx: Context, closure: Closure, types: tuple[Type, ...] | None) -> ir.Lambda | None:
    node = closure.node
    body, declarator = field(node, kinds.F_BODY), field(node, kinds.F_DECLARATOR)
    if body is None:
        return None
    saved = ctx.returns, ctx.returns_reference
    ctx.returns, ctx.returns_reference = UNKNOWN, False
    start, end = ctx.span(node)
    try:
        with ctx.block():
            _captures(ctx, node)
            declared = lambda_parameters(declarator, ctx.scope) if declarator is not None else ()
            known = types or ()
            declared = tuple(_typed(p, known[i] if i < len(known) else None) for i, p in enumerate(declared))
            params = tuple(declarations.parameter(ctx, p) for p in declared)
            block = statements.block_of(ctx, body)
    finally:
        ctx.returns, ctx.returns_reference = saved
    result = ir.Lambda(start, end, UNKNOWN, params, block)
    ctx.cache.lambda_pointers[result] = tuple(passed_by_pointer(p) for p in declared)
    ctx.cache.closures[result] = (ctx, closure)
    return result


def _typed(param: Declared, type_: Type | None) -> Declared:
    """A parameter with the type of its argument, where it says `auto`."""
    if param.type.kind != "unknown":
        return normalised(param)
    if type_ is None:
        return normalised(param)
    return normalised(replace(param, type=type_))


def _captures(ctx: Context, node: Node) -> None:
    """`[x = expression]` names a new variable; lowering stands it for the expression's value where that is pure."""
    captures = field(node, kinds.F_CAPTURES)
    if captures is None:
        return
    for child in captures.named_children:
        if child.type == kinds.LAMBDA_CAPTURE_INITIALIZER:
            declarations.capture(ctx, child)


def called(ctx: Context, node: Node, name: str, callee: Closure | ir.Lambda, args: list[ir.Expr]) -> ir.Expr:
    """A call of a lambda: one of this function, or one that a template argument brought here."""
    owner = ctx
    closure: Closure | None
    if isinstance(callee, Closure):
        closure = callee
    else:
        known = ctx.cache.closures.get(callee)
        owner, closure = known if known is not None else (ctx, None)
    function = callee if isinstance(callee, ir.Lambda) else None
    if closure is not None:
        types = tuple(a.type if isinstance(a, ir.Lambda) else values.decay(a).type for a in args)
        function = instance(owner, closure, types) or function
    start, end = ctx.span(node)
    ctx.effects += 1
    if function is None:
        return ir.Call(start, end, UNKNOWN, name, tuple(values.decay(a) for a in args))
    by_pointer = ctx.cache.lambda_pointers.get(function, ())
    passed = tuple(ctx.materialised(a) if i < len(by_pointer) and by_pointer[i] else values.decay(a) for i, a in enumerate(args))
    return ir.Call(start, end, result_of(function.body), name, passed, function)


def result_of(body: ir.Block) -> Type:
    """The type of the first value that a body returns, void if it returns none."""
    pending: list[ir.Stmt] = [body]
    while pending:
        statement = pending.pop()
        if isinstance(statement, ir.Return):
            return VOID if statement.value is None else statement.value.type
        if isinstance(statement, ir.Block):
            pending.extend(reversed(statement.body))
        elif isinstance(statement, ir.If):
            if statement.other is not None:
                pending.append(statement.other)
            pending.append(statement.then)
        elif isinstance(statement, ir.Loop):
            pending.append(statement.body)
        elif isinstance(statement, ir.Switch):
            pending.extend(block for _, block in reversed(statement.cases))
    return VOID
