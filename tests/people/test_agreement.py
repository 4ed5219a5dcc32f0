"""Agreement of annotators: which files can be compared, the statistics, the order of disagreements."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.errors import DataError
from auepora_eval.people.agreement import annotator_agreement
from auepora_eval.people.annotators import (
    MarkedPlace,
    annotators_of,
    marked_by,
    marks_of,
    span_agreement,
)
from tests.people.annotations import Span, judged, marked, people

F = MarkedPlace("f")


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        pytest.param([[marked("ada", "q", (0, 9))]], "all annotations are by 'ada'", id="one person"),
        pytest.param(
            [[marked("ada", "q", (0, 9))], [marked("ada", "q", (0, 5)), marked("ben", "q", (0, 5))]],
            r"1.gt.json: annotation 'ada-q': 'ada' annotated it already",
            id="the same person twice",
        ),
        pytest.param(
            [{"dataset_id": "d", "annotations": []}, {"dataset_id": "e", "annotations": []}],
            "1.gt.json: its dataset_id is 'e', that of the files before is 'd'",
            id="other datasets",
        ),
    ],
)
def test_files_that_cannot_be_compared(documents: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        annotators_of([(f"{n}.gt.json", document) for n, document in enumerate(documents)])


@pytest.mark.parametrize(
    ("ada", "ben", "expected"),
    [
        pytest.param([(0, 10)], [(0, 10)], {F: 1.0}, id="the same"),
        pytest.param([(0, 10)], [(5, 15)], {F: 5 / 15}, id="a third"),
        pytest.param([(0, 10)], [(0, 4), (4, 10)], {F: 1.0}, id="in two pieces"),
        pytest.param([(0, 8), (2, 10)], [(0, 10)], {F: 1.0}, id="own overlaps count once"),
        pytest.param([(0, 10)], [], {F: 0.0}, id="nothing marked by one"),
        pytest.param([], [], {None: 1.0}, id="both say that there is nothing"),
        pytest.param(
            [(0, 10), ("g", 0, 10)], [(0, 10)], {F: 1.0, MarkedPlace("g"): 0.0}, id="a file that one missed"
        ),
    ],
)
def test_span_agreement(ada: list[Span], ben: list[Span], expected: dict[Any, float]) -> None:
    said = {"ada": marked("ada", "q", *ada), "ben": marked("ben", "q", *ben)}
    assert span_agreement(marks_of(said)) == pytest.approx(expected)


Chars = tuple[int, int]
SPANS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 9)).map(lambda s: (s[0], s[0] + s[1])), max_size=4
)


@given(ada=SPANS, ben=SPANS, cleo=SPANS)
@settings(max_examples=150, deadline=None)
def test_spans_are_sets_of_characters(ada: list[Chars], ben: list[Chars], cleo: list[Chars]) -> None:
    said = {n: marked(n, "q", *spans) for n, spans in zip("abc", (ada, ben, cleo), strict=True)}
    marks = marks_of(said)
    sets = [{c for start, end in spans for c in range(start, end)} for spans in (ada, ben, cleo)]
    for least in (1, 2, 3):
        expected = {c for c in range(40) if sum(c in one for one in sets) >= least}
        found = [c for _, (start, end) in marked_by(marks, least) for c in range(start, end)]
        assert len(found) == len(set(found))
        assert set(found) == expected
    pairs = [(a, b) for n, a in enumerate(sets) for b in sets[n + 1 :] if a | b]
    if pairs:
        mean = sum(len(a & b) / len(a | b) for a, b in pairs) / len(pairs)
        assert span_agreement(marks)[F] == pytest.approx(mean)


def test_the_worst_disagreement_comes_first() -> None:
    rated = [{"tone": "warm"}, {"tone": "cold"}, {"tone": "warm"}]
    found = annotator_agreement(
        people(
            *(judged(n, "q1", {"clarity": s}) for n, s in zip("abc", (0.5, 0.7, 0.6), strict=True)),
            *(judged(n, "q2", aspect_ratings=r) for n, r in zip("abc", rated, strict=True)),
            marked("a", "q3", (0, 10)),
            marked("b", "q3", (0, 1)),
            marked("a", "q4", (0, 10)),
            marked("b", "q4", (0, 10)),
            judged("a", "q5", {"clarity": 0.0}),
        )
    ).disagreements
    assert [(each.query_id, each.about, round(each.distance, 3)) for each in found] == [
        ("q3", "spans in f", 0.9),
        ("q2", "aspect_ratings.tone", 0.667),  # two of three pairs
        ("q1", "quality_scores.clarity", 0.2),
    ]
    assert found[0].said == {"a": [[0, 10]], "b": [[0, 1]]}
    assert found[2].said == {"a": 0.5, "b": 0.7, "c": 0.6}
    assert found[2].answer == "a"


def test_order_of_ratings_is_known_or_passed() -> None:
    rated = [("plain", "warm"), ("cold", "warm"), ("cold", "plain"), ("warm", "warm")]
    both = people(
        *(
            judged(n, f"q{q}", aspect_ratings={"tone": r})
            for q, r2 in enumerate(rated)
            for n, r in zip("ab", r2, strict=True)
        )
    )
    ordinal = ("aspect_ratings.tone", "krippendorff_alpha_ordinal")
    with pytest.raises(KeyError):
        annotator_agreement(both).figure(*ordinal)
    told = annotator_agreement(both, ["cold", "plain", "warm"])
    assert told.figure(*ordinal).items == 4
    assert told.disagreements[0].distance == 1.0  # cold and warm
    assert [each.distance for each in told.disagreements[1:]] == [0.5, 0.5]
    with pytest.raises(KeyError):
        annotator_agreement(both, ["cold", "plain"]).figure(*ordinal)


def test_intervals_are_of_queries() -> None:
    spans = [marked(n, f"q{q}", (0, 10 - q * (n == "b"))) for q in range(9) for n in "ab"]
    figure = annotator_agreement(people(*spans)).figure("spans", "character_jaccard")
    assert figure.value == pytest.approx(0.6)
    assert figure.interval is not None
    assert figure.interval.low < 0.6 < figure.interval.high
    assert figure.interval.method == "Student's t, plus two"
    assert figure.in_words() == "below 0.80: discuss the disagreements and recalibrate"
