"""Constant expressions: what the compiler would know, computed with C's rules.

`evaluate` never raises and never runs away: definitions that refer to each
other in a circle, endless template recursion and very deep expressions have no
value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from cudalint.semantics import arithmetic, deduction, interpret, literals, records, resolve, traits
from cudalint.semantics.builtin_types import ULONG
from cudalint.semantics.ir import FunctionRef, Lambda
from cudalint.semantics.literals import Typed
from cudalint.semantics.preprocess import Macro, expand
from cudalint.semantics.symbols import EnumDef, FunctionDef, GlobalVar, text_of
from cudalint.semantics.types import BOOL, INT, Type
from cudalint.syntax import kinds as k
from cudalint.syntax.tree import parse_fragment

if TYPE_CHECKING:
    from tree_sitter import Node

    from cudalint.semantics.scope import Scope

_MAX_CHAIN = 4000
_CALL = re.compile(rb"\b(?!sizeof\b|alignof\b)[A-Za-z_]\w*\s*[(<]")


def evaluate(node: Node, scope: Scope) -> int | float | None:
    """The value of a constant expression seen from `scope`, None where it has none or cannot be known."""
    found = evaluate_typed(node, scope)
    return found[0] if found is not None else None


def evaluate_text(text: str, scope: Scope) -> int | float | None:
    """The value of an expression given as text."""
    found = _text(text, scope)
    return found[0] if found is not None else None


def evaluate_typed(node: Node, scope: Scope) -> Typed | None:
    """Value and type of a constant expression."""
    guard = scope.unit.program.guard
    if not guard.enter():
        return None
    try:
        handler = _HANDLERS.get(node.type)
        return handler(node, scope) if handler is not None else None
    except RecursionError:
        if guard.depth > 1 or guard.nesting:
            raise
        return None
    finally:
        guard.leave()


def named(name: str, scope: Scope) -> Typed | None:
    """Value and type of a name, which may be qualified (without template arguments)."""
    if "::" in name:
        return _qualified_name(name, scope)
    bound = scope.bound(name)
    if bound is not None:
        return arithmetic.typed(bound) if isinstance(bound, (int, float)) else None
    macro = scope.macro(name)
    if macro is not None:
        return _macro_value(macro, scope)
    if scope.record is not None:
        found = records.record_value(scope.record, name)
        if found is not None:
            return found
    return _at_namespace(name, scope) or arithmetic.CONSTANTS.get(name)


def _at_namespace(name: str, scope: Scope) -> Typed | None:
    for enum in scope.unit.find_enumerators(name):
        if not enum.scoped:
            return enumerator_value(enum, name, None)
    variable = scope.variable(name)
    return variable_value(variable) if variable is not None else None


def _qualified_name(name: str, scope: Scope) -> Typed | None:
    prefix, _, last = name.rpartition("::")
    if not prefix:
        return named(last, scope)
    for symbol in scope.type_symbols(prefix):
        if isinstance(symbol, EnumDef):
            return enumerator_value(symbol, last, None)
    kind = resolve.named_type(prefix, scope)
    if kind is not None:
        return records.member_value(kind, last)
    variable = scope.variable(name)
    if variable is not None:
        return variable_value(variable)
    for enum in scope.unit.find_enumerators(last):
        if not enum.scoped:
            return enumerator_value(enum, last, None)
    return arithmetic.CONSTANTS.get(last)


# -------------------------------------------------------------------- declarations


def has_constant(variable: GlobalVar) -> bool:
    """Whether the initialiser of a variable is its value for good; `__constant__` memory can be written by the host."""
    if variable.init is None or not variable.is_const:
        return False
    return variable.is_constexpr or variable.space in ("", "global")


def variable_value(variable: GlobalVar, bindings: dict[str, object] | None = None) -> Typed | None:
    """The value of a `const` or `constexpr` variable; `bindings` are the arguments of a variable template."""
    if not has_constant(variable):
        return None
    key = (variable, tuple(bindings.items()) if bindings else ())
    return remembered(variable.unit.program.values, key, variable, lambda: _variable_value(variable, bindings))


def remembered(
    table: dict[object, Typed | None], key: object, symbol: GlobalVar | EnumDef, compute: Callable[[], Typed | None]
) -> Typed | None:
    """`compute()`, once; while it runs the value is unknown, which ends circular definitions."""
    if key in table:
        return table[key]
    guard = symbol.unit.program.guard
    if not guard.open():
        return None
    table[key] = None
    try:
        found = compute()
    finally:
        guard.close()
        if guard.exhausted and not guard.idle:
            # not this definition's fault: somebody asked from too deep inside
            del table[key]
    if key in table:
        table[key] = found
    return found


def _variable_value(variable: GlobalVar, bindings: dict[str, object] | None) -> Typed | None:
    scope = resolve.scope_of_variable(variable, bindings)
    kind = resolve.variable_type(variable, scope)
    if kind.kind in ("pointer", "array"):
        return None
    return initial_value(variable.init, kind, scope)


def initial_value(init: Node | None, kind: Type, scope: Scope) -> Typed | None:
    """The value that an initialiser (expression, `{x}`, `(x)`) gives to a variable of arithmetic type."""
    for _ in range(8):
        if init is None:
            return None
        if init.type not in (k.INITIALIZER_LIST, k.ARGUMENT_LIST):
            break
        parts = [child for child in init.named_children if child.type != k.COMMENT]
        if not parts:
            return (0, kind) if init.type == k.INITIALIZER_LIST and (kind.is_integer or kind.kind == "float") else None
        if len(parts) > 1:
            return None
        init = parts[0]
    if init is None:
        return None
    found = evaluate_typed(init, scope)
    if found is None or kind.kind == "unknown":
        return found
    value = arithmetic.convert(found[0], kind)
    return None if value is None else (value, kind)


def enumerator_value(enum: EnumDef, name: str, scope: Scope | None) -> Typed | None:
    """The value of an enumerator; `scope` is that of the class instantiation around a nested enumeration."""
    index = enum.index(name)
    if index is None:
        return None
    key = (enum, name, scope.record if scope is not None else None)
    return remembered(enum.unit.program.values, key, enum, lambda: _enumerator_value(enum, index, scope))


def _enumerator_value(enum: EnumDef, index: int, scope: Scope | None) -> Typed | None:
    position = index
    while position > 0 and enum.enumerators[position][1] is None:
        position -= 1
    node = enum.enumerators[position][1]
    if node is None:
        return index, INT
    inner = (scope or resolve.scope_of_symbol(enum)).child()
    inner.offset = enum.node.end_byte
    # earlier enumerators are in scope by name; later ones would be circular
    for other, _ in reversed(enum.enumerators[max(0, position - 64) : position]):
        if other in text_of(node) and other not in inner.locals:
            found = enumerator_value(enum, other, scope)
            if found is not None:
                inner.declare(other, found[0])
    start = evaluate_typed(node, inner)
    if start is None or isinstance(start[0], float):
        return None
    return arithmetic.typed(start[0] + index - position)


# ---------------------------------------------------------------------------- macros


@lru_cache(maxsize=4096)
def _plain_number(body: str) -> Typed | None:
    return literals.number(body) if len(body) < 64 else None


def _macro_value(macro: Macro, scope: Scope) -> Typed | None:
    if macro.params is not None:
        return None
    plain = _plain_number(macro.body)
    if plain is not None:
        return plain
    text = expand(macro, None, scope.macro, 4096)
    if not text or text == macro.name:
        return None
    return _text(text, scope)


def _text(text: str, scope: Scope) -> Typed | None:
    if not text or len(text) > 65536:
        return None
    node, _, broken = parse_fragment(text.encode(), "expression")
    return None if broken else evaluate_typed(node, scope)


def _macro_call(macro: Macro, arguments: Node, scope: Scope) -> Typed | None:
    raw = [text_of(child) for child in arguments.named_children if child.type != k.COMMENT]
    text = expand(macro, raw, scope.macro, 16384)
    return _text(text, scope) if text else None


# ----------------------------------------------------------------------- expressions


def _number(node: Node, _: Scope) -> Typed | None:
    return literals.number(text_of(node))


def _character(node: Node, _: Scope) -> Typed | None:
    return literals.character(text_of(node))


def _identifier(node: Node, scope: Scope) -> Typed | None:
    return named(text_of(node), scope)


def _first(node: Node, scope: Scope) -> Typed | None:
    parts = [child for child in node.named_children if child.type != k.COMMENT]
    return evaluate_typed(parts[0], scope) if len(parts) == 1 else None


def _type_descriptor(node: Node, scope: Scope) -> Typed | None:
    # `Foo<N>` where the parser takes the value N for a type
    if node.child_by_field_name(k.F_DECLARATOR) is not None:
        return None
    inner = node.child_by_field_name(k.F_TYPE)
    return evaluate_typed(inner, scope) if inner is not None else None


def _unary(node: Node, scope: Scope) -> Typed | None:
    operand = node.child_by_field_name(k.F_ARGUMENT)
    operator = node.child_by_field_name(k.F_OPERATOR)
    if operand is None or operator is None:
        return None
    value = evaluate_typed(operand, scope)
    return arithmetic.unary(text_of(operator), value) if value is not None else None


def _binary(node: Node, scope: Scope) -> Typed | None:
    """Left operands are walked in a loop: `a + b + …` nests to the left as deep as it is long."""
    chain: list[Node] = []
    current: Node | None = node
    while current is not None and current.type == k.BINARY_EXPRESSION:
        chain.append(current)
        if len(chain) > _MAX_CHAIN:
            return None
        current = current.child_by_field_name(k.F_LEFT)
    if current is None:
        return None
    guard = scope.unit.program.guard
    value = evaluate_typed(current, scope)
    for link in reversed(chain):
        right = link.child_by_field_name(k.F_RIGHT)
        operator = link.child_by_field_name(k.F_OPERATOR)
        if right is None or operator is None or guard.exhausted:
            return None
        value = _link(text_of(operator), value, right, scope)
    return value


def _link(operator: str, left: Typed | None, right: Node, scope: Scope) -> Typed | None:
    if operator in ("&&", "and", "||", "or"):
        return _logical(operator in ("&&", "and"), left, right, scope)
    if left is None:
        return None
    value = evaluate_typed(right, scope)
    return arithmetic.binary(operator, left, value) if value is not None else None


def _logical(conjunction: bool, left: Typed | None, right: Node, scope: Scope) -> Typed | None:
    if left is not None and (left[0] == 0) == conjunction:
        return int(not conjunction), BOOL
    value = evaluate_typed(right, scope)
    if value is not None and (value[0] == 0) == conjunction:
        return int(not conjunction), BOOL
    return None if left is None or value is None else (int(conjunction), BOOL)


def _conditional(node: Node, scope: Scope) -> Typed | None:
    condition = node.child_by_field_name(k.F_CONDITION)
    value = evaluate_typed(condition, scope) if condition is not None else None
    if value is None:
        return None
    taken = node.child_by_field_name(k.F_CONSEQUENCE if value[0] else k.F_ALTERNATIVE)
    found = evaluate_typed(taken, scope) if taken is not None else None
    other = node.child_by_field_name(k.F_ALTERNATIVE if value[0] else k.F_CONSEQUENCE)
    if found is None or other is None or _CALL.search(other.text or b"") is not None:
        # the arm that is not taken may be an endless recursion
        return found
    kind = arithmetic.common_type(found[1], resolve.expression_type(other, scope))
    converted = arithmetic.convert(found[0], kind) if kind.kind != "unknown" else None
    return found if converted is None else (converted, kind)


def _comma(node: Node, scope: Scope) -> Typed | None:
    right = node.child_by_field_name(k.F_RIGHT)
    return evaluate_typed(right, scope) if right is not None else None


def _cast(node: Node, scope: Scope) -> Typed | None:
    kind = node.child_by_field_name(k.F_TYPE)
    value = node.child_by_field_name(k.F_VALUE)
    if kind is None or value is None:
        return None
    return _converted(resolve.resolve_type(kind, scope), value, scope)


def _converted(kind: Type, node: Node, scope: Scope) -> Typed | None:
    found = evaluate_typed(node, scope)
    value = arithmetic.convert(found[0], kind) if found is not None else None
    return None if value is None else (value, kind)


def _sizeof(node: Node, scope: Scope) -> Typed | None:
    kind = node.child_by_field_name(k.F_TYPE)
    if kind is not None:
        size = resolve.sizeof(resolve.resolve_type(kind, scope))
        return None if size is None else (size, ULONG)
    value = node.child_by_field_name(k.F_VALUE)
    if value is None:
        return None
    if (node.text or b"").startswith(b"sizeof..."):
        pack = scope.bound(text_of(value).strip("( )"))
        return (len(pack), ULONG) if isinstance(pack, tuple) else None
    size = resolve.sizeof(resolve.expression_type(value, scope))
    return None if size is None else (size, ULONG)


def _alignof(node: Node, scope: Scope) -> Typed | None:
    kind = node.child_by_field_name(k.F_TYPE)
    found = resolve.resolve_type(kind, scope) if kind is not None else None
    return None if found is None or found.size is None else (found.align, ULONG)


def _offsetof(node: Node, scope: Scope) -> Typed | None:
    kind = node.child_by_field_name(k.F_TYPE)
    member = node.child_by_field_name(k.F_MEMBER)
    if kind is None or member is None:
        return None
    found = records.member_field(resolve.resolve_type(kind, scope), text_of(member))
    return None if found is None or found.offset is None else (found.offset, ULONG)


def _qualified(node: Node, scope: Scope) -> Typed | None:
    kind, prefix, last = resolve.resolve_qualifier(node, scope)
    if last is None:
        return None
    if kind is None:
        return _templated(last, scope, prefix) if last.type == k.TEMPLATE_FUNCTION else named(_join(prefix, text_of(last)), scope)
    return records.member_value(kind, text_of(last))


def _join(prefix: str, name: str) -> str:
    return f"{prefix}::{name}" if prefix else name


def _template_function(node: Node, scope: Scope) -> Typed | None:
    return _templated(node, scope, "")


def _templated(node: Node, scope: Scope, prefix: str) -> Typed | None:
    """A variable template or a trait such as `std::is_same_v<T, U>`."""
    name_node = node.child_by_field_name(k.F_NAME)
    arguments_node = node.child_by_field_name(k.F_ARGUMENTS)
    if name_node is None or arguments_node is None:
        return None
    name = text_of(name_node)
    arguments = resolve.resolve_template_arguments(arguments_node, scope)
    if prefix not in ("std", "cuda::std"):
        variable, bindings = deduction.select_variable(scope.unit.find_variables(name), arguments)
        if variable is not None:
            return variable_value(variable, bindings)
    return traits.trait_value(name, arguments)


def _subscript(node: Node, scope: Scope) -> Typed | None:
    """An element of a constant array."""
    indices: list[Node] = []
    current: Node | None = node
    while current is not None and current.type == k.SUBSCRIPT_EXPRESSION and len(indices) < 8:
        index = current.child_by_field_name(k.F_INDICES)
        if index is None or index.named_child_count != 1:
            return None
        indices.append(index.named_children[0])
        current = current.child_by_field_name(k.F_ARGUMENT)
    variable = _array_variable(current, scope) if current is not None else None
    if variable is None or variable.init is None or not has_constant(variable):
        return None
    element: Node = variable.init
    for index in reversed(indices):
        position = evaluate(index, scope)
        parts = [child for child in element.named_children if child.type != k.COMMENT]
        if element.type != k.INITIALIZER_LIST or not isinstance(position, int) or not 0 <= position < len(parts):
            return None
        element = parts[position]
    if element.type == k.INITIALIZER_LIST:
        return None
    return evaluate_typed(element, resolve.scope_of_variable(variable, None))


def _field(node: Node, scope: Scope) -> Typed | None:
    """A member of a constant object: `constexpr uint2 tile = {64, 32};` … `tile.x`."""
    operand, field = node.child_by_field_name(k.F_ARGUMENT), node.child_by_field_name(k.F_FIELD)
    variable = _array_variable(operand, scope) if operand is not None else None
    if field is None or variable is None or variable.init is None or not has_constant(variable):
        return None
    place = resolve.scope_of_variable(variable, None)
    kind = resolve.variable_type(variable, place)
    if kind.kind == "unknown" or (kind.record is not None and records.constructors(kind)):
        return None
    name = text_of(field)
    position = next((index for index, member in enumerate(kind.fields) if member.name == name), None)
    if position is None:
        return records.member_value(kind, name)
    init = variable.init.child_by_field_name(k.F_VALUE) if variable.init.type == k.COMPOUND_LITERAL_EXPRESSION else variable.init
    if init is None or init.type != k.INITIALIZER_LIST:
        return None
    parts = [child for child in init.named_children if child.type != k.COMMENT]
    if any(part.type == k.INITIALIZER_PAIR for part in parts):
        return None
    if position >= len(parts):
        return 0, kind.fields[position].type
    return initial_value(parts[position], kind.fields[position].type, place)


def _array_variable(node: Node, scope: Scope) -> GlobalVar | None:
    if node.type == k.IDENTIFIER:
        name = text_of(node)
        return scope.variable(name) if scope.bound(name) is None else None
    if node.type != k.QUALIFIED_IDENTIFIER:
        return None
    kind, prefix, last = resolve.resolve_qualifier(node, scope)
    if last is None:
        return None
    if kind is None:
        return scope.variable(_join(prefix, text_of(last)))
    return records.record_variable(kind.record, text_of(last)) if isinstance(kind.record, records.Record) else None


def _compound_literal(node: Node, scope: Scope) -> Typed | None:
    kind_node = node.child_by_field_name(k.F_TYPE)
    value = node.child_by_field_name(k.F_VALUE)
    if kind_node is None or value is None:
        return None
    kind = resolve.resolve_type(kind_node, scope)
    if kind.record is not None and value.named_child_count == 0:
        # `std::integral_constant<int, 3>{}` converts to its value
        return records.member_value(kind, "value")
    return initial_value(value, kind, scope) if kind.kind != "unknown" else None


# ------------------------------------------------------------------------------ calls


def _call(node: Node, scope: Scope) -> Typed | None:
    function = node.child_by_field_name(k.F_FUNCTION)
    arguments = node.child_by_field_name(k.F_ARGUMENTS)
    if function is None or arguments is None:
        return None
    kind = function.type
    if kind == k.IDENTIFIER:
        return _named_call(text_of(function), "", None, arguments, scope)
    if kind in (k.PRIMITIVE_TYPE, k.SIZED_TYPE_SPECIFIER, k.TYPE_IDENTIFIER):
        return initial_value(arguments, resolve.resolve_type(function, scope), scope)
    if kind == k.TEMPLATE_FUNCTION:
        return _templated_call(function, "", arguments, scope)
    if kind == k.QUALIFIED_IDENTIFIER:
        return _qualified_call(function, arguments, scope)
    return None


def _qualified_call(function: Node, arguments: Node, scope: Scope) -> Typed | None:
    owner, prefix, last = resolve.resolve_qualifier(function, scope)
    if last is None:
        return None
    if owner is not None:
        return _member_call(owner, last, arguments, scope)
    if last.type == k.TEMPLATE_FUNCTION:
        return _templated_call(last, prefix, arguments, scope)
    return _named_call(text_of(last), prefix, None, arguments, scope)


def _member_call(owner: Type, last: Node, arguments: Node, scope: Scope) -> Typed | None:
    explicit: tuple[object | None, ...] = ()
    name = text_of(last)
    if last.type in (k.TEMPLATE_FUNCTION, k.TEMPLATE_METHOD):
        name_node, list_node = last.child_by_field_name(k.F_NAME), last.child_by_field_name(k.F_ARGUMENTS)
        name = text_of(name_node) if name_node is not None else name
        explicit = resolve.resolve_template_arguments(list_node, scope) if list_node is not None else ()
    if isinstance(owner.record, traits.Trait):
        return owner.record.call(name)
    if not isinstance(owner.record, records.Record):
        return None
    return _user_call(records.methods(owner, name), explicit, arguments, scope, owner.record)


def _templated_call(function: Node, prefix: str, arguments: Node, scope: Scope) -> Typed | None:
    name_node = function.child_by_field_name(k.F_NAME)
    list_node = function.child_by_field_name(k.F_ARGUMENTS)
    if name_node is None or list_node is None:
        return None
    name = text_of(name_node)
    explicit = resolve.resolve_template_arguments(list_node, scope)
    if name in ("static_cast", "const_cast", "reinterpret_cast", "__builtin_bit_cast"):
        if name != "static_cast" or len(explicit) != 1 or not isinstance(explicit[0], Type):
            return None
        return initial_value(arguments, explicit[0], scope)
    return _named_call(name, prefix, explicit, arguments, scope)


def _named_call(
    name: str, prefix: str, explicit: tuple[object | None, ...] | None, arguments: Node, scope: Scope
) -> Typed | None:
    if not prefix:
        bound = scope.bound(name)
        if isinstance(bound, Type):
            return initial_value(arguments, bound, scope)
        if isinstance(bound, (FunctionRef, Lambda)):
            return None
        macro = scope.macro(name)
        if macro is not None and macro.params is not None:
            return _macro_call(macro, arguments, scope)
    standard = prefix in ("std", "cuda::std", "cuda", "thrust")
    candidates = scope.functions(_join(prefix, name)) if not standard or name not in arithmetic.FUNCTIONS else []
    if candidates:
        return _user_call(candidates, explicit or (), arguments, scope, None)
    if name in arithmetic.FUNCTIONS:
        values = _argument_values(arguments, scope)
        return arithmetic.FUNCTIONS[name](values) if values is not None else None
    if name in ("ceil_div", "div_up") and prefix:
        return _ceil_div(_argument_values(arguments, scope))
    kind = resolve.named_type(_join(prefix, name), scope) if explicit is None else None
    if kind is not None and (kind.is_integer or kind.kind == "float"):
        return initial_value(arguments, kind, scope)
    return None


def _ceil_div(values: list[Typed] | None) -> Typed | None:
    """`cuda::ceil_div` and its like in libraries that are not at hand."""
    if values is None or len(values) != 2:
        return None
    one = arithmetic.binary("-", values[1], (1, INT))
    total = arithmetic.binary("+", values[0], one) if one is not None else None
    return arithmetic.binary("/", total, values[1]) if total is not None else None


def _argument_values(arguments: Node, scope: Scope) -> list[Typed] | None:
    """The values of all arguments, None if one is unknown; a braced list gives its elements."""
    nodes = [child for child in arguments.named_children if child.type != k.COMMENT]
    if len(nodes) == 1 and nodes[0].type == k.INITIALIZER_LIST:
        nodes = [child for child in nodes[0].named_children if child.type != k.COMMENT]
    values: list[Typed] = []
    for node in nodes:
        found = evaluate_typed(node, scope)
        if found is None:
            return None
        values.append(found)
    return values


def _user_call(
    candidates: list[FunctionDef],
    explicit: tuple[object | None, ...],
    arguments: Node,
    scope: Scope,
    record: records.Record | None,
) -> Typed | None:
    values: list[Typed | None] = []
    kinds: list[Type | FunctionRef | Lambda | None] = []
    for child in arguments.named_children:
        if child.type == k.COMMENT:
            continue
        found = evaluate_typed(child, scope)
        values.append(found)
        kinds.append(found[1] if found is not None else resolve.expression_type(child, scope))
    reference = deduction.resolve_call(candidates, explicit, kinds, record if record is not None else scope.record)
    return interpret.call(reference, values, scope) if reference is not None else None


def _assignment(node: Node, scope: Scope) -> Typed | None:
    return interpret.assignment(node, scope)


def _update(node: Node, scope: Scope) -> Typed | None:
    return interpret.update(node, scope)


_HANDLERS: dict[str, Callable[[Node, Scope], Typed | None]] = {
    k.NUMBER_LITERAL: _number,
    k.CHAR_LITERAL: _character,
    k.TRUE: lambda node, scope: (1, BOOL),
    k.FALSE: lambda node, scope: (0, BOOL),
    k.NULL: lambda node, scope: (0, INT),
    k.IDENTIFIER: _identifier,
    k.TYPE_IDENTIFIER: _identifier,
    k.FIELD_IDENTIFIER: _identifier,
    k.QUALIFIED_IDENTIFIER: _qualified,
    k.TEMPLATE_FUNCTION: _template_function,
    k.PARENTHESIZED_EXPRESSION: _first,
    k.CONDITION_CLAUSE: _first,
    k.DEPENDENT_TYPE: _first,
    k.TYPE_DESCRIPTOR: _type_descriptor,
    k.TEMPLATE_TYPE: _template_function,
    k.UNARY_EXPRESSION: _unary,
    k.BINARY_EXPRESSION: _binary,
    k.CONDITIONAL_EXPRESSION: _conditional,
    k.COMMA_EXPRESSION: _comma,
    k.CAST_EXPRESSION: _cast,
    k.SIZEOF_EXPRESSION: _sizeof,
    k.ALIGNOF_EXPRESSION: _alignof,
    k.OFFSETOF_EXPRESSION: _offsetof,
    k.SUBSCRIPT_EXPRESSION: _subscript,
    k.FIELD_EXPRESSION: _field,
    k.COMPOUND_LITERAL_EXPRESSION: _compound_literal,
    k.CALL_EXPRESSION: _call,
    k.ASSIGNMENT_EXPRESSION: _assignment,
    k.UPDATE_EXPRESSION: _update,
}
