"""`explain` and `rule`: what a rule is about, from its metadata and docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any

from cudalint.finding import Certainty
from cudalint.report import View
from cudalint.report.json_ import dumps
from cudalint.report.style import Style
from cudalint.rule import SECTIONS, Rule, RuleMeta

_HEADING = re.compile(r"^#*\s*(.+?)\s*:?\s*#*$")
_UNDERLINE = re.compile(r"^(=+|-+|~+)$")


def sections(rule: Rule | type[Rule]) -> dict[str, str]:
    """The sections of a rule's docstring by title, in its order; what stands before the first has the title ""."""
    titles = {title.lower(): title for title in SECTIONS}
    found: dict[str, list[str]] = {"": []}
    current = ""
    fenced = False
    for line in inspect.cleandoc(vars(_class(rule)).get("__doc__") or "").splitlines():
        fenced ^= line.lstrip().startswith("```")
        match = None if fenced else _HEADING.match(line)
        title = titles.get(match[1].lower()) if match else None
        if title is not None and title not in found:
            current = title
            found[current] = []
        elif not (_UNDERLINE.match(line) and current and not found[current]):
            found[current].append(line)
    return {title: "\n".join(lines).strip("\n") for title, lines in found.items() if title or lines}


def _class(rule: Rule | type[Rule]) -> type[Rule]:
    return rule if isinstance(rule, type) else type(rule)


def render(rules: Sequence[Rule], view: View) -> str:
    """The pages of some rules for the terminal."""
    style = Style(view.color)
    return "\n".join(_page(rule, style) for rule in rules)


def render_list(rules: Sequence[Rule], view: View) -> str:
    """One line a rule."""
    style = Style(view.color)
    wide = max((len(rule.meta.name) for rule in rules), default=0)
    code = max((len(rule.meta.code) for rule in rules), default=0)
    return "".join(
        f"{rule.meta.code:<{code}}  {style('rule', f'{rule.meta.name:<{wide}}')}  {rule.meta.summary}{_off(rule.meta)}\n"
        for rule in rules
    )


def _off(meta: RuleMeta) -> str:
    return "" if meta.default else " (off)"


def _page(rule: Rule, style: Style) -> str:
    meta = rule.meta
    lines = [f"{style('rule', meta.name)} ({meta.code})", "", meta.summary, "", *_table(meta)]
    for title, text in sections(rule).items():
        if title and text:
            lines += ["", style("bold", title), *(f"  {line}".rstrip() for line in text.splitlines())]
    return "\n".join(lines) + "\n"


def _table(meta: RuleMeta) -> list[str]:
    rows = [
        ("family", meta.family),
        ("severity", _severities(meta)),
        ("default", "on" if meta.default else "off"),
        ("fix", meta.fix),
        ("status", f"{meta.status}, since {meta.since}"),
        ("applies to", _architectures(meta)),
        ("also known", ", ".join(meta.also_known_as)),
    ]
    return [f"  {label:<10}  {text}" for label, text in rows if text]


def _severities(meta: RuleMeta) -> str:
    """ "warning", or "error if exact, info if likely"."""
    if len(set(meta.severity.values())) == 1:
        return str(next(iter(meta.severity.values())))
    return ", ".join(f"{meta.severity[level]} if {level}" for level in sorted(Certainty, reverse=True) if level in meta.severity)


def _architectures(meta: RuleMeta) -> str:
    if meta.min_arch is None and meta.max_arch is None:
        return ""
    low = f"sm_{meta.min_arch}" if meta.min_arch else "any"
    return f"{low} to sm_{meta.max_arch}" if meta.max_arch else f"{low} and newer"


def document(rule: Rule) -> dict[str, Any]:
    """The page as plain data."""
    meta = rule.meta
    return {
        "name": meta.name,
        "code": meta.code,
        "family": meta.family,
        "summary": meta.summary,
        "severity": {str(certainty): str(severity) for certainty, severity in sorted(meta.severity.items(), reverse=True)},
        "status": meta.status,
        "since": meta.since,
        "fix": meta.fix,
        "default": meta.default,
        "min_arch": meta.min_arch,
        "max_arch": meta.max_arch,
        "also_known_as": list(meta.also_known_as),
        "mentions": list(meta.mentions),
        "sections": {title: text for title, text in sections(rule).items() if title},
    }


def render_json(rules: Sequence[Rule]) -> str:
    """The pages as a JSON list."""
    return dumps([document(rule) for rule in rules])
