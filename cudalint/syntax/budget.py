"""A guard against text on which the grammar's error recovery takes quadratic time.

Work is bounded by the parser's own count of operations, never by the clock, so
that results are the same everywhere.  Ordinary code takes at most a
fortieth of a check per byte; only text that looks unlike any code is counted.
"""

from __future__ import annotations

import re
import zlib

from tree_sitter import Parser

from cudalint.source.code import code_view

_KINDS = bytes(119 if chr(byte).isalnum() or byte == 95 or byte >= 128 else 112 for byte in range(256))
"""Translation table: "w" for the bytes of words, "p" for punctuation."""
_SPACE = b" \t\r\n\f\v"
_RUN = b"p" * 320
_NO_WORDS = re.compile(rb"(?:[^\w\s\x80-\xff]\s*){320}")
"""As much punctuation in a row as rulers of asterisks seldom have."""
_LONG = 16_384
_REPEATED = 60
"""Texts longer than `_LONG` that shrink by this factor repeat one thing over and over."""
_BYTES_PER_CHECK = 16
_LEAST_CHECKS = 2000
_ATTEMPTS = 4


def readable_length(parser: Parser, text: bytes) -> int:
    """How much of a text can be parsed within the budget: all of it, or up to the start of some line."""
    length = len(text)
    if text.rfind(b"/*") > text.rfind(b"*/"):
        length = _open_comment(text)
    for _ in range(_ATTEMPTS):
        suspect = _suspect(text[:length])
        if suspect < 0:
            return length
        reached = _parse_within_budget(parser, text[:length])
        if reached < 0:
            return length
        length = text.rfind(b"\n", 0, suspect or reached) + 1
    return 0


def _open_comment(text: bytes) -> int:
    """Where a comment begins that never ends, the length of the text if there is none.

    The grammar takes no such thing for a comment, and looks for its end anew at every `/*` that follows.
    """
    comments = code_view(text).comments
    if comments and comments[-1][1] == len(text):
        start, end = comments[-1]
        if text.startswith(b"/*", start) and (end - start < 4 or not text.endswith(b"*/")):
            return start
    return len(text)


def _suspect(text: bytes) -> int:
    """An offset by which a text looks unlike code, 0 if that is no matter of place, -1 if it does look like code."""
    if _RUN in text.translate(_KINDS, _SPACE):
        match = _NO_WORDS.search(text)
        return match.end() if match is not None else 0
    if len(text) > _LONG and len(zlib.compress(text, 1)) * _REPEATED < len(text):
        return 0
    return -1


def _parse_within_budget(parser: Parser, text: bytes) -> int:
    """Parse and forget; the offset reached when the budget was spent, -1 if it was enough."""
    budget = _LEAST_CHECKS + len(text) // _BYTES_PER_CHECK
    spent = reached = 0

    def check(offset: int, _has_error: bool) -> bool:
        nonlocal spent, reached
        spent += 1
        reached = offset
        return spent > budget

    try:
        parser.parse(lambda offset, _point: text[offset:] if offset else text, progress_callback=check)
    except ValueError:  # what the binding makes of a parse that was called off
        parser.reset()
    return reached if spent > budget else -1
