"""Renderers, one a file; each has `render(result, view) -> str` and is imported only when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

from cudalint.finding import Severity
from cudalint.result import Reported, Result

FORMATS = {
    "text": "cudalint.report.text",
    "concise": "cudalint.report.concise",
    "json": "cudalint.report.json_",
}
"""Formats of `check` and the modules that render them."""


@dataclass(frozen=True, slots=True)
class View:
    """How a report is to look.

    color      with ANSI escapes
    width      columns of the terminal, for cropping source lines
    show_info  findings of severity info too, in formats without levels
    quiet      findings only, no summary
    verbose    with the facts of each finding
    """

    color: bool = False
    width: int = 120
    show_info: bool = False
    quiet: bool = False
    verbose: bool = False


class Renderer(Protocol):
    """A module that renders the result of `check`."""

    def render(self, result: Result, view: View) -> str:
        """The report, ending in a newline unless empty."""


def renderer(name: str) -> Renderer:
    """The renderer of a format in `FORMATS`.  Raises `KeyError`."""
    module: Renderer = import_module(FORMATS[name])
    return module


def shown(result: Result, view: View) -> Sequence[Reported]:
    """The findings that a format without levels prints."""
    least = Severity.INFO if view.show_info else Severity.WARNING
    return [item for item in result.active if item.finding.severity >= least]


def plural(count: int, noun: str, many: str = "") -> str:
    """ "1 file", "2 files"; `many` where the plural takes more than an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {many or f'{noun}s'}"
