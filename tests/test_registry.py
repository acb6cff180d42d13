"""Rules are found by entry points, validated, looked up and selected."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from cudalint import registry
from cudalint.config import ConfigError, Resolver
from cudalint.registry import Registry
from cudalint.rule import FAMILIES, Certainty, Family, Rule, RuleMeta, Severity

Plugin = Callable[..., None]


def rule(name: str, code: str, family: Family = "memory", **changes: Any) -> type[Rule]:
    meta = RuleMeta(name, code, family, "a rule", {Certainty.EXACT: Severity.WARNING}, "0.1.0", **changes)
    return type(name.title().replace("-", ""), (Rule,), {"meta": meta, "__doc__": "A rule."})


RULES = registry.of_classes(
    [
        rule("slow-copy", "CU102"),
        rule("bank-conflict", "CU101"),
        rule("odd-branch", "CU201", "divergence"),
        rule("pedantic-branch", "CU202", "divergence", default=False),
        rule("own-rule", "MY101", "host"),
    ]
)


def selected(**overrides: list[str]) -> list[str]:
    settings = Resolver({key.replace("_", "-"): value for key, value in overrides.items()}, isolated=True).for_path(".")
    return [rule.meta.name for rule in RULES.select(settings)]


# ------------------------------------------------------------------------ look-up


def test_rules_are_in_the_order_of_their_codes() -> None:
    assert [rule.meta.code for rule in RULES.rules] == ["CU101", "CU102", "CU201", "CU202", "MY101"]


def test_names_and_codes_lead_to_the_rule() -> None:
    by_name, by_code = RULES.get("odd-branch"), RULES.get("CU201")
    assert by_name is by_code is not None
    assert RULES.get("odd") is None


@pytest.mark.parametrize(
    ("word", "suggestion"),
    [
        ("bank-conflicts", ' (did you mean "bank-conflict"?)'),
        ("CU10", ' (did you mean "CU102"?)'),
        ("cu201", ' (did you mean "CU201"?)'),
        ("memry", ' (did you mean "memory"?)'),
        ("all", ' (did you mean "ALL"?)'),
        ("zzz", ""),
    ],
)
def test_suggestions(word: str, suggestion: str) -> None:
    assert RULES.suggestion(word) == suggestion


# ---------------------------------------------------------------------- selection


@pytest.mark.parametrize(
    ("overrides", "names"),
    [
        ({}, ["bank-conflict", "slow-copy", "odd-branch", "own-rule"]),
        ({"select": ["ALL"]}, ["bank-conflict", "slow-copy", "odd-branch", "pedantic-branch", "own-rule"]),
        ({"select": []}, []),
        ({"select": ["divergence"]}, ["odd-branch", "pedantic-branch"]),
        ({"select": ["CU1", "MY"]}, ["bank-conflict", "slow-copy", "own-rule"]),
        ({"select": ["CU"]}, ["bank-conflict", "slow-copy", "odd-branch", "pedantic-branch"]),
        ({"select": ["CU202", "slow-copy"]}, ["slow-copy", "pedantic-branch"]),
        ({"ignore": ["memory"]}, ["odd-branch", "own-rule"]),
        ({"extend_select": ["pedantic-branch"]}, ["bank-conflict", "slow-copy", "odd-branch", "pedantic-branch", "own-rule"]),
        # the more specific selector wins, at the same level `ignore` does
        (
            {"select": ["ALL"], "ignore": ["memory"], "extend_select": ["CU101"]},
            ["bank-conflict", "odd-branch", "pedantic-branch", "own-rule"],
        ),
        ({"select": ["memory"], "ignore": ["ALL"]}, ["bank-conflict", "slow-copy"]),
        ({"select": ["slow-copy"], "ignore": ["CU102"]}, []),
        ({"select": ["CU10"], "ignore": ["CU1"]}, ["bank-conflict", "slow-copy"]),
    ],
)
def test_selection(overrides: dict[str, list[str]], names: list[str]) -> None:
    assert selected(**overrides) == names


def test_the_command_line_applies_on_top_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cudalint.toml").write_text('select = ["memory"]\nignore = ["CU102"]\n')
    monkeypatch.chdir(tmp_path)

    def names(overrides: dict[str, list[str]]) -> list[str]:
        return [rule.meta.name for rule in RULES.select(Resolver(overrides).for_path("."))]

    assert names({}) == ["bank-conflict"]
    assert names({"extend-select": ["CU102"]}) == ["bank-conflict", "slow-copy"]
    assert names({"ignore": ["CU101"]}) == []
    assert names({"select": ["memory"]}) == ["bank-conflict", "slow-copy"]


@pytest.mark.parametrize(
    ("key", "word", "message"),
    [
        ("select", "bank-conflits", '--select: unknown rule "bank-conflits" (did you mean "bank-conflict"?)'),
        ("ignore", "CU9", '--ignore: unknown rule "CU9"'),
        ("extend-select", "QQ", '--extend-select: unknown rule "QQ"'),
    ],
)
def test_unknown_selectors_say_where_they_stand(key: str, word: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RULES.select(Resolver({key: [word]}, isolated=True).for_path("."))
    assert str(caught.value).startswith(message)


def test_an_unknown_selector_in_a_file_has_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cudalint.toml").write_text('select = [\n  "ALL",\n  "nope-nope",\n]\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r'^cudalint.toml:3: unknown rule "nope-nope"'):
        RULES.select(Resolver().for_path("."))


# ------------------------------------------------------------------------ loading

MODULE = """
from cudalint.rule import Certainty, Rule, RuleMeta, Severity

class {cls}(Rule):
    meta = RuleMeta("{name}", "{code}", "memory", "s", {{Certainty.EXACT: Severity.INFO}}, "1")
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugin:
    """Installs entry points and the modules that they name."""
    monkeypatch.syspath_prepend(str(tmp_path))
    entries: list[EntryPoint] = []
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [entry for entry in entries if entry.group == group])

    def install(value: str, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            monkeypatch.delitem(sys.modules, ".".join(Path(name).with_suffix("").parts), raising=False)
        importlib.invalidate_caches()
        entries.append(EntryPoint("theirs", value, registry.GROUP))

    return install


def codes(rules: Registry) -> set[str]:
    return {rule.meta.code for rule in rules.rules}


def test_the_built_in_rules_are_there_with_and_without_plugins() -> None:
    everything, builtin = registry.load(), registry.load(plugins=False)
    assert "CU101" in codes(builtin) <= codes(everything)
    assert builtin.problems == ()


def test_a_module_of_rules(plugin: Plugin) -> None:
    plugin("their_module", {"their_module.py": MODULE.format(cls="One", name="their-rule", code="TH101")})
    loaded = registry.load()
    assert loaded.problems == ()
    assert "TH101" in codes(loaded)
    assert "TH101" not in codes(registry.load(plugins=False))


def test_a_package_of_rules_and_a_class(plugin: Plugin) -> None:
    plugin(
        "their_package",
        {
            "their_package/__init__.py": "from their_package.one import One\n",
            "their_package/one.py": MODULE.format(cls="One", name="one-rule", code="TH201"),
            "their_package/_private.py": "raise RuntimeError",
        },
    )
    plugin("their_class:Two", {"their_class.py": MODULE.format(cls="Two", name="two-rule", code="TH202")})
    loaded = registry.load()
    assert loaded.problems == ()
    assert codes(loaded) >= {"TH201", "TH202"}


@pytest.mark.parametrize(
    ("value", "text", "problem"),
    [
        ("broken_one", "import does_not_exist_at_all", "ModuleNotFoundError: No module named 'does_not_exist_at_all'"),
        ("broken_two:Thing", "Thing = 3", "TypeError: Thing is not a Rule"),
        (
            "broken_three",
            MODULE.format(cls="A", name="Bad_Name", code="TH1"),
            "ValueError: rule name 'Bad_Name' is not kebab-case",
        ),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_one_problem(plugin: Plugin, value: str, text: str, problem: str) -> None:
    plugin(value, {f"{value.partition(':')[0]}.py": text})
    loaded = registry.load()
    assert loaded.problems == (f"rules of theirs ({value}) cannot be loaded: {problem}",)
    assert "CU101" in codes(loaded)


@pytest.mark.parametrize(
    ("name", "code", "problem"),
    [
        ("their-rule", "CU999", "their-rule: codes CU… belong to the built-in rules, CU999 needs another prefix"),
        ("shared-bank-conflict", "TH301", "shared-bank-conflict (TH301) clashes with shared-bank-conflict (CU101)"),
    ],
)
def test_a_plugin_cannot_take_what_belongs_to_others(plugin: Plugin, name: str, code: str, problem: str) -> None:
    module = f"their_{code.lower()}"
    plugin(module, {f"{module}.py": MODULE.format(cls="Theirs", name=name, code=code)})
    loaded = registry.load()
    assert loaded.problems == (f"rules of theirs ({module}): {problem}",)
    assert code not in codes(loaded)


def test_two_rules_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="clashes"):
        registry.of_classes([rule("a-rule", "XX101"), rule("a-rule", "XX102")])


@pytest.mark.parametrize("rule", registry.load(plugins=False).rules, ids=lambda rule: rule.meta.name)
def test_codes_of_built_in_rules_begin_with_the_digit_of_their_family(rule: Rule) -> None:
    assert re.fullmatch(rf"CU{FAMILIES.index(rule.meta.family) + 1}\d\d", rule.meta.code)
