"""From a kernel to its facts: one run of the symbolic machine per launch shape and instantiation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from cudalint.analysis.facts import (
    Access,
    Block,
    Branch,
    KernelFacts,
    LaunchFacts,
    Operation,
    Padding,
    Request,
    SharedArray,
    Space,
    Work,
)
from cudalint.analysis.machine import Machine
from cudalint.analysis.measure import Counts, Measured, measure, rebased
from cudalint.analysis.state import Memory, RawAccess
from cudalint.analysis.values import WARP
from cudalint.analysis.vectors import joined
from cudalint.finding import Certainty, Location
from cudalint.semantics import ir
from cudalint.semantics.assumptions import assumed_block, launch_bounds
from cudalint.semantics.launches import Launch, launches_of
from cudalint.semantics.lower import lower
from cudalint.semantics.types import Type

if TYPE_CHECKING:
    from cudalint.semantics.program import Program
    from cudalint.semantics.symbols import FunctionDef

Bindings = tuple[tuple[str, object], ...]
MAX_THREADS = 1024
SAME_RATIO = 0.01
MAX_LAUNCHES = 5
DEFAULT_BLOCK: Block = (256, 1, 1)
PADDINGS = range(1, 9)
SPACES: dict[str, Space] = {"shared": "shared", "global": "global"}
OPERATIONS: dict[str, Operation] = {"load": "load", "store": "store", "atomic": "atomic"}
SIMPLE_LENGTH = re.compile(rb"[\w\s.:]+|[^()]*\([^()]*\)|[\w\s+]+")


def kernel_facts(kernel: FunctionDef, program: Program, *, assume_block: Block | None = None) -> list[KernelFacts]:
    """The facts of a kernel, one element per launch shape and instantiation.

    Without a launch in sight the block is assumed: from the kernel's launch bounds, a constant named like a block size,
    `assume_block`, or 256 threads; `LaunchFacts.assumed` says which.
    """
    found = launches_of(kernel, program)[:MAX_LAUNCHES]
    results = []
    for bindings, launch, block in _shapes(kernel, found, assume_block):
        function = lower(ir.FunctionRef(kernel, bindings), program)
        if function is not None and 0 < block[0] * block[1] * block[2] <= MAX_THREADS:
            results.append(_launch_facts(program, kernel, function, bindings, launch, block))
    return results


def _shapes(
    kernel: FunctionDef, launches: Sequence[Launch], assume_block: Block | None
) -> Iterable[tuple[Bindings, LaunchFacts, Block]]:
    """Instantiation, launch and block shape to evaluate, for each launch or for the one assumed."""
    for launch in launches:
        where = Location(launch.path, launch.start, launch.end)
        x, y, z = launch.block or (None, None, None)
        grid = launch.grid or (None, None, None)
        if x is not None and y is not None and z is not None:
            yield launch.bindings, LaunchFacts((x, y, z), grid, launch.dynamic_smem, where), (x, y, z)
            continue
        block, text = _assumed(kernel, launch.bindings, assume_block)
        filled = (x or block[0], y or (1 if x is not None else block[1]), z or 1)
        yield launch.bindings, LaunchFacts(None, grid, launch.dynamic_smem, where, text), filled
    if not launches:
        block, text = _assumed(kernel, (), assume_block)
        yield (), LaunchFacts(None, (None, None, None), None, None, text), block


def _assumed(kernel: FunctionDef, bindings: Bindings, assume_block: Block | None) -> tuple[Block, str]:
    found = assumed_block(kernel, bindings)
    if found is not None:
        return found
    if assume_block is not None:
        return assume_block, f"the block is {'x'.join(map(str, assume_block))} (assume-block)"
    return DEFAULT_BLOCK, "the block is 256 threads in x (no launch in sight; set assume-block)"


def _launch_facts(
    program: Program, kernel: FunctionDef, function: ir.Function, bindings: Bindings, launch: LaunchFacts, block: Block
) -> KernelFacts:
    """The facts of one lowered kernel for one block shape: the launch's, or the one assumed for it."""
    machine = Machine(program, block, launch.grid)
    machine.run(function)
    groups: dict[tuple[object, ...], list[RawAccess]] = {}
    machine.accesses = joined(machine.accesses)
    for raw in machine.accesses:
        memory = raw.pointer.memory
        if memory.space in SPACES:
            groups.setdefault((raw.path, raw.start, raw.end, memory.space, raw.op), []).append(raw)
    accesses = tuple(_access(machine, raws, bool(launch.assumed)) for raws in groups.values())
    return KernelFacts(
        name=kernel.name,
        instantiation=_instantiation(kernel, bindings),
        location=Location(kernel.path, kernel.start, kernel.header_end),
        launch=launch,
        launch_bounds=launch_bounds(kernel, bindings),
        static_smem=_static_smem(function, machine),
        accesses=accesses,
        branches=tuple(_branches(machine)),
        arrays=tuple(_arrays(machine)),
        work=_work(machine, accesses),
        incomplete=machine.incomplete,
    )


def _instantiation(kernel: FunctionDef, bindings: Bindings) -> str:
    """`turn<float, 32>`, or the plain name."""
    shown = [x.name if isinstance(x, Type) else str(x) for _, x in bindings if isinstance(x, (Type, int, float))]
    return f"{kernel.name}<{', '.join(shown)}>" if shown else kernel.name


class _Deferred:
    """Fields that are worked out when somebody first asks for one of them: most accesses are never looked at."""

    __slots__ = ()

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        for field, value in object.__getattribute__(self, "compute")().items():
            object.__setattr__(self, field, value)
        return object.__getattribute__(self, name)


class _DeferredAccess(_Deferred, Access):
    __slots__ = ("compute",)


class _DeferredWork(_Deferred, Work):
    __slots__ = ("compute",)


def _access(machine: Machine, raws: list[RawAccess], assumed: bool) -> Access:
    """One source access from all its recorded executions."""
    first = raws[0]
    memory = first.pointer.memory
    access = object.__new__(_DeferredAccess)
    for field, value in {
        "location": Location(first.path, first.start, first.end),
        "space": SPACES[memory.space],
        "op": OPERATIONS[first.op],
        "array": memory.name,
        "evidence": (),
        "compute": lambda: _counts(machine, raws, assumed),
    }.items():
        object.__setattr__(access, field, value)
    return access


def _counts(machine: Machine, raws: list[RawAccess], assumed: bool) -> dict[str, object]:
    """The measured fields of an access."""
    total = Counts()
    certainty = Certainty.LIKELY if assumed else Certainty.EXACT
    notes: dict[str, None] = {}
    complete = True
    size = raws[0].size
    for issued in raws:
        raw, measured = _as_written(machine, issued)
        size = min(size, raw.size)
        certainty = min(certainty, measured.certainty)
        notes.update(dict.fromkeys(measured.assumptions))
        if measured.counts is None:
            complete = False
        else:
            total = total.plus(measured.counts, raw.weight)
    shared = raws[0].pointer.memory.space == "shared"
    known = complete and total.requests > 0
    mean = total.wavefronts / total.requests if known else None
    ideal = total.ideal / total.requests if known else None
    return {
        "bytes_per_lane": size,
        "wavefronts": mean if shared else None,
        "ideal_wavefronts": ideal if shared else None,
        "sectors": None if shared else mean,
        "ideal_sectors": None if shared else ideal,
        "requests": total.requests if known and all(r.counted for r in raws) else None,
        "issued": total.requests if known else sum(r.weight for r in raws) * machine.geometry.warps,
        "worst": _worst(total, shared) if known else None,
        "certainty": certainty if complete else Certainty.POSSIBLE,
        "assumptions": tuple(notes),
    }


def _as_written(machine: Machine, raw: RawAccess) -> tuple[RawAccess, Measured]:
    """A vector access in the numbers of the source's elements, where joining them changes no ratio."""
    measured = measure(machine.geometry, raw)
    if raw.written is not None and measured.counts is not None:
        single = measure(machine.geometry, raw.written)
        if single.counts is not None and abs(single.counts.ratio - measured.counts.ratio) < SAME_RATIO:
            return raw.written, single
    return raw, measured


def _worst(total: Counts, shared: bool) -> Request:
    degree, number, ideal, active = total.worst
    lanes = [x for x in total.lanes if x is not None]
    strides = {b - a for a, b in pairwise(lanes)}
    return Request(
        active_lanes=active,
        degree=degree,
        wavefronts=number if shared else 0,
        ideal_wavefronts=ideal if shared else 0,
        sectors=0 if shared else number,
        ideal_sectors=0 if shared else ideal,
        lane_stride=strides.pop() if len(strides) == 1 else None,
        addresses=total.lanes,
    )


def _branches(machine: Machine) -> Iterable[Branch]:
    """Whether each condition splits warps, over all warps that evaluate it."""
    seen: dict[tuple[str, int, int], list[tuple[float, float, bool]]] = {}
    for raw in machine.branches:
        place = (raw.path, raw.start, raw.end)
        condition = raw.condition
        known = not condition.symbols and not condition.data
        if condition.constant is not None or condition.scope.value < 3:
            seen.setdefault(place, []).append((0.0, raw.weight, True))
        elif known and not any(c.symbols or c.data for c in raw.conditions):
            taken = machine.geometry.lanes(condition).reshape(-1, WARP) != 0
            active = machine.geometry.valid.copy()
            for c in raw.conditions:
                active &= machine.geometry.lanes(c) != 0
            rows = active.reshape(-1, WARP)
            running = rows.any(axis=1)
            split = ((taken & rows).any(axis=1) & (~taken & rows).any(axis=1))[running]
            if running.any():
                seen.setdefault(place, []).append((float(split.mean()) * raw.weight, raw.weight, True))
        else:
            seen.setdefault(place, []).append((0.0, raw.weight, False))
    for (path, start, end), parts in seen.items():
        if not all(known for _, _, known in parts):
            yield Branch(Location(path, start, end), "unknown", Certainty.POSSIBLE)
            continue
        weight = sum(w for _, w, _ in parts)  # 0 inside a loop that never runs
        share = sum(s for s, _, _ in parts) / weight if weight else 0.0
        yield Branch(Location(path, start, end), "yes" if share > 0.1 else "rarely" if share else "no", Certainty.EXACT)


def _static_smem(function: ir.Function, machine: Machine) -> int | None:
    sizes = [m.symbol.type.size for m in _shared(machine) if m.symbol is not None and not m.symbol.dynamic]
    sizes += [s.type.size for s in function.shared if s not in machine.memories and not s.dynamic]
    return None if None in sizes else sum(s for s in sizes if s is not None)


def _shared(machine: Machine) -> list[Memory]:
    return [m for m in machine.memories.values() if m.space == "shared"]


def _work(machine: Machine, accesses: tuple[Access, ...]) -> Work:
    def compute() -> dict[str, object]:
        shared = [a for a in accesses if a.space == "shared"]
        others = [a for a in accesses if a.space == "global"]
        return {
            "instructions": machine.instructions * machine.geometry.warps,
            "barriers": machine.barriers,
            "shared_wavefronts": sum(a.issued * (a.wavefronts or 1.0) for a in shared),
            "global_sectors": sum(a.issued * (a.sectors or 4.0) for a in others),
            "ideal_sectors": sum(a.issued * (a.ideal_sectors or 4.0) for a in others),
        }

    work = object.__new__(_DeferredWork)
    object.__setattr__(work, "compute", compute)
    return work


def _arrays(machine: Machine) -> Iterable[SharedArray]:
    for memory in _shared(machine):
        symbol = memory.symbol
        if symbol is None:
            continue
        uses = [r for r in machine.accesses if r.pointer.memory is memory]
        yield SharedArray(
            symbol.name, Location(symbol.path, symbol.start, symbol.end), symbol.type.size, _padding_search(machine, symbol, uses)
        )


def _padding_search(machine: Machine, symbol: ir.Symbol, uses: list[RawAccess]) -> Callable[[], Padding | None]:
    def search() -> Padding | None:
        row = symbol.type.element
        if row is None or row.kind != "array" or not row.size or row.element is None or not row.element.size or symbol.dynamic:
            return None
        if machine.memories[symbol] in machine.escaped or machine.incomplete:
            return None
        element = row.element.size
        before = _total(machine, uses)
        if before is None:
            return None
        best: tuple[float, int] | None = None
        for elements in PADDINGS:
            padded = row.size + elements * element
            if any(padded % r.size for r in uses):
                continue
            moved = [rebased(r, row.size, padded) for r in uses]
            after = None if None in moved else _total(machine, [r for r in moved if r is not None])
            if after is not None and after[0] < before[0] and (best is None or after[0] < best[0]):
                best = (after[0], elements)
                if after[0] <= after[1]:
                    break
        if best is None:
            return None
        return Padding(best[1], _padding_edit(machine, symbol, best[1]), before[0], best[0])

    return search


def _total(machine: Machine, uses: list[RawAccess]) -> tuple[float, float] | None:
    """Wavefronts of all uses per block, and their ideal; None where one cannot be told."""
    wavefronts = ideal = 0.0
    for raw in uses:
        measured: Measured = measure(machine.geometry, raw)
        if measured.counts is None:
            return None
        wavefronts += measured.counts.wavefronts * raw.weight
        ideal += measured.counts.ideal * raw.weight
    return wavefronts, ideal


def _padding_edit(machine: Machine, symbol: ir.Symbol, elements: int) -> tuple[Location, str] | None:
    if not symbol.dims:
        return None
    start, end = symbol.dims[-1]
    unit = machine.program.unit(symbol.path)
    if unit is None:
        return None
    length = unit.source.data[start:end]
    text = length.decode("utf-8", "replace")
    wrapped = text if SIMPLE_LENGTH.fullmatch(length) else f"({text})"
    return Location(symbol.path, start, end), f"{wrapped} + {elements}"
