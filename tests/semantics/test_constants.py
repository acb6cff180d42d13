"""Constant expressions by C's rules, and definitions that have no value."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalint.semantics.constants import evaluate, evaluate_text, evaluate_typed
from cudalint.semantics.interpret import UNSET
from cudalint.semantics.program import Program, Unit
from cudalint.semantics.scope import Scope, scope_of
from cudalint.semantics.types import FLOAT
from cudalint.source.text import SourceFile
from cudalint.syntax.tree import parse_fragment

Make = Callable[..., Unit]


def empty() -> Unit:
    return Program("/nonexistent").add(SourceFile("/nonexistent/a.cu", b""))


EMPTY = empty()


def value(text: str, unit: Unit = EMPTY) -> int | float | None:
    return evaluate_text(text, unit.scope)


# ------------------------------------------------------------------------ expressions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7 / 2.0", 3.5),
        ("1 << 4 | 3", 19),
        ("1 << 31", -(2**31)),
        ("1u << 31", 2**31),
        ("1LL << 40", 2**40),
        ("~0", -1),
        ("~0u", 2**32 - 1),
        ("5u - 6", 2**32 - 1),
        ("-1 < 0u", 0),
        ("(unsigned char)300", 44),
        ("(char)200", -56),
        ("(short)70000", 4464),
        ("int(2.9) + static_cast<int>(-2.9)", 0),
        ("(bool)17 + true", 2),
        ("float(1) / 2", 0.5),
        ("(1, 2)", 2),
        ("3 > 2 ? 10 : 1 / 0", 10),
        ("0 && 1 / 0", 0),
        ("1 || 1 / 0", 1),
        ("!5 + !0", 1),
        ("not 0 and (2 or 0)", 1),
        ("0x1F + 017 + 0b101", 51),
        ("1'000'000", 1000000),
        ("'a' + '\\n' + '\\x41' + '\\0'", 97 + 10 + 65),
        ("2.5f * 4", 10.0),
        ("1e3", 1000.0),
        ("0x1p4", 16.0),
        ("sizeof(double) + sizeof(float4) + sizeof(int3)", 36),
        ("sizeof(unsigned long long int)", 8),
        ("sizeof(char[13]) + sizeof(float*)", 21),
        ("alignof(float4) + alignof(int3)", 20),
        ("sizeof(1.0f) + sizeof(1.0) + sizeof('a') + sizeof(1LL)", 21),
        ("min(3, 4) + std::max(2, 9) + abs(-5)", 17),
        ("std::max({1, 7, 3})", 7),
        ("std::min<long>(3, 4)", 3),
        ("__builtin_ctz(40) + __popc(255) + __clz(1)", 3 + 8 + 31),
        ("sqrtf(16.0f) + pow(2, 10)", 1028.0),
        ("(int)ceil(1000 / 256.0)", 4),
        ("std::numeric_limits<int>::max()", 2**31 - 1),
        ("std::numeric_limits<unsigned char>::max()", 255),
        ("std::numeric_limits<float>::digits", 24),
        ("std::is_same_v<int, float> + std::is_same<int, int>::value", 1),
        ("sizeof(std::conditional_t<(1 > 2), char, double>)", 8),
        ("sizeof(std::array<int, 5>)", 20),
        ("INT_MAX", 2**31 - 1),
        ("std::integral_constant<int, 7>::value", 7),
        ("int{3} + unsigned{4}", 7),
        ("cuda::ceil_div(1000, 256)", 4),
    ],
)
def test_value(text: str, expected: float) -> None:
    found = value(text)
    assert found == expected
    assert isinstance(found, float) == isinstance(expected, float)


@pytest.mark.parametrize(
    "text",
    [
        "1 / 0",
        "1 % 0",
        "1.0 / 0",
        "1 << 32",
        "1 << -1",
        "2147483647 + 1",
        "INT_MIN / -1",
        "unknown",
        "unknown(3)",
        "Unknown<3>::value",
        "x.y",
        "(int)1e30",
        "99999999999999999999999",
        "3km",
        "08",
        "threadIdx.x",
        "",
        "1 +",
        "blockDim.x * 2",
        "1 ? unknown : 2",
        "&x",
    ],
)
def test_no_value(text: str) -> None:
    assert value(text) is None


@given(st.integers(-1000, 1000), st.integers(-1000, 1000))
def test_division_truncates(left: int, right: int) -> None:
    quotient, remainder = value(f"({left}) / ({right})"), value(f"({left}) % ({right})")
    if right == 0:
        assert quotient is None and remainder is None
    else:
        assert quotient == int(left / right)
        assert isinstance(quotient, int)
        assert quotient * right + (remainder or 0) == left


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.sampled_from("+-*&|^"))
def test_unsigned_arithmetic_wraps(left: int, right: int, operator: str) -> None:
    python = {"+": left + right, "-": left - right, "*": left * right, "&": left & right, "|": left | right, "^": left ^ right}
    assert value(f"{left}ull {operator} {right}ull") == python[operator] % 2**64


@given(
    st.recursive(
        st.integers(0, 50).map(str),
        lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map("({0[0]} {0[1]} {0[2]})".format),
    )
)
def test_sums_and_products(text: str) -> None:
    expected = eval(text)
    assert value(text) == (expected if abs(expected) < 2**31 else value(text))


def test_long_chains_and_deep_nesting() -> None:
    assert value("+".join(["1"] * 3000)) == 3000
    assert value("(" * 40 + "1" + ")" * 40) == 1
    assert value("(" * 5000 + "1" + ")" * 5000) is None
    assert value("!" * 3000 + "1") is None


def test_the_type_of_a_value() -> None:
    node, _, _ = parse_fragment(b"1.0f + 2", "expression")
    assert evaluate_typed(node, EMPTY.scope) == (3.0, FLOAT)


@given(st.text(alphabet="()<>[]{}+-*/%&|^~!?:.,; abcNT0123456789'\"sizeof", max_size=40))
def test_any_text_is_survived(text: str) -> None:
    value(text)


# ------------------------------------------------------------------------ definitions

DEFINITIONS = """
#define TILE 32
#define PITCH (TILE + 1)
#define BYTES (PITCH * TILE * sizeof(float))
#define DIV_UP(a, b) (((a) + (b) - 1) / (b))
#define REAL double
constexpr int A = TILE * 2;
static const unsigned B = A + 1u;
const int C(5), D{6};
const double HALF = 1 / 2;
int variable = 3;
__constant__ int device_constant = 4;
__constant__ constexpr int really_constant = 4;
extern const int elsewhere;
enum { E0, E1 = 5, E2, E3 = E1 << 2, E4 };
enum class Mode : unsigned char { fast = 3, slow };
namespace ns { constexpr int Z = 9; namespace inner { constexpr int W = Z + 1; enum { Q = W }; } }
namespace alias = ns::inner;
struct Config { static constexpr int kRows = 8; static constexpr int kCols = kRows * 2; enum { kSize = kRows * kCols };
                static const int outside; struct Inner { static constexpr int k = kRows + 1; }; };
const int Config::outside = 77;
struct Derived : Config { static constexpr int kTwice = 2 * kRows; };
const int table[2][3] = {{1, 2, 3}, {4, 5, 6}};
constexpr uint2 shape = {64, 8};
constexpr int log2_of(unsigned n) { return n <= 1 ? 0 : 1 + log2_of(n / 2); }
constexpr int sum_to(int n) { int s = 0; for (int i = 1; i <= n; ++i) { if (i % 2) continue; s += i; } return s; }
constexpr int loops(int n) { int r = 0; while (n >>= 1) ++r; do { r += 10; } while (false); return r; }
template <typename T> constexpr T largest(T a, T b) { return a > b ? a : b; }
template <int N> constexpr int twice() { return 2 * N; }
inline int blocks(int n, int threads = 256) { assert(n > 0); if (n == 0) { return 1; } else return DIV_UP(n, threads); }
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TILE", 32),
        ("BYTES", 33 * 32 * 4),
        ("DIV_UP(TILE + 1, 32)", 2),
        ("sizeof(REAL)", 8),
        ("A + B", 129),
        ("C * D", 30),
        ("HALF", 0.0),
        ("variable", None),
        ("device_constant", None),
        ("really_constant", 4),
        ("elsewhere", None),
        ("E0 + E2 + E4", 0 + 6 + 21),
        ("(int)Mode::slow", 4),
        ("slow", None),
        ("ns::Z + ns::inner::W + alias::Q", 29),
        ("Config::kSize", 128),
        ("Config::outside", 77),
        ("Config::Inner::k", 9),
        ("Derived::kTwice + Derived::kCols", 32),
        ("table[1][2] + table[0][TILE / 32]", 8),
        ("table[2][0]", None),
        ("shape.x / shape.y", 8),
        ("log2_of(1024)", 10),
        ("sum_to(10)", 30),
        ("loops(1000)", 19),
        ("largest(3, TILE) + largest<long>(1, 2)", 34),
        ("twice<TILE>()", 64),
        ("blocks(1000)", 4),
        ("blocks(1000, 10)", 100),
        ("blocks(variable)", None),
        ("sizeof(table) / sizeof(table[0])", 2),
        ("sizeof(Config) + sizeof(Mode)", 2),
    ],
)
def test_named_value(unit: Make, text: str, expected: float | None) -> None:
    assert value(text, unit(DEFINITIONS)) == expected


TEMPLATES = """
template <int N> struct Sum { static constexpr int value = N + Sum<N - 1>::value; };
template <> struct Sum<0> { enum { value = 0 }; };
template <int N> struct Fib { static const int value = Fib<N - 1>::value + Fib<N - 2>::value; };
template <> struct Fib<0> { static const int value = 0; };
template <> struct Fib<1> { static const int value = 1; };
template <typename T> struct Traits { static constexpr int k = sizeof(T); using type = T*; };
template <> struct Traits<float> { static constexpr int k = 100; using type = char; };
template <typename T> struct Traits<T*> { static constexpr int k = 200 + sizeof(T); using type = T; };
template <typename T, int N> struct Traits<T[N]> { static constexpr int k = N; using type = T; };
template <typename T> constexpr int bytes = sizeof(T);
template <> constexpr int bytes<int> = 77;
template <int R, int C = R * 2, typename T = float> struct Tile { static constexpr int rows = R, cols = C; T data[R][C]; };
template <typename T> using Square = Tile<4, 4, T>;
template <typename... Ts> struct Pack { static constexpr int count = sizeof...(Ts); };
template <template <typename> class F, typename T> struct Apply { static constexpr int k = F<T>::k; };
template <bool Wide> struct Vector { using type = float4; };
template <> struct Vector<false> { using type = float2; };
template <int N> struct Up { static const int value = Up<N + 1>::value; };
template <int N> struct Wild { static const int value = Wild<N + 1>::value + Wild<N + 2>::value; };
template <typename T> struct Grow { typedef typename Grow<Grow<T>>::type type; };
constexpr int P = Q; constexpr int Q = P;
enum { R = S, S = R };
#define V W
#define W V
constexpr int forever(int n) { return forever(n + 1); }
constexpr int spin() { while (true) {} }
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sum<10>::value", 55),
        ("Sum<2 + 1>::value", 6),
        ("Fib<20>::value", 6765),
        ("Traits<double>::k", 8),
        ("Traits<float>::k", 100),
        ("Traits<short*>::k", 202),
        ("Traits<int[7]>::k", 7),
        ("sizeof(Traits<int*>::type) + sizeof(Traits<float>::type)", 5),
        ("bytes<double> + bytes<int>", 85),
        ("Tile<3>::cols + Tile<3, 5>::cols", 11),
        ("sizeof(Tile<3, 5>) + sizeof(Square<double>)", 60 + 128),
        ("Pack<int, float, char>::count + Pack<>::count", 3),
        ("Apply<Traits, double>::k", 8),
        ("sizeof(Vector<(3 > 2)>::type) + sizeof(typename Vector<false>::type)", 24),
        ("Up<0>::value", None),
        ("Wild<0>::value", None),
        ("sizeof(Grow<int>::type)", None),
        ("P + Q", None),
        ("R + S", None),
        ("V", None),
        ("forever(0)", None),
        ("spin()", None),
        ("Sum<-1>::value", None),
    ],
)
def test_template_value(unit: Make, text: str, expected: int | None) -> None:
    assert value(text, unit(TEMPLATES)) == expected


def test_an_endless_question_spoils_no_other(unit: Make) -> None:
    found = unit(TEMPLATES)
    assert value("Wild<0>::value", found) is None
    assert value("Sum<10>::value", found) == 55
    assert value("Fib<20>::value", found) == 6765


# ------------------------------------------------------------------------ scopes


def test_macros_are_looked_up_at_a_place(unit: Make) -> None:
    text = "#define N 4\n// first\n#undef N\n#define N 8\n"
    found = unit(text)
    assert value("N", found) == 8
    assert evaluate_text("N", found.scope.at(text.index("//"))) == 4


def test_template_parameters_and_locals(unit: Make) -> None:
    found = unit("template <typename T, int N> __global__ void k(T* p) { int a[N * sizeof(T)]; }")
    (kernel,) = found.kernels
    scope = scope_of(kernel, {"T": FLOAT, "N": 16})
    assert evaluate_text("N * sizeof(T)", scope) == 64
    inner = scope.child()
    inner.declare("m", 3)
    inner.declare("N", UNSET)
    assert evaluate_text("m", inner) == 3
    assert evaluate_text("N", inner) is None
    assert evaluate_text("m", scope) is None


def test_sizes_of_local_variables_come_from_who_knows_them(unit: Make) -> None:
    scope = Scope(unit("float4 global_tile[8];"))
    scope.variable_type = lambda name: FLOAT if name == "x" else None
    assert evaluate_text("sizeof(x)", scope) == 4
    assert evaluate_text("sizeof(global_tile) / sizeof(*global_tile)", scope) == 8
    assert evaluate_text("sizeof(global_tile[0].x)", scope) == 4


def test_launch_bounds_of_a_template(unit: Make) -> None:
    found = unit("template <int B> __global__ void __launch_bounds__(B * 2, 3) k(float* p) {}")
    (kernel,) = found.kernels
    assert [evaluate(node, scope_of(kernel, {"B": 64})) for node in kernel.launch_bounds] == [128, 3]
