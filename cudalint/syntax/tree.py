"""The tree-sitter boundary: files and fragments to trees, with the masking pass where it is needed."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Literal

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser, Tree

from cudalint.source.code import BLANK, COMMENT, skip_space
from cudalint.source.macros import Lookup
from cudalint.source.mask import Inactive, Masker
from cudalint.source.text import SourceFile
from cudalint.syntax import kinds
from cudalint.syntax.budget import readable_length

LANGUAGE = Language(tree_sitter_cuda.language())

_PARSER = Parser(LANGUAGE)
_GLOBAL = "__global__"
_NAME = re.compile(rb"[\w:.]*")
_REACH = 4096
"""How far back a pragma is looked for, in bytes."""
_SPELLING = 200
"""How long a macro or `_Pragma` that stands for a pragma may be, in bytes."""
_PRAGMA_LINE = re.compile(rb"#[ \t]*pragma[ \t]+(.*)\Z", re.DOTALL)
_PASSED_DIRECTIVE = re.compile(rb"#[ \t]*(?:if|ifdef|ifndef|else|elif|endif|pragma)\b")
_PRAGMA_CALL = re.compile(rb"\b_Pragma\s*\(\s*\"((?:[^\"\\]|\\.)*)\"\s*\)\Z")
_LABEL = re.compile(rb"(?<![?:\w])[A-Za-z_]\w*\s*:\Z")
_MACRO_USE = re.compile(rb"([A-Za-z_]\w*)(?:\s*\([^()]*\))?\Z")
_UNROLL = re.compile(r"(?:GCC\s+)?(unroll|nounroll)\b\s*(.*)\Z", re.DOTALL)


class ParsedFile:
    """The tree of one file.

    source      the file; `text` what was parsed: same length and lines as `source.data`, troublesome tokens overwritten
    root        translation unit; offsets are those of `source.data`, rows and columns those of the grammar
    attributes  {offset: (name, argument text)} of what was overwritten and still matters: specifiers that macros stand
                for ("__global__", "__launch_bounds__", "__shared__" …), attributes the grammar lacks ("__cluster_dims__",
                "__maxnreg__", "__block_size__", "max_blocks_per_cluster": the third argument of launch bounds), "pragma",
                and "macro:NAME" for a call that was turned into something else
    """

    __slots__ = ("_anchors", "_errors", "_read", "attributes", "root", "source", "text")

    def __init__(
        self, source: SourceFile, text: bytes, root: Node, attributes: dict[int, tuple[str, str]], read: int | None = None
    ) -> None:
        self.source = source
        self.text = text
        self.root = root
        self.attributes = attributes
        self._anchors: list[tuple[int, int]] | None = None
        self._errors: list[tuple[int, int]] | None = None
        self._read = len(text) if read is None else read

    @property
    def errors(self) -> list[tuple[int, int]]:
        """Byte ranges that no rule of the grammar explains, in order; empty where a token is missing.

        The last one may be a rest of the file that was not read because it is nothing like code.
        """
        if self._errors is None:
            self._errors = _error_ranges(self.root) if self.root.has_error else []
            if self._read < len(self.text):
                self._errors.append((self._read, len(self.text)))
        return self._errors

    def has_error_in(self, start: int, end: int) -> bool:
        """Whether something inside the range did not parse; a range that lies whole within a larger error is fine."""
        last = bisect_right(self.errors, (end, end))
        return any(
            error_end >= start and not (error_start <= start and end <= error_end)
            for error_start, error_end in self.errors[:last]
        )

    def specifiers(self, node: Node) -> dict[str, str]:
        """Overwritten specifiers and attributes of a definition or declaration: name to argument text."""
        if self._anchors is None:
            self._anchors = sorted((skip_space(self.text, offset), offset) for offset in self.attributes)
        body = node.child_by_field_name(kinds.F_BODY)
        end = body.start_byte if body is not None else node.end_byte
        first = bisect_left(self._anchors, (node.start_byte, -1))
        last = bisect_left(self._anchors, (end, -1))
        return dict(self.attributes[offset] for _, offset in self._anchors[first:last])

    def is_kernel(self, node: Node) -> bool:
        """Whether a function definition or declaration is `__global__`, spelled out or by a macro."""
        return _has_global(node) or _GLOBAL in self.specifiers(node)

    def pragma_before(self, offset: int) -> str | None:
        """The unroll pragma of the loop that starts at `offset`: "unroll", "unroll N", "nounroll", None without one.

        Understands `#pragma unroll N` and `(N)`, `_Pragma`, and macros that stand for them; comments, labels, other
        pragmas and `#if` lines may stand between.
        """
        low = max(offset - _REACH, 0)
        before = self.source.data[low:offset].rstrip()
        while before:
            if before.endswith(b"*/"):
                before = before[: max(before.rfind(b"/*"), 0)].rstrip()
                continue
            line = _last_line(before)
            text = line.strip()
            if text.startswith(b"#"):
                pragma = _PRAGMA_LINE.match(COMMENT.sub(b" ", text))
                found = _unroll(pragma[1].decode("utf-8", "replace")) if pragma is not None else None
                if found is not None or _PASSED_DIRECTIVE.match(text) is None:
                    return found
                before = before[: len(before) - len(line)].rstrip()
                continue
            code = _without_line_comment(line).rstrip()
            kept = before[: len(before) - len(line)] + code
            label = _LABEL.search(code)
            if label is not None:
                before = kept[: len(kept) - len(label[0])].rstrip()
            elif code:
                return self._spelled_pragma(kept.rstrip(), low)
            else:
                before = kept.rstrip()
        return None

    def _spelled_pragma(self, before: bytes, low: int) -> str | None:
        """`_Pragma("unroll")` or a macro at the end of the text."""
        low += max(len(before) - _SPELLING, 0)
        before = before[-_SPELLING:]
        call = _PRAGMA_CALL.search(before)
        if call is not None:
            return _unroll(call[1].decode("utf-8", "replace"))
        use = _MACRO_USE.search(before)
        name, argument = self.attributes.get(low + use.start(1), ("", "")) if use is not None else ("", "")
        return _unroll(argument) if name == "pragma" else None


def is_macro_loop(node: Node) -> bool:
    """Whether a function definition is a macro with a block behind it: `KERNEL_LOOP(i, n) { … }` inside a body."""
    return (
        node.type == kinds.FUNCTION_DEFINITION
        and node.child_by_field_name(kinds.F_TYPE) is None
        and node.parent is not None
        and node.parent.type in _STATEMENT_PARENTS
    )


_STATEMENT_PARENTS = frozenset(
    (
        kinds.COMPOUND_STATEMENT,
        kinds.FOR_STATEMENT,
        kinds.WHILE_STATEMENT,
        kinds.IF_STATEMENT,
        kinds.ELSE_CLAUSE,
        kinds.CASE_STATEMENT,
        kinds.PREPROC_IF,
        kinds.PREPROC_IFDEF,
        kinds.PREPROC_ELSE,
    )
)


def parse(source: SourceFile, macros: Lookup | None = None, inactive: Inactive | None = None) -> ParsedFile:
    """Parse a file, masking lazily: a file that parses clean as it is pays next to nothing.

    macros    evidence of the project for a macro name: what follows the name in its `#define`, None for an unknown name
    inactive  byte ranges of the `#if` arms that are not compiled; without it obvious conditions are judged by name
    """
    data = source.data
    read = readable_length(_PARSER, data)
    masker = Masker(data[:read] + data[read:].translate(BLANK) if read < len(data) else data, macros)
    if masker.has_silent_macros():
        masker.mask_specifiers()
    text, attributes = masker.text, masker.attributes
    tree = _parse(text)
    if tree.root_node.has_error:
        best = _repair(masker, text, tree, inactive)
        text, tree, attributes = best.text, best.tree, best.attributes
    return ParsedFile(source, text, tree.root_node, attributes, read)


@lru_cache(maxsize=2048)
def parse_fragment(text: bytes, kind: Literal["expression", "statements"]) -> tuple[Node, bytes, bool]:
    """Parse an expression or a run of statements.

    Returns the node (the expression; the braces around the statements), the text that its offsets refer to, and
    whether it is broken: not parsed whole, or no such thing.
    """
    prefix, suffix = _FRAMES[kind]
    framed = prefix + text + suffix
    if readable_length(_PARSER, framed) < len(framed):
        return _parse(b"").root_node, b"", True
    root = _parse(framed).root_node
    if root.has_error:
        masker = Masker(framed)
        masker.mask_specifiers()
        masker.mask_heuristics([(len(prefix), len(framed))])
        masked = _parse(masker.text).root_node
        if not masked.has_error:
            root, framed = masked, masker.text
    node = _FRAME_NODES[kind](root)
    whole = node is not None and node.start_byte == len(prefix) - 1 and node.end_byte == len(prefix) + len(text) + 2
    broken = root.has_error or not whole
    if kind == "expression" and node is not None:
        inner = [child for child in node.named_children if not child.is_extra]
        broken = broken or len(inner) != 1
        node = inner[0] if inner else root
    return node if node is not None else root, framed, broken


_FRAMES = {"expression": (b"int __f = (", b"\n);"), "statements": (b"void __f() {", b"\n}")}


def _initialiser(root: Node) -> Node | None:
    declaration = root.named_children[0] if root.named_child_count == 1 else None
    declarator = declaration.child_by_field_name(kinds.F_DECLARATOR) if declaration is not None else None
    value = declarator.child_by_field_name(kinds.F_VALUE) if declarator is not None else None
    return value if value is not None and value.type == kinds.PARENTHESIZED_EXPRESSION else None


def _body(root: Node) -> Node | None:
    definition = root.named_children[0] if root.named_child_count == 1 else None
    return definition.child_by_field_name(kinds.F_BODY) if definition is not None else None


_FRAME_NODES: dict[str, Callable[[Node], Node | None]] = {"expression": _initialiser, "statements": _body}


# --------------------------------------------------------------------- masking


class _Attempt:
    """A masked text with its tree and what that is worth."""

    def __init__(self, masker: Masker, text: bytes, tree: Tree) -> None:
        self.text = text
        self.tree = tree
        self.attributes = dict(masker.attributes)
        self.dropped = list(masker.dropped)
        found = list(_marked_nodes(tree.root_node, text))
        launches = [node for node in found if node.type == kinds.KERNEL_CALL_SYNTAX and node.parent and not node.parent.has_error]
        kernels = [node for node in found if node.type != kinds.KERNEL_CALL_SYNTAX and _has_global(node)]
        self.errors = _error_ranges(tree.root_node)
        self.cost = _cost(self.errors)
        self.kernels = {_kernel_name(node, text): node.start_byte for node in kernels}
        self.launches = {_callee(node, text): node.start_byte for node in launches}
        self.clean = sum(not node.has_error for node in kernels)

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


def _repair(masker: Masker, text: bytes, tree: Tree, inactive: Inactive | None) -> _Attempt:
    """Mask step by step until nothing is left to mend; the best of all attempts."""
    best = _Attempt(masker, text, tree)
    steps: tuple[Callable[[], None], ...] = (
        masker.mask_specifiers,
        lambda: masker.mask_conditionals(inactive),
        lambda: masker.mask_heuristics(best.errors),
        lambda: masker.mask_conditionals(inactive, every=True),
    )
    for step in steps:
        if not best.cost:
            break
        step()
        masked = masker.text
        if masked == text:
            continue
        text = masked
        if readable_length(_PARSER, text) < len(text):
            continue
        attempt = _Attempt(masker, text, _parse(text))
        if attempt.better_than(best):
            best = attempt
    return best


def _parse(text: bytes) -> Tree:
    """The grammar wants a line end after a directive, at the end of the file too."""
    return _PARSER.parse(text if text.endswith(b"\n") else text + b"\n")


def _has_global(node: Node) -> bool:
    return any(child.type == _GLOBAL for child in node.children)


_MARK = re.compile(rb"__global__|<<<")
_MANY = 400


def _marked_nodes(root: Node, text: bytes) -> Iterator[Node]:
    """Function definitions with `__global__` and launches, found by their text where that is quicker than a walk."""
    marks = list(islice(_MARK.finditer(text), _MANY))
    if len(marks) == _MANY:
        yield from _all_nodes(root)
        return
    seen: set[int] = set()
    for mark in marks:
        token = root.descendant_for_byte_range(mark.start(), mark.end())
        node = token.parent if token is not None else None
        if node is not None and node.type in _MARKED and node.id not in seen:
            seen.add(node.id)
            yield node


_MARKED = (kinds.FUNCTION_DEFINITION, kinds.KERNEL_CALL_SYNTAX)


def _all_nodes(root: Node) -> Iterator[Node]:
    """The same by a walk.  Not by a query: those take quadratic time over an error with many children."""
    ids = {LANGUAGE.id_for_node_kind(name, True) for name in _MARKED}
    cursor = root.walk()
    while True:
        node = cursor.node
        if node is not None and node.kind_id in ids:
            yield node
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def _error_ranges(root: Node) -> list[tuple[int, int]]:
    """Byte ranges of all errors and missing tokens, in order."""
    found: list[tuple[int, int]] = []
    cursor = root.walk()
    while True:
        node = cursor.node
        broken = node is not None and node.has_error
        if node is not None and (node.is_error or node.is_missing):
            found.append((node.start_byte, node.end_byte))
        if broken and cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return sorted(found)


def _cost(errors: list[tuple[int, int]]) -> int:
    """A few for every error plus the bytes that no node explains: a hundred small errors beat half a file lost."""
    cost, reached = 4 * len(errors), 0
    for start, end in errors:
        cost += max(end - max(start, reached), 0)
        reached = max(end, reached)
    return cost


def _kernel_name(node: Node, text: bytes) -> bytes:
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


# --------------------------------------------------------------------- pragmas


def _last_line(text: bytes) -> bytes:
    """The last line of a text, with the lines that it continues."""
    start = text.rfind(b"\n") + 1
    while start > 1 and text[:start].rstrip(b"\r\n").endswith(b"\\"):
        start = text.rfind(b"\n", 0, start - 1) + 1
    return text[start:]


_LITERAL_OR_COMMENT = re.compile(rb"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|//.*\Z|/\*.*?\*/", re.DOTALL)


def _without_line_comment(line: bytes) -> bytes:
    return _LITERAL_OR_COMMENT.sub(lambda match: b"" if match[0].startswith(b"//") else match[0], line)


def _unroll(pragma: str) -> str | None:
    """A pragma's text in one spelling, None if it does not concern unrolling."""
    match = _UNROLL.match(pragma.strip().replace("\\\n", " "))
    if match is None:
        return None
    argument = match[2].strip()
    if argument.startswith("(") and argument.endswith(")"):
        argument = argument[1:-1].strip()
    return f"{match[1]} {argument}" if argument else match[1]
