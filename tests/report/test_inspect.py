"""What `inspect` shows, as JSON and as tables."""

from __future__ import annotations

import json
from typing import Any

from cudalint.finding import Certainty, Location
from cudalint.model import architectures
from cudalint.model.occupancy import occupancy
from cudalint.report import View, inspect_json, inspect_text
from cudalint.result import Inspection, KernelReport, Sources
from cudalint.rule import Access, Branch, KernelFacts, LaunchFacts
from cudalint.source.text import SourceFile

SOURCE = b"kernel\nshared\nglobal\nif\nlaunch one\nlaunch two\n"
FILES = Sources({"k.cu": SourceFile("k.cu", SOURCE), "h.cuh": SourceFile("h.cuh", b"\n\nhelper\n")})


def at(word: bytes, path: str = "k.cu") -> Location:
    start = SOURCE.index(word)
    return Location(path, start, start + len(word))


def access(location: Location, **changes: Any) -> Access:
    values: dict[str, Any] = {
        "location": location,
        "space": "shared",
        "op": "load",
        "bytes_per_lane": 4,
        "array": "tile",
        "wavefronts": 4.0,
        "ideal_wavefronts": 1.0,
        "sectors": None,
        "ideal_sectors": None,
        "requests": 8.0,
        "worst": None,
        "certainty": Certainty.EXACT,
    }
    return Access(**{**values, **changes})


GLOBAL = access(
    Location("h.cuh", 2, 8),
    space="global",
    op="store",
    array="",
    wavefronts=None,
    ideal_wavefronts=None,
    sectors=4.875,
    ideal_sectors=4.0,
    requests=None,
    certainty=Certainty.LIKELY,
)


def facts(launch: LaunchFacts, *accesses: Access, **changes: Any) -> KernelFacts:
    values: dict[str, Any] = {
        "name": "turn",
        "instantiation": "turn<float>",
        "location": at(b"kernel"),
        "launch": launch,
        "launch_bounds": (256, 2),
        "static_smem": 1024,
        "accesses": accesses,
        "branches": (Branch(at(b"if"), "rarely", Certainty.EXACT),),
    }
    return KernelFacts(**{**values, **changes})


ONE = LaunchFacts((16, 16, 1), (4, 1, 1), 0, at(b"launch one"))
TWO = LaunchFacts((256, 1, 1), (None, 1, 1), None, at(b"launch two"))


def inspection(*kernels: KernelFacts, **changes: Any) -> Inspection:
    report = KernelReport("turn", at(b"kernel"), kernels, {"sm_90": occupancy(architectures.get("sm_90"), 256, 32)})
    return Inspection((report,), ("k.cu",), target_arch=("sm_90",), sources=FILES, **changes)


def first_kernel(*kernels: KernelFacts) -> Any:
    document = json.loads(inspect_json.render(inspection(*kernels), View()))
    assert (document["version"], len(document["kernels"])) == (1, 1)
    return document["kernels"][0]


def test_the_json_of_a_kernel() -> None:
    kernel = first_kernel(facts(ONE, access(at(b"shared")), GLOBAL))
    assert kernel == {
        "name": "turn",
        "path": "k.cu",
        "line": 1,
        "launches": [{"path": "k.cu", "line": 5, "block": [16, 16, 1], "grid": [4, 1, 1], "dynamic_smem_bytes": 0}],
        "registers": {"value": None, "source": None},
        "static_smem_bytes": 1024,
        "occupancy": {"sm_90": {"blocks_per_sm": 8, "warps_per_sm": 64, "occupancy_percent": 100.0, "limiter": "registers"}},
        "bound_by": None,
        "stalls": None,
        "accesses": [
            {
                "path": "k.cu",
                "line": 2,
                "block": [16, 16, 1],
                "requests": 8.0,
                "space": "shared",
                "op": "load",
                "bytes_per_lane": 4,
                "wavefronts": 4.0,
                "ideal_wavefronts": 1.0,
                "sectors": None,
                "ideal_sectors": None,
                "certainty": "exact",
            },
            {
                "path": "h.cuh",
                "line": 3,
                "block": [16, 16, 1],
                "requests": None,
                "space": "global",
                "op": "store",
                "bytes_per_lane": 4,
                "wavefronts": None,
                "ideal_wavefronts": None,
                "sectors": 4.875,
                "ideal_sectors": 4.0,
                "certainty": "likely",
            },
        ],
        "branches": [{"path": "k.cu", "line": 4, "block": [16, 16, 1], "divergent": "rarely", "certainty": "exact"}],
    }


def test_one_entry_per_access_and_launch_shape() -> None:
    kernel = first_kernel(facts(ONE, access(at(b"shared"))), facts(TWO, access(at(b"shared"), wavefronts=8.0)))
    assert [(entry["block"], entry["wavefronts"]) for entry in kernel["accesses"]] == [([16, 16, 1], 4.0), ([256, 1, 1], 8.0)]
    assert [(entry["line"], entry["grid"], entry["dynamic_smem_bytes"]) for entry in kernel["launches"]] == [
        (5, [4, 1, 1], 0),
        (6, None, None),
    ]


def test_instantiations_of_one_shape_are_averaged_by_their_requests() -> None:
    some = facts(ONE, access(at(b"shared"), wavefronts=2.0, requests=3.0))
    other = facts(ONE, access(at(b"shared"), wavefronts=6.0, requests=1.0, certainty=Certainty.LIKELY))
    (entry,) = first_kernel(some, other)["accesses"]
    assert (entry["wavefronts"], entry["requests"], entry["certainty"]) == (3.0, 2.0, "likely")


def test_averages_of_unknown_numbers() -> None:
    unknown = facts(ONE, access(at(b"shared"), wavefronts=None, requests=None))
    (entry,) = first_kernel(facts(ONE, access(at(b"shared"))), unknown)["accesses"]
    assert (entry["wavefronts"], entry["ideal_wavefronts"], entry["requests"]) == (None, 1.0, None)


def test_two_accesses_at_one_place_stay_two() -> None:
    both = (access(at(b"shared"), wavefronts=2.0), access(at(b"shared"), wavefronts=4.0))
    kernel = first_kernel(facts(ONE, *both), facts(ONE, *both))
    assert [entry["wavefronts"] for entry in kernel["accesses"]] == [2.0, 4.0]


def test_a_branch_is_as_bad_as_its_worst_instantiation() -> None:
    calm = facts(ONE, branches=(Branch(at(b"if"), "no", Certainty.EXACT),))
    wild = facts(ONE, branches=(Branch(at(b"if"), "yes", Certainty.LIKELY),))
    (entry,) = first_kernel(calm, wild)["branches"]
    assert (entry["divergent"], entry["certainty"]) == ("yes", "likely")


def test_known_registers_and_no_launch() -> None:
    assumed = LaunchFacts((256, 1, 1), assumed="__launch_bounds__(256)")
    kernel = first_kernel(facts(assumed, registers=(40, "ptxas"), static_smem=None))
    assert kernel["registers"] == {"value": 40, "source": "ptxas"}
    assert (kernel["launches"], kernel["static_smem_bytes"]) == ([], None)


def test_the_text_of_a_kernel() -> None:
    unknown = LaunchFacts(None, assumed="nothing launches it")
    shown = inspect_text.render(
        inspection(facts(ONE, access(at(b"shared")), GLOBAL), facts(unknown, incomplete="budget", branches=())), View()
    )
    assert (
        shown
        == """\
turn  k.cu:1
  launch      k.cu:5  block 16x16, grid 4x1x1
  assumed     nothing launches it
  bounds      256 threads, at least 2 blocks
  shared      1024 bytes
  occupancy   sm_90: at most 100 %, 8 blocks, 64 warps, limited by registers; registers unknown
  incomplete  budget

  block 16x16
    line     access        array  bytes  requests  wavefronts (ideal)  sectors (ideal)  certainty
    2        shared load   tile   4      8         4 (1)                                exact
    h.cuh:3  global store         4      ?                             4.875 (4)        likely
    line  branch             certainty
    4     divergent: rarely  exact

  block unknown
"""
    )


def test_branches_that_never_split_a_warp_are_counted() -> None:
    calm = Branch(at(b"shared"), "no", Certainty.EXACT)
    shown = inspect_text.render(inspection(facts(ONE, branches=(calm, Branch(at(b"if"), "yes", Certainty.EXACT)))), View())
    assert "    4     divergent: yes  exact\n    1 branch without divergence\n" in shown


def test_occupancy_with_known_registers_is_no_bound() -> None:
    known = inspect_text.render(inspection(facts(ONE, registers=(32, "ptxas"))), View())
    assert "  occupancy   sm_90: 100 %, 8 blocks, 64 warps, limited by registers\n" in known


def test_launch_with_unknown_sizes() -> None:
    assert "  launch      k.cu:6  block 256, grid ?x1x1, dynamic shared memory unknown\n" in inspect_text.render(
        inspection(facts(TWO, registers=(40, "ptxas"))), View()
    )
