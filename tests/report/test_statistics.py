"""Findings counted by rule."""

from __future__ import annotations

import json

from cudalint.finding import Severity
from cudalint.report import View, statistics

from .conftest import FULL, Build, conflict


def test_the_most_frequent_rule_comes_first(build: Build) -> None:
    other = conflict(rule="slow-math", code="CU507", severity=Severity.INFO)
    result = build(other, conflict(), conflict(**FULL), conflict(suppressed="x"))
    assert (
        statistics.render(result, View(show_info=True))
        == """\
2  CU101  shared-bank-conflict  [*]
1  CU507  slow-math
[*] a fix is known
3 findings (2 warnings, 1 info) in 1 file, 1 kernel; 1 suppressed; 0.4 s
"""
    )
    assert json.loads(statistics.render_json(result)) == [
        {"rule": "shared-bank-conflict", "code": "CU101", "severity": "warning", "count": 2, "fixable": 1},
        {"rule": "slow-math", "code": "CU507", "severity": "info", "count": 1, "fixable": 0},
    ]


def test_nothing_to_count(build: Build) -> None:
    assert statistics.render(build(), View(quiet=True)) == ""
    assert json.loads(statistics.render_json(build())) == []
