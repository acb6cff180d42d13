"""Gaps of the grammar: plain C++ that it cannot read, edited to something of the same length that it can."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from cudalint.source.code import WORD
from cudalint.source.macros import KEYWORDS, MACRO_NAME
from cudalint.source.page import REACH, WORD_CHARS, Page

Edit = Callable[[Page, "re.Match[bytes]"], None]

_NEAR = 300
_OWN_COMMA = re.compile(rb"_(?:PARAMS?|ARGS?|ARGUMENTS?)\Z")
_SIMPLE_ARGUMENTS = re.compile(rb"[\w\s,:*&.]*")
_NO_WORD = re.compile(rb"[^\w\n\r]")
_ANYTHING = re.compile(rb"")
_FUNCTION_HEAD = re.compile(rb"\s*[A-Za-z_][\w:]*\s*\(")
_TEMPLATE_WORD = re.compile(rb"\s*template\b")


def fill_gaps(page: Page, errors: list[tuple[int, int]]) -> None:
    """Edit every construct of the table; what loses information, near the errors (byte ranges in order) only."""
    everywhere = [(0, len(page.code))]
    windows = _windows(page, errors)
    for pattern, edit, before, lossy in _GAPS:
        for start, end in windows if lossy else everywhere:
            for match in pattern.finditer(page.code, start, end):
                if before is None or page.char(page.previous(match.start())) in before:
                    edit(page, match)


def _windows(page: Page, errors: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The surroundings of the errors, in order and apart."""
    windows: list[tuple[int, int]] = []
    for start, end in errors:
        low, high = max(start - _NEAR, 0), end + _NEAR
        low = max(0, *(page.code.rfind(mark, max(low - REACH, 0), low) for mark in (b";", b"{", b"}", b">")))
        if windows and low <= windows[-1][1]:
            windows[-1] = windows[-1][0], max(high, windows[-1][1])
        else:
            windows.append((low, high))
    return windows


def _blank_group(page: Page, match: re.Match[bytes]) -> None:
    page.blank(match.start(1), match.end(1))


def _blank_instantiation(page: Page, match: re.Match[bytes]) -> None:
    """`template class A<b>;`, `extern template class A<b>;`"""
    before = page.previous(match.start())
    extern = page.previous_word(before) == b"extern"
    page.blank(before - 5 if extern else match.start(), match.end(1))


def _blank_bitfield(page: Page, match: re.Match[bytes]) -> None:
    """`int : 3, a : 2;`"""
    before = page.previous(match.start())
    word = page.previous_word(before)
    if word and page.char(page.previous(before + 1 - len(word))) in _AFTER_STATEMENT:
        page.blank(match.start(1), match.end(1))


def _blank_parameters(page: Page, match: re.Match[bytes]) -> None:
    """`f(int a MORE_PARAMS)`: a macro that brings its own comma."""
    end = match.end() - 1
    start = end
    while True:
        before = page.previous(start)
        word = page.previous_word(before)
        if MACRO_NAME.match(word) is None or _OWN_COMMA.search(word) is None:
            break
        start = before + 1 - len(word)
    if word and start < end:
        page.blank(start, end)


def _blank_typename(page: Page, match: re.Match[bytes]) -> None:
    """`typename A::B{}` and `typename A::B(x)` as expressions."""
    position = match.end()
    code = page.code
    while True:
        word = WORD.match(code, page.next(position))
        if word is None:
            return
        position = page.next(word.end())
        if page.char(position) == b"<":
            position = page.next(page.angle(position, len(code)))
        if bytes(code[position : position + 2]) != b"::":
            break
        position += 2
        if _TEMPLATE_WORD.match(code, position):
            position = page.next(position) + 8
    if page.char(position) in (b"{", b"("):
        page.blank(match.start(1), match.end(1))


def _default_braces(page: Page, match: re.Match[bytes]) -> None:
    start = match.start(1)
    close = page.close(start)
    if page.char(page.enclosing(start)) == b"(" and close > 0 and page.char(page.next(close + 1)) in (b",", b")"):
        page.blank(start, close + 1)
        page.put(start, b"0")


def _blank_after_string(page: Page, match: re.Match[bytes]) -> None:
    """`"a" MACRO "b"`, `"a" MACRO(x)` and two literals with suffixes."""
    before = page.previous_word(page.previous(match.start()))
    word, after = match[1], page.next(match.end())
    if before in (b"extern", b"operator") or word in KEYWORDS:
        return
    end = match.end()
    if page.char(after) == b"(":
        end = page.called_end(end)
    if page.char(page.next(end)) in (b'"', b",", b")", b";") and (word.isupper() or page.char(page.next(end)) == b'"'):
        page.blank(match.start(1), end)


def _call_decltype(page: Page, match: re.Match[bytes]) -> None:
    """`decltype(x){}` is a value: make it a call of something unknown."""
    before = page.previous(match.start())
    if page.code[before - 1 : before + 1] == b"->":
        return
    close = page.close(match.end() - 1)
    opening = page.next(close + 1)
    end = page.close(opening) if close > 0 and page.char(opening) == b"{" else -1
    if end > 0:
        page.put(match.start(), b"declty_e")
        page.put(opening, b"(")
        page.put(end, b")")


def _name_unsigned(page: Page, match: re.Match[bytes]) -> None:
    page.put(match.start(1), b"uint32_t")


def _name_operator(page: Page, match: re.Match[bytes]) -> None:
    page.put(match.start(1), _NO_WORD.sub(b"_", match[1]))


def _assign_reference(page: Page, match: re.Match[bytes]) -> None:
    """`T& r(a ? b : c);` reads as a function."""
    opening = match.start(1)
    close = page.close(opening)
    if close > 0 and page.char(page.next(close + 1)) == b";":
        page.put(opening, b"=")
        page.put(close, b" ")


def _close_templates(page: Page, match: re.Match[bytes]) -> None:
    """Three template argument lists that end together: one of them goes, so that this is no launch."""
    code, position = page.code, match.start()
    opening = code.rfind(b"<", 0, position)
    if opening < 1 or code[opening - 1] == 60 or page.char(page.next(match.end())) == b"(":
        return
    if not _SIMPLE_ARGUMENTS.fullmatch(code, opening + 1, position):
        return
    page.blank(opening, position + 1)


def _simplify_return_type(page: Page, match: re.Match[bytes]) -> None:
    """`std::pair<A<B<c>>, A<B<c>>> f(` at file scope reads as comparisons: drop the template arguments."""
    _simplify(page, match.start(1), _FUNCTION_HEAD)


def _simplify_first_parameter(page: Page, match: re.Match[bytes]) -> None:
    """`A::A(std::vector<B<c>> x, int y) : m(x) {}` reads as a call."""
    if page.previous_word(match.start() - 1) == match[1]:
        _simplify(page, match.start(2), _ANYTHING)


def _simplify(page: Page, start: int, follows: re.Pattern[bytes]) -> None:
    end = page.angle(start, len(page.code))
    if page.code.count(b"<", start, end) > 1 and follows.match(page.code, end):
        page.blank(start, end)


def _name_braces(page: Page, match: re.Match[bytes]) -> None:
    """`k<<<n, {x, y, 1}>>>()`: braces want a type before them."""
    for brace in re.compile(rb"[,<]([ \t]*)(\{)").finditer(page.code, match.start(), match.end(1)):
        close = page.close(brace.start(2))
        if brace[1]:
            page.put(brace.start(2) - 1, b"_")
        elif close > 0:
            page.put(brace.start(2), b"(")
            page.put(close, b")")


def _name_parameter(page: Page, match: re.Match[bytes]) -> None:
    page.put(match.start(1), b"_")


class Gap(NamedTuple):
    """A construct that the grammar lacks.

    pattern   group 1 is what changes
    edit      what to do with a match
    before    characters that may stand before it (None: any)
    lossy     done near errors only
    """

    pattern: re.Pattern[bytes]
    edit: Edit
    before: frozenset[bytes] | None = None
    lossy: bool = False


def _gap(
    pattern: bytes,
    edit: Edit,
    before: frozenset[bytes] | None = None,
    lossy: bool = False,
) -> Gap:
    r"""A gap; `\b` before a word is checked after it, so that the search can look for the literal."""
    return Gap(re.compile(re.sub(rb"\\b(\(?)(\w+)(\)?)", rb"\1\2(?<!\\w\2)(?!\\w)\3", pattern)), edit, before, lossy)


def _characters(text: bytes) -> frozenset[bytes]:
    return frozenset(bytes([byte]) for byte in text)


_IN_VALUE = _characters(b"=({,?:&|+-*/%!<>n")
_AFTER_STATEMENT = _characters(b";{}") | {b""}
_AFTER_DOT = _characters(b".>")
_IN_DECLARATION = WORD_CHARS | _characters(b">&*")

_GAPS = (
    _gap(rb"\b(operator\s*\(\s*\)(?:\s*<[^;{}()]*>)?)\s*\(", _name_operator, _IN_VALUE | _AFTER_STATEMENT),
    _gap(rb"\b(operator\s+[\w:]+)\s*\(", _name_operator, _AFTER_DOT),
    _gap(rb"\b(operator\s*[-+*/%]+)\s*\(", _name_operator, _AFTER_STATEMENT),
    _gap(rb"\boperator\s*\(\s*\)\s*(<[^(){};]*>)\s*\(", _blank_group),
    _gap(rb"\benum\s+(?:(?:class|struct)\s*)?(\[\[[^\[\]]*\]\])", _blank_group),
    _gap(rb"\benum\s*(:\s*[\w:\s]{1,80}?)\s*\{", _blank_group),
    _gap(rb"(,\s*(?:void|bool|int)\s*\(\s*\))\s*\)", _blank_group),
    _gap(rb"(:\s*\d+\s*,)", _blank_bitfield),
    _gap(rb",([ \t])\s*:\s*\d", _name_parameter),
    _gap(rb"=\s*[\w:]+\s*(\(\s*\*\s*\)\s*\([^(){};]*\))\s*[,>]", _blank_group),
    _gap(rb"[*&]\s*(\.\.\.)\s*[A-Za-z_]", _blank_group),
    _gap(rb"<<<([^;{}<]{0,200}\{[^;<]{0,200}?)>>>\s*\(", _name_braces),
    _gap(
        rb"(?:[;{}>])\s*(?:(?:static|inline|constexpr|virtual|__\w+__)\s+)*\w[\w:]*::\w+\s*(<)", _simplify_return_type, lossy=True
    ),
    _gap(rb"::(\w+)\s*\(\s*(?:const\s+)?[\w:]+\s*(<)", _simplify_first_parameter, lossy=True),
    _gap(rb"\)\s*:\s*((\w+)::)\2\s*[({]", _blank_group),
    _gap(rb"(?:PARAM|ARG)[A-Z]*\s*\)", _blank_parameters),
    _gap(rb"\b(template)\s+(?:class|struct|union)\b", _blank_instantiation),
    _gap(rb"\b(template)\s+\w+\s*\(", _blank_group, _AFTER_DOT),
    _gap(rb"\b(typename)\b", _blank_typename, _IN_VALUE),
    _gap(rb"\busing\s+(typename)\b", _blank_group),
    _gap(rb"=\s*(\{)", _default_braces),
    _gap(rb"\bnew\s+(const)\b", _blank_group),
    _gap(rb"\bnew\s+[\w:]+(?:<[^<>()]*>)?\s*(\*[\s*]*)\[", _blank_group),
    _gap(rb"[*&]([ \t])\s*=\s*(?:nullptr|NULL|0)\s*[,)>]", _name_parameter),
    _gap(rb'"[^"\w]*"\s*([A-Za-z_]\w*)', _blank_after_string),
    _gap(rb"\b(friend)\b", _blank_group, _IN_DECLARATION),
    _gap(rb"\bdecltype\s*\(", _call_decltype, _IN_VALUE),
    _gap(rb"\b(unsigned)\s*\(", _name_unsigned, _IN_VALUE),
    _gap(rb"\)\s*(=\s*(?:delete|default))\s*;", _blank_group),
    _gap(rb"&\s*\w+\s*(\()[^;{}()]*\?", _assign_reference, _IN_DECLARATION),
    _gap(rb">>>(?!>)", _close_templates, lossy=True),
)
