"""The masking pass as text: same length, same lines, and what is put down for later."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudalint.source.mask import Masker

PIECES = (
    "__global__ void k(int* p) {",
    "}",
    "template <typename T, class = A<B<C>>>",
    "#if X",
    "#else",
    "#elif defined(__CUDACC__)",
    "#endif",
    "#define M(x) x /* a\n b */",
    "#define KERNEL(n, ...) __global__ void n(__VA_ARGS__)",
    "#define HD __host__ __device__",
    "#pragma unroll \\ ",
    "#",
    "HD",
    "CUTLASS_DEVICE",
    "CUTLASS_PRAGMA_UNROLL",
    "RAFT_KERNEL k(int x)",
    "KERNEL(k, int a)",
    "LOOP(i, n * 3) {",
    "CHECK(f(x))",
    'DISPATCH(t, "k", using T = int; k<<<1, 2>>>(x);)',
    "SWAP(int, a, , b*)",
    "SYNC",
    "__align__(16)",
    "__launch_bounds__(1, 2, 3)",
    "__cluster_dims__(2, 1, 1)",
    "__attribute__((aligned(8)));",
    '_Pragma("unroll 4")',
    "[=] __device__ (int i)",
    "* __restrict q",
    "= {}",
    "typename A::B{}",
    "template class X<y>;",
    "new const float*[3]",
    "operator()<T>(x)",
    "std::pair<A<B<c>>, A<B<c>>> f(",
    '"a"PRIx"b"',
    "'\\''",
    'R"x(" )" )x"',
    "// c \\",
    "/* d",
    "*/",
    "größe\r",
    "\0",
    "(",
    ")",
    "]",
    ";",
    ",",
    ">>>",
    "<<<",
)
programs = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(["\n", " ", ""])), max_size=25).map(
    lambda pieces: "".join(piece + end for piece, end in pieces).encode()
)


def mask(data: bytes) -> Masker:
    masker = Masker(data)
    masker.mask_specifiers()
    masker.mask_conditionals(None)
    masker.mask_heuristics([(0, len(data))])
    masker.mask_conditionals(None, every=True)
    return masker


def line_ends(data: bytes) -> list[int]:
    return [index for index, byte in enumerate(data) if byte in b"\r\n"]


@settings(max_examples=400)
@given(programs)
def test_masking_keeps_length_and_lines(data: bytes) -> None:
    masker = Masker(data)
    for step in (
        masker.mask_specifiers,
        lambda: masker.mask_conditionals(None),
        lambda: masker.mask_heuristics([(0, len(data))]),
        lambda: masker.mask_conditionals(None, every=True),
    ):
        step()
        assert len(masker.text) == len(data)
        assert line_ends(masker.text) == line_ends(data)


@given(programs)
def test_what_is_put_down_lies_within_the_text(data: bytes) -> None:
    masker = mask(data)
    assert all(0 <= offset < len(data) and name for offset, (name, _) in masker.attributes.items())
    assert all(0 <= begin <= end <= len(data) for begin, end in masker.dropped)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("struct __align__(16) A {};", "struct alignas  (16) A {};"),
        ("f = [=] __host__ __device__ (int i) {};", "f = [=]                     (int i) {};"),
        ("__global__ void __launch_bounds__(256, 2, 4) k();", "__global__ void __launch_bounds__(256, 2   ) k();"),
        ("void __cluster_dims__(2, 1, 1) k();", "void                           k();"),
        ("int x __attribute__((aligned(8)));", "int x                            ;"),
        ("struct A {} __attribute__((packed));", "struct A {} __attribute__((packed));"),
        ("const int* const __restrict p = q;", "const int* const            p = q;"),
        ("void f(int* __restrict p);", "void f(int* __restrict p);"),
        ('_Pragma("unroll") for (;;);', "                  for (;;);"),
        ("CUTLASS_DEVICE void f();", "__device__     void f();"),
        ("RAFT_KERNEL k(int x) {}", "__global__  k(int x) {}"),
        ("CUTE_ALIGNAS(16) int x;", "alignas     (16) int x;"),
        ("constexpr int CUTLASS_DEVICE = 8;", "constexpr int CUTLASS_DEVICE = 8;"),
        ("x += CUTLASS_DEVICE;", "x += CUTLASS_DEVICE;"),
        ("for (;;)\n#pragma unroll\nfor (;;);", "for (;;)\n              \nfor (;;);"),
        ("a();\n#pragma unroll\nfor (;;);", "a();\n#pragma unroll\nfor (;;);"),
        ("#define A x /* y */ z\n", "#define A x         z\n"),
        ("// __align__(16)\n", "// __align__(16)\n"),
        ('const char* s = "__align__(16)";', 'const char* s = "__align__(16)";'),
    ],
)
def test_specifiers(before: str, after: str) -> None:
    masker = Masker(before.encode())
    masker.mask_specifiers()
    assert masker.text.decode() == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("void f() { CHECK(a) \n  b(); }", "void f() { CHECK(a);\n  b(); }"),
        ("void f() { CHECK(a)\n  b(); }", "void f() { CHECK(a)\n; b(); }"),
        ("void f() { CHECK( a )\n}", "void f() { CHECK( a);\n}"),
        ("void f() { CHECK(g(a))\n}", "void f() { CHECK=g(a);\n}"),
        ("void f() { CHECK(a)\n#endif\n  b(); }", "void f() { CHECK=a;\n#endif\n  b(); }"),
        ("void f() { LOOP(i, n * 3) { } }", "void f() { LOOP(        ) { } }"),
        ("void f() { LOOP(i, n) { } }", "void f() { LOOP(i, n) { } }"),
        ("TEST(name, 16x16) { }", "TEST(           ) { }"),
        ("void f() { SWAP(int, a, b); }", "void f() { SWAP(in_, a, b); }"),
        ("void f() { SWAP(T*, a, b); }", "void f() { SWAP(T_, a, b); }"),
        ("void f() { MAC(a, , b); }", "void f() { MAC(a,_, b); }"),
        ('void f() { DISP(t, "k", using U = t; k(x);); }', "void f() {            { using U = t; k(x);}  }"),
        ('void f() { DISP(t, "k", using U = t; k(x)); }', "void f() {            { using U = t; k(x);} }"),
        ("void f() { DISP(t, { k(x); }); }", "void f() {         { k(x); }   }"),
        ("void f() { OUTER(t, INNER(u, using V = t; k(x);)) }", "void f() {        {        { using V = t; k(x);} }}"),
        ("void f() { k<<<n, {1, 2, 3}>>>(x); }", "void f() { k<<<n,_{1, 2, 3}>>>(x); }"),
        ("void f() { k<<<n,{1, 2, 3}>>>(x); }", "void f() { k<<<n,(1, 2, 3)>>>(x); }"),
        ("void f(const T*... x, int y);", "void f(const T*    x, int y);"),
        ("struct A { BLOCK(x, { return 1; }) };", "struct A {                         };"),
        ("template class X<half>;", "         class X<half>;"),
        ("extern template class X<half>;", "                class X<half>;"),
        ("auto x = typename A<b>::C{};", "auto x =          A<b>::C{};"),
        ("template <class A, typename B::C x> f();", "template <class A, typename B::C x> f();"),
        ("void f(int b = {});", "void f(int b = 0 );"),
        ("auto p = new T*[n];", "auto p = new T [n];"),
        ("x.template f(1);", "x.         f(1);"),
        ("x.template f<2>(1);", "x.template f<2>(1);"),
        ('printf("a"PRId64"b");', 'printf("a"      "b");'),
        ('extern "C" void f();', 'extern "C" void f();'),
        ("void f() {\nSYNC\n  a(); }", "void f() {\nSYNC\n; a(); }"),
        ("void f() { HALF\n  a(); }", "void f() { HALF\n  a(); }"),
        ("int t[] = { N };", "int t[] = { N };"),
        ("enum { AAA };", "enum { AAA };"),
        ("template <typename T, ENABLE_IF(a<b> && c)> void f();", "template <typename T, int                 > void f();"),
        ("void f(int a ADDED_PARAMS);", "void f(int a             );"),
        ("auto n = decltype(x){};", "auto n = declty_e(x)();"),
    ],
)
def test_heuristics(before: str, after: str) -> None:
    masker = Masker(before.encode())
    masker.mask_specifiers()
    masker.mask_heuristics([(0, len(before))])
    assert masker.text.decode() == after


SPLIT = "void f(\n#ifdef {}\n int a) {{\n#else\n int b, int c) {{\n#endif\n}}\n"


@pytest.mark.parametrize(
    ("condition", "kept"),
    [("__CUDACC__", b"int a"), ("USE_ROCM", b"int b"), ("__HIP_PLATFORM_AMD__", b"int b"), ("UNHEARD_OF", b"int a")],
)
def test_one_arm_of_a_split_construct_stays(condition: str, kept: bytes) -> None:
    masker = Masker(SPLIT.format(condition).encode())
    masker.mask_conditionals(None)
    assert kept in masker.text
    assert (b"int a" in masker.text) != (b"int b" in masker.text)
    assert b"#" not in masker.text


def test_the_caller_may_say_which_arms_are_compiled() -> None:
    data = SPLIT.format("UNHEARD_OF").encode()
    first = data.index(b"\n int a")
    masker = Masker(data)
    masker.mask_conditionals(lambda text: [(first, data.index(b"#else"))])
    assert b"int b" in masker.text
    assert b"int a" not in masker.text
    assert masker.dropped == [(first, data.index(b"#else"))]


def test_whole_statements_in_a_group_are_left_alone() -> None:
    data = b"void f() {\n#if A\n  a();\n#else\n  b();\n#endif\n}\n"
    masker = Masker(data)
    masker.mask_conditionals(None)
    assert masker.text == data


def test_arms_that_are_certainly_not_compiled_are_told() -> None:
    data = b"void f(\n#if 0\n int a) {\n#else\n int b) {\n#endif\n}\n"
    masker = Masker(data)
    masker.mask_conditionals(None)
    assert [data[begin:end] for begin, end in masker.dropped] == [b"\n int a) {\n"]


def test_macros_of_the_file_and_the_project_count() -> None:
    data = b"#define HD __host__ __device__\nHD int f(); DEV int g();\n"
    masker = Masker(data, {b"DEV": b" __device__"}.get)
    masker.mask_specifiers()
    assert masker.text == b"#define HD __host__ __device__\n   int f();     int g();\n"
    assert [name for name, _ in masker.attributes.values()] == ["__host__", "__device__", "__device__"]


def test_nul_bytes_become_spaces() -> None:
    assert Masker(b"int\0x;").text == b"int x;"
