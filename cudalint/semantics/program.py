"""The project as facts see it: files, include closures, and definitions looked up across them.

A name means what the file itself defines, else what its include closure
defines, else what the project defines if that is in one file only; so a file
gives the same facts however it was named on the command line.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cudalint.semantics import index
from cudalint.semantics.guard import Guard
from cudalint.semantics.preprocess import Include, Macro, Preprocessed, predefined, preprocess
from cudalint.semantics.scope import Scope
from cudalint.semantics.symbols import (
    EnumDef,
    FunctionDef,
    GlobalVar,
    StructDef,
    Symbols,
    TemplateParam,
    TypeSymbol,
    collect,
)
from cudalint.source.discover import (
    DEFAULT_EXCLUDE,
    MIXED_SUFFIXES,
    PYTHON_SUFFIXES,
    DiscoverySettings,
    discover,
    may_hold_cuda,
)
from cudalint.source.macros import DefinitionIndex, definitions
from cudalint.source.text import SourceError, SourceFile, load, read_regular
from cudalint.syntax.tree import ParsedFile, parse

if TYPE_CHECKING:
    from tree_sitter import Node

    from cudalint.semantics.literals import Typed
    from cudalint.semantics.records import Record
    from cudalint.semantics.resolve import Declared
    from cudalint.semantics.types import Type

_MAX_CLOSURE = 600
_MAX_INCLUDERS = 16
_MAX_CANDIDATE_FILES = 8
_MAX_LISTED_FILES = 200_000
_STANDARD_HEADERS = frozenset(
    "assert complex ctype errno fenv float inttypes iso646 limits locale math memory setjmp signal stdalign stdarg stdatomic "
    "stdbool stddef stdint stdio stdlib stdnoreturn string strings tgmath threads time uchar unistd wchar wctype "
    "cooperative_groups cub cublas cuda cuda_bf16 cuda_fp16 cuda_fp8 cuda_runtime cuda_runtime_api curand device_functions mma "
    "vector_types".split()
)
_T = TypeVar("_T")


def absolute(path: str | os.PathLike[str]) -> str:
    """The absolute path with forward slashes, symbolic links kept: how files are known here."""
    return os.path.abspath(path).replace(os.sep, "/")


@dataclass(frozen=True, slots=True)
class Options:
    """What the user says about the build: `-D`, `-I`, and the compute capability times ten (90 for sm_90)."""

    defines: Mapping[str, str] = field(default_factory=dict)
    include_dirs: tuple[Path, ...] = ()
    arch: int = 80


class Unit:
    """One file and what it defines.  Lazy: nothing is parsed before somebody asks for it.

    path    absolute path
    source  the file
    """

    __slots__ = (
        "_around",
        "_closure",
        "_cuda",
        "_defined",
        "_definitions",
        "_found",
        "_included",
        "_includers",
        "_inherited",
        "_order",
        "_parsed",
        "_preprocessed",
        "_scope",
        "_structs",
        "_symbols",
        "_words",
        "path",
        "program",
        "source",
    )

    def __init__(self, program: Program, path: str, source: SourceFile) -> None:
        self.program = program
        self.path = path
        self.source = source
        self._parsed: ParsedFile | None = None
        self._preprocessed: Preprocessed | None = None
        self._symbols: Symbols | None = None
        self._closure: tuple[Unit, ...] | None = None
        self._order: dict[str, int] | None = None
        self._included: tuple[Unit, ...] | None = None
        self._defined: frozenset[bytes] | None = None
        self._definitions: dict[bytes, bytes] | None = None
        self._around: dict[bytes, bytes] | None = None
        self._words: frozenset[bytes] | None = None
        self._cuda: bool | None = None
        self._found: dict[tuple[str, str], object] = {}
        self._scope: Scope | None = None
        self._includers: tuple[tuple[Unit, int], ...] | None = None
        self._inherited: dict[str, Macro | None] = {}
        self._structs: dict[int, list[StructDef]] = {}

    def __repr__(self) -> str:
        return f"Unit({self.path!r})"

    # -- text and tree

    @property
    def parsed(self) -> ParsedFile:
        """The tree, parsed on first use."""
        if self._parsed is None:
            self._parsed = parse(self.source, self._evidence, self._inactive)
        return self._parsed

    @property
    def root(self) -> Node:
        """The root of the tree."""
        return self.parsed.root

    @property
    def text(self) -> bytes:
        """The text that was parsed (same length as the source)."""
        return self.parsed.text

    def _evidence(self, name: bytes) -> bytes | None:
        """What some `#define` of `name` says, in the closure or anywhere in the project: for masking, never a value."""
        if self._around is None:
            self._around = {}
            for unit in reversed(self.closure[1:]):  # the first that defines a name counts
                self._around.update(unit.definitions)
        found = self._around.get(name)
        return self.program.definitions.find(name, self.path) if found is None else found

    @property
    def definitions(self) -> dict[bytes, bytes]:
        """Every `#define` of the file, active or not: name to the text behind it."""
        if self._definitions is None:
            self._definitions = definitions(self.source.data)
        return self._definitions

    def _inactive(self, text: bytes) -> list[tuple[int, int]]:
        if text == self.source.data:
            return self.preprocessed.inactive
        return preprocess(text, self.path, self.program.environment, self._load_include).inactive

    # -- preprocessor

    @property
    def preprocessed(self) -> Preprocessed:
        """Macros, inactive ranges and includes of the raw text."""
        if self._preprocessed is None:
            self._preprocessed = self.program.preprocess(self)
        return self._preprocessed

    def _load_include(self, include: Include) -> Preprocessed | None:
        unit = self.program.resolve_include(self.path, include)
        if unit is None or self.program.is_being_read(unit):
            return None
        return unit.preprocessed

    def is_active(self, offset: int) -> bool:
        """Whether the target compiles what stands at byte `offset`."""
        return self.preprocessed.is_active(offset)

    def macro(self, name: str, offset: int | None = None) -> Macro | None:
        """The macro in force at byte `offset` (None: at the end of the file).

        It is from the file, its closure or the target; in a header that knows nothing of the name, from where the header
        is included, if every includer defines it in the same way there.
        """
        found = self.preprocessed.macro(name, offset)
        if found is None and (name in self._inherited or not self.preprocessed.is_macro_name(name)):
            return self._inherited_macro(name)
        return found

    def _inherited_macro(self, name: str) -> Macro | None:
        if name not in self._inherited:
            # while it is being looked up: an include cycle
            self._inherited[name] = None
            found: list[Macro | None] = [unit.macro(name, offset) for unit, offset in self.includers]
            first = found[0] if found else None
            if first is not None and all(macro is not None and _same_macro(macro, first) for macro in found):
                self._inherited[name] = first
        return self._inherited[name]

    @property
    def includers(self) -> tuple[tuple[Unit, int], ...]:
        """The files nearest to this one that include it and where; none if there are too many to speak of one context."""
        if self._includers is None:
            self._includers = ()
            found = self.program.direct_includers(self.path)
            # host code that shares a header is another context
            device = [(unit, offset) for unit, offset in found if not unit.path.endswith(_HOST_SUFFIXES)] or list(found)
            # a header that nobody includes is compiled nowhere
            device = [(unit, offset) for unit, offset in device if unit.path.endswith(_COMPILED) or unit.includers] or device
            paths = set(_nearest(posixpath.dirname(self.path), [unit.path for unit, _ in device]))
            nearest = tuple((unit, offset) for unit, offset in device if unit.path in paths)
            self._includers = nearest if len(nearest) <= _MAX_INCLUDERS else ()
        return self._includers

    # -- closure

    @property
    def closure(self) -> tuple[Unit, ...]:
        """This file, then every project file that it includes, transitively, in the order of the includes."""
        if self._closure is None:
            seen: dict[str, Unit] = {self.path: self}
            pending = [self]
            while pending and len(seen) < _MAX_CLOSURE:
                for found in pending.pop(0).included:
                    if found.path not in seen:
                        seen[found.path] = found
                        pending.append(found)
            self._closure = tuple(seen.values())
        return self._closure

    @property
    def included(self) -> tuple[Unit, ...]:
        """The files that this one includes itself, as far as they are found."""
        if self._included is None:
            found = (self.program.resolve_include(self.path, include) for include in self.preprocessed.includes)
            self._included = tuple(unit for unit in found if unit is not None)
        return self._included

    @property
    def defined_names(self) -> frozenset[bytes]:
        """The names that the file seems to define, without parsing it."""
        if self._defined is None:
            self._defined = index.defined_names(self.source.data)
        return self._defined

    @property
    def may_hold_cuda(self) -> bool:
        """Whether anything in the file, were it in a comment, looks like CUDA."""
        if self._cuda is None:
            self._cuda = may_hold_cuda(self.source.data)
        return self._cuda

    @property
    def launch_words(self) -> frozenset[bytes]:
        """Every identifier of a file that launches kernels or asks about their launch; of another file none."""
        if self._words is None:
            data = self.source.data
            self._words = index.words(data) if index.holds_launch(data) else frozenset()
        return self._words

    def _definers(self, name: str) -> list[Unit]:
        """This file and those of the closure that seem to define `name`, in the order of the closure."""
        if self._order is None:
            self._order = {unit.path: position for position, unit in enumerate(self.closure)}
            for unit in self.closure:
                self.program.register(unit)
        order = self._order
        found = [unit for unit in self.program.definers(name) if unit is not self and unit.path in order]
        found.sort(key=lambda unit: order[unit.path])
        return [self, *found]

    # -- symbols

    @property
    def symbols(self) -> Symbols:
        """What this file declares."""
        if self._symbols is None:
            # a file that asks for its own symbols while they are collected sees none
            self._symbols = Symbols()
            self._symbols = collect(self)
        return self._symbols

    def _find(self, table: str, name: str) -> list[_T]:
        key = (table, name)
        cached = self._found.get(key)
        if cached is None:
            cached = self._found[key] = self._find_uncached(table, name)
        return cached  # type: ignore[return-value]

    def _find_uncached(self, table: str, name: str) -> list[object]:
        found: list[object] = []
        for unit in self._definers(name):
            found.extend(getattr(unit.symbols, table).get(name, ()))
        return found or self._find_in_context(table, name) or self.program.unique(table, name)

    def _find_in_context(self, table: str, name: str) -> list[object]:
        """What the translation units that include this file define, if that is in one file only."""
        found: dict[str, list[object]] = {}
        pending = [unit for unit, _ in self.includers]
        seen = {self.path}
        while pending and len(seen) <= _MAX_INCLUDERS:
            unit = pending.pop(0)
            if unit.path in seen:
                continue
            seen.add(unit.path)
            pending.extend(outer for outer, _ in unit.includers)
            for definer in unit._definers(name):
                here = getattr(definer.symbols, table).get(name)
                if here:
                    found[definer.path] = here
        return next(iter(found.values())) if len(found) == 1 else []

    def remember_struct(self, struct: StructDef) -> None:
        """Note a class under its specifier's node."""
        self._structs.setdefault(struct.node.start_byte, []).append(struct)

    def struct_at(self, node: Node) -> StructDef | None:
        """The class whose specifier is `node`, if it is known already."""
        return next((struct for struct in self._structs.get(node.start_byte, ()) if struct.node == node), None)

    def find_types(self, name: str) -> list[TypeSymbol]:
        """Classes, enumerations and aliases called `name` (unqualified): file, closure, then the project if unique."""
        return self._find("types", name)

    def find_variables(self, name: str) -> list[GlobalVar]:
        """Variables at namespace scope called `name`."""
        return self._find("variables", name)

    def find_enumerators(self, name: str) -> list[EnumDef]:
        """Enumerations at namespace scope that hold an enumerator `name`."""
        return self._find("enumerators", name)

    def find_functions(self, name: str) -> list[FunctionDef]:
        """Function definitions called `name` outside of class bodies, members included."""
        return self._find("functions", name)

    def functions(self, name: str) -> list[FunctionDef]:
        """Definitions of free functions called `name`."""
        return [function for function in self.find_functions(name) if function.scope_node is None or function.owner is None]

    def functions_here(self, name: str) -> list[FunctionDef]:
        """Definitions called `name` in this very file, outside of class bodies."""
        return list(self.symbols.functions.get(name, ()))

    def prototypes(self, name: str) -> list[FunctionDef]:
        """Declarations without a body of functions called `name`: file and closure."""
        found: list[FunctionDef] = []
        for unit in self._definers(name):
            found.extend(unit.symbols.prototypes.get(name, ()))
        return found

    def forward_templates(self, name: str) -> list[tuple[TemplateParam, ...]]:
        """Template heads of class declarations without a body: file and closure."""
        found: list[tuple[TemplateParam, ...]] = []
        for unit in self._definers(name):
            found.extend(unit.symbols.forwards.get(name, ()))
        return found

    def owner_of(self, function: FunctionDef) -> StructDef | None:
        """The class of a member function that is defined outside of it."""
        name = function.owner_name.rpartition("::")[2]
        structs = [struct for struct in self.find_types(name) if isinstance(struct, StructDef)]
        wanted = function.scope_node
        if wanted is None or not structs:
            return None
        if len(structs) > 1:
            text = _squeeze(wanted.text)
            for struct in structs:
                if struct.specialises is not None and text.endswith(_squeeze(struct.specialises.text)):
                    return struct
        return next((struct for struct in structs if struct.specialises is None), structs[0])

    @property
    def kernels(self) -> tuple[FunctionDef, ...]:
        """The kernels defined in this file, by position."""
        return tuple(function for function in self.symbols.all_functions() if function.kind == "kernel")

    @property
    def all_functions(self) -> tuple[FunctionDef, ...]:
        """Every function defined in this file outside of class bodies, by position."""
        return self.symbols.all_functions()

    # -- values and types by name

    @property
    def scope(self) -> Scope:
        """The scope of the file's end."""
        if self._scope is None:
            self._scope = Scope(self)
        return self._scope

    def constant(self, name: str) -> int | float | None:
        """The value of a constant, enumerator or object-like macro, as seen at the end of the file."""
        return self.scope.value(name)

    def type_def(self, name: str) -> Type | None:
        """The type called `name`."""
        return self.scope.type(name)

    def variable(self, name: str) -> GlobalVar | None:
        """The variable at namespace scope called `name`."""
        return self.scope.variable(name)


def _same_macro(left: Macro, right: Macro) -> bool:
    return (left.params, left.body) == (right.params, right.body)


def _index_key(name: str) -> bytes:
    if name.startswith("operator "):
        name = "operator" + name[9:].replace(" ", "")
    return name.encode()


def _squeeze(text: bytes | None) -> bytes:
    return b"".join((text or b"").split())


class Program:
    """All files of a project, each read at most once.

    root  the project's folder; `settings` restrict discovery; `found` is what discovery finds, where that is known already
    """

    def __init__(
        self,
        root: Path | str,
        options: Options | None = None,
        settings: DiscoverySettings | None = None,
        found: Sequence[str] | None = None,
    ) -> None:
        self.root = absolute(root)
        self.options = options or Options()
        self.settings = settings
        self._found = found
        self.environment = predefined(self.options.arch, self.options.defines)
        self.guard = Guard()
        self.records: dict[object, Record] = {}
        self.values: dict[object, Typed | None] = {}
        self.calls: dict[object, Typed | None] = {}
        self.aliases: dict[object, Type | None] = {}
        self.signatures: dict[object, tuple[Declared, ...]] = {}
        self.resolving: set[object] = set()
        self._units: dict[str, Unit | None] = {}
        self._reading: set[str] = set()
        self._files: tuple[str, ...] | None = None
        self._listed: dict[str, list[str]] | None = None
        self._resolved: dict[tuple[str, str, bool], Unit | None] = {}
        self._defining: dict[bytes, list[Unit]] = {}
        self._registered: set[str] = set()
        self._all_registered: frozenset[str] = frozenset()
        self._definitions: DefinitionIndex | None = None
        self._launch_words: dict[str, frozenset[bytes]] | None = None
        self._includers: dict[str, list[str]] | None = None
        self._unique: dict[tuple[str, str], list[object]] = {}

    # -- files

    def unit(self, path: str | os.PathLike[str]) -> Unit | None:
        """The file at `path` (relative to the working directory or absolute), None if it cannot be read."""
        key = absolute(path)
        if key not in self._units:
            try:
                self._units[key] = Unit(self, key, load(key))
            except SourceError:
                self._units[key] = None
        return self._units[key]

    def add(self, source: SourceFile) -> Unit:
        """Take `source` instead of what is on disk at its path: standard input, an editor's buffer, text out of another file."""
        unit = Unit(self, absolute(source.path), source)
        old = self._units.get(unit.path)
        if old is not None and unit.path in self._registered:
            self._registered.discard(unit.path)
            for word in old.defined_names:
                self._defining[word].remove(old)
        self._units[unit.path] = unit
        return unit

    def project_files(self) -> tuple[str, ...]:
        """The CUDA files of the project, absolute and sorted."""
        if self._files is None:
            found = self._found
            if found is None:
                found = discover([self.root], self.settings).files if Path(self.root).is_dir() else []
            self._files = tuple(sorted(absolute(path) for path in found if not path.endswith(tuple(PYTHON_SUFFIXES))))
        return self._files

    def _project_data(self, path: str) -> bytes:
        unit = self.unit(path)
        return unit.source.data if unit is not None else b""

    # -- preprocessing and includes

    def preprocess(self, unit: Unit) -> Preprocessed:
        """The preprocessor facts of a file."""
        self._reading.add(unit.path)
        try:
            return preprocess(unit.source.data, unit.path, self.environment, unit._load_include)
        finally:
            self._reading.discard(unit.path)

    def is_being_read(self, unit: Unit) -> bool:
        """Whether the file's directives are being read now (an include cycle)."""
        return unit.path in self._reading

    def resolve_include(self, path: str, include: Include) -> Unit | None:
        """The project file that `include` in `path` means: beside the file, `-I`, project root, or unique by suffix."""
        folder = posixpath.dirname(path)
        key = (folder, include.target, include.quoted)
        if key not in self._resolved:
            found = self._resolve(folder, include)
            self._resolved[key] = self.unit(found) if found is not None else None
        return self._resolved[key]

    def _resolve(self, folder: str, include: Include) -> str | None:
        target = include.target.strip()
        if not target or "\0" in target:
            return None
        folders = [folder] if include.quoted else []
        folders.extend(absolute(path) for path in self.options.include_dirs)
        for base in folders:
            candidate = posixpath.normpath(posixpath.join(base, target))
            if self._units.get(candidate) is not None or posixpath.isfile(candidate):
                return candidate
        return self._resolve_in_project(folder, target, include.quoted)

    def _resolve_in_project(self, folder: str, target: str, quoted: bool) -> str | None:
        stem, extension = posixpath.splitext(posixpath.basename(target))
        if not quoted and (not extension or ("/" not in target and stem in _STANDARD_HEADERS)):
            return None
        suffix = posixpath.normpath(target)
        while suffix.startswith("../"):
            suffix = suffix[3:]
        name = posixpath.basename(target)
        listed = [posixpath.join(found, name) for found in self._listing().get(name, ())]
        matches = [path for path in listed if path.endswith("/" + suffix)]
        for base in (self.root, posixpath.join(self.root, "include")):
            if posixpath.join(base, suffix) in matches:
                return posixpath.join(base, suffix)
        if len(matches) > 1:
            matches = _nearest(folder, matches)
        return matches[0] if len(matches) == 1 else None

    def _listing(self) -> dict[str, list[str]]:
        """The folders that hold a file of a name, for every file under the root; build and environment folders left out."""
        if self._listed is None:
            table: dict[str, list[str]] = {}
            count = 0
            for walked, folders, files in os.walk(self.root):
                folder = walked.replace(os.sep, "/")
                folders[:] = sorted(name for name in folders if name not in _EXCLUDED_FOLDERS)
                for name in files:
                    table.setdefault(name, []).append(folder)
                count += len(files)
                if count > _MAX_LISTED_FILES:
                    break
            self._listed = table
        return self._listed

    def includers(self, path: str | os.PathLike[str]) -> tuple[str, ...]:
        """The project files that include `path`, directly or through others, sorted."""
        start = absolute(path)
        wanted = [start]
        found: set[str] = set()
        while wanted:
            for unit, _ in self.direct_includers(wanted.pop()):
                if unit.path not in found:
                    found.add(unit.path)
                    wanted.append(unit.path)
        found.discard(start)
        return tuple(sorted(found))

    def _include_index(self) -> dict[str, list[str]]:
        """Every file that has `#include` lines, by the names of their targets; headers without CUDA pass contexts on, too."""
        table: dict[str, list[str]] = {}
        cuda = frozenset(self.project_files())
        listed = [posixpath.join(folder, name) for name, folders in self._listing().items() for folder in folders]
        for path in sorted(cuda.union(listed)):
            if path not in cuda and not path.endswith(_SOURCE_SUFFIXES):
                continue
            known = self._units.get(path)
            data = known.source.data if known is not None else self._project_data(path) if path in cuda else _read(path)
            for target in index.include_targets(data):
                table.setdefault(posixpath.basename(target), []).append(path)
        return table

    def direct_includers(self, path: str) -> tuple[tuple[Unit, int], ...]:
        """The project files that include the file at an absolute path, and the offsets of their `#include`s."""
        if self._includers is None:
            self._includers = self._include_index()
        name = posixpath.basename(path)
        found: list[tuple[Unit, int]] = []
        for file in dict.fromkeys(self._includers.get(name, ())):
            unit = self.unit(file)
            if unit is None or unit.path == path or self.is_being_read(unit):
                continue
            for include in unit.preprocessed.includes:
                if posixpath.basename(include.target) == name:
                    target_unit = self.resolve_include(file, include)
                    if target_unit is not None and target_unit.path == path:
                        found.append((unit, include.offset))
        return tuple(found)

    # -- indexes

    def register(self, unit: Unit) -> None:
        """Enter the names that a file seems to define into the index."""
        if unit.path not in self._registered:
            self._registered.add(unit.path)
            for word in unit.defined_names:
                self._defining.setdefault(word, []).append(unit)

    def definers(self, name: str) -> list[Unit]:
        """The registered files that seem to define `name`."""
        return self._defining.get(_index_key(name), [])

    def defining_files(self, name: str) -> tuple[str, ...]:
        """The project files that seem to define `name` (function, type, variable, alias, enumerator), sorted."""
        files = self.project_files()
        if not self._all_registered:
            self._all_registered = frozenset(files)
            for path in files:
                unit = self.unit(path)
                if unit is not None:
                    self.register(unit)
        return tuple(sorted(unit.path for unit in self.definers(name) if unit.path in self._all_registered))

    def launch_files(self, name: str) -> tuple[str, ...]:
        """The project files that launch kernels, or ask about launches, and hold the word `name`."""
        if self._launch_words is None:
            self._launch_words = {}
            for path in self.project_files():
                unit = self.unit(path)
                if unit is not None and unit.launch_words:
                    self._launch_words[path] = unit.launch_words
        wanted = name.encode()
        return tuple(path for path, words in self._launch_words.items() if wanted in words)

    @property
    def definitions(self) -> DefinitionIndex:
        """Every `#define` of the project."""
        if self._definitions is None:
            self._definitions = DefinitionIndex()
            for path in self.project_files():
                self._definitions.add(path, self._project_data(path))
        return self._definitions

    def unique(self, table: str, name: str) -> list[object]:
        """The symbols called `name` of the one project file that defines any, else none."""
        key = (table, name)
        if key not in self._unique:
            self._unique[key] = []
            self._unique[key] = self._find_unique(table, name)
        return self._unique[key]

    def _find_unique(self, table: str, name: str) -> list[object]:
        paths = self.defining_files(name)
        found: list[object] = []
        if len(paths) > _MAX_CANDIDATE_FILES:
            return found
        for path in paths:
            unit = self.unit(path)
            here = getattr(unit.symbols, table).get(name, ()) if unit is not None else ()
            if here and found:
                return []
            found.extend(here)
        return found


_SOURCE_SUFFIXES = tuple(sorted(MIXED_SUFFIXES))
_HOST_SUFFIXES = (".c", ".cc", ".cpp", ".cxx")
_COMPILED = (".cu", *_HOST_SUFFIXES)
_MAX_HEADER_BYTES = 2_000_000


def _read(path: str) -> bytes:
    """The start of a file that only its `#include` lines are wanted of; nothing if it cannot be read."""
    try:
        return read_regular(path, _MAX_HEADER_BYTES)
    except OSError:
        return b""


_EXCLUDED_FOLDERS = frozenset(
    name for name in DEFAULT_EXCLUDE if name.startswith((".", "__")) or name in ("node_modules", "CMakeFiles")
)


def _nearest(folder: str, matches: list[str]) -> list[str]:
    """Of several files, those that share the longest path with `folder` (a project made of many small ones)."""
    shared = [_shared_length(folder, match) for match in matches]
    return [match for match, length in zip(matches, shared, strict=True) if length == max(shared)]


def _shared_length(left: str, right: str) -> int:
    try:
        return len(posixpath.commonpath((left, right)))
    except ValueError:
        return 0
