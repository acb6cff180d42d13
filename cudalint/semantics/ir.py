"""The intermediate form of one function in one instantiation.

Lowering has expanded macros, chosen the `#if` arms, bound template parameters
and resolved names, so nothing above semantics sees a tree or a spelling.

Memory is uniform: arrays, structs, variables whose address is taken and
everything behind a pointer are reached by pointer-valued expressions (`Base`,
`PtrAdd`, `FieldPtr`, any pointer value) through `Load` and `Store`.  Scalars that live in
registers are `Var`.  `start` and `end` are byte offsets in the function's file;
what a macro expands to stands at the macro's use.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from cudalint.semantics.types import Type

Space = Literal["register", "local", "shared", "constant", "global", "unknown"]


@dataclass(slots=True, eq=False)
class Symbol:
    """A declared variable; compared by identity, so shadowing needs no renaming.

    space     "register" for plain scalars; "local" for private arrays, structs and scalars whose address is taken
    dynamic   `extern __shared__`
    start/end the whole declarator, `name_start` the identifier; `dims` the byte ranges of the bracketed array lengths
    """

    name: str
    type: Type
    space: Space
    path: str
    start: int
    end: int
    dynamic: bool = False
    volatile: bool = False
    parameter: bool = False
    dims: tuple[tuple[int, int], ...] = ()


# ----------------------------------------------------------------- expressions


@dataclass(slots=True, eq=False)
class Expr:
    """Base of all expressions; a value of `type`."""

    start: int
    end: int
    type: Type


@dataclass(slots=True, eq=False)
class Const(Expr):
    """A literal or anything lowering could evaluate."""

    value: int | float


@dataclass(slots=True, eq=False)
class Var(Expr):
    """The value of a register scalar (also a pointer variable); as a target of `Assign`, the variable itself."""

    symbol: Symbol


@dataclass(slots=True, eq=False)
class Special(Expr):
    """A special register: tid.x tid.y tid.z ntid.{x,y,z} ctaid.{x,y,z} nctaid.{x,y,z} laneid warpid warpsize."""

    name: str


@dataclass(slots=True, eq=False)
class Unary(Expr):
    """op is one of - ~ ! ."""

    op: str
    operand: Expr


@dataclass(slots=True, eq=False)
class Binary(Expr):
    """Arithmetic, bitwise and comparison operators of C, `&&` and `||` (right side guarded), `,`; min and max too.

    Pointer arithmetic is `PtrAdd`; pointer difference is "ptrdiff" (in elements of the left pointee).
    """

    op: str
    left: Expr
    right: Expr


@dataclass(slots=True, eq=False)
class Select(Expr):
    """`condition ? then : other`."""

    condition: Expr
    then: Expr
    other: Expr


@dataclass(slots=True, eq=False)
class Cast(Expr):
    """Conversion to `type`, also between pointers (reinterpret_cast)."""

    operand: Expr


@dataclass(slots=True, eq=False)
class Base(Expr):
    """The address of the first byte of an array, struct or address-taken variable: a pointer to its element or to it."""

    symbol: Symbol


@dataclass(slots=True, eq=False)
class PtrAdd(Expr):
    """`pointer + index * stride` with `stride` in bytes (None where the pointee's size is unknown)."""

    pointer: Expr
    index: Expr
    stride: int | None


@dataclass(slots=True, eq=False)
class FieldPtr(Expr):
    """`pointer + offset` bytes: the address of a struct member (offset None where unknown)."""

    pointer: Expr
    offset: int | None
    name: str


@dataclass(slots=True, eq=False)
class Load(Expr):
    """Reads a value of `type` at `pointer`; `hint` is "" or a name such as "__ldg", "ld.global.nc", "ldmatrix"."""

    pointer: Expr
    hint: str = ""


@dataclass(slots=True, eq=False)
class Assign(Expr):
    """Writes `value` to `target`: a `Var`, or memory at a pointer-valued `Expr` when `memory` is true.

    The value of the expression is the new value, or the old one if `post`.  Compound assignments and
    increments have been written out: `value` then reads the target (compound=True), the same access place.
    """

    target: Expr
    value: Expr
    memory: bool = False
    post: bool = False
    compound: bool = False


@dataclass(slots=True, eq=False)
class Construct(Expr):
    """A struct value from the values of its fields in order (make_float4, dim3(...), T{...}); missing ones are zero."""

    args: tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class FieldValue(Expr):
    """Field at `offset` bytes of a struct *value* (not in memory), e.g. `f().x`."""

    operand: Expr
    offset: int | None
    name: str


@dataclass(slots=True, eq=False)
class FunctionRef:
    """A function definition in one instantiation; `Program.lower` gives its body.  Hashable by value.

    definition  the semantics layer's FunctionDef
    bindings    (template parameter, int | Type | FunctionRef | Lambda) pairs in declaration order
    """

    definition: object
    bindings: tuple[tuple[str, object], ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionRef) and self.definition is other.definition and self.bindings == other.bindings

    def __hash__(self) -> int:
        return hash((id(self.definition), self.bindings))


@dataclass(slots=True, eq=False)
class Lambda(Expr):
    """A lambda; captures refer to the enclosing function's symbols directly."""

    params: tuple[Symbol, ...]
    body: Block


@dataclass(slots=True, eq=False)
class Call(Expr):
    """A call.  `function` is its definition where the project has one, a `Lambda` for calls of local lambdas, else None.

    name       unqualified spelling (atomicAdd, __shfl_xor_sync, sinf, tile.sync -> "sync")
    qualifier  what stood before it: "cg", "cub::BlockReduce<int, 128>", the type of the receiver, or ""
    args       argument values; an argument bound to a reference parameter of a known function is a pointer to it
    receiver   for member calls on an object: pointer to it
    """

    name: str
    args: tuple[Expr, ...]
    function: FunctionRef | Lambda | None = None
    qualifier: str = ""
    receiver: Expr | None = None


@dataclass(slots=True, eq=False)
class Asm(Expr):
    """Inline PTX: template text, output targets (as `Assign` targets: Var, or pointer expressions), input values."""

    text: str
    outputs: tuple[Expr, ...]
    inputs: tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class Unknown(Expr):
    """Something lowering does not model; its parts are still evaluated for their accesses."""

    parts: tuple[Expr, ...]
    text: str = ""


# ------------------------------------------------------------------ statements


@dataclass(slots=True, eq=False)
class Stmt:
    """Base of all statements."""

    start: int
    end: int


@dataclass(slots=True, eq=False)
class Block(Stmt):
    """Statements in order."""

    body: tuple[Stmt, ...]


@dataclass(slots=True, eq=False)
class Declare(Stmt):
    """A declaration with its initial value (None: uninitialised).  A struct initialiser is a struct-typed value;
    an array initialiser is a `Construct` whose args are the elements."""

    symbol: Symbol
    init: Expr | None


@dataclass(slots=True, eq=False)
class Evaluate(Stmt):
    """An expression statement."""

    expr: Expr


@dataclass(slots=True, eq=False)
class If(Stmt):
    """`if`; a condition known at compile time has been resolved by lowering already."""

    condition: Expr
    then: Block
    other: Block | None


@dataclass(slots=True, eq=False)
class Loop(Stmt):
    """for, while and do.  condition None means for(;;).  unroll: factor of `#pragma unroll` (0 = full, None = no pragma)."""

    kind: Literal["for", "while", "do"]
    init: Block | None
    condition: Expr | None
    step: Expr | None
    body: Block
    unroll: int | None = None


@dataclass(slots=True, eq=False)
class Switch(Stmt):
    """`switch`: cases are (values, statements); values () is `default`; control falls through unless a Break ends it."""

    value: Expr
    cases: tuple[tuple[tuple[Expr, ...], Block], ...]


@dataclass(slots=True, eq=False)
class Break(Stmt):
    """`break`."""


@dataclass(slots=True, eq=False)
class Continue(Stmt):
    """`continue`."""


@dataclass(slots=True, eq=False)
class Return(Stmt):
    """`return value`."""

    value: Expr | None


@dataclass(slots=True, eq=False)
class Function:
    """A lowered function.

    reference   what it was lowered from
    path        file of every offset inside
    params      in order; pointer parameters are `register` symbols
    this        the implicit object pointer of a member function
    """

    reference: FunctionRef
    name: str
    path: str
    params: tuple[Symbol, ...]
    body: Block
    returns: Type
    this: Symbol | None = None
    start: int = 0
    end: int = 0
    shared: tuple[Symbol, ...] = field(default=())
    has_errors: bool = False
