"""Calls: device functions run in their caller's terms, intrinsics by table, everything else opaque."""

from __future__ import annotations

from collections.abc import Callable

from cudalint.analysis import arithmetic as ops
from cudalint.analysis import values as v
from cudalint.analysis.machine import MAX_CALL_DEPTH, Machine
from cudalint.analysis.state import OPAQUE, Frame, Pointer, Value
from cudalint.analysis.values import ZERO, Poly, Scope
from cudalint.semantics import ir
from cudalint.semantics.lower import lower
from cudalint.semantics.types import Type

BARRIERS = frozenset(("__syncthreads", "__syncthreads_count", "__syncthreads_and", "__syncthreads_or"))
_ATOMIC = ("Add", "Sub", "Exch", "Min", "Max", "Inc", "Dec", "CAS", "And", "Or", "Xor")
ATOMICS = frozenset((*(f"atomic{op}" for op in _ATOMIC), "unsafeAtomicAdd"))
_VOTE = ("any", "all", "ballot", "uni")
WARP_UNIFORM = frozenset(
    (
        *(f"__{vote}_sync" for vote in _VOTE),
        *(f"__{vote}" for vote in _VOTE),
        *(f"__reduce_{op}_sync" for op in ("add", "min", "max", "and", "or", "xor")),
        "__activemask",
    )
)
_SHUFFLE = ("__shfl", "__shfl_xor", "__shfl_up", "__shfl_down")
SHUFFLES = frozenset((*_SHUFFLE, *(f"{name}_sync" for name in _SHUFFLE)))
BITS: dict[str, str] = {"__ffs": "ffs", "__popc": "popc", "__clz": "clz", "__brev": "brev", "__popcll": "popc"}
PASS_THROUGH = frozenset(
    (
        "__cvta_generic_to_shared",
        "__cvta_generic_to_global",
        "__cvta_shared_to_generic",
        "__builtin_assume_aligned",
    )
)
COPIES = frozenset(("memcpy", "__builtin_memcpy", "std::memcpy"))


def run_call(machine: Machine, expr: ir.Call) -> Value:
    """The value of a call."""
    if isinstance(expr.function, ir.Lambda):
        return _run_lambda(machine, expr, expr.function)
    receiver = machine.eval(expr.receiver) if expr.receiver is not None else None
    args = [machine.eval(a) for a in expr.args]
    if expr.function is not None:
        result = _run_function(machine, expr, expr.function, receiver, args)
        if result is not None:
            return result
    machine.count(1)
    action = INTRINSICS.get(expr.name)
    if action is not None:
        return action(machine, expr, args)
    return _opaque(machine, expr, args, receiver)


def _run_function(
    machine: Machine, expr: ir.Call, reference: ir.FunctionRef, receiver: Value | None, args: list[Value]
) -> Value | None:
    if len(machine.frames) > MAX_CALL_DEPTH or any(f.function.reference == reference for f in machine.frames[-3:]):
        return None
    function = lower(reference, machine.program)
    if function is None:
        return None
    for symbol, value in zip(function.params, args, strict=False):
        machine.bind(symbol, machine.converted(value, symbol.type))
    if function.this is not None and receiver is not None:
        machine.env[function.this] = receiver
    frame = Frame(function, len(machine.conditions))
    machine.frames.append(frame)
    try:
        machine.block(function.body)
    finally:
        machine.frames.pop()
    return _returned(machine, frame, expr.type)


def _run_lambda(machine: Machine, expr: ir.Call, function: ir.Lambda) -> Value:
    args = [machine.eval(a) for a in expr.args]
    for symbol, value in zip(function.params, args, strict=False):
        machine.bind(symbol, machine.converted(value, symbol.type))
    frame = Frame(machine.frames[-1].function, len(machine.conditions))
    if len(machine.frames) > MAX_CALL_DEPTH:
        return machine.unknown(expr.name, expr.type, Scope.LANE)
    machine.frames.append(frame)
    try:
        machine.block(function.body)
    finally:
        machine.frames.pop()
    return _returned(machine, frame, expr.type)


def _returned(machine: Machine, frame: Frame, type_: Type) -> Value:
    """The value of a function with several returns: the one whose condition holds."""
    if not frame.returned:
        return OPAQUE[Scope.GRID]
    result = frame.returned[-1][1]
    for condition, value in reversed(frame.returned[:-1]):
        result = machine.choose(condition, value, result)
    return machine.converted(result, frame.function.returns if frame.function.returns.kind != "unknown" else type_)


def _opaque(machine: Machine, expr: ir.Call, args: list[Value], receiver: Value | None = None) -> Value:
    """A call of something unknown: as uniform as its arguments, and it may write what its pointers reach."""
    scope = max((a.scope for a in args), default=Scope.LANE)
    for arg in (*args, receiver):
        if not isinstance(arg, Pointer):
            continue
        machine.escaped.add(arg.memory)
        machine.fence()
        if arg.memory.space == "local" and arg.memory.symbol is not None:
            scope = max(scope, machine.worst_scope(arg.memory.symbol, Scope.GRID))
            machine.forget(arg.memory.symbol, Scope.LANE)
    if receiver is not None:
        scope = Scope.LANE
    return machine.unknown(expr.name, expr.type, scope)


def _barrier(machine: Machine, expr: ir.Call, _args: list[Value]) -> Value:
    machine.fence()
    if machine.recording:
        machine.barriers += machine.weight
    return machine.unknown(expr.name, expr.type, Scope.BLOCK)


def _atomic(machine: Machine, expr: ir.Call, args: list[Value]) -> Value:
    if args and isinstance(args[0], Pointer):
        pointee = expr.args[0].type.element
        machine.record_access(expr, "atomic", args[0], pointee if pointee is not None and pointee.size else _WORD)
        if args[0].memory.space == "local" and args[0].memory.symbol is not None:
            machine.forget(args[0].memory.symbol, Scope.LANE)
    return machine.unknown(expr.name, expr.type, Scope.LANE)


def _shuffle(machine: Machine, expr: ir.Call, args: list[Value]) -> Value:
    """A shuffle of a uniform value is that value; one from a fixed lane is uniform in the warp."""
    masked = expr.name.endswith("_sync")
    operands = args[1:] if masked else args
    if not operands:
        return machine.unknown(expr.name, expr.type, Scope.LANE)
    value = operands[0]
    if value.scope < Scope.LANE:
        return value
    broadcast = expr.name in ("__shfl_sync", "__shfl") and len(operands) == 2 and operands[1].scope < Scope.LANE
    if broadcast and isinstance(value, Poly) and isinstance(operands[1], Poly) and not value.symbols and not value.data:
        lane = operands[1].constant
        if lane is not None and 0 <= lane < v.WARP:
            rows = machine.geometry.lanes(value).reshape(-1, v.WARP)
            return machine.geometry.known(rows[:, lane].repeat(v.WARP))
    return machine.unknown(expr.name, expr.type, Scope.WARP if broadcast else Scope.LANE)


def _warp_uniform(machine: Machine, expr: ir.Call, _args: list[Value]) -> Value:
    return machine.unknown(expr.name, expr.type, Scope.WARP)


def _bits(machine: Machine, expr: ir.Call, args: list[Value]) -> Value:
    if len(args) == 1 and isinstance(args[0], Poly):
        return v.operation(BITS[expr.name], args[0])
    return _opaque(machine, expr, args)


def _absolute(machine: Machine, expr: ir.Call, args: list[Value]) -> Value:
    if len(args) == 1 and isinstance(args[0], Poly) and expr.type.is_integer:
        return ops.select(ops.less(args[0], ZERO), -args[0], args[0])
    return _opaque(machine, expr, args)


def _first(_machine: Machine, _expr: ir.Call, args: list[Value]) -> Value:
    return args[0] if args else OPAQUE[Scope.GRID]


def _copy(machine: Machine, expr: ir.Call, args: list[Value]) -> Value:
    """memcpy of a few bytes is one load and one store."""
    if len(args) != 3 or not isinstance(args[0], Pointer) or not isinstance(args[1], Pointer):
        return _opaque(machine, expr, args)
    size = args[2].constant if isinstance(args[2], Poly) else None
    if size in (1, 2, 4, 8, 16):
        moved = Type("uint", size, size or 1, "bytes")
        machine.record_access(expr.args[1], "load", args[1], moved)
        machine.record_access(expr.args[0], "store", args[0], moved)
    if args[0].memory.space == "local" and args[0].memory.symbol is not None:
        machine.forget(args[0].memory.symbol, max(args[1].scope, Scope.GRID))
    return args[0]


def _fast_multiply(machine: Machine, expr: ir.Call, args: list[Value]) -> Value:
    if len(args) == 2 and isinstance(args[0], Poly) and isinstance(args[1], Poly):
        return args[0] * args[1]
    return _opaque(machine, expr, args)


_WORD = Type("int", 4, 4, "int")
Action = Callable[[Machine, ir.Call, list[Value]], Value]
INTRINSICS: dict[str, Action] = {
    **dict.fromkeys(BARRIERS, _barrier),
    **dict.fromkeys(ATOMICS, _atomic),
    **dict.fromkeys((f"{a}_{s}" for a in ATOMICS for s in ("block", "system")), _atomic),
    **dict.fromkeys(SHUFFLES, _shuffle),
    **dict.fromkeys(WARP_UNIFORM, _warp_uniform),
    **dict.fromkeys(BITS, _bits),
    **dict.fromkeys(PASS_THROUGH, _first),
    **dict.fromkeys(COPIES, _copy),
    **dict.fromkeys(("abs", "labs", "llabs"), _absolute),
    **dict.fromkeys(("__mul24", "__umul24"), _fast_multiply),
}


def run_asm(machine: Machine, expr: ir.Asm) -> Value:
    """Inline PTX: its outputs are as uniform as its inputs."""
    machine.count(1)
    inputs = [machine.eval(i) for i in expr.inputs]
    machine.escaped.update(i.memory for i in inputs if isinstance(i, Pointer))
    scope = max((i.scope for i in inputs), default=Scope.LANE)
    for output in expr.outputs:
        if isinstance(output, ir.Var):
            machine.env[output.symbol] = machine.unknown(output.symbol.name, output.symbol.type, scope)
            continue
        target = machine.eval(output)
        if isinstance(target, Pointer) and target.memory.space == "local" and target.memory.symbol is not None:
            machine.forget(target.memory.symbol, scope)
    return OPAQUE[scope]
