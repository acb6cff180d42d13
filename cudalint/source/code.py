"""The lexical layer of C++: code without comments, literals and directives, its brackets and its `#if` groups."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

BLANK = bytes(c if c in b"\n\r" else 32 for c in range(256))
"""Translation table: everything but line ends becomes a space."""

CONTINUATION = re.compile(rb"\\[ \t]*\r?\n")
COMMENT = re.compile(rb"/\*.*?\*/|//[^\n]*", re.DOTALL)
WORD = re.compile(rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*")
_DEEPEST = 64
_NO_SPACE = re.compile(rb"[^ \t\r\n\f\v]")
BRACKET = re.compile(rb"[()\[\]{}]")

_LINE_COMMENT = rb"//(?:[^\\\n]+|\\(?:\r\n|.)?)*"
_BLOCK_COMMENT = rb"/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/)?"
_NOT_CODE = re.compile(
    b"|".join(
        (
            _LINE_COMMENT,
            _BLOCK_COMMENT,
            rb'"(?:[^"\\\n]+|\\(?:\r\n|.)?)*"?',
            # a quote within a number is a digit separator
            rb"'(?:(?<=\W')|(?<=[LuU]')|(?<=u8')|(?<=case')|(?<=return'))(?:[^'\\\n]|\\.)+'",
            rb'R(?:(?<=\WR)|(?<=[LuU]R)|(?<=u8R))"(?P<mark>[^\s()\\]{0,16})\(.*?(?:\)(?P=mark)"|\Z)',
            rb'#(?:[^\\\n/"]+|\\(?:[ \t]*\r?\n|.)?|' + _BLOCK_COMMENT + b"|" + _LINE_COMMENT + rb'|/|"(?:[^"\\\n]+|\\.)*"?)*',
        )
    ),
    re.DOTALL,
)
_DIRECTIVE = re.compile(rb"#[ \t]*(\w*)")


class Directive(NamedTuple):
    """A preprocessor line: from `#` to the line end that ends it."""

    start: int
    end: int
    word: bytes


class View(NamedTuple):
    """A file without its comments, literals and directives.

    code        blanked, same length; quotes of string literals are kept
    comments    ranges; `directives` in order
    """

    code: bytes
    comments: list[tuple[int, int]]
    directives: list[Directive]


def code_view(data: bytes) -> View:
    """Blank everything that is no code: comments, inside of literals, directives."""
    comments: list[tuple[int, int]] = []
    directives: list[Directive] = []

    def blank(match: re.Match[bytes]) -> bytes:
        found = match[0]
        first = found[0]
        if first == 34:  # "
            inner = found[1:-1] if found[-1] == 34 and len(found) > 1 else found[1:]
            return b'"' + inner.translate(BLANK) + (b'"' if len(inner) + 2 == len(found) else b"")
        if first == 82:  # R
            closed = found.endswith(b'"') and len(found) > 4
            return b' "' + (found[2:-1].translate(BLANK) + b'"' if closed else found[2:].translate(BLANK))
        if first == 35:  # hash
            word = _DIRECTIVE.match(found)
            directives.append(Directive(match.start(), match.end(), word[1] if word else b""))
        elif first == 47:  # slash
            comments.append(match.span())
        else:
            return b"0" + found[1:].translate(BLANK)
        return found.translate(BLANK)

    return View(_NOT_CODE.sub(blank, data), comments, directives)


def skip_space(text: bytes | bytearray, position: int) -> int:
    """The first offset from `position` on that holds no white space; the length of the text if there is none."""
    if position < len(text) and text[position] > 32:
        return position
    match = _NO_SPACE.search(text, position)
    return match.start() if match is not None else len(text)


def closing(text: bytes | bytearray, start: int) -> int:
    """The bracket that closes the one at `start`; -1 if none does."""
    depth = 0
    for match in BRACKET.finditer(text, start):
        depth += 1 if match[0] in b"([{" else -1
        if depth == 0:
            return match.start()
    return -1


class Brackets:
    """Which bracket closes which, tolerant of code that does not balance."""

    def __init__(self, code: bytes | bytearray) -> None:
        self.pairs: dict[int, int] = {}
        self._events: list[int] = []
        self._tops: list[int] = []
        stack: list[tuple[int, int]] = []
        for match in BRACKET.finditer(code):
            position, kind = match.start(), code[match.start()]
            if kind in b"([{":
                stack.append((kind, position))
            else:
                self._close(stack, _OPENER[kind], position)
            self._events.append(position)
            self._tops.append(stack[-1][1] if stack else -1)

    def _close(self, stack: list[tuple[int, int]], opener: int, position: int) -> None:
        for depth in range(len(stack) - 1, -1, -1):
            kind, start = stack[depth]
            if kind == opener:
                self.pairs[start] = position
                del stack[depth:]
                return
            if kind == 123 or len(stack) - depth > 64:  # a brace is not closed by a parenthesis
                return

    def enclosing(self, position: int) -> int:
        """Offset of the innermost bracket open at `position`, -1 outside of all."""
        index = bisect_left(self._events, position)
        return self._tops[index - 1] if index else -1


_OPENER = {41: 40, 93: 91, 125: 123}


class Group(NamedTuple):
    """An `#if` … `#endif`: its directive lines, and the arms between them."""

    lines: list[Directive]
    arms: list[tuple[int, int]]


def groups(directives: list[Directive]) -> Iterator[Group]:
    """All complete `#if` groups, inner ones first; those nested absurdly deep are left out."""
    stack: list[list[Directive]] = []
    for directive in directives:
        if directive.word in (b"if", b"ifdef", b"ifndef"):
            stack.append([directive])
        elif not stack:
            continue
        elif directive.word in (b"elif", b"else", b"elifdef", b"elifndef"):
            stack[-1].append(directive)
        elif directive.word == b"endif":
            lines = [*stack.pop(), directive]
            if len(stack) < _DEEPEST:
                yield Group(lines, [(left.end, right.start) for left, right in pairwise(lines)])
