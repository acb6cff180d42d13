"""Uses of macros that are no C++: statements without a semicolon, blocks and types as arguments, loops."""

from __future__ import annotations

import re

from cudalint.source.code import WORD
from cudalint.source.macros import MACRO_NAME, Evidence
from cudalint.source.page import EXPRESSION_WORDS, REACH, WORD_CHARS, WORD_STARTS, Page
from cudalint.source.specifiers import TYPE_TAKERS, TYPE_WORDS

_TYPE_ARGUMENT = re.compile(
    rb"\s*(%(word)b\b(?:\s+%(word)b\b|\s*[*&])*|(?:const\s+)?[A-Za-z_][\w:]*(?:\s+const)?\s*[*&][\s*&]*)\Z"
    % {b"word": TYPE_WORDS}
)
_OPERATOR_ARGUMENT = re.compile(rb"\s*([-+*/%<>=!&|^~]+)\Z")
# of text with single spaces: specifiers, type, template arguments, more of the type, pointers, name, array lengths, default
_PARAMETER = re.compile(
    rb"(?:(?:const|volatile|unsigned|signed|struct|typename) )*[A-Za-z_][\w:]*(?: ?<[^()=]*>)?(?:::\w+)*"
    rb"(?: (?:const|int|long|char|short)\b)* ?(?:[*&] ?)*(?:(?:const|__restrict__|\.\.\.) ?)*(?:[A-Za-z_]\w*)? ?(?:\[[^\]]*\] ?)*"
    rb"(?:=[^=].*)?|\.\.\."
)
_LONGEST_PARAMETER = 500
_STATEMENT_START = re.compile(rb"\s*(?:using|typedef|return|static|constexpr|if|for|while|do|switch|throw|const\s+auto|auto)\b")
_AFTER_TEMPLATE_PARAMETER = (b">", b",", b"*", b"=")
_STATEMENT_MARK = re.compile(rb"[;{}]")
_NO_WORD = re.compile(rb"[^\w\n\r]")
_MACRO_CALL = re.compile(rb"\s*[A-Z_][A-Z0-9_]{2,}\s*\(")
_LAST_WORD = re.compile(rb"(?:^|\s)([A-Za-z_]\w*)\Z")


class MacroUseStep:
    """Goes through the macros of a file; `words` are (name, start, end) in order."""

    def __init__(self, page: Page, evidence: Evidence, words: list[tuple[bytes, int, int]]) -> None:
        self.page = page
        self.evidence = evidence
        self.words = words

    def run(self) -> None:
        """Rewrite calls, then macros without arguments."""
        self.page.forget_brackets()
        self._macro_calls()
        self._bare_macros()

    def _macro_calls(self) -> None:
        for name, start, end in self.words:
            opening = self.page.next(end)
            if self.page.char(opening) == b"(" and self.page.code[start:end] == name:
                close = self.page.close(opening)
                if close > 0 and self.page.char(close) == b")":
                    self._macro_call(name, start, opening, close)

    def _macro_call(self, name: bytes, start: int, opening: int, close: int) -> None:
        before = self.page.previous(start)
        head = self.page.char(before)
        word = self.page.previous_word(before) if head in WORD_CHARS else b""
        starts_statement = head in (b"", b";", b"{", b"}", b":", b")") or word in (b"else", b"do")
        parts = self.page.arguments(opening + 1, close)
        after = self.page.next(close + 1)
        follows = self.page.char(after)
        if starts_statement and self._block_macro(name, start, opening, close, parts):
            return
        if word and word not in EXPRESSION_WORDS and name not in TYPE_TAKERS and not starts_statement:
            return
        if head in (b"<", b",") and follows in _AFTER_TEMPLATE_PARAMETER and self._in_template_head(start):
            self.page.note(start, b"macro:" + name, bytes(self.page.data[opening + 1 : close]))
            self.page.blank(start, close + 1)
            self.page.put(start, b"int")
            return
        if follows == b"{" and starts_statement:
            if not all(self._is_parameter(*part) for part in parts):
                self.page.note(start, b"macro:" + name, bytes(self.page.data[opening + 1 : close]))
                self.page.blank(opening + 1, close)
            return
        if follows == b";" and starts_statement and self.page.scope(start) == "class":
            if not all(self._is_parameter(*part) for part in parts):
                self.page.note(start, b"macro:" + name, bytes(self.page.data[opening + 1 : close]))
                self.page.blank(start, close + 1)
            return
        self._name_types(parts)
        self._fill_empty(opening, close, parts)
        if starts_statement and (follows in WORD_STARTS or follows == b"}" or not follows):
            self._end_statement(name, start, opening, close, after)
        elif head == b">" and follows in WORD_STARTS:
            self.page.note(start, b"macro:" + name, bytes(self.page.data[opening + 1 : close]))
            self.page.blank(start, close + 1)

    def _is_parameter(self, begin: int, end: int) -> bool:
        """Whether an argument reads as the declaration of a parameter."""
        text = b" ".join(self.page.code[begin:end].split())
        return len(text) <= _LONGEST_PARAMETER and _PARAMETER.fullmatch(text) is not None

    def _in_template_head(self, position: int) -> bool:
        begin = self.page.code.rfind(b"template", max(position - REACH, 0), position)
        return begin >= 0 and _STATEMENT_MARK.search(self.page.code, begin, position) is None and self.page.scope(position) != "("

    def _name_types(self, parts: list[tuple[int, int]]) -> None:
        """A type as an argument becomes an identifier of the same length."""
        for begin, end in parts:
            last = self.page.previous(end) + 1
            if last <= begin:
                continue
            match = _TYPE_ARGUMENT.match(self.page.code, begin, last) or _OPERATOR_ARGUMENT.match(self.page.code, begin, last)
            if match is not None:
                self.page.put(match.start(1), _NO_WORD.sub(b"_", match[1][:-1]) + b"_")

    def _fill_empty(self, opening: int, close: int, parts: list[tuple[int, int]]) -> None:
        if len(parts) < 2:
            return
        for begin, end in parts:
            if not bytes(self.page.code[begin:end]).strip():
                if end > begin and self.page.code[begin] in b" \t":
                    self.page.put(begin, b"_")
                elif end < close:
                    self.page.put(end, b" ")
                else:
                    self.page.put(begin - 1, b" ")

    def _block_macro(self, name: bytes, start: int, opening: int, close: int, parts: list[tuple[int, int]]) -> bool:
        """`DISPATCH(type, "name", using T = …; f<T>(x);)` becomes a block."""
        first = next((part for part in parts if self._is_statement(*part)), None)
        if first is None:
            return False
        self.page.note(start, b"macro:" + name, bytes(self.page.data[opening + 1 : first[0] - 1]))
        after = self.page.next(close + 1)
        if self.page.scope(start) != "block":
            self.page.blank(start, close + 1)
            return True
        if self.page.char(self.page.next(first[0])) == b"{":
            keep = [part for part in parts if self.page.char(self.page.next(part[0])) == b"{"]
            edges = [start, *(edge for part in keep for edge in part), close + 1]
            for left, right in zip(edges[0::2], edges[1::2], strict=True):
                self.page.blank(left, right)
        else:
            ends = self._block_end(close, after)
            if ends is None:
                return False
            self.page.blank(start, first[0] - 1)
            self.page.put(first[0] - 1, b"{")
            for place, character in ends:
                self.page.put(place, character)
        if self.page.char(after) == b";":
            self.page.put(after, b" ")
        return True

    def _block_end(self, close: int, after: int) -> tuple[tuple[int, bytes], ...] | None:
        """Where `;` (if the last statement lacks it) and `}` go for the `)` at `close`; None if there is no room."""
        last = self.page.previous(close)
        if self.page.char(last) in (b";", b"}"):
            return ((close, b"}"),)
        room = self.page.free_blank(last + 1, close)
        if room >= 0:
            return (room, b";"), (close, b"}")
        place = after if self.page.char(after) == b";" else self.page.free_blank(close + 1, after)
        return ((close, b";"), (place, b"}")) if place >= 0 else None

    def _is_statement(self, begin: int, end: int, depth: int = 4) -> bool:
        """Whether an argument is statements: it holds a semicolon, begins like one, or is a macro whose argument is one."""
        position = self.page.next(begin)
        if position < end and self.page.code[position] == 123:
            close = self.page.close(position)
            return 0 < close < end and self.page.next(close + 1) >= end and b";" in self.page.code[position:close]
        for match in re.compile(rb"[()\[\]{};]").finditer(self.page.code, begin, end):
            if match.start() < position:
                continue
            if match[0] == b";":
                return True
            if match[0] in b"([{":
                close = self.page.close(match.start())
                position = close if match.start() < close < end else position
        if _STATEMENT_START.match(self.page.code, begin, end) is not None:
            return True
        inner = _MACRO_CALL.match(self.page.code, begin, end) if depth else None
        close = self.page.close(inner.end() - 1) if inner is not None else -1
        if inner is None or not 0 < close < end or self.page.next(close + 1) < end:
            return False
        return any(self._is_statement(*part, depth - 1) for part in self.page.arguments(inner.end(), close))

    def _end_statement(self, name: bytes, start: int, opening: int, close: int, after: int) -> None:
        """Give a statement macro its semicolon, on a blank."""
        if self.page.char(after) in WORD_STARTS and b"\n" not in self.page.code[close:after]:
            word = WORD.match(self.page.code, after)
            if word is not None and word[0] in (b"const", b"noexcept", b"override", b"final", b"requires", b"volatile"):
                return
        scope = self.page.scope(start)
        if scope in ("enum", "values", "("):
            return
        place = self.page.free_blank(close + 1, after)
        if place >= 0:
            self.page.put(place, b";")
        elif self.page.code[close - 1] in b" \t":
            self.page.put(close - 1, b");")
        elif scope != "block":
            self.page.note(start, b"macro:" + name, bytes(self.page.data[opening + 1 : close]))
            self.page.blank(start, close + 1)
        else:
            inner = bytes(self.page.data[opening + 1 : close])
            self.page.note(start, b"macro:" + name, inner)
            self.page.put(opening, b"=" if inner.strip() else b" ")
            self.page.put(close, b";")

    def _bare_macros(self) -> None:
        """A macro without arguments that stands for statements, alone on its line or in a row of them."""
        for name, start, end in self.words:
            if self.page.code[start:end] != name:
                continue
            after = self.page.next(end)
            if after < len(self.page.code) and self.page.char(after) not in WORD_STARTS and self.page.char(after) != b"}":
                continue
            if self.page.char(self.page.previous(start)) not in (b"", b";", b"{", b"}", b":"):
                continue
            line = self.page.code.rfind(b"\n", 0, start) + 1
            alone = b"\n" in self.page.code[end:after] and not self.page.code[line:start].strip(b" \t;")
            if not (alone and MACRO_NAME.match(name)) and not self._is_statement_macro(name):
                continue
            if self.page.scope(start) in ("enum", "values", "("):
                continue
            place = self.page.free_blank(end, after)
            if place >= 0:
                self.page.put(place, b";")
            else:
                self.page.note(start, b"macro:" + name)
                self.page.blank(start, end)

    def _is_statement_macro(self, name: bytes, depth: int = 8) -> bool:
        text = self.evidence.text(name)
        if text is None or text.startswith(b"(") or not depth:
            return False
        body = text.rstrip()
        if body.endswith((b";", b"}")):
            return True
        last = _LAST_WORD.search(body)
        return last is not None and last[1] != name and self._is_statement_macro(last[1], depth - 1)
