"""`check --statistics`: findings counted by rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cudalint.finding import Severity
from cudalint.report import View, shown
from cudalint.report.json_ import dumps
from cudalint.report.style import Style
from cudalint.report.text import summary
from cudalint.result import Reported, Result


@dataclass(frozen=True, slots=True)
class Count:
    """How often a rule reported; `fixable` of them carry a fix."""

    rule: str
    code: str
    severity: Severity
    count: int
    fixable: int


def counts(findings: Sequence[Reported]) -> list[Count]:
    """One entry per rule, the most frequent first."""
    groups: dict[str, list[Reported]] = {}
    for item in findings:
        groups.setdefault(item.finding.rule, []).append(item)
    return sorted((_count(group) for group in groups.values()), key=lambda count: (-count.count, count.rule))


def _count(group: list[Reported]) -> Count:
    first = group[0].finding
    worst = max(item.finding.severity for item in group)
    return Count(first.rule, first.code, worst, len(group), sum(item.finding.fix is not None for item in group))


def render(result: Result, view: View) -> str:
    """A table: count, code, rule, "[*]" where a fix is known."""
    style = Style(view.color)
    rows = counts(shown(result, view))
    wide = max((len(str(row.count)) for row in rows), default=0)
    code = max((len(row.code) for row in rows), default=0)
    lines = [
        f"{row.count:>{wide}}  {row.code:<{code}}  {style(str(row.severity), row.rule)}{'  [*]' if row.fixable else ''}"
        for row in rows
    ]
    if any(row.fixable for row in rows):
        lines.append(style("dim", "[*] a fix is known"))
    if not view.quiet:
        lines.append(summary(result, style, view))
    return "".join(f"{line}\n" for line in lines)


def render_json(result: Result) -> str:
    """The same as a JSON list, findings of every severity counted."""
    rows = counts(result.active)
    return dumps(
        [
            {"rule": row.rule, "code": row.code, "severity": str(row.severity), "count": row.count, "fixable": row.fixable}
            for row in rows
        ]
    )
