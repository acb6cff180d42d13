"""Calls of the program's own functions at compile time: a small interpreter of statements over numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalint.semantics import arithmetic, constants, resolve
from cudalint.semantics import scope as scopes
from cudalint.semantics.ir import FunctionRef
from cudalint.semantics.literals import Typed
from cudalint.semantics.symbols import FunctionDef, active_children, text_of
from cudalint.semantics.types import INT, UNKNOWN, Type
from cudalint.syntax import kinds as k

if TYPE_CHECKING:
    from tree_sitter import Node

    from cudalint.semantics.scope import Scope


class _Unsupported(Exception):
    """Something here is no constant."""


class _Return(Exception):
    def __init__(self, value: Typed | None) -> None:
        super().__init__()
        self.value = value


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class Unset:
    """A local variable without a known value: hides what else has its name."""


UNSET = Unset()


def call(reference: FunctionRef, values: list[Typed | None], caller: Scope) -> Typed | None:
    """The value that the function returns for these arguments (None: unknown argument), None where it has none."""
    definition = reference.definition
    if not isinstance(definition, FunctionDef) or definition.body is None:
        return None
    program = caller.unit.program
    key = (reference, tuple(values))
    if key in program.calls:
        return program.calls[key]
    guard = program.guard
    if not guard.open():
        return None
    try:
        found = _run(definition, reference, values)
    finally:
        guard.close()
    if guard.idle or not guard.exhausted:
        program.calls[key] = found
    return found


def _run(definition: FunctionDef, reference: FunctionRef, values: list[Typed | None]) -> Typed | None:
    frame = scopes.scope_of_ref(reference).child()
    frame.frame = True
    returns = resolve.return_type(definition, frame)
    parameters = resolve.parameters(definition, frame)
    for position, parameter in enumerate(parameters):
        value = values[position] if position < len(values) else None
        if position >= len(values) and parameter.init is not None:
            value = constants.evaluate_typed(parameter.init, frame)
        _bind(frame, parameter.name, value, parameter.type)
    try:
        body = definition.body
        if body is not None:
            _block(body, frame)
    except _Return as result:
        return _returned(result.value, returns)
    except (_Unsupported, _Break, _Continue):
        return None
    return None


def _returned(value: Typed | None, returns: Type) -> Typed | None:
    if value is None or returns.kind in ("unknown", "void"):
        return value if returns.kind == "unknown" else None
    converted = arithmetic.convert(value[0], returns)
    return None if converted is None else (converted, returns)


def _bind(frame: Scope, name: str, value: Typed | None, kind: Type) -> None:
    if not name:
        return
    if value is not None and (kind.is_integer or kind.kind == "float"):
        converted = arithmetic.convert(value[0], kind)
        value = None if converted is None else (converted, kind)
    elif kind.kind not in ("unknown",):
        value = None
    frame.declare(name, UNSET if value is None else value[0])


def _block(node: Node, frame: Scope) -> None:
    inner = frame.child()
    inner.frame = True
    for child in active_children(node, frame.unit):
        _statement(child, inner)


def _statement(node: Node, frame: Scope) -> None:
    kind = node.type
    frame.offset = node.start_byte
    if kind == k.RETURN_STATEMENT:
        value = next((child for child in node.named_children if child.type != k.COMMENT), None)
        raise _Return(_value(value, frame) if value is not None else None)
    handler = _STATEMENTS.get(kind)
    if handler is not None:
        handler(node, frame)
    elif kind == k.BREAK_STATEMENT:
        raise _Break
    elif kind == k.CONTINUE_STATEMENT:
        raise _Continue
    elif kind not in _IGNORED:
        raise _Unsupported


def _value(node: Node, frame: Scope) -> Typed | None:
    if node.type == k.INITIALIZER_LIST:
        return constants.initial_value(node, UNKNOWN, frame)
    return constants.evaluate_typed(node, frame)


def _condition(node: Node | None, frame: Scope) -> bool:
    value = constants.evaluate_typed(node, frame) if node is not None else None
    if value is None:
        raise _Unsupported
    return value[0] != 0


def _expression_statement(node: Node, frame: Scope) -> None:
    for child in node.named_children:
        if child.type in (k.COMMENT, k.STRING_LITERAL) or _is_assertion(child):
            continue
        if constants.evaluate_typed(child, frame) is None:
            raise _Unsupported


def _is_assertion(node: Node) -> bool:
    function = node.child_by_field_name(k.F_FUNCTION) if node.type == k.CALL_EXPRESSION else None
    return function is not None and b"assert" in (function.text or b"").lower()


def _declaration(node: Node, frame: Scope) -> None:
    for declared in resolve.declarations(node, frame):
        value = constants.initial_value(declared.init, declared.type, frame) if declared.init is not None else None
        _bind(frame, declared.name, value, declared.type)


def _local_type(node: Node, frame: Scope) -> None:
    resolve.declare_local(node, frame)


def _if(node: Node, frame: Scope) -> None:
    taken = node.child_by_field_name(k.F_CONSEQUENCE)
    if not _condition(node.child_by_field_name(k.F_CONDITION), frame):
        clause = node.child_by_field_name(k.F_ALTERNATIVE)
        taken = next((child for child in clause.named_children if child.type != k.COMMENT), None) if clause is not None else None
    if taken is not None:
        _statement(taken, frame)


def _once(body: Node | None, frame: Scope) -> bool:
    """Runs a loop's body; False when it broke out."""
    try:
        if body is not None:
            _statement(body, frame)
    except _Continue:
        return True
    except _Break:
        return False
    return True


def _while(node: Node, frame: Scope) -> None:
    condition, body = node.child_by_field_name(k.F_CONDITION), node.child_by_field_name(k.F_BODY)
    while _condition(condition, frame) and _once(body, frame):
        _spend(frame)


def _do(node: Node, frame: Scope) -> None:
    condition, body = node.child_by_field_name(k.F_CONDITION), node.child_by_field_name(k.F_BODY)
    while _once(body, frame) and _condition(condition, frame):
        _spend(frame)


def _for(node: Node, frame: Scope) -> None:
    inner = frame.child()
    inner.frame = True
    start = node.child_by_field_name(k.F_INITIALIZER)
    condition, step = node.child_by_field_name(k.F_CONDITION), node.child_by_field_name(k.F_UPDATE)
    body = node.child_by_field_name(k.F_BODY)
    if start is not None:
        if start.type == k.DECLARATION:
            _declaration(start, inner)
        elif constants.evaluate_typed(start, inner) is None:
            raise _Unsupported
    while (condition is None or _condition(condition, inner)) and _once(body, inner):
        if step is not None and constants.evaluate_typed(step, inner) is None:
            raise _Unsupported
        _spend(inner)


def _spend(frame: Scope) -> None:
    """A loop without work of its own must end too."""
    guard = frame.unit.program.guard
    if not guard.open():
        raise _Unsupported
    guard.close()


_STATEMENTS = {
    k.COMPOUND_STATEMENT: _block,
    k.EXPRESSION_STATEMENT: _expression_statement,
    k.DECLARATION: _declaration,
    k.IF_STATEMENT: _if,
    k.WHILE_STATEMENT: _while,
    k.DO_STATEMENT: _do,
    k.FOR_STATEMENT: _for,
    k.ALIAS_DECLARATION: _local_type,
    k.TYPE_DEFINITION: _local_type,
    k.USING_DECLARATION: _local_type,
}
_IGNORED = frozenset((k.COMMENT, k.STATIC_ASSERT_DECLARATION, k.PREPROC_CALL, k.PREPROC_DEF, k.PREPROC_FUNCTION_DEF))


# ------------------------------------------------------------------- assignments


def _variable(node: Node | None, scope: Scope) -> Scope | None:
    """The frame that holds the local variable `node` names."""
    if node is None or node.type != k.IDENTIFIER or not scope.frame:
        return None
    name = text_of(node)
    current: Scope | None = scope
    while current is not None and current.frame:
        if name in current.locals:
            return current
        current = current.parent
    return None


def assignment(node: Node, scope: Scope) -> Typed | None:
    """`x = …`, `x += …` on a local variable of an interpreted function."""
    left = node.child_by_field_name(k.F_LEFT)
    right = node.child_by_field_name(k.F_RIGHT)
    operator = node.child_by_field_name(k.F_OPERATOR)
    frame = _variable(left, scope)
    if frame is None or left is None or right is None or operator is None:
        return None
    value = constants.evaluate_typed(right, scope)
    symbol = text_of(operator)
    if value is not None and symbol != "=":
        old = constants.evaluate_typed(left, scope)
        value = arithmetic.binary(symbol[:-1], old, value) if old is not None else None
    return _store(frame, text_of(left), value)


def _store(frame: Scope, name: str, value: Typed | None) -> Typed | None:
    old = frame.locals[name]
    if value is not None and isinstance(old, int) and isinstance(value[0], float):
        value = (int(value[0]), INT)
    frame.declare(name, UNSET if value is None else value[0])
    return value


def update(node: Node, scope: Scope) -> Typed | None:
    """`++x`, `x--` on a local variable of an interpreted function."""
    operand = node.child_by_field_name(k.F_ARGUMENT)
    operator = node.child_by_field_name(k.F_OPERATOR)
    frame = _variable(operand, scope)
    if frame is None or operand is None or operator is None:
        return None
    old = constants.evaluate_typed(operand, scope)
    new = arithmetic.binary(text_of(operator)[0], old, (1, INT)) if old is not None else None
    stored = _store(frame, text_of(operand), new)
    return stored if operator.start_byte < operand.start_byte else old
