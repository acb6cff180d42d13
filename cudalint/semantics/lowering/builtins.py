"""Functions that CUDA and the standard library provide: what they become, or the type of their value."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from tree_sitter import Node

from cudalint.semantics import ir
from cudalint.semantics.lowering import values
from cudalint.semantics.lowering.context import Context
from cudalint.semantics.types import BOOL, DOUBLE, FLOAT, INT, INT64, UINT, UINT64, UNKNOWN, VOID, Type

Handler = Callable[[Context, Node, str, Sequence[ir.Expr]], "ir.Expr | None"]

STANDARD = frozenset(("", "std", "::std", "cuda::std", "::cuda::std", "thrust", "::thrust", "::"))

HANDLERS: dict[str, Handler] = {}


def _handles(*names: str) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return register


@_handles("min", "max", "umin", "umax", "llmin", "llmax", "ullmin", "ullmax")
def _minimum(ctx: Context, node: Node, name: str, args: Sequence[ir.Expr]) -> ir.Expr | None:
    if len(args) != 2 or not all(a.type.is_integer for a in args):
        return None
    return values.binary(name[-3:], args[0], args[1], *ctx.span(node))


@_handles("__mul24", "__umul24", "mul24", "umul24")
def _product(ctx: Context, node: Node, _: str, args: Sequence[ir.Expr]) -> ir.Expr | None:
    return values.binary("*", args[0], args[1], *ctx.span(node)) if len(args) == 2 else None


@_handles("__ldg", "__ldcg", "__ldca", "__ldcs", "__ldlu", "__ldcv", "__builtin_nontemporal_load")
def _load(ctx: Context, node: Node, name: str, args: Sequence[ir.Expr]) -> ir.Expr | None:
    if len(args) != 1:
        return None
    pointer = values.decay(args[0])
    return values.load(pointer, *ctx.span(node), name) if pointer.type.kind in ("pointer", "unknown") else None


@_handles("__stwb", "__stcg", "__stcs", "__stwt")
def _store(ctx: Context, node: Node, _: str, args: Sequence[ir.Expr]) -> ir.Expr | None:
    if len(args) != 2:
        return None
    pointer, value = values.decay(args[0]), values.decay(args[1])
    ctx.effects += 1
    return ir.Assign(*ctx.span(node), pointer.type.element or value.type, pointer, value, memory=True)


@_handles("move", "forward", "as_const", "__builtin_expect", "launder")
def _same(_ctx: Context, _node: Node, _name: str, args: Sequence[ir.Expr]) -> ir.Expr | None:
    return args[0] if args else None


@_handles("addressof", "__addressof", "__builtin_addressof")
def _address(ctx: Context, _node: Node, _name: str, args: Sequence[ir.Expr]) -> ir.Expr | None:
    return ctx.address(args[0]) if len(args) == 1 else None


@_handles("swap", "cuda_swap")
def _swap(ctx: Context, node: Node, _: str, args: Sequence[ir.Expr]) -> ir.Expr | None:
    if len(args) != 2 or not all(isinstance(a, ir.Var) for a in args):
        return None
    start, end = ctx.span(node)
    first, second = args
    holder = ir.Symbol("(swapped)", first.type, "register", ctx.path, start, end)
    kept = ir.Var(start, end, first.type, holder)
    ctx.effects += 1
    moves = ((kept, first), (first, second), (second, kept))
    steps = [ir.Assign(start, end, first.type, target, value) for target, value in moves]
    rest = ir.Binary(start, end, first.type, ",", steps[1], steps[2])
    return ir.Binary(start, end, first.type, ",", steps[0], rest)


_MAKE = re.compile(r"make_((?:u?(?:char|short|int|long|longlong)|float|double|half|bfloat16|bfloat16_)[1-4])$")


def made_vector(ctx: Context, name: str) -> Type | None:
    """The vector type that `make_float4` and its like make."""
    found = _MAKE.match(name)
    if found is None:
        return None
    spelled = found.group(1)
    return ctx.scope.type({"bfloat162": "__nv_bfloat162"}.get(spelled, spelled))


# ------------------------------------------------------------- types of values


_Result = TypeVar("_Result")


def _table(rows: Sequence[tuple[_Result, str]]) -> dict[str, _Result]:
    """Names in rows of (what they have in common, the names)."""
    return {name: result for result, names in rows for name in names.split()}


_DOUBLE_MATH = frozenset(
    _table(
        (
            (
                "double",
                """acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi erf erfc erfcinv erfcx erfinv
                exp exp10 exp2 expm1 fabs fdim floor fma fmax fmin fmod hypot j0 j1 ldexp lgamma log log10 log1p log2 logb
                nearbyint nextafter norm3d norm4d normcdf pow rcbrt remainder rhypot rint rnorm3d round rsqrt scalbn sin
                sinh sinpi sqrt tan tanh tgamma trunc y0 y1 fdivide frexp modf""",
            ),
        )
    )
)
_TYPED: dict[str, Type] = {
    **dict.fromkeys((name + "f" for name in _DOUBLE_MATH), FLOAT),
    **_table(
        (
            (
                FLOAT,
                """__sinf __cosf __tanf __expf __exp10f __logf __log2f __log10f __powf __fdividef __saturatef __frcp_rn
                __frcp_rz __fsqrt_rn __fsqrt_rz __frsqrt_rn __fadd_rn __fadd_rz __fsub_rn __fmul_rn __fmul_rz __fmaf_rn
                __fmaf_rz __fdiv_rn curand_uniform curand_normal __half2float __low2float __high2float __bfloat162float
                __int_as_float __uint_as_float __int2float_rn __int2float_rz __uint2float_rn __uint2float_rz
                __double2float_rn __ll2float_rn __ull2float_rn""",
            ),
            (
                DOUBLE,
                """__dadd_rn __dsub_rn __dmul_rn __ddiv_rn __fma_rn __drcp_rn __dsqrt_rn __hiloint2double __int2double_rn
                __uint2double_rn __ll2double_rn __ull2double_rn __longlong_as_double curand_uniform_double
                curand_normal_double""",
            ),
            (
                INT,
                """__popc __popcll __ffs __ffsll __clz __clzll __all __any __all_sync __any_sync __float2int_rn
                __float2int_rz __float2int_rd __float2int_ru __float_as_int __double2int_rn __double2int_rz
                __syncthreads_count __syncthreads_and __syncthreads_or __dp4a __dp2a_lo __dp2a_hi __mulhi __sad __rhadd
                __double2hiint __double2loint isnan isinf isfinite signbit printf ilogbf ilogb""",
            ),
            (
                UINT,
                """__ballot __ballot_sync __activemask __match_any_sync __match_all_sync __brev __byte_perm __umulhi
                __float2uint_rn __float2uint_rz __float_as_uint __funnelshift_l __funnelshift_r __funnelshift_lc
                __funnelshift_rc __usad __vadd2 __vadd4 __vsub2 __vsub4 __vabsdiffu4 __vcmpgtu4 __vmaxu4 __vminu4 __fns
                __isGlobal __isShared curand""",
            ),
            (INT64, "clock clock64 __mul64hi __double2ll_rn __double2ll_rz __float2ll_rn __float2ll_rz __double_as_longlong"),
            (INT64, "lroundf lrintf llroundf llrintf lround lrint llround llrint"),
            (
                UINT64,
                """__cvta_generic_to_shared __cvta_generic_to_global __cvta_generic_to_local __brevll __umul64hi
                __double2ull_rn __float2ull_rn""",
            ),
            (BOOL, "__heq __hne __hlt __hle __hgt __hge __hisnan"),
            (
                VOID,
                """__syncthreads __syncwarp __threadfence __threadfence_block __threadfence_system __trap __nanosleep
                sincosf sincos __sincosf sincospif __pipeline_commit __pipeline_wait_prior __pipeline_memcpy_async assert
                __assert_fail __builtin_assume __builtin_unreachable curand_init cudaTriggerProgrammaticLaunchCompletion
                cudaGridDependencySynchronize load_matrix_sync store_matrix_sync mma_sync fill_fragment""",
            ),
        )
    ),
}
_OF_ARGUMENT = _table(
    (
        (
            0,
            """__shfl __shfl_up __shfl_down __shfl_xor abs labs llabs __hadd __hsub __hmul __hfma __hneg __habs __hadd2
            __hsub2 __hmul2 __hfma2 __hmax __hmin __hmax2 __hmin2 __hneg2 __habs2 __h2div h2div hsqrt h2sqrt hexp h2exp hlog
            h2rcp min max clamp
            __builtin_assume_aligned""",
        ),
        (
            1,
            """__shfl_sync __shfl_up_sync __shfl_down_sync __shfl_xor_sync __reduce_add_sync __reduce_min_sync
            __reduce_max_sync __reduce_and_sync __reduce_or_sync __reduce_xor_sync""",
        ),
    )
)
_NAMED = _table(
    (
        (
            "half",
            """__float2half __float2half_rn __float2half_rz __double2half __low2half __high2half __int2half_rn
            __uint2half_rn __ushort_as_half __short_as_half""",
        ),
        (
            "half2",
            """__float2half2_rn __floats2half2_rn __float22half2_rn __half2half2 __halves2half2 __low2half2 __high2half2
            __lows2half2 __highs2half2 __lowhigh2highlow""",
        ),
        ("__nv_bfloat16", "__float2bfloat16 __float2bfloat16_rn __low2bfloat16 __high2bfloat16"),
        ("__nv_bfloat162", "__float2bfloat162_rn __floats2bfloat162_rn __bfloat162bfloat162 __halves2bfloat162"),
        ("unsigned short", "__half_as_ushort __half2ushort_rn"),
        ("short", "__half_as_short __half2short_rn"),
        ("float2", "__half22float2 __bfloat1622float2 curand_normal2 make_cuComplex make_cuFloatComplex cuCaddf cuCmulf cuCsubf"),
        ("double2", "make_cuDoubleComplex cuCadd cuCmul cuCsub curand_normal2_double"),
        ("float4", "curand_uniform4 curand_normal4"),
        ("uint4", "curand4"),
    )
)
_FETCHES = re.compile(r"(?:tex(?:1D|2D|3D|Cubemap)\w*|surf(?:1D|2D|3D)\w*read)$")
_TEXTURE = re.compile(r"texture\s*<\s*([^,<>]+)")
_ATOMIC = re.compile(r"atomic[A-Z]\w*$")


def is_intrinsic(name: str) -> bool:
    """Whether CUDA itself provides the function, so that no project is asked for it."""
    if name in _TYPED or name in _NAMED or name in _DOUBLE_MATH or _ATOMIC.match(name):
        return True
    return name.startswith("__") and name in _OF_ARGUMENT


def result_type(ctx: Context, name: str, args: Sequence[ir.Expr], explicit: Sequence[object]) -> Type:
    """The type of a provided function's value, UNKNOWN where it is not known here."""
    known = _TYPED.get(name)
    if known is not None:
        return known
    if name in _NAMED:
        return ctx.scope.type(_NAMED[name]) or UNKNOWN
    position = _OF_ARGUMENT.get(name)
    if position is not None:
        if name in ("min", "max", "clamp") and len(args) >= 2:
            return values.arithmetic_type(args[0].type, args[1].type)
        return args[position].type if position < len(args) else UNKNOWN
    if name in _DOUBLE_MATH:
        return _math_type(args)
    if _ATOMIC.match(name):
        return (args[0].type.element or UNKNOWN) if args else UNKNOWN
    if _FETCHES.match(name):
        return _fetched(ctx, args, explicit)
    return UNKNOWN


def _fetched(ctx: Context, args: Sequence[ir.Expr], explicit: Sequence[object]) -> Type:
    """The type of a texel: said by the call, or by the type of a texture reference."""
    if explicit and isinstance(explicit[0], Type):
        return explicit[0]
    found = _TEXTURE.match(args[0].type.name) if args else None
    return (ctx.scope.type(found.group(1).strip()) if found is not None else None) or UNKNOWN


def _math_type(args: Sequence[ir.Expr]) -> Type:
    """Overloads of <cmath>: float for float, half for half, double for the rest that is known."""
    types = [a.type for a in args]
    if any(t.kind == "float" and t.size == 8 for t in types):
        return DOUBLE
    first = next((t for t in types if t.kind not in ("int", "uint", "bool")), None)
    if first is None:
        return DOUBLE if types else UNKNOWN
    return first
