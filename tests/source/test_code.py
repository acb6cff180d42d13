"""The lexical layer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalint.source.code import Brackets, code_view, groups, skip_space


def code(text: str) -> str:
    return code_view(text.encode()).code.decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a; // b\nc;", "a;.....\nc;"),
        ("a /* b\n */ c", "a.....\n....c"),
        ("// a \\\n b\nc", "......\n..\nc"),
        ('f("x;y")', 'f("...")'),
        (r'f("a\"b")', 'f("....")'),
        ("f('\"')", "f(0..)"),
        ("case'a':", "case0..:"),
        ("1'000'000+'x'", "1'000'000+0.."),
        ("0xAB'CD+u8'x'", "0xAB'CD+u80.."),
        ('a=R"(b"c)"+d', 'a=."....."+d'),
        ('a=R"x(b)"c)x"+d', 'a=."........"+d'),
        ('a=R"(b\n', 'a=."..\n'),
        ("/* open", "......."),
        ('"open\nx', '"....\nx'),
        ("a\n#define X(y) y; // z\nb", "a\n....................\nb"),
        ("a\n#define X \\\n  y\nb", "a\n...........\n...\nb"),
        ("a\n  #if A /* b\n c */\nd", "a\n............\n.....\nd"),
        ('#include "a//b"\nx', "...............\nx"),
        ("// /* \nx/* // */y", "......\nx........y"),
    ],
)
def test_code_view(text: str, expected: str) -> None:
    assert code(text).replace(" ", ".") == expected


def test_comments_and_directives_are_located() -> None:
    text = b"#if A\nx; // one\n/* two */\n#endif\n"
    view = code_view(text)
    assert [text[start:end] for start, end in view.comments] == [b"// one", b"/* two */"]
    assert [(text[line.start : line.end], line.word) for line in view.directives] == [(b"#if A", b"if"), (b"#endif", b"endif")]


@given(st.text(alphabet="ab\"'/*\\\n\rR()#x0{}; ", max_size=120))
def test_the_view_has_the_same_length_and_lines(text: str) -> None:
    data = text.encode()
    view = code_view(data)
    assert len(view.code) == len(data)
    assert [index for index, byte in enumerate(view.code) if byte in b"\n\r"] == [
        index for index, byte in enumerate(data) if byte in b"\n\r"
    ]


@given(st.text(alphabet="ab{}()[]; \n", max_size=80))
def test_text_without_literals_and_comments_is_all_code(text: str) -> None:
    assert code(text) == text


def test_brackets_pair_and_enclose() -> None:
    text = b"f(a[1], {b}) + g()"
    brackets = Brackets(text)
    assert brackets.pairs == {1: 11, 3: 5, 8: 10, 16: 17}
    assert [brackets.enclosing(position) for position in (0, 2, 4, 9, 11, 12)] == [-1, 1, 3, 8, 1, -1]


def test_brackets_survive_what_does_not_balance() -> None:
    assert Brackets(b"{ f( } g(x)").pairs == {0: 5, 8: 10}
    assert Brackets(b")}] (a)").pairs == {4: 6}
    assert Brackets(b"{ ( [ }").pairs == {0: 6}


def test_groups_come_inner_ones_first() -> None:
    text = b"#if A\nx\n#ifdef B\ny\n#endif\n#else\nz\n#endif\n#endif\n"
    found = [[text[begin:end].strip() for begin, end in group.arms] for group in groups(code_view(text).directives)]
    assert found == [[b"y"], [b"x\n#ifdef B\ny\n#endif", b"z"]]


def test_skip_space() -> None:
    assert skip_space(b"a  b", 1) == 3
    assert skip_space(b"a \t\r\n", 1) == 5
    assert skip_space(b"ab", 1) == 1
