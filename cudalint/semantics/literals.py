"""The values and types of literals."""

from __future__ import annotations

import math
import re

from cudalint.semantics.builtin_types import CHAR, CHAR16, CHAR32, LONG, LONG_DOUBLE, UCHAR, ULONG, WCHAR
from cudalint.semantics.types import DOUBLE, FLOAT, INT, INT64, UINT, UINT64, Type

Typed = tuple[int | float, Type]

_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)([uUlLzZ]*)\Z")
_HEX_FLOAT = re.compile(r"(0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?\d+)([fFlL]?)\Z")
_FLOAT = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([fFlL]|f16|F16|bf16|BF16)?\Z")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,8})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))", re.DOTALL)
_ESCAPES = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11, "0": 0, "\\": 92, "'": 39, '"': 34, "?": 63, "e": 27}
_CHAR_TYPES = {"": CHAR, "u8": UCHAR, "u": CHAR16, "U": CHAR32, "L": WCHAR}
_INTEGERS = ((INT, 31), (UINT, 32), (LONG, 63), (ULONG, 64))
_LONG_LONG = {LONG: INT64, ULONG: UINT64}


def number(text: str) -> Typed | None:
    """Value and type of a number literal, signed or not; None for user-defined suffixes and what overflows 64 bits."""
    text = text.strip().replace("'", "").replace("_", "")
    if text[:1] in ("-", "+"):
        found = number(text[1:])
        if found is None:
            return None
        value, kind = found
        if text[0] == "-":
            value = -value
            if kind.kind == "uint":
                value = int(value) % (1 << (8 * (kind.size or 4)))
        return value, kind
    match = _INTEGER.match(text)
    if match is not None:
        return _integer(match.group(1), match.group(2).lower())
    return _floating(text)


def _integer(digits: str, suffix: str) -> Typed | None:
    if len(digits) > 80:
        return None
    octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    if octal and not all(digit in "01234567" for digit in digits):
        return None
    value = int(digits, 8) if octal else int(digits, 0) if digits[:1] == "0" else int(digits)
    unsigned = "u" in suffix
    decimal = digits[0] != "0" or digits == "0"
    for kind, bits in _INTEGERS:
        if value >> bits or (unsigned and kind.kind == "int"):
            continue
        if not unsigned and decimal and kind.kind == "uint":
            continue
        if ("l" in suffix or "z" in suffix) and kind in (INT, UINT):
            continue
        return value, _LONG_LONG.get(kind, kind) if "ll" in suffix else kind
    return (value, ULONG) if value < 1 << 64 else None


def _floating(text: str) -> Typed | None:
    match = _HEX_FLOAT.match(text)
    try:
        if match is not None:
            value = float.fromhex(match.group(1))
        else:
            match = _FLOAT.match(text)
            if match is None:
                return None
            value = float(match.group(1))
    except (ValueError, OverflowError):
        return None
    if math.isinf(value):
        return None
    suffix = (match.group(2) or "").lower()
    return value, FLOAT if suffix == "f" else LONG_DOUBLE if suffix == "l" else DOUBLE


def character(text: str) -> Typed | None:
    """Value and type of a character literal; several characters in one are an `int` as for gcc."""
    prefix, quote, rest = text.partition("'")
    if not quote or not rest.endswith("'") or prefix not in _CHAR_TYPES:
        return None
    codes = _codes(rest[:-1])
    if not codes:
        return None
    if len(codes) > 1:
        value = 0
        for code in codes[-4:]:
            value = (value << 8) | (code & 0xFF)
        return value, INT
    kind = _CHAR_TYPES[prefix]
    code = codes[0]
    if kind is CHAR and 127 < code < 256:
        code -= 256
    return code, kind


def _codes(body: str) -> list[int]:
    codes: list[int] = []
    position = 0
    while position < len(body):
        match = _ESCAPE.match(body, position)
        if match is None:
            codes.append(ord(body[position]))
            position += 1
            continue
        position = match.end()
        hexadecimal = match.group(1) or match.group(2) or match.group(3)
        if hexadecimal:
            codes.append(int(hexadecimal, 16))
        elif match.group(4):
            codes.append(int(match.group(4), 8))
        else:
            codes.append(_ESCAPES.get(match.group(5), ord(match.group(5))))
    return codes


def string_length(text: str) -> int | None:
    """Characters of a string literal with its terminating zero; None if malformed."""
    start = text.find('"')
    if start < 0 or not text.endswith('"') or len(text) < start + 2:
        return None
    if "R" in text[:start]:
        opening, closing = text.find("("), text.rfind(")")
        return closing - opening if 0 <= opening < closing else None
    return len(_codes(text[start + 1 : -1])) + 1
