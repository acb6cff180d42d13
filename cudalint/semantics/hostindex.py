"""What the launch evaluator looks up in a program, cached: code of files, functions by name, calls, writes, expansions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cudalint.semantics.hostcode import (
    Code,
    Event,
    arguments_of,
    name_node,
    template_argument_list,
)
from cudalint.semantics.preprocess import Macro, expand, macro_arguments
from cudalint.semantics.symbols import FunctionDef, StructDef, declarator_name, field_declarators, text_of
from cudalint.syntax import kinds as k
from cudalint.syntax.tree import parse_fragment

if TYPE_CHECKING:
    from typing import Literal

    from tree_sitter import Node

    from cudalint.semantics.program import Program, Unit
    from cudalint.semantics.symbols import TemplateParam

MAX_CALL_SITES = 32
"""Calls of one function that are followed."""

MAX_EXPANSIONS = 200
"""Uses of macros expanded per file and word."""

_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:\\\r?\n|[^\n])*)", re.MULTILINE)
_DIRECTIVE = re.compile(rb"^[ \t]*#(?:[^\n\\]|\\.|\\\r?\n)*", re.MULTILINE | re.DOTALL)
# the preprocessor knows no `<<<` token and may part it
_OPENING = re.compile(r"<<\s+<")
_CLOSING = re.compile(r">>\s+>")
_PARAMETERS = frozenset({k.PARAMETER_DECLARATION, k.OPTIONAL_PARAMETER_DECLARATION, k.VARIADIC_PARAMETER_DECLARATION})


@dataclass(frozen=True, slots=True, eq=False)
class CallSite:
    """A call of a function of the project; `arguments` is None for an explicit instantiation."""

    code: Code
    node: Node
    function: FunctionDef | None
    arguments: tuple[Node, ...] | None
    explicit: Node | None
    receiver: Node | None


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A data member of a class and where it gets its values."""

    type: Node
    code: Code
    default: Node | None
    writes: list[tuple[Code, FunctionDef, Event]]
    initialisers: list[tuple[Code, FunctionDef, Node]]


class HostIndex:
    """The caches for one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._codes: dict[int, Code] = {}
        self._functions: dict[tuple[int, str], list[FunctionDef]] = {}
        self._calls: dict[int, list[CallSite]] = {}
        self._returns: dict[int, list[Node]] = {}
        self._writes: dict[tuple[str, str], list[tuple[Code, FunctionDef, Event]]] = {}
        self._members: dict[tuple[int, str], Member | None] = {}
        self._expansions: dict[tuple[int, int, str], Code | None] = {}
        self._bodies: dict[int, dict[str, str]] = {}
        self._files: dict[str, bytes] | None = None

    # ----------------------------------------------------------------- files

    def code(self, unit: Unit) -> Code:
        """The code of a file."""
        found = self._codes.get(id(unit))
        if found is None:
            found = self._codes[id(unit)] = Code(unit, unit.root, unit.text)
        return found

    def units_with(self, word: str, unit: Unit, everywhere: bool) -> list[Unit]:
        """`unit`, the files that include it and, if `everywhere`, all others of the project: those that hold the word."""
        paths = [unit.path, *self.program.includers(unit.path)]
        if everywhere:
            paths.extend(self.program.project_files())
        pattern = word.encode()
        found: list[Unit] = []
        for path in dict.fromkeys(paths):
            candidate = self.program.unit(path)
            if candidate is not None and pattern in candidate.source.data:
                found.append(candidate)
        return found

    # ------------------------------------------------------------- functions

    def functions(self, unit: Unit, name: str) -> list[FunctionDef]:
        """The definitions that a name can mean in a file; prototypes lead to the definition elsewhere."""
        key = (id(unit), name)
        found = self._functions.get(key)
        if found is None:
            found = self._functions[key] = unit.functions(name)
        return found

    def owner_template(self, function: FunctionDef) -> tuple[TemplateParam, ...]:
        """The template parameters of the class that a function is a member of."""
        owner = function.owner
        return function.owner_template or (owner.template if owner is not None else ())

    def parameters(self, function: FunctionDef) -> list[Node]:
        """The parameter declarations of a function."""
        parameters = function.parameter_list
        if parameters is None:
            return []
        found = [child for child in parameters.named_children if child.type != k.COMMENT]
        if len(found) == 1 and found[0].child_by_field_name(k.F_DECLARATOR) is None and text_of(found[0]) == "void":
            return []
        return found

    def accepts(self, function: FunctionDef, count: int) -> bool:
        """Whether a call with `count` arguments can mean the function."""
        nodes = self.parameters(function)
        required = sum(1 for node in nodes if node.type == k.PARAMETER_DECLARATION)
        variadic = any(node.type not in _PARAMETERS or node.type == k.VARIADIC_PARAMETER_DECLARATION for node in nodes)
        return required <= count and (count <= len(nodes) or variadic)

    def parameter_name(self, function: FunctionDef, index: int) -> str:
        """The name of a parameter, "" where there is none."""
        nodes = self.parameters(function)
        declarator = nodes[index].child_by_field_name(k.F_DECLARATOR) if 0 <= index < len(nodes) else None
        name = _declared(declarator)
        return text_of(name) if name is not None else ""

    def writes_parameter(self, function: FunctionDef, index: int) -> bool:
        """Whether a parameter is a reference or pointer through which the function can write."""
        nodes = self.parameters(function)
        if not 0 <= index < len(nodes):
            return False
        declarator = nodes[index].child_by_field_name(k.F_DECLARATOR)
        if declarator is None or declarator.type not in (k.REFERENCE_DECLARATOR, k.POINTER_DECLARATOR):
            return False
        constant = any(child.type == k.TYPE_QUALIFIER and child.text == b"const" for child in nodes[index].named_children)
        return not constant

    def returns(self, function: FunctionDef) -> list[Node]:
        """The return statements of a function, without those of its lambdas."""
        found = self._returns.get(id(function))
        if found is None:
            code = self.code(function.unit)
            found = []
            stack = [function.body] if function.body is not None else []
            while stack:
                node = stack.pop()
                if node.type == k.RETURN_STATEMENT:
                    if function.unit.is_active(node.start_byte):
                        found.append(node)
                elif node.type not in (k.LAMBDA_EXPRESSION, k.EXPRESSION_STATEMENT, k.DECLARATION):
                    stack.extend(reversed(code.children(node)))
            self._returns[id(function)] = found
        return found

    def initialisers(self, constructor: FunctionDef) -> dict[str, Node]:
        """The member initialisers of a constructor: member name to argument list or braced list."""
        found: dict[str, Node] = {}
        for child in constructor.node.named_children:
            if child.type == k.FIELD_INITIALIZER_LIST:
                for item in child.named_children:
                    if item.type == k.FIELD_INITIALIZER and item.named_child_count >= 2:
                        found[text_of(item.named_children[0])] = item.named_children[-1]
        return found

    def region(self, code: Code, node: Node) -> Node | None:
        """The function around a node, or the whole expansion that it belongs to."""
        if code.outer is not None:
            return code.root
        function = code.function_at(node.start_byte)
        return function.node if function is not None else None

    def local_calls(self, code: Code, region: Node, name: str) -> list[Node]:
        """The calls of a local name in a region."""
        found: list[Node] = []
        for mention in code.mentions(region, name):
            parent = code.parent(mention)
            if parent is not None and parent.type == k.CALL_EXPRESSION:
                callee = parent.child_by_field_name(k.F_FUNCTION)
                if callee is not None and callee.id == mention.id:
                    found.append(parent)
        return found[:MAX_CALL_SITES]

    # ----------------------------------------------------------------- calls

    def calls(self, function: FunctionDef) -> list[CallSite]:
        """The calls of a host function in its file, the files that include it and, unless it is local to its file, the project."""
        found = self._calls.get(id(function))
        if found is None:
            self._calls[id(function)] = []
            found = self._calls[id(function)] = self._find_calls(function)
        return found

    def _find_calls(self, function: FunctionDef) -> list[CallSite]:
        local = function.is_static or "(anonymous" in function.qualified
        found: list[CallSite] = []
        for unit in self.units_with(function.name, function.unit, not local):
            for code, mention in self.places(unit, function.name):
                site = self._call_site(code, mention, function)
                if site is not None:
                    found.append(site)
                    if len(found) >= MAX_CALL_SITES:
                        return found
        return found or self._instantiations(function)

    def _call_site(self, code: Code, mention: Node, function: FunctionDef) -> CallSite | None:
        callee = code.callee_around(mention)
        call = code.parent(callee)
        if call is None or call.type != k.CALL_EXPRESSION:
            return None
        target = call.child_by_field_name(k.F_FUNCTION)
        if target is None or target.id != callee.id:
            return None
        arguments = arguments_of(call)
        if not self.accepts(function, len(arguments)) or not self._can_mean(code.unit, callee, function):
            return None
        enclosing = code.enclosing(call)
        if enclosing is function or (enclosing is not None and enclosing.kind == "kernel"):
            return None
        receiver = callee.child_by_field_name(k.F_ARGUMENT) if callee.type == k.FIELD_EXPRESSION else None
        return CallSite(code, call, enclosing, tuple(arguments), template_argument_list(callee), receiver)

    def _can_mean(self, unit: Unit, callee: Node, function: FunctionDef) -> bool:
        if function.owner is not None or function.scope_node is not None:
            return True
        if callee.type == k.FIELD_EXPRESSION:
            return False
        candidates = self.functions(unit, function.name)
        return not candidates or function in candidates

    def _instantiations(self, function: FunctionDef) -> list[CallSite]:
        found: list[CallSite] = []
        if not function.template:
            return found
        for unit in self.units_with(function.name, function.unit, False):
            for node in unit.symbols.instantiations.get(function.name, ()):
                declarator = node.child_by_field_name(k.F_DECLARATOR)
                name = declarator_name(declarator) if declarator is not None else None
                arguments = template_argument_list(name)
                if arguments is not None:
                    found.append(CallSite(self.code(unit), node, None, None, arguments, None))
        return found[:MAX_CALL_SITES]

    def places(self, unit: Unit, word: str) -> Iterator[tuple[Code, Node]]:
        """Where a word stands in the active code of a file: in its tree, and in the expansions of macros that bring it."""
        code = self.code(unit)
        for node in code.mentions(code.root, word):
            if unit.is_active(node.start_byte):
                yield code, node
        pattern = re.compile(rf"(?<![\w$]){re.escape(word)}(?![\w$])")
        for expansion in self.expansions(unit, pattern):
            for node in expansion.mentions(expansion.root, word):
                yield expansion, node

    # ---------------------------------------------------------------- macros

    def expansions(self, unit: Unit, pattern: re.Pattern[str]) -> Iterator[Code]:
        """The expansions, as statements, of the uses in a file of macros whose body matches, directly or through others."""
        carriers = self._carriers(unit, pattern)
        if not carriers:
            return
        code = self.code(unit)
        names = "|".join(re.escape(name) for name in sorted(carriers))
        uses = re.compile(rb"(?<![\w$#])(?:" + names.encode() + rb")(?![\w$])")
        directives = [match.span() for match in _DIRECTIVE.finditer(unit.source.data)]
        count = 0
        for match in uses.finditer(code.text):
            if any(start <= match.start() < end for start, end in directives) or not unit.is_active(match.start()):
                continue
            node = code.root.descendant_for_byte_range(match.start(), match.end())
            if node is None or node.type in (k.COMMENT, k.STRING_CONTENT, k.STRING_LITERAL):
                continue
            expanded = self._expanded_use(code, node, match.start(), match.group().decode())
            count += 1
            if expanded is not None:
                yield expanded
            if count >= MAX_EXPANSIONS:
                return

    def _carriers(self, unit: Unit, pattern: re.Pattern[str]) -> set[str]:
        files = [self._macro_bodies(file) for file in unit.closure]
        carriers = {name for bodies in files for name, body in bodies.items() if pattern.search(body)}
        grown = bool(carriers)
        while grown:
            inner = re.compile(r"\b(?:" + "|".join(re.escape(name) for name in carriers) + r")\b")
            more = {n for bodies in files for n, body in bodies.items() if n not in carriers and inner.search(body)}
            carriers |= more
            grown = bool(more)
        return carriers

    def _macro_bodies(self, unit: Unit) -> dict[str, str]:
        """The macros that a file defines, active or not, with their bodies."""
        found = self._bodies.get(id(unit))
        if found is None:
            definitions = _DEFINE.findall(unit.source.data)
            found = {name.decode("utf-8", "replace"): body.decode("utf-8", "replace") for name, body in definitions}
            self._bodies[id(unit)] = found
        return found

    def _expanded_use(self, code: Code, node: Node, offset: int, name: str) -> Code | None:
        macro = code.unit.macro(name, offset)
        if macro is None:
            return None
        return self._expand(code, node, macro, offset, "statements")

    def expansion(self, code: Code, node: Node, macro: Macro | None, kind: Literal["expression", "statements"]) -> Code | None:
        """The expansion of the macro that is used at `node` (a name, or a call of a function-like macro)."""
        name = name_node(node.child_by_field_name(k.F_FUNCTION) or node)
        if macro is None:
            macro = code.unit.macro(code.words(name), code.offset(node))
        return self._expand(code, node, macro, name.start_byte, kind) if macro is not None else None

    def _expand(
        self, code: Code, node: Node, macro: Macro, start: int, kind: Literal["expression", "statements"]
    ) -> Code | None:
        key = (node.id, code.serial, kind)
        if key not in self._expansions:
            self._expansions[key] = self._expand_uncached(code, node, macro, start, kind)
        return self._expansions[key]

    def _expand_uncached(
        self, code: Code, node: Node, macro: Macro, start: int, kind: Literal["expression", "statements"]
    ) -> Code | None:
        unit, offset = code.unit, code.offset(node)
        arguments: list[str] | None = None
        if macro.params is not None:
            text = unit.source.data if code.outer is None else code.text
            after = text[start : start + 20_000].decode("utf-8", "replace")
            opening = after.find("(")
            found = macro_arguments(after, opening) if opening >= 0 else None
            if found is None:
                return None
            arguments = found[0]
        expanded = expand(macro, arguments, lambda name: unit.macro(name, offset))
        if expanded is None:
            return None
        if "<" in expanded:
            expanded = _CLOSING.sub(">>>", _OPENING.sub("<<<", expanded))
        root, fragment, _ = parse_fragment(expanded.encode(), kind)
        return Code(unit, root, fragment, (node, code))

    def reread(self, code: Code, node: Node) -> Code:
        """The text of a node as an expression."""
        key = (node.id, code.serial, "text")
        found = self._expansions.get(key)
        if found is None:
            root, text, _ = parse_fragment(code.text[node.start_byte : node.end_byte], "expression")
            found = self._expansions[key] = Code(code.unit, root, text, (node, code))
        return found

    # ---------------------------------------------------------------- writes

    def writes(self, name: str, unit: Unit) -> list[tuple[Code, FunctionDef, Event]]:
        """Where functions write a variable at namespace scope, in the file that declares it and those that include it."""
        key = (unit.path, name)
        found = self._writes.get(key)
        if found is None:
            found = self._writes[key] = []
            for file in self.units_with(name, unit, False):
                code = self.code(file)
                for function in file.all_functions:
                    if function.kind == "host" and function.body is not None:
                        found.extend(self._writes_in(code, function, name))
        return found

    def _writes_in(self, code: Code, function: FunctionDef, name: str) -> list[tuple[Code, FunctionDef, Event]]:
        if name.encode() not in code.text[function.start : function.end]:
            return []
        events = code.events(function.node, name)
        if any(event.kind in ("declare", "parameter") for event in events):
            return []
        return [
            (code, function, event)
            for event in events
            if event.kind in ("assign", "update", "input") or (event.kind == "out" and event.address)
        ]

    def member(self, owner: StructDef, name: str) -> Member | None:
        """A non-static data member of a class, None if it has none of that name."""
        key = (id(owner), name)
        if key not in self._members:
            self._members[key] = self._find_member(owner, name)
        return self._members[key]

    def _find_member(self, owner: StructDef, name: str) -> Member | None:
        for declaration in owner.members.fields:
            for declarator, default, _ in field_declarators(declaration):
                label = declarator_name(declarator)
                target = declaration.child_by_field_name(k.F_TYPE)
                if label is not None and target is not None and text_of(label) == name:
                    return self._member(owner, name, target, default)
        return None

    def _member(self, owner: StructDef, name: str, target: Node, default: Node | None) -> Member:
        member = Member(target, self.code(owner.unit), default, [], [])
        for function in self._methods(owner):
            code = self.code(function.unit)
            member.writes.extend(self._writes_in(code, function, name))
            initialiser = self.initialisers(function).get(name) if function.name == owner.name else None
            if initialiser is not None:
                member.initialisers.append((code, function, initialiser))
        return member

    def _methods(self, owner: StructDef) -> list[FunctionDef]:
        found = [f for group in owner.members.functions.values() for f in group if f.body is not None]
        for file in self.units_with(owner.name, owner.unit, False):
            found.extend(f for f in file.all_functions if f.scope_node is not None and f.owner is owner)
        return found


def _declared(declarator: Node | None) -> Node | None:
    """The identifier that a declarator declares."""
    found = declarator_name(declarator) if declarator is not None else None
    return found
