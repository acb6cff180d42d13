"""The report for people, character by character."""

from __future__ import annotations

from cudalint.finding import Certainty, Cost, Edit, Evidence, Fix, Location, Severity
from cudalint.report import View, concise, renderer, text
from cudalint.report.text import cost_text, fact_text

from .conftest import FULL, Build, conflict, locate

SUMMARY = "1 finding (1 warning) in 1 file, 1 kernel; 0.4 s\n"


def test_a_finding_with_everything(build: Build) -> None:
    assert (
        text.render(build(conflict(**FULL)), View())
        == """\
k.cu:4:21: warning[shared-bank-conflict] 8-way bank conflict on `tile`
 4 |     out[threadIdx.x] = tile[threadIdx.x][threadIdx.y];
   |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   cost      about 31 % of the time of turn16 (20-45 %), shared-memory pipe
   certainty exact, assuming: out is aligned
   because   k.cu:6:24: block is 16x16 here
   help      rows 1 element longer
   fix       pad the rows of `tile` by 1; k.cu:3:24: `16][` becomes `17][`

"""
        + SUMMARY
    )


def test_findings_are_apart_and_counted_by_severity(build: Build) -> None:
    findings = (conflict(severity=Severity.ERROR), conflict(facts={}), conflict(facts={}))
    lines = text.render(build(*findings), View()).split("\n")
    assert lines.count("") == 4
    assert lines[-2] == "3 findings (1 error, 2 warnings) in 1 file, 1 kernel; 0.4 s"


def test_nothing_found(build: Build) -> None:
    assert text.render(build(files=("a.cu", "b.cu"), kernels=0), View()) == "No findings in 2 files, 0 kernels; 0.4 s\n"


def test_info_findings_are_hidden_but_not_silently(build: Build) -> None:
    result = build(conflict(severity=Severity.INFO))
    assert text.render(result, View()) == "No findings in 1 file, 1 kernel; 1 of severity info not shown (--show-info); 0.4 s\n"
    assert text.render(result, View(show_info=True)).startswith("k.cu:4:21: info[shared-bank-conflict]")


def test_suppressed_findings_and_parse_errors_are_counted(build: Build) -> None:
    result = build(conflict(suppressed="reason"), kernels=2, kernels_with_errors=1)
    expected = "No findings in 1 file, 2 kernels; 1 suppressed; 1 kernel with syntax that was not understood; 0.4 s\n"
    assert text.render(result, View()) == expected


def test_quiet_leaves_out_the_summary(build: Build) -> None:
    assert text.render(build(), View(quiet=True)) == ""
    assert "1 finding" not in text.render(build(conflict()), View(quiet=True))
    assert concise.render(build(), View(quiet=True)) == ""


def test_concise_is_one_line_a_finding(build: Build) -> None:
    expected = "k.cu:4:21: warning[shared-bank-conflict] 8-way bank conflict on `tile`\n" + SUMMARY
    assert concise.render(build(conflict(**FULL)), View()) == expected


def test_colour_changes_nothing_but_escapes(build: Build) -> None:
    import re

    result = build(conflict(**FULL))
    colored = text.render(result, View(color=True))
    assert "\x1b[1;33mwarning\x1b[0m" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == text.render(result, View())


def test_text_from_files_cannot_change_the_terminal(build: Build) -> None:
    finding = conflict(message="a\x1b[31mb\rc\u202ed", evidence=(Evidence(locate("turn16<<<"), "x\x07y"),))
    shown = text.render(build(finding, source="\x1b]0;title\x07 x\n" * 8), View())
    assert not set(shown) & {"\x1b", "\r", "\x07", "\u202e"}
    assert "a\ufffd[31mb\ufffdc\ufffdd" in shown


def test_evidence_in_another_file_names_it(build: Build) -> None:
    finding = conflict(evidence=(Evidence(Location("other.cuh", 0, 1), "declared here"),))
    assert "   because   other.cuh:1:1: declared here\n" in text.render(build(finding), View())


def test_costs_are_orders_of_magnitude() -> None:
    assert cost_text(Cost(0.5, 0.5, 0.5, "issue slots"), None) == "about 50 % of the time of the kernel, issue slots"
    assert cost_text(Cost(0.001, 0.0, 0.004, "latency"), "k") == "under 1 % of the time of k, latency"
    assert cost_text(Cost(0.001, 0.0, 0.15, "latency"), "k") == "under 1 % of the time of k (up to 15 %), latency"
    assert cost_text(Cost(0.014, 0.0, 0.026, "latency"), "k") == "about 1 % of the time of k (0-3 %), latency"


def test_facts_in_words() -> None:
    assert fact_text("mean_wavefronts", 4.500000001) == "mean wavefronts 4.5"
    assert fact_text("counted", True) == "counted yes"
    assert fact_text("limiters", ["registers", "warps"]) == "limiters registers and warps"


def test_certainty_without_assumptions(build: Build) -> None:
    """Exact findings need no word about it."""
    assert "   certainty likely\n" in text.render(build(conflict(certainty=Certainty.LIKELY)), View())
    assert "certainty" not in text.render(build(conflict()), View())


def test_facts_only_if_verbose(build: Build) -> None:
    assert "facts" not in text.render(build(conflict()), View())
    shown = text.render(build(conflict()), View(verbose=True))
    assert "   facts     degree 8, wavefronts 8, ideal wavefronts 1\n   certainty exact\n" in shown


def test_a_fix_that_inserts(build: Build) -> None:
    at = locate("16][").start
    fix = Fix("mark it", (Edit(Location("k.cu", at, at), "/**/"),))
    assert "   fix       mark it; k.cu:3:24: insert `/**/`\n" in text.render(build(conflict(fix=fix)), View())


def test_renderers_by_name(build: Build) -> None:
    assert renderer("concise") is concise
