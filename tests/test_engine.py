"""The pass over files: which kernels are looked at, what happens to errors, which settings hold where."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cudalint import engine, registry
from cudalint.config import ConfigError, Resolver
from cudalint.engine import check, inspect
from cudalint.finding import Certainty, Finding, Repair, Severity
from cudalint.result import Problem, Result
from cudalint.rule import KernelFacts, Rule, RuleMeta
from cudalint.source.text import SourceFile

SMALL = "__global__ void small(float* a) { a[threadIdx.x] = 1.0f; }\nvoid f(float* a) { small<<<1, 64>>>(a); }\n"
HEADER = "#pragma once\n__global__ void shared_kernel(float* a) { a[threadIdx.x] = 1.0f; }\n"
LAUNCH = '#include "k.cuh"\nvoid {name}(float* a) {{ shared_kernel<<<1, {block}>>>(a); }}\n'


def meta(name: str, code: str, **changes: Any) -> RuleMeta:
    severity = {Certainty.EXACT: Severity.WARNING, Certainty.POSSIBLE: Severity.INFO}
    return RuleMeta(name, code, "launch", "a rule for tests", severity, "0.1.0", **changes)


class Threads(Rule):
    """Reports every kernel with the threads of its block."""

    meta: ClassVar[RuleMeta] = meta("threads", "TT401")

    def check_kernel(self, kernel: KernelFacts) -> Iterable[Finding]:
        x, y, z = kernel.launch.block or (0, 0, 0)
        facts = {"wavefronts": x * y * z}
        yield self.finding(kernel.location, f"{x * y * z} threads", Certainty.EXACT, kernel=kernel, facts=facts)


class Priced(Threads):
    """Reports a repair that saves every instruction."""

    meta: ClassVar[RuleMeta] = meta("priced", "TT402")

    def check_kernel(self, kernel: KernelFacts) -> Iterable[Finding]:
        repair = Repair("instructions", kernel.work.instructions)
        yield self.finding(kernel.location, "priced", Certainty.EXACT, kernel=kernel, repair=repair)


class Modern(Threads):
    """Holds from sm_90 on."""

    meta: ClassVar[RuleMeta] = meta("modern", "TT403", min_arch=90)


class Broken(Rule):
    """Fails everywhere."""

    meta: ClassVar[RuleMeta] = meta("broken", "TT404")

    def check_kernel(self, kernel: KernelFacts) -> Iterable[Finding]:
        raise ZeroDivisionError("by rule")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project that is the working directory."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(**files: str) -> None:
    """Write files; a double underscore in a name is a slash, a single one a dot."""
    for name, text in files.items():
        path = Path(name.replace("__", "/").replace("_", "."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def run(*paths: str, rules: Iterable[type[Rule]] = (Threads,), overrides: dict[str, Any] | None = None, **options: Any) -> Result:
    return check(list(paths or (".",)), Resolver(overrides), registry.of_classes(rules), **options)


def places(result: Result) -> list[tuple[str, int, str]]:
    return [(item.finding.location.path, item.start[0], item.finding.message) for item in result.findings]


# ------------------------------------------------------------------------- kernels


def test_a_kernel_under_its_launch() -> None:
    write(a_cu=SMALL)
    result = run()
    assert places(result) == [("a.cu", 1, "64 threads")]
    assert (result.files, result.kernels, result.kernels_with_errors) == (("a.cu",), 1, 0)
    assert (result.target_arch, result.problems, result.internal_errors) == (("sm_80",), (), ())
    assert result.worst() is Severity.WARNING


def test_the_worst_launch_counts() -> None:
    write(k_cuh=HEADER, a_cu=LAUNCH.format(name="f", block=128), b_cu=LAUNCH.format(name="g", block=512))
    result = run()
    assert places(result) == [("k.cuh", 2, "512 threads")]
    assert [(item.location.path, item.text) for item in result.findings[0].finding.evidence] == [
        ("b.cu", "block is 512 here"),
        ("a.cu", "block is 128 here, less bad"),
    ]
    assert result.kernels == 1


def test_a_header_gives_the_same_findings_however_it_is_reached() -> None:
    write(k_cuh=HEADER, a_cu=LAUNCH.format(name="f", block=128), b_cu=LAUNCH.format(name="g", block=512))
    whole = run().findings
    for paths in (["k.cuh"], ["a.cu"], ["b.cu", "a.cu"], ["k.cuh", "a.cu"], ["./a.cu"]):
        assert run(*paths).findings == whole


def test_a_kernel_of_a_header_that_a_file_only_includes_is_left_to_the_header() -> None:
    write(k_cuh=HEADER, a_cu='#include "k.cuh"\n' + SMALL, b_cu=LAUNCH.format(name="g", block=512))
    assert places(run("a.cu")) == [("a.cu", 2, "64 threads")]


def test_a_folder_without_any_marker_is_one_project(project: Path) -> None:
    (project / ".git").rmdir()
    write(src__inc__k_cuh=HEADER, src__a_cu=LAUNCH.format(name="f", block=128).replace("k.cuh", "inc/k.cuh"))
    assert places(run("src")) == [("src/inc/k.cuh", 2, "128 threads")]


def test_absolute_paths_stay_absolute(project: Path) -> None:
    write(sub__k_cuh=HEADER, sub__a_cu=LAUNCH.format(name="f", block=128))
    assert places(run(str(project / "sub/a.cu"))) == [(str(project / "sub/k.cuh"), 2, "128 threads")]


def test_kernels_with_parse_errors_are_counted() -> None:
    write(a_cu=SMALL + "__global__ void broken(float* a) { a[ = ; }\n")
    result = run()
    assert (result.kernels, result.kernels_with_errors) == (2, 1)


def test_standard_input_replaces_the_file_on_disk() -> None:
    write(k_cuh=HEADER, a_cu=LAUNCH.format(name="f", block=128))
    assert places(run("a.cu", stdin=SourceFile("a.cu", LAUNCH.format(name="f", block=96).encode()))) == [
        ("k.cuh", 2, "96 threads")
    ]
    result = run("sub/new.cu", stdin=SourceFile("sub/new.cu", SMALL.encode()))
    assert places(result) == [("sub/new.cu", 1, "64 threads")]
    assert result.files == ("sub/new.cu",)


HELPER = "#pragma once\n__device__ inline float get(float* s) { return s[threadIdx.x * 32]; }\n"
CALLER = """#include "get.cuh"
__global__ void k(float* a) {
    __shared__ float s[2048];
    s[threadIdx.x] = a[threadIdx.x];
    a[threadIdx.x] = get(s);
}
void f(float* a) { k<<<1, 64>>>(a); }
"""


class Loads(Rule):
    """Reports every load from shared memory."""

    meta: ClassVar[RuleMeta] = meta("loads", "TT405")

    def check_kernel(self, kernel: KernelFacts) -> Iterable[Finding]:
        for access in kernel.accesses:
            if (access.space, access.op) == ("shared", "load"):
                yield self.finding(access.location, "load", Certainty.EXACT, kernel=kernel)


def test_a_header_of_device_code_is_judged_by_the_kernels_that_use_it() -> None:
    write(get_cuh=HELPER, a_cu=CALLER)
    whole, alone = run(rules=(Loads, Threads)), run("get.cuh", rules=(Loads, Threads))
    assert places(whole) == [("a.cu", 2, "64 threads"), ("get.cuh", 2, "load")]
    assert alone.findings == whole.findings[1:]
    assert (alone.files, alone.kernels) == (("get.cuh",), 0)


# ---------------------------------------------------------------------- suppressions


def suppressed(text: str, **options: Any) -> list[str | None]:
    write(a_cu=text)
    return [item.finding.suppressed for item in run(**options).findings]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("// cudalint: ignore[threads] measured: harmless\n" + SMALL, "measured: harmless"),
        ("// cudalint: file-ignore[TT401]\n\n" + SMALL, "comment on line 1"),
        ("// NOLINTNEXTLINE(cudalint-launch)\n" + SMALL, "comment on line 1"),
        ("// cudalint: ignore[loads]\n" + SMALL, None),
    ],
)
def test_comments_suppress_what_they_name(text: str, reason: str | None) -> None:
    assert suppressed(text, rules=(Threads, Loads)) == [reason]


def test_suppressed_findings_do_not_count() -> None:
    write(a_cu="// cudalint: file-ignore[threads]\n" + SMALL)
    result = run()
    assert (len(result.findings), result.active, result.worst()) == (1, (), None)


def test_a_comment_above_a_kernel_covers_the_kernel() -> None:
    write(get_cuh=HELPER.replace("s[threadIdx.x * 32]", "s[0]"))
    body = CALLER.replace("get(s)", "s[63]")
    assert suppressed(body.replace("__global__", "// cudalint: ignore[loads] small\n__global__"), rules=(Loads,)) == ["small"]


def test_what_is_wrong_with_comments_is_noted() -> None:
    write(
        a_cu="// cudalint: ignore[threads]\n" + SMALL,
        b_cu="// cudalint: ignore[threads]\n// cudalint: ignore[thread]\n// cudalint: ignore[loads]\nint x;  // NOLINT\n",
    )
    texts = [(note.path, note.line, note.text) for note in run(rules=(Threads, Loads), overrides={"select": ["threads"]}).notes]
    assert texts == [
        ("b.cu", 1, "suppression of threads suppresses nothing"),
        ("b.cu", 2, "suppression of thread names no rule"),
    ]


def test_nothing_is_called_unused_after_an_internal_error() -> None:
    write(a_cu="// cudalint: ignore[threads]\nint x;\n" + SMALL)
    assert len(run().notes) == 1
    assert run(rules=(Threads, Broken)).notes == ()


# ---------------------------------------------------------------------------- price


def test_repairs_are_priced_and_ranked() -> None:
    write(a_cu=SMALL)
    first, second = run(rules=(Threads, Priced)).findings
    assert (first.finding.rule, first.rank, second.rank) == ("priced", 1, None)
    cost = first.finding.cost
    assert cost is not None
    assert 0 <= cost.low <= cost.share <= cost.high <= 1


# --------------------------------------------------------------------------- errors


def test_a_rule_that_fails_does_not_end_the_run() -> None:
    write(a_cu=SMALL, b_cu=SMALL.replace("small", "other"))
    result = run(rules=(Threads, Broken))
    assert len(result.findings) == 2
    assert [(error.rule, error.where, error.message) for error in result.internal_errors] == [
        ("broken", "kernel small in a.cu", "ZeroDivisionError: by rule"),
        ("broken", "kernel other in b.cu", "ZeroDivisionError: by rule"),
    ]
    assert "check_kernel" in result.internal_errors[0].traceback


def test_an_analysis_that_fails_costs_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    write(a_cu=SMALL, b_cu=SMALL.replace("small", "other"))
    real = engine.kernel_facts

    def fails(kernel: Any, *rest: Any) -> Any:
        if kernel.name == "small":
            raise RecursionError("too deep")
        return real(kernel, *rest)

    monkeypatch.setattr(engine, "kernel_facts", fails)
    result = run()
    assert places(result) == [("b.cu", 1, "64 threads")]
    (error,) = result.internal_errors
    assert (error.rule, error.where, error.message) == ("", "kernel small in a.cu", "RecursionError: too deep")


def test_a_price_that_fails_leaves_the_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise OverflowError

    monkeypatch.setattr("cudalint.model.cost.Pricing.price", fails)
    write(a_cu=SMALL)
    result = run(rules=(Priced,))
    assert [item.finding.cost for item in result.findings] == [None]
    assert [error.message for error in result.internal_errors] == ["OverflowError"]


def test_files_that_cannot_be_read_are_problems() -> None:
    write(a_cu=SMALL)
    Path("b.cu").write_bytes(bytes(range(256)))
    assert run().problems == (Problem("b.cu", "binary file", named=False),)
    result = run("a.cu", "b.cu")
    assert result.problems == (Problem("b.cu", "binary file", named=True),)
    assert (result.files, len(result.findings)) == (("a.cu",), 1)


def test_nothing_to_check() -> None:
    result = run(overrides={"target-arch": ["sm_90"]})
    assert (result.files, result.findings, result.target_arch, result.worst()) == ((), (), ("sm_90",), None)


# -------------------------------------------------------------------------- settings


def test_every_file_has_the_settings_of_its_folder() -> None:
    write(a_cu=SMALL, sub__b_cu=SMALL.replace("small", "other"))
    write(sub__cudalint_toml='ignore = ["threads"]\n')
    assert places(run()) == [("a.cu", 1, "64 threads")]
    assert run(overrides={"select": ["threads"]}).files == ("a.cu", "sub/b.cu")


def test_what_a_folder_excludes_is_left_out_from_above_too() -> None:
    write(a_cu=SMALL, sub__b_cu=SMALL, sub__gen__c_cu=SMALL)
    write(sub__cudalint_toml='extend-exclude = ["gen"]\n')
    assert run().files == ("a.cu", "sub/b.cu")
    assert run("sub").files == ("sub/b.cu",)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"select": ["thread"]}, '--select: unknown rule "thread" (did you mean "threads"?)'),
        ({"target-arch": ["sm_85"]}, "--target-arch: unknown architecture 'sm_85'"),
    ],
)
def test_settings_that_cannot_be_used_end_the_run(overrides: dict[str, Any], message: str) -> None:
    write(a_cu="int x;\n")
    with pytest.raises(ConfigError) as caught:
        run(overrides=overrides)
    assert str(caught.value).startswith(message)


def test_assumed_blocks_and_defines_reach_the_facts() -> None:
    write(a_cu="__global__ void k(float* a) { a[threadIdx.x] = 1.0f; }\n")
    (kernel,) = inspect(["."], Resolver({"assume-block": [128]})).kernels
    assert "128" in kernel.facts[0].launch.assumed
    write(a_cu=SMALL.replace("64", "SIZE"))
    assert places(run(overrides={"defines": ["SIZE=96"]})) == [("a.cu", 1, "96 threads")]


def test_rules_hold_for_their_architectures_and_report_once() -> None:
    write(a_cu=SMALL)
    both = run(rules=(Threads, Modern), overrides={"target-arch": ["sm_80", "sm_90"]})
    assert both.target_arch == ("sm_80", "sm_90")
    assert [(item.finding.rule, item.finding.assumptions) for item in both.findings] == [
        ("modern", ("judged for sm_90, the worst of the targets",)),
        ("threads", ()),
    ]
    assert both.kernels == 1
    assert [item.finding.rule for item in run(rules=(Threads, Modern)).findings] == ["threads"]


def test_progress_counts_files() -> None:
    write(a_cu=SMALL, b_cu=SMALL)
    seen: list[tuple[int, int]] = []
    run(progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 2), (1, 2), (2, 2)]


# --------------------------------------------------------------------------- inspect


def test_inspect_lists_every_kernel_with_its_occupancy() -> None:
    write(a_cu=SMALL, b_cu="__global__ void lonely() {}\n")
    result = inspect(["."], Resolver({"target-arch": ["sm_80", "sm_90"]}))
    assert [(kernel.name, kernel.location.path) for kernel in result.kernels] == [("small", "a.cu"), ("lonely", "b.cu")]
    small = result.kernels[0]
    assert [facts.launch.block for facts in small.facts] == [(64, 1, 1)]
    assert [access.op for access in small.facts[0].accesses] == ["store"]
    assert set(small.occupancy) == {"sm_80", "sm_90"}
    assert small.occupancy["sm_90"].blocks_per_sm == 32


def test_facts_of_a_file_without_an_engine(project: Path) -> None:
    write(a_cu=SMALL)
    settings = Resolver().for_path(".")
    program = engine.open_program(project, settings, "sm_90")
    assert [facts.name for facts in engine.facts_of("a.cu", program, settings)] == ["small"]
