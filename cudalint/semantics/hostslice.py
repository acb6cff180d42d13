"""Which statements of a host function can change a variable, found in its text before anything is run."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_SLICE = 60
MAX_VALUE = 400

WORD = re.compile(rb"[A-Za-z_]\w*")
_AFTER = re.compile(rb"(?:\s*\[[^\[\];]*\]|\s*(?:\.|->)\s*\w+)*\s*(?:([-+*/%&|^]?=(?!=)|<<=|>>=|[({])|\+\+|--|[;,)])")
_RANGED = re.compile(rb"\bfor\s*\([^;:(){}]*?\b([A-Za-z_]\w*)\s*:(?!:)([^;]*?)\)\s*[{\w]")
_NO_TYPE = rb"(?!(?:return|else|case|goto|throw|delete|new|typename|struct|enum|class|union|define|ifdef|ifndef|if|undef)\b)"
_DECLARED = re.compile(rb"\b" + _NO_TYPE + rb"[A-Za-z_]\w*[ \t]+([A-Za-z_]\w*)\s*[=;,\[{]")
_POINTER = re.compile(rb"(?:[;}]|\{\s)\s*" + _NO_TYPE + rb"(?:\w+\s+){0,3}[A-Za-z_][\w:]*[ \t]*\*+[ \t]*([A-Za-z_]\w*)\s*[=;,]")
_IN_WORD = frozenset(bytes((c,)) for c in b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_TYPE_ENDS = (b"_", b">", b"*", b"&", b",")


def occurrences(text: bytes, name: bytes) -> Iterator[int]:
    """Where a name stands as a whole word."""
    at = text.find(name) if name else -1
    while at >= 0:
        end = at + len(name)
        if text[at - 1 : at] not in _IN_WORD and text[end : end + 1] not in _IN_WORD:
            yield at
        at = text.find(name, end)


class Changes:
    """Where a function body may change which variable, and on which words the new value depends; worked out name by name."""

    def __init__(self, body: Node, head: bytes, parameters: tuple[str, ...], template: Iterable[str] = ()) -> None:
        self._text = body.text or b""
        self._start = body.start_byte
        self._head = frozenset(WORD.findall(head))
        self._known: dict[bytes, tuple[list[int], set[bytes]]] = {}
        self._ranged: dict[bytes, set[bytes]] = {}
        self._slices: dict[frozenset[bytes], Slice] = {}
        self.parameters = parameters
        self._named = {name.encode() for name in (*parameters, *template)}
        self._local: frozenset[bytes] | None = None
        for match in _RANGED.finditer(self._text) if b"for" in self._text else ():
            self._ranged.setdefault(match.group(1), set()).update(WORD.findall(match.group(2)))

    @property
    def local(self) -> frozenset[bytes]:
        """The variables and parameters of the function, as far as they are spelled in the usual way."""
        if self._local is None:
            self._local = frozenset(self._named.union(_DECLARED.findall(self._text), _POINTER.findall(self._text)))
        return self._local

    def slice(self, names: frozenset[bytes]) -> Slice:
        """The wanted names and those they depend on."""
        found = self._slices.get(names)
        if found is None:
            found = self._slices[names] = self._slice(names)
        return found

    def _slice(self, names: frozenset[bytes]) -> Slice:
        done: dict[bytes, None] = {}
        places: list[int] = []
        pending = sorted(names)  # nearest first, in an order that every run has
        while pending and len(done) < MAX_SLICE:
            further: set[bytes] = set()
            for name in pending[: MAX_SLICE - len(done)]:
                done[name] = None
                found, depends = self._changes(name)
                places.extend(found)
                further |= depends
            pending = sorted(further - done.keys())
        # names that nothing here gives a value do not tell launches apart
        known = frozenset(n for n in done if n in self._head or self._known[n][0] or n in self._ranged)
        return Slice(known, tuple(sorted(places)))

    def _changes(self, name: bytes) -> tuple[list[int], set[bytes]]:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = ([], set())
            ranged = self._ranged.get(name)
            if ranged is not None:
                known[1].update(ranged)
            for at in occurrences(self._text, name):
                after = _AFTER.match(self._text, at + len(name))
                before = self._text[max(0, at - 64) : at].rstrip()[-1:]
                if after is None and before not in (b"&", b"+", b"-"):
                    continue
                if after is not None and after.group(1) in (b"(", b"{") and not (before.isalnum() or before in _TYPE_ENDS):
                    continue  # a call, not an initialiser
                known[0].append(self._start + at)
                if after is not None and after.group(1):
                    end = self._text.find(b";", after.end())
                    known[1].update(WORD.findall(self._text, after.end(), min(end, after.end() + MAX_VALUE)))
        return known


class Slice(NamedTuple):
    """The names that matter for a launch, and the offsets at which one of them may change."""

    names: frozenset[bytes]
    places: tuple[int, ...]

    def touches(self, node: Node) -> bool:
        """Whether a node may change one of them."""
        i = bisect_left(self.places, node.start_byte)
        return i < len(self.places) and self.places[i] < node.end_byte
