"""Source lines with the reported range underlined."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from cudalint.report.style import Style, safe
from cudalint.source.text import SourceFile

TAB = 4
_REACH = 4
"""Characters looked at on either side of the start of a range, per column that there is."""
_WIDE = frozenset("WF")
_ZERO = frozenset({"Mn", "Me", "Cf"})


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    width: int


def excerpt(source: SourceFile, start: tuple[int, int], end: tuple[int, int], style: Style, width: int, role: str) -> list[str]:
    """The first line of a range under its number, with carets below, cropped to `width` terminal columns.

    The gutter is as wide as the number; a range that goes on below says to which line.
    """
    line = start[0]
    number = str(line)
    gutter = " " * len(number)
    text = source.line(line).rstrip()
    last = end[1] - 1 if end[0] == line else len(text)
    note = f" to line {end[0]}" if end[0] > line and end[1] > 1 else ""
    limit = max(width - len(number) - 5, 20)
    left = max(start[1] - 1 - _REACH * limit, 0)  # generated code has lines of a megabyte
    cells = _cells(text[left : left + 2 * _REACH * limit])
    shown, offset, length = _crop(cells, start[1] - 1 - left, last - left, limit)
    carets = " " * offset + style(role, "^" * length) + style("dim", note)
    bar = style("dim", "|")
    return [f" {style('dim', number)} {bar} {shown}".rstrip(), f" {gutter} {bar} {carets}"]


def _cells(text: str) -> list[_Cell]:
    """Each character as it is shown, with its width in columns."""
    cells = []
    column = 0
    for character in text:
        if character == "\t":
            cell = _Cell(" " * (TAB - column % TAB), TAB - column % TAB)
        else:
            cell = _Cell(safe(character), _width(character))
        cells.append(cell)
        column += cell.width
    return cells


def _width(character: str) -> int:
    if character.isascii() or safe(character) != character:
        return 1
    if unicodedata.category(character) in _ZERO:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1


def _crop(cells: list[_Cell], first: int, last: int, limit: int) -> tuple[str, int, int]:
    """The text that fits into `limit` columns around the characters from `first` to `last`; column and length of the carets."""
    first = min(first, len(cells))
    last = min(max(last, first), len(cells))
    left, right = 0, len(cells)
    if _columns(cells) > limit:
        left = _back(cells, first, limit // 4) if _columns(cells[:last]) > limit - 1 else 0
        right = _forward(cells, left, limit - 2)
    shown = ("…" if left else "") + "".join(cell.text for cell in cells[left:right]) + ("…" if right < len(cells) else "")
    offset = (1 if left else 0) + _columns(cells[left:first])
    return shown, offset, max(1, _columns(cells[first : min(last, right)]))


def _columns(cells: list[_Cell]) -> int:
    return sum(cell.width for cell in cells)


def _back(cells: list[_Cell], index: int, columns: int) -> int:
    """The index at most `columns` columns before `index`."""
    while index > 0 and cells[index - 1].width <= columns:
        index -= 1
        columns -= cells[index].width
    return index


def _forward(cells: list[_Cell], index: int, columns: int) -> int:
    """The index at most `columns` columns after `index`."""
    while index < len(cells) and cells[index].width <= columns:
        columns -= cells[index].width
        index += 1
    return index
