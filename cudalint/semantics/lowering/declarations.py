"""Lowering of declarations: variables, references, parameters, captures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tree_sitter import Node

from cudalint.semantics import ir
from cudalint.semantics.constants import evaluate_text
from cudalint.semantics.lowering import calls, groups, initializers, lambdas, macros, names, objects, values
from cudalint.semantics.lowering.cache import passed_by_pointer
from cudalint.semantics.lowering.context import Alias, Callee, Context, Pack, Variable, children_of, field, first_child, text_of
from cudalint.semantics.types import UNKNOWN, Type, array_of, pointer_to
from cudalint.semantics.typing import Declared, declarations, declare_local, resolve_type
from cudalint.syntax import kinds
from cudalint.syntax.tree import parse_fragment


@dataclass(slots=True)
class Initial:
    """An initialiser: its raw expression, the arguments of a constructor, or the lambda it is."""

    expr: ir.Expr | None = None
    args: tuple[ir.Expr, ...] | None = None
    callee: Callee | None = None


def declaration(ctx: Context, node: Node, out: list[ir.Stmt]) -> None:
    """A declaration statement."""
    if declare_local(node, ctx.scope):
        return
    for child in node.children_by_field_name(kinds.F_DECLARATOR) if b"auto" in (node.text or b"") else ():
        if child.type == kinds.INIT_DECLARATOR:
            inner = field(child, kinds.F_DECLARATOR)
            if inner is not None and inner.type == kinds.STRUCTURED_BINDING_DECLARATOR:
                _bindings(ctx, child, inner, out)
    for declared in declarations(node, ctx.scope):
        if declared.node.type == kinds.FUNCTION_DECLARATOR:
            initialised = _initialised(ctx, node, declared)
            if initialised is not None:
                variable(ctx, initialised, out)
        elif declared.name:
            variable(ctx, declared, out)


def _initialised(ctx: Context, node: Node, declared: Declared) -> Declared | None:
    """`T x(a[i]);` where `a` is a variable: no declaration of a function."""
    params, name, spelled = (
        field(declared.node, kinds.F_PARAMETERS),
        field(declared.node, kinds.F_DECLARATOR),
        field(node, kinds.F_TYPE),
    )
    first = first_child(params) if params is not None else None
    word = field(first, kinds.F_TYPE) if first is not None else None
    if word is None or name is None or spelled is None or ctx.lookup(text_of(word)) is None:
        return None
    return replace(declared, name=text_of(name), type=resolve_type(spelled, ctx.scope), node=name, init=params)


def variable(ctx: Context, declared: Declared, out: list[ir.Stmt]) -> None:
    """One declared variable."""
    type_ = declared.type
    initial = _initial(ctx, declared, type_)
    if declared.reference and initial.expr is not None and _reference(ctx, declared, initial.expr, out):
        return
    if initial.expr is not None and _takes_type(declared):
        type_ = values.decay(initial.expr).type
    elif type_.kind == "array" and type_.count is None and isinstance(initial.expr, ir.Construct) and not declared.dims:
        type_ = array_of(type_.element or UNKNOWN, len(initial.expr.args))
    elif type_.kind == "unknown":
        type_ = _group(ctx, type_, initial.expr) or type_
    _declare(ctx, declared, type_, initial, out)


def _takes_type(declared: Declared) -> bool:
    """`auto`, also with `*`."""
    return declared.auto and (
        declared.type.kind == "unknown"
        or (declared.type.kind == "pointer" and declared.type.element is not None and declared.type.element.kind == "unknown")
    )


def _group(ctx: Context, type_: Type, init: ir.Expr | None) -> Type | None:
    """The cooperative group that a declared type names; an initialiser may know it better."""
    if init is not None and groups.is_group(init.type):
        return init.type
    return groups.spelled_group(type_.name, lambda text: evaluate_text(text, ctx.scope))


def _initial(ctx: Context, declared: Declared, type_: Type) -> Initial:
    init = declared.init
    if init is None:
        return Initial()
    if init.type == kinds.LAMBDA_EXPRESSION:
        closure = lambdas.closure_of(ctx, init)
        return Initial(closure.plain, callee=closure)
    if init.type == kinds.INITIALIZER_LIST:
        if type_.kind == "struct" and objects.has_constructor(type_):
            return Initial(args=tuple(ctx.raw(n) for n in children_of(init)))
        return Initial(initializers.initializer(ctx, init, type_))
    if init.type in (kinds.ARGUMENT_LIST, kinds.PARAMETER_LIST):
        listed = init.type == kinds.ARGUMENT_LIST
        args = tuple(a.expr for a in calls.arguments(ctx, init)) if listed else _reparsed(ctx, init)
        if type_.kind == "struct":
            return Initial(args=args)
        return Initial(args[0] if len(args) == 1 else ctx.unknown(init, *map(values.decay, args), text="initialiser"))
    return Initial(ctx.raw(init))


# ------------------------------------------------------------------- variables


def _symbol(ctx: Context, declared: Declared, type_: Type, space: ir.Space | None = None) -> ir.Symbol:
    start, end = ctx.span(declared.node)
    if space is None:
        space = ctx.storage(type_, start, declared.name)
    dims = () if ctx.at is not None else tuple((d.start_byte, d.end_byte) for d in declared.dims)
    return ir.Symbol(
        declared.name,
        type_,
        space,
        ctx.path,
        start,
        end,
        dynamic=space == "shared" and declared.extern,
        volatile=declared.volatile,
        dims=dims,
    )


def _space(declared: Declared, type_: Type) -> ir.Space | None:
    """Where a variable with a memory qualifier or of static storage lives; None for automatic ones."""
    if declared.space == "shared":
        return "shared"
    if declared.space == "constant":
        return "constant"
    if declared.space:
        return "global"
    fixed = declared.const or declared.constexpr
    return "global" if declared.static and (not fixed or type_.kind in ("array", "struct")) else None


def _declare(ctx: Context, declared: Declared, type_: Type, initial: Initial, out: list[ir.Stmt]) -> None:
    symbol = _symbol(ctx, declared, type_, _space(declared, type_))
    start, end = symbol.start, symbol.end
    if symbol.space == "shared":
        ctx.shared.append(symbol)
    init: ir.Expr | None = None
    construct: ir.Expr | None = None
    if initial.expr is not None:
        init = values.decay(initial.expr)
        init = (
            objects.as_value(ctx, declared.node, init, type_.kind) if init.type.kind == "struct" else values.convert(init, type_)
        )
    elif type_.kind == "struct" and symbol.space != "shared":
        place = values.base(symbol, start, end)
        args = initial.args or ()
        copied = len(args) == 1 and values.same_type(args[0].type, type_)
        if not copied and objects.has_constructor(type_):
            construct = objects.constructor_call(ctx, declared.node, type_, args, place)
        if construct is None and initial.args is not None:
            init = objects.constructed(ctx, declared.node, type_, args)
    known = init.value if isinstance(init, ir.Const) and _is_fixed(declared, type_) else None
    entry = Variable(symbol, type_, value=known, callee=initial.callee)
    ctx.enter(declared.name, entry)
    out.append(ir.Declare(start, end, symbol, init))
    if construct is not None:
        out.append(ir.Evaluate(start, end, construct))


def _is_fixed(declared: Declared, type_: Type) -> bool:
    return (declared.const or declared.constexpr) and values.is_scalar(type_) and not declared.space and not declared.volatile


def _reference(ctx: Context, declared: Declared, raw: ir.Expr, out: list[ir.Stmt]) -> bool:
    """A reference bound to a place; false if it is bound to a value and so as good as a variable."""
    if isinstance(raw, ir.Var):
        ctx.enter(declared.name, Alias(raw))
        return True
    if isinstance(raw, ir.Load) and isinstance(raw.pointer, ir.Base) and raw.type is raw.pointer.symbol.type:
        ctx.enter(declared.name, Variable(raw.pointer.symbol, raw.type))
        return True
    if isinstance(raw, ir.Call | ir.Construct | ir.Binary | ir.Const | ir.Cast | ir.Lambda | ir.Unknown):
        return False
    pointer = ctx.address(raw)
    if pointer is None:
        return False
    type_ = raw.type if declared.auto or declared.type.kind == "unknown" or raw.type.kind == "array" else declared.type
    symbol = _symbol(ctx, declared, pointer_to(type_), "register")
    ctx.enter(declared.name, Variable(symbol, type_, reference=True))
    out.append(ir.Declare(symbol.start, symbol.end, symbol, pointer))
    return True


def _reparsed(ctx: Context, params: Node) -> tuple[ir.Expr, ...]:
    """The arguments in `dim3 g(a, b);`, which the grammar takes for the parameters of a function."""
    text = ctx.source(params)
    if not ctx.fragment:
        text = macros.expansion(ctx, params, text) or text
    fragment, _, broken = parse_fragment(f"f{text}".encode(), "expression")
    listed = field(fragment, kinds.F_ARGUMENTS)
    if broken or listed is None:
        return (ctx.unknown(params, text="initialiser"),)
    with ctx.expanding(ctx.span(params)):
        return tuple(a.expr for a in calls.arguments(ctx, listed))


def _bindings(ctx: Context, node: Node, declarator: Node, out: list[ir.Stmt]) -> None:
    """`auto [a, b] = value;`."""
    init = field(node, kinds.F_VALUE)
    if init is None:
        return
    raw = ctx.raw(init)
    start, end = ctx.span(node)
    if ctx.address(raw) is None or isinstance(raw, ir.Var):
        type_ = raw.type
        space: ir.Space = "local"
        symbol = ir.Symbol("(bound)", type_, space, ctx.path, start, end)
        out.append(ir.Declare(start, end, symbol, values.decay(raw)))
        raw = ir.Load(start, end, type_, values.base(symbol, start, end))
    for position, name_node in enumerate(children_of(declarator)):
        name = text_of(name_node)
        if raw.type.kind == "array":
            index = values.constant(position, values.integer_type(position), start, end)
            ctx.enter(name, Alias(values.element(values.decay(raw), index, start, end)))
        elif position < len(raw.type.fields):
            ctx.enter(name, Alias(names.member_of(ctx, raw, raw.type.fields[position].name, start, end)))
        else:
            ctx.enter(name, Alias(ctx.unknown(name_node, text="structured binding")))


# ------------------------------------------------------------------ parameters


def parameter(ctx: Context, declared: Declared, callee: Callee | None = None) -> ir.Symbol:
    """Brings a parameter into scope."""
    entry = _parameter(ctx, declared, callee)
    ctx.enter(declared.name, entry)
    return entry.symbol


def _parameter(ctx: Context, declared: Declared, callee: Callee | None) -> Variable:
    by_pointer = passed_by_pointer(declared)
    type_ = declared.type
    start, end = ctx.span(declared.node)
    held = pointer_to(type_) if by_pointer else type_
    space = "register" if by_pointer else ctx.storage(type_, start, declared.name)
    symbol = ir.Symbol(declared.name, held, space, ctx.path, start, end, volatile=declared.volatile, parameter=True)
    return Variable(symbol, type_, reference=by_pointer, callee=callee)


def pack(ctx: Context, elements: Sequence[Declared]) -> tuple[ir.Symbol, ...]:
    """Brings a parameter pack into scope."""
    entries = tuple(_parameter(ctx, e, None) for e in elements)
    ctx.enter(elements[0].name, Pack(entries))
    return tuple(e.symbol for e in entries)


def capture(ctx: Context, node: Node) -> None:
    """`[x = value]`."""
    name, value = field(node, kinds.F_LEFT), field(node, kinds.F_RIGHT)
    if name is not None and value is not None:
        ctx.enter(text_of(name), Alias(ctx.raw(value)))
