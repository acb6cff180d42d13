"""`new-rule`: a rule that works and its test, waiting for the author's check."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from cudalint import __version__, registry
from cudalint.config import suggest
from cudalint.finding import Certainty
from cudalint.rule import FAMILIES, Family, RuleMeta, Severity

_OWN_PREFIX = "MY"


def write(name: str, family: str, code: str | None, directory: str) -> tuple[list[Path], str]:
    """Write `DIRECTORY/NAME.py` and, for a rule of one's own, `tests/test_NAME.py`; returns their paths and what to do next.

    Raises `ValueError` for a name, family or code that cannot be used, `FileExistsError` if a file is there, `OSError`
    if one cannot be written.
    """
    known = registry.load()
    wanted = _family(family)
    if known.get(name) is not None:
        raise ValueError(f"the rule {name} exists")
    folder = Path(directory)
    meta = _meta(name, code or _free_code(known, wanted, folder), wanted)
    clash = known.get(meta.code)
    if clash is not None:
        raise ValueError(f"the code {meta.code} belongs to {clash.meta.name}")
    path = folder / f"{name.replace('-', '_')}.py"
    texts = {path: _filled(_TEMPLATE, meta, path)}
    if not _builtin(folder):
        texts[Path("tests", f"test_{path.name}")] = _filled(_TEST, meta, path)
    for target in texts:
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(target))
    for target, text in texts.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    return list(texts), _next_steps(meta, path)


def _builtin(folder: Path) -> bool:
    """Whether the folder lies beside the sources of cudalint, as that of the built-in rules does."""
    return (folder.resolve().parent / "cudalint" / "rule.py").is_file()


def _family(word: str) -> Family:
    for family in FAMILIES:
        if family == word:
            return family
    raise ValueError(f'unknown family "{word}"{suggest(word, FAMILIES)}')


def _meta(name: str, code: str, family: Family) -> RuleMeta:
    """The metadata, which validates itself."""
    return RuleMeta(name, code, family, "", {Certainty.EXACT: Severity.WARNING}, __version__)


def _free_code(known: registry.Registry, family: Family, folder: Path) -> str:
    """The next code of the family: with the prefix of the built-in rules among them, else with another."""
    prefix = registry.BUILTIN_PREFIX if _builtin(folder) else _OWN_PREFIX
    digit = FAMILIES.index(family) + 1
    taken = {rule.meta.code for rule in known.rules}
    return next(code for number in range(1, 100) if (code := f"{prefix}{digit}{number:02}") not in taken)


def _filled(template: str, meta: RuleMeta, path: Path) -> str:
    words = {
        "NAME": meta.name,
        "CODE": meta.code,
        "FAMILY": meta.family,
        "SINCE": meta.since,
        "CLASS": "".join(part.capitalize() for part in meta.name.split("-")),
        "MODULE": _module(path),
    }
    return re.sub(r"@(\w+)@", lambda match: words[match[1]], template)


def _next_steps(meta: RuleMeta, path: Path) -> str:
    builtin = _builtin(path.parent)
    test = f"tests/test_rules.py -k {meta.name}" if builtin else f"tests/test_{path.stem}.py"
    steps = [
        f"The rule reports blocks of more than 512 threads until you replace every TODO in {path}.",
        "Its examples are its tests:",
        "",
        f"    python -m pytest {test}",
        "",
    ]
    if not builtin:
        steps += [
            "cudalint finds it once an installed package (pip install -e .) says in pyproject.toml:",
            "",
            f'    [project.entry-points."{registry.GROUP}"]',
            f'    mine = "{_module(path)}"',
            "",
        ]
        if meta.code.startswith(_OWN_PREFIX):
            steps += [
                f"Codes that start with {_OWN_PREFIX} are for trying out: choose a prefix of your own before others use it.",
                "",
            ]
    steps.append(f"Then read its page: cudalint explain {meta.name}")
    return "\n".join(steps) + "\n"


def _module(path: Path) -> str:
    """The module to import the rule from; beside the sources of cudalint that is the package of the built-in rules."""
    if _builtin(path.parent):
        return f"{registry.BUILTIN}.{path.stem}"
    absolute, here = Path(os.path.abspath(path)), Path.cwd()
    below = absolute.relative_to(here) if absolute.is_relative_to(here) else Path(absolute.parent.name, absolute.name)
    parts = below.with_suffix("").parts
    return ".".join(parts[1:] if parts[0] == "src" else parts)


_TEST = '''\
"""The examples of @NAME@ as tests."""

import pytest
from cudalint.testing import Case, assert_case, assert_documented, rule_cases

from @MODULE@ import @CLASS@


@pytest.mark.parametrize("case", rule_cases([@CLASS@]), ids=str)
def test_example(case: Case) -> None:
    assert_case(case)


def test_documentation() -> None:
    assert_documented(@CLASS@)
'''

_TEMPLATE = '''\
"""@NAME@: TODO one line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from cudalint.rule import Certainty, Example, Finding, KernelFacts, Rule, RuleMeta, Severity


class @CLASS@(Rule):
    """TODO one sentence.

    ## What it does
    TODO what is reported, and how cudalint knows.

    ## Why it matters
    TODO what the hardware does, with a number and its source.

    ## Example
    ```cuda
    TODO
    ```

    ## Use instead
    ```cuda
    TODO
    ```

    ## Limits
    TODO what is missed, what may be reported wrongly.

    ## References
    TODO guides, the name that Nsight Compute or the compiler gives it.
    """

    meta = RuleMeta(
        name="@NAME@",
        code="@CODE@",
        family="@FAMILY@",
        summary="TODO the defect in a few words",
        severity={Certainty.EXACT: Severity.WARNING},
        since="@SINCE@",
    )

    VALID: ClassVar = (
        Example(
            title="TODO what looks alike but is fine",
            code="""\\
__global__ void scale(float* a) { a[threadIdx.x] *= 2.0f; }
void run(float* a) { scale<<<1, 256>>>(a); }
""",
        ),
    )
    INVALID: ClassVar = (
        Example(
            title="TODO the defect",
            code="""\\
__global__ void scale(float* a) { a[threadIdx.x] *= 2.0f; }  // expect: @NAME@ threads=1024
void run(float* a) { scale<<<1, 1024>>>(a); }
""",
        ),
    )

    def check_kernel(self, kernel: KernelFacts) -> Iterable[Finding]:
        """TODO when a kernel is reported."""
        block = kernel.launch.block
        threads = block[0] * block[1] * block[2] if block else 0
        if threads > 512:
            yield self.finding(
                kernel.location,
                f"TODO message with the numbers: {threads} threads",
                Certainty.EXACT,
                kernel=kernel,
                facts={"threads": threads},
                advice="TODO what to do",
            )
'''
