"""A small result that every renderer is tried on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cudalint.finding import Certainty, Cost, Edit, Evidence, Finding, Fix, Location, Severity
from cudalint.result import Reported, Result, Sources
from cudalint.source.text import SourceFile

SOURCE = """\
// Größe: 16 x 16
__global__ void turn16(float* out) {
\t__shared__ float tile[16][16];
\tout[threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
void run(float* out) { turn16<<<1, dim3(16, 16)>>>(out); }
"""
ACCESS = "tile[threadIdx.x][threadIdx.y]"
Build = Callable[..., Result]


def locate(text: str, path: str = "k.cu", source: str = SOURCE) -> Location:
    """The first occurrence of `text`."""
    start = len(source[: source.index(text)].encode())
    return Location(path, start, start + len(text.encode()))


def conflict(**changes: Any) -> Finding:
    """A bank conflict as a rule and the engine would report it."""
    values: dict[str, Any] = {
        "rule": "shared-bank-conflict",
        "code": "CU101",
        "severity": Severity.WARNING,
        "certainty": Certainty.EXACT,
        "location": locate(ACCESS),
        "message": "8-way bank conflict on `tile`",
        "kernel": "turn16",
        "facts": {"degree": 8, "wavefronts": 8, "ideal_wavefronts": 1},
    }
    return Finding(**{**values, **changes})


FULL = {
    "cost": Cost(0.314159, 0.2, 0.45, "shared-memory pipe"),
    "evidence": (Evidence(locate("turn16<<<"), "block is 16x16 here"),),
    "assumptions": ("out is aligned",),
    "advice": "rows 1 element longer",
    "fix": Fix("pad the rows of `tile` by 1", (Edit(locate("16]["), "17]["),), "unsafe"),
}


@pytest.fixture
def build() -> Build:
    """Builds a result from findings, in the order given."""

    def result(*findings: Finding, source: str = SOURCE, **changes: Any) -> Result:
        sources = Sources({"k.cu": SourceFile("k.cu", source.encode())})
        reported = []
        for number, finding in enumerate(findings, 1):
            start, end = sources.span(finding.location)
            reported.append(Reported(finding, start, end, f"print{number}", number if finding.cost else None))
        values: dict[str, Any] = {
            "files": ("k.cu",),
            "kernels": 1,
            "seconds": 0.42,
            "target_arch": ("sm_90",),
            "sources": sources,
        }
        return Result(tuple(reported), **{**values, **changes})

    return result
