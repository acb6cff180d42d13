"""Whole kernels against a slow oracle: every thread run on its own in Python, requests counted word by word."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cudalint.analysis.evaluate import kernel_facts
from cudalint.analysis.facts import Access, KernelFacts
from cudalint.finding import Certainty
from cudalint.semantics.program import Options, Program
from cudalint.source.text import SourceFile

Env = dict[str, int]
SIZES = {"unsigned char": 1, "short": 2, "float": 4, "double": 8, "float4": 16}
BLOCKS = ((32, 1), (64, 1), (256, 1), (32, 4), (16, 16), (8, 8), (33, 3), (20, 1), (4, 64))


def analyse(code: str, name: str = "probe.cu") -> list[KernelFacts]:
    """The facts of the first kernel in a source text."""
    program = Program(Path("/nowhere"), Options())
    unit = program.add(SourceFile(f"/nowhere/{name}", code.encode()))
    return kernel_facts(unit.kernels[0], program)


# --------------------------------------------------------------- the generator


@dataclass(frozen=True)
class Code:
    """An expression in C, and what it gives for one thread."""

    text: str
    value: Callable[[Env], int]


def name(variable: str) -> Code:
    return Code(variable, lambda env: env[variable])


def number(value: int) -> Code:
    return Code(str(value), lambda env: value)


PYTHON = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "^": lambda a, b: a ^ b,
    "|": lambda a, b: a | b,
    "&": lambda a, b: a & b,
    "/": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
}


def combine(op: str, a: Code, b: Code) -> Code:
    return Code(f"({a.text} {op} {b.text})", lambda env: PYTHON[op](a.value(env), b.value(env)))


def choose(c: Code, a: Code, b: Code) -> Code:
    return Code(f"({c.text} ? {a.text} : {b.text})", lambda env: a.value(env) if c.value(env) else b.value(env))


def compare(op: str, a: Code, b: Code) -> Code:
    python = {"<": int.__lt__, "<=": int.__le__, "==": int.__eq__, "!=": int.__ne__, ">": int.__gt__, ">=": int.__ge__}[op]
    return Code(f"({a.text} {op} {b.text})", lambda env: int(python(a.value(env), b.value(env))))


variables = st.sampled_from([name("x"), name("y"), name("k")])
numbers = st.sampled_from([number(n) for n in (1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 64)])
indices = st.recursive(
    st.one_of(variables, numbers),
    lambda inner: st.one_of(
        st.builds(combine, st.sampled_from("+*^|&"), inner, inner),
        st.builds(combine, st.sampled_from(["/", "%", "*", "&"]), inner, numbers),
        st.builds(combine, st.sampled_from(["<<", ">>"]), inner, st.sampled_from([number(n) for n in (1, 2, 3)])),
        st.builds(choose, st.builds(compare, st.sampled_from(["<", "==", ">="]), inner, numbers), inner, inner),
    ),
    max_leaves=6,
)
conditions = st.builds(compare, st.sampled_from(["<", "<=", "==", "!=", ">", ">="]), indices, numbers)


@dataclass(frozen=True)
class Loop:
    """A loop over k: its head in C, and the values k takes in one thread."""

    head: str
    values: Callable[[Env], Iterator[int]]


def counted(first: int, bound: int, step: int) -> Loop:
    return Loop(f"for (int k = {first}; k < {bound}; k += {step})", lambda env: iter(range(first, bound, step)))


def strided(bound: int, step: int) -> Loop:
    return Loop(f"for (int k = x; k < {bound}; k += {step})", lambda env: iter(range(env["x"], bound, step)))


def halving(first: int) -> Loop:
    def values(env: Env) -> Iterator[int]:
        k = first
        while k > 0:
            yield k
            k >>= 1

    return Loop(f"for (int k = {first}; k > 0; k >>= 1)", values)


ONCE = Loop("for (int k = 0; k < 1; ++k)", lambda env: iter(range(1)))
loops = st.one_of(
    st.just(ONCE),
    st.builds(counted, st.integers(0, 3), st.integers(4, 40), st.integers(1, 5)),
    st.builds(strided, st.integers(1, 300), st.sampled_from([1, 16, 32, 64])),
    st.builds(halving, st.sampled_from([1, 16, 100, 128])),
)


# ------------------------------------------------------------------ the oracle


def cost(lanes: list[int | None], size: int, store: bool) -> tuple[int, int]:
    """Wavefronts of one warp instruction and their ideal, by the rules in the documentation of `hardware`."""
    per = {8: 16, 16: 8}.get(size, 32)
    if size > 4 and not store:
        for d in (1, 2):
            if all(lanes[i] is None or lanes[i ^ d] is None or lanes[i] == lanes[i ^ d] for i in range(32)):
                per *= 2
                break
    total = 0
    for start in range(0, 32, per):
        banks: dict[int, set[int]] = {}
        for address in lanes[start : start + per]:
            if address is not None:
                for word in range(address // 4, (address + size - 1) // 4 + 1):
                    banks.setdefault(word % 32, set()).add(word)
        total += max(map(len, banks.values()), default=0)
    asked = sum(a is not None for a in lanes) * size
    return total, min(total, -(-asked // 128))


def enumerate_block(
    block: tuple[int, int], loop: Loop, guard: Code | None, index: Code, size: int, store: bool
) -> tuple[int, int, int]:
    """Requests, wavefronts and ideal wavefronts of one block; lanes of a warp run their n-th iteration together."""
    threads = [{"x": x, "y": y} for y in range(block[1]) for x in range(block[0])]
    requests = wavefronts = ideal = 0
    for first in range(0, len(threads), 32):
        runs = [list(loop.values(t)) for t in threads[first : first + 32]]
        for i in range(max(map(len, runs))):
            lanes: list[int | None] = [None] * 32
            for lane, (thread, run) in enumerate(zip(threads[first : first + 32], runs, strict=True)):
                if i < len(run):
                    env = {**thread, "k": run[i]}
                    if guard is None or guard.value(env):
                        lanes[lane] = index.value(env) * size
            if any(a is not None for a in lanes):
                w, least = cost(lanes, size, store)
                requests, wavefronts, ideal = requests + 1, wavefronts + w, ideal + least
    return requests, wavefronts, ideal


def shared_access(facts: KernelFacts) -> Access | None:
    return next((a for a in facts.accesses if a.space == "shared"), None)


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(sorted(SIZES)),
    st.sampled_from(BLOCKS),
    loops,
    st.one_of(st.none(), conditions),
    indices,
    st.booleans(),
)
def test_counts_equal_plain_enumeration(
    element: str, block: tuple[int, int], loop: Loop, guard: Code | None, index: Code, store: bool
) -> None:
    test = f"if ({guard.text}) " if guard else ""
    action = f"s[{index.text}] = in[0];" if store else f"out[x] = s[{index.text}];"
    code = f"""
__global__ void probe(const {element}* in, {element}* out) {{
    __shared__ volatile {element} s[1000];  // volatile: iterations are not joined into vectors
    const int x = threadIdx.x, y = threadIdx.y;
    {loop.head}
        {test}{action}
}}
void run(const {element}* in, {element}* out) {{ probe<<<1, dim3({block[0]}, {block[1]})>>>(in, out); }}
"""
    requests, wavefronts, ideal = enumerate_block(block, loop, guard, index, SIZES[element], store)
    access = shared_access(analyse(code)[0])
    if not requests:
        assert access is None or access.wavefronts is None, code
        return
    assert access is not None and access.wavefronts is not None and access.ideal_wavefronts is not None, code
    if access.certainty is Certainty.EXACT:
        assert access.wavefronts == pytest.approx(wavefronts / requests), code
        assert access.ideal_wavefronts == pytest.approx(ideal / requests), code
        assert access.requests == pytest.approx(requests), code
    else:
        assert loop is not ONCE, f"a kernel without unknowns has exact counts: {code}"
