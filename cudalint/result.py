"""What a run found, as frozen data for the renderers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cudalint.finding import Finding, Location, Severity
from cudalint.model.occupancy import Occupancy
from cudalint.rule import KernelFacts
from cudalint.source.text import SourceError, SourceFile, load

Position = tuple[int, int]
"""Line and column, 1-based, the column in code points."""


def block_text(block: tuple[int, int, int] | None) -> str:
    """A block as people write it: "256", "16x16", "8x8x4"; "unknown" for None."""
    if block is None:
        return "unknown"
    sizes = list(block)
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()
    return "x".join(map(str, sizes))


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that could not be analysed; `named` tells whether the user named it or discovery found it."""

    path: str
    reason: str
    named: bool


@dataclass(frozen=True, slots=True)
class Note:
    """Something about the run rather than about a kernel, such as a suppression comment without effect."""

    path: str
    line: int
    column: int
    text: str


@dataclass(frozen=True, slots=True)
class InternalError:
    """A rule (or the analysis: rule "") that raised; the run went on without its findings there."""

    rule: str
    where: str
    message: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Reported:
    """A finding with what only the whole run knows.

    start, end   line and column, 1-based, columns in code points, end exclusive
    rank         1 for the finding that costs most; None for findings without a cost
    fingerprint  stays the same when other lines of the file change
    """

    finding: Finding
    start: Position
    end: Position
    fingerprint: str
    rank: int | None = None


class Sources:
    """The texts of all files that findings point into, loaded at most once."""

    def __init__(self, files: Mapping[str, SourceFile] | None = None) -> None:
        self._files = dict(files or {})

    def add(self, path: str, source: SourceFile) -> None:
        """Remember a text that has been read already."""
        self._files.setdefault(path, source)

    def get(self, path: str) -> SourceFile:
        """The text of a file, empty if it cannot be read any more."""
        if path not in self._files:
            try:
                self._files[path] = load(path)
            except SourceError:
                self._files[path] = SourceFile(path, b"")
        return self._files[path]

    def keep(self, paths: Iterable[str]) -> None:
        """Load these files now, for when they will be gone."""
        for path in paths:
            self.get(path)

    def span(self, location: Location) -> tuple[Position, Position]:
        """Start and end of a location as lines and columns."""
        source = self.get(location.path)
        return source.position(location.start), source.position(location.end)


@dataclass(frozen=True, slots=True)
class Result:
    """What `check` found.

    findings             all, suppressed ones too, the costliest first
    files                the files that were checked
    kernels              kernel definitions that were analysed, and how many of them have a parse error
    seconds              wall-clock time of the run
    """

    findings: tuple[Reported, ...] = ()
    files: tuple[str, ...] = ()
    kernels: int = 0
    kernels_with_errors: int = 0
    problems: tuple[Problem, ...] = ()
    notes: tuple[Note, ...] = ()
    internal_errors: tuple[InternalError, ...] = ()
    seconds: float = 0.0
    target_arch: tuple[str, ...] = ()
    sources: Sources = field(default_factory=Sources)

    @property
    def active(self) -> tuple[Reported, ...]:
        """The findings that no comment suppresses."""
        return tuple(item for item in self.findings if item.finding.suppressed is None)

    def worst(self) -> Severity | None:
        """The highest severity of the active findings."""
        return max((item.finding.severity for item in self.active), default=None)


@dataclass(frozen=True, slots=True)
class KernelReport:
    """A kernel definition, its facts under every launch and instantiation, and by architecture its occupancy under the worst."""

    name: str
    location: Location
    facts: tuple[KernelFacts, ...]
    occupancy: Mapping[str, Occupancy] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Inspection:
    """What `inspect` shows: the kernels in the order of files and lines."""

    kernels: tuple[KernelReport, ...] = ()
    files: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    internal_errors: tuple[InternalError, ...] = ()
    target_arch: tuple[str, ...] = ()
    sources: Sources = field(default_factory=Sources)
