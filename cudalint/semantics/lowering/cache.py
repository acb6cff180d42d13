"""What lowering keeps per program: lowered functions, their signatures, the symbols of global variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from cudalint.semantics import ir
from cudalint.semantics.lowering import groups
from cudalint.semantics.scope import scope_of_ref
from cudalint.semantics.types import UNKNOWN, Type, pointer_to
from cudalint.semantics.typing import Declared, Record, declarations, parameters, resolve_call, return_type, returns_reference
from cudalint.syntax import kinds

if TYPE_CHECKING:
    from tree_sitter import Node

    from cudalint.semantics.lowering.context import Closure, Context
    from cudalint.semantics.scope import Scope
    from cudalint.semantics.symbols import FunctionDef, GlobalVar


Explicit = tuple[object, ...]
Shapes = tuple["Type | ir.FunctionRef | ir.Lambda | None", ...]


@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """How a function is called.

    params             as declared
    by_pointer         which of them are passed as pointers to their argument
    returns            type of what it returns: a pointer where it returns a reference
    """

    scope: Scope
    params: tuple[Declared, ...]
    by_pointer: tuple[bool, ...]
    returns: Type
    returns_reference: bool


class Cache:
    """Lowered functions and what their callers need to know; one per program."""

    __slots__ = (
        "_globals",
        "_operators",
        "_resolved",
        "_signatures",
        "closures",
        "functions",
        "in_progress",
        "lambda_pointers",
        "lower",
        "unresolved",
    )

    def __init__(self, lower: Callable[[Cache, ir.FunctionRef], ir.Function]) -> None:
        self.functions: dict[ir.FunctionRef, ir.Function] = {}
        self.in_progress: set[ir.FunctionRef] = set()
        self.lower = lower
        self.unresolved: dict[str, ir.Symbol] = {}
        self.closures: dict[ir.Lambda, tuple[Context, Closure]] = {}
        self.lambda_pointers: dict[ir.Lambda, tuple[bool, ...]] = {}
        self._signatures: dict[ir.FunctionRef, Signature] = {}
        self._globals: dict[object, ir.Symbol] = {}
        self._operators: dict[object, ir.FunctionRef | None] = {}
        self._resolved: dict[object, ir.FunctionRef | None] = {}

    def resolve(
        self, key: object, candidates: Sequence[FunctionDef], explicit: Explicit, shapes: Shapes, record: Record | None
    ) -> ir.FunctionRef | None:
        """`resolve_call`, once for the same arguments; `key` stands for the candidates."""
        whole = (key, explicit, shapes, record)
        try:
            return self._resolved[whole]
        except KeyError:
            found = self._resolved[whole] = resolve_call(candidates, explicit, shapes, record)
            return found

    def free_operator(self, scope: Scope, name: str, shapes: Shapes) -> ir.FunctionRef | None:
        """The operator outside of any class that takes these operands."""
        key = (scope.unit, name, scope.namespace, shapes)
        if key not in self._operators:
            free = [f for f in scope.functions(name) if f.owner is None]
            self._operators[key] = resolve_call(free, (), shapes, None) if free else None
        return self._operators[key]

    def signature(self, reference: ir.FunctionRef) -> Signature:
        """Parameters and result of a function."""
        found = self._signatures.get(reference)
        if found is None:
            found = self._signatures[reference] = self._signature(reference)
        return found

    def _signature(self, reference: ir.FunctionRef) -> Signature:
        definition = cast("FunctionDef", reference.definition)
        scope = scope_of_ref(reference)
        params = tuple(normalised(p) for p in parameters(definition, scope))
        by_pointer = tuple(passed_by_pointer(p) for p in params)
        returns = return_type(definition, scope)
        reference_result = returns_reference(definition)
        if definition.name.startswith("operator "):
            returns = _conversion_type(definition, returns)
        if reference_result:
            returns = pointer_to(returns)
        return Signature(scope, params, by_pointer, returns, reference_result)

    def result_type(self, reference: ir.FunctionRef) -> Type:
        """The type of a call's value; that of an `auto` function is read off its body."""
        signature = self.signature(reference)
        returns = signature.returns
        if returns.kind != "unknown" or reference in self.in_progress or len(self.in_progress) > 8:
            return returns
        return self.lower(self, reference).returns

    def global_symbol(self, variable: GlobalVar) -> ir.Symbol:
        """The symbol of a variable at namespace scope."""
        found = self._globals.get(variable)
        if found is None:
            found = self._globals[variable] = _global_symbol(variable)
        return found


def _conversion_type(definition: FunctionDef, type_: Type) -> Type:
    """What `operator T*()` converts to, given T."""
    node: Node | None = definition.declarator
    while node is not None and node.type == kinds.ABSTRACT_POINTER_DECLARATOR:
        type_ = pointer_to(type_)
        node = node.child_by_field_name(kinds.F_DECLARATOR)
    return type_


def normalised(param: Declared) -> Declared:
    """A parameter as lowering passes it: cooperative groups go by value, whatever the reference says."""
    type_ = param.type
    if type_.kind == "unknown" and not groups.is_group(type_):
        type_ = groups.spelled_group(type_.name, _number) or type_
    if not groups.is_group(type_):
        return param
    return replace(param, type=type_, reference=False)


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdecimal() else None


def passed_by_pointer(param: Declared) -> bool:
    """Whether an argument is passed by address; a `const` reference to a number or pointer is as good as its value."""
    return param.reference and not (param.const and param.type.kind not in ("struct", "array", "unknown"))


def _global_symbol(variable: GlobalVar) -> ir.Symbol:
    space: ir.Space = {"constant": "constant", "shared": "shared"}.get(variable.space, "global")  # type: ignore[assignment]
    node = variable.declarator
    for declared in declarations(variable.node, variable.unit.scope):
        if declared.name == variable.name:
            return ir.Symbol(
                declared.name,
                declared.type,
                space,
                variable.unit.path,
                declared.node.start_byte,
                declared.node.end_byte,
                dynamic=space == "shared" and declared.extern,
                volatile=declared.volatile,
                dims=tuple((d.start_byte, d.end_byte) for d in declared.dims),
            )
    return ir.Symbol(variable.name, UNKNOWN, space, variable.unit.path, node.start_byte, node.end_byte)
