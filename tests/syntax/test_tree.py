"""Files and fragments to trees."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_sitter import Node, Parser

from cudalint.source.text import SourceFile
from cudalint.syntax import kinds
from cudalint.syntax.tree import LANGUAGE, ParsedFile, is_macro_loop, parse, parse_fragment


def read(text: str | bytes, **macros: bytes) -> ParsedFile:
    data = text.encode() if isinstance(text, str) else text
    return parse(SourceFile("k.cu", data), lambda name: macros.get(name.decode("utf-8", "replace")))


def nodes(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def kernel_nodes(parsed: ParsedFile) -> list[Node]:
    return [node for node in nodes(parsed.root) if node.type == kinds.FUNCTION_DEFINITION and parsed.is_kernel(node)]


def name_of(node: Node) -> str:
    declarator = node.child_by_field_name(kinds.F_DECLARATOR)
    name = declarator.child_by_field_name(kinds.F_DECLARATOR) if declarator is not None else None
    return (name.text or b"").decode("utf-8", "replace") if name is not None else ""


def kernels(parsed: ParsedFile) -> list[str]:
    return [name_of(node) for node in kernel_nodes(parsed)]


def launches(parsed: ParsedFile) -> list[str]:
    calls = [node.parent for node in nodes(parsed.root) if node.type == kinds.KERNEL_CALL_SYNTAX]
    return [(call.text or b"").split(b"<")[0].decode() for call in calls if call is not None]


def lost(parsed: ParsedFile) -> int:
    return sum(end - start for start, end in parsed.errors)


def test_a_clean_file_is_parsed_as_it_is() -> None:
    text = "__global__ void k(int* p) { p[0] = 1; }\n"
    parsed = read(text)
    assert parsed.text == text.encode()
    assert parsed.attributes == {}
    assert parsed.errors == []
    assert kernels(parsed) == ["k"]


@pytest.mark.parametrize(
    "text",
    [
        "#define KERNEL __global__\nKERNEL void k(int* p) { p[0] = 1; }",
        "#define K_ __global__\ntemplate <int N> K_ void k(int* p) { p[0] = N; }",
        "#define KERNEL(n) __global__ void n\nKERNEL(k)(int* p) { p[0] = 1; }",
        '#define KRN(n, ...) extern "C" __global__ void n(__VA_ARGS__)\nKRN(k, int* p, int q) { p[0] = q; }',
        "RAFT_KERNEL k(int* p) { p[0] = 1; }",
        "CUDF_KERNEL void __launch_bounds__(32) k(int* p) { p[0] = 1; }",
        "template <class T>\nCUTLASS_GLOBAL void k(T p) { p[0] = 1; }",
        "PROJECT_KERNEL void k(int* p) { p[0] = 1; }",
        "__global__ void __cluster_dims__(2, 1, 1) k(int* p) { p[0] = 1; }",
        "__global__ void\n#if X\n__launch_bounds__(64, 4)\n#else\n__launch_bounds__(64)\n#endif\nk(int* p) { p[0] = 1; }",
    ],
)
def test_kernels_however_they_are_spelled(text: str) -> None:
    parsed = read(text, PROJECT_KERNEL=b" __global__")
    assert kernels(parsed) == ["k"]
    assert parsed.errors == []


def test_a_device_function_is_no_kernel() -> None:
    parsed = read("CUTLASS_DEVICE void f() {}\n__device__ void g() {}\n__global__ void h();\n")
    assert kernels(parsed) == []


def test_specifiers_tell_what_was_overwritten() -> None:
    text = (
        "#define BOUNDS(t) __launch_bounds__(t, 2)\n"
        "__global__ void BOUNDS(256) __cluster_dims__(2, 1, 1) k(int* p) { p[0] = 1; }\n"
        "__global__ void __launch_bounds__(64, 2, 4) l(int* p) { p[0] = 1; }\n"
    )
    parsed = read(text)
    first, second = kernel_nodes(parsed)
    assert parsed.specifiers(first) == {"__launch_bounds__": "256, 2", "__cluster_dims__": "2, 1, 1"}
    assert parsed.specifiers(second) == {"max_blocks_per_cluster": "4"}


def test_macros_over_declarations_keep_their_meaning() -> None:
    parsed = read("#define TILE __shared__\n__global__ void k() { TILE float t[32]; }\n")
    (declaration,) = [node for node in nodes(parsed.root) if node.type == kinds.DECLARATION]
    assert parsed.specifiers(declaration) == {"__shared__": ""}


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("#pragma unroll\n", "unroll"),
        ("#pragma unroll 4\n", "unroll 4"),
        ("#pragma unroll(4)\n", "unroll 4"),
        ("  #  pragma   unroll (N * 2) // all of it\n", "unroll N * 2"),
        ("#pragma unroll \\\n 8\n", "unroll 8"),
        ("#pragma nounroll\n", "nounroll"),
        ("#pragma GCC unroll 2\n", "unroll 2"),
        ('_Pragma("unroll 3")\n', "unroll 3"),
        ("CUTLASS_PRAGMA_UNROLL\n", "unroll"),
        ("CUTLASS_PRAGMA_NO_UNROLL\n", "unroll 1"),
        ("UNROLL_BY(6)\n", "unroll 6"),
        ("#pragma unroll 4\n// why\n\n/* four\n loads */ ", "unroll 4"),
        ("#pragma unroll 4\nouter:\n", "unroll 4"),
        ("#pragma unroll 4\n#pragma nv_diag_suppress 177\n", "unroll 4"),
        ("#ifdef FAST\n#pragma unroll 4\n#endif\n", "unroll 4"),
        ("for (int j = 0; j < 2; j++)\n#pragma unroll 4\n", "unroll 4"),
        ("#pragma unroll 4\nf();\n", None),
        ("#pragma unroll 4\n#define N 3\n", None),
        ("#pragma omp parallel\n", None),
        ("// #pragma unroll\n", None),
        ('s = "#pragma unroll";\n', None),
        ("", None),
    ],
)
def test_pragma_before_a_loop(before: str, expected: str | None) -> None:
    text = f"__global__ void k() {{\n{before}for (int i = 0; i < 8; i++) f(i);\n}}\n"
    parsed = read(text, UNROLL_BY=b"(n) _Pragma(unroll n)")
    assert parsed.pragma_before(text.encode().rindex(b"for (int i")) == expected


def test_pragma_before_the_start_of_a_file() -> None:
    assert read("for (;;);").pragma_before(0) is None


def test_errors_are_located() -> None:
    text = "__global__ void a() { x = ; }\n__global__ void b() { y = 1; }\n"
    parsed = read(text)
    second = text.index("__global__ void b")
    assert parsed.errors
    assert parsed.has_error_in(0, second)
    assert not parsed.has_error_in(second, len(text))


def test_an_error_around_a_range_is_none_of_its_business() -> None:
    text = "class {{{ @@@ __global__ void b() { y = 1; }"
    parsed = read(text)
    start = text.index("__global__")
    assert parsed.errors
    assert not parsed.has_error_in(start, len(text) - 1)


def test_macro_loops_are_told_from_functions() -> None:
    parsed = read("__global__ void k(int n) { CUDA_1D_KERNEL_LOOP(i, n) { a[i] = 0; } }\n")
    kernel, loop = [node for node in nodes(parsed.root) if node.type == kinds.FUNCTION_DEFINITION]
    assert [is_macro_loop(node) for node in (kernel, loop)] == [False, True]


def test_a_file_need_not_end_with_a_line_end() -> None:
    parsed = read("#include <a>")
    assert parsed.errors == []
    assert parsed.root.end_byte >= len("#include <a>")


# ------------------------------------------------------------------- fragments


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a + b * 3", kinds.BINARY_EXPRESSION),
        ("x", kinds.IDENTIFIER),
        ("/* a */ 3 // b", kinds.NUMBER_LITERAL),
        ("a, b", kinds.COMMA_EXPRESSION),
        ("f<T>(x)", kinds.CALL_EXPRESSION),
        ("[=] __device__ (int i) { return i; }", kinds.LAMBDA_EXPRESSION),
        ("x ? y : z", kinds.CONDITIONAL_EXPRESSION),
    ],
)
def test_expressions(text: str, kind: str) -> None:
    node, framed, broken = parse_fragment(text.encode(), "expression")
    assert (node.type, broken) == (kind, False)
    assert framed[node.start_byte : node.end_byte] in framed


def test_the_offsets_of_a_fragment_refer_to_the_text_that_comes_with_it() -> None:
    node, framed, broken = parse_fragment(b"a[i + 1]", "expression")
    assert framed[node.start_byte : node.end_byte] == b"a[i + 1]"
    assert not broken


@pytest.mark.parametrize("text", ["", "int", "a) + (b", "1); int y = (2", "a b c", "x;", "return 1", "{1, 2}", "(", "// x"])
def test_what_is_no_expression_is_broken(text: str) -> None:
    assert parse_fragment(text.encode(), "expression")[2]


def test_statements() -> None:
    node, _, broken = parse_fragment(b'int x = 1; _Pragma("unroll") for (;;) { x++; } __align__(8) float y;', "statements")
    assert not broken
    assert [child.type for child in node.named_children] == [kinds.DECLARATION, kinds.FOR_STATEMENT, kinds.DECLARATION]
    assert not parse_fragment(b"", "statements")[2]


@pytest.mark.parametrize("text", ["} {", "}", "{", "return x", "int x = ;"])
def test_what_is_no_run_of_statements_is_broken(text: str) -> None:
    assert parse_fragment(text.encode(), "statements")[2]


# ------------------------------------------------------------------------ laws

NOISE = (
    "CHECK(f(x))\n",
    "#if defined(A)\n",
    "#else\n",
    "#endif\n",
    "HD int h() { return 1; }\n",
    "#define HD __host__ __device__\n",
    "struct __align__(16) S { int x; };\n",
    "TEST(a, 16x16) {\n}\n",
    "template class X<int>;\n",
    "auto f = [=] __device__ (int i) { return i; };\n",
    "int g(int b = {});\n",
    "}\n",
    "int broken( ;\n",
    "namespace n {\n",
    "void launch() { k0<<<1, 32>>>(p); }\n",
    'D(t, "x", using T = t; k1<T><<<1, 2>>>(x);)\n',
)


def with_kernels(pieces: list[str]) -> str:
    return "".join(f"{piece}__global__ void k{index}(int* p) {{ p[{index}] = 1; }}\n" for index, piece in enumerate(pieces))


@settings(max_examples=150)
@given(st.lists(st.sampled_from(NOISE), max_size=8))
def test_masking_never_loses_a_kernel_or_a_launch(pieces: list[str]) -> None:
    data = with_kernels(pieces).encode()
    parsed = read(data)
    raw = ParsedFile(parsed.source, data, Parser(LANGUAGE).parse(data).root_node, {})
    assert len(parsed.text) == len(data)
    for count in (kernels, launches):
        assert len(set(count(parsed))) >= len(set(count(raw)))
    assert len(parsed.errors) <= len(raw.errors) or len(kernels(parsed)) > len(kernels(raw)) or lost(parsed) < lost(raw)


@settings(max_examples=150)
@given(st.binary(max_size=120))
def test_any_bytes_parse(data: bytes) -> None:
    parsed = parse(SourceFile("k.cu", data))
    assert len(parsed.text) == len(data)
    assert parsed.text.count(b"\n") == data.count(b"\n")
    assert all(0 <= start <= end <= len(data) + 1 for start, end in parsed.errors)
