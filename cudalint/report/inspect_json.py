"""`inspect` as JSON, version 1; what is not known is null."""

from __future__ import annotations

from typing import Any

from cudalint.report import View
from cudalint.report.inspected import Block, launches, shapes
from cudalint.report.json_ import VERSION, dumps
from cudalint.report.occupancy import figures
from cudalint.result import Inspection, KernelReport, Sources
from cudalint.rule import Access, Branch, LaunchFacts, Location


def render(inspection: Inspection, view: View) -> str:  # noqa: ARG001 (every renderer takes both)
    """The report, ending in a newline."""
    return dumps(document(inspection))


def document(inspection: Inspection) -> dict[str, Any]:
    """The report as plain data."""
    return {"version": VERSION, "kernels": [_kernel(kernel, inspection.sources) for kernel in inspection.kernels]}


def _kernel(kernel: KernelReport, sources: Sources) -> dict[str, Any]:
    shaped = shapes(kernel)
    return {
        "name": kernel.name,
        **_line(kernel.location, sources),
        "launches": [_launch(launch, sources) for launch in launches(kernel)],
        "registers": _registers(kernel),
        "static_smem_bytes": max((f.static_smem for f in kernel.facts if f.static_smem is not None), default=None),
        "occupancy": {arch: figures(occupancy) for arch, occupancy in kernel.occupancy.items()},
        "bound_by": None,
        "stalls": None,
        "accesses": [_access(access, shape.block, sources) for shape in shaped for access in shape.accesses],
        "branches": [_branch(branch, shape.block, sources) for shape in shaped for branch in shape.branches],
    }


def _line(location: Location | None, sources: Sources) -> dict[str, Any]:
    if location is None:
        return {"path": None, "line": None}
    return {"path": location.path, "line": sources.span(location)[0][0]}


def _launch(launch: LaunchFacts, sources: Sources) -> dict[str, Any]:
    return {
        **_line(launch.location, sources),
        "block": _shape(launch.block),
        "grid": None if None in launch.grid else list(launch.grid),
        "dynamic_smem_bytes": launch.dynamic_smem,
    }


def _shape(block: Block) -> list[int] | None:
    return None if block is None else list(block)


def _registers(kernel: KernelReport) -> dict[str, Any]:
    known = [facts.registers for facts in kernel.facts if facts.registers is not None]
    value, source = max(known, default=(None, None))
    return {"value": value, "source": source}


def _access(access: Access, block: Block, sources: Sources) -> dict[str, Any]:
    return {
        **_line(access.location, sources),
        "block": _shape(block),
        "requests": access.requests,
        "space": access.space,
        "op": access.op,
        "bytes_per_lane": access.bytes_per_lane,
        "wavefronts": _rounded(access.wavefronts),
        "ideal_wavefronts": _rounded(access.ideal_wavefronts),
        "sectors": _rounded(access.sectors),
        "ideal_sectors": _rounded(access.ideal_sectors),
        "certainty": str(access.certainty),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _branch(branch: Branch, block: Block, sources: Sources) -> dict[str, Any]:
    return {
        **_line(branch.location, sources),
        "block": _shape(block),
        "divergent": branch.divergent,
        "certainty": str(branch.certainty),
    }
