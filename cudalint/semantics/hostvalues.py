"""Values of host expressions: numbers, dim3 and structs, arrays, kernels, lambdas.

The evaluator runs in a `World`: what the source leaves open is a choice there.
Pointers are transparent (`&x` and `*p` are `x` and `p`), unknown is None, and
nothing raises except `Infeasible` (the choices contradict each other) and
`Undecided` (see `worlds`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar, Union

from cudalint.semantics.constants import evaluate
from cudalint.semantics.hostcode import Code, Event, arguments_of, callee_name, template_argument_list
from cudalint.semantics.hostindex import CallSite, HostIndex, Member
from cudalint.semantics.hostrecords import construct_record
from cudalint.semantics.hostflow import MISSING, Flow, Missing
from cudalint.semantics.hosttypes import HostTypes
from cudalint.semantics.ir import FunctionRef
from cudalint.semantics.scope import Scope, scope_of
from cudalint.semantics.types import Type
from cudalint.semantics.typing import bind, declare_local, resolve_template_arguments
from cudalint.semantics.worlds import Infeasible, Undecided, World, explore
from cudalint.syntax import kinds as k

if TYPE_CHECKING:
    from tree_sitter import Node

    from cudalint.semantics.program import Unit
    from cudalint.semantics.symbols import FunctionDef, GlobalVar

T = TypeVar("T")

MAX_CALLERS = 3
"""How many callers up a value is followed."""

MAX_CALLS = 4
"""How deep calls of project functions are evaluated."""

MAX_STEPS = 20_000
"""Expressions evaluated per world."""

MAX_DEPTH = 120
"""Nesting of evaluations, far below Python's recursion limit."""

MAX_ASSIGNMENTS = 8
"""Assignments of one global variable or member that become choices."""


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """A struct value as far as it is known; a member that is absent has the value `rest`."""

    fields: dict[str, HostValue] = field(default_factory=dict)
    rest: HostValue = None
    order: tuple[str, ...] = ()

    def get(self, name: str) -> HostValue:
        return self.fields.get(name, self.rest)

    def put(self, name: str, value: HostValue) -> Aggregate:
        return Aggregate({**self.fields, name: value}, self.rest, self.order)


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """An array, tuple or container with known elements."""

    values: tuple[HostValue, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Callee:
    """A name that means functions, with explicit template arguments; `node` and `context` are where it stands."""

    candidates: tuple[FunctionDef, ...]
    explicit: tuple[object, ...]
    node: Node
    context: Context


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A host lambda."""

    node: Node
    context: Context


HostValue = Union[int, float, str, Aggregate, Items, Callee, Closure, Type, FunctionRef, None]
Key = tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """How a frame was entered; `arguments` is None for an explicit instantiation."""

    arguments: tuple[Node, ...] | None
    explicit: Node | None
    receiver: Node | None
    node: Node
    context: Context


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One activation of a host function.

    key     tells activations apart: choices and constraints are kept under it
    call    how it was entered, None where that is for the world to choose
    height  how many callers have been chosen below it
    this    the object of a member function, where known
    given   the arguments, where they have been evaluated already
    """

    function: FunctionDef | None
    unit: Unit
    key: Key
    call: Call | None = None
    height: int = 0
    calls: int = 0
    this: HostValue = None
    given: tuple[HostValue, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """Where an expression stands: its tree and the activation it belongs to."""

    code: Code
    frame: Frame

    def within(self, code: Code) -> Context:
        return Context(code, self.frame)

    def tag(self, node: Node) -> Key:
        """Identifies a node of this code in this activation."""
        return (node.id, self.code.serial, self.frame.key)


_VECTORS = re.compile(r"^(?:dim3|u?int[1-4]|u?long[1-4]|u?short[1-4])$")
_COMPONENTS = ("x", "y", "z", "w")
_KNOWN_STRUCTS: dict[str, tuple[str, ...]] = {
    "cudaLaunchConfig_t": ("gridDim", "blockDim", "dynamicSmemBytes", "stream", "attrs", "numAttrs"),
}
_INTEGERS = re.compile(
    r"^(?:std::)?(?:(?:unsigned|signed|short|long|int|char)(?: (?:unsigned|signed|short|long|int|char))*"
    r"|u?int(?:8|16|32|64)?(?:_t)?|s?size_t|uchar|ushort|ulong|ptrdiff_t|u?intptr_t)$"
)
_FLOATS = frozenset({"float", "double"})
_LITERALS = frozenset({k.NUMBER_LITERAL, k.CHAR_LITERAL, k.TRUE, k.FALSE, k.NULL, k.ALIGNOF_EXPRESSION, k.OFFSETOF_EXPRESSION})
_IDENTIFIER = re.compile(rb"[A-Za-z_]\w*")
_LOCAL_TYPES = frozenset(
    {k.ALIAS_DECLARATION, k.TYPE_DEFINITION, k.USING_DECLARATION, k.STRUCT_SPECIFIER, k.ENUM_SPECIFIER, k.CLASS_SPECIFIER}
)
_READERS = re.compile(r"^(?:cudaLaunchKernelEx\w*|cudaMemcpy\w*|cudaOccupancyMaxActiveClusters|cudaFree\w*|printf|fprintf)$")
_PASS_THROUGH = frozenset({"move", "forward", "as_const", "ref", "cref", "addressof", "decay_copy", "launch_bounds"})
_TUPLES = frozenset({"make_tuple", "make_pair", "tuple", "pair", "tie", "array", "vector", "initializer_list", "forward_as_tuple"})
_LIMIT = 1 << 64


def dim3(*components: HostValue) -> Aggregate:
    """A dim3 value; components not given are 1."""
    values = [*components, 1, 1, 1][:3]
    return Aggregate(dict(zip(_COMPONENTS, values, strict=False)), None, _COMPONENTS[:3])


def as_dim3(value: HostValue) -> tuple[int | None, int | None, int | None] | None:
    """The components of a value that configures a launch; None if nothing is known of it."""
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, (int, float)):
        return (int(value), 1, 1)
    if isinstance(value, Items):
        parts: list[HostValue] = [*value.values, 1, 1, 1][:3]
    elif isinstance(value, Aggregate):
        parts = [value.get(name) for name in _COMPONENTS[:3]]
    else:
        return None
    x, y, z = (int(part) if isinstance(part, (int, float)) and math.isfinite(part) else None for part in parts)
    return None if x is None and y is None and z is None else (x, y, z)


class Evaluator:
    """Evaluates host expressions in one world."""

    def __init__(self, index: HostIndex, world: World) -> None:
        self.index = index
        self.world = world
        self.memo: dict[Key, HostValue | Literal[Missing.MISSING]] = {}
        self.flow = Flow(self)
        self.types = HostTypes(self)
        self.constraints: dict[tuple[Key, str], int] = {}
        self.assumptions: list[tuple[Node, Context, bool]] = []
        self._callers: dict[Key, Call | None] = {}
        self._bindings: dict[Key, dict[str, object]] = {}
        self._lambda_calls: dict[tuple[int, Key], tuple[tuple[Node, ...], Context]] = {}
        self._active: set[Key] = set()
        self._steps = 0
        self._depth = 0

    # ---------------------------------------------------------------- frames

    def root(self, function: FunctionDef | None, unit: Unit) -> Frame:
        """The activation of a function whose caller is open."""
        return Frame(function, unit, ("root", id(function) if function is not None else unit.path))

    def activation(self, function: FunctionDef, given: tuple[HostValue, ...]) -> Frame:
        """The activation of a function with known arguments."""
        return Frame(function, function.unit, ("given", id(function), *map(id, given)), given=given)

    def context_of(self, frame: Frame) -> Context:
        """The code of a frame's function."""
        return Context(self.index.code(frame.unit), frame)

    def file_context(self, unit: Unit) -> Context:
        """Where initialisers at namespace scope stand."""
        return Context(self.index.code(unit), self.root(None, unit))

    def caller(self, frame: Frame) -> Call | None:
        """How a frame is entered in this world; None where nothing in sight calls it."""
        if frame.call is not None or frame.function is None:
            return frame.call
        if frame.key in self._callers:
            return self._callers[frame.key]
        call: Call | None = None
        if frame.height < MAX_CALLERS:
            sites = self.index.calls(frame.function)
            if sites:
                number = self.world.choose(("caller", frame.key), len(sites))
                call = self._entered(sites[number], frame, number)
        self._callers[frame.key] = call
        return call

    def _entered(self, site: CallSite, frame: Frame, number: int) -> Call:
        outer = Frame(site.function, site.code.unit, (*frame.key, "caller", number), None, frame.height + 1)
        return Call(site.arguments, site.explicit, site.receiver, site.node, Context(site.code, outer))

    def bindings(self, frame: Frame) -> dict[str, object]:
        """The template arguments of a frame's function in this world, as far as known."""
        function = frame.function
        if function is None:
            return {}
        found = self._bindings.get(frame.key)
        if found is not None:
            return found
        self._bindings[frame.key] = {}  # what a recursive question sees
        try:
            found = self._bind(function, frame)
        except (Undecided, Infeasible):
            del self._bindings[frame.key]
            raise
        self._bindings[frame.key] = found
        return found

    def _bind(self, function: FunctionDef, frame: Frame) -> dict[str, object]:
        owner = self.index.owner_template(function)
        if not function.template and not owner:
            return {}
        call = self.caller(frame)
        if call is None:
            return {}
        bound: dict[str, object] = {}
        if owner:
            bound.update(self._owner_bindings(function, call))
        if not function.template:
            return bound
        explicit = self.template_arguments(call.explicit, call.context) if call.explicit is not None else ()
        if call.arguments is None:
            types: tuple[object, ...] = ()
            named = zip(function.template, explicit, strict=False)
            bound.update({param.name: value for param, value in named if value is not None and not param.pack})
            return bound
        types = tuple(self.types.argument(node, call.context) for node in call.arguments)
        # types of library containers may be misread, so that deduction contradicts itself
        found = bind(function, explicit, types) or bind(function, explicit, (None,) * len(types))  # type: ignore[arg-type]
        if found is None:
            raise Infeasible
        bound.update(found)
        return bound

    def _owner_bindings(self, function: FunctionDef, call: Call) -> dict[str, object]:
        record = None
        if call.receiver is not None:
            receiver = self.types.of(call.receiver, call.context)
            while receiver is not None and receiver.kind == "pointer" and receiver.element is not None:
                receiver = receiver.element
            record = getattr(receiver, "record", None)
        elif call.context.frame.function is not None and call.context.frame.function.owner is function.owner:
            return dict(self.bindings(call.context.frame))
        return dict(record.bindings) if record is not None else {}

    def scope(self, context: Context, node: Node) -> Scope:
        """The scope of the core evaluator at `node`, without local names."""
        frame = context.frame
        offset = context.code.offset(node)
        if frame.function is None:
            return context.code.unit.scope.at(offset)
        bound = {name: value for name, value in self.bindings(frame).items() if value is not None}
        return scope_of(frame.function, bound).at(offset)  # type: ignore[arg-type]

    def local_scope(self, node: Node, context: Context) -> Scope:
        """The scope at `node` with the local types there and the local values that its text names."""
        scope = self.scope(context, node).child()
        declared: set[str] = set()
        for statement, outer in self._local_types(node, context):
            self._declare_names(statement, outer, scope, declared)
            declare_local(statement, scope)
        self._declare_names(node, context, scope, declared)
        return scope

    def _declare_names(self, node: Node, context: Context, scope: Scope, declared: set[str]) -> None:
        text = context.code.text[node.start_byte : node.end_byte]
        for match in _IDENTIFIER.finditer(text):
            name = match.group().decode()
            if name in declared:
                continue
            declared.add(name)
            value = self.flow.local(name, node, context)
            if isinstance(value, Callee):
                value = self.function_ref(value)
            if isinstance(value, (int, float, Type, FunctionRef)):
                scope.declare(name, value)

    def _local_types(self, node: Node, context: Context) -> list[tuple[Node, Context]]:
        """Local type declarations before `node`, outermost first."""
        found: list[tuple[Node, Context]] = []
        code: Code = context.code
        current: Node = node
        while True:
            parent = code.parent(current)
            if parent is None or current.id == code.root.id:
                if code.outer is None:
                    break
                current, code = code.outer
                context = context.within(code)
                continue
            if parent.type in (k.COMPOUND_STATEMENT, k.CASE_STATEMENT):
                before = [c for c in code.children(parent) if c.type in _LOCAL_TYPES and c.start_byte < current.start_byte]
                found.extend((child, context) for child in reversed(before))
            current = parent
        return found[::-1]

    # ----------------------------------------------------------- conditions

    def settled(self, node: Node, context: Context) -> HostValue:
        """The value of an expression if no further choice is needed for it."""
        frozen = self.world.frozen
        self.world.frozen = True
        try:
            return self.value(node, context)
        except Undecided:
            return None
        finally:
            self.world.frozen = frozen

    def decide(self, condition: Node, context: Context) -> bool | None:
        """Whether a condition holds, None where that is open."""
        value = self.settled(condition, context)
        return bool(value) if isinstance(value, (int, float)) else None

    def assume(self, condition: Node, context: Context, holds: bool) -> None:
        """Note that this world has gone on as if the condition were true (or false)."""
        self.assumptions.append((condition, context, holds))

    def consistent(self) -> bool:
        """Whether no assumption turned out to be wrong and every call that was followed can happen."""
        if not all(self.decide(node, context) in (None, holds) for node, context, holds in self.assumptions):
            return False
        return all(call is None or self.reached(call.node, call.context) is not False for call in list(self._callers.values()))

    def alternatives(self, run: Callable[[], T], limit: int) -> list[T]:
        """The results of `run` under all further choices, none of which this world makes."""
        world, frozen = self.world, self.world.frozen
        state = (dict(self.memo), dict(self._callers), dict(self._bindings), list(self.assumptions))

        def inner(fork: World) -> T:
            self.world = fork
            try:
                return run()
            finally:
                self.memo, self._callers, self._bindings = dict(state[0]), dict(state[1]), dict(state[2])
                self.assumptions = list(state[3])

        try:
            return explore(inner, limit, world)
        finally:
            self.world = world
            self.world.frozen = frozen

    # ----------------------------------------------------------- expressions

    def value(self, node: Node, context: Context) -> HostValue:
        """The value of an expression."""
        self._steps += 1
        handler = _HANDLERS.get(node.type)
        if handler is None or self._steps > MAX_STEPS or self._depth > MAX_DEPTH:
            return None
        self._depth += 1
        try:
            return handler(self, node, context)
        finally:
            self._depth -= 1

    def _literal(self, node: Node, context: Context) -> HostValue:
        return evaluate(node, self.scope(context, node))

    def _string(self, node: Node, context: Context) -> HostValue:
        return context.code.words(node).strip('"')

    def _first(self, node: Node, context: Context) -> HostValue:
        inner = next((child for child in node.named_children if child.type != k.COMMENT), None)
        return self.value(inner, context) if inner is not None else None

    def _condition(self, node: Node, context: Context) -> HostValue:
        value = node.child_by_field_name(k.F_VALUE)
        return self.value(value, context) if value is not None else None

    def _comma(self, node: Node, context: Context) -> HostValue:
        right = node.child_by_field_name(k.F_RIGHT)
        return self.value(right, context) if right is not None else None

    def _unary(self, node: Node, context: Context) -> HostValue:
        operator, operand = node.child_by_field_name(k.F_OPERATOR), node.child_by_field_name(k.F_ARGUMENT)
        if operator is None or operand is None:
            return None
        value = self.value(operand, context)
        if not isinstance(value, (int, float)):
            return None
        return _unary_operation(operator.type, value)

    def _pointer(self, node: Node, context: Context) -> HostValue:
        operator, operand = node.child_by_field_name(k.F_OPERATOR), node.child_by_field_name(k.F_ARGUMENT)
        if operator is None or operand is None:
            return None
        value = self.value(operand, context)
        if operator.type == "*" and isinstance(value, Items):
            return value.values[0] if value.values else None
        return value

    def _binary(self, node: Node, context: Context) -> HostValue:
        operator = node.child_by_field_name(k.F_OPERATOR)
        left, right = node.child_by_field_name(k.F_LEFT), node.child_by_field_name(k.F_RIGHT)
        if operator is None or left is None or right is None:
            return None
        first = self.value(left, context)
        op = operator.type
        if op in ("&&", "and", "||", "or"):
            return self._logical(op in ("&&", "and"), first, right, context)
        if first is None:
            return None
        second = self.value(right, context)
        if isinstance(first, (int, float)) and isinstance(second, (int, float)):
            return binary_operation(op, first, second)
        return None

    def _logical(self, conjunction: bool, first: HostValue, right: Node, context: Context) -> HostValue:
        if isinstance(first, (int, float)) and bool(first) != conjunction:
            return int(not conjunction)
        second = self.value(right, context)
        if isinstance(second, (int, float)):
            if bool(second) != conjunction:
                return int(not conjunction)
            if isinstance(first, (int, float)):
                return int(conjunction)
        return None

    def _conditional(self, node: Node, context: Context) -> HostValue:
        condition = node.child_by_field_name(k.F_CONDITION)
        arms = [node.child_by_field_name(k.F_CONSEQUENCE), node.child_by_field_name(k.F_ALTERNATIVE)]
        if condition is None or arms[1] is None:
            return None
        holds = self.decide(condition, context)
        if holds is None:
            holds = self.world.choose(("?", *context.tag(node)), 2) == 0
            self.assume(condition, context, holds)
        chosen = arms[0 if holds else 1] or condition
        return self.value(chosen, context)

    def _cast(self, node: Node, context: Context) -> HostValue:
        target, operand = node.child_by_field_name(k.F_TYPE), node.child_by_field_name(k.F_VALUE)
        if target is None or operand is None:
            return None
        value = self.value(operand, context)
        if target.child_by_field_name(k.F_DECLARATOR) is not None:
            return value
        return self.convert(value, target, context)

    def _sizeof(self, node: Node, context: Context) -> HostValue:
        operand = node.child_by_field_name(k.F_VALUE) or node.child_by_field_name(k.F_TYPE)
        if operand is not None:
            size = self.types.size_of_operand(operand, context)
            if size is not None:
                return size
        return evaluate(node, self.local_scope(node, context))

    def _assignment(self, node: Node, context: Context) -> HostValue:
        right = node.child_by_field_name(k.F_RIGHT)
        return self.value(right, context) if right is not None else None

    def _initializer_list(self, node: Node, context: Context) -> HostValue:
        children = [child for child in node.named_children if child.type != k.COMMENT]
        if any(child.type == k.INITIALIZER_PAIR for child in children):
            return self._designated(children, context)
        return Items(tuple(self.value(child, context) for child in children))

    def _designated(self, children: Sequence[Node], context: Context) -> Aggregate:
        fields: dict[str, HostValue] = {}
        for child in children:
            designator, value = child.child_by_field_name(k.F_DESIGNATOR), child.child_by_field_name(k.F_VALUE)
            if designator is not None and value is not None:
                fields[context.code.words(designator).lstrip(".").strip()] = self.value(value, context)
        return Aggregate(fields, 0)

    def _compound_literal(self, node: Node, context: Context) -> HostValue:
        target, value = node.child_by_field_name(k.F_TYPE), node.child_by_field_name(k.F_VALUE)
        if target is None or value is None:
            return None
        if context.code.words(target).startswith(("std::integral_constant", "cuda::std::integral_constant", "Int<", "cute::Int<")):
            return self._integral_constant(target, context)
        return self.construct(target, self.value(value, context), context)

    def _integral_constant(self, target: Node, context: Context) -> HostValue:
        arguments = next((node for node in _walk(target) if node.type == k.TEMPLATE_ARGUMENT_LIST), None)
        values = self.template_arguments(arguments, context) if arguments is not None else ()
        last = values[-1] if values else None
        return last if isinstance(last, (int, float)) else None

    def _lambda(self, node: Node, context: Context) -> HostValue:
        return Closure(node, context)

    def _subscript(self, node: Node, context: Context) -> HostValue:
        argument, indices = node.child_by_field_name(k.F_ARGUMENT), node.child_by_field_name(k.F_INDICES)
        if argument is None or indices is None:
            return None
        value = self.value(argument, context)
        if not isinstance(value, Items) or not value.values:
            return None
        index = self._first(indices, context)
        return self._element(value, index, node, context)

    def _element(self, items: Items, index: HostValue, node: Node, context: Context) -> HostValue:
        if isinstance(index, int):
            return items.values[index] if 0 <= index < len(items.values) else None
        return items.values[self.world.choose(("index", *context.tag(node)), len(items.values))]

    def _field(self, node: Node, context: Context) -> HostValue:
        argument, name = node.child_by_field_name(k.F_ARGUMENT), node.child_by_field_name(k.F_FIELD)
        if argument is None or name is None:
            return None
        if name.type == k.TEMPLATE_METHOD:
            return self._functions(node, context, name)
        label = context.code.words(name)
        if argument.type == k.THIS:
            return self.named(label, node, context)
        value = self.value(argument, context)
        if isinstance(value, Aggregate):
            return value.get(label)
        if isinstance(value, (int, float)) and label in ("x", "value"):
            return value
        if isinstance(value, Items) and label in ("first", "second") and len(value.values) == 2:
            return value.values[label == "second"]
        return None

    def _this(self, node: Node, context: Context) -> HostValue:
        return context.frame.this

    # ----------------------------------------------------------------- names

    def _identifier(self, node: Node, context: Context) -> HostValue:
        return self.named(context.code.words(node), node, context)

    def named(self, name: str, node: Node, context: Context) -> HostValue:
        """The value of an unqualified name where `node` stands."""
        macro = context.code.unit.macro(name, context.code.offset(node))
        if macro is not None:
            return self._macro(name, macro.params is None, node, context)
        found = self.flow.local(name, node, context)
        if found is not MISSING:
            return self._constrained(name, found, context)
        value = self._non_local(name, node, context)
        return self._constrained(name, value, context)

    def _constrained(self, name: str, value: HostValue, context: Context) -> HostValue:
        constraint = self.constraints.get((context.frame.key, name))
        if constraint is None or self.flow.overridden(name, context.frame.key):
            return value
        if isinstance(value, (int, float)) and value != constraint:
            raise Infeasible
        return constraint if value is None else value

    def _macro(self, name: str, plain: bool, node: Node, context: Context) -> HostValue:
        if not plain:
            return None
        value = self.scope(context, node).value(name)
        if value is not None:
            return value
        code = self.index.expansion(context.code, node, None, "expression")
        return self.value(code.root, context.within(code)) if code is not None else None

    def _non_local(self, name: str, node: Node, context: Context) -> HostValue:
        frame = context.frame
        bound = self.bindings(frame).get(name)
        if isinstance(bound, (int, float, Type, FunctionRef)):
            return bound
        scope = self.scope(context, node)
        value = scope.value(name)
        if value is not None:
            return value
        if isinstance(frame.this, Aggregate) and name in frame.this.fields:
            return frame.this.fields[name]
        member = self._member(name, frame)
        if member is not MISSING:
            return member
        variable = scope.variable(name)
        if variable is not None:
            return self._global(variable)
        return self._functions(node, context, node)

    def _global(self, variable: GlobalVar) -> HostValue:
        """One of the values that a global variable gets anywhere in sight."""
        key = ("global", variable.unit.path, variable.qualified)
        if key in self._active:
            return None
        self._active.add(key)
        try:
            return self._written(key, variable.name, variable.init, variable.declarator, variable.unit, variable.is_const)
        finally:
            self._active.discard(key)

    def _written(
        self, key: Key, name: str, init: Node | None, declarator: Node, unit: Unit, constant: bool
    ) -> HostValue:
        writes = [] if constant else self.index.writes(name, unit)[:MAX_ASSIGNMENTS]
        context = Context(self.index.code(unit), self.root(None, unit))
        ways = len(writes) + (1 if init is not None or not writes else 0)
        way = self.world.choose(key, ways)
        if way < len(writes) and (init is None or way > 0 or ways == len(writes)):
            return self._write(writes[way - (1 if init is not None else 0)], name)
        if way > 0:
            return self._write(writes[way - 1], name)
        if init is None:
            return None
        event = Event("declare", declarator.start_byte, declarator)
        return self.initial(event, context)

    def _write(self, write: tuple[Code, FunctionDef, Event], name: str) -> HostValue:
        code, function, event = write
        context = Context(code, self.root(function, code.unit))
        if event.kind == "assign":
            return self.assigned(event.node, name, context)
        if event.kind == "out":
            found = self.handed_out(event, name, context)
            return None if found is MISSING else found
        return None

    def _member(self, name: str, frame: Frame) -> HostValue | Literal[Missing.MISSING]:
        """The value of a data member of the class that a member function belongs to."""
        owner = frame.function.owner if frame.function is not None else None
        if owner is None:
            return MISSING
        found = self.index.member(owner, name)
        if found is None:
            return MISSING
        key = ("member", id(owner), name)
        if key in self._active:
            return None
        self._active.add(key)
        try:
            return self._member_value(key, name, found)
        finally:
            self._active.discard(key)

    def _member_value(self, key: Key, name: str, found: Member) -> HostValue:
        ways: list[Callable[[], HostValue]] = []
        if found.default is not None:
            default, code = found.default, found.code
            ways.append(lambda: self.value(default, Context(code, self.root(None, code.unit))))
        for write in found.writes[:MAX_ASSIGNMENTS]:
            ways.append(lambda write=write: self._write(write, name))  # type: ignore[misc]
        for code, function, value in found.initialisers:
            ways.append(lambda c=code, f=function, v=value: self.value(v, Context(c, self.root(f, c.unit))))  # type: ignore[misc]
        if not ways:
            return None
        value = ways[self.world.choose(key, len(ways))]()
        return self.convert(value, found.type, Context(found.code, self.root(None, found.code.unit)))

    def _qualified(self, node: Node, context: Context) -> HostValue:
        scope_node = node.child_by_field_name(k.F_SCOPE)
        if scope_node is not None and scope_node.type == k.DECLTYPE:
            return self._first(scope_node, context)
        value = evaluate(node, self.local_scope(node, context))
        if value is not None:
            return value
        text = context.code.words(node)
        if "<" not in text:
            variable = self.scope(context, node).variable(text)
            if variable is not None:
                return self._global(variable)
        return self._functions(node, context, node)

    def _functions(self, node: Node, context: Context, name: Node) -> HostValue:
        """A name that means functions of the project."""
        candidates = self.index.functions(context.code.unit, callee_name(name, context.code))
        if not candidates:
            return None
        arguments = template_argument_list(name)
        explicit = self.template_arguments(arguments, context) if arguments is not None else ()
        return Callee(tuple(candidates), explicit, node, context)

    def _template_function(self, node: Node, context: Context) -> HostValue:
        label = callee_name(node, context.code)
        if label in ("static_cast", "reinterpret_cast", "const_cast", "dynamic_cast"):
            return None
        found = self._functions(node, context, node)
        if found is not None:
            return found
        return evaluate(node, self.local_scope(node, context))

    def template_arguments(self, arguments: Node, context: Context) -> tuple[object, ...]:
        """The values of a template argument list, None where unknown."""
        scope = self.local_scope(arguments, context)
        found = list(resolve_template_arguments(arguments, scope))
        nodes = [child for child in arguments.named_children if child.type != k.COMMENT]
        if len(nodes) == len(found):
            for position, child in enumerate(nodes):
                if found[position] is None or getattr(found[position], "kind", "") == "unknown":
                    found[position] = self._template_argument(child, context)  # type: ignore[call-overload]
        return tuple(found)

    def _template_argument(self, node: Node, context: Context) -> object:
        if node.type == k.TYPE_DESCRIPTOR:
            inner = node.child_by_field_name(k.F_TYPE)
            if inner is None or node.child_by_field_name(k.F_DECLARATOR) is not None:
                return None
            node = inner
        value = self.value(node, context)
        if isinstance(value, Callee):
            return self.function_ref(value)
        return value if isinstance(value, (int, float, Type, FunctionRef)) else None

    def function_ref(self, callee: Callee) -> FunctionRef | None:
        """The one function that a name can mean, with the template arguments given."""
        if len(callee.candidates) != 1:
            return None
        function = callee.candidates[0]
        pairs = zip(function.template, callee.explicit, strict=False)
        return FunctionRef(function, tuple((param.name, value) for param, value in pairs if value is not None))

    # ----------------------------------------------------------------- calls

    def _call(self, node: Node, context: Context) -> HostValue:
        callee, arguments = node.child_by_field_name(k.F_FUNCTION), arguments_of(node)
        if callee is None or any(child.type == k.KERNEL_CALL_SYNTAX for child in node.named_children):
            return None
        name = callee_name(callee, context.code)
        if callee.type == k.IDENTIFIER:
            macro = context.code.unit.macro(name, context.code.offset(node))
            if macro is not None and macro.params is not None:
                code = self.index.expansion(context.code, node, macro, "expression")
                return self.value(code.root, context.within(code)) if code is not None else None
        if callee.type == k.TEMPLATE_FUNCTION and name.endswith("_cast"):
            return self._named_cast(callee, arguments, context)
        if callee.type == k.FIELD_EXPRESSION:
            found = self._method(node, callee, name, arguments, context)
            if found is not MISSING:
                return found
        if callee.type == k.PRIMITIVE_TYPE or callee.type == k.SIZED_TYPE_SPECIFIER or _VECTORS.match(name):
            return self.construct(callee, Items(tuple(self.value(a, context) for a in arguments)), context)
        target = self.value(callee, context)
        if isinstance(target, Closure):
            return self._call_lambda(target, arguments, context)
        if isinstance(target, FunctionRef):
            return self._call_function([target.definition], node, arguments, context)  # type: ignore[list-item]
        if isinstance(target, Callee):
            bodies = [f for f in target.candidates if f.body is not None]
            if bodies:
                return self._call_function(bodies, node, arguments, context)
        if isinstance(target, (int, float)) and not arguments:
            return target
        return self._builtin(name, callee, arguments, context)

    def _named_cast(self, callee: Node, arguments: Sequence[Node], context: Context) -> HostValue:
        if len(arguments) != 1:
            return None
        value = self.value(arguments[0], context)
        target = template_argument_list(callee)
        descriptor = target.named_children[0] if target is not None and target.named_children else None
        if descriptor is None or descriptor.child_by_field_name(k.F_DECLARATOR) is not None:
            return value
        return self.convert(value, descriptor, context)

    def _method(
        self, node: Node, callee: Node, name: str, arguments: Sequence[Node], context: Context
    ) -> HostValue | Literal[Missing.MISSING]:
        receiver = callee.child_by_field_name(k.F_ARGUMENT)
        if receiver is None or receiver.type == k.THIS:
            return MISSING
        value = self.value(receiver, context)
        if isinstance(value, Items):
            if name in ("size", "length"):
                return len(value.values)
            if name == "at" and len(arguments) == 1:
                return self._element(value, self.value(arguments[0], context), node, context)
            if name in ("front", "back") and value.values:
                return value.values[0 if name == "front" else -1]
            return value if name in ("data", "begin") else None
        functions = [f for f in self.index.functions(context.code.unit, name) if f.owner is not None]
        methods = [f for f in functions if f.body is not None]
        if not methods:
            return None
        return self._call_function(methods, node, arguments, context, value)

    def _call_function(
        self,
        functions: Sequence[FunctionDef],
        node: Node,
        arguments: Sequence[Node],
        context: Context,
        this: HostValue = None,
    ) -> HostValue:
        if context.frame.calls >= MAX_CALLS:
            return None
        fitting = [f for f in functions if f.kind != "kernel" and self.index.accepts(f, len(arguments))]
        if not fitting:
            return None
        frame = self.enter(fitting[0], node, context, this)
        return self.result(frame)

    def enter(self, function: FunctionDef, node: Node, context: Context, this: HostValue = None) -> Frame:
        """The activation of a function by the call at `node`."""
        callee = node.child_by_field_name(k.F_FUNCTION)
        explicit = template_argument_list(callee) if callee is not None else None
        receiver = None
        if callee is not None and callee.type == k.FIELD_EXPRESSION:
            receiver = callee.child_by_field_name(k.F_ARGUMENT)
        call = Call(tuple(arguments_of(node)), explicit, receiver, node, context)
        key = (*context.frame.key, "call", node.id, context.code.serial)
        if this is None and function.owner is not None and context.frame.function is not None:
            this = context.frame.this if context.frame.function.owner is function.owner else None
        return Frame(function, function.unit, key, call, context.frame.height, context.frame.calls + 1, this)

    def result(self, frame: Frame) -> HostValue:
        """What a function returns."""
        function = frame.function
        if function is None or function.body is None:
            return None
        key = ("result", frame.key)
        if key in self._active:
            return None
        context = Context(self.index.code(function.unit), frame)
        self._active.add(key)
        try:
            ways = self._exits(function, context)
            chosen = ways[self.world.choose(("return", frame.key), len(ways))] if ways else None
            value = self._first(chosen, context) if chosen is not None else None
        finally:
            self._active.discard(key)
        kind = function.node.child_by_field_name(k.F_TYPE)
        return self.convert(value, kind, context) if kind is not None else value

    def reached(self, node: Node, context: Context) -> bool | None:
        """Whether the conditions around a statement hold; None where one of them is open."""
        outcome: bool | None = True
        code = context.code
        current: Node = node
        parent = code.parent(node)
        while parent is not None:
            if parent.type == k.IF_STATEMENT:
                holds = self._arm_taken(parent, current, context.within(code))
            elif parent.type == k.CASE_STATEMENT or parent.type in (k.FOR_STATEMENT, k.WHILE_STATEMENT, k.CATCH_CLAUSE):
                holds = None
            else:
                holds = True
            if holds is False:
                return False
            if holds is None:
                outcome = None
            if context.frame.function is not None and parent.id == context.frame.function.node.id:
                break
            current, parent = parent, code.parent(parent)
            if parent is None and code.outer is not None:
                parent, code = code.outer
        return outcome

    def _arm_taken(self, statement: Node, current: Node, context: Context) -> bool | None:
        condition = statement.child_by_field_name(k.F_CONDITION)
        if condition is None or condition.id == current.id:
            return True
        holds = self.decide(condition, context)
        alternative = statement.child_by_field_name(k.F_ALTERNATIVE)
        if holds is None:
            return None
        return holds if alternative is None or alternative.id != current.id else not holds

    def _call_lambda(self, closure: Closure, arguments: Sequence[Node], context: Context) -> HostValue:
        body = closure.node.child_by_field_name(k.F_BODY)
        if body is None or context.frame.calls >= MAX_CALLS:
            return None
        slot = (closure.node.id, closure.context.frame.key)
        if slot in self._lambda_calls:
            return None
        self._lambda_calls[slot] = (tuple(arguments), context)
        try:
            for child in reversed(closure.context.code.children(body)):
                if child.type == k.RETURN_STATEMENT:
                    return self._first(child, closure.context)
            return None
        finally:
            del self._lambda_calls[slot]

    def _builtin(self, name: str, callee: Node, arguments: Sequence[Node], context: Context) -> HostValue:
        if name in _PASS_THROUGH and len(arguments) == 1:
            return self.value(arguments[0], context)
        if name in _TUPLES or (name.startswith("make_") and _VECTORS.match(name[5:])):
            values = tuple(self.value(argument, context) for argument in arguments)
            return Items(values) if name in _TUPLES else Aggregate(dict(zip(_COMPONENTS, values, strict=False)))
        function = _FUNCTIONS.get(name)
        if function is not None:
            values = tuple(self.value(argument, context) for argument in arguments)
            numbers = [value for value in values if isinstance(value, (int, float))]
            return _apply(function, numbers) if len(numbers) == len(values) else None
        if name == "get" and len(arguments) == 1:
            return self._tuple_element(callee, arguments[0], context)
        return self.construct(callee, Items(tuple(self.value(a, context) for a in arguments)), context)

    def _tuple_element(self, callee: Node, argument: Node, context: Context) -> HostValue:
        indices = template_argument_list(callee)
        values = self.template_arguments(indices, context) if indices is not None else ()
        items = self.value(argument, context)
        if isinstance(items, Items) and values and isinstance(values[0], int) and 0 <= values[0] < len(items.values):
            return items.values[values[0]]
        return None

    # ------------------------------------------------------------ parameters

    def argument(self, frame: Frame, parameter: Node, parameters: Node, name: str) -> HostValue:
        """The value that a parameter has on entry."""
        nodes = [child for child in parameters.named_children if child.type != k.COMMENT]
        index = next((i for i, child in enumerate(nodes) if child.id == parameter.id), -1)
        if frame.given is not None:
            return frame.given[index] if 0 <= index < len(frame.given) else None
        call = self.caller(frame)
        if call is None or call.arguments is None or index < 0:
            return None
        key = ("argument", frame.key, index)
        if key in self._active:
            return None
        self._active.add(key)
        try:
            if index < len(call.arguments):
                value = self.value(call.arguments[index], call.context)
            else:
                default = parameter.child_by_field_name(k.F_DEFAULT_VALUE)
                value = self.value(default, Context(self.index.code(frame.unit), frame)) if default is not None else None
        finally:
            self._active.discard(key)
        target = parameter.child_by_field_name(k.F_TYPE)
        return self.convert(value, target, Context(self.index.code(frame.unit), frame)) if target is not None else value

    def lambda_argument(self, node: Node, parameter: Node, context: Context) -> HostValue:
        """The value of a lambda's parameter: that of the call being evaluated, or of one of the calls in sight."""
        declarator = node.child_by_field_name(k.F_DECLARATOR)
        parameters = declarator.child_by_field_name(k.F_PARAMETERS) if declarator is not None else None
        if parameters is None:
            return None
        nodes = [child for child in parameters.named_children if child.type != k.COMMENT]
        index = next((i for i, child in enumerate(nodes) if child.id == parameter.id), -1)
        entered = self._lambda_calls.get((node.id, context.frame.key)) or self._lambda_caller(node, context)
        if entered is None or not 0 <= index < len(entered[0]):
            return None
        value = self.value(entered[0][index], entered[1])
        target = parameter.child_by_field_name(k.F_TYPE)
        return self.convert(value, target, context) if target is not None else value

    def _lambda_caller(self, node: Node, context: Context) -> tuple[tuple[Node, ...], Context] | None:
        key = ("lambda", *context.tag(node))
        if key in self._active:
            return None
        self._active.add(key)
        try:
            calls = self._lambda_calls_in_sight(node, context)
            return calls[self.world.choose(key, len(calls))] if calls else None
        finally:
            self._active.discard(key)

    def _lambda_calls_in_sight(self, node: Node, context: Context) -> list[tuple[tuple[Node, ...], Context]]:
        code = context.code
        parent = code.parent(node)
        if parent is not None and parent.type == k.INIT_DECLARATOR:
            name = parent.child_by_field_name(k.F_DECLARATOR)
            region = self.index.region(code, node)
            if name is None or region is None:
                return []
            return [(tuple(arguments_of(call)), context) for call in self.index.local_calls(code, region, code.words(name))]
        if parent is not None and parent.type == k.ARGUMENT_LIST:
            return self._calls_through(node, parent, context)
        return []

    def _calls_through(self, node: Node, arguments: Node, context: Context) -> list[tuple[tuple[Node, ...], Context]]:
        """Calls of a lambda by the project function that it is handed to."""
        call = context.code.parent(arguments)
        callee = call.child_by_field_name(k.F_FUNCTION) if call is not None and call.type == k.CALL_EXPRESSION else None
        if call is None or callee is None:
            return []
        nodes = arguments_of(call)
        index = next((i for i, child in enumerate(nodes) if child.id == node.id), -1)
        found: list[tuple[tuple[Node, ...], Context]] = []
        for function in self.index.functions(context.code.unit, callee_name(callee, context.code)):
            name = self.index.parameter_name(function, index)
            if function.body is None or not name:
                continue
            inner = Context(self.index.code(function.unit), self.enter(function, call, context))
            found.extend((tuple(arguments_of(c)), inner) for c in self.index.local_calls(inner.code, function.body, name))
        return found

    # ---------------------------------------------------------------- writes

    def initial(self, event: Event, context: Context) -> HostValue | Literal[Missing.MISSING]:
        """The value that a declaration gives a variable."""
        node, code = event.node, context.code
        if node.type == k.FOR_RANGE_LOOP:
            return MISSING
        declaration = code.parent(node) if node.type != k.DECLARATION else node
        if declaration is None:
            return None
        target = declaration.child_by_field_name(k.F_TYPE)
        declarator = node.child_by_field_name(k.F_DECLARATOR) if node.type == k.INIT_DECLARATOR else node
        value = node.child_by_field_name(k.F_VALUE) or declaration.child_by_field_name(k.F_VALUE)
        if target is None or declarator is None:
            return None
        if value is None:
            return self._uninitialised(target, declarator, context, code)
        if declarator.type == k.STRUCTURED_BINDING_DECLARATOR:
            return self.binding(self.value(value, context), event)
        if declarator.type in (k.POINTER_DECLARATOR, k.FUNCTION_DECLARATOR):
            return self.value(value, context)
        if declarator.type == k.ARRAY_DECLARATOR:
            return self._array(target, value, context)
        if value.type == k.ARGUMENT_LIST:
            values = tuple(self.value(child, context) for child in value.named_children if child.type != k.COMMENT)
            return self.construct(target, Items(values), context)
        if value.type == k.INITIALIZER_LIST:
            return self.construct(target, self.value(value, context), context)
        return self.convert(self.value(value, context), target, context)

    def _array(self, target: Node, value: Node, context: Context) -> HostValue:
        return self._converted_items(self.value(value, context), target, context)

    def _converted_items(self, value: HostValue, target: Node, context: Context) -> HostValue:
        if not isinstance(value, Items):
            return self.convert(value, target, context)
        if _VECTORS.match(_type_words(target, context.code)) and not any(isinstance(v, (Items, Aggregate)) for v in value.values):
            return self.convert(value, target, context)
        return Items(tuple(self._converted_items(item, target, context) for item in value.values))

    def _uninitialised(self, target: Node, declarator: Node, context: Context, code: Code) -> HostValue:
        if declarator.type == k.FUNCTION_DECLARATOR:
            # `dim3 block(TX, TY);` reads as a function with unnamed parameters
            parameters = declarator.child_by_field_name(k.F_PARAMETERS)
            nodes = [child for child in parameters.named_children if child.type != k.COMMENT] if parameters is not None else []
            return self.construct(target, Items(tuple(self._misread(node, context) for node in nodes)), context)
        if declarator.type == k.IDENTIFIER:
            return self.construct(target, Items(()), context)
        return None

    def _misread(self, node: Node, context: Context) -> HostValue:
        """The value of an argument that was read as a parameter declaration."""
        kind = node.child_by_field_name(k.F_TYPE)
        if kind is not None and node.named_child_count == 1:
            return self.value(kind, context)
        code = self.index.reread(context.code, node)
        return self.value(code.root, context.within(code))

    def binding(self, value: HostValue, event: Event) -> HostValue:
        """What a declared name gets of a value: all of it, or one part in a structured binding."""
        declarator = event.node
        if declarator.type != k.STRUCTURED_BINDING_DECLARATOR:
            declarator = declarator.child_by_field_name(k.F_DECLARATOR) or declarator
        if declarator.type == k.REFERENCE_DECLARATOR and declarator.named_child_count:
            declarator = declarator.named_children[-1]
        if declarator.type != k.STRUCTURED_BINDING_DECLARATOR:
            return value
        if isinstance(value, Aggregate) and event.index < len(value.order):
            return value.get(value.order[event.index])
        if isinstance(value, Items) and event.index < len(value.values):
            return value.values[event.index]
        return None

    def assigned(self, node: Node, name: str, context: Context) -> HostValue:
        """The value of a variable after an assignment to it or to a part of it."""
        left, right = node.child_by_field_name(k.F_LEFT), node.child_by_field_name(k.F_RIGHT)
        operator = node.child_by_field_name(k.F_OPERATOR)
        if left is None or right is None or operator is None:
            return None
        value = self.value(right, context)
        if operator.type != "=":
            old = self.value(left, context)
            if not isinstance(old, (int, float)) or not isinstance(value, (int, float)):
                value = None
            else:
                value = binary_operation(operator.type[:-1], old, value)
        return self._stored(left, name, value, context)

    def updated(self, node: Node, name: str, context: Context) -> HostValue:
        """The value of a variable after `++` or `--`."""
        operand, operator = node.child_by_field_name(k.F_ARGUMENT), node.child_by_field_name(k.F_OPERATOR)
        if operand is None or operator is None:
            return None
        old = self.value(operand, context)
        value = old + (1 if operator.type == "++" else -1) if isinstance(old, (int, float)) else None
        return self._stored(operand, name, value, context)

    def _stored(self, target: Node, name: str, value: HostValue, context: Context) -> HostValue:
        """The whole variable once `target`, a part of it, holds `value`."""
        path = self._path(target, context)
        if path is None:
            return None
        if not path:
            return self.types.convert_to_declared(value, name, target, context)
        old = self.named(name, target, context)
        return _replace(old, path, value)

    def _path(self, target: Node, context: Context) -> list[str | int] | None:
        """The members and indices from a variable to a part of it, outermost first; None if an index is unknown."""
        path: list[str | int] = []
        node = target
        while node.type not in (k.IDENTIFIER, k.FIELD_IDENTIFIER):
            inner = node.child_by_field_name(k.F_ARGUMENT)
            if node.type == k.FIELD_EXPRESSION:
                name = node.child_by_field_name(k.F_FIELD)
                if inner is not None and inner.type == k.THIS:
                    break
                if name is None:
                    return None
                path.append(context.code.words(name))
            elif node.type == k.SUBSCRIPT_EXPRESSION:
                indices = node.child_by_field_name(k.F_INDICES)
                index = self._first(indices, context) if indices is not None else None
                if not isinstance(index, int):
                    return None
                path.append(index)
            elif node.type == k.PARENTHESIZED_EXPRESSION:
                inner = node.named_children[0] if node.named_children else None
            if inner is None:
                return None
            node = inner
        return path[::-1]

    def handed_out(self, event: Event, name: str, context: Context) -> HostValue | Literal[Missing.MISSING]:
        """The value of a variable after a call that got its address or a reference to it; MISSING if that cannot write it."""
        callee = event.node.child_by_field_name(k.F_FUNCTION)
        if callee is None:
            return MISSING
        label = callee_name(callee, context.code)
        functions = [f for f in self.index.functions(context.code.unit, label) if f.kind != "kernel"]
        arguments = arguments_of(event.node)
        fitting = [f for f in functions if self.index.accepts(f, len(arguments))]
        if not fitting:
            return None if event.address and not _READERS.match(label) else MISSING
        function = fitting[0]
        if not self.index.writes_parameter(function, event.index):
            return MISSING
        if function.body is None or context.frame.calls >= MAX_CALLS:
            return None
        parameter = self.index.parameter_name(function, event.index)
        key = ("out", event.index, *context.tag(event.node))
        if not parameter or key in self._active:
            return None
        self._active.add(key)
        try:
            return self._left_in(parameter, self.enter(function, event.node, context))
        finally:
            self._active.discard(key)

    def _left_in(self, parameter: str, frame: Frame) -> HostValue | Literal[Missing.MISSING]:
        """What a function leaves in a parameter at one of its exits."""
        function = frame.function
        assert function is not None and function.body is not None
        context = self.context_of(frame)
        exits = self._exits(function, context)
        if self._falls_off(function):
            exits.append(None)
        if not exits:
            return MISSING
        chosen = exits[self.world.choose(("return", frame.key), len(exits))]
        if chosen is None:
            return self.flow.exit_value(parameter, function.body, context)
        return self.flow.local(parameter, chosen, context)

    def _exits(self, function: FunctionDef, context: Context) -> list[Node | None]:
        """The return statements that can be reached."""
        ways: list[Node | None] = []
        for statement in self.index.returns(function):
            reached = self.reached(statement, context)
            if reached is not False:
                ways.append(statement)
            if reached:
                break
        return ways

    def _falls_off(self, function: FunctionDef) -> bool:
        kind = function.node.child_by_field_name(k.F_TYPE)
        return kind is not None and kind.text == b"void"

    # ----------------------------------------------------------- conversions

    def items(self, value: HostValue) -> tuple[HostValue, ...]:
        """The elements of a container value."""
        return value.values if isinstance(value, Items) else ()

    def convert(self, value: HostValue, target: Node, context: Context) -> HostValue:
        """A value converted to the type that `target` names."""
        if value is None or isinstance(value, (Callee, Closure, FunctionRef)):
            return value
        name = _type_words(target, context.code)
        if name == "auto":
            return value
        if _VECTORS.match(name):
            return _as_vector(name, value)
        if isinstance(value, (int, float)):
            return self._convert_number(value, name, target, context)
        if isinstance(value, Items):
            return self._construct_record(target, value, context)
        return value

    def _convert_number(self, value: int | float, name: str, target: Node, context: Context) -> HostValue:
        if _INTEGERS.match(name):
            return _to_int(value, name.startswith(("unsigned", "uint", "size_t", "std::size_t")))
        if name in _FLOATS:
            return float(value)
        if name == "bool":
            return int(bool(value))
        kind = self.types.resolve(target, context)
        if kind.kind in ("int", "uint"):
            return _to_int(value, kind.kind == "uint")
        if kind.kind == "bool":
            return int(bool(value))
        if kind.kind == "float":
            return float(value)
        if kind.name == "dim3":
            return dim3(value)
        return value

    def construct(self, target: Node, value: HostValue, context: Context) -> HostValue:
        """A value of the type that `target` names from constructor arguments or a braced list."""
        name = _type_words(target, context.code)
        if not isinstance(value, Items):
            return self.convert(value, target, context)
        values = value.values
        if _VECTORS.match(name):
            return _construct_vector(name, values)
        known = _KNOWN_STRUCTS.get(name.rpartition("::")[2])
        if known is not None:
            return self._launch_config(known, values)
        if _INTEGERS.match(name) or name in _FLOATS or name in ("bool", "auto"):
            return self.convert(values[0], target, context) if len(values) == 1 else (None if not values else value)
        return self._construct_record(target, value, context)

    def default_of(self, target: Node, context: Context) -> HostValue:
        """The value of a variable of the type that `target` names, declared without an initialiser."""
        return self.construct(target, Items(()), context)

    def _launch_config(self, names: tuple[str, ...], values: tuple[HostValue, ...]) -> Aggregate:
        fields: dict[str, HostValue] = {"gridDim": dim3(), "blockDim": dim3(), "dynamicSmemBytes": 0, "stream": 0}
        for name, value in zip(names, values, strict=False):
            fields[name] = _as_vector("dim3", value) if name.endswith("Dim") else value
        return Aggregate(fields, None, names)

    def _construct_record(self, target: Node, value: Items, context: Context) -> HostValue:
        kind = self.types.resolve(target, context)
        if kind.name == "dim3":
            return _construct_vector("dim3", value.values)
        if kind.kind in ("int", "uint", "float", "bool"):
            return self.convert(value.values[0], target, context) if len(value.values) == 1 else None
        if kind.kind != "struct":
            return value if value.values else None
        return construct_record(self, kind, value.values)


def _walk(node: Node) -> Iterable[Node]:
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(current.named_children))


def _replace(old: HostValue, path: Sequence[str | int], value: HostValue) -> HostValue:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        if isinstance(old, (int, float)):
            old = dim3(old)
        base = old if isinstance(old, Aggregate) else Aggregate()
        return base.put(step, _replace(base.get(step), rest, value))
    values = list(old.values) if isinstance(old, Items) else []
    if not 0 <= step < 256:
        return None
    values.extend([None] * (step + 1 - len(values)))
    values[step] = _replace(values[step], rest, value)
    return Items(tuple(values))


# --------------------------------------------------------------------- arithmetic


def _type_words(target: Node, code: Code) -> str:
    text = code.words(target)
    if target.type in (k.PLACEHOLDER_TYPE_SPECIFIER, k.AUTO):
        return "auto"
    return " ".join(word for word in text.replace("&", " ").split() if word not in ("const", "constexpr", "static", "typename"))


def _to_int(value: int | float, unsigned: bool) -> int | None:
    if not math.isfinite(value):
        return None
    number = int(value)
    return number & 0xFFFFFFFF if unsigned and number < 0 else number


def _as_vector(name: str, value: HostValue) -> HostValue:
    if isinstance(value, (int, float)):
        return dim3(_to_int(value, True)) if name == "dim3" else None
    if isinstance(value, Items):
        return _construct_vector(name, value.values)
    return value


def _construct_vector(name: str, values: Sequence[HostValue]) -> HostValue:
    if len(values) == 1 and isinstance(values[0], (Aggregate, Items)):
        return _as_vector(name, values[0])
    numbers = [_to_int(v, True) if isinstance(v, (int, float)) else None for v in values]
    if name == "dim3":
        return dim3(*numbers)
    if not values:
        return Aggregate({}, None, _COMPONENTS)
    return Aggregate(dict(zip(_COMPONENTS, numbers, strict=False)), 0, _COMPONENTS)


def _unary_operation(operator: str, value: int | float) -> int | float | None:
    if operator == "-":
        return -value
    if operator == "+":
        return value
    if operator in ("!", "not"):
        return int(not value)
    if operator in ("~", "compl") and isinstance(value, int):
        return ~value
    return None


_COMPARISONS: dict[str, Callable[[int | float, int | float], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}
_ARITHMETIC: dict[str, Callable[[int | float, int | float], int | float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}
_BITWISE: dict[str, Callable[[int, int], int]] = {
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}


def binary_operation(operator: str, left: int | float, right: int | float) -> int | float | None:
    """`left operator right` as C computes it; None where that is undefined or absurd."""
    if operator in _COMPARISONS:
        return int(_COMPARISONS[operator](left, right))
    if operator in _ARITHMETIC:
        result = _ARITHMETIC[operator](left, right)
        return result if abs(result) < _LIMIT else None
    if operator in ("/", "%"):
        return _divide(operator, left, right)
    if not isinstance(left, int) or not isinstance(right, int):
        return None
    if operator in _BITWISE:
        return _BITWISE[operator](left, right)
    if operator in ("<<", ">>") and 0 <= right < 64:
        result = left << right if operator == "<<" else left >> right
        return result if abs(result) < _LIMIT else None
    return None


def _divide(operator: str, left: int | float, right: int | float) -> int | float | None:
    if right == 0:
        return None
    if isinstance(left, float) or isinstance(right, float):
        return left / right if operator == "/" else None
    quotient = abs(left) // abs(right)
    if (left < 0) != (right < 0):
        quotient = -quotient
    return quotient if operator == "/" else left - quotient * right


def _apply(function: Callable[..., int | float], numbers: Sequence[int | float]) -> int | float | None:
    try:
        result = function(*numbers)
    except (ValueError, OverflowError, TypeError, ZeroDivisionError):
        return None
    return result if isinstance(result, (int, float)) and abs(result) < _LIMIT else None


_FUNCTIONS: dict[str, Callable[..., int | float]] = {
    "min": min,
    "max": max,
    "fmin": min,
    "fmax": max,
    "umin": min,
    "umax": max,
    "clamp": lambda v, low, high: max(low, min(v, high)),
    "abs": abs,
    "fabs": abs,
    "ceil": lambda v: float(math.ceil(v)),
    "ceilf": lambda v: float(math.ceil(v)),
    "floor": lambda v: float(math.floor(v)),
    "floorf": lambda v: float(math.floor(v)),
    "round": lambda v: float(round(v)),
    "sqrt": math.sqrt,
    "sqrtf": math.sqrt,
    "pow": lambda a, b: float(a) ** b,
    "powf": lambda a, b: float(a) ** b,
    "log2": math.log2,
    "log2f": math.log2,
    "exp2": lambda v: 2.0**v,
}


_HANDLERS: dict[str, Callable[[Evaluator, Node, Context], HostValue]] = {
    **dict.fromkeys(_LITERALS, Evaluator._literal),
    k.STRING_LITERAL: Evaluator._string,
    k.PARENTHESIZED_EXPRESSION: Evaluator._first,
    k.CONDITION_CLAUSE: Evaluator._condition,
    k.COMMA_EXPRESSION: Evaluator._comma,
    k.UNARY_EXPRESSION: Evaluator._unary,
    k.POINTER_EXPRESSION: Evaluator._pointer,
    k.BINARY_EXPRESSION: Evaluator._binary,
    k.CONDITIONAL_EXPRESSION: Evaluator._conditional,
    k.CAST_EXPRESSION: Evaluator._cast,
    k.SIZEOF_EXPRESSION: Evaluator._sizeof,
    k.ASSIGNMENT_EXPRESSION: Evaluator._assignment,
    k.INITIALIZER_LIST: Evaluator._initializer_list,
    k.COMPOUND_LITERAL_EXPRESSION: Evaluator._compound_literal,
    k.LAMBDA_EXPRESSION: Evaluator._lambda,
    k.SUBSCRIPT_EXPRESSION: Evaluator._subscript,
    k.FIELD_EXPRESSION: Evaluator._field,
    k.THIS: Evaluator._this,
    k.IDENTIFIER: Evaluator._identifier,
    k.TYPE_IDENTIFIER: Evaluator._identifier,
    k.FIELD_IDENTIFIER: Evaluator._identifier,
    k.QUALIFIED_IDENTIFIER: Evaluator._qualified,
    k.TEMPLATE_FUNCTION: Evaluator._template_function,
    k.CALL_EXPRESSION: Evaluator._call,
    k.EXPRESSION_STATEMENT: Evaluator._first,
}
