"""Whatever stands in a folder, a file, a configuration or a plugin, a run ends with an answer and the right exit status."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cudalint import engine, registry
from cudalint.cli import main
from cudalint.finding import Certainty, Finding, Severity
from cudalint.model.occupancy import Config, nearest_config
from cudalint.names import Names
from cudalint.report.excerpt import excerpt
from cudalint.report.style import Style
from cudalint.rule import KernelFacts, Rule, RuleMeta
from cudalint.source.suppress import parse
from cudalint.source.text import SourceFile

KERNEL = "__global__ void k(float* a) { a[threadIdx.x] = 1.0f; }\nvoid run(float* a) { k<<<1, 32>>>(a); }\n"
SEVERITY = {Certainty.EXACT: Severity.WARNING, Certainty.LIKELY: Severity.WARNING, Certainty.POSSIBLE: Severity.INFO}
FULL = Path("/dev/full")
needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")


class Seen(Rule):
    """Reports every kernel, so that it shows which were looked at."""

    meta: ClassVar[RuleMeta] = RuleMeta("kernel-seen", "TT401", "launch", "a kernel", SEVERITY, "0.1.0")

    def check_kernel(self, kernel: KernelFacts) -> Iterable[Finding]:
        yield self.finding(kernel.location, "seen", Certainty.EXACT, kernel=kernel)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project that is the working directory; the only rule is `kernel-seen`."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "load", lambda plugins=True: registry.of_classes([Seen]))
    return tmp_path


def check(*arguments: str) -> int:
    return main(["check", "-q", "--output-format", "concise", *arguments])


def command(*arguments: str, shell: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, its streams redirected as `shell` says."""
    words = [sys.executable, "-m", "cudalint", *arguments]
    line = " ".join(f"'{word}'" for word in words) + " " + shell
    environment = {**os.environ, **variables}
    return subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, env=environment, check=False)


# --------------------------------------------------------------- files and folders


def test_a_link_to_itself_hides_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.cu").write_text(KERNEL, "utf-8")
    Path("loop.cu").symlink_to("loop.cu")
    Path("nowhere.cu").symlink_to("missing.cu")
    Path(".#a.cu").symlink_to("user@host.1234")
    Path("folder").symlink_to("folder")
    assert check(".") == 1
    out, err = capsys.readouterr()
    assert out == "a.cu:1:1: warning[kernel-seen] seen\n"
    assert err == (
        "loop.cu: warning: too many levels of symbolic links\nnowhere.cu: warning: no such file or directory\n"
        if sys.platform == "linux"
        else err
    )


@needs_pipes
def test_pipes_are_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.cu").write_text(KERNEL, "utf-8")
    for name in ("pipe.cu", "pipe.h", ".gitignore", "pyproject.toml"):
        os.mkfifo(name)
    assert check(".") == 1
    assert capsys.readouterr().err == "pipe.cu: warning: not a regular file\n"
    assert check("a.cu", "pipe.cu") == 2
    assert "pipe.cu: error: not a regular file\n" in capsys.readouterr().err


def test_a_gitignore_with_a_pattern_that_is_none() -> None:
    Path("a.cu").write_text(KERNEL, "utf-8")
    Path("b.cu").write_text(KERNEL, "utf-8")
    Path(".gitignore").write_text("[z-a]\n!\nb.cu\n", "utf-8")
    assert check(".") == 1


# ----------------------------------------------------------------------- streams


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
def test_a_full_disk() -> None:
    Path("a.cu").write_text(KERNEL, "utf-8")
    for arguments in (("check", "a.cu"), ("rule",), ("--help",)):
        result = command(*arguments, shell=f">{FULL}")
        assert (result.returncode, result.stderr) == (2, "error: standard output: no space left on device\n")
    result = command("check", "--output-format", f"json={FULL}", "a.cu")
    assert (result.returncode, result.stderr) == (2, f"{FULL}: error: no space left on device\n")
    assert command("check", "missing.cu", shell=f"2>{FULL}").returncode == 2


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_closed_streams() -> None:
    Path("a.cu").write_text(KERNEL, "utf-8")
    assert command("check", "a.cu", shell=">&-").stderr == ""
    assert command("check", "missing.cu", shell="2>&-").returncode == 2
    assert command("check", "-", shell="<&-").returncode == 0


def test_an_encoding_without_the_characters() -> None:
    result = command("--help", PYTHONIOENCODING="ascii")
    assert (result.returncode, "OPTION\\u2026" in result.stdout) == (0, True)


# -------------------------------------------------------------- unexpected errors


def test_an_error_that_nothing_catches(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise LookupError("oops")

    monkeypatch.setattr(engine, "check", fails)
    assert check(".") == 2
    assert capsys.readouterr().err == (
        "internal error: LookupError: oops\nnote: this is a bug of cudalint or of a plugin, --verbose shows where\n"
    )
    assert check("-v", ".") == 2
    assert "Traceback (most recent call last):\n" in capsys.readouterr().err


def test_facts_that_fail_late_leave_the_other_kernels(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.cu").write_text(KERNEL + KERNEL.replace("k", "other"), "utf-8")
    shown = Names.in_facts

    def fails(self: Names, facts: KernelFacts) -> KernelFacts:
        if facts.name == "k":
            raise OverflowError("too large")
        return shown(self, facts)

    monkeypatch.setattr(Names, "in_facts", fails)
    assert main(["inspect", "--output-format", "json", "a.cu"]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("internal error: kernel k in a.cu: OverflowError: too large\n")
    assert [len(kernel["accesses"]) for kernel in json.loads(out)["kernels"]] == [0, 1]


# ----------------------------------------------------------------- configuration


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('exclude = ["a", "!"]', 'cudalint.toml:1: exclude: "!" is no pattern of .gitignore'),
        ('extend-exclude = ["[z-a]"]', 'cudalint.toml:1: extend-exclude: "[z-a]" is no pattern of .gitignore'),
        ('extend = "~nobody-of-that-name/x"', "cudalint.toml:1: extend: no such file: ~nobody-of-that-name/x"),
        ("x = " + "[" * 5000 + "]" * 5000, "cudalint.toml:1: invalid TOML: nested too deeply"),
        ("x = " + "9" * 5000, "cudalint.toml:1: invalid TOML: a number that is too long"),
    ],
)
def test_configurations_that_cannot_be_used(text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("cudalint.toml").write_text(text + "\n", "utf-8")
    assert check(".") == 2
    assert capsys.readouterr() == ("", f"error: {message}\n")


# ----------------------------------------------------------------------- plugins


def _exits(*_: Any) -> Any:
    raise SystemExit(0)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda *_: None, "TypeError: 'NoneType' object is not iterable"),
        (lambda *_: [None], "TypeError: None is not a Finding"),
        (lambda *_: ["x" * 99], f"TypeError: '{'x' * 59} is not a Finding"),
        (_exits, "SystemExit: 0"),
    ],
)
def test_rules_that_answer_nonsense(
    answer: Callable[..., Any], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    meta = RuleMeta("odd-one", "TT402", "launch", "odd", SEVERITY, "0.1.0")
    odd: type[Rule] = type("Odd", (Rule,), {"meta": meta, "check_kernel": answer})
    monkeypatch.setattr(registry, "load", lambda plugins=True: registry.of_classes([Seen, odd]))
    Path("a.cu").write_text(KERNEL, "utf-8")
    assert check("a.cu") == 2
    out, err = capsys.readouterr()
    assert out == "a.cu:1:1: warning[kernel-seen] seen\n"
    assert err.startswith(f"internal error: rule odd-one, kernel k in a.cu: {message}\n")


def test_plugins_that_end_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    module = types.ModuleType("plugin_whose_rule_exits")
    meta = RuleMeta("exits", "TT403", "launch", "exits", SEVERITY, "0.1.0")
    module.__dict__["Exits"] = type("Exits", (Seen,), {"meta": meta, "__init__": _exits, "__module__": module.__name__})
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(registry, "_entries", lambda _: [("one", module.__name__), ("two", "plugin_that_exits")])
    found = importlib.import_module
    monkeypatch.setattr(importlib, "import_module", lambda name: _exits() if name == "plugin_that_exits" else found(name))
    assert registry.load().problems == (
        "rules of one (plugin_whose_rule_exits): exits: SystemExit: 0",
        "rules of two (plugin_that_exits) cannot be loaded: SystemExit: 0",
    )


# ------------------------------------------------------------------------ sources

_DEEP = 1500
_HOSTILE = {
    "parentheses": "a[i] = " + "(" * _DEEP + "i" + ")" * _DEEP + ";",
    "blocks": "{" * _DEEP + "a[i] = 1;" + "}" * _DEEP,
    "subscripts": "a" + "[a" * _DEEP + "[i]" + "]" * _DEEP + " = 1;",
    "conditional operators": "a[i] = " + "".join(f"n == {j} ? {j} : " for j in range(_DEEP)) + "0;",
    "else if": "".join(f"if (i == {j}) a[i] = {j}; else " for j in range(_DEEP)) + "a[i] = 0;",
    "loops": "".join(f"for (int j{j} = 0; j{j} < 4; j{j}++) " for j in range(30)) + "a[i + j3] = 1;",
    "a loop without a step": "for (int j = 0; j < 10; j += 0) a[i + j] = 1;",
    "a loop without an end": "for (;;) a[i] = 1; while (1) a[i] = 2;",
    "a long loop": "for (int j = 0; j < 2000000000; j++) for (int l = i; l < 2000000000; l++) a[l * 32] = 1;",
    "goto": "again: a[i] = 1; goto again; goto nowhere;",
    "a switch": "switch (i) {" + "".join(f"case {j}: a[i] = {j};" for j in range(500)) + "}",
    "division by zero": "a[i / 0] = a[i % 0]; a[i / (n - n)] = 1 / 0; int q = 0; a[i % q] = (int) (1.0f / q);",
    "shifts": "a[i << 70] = a[i >> -1]; a[i << 1000000000] = 1 << (1 << 30);",
    "large numbers": "a[i * " + "9" * 5000 + "] = 0x" + "f" * 500 + "; a[(int) 1e400] = 1e-400;",
    "array sizes": "__shared__ int s[-5]; __shared__ int t[0]; __shared__ int u[1LL << 62][1LL << 62]; s[i] = t[i] + u[i][i];",
    "an unfinished string": 'a[i] = 1; "',
    "an unfinished comment": "a[i] = 1; /*",
    "bytes": "a[i] = 1; \0 \xff \udc80 \r",
}
_LAUNCHES = (
    "0, 0", "-1, -1", "1, 2147483648LL", "1, 1 << 70", "1, dim3(1, 2, 3, 4, 5, 6, 7)", "1, dim3(0, 0, 0)", "1 / 0, 1e300",
    "", "1", "1, 32, -1", "1, 32, 1LL << 62", "1, nullptr", '1, "x"', "1, dim3(1 << 30, 1 << 30, 1 << 30)", "{1}, {32}",
)  # fmt: skip


@pytest.mark.parametrize("name", _HOSTILE)
def test_hostile_statements(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = f"__global__ void k(float* a, int n) {{ int i = threadIdx.x; {_HOSTILE[name]} }}\n"
    text = kernel + "void r(float* a) { k<<<1, 64>>>(a, 3); }\n"
    Path("a.cu").write_bytes(text.encode("utf-8", "surrogateescape"))
    status = check("a.cu")
    assert (capsys.readouterr().err, status in (0, 1)) == ("", True)
    assert main(["inspect", "a.cu"]) == 0
    assert capsys.readouterr().err == ""


def test_hostile_launches(capsys: pytest.CaptureFixture[str]) -> None:
    calls = "".join(f"k<<<{launch}>>>(a);\n" for launch in _LAUNCHES)
    Path("a.cu").write_text(f"{KERNEL}void more(float* a) {{\n{calls}}}\n", "utf-8")
    assert (check("a.cu"), capsys.readouterr()) == (1, ("a.cu:1:1: warning[kernel-seen] seen\n", ""))


@pytest.mark.parametrize(
    "prelude",
    [
        '#include "a.cu"\n#include "."\n#include ""\n#include MACRO\n#include\n',
        '#define\n#undef\n#include "a.cu\n#include <\n#\n',
        "#define A B\n#define B A\n#define F(x) F(x)\n#if A == F(B)\n#endif\n",
        "#define D0(x) x\n" + "".join(f"#define D{i + 1}(x) D{i}(x) D{i}(x)\n" for i in range(40)) + "int y = D40(1);\n",
        "#if " + "(" * _DEEP + "1" + ")" * _DEEP + "\n#endif\n",
        "#if 1\n" * _DEEP + "#endif\n" * _DEEP,
        "namespace n {" * _DEEP + "}" * _DEEP,
        "template <int N> struct S { static constexpr int v = S<N + 1>::v; S<N + 1> m; };\nint z = S<0>::v;\n",
        "struct A : B {};\nstruct B : A {};\ntypedef C D;\ntypedef D C;\nstruct P { P p; };\n",
        "__device__ int f(int i) { return f(i - 1) + f(i - 2); }\n",
        "constexpr int f(int n) { return n < 2 ? 1 : f(n - 1) + f(n - 2); }\n__device__ int t[f(60)];\n",
    ],
)
def test_hostile_declarations(prelude: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.cu").write_text(prelude + KERNEL, "utf-8")
    status = check("a.cu")
    line = prelude.count("\n") + 1
    column = len(prelude) + 1 if line == 1 else 1
    assert (status, capsys.readouterr()) == (1, (f"a.cu:{line}:{column}: warning[kernel-seen] seen\n", ""))


def test_a_launch_that_no_gpu_has_room_for(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.cu").write_text(
        "__global__ void k(float* a) { __shared__ float s[1LL << 32][32]; s[threadIdx.x][0] = a[0]; }\n"
        "void run(float* a) { k<<<1, 32, 1LL << 40>>>(a); k<<<1, 32, -1>>>(a); }\n",
        "utf-8",
    )
    assert main(["inspect", "--output-format", "json", "a.cu"]) == 0
    out, err = capsys.readouterr()
    assert (json.loads(out)["kernels"][0]["occupancy"]["sm_80"]["blocks_per_sm"], err) == (0, "")


def test_numbers_that_no_launch_can_have() -> None:
    assert nearest_config(0, 0, -1, -1) == Config(1, 1)
    assert nearest_config(1 << 70, 999, 1 << 40, 1 << 31) == Config(2**31 - 1, 255, 2**31 - 1, 2**31 - 1)


# --------------------------------------------------------------- lines without end


def test_the_excerpt_of_a_very_long_line() -> None:
    def shown(before: int, after: int) -> list[str]:
        source = SourceFile("a.cu", b"x" * before + b"here" + b"y" * after + b"\n")
        return excerpt(source, (1, before + 1), (1, before + 5), Style(False), 40, "warning")

    assert shown(100_000, 100_000) == shown(500, 500) == [" 1 | …xxxxxxxxhereyyyyyyyyyyyyyyyyyyyy…", "   |          ^^^^"]
    assert shown(0, 100_000) == shown(0, 500)
    assert shown(100_000, 0) == shown(500, 0)


def test_a_suppression_that_names_thousands() -> None:
    words = ", ".join(["nothing"] * 5000 + [f"w{i}" for i in range(5000)])
    (problem,) = parse(SourceFile("a.cu", f"// cudalint: ignore[{words}]\nint a;\n".encode())).problems({"known"})
    assert problem.names == ("nothing", *(f"w{i}" for i in range(5000)))


# -------------------------------------------------------------------- determinism


def test_the_same_answer_in_whatever_order(capsys: pytest.CaptureFixture[str]) -> None:
    header = "template <int N> __global__ void k(float* a) { a[threadIdx.x * N] = 1; }\n"
    Path("k.cuh").write_text(header, "utf-8")
    names = ["a.cu", "b.cu", "c.cu"]
    for number, name in enumerate(names, 1):
        Path(name).write_text(f'#include "k.cuh"\nvoid run(float* a) {{ k<{number}><<<1, {number * 32}>>>(a); }}\n', "utf-8")

    def answer(*arguments: str) -> Any:
        assert main(["inspect", "--isolated", "--output-format", "json", *arguments]) == 0
        return json.loads(capsys.readouterr().out)["kernels"]

    whole = answer(".")
    assert len(whole[0]["launches"]) == 3
    assert answer("c.cu", "k.cuh", "a.cu", "b.cu") == answer("b.cu") == whole
    for seed in ("1", "4711"):
        result = command("inspect", "--isolated", "--output-format", "json", PYTHONHASHSEED=seed)
        assert json.loads(result.stdout)["kernels"] == whole
