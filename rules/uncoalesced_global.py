"""uncoalesced-global: the lanes of a warp touch many more 32-byte sectors than the bytes they ask for need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from cudalint.rule import Access, Certainty, Example, Finding, KernelFacts, Repair, Rule, RuleMeta, Severity

LEAST_RATIO = 1.5
LEAST_WASTE = 4.0


class UncoalescedGlobal(Rule):
    """Global-memory accesses that move more sectors than they use.

    ## What it does
    Works out, lane by lane for every warp, which 32-byte sectors of global memory an instruction touches, and reports the
    accesses that touch at least half as many again as the bytes asked for would fill.

    ## Why it matters
    Memory moves whole sectors of 32 bytes. When lanes are a row apart, every lane pulls in a sector of its own for 4 bytes:
    32 sectors instead of 4, an eighth of the bandwidth. Even if other accesses of the thread use up the rest of the
    sector from the cache, each request still occupies the L1 for sectors / 4 cycles.

    ## Example
    ```cuda
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < cols; ++k) sum += mat[row * cols + k];  // lanes are `cols` floats apart
    ```

    ## Use instead
    ```cuda
    for (int k = lane; k < cols; k += 32) sum += mat[row * cols + k];  // one warp per row: lanes are neighbours
    ```
    Let neighbouring lanes read neighbouring elements: swap the roles of the indices, give a row to a warp, stage a tile through
    shared memory, or store fields as separate arrays.

    ## Limits
    Addresses that depend on loaded data (gathers) are not judged. Sizes that only the run knows are sampled; the finding is then
    `likely` and says so. A shifted row (5 sectors instead of 4) is not reported.

    ## References
    Nsight Compute: "Uncoalesced Global Accesses"; counters `memory_l2_theoretical_sectors_global`,
    `memory_l2_theoretical_sectors_global_ideal`. CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory".
    """

    meta = RuleMeta(
        name="uncoalesced-global",
        code="CU102",
        family="memory",
        summary="the lanes of a warp touch many more sectors of global memory than they use",
        severity={Certainty.EXACT: Severity.WARNING, Certainty.LIKELY: Severity.WARNING},
        since="0.1.0",
        status="preview",
        min_arch=50,
        also_known_as=("Uncoalesced Global Accesses",),
        default=False,
    )

    VALID: ClassVar = (
        Example(
            title="neighbouring lanes, neighbouring floats",
            code="""\
__global__ void scale(float* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] *= 2.f;
}
void run(float* a, int n) { scale<<<(n + 255) / 256, 256>>>(a, n); }
""",
        ),
        Example(
            title="16-wide rows fill whole sectors",
            code="""\
__global__ void scale(float* a, int pitch) {
    a[(blockIdx.y * 16 + threadIdx.y) * pitch + blockIdx.x * 16 + threadIdx.x] *= 2.f;
}
void run(float* a, int pitch, dim3 grid) { scale<<<grid, dim3(16, 16)>>>(a, pitch); }
""",
        ),
    )
    INVALID: ClassVar = (
        Example(
            title="a row per thread",
            code="""\
__global__ void rows(const float* mat, float* out, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.f;
    for (int k = 0; k < cols; ++k)
        sum += mat[row * cols + k];  // expect: uncoalesced-global sectors=32 ideal_sectors=4 bytes_per_lane=4
    out[row] = sum;
}
void run(const float* mat, float* out, int cols) { rows<<<64, 128>>>(mat, out, cols); }
""",
        ),
        Example(
            title="one field of three",
            code="""\
__global__ void first(const float* xyz, float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = xyz[3 * i];  // expect: uncoalesced-global sectors=12 ideal_sectors=4 lane_stride_bytes=12
}
void run(const float* xyz, float* x) { first<<<64, 128>>>(xyz, x); }
""",
        ),
    )

    def check_kernel(self, kernel: KernelFacts) -> Iterable[Finding]:
        """One finding per access that wastes sectors."""
        for access in kernel.accesses:
            if access.space == "global" and access.certainty in self.meta.severity and _wastes(access):
                yield self._report(kernel, access)

    def _report(self, kernel: KernelFacts, access: Access) -> Finding:
        worst = access.worst
        assert worst is not None and access.sectors is not None and access.ideal_sectors is not None
        used = round(32 * worst.ideal_sectors / worst.sectors)
        stride = f", {abs(worst.lane_stride)} bytes apart" if worst.lane_stride else ""
        saved = (access.sectors - access.ideal_sectors) * access.issued
        return self.finding(
            access.location,
            f"{access.op} on `{access.array}` touches {worst.sectors} sectors instead of {worst.ideal_sectors}: "
            f"{worst.active_lanes} lanes of {access.bytes_per_lane} bytes{stride}, {used} of 32 bytes used per sector",
            access.certainty,
            kernel=kernel,
            facts={
                "sectors": worst.sectors,
                "ideal_sectors": worst.ideal_sectors,
                "bytes_per_lane": access.bytes_per_lane,
                "active_lanes": worst.active_lanes,
                **({"lane_stride_bytes": worst.lane_stride} if worst.lane_stride is not None else {}),
            },
            assumptions=kernel.assumptions(access),
            repair=Repair("sectors", saved),
        )


def _wastes(access: Access) -> bool:
    if access.worst is None or access.sectors is None or not access.ideal_sectors:
        return False
    return access.sectors > LEAST_RATIO * access.ideal_sectors and access.sectors - access.ideal_sectors >= LEAST_WASTE
