"""Loops of the symbolic machine.

A variable that a loop changes by the same amount every time is
`start + step x k` for the iteration k, so one run of the body stands for all
iterations.  Variables that change otherwise (`s >>= 1`, `buffer ^= 1`) force iteration by
iteration runs while the condition stays decidable, and become unknowns where it does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np

from cudalint.analysis import arithmetic as ops
from cudalint.analysis import values as v
from cudalint.analysis.machine import Machine
from cudalint.analysis.state import OPAQUE, STAYS, Key, Opaque, Outcome, Pointer, Struct, Value
from cudalint.analysis.values import ONE, ZERO, Atom, Poly, Scope
from cudalint.semantics import ir
from cudalint.semantics.types import Type

MAX_UNROLLED = 64
UNROLL_NODES = 6_000
UNROLL_STEPS = 1_000
UNROLL_SHORT = 2
COMPILER_UNROLLS = 32
DEFAULT_TRIPS = 16
CYCLE = 16
LOOP_SAMPLES = (0, 1, 2, 3, 5, 8, 13)


@dataclass(frozen=True, slots=True, eq=False)
class LoopShape:
    """What a loop changes.

    steps    register variables changed exactly once per iteration, by a step that the loop does not change
    others   further register variables it assigns
    locals   local arrays and structs it may write
    size     expression nodes in it
    """

    steps: tuple[tuple[ir.Symbol, ir.Assign], ...]
    others: tuple[ir.Symbol, ...]
    locals: tuple[ir.Symbol, ...]
    size: int


@cache
def _part_names(kind: type[ir.Expr | ir.Stmt]) -> tuple[str, ...]:
    """The fields of an IR class that can hold further nodes."""
    return tuple(f.name for f in fields(kind) if f.name not in ("start", "end", "type", "op", "name", "symbol"))


def children(node: Any) -> Iterator[Any]:
    """The IR nodes directly below one."""
    for name in _part_names(node.__class__):
        value = getattr(node, name)
        if isinstance(value, (ir.Expr, ir.Stmt)):
            yield value
        elif isinstance(value, tuple):
            yield from _flat(value)


def _flat(items: tuple[Any, ...]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, (ir.Expr, ir.Stmt)):
            yield item
        elif isinstance(item, tuple):
            yield from _flat(item)


_BRANCHING = frozenset((ir.If, ir.Loop, ir.Switch, ir.Select, ir.Lambda))


@lru_cache(maxsize=4096)
def shape(loop: ir.Loop) -> LoopShape:
    """Works out what a loop changes (loops are compared by identity)."""
    assigned: dict[ir.Symbol, list[tuple[ir.Assign, bool]]] = {}
    written: dict[ir.Symbol, None] = {}
    declared: set[ir.Symbol] = set()
    size = 0
    roots: list[tuple[Any, bool]] = [(x, True) for x in (loop.condition, loop.body, loop.step) if x is not None]
    while roots:
        node, always = roots.pop()
        size += 1
        if isinstance(node, ir.Assign):
            if isinstance(node.target, ir.Var) and not node.memory:
                assigned.setdefault(node.target.symbol, []).append((node, always))
            else:
                _written(node.target, written)
        elif isinstance(node, ir.Declare):
            declared.add(node.symbol)
            if node.symbol.space == "register":
                assigned.setdefault(node.symbol, [])
        elif isinstance(node, ir.Call):
            for arg in (*node.args, *((node.receiver,) if node.receiver is not None else ())):
                _written(arg, written)
        elif isinstance(node, ir.Asm):
            for output in node.outputs:
                if isinstance(output, ir.Var):
                    assigned.setdefault(output.symbol, [])
                else:
                    _written(output, written)
        branches = type(node) in _BRANCHING or (type(node) is ir.Binary and node.op in ("&&", "||"))
        roots.extend((child, always and not branches) for child in children(node))
    steps = []
    others = []
    for symbol, assigns in assigned.items():
        if symbol in declared:
            continue
        if len(assigns) == 1 and assigns[0][1] and _is_step(assigns[0][0], symbol, assigned, written):
            steps.append((symbol, assigns[0][0]))
        else:
            others.append(symbol)
    return LoopShape(tuple(steps), tuple(others), tuple(s for s in written if s not in declared), size)


def _written(target: Any, into: dict[ir.Symbol, None]) -> None:
    """Local memory that may be written through a pointer expression."""
    stack = [target]
    while stack:
        node = stack.pop()
        if isinstance(node, ir.Base) and node.symbol.space == "local":
            into[node.symbol] = None
        elif isinstance(node, (ir.PtrAdd, ir.FieldPtr, ir.Cast, ir.Var, ir.Unknown)):
            stack.extend(children(node))


def _is_step(assign: ir.Assign, symbol: ir.Symbol, assigned: dict[ir.Symbol, Any], written: dict[ir.Symbol, None]) -> bool:
    """`x = x + step` where nothing in the loop changes the step."""
    value = assign.value
    while isinstance(value, ir.Cast):
        value = value.operand
    if isinstance(value, ir.Binary) and value.op in ("+", "-"):
        sides = (value.left, value.right) if value.op == "+" else (value.left,)
        for side in sides:
            inner = side
            while isinstance(inner, ir.Cast):
                inner = inner.operand
            if isinstance(inner, ir.Var) and inner.symbol is symbol:
                step = value.right if side is value.left else value.left
                return _invariant(step, assigned, written)
        return False
    if isinstance(value, ir.PtrAdd):
        return isinstance(value.pointer, ir.Var) and value.pointer.symbol is symbol and _invariant(value.index, assigned, written)
    return False


def _invariant(expr: ir.Expr, assigned: dict[ir.Symbol, Any], written: dict[ir.Symbol, None]) -> bool:
    stack: list[Any] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, ir.Var):
            if node.symbol in assigned:
                return False
        elif isinstance(node, ir.Load):
            if not (isinstance(node.pointer, (ir.Base, ir.FieldPtr))) or any(
                isinstance(x, ir.Base) and x.symbol in written for x in (node.pointer, *children(node.pointer))
            ):
                return False
        elif isinstance(node, (ir.Call, ir.Assign, ir.Asm, ir.Unknown, ir.Lambda)):
            return False
        stack.extend(children(node))
    return True


# ------------------------------------------------------------------------ run


def run_loop(machine: Machine, loop: ir.Loop) -> Outcome:
    """Runs a loop; lanes that return inside it have left afterwards."""
    if loop.init is not None:
        machine.block(loop.init)
    what = shape(loop)
    start = {symbol: machine.env.get(symbol) for symbol, _ in what.steps}
    steps = {symbol: _step(machine, assign) for symbol, assign in what.steps}
    moving = any(_carries_indices(s.type) for s in (*what.others, *what.locals))
    if (moving or loop.kind == "do") and what.size <= UNROLL_NODES:
        outcome = _unrolled(machine, loop, MAX_UNROLLED)
        if outcome is not None:
            return outcome
    counter = Atom("k", Scope.GRID, lo=0, samples=LOOP_SAMPLES, trips=None)
    _place(machine, start, steps, v.of(counter))
    trips = _trips(machine, loop, counter)
    if trips == 0 and loop.kind != "do":
        _place(machine, start, steps, ZERO)
        return STAYS
    if trips is not None and trips <= UNROLL_SHORT and moving:
        _place(machine, start, steps, ZERO)
        outcome = _unrolled(machine, loop, UNROLL_SHORT)
        if outcome is not None:
            return outcome
    if trips is not None:
        counter.trips = trips
        counter.hi = max(0, trips - 1)
        counter.samples = tuple(range(trips)) if trips <= MAX_UNROLLED else (0, 1, trips // 2, trips - 1)
    return _symbolic(machine, loop, what, start, steps, counter, trips)


def _is_float(symbol: ir.Symbol) -> bool:
    return symbol.type.kind == "float"


def _carries_indices(type_: Type) -> bool:
    """Whether values of a type can end up in an address."""
    while type_.kind == "array" and type_.element is not None:
        type_ = type_.element
    return type_.is_integer or type_.kind == "pointer" or any(_carries_indices(f.type) for f in type_.fields[:8])


def _step(machine: Machine, assign: ir.Assign) -> Poly:
    """By how much the variable changes per iteration, in its own units (bytes for pointers)."""
    value = assign.value
    while isinstance(value, ir.Cast):
        value = value.operand
    recording, machine.recording = machine.recording, False
    try:
        if isinstance(value, ir.PtrAdd):
            return machine.poly(machine.eval(value.index)).scaled(value.stride or 1)
        assert isinstance(value, ir.Binary)
        target = assign.target.symbol if isinstance(assign.target, ir.Var) else None
        left = value.left
        while isinstance(left, ir.Cast):
            left = left.operand
        side = value.right if isinstance(left, ir.Var) and left.symbol is target else value.left
        amount = machine.poly(machine.eval(side))
        return -amount if value.op == "-" else amount
    finally:
        machine.recording = recording


def _place(machine: Machine, start: dict[ir.Symbol, Value | None], steps: dict[ir.Symbol, Poly], k: Poly) -> None:
    """Sets the stepping variables to their values at iteration k."""
    for symbol, first in start.items():
        if first is None:
            continue
        moved = steps[symbol] * k
        if isinstance(first, Poly):
            machine.env[symbol] = first + moved
        elif isinstance(first, Pointer):
            machine.env[symbol] = Pointer(first.memory, first.offset + moved, ((first.offset + moved, 1),))
        else:
            machine.env[symbol] = OPAQUE[max(first.scope, moved.scope)]


def _trips(machine: Machine, loop: ir.Loop, counter: Atom) -> int | None:
    """How often the body runs, for the lane that runs it most; None where unknown."""
    if loop.condition is None:
        return None
    recording, machine.recording = machine.recording, False
    env = dict(machine.env)
    try:
        condition = machine.condition(loop.condition)
    finally:
        machine.recording = recording
        machine.env = env
    best: int | None = None
    for part in ops.conjuncts(condition):
        trips = _trips_of(machine, part, counter)
        if trips is not None and (best is None or trips < best):
            best = trips
    return best


def _trips_of(machine: Machine, condition: Poly, counter: Atom) -> int | None:
    """The first iteration at which `distance + rate x k < 0` fails for all lanes."""
    if condition.constant == 0:
        return 0
    if len(condition.terms) != 1:
        return None
    (mono, c), *_ = condition.terms.items()
    if c != 1 or len(mono) != 1:
        return None
    atom = mono[0]
    inverted = atom.op == "not"
    if inverted:
        inner = atom.args[0]
        if len(inner.terms) != 1:
            return None
        (mono, c), *_ = inner.terms.items()
        atom = mono[0]
    if not ((atom.op == "lt0" and not inverted) or (atom.op == "eq0" and inverted)):
        return None
    rate_part, distance = atom.args[0].split(lambda m, _: counter in m)
    rate = rate_part.terms.get((counter,))
    if rate is None or len(rate_part.terms) != 1:
        return None
    if inverted:  # x != bound: runs until it meets it
        d = distance.constant
        return None if d is None or -d % rate or -d // rate < 0 else -d // rate
    if rate <= 0 or distance.data or distance.symbols:
        return None
    lanes = machine.geometry.lanes(distance)[machine.geometry.valid]
    return max(0, -int(np.min(lanes)) + rate - 1) // rate if int(np.min(lanes)) < 0 else 0


def _unrolled(machine: Machine, loop: ir.Loop, limit: int) -> Outcome | None:
    """Runs iteration by iteration; None (and nothing changed) where the condition cannot be decided or takes too long."""
    saved = (dict(machine.env), len(machine.accesses), len(machine.branches), machine.instructions, machine.barriers)
    depth = len(machine.conditions)
    begun = machine.steps
    outcome = STAYS
    try:
        for iteration in range(limit + 1):
            if loop.kind != "do" or iteration:
                condition = machine.condition(loop.condition) if loop.condition is not None else ONE
                if condition.constant == 0:
                    return _without_breaks(outcome)
                if iteration == limit or condition.data or condition.symbols or machine.steps - begun > UNROLL_STEPS:
                    break
                machine.record_branch(loop.condition or loop.body, condition)  # type: ignore[arg-type]
                if condition.terms != ONE.terms:
                    machine.conditions.append(condition)
            happened = machine.block(loop.body)
            if happened is not STAYS:
                leaving = Outcome(returned=happened.returned, broke=happened.broke)
                if leaving.left.data or leaving.left.symbols:
                    break
                outcome = outcome.then(leaving)
                if leaving.left.constant == 1:
                    return _without_breaks(outcome)
                if leaving.left.terms:
                    machine.conditions.append(ops.negated(leaving.left))
            if loop.step is not None:
                machine.eval(loop.step)
        _restore(machine, saved)
        return None
    finally:
        del machine.conditions[depth:]


def _without_breaks(outcome: Outcome) -> Outcome:
    return STAYS if outcome.returned is None else Outcome(returned=outcome.returned)


def _restore(machine: Machine, saved: tuple[dict[Key, Value], int, int, float, float]) -> None:
    env, accesses, branches, machine.instructions, machine.barriers = saved
    machine.env = dict(env)
    del machine.accesses[accesses:]
    del machine.branches[branches:]


def _symbolic(
    machine: Machine,
    loop: ir.Loop,
    what: LoopShape,
    start: dict[ir.Symbol, Value | None],
    steps: dict[ir.Symbol, Poly],
    counter: Atom,
    trips: int | None,
) -> Outcome:
    """Runs the body once for iteration `counter`."""
    before = dict(machine.env)
    _place(machine, start, steps, v.of(counter))
    carried = _carried(machine, loop, what, before)
    machine.env.update(carried)
    weight, counted = machine.weight, machine.counted
    machine.weight *= trips if trips is not None else DEFAULT_TRIPS
    machine.counted = counted and trips is not None
    depth = len(machine.conditions)
    condition = ONE
    if loop.condition is not None and loop.kind != "do":
        condition = machine.condition(loop.condition)
        machine.record_branch(loop.condition, condition)
        if condition.terms != ONE.terms:
            machine.conditions.append(condition)
    recorded, fences = len(machine.accesses), machine.fences
    try:
        happened = machine.block(loop.body)
        if loop.kind == "do" and loop.condition is not None:
            machine.record_branch(loop.condition, machine.condition(loop.condition))
        if loop.step is not None:
            machine.eval(loop.step)
    finally:
        del machine.conditions[depth:]
        machine.weight, machine.counted = weight, counted
    if trips is not None and happened is STAYS and loop.unroll != 1 and trips <= COMPILER_UNROLLS and machine.fences == fences:
        _mark_unrolled(machine, recorded, counter)
    leaving = max(happened.left.scope if happened is not STAYS else Scope.GRID, condition.scope)
    _settle(machine, what, start, steps, trips if happened is STAYS else None, leaving)
    if happened.returned is None:
        return STAYS
    return Outcome(returned=machine.fresh_condition(happened.returned.scope))


def _mark_unrolled(machine: Machine, first: int, counter: Atom) -> None:
    """Notes which accesses of a loop body can be joined over its iterations: those that nothing in the loop interferes with."""
    body = machine.accesses[first:]
    written = {raw.pointer.memory.home for raw in body if raw.op != "load"}
    only_stores = all(raw.op == "store" for raw in body)
    for i, raw in enumerate(body, first):
        joins = raw.pointer.memory.home not in written if raw.op == "load" else only_stores
        if raw.unrolled is None and joins and raw.size > 1:
            machine.accesses[i] = replace(raw, unrolled=counter)


def _carried(machine: Machine, loop: ir.Loop, what: LoopShape, before: dict[Key, Value]) -> dict[Key, Value]:
    """Values, at the start of an iteration, of variables that the loop changes in other ways."""
    carried: dict[Key, Value] = {}
    for symbol in what.locals:
        for o, value in machine.local_slots(symbol):
            carried[(symbol, o)] = _unknown_like(machine, value, Scope.LANE if not isinstance(value, Poly) else value.scope)
    moving = [s for s in what.others if s in before]
    for symbol in moving:
        if _is_float(symbol):
            carried[symbol] = OPAQUE[Scope.LANE]
    tracked = [s for s in moving if not _is_float(s)]
    if not tracked and not carried:
        return carried
    keys = [key for key in (*tracked, *carried) if key in before]
    probes: dict[Key, Value] = {key: _unknown_like(machine, before[key], before[key].scope) for key in keys}
    for _ in range(2):
        after = _dry_run(machine, loop, {**carried, **probes})
        widened = False
        for key, probe in list(probes.items()):
            new = after.get(key, probe)
            if new.scope > probe.scope:
                probes[key] = _unknown_like(machine, before[key], new.scope)
                widened = True
        if not widened:
            break
    for key in probes:
        probes[key] = _closed_form(machine, before[key], probes[key], after.get(key))
    return {**carried, **probes}


def _unknown_like(machine: Machine, value: Value, scope: Scope) -> Value:
    if isinstance(value, Poly):
        return machine.fresh("carried", scope)
    if isinstance(value, Pointer):
        return Pointer(value.memory, machine.fresh("moved", scope), ())
    return OPAQUE[scope] if isinstance(value, (Opaque, Struct)) else value


def _dry_run(machine: Machine, loop: ir.Loop, env: dict[Key, Value]) -> dict[Key, Value]:
    """What one iteration makes of these values; nothing is recorded."""
    saved, recording = machine.env, machine.recording
    depth = len(machine.conditions)
    machine.env = {**saved, **env}
    machine.recording = False
    try:
        if loop.condition is not None:
            condition = machine.condition(loop.condition)
            if condition.terms != ONE.terms:
                machine.conditions.append(condition)
        machine.block(loop.body)
        if loop.step is not None:
            machine.eval(loop.step)
        return machine.env
    finally:
        machine.env, machine.recording = saved, recording
        del machine.conditions[depth:]


def _closed_form(machine: Machine, first: Value, probe: Value, after: Value | None) -> Value:
    """A variable that runs through a short cycle of known values (a buffer index) keeps their range."""
    if not (isinstance(first, Poly) and isinstance(probe, Poly) and isinstance(after, Poly)):
        return probe
    if after.key == probe.key:
        return first
    start = first.constant
    symbols = probe.symbols
    if start is None or after.data or after.symbols != symbols or after.scope is Scope.LANE:
        return probe
    (atom,) = symbols
    seen: list[int] = []
    value = start
    while value not in seen and len(seen) < CYCLE:
        seen.append(value)
        value = int(machine.geometry.lanes(after, {atom: value})[0])
    if value in seen:
        atom.lo, atom.hi, atom.samples = min(seen), max(seen), tuple(seen)
        atom.trips = len(seen)
        return v.of(atom)
    return probe


def _settle(
    machine: Machine,
    what: LoopShape,
    start: dict[ir.Symbol, Value | None],
    steps: dict[ir.Symbol, Poly],
    trips: int | None,
    leaving: Scope,
) -> None:
    """Values after the loop."""
    uniform = leaving is not Scope.LANE
    if trips is not None and uniform:
        _place(machine, start, steps, v.const(trips))
    else:
        _place(machine, start, steps, machine.fresh("iterations", leaving))
    for symbol in what.others:
        value = machine.env.get(symbol)
        if value is not None:
            machine.env[symbol] = _unknown_like(machine, value, max(value.scope, leaving))
    for symbol in what.locals:
        for o, value in machine.local_slots(symbol):
            machine.env[(symbol, o)] = _unknown_like(machine, value, max(value.scope, leaving))
