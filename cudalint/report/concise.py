"""One line a finding: "path:line:column: severity[rule] message"."""

from __future__ import annotations

from cudalint.report import View, shown
from cudalint.report.style import Style
from cudalint.report.text import header, summary
from cudalint.result import Result


def render(result: Result, view: View) -> str:
    """The report, ending in a newline unless empty."""
    style = Style(view.color)
    lines = [header(item, style) for item in shown(result, view)]
    if not view.quiet:
        lines.append(summary(result, style, view))
    return "".join(f"{line}\n" for line in lines)
