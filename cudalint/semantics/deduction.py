"""Template argument deduction and overload choice, as far as real kernels use them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cudalint.semantics import constants, records, resolve
from cudalint.semantics import scope as scopes
from cudalint.semantics.ir import FunctionRef, Lambda
from cudalint.semantics.symbols import FunctionDef, GlobalVar, TemplateParam, inner_declarator, plain_name, text_of
from cudalint.semantics.types import Type, pointer_to
from cudalint.syntax import kinds as k

if TYPE_CHECKING:
    from tree_sitter import Node

    from cudalint.semantics.records import Record
    from cudalint.semantics.scope import Bindings, Scope, Value

Argument = Type | FunctionRef | Lambda | None

_MAX_WRAPPERS = 32
_EXACT = 4
_CONVERTIBLE = 1
_SAME_TEMPLATE = 3
_CONTRADICTION = -1000

_SIMPLE = frozenset((k.IDENTIFIER, k.TYPE_IDENTIFIER))
_POINTERS = frozenset((k.POINTER_DECLARATOR, k.ABSTRACT_POINTER_DECLARATOR))
_REFERENCES = frozenset((k.REFERENCE_DECLARATOR, k.ABSTRACT_REFERENCE_DECLARATOR))
_ARRAYS = frozenset((k.ARRAY_DECLARATOR, k.ABSTRACT_ARRAY_DECLARATOR))
_TEMPLATES = frozenset((k.TEMPLATE_TYPE, k.TEMPLATE_FUNCTION))
_WRAPPING = frozenset((*_POINTERS, *_REFERENCES, *_ARRAYS, k.ABSTRACT_PARENTHESIZED_DECLARATOR, k.ABSTRACT_FUNCTION_DECLARATOR))


class _Matcher:
    """Matches patterns with template parameters in them against values; scores how well they fit."""

    def __init__(self, params: Sequence[TemplateParam], scope: Scope, bindings: Bindings) -> None:
        self.names = {param.name: param for param in params if param.name}
        self.scope = scope
        self.bindings = bindings
        self.explicit = frozenset(bindings)

    def bind(self, name: str, value: Value) -> int:
        """Bind a parameter; a contradiction if it has another value."""
        old = self.bindings.get(name)
        if old is None or (isinstance(old, Type) and old.kind == "unknown" and old.record is None):
            self.bindings[name] = value
            return _CONVERTIBLE
        if old == value or _same_record(old, value):
            return _CONVERTIBLE
        if name in self.explicit or (isinstance(value, Type) and value.kind == "unknown"):
            return 0
        return _CONTRADICTION

    def declared(self, base: Node, declarator: Node | None, value: Argument, *, decays: bool = True) -> int:
        """A parameter `base declarator` against an argument, or with `decays` false a type against a type."""
        wrappers: list[Node] = []
        node = declarator
        for _ in range(_MAX_WRAPPERS):
            if node is None or node.type in _SIMPLE:
                break
            wrappers.append(node)
            node = inner_declarator(node) or next((child for child in node.named_children if child.type in _WRAPPING), None)
        shapes = [
            node for node in reversed(wrappers) if node.type in _POINTERS or node.type in _ARRAYS or node.type in _REFERENCES
        ]
        if any(node.type in (k.FUNCTION_DECLARATOR, k.ABSTRACT_FUNCTION_DECLARATOR) for node in wrappers):
            return 0
        if not isinstance(value, Type):
            return self.callable(base, shapes, value)
        reference = any(node.type in _REFERENCES for node in shapes)
        if decays and not reference and value.kind == "array" and value.element is not None:
            value = pointer_to(value.element)
        score = 0
        for node in shapes:
            if node.type in _REFERENCES:
                continue
            if value.kind == "unknown":
                return score
            if value.kind not in ("pointer", "array") or value.element is None:
                return score if value.is_integer and not score else _CONTRADICTION
            if node.type in _ARRAYS:
                score += self.length(node, value)
            value = value.element
            score += _CONVERTIBLE
        return score + self.type(base, value, behind=bool(shapes))

    def callable(self, base: Node, shapes: list[Node], value: FunctionRef | Lambda | None) -> int:
        """A function or lambda passed as an argument."""
        if value is None:
            return 0
        if base.type in _SIMPLE and text_of(base) in self.names:
            return self.bind(text_of(base), value)
        return _CONTRADICTION if base.type in (k.PRIMITIVE_TYPE, k.SIZED_TYPE_SPECIFIER) and not shapes else 0

    def length(self, node: Node, value: Type) -> int:
        """`T (&)[N]`."""
        size = node.child_by_field_name(k.F_SIZE)
        if size is None or value.kind != "array" or value.count is None:
            return 0
        if size.type == k.IDENTIFIER and text_of(size) in self.names:
            return self.bind(text_of(size), value.count)
        known = constants.evaluate(size, self.scope)
        return 0 if known is None else _CONVERTIBLE if known == value.count else _CONTRADICTION

    def type(self, node: Node, value: Type, behind: bool = False) -> int:
        """A type pattern against a type; `behind` a pointer or reference no conversion is possible."""
        kind = node.type
        if kind == k.TYPE_DESCRIPTOR:
            base = node.child_by_field_name(k.F_TYPE)
            inner = node.child_by_field_name(k.F_DECLARATOR)
            return self.declared(base, inner, value, decays=False) if base is not None else 0
        if kind in _SIMPLE and text_of(node) in self.names:
            return self.bind(text_of(node), value)
        if kind in _TEMPLATES:
            return self.template(node, value)
        if kind == k.QUALIFIED_IDENTIFIER:
            _, _, last = resolve.resolve_qualifier(node, self.scope)
            if last is not None and last.type in _TEMPLATES:
                return self.template(last, value)
        if kind == k.DEPENDENT_TYPE or kind == k.PLACEHOLDER_TYPE_SPECIFIER:
            return 0
        return _fit(resolve.resolve_type(node, self.scope), value, behind)

    def template(self, node: Node, value: Type) -> int:
        """`Foo<T, N>` against an instantiation of Foo or of a class derived from one."""
        name = plain_name(node)
        arguments = node.child_by_field_name(k.F_ARGUMENTS)
        if arguments is None:
            return 0
        if value.kind == "array" and name == "array":
            return _SAME_TEMPLATE + self.list(arguments, (value.element, value.count))
        if not isinstance(value.record, records.Record):
            return 0 if value.kind == "unknown" else _CONTRADICTION
        param = self.names.get(name)
        for record in records.lookup(value.record):
            if param is not None and param.kind == "template":
                self.bind(name, records.TemplateRef(record.definition))
            elif record.definition.name != name:
                continue
            return _SAME_TEMPLATE + self.list(arguments, record.arguments)
        found = resolve.resolve_type(node, self.scope)
        return 0 if found.kind == "unknown" else _fit(found, value, True)

    def list(self, node: Node, values: Sequence[Value | None]) -> int:
        """A template argument list against arguments."""
        patterns = [child for child in node.named_children if child.type != k.COMMENT]
        score = 0
        for position, pattern in enumerate(patterns):
            if pattern.type == k.PARAMETER_PACK_EXPANSION:
                inner = pattern.child_by_field_name(k.F_PATTERN) or (
                    pattern.named_children[0] if pattern.named_children else None
                )
                rest = tuple(values[position:])
                if inner is not None and text_of(inner) in self.names and None not in rest:
                    return score + self.bind(text_of(inner), rest)
                return score
            if position >= len(values):
                return _CONTRADICTION
            score += self.argument(pattern, values[position])
        return score if len(values) <= len(patterns) else _CONTRADICTION

    def argument(self, pattern: Node, value: Value | None) -> int:
        """One template argument pattern against a value."""
        inner = pattern
        if pattern.type == k.TYPE_DESCRIPTOR and pattern.child_by_field_name(k.F_DECLARATOR) is None:
            inner = pattern.child_by_field_name(k.F_TYPE) or pattern
        if inner.type in _SIMPLE and text_of(inner) in self.names:
            return 0 if value is None else self.bind(text_of(inner), value)
        if value is None:
            return _CONTRADICTION
        if isinstance(value, Type):
            return self.subscripted(pattern, value) if pattern.type == k.SUBSCRIPT_EXPRESSION else self.exact(pattern, value)
        if isinstance(value, (int, float)):
            known = constants.evaluate(inner, self.scope)
            return _EXACT if known == value else _CONTRADICTION
        known_argument = resolve.template_argument(pattern, self.scope)
        return _EXACT if known_argument == value else _CONTRADICTION

    def subscripted(self, pattern: Node, value: Type) -> int:
        """`T[N]`, which the grammar takes for an element of an array."""
        base, index = pattern.child_by_field_name(k.F_ARGUMENT), pattern.child_by_field_name(k.F_INDICES)
        if value.kind != "array" or base is None or index is None or index.named_child_count != 1:
            return _CONTRADICTION
        return _CONVERTIBLE + self.argument(base, value.element) + self.argument(index.named_children[0], value.count)

    def exact(self, pattern: Node, value: Type) -> int:
        """A type argument pattern: no conversions."""
        descriptor = pattern.type == k.TYPE_DESCRIPTOR
        base = pattern.child_by_field_name(k.F_TYPE) if descriptor else pattern
        declarator = pattern.child_by_field_name(k.F_DECLARATOR) if descriptor else None
        if base is None:
            return _CONTRADICTION
        if declarator is not None and declarator.type in _REFERENCES:
            # types carry no references here, so `T&` matches nothing
            return _CONTRADICTION
        if declarator is not None and declarator.type in _POINTERS and value.kind != "pointer":
            return _CONTRADICTION
        if declarator is not None and declarator.type in _ARRAYS and value.kind != "array":
            return _CONTRADICTION
        score = self.declared(base, declarator, value, decays=False)
        return score if score >= _EXACT or self._has_names(pattern) else _CONTRADICTION

    def _has_names(self, node: Node) -> bool:
        return not self.names.keys().isdisjoint(_WORD.findall(text_of(node)))


_WORD = re.compile(r"\w+")


def _same_record(left: object, right: object) -> bool:
    return isinstance(left, Type) and isinstance(right, Type) and left.record is not None and left.record is right.record


def _fit(wanted: Type, given: Type, behind: bool) -> int:
    if "unknown" in (wanted.kind, given.kind):
        return 0
    if wanted == given or _same_record(wanted, given):
        return _EXACT
    if wanted.kind == "void" and behind:
        return _CONVERTIBLE
    if wanted.kind == "struct" or given.kind == "struct":
        return _fit_struct(wanted, given)
    if wanted.kind == "pointer" and given.kind in ("pointer", "array"):
        if wanted.element is None or given.element is None:
            return 0
        return _fit(wanted.element, given.element, True)
    if "pointer" in (wanted.kind, given.kind) or "array" in (wanted.kind, given.kind):
        return 0 if wanted.kind == "pointer" and given.is_integer else _CONTRADICTION
    if behind:
        return _CONVERTIBLE if (wanted.kind, wanted.size) == (given.kind, given.size) else _CONTRADICTION
    same = wanted.kind == given.kind or (wanted.is_integer and given.is_integer)
    return _CONVERTIBLE + same + (same and wanted.size == given.size)


def _fit_struct(wanted: Type, given: Type) -> int:
    if wanted.kind == given.kind:
        if isinstance(wanted.record, records.Record) and isinstance(given.record, records.Record):
            return _CONVERTIBLE + 1 if wanted.record in records.lookup(given.record) else _CONTRADICTION
        return _CONTRADICTION if wanted.record is None and given.record is None and wanted.name != given.name else 0
    # a constructor or conversion operator may do it
    known = wanted if wanted.kind == "struct" else given
    return 0 if known.record is not None else _CONTRADICTION


# ----------------------------------------------------------------------------- public


def match_arguments(
    patterns: Node, arguments: Sequence[Value | None], params: Sequence[TemplateParam], scope: Scope
) -> tuple[int, Bindings] | None:
    """How well a specialisation's argument list fits, and what it binds; None if it does not."""
    bindings: Bindings = {}
    matcher = _Matcher(params, scope.child(bindings), bindings)
    score = matcher.list(patterns, arguments)
    if score < 0:
        return None
    for param in params:
        if param.name and param.name not in bindings and not param.pack:
            return None
    return score, bindings


def bind(
    function: FunctionDef,
    explicit: Sequence[Value | None],
    arguments: Sequence[Argument],
    scope: Scope | None = None,
) -> Bindings | None:
    """The template parameters of a call of `function`; None if it cannot be this function.

    `explicit` are the template arguments written at the call, `arguments` the types of the call's arguments (a function
    or lambda itself where one is passed, None where unknown).  `scope` is that of the class for members.  What cannot be
    deduced is absent.
    """
    found = _bind(function, explicit, arguments, scope)
    return found[1] if found is not None else None


def _bind(
    function: FunctionDef, explicit: Sequence[Value | None], arguments: Sequence[Argument], scope: Scope | None
) -> tuple[int, Bindings] | None:
    bindings: Bindings = {}
    place = scopes.Scope(
        function.unit,
        bindings=bindings,
        parent=scope,
        record=scope.record if scope is not None else None,
        namespace=function.namespace,
        offset=function.name_start,
    )
    if not _bind_explicit(function.template, explicit, bindings):
        return None
    nodes = [child for child in _parameter_nodes(function) if not _is_void(child)]
    variadic = any(child.type == k.VARIADIC_PARAMETER_DECLARATION for child in nodes) or _has_ellipsis(function)
    required = sum(child.type == k.PARAMETER_DECLARATION for child in nodes)
    if len(arguments) < required or (len(arguments) > len(nodes) and not variadic):
        return None
    matcher = _Matcher(function.template, place, bindings)
    score = 0
    for position, node in enumerate(nodes):
        base = node.child_by_field_name(k.F_TYPE)
        if base is None:
            continue
        if node.type == k.VARIADIC_PARAMETER_DECLARATION:
            _bind_pack(base, arguments[position:], matcher)
            break
        if position < len(arguments):
            score += matcher.declared(base, node.child_by_field_name(k.F_DECLARATOR), arguments[position])
    if score < 0:
        return None
    return _with_defaults(function, place, bindings, score)


def _with_defaults(function: FunctionDef, place: Scope, bindings: Bindings, score: int) -> tuple[int, Bindings] | None:
    for param in function.template:
        if param.name not in bindings and param.default is not None and not param.pack:
            if param.kind != "value" and _is_disabled(param, place):
                return None
            value = records.default_argument(param, place)
            if value is not None and param.name:
                bindings[param.name] = value
    ordered = {param.name: bindings[param.name] for param in function.template if param.name in bindings}
    return score, ordered


def _is_disabled(param: TemplateParam, place: Scope) -> bool:
    """`typename = std::enable_if_t<condition>` with a condition that is known to be false."""
    node = param.default
    while node is not None and node.type in (k.QUALIFIED_IDENTIFIER, k.DEPENDENT_TYPE, k.TYPE_DESCRIPTOR):
        inner = node.child_by_field_name(k.F_NAME) or node.child_by_field_name(k.F_TYPE)
        node = inner if inner is not None else next(iter(node.named_children), None)
    if node is None or node.type not in _TEMPLATES or plain_name(node) != "enable_if_t":
        return False
    arguments = node.child_by_field_name(k.F_ARGUMENTS)
    first = (
        next((child for child in arguments.named_children if child.type != k.COMMENT), None) if arguments is not None else None
    )
    return first is not None and constants.evaluate(first, place) == 0


def _bind_explicit(params: Sequence[TemplateParam], explicit: Sequence[Value | None], bindings: Bindings) -> bool:
    if len(explicit) > len(params) and not any(param.pack for param in params):
        return False
    for position, param in enumerate(params):
        if param.pack:
            rest = tuple(explicit[position:])
            if rest and None not in rest:
                bindings[param.name] = rest
            return True
        if position >= len(explicit):
            return True
        value = explicit[position]
        if value is None:
            continue
        if param.kind == "value" and isinstance(value, Type) and value.kind != "unknown":
            return False
        if param.kind == "type" and isinstance(value, (int, float)):
            return False
        if param.name and not (param.kind == "value" and isinstance(value, Type)):
            bindings[param.name] = value
    return True


def _bind_pack(base: Node, arguments: Sequence[Argument], matcher: _Matcher) -> None:
    name = text_of(base)
    if name in matcher.names and name not in matcher.bindings and None not in arguments:
        matcher.bindings[name] = tuple(arguments)


_PARAMETERS = frozenset((k.PARAMETER_DECLARATION, k.OPTIONAL_PARAMETER_DECLARATION, k.VARIADIC_PARAMETER_DECLARATION))


def _parameter_nodes(function: FunctionDef) -> list[Node]:
    params = function.parameter_list
    return [child for child in params.named_children if child.type in _PARAMETERS] if params is not None else []


def _is_void(node: Node) -> bool:
    base = node.child_by_field_name(k.F_TYPE)
    return base is not None and base.text == b"void" and node.child_by_field_name(k.F_DECLARATOR) is None


def _has_ellipsis(function: FunctionDef) -> bool:
    return function.parameter_list is not None and b"..." in (function.parameter_list.text or b"")


def resolve_call(
    candidates: Sequence[FunctionDef],
    explicit: Sequence[Value | None],
    arguments: Sequence[Argument],
    record: Record | None = None,
) -> FunctionRef | None:
    """The function, with its template arguments, that a call means; None if no definition fits.

    `record` is the class instantiation for members.  Explicit specialisations win over their primary template.
    """
    best: tuple[int, int, FunctionDef, Bindings] | None = None
    for candidate in candidates:
        if candidate.specialises is not None:
            continue
        found = _bind(candidate, explicit, arguments, _class_scope(candidate, record))
        if found is None:
            continue
        rank = (found[0], (not candidate.template) + 2 * (candidate.body is not None))
        if best is None or rank > best[:2]:
            best = (*rank, candidate, found[1])
    special = _specialised(candidates, explicit, arguments, best[3] if best is not None else None)
    if special is not None:
        return FunctionRef(special, _class_bindings(special, record))
    if best is None or best[2].body is None:
        return None
    _, _, function, bindings = best
    return FunctionRef(function, (*_class_bindings(function, record), *bindings.items()))


def _class_scope(function: FunctionDef, record: Record | None) -> Scope | None:
    if record is None or function.owner is None:
        return None
    scope = _owning(function, record).scope
    renamed = _renamed(function, record)
    return scope.child(renamed) if renamed else scope


def _owning(function: FunctionDef, record: Record) -> Record:
    """The record, base or outer class that the function is a member of."""
    current: Record | None = record
    while current is not None:
        for place in records.lookup(current):
            if place.definition is function.owner:
                return place
        current = current.outer
    return record


def _class_bindings(function: FunctionDef, record: Record | None) -> tuple[tuple[str, Value], ...]:
    if record is None or function.owner is None:
        return ()
    owning = _owning(function, record)
    if owning.definition is not function.owner:
        return ()
    return (*owning.bindings.items(), *_renamed(function, record).items())


def _renamed(function: FunctionDef, record: Record) -> Bindings:
    """Template parameters of a class under the names that a definition outside of it uses."""
    if not function.owner_template or function.scope_node is None:
        return {}
    owning = _owning(function, record)
    arguments = function.scope_node.child_by_field_name(k.F_ARGUMENTS)
    if arguments is None or all(param.name in owning.bindings for param in function.owner_template):
        return {}
    bindings: Bindings = {}
    place = scopes.Scope(function.unit, bindings=bindings, namespace=function.namespace, offset=function.name_start)
    _Matcher(function.owner_template, place, bindings).list(arguments, owning.arguments)
    return {name: value for name, value in bindings.items() if name not in owning.bindings}


def _specialised(
    candidates: Sequence[FunctionDef], explicit: Sequence[Value | None], arguments: Sequence[Argument], bound: Bindings | None
) -> FunctionDef | None:
    """The explicit specialisation for these arguments."""
    best: tuple[int, FunctionDef] | None = None
    wanted = list(bound.values()) if bound is not None else list(explicit)
    for candidate in candidates:
        if candidate.specialises is None or candidate.body is None:
            continue
        scope = scopes.Scope(candidate.unit, namespace=candidate.namespace, offset=candidate.name_start)
        own = resolve.resolve_template_arguments(candidate.specialises, scope)
        if wanted and (len(own) < len(wanted) or any(not _equal(mine, value) for mine, value in zip(own, wanted, strict=False))):
            if bound is None or not _equal_prefix(own, wanted):
                continue
        elif not wanted and bound is not None:
            continue
        fit = _bind(candidate, (), arguments, None)
        if fit is not None and (best is None or fit[0] > best[0]):
            best = fit[0], candidate
    return best[1] if best is not None else None


def _equal(left: Value | None, right: Value | None) -> bool:
    return left is not None and (left == right or _same_record(left, right))


def _equal_prefix(own: Sequence[Value | None], wanted: Sequence[Value | None]) -> bool:
    """The specialisation names the leading arguments only; the rest follow from the call."""
    return 0 < len(own) < len(wanted) and all(_equal(mine, value) for mine, value in zip(own, wanted, strict=False))


def select_variable(
    variables: Sequence[GlobalVar], arguments: Sequence[Value | None]
) -> tuple[GlobalVar | None, Bindings | None]:
    """The variable template, or its specialisation, that template arguments choose."""
    chosen: tuple[int, GlobalVar, Bindings] | None = None
    primary: GlobalVar | None = None
    for variable in variables:
        if variable.specialises is None:
            primary = primary or (variable if variable.template else None)
            continue
        place = scopes.Scope(variable.unit, namespace=variable.namespace, offset=variable.node.end_byte)
        matched = match_arguments(variable.specialises, arguments, variable.template, place)
        if matched is not None and (chosen is None or matched[0] > chosen[0]):
            chosen = matched[0], variable, matched[1]
    if chosen is not None:
        return chosen[1], chosen[2]
    if primary is None:
        return None, None
    place = scopes.Scope(primary.unit, namespace=primary.namespace, offset=primary.node.end_byte)
    return primary, records.bind_params(primary.template, arguments, place)
