"""One set of gold spans from those of several people."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.errors import DataError
from auepora_eval.io.schema import DataFormatValidator
from auepora_eval.people.agreement import annotator_agreement
from auepora_eval.people.annotators import gold_dataset, settled_spans
from tests.builders import a_sample
from tests.people.annotations import judged, marked, people


def settled(*annotations: dict[str, Any]) -> dict[str, Any]:
    """The settled annotation of the first query; a second one makes sure that there are two people."""
    both = [marked("one", "more", (0, 1)), marked("another", "more", (0, 1))]
    result = settled_spans(people(*annotations, *both))
    assert DataFormatValidator().validate_ground_truth(result) == []
    query_id = annotations[0]["query_id"]
    return next(annotation for annotation in result if annotation["query_id"] == query_id)


@pytest.mark.parametrize(
    ("marks", "spans", "needs_decision"),
    [
        pytest.param([[(0, 10)]], [(0, 10)], False, id="one alone"),
        pytest.param([[(0, 10)], [(0, 10)]], [(0, 10)], False, id="two agree"),
        pytest.param([[(0, 4), (4, 9)], [(0, 9)]], [(0, 4), (4, 9)], False, id="in pieces"),
        pytest.param([[(0, 10)], [(5, 15)]], [(0, 15)], True, id="two differ"),
        pytest.param([[(0, 10)], []], [(0, 10)], True, id="one sees nothing"),
        pytest.param([[(0, 10)], [(5, 15)], [(5, 9)]], [(5, 10)], False, id="three"),
        pytest.param([[(0, 9)], [(0, 9)], []], [(0, 9)], False, id="two of three"),
        pytest.param([[(0, 9)], [], []], [], True, id="one of three: somebody should look"),
        pytest.param([[(0, 9)], [(0, 9)], [], []], [], True, id="half is no majority"),
        pytest.param([[], []], [], False, id="two see nothing"),
    ],
)
def test_spans(marks: list[Any], spans: list[Any], needs_decision: bool) -> None:
    result = settled(*(marked(f"p{n}", "q", *each) for n, each in enumerate(marks)))
    assert [(each["start_char"], each["end_char"]) for each in result["citations"]] == spans
    assert result["metadata"]["needs_decision"] is needs_decision
    assert len(result["metadata"]["annotators"]) == len(marks)


def test_a_settled_span_has_its_text_where_somebody_wrote_it_down() -> None:
    ada, ben = marked("ada", "q", (0, 9), text="012345678"), marked("ben", "q", (4, 9), text="shortened...")
    cleo = marked("cleo", "q", (4, 12))
    assert settled(ada, ben, cleo)["citations"] == [
        {"file_name": "f", "start_char": 4, "end_char": 9, "text": "45678"}
    ]


MARKED = st.lists(
    st.tuples(st.sampled_from("fg"), st.integers(0, 30), st.integers(1, 9)).map(
        lambda s: (s[0], s[1], s[1] + s[2])
    ),
    max_size=3,
)


@given(data=st.data(), count=st.integers(2, 5))
@settings(max_examples=100, deadline=None)
def test_any_spans_are_settled_into_a_valid_file(data: Any, count: int) -> None:
    everyone = people(*(marked(f"p{n}", "q", *data.draw(MARKED)) for n in range(count)))
    result = settled_spans(everyone)
    assert DataFormatValidator().validate_ground_truth({"annotations": result}) == []
    differ = bool(annotator_agreement(everyone).disagreements)
    if count == 2 or not differ:
        assert result[0]["metadata"]["needs_decision"] is differ


def test_settled_spans_are_the_gold_of_a_dataset() -> None:
    own = a_sample("q2")
    own.metadata["citations"] = ["a gold of its own"]
    dataset = InMemoryDataset("d", [a_sample("q1"), own], info={"version": "1"})
    spans = (marked("ada", "q1", (0, 9)), marked("ben", "q1", (5, 12)), judged("ada", "q1", {"x": 1.0}))
    first, second = gold_dataset(dataset, people(*spans))
    assert [(each["start_char"], each["end_char"]) for each in first.metadata["citations"]] == [(0, 12)]
    assert second.metadata["citations"] == ["a gold of its own"]
    with pytest.raises(DataError, match="annotated queries are not in it"):
        gold_dataset(InMemoryDataset("d", [a_sample("q9")]), people(*spans))
