"""What a file declares: functions, types, variables, aliases and enumerators.

One descent over namespaces, templates, linkage blocks and the active arms of
`#if` collects a `Symbols` table; bodies of functions are not entered, bodies of
classes only when somebody asks for their members.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from cudalint.semantics.preprocess import macro_arguments
from cudalint.syntax import kinds as k
from cudalint.syntax.tree import parse_fragment

if TYPE_CHECKING:
    from tree_sitter import Node

    from cudalint.semantics.program import Unit

FunctionKind = Literal["kernel", "device", "host"]
Space = Literal["", "constant", "global", "shared", "managed"]

_MAX_NESTING = 100
_WRAPPERS = frozenset(
    (
        k.POINTER_DECLARATOR,
        k.REFERENCE_DECLARATOR,
        k.PARENTHESIZED_DECLARATOR,
        k.ATTRIBUTED_DECLARATOR,
        k.INIT_DECLARATOR,
        k.ARRAY_DECLARATOR,
        k.VARIADIC_DECLARATOR,
    )
)
_NAMES = frozenset(
    (k.IDENTIFIER, k.FIELD_IDENTIFIER, k.TYPE_IDENTIFIER, k.NAMESPACE_IDENTIFIER, k.OPERATOR_NAME, k.DESTRUCTOR_NAME)
)
_TEMPLATED_NAMES = frozenset((k.TEMPLATE_FUNCTION, k.TEMPLATE_METHOD, k.TEMPLATE_TYPE))
_CLASSES = frozenset((k.STRUCT_SPECIFIER, k.CLASS_SPECIFIER, k.UNION_SPECIFIER))
_PREPROC = frozenset((k.PREPROC_IF, k.PREPROC_IFDEF, k.PREPROC_ELIF, k.PREPROC_ELIFDEF, k.PREPROC_ELSE))
_DECLARATORS = (
    _WRAPPERS
    | _NAMES
    | _TEMPLATED_NAMES
    | {k.FUNCTION_DECLARATOR, k.QUALIFIED_IDENTIFIER, k.STRUCTURED_BINDING_DECLARATOR, k.OPERATOR_CAST}
)
_SPACES: tuple[tuple[bytes, Space], ...] = (
    (b"__constant__", "constant"),
    (b"__shared__", "shared"),
    (b"__managed__", "managed"),
    (b"__device__", "global"),
)


def text_of(node: Node) -> str:
    """The text of a node; bytes that are not UTF-8 are replaced."""
    return (node.text or b"").decode("utf-8", "replace")


# ----------------------------------------------------------------------- symbols


@dataclass(frozen=True, slots=True, eq=False)
class TemplateParam:
    """One template parameter; `default` is the node of its default argument, `node` the whole parameter."""

    name: str
    kind: Literal["type", "value", "template"]
    node: Node
    default: Node | None = None
    pack: bool = False


class FunctionDef:
    """A function definition or, where `body` is None, a prototype.  Offsets are bytes in `path`.

    name          "saxpy", "operator+", the class name for a constructor, "~Vec" for a destructor, "operator int"
    qualified     with namespaces and class: "ns::Vec::at"
    node          the whole definition without its template head
    declarator    the function declarator (parameters, trailing return type)
    template      its own template parameters; `owner_template` those of its class for a definition outside of it
    owner         the class it is a member of
    scope_node    what stands before the last `::` of a definition outside of its class
    specialises   the argument list of `template<> void f<int>()`
    start         first byte with the template head, `header_start` without, `header_end` of the `{` (or `;`), `end` of it all
    """

    __slots__ = (
        "_attributes",
        "_launch_bounds",
        "_owner",
        "body",
        "declarator",
        "end",
        "header_end",
        "header_start",
        "is_static",
        "kind",
        "name",
        "name_end",
        "name_start",
        "namespace",
        "node",
        "owner_name",
        "owner_template",
        "parameter_list",
        "qualified",
        "scope_node",
        "specialises",
        "start",
        "template",
        "unit",
    )

    qualified: str

    def __init__(self, unit: Unit, node: Node, declarator: Node, name: _Name, place: _Place) -> None:
        self.unit = unit
        self.node = node
        self.declarator = declarator
        self.body = _body_of(node)
        self.name = name.text
        self.name_start, self.name_end = name.node.start_byte, name.node.end_byte
        self.namespace = place.namespace
        self.scope_node = name.scope
        self.specialises = name.arguments
        self.start = place.start if place.start >= 0 else node.start_byte
        self.header_start = node.start_byte
        self.header_end = self.body.start_byte if self.body is not None else node.end_byte
        self.end = node.end_byte
        header = (node.text or b"")[: max(0, self.name_start - node.start_byte)]
        self.kind: FunctionKind = _function_kind(unit, header, node)
        self.is_static = b"static" in header
        self.parameter_list = declarator.child_by_field_name(k.F_PARAMETERS)
        self._owner: StructDef | None = place.owner
        self.owner_name = place.owner.qualified if place.owner is not None else name.scope_text
        self.template, self.owner_template = _split_templates(place, name)
        prefix = place.owner.qualified if place.owner is not None else join_names(place.namespace, name.scope_text)
        self.qualified = join_names(prefix, self.name)
        self._launch_bounds: tuple[Node, ...] | None = None
        self._attributes: dict[str, str] | None = None

    def __repr__(self) -> str:
        return f"FunctionDef({self.qualified!r}, {self.kind}, {self.path})"

    @property
    def path(self) -> str:
        """The file that holds it."""
        return self.unit.path

    @property
    def owner(self) -> StructDef | None:
        """The class of a member function; for definitions outside of the class it is looked up."""
        if self._owner is None and self.scope_node is not None:
            self._owner = self.unit.owner_of(self)
        return self._owner

    @property
    def is_const(self) -> bool:
        """A `const` member function."""
        return any(child.type == k.TYPE_QUALIFIER and child.text == b"const" for child in self.declarator.named_children)

    @property
    def launch_bounds(self) -> tuple[Node, ...]:
        """The arguments of `__launch_bounds__`, of a prototype if the definition has none; in `launch_bounds_unit`."""
        return self._bounds()[0]

    @property
    def launch_bounds_unit(self) -> Unit:
        """The file whose offsets and macros `launch_bounds` refers to."""
        return self._bounds()[1]

    def _bounds(self) -> tuple[tuple[Node, ...], Unit]:
        own = self.own_launch_bounds
        if own or self.body is None:
            return own, self.unit
        for prototype in self.unit.prototypes(self.name):
            if prototype.own_launch_bounds:
                return prototype.own_launch_bounds, prototype.unit
        return (), self.unit

    @property
    def own_launch_bounds(self) -> tuple[Node, ...]:
        """The arguments of `__launch_bounds__` written here."""
        if self._launch_bounds is None:
            nodes: list[Node] = []
            for child in self.node.named_children:
                if child.type == k.LAUNCH_BOUNDS:
                    nodes.extend(part for part in child.named_children if part.type != k.COMMENT and not part.is_error)
                elif child.type == k.COMPOUND_STATEMENT:
                    break
            self._launch_bounds = tuple(nodes) or _parsed_arguments(self.attributes.get("__launch_bounds__", ""))
        return self._launch_bounds

    @property
    def attributes(self) -> dict[str, str]:
        """What masking took out of the header ("__cluster_dims__", "max_blocks_per_cluster", …) to argument text."""
        if self._attributes is None:
            self._attributes = self.unit.parsed.specifiers(self.node)
        return self._attributes


def _parsed_arguments(text: str) -> tuple[Node, ...]:
    """The arguments of an attribute that a macro spells."""
    split = macro_arguments(f"({text})", 0) if text else None
    if split is None:
        return ()
    parsed = [parse_fragment(argument.encode(), "expression") for argument in split[0]]
    return () if any(broken for _, _, broken in parsed) else tuple(node for node, _, _ in parsed)


@dataclass(slots=True, eq=False)
class GlobalVar:
    """A variable at namespace scope, or a static data member (then `owner` is its class).

    node        the declaration, `declarator` the declarator of this variable, `init` its initialiser
    space       "constant", "global" (`__device__`), "shared", "managed", or "" for a host variable
    specialises the argument list of a variable template's specialisation
    """

    name: str
    qualified: str
    unit: Unit
    node: Node
    declarator: Node
    init: Node | None
    space: Space
    extern: bool
    is_const: bool
    namespace: str
    template: tuple[TemplateParam, ...] = ()
    specialises: Node | None = None
    owner: StructDef | None = None
    is_constexpr: bool = False


@dataclass(slots=True, eq=False)
class TypeAlias:
    """`using name = …;` (`declarator` None, `type_node` the right side) or one declarator of a typedef."""

    name: str
    qualified: str
    unit: Unit
    node: Node
    type_node: Node
    declarator: Node | None
    namespace: str
    template: tuple[TemplateParam, ...] = ()
    owner: StructDef | None = None


@dataclass(slots=True, eq=False)
class EnumDef:
    """An enumeration; `scoped` for `enum class`.  Enumerators are (name, value node or None) in order."""

    name: str
    qualified: str
    unit: Unit
    node: Node
    namespace: str
    scoped: bool
    enumerators: tuple[tuple[str, Node | None], ...]
    owner: StructDef | None = None

    def index(self, name: str) -> int | None:
        """Position of an enumerator."""
        for position, (known, _) in enumerate(self.enumerators):
            if known == name:
                return position
        return None


class StructDef:
    """A class, struct or union with a body.

    specialises  the argument list of `template<…> struct Foo<…>`
    owner        the class around a nested one
    start        first byte with the template head
    """

    __slots__ = (
        "_members",
        "kind",
        "name",
        "namespace",
        "node",
        "owner",
        "qualified",
        "specialises",
        "start",
        "template",
        "unit",
    )

    qualified: str

    def __init__(self, unit: Unit, node: Node, name: str, specialises: Node | None, place: _Place) -> None:
        self.unit = unit
        self.node = node
        self.name = name
        self.kind: Literal["struct", "class", "union"] = _CLASS_KINDS.get(node.type, "struct")
        self.specialises = specialises
        self.owner = place.owner
        self.namespace = place.namespace
        self.template = template_params(place.templates[-1]) if place.templates else ()
        self.start = place.start if place.start >= 0 else node.start_byte
        prefix = place.owner.qualified if place.owner is not None else place.namespace
        self.qualified = join_names(prefix, name)
        self._members: Members | None = None

    def __repr__(self) -> str:
        return f"StructDef({self.qualified!r}, {self.unit.path})"

    @property
    def members(self) -> Members:
        """Its members, collected on first use."""
        if self._members is None:
            self._members = Members()
            _collect_members(self, self._members)
        return self._members


_CLASS_KINDS: dict[str, Literal["struct", "class", "union"]] = {
    k.STRUCT_SPECIFIER: "struct",
    k.CLASS_SPECIFIER: "class",
    k.UNION_SPECIFIER: "union",
}
TypeSymbol = StructDef | TypeAlias | EnumDef


@dataclass(slots=True, eq=False)
class Members:
    """The members of a class by name.

    fields   the declarations of non-static data members in order; `hidden`: some of them are private or protected
    virtual  it has virtual functions of its own
    """

    fields: list[Node] = field(default_factory=list)
    functions: dict[str, list[FunctionDef]] = field(default_factory=dict)
    types: dict[str, list[TypeSymbol]] = field(default_factory=dict)
    constants: dict[str, GlobalVar] = field(default_factory=dict)
    enumerators: dict[str, EnumDef] = field(default_factory=dict)
    using: list[Node] = field(default_factory=list)
    bases: list[Node] = field(default_factory=list)
    virtual: bool = False
    hidden: bool = False


@dataclass(slots=True, eq=False)
class Symbols:
    """What one file declares outside of functions, by unqualified name."""

    functions: dict[str, list[FunctionDef]] = field(default_factory=dict)
    prototypes: dict[str, list[FunctionDef]] = field(default_factory=dict)
    types: dict[str, list[TypeSymbol]] = field(default_factory=dict)
    forwards: dict[str, list[tuple[TemplateParam, ...]]] = field(default_factory=dict)
    variables: dict[str, list[GlobalVar]] = field(default_factory=dict)
    enumerators: dict[str, list[EnumDef]] = field(default_factory=dict)
    instantiations: dict[str, list[Node]] = field(default_factory=dict)
    namespace_aliases: dict[str, str] = field(default_factory=dict)
    _ordered: tuple[FunctionDef, ...] | None = field(default=None, repr=False)

    def all_functions(self) -> tuple[FunctionDef, ...]:
        """Every function definition outside of class bodies, by position; ask when all are in."""
        if self._ordered is None:
            found = [function for group in self.functions.values() for function in group]
            self._ordered = tuple(sorted(found, key=lambda function: function.start))
        return self._ordered


# ------------------------------------------------------------------------- names


@dataclass(frozen=True, slots=True)
class _Name:
    """A declared name: its node, text, template arguments, and what stands before the last `::`."""

    node: Node
    text: str
    arguments: Node | None = None
    scope: Node | None = None
    scope_text: str = ""
    scope_templates: int = 0


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the descent stands."""

    namespace: str = ""
    owner: StructDef | None = None
    templates: tuple[Node, ...] = ()
    start: int = -1

    def inside(self, namespace: str) -> _Place:
        return _Place(join_names(self.namespace, namespace), self.owner)


def join_names(prefix: str, name: str) -> str:
    """`prefix::name`, or the one that is not empty."""
    return f"{prefix}::{name}" if prefix and name else prefix or name


_BLANKS = re.compile(r"\s+")
_TEMPLATE_ARGUMENTS = re.compile(r"<.*?>(?=::|$)", re.DOTALL)


def declarator_name(declarator: Node) -> Node | None:
    """The node of the declared name: identifier, qualified or operator name; None if there is none."""
    node: Node | None = declarator
    for _ in range(_MAX_NESTING):
        if node is None:
            return None
        if node.type in _NAMES or node.type in _TEMPLATED_NAMES or node.type in (k.QUALIFIED_IDENTIFIER, k.OPERATOR_CAST):
            return node
        if node.type not in _WRAPPERS and node.type != k.FUNCTION_DECLARATOR:
            return None
        node = inner_declarator(node)
    return None


def inner_declarator(node: Node) -> Node | None:
    """The declarator inside a wrapping one; wrappers without a field hold it as their last named child."""
    inner = node.child_by_field_name(k.F_DECLARATOR)
    if inner is not None:
        return inner
    if node.type not in _UNNAMED_INSIDE:
        return None
    return next((child for child in reversed(node.named_children) if child.type in _DECLARATORS), None)


_UNNAMED_INSIDE = frozenset((k.REFERENCE_DECLARATOR, k.PARENTHESIZED_DECLARATOR, k.ATTRIBUTED_DECLARATOR, k.VARIADIC_DECLARATOR))


def function_declarator(declarator: Node) -> Node | None:
    """The declarator that makes this a function, None for variables and pointers to functions."""
    node: Node | None = declarator
    for _ in range(_MAX_NESTING):
        if node is None:
            return None
        if node.type == k.FUNCTION_DECLARATOR:
            inner = node.child_by_field_name(k.F_DECLARATOR)
            if inner is None or (inner.type == k.PARENTHESIZED_DECLARATOR and not _is_plain_parenthesis(inner)):
                return None
            return node
        if node.type not in _WRAPPERS:
            return None
        node = inner_declarator(node)
    return None


def _is_plain_parenthesis(node: Node) -> bool:
    inner = inner_declarator(node)
    return inner is not None and inner.type in (k.IDENTIFIER, k.FIELD_IDENTIFIER)


def _resolve_name(node: Node) -> _Name | None:
    """The last component of a possibly qualified, possibly templated name."""
    scopes: list[Node] = []
    current: Node | None = node
    for _ in range(_MAX_NESTING):
        if current is None or current.type != k.QUALIFIED_IDENTIFIER:
            break
        scope = current.child_by_field_name(k.F_SCOPE)
        if scope is not None:
            scopes.append(scope)
        current = current.child_by_field_name(k.F_NAME)
    if current is None:
        return None
    arguments = None
    if current.type in _TEMPLATED_NAMES:
        arguments = current.child_by_field_name(k.F_ARGUMENTS)
        current = current.child_by_field_name(k.F_NAME) or current
    text = text_of(current)
    if current.type == k.OPERATOR_CAST:
        cast = current.child_by_field_name(k.F_TYPE)
        text = "operator " + (text_of(cast) if cast is not None else "")
    elif current.type == k.OPERATOR_NAME:
        text = _operator_text(text)
    scope_text = "::".join(plain_name(scope) for scope in scopes)
    templated = sum(scope.type == k.TEMPLATE_TYPE for scope in scopes)
    return _Name(current, text, arguments, scopes[-1] if scopes else None, scope_text, templated)


def plain_name(node: Node) -> str:
    """The text of a name without template arguments."""
    if node.type in _TEMPLATED_NAMES:
        name = node.child_by_field_name(k.F_NAME)
        return text_of(name) if name is not None else ""
    return _BLANKS.sub("", text_of(node))


def _operator_text(text: str) -> str:
    operator = _BLANKS.sub("", text)
    rest = operator.removeprefix("operator")
    return f"operator {rest}" if rest[:1].isalpha() else operator


def _body_of(node: Node) -> Node | None:
    body = node.child_by_field_name(k.F_BODY)
    if body is not None and body.type == k.TRY_STATEMENT:
        body = body.child_by_field_name(k.F_BODY)
    return body if body is not None and body.type == k.COMPOUND_STATEMENT else None


def _function_kind(unit: Unit, header: bytes, node: Node) -> FunctionKind:
    if b"__global__" in header:
        return "kernel"
    blanked = unit.parsed.specifiers(node)
    if "__global__" in blanked:
        return "kernel"
    return "device" if b"__device__" in header or "__device__" in blanked else "host"


def _split_templates(place: _Place, name: _Name) -> tuple[tuple[TemplateParam, ...], tuple[TemplateParam, ...]]:
    """Own template parameters, and those that belong to the class of a definition outside of it."""
    heads = [template_params(head) for head in place.templates]
    if name.scope_templates == 0 or not heads:
        return (heads[-1] if heads else ()), ()
    of_class = heads[: name.scope_templates]
    own = heads[name.scope_templates :]
    return (own[-1] if own else ()), tuple(param for head in of_class for param in head)


# ---------------------------------------------------------------------- templates

_TYPE_PARAMS = frozenset(
    (k.TYPE_PARAMETER_DECLARATION, k.OPTIONAL_TYPE_PARAMETER_DECLARATION, k.VARIADIC_TYPE_PARAMETER_DECLARATION)
)
_VALUE_PARAMS = frozenset((k.PARAMETER_DECLARATION, k.OPTIONAL_PARAMETER_DECLARATION, k.VARIADIC_PARAMETER_DECLARATION))


def template_params(head: Node) -> tuple[TemplateParam, ...]:
    """The parameters of a template parameter list."""
    params: list[TemplateParam] = []
    for child in head.named_children:
        if child.type in _TYPE_PARAMS:
            params.append(_type_param(child))
        elif child.type in _VALUE_PARAMS:
            params.append(_value_param(child))
        elif child.type == k.TEMPLATE_TEMPLATE_PARAMETER_DECLARATION:
            inner = next((part for part in child.named_children if part.type in _TYPE_PARAMS), child)
            found = _type_param(inner)
            params.append(TemplateParam(found.name, "template", child, found.default, found.pack))
    return tuple(params)


def _type_param(node: Node) -> TemplateParam:
    name = node.child_by_field_name(k.F_NAME)
    if name is None:
        name = next((child for child in node.named_children if child.type == k.TYPE_IDENTIFIER), None)
        default = node.child_by_field_name(k.F_DEFAULT_TYPE)
        if default is not None and name is not None and default.start_byte <= name.start_byte:
            name = None
    default = node.child_by_field_name(k.F_DEFAULT_TYPE)
    pack = node.type == k.VARIADIC_TYPE_PARAMETER_DECLARATION
    return TemplateParam(text_of(name) if name is not None else "", "type", node, default, pack)


def _value_param(node: Node) -> TemplateParam:
    declarator = node.child_by_field_name(k.F_DECLARATOR)
    name = declarator_name(declarator) if declarator is not None else None
    default = node.child_by_field_name(k.F_DEFAULT_VALUE)
    pack = node.type == k.VARIADIC_PARAMETER_DECLARATION
    # `typename T::type = 0` (enable_if) has no name
    return TemplateParam(text_of(name) if name is not None else "", "value", node, default, pack)


# ------------------------------------------------------------------------- descent


def active_children(node: Node, unit: Unit) -> list[Node]:
    """The named children of a block with arms of `#if` flattened to what the target compiles, comments left out."""
    filtering = bool(unit.preprocessed.inactive)
    found: list[Node] = []
    _flatten(node, unit, filtering, found, 0)
    return found


def _flatten(node: Node, unit: Unit, filtering: bool, found: list[Node], depth: int) -> None:
    skip = node.child_by_field_name(k.F_CONDITION) or node.child_by_field_name(k.F_NAME) if node.type in _PREPROC else None
    for child in node.named_children:
        kind = child.type
        if kind in _PREPROC:
            if depth < _MAX_NESTING:
                _flatten(child, unit, filtering, found, depth + 1)
        elif kind != k.COMMENT and child != skip and (not filtering or unit.is_active(child.start_byte)):
            found.append(child)


def collect(unit: Unit) -> Symbols:
    """The symbols of a file."""
    symbols = Symbols()
    _Collector(unit, symbols).block(unit.root, _Place(), 0)
    return symbols


class _Collector:
    """Fills a `Symbols` from the blocks of a file."""

    def __init__(self, unit: Unit, symbols: Symbols) -> None:
        self.unit = unit
        self.symbols = symbols

    def block(self, node: Node, place: _Place, depth: int) -> None:
        if depth > _MAX_NESTING:
            return
        for child in active_children(node, self.unit):
            self.item(child, place, depth)

    def item(self, node: Node, place: _Place, depth: int) -> None:
        kind = node.type
        if kind == k.FUNCTION_DEFINITION:
            self.function(node, place)
        elif kind == k.TEMPLATE_DECLARATION:
            self.template(node, place, depth)
        elif kind == k.DECLARATION:
            self.declaration(node, place)
        elif kind == k.NAMESPACE_DEFINITION:
            self.namespace(node, place, depth)
        elif kind == k.LINKAGE_SPECIFICATION:
            self.linkage(node, place, depth)
        elif node.is_error or kind == k.FRIEND_DECLARATION or kind == k.DECLARATION_LIST:
            self.block(node, place, depth + 1)
        elif kind == k.TEMPLATE_INSTANTIATION:
            self.instantiation(node)
        elif kind == k.NAMESPACE_ALIAS_DEFINITION:
            parts = node.named_children
            if len(parts) == 2:
                self.symbols.namespace_aliases[text_of(parts[0])] = plain_name(parts[1])
        else:
            collect_type(node, place, self.unit, self.symbols.types, self.symbols.enumerators, self.symbols.forwards)

    def template(self, node: Node, place: _Place, depth: int) -> None:
        head = node.child_by_field_name(k.F_PARAMETERS)
        heads = (*place.templates, head) if head is not None else place.templates
        start = place.start if place.start >= 0 else node.start_byte
        inner = _Place(place.namespace, place.owner, heads, start)
        if depth > _MAX_NESTING:
            return
        for child in node.named_children:
            if child.type not in (k.TEMPLATE_PARAMETER_LIST, k.COMMENT, k.REQUIRES_CLAUSE):
                self.item(child, inner, depth + 1)

    def namespace(self, node: Node, place: _Place, depth: int) -> None:
        body = node.child_by_field_name(k.F_BODY)
        if body is None:
            return
        name = node.child_by_field_name(k.F_NAME)
        self.block(body, place.inside(plain_name(name) if name is not None else ""), depth + 1)

    def linkage(self, node: Node, place: _Place, depth: int) -> None:
        body = node.child_by_field_name(k.F_BODY)
        if body is None:
            return
        if body.type == k.DECLARATION_LIST:
            self.block(body, place, depth + 1)
        else:
            self.item(body, _Place(place.namespace, place.owner, place.templates, node.start_byte), depth + 1)

    def function(self, node: Node, place: _Place) -> None:
        function = make_function(self.unit, node, place)
        if function is not None:
            table = self.symbols.functions if function.body is not None else self.symbols.prototypes
            table.setdefault(function.name, []).append(function)
        kind = node.child_by_field_name(k.F_TYPE)
        if kind is not None and kind.type in _CLASSES and kind.child_by_field_name(k.F_BODY) is not None:
            collect_type(kind, place, self.unit, self.symbols.types, self.symbols.enumerators, self.symbols.forwards)

    def declaration(self, node: Node, place: _Place) -> None:
        kind = node.child_by_field_name(k.F_TYPE)
        if kind is not None and (kind.type in _CLASSES or kind.type == k.ENUM_SPECIFIER):
            collect_type(kind, place, self.unit, self.symbols.types, self.symbols.enumerators, self.symbols.forwards)
        for declarator in node.children_by_field_name(k.F_DECLARATOR):
            if function_declarator(declarator) is not None:
                function = make_function(self.unit, node, place, declarator)
                if function is not None:
                    self.symbols.prototypes.setdefault(function.name, []).append(function)
                continue
            variable = make_variable(self.unit, node, declarator, None, place)
            if variable is not None:
                self.symbols.variables.setdefault(variable.name, []).append(variable)

    def instantiation(self, node: Node) -> None:
        declarator = node.child_by_field_name(k.F_DECLARATOR)
        name_node = declarator_name(declarator) if declarator is not None else None
        name = _resolve_name(name_node) if name_node is not None else None
        if name is not None:
            self.symbols.instantiations.setdefault(name.text, []).append(node)


def make_function(unit: Unit, node: Node, place: _Place, declarator: Node | None = None) -> FunctionDef | None:
    """The function that `node` defines or declares, None if it declares something else."""
    declarator = declarator or node.child_by_field_name(k.F_DECLARATOR)
    if declarator is None:
        return None
    functor = function_declarator(declarator)
    if functor is None:
        name_node = declarator_name(declarator)
        name = _resolve_name(name_node) if name_node is not None else None
        if name is None or name.node.type != k.OPERATOR_CAST:
            return None
        functor = name.node.child_by_field_name(k.F_DECLARATOR) or name.node
        return FunctionDef(unit, node, functor, name, place)
    inner = functor.child_by_field_name(k.F_DECLARATOR)
    name_node = declarator_name(inner) if inner is not None else None
    name = _resolve_name(name_node) if name_node is not None else None
    return FunctionDef(unit, node, functor, name, place) if name is not None and name.text else None


def make_variable(unit: Unit, node: Node, declarator: Node, init: Node | None, place: _Place) -> GlobalVar | None:
    """The variable that one declarator of a declaration declares."""
    if declarator.type == k.INIT_DECLARATOR:
        init = declarator.child_by_field_name(k.F_VALUE)
    name_node = declarator_name(declarator)
    name = _resolve_name(name_node) if name_node is not None else None
    if name is None:
        return None
    header = (node.text or b"")[: max(0, name.node.start_byte - node.start_byte)]
    first = node.child_by_field_name(k.F_DECLARATOR)
    if first is not None:
        header = header[: max(0, first.start_byte - node.start_byte)]
    space: Space = next((found for token, found in _SPACES if token in header), "")
    prefix = place.owner.qualified if place.owner is not None else join_names(place.namespace, name.scope_text)
    return GlobalVar(
        name.text,
        join_names(prefix, name.text),
        unit,
        node,
        declarator,
        init,
        space,
        b"extern" in header,
        b"const" in header.replace(b"__constant__", b""),
        place.namespace,
        template_params(place.templates[-1]) if place.templates else (),
        name.arguments,
        place.owner,
        b"constexpr" in header,
    )


# --------------------------------------------------------------------------- types


def collect_type(
    node: Node,
    place: _Place,
    unit: Unit,
    types: dict[str, list[TypeSymbol]],
    enumerators: dict[str, list[EnumDef]],
    forwards: dict[str, list[tuple[TemplateParam, ...]]] | None = None,
) -> None:
    """Enter the classes, enumerations and aliases that `node` declares."""
    kind = node.type
    if kind in _CLASSES:
        struct = make_struct(node, place, unit)
        if struct is not None:
            types.setdefault(struct.name, []).append(struct)
        elif forwards is not None and place.templates:
            name = node.child_by_field_name(k.F_NAME)
            if name is not None:
                forwards.setdefault(plain_name(name), []).append(template_params(place.templates[-1]))
    elif kind == k.ENUM_SPECIFIER:
        enum = make_enum(node, place, unit)
        if enum is not None:
            if enum.name:
                types.setdefault(enum.name, []).append(enum)
            for name_text, _ in enum.enumerators:
                enumerators.setdefault(name_text, []).append(enum)
    elif kind == k.ALIAS_DECLARATION:
        alias = _make_using(node, place, unit)
        if alias is not None:
            types.setdefault(alias.name, []).append(alias)
    elif kind == k.TYPE_DEFINITION:
        inner = node.child_by_field_name(k.F_TYPE)
        aliases = list(_make_typedefs(node, place, unit))
        if inner is not None and inner.type in _CLASSES and inner.child_by_field_name(k.F_NAME) is None:
            plain = (
                alias.name for alias in aliases if alias.declarator is not None and alias.declarator.type == k.TYPE_IDENTIFIER
            )
            struct = make_struct(inner, place, unit, next(plain, ""))
            if struct is not None:
                types.setdefault(struct.name, []).append(struct)
        elif inner is not None and (inner.type in _CLASSES or inner.type == k.ENUM_SPECIFIER):
            collect_type(inner, place, unit, types, enumerators, forwards)
        for alias in aliases:
            types.setdefault(alias.name, []).append(alias)


def make_struct(node: Node, place: _Place, unit: Unit, called: str = "") -> StructDef | None:
    """The class that a specifier with a body defines; one without a name is known as `called`."""
    if node.child_by_field_name(k.F_BODY) is None:
        return None
    name_node = node.child_by_field_name(k.F_NAME)
    name = _resolve_name(name_node) if name_node is not None else None
    struct = (
        StructDef(unit, node, called, None, place) if name is None else StructDef(unit, node, name.text, name.arguments, place)
    )
    unit.remember_struct(struct)
    return struct


def collect_local(node: Node, unit: Unit, owner: StructDef | None, namespace: str) -> StructDef | None:
    """The class that a specifier inside a function, or without a name inside a class, defines."""
    return make_struct(node, _Place(namespace, owner), unit)


def make_enum(node: Node, place: _Place, unit: Unit) -> EnumDef | None:
    """The enumeration that a specifier with a body defines."""
    body = node.child_by_field_name(k.F_BODY)
    if body is None:
        return None
    name_node = node.child_by_field_name(k.F_NAME)
    name = plain_name(name_node) if name_node is not None else ""
    head = (node.text or b"")[: body.start_byte - node.start_byte]
    pairs: list[tuple[str, Node | None]] = []
    for child in active_children(body, unit):
        if child.type == k.ENUMERATOR:
            label = child.child_by_field_name(k.F_NAME)
            if label is not None:
                pairs.append((text_of(label), child.child_by_field_name(k.F_VALUE)))
    prefix = place.owner.qualified if place.owner is not None else place.namespace
    scoped = _SCOPED_ENUM.match(head) is not None
    return EnumDef(name, join_names(prefix, name), unit, node, place.namespace, scoped, tuple(pairs), place.owner)


_SCOPED_ENUM = re.compile(rb"enum\s+(?:class|struct)\b")


def _make_using(node: Node, place: _Place, unit: Unit) -> TypeAlias | None:
    name = node.child_by_field_name(k.F_NAME)
    target = node.child_by_field_name(k.F_TYPE)
    if name is None or target is None:
        return None
    text = text_of(name)
    prefix = place.owner.qualified if place.owner is not None else place.namespace
    template = template_params(place.templates[-1]) if place.templates else ()
    return TypeAlias(text, join_names(prefix, text), unit, node, target, None, place.namespace, template, place.owner)


def _make_typedefs(node: Node, place: _Place, unit: Unit) -> Iterator[TypeAlias]:
    target = node.child_by_field_name(k.F_TYPE)
    if target is None:
        return
    prefix = place.owner.qualified if place.owner is not None else place.namespace
    for declarator in node.children_by_field_name(k.F_DECLARATOR):
        name_node = declarator_name(declarator)
        if name_node is None and declarator.type == k.PRIMITIVE_TYPE:
            # `typedef unsigned char uint8_t;`
            name_node = declarator
        if name_node is not None:
            text = text_of(name_node)
            yield TypeAlias(text, join_names(prefix, text), unit, node, target, declarator, place.namespace, (), place.owner)


# ------------------------------------------------------------------------- members


def _collect_members(struct: StructDef, members: Members) -> None:
    body = struct.node.child_by_field_name(k.F_BODY)
    if body is None:
        return
    for child in struct.node.named_children:
        if child.type == k.BASE_CLASS_CLAUSE:
            members.bases.extend(base for base in child.named_children if base.type not in _NO_BASE and not base.is_error)
    place = _Place(struct.namespace, struct)
    public = struct.kind != "class"
    for child in active_children(body, struct.unit):
        if child.type == k.ACCESS_SPECIFIER:
            public = child.text == b"public"
            continue
        known = len(members.fields)
        _collect_member(child, place, struct, members)
        members.hidden = members.hidden or (not public and len(members.fields) > known)


_NO_BASE = frozenset((k.ACCESS_SPECIFIER, k.COMMENT, k.ATTRIBUTE_DECLARATION))


def _collect_member(node: Node, place: _Place, struct: StructDef, members: Members) -> None:
    kind = node.type
    unit = struct.unit
    if kind == k.TEMPLATE_DECLARATION:
        head = node.child_by_field_name(k.F_PARAMETERS)
        inner = _Place(
            place.namespace, struct, (*place.templates, head) if head is not None else place.templates, node.start_byte
        )
        for child in node.named_children:
            if child.type not in (k.TEMPLATE_PARAMETER_LIST, k.COMMENT, k.REQUIRES_CLAUSE):
                _collect_member(child, inner, struct, members)
    elif kind in (k.FUNCTION_DEFINITION, k.DECLARATION, k.FIELD_DECLARATION):
        _collect_field(node, place, struct, members)
    elif kind == k.USING_DECLARATION:
        members.using.append(node)
    elif kind != k.FRIEND_DECLARATION:
        _collect_member_type(node, place, unit, members)


def _collect_member_type(node: Node, place: _Place, unit: Unit, members: Members) -> None:
    enumerators: dict[str, list[EnumDef]] = {}
    collect_type(node, place, unit, members.types, enumerators)
    for name, enums in enumerators.items():
        members.enumerators[name] = enums[0]


def _collect_field(node: Node, place: _Place, struct: StructDef, members: Members) -> None:
    unit = struct.unit
    kind = node.child_by_field_name(k.F_TYPE)
    if kind is not None and (kind.type in _CLASSES or kind.type == k.ENUM_SPECIFIER):
        _collect_member_type(kind, place, unit, members)
    declarators = list(_declarators_with_default(node))
    functions = [declarator for declarator, _ in declarators if function_declarator(declarator) is not None]
    if functions or (node.type != k.FIELD_DECLARATION and not declarators):
        members.virtual = members.virtual or (node.text or b"")[:256].lstrip().startswith(b"virtual")
    for declarator in functions or (_cast_declarators(node, declarators)):
        function = make_function(unit, node, place, declarator)
        if function is not None:
            members.functions.setdefault(function.name, []).append(function)
    if functions or node.type == k.FUNCTION_DEFINITION:
        return
    if any(child.type == k.STORAGE_CLASS_SPECIFIER and child.text == b"static" for child in node.named_children):
        for declarator, init in declarators:
            variable = make_variable(unit, node, declarator, init, place)
            if variable is not None:
                members.constants.setdefault(variable.name, variable)
    elif not place.templates and kind is not None:
        members.fields.append(node)


def _cast_declarators(node: Node, declarators: list[tuple[Node, Node | None]]) -> list[Node]:
    return [
        declarator
        for declarator, _ in declarators
        if declarator.type == k.OPERATOR_CAST
        or (node.type == k.FUNCTION_DEFINITION and declarator.type == k.QUALIFIED_IDENTIFIER)
    ]


def _declarators_with_default(node: Node) -> Iterator[tuple[Node, Node | None]]:
    """(declarator, default value) pairs; a default value follows its declarator as a sibling."""
    pending: Node | None = None
    for index, child in enumerate(node.children):
        name = node.field_name_for_child(index)
        if name == k.F_DECLARATOR:
            if pending is not None:
                yield pending, None
            pending = child
        elif name == k.F_DEFAULT_VALUE and pending is not None:
            yield pending, child
            pending = None
    if pending is not None:
        yield pending, None


def field_declarators(node: Node) -> list[tuple[Node, Node | None, Node | None]]:
    """(declarator, default value, bit-field clause) of every data member that a field declaration declares."""
    found: list[tuple[Node, Node | None, Node | None]] = []
    for index, child in enumerate(node.children):
        name = node.field_name_for_child(index)
        if name == k.F_DECLARATOR:
            found.append((child, None, None))
        elif name == k.F_DEFAULT_VALUE and found:
            found[-1] = (found[-1][0], child, found[-1][2])
        elif child.type == k.BITFIELD_CLAUSE and found:
            found[-1] = (found[-1][0], found[-1][1], child)
    return found
