"""What expressions of host code are worth in a state."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from cudalint.semantics import constants
from cudalint.semantics.hostslice import occurrences
from cudalint.semantics.hosttree import GIVEN, arguments_of, parts_of, plain, template_arguments
from cudalint.semantics.hostvalues import (
    MAX_STATES,
    UNKNOWN,
    Dim,
    KernelName,
    Listing,
    Value,
    World,
    as_dim,
    combine,
    dim_of,
    number_of,
)
from cudalint.semantics.symbols import FunctionDef, text_of
from cudalint.semantics.typing import initializer_arguments, resolve_template_arguments
from cudalint.syntax import kinds as k
from cudalint.syntax.tree import parse_fragment

if TYPE_CHECKING:
    from tree_sitter import Node

    from cudalint.semantics.program import Unit
    from cudalint.semantics.symbols import GlobalVar

_CHANGED = re.compile(rb"\s*(?:\.\s*[xyz]\s*)?(?:[-+*/]?=(?!=)|\+\+|--)")
_LIBRARY = frozenset(
    "printf fprintf sprintf snprintf puts fgets fopen fclose fread fwrite exit abort assert free malloc calloc realloc memset"
    " memcpy memmove strlen strcmp strcpy strcat strstr strncmp atoi atof getenv rand srand cudaMalloc cudaFree cudaMemcpy"
    " cudaMemcpyAsync cudaMemset cudaDeviceSynchronize".split()
)
_MATH = frozenset("sqrt sqrtf pow powf ceil ceilf floor floorf fabs fabsf log log2 exp sin cos".split())


class HostValues:
    """Evaluates expressions; `HostWalk` adds what the functions they call return."""

    def __init__(self) -> None:
        self._callable: dict[tuple[str, str, str], list[FunctionDef]] = {}

    def alternatives(self, node: Node, world: World) -> list[tuple[Value, World]]:
        """The values an expression can have; a ternary whose condition is unknown has both."""
        node = plain(node) or node
        if node.type == k.CONDITIONAL_EXPRESSION:
            condition, then, other = (node.child_by_field_name(f) for f in (k.F_CONDITION, k.F_CONSEQUENCE, k.F_ALTERNATIVE))
            holds = self.value(condition, world) if condition is not None else UNKNOWN
            result: list[tuple[Value, World]] = []
            if then is not None and (not isinstance(holds, (int, float)) or holds):
                result.extend(self.alternatives(then, world))
            if other is not None and (not isinstance(holds, (int, float)) or not holds):
                result.extend(self.alternatives(other, world))
            return result[:MAX_STATES]
        if node.type == k.SUBSCRIPT_EXPRESSION:
            return [(value, world) for value in self._elements(node, world)]
        return [(self.value(node, world), world)]

    def _elements(self, node: Node, world: World) -> list[Value]:
        """What `array[i]` can be: one element if i is known, any of them if not."""
        holder, index = node.child_by_field_name(k.F_ARGUMENT), node.child_by_field_name(k.F_INDICES)
        listing = self.value(holder, world) if holder is not None else UNKNOWN
        if isinstance(listing, Dim):
            listing = Listing(tuple(UNKNOWN if part is None else part for part in listing))  # a row in braces
        if not isinstance(listing, Listing) or index is None or not index.named_children:
            return [UNKNOWN]
        at = self.value(index.named_children[0], world)
        if isinstance(at, int):
            return [listing.values[at]] if 0 <= at < len(listing.values) else [UNKNOWN]
        return list(listing.values[:MAX_STATES])

    def _subscript(self, node: Node, world: World) -> Value | None:
        found = self._elements(node, world)
        return found[0] if len(found) == 1 else UNKNOWN

    def value(self, node: Node, world: World) -> Value:
        """The value of an expression, `UNKNOWN` where only the run knows."""
        kind = node.type
        if kind == k.PARENTHESIZED_EXPRESSION or kind == k.CONDITION_CLAUSE:
            node = plain(node) or node
            kind = node.type
        if kind == k.NUMBER_LITERAL:
            return number_of(node.text or b"")
        action = _EXPRESSIONS.get(kind)
        if action is not None:
            found = action(self, node, world)
            if found is not None:
                return found
        number = constants.evaluate(node, world.names(node))
        return UNKNOWN if number is None else number

    def _identifier(self, node: Node, world: World) -> Value | None:
        spelled = node.text or b""
        name = spelled.decode("utf-8", "replace")
        if name in world.state:
            return world.state[name]
        if world.function is not None and spelled in world.function.local and world.scope.bound(name) is None:
            return UNKNOWN
        number = constants.evaluate(node, world.names(node))
        if number is not None:
            return number
        functions = world.scope.functions(name)
        if functions:
            return KernelName(tuple(functions))
        return self._global(name, world)

    def _global(self, name: str, world: World) -> Value | None:
        """A global dim3 or variable that is initialised with constants and never assigned is not told apart from one that is."""
        variable = world.scope.variable(name)
        if variable is None or variable.init is None:
            return None
        text = variable.unit.text
        start, end = variable.node.start_byte, variable.node.end_byte
        for at in occurrences(text, name.encode()):
            if start <= at < end or text[at - 1 : at] in (b".", b">"):
                continue
            changed = _CHANGED.match(text, at + len(name.encode()))
            if changed is not None and not GIVEN.match(text, changed.end()):
                return UNKNOWN
        if len(self._globals) > 40 or name in self._globals:
            return UNKNOWN  # defined by itself
        self._globals.append(name)
        try:
            return self._initial(variable)
        finally:
            self._globals.pop()

    _globals: ClassVar[list[str]] = []
    """The variables that are being worked out."""

    def _initial(self, variable: GlobalVar) -> Value | None:
        if variable.init is None:
            return None
        place = World(variable.unit.scope, {})
        kind = variable.node.child_by_field_name(k.F_TYPE)
        if kind is not None and kind.text == b"dim3":
            parts = initializer_arguments(variable.init)
            return dim_of([self.value(p, place) for p in parts]) if parts else as_dim(self.value(variable.init, place))
        return self.value(variable.init, place)

    def _field(self, node: Node, world: World) -> Value | None:
        path = text_of(node).replace("->", ".").replace(" ", "")
        if path in world.state:
            return world.state[path]
        holder, member = node.child_by_field_name(k.F_ARGUMENT), node.child_by_field_name(k.F_FIELD)
        if holder is None or member is None:
            return UNKNOWN
        value = self.value(holder, world)
        if isinstance(value, Dim) and member.text in (b"x", b"y", b"z"):
            component: int | None = getattr(value, text_of(member))
            return UNKNOWN if component is None else component
        if isinstance(value, dict):
            found: Value = value.get(text_of(member), UNKNOWN)
            return found
        return None

    def _call(self, node: Node, world: World) -> Value | None:
        callee = node.child_by_field_name(k.F_FUNCTION)
        if callee is None:
            return UNKNOWN
        name = text_of(callee).rpartition("::")[2]
        if name in ("dim3", "make_uint3", "uint3"):
            parts = [self.value(a, world) for a in arguments_of(node)]
            return parts[0] if len(parts) == 1 and isinstance(parts[0], Dim) else dim_of(parts)
        if name in ("min", "max"):
            parts = [self.value(a, world) for a in arguments_of(node)]
            numbers = [p for p in parts if isinstance(p, (int, float))]
            return (min(numbers) if name == "min" else max(numbers)) if len(numbers) == len(parts) == 2 else UNKNOWN
        if name in _LIBRARY:
            return UNKNOWN
        found = self._inline(callee, node, world)
        if found is not None:
            return found
        known = all(isinstance(self.value(a, world), (int, float)) for a in arguments_of(node))
        return None if known and callee.type != k.FIELD_EXPRESSION else UNKNOWN

    def _functions(self, callee: Node, world: World) -> list[FunctionDef]:
        """The functions of the project that a plain name can call."""
        if callee.type != k.IDENTIFIER:
            return []
        name = text_of(callee)
        if name in _LIBRARY or name in _MATH or not name.isidentifier():
            return []
        unit = world.scope.unit
        key = (unit.path, world.scope.namespace, name)
        found = self._callable.get(key) if world.scope.record is None else None
        if found is None:
            found = world.scope.functions(name) if _may_define(unit, name) else []
            if world.scope.record is None:
                self._callable[key] = found
        return found

    def _inline(self, callee: Node, call: Node, world: World) -> Value | None:
        """What a small function of the project returns, if that is one value."""
        raise NotImplementedError

    def _binary(self, node: Node, world: World) -> Value | None:
        left, right = node.child_by_field_name(k.F_LEFT), node.child_by_field_name(k.F_RIGHT)
        operator = node.child_by_field_name(k.F_OPERATOR)
        if left is None or right is None or operator is None:
            return UNKNOWN
        return combine((operator.text or b"").decode(), self.value(left, world), self.value(right, world))

    def _unary(self, node: Node, world: World) -> Value | None:
        argument = node.child_by_field_name(k.F_ARGUMENT)
        value = self.value(argument, world) if argument is not None else UNKNOWN
        if not isinstance(value, (int, float)):
            return value if isinstance(value, KernelName) and (node.text or b"").startswith(b"&") else UNKNOWN
        return None

    def _cast(self, node: Node, world: World) -> Value | None:
        inner = node.child_by_field_name(k.F_VALUE)
        value = self.value(inner, world) if inner is not None else UNKNOWN
        return int(value) if isinstance(value, float) and value == int(value) else value

    def _template_function(self, node: Node, world: World) -> Value | None:
        name, listed = node.child_by_field_name(k.F_NAME), template_arguments(node)
        functions = world.scope.functions(text_of(name)) if name is not None else []
        explicit = resolve_template_arguments(listed, world.names(node)) if listed is not None else ()
        return KernelName(tuple(functions), explicit) if functions else None

    def _qualified(self, node: Node, world: World) -> Value | None:
        last = node
        while last.type == k.QUALIFIED_IDENTIFIER:
            inner = last.child_by_field_name(k.F_NAME)
            if inner is None:
                return None
            last = inner
        if last.type == k.TEMPLATE_FUNCTION:
            return self._template_function(last, world)
        functions = world.scope.functions(text_of(node)) or world.scope.functions(text_of(last))
        return KernelName(tuple(functions)) if functions else None

    def _conditional(self, node: Node, world: World) -> Value | None:
        found = self.alternatives(node, world)
        return found[0][0] if len(found) == 1 else UNKNOWN

    def _braces(self, node: Node, world: World) -> Value | None:
        """`dim3{32, 8}`."""
        kind, listed = node.child_by_field_name(k.F_TYPE), node.child_by_field_name(k.F_VALUE)
        parts = [self.value(p, world) for p in initializer_arguments(listed)] if listed is not None else []
        if kind is not None and kind.text == b"dim3":
            return dim_of(parts)
        return parts[0] if len(parts) == 1 else UNKNOWN

    def _list(self, node: Node, world: World) -> Value | None:
        return dim_of([self.value(p, world) for p in parts_of(node)])


def _may_define(unit: Unit, name: str) -> bool:
    """Whether a name in a file can mean a function of the project: a look at the indexes saves reading what includes the file."""
    if unit.preprocessed.is_macro_name(name):
        return False
    return any(name.encode() in other.defined_names for other in unit.closure) or bool(unit.program.defining_files(name))


def _misread(walk: HostValues, node: Node, world: World) -> Value | None:
    """An argument of `dim3 block(n[0], a * b)` that reads as the declaration of a parameter."""
    kind = node.child_by_field_name(k.F_TYPE)
    if kind is not None and node.named_child_count == 1:
        return walk.value(kind, world)
    expression, _, broken = parse_fragment(node.text or b"", "expression")
    at = node.start_byte if world.at is None else world.at
    return UNKNOWN if broken else walk.value(expression, World(world.scope, world.state, world.function, at))


_EXPRESSIONS: dict[str, Callable[[HostValues, Node, World], Value | None]] = {
    k.IDENTIFIER: HostValues._identifier,
    k.FIELD_EXPRESSION: HostValues._field,
    k.CALL_EXPRESSION: HostValues._call,
    k.BINARY_EXPRESSION: HostValues._binary,
    k.POINTER_EXPRESSION: HostValues._unary,
    k.UNARY_EXPRESSION: HostValues._unary,
    k.CAST_EXPRESSION: HostValues._cast,
    k.TEMPLATE_FUNCTION: HostValues._template_function,
    k.QUALIFIED_IDENTIFIER: HostValues._qualified,
    k.CONDITIONAL_EXPRESSION: HostValues._conditional,
    k.COMPOUND_LITERAL_EXPRESSION: HostValues._braces,
    k.INITIALIZER_LIST: HostValues._list,
    k.PARAMETER_DECLARATION: _misread,
    k.TYPE_IDENTIFIER: HostValues._identifier,
    k.SUBSCRIPT_EXPRESSION: HostValues._subscript,
}
