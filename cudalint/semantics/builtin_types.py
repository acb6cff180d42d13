"""The types that every CUDA file knows without a definition."""

from __future__ import annotations

from cudalint.semantics.types import BOOL, DOUBLE, FLOAT, INT, INT64, UINT, UINT64, VOID, Field, Type, pointer_to

CHAR = Type("int", 1, 1, "char")
SCHAR = Type("int", 1, 1, "signed char")
UCHAR = Type("uint", 1, 1, "unsigned char")
SHORT = Type("int", 2, 2, "short")
USHORT = Type("uint", 2, 2, "unsigned short")
LONG = Type("int", 8, 8, "long")
ULONG = Type("uint", 8, 8, "unsigned long")
INT128 = Type("int", 16, 16, "__int128")
UINT128 = Type("uint", 16, 16, "unsigned __int128")
HALF = Type("float", 2, 2, "__half")
BFLOAT16 = Type("float", 2, 2, "__nv_bfloat16")
LONG_DOUBLE = Type("float", 16, 16, "long double")
FP8_E4M3 = Type("float", 1, 1, "__nv_fp8_e4m3")
FP8_E5M2 = Type("float", 1, 1, "__nv_fp8_e5m2")
FP8_E8M0 = Type("float", 1, 1, "__nv_fp8_e8m0")
WCHAR = Type("int", 4, 4, "wchar_t")
CHAR16 = Type("uint", 2, 2, "char16_t")
CHAR32 = Type("uint", 4, 4, "char32_t")
TF32 = Type("float", 4, 4, "__nv_tf32")
FLOAT128 = Type("float", 16, 16, "__float128")
STRING = pointer_to(CHAR)
NULLPTR = Type("pointer", 8, 8, "nullptr_t", VOID)


def sized(words: list[str]) -> Type | None:
    """The type of a combination such as `unsigned long long int`; None if it is none."""
    counts = {word: words.count(word) for word in words}
    base = next((word for word in words if word not in _SIZE_WORDS), "int")
    unsigned = "unsigned" in counts
    if base in ("char", "__int8"):
        return UCHAR if unsigned else SCHAR if "signed" in counts else CHAR
    if base == "double":
        return LONG_DOUBLE if "long" in counts else DOUBLE
    if base in _SIZED:
        signed_type, unsigned_type = _SIZED[base]
        return unsigned_type if unsigned else signed_type
    if base != "int":
        return None
    if "short" in counts:
        return USHORT if unsigned else SHORT
    if counts.get("long", 0) >= 2:
        return UINT64 if unsigned else INT64
    if "long" in counts:
        return ULONG if unsigned else LONG
    return UINT if unsigned else INT


_SIZE_WORDS = frozenset(("unsigned", "signed", "long", "short", "const", "volatile", "__signed__"))
_SIZED = {"__int128": (INT128, UINT128), "__int64": (INT64, UINT64), "__int32": (INT, UINT), "__int16": (SHORT, USHORT)}


def _structure(name: str, element: Type, fields: str, align: int) -> Type:
    size = element.size or 0
    return Type("struct", size * len(fields), align, name, fields=tuple(_members(element, *fields)))


def _members(element: Type, *names: str) -> list[Field]:
    size = element.size or 0
    return [Field(name, position * size, element) for position, name in enumerate(names)]


def _vectors() -> dict[str, Type]:
    table: dict[str, Type] = {}
    elements = (
        ("char", CHAR),
        ("uchar", UCHAR),
        ("short", SHORT),
        ("ushort", USHORT),
        ("int", INT),
        ("uint", UINT),
        ("long", LONG),
        ("ulong", ULONG),
        ("longlong", INT64),
        ("ulonglong", UINT64),
        ("float", FLOAT),
        ("double", DOUBLE),
    )
    for prefix, element in elements:
        size = element.size or 1
        for length in (1, 2, 3, 4):
            # three-component vectors are packed arrays; the others are aligned to their size, at most 16 bytes
            align = size if length == 3 else min(16, size * length)
            table[f"{prefix}{length}"] = _structure(f"{prefix}{length}", element, "xyzw"[:length], align)
    for prefix, element in (("double", DOUBLE), ("longlong", INT64), ("ulonglong", UINT64), ("long", LONG), ("ulong", ULONG)):
        for bits in (16, 32):
            table[f"{prefix}4_{bits}a"] = _structure(f"{prefix}4_{bits}a", element, "xyzw", bits)
    table["__half2"] = _structure("__half2", HALF, "xy", 4)
    table["__nv_bfloat162"] = _structure("__nv_bfloat162", BFLOAT16, "xy", 4)
    table["dim3"] = _structure("dim3", UINT, "xyz", 4)
    for letter in ("e4m3", "e5m2", "e8m0"):
        for length in (2, 4):
            table[f"__nv_fp8x{length}_{letter}"] = Type("uint", length, length, f"__nv_fp8x{length}_{letter}")
    return table


VECTORS = _vectors()

_HANDLES = (
    "cudaTextureObject_t",
    "cudaSurfaceObject_t",
    "cudaStream_t",
    "cudaEvent_t",
    "cudaArray_t",
    "cudaGraph_t",
    "cudaGraphExec_t",
    "cudaMemPool_t",
    "CUstream",
    "CUevent",
    "CUmodule",
    "CUfunction",
    "CUcontext",
    "CUdeviceptr",
    "CUtexObject",
    "CUsurfObject",
    "cudaGraphConditionalHandle",
    "cudaDeviceptr",
    "cudaMipmappedArray_t",
)

BUILTIN: dict[str, Type] = {
    "void": VOID,
    "bool": BOOL,
    "_Bool": BOOL,
    "char": CHAR,
    "short": SHORT,
    "int": INT,
    "long": LONG,
    "signed": INT,
    "unsigned": UINT,
    "float": FLOAT,
    "double": DOUBLE,
    "wchar_t": WCHAR,
    "char8_t": UCHAR,
    "char16_t": CHAR16,
    "char32_t": CHAR32,
    "size_t": ULONG,
    "ssize_t": LONG,
    "ptrdiff_t": LONG,
    "intptr_t": LONG,
    "uintptr_t": ULONG,
    "off_t": LONG,
    "time_t": LONG,
    "clock_t": LONG,
    "nullptr_t": NULLPTR,
    "int8_t": SCHAR,
    "int16_t": SHORT,
    "int32_t": INT,
    "int64_t": LONG,
    "uint8_t": UCHAR,
    "uint16_t": USHORT,
    "uint32_t": UINT,
    "uint64_t": ULONG,
    "int_fast8_t": SCHAR,
    "int_fast16_t": LONG,
    "int_fast32_t": LONG,
    "int_fast64_t": LONG,
    "uint_fast8_t": UCHAR,
    "uint_fast16_t": ULONG,
    "uint_fast32_t": ULONG,
    "uint_fast64_t": ULONG,
    "int_least8_t": SCHAR,
    "int_least16_t": SHORT,
    "int_least32_t": INT,
    "int_least64_t": LONG,
    "uint_least8_t": UCHAR,
    "uint_least16_t": USHORT,
    "uint_least32_t": UINT,
    "uint_least64_t": ULONG,
    "intmax_t": LONG,
    "uintmax_t": ULONG,
    "uint": UINT,
    "ushort": USHORT,
    "ulong": ULONG,
    "uchar": UCHAR,
    "u_char": UCHAR,
    "u_int": UINT,
    "ulonglong": UINT64,
    "longlong": INT64,
    "byte": UCHAR,
    "__int128": INT128,
    "__int128_t": INT128,
    "__uint128_t": UINT128,
    "__float128": FLOAT128,
    "half": HALF,
    "__half": HALF,
    "__half_raw": HALF,
    "half_t": HALF,
    "bfloat16_t": BFLOAT16,
    "nv_half": HALF,
    "float16": HALF,
    "_Float16": HALF,
    "__fp16": HALF,
    "half2": VECTORS["__half2"],
    "nv_half2": VECTORS["__half2"],
    "__half2_raw": VECTORS["__half2"],
    "__nv_bfloat16": BFLOAT16,
    "nv_bfloat16": BFLOAT16,
    "__nv_bfloat16_raw": BFLOAT16,
    "nv_bfloat162": VECTORS["__nv_bfloat162"],
    "__nv_fp8_e4m3": FP8_E4M3,
    "__nv_fp8_e5m2": FP8_E5M2,
    "__nv_fp8_e8m0": FP8_E8M0,
    "__nv_fp8_storage_t": UCHAR,
    "__nv_fp8x2_storage_t": USHORT,
    "__nv_fp8x4_storage_t": UINT,
    "__nv_tf32": TF32,
    "cudaError_t": INT,
    "CUresult": INT,
    "curandState": Type("struct", 48, 8, "curandState"),
    "curandState_t": Type("struct", 48, 8, "curandState"),
    "curandStateXORWOW_t": Type("struct", 48, 8, "curandState"),
    "curandStatePhilox4_32_10_t": Type("struct", 64, 16, "curandStatePhilox4_32_10_t"),
    "CUtensorMap": Type("struct", 128, 128, "CUtensorMap"),
    "cudaExtent": Type("struct", 24, 8, "cudaExtent", fields=tuple(_members(ULONG, "width", "height", "depth"))),
    "cudaPos": Type("struct", 24, 8, "cudaPos", fields=tuple(_members(ULONG, "x", "y", "z"))),
    "cuComplex": VECTORS["float2"],
    "cuFloatComplex": VECTORS["float2"],
    "cufftComplex": VECTORS["float2"],
    "cufftReal": FLOAT,
    "cuDoubleComplex": VECTORS["double2"],
    "cufftDoubleComplex": VECTORS["double2"],
    "cufftDoubleReal": DOUBLE,
    **{name: Type("uint", 8, 8, name) for name in _HANDLES},
    **VECTORS,
}
"""Types by name; `std::` and the like before a name change nothing."""

UNLIKELY_USER = frozenset(("void", "bool", "char", "short", "int", "long", "float", "double", "size_t", "unsigned", "signed"))
"""Names that no file defines otherwise."""
_SOFT = ("byte", "half_t", "bfloat16_t", "float16")
SOFT = frozenset(_SOFT)
"""Names that only usually mean this: a definition in the project wins."""
