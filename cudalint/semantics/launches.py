"""How kernels are launched: every launch that can mean a kernel, with its instantiation, block, grid and shared memory.

`launches_of` finds launches in the kernel's file, in the files that include it
and, if the kernel's name is unique there, in the whole project, and follows
what they are made of through host code (see `hostvalues`).  What only the run
knows stays None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

from cudalint.semantics.constants import evaluate
from cudalint.semantics.hostcode import LOOPS, Code, arguments_of, callee_name
from cudalint.semantics.hostindex import HostIndex
from cudalint.semantics.hostvalues import Aggregate, Callee, Context, Evaluator, HostValue, as_dim3
from cudalint.semantics.ir import FunctionRef
from cudalint.semantics.scope import scope_of
from cudalint.semantics.typing import bind, resolve_call, resolve_type
from cudalint.semantics.worlds import Infeasible, World, explore
from cudalint.syntax import kinds as k

if TYPE_CHECKING:
    from tree_sitter import Node

    from cudalint.semantics.program import Program, Unit
    from cudalint.semantics.symbols import FunctionDef

MAX_LAUNCHES = 16
"""Launches reported for one kernel."""

MAX_WORLDS = 96
"""Combinations of branches, callers and loop iterations that are tried for one launch expression."""

MAX_GRIDS = 4
"""Combinations that are tried for the grid of one launch."""

Extent = tuple["int | None", "int | None", "int | None"]
Bindings = tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel, as far as the source tells.

    bindings      (template parameter, int | Type | …) of the instantiation; parameters that are unknown are absent
    block, grid   threads and blocks in x, y, z, each None where unknown; None if nothing is known
    dynamic_smem  bytes, 0 where the launch gives none, None where unknown
    path          absolute path; `start` and `end` are byte offsets of the launch expression (of the macro's use) in it
    assumed       what the block rests on if not on the launch
    stream        whether the launch names a stream
    in_loop       whether it stands in a loop of its function
    """

    kernel: FunctionDef
    bindings: Bindings
    block: Extent | None
    grid: Extent | None
    dynamic_smem: int | None
    path: str
    start: int
    end: int
    assumed: str = ""
    stream: bool = False
    in_loop: bool = False


# ------------------------------------------------------------------------- sites


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """A launch expression; `config` is the launch configuration of the cudaLaunchKernelEx family."""

    code: Code
    node: Node
    function: FunctionDef | None
    kernel: Node
    arguments: tuple[Node, ...] | None
    grid: Node | None = None
    block: Node | None = None
    smem: Node | None = None
    stream: Node | None = None
    config: Node | None = None

    @property
    def name(self) -> str:
        """The unqualified name that is launched."""
        return callee_name(self.kernel, self.code)


_API = re.compile(r"\b(?:cudaLaunchKernel|cudaLaunchCooperativeKernel|cudaLaunchKernelExC?)\b")
_LAUNCH = re.compile(r"<<<|" + _API.pattern)
_LAUNCH_BYTES = re.compile(_LAUNCH.pattern.encode())
_BINDING_MACRO = re.compile(r"\b(?:constexpr|const|using|typedef|switch|template|auto)\b")


class _Sites:
    """The launch expressions of files, found once."""

    def __init__(self, index: HostIndex) -> None:
        self._index = index
        self._known: dict[int, list[Site]] = {}

    def of(self, unit: Unit) -> list[Site]:
        """The launch expressions of a file, in order; those in the body of a macro once for every use."""
        found = self._known.get(id(unit))
        if found is None:
            found = list(self._written(unit)) if _LAUNCH_BYTES.search(unit.source.data) else []
            for code in self._index.expansions(unit, _LAUNCH):
                found.extend(self._in(code, code.root))
            found.sort(key=lambda site: (site.code.offset(site.node), site.code.serial))
            self._known[id(unit)] = found
        return found

    def _written(self, unit: Unit) -> Iterator[Site]:
        code = self._index.code(unit)
        for site in self._in(code, code.root):
            around = self._dispatched(site)
            if around:
                yield from around
            else:
                yield site

    def _in(self, code: Code, region: Node) -> Iterator[Site]:
        for match in _LAUNCH_BYTES.finditer(code.text, region.start_byte, region.end_byte):
            node = region.descendant_for_byte_range(match.start(), match.end())
            if node is None or (code.outer is None and not code.unit.is_active(match.start())):
                continue
            site = _chevrons(code, node) if match.group() == b"<<<" else _api_call(code, node)
            if site is not None:
                yield site

    def _dispatched(self, site: Site) -> list[Site]:
        """The launch inside the expansion of a macro that it is an argument of, if that macro gives names a meaning."""
        code = site.code
        node: Node | None = site.node
        outermost: Node | None = None
        while node is not None and (site.function is None or node.id != site.function.node.id):
            if node.type == k.CALL_EXPRESSION and node.id != site.node.id:
                callee = node.child_by_field_name(k.F_FUNCTION)
                if callee is not None and callee.type == k.IDENTIFIER:
                    macro = code.unit.macro(code.words(callee), node.start_byte)
                    if macro is not None and macro.params is not None and _BINDING_MACRO.search(macro.body):
                        outermost = node
            node = code.parent(node)
        if outermost is None:
            return []
        expansion = self._index.expansion(code, outermost, None, "statements")
        return list(self._in(expansion, expansion.root)) if expansion is not None else []


def _chevrons(code: Code, node: Node) -> Site | None:
    syntax: Node | None = node
    while syntax is not None and syntax.type != k.KERNEL_CALL_SYNTAX:
        if syntax.type in (k.PREPROC_ARG, k.COMMENT, k.STRING_LITERAL):
            return None
        syntax = syntax.parent
    call = code.parent(syntax) if syntax is not None else None
    if syntax is None or call is None or call.type != k.CALL_EXPRESSION:
        return None
    kernel = call.child_by_field_name(k.F_FUNCTION)
    if kernel is None:
        return None
    parts: list[Node | None] = [child for child in syntax.named_children if child.type != k.COMMENT]
    parts.extend([None] * (4 - len(parts)))
    function = code.enclosing(call)
    return Site(code, call, function, kernel, tuple(arguments_of(call)), parts[0], parts[1], parts[2], parts[3])


def _api_call(code: Code, node: Node) -> Site | None:
    callee = code.callee_around(node)
    call = code.parent(callee)
    if call is None or call.type != k.CALL_EXPRESSION:
        return None
    target = call.child_by_field_name(k.F_FUNCTION)
    arguments = arguments_of(call)
    if target is None or target.id != callee.id or len(arguments) < 2:
        return None
    function = code.enclosing(call)
    if code.words(node).startswith("cudaLaunchKernelEx"):
        given = None if code.words(node).endswith("C") else tuple(arguments[2:])
        return Site(code, call, function, arguments[1], given, config=arguments[0])
    parts: list[Node | None] = [*arguments, None, None, None, None, None]
    return Site(code, call, function, arguments[0], None, parts[1], parts[2], parts[4], parts[5])


# -------------------------------------------------------------------- resolution


class Launches:
    """The launches of one program, resolved as they are asked for."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._index = HostIndex(program)
        self._sites = _Sites(self._index)
        self._resolved: dict[int, tuple[Site, list[Launch]]] = {}

    def of(self, kernel: FunctionDef) -> tuple[Launch, ...]:
        """The launches that can mean `kernel`."""
        everywhere = kernel in self._program.unique("functions", kernel.name)
        found: list[Launch] = []
        seen: set[int] = set()
        for unit in self._index.units_with(kernel.name, kernel.unit, everywhere):
            for site in self._candidates(unit, kernel.name):
                if id(site) not in seen:
                    seen.add(id(site))
                    found.extend(launch for launch in self.resolve(site) if launch.kernel is kernel)
        return _select(found)

    def _candidates(self, unit: Unit, name: str) -> Iterator[Site]:
        """The sites of a file that name the kernel, and those there or in what it includes that launch what they are given."""
        for site in self._sites.of(unit):
            if site.name == name or self._is_indirect(site):
                yield site
        for included in unit.closure[1:]:
            for site in self._sites.of(included):
                if self._is_indirect(site):
                    yield site

    def _is_indirect(self, site: Site) -> bool:
        return not any(f.kind == "kernel" for f in self._index.functions(site.code.unit, site.name))

    def resolve(self, site: Site) -> list[Launch]:
        """What a launch expression launches, and how."""
        known = self._resolved.get(id(site))
        if known is None:
            found = explore(lambda world: self._launch(site, world), MAX_WORLDS)
            known = self._resolved[id(site)] = (site, [launch for launch in found if launch is not None])
        return known[1]

    def _launch(self, site: Site, world: World) -> Launch | None:
        evaluator = Evaluator(self._index, world)
        context = self._enter(site, evaluator)
        kernel = _kernel(site, evaluator, context)
        if kernel is None:
            raise Infeasible
        definition, bindings = kernel
        config = evaluator.value(site.config, context) if site.config is not None else None
        block = _extent(site.block, config, "blockDim", evaluator, context)
        smem = _bytes(site, config, evaluator, context)
        if evaluator.reached(site.node, context) is False or not evaluator.consistent():
            raise Infeasible
        code = site.code
        while code.outer is not None:
            code = code.outer[1]
        place = _outermost(site)
        return Launch(
            definition,
            bindings,
            block,
            self._grid(site, world),
            smem,
            code.unit.path,
            place.start_byte,
            place.end_byte,
            "",
            site.stream is not None or _names_stream(config),
            _in_loop(site),
        )

    def _enter(self, site: Site, evaluator: Evaluator) -> Context:
        context = Context(site.code, evaluator.root(site.function, site.code.unit))
        _constrain(site, evaluator, context)
        return context

    def _grid(self, site: Site, world: World) -> Extent | None:
        def run(inner: World) -> Extent | None:
            evaluator = Evaluator(self._index, inner)
            context = self._enter(site, evaluator)
            config = evaluator.value(site.config, context) if site.config is not None else None
            return _extent(site.grid, config, "gridDim", evaluator, context)

        return _join(explore(run, MAX_GRIDS, world))


def _outermost(site: Site) -> Node:
    node, code = site.node, site.code
    while code.outer is not None:
        node, code = code.outer
    return node


def _join(extents: Sequence[Extent | None]) -> Extent | None:
    """What all alternatives agree on."""
    if not extents or any(extent is None for extent in extents):
        return None
    columns = zip(*(extent for extent in extents if extent is not None), strict=True)
    x, y, z = (column[0] if len(set(column)) == 1 else None for column in columns)
    return None if x is None and y is None and z is None else (x, y, z)


def _constrain(site: Site, evaluator: Evaluator, context: Context) -> None:
    """Note what `case` labels and equality tests around a launch say about variables."""
    code = site.code
    node: Node = site.node
    parent = code.parent(node)
    while parent is not None:
        if parent.type == k.CASE_STATEMENT:
            _constrain_case(parent, evaluator, context.within(code))
        elif parent.type == k.IF_STATEMENT:
            consequence = parent.child_by_field_name(k.F_CONSEQUENCE)
            condition = parent.child_by_field_name(k.F_CONDITION)
            if consequence is not None and consequence.id == node.id and condition is not None:
                _constrain_condition(condition, evaluator, context.within(code))
        if site.function is not None and parent.id == site.function.node.id:
            break
        node, parent = parent, code.parent(parent)
        if parent is None and code.outer is not None:
            parent, code = code.outer


def _constrain_case(case: Node, evaluator: Evaluator, context: Context) -> None:
    code = context.code
    body = code.parent(case)
    statement = code.parent(body) if body is not None else None
    if body is None or statement is None or statement.type != k.SWITCH_STATEMENT:
        return
    condition = statement.child_by_field_name(k.F_CONDITION)
    name = _plain_name(condition)
    if name is None:
        return
    labels = [case]
    for previous in reversed([c for c in code.children(body) if c.start_byte < case.start_byte]):
        if previous.type != k.CASE_STATEMENT or len(code.children(previous)) > 1:
            break
        labels.append(previous)
    values = [label.child_by_field_name(k.F_VALUE) for label in labels]
    if any(value is None for value in values):
        return
    chosen = values[evaluator.world.choose(("case", *context.tag(case)), len(values))]
    value = evaluator.settled(chosen, context) if chosen is not None else None
    if isinstance(value, int):
        evaluator.constraints.setdefault((context.frame.key, code.words(name)), value)


def _constrain_condition(condition: Node, evaluator: Evaluator, context: Context) -> None:
    node = _plain(condition)
    if node is None or node.type != k.BINARY_EXPRESSION:
        return
    operator = node.child_by_field_name(k.F_OPERATOR)
    left, right = node.child_by_field_name(k.F_LEFT), node.child_by_field_name(k.F_RIGHT)
    if operator is None or operator.type != "==" or left is None or right is None or left.type != k.IDENTIFIER:
        return
    value = evaluator.settled(right, context)
    if isinstance(value, int):
        evaluator.constraints.setdefault((context.frame.key, context.code.words(left)), value)


def _plain(condition: Node | None) -> Node | None:
    node = condition
    while node is not None and node.type in (k.CONDITION_CLAUSE, k.PARENTHESIZED_EXPRESSION):
        value = node.child_by_field_name(k.F_VALUE)
        node = value if value is not None else next(iter(node.named_children), None)
    return node


def _plain_name(condition: Node | None) -> Node | None:
    node = _plain(condition)
    return node if node is not None and node.type == k.IDENTIFIER else None


def _kernel(site: Site, evaluator: Evaluator, context: Context) -> tuple[FunctionDef, Bindings] | None:
    """The kernel that is launched, with its template arguments."""
    value = evaluator.value(site.kernel, context)
    if isinstance(value, FunctionRef):
        explicit = tuple(argument for _, argument in value.bindings)
        candidates: list[FunctionDef] = [value.definition]  # type: ignore[list-item]
    elif isinstance(value, Callee):
        explicit = value.explicit
        candidates = list(value.candidates)
    else:
        return None
    kernels = [f for f in candidates if f.kind == "kernel"]
    if site.arguments is not None:
        count = len(site.arguments)
        kernels = [f for f in kernels if evaluator.index.accepts(f, count)] or kernels
    if not kernels:
        return None
    if len(kernels) == 1 and not kernels[0].template:
        return kernels[0], ()
    types = [evaluator.types.argument(node, context) for node in site.arguments] if site.arguments is not None else None
    return _instantiation(kernels, explicit, types)


def _instantiation(
    kernels: Sequence[FunctionDef], explicit: Sequence[object], types: Sequence[object] | None
) -> tuple[FunctionDef, Bindings]:
    if types is not None:
        found = resolve_call(kernels, explicit, types)  # type: ignore[arg-type]
        if found is not None:
            return found.definition, _pairs(found.definition, dict(found.bindings))  # type: ignore[arg-type]
    general = [f for f in kernels if f.specialises is None] or list(kernels)
    kernel = general[0]
    named = zip(kernel.template, explicit, strict=False)
    bound = {param.name: value for param, value in named if value is not None and not param.pack}
    _fill_defaults(kernel, bound)
    return kernel, _pairs(kernel, bound)


def _fill_defaults(kernel: FunctionDef, bound: dict[str, object]) -> None:
    for param in kernel.template:
        if param.name in bound or param.default is None:
            continue
        scope = scope_of(kernel, bound)  # type: ignore[arg-type]
        value: object = resolve_type(param.default, scope) if param.kind == "type" else evaluate(param.default, scope)
        if value is not None and getattr(value, "kind", "") != "unknown":
            bound[param.name] = value


def _pairs(kernel: FunctionDef, bound: dict[str, object]) -> Bindings:
    known = {name: value for name, value in bound.items() if value is not None and getattr(value, "kind", "") != "unknown"}
    own = [param.name for param in kernel.template if param.name in known]
    others = [name for name in known if name not in own]
    return tuple((name, known[name]) for name in (*others, *own))


def _extent(node: Node | None, config: HostValue, member: str, evaluator: Evaluator, context: Context) -> Extent | None:
    if node is not None:
        return as_dim3(evaluator.value(node, context))
    return as_dim3(config.get(member)) if isinstance(config, Aggregate) else None


def _bytes(site: Site, config: HostValue, evaluator: Evaluator, context: Context) -> int | None:
    if site.config is not None:
        value = config.get("dynamicSmemBytes") if isinstance(config, Aggregate) else None
    elif site.smem is None:
        return 0
    else:
        value = evaluator.value(site.smem, context)
    return int(value) if isinstance(value, (int, float)) else None


def _names_stream(config: HostValue) -> bool:
    return isinstance(config, Aggregate) and config.fields.get("stream", 0) != 0


def _in_loop(site: Site) -> bool:
    node, code = site.node, site.code
    parent = code.parent(node)
    while parent is not None:
        if parent.type in LOOPS:
            return True
        if site.function is not None and parent.id == site.function.node.id:
            return False
        parent = code.parent(parent)
        if parent is None and code.outer is not None:
            parent, code = code.outer
    return False


# --------------------------------------------------------------------- selection


def _select(found: Iterable[Launch]) -> tuple[Launch, ...]:
    """Distinct launches: those that know less than another of the same expression are left out, then those over the cap."""
    launches: list[Launch] = []
    for launch in found:
        if launch not in launches:
            launches.append(launch)
    launches = [a for a in launches if not any(_supersedes(b, a) for b in launches)]
    distinct: dict[tuple[object, ...], Launch] = {}
    for launch in launches:
        distinct.setdefault((launch.bindings, launch.block, launch.dynamic_smem), launch)
    return tuple(list(distinct.values())[:MAX_LAUNCHES])


def _supersedes(better: Launch, worse: Launch) -> bool:
    """Whether `better` is the same launch expression and instantiation with more known."""
    if better is worse or (better.path, better.start, better.bindings) != (worse.path, worse.start, worse.bindings):
        return False
    if better.block == worse.block:
        return worse.dynamic_smem is None and better.dynamic_smem is not None
    if better.block is None or None in better.block:
        return False
    if worse.block is None:
        return True
    return None in worse.block and all(w is None or w == b for w, b in zip(worse.block, better.block, strict=True))


_PROGRAMS: WeakKeyDictionary[Program, Launches] = WeakKeyDictionary()


def launches_in(program: Program) -> Launches:
    """The launches of a program, kept with it."""
    found = _PROGRAMS.get(program)
    if found is None:
        found = _PROGRAMS[program] = Launches(program)
    return found


def launches_of(kernel: FunctionDef, program: Program) -> tuple[Launch, ...]:
    """Every launch in sight that can mean `kernel`, own file first; at most `MAX_LAUNCHES`."""
    return launches_in(program).of(kernel)
