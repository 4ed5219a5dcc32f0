"""The citation metrics of a run: tables by hand, sums over answers, and ALCE by its definition."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auepora_eval as ae
from auepora_eval.core.types import (
    Document,
    EvaluationSample,
    Response,
    RetrievedDocument,
    SystemOutputs,
)
from auepora_eval.metrics.citations.evaluator import CitationEvaluator
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_failure, a_sample, an_output

ANNET = "The Annet carries 22 cars. It moors at the north pier."
LAMP = "Ansel Brae keeps the lamp of Saint Agnes since 1911."


def cite(start: int, end: int, name: str = "annet") -> dict[str, Any]:
    return {"file_name": name, "start_char": start, "end_char": end}


def answered(
    text: str, citations: list[Any] | None = None, texts: tuple[str, ...] = (ANNET, LAMP)
) -> SystemOutputs:
    documents = [Document(name, body) for name, body in zip(("annet", "lamp", "third"), texts, strict=False)]
    hits = [RetrievedDocument(doc, 1 / rank, rank) for rank, doc in enumerate(documents, 1)]
    return SystemOutputs(hits, Response(text, metadata={} if citations is None else {"citations": citations}))


def with_gold(*gold: dict[str, Any]) -> EvaluationSample:
    sample = a_sample(relevant=["annet"])
    sample.metadata["citations"] = list(gold)
    return sample


GOLD = (cite(0, 26), cite(27, 54))


@pytest.mark.parametrize(
    ("name", "citations", "expected"),
    [
        ("citation_span_accuracy", [cite(0, 26), cite(30, 54)], 1.0),
        ("citation_span_accuracy@0", [cite(0, 26), cite(30, 54)], (1 + 24 / 27) / 2),
        ("citation_span_exact", [cite(0, 26), cite(30, 54)], (1 + 24 / 27) / 2),
        ("citation_span_perfect", [cite(0, 26), cite(30, 54)], 0.5),
        ("citation_span_good", [cite(0, 26), cite(30, 54)], 1.0),
        ("citation_span_accuracy", [cite(0, 26)], 0.5),
        ("citation_span_accuracy", [cite(0, 26, "lamp")], 0.0),
        ("citation_span_accuracy", [], 0.0),
        ("citation_precision", [cite(0, 26), cite(0, 9, "lamp")], 0.5),
        ("citation_recall", [cite(0, 26), cite(0, 9, "lamp")], 0.5),
        ("citation_f1", [cite(0, 26), cite(0, 9, "lamp")], 0.5),
        ("citation_precision", [cite(0, 26), cite(0, 26)], 1.0),
        # All of the 54 characters are cited: 26 of them are the first gold span, 27 the second.
        ("citation_recall", ["annet"], 0.5),
        ("citation_recall@0.4", ["annet"], 1.0),
        ("citation_span_exact", ["annet"], 27 / 54 / 2),
        ("citation_span_exact", [{"file_name": "annet", "page_number": 1}], 27 / 54 / 2),
        ("citation_recall@1.0", [cite(0, 15)], 0.0),
        ("citation_relevance", [cite(0, 26), cite(0, 9, "lamp"), "nobody"], 1 / 3),
        ("citation_fabricated_rate", [cite(0, 26), "nobody"], 0.5),
        ("citation_out_of_range_rate", [cite(0, 26), cite(50, 60)], 0.5),
    ],
)
def test_places(name: str, citations: list[Any], expected: float) -> None:
    result = parse_metric(name).compute([with_gold(*GOLD)], [answered("x", citations)])
    assert result.value == pytest.approx(expected)


TWO = "The Annet carries 22 cars [1]. Ansel Brae keeps the lamp"


@pytest.mark.parametrize(
    ("name", "answer", "expected"),
    [
        ("citation_completeness", f"{TWO} [2].", 1.0),
        ("citation_completeness", f"{TWO}.", 0.5),
        ("citation_completeness", f"{TWO} [9].", 0.5),
        ("citation_correctness", f"{TWO} [1].", 0.5),
        ("citation_correctness", f"{TWO} [2][9].", 2 / 3),
        ("citation_correctness@0.5", "Ansel Brae keeps gulls and terns [2].", 1.0),
        ("citation_correctness", "Ansel Brae keeps gulls and terns [2].", 0.0),
        ("citation_density", "The Annet carries 22 cars [1]. Gulls weigh a lot.", 26 / (26 + 18)),
        ("citation_factual_consistency", f"{TWO} [1].", 0.5),
        ("citation_factual_consistency", f"{TWO}.", 1.0),
        ("citation_hallucination_rate", f"{TWO} [1]. Gulls weigh two pounds.", 1 / 3),
        ("citation_fabricated_rate", f"{TWO} [lamp:0-9][gulls:1-5].", 1 / 3),
        ("citation_out_of_range_rate", f"{TWO} [3].", 0.5),
        ("alce_citation_recall", f"{TWO} [2].", 1.0),
        ("alce_citation_recall", f"{TWO}.", 0.5),
        ("alce_citation_recall", f"{TWO} [2][9].", 0.5),
        ("alce_citation_precision", f"{TWO} [1][2].", 2 / 3),
        ("alce_citation_precision", f"{TWO} [1].", 0.5),
        ("alce_citation_precision", "The Annet carries 22 cars.", 0.0),
        ("alce_citation_precision", "Ansel Brae, the lamp, the Annet, the pier [1][2].", 1.0),
        ("trec_support_precision", f"{TWO} [2].", 1.0),
        ("trec_support_precision", f"{TWO} [1][2].", 2 / 3),
        ("trec_support_precision", "Ansel Brae keeps gulls and terns [2].", 0.5),
        ("trec_support_recall", f"{TWO}.", 0.5),
        ("trec_support_recall[partial=0.7]", "Ansel Brae keeps gulls and terns [2].", 0.0),
    ],
)
def test_claims(name: str, answer: str, expected: float) -> None:
    result = parse_metric(name).compute([a_sample(relevant=["annet"])], [answered(answer)])
    assert result.scores[0].reason == ""
    # The relevant documents of the builder have texts of their own, which support nothing here.
    assert result.value == pytest.approx(expected, abs=1e-9)


def test_mean_consistency_is_of_citations_and_the_scores_are_of_answers() -> None:
    """As the evaluator of single answers has them: the support of each citation, whatever the threshold."""
    outputs = [
        answered(f"{TWO} [2]."),  # 1 and 1
        answered("Ansel Brae keeps gulls and terns [2]."),  # 0.6 of its words
        answered("The Annet carries 22 cars."),  # cites nothing: 0
    ]
    result = parse_metric("citation_factual_consistency").compute(
        [a_sample(str(n), relevant=["annet"]) for n in range(3)], outputs
    )
    assert result.details["consistency_scores"] == pytest.approx([1.0, 0.6, 0.0])
    assert result.details["mean_consistency"] == pytest.approx((1 + 1 + 0.6 + 0) / 4)
    assert result.value == pytest.approx(3 / 4)


@pytest.mark.parametrize(
    ("name", "output", "reason"),
    [
        ("citation_correctness", answered("The Annet."), "the answer cites nothing"),
        ("citation_correctness", answered("The Annet [1].", texts=("",)), "the cited documents have no text"),
        ("citation_relevance", answered("The Annet."), "the answer cites nothing"),
        ("citation_completeness", answered("It is."), "the answer makes no claims"),
        ("citation_hallucination_rate", answered("The Annet.", texts=("",)), "the documents have no text"),
        ("trec_support_precision", answered("The Annet."), "the answer cites nothing"),
        (
            "alce_citation_recall",
            answered("The Annet. The lamp.", ["annet"]),
            "the citations are a list: it is not known which sentence makes which",
        ),
    ],
)
def test_what_cannot_be_measured_is_skipped_with_the_reason(
    name: str, output: SystemOutputs, reason: str
) -> None:
    sample = with_gold(*GOLD)
    sample.relevant_docs = [Document("annet", "")]
    (score,) = parse_metric(name).compute([sample], [output]).scores
    assert (score.value, score.reason, score.failed) == (None, reason, False)


def test_malformed_citations_fail_the_sample_alone() -> None:
    samples = [with_gold(*GOLD), with_gold({"file_name": 0.5}), with_gold(*GOLD)]
    outputs = [answered("x", [cite(0, 26)]), answered("x", []), answered("x", [{"start_char": 1}])]
    result = parse_metric("citation_span_accuracy").compute(samples, outputs)
    assert [score.value for score in result.scores] == [0.5, None, None]
    assert [score.failed for score in result.scores] == [False, True, True]
    low, high = result.details["bounds_if_failed"]
    assert (low, high) == (
        pytest.approx(1 / 4),
        pytest.approx(3 / 4),
    )  # two gold spans more, all wrong or right


def test_a_ratio_is_of_sums_not_a_mean_of_ratios() -> None:
    answers = ["The Annet carries 22 cars [1].", "Gulls weigh. Terns weigh. Boats weigh [1]."]
    result = parse_metric("citation_completeness").compute(
        [a_sample(), a_sample()], [answered(a) for a in answers]
    )
    assert result.value == pytest.approx(2 / 4)
    assert [score.parts for score in result.scores] == [(1.0, 1.0), (1.0, 3.0)]
    assert (result.details["cited_claims"], result.details["total_claims"]) == (2, 4)


def test_a_list_belongs_to_the_claims_that_it_bears_out() -> None:
    answer = "The Annet carries 22 cars. It moors at the pier. Ansel Brae keeps the lamp."
    output = answered(answer, [cite(0, 54), cite(0, 9, "lamp")])
    for name, expected in {"citation_completeness": 2 / 3, "citation_correctness": 1 / 2}.items():
        assert parse_metric(name).compute([a_sample()], [output]).value == pytest.approx(expected)


def test_marks_on_a_line_of_their_own_belong_to_what_they_follow() -> None:
    output = answered("The Annet carries 22 cars.\n\n[1]")
    assert parse_metric("citation_completeness").compute([a_sample()], [output]).value == 1.0


def test_a_title_is_part_of_the_passage() -> None:
    output = answered("Ferry carries 22 cars [1].")
    assert parse_metric("alce_citation_recall@0.9").compute([a_sample()], [output]).value == 0.0
    output.retrieved[0].doc.metadata["title"] = "Ferry"
    assert parse_metric("alce_citation_recall@0.9").compute([a_sample()], [output]).value == 1.0


@pytest.mark.parametrize("texts", [(ANNET, LAMP), ("", "")], ids=["with texts", "without texts"])
@pytest.mark.parametrize("gold", [GOLD, GOLD[:1]], ids=["two", "one"])
def test_a_vague_citation_is_not_worth_more_than_a_span_that_is_too_long(texts: Any, gold: Any) -> None:
    sample = with_gold(*gold)
    sample.relevant_docs = [Document("annet", "")]
    metrics = ["span_accuracy", "span_exact", "span_good", "span_perfect", "precision", "recall", "f1"]
    for name in (*metrics, "accuracy"):
        long, vague = (
            parse_metric(f"citation_{name}").compute(
                [sample], [answered("The Annet carries 22 cars.", [cited], texts)]
            )
            for cited in (cite(0, len(ANNET)), "annet")
        )
        assert vague.coverage.scored == long.coverage.scored == 1, name
        assert vague.value <= long.value, name


def test_gold_without_a_span_is_the_whole_document() -> None:
    sample = with_gold({"file_name": "annet"})
    for cited in (cite(0, 26), "annet"):
        output = answered("x", [cited])
        assert parse_metric("citation_f1").compute([sample], [output]).value == 1.0


def test_overall_and_its_weights() -> None:
    sample, output = with_gold(*GOLD), answered("The Annet carries 22 cars.", [cite(0, 26)])
    measured = {"span": 0.5, "quality": 1.0, "consistency": 1.0, "hallucination": 1.0}
    expected = 0.30 * 0.5 + 0.30 + 0.25 + 0.15
    assert parse_metric("citation_accuracy").compute([sample], [output]).value == pytest.approx(expected)
    for name, score in measured.items():
        others = ",".join(f"{other}=0" for other in measured if other != name)
        value = parse_metric(f"citation_accuracy[{others}]").compute([sample], [output]).value
        assert value == pytest.approx(score), name


@pytest.mark.parametrize(
    ("answer", "citations", "expected"),
    [
        pytest.param("Ansel Brae keeps the lamp [1].", ["lamp", "annet"], 0.5, id="of the list"),
        pytest.param("Ansel Brae keeps the lamp [2].", ["annet", "lamp"], 0.5, id="the second of it"),
        pytest.param("Ansel Brae keeps the lamp [2].", ["lamp"], 0.5, id="beyond the list, not the ranking"),
        pytest.param("Ansel Brae keeps the lamp [2].", None, 1.0, id="of the ranking without a list"),
        pytest.param("Ansel Brae keeps the lamp [2].", [], 1.0, id="of the ranking with an empty one"),
        pytest.param("Ansel Brae keeps the lamp [1].", None, 0.0, id="another of the ranking"),
    ],
)
def test_what_a_number_counts_is_the_same_everywhere(answer: str, citations: Any, expected: float) -> None:
    # A listed citation without a mark may support any claim: lamp does, annet does not.
    result = parse_metric("citation_correctness").compute([a_sample()], [answered(answer, citations)])
    assert result.value == expected
    found = CitationEvaluator({}).evaluate_answer_citations(answer, citations, {"annet": ANNET, "lamp": LAMP})
    assert found["citation_quality"]["citation_validity_rate"] == expected


def by_definition(
    answer: list[tuple[str, list[int]]], documents: list[str], entails: Any
) -> tuple[float, float]:
    """ALCE's recall and precision of sentences with the numbers that they cite, from 0."""
    borne_out = needed = made = 0
    for sentence, cited in answer:
        if max(cited, default=0) >= len(documents):
            continue
        texts = [documents[number] for number in cited]
        made += len(texts)
        if not texts or not entails(texts, sentence):
            continue
        borne_out += 1
        for place, text in enumerate(texts):
            others = texts[:place] + texts[place + 1 :]
            superfluous = others and not entails([text], sentence) and entails(others, sentence)
            needed += not superfluous
    return borne_out / len(answer), needed / made if made else 0.0


LETTERS = st.text(alphabet="ABCD", min_size=1, max_size=3)
SENTENCES = st.lists(
    st.tuples(LETTERS, st.lists(st.integers(0, 3), max_size=3, unique=True)), min_size=1, max_size=4
)


@given(SENTENCES, st.lists(LETTERS, min_size=3, max_size=3, unique=True))
@settings(deadline=None, max_examples=60)
def test_alce_is_what_its_paper_defines(answer: list[tuple[str, list[int]]], documents: list[str]) -> None:
    def spelled(letters: str) -> str:
        return " ".join(f"word{letter.lower()}" for letter in letters)

    def entails(premises: list[str], sentence: str) -> bool:
        known = set(" ".join(premises).split())
        words = sentence.split()
        return sum(word in known for word in words) / len(words) >= 0.7

    texts = [spelled(letters) for letters in documents]
    sentences = [(spelled(letters), refs) for letters, refs in answer]
    text = " ".join(
        f"Zeta {sentence}{''.join(f'[{ref + 1}]' for ref in refs)}." for sentence, refs in sentences
    )
    expected = by_definition([(f"zeta {sentence}", refs) for sentence, refs in sentences], texts, entails)
    output = answered(text, texts=tuple(texts))
    for name, value in zip(("alce_citation_recall", "alce_citation_precision"), expected, strict=True):
        assert parse_metric(name).compute([a_sample()], [output]).value == pytest.approx(value), name


@pytest.mark.parametrize("name", ["exact", "accuracy", "good", "perfect"])
def test_failures_in_batches_with_and_without_gold_spans(name: str) -> None:
    """Scores are made in batches of 500: a batch may have failures of which none could be scored."""
    span = {"file_name": "a.txt", "start_char": 0, "end_char": 3}
    gold = [span if n < 500 else {"file_name": "a.txt"} for n in range(510)]
    samples = [
        ae.EvaluationSample(n, "q", metadata={"citations": [citation]}) for n, citation in enumerate(gold)
    ]
    outputs = {str(n): a_failure() if n in (3, 505) else an_output(answer="abc") for n in range(len(samples))}
    for output in outputs.values():
        output.response.metadata["citations"] = [span]
    (result,) = ae.score(samples, outputs, metrics=f"citation_span_{name}").results
    assert result.value == 1.0
    assert result.coverage.scored == 499
    assert result.if_failed == (499 / 500, 1.0)


def test_numbers_of_documents_that_no_output_names_are_not_measured() -> None:
    unknown = SystemOutputs([], Response("It carries 22 cars [1]."), extra={"documents_missing": True})
    for name in ("citation_recall", "citation_span_exact", "citation_correctness"):
        [score] = parse_metric(name).compute([with_gold(*GOLD)], [unknown]).scores
        assert (score.value, score.reason) == (
            None,
            "the answer cites by number, and the output names no documents",
        )


def test_a_gold_file_is_found_among_chunks_by_their_whole_paths() -> None:
    place = {"document": "b.md", "start": 40, "end": 60}
    gold = Document(
        "b.md#1", "It carries 22 cars. ", {**place, "spans": [{"source": "b.md", "start": 40, "end": 60}]}
    )
    sample = EvaluationSample(
        "1", "q", relevant_docs=[gold], metadata={"citations": [{"file_name": "b.md#1"}]}
    )
    chunks = [
        Document("db-0", gold.text, {"source_path": "/srv/b.md", "start": 40, "end": 60}),
        Document("db-1", "Another part.", {"source_path": "/srv/b.md", "start": 0, "end": 13}),
    ]
    output = SystemOutputs(
        [RetrievedDocument(doc, 1.0, n) for n, doc in enumerate(chunks, 1)], Response("x [1]")
    )
    assert parse_metric("citation_span_exact").compute([sample], [output]).value == 1.0
