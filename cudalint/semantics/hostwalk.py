"""What host variables hold where a kernel is launched.

The statements of a host function that concern the launch are run in order, on a few
states at once: a condition that is not known splits a state in two, a loop with
known bounds is run value by value.  Parameters come from the callers.  What
the run alone knows is `UNKNOWN`; nothing here raises, and all of it is bounded by counts.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from cudalint.semantics import constants
from cudalint.semantics.hostslice import WORD, Changes, Slice
from cudalint.semantics.records import bind_params
from cudalint.semantics.scope import Scope, scope_of
from cudalint.semantics.symbols import FunctionDef, active_children, declarator_name, text_of
from cudalint.semantics.typing import (
    bind,
    declarations,
    declare_local,
    expression_type,
    initializer_arguments,
    parameters,
    resolve_template_arguments,
)
from cudalint.syntax import kinds as k
from cudalint.syntax.tree import parse_fragment

if TYPE_CHECKING:
    from tree_sitter import Node

    from cudalint.semantics.program import Program, Unit
    from cudalint.semantics.types import Type

MAX_STATES = 12
MAX_ITERATIONS = 12
MAX_CALLERS = 8
MAX_DEPTH = 3
MAX_INLINE = 2
MAX_STATEMENTS = 200
MAX_RUN = 2000


class Unknown:
    """The type of `UNKNOWN`."""

    def __repr__(self) -> str:
        return "?"


UNKNOWN = Unknown()


class Dim(NamedTuple):
    """A dim3; components that are not known are None."""

    x: int | None
    y: int | None = 1
    z: int | None = 1


@dataclass(frozen=True, slots=True)
class KernelName:
    """A function named as a value, with its explicit template arguments."""

    candidates: tuple[FunctionDef, ...]
    explicit: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """An array with the values of its elements."""

    values: tuple[object, ...]


Value = object
State = dict[str, Value]
Outcomes = tuple[tuple["World", "Node | None"], ...]


@dataclass(frozen=True, slots=True)
class World:
    """One way to get somewhere: template bindings of the function (in the scope) and what variables hold.

    at  where macros are looked up, for text that comes out of a macro; None: where the text stands
    """

    scope: Scope
    state: State
    at: int | None = None

    def names(self, node: Node) -> Scope:
        """The scope with the state's variables as local constants, as seen from a node."""
        scope = self.scope.child(local=self.state)
        scope.offset = node.start_byte if self.at is None else self.at
        return scope

    def holding(self, state: State) -> World:
        """The same place with other values."""
        return World(self.scope, state, self.at)


_GIVEN = re.compile(rb"[^;]*?\b(?:ato(?:i|l|ll|f)|strto\w+|sto(?:i|l|ll|ul|ull)|optarg|argv|getCmdLineArgument\w*)\b")
_RETURNED = re.compile(rb"\breturn\b[^;]*")
_ADDRESS = re.compile(rb"[(,]\s*(?:\([^()]*\)\s*)?&\s*([A-Za-z_]\w*)")
_LOOPS = (k.FOR_STATEMENT, k.WHILE_STATEMENT, k.DO_STATEMENT)


class _Progress:
    """How far a block has been run: `after[i]` are the states behind its first i statements."""

    __slots__ = ("after", "done", "statements")

    def __init__(self, statements: list[Node], worlds: list[World]) -> None:
        self.statements = statements
        self.after = [worlds]
        self.done = 0


class HostWalk:
    """Answers what an expression at a place in host code can be."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._entries: dict[tuple[int, Slice, int], list[World]] = {}
        self._changes: dict[FunctionDef, Changes] = {}
        self._heads: dict[FunctionDef, frozenset[bytes]] = {}
        self._progress: dict[tuple[int, Slice, tuple[int, ...]], _Progress] = {}
        self._exits: list[tuple[World, Node | None]] | None = None  # where returns are noted while a function is run
        self._outcomes_of: dict[tuple[object, ...], tuple[Outcomes, int]] = {}
        self._running = 0
        self._fuel = 0
        self._budget = 0

    # ------------------------------------------------------------- where

    def worlds_at(
        self, node: Node, function: FunctionDef | None, unit: Unit, wanted: Iterable[Node], depth: int = 0
    ) -> list[World]:
        """The states in which `node` can be reached, as far as they concern the names in `wanted`."""
        if function is None or function.body is None:
            return [World(unit.scope, {})]
        if depth == 0:
            self._budget = MAX_RUN
        names = self._slice(function, {w for part in wanted for w in WORD.findall(part.text or b"")})
        worlds = self._entry(function, names, depth)
        body = function.body
        for inner in _path(node, body):
            worlds = self._toward(inner, node, worlds, names)
            if not worlds:
                break
        return worlds[:MAX_STATES]

    def _slice(self, function: FunctionDef, names: set[bytes]) -> Slice:
        changes = self._changes.get(function)
        if changes is None:
            assert function.body is not None
            changes = self._changes[function] = Changes(function.body)
        found = changes.slice(names)
        head = self._heads.get(function)
        if head is None:
            text = function.unit.text[function.start : function.body.start_byte] if function.body is not None else b""
            head = self._heads[function] = frozenset(WORD.findall(text))
        # names that nothing here gives a value do not tell launches apart
        return Slice(frozenset(n for n in found.names if n in head or changes.has(n)), found.places)

    def _outcomes(self, function: FunctionDef, call: Node, world: World) -> Outcomes:
        """Run a function of the project on the arguments of a call: its exits, with the return statement taken."""
        if function.body is None or function.template or function.kind == "kernel" or self._running >= MAX_INLINE:
            return ()
        names = [p.name for p in parameters(function, scope_of(function))]
        given = [self.value(arg, world) for arg in arguments_of(call)[: len(names)]]
        given += [UNKNOWN] * (len(names) - len(given))
        state = dict(zip(names, given, strict=True))
        if not self._running:
            self._fuel = MAX_STATEMENTS
        key = (function, self._running, *((type(value), value) for value in given))
        try:
            known = self._outcomes_of.get(key)
        except TypeError:  # a launch configuration among the arguments
            return self._exits_of(function, state)
        if known is not None and known[1] <= self._fuel:
            self._fuel -= known[1]
            self._budget -= known[1]
            return known[0]
        fuel = self._fuel
        exits = self._exits_of(function, state)
        if self._fuel >= 0:
            self._outcomes_of[key] = exits, fuel - self._fuel
        return exits

    def _exits_of(self, function: FunctionDef, state: State) -> Outcomes:
        assert function.body is not None
        returned = {w for match in _RETURNED.finditer(function.body.text or b"") for w in WORD.findall(match.group())}
        names = self._slice(function, {name.encode() for name in state} | returned)
        outer, self._exits = self._exits, []
        self._running += 1
        try:
            ends = self._block(function.body, World(scope_of(function), state), names)
            return tuple([*self._exits, *((end, None) for end in ends)][:MAX_STATES]) if self._fuel >= 0 else ()
        finally:
            self._exits = outer
            self._running -= 1

    def _toward(self, around: Node, target: Node, worlds: list[World], names: Slice) -> list[World]:
        """From the start of a statement to the part of it that holds the target."""
        if around.type == k.COMPOUND_STATEMENT or around.type == k.CASE_STATEMENT:
            return self._up_to(around, target.start_byte, worlds, names)
        if around.type == k.FOR_STATEMENT:
            return self._iterations(around, worlds, names)
        if around.type == k.FOR_RANGE_LOOP:
            return self._elements_of(around, worlds)
        if around.type == k.IF_STATEMENT:
            return self._inside_if(around, target, worlds)
        return worlds

    def _up_to(self, block: Node, offset: int, worlds: list[World], names: Slice) -> list[World]:
        """The states behind the statements of a block that end before `offset`; launches of one block share the way."""
        key = (block.id, names, tuple(map(id, worlds)))
        progress = self._progress.get(key)
        if progress is None:
            progress = self._progress[key] = _Progress(active_children(block, worlds[0].scope.unit), worlds)
        while progress.done < len(progress.statements) and progress.statements[progress.done].end_byte <= offset:
            progress.after.append(self._run(progress.statements[progress.done], progress.after[-1], names))
            progress.done += 1
        reached = bisect_right([s.end_byte for s in progress.statements], offset)
        return progress.after[min(reached, progress.done)]

    def _inside_if(self, statement: Node, target: Node, worlds: list[World]) -> list[World]:
        then = statement.child_by_field_name(k.F_CONSEQUENCE)
        wanted = then is not None and then.start_byte <= target.start_byte < then.end_byte
        condition = statement.child_by_field_name(k.F_CONDITION)
        if condition is None or condition.start_byte <= target.start_byte < condition.end_byte:
            return worlds
        result = []
        for world in worlds:
            holds = self.value(condition, world)
            if isinstance(holds, (int, float)) and bool(holds) != wanted:
                continue
            result.append(self._assume(condition, world) if wanted else world)
        return result

    def _assume(self, condition: Node, world: World) -> World:
        """`if (n == 3)`: inside, n is 3."""
        node = _plain(condition)
        if node is None or node.type != k.BINARY_EXPRESSION or (node.child_by_field_name(k.F_OPERATOR) or node).text != b"==":
            return world
        left, right = node.child_by_field_name(k.F_LEFT), node.child_by_field_name(k.F_RIGHT)
        if left is None or right is None or left.type != k.IDENTIFIER:
            return world
        value = self.value(right, world)
        return world if value is UNKNOWN else world.holding({**world.state, text_of(left): value})

    # ------------------------------------------------------- function entry

    def _entry(self, function: FunctionDef, names: Slice, depth: int) -> list[World]:
        key = (id(function), names, depth)
        found = self._entries.get(key)
        if found is None:
            self._entries[key] = [World(scope_of(function), {})]
            # kept for others too: what it may cost must not depend on who asks first
            left, self._budget = self._budget, MAX_RUN
            found = self._entries[key] = self._entry_worlds(function, names, depth)
            self._budget = left
        return found

    def _entry_worlds(self, function: FunctionDef, names: Slice, depth: int) -> list[World]:
        template = [p.name for p in function.template if p.name.encode() in names.names]
        declared = parameters(function, scope_of(function))
        used = [p for p in declared if p.name.encode() in names.names]
        plain = World(scope_of(function), {p.name: UNKNOWN for p in used})
        if (not template and not used) or depth >= MAX_DEPTH:
            return [plain]
        worlds: list[World] = []
        for call, caller, unit in self._callers(function):
            worlds.extend(self._called(function, declared, used, call, caller, unit, depth))
            if len(worlds) >= MAX_STATES:
                break
        return _distinct(worlds) or [plain]

    def _callers(self, function: FunctionDef) -> Iterator[tuple[Node, FunctionDef | None, Unit]]:
        """Calls of a host function: in its file, then in the files that include it."""
        pattern = re.compile(rb"\b" + re.escape(function.name.encode()) + rb"\s*(?:<[^;{}()]*>)?\s*\(")
        count = 0
        for path in (function.path, *self.program.includers(function.path)):
            unit = self.program.unit(path)
            if unit is None:
                continue
            for match in pattern.finditer(unit.text):
                if function.start <= match.start() < function.header_end or not unit.is_active(match.start()):
                    continue
                call = _call_of(unit.root.descendant_for_byte_range(match.start(), match.start() + len(function.name)))
                if call is None:
                    continue
                count += 1
                if count > MAX_CALLERS:
                    return
                yield call, enclosing(unit, match.start()), unit

    def _called(
        self,
        function: FunctionDef,
        declared: Iterable[object],
        used: Iterable[object],
        call: Node,
        caller: FunctionDef | None,
        unit: Unit,
        depth: int,
    ) -> Iterator[World]:
        """The entry states that one call gives."""
        args = arguments_of(call)
        callee = call.child_by_field_name(k.F_FUNCTION)
        listed = template_arguments(callee)
        for world in self.worlds_at(call, caller, unit, [*args, *([listed] if listed is not None else [])], depth + 1):
            explicit = resolve_template_arguments(listed, world.names(listed)) if listed is not None else ()
            types: list[Type | None] = [None] * len(args)
            if len(explicit) < len(function.template):
                types = argument_types(args, world, call, caller)
            bound = dict(bind(function, explicit, types) or bind(function, explicit, [None] * len(args)) or {})
            if not bound and function.template:
                bound = dict(bind_params(function.template, explicit, scope_of(function)))
            state: State = {}
            for param, node in zip(declared, [*args, *[None] * 64], strict=False):
                if param in used:
                    given = node if node is not None else param.init  # type: ignore[attr-defined]
                    state[param.name] = self.value(given, world) if given is not None else UNKNOWN  # type: ignore[attr-defined]
            yield World(scope_of(function, {n: x for n, x in bound.items() if x is not None}), state)

    # -------------------------------------------------------------- statements

    def _run(self, statement: Node, worlds: list[World], names: Slice) -> list[World]:
        """All states after a statement."""
        action = _STATEMENTS.get(statement.type)
        if action is None or not worlds:
            return worlds
        if not names.touches(statement) and (self._exits is None or b"return" not in (statement.text or b"")):
            return worlds
        self._budget -= len(worlds)
        if self._running:
            self._fuel -= len(worlds)
            if self._fuel < 0:
                return []
        result: list[World] = []
        for world in worlds:
            result.extend(action(self, statement, world, names))
        return _distinct(result)

    def _block(self, node: Node, world: World, names: Slice) -> list[World]:
        worlds = [world]
        for statement in active_children(node, world.scope.unit):
            if statement.type == k.RETURN_STATEMENT and self._exits is not None:
                self._exits.extend((end, statement) for end in worlds)
                return []
            if self._exits is not None and statement.type == k.EXPRESSION_STATEMENT and _leaves(statement):
                return []
            worlds = self._run(statement, worlds, names)
        return worlds

    def _inner_block(self, node: Node, world: World, names: Slice) -> list[World]:
        """What a block declares is forgotten after it."""
        own = {text_of(name) for name in _declared_in(node)}
        kept = {name: value for name, value in world.state.items() if name in own}
        return [end.holding({**end.state, **kept}) if kept else end for end in self._block(node, world, names)]

    def _declaration(self, node: Node, world: World, names: Slice) -> list[World]:
        kind = node.child_by_field_name(k.F_TYPE)
        is_dim = kind is not None and kind.text is not None and kind.text.split(b"::")[-1] == b"dim3"
        worlds = [world]
        for declarator in node.children_by_field_name(k.F_DECLARATOR):
            name = declarator_name(declarator)
            init = declarator.child_by_field_name(k.F_VALUE)
            if init is not None and init.type == k.CALL_EXPRESSION:
                worlds = [w for old in worlds for w in self._call_effect(init, old)]
            if name is None or (name.text or b"") not in names.names:
                continue
            variable = text_of(name)
            if init is None and declarator.type == k.FUNCTION_DECLARATOR and is_dim:
                init = declarator.child_by_field_name(k.F_PARAMETERS)  # dim3 block(N, M) reads as a function
            inner = declarator.child_by_field_name(k.F_DECLARATOR)
            is_array = k.ARRAY_DECLARATOR in (declarator.type, inner.type if inner is not None else "")
            worlds = [w for old in worlds for w in self._initialised(variable, init, is_dim, is_array, old)]
        return worlds

    def _initialised(self, variable: str, init: Node | None, is_dim: bool, is_array: bool, world: World) -> Iterator[World]:
        if init is None:
            yield self._set(world, variable, Dim(1) if is_dim else UNKNOWN)
            return
        if init.type in (k.ARGUMENT_LIST, k.INITIALIZER_LIST, k.PARAMETER_LIST):
            listed = [] if init.type == k.PARAMETER_LIST else initializer_arguments(init)
            parts = [self.value(n, world) for n in listed or _parts(init)]
            if is_dim:
                first = parts[0] if len(parts) == 1 else None
                yield self._set(world, variable, first if isinstance(first, Dim) else _dim(parts))
            elif is_array:
                yield self._set(world, variable, Listing(tuple(parts)))
            else:
                yield self._set(world, variable, parts[0] if len(parts) == 1 else _aggregate(init, parts))
            return
        for value, after in self.alternatives(init, world):
            yield self._set(after, variable, _as_dim(value) if is_dim else value)

    def _set(self, world: World, name: str, value: Value) -> World:
        state = {key: x for key, x in world.state.items() if not key.startswith(name + ".")}
        state[name] = UNKNOWN if value is None else value
        return world.holding(state)

    def _alias(self, node: Node, world: World, names: Slice) -> list[World]:
        """`using Traits = …;` in a body: a type among the values."""
        state = dict(world.state)
        declare_local(node, World(world.scope, state, world.at).names(node))
        return [world.holding(state)]

    def _expression(self, node: Node, world: World, names: Slice) -> list[World]:
        worlds = [world]
        for child in node.named_children:
            worlds = [w for old in worlds for w in self._effect(child, old)]
        return worlds

    def _effect(self, node: Node, world: World) -> list[World]:
        """What evaluating an expression changes."""
        if node.type == k.ASSIGNMENT_EXPRESSION:
            return self._assignment(node, world)
        if node.type == k.UPDATE_EXPRESSION:
            target = node.child_by_field_name(k.F_ARGUMENT)
            old = self.value(target, world) if target is not None else UNKNOWN
            step = 1 if b"++" in (node.text or b"") else -1
            return [self._store(world, target, old + step if isinstance(old, int) else UNKNOWN)]
        if node.type == k.COMMA_EXPRESSION:
            worlds = [world]
            for child in node.named_children:
                worlds = [w for old in worlds for w in self._effect(child, old)]
            return worlds
        if node.type == k.CALL_EXPRESSION:
            return self._call_effect(node, world)
        return [world]

    def _assignment(self, node: Node, world: World) -> list[World]:
        left, right = node.child_by_field_name(k.F_LEFT), node.child_by_field_name(k.F_RIGHT)
        operator = (node.child_by_field_name(k.F_OPERATOR) or node).text
        if left is None or right is None:
            return [world]
        if operator != b"=":
            op = (operator or b"").decode()[:-1]
            return [self._store(world, left, _combine(op, self.value(left, world), self.value(right, world)))]
        if right.type == k.ASSIGNMENT_EXPRESSION:
            worlds = self._assignment(right, world)
            inner = right.child_by_field_name(k.F_LEFT)
            return [self._store(w, left, self.value(inner, w) if inner is not None else UNKNOWN) for w in worlds]
        return [self._store(after, left, value) for value, after in self.alternatives(right, world)]

    def _store(self, world: World, target: Node | None, value: Value) -> World:
        """The state after storing to a variable or a member of one."""
        if target is None:
            return world
        if target.type == k.IDENTIFIER:
            name = text_of(target)
            if isinstance(world.state.get(name), Dim):
                value = _as_dim(value)
            return self._set(world, name, value)
        if target.type == k.FIELD_EXPRESSION:
            holder, member = target.child_by_field_name(k.F_ARGUMENT), target.child_by_field_name(k.F_FIELD)
            if holder is None or member is None:
                return world
            old = self.value(holder, world)
            if isinstance(old, Dim) and member.text in (b"x", b"y", b"z") and holder.type == k.IDENTIFIER:
                changed = old._replace(**{text_of(member): value if isinstance(value, int) else None})
                return self._set(world, text_of(holder), changed)
            path = text_of(target).replace("->", ".")
            if member.text in (b"blockDim", b"gridDim"):
                value = _as_dim(value)
            inner = path.rsplit(".", 1)
            whole = world.state.get(inner[0], Dim(1) if inner[0].endswith((".blockDim", ".gridDim")) else None)
            if isinstance(whole, Dim) and inner[1] in ("x", "y", "z"):
                dim = whole._replace(**{inner[1]: value if isinstance(value, int) else None})
                return world.holding({**world.state, inner[0]: dim})
            return world.holding({**world.state, path: UNKNOWN if value is None else value})
        return world

    def _call_effect(self, node: Node, world: World) -> list[World]:
        """A call may change what it is handed by address, or by reference if it is a function of the project."""
        state = world.state
        callee = node.child_by_field_name(k.F_FUNCTION)
        known = world.scope.functions(text_of(callee)) if callee is not None and callee.type == k.IDENTIFIER else []
        written = {name.decode(): UNKNOWN for name in _ADDRESS.findall(node.text or b"")}
        handed: dict[str, str] = {}
        if known:
            declared = parameters(known[0], scope_of(known[0]))
            pairs = zip(declared, arguments_of(node), strict=False)
            handed = {text_of(arg): p.name for p, arg in pairs if p.reference and not p.const and text_of(arg) in state}
        ends = self._outcomes(known[0], node, world) if handed else []
        states = [{outside: end.state.get(inside, UNKNOWN) for outside, inside in handed.items()} for end, _ in ends]
        result = []
        for out in states or [dict.fromkeys(handed, UNKNOWN)]:
            changed = {n: x for n, x in {**written, **out}.items() if n in state and not isinstance(state[n], KernelName)}
            result.append(world.holding({**state, **changed}))
        return result

    def _if(self, node: Node, world: World, names: Slice) -> list[World]:
        condition = node.child_by_field_name(k.F_CONDITION)
        then, other = node.child_by_field_name(k.F_CONSEQUENCE), node.child_by_field_name(k.F_ALTERNATIVE)
        holds = self.value(condition, world) if condition is not None else UNKNOWN
        result: list[World] = []
        if not isinstance(holds, (int, float)) or holds:
            taken = self._assume(condition, world) if condition is not None else world
            result.extend(self._arm(then, taken, names))
        if not isinstance(holds, (int, float)) or not holds:
            result.extend(self._arm(other, world, names))
        return result

    def _arm(self, node: Node | None, world: World, names: Slice) -> list[World]:
        if node is None:
            return [world]
        if _leaves(node):
            if self._exits is not None:
                self._run(node, [world], names)
                if node.type == k.RETURN_STATEMENT:
                    self._exits.append((world, node))
            return []
        if node.type == k.ELSE_CLAUSE:
            worlds = [world]
            for child in node.named_children:
                worlds = self._run(child, worlds, names)
            return worlds
        return self._run(node, [world], names)

    def _switch(self, node: Node, world: World, names: Slice) -> list[World]:
        body = node.child_by_field_name(k.F_BODY)
        if body is None:
            return [world]
        result: list[World] = []
        condition = node.child_by_field_name(k.F_CONDITION)
        chosen = self.value(condition, world) if condition is not None else UNKNOWN
        for case in active_children(body, world.scope.unit):
            label = case.child_by_field_name(k.F_VALUE)
            value = self.value(label, world) if label is not None else UNKNOWN
            if isinstance(chosen, int) and isinstance(value, int) and value != chosen:
                continue
            worlds = [world]
            for statement in case.named_children:
                worlds = self._run(statement, worlds, names)
            result.extend(worlds)
        return result or [world]

    def _loop(self, node: Node, world: World, names: Slice) -> list[World]:
        """After a loop: run it while its condition is known, else forget what it changes."""
        worlds = [world]
        init = node.child_by_field_name(k.F_INITIALIZER)
        if init is not None:
            worlds = self._run(init, worlds, names) if init.type == k.DECLARATION else self._effect(init, world)
        body, condition, step = (node.child_by_field_name(f) for f in (k.F_BODY, k.F_CONDITION, k.F_UPDATE))
        state = worlds[0] if worlds else world
        for _ in range(MAX_ITERATIONS * 4):
            holds = self.value(condition, state) if condition is not None else UNKNOWN
            if not isinstance(holds, (int, float)) or self._budget < 0:
                break
            if not holds:
                return [state]
            after = self._run(body, [state], names) if body is not None else [state]
            state = after[0] if after else state
            state = self._effect(step, state)[0] if step is not None else state
        if self._exits is not None and body is not None:
            self._run(body, worlds, names)  # it may return
        text = node.text or b""
        changed = {key: UNKNOWN for key in state.state if key.encode() in text and _is_assigned(text, key)}
        return [world.holding({**world.state, **changed})]

    def _iterations(self, node: Node, worlds: list[World], names: Slice) -> list[World]:
        """The states at the start of the iterations of a loop that holds the launch."""
        result: list[World] = []
        init, condition, step = (node.child_by_field_name(f) for f in (k.F_INITIALIZER, k.F_CONDITION, k.F_UPDATE))
        body = node.child_by_field_name(k.F_BODY)
        for world in worlds:
            state = world
            if init is not None:
                started = self._run(init, [world], names) if init.type == k.DECLARATION else self._effect(init, world)
                state = started[0] if started else world
            for _ in range(MAX_ITERATIONS):
                holds = self.value(condition, state) if condition is not None else UNKNOWN
                if isinstance(holds, (int, float)) and not holds:
                    break
                if not isinstance(holds, (int, float)):
                    moving = {name: UNKNOWN for name in state.state if step is not None and name in text_of(step)}
                    result.append(state.holding({**state.state, **moving}) if condition is not None else state)
                    break
                result.append(state)
                after = self._run(body, [state], names) if body is not None and names.touches(body) else [state]
                state = self._effect(step, after[0] if after else state)[0] if step is not None else state
        return _distinct(result) or worlds

    def _elements_of(self, node: Node, worlds: list[World]) -> list[World]:
        """The states in the iterations of `for (int n : {64, 128})`."""
        declarator, right = node.child_by_field_name(k.F_DECLARATOR), node.child_by_field_name(k.F_RIGHT)
        name = declarator_name(declarator) if declarator is not None else None
        if right is None or name is None:
            return worlds
        result: list[World] = []
        for world in worlds:
            if right.type == k.INITIALIZER_LIST:
                values = tuple(self.value(part, world) for part in _parts(right))
            else:
                held = self.value(right, world)
                values = held.values if isinstance(held, Listing) else (UNKNOWN,)
            result.extend(self._set(world, text_of(name), value) for value in values[:MAX_ITERATIONS])
        return _distinct(result)

    # ------------------------------------------------------------- expressions

    def alternatives(self, node: Node, world: World) -> list[tuple[Value, World]]:
        """The values an expression can have; a ternary whose condition is unknown has both."""
        node = _plain(node) or node
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
        node = _plain(node) or node
        action = _EXPRESSIONS.get(node.type)
        if action is not None:
            found = action(self, node, world)
            if found is not None:
                return found
        number = constants.evaluate(node, world.names(node))
        return UNKNOWN if number is None else number

    def _identifier(self, node: Node, world: World) -> Value | None:
        name = text_of(node)
        if name in world.state:
            return world.state[name]
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
        assigned = re.compile(rb"(?<![\w.>])" + re.escape(name.encode()) + rb"\s*(?:\.\s*[xyz]\s*)?(?:[-+*/]?=(?!=)|\+\+|--)")
        start, end = variable.node.start_byte, variable.node.end_byte
        if any(not start <= match.start() < end and not _is_given(text, match) for match in assigned.finditer(text)):
            return UNKNOWN
        place = World(variable.unit.scope, {})
        kind = variable.node.child_by_field_name(k.F_TYPE)
        if kind is not None and kind.text == b"dim3":
            parts = initializer_arguments(variable.init)
            return _dim([self.value(p, place) for p in parts]) if parts else _as_dim(self.value(variable.init, place))
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
            return parts[0] if len(parts) == 1 and isinstance(parts[0], Dim) else _dim(parts)
        if name in ("min", "max"):
            parts = [self.value(a, world) for a in arguments_of(node)]
            numbers = [p for p in parts if isinstance(p, (int, float))]
            return (min(numbers) if name == "min" else max(numbers)) if len(numbers) == len(parts) == 2 else UNKNOWN
        found = self._inline(callee, node, world)
        if found is not None:
            return found
        known = all(isinstance(self.value(a, world), (int, float)) for a in arguments_of(node))
        return None if known and callee.type != k.FIELD_EXPRESSION else UNKNOWN

    def _inline(self, callee: Node, call: Node, world: World) -> Value | None:
        """What a small function of the project returns, if that is one value."""
        functions = world.scope.functions(text_of(callee)) if callee.type == k.IDENTIFIER else []
        if len(functions) != 1 or functions[0].kind == "device":
            return None
        found: list[Value] = []
        outcomes = self._outcomes(functions[0], call, world)
        self._running += 1
        for end, statement in outcomes:
            returned = statement.named_children[0] if statement is not None and statement.named_child_count else None
            value = self.value(returned, end) if returned is not None else UNKNOWN
            if value not in found:
                found.append(value)
        self._running -= 1
        return found[0] if len(found) == 1 else UNKNOWN if found else None

    def _binary(self, node: Node, world: World) -> Value | None:
        left, right = node.child_by_field_name(k.F_LEFT), node.child_by_field_name(k.F_RIGHT)
        operator = node.child_by_field_name(k.F_OPERATOR)
        if left is None or right is None or operator is None:
            return UNKNOWN
        return _combine((operator.text or b"").decode(), self.value(left, world), self.value(right, world))

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
            return _dim(parts)
        return parts[0] if len(parts) == 1 else UNKNOWN

    def _list(self, node: Node, world: World) -> Value | None:
        return _dim([self.value(p, world) for p in _parts(node)])


def _misread(walk: HostWalk, node: Node, world: World) -> Value | None:
    """An argument of `dim3 block(n[0], a * b)` that reads as the declaration of a parameter."""
    kind = node.child_by_field_name(k.F_TYPE)
    if kind is not None and node.named_child_count == 1:
        return walk.value(kind, world)
    expression, _, broken = parse_fragment(node.text or b"", "expression")
    at = node.start_byte if world.at is None else world.at
    return UNKNOWN if broken else walk.value(expression, World(world.scope, world.state, at))


_STATEMENTS: dict[str, Callable[[HostWalk, Node, World, Slice], list[World]]] = {
    k.COMPOUND_STATEMENT: HostWalk._inner_block,
    k.DECLARATION: HostWalk._declaration,
    **dict.fromkeys((k.ALIAS_DECLARATION, k.TYPE_DEFINITION), HostWalk._alias),
    k.EXPRESSION_STATEMENT: HostWalk._expression,
    k.IF_STATEMENT: HostWalk._if,
    k.SWITCH_STATEMENT: HostWalk._switch,
    **dict.fromkeys(_LOOPS, HostWalk._loop),
}
_EXPRESSIONS: dict[str, Callable[[HostWalk, Node, World], Value | None]] = {
    k.IDENTIFIER: HostWalk._identifier,
    k.FIELD_EXPRESSION: HostWalk._field,
    k.CALL_EXPRESSION: HostWalk._call,
    k.BINARY_EXPRESSION: HostWalk._binary,
    k.POINTER_EXPRESSION: HostWalk._unary,
    k.UNARY_EXPRESSION: HostWalk._unary,
    k.CAST_EXPRESSION: HostWalk._cast,
    k.TEMPLATE_FUNCTION: HostWalk._template_function,
    k.QUALIFIED_IDENTIFIER: HostWalk._qualified,
    k.CONDITIONAL_EXPRESSION: HostWalk._conditional,
    k.COMPOUND_LITERAL_EXPRESSION: HostWalk._braces,
    k.INITIALIZER_LIST: HostWalk._list,
    k.PARAMETER_DECLARATION: _misread,
    k.TYPE_IDENTIFIER: HostWalk._identifier,
    k.SUBSCRIPT_EXPRESSION: HostWalk._subscript,
}


# --------------------------------------------------------------------- helpers


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
        scope = world.names(node)
        scope.variable_type = lambda name: _local_type(name, anchor, function, world.scope)
        found = expression_type(node, scope)
        result.append(None if found.kind == "unknown" else found)
    return result


def _local_type(name: str, anchor: Node, function: FunctionDef | None, scope: Scope) -> Type | None:
    """The type of a variable declared before the anchor in its function, or of a parameter."""
    word = re.compile(rb"\b" + re.escape(name.encode()) + rb"\b")
    block = anchor.parent
    while block is not None:
        if block.type == k.COMPOUND_STATEMENT:
            for statement in block.named_children:
                if statement.start_byte >= anchor.start_byte:
                    break
                if statement.type == k.DECLARATION and word.search(statement.text or b""):
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


def _declared_in(block: Node) -> Iterator[Node]:
    """The names of the variables that a block declares."""
    for statement in block.named_children:
        if statement.type == k.DECLARATION:
            names = (declarator_name(declarator) for declarator in statement.children_by_field_name(k.F_DECLARATOR))
            yield from (name for name in names if name is not None)


def _path(node: Node, body: Node) -> list[Node]:
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


def _call_of(node: Node | None) -> Node | None:
    """The call of which a name is the callee."""
    while node is not None and node.type in _CALLEES:
        parent = node.parent
        if parent is not None and parent.type == k.CALL_EXPRESSION:
            callee = parent.child_by_field_name(k.F_FUNCTION)
            return parent if callee is not None and callee.id == node.id else None
        node = parent
    return None


@lru_cache(maxsize=4096)
def _assignment_to(name: str) -> re.Pattern[bytes]:
    word = re.escape(name.encode())
    return re.compile(rb"(?<!\w)" + word + rb"(?:\s*\.\s*\w+)*\s*(?:[-+*/%&|^]?=(?!=)|<<=|>>=|\+\+|--)|(?:\+\+|--)\s*" + word)


def _is_assigned(text: bytes, name: str) -> bool:
    """Whether code changes a variable, other than to what the user of the program may hand it."""
    return any(not _is_given(text, match) for match in _assignment_to(name).finditer(text))


def _is_given(text: bytes, assignment: re.Match[bytes]) -> bool:
    return _GIVEN.match(text, assignment.end()) is not None


def _leaves(arm: Node) -> bool:
    """Whether an arm ends by leaving the function."""
    last = arm
    while last.type in (k.COMPOUND_STATEMENT, k.ELSE_CLAUSE) and last.named_children:
        last = last.named_children[-1]
    if last.type in (k.RETURN_STATEMENT, k.THROW_STATEMENT):
        return True
    return last.type == k.EXPRESSION_STATEMENT and re.match(rb"(?:std::)?(?:exit|abort)\s*\(", last.text or b"") is not None


def _plain(node: Node | None) -> Node | None:
    """Without parentheses."""
    while node is not None and node.type in (k.CONDITION_CLAUSE, k.PARENTHESIZED_EXPRESSION):
        value = node.child_by_field_name(k.F_VALUE)
        node = value if value is not None else next((n for n in node.named_children if n.type != k.COMMENT), None)
    return node


def _parts(node: Node) -> list[Node]:
    return [n for n in node.named_children if n.type != k.COMMENT]


def _dim(parts: list[Value]) -> Dim:
    numbers = [int(p) if isinstance(p, (int, float)) else None for p in parts[:3]]
    return Dim(*numbers) if numbers else Dim(1)


def _as_dim(value: Value) -> Value:
    if isinstance(value, (int, float)):
        return Dim(int(value))
    return value if isinstance(value, Dim) else Dim(None, None, None) if value is UNKNOWN else value


def _aggregate(init: Node, parts: list[Value]) -> Value:
    """A braced launch configuration: positional (grid, block, bytes, stream) or designated."""
    pairs = [n for n in init.named_children if n.type == k.INITIALIZER_PAIR]
    if pairs:
        return UNKNOWN
    names = ("gridDim", "blockDim", "dynamicSmemBytes", "stream")
    return dict(zip(names, parts, strict=False))


def _distinct(worlds: list[World]) -> list[World]:
    if len(worlds) < 2:
        return worlds
    seen: dict[tuple[object, ...], World] = {}
    for world in worlds:
        key = (id(world.scope), tuple(sorted((n, repr(x)) for n, x in world.state.items())))
        seen.setdefault(key, world)
    return list(seen.values())[:MAX_STATES]


def _int_divide(a: int, b: int) -> int | None:
    return None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_OPERATORS: dict[str, Callable[[int, int], int | None]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _int_divide,
    "%": lambda a, b: None if b == 0 else a % b,
    "<<": lambda a, b: a << b if 0 <= b < 63 else None,
    ">>": lambda a, b: a >> b if 0 <= b < 63 else None,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "&&": lambda a, b: int(bool(a) and bool(b)),
    "||": lambda a, b: int(bool(a) or bool(b)),
}


def _combine(op: str, a: Value, b: Value) -> Value:
    if isinstance(a, int) and isinstance(b, int) and op in _OPERATORS:
        result = _OPERATORS[op](a, b)
        return UNKNOWN if result is None or abs(result) > 1 << 62 else result
    if isinstance(a, (int, float)) and isinstance(b, (int, float)) and op in ("+", "-", "*", "/"):
        return UNKNOWN if op == "/" and b == 0 else {"+": a + b, "-": a - b, "*": a * b, "/": a / (b or 1)}[op]
    if op == "*" and (a == 0 or b == 0):
        return 0
    return UNKNOWN
