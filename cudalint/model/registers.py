"""Register counts: what a launch bound allows."""

from __future__ import annotations

from cudalint.model.architectures import MAX_REGISTERS_PER_THREAD, MAX_THREADS_PER_BLOCK, WARP_SIZE, Architecture, get
from cudalint.model.occupancy import blocks_by_registers


def bound_registers(threads: int, min_blocks: int = 1, arch: Architecture | None = None) -> int:
    """Most registers per thread that `__launch_bounds__(threads, min_blocks)` lets the compiler use: a ceiling, not a count.

    It is the largest count with which `min_blocks` blocks still fit on an SM.  Where the warps of those blocks divide evenly
    among the four parts of the register file, that is 65,536 / (threads of whole warps x blocks), rounded down to a multiple
    of 8, at most 255.  Like ptxas, it ignores a `min_blocks` that asks for more threads or blocks than the SM can hold.
    `arch` defaults to sm_80.

    Raises ValueError if `threads` is not within 1 to 1024 or `min_blocks` is negative.
    """
    if not 1 <= threads <= MAX_THREADS_PER_BLOCK:
        raise ValueError(f"threads per block: {threads} is not within 1 to {MAX_THREADS_PER_BLOCK}")
    if min_blocks < 0:
        raise ValueError(f"blocks per SM: {min_blocks} is negative")
    arch = arch or get("sm_80")
    warps = -(-threads // WARP_SIZE)
    possible = min_blocks <= arch.blocks_per_sm and warps * min_blocks <= arch.warps_per_sm
    wanted = max(min_blocks, 1) if possible else 1
    unit = arch.register_warp_unit
    counts: tuple[int, ...] = (MAX_REGISTERS_PER_THREAD, *range(MAX_REGISTERS_PER_THREAD // unit * unit, 0, -unit))
    return next(count for count in counts if blocks_by_registers(arch, warps, count) >= wanted)
