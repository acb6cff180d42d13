"""Where names are looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from cudalint.semantics import constants, records, resolve
from cudalint.semantics.ir import FunctionRef, Lambda
from cudalint.semantics.preprocess import Macro
from cudalint.semantics.symbols import EnumDef, FunctionDef, GlobalVar, StructDef, TypeAlias, TypeSymbol
from cudalint.semantics.types import Type

if TYPE_CHECKING:
    from cudalint.semantics.program import Unit
    from cudalint.semantics.records import Record

# int | float | Type | FunctionRef | Lambda | TemplateRef | tuple of these (a pack)
Value = object
Bindings = dict[str, Value]

_MAX_CHAIN = 200
_Symbol = TypeVar("_Symbol", TypeAlias, StructDef, EnumDef, FunctionDef, GlobalVar, TypeSymbol)


class Scope:
    """A place in the program from which names are seen.

    bindings       template parameters
    locals         local constants, types and aliases; whoever walks a function fills it (`declare`)
    record         the class around, for its members
    namespace      the namespace around, "a::b"
    offset         where in the file macros are looked up (None: at its end); may be changed while walking
    variable_type  asked for the type of local variables where an expression's type matters (`sizeof(tile[0])`)
    """

    __slots__ = ("bindings", "frame", "locals", "namespace", "offset", "parent", "record", "unit", "variable_type")

    def __init__(
        self,
        unit: Unit,
        *,
        bindings: Bindings | None = None,
        parent: Scope | None = None,
        record: Record | None = None,
        namespace: str = "",
        offset: int | None = None,
        local: Bindings | None = None,
    ) -> None:
        self.unit = unit
        self.bindings: Bindings = bindings if bindings is not None else {}
        self.locals: Bindings = local if local is not None else {}
        self.parent = parent
        self.record = record
        self.namespace = namespace
        self.offset = offset
        self.frame = False
        self.variable_type: Callable[[str], Type | None] | None = parent.variable_type if parent is not None else None

    def child(self, bindings: Bindings | None = None, local: Bindings | None = None) -> Scope:
        """A scope inside this one with names of its own."""
        return Scope(
            self.unit,
            bindings=bindings,
            parent=self,
            record=self.record,
            namespace=self.namespace,
            offset=self.offset,
            local=local,
        )

    def at(self, offset: int | None) -> Scope:
        """The same names with macros looked up at another place; `declare` on either is seen by both."""
        if offset == self.offset:
            return self
        moved = Scope(
            self.unit,
            bindings=self.bindings,
            parent=self.parent,
            record=self.record,
            namespace=self.namespace,
            offset=offset,
            local=self.locals,
        )
        moved.variable_type = self.variable_type
        moved.frame = self.frame
        return moved

    def declare(self, name: str, value: Value) -> None:
        """Make `name` a local constant or type."""
        self.locals[name] = value

    # -- lookups

    def bound(self, name: str) -> Value | None:
        """The local or template binding called `name`, innermost first; None if there is none."""
        scope: Scope | None = self
        for _ in range(_MAX_CHAIN):
            if scope is None:
                return None
            found = scope.locals.get(name)
            if found is None:
                found = scope.bindings.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def macro(self, name: str) -> Macro | None:
        """The macro `name` in force here."""
        return self.unit.macro(name, self.offset)

    def value(self, name: str) -> int | float | None:
        """The value of a name, which may be qualified: local, binding, macro, member, constant or enumerator."""
        found = constants.named(name, self)
        return found[0] if found is not None else None

    def type(self, name: str) -> Type | None:
        """The type that a name, which may be qualified, stands for."""
        return resolve.named_type(name, self)

    def functions(self, name: str) -> list[FunctionDef]:
        """Definitions that a call of `name`, which may be qualified, can mean: members of the class around first."""
        plain = name.rpartition("::")[2]
        found: list[FunctionDef] = []
        if plain == name:
            record: Record | None = self.record
            while record is not None:
                found.extend(records.record_methods(record, name))
                record = record.outer
        return found + ranked(self.unit.functions(plain), self.qualify(name), self.namespace, exact=plain != name)

    def variable(self, name: str) -> GlobalVar | None:
        """The variable at namespace scope, or static data member, that `name` (which may be qualified) means."""
        plain = name.rpartition("::")[2]
        if plain == name and self.record is not None:
            found = records.record_variable(self.record, name)
            if found is not None:
                return found
        candidates = ranked(self.unit.find_variables(plain), self.qualify(name), self.namespace, exact=plain != name)
        return next((variable for variable in candidates if variable.init is not None), candidates[0] if candidates else None)

    def type_symbols(self, name: str) -> list[TypeSymbol]:
        """The declarations at namespace scope that a type name (which may be qualified) can mean, best first."""
        plain = name.rpartition("::")[2]
        return ranked(self.unit.find_types(plain), self.qualify(name), self.namespace, exact=plain != name)

    def qualify(self, name: str) -> str:
        """`name` with a namespace alias at its front replaced and without a leading `::`."""
        name = name.removeprefix("::")
        first, separator, rest = name.partition("::")
        if separator:
            target = self.unit.symbols.namespace_aliases.get(first)
            if target is not None:
                return f"{target}::{rest}"
        return name


def ranked(candidates: list[_Symbol], wanted: str, namespace: str, *, exact: bool = False) -> list[_Symbol]:
    """Candidates that `wanted` can mean from inside `namespace`: those of the innermost enclosing namespace first.

    With `exact`, only those whose qualified name ends with `wanted`.
    """
    if len(candidates) < 2 and not exact:
        return candidates
    enclosing = _enclosing(namespace)
    order: list[tuple[int, int]] = []
    suffix = "::" + wanted
    for position, candidate in enumerate(candidates):
        qualified = candidate.qualified
        if qualified == wanted or qualified.endswith(suffix):
            prefix = qualified[: -len(wanted)].removesuffix("::")
            rank = enclosing.index(prefix) if prefix in enclosing else len(enclosing)
        elif exact:
            continue
        else:
            rank = len(enclosing) + 1
        order.append((rank, position))
    order.sort()
    return [candidates[position] for _, position in order]


def _enclosing(namespace: str) -> list[str]:
    """The namespace itself, then those around it, last the global one."""
    found = []
    while namespace:
        found.append(namespace)
        namespace = namespace.rpartition("::")[0]
    return [*found, ""]


def scope_of(
    function: FunctionDef,
    bindings: Mapping[str, Value] | Iterable[tuple[str, Value]] = (),
    record: Record | None = None,
) -> Scope:
    """The scope in which the parameters and the body of `function` stand.

    `bindings` are those of a `FunctionRef`: of the class template first, then its own.  `record` is the instantiation
    of its class; without it, it follows from the bindings.
    """
    table: Bindings = dict(bindings)
    if record is None and function.owner is not None:
        record = records.record_for(function.owner, table)
    parent = record.scope if record is not None else None
    return Scope(
        function.unit,
        bindings=table,
        parent=parent,
        record=record,
        namespace=function.namespace,
        offset=function.end,
    )


def scope_of_ref(reference: FunctionRef) -> Scope:
    """The scope of the body of a function in one instantiation."""
    definition = reference.definition
    if not isinstance(definition, FunctionDef):
        raise TypeError(f"no function definition: {definition!r}")
    return scope_of(definition, reference.bindings)


def bindable(value: object) -> bool:
    """Whether a value can be a template argument."""
    return isinstance(value, (int, float, Type, FunctionRef, Lambda, records.TemplateRef, tuple))
