"""shared-bank-conflict: lanes of one warp ask one bank for different words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from cudalint.rule import (
    Access,
    Certainty,
    Edit,
    Evidence,
    Example,
    Finding,
    Fix,
    KernelFacts,
    Padding,
    Repair,
    Rule,
    RuleMeta,
    Severity,
)

LEAST_RATIO = 1.05
LEAST_SHARE = 0.02


class SharedBankConflict(Rule):
    """Shared-memory accesses that the hardware has to serve in several turns.

    ## What it does
    Works out, lane by lane for every warp of the block, which words of shared memory an instruction asks for, and reports the
    accesses where one of the 32 banks has to deliver several different words: an n-way conflict takes n wavefronts
    instead of one.

    ## Why it matters
    Shared memory delivers one wavefront per cycle and SM. A 32-way conflict makes an access 32 times as expensive and adds
    62 cycles of latency (measured on an H200: 2 cycles per extra way).

    ## Example
    ```cuda
    __shared__ float tile[32][32];
    tile[threadIdx.y][threadIdx.x] = in[i];
    __syncthreads();
    out[j] = tile[threadIdx.x][threadIdx.y];  // lanes are 128 bytes apart: one bank, 32 words
    ```

    ## Use instead
    ```cuda
    __shared__ float tile[32][32 + 1];  // lanes are 33 words apart: 32 banks
    ```
    cudalint proposes a padding only after evaluating every use of the array with it; how much helps depends on the
    element size and on all access patterns together. Where shared memory is scarce, a column index of `x ^ y` does the same
    without padding.

    ## Limits
    Addresses that depend on loaded data are not judged. Without a launch in sight the block shape is assumed and printed.
    Accesses that make up less than 2 % of the block's shared-memory wavefronts are left alone.
    Conflicts between different instructions do not exist in hardware and are not reported; two lanes that read the same word
    (a broadcast) never conflict.

    ## References
    Nsight Compute: "Uncoalesced Shared Accesses", "Shared Memory Conflicts"; counters
    `l1tex__data_bank_conflicts_pipe_lsu_mem_shared`, `memory_l1_wavefronts_shared`. CUDA C++ Programming Guide, "Shared Memory".
    """

    meta = RuleMeta(
        name="shared-bank-conflict",
        code="CU101",
        family="memory",
        summary="lanes of a warp ask one shared-memory bank for different words",
        severity={Certainty.EXACT: Severity.WARNING, Certainty.LIKELY: Severity.WARNING},
        since="0.1.0",
        fix="sometimes",
        min_arch=50,
        also_known_as=("Uncoalesced Shared Accesses", "Shared Memory Conflicts"),
        mentions=("__shared__",),
    )

    VALID: ClassVar = (
        Example(
            title="a padded tile",
            code="""\
__global__ void turn(const float* in, float* out) {
    __shared__ float tile[32][33];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
void run(const float* in, float* out) { turn<<<1, dim3(32, 32)>>>(in, out); }
""",
        ),
        Example(
            title="a swizzled tile",
            code="""\
__global__ void turn(const float* in, float* out) {
    __shared__ float tile[32][32];
    tile[threadIdx.y][threadIdx.x ^ threadIdx.y] = in[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.x ^ threadIdx.y];
}
void run(const float* in, float* out) { turn<<<1, dim3(32, 32)>>>(in, out); }
""",
        ),
        Example(
            title="consecutive doubles take two phases, which is the minimum",
            code="""\
__global__ void scale(double* a) {
    __shared__ double s[128];
    s[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    a[threadIdx.x] = s[127 - threadIdx.x];
}
void run(double* a) { scale<<<1, 128>>>(a); }
""",
        ),
        Example(
            title="all lanes read one word",
            code="""\
__global__ void add(float* a) {
    __shared__ float s[8];
    if (threadIdx.x < 8) s[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 8; ++i) a[threadIdx.x] += s[i];
}
void run(float* a) { add<<<1, 256>>>(a); }
""",
        ),
    )
    INVALID: ClassVar = (
        Example(
            title="a column of an unpadded tile",
            code="""\
__global__ void turn(const float* in, float* out) {
    __shared__ float tile[32][32];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];  // expect: shared-bank-conflict degree=32 wavefronts=32
}
void run(const float* in, float* out) { turn<<<1, dim3(32, 32)>>>(in, out); }
""",
            fixed="""\
__global__ void turn(const float* in, float* out) {
    __shared__ float tile[32][32 + 1];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];  // expect: shared-bank-conflict degree=32 wavefronts=32
}
void run(const float* in, float* out) { turn<<<1, dim3(32, 32)>>>(in, out); }
""",
        ),
        Example(
            title="16 x 17 is padded for 16 banks, not for 32: two rows of a warp meet",
            code="""\
__global__ void turn(const float* in, float* out) {
    __shared__ float tile[16][17];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 16 + threadIdx.x];  // expect: shared-bank-conflict degree=2
    __syncthreads();
    out[threadIdx.y * 16 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];  // expect: shared-bank-conflict degree=2
}
void run(const float* in, float* out) { turn<<<1, dim3(16, 16)>>>(in, out); }
""",
        ),
        Example(
            title="every second double",
            code="""\
__global__ void pick(double* a) {
    __shared__ double s[256];
    s[threadIdx.x] = a[threadIdx.x];
    s[threadIdx.x + 128] = a[threadIdx.x + 128];
    __syncthreads();
    a[threadIdx.x] = s[2 * threadIdx.x];  // expect: shared-bank-conflict degree=2 wavefronts=4 ideal_wavefronts=2
}
void run(double* a) { pick<<<1, 128>>>(a); }
""",
        ),
    )

    def check_kernel(self, kernel: KernelFacts) -> Iterable[Finding]:
        """One finding per access whose worst warp meets a conflict."""
        for access in kernel.accesses:
            if (
                access.space == "shared"
                and access.certainty in self.meta.severity
                and _conflicts(access)
                and _counts(kernel, access)
            ):
                yield self._report(kernel, access)

    def _report(self, kernel: KernelFacts, access: Access) -> Finding:
        worst = access.worst
        assert worst is not None and access.wavefronts is not None and access.ideal_wavefronts is not None
        padding, where = _padding(kernel, access)
        stride = f", {abs(worst.lane_stride)} bytes apart" if worst.lane_stride else ""
        return self.finding(
            access.location,
            f"{worst.degree}-way bank conflict on `{access.array}`: {worst.wavefronts} wavefronts instead of "
            f"{worst.ideal_wavefronts} for {worst.active_lanes} lanes of {access.bytes_per_lane} bytes{stride}",
            access.certainty,
            kernel=kernel,
            facts={
                "degree": worst.degree,
                "wavefronts": worst.wavefronts,
                "ideal_wavefronts": worst.ideal_wavefronts,
                "mean_wavefronts": round(access.wavefronts, 3),
                "active_lanes": worst.active_lanes,
                **({"lane_stride_bytes": worst.lane_stride} if worst.lane_stride is not None else {}),
            },
            evidence=where,
            assumptions=kernel.assumptions(access),
            advice=_advice(access, padding),
            fix=_fix(access, padding),
            repair=Repair("wavefronts", _saved(access)),
        )


def _conflicts(access: Access) -> bool:
    worst = access.worst
    if worst is None or access.wavefronts is None or not access.ideal_wavefronts:
        return False
    return (
        worst.degree > 1
        and worst.wavefronts > worst.ideal_wavefronts
        and access.wavefronts > LEAST_RATIO * access.ideal_wavefronts
    )


def _counts(kernel: KernelFacts, access: Access) -> bool:
    """A conflict while a tile is filled does not matter beside an inner loop that issues fifty times as much."""
    return _saved(access) >= LEAST_SHARE * kernel.work.shared_wavefronts


def _saved(access: Access) -> float:
    """Wavefronts per block beyond the ideal."""
    return ((access.wavefronts or 0.0) - (access.ideal_wavefronts or 0.0)) * access.issued


def _padding(kernel: KernelFacts, access: Access) -> tuple[Padding | None, tuple[Evidence, ...]]:
    for array in kernel.arrays:
        if array.name == access.array:
            size = f"{array.bytes} bytes" if array.bytes is not None else "of unknown size"
            return array.padding(), (Evidence(array.location, f"`{array.name}`, {size}, is declared here"),)
    return None, ()


def _advice(access: Access, padding: Padding | None) -> str | None:
    if padding is None:
        return None
    before, after = padding.wavefronts_before, padding.wavefronts_after
    noun = "element" if padding.elements == 1 else "elements"
    rows = f"pad each row of `{access.array}` by {padding.elements} {noun}"
    return f"{rows}: {after:g} instead of {before:g} wavefronts per block, all its accesses counted"


def _fix(access: Access, padding: Padding | None) -> Fix | None:
    if padding is None or padding.edit is None:
        return None
    location, text = padding.edit
    return Fix(f"pad the rows of `{access.array}` by {padding.elements}", (Edit(location, text),), "unsafe")
