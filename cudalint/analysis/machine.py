"""Runs one kernel symbolically for all threads of a block and records what reaches memory.

Values are `Poly` (integers), `Pointer`, `Struct` and `Opaque` (floats and
whatever else only needs to be known as uniform or not).  Both arms of an
undecided branch are run under their conditions and merged by selects; a loop
is run once for a symbolic iteration, or iteration by iteration where its
variables change in a way that has no closed form (`loops`).  Device functions run in
their caller's terms.  Work is bounded by a number of steps, never by time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cudalint.analysis import arithmetic as ops
from cudalint.analysis import values as v
from cudalint.analysis.state import (
    BREAKS,
    CONTINUES,
    OPAQUE,
    RETURNS,
    STAYS,
    Frame,
    Key,
    Memory,
    Opaque,
    Outcome,
    Pointer,
    RawAccess,
    RawBranch,
    Struct,
    Value,
)
from cudalint.analysis.values import ONE, ZERO, Atom, Geometry, Poly, Scope
from cudalint.semantics import ir
from cudalint.semantics.types import Type

if TYPE_CHECKING:
    from cudalint.semantics.program import Program

MAX_STEPS = 12_000
MAX_CALL_DEPTH = 12
VECTOR_BYTES = 16
POINTER_ALIGNMENT = 256
PARAMETER_SAMPLES = (1000, 1024, 4096, 31, 32, 1)
BLOCK_SAMPLES = (0, 1, 2, 5, 3, 8)


class BudgetExceeded(Exception):
    """The kernel takes more steps than the budget allows."""


class Machine:
    """One run of one kernel for one block shape.  Use `run`, then read `accesses`, `branches`, `instructions`."""

    def __init__(self, program: Program, block: tuple[int, int, int], grid: tuple[int | None, int | None, int | None]) -> None:
        self.program = program
        self.geometry = Geometry(block)
        self.grid = grid
        self.accesses: list[RawAccess] = []
        self.branches: list[RawBranch] = []
        self.instructions = 0.0
        self.barriers = 0.0
        self.incomplete = ""
        self.env: dict[Key, Value] = {}
        self.conditions: list[Poly] = []
        self.frames: list[Frame] = []
        self.recording = True
        self.weight = 1.0
        self.counted = True
        self.steps = 0
        self.memories: dict[ir.Symbol, Memory] = {}
        self.offsets: dict[ir.Symbol, dict[int, None]] = {}
        self.specials: dict[str, Poly] = {}
        self.escaped: set[Memory] = set()
        self.segments: dict[object, tuple[int, int]] = {}
        self.fences = 0

    # ------------------------------------------------------------------ run

    def run(self, kernel: ir.Function) -> None:
        """Runs the kernel; an exceeded budget leaves what was recorded so far and says so in `incomplete`."""
        for symbol in kernel.params:
            self.bind(symbol, self.parameter(symbol))
        self.frames.append(Frame(kernel))
        try:
            self.block(kernel.body)
        except BudgetExceeded:
            self.incomplete = f"more than {MAX_STEPS} evaluation steps"
        except RecursionError:
            self.incomplete = "nested too deeply"

    def parameter(self, symbol: ir.Symbol) -> Value:
        """The value of a kernel parameter: the same for the whole grid."""
        value = self.unknown(symbol.name, symbol.type, Scope.GRID, POINTER_ALIGNMENT)
        if isinstance(value, Pointer):
            unit = self.program.unit(symbol.path)
            value.memory.restrict = unit is not None and b"restrict" in unit.source.data[symbol.start : symbol.end]
        return value

    def bind(self, symbol: ir.Symbol, value: Value) -> None:
        """Gives a declared variable its first value."""
        if symbol.space == "register":
            self.env[symbol] = value
        elif symbol.space == "local":
            self.store_local(symbol, ZERO, value, symbol.type)

    @contextmanager
    def under(self, condition: Poly) -> Iterator[None]:
        """Runs what is inside for the lanes where the condition holds."""
        self.conditions.append(condition)
        try:
            yield
        finally:
            self.conditions.pop()

    # ------------------------------------------------------------- statements

    def block(self, block: ir.Block) -> Outcome:
        """Statements in order; those after a partial exit run for the lanes that stayed."""
        outcome = STAYS
        pushed = 0
        for statement in block.body:
            happened = STATEMENTS[type(statement)](self, statement)
            if happened is STAYS:
                continue
            outcome = outcome.then(happened)
            left = happened.left
            if left.constant == 1:
                break
            if left.terms:
                self.conditions.append(ops.negated(left))
                pushed += 1
        if pushed:
            del self.conditions[-pushed:]
        return outcome

    def declare(self, statement: ir.Declare) -> Outcome:
        symbol = statement.symbol
        if symbol.space == "shared":
            return STAYS
        if statement.init is None:
            if symbol.space == "register":
                self.env[symbol] = self.unknown(symbol.name, symbol.type, Scope.GRID)
            else:
                self.forget(symbol, Scope.GRID)
            return STAYS
        self.bind(symbol, self.converted(self.eval(statement.init), symbol.type))
        return STAYS

    def evaluate(self, statement: ir.Evaluate) -> Outcome:
        self.eval(statement.expr)
        return STAYS

    def nested(self, statement: ir.Block) -> Outcome:
        return self.block(statement)

    def branch(self, statement: ir.If) -> Outcome:
        condition = self.condition(statement.condition)
        self.record_branch(statement.condition, condition)
        if (known := condition.constant) is not None:
            if known:
                return self.block(statement.then)
            return self.block(statement.other) if statement.other else STAYS
        before = self.env
        self.env = dict(before)
        depth = len(self.conditions)
        self.conditions.append(condition)
        first = self.block(statement.then)
        del self.conditions[depth:]
        after_then = self.env
        self.env = dict(before)
        second = STAYS
        if statement.other:
            self.conditions.append(ops.negated(condition))
            second = self.block(statement.other)
            del self.conditions[depth:]
        self.env = self.merged(condition, after_then, self.env, first, second)
        return first.under(condition).joined(second.under(ops.negated(condition)))

    def merged(
        self, condition: Poly, then: dict[Key, Value], other: dict[Key, Value], first: Outcome, second: Outcome
    ) -> dict[Key, Value]:
        """What variables hold after both arms; an arm that nobody leaves by its end does not count."""
        if first is not STAYS and first.left.constant == 1:
            return other
        if second is not STAYS and second.left.constant == 1:
            return then
        result = dict(other)
        for key, value in then.items():
            before = other.get(key)
            if before is not value:
                result[key] = value if before is None else self.choose(condition, value, before)
        return result

    def choose(self, condition: Poly, then: Value, other: Value) -> Value:
        """`condition ? then : other` for any values."""
        if then is other:
            return then
        if isinstance(then, Poly) and isinstance(other, Poly):
            return ops.select(condition, then, other)
        if isinstance(then, Pointer) and isinstance(other, Pointer):
            if then.memory is other.memory:
                return Pointer(then.memory, ops.select(condition, then.offset, other.offset))
            space = then.memory.space if then.memory.space == other.memory.space else "unknown"
            scope = max(condition.scope, then.scope, other.scope)
            name = then.memory.name if then.memory.name == other.memory.name else f"{then.memory.name}/{other.memory.name}"
            if then.offset.key == other.offset.key and space != "unknown":
                alignment = min(then.memory.alignment, other.memory.alignment)
                either = max(condition.scope, then.memory.scope, other.memory.scope)
                return Pointer(Memory(name, space, either, alignment), then.offset)
            return self.unknown_pointer(name, scope, space)
        if isinstance(then, Struct) and isinstance(other, Struct):
            scope = max(condition.scope, then.rest, other.rest)
            shared = then.fields.keys() & other.fields.keys()
            return Struct({o: self.choose(condition, then.fields[o], other.fields[o]) for o in sorted(shared)}, scope)
        return OPAQUE[max(condition.scope, then.scope, other.scope)]

    def switch(self, statement: ir.Switch) -> Outcome:
        value = self.poly(self.eval(statement.value))
        outcome = STAYS
        nobody_yet = ONE
        before = self.env
        result: dict[Key, Value] | None = None
        falling: Poly = ZERO
        for labels, body in statement.cases:
            hit = ZERO
            for label in labels:
                hit = ops.either(hit, ops.equal(value, self.poly(self.eval(label))))
            condition = nobody_yet if not labels else hit
            nobody_yet = ops.both(nobody_yet, ops.negated(hit))
            condition = ops.either(condition, falling)
            if condition.constant == 0:
                continue
            self.record_branch(statement.value, condition)
            self.env = dict(before)
            with self.under(condition):
                happened = self.block(body)
            falling = ZERO if happened.left.constant == 1 else condition
            result = self.env if result is None else self.merged(condition, self.env, result, STAYS, STAYS)
            outcome = outcome.joined(Outcome(returned=happened.returned, continued=happened.continued).under(condition))
            if condition.constant == 1:
                break
        else:
            if result is not None and nobody_yet.constant != 0:
                result = self.merged(nobody_yet, before, result, STAYS, STAYS)
        self.env = before if result is None else result
        return STAYS if outcome.returned is None and outcome.continued is None else outcome

    def loop(self, statement: ir.Loop) -> Outcome:
        from cudalint.analysis.loops import run_loop

        return run_loop(self, statement)

    def leave(self, statement: ir.Return) -> Outcome:
        value = self.eval(statement.value) if statement.value is not None else None
        if value is not None and self.frames:
            self.frames[-1].returned.append((ops.conjunction(self.conditions[self.frames[-1].depth :]), value))
        return RETURNS

    # ------------------------------------------------------------ expressions

    def eval(self, expr: ir.Expr) -> Value:
        """The value of an expression; its accesses are recorded."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise BudgetExceeded
        return EXPRESSIONS[type(expr)](self, expr)

    def poly(self, value: Value) -> Poly:
        """A value as an integer."""
        if isinstance(value, Poly):
            return value
        if isinstance(value, Pointer):
            return value.offset if value.offset.terms else ONE
        return self.fresh("value", value.scope)

    def fresh(self, name: str, scope: Scope, type_: Type | None = None, samples: tuple[int, ...] = PARAMETER_SAMPLES) -> Poly:
        """An unknown integer."""
        lo, hi = integer_range(type_) if type_ is not None else (None, None)
        return v.of(Atom(name, scope, data=scope is Scope.LANE, lo=lo, hi=hi, samples=samples))

    def unknown(self, name: str, type_: Type, scope: Scope, alignment: int = 1) -> Value:
        """An unknown value of a type."""
        if type_.kind == "pointer":
            return self.unknown_pointer(name, scope, "global", alignment)
        if type_.is_integer:
            return self.fresh(name, scope, type_)
        return OPAQUE[scope]

    def unknown_pointer(self, name: str, scope: Scope, space: ir.Space, alignment: int = 1) -> Pointer:
        """A pointer to something unknown."""
        return Pointer(Memory(name, space, scope, alignment), ZERO)

    def condition(self, expr: ir.Expr) -> Poly:
        """An expression as a condition: 1 where it holds."""
        value = self.eval(expr)
        if isinstance(value, Poly):
            return ops.truth(value)
        if isinstance(value, Pointer):
            return ONE if value.memory.symbol is not None else self.fresh_condition(value.scope)
        return self.fresh_condition(value.scope)

    def fresh_condition(self, scope: Scope) -> Poly:
        """An undecided condition."""
        return v.of(Atom("condition", scope, data=scope is Scope.LANE, lo=0, hi=1, samples=(1,)))

    def constant(self, expr: ir.Const) -> Value:
        if isinstance(expr.value, float):
            return OPAQUE[Scope.GRID]
        if -v.INT_LIMIT < expr.value < v.INT_LIMIT:
            return v.const(expr.value)
        return self.fresh("constant", Scope.GRID)

    def variable(self, expr: ir.Var) -> Value:
        value = self.env.get(expr.symbol)
        if value is None:
            value = self.unknown(expr.symbol.name, expr.symbol.type, Scope.GRID, POINTER_ALIGNMENT)
            self.env[expr.symbol] = value
        return value

    def special(self, expr: ir.Special) -> Value:
        value = self.specials.get(expr.name)
        if value is None:
            value = self.specials[expr.name] = self.special_value(expr.name)
        return value

    def special_value(self, name: str) -> Poly:
        """A special register in every lane."""
        import numpy as np

        register, _, axis = name.partition(".")
        index = "xyz".find(axis) if axis else 0
        if register == "tid":
            return self.geometry.tid[index]
        if register == "ntid":
            return v.const(self.geometry.block[index])
        if register == "warpsize":
            return v.const(v.WARP)
        lanes = np.arange(self.geometry.warps * v.WARP, dtype=np.int64)
        if register == "laneid":
            return self.geometry.known(lanes % v.WARP, "laneid")
        if register == "warpid":
            return self.geometry.known(lanes // v.WARP, "warpid")
        extent = self.grid[index]
        if register == "nctaid":
            if extent is not None:
                return v.const(extent)
            return v.of(Atom(f"gridDim.{axis}", Scope.GRID, lo=1, samples=(64, 100, 1000)))
        if extent == 1:
            return ZERO
        hi = None if extent is None else extent - 1
        samples = tuple(s for s in BLOCK_SAMPLES if hi is None or s <= hi)
        return v.of(Atom(f"blockIdx.{axis}", Scope.BLOCK, lo=0, hi=hi, samples=samples))

    def unary(self, expr: ir.Unary) -> Value:
        self.count(1)
        if expr.op == "!":
            return ops.negated(self.condition(expr.operand))
        value = self.eval(expr.operand)
        if not isinstance(value, Poly) or not expr.type.is_integer:
            return OPAQUE[value.scope]
        return -value if expr.op == "-" else -value - ONE if expr.op == "~" else value

    def binary(self, expr: ir.Binary) -> Value:
        op = expr.op
        if op == "&&" or op == "||":
            return self.logical(expr)
        left = self.eval(expr.left)
        right = self.eval(expr.right)
        self.count(1)
        if isinstance(left, Poly) and isinstance(right, Poly):
            action = INTEGER.get(op)
            if action is not None:
                return action(left, right)
        if op == ",":
            return right
        if isinstance(left, Pointer) and isinstance(right, Pointer):
            return self.pointers(op, left, right, expr)
        scope = max(left.scope, right.scope)
        if op in COMPARISONS:
            return self.fresh_condition(scope)
        return self.fresh("value", scope, expr.type) if expr.type.is_integer else OPAQUE[scope]

    def pointers(self, op: str, left: Pointer, right: Pointer, expr: ir.Binary) -> Value:
        """Comparison and difference of pointers."""
        if left.memory is not right.memory:
            scope = max(left.scope, right.scope)
            return self.fresh_condition(scope) if op in COMPARISONS else self.fresh("distance", scope)
        if op == "ptrdiff":
            element = expr.left.type.element
            size = element.size if element is not None and element.size else 1
            return ops.divide(left.offset - right.offset, v.const(size))
        action = INTEGER.get(op)
        return action(left.offset, right.offset) if action is not None else OPAQUE[max(left.scope, right.scope)]

    def logical(self, expr: ir.Binary) -> Value:
        left = self.condition(expr.left)
        self.record_branch(expr.left, left)
        shortcut = ZERO if expr.op == "&&" else ONE
        if left.key == shortcut.key:
            return left
        gate = left if expr.op == "&&" else ops.negated(left)
        if gate.constant == 1:
            return self.condition(expr.right)
        with self.under(gate):
            right = self.condition(expr.right)
        return ops.both(left, right) if expr.op == "&&" else ops.either(left, right)

    def conditional(self, expr: ir.Select) -> Value:
        condition = self.condition(expr.condition)
        self.count(1)
        if (known := condition.constant) is not None:
            return self.eval(expr.then if known else expr.other)
        with self.under(condition):
            then = self.converted(self.eval(expr.then), expr.type)
        with self.under(ops.negated(condition)):
            other = self.converted(self.eval(expr.other), expr.type)
        return self.choose(condition, then, other)

    def cast(self, expr: ir.Cast) -> Value:
        return self.converted(self.eval(expr.operand), expr.type, expr.operand.type)

    def converted(self, value: Value, to: Type, source: Type | None = None) -> Value:
        """The value after conversion to a type."""
        if isinstance(value, Poly):
            if to.kind == "float":
                return OPAQUE[value.scope]
            if to.kind == "bool":
                return ops.truth(value)
            if to.is_integer:
                return narrowed(value, to)
            if to.kind == "pointer":
                return self.unknown_pointer("pointer", value.scope, "global")
            return value
        if isinstance(value, Opaque) and to.is_integer:
            return self.fresh("value", value.scope, to)
        if isinstance(value, Opaque) and to.kind == "pointer":
            return self.unknown_pointer("pointer", value.scope, "global")
        return value

    # ----------------------------------------------------------------- memory

    def memory(self, symbol: ir.Symbol) -> Memory:
        """The memory of a declared array, struct or address-taken variable."""
        found = self.memories.get(symbol)
        if found is None:
            scope = {"shared": Scope.BLOCK, "local": Scope.GRID}.get(symbol.space, Scope.GRID)
            alignment = POINTER_ALIGNMENT if symbol.space in ("global", "constant", "shared") else symbol.type.align
            found = self.memories[symbol] = Memory(symbol.name, symbol.space, scope, alignment, symbol)
        return found

    def base(self, expr: ir.Base) -> Value:
        return Pointer(self.memory(expr.symbol), ZERO)

    def pointer(self, expr: ir.Expr) -> Pointer:
        """An expression as a pointer."""
        value = self.eval(expr)
        if isinstance(value, Pointer):
            return value
        return self.unknown_pointer("pointer", value.scope, "unknown" if isinstance(value, Poly) else "global")

    def pointer_add(self, expr: ir.PtrAdd) -> Value:
        pointer = self.pointer(expr.pointer)
        index = self.poly(self.eval(expr.index))
        self.count(1)
        if expr.stride is None:
            if not index.terms:
                return pointer
            return Pointer(pointer.memory, pointer.offset + self.fresh("offset", max(index.scope, pointer.scope)))
        offset = pointer.offset + index.scaled(expr.stride)
        align = expr.type.element.align if expr.type.element is not None else 1
        return Pointer(pointer.memory, offset, (*pointer.steps, (index, expr.stride)), offset, align)

    def field_pointer(self, expr: ir.FieldPtr) -> Value:
        pointer = self.pointer(expr.pointer)
        if expr.offset is None:
            return Pointer(pointer.memory, pointer.offset + self.fresh("field", Scope.GRID))
        if not expr.offset:
            return pointer
        return moved(pointer, expr.offset)

    def load(self, expr: ir.Load) -> Value:
        pointer = self.pointer(expr.pointer)
        if pointer.memory.space == "local":
            return self.load_local(pointer, expr.type)
        self.record_access(expr, "load", pointer, expr.type)
        return self.loaded(pointer, expr.type)

    def loaded(self, pointer: Pointer, type_: Type) -> Value:
        """What comes from memory is as uniform as its address."""
        scope = max(pointer.scope, Scope.BLOCK) if pointer.memory.space == "shared" else pointer.scope
        return self.unknown(f"{pointer.memory.name}[]", type_, scope, max(1, type_.element.align if type_.element else 1))

    def load_local(self, pointer: Pointer, type_: Type) -> Value:
        symbol = pointer.memory.symbol
        if symbol is None:
            return self.unknown("local", type_, Scope.LANE)
        at = pointer.offset.constant
        if at is None:
            return self.unknown(symbol.name, type_, self.worst_scope(symbol, pointer.scope))
        if type_.kind == "struct":
            size = type_.size or 0
            fields = {o - at: f for o, f in self.local_slots(symbol) if at <= o < at + size}
            rest = self.env.get((symbol, None), OPAQUE[Scope.LANE]).scope
            return Struct(fields, rest)
        value = self.env.get((symbol, at))
        if value is None:
            rest = self.env.get((symbol, None), OPAQUE[Scope.LANE]).scope
            value = self.unknown(f"{symbol.name}[]", type_, rest, POINTER_ALIGNMENT if symbol.parameter else 1)
            self.keep(symbol, at, value)
        return value

    def keep(self, symbol: ir.Symbol, at: int, value: Value) -> None:
        """Notes the value of a local variable's bytes from offset `at`."""
        self.env[(symbol, at)] = value
        self.offsets.setdefault(symbol, {})[at] = None

    def local_slots(self, symbol: ir.Symbol) -> list[tuple[int, Value]]:
        """What is known of the contents of a local variable, by byte offset."""
        env = self.env
        return [(o, env[symbol, o]) for o in self.offsets.get(symbol, ()) if (symbol, o) in env]

    def worst_scope(self, symbol: ir.Symbol, scope: Scope) -> Scope:
        """Uniformity of an element of a local array at an unknown index."""
        values = [value for _, value in self.local_slots(symbol)]
        rest = self.env.get((symbol, None))
        return max([scope, *(x.scope for x in values), *([rest.scope] if rest is not None else [])])

    def store_local(self, symbol: ir.Symbol, offset: Poly, value: Value, type_: Type) -> None:
        """Keeps what was stored to a local variable at a constant offset; forgets it all at an unknown one."""
        at = offset.constant
        if at is None:
            self.forget(symbol, max(offset.scope, value.scope, self.worst_scope(symbol, value.scope)))
        elif isinstance(value, Struct):
            for o, f in value.fields.items():
                self.keep(symbol, at + o, f)
            self.env[(symbol, None)] = OPAQUE[max(value.rest, self.env.get((symbol, None), OPAQUE[Scope.GRID]).scope)]
        elif type_.kind in ("struct", "array"):
            size = type_.size or 0
            for o, _ in self.local_slots(symbol):
                if at <= o < at + size:
                    del self.env[(symbol, o)]
            self.env[(symbol, None)] = OPAQUE[max(value.scope, self.env.get((symbol, None), OPAQUE[Scope.GRID]).scope)]
        else:
            self.keep(symbol, at, value)

    def forget(self, symbol: ir.Symbol, scope: Scope) -> None:
        """All of a local variable becomes unknown."""
        for o, _ in self.local_slots(symbol):
            del self.env[(symbol, o)]
        self.env[(symbol, None)] = OPAQUE[scope]

    def assign(self, expr: ir.Assign) -> Value:
        if not expr.memory and isinstance(expr.target, ir.Var):
            symbol = expr.target.symbol
            old = self.env.get(symbol)
            new = self.converted(self.eval(expr.value), symbol.type)
            self.env[symbol] = new
            return new if not expr.post or old is None else old
        value = self.eval(expr.value)
        pointer = self.pointer(expr.target)
        self.write(expr, pointer, value, expr.target.type.element or expr.type)
        return value

    def write(self, at: ir.Expr, pointer: Pointer, value: Value, type_: Type) -> None:
        """A store of a value of `type_` through a pointer."""
        if pointer.memory.space != "local":
            self.record_access(at, "store", pointer, type_)
        elif pointer.memory.symbol is not None:
            self.store_local(pointer.memory.symbol, pointer.offset, self.converted(value, type_), type_)

    def construct(self, expr: ir.Construct) -> Value:
        args = [self.eval(a) for a in expr.args]
        scope = max((a.scope for a in args), default=Scope.GRID)
        if expr.type.kind == "array" and expr.type.element is not None and expr.type.element.size:
            size = expr.type.element.size
            return Struct({i * size: self.converted(a, expr.type.element) for i, a in enumerate(args)}, scope)
        if not expr.type.fields:
            return OPAQUE[scope]
        fields: dict[int, Value] = {}
        for member, a in zip(expr.type.fields, args, strict=False):
            at = member.offset or 0
            if isinstance(a, Struct) and member.type.kind in ("struct", "array"):
                fields.update({at + o: x for o, x in a.fields.items()})
            else:
                fields[at] = self.converted(a, member.type)
        if not args:
            fields = {f.offset or 0: ZERO for f in expr.type.fields if f.type.is_integer}
        return Struct(fields, scope)

    def field_value(self, expr: ir.FieldValue) -> Value:
        value = self.eval(expr.operand)
        if isinstance(value, Struct):
            if expr.type.kind == "struct":
                at, size = expr.offset or 0, expr.type.size or 0
                return Struct({o - at: f for o, f in value.fields.items() if at <= o < at + size}, value.rest)
            if expr.offset is not None and expr.offset in value.fields:
                return value.fields[expr.offset]
            return self.unknown(expr.name, expr.type, value.rest)
        return self.unknown(expr.name, expr.type, value.scope)

    def call(self, expr: ir.Call) -> Value:
        from cudalint.analysis.calls import run_call

        return run_call(self, expr)

    def lambda_(self, expr: ir.Lambda) -> Value:
        return OPAQUE[Scope.GRID]

    def assembly(self, expr: ir.Asm) -> Value:
        from cudalint.analysis.calls import run_asm

        return run_asm(self, expr)

    def unmodelled(self, expr: ir.Unknown) -> Value:
        scope = max((self.eval(p).scope for p in expr.parts), default=Scope.LANE)
        return self.unknown("value", expr.type, scope if expr.parts else Scope.LANE)

    # -------------------------------------------------------------- recording

    def count(self, instructions: float) -> None:
        """Counts warp instructions of the block."""
        if self.recording:
            self.instructions += instructions * self.weight

    def record_access(self, at: ir.Expr, op: str, pointer: Pointer, type_: Type) -> None:
        """Records an access; a struct that no single instruction can move is moved piece by piece."""
        size = type_.size
        if not self.recording or pointer.memory.space == "local" or not size:
            return
        piece = min(type_.align, VECTOR_BYTES) if type_.kind in ("struct", "array") or size > VECTOR_BYTES else size
        path = self.frames[-1].function.path
        segment = self.segment(pointer.memory, op)
        conditions = tuple(self.conditions)
        for offset in range(0, min(size, 4096), piece):
            self.count(1)
            place = pointer if not offset else moved(pointer, offset)
            where = (path, at.start, at.end)
            self.accesses.append(RawAccess(*where, op, place, piece, piece, conditions, self.weight, self.counted, segment))

    def segment(self, memory: Memory, op: str) -> int:
        """Accesses with the same number have nothing between them that may touch the same memory and matter."""
        home = memory.home
        loads, stores = self.segments.get(home, (0, 0))
        if op == "load":
            self.segments[home] = (loads, stores + 1)
            return self.fences + loads
        if op == "store":
            self.segments[home] = (loads + 1, stores)
            return self.fences + stores
        self.segments[home] = (loads + 1, stores + 1)
        return self.fences + stores

    def fence(self) -> None:
        """Nothing is joined across a barrier or a call of something unknown."""
        self.fences += 1 << 32

    def record_branch(self, at: ir.Expr, condition: Poly) -> None:
        """Records a condition that something hangs on."""
        if self.recording:
            self.count(1)
            path = self.frames[-1].function.path
            self.branches.append(RawBranch(path, at.start, at.end, condition, tuple(self.conditions), self.weight))


COMPARISONS = frozenset(("<", ">", "<=", ">=", "==", "!="))
INTEGER: dict[str, Callable[[Poly, Poly], Poly]] = {
    "+": Poly.__add__,
    "-": Poly.__sub__,
    "*": Poly.__mul__,
    "/": ops.divide,
    "%": ops.remainder,
    "<<": ops.shift_left,
    ">>": ops.shift_right,
    "&": ops.bit_and,
    "|": ops.bit_or,
    "^": ops.bit_xor,
    "min": ops.minimum,
    "max": ops.maximum,
    "<": ops.less,
    ">": lambda a, b: ops.less(b, a),
    "<=": lambda a, b: ops.negated(ops.less(b, a)),
    ">=": lambda a, b: ops.negated(ops.less(a, b)),
    "==": ops.equal,
    "!=": lambda a, b: ops.negated(ops.equal(a, b)),
}

STATEMENTS: dict[type, Callable[[Machine, Any], Outcome]] = {
    ir.Block: Machine.nested,
    ir.Declare: Machine.declare,
    ir.Evaluate: Machine.evaluate,
    ir.If: Machine.branch,
    ir.Loop: Machine.loop,
    ir.Switch: Machine.switch,
    ir.Break: lambda machine, statement: BREAKS,
    ir.Continue: lambda machine, statement: CONTINUES,
    ir.Return: Machine.leave,
}

EXPRESSIONS: dict[type, Callable[[Machine, Any], Value]] = {
    ir.Const: Machine.constant,
    ir.Var: Machine.variable,
    ir.Special: Machine.special,
    ir.Unary: Machine.unary,
    ir.Binary: Machine.binary,
    ir.Select: Machine.conditional,
    ir.Cast: Machine.cast,
    ir.Base: Machine.base,
    ir.PtrAdd: Machine.pointer_add,
    ir.FieldPtr: Machine.field_pointer,
    ir.Load: Machine.load,
    ir.Assign: Machine.assign,
    ir.Construct: Machine.construct,
    ir.FieldValue: Machine.field_value,
    ir.Call: Machine.call,
    ir.Lambda: Machine.lambda_,
    ir.Asm: Machine.assembly,
    ir.Unknown: Machine.unmodelled,
}


def moved(pointer: Pointer, offset: int) -> Pointer:
    """The pointer, some bytes on."""
    steps = (*pointer.steps, (v.const(offset), 1))
    return Pointer(pointer.memory, pointer.offset + v.const(offset), steps, pointer.anchor, pointer.alignment)


def integer_range(type_: Type) -> tuple[int | None, int | None]:
    """Bounds of an unknown value of a type; 32 bits and more count as unbounded above, so that sums stay sums."""
    if type_.kind == "bool":
        return 0, 1
    if type_.size is None or type_.size > 2:
        return (0, None) if type_.kind == "uint" else (None, None)
    bits = type_.size * 8
    return (0, (1 << bits) - 1) if type_.kind == "uint" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def narrowed(value: Poly, to: Type) -> Poly:
    """Conversion to a narrower or unsigned integer, where the value is known to need it."""
    if to.size is None or to.size > 4 or (to.size == 4 and (to.kind == "int" or value.symbols)):
        return value
    lo, hi = value.range
    if lo is None or hi is None:
        return value
    bits = to.size * 8
    low, high = (0, (1 << bits) - 1) if to.kind == "uint" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    if low <= lo and hi <= high:
        return value
    return v.operation("zext" if to.kind == "uint" else "sext", value, v.const(bits))
