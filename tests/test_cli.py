"""The command as users meet it: arguments, streams and exit status."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cudalint import __version__, engine, registry
from cudalint.cli import main
from cudalint.finding import Certainty, Finding, Severity
from cudalint.rule import KernelFacts, Rule, RuleMeta

KERNEL = "__global__ void {name}(float* a) {{ a[threadIdx.x] = 1.0f; }}\nvoid run(float* a) {{ {name}<<<1, {block}>>>(a); }}\n"
SUMMARY = re.compile(r"\d+\.\d s$", re.MULTILINE)


class Sized(Rule):
    """Small blocks are worth knowing, large ones a warning, the largest an error."""

    meta: ClassVar[RuleMeta] = RuleMeta(
        "block-sized",
        "TT401",
        "launch",
        "a block of some size",
        {Certainty.POSSIBLE: Severity.INFO, Certainty.LIKELY: Severity.WARNING, Certainty.EXACT: Severity.ERROR},
        "0.1.0",
    )

    def check_kernel(self, kernel: KernelFacts) -> Iterable[Finding]:
        threads = kernel.launch.block[0] if kernel.launch.block else 0
        if threads == 999:
            raise LookupError("999")
        certainty = Certainty.POSSIBLE if threads < 64 else Certainty.LIKELY if threads < 512 else Certainty.EXACT
        yield self.finding(kernel.location, f"{threads} threads", certainty, kernel=kernel)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project that is the working directory; the only rule is `block-sized`."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(registry, "load", lambda plugins=True: registry.of_classes([Sized]))
    return tmp_path


def write(name: str, block: int, kernel: str = "k") -> None:
    Path(name).write_text(KERNEL.format(name=kernel, block=block), "utf-8")


class Run:
    """The outcome of one command."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        try:
            self.status: Any = main(arguments)
        except SystemExit as error:
            self.status = error.code
        captured = capsys.readouterr()
        self.out, self.err = captured.out, captured.err


# -------------------------------------------------------------------------- general


@pytest.mark.parametrize("word", ["--version", "-V", "version"])
def test_version(capsys: pytest.CaptureFixture[str], word: str) -> None:
    run = Run(capsys, word)
    assert (run.status, run.out, run.err) == (0, f"cudalint {__version__}\n", "")


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, "--help")
    assert run.status == 0
    for word in ("check", "inspect", "occupancy", "explain", "rule", "config", "new-rule", "version"):
        assert f"\n  {word}" in run.out
    nothing = Run(capsys)
    assert (nothing.status, nothing.out) == (2, run.out)


@pytest.mark.parametrize("command", ["check", "inspect", "occupancy", "explain", "rule", "config", "new-rule"])
def test_every_command_has_help(capsys: pytest.CaptureFixture[str], command: str) -> None:
    run = Run(capsys, command, "--help")
    assert run.status == 0
    assert run.out.startswith(f"usage: cudalint {command} ")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("chek", 'error: unknown command "chek" (did you mean "check"?); see cudalint --help\n'),
        ("a.cu", 'error: unknown command "a.cu"; to check that path: cudalint check a.cu\n'),
    ],
)
def test_unknown_commands(capsys: pytest.CaptureFixture[str], word: str, message: str) -> None:
    write("a.cu", 64)
    run = Run(capsys, word)
    assert (run.status, run.out, run.err) == (2, "", message)


def test_the_module_runs_as_the_command_does() -> None:
    run = subprocess.run([sys.executable, "-m", "cudalint", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout == f"cudalint {__version__}\n"


def test_interrupting_is_no_traceback(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "check", interrupt)
    run = Run(capsys, "check")
    assert (run.status, run.out, run.err) == (130, "", "")


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    write("a.cu", 64)
    command = [sys.executable, "-m", "cudalint", "check", "--output-format", "json", "a.cu"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


# ---------------------------------------------------------------------------- status


@pytest.mark.parametrize(
    ("block", "arguments", "status"),
    [
        (32, [], 0),
        (32, ["--fail-on", "info"], 1),
        (256, [], 1),
        (256, ["--fail-on", "error"], 0),
        (256, ["--exit-zero"], 0),
        (256, ["--ignore", "launch"], 0),
        (512, ["--fail-on", "error"], 1),
        (999, [], 2),
        (999, ["--exit-zero"], 2),
    ],
)
def test_exit_status(capsys: pytest.CaptureFixture[str], block: int, arguments: list[str], status: int) -> None:
    write("a.cu", block)
    assert Run(capsys, "check", *arguments).status == status


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--select", "block-size"], '--select: unknown rule "block-size" (did you mean "block-sized"?)'),
        (["--target-arch", "sm_1"], '--target-arch: "sm_1" is no architecture from sm_50 to sm_121'),
        (["--target-arch", "sm_85"], "--target-arch: unknown architecture 'sm_85'"),
        (["--output-format", "jason"], '--output-format: unknown format "jason" (did you mean "json"?)'),
        (["--config", "none.toml"], "--config: no such file: none.toml"),
        (["none.cu"], "none.cu: no such file or directory"),
        (["-D", "1X"], '-D: "1X" is not NAME or NAME=VALUE'),
    ],
)
def test_wrong_usage_is_one_line_and_2(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    write("a.cu", 64)
    run = Run(capsys, "check", "a.cu", *arguments)
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith(f"error: {message}")
    assert run.err.count("\n") == 1


def test_a_wrong_configuration_is_one_line_and_2(capsys: pytest.CaptureFixture[str]) -> None:
    Path("cudalint.toml").write_text('\nselect = ["block-size"]\n')
    write("a.cu", 64)
    run = Run(capsys, "check")
    assert (run.status, run.out) == (2, "")
    assert run.err == 'error: cudalint.toml:2: unknown rule "block-size" (did you mean "block-sized"?)\n'


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "--selct", "ALL"], 'unknown option "--selct" (did you mean "--select"?); see cudalint check --help'),
        (["check", "--frobnicate=1"], 'unknown option "--frobnicate"; see cudalint check --help'),
        (["config", "select", "ignore"], 'unknown argument "ignore"; see cudalint config --help'),
        (["check", "--select"], "argument --select: expected one argument; see cudalint check --help"),
        (
            ["check", "--assume-block", "x"],
            "argument --assume-block: 'x' is not a block such as 256 or 16x16; see cudalint check --help",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_one_line_and_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    run = Run(capsys, *arguments)
    assert (run.status, run.out, run.err) == (2, "", f"error: {message}\n")


def test_an_internal_error_names_the_rule_and_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.cu", 999, "k")
    write("b.cu", 256, "other")
    run = Run(capsys, "check", "--output-format", "concise")
    assert run.status == 2
    assert run.out.startswith("b.cu:1:1: warning[block-sized] 256 threads\n")
    assert run.err == (
        "internal error: rule block-sized, kernel k in a.cu: LookupError: 999\n"
        "note: these are bugs of cudalint or of a plugin, --verbose shows where\n"
    )
    assert "Traceback" in Run(capsys, "check", "--verbose").err


def test_a_plugin_that_cannot_be_loaded_is_2(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    broken = registry.Registry((Sized(),), ("rules of theirs (their_rules) cannot be loaded: ImportError: x",))
    monkeypatch.setattr(registry, "load", lambda plugins=True: broken if plugins else registry.of_classes([Sized]))
    write("a.cu", 32)
    run = Run(capsys, "check")
    assert run.status == 2
    assert run.err == "error: rules of theirs (their_rules) cannot be loaded: ImportError: x\n"
    assert Run(capsys, "check", "--no-plugins").status == 0
    assert Run(capsys, "rule").status == 2


# ----------------------------------------------------------------------------- files


def test_options_and_paths_mix(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.cu", 256, "k")
    write("b.cu", 256, "other")
    run = Run(capsys, "check", "a.cu", "--output-format", "concise", "b.cu", "--quiet")
    assert run.out == "a.cu:1:1: warning[block-sized] 256 threads\nb.cu:1:1: warning[block-sized] 256 threads\n"


def test_nothing_to_check_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, "check", "--quiet")
    assert (run.status, run.out, run.err) == (0, "", "warning: no CUDA files found\n")


def test_show_files(capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("src", "gen", "build"):
        Path(folder).mkdir()
        write(f"{folder}/a.cu", 256)
    run = Run(capsys, "check", "--show-files", "--extend-exclude", "gen,nothing")
    assert (run.status, run.out, run.err) == (0, "src/a.cu\n", "")
    assert Run(capsys, "check", "--show-files", "--exclude", "src").out == "build/a.cu\ngen/a.cu\n"


def test_show_settings(capsys: pytest.CaptureFixture[str]) -> None:
    Path("cudalint.toml").write_text('fail-on = "error"\n')
    lines = Run(capsys, "check", "--show-settings", "--target-arch", "sm_90,sm_120").out.splitlines()
    assert 'fail-on = "error"  # cudalint.toml:1' in lines
    assert 'target-arch = ["sm_90", "sm_120"]  # --target-arch' in lines


def test_files_that_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.cu", 32)
    Path("b.cu").write_bytes(bytes(range(256)))
    found = Run(capsys, "check")
    assert (found.status, found.err) == (0, "b.cu: warning: binary file\n")
    named = Run(capsys, "check", "a.cu", "b.cu")
    assert (named.status, named.err) == (2, "b.cu: error: binary file\n")
    assert Run(capsys, "check", "--exit-zero", "b.cu").status == 0


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00",
        bytes(range(256)) * 8,
        KERNEL.format(name="k", block=64).encode("utf-16"),
        KERNEL.format(name="k", block=64).encode("utf-16-be"),
        KERNEL.format(name="k", block=64).encode("utf-32"),
        KERNEL.format(name="k", block=64).encode() + b"\x00",
        b"\xff\xfe__global__ void k() {\xff",
        b"__global__ void k() { " + b"(" * 5000,
        b"#define A A A\n#define B B\n__global__ void k() { A B }",
    ],
)
def test_no_file_can_break_the_json(capsys: pytest.CaptureFixture[str], data: bytes) -> None:
    Path("x.cu").write_bytes(data)
    run = Run(capsys, "check", "--output-format", "json", "--select", "ALL", "--exit-zero", "x.cu")
    assert run.status == 0
    assert json.loads(run.out)["version"] == 1
    assert "Traceback" not in run.err


def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = KERNEL.format(name="k", block=128)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    run = Run(capsys, "check", "-", "--stdin-filename", "src/new.cu", "--output-format", "concise", "-q")
    assert (run.status, run.out) == (1, "src/new.cu:1:1: warning[block-sized] 128 threads\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert Run(capsys, "check", "--stdin-filename", "src/new.cu", "--output-format", "concise", "-q").out == run.out
    run = Run(capsys, "check", "--stdin-filename", "src/new.cu", ".")
    assert (run.status, run.err) == (2, "error: --stdin-filename: paths are given, and none of them is -\n")


# ---------------------------------------------------------------------------- report


def test_several_reports_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.cu", 32)
    run = Run(capsys, "check", "--output-format", "concise", "--output-format", "json=out.json", "--show-info")
    assert run.out.startswith("a.cu:1:1: info[block-sized] 32 threads\n")
    assert [item["severity"] for item in json.loads(Path("out.json").read_text())["findings"]] == ["info"]


def test_a_report_that_cannot_be_written_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.cu", 32)
    run = Run(capsys, "check", "--output-format", "json=no/such/folder.json")
    assert (run.status, run.out, run.err) == (2, "", "no/such/folder.json: error: no such file or directory\n")


def test_formats_may_stand_in_the_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    Path("cudalint.toml").write_text('output-format = "concise"\nshow-info = true\n')
    write("a.cu", 32)
    assert Run(capsys, "check", "-q").out == "a.cu:1:1: info[block-sized] 32 threads\n"
    assert json.loads(Run(capsys, "check", "--output-format", "json").out)["summary"]["kernels"] == 1
    assert Run(capsys, "inspect").out.startswith("k  a.cu:1\n")


def test_statistics(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.cu", 256, "k")
    write("b.cu", 256, "other")
    assert Run(capsys, "check", "--statistics", "-q").out == "2  TT401  block-sized\n"
    assert json.loads(Run(capsys, "check", "--statistics", "--output-format", "json").out)[0]["count"] == 2


@pytest.mark.parametrize(("arguments", "colored"), [([], False), (["--color", "always"], True), (["--color", "never"], False)])
def test_color_without_a_terminal(capsys: pytest.CaptureFixture[str], arguments: list[str], colored: bool) -> None:
    write("a.cu", 256)
    assert ("\x1b[" in Run(capsys, "check", *arguments).out) is colored


@pytest.mark.parametrize(
    ("variables", "colored"), [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)]
)
def test_color_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], colored: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    write("a.cu", 256)
    assert ("\x1b[" in Run(capsys, "check").out) is colored


def test_verbose_names_the_configuration(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    write("a.cu", 32)
    assert Run(capsys, "check", "-v").err == "configuration: none\n"
    Path("cudalint.toml").touch()
    assert Run(capsys, "check", "-v").err == f"configuration: {project / 'cudalint.toml'}\n"


# -------------------------------------------------------------------- other commands


def test_inspect(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.cu", 256)
    run = Run(capsys, "inspect", "--target-arch", "sm_90")
    assert run.status == 0
    assert "  launch      a.cu:2  block 256, grid 1x1x1\n" in run.out
    document = json.loads(Run(capsys, "inspect", "--output-format", "json").out)
    assert [kernel["name"] for kernel in document["kernels"]] == ["k"]
    assert document["kernels"][0]["launches"][0]["block"] == [256, 1, 1]


def test_inspect_knows_two_formats(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, "inspect", "--output-format", "concise")
    assert (run.status, run.err) == (2, 'error: --output-format: unknown format "concise"\n')


def test_occupancy(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["occupancy", "--arch", "sm_90", "--block", "224", "--registers", "96"]
    answer = json.loads(Run(capsys, *arguments, "--output-format", "json").out)
    assert answer == {
        "blocks_per_sm": 2,
        "warps_per_sm": 14,
        "occupancy_percent": 21.9,
        "limiter": "registers",
        "limiters": ["registers"],
        "limits": {"registers": 2, "shared": 228, "warps": 9, "blocks": 32},
    }
    assert "21.9 %" in Run(capsys, *arguments).out
    assert json.loads(Run(capsys, *arguments, "--curve", "block", "--output-format", "json").out)["curve"]["axis"] == "block"
    assert "224" in Run(capsys, "occupancy", "--block", "16x14", "--registers", "32").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--block", "256", "--registers", "300"], "error: registers per thread: 300 is not within 1 to 255\n"),
        (["--block", "256", "--registers", "32", "--arch", "sm_1"], "error: unknown architecture 'sm_1'"),
    ],
)
def test_occupancy_of_what_cannot_be(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    run = Run(capsys, "occupancy", *arguments)
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith(message)


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    by_name, by_code = Run(capsys, "explain", "block-sized"), Run(capsys, "rule", "TT401")
    assert (by_name.status, by_name.out) == (0, by_code.out)
    assert by_name.out.startswith("block-sized (TT401)\n")
    assert Run(capsys, "rule", "--all").out == by_name.out
    assert Run(capsys, "rule").out == "TT401  block-sized  a block of some size\n"
    assert [page["name"] for page in json.loads(Run(capsys, "explain", "TT401", "--output-format", "json").out)] == [
        "block-sized"
    ]


def test_explain_suggests(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, "explain", "block-size")
    assert (run.status, run.out) == (2, "")
    assert run.err == 'error: unknown rule "block-size" (did you mean "block-sized"?)\n'


def test_config(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\nfail-on\n" in Run(capsys, "config").out
    assert Run(capsys, "config", "fail-on").out.startswith("fail-on\n")
    assert json.loads(Run(capsys, "config", "fail-on", "--output-format", "json").out)[0]["default"] == "warning"
    run = Run(capsys, "config", "fail_on")
    assert (run.status, run.err) == (2, 'error: unknown option "fail_on" (did you mean "fail-on"?)\n')


# -------------------------------------------------------------------------- new-rule


def load(path: Path) -> list[type[Rule]]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(registry.classes_in(module))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [([], "MY101"), (["--family", "launch"], "MY401"), (["--code", "ACME007"], "ACME007")],
)
def test_a_new_rule_passes_its_own_tests(capsys: pytest.CaptureFixture[str], arguments: list[str], code: str) -> None:
    from cudalint.testing import assert_case, assert_documented, rule_cases

    run = Run(capsys, "new-rule", "odd-block-size", "--directory", "their/checks", *arguments)
    path = Path("their/checks/odd_block_size.py")
    assert run.status == 0
    assert run.out.startswith(f"wrote {path}\nwrote {Path('tests/test_odd_block_size.py')}\n")
    assert 'mine = "their.checks.odd_block_size"' in run.out
    assert "\nfrom their.checks.odd_block_size import OddBlockSize\n" in Path("tests/test_odd_block_size.py").read_text()
    (rule,) = load(path)
    assert (rule.meta.name, rule.meta.code) == ("odd-block-size", code)
    assert_documented(rule)
    cases = rule_cases([rule])
    assert len(cases) == 2
    for case in cases:
        assert_case(case)


def test_a_new_built_in_rule_gets_the_next_code(capsys: pytest.CaptureFixture[str]) -> None:
    Path("cudalint").mkdir()
    Path("cudalint/rule.py").touch()
    run = Run(capsys, "new-rule", "odd-block-size", "--family", "divergence")
    assert run.out.startswith(f"wrote {Path('rules/odd_block_size.py')}\n\n")
    assert "tests/test_rules.py -k odd-block-size" in run.out
    assert load(Path("rules/odd_block_size.py"))[0].meta.code == "CU201"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Odd_Name"], "error: rule name 'Odd_Name' is not kebab-case\n"),
        (["block-sized"], "error: the rule block-sized exists\n"),
        (["a-rule", "--code", "TT401"], "error: the code TT401 belongs to block-sized\n"),
        (["a-rule", "--code", "x1"], "error: rule code 'x1' is not two to five capitals and three digits\n"),
        (["a-rule", "--family", "memry"], 'error: unknown family "memry" (did you mean "memory"?)\n'),
    ],
)
def test_new_rules_that_cannot_be(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    run = Run(capsys, "new-rule", *arguments)
    assert (run.status, run.out, run.err) == (2, "", message)
    assert not Path("rules").exists()


def test_a_new_rule_overwrites_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Path("rules").mkdir()
    Path("rules/a_rule.py").write_text("mine")
    run = Run(capsys, "new-rule", "a-rule")
    assert (run.status, run.err) == (2, f"error: {Path('rules/a_rule.py')}: file exists\n")
    assert not Path("tests").exists()
    assert Path("rules/a_rule.py").read_text() == "mine"
