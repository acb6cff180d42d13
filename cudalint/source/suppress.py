"""Suppression comments: which findings the author of the source has accepted.

    // cudalint: ignore[rule, …] reason        this line; alone on its line: the statement or kernel that follows
    // cudalint: disable[rule] … enable[rule]  from here to there (or to the end of the file)
    // cudalint: file-ignore[rule]             the whole file
    // NOLINT(cudalint-rule)  NOLINTNEXTLINE(…)  NOLINTBEGIN(…) … NOLINTEND(…)

Rules go by name, code (CU101) or family.  Comments may be of either kind; what
looks like one inside a literal is none.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Literal

from cudalint.source.code import View, code_view
from cudalint.source.text import SourceFile

Kind = Literal["line", "next", "region", "file"]
ProblemKind = Literal["unused", "unknown", "blanket", "malformed", "unmatched"]

_HINTS = (b"cudalint:", b"NOLINT")
_ORDER: dict[Kind, int] = {"line": 0, "next": 1, "region": 2, "file": 3}
_EVERYTHING = frozenset(("*", "ALL", "all"))
_COMMAND = re.compile(
    rb"(?<![\w\-`])cudalint:[ \t]*(?P<verb>[\w-]*)(?P<list>[ \t]*\[[^\]\n]*\]?)?"
    rb"|(?<![\w\-`])NOLINT(?P<where>NEXTLINE|BEGIN|END)?(?![\w\-`])(?P<names>[ \t]*\([^)\n]*\)?)?"
)
_LITERAL_OR_COMMENT = re.compile(rb"\"(?:[^\"\\\n]|\\.)*\"?|(//(?:[^\\\n]|\\(?:\r\n|.)?)*|/\*.*?(?:\*/|\Z))", re.DOTALL)
_STATEMENT_END = re.compile(rb"[()\[\]{};]")
_VISIBLE = re.compile(rb"[^ \t\r\n\f\v]")
_PREFIX = "cudalint-"


@dataclass(slots=True, eq=False)
class Suppression:
    """One suppression comment.

    kind         "line" this line; "next" the statement or kernel that follows; "region"; "file"
    rules        as they are written, without the `cudalint-` of NOLINT; empty for a blanket one
    reason       what the author says about it
    line/column  of the comment's command, 1-based; start/end its byte range
    first/last   lines that it covers
    """

    kind: Kind
    rules: tuple[str, ...]
    reason: str
    line: int
    column: int
    start: int
    end: int
    first: int
    last: int
    used_rules: set[str] = field(default_factory=set)

    @property
    def blanket(self) -> bool:
        """Suppresses every rule."""
        return not self.rules or not _EVERYTHING.isdisjoint(self.rules)

    @property
    def used(self) -> bool:
        """Whether it has suppressed something."""
        return bool(self.used_rules)

    def naming(self, rule: str, code: str, family: str) -> str | None:
        """The word of the list that means a rule, "*" for a blanket one, None if it means others."""
        if self.blanket:
            return "*"
        return next((name for name in self.rules if name in (rule, family) or name.upper() == code), None)


@dataclass(frozen=True, slots=True)
class Problem:
    """A suppression comment that deserves a word.

    kind  "unused", "unknown" (no such rule), "blanket" (names no rule), "malformed", "unmatched" (a NOLINTBEGIN or
          NOLINTEND without its partner); `names` are the rules concerned
    """

    kind: ProblemKind
    names: tuple[str, ...]
    line: int
    column: int
    start: int
    end: int


class Suppressions:
    """The suppression comments of one file."""

    __slots__ = ("_malformed", "items")

    def __init__(self, items: list[Suppression], malformed: list[Problem]) -> None:
        self.items = items
        self._malformed = malformed

    def match(
        self, rule: str, code: str, family: str, start_line: int, kernel_lines: tuple[int, int] | None = None
    ) -> Suppression | None:
        """The suppression of a finding on `start_line` (marked as used), the narrowest if there are several.

        kernel_lines  first line of the definition and last line of the kernel that the finding is about
        """
        best: tuple[Suppression, str] | None = None
        for item in self.items:
            name = item.naming(rule, code, family)
            if name is None or not _covers(item, start_line, kernel_lines):
                continue
            if best is None or _ORDER[item.kind] < _ORDER[best[0].kind]:
                best = item, name
        if best is None:
            return None
        best[0].used_rules.add(best[1])
        return best[0]

    def problems(self, known: Container[str], ran: Container[str] | None = None) -> list[Problem]:
        """What is wrong with the comments, in order; ask after all findings have been matched.

        known  names, codes (upper case) and families of all rules
        ran    those that were checked: only they can be unused (None: all)
        """
        found = list(self._malformed)
        for item in self.items:
            strange = not item.blanket
            unknown = {name: None for name in item.rules if strange and name not in known and name.upper() not in known}
            unused = tuple(
                name
                for name in dict.fromkeys(item.rules)
                if name not in item.used_rules and name not in unknown and (ran is None or name in ran or name.upper() in ran)
            )
            if unknown:
                found.append(_problem("unknown", tuple(unknown), item))
            if item.blanket:
                found.append(_problem("blanket", (), item))
                if not item.used and ran is None:
                    found.append(_problem("unused", (), item))
            elif unused:
                found.append(_problem("unused", unused, item))
        return sorted(found, key=lambda problem: (problem.start, problem.kind))


_NONE: list[Suppression] = []


def parse(source: SourceFile) -> Suppressions:
    """The suppressions of a file; costs nothing but two searches where there are none."""
    data = source.data
    if not any(hint in data for hint in _HINTS):
        return Suppressions(_NONE, [])
    reader = _Reader(source, code_view(data))
    for start, end in sorted(reader.comments()):
        for match in _COMMAND.finditer(data, start, end):
            reader.read(match, start, end)
    reader.finish()
    return Suppressions(sorted(reader.items, key=lambda item: item.start), reader.malformed)


def _covers(item: Suppression, line: int, kernel_lines: tuple[int, int] | None) -> bool:
    if item.first <= line <= item.last:
        return True
    if item.kind != "next" or kernel_lines is None:
        return False
    return item.first <= kernel_lines[0] <= item.last and kernel_lines[0] <= line <= kernel_lines[1]


def _problem(kind: ProblemKind, names: tuple[str, ...], item: Suppression) -> Problem:
    return Problem(kind, names, item.line, item.column, item.start, item.end)


class _Reader:
    """Collects the suppressions of one file."""

    def __init__(self, source: SourceFile, view: View) -> None:
        self.source = source
        self.view = view
        self.items: list[Suppression] = []
        self.malformed: list[Problem] = []
        self.open: list[Suppression] = []
        self.last_line = len(source.line_starts)
        self.directive_starts = [directive.start for directive in view.directives]

    def comments(self) -> Iterator[tuple[int, int]]:
        """All comments, those at the end of directives too."""
        data = self.source.data
        yield from self.view.comments
        for start, end, _ in self.view.directives:
            for match in _LITERAL_OR_COMMENT.finditer(data, start, end):
                if match[1] is not None:
                    yield match.span(1)

    def read(self, match: re.Match[bytes], start: int, end: int) -> None:
        verb = match["verb"]
        listed = match["list"] if verb is not None else match["names"]
        names = _names(listed.decode("utf-8", "replace").strip()) if listed is not None else ()
        if names is None or (verb is not None and verb not in _VERBS):
            self.complain("malformed", match)
            return
        if verb is None:
            ours = _ours(names)
            if names and not ours:
                return  # another tool's
            names = ours
        command = verb if verb is not None else (match["where"] or b"NOLINT")
        _VERBS[command](self, match, names, start, end)

    # -- commands

    def ignore(self, match: re.Match[bytes], names: tuple[str, ...], start: int, end: int) -> None:
        (self.next if self.is_alone(start, end) else self.same)(match, names, start, end)

    def same(self, match: re.Match[bytes], names: tuple[str, ...], start: int, end: int) -> None:
        line = self.source.position(match.start())[0]
        self.add("line", match, names, end, line, line)

    def next(self, match: re.Match[bytes], names: tuple[str, ...], start: int, end: int) -> None:
        self.add("next", match, names, end, *self.following(end))

    def file(self, match: re.Match[bytes], names: tuple[str, ...], start: int, end: int) -> None:
        self.add("file", match, names, end, 1, self.last_line)

    def disable(self, match: re.Match[bytes], names: tuple[str, ...], start: int, end: int) -> None:
        line = self.source.position(match.start())[0]
        self.open.append(self.add("region", match, names, end, line, self.last_line))

    def enable(self, match: re.Match[bytes], names: tuple[str, ...], start: int, end: int) -> None:
        """Ends the regions of the rules named (of all rules without a list)."""
        line = self.source.position(match.start())[0]
        for item in reversed(self.open):
            shared = set(item.rules) & set(names)
            if names and not shared:
                continue
            self.open.remove(item)
            item.last = line
            rest = tuple(name for name in item.rules if name not in shared) if names else ()
            if rest:
                item.rules = tuple(name for name in item.rules if name in shared)
                later = Suppression(
                    "region", rest, item.reason, item.line, item.column, item.start, item.end, item.first, self.last_line
                )
                self.items.append(later)
                self.open.append(later)

    def begin(self, match: re.Match[bytes], names: tuple[str, ...], start: int, end: int) -> None:
        self.disable(match, names, start, end)

    def finish_region(self, match: re.Match[bytes], names: tuple[str, ...], start: int, end: int) -> None:
        for item in reversed(self.open):
            if set(item.rules) == set(names):
                self.open.remove(item)
                item.last = self.source.position(match.start())[0]
                return
        self.complain("unmatched", match)

    def finish(self) -> None:
        for item in self.open:
            if self.source.data.startswith(b"NOLINTBEGIN", item.start):
                self.malformed.append(_problem("unmatched", item.rules, item))

    # -- helpers

    def add(self, kind: Kind, match: re.Match[bytes], names: tuple[str, ...], end: int, first: int, last: int) -> Suppression:
        line, column = self.source.position(match.start())
        stop = self.source.data.find(b"\n", match.end(), end)
        reason = self.source.text(match.end(), stop if stop >= 0 else end).removesuffix("*/").strip(" \t\r:-*/")
        item = Suppression(kind, names, reason, line, column, match.start(), match.end(), first, last)
        self.items.append(item)
        return item

    def complain(self, kind: ProblemKind, match: re.Match[bytes]) -> None:
        line, column = self.source.position(match.start())
        self.malformed.append(Problem(kind, (), line, column, match.start(), match.end()))

    def is_alone(self, start: int, end: int) -> bool:
        """Whether a comment shares no line with code or a directive."""
        data, code = self.source.data, self.view.code
        first = data.rfind(b"\n", 0, start) + 1
        last = data.find(b"\n", end)
        last = len(data) if last < 0 else last
        if _VISIBLE.search(code, first, last) is not None:
            return False
        index = bisect_right(self.directive_starts, last)
        return not any(directive.end > first for directive in self.view.directives[max(index - 1, 0) : index])

    def following(self, offset: int) -> tuple[int, int]:
        """First and last line of the statement (or header of a definition) after `offset`; pragmas before it belong to it."""
        code, data = self.view.code, self.source.data
        visible = _VISIBLE.search(code, offset)
        start = visible.start() if visible is not None else len(data)
        index = bisect_right(self.directive_starts, offset)
        first = min([start, *self.directive_starts[index : index + 1]])
        end, depth = start, 0
        for match in _STATEMENT_END.finditer(code, start):
            end = match.start()
            if match[0] in b"([":
                depth += 1
            elif match[0] in b")]":
                depth -= 1
            elif depth <= 0:
                break
        return self.source.position(first)[0], self.source.position(max(first, end))[0]


def _names(listed: str) -> tuple[str, ...] | None:
    """The words of a bracketed list, None if the list is empty or does not end."""
    if len(listed) < 2 or listed[-1] not in "])":
        return None
    return tuple(name.strip() for name in listed[1:-1].split(",") if name.strip()) or None


def _ours(names: tuple[str, ...]) -> tuple[str, ...]:
    """What a NOLINT list says about cudalint, without the prefix; a bare one says everything."""
    if not names:
        return ()
    globs = tuple("*" for name in names if name in ("*", "cudalint", "cudalint*"))
    return globs + tuple(name[len(_PREFIX) :] for name in names if name.startswith(_PREFIX) and len(name) > len(_PREFIX))


_VERBS = {
    b"ignore": _Reader.ignore,
    b"disable": _Reader.disable,
    b"enable": _Reader.enable,
    b"file-ignore": _Reader.file,
    b"NOLINT": _Reader.same,
    b"NEXTLINE": _Reader.next,
    b"BEGIN": _Reader.begin,
    b"END": _Reader.finish_region,
}
