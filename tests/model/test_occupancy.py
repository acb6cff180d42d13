from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalint.model import architectures
from cudalint.model.occupancy import CACHE_CONFIG_CARVEOUT, TIE_ORDER, Axis, Config, curve, evaluate, occupancy

H = architectures.get("sm_90")
MEASURED = list(
    csv.DictReader((Path(__file__).parents[1] / "data" / "h200-occupancy.csv").read_text(encoding="utf-8").splitlines())
)

configs = st.builds(
    Config,
    threads_per_block=st.integers(1, 1024),
    registers_per_thread=st.integers(1, 255),
    static_smem=st.integers(0, 48 * 1024),
    dynamic_smem=st.integers(0, 228 * 1024),
    barriers=st.integers(0, 16),
)
archs = st.sampled_from(architectures.all())


def test_the_worked_example_of_the_contract() -> None:
    found = occupancy(H, 224, 96)
    assert (found.blocks_per_sm, found.warps_per_sm, found.occupancy_percent) == (2, 14, 21.9)
    assert found.limits == {"registers": 2, "shared": 228, "warps": 9, "blocks": 32}
    assert (found.limiter, found.limiters, found.reason) == ("registers", ("registers",), "")


# 97 to 104 registers are 13 units of 256 per warp: 16384 // 3328 = 4 warps in each of 4 sub-partitions, 16 // 8 = 2 blocks.
def test_a_warp_does_not_straddle_sub_partitions() -> None:
    assert occupancy(H, 256, 100).blocks_per_sm == 2
    assert occupancy(H, 256, 96).blocks_per_sm == 2
    assert occupancy(H, 256, 80).blocks_per_sm == 3


# Limits that the driver reported for the kernels of public programs that ran on an H200.
@pytest.mark.parametrize("row", MEASURED, ids=lambda row: "-".join(row.values()))
def test_measured_on_an_h200(row: dict[str, str]) -> None:
    found = occupancy(H, *(int(row[name]) for name in ("block", "registers", "static_smem", "dynamic_smem")))
    assert found.blocks_per_sm == int(row["blocks_per_sm"])
    assert found.occupancy_percent == pytest.approx(float(row["occupancy_percent"]), abs=0.051)


@pytest.mark.parametrize(
    ("name", "registers", "blocks"),
    [("sm_80", 32, 8), ("sm_75", 32, 4), ("sm_86", 32, 6), ("sm_89", 64, 4), ("sm_70", 64, 4), ("sm_120", 128, 2)],
)
def test_256_threads_with_8_kib(name: str, registers: int, blocks: int) -> None:
    assert occupancy(architectures.get(name), 256, registers, 8192).blocks_per_sm == blocks


def test_ties_name_registers_first_and_list_all() -> None:
    found = occupancy(H, 256, 32)
    assert (found.limiter, found.limiters) == ("registers", ("registers", "warps"))
    assert occupancy(H, 32, 16).limiters == ("blocks",)
    both = occupancy(H, 1024, 32, 0, 113 * 1024)
    assert both.limiters == ("registers", "shared", "warps")


def test_without_shared_memory_and_without_a_reserve_it_sets_no_limit() -> None:
    assert occupancy(architectures.get("sm_75"), 256, 32).limits["shared"] is None


def test_barriers_are_listed_only_where_they_limit() -> None:
    spark = architectures.get("sm_120")
    assert occupancy(spark, 64, 16, barriers=4).limits == {
        "registers": 64,
        "shared": 100,
        "warps": 24,
        "blocks": 24,
        "barriers": 6,
    }
    assert occupancy(spark, 64, 16, barriers=4).limiter == "barriers"
    assert "barriers" not in occupancy(spark, 512, 16, barriers=4).limits
    assert "barriers" not in occupancy(architectures.get("sm_80"), 32, 16, barriers=16).limits


def test_shared_memory_beyond_the_opt_in_maximum_is_impossible() -> None:
    most = H.shared_optin
    assert occupancy(H, 128, 32, 0, most).blocks_per_sm == 1
    found = occupancy(H, 128, 32, 0, most + 1)
    assert (found.blocks_per_sm, found.warps_per_sm, found.occupancy_percent, found.limiter) == (0, 0, 0.0, "shared")
    assert found.reason == "232,449 bytes of shared memory, a block can have 232,448 on sm_90"


def test_without_the_opt_in_a_block_has_48_kib() -> None:
    assert occupancy(H, 128, 32, 0, 48 * 1024, optin=False).blocks_per_sm == 4
    found = occupancy(H, 128, 32, 0, 48 * 1024 + 1, optin=False)
    assert found.blocks_per_sm == 0
    assert found.reason == "49,153 bytes of shared memory, a block can have 49,152 (up to 232,448 after opting in) on sm_90"


def test_other_impossible_blocks_say_why() -> None:
    large = occupancy(H, 1025, 16)
    assert (large.blocks_per_sm, large.limiter, large.reason) == (0, "warps", "1,025 threads, a block can have 1,024")
    hungry = occupancy(H, 1024, 65)
    assert (hungry.blocks_per_sm, hungry.limiter) == (0, "registers")
    assert hungry.reason == "1,024 threads with 65 registers each need 73,728 registers, a block can have 65,536 on sm_90"
    assert occupancy(H, 2048, 255, 0, 10**6).reason.count(";") == 2


# 9 warps count as 12 when a launch is checked: 12 x 32 x 176 = 67,584 registers, although 9 x 32 x 176 would fit.
def test_the_launch_check_rounds_warps_up_to_the_sub_partitions() -> None:
    assert occupancy(H, 288, 176).blocks_per_sm == 0
    assert occupancy(H, 288, 168).blocks_per_sm == 1


def test_carve_outs_limit_what_fits_and_give_way_to_one_block() -> None:
    assert occupancy(H, 128, 32, 8192, carveout=CACHE_CONFIG_CARVEOUT["cudaFuncCachePreferL1"]).limits["shared"] == 1
    assert occupancy(H, 128, 32, 8192, carveout=50).limits["shared"] == 14  # half of 228 KiB becomes 132 KiB, 9 KiB a block
    assert occupancy(H, 128, 32, 8192, carveout=None).limits["shared"] == 25
    pascal = architectures.get("sm_60")
    assert occupancy(pascal, 128, 32, 8192, carveout=0) == evaluate(pascal, Config(128, 32, 8192, carveout=0))
    assert occupancy(pascal, 128, 32, 8192, carveout=0).limits["shared"] == 8


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((0, 32), "threads per block: 0 is not within 1 to 2147483647"),
        ((-1, 32), "threads per block: -1"),
        ((2**31, 32), "threads per block: 2147483648"),
        ((128, 0), "registers per thread: 0 is not within 1 to 255"),
        ((128, 256), "registers per thread: 256"),
        ((128, 32, -1), "static shared memory in bytes: -1"),
        ((128, 32, 0, -1), "dynamic shared memory in bytes: -1"),
        ((128, 32, 0, 2**31), "dynamic shared memory in bytes: 2147483648"),
        ((1.5, 32), "threads per block: 1.5 is not a whole number"),
    ],
)
def test_values_out_of_range_are_errors(arguments: tuple[int, ...], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        occupancy(H, *arguments)


def test_barriers_and_carve_out_out_of_range_are_errors() -> None:
    with pytest.raises(ValueError, match="barriers per block: 17 is not within 0 to 16"):
        Config(32, 32, barriers=17)
    with pytest.raises(ValueError, match="carve-out in percent: 101"):
        Config(32, 32, carveout=101)


@given(archs, configs)
def test_the_result_is_the_smallest_limit_and_the_limiter_follows_the_tie_order(
    arch: architectures.Architecture, config: Config
) -> None:
    found = evaluate(arch, config)
    limits = {name: limit for name, limit in found.limits.items() if limit is not None}
    assert found.blocks_per_sm == min(limits.values())
    assert found.limiters == tuple(name for name in TIE_ORDER if limits.get(name) == found.blocks_per_sm)
    assert found.limiter == found.limiters[0]
    assert 0 <= found.occupancy_percent <= 100
    assert bool(found.reason) == (found.blocks_per_sm == 0)


@given(archs, configs, st.integers(0, 64), st.integers(0, 4096))
def test_more_registers_or_shared_memory_never_raise_occupancy(
    arch: architectures.Architecture, config: Config, registers: int, smem: int
) -> None:
    more = Config(
        config.threads_per_block,
        min(255, config.registers_per_thread + registers),
        config.static_smem,
        config.dynamic_smem + smem,
        config.barriers,
    )
    assert evaluate(arch, more).blocks_per_sm <= evaluate(arch, config).blocks_per_sm


# --- curves ----------------------------------------------------------------------------------------------------------------


def test_register_cliffs_of_256_threads() -> None:
    found = curve(H, "registers", Config(256, 40))
    assert [(cliff.before, cliff.after, cliff.high.blocks_per_sm, cliff.low.blocks_per_sm) for cliff in found.cliffs] == [
        (32, 33, 8, 6), (40, 41, 6, 5), (48, 49, 5, 4), (64, 65, 4, 3), (80, 81, 3, 2), (128, 129, 2, 1),
    ]  # fmt: skip
    assert found.current == 40
    step = found.at(40)
    assert step is not None
    assert (step.first, step.last, step.occupancy.blocks_per_sm) == (33, 40, 6)
    assert found.at(256) is None


def test_shared_memory_cliffs_stand_at_exact_bytes() -> None:
    found = curve(H, "smem", Config(512, 32, static_smem=1024, dynamic_smem=2048))
    assert found.current == 3072
    # 228 KiB / 4 = 57 KiB less 1 KiB reserved; thirds and halves alike
    assert [(cliff.before, cliff.after) for cliff in found.cliffs] == [(57344, 57345), (76800, 76801), (115712, 115713)]


def test_the_block_curve_has_a_cliff_where_a_second_block_stops_fitting() -> None:
    found = curve(H, "block", Config(512, 32))
    assert [(step.first, step.last) for step in found.steps if step.occupancy.warps_per_sm == 64][-1] == (993, 1024)
    at_512 = next(cliff for cliff in found.cliffs if cliff.before == 512)
    assert (at_512.after, at_512.high.warps_per_sm, at_512.low.warps_per_sm) == (513, 64, 51)


@pytest.mark.parametrize("axis", ["registers", "block", "smem"])
@given(arch=archs, config=configs, data=st.data())
def test_every_value_has_the_occupancy_of_its_step(
    axis: Axis, arch: architectures.Architecture, config: Config, data: st.DataObject
) -> None:
    found = curve(arch, axis, config)
    low, high = found.steps[0].first, found.steps[-1].last
    assert all(before.last + 1 == after.first for before, after in zip(found.steps, found.steps[1:], strict=False))
    value = data.draw(st.integers(low, high))
    step = found.at(value)
    assert step is not None
    numbers = {
        "registers": (config.threads_per_block, value, config.static_smem, config.dynamic_smem),
        "block": (value, config.registers_per_thread, config.static_smem, config.dynamic_smem),
        "smem": (config.threads_per_block, config.registers_per_thread, 0, value),
    }[axis]
    direct = occupancy(arch, *numbers, barriers=config.barriers)
    assert (direct.blocks_per_sm, direct.warps_per_sm) == (step.occupancy.blocks_per_sm, step.occupancy.warps_per_sm)


def test_an_unknown_axis_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown axis 'grid': choose from registers, block, smem"):
        curve(H, "grid", Config(32, 32))  # type: ignore[arg-type]
