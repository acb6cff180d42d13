"""Tests for rules: a rule's examples and fixture files with `// expect:` comments become test cases.

With pytest, for the rules of a plugin::

    from cudalint.testing import assert_case, rule_cases

    @pytest.mark.parametrize("case", rule_cases([MyRule]), ids=str)
    def test_rule(case):
        assert_case(case)

`// expect: rule-name [fact=value …]` at the end of a line says that the rule
reports that line, with those facts; several are separated by `;`.  Besides the
facts of the finding, `severity` and `certainty` can be given.

A folder of fixtures is one small project: its files are checked together, and
each file must have the findings that it expects and no other.  A file may say
`// cudalint-test: select=NAMES target-arch=ARCHS assume-block=X,Y,Z` in a line
of its own; without `select` it holds for the default selection.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cudalint import engine, registry
from cudalint.config import Resolver
from cudalint.finding import Edit, Severity
from cudalint.registry import Registry
from cudalint.result import Reported, Result
from cudalint.rule import SECTIONS, Rule

__all__ = ["Case", "Expectation", "assert_case", "check_source", "expectations", "fixture_cases", "rule_cases"]

SUFFIXES = frozenset({".cu", ".cuh", ".py", ".ipynb"})
"""Files that `fixture_cases` takes."""

_EXPECT = re.compile(r"(?://|#|/\*)\s*expect:\s*(.*?)\s*(?:\*/.*)?$")
_DIRECTIVE = re.compile(r"^\s*(?://|#)\s*cudalint-test:\s*(.*?)\s*$", re.MULTILINE)
_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class Expectation:
    """A finding that must be reported: rule, 1-based line, and the facts that it must carry, as written."""

    rule: str
    line: int
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Case:
    """One test.  `str(case)` names it.

    code     the source; its `expect` comments are all that may be reported
    rules    the rules to run, None for all that are installed
    files    further files of the project by name, checked too; their findings are the business of other cases
    fixed    the source after all fixes, None if that is not tested
    options  settings by key, such as {"target-arch": ["sm_90"]}
    """

    name: str
    code: str
    rules: tuple[type[Rule], ...] | None
    filename: str = "example.cu"
    files: Mapping[str, str] = field(default_factory=dict)
    fixed: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


# ----------------------------------------------------------------------- checks


def check_source(
    code: str,
    *,
    rules: Iterable[type[Rule]] | Registry | None = None,
    target_arch: str | Sequence[str] = "sm_80",
    filename: str = "example.cu",
    files: Mapping[str, str] | None = None,
    together: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Result:
    """Check a source text in an empty folder, without any configuration.

    rules      classes to run (all of them, also those off by default), a registry, or None for all installed rules
    files      further files of the folder by name, such as headers
    together   check these too, not only `filename`
    options    settings by key, as a configuration file would hold them

    Raises `ConfigError` for options that cannot be used.
    """
    known = _registry(rules)
    overrides = {"target-arch": target_arch if isinstance(target_arch, str) else list(target_arch), **(options or {})}
    if rules is not None and not isinstance(rules, Registry):
        overrides.setdefault("select", ["ALL"])
    with tempfile.TemporaryDirectory(prefix="cudalint-") as folder:
        for name, text in {**(files or {}), filename: code, "cudalint.toml": ""}.items():
            target = Path(folder, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode("utf-8", "surrogateescape"))
        checked = folder if together else os.path.join(folder, filename)  # noqa: PTH118
        result = engine.check([checked], Resolver(overrides, isolated=True), known)
        result.sources.keep(item.finding.location.path for item in result.findings)
        return result


def _registry(rules: Iterable[type[Rule]] | Registry | None) -> Registry:
    if isinstance(rules, Registry):
        return rules
    return registry.load() if rules is None else registry.of_classes(rules)


# ------------------------------------------------------------------------ cases


def rule_cases(rules: Iterable[type[Rule]]) -> list[Case]:
    """One case for every VALID and INVALID example of the rules."""
    return [case for rule in rules for case in _examples(rule)]


def _examples(rule: type[Rule]) -> Iterator[Case]:
    for kind, examples in (("valid", rule.VALID), ("invalid", rule.INVALID)):
        for number, example in enumerate(examples, 1):
            title = f"-{re.sub(r'[^a-z0-9]+', '-', example.title.lower()).strip('-')}" if example.title else ""
            yield Case(f"{rule.meta.name}-{kind}-{number}{title}", example.code, (rule,), fixed=example.fixed)


def fixture_cases(folder: str | Path) -> list[Case]:
    """One case for every source file below a folder, checked together with the others of its top-level folder."""
    base = Path(folder)
    cases = []
    for group in sorted(base.iterdir()):
        paths = [group] if group.is_file() else sorted(path for path in group.rglob("*") if path.is_file())
        texts = {path.relative_to(base).as_posix(): _text(path) for path in paths if path.suffix in SUFFIXES}
        cases += [_fixture(name, texts) for name in texts]
    return cases


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


def _fixture(name: str, texts: Mapping[str, str]) -> Case:
    words = [word.partition("=") for line in _DIRECTIVE.findall(texts[name]) for word in line.split()]
    options: dict[str, Any] = {key: value.split(",") for key, _, value in words}
    if "assume-block" in options:
        options["assume-block"] = [int(size) for size in options["assume-block"]]
    others = {other: text for other, text in texts.items() if other != name}
    return Case(name, texts[name], None, filename=name, files=others, options=options)


def expectations(code: str) -> list[Expectation]:
    """The `expect` comments of a source.  Raises `ValueError` for one that cannot be read."""
    found = []
    for line, text in enumerate(code.split("\n"), 1):
        match = _EXPECT.search(text.rstrip("\r"))
        for part in match[1].split(";") if match else ():
            rule, *words = part.split()
            if not all("=" in word for word in words):
                raise ValueError(f"line {line}: expect: rule-name [fact=value …], got {part.strip()!r}")
            found.append(Expectation(rule, line, dict(word.split("=", 1) for word in words)))
    return found


# ------------------------------------------------------------------- assertions


def assert_case(case: Case) -> None:
    """Run a case.  Raises `AssertionError` that says what was expected and what was found."""
    target = case.options.get("target-arch", "sm_80")
    options = {key: value for key, value in case.options.items() if key != "target-arch"}
    wanted = expectations(case.code)
    _assert_marked(case, wanted)
    result = check_source(
        case.code,
        rules=case.rules,
        target_arch=target,
        filename=case.filename,
        files=case.files,
        together=True,
        options=options,
    )
    _assert_healthy(case, result)
    _assert_findings(case, wanted, result)
    if case.fixed is not None:
        fixed = apply_fixes(case.code, result)
        _require(fixed == case.fixed, f"{case}: the fixes give\n{fixed}")


def assert_documented(rule: type[Rule]) -> None:
    """A rule must have examples of both kinds, and a docstring with every section.  Raises `AssertionError`."""
    from cudalint.report.explain import sections

    found = sections(rule)
    missing = [title for title in SECTIONS if not found.get(title)]
    _require(not missing, f"{rule.__name__}: the docstring has no section {', '.join(missing)}")
    _require(rule.VALID and rule.INVALID, f"{rule.__name__}: needs VALID and INVALID examples")


def apply_fixes(code: str, result: Result) -> str:
    """The source after the fixes of all findings; fixes that overlap an earlier one are left out."""
    data = code.encode("utf-8", "surrogateescape")
    taken: list[Edit] = []
    for item in result.active:
        edits = item.finding.fix.edits if item.finding.fix else ()
        if not any(_overlap(edit, other) for edit in edits for other in taken):
            taken += [edit for edit in edits if edit not in taken]
    for edit in sorted(taken, key=lambda edit: edit.location, reverse=True):
        data = data[: edit.location.start] + edit.text.encode() + data[edit.location.end :]
    return data.decode("utf-8", "surrogateescape")


def _overlap(one: Edit, other: Edit) -> bool:
    a, b = one.location, other.location
    return one != other and a.path == b.path and a.start < max(b.end, b.start + 1) and b.start < max(a.end, a.start + 1)


def _require(condition: object, message: str) -> None:
    """`assert`, which python -O would leave out."""
    if not condition:
        raise AssertionError(message)


def _assert_marked(case: Case, wanted: Sequence[Expectation]) -> None:
    """The comments of an example must fit its kind, or it would test nothing."""
    for rule in case.rules or ():
        name = rule.meta.name
        marked = any(item.rule == name for item in wanted)
        if case.name.startswith(f"{name}-invalid"):
            _require(marked, f"{case}: an invalid example needs a line with // expect: {name}")
        if case.name.startswith(f"{name}-valid"):
            _require(not marked, f"{case}: a valid example cannot expect {name}")


def _assert_healthy(case: Case, result: Result) -> None:
    problems = [f"{problem.path}: {problem.reason}" for problem in result.problems]
    _require(not problems, f"{case}: {problems}")
    errors = [error.traceback for error in result.internal_errors]
    _require(not errors, f"{case}: internal error\n" + "\n".join(errors))
    _require(not result.kernels_with_errors, f"{case}: the source has a syntax error")


def _assert_findings(case: Case, wanted: Sequence[Expectation], result: Result) -> None:
    named = {item.rule for item in wanted}
    here = [item for item in result.active if Path(item.finding.location.path).as_posix().endswith(f"/{case.filename}")]
    found = [item for item in here if case.rules or item.finding.severity > Severity.INFO or item.finding.rule in named]
    left = list(wanted)
    surplus = []
    for item in found:
        same = [want for want in left if (want.rule, want.line) == (item.finding.rule, item.start[0])]
        if same:
            left.remove(min(same, key=lambda want: len(_wrong_facts(want, item))))
        else:
            surplus.append(item)
    _require(not left and not surplus, _differences(case, left, surplus))
    for want in wanted:
        candidates = [item for item in found if (want.rule, want.line) == (item.finding.rule, item.start[0])]
        wrong = min((_wrong_facts(want, item) for item in candidates), key=len)
        _require(not wrong, f"{case}:{want.line}: {want.rule}: {'; '.join(wrong)}")


def _differences(case: Case, left: Iterable[Expectation], surplus: Iterable[Reported]) -> str:
    lines = [f"  line {want.line}: {want.rule} expected, not reported" for want in left]
    lines += [f"  line {item.start[0]}: {item.finding.rule} reported, not expected: {item.finding.message}" for item in surplus]
    return "\n".join([f"{case}:", *lines, "", case.code])


def _wrong_facts(want: Expectation, item: Reported) -> list[str]:
    """Each expected fact that the finding does not carry."""
    finding = item.finding
    facts = {**finding.facts, "severity": str(finding.severity), "certainty": str(finding.certainty)}
    return [
        f"{name} is {facts.get(name, 'missing')}, expected {text}"
        for name, text in want.facts.items()
        if name not in facts or not _equal(facts[name], text)
    ]


def _equal(value: object, text: str) -> bool:
    if isinstance(value, bool):
        return text.lower() in (str(value).lower(), "yes" if value else "no")
    if isinstance(value, (int, float)):
        try:
            return abs(value - float(text)) <= _TOLERANCE * max(1.0, abs(value))
        except ValueError:
            return False
    return text == (",".join(value) if isinstance(value, list) else str(value))
