"""Lowering of calls: functions of the project, methods, constructors, lambdas, what CUDA provides, and the rest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tree_sitter import Node

from cudalint.semantics import ir
from cudalint.semantics.constants import evaluate
from cudalint.semantics.lowering import builtins, groups, initializers, lambdas, macros, names, objects, packs, values
from cudalint.semantics.lowering.cache import Explicit, Shapes
from cudalint.semantics.lowering.context import Callee, Closure, Context, Variable, children_of, field, text_of
from cudalint.semantics.symbols import FunctionDef
from cudalint.semantics.types import INT, UNKNOWN, VOID, Type
from cudalint.semantics.typing import (
    Record,
    member_field,
    methods,
    resolve_template_arguments,
    resolve_type,
)
from cudalint.syntax import kinds

_CASTS = frozenset(("static_cast", "reinterpret_cast", "const_cast", "dynamic_cast"))
_BIT_CASTS = frozenset(("bit_cast", "__builtin_bit_cast"))
_TYPE_NODES = frozenset((kinds.PRIMITIVE_TYPE, kinds.SIZED_TYPE_SPECIFIER, kinds.TYPE_DESCRIPTOR, kinds.TEMPLATE_TYPE))


@dataclass(slots=True)
class Argument:
    """An argument: its raw expression and what template deduction sees."""

    expr: ir.Expr
    shape: Type | ir.FunctionRef | ir.Lambda | None


@dataclass(slots=True)
class Named:
    """What stands before the parentheses of a call by name."""

    name: str
    explicit: Node | None
    qualifier: str = ""
    scope: Node | None = None


def call(ctx: Context, node: Node) -> ir.Expr:
    """A call expression as a raw expression (a function that returns a reference gives a place)."""
    function, listed = field(node, kinds.F_FUNCTION), field(node, kinds.F_ARGUMENTS)
    if function is None or listed is None:
        return ctx.unknown(node, text="call")
    kind = function.type
    if any(child.type == kinds.KERNEL_CALL_SYNTAX for child in node.named_children):
        ctx.effects += 1
        named = name_of(function)
        name = named.name if named is not None else text_of(function)
        return ir.Call(*ctx.span(node), VOID, name, _passed(arguments(ctx, listed)), None, "<<<>>>")
    if macros.macro_named(ctx, function) is not None:
        return macros.expanded_expression(ctx, node)
    if kind == kinds.FIELD_EXPRESSION:
        return _method_call(ctx, node, function, listed)
    if kind in _TYPE_NODES:
        return objects.functional_cast(ctx, node, resolve_type(function, ctx.scope), listed)
    named = name_of(function)
    if named is None:
        return _call_of_value(ctx, node, function, listed)
    return _named_call(ctx, node, named, function, listed)


def name_of(function: Node) -> Named | None:
    """The name that a call spells, None where it calls the value of an expression."""
    if function.type == kinds.IDENTIFIER:
        return Named(text_of(function), None)
    if function.type == kinds.TEMPLATE_FUNCTION:
        name = field(function, kinds.F_NAME)
        return None if name is None else Named(text_of(name), field(function, kinds.F_ARGUMENTS))
    if function.type != kinds.QUALIFIED_IDENTIFIER:
        return None
    last: Node | None = function
    scope: Node | None = None
    while last is not None and last.type in (kinds.QUALIFIED_IDENTIFIER, kinds.DEPENDENT_NAME):
        if last.type == kinds.QUALIFIED_IDENTIFIER:
            scope = field(last, kinds.F_SCOPE)
            last = field(last, kinds.F_NAME)
        else:
            last = next(iter(last.named_children), None)
    if last is None:
        return None
    text = function.text or b""
    qualifier = text[: last.start_byte - function.start_byte].decode("utf-8", "replace").strip()
    qualifier = qualifier.removesuffix("template").strip().removesuffix("::").strip()
    if last.type in (kinds.TEMPLATE_FUNCTION, kinds.TEMPLATE_METHOD, kinds.TEMPLATE_TYPE):
        name = field(last, kinds.F_NAME)
        return None if name is None else Named(text_of(name), field(last, kinds.F_ARGUMENTS), qualifier, scope)
    return Named(text_of(last), None, qualifier, scope)


# ------------------------------------------------------------------- arguments


def arguments(ctx: Context, listed: Node) -> list[Argument]:
    """The arguments of a call, packs expanded."""
    result: list[Argument] = []
    for node in children_of(listed):
        if node.type == kinds.PARAMETER_PACK_EXPANSION:
            pattern = field(node, kinds.F_PATTERN)
            if pattern is not None:
                result.extend(Argument(e, e.type) for e in packs.expanded(ctx, pattern))
            continue
        result.append(_argument(ctx, node))
    return result


def _argument(ctx: Context, node: Node) -> Argument:
    callee = _named_callee(ctx, node)
    if callee is not None:
        return callee
    expr = ctx.raw(node)
    return Argument(expr, expr if isinstance(expr, ir.Lambda) else expr.type)


def _named_callee(ctx: Context, node: Node) -> Argument | None:
    """A lambda or function that is passed by name."""
    if node.type == kinds.IDENTIFIER:
        name = text_of(node)
        entry = ctx.lookup(name)
        if isinstance(entry, Variable) and entry.callee is not None:
            callee = entry.callee
            shape = callee.plain if isinstance(callee, Closure) else callee
            return Argument(names.read(ctx, entry, node), shape)
        if entry is not None or name in names.SPECIALS:
            return None
    elif node.type not in (kinds.TEMPLATE_FUNCTION, kinds.QUALIFIED_IDENTIFIER):
        return None
    named = name_of(node)
    if named is None or macros.macro_named(ctx, node) is not None or ctx.scope.value(named.name) is not None:
        return None
    if named.qualifier.endswith(">"):
        return None
    candidates = [f for f in ctx.scope.functions(_joined(named)) if f.body is not None]
    if len(candidates) != 1:
        return None
    definition = candidates[0]
    explicit = _explicit(ctx, named)
    if len(explicit) < len(definition.template):
        if not definition.template:
            return Argument(ctx.unknown(node, text="function"), ir.FunctionRef(definition))
        return None
    bindings = tuple((p.name, v) for p, v in zip(definition.template, explicit, strict=False) if v is not None)
    return Argument(ctx.unknown(node, text="function"), ir.FunctionRef(definition, bindings))


def _explicit(ctx: Context, named: Named) -> Explicit:
    return resolve_template_arguments(named.explicit, ctx.scope) if named.explicit is not None else ()


def _joined(named: Named) -> str:
    return f"{named.qualifier}::{named.name}" if named.qualifier else named.name


def values_of(args: Sequence[Argument]) -> tuple[ir.Expr, ...]:
    return tuple(values.decay(a.expr) for a in args)


def _passed(args: Sequence[Argument]) -> tuple[ir.Expr, ...]:
    """Arguments of a function nothing is known of: objects that are no plain values go by address."""
    return tuple(_handed(a.expr) for a in args)


def _handed(expr: ir.Expr) -> ir.Expr:
    type_ = expr.type
    if isinstance(expr, ir.Load) and (type_.kind == "unknown" or (type_.kind == "struct" and type_.record is not None)):
        return expr.pointer
    return values.decay(expr)


def shapes(args: Sequence[Argument]) -> Shapes:
    return tuple([a.shape for a in args])


# ---------------------------------------------------------------- calls by name


def _named_call(ctx: Context, node: Node, named: Named, function: Node, listed: Node) -> ir.Expr:
    name = named.name
    if not named.qualifier:
        entry = ctx.lookup(name)
        if isinstance(entry, Variable):
            return _call_of_variable(ctx, node, name, entry, listed)
        if entry is not None:
            return _call_of_value(ctx, node, function, listed)
    if named.explicit is not None and (name in _CASTS or name in _BIT_CASTS):
        spelled = _spelled_cast(ctx, node, name, named.explicit, listed)
        if spelled is not None:
            return spelled
    args = arguments(ctx, listed)
    bound = None if named.qualifier else ctx.scope.bound(name)
    if isinstance(bound, ir.FunctionRef):
        return call_known(ctx, node, bound, args, name)
    provided = _provided(ctx, node, named, args)
    if provided is not None:
        return provided
    provided_name = builtins.is_intrinsic(name) and named.qualifier in builtins.STANDARD
    if not provided_name or any(a.expr.type.kind == "struct" for a in args):
        found = _project_call(ctx, node, named, function, args)
        if found is not None:
            return found
    explicit = _explicit(ctx, named)
    ctx.effects += 1
    type_ = _member_result(ctx, named) or _collective(args, name) or builtins.result_type(ctx, name, values_of(args), explicit)
    return ir.Call(*ctx.span(node), type_, name, _passed(args), None, named.qualifier)


def _member_result(ctx: Context, named: Named) -> Type | None:
    """`std::numeric_limits<T>::max()` has type T."""
    if named.scope is None or named.scope.type != kinds.TEMPLATE_TYPE or "numeric_limits" not in named.qualifier:
        return None
    listed = field(named.scope, kinds.F_ARGUMENTS)
    known = resolve_template_arguments(listed, ctx.scope) if listed is not None else ()
    return known[0] if known and isinstance(known[0], Type) else None


def _collective(args: Sequence[Argument], name: str) -> Type | None:
    """`cg::sync(block)` and `cg::reduce(tile, value, op)`."""
    if not args or not groups.is_group(args[0].expr.type):
        return None
    if name in ("sync", "wait"):
        return VOID
    return args[1].expr.type if name.startswith(("reduce", "inclusive_scan", "exclusive_scan")) and len(args) > 1 else None


def _spelled_cast(ctx: Context, node: Node, name: str, explicit: Node, listed: Node) -> ir.Expr | None:
    types, operands = children_of(explicit), children_of(listed)
    if not types or len(operands) != 1:
        return None
    if name in _BIT_CASTS:
        return values.cast(ctx.value(operands[0]), resolve_type(types[0], ctx.scope), *ctx.span(node))
    return initializers.cast_to(ctx, node, types[0], operands[0])


def _provided(ctx: Context, node: Node, named: Named, args: Sequence[Argument]) -> ir.Expr | None:
    """A call of something that CUDA or the standard library provides and that becomes more than a `Call`."""
    name = named.name
    if named.qualifier in builtins.STANDARD:
        handler = builtins.HANDLERS.get(name)
        if handler is not None:
            raw = [a.expr for a in args]
            result = handler(ctx, node, name, [values.decay(r) for r in raw] if name not in _KEEP_PLACES else raw)
            if result is not None:
                return result
        if name.startswith("make_"):
            vector = builtins.made_vector(ctx, name)
            if vector is not None and len(args) == len(vector.fields) and not any(a.expr.type.kind == "struct" for a in args):
                return objects.construct(ctx, node, vector, values_of(args))
    explicit = _explicit(ctx, named) if named.explicit is not None and name == "tiled_partition" else ()
    sizes = [e if isinstance(e, int) else None for e in explicit]
    group = groups.factory(name, sizes, values_of(args))
    if group is not None:
        ctx.effects += 1
        return ir.Call(*ctx.span(node), group, name, values_of(args), None, named.qualifier)
    return None


_KEEP_PLACES = frozenset(("move", "forward", "as_const", "launder", "addressof", "__addressof", "__builtin_addressof", "swap"))


def _project_call(ctx: Context, node: Node, named: Named, function: Node, args: Sequence[Argument]) -> ir.Expr | None:
    name = named.name
    explicit = _explicit(ctx, named)
    record_type = _scope_type(ctx, named)
    if record_type is not None and record_type.kind == "struct":
        found = _member_call(ctx, node, record_type, name, explicit, args, _own_receiver(ctx))
        if found is not None:
            return found
    if not named.qualifier and ctx.this is not None and ctx.this.type.element is not None:
        found = _member_call(ctx, node, ctx.this.type.element, name, explicit, args, _own_receiver(ctx))
        if found is not None:
            return found
    if "<" not in named.qualifier:
        candidates = ctx.scope.functions(_joined(named))
        if candidates:
            key = (ctx.unit, _joined(named), ctx.scope.namespace)
            reference = ctx.cache.resolve(key, candidates, explicit, shapes(args), ctx.scope.record)
            if reference is not None:
                reference = _with_tiles(reference, args)
                receiver = None if is_static(reference) else _own_receiver(ctx)
                return call_known(ctx, node, reference, args, name, named.qualifier, receiver)
    type_ = _named_type(ctx, named, function)
    if type_ is not None and type_.kind != "unknown":
        return objects.converted(ctx, node, type_, args)
    if not named.qualifier and named.explicit is None and len(args) < 2 and name in ctx.unbound_types:
        operand = values_of(args)[0] if args else ctx.unknown(node, text="value of unknown type")
        return ir.Cast(*ctx.span(node), UNKNOWN, operand)
    return None


def record_of(type_: Type) -> Record | None:
    return type_.record if isinstance(type_.record, Record) else None


_TILE_PARAMETER = re.compile(r"thread_block_tile\s*<\s*(\w+)")


def _with_tiles(reference: ir.FunctionRef, args: Sequence[Argument]) -> ir.FunctionRef:
    """Template parameters that only the size of a tile argument fixes."""
    definition = reference.definition
    if not isinstance(definition, FunctionDef) or definition.parameter_list is None:
        return reference
    missing = {p.name for p in definition.template if p.kind == "value"} - {name for name, _ in reference.bindings}
    if not missing:
        return reference
    found: dict[str, object] = {}
    for param, arg in zip(children_of(definition.parameter_list), args, strict=False):
        size = groups.tile_size(arg.expr.type)
        spelled = _TILE_PARAMETER.search(text_of(param)) if size is not None else None
        if spelled is not None and spelled.group(1) in missing:
            found[spelled.group(1)] = size
    if not found:
        return reference
    known = dict(reference.bindings) | found
    return ir.FunctionRef(definition, tuple((p.name, known[p.name]) for p in definition.template if p.name in known))


def is_static(reference: ir.FunctionRef) -> bool:
    """Whether a function takes no object."""
    definition = reference.definition
    return getattr(definition, "owner", None) is None or bool(getattr(definition, "is_static", False))


def _own_receiver(ctx: Context) -> ir.Expr | None:
    this = ctx.this
    return None if this is None else ir.Var(0, 0, this.type, this)


def _scope_type(ctx: Context, named: Named) -> Type | None:
    """The class that qualifies a call."""
    if named.scope is None:
        return None
    if named.scope.type == kinds.TEMPLATE_TYPE:
        return resolve_type(named.scope, ctx.scope)
    return ctx.scope.type(named.qualifier)


def _named_type(ctx: Context, named: Named, function: Node) -> Type | None:
    """The type that a functional cast names."""
    if named.explicit is None:
        return ctx.scope.type(_joined(named))
    return resolve_type(function, ctx.scope)


def _member_call(
    ctx: Context,
    node: Node,
    type_: Type,
    name: str,
    explicit: Explicit,
    args: Sequence[Argument],
    receiver: ir.Expr | None,
    qualifier: str | None = None,
) -> ir.Expr | None:
    candidates = methods(type_, name)
    if not candidates:
        return None
    reference = ctx.cache.resolve(name, candidates, explicit, shapes(args), record_of(type_))
    if reference is None:
        return None
    if is_static(reference):
        receiver = None
    elif receiver is not None and receiver.start == 0:
        receiver = replace(receiver, start=ctx.span(node)[0], end=ctx.span(node)[1])
    return call_known(ctx, node, reference, args, name, type_.name if qualifier is None else qualifier, receiver)


def call_known(
    ctx: Context,
    node: Node,
    reference: ir.FunctionRef,
    args: Sequence[Argument],
    name: str,
    qualifier: str = "",
    receiver: ir.Expr | None = None,
) -> ir.Expr:
    """A call of a function of the project, defaults filled in, references passed as pointers."""
    signature = ctx.cache.signature(reference)
    passed: list[ir.Expr] = []
    for position, param in enumerate(signature.params):
        if position < len(args):
            passed.append(_bound(ctx, node, args[position].expr, param.type, signature.by_pointer[position]))
        elif param.init is not None:
            passed.append(_default(ctx, node, signature.scope, param.init, param.type))
    ctx.effects += 1
    start, end = ctx.span(node)
    result = ir.Call(start, end, ctx.cache.result_type(reference), name, tuple(passed), reference, qualifier, receiver)
    return values.load(result, start, end) if signature.returns_reference else result


def _bound(ctx: Context, node: Node, expr: ir.Expr, type_: Type, by_pointer: bool) -> ir.Expr:
    """An argument as its parameter takes it."""
    if by_pointer:
        return ctx.materialised(expr)
    if isinstance(expr, ir.Construct) and expr.type.kind == "unknown" and type_.kind == "struct":
        return replace(expr, type=type_)
    if expr.type.kind == "struct" and type_.kind in ("pointer", *objects.NUMBERS):
        return objects.as_value(ctx, node, expr, type_.kind)
    return values.convert(values.decay(expr), type_)


def _default(ctx: Context, node: Node, scope: object, init: Node, type_: Type) -> ir.Expr:
    value = evaluate(init, scope)  # type: ignore[arg-type]
    start, end = ctx.span(node)
    if value is not None and values.is_scalar(type_):
        return values.constant(value, type_, start, end)
    if value is not None:
        return ir.Const(start, end, type_ if type_.kind == "pointer" else INT, value)
    with ctx.inside([{}], scope), ctx.expanding((start, end)):  # type: ignore[arg-type]
        if init.type == kinds.INITIALIZER_LIST:
            return initializers.initializer(ctx, init, type_)
        return ctx.value(init)


# ------------------------------------------------------- calls of variables etc.


def _call_of_variable(ctx: Context, node: Node, name: str, entry: Variable, listed: Node) -> ir.Expr:
    args = arguments(ctx, listed)
    if entry.callee is not None:
        return _call_callee(ctx, node, name, entry.callee, args)
    place = names.read(ctx, entry, node)
    return _call_object(ctx, node, name, place, args)


def _call_callee(ctx: Context, node: Node, name: str, callee: Callee, args: Sequence[Argument]) -> ir.Expr:
    if isinstance(callee, ir.FunctionRef):
        return call_known(ctx, node, callee, args, name)
    return lambdas.called(ctx, node, name, callee, [a.expr for a in args])


def _call_object(ctx: Context, node: Node, name: str, place: ir.Expr, args: Sequence[Argument]) -> ir.Expr:
    """A call of a function object or function pointer."""
    if place.type.kind == "struct":
        found = _member_call(ctx, node, place.type, "operator()", (), args, receiver_of(ctx, place))
        if found is not None:
            return found
    ctx.effects += 1
    return ir.Call(*ctx.span(node), UNKNOWN, name, _passed(args), None, "", values.decay(place))


def receiver_of(ctx: Context, place: ir.Expr) -> ir.Expr:
    if isinstance(place, ir.Var):
        return place if place.symbol.type.kind == "unknown" or groups.is_group(place.type) else ctx.materialised(place)
    return ctx.materialised(place)


def _call_of_value(ctx: Context, node: Node, function: Node, listed: Node) -> ir.Expr:
    while function.type == kinds.PARENTHESIZED_EXPRESSION:
        inner = children_of(function)
        if len(inner) != 1:
            break
        function = inner[0]
    entry = ctx.lookup(text_of(function)) if function.type == kinds.IDENTIFIER else None
    if function.type == kinds.IDENTIFIER and (entry is None or isinstance(entry, Variable)):
        return _named_call(ctx, node, Named(text_of(function), None), function, listed)
    if function.type == kinds.POINTER_EXPRESSION and (function.text or b"").startswith(b"*"):
        pointed = field(function, kinds.F_ARGUMENT)
        if pointed is not None:
            place = ctx.value(pointed)
            target = place.type.element
            if place.type.kind != "struct" and (target is None or target.kind != "struct"):
                return _call_object(ctx, node, "", place, arguments(ctx, listed))
            place = place if target is None else values.load(place, place.start, place.end)
            return _call_object(ctx, node, "", place, arguments(ctx, listed))
    if function.type == kinds.LAMBDA_EXPRESSION:
        closure = lambdas.closure_of(ctx, function)
        return lambdas.called(ctx, node, "", closure, [a.expr for a in arguments(ctx, listed)])
    place = ctx.raw(function)
    args = arguments(ctx, listed)
    if isinstance(place, ir.Lambda):
        return lambdas.called(ctx, node, "", place, [a.expr for a in args])
    return _call_object(ctx, node, "", place, args)


# --------------------------------------------------------------------- methods


def _method_call(ctx: Context, node: Node, function: Node, listed: Node) -> ir.Expr:
    owner, member = field(function, kinds.F_ARGUMENT), field(function, kinds.F_FIELD)
    if owner is None or member is None:
        return ctx.unknown(node, text="method call")
    name, explicit_node = _method_name(member)
    operator = field(function, kinds.F_OPERATOR)
    if operator is not None and operator.type == "->":
        pointer = ctx.value(owner)
        if pointer.type.kind == "struct":
            pointer = objects.overloaded(ctx, node, "operator->", pointer, ()) or pointer
        place = values.load(pointer, pointer.start, pointer.end) if pointer.type.kind == "pointer" else pointer
    else:
        place = ctx.raw(owner)
    args = arguments(ctx, listed)
    type_ = place.type
    if groups.is_group(type_):
        return _group_call(ctx, node, type_, name, args)
    explicit = resolve_template_arguments(explicit_node, ctx.scope) if explicit_node is not None else ()
    if type_.kind == "struct":
        found = _member_call(ctx, node, type_, name, explicit, args, receiver_of(ctx, place))
        if found is not None:
            return found
        functor = member_field(type_, name)
        if functor is not None:
            start, end = ctx.span(node)
            return _call_object(ctx, node, name, names.member_of(ctx, place, name, start, end), args)
    ctx.effects += 1
    receiver = place.pointer if isinstance(place, ir.Load) else values.decay(place)
    result = groups.operation_type(name, values_of(args)) if name in _LIKE_ARGUMENT else None
    qualifier = type_.name if type_.kind != "unknown" else ""
    return ir.Call(*ctx.span(node), result or UNKNOWN, name, _passed(args), None, qualifier, receiver)


# collectives of groups and of cub
_LIKE_ARGUMENT = frozenset(("shfl", "shfl_up", "shfl_down", "shfl_xor", "Sum", "Reduce"))


def _method_name(member: Node) -> tuple[str, Node | None]:
    while member.type in (kinds.DEPENDENT_NAME, kinds.QUALIFIED_IDENTIFIER):
        qualified = member.type == kinds.QUALIFIED_IDENTIFIER
        inner = field(member, kinds.F_NAME) if qualified else next(iter(member.named_children), None)
        if inner is None:
            break
        member = inner
    if member.type == kinds.TEMPLATE_METHOD:
        name = field(member, kinds.F_NAME)
        return (text_of(name) if name is not None else ""), field(member, kinds.F_ARGUMENTS)
    return text_of(member), None


def _group_call(ctx: Context, node: Node, type_: Type, name: str, args: Sequence[Argument]) -> ir.Expr:
    start, end = ctx.span(node)
    uint3 = ctx.scope.type("dim3" if name.endswith(("dim", "threads", "dim_blocks")) else "uint3") or UNKNOWN
    known = groups.member(type_, name, uint3, start, end)
    if known is not None:
        return known
    ctx.effects += 1
    passed = _passed(args)
    return ir.Call(start, end, groups.operation_type(name, passed) or UNKNOWN, name, passed, None, type_.name)
