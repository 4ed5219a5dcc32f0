"""T-10: damaged lines of a journal are never used; the others are kept."""

from __future__ import annotations

import os
import random
import warnings
from pathlib import Path

import pytest

from auepora_eval.core.types import Failure, Response, SystemOutputs
from auepora_eval.errors import StorageError
from auepora_eval.runs.journal.journal import HEADER, JOURNAL, DamagedJournalWarning, Journal, stored_places
from auepora_eval.runs.store.storage import EvaluationResultsStorage
from tests.builders import an_output
from tests.reliability.journaled_run import dataset_of, evaluator
from tests.stable import stable_bytes

FLIPS = int(os.environ.get("AUEPORA_FLIPS", "600"))
IDS = [f"s{number}" for number in range(12)]
HEAD = {"begun_at": "2026-01-01T00:00:00Z"}


def write_journal(folder: Path, word: str = "answer") -> bytes:
    journal = Journal.create(folder, HEAD)
    for sample_id in IDS:
        journal.wait(journal.submit(sample_id, an_output("ab", f"{word} to {sample_id}")))
    journal.close("finished")
    return (folder / JOURNAL).read_bytes()


def answers(folder: Path, content: bytes) -> dict[str, str]:
    """What the journal says when its file holds this."""
    (folder / JOURNAL).write_bytes(content)
    places = stored_places(folder)
    assert places is not None
    ids = [sample_id for sample_id in IDS if sample_id in places]
    return {name: output.response.text for name, output in zip(ids, places.outputs(ids), strict=True)}


def is_true(found: dict[str, str]) -> bool:
    return all(text == f"answer to {sample_id}" for sample_id, text in found.items())


def test_t10_cut_at_every_byte(tmp_path: Path) -> None:
    content = write_journal(tmp_path)
    wrong = 0
    for size in range(0, len(content), 1 if FLIPS > 10_000 else 3):
        found = answers(tmp_path, content[:size])
        whole = content[:size].count(b'"type":"output","v":1}\n')
        wrong += not is_true(found) or len(found) != whole
    print(f"\nT-10 cut: {len(range(0, len(content), 1 if FLIPS > 10_000 else 3))} lengths, {wrong} wrong")
    assert wrong == 0


def test_t10_single_bits(tmp_path: Path) -> None:
    content, chance = write_journal(tmp_path), random.Random(10)
    believed = lost = 0
    for _ in range(FLIPS):
        place = chance.randrange(len(content))
        flipped = bytearray(content)
        flipped[place] ^= 1 << chance.randrange(8)
        found = answers(tmp_path, bytes(flipped))
        believed += not is_true(found)
        lost = max(lost, len(IDS) - len(found))
    print(f"\nT-10 flips: {FLIPS}, believed {believed}, at most {lost} records lost by one")
    assert believed == 0
    assert lost <= 2  # a line end that is gone makes one line of two


@pytest.mark.parametrize("tail", [b"\0" * 4096, b"\n\n\n", b"garbage\nand more\n", b"0" * 8 + b" {}\n"])
def test_t10_damaged_ends(tmp_path: Path, tail: bytes) -> None:
    content = write_journal(tmp_path)
    assert len(answers(tmp_path, content + tail)) == len(IDS)
    with pytest.warns(DamagedJournalWarning, match=f"last {len(tail)} bytes are not whole records"):
        journal = Journal.resume(tmp_path, HEAD)
    journal.close("finished")
    assert (tmp_path / JOURNAL).read_bytes().startswith(content)
    assert tail not in (tmp_path / JOURNAL).read_bytes() or tail == b"\n\n\n"


def test_t10_lines_swapped_doubled_and_of_another_run(tmp_path: Path) -> None:
    other = write_journal(tmp_path / "other", "lie").splitlines(keepends=True)
    lines = write_journal(tmp_path).splitlines(keepends=True)
    swapped = lines[:]
    random.Random(1).shuffle(swapped)
    for name, changed in {
        "swapped": swapped,
        "doubled": lines + lines[3:6],
        "joined": other + lines + other,
        "removed": lines[:4] + lines[7:],
    }.items():
        found = answers(tmp_path, b"".join(changed))
        assert is_true(found), name
        assert len(found) == (len(IDS) - 3 if name == "removed" else len(IDS)), name


def test_t10_damaged_line_is_reported_and_its_sample_repeated(tmp_path: Path) -> None:
    storage, world = EvaluationResultsStorage(tmp_path), dataset_of(40)
    evaluator("serial", 1, 0.0).run(world, evaluation_id="quiet", storage=storage)
    evaluator("serial", 1, 0.0).run(world, evaluation_id="x", storage=storage)
    (tmp_path / "x.results.json").unlink()
    journal = tmp_path / "x.run" / JOURNAL
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[7] = lines[7].replace(b"answer", b"ANSWER", 1)
    journal.write_bytes(b"".join(lines))
    asked: list[str] = []
    running = evaluator("serial", 1, 0.0)
    running.on_output = lambda sample, output: asked.append(sample.sample_id)
    with pytest.warns(DamagedJournalWarning, match="1 line is damaged, first line 8 at byte"):
        running.run(world, evaluation_id="x", storage=storage, resume=True)
    assert len(asked) == 1
    assert stable_bytes(storage.load_results("x")) == stable_bytes(storage.load_results("quiet"))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"run_key":5}', b'{"run_key":"a","version":99}'])
def test_t10_empty_header(tmp_path: Path, content: bytes) -> None:
    write_journal(tmp_path)
    (tmp_path / HEADER).write_bytes(content)
    with warnings.catch_warnings(), pytest.raises(StorageError, match=r"header\.json"):
        Journal.resume(tmp_path, HEAD)


def test_t10_other_run_is_rejected_with_the_difference(tmp_path: Path) -> None:
    Journal.create(tmp_path, {"dataset_sha256": "a", "system": "one", "top_k": 5}).close("stopped")
    with pytest.raises(StorageError, match="system was 'one', now it is 'two'; top_k was 5, now it is 3"):
        Journal.resume(tmp_path, {"dataset_sha256": "a", "system": "two", "top_k": 3})


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 1, 0, 3), (3, 2, 1, 0)], ids=str)
def test_t10_lines_that_are_not_in_the_order_of_their_numbers(tmp_path: Path, order: tuple[int, ...]) -> None:
    failed = SystemOutputs([], Response(""), error=Failure("TimeoutError", "late"))
    journal = Journal.create(tmp_path, {})
    for sample_id, output in (("a", failed), ("b", failed), ("a", an_output("xyz", "second"))):
        journal.wait(journal.submit(sample_id, output))
    journal.close("finished")
    path = tmp_path / JOURNAL
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[place] for place in order if place < len(lines)))
    places = stored_places(tmp_path)
    assert places is not None
    # The output with the highest number counts, wherever its line is.
    [a, b] = places.outputs(["a", "b"])
    assert (a.response.text, b.error) == ("second", failed.error)
    assert (len(places), places.longest, places.failed) == (2, 3, {True: 1, False: 0})
