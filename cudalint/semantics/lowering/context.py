"""What the lowering of one function carries along: names in scope, the place in the file, budgets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tree_sitter import Node

from cudalint.semantics import ir
from cudalint.semantics.interpret import UNSET
from cudalint.semantics.lowering import values
from cudalint.semantics.types import UNKNOWN, Type, pointer_to
from cudalint.syntax import kinds

if TYPE_CHECKING:
    from cudalint.semantics.lowering.cache import Cache
    from cudalint.semantics.program import Unit
    from cudalint.semantics.scope import Scope
    from cudalint.semantics.symbols import FunctionDef

MAX_DEPTH = 100
MAX_EXPANSION = 1 << 20

_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_REGISTER_KINDS = frozenset(("int", "uint", "float", "bool", "pointer", "unknown", "void"))


# -------------------------------------------------------------- names in scope


@dataclass(slots=True, eq=False)
class Variable:
    """A variable in scope.

    type       of the value it names
    reference  the symbol holds a pointer to that value
    value      its value where the program fixes it
    callee     what a call of it runs: a lambda, or the function or lambda bound to its type
    """

    symbol: ir.Symbol
    type: Type
    reference: bool = False
    value: int | float | None = None
    callee: Callee | None = None


@dataclass(slots=True, eq=False)
class Alias:
    """A reference or structured binding that stands for another expression without side effects."""

    expr: ir.Expr


@dataclass(slots=True, eq=False)
class Pack:
    """A function parameter pack."""

    elements: tuple[Variable, ...]


@dataclass(slots=True, eq=False)
class Closure:
    """A lambda of this function; one with `auto` parameters is lowered again for the types of every call."""

    node: Node
    frames: list[Frame]
    scope: Scope
    at: tuple[int, int] | None
    plain: ir.Lambda | None
    instances: dict[tuple[Type, ...], ir.Lambda]


Entry = Variable | Alias | Pack
Callee = Closure | ir.FunctionRef | ir.Lambda
Frame = dict[str, Entry]


class Context:
    """The state of one pass over one function.

    at         the macro use that everything stands at while its expansion is lowered, else None
    fragment   the node being lowered comes from an expansion: its macros are expanded already
    addressed  (offset, name) of the scalars that need an address; `wanted` collects what a further pass must know
    """

    __slots__ = (
        "addressed",
        "at",
        "attached",
        "cache",
        "definition",
        "depth",
        "effects",
        "expanded",
        "fragment",
        "frames",
        "has_errors",
        "path",
        "reference",
        "returns",
        "returns_reference",
        "scope",
        "shared",
        "temporaries",
        "this",
        "unbound_types",
        "unit",
        "wanted",
    )

    def __init__(self, cache: Cache, reference: ir.FunctionRef, definition: FunctionDef, scope: Scope) -> None:
        self.cache = cache
        self.reference = reference
        self.definition = definition
        self.unit: Unit = definition.unit
        self.path = self.unit.path
        self.scope = scope
        self.frames: list[Frame] = [{}]
        self.depth = 0
        self.at: tuple[int, int] | None = None
        self.fragment = False
        self.attached: list[Node] = []
        self.expanded = 0
        self.effects = 0
        self.has_errors = False
        self.returns: Type = UNKNOWN
        self.returns_reference = False
        self.shared: list[ir.Symbol] = []
        self.this: ir.Symbol | None = None
        self.temporaries = 0
        self.unbound_types: set[str] = set()
        self.addressed: frozenset[tuple[int, str]] = frozenset()
        self.wanted: set[tuple[int, str]] = set()

    # ------------------------------------------------------------------ place

    def span(self, node: Node) -> tuple[int, int]:
        """Where an expression stands: itself, or the macro use it comes from."""
        return self.at or (node.start_byte, node.end_byte)

    @contextmanager
    def expanding(self, at: tuple[int, int]) -> Iterator[None]:
        """Lowers the expansion of the macro use `at`."""
        saved = self.at, self.fragment
        self.at, self.fragment = at, True
        try:
            yield
        finally:
            self.at, self.fragment = saved

    @contextmanager
    def written(self, at: tuple[int, int] | None, fragment: bool) -> Iterator[None]:
        """Back in text of the file, from within an expansion."""
        saved = self.at, self.fragment
        self.at, self.fragment = at, fragment
        try:
            yield
        finally:
            self.at, self.fragment = saved

    # ------------------------------------------------------------------ names

    @contextmanager
    def block(self) -> Iterator[None]:
        """A scope of names."""
        saved = self.scope
        self.frames.append({})
        self.scope = saved.child()
        try:
            yield
        finally:
            self.frames.pop()
            self.scope = saved

    @contextmanager
    def inside(self, frames: Sequence[Frame], scope: Scope) -> Iterator[None]:
        """Other names than those in scope here: those where a lambda or a default argument was written."""
        saved = self.frames, self.scope
        self.frames, self.scope = list(frames), scope
        try:
            yield
        finally:
            self.frames, self.scope = saved

    def lookup(self, name: str) -> Entry | None:
        """The innermost variable of that name."""
        for frame in reversed(self.frames):
            entry = frame.get(name)
            if entry is not None:
                return entry
        return None

    def enter(self, name: str, entry: Entry) -> None:
        """Brings a name into scope; it hides what it shadows from constants too."""
        self.frames[-1][name] = entry
        value = entry.value if isinstance(entry, Variable) else None
        self.scope.declare(name, UNSET if value is None else value)

    def type_of(self, name: str) -> Type | None:
        """The type of a local variable."""
        entry = self.lookup(name)
        if isinstance(entry, Variable):
            return entry.type
        return entry.expr.type if isinstance(entry, Alias) else None

    def source(self, node: Node) -> str:
        """What stands in the file where `node` is: masking may have changed the arguments of macros in the tree."""
        if self.fragment:
            return text_of(node)
        text = self.unit.source.data[node.start_byte : node.end_byte].decode("utf-8", "replace")
        return _COMMENT.sub(_blank, text) if "/" in text else text

    def temporary(self, type_: Type, at: tuple[int, int]) -> ir.Symbol:
        """A fresh variable in memory."""
        self.temporaries += 1
        return ir.Symbol(f"(temporary {self.temporaries})", type_, "local", self.path, *at)

    def storage(self, type_: Type, start: int, name: str) -> ir.Space:
        """Where an automatic variable lives."""
        if type_.kind in _REGISTER_KINDS:
            return "local" if (start, name) in self.addressed else "register"
        return "local"

    # -------------------------------------------------------------- addresses

    def address(self, expr: ir.Expr) -> ir.Expr | None:
        """The address of a raw expression; None if it has none.  A register scalar is asked to move to memory."""
        if isinstance(expr, ir.Load):
            type_ = expr.type
            if type_.kind == "array":
                return values.retyped(expr.pointer, pointer_to(type_))
            return expr.pointer
        if isinstance(expr, ir.Var):
            symbol = expr.symbol
            self.wanted.add((symbol.start, symbol.name))
            return ir.Unknown(expr.start, expr.end, pointer_to(expr.type), (), "address of a register")
        if isinstance(expr, ir.Assign):
            target = expr.target if expr.memory else self.address(expr.target)
            return None if target is None else ir.Binary(expr.start, expr.end, target.type, ",", expr, target)
        if isinstance(expr, ir.Select):
            return self._selected(expr)
        if isinstance(expr, ir.Binary) and expr.op == ",":
            right = self.address(expr.right)
            return None if right is None else ir.Binary(expr.start, expr.end, right.type, ",", expr.left, right)
        if isinstance(expr, ir.FieldValue) and isinstance(expr.operand, ir.Var):
            pointer = self.address(expr.operand)
            if pointer is None:
                return None
            return ir.FieldPtr(expr.start, expr.end, pointer_to(expr.type), pointer, expr.offset, expr.name)
        return None

    def _selected(self, expr: ir.Select) -> ir.Expr | None:
        then, other = self.address(expr.then), self.address(expr.other)
        if then is None or other is None:
            return None
        return ir.Select(expr.start, expr.end, then.type, expr.condition, then, other)

    def materialised(self, expr: ir.Expr) -> ir.Expr:
        """The address of any value, of a temporary if need be."""
        pointer = self.address(expr)
        if pointer is not None:
            return pointer
        at = (expr.start, expr.end)
        base = values.base(self.temporary(expr.type, at), *at)
        store = ir.Assign(*at, expr.type, base, expr, memory=True)
        return ir.Binary(*at, base.type, ",", store, base)

    # --------------------------------------------------------------- lowering

    def raw(self, node: Node) -> ir.Expr:
        """An expression that keeps its place (see `values`)."""
        kind = node.type
        while kind == kinds.PARENTHESIZED_EXPRESSION:
            inner: Node | None = node.named_child(0)
            if inner is not None and inner.type == kinds.COMMENT:
                inner = first_child(node)
            if inner is None:
                break
            node, kind = inner, inner.type
        handler = EXPRESSIONS.get(kind)
        if handler is None:
            return self.unknown(node, text=node.type)
        if self.depth >= MAX_DEPTH:
            return self.unknown(node, text="nested too deeply")
        self.depth += 1
        try:
            return handler(self, node)
        finally:
            self.depth -= 1

    def value(self, node: Node) -> ir.Expr:
        """The value of an expression."""
        return values.decay(self.raw(node))

    def unknown(self, node: Node, *parts: ir.Expr, text: str = "", type_: Type = UNKNOWN) -> ir.Unknown:
        """Something that is not modelled."""
        return ir.Unknown(*self.span(node), type_, parts, text)

    def statement(self, node: Node, out: list[ir.Stmt]) -> None:
        """Lowers one statement and appends what it becomes."""
        kind = node.type
        handler = STATEMENTS.get(kind)
        if handler is None:
            if kind == kinds.COMMENT or kind.startswith("preproc"):
                return
            if node.is_error:
                self.has_errors = True
            handler = STATEMENTS[""]
        if self.depth >= MAX_DEPTH:
            at = self.span(node)
            out.append(ir.Evaluate(*at, ir.Unknown(*at, UNKNOWN, (), "nested too deeply")))
            return
        self.depth += 1
        if self.at is None:
            self.scope.offset = node.start_byte
        try:
            handler(self, node, out)
        finally:
            self.depth -= 1


EXPRESSIONS: dict[str, Callable[[Context, Node], ir.Expr]] = {}
STATEMENTS: dict[str, Callable[[Context, Node, list[ir.Stmt]], None]] = {}

ExpressionHandler = Callable[[Context, Node], ir.Expr]
StatementHandler = Callable[[Context, Node, "list[ir.Stmt]"], None]


def expression(*node_kinds: str) -> Callable[[ExpressionHandler], ExpressionHandler]:
    """Registers the lowering of expression nodes."""

    def register(handler: ExpressionHandler) -> ExpressionHandler:
        EXPRESSIONS.update(dict.fromkeys(node_kinds, handler))
        return handler

    return register


def statement(*node_kinds: str) -> Callable[[StatementHandler], StatementHandler]:
    """Registers the lowering of statement nodes; "" takes every other kind."""

    def register(handler: StatementHandler) -> StatementHandler:
        STATEMENTS.update(dict.fromkeys(node_kinds, handler))
        return handler

    return register


# ------------------------------------------------------------------ tree access


def _blank(match: re.Match[str]) -> str:
    text = match.group()
    return " " if text[0] == "/" else text


def text_of(node: Node) -> str:
    """The spelling of a node."""
    text = node.text
    return text.decode("utf-8", "replace") if text is not None else ""


field = Node.child_by_field_name
"""A child by field name."""


def first_child(node: Node) -> Node | None:
    """The first named child that is no comment."""
    for child in node.named_children:
        if child.type != kinds.COMMENT:
            return child
    return None


def children_of(node: Node) -> list[Node]:
    """Named children that are no comments."""
    return [child for child in node.named_children if child.type != kinds.COMMENT]
