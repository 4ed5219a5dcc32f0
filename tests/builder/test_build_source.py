"""Lines without copies: the same as splitting the whole content, whatever the size of the blocks."""

from __future__ import annotations

import gzip
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.builder import build as build_source
from auepora_eval.builder.build import Source, TooLong

MARK = b"\xef\xbb\xbf"


def lines_of(content: bytes, *, block: int, longest: int) -> list[bytes | TooLong]:
    found: list[bytes | TooLong] = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as beside:
        path = Path(folder, "source.jsonl")
        path.write_bytes(content)
        with closing(Source(path, beside)) as source:
            for number, lines in source.lines(max_line_bytes=longest, block=block):
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


@pytest.mark.parametrize("blocks", [0, 1, 1000])
@pytest.mark.parametrize("packed", [False, True])
def test_the_hash_is_that_of_the_file_however_much_of_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool, blocks: int
) -> None:
    monkeypatch.setattr(build_source, "PORTION", 100)
    content = b"".join(b'{"n": %d}\n' % n for n in range(500))
    path = tmp_path / "source.jsonl"
    path.write_bytes(gzip.compress(content) if packed else content)
    with ThreadPoolExecutor(1) as beside, closing(Source(path, beside)) as source:
        for _ in islice(source.lines(block=64), blocks):
            pass
        assert source.sha256() == sha256(path.read_bytes()).hexdigest()


def test_an_error_while_hashing_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: Source) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(build_source, "PORTION", 100)
    monkeypatch.setattr(Source, "_hash_portion", fail)
    path = tmp_path / "source.jsonl"
    path.write_bytes(b"{}\n" * 500)
    with ThreadPoolExecutor(1) as beside, closing(Source(path, beside)) as source:
        next(source.lines(block=1500))
        with pytest.raises(OSError, match="Input"):
            source.sha256()


def test_packed_sources_are_read_as_unpacked(tmp_path: Path) -> None:
    content = b"".join(b'{"n": %d}\n' % n for n in range(500))
    assert lines_of(gzip.compress(content), block=64, longest=100) == content.splitlines()
