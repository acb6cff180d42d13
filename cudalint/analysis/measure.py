"""From recorded accesses to counts: wavefronts and sectors per request, for the values of the unknowns worth trying.

Additive unknowns that are multiples of the word drop out of the bank rule, multiples of the sector out of
the sector rule.  What is left is evaluated lane by lane: counters of known loops over their iterations,
other unknowns over a few sampled values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np

from cudalint.analysis import arithmetic as ops
from cudalint.analysis import hardware
from cudalint.analysis import values as v
from cudalint.analysis.state import Pointer, RawAccess
from cudalint.analysis.values import ZERO, Atom, Geometry, Poly, Scope
from cudalint.finding import Certainty

MAX_ITERATIONS = 64
RESIDUES = tuple(range(0, hardware.SECTOR, hardware.WORD))
CONFLICT_RATIO = 1.2
TYPICAL_FROM = 8


@dataclass(frozen=True, slots=True)
class Counts:
    """Sums over the executing warps of one block, and the worst warp.

    requests  warp instructions with an active lane
    """

    requests: float = 0.0
    wavefronts: float = 0.0
    ideal: float = 0.0
    worst: tuple[int, int, int, int] = (0, 0, 0, 0)
    lanes: tuple[int | None, ...] = ()

    def plus(self, other: Counts, weight: float = 1.0) -> Counts:
        """The sum, `other` counted `weight` times; the worse of the two worst warps."""
        worse = other if other.worst > self.worst else self
        return Counts(
            self.requests + weight * other.requests,
            self.wavefronts + weight * other.wavefronts,
            self.ideal + weight * other.ideal,
            worse.worst,
            worse.lanes,
        )

    @property
    def ratio(self) -> float:
        """Counted over ideal; 1 where nothing runs."""
        return self.wavefronts / self.ideal if self.ideal else 1.0


@dataclass(frozen=True, slots=True)
class Measured:
    """Counts of an access (wavefronts are sectors for global memory), None where data decides."""

    counts: Counts | None
    certainty: Certainty
    assumptions: tuple[str, ...] = ()


_memo: dict[Any, Counts] = {}


def measure(geometry: Geometry, raw: RawAccess) -> Measured:
    """Counts of one recorded access, over one run of it in every warp of the block."""
    shared = raw.pointer.memory.space == "shared"
    offset = raw.pointer.offset
    unit = hardware.WORD if shared else hardware.SECTOR
    lanes, uniform = offset.split(lambda mono, _: any(a.scope is Scope.LANE for a in mono))
    rest, _ = uniform.split(lambda mono, c: ops.coefficient(mono, c) % unit != 0)
    masks, assumed, data_mask = _masks(raw.conditions)
    if lanes.data or raw.pointer.memory.scope is Scope.LANE:
        return Measured(None, Certainty.POSSIBLE, ("the address depends on data",))
    address = lanes + rest
    unknown = address.symbols | frozenset().union(*(m.symbols for m in masks))
    iterating = sorted((a for a in unknown if a.trips), key=lambda a: a.id)
    sampled = sorted((a for a in unknown if not a.trips), key=lambda a: a.id)
    if not rest.symbols <= frozenset(iterating) and not shared and not lanes.symbols:
        return _unknown_offset(geometry, raw, lanes, rest, masks, data_mask, assumed)
    worlds = [_count(geometry, raw, address, masks, iterating, chosen) for chosen in _choices(sampled)]
    counts, certainty = _agree(worlds, sampled)
    notes = list(assumed)
    if prod(a.trips or 1 for a in iterating) > MAX_ITERATIONS:
        certainty = min(certainty, Certainty.LIKELY)
        notes.append("a sample of the iterations")
    if sampled:
        notes.append("sampled: " + ", ".join(a.name for a in sampled))
    if data_mask and not (counts.ratio <= 1.0 and raw.size <= hardware.WORD):
        certainty = Certainty.POSSIBLE if counts.ratio > CONFLICT_RATIO else min(certainty, Certainty.LIKELY)
        notes.append("which lanes are active depends on data")
    return Measured(counts, certainty, tuple(notes))


def _masks(conditions: Iterable[Poly]) -> tuple[list[Poly], list[str], bool]:
    """The conditions to evaluate; notes on those assumed to hold; whether data decides some."""
    masks: list[Poly] = []
    assumed: list[str] = []
    data = False
    for condition in (part for whole in conditions for part in ops.conjuncts(whole)):
        if condition.data:
            data = True
        elif all(a.trips for a in condition.symbols):
            masks.append(condition)
        elif condition.scope is Scope.LANE:
            assumed.append("all lanes pass the guard")
    return masks, assumed[:1], data


def _choices(sampled: list[Atom]) -> Iterator[dict[Atom, int]]:
    """A few assignments of the sampled unknowns; each unknown walks through its samples at its own pace."""
    if not sampled:
        yield {}
        return
    choices = [a.samples or (0,) for a in sampled]
    for i in range(max(map(len, choices))):
        yield {a: values[(i + j) % len(values)] for j, (a, values) in enumerate(zip(sampled, choices, strict=True))}


def _count(
    geometry: Geometry, raw: RawAccess, address: Poly, masks: list[Poly], iterating: list[Atom], chosen: dict[Atom, int]
) -> Counts:
    """Counts of one choice of the unknowns, summed over the iterations of known loops."""
    total = Counts()
    runs = list(islice(product(*(a.samples for a in iterating)), MAX_ITERATIONS))
    for values in runs:
        world = {**chosen, **dict(zip(iterating, values, strict=True))}
        total = total.plus(_request(geometry, raw, address, masks, world), 1 / len(runs))
    return total


def _request(geometry: Geometry, raw: RawAccess, address: Poly, masks: list[Poly], world: dict[Atom, int]) -> Counts:
    shared = raw.pointer.memory.space == "shared"
    store = raw.op == "store"
    fixed = tuple(sorted((a.id, x) for a, x in world.items()))
    key = (geometry.block, shared, store, raw.size, address.key, tuple(m.key for m in masks), fixed)
    found = _memo.get(key)
    if found is not None:
        return found
    memo: dict[Atom, Any] = {}
    with np.errstate(all="ignore"):
        lanes = geometry.lanes(address, world, memo).reshape(-1, v.WARP)
        active = geometry.valid.copy()
        for mask in masks:
            active &= geometry.lanes(mask, world, memo) != 0
    counts = _counted(lanes, active.reshape(-1, v.WARP), raw.size, shared, store)
    if len(_memo) > 50_000:
        _memo.clear()
    _memo[key] = counts
    return counts


def _counted(lanes: Any, active: Any, size: int, shared: bool, store: bool) -> Counts:
    if shared:
        degree, number, ideal = hardware.shared_wavefronts(lanes, active, size, store=store)
    else:
        number, ideal = hardware.global_sectors(lanes, active, size)
        degree = number * 0
    running = active.any(axis=1)
    if not running.any():
        return Counts()
    order = np.lexsort((number, degree)) if shared else np.argsort(number - ideal, kind="stable")
    worst = int(order[-1])
    request = tuple(int(x) if on else None for x, on in zip(lanes[worst], active[worst], strict=True))
    return Counts(
        float(running.sum()),
        float(number[running].sum()),
        float(ideal[running].sum()),
        (int(degree[worst]), int(number[worst]), int(ideal[worst]), int(active[worst].sum())),
        request,
    )


def _agree(worlds: list[Counts], sampled: list[Atom]) -> tuple[Counts, Certainty]:
    """One answer from several sampled worlds: the first (typical) one; exact only without unknowns."""
    first = worlds[0]
    if not sampled:
        return first, Certainty.EXACT
    verdicts = {w.ratio > CONFLICT_RATIO for w in worlds[:-1] or worlds}
    return first, Certainty.LIKELY if len(verdicts) == 1 else Certainty.POSSIBLE


def _unknown_offset(
    geometry: Geometry, raw: RawAccess, lanes: Poly, rest: Poly, masks: list[Poly], data_mask: bool, assumed: list[str]
) -> Measured:
    """Sectors under a uniform offset of unknown residue: aligned if only sizes are unknown, else the mean over the residues."""
    known, unknown = rest.split(lambda mono, _: not any(a.symbols for a in mono))
    unknown_iterating, other = unknown.split(lambda mono, _: all(a.trips is not None and a.trips != 0 for a in mono))
    shifts = RESIDUES if unknown_iterating.terms or any(a.trips is None for a in other.symbols) else (0,)
    iterating = sorted((a for m in masks for a in m.symbols), key=lambda a: a.id)
    total = Counts()
    for shift in shifts:
        total = total.plus(_count(geometry, raw, lanes + known + v.const(shift), masks, iterating, {}), 1 / len(shifts))
    note = "rows start at a multiple of 32 bytes" if len(shifts) == 1 else "the offset is a multiple of 4 bytes"
    certainty = Certainty.POSSIBLE if data_mask and total.ratio > CONFLICT_RATIO else Certainty.LIKELY
    return Measured(total, certainty, (*assumed, note))


def rebased(raw: RawAccess, row: int, padded: int) -> RawAccess | None:
    """The same access after rows of `row` bytes have become `padded` bytes long; None if its address is no sum of whole steps."""
    steps = raw.pointer.steps
    total = ZERO
    moved = ZERO
    for index, stride in steps:
        total = total + index.scaled(stride)
        if stride >= row:
            if stride % row:
                return None
            stride = stride // row * padded
        moved = moved + index.scaled(stride)
    if (total - raw.pointer.offset).terms:
        return None
    return replace(raw, pointer=Pointer(raw.pointer.memory, moved, ()))
