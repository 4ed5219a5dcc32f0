"""What can be said of retrieved texts without gold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from auepora_eval.core.types import Document, Response, RetrievedDocument, SystemOutputs
from auepora_eval.metrics.embeddings import EMBEDDERS
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.metrics.retrieval.text import QueryDocSimilarity, QueryTermCoverage
from tests.builders import a_sample


def found(*texts: str) -> SystemOutputs:
    hits = [
        RetrievedDocument(Document(f"d{rank}", text), 0.0, rank) for rank, text in enumerate(texts, start=1)
    ]
    return SystemOutputs(hits, Response(""))


@pytest.mark.parametrize(
    ("query", "texts", "expected"),
    [
        pytest.param(
            "Where does the Annet moor?", ["The Annet moors here."], 1.0, id="stemmed: moors is moor"
        ),
        pytest.param(
            "Where does the Annet moor?", ["A boat.", "the annet"], 0.5, id="one of two, in the second text"
        ),
        pytest.param("Where does the Annet moor?", ["x", "y", "the annet moors"], 0.0, id="below the cutoff"),
        pytest.param(
            "Where does the Annet moor?", ["Where does the boat lie?"], 0.0, id="function words do not count"
        ),
        pytest.param("boats, boats and boats", ["boat"], 1.0, id="each word once"),
        pytest.param("东京塔", ["东京"], 2 / 3, id="each character is a word"),
    ],
)
def test_query_term_coverage(query: str, texts: list[str], expected: float) -> None:
    result = QueryTermCoverage(2).compute([a_sample(query=query)], [found(*texts)])
    assert result.value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        pytest.param(found("a boat", " "), "a document among the first 2 has no text", id="blank"),
        pytest.param(
            SystemOutputs(
                [RetrievedDocument(Document("a", "", {"text_missing": True}), 0.0, 1)], Response("")
            ),
            "a document among the first 2 has no text",
            id="an id only",
        ),
    ],
)
@pytest.mark.parametrize("name", ["query_term_coverage@2", "query_doc_similarity@2"])
def test_without_texts_nothing_is_measured(name: str, output: SystemOutputs, reason: str) -> None:
    result = parse_metric(name).compute([a_sample(query="a boat")], [output])
    assert (result.details["num_skipped"], result.scores[0].reason) == (1, reason)


@EMBEDDERS.add("plane")
class Plane:
    """A text "x y" is the point (x, y); its vector has length one."""

    def embed(self, texts: Sequence[str]) -> Any:
        points = np.array([[float(number) for number in text.split()] for text in texts])
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        return np.divide(points, lengths, out=np.zeros_like(points), where=lengths > 0)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param(["2 0"], 1.0, id="the same direction"),
        pytest.param(["0 1"], 0.0, id="a right angle"),
        pytest.param(["-1 0", "1 0"], 0.0, id="the mean of -1 and 1"),
        pytest.param(["3 4", "1 0", "-1 0"], 0.8, id="the mean of 3/5 and 1; the third is below the cutoff"),
    ],
)
def test_query_doc_similarity(texts: list[str], expected: float) -> None:
    metric = QueryDocSimilarity(2, "plane")
    assert metric.name == "query_doc_similarity@2[plane]"
    assert metric.compute([a_sample(query="1 0")], [found(*texts)]).value == pytest.approx(expected)


def test_nothing_retrieved_is_like_nothing() -> None:
    assert QueryDocSimilarity(2, "plane").compute([a_sample(query="1 0")], [found()]).value == -1.0


def test_the_model_that_comes_with_the_package_prefers_the_text_on_the_subject() -> None:
    pytest.importorskip("wordllama", reason="needs the extra 'embeddings'")
    near, far = (
        QueryDocSimilarity(1).compute([a_sample(query="Where do ships moor?")], [found(text)]).value
        for text in ("The boats lie at the pier.", "Quarterly revenue rose by nine percent.")
    )
    assert near > far
