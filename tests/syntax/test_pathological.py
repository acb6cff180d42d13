"""Inputs that are deep, long or broken: an answer, no exception, no work that grows with the square of the size."""

from __future__ import annotations

import random

import pytest

from cudalint.source import suppress
from cudalint.source.text import SourceFile
from cudalint.syntax.tree import parse, parse_fragment

KERNEL = b"__global__ void k(int* p) { p[threadIdx.x] = 1; }\n"

INPUTS = {
    "parentheses": b"int x = " + b"(" * 20_000 + b"1" + b")" * 20_000 + b";",
    "parentheses that stay open": b"int x = " + b"(" * 100_000,
    "blocks": b"void f() " + b"{" * 20_000 + b"}" * 20_000,
    "closing brackets": b"}" * 50_000 + b")" * 50_000,
    "a long sum": b"int x = 1" + b" + 1" * 50_000 + b";",
    "operators only": b"+" * 100_000,
    "macros in macros": b"void f() { " + b"MACRO(" * 10_000 + b"x" + b")" * 10_000 + b" y(); }",
    "macros that stay open": b"void f() { " + b"MACRO(" * 20_000,
    "statement macros": b"void f() { " + b"MACRO(a)\n" * 10_000 + b"}",
    "angles": b"MACRO(" + b"a<" * 10_000 + b") y",
    "template heads": b"template<" * 20_000,
    "conditions in conditions": b"#if A\n" * 20_000 + b"x(" + b"#endif\n" * 20_000,
    "split conditions": b"#if A\nfoo(\n#else\nbar(\n#endif\n1);\n" * 2_000,
    "a comment that stays open": b"/*" + b"*" * 100_000,
    "a raw string that stays open": b'R"x(' * 5_000,
    "quotes": b"\"'" * 20_001,
    "continued lines": b"#define A \\\n" * 20_000,
    "hashes": b"#\n" * 20_000,
    "spaces": b" " * 1_000_000 + b"MACRO",
    "commas": b"MACRO(" + b"," * 20_000 + b")",
    "launch marks": b"a<<<b,c" * 20_000,
    "macros that double": b"".join(b"#define M%d __device__ M%d M%d\n" % (i, i + 1, i + 1) for i in range(40))
    + b"#define M40 __device__\nM0 void f();",
    "macros in a circle": b"#define AAA BBB\n#define BBB AAA\nAAA void f();",
    "punctuation that is slow to recover from": b",*" * 20_000,
    "the same on lines": b";::=\n" * 20_000,
    "comments that stay open": b"(/*x" * 20_000,
    "words that are slow to recover from": b"friend#endif\n&" * 4_000,
    "a long blank": b"enum//" + b" " * 20_000 + b"\n::}" * 2_000,
    "bytes": random.Random(1).randbytes(50_000),
}


@pytest.mark.parametrize("name", INPUTS)
def test_an_answer_for_everything(name: str) -> None:
    data = KERNEL + INPUTS[name]
    source = SourceFile("k.cu", data)
    parsed = parse(source)
    assert len(parsed.text) == len(data)
    assert not parsed.has_error_in(0, len(KERNEL) - 1)
    assert parsed.errors == sorted(parsed.errors)
    assert suppress.parse(source).items == []


def test_what_is_not_read_is_an_error() -> None:
    data = KERNEL + b",*" * 20_000
    parsed = parse(SourceFile("k.cu", data))
    assert parsed.errors[-1] == (len(KERNEL), len(data))
    assert parsed.text[: len(KERNEL)] == KERNEL
    assert not parsed.has_error_in(0, len(KERNEL) - 1)


def test_a_comment_that_stays_open_ends_the_file() -> None:
    data = KERNEL + b"/* and then\n__global__ void after() {}\n"
    parsed = parse(SourceFile("k.cu", data))
    assert parsed.errors == [(len(KERNEL), len(data))]
    assert len(parsed.root.named_children) == 1


def test_a_fragment_that_is_nothing_like_code_is_broken() -> None:
    assert parse_fragment(b",*" * 20_000, "expression")[2]


def test_deep_fragments() -> None:
    assert not parse_fragment(b"(" * 5_000 + b"1" + b")" * 5_000, "expression")[2]
    assert parse_fragment(b"(" * 5_000, "expression")[2]
    assert not parse_fragment(b"{x;" * 2_000 + b"}" * 2_000, "statements")[2]
