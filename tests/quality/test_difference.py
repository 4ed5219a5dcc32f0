"""Two datasets side by side: what was added, removed and changed, and nothing else."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.types import Document, EvaluationSample, Response
from auepora_eval.quality.description import dataset_difference
from tests.builders import a_dataset, a_sample


def changed(old: EvaluationSample, new: EvaluationSample) -> list[tuple[str, Any, Any]]:
    group = dataset_difference(a_dataset(old), a_dataset(new)).samples
    return [(each.field, each.old, each.new) for change in group.changed for each in change.fields]


def test_added_removed_and_unchanged() -> None:
    difference = dataset_difference(
        a_dataset(a_sample("1"), a_sample("2")), a_dataset(a_sample("3"), a_sample("1"))
    )
    assert (difference.samples.added, difference.samples.removed) == (["3"], ["2"])
    assert difference.samples.unchanged == 1
    assert not difference.same


@pytest.mark.parametrize(
    ("old", "new", "fields"),
    [
        (a_sample(query="a"), a_sample(query="b"), [("query", "a", "b")]),
        (a_sample(reference="a"), a_sample(), [("reference_answer", {"text": "a"}, None)]),
        (
            a_sample(reference="a"),
            a_sample(reference="a", alternatives=["b"]),
            [("reference_answer.metadata", None, {"alternatives": ["b"]})],
        ),
        (a_sample(labels={"x": 1, "y": 2}), a_sample(labels={"x": 3, "y": 2}), [("labels.x", 1, 3)]),
        (a_sample(labels={"x": 1, "y": 2}), a_sample(labels={"x": True, "y": 2}), [("labels.x", 1, True)]),
        (a_sample(labels={"x": 1}), a_sample(labels={"x": 1.0}), []),
        (
            a_sample(relevant={"a": 1.0}),
            a_sample(relevant={"a": 2.0}),
            [("relevant_docs.a.metadata.relevance", 1.0, 2.0)],
        ),
        (
            a_sample(relevant="a"),
            a_sample(relevant="ab"),
            [("relevant_docs.b", None, {"text": "text of b"})],
        ),
        (a_sample(relevant="ab"), a_sample(relevant="ba"), []),
        (a_sample(relevant=""), a_sample(), []),
    ],
)
def test_the_fields_that_changed(
    old: EvaluationSample, new: EvaluationSample, fields: list[tuple[str, Any, Any]]
) -> None:
    assert changed(old, new) == fields
    assert changed(new, old) == [(name, b, a) for name, a, b in fields]
    assert changed(old, copy.deepcopy(old)) == []


def test_documents_of_the_corpus() -> None:
    old = InMemoryDataset("d", [], documents=[Document("a", "x"), Document("b", "y")])
    new = InMemoryDataset("d", [], documents=[Document("b", "z"), Document("c", "x")])
    difference = dataset_difference(old, new)
    assert (difference.documents.added, difference.documents.removed) == (["c"], ["a"])
    assert difference.documents.changed[0].fields[0].field == "text"
    plain = InMemoryDataset("d", [])
    assert dataset_difference(old, plain).same
    assert dataset_difference(plain, old).not_compared == ["the corpus: the first dataset has none"]


@pytest.mark.parametrize("corpus", [True, False])
def test_of_a_document_that_one_side_has_no_text_of_only_the_id_counts(corpus: bool) -> None:
    whole = Document("a", "text", {"file_path": "a.pdf"})
    bare = Document("a", "", {"text_missing": True})
    old = InMemoryDataset("d", [EvaluationSample("1", "q", [whole])], documents=[whole] if corpus else ())
    new = InMemoryDataset("d", [EvaluationSample("1", "q", [bare])])
    for one, other in ((old, new), (new, old)):
        difference = dataset_difference(one, other)
        assert difference.same
        [note] = difference.not_compared
        assert ("the corpus" if corpus else "the texts of documents") in note
    other_id = [Document("b", "", {"text_missing": True})]
    assert not dataset_difference(old, InMemoryDataset("d", [EvaluationSample("1", "q", other_id)])).same
    emptied = [Document("a", "", {})]
    assert not dataset_difference(old, InMemoryDataset("d", [EvaluationSample("1", "q", emptied)])).same


_values = st.none() | st.booleans() | st.integers(-2, 2) | st.text("ab", max_size=2)
_samples = st.lists(
    st.builds(
        EvaluationSample,
        sample_id=st.sampled_from("abcd"),
        query=st.sampled_from(["x", "y"]),
        reference_answer=st.none() | st.builds(Response, st.sampled_from(["x", "y"])),
        labels=st.dictionaries(st.sampled_from("kl"), _values, max_size=2),
    ),
    unique_by=lambda sample: sample.sample_id,
    max_size=4,
)


@given(_samples, _samples)
def test_every_sample_is_counted_once_and_both_ways_agree(
    old: list[EvaluationSample], new: list[EvaluationSample]
) -> None:
    there = dataset_difference(a_dataset(*old), a_dataset(*new)).samples
    back = dataset_difference(a_dataset(*new), a_dataset(*old)).samples
    assert (there.added, there.removed) == (back.removed, back.added)
    assert {c.id for c in there.changed} == {c.id for c in back.changed}
    assert len(there.added) + len(there.changed) + there.unchanged == len(new)
    assert len(there.removed) + len(there.changed) + there.unchanged == len(old)
    assert dataset_difference(a_dataset(*old), a_dataset(*copy.deepcopy(old))).same
