"""Types of CUDA C++ as far as addresses need them: sizes, alignments, elements and fields.

Sizes are in bytes, for the 64-bit Linux ABI that nvcc uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["int", "uint", "float", "bool", "pointer", "array", "struct", "void", "unknown"]


@dataclass(frozen=True, slots=True)
class Field:
    """A member of a struct at `offset` bytes, None behind a member of unknown size."""

    name: str
    offset: int | None
    type: Type


@dataclass(slots=True)
class Type:
    """One type.

    size     bytes, None where unknown (also for arrays of unknown length)
    element  pointee, or element of an array (the next row of a matrix)
    count    length of an array, None where unknown
    fields   members of a struct; vector types such as float4 are structs with x, y, z, w
    name     as a person would write it
    record   for structs of the source the semantics layer's `Record` (definition and template arguments), which also
             identifies them: a struct that is only named (in itself, behind a pointer) has no size and no fields yet
    """

    kind: Kind
    size: int | None
    align: int
    name: str
    element: Type | None = None
    count: int | None = None
    fields: tuple[Field, ...] = ()
    record: object | None = None

    def __hash__(self) -> int:
        # equality compares everything; hashing the members of large structs again and again would be slow
        return hash((self.kind, self.size, self.name, self.count))

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint", "bool")


def pointer_to(element: Type) -> Type:
    """`element*`."""
    return Type("pointer", 8, 8, element.name + "*", element)


def array_of(element: Type, count: int | None) -> Type:
    """`element[count]`; the size is unknown if either is."""
    size = None if count is None or element.size is None else element.size * count
    # rows of a matrix are written before their columns
    cut = element.name.find("[") if element.kind == "array" else -1
    head, tail = (element.name, "") if cut < 0 else (element.name[:cut], element.name[cut:])
    return Type("array", size, element.align, f"{head}[{'' if count is None else count}]{tail}", element, count)


VOID = Type("void", None, 1, "void")
UNKNOWN = Type("unknown", None, 1, "?")
BOOL = Type("bool", 1, 1, "bool")
INT = Type("int", 4, 4, "int")
UINT = Type("uint", 4, 4, "unsigned int")
INT64 = Type("int", 8, 8, "long long")
UINT64 = Type("uint", 8, 8, "unsigned long long")
FLOAT = Type("float", 4, 4, "float")
DOUBLE = Type("float", 8, 8, "double")
