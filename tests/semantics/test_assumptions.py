"""What a kernel says about its block when nothing in sight launches it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cudalint.semantics.assumptions import assumed_block, launch_bounds
from cudalint.semantics.program import Unit

MakeUnit = Callable[..., Unit]
FLAT = "{ p[threadIdx.x] = 0; }"
PLANE = "{ p[threadIdx.y * 64 + threadIdx.x] = 0; }"


@pytest.mark.parametrize(
    ("head", "bounds"),
    [
        ("__global__ void __launch_bounds__(256) k(float* p)", (256, None)),
        ("__global__ void __launch_bounds__(256, 2) k(float* p)", (256, 2)),
        ("__global__ __launch_bounds__(N * 2, M) void k(float* p)", (192, 3)),
        ("__global__ void k(float* p)", None),
        ("__global__ void __launch_bounds__(somewhere_else) k(float* p)", None),
        ("__global__ void __launch_bounds__(128, somewhere_else) k(float* p)", (128, None)),
    ],
)
def test_launch_bounds(unit: MakeUnit, head: str, bounds: tuple[int, int | None] | None) -> None:
    (kernel,) = unit(f"#define N 96\nconstexpr int M = 3;\n{head} {FLAT}").kernels
    assert launch_bounds(kernel) == bounds


def test_launch_bounds_of_an_instantiation(unit: MakeUnit) -> None:
    (kernel,) = unit(f"template <int T, int B = 2> __global__ void __launch_bounds__(T * 32, B) k(float* p) {FLAT}").kernels
    assert launch_bounds(kernel, (("T", 4), ("B", 5))) == (128, 5)
    assert launch_bounds(kernel, (("T", 4),)) == (128, 2)
    assert launch_bounds(kernel) is None


@pytest.mark.parametrize(
    ("text", "block", "word"),
    [
        (f"__global__ void __launch_bounds__(96) k(float* p) {FLAT}", (96, 1, 1), "__launch_bounds__"),
        # a bound beats a constant
        (f"#define BLOCK_SIZE 64\n__global__ void __launch_bounds__(96) k(float* p) {FLAT}", (96, 1, 1), "__launch_bounds__"),
        # several axes: a square that fits, else the bound in x
        (
            f"#define TILE_DIM 16\n__global__ void __launch_bounds__(256) k(float* p) {{ float s[TILE_DIM]; {PLANE} }}",
            (16, 16, 1),
            "TILE_DIM",
        ),
        (f"#define TILE_DIM 64\n__global__ void __launch_bounds__(256) k(float* p) {PLANE}", (256, 1, 1), "__launch_bounds__"),
        (f"#define BLOCK_SIZE 128\n__global__ void k(float* p) {FLAT}", (128, 1, 1), "BLOCK_SIZE"),
        (f"constexpr int kThreads = 192;\n__global__ void k(float* p) {FLAT}", (192, 1, 1), "kThreads"),
        (f"template <int BLOCK = 64> __global__ void k(float* p) {FLAT}", (64, 1, 1), "BLOCK"),
        (f"#define BLOCK_X 32\n#define BLOCK_Y 8\n__global__ void k(float* p) {PLANE}", (32, 8, 1), "BLOCK_Y"),
        (f"#define TILE_DIM 32\n__global__ void k(float* p) {PLANE}", (32, 32, 1), "TILE_DIM"),
        # what the kernel itself uses comes before the rest of the file
        (
            "#define A_BLOCK 64\n#define B_BLOCK_SIZE 512\n__global__ void k(float* p) { p[threadIdx.x + B_BLOCK_SIZE] = 0; }",
            (512, 1, 1),
            "B_BLOCK_SIZE",
        ),
    ],
)
def test_assumed_block(unit: MakeUnit, text: str, block: tuple[int, int, int], word: str) -> None:
    (kernel,) = unit(text).kernels
    found = assumed_block(kernel)
    assert found is not None
    assert found[0] == block
    assert word in found[1]


@pytest.mark.parametrize(
    "constant",
    [
        "#define NUM_BLOCKS 128",
        "#define ITEMS_PER_THREAD 64",
        "#define WARP_SIZE 32",
        "#define BLOCK_SIZE 5000",
        "#define BLOCK_SIZE 4",
        "#define BLOCK_SIZE n",
        "// #define BLOCK_SIZE 128",
    ],
)
def test_nothing_to_assume(unit: MakeUnit, constant: str) -> None:
    (kernel,) = unit(f"{constant}\n__global__ void k(float* p) {FLAT}").kernels
    assert assumed_block(kernel) is None


def test_the_instantiation_decides(unit: MakeUnit) -> None:
    (kernel,) = unit(f"template <int BLOCK_SIZE> __global__ void k(float* p) {FLAT}").kernels
    assert assumed_block(kernel) is None
    found = assumed_block(kernel, (("BLOCK_SIZE", 320),))
    assert found is not None
    assert found[0] == (320, 1, 1)
