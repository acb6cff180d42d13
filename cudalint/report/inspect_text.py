"""`inspect` for people: per kernel its launches, its resources and a table of its accesses and branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cudalint.report import View, plural
from cudalint.report.inspected import Shaped, launches, shapes
from cudalint.report.occupancy import limiter_name
from cudalint.report.style import Style, safe
from cudalint.result import Inspection, KernelReport, Sources, block_text
from cudalint.rule import Access, Branch, LaunchFacts, Location

_HEAD = ("line", "access", "array", "bytes", "requests", "wavefronts (ideal)", "sectors (ideal)", "certainty")
_BRANCH_HEAD = ("line", "branch", "certainty")


def render(inspection: Inspection, view: View) -> str:
    """The report, ending in a newline unless empty."""
    style = Style(view.color)
    blocks = ["\n".join(_kernel(kernel, inspection.sources, style)) + "\n" for kernel in inspection.kernels]
    return "\n".join(blocks)


def _kernel(kernel: KernelReport, sources: Sources, style: Style) -> Iterator[str]:
    path, line = _place(kernel.location, sources)
    yield f"{style('rule', safe(kernel.name))}  {style('path', f'{safe(path)}:{line}')}"
    for label, text in _resources(kernel, sources):
        yield f"  {style('dim', f'{label:<10}')}  {safe(text)}"
    for shape in shapes(kernel):
        yield ""
        yield f"  block {block_text(shape.block)}"
        yield from _tables(shape, path, sources, style)


def _resources(kernel: KernelReport, sources: Sources) -> Iterator[tuple[str, str]]:
    for launch in launches(kernel):
        yield "launch", _launch(launch, sources)
    for assumed in dict.fromkeys(facts.launch.assumed for facts in kernel.facts if facts.launch.assumed):
        yield "assumed", assumed
    for bounds in dict.fromkeys(facts.launch_bounds for facts in kernel.facts if facts.launch_bounds):
        yield "bounds", f"{bounds[0]} threads" + (f", at least {plural(bounds[1], 'block')}" if bounds[1] else "")
    known = [facts.registers for facts in kernel.facts if facts.registers]
    if known:
        count, source = max(known)
        yield "registers", f"{count} ({source})"
    most, unknown = ("", "") if known else ("at most ", "; registers unknown")
    for size in dict.fromkeys(facts.static_smem for facts in kernel.facts if facts.static_smem):
        yield "shared", f"{size} bytes"
    for arch, occupancy in kernel.occupancy.items():
        yield (
            "occupancy",
            (
                f"{arch}: {most}{occupancy.occupancy_percent:g} %, {plural(occupancy.blocks_per_sm, 'block')},"
                f" {plural(occupancy.warps_per_sm, 'warp')}, limited by {limiter_name(occupancy.limiter)}{unknown}"
            ),
        )
    for reason in dict.fromkeys(facts.incomplete for facts in kernel.facts if facts.incomplete):
        yield "incomplete", reason


def _launch(launch: LaunchFacts, sources: Sources) -> str:
    path, line = _place(launch.location, sources) if launch.location else ("?", 0)
    grid = "x".join("?" if size is None else str(size) for size in launch.grid)
    dynamic = "unknown" if launch.dynamic_smem is None else f"{launch.dynamic_smem} bytes"
    shared = "" if launch.dynamic_smem == 0 else f", dynamic shared memory {dynamic}"
    return f"{path}:{line}  block {block_text(launch.block)}, grid {grid}{shared}"


def _place(location: Location, sources: Sources) -> tuple[str, int]:
    return location.path, sources.span(location)[0][0]


def _tables(shape: Shaped, path: str, sources: Sources, style: Style) -> Iterator[str]:
    if shape.accesses:
        yield from _table([_HEAD, *(_access(access, path, sources) for access in shape.accesses)], style)
    splitting = [branch for branch in shape.branches if branch.divergent != "no"]
    if splitting:
        yield from _table([_BRANCH_HEAD, *(_branch(branch, path, sources) for branch in splitting)], style)
    if uniform := len(shape.branches) - len(splitting):
        yield f"    {plural(uniform, 'branch', 'branches')} without divergence"


def _access(access: Access, path: str, sources: Sources) -> tuple[str, ...]:
    return (
        _where(access.location, path, sources),
        f"{access.space} {access.op}",
        access.array,
        str(access.bytes_per_lane),
        _number(access.requests),
        _pair(access.wavefronts, access.ideal_wavefronts) if access.space == "shared" else "",
        _pair(access.sectors, access.ideal_sectors) if access.space != "shared" else "",
        str(access.certainty),
    )


def _branch(branch: Branch, path: str, sources: Sources) -> tuple[str, ...]:
    return _where(branch.location, path, sources), f"divergent: {branch.divergent}", str(branch.certainty)


def _where(location: Location, path: str, sources: Sources) -> str:
    other, line = _place(location, sources)
    return str(line) if other == path else f"{other}:{line}"


def _pair(value: float | None, ideal: float | None) -> str:
    return "?" if value is None else f"{_number(value)} ({_number(ideal)})"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.5g}"


def _table(rows: Sequence[tuple[str, ...]], style: Style) -> Iterator[str]:
    """Rows in columns, the first row as head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for number, row in enumerate(rows):
        text = "  ".join(f"{safe(cell):<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        yield f"    {style('dim', text) if number == 0 else text}"
