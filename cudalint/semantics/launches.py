"""How kernels are launched: every launch that can mean a kernel, with its instantiation, block, grid and shared memory.

A launch counts if it can mean the kernel: it stands in the kernel's file, in a file that
includes it, or anywhere in the project if the kernel's name is unique there.
What host code does to the numbers is worked out by `hostwalk`; what only the run knows stays None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from cudalint.semantics.hostslice import WORD
from cudalint.semantics.hosttree import argument_types, arguments_of, enclosing, template_arguments
from cudalint.semantics.hostvalues import UNKNOWN, Dim, KernelName, Value, World
from cudalint.semantics.hostwalk import HostWalk
from cudalint.semantics.preprocess import Macro, expand, macro_arguments
from cudalint.semantics.records import default_argument
from cudalint.semantics.scope import scope_of
from cudalint.semantics.symbols import FunctionDef, text_of
from cudalint.semantics.types import Type
from cudalint.semantics.typing import bind, resolve_call, resolve_template_arguments
from cudalint.syntax import kinds as k
from cudalint.syntax.tree import parse_fragment

if TYPE_CHECKING:
    from tree_sitter import Node

    from cudalint.semantics.program import Program, Unit

MAX_LAUNCHES = 16
MAX_MACRO_USES = 24

Extent = tuple["int | None", "int | None", "int | None"]
Bindings = tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel, as far as the source tells.

    bindings      (template parameter, int | Type | …) of the instantiation; parameters that are unknown are absent
    block, grid   threads and blocks in x, y, z, each None where unknown; None if nothing is known
    dynamic_smem  bytes, 0 where the launch gives none, None where unknown
    path          absolute path; `start` and `end` are byte offsets of the launch expression (of the macro's use) in it
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
    stream: bool = False
    in_loop: bool = False


# ------------------------------------------------------------------------- sites


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """A launch expression.

    anchor     what stands in the file: the launch itself, or the use of the macro that holds it
    kernel     what is launched; `args` its arguments, None where the launch hides them
    config     the launch configuration of the cudaLaunchKernelEx family
    """

    unit: Unit
    anchor: Node
    kernel: Node
    args: tuple[Node, ...] | None
    grid: Node | None = None
    block: Node | None = None
    smem: Node | None = None
    stream: Node | None = None
    config: Node | None = None

    @property
    def name(self) -> str:
        """The unqualified name that is launched."""
        return _callee_name(self.kernel)

    @property
    def parts(self) -> list[Node]:
        """Everything whose value matters."""
        return [n for n in (self.kernel, self.grid, self.block, self.smem, self.config) if n is not None]


_API = rb"cudaLaunchKernelExC|cudaLaunchKernelEx|cudaLaunchKernel|cudaLaunchCooperativeKernel"
_LAUNCH = re.compile(rb"<<<|\b(?:" + _API + rb")\b")
_PARTED_START, _PARTED_END = re.compile(r"<<\s+<"), re.compile(r">>\s+>")
_LOOPS = (k.FOR_STATEMENT, k.WHILE_STATEMENT, k.DO_STATEMENT, k.FOR_RANGE_LOOP)
_NAMES = (k.IDENTIFIER, k.TYPE_IDENTIFIER, k.TEMPLATE_FUNCTION, k.QUALIFIED_IDENTIFIER, k.FIELD_EXPRESSION)


def sites_of(unit: Unit) -> list[Site]:
    """The launch expressions of a file, in order; one in the body of a macro stands where the macro is used."""
    data = unit.source.data
    if b"<<<" not in data and b"cudaLaunch" not in data:
        return []
    found = []
    macros: dict[str, None] = {}
    for match in _LAUNCH.finditer(unit.text):
        if not unit.is_active(match.start()):
            continue
        node = unit.root.descendant_for_byte_range(match.start(), match.end())
        around = node
        while around is not None and around.type not in (k.PREPROC_FUNCTION_DEF, k.PREPROC_DEF, k.COMPOUND_STATEMENT):
            around = around.parent
        if around is not None and around.type != k.COMPOUND_STATEMENT:
            name = around.child_by_field_name(k.F_NAME)
            if name is not None:
                macros[text_of(name)] = None
            continue
        site = _site(unit, node, match.group(), None)
        if site is not None:
            found.append(site)
    for macro in _spread(unit, macros):
        found.extend(_macro_sites(unit, macro))
    return sorted(found, key=lambda s: s.anchor.start_byte)


def _spread(unit: Unit, macros: dict[str, None]) -> dict[str, None]:
    """The macros with a launch in their body, those of included files too, and the macros that use one of them."""
    bodies = {name: body for file in unit.closure for name, body in file.definitions.items()}
    fresh = [name for name, body in bodies.items() if b"<<<" in body or (b"cudaLaunch" in body and _LAUNCH.search(body))]
    found = macros | {name.decode("utf-8", "replace"): None for name in fresh}
    while fresh:
        used = re.compile(rb"\b(?:" + b"|".join(map(re.escape, fresh)) + rb")\b")
        fresh = [name for name, body in bodies.items() if name.decode("utf-8", "replace") not in found and used.search(body)]
        found |= {name.decode("utf-8", "replace"): None for name in fresh}
    return found


def _macro_at(unit: Unit, offset: int, name: str) -> Macro | None:
    return unit.macro(name, offset)


def _macro_sites(unit: Unit, name: str) -> Iterator[Site]:
    """Launches that come out of a macro, at each of its uses."""
    uses = re.finditer(rb"\b" + re.escape(name.encode()) + rb"\s*\(", unit.text)
    for count, use in enumerate(uses):
        if count > MAX_MACRO_USES:
            return
        node = unit.root.descendant_for_byte_range(use.start(), use.start() + len(name))
        macro = unit.macro(name, use.start())
        if node is None or macro is None or node.type not in _NAMES or not unit.is_active(use.start()):
            continue
        if node.parent is not None and node.parent.type == k.PREPROC_FUNCTION_DEF:
            continue
        text = unit.source.data[use.end() - 1 : use.end() + 20_000].decode("utf-8", "replace")
        parsed = macro_arguments(text, 0)
        if parsed is None:
            continue
        body = expand(macro, parsed[0], partial(_macro_at, unit, use.start()))
        if body is None:
            continue
        if "<<" in body:  # `<<<` is no token of the preprocessor, which may part it
            body = _PARTED_END.sub(">>>", _PARTED_START.sub("<<<", body))
        root, source, _ = parse_fragment(body.encode(), "statements")
        call = node.parent if node.parent is not None and node.parent.type == k.CALL_EXPRESSION else node
        for match in _LAUNCH.finditer(source):
            inner = root.descendant_for_byte_range(match.start(), match.end())
            site = _site(unit, inner, match.group(), call)
            if site is not None:
                yield site


def _site(unit: Unit, node: Node | None, text: bytes, anchor: Node | None) -> Site | None:
    if text == b"<<<":
        while node is not None and node.type != k.KERNEL_CALL_SYNTAX:
            if node.type in (k.COMMENT, k.STRING_LITERAL):
                return None
            node = node.parent
        call = node.parent if node is not None else None
        kernel = call.child_by_field_name(k.F_FUNCTION) if call is not None else None
        if node is None or call is None or kernel is None:
            return None
        parts: list[Node | None] = [n for n in node.named_children if n.type != k.COMMENT]
        grid, block, smem, stream = (*parts, None, None, None, None)[:4]
        return Site(unit, anchor or call, kernel, tuple(arguments_of(call)), grid, block, smem, stream)
    call = node.parent if node is not None else None
    while call is not None and call.type in (k.QUALIFIED_IDENTIFIER, k.TEMPLATE_FUNCTION):
        call = call.parent
    if call is None or call.type != k.CALL_EXPRESSION:
        return None
    args = arguments_of(call)
    if len(args) < 2:
        return None
    if text.startswith(b"cudaLaunchKernelEx"):
        given = None if text.endswith(b"C") else tuple(args[2:])
        return Site(unit, anchor or call, _plain_kernel(args[1]), given, config=args[0])
    grid, block, _, smem, stream = (*args[1:], None, None, None, None, None)[:5]
    return Site(unit, anchor or call, _plain_kernel(args[0]), None, grid, block, smem, stream)


def _plain_kernel(node: Node) -> Node:
    """The kernel behind casts and `&`."""
    while True:
        inner = node.child_by_field_name(k.F_VALUE) if node.type == k.CAST_EXPRESSION else None
        if node.type == k.POINTER_EXPRESSION:
            inner = node.child_by_field_name(k.F_ARGUMENT)
        elif node.type == k.PARENTHESIZED_EXPRESSION:
            inner = next(iter(node.named_children), None)
        elif node.type == k.CALL_EXPRESSION and template_arguments(node.child_by_field_name(k.F_FUNCTION)) is not None:
            inner = next(iter(arguments_of(node)), None)  # reinterpret_cast<void*>(k)
        if inner is None:
            return node
        node = inner


def _callee_name(node: Node) -> str:
    """The unqualified name of a callee."""
    while True:
        if node.type == k.FIELD_EXPRESSION:
            inner = node.child_by_field_name(k.F_FIELD)
        elif node.type in (k.QUALIFIED_IDENTIFIER, k.TEMPLATE_FUNCTION, k.TEMPLATE_METHOD, k.DEPENDENT_NAME):
            inner = node.child_by_field_name(k.F_NAME) or next(iter(node.named_children), None)
        else:
            return text_of(node)
        if inner is None:
            return text_of(node)
        node = inner


# -------------------------------------------------------------------- resolution


class Launches:
    """The launches of one program, resolved as they are asked for."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._walk = HostWalk(program)
        self._sites: dict[str, list[Site]] = {}
        self._resolved: dict[Site, list[Launch]] = {}

    def of(self, kernel: FunctionDef) -> tuple[Launch, ...]:
        """The launches that can mean `kernel`, own file first."""
        found: list[Launch] = []
        for unit in self._units(kernel):
            for site in self._candidates(unit, kernel.name):
                found.extend(launch for launch in self.resolve(site) if launch.kernel is kernel)
        return _select(found)

    def _units(self, kernel: FunctionDef) -> Iterator[Unit]:
        paths = dict.fromkeys((kernel.path, *self._program.includers(kernel.path)))
        if kernel in self._program.unique("functions", kernel.name):
            paths.update(dict.fromkeys(self._program.launch_files(kernel.name)))
        for path in paths:
            unit = self._program.unit(path)
            if unit is not None:
                yield unit

    def sites(self, unit: Unit) -> list[Site]:
        """The launch expressions of a file."""
        found = self._sites.get(unit.path)
        if found is None:
            found = self._sites[unit.path] = sites_of(unit)
        return found

    def _candidates(self, unit: Unit, name: str) -> Iterator[Site]:
        """Launches of the name, and launches of whatever a variable or parameter holds where the name is mentioned."""
        if name.encode() not in unit.source.data:
            return
        for site in self.sites(unit):
            if site.name == name or not _is_kernel_name(site):
                yield site
        for included in unit.closure[1:]:
            yield from (site for site in self.sites(included) if not _is_kernel_name(site))

    def resolve(self, site: Site) -> list[Launch]:
        """What a launch expression launches, and how."""
        found = self._resolved.get(site)
        if found is None:
            self._resolved[site] = []
            found = self._resolved[site] = list(self._launches(site))
        return found

    def _launches(self, site: Site) -> Iterator[Launch]:
        function = enclosing(site.unit, site.anchor.start_byte)
        for world in _telling(site, self._walk.worlds_at(site.anchor, function, site.unit, site.parts)):
            if site.anchor.start_byte != site.kernel.start_byte:
                world = World(world.scope, world.state, world.function, site.anchor.start_byte)
            target = self._kernel(site, world, function)
            if target is None:
                continue
            grids = self._extents(site.grid, "gridDim", site, world)
            for block in self._extents(site.block, "blockDim", site, world):
                yield Launch(
                    target[0],
                    target[1],
                    block,
                    grids[0] if len(grids) == 1 else None,
                    self._bytes(site, world),
                    site.unit.path,
                    site.anchor.start_byte,
                    site.anchor.end_byte,
                    site.stream is not None or self._member(site, world, "stream") not in (UNKNOWN, 0),
                    _in_loop(site.anchor),
                )

    def _member(self, site: Site, world: World, name: str) -> Value:
        """A member of the launch configuration."""
        if site.config is None:
            return UNKNOWN
        holder = text_of(site.config).lstrip("&* ")
        if f"{holder}.{name}" in world.state:
            return world.state[f"{holder}.{name}"]
        whole = world.state.get(holder)
        return whole.get(name, UNKNOWN) if isinstance(whole, dict) else UNKNOWN

    def _extents(self, node: Node | None, member: str, site: Site, world: World) -> list[Extent | None]:
        if node is None:
            return [_extent(self._member(site, world, member))]
        found = dict.fromkeys(_extent(value) for value, _ in self._walk.alternatives(node, world))
        return list(found) or [None]

    def _bytes(self, site: Site, world: World) -> int | None:
        if site.config is not None:
            value = self._member(site, world, "dynamicSmemBytes")
            holder = text_of(site.config).lstrip("&* ")
            if value is UNKNOWN and f"{holder}.dynamicSmemBytes" not in world.state:
                return 0
        elif site.smem is None:
            return 0
        else:
            value = self._walk.value(site.smem, world)
        return int(value) if isinstance(value, (int, float)) else None

    def _kernel(self, site: Site, world: World, function: FunctionDef | None) -> tuple[FunctionDef, Bindings] | None:
        """The kernel that is launched, with its template arguments."""
        value = self._walk.value(site.kernel, world)
        if not isinstance(value, KernelName):
            named = [f for f in site.unit.find_functions(site.name) if f.kind == "kernel"]
            if not named:
                return None
            listed = template_arguments(site.kernel)
            explicit = resolve_template_arguments(listed, world.names(listed)) if listed is not None else ()
            value = KernelName(tuple(named), explicit)
        kernels = [f for f in value.candidates if f.kind == "kernel"]
        if not kernels:
            return None
        if len(kernels) == 1 and not kernels[0].template:
            return kernels[0], ()
        if len(kernels) == 1 and _is_complete(kernels[0], value.explicit):
            return kernels[0], _known(zip((p.name for p in kernels[0].template), value.explicit, strict=True))
        types = argument_types(site.args, world, site.anchor, function) if site.args is not None else None
        found = resolve_call(kernels, value.explicit, types) if types is not None else None
        if found is not None:
            return found.definition, _known(found.bindings)  # type: ignore[return-value]
        kernel = next((f for f in kernels if f.specialises is None), kernels[0])
        return kernel, _partly(kernel, value.explicit, types)


def _telling(site: Site, worlds: list[World]) -> list[World]:
    """The worlds without those that differ in nothing the launch mentions."""
    if site.config is not None or len(worlds) < 2:
        return worlds
    parts = (*site.parts, *(site.args or ()))
    words = {word.decode() for part in parts for word in WORD.findall(part.text or b"")}
    found: dict[tuple[object, ...], World] = {}
    try:
        for world in worlds:
            state = ((name, type(x), x) for name, x in world.state.items() if name.partition(".")[0] in words)
            found.setdefault((id(world.scope), *state), world)
    except TypeError:  # a launch configuration
        return worlds
    return list(found.values())


def _is_complete(kernel: FunctionDef, explicit: Sequence[object]) -> bool:
    """Whether explicit template arguments name the instantiation without deduction."""
    if kernel.specialises is not None or len(explicit) != len(kernel.template) or any(p.pack for p in kernel.template):
        return False
    return all(value is not None and getattr(value, "kind", "") != "unknown" for value in explicit)


def _is_kernel_name(site: Site) -> bool:
    return any(f.kind == "kernel" for f in site.unit.find_functions(site.name))


def _known(pairs: Iterable[tuple[str, object]]) -> Bindings:
    return tuple((name, value) for name, value in pairs if value is not None and getattr(value, "kind", "") != "unknown")


def _partly(kernel: FunctionDef, explicit: Sequence[object], types: Sequence[Type | None] | None) -> Bindings:
    """What is known of the template arguments when the call as a whole does not resolve."""
    bound = dict(bind(kernel, explicit, types or [])) if types is not None and (bind(kernel, explicit, types) is not None) else {}  # type: ignore[arg-type]
    for param, value in zip(kernel.template, explicit, strict=False):
        if value is not None and not param.pack:
            bound.setdefault(param.name, value)
    for param in kernel.template:
        if param.name not in bound and param.default is not None:
            value = default_argument(param, scope_of(kernel, bound))
            if value is not None:
                bound[param.name] = value
    return _known(bound.items())


def _extent(value: Value) -> Extent | None:
    if isinstance(value, (int, float)):
        value = Dim(int(value))
    if not isinstance(value, Dim):
        return None
    return None if value == (None, None, None) else (value.x, value.y, value.z)


def _in_loop(node: Node) -> bool:
    current = node.parent
    while current is not None and current.type != k.FUNCTION_DEFINITION:
        if current.type in _LOOPS:
            return True
        current = current.parent
    return False


def _select(found: Iterable[Launch]) -> tuple[Launch, ...]:
    """Distinct launches; one that knows less than another of the same expression is left out."""
    distinct: dict[tuple[object, ...], Launch] = {}
    for launch in found:
        distinct.setdefault((launch.bindings, launch.block, launch.dynamic_smem), launch)
    launches = list(distinct.values())
    kept = [a for a in launches if not any(_knows_more(b, a) for b in launches)]
    return tuple(kept[:MAX_LAUNCHES])


def _knows_more(better: Launch, worse: Launch) -> bool:
    if (better.path, better.start, better.bindings) != (worse.path, worse.start, worse.bindings):
        return False
    if better.block is None or None in better.block:
        return False
    return worse.block is None or (
        None in worse.block and all(w is None or w == b for w, b in zip(worse.block, better.block, strict=True))
    )


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
