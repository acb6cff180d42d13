"""Which value a local name of host code holds at a place: reaching definitions read backwards over the tree.

`if` and `switch` arms, loops that may not run and loop iterations are choices
of the world (see `worlds`); loops whose counter can be followed are run.
"""

from __future__ import annotations

import bisect
import re
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal

from cudalint.semantics.hostcode import ARMS, LOOPS, Code, Event
from cudalint.semantics.worlds import Infeasible, Undecided
from cudalint.syntax import kinds as k

if TYPE_CHECKING:
    from tree_sitter import Node

    from cudalint.semantics.hostvalues import Context, Evaluator, HostValue

MAX_ITERATIONS = 64
"""Iterations of a loop that are followed."""

MAX_COUNTERS = 4
"""Names that one loop may step together."""

MAX_LOOP_WAYS = 8
"""Ways through a loop's body that are looked at."""

MAX_COUNTER_VALUES = 16
"""Values of a loop counter that become choices."""


class Missing(Enum):
    """The type of `MISSING`: the name is not written here."""

    MISSING = 0


MISSING: Final = Missing.MISSING
Found = "HostValue | Literal[Missing.MISSING]"

_NAME = re.compile(rb"[A-Za-z_]\w*")
_BLOCKS = frozenset({k.COMPOUND_STATEMENT, k.CASE_STATEMENT, k.TRANSLATION_UNIT, k.DECLARATION_LIST, *ARMS})
_JUMPS = frozenset({k.RETURN_STATEMENT, k.THROW_STATEMENT, k.BREAK_STATEMENT, k.CONTINUE_STATEMENT})
_LEAVES = frozenset({k.RETURN_STATEMENT, k.THROW_STATEMENT})
_NO_RETURN = frozenset({"exit", "abort", "_exit", "terminate", "quick_exit"})
_ALTERNATE_ARMS = frozenset({k.PREPROC_ELSE, k.PREPROC_ELIF, k.PREPROC_ELIFDEF})
_INNER = frozenset({k.LABELED_STATEMENT, k.ATTRIBUTED_STATEMENT, k.ELSE_CLAUSE, k.TRY_STATEMENT, k.EXPRESSION_STATEMENT})


class Flow:
    """Reads local names for an evaluator."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._ev = evaluator
        self._active: set[tuple[object, ...]] = set()
        self._overrides: dict[tuple[object, str], HostValue] = {}

    # ------------------------------------------------------------------ entry

    def local(self, name: str, node: Node, context: Context) -> HostValue | Literal[Missing.MISSING]:
        """The value of a local name where `node` stands; MISSING if the function does not write it before."""
        code, frame = context.code, context.frame
        override = self._overrides.get((frame.key, name), MISSING)
        if override is not MISSING:
            return override
        region = self._region(context)
        if region is None:
            return MISSING
        events = code.events(region, name)
        if not events:
            if code.outer is None:
                return MISSING
            return self.local(name, code.outer[0], context.within(code.outer[1]))
        memo_key = (name, *context.tag(node))
        if not self._overrides and memo_key in self._ev.memo:
            return self._ev.memo[memo_key]
        key = ("local", *memo_key)
        if key in self._active:
            return None
        self._active.add(key)
        try:
            value = self._climb(name, node, context, events)
        finally:
            self._active.discard(key)
        if not self._overrides:
            self._ev.memo[memo_key] = value
        return value

    def overridden(self, name: str, key: object) -> bool:
        """Whether a loop over the values of a name is being run."""
        return (key, name) in self._overrides

    def exit_value(self, name: str, body: Node, context: Context) -> HostValue | Literal[Missing.MISSING]:
        """The value of a name when control reaches the end of `body`; MISSING if nothing writes it."""
        region = self._region(context)
        if region is None:
            return MISSING
        return self._before_end(name, body, context, context.code.events(region, name))

    def _region(self, context: Context) -> Node | None:
        if context.code.outer is not None:
            return context.code.root
        return context.frame.function.node if context.frame.function is not None else None

    # --------------------------------------------------------------- climbing

    def _climb(self, name: str, node: Node, context: Context, events: list[Event]) -> HostValue | Literal[Missing.MISSING]:
        code = context.code
        current = node
        while True:
            parent = code.parent(current)
            if parent is None or current.id == code.root.id:
                if code.outer is None:
                    return MISSING
                return self.local(name, code.outer[0], context.within(code.outer[1]))
            found = self._at(name, current, parent, context, events)
            if found is not MISSING:
                return found
            function = context.frame.function
            if code.outer is None and function is not None and parent.id == function.node.id:
                return self._parameter(name, parent, context, events)
            current = parent

    def _at(
        self, name: str, current: Node, parent: Node, context: Context, events: list[Event]
    ) -> HostValue | Literal[Missing.MISSING]:
        kind = parent.type
        if kind in _BLOCKS:
            if current.type in _ALTERNATE_ARMS:
                return MISSING
            return self._backward(name, parent, current, context, events)
        if kind == k.DECLARATION:
            return self._earlier_declarators(name, parent, current, context, events)
        if kind == k.FOR_STATEMENT:
            return self._in_for(name, parent, current, context, events)
        if kind == k.FOR_RANGE_LOOP:
            return self._in_range_loop(name, parent, current, context, events)
        if kind in LOOPS:
            return self._carried(name, parent, context, events)
        if kind in (k.IF_STATEMENT, k.SWITCH_STATEMENT):
            return self._condition_declares(name, parent, current, context, events)
        if kind == k.LAMBDA_EXPRESSION:
            return self._lambda(name, parent, current, context, events)
        if kind == k.FUNCTION_DEFINITION and context.code.outer is None:
            function = context.frame.function
            if function is None or parent.id != function.node.id:
                return self._carried(name, parent, context, events)
        return MISSING

    def _backward(
        self, name: str, block: Node, current: Node, context: Context, events: list[Event]
    ) -> HostValue | Literal[Missing.MISSING]:
        if not _within(events, block.start_byte, current.start_byte):
            return MISSING
        before = [child for child in context.code.children(block) if child.start_byte < current.start_byte]
        for child in reversed(before):
            if child.type == k.CASE_STATEMENT:
                if self._leaves_case(child):
                    return MISSING
            found = self._after(name, child, context, events)
            if found is not MISSING:
                return found
        return MISSING

    def _before_end(
        self, name: str, block: Node, context: Context, events: list[Event]
    ) -> HostValue | Literal[Missing.MISSING]:
        if not _within(events, block.start_byte, block.end_byte):
            return MISSING
        for child in reversed(context.code.children(block)):
            found = self._after(name, child, context, events)
            if found is not MISSING:
                return found
        return MISSING

    def _earlier_declarators(
        self, name: str, declaration: Node, current: Node, context: Context, events: list[Event]
    ) -> HostValue | Literal[Missing.MISSING]:
        for event in reversed(_within(events, declaration.start_byte, current.start_byte)):
            found = self._apply(event, name, context)
            if found is not MISSING:
                return found
        return MISSING

    def _parameter(
        self, name: str, function: Node, context: Context, events: list[Event]
    ) -> HostValue | Literal[Missing.MISSING]:
        definition = context.frame.function
        if definition is None:
            return MISSING
        parameters = definition.declarator.child_by_field_name(k.F_PARAMETERS)
        if parameters is None:
            return MISSING
        for event in _within(events, parameters.start_byte, parameters.end_byte):
            if event.kind == "parameter":
                return self._ev.argument(context.frame, event.node, parameters, name)
        return MISSING

    def _condition_declares(
        self, name: str, statement: Node, current: Node, context: Context, events: list[Event]
    ) -> HostValue | Literal[Missing.MISSING]:
        condition = statement.child_by_field_name(k.F_CONDITION)
        if condition is None or condition.id == current.id:
            return MISSING
        for event in reversed(_within(events, condition.start_byte, condition.end_byte)):
            found = self._apply(event, name, context)
            if found is not MISSING:
                return found
        return MISSING

    def _lambda(
        self, name: str, node: Node, current: Node, context: Context, events: list[Event]
    ) -> HostValue | Literal[Missing.MISSING]:
        declarator = node.child_by_field_name(k.F_DECLARATOR)
        if declarator is not None:
            for event in _within(events, declarator.start_byte, declarator.end_byte):
                if event.kind == "parameter":
                    return self._ev.lambda_argument(node, event.node, context)
        captures = node.child_by_field_name(k.F_CAPTURES)
        if captures is not None and captures.id != current.id:
            for capture in captures.named_children:
                if capture.type == k.LAMBDA_CAPTURE_INITIALIZER:
                    left, right = capture.child_by_field_name(k.F_LEFT), capture.child_by_field_name(k.F_RIGHT)
                    if left is not None and right is not None and context.code.words(left) == name:
                        return self._ev.value(right, context)
        return MISSING

    # ------------------------------------------------------------------ loops

    def _in_for(
        self, name: str, loop: Node, current: Node, context: Context, events: list[Event]
    ) -> HostValue | Literal[Missing.MISSING]:
        initializer = loop.child_by_field_name(k.F_INITIALIZER)
        update = loop.child_by_field_name(k.F_UPDATE)
        if initializer is not None and current.id == initializer.id:
            return MISSING
        started = initializer is not None and _within(events, initializer.start_byte, initializer.end_byte)
        stepped = update is not None and _within(events, update.start_byte, update.end_byte)
        if started or stepped:
            values = self._sequence(name, loop, context, events)
            if values is None or not values:
                return None
            values = values[:MAX_COUNTER_VALUES]
            return values[self._ev.world.choose(("loop", *context.tag(loop)), len(values))]
        return self._carried(name, loop, context, events)

    def _in_range_loop(
        self, name: str, loop: Node, current: Node, context: Context, events: list[Event]
    ) -> HostValue | Literal[Missing.MISSING]:
        right = loop.child_by_field_name(k.F_RIGHT)
        if right is None or right.id == current.id:
            return MISSING
        for event in _within(events, loop.start_byte, right.start_byte):
            if event.kind == "declare":
                items = self._ev.items(self._ev.value(right, context))
                if not items:
                    return None
                chosen = items[self._ev.world.choose(("loop", *context.tag(loop)), len(items))]
                return self._ev.binding(chosen, event)
        return self._carried(name, loop, context, events)

    def _carried(
        self, name: str, loop: Node, context: Context, events: list[Event]
    ) -> HostValue | Literal[Missing.MISSING]:
        """A value from an earlier iteration, if the body writes the name."""
        body = loop.child_by_field_name(k.F_BODY)
        if body is None or not _within(events, body.start_byte, body.end_byte):
            return MISSING
        if self._declares(name, body, context, events):
            return MISSING
        values = self._sequence(name, loop, context, events)
        if values:
            values = values[:MAX_COUNTER_VALUES]
            return values[self._ev.world.choose(("loop", *context.tag(loop)), len(values))]
        if self._ev.world.choose(("carried", *context.tag(loop)), 2) == 0:
            return MISSING
        key = ("carried", name, *context.tag(loop))
        if key in self._active:
            return None
        self._active.add(key)
        try:
            return self._after_body(name, body, context, events)
        finally:
            self._active.discard(key)

    def _after_body(
        self, name: str, body: Node, context: Context, events: list[Event]
    ) -> HostValue | Literal[Missing.MISSING]:
        return self._after(name, body, context, events)

    def _sequence(self, name: str, loop: Node, context: Context, events: list[Event]) -> list[HostValue] | None:
        """The values of a counter at the start of each iteration; None where the loop cannot be followed."""
        run = self._run(name, loop, context, events)
        return None if run is None else run[:-1]

    def _run(self, name: str, loop: Node, context: Context, events: list[Event]) -> list[HostValue] | None:
        """The successive values of a counter, the last one being that after the loop; None where it cannot be followed."""
        key = ("run", name, *context.tag(loop))
        if key in self._active or self.overridden(name, context.frame.key):
            return None
        self._active.add(key)
        try:
            counters = self._counters(name, loop, context, events)
            return self._iterate(name, counters, loop, context) if counters is not None else None
        finally:
            self._active.discard(key)

    def _counters(
        self, name: str, loop: Node, context: Context, events: list[Event]
    ) -> dict[str, tuple[HostValue, Event]] | None:
        """The names that the loop steps, `name` among them: value before the first iteration and the step."""
        counters: dict[str, tuple[HostValue, Event]] = {}
        for other in [name, *sorted(self._stepped_names(loop, context.code) - {name})]:
            own = events if other == name else self._events_of(other, context)
            step = self._step_event(loop, own, context.code)
            value = self._start(other, loop, context, own) if step is not None else None
            if step is not None and isinstance(value, (int, float)):
                counters[other] = (value, step)
        return counters if name in counters and len(counters) <= MAX_COUNTERS else None

    def _stepped_names(self, loop: Node, code: Code) -> set[str]:
        """The identifiers in the condition and the update of a loop."""
        names: set[str] = set()
        for label in (k.F_CONDITION, k.F_UPDATE):
            part = loop.child_by_field_name(label)
            if part is not None:
                names.update(match.group().decode() for match in _NAME.finditer(code.text, part.start_byte, part.end_byte))
        return names

    def _events_of(self, name: str, context: Context) -> list[Event]:
        region = self._region(context)
        return context.code.events(region, name) if region is not None else []

    def _iterate(
        self, name: str, counters: dict[str, tuple[HostValue, Event]], loop: Node, context: Context
    ) -> list[HostValue] | None:
        condition = loop.child_by_field_name(k.F_CONDITION)
        state = {other: value for other, (value, _) in counters.items()}
        values: list[HostValue] = [state[name]]
        slots = [(context.frame.key, other) for other in counters]
        try:
            for _ in range(MAX_ITERATIONS):
                self._overrides.update(((context.frame.key, other), value) for other, value in state.items())
                if loop.type != k.DO_STATEMENT or len(values) > 1:
                    holds = self._ev.decide(condition, context) if condition is not None else None
                    if holds is None:
                        return None
                    if not holds:
                        return values
                following = {other: self._apply(event, other, context) for other, (_, event) in counters.items()}
                if following == state or not all(isinstance(value, (int, float)) for value in following.values()):
                    return None
                state = following  # type: ignore[assignment]
                values.append(state[name])
            return values
        finally:
            for slot in slots:
                self._overrides.pop(slot, None)

    def _start(self, name: str, loop: Node, context: Context, events: list[Event]) -> HostValue | Literal[Missing.MISSING]:
        initializer = loop.child_by_field_name(k.F_INITIALIZER)
        if initializer is not None:
            for event in reversed(_within(events, initializer.start_byte, initializer.end_byte)):
                found = self._apply(event, name, context)
                if found is not MISSING:
                    return found
        key = ("start", name, *context.tag(loop))
        if key in self._active:
            return None
        self._active.add(key)
        try:
            found = self.local(name, loop, context)
        finally:
            self._active.discard(key)
        return found

    def _step_event(self, loop: Node, events: list[Event], code: Code) -> Event | None:
        """The one place that steps a counter in every iteration, None if there is none or more than one."""
        parts = [loop.child_by_field_name(label) for label in (k.F_CONDITION, k.F_UPDATE, k.F_BODY)]
        written: list[tuple[Event, int]] = []
        for position, part in enumerate(parts):
            if part is not None:
                inside = _within(events, part.start_byte, part.end_byte)
                written.extend((event, position) for event in inside if event.kind in ("assign", "update", "input", "declare"))
        if len(written) != 1 or written[0][1] == 0 or written[0][0].kind == "declare":
            return None
        event, position = written[0]
        return event if position == 1 or self._always(event.node, loop, code) else None

    def _always(self, node: Node, loop: Node, code: Code) -> bool:
        """Whether every iteration executes `node`."""
        parent = code.parent(node)
        while parent is not None and parent.id != loop.id:
            if parent.type not in (k.COMPOUND_STATEMENT, k.EXPRESSION_STATEMENT):
                return False
            parent = code.parent(parent)
        return True

    # --------------------------------------------------------- after a statement

    def _after(
        self, name: str, statement: Node, context: Context, events: list[Event]
    ) -> HostValue | Literal[Missing.MISSING]:
        """The value that `statement` leaves in the name, MISSING if it does not touch it."""
        inside = _within(events, statement.start_byte, statement.end_byte)
        if not inside:
            return MISSING
        kind = statement.type
        if kind == k.COMPOUND_STATEMENT or kind in ARMS:
            if kind == k.COMPOUND_STATEMENT and self._declares(name, statement, context, events):
                return MISSING
            return self._before_end(name, statement, context, events)
        if kind == k.CASE_STATEMENT:
            return self._before_end(name, statement, context, events)
        if kind == k.IF_STATEMENT:
            return self._after_if(name, statement, context, events)
        if kind == k.SWITCH_STATEMENT:
            return self._after_switch(name, statement, context, events)
        if kind in LOOPS:
            return self._after_loop(name, statement, context, events)
        if kind == k.FUNCTION_DEFINITION:
            body = statement.child_by_field_name(k.F_BODY)
            return MISSING if body is None else self._after(name, body, context, events)
        if kind in _INNER:
            return self._after_inner(name, statement, context, events)
        return self._last_event(name, statement, context, inside)

    def _after_inner(
        self, name: str, statement: Node, context: Context, events: list[Event]
    ) -> HostValue | Literal[Missing.MISSING]:
        if statement.type == k.EXPRESSION_STATEMENT:
            inside = _within(events, statement.start_byte, statement.end_byte)
            return self._last_event(name, statement, context, inside)
        if statement.type == k.TRY_STATEMENT:
            body = statement.child_by_field_name(k.F_BODY)
            return MISSING if body is None else self._after(name, body, context, events)
        return self._before_end(name, statement, context, events)

    def _last_event(
        self, name: str, statement: Node, context: Context, inside: list[Event]
    ) -> HostValue | Literal[Missing.MISSING]:
        for event in reversed(inside):
            if event.kind == "parameter" or self._in_lambda(event, statement, context.code):
                continue
            found = self._apply(event, name, context)
            if found is not MISSING:
                return found
        return MISSING

    def _in_lambda(self, event: Event, statement: Node, code: Code) -> bool:
        node: Node | None = event.node
        while node is not None and node.id != statement.id:
            if node.type == k.LAMBDA_EXPRESSION:
                return True
            node = code.parent(node)
        return False

    def _declares(self, name: str, block: Node, context: Context, events: list[Event]) -> bool:
        """Whether `block` itself declares the name, so that what it does to it stays inside."""
        for event in _within(events, block.start_byte, block.end_byte):
            if event.kind != "declare":
                continue
            node: Node | None = event.node
            while node is not None and node.type != k.DECLARATION:
                node = context.code.parent(node)
            above = context.code.parent(node) if node is not None else None
            while above is not None and above.type in ARMS:
                above = context.code.parent(above)
            if above is not None and above.id == block.id:
                return True
        return False

    def _after_if(
        self, name: str, statement: Node, context: Context, events: list[Event]
    ) -> HostValue | Literal[Missing.MISSING]:
        condition = statement.child_by_field_name(k.F_CONDITION)
        arms = [statement.child_by_field_name(k.F_CONSEQUENCE), statement.child_by_field_name(k.F_ALTERNATIVE)]
        if condition is None:
            return MISSING
        arm = self.arm(statement, arms, condition, context)
        chosen = arms[arm]
        if chosen is not None:
            found = self._after(name, chosen, context, events)
            if found is not MISSING:
                return found
        for event in reversed(_within(events, condition.start_byte, condition.end_byte)):
            if event.kind != "declare":
                found = self._apply(event, name, context)
                if found is not MISSING:
                    return found
        return MISSING

    def arm(self, statement: Node, arms: list[Node | None], condition: Node, context: Context) -> int:
        """Which arm of an `if` this world takes on its way past it."""
        holds = self._ev.decide(condition, context)
        if holds is not None:
            return 0 if holds else 1
        open_arms = [index for index, arm in enumerate(arms) if arm is None or not self._leaves(arm, context.code)]
        if not open_arms:
            open_arms = [0, 1]
        taken = open_arms[self._ev.world.choose(("if", *context.tag(statement)), len(open_arms))]
        self._ev.assume(condition, context, taken == 0)
        return taken

    def _after_switch(
        self, name: str, statement: Node, context: Context, events: list[Event]
    ) -> HostValue | Literal[Missing.MISSING]:
        body = statement.child_by_field_name(k.F_BODY)
        condition = statement.child_by_field_name(k.F_CONDITION)
        if body is None or condition is None:
            return MISSING
        cases = [child for child in context.code.children(body) if child.type == k.CASE_STATEMENT]
        index = self._case(statement, cases, condition, context)
        if index is None:
            return MISSING
        last = index
        while last + 1 < len(cases) and not self._leaves_case(cases[last]):
            last += 1
        for case in reversed(cases[index : last + 1]):
            found = self._after(name, case, context, events)
            if found is not MISSING:
                return found
        return MISSING

    def _case(self, statement: Node, cases: list[Node], condition: Node, context: Context) -> int | None:
        """The case that this world enters, None for none of them."""
        value = self._ev.settled(condition, context)
        labels = [case.child_by_field_name(k.F_VALUE) for case in cases]
        default = next((index for index, label in enumerate(labels) if label is None), None)
        if isinstance(value, (int, float)):
            known = [self._ev.settled(label, context) if label is not None else None for label in labels]
            if value in known:
                return known.index(value)
            if all(label is None or isinstance(v, int) for label, v in zip(labels, known, strict=True)):
                return default
        ways: list[int | None] = [i for i, case in enumerate(cases) if not self._dead_end(cases, i, context.code)]
        if default is None:
            ways.append(None)
        if not ways:
            return None
        return ways[self._ev.world.choose(("switch", *context.tag(statement)), len(ways))]

    def _dead_end(self, cases: list[Node], index: int, code: Code) -> bool:
        """Whether a case leaves the function, or only falls into the next one (which stands for it)."""
        statements = [c for c in code.children(cases[index])]
        label = cases[index].child_by_field_name(k.F_VALUE)
        statements = [c for c in statements if label is None or c.id != label.id]
        if not statements and index + 1 < len(cases):
            return True
        return any(self._leaves(child, code) for child in statements)

    def _leaves_case(self, case: Node) -> bool:
        """Whether control does not fall through to the next case."""
        last = next((c for c in reversed(case.named_children) if c.type != k.COMMENT), None)
        while last is not None and last.type == k.COMPOUND_STATEMENT:
            last = next((c for c in reversed(last.named_children) if c.type != k.COMMENT), None)
        return last is not None and last.type in _JUMPS

    def _leaves(self, arm: Node, code: Code) -> bool:
        """Whether an arm ends by leaving the function or the program."""
        if arm.type in _LEAVES:
            return True
        if arm.type in (k.COMPOUND_STATEMENT, k.ELSE_CLAUSE):
            last = next((c for c in reversed(arm.named_children) if c.type != k.COMMENT), None)
            return last is not None and self._leaves(last, code)
        if arm.type == k.IF_STATEMENT:
            then, other = arm.child_by_field_name(k.F_CONSEQUENCE), arm.child_by_field_name(k.F_ALTERNATIVE)
            return then is not None and other is not None and self._leaves(then, code) and self._leaves(other, code)
        if arm.type == k.EXPRESSION_STATEMENT and arm.named_child_count:
            call = arm.named_children[0]
            if call.type == k.CALL_EXPRESSION:
                callee = call.child_by_field_name(k.F_FUNCTION)
                return callee is not None and code.words(callee).rpartition("::")[2] in _NO_RETURN
        return False

    def _after_loop(
        self, name: str, loop: Node, context: Context, events: list[Event]
    ) -> HostValue | Literal[Missing.MISSING]:
        initializer = loop.child_by_field_name(k.F_INITIALIZER)
        started = bool(initializer is not None and _within(events, initializer.start_byte, initializer.end_byte))
        declared = initializer is not None and initializer.type == k.DECLARATION
        if (started and declared) or self._range_variable(loop, events):
            return MISSING
        body = loop.child_by_field_name(k.F_BODY)
        if body is not None and self._declares(name, body, context, events):
            return MISSING
        run = self._run(name, loop, context, events)
        if run is not None:
            return run[-1]
        update = loop.child_by_field_name(k.F_UPDATE)
        if body is None or started or (update is not None and _within(events, update.start_byte, update.end_byte)):
            return None
        key = ("after", name, *context.tag(loop))
        if key in self._active:
            return None
        self._active.add(key)
        try:
            ways = self._ev.alternatives(lambda: self._after(name, body, context, events), MAX_LOOP_WAYS)
        finally:
            self._active.discard(key)
        if any(way is None for way in ways):
            # a search whose result is not known: the value before it is not the answer either
            return None
        distinct = list(dict.fromkeys(way for way in ways if way is not MISSING))
        chosen = self._ev.world.choose(("ran", *context.tag(loop)), len(distinct) + 1)
        return distinct[chosen] if chosen < len(distinct) else MISSING

    def _range_variable(self, loop: Node, events: list[Event]) -> bool:
        right = loop.child_by_field_name(k.F_RIGHT) if loop.type == k.FOR_RANGE_LOOP else None
        return right is not None and any(e.kind == "declare" for e in _within(events, loop.start_byte, right.start_byte))

    # ------------------------------------------------------------------ events

    def _apply(self, event: Event, name: str, context: Context) -> HostValue | Literal[Missing.MISSING]:
        if event.kind == "declare":
            return self._ev.initial(event, context)
        if event.kind == "assign":
            return self._ev.assigned(event.node, name, context)
        if event.kind == "update":
            return self._ev.updated(event.node, name, context)
        if event.kind == "out":
            return self._ev.handed_out(event, name, context)
        return None


def _within(events: list[Event], start: int, end: int) -> list[Event]:
    first = bisect.bisect_left(events, start, key=lambda event: event.start)
    last = bisect.bisect_left(events, end, key=lambda event: event.start)
    return events[first:last]


__all__ = ["MISSING", "Flow", "Infeasible", "Missing", "Undecided"]
