"""What a kernel itself says about its block: launch bounds, and the shape to assume where no launch is in sight."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from cudalint.semantics.constants import evaluate, evaluate_text
from cudalint.semantics.records import default_argument
from cudalint.semantics.scope import Scope, scope_of

if TYPE_CHECKING:
    from cudalint.semantics.symbols import FunctionDef

Block = tuple[int, int, int]

MAX_THREADS = 1024
MIN_THREADS = 32
"""The block sizes (threads) that a constant may stand for."""

_IDENTIFIER = re.compile(r"(?<![\w.>])[A-Za-z_]\w*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"", re.DOTALL)
_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]", re.MULTILINE)
_AXES = re.compile(r"\bthreadIdx\s*\.\s*([xyz])")
_SIZE_NAME = re.compile(
    r"block_?(?:size|dim|threads|width|height|len|x|y|z|\d)|blk_?(?:size|dim)|thread(?:s|_?num|_?count|_?block)|num_?threads|nthr|"
    r"tile_?(?:dim|size|width|height|x|y)|tpb|bdim|(?:work)?group_?size|local_?size|wg_?size|^k?(?:block|blocks?ize|tile|threads?)$|^b[xyz]$",
    re.IGNORECASE,
)
_NOT_A_SIZE = re.compile(
    r"per_?thread|per_?warp|per_?block_?(?:items|elem)|num_?blocks|n_?blocks|blocks_?per|grid|^warp|items|elem|vec|bytes|"
    r"mask|shift|log|stride|pad|syncthreads|threadfence|^threadIdx$|^blockIdx$|^blockDim$|^gridDim$|this_thread|"
    r"threads_?per_?(?:row|col|key|token|head)",
    re.IGNORECASE,
)
_AXIS_NAME = re.compile(
    r"(?:^|_|[a-z])(?:(?P<x>x|width|w|cols?|m)|(?P<y>y|height|h|rows?|n)|(?P<z>z|depth|d))\d?$",
    re.IGNORECASE,
)


def launch_bounds(kernel: FunctionDef, bindings: Iterable[tuple[str, object]] = ()) -> tuple[int, int | None] | None:
    """Evaluated `__launch_bounds__`: most threads per block and fewest blocks per SM (None if not given or unknown).

    None where the kernel has none or the first argument is unknown.
    """
    nodes = kernel.launch_bounds
    if not nodes:
        return None
    unit = kernel.launch_bounds_unit
    scope = _scope(kernel, dict(bindings)).at(nodes[0].start_byte) if unit is kernel.unit else unit.scope.at(nodes[0].start_byte)
    values = [evaluate(node, scope) for node in nodes]
    threads = values[0]
    if not isinstance(threads, (int, float)) or threads < 1:
        return None
    blocks = values[1] if len(values) > 1 else None
    return int(threads), int(blocks) if isinstance(blocks, (int, float)) and blocks >= 1 else None


def assumed_block(kernel: FunctionDef, bindings: Iterable[tuple[str, object]] = ()) -> tuple[Block, str] | None:
    """The block to assume for a kernel without a launch, and the words of the source that it rests on."""
    table = dict(bindings)
    scope = _scope(kernel, table)
    text = _COMMENT.sub(" ", _text(kernel))
    axes = set(_AXES.findall(text))
    declared = _block_size(kernel, scope)
    if declared is not None:
        return declared
    constants = list(_constants(kernel, text, scope))
    bounds = launch_bounds(kernel, table.items())
    if bounds is not None and bounds[0] <= MAX_THREADS:
        return _bounded(bounds[0], axes, constants)
    return _from_constants(axes, constants)


def _text(kernel: FunctionDef) -> str:
    return kernel.unit.source.data[kernel.start : kernel.end].decode("utf-8", "replace")


def _scope(kernel: FunctionDef, bindings: Mapping[str, object]) -> Scope:
    """The kernel's scope with the template arguments given, and defaults for the others."""
    table = {name: value for name, value in bindings.items() if value is not None}
    for param in kernel.template:
        if param.name not in table and param.default is not None:
            value = default_argument(param, scope_of(kernel, table))
            if value is not None:
                table[param.name] = value
    return scope_of(kernel, table)


def _block_size(kernel: FunctionDef, scope: Scope) -> tuple[Block, str] | None:
    argument = kernel.attributes.get("block_size") or kernel.attributes.get("__block_size__")
    if not argument:
        return None
    first = argument.strip()
    if first.startswith("("):
        first = first[1 : first.find(")")]
        parts = first.split(",")
    else:
        parts = first.split(",")[:3]
    values = [evaluate_text(part, scope) for part in parts]
    sizes = [int(value) for value in values if isinstance(value, (int, float)) and value >= 1]
    if len(sizes) != len(values) or not sizes:
        return None
    x, y, z = [*sizes, 1, 1][:3]
    return (x, y, z), f"__block_size__({argument})"


def _bounded(threads: int, axes: set[str], constants: list[tuple[str, int]]) -> tuple[Block, str]:
    source = f"__launch_bounds__({threads})"
    if axes & {"y", "z"}:
        for block, names in _shapes(axes, constants):
            if block[0] * block[1] * block[2] <= threads:
                return block, f"{source} and {names}"
    return (threads, 1, 1), source


def _from_constants(axes: set[str], constants: list[tuple[str, int]]) -> tuple[Block, str] | None:
    if axes & {"y", "z"}:
        for block, names in _shapes(axes, constants):
            if MIN_THREADS <= block[0] * block[1] * block[2] <= MAX_THREADS:
                return block, names
    for name, value in constants:
        if MIN_THREADS <= value <= MAX_THREADS:
            return (value, 1, 1), f"{name} = {value}"
    return None


def _shapes(axes: set[str], constants: list[tuple[str, int]]) -> Iterator[tuple[Block, str]]:
    """Shapes that the constants can mean for a kernel that uses several axes: one per axis, else a square or cube."""
    by_axis: dict[str, tuple[str, int]] = {}
    plain: list[tuple[str, int]] = []
    for name, value in constants:
        match = _AXIS_NAME.search(name)
        axis = match.lastgroup if match is not None else None
        if axis is None:
            plain.append((name, value))
        else:
            by_axis.setdefault(axis, (name, value))
    used = [axis for axis in "xyz" if axis == "x" or axis in axes]
    if all(axis in by_axis for axis in used):
        sizes = [by_axis[axis][1] if axis in used else 1 for axis in "xyz"]
        yield (sizes[0], sizes[1], sizes[2]), ", ".join(f"{by_axis[axis][0]} = {by_axis[axis][1]}" for axis in used)
    for name, value in (*plain, *by_axis.values()):
        sizes = [value if axis in used else 1 for axis in "xyz"]
        yield (sizes[0], sizes[1], sizes[2]), f"{name} = {value}"


def _constants(kernel: FunctionDef, text: str, scope: Scope) -> Iterator[tuple[str, int]]:
    """Constants named like a block size: those the kernel uses in order, then those its file defines."""
    seen: set[str] = set()
    names = [match.group() for match in _IDENTIFIER.finditer(text)]
    names += [param.name for param in kernel.template]
    names += [name.decode("utf-8", "replace") for name in _DEFINE.findall(kernel.unit.source.data)]
    names += list(kernel.unit.symbols.variables)
    for name in names:
        if name in seen or not _SIZE_NAME.search(name) or _NOT_A_SIZE.search(name):
            continue
        seen.add(name)
        value = scope.value(name)
        if isinstance(value, int) and 1 < value <= MAX_THREADS:
            yield name, value


__all__ = ["Block", "assumed_block", "launch_bounds"]
