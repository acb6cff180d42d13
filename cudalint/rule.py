"""What a rule author imports.

A rule is one file: a class with metadata, a docstring in fixed sections,
tested examples and a check.  The engine makes one pass over the sources and
calls the check with the facts; a rule never walks a tree and never prices its
findings (it states a `Repair`, the model prices it).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from cudalint.analysis.facts import Access, Branch, KernelFacts, LaunchFacts, Padding, Request, SharedArray, Work
from cudalint.finding import Certainty, Edit, Evidence, Fact, Finding, Fix, Location, Repair, Severity

__all__ = [
    "FAMILIES",
    "SECTIONS",
    "Access",
    "Branch",
    "Certainty",
    "Edit",
    "Evidence",
    "Example",
    "Fact",
    "Finding",
    "Fix",
    "KernelFacts",
    "LaunchFacts",
    "Location",
    "Padding",
    "Repair",
    "Request",
    "Rule",
    "RuleMeta",
    "Severity",
    "SharedArray",
    "Work",
]

Family = Literal["memory", "divergence", "synchronisation", "launch", "latency", "host"]
FAMILIES: tuple[Family, ...] = ("memory", "divergence", "synchronisation", "launch", "latency", "host")
SECTIONS = ("What it does", "Why it matters", "Example", "Use instead", "Limits", "References")


@dataclass(frozen=True, slots=True)
class RuleMeta:
    """The facts about a rule.

    name        kebab-case, primary; code an alias such as CU101 (family digit, two digits; third parties: another prefix)
    severity    by certainty; a missing certainty means that such findings are not reported
    since       version that brought the rule
    min_arch, max_arch  compute capability x 10 the rule applies to (inclusive), None = unbounded
    also_known_as  what Nsight Compute, compute-sanitizer or nvcc call it
    default     in the default selection
    mentions    the rule cannot apply to a kernel unless its file, or one that it includes, holds one of these words: the engine
                then spares the evaluation; () = no such word
    """

    name: str
    code: str
    family: Family
    summary: str
    severity: Mapping[Certainty, Severity]
    since: str
    status: Literal["stable", "preview", "deprecated"] = "stable"
    fix: Literal["none", "sometimes", "always"] = "none"
    min_arch: int | None = None
    max_arch: int | None = None
    also_known_as: tuple[str, ...] = ()
    default: bool = True
    mentions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", self.name):
            raise ValueError(f"rule name {self.name!r} is not kebab-case")
        if not re.fullmatch(r"[A-Z]{2,5}[0-9]{3}", self.code):
            raise ValueError(f"rule code {self.code!r} is not two to five capitals and three digits")
        if self.family not in FAMILIES:
            raise ValueError(f"rule {self.name}: unknown family {self.family!r}")
        if not self.severity:
            raise ValueError(f"rule {self.name}: no severity")


@dataclass(frozen=True, slots=True)
class Example:
    """A tested example: a whole source with `// expect: rule-name [fact=value …]` at the end of each line that is reported.

    fixed    the source after all fixes of the rule (None: not checked)
    """

    code: str
    title: str = ""
    fixed: str | None = None


class Rule:
    """Base of all rules.  Override the checks you need; the engine calls no other."""

    meta: ClassVar[RuleMeta]
    VALID: ClassVar[tuple[Example, ...]] = ()
    INVALID: ClassVar[tuple[Example, ...]] = ()

    def check_kernel(self, kernel: KernelFacts) -> Iterable[Finding]:
        """Findings of one kernel under one launch and instantiation; the engine keeps the worst per place."""
        return ()

    def finding(
        self,
        location: Location,
        message: str,
        certainty: Certainty,
        *,
        kernel: KernelFacts | None = None,
        facts: Mapping[str, Fact] | None = None,
        evidence: Iterable[Evidence] = (),
        assumptions: Iterable[str] = (),
        advice: str | None = None,
        fix: Fix | None = None,
        repair: Repair | None = None,
    ) -> Finding:
        """A finding of this rule; the severity follows from the certainty."""
        return Finding(
            rule=self.meta.name,
            code=self.meta.code,
            severity=self.meta.severity[certainty],
            certainty=certainty,
            location=location,
            message=message,
            kernel=kernel.name if kernel else None,
            facts=dict(facts or {}),
            evidence=tuple(evidence),
            assumptions=tuple(assumptions),
            advice=advice,
            fix=fix,
            repair=repair,
        )
