"""`new-rule`: the file of a rule that works, tests itself and waits for its author's check."""

from __future__ import annotations

import re
from pathlib import Path

from cudalint import __version__, registry
from cudalint.config import suggest
from cudalint.finding import Certainty
from cudalint.rule import FAMILIES, Family, RuleMeta, Severity

_OWN_PREFIX = "MY"


def write(name: str, family: str, code: str | None, directory: str) -> tuple[Path, str]:
    """Write `DIRECTORY/NAME.py`; returns its path and what to do next.

    Raises `ValueError` for a name, family or code that cannot be used, `FileExistsError` if the file is there, `OSError`
    if it cannot be written.
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
    folder.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8") as file:
        file.write(_source(meta))
    return path, _next_steps(meta, path)


def _family(word: str) -> Family:
    for family in FAMILIES:
        if family == word:
            return family
    raise ValueError(f'unknown family "{word}"{suggest(word, FAMILIES)}')


def _meta(name: str, code: str, family: Family) -> RuleMeta:
    """The metadata, which validates itself."""
    return RuleMeta(name, code, family, "", {Certainty.EXACT: Severity.WARNING}, __version__)


def _free_code(known: registry.Registry, family: Family, folder: Path) -> str:
    """The next code of the family: with the prefix of the built-in rules beside the sources of cudalint, else with another."""
    prefix = registry.BUILTIN_PREFIX if (folder.resolve().parent / "cudalint" / "rule.py").is_file() else _OWN_PREFIX
    digit = FAMILIES.index(family) + 1
    taken = {rule.meta.code for rule in known.rules}
    return next(code for number in range(1, 100) if (code := f"{prefix}{digit}{number:02}") not in taken)


def _source(meta: RuleMeta) -> str:
    words = {
        "NAME": meta.name,
        "CODE": meta.code,
        "FAMILY": meta.family,
        "SINCE": meta.since,
        "CLASS": "".join(part.capitalize() for part in meta.name.split("-")),
    }
    return re.sub(r"@(\w+)@", lambda match: words[match[1]], _TEMPLATE)


def _next_steps(meta: RuleMeta, path: Path) -> str:
    steps = [
        f"1. {path}: replace every TODO; until then the rule reports blocks of more than 512 threads, and its examples pass.",
        "2. Test it: the examples are the tests.",
        "",
        "       import pytest",
        "       from cudalint.testing import assert_case, assert_documented, rule_cases",
        f"       from {_module(path)} import {''.join(part.capitalize() for part in meta.name.split('-'))} as Rule",
        "",
        '       @pytest.mark.parametrize("case", rule_cases([Rule]), ids=str)',
        "       def test_examples(case):",
        "           assert_case(case)",
        "",
        f"3. See its page: cudalint explain {meta.name}",
    ]
    if not meta.code.startswith(registry.BUILTIN_PREFIX):
        steps += [
            f"4. Choose a code prefix of your own in place of {_OWN_PREFIX}, and tell cudalint of the rule in pyproject.toml:",
            "",
            f'       [project.entry-points."{registry.GROUP}"]',
            f'       mine = "{_module(path)}"',
        ]
    return "\n".join(steps) + "\n"


def _module(path: Path) -> str:
    """The module to import the rule from; beside the sources of cudalint that is the package of the built-in rules."""
    if (path.resolve().parent.parent / "cudalint" / "rule.py").is_file():
        return f"{registry.BUILTIN}.{path.stem}"
    return ".".join(part for part in path.with_suffix("").parts if part.isidentifier())


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
