"""The facts of one kernel under one launch shape and instantiation, as rules and `inspect` see them.

Counts are per request, that is per warp instruction with at least one active
lane, in Nsight Compute's units: shared-memory wavefronts, 32-byte sectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from cudalint.finding import Certainty, Evidence, Location

Space = Literal["shared", "global", "constant", "local"]
Operation = Literal["load", "store", "atomic"]
Block = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """How the kernel is launched.

    block          threads in x, y, z; None where nothing in the source says so
    assumed        the block rests on this assumption ("__launch_bounds__(256)", "assume-block"), "" if a launch says it
    grid           blocks in x, y, z, each None where unknown
    dynamic_smem   bytes, None where unknown
    location       the launch, None without one
    """

    block: Block | None
    grid: tuple[int | None, int | None, int | None] = (None, None, None)
    dynamic_smem: int | None = 0
    location: Location | None = None
    assumed: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One warp instruction: what its lanes ask for and what that costs.

    degree       most distinct words in one bank in one phase (shared memory)
    lane_stride  bytes between the addresses of neighbouring active lanes if it is the same for all, else None
    """

    active_lanes: int
    degree: int = 0
    wavefronts: int = 0
    ideal_wavefronts: int = 0
    sectors: int = 0
    ideal_sectors: int = 0
    lane_stride: int | None = None
    addresses: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Access:
    """One memory access of the source under one launch shape.

    array             name of the accessed variable, "" where unknown
    wavefronts, …     means over the warps and iterations that execute it; None where the lanes' addresses are unknown
    worst             the request with the most wavefronts (shared) or sectors (global)
    requests          how many a block issues; None where a loop's trip count is unknown
    issued            the same with a guess for unknown loops, for costs
    """

    location: Location
    space: Space
    op: Operation
    bytes_per_lane: int
    array: str
    wavefronts: float | None
    ideal_wavefronts: float | None
    sectors: float | None
    ideal_sectors: float | None
    requests: float | None
    worst: Request | None
    certainty: Certainty
    assumptions: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    issued: float = 1.0


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch or loop condition: does it split warps?

    `yes` in more than a tenth of its executions, `rarely` in fewer.
    """

    location: Location
    divergent: Literal["yes", "rarely", "no", "unknown"]
    certainty: Certainty
    active_lanes: float | None = None


@dataclass(frozen=True, slots=True)
class Padding:
    """A verified repair of a shared array: rows lengthened by `elements`, all accesses of the array re-evaluated.

    edit        the array length to rewrite and its new text; None if the declaration cannot be rewritten in place
    wavefronts  total of all accesses per block before and after
    """

    elements: int
    edit: tuple[Location, str] | None
    wavefronts_before: float
    wavefronts_after: float


@dataclass(frozen=True, slots=True)
class SharedArray:
    """A shared array of the kernel.  `padding()` searches the smallest verified padding, None if none helps."""

    name: str
    location: Location
    bytes: int | None
    padding: Callable[[], Padding | None]


@dataclass(frozen=True, slots=True)
class Work:
    """What one block executes, as warp instructions per pipe (means over samples; loops of unknown length count `trips`)."""

    instructions: float = 0.0
    shared_wavefronts: float = 0.0
    global_sectors: float = 0.0
    ideal_sectors: float = 0.0
    barriers: float = 0.0


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """Everything known of a kernel under one launch and instantiation.

    instantiation   "turn<float, 32>" or the plain name
    location        from the first token of the definition to its opening brace
    registers       (count, source) as far as known
    incomplete      why the evaluation stopped early, "" if it did not
    """

    name: str
    instantiation: str
    location: Location
    launch: LaunchFacts
    launch_bounds: tuple[int, int | None] | None
    static_smem: int | None
    accesses: tuple[Access, ...] = ()
    branches: tuple[Branch, ...] = ()
    arrays: tuple[SharedArray, ...] = ()
    work: Work = field(default_factory=Work)
    registers: tuple[int, str] | None = None
    incomplete: str = ""

    def assumptions(self, access: Access) -> tuple[str, ...]:
        """What the counts of an access rest on; nothing if they are exact."""
        if access.certainty is Certainty.EXACT:
            return ()
        return (*((self.launch.assumed,) if self.launch.assumed else ()), *access.assumptions)
