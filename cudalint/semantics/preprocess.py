"""The preprocessor as far as facts need it: macros by position, arms of `#if` not taken, includes, and expansion.

Directives are found by byte searches, not by the parser, so this works on any
text.  Every table, expansion and evaluation is bounded and nothing here raises
on malformed input.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cudalint.semantics.condition import evaluate_condition

BUDGET = 65536
"""Default bound of an expansion, in characters produced on the way."""

_MAX_ARGUMENT_DEPTH = 40
_MAX_DIRECTIVES = 100_000
_MAX_INCLUDE_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Macro:
    """A `#define` at byte `offset` of `path`; `params` is None for an object-like macro."""

    name: str
    params: tuple[str, ...] | None
    body: str
    path: str
    offset: int
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class Include:
    """An active `#include` at byte `offset`; `quoted` is false for `<target>`."""

    offset: int
    target: str
    quoted: bool


Lookup = Callable[[str], "Macro | None"]


def _first(pair: tuple[Any, object]) -> Any:
    return pair[0]


class Preprocessed:
    """The preprocessor facts of one file.

    path      the file
    inactive  byte ranges of the arms that the target does not compile, sorted and disjoint
    includes  the active includes in order
    """

    __slots__ = (
        "_closure",
        "_environment",
        "_found",
        "_included",
        "_load",
        "_loaded",
        "_own",
        "_starts",
        "complete",
        "inactive",
        "includes",
        "path",
    )

    def __init__(
        self,
        path: str,
        environment: Mapping[str, Macro],
        include: Callable[[Include], Preprocessed | None] | None,
    ) -> None:
        self.path = path
        self.inactive: list[tuple[int, int]] = []
        self.includes: list[Include] = []
        self.complete = False
        self._environment = environment
        self._load = include
        self._loaded: list[Preprocessed | None] = []
        self._own: dict[str, list[tuple[int, Macro | None]]] = {}
        self._closure: list[tuple[tuple[int, ...], Preprocessed]] | None = None
        self._included: list[tuple[Include, Preprocessed]] | None = None
        self._found: dict[str, list[tuple[int, Macro | None]]] = {}
        self._starts: list[int] | None = None

    def is_active(self, offset: int) -> bool:
        """Whether the target compiles what stands at byte `offset`."""
        if not self.inactive:
            return True
        if self._starts is None:
            self._starts = [start for start, _ in self.inactive]
        index = bisect.bisect_right(self._starts, offset) - 1
        return index < 0 or offset >= self.inactive[index][1]

    def macro(self, name: str, offset: int | None = None) -> Macro | None:
        """The definition of `name` in force at byte `offset` (None: at the end of the file)."""
        events = self._events(name)
        if not events:
            return self._environment.get(name)
        if offset is None:
            return events[-1][1]
        index = bisect.bisect_left(events, offset, key=_first) - 1
        return events[index][1] if index >= 0 else self._environment.get(name)

    def is_macro_name(self, name: str) -> bool:
        """Whether `name` is defined as a macro anywhere in the file, what it includes or the environment."""
        return bool(self._events(name)) or name in self._environment

    def included(self) -> list[tuple[Include, Preprocessed]]:
        """The active includes that could be found, in order."""
        if self._included is None or not self.complete:
            self._load_all()
            pairs = zip(self.includes, self._loaded, strict=False)
            self._included = [(include, loaded) for include, loaded in pairs if loaded is not None]
        return self._included

    def _load_all(self) -> None:
        while len(self._loaded) < len(self.includes):
            include = self.includes[len(self._loaded)]
            self._loaded.append(self._load(include) if self._load is not None else None)

    def _events(self, name: str) -> list[tuple[int, Macro | None]]:
        """Where a compiler meets definitions of `name`, in order; those in included files stand at the outermost include."""
        found = self._found.get(name)
        if found is None:
            met = [((*place, offset), macro) for place, file in self._files() for offset, macro in file._own.get(name, ())]
            if len(met) > 1:
                met.sort(key=_first)
            found = self._found[name] = [(place[0], macro) for place, macro in met]
        return found

    def _files(self) -> list[tuple[tuple[int, ...], Preprocessed]]:
        """The file and all it includes, each once, with the offsets of the includes that lead there."""
        if self._closure is None:
            self._closure = []
            seen: set[int] = set()
            pending: list[tuple[tuple[int, ...], Preprocessed]] = [((), self)]
            while pending:
                place, file = pending.pop()
                if id(file) in seen:
                    continue
                seen.add(id(file))
                self._closure.append((place, file))
                if len(place) < _MAX_INCLUDE_DEPTH:
                    # last in, first out: the first include and all below it come before the second
                    pending.extend(((*place, include.offset), loaded) for include, loaded in reversed(file.included()))
        return self._closure

    # -- while the file is being read

    def define(self, macro: Macro) -> None:
        """Record an active definition."""
        self._own.setdefault(macro.name, []).append((macro.offset, macro))

    def undefine(self, name: str, offset: int) -> None:
        """Record an active `#undef`."""
        self._own.setdefault(name, []).append((offset, None))

    def current(self, name: str) -> Macro | None:
        """The definition in force after all that has been recorded so far."""
        own = self._own.get(name)
        if own is None and name in self._environment:
            return self._environment[name]
        after = own[-1][0] if own is not None else -1
        self._load_all()
        for include, loaded in zip(reversed(self.includes), reversed(self._loaded), strict=True):
            if include.offset < after:
                break
            if loaded is not None and loaded.complete and loaded.is_own_or_included(name):
                return loaded.macro(name)
        return own[-1][1] if own is not None else None

    def is_own_or_included(self, name: str) -> bool:
        """Whether the file or what it includes defines or undefines `name`."""
        return bool(self._events(name))


# ------------------------------------------------------------------ the target


def predefined(arch: int, defines: Mapping[str, str]) -> dict[str, Macro]:
    """The macros that nvcc predefines for compute capability `arch` / 10 (90 for sm_90), and the user's `-D`."""
    values = {**_TARGET, "__CUDA_ARCH__": str(arch * 10), **defines}
    table: dict[str, Macro] = {}
    for spelling, body in values.items():
        head, macro_params, variadic = _split_head(spelling)
        table[head] = Macro(head, macro_params, body, "", -1, variadic)
    return table


_TARGET = {
    "__CUDACC__": "1",
    "__NVCC__": "1",
    "__CUDACC_VER_MAJOR__": "13",
    "__CUDACC_VER_MINOR__": "0",
    "__CUDACC_VER_BUILD__": "88",
    "CUDART_VERSION": "13000",
    "CUDA_VERSION": "13000",
    "CUDA_API_VERSION": "13000",
    "__cplusplus": "201703L",
    "__linux__": "1",
    "__linux": "1",
    "__gnu_linux__": "1",
    "__unix__": "1",
    "__unix": "1",
    "__x86_64__": "1",
    "__x86_64": "1",
    "__amd64__": "1",
    "__LP64__": "1",
    "__GNUC__": "11",
    "__GNUC_MINOR__": "4",
    "__GNUC_PATCHLEVEL__": "0",
    "__STDC__": "1",
    "__STDC_VERSION__": "201710L",
    "__CHAR_BIT__": "8",
    "__SIZEOF_POINTER__": "8",
    "__SIZEOF_INT__": "4",
    "__SIZEOF_LONG__": "8",
    "__ORDER_LITTLE_ENDIAN__": "1234",
    "__BYTE_ORDER__": "1234",
    "CHAR_BIT": "8",
    "INT_MAX": "2147483647",
    "INT_MIN": "(-2147483647 - 1)",
    "UINT_MAX": "4294967295U",
    "LONG_MAX": "9223372036854775807L",
    "ULONG_MAX": "18446744073709551615UL",
    "SIZE_MAX": "18446744073709551615UL",
}

# ------------------------------------------------------------------- directives

_DIRECTIVE = re.compile(
    rb"\n[ \t\f\v]*\#[ \t]*(define|undef|include_next|include|ifdef|ifndef|if|elifdef|elifndef|elif|else|endif)\b"
)
_LINE_PREFIX = re.compile(rb'"(?:[^"\\]|\\.)*"|' + rb"'(?:[^'\\]|\\.)'" + rb"|//")
_RAW_STRING = re.compile(rb'\b(?:u8|u|U|L)?R"([^ ()\\\t\v\f\n"]{0,16})\(')
_COMMENT_OR_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"?' + r"|'(?:[^'\\\n]|\\.)*'?" + r"|/\*.*?(?:\*/|\Z)|//.*", re.DOTALL)
_CONTINUATION = re.compile(rb"\\[ \t]*\r?\n")
_DEFINE = re.compile(r"\s*([A-Za-z_]\w*)(\([^()]*\))?\s*(.*?)\s*\Z", re.DOTALL)
_HEAD = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\(([^()]*)\))?\s*\Z")
_INCLUDE = re.compile(r'\s*(?:"([^"]*)"|<([^>]*)>)')
_NAME = re.compile(r"\s*([A-Za-z_]\w*)")


def _opaque_ranges(data: bytes) -> list[tuple[int, int]]:
    """Block comments and raw strings: the only places where a line can look like a directive and be none."""
    ranges: list[tuple[int, int]] = []
    raw = list(_RAW_STRING.finditer(data)) if b'R"' in data else []
    raw_index = 0
    position = data.find(b"/*")
    while position >= 0 or raw_index < len(raw):
        if raw_index < len(raw) and (position < 0 or raw[raw_index].start() < position):
            match = raw[raw_index]
            raw_index += 1
            if ranges and match.start() < ranges[-1][1]:
                continue
            close = data.find(b")" + match.group(1) + b'"', match.end())
            end = len(data) if close < 0 else close + len(match.group(1)) + 2
            ranges.append((match.start(), end))
            if 0 <= position < end:
                position = data.find(b"/*", end)
            continue
        if _opens_comment(data, position, ranges[-1][1] if ranges else 0):
            close = data.find(b"*/", position + 2)
            end = len(data) if close < 0 else close + 2
            ranges.append((position, end))
        else:
            end = position + 2
        position = data.find(b"/*", end)
    return ranges


def _opens_comment(data: bytes, position: int, floor: int) -> bool:
    """Whether the `/*` at `position` opens a comment: not inside `//` or a string of the same line, read from `floor` on."""
    line = max(data.rfind(b"\n", 0, position) + 1, floor)
    prefix = data[line:position]
    if b"//" not in prefix + b"/" and b'"' not in prefix:
        return True
    for match in _LINE_PREFIX.finditer(data, line, min(len(data), position + 4096)):
        if match.start() >= position:
            break
        if match.group() == b"//" or match.end() > position:
            newline = data.find(b"\n", line, match.end())
            if newline < 0 or newline > position:
                return False
    # `//*` : the slash of the opener is the second of a line comment
    return not prefix.endswith(b"/")


def _logical_line(data: bytes, start: int) -> tuple[str, int]:
    """The text from `start` to the end of its logical line, comments removed, and where it ends."""
    end = start
    while True:
        newline = data.find(b"\n", end)
        if newline < 0:
            end = len(data)
            break
        if not data[start:newline].rstrip(b"\r \t").endswith(b"\\"):
            end = newline
            break
        end = newline + 1
    raw = data[start:end]
    if b"\\" in raw:
        raw = _CONTINUATION.sub(b" ", raw)
    text = raw.decode("utf-8", "replace")
    if "/" in text:
        text = _COMMENT_OR_STRING.sub(lambda match: match.group() if match.group()[0] != "/" else " ", text)
    return text, end


def directives(data: bytes) -> Iterator[tuple[str, int, str, int]]:
    """(directive, offset, rest of its logical line without comments, end) of every directive in order."""
    ranges = _opaque_ranges(data)
    index = 0
    done = 0
    # the line end in front makes lines easy to find, and every offset in `data` that of the byte before
    for count, match in enumerate(_DIRECTIVE.finditer(b"\n" + data)):
        if count > _MAX_DIRECTIVES:
            return
        start = match.start()
        if start < done:
            continue
        while index < len(ranges) and ranges[index][1] <= start:
            index += 1
        if index < len(ranges) and ranges[index][0] <= start:
            continue
        text, done = _logical_line(data, match.end() - 1)
        yield match.group(1).decode(), start, text, done


def parse_define(text: str, path: str, offset: int) -> Macro | None:
    """The macro that `#define text` defines, None if malformed."""
    match = _DEFINE.match(text)
    if match is None:
        return None
    name, params, body = match.groups()
    if params is None:
        return Macro(name, None, body, path, offset)
    _, names, variadic = _split_head(name + params)
    return Macro(name, names, body, path, offset, variadic)


def _split_head(head: str) -> tuple[str, tuple[str, ...] | None, bool]:
    match = _HEAD.match(head)
    if match is None:
        return head, None, False
    if match.group(2) is None:
        return match.group(1), None, False
    names = [name.strip() for name in match.group(2).split(",")] if match.group(2).strip() else []
    variadic = bool(names) and names[-1].endswith("...")
    if variadic:
        names[-1] = names[-1][:-3].strip() or "__VA_ARGS__"
    return match.group(1), tuple(names), variadic


class _Reader:
    """Reads one file's directives into a `Preprocessed`."""

    def __init__(self, result: Preprocessed, data: bytes) -> None:
        self.result = result
        self.data = data
        # one entry per open #if: (an arm was taken, this arm is active, an enclosing arm is inactive)
        self.stack: list[list[bool]] = []
        self.dead_from: int | None = None

    def run(self) -> None:
        guard = _guard_name(self.data)
        for kind, start, text, end in directives(self.data):
            if kind in _CONDITIONALS:
                self._conditional(kind, start, text, end, guard)
            else:
                self._effect(kind, start, text)
        self._set_active(True, len(self.data), len(self.data))
        self.result.complete = True

    def _effect(self, kind: str, start: int, text: str) -> None:
        active = self.dead_from is None
        if kind == "define":
            macro = parse_define(text, self.result.path, start)
            if macro is not None and active:
                self.result.define(macro)
        elif active and kind == "undef":
            match = _NAME.match(text)
            if match is not None:
                self.result.undefine(match.group(1), start)
        elif active:
            self._include(start, text)

    def _include(self, start: int, text: str) -> None:
        match = _INCLUDE.match(text)
        if match is None:
            expanded = expand_text(text, self.result.current)
            match = _INCLUDE.match(expanded) if expanded is not None else None
        if match is not None:
            quoted = match.group(1) is not None
            self.result.includes.append(Include(start, match.group(1) if quoted else match.group(2), quoted))

    def _conditional(self, kind: str, start: int, text: str, end: int, guard: str | None) -> None:
        if kind in ("if", "ifdef", "ifndef"):
            dead = self.dead_from is not None
            taken = not dead and self._holds(kind, text, guard)
            self.stack.append([taken, taken, dead])
            self._set_active(taken and not dead, start, end)
            return
        if not self.stack:
            return
        frame = self.stack[-1]
        if kind == "endif":
            self.stack.pop()
            self._set_active(not frame[2], start, end)
            return
        if frame[2]:
            return
        taken = not frame[0] and (kind == "else" or self._holds(kind, text, None))
        frame[0] = frame[0] or taken
        frame[1] = taken
        self._set_active(taken, start, end)

    def _holds(self, kind: str, text: str, guard: str | None) -> bool:
        if kind in ("if", "elif"):
            # an unknown condition keeps its arm
            return evaluate_condition(text, self.result.current, self._expand) is not False
        match = _NAME.match(text)
        if match is None:
            return False
        name = match.group(1)
        if kind == "ifndef" and name == guard:
            return True
        defined = name in _COMPILER_INTRINSICS or self.result.current(name) is not None
        return defined if kind in ("ifdef", "elifdef") else not defined

    def _expand(self, text: str) -> str | None:
        return expand_text(text, self.result.current)

    def _set_active(self, active: bool, start: int, end: int) -> None:
        if active and self.dead_from is not None:
            if start > self.dead_from:
                self.result.inactive.append((self.dead_from, start))
            self.dead_from = None
        elif not active and self.dead_from is None:
            self.dead_from = end


_CONDITIONALS = frozenset(("if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif"))
_COMPILER_INTRINSICS = frozenset(
    (
        "__has_include",
        "__has_attribute",
        "__has_cpp_attribute",
        "__has_builtin",
        "__COUNTER__",
        "__FILE__",
        "__LINE__",
        "__TIME__",
        "__DATE__",
    )
)
_GUARD = re.compile(rb"\#[ \t]*ifndef[ \t]+(\w+)[^\n]*\n\s*\#[ \t]*define[ \t]+(\w+)")


def _guard_name(data: bytes) -> str | None:
    """The include guard: an `#ifndef X` directly followed by `#define X` without a value, first in the file."""
    match = _GUARD.search(data, 0, 65536)
    if match is None or match.group(1) != match.group(2):
        return None
    line_end = data.find(b"\n", match.end())
    rest = data[match.end() : line_end if line_end >= 0 else len(data)].strip()
    return match.group(1).decode() if not rest or rest.startswith((b"//", b"/*")) else None


def preprocess(
    data: bytes,
    path: str,
    environment: Mapping[str, Macro],
    include: Callable[[Include], Preprocessed | None] | None = None,
) -> Preprocessed:
    """The preprocessor facts of a file.

    `environment` holds the predefined macros (see `predefined`); `include` gives the facts of an included file,
    None where it cannot be found, and is asked only when a name is not known otherwise.
    """
    result = Preprocessed(path, environment, include)
    _Reader(result, data).run()
    return result


# --------------------------------------------------------------------- expansion

_TOKEN = re.compile(
    r'(?:u8|u|U|L)?"(?:[^"\\\n]|\\.)*"'
    r"|(?:u8|u|U|L)?'(?:[^'\\\n]|\\.)*'"
    r"|[A-Za-z_$]\w*"
    r"|\.?\d(?:[eEpP][+-]|'?[\w.])*"
    r"|\s+"
    r"|\#\#|<<=|>>=|\.\.\.|->\*?|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::"
    r"|."
)
_GLUE = frozenset("+-&|<>=:#")


@lru_cache(maxsize=4096)
def tokens(text: str) -> tuple[str, ...]:
    """The preprocessing tokens of `text`; runs of blanks are one token."""
    return tuple(_TOKEN.findall(text))


def macro_arguments(text: str, start: int) -> tuple[list[str], int] | None:
    """The raw arguments of a macro use whose parenthesis opens at `start`, and the offset behind its closing one."""
    parts = _TOKEN.finditer(text, start)
    opening = next(parts, None)
    if opening is None or opening.group() != "(":
        return None
    depth = 1
    arguments = [""]
    for match in parts:
        token = match.group()
        depth += _NESTING.get(token, 0)
        if depth == 0:
            return [argument.strip() for argument in arguments], match.end()
        if token == "," and depth == 1:
            arguments.append("")
        else:
            arguments[-1] += token
    return None


_NESTING = {"(": 1, ")": -1}
_Token = tuple[str, frozenset[str]]
_NO_HIDE: frozenset[str] = frozenset()


class _OverBudget(Exception):
    pass


class _Expander:
    """Prosser's algorithm: each token carries the macros it may not be expanded by."""

    def __init__(self, lookup: Lookup, budget: int) -> None:
        self.lookup = lookup
        self.left = budget

    def spend(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise _OverBudget

    def run(self, stream: Sequence[_Token], depth: int = 0) -> list[_Token]:
        if depth > _MAX_ARGUMENT_DEPTH:
            raise _OverBudget
        pending = list(reversed(stream))
        out: list[_Token] = []
        while pending:
            token, hide = pending.pop()
            macro = self.lookup(token) if (token[0].isalpha() or token[0] == "_") and token not in hide else None
            if macro is None:
                self.spend(len(token))
                out.append((token, hide))
            elif macro.params is None:
                self.spend(len(macro.body) + 1)
                self._push(pending, self._object(macro), hide | {token})
            else:
                self._function(macro, token, hide, pending, out, depth)
        return out

    def _function(
        self, macro: Macro, token: str, hide: frozenset[str], pending: list[_Token], out: list[_Token], depth: int
    ) -> None:
        taken = _take_arguments(pending)
        if taken is None:
            self.spend(len(token))
            out.append((token, hide))
            return
        arguments, closing_hide = taken
        replaced = self.substitute(macro, arguments, depth)
        inner = (hide & closing_hide) | {token}
        for text, own in reversed(replaced):
            pending.append((text, own | inner))

    @staticmethod
    def _push(pending: list[_Token], body: Sequence[str], hide: frozenset[str]) -> None:
        pending.extend((text, hide) for text in reversed(body))

    @staticmethod
    def _object(macro: Macro) -> Sequence[str]:
        body = tokens(macro.body)
        return [token for token, _ in _paste([(token, _NO_HIDE) for token in body])] if "##" in body else body

    def substitute(self, macro: Macro, arguments: list[list[_Token]], depth: int) -> list[_Token]:
        """The body of a function-like macro with its arguments in place."""
        table = _bind_arguments(macro, arguments)
        expanded: dict[str, list[_Token]] = {}
        body = tokens(macro.body)
        out: list[_Token] = []
        index = 0
        while index < len(body):
            token = body[index]
            if token == "#" and (operand := _next_operand(body, index)) is not None and body[operand] in table:
                text = _stringise(table[body[operand]])
                self.spend(len(text))
                out.append((text, _NO_HIDE))
                index = operand + 1
                continue
            if token == "__VA_OPT__" and macro.variadic:
                index = self._optional(body, index, table, macro, out)
                continue
            if token in table:
                raw = _beside_paste(body, index)
                if not raw and token not in expanded:
                    expanded[token] = self.run(table[token], depth + 1)
                piece = table[token] if raw else expanded[token]
                if raw and not piece:
                    piece = [("", _NO_HIDE)]
                self.spend(sum(len(text) + 1 for text, _ in piece))
                out.extend(piece)
            else:
                self.spend(len(token))
                out.append((token, _NO_HIDE))
            index += 1
        return _paste(out) if "##" in body else out

    def _optional(self, body: Sequence[str], index: int, table: dict[str, list[_Token]], macro: Macro, out: list[_Token]) -> int:
        taken = _take_arguments([(token, _NO_HIDE) for token in reversed(body[index + 1 :])])
        if taken is None or macro.params is None:
            return index + 1
        depth = 0
        end = index + 1
        while end < len(body):
            depth += _NESTING.get(body[end], 0)
            end += 1
            if depth == 0 and body[end - 1] == ")":
                break
        if table.get(macro.params[-1]):
            inner = Macro("", macro.params, "".join(body[index + 1 : end]).strip()[1:-1], "", 0, True)
            out.extend(self.substitute(inner, [table[name] for name in macro.params], _MAX_ARGUMENT_DEPTH - 1))
        return end


def _take_arguments(pending: list[_Token]) -> tuple[list[list[_Token]], frozenset[str]] | None:
    """Pops `( … )` from a reversed token list; None (and nothing popped) if there is no complete one."""
    index = len(pending) - 1
    while index >= 0 and pending[index][0].isspace():
        index -= 1
    if index < 0 or pending[index][0] != "(":
        return None
    arguments: list[list[_Token]] = [[]]
    depth = 1
    index -= 1
    while index >= 0:
        token = pending[index]
        depth += _NESTING.get(token[0], 0)
        if depth == 0:
            del pending[index:]
            return [_trim(argument) for argument in arguments], token[1]
        if token[0] == "," and depth == 1:
            arguments.append([])
        else:
            arguments[-1].append(token)
        index -= 1
    return None


def _trim(argument: list[_Token]) -> list[_Token]:
    start, end = 0, len(argument)
    while start < end and argument[start][0].isspace():
        start += 1
    while end > start and argument[end - 1][0].isspace():
        end -= 1
    return argument[start:end]


def _bind_arguments(macro: Macro, arguments: list[list[_Token]]) -> dict[str, list[_Token]]:
    params = macro.params or ()
    table: dict[str, list[_Token]] = {}
    fixed = len(params) - 1 if macro.variadic else len(params)
    for position, name in enumerate(params[:fixed]):
        table[name] = arguments[position] if position < len(arguments) else []
    if macro.variadic:
        rest: list[_Token] = []
        for position, argument in enumerate(arguments[fixed:]):
            if position:
                rest.extend(((",", _NO_HIDE), (" ", _NO_HIDE)))
            rest.extend(argument)
        table[params[-1]] = rest
    return table


def _next_operand(body: Sequence[str], index: int) -> int | None:
    index += 1
    while index < len(body) and body[index].isspace():
        index += 1
    return index if index < len(body) else None


def _beside_paste(body: Sequence[str], index: int) -> bool:
    after = _next_operand(body, index)
    if after is not None and body[after] == "##":
        return True
    index -= 1
    while index >= 0 and body[index].isspace():
        index -= 1
    return index >= 0 and body[index] == "##"


def _stringise(argument: list[_Token]) -> str:
    text = "".join(" " if token.isspace() else token for token, _ in argument)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _paste(stream: list[_Token]) -> list[_Token]:
    out: list[_Token] = []
    index = 0
    while index < len(stream):
        if stream[index][0] != "##" or not out:
            out.append(stream[index])
            index += 1
            continue
        while len(out) > 1 and out[-1][0].isspace():
            out.pop()
        index += 1
        while index < len(stream) and stream[index][0].isspace():
            index += 1
        left = out.pop()
        right = stream[index] if index < len(stream) else ("", _NO_HIDE)
        index += 1
        if left[0] == "," and not right[0]:
            # GNU: `, ## __VA_ARGS__` loses its comma when there are no arguments
            continue
        if left[0] == ",":
            out.extend((left, right))
            continue
        out.extend((token, left[1] & right[1]) for token in tokens(left[0] + right[0]))
    return [token for token in out if token[0]]


def _join(stream: list[_Token]) -> str:
    parts: list[str] = []
    last = ""
    for token, _ in stream:
        if last and _glues(last, token):
            parts.append(" ")
        parts.append(token)
        last = token
    return "".join(parts)


def _glues(left: str, right: str) -> bool:
    """Whether two tokens written side by side would read as others."""
    first, second = left[-1], right[0]
    if not ((_word(first) and (_word(second) or second in "'\"")) or (first in _GLUE and second in _GLUE)):
        return False
    return tokens(left + right)[0] != left


def _word(character: str) -> bool:
    return character.isalnum() or character == "_"


def expand(macro: Macro, args: Sequence[str] | None, lookup: Lookup, budget: int = BUDGET) -> str | None:
    """The complete expansion of one use of `macro` with raw arguments `args` (None: object-like).

    None when the expansion would produce more than `budget` characters on the way.
    """
    expander = _Expander(lookup, budget)
    hide = frozenset((macro.name,))
    try:
        if macro.params is None:
            body = [(token, hide) for token in expander._object(macro)]
        else:
            arguments = [[(token, _NO_HIDE) for token in tokens(argument.strip())] for argument in args or ()]
            body = [(token, own | hide) for token, own in expander.substitute(macro, arguments, 0)]
        return _join(expander.run(body)).strip()
    except (_OverBudget, RecursionError):
        return None


def expand_text(text: str, lookup: Lookup, budget: int = BUDGET) -> str | None:
    """`text` with every macro expanded; None when that would produce more than `budget` characters on the way."""
    try:
        return _join(_Expander(lookup, budget + len(text)).run([(token, _NO_HIDE) for token in tokens(text)]))
    except (_OverBudget, RecursionError):
        return None
