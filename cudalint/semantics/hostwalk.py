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
from typing import TYPE_CHECKING

from cudalint.semantics.hostexpressions import HostValues
from cudalint.semantics.hostslice import WORD, Changes, Slice, occurrences
from cudalint.semantics.hosttree import (
    argument_types,
    arguments_of,
    call_of,
    declared_in,
    enclosing,
    is_assigned,
    leaves,
    parameter_names,
    parts_of,
    path_to,
    plain,
    template_arguments,
)
from cudalint.semantics.hostvalues import (
    MAX_STATES,
    UNKNOWN,
    Dim,
    KernelName,
    Listing,
    State,
    Value,
    World,
    aggregate,
    as_dim,
    combine,
    dim_of,
    distinct,
)
from cudalint.semantics.records import bind_params
from cudalint.semantics.scope import scope_of
from cudalint.semantics.symbols import FunctionDef, active_children, declarator_name, text_of
from cudalint.semantics.typing import (
    Declared,
    bind,
    declare_local,
    initializer_arguments,
    parameters,
    resolve_template_arguments,
)
from cudalint.syntax import kinds as k

if TYPE_CHECKING:
    from tree_sitter import Node

    from cudalint.semantics.program import Program, Unit
    from cudalint.semantics.types import Type

MAX_ITERATIONS = 12
MAX_CALLERS = 8
MAX_DEPTH = 3
MAX_INLINE = 2
MAX_STATEMENTS = 200
MAX_RUN = 2000

Outcomes = tuple[tuple[World, "Node | None"], ...]

_CALLED = re.compile(rb"\s*(?:<[^;{}()]*>)?\s*\(")
_RETURNED = re.compile(rb"\breturn\b[^;]*")
_ADDRESS = re.compile(rb"[(,]\s*(?:\([^()]*\)\s*)?&\s*([A-Za-z_]\w*)")
_LOOPS = (k.FOR_STATEMENT, k.WHILE_STATEMENT, k.DO_STATEMENT)


Handed = tuple["FunctionDef | None", dict[str, str], dict[str, Value]]


class _Progress:
    """How far a block has been run: `after[i]` are the states behind its first i statements."""

    __slots__ = ("after", "done", "statements")

    def __init__(self, statements: list[Node], worlds: list[World]) -> None:
        self.statements = statements
        self.after = [worlds]
        self.done = 0


class HostWalk(HostValues):
    """Answers what an expression at a place in host code can be."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self._entries: dict[tuple[int, Slice, int], list[World]] = {}
        self._changes: dict[FunctionDef, Changes] = {}
        self._progress: dict[tuple[int, Slice, tuple[int, ...]], _Progress] = {}
        self._exits: list[tuple[World, Node | None]] | None = None  # where returns are noted while a function is run
        self._outcomes_of: dict[tuple[object, ...], tuple[Outcomes, int]] = {}
        self._assigned: dict[tuple[int, str], bool] = {}
        self._effects: dict[int, Handed] = {}
        self._statements: dict[int, list[Node]] = {}
        self._own: dict[int, tuple[str, ...]] = {}
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
        for inner in path_to(node, body):
            worlds = self._toward(inner, node, worlds, names)
            if not worlds:
                break
        return worlds[:MAX_STATES]

    def _changes_in(self, function: FunctionDef) -> Changes:
        found = self._changes.get(function)
        if found is None:
            assert function.body is not None
            head = function.unit.text[function.start : function.body.start_byte]
            template = [param.name for param in function.template]
            found = self._changes[function] = Changes(function.body, head, parameter_names(function), template)
        return found

    def _slice(self, function: FunctionDef, names: set[bytes]) -> Slice:
        return self._changes_in(function).slice(frozenset(names))

    def _outcomes(self, function: FunctionDef, call: Node, world: World) -> Outcomes:
        """Run a function of the project on the arguments of a call: its exits, with the return statement taken."""
        if function.body is None or function.template or function.kind == "kernel" or self._running >= MAX_INLINE:
            return ()
        names = self._changes_in(function).parameters
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
            world = World(scope_of(function), state, self._changes_in(function))
            ends = self._block(function.body, world, names)
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
            progress = self._progress[key] = _Progress(self._children(block, worlds[0]), worlds)
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
        node = plain(condition)
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
            self._entries[key] = [World(scope_of(function), {}, self._changes_in(function))]
            # kept for others too: what it may cost must not depend on who asks first
            left, self._budget = self._budget, MAX_RUN
            found = self._entries[key] = self._entry_worlds(function, names, depth)
            self._budget = left
        return found

    def _entry_worlds(self, function: FunctionDef, names: Slice, depth: int) -> list[World]:
        template = [p.name for p in function.template if p.name.encode() in names.names]
        declared: list[Declared] = []
        if any(name.encode() in names.names for name in self._changes_in(function).parameters):
            declared = list(parameters(function, scope_of(function)))
        used = [p for p in declared if p.name.encode() in names.names]
        plain = World(scope_of(function), {p.name: UNKNOWN for p in used}, self._changes_in(function))
        if (not template and not used) or depth >= MAX_DEPTH:
            return [plain]
        worlds: list[World] = []
        for call, caller, unit in self._callers(function):
            worlds.extend(self._called(function, declared, used, call, caller, unit, depth))
            if len(worlds) >= MAX_STATES:
                break
        return distinct(worlds) or [plain]

    def _callers(self, function: FunctionDef) -> Iterator[tuple[Node, FunctionDef | None, Unit]]:
        """Calls of a host function: in its file, then in the files that include it."""
        name = function.name.encode()
        count = 0
        for path in (function.path, *self.program.includers(function.path)):
            unit = self.program.unit(path)
            if unit is None:
                continue
            for start in occurrences(unit.text, name):
                end = start + len(name)
                if (
                    function.start <= start < function.header_end
                    or not _CALLED.match(unit.text, end)
                    or not unit.is_active(start)
                ):
                    continue
                call = call_of(unit.root.descendant_for_byte_range(start, end))
                if call is None:
                    continue
                count += 1
                if count > MAX_CALLERS:
                    return
                yield call, enclosing(unit, start), unit

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
            scope = scope_of(function, {n: x for n, x in bound.items() if x is not None})
            yield World(scope, state, self._changes_in(function))

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
        return distinct(result)

    def _block(self, node: Node, world: World, names: Slice) -> list[World]:
        worlds = [world]
        for statement in self._children(node, world):
            if statement.type == k.RETURN_STATEMENT and self._exits is not None:
                self._exits.extend((end, statement) for end in worlds)
                return []
            if self._exits is not None and statement.type == k.EXPRESSION_STATEMENT and leaves(statement):
                return []
            worlds = self._run(statement, worlds, names)
        return worlds

    def _children(self, block: Node, world: World) -> list[Node]:
        found = self._statements.get(block.id)
        if found is None:
            found = self._statements[block.id] = active_children(block, world.scope.unit)
        return found

    def _inner_block(self, node: Node, world: World, names: Slice) -> list[World]:
        """What a block declares is forgotten after it."""
        own = self._own.get(node.id)
        if own is None:
            own = self._own[node.id] = tuple(dict.fromkeys(map(text_of, declared_in(node))))
        kept = {name: world.state[name] for name in own if name in world.state}
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
            parts = [self.value(n, world) for n in listed or parts_of(init)]
            if is_dim:
                first = parts[0] if len(parts) == 1 else None
                yield self._set(world, variable, first if isinstance(first, Dim) else dim_of(parts))
            elif is_array:
                yield self._set(world, variable, Listing(tuple(parts)))
            else:
                yield self._set(world, variable, parts[0] if len(parts) == 1 else aggregate(init, parts))
            return
        for value, after in self.alternatives(init, world):
            yield self._set(after, variable, as_dim(value) if is_dim else value)

    def _set(self, world: World, name: str, value: Value) -> World:
        state = {key: x for key, x in world.state.items() if not key.startswith(name + ".")}
        state[name] = UNKNOWN if value is None else value
        return world.holding(state)

    def _alias(self, node: Node, world: World, names: Slice) -> list[World]:
        """`using Traits = …;` in a body: a type among the values."""
        state = dict(world.state)
        after = world.holding(state)
        declare_local(node, after.names(node))
        return [after]

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
            return [self._store(world, left, combine(op, self.value(left, world), self.value(right, world)))]
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
                value = as_dim(value)
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
                value = as_dim(value)
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
        found = self._effects.get(node.id)
        if found is None:
            found = self._effects[node.id] = self._handed(node, world)
        function, referred, written = found
        handed = {outside: inside for outside, inside in referred.items() if outside in state} if function is not None else {}
        if not handed and not any(name in state for name in written):
            return [world]
        ends = self._outcomes(function, node, world) if function is not None and handed else ()
        states = [{outside: end.state.get(inside, UNKNOWN) for outside, inside in handed.items()} for end, _ in ends]
        result = []
        for out in states or [dict.fromkeys(handed, UNKNOWN)]:
            changed = {n: x for n, x in {**written, **out}.items() if n in state and not isinstance(state[n], KernelName)}
            result.append(world.holding({**state, **changed}))
        return result

    def _handed(self, node: Node, world: World) -> Handed:
        """The function that is called, the variables it takes by reference as its parameters, and those whose address it gets."""
        callee = node.child_by_field_name(k.F_FUNCTION)
        written: dict[str, Value] = {name.decode(): UNKNOWN for name in _ADDRESS.findall(node.text or b"")}
        known = self._functions(callee, world) if callee is not None else []
        if not known:
            return None, {}, written
        pairs = zip(parameters(known[0], scope_of(known[0])), arguments_of(node), strict=False)
        return known[0], {text_of(arg): p.name for p, arg in pairs if p.reference and not p.const}, written

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
        if leaves(node):
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
        for case in self._children(body, world):
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
        changed = {key: UNKNOWN for key in state.state if self._assigns(node, key)}
        return [world.holding({**world.state, **changed})]

    def _assigns(self, node: Node, name: str) -> bool:
        """Whether a loop changes a variable."""
        found = self._assigned.get((node.id, name))
        if found is None:
            text = node.text or b""
            found = self._assigned[node.id, name] = is_assigned(text, name.encode())
        return found

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
        return distinct(result) or worlds

    def _elements_of(self, node: Node, worlds: list[World]) -> list[World]:
        """The states in the iterations of `for (int n : {64, 128})`."""
        declarator, right = node.child_by_field_name(k.F_DECLARATOR), node.child_by_field_name(k.F_RIGHT)
        name = declarator_name(declarator) if declarator is not None else None
        if right is None or name is None:
            return worlds
        result: list[World] = []
        for world in worlds:
            if right.type == k.INITIALIZER_LIST:
                values = tuple(self.value(part, world) for part in parts_of(right))
            else:
                held = self.value(right, world)
                values = held.values if isinstance(held, Listing) else (UNKNOWN,)
            result.extend(self._set(world, text_of(name), value) for value in values[:MAX_ITERATIONS])
        return distinct(result)

    def _inline(self, callee: Node, call: Node, world: World) -> Value | None:
        """What a small function of the project returns, if that is one value."""
        if b"argv" in (call.text or b""):
            return UNKNOWN  # for the user of the program to say
        functions = self._functions(callee, world)
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


_STATEMENTS: dict[str, Callable[[HostWalk, Node, World, Slice], list[World]]] = {
    k.COMPOUND_STATEMENT: HostWalk._inner_block,
    k.DECLARATION: HostWalk._declaration,
    **dict.fromkeys((k.ALIAS_DECLARATION, k.TYPE_DEFINITION), HostWalk._alias),
    k.EXPRESSION_STATEMENT: HostWalk._expression,
    k.IF_STATEMENT: HostWalk._if,
    k.SWITCH_STATEMENT: HostWalk._switch,
    **dict.fromkeys(_LOOPS, HostWalk._loop),
}
