"""C arithmetic on typed values."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from cudalint.semantics.builtin_types import HALF, LONG_DOUBLE
from cudalint.semantics.literals import Typed
from cudalint.semantics.types import BOOL, DOUBLE, FLOAT, INT, UINT, UNKNOWN, Type

_RANK = {"bool": 0, "char": 1, "signed char": 1, "unsigned char": 1, "short": 2, "unsigned short": 2, "int": 3, "unsigned int": 3}


def promoted(kind: Type) -> Type:
    """Integral promotion."""
    return INT if kind.is_integer and (kind.size or 4) < 4 else kind


def common_type(left: Type, right: Type) -> Type:
    """The usual arithmetic conversions; for two pointers or structs the left one."""
    if "unknown" in (left.kind, right.kind):
        return UNKNOWN
    if "float" in (left.kind, right.kind):
        return _common_float(left, right)
    if not (left.is_integer and right.is_integer):
        return left if not left.is_integer else right
    left, right = promoted(left), promoted(right)
    if left == right:
        return left
    left_size, right_size = left.size or 4, right.size or 4
    if left_size != right_size:
        return left if left_size > right_size else right
    if left.kind == right.kind:
        return left if _conversion_rank(left) >= _conversion_rank(right) else right
    return left if left.kind == "uint" else right


def _conversion_rank(kind: Type) -> int:
    return _RANK.get(kind.name, 5 if "long long" in kind.name else 4)


def _common_float(left: Type, right: Type) -> Type:
    if left.kind != "float":
        return right if right.kind == "float" and left.is_integer else left
    if right.kind != "float":
        return left if right.is_integer else right
    return left if (left.size or 0) >= (right.size or 0) else right


def convert(value: int | float, kind: Type) -> int | float | None:
    """The value converted to `kind`; None where C leaves it undefined or `kind` is no arithmetic type."""
    if kind.kind == "bool":
        return int(value != 0)
    if kind.kind == "float":
        return float(value)
    if kind.kind == "pointer":
        return value if isinstance(value, int) else None
    if not kind.is_integer or kind.size is None:
        return None
    if isinstance(value, float):
        if not math.isfinite(value) or abs(value) >= 2.0**64:
            return None
        value = int(value)
    return wrap(value, kind)


def wrap(value: int, kind: Type) -> int:
    """Two's complement of the width of `kind`."""
    bits = 8 * (kind.size or 4)
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind.kind == "int" and value >> (bits - 1) else value


_COMPARE: dict[str, Callable[[int | float, int | float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "not_eq": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
_ALTERNATIVE = {"bitand": "&", "bitor": "|", "xor": "^"}
_INTEGER: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
_FLOATING: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def binary(symbol: str, left: Typed, right: Typed) -> Typed | None:
    """`left symbol right` as C computes it; None for division by zero, shifts out of range, signed overflow."""
    symbol = _ALTERNATIVE.get(symbol, symbol)
    if symbol in ("<<", ">>"):
        return _shift(symbol, left, right)
    kind = common_type(left[1], right[1])
    first, second = convert(left[0], kind), convert(right[0], kind)
    if first is None or second is None:
        return None
    if symbol in _COMPARE:
        return int(_COMPARE[symbol](first, second)), BOOL
    if kind.kind == "float":
        return _floating(symbol, float(first), float(second), kind)
    if not kind.is_integer:
        return None
    return _integer(symbol, int(first), int(second), kind)


def _integer(symbol: str, left: int, right: int, kind: Type) -> Typed | None:
    if symbol in ("/", "%"):
        if right == 0:
            return None
        quotient = abs(left) // abs(right)
        if (left < 0) != (right < 0):
            quotient = -quotient
        result = quotient if symbol == "/" else left - quotient * right
    elif symbol in _INTEGER:
        result = _INTEGER[symbol](left, right)
    else:
        return None
    wrapped = wrap(result, kind)
    if kind.kind == "int" and wrapped != result:
        return None
    return wrapped, kind


def _floating(symbol: str, left: float, right: float, kind: Type) -> Typed | None:
    function = _FLOATING.get(symbol)
    if function is None or (symbol == "/" and right == 0):
        return None
    try:
        result = function(left, right)
    except OverflowError:
        return None
    return (result, kind) if result == result else None


def _shift(symbol: str, left: Typed, right: Typed) -> Typed | None:
    kind = promoted(left[1])
    value, amount = left[0], right[0]
    if not kind.is_integer or not isinstance(value, int) or not isinstance(amount, int):
        return None
    if not 0 <= amount < 8 * (kind.size or 4):
        return None
    return wrap(value << amount if symbol == "<<" else value >> amount, kind), kind


def unary(symbol: str, operand: Typed) -> Typed | None:
    """`symbol operand`; None for what is not arithmetic."""
    value, kind = operand
    if symbol in ("!", "not"):
        return int(value == 0), BOOL
    kind = promoted(kind)
    if symbol == "+":
        return value, kind
    if symbol == "-":
        return (wrap(-value, kind), kind) if isinstance(value, int) else (-value, kind)
    if symbol in ("~", "compl") and isinstance(value, int) and kind.is_integer:
        return wrap(~value, kind), kind
    return None


def typed(value: int | float) -> Typed:
    """A number of unknown origin with the type that a literal of it would have."""
    if isinstance(value, float):
        return value, DOUBLE
    value = int(value)
    if -(1 << 31) <= value < 1 << 31:
        return value, INT
    return value, _LONG if -(1 << 63) <= value < 1 << 63 else _ULONG


_LONG = Type("int", 8, 8, "long")
_ULONG = Type("uint", 8, 8, "unsigned long")

# ----------------------------------------------------------------------- functions


def _integral(function: Callable[[int, int], int]) -> Callable[[list[Typed]], Typed | None]:
    def apply(arguments: list[Typed]) -> Typed | None:
        if len(arguments) != 1 or not isinstance(arguments[0][0], int):
            return None
        value, kind = arguments[0]
        bits = 8 * (kind.size or 4)
        return function(int(value) & ((1 << bits) - 1), bits), INT

    return apply


def _extreme(choose: Callable[[int | float, int | float], int | float]) -> Callable[[list[Typed]], Typed | None]:
    def apply(arguments: list[Typed]) -> Typed | None:
        if not arguments:
            return None
        result, kind = arguments[0]
        for value, other in arguments[1:]:
            kind = common_type(kind, other)
            result = choose(result, value)
        converted = convert(result, kind)
        return None if converted is None else (converted, kind)

    return apply


def _real(function: Callable[..., float], result: Type | None = None) -> Callable[[list[Typed]], Typed | None]:
    def apply(arguments: list[Typed]) -> Typed | None:
        kind = result or (FLOAT if all(kind in (FLOAT, HALF) for _, kind in arguments) else DOUBLE)
        try:
            value = function(*(float(value) for value, _ in arguments))
        except (ValueError, OverflowError, ZeroDivisionError, TypeError):
            return None
        return (float(value), kind) if math.isfinite(value) else None

    return apply


def _absolute(arguments: list[Typed]) -> Typed | None:
    return (abs(arguments[0][0]), promoted(arguments[0][1])) if len(arguments) == 1 else None


def _count_leading_zeros(value: int, bits: int) -> int:
    return bits - value.bit_length()


def _count_trailing_zeros(value: int, bits: int) -> int:
    return (value & -value).bit_length() - 1 if value else bits


def _find_first_set(value: int, bits: int) -> int:
    return (value & -value).bit_length() if value and bits else 0


FUNCTIONS: dict[str, Callable[[list[Typed]], Typed | None]] = {
    "min": _extreme(min),
    "max": _extreme(max),
    "umin": _extreme(min),
    "umax": _extreme(max),
    "fmin": _extreme(min),
    "fmax": _extreme(max),
    "fminf": _extreme(min),
    "fmaxf": _extreme(max),
    "abs": _absolute,
    "labs": _absolute,
    "llabs": _absolute,
    "fabs": _absolute,
    "fabsf": _absolute,
    "__clz": _integral(_count_leading_zeros),
    "__clzll": _integral(_count_leading_zeros),
    "__builtin_clz": _integral(_count_leading_zeros),
    "__builtin_clzll": _integral(_count_leading_zeros),
    "countl_zero": _integral(_count_leading_zeros),
    "__builtin_ctz": _integral(_count_trailing_zeros),
    "__builtin_ctzll": _integral(_count_trailing_zeros),
    "countr_zero": _integral(_count_trailing_zeros),
    "__ffs": _integral(_find_first_set),
    "__ffsll": _integral(_find_first_set),
    "__builtin_ffs": _integral(_find_first_set),
    "__popc": _integral(lambda value, _: value.bit_count()),
    "__popcll": _integral(lambda value, _: value.bit_count()),
    "__builtin_popcount": _integral(lambda value, _: value.bit_count()),
    "__builtin_popcountll": _integral(lambda value, _: value.bit_count()),
    "popcount": _integral(lambda value, _: value.bit_count()),
    "bit_width": _integral(lambda value, _: value.bit_length()),
    "sqrt": _real(math.sqrt),
    "sqrtf": _real(math.sqrt, FLOAT),
    "rsqrt": _real(lambda value: 1 / math.sqrt(value)),
    "rsqrtf": _real(lambda value: 1 / math.sqrt(value), FLOAT),
    "cbrt": _real(lambda value: math.copysign(abs(value) ** (1 / 3), value)),
    "pow": _real(math.pow),
    "powf": _real(math.pow, FLOAT),
    "exp": _real(math.exp),
    "expf": _real(math.exp, FLOAT),
    "exp2": _real(lambda value: math.pow(2, value)),
    "exp2f": _real(lambda value: math.pow(2, value), FLOAT),
    "log": _real(math.log),
    "logf": _real(math.log, FLOAT),
    "log2": _real(math.log2),
    "log2f": _real(math.log2, FLOAT),
    "log10": _real(math.log10),
    "log10f": _real(math.log10, FLOAT),
    "ceil": _real(math.ceil),
    "ceilf": _real(math.ceil, FLOAT),
    "floor": _real(math.floor),
    "floorf": _real(math.floor, FLOAT),
    "trunc": _real(math.trunc),
    "round": _real(lambda value: math.copysign(math.floor(abs(value) + 0.5), value)),
    "roundf": _real(lambda value: math.copysign(math.floor(abs(value) + 0.5), value), FLOAT),
    "sin": _real(math.sin),
    "sinf": _real(math.sin, FLOAT),
    "cos": _real(math.cos),
    "cosf": _real(math.cos, FLOAT),
    "tan": _real(math.tan),
    "atan": _real(math.atan),
    "atan2": _real(math.atan2),
    "fmod": _real(math.fmod),
    "fmodf": _real(math.fmod, FLOAT),
}
"""Functions of the language and its library that have a value at compile time."""


def _make_constants() -> dict[str, Typed]:
    unsigned = UINT
    return {
        "warpSize": (32, INT),
        "CHAR_BIT": (8, INT),
        "SCHAR_MAX": (127, INT),
        "SCHAR_MIN": (-128, INT),
        "CHAR_MAX": (127, INT),
        "UCHAR_MAX": (255, INT),
        "SHRT_MAX": (32767, INT),
        "SHRT_MIN": (-32768, INT),
        "USHRT_MAX": (65535, INT),
        "INT_MAX": (2**31 - 1, INT),
        "INT_MIN": (-(2**31), INT),
        "UINT_MAX": (2**32 - 1, unsigned),
        "LONG_MAX": (2**63 - 1, _LONG),
        "LONG_MIN": (-(2**63), _LONG),
        "ULONG_MAX": (2**64 - 1, _ULONG),
        "LLONG_MAX": (2**63 - 1, _LONG),
        "LLONG_MIN": (-(2**63), _LONG),
        "ULLONG_MAX": (2**64 - 1, _ULONG),
        "SIZE_MAX": (2**64 - 1, _ULONG),
        "INT8_MAX": (127, INT),
        "INT8_MIN": (-128, INT),
        "INT16_MAX": (32767, INT),
        "INT16_MIN": (-32768, INT),
        "INT32_MAX": (2**31 - 1, INT),
        "INT32_MIN": (-(2**31), INT),
        "INT64_MAX": (2**63 - 1, _LONG),
        "INT64_MIN": (-(2**63), _LONG),
        "UINT8_MAX": (255, INT),
        "UINT16_MAX": (65535, INT),
        "UINT32_MAX": (2**32 - 1, unsigned),
        "UINT64_MAX": (2**64 - 1, _ULONG),
        "RAND_MAX": (2**31 - 1, INT),
        "EXIT_SUCCESS": (0, INT),
        "EXIT_FAILURE": (1, INT),
        "FLT_MAX": (3.4028234663852886e38, FLOAT),
        "FLT_MIN": (1.1754943508222875e-38, FLOAT),
        "FLT_EPSILON": (2.0**-23, FLOAT),
        "DBL_MAX": (1.7976931348623157e308, DOUBLE),
        "DBL_MIN": (2.2250738585072014e-308, DOUBLE),
        "DBL_EPSILON": (2.0**-52, DOUBLE),
        "INFINITY": (math.inf, FLOAT),
        "HUGE_VAL": (math.inf, DOUBLE),
        "HUGE_VALF": (math.inf, FLOAT),
        "CUDART_INF_F": (math.inf, FLOAT),
        "CUDART_INF": (math.inf, DOUBLE),
        "CUDART_PI_F": (math.pi, FLOAT),
        "CUDART_PI": (math.pi, DOUBLE),
        "M_PI": (math.pi, DOUBLE),
        "M_PI_2": (math.pi / 2, DOUBLE),
        "M_PI_4": (math.pi / 4, DOUBLE),
        "M_1_PI": (1 / math.pi, DOUBLE),
        "M_2_PI": (2 / math.pi, DOUBLE),
        "M_E": (math.e, DOUBLE),
        "M_LN2": (math.log(2), DOUBLE),
        "M_LN10": (math.log(10), DOUBLE),
        "M_LOG2E": (math.log2(math.e), DOUBLE),
        "M_SQRT2": (math.sqrt(2), DOUBLE),
        "M_SQRT1_2": (math.sqrt(0.5), DOUBLE),
        "M_2_SQRTPI": (2 / math.sqrt(math.pi), DOUBLE),
        "NULL": (0, INT),
    }


CONSTANTS = _make_constants()
"""Constants of the language's headers and of CUDA."""


def long_double(kind: Type) -> bool:
    """Whether a type is wider than the numbers kept here."""
    return kind is LONG_DOUBLE


def limit(kind: Type, name: str) -> Typed | None:
    """`std::numeric_limits<kind>::name`."""
    if kind.kind == "float":
        return _float_limit(kind, name)
    if not kind.is_integer or kind.size is None:
        return None
    bits = 1 if kind.kind == "bool" else 8 * kind.size
    signed = kind.kind == "int"
    top = (1 << (bits - signed)) - 1
    bottom = -(1 << (bits - 1)) if signed else 0
    table: dict[str, Typed] = {
        "max": (top, kind),
        "min": (bottom, kind),
        "lowest": (bottom, kind),
        "digits": (bits - signed, INT),
        "is_integer": (1, BOOL),
        "is_signed": (int(signed), BOOL),
        "is_specialized": (1, BOOL),
    }
    return table.get(name)


# (largest, smallest normal, epsilon, digits) by name
_FLOAT_LIMITS = {
    "float": (3.4028234663852886e38, 2.0**-126, 2.0**-23, 24),
    "double": (1.7976931348623157e308, 2.0**-1022, 2.0**-52, 53),
    "__half": (65504.0, 2.0**-14, 2.0**-10, 11),
    "__nv_bfloat16": (3.3895313892515355e38, 2.0**-126, 2.0**-7, 8),
    "__nv_fp8_e4m3": (448.0, 2.0**-6, 2.0**-3, 4),
    "__nv_fp8_e5m2": (57344.0, 2.0**-14, 2.0**-2, 3),
}


def _float_limit(kind: Type, name: str) -> Typed | None:
    limits = _FLOAT_LIMITS.get(kind.name)
    if limits is None:
        return None
    top, bottom, epsilon, digits = limits
    table: dict[str, Typed] = {
        "max": (top, kind),
        "lowest": (-top, kind),
        "min": (bottom, kind),
        "epsilon": (epsilon, kind),
        "infinity": (math.inf, kind),
        "digits": (digits, INT),
        "is_integer": (0, BOOL),
        "is_signed": (1, BOOL),
        "is_specialized": (1, BOOL),
    }
    return table.get(name)
