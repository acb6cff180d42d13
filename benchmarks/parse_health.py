"""How much of real CUDA code is understood: kernels and launches found by text alone, against the trees.

    python benchmarks/parse_health.py [--list] [--unmasked] REPOSITORY...

The ground truth is lexical and shares no code with the product: comments, literals and directives are blanked,
every `__global__` (or a macro whose definition holds it) is followed to its body by matching brackets, every `<<<` to
its `>>>(`.  A kernel counts as clean when the tree has a function definition, known to be a kernel, with exactly
that body and no error inside; a launch when the tree has a launch without an error there.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tree_sitter import Node, Parser

from cudalint.source.discover import DiscoverySettings, discover
from cudalint.source.macros import DefinitionIndex
from cudalint.source.text import SourceFile, load
from cudalint.syntax import kinds
from cudalint.syntax.tree import LANGUAGE, ParsedFile, parse

SPACES = bytes(c if c in b"\n\r\"'" else 32 for c in range(256))
TEXT = re.compile(
    rb"""//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z)|\b(?:u8|[uUL])?R"([^\s()\\]*)\(.*?(?:\)\1"|\Z)|"(?:\\.|[^"\\\n])*"?"""
    rb"""|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'""",
    re.DOTALL,
)
DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(\w*)((?:\\\r?\n|[^\n])*)", re.MULTILINE)
NEVER = re.compile(rb"\s*(?:0|defined\s*\(?\s*(?:__HIP\w*|USE_ROCM|USE_HIP|__clang__|_MSC_VER)\s*\)?)\s*\Z")
KERNEL_MACRO = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\([^)]*\))?((?:\\\r?\n|[^\n])*)", re.MULTILINE)
OPEN = b"([{"
COLUMNS = (
    "repository",
    "files",
    "MB",
    "kernels without an error inside",
    "launches recognised",
    "crashes",
    "seconds",
    "times the bare parse",
    "macro index, seconds",
)


@dataclass
class Health:
    """Counts of one repository."""

    name: str
    files: int = 0
    size: int = 0
    kernels: int = 0
    clean: int = 0
    launches: int = 0
    recognised: int = 0
    crashes: int = 0
    seconds: float = 0.0
    bare_seconds: float = 0.0
    index_seconds: float = 0.0
    failures: list[str] = field(default_factory=list)


def blank(match: re.Match[bytes]) -> bytes:
    return match[0].translate(SPACES).replace(b'"', b" ").replace(b"'", b" ")


def view(data: bytes) -> bytes:
    """Code without comments, literals and directives, with one arm of every `#if`."""
    code = TEXT.sub(blank, data)
    single = bytearray(code)
    stack: list[list[int]] = []  # [taken so far, start of an arm left out or -1]
    for match in DIRECTIVE.finditer(code):
        word, rest = match[1], match[2]
        if word in (b"if", b"ifdef", b"ifndef"):
            never = NEVER.match(rest if word == b"if" else b"defined " + rest) is not None and word != b"ifndef"
            stack.append([not never, match.end() if never else -1])
        elif word in (b"elif", b"else", b"endif") and stack:
            top = stack[-1]
            if top[1] >= 0:
                single[top[1] : match.start()] = bytes(single[top[1] : match.start()]).translate(SPACES)
                top[1] = -1
            if word == b"endif":
                stack.pop()
            elif top[0]:
                top[1] = match.end()
            else:
                top[0] = True
    for match in DIRECTIVE.finditer(code):
        single[match.start() : match.end()] = match[0].translate(SPACES)
    return bytes(single)


def closing(code: bytes, start: int) -> int:
    """Offset of the bracket that closes the one at `start`, or -1."""
    depth = 0
    for match in re.compile(rb"[()\[\]{}]").finditer(code, start):
        depth += 1 if match[0] in OPEN else -1
        if depth == 0:
            return match.start()
    return -1


def bodies(code: bytes, marker: re.Pattern[bytes]) -> Iterator[tuple[int, int, int]]:
    """(marker, start of body, end of body) of every kernel definition."""
    for match in marker.finditer(code):
        position = match.end()
        while True:
            found = re.compile(rb"[(\[{;})\]]").search(code, position)
            if found is None or found[0] in b";})]":
                break
            end = closing(code, found.start())
            if end < 0:
                break
            if found[0] == b"{":
                yield match.start(), found.start(), end + 1
                break
            position = end + 1


def launch_sites(code: bytes) -> Iterator[int]:
    for match in re.finditer(rb"(?<!<)<<<(?!<)", code):
        end = code.find(b">>>", match.end())
        if end > 0 and re.compile(rb">>>\s*\(").match(code, end) and b";" not in code[match.start() : end]:
            yield match.start()


def nodes_of(root: Node, wanted: set[str]) -> Iterator[Node]:
    """All nodes of some types, without recursion."""
    cursor = root.walk()
    while True:
        node = cursor.node
        if node is not None and node.type in wanted:
            yield node
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def measure_file(source: SourceFile, parsed: ParsedFile, marker: re.Pattern[bytes], health: Health) -> None:
    single = view(source.data)
    clean: set[tuple[int, int]] = set()
    launches: set[int] = set()
    for node in nodes_of(parsed.root, {kinds.FUNCTION_DEFINITION, kinds.KERNEL_CALL_SYNTAX}):
        if node.type == kinds.KERNEL_CALL_SYNTAX:
            if node.parent is not None and node.parent.type == kinds.CALL_EXPRESSION and not node.parent.has_error:
                launches.add(node.start_byte)
        elif not node.has_error and parsed.is_kernel(node):
            body = node.child_by_field_name(kinds.F_BODY)
            if body is not None:
                clean.add((body.start_byte, body.end_byte))
    for start, body_start, body_end in {*bodies(single, marker)}:
        health.kernels += 1
        if (body_start, body_end) in clean:
            health.clean += 1
        else:
            health.failures.append(f"kernel {source.path}:{source.position(start)[0]}")
    for start in launch_sites(single):
        health.launches += 1
        if start in launches:
            health.recognised += 1
        else:
            health.failures.append(f"launch {source.path}:{source.position(start)[0]}")


def kernel_marker(datas: list[bytes]) -> re.Pattern[bytes]:
    """`__global__` and the macros of the project that stand for it."""
    names = {b"RAFT_KERNEL", b"CUDF_KERNEL", b"CUTLASS_GLOBAL"}
    for data in datas:
        for match in KERNEL_MACRO.finditer(data):
            if b"__global__" in match[2] and b"{" not in match[2] and b";" not in match[2] and b"<" not in match[2]:
                names.add(match[1])
    return re.compile(rb"\b(?:__global__|" + b"|".join(sorted(names)) + rb")\b")


def measure(folder: Path, unmasked: bool) -> Health:
    health = Health(folder.name)
    names = discover([folder], DiscoverySettings(python=False)).files
    if folder.name == "HeCBench":
        names = [name for name in names if re.search(r"/src/[^/]*-cuda/", name)]
    sources = [load(name) for name in names]
    marker = kernel_marker([source.data for source in sources])
    index = DefinitionIndex()
    began = time.process_time()
    for name in discover([folder], DiscoverySettings(python=False, every_header=True)).files:
        index.add(name, load(name).data)
    health.index_seconds = time.process_time() - began
    bare = Parser(LANGUAGE)
    for source in sources:
        health.files += 1
        health.size += len(source.data)
        began = time.process_time()
        bare.parse(source.data)
        health.bare_seconds += time.process_time() - began
        began = time.process_time()
        try:
            if unmasked:
                parsed = ParsedFile(source, source.data, bare.parse(source.data).root_node, {})
            else:
                parsed = parse(source, partial(index.find, path=source.path))
        except Exception:
            health.crashes += 1
            traceback.print_exc()
            continue
        health.seconds += time.process_time() - began
        measure_file(source, parsed, marker, health)
    return health


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} % ({whole - part} of {whole} not)" if whole else "-"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--list", action="store_true", help="name what failed, on standard error")
    parser.add_argument("--unmasked", action="store_true", help="the grammar alone, for comparison")
    arguments = parser.parse_args()
    print("|", " | ".join(COLUMNS), "|")
    print("|", " | ".join("---" for _ in COLUMNS), "|")
    for folder in arguments.folders:
        health = measure(folder, arguments.unmasked)
        size = health.size / 1e6
        cells = (
            health.name,
            health.files,
            f"{size:.1f}",
            percent(health.clean, health.kernels),
            percent(health.recognised, health.launches),
            health.crashes,
            f"{health.seconds:.1f}",
            f"{health.seconds / health.bare_seconds:.1f}",
            f"{health.index_seconds:.1f}",
        )
        print("|", " | ".join(map(str, cells)), "|", flush=True)
        if arguments.list:
            print(*health.failures, sep="\n", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
