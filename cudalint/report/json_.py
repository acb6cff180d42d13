"""`check` as JSON, version 1: lines and columns 1-based, columns in code points, `end` exclusive."""

from __future__ import annotations

import json
import math
from typing import Any

from cudalint import __version__
from cudalint.finding import Evidence, Fact, Fix, Location
from cudalint.report import View
from cudalint.result import Position, Reported, Result, Sources

VERSION = 1


def render(result: Result, view: View) -> str:  # noqa: ARG001 (every renderer takes both)
    """The report, ending in a newline."""
    return dumps(document(result))


def dumps(value: Any) -> str:
    """JSON in ASCII (any path survives any pipe), ending in a newline."""
    return json.dumps(value, indent=2, allow_nan=False) + "\n"


def document(result: Result) -> dict[str, Any]:
    """The report as plain data."""
    return {
        "version": VERSION,
        "tool": {"name": "cudalint", "version": __version__},
        "target_arch": list(result.target_arch),
        "findings": [_finding(item, result.sources) for item in result.findings],
        "summary": {
            "files": len(result.files),
            "kernels": result.kernels,
            "parse_health": {"kernels_with_errors": result.kernels_with_errors},
            "seconds": round(result.seconds, 3),
        },
    }


def span(start: Position, end: Position) -> dict[str, dict[str, int]]:
    """A range."""
    return {"start": {"line": start[0], "column": start[1]}, "end": {"line": end[0], "column": end[1]}}


def _finding(item: Reported, sources: Sources) -> dict[str, Any]:
    finding = item.finding
    return {
        "rule": finding.rule,
        "code": finding.code,
        "severity": str(finding.severity),
        "certainty": str(finding.certainty),
        "path": finding.location.path,
        "range": span(item.start, item.end),
        "kernel": finding.kernel,
        "message": finding.message,
        "facts": {name: _finite(value) for name, value in finding.facts.items()},
        "cost": _cost(item),
        "evidence": [_evidence(evidence, sources) for evidence in finding.evidence],
        "fix": _fix(finding.fix, sources) if finding.fix else None,
        "fingerprint": item.fingerprint,
        "suppressed": finding.suppressed,
    }


def _finite(value: Fact) -> Fact | None:
    """JSON has no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cost(item: Reported) -> dict[str, Any] | None:
    cost = item.finding.cost
    if cost is None:
        return None
    shares = {"share": round(cost.share, 4), "low": round(cost.low, 4), "high": round(cost.high, 4)}
    return {**shares, "resource": cost.resource, "rank": item.rank}


def _place(location: Location, sources: Sources) -> dict[str, Any]:
    return {"path": location.path, "range": span(*sources.span(location))}


def _evidence(evidence: Evidence, sources: Sources) -> dict[str, Any]:
    return {**_place(evidence.location, sources), "text": evidence.text}


def _fix(fix: Fix, sources: Sources) -> dict[str, Any]:
    edits = [{**_place(edit.location, sources), "text": edit.text} for edit in fix.edits]
    return {"applicability": fix.applicability, "title": fix.title, "edits": edits}
