"""Lowering: one function in one instantiation, from its tree to `ir`."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

from tree_sitter import Node

from cudalint.semantics import ir
from cudalint.semantics.lowering import (
    calls,
    declarations,
    expressions,
    initializers,
    names,
    objects,
    operators,
    packs,
    statements,
    values,
)
from cudalint.semantics.lowering.cache import Cache
from cudalint.semantics.lowering.context import Callee, Context, Variable, children_of, field, text_of
from cudalint.semantics.lowering.lambdas import result_of
from cudalint.semantics.scope import scope_of
from cudalint.semantics.types import INT, UNKNOWN, Type, pointer_to
from cudalint.semantics.typing import Declared, member_field, resolve_type, template_argument
from cudalint.syntax import kinds

if TYPE_CHECKING:
    from cudalint.semantics.program import Program
    from cudalint.semantics.symbols import FunctionDef

MAX_PASSES = 4
HANDLERS = (expressions, initializers, names, operators, packs, statements)
"""The modules that register what they lower when they are imported."""

_caches: WeakKeyDictionary[Program, Cache] = WeakKeyDictionary()


def lower(reference: ir.FunctionRef, program: Program) -> ir.Function:
    """The body of a function in one instantiation; the same object for equal references of one program.

    Never raises on broken or unusual code: what cannot be lowered becomes `Unknown`, and `has_errors` says whether
    a statement had to be skipped.
    """
    cache = _caches.get(program)
    if cache is None:
        cache = _caches[program] = Cache(_lower)
    return _lower(cache, _completed(reference))


def _completed(reference: ir.FunctionRef) -> ir.FunctionRef:
    """The reference with default template arguments for those that are missing."""
    definition = cast("FunctionDef", reference.definition)
    known = dict(reference.bindings)
    if all(p.default is None or p.name in known for p in definition.template):
        return reference
    own = {p.name for p in definition.template}
    bindings = {name: value for name, value in reference.bindings if name not in own}
    for param in definition.template:
        value = known.get(param.name)
        if value is None and param.default is not None:
            value = template_argument(param.default, scope_of(definition, bindings))
        if value is not None:
            bindings[param.name] = value
    return ir.FunctionRef(definition, tuple(bindings.items()))


def _lower(cache: Cache, reference: ir.FunctionRef) -> ir.Function:
    found = cache.functions.get(reference)
    if found is None:
        cache.in_progress.add(reference)
        try:
            found = _passes(cache, reference)
        except RecursionError:
            found = _given_up(cache, reference)
        finally:
            cache.in_progress.discard(reference)
        cache.functions[reference] = found
    return found


def _given_up(cache: Cache, reference: ir.FunctionRef) -> ir.Function:
    """What is left of a function that the stack is too small for."""
    definition = cast("FunctionDef", reference.definition)
    body = ir.Block(definition.header_end, definition.end, ())
    returns = cache.signature(reference).returns
    place = definition.start, definition.end
    return ir.Function(reference, definition.name, definition.path, (), body, returns, None, *place, has_errors=True)


def _passes(cache: Cache, reference: ir.FunctionRef) -> ir.Function:
    """Lowers again when it turns out that scalars need an address and so live in memory."""
    addressed: frozenset[tuple[int, str]] = frozenset()
    for _ in range(MAX_PASSES - 1):
        function, wanted = _pass(cache, reference, addressed)
        if wanted <= addressed:
            return function
        addressed |= wanted
    return _pass(cache, reference, addressed)[0]


def _pass(
    cache: Cache, reference: ir.FunctionRef, addressed: frozenset[tuple[int, str]]
) -> tuple[ir.Function, frozenset[tuple[int, str]]]:
    definition = cast("FunctionDef", reference.definition)
    signature = cache.signature(reference)
    ctx = Context(cache, reference, definition, signature.scope.child())
    ctx.scope.variable_type = ctx.type_of
    ctx.addressed = addressed
    ctx.returns_reference = signature.returns_reference
    ctx.returns = (signature.returns.element or UNKNOWN) if signature.returns_reference else signature.returns
    ctx.this = _this(ctx, definition)
    _unbound(ctx, definition)
    params = _parameters(ctx, signature.params)
    out: list[ir.Stmt] = []
    body = definition.body
    if body is not None:
        _initializers(ctx, definition, out)
        if body.type == kinds.COMPOUND_STATEMENT:
            statements.sequence(ctx, statements.body_children(ctx, body), out)
        else:
            ctx.statement(body, out)
    start, end = (body.start_byte, body.end_byte) if body is not None else (definition.start, definition.end)
    block = ir.Block(start, end, tuple(out))
    returns = signature.returns if signature.returns.kind != "unknown" else result_of(block)
    function = ir.Function(
        reference,
        definition.name,
        ctx.path,
        params,
        block,
        returns,
        ctx.this,
        definition.start,
        definition.end,
        tuple(ctx.shared),
        ctx.has_errors,
    )
    return function, frozenset(ctx.wanted)


def _this(ctx: Context, definition: FunctionDef) -> ir.Symbol | None:
    record = ctx.scope.record
    if record is None or definition.owner is None or definition.is_static:
        return None
    start, end = definition.name_start, definition.name_end
    return ir.Symbol("this", pointer_to(record.type), "register", ctx.path, start, end, parameter=True)


def _parameters(ctx: Context, declared: tuple[Declared, ...]) -> tuple[ir.Symbol, ...]:
    callees = {name: value for name, value in ctx.reference.bindings if isinstance(value, ir.FunctionRef | ir.Lambda)}
    params: list[ir.Symbol] = []
    bundles: dict[str, list[Declared]] = {}
    for param in declared:
        if param.pack:
            bundles.setdefault(param.name, []).append(param)
        else:
            params.append(declarations.parameter(ctx, param, _callee(param, callees)))
    for elements in bundles.values():
        params.extend(declarations.pack(ctx, elements))
    return tuple(params)


def _callee(param: Declared, callees: dict[str, ir.FunctionRef | ir.Lambda]) -> Callee | None:
    """What a parameter calls whose type is a template parameter bound to a function or lambda."""
    if not callees:
        return None
    node: Node | None = param.node
    while node is not None and node.type not in _PARAMETERS:
        node = node.parent
    spelled = field(node, kinds.F_TYPE) if node is not None else None
    return callees.get(text_of(spelled)) if spelled is not None else None


_PARAMETERS = frozenset((kinds.PARAMETER_DECLARATION, kinds.OPTIONAL_PARAMETER_DECLARATION, kinds.VARIADIC_PARAMETER_DECLARATION))


def _unbound(ctx: Context, definition: FunctionDef) -> None:
    """Template parameters that nothing fixes are unknown numbers, the same everywhere."""
    owner = definition.owner
    for param in (*definition.owner_template, *definition.template, *(owner.template if owner is not None else ())):
        if param.pack or not param.name or ctx.scope.bound(param.name) is not None:
            continue
        if param.kind == "type":
            ctx.unbound_types.add(param.name)
        elif param.kind == "value":
            spelled = field(param.node, kinds.F_TYPE)
            type_ = resolve_type(spelled, ctx.scope) if spelled is not None else INT
            if type_.is_integer or type_.kind == "unknown":
                start, end = param.node.start_byte, param.node.end_byte
                symbol = ir.Symbol(param.name, type_, "register", ctx.path, start, end, parameter=True)
                ctx.enter(param.name, Variable(symbol, type_))


def _initializers(ctx: Context, definition: FunctionDef, out: list[ir.Stmt]) -> None:
    """The member initialisers of a constructor."""
    if ctx.this is None or ctx.this.type.element is None:
        return
    for child in definition.node.children:
        if child.type == kinds.FIELD_INITIALIZER_LIST:
            for item in children_of(child):
                if item.type == kinds.FIELD_INITIALIZER:
                    _initializer(ctx, item, ctx.this.type.element, out)


def _initializer(ctx: Context, item: Node, type_: Type, out: list[ir.Stmt]) -> None:
    children = children_of(item)
    if len(children) < 2 or ctx.this is None:
        return
    name, listed = text_of(children[0]), children[-1]
    start, end = ctx.span(item)
    found = member_field(type_, name)
    if found is None:
        args = tuple(values.decay(a.expr) for a in calls.arguments(ctx, listed))
        out.append(ir.Evaluate(start, end, ctx.unknown(item, *args, text="base initialiser")))
        return
    target = names.own_member(ctx, name, start, end)
    if not isinstance(target, ir.Load):
        return
    if found.type.kind == "array":
        return
    if listed.type == kinds.INITIALIZER_LIST:
        value = initializers.initializer(ctx, listed, found.type)
    else:
        value = objects.converted(ctx, item, found.type, calls.arguments(ctx, listed))
    out.append(ir.Evaluate(start, end, operators.assign(ctx, item, target, values.decay(value))))
