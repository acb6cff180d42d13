"""Files as text: encodings, byte order marks, lines and columns.

Everything else in cudalint speaks of byte offsets into `SourceFile.data`,
which is UTF-8 without a byte order mark; lines and columns exist only here.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
from bisect import bisect_right

MAX_BYTES = 50_000_000
"""Files larger than this (bytes on disk) are refused: generated tables, not source."""

_BOMS = (
    # UTF-32 first: its little-endian mark starts with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 4096
_CONTROLS = bytes(c for c in range(32) if c not in b"\t\n\v\f\r\x1a\x1b") + b"\x7f"
_LONE = re.compile("[\udc80-\udcff]")


class SourceError(Exception):
    """A file or folder that cannot be analysed, with the reason in words."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class SourceFile:
    """The text of one file.

    path      as the user named it or discovery found it
    data      UTF-8 without byte order mark; bytes that are not UTF-8 are kept, NUL bytes too
    encoding  of the file on disk: "utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"
    bom       the byte order mark of the file, b"" without one
    """

    __slots__ = ("_line_starts", "bom", "data", "encoding", "path")

    def __init__(self, path: str, data: bytes, encoding: str = "utf-8", bom: bytes = b"") -> None:
        self.path = path
        self.data = data
        self.encoding = encoding
        self.bom = bom
        self._line_starts: list[int] | None = None

    def __repr__(self) -> str:
        return f"SourceFile({self.path!r}, {len(self.data)} bytes, {self.encoding})"

    @property
    def line_starts(self) -> list[int]:
        r"""Byte offset of the start of every line; lines end at \n (and \r\n) only, as for nvcc."""
        if self._line_starts is None:
            self._line_starts = [0, *(match.end() for match in re.finditer(b"\n", self.data))]
        return self._line_starts

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column (1-based, column in code points) of a byte offset; offsets outside are clamped.

        An offset inside a code point has the position of that code point.
        """
        offset = min(max(offset, 0), len(self.data))
        starts = self.line_starts
        line = bisect_right(starts, offset)
        start = starts[line - 1]
        offset = _code_point_start(self.data, start, offset)
        prefix = self.data[start:offset]
        return line, 1 + (len(prefix) if prefix.isascii() else len(_decode(prefix)))

    def offset(self, line: int, column: int = 1) -> int:
        """Byte offset of a 1-based line and column (code points); past the end of the line, its end."""
        starts = self.line_starts
        if line < 1:
            return 0
        if line > len(starts):
            return len(self.data)
        start = starts[line - 1]
        text = self._line_bytes(line)
        if not text.isascii():
            decoded = _decode(text)
            return start + len(decoded[: max(column, 1) - 1].encode("utf-8", "surrogateescape"))
        return start + min(max(column, 1) - 1, len(text))

    def line(self, number: int) -> str:
        """Text of a 1-based line without its line end; "" outside of the file."""
        if not 1 <= number <= len(self.line_starts):
            return ""
        return _display(self._line_bytes(number))

    def text(self, start: int, end: int) -> str:
        """Text of a byte range; bytes that are not UTF-8 become U+FFFD, one each."""
        return _display(self.data[max(start, 0) : end])

    def encode(self, data: bytes) -> bytes:
        """The bytes to write to disk for the UTF-8 text `data`, in this file's encoding and with its mark."""
        if self.encoding == "utf-8":
            return self.bom + data
        return self.bom + data.decode("utf-8", "replace").encode(self.encoding)

    def _line_bytes(self, number: int) -> bytes:
        starts = self.line_starts
        end = starts[number] if number < len(starts) else len(self.data)
        text = self.data[starts[number - 1] : end]
        return text[:-1].removesuffix(b"\r") if text.endswith(b"\n") else text


def load(path: str | os.PathLike[str]) -> SourceFile:
    """Read a file.  Raises `SourceError` for what is unreadable, no regular file, binary or larger than `MAX_BYTES`."""
    name = os.fspath(path)
    try:
        raw = read_regular(name, MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise SourceError(name, _reason(error)) from error
    return from_bytes(name, raw)


def read_regular(path: str, limit: int = -1) -> bytes:
    """At most `limit` bytes of a regular file.  Raises `OSError` for anything else: pipes and devices never end."""
    with open(path, "rb", opener=_open_without_blocking) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("not a regular file")
        return file.read(limit)


def from_bytes(path: str, raw: bytes) -> SourceFile:
    """A source file from its bytes on disk (or standard input, or an editor).  Raises `SourceError` as `load` does."""
    if len(raw) > MAX_BYTES:
        raise SourceError(path, f"larger than {MAX_BYTES // 1_000_000} MB")
    encoding, bom = _encoding(raw)
    body = raw[len(bom) :]
    if encoding != "utf-8":
        return SourceFile(path, body.decode(encoding, "replace").encode("utf-8", "replace"), encoding, bom)
    if b"\0" in body and not _looks_like_text(body):
        raise SourceError(path, "binary file")
    return SourceFile(path, body, encoding, bom)


def _open_without_blocking(path: str, flags: int) -> int:
    """Opening a pipe nobody writes to must not hang."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return str(error)


def _encoding(raw: bytes) -> tuple[str, bytes]:
    for mark, encoding in _BOMS:
        if raw.startswith(mark):
            return encoding, mark
    return _utf16_guess(raw[:_SAMPLE]) or "utf-8", b""


def _utf16_guess(sample: bytes) -> str | None:
    """UTF-16 without a mark: code is mostly ASCII, so nearly every second byte is NUL, always on the same side."""
    if b"\0" not in sample or len(sample) < 2:
        return None
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if odd * 2 > half and even * 20 < half:
        return "utf-16-le"
    if even * 2 > half and odd * 20 < half:
        return "utf-16-be"
    return None


def _looks_like_text(body: bytes) -> bool:
    """A stray NUL in a source file, rather than an object file: at most one byte in twenty is a control character."""
    controls = len(body) - len(body.translate(None, _CONTROLS))
    return controls * 20 <= len(body)


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _display(data: bytes) -> str:
    text = _decode(data)
    return text if data.isascii() else _LONE.sub("\ufffd", text)


def _code_point_start(data: bytes, low: int, offset: int) -> int:
    """The start of the code point that holds `offset`, or `offset` itself where the bytes are not UTF-8."""
    start = offset
    while start > low and offset - start < 3 and data[start : start + 1] and data[start] & 0xC0 == 0x80:
        start -= 1
    for end in range(offset + 1, start + 5):
        try:
            if len(data[start:end].decode("utf-8")) == 1:
                return start
        except UnicodeDecodeError:
            continue
    return offset
