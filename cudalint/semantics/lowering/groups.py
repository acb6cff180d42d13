"""Cooperative groups: ranks and sizes of statically known groups as arithmetic over special registers."""

from __future__ import annotations

import re
from collections.abc import Callable

from cudalint.semantics import ir
from cudalint.semantics.lowering import values
from cudalint.semantics.types import INT, UINT, VOID, Type

NAMESPACE = "cooperative_groups::"
_SPELLING = re.compile(
    r"(?:^|::|\s)(thread_block_tile|thread_block|coalesced_group|grid_group|cluster_group|multi_grid_group|thread_group)\b\s*(?:<\s*([^,<>]+))?"
)
_TILE = re.compile(r"thread_block_tile<(\d+)(?:, (\d+))?>$")
_AXES = ("x", "y", "z")


def group_type(kind: str, size: int | None = None, parent: int | None = None) -> Type:
    """The type of a group; a tile knows its size and that of the tile it was cut from.

    The kind is "unknown", as for every class whose definition is not at hand: overload choice takes it so.
    """
    inner = "" if size is None else f"<{size}>" if parent is None else f"<{size}, {parent}>"
    return Type("unknown", 1, 1, f"{NAMESPACE}{kind}{inner}")


BLOCK = group_type("thread_block")
GRID = group_type("grid_group")
COALESCED = group_type("coalesced_group")
CLUSTER = group_type("cluster_group")
ANY = group_type("thread_group")

_FACTORIES = {
    "this_thread_block": BLOCK,
    "this_grid": GRID,
    "this_cluster": CLUSTER,
    "coalesced_threads": COALESCED,
    "this_multi_grid": group_type("multi_grid_group"),
    "this_thread": group_type("thread_block_tile", 1),
    "binary_partition": COALESCED,
    "labeled_partition": COALESCED,
}


def is_group(type_: Type) -> bool:
    """Whether a type is one of a group."""
    return type_.kind == "unknown" and type_.name.startswith(NAMESPACE)


def tile_size(type_: Type) -> int | None:
    """Threads of a tile, None of anything else."""
    found = _TILE.search(type_.name) if is_group(type_) else None
    return int(found.group(1)) if found is not None else None


def spelled_group(text: str, size_of: Callable[[str], int | float | None]) -> Type | None:
    """The group that a declared type's spelling names; `size_of` evaluates a tile's size."""
    found = _SPELLING.search(text)
    if found is None:
        return None
    kind = found.group(1)
    if kind != "thread_block_tile":
        return group_type(kind)
    size = size_of(found.group(2)) if found.group(2) else None
    return group_type(kind, size) if isinstance(size, int) and size > 0 else ANY


def factory(name: str, explicit: list[int | None], args: tuple[ir.Expr, ...]) -> Type | None:
    """The group that a free function makes, None if it makes none."""
    if name == "tiled_partition":
        size = explicit[0] if explicit else None
        if size is None and len(args) == 2 and isinstance(args[1], ir.Const):
            size = int(args[1].value)
        if not size:
            return ANY
        parent = _TILE.search(args[0].type.name) if args else None
        return group_type("thread_block_tile", size, int(parent.group(1)) if parent else None)
    made = _FACTORIES.get(name)
    if made is COALESCED and args and not is_group(args[0].type):
        return None
    return None if explicit else made


# --------------------------------------------------------------------- members


class _Place:
    """Builds arithmetic at one place of the source."""

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end

    def special(self, register: str, axis: str) -> ir.Expr:
        return ir.Special(self.start, self.end, UINT, f"{register}.{axis}")

    def number(self, value: int) -> ir.Expr:
        return ir.Const(self.start, self.end, UINT, value)

    def op(self, op: str, left: ir.Expr, right: ir.Expr) -> ir.Expr:
        return values.binary(op, left, right, self.start, self.end)

    def product(self, register: str) -> ir.Expr:
        """Number of threads of a block, or of blocks of the grid."""
        x, y, z = (self.special(register, axis) for axis in _AXES)
        return self.op("*", self.op("*", x, y), z)

    def linear(self, index: str, extent: str) -> ir.Expr:
        """x + extent.x * (y + extent.y * z)."""
        outer = self.op("+", self.special(index, "y"), self.op("*", self.special(extent, "y"), self.special(index, "z")))
        return self.op("+", self.special(index, "x"), self.op("*", self.special(extent, "x"), outer))

    def rank(self) -> ir.Expr:
        """Rank of the thread in its block."""
        return self.linear("tid", "ntid")

    def vector(self, register: str, type_: Type) -> ir.Expr:
        return ir.Construct(self.start, self.end, type_, tuple(self.special(register, axis) for axis in _AXES))


def member(type_: Type, name: str, uint3: Type, start: int, end: int) -> ir.Expr | None:
    """`group.name()` as arithmetic, None where it is an operation or depends on data."""
    at = _Place(start, end)
    kind = type_.name.removeprefix(NAMESPACE)
    if kind == "thread_block":
        return _of_block(at, name, uint3)
    if kind == "grid_group":
        return _of_grid(at, name, uint3)
    tile = _TILE.match(kind)
    if tile is None:
        return None
    return _of_tile(at, name, int(tile.group(1)), int(tile.group(2)) if tile.group(2) else None)


def _of_block(at: _Place, name: str, uint3: Type) -> ir.Expr | None:
    if name == "thread_rank":
        return at.rank()
    if name in ("size", "num_threads"):
        return at.product("ntid")
    registers = {"thread_index": "tid", "group_index": "ctaid", "group_dim": "ntid", "dim_threads": "ntid"}
    return at.vector(registers[name], uint3) if name in registers else None


def _of_grid(at: _Place, name: str, uint3: Type) -> ir.Expr | None:
    if name == "thread_rank":
        return at.op("+", at.op("*", at.linear("ctaid", "nctaid"), at.product("ntid")), at.rank())
    if name in ("size", "num_threads"):
        return at.op("*", at.product("nctaid"), at.product("ntid"))
    if name == "block_rank":
        return at.linear("ctaid", "nctaid")
    if name == "num_blocks":
        return at.product("nctaid")
    registers = {"block_index": "ctaid", "group_dim": "nctaid", "dim_blocks": "nctaid"}
    return at.vector(registers[name], uint3) if name in registers else None


def _of_tile(at: _Place, name: str, size: int, parent: int | None) -> ir.Expr | None:
    if name in ("size", "num_threads"):
        return at.number(size)
    if name == "thread_rank":
        return at.op("%", at.rank(), at.number(size))
    if name == "meta_group_rank":
        rank = at.rank() if parent is None else at.op("%", at.rank(), at.number(parent))
        return at.op("/", rank, at.number(size))
    if name == "meta_group_size":
        if parent is not None:
            return at.number(max(1, parent // size))
        return at.op("/", at.op("+", at.product("ntid"), at.number(size - 1)), at.number(size))
    return None


# Operations whose value has the type of an argument, or a type of their own.
_VALUE_OF = {
    "shfl": 0,
    "shfl_up": 0,
    "shfl_down": 0,
    "shfl_xor": 0,
    "Sum": 0,
    "Reduce": 0,
}
_TYPES = {
    "any": INT,
    "all": INT,
    "ballot": UINT,
    "match_any": UINT,
    "match_all": UINT,
    "thread_rank": UINT,
    "size": UINT,
    "sync": VOID,
}


def operation_type(name: str, args: tuple[ir.Expr, ...]) -> Type | None:
    """The type of a collective's value."""
    position = _VALUE_OF.get(name)
    if position is not None and position < len(args):
        return args[position].type
    return _TYPES.get(name)
