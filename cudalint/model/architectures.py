"""The GPU architectures from compute capability 5.0 to 12.1, as data.

One row per compute capability in `_TABLE`, put together from the tables above
it.  Every group of numbers names its source; a number that nobody published or
measured for a part is taken from its nearest relative and says so.

Sizes are bytes, rates are per clock cycle and SM, latencies are clock cycles
until a dependent instruction can issue.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

KIB = 1024
WARP_SIZE = 32
MAX_THREADS_PER_BLOCK = 1024
MAX_REGISTERS_PER_THREAD = 255
REGISTERS_PER_SM = 64 * KIB
REGISTER_UNIT = 256
SHARED_DEFAULT_PER_BLOCK = 48 * KIB
SHARED_BANKS = 32


class UnknownArchitecture(ValueError):
    """The name is no architecture of the table; the text suggests one and lists the others."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """Results per clock cycle and SM.

    lsu           address lanes of the load/store units
    shared_bytes  bytes per cycle that shared memory and L1 deliver
    """

    fp32: int
    fp64: int
    int32: int
    sfu: int
    lsu: int
    shared_bytes: int
    source: str


@dataclass(frozen=True, slots=True)
class Latency:
    """Clock cycles to a dependent instruction: FP32 arithmetic, shared-memory load, L1 hit, L2 hit, DRAM."""

    fp32: int
    shared: int
    l1: int
    l2: int
    dram: int
    source: str


@dataclass(frozen=True, slots=True)
class Part:
    """A typical product: SMs, boost clock in MHz, L2 in bytes, peak DRAM bandwidth in GB/s (10^9 bytes)."""

    name: str
    sms: int
    clock_mhz: int
    l2_bytes: int
    dram_gb_per_s: float
    source: str

    @property
    def dram_bytes_per_cycle_per_sm(self) -> float:
        """Bytes of DRAM bandwidth that one SM gets per clock cycle when all SMs share it."""
        return self.dram_gb_per_s * 1e3 / (self.clock_mhz * self.sms)


@dataclass(frozen=True, slots=True)
class Architecture:
    """Limits and rates of one compute capability.

    registers_per_block  most registers of one block
    shared_per_sm        shared memory of an SM at the largest carve-out, bytes
    shared_optin         most shared memory of one block (above 48 KiB only dynamic and after opting in), bytes
    shared_reserved      bytes that the driver adds to every block
    shared_unit          shared memory is allocated in multiples of this many bytes
    carveouts            sizes the shared part of the unified cache can have, ascending; empty where shared memory is separate
    l1_bytes             L1 cache, with the shared memory that is carved out of it from 7.0 on
    sub_partitions       parts that the register file is divided into; a warp's registers lie in one of them
    barriers_per_sm      named-barrier slots of an SM, None where they never limit occupancy
    schedulers           warp instructions that can issue per cycle
    """

    name: str
    compute_capability: tuple[int, int]
    generation: str
    warps_per_sm: int
    blocks_per_sm: int
    registers_per_block: int
    shared_per_sm: int
    shared_optin: int
    shared_reserved: int
    shared_unit: int
    carveouts: tuple[int, ...]
    l1_bytes: int
    sub_partitions: int
    barriers_per_sm: int | None
    schedulers: int
    lanes: Lanes
    latency: Latency
    part: Part
    source: str

    warp_size = WARP_SIZE
    threads_per_block = MAX_THREADS_PER_BLOCK
    registers_per_sm = REGISTERS_PER_SM
    register_unit = REGISTER_UNIT
    registers_per_thread = MAX_REGISTERS_PER_THREAD
    shared_default = SHARED_DEFAULT_PER_BLOCK

    @property
    def number(self) -> int:
        """The compute capability as one number: 90 for 9.0, 121 for 12.1."""
        major, minor = self.compute_capability
        return major * 10 + minor

    @property
    def threads_per_sm(self) -> int:
        """Most resident threads of an SM."""
        return self.warps_per_sm * WARP_SIZE

    @property
    def register_warp_unit(self) -> int:
        """Registers per thread come in multiples of this: 256 registers per warp are 8 per thread."""
        return REGISTER_UNIT // WARP_SIZE


# --- sources ---------------------------------------------------------------------------------------------------------------

_GUIDE_11 = 'CUDA C++ Programming Guide 11.x, "Technical Specifications per Compute Capability"'
_GUIDE_13 = 'CUDA Programming Guide 13.x, tables "Device and SM Information" and "Memory Information per Compute Capability"'
_HEADER = "cuda_occupancy.h of CUDA 13.0"
_THROUGHPUT_11 = 'CUDA C++ Programming Guide 11.x, "Throughput of Native Arithmetic Instructions"'
_THROUGHPUT_13 = (
    'CUDA C++ Best Practices Guide 13.x, "Throughput of Native Arithmetic Instructions"; '
    "FP64 by the ratio to FP32 in the CUDA Programming Guide 13.x"
)
_ARAFA = "Arafa et al., Low Overhead Instruction Latency Characterization for NVIDIA GPGPUs, HPEC 2019 (arXiv 1905.08778)"
_CHASE = "pointer-chase latencies of one method over many parts, markdewing/AI_kernels latency/README.md"
_HUERTA = "Huerta et al., Analyzing Modern NVIDIA GPU Cores, MICRO 2025 (arXiv 2503.20481)"

# --- limits ----------------------------------------------------------------------------------------------------------------

_CARVEOUTS_100 = tuple(k * KIB for k in (0, 8, 16, 32, 64, 100))
_CARVEOUTS_164 = tuple(k * KIB for k in (0, 8, 16, 32, 64, 100, 132, 164))
_CARVEOUTS_228 = tuple(k * KIB for k in (0, 8, 16, 32, 64, 100, 132, 164, 196, 228))


@dataclass(frozen=True, slots=True)
class _Shared:
    """Shared memory and L1 in KiB, the allocation unit and the carve-outs in bytes."""

    per_sm: int
    optin: int
    reserved: int
    l1: int
    unit: int
    carveouts: tuple[int, ...]


# Sizes: programming guides; L1 and carve-outs: guide 13.x, table "Shared Memory Capacity" (before 7.0: texture cache working set,
# GP100 and GP104 whitepapers; 7.0: GV100 whitepaper); reserved: guide 13.x (per SM less per block); unit: the occupancy header.
_SHARED_64 = _Shared(64, 48, 0, 24, 256, ())
_SHARED_96 = _Shared(96, 48, 0, 48, 256, ())
_SHARED_VOLTA = _Shared(96, 96, 0, 128, 256, tuple(k * KIB for k in (0, 8, 16, 32, 64, 96)))
_SHARED_TURING = _Shared(64, 64, 0, 96, 256, (32 * KIB, 64 * KIB))
_SHARED_100 = _Shared(100, 99, 1, 128, 128, _CARVEOUTS_100)
_SHARED_164 = _Shared(164, 163, 1, 192, 128, _CARVEOUTS_164)
_SHARED_228 = _Shared(228, 227, 1, 256, 128, _CARVEOUTS_228)

# --- rates -----------------------------------------------------------------------------------------------------------------
# lsu and shared_bytes: SM diagrams and text of the architecture whitepapers GM204, GP100, GP104, GV100, TU102, GA100, GA102,
# AD102, GH100, GB202 (Turing: 64 bytes per cycle, every other one here 128).

_MAXWELL = Lanes(fp32=128, fp64=4, int32=128, sfu=32, lsu=32, shared_bytes=128, source=f"{_THROUGHPUT_11}; GM204 whitepaper")
_GP100 = Lanes(fp32=64, fp64=32, int32=64, sfu=16, lsu=32, shared_bytes=128, source=f"{_THROUGHPUT_11}; GP100 whitepaper")
_GP104 = Lanes(fp32=128, fp64=4, int32=128, sfu=32, lsu=32, shared_bytes=128, source=f"{_THROUGHPUT_11}; GP104 whitepaper")
_VOLTA = Lanes(fp32=64, fp64=32, int32=64, sfu=16, lsu=32, shared_bytes=128, source=f"{_THROUGHPUT_11}; GV100 whitepaper")
_TURING = Lanes(fp32=64, fp64=2, int32=64, sfu=16, lsu=16, shared_bytes=64, source=f"{_THROUGHPUT_11}; TU102 whitepaper")
_GA100 = Lanes(fp32=64, fp64=32, int32=64, sfu=16, lsu=32, shared_bytes=128, source=f"{_THROUGHPUT_13}; GA100 whitepaper")
_GA102 = Lanes(fp32=128, fp64=2, int32=64, sfu=16, lsu=16, shared_bytes=128, source=f"{_THROUGHPUT_13}; GA102 whitepaper")
_ADA = Lanes(fp32=128, fp64=2, int32=64, sfu=16, lsu=16, shared_bytes=128, source=f"{_THROUGHPUT_13}; AD102 whitepaper")
_HOPPER = Lanes(fp32=128, fp64=64, int32=64, sfu=16, lsu=32, shared_bytes=128, source=f"{_THROUGHPUT_13}; measured on an H200")
_GB100 = Lanes(fp32=128, fp64=64, int32=64, sfu=16, lsu=32, shared_bytes=128, source=f"{_THROUGHPUT_13}; load/store units as 9.0")
_GB110 = Lanes(fp32=128, fp64=2, int32=64, sfu=16, lsu=32, shared_bytes=128, source=f"{_THROUGHPUT_13}; load/store units as 9.0")
_GB202 = Lanes(fp32=128, fp64=2, int32=128, sfu=16, lsu=16, shared_bytes=128, source=f"{_THROUGHPUT_13}; GB202 whitepaper")

# --- latencies -------------------------------------------------------------------------------------------------------------

_LATENCY_MAXWELL = Latency(fp32=6, shared=24, l1=82, l2=225, dram=379, source=_ARAFA)
_LATENCY_PASCAL = Latency(fp32=6, shared=25, l1=81, l2=252, dram=482, source=_ARAFA)
_LATENCY_VOLTA = Latency(
    fp32=4, shared=18, l1=30, l2=214, dram=436, source=f"{_ARAFA} (FP32, shared); gpu-benches on a V100 (L1, L2, DRAM)"
)
_LATENCY_TURING = Latency(fp32=4, shared=21, l1=32, l2=234, dram=424, source=_ARAFA)
_LATENCY_GA100 = Latency(
    fp32=4, shared=23, l1=33, l2=200, dram=490, source="Abdelkhalik et al. (arXiv 2208.11174); their 290 for DRAM counts from L2"
)
_LATENCY_GA102 = Latency(fp32=4, shared=24, l1=32, l2=214, dram=570, source=f"{_HUERTA} (FP32, shared, L1); {_CHASE} (RTX A2000)")
_LATENCY_ADA = Latency(fp32=4, shared=24, l1=40, l2=296, dram=636, source=f"{_CHASE} (RTX 4090); shared as 8.6, unmeasured")
_LATENCY_HOPPER = Latency(fp32=4, shared=29, l1=40, l2=286, dram=662, source="cudalint's micro-benchmarks on an H200")
_LATENCY_GB100 = Latency(fp32=4, shared=29, l1=40, l2=295, dram=860, source=f"{_CHASE} (B200); FP32 and shared as 9.0")
_LATENCY_GB110 = Latency(fp32=4, shared=29, l1=40, l2=295, dram=860, source="as 10.0, unmeasured")
_LATENCY_GB202 = Latency(fp32=4, shared=24, l1=44, l2=360, dram=936, source=f"{_CHASE} (RTX 5090); shared as 8.6, unmeasured")
_LATENCY_GB20B = Latency(fp32=4, shared=24, l1=44, l2=360, dram=936, source="as 12.0, unmeasured")

# --- typical parts ---------------------------------------------------------------------------------------------------------

_MIB = 1024 * KIB
_PARTS: Mapping[str, Part] = {
    "5.0": Part("GeForce GTX 750 Ti", 5, 1085, 2 * _MIB, 86.4, "NVIDIA GM107 whitepaper"),
    "5.2": Part("GeForce GTX 980", 16, 1216, 2 * _MIB, 224.0, "NVIDIA GM204 whitepaper"),
    "5.3": Part("Jetson TX1", 2, 998, 256 * KIB, 25.6, "Jetson TX1 data sheet"),
    "6.0": Part("Tesla P100 SXM2", 56, 1480, 4 * _MIB, 732.0, "NVIDIA GP100 whitepaper; P100 data sheet"),
    "6.1": Part("GeForce GTX 1080 Ti", 28, 1582, 2816 * KIB, 484.0, "GeForce GTX 1080 Ti specification"),
    "6.2": Part("Jetson TX2", 2, 1300, 512 * KIB, 59.7, "Jetson TX2 data sheet"),
    "7.0": Part("Tesla V100 SXM2", 80, 1530, 6 * _MIB, 900.0, "NVIDIA GV100 whitepaper"),
    "7.2": Part("Jetson AGX Xavier", 8, 1377, 512 * KIB, 136.5, "Jetson AGX Xavier data sheet"),
    "7.5": Part("Tesla T4", 40, 1590, 4 * _MIB, 320.0, "Tesla T4 product brief"),
    "8.0": Part("A100 SXM4 80 GB", 108, 1410, 40 * _MIB, 2039.0, "NVIDIA GA100 whitepaper; A100 80 GB data sheet"),
    "8.6": Part("GeForce RTX 3090", 82, 1695, 6 * _MIB, 936.0, "NVIDIA GA102 whitepaper"),
    "8.7": Part("Jetson AGX Orin 64 GB", 16, 1300, 4 * _MIB, 204.8, "Jetson AGX Orin data sheet; deviceQuery"),
    "8.8": Part("GeForce RTX 3090", 82, 1695, 6 * _MIB, 936.0, "no public figures of an 8.8 part; as 8.6"),
    "8.9": Part("GeForce RTX 4090", 128, 2520, 72 * _MIB, 1008.0, "NVIDIA AD102 whitepaper"),
    "9.0": Part("H200 SXM", 132, 1980, 50 * _MIB, 4800.0, "H200 data sheet; NVIDIA GH100 whitepaper (L2)"),
    "10.0": Part("B200", 148, 1965, 126 * _MIB, 8000.0, "HGX B200 specifications; L2 by pointer chase (126.5 MiB)"),
    "10.3": Part("B300", 148, 1965, 126 * _MIB, 8000.0, "HGX B300 specifications; SMs, clock and L2 as B200"),
    "11.0": Part("Jetson AGX Thor", 20, 1049, 32 * _MIB, 273.0, "deviceQuery; Jetson Thor data sheet"),
    "12.0": Part("GeForce RTX 5090", 170, 2407, 96 * _MIB, 1792.0, "deviceQuery; NVIDIA RTX Blackwell whitepaper"),
    "12.1": Part("DGX Spark (GB10)", 48, 2418, 24 * _MIB, 273.0, "deviceQuery; DGX Spark data sheet"),
}


def _row(
    capability: str,
    generation: str,
    warps: int,
    blocks: int,
    shared: _Shared,
    lanes: Lanes,
    latency: Latency,
    source: str,
    *,
    registers_per_block: int = REGISTERS_PER_SM,
    sub_partitions: int = 4,
    barriers_per_block_slot: int | None = None,
    schedulers: int = 4,
    part: str = "",
) -> Architecture:
    major, minor = map(int, capability.split("."))
    return Architecture(
        name=f"sm_{major}{minor}",
        compute_capability=(major, minor),
        generation=generation,
        warps_per_sm=warps,
        blocks_per_sm=blocks,
        registers_per_block=registers_per_block,
        shared_per_sm=shared.per_sm * KIB,
        shared_optin=shared.optin * KIB,
        shared_reserved=shared.reserved * KIB,
        shared_unit=shared.unit,
        carveouts=shared.carveouts,
        l1_bytes=shared.l1 * KIB,
        sub_partitions=sub_partitions,
        barriers_per_sm=None if barriers_per_block_slot is None else barriers_per_block_slot * blocks,
        schedulers=schedulers,
        lanes=lanes,
        latency=latency,
        part=_PARTS[part or capability],
        source=f"{source}; {_HEADER}",
    )


# Warps and blocks per SM, registers: the guides.  Sub-partitions, barrier slots (they limit occupancy from 9.0 on), the blocks of
# 8.8 and 10.1: the header.  10.1 is the name that CUDA 12.x gave to 11.0; no guide lists 8.8.
# GP100 has two schedulers per SM, each of which can issue two instructions; counted as the one per cycle that code reaches.
_TABLE: tuple[Architecture, ...] = (
    _row("5.0", "Maxwell", 64, 32, _SHARED_64, _MAXWELL, _LATENCY_MAXWELL, _GUIDE_11),
    _row("5.2", "Maxwell", 64, 32, _SHARED_96, _MAXWELL, _LATENCY_MAXWELL, _GUIDE_11),
    _row("5.3", "Maxwell", 64, 32, _SHARED_64, _MAXWELL, _LATENCY_MAXWELL, _GUIDE_11, registers_per_block=32 * KIB),
    _row("6.0", "Pascal", 64, 32, _SHARED_64, _GP100, _LATENCY_PASCAL, _GUIDE_11, sub_partitions=2, schedulers=2),
    _row("6.1", "Pascal", 64, 32, _SHARED_96, _GP104, _LATENCY_PASCAL, _GUIDE_11),
    _row("6.2", "Pascal", 64, 32, _SHARED_64, _GP104, _LATENCY_PASCAL, _GUIDE_11, registers_per_block=32 * KIB),
    _row("7.0", "Volta", 64, 32, _SHARED_VOLTA, _VOLTA, _LATENCY_VOLTA, _GUIDE_11),
    _row("7.2", "Volta", 64, 32, _SHARED_VOLTA, _VOLTA, _LATENCY_VOLTA, _GUIDE_11),
    _row("7.5", "Turing", 32, 16, _SHARED_TURING, _TURING, _LATENCY_TURING, _GUIDE_13),
    _row("8.0", "Ampere", 64, 32, _SHARED_164, _GA100, _LATENCY_GA100, _GUIDE_13),
    _row("8.6", "Ampere", 48, 16, _SHARED_100, _GA102, _LATENCY_GA102, _GUIDE_13),
    _row("8.7", "Ampere", 48, 16, _SHARED_164, _GA102, _LATENCY_GA102, _GUIDE_13),
    _row("8.8", "Ampere", 48, 16, _SHARED_100, _GA102, _LATENCY_GA102, "warps and registers as 8.6"),
    _row("8.9", "Ada Lovelace", 48, 24, _SHARED_100, _ADA, _LATENCY_ADA, _GUIDE_13),
    _row("9.0", "Hopper", 64, 32, _SHARED_228, _HOPPER, _LATENCY_HOPPER, _GUIDE_13, barriers_per_block_slot=2),
    _row("10.0", "Blackwell", 64, 32, _SHARED_228, _GB100, _LATENCY_GB100, _GUIDE_13, barriers_per_block_slot=2),
    _row("10.1", "Blackwell", 48, 24, _SHARED_228, _GB110, _LATENCY_GB110, "as 11.0", barriers_per_block_slot=1, part="11.0"),
    _row("10.3", "Blackwell", 64, 32, _SHARED_228, _GB110, _LATENCY_GB100, _GUIDE_13, barriers_per_block_slot=2),
    _row("11.0", "Blackwell", 48, 24, _SHARED_228, _GB110, _LATENCY_GB110, _GUIDE_13, barriers_per_block_slot=1),
    _row("12.0", "Blackwell", 48, 24, _SHARED_100, _GB202, _LATENCY_GB202, _GUIDE_13, barriers_per_block_slot=1),
    _row("12.1", "Blackwell", 48, 24, _SHARED_100, _GB202, _LATENCY_GB20B, _GUIDE_13, barriers_per_block_slot=1),
)

_BY_NUMBER: Mapping[int, Architecture] = {arch.number: arch for arch in _TABLE}
_SPELLING = re.compile(r"(?:(?:sm|compute)_?)?(?:(\d{1,2})\.(\d)|(\d{2,3}))[af]?", re.IGNORECASE)


def all() -> list[Architecture]:  # noqa: A001 (read as architectures.all())
    """Every architecture of the table, in ascending order of compute capability."""
    return list(_TABLE)


def get(name: str | int) -> Architecture:
    """The architecture called `name`: sm_90, sm_90a, sm_100f, compute_90, 90 or 9.0.

    Raises UnknownArchitecture, with a suggestion, for any other name.
    """
    number = _number(str(name).strip())
    found = _BY_NUMBER.get(number) if number is not None else None
    if found is None:
        raise UnknownArchitecture(_unknown(str(name).strip(), number))
    return found


def _number(text: str) -> int | None:
    match = _SPELLING.fullmatch(text)
    if match is None:
        return None
    major, minor, joined = match.groups()
    return int(joined) if joined else int(major) * 10 + int(minor)


def _unknown(name: str, number: int | None) -> str:
    names = ", ".join(arch.name for arch in _TABLE)
    return f"unknown architecture {name!r}: did you mean {_nearest(name, number).name}? Known are {names}"


def _nearest(name: str, number: int | None) -> Architecture:
    """The newest that is not newer than `number`, else the newest of the generation that `name` begins like, else sm_80."""
    if number is not None:
        return next((arch for arch in reversed(_TABLE) if arch.number <= number), _TABLE[0])
    wanted = name.casefold()
    named = (arch for arch in reversed(_TABLE) if wanted and arch.generation.casefold().startswith(wanted[:4]))
    return next(named, _BY_NUMBER[80])
