"""The condition of `#if`: integer arithmetic of C with a third truth value for what cannot be known."""

from __future__ import annotations

import re
from collections.abc import Callable

_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*([A-Za-z_]\w*)\s*\)|([A-Za-z_]\w*))")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F']+|0[bB][01']+|\d[\d']*)(?P<suffix>\w*)"
    r"|(?P<char>(?:u8|u|U|L)?'(?:[^'\\]|\\.[^']*)')"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<string>\"[^\"]*\")"
    r"|(?P<op><<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^~!<>?:(),.]))"
)
_WORDS = {"true": 1, "false": 0}
_SPELLED = {"and": "&&", "or": "||", "not": "!", "bitand": "&", "bitor": "|", "xor": "^", "compl": "~", "not_eq": "!="}
_ESCAPES = {"n": 10, "t": 9, "r": 13, "0": 0, "a": 7, "b": 8, "f": 12, "v": 11}
_PRECEDENCE = {
    "||": 1,
    "&&": 2,
    "|": 3,
    "^": 4,
    "&": 5,
    "==": 6,
    "!=": 6,
    "<": 7,
    ">": 7,
    "<=": 7,
    ">=": 7,
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "%": 10,
}
_MAX_DEPTH = 60
_MASK = (1 << 64) - 1


class _Invalid(Exception):
    """The condition is no expression, or divides by zero where it counts: a compiler would stop."""


def evaluate_condition(
    text: str,
    lookup: Callable[[str], object | None],
    expand: Callable[[str], str | None],
) -> bool | None:
    """Whether `#if text` holds; None where that depends on something unknown (`__has_include`, malformed text).

    `lookup` gives a macro by name, `expand` a text with macros expanded (None: too much).  Identifiers that are no macros are 0.
    A division by zero makes the condition false.
    """

    def replace(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        return "1" if name.startswith("__has_") or lookup(name) is not None else "0"

    plain = _DEFINED.sub(replace, text)
    expanded = expand(plain)
    if expanded is None:
        return None
    expanded = _DEFINED.sub(replace, expanded)
    try:
        value = _Parser(expanded).parse()
    except (_Invalid, RecursionError):
        return None
    except ZeroDivisionError:
        return False
    return None if value is None else value != 0


class _Parser:
    """Precedence climbing; `live` is false in operands that C would not evaluate."""

    def __init__(self, text: str) -> None:
        self.kinds: list[tuple[str, str]] = []
        position = 0
        text = text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise _Invalid
            position = match.end()
            kind = match.lastgroup or ""
            if kind == "suffix":
                kind = "number"
            self.kinds.append((kind, match.group(kind)))
        self.position = 0
        self.depth = 0

    def parse(self) -> int | None:
        value = self.conditional(True)
        if self.position != len(self.kinds):
            raise _Invalid
        return value

    def peek(self) -> str:
        if self.position >= len(self.kinds):
            return ""
        kind, text = self.kinds[self.position]
        if kind == "name":
            return _SPELLED.get(text, "")
        return text if kind == "op" else ""

    def take(self, text: str) -> None:
        if self.peek() != text:
            raise _Invalid
        self.position += 1

    def conditional(self, live: bool) -> int | None:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise _Invalid
        condition = self.binary(1, live)
        if self.peek() == "?":
            self.position += 1
            then = self.conditional(live and condition != 0)
            self.take(":")
            other = self.conditional(live and (condition is None or condition == 0))
            condition = None if condition is None else (then if condition else other)
        self.depth -= 1
        return condition

    def binary(self, least: int, live: bool) -> int | None:
        left = self.unary(live)
        while True:
            operator = self.peek()
            precedence = _PRECEDENCE.get(operator, 0)
            if precedence < least:
                return left
            self.position += 1
            decided = (operator == "&&" and left == 0) or (operator == "||" and left not in (0, None))
            right = self.binary(precedence + 1, live and not decided)
            left = _apply(operator, left, right, live)

    def unary(self, live: bool) -> int | None:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise _Invalid
        operator = self.peek()
        if operator in ("!", "-", "+", "~"):
            self.position += 1
            value = self.unary(live)
            if value is not None:
                value = {"!": int(value == 0), "-": -value, "+": value, "~": ~value}[operator]
        else:
            value = self.primary(live)
        self.depth -= 1
        return value

    def primary(self, live: bool) -> int | None:
        if self.position >= len(self.kinds):
            raise _Invalid
        kind, text = self.kinds[self.position]
        self.position += 1
        if kind == "op" and text == "(":
            value = self.conditional(live)
            self.take(")")
            return value
        if kind == "number":
            return _number(text)
        if kind == "char":
            return _character(text)
        if kind == "name":
            if self.peek() == "(":
                self._skip_parentheses()
                return None
            return _WORDS.get(text, 0)
        raise _Invalid

    def _skip_parentheses(self) -> None:
        depth = 0
        while self.position < len(self.kinds):
            text = self.kinds[self.position][1]
            self.position += 1
            depth += (text == "(") - (text == ")")
            if depth == 0:
                return
        raise _Invalid


def _number(text: str) -> int:
    text = text.replace("'", "")
    if len(text) > 1 and text[0] == "0" and text[1].isdigit():
        if not all(digit in "01234567" for digit in text):
            raise _Invalid
        return int(text, 8)
    return int(text, 0)


def _character(text: str) -> int:
    body = text[text.index("'") + 1 : -1]
    if not body.startswith("\\"):
        return ord(body[0])
    return _ESCAPES.get(body[1], ord(body[1]))


def _apply(operator: str, left: int | None, right: int | None, live: bool) -> int | None:
    if operator == "&&":
        if left == 0 or right == 0:
            return 0
        return None if left is None or right is None else 1
    if operator == "||":
        if left or right:
            return 1
        return None if left is None or right is None else 0
    if left is None or right is None:
        return None
    if operator in ("/", "%"):
        return _divide(operator, left, right, live)
    if operator in ("<<", ">>"):
        if not 0 <= right < 64:
            return 0
        return _wrap(left << right if operator == "<<" else left >> right)
    return _wrap(_SIMPLE[operator](left, right))


def _divide(operator: str, left: int, right: int, live: bool) -> int:
    if right == 0:
        if live:
            raise ZeroDivisionError
        return 0
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return quotient if operator == "/" else left - quotient * right


def _wrap(value: int) -> int:
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


_SIMPLE: dict[str, Callable[[int, int], int]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "&": lambda left, right: left & right,
    "|": lambda left, right: left | right,
    "^": lambda left, right: left ^ right,
    "==": lambda left, right: int(left == right),
    "!=": lambda left, right: int(left != right),
    "<": lambda left, right: int(left < right),
    ">": lambda left, right: int(left > right),
    "<=": lambda left, right: int(left <= right),
    ">=": lambda left, right: int(left >= right),
}
