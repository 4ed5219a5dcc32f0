"""Reviewing a dataset: steps on the disk, a new version, and an original that never changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.types import Document, EvaluationSample
from auepora_eval.errors import DataError
from auepora_eval.io.jsonl import load_jsonl_dataset, save_jsonl_dataset
from auepora_eval.people.review import Review, selected_span, spans_of
from auepora_eval.quality.description import dataset_difference

TEXT = "The Annet moors at the north pier. She carries 22 cars."


def a_dataset() -> InMemoryDataset:
    docs = [Document("d1", TEXT, {"spans": [{"start": 0, "end": 9, "text": TEXT[:9]}]})]
    samples = [
        EvaluationSample(
            str(number), f"Where does boat {number} moor?", docs, reference_answer="the north pier"
        )
        for number in range(1, 5)
    ]
    samples.append(EvaluationSample("5", "Where does boat 1 moor?", reference_answer="elsewhere"))
    return InMemoryDataset("boats", samples, info={"version": "1"})


@pytest.fixture
def review(tmp_path: Path) -> Review:
    return Review(a_dataset(), tmp_path / "r")


def test_a_new_version_has_what_was_accepted_edited_and_marked(review: Review, tmp_path: Path) -> None:
    review.decide(0, "accept")
    review.decide(1, "reject", "ambiguous")
    review.edit(2, "How many cars does the Annet carry?", "22")
    review.mark(2, 0, 47, 54)
    review.unmark(2, 0, 0)
    new = review.result()
    save_jsonl_dataset(new, tmp_path / "new.jsonl")
    again = load_jsonl_dataset(tmp_path / "new.jsonl")
    assert again.info["version"] == "1"
    assert [sample.sample_id for sample in again] == ["1", "3", "4", "5"]
    edited = list(again)[1]
    assert edited.query == "How many cars does the Annet carry?"
    assert edited.reference_answer is not None
    assert edited.reference_answer.text == "22"
    assert spans_of((edited.relevant_docs or [])[0]) == [{"start": 47, "end": 54, "text": "22 cars"}]
    difference = dataset_difference(a_dataset(), again).samples
    assert (difference.removed, [one.id for one in difference.changed]) == (["2"], ["3"])


def test_the_original_is_not_touched(review: Review) -> None:
    review.edit(0, "Another question?", "")
    review.mark(0, 0, 10, 15)
    assert dataset_difference(review.dataset, a_dataset()).same
    assert review.at(0).is_edited
    assert review.at(0).sample.reference_answer is None
    assert not review.at(1).is_edited, "the document that two samples share is another one now"


def test_undo_takes_back_step_by_step(review: Review) -> None:
    review.decide(0, "accept")
    review.edit(0, "Changed?", "x")
    review.decide(1, "reject", "duplicate")
    assert [review.undo() for _ in range(4)] == [1, 0, 0, None]
    assert not review.can_undo
    assert not review.at(0).is_edited
    assert review.at(0).decision == review.at(1).decision == ""


def test_a_review_is_continued(tmp_path: Path) -> None:
    first = Review(a_dataset(), tmp_path)
    first.decide(0, "accept")
    second = Review(a_dataset(), tmp_path)
    assert [one.decision for one in second.all()] == ["accept", "", "", "", ""]
    second.decide(2, "accept")
    third = Review(a_dataset(), tmp_path)
    assert third.at(2).decision == "accept"


def test_another_dataset_cannot_continue_a_review(tmp_path: Path) -> None:
    first = Review(a_dataset(), tmp_path)
    first.decide(0, "accept")
    other = InMemoryDataset("boats", list(a_dataset())[1:])
    with pytest.raises(DataError, match="has changed since this review was started"):
        Review(other, tmp_path)


@pytest.mark.parametrize(
    ("text", "start", "end", "shown", "expected"),
    [
        pytest.param("one two", 4, 7, "two", (4, 7), id="plain"),
        pytest.param("🙂 two", 3, 6, "two", (2, 5), id="a letter of two units before it"),
        pytest.param("a🙂b", 1, 3, "🙂", (1, 2), id="the letter itself"),
        pytest.param("a\u202eb\x07c", 1, 3, "bc", (2, 5), id="what is not shown is not counted"),
        pytest.param("one\ntwo", 0, 7, "one\r\ntwo", (0, 7), id="a form sends CR LF"),
    ],
)
def test_a_selection_is_found_in_the_text(
    text: str, start: int, end: int, shown: str, expected: tuple[int, int]
) -> None:
    assert selected_span(text, start, end, shown) == expected


def test_a_mark_in_a_chunk_counts_the_characters_of_its_source(tmp_path: Path) -> None:
    chunk = Document("boats.md#2", TEXT, {"source": "boats.md", "start": 900, "end": 900 + len(TEXT)})
    dataset = InMemoryDataset("boats", [EvaluationSample("1", "How many cars?", [chunk])])
    review = Review(dataset, tmp_path / "r")
    review.mark(0, 0, 47, 54)
    [marked] = review.at(0).sample.relevant_docs or []
    assert spans_of(marked) == [{"start": 947, "end": 954, "text": "22 cars"}]
