"""Types of declarations: builtin names, declarators, struct layout, templates, deduction."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cudalint.semantics.program import Unit
from cudalint.semantics.scope import Scope, scope_of, scope_of_ref
from cudalint.semantics.symbols import FunctionDef, active_children
from cudalint.semantics.types import DOUBLE, FLOAT, INT, UINT, Type, array_of, pointer_to
from cudalint.semantics.typing import (
    Declared,
    bind,
    complete,
    constructors,
    declarations,
    declare_local,
    initializer_arguments,
    literal_type,
    member_constant,
    member_field,
    member_type,
    methods,
    parameters,
    resolve_call,
    return_type,
    sizeof,
)

Make = Callable[..., Unit]


def declared(unit: Unit, scope: Scope | None = None) -> dict[str, Declared]:
    """What the statements of the only function declare."""
    (function,) = unit.all_functions
    inner = (scope or scope_of(function)).child()
    found: dict[str, Declared] = {}
    assert function.body is not None
    for statement in active_children(function.body, unit):
        if not declare_local(statement, inner):
            found.update((item.name, item) for item in declarations(statement, inner))
    return found


def type_of(unit: Unit, name: str) -> Type:
    found = unit.type_def(name)
    assert found is not None
    return found


# ------------------------------------------------------------------------ declarators


@pytest.mark.parametrize(
    ("text", "kind", "size"),
    [
        ("unsigned x", "uint", 4),
        ("long long int x", "int", 8),
        ("unsigned short x", "uint", 2),
        ("signed char x", "int", 1),
        ("long double x", "float", 16),
        ("size_t x", "uint", 8),
        ("std::uint16_t x", "uint", 2),
        ("uint64_t x", "uint", 8),
        ("uchar x", "uint", 1),
        ("half x", "float", 2),
        ("__nv_bfloat16 x", "float", 2),
        ("__nv_fp8_e4m3 x", "float", 1),
        ("half2 x", "struct", 4),
        ("float3 x", "struct", 12),
        ("double4 x", "struct", 32),
        ("dim3 x", "struct", 12),
        ("cudaTextureObject_t x", "uint", 8),
        ("bool x", "bool", 1),
        ("float* x", "pointer", 8),
        ("float x[3]", "array", 12),
        ("float x[2][3]", "array", 24),
        ("float *x[4]", "array", 32),
        ("const float (*x)[4] = nullptr", "pointer", 8),
        ("void (*x)(int)", "pointer", 8),
        ("int x[] = {1, 2, 3}", "array", 12),
        ('char x[] = "ab\\n"', "array", 4),
        ("float4 x[2][2]", "array", 64),
        ("std::array<float, 6> x", "array", 24),
        ("const volatile unsigned long x = 3", "uint", 8),
        ("auto x = 3", "unknown", None),
        ("cub::Something<int> x", "unknown", None),
    ],
)
def test_declared_type(unit: Make, text: str, kind: str, size: int | None) -> None:
    found = declared(unit(f"void f() {{ {text}; }}"))["x"]
    assert (found.type.kind, found.type.size) == (kind, size)


def test_rows_before_columns(unit: Make) -> None:
    found = declared(unit("#define N 4\nvoid f() { float tile[N][N + 1]; }"))["tile"]
    assert found.type == array_of(array_of(FLOAT, 5), 4)
    assert found.type.name == "float[4][5]"
    assert [node.text for node in found.dims] == [b"N", b"N + 1"]


def test_several_declarators(unit: Make) -> None:
    found = declared(unit("void f() { static const int a = 1, *b = &a, c[2] = {3, 4}, &d = a; }"))
    assert {name: item.type.kind for name, item in found.items()} == {"a": "int", "b": "pointer", "c": "array", "d": "int"}
    assert all(item.static and item.const and not item.constexpr for item in found.values())
    assert found["d"].reference and not found["a"].reference
    assert found["a"].init is not None and found["a"].init.text == b"1"


def test_spaces_and_flags(unit: Make) -> None:
    text = "void f() { __shared__ float a[8]; extern __shared__ char b[]; __shared__ alignas(16) int c; volatile int d; int e; }"
    found = declared(unit(text))
    assert [found[name].space for name in "abcde"] == ["shared", "shared", "shared", "", ""]
    assert found["b"].extern and found["b"].type.count is None and not found["a"].extern
    assert found["d"].volatile and not found["e"].volatile


def test_constructor_arguments_that_look_like_a_function(unit: Make) -> None:
    text = "#define BX 16\nconstexpr int BY = 8;\nvoid f() { dim3 block(BX, BY); dim3 grid(BX * 2); dim3 one{4}; int g(int); }"
    found = declared(unit(text))
    assert {name: found[name].type.name for name in ("block", "grid", "one")} == dict.fromkeys(("block", "grid", "one"), "dim3")
    inits = [found[name].init for name in ("block", "grid", "one")]
    assert [[node.text for node in initializer_arguments(init)] for init in inits if init is not None] == [
        [b"BX", b"BY"],
        [b"BX * 2"],
        [b"4"],
    ]
    assert found["g"].type.kind == "unknown"


def test_local_types(unit: Make) -> None:
    text = """
    template <typename T> void f() {
      using V = float4; typedef T Row[4]; struct Local { T a; char b; }; enum { K = 3, L };
      V v; Row r[L]; Local l[2];
    }"""
    found = unit(text)
    (function,) = found.all_functions
    items = declared(found, scope_of(function, {"T": DOUBLE}))
    assert {name: item.type.size for name, item in items.items()} == {"v": 16, "r": 4 * 4 * 8, "l": 32}


def test_type_macros(unit: Make) -> None:
    found = declared(unit("#define REAL double\n#define VEC REAL*\n#define U unsigned int\nvoid f() { REAL a; VEC b; U c; }"))
    assert [found[name].type for name in "abc"] == [DOUBLE, pointer_to(DOUBLE), UINT]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", INT),
        ("1u", UINT),
        ("1.0f", FLOAT),
        ("1.0", DOUBLE),
        ("4294967295", "long"),
        ("'a'", "char"),
        ('"a"', "char*"),
        ("0x80000000", UINT),
    ],
)
def test_literal_type(text: str, expected: Type | str) -> None:
    found = literal_type(text)
    assert found == expected or found.name == expected


# ------------------------------------------------------------------------ layout

LAYOUT = """
struct Plain { float x; char c; double d; short s[3]; };
struct Bits { unsigned a : 3, b : 7; unsigned c : 25; char d; };
union Either { float f; double d[2]; char c; };
struct Outer { char tag; struct { int a; double b; }; union { float f; long l; }; Plain p; };
typedef struct { float4 v; int n; } Node4, *Node4P;
struct alignas(32) Aligned { int a; };
struct __align__(8) Old { int a, b; };
struct Member { char c; alignas(16) float v[4]; };
struct __attribute__((packed)) Packed { char c; int i; };
struct Empty {};
struct Derived : Plain, Empty { char z; };
class Hidden { int a; char b; };
class Tail : public Hidden { public: char c; };
struct Virtual { virtual void f(); int a; };
struct List { List* next; int value; };
struct Static { static constexpr int n = 4; static int m; int a[n]; using T = double; T t; void f(); };
struct Reference { int& r; char c; };
struct Vectors { char c; float3 a; float2 b; };
struct Half { __half a; __half2 b; __nv_bfloat16 c; };
struct Unknown { int a; Missing m; float* p; };
"""


# offsets and sizes as nvcc 13.0 (-arch=sm_90, x86-64 Linux) gives them
@pytest.mark.parametrize(
    ("name", "size", "align", "fields"),
    [
        ("Plain", 24, 8, {"x": 0, "c": 4, "d": 8, "s": 16}),
        ("Bits", 12, 4, {"a": 0, "b": 0, "c": 4, "d": 8}),
        ("Either", 16, 8, {"f": 0, "d": 0, "c": 0}),
        ("Outer", 56, 8, {"tag": 0, "a": 8, "b": 16, "f": 24, "l": 24, "p": 32}),
        ("Node4", 32, 16, {"v": 0, "n": 16}),
        ("Aligned", 32, 32, {"a": 0}),
        ("Old", 8, 8, {"a": 0, "b": 4}),
        ("Member", 32, 16, {"c": 0, "v": 16}),
        ("Packed", 5, 1, {"c": 0, "i": 1}),
        ("Empty", 1, 1, {}),
        ("Derived", 32, 8, {"x": 0, "d": 8, "z": 24}),
        ("Hidden", 8, 4, {"a": 0, "b": 4}),
        ("Tail", 8, 4, {"a": 0, "b": 4, "c": 5}),
        ("Virtual", 16, 8, {"a": 8}),
        ("List", 16, 8, {"next": 0, "value": 8}),
        ("Static", 24, 8, {"a": 0, "t": 16}),
        ("Reference", 16, 8, {"r": 0, "c": 8}),
        ("Vectors", 24, 8, {"c": 0, "a": 4, "b": 16}),
        ("Half", 12, 4, {"a": 0, "b": 4, "c": 8}),
        ("Unknown", None, 8, {"a": 0, "m": 4, "p": None}),
    ],
)
def test_layout(unit: Make, name: str, size: int | None, align: int, fields: dict[str, int | None]) -> None:
    found = type_of(unit(LAYOUT), name)
    assert (found.kind, found.size) == ("struct", size)
    assert size is None or found.align == align
    for field, offset in fields.items():
        member = member_field(found, field)
        assert member is not None and member.offset == offset


def test_a_recursive_struct_is_completed_on_demand(unit: Make) -> None:
    found = type_of(unit(LAYOUT), "List")
    pointer = member_field(found, "next")
    assert pointer is not None and pointer.type.element is not None
    assert pointer.type.element.size is None
    assert complete(pointer.type.element) == found
    assert sizeof(pointer.type.element) == 16
    through = member_field(pointer.type.element, "value")
    assert through is not None and through.offset == 8


@pytest.mark.parametrize(
    "text", ["struct S { S s; };", "template <class T> struct S { S<T*> s; }; S<int> x;", "struct S : S { int a; };"]
)
def test_structs_without_end(unit: Make, text: str) -> None:
    found = unit(text)
    kind = found.type_def("S")
    assert kind is None or kind.size is None or kind.size < 16
    variable = found.variable("x")
    assert variable is None or variable.name == "x"


def test_members_of_an_instantiation(unit: Make) -> None:
    text = """
    template <typename T, int N> struct Base { using value_type = T; T first[N]; };
    template <typename T, int N = 4> struct Tile : Base<T, N> {
      static constexpr int kRows = N; enum { kCols = N + 1 }; typedef T* pointer;
      template <int K> struct Row { T v[K]; };
      Tile(T x); T at(int i) const { return data[i]; } T sum();
      T data[N][kCols]; Row<2> rows;
    };
    template <typename U, int M> U Tile<U, M>::sum() { return data[0][0]; }
    Tile<double> global;
    """
    found = unit(text)
    (variable,) = found.find_variables("global")
    kind = declarations(variable.node, found.scope)[0].type
    assert kind.name == "Tile<double, 4>"
    assert kind.size == 4 * 8 + 4 * 5 * 8 + 2 * 8
    assert (member_constant(kind, "kRows"), member_constant(kind, "kCols"), member_constant(kind, "none")) == (4, 5, None)
    assert member_type(kind, "pointer") == pointer_to(DOUBLE)
    assert member_type(kind, "value_type") == DOUBLE
    data = member_field(kind, "data")
    assert data is not None and data.offset == 32 and data.type == array_of(array_of(DOUBLE, 5), 4)
    assert [function.is_const for function in methods(kind, "at")] == [True]
    assert [function.name for function in constructors(kind)] == ["Tile"]
    (outside,) = methods(kind, "sum")
    assert outside.body is not None and outside.owner is methods(kind, "at")[0].owner
    reference = resolve_call([outside], (), (), kind.record)  # type: ignore[arg-type]
    assert reference is not None and dict(reference.bindings) == {"T": DOUBLE, "N": 4, "U": DOUBLE, "M": 4}
    assert return_type(outside, scope_of_ref(reference)) == DOUBLE


def test_one_instantiation_is_one_type(unit: Make) -> None:
    found = unit(
        "template <typename T> struct S { T a; }; template <typename T> using A = S<T>;"
        "void f() { S<int> a; A<int> b; S<char> c; }"
    )
    items = declared(found)
    assert items["a"].type is items["b"].type
    assert items["a"].type != items["c"].type


def test_namespaces_hide_each_other(unit: Make) -> None:
    text = """
    struct P { int a; };
    namespace n { struct P { double a; }; namespace m { struct Q { P p; }; } template <typename T> void f(P p) {} }
    namespace k { struct Q { P p; }; }
    """
    found = unit(text)
    assert [type_of(found, name).size for name in ("P", "n::P", "n::m::Q", "k::Q")] == [4, 8, 8, 4]
    (function,) = found.functions("f")
    assert parameters(function, scope_of(function))[0].type.size == 8


# ------------------------------------------------------------------------ functions


def only(unit: Unit, name: str) -> FunctionDef:
    (found,) = unit.functions(name)
    return found


def test_parameters(unit: Make) -> None:
    found = unit(
        "struct S { int a; };"
        "template <typename T> __global__ void k(const T* __restrict__ in, T (&tile)[4], T rows[][8], const S s, T&& f,"
        "int n = 3, float*) {}"
    )
    items = parameters(only(found, "k"), scope_of(only(found, "k"), {"T": FLOAT}))
    assert [item.name for item in items] == ["in", "tile", "rows", "s", "f", "n", ""]
    assert items[0].type == pointer_to(FLOAT) and items[0].restrict and items[0].const
    assert items[1].type == array_of(FLOAT, 4) and items[1].reference
    assert items[2].type == pointer_to(array_of(FLOAT, 8)) and not items[2].restrict
    assert items[3].type.size == 4
    assert items[4].reference
    assert items[5].init is not None and items[5].init.text == b"3"
    assert parameters(only(unit("void f(void) {}"), "f"), found.scope) == ()


def test_parameter_packs(unit: Make) -> None:
    function = only(unit("template <typename... Ts> void f(int n, Ts... xs) {}"), "f")
    items = parameters(function, scope_of(function, {"Ts": (FLOAT, pointer_to(INT))}))
    assert [(item.name, item.type, item.pack) for item in items] == [
        ("n", INT, False),
        ("xs", FLOAT, True),
        ("xs", pointer_to(INT), True),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("float f() {}", FLOAT),
        ("float* f() {}", pointer_to(FLOAT)),
        ("const float& f() {}", FLOAT),
        ("auto f() -> double {}", DOUBLE),
        ("__device__ __forceinline__ unsigned f(int) {}", UINT),
    ],
)
def test_return_type(unit: Make, text: str, expected: Type) -> None:
    function = only(unit(text), "f")
    assert return_type(function, scope_of(function)) == expected


@pytest.mark.parametrize(
    ("head", "explicit", "arguments", "expected"),
    [
        ("template <typename T> void f(T* p)", (), (pointer_to(FLOAT),), {"T": FLOAT}),
        ("template <typename T> void f(const T& x)", (), (INT,), {"T": INT}),
        ("template <typename T> void f(T x)", (), (array_of(FLOAT, 4),), {"T": pointer_to(FLOAT)}),
        ("template <typename T, int N> void f(T (&x)[N])", (), (array_of(FLOAT, 4),), {"T": FLOAT, "N": 4}),
        ("template <typename T, int N> void f(const std::array<T, N>& x)", (), (array_of(FLOAT, 4),), {"T": FLOAT, "N": 4}),
        ("template <int N, typename T> void f(T* p)", (8,), (pointer_to(INT),), {"N": 8, "T": INT}),
        ("template <typename T, int N = sizeof(T) * 2> void f(T x)", (), (DOUBLE,), {"T": DOUBLE, "N": 16}),
        ("template <typename T, typename U = T> void f(T x)", (), (DOUBLE,), {"T": DOUBLE, "U": DOUBLE}),
        ("template <int... Ns> void f()", (1, 2, 3), (), {"Ns": (1, 2, 3)}),
        ("template <typename... Ts> void f(Ts... xs)", (), (INT, FLOAT), {"Ts": (INT, FLOAT)}),
        ("template <typename T> void f(T a, T b)", (), (INT, FLOAT), None),
        ("template <typename T> void f(T a, T b)", (FLOAT,), (INT, FLOAT), {"T": FLOAT}),
        ("template <typename T> void f(T* p)", (), (FLOAT,), None),
        ("template <typename T> void f(T x)", (), (), None),
        ("template <typename T> void f(T x)", (), (INT, INT), None),
        ("template <typename T> void f(T x, int n = 3)", (), (INT,), {"T": INT}),
        ("template <int N> void f()", (FLOAT,), (), None),
        ("template <typename T, typename = std::enable_if_t<(sizeof(T) > 4)>> void f(T x)", (), (INT,), None),
        ("template <typename T, typename = std::enable_if_t<(sizeof(T) > 4)>> void f(T x)", (), (DOUBLE,), {"T": DOUBLE}),
        ("void f(float* p, int n)", (), (pointer_to(FLOAT), None), {}),
    ],
)
def test_deduction(
    unit: Make, head: str, explicit: tuple[object, ...], arguments: tuple[Type | None, ...], expected: dict[str, object] | None
) -> None:
    assert bind(only(unit(head + " {}"), "f"), explicit, arguments) == expected


def test_deduction_through_a_class_template_and_its_base(unit: Make) -> None:
    found = unit(
        "template <typename T, int N> struct V { T a[N]; }; struct W : V<double, 3> {};"
        "template <typename U, int M> U first(const V<U, M>& v) { return v.a[0]; } void g() { V<float, 2> a; W b; }"
    )
    scope = found.scope
    function = only(found, "first")
    (outer,) = found.functions("g")
    assert outer.body is not None
    kinds = [item.type for statement in outer.body.named_children for item in declarations(statement, scope)]
    assert bind(function, (), kinds[:1]) == {"U": FLOAT, "M": 2}
    assert bind(function, (), kinds[1:]) == {"U": DOUBLE, "M": 3}


def test_overloads_and_specialisations(unit: Make) -> None:
    found = unit(
        """
        __device__ int f(int x) { return 1; }
        __device__ int f(float x) { return 2; }
        __device__ int f(float* x) { return 3; }
        template <typename T> __device__ int f(T* x, int n) { return 4; }
        template <> __device__ int f<double>(double* x, int n) { return 5; }
        template <typename T> T load(const T* p);
        template <> float load<float>(const float* p) { return 6; }
        """
    )
    lines = {}
    for arguments in ((INT,), (FLOAT,), (pointer_to(FLOAT),), (pointer_to(INT), INT), (pointer_to(DOUBLE), INT)):
        reference = resolve_call(found.functions("f"), (), arguments)
        assert reference is not None and isinstance(reference.definition, FunctionDef)
        lines[arguments] = int(reference.definition.node.text.split(b"return ")[1][:1])  # type: ignore[union-attr]
    assert list(lines.values()) == [1, 2, 3, 4, 5]
    reference = resolve_call([*found.functions("load"), *found.prototypes("load")], (), (pointer_to(FLOAT),))
    assert reference is not None and b"return 6" in (reference.definition.node.text or b"")  # type: ignore[attr-defined]
    assert resolve_call(found.functions("f"), (), (INT, INT, INT)) is None
