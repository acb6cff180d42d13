"""The layers import downwards only, and start-up imports next to nothing."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "cudalint"
RULES = ROOT / "rules"

LEAVES = {"finding", "fix", "rule", "config", "__version__"}
"""What every layer may import.  `rule` brings the fact types along."""
LAYERS = ("source", "syntax", "semantics", "analysis", "model", "engine", "front")
"""From the lowest up."""
LAYER_OF = {
    **{name: name for name in LAYERS},
    **dict.fromkeys(("registry", "result", "merge", "names", "suppressing"), "engine"),
    **dict.fromkeys(("report", "server", "cli", "__main__", "testing", "scaffold"), "front"),
}
FACTS = "cudalint.analysis.facts"
RULE_IMPORTS = {"cudalint.rule", "cudalint.finding", FACTS}
"""What a rule may import of cudalint."""


def modules(folder: Path, package: str) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        yield ".".join((package, *(part for part in parts if part != "__init__"))), path


def imports(path: Path) -> set[str]:
    """The cudalint modules that a file imports anywhere, also for type checking and within functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            base = node.module or ""
            found.update(f"{base}.{alias.name}" if base in ("cudalint", "cudalint_rules") else base for alias in node.names)
    return {name for name in found if name.split(".")[0] in ("cudalint", "cudalint_rules")}


def part(module: str) -> str:
    """The file or folder directly below the package."""
    return [*module.split("."), ""][1]


CUDALINT = dict(modules(PACKAGE, "cudalint"))


@pytest.mark.parametrize("module", CUDALINT)
def test_layers_import_downwards_only(module: str) -> None:
    own = part(module)
    for target in imports(CUDALINT[module]):
        wanted = part(target)
        assert target.split(".")[0] == "cudalint", f"{module} names the built-in rules; the registry finds them"
        if own in ("", *LEAVES):
            assert wanted in LEAVES or target.startswith(FACTS), f"the leaf {module} imports {target}"
        elif wanted not in LEAVES and target != "cudalint":
            assert LAYERS.index(LAYER_OF[wanted]) <= LAYERS.index(LAYER_OF[own]), f"{module} imports {target}"


def test_fact_types_stand_on_findings_only() -> None:
    assert imports(PACKAGE / "analysis" / "facts.py") == {"cudalint.finding"}


@pytest.mark.parametrize("path", sorted(RULES.glob("*.py")), ids=lambda path: path.stem)
def test_rules_import_the_rule_interface_only(path: Path) -> None:
    assert {name for name in imports(path) if not name.startswith("cudalint_rules")} <= RULE_IMPORTS


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_start_up_imports_nothing_that_a_command_needs(arguments: list[str]) -> None:
    program = (
        "import sys; from cudalint.cli import main; main(sys.argv[1:]);"
        "print([m for m in sys.modules if m.split('.')[0] in ('numpy', 'tree_sitter', 'pathspec', 'dataclasses', 'tomllib')"
        " or m == 'importlib.metadata' or m.startswith('cudalint.') and m != 'cudalint.cli'])"
    )
    run = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"


def test_every_package_is_distributed() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    folders = {path.parent.relative_to(ROOT) for path in PACKAGE.rglob("__init__.py")}
    missing = [str(folder) for folder in folders if f'"{".".join(folder.parts)}"' not in text]
    assert not missing
