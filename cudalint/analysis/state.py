"""What the symbolic machine works on: values beyond integers, recorded events, and who has left.

Integers are `cudalint.analysis.values.Poly`.
"""

from __future__ import annotations

from dataclasses import dataclass

from cudalint.analysis import arithmetic as ops
from cudalint.analysis.values import ONE, ZERO, Atom, Poly, Scope
from cudalint.semantics import ir

# ---------------------------------------------------------------------- values


class Memory:
    """Something that has an address: an array, a struct, or what a pointer of unknown origin points at.

    restrict  nothing else points there
    """

    __slots__ = ("alignment", "name", "restrict", "scope", "space", "symbol")

    def __init__(
        self, name: str, space: ir.Space, scope: Scope, alignment: int, symbol: ir.Symbol | None = None, restrict: bool = False
    ) -> None:
        self.name = name
        self.space = space
        self.scope = scope
        self.alignment = alignment
        self.symbol = symbol
        self.restrict = restrict

    @property
    def home(self) -> object:
        """What may alias has the same home."""
        return self if self.symbol is not None or self.restrict else self.space


class Pointer:
    """`offset` bytes into `memory`.

    steps      the (index, stride) pairs that led there, outermost first
    anchor     the offset of the last pointer of known type on the way, a multiple of `alignment` by that type
    """

    __slots__ = ("alignment", "anchor", "memory", "offset", "steps")

    def __init__(
        self,
        memory: Memory,
        offset: Poly,
        steps: tuple[tuple[Poly, int], ...] = (),
        anchor: Poly = ZERO,
        alignment: int = 1,
    ) -> None:
        self.memory = memory
        self.offset = offset
        self.steps = steps
        self.anchor = anchor
        self.alignment = alignment

    @property
    def scope(self) -> Scope:
        """Within what the pointer is uniform."""
        return max(self.memory.scope, self.offset.scope)


class Opaque:
    """A value of which only its uniformity is known."""

    __slots__ = ("scope",)

    def __init__(self, scope: Scope) -> None:
        self.scope = scope


class Struct:
    """A struct value: fields by byte offset, what is missing is as `rest` says."""

    __slots__ = ("fields", "rest")

    def __init__(self, fields: dict[int, Value], rest: Scope) -> None:
        self.fields = fields
        self.rest = rest

    @property
    def scope(self) -> Scope:
        """Within what the whole value is uniform."""
        return max((f.scope for f in self.fields.values()), default=self.rest)


Value = Poly | Pointer | Opaque | Struct
OPAQUE = {scope: Opaque(scope) for scope in Scope}
Key = ir.Symbol | tuple[ir.Symbol, int | None]


# ---------------------------------------------------------------------- events


@dataclass(frozen=True, slots=True, eq=False)
class RawAccess:
    """A recorded access: what the lanes address, under which conditions, how often.

    size     bytes per lane of the instruction, `asked` those of the source expression
    segment  accesses of one segment can be joined: nothing that may alias stands between them
    unrolled the counter of the loop around it, if the compiler unrolls that loop and its iterations can be joined
    written  for a vector access, the access as the source writes it
    counted  the weight is exact, not a guess about a loop of unknown length
    """

    path: str
    start: int
    end: int
    op: str
    pointer: Pointer
    size: int
    asked: int
    conditions: tuple[Poly, ...]
    weight: float
    counted: bool
    segment: int
    unrolled: Atom | None = None
    written: RawAccess | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RawBranch:
    """A recorded branch or loop condition."""

    path: str
    start: int
    end: int
    condition: Poly
    conditions: tuple[Poly, ...]
    weight: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Which lanes left: conditions under which they returned, broke or continued; None for nobody."""

    returned: Poly | None = None
    broke: Poly | None = None
    continued: Poly | None = None

    @property
    def left(self) -> Poly:
        """The condition under which a lane does not go on to the next statement."""
        result = ZERO
        for part in (self.returned, self.broke, self.continued):
            if part is not None:
                result = ops.either(result, part)
        return result

    def under(self, condition: Poly) -> Outcome:
        """The same, happening only where `condition` holds."""
        if self is STAYS:
            return self
        return Outcome(*(None if p is None else ops.both(condition, p) for p in (self.returned, self.broke, self.continued)))

    def then(self, later: Outcome) -> Outcome:
        """This, and for those who stayed, `later`."""
        if later is STAYS:
            return self
        if self is STAYS:
            return later
        stayed = ops.negated(self.left)
        later = later.under(stayed)
        return self.joined(later)

    def joined(self, other: Outcome) -> Outcome:
        """Either of the two."""
        if other is STAYS:
            return self
        if self is STAYS:
            return other

        def one(a: Poly | None, b: Poly | None) -> Poly | None:
            return b if a is None else a if b is None else ops.either(a, b)

        return Outcome(one(self.returned, other.returned), one(self.broke, other.broke), one(self.continued, other.continued))


STAYS = Outcome()
RETURNS = Outcome(returned=ONE)
BREAKS = Outcome(broke=ONE)
CONTINUES = Outcome(continued=ONE)


class Frame:
    """One function being run, called under the first `depth` conditions."""

    __slots__ = ("depth", "function", "returned")

    def __init__(self, function: ir.Function, depth: int = 0) -> None:
        self.function = function
        self.depth = depth
        self.returned: list[tuple[Poly, Value]] = []
