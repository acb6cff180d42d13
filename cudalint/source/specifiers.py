"""Specifiers, attributes, alignments and pragmas that the grammar lacks, and macros that stand for such things."""

from __future__ import annotations

import re
from collections.abc import Callable

from cudalint.source.code import BLANK, COMMENT, WORD
from cudalint.source.macros import (
    CALLED_SPECIFIERS,
    KEYWORDS,
    LAMBDA_MACRO,
    MACRO_NAME,
    VISIBLE,
    Evidence,
    Specifiers,
    substitute,
)
from cudalint.source.page import EXPRESSION_WORDS, WORD_CHARS, WORD_STARTS, Page

Handler = Callable[[bytes, int, int], None]

TYPE_WORDS = (
    rb"(?:const|volatile|unsigned|signed|short|long|int|char|bool|float|double|void|auto|wchar_t|char8_t|char16_t|char32_t"
    rb"|u?int(?:8|16|32|64|ptr)_t|s?size_t|ptrdiff_t|nullptr_t|max_align_t|charptr_t)"
)
_TYPE_WORD = re.compile(TYPE_WORDS + rb"|typename|class|struct|union|enum")
_ALIGNMENTS = (b"alignas", b"_Alignas", b"__align__")
_OPERATOR_HEAD = re.compile(rb"\boperator\s*(?:\(\s*\)|[^\w\s()]+)\s*\Z")
_AFTER_TYPE = frozenset((b"*", b"&", b">"))
_ODD_CONTINUATION = re.compile(rb"\\([ \t]+)(\r?\n)")
_LAMBDA_NEXT = re.compile(rb"[({]|mutable\b|->|noexcept\b|constexpr\b|__(?:device|host|forceinline|noinline)__|[A-Z]\w*")
TYPE_TAKERS = frozenset(b"typeid va_arg __builtin_va_arg __builtin_types_compatible_p".split())


class SpecifierStep:
    """One pass over the words of a file.

    macro_words  (name, start, end) of the other macros it met
    """

    def __init__(self, page: Page, evidence: Evidence) -> None:
        self.page = page
        self.evidence = evidence
        self.macro_words: list[tuple[bytes, int, int]] = []

    def run(self) -> None:
        """Overwrite them all."""
        code = self.page.code
        handlers: dict[bytes, Handler] = dict(self._fixed())
        for word in set(WORD.findall(code)):
            if word not in handlers:
                handler = self._handler(word)
                if handler is not None:
                    handlers[word] = handler
        for match in WORD.finditer(code):
            handler = handlers.get(match[0])
            if handler is not None:
                handler(match[0], match.start(), match.end())
        self._mask_directives()

    def _handler(self, word: bytes) -> Handler | None:
        if word in TYPE_TAKERS:
            return self._remember
        if word in KEYWORDS:
            return None
        if self.evidence.specifiers(word) is not None:
            return self._mask_macro
        if LAMBDA_MACRO.match(word):
            return self._mask_lambda_macro
        return self._remember if MACRO_NAME.match(word) or self.evidence.text(word) is not None else None

    def _remember(self, word: bytes, start: int, end: int) -> None:
        self.macro_words.append((word, start, end))

    def _fixed(self) -> dict[bytes, Handler]:
        called = self._mask_called
        return {
            b"__align__": self._mask_align,
            b"__attribute__": self._mask_attribute,
            b"__attribute": self._mask_attribute,
            b"__cluster_dims__": called,
            b"__maxnreg__": called,
            b"__block_size__": called,
            b"__annotate__": called,
            b"__nv_pure__": called,
            b"__launch_bounds__": self._mask_launch_bounds,
            b"_Pragma": self._mask_pragma,
            b"__pragma": self._mask_pragma,
            b"__restrict": self._mask_restrict,
            b"restrict": self._mask_restrict,
            b"__device__": self._mask_misplaced,
            b"__host__": self._mask_misplaced,
            b"__forceinline__": self._mask_misplaced,
            b"__noinline__": self._mask_misplaced,
        }

    def _mask_align(self, word: bytes, start: int, end: int) -> None:
        if self.page.char(self.page.next(end)) == b"(":
            self.page.put(start, b"alignas  ")

    def _mask_called(self, word: bytes, start: int, end: int) -> None:
        stop = self.page.called_end(end)
        self.page.note(start, word, self.page.argument_text(end, stop))
        self.page.blank(start, stop)

    def _mask_attribute(self, word: bytes, start: int, end: int) -> None:
        """Attributes parse before a declarator and after a struct, not between a declarator and what follows it."""
        stop = self.page.called_end(end)
        before, after = self.page.char(self.page.previous(start)), self.page.char(self.page.next(stop))
        if (after in (b";", b"=", b",") and before != b"}") or before == b"=":
            self.page.note(start, word, self.page.argument_text(end, stop))
            self.page.blank(start, stop)

    def _mask_launch_bounds(self, word: bytes, start: int, end: int) -> None:
        stop = self.page.called_end(end)
        parts = self.page.arguments(self.page.next(end) + 1, stop - 1) if stop > end else []
        if len(parts) > 2:
            self.page.note(parts[2][0], b"max_blocks_per_cluster", bytes(self.page.data[parts[2][0] : parts[2][1]]))
            self.page.blank(parts[2][0] - 1, stop - 1)

    def _mask_pragma(self, word: bytes, start: int, end: int) -> None:
        stop = self.page.called_end(end)
        if stop > end:
            self.page.note(start, b"pragma", self.page.argument_text(end, stop).strip().strip(b'"'))
            self.page.blank(start, stop)

    def _mask_restrict(self, word: bytes, start: int, end: int) -> None:
        before = self.page.char(self.page.previous(start))
        if before in (b"*", b"&") and self.page.char(self.page.enclosing(start)) == b"(":
            return  # a parameter: the grammar takes it
        if (before in WORD_CHARS or before in _AFTER_TYPE) and self.page.char(self.page.next(end)) in WORD_STARTS:
            self.page.note(start, b"__restrict__")
            self.page.blank(start, end)

    def _in_lambda(self, start: int, end: int) -> bool:
        """Whether specifiers at `start` stand between the captures and the parameters of a lambda."""
        before = self.page.previous(start)
        if self.page.char(before) != b"]" or self.page.char(before - 1) == b"]":
            return False
        return _LAMBDA_NEXT.match(self.page.code, self.page.next(end)) is not None

    def _mask_misplaced(self, word: bytes, start: int, end: int) -> None:
        if (
            self.page.char(self.page.next(end)) == b"("
            or self.page.char(self.page.previous(start)) in (b"*", b"&")
            or self._in_lambda(start, end)
        ):
            self.page.note(start, word)
            self.page.blank(start, end)

    def _mask_lambda_macro(self, word: bytes, start: int, end: int) -> None:
        if (
            self.page.char(self.page.next(end)) == b"("
            and self.page.char(self.page.previous(start)) in (b",", b"(", b"=")
            and len(word) >= 3
        ):
            self.page.note(start, word)
            self.page.put(start, b"[=]".ljust(end - start))

    def _mask_macro(self, word: bytes, start: int, end: int) -> None:
        meaning = self.evidence.specifiers(word)
        assert meaning is not None
        if meaning.names:
            self._mask_naming(meaning, start, end)
            return
        stop = end
        if self.page.char(self.page.previous(start)) != b"]" and (meaning.params is not None or self._takes_arguments(meaning)):
            stop = self.page.called_end(end)
            if stop == end and meaning.params is not None:
                return
        if not self._is_specifier_place(start, stop, certain=bool(meaning.tokens) or word in self.evidence.own):
            return
        in_lambda = self._in_lambda(start, stop)
        arguments = self.page.argument_text(end, stop)
        for name, argument in meaning.tokens:
            self.page.note(start, name, substitute(argument, meaning.params, arguments))
        aligned = len(meaning.tokens) == 1 and meaning.tokens[0][0] in _ALIGNMENTS and not in_lambda
        if aligned and meaning.params is not None and end - start >= 7 and meaning.tokens[0][1].strip() in meaning.params:
            self.page.put(start, b"alignas".ljust(end - start))
            return
        visible = next((name for name in VISIBLE if any(token == name for token, _ in meaning.tokens)), None)
        self.page.blank(start, stop)
        if visible is not None and not in_lambda and len(visible) <= end - start:
            self.page.put(start, visible)

    def _mask_naming(self, meaning: Specifiers, start: int, end: int) -> None:
        """`KERNEL(name)(int* a) {` and `KERNEL(name, int* a) {`: the header of a kernel within a macro."""
        page = self.page
        stop = page.called_end(end)
        parts = page.arguments(page.next(end) + 1, stop - 1) if stop > end else []
        if not parts or page.char(page.next(stop)) != (b"(" if meaning.names == "name" else b"{"):
            return
        name_start, name_end = parts[0]
        if meaning.names == "all" and len(parts) == 1:
            page.put(name_start - 1, bytes(page.code[name_start:name_end]) + b"()")
            name_start -= 1
        else:
            page.put(name_end, b" " if meaning.names == "name" else b"(")
        page.blank(start, name_start)
        for name, argument in meaning.tokens:
            page.note(start, name, argument)
        if name_start - start > len(VISIBLE[0]):
            page.put(start, VISIBLE[0])

    @staticmethod
    def _takes_arguments(meaning: Specifiers) -> bool:
        return bool(meaning.tokens) and all(name in CALLED_SPECIFIERS for name, _ in meaning.tokens)

    def _is_specifier_place(self, start: int, stop: int, certain: bool) -> bool:
        """A specifier is followed by what it specifies, never by an operator: this is what keeps values apart."""
        after = self.page.next(stop)
        follows = self.page.char(after)
        before = self.page.char(self.page.previous(start))
        if not follows:
            return True
        if follows in WORD_STARTS or follows == b"~" or bytes(self.page.code[after : after + 2]) in (b"::", b"[["):
            return True
        if before == b"]":
            return self._in_lambda(start, stop)
        if follows == b"{":
            return self.page.previous_word(self.page.previous(start)) in (b"struct", b"class", b"union") or before == b")"
        if follows == b"(":
            return _OPERATOR_HEAD.search(self.page.code, max(0, start - 80), start) is not None
        if before in (b"*", b"&"):
            return follows in (b",", b")", b"=", b";", b"[")
        if before == b")":
            return follows in (b"{", b";", b":", b",", b"=")
        if certain and before in WORD_CHARS and follows in (b";", b"=", b",", b")"):
            word = self.page.previous_word(self.page.previous(start))
            return word not in EXPRESSION_WORDS and _TYPE_WORD.fullmatch(word) is None
        return follows == b'"' and before in (b";", b"}", b"{")

    def _mask_directives(self) -> None:
        """A pragma line parses between statements only, a lone `#` nowhere, comments and odd continuations in none."""
        for start, end, word in self.page.view.directives:
            if not word or (word == b"pragma" and self.page.char(self.page.previous(start)) not in (b"", b";", b"{", b"}", b":")):
                self.page.buffer[start:end] = self.page.buffer[start:end].translate(BLANK)
                continue
            line = bytes(self.page.buffer[start:end])
            if b"/*" in line or b"\\ " in line or b"\\\t" in line:
                self.page.buffer[start:end] = _ODD_CONTINUATION.sub(_swap, COMMENT.sub(_blank_continued, line))


def _blank_continued(match: re.Match[bytes]) -> bytes:
    """A comment in a directive as spaces that still continue the line."""
    lines = match[0].split(b"\n")
    kept = []
    for line in lines[:-1]:
        body = line.rstrip(b"\r")
        ending = line[len(body) :]
        kept.append((b" " * (len(body) - 1) + b"\\" if body else b"") + ending)
    return b"\n".join([*kept, b" " * len(lines[-1])])


def _swap(match: re.Match[bytes]) -> bytes:
    return match[1] + b"\\" + match[2]
