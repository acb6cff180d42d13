"""The accesses and branches of a kernel as `inspect` lists them: one per place and launch shape.

Instantiations of one shape are averaged, weighted by how many requests each issues.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cudalint.result import KernelReport
from cudalint.rule import Access, Branch, KernelFacts, LaunchFacts

Block = tuple[int, int, int] | None

_DIVERGENCE = ("no", "rarely", "unknown", "yes")
"""From harmless to worst."""


@dataclass(frozen=True, slots=True)
class Shaped:
    """What holds under one launch shape."""

    block: Block
    accesses: tuple[Access, ...]
    branches: tuple[Branch, ...]


def launches(kernel: KernelReport) -> list[LaunchFacts]:
    """The launches that stand in the source, each once, by place."""
    found = {(facts.launch.location, facts.launch.block): facts.launch for facts in kernel.facts if facts.launch.location}
    return sorted(found.values(), key=lambda launch: (launch.location, launch.block or ()))


def shapes(kernel: KernelReport) -> list[Shaped]:
    """The facts of a kernel by launch shape, in the order in which the shapes come up."""
    groups: dict[Block, list[KernelFacts]] = {}
    for facts in kernel.facts:
        groups.setdefault(facts.launch.block, []).append(facts)
    return [Shaped(block, tuple(_accesses(group)), tuple(_branches(group))) for block, group in groups.items()]


def _accesses(group: Sequence[KernelFacts]) -> Iterator[Access]:
    merged: dict[tuple[object, ...], list[Access]] = {}
    for facts in group:
        seen: dict[tuple[object, ...], int] = {}
        for access in facts.accesses:
            place = (access.location, access.space, access.op)
            seen[place] = seen.get(place, 0) + 1
            merged.setdefault((*place, seen[place]), []).append(access)
    return (_merge_accesses(same) for same in merged.values())


def _merge_accesses(same: Sequence[Access]) -> Access:
    if len(same) == 1:
        return same[0]
    weights = [access.requests for access in same]
    return replace(
        same[0],
        wavefronts=_mean([access.wavefronts for access in same], weights),
        ideal_wavefronts=_mean([access.ideal_wavefronts for access in same], weights),
        sectors=_mean([access.sectors for access in same], weights),
        ideal_sectors=_mean([access.ideal_sectors for access in same], weights),
        requests=_mean(weights, [None] * len(same)),
        certainty=min(access.certainty for access in same),
        assumptions=tuple(dict.fromkeys(text for access in same for text in access.assumptions)),
    )


def _mean(values: Sequence[float | None], weights: Sequence[float | None]) -> float | None:
    """The weighted mean (unweighted unless all weights are known and positive); None if a value is unknown."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    factors = [weight or 0.0 for weight in weights]
    if not all(factors):
        factors = [1.0] * len(known)
    return sum(value * factor for value, factor in zip(known, factors, strict=True)) / sum(factors)


def _branches(group: Sequence[KernelFacts]) -> Iterator[Branch]:
    merged: dict[object, Branch] = {}
    for facts in group:
        for branch in facts.branches:
            other = merged.get(branch.location)
            merged[branch.location] = branch if other is None else _merge_branches(branch, other)
    return iter(merged.values())


def _merge_branches(one: Branch, other: Branch) -> Branch:
    worst = max(one, other, key=lambda branch: _DIVERGENCE.index(branch.divergent))
    return replace(worst, certainty=min(one.certainty, other.certainty))
