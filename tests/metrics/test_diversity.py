"""Diversity: tables that can be checked by hand; pyndeval and sacrebleu as the judges."""

from __future__ import annotations

import numpy as np
import pyndeval  # type: ignore[import-untyped]
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.core.types import Document, EvaluationSample, SystemOutputs
from auepora_eval.metrics.embeddings import embedder
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_failure, a_sample, an_output, quick_scores

PIER = "the boat is at the north pier"


def found(*texts: str, sources: str = "") -> SystemOutputs:
    output = an_output("abcdefgh"[: len(texts)])
    for n, (hit, text) in enumerate(zip(output.retrieved, texts, strict=True)):
        hit.doc = Document(hit.doc.doc_id, text, {"source": sources[n]} if sources else {})
    return output


def with_subtopics(gold: dict[str, list[str]]) -> EvaluationSample:
    return EvaluationSample(
        "q", "q", relevant_docs=[Document(doc_id, "", {"subtopics": named}) for doc_id, named in gold.items()]
    )


@pytest.mark.parametrize(
    ("name", "output", "expected"),
    [
        pytest.param("lexical_diversity", found("a b", "a b"), 0.0, id="copies"),
        pytest.param("lexical_diversity", found("a b", "c d"), 1.0, id="nothing shared"),
        pytest.param("lexical_diversity", found("a b", "a c"), 2 / 3, id="one word of three"),
        pytest.param("lexical_diversity", found("a", "a", "b"), 2 / 3, id="mean of 0 1 1"),
        pytest.param("lexical_diversity@2", found("a", "a", "b"), 0.0, id="the first two"),
        pytest.param("lexical_diversity", found("a", " ", "b"), 1.0, id="without text: left out"),
        pytest.param("lexical_diversity", found("东京", "东塔"), 2 / 3, id="by character"),
        pytest.param(
            "near_duplicate_rate", found(PIER, PIER.upper(), "gulls"), 1 / 3, id="one pair of three"
        ),
        pytest.param("near_duplicate_rate", found(PIER, f"{PIER} now"), 1.0, id="5 of 6 shingles"),
        pytest.param("near_duplicate_rate[threshold=0.9]", found(PIER, f"{PIER} now"), 0.0, id="5/6 < 0.9"),
        pytest.param("near_duplicate_rate", found("a b", "a b"), 1.0, id="short copies"),
        pytest.param("near_duplicate_rate", found("a b", "a c"), 0.0, id="short texts"),
        pytest.param("distinct_source_share", found("x", "x", "x", sources="ppq"), 2 / 3, id="two sources"),
        pytest.param("distinct_source_share@2", found("x", "x", "x", sources="ppq"), 1 / 2, id="first two"),
        pytest.param("distinct_source_share", an_output("aab"), 2 / 3, id="the id where no source is named"),
        pytest.param("distinct_n", an_output("", "a b a b a b"), 2 / 5, id="ab ba ab ba ab"),
        pytest.param("distinct_n@1", an_output("", "a b a b"), 1 / 2, id="two words of four"),
        pytest.param("distinct_n_corpus", an_output("", "a b a b a b"), 2 / 5, id="one answer is a corpus"),
    ],
)
def test_the_value_of_one_sample(name: str, output: SystemOutputs, expected: float) -> None:
    assert parse_metric(name).compute([a_sample()], [output]).value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "output", "reason"),
    [
        ("lexical_diversity", found("a"), "fewer than two documents with text were retrieved"),
        ("near_duplicate_rate", found("a", ""), "fewer than two documents with text were retrieved"),
        ("embedding_diversity", an_output(), "fewer than two documents with text were retrieved"),
        ("distinct_source_share", an_output(), "no document was retrieved"),
        ("distinct_n", an_output("", "one"), "the answer is shorter than 2 words"),
        ("distinct_n@1", an_output("", "…"), "the answer is empty"),
        ("distinct_n_corpus@3", an_output("", "a b"), "the answer is shorter than 3 words"),
        ("self_bleu", an_output("", "alone"), "there is no other answer"),
    ],
)
def test_what_cannot_be_measured_is_skipped(name: str, output: SystemOutputs, reason: str) -> None:
    (score,) = parse_metric(name).compute([a_sample()], [output]).scores
    assert (score.value, score.reason, score.failed) == (None, reason, False)


def test_embedding_diversity_is_the_mean_cosine_distance() -> None:
    texts = [PIER, "three gulls on a lamp", "the keeper's name is Brae", PIER]
    vectors = embedder("wordllama").embed(texts).astype(float)
    pairs = [1 - vectors[i] @ vectors[j] for i in range(4) for j in range(i)]
    value = parse_metric("embedding_diversity").compute([a_sample()], [found(*texts)]).value
    assert value == pytest.approx(np.mean(pairs), abs=1e-6)
    copies = parse_metric("embedding_diversity").compute([a_sample()], [found(PIER, PIER)]).value
    assert copies == pytest.approx(0.0, abs=1e-6)


def test_the_anchor_of_alpha_ndcg() -> None:
    sample = with_subtopics({"A": ["a"], "B": ["b"], "D": ["b"], "C": ["c"]})
    output = an_output("ADEB")
    assert parse_metric("alpha_ndcg@5").compute([sample], [output]).value == pytest.approx(0.786896, abs=1e-6)
    assert parse_metric("subtopic_recall@5").compute([sample], [output]).value == pytest.approx(2 / 3)


doc_ids = st.sampled_from([f"d{n}" for n in range(12)])


@given(
    st.dictionaries(doc_ids, st.sets(st.sampled_from("abcdefg"), min_size=1), min_size=1),
    st.lists(doc_ids, min_size=1, unique=True),
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),
)
@settings(deadline=None, max_examples=200)
def test_pyndeval_agrees(gold: dict[str, set[str]], ranking: list[str], alpha: float) -> None:
    sample = with_subtopics({doc_id: sorted(named) for doc_id, named in gold.items()})
    qrels = [("q", subtopic, doc_id, 1) for doc_id, named in gold.items() for subtopic in named]
    run = [("q", doc_id, -float(rank)) for rank, doc_id in enumerate(ranking)]
    measures = [f"{measure}@{k}" for measure in ("alpha-nDCG", "strec") for k in (5, 10, 20)]
    judged = pyndeval.ndeval(qrels, run, measures=measures, alpha=alpha)["q"]
    for k in (5, 10, 20):
        for ours, theirs in (
            (f"alpha_ndcg@{k}[alpha={alpha}]", "alpha-nDCG"),
            (f"subtopic_recall@{k}", "strec"),
        ):
            value = parse_metric(ours).compute([sample], [an_output(ranking)]).value
            assert value == pytest.approx(judged[f"{theirs}@{k}"], abs=1e-9)


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=6), min_size=1, max_size=6), st.integers(1, 3))
@settings(deadline=None)
def test_distinct_n_of_the_corpus_is_what_its_name_says(answers: list[list[str]], n: int) -> None:
    value, _ = quick_scores(
        parse_metric(f"distinct_n_corpus@{n}"),
        [a_sample(str(place)) for place in range(len(answers))],
        [an_output("", " ".join(answer)) for answer in answers],
    )
    grams = [tuple(a[start : start + n]) for a in answers for start in range(len(a) - n + 1)]
    expected = len(set(grams)) / len(grams) if grams else float("nan")
    assert value == pytest.approx(expected, nan_ok=True)


sentences = st.lists(st.sampled_from("the boat is at a pier . gulls".split()), min_size=1, max_size=9)


@given(st.lists(sentences.map(" ".join), min_size=2, max_size=6))
@settings(deadline=None)
def test_sacrebleu_agrees(answers: list[str]) -> None:
    samples = [a_sample(str(n)) for n in range(len(answers))]
    scores = parse_metric("self_bleu").compute(samples, [an_output("", answer) for answer in answers]).scores
    for n, score in enumerate(scores):
        others = answers[:n] + answers[n + 1 :]
        assert score.value == pytest.approx(sacrebleu.sentence_bleu(answers[n], others).score, abs=1e-9)


def test_failed_and_empty_answers_are_nobodys_reference() -> None:
    samples = [a_sample(str(n)) for n in range(4)]
    outputs = [
        an_output("", "the north pier"),
        an_output("", ""),
        a_failure(),
        an_output("", "the north pier"),
    ]
    result = parse_metric("self_bleu").compute(samples, outputs)
    assert [score.value for score in result.scores] == [
        pytest.approx(100.0),
        None,
        None,
        pytest.approx(100.0),
    ]
