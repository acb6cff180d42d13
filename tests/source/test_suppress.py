"""Suppression comments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalint.source.suppress import Suppression, Suppressions, parse
from cudalint.source.text import SourceFile

KNOWN = frozenset(("occupancy", "low-ilp", "uncoalesced-global", "CU101", "CU405", "memory", "latency", "launch"))


def read(text: str) -> Suppressions:
    return parse(SourceFile("k.cu", text.encode()))


def only(text: str) -> Suppression:
    (item,) = read(text).items
    return item


def suppressed(text: str, line: int, rule: str = "low-ilp", kernel: tuple[int, int] | None = None) -> bool:
    return read(text).match(rule, "CU501", "latency", line, kernel) is not None


def problems(text: str, *findings: tuple[str, int], ran: frozenset[str] | None = None) -> list[tuple[str, tuple[str, ...], int]]:
    comments = read(text)
    for rule, line in findings:
        comments.match(rule, "CU999", "launch", line)
    return [(problem.kind, problem.names, problem.line) for problem in comments.problems(KNOWN, ran)]


def test_same_line() -> None:
    text = "a();\nb();  // cudalint: ignore[low-ilp, CU101] measured, does not matter\nc();\n"
    item = only(text)
    assert (item.kind, item.rules, item.reason) == ("line", ("low-ilp", "CU101"), "measured, does not matter")
    assert (item.line, item.column) == (2, 10)
    assert [suppressed(text, line) for line in (1, 2, 3)] == [False, True, False]


@pytest.mark.parametrize("word", ["low-ilp", "CU501", "cu501", "latency", "*", "ALL"])
def test_rules_go_by_name_code_or_family(word: str) -> None:
    assert suppressed(f"x(); // cudalint: ignore[{word}]\n", 1)


@pytest.mark.parametrize("word", ["occupancy", "CU50", "lat", ""])
def test_other_words_mean_other_rules(word: str) -> None:
    assert not suppressed(f"x(); // cudalint: ignore[{word}]\n", 1)


def test_alone_on_its_line_it_means_the_whole_statement_that_follows() -> None:
    text = "a();\n// cudalint: ignore[low-ilp]\n\n// why\nx = f(a,\n      b);\nc();\n"
    assert [suppressed(text, line) for line in range(1, 8)] == [False, False, False, False, True, True, False]


def test_pragmas_between_belong_to_the_statement() -> None:
    text = "// cudalint: ignore[low-ilp]\n#pragma unroll\nfor (int i = 0; i < 3;\n     i++) {\n  f();\n}\n"
    assert [suppressed(text, line) for line in range(1, 7)] == [False, True, True, True, False, False]


KERNEL = """\
// cudalint: ignore[low-ilp] one load per thread
template <int N>
__global__ void
k(int* p)
{
    p[0] = 1;
}
__global__ void other(int* p) { p[0] = 1; }
"""


def test_alone_above_a_kernel_it_means_the_whole_kernel() -> None:
    assert suppressed(KERNEL, 6, kernel=(3, 7))
    assert suppressed(KERNEL, 6, kernel=(2, 7))
    assert not suppressed(KERNEL, 8, kernel=(8, 8))
    assert not suppressed(KERNEL, 6)


def test_above_a_statement_of_a_kernel_it_does_not_mean_the_kernel() -> None:
    text = "__global__ void k(int* p)\n{\n    // cudalint: ignore[low-ilp]\n    p[0] = 1;\n    p[1] = 1;\n}\n"
    assert suppressed(text, 4, kernel=(1, 6))
    assert not suppressed(text, 5, kernel=(1, 6))


def test_regions_end_where_they_are_enabled() -> None:
    text = "// cudalint: disable[low-ilp, occupancy]\na();\n// cudalint: enable[low-ilp]\nb();\n// cudalint: enable\nc();\n"
    assert [suppressed(text, line) for line in (2, 4, 6)] == [True, False, False]
    assert [suppressed(text, line, "occupancy") for line in (2, 4, 6)] == [True, True, False]


def test_a_region_may_last_to_the_end_of_the_file() -> None:
    assert suppressed("// cudalint: disable[low-ilp]\na();\nb();\n", 3)


def test_whole_file() -> None:
    text = "a();\nb();\n// cudalint: file-ignore[low-ilp]\n"
    assert suppressed(text, 1)
    assert not suppressed(text, 1, "occupancy")


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("x(); // NOLINT(cudalint-low-ilp)\n", 1, True),
        ("x(); // NOLINT(bugprone-foo, cudalint-low-ilp): because\n", 1, True),
        ("x(); // NOLINT(bugprone-foo)\n", 1, False),
        ("x(); // NOLINT\n", 1, True),
        ("x(); // NOLINT(*)\n", 1, True),
        ("x(); // NOLINT(cudalint-CU501)\n", 1, True),
        ("x(); /* NOLINT(cudalint-low-ilp) */\n", 1, True),
        ("// NOLINTNEXTLINE(cudalint-low-ilp)\nx();\n", 2, True),
        ("// NOLINT(cudalint-low-ilp)\nx();\n", 2, False),
        ("// NOLINTBEGIN(cudalint-low-ilp)\nx();\n// NOLINTEND(cudalint-low-ilp)\ny();\n", 2, True),
        ("// NOLINTBEGIN(cudalint-low-ilp)\nx();\n// NOLINTEND(cudalint-low-ilp)\ny();\n", 4, False),
    ],
)
def test_nolint(text: str, line: int, expected: bool) -> None:
    assert suppressed(text, line) is expected


@pytest.mark.parametrize(
    "text",
    [
        'const char* s = "// cudalint: ignore[low-ilp]"; x();\n',
        'const char* s = R"(// NOLINT)"; x();\n',
        "// the comment `cudalint: ignore[low-ilp]` hides a finding\nx();\n",
        "int NOLINT_count; x();\n",
    ],
)
def test_what_only_looks_like_a_comment(text: str) -> None:
    assert read(text).items == []


def test_comments_at_the_end_of_directives_count() -> None:
    assert suppressed("#pragma unroll 64  // cudalint: ignore[low-ilp]\nfor (;;) {}\n", 1)


def test_block_comments_over_several_lines() -> None:
    text = "a();\n/* too small to matter\n   cudalint: ignore[low-ilp] nobody calls it\n */\nb();\n"
    assert only(text).reason == "nobody calls it"
    assert [suppressed(text, line) for line in (1, 5)] == [False, True]


def test_the_narrowest_suppression_is_used() -> None:
    comments = read("// cudalint: file-ignore[low-ilp]\nx(); // cudalint: ignore[low-ilp]\n")
    item = comments.match("low-ilp", "CU501", "latency", 2)
    assert item is not None
    assert item.kind == "line"
    assert [problem.kind for problem in comments.problems(KNOWN)] == ["unused"]


def test_problems() -> None:
    text = (
        "a(); // cudalint: ignore[occupancy, low-ilp]\n"
        "b(); // cudalint: ignore[ocupancy]\n"
        "c(); // NOLINT\n"
        "d(); // cudalint: ignor[occupancy]\n"
        "e(); // cudalint: ignore[occupancy\n"
        "// NOLINTEND(cudalint-occupancy)\n"
        "// NOLINTBEGIN(cudalint-memory)\n"
    )
    assert problems(text, ("occupancy", 1), ("occupancy", 3)) == [
        ("unused", ("low-ilp",), 1),
        ("unknown", ("ocupancy",), 2),
        ("blanket", (), 3),
        ("malformed", (), 4),
        ("malformed", (), 5),
        ("unmatched", (), 6),
        ("unmatched", ("memory",), 7),
        ("unused", ("memory",), 7),
    ]


def test_only_rules_that_ran_can_be_unused() -> None:
    text = "a(); // cudalint: ignore[occupancy, low-ilp]\n"
    assert problems(text, ran=frozenset(("low-ilp",))) == [("unused", ("low-ilp",), 1)]


def test_a_file_without_suppressions_matches_nothing() -> None:
    comments = read("x(); // no lint here\n")
    assert comments.match("occupancy", "CU405", "launch", 1) is None
    assert comments.problems(KNOWN) == []


@given(st.integers(0, 5), st.sampled_from(["int a;\n", "\n", "// word\n", "#define X 1\n"]))
def test_suppressions_move_with_the_text(count: int, filler: str) -> None:
    prefix = filler * count
    there = read(prefix + KERNEL).items
    here = read(KERNEL).items
    assert [(item.kind, item.rules, item.reason, item.column) for item in there] == [
        (item.kind, item.rules, item.reason, item.column) for item in here
    ]
    assert [(item.line - count, item.first - count, item.last - count) for item in there] == [
        (item.line, item.first, item.last) for item in here
    ]
    assert all(item.start == other.start + len(prefix) for item, other in zip(there, here, strict=True))


@given(st.text(alphabet="cudalint: ignore[]NOLINT()-,*/\n\"'R#;{}x", max_size=80))
def test_no_text_breaks_the_reader(text: str) -> None:
    comments = read(text)
    last = text.count("\n") + 1
    assert all(1 <= item.line <= last and item.first >= 1 and item.last <= last for item in comments.items)
    assert all(text.encode()[item.start : item.end].startswith((b"cudalint:", b"NOLINT")) for item in comments.items)
