"""What a rule reports: findings, their places, evidence, repairs and fixes.

Plain frozen data, importable by every layer.  Offsets are byte offsets into
the UTF-8 text of a file (`cudalint.source.SourceFile.data`); lines and columns
are worked out only where a person or another tool reads them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Fact = int | float | str | bool | list[str]


class Severity(enum.IntEnum):
    """How bad a finding is; a function of rule and certainty, never of cost."""

    INFO = 0
    WARNING = 1
    ERROR = 2

    def __str__(self) -> str:
        return self.name.lower()


class Certainty(enum.IntEnum):
    """How far the claim holds.

    EXACT holds for every value of the unknowns, LIKELY for the sampled ones
    (the assumption is printed), POSSIBLE depends on data.
    """

    POSSIBLE = 0
    LIKELY = 1
    EXACT = 2

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """Bytes `start` to `end` (exclusive) of the file `path`, as the user named or discovery found it."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """A place that explains the finding, with one clause of text ("block is 16x16 here")."""

    location: Location
    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the bytes at `location` by `text`; an empty range inserts."""

    location: Location
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that are applied together or not at all."""

    title: str
    edits: tuple[Edit, ...]
    applicability: Literal["safe", "unsafe"] = "unsafe"


@dataclass(frozen=True, slots=True)
class Repair:
    """What mending the defect would change, for the model to price.

    kind            amount is
    wavefronts      shared-memory wavefronts saved per block
    sectors         32-byte sectors saved per block
    instructions    warp instructions saved per block
    """

    kind: Literal["wavefronts", "sectors", "instructions"]
    amount: float


@dataclass(frozen=True, slots=True)
class Cost:
    """Estimated share (0 to 1) of the kernel's time that the defect costs, with its range."""

    share: float
    low: float
    high: float
    resource: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One reported defect.  `kernel` is the kernel's name without template arguments."""

    rule: str
    code: str
    severity: Severity
    certainty: Certainty
    location: Location
    message: str
    kernel: str | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    assumptions: tuple[str, ...] = ()
    advice: str | None = None
    fix: Fix | None = None
    repair: Repair | None = None
    cost: Cost | None = None
    suppressed: str | None = None
