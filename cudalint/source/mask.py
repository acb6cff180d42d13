"""The masking pass: what plain grammar cannot read is overwritten by as many bytes that it can.

Every function keeps the length of the text and every line end, so byte offsets
stay true.  What is overwritten and matters to anyone later goes into
`Masker.attributes`.  Edits rest on evidence: first the `#define`s of the file,
then those of the project, then a short list of macros of well-known libraries.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import NamedTuple

from cudalint.source.code import BLANK, COMMENT, CONTINUATION, WORD, Brackets, Group, View, code_view, groups, skip_space
from cudalint.source.macros import (
    CALLED_SPECIFIERS,
    KEYWORDS,
    LAMBDA_MACRO,
    MACRO_NAME,
    VISIBLE,
    Evidence,
    Lookup,
    Specifiers,
    substitute,
)

Inactive = Callable[[bytes], "list[tuple[int, int]]"]
"""Byte ranges of the `#if` arms that are not compiled."""

_TYPE_WORDS = (
    rb"(?:const|volatile|unsigned|signed|short|long|int|char|bool|float|double|void|auto|wchar_t|char8_t|char16_t|char32_t"
    rb"|u?int(?:8|16|32|64|ptr)_t|s?size_t|ptrdiff_t|nullptr_t|max_align_t|charptr_t)"
)
_TYPE_ARGUMENT = re.compile(
    rb"\s*(" + _TYPE_WORDS + rb"\b(?:\s+" + _TYPE_WORDS + rb"\b|\s*[*&])*|(?:const\s+)?[A-Za-z_][\w:]*(?:\s+const)?\s*[*&][\s*&]*)\s*\Z"
)
_PARAMETER = re.compile(
    rb"\s*(?:(?:const|volatile|unsigned|signed|struct|typename)\s+)*[A-Za-z_][\w:]*(?:\s*<[^()=]*>)?(?:::\w+)*"
    rb"(?:\s+(?:const|int|long|char|short))*[\s*&]*(?:(?:const|__restrict__|\.\.\.)\s*)*(?:[A-Za-z_]\w*)?\s*(?:\[[^\]]*\]\s*)*(?:=[^=].*)?\Z|\s*\.\.\.\s*\Z",
    re.DOTALL,
)
_OPERATOR_ARGUMENT = re.compile(rb"\s*([-+*/%<>=!&|^~]+)\s*\Z")
_STATEMENT_START = re.compile(rb"\s*(?:using|typedef|return|static|constexpr|if|for|while|do|switch|throw|const\s+auto|auto)\b")
_SPLITTER = re.compile(rb"[()\[\]{},;]|<<<|>>>|[<>]")
_SKIPPED_TYPE_ARGUMENTS = frozenset(
    b"sizeof alignof decltype noexcept alignas __alignof__ _Alignof static_assert if while for switch catch return operator".split()
)
_TYPE_TAKERS = frozenset(b"typeid va_arg __builtin_va_arg __builtin_types_compatible_p".split())

_LAMBDA_NEXT = re.compile(rb"[({]|mutable\b|->|noexcept\b|constexpr\b|__(?:device|host|forceinline|noinline)__|[A-Z]\w*")


class Masker:
    """The text of one file on its way to something the grammar can read.

    text        what to parse now
    attributes  {offset: (name, argument text)} of overwritten things that still matter
    dropped     ranges of overwritten `#if` arms that are certainly not compiled
    """

    def __init__(self, data: bytes, lookup: Lookup | None = None) -> None:
        self.data = data
        self.attributes: dict[int, tuple[str, str]] = {}
        self.evidence = Evidence(data, lookup)
        self._view: View | None = None
        self._text = bytearray(data.replace(b"\0", b" "))
        self._code = bytearray()
        self._brackets: Brackets | None = None
        self._directive_starts: list[int] = []
        self._macro_words: list[tuple[bytes, int, int]] = []
        self._errors: list[tuple[int, int]] = []
        self.dropped: list[tuple[int, int]] = []

    @property
    def text(self) -> bytes:
        return bytes(self._text)

    def has_silent_macros(self) -> bool:
        """Whether macros stand for kernels or pragmas where the grammar would silently read something else."""
        names = set(_LEADING.findall(self.data))
        if any(hint in self.data for hint in _SILENT_HINTS):
            names.update(_SILENT.findall(self.data))
        return any(self.evidence.specifiers(name) is not None for name in names)

    # -- steps

    def prepare(self) -> None:
        if self._view is None:
            self._view = code_view(bytes(self._text))
            self._code = bytearray(self._view.code)
            self._directive_starts = [directive.start for directive in self._view.directives]

    def mask_specifiers(self) -> None:
        """Attributes, alignments, pragmas and macros that stand for such things."""
        self.prepare()
        code = self._code
        handlers: dict[bytes, Callable[[bytes, int, int], None]] = dict(self._fixed())
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

    def _handler(self, word: bytes) -> Callable[[bytes, int, int], None] | None:
        if word in _TYPE_TAKERS:
            return self._remember
        if word in KEYWORDS:
            return None
        if self.evidence.specifiers(word) is not None:
            return self._mask_macro
        if LAMBDA_MACRO.match(word):
            return self._mask_lambda_macro
        return self._remember if MACRO_NAME.match(word) or self.evidence.text(word) is not None else None

    def _remember(self, word: bytes, start: int, end: int) -> None:
        self._macro_words.append((word, start, end))

    def mask_heuristics(self, errors: list[tuple[int, int]]) -> None:
        """Gaps of the grammar, and macros whose use is no C++: statements, blocks, loops, types as arguments.

        errors  byte ranges that do not parse as yet, in order: what loses information is done near them only
        """
        self.prepare()
        self._errors = errors
        assert self._view is not None
        for start, end in self._view.comments:
            self._blank(start, end)
        self._gaps()
        self._brackets = None
        self._macro_calls()
        self._bare_macros()

    # -- writing

    def _put(self, start: int, replacement: bytes) -> None:
        end = start + len(replacement)
        self._text[start:end] = replacement
        self._code[start:end] = replacement

    def _blank(self, start: int, end: int) -> None:
        self._text[start:end] = self._text[start:end].translate(BLANK)
        self._code[start:end] = self._code[start:end].translate(BLANK)

    def _note(self, offset: int, name: bytes, argument: bytes = b"") -> None:
        while offset in self.attributes:
            offset += 1
        self.attributes[offset] = (name.decode("utf-8", "replace"), argument.strip().decode("utf-8", "replace"))

    # -- reading

    def _next(self, position: int) -> int:
        """The first offset from `position` on that is no space."""
        return skip_space(self._code, position)

    def _char(self, position: int) -> bytes:
        return bytes(self._code[position : position + 1])

    def _previous(self, position: int) -> int:
        """The last offset before `position` that is no space, -1 if there is none."""
        code = self._code
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

    def _previous_word(self, position: int) -> bytes:
        """The word that ends at `position` (inclusive)."""
        code, start = self._code, position
        while start >= 0 and (code[start] in _WORD_BYTES):
            start -= 1
        return bytes(code[start + 1 : position + 1])

    def _close(self, position: int) -> int:
        """The bracket that closes the one at `position`, -1 if none does."""
        if self._brackets is None:
            self._brackets = Brackets(self._code)
        return self._brackets.pairs.get(position, -1)

    def _enclosing(self, position: int) -> int:
        if self._brackets is None:
            self._brackets = Brackets(self._code)
        return self._brackets.enclosing(position)

    def _arguments(self, start: int, end: int) -> list[tuple[int, int]]:
        """Ranges between the commas of a bracketed list; commas in nested brackets and template arguments do not count."""
        parts, begin, position = [], start, start
        code = self._code
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
                close = self._close(match.start())
                position = close + 1 if match.start() < close < end else position
            elif found == b"<<<":
                close = code.find(b">>>", position, end)
                position = close + 3 if close >= 0 else position
            elif found == b"<":
                position = self._angle(match.start(), end)
        parts.append((begin, end))
        return parts

    def _angle(self, start: int, end: int) -> int:
        """Position after a template argument list that starts at `start`; after the `<` if it is a comparison."""
        code, depth, position = self._code, 0, start
        while True:
            match = _SPLITTER.search(code, position, end)
            if match is None or match[0] in (b";", b")", b"]", b"}", b"{"):
                return start + 1
            position = match.end()
            found = match[0]
            if found in (b"(", b"["):
                close = self._close(match.start())
                if not match.start() < close < end:
                    return start + 1
                position = close + 1
            elif found in (b"<", b"<<<"):
                depth += len(found)
            elif found in (b">", b">>>"):
                if code[match.start() - 1] == 45:  # ->
                    continue
                depth -= len(found)
                if depth <= 0:
                    return position

    # -- specifiers

    def _fixed(self) -> dict[bytes, Callable[[bytes, int, int], None]]:
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
        if self._char(self._next(end)) == b"(":
            self._put(start, b"alignas  ")

    def _called_end(self, end: int) -> int:
        """End of the argument list that follows, or `end`."""
        opening = self._next(end)
        close = self._close(opening) if self._char(opening) == b"(" else -1
        return close + 1 if close >= 0 else end

    def _argument_text(self, end: int, stop: int) -> bytes:
        return bytes(self.data[self._next(end) + 1 : stop - 1]) if stop > end else b""

    def _mask_called(self, word: bytes, start: int, end: int) -> None:
        stop = self._called_end(end)
        self._note(start, word, self._argument_text(end, stop))
        self._blank(start, stop)

    def _mask_attribute(self, word: bytes, start: int, end: int) -> None:
        """Attributes parse before a declarator and after a struct, not between a declarator and what follows it."""
        stop = self._called_end(end)
        before, after = self._char(self._previous(start)), self._char(self._next(stop))
        if (after in (b";", b"=", b",") and before != b"}") or before == b"=":
            self._note(start, word, self._argument_text(end, stop))
            self._blank(start, stop)

    def _mask_launch_bounds(self, word: bytes, start: int, end: int) -> None:
        stop = self._called_end(end)
        parts = self._arguments(self._next(end) + 1, stop - 1) if stop > end else []
        if len(parts) > 2:
            self._note(parts[2][0], b"max_blocks_per_cluster", bytes(self.data[parts[2][0] : parts[2][1]]))
            self._blank(parts[2][0] - 1, stop - 1)

    def _mask_pragma(self, word: bytes, start: int, end: int) -> None:
        stop = self._called_end(end)
        if stop > end:
            self._note(start, b"pragma", self._argument_text(end, stop).strip().strip(b'"'))
            self._blank(start, stop)

    def _mask_restrict(self, word: bytes, start: int, end: int) -> None:
        before = self._char(self._previous(start))
        if before in (b"*", b"&") and self._char(self._enclosing(start)) == b"(":
            return  # a parameter: the grammar takes it
        if (before in _WORD_CHARS or before in _AFTER_TYPE) and self._char(self._next(end)) in _WORD_STARTS:
            self._note(start, b"__restrict__")
            self._blank(start, end)

    def _in_lambda(self, start: int, end: int) -> bool:
        """Whether specifiers at `start` stand between the captures and the parameters of a lambda."""
        before = self._previous(start)
        if self._char(before) != b"]" or self._char(before - 1) == b"]":
            return False
        return _LAMBDA_NEXT.match(self._code, self._next(end)) is not None

    def _mask_misplaced(self, word: bytes, start: int, end: int) -> None:
        if self._char(self._next(end)) == b"(" or self._char(self._previous(start)) in (b"*", b"&") or self._in_lambda(start, end):
            self._note(start, word)
            self._blank(start, end)

    def _mask_lambda_macro(self, word: bytes, start: int, end: int) -> None:
        if self._char(self._next(end)) == b"(" and self._char(self._previous(start)) in (b",", b"(", b"=") and len(word) >= 3:
            self._note(start, word)
            self._put(start, b"[=]".ljust(end - start))

    def _mask_macro(self, word: bytes, start: int, end: int) -> None:
        meaning = self.evidence.specifiers(word)
        assert meaning is not None
        stop = end
        if self._char(self._previous(start)) != b"]" and (meaning.params is not None or self._takes_arguments(meaning)):
            stop = self._called_end(end)
            if stop == end and meaning.params is not None:
                return
        if not self._is_specifier_place(start, stop, certain=bool(meaning.tokens) or word in self.evidence.own):
            return
        in_lambda = self._in_lambda(start, stop)
        arguments = self._argument_text(end, stop)
        for name, argument in meaning.tokens:
            self._note(start, name, substitute(argument, meaning.params, arguments))
        aligned = len(meaning.tokens) == 1 and meaning.tokens[0][0] in _ALIGNMENTS and not in_lambda
        if aligned and meaning.params is not None and end - start >= 7 and meaning.tokens[0][1].strip() in meaning.params:
            self._put(start, b"alignas".ljust(end - start))
            return
        visible = next((name for name in VISIBLE if any(token == name for token, _ in meaning.tokens)), None)
        self._blank(start, stop)
        if visible is not None and not in_lambda and len(visible) <= end - start:
            self._put(start, visible)

    @staticmethod
    def _takes_arguments(meaning: Specifiers) -> bool:
        return bool(meaning.tokens) and all(name in CALLED_SPECIFIERS for name, _ in meaning.tokens)

    def _is_specifier_place(self, start: int, stop: int, certain: bool) -> bool:
        """A specifier is followed by what it specifies, never by an operator: this is what keeps values apart."""
        after = self._next(stop)
        follows = self._char(after)
        before = self._char(self._previous(start))
        if not follows:
            return True
        if follows in _WORD_STARTS or follows == b"~" or bytes(self._code[after : after + 2]) in (b"::", b"[["):
            return True
        if before == b"]":
            return self._in_lambda(start, stop)
        if follows == b"{":
            return self._previous_word(self._previous(start)) in (b"struct", b"class", b"union") or before == b")"
        if follows == b"(":
            return _OPERATOR_HEAD.search(self._code, max(0, start - 80), start) is not None
        if before in (b"*", b"&"):
            return follows in (b",", b")", b"=", b";", b"[")
        if before == b")":
            return follows in (b"{", b";", b":", b",", b"=")
        if certain and before in _WORD_CHARS and follows in (b";", b"=", b",", b")"):
            word = self._previous_word(self._previous(start))
            return word not in _EXPRESSION_WORDS and _TYPE_WORD.fullmatch(word) is None
        return follows == b'"' and before in (b";", b"}", b"{")

    def _mask_directives(self) -> None:
        """A pragma line parses between statements only, a lone `#` nowhere, comments and odd continuations in none."""
        assert self._view is not None
        for start, end, word in self._view.directives:
            if not word or (word == b"pragma" and self._char(self._previous(start)) not in (b"", b";", b"{", b"}", b":")):
                self._text[start:end] = self._text[start:end].translate(BLANK)
                continue
            line = bytes(self._text[start:end])
            if b"/*" in line or b"\\ " in line or b"\\\t" in line:
                self._text[start:end] = _ODD_CONTINUATION.sub(_swap, COMMENT.sub(_blank_continued, line))

    # -- gaps of the grammar

    def _gaps(self) -> None:
        for pattern, edit, before in _GAPS:
            for match in pattern.finditer(self._code):
                if before is None or self._char(self._previous(match.start())) in before:
                    edit(self, match)

    def _blank_group(self, match: re.Match[bytes]) -> None:
        self._blank(match.start(1), match.end(1))

    def _blank_instantiation(self, match: re.Match[bytes]) -> None:
        """`template class A<b>;`, `extern template class A<b>;`"""
        before = self._previous(match.start())
        extern = self._previous_word(before) == b"extern"
        self._blank(before - 5 if extern else match.start(), match.end(1))

    def _blank_bitfield(self, match: re.Match[bytes]) -> None:
        """`int : 3, a : 2;`"""
        before = self._previous(match.start())
        word = self._previous_word(before)
        if word and self._char(self._previous(before + 1 - len(word))) in _AFTER_STATEMENT:
            self._blank(match.start(1), match.end(1))

    def _blank_parameters(self, match: re.Match[bytes]) -> None:
        """`f(int a MORE_PARAMS)`: a macro that brings its own comma."""
        end = match.end() - 1
        start = end
        while True:
            before = self._previous(start)
            word = self._previous_word(before)
            if MACRO_NAME.match(word) is None or _OWN_COMMA.search(word) is None:
                break
            start = before + 1 - len(word)
        if word and start < end:
            self._blank(start, end)

    def _blank_typename(self, match: re.Match[bytes]) -> None:
        """`typename A::B{}` and `typename A::B(x)` as expressions."""
        position = match.end()
        code = self._code
        while True:
            word = WORD.match(code, self._next(position))
            if word is None:
                return
            position = self._next(word.end())
            if self._char(position) == b"<":
                position = self._next(self._angle(position, len(code)))
            if bytes(code[position : position + 2]) != b"::":
                break
            position += 2
            if _TEMPLATE_WORD.match(code, position):
                position = self._next(position) + 8
        if self._char(position) in (b"{", b"("):
            self._blank(match.start(1), match.end(1))

    def _default_braces(self, match: re.Match[bytes]) -> None:
        start = match.start(1)
        close = self._close(start)
        if self._char(self._enclosing(start)) == b"(" and close > 0 and self._char(self._next(close + 1)) in (b",", b")"):
            self._blank(start, close + 1)
            self._put(start, b"0")

    def _blank_after_string(self, match: re.Match[bytes]) -> None:
        """`"a" MACRO "b"`, `"a" MACRO(x)` and two literals with suffixes."""
        before = self._previous_word(self._previous(match.start()))
        word, after = match[1], self._next(match.end())
        if before in (b"extern", b"operator") or word in KEYWORDS:
            return
        end = match.end()
        if self._char(after) == b"(":
            end = self._called_end(end)
        if self._char(self._next(end)) in (b'"', b",", b")", b";") and (word.isupper() or self._char(self._next(end)) == b'"'):
            self._blank(match.start(1), end)

    def _call_decltype(self, match: re.Match[bytes]) -> None:
        """`decltype(x){}` is a value: make it a call of something unknown."""
        close = self._close(match.end() - 1)
        opening = self._next(close + 1)
        end = self._close(opening) if close > 0 and self._char(opening) == b"{" else -1
        if end > 0:
            self._put(match.start(), b"declty_e")
            self._put(opening, b"(")
            self._put(end, b")")

    def _name_unsigned(self, match: re.Match[bytes]) -> None:
        self._put(match.start(1), b"uint32_t")

    def _name_operator(self, match: re.Match[bytes]) -> None:
        self._put(match.start(1), _NO_WORD.sub(b"_", match[1]))

    def _assign_reference(self, match: re.Match[bytes]) -> None:
        """`T& r(a ? b : c);` reads as a function."""
        opening = match.start(1)
        close = self._close(opening)
        if close > 0 and self._char(self._next(close + 1)) == b";":
            self._put(opening, b"=")
            self._put(close, b" ")

    def _close_templates(self, match: re.Match[bytes]) -> None:
        """Three template argument lists that end together: one of them goes, so that this is no launch."""
        code, position = self._code, match.start()
        if not self._near_error(position):
            return
        opening = code.rfind(b"<", 0, position)
        if opening < 1 or code[opening - 1] == 60 or self._char(self._next(match.end())) == b"(":
            return
        if not _SIMPLE_ARGUMENTS.fullmatch(code, opening + 1, position):
            return
        self._blank(opening, position + 1)

    def _simplify_return_type(self, match: re.Match[bytes]) -> None:
        """`std::pair<A<B<c>>, A<B<c>>> f(` at file scope reads as comparisons: drop the template arguments."""
        self._simplify(match.start(1), _FUNCTION_HEAD)

    def _simplify_first_parameter(self, match: re.Match[bytes]) -> None:
        """`A::A(std::vector<B<c>> x, int y) : m(x) {}` reads as a call."""
        if self._previous_word(match.start() - 1) == match[1]:
            self._simplify(match.start(2), _ANYTHING)

    def _simplify(self, start: int, follows: re.Pattern[bytes]) -> None:
        if not self._near_error(start):
            return
        end = self._angle(start, len(self._code))
        if self._code.count(b"<", start, end) > 1 and follows.match(self._code, end):
            self._blank(start, end)

    def _name_parameter(self, match: re.Match[bytes]) -> None:
        self._put(match.start(1), b"_")

    def _near_error(self, position: int) -> bool:
        index = bisect_right(self._errors, (position + _NEAR, 0))
        return any(end + _NEAR >= position for _, end in self._errors[max(index - 8, 0) : index])

    # -- macros that are no C++

    def _macro_calls(self) -> None:
        for name, start, end in self._macro_words:
            opening = self._next(end)
            if self._char(opening) == b"(" and self._code[start:end] == name:
                close = self._close(opening)
                if close > 0 and self._char(close) == b")":
                    self._macro_call(name, start, opening, close)

    def _macro_call(self, name: bytes, start: int, opening: int, close: int) -> None:
        before = self._previous(start)
        head = self._char(before)
        word = self._previous_word(before) if head in _WORD_CHARS else b""
        starts_statement = head in (b"", b";", b"{", b"}", b":", b")") or word in (b"else", b"do")
        parts = self._arguments(opening + 1, close)
        after = self._next(close + 1)
        follows = self._char(after)
        if starts_statement and self._block_macro(name, start, opening, close, parts):
            return
        if word and word not in _EXPRESSION_WORDS and name not in _TYPE_TAKERS and not starts_statement:
            return
        if head in (b"<", b",") and follows in _AFTER_TEMPLATE_PARAMETER and self._in_template_head(start):
            self._note(start, b"macro:" + name, bytes(self.data[opening + 1 : close]))
            self._blank(start, close + 1)
            self._put(start, b"int")
            return
        if follows == b"{" and starts_statement:
            if not all(_PARAMETER.match(self._code, *part) for part in parts):
                self._note(start, b"macro:" + name, bytes(self.data[opening + 1 : close]))
                self._blank(opening + 1, close)
            return
        if follows == b";" and starts_statement and self._scope(start) == "class":
            if not all(_PARAMETER.match(self._code, *part) for part in parts):
                self._note(start, b"macro:" + name, bytes(self.data[opening + 1 : close]))
                self._blank(start, close + 1)
            return
        self._name_types(parts)
        self._fill_empty(opening, close, parts)
        if starts_statement and (follows in _WORD_STARTS or follows == b"}" or not follows):
            self._end_statement(name, start, opening, close, after)
        elif head == b">" and follows in _WORD_STARTS:
            self._note(start, b"macro:" + name, bytes(self.data[opening + 1 : close]))
            self._blank(start, close + 1)

    def _in_template_head(self, position: int) -> bool:
        begin = self._code.rfind(b"template", 0, position)
        return begin >= 0 and _STATEMENT_MARK.search(self._code, begin, position) is None and self._scope(position) != "("

    def _name_types(self, parts: list[tuple[int, int]]) -> None:
        """A type as an argument becomes an identifier of the same length."""
        for begin, end in parts:
            match = _TYPE_ARGUMENT.match(self._code, begin, end)
            if match is None:
                match = _OPERATOR_ARGUMENT.match(self._code, begin, end)
            if match is not None:
                self._put(match.start(1), _NO_WORD.sub(b"_", match[1].rstrip()[:-1]) + b"_")

    def _fill_empty(self, opening: int, close: int, parts: list[tuple[int, int]]) -> None:
        if len(parts) < 2:
            return
        for begin, end in parts:
            if not bytes(self._code[begin:end]).strip():
                if end > begin and self._code[begin] in b" \t":
                    self._put(begin, b"_")
                elif end < close:
                    self._put(end, b" ")
                else:
                    self._put(begin - 1, b" ")

    def _block_macro(self, name: bytes, start: int, opening: int, close: int, parts: list[tuple[int, int]]) -> bool:
        """`DISPATCH(type, "name", using T = …; f<T>(x);)` becomes a block."""
        first = next((part for part in parts if self._is_statement(*part)), None)
        if first is None:
            return False
        self._note(start, b"macro:" + name, bytes(self.data[opening + 1 : first[0] - 1]))
        after = self._next(close + 1)
        if self._scope(start) != "block":
            self._blank(start, close + 1)
            return True
        if self._char(self._next(first[0])) == b"{":
            keep = [part for part in parts if self._char(self._next(part[0])) == b"{"]
            edges = [start, *(edge for part in keep for edge in part), close + 1]
            for left, right in zip(edges[0::2], edges[1::2], strict=True):
                self._blank(left, right)
        else:
            last = self._previous(close)
            ended = self._char(last) in (b";", b"}")
            has_end = self._char(after) == b";"
            if not ended and not has_end and last + 1 == close:
                return False
            self._blank(start, first[0] - 1)
            self._put(first[0] - 1, b"{")
            if ended:
                self._put(close, b"}")
            elif last + 1 < close:
                self._put(last + 1, b";" if self._code[last + 1] in b" \t" else bytes(self._code[last + 1 : last + 2]))
                self._put(close, b"}")
            else:
                self._put(close, b";")
                self._put(after, b"}")
                return True
        if self._char(after) == b";":
            self._put(after, b" ")
        return True

    def _is_statement(self, begin: int, end: int) -> bool:
        position = self._next(begin)
        if position < end and self._code[position] == 123:
            close = self._close(position)
            return 0 < close < end and self._next(close + 1) >= end and b";" in self._code[position:close]
        for match in re.compile(rb"[()\[\]{};]").finditer(self._code, begin, end):
            if match.start() < position:
                continue
            if match[0] == b";":
                return True
            if match[0] in b"([{":
                close = self._close(match.start())
                position = close if match.start() < close < end else position
        return _STATEMENT_START.match(self._code, begin, end) is not None

    def _end_statement(self, name: bytes, start: int, opening: int, close: int, after: int) -> None:
        """Give a statement macro its semicolon, on a blank."""
        if self._char(after) in _WORD_STARTS and b"\n" not in self._code[close:after]:
            word = WORD.match(self._code, after)
            if word is not None and word[0] in (b"const", b"noexcept", b"override", b"final", b"requires", b"volatile"):
                return
        scope = self._scope(start)
        if scope in ("enum", "values", "("):
            return
        place = self._free_blank(close + 1, after)
        if place >= 0:
            self._put(place, b";")
        elif self._code[close - 1] in b" \t":
            self._put(close - 1, b");")
        elif scope != "block":
            self._note(start, b"macro:" + name, bytes(self.data[opening + 1 : close]))
            self._blank(start, close + 1)
        else:
            inner = bytes(self.data[opening + 1 : close])
            self._note(start, b"macro:" + name, inner)
            self._put(opening, b"=" if inner.strip() else b" ")
            self._put(close, b";")

    def _scope(self, position: int) -> str:
        """What the innermost open brace at `position` holds: "namespace", "class", "block", "enum", "values"; "(" in parentheses."""
        while True:
            opening = self._enclosing(position)
            if opening < 0:
                return "namespace"
            if self._code[opening] != 123:
                return "("
            before = self._previous(opening)
            head = self._char(before)
            if head != b"{":
                break
            position = opening
        if head in (b")", b";", b"}", b":", b"]", b""):
            return "block"
        if head not in _WORD_CHARS and head not in (b">", b'"'):
            return "values"
        begin = max(self._code.rfind(mark, 0, opening) for mark in (b";", b"{", b"}"))
        match = _SCOPE_HEAD.search(self._code, begin + 1, opening)
        if match is None:
            return "block" if self._previous_word(before) in _BLOCK_WORDS else "values"
        return {None: "namespace", b"namespace": "namespace", b"enum": "enum"}.get(match[1], "class")

    def _free_blank(self, start: int, end: int) -> int:
        """A space or tab between `start` and `end`, before any directive; -1 if there is none."""
        index = bisect_left(self._directive_starts, start)
        if index < len(self._directive_starts) and self._directive_starts[index] < end:
            end = max(self._text.rfind(b"\n", 0, self._directive_starts[index]), start)
        match = _SPACE.search(self._text, start, end)
        return match.start() if match else -1

    def _bare_macros(self) -> None:
        """A macro without arguments that stands for statements, alone on its line or in a row of them."""
        for name, start, end in self._macro_words:
            if self._code[start:end] != name:
                continue
            after = self._next(end)
            if after < len(self._code) and self._char(after) not in _WORD_STARTS and self._char(after) != b"}":
                continue
            if self._char(self._previous(start)) not in (b"", b";", b"{", b"}", b":"):
                continue
            line = self._code.rfind(b"\n", 0, start) + 1
            alone = b"\n" in self._code[end:after] and not self._code[line:start].strip(b" \t;")
            if not (alone and MACRO_NAME.match(name)) and not self._is_statement_macro(name):
                continue
            if self._scope(start) in ("enum", "values", "("):
                continue
            place = self._free_blank(end, after)
            if place >= 0:
                self._put(place, b";")
            else:
                self._note(start, b"macro:" + name)
                self._blank(start, end)

    def _is_statement_macro(self, name: bytes, depth: int = 8) -> bool:
        text = self.evidence.text(name)
        if text is None or text.startswith(b"(") or not depth:
            return False
        body = text.rstrip()
        if body.endswith((b";", b"}")):
            return True
        last = _LAST_WORD.search(body)
        return last is not None and last[1] != name and self._is_statement_macro(last[1], depth - 1)

    # -- #if

    def mask_conditionals(self, inactive: Inactive | None, every: bool = False) -> None:
        """Keep one arm of each `#if` group that splits a construct (or of every group)."""
        self.prepare()
        assert self._view is not None
        ranges = inactive(self.data) if inactive is not None else None
        for group in groups(self._view.directives, len(self.data)):
            if every or self._is_split(group):
                self._keep_one(group, ranges)

    def _is_split(self, group: Group) -> bool:
        before = self._char(self._previous(group.lines[0].start))
        after = self._next(group.lines[-1].end)
        if before not in (b"", b";", b"{", b"}", b":") or self._char(after) not in _AFTER_GROUP:
            return True
        if _ELSE.match(self._code, after):
            return True
        for begin, end in group.arms:
            arm = bytes(self._code[begin:end]).strip()
            if not arm:
                continue
            if arm[-1:] not in (b";", b"{", b"}", b":") or _ELSE.match(arm):
                return True
            if any(arm.count(left) != arm.count(right) for left, right in ((b"(", b")"), (b"{", b"}"), (b"[", b"]"))):
                return True
        return False

    def _keep_one(self, group: Group, ranges: list[tuple[int, int]] | None) -> None:
        verdicts = [
            not _covered(ranges, begin, end) if ranges is not None else self._verdict(group, index)
            for index, (begin, end) in enumerate(group.arms)
        ]
        taken = next((index for index, verdict in enumerate(verdicts) if verdict is not False), -1)
        for line in group.lines:
            self._blank(line.start, line.end)
        for index, (begin, end) in enumerate(group.arms):
            if index == taken:
                continue
            self._blank(begin, end)
            if verdicts[index] is False or verdicts[taken]:
                self.dropped.append((begin, end))

    def _verdict(self, group: Group, index: int) -> bool | None:
        """Light evaluation of the condition of an arm for nvcc's device pass; None where it is not certain."""
        line = group.lines[index]
        if line.word == b"else":
            return None
        text = COMMENT.sub(b" ", CONTINUATION.sub(b" ", self.data[line.start : line.end]))
        match = _CONDITION.match(text)
        if match is None:
            return None
        word, condition = match[1], match[2].strip()
        if word in (b"ifdef", b"ifndef"):
            condition = (b"" if word == b"ifdef" else b"!") + b"defined(" + condition + b")"
        return _light_value(condition)


def _covered(ranges: list[tuple[int, int]], begin: int, end: int) -> bool:
    index = bisect_right(ranges, (begin + 1, 1 << 62)) - 1
    return index >= 0 and ranges[index][1] >= end - 1 and ranges[index][0] <= begin + 1


_CONDITION = re.compile(rb"#[ \t]*(\w+)(.*)", re.DOTALL)
_FOREIGN = re.compile(
    rb"__HIP\w*|USE_ROCM|USE_HIP|__HCC__|HIP_\w+|_MSC_VER|_WIN32|_WIN64|WIN32|__clang__|__INTEL_\w+|__SYCL\w*|SYCL_\w+|__CUDACC_RTC__|__APPLE__|__MINGW32__|GGML_USE_HIP|GGML_USE_MUSA|__OPENCL\w*\Z"
)
_NATIVE = frozenset((b"__CUDACC__", b"__CUDA_ARCH__", b"__NVCC__", b"__cplusplus", b"__linux__", b"__GNUC__"))
_DEFINED = re.compile(rb"(!?)\s*defined\s*\(?\s*(\w+)\s*\)?\Z")


def _light_value(condition: bytes) -> bool | None:
    """True or false where a condition is certain, else None."""
    if condition in (b"0", b"false"):
        return False
    if condition in (b"1", b"true"):
        return True
    for operator, decisive in ((b"||", True), (b"&&", False)):
        if operator in condition and b"(" not in re.sub(rb"defined\s*\(\s*\w+\s*\)", b"", condition):
            values = [_light_value(part.strip()) for part in condition.split(operator)]
            if decisive in values:
                return decisive
            return None if None in values else not decisive
    match = _DEFINED.match(condition)
    if match is None:
        return None
    known = False if _FOREIGN.fullmatch(match[2]) else True if match[2] in _NATIVE else None
    return known if known is None or not match[1] else not known


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


_WORD_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$" + bytes(range(128, 256)))
_WORD_CHARS = frozenset(bytes([byte]) for byte in _WORD_BYTES)
_WORD_STARTS = frozenset(bytes([byte]) for byte in _WORD_BYTES if byte not in b"0123456789")
_EXPRESSION_WORDS = frozenset((b"return", b"case", b"else", b"do", b"co_return", b"throw", b"sizeof", b"and", b"or", b"not"))
_AFTER_GROUP = _WORD_STARTS | {b"", b"}", b"~", b":", b"*", b"(", b"[", b"{", b"+", b"-", b"@"}
_OWN_COMMA = re.compile(rb"_(?:PARAMS?|ARGS?|ARGUMENTS?)\Z")
_SIMPLE_ARGUMENTS = re.compile(rb"[\w\s,:*&.]*")
_NO_WORD = re.compile(rb"[^\w\n\r]")
_TYPE_WORD = re.compile(_TYPE_WORDS + rb"|typename|class|struct|union|enum")
_ALIGNMENTS = (b"alignas", b"_Alignas", b"__align__")
_AFTER_TEMPLATE_PARAMETER = (b">", b",", b"*", b"=")
_STATEMENT_MARK = re.compile(rb"[;{}]")
_OPERATOR_HEAD = re.compile(rb"\boperator\s*(?:\(\s*\)|[^\w\s()]+)\s*\Z")
_ANYTHING = re.compile(rb"")
_FUNCTION_HEAD = re.compile(rb"\s*[A-Za-z_][\w:]*\s*\(")
_SPACE = re.compile(rb"[ \t]")
_ODD_CONTINUATION = re.compile(rb"\\([ \t]+)(\r?\n)")
_AFTER_TYPE = frozenset((b"*", b"&", b">"))
_ELSE = re.compile(rb"\s*else\b")
_TEMPLATE_WORD = re.compile(rb"\s*template\b")
_NEAR = 300
_LAST_WORD = re.compile(rb"(?:^|\s)([A-Za-z_]\w*)\Z")
_SCOPE_HEAD = re.compile(rb"\b(namespace|enum|class|struct|union)\b[^()=]*\Z|\bextern\s*\"\s*\"\s*\Z")
_BLOCK_WORDS = frozenset((b"else", b"do", b"try", b"const", b"noexcept", b"override", b"final", b"mutable"))
_SILENT_HINTS = (b"KERNEL", b"GLOBAL", b"UNROLL", b"PRAGMA")
_LEADING = re.compile(rb"^(?:template\s*<[^\n]*>\s*)?(?:static\s+|extern\s+\"C\"\s+)?([A-Z_][A-Z0-9_]{2,})[ \t\r\n(]", re.MULTILINE)
_SILENT = re.compile(rb"\b([A-Z_][A-Z0-9_]*(?:KERNEL|GLOBAL|UNROLL|PRAGMA)[A-Z0-9_]*)\b")


class Gap(NamedTuple):
    """A construct that the grammar lacks.

    pattern   starts with a literal, so that the search is fast; group 1 is what changes
    edit      what to do with a match
    before    characters that may stand before it (None: any)
    """

    pattern: re.Pattern[bytes]
    edit: Callable[[Masker, re.Match[bytes]], None]
    before: frozenset[bytes] | None = None


def _characters(text: bytes) -> frozenset[bytes]:
    return frozenset(bytes([byte]) for byte in text)


_IN_VALUE = _characters(b"=({,?:&|+-*/%!<>n")
_AFTER_STATEMENT = _characters(b";{}") | {b""}
_AFTER_DECLARATOR = _characters(b";{}>") | {b""}
_AFTER_DOT = _characters(b".>")
_IN_DECLARATION = _WORD_CHARS | _characters(b">&*")

_GAPS = (
    Gap(re.compile(rb"\b(operator\s*\(\s*\)(?:\s*<[^;{}()]*>)?)\s*\("), Masker._name_operator, _IN_VALUE | _AFTER_STATEMENT),
    Gap(re.compile(rb"\b(operator\s+[\w:]+)\s*\("), Masker._name_operator, _AFTER_DOT),
    Gap(re.compile(rb"\b(operator\s*[-+*/%]+)\s*\("), Masker._name_operator, _AFTER_STATEMENT),
    Gap(re.compile(rb"\boperator\s*\(\s*\)\s*(<[^(){};]*>)\s*\("), Masker._blank_group),
    Gap(re.compile(rb"\benum\s+(?:class|struct)?\s*(\[\[[^\[\]]*\]\])"), Masker._blank_group),
    Gap(re.compile(rb"\benum\s*(:\s*[\w:\s]+?)\s*\{"), Masker._blank_group),
    Gap(re.compile(rb"(,\s*(?:void|bool|int)\s*\(\s*\))\s*\)"), Masker._blank_group),
    Gap(re.compile(rb"(:\s*\d+\s*,)"), Masker._blank_bitfield),
    Gap(re.compile(rb",([ \t])\s*:\s*\d"), Masker._name_parameter),
    Gap(re.compile(rb"=\s*[\w:]+\s*(\(\s*\*\s*\)\s*\([^(){};]*\))\s*[,>]"), Masker._blank_group),
    Gap(re.compile(rb"(\*\s*&&?)\s*\.\.\."), Masker._blank_group),
    Gap(re.compile(rb"(?:[;{}>])\s*(?:(?:static|inline|constexpr|virtual|__\w+__)\s+)*\w[\w:]*::\w+\s*(<)"), Masker._simplify_return_type),
    Gap(re.compile(rb"::(\w+)\s*\(\s*(?:const\s+)?[\w:]+\s*(<)"), Masker._simplify_first_parameter),
    Gap(re.compile(rb"\)\s*:\s*((\w+)::)\2\s*[({]"), Masker._blank_group),
    Gap(re.compile(rb"(?:PARAM|ARG)[A-Z]*\s*\)"), Masker._blank_parameters),
    Gap(re.compile(rb"\b(template)\s+(?:class|struct|union)\b"), Masker._blank_instantiation),
    Gap(re.compile(rb"\b(template)\s+\w+\s*\("), Masker._blank_group, _AFTER_DOT),
    Gap(re.compile(rb"\b(typename)\b"), Masker._blank_typename, _IN_VALUE),
    Gap(re.compile(rb"\busing\s+(typename)\b"), Masker._blank_group),
    Gap(re.compile(rb"=\s*(\{)"), Masker._default_braces),
    Gap(re.compile(rb"\bnew\s+(const)\b"), Masker._blank_group),
    Gap(re.compile(rb"\bnew\s+[\w:]+(?:<[^<>()]*>)?\s*(\*[\s*]*)\["), Masker._blank_group),
    Gap(re.compile(rb"[*&]([ \t])\s*=\s*(?:nullptr|NULL|0)\s*[,)>]"), Masker._name_parameter),
    Gap(re.compile(rb'"[^"\w]*"\s*([A-Za-z_]\w*)'), Masker._blank_after_string),
    Gap(re.compile(rb"\b(friend)\b"), Masker._blank_group, _IN_DECLARATION),
    Gap(re.compile(rb"\bdecltype\s*\("), Masker._call_decltype, _IN_VALUE),
    Gap(re.compile(rb"\b(unsigned)\s*\("), Masker._name_unsigned, _IN_VALUE),
    Gap(re.compile(rb"\)\s*(=\s*(?:delete|default))\s*;"), Masker._blank_group),
    Gap(re.compile(rb"&\s*\w+\s*(\()[^;{}()]*\?"), Masker._assign_reference, _IN_DECLARATION),
    Gap(re.compile(rb">>>(?!>)"), Masker._close_templates),
)
