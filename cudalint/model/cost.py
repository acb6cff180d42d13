"""What a defect costs: the time of a block as written against its time with that one defect repaired.

A block keeps several resources of its SM busy.  If they overlapped perfectly
the slowest would set the time; they do not, so the time is a smooth maximum
of theirs (a p-norm).  The resources, in cycles per block:

issue      warp instructions over the schedulers
shared     shared-memory wavefronts, one a cycle
l1         32-byte sectors, four a cycle where they share 128-byte lines, one a cycle where each has a line of its own
l2         sectors that miss L1, two a cycle
dram       sectors that miss L2, at the bandwidth of a typical part
latency    what one warp waits for its own instructions and loads, over the blocks that are resident together

Nothing in the source says how much of the traffic hits which cache, so the
sectors run through three scenarios, and the spread is the range of the answer.
Given measured hit rates, half of the times of 94 kernels of public programs on
an H200 come out within a factor of 1.5: an order of magnitude, good for ranking.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from cudalint.analysis.facts import Access, KernelFacts
from cudalint.finding import Cost, Repair
from cudalint.model.architectures import WARP_SIZE, Architecture, Latency
from cudalint.model.occupancy import evaluate, nearest_config, smem_allocated

SECTOR = 32
LINE = 128
DEFAULT_THREADS = 256
DEFAULT_REGISTERS = 32

# Fitted to the H200 kernels: exponent 2 to 3 (3 also keeps conflicts cheap that hide behind DRAM), 1.5 latencies of an FP32
# instruction per instruction of a warp, 1.5 loads in flight per warp; a copy reaches 0.9 of the DRAM bandwidth in the data sheet.
EXPONENT = 3.0
EXPONENT_RANGE = (2.0, 6.0)
LATENCIES_PER_INSTRUCTION = 1.5
LOADS_IN_FLIGHT = 1.5
DRAM_EFFICIENCY = 0.9
# Each wavefront beyond the first makes its own warp wait two cycles longer (measured on an H200).
CYCLES_PER_EXTRA_WAVEFRONT = 2.0
L2_BYTES_PER_CYCLE = 64

_RESOURCE_NAMES: Mapping[str, str] = {
    "issue": "issue slots",
    "shared": "shared-memory pipe",
    "l1": "L1 sectors",
    "l2": "L2 bandwidth",
    "dram": "DRAM bandwidth",
    "latency": "latency",
}


@dataclass(frozen=True, slots=True)
class Demand:
    """What one block asks of its SM.

    l1_cycles        cycles that the L1 cache needs for the sectors
    shared_loads, global_loads  warp instructions whose result somebody waits for
    """

    instructions: float
    wavefronts: float
    sectors: float
    ideal_sectors: float
    l1_cycles: float
    shared_requests: float
    shared_loads: float
    global_loads: float
    warps: int
    resident_blocks: int


@dataclass(frozen=True, slots=True)
class Scenario:
    """Where the sectors come from.

    wasted_beyond_l1  what a request wastes of its sectors comes from beyond L1 again when somebody needs it
    from_dram         what comes from beyond L1 comes from DRAM, else from L2
    """

    wasted_beyond_l1: bool
    from_dram: bool

    def beyond_l1(self, wanted: Demand) -> float:
        """Sectors of a block that miss L1."""
        return wanted.sectors if self.wasted_beyond_l1 else wanted.ideal_sectors

    def load_cycles(self, wanted: Demand, latency: Latency) -> float:
        """Mean latency of a load."""
        beyond = latency.dram if self.from_dram else latency.l2
        share = self.beyond_l1(wanted) / wanted.sectors if wanted.sectors else 1.0
        return share * beyond + (1 - share) * latency.l1


CACHED = Scenario(wasted_beyond_l1=True, from_dram=False)
NEAR = Scenario(wasted_beyond_l1=False, from_dram=True)
FAR = Scenario(wasted_beyond_l1=True, from_dram=True)
SCENARIOS = (CACHED, NEAR, FAR)


def price(facts: KernelFacts, repair: Repair, arch: Architecture) -> Cost:
    """The share of the kernel's time that `repair` would save, 0 to 1, and its range over the scenarios.

    An estimate of the order of magnitude, good for ranking.  `resource` names what the defect keeps busiest.  Where the facts
    are incomplete the low end is 0.
    """
    return Pricing(facts, arch).price(repair)


class Pricing:
    """A kernel on an architecture, whose repairs are priced one by one; what they have in common is worked out once."""

    def __init__(self, facts: KernelFacts, arch: Architecture) -> None:
        self.facts = facts
        self.arch = arch
        self.demand = demand(facts, arch)

    def price(self, repair: Repair) -> Cost:
        """As `price` of the module."""
        arch = self.arch
        written = _at_least(self.demand, repair)
        repaired = self._repaired(written, repair)
        shares = [_saved(written, repaired, scenario, arch, p) for scenario in SCENARIOS for p in (EXPONENT, *EXPONENT_RANGE)]
        far = self._far_share if repair.kind == "sectors" else 0.0
        share = (1 - far) * _saved(written, repaired, NEAR, arch) + far * _saved(written, repaired, FAR, arch)
        low = 0.0 if self.facts.incomplete else min(shares)
        resource = _resource(written, repaired, repair, far, arch)
        return Cost(share=share, low=min(low, share), high=max(*shares, share), resource=resource)

    def _repaired(self, written: Demand, repair: Repair) -> Demand:
        amount = max(repair.amount, 0.0)
        if repair.kind == "wavefronts":
            return replace(written, wavefronts=written.wavefronts - amount)
        if repair.kind == "instructions":
            return replace(written, instructions=written.instructions - amount)
        sectors = written.sectors - amount
        l1_cycles = written.l1_cycles - amount * self._scattered_cycles
        return replace(written, sectors=sectors, l1_cycles=min(max(l1_cycles, sectors / 4), written.l1_cycles))

    @cached_property
    def _scattered(self) -> list[Access]:
        return [access for access in self.facts.accesses if _excess(access) > 0]

    @cached_property
    def _scattered_cycles(self) -> float:
        return _cycles_per_sector(self._scattered)

    @cached_property
    def _far_share(self) -> float:
        """How likely the bytes of a sector that one request wastes are wasted for good.

        0 where other accesses of the same thread use them up (fields of a structure).  In a loop the next iterations may use
        them, if L1 keeps the lines of all resident warps until then.
        """
        scattered = self._scattered
        if scattered and self._siblings_use_all():
            return 0.0
        warps = self.demand.warps
        looped = bool(scattered) and all(access.requests is None or access.requests > warps for access in scattered)
        return 0.25 if looped and _fits_l1(scattered, self.facts, self.arch, self.demand) else 0.75

    def _siblings_use_all(self) -> bool:
        """Whether the accesses of an array with one stride between lanes use up the sectors of every scattered one."""
        used: defaultdict[tuple[object, ...], int] = defaultdict(int)
        for access in self.facts.accesses:
            used[_pattern(access)] += access.bytes_per_lane
        for access in self._scattered:
            stride = _lane_stride(access)
            if not stride or not access.array or used[_pattern(access)] < min(abs(stride), SECTOR):
                return False
        return True


def cycles(wanted: Demand, scenario: Scenario, arch: Architecture) -> dict[str, float]:
    """Clock cycles that one block keeps each resource of its SM busy."""
    lanes = LINE / arch.lanes.shared_bytes
    beyond = scenario.beyond_l1(wanted) * SECTOR
    return {
        "issue": wanted.instructions / arch.schedulers,
        "shared": wanted.wavefronts * lanes,
        "l1": wanted.l1_cycles * lanes,
        "l2": beyond / L2_BYTES_PER_CYCLE,
        "dram": beyond / (arch.part.dram_bytes_per_cycle_per_sm * DRAM_EFFICIENCY) if scenario.from_dram else 0.0,
        "latency": _latency(wanted, scenario, arch) / wanted.resident_blocks,
    }


def block_time(wanted: Demand, scenario: Scenario, arch: Architecture, exponent: float = EXPONENT) -> float:
    """Clock cycles of an SM per block: the smooth maximum of `cycles`."""
    return _smooth_maximum(cycles(wanted, scenario, arch).values(), exponent)


def demand(facts: KernelFacts, arch: Architecture) -> Demand:
    """What one block of the kernel asks for, from the facts."""
    work = facts.work
    shared = [access for access in facts.accesses if access.space == "shared"]
    memory = [access for access in facts.accesses if access.space == "global"]
    shared_requests = _requests(shared, work.shared_wavefronts, lambda access: access.wavefronts)
    memory_requests = _requests(memory, work.global_sectors, lambda access: access.sectors)
    return Demand(
        instructions=work.instructions,
        wavefronts=work.shared_wavefronts,
        sectors=work.global_sectors,
        ideal_sectors=min(work.ideal_sectors, work.global_sectors),
        l1_cycles=work.global_sectors * _cycles_per_sector(memory),
        shared_requests=shared_requests,
        shared_loads=shared_requests * _loads(shared),
        global_loads=memory_requests * _loads(memory),
        warps=_warps(facts),
        resident_blocks=resident_blocks(facts, arch),
    )


def resident_blocks(facts: KernelFacts, arch: Architecture) -> int:
    """Blocks of the kernel that share an SM: by occupancy, and by the grid where it is known and small.  At least 1."""
    registers = facts.registers[0] if facts.registers else DEFAULT_REGISTERS
    config = nearest_config(
        _warps(facts) * WARP_SIZE,
        min(registers, arch.registers_per_thread),
        facts.static_smem or 0,
        facts.launch.dynamic_smem or 0,
    )
    blocks = evaluate(arch, config).blocks_per_sm
    return max(1, min(blocks, _blocks_of_grid(facts, arch)))


# --- the repair ------------------------------------------------------------------------------------------------------------


def _at_least(wanted: Demand, repair: Repair) -> Demand:
    """A block does at least the work that the repair saves, also where the facts hold less."""
    amount = max(repair.amount, 0.0)
    if repair.kind == "wavefronts":
        return replace(wanted, wavefronts=max(wanted.wavefronts, amount))
    if repair.kind == "instructions":
        return replace(wanted, instructions=max(wanted.instructions, amount))
    if amount <= wanted.sectors:
        return wanted
    return replace(wanted, sectors=amount, l1_cycles=max(wanted.l1_cycles, amount / 4))


def _saved(written: Demand, repaired: Demand, scenario: Scenario, arch: Architecture, exponent: float = EXPONENT) -> float:
    before = cycles(written, scenario, arch)
    after = cycles(repaired, scenario, arch)
    if written.sectors != repaired.sectors:
        # Fewer sectors leave as many loads to wait for, and each as long.
        after["latency"] = before["latency"]
    total = _smooth_maximum(before.values(), exponent)
    return max(0.0, 1 - _smooth_maximum(after.values(), exponent) / total) if total > 0 else 0.0


def _resource(written: Demand, repaired: Demand, repair: Repair, far: float, arch: Architecture) -> str:
    if repair.kind == "wavefronts":
        return _RESOURCE_NAMES["shared"]
    if repair.kind == "instructions":
        return _RESOURCE_NAMES["issue"]
    scenario = FAR if far >= 0.5 else NEAR
    before, after = cycles(written, scenario, arch), cycles(repaired, scenario, arch)
    return _RESOURCE_NAMES[max(("l1", "l2", "dram"), key=lambda name: before[name] - after[name])]


# --- how much of the wasted sectors comes from DRAM ------------------------------------------------------------------------


def _pattern(access: Access) -> tuple[object, ...]:
    return access.array, access.space, access.op, _lane_stride(access)


def _fits_l1(accesses: Iterable[Access], facts: KernelFacts, arch: Architecture, wanted: Demand) -> bool:
    lines = sum(_lines(access) or 0 for access in accesses)
    smem = smem_allocated(arch, (facts.static_smem or 0) + (facts.launch.dynamic_smem or 0)) if arch.carveouts else 0
    room = arch.l1_bytes - wanted.resident_blocks * smem
    return lines * LINE * wanted.warps * wanted.resident_blocks < room


# --- accesses --------------------------------------------------------------------------------------------------------------


def _requests(accesses: list[Access], total: float, count: Callable[[Access], float | None]) -> float:
    """Warp instructions behind `total` wavefronts or sectors, by the mean per request of the accesses."""
    known = [(_weight(access), found) for access in accesses if (found := count(access))]
    units = sum(weight * found for weight, found in known)
    return total * sum(weight for weight, _ in known) / units if units else 0.0


def _loads(accesses: list[Access]) -> float:
    """The share of the requests that are loads or atomics."""
    total = sum(_weight(access) for access in accesses)
    return sum(_weight(access) for access in accesses if access.op != "store") / total if total else 0.0


def _weight(access: Access) -> float:
    return 1.0 if access.requests is None else access.requests


def _cycles_per_sector(accesses: Iterable[Access]) -> float:
    """L1 cycles per sector: a quarter where sectors share their lines, up to 1 where each has its own."""
    known = [
        (_weight(access) * sectors, lines / sectors)
        for access in accesses
        if (lines := _lines(access)) and (sectors := _sectors(access))
    ]
    total = sum(weight for weight, _ in known)
    return sum(weight * min(max(share, 0.25), 1.0) for weight, share in known) / total if total else 0.25


def _lines(access: Access) -> int | None:
    """128-byte lines that the worst request touches, None where unknown."""
    if access.space != "global" or access.worst is None:
        return None
    addresses = {address // LINE for address in access.worst.addresses if address is not None}
    return len(addresses) or None


def _sectors(access: Access) -> int:
    return access.worst.sectors if access.worst is not None else 0


def _lane_stride(access: Access) -> int | None:
    return access.worst.lane_stride if access.worst is not None else None


def _excess(access: Access) -> float:
    if access.space != "global" or access.sectors is None or access.ideal_sectors is None:
        return 0.0
    return access.sectors - access.ideal_sectors


# --- the kernel ------------------------------------------------------------------------------------------------------------


def _latency(wanted: Demand, scenario: Scenario, arch: Architecture) -> float:
    """Cycles that one warp takes alone."""
    extra = max(0.0, wanted.wavefronts - wanted.shared_requests)
    waits = (
        wanted.instructions * LATENCIES_PER_INSTRUCTION * arch.latency.fp32
        + wanted.shared_loads * arch.latency.shared
        + extra * CYCLES_PER_EXTRA_WAVEFRONT
        + wanted.global_loads * scenario.load_cycles(wanted, arch.latency) / LOADS_IN_FLIGHT
    )
    return waits / wanted.warps


def _warps(facts: KernelFacts) -> int:
    x, y, z = facts.launch.block or (DEFAULT_THREADS, 1, 1)
    return max(1, -(-x * y * z // WARP_SIZE))


def _blocks_of_grid(facts: KernelFacts, arch: Architecture) -> int:
    """Blocks of the grid per SM, rounded up; without bound where a dimension is unknown."""
    x, y, z = facts.launch.grid
    if x is None or y is None or z is None:
        return arch.blocks_per_sm
    return max(1, -(-x * y * z // arch.part.sms))


def _smooth_maximum(values: Iterable[float], exponent: float) -> float:
    found = list(values)
    largest = max(found)
    if largest <= 0:
        return 0.0
    return float(largest * sum((value / largest) ** exponent for value in found) ** (1 / exponent))
