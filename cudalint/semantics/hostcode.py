"""Host code as the launch evaluator reads it: trees with parents, the places where a name is written, and calls.

A `Code` is the tree of a file or of a macro expansion; an expansion is grafted
in where the macro is used, so that climbing out of it leads to the code around
the use.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cudalint.semantics.symbols import StructDef, active_children
from cudalint.syntax import kinds as k

if TYPE_CHECKING:
    from tree_sitter import Node

    from cudalint.semantics.program import Unit
    from cudalint.semantics.symbols import FunctionDef

EventKind = Literal["declare", "parameter", "assign", "update", "out", "input"]

ARMS = frozenset(
    {k.PREPROC_IF, k.PREPROC_IFDEF, k.PREPROC_ELSE, k.PREPROC_ELIF, k.PREPROC_ELIFDEF}
)
LOOPS = frozenset({k.FOR_STATEMENT, k.FOR_RANGE_LOOP, k.WHILE_STATEMENT, k.DO_STATEMENT})
_DECLARATORS = frozenset(
    {
        k.POINTER_DECLARATOR,
        k.ARRAY_DECLARATOR,
        k.REFERENCE_DECLARATOR,
        k.PARENTHESIZED_DECLARATOR,
        k.FUNCTION_DECLARATOR,
        k.ATTRIBUTED_DECLARATOR,
        k.STRUCTURED_BINDING_DECLARATOR,
        k.VARIADIC_DECLARATOR,
    }
)
_DECLARING = frozenset({k.DECLARATION, k.INIT_DECLARATOR, k.FOR_RANGE_LOOP, k.CONDITION_CLAUSE})
_PARAMETERS = frozenset(
    {k.PARAMETER_DECLARATION, k.OPTIONAL_PARAMETER_DECLARATION, k.VARIADIC_PARAMETER_DECLARATION}
)
_LVALUE_FIELDS = {k.FIELD_EXPRESSION: k.F_ARGUMENT, k.SUBSCRIPT_EXPRESSION: k.F_ARGUMENT}


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """A place where a name may get a value.

    kind   declare, parameter; assign (`=`, `+=`), update (`++`); out (handed to a call that may write it), input (`>>`)
    start  byte offset of the name
    node   the declarator with its initialiser, parameter, assignment, update or call
    index  which argument (out) or name of a structured binding (declare)
    """

    kind: EventKind
    start: int
    node: Node
    index: int = 0
    address: bool = False


class Code:
    """A tree that host code is read from.

    unit   the file that the code belongs to
    text   what the offsets of the nodes refer to
    outer  for an expansion: the node that stands for the macro's use, and its code
    """

    __slots__ = ("_events", "_functions", "_parents", "outer", "root", "serial", "text", "unit")

    _count = itertools.count()

    def __init__(self, unit: Unit, root: Node, text: bytes, outer: tuple[Node, Code] | None = None) -> None:
        self.unit = unit
        self.root = root
        self.text = text
        self.outer = outer
        self.serial = next(Code._count)
        self._parents: dict[int, Node] = {}
        self._events: dict[tuple[int, str], list[Event]] = {}
        self._functions: tuple[list[int], list[FunctionDef]] | None = None
        if outer is not None:
            self._map(root)

    def words(self, node: Node) -> str:
        """The text of a node."""
        return self.text[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def offset(self, node: Node) -> int:
        """Where a node stands in the file; for an expansion, where the macro is used."""
        return node.start_byte if self.outer is None else self.outer[1].offset(self.outer[0])

    def function_at(self, offset: int) -> FunctionDef | None:
        """The innermost function definition of the file around a byte offset."""
        if self._functions is None:
            functions = sorted(_all_functions(self.unit), key=lambda f: (f.start, -f.end))
            self._functions = ([f.start for f in functions], functions)
        starts, functions = self._functions
        for index in range(bisect.bisect_right(starts, offset) - 1, -1, -1):
            if offset < functions[index].end:
                return functions[index]
            if index and functions[index - 1].end <= functions[index].start and functions[index].end <= offset:
                break
        return None

    def enclosing(self, node: Node) -> FunctionDef | None:
        """The function around a node; for an expansion, around the macro's use."""
        return self.function_at(node.start_byte) if self.outer is None else self.outer[1].enclosing(self.outer[0])

    def callee_around(self, name: Node) -> Node:
        """The whole expression that `name` is the last part of: with qualification, receiver and template arguments."""
        node = name
        while True:
            parent = self.parent(node)
            if parent is None or parent.type not in _NAMED:
                return node
            inner = parent.child_by_field_name(_NAMED[parent.type])
            if inner is None or inner.id != node.id:
                return node
            node = parent

    def parent(self, node: Node) -> Node | None:
        """The node above; None at the root."""
        found = self._parents.get(node.id)
        if found is not None or self.outer is not None:
            return found
        function = self.function_at(node.start_byte)
        if function is not None and function.node.id not in self._parents:
            above = function.node.parent
            if above is not None:
                self._parents[function.node.id] = above
            self._map(function.node)
            found = self._parents.get(node.id)
        return found if found is not None else node.parent

    def _map(self, top: Node) -> None:
        stack = [top]
        parents = self._parents
        while stack:
            node = stack.pop()
            for child in node.named_children:
                parents[child.id] = node
                if child.named_child_count:
                    stack.append(child)

    def children(self, node: Node) -> list[Node]:
        """The named children that the target compiles, without comments."""
        found = active_children(node, self.unit) if self.outer is None else node.named_children
        return [child for child in found if child.type != k.COMMENT]

    def events(self, region: Node, name: str) -> list[Event]:
        """The places in `region` where `name` may be written, in source order."""
        key = (region.id, name)
        found = self._events.get(key)
        if found is None:
            found = self._events[key] = list(self._find_events(region, name))
        return found

    def mentions(self, region: Node, name: str) -> Iterator[Node]:
        """The identifiers in `region` that spell `name`."""
        pattern = re.compile(rb"(?<![\w$])" + re.escape(name.encode()) + rb"(?![\w$])")
        for match in pattern.finditer(self.text, region.start_byte, region.end_byte):
            node = region.descendant_for_byte_range(match.start(), match.end())
            if node is not None and node.start_byte == match.start() and node.end_byte == match.end():
                yield node

    def _find_events(self, region: Node, name: str) -> Iterator[Event]:
        for node in self.mentions(region, name):
            event = self._classify(node)
            if event is not None and (self.outer is not None or self.unit.is_active(event.start)):
                yield event

    def _classify(self, identifier: Node) -> Event | None:
        start = identifier.start_byte
        node, parent = identifier, self.parent(identifier)
        if parent is None:
            return None
        if node.type == k.FIELD_IDENTIFIER:
            if parent.type != k.FIELD_EXPRESSION:
                return None
            argument = parent.child_by_field_name(k.F_ARGUMENT)
            if argument is None or argument.type != k.THIS:
                return None
            node, parent = parent, self.parent(parent)
        elif parent.type in _DECLARATORS or parent.type in _PARAMETERS or parent.type in _DECLARING:
            event = self._declaration(identifier, start)
            if event is not None:
                return event
        return self._write(node, parent, start)

    def _declaration(self, identifier: Node, start: int) -> Event | None:
        node, parent = identifier, self.parent(identifier)
        index = 0
        while parent is not None and parent.type in _DECLARATORS:
            inner = parent.child_by_field_name(k.F_DECLARATOR)
            if parent.type == k.STRUCTURED_BINDING_DECLARATOR:
                index = next((i for i, child in enumerate(parent.named_children) if child.id == node.id), 0)
            elif inner is not None and inner.id != node.id:
                return None  # an array length, a parameter
            node, parent = parent, self.parent(parent)
        if parent is None:
            return None
        if parent.type == k.INIT_DECLARATOR:
            value = parent.child_by_field_name(k.F_VALUE)
            if value is not None and value.id == node.id:
                return None
            return Event("declare", start, parent, index)
        declarators = [child.id for child in parent.children_by_field_name(k.F_DECLARATOR)]
        if node.id not in declarators:
            return None
        if parent.type in (k.DECLARATION, k.CONDITION_CLAUSE):
            return Event("declare", start, node if parent.type == k.DECLARATION else parent, index)
        if parent.type == k.FOR_RANGE_LOOP:
            return Event("declare", start, parent, index)
        if parent.type in _PARAMETERS:
            return Event("parameter", start, parent)
        return None

    def _write(self, node: Node, parent: Node | None, start: int) -> Event | None:
        address = False
        while parent is not None:
            field = _LVALUE_FIELDS.get(parent.type)
            if field is not None:
                argument = parent.child_by_field_name(field)
                if argument is None or argument.id != node.id:
                    return None
            elif parent.type == k.POINTER_EXPRESSION:
                operator = parent.child_by_field_name(k.F_OPERATOR)
                address = operator is not None and operator.type == "&"
            elif parent.type not in (k.PARENTHESIZED_EXPRESSION, k.CAST_EXPRESSION):
                break
            node, parent = parent, self.parent(parent)
        if parent is None:
            return None
        if parent.type == k.ASSIGNMENT_EXPRESSION:
            left = parent.child_by_field_name(k.F_LEFT)
            return Event("assign", start, parent) if left is not None and left.id == node.id else None
        if parent.type == k.UPDATE_EXPRESSION:
            return Event("update", start, parent)
        if parent.type == k.ARGUMENT_LIST:
            return self._argument(node, parent, start, address)
        if parent.type == k.BINARY_EXPRESSION:
            return self._extraction(node, parent, start)
        return None

    def _argument(self, node: Node, arguments: Node, start: int, address: bool) -> Event | None:
        call = self.parent(arguments)
        if call is None or call.type != k.CALL_EXPRESSION:
            return None
        if any(child.type == k.KERNEL_CALL_SYNTAX for child in call.named_children):
            return None
        items = [child for child in arguments.named_children if child.type != k.COMMENT]
        index = next((i for i, child in enumerate(items) if child.id == node.id), -1)
        return Event("out", start, call, index, address) if index >= 0 else None

    def _extraction(self, node: Node, parent: Node, start: int) -> Event | None:
        """`std::cin >> name`: a shift whose value nobody uses."""
        operator, right = parent.child_by_field_name(k.F_OPERATOR), parent.child_by_field_name(k.F_RIGHT)
        if operator is None or operator.type != ">>" or right is None or right.id != node.id:
            return None
        top, above = parent, self.parent(parent)
        while above is not None and above.type == k.BINARY_EXPRESSION:
            top, above = above, self.parent(above)
        used = above is None or above.type not in (k.EXPRESSION_STATEMENT, k.CONDITION_CLAUSE)
        return None if used else Event("input", start, top)



def arguments_of(call: Node) -> list[Node]:
    """The arguments of a call, without comments."""
    arguments = call.child_by_field_name(k.F_ARGUMENTS)
    return [child for child in arguments.named_children if child.type != k.COMMENT] if arguments is not None else []


_NAMED = {
    k.TEMPLATE_FUNCTION: k.F_NAME,
    k.TEMPLATE_METHOD: k.F_NAME,
    k.TEMPLATE_TYPE: k.F_NAME,
    k.QUALIFIED_IDENTIFIER: k.F_NAME,
    k.FIELD_EXPRESSION: k.F_FIELD,
}


def name_node(node: Node) -> Node:
    """The identifier of a name: without qualification, receiver and template arguments."""
    while True:
        inner: Node | None = None
        if node.type in _NAMED:
            inner = node.child_by_field_name(_NAMED[node.type])
        elif node.type in (k.DEPENDENT_NAME, k.PARENTHESIZED_EXPRESSION) and node.named_child_count:
            inner = node.named_children[-1]
        if inner is None:
            return node
        node = inner


def callee_name(node: Node, code: Code) -> str:
    """The unqualified name of what is called."""
    return code.words(name_node(node))


def template_argument_list(node: Node | None) -> Node | None:
    """The explicit template arguments of a name."""
    while node is not None:
        if node.type in (k.TEMPLATE_FUNCTION, k.TEMPLATE_METHOD, k.TEMPLATE_TYPE):
            return node.child_by_field_name(k.F_ARGUMENTS)
        if node.type in _NAMED:
            node = node.child_by_field_name(_NAMED[node.type])
        elif node.type == k.DEPENDENT_NAME:
            node = node.named_children[-1] if node.named_children else None
        else:
            return None
    return None


def _all_functions(unit: Unit) -> Iterator[FunctionDef]:
    """The function definitions of a file, those inside of class bodies too."""
    yield from unit.all_functions
    pending = [struct for group in unit.symbols.types.values() for struct in group if isinstance(struct, StructDef)]
    while pending:
        struct = pending.pop()
        for group in struct.members.functions.values():
            yield from (function for function in group if function.body is not None)
        pending.extend(inner for types in struct.members.types.values() for inner in types if isinstance(inner, StructDef))
