"""Symbolic integers of one thread block: what every lane holds, as far as the source says.

A `Poly` is a polynomial with integer coefficients over atoms.  An atom is a
known lane vector (`threadIdx.x`, or anything computed from it), an unknown
(`blockIdx.x`, a parameter, a loop counter, a loaded value) or an operation on
polynomials that has no polynomial form.  Additive unknowns thus stay visible
and drop out of bank and sector rules by themselves; numbers are only worked
out where an access or a branch needs them, for chosen values of the unknowns.

Division and remainder follow C for non-negative operands, which is what
indices are; lanes with negative operands are truncated towards zero only
where their value is known.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.int64]
WARP = 32
MAX_TERMS = 64
INT_LIMIT = 1 << 62


class Scope(enum.IntEnum):
    """Within what a value is the same for all threads."""

    GRID = 0
    BLOCK = 1
    WARP = 2
    LANE = 3


_ids = count()


class Atom:
    """An indivisible value.

    scope     within what it is uniform
    data      it depends on memory contents or control flow that source cannot decide
    symbols   the unknowns it depends on (itself, for an unknown)
    lo, hi    range, inclusive, None where unbounded
    multiple  the value is a multiple of this
    vector    the lanes of a known one
    samples   values worth trying for an unknown
    trips     iterations of a loop counter (0 .. trips - 1), None where unknown; 0 if it is no loop counter
    """

    __slots__ = ("args", "data", "hi", "id", "lo", "multiple", "name", "op", "samples", "scope", "symbols", "trips", "vector")

    def __init__(
        self,
        name: str,
        scope: Scope,
        *,
        data: bool = False,
        lo: int | None = None,
        hi: int | None = None,
        multiple: int = 1,
        vector: Vector | None = None,
        op: str = "",
        args: tuple[Poly, ...] = (),
        samples: tuple[int, ...] = (),
        trips: int | None = 0,
    ) -> None:
        self.id = next(_ids)
        self.name = name
        self.scope = scope
        self.data = data
        self.lo = lo
        self.hi = hi
        self.multiple = multiple
        self.vector = vector
        self.op = op
        self.args = args
        self.samples = samples
        self.trips = trips
        if op:
            self.symbols: frozenset[Atom] = frozenset().union(*(a.symbols for a in args))
        elif vector is not None:
            self.symbols = frozenset()
        else:
            self.symbols = frozenset((self,))

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.args))})" if self.op else self.name


Mono = tuple[Atom, ...]
_by_id: Callable[[Atom], int] = lambda atom: atom.id  # noqa: E731  (a named key is faster than attrgetter here)


class Poly:
    """Sum of coefficient x product of atoms.  Immutable; build with `const`, `of` and the operators."""

    __slots__ = ("_facts", "_key", "_range", "terms")

    def __init__(self, terms: dict[Mono, int]) -> None:
        self.terms = terms
        self._key: frozenset[tuple[Mono, int]] | None = None
        self._facts: tuple[Scope, bool, frozenset[Atom]] | None = None
        self._range: tuple[int | None, int | None] | None = None

    # ------------------------------------------------------------ identity

    @property
    def key(self) -> frozenset[tuple[Mono, int]]:
        """Equal keys mean equal values."""
        if self._key is None:
            self._key = frozenset(self.terms.items())
        return self._key

    def __repr__(self) -> str:
        parts = [
            "*".join(([] if c == 1 and m else [str(c)]) + [repr(a) for a in m])
            for m, c in sorted(self.terms.items(), key=lambda t: len(t[0]))
        ]
        return " + ".join(parts) or "0"

    # ------------------------------------------------------------ facts

    def _gather(self) -> tuple[Scope, bool, frozenset[Atom]]:
        if self._facts is None:
            scope, data = Scope.GRID, False
            symbols: frozenset[Atom] = frozenset()
            for mono in self.terms:
                for atom in mono:
                    scope = max(scope, atom.scope)
                    data = data or atom.data
                    symbols |= atom.symbols
            self._facts = (scope, data, symbols)
        return self._facts

    @property
    def scope(self) -> Scope:
        """Within what the value is certainly uniform."""
        return self._gather()[0]

    @property
    def data(self) -> bool:
        """Depends on data."""
        return self._gather()[1]

    @property
    def symbols(self) -> frozenset[Atom]:
        """The unknowns it depends on."""
        return self._gather()[2]

    @property
    def constant(self) -> int | None:
        """Its value if it is the same known number everywhere."""
        if not self.terms:
            return 0
        if len(self.terms) == 1:
            return self.terms.get(())
        return None

    @property
    def range(self) -> tuple[int | None, int | None]:
        """Bounds, inclusive."""
        if self._range is None:
            lo: int | None = 0
            hi: int | None = 0
            for mono, c in self.terms.items():
                mlo: int | None = 1
                mhi: int | None = 1
                for atom in mono:
                    mlo, mhi = _times((mlo, mhi), (atom.lo, atom.hi))
                if c < 0:
                    mlo, mhi = mhi, mlo
                lo = None if lo is None or mlo is None else lo + c * mlo
                hi = None if hi is None or mhi is None else hi + c * mhi
            self._range = (lo, hi)
        return self._range

    @property
    def multiple(self) -> int:
        """A number that certainly divides the value (0 for zero)."""
        from math import gcd

        result = 0
        for mono, c in self.terms.items():
            m = c
            for atom in mono:
                m *= atom.multiple
            result = gcd(result, m)
        return result

    # ------------------------------------------------------------ arithmetic

    def __add__(self, other: Poly) -> Poly:
        if not other.terms:
            return self
        if not self.terms:
            return other
        terms = dict(self.terms)
        for mono, c in other.terms.items():
            c += terms.get(mono, 0)
            if c:
                terms[mono] = c
            else:
                del terms[mono]
        return Poly(terms)

    def __neg__(self) -> Poly:
        return Poly({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Poly) -> Poly:
        return self + -other

    def scaled(self, factor: int) -> Poly:
        """factor x self."""
        if factor == 1:
            return self
        return Poly({m: c * factor for m, c in self.terms.items()}) if factor else ZERO

    def __mul__(self, other: Poly) -> Poly:
        if (c := other.constant) is not None:
            return self.scaled(c)
        if (c := self.constant) is not None:
            return other.scaled(c)
        if len(self.terms) * len(other.terms) > MAX_TERMS:
            return operation("*", self, other)
        terms: dict[Mono, int] = {}
        for m1, c1 in self.terms.items():
            for m2, c2 in other.terms.items():
                mono = tuple(sorted(m1 + m2, key=_by_id))
                c = terms.get(mono, 0) + c1 * c2
                if c:
                    terms[mono] = c
                else:
                    terms.pop(mono, None)
        return Poly(terms)

    def split(self, keep: Callable[[Mono, int], bool]) -> tuple[Poly, Poly]:
        """The terms that `keep` accepts, and the others."""
        yes = {m: c for m, c in self.terms.items() if keep(m, c)}
        if len(yes) == len(self.terms):
            return self, ZERO
        return Poly(yes), Poly({m: c for m, c in self.terms.items() if m not in yes})


def _times(a: tuple[int | None, int | None], b: tuple[int | None, int | None]) -> tuple[int | None, int | None]:
    """Product of two ranges."""
    if None not in a and None not in b:
        ends = [x * y for x in a for y in b]  # type: ignore[operator]
        return min(ends), max(ends)
    if a[0] is not None and a[0] >= 0 and b[0] is not None and b[0] >= 0:
        return a[0] * b[0], None
    return None, None


def const(value: int) -> Poly:
    """A known number."""
    return Poly({(): value}) if value else ZERO


def of(atom: Atom) -> Poly:
    """An atom as a polynomial."""
    return Poly({(atom,): 1})


ZERO = Poly({})
ONE = Poly({(): 1})
Samples = Mapping[Atom, int]


# ---------------------------------------------------------------- operations


def _trunc_div(a: Any, b: Any) -> Any:
    q = np.floor_divide(np.abs(a), np.maximum(np.abs(b), 1))
    return np.where(b == 0, 0, np.where((a < 0) ^ (b < 0), -q, q))


def _shift(a: Any, b: Any, left: bool) -> Any:
    b = np.clip(b, 0, 62)
    return np.left_shift(a, b) if left else np.right_shift(a, b)


def _lowest_bit(a: Any) -> Any:
    bits = [np.right_shift(a, i) & 1 for i in range(32)]
    result = np.zeros_like(a)
    for i in reversed(range(32)):
        result = np.where(bits[i] == 1, i + 1, result)
    return result


def _population(a: Any) -> Any:
    return sum((np.right_shift(a, i) & 1) for i in range(32))


def _highest_bit(a: Any) -> Any:
    result = np.full_like(a, 32)
    for i in range(32):
        result = np.where((np.right_shift(a, i) & 1) == 1, 31 - i, result)
    return result


def _reverse_bits(a: Any) -> Any:
    result = np.zeros_like(a)
    for i in range(32):
        result = result | (((np.right_shift(a, i)) & 1) << (31 - i))
    return result


def _convert(a: Any, bits: Any, signed: bool) -> Any:
    bits = int(np.max(bits))
    a = a & ((1 << bits) - 1)
    return np.where(a >> (bits - 1) == 1, a - (1 << bits), a) if signed else a


OPERATIONS: dict[str, Callable[..., Any]] = {
    "*": lambda a, b: a * b,
    "/": _trunc_div,
    "%": lambda a, b: np.where(b == 0, 0, a - _trunc_div(a, b) * b),
    "<<": lambda a, b: _shift(a, b, True),
    ">>": lambda a, b: _shift(a, b, False),
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "min": np.minimum,
    "max": np.maximum,
    "lt0": lambda a: (a < 0).astype(np.int64),
    "eq0": lambda a: (a == 0).astype(np.int64),
    "not": lambda a: (a == 0).astype(np.int64),
    "and": lambda a, b: ((a != 0) & (b != 0)).astype(np.int64),
    "or": lambda a, b: ((a != 0) | (b != 0)).astype(np.int64),
    "select": lambda c, a, b: np.where(c != 0, a, b),
    "ffs": _lowest_bit,
    "popc": _population,
    "clz": _highest_bit,
    "brev": _reverse_bits,
    "zext": lambda a, b: _convert(a, b, False),
    "sext": lambda a, b: _convert(a, b, True),
}
BOOLEAN = frozenset(("lt0", "eq0", "not", "and", "or"))


class Geometry:
    """The threads of one block: `threads` of them, x fastest, padded to whole warps.

    Lane vectors have shape (warps x 32,); `valid` marks the lanes that exist.
    """

    __slots__ = ("block", "shape", "threads", "tid", "valid", "warps")

    def __init__(self, block: tuple[int, int, int]) -> None:
        self.block = block
        x, y, _ = block
        self.threads = x * y * block[2]
        self.warps = -(-self.threads // WARP)
        index = np.arange(self.warps * WARP, dtype=np.int64)
        self.valid = index < self.threads
        lanes = (index % x, index // x % y, index // (x * y))
        self.tid = tuple(
            ZERO if extent == 1 else of(_lane_atom(f"threadIdx.{axis}", vector))
            for axis, extent, vector in zip("xyz", block, lanes, strict=True)
        )

    def known(self, vector: Vector, name: str = "") -> Poly:
        """A known lane vector as a value; a constant where all threads agree."""
        existing = vector[: self.threads]
        first = int(existing[0])
        if (existing == first).all():
            return const(first)
        return of(_lane_atom(name or "lanes", vector))

    def lanes(self, poly: Poly, samples: Samples | None = None, memo: dict[Atom, Any] | None = None) -> Vector:
        """The value in every lane, for the given values of its unknowns.

        Raises KeyError where an unknown has none.
        """
        value = _evaluate(poly, samples or {}, {} if memo is None else memo)
        if isinstance(value, np.ndarray):
            return value
        return np.full(self.warps * WARP, value, dtype=np.int64)


_lane_atoms: dict[bytes, Atom] = {}


def _lane_atom(name: str, vector: Vector) -> Atom:
    key = vector.tobytes()
    atom = _lane_atoms.get(key)
    if atom is None:
        rows = vector.reshape(-1, WARP)
        scope = Scope.WARP if (rows == rows[:, :1]).all() else Scope.LANE
        lo, top = int(vector.min()), int(vector.max())
        atom = Atom(name, scope, lo=lo, hi=top, vector=vector)
        if len(_lane_atoms) > 20_000:
            _lane_atoms.clear()
        _lane_atoms[key] = atom
    return atom


def _evaluate(poly: Poly, samples: Samples, memo: dict[Atom, Any]) -> Any:
    total: Any = 0
    for mono, c in poly.terms.items():
        value: Any = _wrapped(c)
        for atom in mono:
            value = _wrapped(value * _wrapped(_atom_value(atom, samples, memo)))
        total = _wrapped(total + value)
    return total


def _wrapped(value: Any) -> Any:
    """A number as 64 bits hold it; lane vectors wrap by themselves."""
    if isinstance(value, int) and not -INT_LIMIT <= value <= INT_LIMIT:
        return (value + (1 << 63)) % (1 << 64) - (1 << 63)
    return value


def _atom_value(atom: Atom, samples: Samples, memo: dict[Atom, Any]) -> Any:
    if atom.vector is not None:
        return atom.vector
    if not atom.op:
        return samples[atom]
    value = memo.get(atom)
    if value is None:
        args = [np.asarray(_evaluate(a, samples, memo), dtype=np.int64) for a in atom.args]
        value = np.asarray(OPERATIONS[atom.op](*args), dtype=np.int64)
        if value.ndim == 0:
            value = int(value)
        memo[atom] = value
    return value


# ------------------------------------------------------- operations, simplified

_operation_atoms: dict[tuple[Any, ...], Poly] = {}


def operation(op: str, *args: Poly) -> Poly:
    """`op` applied to values: a number or lane vector if they are known, else an atom."""
    constants = [a.constant for a in args]
    if None not in constants:
        with np.errstate(all="ignore"):
            return const(_clamped(OPERATIONS[op](*(np.int64(_clamped(c)) for c in constants))))
    key = (op, *(a.key for a in args))
    found = _operation_atoms.get(key)
    if found is None:
        found = _new_operation(op, args)
        if len(_operation_atoms) > 50_000:
            _operation_atoms.clear()
        _operation_atoms[key] = found
    return found


def _clamped(value: Any) -> int:
    return max(-INT_LIMIT, min(INT_LIMIT, int(value)))


def _new_operation(op: str, args: tuple[Poly, ...]) -> Poly:
    scope = max(a.scope for a in args)
    data = any(a.data for a in args)
    symbols = any(a.symbols for a in args)
    if not data and not symbols:
        try:
            vector = np.asarray(_atom_value(Atom(op, scope, op=op, args=args), {}, {}), dtype=np.int64)
        except (OverflowError, ValueError):  # a coefficient beyond 64 bits
            return of(Atom(op, scope, data=True))
        return of(_lane_atom(op, vector)) if (vector != vector[0]).any() else const(int(vector[0]))
    lo, hi = _operation_range(op, args)
    return of(Atom(op, scope, data=data, op=op, args=args, lo=lo, hi=hi))


def _operation_range(op: str, args: tuple[Poly, ...]) -> tuple[int | None, int | None]:
    if op in BOOLEAN:
        return 0, 1
    lo, hi = args[0].range
    if op == "%" and (n := args[1].range[1]) is not None and lo is not None and lo >= 0:
        return 0, max(0, n - 1) if hi is None else min(hi, max(0, n - 1))
    if op == "&":
        bounds = [a.range for a in args]
        tops = [h for low, h in bounds if low is not None and low >= 0 and h is not None]
        return (0, min(tops)) if tops else (None, None)
    if op in ("|", "^"):
        if all(a.range[0] is not None and a.range[0] >= 0 and a.range[1] is not None for a in args):
            top = max(int(a.range[1]).bit_length() for a in args)  # type: ignore[arg-type]
            return 0, (1 << top) - 1
        return None, None
    if op in ("/", ">>") and lo is not None and lo >= 0:
        divisor = args[1].constant
        if divisor is not None and hi is not None:
            return (lo >> divisor, hi >> divisor) if op == ">>" else (lo // max(1, divisor), hi // max(1, divisor))
        return 0, hi
    if op == "min":
        tops = [h for a in args if (h := a.range[1]) is not None]
        lows = [a.range[0] for a in args]
        return (None if None in lows else min(lows)), (min(tops) if tops else None)  # type: ignore[type-var]
    if op == "max":
        highs = [a.range[1] for a in args]
        lows_ = [low for a in args if (low := a.range[0]) is not None]
        return (max(lows_) if lows_ else None), (None if None in highs else max(highs))  # type: ignore[type-var]
    if op == "select":
        (alo, ahi), (blo, bhi) = args[1].range, args[2].range
        return (
            None if alo is None or blo is None else min(alo, blo),
            None if ahi is None or bhi is None else max(ahi, bhi),
        )
    if op == "zext" and (bits := args[1].constant) is not None:
        return 0, (1 << bits) - 1
    if op in ("ffs", "popc", "clz"):
        return 0, 32
    return None, None
