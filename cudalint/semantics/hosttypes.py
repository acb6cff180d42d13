"""Static types of host expressions, as far as deducing template arguments and `sizeof` need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalint.semantics.hostcode import arguments_of, callee_name, name_node, template_argument_list
from cudalint.semantics.ir import FunctionRef
from cudalint.semantics.types import BOOL, UINT64, UNKNOWN, Type, pointer_to
from cudalint.semantics.typing import (
    Declared,
    common_type,
    declarations,
    literal_type,
    member_field,
    methods,
    parameters,
    resolve_template_arguments,
    resolve_type,
    return_type,
    sizeof,
)
from cudalint.semantics.scope import scope_of
from cudalint.syntax import kinds as k

if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Node

    from cudalint.semantics.hostvalues import Context, Evaluator, HostValue

_MAX_DEPTH = 40
_COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">=", "&&", "||", "and", "or"})
_ELEMENT_METHODS = frozenset({"data", "begin", "get", "data_ptr", "mutable_data_ptr", "const_data_ptr"})
_SAME_AS_ARGUMENT = frozenset({"raw_pointer_cast", "move", "forward", "min", "max", "addressof"})
_NAMED_CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast", "dynamic_cast"})


class HostTypes:
    """Types of expressions for an evaluator."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._ev = evaluator
        self._depth = 0
        self._declared: dict[tuple[object, ...], tuple[Declared, Context] | None] = {}

    def argument(self, node: Node, context: Context) -> Type | FunctionRef | None:
        """What an argument tells template deduction: its type, or the function that it names."""
        found = self.of(node, context)
        if found is not None and found.kind != "unknown":
            return found
        value = self._ev.value(node, context)
        if isinstance(value, FunctionRef):
            return value
        candidates = getattr(value, "candidates", None)
        return self._ev.function_ref(value) if candidates else None  # type: ignore[arg-type]

    def of(self, node: Node, context: Context) -> Type | None:
        """The type of an expression, None where unknown."""
        handler = _HANDLERS.get(node.type)
        if handler is None or self._depth > _MAX_DEPTH:
            return None
        self._depth += 1
        try:
            found = handler(self, node, context)
        finally:
            self._depth -= 1
        return None if found is None or found.kind == "unknown" else found

    def resolve(self, target: Node, context: Context) -> Type:
        """The type that a type node names."""
        return resolve_type(target, self._ev.local_scope(target, context))

    def size_of_operand(self, operand: Node, context: Context) -> int | None:
        """The size of `sizeof`'s operand if that is an expression of known type."""
        node = operand
        while node.type in (k.PARENTHESIZED_EXPRESSION, k.TYPE_DESCRIPTOR) and node.named_child_count == 1:
            node = node.named_children[0]
        if node.type == k.TYPE_IDENTIFIER:
            declared = self.declared(context.code.words(node), node, context)
            return self._size(declared) if declared is not None else None
        if node.type in (k.PRIMITIVE_TYPE, k.SIZED_TYPE_SPECIFIER, k.TYPE_DESCRIPTOR, k.TEMPLATE_TYPE):
            return None
        found = self.of(node, context)
        return sizeof(found) if found is not None else None

    def _size(self, declared: tuple[Declared, Context]) -> int | None:
        found, context = declared
        size = sizeof(found.type)
        if size is None and found.type.kind == "array" and found.type.element is not None and found.init is not None:
            items = self._ev.items(self._ev.value(found.init, context))
            element = sizeof(found.type.element)
            size = element * len(items) if items and element is not None else None
        return size

    # ---------------------------------------------------------- declarations

    def declared(self, name: str, node: Node, context: Context) -> tuple[Declared, Context] | None:
        """The declaration of a local name or parameter that is visible at `node`, and where it stands."""
        key = (name, *context.tag(node))
        if key not in self._declared:
            self._declared[key] = None
            self._declared[key] = self._find_declared(name, node, context)
        return self._declared[key]

    def _find_declared(self, name: str, node: Node, context: Context) -> tuple[Declared, Context] | None:
        code = context.code
        region = self._ev.index.region(code, node)
        events = code.events(region, name) if region is not None else []
        for event in reversed(events):
            if event.kind not in ("declare", "parameter") or event.start > node.start_byte:
                continue
            holder: Node | None = event.node
            while holder is not None and holder.type not in _HOLDERS:
                holder = code.parent(holder)
            block = code.parent(holder) if holder is not None else None
            while block is not None and block.type not in _SCOPES:
                block = code.parent(block)
            if holder is None or (block is not None and not block.start_byte <= node.start_byte < block.end_byte):
                continue
            return self._declaration(name, holder, context)
        if code.outer is not None:
            return self._find_declared(name, code.outer[0], context.within(code.outer[1]))
        return None

    def _declaration(self, name: str, holder: Node, context: Context) -> tuple[Declared, Context] | None:
        function = context.frame.function
        if holder.type in _PARAMETERS:
            if function is None or context.code.outer is not None:
                return None
            scope = self._ev.scope(context, holder)
            found = next((p for p in parameters(function, scope) if p.name == name), None)
        elif holder.type == k.DECLARATION:
            scope = self._ev.local_scope(holder, context)
            found = next((d for d in declarations(holder, scope) if d.name == name), None)
        else:
            return None
        return (found, context) if found is not None else None

    def convert_to_declared(self, value: HostValue, name: str, node: Node, context: Context) -> HostValue:
        """A value as the variable `name` holds it."""
        if not isinstance(value, (int, float)) and not self._ev.items(value):
            return value
        region = self._ev.index.region(context.code, node)
        for event in context.code.events(region, name) if region is not None else ():
            if event.kind in ("declare", "parameter") and event.start <= node.start_byte:
                holder: Node | None = event.node
                while holder is not None and holder.type not in _HOLDERS:
                    holder = context.code.parent(holder)
                target = holder.child_by_field_name(k.F_TYPE) if holder is not None else None
                return self._ev.convert(value, target, context) if target is not None else value
        return value

    def _of_declared(self, found: tuple[Declared, Context]) -> Type | None:
        declared, context = found
        kind = declared.type
        if declared.auto and declared.init is not None:
            kind = self.of(declared.init, context) or kind
        return kind

    def elements(self, node: Node, context: Context) -> Type | None:
        """A pointer to the elements of a container that a name declares."""
        if node.type != k.IDENTIFIER:
            return None
        found = self.declared(context.code.words(node), node, context)
        return self._container(*found) if found is not None else None

    def _container(self, declared: Declared, context: Context) -> Type | None:
        """A container of a library that the project does not hold, as a pointer to its elements."""
        holder: Node | None = declared.node
        while holder is not None and holder.type not in _HOLDERS:
            holder = context.code.parent(holder)
        target = holder.child_by_field_name(k.F_TYPE) if holder is not None else None
        arguments = template_argument_list(target)
        if arguments is None:
            return None
        values = resolve_template_arguments(arguments, self._ev.local_scope(arguments, context))
        first = values[0] if values else None
        return pointer_to(first) if isinstance(first, Type) and first.kind != "unknown" else None

    # ----------------------------------------------------------- expressions

    def _identifier(self, node: Node, context: Context) -> Type | None:
        name = context.code.words(node)
        found = self.declared(name, node, context)
        if found is not None:
            return self._of_declared(found)
        scope = self._ev.scope(context, node)
        variable = scope.variable(name)
        if variable is not None:
            found_types = [d for d in declarations(variable.node, variable.unit.scope) if d.name == name]
            return found_types[0].type if found_types else None
        return None

    def _inner(self, node: Node, context: Context) -> Type | None:
        return self.of(node.named_children[0], context) if node.named_child_count else None

    def _pointer(self, node: Node, context: Context) -> Type | None:
        operand, operator = node.child_by_field_name(k.F_ARGUMENT), node.child_by_field_name(k.F_OPERATOR)
        inner = self.of(operand, context) if operand is not None else None
        if inner is None or operator is None:
            return None
        return pointer_to(inner) if operator.type == "&" else inner.element

    def _subscript(self, node: Node, context: Context) -> Type | None:
        operand = node.child_by_field_name(k.F_ARGUMENT)
        if operand is None:
            return None
        inner = self.of(operand, context) or self.elements(operand, context)
        return inner.element if inner is not None else None

    def _field(self, node: Node, context: Context) -> Type | None:
        operand, name = node.child_by_field_name(k.F_ARGUMENT), node.child_by_field_name(k.F_FIELD)
        if operand is None or name is None:
            return None
        inner = self.of(operand, context)
        if inner is not None and inner.kind == "pointer":
            inner = inner.element
        if inner is None:
            return None
        found = member_field(inner, context.code.words(name))
        return found.type if found is not None else None

    def _cast(self, node: Node, context: Context) -> Type | None:
        target = node.child_by_field_name(k.F_TYPE)
        return self.resolve(target, context) if target is not None else None

    def _new(self, node: Node, context: Context) -> Type | None:
        target = node.child_by_field_name(k.F_TYPE)
        return pointer_to(self.resolve(target, context)) if target is not None else None

    def _literal(self, node: Node, context: Context) -> Type | None:
        return literal_type(context.code.words(node))

    def _bool(self, node: Node, context: Context) -> Type | None:
        return BOOL

    def _sizeof(self, node: Node, context: Context) -> Type | None:
        return UINT64

    def _binary(self, node: Node, context: Context) -> Type | None:
        operator = node.child_by_field_name(k.F_OPERATOR)
        left, right = node.child_by_field_name(k.F_LEFT), node.child_by_field_name(k.F_RIGHT)
        if operator is None or left is None or right is None:
            return None
        if operator.type in _COMPARISONS:
            return BOOL
        first, second = self.of(left, context), self.of(right, context)
        for side in (first, second):
            if side is not None and side.kind in ("pointer", "array"):
                return side
        return common_type(first, second) if first is not None and second is not None else None

    def _conditional(self, node: Node, context: Context) -> Type | None:
        arm = node.child_by_field_name(k.F_CONSEQUENCE)
        return self.of(arm, context) if arm is not None else None

    def _operand(self, node: Node, context: Context) -> Type | None:
        operand = node.child_by_field_name(k.F_ARGUMENT) or node.child_by_field_name(k.F_LEFT)
        return self.of(operand, context) if operand is not None else None

    def _call(self, node: Node, context: Context) -> Type | None:
        callee = node.child_by_field_name(k.F_FUNCTION)
        if callee is None:
            return None
        name = callee_name(callee, context.code)
        arguments = arguments_of(node)
        if name in _NAMED_CASTS or name == "data_ptr":
            return self._templated(callee, name, context)
        if callee.type == k.FIELD_EXPRESSION:
            return self._method(callee, name, context)
        if callee.type in (k.PRIMITIVE_TYPE, k.SIZED_TYPE_SPECIFIER):
            return self.resolve(callee, context)
        if name in _SAME_AS_ARGUMENT and arguments:
            return self.of(arguments[0], context)
        functions = self._ev.index.functions(context.code.unit, name)
        if len(functions) == 1:
            frame = self._ev.enter(functions[0], node, context)
            return return_type(functions[0], scope_of(functions[0], self._ev.bindings(frame)))  # type: ignore[arg-type]
        if not functions and callee.type == k.IDENTIFIER:
            return self._ev.scope(context, node).type(name)
        return None

    def _templated(self, callee: Node, name: str, context: Context) -> Type | None:
        arguments = template_argument_list(callee)
        target = arguments.named_children[0] if arguments is not None and arguments.named_child_count else None
        if target is None:
            return None
        found = self.resolve(target, context)
        return pointer_to(found) if name == "data_ptr" else found

    def _method(self, callee: Node, name: str, context: Context) -> Type | None:
        receiver = callee.child_by_field_name(k.F_ARGUMENT)
        if receiver is None:
            return None
        inner = self.of(receiver, context)
        if name in _ELEMENT_METHODS and (inner is None or inner.kind == "pointer"):
            return inner or self.elements(receiver, context)
        if inner is None:
            return None
        functions = methods(inner, name) if inner.kind == "struct" else []
        record = inner.record
        if len(functions) == 1 and record is not None:
            return return_type(functions[0], record.scope)  # type: ignore[attr-defined]
        return None

    def _compound_literal(self, node: Node, context: Context) -> Type | None:
        target = node.child_by_field_name(k.F_TYPE)
        return self.resolve(target, context) if target is not None else None


_PARAMETERS = frozenset({k.PARAMETER_DECLARATION, k.OPTIONAL_PARAMETER_DECLARATION, k.VARIADIC_PARAMETER_DECLARATION})
_HOLDERS = frozenset({k.DECLARATION, k.FOR_RANGE_LOOP, *_PARAMETERS})
_SCOPES = frozenset(
    {
        k.COMPOUND_STATEMENT,
        k.CASE_STATEMENT,
        k.FOR_STATEMENT,
        k.IF_STATEMENT,
        k.WHILE_STATEMENT,
        k.LAMBDA_EXPRESSION,
        k.FUNCTION_DEFINITION,
    }
)
_HANDLERS: dict[str, Callable[[HostTypes, Node, Context], Type | None]] = {
    k.IDENTIFIER: HostTypes._identifier,
    k.PARENTHESIZED_EXPRESSION: HostTypes._inner,
    k.POINTER_EXPRESSION: HostTypes._pointer,
    k.SUBSCRIPT_EXPRESSION: HostTypes._subscript,
    k.FIELD_EXPRESSION: HostTypes._field,
    k.CAST_EXPRESSION: HostTypes._cast,
    k.NEW_EXPRESSION: HostTypes._new,
    k.NUMBER_LITERAL: HostTypes._literal,
    k.CHAR_LITERAL: HostTypes._literal,
    k.TRUE: HostTypes._bool,
    k.FALSE: HostTypes._bool,
    k.SIZEOF_EXPRESSION: HostTypes._sizeof,
    k.BINARY_EXPRESSION: HostTypes._binary,
    k.CONDITIONAL_EXPRESSION: HostTypes._conditional,
    k.UNARY_EXPRESSION: HostTypes._operand,
    k.UPDATE_EXPRESSION: HostTypes._operand,
    k.ASSIGNMENT_EXPRESSION: HostTypes._operand,
    k.CALL_EXPRESSION: HostTypes._call,
    k.COMPOUND_LITERAL_EXPRESSION: HostTypes._compound_literal,
}


