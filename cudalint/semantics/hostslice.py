"""Which statements of a host function can change a variable, found in its text before anything is run."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_SLICE = 60
MAX_VALUE = 400

WORD = re.compile(rb"[A-Za-z_]\w*")
_AFTER = re.compile(rb"(?:\s*\[[^\[\];]*\]|\s*(?:\.|->)\s*\w+)*\s*(?:([-+*/%&|^]?=(?!=)|<<=|>>=|[({])|\+\+|--|[;,)])")
_RANGED = re.compile(rb"\bfor\s*\([^;:(){}]*?\b([A-Za-z_]\w*)\s*:(?!:)([^;]*?)\)\s*[{\w]")
_TYPE_ENDS = (b"_", b">", b"*", b"&", b",")


class Changes:
    """Where a function body may change which variable, and on which words the new value depends; worked out name by name."""

    def __init__(self, body: Node) -> None:
        self._text = body.text or b""
        self._start = body.start_byte
        self._words: dict[bytes, list[int]] = {}
        for match in WORD.finditer(self._text):
            self._words.setdefault(match.group(), []).append(match.start())
        self._known: dict[bytes, tuple[list[int], set[bytes]]] = {}
        self._ranged: dict[bytes, set[bytes]] = {}
        for match in _RANGED.finditer(self._text) if b"for" in self._words else ():
            self._ranged.setdefault(match.group(1), set()).update(WORD.findall(match.group(2)))

    def slice(self, names: set[bytes]) -> Slice:
        """The wanted names and those they depend on."""
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
        return Slice(frozenset(done), tuple(sorted(places)))

    def has(self, name: bytes) -> bool:
        """Whether the body may change a variable of this name."""
        return bool(self._changes(name)[0]) or name in self._ranged

    def _changes(self, name: bytes) -> tuple[list[int], set[bytes]]:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = ([], set())
            ranged = self._ranged.get(name)
            if ranged is not None:
                known[1].update(ranged)
            for at in self._words.get(name, ()):
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
