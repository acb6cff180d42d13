"""Where settings come from, which win, and what is said about wrong ones."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from cudalint.config import OPTIONS, ConfigError, Resolver, Settings, arch_number, nearest_config

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes files into an empty folder that is the working directory and no part of any project."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()

    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    return put


def settings(overrides: dict[str, Any] | None = None, path: str = ".", **options: Any) -> Settings:
    return Resolver(overrides, **options).for_path(path)


def error(overrides: dict[str, Any] | None = None, path: str = ".") -> str:
    with pytest.raises(ConfigError) as caught:
        settings(overrides, path)
    return str(caught.value)


@pytest.mark.usefixtures("write")
def test_without_any_file_the_defaults_hold() -> None:
    found = settings()
    assert found.config_path is None
    for option in OPTIONS.values():
        assert getattr(found, option.attribute) == option.default


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("select", '["memory", "CU201"]', ("memory", "CU201")),
        ("exclude", "[]", ()),
        ("respect-gitignore", "false", False),
        ("target-arch", '["sm_90a", "8.6", "compute_80", "sm_86"]', ("sm_90", "sm_86", "sm_80")),
        ("target-arch", '"sm_90"', ("sm_90",)),
        ("target-arch", "120", ("sm_120",)),
        ("defines", '["TILE=32", "NDEBUG"]', ("TILE=32", "NDEBUG")),
        ("assume-block", "[16, 16]", (16, 16, 1)),
        ("assume-block", "256", (256, 1, 1)),
        ("fail-on", '"error"', "error"),
        ("output-format", '"json"', ("json",)),
        ("output-format", '["text", "json=a.json"]', ("text", "json=a.json")),
        ("required-version", '">=0.1, <99"', ">=0.1, <99"),
    ],
)
def test_values(write: Write, key: str, text: str, value: object) -> None:
    write("cudalint.toml", f"{key} = {text}\n")
    assert getattr(settings(), OPTIONS[key].attribute) == value


@pytest.mark.parametrize("option", OPTIONS.values(), ids=lambda option: option.key)
def test_every_example_of_the_options_is_valid(write: Write, option: Any) -> None:
    write("cudalint.toml", f"{option.key} = {option.example}\n")
    assert getattr(settings(), option.attribute) != option.default
    assert option.help.endswith(".")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\nselct = []\n", 'cudalint.toml:2: unknown option "selct" (did you mean "select"?)'),
        ("target_arch = []\n", 'cudalint.toml:1: unknown option "target_arch" (did you mean "target-arch"?)'),
        ('ignore = []\nselect = "ALL"\n', "cudalint.toml:2: select: expected a list of strings"),
        ("select = [1]\n", "cudalint.toml:1: select: expected a list of strings"),
        ("show-info = 1\n", "cudalint.toml:1: show-info: expected true or false"),
        ('fail-on = "none"\n', 'cudalint.toml:1: fail-on: expected one of "error", "warning", "info"'),
        (
            'fail-on = "warnings"\n',
            'cudalint.toml:1: fail-on: expected one of "error", "warning", "info" (did you mean "warning"?)',
        ),
        ('target-arch = ["ampere"]\n', 'cudalint.toml:1: target-arch: "ampere" is no architecture from sm_50 to sm_121'),
        ("target-arch = []\n", "cudalint.toml:1: target-arch: expected at least one architecture"),
        ("target-arch = true\n", 'cudalint.toml:1: target-arch: "True" is no architecture from sm_50 to sm_121'),
        ('defines = ["2x"]\n', 'cudalint.toml:1: defines: "2x" is not NAME or NAME=VALUE'),
        ("assume-block = [64, 64]\n", "cudalint.toml:1: assume-block: 4096 threads are more than the 1024 a block can have"),
        ("assume-block = [0]\n", "cudalint.toml:1: assume-block: expected one to three positive integers, such as [16, 16, 1]"),
        (
            "assume-block = [true]\n",
            "cudalint.toml:1: assume-block: expected one to three positive integers, such as [16, 16, 1]",
        ),
        ('required-version = "new"\n', 'cudalint.toml:1: required-version: "new" is not a version such as ">=0.1" or "0.1.0"'),
        ('select = ["a"\nignore = 1\n', "cudalint.toml:2: invalid TOML: unclosed array"),
        ('extend = "base.toml"\n', "cudalint.toml:1: extend: no such file: base.toml"),
        ("extend = 1\n", "cudalint.toml:1: extend: expected a string"),
    ],
)
def test_wrong_settings_are_one_line_with_its_place(write: Write, text: str, message: str) -> None:
    write("cudalint.toml", text)
    assert error() == message


def test_a_wrong_line_in_pyproject_is_found_in_its_table(write: Write) -> None:
    write("pyproject.toml", '[tool.ruff]\nselect = ["E"]\n\n[tool.cudalint]\nignore = []\nselect = 3\n')
    assert error() == "pyproject.toml:6: select: expected a list of strings"
    write("pyproject.toml", "[tool]\ncudalint = 1\n")
    assert error() == "pyproject.toml:1: tool.cudalint: expected a table"


def test_a_file_that_is_not_utf8_is_an_error(write: Write) -> None:
    write("cudalint.toml", "").write_bytes(b"\xff\xfe")
    assert error() == "cudalint.toml:1: not UTF-8"


def test_a_byte_order_mark_is_accepted(write: Write) -> None:
    write("cudalint.toml", "").write_bytes(b"\xef\xbb\xbfshow-info = true\n")
    assert settings().show_info


def test_order_within_a_folder(write: Write, tmp_path: Path) -> None:
    write("pyproject.toml", "[tool.cudalint]\n")
    assert nearest_config(tmp_path) == tmp_path / "pyproject.toml"
    write("cudalint.toml", "")
    assert nearest_config(tmp_path) == tmp_path / "cudalint.toml"
    write(".cudalint.toml", "")
    assert nearest_config(tmp_path) == tmp_path / ".cudalint.toml"


def test_a_pyproject_without_the_table_is_passed_over(write: Write, tmp_path: Path) -> None:
    top = write("cudalint.toml", "show-info = true\n")
    write("sub/pyproject.toml", "[tool.ruff]\n# cudalint is mentioned\n")
    assert nearest_config(tmp_path / "sub") == top


def test_a_broken_pyproject_of_others_does_not_matter(write: Write, tmp_path: Path) -> None:
    write("pyproject.toml", "[tool.ruff\n")
    assert nearest_config(tmp_path) != tmp_path / "pyproject.toml"


def test_the_nearest_file_wins_and_does_not_merge(write: Write) -> None:
    write("cudalint.toml", 'fail-on = "error"\nshow-info = true\n')
    write("sub/cudalint.toml", 'fail-on = "info"\n')
    write("sub/deep/k.cu", "")
    resolver = Resolver()
    near, far = resolver.for_path("sub/deep/k.cu"), resolver.for_path(".")
    assert (near.fail_on, near.show_info) == ("info", False)
    assert (far.fail_on, far.show_info) == ("error", True)
    assert resolver.for_path("sub") is near


def test_extend_takes_the_base_and_lists_of_extend_options_add_up(write: Write, tmp_path: Path) -> None:
    write("shared/base.toml", 'fail-on = "error"\nextend-exclude = ["a"]\ninclude-dirs = ["inc"]\ndefines = ["N=1"]\n')
    write("cudalint.toml", 'extend = "shared/base.toml"\nextend-exclude = ["b"]\ninclude-dirs = ["src"]\ndefines = ["M"]\n')
    found = settings({"defines": ["N=2"]})
    assert found.fail_on == "error"
    assert found.extend_exclude == ("a", "b")
    assert found.include_dirs == (str(tmp_path / "shared/inc"), str(tmp_path / "src"))
    assert found.defines == ("N=1", "M", "N=2")


def test_extend_may_lead_to_a_pyproject_but_only_with_the_table(write: Write) -> None:
    write("base/pyproject.toml", "[tool.cudalint]\nshow-info = true\n")
    write("cudalint.toml", 'extend = "base/pyproject.toml"\n')
    assert settings().show_info
    write("base/pyproject.toml", "[tool.ruff]\n")
    assert error().endswith("has no [tool.cudalint] table to extend")


def test_extend_in_a_circle_is_an_error(write: Write) -> None:
    write("a.toml", 'extend = "cudalint.toml"\n')
    write("cudalint.toml", 'extend = "a.toml"\n')
    assert error() == "a.toml:1: extend: cudalint.toml extends this file in turn"


def test_the_command_line_overrides_the_file(write: Write) -> None:
    write("cudalint.toml", 'fail-on = "error"\nexclude = ["a"]\n')
    found = settings({"fail-on": "info", "exclude": ["b"]})
    assert (found.fail_on, found.exclude) == ("info", ("b",))
    assert found.where("fail-on") == "--fail-on"


@pytest.mark.usefixtures("write")
def test_errors_of_the_command_line_name_the_option() -> None:
    with pytest.raises(ConfigError, match=r'^--target-arch: "x" is no architecture'):
        Resolver({"target-arch": ["x"]})


def test_origins_find_the_line_of_a_value(write: Write) -> None:
    write("cudalint.toml", '# ignore = ["b"]\nignore = [\n  "a",\n  "b",\n]\n')
    found = settings()
    assert found.where("ignore") == "cudalint.toml:2"
    assert found.where("ignore", "b") == "cudalint.toml:4"
    assert found.where("select") == ""


def test_config_names_one_file_for_everything(write: Write) -> None:
    write("cudalint.toml", 'fail-on = "error"\n')
    other = write("other.toml", 'fail-on = "info"\n')
    assert settings(config=other).fail_on == "info"
    assert settings(isolated=True).fail_on == "warning"


def test_selection_keeps_the_layers_apart(write: Write) -> None:
    write("base.toml", 'select = ["memory"]\n')
    write("cudalint.toml", 'extend = "base.toml"\nignore = ["slow-math"]\n')
    layers = settings({"extend-select": ["latency"]}).selection
    assert [(layer.select, layer.ignore, layer.extend_select) for layer in layers] == [
        (("memory",), (), ()),
        (None, ("slow-math",), ()),
        (None, (), ("latency",)),
    ]


@pytest.mark.parametrize(
    ("requirement", "accepted"),
    [
        ("0.1.0", True),
        ("==0.1", True),
        (">=0.1,<0.2", True),
        ("~=0.1", True),
        ("!=0.1.0", False),
        (">0.1.0", False),
        ("<=0.0.9", False),
        ("~=0.2", False),
    ],
)
def test_required_version(write: Write, monkeypatch: pytest.MonkeyPatch, requirement: str, accepted: bool) -> None:
    monkeypatch.setattr("cudalint.config.__version__", "0.1.0")
    write("cudalint.toml", f'\nrequired-version = "{requirement}"\n')
    if accepted:
        assert settings().required_version == requirement
    else:
        assert error() == f"cudalint.toml:2: cudalint {requirement} is required, this is 0.1.0"


def test_arch_number() -> None:
    assert arch_number("sm_121") == 121


def test_settings_of_a_path_that_does_not_exist_are_those_of_its_folder(write: Write) -> None:
    write("sub/cudalint.toml", "show-info = true\n")
    assert settings(path=os.path.join("sub", "new.cu")).show_info  # noqa: PTH118


def test_the_table_in_the_documentation_of_toml_is_toml() -> None:
    text = "".join(f"{option.key} = {option.example}\n" for option in OPTIONS.values())
    assert set(tomllib.loads(text)) == set(OPTIONS)
