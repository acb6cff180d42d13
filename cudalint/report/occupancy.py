"""What `cudalint occupancy` prints: one result as JSON or a table, a curve as JSON or drawn in characters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cudalint.model import occupancy as model
from cudalint.model.architectures import KIB, MAX_THREADS_PER_BLOCK, REGISTERS_PER_SM, WARP_SIZE
from cudalint.model.occupancy import (
    AXES,
    Axis,
    Config,
    Curve,
    Limiter,
    Occupancy,
    Step,
    registers_per_warp,
    smem_allocated,
)
from cudalint.report import View
from cudalint.report.json_ import dumps
from cudalint.report.style import Style

_ROWS = 8
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_AXIS_NAMES: Mapping[Axis, str] = {
    "registers": "registers per thread",
    "block": "threads per block",
    "smem": "bytes of shared memory per block",
}


@dataclass(frozen=True, slots=True)
class _Glyphs:
    fill: str
    corner: str
    line: str
    side: str
    here: str
    arrow: str


_UNICODE = _Glyphs(fill=_EIGHTHS, corner="└", line="─", side="│", here="▲", arrow="→")
_ASCII = _Glyphs(fill=" #", corner="+", line="-", side="|", here="^", arrow="->")


def render(found: Occupancy, view: View) -> str:
    """A table of the limits, what a block takes of each, and the next value of each quantity that changes the result."""
    style = Style(view.color)
    head = f"{found.arch.name} ({found.arch.generation}), {_describe(found.config)}"
    if found.reason:
        verdict = style("error", f"cannot run: {found.reason}")
    else:
        warps = f"{found.warps_per_sm} of {found.arch.warps_per_sm} warps"
        verdict = style(
            "bold", f"{found.occupancy_percent:.1f} % occupancy: {_count(found.blocks_per_sm, 'block')} per SM, {warps}"
        )
    limited = f"limited by {_names(found)}"
    return "\n".join([head, "", verdict, limited, "", *_limit_table(found), *_neighbours(found), ""])


def render_curve(found: Curve, view: View, *, unicode: bool = True) -> str:
    """The curve as a bar chart with the current point and the cliffs marked, and the cliffs listed below.

    `unicode` off draws in ASCII, for terminals that cannot show block characters.
    """
    glyphs = _UNICODE if unicode else _ASCII
    columns = _columns(found)
    head = f"{found.arch.name}, {_describe(found.config, leave_out=found.axis)}: occupancy by {_AXIS_NAMES[found.axis]}"
    here, *cliffs = _legend(found, glyphs)
    return "\n".join([head, "", *_chart(found, columns, glyphs), "", Style(view.color)("bold", here), *cliffs, ""])


def render_json(found: Occupancy, curve: Curve | None = None) -> str:
    """One result as JSON, with `reason` where the block cannot run at all and `curve` where one was asked for."""
    document = {**figures(found), "limiters": list(found.limiters), "limits": dict(found.limits)}
    if found.reason:
        document["reason"] = found.reason
    if curve is not None:
        document["curve"] = _curve_document(curve)
    return dumps(document)


def figures(found: Occupancy) -> dict[str, object]:
    """The numbers of one result and its limiter, as plain data."""
    return {
        "blocks_per_sm": found.blocks_per_sm,
        "warps_per_sm": found.warps_per_sm,
        "occupancy_percent": found.occupancy_percent,
        "limiter": found.limiter,
    }


def limiter_name(limiter: Limiter) -> str:
    """A limiter in words."""
    return "shared memory" if limiter == "shared" else limiter


def _names(found: Occupancy) -> str:
    return ", ".join(limiter_name(limiter) for limiter in found.limiters)


# --- pieces ----------------------------------------------------------------------------------------------------------------


def _curve_document(found: Curve) -> dict[str, object]:
    return {
        "axis": found.axis,
        "current": found.current,
        "steps": [{"first": step.first, "last": step.last, **figures(step.occupancy)} for step in found.steps],
        "cliffs": [
            {
                "before": cliff.before,
                "after": cliff.after,
                "blocks_per_sm": [cliff.high.blocks_per_sm, cliff.low.blocks_per_sm],
                "occupancy_percent": [cliff.high.occupancy_percent, cliff.low.occupancy_percent],
            }
            for cliff in found.cliffs
        ],
    }


def _describe(config: Config, leave_out: Axis | None = None) -> str:
    parts: dict[Axis, str] = {
        "block": f"{_count(config.threads_per_block, 'thread')} per block",
        "registers": f"{_count(config.registers_per_thread, 'register')} per thread",
        "smem": f"{_count(config.smem, 'byte')} of shared memory",
    }
    return ", ".join(text for axis, text in parts.items() if axis != leave_out)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _limit_table(found: Occupancy) -> list[str]:
    rows = [("", "blocks", "a block takes", "an SM has")]
    for name, limit in found.limits.items():
        takes, has = _share(found, name)
        rows.append((name, "-" if limit is None else str(limit), takes, has))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    return [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:<{widths[2]}}  {d}".rstrip() for a, b, c, d in rows]


def _share(found: Occupancy, limiter: Limiter) -> tuple[str, str]:
    arch, config = found.arch, found.config
    per_warp = registers_per_warp(config.registers_per_thread)
    allocated = smem_allocated(arch, config.smem)
    reserved = f" ({arch.shared_reserved:,} of them reserved)" if arch.shared_reserved else ""
    table: dict[Limiter, tuple[str, str]] = {
        "registers": (
            f"{per_warp * config.warps_per_block:,} registers ({_count(config.warps_per_block, 'warp')} of {per_warp:,})",
            f"{REGISTERS_PER_SM:,} in {arch.sub_partitions} parts",
        ),
        "shared": (f"{allocated:,} bytes{reserved}", f"{arch.shared_per_sm:,}"),
        "warps": (_count(config.warps_per_block, "warp"), str(arch.warps_per_sm)),
        "blocks": ("1 slot", str(arch.blocks_per_sm)),
        "barriers": (_count(config.barriers, "barrier"), str(arch.barriers_per_sm)),
    }
    return table[limiter]


def _neighbours(found: Occupancy) -> list[str]:
    """For each axis, how far the value must fall for more resident warps and may rise before there are fewer."""
    lines = []
    for axis in AXES:
        around = model.curve(found.arch, axis, found.config)
        clauses = [*_gain(around, found), *_loss(around)] if axis != "block" else []
        if clauses:
            lines.append(f"{_AXIS_NAMES[axis]}: {', '.join(clauses)}")
    return ["", *lines] if lines else []


def _gain(around: Curve, found: Occupancy) -> list[str]:
    better = [step for step in around.steps if step.last < around.current and step.occupancy.warps_per_sm > found.warps_per_sm]
    return [f"{_result(better[-1].occupancy)} up to {better[-1].last:,}"] if better else []


def _loss(around: Curve) -> list[str]:
    worse = [cliff for cliff in around.cliffs if cliff.after > around.current]
    return [f"{_result(worse[0].low)} from {worse[0].after:,}"] if worse else []


def _result(found: Occupancy) -> str:
    return f"{_count(found.blocks_per_sm, 'block')} ({found.occupancy_percent:.1f} %)"


# --- the chart -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Column:
    """Values `first` to `last`, drawn with the occupancy of `last`, `width` characters wide."""

    first: int
    last: int
    percent: float
    width: int


def _columns(found: Curve) -> list[_Column]:
    width, size = _COLUMN_SIZES[found.axis]
    end = found.steps[-1].last
    lasts = [*range(size, end, size), end]
    firsts = [found.steps[0].first, *(last + 1 for last in lasts[:-1])]
    return [_Column(first, last, _percent(found.at(last)), width) for first, last in zip(firsts, lasts, strict=True)]


# Characters and values per column: at most 64 characters in all.
_COLUMN_SIZES: Mapping[Axis, tuple[int, int]] = {"registers": (2, 8), "block": (2, WARP_SIZE), "smem": (1, 4 * KIB)}


def _percent(step: Step | None) -> float:
    return step.occupancy.occupancy_percent if step is not None else 0.0


def _chart(found: Curve, columns: list[_Column], glyphs: _Glyphs) -> list[str]:
    levels = len(glyphs.fill) - 1
    step = 100 / _ROWS
    lines = []
    for row in range(_ROWS, 0, -1):
        label = f"{step * row:>5.0f} %" if row % 2 == 0 else " " * 7
        filled = (max(0, min(levels, round((column.percent - step * (row - 1)) / step * levels))) for column in columns)
        bars = "".join(glyphs.fill[level] * column.width for level, column in zip(filled, columns, strict=True))
        lines.append(f"{label} {glyphs.side}{bars}".rstrip())
    lines.append(f"    0 % {glyphs.corner}{glyphs.line * sum(column.width for column in columns)}")
    return [*lines, _marks(found, columns, glyphs), _ticks(found, columns)]


def _marks(found: Curve, columns: list[_Column], glyphs: _Glyphs) -> str:
    after = [cliff.after for cliff in found.cliffs]
    text = ""
    for column in columns:
        here = column.first <= found.current <= column.last
        cliff = any(column.first <= value <= column.last for value in after)
        text += (glyphs.here if here else "!" if cliff else " ").ljust(column.width)
    return f"{'':9}{text}".rstrip()


def _ticks(found: Curve, columns: list[_Column]) -> str:
    """The upper end of every eighth column, in KiB on the shared-memory axis, written from its column to the right."""
    line = ""
    position = 0
    for number, column in enumerate(columns, 1):
        if number % 8 == 0 or number == 1:
            value = f"{column.last // KIB}K" if found.axis == "smem" else str(column.last)
            if len(line) <= position:
                line = line.ljust(position) + value
        position += column.width
    return f"{'':9}{line}"


def _legend(found: Curve, glyphs: _Glyphs) -> list[str]:
    step = found.at(found.current)
    here = f"{glyphs.here} {found.current:,}: "
    if step is None:
        limit = MAX_THREADS_PER_BLOCK if found.axis == "block" else found.steps[-1].last
        here += f"cannot run, the most is {limit:,}"
    else:
        here += f"{_result(step.occupancy)}, limited by {_names(step.occupancy)}"
    arrow = glyphs.arrow
    return [here, *(_cliff(cliff.before, cliff.after, cliff.high, cliff.low, arrow) for cliff in found.cliffs)]


def _cliff(before: int, after: int, high: Occupancy, low: Occupancy, arrow: str) -> str:
    return f"! {before:,} {arrow} {after:,}: {_result(high)} {arrow} {_result(low)}"
