"""How many blocks of a kernel an SM holds, and what stops it from holding more.

Gives the results of NVIDIA's occupancy calculator (`cuda_occupancy.h`) for
every architecture of the table.  Not covered: partitioned global caching
(an opt-in of 5.2 to 6.2) and the virtual resources of tensor memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from cudalint.model.architectures import (
    MAX_REGISTERS_PER_THREAD,
    MAX_THREADS_PER_BLOCK,
    REGISTER_UNIT,
    REGISTERS_PER_SM,
    SHARED_DEFAULT_PER_BLOCK,
    WARP_SIZE,
    Architecture,
)

Limiter = Literal["registers", "shared", "barriers", "blocks", "warps"]
Axis = Literal["registers", "block", "smem"]

TIE_ORDER: tuple[Limiter, ...] = ("registers", "shared", "barriers", "blocks", "warps")
AXES: tuple[Axis, ...] = ("registers", "block", "smem")
MAX_BARRIERS = 16

CACHE_CONFIG_CARVEOUT: Mapping[str, int | None] = {
    "cudaFuncCachePreferNone": None,
    "cudaFuncCachePreferShared": 100,
    "cudaFuncCachePreferL1": 0,
    "cudaFuncCachePreferEqual": 50,
}
"""The carve-out in percent that an argument of cudaFuncSetCacheConfig means from 7.0 on."""

_INT_MAX = 2**31 - 1
# A launch is checked as if the block's warps took registers in four sub-partitions at once, on GP100 with its two as well.
_LAUNCH_PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class Config:
    """One launch configuration.

    threads_per_block     1 to 2^31 - 1 (over 1024 the result is no block at all)
    registers_per_thread  1 to 255
    static_smem, dynamic_smem  bytes of shared memory per block
    barriers   named barriers of a block, 0 to 16; 0 where unknown.  One (a plain __syncthreads) never lowers the count
    carveout   preferred size of shared memory in percent of the largest, None without a preference; no effect before 7.0
    optin      the kernel has opted in to more than 48 KiB of shared memory per block
    """

    threads_per_block: int
    registers_per_thread: int
    static_smem: int = 0
    dynamic_smem: int = 0
    barriers: int = 0
    carveout: int | None = None
    optin: bool = True

    def __post_init__(self) -> None:
        _check("threads per block", self.threads_per_block, 1, _INT_MAX)
        _check("registers per thread", self.registers_per_thread, 1, MAX_REGISTERS_PER_THREAD)
        _check("static shared memory in bytes", self.static_smem, 0, _INT_MAX)
        _check("dynamic shared memory in bytes", self.dynamic_smem, 0, _INT_MAX)
        _check("barriers per block", self.barriers, 0, MAX_BARRIERS)
        if self.carveout is not None:
            _check("carve-out in percent", self.carveout, 0, 100)

    @property
    def warps_per_block(self) -> int:
        return -(-self.threads_per_block // WARP_SIZE)

    @property
    def smem(self) -> int:
        """Shared memory that a block asks for, in bytes."""
        return self.static_smem + self.dynamic_smem


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What an SM holds of one kernel.

    occupancy_percent  resident warps in percent of the most an SM can hold, one decimal
    limiter, limiters  what stops another block; ties resolve in the order of TIE_ORDER
    limits             blocks per SM by each resource alone, None where it sets no limit; `barriers` only where they limit
    reason             why the block cannot run at all, "" if it can
    """

    arch: Architecture
    config: Config
    blocks_per_sm: int
    warps_per_sm: int
    occupancy_percent: float
    limiter: Limiter
    limiters: tuple[Limiter, ...]
    limits: Mapping[Limiter, int | None]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """Values `first` to `last` (inclusive) of a curve's axis, over which the resident blocks and warps stay the same."""

    first: int
    last: int
    occupancy: Occupancy


@dataclass(frozen=True, slots=True)
class Cliff:
    """From `before` to `after`, the next value of the axis, the occupancy falls."""

    before: int
    after: int
    high: Occupancy
    low: Occupancy


@dataclass(frozen=True, slots=True)
class Curve:
    """Occupancy over one axis, everything else as in `config`.

    axis     registers per thread, threads per block (whole warps) or bytes of shared memory per block
    current  where `config` lies on the axis
    """

    axis: Axis
    arch: Architecture
    config: Config
    current: int
    steps: tuple[Step, ...]
    cliffs: tuple[Cliff, ...]

    def at(self, value: int) -> Step | None:
        """The step that `value` lies on, None beyond the ends of the curve."""
        return next((step for step in self.steps if step.first <= value <= step.last), None)


def occupancy(
    arch: Architecture,
    threads_per_block: int,
    registers_per_thread: int,
    static_smem: int = 0,
    dynamic_smem: int = 0,
    *,
    barriers: int = 0,
    carveout: int | None = None,
    optin: bool = True,
) -> Occupancy:
    """Blocks and warps per SM of one launch configuration; see `Config` for units and ranges.

    Raises ValueError for values outside the ranges.  A configuration that is in range but cannot be launched has zero blocks and
    says why in `reason`.
    """
    config = Config(threads_per_block, registers_per_thread, static_smem, dynamic_smem, barriers, carveout, optin)
    return evaluate(arch, config)


def nearest_config(threads_per_block: int, registers_per_thread: int, static_smem: int, dynamic_smem: int) -> Config:
    """The configuration for numbers as a source has them: what no launch can have becomes the nearest that `Config` takes."""
    return Config(
        min(max(threads_per_block, 1), _INT_MAX),
        min(max(registers_per_thread, 1), MAX_REGISTERS_PER_THREAD),
        min(max(static_smem, 0), _INT_MAX),
        min(max(dynamic_smem, 0), _INT_MAX),
    )


def evaluate(arch: Architecture, config: Config) -> Occupancy:
    """`occupancy` of a ready-made configuration."""
    limits: dict[Limiter, int | None] = {
        "registers": blocks_by_registers(arch, config.warps_per_block, config.registers_per_thread),
        "shared": _blocks_by_shared(arch, config),
        "warps": arch.warps_per_sm // config.warps_per_block if config.threads_per_block <= MAX_THREADS_PER_BLOCK else 0,
        "blocks": arch.blocks_per_sm,
    }
    if config.barriers and arch.barriers_per_sm is not None:
        limits["barriers"] = arch.barriers_per_sm // config.barriers
    blocks = min(limit for limit in limits.values() if limit is not None)
    limiters = tuple(name for name in TIE_ORDER if limits.get(name) == blocks)
    if "barriers" not in limiters:
        limits.pop("barriers", None)
    warps = blocks * config.warps_per_block
    return Occupancy(
        arch=arch,
        config=config,
        blocks_per_sm=blocks,
        warps_per_sm=warps,
        occupancy_percent=round(100 * warps / arch.warps_per_sm, 1),
        limiter=limiters[0],
        limiters=limiters,
        limits=limits,
        reason="" if blocks else _why_none(arch, config, limits),
    )


def blocks_by_registers(arch: Architecture, warps_per_block: int, registers_per_thread: int) -> int:
    """Blocks per SM that the register file has room for."""
    per_warp = registers_per_warp(registers_per_thread)
    if _registers_at_launch(warps_per_block, per_warp) > arch.registers_per_block:
        return 0
    warps_per_partition = REGISTERS_PER_SM // arch.sub_partitions // per_warp
    return warps_per_partition * arch.sub_partitions // warps_per_block


def registers_per_warp(registers_per_thread: int) -> int:
    """Registers that one warp is given: its threads' registers, rounded up to the allocation unit."""
    return _round_up(registers_per_thread * WARP_SIZE, REGISTER_UNIT)


def smem_allocated(arch: Architecture, smem: int) -> int:
    """Bytes that a block with `smem` bytes of shared memory takes from the SM: with the driver's share, in whole units."""
    return _round_up(smem + arch.shared_reserved, arch.shared_unit)


def curve(arch: Architecture, axis: Axis, config: Config) -> Curve:
    """Occupancy of `config` over all values of one axis, with the places where it falls.

    On the axis "smem" the values are static and dynamic shared memory together.  Raises ValueError for an unknown axis.
    """
    if axis not in _VARIABLES:
        raise ValueError(f"unknown axis {axis!r}: choose from {', '.join(AXES)}")
    variable = _VARIABLES[axis]
    steps = _steps((value, evaluate(arch, variable.vary(config, value))) for value in variable.samples(arch))
    cliffs = tuple(
        Cliff(high.last, low.first, high.occupancy, low.occupancy)
        for high, low in pairwise(steps)
        if low.occupancy.warps_per_sm < high.occupancy.warps_per_sm
    )
    return Curve(axis, arch, config, variable.current(config), steps, cliffs)


# --- limits ----------------------------------------------------------------------------------------------------------------


def _blocks_by_shared(arch: Architecture, config: Config) -> int | None:
    allocated = smem_allocated(arch, config.smem)
    if allocated > _smem_limit(arch, config.optin) + arch.shared_reserved:
        return 0
    if allocated == 0:
        return None
    preferred = _preferred_carveout(arch, config.carveout)
    if preferred < allocated:
        preferred = _next_carveout(arch, allocated)
    return preferred // allocated


def _smem_limit(arch: Architecture, optin: bool) -> int:
    return arch.shared_optin if optin else min(arch.shared_optin, SHARED_DEFAULT_PER_BLOCK)


def _preferred_carveout(arch: Architecture, percent: int | None) -> int:
    if percent is None or not arch.carveouts:
        return arch.shared_per_sm
    return _next_carveout(arch, percent * arch.shared_per_sm // 100)


def _next_carveout(arch: Architecture, size: int) -> int:
    return next((carveout for carveout in arch.carveouts if carveout >= size), arch.shared_per_sm)


def _registers_at_launch(warps_per_block: int, per_warp: int) -> int:
    return per_warp * _round_up(warps_per_block, _LAUNCH_PARTITIONS)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


# --- texts -----------------------------------------------------------------------------------------------------------------


def _check(what: str, value: int, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{what}: {value!r} is not a whole number")
    if not low <= value <= high:
        raise ValueError(f"{what}: {value} is not within {low} to {high}")


def _why_none(arch: Architecture, config: Config, limits: Mapping[Limiter, int | None]) -> str:
    return "; ".join(_REASONS[name](arch, config) for name in TIE_ORDER if name in _REASONS and limits.get(name) == 0)


def _no_registers(arch: Architecture, config: Config) -> str:
    needed = _registers_at_launch(config.warps_per_block, registers_per_warp(config.registers_per_thread))
    return (
        f"{config.threads_per_block:,} threads with {config.registers_per_thread} registers each need {needed:,} registers, "
        f"a block can have {arch.registers_per_block:,} on {arch.name}"
    )


def _no_shared(arch: Architecture, config: Config) -> str:
    limit = _smem_limit(arch, config.optin)
    hint = "" if config.optin or limit == arch.shared_optin else f" (up to {arch.shared_optin:,} after opting in)"
    return f"{config.smem:,} bytes of shared memory, a block can have {limit:,}{hint} on {arch.name}"


def _no_warps(arch: Architecture, config: Config) -> str:
    return f"{config.threads_per_block:,} threads, a block can have {arch.threads_per_block:,}"


_REASONS: Mapping[Limiter, Callable[[Architecture, Config], str]] = {
    "registers": _no_registers,
    "shared": _no_shared,
    "warps": _no_warps,
}

# --- curves ----------------------------------------------------------------------------------------------------------------


def _steps(points: Iterable[tuple[int, Occupancy]]) -> tuple[Step, ...]:
    """Runs of equal occupancy; each value stands for itself and the values down to the one before it."""
    steps: list[Step] = []
    previous: int | None = None
    for value, found in points:
        first = 0 if previous is None and value == 0 else 1 if previous is None else previous + 1
        previous = value
        last = steps[-1] if steps else None
        if last is not None and _same(last.occupancy, found):
            steps[-1] = Step(last.first, value, last.occupancy)
        else:
            steps.append(Step(first, value, found))
    return tuple(steps)


def _same(a: Occupancy, b: Occupancy) -> bool:
    return (a.blocks_per_sm, a.warps_per_sm) == (b.blocks_per_sm, b.warps_per_sm)


# The samples of an axis are the largest values of the runs that are allocated alike: what lies between two equals the later one.


def _register_samples(arch: Architecture) -> Iterable[int]:
    yield from range(arch.register_warp_unit, MAX_REGISTERS_PER_THREAD, arch.register_warp_unit)
    yield MAX_REGISTERS_PER_THREAD


def _block_samples(arch: Architecture) -> Iterable[int]:
    return range(arch.warp_size, MAX_THREADS_PER_BLOCK + 1, arch.warp_size)


def _smem_samples(arch: Architecture) -> Iterable[int]:
    return range(0, arch.shared_optin + 1, arch.shared_unit)


@dataclass(frozen=True, slots=True)
class _Variable:
    """An axis: its samples, a configuration with another value, the value of a configuration."""

    samples: Callable[[Architecture], Iterable[int]]
    vary: Callable[[Config, int], Config]
    current: Callable[[Config], int]


_VARIABLES: Mapping[Axis, _Variable] = {
    "registers": _Variable(
        _register_samples,
        lambda config, value: replace(config, registers_per_thread=value),
        lambda config: config.registers_per_thread,
    ),
    "block": _Variable(
        _block_samples,
        lambda config, value: replace(config, threads_per_block=value),
        lambda config: config.threads_per_block,
    ),
    "smem": _Variable(
        _smem_samples,
        lambda config, value: replace(config, static_smem=0, dynamic_smem=value),
        lambda config: config.smem,
    ),
}
