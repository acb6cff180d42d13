from __future__ import annotations

import dataclasses

import pytest

from cudalint.model import architectures
from cudalint.model.architectures import UnknownArchitecture


def test_covers_every_compute_capability_from_5_0_to_12_1_in_order() -> None:
    names = [arch.name for arch in architectures.all()]
    assert names == [
        "sm_50", "sm_52", "sm_53", "sm_60", "sm_61", "sm_62", "sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_88",
        "sm_89", "sm_90", "sm_100", "sm_101", "sm_103", "sm_110", "sm_120", "sm_121",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "spelling", ["sm_90", "sm_90a", "SM_90", "compute_90", "compute_90a", "sm90", "90", "90a", "9.0", 90, " sm_90 "]
)
def test_accepts_every_usual_spelling(spelling: str | int) -> None:
    assert architectures.get(spelling).name == "sm_90"


@pytest.mark.parametrize(
    ("spelling", "name"), [("100", "sm_100"), ("10.0", "sm_100"), ("sm_100f", "sm_100"), ("12.1", "sm_121"), (121, "sm_121")]
)
def test_two_digit_majors(spelling: str | int, name: str) -> None:
    assert architectures.get(spelling).name == name


@pytest.mark.parametrize(
    ("wrong", "suggestion"),
    [
        ("sm_91", "sm_90"),
        ("sm_999", "sm_121"),
        ("3.5", "sm_50"),
        ("hopper", "sm_90"),
        ("Turing", "sm_75"),
        ("ada", "sm_89"),
        ("native", "sm_80"),
        ("", "sm_80"),
        ("sm_9", "sm_80"),
        ("sm_90ab", "sm_80"),
        (-90, "sm_80"),
    ],
)
def test_an_unknown_name_is_an_error_with_a_suggestion(wrong: str | int, suggestion: str) -> None:
    with pytest.raises(UnknownArchitecture, match=f"did you mean {suggestion}\\?"):
        architectures.get(wrong)
    assert issubclass(UnknownArchitecture, ValueError)


def test_a_few_rows_against_the_programming_guide() -> None:
    hopper = architectures.get("sm_90")
    assert (hopper.warps_per_sm, hopper.threads_per_sm, hopper.blocks_per_sm) == (64, 2048, 32)
    assert (hopper.shared_per_sm, hopper.shared_optin, hopper.shared_reserved, hopper.shared_default) == (
        233472,
        232448,
        1024,
        49152,
    )
    assert (hopper.registers_per_sm, hopper.registers_per_block, hopper.registers_per_thread) == (65536, 65536, 255)
    turing = architectures.get("sm_75")
    assert (turing.warps_per_sm, turing.blocks_per_sm, turing.shared_per_sm, turing.shared_unit) == (32, 16, 65536, 256)
    ada = architectures.get("sm_89")
    assert (ada.warps_per_sm, ada.blocks_per_sm, ada.shared_optin, ada.lanes.fp32, ada.lanes.fp64) == (48, 24, 101376, 128, 2)
    assert architectures.get("sm_53").registers_per_block == 32768


def test_h200_bandwidth_per_cycle_and_sm() -> None:
    # 4,800 GB/s over 132 SMs at 1,980 MHz
    assert architectures.get("sm_90").part.dram_bytes_per_cycle_per_sm == pytest.approx(18.365, abs=0.001)


@pytest.mark.parametrize("arch", architectures.all(), ids=lambda arch: arch.name)
def test_rows_are_consistent_and_state_their_sources(arch: architectures.Architecture) -> None:
    assert arch.shared_optin + arch.shared_reserved <= arch.shared_per_sm
    assert arch.shared_per_sm % arch.shared_unit == 0
    assert list(arch.carveouts) == sorted(arch.carveouts)
    assert not arch.carveouts or arch.carveouts[-1] == arch.shared_per_sm
    assert arch.threads_per_block <= arch.threads_per_sm
    latency = arch.latency
    assert 0 < latency.fp32 < latency.shared < latency.l1 < latency.l2 < latency.dram
    for owner in (arch, arch.lanes, arch.latency, arch.part):
        assert len(owner.source) > 4
        for field in dataclasses.fields(owner):
            value = getattr(owner, field.name)
            if isinstance(value, (int, float)) and field.name != "shared_reserved":
                assert value > 0, field.name
