"""A journal without its header: its key is found by its lines, and only if they agree."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from auepora_eval.errors import StorageError
from auepora_eval.runs.journal import HEADER, JOURNAL, Journal, stored_places
from auepora_eval.runs.journal_key import key_of_lines
from auepora_eval.runs.journal_lines import journal_line, record_of
from tests.builders import an_output


@given(key=some.binary(min_size=1, max_size=20), texts=some.lists(some.text(), min_size=2, max_size=4))
def test_every_key_is_found(tmp_path_factory: pytest.TempPathFactory, key: bytes, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("key") / JOURNAL
    lines = [journal_line({"text": text, "seq": place}, key) for place, text in enumerate(texts)]
    path.write_bytes(b"not a line\n" + b"".join(lines))
    found = key_of_lines(path)
    assert found is not None
    assert zlib.crc32(found) == zlib.crc32(key)
    assert all(record_of(line, found) == record_of(line, key) for line in lines)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"a\nb\nc\n", b"00000000 {}\n", b"00000000 {}\n00000001 {}\n"]
)
def test_lines_that_do_not_agree_have_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / JOURNAL).write_bytes(content)
    assert key_of_lines(tmp_path / JOURNAL) is None
    with pytest.raises(StorageError, match=r"header\.json cannot be read"):
        stored_places(tmp_path)


def test_damage_is_found_without_a_header_too(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, {})
    for number in range(6):
        journal.append(f"s{number}", an_output("a", f"answer {number}"))
    journal.close("finished")
    content = (tmp_path / JOURNAL).read_bytes()
    (tmp_path / JOURNAL).write_bytes(content.replace(b"answer 3", b"ANSWER 3"))
    (tmp_path / HEADER).unlink()
    places = stored_places(tmp_path)
    assert places is not None
    assert [f"s{number}" in places for number in range(6)] == [True, True, True, False, True, True]
    assert [number for number, _ in places.damage.lines] == [5]
