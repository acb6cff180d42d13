"""Overloaded operators, conversions and constructors of classes."""

from __future__ import annotations

from collections.abc import Sequence

from tree_sitter import Node

from cudalint.semantics import ir
from cudalint.semantics.lowering import calls, values
from cudalint.semantics.lowering.context import Context
from cudalint.semantics.types import INT, Type
from cudalint.semantics.typing import Record, constructors, methods


def overloaded(ctx: Context, node: Node, name: str, left: ir.Expr, right: Sequence[ir.Expr]) -> ir.Expr | None:
    """A call of the project's overloaded operator, None if it has none for these operands."""
    args = [calls.Argument(e, e.type) for e in right]
    if left.type.kind == "struct" and left.type.record is not None:
        candidates = methods(left.type, name)
        if candidates:
            reference = ctx.cache.resolve(name, candidates, (), calls.shapes(args), calls.record_of(left.type))
            if reference is not None:
                return calls.call_known(ctx, node, reference, args, name, left.type.name, calls.receiver_of(ctx, left))
    if name in ("operator[]", "operator->"):
        return None
    every = [calls.Argument(left, left.type), *args]
    reference = ctx.cache.free_operator(ctx.scope, name, calls.shapes(every))
    return None if reference is None else calls.call_known(ctx, node, reference, every, name)


def as_value(ctx: Context, node: Node, expr: ir.Expr, kind: str = "") -> ir.Expr:
    """A struct through its conversion operator to a pointer or number (of `kind`, if given), anything else as it is."""
    record = expr.type.record
    if expr.type.kind != "struct" or not isinstance(record, Record):
        return expr
    for name, functions in record.definition.members.functions.items():
        if not name.startswith("operator ") or kind == "struct":
            continue
        reference = ctx.cache.resolve(name, functions, (), (), record)
        if reference is None:
            continue
        to = ctx.cache.signature(reference).returns
        if (
            to.kind == kind
            or (not kind and (values.is_scalar(to) or to.kind == "pointer"))
            or (values.is_scalar(to) and kind in NUMBERS)
        ):
            return values.decay(calls.call_known(ctx, node, reference, (), name, expr.type.name, calls.receiver_of(ctx, expr)))
    return expr


NUMBERS = frozenset(("int", "uint", "float", "bool"))


def has_constructor(type_: Type) -> bool:
    """Whether a type is built by a constructor of its own rather than field by field."""
    return type_.record is not None and bool(constructors(type_))


def functional_cast(ctx: Context, node: Node, type_: Type, listed: Node) -> ir.Expr:
    """`T(args)` of a type that is spelled out."""
    return converted(ctx, node, type_, calls.arguments(ctx, listed))


def converted(ctx: Context, node: Node, type_: Type, args: Sequence[calls.Argument]) -> ir.Expr:
    """`T(args)`."""
    start, end = ctx.span(node)
    if type_.kind == "struct":
        return constructed(ctx, node, type_, tuple(a.expr for a in args))
    if not args:
        return values.null(type_, start, end)
    if len(args) == 1:
        return values.cast(values.decay(args[0].expr), type_, start, end)
    return ctx.unknown(node, *calls.values_of(args), text="cast of many", type_=type_)


def constructed(ctx: Context, node: Node, type_: Type, args: Sequence[ir.Expr]) -> ir.Expr:
    """A struct value from constructor arguments: by its constructor, or field by field."""
    start, end = ctx.span(node)
    if len(args) == 1 and values.same_type(args[0].type, type_):
        return args[0]
    if type_.record is not None:
        symbol = ctx.temporary(type_, (start, end))
        place = values.base(symbol, start, end)
        built = constructor_call(ctx, node, type_, args, place)
        if built is not None:
            return ir.Binary(start, end, type_, ",", built, ir.Load(start, end, type_, place))
    if len(args) == 1 and args[0].type.kind in ("struct", "unknown") and len(type_.fields) != 1:
        return values.cast(values.decay(args[0]), type_, start, end)
    return construct(ctx, node, type_, tuple(values.decay(a) for a in args))


def constructor_call(ctx: Context, node: Node, type_: Type, args: Sequence[ir.Expr], place: ir.Expr) -> ir.Expr | None:
    """The call of a constructor on the object at `place`, None if the class has none that fits."""
    candidates = constructors(type_)
    if not candidates:
        return None
    listed = [calls.Argument(a, a if isinstance(a, ir.Lambda) else a.type) for a in args]
    reference = ctx.cache.resolve(type_.name, candidates, (), calls.shapes(listed), calls.record_of(type_))
    if reference is None:
        return None
    return calls.call_known(ctx, node, reference, listed, type_.name, type_.name, place)


def construct(ctx: Context, node: Node, type_: Type, args: tuple[ir.Expr, ...]) -> ir.Expr:
    start, end = ctx.span(node)
    if type_.name == "dim3" and len(args) < 3:
        args += tuple(ir.Const(start, end, INT, 1) for _ in range(3 - len(args)))
    converted_args = tuple(values.convert(a, type_.fields[i].type) if i < len(type_.fields) else a for i, a in enumerate(args))
    return ir.Construct(start, end, type_, converted_args)
