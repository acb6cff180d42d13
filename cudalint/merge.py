"""What the rules say, brought together: one finding per rule and place, the costliest first, each with a fingerprint."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cudalint.finding import Evidence, Finding
from cudalint.result import Reported, Sources, block_text
from cudalint.rule import KernelFacts
from cudalint.source.discover import find_root


@dataclass(slots=True)
class Merged:
    """What one rule says about one place under all launches, instantiations and architectures."""

    finding: Finding
    kernel: KernelFacts
    arch: str
    others: list[tuple[Finding, KernelFacts, str]] = field(default_factory=list)

    def add(self, finding: Finding, kernel: KernelFacts, arch: str) -> None:
        if _weight(finding) > _weight(self.finding):
            self.others.insert(0, (self.finding, self.kernel, self.arch))
            self.finding, self.kernel, self.arch = finding, kernel, arch
        else:
            self.others.append((finding, kernel, arch))

    def result(self, targets: Sequence[str]) -> Finding:
        """The worst of them, with the evidence of all and a word on the architecture where that matters."""
        evidence = _evidence(self.finding, self.kernel)
        said = {item.location for item in self.finding.evidence}
        for finding, kernel, _ in self.others:
            same = _weight(finding) == _weight(self.finding)
            for item in _evidence(finding, kernel):
                if item.location == kernel.launch.location:
                    evidence.append(item if same else Evidence(item.location, f"{item.text}, less bad"))
                elif item.location not in said:
                    evidence.append(item)
        assumptions = list(self.finding.assumptions)
        if len(targets) > 1 and not self._same_everywhere(targets):
            assumptions.append(f"judged for {self.arch}, the worst of the targets")
        return replace(self.finding, evidence=tuple(dict.fromkeys(evidence)), assumptions=tuple(dict.fromkeys(assumptions)))

    def _same_everywhere(self, targets: Sequence[str]) -> bool:
        weight = _weight(self.finding)
        same = {self.arch, *(arch for finding, _, arch in self.others if _weight(finding) == weight)}
        return same >= set(targets)


_SIZES = ("wavefronts", "sectors", "degree", "paths", "chain_cycles")
"""Facts that grow with the damage."""


def _weight(finding: Finding) -> tuple[float, ...]:
    """Orders the findings of one rule and place by how bad they are."""
    sizes = [finding.facts.get(name, 0) for name in _SIZES]
    return (
        float(finding.severity),
        *(float(size) if isinstance(size, (int, float)) else 0.0 for size in sizes),
        finding.repair.amount if finding.repair else 0.0,
        float(finding.certainty),
    )


def _evidence(finding: Finding, kernel: KernelFacts) -> list[Evidence]:
    """The evidence of a finding; the launch is part of it, whether the rule says so or not."""
    launch = kernel.launch
    evidence = list(finding.evidence)
    if launch.location is not None and launch.block is not None and all(item.location != launch.location for item in evidence):
        instance = "" if kernel.instantiation == kernel.name else f" of {kernel.instantiation}"
        evidence.append(Evidence(launch.location, f"block{instance} is {block_text(launch.block)} here"))
    return evidence


# ------------------------------------------------------------------------ order


def ranked(findings: Sequence[Finding], sources: Sources) -> Iterator[Reported]:
    """The findings with their places and fingerprints, the costliest first."""
    spans = {id(finding): sources.span(finding.location) for finding in findings}
    rank = 0
    fingerprints = _fingerprints(findings, sources)
    for finding in sorted(findings, key=_order):
        priced = finding.cost is not None and finding.suppressed is None
        rank += priced
        start, end = spans[id(finding)]
        yield Reported(finding, start, end, fingerprints[id(finding)], rank if priced else None)


def _order(finding: Finding) -> tuple[object, ...]:
    share = finding.cost.share if finding.cost else 0.0
    return (-share, -finding.severity, finding.location, finding.rule)


def _fingerprints(findings: Sequence[Finding], sources: Sources) -> dict[int, str]:
    """By identity: a hash of rule, path within the project and text of the line, with the number among equal ones."""
    known: Counter[tuple[str, ...]] = Counter()
    lines: dict[tuple[str, int], str] = {}
    hashes: dict[tuple[str, ...], hashlib._Hash] = {}
    result = {}
    for finding in sorted(findings, key=lambda finding: (finding.location, finding.rule)):
        path = finding.location.path
        number = sources.get(path).position(finding.location.start)[0]
        if (path, number) not in lines:
            lines[path, number] = " ".join(sources.get(path).line(number).split())
        key = (finding.rule, _within_project(path), lines[path, number])
        if key not in hashes:
            hashes[key] = hashlib.sha256("\0".join(key).encode("utf-8", "surrogatepass"))
        digest = hashes[key].copy()
        digest.update(f"\0{known[key]}".encode())
        known[key] += 1
        result[id(finding)] = digest.hexdigest()
    return result


def _within_project(path: str) -> str:
    return Path(os.path.relpath(path, find_root(path))).as_posix()
