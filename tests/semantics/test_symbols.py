"""What a file declares: functions and kernels in every spelling, classes, variables, enumerators."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cudalint.semantics.constants import evaluate
from cudalint.semantics.program import Unit
from cudalint.semantics.symbols import EnumDef, StructDef, TypeAlias, active_children
from cudalint.semantics.types import DOUBLE

Make = Callable[..., Unit]


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k(float* p) {}",
        "void __global__ k(float* p) {}",
        "__global__ void __launch_bounds__(128) k(float* p) {}",
        "__launch_bounds__(128) __global__ void k(float* p) {}",
        'extern "C" __global__ void k(float* p) {}',
        'extern "C" { __global__ void k(float* p) {} }',
        "template <typename T> __global__ void k(T* p) {}",
        "template <typename T, typename = void> static __global__ void k(T* p) {}",
        "template <> __global__ void k<float>(float* p) {}",
        "namespace a { namespace { __global__ void k(float* p) {} } }",
        "#if 1\n__global__ void k(float* p) {}\n#endif",
        "#ifdef __CUDACC__\nnamespace n {\n__global__ void k(float* p) {}\n}\n#endif",
        "#define KERNEL __global__ void\nKERNEL k(float* p) {}",
        "#define GLOBAL static __global__\nGLOBAL void k(float* p) {}",
        "__global__\n__attribute__((used)) void k(float* p) {}",
    ],
)
def test_kernel_spellings(unit: Make, text: str) -> None:
    assert [(function.name, function.kind) for function in unit(text).kernels] == [("k", "kernel")]


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k(float* p);",
        "#if 0\n__global__ void k(float* p) {}\n#endif",
        "#ifdef __HIPCC__\n__global__ void k(float* p) {}\n#endif",
        "// __global__ void k(float* p) {}",
        'const char* s = "__global__ void k(float* p) {}";',
        "__device__ void k(float* p) {}",
        "void k(float* p) { /* __global__ */ }",
    ],
)
def test_no_kernels(unit: Make, text: str) -> None:
    assert unit(text).kernels == ()


def test_kinds_and_places_of_functions(unit: Make) -> None:
    text = "template <typename T>\n__device__ T dev(T x) { return x; }\nint host(int) { return 0; }\n"
    text += "__host__ __device__ void both() {}\n"
    found = unit(text)
    device, host, both = found.all_functions
    assert [function.kind for function in (device, host, both)] == ["device", "host", "device"]
    assert text[device.start :].startswith("template")
    assert text[device.header_start :].startswith("__device__")
    assert text[device.name_start : device.name_end] == "dev"
    assert text[device.header_end : device.end] == "{ return x; }"
    assert [(param.name, param.kind) for param in device.template] == [("T", "type")]


def test_names_of_functions(unit: Make) -> None:
    text = """
    namespace n {
    struct V { V(); ~V(); V operator+(const V& o) const; operator int() const; template <int I> float get(); float x; };
    V::V() {} V::~V() {} V V::operator+(const V& o) const { return o; } V::operator int() const { return 1; }
    template <int I> float V::get() { return x; }
    float operator*(float a, const V& b) { return a; }
    float* pointer() { return nullptr; } float& reference(float& x) { return x; }
    }
    """
    found = unit(text)
    assert [function.qualified for function in found.all_functions] == [
        "n::V::V",
        "n::V::~V",
        "n::V::operator+",
        "n::V::operator int",
        "n::V::get",
        "n::operator*",
        "n::pointer",
        "n::reference",
    ]
    owner = found.find_types("V")[0]
    assert [function.owner is owner for function in found.all_functions] == [True] * 5 + [False] * 3
    assert [function.name for function in found.functions("operator*")] == ["operator*"]
    assert found.functions("get") == []
    assert isinstance(owner, StructDef)
    assert set(owner.members.functions) == {"V", "~V", "operator+", "operator int", "get"}


def test_template_parameters(unit: Make) -> None:
    head = "template <typename T, int N, class U = float, unsigned M = 2 * N, template <typename> class C, typename... Ts>"
    (function,) = unit(head + " void f() {}").all_functions
    assert [(param.name, param.kind, param.default is not None, param.pack) for param in function.template] == [
        ("T", "type", False, False),
        ("N", "value", False, False),
        ("U", "type", True, False),
        ("M", "value", True, False),
        ("C", "template", False, False),
        ("Ts", "type", False, True),
    ]


def test_members_of_a_template_defined_outside(unit: Make) -> None:
    text = """
    template <typename T, int N> struct A { template <int K> T at(); };
    template <typename U, int M> template <int K> U A<U, M>::at() { return U(); }
    """
    (function,) = unit(text).all_functions
    assert [param.name for param in function.template] == ["K"]
    assert [param.name for param in function.owner_template] == ["U", "M"]
    assert function.owner is not None and function.owner.name == "A"


def test_launch_bounds_may_stand_on_the_prototype(unit: Make) -> None:
    found = unit("#define B 64\n__global__ void __launch_bounds__(B, 2) k(float* p);\n__global__ void k(float* p) {}\n")
    (kernel,) = found.kernels
    assert [evaluate(node, kernel.launch_bounds_unit.scope) for node in kernel.launch_bounds] == [64, 2]
    assert kernel.own_launch_bounds == ()


def test_launch_bounds_in_a_macro(unit: Make) -> None:
    found = unit("#define BOUNDS(n) __launch_bounds__(n, 4)\n__global__ void BOUNDS(32 * 4) k(float* p) {}\n")
    (kernel,) = found.kernels
    assert [evaluate(node, found.scope) for node in kernel.launch_bounds] == [128, 4]


def test_attributes_that_masking_takes_out(unit: Make) -> None:
    found = unit(
        "__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128, 1, 2) k(float* p) {}\n__global__ void j() {}\n"
    )
    first, second = found.kernels
    assert first.attributes["__cluster_dims__"] == "2, 1, 1"
    assert first.attributes["max_blocks_per_cluster"] == "2"
    assert len(first.launch_bounds) == 2
    assert second.attributes == {}


def test_variables(unit: Make) -> None:
    text = """
    __constant__ float coefficients[16]; __device__ int counter = 3; extern __shared__ char dynamic[]; __managed__ int m;
    static const int a = 1, *b = nullptr; int c; namespace n { constexpr float d = 2; } float f(int);
    """
    found = unit(text)
    spaces = {
        name: found.find_variables(name)[0].space for name in ("coefficients", "counter", "dynamic", "m", "a", "b", "c", "d")
    }
    assert spaces == {
        "coefficients": "constant",
        "counter": "global",
        "dynamic": "shared",
        "m": "managed",
        "a": "",
        "b": "",
        "c": "",
        "d": "",
    }
    assert found.find_variables("d")[0].qualified == "n::d"
    assert [found.find_variables(name)[0].is_const for name in ("a", "b", "c", "d", "coefficients")] == [
        True,
        True,
        False,
        True,
        False,
    ]
    assert found.find_variables("dynamic")[0].extern
    assert found.find_variables("f") == [] and len(found.prototypes("f")) == 1


def test_types(unit: Make) -> None:
    text = """
    struct S { int a; }; class C { int a; }; union U { int a; }; struct Forward;
    typedef struct { int a; } T, *TP; typedef struct Tag { int a; } T2; using A = float; template <class X> using B = X*;
    enum E { e0, e1 = 4 }; enum class K : short { k0 }; typedef enum { t0 } TE;
    """
    found = unit(text)
    kinds = {
        name: [type(symbol) for symbol in found.find_types(name)] for name in ("S", "C", "U", "TP", "A", "B", "E", "K", "Forward")
    }
    assert kinds == {
        "S": [StructDef],
        "C": [StructDef],
        "U": [StructDef],
        "TP": [TypeAlias],
        "A": [TypeAlias],
        "B": [TypeAlias],
        "E": [EnumDef],
        "K": [EnumDef],
        "Forward": [],
    }
    assert StructDef in [type(symbol) for symbol in found.find_types("T")]
    assert StructDef in [type(symbol) for symbol in found.find_types("Tag")]
    assert [found.constant(name) for name in ("e1", "t0", "k0")] == [4, 0, None]


def test_explicit_instantiations(unit: Make) -> None:
    text = "template <typename T> __global__ void k(T* p) {}\ntemplate __global__ void k<float>(float*);\n"
    text += "template __global__ void k<int>(int*);\n"
    found = unit(text)
    assert len(found.symbols.instantiations["k"]) == 2
    assert len(found.kernels) == 1


def test_arms_inside_classes_enumerations_and_bodies(unit: Make) -> None:
    text = """
    struct S {
      int a;
    #ifdef __CUDA_ARCH__
      double b;
    #else
      float c; float d;
    #endif
    };
    enum { A,
    #if 0
      B,
    #else
      C,
    #endif
      D };
    void f() {
      first();
    #if __CUDA_ARCH__ >= 800
      second();
    #if 0
      third();
    #endif
    #else
      fourth();
    #endif
      // comment
      fifth();
    }
    """
    found = unit(text)
    kind = found.type_def("S")
    assert kind is not None and [(field.name, field.type) for field in kind.fields][1] == ("b", DOUBLE)
    assert [found.constant(name) for name in "ABCD"] == [0, None, 1, 2]
    (function,) = found.all_functions
    assert function.body is not None
    assert [node.text for node in active_children(function.body, found)] == [b"first();", b"second();", b"fifth();"]


@pytest.mark.parametrize(
    "text",
    [
        "struct S { int a; ",
        "namespace n { __global__ void k( {",
        "template <typename T struct S {};",
        "} } ] ) __global__ void k() {}",
        "enum { A = , B };",
        "typedef struct { int ; } T",
        "template <> template <> void A<int>::f<3>() {}",
        "class { public: };",
        "using = int; using namespace; typedef;",
        "namespace a { " * 300 + "int x;" + " }" * 300,
        "struct A { " * 200 + "int x;" + " };" * 200,
        "\x00\xff",
    ],
)
def test_broken_code_is_survived(unit: Make, text: str) -> None:
    found = unit(text)
    for function in found.all_functions:
        assert function.launch_bounds == ()
    for symbols in found.symbols.types.values():
        for symbol in symbols:
            found.scope.type(symbol.qualified)
