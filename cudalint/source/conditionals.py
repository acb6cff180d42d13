"""`#if` groups that split a construct: one arm stays, the others and the directives are blanked."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable

from cudalint.source.code import COMMENT, CONTINUATION, Group, groups
from cudalint.source.page import WORD_STARTS, Page

Inactive = Callable[[bytes], "list[tuple[int, int]]"]
"""Byte ranges of the `#if` arms that are not compiled."""

_AFTER_GROUP = WORD_STARTS | {b"", b"}", b"~", b":", b"*", b"(", b"[", b"{", b"+", b"-", b"@"}
_ELSE = re.compile(rb"\s*else\b")
_CONDITION = re.compile(rb"#[ \t]*(\w+)(.*)", re.DOTALL)
_FOREIGN = re.compile(
    rb"__HIP\w*|USE_ROCM|USE_HIP|__HCC__|HIP_\w+|_MSC_VER|_WIN32|_WIN64|WIN32|__clang__|__INTEL_\w+|__SYCL\w*|SYCL_\w+|__CUDACC_RTC__|__APPLE__|__MINGW32__|GGML_USE_HIP|GGML_USE_MUSA|__OPENCL\w*\Z"
)
_NATIVE = frozenset((b"__CUDACC__", b"__CUDA_ARCH__", b"__NVCC__", b"__cplusplus", b"__linux__", b"__GNUC__"))
_DEFINED = re.compile(rb"(!?)\s*defined\s*\(?\s*(\w+)\s*\)?\Z")


class ConditionalStep:
    """Chooses arms.

    dropped   ranges of overwritten arms that are certainly not compiled
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.dropped: list[tuple[int, int]] = []

    def run(self, inactive: Inactive | None, every: bool = False) -> None:
        """Keep one arm of each `#if` group that splits a construct (or of every group)."""
        ranges = inactive(self.page.data) if inactive is not None else None
        for group in groups(self.page.view.directives):
            if every or self._is_split(group):
                self._keep_one(group, ranges)

    def _is_split(self, group: Group) -> bool:
        before = self.page.char(self.page.previous(group.lines[0].start))
        after = self.page.next(group.lines[-1].end)
        if before not in (b"", b";", b"{", b"}", b":") or self.page.char(after) not in _AFTER_GROUP:
            return True
        if _ELSE.match(self.page.code, after):
            return True
        for begin, end in group.arms:
            arm = bytes(self.page.code[begin:end]).strip()
            if not arm:
                continue
            if arm[-1:] not in (b";", b"{", b"}", b":") or _ELSE.match(arm):
                return True
            if any(arm.count(left) != arm.count(right) for left, right in ((b"(", b")"), (b"{", b"}"), (b"[", b"]"))):
                return True
        return False

    def _keep_one(self, group: Group, ranges: list[tuple[int, int]] | None) -> None:
        verdicts = [
            not _covered(ranges, begin, end) if ranges is not None else self._verdict(group, index)
            for index, (begin, end) in enumerate(group.arms)
        ]
        taken = next((index for index, verdict in enumerate(verdicts) if verdict is not False), -1)
        for line in group.lines:
            self.page.blank(line.start, line.end)
        for index, (begin, end) in enumerate(group.arms):
            if index == taken:
                continue
            self.page.blank(begin, end)
            if verdicts[index] is False or verdicts[taken]:
                self.dropped.append((begin, end))

    def _verdict(self, group: Group, index: int) -> bool | None:
        """Light evaluation of the condition of an arm for nvcc's device pass; None where it is not certain."""
        line = group.lines[index]
        if line.word == b"else":
            return None
        text = COMMENT.sub(b" ", CONTINUATION.sub(b" ", self.page.data[line.start : line.end]))
        match = _CONDITION.match(text)
        if match is None:
            return None
        word, condition = match[1], match[2].strip()
        if word in (b"ifdef", b"ifndef"):
            condition = (b"" if word == b"ifdef" else b"!") + b"defined(" + condition + b")"
        return _light_value(condition)


def _covered(ranges: list[tuple[int, int]], begin: int, end: int) -> bool:
    index = bisect_right(ranges, (begin + 1, 1 << 62)) - 1
    return index >= 0 and ranges[index][1] >= end - 1 and ranges[index][0] <= begin + 1


def _light_value(condition: bytes) -> bool | None:
    """True or false where a condition is certain, else None."""
    if condition in (b"0", b"false"):
        return False
    if condition in (b"1", b"true"):
        return True
    for operator, decisive in ((b"||", True), (b"&&", False)):
        if operator in condition and b"(" not in re.sub(rb"defined\s*\(\s*\w+\s*\)", b"", condition):
            values = [_light_value(part.strip()) for part in condition.split(operator)]
            if decisive in values:
                return decisive
            return None if None in values else not decisive
    match = _DEFINED.match(condition)
    if match is None:
        return None
    known = False if _FOREIGN.fullmatch(match[2]) else True if match[2] in _NATIVE else None
    return known if known is None or not match[1] else not known
