"""The templates of the standard library that decide types and constants, and its few containers with a layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cudalint.semantics import arithmetic
from cudalint.semantics.builtin_types import SCHAR, SHORT, UCHAR, ULONG, USHORT
from cudalint.semantics.literals import Typed
from cudalint.semantics.types import BOOL, INT, INT64, UINT, UINT64, UNKNOWN, VOID, Field, Type, array_of, pointer_to

Argument = object | None


@dataclass(slots=True, eq=False)
class Trait:
    """The members of a standard template in one instantiation; stands as `Type.record` of a type without layout."""

    types: dict[str, Type] = field(default_factory=dict)
    values: dict[str, Typed] = field(default_factory=dict)
    limits: Type | None = None

    def call(self, name: str) -> Typed | None:
        """A static member function such as `std::numeric_limits<T>::max`."""
        return arithmetic.limit(self.limits, name) if self.limits is not None else self.values.get(name)

    def value(self, name: str) -> Typed | None:
        """A static data member."""
        found = self.values.get(name)
        return found if found is not None or self.limits is None else arithmetic.limit(self.limits, name)


def _type(arguments: Sequence[Argument], position: int = 0) -> Type | None:
    found = arguments[position] if position < len(arguments) else None
    return found if isinstance(found, Type) else None


def _number(arguments: Sequence[Argument], position: int = 0) -> int | None:
    found = arguments[position] if position < len(arguments) else None
    return int(found) if isinstance(found, (int, float)) else None


def _gives(kind: Type | None) -> Trait | None:
    return Trait({"type": kind}) if kind is not None else None


def _says(value: bool | int | None, kind: Type = BOOL) -> Trait | None:
    return None if value is None else Trait({"type": kind}, {"value": (int(value), kind)})


def _identity(arguments: Sequence[Argument]) -> Trait | None:
    return _gives(_type(arguments))


def _decay(arguments: Sequence[Argument]) -> Trait | None:
    kind = _type(arguments)
    if kind is not None and kind.kind == "array" and kind.element is not None:
        kind = pointer_to(kind.element)
    return _gives(kind)


def _remove_pointer(arguments: Sequence[Argument]) -> Trait | None:
    kind = _type(arguments)
    return _gives(kind.element if kind is not None and kind.kind == "pointer" and kind.element is not None else kind)


def _remove_extent(arguments: Sequence[Argument]) -> Trait | None:
    kind = _type(arguments)
    return _gives(kind.element if kind is not None and kind.kind == "array" and kind.element is not None else kind)


def _add_pointer(arguments: Sequence[Argument]) -> Trait | None:
    kind = _type(arguments)
    return _gives(pointer_to(kind) if kind is not None else None)


def _conditional(arguments: Sequence[Argument]) -> Trait | None:
    condition = _number(arguments)
    return None if condition is None else _gives(_type(arguments, 1 if condition else 2))


def _enable_if(arguments: Sequence[Argument]) -> Trait | None:
    condition = _number(arguments)
    if condition == 0:
        return None
    return _gives((_type(arguments, 1) or UNKNOWN) if len(arguments) > 1 else VOID)


def _common(arguments: Sequence[Argument]) -> Trait | None:
    kinds = [kind for kind in arguments if isinstance(kind, Type)]
    if not kinds or len(kinds) != len(arguments):
        return None
    result = kinds[0]
    for kind in kinds[1:]:
        result = result if kind == result else arithmetic.common_type(result, kind)
    return _gives(result)


_SIGNED = {1: SCHAR, 2: SHORT, 4: INT, 8: INT64}
_UNSIGNED = {1: UCHAR, 2: USHORT, 4: UINT, 8: UINT64}


def _signed(table: dict[int, Type]) -> Callable[[Sequence[Argument]], Trait | None]:
    def apply(arguments: Sequence[Argument]) -> Trait | None:
        kind = _type(arguments)
        return _gives(table.get(kind.size or 0)) if kind is not None and kind.is_integer else None

    return apply


def _integral_constant(arguments: Sequence[Argument]) -> Trait | None:
    kind, value = _type(arguments), _number(arguments, 1)
    if kind is None or value is None:
        return None
    return Trait({"value_type": kind}, {"value": (value, kind)})


def _bool_constant(arguments: Sequence[Argument]) -> Trait | None:
    return _says(_number(arguments))


def _is_same(arguments: Sequence[Argument]) -> Trait | None:
    left, right = _type(arguments), _type(arguments, 1)
    if left is None or right is None or "unknown" in (left.kind, right.kind):
        return None
    if left.record is not None or right.record is not None:
        return _says(left.record is right.record)
    return _says(left == right)


def _about(test: Callable[[Type], bool]) -> Callable[[Sequence[Argument]], Trait | None]:
    def apply(arguments: Sequence[Argument]) -> Trait | None:
        kind = _type(arguments)
        return None if kind is None or kind.kind == "unknown" else _says(test(kind))

    return apply


def _conjunction(arguments: Sequence[Argument]) -> Trait | None:
    return _logic(arguments, True)


def _disjunction(arguments: Sequence[Argument]) -> Trait | None:
    return _logic(arguments, False)


def _logic(arguments: Sequence[Argument], wanted: bool) -> Trait | None:
    for argument in arguments:
        value = _member_value(argument)
        if value is None:
            return None
        if bool(value) != wanted:
            return _says(not wanted)
    return _says(wanted)


def _negation(arguments: Sequence[Argument]) -> Trait | None:
    value = _member_value(arguments[0]) if arguments else None
    return None if value is None else _says(not value)


def _member_value(argument: Argument) -> int | float | None:
    if isinstance(argument, Type) and isinstance(argument.record, Trait):
        found = argument.record.value("value")
        return found[0] if found is not None else None
    return None


def _limits(arguments: Sequence[Argument]) -> Trait | None:
    kind = _type(arguments)
    return Trait(limits=kind) if kind is not None else None


def _is_class(kind: Type) -> bool:
    return kind.kind == "struct"


# the library's own notion: half and bfloat16 are classes there
_STANDARD_FLOATS = frozenset(("float", "double", "long double"))


def _is_floating(kind: Type) -> bool:
    return kind.name in _STANDARD_FLOATS


def _is_arithmetic(kind: Type) -> bool:
    return kind.is_integer or _is_floating(kind)


TRAITS: dict[str, Callable[[Sequence[Argument]], Trait | None]] = {
    **dict.fromkeys(
        (
            "remove_reference",
            "remove_cv",
            "remove_const",
            "remove_volatile",
            "remove_cvref",
            "add_const",
            "add_cv",
            "add_lvalue_reference",
            "add_rvalue_reference",
            "type_identity",
        ),
        _identity,
    ),
    "decay": _decay,
    "remove_pointer": _remove_pointer,
    "remove_extent": _remove_extent,
    "add_pointer": _add_pointer,
    "conditional": _conditional,
    "enable_if": _enable_if,
    "common_type": _common,
    "make_signed": _signed(_SIGNED),
    "make_unsigned": _signed(_UNSIGNED),
    "integral_constant": _integral_constant,
    "bool_constant": _bool_constant,
    "is_same": _is_same,
    "is_integral": _about(lambda kind: kind.is_integer),
    "is_floating_point": _about(_is_floating),
    "is_arithmetic": _about(_is_arithmetic),
    "is_scalar": _about(lambda kind: _is_arithmetic(kind) or kind.kind == "pointer"),
    "is_pointer": _about(lambda kind: kind.kind == "pointer"),
    "is_array": _about(lambda kind: kind.kind == "array"),
    "is_void": _about(lambda kind: kind.kind == "void"),
    "is_class": _about(_is_class),
    "is_signed": _about(lambda kind: kind.kind == "int" or _is_floating(kind)),
    "is_unsigned": _about(lambda kind: kind.kind in ("uint", "bool")),
    "conjunction": _conjunction,
    "disjunction": _disjunction,
    "negation": _negation,
    "numeric_limits": _limits,
}


def _array(arguments: Sequence[Argument]) -> Type | None:
    kind = _type(arguments)
    return array_of(kind, _number(arguments, 1)) if kind is not None else None


def _pair(arguments: Sequence[Argument]) -> Type | None:
    kinds = [kind for kind in arguments if isinstance(kind, Type)]
    return structure("std::pair", list(zip(("first", "second"), kinds, strict=True))) if len(kinds) == 2 else None


def _complex(arguments: Sequence[Argument]) -> Type | None:
    kind = _type(arguments)
    if kind is None or kind.size is None:
        return None
    laid = (Field("x", 0, kind), Field("y", kind.size, kind))
    return Type("struct", 2 * kind.size, 2 * kind.size, f"complex<{kind.name}>", fields=laid)


def _atomic(arguments: Sequence[Argument]) -> Type | None:
    return _type(arguments)


def _span(arguments: Sequence[Argument]) -> Type | None:
    kind = _type(arguments)
    if kind is None:
        return None
    members = [("data", pointer_to(kind))] if _number(arguments, 1) is not None else [("data", pointer_to(kind)), ("size", ULONG)]
    return structure(f"span<{kind.name}>", members)


def _barrier(_: Sequence[Argument]) -> Type:
    return Type("struct", 8, 8, "cuda::barrier")


def _pipeline_state(arguments: Sequence[Argument]) -> Type | None:
    stages = _number(arguments, 1)
    return None if stages is None else Type("struct", 8 + 16 * stages, 8, "cuda::pipeline_shared_state")


def _block_reduce(arguments: Sequence[Argument]) -> Type | None:
    """The default algorithm keeps a byte per warp, an aggregate per warp and one for the block."""
    kind, threads = _type(arguments), _number(arguments, 1)
    if kind is None or threads is None or kind.size is None or len(arguments) > 2:
        return None
    warps = -(-threads // 32)
    flags = -(-warps // kind.align) * kind.align
    return Type("struct", flags + (warps + 1) * kind.size, kind.align, "cub::BlockReduce::TempStorage")


def _warp_reduce(arguments: Sequence[Argument]) -> Type | None:
    """Shuffles need no memory."""
    return Type("struct", 1, 1, "cub::WarpReduce::TempStorage") if len(arguments) == 1 else None


STORAGE: dict[str, Callable[[Sequence[Argument]], Type | None]] = {"BlockReduce": _block_reduce, "WarpReduce": _warp_reduce}
"""The shared memory that collectives of CUB need, by template, where it is known."""


def storage_of(name: str, arguments: Sequence[Argument]) -> Trait | None:
    """The members of a collective of CUB whose shared memory is known."""
    kind = STORAGE[name](arguments) if name in STORAGE else None
    return Trait({"TempStorage": kind}) if kind is not None else None


CONTAINERS: dict[str, Callable[[Sequence[Argument]], Type | None]] = {
    "array": _array,
    "pair": _pair,
    "complex": _complex,
    "atomic": _atomic,
    "atomic_ref": lambda arguments: pointer_to(kind) if (kind := _type(arguments)) is not None else None,
    "span": _span,
    "barrier": _barrier,
    "pipeline_shared_state": _pipeline_state,
    "device_ptr": lambda arguments: pointer_to(kind) if (kind := _type(arguments)) is not None else None,
    "unique_ptr": lambda arguments: pointer_to(kind) if (kind := _type(arguments)) is not None else None,
}


def structure(name: str, members: list[tuple[str, Type]]) -> Type:
    """A struct with these members one after the other."""
    fields: list[Field] = []
    offset: int | None = 0
    align = 1
    for member, kind in members:
        align = max(align, kind.align)
        if offset is not None:
            offset = -(-offset // kind.align) * kind.align
        fields.append(Field(member, offset, kind))
        offset = None if offset is None or kind.size is None else offset + kind.size
    size = None if offset is None else max(1, -(-offset // align) * align)
    return Type("struct", size, align, name, fields=tuple(fields))


def standard_type(name: str, arguments: Sequence[Argument]) -> Type | None:
    """The type that a standard template such as `conditional_t<…>`, `array<T, N>` or `is_same<T, U>` stands for."""
    if name in CONTAINERS:
        return CONTAINERS[name](arguments)
    if name.endswith("_t") and name[:-2] in TRAITS:
        trait = TRAITS[name[:-2]](arguments)
        return trait.types.get("type") if trait is not None else None
    if name in TRAITS:
        trait = TRAITS[name](arguments)
        return None if trait is None else Type("unknown", None, 1, name, record=trait)
    return None


def trait_value(name: str, arguments: Sequence[Argument]) -> Typed | None:
    """The value of a variable template such as `is_same_v<T, U>`."""
    if not name.endswith("_v") or name[:-2] not in TRAITS:
        return None
    trait = TRAITS[name[:-2]](arguments)
    return trait.value("value") if trait is not None else None


PLAIN: dict[str, Type] = {
    "barrier": Type("struct", 8, 8, "barrier"),
    "true_type": Type("unknown", None, 1, "true_type", record=Trait({}, {"value": (1, BOOL)})),
    "false_type": Type("unknown", None, 1, "false_type", record=Trait({}, {"value": (0, BOOL)})),
}
"""Standard types without arguments."""
