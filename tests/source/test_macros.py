"""What is known of macros by their definitions."""

from __future__ import annotations

import pytest

from cudalint.source.macros import DefinitionIndex, Evidence, definitions


def tokens(text: bytes, name: bytes) -> list[tuple[bytes, bytes]] | None:
    meaning = Evidence(text, None).specifiers(name)
    return None if meaning is None else list(meaning.tokens)


def test_definitions_are_what_follows_the_name() -> None:
    text = b"#define A 1\n  #  define F(x, y) \\\n  x\n#define E\n// #define NO 1\n#undef A\n"
    assert definitions(text) == {b"A": b" 1", b"F": b"(x, y) \\\n  x", b"E": b""}


def test_the_definition_that_says_most_wins() -> None:
    text = b"#ifdef __CUDACC__\n#define HD __host__ __device__\n#else\n#define HD\n#endif\n"
    assert definitions(text) == {b"HD": b" __host__ __device__"}
    assert definitions(b"#define HD\n#define HD __device__\n") == {b"HD": b" __device__"}


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        (b"#define D __device__ inline\n", b"D", [(b"__device__", b""), (b"inline", b"")]),
        (b'#define K extern "C" __global__ void\n', b"K", [(b"extern", b""), (b"__global__", b"")]),
        (b"#define B(n) __launch_bounds__(n, 2)\n", b"B", [(b"__launch_bounds__", b"n, 2")]),
        (b'#define U _Pragma("unroll 4")\n', b"U", [(b"pragma", b"unroll 4")]),
        (b"#define I D\n#define D __device__\n", b"I", [(b"__device__", b"")]),
        (b"#define X [[nodiscard]] __attribute__((noinline))\n", b"X", [(b"__attribute__", b"(noinline)")]),
        (b"#define NOTHING // empty\n", b"NOTHING", []),
        (b"#define N 32\n", b"N", None),
        (b"#define T float\n", b"T", None),
        (b"#define V void\n", b"V", None),
        (b"#define LOOP for (;;)\n", b"LOOP", None),
        (b"#define A B\n#define B A\n", b"A", None),
        (b"", b"CUTLASS_DEVICE", [(b"__device__", b"")]),
        (b"", b"UNHEARD_OF", None),
    ],
)
def test_specifiers(text: bytes, name: bytes, expected: list[tuple[bytes, bytes]] | None) -> None:
    assert tokens(text, name) == expected


def test_the_files_own_definition_beats_the_list_of_libraries() -> None:
    assert tokens(b"#define CUTLASS_DEVICE __host__\n", b"CUTLASS_DEVICE") == [(b"__host__", b"")]


def test_the_project_is_asked_for_what_the_file_does_not_define() -> None:
    project = {b"MY_DEVICE": b" __device__", b"lower": b"", b"spelled_low": b" __device__"}
    evidence = Evidence(b"", project.get)
    assert evidence.specifiers(b"MY_DEVICE") is not None
    assert evidence.specifiers(b"lower") is None
    assert evidence.specifiers(b"spelled_low") is not None


def test_the_nearest_definition_of_a_project_counts() -> None:
    index = DefinitionIndex()
    index.add("/p/a/x.h", b"#define REAL float\n")
    index.add("/p/b/x.h", b"#define REAL double\n#define ONCE 1\n")
    assert index.find(b"REAL", "/p/a/k.cu") == b" float"
    assert index.find(b"REAL", "/p/b/sub/k.cu") == b" double"
    assert index.find(b"ONCE", "/p/a/k.cu") == b" 1"
    assert index.find(b"NEVER", "/p/a/k.cu") is None
