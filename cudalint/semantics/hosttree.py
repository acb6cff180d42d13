"""What host code says, as far as trees tell: calls, arguments, the types of local variables, assignments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from cudalint.semantics.hostslice import occurrences
from cudalint.semantics.symbols import FunctionDef, declarator_name, text_of
from cudalint.semantics.typing import declarations, expression_type, parameters
from cudalint.syntax import kinds as k

if TYPE_CHECKING:
    from tree_sitter import Node

    from cudalint.semantics.hostvalues import World
    from cudalint.semantics.program import Unit
    from cudalint.semantics.scope import Scope
    from cudalint.semantics.types import Type

_ASSIGNED = re.compile(rb"(?:\s*\.\s*\w+)*\s*(?:[-+*/%&|^]?=(?!=)|<<=|>>=|\+\+|--)")
GIVEN = re.compile(rb"[^;]*?\b(?:ato(?:i|l|ll|f)|strto\w+|sto(?:i|l|ll|ul|ull)|optarg|argv|getCmdLineArgument\w*)\b")


def enclosing(unit: Unit, offset: int) -> FunctionDef | None:
    """The function whose body holds a byte."""
    best: FunctionDef | None = None
    for function in unit.all_functions:
        if function.body is not None and function.body.start_byte <= offset < function.end:
            best = function if best is None or function.start > best.start else best
    return best


def arguments_of(call: Node) -> list[Node]:
    """The arguments of a call expression."""
    listed = call.child_by_field_name(k.F_ARGUMENTS)
    return [n for n in listed.named_children if n.type != k.COMMENT] if listed is not None else []


def template_arguments(callee: Node | None) -> Node | None:
    """The `<…>` of a callee."""
    while callee is not None and callee.type == k.QUALIFIED_IDENTIFIER:
        callee = callee.child_by_field_name(k.F_NAME)
    if callee is None:
        return None
    return next((n for n in callee.named_children if n.type == k.TEMPLATE_ARGUMENT_LIST), None)


def argument_types(args: Iterable[Node], world: World, anchor: Node, function: FunctionDef | None) -> list[Type | None]:
    """The types of a call's arguments, where declarations before `anchor` in its function tell."""
    result: list[Type | None] = []
    for node in args:
        scope = world.holding(world.state).names(node)
        scope.variable_type = lambda name: _local_type(name, anchor, function, world.scope)
        found = expression_type(node, scope)
        result.append(None if found.kind == "unknown" else found)
    return result


def _local_type(name: str, anchor: Node, function: FunctionDef | None, scope: Scope) -> Type | None:
    """The type of a variable declared before the anchor in its function, or of a parameter."""
    word = name.encode()
    block = anchor.parent
    while block is not None:
        if block.type == k.COMPOUND_STATEMENT:
            for statement in block.named_children:
                if statement.start_byte >= anchor.start_byte:
                    break
                if statement.type == k.DECLARATION and word in (statement.text or b""):
                    for declared in declarations(statement, scope):
                        if declared.name == name:
                            return declared.type
        if function is not None and function.body is not None and block.id == function.body.id:
            break
        block = block.parent
    if function is not None:
        for param in parameters(function, scope):
            if param.name == name:
                return param.type
    return None


def parameter_names(function: FunctionDef) -> tuple[str, ...]:
    """The names of a function's parameters in order, "" for unnamed ones."""
    names = []
    for child in function.parameter_list.named_children if function.parameter_list is not None else ():
        kind, declarator = child.child_by_field_name(k.F_TYPE), child.child_by_field_name(k.F_DECLARATOR)
        if kind is None or (declarator is None and kind.text == b"void"):
            continue
        name = declarator_name(declarator) if declarator is not None else None
        names.append(text_of(name) if name is not None else "")
    return tuple(names)


def declared_in(block: Node) -> Iterator[Node]:
    """The names of the variables that a block declares."""
    for statement in block.named_children:
        if statement.type == k.DECLARATION:
            names = (declarator_name(declarator) for declarator in statement.children_by_field_name(k.F_DECLARATOR))
            yield from (name for name in names if name is not None)


def path_to(node: Node, body: Node) -> list[Node]:
    """The nodes from a function's body down to `node`."""
    path = []
    current: Node | None = node.parent
    while current is not None and current.start_byte >= body.start_byte:
        path.append(current)
        if current.id == body.id:
            break
        current = current.parent
    return path[::-1]


_CALLEES = (k.IDENTIFIER, k.TEMPLATE_FUNCTION, k.QUALIFIED_IDENTIFIER, k.FIELD_IDENTIFIER, k.FIELD_EXPRESSION)


def call_of(node: Node | None) -> Node | None:
    """The call of which a name is the callee."""
    while node is not None and node.type in _CALLEES:
        parent = node.parent
        if parent is not None and parent.type == k.CALL_EXPRESSION:
            callee = parent.child_by_field_name(k.F_FUNCTION)
            return parent if callee is not None and callee.id == node.id else None
        node = parent
    return None


def is_assigned(text: bytes, name: bytes) -> bool:
    """Whether code changes a variable, other than to what the user of the program may hand it."""
    for at in occurrences(text, name):
        assigned = _ASSIGNED.match(text, at + len(name))
        end = assigned.end() if assigned is not None else at + len(name)
        if (assigned is not None or text[:at].rstrip().endswith((b"++", b"--"))) and not GIVEN.match(text, end):
            return True
    return False


def leaves(arm: Node) -> bool:
    """Whether an arm ends by leaving the function."""
    last = arm
    while last.type in (k.COMPOUND_STATEMENT, k.ELSE_CLAUSE) and last.named_children:
        last = last.named_children[-1]
    if last.type in (k.RETURN_STATEMENT, k.THROW_STATEMENT):
        return True
    return last.type == k.EXPRESSION_STATEMENT and re.match(rb"(?:std::)?(?:exit|abort)\s*\(", last.text or b"") is not None


def plain(node: Node | None) -> Node | None:
    """Without parentheses."""
    while node is not None and node.type in (k.CONDITION_CLAUSE, k.PARENTHESIZED_EXPRESSION):
        value = node.child_by_field_name(k.F_VALUE)
        node = value if value is not None else next((n for n in node.named_children if n.type != k.COMMENT), None)
    return node


def parts_of(node: Node) -> list[Node]:
    return [n for n in node.named_children if n.type != k.COMMENT]
