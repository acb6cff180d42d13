"""The JSON of `check`, key by key as the contract has it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cudalint import __version__
from cudalint.report import View
from cudalint.report.json_ import render

from .conftest import FULL, Build, conflict


def parse(text: str) -> Any:
    assert text.endswith("}\n")
    return json.loads(text)


def test_everything_that_the_contract_has(build: Build) -> None:
    assert parse(render(build(conflict(**FULL)), View())) == {
        "version": 1,
        "tool": {"name": "cudalint", "version": __version__},
        "target_arch": ["sm_90"],
        "findings": [
            {
                "rule": "shared-bank-conflict",
                "code": "CU101",
                "severity": "warning",
                "certainty": "exact",
                "path": "k.cu",
                "range": {"start": {"line": 4, "column": 21}, "end": {"line": 4, "column": 51}},
                "kernel": "turn16",
                "message": "8-way bank conflict on `tile`",
                "facts": {"degree": 8, "wavefronts": 8, "ideal_wavefronts": 1},
                "cost": {"share": 0.3142, "low": 0.2, "high": 0.45, "resource": "shared-memory pipe", "rank": 1},
                "evidence": [
                    {
                        "path": "k.cu",
                        "range": {"start": {"line": 6, "column": 24}, "end": {"line": 6, "column": 33}},
                        "text": "block is 16x16 here",
                    }
                ],
                "fix": {
                    "applicability": "unsafe",
                    "title": "pad the rows of `tile` by 1",
                    "edits": [
                        {
                            "path": "k.cu",
                            "range": {"start": {"line": 3, "column": 24}, "end": {"line": 3, "column": 28}},
                            "text": "17][",
                        }
                    ],
                },
                "fingerprint": "print1",
                "suppressed": None,
            }
        ],
        "summary": {"files": 1, "kernels": 1, "parse_health": {"kernels_with_errors": 0}, "seconds": 0.42},
    }


def test_what_is_not_there_is_null(build: Build) -> None:
    (finding,) = parse(render(build(conflict(kernel=None)), View()))["findings"]
    assert (finding["cost"], finding["fix"], finding["kernel"], finding["evidence"]) == (None, None, None, [])


def test_suppressed_and_info_findings_are_listed(build: Build) -> None:
    from cudalint.finding import Severity

    result = build(conflict(suppressed="measured: harmless"), conflict(severity=Severity.INFO))
    findings = parse(render(result, View()))["findings"]
    assert [finding["suppressed"] for finding in findings] == ["measured: harmless", None]
    assert findings[1]["severity"] == "info"


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_numbers_that_json_does_not_have_are_null(build: Build, value: float) -> None:
    (finding,) = parse(render(build(conflict(facts={"n": value, "names": ["a"]})), View()))["findings"]
    assert finding["facts"] == {"n": None, "names": ["a"]}


def test_any_path_and_text_survives_any_stream(build: Build) -> None:
    text = render(build(conflict(message="\udcff \u2028 \x1b")), View())
    assert text.isascii()
    assert parse(text)["findings"][0]["message"] == "\udcff \u2028 \x1b"
