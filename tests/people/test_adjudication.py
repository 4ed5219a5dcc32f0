"""Adjudication: one annotation from several, and the dataset with all annotations."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.errors import DataError
from auepora_eval.io.schema import DataFormatValidator
from auepora_eval.people.agreement import annotator_agreement
from auepora_eval.people.annotators import adjudicated, merge_annotations
from tests.builders import a_sample, annotations_of
from tests.people.annotations import judged, marked, people


def settled(*annotations: dict[str, Any]) -> dict[str, Any]:
    """The settled annotation of the first query; a second one makes sure that there are two people."""
    both = [marked("one", "more", (0, 1)), marked("another", "more", (0, 1))]
    result = adjudicated(people(*annotations, *both))
    assert DataFormatValidator().validate_ground_truth(result) == []
    query_id = annotations[0]["query_id"]
    return next(annotation for annotation in result if annotation["query_id"] == query_id)


def spans_of(annotation: dict[str, Any]) -> list[tuple[int, int]]:
    return [(each["start_char"], each["end_char"]) for each in annotation["citations"]]


@pytest.mark.parametrize(
    ("marks", "spans", "settled_by", "open_question"),
    [
        pytest.param([[(0, 10)]], [(0, 10)], "single annotator", False, id="one alone"),
        pytest.param([[(0, 10)], [(0, 10)]], [(0, 10)], "agreement", False, id="two agree"),
        pytest.param([[(0, 4), (4, 9)], [(0, 9)]], [(0, 4), (4, 9)], "agreement", False, id="in pieces"),
        pytest.param([[(0, 10)], [(5, 15)]], [(0, 15)], "union", True, id="two differ"),
        pytest.param([[(0, 10)], []], [(0, 10)], "union", True, id="one sees nothing"),
        pytest.param([[(0, 10)], [(5, 15)], [(5, 9)]], [(5, 10)], "majority", False, id="three"),
        pytest.param([[(0, 9)], [(0, 9)], []], [(0, 9)], "majority", False, id="two of three"),
        pytest.param([[(0, 9)], [], []], [], "majority", True, id="one of three: somebody should look"),
        pytest.param([[(0, 9)], [(0, 9)], [], []], [], "majority", True, id="half is no majority"),
        pytest.param([[], []], [], "agreement", False, id="two see nothing"),
    ],
)
def test_spans(marks: list[Any], spans: list[Any], settled_by: str, open_question: bool) -> None:
    result = settled(*(marked(f"p{n}", "q", *each) for n, each in enumerate(marks)))
    assert spans_of(result) == spans
    assert result["metadata"]["settled_by"] == settled_by
    assert result["metadata"]["needs_adjudication"] is open_question
    assert result["metadata"].get("open", []) == (["citations"] if open_question else [])
    assert len(result["metadata"]["annotators"]) == len(marks)


def test_scores_and_ratings_of_two() -> None:
    result = settled(
        judged(
            "ada", "q", {"x": 0.2, "y": 1.0}, overall_score=0.6, aspect_ratings={"tone": "warm", "s": "ok"}
        ),
        judged(
            "ben", "q", {"x": 0.4, "y": 1.0}, overall_score=0.7, aspect_ratings={"tone": "cold", "s": "ok"}
        ),
    )
    assert result["quality_scores"] == {"x": 0.3, "y": 1.0}
    assert result["overall_score"] == 0.65  # the mean of these
    assert result["aspect_ratings"] == {"s": "ok"}
    assert result["answer_text"] == "a"
    assert result["metadata"] == {
        "needs_adjudication": True,
        "settled_by": "mean",
        "annotators": ["ada", "ben"],
        "distance": 0.5,
        "open": ["quality_scores.x", "aspect_ratings.tone"],
    }


def test_scores_and_ratings_of_three() -> None:
    feedback = {"strengths": ["short"], "weaknesses": ["dry"]}
    more = {"strengths": ["clear", "short"]}
    result = settled(
        judged("ada", "q", {"x": 0.2}, aspect_ratings={"tone": "warm"}, feedback=feedback),
        judged("ben", "q", {"x": 0.3}, aspect_ratings={"tone": "cold"}, feedback=more),
        judged("cleo", "q", {"x": 1.0}, aspect_ratings={"tone": "warm"}),
    )
    assert result["quality_scores"] == {"x": 0.3}  # one outlier does not move the median
    assert result["aspect_ratings"] == {"tone": "warm"}
    assert result["feedback"] == {"strengths": ["short", "clear"], "weaknesses": ["dry"]}
    assert result["metadata"]["settled_by"] == "majority"
    assert result["metadata"]["needs_adjudication"] is False
    assert "overall_score" not in result


SCORES = st.dictionaries(st.sampled_from("xyz"), st.floats(0, 1), max_size=3)
RATINGS = st.dictionaries(st.sampled_from("st"), st.sampled_from(["good", "poor", "blue"]), max_size=2)
MARKED = st.lists(
    st.tuples(st.sampled_from("fg"), st.integers(0, 30), st.integers(1, 9)).map(
        lambda s: (s[0], s[1], s[1] + s[2])
    ),
    max_size=3,
)


@given(data=st.data(), count=st.integers(2, 5))
@settings(max_examples=100, deadline=None)
def test_any_annotations_are_adjudicated_into_a_valid_file(data: Any, count: int) -> None:
    annotations = []
    for n in range(count):
        fields = {"overall_score": data.draw(st.floats(0, 1))} if data.draw(st.booleans()) else {}
        annotations += [
            marked(f"p{n}", "q", *data.draw(MARKED)),
            judged(f"p{n}", "q", data.draw(SCORES), aspect_ratings=data.draw(RATINGS), **fields),
        ]
    everyone = people(*annotations)
    result = adjudicated(everyone)
    assert DataFormatValidator().validate_ground_truth({"annotations": result}) == []
    spans, judgement = result
    if "quality_scores" in judgement and "overall_score" in judgement:
        mean = fmean(judgement["quality_scores"].values())
        assert judgement["overall_score"] == pytest.approx(mean, abs=1e-5)
    differ = {each.about.split(".")[0].split(" ")[0] for each in annotator_agreement(everyone).disagreements}
    if count == 2:
        assert spans["metadata"]["needs_adjudication"] is ("spans" in differ)
        assert judgement["metadata"]["needs_adjudication"] or not differ & {
            "quality_scores",
            "aspect_ratings",
        }
    if not differ:
        assert not any(each["metadata"]["needs_adjudication"] for each in result)


def test_both_kinds_merge_into_one_dataset() -> None:
    kept = a_sample("q2")
    kept.metadata["citations"] = ["a gold of its own"]
    dataset = InMemoryDataset("d", [a_sample("q1"), kept, a_sample("q3")], info={"version": "1"})
    everyone = people(
        marked("ada", "q1", (0, 9)),
        marked("ben", "q1", (5, 12)),
        marked("ada", "q2", (0, 9)),
        judged("ada", "q1", {"x": 1.0}),
        judged("ben", "q1", {"x": 0.5}),
    )
    merged = merge_annotations(dataset, everyone)
    assert len(annotations_of(merged)) == 5
    first, second, third = merged
    assert [(each["start_char"], each["end_char"]) for each in first.metadata["citations"]] == [(0, 12)]
    assert second.metadata["citations"] == ["a gold of its own"]
    assert "citations" not in third.metadata
    assert (merged.info, merged.name) == ({"version": "1"}, "d")
    assert annotations_of(dataset) == []
    with pytest.raises(DataError, match="annotated queries are not in it"):
        merge_annotations(InMemoryDataset("d", [a_sample("q9")]), everyone)
