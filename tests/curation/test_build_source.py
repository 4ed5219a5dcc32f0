"""Lines without copies: the same as splitting the whole content, whatever the size of the blocks."""

from __future__ import annotations

import gzip
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.curation.build_source import Source, TooLong, is_blank

MARK = b"\xef\xbb\xbf"


def lines_of(content: bytes, *, block: int, longest: int) -> list[bytes | TooLong]:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as hashing:
        path = Path(folder, "source.jsonl")
        path.write_bytes(content)
        found: list[bytes | TooLong] = []
        for number, lines in Source(path, hashing).lines(max_line_bytes=longest, block=block):
            assert number == len(found) + 1
            found += [line if isinstance(line, TooLong) else bytes(line) for line in lines]
    return found


def expected_lines(content: bytes, longest: int) -> list[bytes | TooLong]:
    pieces = content.split(b"\n")
    if not pieces[-1]:
        pieces.pop()
    expected: list[bytes | TooLong] = []
    offset = 0
    for piece in pieces:
        kept = piece.removeprefix(MARK) if offset == 0 else piece
        expected.append(TooLong(offset, len(piece)) if len(piece) > longest else kept)
        offset += len(piece) + 1
    return expected


@given(
    st.lists(st.sampled_from([b"a", b"\n", b"bcd", b"\r\n", b"{}", MARK, b"efghijklmnopq"])).map(b"".join),
    st.integers(1, 12),
    st.integers(3, 12),
)
def test_lines_are_those_of_the_whole_content(content: bytes, block: int, longest: int) -> None:
    assert lines_of(content, block=block, longest=longest) == expected_lines(content, longest)


def test_packed_sources_are_read_as_unpacked(tmp_path: Path) -> None:
    content = b"".join(b'{"n": %d}\n' % n for n in range(500))
    assert lines_of(gzip.compress(content), block=64, longest=100) == content.splitlines()


@pytest.mark.parametrize(
    ("line", "blank"), [(b"", True), (b" \t\r", True), (b"{", False), (b" {}", False), (b"\0", False)]
)
def test_a_blank_line_holds_nothing_but_blanks(line: bytes, blank: bool) -> None:
    assert is_blank(memoryview(line)) is blank
    assert not is_blank(TooLong(0, 9))
