"""Small projects on disk for the tests of the semantics layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cudalint.semantics.program import Options, Program, Unit


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Program]:
    """`project({"a.cu": "…"}, arch=90)` writes files and gives the program over them."""

    def make(files: Mapping[str, str], **options: object) -> Program:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Program(tmp_path, Options(**options))  # type: ignore[arg-type]

    return make


@pytest.fixture
def unit(project: Callable[..., Program]) -> Callable[..., Unit]:
    """`unit("…")` is the only file of a project."""

    def make(text: str, **options: object) -> Unit:
        program = project({"main.cu": text}, **options)
        found = program.unit(Path(program.root) / "main.cu")
        assert found is not None
        return found

    return make
