"""What is known of macros by their definitions: evidence for the masking pass, never a value.

The file's own `#define`s come first, then the project's (the nearest one to the
file), then a short list of well-known libraries whose headers are seldom at hand.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from pathlib import Path

from cudalint.source.code import COMMENT, CONTINUATION, WORD, closing, skip_space

Lookup = Callable[[bytes], "bytes | None"]
"""What follows a macro's name in its `#define` somewhere in the project; None for an unknown name."""

_DEFINE = re.compile(rb"#[ \t]*define[ \t]+([A-Za-z_]\w*)((?:[^\\\n]+|\\(?:[ \t]*\r?\n|.)?)*)", re.DOTALL)


def definitions(data: bytes) -> dict[bytes, bytes]:
    """The macros that a file defines: name to the text that follows it, parameters first for a function-like macro.

    Of several definitions the one that says most about the device wins (`__device__` over nothing).
    """
    found: dict[bytes, bytes] = {}
    if b"define" not in data:
        return found
    for match in _DEFINE.finditer(data):
        if data[data.rfind(b"\n", 0, match.start()) + 1 : match.start()].strip():
            continue  # in a comment
        name, text = match.groups()
        old = found.get(name)
        if old is None or _weight(text) > _weight(old):
            found[name] = text
    return found


def _weight(text: bytes) -> int:
    return 2 if b"__" in text else 1 if text.strip() else 0


class DefinitionIndex:
    """The macros of a project; of a name with several definitions, the one nearest to the file that asks."""

    def __init__(self) -> None:
        self._found: dict[bytes, list[tuple[tuple[str, ...], bytes]]] = {}

    def add(self, path: str, data: bytes) -> None:
        """Index the definitions of one file."""
        folder = _folder(path)
        for name, text in definitions(data).items():
            self._found.setdefault(name, []).append((folder, text))

    def lookup(self, path: str) -> Lookup:
        """Evidence for the file `path`."""
        return lambda name: self.find(name, path)

    def find(self, name: bytes, path: str) -> bytes | None:
        """What the definition nearest to the file `path` says; None for an unknown name."""
        found = self._found.get(name)
        if found is None or len(found) == 1:
            return found[0][1] if found else None
        folder = _folder(path)
        return max(found, key=lambda candidate: (_shared(candidate[0], folder), _weight(candidate[1])))[1]


@lru_cache(maxsize=8192)
def _folder(path: str) -> tuple[str, ...]:
    return Path(os.path.abspath(path)).parent.parts


def _shared(left: tuple[str, ...], right: tuple[str, ...]) -> int:
    """How many leading parts two folders have in common."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))


_PLAIN_SPECIFIERS = frozenset(
    b"inline static extern constexpr consteval constinit const volatile virtual explicit friend noexcept register "
    b"thread_local mutable restrict __restrict __restrict__ __inline __inline__ __forceinline __forceinline__ "
    b"__noinline__ __host__ __device__ __global__ __shared__ __constant__ __managed__ __grid_constant__ __nv_pure__ "
    b"__cdecl __stdcall __vectorcall __fastcall __device_builtin__ __cudart_builtin__ __extension__ __tile_builtin__ "
    b"__tile_global__".split()
)
CALLED_SPECIFIERS = frozenset(
    b"__attribute__ __attribute __declspec _Pragma __pragma alignas _Alignas __align__ __launch_bounds__ "
    b"__cluster_dims__ __block_size__ __maxnreg__ __annotate__ noexcept explicit".split()
)
VISIBLE = (b"__global__", b"__shared__", b"__constant__", b"__device__")
"""Specifiers that are written over a macro that stands for them, where they fit."""

_EXTERNAL_GROUPS: dict[bytes, bytes] = {
    b" __device__": b"CUTLASS_DEVICE CUTE_DEVICE C10_DEVICE RAFT_DEVICE_INLINE_FUNCTION AMREX_GPU_DEVICE _CCCL_DEVICE "
    b"_CCCL_DEVICE_API XGBOOST_DEVICE FLASHINFER_INLINE THRUST_DEVICE_FUNCTION CUB_DEVICE",
    b" __host__ __device__": b"CUTLASS_HOST_DEVICE CUTE_HOST_DEVICE CUTE_HOST_RTC C10_HOST_DEVICE CUDF_HOST_DEVICE "
    b"RAFT_INLINE_FUNCTION EIGEN_DEVICE_FUNC KOKKOS_FUNCTION KOKKOS_INLINE_FUNCTION KOKKOS_FORCEINLINE_FUNCTION "
    b"AMREX_GPU_HOST_DEVICE _CCCL_HOST_DEVICE _CCCL_API TCNN_HOST_DEVICE MSHADOW_XINLINE TORCH_HOST_DEVICE "
    b"CUB_RUNTIME_FUNCTION THRUST_RUNTIME_FUNCTION THRUST_FUNCTION HOSTDEVICE CUCO_HOST_DEVICE_INLINE",
    b" __global__": b"CUTLASS_GLOBAL AMREX_GPU_GLOBAL",
    b" static __global__": b"CUDF_KERNEL",
    b" static __global__ void": b"RAFT_KERNEL",
    b" __global__ static": b"CUB_DETAIL_KERNEL_ATTRIBUTES CCCL_DETAIL_KERNEL_ATTRIBUTES _CCCL_KERNEL_ATTRIBUTES",
    b' _Pragma("unroll")': b"CUTLASS_PRAGMA_UNROLL CUTE_UNROLL EIGEN_UNROLL_LOOP CUTLASS_GEMM_LOOP",
    b' _Pragma("unroll 1")': b"CUTLASS_PRAGMA_NO_UNROLL CUTE_NO_UNROLL",
    b'() _Pragma("unroll")': b"_CCCL_PRAGMA_UNROLL_FULL",
    b"(n) _Pragma(unroll n)": b"_CCCL_PRAGMA_UNROLL",
    b" __grid_constant__": b"CUTLASS_GRID_CONSTANT CUTE_GRID_CONSTANT _CCCL_GRID_CONSTANT",
    b" __restrict__": b"CUTLASS_RESTRICT CUTE_RESTRICT",
    b"(...) __launch_bounds__(__VA_ARGS__)": b"C10_LAUNCH_BOUNDS_1 C10_LAUNCH_BOUNDS_2 RAFT_LAUNCH_BOUNDS "
    b"CUB_LAUNCH_BOUNDS _CCCL_LAUNCH_BOUNDS CUTLASS_LAUNCH_BOUNDS",
    b"(n) alignas(n)": b"CUTLASS_ALIGNAS CUTE_ALIGNAS CUB_ALIGN _ALIGNAS C10_ALIGNAS",
    b"(n) __align__(n)": b"__CUDA_ALIGN__ CUDA_ALIGN",
    b"(...) alignas(16)": b"_ALIGNAS_TYPE",
    b" static constexpr": b"CUTE_STATIC_CONSTEXPR",
    b" inline": b"CUTLASS_HOST CUTE_HOST C10_HOST C10_ALWAYS_INLINE C10_NOINLINE CUB_HOST CUTE_INLINE _CCCL_HOST "
    b"_CCCL_HOST_API _CCCL_FORCEINLINE _CCCL_NODEBUG_API THRUST_HOST_FUNCTION EIGEN_STRONG_INLINE EIGEN_ALWAYS_INLINE "
    b"TORCH_API TORCH_CUDA_CU_API C10_API C10_EXPORT C10_CUDA_API C10_UNUSED C10_HIDDEN RMM_EXPORT CUDF_EXPORT "
    b"RAFT_EXPORT RMM_HIDDEN CUDF_HIDDEN CUTLASS_CONSTEXPR_IF_CXX17 CUTLASS_CONSTEXPR_IF_CXX20 CUTLASS_ATTRIBUTE_WEAK "
    b"_CCCL_HIDE_FROM_ABI _LIBCUDACXX_HIDE_FROM_ABI _CCCL_VISIBILITY_HIDDEN _CCCL_VISIBILITY_DEFAULT _CCCL_TRIVIAL_API "
    b"_CCCL_TYPE_VISIBILITY_DEFAULT _LIBCUDACXX_INLINE_VISIBILITY AMREX_FORCE_INLINE AMREX_INLINE AT_CUDA_API "
    b"TORCH_CUDA_CPP_API TORCH_PYTHON_API CUTLASS_DEPRECATED CUB_FORCE_INLINE CUDART_CB CUDARTAPI CUDAAPI CUDA_CB "
    b"CUDNNWINAPI VKAPI_ATTR VKAPI_CALL VKAPI_PTR WINAPI CALLBACK APIENTRY",
}
"""Macros of well-known libraries, whose headers are seldom at hand, by what follows their names in the definition."""

_EXTERNAL = {name: text for text, names in _EXTERNAL_GROUPS.items() for name in names.split()}

LAMBDA_MACRO = re.compile(rb"[A-Z]\w*_(?:CLASS_)?LAMBDA\Z")
MACRO_NAME = re.compile(rb"_{0,2}[A-Z][A-Z0-9_]{2,}\Z")
_BODY_ITEM = re.compile(rb"\s*(?:([A-Za-z_]\w*)|(\[\[)|(\"C\"))")
KEYWORDS = frozenset(
    b"alignas alignof and asm auto bool break case catch char class const constexpr continue decltype default delete do double "
    b"else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not nullptr "
    b"operator or private protected public register return short signed sizeof static struct switch template this throw true try "
    b"typedef typeid typename union unsigned using virtual void volatile while defined".split()
)


@dataclass(frozen=True, slots=True)
class Specifiers:
    """A macro that stands for specifiers, attributes or pragmas only.

    tokens      (specifier, argument text) in order; pragmas are ("pragma", text)
    params      of a function-like macro, else None
    names       the first argument is the function's name, its parameters follow in brackets of their own ("name") or as
                the other arguments ("all"); "" if the macro does not name a function
    """

    tokens: tuple[tuple[bytes, bytes], ...]
    params: tuple[bytes, ...] | None
    names: str = ""


class Evidence:
    """What is known of macros, by name."""

    def __init__(self, data: bytes, lookup: Lookup | None) -> None:
        self._data = data
        self._definitions: dict[bytes, bytes] | None = None
        self._lookup = lookup
        self._cache: dict[bytes, Specifiers | None] = {}
        self._texts: dict[bytes, bytes | None] = {}

    @property
    def own(self) -> Mapping[bytes, bytes]:
        """The definitions of the file itself."""
        if self._definitions is None:
            self._definitions = definitions(self._data)
        return self._definitions

    def text(self, name: bytes) -> bytes | None:
        """What follows the name in its definition."""
        if name not in self._texts:
            found = self.own.get(name)
            if found is None and self._lookup is not None and name not in KEYWORDS:
                found = self._lookup(name)
            self._texts[name] = found
        return self._texts[name]

    def specifiers(self, name: bytes, depth: int = 8) -> Specifiers | None:
        """The meaning of a macro that consists of specifiers only (or of nothing)."""
        if name in self._cache:
            return self._cache[name]
        self._cache[name] = None  # a macro that refers to itself has no meaning
        meaning = None
        for text in (self.text(name), _EXTERNAL.get(name)):
            if text is not None and depth and meaning is None:
                meaning = self._read(text, depth - 1)
        own = name in self.own or MACRO_NAME.match(name) is not None
        if meaning is not None and not own and not any(token.startswith(b"__") for token, _ in meaning.tokens):
            meaning = None
        self._cache[name] = meaning
        return meaning

    def _read(self, text: bytes, depth: int) -> Specifiers | None:
        body = COMMENT.sub(b" ", CONTINUATION.sub(b" ", text))
        params: tuple[bytes, ...] | None = None
        if body.startswith(b"("):
            end = body.find(b")")
            if end < 0:
                return None
            params = tuple(part.strip() for part in body[1:end].split(b",")) if body[1:end].strip() else ()
            body = body[end + 1 :]
        body, names = _split_name(body.strip(), params)
        tokens = self._tokens(body, depth)
        if tokens is None or (names and all(name != b"__global__" for name, _ in tokens)):
            return None
        return Specifiers(tuple(tokens), params, names)

    def _tokens(self, body: bytes, depth: int) -> list[tuple[bytes, bytes]] | None:
        tokens: list[tuple[bytes, bytes]] = []
        position = 0
        while position < len(body):
            item = _BODY_ITEM.match(body, position)
            if item is None:
                return None
            position = item.end()
            if item[2]:
                position = body.find(b"]]", position) + 2
                if position < 2:
                    return None
                continue
            if item[3]:
                continue
            word, argument = item[1], None
            after = skip_space(body, position)
            if body[after : after + 1] == b"(" and word not in _PLAIN_SPECIFIERS - CALLED_SPECIFIERS:
                end = closing(body, after)
                if end < 0:
                    return None
                argument, position = body[after + 1 : end], end + 1
            nested = self._token(word, argument, depth)
            if nested is None and not (word == b"void" and any(token == b"__global__" for token, _ in tokens)):
                return None
            tokens += nested or []
        return tokens

    def _token(self, word: bytes, argument: bytes | None, depth: int) -> list[tuple[bytes, bytes]] | None:
        if word in (b"_Pragma", b"__pragma"):
            return [(b"pragma", (argument or b"").strip().strip(b'"'))]
        if word in (_PLAIN_SPECIFIERS if argument is None else CALLED_SPECIFIERS):
            return [(word, argument or b"")]
        inner = self.specifiers(word, depth)
        return None if inner is None else list(inner.tokens)


def _split_name(body: bytes, params: tuple[bytes, ...] | None) -> tuple[bytes, str]:
    """`__global__ void name(__VA_ARGS__)`: what stands before the name, and how the parameters come."""
    if not params or not params[0]:
        return body, ""
    match = re.search(rb"(?<![\w#])" + re.escape(params[0]) + rb"\s*(\(\s*__VA_ARGS__\s*\))?\s*\Z", body)
    if match is None:
        return body, ""
    return body[: match.start()].rstrip(), "all" if match[1] else "name"


def substitute(argument: bytes, params: tuple[bytes, ...] | None, text: bytes) -> bytes:
    """The argument of a specifier with the parameters of its macro replaced."""
    if not params:
        return argument
    if b"__VA_ARGS__" in argument or params[-1].endswith(b"..."):
        argument = argument.replace(b"__VA_ARGS__", text)
    values = dict(zip(params, (part.strip() for part in text.split(b",")), strict=False))
    return WORD.sub(lambda match: values.get(match[0], match[0]), argument)
