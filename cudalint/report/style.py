"""Colours of terminals, and text made safe for them."""

from __future__ import annotations

import re

_CODES = {
    "error": "1;31",
    "warning": "1;33",
    "info": "1;34",
    "bold": "1",
    "rule": "1;36",
    "path": "1",
    "dim": "2",
    "good": "32",
    "help": "36",
}
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")


class Style:
    """Paints text, or leaves it as it is."""

    def __init__(self, color: bool) -> None:
        self._color = color

    def __call__(self, role: str, text: str) -> str:
        """`text` in the colour of a role (a severity, "rule", "path", "dim", "good", "help", "bold")."""
        return f"\x1b[{_CODES[role]}m{text}\x1b[0m" if self._color and text else text


def safe(text: str) -> str:
    """Text without control characters and direction marks, which would change what a terminal shows."""
    return _UNSAFE.sub("\ufffd", text)
