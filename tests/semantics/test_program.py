"""Facts across files: include closures, contexts of headers, definitions that are unique in a project."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cudalint.semantics.program import Program, Unit
from cudalint.semantics.scope import scope_of
from cudalint.semantics.typing import parameters
from cudalint.source.text import SourceFile

Project = Callable[..., Program]


def file(program: Program, name: str) -> Unit:
    found = program.unit(Path(program.root) / name)
    assert found is not None
    return found


def names(program: Program, paths: tuple[str, ...]) -> list[str]:
    return [path.removeprefix(program.root + "/") for path in paths]


def test_include_closure(project: Project, tmp_path: Path) -> None:
    program = project(
        {
            "a.cu": '#include "b.cuh"\n#include <lib/c.h>\n#include <vector>\n#include "missing.h"\n',
            "b.cuh": '#include "sub/d.h"\n',
            "sub/d.h": '#include "../b.cuh"\n#include "e.h"\n',
            "sub/e.h": "#define E 1\n",
            "include/lib/c.h": '#include "user.h"\n',
            "user/user.h": "#define U 2\n",
        },
        include_dirs=(tmp_path / "user",),
    )
    unit = file(program, "a.cu")
    assert names(program, tuple(found.path for found in unit.closure)) == [
        "a.cu",
        "b.cuh",
        "include/lib/c.h",
        "sub/d.h",
        "user/user.h",
        "sub/e.h",
    ]
    assert unit.constant("E") == 1 and unit.constant("U") == 2
    assert file(program, "sub/e.h").closure == (file(program, "sub/e.h"),)


def test_an_include_unique_by_suffix(project: Project) -> None:
    program = project(
        {
            "app/main.cu": '#include "utils/tile.h"\n#include "twice.h"\n',
            "lib/src/utils/tile.h": "#define TILE 8\n",
            "one/twice.h": "#define TWICE 1\n",
            "two/twice.h": "#define TWICE 2\n",
        }
    )
    unit = file(program, "app/main.cu")
    assert unit.constant("TILE") == 8
    assert unit.constant("TWICE") is None


def test_system_headers_are_not_found_in_the_project(project: Project) -> None:
    program = project(
        {"a.cu": "#include <math.h>\n#include <vector>\n", "own/math.h": "#define OWN 1\n", "own/vector": "#define VEC 1\n"}
    )
    unit = file(program, "a.cu")
    assert unit.constant("OWN") is None and unit.constant("VEC") is None


def test_own_definitions_win_over_the_closure_and_that_over_the_project(project: Project) -> None:
    program = project(
        {
            "a.cu": '#include "b.h"\nconstexpr int X = 1;\n',
            "b.h": "constexpr int X2 = 2; constexpr int Y = 2; struct P { int a; };\n",
            "c.cu": "constexpr int Y = 3; constexpr int Z = 3; struct P { double a; }; struct Q { double a; };\n",
        }
    )
    unit = file(program, "a.cu")
    assert [unit.constant(name) for name in ("X", "X2", "Y", "Z")] == [1, 2, 2, 3]
    p, q = unit.type_def("P"), unit.type_def("Q")
    assert p is not None and q is not None and (p.size, q.size) == (4, 8)


def test_what_two_files_define_is_not_unique(project: Project) -> None:
    program = project(
        {
            "a.cu": "__global__ void k(float* p) {}\n",
            "b.cu": "constexpr int N = 1; __device__ float f(float x) { return x; } __device__ int g(int x) { return x; }\n",
            "c.cu": "constexpr int N = 2; __device__ float f(float x) { return x; }\n",
        }
    )
    unit = file(program, "a.cu")
    assert unit.constant("N") is None
    assert unit.functions("f") == []
    assert [function.path for function in unit.functions("g")] == [file(program, "b.cu").path]


def test_a_define_elsewhere_in_the_project_is_no_value(project: Project) -> None:
    program = project({"a.cu": "int x;\n", "b.h": "#define N 4\n#define REAL float\n"})
    unit = file(program, "a.cu")
    assert unit.constant("N") is None
    assert unit.type_def("REAL") is None
    assert unit.macro("N") is None


def test_a_define_elsewhere_explains_a_specifier(project: Project) -> None:
    program = project({"a.cu": "MY_KERNEL void k(float* p) {}\n", "b.h": "#define MY_KERNEL __global__\n"})
    assert [kernel.name for kernel in file(program, "a.cu").kernels] == ["k"]


def test_a_header_takes_from_where_it_is_included(project: Project) -> None:
    program = project(
        {
            "main.cu": '#define TILE 16\n#include "types.h"\n#include "kernel.cuh"\n#define LATE 1\n',
            "types.h": "typedef double real; struct P { real x, y; };\n",
            "kernel.cuh": "__global__ void k(real* p, P q) { __shared__ real s[TILE]; }\n",
        }
    )
    unit = file(program, "kernel.cuh")
    assert unit.constant("TILE") == 16
    assert unit.constant("LATE") is None
    (kernel,) = unit.kernels
    assert [item.type.name for item in parameters(kernel, scope_of(kernel))] == ["double*", "P"]


def test_includers_that_disagree_say_nothing(project: Project) -> None:
    program = project(
        {
            "a.cu": '#define TILE 16\n#define SAME 4\n#include "k.cuh"\n',
            "b.cu": '#define TILE 32\n#define SAME 4\n#include "k.cuh"\n',
            "k.cuh": "__global__ void k(float* p) {}\n",
        }
    )
    unit = file(program, "k.cuh")
    assert unit.constant("TILE") is None
    assert unit.constant("SAME") == 4


def test_macros_of_a_header_change_conditions_of_its_includer(project: Project) -> None:
    program = project(
        {
            "a.cu": '#include "config.h"\n#if WIDE\nconstexpr int W = 4;\n#else\nconstexpr int W = 1;\n#endif\n',
            "config.h": "#ifndef WIDE\n#define WIDE 1\n#endif\n",
        }
    )
    assert file(program, "a.cu").constant("W") == 4


def test_target_and_user_defines(project: Project) -> None:
    text = {
        "a.cu": "#if __CUDA_ARCH__ >= 900\nconstexpr int A = 90;\n#else\nconstexpr int A = 80;\n#endif\n"
        "constexpr int B = FROM_USER;\n"
    }
    assert file(project(text, arch=90), "a.cu").constant("A") == 90
    program = project(text, arch=86, defines={"FROM_USER": "7", "F(x)": "x"})
    assert [file(program, "a.cu").constant(name) for name in "AB"] == [80, 7]


def test_functions_of_a_template_header(project: Project) -> None:
    program = project(
        {
            "a.cu": '#include "ops.cuh"\n__global__ void k(float* p) { p[0] = ops::add(1.0f, 2.0f); }\n',
            "ops.cuh": "namespace ops { template <typename T> __device__ T add(T a, T b) { return a + b; } }\n"
            "struct Op { __device__ float add(float x) { return x; } };\n",
        }
    )
    unit = file(program, "a.cu")
    assert [function.qualified for function in unit.functions("add")] == ["ops::add"]
    assert [function.qualified for function in unit.scope.functions("ops::add")] == ["ops::add"]
    assert unit.scope.functions("other::add") == []


def test_files_that_launch(project: Project) -> None:
    program = project(
        {
            "a.cu": "__global__ void k() {}\n",
            "b.cu": "void f() { k<<<1, 2>>>(); }\n",
            "c.cu": "void f() { cudaLaunchKernel((void*)k, 1, 2, 0, 0, 0); }\n",
            "d.cu": "// k\nvoid f();\n",
            "e.cu": "void f() { other<<<1, 2>>>(); }\n",
        }
    )
    assert names(program, program.launch_files("k")) == ["b.cu", "c.cu"]


def test_includers(project: Project) -> None:
    program = project(
        {
            "a.cu": '#include "b.cuh"\n',
            "b.cuh": '#include "c.cuh"\n',
            "c.cuh": "__global__ void k() {}\n",
            "d.cu": '#if 0\n#include "c.cuh"\n#endif\n',
        }
    )
    assert names(program, program.includers(Path(program.root) / "c.cuh")) == ["a.cu", "b.cuh"]


def test_an_overlay_replaces_the_file_on_disk(project: Project) -> None:
    program = project({"a.cu": '#include "b.h"\n', "b.h": "constexpr int N = 1;\n"})
    program.add(SourceFile(program.root + "/b.h", b"constexpr int N = 2;\n"))
    assert file(program, "a.cu").constant("N") == 2


def test_unreadable_files_are_ignored(project: Project) -> None:
    program = project({"a.cu": '#include "b.h"\n#include "folder"\nconstexpr int N = 1;\n', "folder/x": ""})
    (Path(program.root) / "b.h").write_bytes(bytes(range(256)) * 8)
    unit = file(program, "a.cu")
    assert unit.constant("N") == 1 and unit.constant("M") is None
    assert program.unit(Path(program.root) / "missing.cu") is None


DEFINING = [
    ("f", "__device__ float f(float x) {}"),
    ("f", "template <typename T>\n__device__ __forceinline__ T\nf(T x) {}"),
    ("f", "static inline int f(int a,\n    int b) { return a; }"),
    ("f", "  std::vector<int> f(int a) { return {}; }"),
    ("f", "__global__ void __launch_bounds__(256, 2) f(float* p) {}"),
    ("f", "MY_DEVICE_INLINE float f(float x) {}"),
    ("f", "template <> __device__ float f<float>(float x) {}"),
    ("operator+", "__device__ float2 operator+(float2 a, float2 b) {}"),
    ("S", "struct S { int a; };"),
    ("S", "template <typename T> struct alignas(sizeof(T) * max(2, 4)) S : Base<T, (1 > 2)> {};"),
    ("S", "class __align__(8) S final : public A, private n::B {};"),
    ("S", "template <>\nstruct S<float, 3> {};"),
    ("S", "typedef struct { float x; } S;"),
    ("S", "typedef struct tag { float x; } S, *SP;"),
    ("S", "typedef unsigned int S;"),
    ("S", "typedef float S[4];"),
    ("S", "using S = float;"),
    ("E", "enum E { a };"),
    ("E", "enum class E : int { a };"),
    ("b", "enum { a = 1, b, c };"),
    ("b", "enum E { a, // first\n b /* second */ = 2 };"),
    ("N", "constexpr int N = 4;"),
    ("N", "static const unsigned long long N{4};"),
    ("N", "__constant__ float N[16];"),
    ("N", "extern __constant__ float N;"),
    ("N", "template <typename T> inline constexpr int N = sizeof(T);"),
]


@pytest.mark.parametrize(("name", "text"), DEFINING)
def test_files_that_define_a_name(project: Project, name: str, text: str) -> None:
    program = project({"a.cu": f"int before;\n{text}\nint after(float);\n", "b.cu": "void g() { f(S(), N, a, b); }\n"})
    assert names(program, program.defining_files(name)) == ["a.cu"]
