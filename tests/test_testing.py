"""The test kit: expectations are read, cases run, and wrong ones are told apart from right ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from cudalint import registry, testing
from cudalint.finding import Certainty, Edit, Finding, Fix, Location, Severity
from cudalint.rule import Example, KernelFacts, Rule, RuleMeta
from cudalint.testing import (
    Case,
    Expectation,
    assert_case,
    assert_documented,
    check_source,
    expectations,
    fixture_cases,
    rule_cases,
)


def source(threads: int, comment: str = "") -> str:
    text = "__global__ void k(float* a) { a[threadIdx.x] = 1.0f; }" + comment
    return text + "\nvoid f(float* a) { k<<<1, " + str(threads) + ">>>(a); }\n"


class BigBlock(Rule):
    """Reports blocks of more than 512 threads, and would make them smaller by renaming the kernel."""

    meta: ClassVar[RuleMeta] = RuleMeta(
        "big-block", "TT401", "launch", "a big block", {Certainty.EXACT: Severity.WARNING}, "0.1.0", default=False
    )
    VALID: ClassVar[tuple[Example, ...]] = (Example(source(512)), Example(source(64), title="Small: it is fine"))
    INVALID: ClassVar[tuple[Example, ...]] = (
        Example(
            source(1024, "  // expect: big-block threads=1024 severity=warning certainty=exact"),
            fixed="// fixed\n" + source(1024, "  // expect: big-block threads=1024 severity=warning certainty=exact"),
        ),
    )

    def check_kernel(self, kernel: KernelFacts) -> Iterable[Finding]:
        block = kernel.launch.block
        if block and block[0] * block[1] * block[2] > 512:
            threads = block[0] * block[1] * block[2]
            start = Location(kernel.location.path, 0, 0)
            fix = Fix("say so", (Edit(start, "// fixed\n"),))
            yield self.finding(
                kernel.location, "big", Certainty.EXACT, kernel=kernel, facts={"threads": threads, "ratio": threads / 3}, fix=fix
            )


def case(code: str, **changes: object) -> Case:
    return Case("a-case", code, (BigBlock,), **changes)  # type: ignore[arg-type]


def failure(wrong: Case) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_case(wrong)
    return str(caught.value)


# --------------------------------------------------------------------- expectations


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x;  // expect: a-rule", [("a-rule", {})]),
        ("x;  // expect: a-rule degree=8 limiter=registers", [("a-rule", {"degree": "8", "limiter": "registers"})]),
        ("x;  // expect: a-rule degree=8; b-rule", [("a-rule", {"degree": "8"}), ("b-rule", {})]),
        ("x /* expect: a-rule */ \\", [("a-rule", {})]),
        ("x = 1  # expect: a-rule", [("a-rule", {})]),
        ("x;  // as we expect: nothing", []),
        ("x;  //expect:a-rule\r", [("a-rule", {})]),
    ],
)
def test_expect_comments(line: str, expected: list[tuple[str, dict[str, str]]]) -> None:
    assert expectations(f"\n{line}\n") == [Expectation(rule, 2, facts) for rule, facts in expected]


def test_an_expect_comment_that_cannot_be_read() -> None:
    with pytest.raises(ValueError, match=r"^line 1: expect: rule-name \[fact=value …\], got 'a-rule degree 8'"):
        expectations("// expect: a-rule degree 8")


# ----------------------------------------------------------------------- assertions


@pytest.mark.parametrize("example", rule_cases([BigBlock]), ids=str)
def test_examples_of_a_right_rule_pass(example: Case) -> None:
    assert_case(example)


def test_names_of_cases() -> None:
    assert [str(case) for case in rule_cases([BigBlock])] == [
        "big-block-valid-1",
        "big-block-valid-2-small-it-is-fine",
        "big-block-invalid-1",
    ]


def test_a_missing_finding_fails() -> None:
    assert "line 1: big-block expected, not reported" in failure(case(source(64, "  // expect: big-block")))


def test_a_finding_that_nobody_expects_fails() -> None:
    assert "line 1: big-block reported, not expected: big" in failure(case(source(1024)))


def test_a_finding_on_another_line_fails() -> None:
    message = failure(case("// expect: big-block\n" + source(1024)))
    assert "line 1: big-block expected, not reported" in message
    assert "line 2: big-block reported, not expected" in message


def test_one_finding_does_not_meet_two_expectations() -> None:
    assert "line 1: big-block expected, not reported" in failure(case(source(1024, "  // expect: big-block; big-block")))


@pytest.mark.parametrize(
    ("facts", "complaint"),
    [
        ("threads=512", "threads is 1024, expected 512"),
        ("thread=1024", "thread is missing, expected 1024"),
        ("severity=error", "severity is warning, expected error"),
        ("threads=many", "threads is 1024, expected many"),
    ],
)
def test_a_wrong_number_fails(facts: str, complaint: str) -> None:
    assert failure(case(source(1024, f"  // expect: big-block {facts}"))) == f"a-case:1: big-block: {complaint}"


def test_numbers_with_fractions_are_compared_to_three_digits() -> None:
    assert_case(case(source(1024, "  // expect: big-block ratio=341.3")))
    assert "ratio is" in failure(case(source(1024, "  // expect: big-block ratio=340")))


def test_a_source_that_does_not_parse_fails() -> None:
    assert failure(case("__global__ void k(float* a) { a[ = 1; }\n")) == "a-case: the source has a syntax error"


def test_a_rule_that_raises_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Rule, kernel: KernelFacts) -> Iterable[Finding]:
        raise KeyError("x")

    monkeypatch.setattr(BigBlock, "check_kernel", broken)
    assert "KeyError: 'x'" in failure(case(source(1024)))


def test_a_wrong_fix_fails() -> None:
    assert failure(case(source(1024, "  // expect: big-block"), fixed="other")).startswith(
        "a-case: the fixes give\n// fixed\n__global__"
    )


def test_examples_that_test_nothing_fail() -> None:
    assert (
        failure(Case("big-block-invalid-1", source(64), (BigBlock,)))
        == "big-block-invalid-1: an invalid example needs a line with // expect: big-block"
    )
    marked = Case("big-block-valid-1", source(1024, "  // expect: big-block"), (BigBlock,))
    assert failure(marked) == "big-block-valid-1: a valid example cannot expect big-block"


def test_a_rule_without_documentation_fails() -> None:
    with pytest.raises(AssertionError, match="BigBlock: the docstring has no section What it does, Why it matters"):
        assert_documented(BigBlock)


def test_overlapping_fixes_are_not_mixed() -> None:
    code = source(1024) + source(1024).replace("k", "other").replace("f(", "g(")
    result = check_source(code, rules=[BigBlock])
    assert len(result.findings) == 2
    assert testing.apply_fixes(code, result) == "// fixed\n" + code


# ----------------------------------------------------------------------- check_source


def test_rules_that_are_off_by_default_run_when_they_are_given() -> None:
    assert [item.finding.rule for item in check_source(source(1024), rules=[BigBlock]).findings] == ["big-block"]
    assert check_source(source(1024), rules=registry.of_classes([BigBlock])).findings == ()


def test_further_files_and_options() -> None:
    result = check_source(
        '#include "n.h"\n' + source(1).replace("1>>>", "N * M>>>"),
        rules=[BigBlock],
        files={"n.h": "#define N 64\n"},
        options={"defines": ["M=16"]},
        target_arch="sm_90",
    )
    assert [item.finding.facts["threads"] for item in result.findings] == [1024]
    assert result.target_arch == ("sm_90",)


def test_texts_are_at_hand_after_the_folder_is_gone() -> None:
    result = check_source(source(1024), rules=[BigBlock])
    location = result.findings[0].finding.location
    assert not Path(location.path).exists()
    assert result.sources.get(location.path).line(1).startswith("__global__")


# ---------------------------------------------------------------------------- fixtures


def test_fixtures_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "sub" / "inc").mkdir(parents=True)
    directive = "// cudalint-test: select=big-block target-arch=sm_70,sm_90 assume-block=16,4\n"
    (tmp_path / "sub" / "a.cu").write_text(directive + source(64))
    (tmp_path / "sub" / "inc" / "h.cuh").write_text("// header\n")
    (tmp_path / "b.cu").write_text(source(64))
    (tmp_path / "notes.md").write_text("")
    alone, first, header = fixture_cases(tmp_path)
    assert (str(alone), alone.options, alone.rules, alone.files) == ("b.cu", {}, None, {})
    assert (str(first), first.filename, first.files) == ("sub/a.cu", "sub/a.cu", {"sub/inc/h.cuh": "// header\n"})
    assert first.options == {"select": ["big-block"], "target-arch": ["sm_70", "sm_90"], "assume-block": [16, 4]}
    assert str(header) == "sub/inc/h.cuh"


def test_each_file_of_a_project_answers_for_itself(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    header = source(64).split("\n")[0] + "  // expect: big-block threads=1024\n"
    launch = '#include "k.cuh"\n' + source(1024).split("\n")[1] + "\n"
    (tmp_path / "p" / "k.cuh").write_text(header)
    (tmp_path / "p" / "a.cu").write_text(launch)
    cases = [replace(case, rules=(BigBlock,)) for case in fixture_cases(tmp_path)]
    assert [str(case) for case in cases] == ["p/a.cu", "p/k.cuh"]
    for item in cases:
        assert_case(item)
    assert "expected, not reported" in failure(replace(cases[1], files={}))


def test_a_fixture_without_directive_runs_with_the_default_selection(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(source(64))
    (tmp_path / "b.cu").write_text(source(64, "  // expect: shared-bank-conflict"))
    good, bad = fixture_cases(tmp_path)
    assert_case(good)
    assert "shared-bank-conflict expected, not reported" in failure(bad)
