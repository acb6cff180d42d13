"""The report for people: each finding with its source line, its price, its evidence and what to do; then a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cudalint.finding import Certainty, Cost, Edit, Evidence, Fact, Finding
from cudalint.report import View, plural, shown
from cudalint.report.excerpt import excerpt
from cudalint.report.style import Style, safe
from cudalint.result import Reported, Result

_LABEL = 9
"""Width of the labels below a finding."""


def render(result: Result, view: View) -> str:
    """The report, ending in a newline unless empty."""
    style = Style(view.color)
    blocks = ["\n".join(_finding(item, result, style, view)) + "\n" for item in shown(result, view)]
    if not view.quiet:
        blocks.append(summary(result, style, view) + "\n")
    return "\n".join(blocks)


def summary(result: Result, style: Style, view: View) -> str:
    """One line: findings by severity, suppressed ones, files, kernels, seconds."""
    findings = shown(result, view)
    counts = Counter(item.finding.severity for item in findings)
    parts = [style(str(severity), plural(counts[severity], str(severity))) for severity in sorted(counts, reverse=True)]
    said = style("bold", plural(len(findings), "finding")) if findings else style("good", "No findings")
    scope = f"in {plural(len(result.files), 'file')}, {plural(result.kernels, 'kernel')}"
    severities = f" ({', '.join(parts)})" if parts else ""
    more = [*_hidden(result, view), *_parse_health(result), f"{result.seconds:.1f} s"]
    return "; ".join([f"{said}{severities} {scope}", *more])


def _hidden(result: Result, view: View) -> Iterator[str]:
    hidden = len(result.active) - len(shown(result, view))
    if hidden:
        yield f"{hidden} of severity info not shown (--show-info)"
    suppressed = len(result.findings) - len(result.active)
    if suppressed:
        yield f"{suppressed} suppressed"


def _parse_health(result: Result) -> Iterator[str]:
    if result.kernels_with_errors:
        yield f"{plural(result.kernels_with_errors, 'kernel')} with syntax that was not understood"


def _finding(item: Reported, result: Result, style: Style, view: View) -> Iterator[str]:
    finding = item.finding
    yield header(item, style)
    source = result.sources.get(finding.location.path)
    yield from excerpt(source, item.start, item.end, style, view.width, str(finding.severity))
    yield from (_labelled(label, text, style) for label, text in _details(finding, result, view))


def header(item: Reported, style: Style) -> str:
    """ "path:line:column: severity[rule] message"."""
    finding = item.finding
    place = style("path", f"{safe(finding.location.path)}:{item.start[0]}:{item.start[1]}:")
    severity = style(str(finding.severity), str(finding.severity))
    return f"{place} {severity}[{style('rule', finding.rule)}] {safe(finding.message)}"


def _labelled(label: str, text: str, style: Style) -> str:
    return f"   {style('help' if label == 'help' else 'dim', f'{label:<{_LABEL}}')} {safe(text)}"


def _details(finding: Finding, result: Result, view: View) -> Iterator[tuple[str, str]]:
    """What stands below the source line, as (label, text)."""
    if finding.cost is not None:
        yield "cost", cost_text(finding.cost, finding.kernel)
    if finding.facts and view.verbose:
        yield "facts", ", ".join(fact_text(name, value) for name, value in finding.facts.items())
    if finding.certainty < Certainty.EXACT or finding.assumptions or view.verbose:
        yield "certainty", _certainty(finding)
    for item in finding.evidence:
        yield "because", _evidence(item, result)
    if finding.advice:
        yield "help", finding.advice
    if finding.fix is not None:
        yield "fix", "; ".join([finding.fix.title, *(_edit(edit, result) for edit in finding.fix.edits)])


def _certainty(finding: Finding) -> str:
    assumed = "; ".join(finding.assumptions)
    return f"{finding.certainty}, assuming: {assumed}" if assumed else str(finding.certainty)


def _evidence(item: Evidence, result: Result) -> str:
    (line, column), _ = result.sources.span(item.location)
    return f"{item.location.path}:{line}:{column}: {item.text}"


def _edit(edit: Edit, result: Result) -> str:
    """ "k.cu:3:27: `16` becomes `17`"."""
    (line, column), _ = result.sources.span(edit.location)
    old = result.sources.get(edit.location.path).data[edit.location.start : edit.location.end].decode("utf-8", "replace")
    place = f"{edit.location.path}:{line}:{column}:"
    return f"{place} `{old}` becomes `{edit.text}`" if old else f"{place} insert `{edit.text}`"


def cost_text(cost: Cost, kernel: str | None) -> str:
    """ "about 31 % of the time of turn16 (20-45 %), shared-memory pipe"."""
    owner = kernel or "the kernel"
    share, low, high = (round(100 * value) for value in (cost.share, cost.low, cost.high))
    amount = f"about {share} %" if share else "under 1 %"
    spread = "" if low == high else f" ({low}-{high} %)" if share else f" (up to {high} %)"
    return f"{amount} of the time of {owner}{spread}, {cost.resource}"


def fact_text(name: str, value: Fact) -> str:
    """ "ideal wavefronts 1"."""
    if isinstance(value, bool):
        shown_value = "yes" if value else "no"
    elif isinstance(value, float):
        shown_value = f"{value:.6g}"
    elif isinstance(value, list):
        shown_value = " and ".join(value)
    else:
        shown_value = str(value)
    return f"{name.replace('_', ' ')} {shown_value}"
