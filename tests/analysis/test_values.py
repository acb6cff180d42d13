"""Symbolic lane values against plain enumeration, thread by thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudalint.analysis import arithmetic as ops
from cudalint.analysis import values as v
from cudalint.analysis.values import Atom, Geometry, Poly, Scope

N = Atom("n", Scope.GRID, lo=0)
B = Atom("blockIdx.x", Scope.BLOCK, lo=0)
BLOCKS = ((256, 1, 1), (32, 8, 1), (16, 16, 1), (8, 8, 4), (20, 3, 1), (1, 64, 1))


@dataclass(frozen=True)
class Expression:
    """One expression twice: as the machine builds it, and as C computes it for one thread."""

    text: str
    symbolic: Callable[[Geometry], Poly]
    plain: Callable[[dict[str, int]], int]


def leaf(name: str, symbolic: Callable[[Geometry], Poly]) -> Expression:
    return Expression(name, symbolic, lambda env: env[name])


LEAVES = [
    leaf("x", lambda g: g.tid[0]),
    leaf("y", lambda g: g.tid[1]),
    leaf("z", lambda g: g.tid[2]),
    leaf("n", lambda g: v.of(N)),
    leaf("b", lambda g: v.of(B)),
]
OPERATORS: dict[str, tuple[Callable[[Poly, Poly], Poly], Callable[[int, int], int]]] = {
    "+": (Poly.__add__, lambda a, b: a + b),
    "*": (Poly.__mul__, lambda a, b: a * b),
    "&": (ops.bit_and, lambda a, b: a & b),
    "|": (ops.bit_or, lambda a, b: a | b),
    "^": (ops.bit_xor, lambda a, b: a ^ b),
    "min": (ops.minimum, min),
    "max": (ops.maximum, max),
    "<": (ops.less, lambda a, b: int(a < b)),
    "==": (ops.equal, lambda a, b: int(a == b)),
    "!<": (lambda a, b: ops.negated(ops.less(a, b)), lambda a, b: int(not a < b)),
    "and": (lambda a, b: ops.both(ops.truth(a), ops.truth(b)), lambda a, b: int(bool(a) and bool(b))),
    "or": (lambda a, b: ops.either(ops.truth(a), ops.truth(b)), lambda a, b: int(bool(a) or bool(b))),
}
BY_CONSTANT: dict[str, tuple[Callable[[Poly, Poly], Poly], Callable[[int, int], int], tuple[int, ...]]] = {
    "/": (ops.divide, lambda a, b: a // b, (1, 2, 3, 8, 16, 32, 33, 256)),
    "%": (ops.remainder, lambda a, b: a % b, (1, 2, 3, 8, 16, 31, 32, 33, 256)),
    "<<": (ops.shift_left, lambda a, b: a << b, (0, 1, 2, 5)),
    ">>": (ops.shift_right, lambda a, b: a >> b, (0, 1, 3, 5)),
    "&": (ops.bit_and, lambda a, b: a & b, (1, 3, 7, 15, 31, 5, 24)),
    "*": (Poly.__mul__, lambda a, b: a * b, (2, 3, 4, 32, 33, 256)),
    "+": (Poly.__add__, lambda a, b: a + b, (1, 7, 32)),
}


def binary(op: str, a: Expression, b: Expression) -> Expression:
    symbolic, plain = OPERATORS[op]
    return Expression(
        f"({a.text} {op} {b.text})", lambda g: symbolic(a.symbolic(g), b.symbolic(g)), lambda e: plain(a.plain(e), b.plain(e))
    )


def by_constant(op: str, a: Expression, which: int) -> Expression:
    symbolic, plain, constants = BY_CONSTANT[op]
    c = constants[which % len(constants)]
    return Expression(f"({a.text} {op} {c})", lambda g: symbolic(a.symbolic(g), v.const(c)), lambda e: plain(a.plain(e), c))


expressions = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.builds(binary, st.sampled_from(sorted(OPERATORS)), inner, inner),
        st.builds(by_constant, st.sampled_from(sorted(BY_CONSTANT)), inner, st.integers(0, 8)),
    ),
    max_leaves=8,
)


@settings(max_examples=1500, deadline=None)
@given(expressions, st.sampled_from(BLOCKS), st.integers(0, 70), st.integers(0, 9))
def test_every_lane_holds_what_c_computes(expression: Expression, block: tuple[int, int, int], n: int, b: int) -> None:
    geometry = Geometry(block)
    x_size, y_size, z_size = block
    threads = [{"x": x, "y": y, "z": z, "n": n, "b": b} for z in range(z_size) for y in range(y_size) for x in range(x_size)]
    expected = [expression.plain(t) for t in threads]
    if max(map(abs, expected)) >= 1 << 60:
        return
    value = expression.symbolic(geometry)
    assert geometry.lanes(value, {N: n, B: b})[: len(threads)].tolist() == expected
    low, high = value.range
    assert low is None or low <= min(expected)
    assert high is None or max(expected) <= high
    if value.scope < Scope.LANE:
        assert all(len(set(expected[w : w + 32])) == 1 for w in range(0, len(expected), 32))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (lambda i: ops.remainder(i, v.const(32)), "an index modulo the warp size loses the block"),
        (lambda i: ops.bit_and(i, v.const(31)), "a mask of low bits does too"),
    ],
)
def test_blocks_of_whole_warps_drop_out_of_lane_indices(value: Callable[[Poly], Poly], expected: str) -> None:
    geometry = Geometry((256, 1, 1))
    lane = value(v.of(B).scaled(256) + geometry.tid[0])
    assert not lane.symbols, expected
    assert geometry.lanes(lane).tolist() == [t % 32 for t in range(256)]


def test_division_by_the_warp_size_keeps_the_block_as_an_additive_unknown() -> None:
    geometry = Geometry((256, 1, 1))
    warp = ops.divide(v.of(B).scaled(256) + geometry.tid[0], v.const(32))
    assert warp.terms[(B,)] == 8
    assert warp.scope is Scope.WARP


def test_a_row_of_a_wide_block_is_uniform_in_its_warp() -> None:
    assert Geometry((32, 8, 1)).tid[1].scope is Scope.WARP
    assert Geometry((16, 16, 1)).tid[1].scope is Scope.LANE
    assert Geometry((1, 64, 1)).tid[0].constant == 0
