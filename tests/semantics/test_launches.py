"""Launches as rules see them: which kernel, which instantiation, which block, from every way of writing it down."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cudalint.semantics.launches import MAX_LAUNCHES, Launch, launches_of
from cudalint.semantics.program import Program, Unit
from cudalint.semantics.types import FLOAT, Type

KERNEL = "__global__ void k(float* p) { p[threadIdx.x] = 0; }\n"
TEMPLATE = "template <typename T, int N> __global__ void k(T* p) { p[threadIdx.x * N] = 0; }\n"
MakeUnit = Callable[..., Unit]
MakeProject = Callable[..., Program]


def launches(unit: Unit, name: str = "k") -> tuple[Launch, ...]:
    kernel = next(kernel for kernel in unit.kernels if kernel.name == name)
    return launches_of(kernel, unit.program)


def blocks(unit: Unit, name: str = "k") -> list[object]:
    return [launch.block for launch in launches(unit, name)]


def values(launch: Launch) -> dict[str, object]:
    """Bindings by name, types by their spelling."""
    return {name: value.name if isinstance(value, Type) else value for name, value in launch.bindings}


# ------------------------------------------------------------------ block shapes


@pytest.mark.parametrize(
    ("body", "block"),
    [
        ("k<<<4, 256>>>(p);", (256, 1, 1)),
        ("k<<<4, dim3(32, 8)>>>(p);", (32, 8, 1)),
        ("k<<<4, dim3{16, 4, 2}>>>(p);", (16, 4, 2)),
        ("dim3 b(64); k<<<4, b>>>(p);", (64, 1, 1)),
        ("dim3 b = 96; k<<<4, b>>>(p);", (96, 1, 1)),
        ("dim3 b = dim3(8, 8, 8); k<<<4, b>>>(p);", (8, 8, 8)),
        ("dim3 b{32, 4}; k<<<4, b>>>(p);", (32, 4, 1)),
        ("dim3 b = {32, 2, 2}; k<<<4, b>>>(p);", (32, 2, 2)),
        ("dim3 b(16, 16); dim3 c = b; k<<<4, c>>>(p);", (16, 16, 1)),
        ("const int X = 64; const int Y = 256 / X; dim3 b(X, Y); k<<<4, b>>>(p);", (64, 4, 1)),
        ("dim3 b; b.x = 64; b.y = 256 / b.x; k<<<4, b>>>(p);", (64, 4, 1)),
        ("int t = 32; t *= 4; k<<<4, t>>>(p);", (128, 1, 1)),
        ("int t = 512; t /= 2; t -= 64; k<<<4, t>>>(p);", (192, 1, 1)),
        ("int s[2] = {32, 8}; dim3 b(s[0], s[1]); k<<<4, b>>>(p);", (32, 8, 1)),
        ("size_t s[2] = {32, 8}; dim3 b(s[0] * 2, s[1]); k<<<4, b>>>(p);", (64, 8, 1)),
        ("auto t = 1 << 7; k<<<4, t>>>(p);", (128, 1, 1)),
        ("k<<<4, std::min(256, 128)>>>(p);", (128, 1, 1)),
        ("k<<<4, (unsigned)64>>>(p);", (64, 1, 1)),
        ("int t = 1; while (t < 100) t *= 2; k<<<4, t>>>(p);", (128, 1, 1)),
        ("int t = 64; { int t = 32; (void)t; } k<<<4, t>>>(p);", (64, 1, 1)),
    ],
)
def test_block_from_the_host_function(unit: MakeUnit, body: str, block: tuple[int, int, int]) -> None:
    assert blocks(unit(KERNEL + f"void h(float* p) {{ {body} }}")) == [block]


@pytest.mark.parametrize(
    ("constants", "spelling", "block"),
    [
        ("#define N (2 * 64)\n", "N", (128, 1, 1)),
        ("#define LOG 5\n#define W (1 << LOG)\n", "dim3(W, W / 4)", (32, 8, 1)),
        ("constexpr int N = 96;\n", "N", (96, 1, 1)),
        ("static const unsigned N = 32, M = 256 / N;\n", "dim3(N, M)", (32, 8, 1)),
        ("enum { N = 64 };\n", "N", (64, 1, 1)),
        ("namespace cfg { constexpr int n = 160; }\n", "cfg::n", (160, 1, 1)),
        ("struct Cfg { static constexpr int n = 224; };\n", "Cfg::n", (224, 1, 1)),
        ("template <int V> struct Cfg { static constexpr int n = V * 2; };\n", "Cfg<64>::n", (128, 1, 1)),
        ("constexpr int twice(int n) { return 2 * n; }\n", "twice(48)", (96, 1, 1)),
        ("const dim3 B(16, 8);\n", "B", (16, 8, 1)),
    ],
)
def test_block_from_constants_of_the_file(unit: MakeUnit, constants: str, spelling: str, block: tuple[int, int, int]) -> None:
    assert blocks(unit(f"{constants}{KERNEL}void h(float* p) {{ k<<<4, {spelling}>>>(p); }}")) == [block]


def test_reassignment_counts_from_where_it_stands(unit: MakeUnit) -> None:
    text = KERNEL + (
        "__global__ void m(float* p) {}\nvoid h(float* p) { dim3 b(16, 16); k<<<1, b>>>(p); b = dim3(256); m<<<1, b>>>(p); }"
    )
    assert blocks(unit(text)) == [(16, 16, 1)]
    assert blocks(unit(text), "m") == [(256, 1, 1)]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("k<<<1, wide ? dim3(128, 2) : dim3(16, 16)>>>(p);", {(128, 2, 1), (16, 16, 1)}),
        ("dim3 b = wide ? dim3(128, 2) : dim3(16, 16); k<<<1, b>>>(p);", {(128, 2, 1), (16, 16, 1)}),
        ("int t = 64; if (wide) t = 512; k<<<1, t>>>(p);", {(64, 1, 1), (512, 1, 1)}),
        ("int t; if (wide) { t = 64; } else { t = 512; } k<<<1, t>>>(p);", {(64, 1, 1), (512, 1, 1)}),
        # what one branch sets stays together
        ("int x, y; if (wide) { x = 64; y = 4; } else { x = 16; y = 16; } k<<<1, dim3(x, y)>>>(p);", {(64, 4, 1), (16, 16, 1)}),
        ("int t = 0; switch (wide) { case 0: t = 32; break; default: t = 96; } k<<<1, t>>>(p);", {(32, 1, 1), (96, 1, 1)}),
        # an arm that leaves the function does not reach the launch
        ("int t = 64; if (wide) { t = 512; return; } k<<<1, t>>>(p);", {(64, 1, 1)}),
        ("for (int t = 64; t <= 256; t *= 2) k<<<1, t>>>(p);", {(64, 1, 1), (128, 1, 1), (256, 1, 1)}),
        ("for (int t : {32, 96}) k<<<1, t>>>(p);", {(32, 1, 1), (96, 1, 1)}),
        (
            "int s[] = {32, 64}; for (int j = 0; j < sizeof(s) / sizeof(int); j++) { int t = s[j]; k<<<1, t>>>(p); }",
            {(32, 1, 1), (64, 1, 1)},
        ),
        ("int s[] = {32, 64}; for (int t : s) { k<<<1, t>>>(p); }", {(32, 1, 1), (64, 1, 1)}),
        # a known condition has one arm
        ("const int big = 0; int t = big ? 512 : 64; k<<<1, t>>>(p);", {(64, 1, 1)}),
        # inside `case n` and `== n` the variable is known
        ("int t = read(); if (t == 96) k<<<1, t>>>(p);", {(96, 1, 1)}),
    ],
)
def test_every_way_through_the_function(unit: MakeUnit, body: str, found: set[object]) -> None:
    shapes = blocks(unit(KERNEL + f"int read(); void h(float* p, bool wide) {{ {body} }}"))
    assert set(shapes) == found
    assert len(shapes) == len(found)


@pytest.mark.parametrize(
    ("body", "block"),
    [
        ("int t = atoi(a); k<<<1, t>>>(p);", None),
        ("int t = atoi(a); dim3 b(t, 4); k<<<1, b>>>(p);", (None, 4, 1)),
        ("int t = n < 256 ? n : n / 2; k<<<1, t>>>(p);", None),
        ("k<<<1, std::min(n, 256)>>>(p);", None),
        ("int t = 64; scanf(a, &t); k<<<1, t>>>(p);", None),
    ],
)
def test_what_only_the_run_knows(unit: MakeUnit, body: str, block: object) -> None:
    (launch,) = launches(unit(KERNEL + f"void h(float* p, const char* a, int n) {{ {body} }}"))
    assert launch.block == block


def test_a_default_that_the_command_line_may_replace(unit: MakeUnit) -> None:
    text = KERNEL + (
        "int main(int argc, char** argv) { float* p = 0; int t = 128; if (argc > 1) t = atoi(argv[1]); k<<<1, t>>>(p); }"
    )
    assert blocks(unit(text)) == [(128, 1, 1)]


@pytest.mark.parametrize(
    "text",
    [
        "int t = 128;\nvoid h(float* p) { k<<<1, t>>>(p); }\nint main(int argc, char** argv) { t = atoi(argv[1]); h(0); }",
        (
            "int main(int argc, char** argv) { float* p = 0; int t = 128, c;\n"
            "while ((c = getopt(argc, argv, o)) >= 0) { switch (c) { case 't': t = atoi(optarg); break; } } k<<<1, t>>>(p); }"
        ),
    ],
)
def test_defaults_of_options(unit: MakeUnit, text: str) -> None:
    assert blocks(unit(KERNEL + text)) == [(128, 1, 1)]


# ------------------------------------------------------------- callers and helpers


def test_parameters_come_from_the_callers(unit: MakeUnit) -> None:
    text = KERNEL + "void h(float* p, int t) { k<<<1, t>>>(p); }\nvoid a(float* p) { h(p, 64); }\nvoid b(float* p) { h(p, 512); }"
    assert set(blocks(unit(text))) == {(64, 1, 1), (512, 1, 1)}


def test_callers_of_callers(unit: MakeUnit) -> None:
    text = KERNEL + (
        "void h(float* p, dim3 b) { k<<<1, b>>>(p); }\n"
        "void g(float* p, int x) { h(p, dim3(x, 256 / x)); }\nvoid f(float* p) { g(p, 64); }"
    )
    assert blocks(unit(text)) == [(64, 4, 1)]


def test_host_template_arguments(unit: MakeUnit) -> None:
    text = KERNEL + (
        "template <int X, int Y = 256 / X> void start(float* p) { k<<<1, dim3(X, Y)>>>(p); }\n"
        "void a(float* p) { start<64>(p); }\nvoid b(float* p) { start<16, 8>(p); }"
    )
    assert set(blocks(unit(text))) == {(64, 4, 1), (16, 8, 1)}


def test_types_pass_through_host_templates(unit: MakeUnit) -> None:
    text = TEMPLATE + "template <typename U> void go(U* p) { k<U, 4><<<1, 64>>>(p); }\nvoid a(double* p) { go(p); }"
    (launch,) = launches(unit(text))
    assert values(launch) == {"T": "double", "N": 4}


def test_helper_that_returns_the_size(unit: MakeUnit) -> None:
    text = KERNEL + "int size(int n) { if (n > 4) return 256; return 64; }\nvoid h(float* p) { k<<<1, size(8)>>>(p); }"
    assert blocks(unit(text)) == [(256, 1, 1)]


def test_helper_that_fills_references(unit: MakeUnit) -> None:
    text = KERNEL + (
        "void shape(int n, int& g, int& b) { b = 128; g = n / b; }\n"
        "void h(float* p) { int g, b; shape(1024, g, b); k<<<g, b>>>(p); }"
    )
    (launch,) = launches(unit(text))
    assert (launch.block, launch.grid) == ((128, 1, 1), (8, 1, 1))


# ------------------------------------------------------------------------- kernels


def test_each_instantiation_is_a_launch(unit: MakeUnit) -> None:
    text = TEMPLATE + "void h(float* p, bool b) { if (b) k<float, 49><<<1, 128>>>(p); else k<float, 48><<<1, 128>>>(p); }"
    assert [launch.bindings for launch in launches(unit(text))] == [(("T", FLOAT), ("N", 49)), (("T", FLOAT), ("N", 48))]


def test_deduced_and_default_arguments(unit: MakeUnit) -> None:
    text = (
        "template <typename T, int N = 8> __global__ void k(T* p, T v) {}\n"
        "void h() { double* d = nullptr; k<<<1, 32>>>(d, 1.0); }"
    )
    (launch,) = launches(unit(text))
    assert values(launch) == {"T": "double", "N": 8}


def test_arguments_from_constants_and_aliases(unit: MakeUnit) -> None:
    text = "using Real = double;\nconstexpr int W = 4;\n" + TEMPLATE + "void h(double* p) { k<Real, W * 2><<<1, 32>>>(p); }"
    (launch,) = launches(unit(text))
    assert values(launch) == {"T": "double", "N": 8}


def test_local_traits(unit: MakeUnit) -> None:
    text = KERNEL + (
        "template <int N> struct Traits { static constexpr int kThreads = N * 32; };\n"
        "void h(float* p) { using T = Traits<4>; k<<<1, T::kThreads>>>(p); }"
    )
    assert blocks(unit(text)) == [(128, 1, 1)]


def test_switch_over_template_arguments(unit: MakeUnit) -> None:
    text = "template <int B> __global__ void k(float* p) {}\n" + (
        "void h(float* p, int t) { switch (t) { case 512: k<512><<<1, t>>>(p); break; case 64: k<64><<<1, t>>>(p); break; } }"
    )
    found = {dict(launch.bindings)["B"]: launch.block for launch in launches(unit(text))}
    assert set(found) == {512, 64}
    assert all(block is None or block[0] in (None, size) for size, block in found.items())


def test_overloads_are_told_apart(unit: MakeUnit) -> None:
    text = (
        "__global__ void k(float* p) {}\n__global__ void k(float* p, int n) {}\n"
        "void h(float* p) { k<<<1, 32>>>(p); k<<<1, 64>>>(p, 3); }"
    )
    one, two = unit(text).kernels
    program = one.unit.program
    assert [launch.block for launch in launches_of(one, program)] == [(32, 1, 1)]
    assert [launch.block for launch in launches_of(two, program)] == [(64, 1, 1)]


@pytest.mark.parametrize(
    "body",
    [
        "auto f = k; f<<<1, 64>>>(p);",
        "auto* f = &k; f<<<1, 64>>>(p);",
        "void (*f)(float*) = k; f<<<1, 64>>>(p);",
        "void (*f)(float*); f = &k; f<<<1, 64>>>(p);",
        "cudaLaunchKernel((void*)k, dim3(1), dim3(64), args, 0, 0);",
        "cudaLaunchKernel(k, 1, 64, args);",
        "cudaLaunchKernel((const void*)&k, dim3(1), dim3(64), args, 0, 0);",
        "cudaLaunchCooperativeKernel((void*)k, dim3(1), dim3(64), args);",
        "cudaLaunchConfig_t c = {}; c.gridDim = 1; c.blockDim = dim3(64); cudaLaunchKernelEx(&c, k, p);",
        "cudaLaunchConfig_t c = {0}; c.gridDim = dim3(1); c.blockDim.x = 64; c.blockDim.y = 1; cudaLaunchKernelEx(&c, k, p);",
        "run(k, p);",
        "CHECK((k<<<1, 64>>>(p)));",
        "LAUNCH(k, 64, p);",
        "::k<<<1, 64>>>(p);",
    ],
)
def test_every_way_to_launch(unit: MakeUnit, body: str) -> None:
    head = (
        "#define CHECK(x) do { x; } while (0)\n#define LAUNCH(f, n, ...) f<<<1, n>>>(__VA_ARGS__)\n"
        "template <typename F> void run(F f, float* p) { f<<<1, 64>>>(p); }\n"
    )
    (launch,) = launches(unit(KERNEL + head + f"void h(float* p, void** args) {{ {body} }}"))
    assert launch.block == (64, 1, 1)


def test_a_pointer_that_holds_one_kernel_after_another(unit: MakeUnit) -> None:
    text = KERNEL + (
        "__global__ void m(float* p) {}\n"
        "void h(float* p, int which) { void (*f)(float*);\n"
        "switch (which) { case 0: f = &k; break; case 1: f = &m; break; } f<<<1, 96>>>(p); }"
    )
    assert blocks(unit(text)) == [(96, 1, 1)]
    assert blocks(unit(text), "m") == [(96, 1, 1)]


def test_a_macro_that_uses_a_launching_macro(unit: MakeUnit) -> None:
    text = "template <int N> __global__ void k(float* p) {}\n" + (
        "#define ONE(n) k<n><<<1, n>>>(p)\n#define ALL(n) switch (n) { case 32: ONE(32); break; default: ONE(64); }\n"
        "void h(float* p, int n) { ALL(n) }"
    )
    assert {launch.block for launch in launches(unit(text))} == {(32, 1, 1), (64, 1, 1)}


def test_configuration_beside_the_block(unit: MakeUnit) -> None:
    before = KERNEL + "void h(float* p, cudaStream_t s) { for (int i = 0; i < 3; ++i) "
    call = "k<<<dim3(2, 3), 64, 64 * sizeof(float), s>>>(p)"
    (launch,) = launches(unit(f"{before}{call}; }}"))
    assert (launch.grid, launch.dynamic_smem, launch.stream, launch.in_loop) == ((2, 3, 1), 256, True, True)
    assert (Path(launch.path).name, launch.start, launch.end) == ("main.cu", len(before), len(before) + len(call))


def test_plain_launch_has_no_shared_memory_stream_or_loop(unit: MakeUnit) -> None:
    (launch,) = launches(unit(KERNEL + "void h(float* p, int n) { k<<<n, 64>>>(p); }"))
    assert (launch.dynamic_smem, launch.stream, launch.in_loop) == (0, False, False)
    assert launch.grid is None or launch.grid[0] is None


# --------------------------------------------------------------------------- scope


def test_an_inner_scope_hides_its_names(unit: MakeUnit) -> None:
    text = KERNEL + "void h(float* p) { int t = 64; { int t = 32; k<<<2, t>>>(p); } k<<<1, t>>>(p); }"
    assert blocks(unit(text)) == [(32, 1, 1), (64, 1, 1)]


def test_a_launch_in_the_file_that_includes_the_kernel(project: MakeProject) -> None:
    main = '#include "k.cuh"\nconstexpr int B = 160;\nvoid h(float* p) { k<<<1, B>>>(p); }'
    program = project({"k.cuh": KERNEL, "main.cu": main})
    header = program.unit(Path(program.root) / "k.cuh")
    assert header is not None
    assert blocks(header) == [(160, 1, 1)]


def test_a_kernel_of_the_same_name_keeps_its_own_launches(project: MakeProject) -> None:
    files = {f"{n}.cu": KERNEL + f"void h{n}(float* p) {{ k<<<1, {n}>>>(p); }}" for n in (32, 64)}
    program = project(files)
    for n in (32, 64):
        found = program.unit(Path(program.root) / f"{n}.cu")
        assert found is not None
        assert blocks(found) == [(n, 1, 1)]


def test_a_unique_name_is_found_across_the_project(project: MakeProject) -> None:
    program = project({"k.cu": KERNEL, "main.cu": "__global__ void k(float* p);\nvoid h(float* p) { k<<<1, 224>>>(p); }"})
    found = program.unit(Path(program.root) / "k.cu")
    assert found is not None
    assert blocks(found) == [(224, 1, 1)]


def test_inactive_arms_and_comments_launch_nothing(unit: MakeUnit) -> None:
    text = KERNEL + (
        "void h(float* p) {\n#if 0\nk<<<1, 32>>>(p);\n#else\nk<<<1, 64>>>(p);\n#endif\n"
        "// k<<<1, 96>>>(p);\n/* k<<<1, 128>>>(p); */ }"
    )
    assert blocks(unit(text)) == [(64, 1, 1)]


def test_a_kernel_that_nobody_launches(unit: MakeUnit) -> None:
    assert launches(unit(KERNEL)) == ()


def test_equal_launches_are_one_and_the_number_is_bounded(unit: MakeUnit) -> None:
    same = "".join("k<<<1, 64>>>(p);" for _ in range(5))
    assert blocks(unit(KERNEL + f"void h(float* p) {{ {same} }}")) == [(64, 1, 1)]


def test_at_most_so_many_launches(unit: MakeUnit) -> None:
    different = "".join(f"k<<<1, {32 * n}>>>(p);" for n in range(1, 30))
    assert len(blocks(unit(KERNEL + f"void h(float* p) {{ {different} }}"))) == MAX_LAUNCHES


@pytest.mark.parametrize(
    "body",
    [
        "int t = t; k<<<1, t>>>(p);",
        "h(p); k<<<1, 64>>>(p);",
        "for (;;) { k<<<1, 64>>>(p); }",
        "k<<<>>>(p);",
        "k<<<1>>>(p);",
        "k<<<1, 1 / 0>>>(p);",
        "k<<<1, dim3()>>>(p);",
        "dim3 b(64, ; k<<<1, b>>>(p);",
        "int n = 0; while (n < 1000000) n += 1; k<<<1, n>>>(p);",
        "k<<<1, f(f(f(f(1))))>>>(p);",
    ],
)
def test_odd_code_is_survived(unit: MakeUnit, body: str) -> None:
    found = launches(unit("int f(int n) { return f(n); }\n" + KERNEL + f"void h(float* p) {{ {body} }}"))
    assert all(launch.kernel.name == "k" for launch in found)


SCRIPT = """
import sys
from cudalint.semantics.launches import launches_of
from cudalint.semantics.program import Program
program = Program(sys.argv[1])
for unit in map(program.unit, program.project_files()):
    for kernel in unit.kernels:
        print([(x.bindings, x.block, x.grid, x.start) for x in launches_of(kernel, program)])
"""


def test_the_same_answer_whatever_the_hash_seed(tmp_path: Path) -> None:
    steps = "".join(f"int v{n} = v{n - 1} + w{n - 1}; int w{n} = v{n - 1} * 2;" for n in range(1, 60))
    text = KERNEL + f"void h(float* p) {{ int v0 = 1, w0 = 2; {steps} dim3 b(32, 8); k<<<v59 + w59, b>>>(p); }}"
    (tmp_path / "main.cu").write_text(text)
    answers = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, env=environment, check=True
        )
        answers.add(done.stdout)
    assert len(answers) == 1
    assert "(32, 8, 1)" in answers.pop()
