"""Instantiated classes: which specialisation, laid out how, with which members."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cudalint.semantics import constants, deduction, resolve
from cudalint.semantics import scope as scopes
from cudalint.semantics.literals import Typed
from cudalint.semantics.preprocess import macro_arguments
from cudalint.semantics.symbols import (
    EnumDef,
    FunctionDef,
    GlobalVar,
    StructDef,
    TemplateParam,
    TypeAlias,
    text_of,
)
from cudalint.semantics.traits import Trait
from cudalint.semantics.types import Field, Type
from cudalint.syntax import kinds as k

if TYPE_CHECKING:
    from tree_sitter import Node

    from cudalint.semantics.scope import Bindings, Scope, Value

_MAX_BASES = 16
_MAX_OFFSET = 1 << 40


@dataclass(frozen=True, slots=True)
class TemplateRef:
    """A template that is not applied yet: a template template argument."""

    definition: StructDef | TypeAlias


class Record:
    """One instantiation of a class.

    definition  the class, or the specialisation that these arguments choose
    bindings    the template parameters of `definition`, those of enclosing classes first
    arguments   the arguments of the primary template
    outer       the instantiation around a nested class
    data_size   bytes that a derived class leaves to it, and `plain` whether it is plain data, once it is laid out
    """

    __slots__ = (
        "_bases",
        "_laying",
        "_scope",
        "_type",
        "arguments",
        "bindings",
        "data_size",
        "definition",
        "enclosing",
        "outer",
        "plain",
    )

    def __init__(
        self,
        definition: StructDef,
        bindings: Bindings,
        arguments: tuple[Value | None, ...],
        outer: Record | None,
        enclosing: Scope | None = None,
    ) -> None:
        self.definition = definition
        self.bindings = bindings
        self.arguments = arguments
        self.outer = outer
        self.enclosing = enclosing
        self._type: Type | None = None
        self._laying = False
        self._scope: Scope | None = None
        self._bases: list[Type] | None = None
        self.data_size: int | None = None
        self.plain = True

    def __repr__(self) -> str:
        return f"Record({self.name!r})"

    @property
    def name(self) -> str:
        """As a person would write it: "ns::Tile<float, 32>"."""
        name = self.definition.qualified or "(anonymous)"
        if self.outer is not None and self.definition.name:
            name = f"{self.outer.name}::{self.definition.name}"
        return f"{name}<{', '.join(map(spelled, self.arguments))}>" if self.arguments else name

    @property
    def scope(self) -> Scope:
        """The scope of its body."""
        if self._scope is None:
            parent = self.enclosing or (self.outer.scope if self.outer is not None else None)
            self._scope = scopes.Scope(
                self.definition.unit,
                bindings=self.bindings,
                parent=parent,
                record=self,
                namespace=self.definition.namespace,
                offset=self.definition.node.end_byte,
            )
        return self._scope

    @property
    def bases(self) -> list[Type]:
        """The base classes in order; unknown ones are left out."""
        if self._bases is None:
            self._bases = []
            found = [resolve.resolve_type(node, self.scope) for node in self.definition.members.bases[:_MAX_BASES]]
            self._bases = [base for base in found if base.record is not None and base.record is not self]
        return self._bases

    @property
    def incomplete(self) -> Type:
        """The type by name only."""
        return Type("struct", None, 1, self.name, record=self)

    @property
    def type(self) -> Type:
        """The laid-out type; by name only while it is being laid out."""
        if self._type is not None:
            return self._type
        guard = self.definition.unit.program.guard
        if self._laying or not guard.open():
            return self.incomplete
        self._laying = True
        try:
            found = _Layout(self).run()
        finally:
            self._laying = False
            guard.close()
        if guard.idle or not guard.exhausted:
            self._type = found
        return found


def spelled(value: object) -> str:
    """A template argument as a person would write it."""
    if isinstance(value, Type):
        return value.name
    if isinstance(value, TemplateRef):
        return value.definition.name
    if isinstance(value, tuple):
        return ", ".join(map(spelled, value))
    name = getattr(getattr(value, "definition", None), "name", None)
    return "?" if value is None else str(name if name is not None else value)


# ------------------------------------------------------------------- instantiation


def make_record(
    struct: StructDef, bindings: Bindings, outer: Record | None, arguments: tuple[Value | None, ...] | None = None
) -> Record:
    """The instantiation of exactly this definition; the same object for the same bindings."""
    program = struct.unit.program
    key = (struct, tuple(bindings.items()), outer)
    found = program.records.get(key)
    if found is None:
        if arguments is None:
            arguments = _own_arguments(struct, bindings)
        everything = {**outer.bindings, **bindings} if outer is not None else bindings
        found = program.records[key] = Record(struct, everything, arguments, outer)
    return found


def _own_arguments(struct: StructDef, bindings: Bindings) -> tuple[Value | None, ...]:
    if struct.specialises is not None:
        scope = scopes.Scope(struct.unit, bindings=bindings, namespace=struct.namespace, offset=struct.node.end_byte)
        return resolve.resolve_template_arguments(struct.specialises, scope)
    arguments: list[Value | None] = []
    for param in struct.template:
        value = bindings.get(param.name)
        if param.pack and isinstance(value, tuple):
            arguments.extend(value)
        else:
            arguments.append(value)
    return tuple(arguments)


def record_for(struct: StructDef, table: Bindings) -> Record:
    """The instantiation of `struct` whose template parameters have their values in `table`."""
    outer = record_for(struct.owner, table) if struct.owner is not None else None
    own = {param.name: table[param.name] for param in struct.template if param.name in table}
    return make_record(struct, own, outer)


def instantiate(structs: Sequence[StructDef], arguments: tuple[Value | None, ...], outer: Record | None = None) -> Record | None:
    """The class that template arguments choose among a primary template and its specialisations."""
    primary = next((struct for struct in structs if struct.specialises is None), None)
    if primary is not None:
        params = primary.template
        unit, namespace = primary.unit, primary.namespace
    elif structs:
        unit, namespace = structs[0].unit, structs[0].namespace
        forward = unit.forward_templates(structs[0].name)
        params = forward[0] if forward else ()
    else:
        return None
    parent = outer.scope if outer is not None else None
    scope = scopes.Scope(unit, parent=parent, record=outer, namespace=namespace, offset=structs[0].node.end_byte)
    bindings = bind_params(_with_forward_defaults(params, structs[0]), arguments, scope)
    if params:
        arguments = _flatten(params, bindings)
    chosen = _specialisation(structs, arguments, scope)
    if chosen is not None:
        return make_record(chosen[0], chosen[1], outer, arguments)
    return make_record(primary, bindings, outer, arguments) if primary is not None else None


def _with_forward_defaults(params: tuple[TemplateParam, ...], struct: StructDef) -> tuple[TemplateParam, ...]:
    """Default arguments may stand on a declaration before the definition only."""
    if not params or all(param.default is not None or param.pack for param in params):
        return params
    merged = list(params)
    for forward in struct.unit.forward_templates(struct.name):
        if len(forward) == len(params):
            for position, param in enumerate(forward):
                if merged[position].default is None and param.default is not None:
                    old = merged[position]
                    merged[position] = TemplateParam(old.name, old.kind, old.node, param.default, old.pack)
    return tuple(merged)


def bind_params(params: Sequence[TemplateParam], arguments: Sequence[Value | None], scope: Scope) -> Bindings:
    """Template parameters bound to arguments, defaults evaluated in order; what is unknown is left out."""
    bindings: Bindings = {}
    inner = scope.child(bindings)
    for position, param in enumerate(params):
        value: Value | None
        if param.pack:
            value = tuple(arguments[position:])
            if None in value:
                continue
        elif position < len(arguments):
            value = arguments[position]
        else:
            value = default_argument(param, inner)
        if value is not None and param.name:
            bindings[param.name] = value
    return bindings


def default_argument(param: TemplateParam, scope: Scope) -> Value | None:
    """The value of a parameter's default argument."""
    if param.default is None:
        return None
    if param.kind == "value":
        return constants.evaluate(param.default, scope)
    if param.kind == "type":
        found = resolve.resolve_type(param.default, scope)
        return found if found.kind != "unknown" or found.record is not None else None
    return resolve.template_named(text_of(param.default), scope)


def _flatten(params: Sequence[TemplateParam], bindings: Bindings) -> tuple[Value | None, ...]:
    flat: list[Value | None] = []
    for param in params:
        value = bindings.get(param.name)
        if param.pack and isinstance(value, tuple):
            flat.extend(value)
        else:
            flat.append(value)
    return tuple(flat)


def _specialisation(
    structs: Sequence[StructDef], arguments: tuple[Value | None, ...], scope: Scope
) -> tuple[StructDef, Bindings] | None:
    best: tuple[int, StructDef, Bindings] | None = None
    for struct in structs:
        if struct.specialises is None:
            continue
        place = scopes.Scope(
            struct.unit, parent=scope, record=scope.record, namespace=struct.namespace, offset=struct.node.end_byte
        )
        matched = deduction.match_arguments(struct.specialises, arguments, struct.template, place)
        if matched is not None and (best is None or matched[0] > best[0]):
            best = matched[0], struct, matched[1]
    return None if best is None else (best[1], best[2])


# ------------------------------------------------------------------------- layout

_ALIGN = re.compile(rb"\b(?:__align__|alignas|aligned|__aligned__)\s*(?=\()")
_PACKED = re.compile(rb"\b(?:packed|__packed__)\b")


class _Layout:
    """Offsets by the Itanium ABI."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.scope = record.scope
        definition = record.definition
        self.union = definition.kind == "union"
        self.fields: list[Field] = []
        self.offset: int | None = 0
        self.size = 0
        self.align = 1
        self.bits = 0
        source = definition.unit.source.data
        body = definition.node.child_by_field_name(k.F_BODY)
        start, end = (
            (body.start_byte, body.end_byte) if body is not None else (definition.node.end_byte, definition.node.end_byte)
        )
        semicolon = source.find(b";", end, end + 200)
        self.head = source[definition.node.start_byte : start] + b" " + source[end : semicolon if semicolon >= 0 else end]
        self.packed = _PACKED.search(self.head) is not None

    def run(self) -> Type:
        members = self.record.definition.members
        bases = self.record.bases
        if len(bases) < len(members.bases):
            # an unknown base: everything behind it has an unknown offset
            self.offset = None
        if members.virtual and not any(_has_table(base) for base in bases):
            self._advance(8, 8)
        for base in bases:
            self._base(base)
        for node in members.fields:
            self._declaration(node)
        self._end_bits()
        align = max(self.align, self._attribute(self.head))
        size: int | None = None
        if self.offset is not None:
            size = max(self.size if self.union else self.offset, 1)
            self.record.data_size = size
            size = -(-size // align) * align
            self.record.plain = _is_plain(self.record.definition, self.fields)
            if self.record.plain:
                self.record.data_size = size
        return Type("struct", size, align, self.record.name, fields=tuple(self.fields), record=self.record)

    def _attribute(self, text: bytes) -> int:
        best = 1
        if b"align" not in text:
            return best
        for match in _ALIGN.finditer(text):
            split = macro_arguments(text[match.end() :].decode("utf-8", "replace"), 0)
            argument = ", ".join(split[0]).strip() if split is not None else ""
            value = constants.evaluate_text(argument, self.scope) if argument else 16
            if value is None:
                kind = resolve.named_type(argument, self.scope)
                value = kind.align if kind is not None else None
            if isinstance(value, int) and 0 < value <= 4096:
                best = max(best, value)
        return best

    def _base(self, base: Type) -> None:
        if isinstance(base.record, Record) and not base.fields and base.size == 1 and not _has_table(base):
            return
        # the padding at the end of a class with constructors, bases or hidden members is used for what follows
        size = base.record.data_size if isinstance(base.record, Record) and base.size is not None else base.size
        self._hoist(base, self._advance(size, base.align))

    def _hoist(self, kind: Type, start: int | None) -> None:
        for member in kind.fields:
            offset = None if start is None or member.offset is None else start + member.offset
            self.fields.append(Field(member.name, offset, member.type))

    def _declaration(self, node: Node) -> None:
        declared = resolve.declarations(node, self.scope)
        first = node.child_by_field_name(k.F_DECLARATOR)
        head = (node.text or b"")[: first.start_byte - node.start_byte] if first is not None else b""
        align = self._attribute(head) if b"align" in head else 1
        if not declared and first is None:
            kind_node = node.child_by_field_name(k.F_TYPE)
            if kind_node is not None and kind_node.type in (k.STRUCT_SPECIFIER, k.UNION_SPECIFIER, k.CLASS_SPECIFIER):
                self._anonymous(kind_node)
            return
        for item in declared:
            kind = item.type if not item.reference else Type("pointer", 8, 8, item.type.name + "&", item.type)
            if item.bits is not None:
                self._bit_field(item.name, kind, item.bits)
                continue
            self._end_bits()
            start = self._advance(kind.size, max(kind.align, align))
            self.fields.append(Field(item.name, start, kind))

    def _anonymous(self, node: Node) -> None:
        if node.child_by_field_name(k.F_NAME) is not None or node.child_by_field_name(k.F_BODY) is None:
            return
        kind = resolve.resolve_type(node, self.scope)
        self._end_bits()
        self._hoist(kind, self._advance(kind.size, kind.align))

    def _advance(self, size: int | None, align: int) -> int | None:
        """Place a member; its offset, None where unknown."""
        if self.packed:
            align = 1
        self.align = max(self.align, align)
        if self.union:
            if size is None:
                self.offset = None
            elif self.offset is not None:
                self.size = max(self.size, size)
            return 0
        if self.offset is None:
            return None
        start = -(-self.offset // align) * align
        self.offset = None if size is None or start + size > _MAX_OFFSET else start + size
        return start

    def _bit_field(self, name: str, kind: Type, width: int) -> None:
        unit = 8 * (kind.size or 4)
        if self.union or self.offset is None or not 0 <= width <= unit:
            self.fields.append(Field(name, self._advance(kind.size, kind.align), kind))
            return
        position = 8 * self.offset + self.bits
        if width == 0 or position // unit != (position + width - 1) // unit:
            position = -(-position // unit) * unit
        if name:
            self.align = max(self.align, kind.align)
            self.fields.append(Field(name, position // unit * (kind.size or 4), kind))
        position += width
        self.offset, self.bits = position // 8, position % 8

    def _end_bits(self) -> None:
        if self.bits and self.offset is not None:
            self.offset += 1
        self.bits = 0


def _is_plain(definition: StructDef, fields: Sequence[Field]) -> bool:
    """Whether a class is plain data as the ABI means it: a derived class then leaves its tail padding alone."""
    members = definition.members
    if members.bases or members.virtual or members.hidden:
        return False
    special = (definition.name, "~" + definition.name, "operator=")
    if definition.name and any(name in members.functions for name in special):
        return False
    return all(_plain_member(member.type) for member in fields)


def _plain_member(kind: Type) -> bool:
    while kind.kind == "array" and kind.element is not None:
        kind = kind.element
    return kind.record.plain if kind.kind == "struct" and isinstance(kind.record, Record) else True


def _has_table(kind: Type) -> bool:
    record = kind.record
    if not isinstance(record, Record):
        return False
    return record.definition.members.virtual or any(_has_table(base) for base in record.bases)


# ------------------------------------------------------------------------ members


def complete(kind: Type) -> Type:
    """The laid-out struct of one that is only named; other types unchanged."""
    if kind.kind == "struct" and kind.size is None and not kind.fields and isinstance(kind.record, Record):
        return kind.record.type
    return kind


def member_field(kind: Type, name: str) -> Field | None:
    """The data member called `name`, also of base classes and anonymous unions; the innermost hides others."""
    found = complete(kind)
    return next((member for member in reversed(found.fields) if member.name == name), None)


def lookup(record: Record) -> list[Record]:
    """The record itself and its bases, depth first: where members are looked up."""
    order: list[Record] = []
    pending = [record]
    while pending and len(order) < _MAX_BASES:
        current = pending.pop(0)
        if current not in order:
            order.append(current)
            pending[:0] = [base.record for base in current.bases if isinstance(base.record, Record)]
    return order


def record_methods(record: Record, name: str) -> list[FunctionDef]:
    """Member functions called `name`: definitions where there are any, else their declarations; bases only if it has none."""
    for current in lookup(record):
        found = _own_methods(current.definition, name)
        if found:
            return found
    return []


def _own_methods(struct: StructDef, name: str) -> list[FunctionDef]:
    inside = struct.members.functions.get(name, [])
    if not inside:
        return []
    defined = [function for function in inside if function.body is not None]
    if len(defined) == len(inside):
        return defined
    outside = [function for function in struct.unit.find_functions(name) if _defines_member(function, struct)]
    return defined + outside or inside


def _defines_member(function: FunctionDef, struct: StructDef) -> bool:
    return function.scope_node is not None and function.owner is struct


def methods(kind: Type, name: str) -> list[FunctionDef]:
    """The member functions called `name` of a class type; resolve calls with `record=kind.record`."""
    return record_methods(kind.record, name) if isinstance(kind.record, Record) else []


def constructors(kind: Type) -> list[FunctionDef]:
    """The constructors that are written for a class type."""
    record = kind.record
    return _own_methods(record.definition, record.definition.name) if isinstance(record, Record) else []


def record_variable(record: Record, name: str) -> GlobalVar | None:
    """The static data member called `name` of a class, its bases and the classes around it."""
    current: Record | None = record
    while current is not None:
        for place in lookup(current):
            found = place.definition.members.constants.get(name)
            if found is not None:
                return _defined_variable(found)
        current = current.outer
    return None


def _defined_variable(variable: GlobalVar) -> GlobalVar:
    """The definition outside of the class where the one inside has no initialiser."""
    if variable.init is not None:
        return variable
    for other in variable.unit.find_variables(variable.name):
        if other.init is not None and other.qualified == variable.qualified:
            return other
    return variable


def record_value(record: Record, name: str) -> Typed | None:
    """The value of a static constant or enumerator of a class, its bases or the classes around it."""
    current: Record | None = record
    while current is not None:
        for place in lookup(current):
            found = _own_value(place, name)
            if found is not None:
                return found
        current = current.outer
    return None


def _own_value(record: Record, name: str) -> Typed | None:
    members = record.definition.members
    enum = members.enumerators.get(name)
    if enum is not None and not enum.scoped:
        return constants.enumerator_value(enum, name, record.scope)
    variable = members.constants.get(name)
    if variable is None or not variable.is_const or variable.template:
        return None
    table = variable.unit.program.values
    return constants.remembered(table, (variable, record), variable, lambda: _static_value(record, variable))


def _static_value(record: Record, variable: GlobalVar) -> Typed | None:
    defined = _defined_variable(variable)
    if defined is not variable:
        return constants.variable_value(defined)
    scope = record.scope
    kind = resolve.variable_type(variable, scope)
    if kind.kind in ("pointer", "array"):
        return None
    return constants.initial_value(variable.init, kind, scope)


def member_value(kind: Type, name: str) -> Typed | None:
    """Value and type of a static constant or enumerator of a class type, also of standard traits."""
    if isinstance(kind.record, Trait):
        return kind.record.value(name)
    if not isinstance(kind.record, Record):
        return None
    for record in lookup(kind.record):
        found = _own_value(record, name)
        if found is not None:
            return found
    return None


def member_constant(kind: Type, name: str) -> int | float | None:
    """The value of a static constant or enumerator of a class type."""
    found = member_value(kind, name)
    return found[0] if found is not None else None


def record_type(record: Record, name: str, arguments: tuple[Value | None, ...] | None = None) -> Type | None:
    """The member type called `name` of a class or its bases, with arguments for a member template."""
    for place in lookup(record):
        if name == place.definition.name and arguments is None:
            return place.type
        symbols = place.definition.members.types.get(name)
        if symbols:
            return resolve.symbol_type(symbols, arguments, place)
        inherited = _used_type(place, name)
        if inherited is not None:
            return inherited
    return None


def _used_type(record: Record, name: str) -> Type | None:
    """`using typename Base::type;` in a class."""
    for node in record.definition.members.using:
        target = next((child for child in node.named_children if child.type == k.QUALIFIED_IDENTIFIER), None)
        if target is not None and text_of(target).rpartition("::")[2].strip() == name:
            found = resolve.resolve_type(target, record.scope)
            if found.kind != "unknown":
                return found
    return None


def member_type(kind: Type, name: str, arguments: tuple[Value | None, ...] | None = None) -> Type | None:
    """`kind::name`, a type; with arguments for a member template."""
    if isinstance(kind.record, Trait):
        return kind.record.types.get(name)
    return record_type(kind.record, name, arguments) if isinstance(kind.record, Record) else None


def member_enum(record: Record, name: str) -> EnumDef | None:
    """The member enumeration called `name`."""
    for place in lookup(record):
        for symbol in place.definition.members.types.get(name, ()):
            if isinstance(symbol, EnumDef):
                return symbol
    return None
