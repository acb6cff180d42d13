"""Pages of rules, from metadata and docstring."""

from __future__ import annotations

import json
from typing import ClassVar

from cudalint.finding import Certainty, Severity
from cudalint.report import View, explain
from cudalint.rule import Rule, RuleMeta


class Sample(Rule):
    """One sentence.

    More.

    ## What it does
    Reports things.

        indented

    Why it matters
    --------------
    It is slow.

    Example:
    ```cuda
    # Limits
    k<<<1, 1>>>();
    ```

    ## Limits

    ## Not a section of rules
    stays part of the limits
    """

    meta: ClassVar[RuleMeta] = RuleMeta(
        name="sample-rule",
        code="XX101",
        family="memory",
        summary="a sample",
        severity={Certainty.LIKELY: Severity.INFO, Certainty.EXACT: Severity.ERROR},
        since="0.1.0",
        min_arch=70,
        also_known_as=("Other Name",),
        default=False,
    )


class Bare(Rule):
    meta: ClassVar[RuleMeta] = RuleMeta(
        "bare", "XX102", "host", "nothing said", {Certainty.EXACT: Severity.INFO}, "0.2.0", max_arch=89
    )


def test_sections_in_every_usual_form() -> None:
    assert explain.sections(Sample) == {
        "": "One sentence.\n\nMore.",
        "What it does": "Reports things.\n\n    indented",
        "Why it matters": "It is slow.",
        "Example": "```cuda\n# Limits\nk<<<1, 1>>>();\n```",
        "Limits": "## Not a section of rules\nstays part of the limits",
    }


def test_a_rule_without_docstring_does_not_show_that_of_its_base() -> None:
    assert explain.sections(Bare()) == {}


def test_a_page() -> None:
    assert (
        explain.render([Sample()], View())
        == """\
sample-rule (XX101)

a sample

  family      memory
  severity    error if exact, info if likely
  default     off
  fix         none
  status      stable, since 0.1.0
  applies to  sm_70 and newer
  also known  Other Name

What it does
  Reports things.

      indented

Why it matters
  It is slow.

Example
  ```cuda
  # Limits
  k<<<1, 1>>>();
  ```

Limits
  ## Not a section of rules
  stays part of the limits
"""
    )
    assert "  applies to  any to sm_89\n" in explain.render([Bare()], View())


def test_the_list() -> None:
    expected = "XX101  sample-rule  a sample (off)\nXX102  bare         nothing said\n"
    assert explain.render_list([Sample(), Bare()], View()) == expected


def test_json_holds_every_field_of_the_metadata() -> None:
    import dataclasses

    (page,) = json.loads(explain.render_json([Sample()]))
    assert set(page) == {field.name for field in dataclasses.fields(RuleMeta)} | {"sections"}
    assert page["severity"] == {"exact": "error", "likely": "info"}
    assert page["sections"]["Why it matters"] == "It is slow."
