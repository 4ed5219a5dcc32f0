"""Semantic similarity: what the embedder says, the best reference, and texts that have no vector."""

from __future__ import annotations

import pytest

from auepora_eval.metrics.answers.relevance import SemanticSimilarity
from auepora_eval.metrics.embeddings import embedder
from tests.builders import a_sample, an_output

pytest.importorskip("wordllama", reason="the extra 'embeddings' is not installed")


def score(answer: str, reference: str, *alternatives: str) -> float | None:
    sample = a_sample(reference=reference, alternatives=list(alternatives))
    return SemanticSimilarity().compute([sample], [an_output(answer=answer)]).scores[0].value


def test_it_is_the_cosine_of_the_vectors() -> None:
    first, second = embedder("wordllama").embed(["a ship in the harbour", "a boat at the pier"])
    assert score("a boat at the pier", "a ship in the harbour") == pytest.approx(
        float(first @ second), abs=1e-6
    )


def test_likeness_is_ordered_as_one_would_order_it() -> None:
    same, near, far = (
        score(text, "a ship in the harbour")
        for text in ("a ship in the harbour", "a boat at the pier", "the square root of two")
    )
    assert same is not None
    assert near is not None
    assert far is not None
    assert same == pytest.approx(1.0, abs=1e-6)
    assert same > near > far


def test_the_best_of_several_references_counts() -> None:
    assert score("six weeks", "42 days", "six weeks") == pytest.approx(1.0, abs=1e-6)
    assert score("six weeks", "", "six weeks") == pytest.approx(1.0, abs=1e-6)


def test_an_empty_answer_is_like_nothing_and_an_empty_reference_is_skipped() -> None:
    assert score("", "a ship") == score(" \n", "a ship") == 0.0
    assert score("a ship", "") is None
