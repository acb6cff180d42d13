"""The rules at hand: found through the entry point group `cudalint.rules`, looked up by name or code, selected.

An entry point names a module or package; every `Rule` subclass with metadata
that is defined in it (in a package: in its modules) is a rule.  The built-in
rules are found the same way.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType

from cudalint.config import ConfigError, Selection, Settings, suggest
from cudalint.rule import FAMILIES, Rule, RuleMeta

GROUP = "cudalint.rules"
BUILTIN = "cudalint_rules"
BUILTIN_PREFIX = "CU"


@dataclass(frozen=True, slots=True)
class Registry:
    """All rules, by code; `problems` are lines about plugins that could not be used."""

    rules: tuple[Rule, ...]
    problems: tuple[str, ...] = ()

    def get(self, word: str) -> Rule | None:
        """The rule of that name or code, None without one."""
        return next((rule for rule in self.rules if word in (rule.meta.name, rule.meta.code)), None)

    def suggestion(self, word: str) -> str:
        """` (did you mean "…"?)` for a word that no selector equals."""
        return suggest(word, self.selectors()) or suggest(word.upper(), self.selectors())

    def selectors(self) -> list[str]:
        """Every word that selects rules, code prefixes apart."""
        names = [word for rule in self.rules for word in (rule.meta.name, rule.meta.code)]
        return ["ALL", *FAMILIES, *names]

    def select(self, settings: Settings) -> tuple[Rule, ...]:
        """The rules that the settings select.  Raises `ConfigError` for a selector that fits nothing."""
        chosen = {rule.meta.name for rule in self.rules if rule.meta.default}
        for layer in settings.selection:
            chosen = self._apply(layer, chosen)
        return tuple(rule for rule in self.rules if rule.meta.name in chosen)

    def _apply(self, layer: Selection, chosen: set[str]) -> set[str]:
        wanted = self._levels("select", layer.select or (), layer) | self._levels("extend-select", layer.extend_select, layer)
        unwanted = self._levels("ignore", layer.ignore, layer)
        kept = set() if layer.select is not None else chosen
        added = {name for name, level in wanted.items() if level > unwanted.get(name, -1)}
        return (kept - unwanted.keys()) | added

    def _levels(self, key: str, selectors: Sequence[str], layer: Selection) -> dict[str, int]:
        """Rule name to the specificity of the most specific selector that fits it."""
        levels: dict[str, int] = {}
        for selector in selectors:
            level, fits = self._fit(selector)
            if not fits:
                where = layer.origin.locate(key, selector) if layer.origin else ""
                raise ConfigError(f'unknown rule "{selector}"{self.suggestion(selector)}', where)
            for rule in fits:
                levels[rule.meta.name] = max(level, levels.get(rule.meta.name, -1))
        return levels

    def _fit(self, selector: str) -> tuple[int, list[Rule]]:
        if selector == "ALL":
            return 0, list(self.rules)
        if selector in FAMILIES:
            return 1, [rule for rule in self.rules if rule.meta.family == selector]
        rule = self.get(selector)
        if rule is not None:
            return 4, [rule]
        if re.fullmatch(r"[A-Z]{2,5}\d{0,2}", selector):
            return 1 + len(selector) - len(selector.rstrip("0123456789")), self._by_code_prefix(selector)
        return 0, []

    def _by_code_prefix(self, prefix: str) -> list[Rule]:
        letters = prefix.rstrip("0123456789")
        return [r for r in self.rules if r.meta.code.startswith(prefix) and r.meta.code.rstrip("0123456789") == letters]


def load(*, plugins: bool = True) -> Registry:
    """All rules.  A plugin that cannot be imported or whose rules clash becomes a line in `problems`."""
    found: list[Rule] = []
    problems: list[str] = []
    for name, target in _entries(plugins):
        try:
            classes = list(_classes(target))
        except (Exception, SystemExit) as error:  # whatever a plugin's import raises
            problems.append(f"rules of {name} ({target}) cannot be loaded: {type(error).__name__}: {error}")
            continue
        for cls in classes:
            problem = _add(found, cls, builtin=target.partition(".")[0] == BUILTIN)
            if problem:
                problems.append(f"rules of {name} ({target}): {problem}")
    return Registry(tuple(sorted(found, key=lambda rule: rule.meta.code)), tuple(problems))


def of_classes(classes: Iterable[type[Rule]]) -> Registry:
    """A registry of just these rules.  Raises `ValueError` for two of one name or code."""
    found: list[Rule] = []
    for cls in classes:
        problem = _add(found, cls, builtin=True)
        if problem:
            raise ValueError(problem)
    return Registry(tuple(sorted(found, key=lambda rule: rule.meta.code)))


def classes_in(module: ModuleType) -> Iterator[type[Rule]]:
    """The rules that a module defines (imported ones do not count)."""
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, Rule) and value.__module__ == module.__name__ and "meta" in vars(value):
            yield value


def _entries(plugins: bool) -> list[tuple[str, str]]:
    """(entry point name, "module" or "module:class") pairs, the built-in rules first."""
    entries = {BUILTIN: "builtin"}
    if plugins:
        from importlib.metadata import entry_points

        for entry in entry_points(group=GROUP):
            entries.setdefault(entry.value, entry.name)
    return [(name, target) for target, name in entries.items()]


def _classes(target: str) -> Iterator[type[Rule]]:
    name, _, attribute = target.partition(":")
    module = importlib.import_module(name)
    if attribute:
        value = getattr(module, attribute)
        if not (isinstance(value, type) and issubclass(value, Rule)):
            raise TypeError(f"{attribute} is not a Rule")
        yield value
        return
    yield from classes_in(module)
    for item in sorted(pkgutil.iter_modules(getattr(module, "__path__", ())), key=lambda item: item.name):
        if not item.name.startswith("_"):
            yield from classes_in(importlib.import_module(f"{name}.{item.name}"))


def _add(found: list[Rule], cls: type[Rule], *, builtin: bool) -> str:
    """Add a rule; what is wrong with it, "" if nothing is."""
    meta = getattr(cls, "meta", None)
    if not isinstance(meta, RuleMeta):
        return f"{cls.__name__}.meta is not a RuleMeta"
    if not builtin and re.fullmatch(rf"{BUILTIN_PREFIX}\d{{3}}", meta.code):
        return f"{meta.name}: codes {BUILTIN_PREFIX}… belong to the built-in rules, {meta.code} needs another prefix"
    clash = next((rule.meta for rule in found if meta.name == rule.meta.name or meta.code == rule.meta.code), None)
    if clash is not None:
        return f"{meta.name} ({meta.code}) clashes with {clash.name} ({clash.code})"
    try:
        found.append(cls())
    except (Exception, SystemExit) as error:  # whatever a plugin's constructor raises
        return f"{meta.name}: {type(error).__name__}: {error}"
    return ""
