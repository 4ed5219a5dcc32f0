"""Generation relevance: small tables, and the embedder's own vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import auepora_eval as ae
from auepora_eval.core.types import Response, SystemOutputs
from auepora_eval.metrics.embeddings import EMBEDDERS, embedder
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_failure, a_sample, an_output

if TYPE_CHECKING:
    from auepora_eval.metrics.embeddings import Vectors


@pytest.mark.parametrize(
    ("query", "answer", "expected"),
    [
        pytest.param(
            "Where does the Annet moor?", "The Annet moors at the pier.", 1.0, id="moor is in moors"
        ),
        pytest.param("Where does the Annet moor?", "The Annet sank.", 0.5, id="one of two"),
        pytest.param("When was the lamp built?", "In 1911.", 0.0, id="right, and yet 0"),
        pytest.param("A lamp, a lamp, a boat", "a lamp", 0.5, id="repeats count once"),
        pytest.param("东京塔", "塔在东京", 1.0, id="by character"),
    ],
)
def test_query_coverage(query: str, answer: str, expected: float) -> None:
    result = parse_metric("query_coverage").compute([a_sample(query=query)], [an_output("", answer)])
    assert result.value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "query", "answer", "reason"),
    [
        ("query_coverage", "a lamp", " ", "the answer is empty"),
        ("query_coverage", "what is it?", "a lamp", "the query has no content words"),
        ("query_answer_similarity", "a lamp", "", "the answer is empty"),
    ],
)
def test_what_cannot_be_measured_is_skipped(name: str, query: str, answer: str, reason: str) -> None:
    (score,) = parse_metric(name).compute([a_sample(query=query)], [an_output("", answer)]).scores
    assert (score.value, score.reason, score.failed) == (None, reason, False)


def test_similarity_is_the_cosine_of_the_models_vectors() -> None:
    pairs = [("Where does the Annet moor?", "At the north pier."), ("How many boats?", "How many boats?")]
    result = parse_metric("query_answer_similarity").compute(
        [a_sample(str(n), query) for n, (query, _) in enumerate(pairs)],
        [an_output("", answer) for _, answer in pairs],
    )
    for score, pair in zip(result.scores, pairs, strict=True):
        left, right = embedder("wordllama").embed(pair)
        assert score.value == pytest.approx(float(left @ right), abs=1e-6)
    assert result.scores[1].value == pytest.approx(1.0, abs=1e-6)
    assert result.details["signature"]["model"] == "wordllama"


def test_a_model_of_ones_own() -> None:
    @EMBEDDERS.add("letters_of_the_test")
    class Letters:
        def embed(self, texts: Sequence[str]) -> Vectors:
            rows = np.array([[text.count("a"), text.count("b")] for text in texts], dtype=np.float32)
            norms = np.linalg.norm(rows, axis=1, keepdims=True)
            unit: Vectors = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
            return unit

    metric = parse_metric("query_answer_similarity[letters_of_the_test]")
    assert metric.name == "query_answer_similarity[letters_of_the_test]"
    samples = [a_sample(str(n), query) for n, query in enumerate(["aa", "ab", "x"])]
    result = metric.compute(samples, [an_output("", answer) for answer in ("b", "ba", "b")])
    assert [score.value for score in result.scores] == [0.0, pytest.approx(1.0, abs=1e-6), None]
    assert result.scores[2].reason == "letters_of_the_test has no vector for the query or the answer"


def test_non_answers_are_empty_or_refusals() -> None:
    outputs = [
        an_output("a", "three boats"),
        an_output("a", "I don't know."),
        an_output("a", ""),
        SystemOutputs([], Response("", {"declined": False})),
        SystemOutputs([], Response("")),
        a_failure(),
    ]
    result = parse_metric("non_answer_rate").compute([a_sample(str(n)) for n in range(6)], outputs)
    assert [score.value for score in result.scores] == [0.0, 1.0, 1.0, 0.0, 1.0, None]
    assert result.value == 0.6
    assert not result.details["higher_is_better"]
    assert result.details["bounds_if_failed"] == [0.5, pytest.approx(4 / 6)]


def test_a_prediction_with_an_empty_answer_is_a_non_answer(tmp_path: Path) -> None:
    lines = ['{"sample_id": "1", "answer": ""}', '{"sample_id": "2", "answer": "three boats"}']
    (tmp_path / "answers.jsonl").write_text("\n".join(lines), encoding="utf-8")
    samples = [{"sample_id": name, "query": "How many?", "reference_answer": "three"} for name in "12"]
    run = ae.score(samples, tmp_path / "answers.jsonl", metrics="non_answer_rate,token_f1")
    assert (run["non_answer_rate"].value, run["non_answer_rate"].coverage.scored) == (0.5, 2)
    assert run["token_f1"].coverage.scored == 2
