"""Types of declarations and of the few expressions that need one.

Unknown types are `Type("unknown", None, 1, <as written>)`, so that messages and
calls on library objects can still name them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cudalint.semantics import arithmetic, constants, literals, records, traits
from cudalint.semantics import scope as scopes
from cudalint.semantics.builtin_types import BUILTIN, CHAR, NULLPTR, SOFT, ULONG, sized
from cudalint.semantics.ir import FunctionRef
from cudalint.semantics.literals import Typed
from cudalint.semantics.preprocess import Macro, expand
from cudalint.semantics.symbols import (
    EnumDef,
    FunctionDef,
    GlobalVar,
    Space,
    StructDef,
    TypeAlias,
    TypeSymbol,
    collect_local,
    declarator_name,
    field_declarators,
    inner_declarator,
    text_of,
)
from cudalint.semantics.types import BOOL, INT, UNKNOWN, VOID, Type, array_of, pointer_to
from cudalint.syntax import kinds as k
from cudalint.syntax.tree import parse_fragment

if TYPE_CHECKING:
    from tree_sitter import Node

    from cudalint.semantics.records import Record, TemplateRef
    from cudalint.semantics.scope import Bindings, Scope, Value

common_type = arithmetic.common_type
_MAX_DECLARATORS = 32
_MAX_ELEMENTS = 1 << 40
_CLASSES = frozenset((k.STRUCT_SPECIFIER, k.CLASS_SPECIFIER, k.UNION_SPECIFIER))
_SIMPLE_NAMES = frozenset((k.IDENTIFIER, k.TYPE_IDENTIFIER, k.NAMESPACE_IDENTIFIER, k.FIELD_IDENTIFIER))
_STANDARD = frozenset(("std", "cuda::std", "cuda"))
_FUNCTION = Type("unknown", None, 1, "function")


@dataclass(frozen=True, slots=True)
class Declared:
    """One declared variable, parameter or data member.

    type       without a reference: `T& x` has type T and `reference` set
    node       the declarator; `name_node` the identifier, None for unnamed parameters
    init       what initialises it: an expression, a braced list, the `(…)` of `int x(3)`, or the default of a parameter
    dims       the array lengths in source order (nodes); absent ones (`[]`) are left out
    space      "shared", "constant", "global" (`__device__`), "managed" or ""
    const      the declaration says const (for pointers: the pointee is const)
    auto       the type has to come from `init`
    bits       width of a bit-field
    pack       a function parameter pack, or one element of it
    """

    name: str
    name_node: Node | None
    type: Type
    node: Node
    reference: bool = False
    init: Node | None = None
    dims: tuple[Node, ...] = ()
    space: Space = ""
    extern: bool = False
    static: bool = False
    const: bool = False
    constexpr: bool = False
    volatile: bool = False
    auto: bool = False
    restrict: bool = False
    pack: bool = False
    bits: int | None = None


def unknown(name: str) -> Type:
    """An unknown type that is written `name`."""
    return Type("unknown", None, 1, name)


def sizeof(kind: Type) -> int | None:
    """Bytes of a type, None where unknown."""
    return records.complete(kind).size


def literal_type(text: str) -> Type:
    """The type of a number, character or string literal."""
    if '"' in text:
        return pointer_to(CHAR)
    found = literals.character(text) if "'" in text and not text[:1].isdigit() else literals.number(text)
    return found[1] if found is not None else UNKNOWN


# ------------------------------------------------------------------------- by name


def named_type(name: str, scope: Scope) -> Type | None:
    """The type that a name stands for, None if it is none or unknown; it may be qualified, without template arguments."""
    name = name.strip()
    prefix, separator, last = name.rpartition("::")
    if separator and prefix:
        return _qualified_named(prefix, last, scope)
    return _simple_named(last, scope)


def _qualified_named(prefix: str, last: str, scope: Scope) -> Type | None:
    if prefix not in _STANDARD:
        symbols = scope.type_symbols(f"{prefix}::{last}")
        if symbols:
            return symbol_type(symbols, None, None)
        owner = named_type(prefix, scope)
        if owner is not None:
            return records.member_type(owner, last)
    found = BUILTIN.get(last) or traits.PLAIN.get(last)
    return found if found is not None or prefix in _STANDARD else None


def _simple_named(name: str, scope: Scope) -> Type | None:
    bound = scope.bound(name)
    if bound is not None:
        return bound if isinstance(bound, Type) else None
    macro = scope.macro(name)
    if macro is not None:
        return _macro_type(macro, scope)
    record = scope.record
    while record is not None:
        found = records.record_type(record, name)
        if found is not None:
            return found
        record = record.outer
    own = name in scope.unit.symbols.types
    if not own and name in BUILTIN and name not in SOFT:
        return BUILTIN[name]
    symbols = scope.type_symbols(name)
    if symbols:
        return symbol_type(symbols, None, None)
    return BUILTIN.get(name) or traits.PLAIN.get(name)


def _macro_type(macro: Macro, scope: Scope) -> Type | None:
    """`#define DATA_TYPE float`."""
    if macro.params is not None:
        return None
    text = expand(macro, None, scope.macro, 1024)
    return _text_type(text, scope) if text and text != macro.name else None


_PLAIN_TYPE = re.compile(r"[A-Za-z_][\w\s:<>,*&]*\Z")


def _text_type(text: str, scope: Scope) -> Type | None:
    """A type given as text."""
    words = text.split()
    if all(word in BUILTIN or word in ("signed", "unsigned", "const", "volatile") for word in words):
        return sized(words) if len(words) > 1 else BUILTIN.get(words[0])
    if _PLAIN_TYPE.match(text) is None:
        return None
    if not scope.unit.program.guard.open():
        return None
    try:
        node, _, broken = parse_fragment(text.encode() + b" __t;", "statements")
        declaration = next((child for child in node.named_children if child.type == k.DECLARATION), None)
        if broken or declaration is None:
            return None
        declared = declarations(declaration, scope)
        found = declared[0].type if declared else UNKNOWN
        return found if found.kind != "unknown" or found.record is not None else None
    finally:
        scope.unit.program.guard.close()


def template_named(name: str, scope: Scope) -> TemplateRef | None:
    """The class or alias template that a name stands for."""
    bound = scope.bound(name) if "::" not in name else None
    if bound is not None:
        return bound if isinstance(bound, records.TemplateRef) else None
    for symbol in scope.type_symbols(name):
        if isinstance(symbol, (StructDef, TypeAlias)) and symbol.template and getattr(symbol, "specialises", None) is None:
            return records.TemplateRef(symbol)
    return None


def symbol_type(symbols: Sequence[TypeSymbol], arguments: tuple[Value | None, ...] | None, owner: Record | None) -> Type | None:
    """The type of the best of several declarations of one name; `owner` is the class they are members of."""
    first = symbols[0].qualified
    structs = [symbol for symbol in symbols if isinstance(symbol, StructDef) and symbol.qualified == first]
    if structs:
        return _struct_type(structs, arguments, owner)
    symbol = symbols[0]
    if isinstance(symbol, EnumDef):
        return _enum_type(symbol.node, scope_of_symbol(symbol, owner))
    if isinstance(symbol, TypeAlias):
        return _alias_type(symbol, arguments, owner)
    return None


def _struct_type(structs: list[StructDef], arguments: tuple[Value | None, ...] | None, owner: Record | None) -> Type | None:
    if arguments is None:
        plain = next((struct for struct in structs if struct.specialises is None), structs[0])
        if not plain.template and plain.specialises is None:
            return records.make_record(plain, {}, owner).type
        if any(param.default is None and not param.pack for param in plain.template):
            return None
        arguments = ()
    guard = structs[0].unit.program.guard
    if not guard.open():
        return None
    try:
        record = records.instantiate(structs, arguments, owner)
        return record.type if record is not None else None
    finally:
        guard.close()


def _alias_type(alias: TypeAlias, arguments: tuple[Value | None, ...] | None, owner: Record | None) -> Type | None:
    program = alias.unit.program
    key = (alias, owner)
    if not alias.template and key in program.aliases:
        return program.aliases[key]
    if key in program.resolving or not program.guard.open():
        return None
    scope = scope_of_symbol(alias, owner)
    if alias.template:
        scope = scope.child(records.bind_params(alias.template, arguments or (), scope))
    else:
        program.resolving.add(key)
    try:
        base = resolve_type(alias.type_node, scope)
        found = _shape(alias.declarator, base, scope).type if alias.declarator is not None else base
    finally:
        program.guard.close()
        program.resolving.discard(key)
    if not alias.template and (program.guard.idle or not program.guard.exhausted):
        program.aliases[key] = found
    return found


def _enum_type(node: Node, scope: Scope) -> Type:
    base = node.child_by_field_name(k.F_BASE)
    return resolve_type(base, scope) if base is not None else INT


def scope_of_symbol(symbol: TypeSymbol, owner: Record | None = None) -> Scope:
    """The scope in which a type's declaration stands."""
    if owner is None and symbol.owner is not None:
        owner = records.record_for(symbol.owner, {})
    if owner is not None:
        return owner.scope
    return scopes.Scope(symbol.unit, namespace=symbol.namespace, offset=symbol.node.end_byte)


# ------------------------------------------------------------------------- by node


def resolve_type(node: Node, scope: Scope) -> Type:
    """The type that a specifier, a type name with its declarator, or a name in an expression stands for."""
    guard = scope.unit.program.guard
    if not guard.enter():
        return UNKNOWN
    try:
        return _resolve(node, scope)
    except RecursionError:
        if guard.depth > 1 or guard.nesting:
            raise
        return UNKNOWN
    finally:
        guard.leave()


def _resolve(node: Node, scope: Scope) -> Type:
    kind = node.type
    if kind == k.PRIMITIVE_TYPE:
        return BUILTIN.get(text_of(node)) or unknown(text_of(node))
    if kind in _SIMPLE_NAMES:
        name = text_of(node)
        return named_type(name, scope) or unknown(name)
    if kind == k.SIZED_TYPE_SPECIFIER:
        return _sized(node, scope)
    if kind == k.TYPE_DESCRIPTOR:
        return _descriptor(node, scope)
    if kind in (k.TEMPLATE_TYPE, k.TEMPLATE_FUNCTION, k.TEMPLATE_METHOD):
        return _template_type(node, "", None, scope)
    if kind == k.QUALIFIED_IDENTIFIER:
        return _qualified_type(node, scope)
    if kind in _CLASSES:
        return _class_type(node, scope)
    if kind == k.ENUM_SPECIFIER:
        return _enum_specifier(node, scope)
    if kind == k.DECLTYPE:
        inner = next((child for child in node.named_children if child.type != k.AUTO), None)
        return expression_type(inner, scope) if inner is not None else UNKNOWN
    if kind in (k.DEPENDENT_TYPE, k.DEPENDENT_NAME, k.PARENTHESIZED_EXPRESSION, k.TRAILING_RETURN_TYPE):
        inner = next((child for child in node.named_children if child.type != k.COMMENT), None)
        return resolve_type(inner, scope) if inner is not None else UNKNOWN
    return UNKNOWN


def _sized(node: Node, scope: Scope) -> Type:
    words = text_of(node).split()
    base = node.child_by_field_name(k.F_TYPE)
    if base is not None and base.type == k.TYPE_IDENTIFIER:
        words = [word for word in words if word != text_of(base)]
        found = named_type(text_of(base), scope)
        if found is not None and found.is_integer and "unsigned" in words:
            return replace(found, kind="uint", name="unsigned " + found.name)
    return sized(words) or unknown(text_of(node))


def _descriptor(node: Node, scope: Scope) -> Type:
    base = node.child_by_field_name(k.F_TYPE)
    if base is None:
        return UNKNOWN
    kind = resolve_type(base, scope)
    declarator = node.child_by_field_name(k.F_DECLARATOR)
    return _shape(declarator, kind, scope).type if declarator is not None else kind


def _template_type(node: Node, prefix: str, owner: Type | None, scope: Scope) -> Type:
    name_node = node.child_by_field_name(k.F_NAME)
    list_node = node.child_by_field_name(k.F_ARGUMENTS)
    if name_node is None or list_node is None:
        return UNKNOWN
    name = text_of(name_node)
    arguments = resolve_template_arguments(list_node, scope)
    found = _applied(name, prefix, owner, arguments, scope)
    if found is not None:
        return found
    spelled = f"{name}<{', '.join(map(records.spelled, arguments))}>"
    prefix = owner.name if owner is not None else prefix
    storage = traits.storage_of(name, arguments) if prefix.endswith("cub") else None
    return Type("unknown", None, 1, f"{prefix}::{spelled}" if prefix else spelled, record=storage)


def _applied(name: str, prefix: str, owner: Type | None, arguments: tuple[Value | None, ...], scope: Scope) -> Type | None:
    if owner is not None:
        return records.member_type(owner, name, arguments)
    if prefix in _STANDARD:
        return traits.standard_type(name, arguments)
    if not prefix:
        bound = scope.bound(name)
        if isinstance(bound, records.TemplateRef):
            return _apply_reference(bound, arguments)
        if bound is not None:
            return bound if isinstance(bound, Type) else None
        record = scope.record
        while record is not None:
            if name == record.definition.name:
                break
            found = records.record_type(record, name, arguments)
            if found is not None:
                return found
            record = record.outer
    symbols = scope.type_symbols(f"{prefix}::{name}" if prefix else name)
    found = symbol_type(symbols, arguments, None) if symbols else None
    return found if symbols else traits.standard_type(name, arguments)


def _apply_reference(reference: TemplateRef, arguments: tuple[Value | None, ...]) -> Type | None:
    definition = reference.definition
    symbols = [symbol for symbol in definition.unit.find_types(definition.name) if symbol.qualified == definition.qualified]
    return symbol_type(symbols or [definition], arguments, None)


def resolve_qualifier(node: Node, scope: Scope) -> tuple[Type | None, str, Node | None]:
    """What stands before the last `::`: the type it names, else the namespaces as text; and the node of the last name."""
    owner: Type | None = None
    prefix = ""
    current: Node | None = node
    for _ in range(_MAX_DECLARATORS):
        if current is None or current.type != k.QUALIFIED_IDENTIFIER:
            break
        part = current.child_by_field_name(k.F_SCOPE)
        current = current.child_by_field_name(k.F_NAME)
        if part is not None:
            owner, prefix = _step(part, owner, prefix, scope)
    while current is not None and current.type in (k.DEPENDENT_NAME, k.DEPENDENT_TYPE):
        current = next((child for child in current.named_children if child.type != k.COMMENT), None)
    return owner, prefix, current


def _step(part: Node, owner: Type | None, prefix: str, scope: Scope) -> tuple[Type | None, str]:
    if part.type in (k.DEPENDENT_NAME, k.DEPENDENT_TYPE):
        part = next((child for child in part.named_children if child.type != k.COMMENT), part)
    if part.type in (k.TEMPLATE_TYPE, k.TEMPLATE_FUNCTION):
        return _template_type(part, prefix, owner, scope), ""
    if part.type == k.DECLTYPE:
        return resolve_type(part, scope), ""
    name = text_of(part)
    if owner is not None:
        return records.member_type(owner, name) or unknown(f"{owner.name}::{name}"), ""
    full = f"{prefix}::{name}" if prefix else name
    if full in _STANDARD:
        return None, full
    found = _scope_type(name, full, scope)
    return (found, "") if found is not None else (None, full)


def _scope_type(name: str, full: str, scope: Scope) -> Type | None:
    """The type that a name before `::` stands for, if it is no namespace; enumerations are left to their enumerators."""
    if full != name:
        symbols = scope.type_symbols(full)
        return symbol_type(symbols, None, None) if symbols and not isinstance(symbols[0], EnumDef) else None
    bound = scope.bound(name)
    if bound is not None:
        return bound if isinstance(bound, Type) else None
    macro = scope.macro(name)
    if macro is not None:
        return _macro_type(macro, scope)
    record = scope.record
    while record is not None:
        found = records.record_type(record, name)
        if found is not None:
            return found
        record = record.outer
    symbols = scope.type_symbols(name)
    return symbol_type(symbols, None, None) if symbols and not isinstance(symbols[0], EnumDef) else traits.PLAIN.get(name)


def _qualified_type(node: Node, scope: Scope) -> Type:
    owner, prefix, last = resolve_qualifier(node, scope)
    if last is None:
        return UNKNOWN
    if last.type in (k.TEMPLATE_TYPE, k.TEMPLATE_FUNCTION, k.TEMPLATE_METHOD):
        return _template_type(last, prefix, owner, scope)
    name = text_of(last)
    if owner is not None:
        return records.member_type(owner, name) or unknown(f"{owner.name}::{name}")
    full = f"{prefix}::{name}" if prefix else name
    return named_type(full, scope) or unknown(full)


def _class_type(node: Node, scope: Scope) -> Type:
    if node.child_by_field_name(k.F_BODY) is None:
        name = node.child_by_field_name(k.F_NAME)
        return resolve_type(name, scope) if name is not None else UNKNOWN
    known = scope.unit.struct_at(node)
    if known is None:
        known = collect_local(node, scope.unit, scope.record.definition if scope.record is not None else None, scope.namespace)
        if known is None:
            return UNKNOWN
    if known.owner is not None and scope.record is not None and known.owner is scope.record.definition and not scope.frame:
        return records.make_record(known, {}, scope.record).type
    if known.owner is None and not scope.bindings and scope.parent is None and not scope.locals:
        return records.make_record(known, {}, None).type
    record = records.Record(known, {}, (), None, enclosing=scope)
    return record.type


def _enum_specifier(node: Node, scope: Scope) -> Type:
    return _enum_type(node, scope)


# --------------------------------------------------------------- template arguments


def resolve_template_arguments(node: Node, scope: Scope) -> tuple[Value | None, ...]:
    """The values of a template argument list, None for what is unknown; packs are expanded."""
    found: list[Value | None] = []
    for child in node.named_children:
        if child.type == k.COMMENT:
            continue
        if child.type == k.PARAMETER_PACK_EXPANSION:
            pattern = child.child_by_field_name(k.F_PATTERN) or (child.named_children[0] if child.named_children else None)
            pack = scope.bound(text_of(pattern)) if pattern is not None else None
            found.extend(pack if isinstance(pack, tuple) else (None,))
            continue
        found.append(template_argument(child, scope))
    return tuple(found)


def template_argument(node: Node, scope: Scope) -> Value | None:
    """One template argument: a number, type, function or template."""
    guard = scope.unit.program.guard
    if not guard.enter():
        return None
    try:
        return _argument(node, scope)
    except RecursionError:
        if guard.depth > 1 or guard.nesting:
            raise
        return None
    finally:
        guard.leave()


def _argument(node: Node, scope: Scope) -> Value | None:
    inner = node
    if node.type == k.TYPE_DESCRIPTOR:
        base = node.child_by_field_name(k.F_TYPE)
        if base is None:
            return None
        if node.child_by_field_name(k.F_DECLARATOR) is not None or base.type in (k.PRIMITIVE_TYPE, k.SIZED_TYPE_SPECIFIER):
            return _known(resolve_type(node, scope))
        inner = base
    if inner.type in _SIMPLE_NAMES:
        return _named_argument(text_of(inner), inner, scope)
    if inner.type in (k.QUALIFIED_IDENTIFIER, k.TEMPLATE_TYPE, k.TEMPLATE_FUNCTION, k.DEPENDENT_TYPE):
        return _complex_argument(inner, scope)
    if node.type == k.TYPE_DESCRIPTOR:
        return _known(resolve_type(node, scope))
    if node.type == k.SUBSCRIPT_EXPRESSION:
        return _subscripted(node, scope)
    if node.type == k.POINTER_EXPRESSION and node.named_child_count == 1:
        # `&function`
        return _argument(node.named_children[0], scope)
    return constants.evaluate(node, scope)


def _subscripted(node: Node, scope: Scope) -> Value | None:
    """`T[N]` as an argument is an array type if T is a type, else an element of an array."""
    base, index = node.child_by_field_name(k.F_ARGUMENT), node.child_by_field_name(k.F_INDICES)
    element = named_type(text_of(base), scope) if base is not None and base.type in _SIMPLE_NAMES else None
    if element is None or index is None or index.named_child_count != 1:
        return constants.evaluate(node, scope)
    return array_of(element, array_length(index.named_children[0], scope))


def _known(kind: Type) -> Type | None:
    return kind if kind is not UNKNOWN else None


def _named_argument(name: str, node: Node, scope: Scope) -> Value | None:
    bound = scope.bound(name)
    if bound is not None:
        return bound if scopes.bindable(bound) else None
    if name in scope.unit.symbols.types or (name in BUILTIN and name not in SOFT and scope.macro(name) is None):
        kind = named_type(name, scope)
        return kind or template_named(name, scope)
    value = constants.evaluate(node, scope)
    if value is not None:
        return value
    kind = named_type(name, scope)
    if kind is not None:
        return kind
    return template_named(name, scope) or _function_argument(name, scope) or unknown(name)


def _function_argument(name: str, scope: Scope) -> FunctionRef | None:
    candidates = scope.functions(name)
    return FunctionRef(candidates[0]) if len(candidates) == 1 and not candidates[0].template else None


def _complex_argument(node: Node, scope: Scope) -> Value | None:
    value = constants.evaluate(node, scope)
    if value is not None:
        return value
    kind = resolve_type(node, scope)
    if kind.kind != "unknown" or kind.record is not None:
        return kind
    if node.type == k.QUALIFIED_IDENTIFIER:
        name = text_of(node).replace(" ", "")
        return template_named(name, scope) or _function_argument(name, scope) or kind
    return kind


# ----------------------------------------------------------------------- declarators


@dataclass(slots=True)
class _Shape:
    type: Type
    name: Node | None = None
    reference: bool = False
    restrict: bool = False
    pack: bool = False
    dims: tuple[Node, ...] = ()
    pointer: bool = False


_POINTERS = frozenset((k.POINTER_DECLARATOR, k.ABSTRACT_POINTER_DECLARATOR, k.POINTER_TYPE_DECLARATOR))
_REFERENCES = frozenset((k.REFERENCE_DECLARATOR, k.ABSTRACT_REFERENCE_DECLARATOR))
_ARRAYS = frozenset((k.ARRAY_DECLARATOR, k.ABSTRACT_ARRAY_DECLARATOR))
_FUNCTIONS = frozenset((k.FUNCTION_DECLARATOR, k.ABSTRACT_FUNCTION_DECLARATOR))
_ABSTRACT = frozenset(
    (
        k.ABSTRACT_POINTER_DECLARATOR,
        k.ABSTRACT_REFERENCE_DECLARATOR,
        k.ABSTRACT_ARRAY_DECLARATOR,
        k.ABSTRACT_FUNCTION_DECLARATOR,
        k.ABSTRACT_PARENTHESIZED_DECLARATOR,
    )
)


def _shape(declarator: Node | None, base: Type, scope: Scope) -> _Shape:
    """The type that a declarator makes of its base type."""
    shape = _Shape(base)
    dims: list[Node] = []
    node = declarator
    for _ in range(_MAX_DECLARATORS):
        if node is None:
            break
        kind = node.type
        if kind in _POINTERS:
            shape.type = pointer_to(shape.type)
            shape.pointer = True
            shape.restrict = shape.restrict or b"restrict" in _own_text(node)
        elif kind in _REFERENCES:
            shape.reference = True
        elif kind in _ARRAYS:
            size = node.child_by_field_name(k.F_SIZE)
            shape.type = array_of(shape.type, array_length(size, scope))
            if size is not None:
                dims.append(size)
        elif kind in _FUNCTIONS:
            shape.type = _FUNCTION
        elif kind == k.VARIADIC_DECLARATOR:
            shape.pack = True
        elif declarator_name(node) is node:
            shape.name = node
            break
        node = inner_declarator(node) or _inner_abstract(node)
    shape.dims = tuple(reversed(dims))
    return shape


def _inner_abstract(node: Node) -> Node | None:
    return next((child for child in node.named_children if child.type in _ABSTRACT), None)


def _own_text(node: Node) -> bytes:
    inner = node.child_by_field_name(k.F_DECLARATOR)
    text = node.text or b""
    return text[: inner.start_byte - node.start_byte] if inner is not None else text


def array_length(size: Node | None, scope: Scope) -> int | None:
    """The value of an array length, None where it is absent or unknown."""
    value = constants.evaluate(size, scope) if size is not None else None
    return value if isinstance(value, int) and 0 <= value < _MAX_ELEMENTS else None


# ----------------------------------------------------------------------- declarations

_WORD = re.compile(rb"\w+")
_DECLARATION_SPACES: tuple[tuple[bytes, Space], ...] = (
    (b"__shared__", "shared"),
    (b"__constant__", "constant"),
    (b"__managed__", "managed"),
    (b"__device__", "global"),
)


def declarations(node: Node, scope: Scope) -> list[Declared]:
    """The variables that a declaration, data member or condition declares; its types, too, are entered into `scope`."""
    base_node = node.child_by_field_name(k.F_TYPE)
    if base_node is None:
        return []
    base = resolve_type(base_node, scope)
    if base_node.type in _CLASSES or base_node.type == k.ENUM_SPECIFIER:
        _register(base_node, base, scope)
    first = node.child_by_field_name(k.F_DECLARATOR)
    if first is None:
        return []
    words = frozenset(_WORD.findall((node.text or b"")[: first.start_byte - node.start_byte]))
    default = node.child_by_field_name(k.F_VALUE)
    found: list[Declared] = []
    for declarator, init, bits in field_declarators(node):
        declared = _declared(declarator, init or default, base, base_node, words, scope)
        width = constants.evaluate(bits.named_children[0], scope) if bits is not None and bits.named_children else None
        found.append(declared if width is None else replace(declared, bits=int(width)))
    return found


def _declared(
    declarator: Node, init: Node | None, base: Type, base_node: Node, words: frozenset[bytes], scope: Scope
) -> Declared:
    if declarator.type == k.INIT_DECLARATOR:
        init = declarator.child_by_field_name(k.F_VALUE)
    functor = _called_declarator(declarator, scope)
    if functor is not None:
        init = functor.child_by_field_name(k.F_PARAMETERS)
        declarator = functor.child_by_field_name(k.F_DECLARATOR) or declarator
    shape = _shape(declarator, base, scope)
    kind = _with_length(shape.type, init) if init is not None else shape.type
    return Declared(
        text_of(shape.name) if shape.name is not None else "",
        shape.name,
        kind,
        declarator,
        shape.reference,
        init,
        shape.dims,
        next((space for token, space in _DECLARATION_SPACES if token in words), ""),
        b"extern" in words,
        b"static" in words,
        b"const" in words or b"constexpr" in words,
        b"constexpr" in words,
        b"volatile" in words,
        base_node.type == k.PLACEHOLDER_TYPE_SPECIFIER,
        shape.restrict,
        shape.pack,
    )


def _called_declarator(declarator: Node, scope: Scope) -> Node | None:
    """`dim3 block(BX, BY);` looks like a function with parameter types BX and BY; it is a variable unless those are types."""
    if declarator.type != k.FUNCTION_DECLARATOR:
        return None
    inner = declarator.child_by_field_name(k.F_DECLARATOR)
    params = declarator.child_by_field_name(k.F_PARAMETERS)
    if inner is None or inner.type != k.IDENTIFIER or params is None:
        return None
    children = [child for child in params.named_children if child.type != k.COMMENT]
    if not children:
        return None
    for child in children:
        kind = child.child_by_field_name(k.F_TYPE)
        if child.type != k.PARAMETER_DECLARATION or kind is None or child.child_by_field_name(k.F_DECLARATOR) is not None:
            return None
        if kind.type != k.TYPE_IDENTIFIER or named_type(text_of(kind), scope) is not None:
            return None
    return declarator


def initializer_arguments(init: Node) -> list[Node]:
    """The expressions of an initialiser: of `(a, b)` and `{a, b}` the parts, else the expression itself."""
    if init.type == k.PARAMETER_LIST:
        kinds = [child.child_by_field_name(k.F_TYPE) for child in init.named_children if child.type != k.COMMENT]
        return [kind for kind in kinds if kind is not None]
    if init.type in (k.ARGUMENT_LIST, k.INITIALIZER_LIST):
        return [child for child in init.named_children if child.type != k.COMMENT]
    return [init]


def _with_length(kind: Type, init: Node) -> Type:
    """An array without a length takes it from its initialiser."""
    if kind.kind != "array" or kind.count is not None or kind.element is None:
        return kind
    if init.type == k.INITIALIZER_LIST:
        parts = [child for child in init.named_children if child.type != k.COMMENT]
        if any(child.type == k.INITIALIZER_PAIR for child in parts):
            return kind
        return array_of(kind.element, len(parts))
    if init.type == k.STRING_LITERAL:
        return array_of(kind.element, literals.string_length(text_of(init)))
    return kind


def _register(node: Node, kind: Type, scope: Scope) -> None:
    """Enter a locally defined class or enumeration into a scope that somebody walks."""
    if scope.record is not None and not scope.locals and scope is scope.record.scope:
        return
    name = node.child_by_field_name(k.F_NAME)
    body = node.child_by_field_name(k.F_BODY)
    if body is None:
        return
    if name is not None:
        scope.declare(text_of(name), kind)
    if node.type == k.ENUM_SPECIFIER:
        value = -1
        for child in body.named_children:
            if child.type != k.ENUMERATOR:
                continue
            label, given = child.child_by_field_name(k.F_NAME), child.child_by_field_name(k.F_VALUE)
            known = constants.evaluate(given, scope) if given is not None else value + 1
            if label is None or not isinstance(known, int):
                break
            value = known
            scope.declare(text_of(label), value)


def declare_local(node: Node, scope: Scope) -> bool:
    """Enter what a local type declaration declares into the scope; whether `node` is one."""
    kind = node.type
    if kind == k.ALIAS_DECLARATION:
        name, target = node.child_by_field_name(k.F_NAME), node.child_by_field_name(k.F_TYPE)
        if name is not None and target is not None:
            scope.declare(text_of(name), resolve_type(target, scope))
        return True
    if kind == k.TYPE_DEFINITION:
        base_node = node.child_by_field_name(k.F_TYPE)
        if base_node is not None:
            base = resolve_type(base_node, scope)
            if base_node.type in _CLASSES or base_node.type == k.ENUM_SPECIFIER:
                _register(base_node, base, scope)
            for declarator in node.children_by_field_name(k.F_DECLARATOR):
                shape = _shape(declarator, base, scope)
                if shape.name is not None:
                    scope.declare(text_of(shape.name), shape.type)
        return True
    if kind in _CLASSES or kind == k.ENUM_SPECIFIER:
        _register(node, resolve_type(node, scope), scope)
        return True
    return kind in (k.USING_DECLARATION, k.NAMESPACE_ALIAS_DEFINITION)


# ------------------------------------------------------------------------- functions

_PARAMETERS = frozenset((k.PARAMETER_DECLARATION, k.OPTIONAL_PARAMETER_DECLARATION, k.VARIADIC_PARAMETER_DECLARATION))


def parameters(function: FunctionDef, scope: Scope) -> tuple[Declared, ...]:
    """The parameters of a function in order.  Arrays decay; a bound pack gives one `Declared` per element, all with its name."""
    program = function.unit.program
    names = (param.name for param in (*function.owner_template, *function.template))
    key = (function, scope.record, *map(scope.bound, names))
    found = program.signatures.get(key)
    if found is None:
        found = _parameters(function.parameter_list, scope)
        if program.guard.idle:
            program.signatures[key] = found
    return found


def lambda_parameters(declarator: Node, scope: Scope) -> tuple[Declared, ...]:
    """The parameters of a lambda's declarator."""
    return _parameters(declarator.child_by_field_name(k.F_PARAMETERS), scope)


def _parameters(node: Node | None, scope: Scope) -> tuple[Declared, ...]:
    found: list[Declared] = []
    for child in node.named_children if node is not None else ():
        if child.type not in _PARAMETERS:
            continue
        base_node = child.child_by_field_name(k.F_TYPE)
        if base_node is None:
            continue
        declarator = child.child_by_field_name(k.F_DECLARATOR)
        if declarator is None and text_of(base_node) == "void":
            continue
        found.extend(_parameter(child, base_node, declarator, scope))
    return tuple(found)


def _parameter(node: Node, base_node: Node, declarator: Node | None, scope: Scope) -> list[Declared]:
    pack = scope.bound(text_of(base_node)) if node.type == k.VARIADIC_PARAMETER_DECLARATION else None
    if isinstance(pack, tuple):
        kinds = [kind if isinstance(kind, Type) else UNKNOWN for kind in pack]
        return [_one_parameter(node, base_node, declarator, kind, scope) for kind in kinds]
    return [_one_parameter(node, base_node, declarator, resolve_type(base_node, scope), scope)]


def _one_parameter(node: Node, base_node: Node, declarator: Node | None, base: Type, scope: Scope) -> Declared:
    end = declarator.start_byte if declarator is not None else node.end_byte
    words = frozenset(_WORD.findall((node.text or b"")[: end - node.start_byte]))
    shape = _shape(declarator, base, scope)
    kind = shape.type
    if not shape.reference:
        if kind.kind == "array" and kind.element is not None:
            kind = pointer_to(kind.element)
        elif kind is _FUNCTION:
            kind = pointer_to(kind)
    return Declared(
        text_of(shape.name) if shape.name is not None else "",
        shape.name,
        kind,
        declarator if declarator is not None else node,
        shape.reference,
        node.child_by_field_name(k.F_DEFAULT_VALUE),
        shape.dims,
        const=b"const" in words,
        volatile=b"volatile" in words,
        auto=base_node.type == k.PLACEHOLDER_TYPE_SPECIFIER,
        restrict=shape.restrict or _raw_restrict(node, scope),
        pack=shape.pack or node.type == k.VARIADIC_PARAMETER_DECLARATION,
    )


def _raw_restrict(node: Node, scope: Scope) -> bool:
    """Spellings of `restrict` that masking took out."""
    raw = scope.unit.source.data[node.start_byte : node.end_byte]
    return raw != node.text and b"restrict" in raw.lower()


def return_type(function: FunctionDef, scope: Scope) -> Type:
    """The return type; UNKNOWN for `auto` without a trailing type, VOID for constructors."""
    trailing = next((child for child in function.declarator.named_children if child.type == k.TRAILING_RETURN_TYPE), None)
    if trailing is not None:
        return resolve_type(trailing, scope)
    base_node = function.node.child_by_field_name(k.F_TYPE)
    if base_node is None:
        if function.name.startswith("operator "):
            cast = function.declarator.parent
            base_node = cast.child_by_field_name(k.F_TYPE) if cast is not None else None
        if base_node is None:
            return VOID
    kind = resolve_type(base_node, scope)
    node: Node | None = function.node.child_by_field_name(k.F_DECLARATOR)
    while node is not None and node != function.declarator:
        if node.type == k.POINTER_DECLARATOR:
            kind = pointer_to(kind)
        node = inner_declarator(node)
    return kind


def returns_reference(function: FunctionDef) -> bool:
    """Whether a function returns a reference."""
    node: Node | None = function.node.child_by_field_name(k.F_DECLARATOR)
    while node is not None and node != function.declarator:
        if node.type == k.REFERENCE_DECLARATOR:
            return True
        node = inner_declarator(node)
    return False


# ------------------------------------------------------------------------- variables


def scope_of_variable(variable: GlobalVar, bindings: Bindings | None) -> Scope:
    """The scope in which a variable's declaration stands."""
    if variable.owner is not None:
        scope = records.record_for(variable.owner, bindings or {}).scope
        return scope.child(bindings) if bindings else scope
    return scopes.Scope(variable.unit, bindings=bindings, namespace=variable.namespace, offset=variable.node.end_byte)


def variable_type(variable: GlobalVar, scope: Scope) -> Type:
    """The declared type of a variable, seen from the scope of its declaration."""
    base_node = variable.node.child_by_field_name(k.F_TYPE)
    if base_node is None:
        return UNKNOWN
    kind = _shape(variable.declarator, resolve_type(base_node, scope), scope).type
    return _with_length(kind, variable.init) if variable.init is not None else kind


def type_of_variable(variable: GlobalVar) -> Type:
    """The declared type of a variable at namespace scope."""
    return variable_type(variable, scope_of_variable(variable, None))


# ----------------------------------------------------------------------- expressions


def expression_type(node: Node, scope: Scope) -> Type:
    """The type of an expression as far as `sizeof` and overloads need it; UNKNOWN where that takes more."""
    guard = scope.unit.program.guard
    if not guard.enter():
        return UNKNOWN
    try:
        return _expression_type(node, scope)
    except RecursionError:
        if guard.depth > 1 or guard.nesting:
            raise
        return UNKNOWN
    finally:
        guard.leave()


def _expression_type(node: Node, scope: Scope) -> Type:
    kind = node.type
    if kind in (k.PARENTHESIZED_EXPRESSION, k.COMMA_EXPRESSION):
        parts = [child for child in node.named_children if child.type != k.COMMENT]
        return expression_type(parts[-1], scope) if parts else UNKNOWN
    if kind in _SIMPLE_NAMES:
        return _name_type(text_of(node), scope)
    if kind == k.SUBSCRIPT_EXPRESSION:
        return _element(expression_type(node.child_by_field_name(k.F_ARGUMENT) or node, scope))
    if kind == k.POINTER_EXPRESSION:
        operand = node.child_by_field_name(k.F_ARGUMENT)
        inner = expression_type(operand, scope) if operand is not None else UNKNOWN
        if (node.text or b"").startswith(b"&"):
            return pointer_to(inner) if inner.kind != "unknown" else UNKNOWN
        return _element(inner)
    if kind == k.FIELD_EXPRESSION:
        return _field_type(node, scope)
    if kind in (k.CAST_EXPRESSION, k.COMPOUND_LITERAL_EXPRESSION):
        target = node.child_by_field_name(k.F_TYPE)
        return resolve_type(target, scope) if target is not None else UNKNOWN
    if kind == k.CALL_EXPRESSION:
        return _call_type(node, scope)
    if kind == k.STRING_LITERAL:
        return array_of(CHAR, literals.string_length(text_of(node)))
    if kind == k.NULL:
        return NULLPTR
    return _computed_type(node, scope)


def _computed_type(node: Node, scope: Scope) -> Type:
    kind = node.type
    if kind == k.BINARY_EXPRESSION:
        left, right = node.child_by_field_name(k.F_LEFT), node.child_by_field_name(k.F_RIGHT)
        operator = node.child_by_field_name(k.F_OPERATOR)
        if left is None or right is None or operator is None:
            return UNKNOWN
        if text_of(operator) in ("<", ">", "<=", ">=", "==", "!=", "&&", "||", "and", "or", "not_eq"):
            return BOOL
        first = expression_type(left, scope)
        return (
            arithmetic.promoted(first) if text_of(operator) in ("<<", ">>") else common_type(first, expression_type(right, scope))
        )
    if kind == k.UNARY_EXPRESSION:
        operand = node.child_by_field_name(k.F_ARGUMENT)
        inner = expression_type(operand, scope) if operand is not None else UNKNOWN
        return BOOL if (node.text or b"").startswith((b"!", b"not")) else arithmetic.promoted(inner)
    if kind == k.CONDITIONAL_EXPRESSION:
        then, other = node.child_by_field_name(k.F_CONSEQUENCE), node.child_by_field_name(k.F_ALTERNATIVE)
        if then is None or other is None:
            return UNKNOWN
        return common_type(expression_type(then, scope), expression_type(other, scope))
    if kind in (k.SIZEOF_EXPRESSION, k.ALIGNOF_EXPRESSION):
        return ULONG
    found = constants.evaluate_typed(node, scope)
    if found is not None:
        return found[1]
    return resolve_type(node, scope) if kind in (k.QUALIFIED_IDENTIFIER, k.TEMPLATE_FUNCTION) else UNKNOWN


def _element(kind: Type) -> Type:
    return kind.element if kind.kind in ("pointer", "array") and kind.element is not None else UNKNOWN


def _name_type(name: str, scope: Scope) -> Type:
    if scope.variable_type is not None:
        found = scope.variable_type(name)
        if found is not None:
            return found
    bound = scope.bound(name)
    if isinstance(bound, Type):
        return bound
    if isinstance(bound, (int, float)):
        return arithmetic.typed(bound)[1]
    if bound is None and scope.macro(name) is None:
        variable = scope.variable(name)
        if variable is not None:
            return variable_type(variable, scope_of_variable(variable, None))
        if scope.record is not None:
            member = records.member_field(scope.record.type, name)
            if member is not None:
                return member.type
    value: Typed | None = constants.named(name, scope)
    return value[1] if value is not None else named_type(name, scope) or UNKNOWN


def _field_type(node: Node, scope: Scope) -> Type:
    operand, field = node.child_by_field_name(k.F_ARGUMENT), node.child_by_field_name(k.F_FIELD)
    if operand is None or field is None:
        return UNKNOWN
    kind = expression_type(operand, scope)
    if kind.kind == "pointer" and kind.element is not None:
        kind = kind.element
    member = records.member_field(kind, text_of(field))
    return member.type if member is not None else UNKNOWN


def _call_type(node: Node, scope: Scope) -> Type:
    function = node.child_by_field_name(k.F_FUNCTION)
    if function is None:
        return UNKNOWN
    if function.type in (k.PRIMITIVE_TYPE, k.SIZED_TYPE_SPECIFIER):
        return resolve_type(function, scope)
    if function.type == k.TEMPLATE_FUNCTION:
        name, arguments = function.child_by_field_name(k.F_NAME), function.child_by_field_name(k.F_ARGUMENTS)
        if name is not None and arguments is not None and text_of(name).endswith("_cast"):
            values = resolve_template_arguments(arguments, scope)
            return values[0] if values and isinstance(values[0], Type) else UNKNOWN
    found = constants.evaluate_typed(node, scope)
    if found is not None:
        return found[1]
    return named_type(text_of(function), scope) or UNKNOWN if function.type == k.IDENTIFIER else UNKNOWN
