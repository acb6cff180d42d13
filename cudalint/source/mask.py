"""The masking pass: what plain grammar cannot read is overwritten by as many bytes that it can.

Every step keeps the length of the text and every line end, so byte offsets
stay true.  What is overwritten and matters to anyone later goes into
`Masker.attributes`.  Edits rest on evidence: first the `#define`s of the file,
then those of the project, then a short list of macros of well-known libraries.
"""

from __future__ import annotations

import re

from cudalint.source.conditionals import ConditionalStep, Inactive
from cudalint.source.gaps import fill_gaps
from cudalint.source.macro_uses import MacroUseStep
from cudalint.source.macros import Evidence, Lookup
from cudalint.source.page import Page
from cudalint.source.specifiers import SpecifierStep

__all__ = ["Inactive", "Lookup", "Masker"]

_SILENT_HINTS = (b"KERNEL", b"GLOBAL", b"UNROLL", b"PRAGMA")
_LEADING = re.compile(rb"\n(?:template\s*<[^\n]*>\s*)?(?:static\s+|extern\s+\"C\"\s+)?([A-Z_][A-Z0-9_]{2,})(?=[ \t\r\n(])")
_SILENT = re.compile(rb"\b([A-Z_][A-Z0-9_]*(?:KERNEL|GLOBAL|UNROLL|PRAGMA)[A-Z0-9_]*)\b")
_STUB = re.compile(rb"#[ \t]*(?:include[ \t]*(?:\"[^\"\n]*)?|define|undef)[ \t]*(?=\r?\n|\Z)")


def _without_stubs(data: bytes) -> bytes:
    """The text without directives that are being typed: the grammar would take the next line for what is missing."""

    def blank(match: re.Match[bytes]) -> bytes:
        before = data[data.rfind(b"\n", 0, match.start()) + 1 : match.start()]
        return match[0] if before.strip() else b" " * len(match[0])

    return _STUB.sub(blank, data)


class Masker:
    """Masks one file step by step; each step builds on the text that the one before has left."""

    def __init__(self, data: bytes, lookup: Lookup | None = None) -> None:
        self.data = data = _without_stubs(data)
        self._evidence = Evidence(data, lookup)
        self._lazy: Page | None = None
        self._macro_words: list[tuple[bytes, int, int]] = []
        self._conditionals: ConditionalStep | None = None

    @property
    def text(self) -> bytes:
        """What to parse now: same length and lines as the data."""
        return bytes(self._lazy.buffer) if self._lazy is not None else self.data.replace(b"\0", b" ")

    @property
    def attributes(self) -> dict[int, tuple[str, str]]:
        """{offset: (name, argument text)} of overwritten things that still matter."""
        return self._lazy.attributes if self._lazy is not None else {}

    @property
    def dropped(self) -> list[tuple[int, int]]:
        """Ranges of overwritten `#if` arms that are certainly not compiled."""
        return self._conditionals.dropped if self._conditionals is not None else []

    @property
    def _page(self) -> Page:
        if self._lazy is None:
            self._lazy = Page(self.data)
        return self._lazy

    def has_silent_macros(self) -> bool:
        """Whether macros stand for kernels or pragmas where the grammar would silently read something else."""
        names = set(_LEADING.findall(b"\n" + self.data))
        if any(hint in self.data for hint in _SILENT_HINTS):
            names.update(_SILENT.findall(self.data))
        return any(self._evidence.specifiers(name) is not None for name in names)

    def mask_specifiers(self) -> None:
        """Attributes, alignments, pragmas and macros that stand for such things."""
        step = SpecifierStep(self._page, self._evidence)
        step.run()
        self._macro_words = step.macro_words

    def mask_heuristics(self, errors: list[tuple[int, int]]) -> None:
        """Gaps of the grammar, and macros whose use is no C++: statements, blocks, loops, types as arguments.

        errors  byte ranges that do not parse as yet, in order: what loses information is done near them only
        """
        page = self._page
        for start, end in page.view.comments:
            page.blank(start, end)
        fill_gaps(page, errors)
        MacroUseStep(page, self._evidence, self._macro_words).run()

    def mask_conditionals(self, inactive: Inactive | None, every: bool = False) -> None:
        """Keep one arm of each `#if` group that splits a construct (or of every group)."""
        if self._conditionals is None:
            self._conditionals = ConditionalStep(self._page)
        self._conditionals.run(inactive, every)
