"""Which file seems to define a name: a byte search that saves parsing files in vain.

The index may claim too much (the symbols of the file then say no), and misses
only definitions that no usual spelling introduces.

Patterns begin with a literal where they can: a word with its boundary asserted behind it, the line end before a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_SPECIFIER = (
    rb"\b(?:__device__|__global__|__host__|__constant__|__managed__|__forceinline__|inline|constexpr|const|static|extern"
    rb"|[A-Z][A-Z0-9_]*(?:DEVICE|INLINE|GLOBAL|KERNEL|HOST)[A-Z0-9_]*)\b"
)
_FUNCTION = re.compile(
    rb"\n[ \t]*(?!(?:return|else|case|goto|throw|delete|using|typedef|new)\b)[A-Za-z_](?=[\w:<>, \t*&~]*\()"
    rb"[\w:<>, \t*&]*?[ \t*&>](~?\w+)[ \t]*\("
)
_SPECIFIED = re.compile(
    _SPECIFIER + rb"[^;(){}=#\"]{0,300}?\b(\w+)\s*(?:<[^;(){}=#\"]{0,80}>\s*)?(?:\(|\[[^;{}]{0,200}?\]\s*)?[=;{(\[]"
)
_BOUNDED = re.compile(rb"__launch_bounds__\s*\([^;{}]{0,200}?\)[^;(){}=#\"]{0,200}?\b(\w+)\s*(?:<[^;(){}=#\"]{0,80}>\s*)?\(")
_OPERATOR = re.compile(rb"operator(?<=\boperator)\s*([^\w\s][^\w\s]{0,2}?|\(\s*\)|\w+)\s*\(")
_TYPE = re.compile(rb"(?:struct(?<=\bstruct)|class(?<=\bclass)|union(?<=\bunion)|enum(?<=\benum))\b[^;{}]{1,600}?\{")
_TYPE_HEAD = re.compile(rb".*\b(?:struct|class|union|enum)\b", re.DOTALL)
_TYPE_NOISE = re.compile(rb"\([^()]*\)|<[^<>]*>|\[\[.*?\]\]|(?<!:):(?!:).*|\bfinal\b", re.DOTALL)
_USING = re.compile(rb"using(?<=\busing)\s+(\w+)\s*=")
_TYPEDEF = re.compile(rb"typedef(?<=\btypedef)\b[^;{}]{0,300}?\b(\w+)\s*(?:\[[^;]{0,40}\]\s*)*;")
_TYPEDEF_END = re.compile(rb"\}\s*(?:__align__\s*\(\s*\d+\s*\)\s*)?\*?(\w+)\s*(?:,\s*\*?\w+\s*)?;")
_ENUM = re.compile(rb"enum(?<=\benum)\b[^;{}()]{0,120}\{")
_ENUMERATOR = re.compile(rb"(?:^|,)\s*(?:(?://[^\n]*\n|/\*.*?\*/)\s*)*([A-Za-z_]\w*)", re.DOTALL)
_PATTERNS = (_SPECIFIED, _BOUNDED, _USING)


def defined_names(data: bytes) -> frozenset[bytes]:
    """The names of functions, types, variables, aliases and enumerators that `data` seems to define."""
    names = set(_FUNCTION.findall(b"\n" + data))
    for pattern in _PATTERNS:
        names.update(pattern.findall(data))
    for head in _TYPE.findall(data):
        names.update(_type_name(head))
    if b"typedef" in data:
        names.update(_TYPEDEF.findall(data))
        names.update(_TYPEDEF_END.findall(data))
    for body in _enumerations(data):
        names.update(_ENUMERATOR.findall(body))
    names.update(b"operator" + b"".join(symbol.split()) for symbol in _OPERATOR.findall(data))
    return frozenset(names)


def _enumerations(data: bytes) -> Iterator[bytes]:
    """What stands between the braces of every enumeration."""
    end = 0
    while True:
        head = _ENUM.search(data, end)
        if head is None:
            return
        end = data.find(b"}", head.end())
        if end < 0:
            return
        yield data[head.end() : end]


def _type_name(head: bytes) -> list[bytes]:
    """The name in the head of a class or enumeration: the last word before its bases, without attributes and arguments."""
    text = _TYPE_HEAD.sub(b"", head)
    for _ in range(8):
        shorter = _TYPE_NOISE.sub(b" ", text)
        if shorter == text:
            break
        text = shorter
    return _WORD.findall(text)[-1:]


_LAUNCH = re.compile(
    rb"cu(?<=\bcu)(?:(?:daLaunch|Launch|daFuncSet|daOccupancy|daGraph\w*Kernel)|(?:daConfigureCall|daFuncGetAttributes)\b)"
)
_WORD = re.compile(rb"[A-Za-z_]\w*")


def holds_launch(data: bytes) -> bool:
    """Whether a file launches kernels or asks about their launch."""
    return b"<<<" in data or _LAUNCH.search(data) is not None


def words(data: bytes) -> frozenset[bytes]:
    """Every identifier of a file, also inside comments."""
    return frozenset(_WORD.findall(data))


_INCLUDE = re.compile(rb'\n[ \t]*\#[ \t]*include(?:_next)?[ \t]*["<]([^">\n]+)[">]')


def include_targets(data: bytes) -> list[str]:
    """The targets of all `#include` lines, active or not."""
    return [target.decode("utf-8", "replace") for target in _INCLUDE.findall(b"\n" + data)]
