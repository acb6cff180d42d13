"""Which files are checked: CUDA sources, headers that hold CUDA, Python that embeds it.

The answer depends only on the tree and the settings: sorted, no file twice
(by real path), problems reported rather than raised.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pathspec import GitIgnoreSpec

from cudalint.source.text import MAX_BYTES, SourceError, read_regular

CUDA_SUFFIXES = frozenset({".cu", ".cuh"})
"""Always CUDA."""
MIXED_SUFFIXES = frozenset(
    {".h", ".hh", ".hpp", ".hxx", ".h++", ".inl", ".inc", ".ipp", ".tpp", ".txx", ".tcc", ".impl", ".c", ".cc", ".cpp", ".cxx"}
)
"""CUDA only where the content says so."""
PYTHON_SUFFIXES = frozenset({".py", ".ipynb"})
"""May embed CUDA in strings."""

_SUFFIXES = CUDA_SUFFIXES | MIXED_SUFFIXES | PYTHON_SUFFIXES

DEFAULT_EXCLUDE = (
    ".bzr",
    ".cache",
    ".direnv",
    ".eggs",
    ".git",
    ".hg",
    ".mypy_cache",
    ".nox",
    ".pytest_cache",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    ".vs",
    ".vscode",
    "3rd-party",
    "3rd_party",
    "3rdparty",
    "CMakeFiles",
    "__pycache__",
    "__pypackages__",
    "_build",
    "_deps",
    "_skbuild",
    "bazel-*",
    "build",
    "build-*",
    "cmake-build-*",
    "dist",
    "extern",
    "external",
    "externals",
    "node_modules",
    "site-packages",
    "submodules",
    "third-party",
    "third_party",
    "thirdparty",
    "vendor",
    "vendored",
    "venv",
)
"""Folders of builds, environments and other people's code (patterns of .gitignore, folders only)."""

CONFIG_NAMES = ("cudalint.toml", ".cudalint.toml")
VCS_NAMES = (".git", ".hg", ".svn")

_PYPROJECT_TABLE = re.compile(rb"""^[ \t]*\[{1,2}[ \t]*tool[ \t]*\.[ \t]*["']?cudalint["']?[ \t]*[].]""", re.MULTILINE)
_CUDA_HINTS = (b"__global__", b"__device__", b"__shared__", b"__managed__", b"threadIdx", b"blockIdx", b"<<<", b"_KERNEL")
_CUDA_TOKEN = re.compile(
    rb"//(?:[^\\\n]|\\.)*|/\*.*?(?:\*/|\Z)"
    rb'|R"(?P<mark>[^\s()\\]{0,16})\(.*?(?:\)(?P=mark)"|\Z)|"(?:[^"\\\n]|\\.)*"?'
    rb"|(?P<cuda>__(?:global|device|shared|managed)__|\b(?:thread|block)Idx\s*\.\s*[xyz]\b"
    rb"|[\w>]\s*<<<[^<][^;]{0,400}?>>>\s*\(|\b[A-Z]\w*_KERNEL\s+\w)",
    re.DOTALL,
)
_PYTHON_HINT = re.compile(rb"__global__|__device__")


@dataclass(frozen=True, slots=True)
class DiscoverySettings:
    """What is searched.  Patterns are those of .gitignore.

    exclude            patterns in place of the defaults; they match folders and files below the paths given
    extend_exclude     patterns on top of `exclude`
    respect_gitignore  skip what .gitignore files (nested ones too) and .git/info/exclude leave out
    force_exclude      apply all of this to paths that were given explicitly as well
    root               folder that patterns with a slash are relative to; None: that of `find_root`
    python             also .py and .ipynb files that embed CUDA
    every_header       C and C++ files whatever they hold: what a project defines, not what is checked
    """

    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    extend_exclude: tuple[str, ...] = ()
    respect_gitignore: bool = True
    force_exclude: bool = False
    root: str | None = None
    python: bool = True
    every_header: bool = False


@dataclass(frozen=True, slots=True)
class Discovery:
    """The files to check, sorted, and what could not be read."""

    files: list[str] = field(default_factory=list)
    problems: list[SourceError] = field(default_factory=list)


def discover(paths: Iterable[str | os.PathLike[str]], settings: DiscoverySettings | None = None) -> Discovery:
    """Every file to check at or below `paths`.

    A file that is named is taken whatever it is called or holds; folders are
    searched.  Raises nothing: missing and unreadable paths are `problems`.
    """
    walk = _Walk(settings or DiscoverySettings())
    for path in paths:
        walk.add(os.fspath(path))
    return walk.result()


def is_cuda_header(data: bytes) -> bool:
    """Whether a C or C++ file holds CUDA code outside of comments and literals."""
    if not may_hold_cuda(data):
        return False
    return any(match["cuda"] is not None for match in _CUDA_TOKEN.finditer(data))


def may_hold_cuda(data: bytes) -> bool:
    """Whether anything in a file, were it in a comment, looks like CUDA."""
    return any(hint in data for hint in _CUDA_HINTS)


def find_root(path: str | os.PathLike[str], default: str | None = None, known: dict[str, bool] | None = None) -> str:
    """The project of a file or folder: the nearest folder upwards with a cudalint configuration or version control.

    Without one, `default`; without that, the folder itself (of a file: the one that holds it).  `known` remembers for who
    asks about many files which folders are projects.
    """
    known = {} if known is None else known
    start = os.path.abspath(path)
    if not os.path.isdir(start):
        start = os.path.dirname(start)
    folder = start
    while True:
        if folder not in known:
            known[folder] = _is_root(folder)
        if known[folder]:
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return default or start
        folder = above


_MARKERS = frozenset((*CONFIG_NAMES, *VCS_NAMES))


def _is_root(folder: str) -> bool:
    try:
        names = set(os.listdir(folder))
    except OSError:
        return False
    if names & _MARKERS:
        return True
    try:
        if "pyproject.toml" not in names:
            return False
        return _PYPROJECT_TABLE.search(read_regular(os.path.join(folder, "pyproject.toml"))) is not None
    except OSError:
        return False


class _Place(NamedTuple):
    """What patterns are relative to: the project's folder, and the repository's (the topmost .gitignore that counts)."""

    base: str
    repository: str | None


class _Walk:
    """One search: what was found so far, by real path."""

    def __init__(self, settings: DiscoverySettings) -> None:
        self.settings = settings
        self.found: dict[str, str] = {}
        self.problems: dict[str, SourceError] = {}
        self.folders: set[str] = set()
        self.root = os.path.abspath(settings.root) if settings.root is not None else None
        patterns = [*settings.exclude, *settings.extend_exclude]
        self.names = GitIgnoreSpec.from_lines([pattern for pattern in patterns if "/" not in pattern.rstrip("/")])
        places = [pattern for pattern in patterns if "/" in pattern.rstrip("/")]
        self.places = GitIgnoreSpec.from_lines(places) if places else None
        self.named: dict[str, bool] = {}
        self.ignores: dict[str, GitIgnoreSpec | None] = {}

    def result(self) -> Discovery:
        files = sorted(self.found.values(), key=lambda path: path.split("/"))
        return Discovery(files, sorted(self.problems.values(), key=lambda problem: problem.path))

    def add(self, path: str) -> None:
        name = _display(path)
        absolute = os.path.abspath(path)
        if not os.path.exists(path):
            self.problem(name, "no such file or directory")
        elif self.settings.force_exclude and self.skipped_above(absolute, os.path.isdir(path)):
            return
        elif os.path.isdir(path):
            self.search(path, absolute)
        else:
            self.found.setdefault(os.path.realpath(path), name)

    def problem(self, path: str, reason: str) -> None:
        self.problems.setdefault(path, SourceError(path, reason))

    def search(self, path: str, absolute: str) -> None:
        """All files below a folder, without recursion; links to folders are followed, each real folder is entered once."""
        place = _Place(self.root or find_root(absolute), _vcs_root(absolute))
        if self.skipped_above(absolute, True):  # who names a folder wants what is in it
            place = _Place(absolute, absolute)
        stack = [(path, absolute, os.path.realpath(absolute))]
        while stack:
            shown, folder, real = stack.pop()
            if real in self.folders:
                continue
            self.folders.add(real)
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError as error:
                self.problem(_display(shown), _reason(error))
                continue
            for entry in entries:
                real_entry = os.path.realpath(entry.path) if entry.is_symlink() else os.path.join(real, entry.name)
                child = os.path.join(shown, entry.name)
                is_folder = _is_folder(entry)
                if not is_folder and _suffix(entry.name) not in _SUFFIXES:
                    continue
                if self.skipped(entry.path, is_folder, place):
                    continue
                if is_folder:
                    stack.append((child, entry.path, real_entry))
                elif not _is_file(entry):
                    self.left_out(entry, child)
                elif self.wanted(entry, child):
                    self.keep(real_entry, _display(child), entry.is_symlink())

    def left_out(self, entry: os.DirEntry[str], shown: str) -> None:
        """A pipe, a device or a link that leads nowhere; editors keep locks of that kind as hidden files."""
        if _suffix(entry.name) not in CUDA_SUFFIXES or entry.name.startswith("."):
            return
        try:
            os.stat(entry.path)
            self.problem(_display(shown), "not a regular file")
        except OSError as error:
            self.problem(_display(shown), _reason(error))

    def keep(self, real: str, name: str, link: bool) -> None:
        if real not in self.found or not link:
            self.found.setdefault(real, name)

    def wanted(self, entry: os.DirEntry[str], shown: str) -> bool:
        suffix = _suffix(entry.name)
        if suffix in CUDA_SUFFIXES:
            return True
        if suffix in MIXED_SUFFIXES and self.settings.every_header:
            return True
        if suffix in MIXED_SUFFIXES:
            data = self.read(entry, shown)
            return data is not None and is_cuda_header(data)
        if suffix in PYTHON_SUFFIXES and self.settings.python:
            data = self.read(entry, shown)
            return data is not None and _PYTHON_HINT.search(data) is not None
        return False

    def read(self, entry: os.DirEntry[str], shown: str) -> bytes | None:
        try:
            if entry.stat().st_size > MAX_BYTES:
                return None
            return read_regular(entry.path)
        except OSError as error:
            self.problem(_display(shown), _reason(error))
            return None

    def skipped(self, path: str, is_folder: bool, place: _Place) -> bool:
        """Whether an entry is left out by itself; the folders above it have been asked already."""
        slash = "/" if is_folder else ""
        name = os.path.basename(path) + slash
        if name not in self.named:
            self.named[name] = self.names.match_file(name)
        if self.named[name]:
            return True
        if self.places is not None and self.places.match_file(_relative(path, place.base) + slash):
            return True
        return self.settings.respect_gitignore and self.git_ignored(path, slash, place.repository)

    def skipped_above(self, absolute: str, is_folder: bool) -> bool:
        """Whether a path or a folder that it lies in is left out; folders above the project do not count."""
        place = _Place(self.root or find_root(absolute), _vcs_root(absolute))
        if absolute == place.base:
            return False
        steps = [absolute, *_folders_between(absolute, place.base)]
        return any(self.skipped(step, is_folder or step != absolute, place) for step in steps)

    def git_ignored(self, path: str, slash: str, repository: str | None) -> bool:
        """The deepest .gitignore with an opinion decides, as for git."""
        if repository is None or not _is_below(path, repository):
            return False
        folder = os.path.dirname(path)
        for base in dict.fromkeys((folder, *_folders_between(folder, repository), repository)):
            for spec in self.specs(base, base == repository):
                verdict = spec.check_file(_relative(path, base) + slash).include
                if verdict is not None:
                    return verdict
        return False

    def specs(self, folder: str, is_root: bool) -> Iterator[GitIgnoreSpec]:
        names = (".gitignore", os.path.join(".git", "info", "exclude")) if is_root else (".gitignore",)
        for name in names:
            path = os.path.join(folder, name)
            if path not in self.ignores:
                self.ignores[path] = _load_spec(path)
            spec = self.ignores[path]
            if spec is not None:
                yield spec


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _load_spec(path: str) -> GitIgnoreSpec | None:
    try:
        lines = read_regular(path).decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    kept: list[str] = []
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line])
        except (ValueError, re.error):
            continue
        kept.append(line)
    return GitIgnoreSpec.from_lines(kept) if kept else None


def _vcs_root(absolute: str) -> str | None:
    """The folder of the git repository that holds a path."""
    for folder in (absolute, *map(str, Path(absolute).parents)):
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
    return None


def _folders_between(path: str, base: str) -> Sequence[str]:
    """The folders above `path` and below `base`, nearest first."""
    folders = []
    folder = os.path.dirname(path)
    while _is_below(folder, base) and folder != base:
        folders.append(folder)
        folder = os.path.dirname(folder)
    return folders


def _is_below(path: str, base: str) -> bool:
    return path == base or path.startswith(base.rstrip(os.sep) + os.sep)


def _relative(path: str, base: str) -> str:
    relative = path[len(base.rstrip(os.sep)) + 1 :] if _is_below(path, base) else os.path.basename(path)
    return relative.replace(os.sep, "/")


def _display(path: str) -> str:
    return os.path.normpath(path).replace(os.sep, "/")
