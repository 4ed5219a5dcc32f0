"""The evaluator: the figures of one answer, what is not measured, and the numbers of old."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.core.types import Document
from auepora_eval.errors import ScoringError
from auepora_eval.metrics.citations.evaluator import CitationEvaluator

FERRIES = "The Annet carries 22 cars. It moors at the north pier."
DOCUMENT = {"document_id": "d1", "title": "All Ferries", "content": FERRIES, "file_path": "docs/ferries.pdf"}


def cite(start: int, end: int, name: str = "ferries.pdf", page: int | None = 1) -> dict[str, Any]:
    return {"file_name": name, "page_number": page, "start_char": start, "end_char": end}


def judged(
    answer: str, citations: Any, gold: Any = None, documents: Any = None, **config: Any
) -> dict[str, Any]:
    documents = [DOCUMENT] if documents is None else documents
    return CitationEvaluator(config).evaluate_answer_citations(answer, citations, documents, gold)


def test_all_four_parts_by_hand() -> None:
    answer = "The Annet carries 22 cars. It moors at the south pier."
    found = judged(answer, [cite(0, 26), cite(30, 54)], {"citations": [cite(0, 26), cite(27, 54)]})
    assert found["span_accuracy"] == {
        "mean_exact_jaccard": pytest.approx((1 + 24 / 27) / 2),
        "mean_tolerance_jaccard": 1.0,
        "perfect_matches": 1,
        "good_matches": 2,
        "gold_spans": 2,
        "cited_spans": 2,
    }
    # annet, carries, 22, cars are all cited; of moors, south, pier the second citation has two.
    assert found["citation_quality"]["citation_validity_rate"] == 0.5
    assert found["citation_quality"]["mean_support_score"] == pytest.approx((1 + 2 / 3) / 2)
    assert found["citation_quality"]["invalid_citations"] == 1
    details = found["citation_quality"]["validation_details"]
    assert [detail["start_char"] for detail in details if not detail["valid"]] == [30]
    assert found["answer_consistency"]["mean_consistency"] == pytest.approx(5 / 6)
    assert found["answer_consistency"]["consistency_variance"] == pytest.approx(1 / 36)
    assert found["answer_consistency"]["consistent_citations"] == 1
    assert found["hallucination_detection"] == {
        "hallucination_rate": 0.5,
        "unsupported_claims": 1,
        "total_claims": 2,
        "unsupported_claim_texts": ["It moors at the south pier."],
    }
    overall = 0.30 * 1 + 0.30 * 0.5 + 0.25 * 5 / 6 + 0.15 * 0.5
    assert found["overall_scores"] == {
        "span_accuracy_score": 1.0,
        "citation_quality_score": 0.5,
        "answer_consistency_score": pytest.approx(5 / 6),
        "hallucination_score": 0.5,
        "overall_citation_accuracy": pytest.approx(overall),
    }


def test_without_gold_the_other_weights_make_up_for_it() -> None:
    found = judged("The Annet carries 22 cars.", [cite(0, 26)])
    assert found["overall_scores"]["span_accuracy_score"] is None
    assert found["overall_scores"]["overall_citation_accuracy"] == 1.0
    assert found["measured"]["weights"] == pytest.approx(
        {"quality": 0.3 / 0.7, "consistency": 0.25 / 0.7, "hallucination": 0.15 / 0.7}
    )
    assert found["measured"]["not_measured"] == {"span": "no gold citations with spans"}


@pytest.mark.parametrize(
    ("citations", "expected"),
    [
        # By weights of 0.30, 0.25 and 0.15 for valid citations, mean support and claims in a document.
        pytest.param([cite(0, 26)], 1.0, id="the right place"),
        pytest.param([cite(0, 26), cite(27, 54)], (0.15 + 0.125 + 0.15) / 0.70, id="and a wrong one"),
        pytest.param([cite(0, 26), cite(0, 26, "none.pdf")], (0.15 + 0.125 + 0.15) / 0.70, id="or no one"),
        pytest.param([cite(27, 54)], 0.15 / 0.70, id="a wrong place"),
        pytest.param([cite(0, 26, "none.pdf")], 0.15 / 0.70, id="a file that nobody knows"),
        pytest.param([cite(50, 99)], 0.15 / 0.70, id="a place behind the end"),
        pytest.param([], 0.15 / 0.70, id="no place at all"),
        pytest.param(None, 0.15 / 0.70, id="nor a mark"),
    ],
)
def test_neither_inventing_nor_hiding_a_source_pays(citations: Any, expected: float) -> None:
    found = judged("The Annet carries 22 cars.", citations)
    assert found["overall_scores"]["overall_citation_accuracy"] == pytest.approx(expected)
    assert found["measured"]["not_measured"] == {"span": "no gold citations with spans"}


@given(st.lists(st.floats(0.01, 9), min_size=4, max_size=4))
def test_a_perfect_answer_has_a_perfect_figure(weights: list[float]) -> None:
    names = ("span", "quality", "consistency", "hallucination")
    found = judged(FERRIES[:26], [cite(0, 26)], [cite(0, 26)], weights=dict(zip(names, weights, strict=True)))
    assert found["overall_scores"]["overall_citation_accuracy"] == 1.0


def test_a_document_without_its_text_is_nobodys_fault() -> None:
    found = judged("The Annet carries 22 cars.", [cite(0, 26)], documents={"ferries": {"content": ""}})
    reason = "only documents without a text are cited"
    not_measured = found["measured"]["not_measured"]
    assert (not_measured["quality"], not_measured["consistency"]) == (reason, reason)


def test_where_nothing_can_be_measured_the_figure_is_no_number() -> None:
    found = judged("", [], documents={})
    assert math.isnan(found["overall_scores"]["overall_citation_accuracy"])
    assert f"{found['overall_scores']['overall_citation_accuracy']:.3f}" == "nan"
    assert set(found["measured"]["not_measured"]) == {"span", "quality", "consistency", "hallucination"}


def test_a_citation_that_leads_nowhere_is_a_category_of_its_own() -> None:
    found = judged(
        "The Annet carries 22 cars.",
        [cite(0, 26, "gulls.pdf"), cite(0, 999), cite(0, 26)],
        documents={"d1": FERRIES},
    )
    assert found["citation_quality"]["problems"] == {"unresolved": 3}
    found = judged("The Annet carries 22 cars.", [cite(0, 26, "gulls.pdf"), cite(0, 999), cite(0, 26)])
    quality = found["citation_quality"]
    assert quality["problems"] == {"unresolved": 1, "out of range": 1}
    assert quality["citation_validity_rate"] == pytest.approx(1 / 3)
    assert quality["mean_support_score"] == 1.0  # of what leads somewhere
    assert [detail["support_score"] for detail in quality["validation_details"]] == [None, None, 1.0]


def test_a_name_that_two_files_share_is_ambiguous_and_not_made_up() -> None:
    twins = [{**DOCUMENT, "document_id": n, "file_path": f"{n}/ferries.pdf", "title": ""} for n in "ab"]
    found = judged("The Annet carries 22 cars.", [cite(0, 26), cite(0, 26, "a/ferries.pdf")], documents=twins)
    assert found["citation_quality"]["problems"] == {"ambiguous": 1}
    assert found["citation_quality"]["citation_validity_rate"] == 0.5


@pytest.mark.parametrize(
    "documents",
    [
        pytest.param([DOCUMENT], id="records"),
        pytest.param({"d1": DOCUMENT}, id="records by id"),
        pytest.param([Document("d1", FERRIES, {"file_path": "docs/ferries.pdf"})], id="documents"),
        pytest.param({"ferries": FERRIES}, id="texts by id, which is the stem"),
        pytest.param({"docs/ferries.pdf": FERRIES}, id="texts by path"),
    ],
)
def test_documents_come_in_several_forms(documents: Any) -> None:
    found = judged("The Annet carries 22 cars.", [cite(0, 26)], documents=documents)
    assert found["citation_quality"]["citation_validity_rate"] == 1.0


def test_marks_are_read_where_there_is_no_list() -> None:
    found = judged(
        'It carries 22 cars [ferries.pdf:1:0-26 | excerpt: "Annet. Two cars"]. It moors [1] [2].', None
    )
    details = found["citation_quality"]["validation_details"]
    assert [(d["file_name"], d["problem"]) for d in details] == [
        ("ferries.pdf", "fabricated"),
        ("[1]", None),
        ("[2]", "out of range"),
    ]
    assert found["hallucination_detection"]["total_claims"] == 2


def test_support_and_claims_are_parameters() -> None:
    asked: list[tuple[str, str]] = []

    def entails(premise: str, hypothesis: str) -> float:
        asked.append((premise, hypothesis))
        return 1.0

    found = judged("a. b", [cite(0, 5)], support=entails, claims=lambda answer: answer.split(" "))
    assert found["hallucination_detection"]["total_claims"] == 2
    assert ("The A", "b") in asked
    with pytest.raises(ScoringError, match="not a number from 0 to 1"):
        judged("a boat", [cite(0, 5)], support=lambda premise, hypothesis: 7.0)


def test_weights_and_thresholds_are_parameters() -> None:
    answer, citations = "It moors at the south pier.", [cite(27, 54)]
    only = judged(answer, citations, weights={"span": 0, "quality": 0, "consistency": 1, "hallucination": 0})
    assert only["overall_scores"]["overall_citation_accuracy"] == pytest.approx(2 / 3)
    low = judged(answer, citations, support_threshold=0.6)
    assert low["citation_quality"]["citation_validity_rate"] == 1.0
    strict = judged("x", [cite(1, 26)], [cite(0, 26)], span_tolerance=0)
    assert strict["span_accuracy"]["mean_tolerance_jaccard"] == pytest.approx(25 / 26)


@pytest.mark.parametrize(
    "config",
    [
        {"tolerance": 3},
        {"span_tolerance": -1},
        {"support_threshold": 0},
        {"weights": 3},
        {"support": 3},
        {"claims": "sentences"},
        {"weights": {"spam": 1}},
        {"weights": {"span": -1}},
        {"weights": {"span": 0, "quality": 0, "consistency": 0, "hallucination": 0}},
    ],
)
def test_a_config_that_means_nothing_is_refused(config: Any) -> None:
    with pytest.raises(ValueError, match="The citation config is wrong"):
        CitationEvaluator(config)


@given(
    st.text(),
    st.none() | st.lists(st.builds(cite, st.integers(-5, 60), st.integers(-5, 60))),
    st.none() | st.lists(st.builds(cite, st.integers(0, 40), st.integers(41, 60))),
)
@settings(deadline=None)
def test_every_answer_has_figures_that_json_can_hold(answer: str, citations: Any, gold: Any) -> None:
    found = judged(answer, citations, gold)
    overall = found["overall_scores"].pop("overall_citation_accuracy")
    assert math.isnan(overall) or 0 <= overall <= 1
    assert all(score is None or 0 <= score <= 1 for score in found["overall_scores"].values())
    assert found["span_accuracy"]["perfect_matches"] <= found["span_accuracy"]["good_matches"]
    json.dumps(found, allow_nan=False)
