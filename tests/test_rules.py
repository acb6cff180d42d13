"""Every built-in rule: its documentation, its examples, and the fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudalint import registry
from cudalint.rule import Rule
from cudalint.testing import Case, assert_case, assert_documented, fixture_cases, rule_cases

RULES = [type(rule) for rule in registry.load(plugins=False).rules]
FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.meta.name)
def test_documentation(rule: type[Rule]) -> None:
    assert_documented(rule)


@pytest.mark.parametrize("case", rule_cases(RULES), ids=str)
def test_examples(case: Case) -> None:
    assert_case(case)


@pytest.mark.parametrize("case", fixture_cases(FIXTURES), ids=str)
def test_fixtures(case: Case) -> None:
    assert_case(case)
