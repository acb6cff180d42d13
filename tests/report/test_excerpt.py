"""Carets stand under what they mean, whatever the characters before them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalint.report.excerpt import excerpt
from cudalint.report.style import Style
from cudalint.source.text import SourceFile


def shown(line: str, word: str, width: int = 120) -> list[str]:
    """The excerpt for the first `word` of a one-line file."""
    first = line.index(word) + 1
    source = SourceFile("k.cu", line.encode())
    return excerpt(source, (1, first), (1, first + len(word)), Style(color=False), width, "warning")


@pytest.mark.parametrize(
    ("line", "word", "text", "carets"),
    [
        ("a[i] = b;", "b", "a[i] = b;", "       ^"),
        ("\ta\tbc;", "bc", "    a   bc;", "        ^^"),
        ("x = 行 + yy;", "yy", "x = 行 + yy;", "         ^^"),
        ("x = 行;", "行", "x = 行;", "    ^^"),
        ("e\u0301 + z", "z", "e\u0301 + z", "    ^"),
        ("a\x00\x1bb", "b", "a\ufffd\ufffdb", "   ^"),
        ("x  ", "x", "x", "^"),
    ],
)
def test_caret_positions(line: str, word: str, text: str, carets: str) -> None:
    assert shown(line, word) == [f" 1 | {text}", f"   | {carets}"]


def test_an_empty_range_still_has_a_caret() -> None:
    source = SourceFile("k.cu", b"ab")
    assert excerpt(source, (1, 3), (1, 3), Style(False), 80, "error") == [" 1 | ab", "   |   ^"]


def test_a_range_over_lines_is_underlined_on_the_first() -> None:
    source = SourceFile("k.cu", b"for (;;)  \n  f(\n  x);")
    assert excerpt(source, (1, 1), (3, 5), Style(False), 80, "error") == [" 1 | for (;;)", "   | ^^^^^^^^ to line 3"]
    assert excerpt(source, (1, 1), (2, 1), Style(False), 80, "error") == [" 1 | for (;;)", "   | ^^^^^^^^"]


def test_the_gutter_is_as_wide_as_the_number() -> None:
    source = SourceFile("k.cu", b"\n" * 99 + b"abc")
    assert excerpt(source, (100, 2), (100, 3), Style(False), 80, "error") == [" 100 | abc", "     |  ^"]


def test_a_place_outside_of_the_file_is_shown_as_an_empty_line() -> None:
    assert excerpt(SourceFile("k.cu", b""), (7, 3), (7, 9), Style(False), 80, "error") == [" 7 |", "   | ^"]


def test_long_lines_are_cropped_around_the_range() -> None:
    line = "a" * 300 + "BBBB" + "c" * 300
    text, carets = shown(line, "BBBB", width=60)
    assert text.startswith(" 1 | …aaa")
    assert text.endswith("ccc…")
    assert len(text) <= 60
    assert [text[i] for i, mark in enumerate(carets) if mark == "^"] == ["B"] * 4


@given(st.text(st.sampled_from("a\t行é\u0301 \x01"), max_size=200), st.integers(30, 90))
def test_the_caret_is_below_the_word_and_the_line_fits(prefix: str, width: int) -> None:
    text, carets = shown(prefix + "Z;", "Z", width)
    columns = 0
    for character in text:
        if character == "Z":
            break
        columns += 0 if character == "\u0301" else 2 if character == "行" else 1
    assert carets.index("^") == columns
    assert columns < width
