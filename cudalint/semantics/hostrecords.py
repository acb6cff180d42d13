"""Struct values of host code: aggregate initialisation, default member initialisers, constructors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cudalint.semantics.hostflow import MISSING
from cudalint.semantics.symbols import StructDef, declarator_name, field_declarators, text_of
from cudalint.syntax import kinds as k

if TYPE_CHECKING:
    from tree_sitter import Node

    from cudalint.semantics.hostvalues import Aggregate, Evaluator, Frame, HostValue
    from cudalint.semantics.symbols import FunctionDef
    from cudalint.semantics.types import Type

MAX_FIELDS = 40
"""Members of a struct that are followed."""


def construct_record(evaluator: Evaluator, kind: Type, values: Sequence[HostValue]) -> HostValue:
    """The value of a struct of type `kind` built from `values`; None if the project does not define the struct."""
    from cudalint.semantics.hostvalues import Aggregate

    definition = getattr(kind.record, "definition", None)
    if not isinstance(definition, StructDef):
        return None
    if len(values) == 1 and isinstance(values[0], Aggregate):
        return values[0]
    fields = _fields(definition)
    constructor = _constructor(evaluator, definition, len(values))
    if constructor is not None:
        return _constructed(evaluator, definition, constructor, fields, values)
    found: dict[str, HostValue] = {}
    for position, (name, target, default) in enumerate(fields):
        found[name] = _member(evaluator, definition, target, default, values[position] if position < len(values) else None)
    return Aggregate(found, None, tuple(found))


def _fields(definition: StructDef) -> list[tuple[str, Node | None, Node | None]]:
    """Name, type and default value of the data members."""
    fields: list[tuple[str, Node | None, Node | None]] = []
    for declaration in definition.members.fields[:MAX_FIELDS]:
        target = declaration.child_by_field_name(k.F_TYPE)
        for declarator, default, _ in field_declarators(declaration):
            name = declarator_name(declarator)
            if name is not None:
                plain = target if declarator.type == k.FIELD_IDENTIFIER else None
                fields.append((text_of(name), plain, default))
    return fields


def _member(
    evaluator: Evaluator, definition: StructDef, target: Node | None, default: Node | None, value: HostValue
) -> HostValue:
    context = evaluator.file_context(definition.unit)
    if value is None and default is not None:
        value = evaluator.value(default, context)
    if target is None:
        return value
    if value is None:
        return evaluator.default_of(target, context)
    return evaluator.convert(value, target, context)


def _constructor(evaluator: Evaluator, definition: StructDef, count: int) -> FunctionDef | None:
    declared = definition.members.functions.get(definition.name, ())
    fitting = [f for f in declared if evaluator.index.accepts(f, count)]
    for function in fitting:
        if function.body is not None:
            return function
    for function in definition.unit.find_functions(definition.name) if fitting else ():
        if function.body is not None and function.owner is definition and evaluator.index.accepts(function, count):
            return function
    return None


def _constructed(
    evaluator: Evaluator,
    definition: StructDef,
    constructor: FunctionDef,
    fields: Sequence[tuple[str, Node | None, Node | None]],
    values: Sequence[HostValue],
) -> Aggregate:
    from cudalint.semantics.hostvalues import Aggregate

    frame = evaluator.activation(constructor, tuple(values))
    context = evaluator.context_of(frame)
    initialisers = evaluator.index.initialisers(constructor)
    found: dict[str, HostValue] = {}
    for name, target, default in fields:
        value: HostValue = None
        if constructor.body is not None:
            written = evaluator.flow.exit_value(name, constructor.body, context)
            value = None if written is MISSING else written
        if value is None and name in initialisers:
            value = _initialised(evaluator, initialisers[name], target, frame)
        found[name] = _member(evaluator, definition, target, default, value)
    return Aggregate(found, None, tuple(found))


def _initialised(evaluator: Evaluator, node: Node, target: Node | None, frame: Frame) -> HostValue:
    from cudalint.semantics.hostvalues import Items

    context = evaluator.context_of(frame)
    values = tuple(evaluator.value(child, context) for child in node.named_children if child.type != k.COMMENT)
    if target is None:
        return values[0] if len(values) == 1 else None
    return evaluator.construct(target, Items(values), context)
