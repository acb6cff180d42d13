from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalint.analysis.facts import Access, KernelFacts, LaunchFacts, Operation, Request, Space, Work
from cudalint.finding import Certainty, Location, Repair
from cudalint.model import architectures
from cudalint.model.cost import CACHED, FAR, NEAR, block_time, cycles, demand, price, resident_blocks

H = architectures.get("sm_90")
HERE = Location("k.cu", 0, 1)
PACKED = tuple(range(0, 128, 4))
SECTORS_OF_THEIR_OWN = tuple(range(0, 1024, 32))
LINES_OF_THEIR_OWN = tuple(range(0, 32 * 4096, 4096))

Kind = Literal["wavefronts", "sectors", "instructions"]


def access(
    space: Space,
    op: Operation = "load",
    requests: float | None = 8,
    *,
    wavefronts: int = 0,
    sectors: int = 4,
    ideal: int = 4,
    addresses: tuple[int, ...] = PACKED,
    stride: int | None = 4,
    array: str = "a",
) -> Access:
    shared = space == "shared"
    return Access(
        location=HERE,
        space=space,
        op=op,
        bytes_per_lane=4,
        array=array,
        wavefronts=wavefronts if shared else None,
        ideal_wavefronts=1 if shared else None,
        sectors=None if shared else sectors,
        ideal_sectors=None if shared else ideal,
        requests=requests,
        worst=Request(32, wavefronts=wavefronts, sectors=sectors, ideal_sectors=ideal, lane_stride=stride, addresses=addresses),
        certainty=Certainty.EXACT,
    )


def kernel(
    *accesses: Access,
    work: Work,
    block: tuple[int, int, int] | None = (256, 1, 1),
    registers: int | None = 32,
    static_smem: int = 0,
    grid: tuple[int | None, int | None, int | None] = (None, None, None),
    incomplete: str = "",
) -> KernelFacts:
    return KernelFacts(
        name="k",
        instantiation="k",
        location=HERE,
        launch=LaunchFacts(block, grid),
        launch_bounds=None,
        static_smem=static_smem,
        accesses=accesses,
        work=work,
        registers=None if registers is None else (registers, "ptxas"),
        incomplete=incomplete,
    )


# --- the resources ---------------------------------------------------------------------------------------------------------


def test_cycles_of_each_resource_by_hand() -> None:
    work = Work(instructions=400, shared_wavefronts=60, global_sectors=256, ideal_sectors=64)
    facts = kernel(
        access("shared", requests=30, wavefronts=2),
        access("global", requests=8, sectors=32, ideal=8, addresses=LINES_OF_THEIR_OWN),
        work=work,
    )
    found = cycles(demand(facts, H), FAR, H)
    assert found["issue"] == 100  # four schedulers
    assert found["shared"] == 60  # one wavefront a cycle
    assert found["l1"] == 256  # every sector in a line of its own
    assert found["l2"] == 128  # 64 bytes a cycle
    assert found["dram"] == pytest.approx(256 * 32 / (18.365 * 0.9), rel=1e-4)
    # One of 8 warps: 400 x 1.5 x 4 cycles of its own instructions, 30 shared loads, 30 extra wavefronts of 2 cycles and
    # 8 loads from DRAM, 1.5 of them in flight; 8 blocks of 8 warps are resident.
    assert found["latency"] == pytest.approx((400 * 6 + 30 * 29 + 30 * 2 + 8 * 662 / 1.5) / 8 / 8)


def test_scenarios_differ_in_what_reaches_l2_and_dram() -> None:
    work = Work(instructions=8, global_sectors=256, ideal_sectors=64)
    wanted = demand(kernel(access("global", sectors=32, ideal=8), work=work), H)
    near, far, cached = (cycles(wanted, scenario, H) for scenario in (NEAR, FAR, CACHED))
    assert (near["l2"], far["l2"], cached["l2"]) == (32, 128, 128)
    assert far["dram"] == pytest.approx(4 * near["dram"])
    assert cached["dram"] == 0
    assert near["l1"] == far["l1"] == cached["l1"]


def test_four_sectors_of_a_line_take_one_cycle_of_l1() -> None:
    work = Work(instructions=8, global_sectors=256, ideal_sectors=64)
    facts = kernel(access("global", sectors=32, ideal=8, addresses=SECTORS_OF_THEIR_OWN), work=work)
    assert cycles(demand(facts, H), NEAR, H)["l1"] == 64


def test_turing_needs_two_cycles_for_a_wavefront() -> None:
    turing = architectures.get("sm_75")
    facts = kernel(access("shared", wavefronts=1), work=Work(shared_wavefronts=10))
    assert cycles(demand(facts, turing), NEAR, turing)["shared"] == 20


def test_the_time_is_a_smooth_maximum() -> None:
    facts = kernel(access("shared", "store", wavefronts=1), work=Work(instructions=1200, shared_wavefronts=300))
    found = cycles(demand(facts, H), NEAR, H)
    assert (found["issue"], found["shared"]) == (300, 300)
    assert found["latency"] == pytest.approx((1200 * 6 + 0) / 8 / 8)
    assert block_time(demand(facts, H), NEAR, H) == pytest.approx((300**3 + 300**3 + 112.5**3) ** (1 / 3))


def test_resident_blocks_follow_occupancy_and_a_small_grid() -> None:
    work = Work(instructions=1)
    assert resident_blocks(kernel(work=work), H) == 8
    assert resident_blocks(kernel(work=work, registers=100), H) == 2
    assert resident_blocks(kernel(work=work, registers=None, static_smem=48 * 1024), H) == 4
    assert resident_blocks(kernel(work=work, grid=(132, 1, 1)), H) == 1
    assert resident_blocks(kernel(work=work, grid=(200, 2, 1)), H) == 4
    assert resident_blocks(kernel(work=work, grid=(None, 1, 1)), H) == 8
    assert resident_blocks(kernel(work=work, block=None), H) == 8
    assert resident_blocks(kernel(work=work, block=(1024, 1, 1), registers=255), H) == 1


# --- prices against measured gains -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """A kernel timed on an H200 before and after a repair.

    work is that of a block, amount what the repair saves of it, measured the share of the time that it saved.
    """

    name: str
    block: int
    static_smem: int
    registers: int
    work: Work
    accesses: tuple[Access, ...]
    kind: Kind
    amount: float
    measured: float


_COALESCED = access("global")
_CONFLICTS = access("shared", wavefronts=4)
_TWO_WAYS = access("shared", wavefronts=2)
PAIRS = [
    Pair("double plane, 2 ways", 64, 3700, 32, Work(142.5, 200, 64, 64), (_CONFLICTS, _COALESCED), "wavefronts", 88, 0.325),
    Pair("strided tree sum", 256, 1024, 16, Work(619, 142, 33, 33), (_TWO_WAYS, _COALESCED), "wavefronts", 97, 0.223),
    Pair("conflicts behind DRAM", 128, 11000, 32, Work(489, 320, 272, 272), (_CONFLICTS, _COALESCED), "wavefronts", 224, 0.016),
    Pair("one warp of 12 threads", 12, 49152, 16, Work(43_676, 19_328, 2, 2), (_CONFLICTS,), "wavefronts", 14_208, 0.049),
    Pair(
        "a row per thread", 128, 0, 29, Work(16_217, 0, 135_184, 20_496),
        (access("global", requests=4640, sectors=32, addresses=LINES_OF_THEIR_OWN, stride=4096),), "sectors", 114_688, 0.775,
    ),
    Pair(
        "half2 slices", 128, 0, 31, Work(3700, 0, 16_644, 2308),
        (access("global", requests=2000, sectors=32, addresses=SECTORS_OF_THEIR_OWN, stride=32),), "sectors", 14_336, 0.124,
    ),
    Pair("half-warp roles", 256, 0, 17, Work(40_832, 0, 64, 64), (_COALESCED,), "instructions", 20_400, 0.493),
    Pair("pow by an integer", 256, 0, 30, Work(3306, 0, 64, 64), (_COALESCED,), "instructions", 2420, 0.704),
    Pair("division by warpSize", 256, 0, 32, Work(598, 0, 72, 72), (_COALESCED,), "instructions", 80, 0.049),
]  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_shares_come_near_what_an_h200_gained(pair: Pair) -> None:
    facts = kernel(
        *pair.accesses, work=pair.work, block=(pair.block, 1, 1), registers=pair.registers, static_smem=pair.static_smem
    )
    cost = price(facts, Repair(pair.kind, pair.amount), H)
    assert cost.share == pytest.approx(pair.measured, abs=0.25)
    assert cost.low - 0.05 <= pair.measured <= cost.high + 0.05
    if pair.measured < 0.05:
        assert cost.share < 0.1


# --- laws ------------------------------------------------------------------------------------------------------------------

counts = st.floats(0, 1e6)
works = st.builds(Work, instructions=counts, shared_wavefronts=counts, global_sectors=counts, ideal_sectors=counts)
kinds = st.sampled_from(("wavefronts", "sectors", "instructions"))
archs = st.sampled_from(architectures.all())


@given(works, kinds, st.floats(0, 2e6), archs)
def test_a_share_lies_within_its_range_and_between_0_and_1(
    work: Work, kind: Kind, amount: float, arch: architectures.Architecture
) -> None:
    cost = price(kernel(access("shared", wavefronts=4), access("global", sectors=32), work=work), Repair(kind, amount), arch)
    assert 0 <= cost.low <= cost.share <= cost.high <= 1


@given(works, kinds, st.floats(0, 1e6), st.floats(0, 1e6))
def test_saving_more_never_gains_less(work: Work, kind: Kind, one: float, other: float) -> None:
    total = {"wavefronts": work.shared_wavefronts, "sectors": work.global_sectors, "instructions": work.instructions}[kind]
    less, more = sorted((min(one, total), min(other, total)))
    facts = kernel(access("shared", wavefronts=4), access("global", sectors=32), work=work)
    assert price(facts, Repair(kind, less), H).share <= price(facts, Repair(kind, more), H).share + 1e-9


@given(works, kinds)
def test_saving_nothing_gains_nothing(work: Work, kind: Kind) -> None:
    assert price(kernel(access("global"), work=work), Repair(kind, 0), H).high == pytest.approx(0, abs=1e-9)


def test_the_same_conflict_costs_less_in_a_kernel_that_does_more_else() -> None:
    conflict = access("shared", wavefronts=32)
    repair = Repair("wavefronts", 310)
    alone = price(kernel(conflict, work=Work(100, 320)), repair, H)
    busy = price(kernel(conflict, work=Work(20_000, 320)), repair, H)
    assert alone.share > 0.8
    assert busy.share < 0.02
    assert (alone.resource, busy.resource) == ("shared-memory pipe", "shared-memory pipe")


def test_fields_of_a_structure_share_their_sectors() -> None:
    fields = [replace(access("global", sectors=16, addresses=tuple(range(0, 512, 16)), stride=16, array="p")) for _ in range(4)]
    work = Work(200, 0, 512, 128)
    lone = price(kernel(fields[0], work=work), Repair("sectors", 384), H)
    together = price(kernel(*fields, work=work), Repair("sectors", 384), H)
    assert together.share < lone.share
    assert together.resource == "L1 sectors"
    assert lone.resource == "DRAM bandwidth"


def test_instructions_cost_issue_slots() -> None:
    assert price(kernel(work=Work(1000)), Repair("instructions", 500), H).resource == "issue slots"


def test_incomplete_facts_promise_nothing() -> None:
    facts = kernel(access("shared", wavefronts=32), work=Work(100, 320), incomplete="operation budget")
    cost = price(facts, Repair("wavefronts", 310), H)
    assert cost.low == 0 < cost.share


@pytest.mark.parametrize("kind", ["wavefronts", "sectors", "instructions"])
def test_a_repair_is_priced_without_any_counted_work(kind: Kind) -> None:
    cost = price(kernel(work=Work()), Repair(kind, 100), H)
    assert 0 < cost.share <= 1


def test_more_dram_bandwidth_makes_a_conflict_dearer() -> None:
    facts = kernel(_CONFLICTS, _COALESCED, work=Work(489, 320, 272, 272), block=(128, 1, 1))
    repair = Repair("wavefronts", 224)
    assert price(facts, repair, architectures.get("sm_86")).share < price(facts, repair, H).share
