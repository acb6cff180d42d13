"""Suppression comments applied: which findings they silence, and which of them silence nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from cudalint.finding import Finding
from cudalint.registry import Registry
from cudalint.result import Note, Sources
from cudalint.rule import FAMILIES, Rule
from cudalint.source.suppress import Problem, Suppressions, parse

_TEXTS = {
    "unused": "suppresses nothing",
    "unknown": "names no rule",
    "blanket": "suppresses every rule; name those that are meant",
    "malformed": "cannot be read: ignore[rule, …] reason",
    "unmatched": "has no partner",
}


class Suppressing:
    """The suppression comments of a run; paths are those of `sources`."""

    def __init__(self, sources: Sources, registry: Registry) -> None:
        self._sources = sources
        self._registry = registry
        self._files: dict[str, Suppressions] = {}

    def apply(self, finding: Finding, kernel: tuple[int, int] | None) -> Finding:
        """The finding, marked if a comment suppresses it.  `kernel`: byte range of the kernel, if it is in the same file."""
        path = finding.location.path
        source = self._sources.get(path)
        rule = self._registry.get(finding.rule)
        family = rule.meta.family if rule else ""
        lines = (source.position(kernel[0])[0], source.position(kernel[1])[0]) if kernel else None
        line = source.position(finding.location.start)[0]
        found = self._of(path).match(finding.rule, finding.code, family, line, lines)
        if found is None:
            return finding
        return replace(finding, suppressed=found.reason or f"comment on line {found.line}")

    def notes(self, paths: Iterable[str], ran: Iterable[Rule]) -> Iterator[Note]:
        """What is wrong with the comments of some files, once all findings have been through `apply`.

        ran  the rules that were checked; only they can be suppressed in vain
        """
        known = {word for rule in self._registry.rules for word in (rule.meta.name, rule.meta.code)} | set(FAMILIES)
        checked = self._words(list(ran))
        for path in paths:
            for problem in self._of(path).problems(known, checked):
                if not self._is_of_others(path, problem):
                    yield Note(path, problem.line, problem.column, _text(problem))

    def _words(self, ran: list[Rule]) -> set[str]:
        """Names and codes of the rules that ran, and the families that ran whole."""
        names = {rule.meta.name for rule in ran}
        partly = {rule.meta.family for rule in self._registry.rules if rule.meta.name not in names}
        return names | {rule.meta.code for rule in ran} | ({rule.meta.family for rule in ran} - partly)

    def _is_of_others(self, path: str, problem: Problem) -> bool:
        """A bare NOLINT is meant for every linter; it is no fault towards this one."""
        text = self._sources.get(path).data[problem.start : problem.end]
        return problem.kind != "malformed" and b"cudalint" not in text

    def _of(self, path: str) -> Suppressions:
        if path not in self._files:
            self._files[path] = parse(self._sources.get(path))
        return self._files[path]


def _text(problem: Problem) -> str:
    names = f" of {', '.join(problem.names)}" if problem.names else ""
    return f"suppression{names} {_TEXTS[problem.kind]}"
