"""Lowering of functions, seen through the readable dump of the intermediate form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudalint.semantics import ir
from cudalint.semantics.dump import dump, dump_expr
from cudalint.semantics.lower import lower
from cudalint.semantics.program import Program, Unit
from cudalint.semantics.types import FLOAT, INT, UINT

Make = Callable[..., Unit]
Node = TypeVar("Node")


def lowered(unit: Unit, name: str = "", bindings: tuple[tuple[str, object], ...] = ()) -> ir.Function:
    """The first kernel of a file, or the function called `name`."""
    found = unit.functions_here(name)[0] if name else unit.kernels[0]
    return lower(ir.FunctionRef(found, bindings), unit.program)


def body(make: Make, statements: str, head: str = "", params: str = "float* a, int n") -> list[str]:
    """The lines of a kernel with these statements."""
    return dump(lowered(make(f"{head}\n__global__ void k({params}) {{ {statements} }}\n"))).splitlines()[1:]


def one(make: Make, statements: str, head: str = "", params: str = "float* a, int n") -> str:
    """The last line of a kernel with these statements."""
    return body(make, statements, head, params)[-1].strip()


def nodes(root: object, kind: type[Node]) -> Iterator[Node]:
    """Every node of a kind below `root`, in source order."""
    if isinstance(root, kind):
        yield root
    if isinstance(root, tuple):
        for part in root:
            yield from nodes(part, kind)
    elif isinstance(root, ir.Expr | ir.Stmt):
        for field in fields(root):
            yield from nodes(getattr(root, field.name), kind)


def spelled(unit: Unit, node: ir.Expr | ir.Stmt) -> str:
    """What stands in the file where a node is."""
    return unit.source.data[node.start : node.end].decode()


# ------------------------------------------------------------------ expressions


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a[n] = a[n + 1];", "([a + n * 4]:float = [a + (n + 1) * 4]:float)"),
        ("*(a + n) = 1;", "([a + n * 4]:float = 1.0)"),
        ("*a = n[a];", "([a]:float = [a + n * 4]:float)"),
        ("a[n] += 2.0f;", "([a + n * 4]:float =compound ([a + n * 4]:float + 2.0))"),
        ("a[n]++;", "([a + n * 4]:float =post ([a + n * 4]:float + 1))"),
        ("n <<= 2;", "(n =compound (n << 2))"),
        ("--n;", "(n =compound (n - 1))"),
        ("a += n;", "(a =compound a + n * 4)"),
        ("a--;", "(a =post a + -1 * 4)"),
        ("n = &a[n] - a;", "(n = (a + n * 4 ptrdiff a))"),
        ("n = a != nullptr && !n;", "(n = ((a != 0) && !n))"),
        ("n = ~n ^ -n;", "(n = (~n ^ -n))"),
        ("n = n ? 1 : 2;", "(n = (n ? 1 : 2))"),
        ("n = (1, n);", "(n = n)"),
        ("a[n] = n, n = 2;", "(([a + n * 4]:float = n) , (n = 2))"),
        ("n = (char)n;", "(n = (char)n)"),
        ("n = int(n);", "(n = n)"),
        ("n = static_cast<long long>(n);", "(n = (long long)n)"),
        ("n = *(const int*)a;", "(n = [(int*)a]:int)"),
        ("n = reinterpret_cast<int&>(a[2]);", "(n = [(int*)a + 2 * 4]:int)"),
        ("reinterpret_cast<float4*>(a)[n].y = 1;", "([(float4*)a + n * 16 .y(4)]:float = 1.0)"),
        ("a[n] = __ldg(a + n);", "([a + n * 4]:float = [a + n * 4]:float __ldg)"),
        ("__stcs(a + n, 1.f);", "([a + n * 4]:float = 1.0)"),
        ("n = min(n, 3) + max(1, 2);", "(n = ((n min 3) + 2))"),
        ("n = __mul24(n, 3);", "(n = (n * 3))"),
        ("a[0] = fminf(a[1], 2.f);", "([a]:float = fminf([a + 1 * 4]:float, 2.0))"),
        ("n = sizeof(float4) + sizeof(n) + sizeof a[0];", "(n = 24)"),
        ("n = threadIdx.x + blockIdx.y * blockDim.z - gridDim.x % warpSize;", None),
        ("n = 'a' + 0x10u;", "(n = 113)"),
        ("a[0] = 7 / 2 * 1.5f;", "([a]:float = 4.5)"),
        ("n = 1 / 0;", "(n = (1 / 0))"),
        ("n = (n) - 1;", "(n = (n - 1))"),
        ("n = (real)-1;", "(n = -1)"),
        ("if (n < 3 && n > (2)) n = 1;", "(n = 1)"),
    ],
)
def test_expressions(unit: Make, source: str, expected: str | None) -> None:
    expected = expected or "(n = ((%tid.x + (%ctaid.y * %ntid.z)) - (%nctaid.x % %warpsize)))"
    assert one(unit, source, "typedef float real;") == expected


def test_a_template_of_a_variable_is_two_comparisons(unit: Make) -> None:
    assert body(unit, "if (n < 3 && n > (2) + 1 && a) n = 1;")[0] == "  if (((n < 3) && (n > 3)) && a)"


def test_the_value_of_a_constant_that_is_converted_wraps(unit: Make) -> None:
    assert one(unit, "unsigned char c = 300;") == "unsigned char c = 44"
    assert one(unit, "int i = 4294967295u;") == "int i = -1"
    assert one(unit, "int i = 2.9f;") == "int i = 2"


def test_types_of_arithmetic(unit: Make) -> None:
    function = lowered(
        unit(
            "__global__ void k(short s, unsigned u, long long l, float f, double d, int* p) {"
            " s + s; s + u; u + l; l + f; f + d; s < u; *p; }"
        )
    )
    kinds = [(s.expr.type.kind, s.expr.type.size) for s in function.body.body if isinstance(s, ir.Evaluate)]
    assert kinds == [("int", 4), ("uint", 4), ("int", 8), ("float", 4), ("float", 8), ("bool", 1), ("int", 4)]


def test_side_effects_of_an_updated_place_happen_once(unit: Make) -> None:
    assert one(unit, "a[n++] += 1.f;") == (
        "(((address) = a + (n =post (n + 1)) * 4) , ([(address)]:float =compound ([(address)]:float + 1.0)))"
    )


def test_an_access_stands_on_its_subscript(unit: Make) -> None:
    made = unit("__global__ void k(float* a, int n) { a[n] = 2 * a[n + 1]\n + *(a + 3); a[2] += 1; }")
    function = lowered(made)
    assert [spelled(made, node) for node in nodes(function.body, ir.Load)] == ["a[n + 1]", "*(a + 3)", "a[2]"]
    assert [spelled(made, node) for node in nodes(function.body, ir.Assign)] == ["a[n]", "a[2]"]


# -------------------------------------------------------------- names and memory


def test_inner_names_hide_outer_ones(unit: Make) -> None:
    function = lowered(
        unit("__global__ void k(int n) { int x = 1; { int x = 2; n = x; } n = x; for (int x = 0; x < n; ++x) n = x; }")
    )
    outer, inner, counter = [d.symbol for d in nodes(function.body, ir.Declare)]
    used = [e.value.symbol for e in nodes(function.body, ir.Assign) if isinstance(e.value, ir.Var) and not e.compound]
    assert used == [inner, outer, counter]
    assert len({outer, inner, counter}) == 3


def test_locals_hide_constants_of_the_file(unit: Make) -> None:
    assert one(unit, "int N = n; n = N;", "const int N = 16;") == "(n = N)"
    assert one(unit, "{ int N = n; } n = N;", "const int N = 16;") == "(n = 16)"


def test_where_variables_live(unit: Make) -> None:
    source = """
    __constant__ float table[4];
    __device__ int counter;
    struct P { int x; };
    __global__ void k(float* p, P s) {
        extern __shared__ float dynamic[];
        __shared__ float tile[8][9];
        int scalar = 0, taken = 0, list[3];
        P object;
        int* q = &taken;
        p[0] = table[1] + counter;
    }
    """
    function = lowered(unit(source))
    spaces = {d.symbol.name: d.symbol.space for d in nodes(function.body, ir.Declare)}
    assert spaces == {
        "dynamic": "shared",
        "tile": "shared",
        "scalar": "register",
        "taken": "local",
        "list": "local",
        "object": "local",
        "q": "register",
    }
    assert [(s.name, s.space, s.parameter) for s in function.params] == [("p", "register", True), ("s", "local", True)]
    assert {b.symbol.name: b.symbol.space for b in nodes(function.body, ir.Base)} == {
        "taken": "local",
        "table": "constant",
        "counter": "global",
    }
    dynamic, tile = function.shared
    assert dynamic.dynamic and not tile.dynamic
    assert [source[start:end] for start, end in tile.dims] == ["8", "9"]
    assert (tile.type.size, tile.type.element and tile.type.element.count) == (288, 9)


def test_the_same_global_is_one_symbol_in_every_function(unit: Make) -> None:
    made = unit("__constant__ int t[4]; __device__ int f() { return t[0]; } __global__ void k(int* o) { o[0] = t[1] + t[2]; }")
    symbols = {b.symbol for name in ("f", "k") for b in nodes(lowered(made, name).body, ir.Base)}
    assert len(symbols) == 1


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("__shared__ float s[4][5]; s[n][2] = 1;", "([@s + n * 20 + 2 * 4]:float = 1.0)"),
        ("float r[4]; float* p = r; p[n] = *r;", "([p + n * 4]:float = [@r]:float)"),
        ("__shared__ float s[4][5]; float* row = s[n];", "float* row = @s + n * 20"),
        ("__shared__ float s[4][5]; float (*p)[5] = s; p[n][1] = 1;", "([p + n * 20 + 1 * 4]:float = 1.0)"),
        ("__shared__ float s[4][5]; auto& row = s[n]; row[1] = 1;", "([(float*)row + 1 * 4]:float = 1.0)"),
        ("float& x = a[n]; x += 1;", "([x]:float =compound ([x]:float + 1))"),
        ("int& m = n; m = 2;", "(n = 2)"),
        ("const float& x = a[n] * 2; a[0] = x;", "([a]:float = x)"),
        ("float4 v = make_float4(1, 2, n, 4); v.z = v.x;", "([@v .z(8)]:float = [@v .x(0)]:float)"),
        ("a[0] = make_float2(n, 1).x;", "([a]:float = n)"),
        ("float4* p = (float4*)a; float4 v = p[n];", "local float4 v = [p + n * 16]:float4"),
        ("float4* p = (float4*)a; p->w = 1;", "([p .w(12)]:float = 1.0)"),
        ("dim3 g(n, 2); n = g.z;", "(n = [@g .z(8)]:unsigned int)"),
        ("float r[] = {1, 2, 3};", "local float[3] r = float[3]{1.0, 2.0, 3.0}"),
        ("int c = n, *q = &c; *q = 1;", "([q]:int = 1)"),
        ("auto x = a[0]; auto* p = a; p[1] = x;", "([p + 1 * 4]:float = x)"),
    ],
)
def test_memory(unit: Make, source: str, expected: str) -> None:
    assert one(unit, source) == expected


def test_structs(unit: Make) -> None:
    head = "struct Q { float w[2]; int k; }; struct P { int x; Q q[3]; };"
    assert one(unit, "p->q[n].w[1] = p[2].x;", head, "P* p, int n") == (
        "([p .q(4) + n * 12 .w(0) + 1 * 4]:float = [p + 2 * 40 .x(0)]:int)"
    )
    assert one(unit, "Q v = {{1, 2}, 3};", head) == "local Q v = Q{float[2]{1.0, 2.0}, 3}"
    assert one(unit, "Q v{.k = n};", head) == "local Q v = Q{float[2]{}, n}"
    assert one(unit, "Q v = *p;", head, "Q* p, int n") == "local Q v = [p]:Q"
    assert one(unit, "auto [x, y] = *p; n = y;", "struct P { int a, b; };", "P* p, int n") == "(n = [p .b(4)]:int)"


def test_constants_of_the_block_are_folded(unit: Make) -> None:
    assert body(unit, "const int K = 4; constexpr int M = K * 2; float r[M]; n = M + K;")[2:] == [
        "  local float[8] r",
        "  (n = 12)",
    ]
    assert one(unit, "using T = double; typedef T U; U u = U(n);") == "double u = (double)n"
    assert one(unit, "enum { A = 3, B }; n = B;") == "(n = 4)"


def test_unbound_template_parameters_are_one_unknown(unit: Make) -> None:
    function = lowered(unit("template <int N> __global__ void k(int* o) { o[N] = N; }"))
    assert len({v.symbol for v in nodes(function.body, ir.Var) if v.symbol.name == "N"}) == 1


def test_missing_template_arguments_take_their_defaults(unit: Make) -> None:
    function = lowered(unit("template <int N, int M = N * 2> __global__ void k(int* o) { o[0] = M; }"), bindings=(("N", 8),))
    assert dump(function).splitlines()[1:] == ["  ([o]:int = 16)"]


def test_bound_template_parameters_are_constants(unit: Make) -> None:
    made = unit("template <int N, typename T> __global__ void k(T* o) { __shared__ T s[N][N + 1]; o[N] = s[1][0]; }")
    function = lowered(made, bindings=(("N", 32), ("T", FLOAT)))
    assert dump(function).splitlines()[1:] == ["  shared float[32][33] s", "  ([o + 32 * 4]:float = [@s + 1 * 132]:float)"]


# ------------------------------------------------------------------- statements


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("if (n) n = 1; else n = 2;", ["if n", "  (n = 1)", "else", "  (n = 2)"]),
        ("if (true) n = 1; else n = 2;", ["{", "  (n = 1)", "}"]),
        ("if (int m = n) n = m;", ["{", "  int m = n", "  if m", "    (n = m)", "}"]),
        ("for (int i = 0; i < n; i += 2) n = i;", ["int i = 0", "for (i < n); (i =compound (i + 2))", "  (n = i)"]),
        ("for (;;) break;", ["for", "  break"]),
        (
            "while (n > 0) { if (n == 3) continue; n--; }",
            ["while (n > 0)", "  if (n == 3)", "    continue", "  (n =post (n - 1))"],
        ),
        ("while (1) return;", ["while", "  return"]),
        ("do n++; while (n < 3);", ["do (n < 3)", "  (n =post (n + 1))"]),
        ("do { n = 1; } while (0);", ["{", "  (n = 1)", "}"]),
        ("do { if (n) break; n = 1; } while (0);", ["do 0", "  if n", "    break", "  (n = 1)"]),
        (
            "switch (n) { case 1: case 2: n = 3; break; default: n = 4; }",
            ["switch n", "case 1, 2", "  (n = 3)", "  break", "default", "  (n = 4)"],
        ),
        (
            "float r[3]; for (float& x : r) x = 0;",
            [
                "local float[3] r",
                "int (index) = 0",
                "for ((index) < 3); ((index) =post ((index) + 1))",
                "  float* x = @r + (index) * 4",
                "  ([x]:float = 0.0)",
            ],
        ),
        ("goto out; out: n = 1;", ["unknown<goto_statement>()", "(n = 1)"]),
        (";; static_assert(sizeof(int) == 4); { }", ["{", "}"]),
    ],
)
def test_statements(unit: Make, source: str, expected: list[str]) -> None:
    assert [line[2:] for line in body(unit, source)] == expected


def test_if_constexpr_keeps_one_arm(unit: Make) -> None:
    made = unit("template <int N> __global__ void k(int* o) { if constexpr (N > 8) o[0] = 1; else o[1] = 2; }")
    assert dump(lowered(made, bindings=(("N", 4),))).splitlines()[1:] == ["  {", "    ([o + 1 * 4]:int = 2)", "  }"]


def test_inactive_arms_of_if_are_left_out(unit: Make) -> None:
    source = "\n#if __CUDA_ARCH__ >= 300\n n = 1;\n#else\n n = 2;\n#endif\n#ifdef NO_SUCH\n n = 3;\n#endif\n"
    assert body(unit, source) == ["  (n = 1)"]


@pytest.mark.parametrize(
    ("pragma", "factor"),
    [("", None), ("#pragma unroll", 0), ("#pragma unroll 4", 4), ("#pragma unroll (K)", 8), ("#pragma nounroll", 1)],
)
def test_unroll(unit: Make, pragma: str, factor: int | None) -> None:
    function = lowered(unit(f"#define K 8\n__global__ void k(int n) {{\n{pragma}\nfor (int i = 0; i < n; ++i) n--;\n}}"))
    assert [loop.unroll for loop in nodes(function.body, ir.Loop)] == [factor]


def test_inline_assembly(unit: Make) -> None:
    function = lowered(
        unit(r"""__global__ void k(float* a, int n) {
        asm volatile("mov.u32 %0, %1;\n" "x" : "=r"(n), "+f"(a[1]) : "r"(n + 1) : "memory");
    }""")
    )
    (asm,) = nodes(function.body, ir.Asm)
    assert asm.text == "mov.u32 %0, %1;\nx"
    assert [dump_expr(e) for e in asm.outputs] == ["n", "a + 1 * 4"]
    assert [dump_expr(e) for e in asm.inputs] == ["[a + 1 * 4]:float", "(n + 1)"]


# ----------------------------------------------------------------------- macros


def test_macros_in_expressions(unit: Make) -> None:
    head = "#define IDX(i, j) ((i) * ld + (j))\n#define VEC(p) (reinterpret_cast<float4*>(&(p))[0])\n#define TX threadIdx.x"
    head += "\n#define N 4"
    made = unit(f"{head}\n__global__ void k(float* a, int ld) {{ a[IDX(TX, N)] = 1;\n VEC(a[N]).x = 2; }}")
    function = lowered(made)
    assert dump(function).splitlines()[1:] == [
        "  ([a + ((%tid.x * ld) + 4) * 4]:float = 1.0)",
        "  ([(float4*)a + 4 * 4 .x(0)]:float = 2.0)",
    ]
    assert [spelled(made, e) for e in nodes(function.body, ir.Assign)] == ["a[IDX(TX, N)]", "VEC(a[N]).x"]
    (special,) = nodes(function.body, ir.Special)
    assert spelled(made, special) == "IDX(TX, N)"


def test_a_macro_wins_over_a_variable_of_its_name(unit: Make) -> None:
    assert one(unit, "a(1, 2) = 3;", "#define a(i, j) a[(i) * 8 + (j)]") == "([a + 10 * 4]:float = 3.0)"


def test_macros_as_statements(unit: Make) -> None:
    head = (
        "#define SYNC() do { __syncthreads(); } while (0)\n#define LOAD(x) float x = a[n]; x *= 2\n#define STOP __syncthreads()"
    )
    assert [line.strip() for line in body(unit, "SYNC(); LOAD(v); a[0] = v; STOP;", head)] == [
        "{",
        "__syncthreads()",
        "}",
        "float v = [a + n * 4]:float",
        "(v =compound (v * 2))",
        "([a]:float = v)",
        "__syncthreads()",
    ]


@pytest.mark.parametrize("use", ["LOOP(i, n) { a[i] = 1; }", "LOOP(i, n * 2) { a[i] = 1; }"])
def test_loop_macros_take_the_body_behind_them(unit: Make, use: str) -> None:
    head = "#define LOOP(i, m) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (m); i += blockDim.x * gridDim.x)"
    made = unit(f"{head}\n__global__ void k(float* a, int n) {{ {use} }}")
    function = lowered(made)
    lines = [line.strip() for line in dump(function).splitlines()[1:]]
    bound = "(n * 2)" if "2" in use else "n"
    assert lines[0] == "int i = ((%ctaid.x * %ntid.x) + %tid.x)"
    assert lines[1] == f"for (i < {bound}); (i =compound (i + (%ntid.x * %nctaid.x)))"
    assert "([a + i * 4]:float = 1.0)" in lines
    (store,) = [e for e in nodes(function.body, ir.Assign) if e.memory]
    assert spelled(made, store) == "a[i]"


def test_well_known_loop_macros_need_no_definition(unit: Make) -> None:
    lines = body(unit, "CUDA_KERNEL_LOOP(i, n) { a[i] = 1; }")
    assert lines[1] == "  for (i < n); (i =compound (i + (%ntid.x * %nctaid.x)))"


def test_statement_expressions(unit: Make) -> None:
    function = lowered(
        unit("#define MAX(x, y) ({ __typeof__(x) _x = (x); _x > y ? _x : y; })\n__global__ void k(int n) { n = MAX(n, 3); }")
    )
    (call,) = nodes(function.body, ir.Call)
    assert isinstance(call.function, ir.Lambda)
    assert [type(s) for s in call.function.body.body] == [ir.Declare, ir.Return]


def test_macros_that_double_without_end_are_not_expanded(unit: Make) -> None:
    doubling = "\n".join(f"#define D{i} D{i - 1} + D{i - 1}" for i in range(1, 41))
    function = lowered(unit(f"#define D0 n\n{doubling}\n__global__ void k(int n) {{ n = D40; }}"))
    assert [e.text for e in nodes(function.body, ir.Unknown)] == ["macro too large"]


# ------------------------------------------------------------------------- calls


def test_device_functions_are_resolved(unit: Make) -> None:
    head = """
    __device__ float f(float x) { return x; }
    __device__ int f(int x) { return x; }
    template <int N, typename T> __device__ T g(const T* p, int i = N) { return p[i]; }
    namespace ns { struct S { static __device__ int twice(int x) { return 2 * x; } }; }
    """
    made = unit(f"{head} __global__ void k(float* a, int n) {{ f(1.f); f(n); g<3>(a); ns::S::twice(n); }}")
    calls = list(nodes(lowered(made).body, ir.Call))
    assert [c.type.name for c in calls] == ["float", "int", "float", "int"]
    assert all(isinstance(c.function, ir.FunctionRef) for c in calls)
    generic = calls[2].function
    assert isinstance(generic, ir.FunctionRef)
    assert generic.bindings == (("N", 3), ("T", FLOAT))
    assert [dump_expr(a) for a in calls[2].args] == ["a", "3"]


def test_reference_parameters_take_pointers(unit: Make) -> None:
    head = "__device__ void add(float& r, const float& v, const float4& w) { r += v + w.y; }"
    made = unit(
        f"{head} __global__ void k(float* a, float4* v) {{ float x = 0;"
        " add(x, a[1], v[2]); add(a[3], x, make_float4(1, 2, 3, 4)); }"
    )
    lines = dump(lowered(made)).splitlines()[1:]
    assert lines[0] == "  local float x = 0.0"
    assert lines[1] == "  !add(@x, [a + 1 * 4]:float, v + 2 * 16)"
    assert lines[2].startswith(
        "  !add(a + 3 * 4, [@x]:float, (([@(temporary 1)]:float4 = float4{1.0, 2.0, 3.0, 4.0}) , @(temporary 1)))"
    )
    assert dump(lowered(made, "add")).splitlines() == [
        "add(float* r, float v, float4* w) -> void",
        "  ([r]:float =compound ([r]:float + (v + [w .y(4)]:float)))",
    ]


def test_methods_operators_and_constructors(unit: Make) -> None:
    head = """
    struct V {
        float x, y;
        __device__ V(float q) : x(q), y(q * 2) {}
        __device__ float sum() const { return x + y; }
        __device__ float& at(int i) { return (&x)[i]; }
        __device__ float operator[](int i) const { return i ? y : x; }
        __device__ V operator+(const V& o) const { return V(x + o.x); }
        __device__ float operator()(float z) const { return z * x; }
    };
    """
    made = unit(
        f"{head} __global__ void k(V* p, float* a) {{ a[0] = p->sum() + p[1][3] + (*p)(2); p->at(1) = 2; V v(3.f), w = v + *p; }}"
    )
    assert [line.strip() for line in dump(lowered(made)).splitlines()[1:]] == [
        "([a]:float = ((!V::sum(p; ) + !V::operator[](p + 1 * 8; 3)) + !V::operator()(p; 2.0)))",
        "([!V::at(p; 1)]:float = 2.0)",
        "local V v",
        "!V::V(@v; 3.0)",
        "local V w = !V::operator+(@v; p)",
    ]
    functions = {c.name: c.function for c in nodes(lowered(made).body, ir.Call)}
    constructor = functions["V"]
    assert isinstance(constructor, ir.FunctionRef)
    assert dump(lower(constructor, made.program)).splitlines()[1:] == [
        "  ([this .x(0)]:float = q)",
        "  ([this .y(4)]:float = (q * 2))",
    ]
    summing = functions["sum"]
    assert isinstance(summing, ir.FunctionRef)
    assert dump(lower(summing, made.program)).splitlines()[1:] == ["  return ([this .x(0)]:float + [this .y(4)]:float)"]
    place = functions["at"]
    assert isinstance(place, ir.FunctionRef)
    assert dump(lower(place, made.program)).splitlines()[1:] == ["  return this .x(0) + i * 4"]


def test_conversion_operators(unit: Make) -> None:
    head = """template <typename T> struct SharedMemory {
        __device__ operator T*() { extern __shared__ int memory[]; return (T*)memory; }
    };"""
    function = lowered(unit(f"{head} __global__ void k() {{ float* s = SharedMemory<float>(); s[1] = 2; }}"))
    (call,) = nodes(function.body, ir.Call)
    assert (call.name, call.type.name) == ("operator T", "float*")


def test_lambdas(unit: Make) -> None:
    made = unit("__global__ void k(float* a, int n) { auto f = [&](int i, auto x) { return a[i] * x; }; a[0] = f(n, 2.0); }")
    function = lowered(made)
    (call,) = nodes(function.body, ir.Call)
    assert isinstance(call.function, ir.Lambda)
    assert [p.type.name for p in call.function.params] == ["int", "double"]
    assert call.type.name == "double"
    (load,) = nodes(call.function.body, ir.Load)
    assert dump_expr(load) == "[a + i * 4]:float"


def test_functions_and_lambdas_as_arguments(unit: Make) -> None:
    head = "template <typename F> __device__ float apply(F f, float x) { return f(x); }"
    head += "__device__ float twice(float x) { return 2 * x; }"
    made = unit(
        f"{head} __global__ void k(float* a) {{ a[0] = apply(twice, 1.f); a[1] = apply([](float z) {{ return z + 1; }}, 2.f); }}"
    )
    first, second = (c.function for c in nodes(lowered(made).body, ir.Call))
    assert isinstance(first, ir.FunctionRef) and isinstance(second, ir.FunctionRef)
    (inner,) = nodes(lower(first, made.program).body, ir.Call)
    assert isinstance(inner.function, ir.FunctionRef)
    assert dump(lower(inner.function, made.program)).splitlines()[1:] == ["  return (2 * x)"]
    (inner,) = nodes(lower(second, made.program).body, ir.Call)
    assert isinstance(inner.function, ir.Lambda)
    assert inner.type is FLOAT


def test_unknown_functions_keep_name_qualifier_and_arguments(unit: Make) -> None:
    made = unit(
        "__global__ void k(float* a, int n) { atomicAdd(&a[n], 1.f); std::foo<int>(n); __shfl_xor_sync(~0u, n, 1);"
        " sqrt(a[0]); q.run(n); }"
    )
    calls = list(nodes(lowered(made).body, ir.Call))
    assert [(c.name, c.qualifier, c.function) for c in calls] == [
        ("atomicAdd", "", None),
        ("foo", "std", None),
        ("__shfl_xor_sync", "", None),
        ("sqrt", "", None),
        ("run", "", None),
    ]
    assert [c.type.name for c in calls[:4]] == ["float", "?", "int", "float"]
    assert dump_expr(calls[0].args[0]) == "a + n * 4"


def test_launches_from_a_kernel_run_nothing_here(unit: Make) -> None:
    function = lowered(unit("__global__ void k(int n) { k<<<1, 32>>>(n - 1); }"))
    (call,) = nodes(function.body, ir.Call)
    assert (call.function, call.qualifier) == (None, "<<<>>>")


RANK = "(%tid.x + (%ntid.x * (%tid.y + (%ntid.y * %tid.z))))"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("n = block.thread_rank();", f"(n = {RANK})"),
        ("n = block.size();", "(n = ((%ntid.x * %ntid.y) * %ntid.z))"),
        ("n = block.thread_index().y + block.group_index().x;", "(n = (%tid.y + %ctaid.x))"),
        ("n = warp.thread_rank();", f"(n = ({RANK} % 32))"),
        ("n = warp.meta_group_rank();", f"(n = ({RANK} / 32))"),
        ("n = warp.size();", "(n = 32)"),
        ("auto four = cg::tiled_partition<4>(warp); n = four.meta_group_rank();", f"(n = (({RANK} % 32) / 4))"),
        ("auto g = cg::coalesced_threads(); n = g.thread_rank();", "(n = cooperative_groups::coalesced_group::thread_rank())"),
        ("warp.sync();", "cooperative_groups::thread_block_tile<32>::sync()"),
        ("cg::sync(block);", "cg::sync(block)"),
    ],
)
def test_cooperative_groups(unit: Make, source: str, expected: str) -> None:
    groups = "cg::thread_block block = cg::this_thread_block(); cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);"
    assert one(unit, f"{groups} {source}", "namespace cg = cooperative_groups;") == expected


def test_groups_are_known_in_the_functions_they_are_passed_to(unit: Make) -> None:
    head = """namespace cg = cooperative_groups;
    template <int N> __device__ int rank(cg::thread_block_tile<N>& tile) { return tile.thread_rank(); }
    template <typename G> __device__ int any(const G& group) { return group.size(); }"""
    made = unit(
        f"{head} __global__ void k(int* o) {{ auto t = cg::tiled_partition<8>(cg::this_thread_block());"
        " o[0] = rank(t) + any(t); }"
    )
    first, second = (c.function for c in nodes(lowered(made).body, ir.Call) if isinstance(c.function, ir.FunctionRef))
    assert dump(lower(first, made.program)).splitlines()[1:] == [f"  return ({RANK} % 8)"]
    assert dump(lower(second, made.program)).splitlines()[1:] == ["  return 8"]


# -------------------------------------------------------------------- robustness


def test_a_statement_with_a_syntax_error_is_skipped(unit: Make) -> None:
    function = lowered(unit("__global__ void k(float* a, int n) { a[0] = 1; n = = 2 ++; a[1] = 2; }"))
    assert function.has_errors
    assert [dump_expr(e) for e in nodes(function.body, ir.Assign)] == ["([a]:float = 1.0)", "([a + 1 * 4]:float = 2.0)"]


@pytest.mark.parametrize(
    "source",
    [
        "n = " + "(" * 5000 + "n" + ")" * 5000 + ";",
        "n = " + "min(1, " * 2000 + "n" + ")" * 2000 + ";",
        "n = " + "s[" * 2000 + "n" + "]" * 2000 + ";",
        "n = " + "n ? 1 : " * 2000 + "0;",
        "n = n" + " + n" * 5000 + ";",
        "{" * 2000 + "n = 1;" + "}" * 2000,
        "if (n) " * 2000 + "n = 1;",
        "if (n) n = 1; " + "else if (n == 2) n = 3; " * 2000,
    ],
)
def test_deep_nesting_ends_in_unknown(unit: Make, source: str) -> None:
    function = lowered(unit(f"__global__ void k(int* s, int n) {{ {source} s[0] = 1; }}"))
    last = function.body.body[-1]
    assert isinstance(last, ir.Evaluate)
    assert dump_expr(last.expr) == "([s]:int = 1)"


def test_all_operands_of_an_endless_sum_are_evaluated(unit: Make) -> None:
    function = lowered(unit("__global__ void k(int* s, int n) { n = s[0]" + "".join(f" + s[{i}]" for i in range(1, 500)) + "; }"))
    assert sum(1 for _ in nodes(function.body, ir.Load)) == 500


def test_recursive_functions_have_a_type(unit: Make) -> None:
    function = lowered(unit("__device__ auto f(int n) { return n ? f(n - 1) : 1; } __global__ void k(int n) { n = f(n); }"))
    (call,) = nodes(function.body, ir.Call)
    assert isinstance(call.function, ir.FunctionRef)


def test_a_function_is_lowered_once(unit: Make) -> None:
    made = unit("__global__ void k() {}")
    assert lowered(made) is lowered(made)


WORDS = [
    "a",
    "n",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    ";",
    "=",
    "+",
    "*",
    "&",
    "<",
    ">",
    ",",
    "1",
    "int ",
    "if",
    "for",
    "float4 ",
    "T",
    "::",
    ".x",
    "->",
    "?",
    ":",
]


@given(st.lists(st.sampled_from(WORDS), max_size=40))
@settings(max_examples=150, deadline=None)
def test_nothing_makes_lowering_raise(tokens: list[str]) -> None:
    from cudalint.source.text import SourceFile

    text = "template <typename T> __global__ void k(float* a, int n) { " + " ".join(tokens) + " }\n"
    program = Program("/nonexistent")
    unit = program.add(SourceFile("/nonexistent/k.cu", text.encode()))
    for kernel in unit.kernels:
        dump(lower(ir.FunctionRef(kernel), program))


@given(st.integers(-1000, 1000), st.integers(-1000, 1000), st.sampled_from("+-*/%&|^"))
@settings(max_examples=60, deadline=None)
def test_folding_is_what_the_device_computes(left: int, right: int, op: str) -> None:
    from cudalint.semantics.lowering import values

    expr = values.binary(op, ir.Const(0, 0, INT, left), ir.Const(0, 0, INT, right), 0, 0)
    if op in "/%" and right == 0:
        assert isinstance(expr, ir.Binary)
        return
    assert isinstance(expr, ir.Const)
    truncated = int(left / right) if right else 0
    expected = {
        "+": left + right,
        "-": left - right,
        "*": left * right,
        "/": truncated,
        "%": left - truncated * right,
        "&": left & right,
        "|": left | right,
        "^": left ^ right,
    }[op]
    assert expr.value == expected


def test_unsigned_constants_wrap() -> None:
    from cudalint.semantics.lowering import values

    expr = values.binary("-", ir.Const(0, 0, UINT, 1), ir.Const(0, 0, INT, 2), 0, 0)
    assert isinstance(expr, ir.Const)
    assert (expr.value, expr.type) == (2**32 - 1, UINT)
