"""What the compiler makes one instruction of: neighbouring accesses of a thread become one vector access.

nvcc joins two or four accesses of a straight piece of code to consecutive addresses, up to
16 bytes, where the alignment is certain (shared and device arrays it can align itself, members of a struct
by the struct's alignment, never a plain `float*` parameter) and nothing in between may alias.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cudalint.analysis import arithmetic as ops
from cudalint.analysis import values as v
from cudalint.analysis.state import Pointer, RawAccess
from cudalint.analysis.values import Atom, Poly

WIDEST = 16


def joined(accesses: Iterable[RawAccess]) -> list[RawAccess]:
    """The accesses as issued: each member of a vector access has its size and an equal share of its weight."""
    groups: dict[object, list[tuple[int, int, RawAccess]]] = {}
    result = list(accesses)
    for position, raw in enumerate(result):
        symbol = raw.pointer.memory.symbol
        if raw.op == "atomic" or raw.size >= WIDEST or (symbol is not None and symbol.volatile):
            continue
        fixed = raw.pointer.offset.terms.get((), 0)
        moving = raw.pointer.offset - v.const(fixed)
        key = (raw.pointer.memory, raw.op, raw.size, raw.segment, raw.weight, moving.key, tuple(c.key for c in raw.conditions))
        groups.setdefault(key, []).append((fixed, position, raw))
    for members in groups.values():
        if len(members) > 1:
            for position, raw in _vectors(members):
                result[position] = raw
    return [_over_iterations(raw) for raw in result]


def _over_iterations(raw: RawAccess) -> RawAccess:
    """An access of an unrolled loop that walks memory element by element takes several iterations at once."""
    counter = raw.unrolled
    symbol = raw.pointer.memory.symbol
    if counter is None or not counter.trips or raw.size >= WIDEST or (symbol is not None and symbol.volatile):
        return raw
    offset = raw.pointer.offset
    if offset.terms.get((counter,)) != raw.size or any(counter in c.symbols for c in raw.conditions):
        return raw
    start = offset - v.of(counter).scaled(raw.size)
    if counter in start.symbols:
        return raw
    for count in (8, 4, 2):
        width = count * raw.size
        fixed = replace(raw, pointer=Pointer(raw.pointer.memory, start, (), raw.pointer.anchor, raw.pointer.alignment))
        if width <= WIDEST and counter.trips % count == 0 and _aligned(fixed, width):
            trips = counter.trips // count
            fewer = Atom(counter.name, counter.scope, lo=0, hi=trips - 1, samples=tuple(range(trips)), trips=trips)
            moved = start + v.of(fewer).scaled(width)
            pointer = Pointer(raw.pointer.memory, moved, (*raw.pointer.steps, (moved - offset, 1)))
            return replace(raw, pointer=pointer, size=width, weight=raw.weight / count, written=raw.written or raw)
    return raw


def _vectors(members: list[tuple[int, int, RawAccess]]) -> Iterable[tuple[int, RawAccess]]:
    """Cuts the accesses of one base into aligned runs, the widest first."""
    by_offset: dict[int, list[tuple[int, RawAccess]]] = {}
    for fixed, position, raw in members:
        by_offset.setdefault(fixed, []).append((position, raw))
    size = members[0][2].size
    for count in (8, 4, 2):
        width = count * size
        if width > WIDEST:
            continue
        for start in sorted(by_offset):
            run = [start + i * size for i in range(count)]
            if all(o in by_offset for o in run) and _aligned(by_offset[start][0][1], width):
                lead = by_offset[start][0][1].pointer
                for offset in run:
                    for position, raw in by_offset.pop(offset):
                        pointer = Pointer(lead.memory, lead.offset, lead.steps, lead.anchor, lead.alignment)
                        yield (
                            position,
                            replace(raw, pointer=pointer, size=width, weight=raw.weight / count, written=raw.written or raw),
                        )


def _aligned(raw: RawAccess, width: int) -> bool:
    """The compiler can tell that the address is a multiple of `width`."""
    pointer = raw.pointer
    symbol = pointer.memory.symbol
    if symbol is not None and symbol.space in ("shared", "global", "constant") and _divides(width, pointer.offset):
        return True
    return pointer.alignment >= width and _divides(width, pointer.offset - pointer.anchor)


def _divides(width: int, offset: Poly) -> bool:
    return all(ops.coefficient(mono, c) % width == 0 for mono, c in offset.terms.items())
