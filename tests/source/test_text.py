"""Files as text: encodings, lines, columns."""

from __future__ import annotations

import codecs
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalint.source import text
from cudalint.source.text import SourceError, SourceFile, from_bytes, load

CODE = "__global__ void k(float* größe)\n{\n    größe[0] = 1; // 始\n}\n"


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-8", b""),
        ("utf-8", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-32-le", codecs.BOM_UTF32_LE),
        ("utf-32-be", codecs.BOM_UTF32_BE),
        ("utf-16-le", b""),
        ("utf-16-be", b""),
    ],
)
def test_encodings_become_utf8_and_can_be_written_back(encoding: str, mark: bytes) -> None:
    raw = mark + CODE.encode(encoding)
    source = from_bytes("k.cu", raw)
    assert source.data == CODE.encode()
    assert (source.encoding, source.bom) == (encoding, mark)
    assert source.encode(source.data) == raw


def test_first_line_starts_at_column_one_behind_a_mark() -> None:
    source = from_bytes("k.cu", codecs.BOM_UTF8 + b"#include <a>\nint x;\n")
    assert source.line(1) == "#include <a>"
    assert source.position(0) == (1, 1)
    assert source.position(source.data.index(b"x")) == (2, 5)


def test_columns_are_code_points() -> None:
    source = SourceFile("k.cu", "größe[始] = 1;".encode())
    assert source.position(source.data.index(b"[")) == (1, 6)
    assert source.position(source.data.index(b"=")) == (1, 10)
    assert source.position(3) == (1, 3)
    assert source.position(len(source.data)) == (1, 14)


def test_a_position_inside_a_code_point_is_that_of_the_code_point() -> None:
    source = SourceFile("k.cu", "a始b".encode())
    assert [source.position(offset)[1] for offset in range(6)] == [1, 2, 2, 2, 3, 4]


def test_bytes_that_are_not_utf8_are_kept_and_shown_as_replacements() -> None:
    source = from_bytes("k.cu", b"// gr\xfc\xdf\nx\xff = 1;\n")
    assert source.data == b"// gr\xfc\xdf\nx\xff = 1;\n"
    assert source.line(1) == "// gr\ufffd\ufffd"
    assert source.text(8, 10) == "x\ufffd"
    assert source.position(source.data.index(b"=")) == (2, 4)
    assert source.encode(source.data) == b"// gr\xfc\xdf\nx\xff = 1;\n"


def test_only_line_feeds_end_lines() -> None:
    source = SourceFile("k.cu", b"a\r\nb\rc\fd\ve\nf")
    assert source.line_starts == [0, 3, 11]
    assert [source.line(number) for number in (0, 1, 2, 3, 4)] == ["", "a", "b\rc\x0cd\x0be", "f", ""]


def test_offsets_outside_are_clamped() -> None:
    source = SourceFile("k.cu", b"ab\ncd\n")
    assert source.position(-5) == (1, 1)
    assert source.position(99) == (3, 1)
    assert source.offset(0) == 0
    assert source.offset(9) == 6
    assert source.offset(1, 99) == 2


@given(st.binary(max_size=200))
def test_position_and_offset_are_inverse_on_any_bytes(data: bytes) -> None:
    source = SourceFile("k.cu", data)
    previous = (1, 0)
    for offset in range(len(data) + 1):
        position = source.position(offset)
        assert position >= previous
        start = source.offset(*position)
        in_line_end = data[start:offset].strip(b"\r\n") == b"" and source.position(start) != position
        assert start <= offset
        if not in_line_end:
            assert source.position(start) == position
        previous = position


@given(st.text(max_size=80))
def test_every_code_point_round_trips(content: str) -> None:
    content = content.replace("\r", " ")
    data = content.encode("utf-8", "replace")
    source = SourceFile("k.cu", data)
    offset = 0
    for character in data.decode():
        assert source.offset(*source.position(offset)) == offset
        offset += len(character.encode())


@given(st.binary(max_size=100))
def test_line_starts_are_where_lines_start(data: bytes) -> None:
    source = SourceFile("k.cu", data)
    assert len(source.line_starts) == data.count(b"\n") + 1
    assert all(data[start - 1 : start] == b"\n" for start in source.line_starts[1:])


def test_a_stray_nul_is_no_binary_file() -> None:
    data = CODE.encode() + b"// \0\n"
    assert from_bytes("k.cu", data).data == data


@pytest.mark.parametrize("data", [b"\x7fELF\x02\x01\x01" + bytes(60), bytes(10), bytes(range(256)) * 4])
def test_binary_files_are_refused(data: bytes) -> None:
    with pytest.raises(SourceError, match="binary"):
        from_bytes("k.cu", data)


def test_large_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MAX_BYTES", 2_000_000)
    path = tmp_path / "table.cu"
    path.write_bytes(b"0,\n" * 700_000)
    with pytest.raises(SourceError, match="larger than 2 MB") as caught:
        load(path)
    assert caught.value.path == str(path)


def test_unreadable_paths_say_why(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        load(tmp_path / "missing.cu")
    with pytest.raises(SourceError, match="is a directory"):
        load(tmp_path)
    with pytest.raises(SourceError, match="null"):
        load("a\0b")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_that_nobody_writes_to_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.cu")
    with pytest.raises(SourceError, match="not a regular file"):
        load(tmp_path / "pipe.cu")


def test_load_keeps_the_path_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_bytes(CODE.encode())
    assert load("k.cu").path == "k.cu"
    assert load("k.cu").data == CODE.encode()
