"""One finding per rule and place: the worst, with the evidence of all; then ranks and fingerprints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalint.finding import Certainty, Cost, Evidence, Finding, Location, Repair, Severity
from cudalint.merge import Merged, ranked
from cudalint.names import Names
from cudalint.result import Sources
from cudalint.rule import KernelFacts, LaunchFacts
from cudalint.source.text import SourceFile

PLACE = Location("k.cu", 10, 20)


def finding(**changes: Any) -> Finding:
    values: dict[str, Any] = {
        "rule": "a-rule",
        "code": "XX101",
        "severity": Severity.WARNING,
        "certainty": Certainty.EXACT,
        "location": PLACE,
        "message": "m",
    }
    return Finding(**{**values, **changes})


def kernel(block: tuple[int, int, int] | None = (16, 16, 1), offset: int = 50, instantiation: str = "k") -> KernelFacts:
    launch = LaunchFacts(block, location=Location("k.cu", offset, offset + 5))
    return KernelFacts("k", instantiation, Location("k.cu", 0, 9), launch, None, 0)


def merge(*items: tuple[Finding, KernelFacts, str], targets: tuple[str, ...] = ("sm_80",)) -> Finding:
    first, *others = items
    merged = Merged(*first)
    for item in others:
        merged.add(*item)
    return merged.result(targets)


def texts(found: Finding) -> list[str]:
    return [item.text for item in found.evidence]


# -------------------------------------------------------------------------- worst


@pytest.mark.parametrize(
    ("mild", "bad"),
    [
        ({"facts": {"degree": 4, "wavefronts": 4}}, {"facts": {"degree": 8, "wavefronts": 8}}),
        ({"facts": {"sectors": 8}}, {"facts": {"sectors": 32}}),
        (
            {"facts": {"wavefronts": 4}, "repair": Repair("wavefronts", 90.0)},
            {"facts": {"wavefronts": 8}, "repair": Repair("wavefronts", 70.0)},
        ),
        ({"repair": Repair("instructions", 1.0)}, {"repair": Repair("instructions", 2.0)}),
        ({"severity": Severity.INFO, "facts": {"sectors": 32}}, {"severity": Severity.WARNING, "facts": {"sectors": 5}}),
        ({"certainty": Certainty.LIKELY}, {"certainty": Certainty.EXACT}),
        ({"facts": {}}, {"facts": {"paths": 2}}),
    ],
)
def test_the_worst_stays_in_whatever_order_they_come(mild: dict[str, Any], bad: dict[str, Any]) -> None:
    one = (finding(message="mild", **mild), kernel(), "sm_80")
    two = (finding(message="bad", **bad), kernel(), "sm_80")
    assert merge(one, two).message == merge(two, one).message == "bad"


def test_of_equals_the_first_stays() -> None:
    assert merge((finding(message="first"), kernel(), "sm_80"), (finding(message="second"), kernel(), "sm_80")).message == "first"


def test_the_launch_is_evidence_whether_the_rule_says_so_or_not() -> None:
    assert texts(merge((finding(), kernel(), "sm_80"))) == ["block is 16x16 here"]
    said = finding(evidence=(Evidence(Location("k.cu", 50, 55), "launched here"),))
    assert texts(merge((said, kernel(), "sm_80"))) == ["launched here"]
    assert texts(merge((finding(), kernel(block=None), "sm_80"))) == []


def test_evidence_tells_the_worst_launch_from_the_others() -> None:
    bad = (finding(facts={"wavefronts": 8}), kernel(offset=60), "sm_80")
    mild = (finding(facts={"wavefronts": 4}), kernel((256, 1, 1), offset=70), "sm_80")
    same = (finding(facts={"wavefronts": 8}), kernel((8, 8, 8), offset=80, instantiation="k<float>"), "sm_80")
    expected = ["block is 16x16 here", "block is 256 here, less bad", "block of k<float> is 8x8x8 here"]
    assert sorted(texts(merge(mild, same, bad))) == sorted(
        ["block of k<float> is 8x8x8 here", "block is 16x16 here", "block is 256 here, less bad"]
    )
    assert texts(merge(bad, mild, same)) == expected


def test_evidence_of_all_is_kept_once() -> None:
    array = Evidence(Location("k.cu", 1, 5), "declared here")
    only = Evidence(Location("h.cuh", 1, 5), "called here")
    one = (finding(evidence=(array,)), kernel(), "sm_80")
    two = (finding(evidence=(array, only)), kernel(), "sm_80")
    assert texts(merge(one, two)) == ["declared here", "block is 16x16 here", "called here"]


def test_two_shapes_of_one_launch_are_both_named() -> None:
    one = (finding(facts={"sectors": 8}), kernel((32, 8, 1)), "sm_80")
    two = (finding(facts={"sectors": 4}), kernel((8, 32, 1)), "sm_80")
    assert texts(merge(one, two)) == ["block is 32x8 here", "block is 8x32 here, less bad"]


def test_the_architecture_is_named_where_it_matters() -> None:
    old = (finding(facts={"wavefronts": 8}), kernel(), "sm_70")
    new = (finding(facts={"wavefronts": 4}), kernel(), "sm_90")
    both = ("sm_70", "sm_90")
    assert merge(old, new, targets=both).assumptions == ("judged for sm_70, the worst of the targets",)
    assert merge(old, targets=both).assumptions == ("judged for sm_70, the worst of the targets",)
    assert merge(old, (old[0], old[1], "sm_90"), targets=both).assumptions == ()
    assert merge(old).assumptions == ()


# ------------------------------------------------------------------- order, prints

LINES = "aa\nbb\naa\n  aa  \n"


def sources(text: str = LINES, path: str = "k.cu") -> Sources:
    return Sources({path: SourceFile(path, text.encode())})


def at(line: int, text: str = LINES, path: str = "k.cu", **changes: Any) -> Finding:
    start = sum(len(other) + 1 for other in text.split("\n")[: line - 1])
    return finding(location=Location(path, start, start + 1), **changes)


def test_the_costliest_comes_first_then_severity_then_place() -> None:
    cheap, dear = Cost(0.1, 0, 1, "r"), Cost(0.4, 0, 1, "r")
    findings = [
        at(4),
        at(3, severity=Severity.ERROR),
        at(2, cost=cheap),
        at(1, cost=dear, suppressed="known"),
        at(3, cost=dear),
        at(1),
    ]
    result = list(ranked(findings, sources()))
    assert [(item.start[0], item.rank) for item in result] == [(1, None), (3, 1), (2, 2), (3, None), (1, None), (4, None)]


def test_positions_are_lines_and_columns() -> None:
    (item,) = ranked([finding(location=Location("k.cu", 4, 5))], sources())
    assert (item.start, item.end) == ((2, 2), (2, 3))


def test_fingerprints_survive_lines_that_move_and_spaces() -> None:
    def prints(text: str, *lines: int, rule: str = "a-rule") -> list[str]:
        return [item.fingerprint for item in ranked([at(line, text, rule=rule) for line in lines], sources(text))]

    before, after = prints("aa\nbb b\n", 2), prints("new\n\naa\n  bb   b\n", 4)
    assert before == after
    assert len(before[0]) == 64
    assert prints("bb b\n", 1, rule="b-rule") != before
    assert prints("bb c\n", 1) != before


def test_equal_lines_have_different_fingerprints() -> None:
    result = list(ranked([at(1), at(3), at(4), at(2)], sources()))
    assert len({item.fingerprint for item in result}) == 4


def test_fingerprints_do_not_depend_on_where_the_project_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fingerprint(path: str) -> str:
        (item,) = ranked([at(1, path=path)], sources(path=path))
        return item.fingerprint

    for name in ("one", "two"):
        (tmp_path / name / ".git").mkdir(parents=True)
        (tmp_path / name / "src").mkdir()
    first = fingerprint(str(tmp_path / "one/src/k.cu"))
    assert first == fingerprint(str(tmp_path / "two/src/k.cu"))
    assert first != fingerprint(str(tmp_path / "two/k.cu"))
    monkeypatch.chdir(tmp_path / "one" / "src")
    assert first == fingerprint("k.cu")


@given(st.permutations(range(6)))
def test_neither_order_nor_fingerprints_depend_on_the_order_of_the_rules(order: list[int]) -> None:
    findings = [at(line, rule=rule) for line in (1, 2, 3) for rule in ("a-rule", "b-rule")]
    expected = list(ranked(findings, sources()))
    assert list(ranked([findings[index] for index in order], sources())) == expected


# -------------------------------------------------------------------------- names


def test_paths_are_shown_as_the_user_named_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = Names(["sub/../k.cu"])
    assert names.of(str(tmp_path / "k.cu")) == "sub/../k.cu"
    assert names.of(str(tmp_path / "inc" / "h.cuh")) == "inc/h.cuh"
    assert Names([str(tmp_path / "k.cu")], absolute=True).of(str(tmp_path / "h.cuh")) == str(tmp_path / "h.cuh")


def test_names_reach_every_place_of_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cudalint.finding import Edit, Fix

    monkeypatch.chdir(tmp_path)
    here = Location(str(tmp_path / "k.cu"), 0, 1)
    shown = Names().in_finding(finding(location=here, evidence=(Evidence(here, "x"),), fix=Fix("t", (Edit(here, "y"),), "safe")))
    short = Location("k.cu", 0, 1)
    assert (shown.location, shown.evidence) == (short, (Evidence(short, "x"),))
    assert shown.fix == Fix("t", (Edit(short, "y"),), "safe")


def test_names_reach_every_place_of_the_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cudalint.rule import Access, Branch, SharedArray

    monkeypatch.chdir(tmp_path)
    here, short = Location(str(tmp_path / "k.cu"), 0, 1), Location("k.cu", 0, 1)
    access = Access(here, "shared", "load", 4, "a", 1, 1, None, None, 1, None, Certainty.EXACT, evidence=(Evidence(here, "x"),))
    facts = KernelFacts(
        "k",
        "k",
        here,
        LaunchFacts(None, location=here),
        None,
        0,
        (access,),
        (Branch(here, "no", Certainty.EXACT),),
        (SharedArray("a", here, 4, lambda: None),),
    )
    shown = Names().in_facts(facts)
    places = [shown.location, shown.launch.location, shown.accesses[0].location, shown.accesses[0].evidence[0].location]
    assert [*places, shown.branches[0].location, shown.arrays[0].location] == [short] * 6
