"""The values that host code computes with, and the states it can be in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from cudalint.semantics import literals
from cudalint.syntax import kinds as k

if TYPE_CHECKING:
    from tree_sitter import Node

    from cudalint.semantics.hostslice import Changes
    from cudalint.semantics.scope import Scope
    from cudalint.semantics.symbols import FunctionDef

MAX_STATES = 12


class Unknown:
    """The type of `UNKNOWN`."""

    def __repr__(self) -> str:
        return "?"


UNKNOWN = Unknown()


class Dim(NamedTuple):
    """A dim3; components that are not known are None."""

    x: int | None
    y: int | None = 1
    z: int | None = 1


@dataclass(frozen=True, slots=True)
class KernelName:
    """A function named as a value, with its explicit template arguments."""

    candidates: tuple[FunctionDef, ...]
    explicit: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """An array with the values of its elements."""

    values: tuple[object, ...]


Value = object
State = dict[str, Value]


class World:
    """One way to get somewhere: template bindings of the function (in the scope) and what variables hold.

    function  what is known of its body: a variable of it that the state lacks is no constant of the file
    at        where macros are looked up, for text that comes out of a macro; None: where the text stands
    """

    __slots__ = ("_names", "at", "function", "scope", "state")

    def __init__(self, scope: Scope, state: State, function: Changes | None = None, at: int | None = None) -> None:
        self.scope = scope
        self.state = state
        self.function = function
        self.at = at
        self._names: Scope | None = None

    def names(self, node: Node) -> Scope:
        """The scope with the state's variables as local constants, as seen from a node."""
        scope = self._names
        if scope is None:
            scope = self._names = self.scope.child(local=self.state)
        scope.offset = node.start_byte if self.at is None else self.at
        return scope

    def holding(self, state: State) -> World:
        """The same place with other values."""
        return World(self.scope, state, self.function, self.at)


@lru_cache(maxsize=4096)
def number_of(text: bytes) -> Value:
    found = literals.number(text.decode("utf-8", "replace"))
    return UNKNOWN if found is None else found[0]


def dim_of(parts: list[Value]) -> Dim:
    numbers = [int(p) if isinstance(p, (int, float)) else None for p in parts[:3]]
    return Dim(*numbers) if numbers else Dim(1)


def as_dim(value: Value) -> Value:
    if isinstance(value, (int, float)):
        return Dim(int(value))
    return value if isinstance(value, Dim) else Dim(None, None, None) if value is UNKNOWN else value


def aggregate(init: Node, parts: list[Value]) -> Value:
    """A braced launch configuration: positional (grid, block, bytes, stream) or designated."""
    pairs = [n for n in init.named_children if n.type == k.INITIALIZER_PAIR]
    if pairs:
        return UNKNOWN
    names = ("gridDim", "blockDim", "dynamicSmemBytes", "stream")
    return dict(zip(names, parts, strict=False))


def distinct(worlds: list[World]) -> list[World]:
    if len(worlds) < 2:
        return worlds
    seen: dict[object, World] = {}
    for world in worlds:
        try:
            key: object = (id(world.scope), frozenset((n, type(x), x) for n, x in world.state.items()))
            seen.setdefault(key, world)
        except TypeError:  # a launch configuration
            seen.setdefault((id(world.scope), tuple(sorted((n, repr(x)) for n, x in world.state.items()))), world)
    return list(seen.values())[:MAX_STATES]


def _int_divide(a: int, b: int) -> int | None:
    return None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_OPERATORS: dict[str, Callable[[int, int], int | None]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _int_divide,
    "%": lambda a, b: None if b == 0 else a % b,
    "<<": lambda a, b: a << b if 0 <= b < 63 else None,
    ">>": lambda a, b: a >> b if 0 <= b < 63 else None,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "&&": lambda a, b: int(bool(a) and bool(b)),
    "||": lambda a, b: int(bool(a) or bool(b)),
}


def combine(op: str, a: Value, b: Value) -> Value:
    if isinstance(a, int) and isinstance(b, int) and op in _OPERATORS:
        result = _OPERATORS[op](a, b)
        return UNKNOWN if result is None or abs(result) > 1 << 62 else result
    if isinstance(a, (int, float)) and isinstance(b, (int, float)) and op in ("+", "-", "*", "/"):
        return UNKNOWN if op == "/" and b == 0 else {"+": a + b, "-": a - b, "*": a * b, "/": a / (b or 1)}[op]
    if op == "*" and (a == 0 or b == 0):
        return 0
    return UNKNOWN
