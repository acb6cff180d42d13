from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalint.model import architectures
from cudalint.model.occupancy import occupancy
from cudalint.model.registers import bound_registers

H = architectures.get("sm_90")


# What ptxas 13.0 gave a kernel that wants more than 255 registers under these bounds on sm_90.
@pytest.mark.parametrize(
    ("threads", "min_blocks", "registers"),
    [
        (128, 1, 255), (256, 1, 255), (288, 1, 168), (352, 1, 168), (416, 1, 128), (512, 1, 128), (544, 1, 96), (640, 1, 96),
        (768, 1, 80), (1000, 1, 64), (1024, 2, 32), (224, 2, 128), (224, 3, 80), (224, 4, 72), (96, 5, 128), (32, 16, 128),
        (32, 17, 96), (32, 32, 64), (33, 8, 128), (160, 3, 128), (100, 6, 80), (320, 3, 64), (384, 3, 56), (65, 16, 40),
        (65, 20, 32), (672, 2, 40), (672, 3, 32),
    ],
)  # fmt: skip
def test_what_ptxas_allows(threads: int, min_blocks: int, registers: int) -> None:
    assert bound_registers(threads, min_blocks, H) == registers


# ptxas: "Value of threads per SM is out of range. .minnctapersm will be ignored"
@pytest.mark.parametrize(("threads", "min_blocks"), [(1024, 3), (1024, 16), (256, 9), (65, 31), (128, 33)])
def test_a_bound_beyond_the_sm_is_ignored(threads: int, min_blocks: int) -> None:
    assert bound_registers(threads, min_blocks, H) == bound_registers(threads, 1, H)


def test_the_architecture_decides_what_is_beyond_the_sm() -> None:
    assert bound_registers(1024, 2) == 32
    assert bound_registers(1024, 2, architectures.get("sm_86")) == 64


def test_zero_blocks_means_no_second_argument() -> None:
    assert bound_registers(1024, 0) == 64


@given(st.sampled_from(architectures.all()), st.integers(1, 1024), st.integers(1, 32))
def test_the_bound_is_the_largest_count_that_keeps_the_blocks(
    arch: architectures.Architecture, threads: int, min_blocks: int
) -> None:
    bound = bound_registers(threads, min_blocks, arch)
    warps = -(-threads // 32)
    if min_blocks <= arch.blocks_per_sm and warps * min_blocks <= arch.warps_per_sm:
        assert (occupancy(arch, threads, bound).limits["registers"] or 0) >= min_blocks
        if bound < 255:
            assert (occupancy(arch, threads, bound + 1).limits["registers"] or 0) < min_blocks


@pytest.mark.parametrize(("threads", "min_blocks"), [(0, 1), (1025, 1), (-3, 1), (32, -1)])
def test_out_of_range(threads: int, min_blocks: int) -> None:
    with pytest.raises(ValueError, match=r"(threads per block|blocks per SM): "):
        bound_registers(threads, min_blocks)
