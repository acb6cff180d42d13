"""The tree-sitter boundary: files and fragments to trees, with the masking pass where it is needed."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache
from typing import Literal

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree

from cudalint.source.macros import Lookup
from cudalint.source.mask import Inactive, Masker
from cudalint.source.text import SourceFile
from cudalint.syntax import kinds

LANGUAGE = Language(tree_sitter_cuda.language())
_PARSER = Parser(LANGUAGE)
_HEALTH = Query(
    LANGUAGE,
    '(ERROR) @error (MISSING) @error (function_definition "__global__") @kernel (kernel_call_syntax) @launch',
)

_NAME = re.compile(rb"[\w:.]*")


class ParsedFile:
    """The tree of one file.

    source      the file; `text` what was parsed: same length and lines, troublesome tokens blanked
    root        translation unit; offsets are those of `source.data`
    attributes  {offset: (name, argument text)} of what was blanked and rules need
    """

    __slots__ = ("_anchors", "attributes", "root", "source", "text")

    def __init__(self, source: SourceFile, text: bytes, root: Node, attributes: dict[int, tuple[str, str]]) -> None:
        self.source = source
        self.text = text
        self.root = root
        self.attributes = attributes
        self._anchors: list[tuple[int, int]] | None = None

    def pragma_before(self, offset: int) -> str | None:
        return None

    def has_error_in(self, start: int, end: int) -> bool:
        node = self.root.descendant_for_byte_range(start, end)
        return node is not None and node.has_error

    def specifiers(self, node: Node) -> dict[str, str]:
        """Blanked specifiers of a definition or declaration: name to argument text."""
        if self._anchors is None:
            self._anchors = sorted((self._anchor(offset), offset) for offset in self.attributes)
        body = node.child_by_field_name(kinds.F_BODY)
        end = body.start_byte if body is not None else node.end_byte
        first = bisect_left(self._anchors, (node.start_byte, -1))
        found: dict[str, str] = {}
        for anchor, offset in self._anchors[first:]:
            if anchor >= end:
                break
            name, argument = self.attributes[offset]
            found[name] = argument
        return found

    def is_kernel(self, node: Node) -> bool:
        """Whether a function definition or declaration is `__global__`, spelled out or by a macro."""
        return any(child.type == "__global__" for child in node.children) or "__global__" in self.specifiers(node)

    def _anchor(self, offset: int) -> int:
        text, end = self.text, len(self.text)
        while offset < end and text[offset] in b" \t\r\n\f\v":
            offset += 1
        return offset


def _cost(errors: list[tuple[int, int]]) -> int:
    """A few for every error plus the bytes that no node explains: a hundred small errors beat half a file lost."""
    cost, reached = 4 * len(errors), 0
    for start, end in errors:
        cost += max(end - max(start, reached), 0)
        reached = max(end, reached)
    return cost


def parse(source: SourceFile, macros: Lookup | None = None, inactive: Inactive | None = None) -> ParsedFile:
    """Parse a file, masking lazily: a file that parses clean as it is pays nothing.

    macros    evidence of the project for a macro name: what follows the name in its `#define`
    inactive  byte ranges of the `#if` arms that are not compiled
    """
    masker = Masker(source.data, macros)
    if masker.has_silent_macros():
        masker.mask_specifiers()
    text = masker.text
    tree = _parse(text)
    if not tree.root_node.has_error:
        return ParsedFile(source, text, tree.root_node, masker.attributes)
    best = _repair(masker, text, tree, inactive)
    return ParsedFile(source, best.text, best.tree.root_node, best.attributes)


def _parse(text: bytes) -> Tree:
    """A line end at the end of the file: the grammar wants one after a directive."""
    return _PARSER.parse(text if text.endswith(b"\n") else text + b"\n")


class _Attempt:
    """A masked text with its tree and what that is worth."""

    def __init__(self, masker: Masker, text: bytes, tree: Tree) -> None:
        self.text = text
        self.tree = tree
        self.attributes = dict(masker.attributes)
        captures = QueryCursor(_HEALTH).captures(tree.root_node)
        kernels, launches = captures.get("kernel", ()), captures.get("launch", ())
        self.errors = sorted((node.start_byte, node.end_byte) for node in captures.get("error", ()))
        self.cost = _cost(self.errors)
        self.kernels = {_header(node, text): node.start_byte for node in kernels}
        self.launches = {_callee(node, text): node.start_byte for node in launches}
        self.clean = sum(not node.has_error for node in kernels)
        self.dropped = list(masker.dropped)

    def better_than(self, other: _Attempt) -> bool:
        """Fewer errors (or more kernels without), and no kernel or launch lost that could be compiled."""
        if self.cost >= other.cost and self.clean <= other.clean:
            return False
        return self._keeps(self.kernels, other.kernels) and self._keeps(self.launches, other.launches)

    def _keeps(self, mine: dict[bytes, int], others: dict[bytes, int]) -> bool:
        """Whether there are as many as before, but for what stood in an arm that is certainly not compiled."""
        gone = (at for name, at in others.items() if name not in mine)
        dropped = sum(any(begin <= at < end for begin, end in self.dropped) for at in gone)
        return len(mine) + dropped >= len(others)


def _header(node: Node, text: bytes) -> bytes:
    """The name of a function definition, with its scope."""
    declarator = node.child_by_field_name(kinds.F_DECLARATOR)
    while declarator is not None and declarator.type != kinds.FUNCTION_DECLARATOR:
        declarator = declarator.child_by_field_name(kinds.F_DECLARATOR)
    name = declarator.child_by_field_name(kinds.F_DECLARATOR) if declarator is not None else None
    return text[name.start_byte : name.end_byte] if name is not None else b""


def _callee(node: Node, text: bytes) -> bytes:
    """What a launch calls, without template arguments."""
    call = node.parent
    match = _NAME.match(text, call.start_byte) if call is not None else None
    return match[0] if match is not None else b""


def _repair(masker: Masker, text: bytes, tree: Tree, inactive: Inactive | None) -> _Attempt:
    """Mask step by step until nothing is left to mend; the best of all attempts."""
    best = raw = _Attempt(masker, text, tree)
    if not raw.cost:
        return raw
    steps = (
        masker.mask_specifiers,
        lambda: masker.mask_conditionals(inactive),
        lambda: masker.mask_heuristics(best.errors),
        lambda: masker.mask_conditionals(inactive, every=True),
    )
    for step in steps:
        step()
        masked = masker.text
        if masked == text:
            continue
        text = masked
        attempt = _Attempt(masker, text, _parse(text))
        if attempt.better_than(best):
            best = attempt
        if not best.cost:
            break
    return best


@lru_cache(maxsize=4096)
def parse_fragment(text: bytes, kind: Literal["expression", "statements"]) -> tuple[Node, bytes, bool]:
    """Parse an expression or statements; returns the node, the text its offsets refer to and whether it has an error."""
    if kind == "expression":
        wrapped = b"int __f = (" + text + b"\n);"
        root = _PARSER.parse(wrapped).root_node
        node = root.descendant_for_byte_range(10, len(wrapped) - 1)
        while node is not None and node.type != "parenthesized_expression":
            node = node.parent
        inner = node.named_children[0] if node is not None and node.named_children else root
        return inner, wrapped, root.has_error
    wrapped = b"void __f() {" + text + b"\n}"
    root = _PARSER.parse(wrapped).root_node
    node = root.named_children[0].child_by_field_name("body") if root.named_children else None
    return node or root, wrapped, root.has_error
