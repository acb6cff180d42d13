"""C's integer operators on symbolic values, simplified where the rule is certain.

Division and remainder follow C for non-negative operands, which is what
indices are: additive unknowns that a constant divisor divides stay additive in a quotient and drop
out of a remainder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cudalint.analysis.values import ONE, ZERO, Mono, Poly, const, operation


def divide(a: Poly, b: Poly) -> Poly:
    """a / b.  A multiple of a constant divisor is divided exactly, the rest stays an operation."""
    n = b.constant
    if n == 1:
        return a
    if n is None or n <= 0 or a.constant is not None:
        return _exact_quotient(a, b) if n is None else operation("/", a, b)
    whole, rest = a.split(lambda mono, c: coefficient(mono, c) % n == 0)
    lo, hi = rest.range
    if not whole.terms and lo is not None and hi is not None and lo >= 0 and hi < n:
        return ZERO
    if not whole.terms:
        return operation("/", a, b)
    quotient = Poly({m: c // n for m, c in whole.terms.items() if c % n == 0})
    odd = Poly({m: c for m, c in whole.terms.items() if c % n})
    if odd.terms:
        quotient = quotient + operation("/", odd, b)
    if not rest.terms:
        return quotient
    return quotient + (ZERO if lo is not None and hi is not None and lo >= 0 and hi < n else divide(rest, b))


def _exact_quotient(a: Poly, b: Poly) -> Poly:
    """a / b with an unknown b: exact where every term of a has b as a factor."""
    if len(b.terms) == 1:
        (mono, c), *_ = b.terms.items()
        if c == 1 and len(mono) == 1 and a.terms and all(mono[0] in m for m in a.terms):
            terms: dict[Mono, int] = {}
            for m, k in a.terms.items():
                rest = list(m)
                rest.remove(mono[0])
                terms[tuple(rest)] = k
            return Poly(terms)
    return operation("/", a, b)


def coefficient(mono: Mono, c: int) -> int:
    """A number that divides a term."""
    for atom in mono:
        c *= atom.multiple
    return c


def remainder(a: Poly, b: Poly) -> Poly:
    """a % b.  What a constant divisor divides drops out."""
    n = b.constant
    if n is None or n <= 0 or a.constant is not None:
        return operation("%", a, b)
    _, rest = a.split(lambda mono, c: coefficient(mono, c) % n == 0)
    reduced = Poly({m: c % n if c >= 0 or m else c for m, c in rest.terms.items()})
    lo, hi = reduced.range
    if lo is not None and hi is not None and lo >= 0 and hi < n:
        return reduced
    return operation("%", rest if rest.range[0] is None or rest.range[0] >= 0 else a, b)


def shift_left(a: Poly, b: Poly) -> Poly:
    """a << b."""
    n = b.constant
    if n is not None and 0 <= n < 62:
        return a.scaled(1 << n)
    return operation("<<", a, b)


def shift_right(a: Poly, b: Poly) -> Poly:
    """a >> b."""
    n = b.constant
    if n is not None and 0 <= n < 62 and a.constant is None:
        return divide(a, const(1 << n))
    return operation(">>", a, b)


def bit_and(a: Poly, b: Poly) -> Poly:
    """a & b; a mask of low bits is a remainder."""
    for x, y in ((a, b), (b, a)):
        n = y.constant
        if n is not None and n > 0 and n & (n + 1) == 0:
            return remainder(x, const(n + 1))
        if n == -1:
            return x
        if n == 0:
            return ZERO
    for x, y in ((a, b), (b, a)):
        n = y.constant
        if n is not None and n < 0 and (-n) & (-n - 1) == 0:  # ~(2^k - 1): rounding down
            return x - remainder(x, const(-n))
    return operation("&", a, b)


def bit_or(a: Poly, b: Poly) -> Poly:
    """a | b; disjoint bits add."""
    for x, y in ((a, b), (b, a)):
        lo, hi = y.range
        m = x.multiple
        if lo is not None and hi is not None and lo >= 0 and m and m & -m > hi:
            return x + y
    return operation("|", a, b)


def bit_xor(a: Poly, b: Poly) -> Poly:
    """a ^ b; equal values cancel, disjoint bits add."""
    if a.key == b.key:
        return ZERO
    if not a.terms or not b.terms:
        return a + b
    if b.constant == -1:
        return -a - ONE
    high_a, low_a = _high_low(a, b)
    if high_a.terms:
        return high_a + operation("^", low_a, b)
    high_b, low_b = _high_low(b, a)
    if high_b.terms:
        return high_b + operation("^", a, low_b)
    return operation("^", a, b)


def _high_low(a: Poly, b: Poly) -> tuple[Poly, Poly]:
    """Splits off the terms of `a` that are multiples of a power of two beyond both `b` and the rest of `a`."""
    lo, hi = b.range
    if lo is None or hi is None or lo < 0:
        return ZERO, a
    unit = 1 << hi.bit_length()
    high, low = a.split(lambda mono, c: coefficient(mono, c) % unit == 0)
    low_lo, low_hi = low.range
    if low_lo is None or low_hi is None or low_lo < 0 or low_hi >= unit:
        return ZERO, a
    return high, low


def minimum(a: Poly, b: Poly) -> Poly:
    """min(a, b)."""
    return _extreme("min", a, b, (a - b).range)


def maximum(a: Poly, b: Poly) -> Poly:
    """max(a, b)."""
    return _extreme("max", a, b, (b - a).range)


def _extreme(op: str, first: Poly, second: Poly, difference: tuple[int | None, int | None]) -> Poly:
    lo, hi = difference
    if hi is not None and hi <= 0:
        return first
    if lo is not None and lo >= 0:
        return second
    return operation(op, first, second)


def less(a: Poly, b: Poly) -> Poly:
    """1 where a < b."""
    d = a - b
    lo, hi = d.range
    if hi is not None and hi < 0:
        return ONE
    if lo is not None and lo >= 0:
        return ZERO
    return operation("lt0", d)


def equal(a: Poly, b: Poly) -> Poly:
    """1 where a == b."""
    d = a - b
    lo, hi = d.range
    if (lo is not None and lo > 0) or (hi is not None and hi < 0):
        return ZERO
    return operation("eq0", d)


def negated(condition: Poly) -> Poly:
    """1 where the condition is 0."""
    if (c := condition.constant) is not None:
        return ONE if c == 0 else ZERO
    if len(condition.terms) == 1:
        (mono, c), *_ = condition.terms.items()
        if c == 1 and len(mono) == 1:
            atom = mono[0]
            if atom.op == "lt0":  # not d < 0  is  -d - 1 < 0
                return less(-atom.args[0] - ONE, ZERO)
            if atom.op == "not" and atom.args[0].range == (0, 1):
                return atom.args[0]
            if atom.op == "or":
                return both(negated(atom.args[0]), negated(atom.args[1]))
    return operation("not", condition)


def truth(value: Poly) -> Poly:
    """A value as a condition, 0 or 1."""
    if value.constant is not None:
        return ONE if value.constant else ZERO
    lo, hi = value.range
    if lo is not None and hi is not None and lo >= 0 and hi <= 1:
        return value
    return negated(equal(value, ZERO))


def both(a: Poly, b: Poly) -> Poly:
    """Logical and of two conditions."""
    if a.constant is not None:
        return b if a.constant else ZERO
    if b.constant is not None:
        return a if b.constant else ZERO
    return a if a.key == b.key else operation("and", a, b)


def either(a: Poly, b: Poly) -> Poly:
    """Logical or of two conditions."""
    if a.constant is not None:
        return ONE if a.constant else b
    if b.constant is not None:
        return ONE if b.constant else a
    return a if a.key == b.key else operation("or", a, b)


def select(condition: Poly, then: Poly, other: Poly) -> Poly:
    """`condition ? then : other`; a common part of both stays outside."""
    if (c := condition.constant) is not None:
        return then if c else other
    if then.key == other.key:
        return then
    common = Poly({m: c for m, c in then.terms.items() if other.terms.get(m) == c})
    if common.terms:
        return common + operation("select", condition, then - common, other - common)
    return operation("select", condition, then, other)


def conjuncts(condition: Poly) -> Iterator[Poly]:
    """The conditions that must all hold for this one to hold."""
    if len(condition.terms) == 1:
        (mono, c), *_ = condition.terms.items()
        if c == 1 and len(mono) == 1 and mono[0].op == "and":
            for arg in mono[0].args:
                yield from conjuncts(arg)
            return
    yield condition


def conjunction(conditions: Iterable[Poly]) -> Poly:
    """All of them."""
    result = ONE
    for condition in conditions:
        result = both(result, condition)
    return result
