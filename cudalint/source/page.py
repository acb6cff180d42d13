"""The sheet that the masking pass writes on: same length, same lines, code and text side by side."""

from __future__ import annotations

import re
from bisect import bisect_left

from cudalint.source.code import BLANK, Brackets, View, code_view, skip_space

WORD_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$" + bytes(range(128, 256)))
WORD_CHARS = frozenset(bytes([byte]) for byte in WORD_BYTES)
WORD_STARTS = frozenset(bytes([byte]) for byte in WORD_BYTES if byte not in b"0123456789")
EXPRESSION_WORDS = frozenset((b"return", b"case", b"else", b"do", b"co_return", b"throw", b"sizeof", b"and", b"or", b"not"))

REACH = 2000
"""How far template arguments may stretch and a scope's head is looked for, in bytes: keeps the work linear."""

_DEEPEST = 32
_SPLITTER = re.compile(rb"[()\[\]{},;]|<<<|>>>|[<>]")
_SCOPE_HEAD = re.compile(rb"\b(namespace|enum|class|struct|union)\b[^()=]*\Z|\bextern\s*\"\s*\"\s*\Z")
_BLOCK_WORDS = frozenset((b"else", b"do", b"try", b"const", b"noexcept", b"override", b"final", b"mutable"))
_SPACE = re.compile(rb"[ \t]")


class Page:
    """The text of one file on its way to something the grammar can read.

    data        the text as it came; `buffer` what to parse now
    code        `buffer` without comments, literals and directives
    attributes  {offset: (name, argument text)} of overwritten things that still matter
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.buffer = bytearray(data.replace(b"\0", b" "))
        self.attributes: dict[int, tuple[str, str]] = {}
        self.view: View = code_view(bytes(self.buffer))
        self.code = bytearray(self.view.code)
        self.directive_starts = [directive.start for directive in self.view.directives]
        self._brackets: Brackets | None = None

    # -- writing

    def put(self, start: int, replacement: bytes) -> None:
        end = start + len(replacement)
        self.buffer[start:end] = replacement
        self.code[start:end] = replacement

    def blank(self, start: int, end: int) -> None:
        self.buffer[start:end] = self.buffer[start:end].translate(BLANK)
        self.code[start:end] = self.code[start:end].translate(BLANK)

    def note(self, offset: int, name: bytes, argument: bytes = b"") -> None:
        while offset in self.attributes:
            offset += 1
        self.attributes[offset] = (name.decode("utf-8", "replace"), argument.strip().decode("utf-8", "replace"))

    def forget_brackets(self) -> None:
        """Brackets have been written or blanked: match them anew when asked."""
        self._brackets = None

    # -- reading

    def next(self, position: int) -> int:
        """The first offset from `position` on that is no space."""
        return skip_space(self.code, position)

    def char(self, position: int) -> bytes:
        return bytes(self.code[position : position + 1])

    def previous(self, position: int) -> int:
        """The last offset before `position` that is no space, -1 if there is none."""
        code = self.code
        if position > 0 and code[position - 1] > 32:
            return position - 1
        step = 64
        while position > 0:
            start = max(position - step, 0)
            length = len(code[start:position].rstrip())
            if length:
                return start + length - 1
            position, step = start, step * 2
        return -1

    def previous_word(self, position: int) -> bytes:
        """The word that ends at `position` (inclusive)."""
        code, start = self.code, position
        while start >= 0 and (code[start] in WORD_BYTES):
            start -= 1
        return bytes(code[start + 1 : position + 1])

    def close(self, position: int) -> int:
        """The bracket that closes the one at `position`, -1 if none does."""
        if self._brackets is None:
            self._brackets = Brackets(self.code)
        return self._brackets.pairs.get(position, -1)

    def enclosing(self, position: int) -> int:
        if self._brackets is None:
            self._brackets = Brackets(self.code)
        return self._brackets.enclosing(position)

    def arguments(self, start: int, end: int) -> list[tuple[int, int]]:
        """Ranges between the commas of a bracketed list; commas in nested brackets and template arguments do not count."""
        parts, begin, position = [], start, start
        code = self.code
        while True:
            match = _SPLITTER.search(code, position, end)
            if match is None:
                break
            position = match.end()
            found = match[0]
            if found == b",":
                parts.append((begin, match.start()))
                begin = position
            elif found in b"([{":
                close = self.close(match.start())
                position = close + 1 if match.start() < close < end else position
            elif found == b"<<<":
                close = code.find(b">>>", position, end)
                position = close + 3 if close >= 0 else position
            elif found == b"<":
                position = self.angle(match.start(), end)
        parts.append((begin, end))
        return parts

    def angle(self, start: int, end: int) -> int:
        """Position after a template argument list that starts at `start`; after the `<` if it is a comparison."""
        code, depth, position = self.code, 0, start
        end = min(end, start + REACH)
        while True:
            match = _SPLITTER.search(code, position, end)
            if match is None or match[0] in (b";", b")", b"]", b"}", b"{"):
                return start + 1
            position = match.end()
            found = match[0]
            if found in (b"(", b"["):
                close = self.close(match.start())
                if not match.start() < close < end:
                    return start + 1
                position = close + 1
            elif found in (b"<", b"<<<"):
                depth += len(found)
                if depth > _DEEPEST:
                    return start + 1
            elif found in (b">", b">>>"):
                if code[match.start() - 1] == 45:  # ->
                    continue
                depth -= len(found)
                if depth <= 0:
                    return position

    def called_end(self, end: int) -> int:
        """End of the argument list that follows, or `end`."""
        opening = self.next(end)
        close = self.close(opening) if self.char(opening) == b"(" else -1
        return close + 1 if close >= 0 else end

    def argument_text(self, end: int, stop: int) -> bytes:
        return bytes(self.data[self.next(end) + 1 : stop - 1]) if stop > end else b""

    def scope(self, position: int) -> str:
        """What the innermost open bracket holds: "namespace", "class", "block", "enum", "values"; "(" for other brackets."""
        while True:
            opening = self.enclosing(position)
            if opening < 0:
                return "namespace"
            if self.code[opening] in b"([":
                return "("
            if self.code[opening] != 123:
                return "block"  # the bracket of a macro that has become one
            before = self.previous(opening)
            head = self.char(before)
            if head != b"{":
                break
            position = opening
        if head in (b")", b";", b"}", b":", b"]", b""):
            return "block"
        if head not in WORD_CHARS and head not in (b">", b'"'):
            return "values"
        low = max(opening - REACH, 0)
        begin = max(self.code.rfind(mark, low, opening) for mark in (b";", b"{", b"}"))
        match = _SCOPE_HEAD.search(self.code, max(begin + 1, low), opening)
        if match is None:
            return "block" if self.previous_word(before) in _BLOCK_WORDS else "values"
        return {None: "namespace", b"namespace": "namespace", b"enum": "enum"}.get(match[1], "class")

    def free_blank(self, start: int, end: int) -> int:
        """A space or tab between `start` and `end`, before any directive; -1 if there is none."""
        index = bisect_left(self.directive_starts, start)
        if index < len(self.directive_starts) and self.directive_starts[index] < end:
            end = max(self.buffer.rfind(b"\n", 0, self.directive_starts[index]), start)
        match = _SPACE.search(self.buffer, start, end)
        return match.start() if match else -1
