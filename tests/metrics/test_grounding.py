"""Grounding: tables that can be checked by hand, then people's judgements as the measure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr

from auepora_eval.core.types import (
    Document,
    EvaluationSample,
    MetricResult,
    Response,
    RetrievedDocument,
    SystemOutputs,
)
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.text.content_words import without_marks
from tests.builders import a_sample

DATA = Path(__file__).parents[3] / "shared" / "data"
ALL = (
    "grounding_overlap grounding_bigrams number_support name_support"
    " best_sentence_overlap lexical_consistency"
).split()

PIER = "The Annet moors at the north pier. It was built in 1911 for 1,500 pounds by Ansel Brae."
GULLS = "Three gulls sat on the lamp of Saint Agnes."


def answered(text: str, *documents: str) -> SystemOutputs:
    hits = [RetrievedDocument(Document(str(n), d), 1 / n, n) for n, d in enumerate(documents, 1)]
    return SystemOutputs(hits, Response(text))


@pytest.mark.parametrize(
    ("name", "answer", "expected"),
    [
        pytest.param("grounding_overlap", "The Annet moors at the pier.", 1.0, id="annet moors pier"),
        pytest.param("grounding_overlap", "The Annet sank at the pier.", 2 / 3, id="sank is new"),
        pytest.param("grounding_overlap", "Annet, Annet, sank", 2 / 3, id="repeats count"),
        pytest.param("grounding_overlap", "The gulls of Annet", 1.0, id="over all documents"),
        pytest.param(
            "grounding_overlap", "The Annet never moors at the pier.", 3 / 4, id="a negation is a word"
        ),
        pytest.param("grounding_overlap", "The pier moors at the Annet [1].", 1.0, id="swapped: not seen"),
        pytest.param("grounding_bigrams", "at the north pier", 1.0, id="quoted"),
        pytest.param("grounding_bigrams", "the pier at the north", 2 / 4, id="at-the, the-north of four"),
        pytest.param("number_support", "It cost 1500 in 1911.", 1.0, id="1500 is 1,500"),
        pytest.param("number_support", "It cost 1,500.00 in 1944.", 0.5, id="1944 is new"),
        pytest.param("number_support", "1. It cost 1500 [2, 3].", 1.0, id="marks are no numbers"),
        pytest.param("name_support", "It was Ansel Brae.", 1.0, id="both words"),
        pytest.param("name_support", "It was Ansel Smith.", 0.5, id="Smith is new"),
        pytest.param("name_support", "Nobody but Brae did.", 1.0, id="Nobody begins a sentence"),
        pytest.param("best_sentence_overlap", "The Annet moors at the pier.", 1.0, id="one sentence"),
        pytest.param("best_sentence_overlap", "Annet built lamp.", 1 / 3, id="of three sentences"),
        pytest.param("best_sentence_overlap", "Gulls sat. The Annet sank.", 0.75, id="mean of 1 and 1/2"),
        pytest.param("lexical_consistency", "The Annet moors at the pier.", 1.0, id="agrees"),
        pytest.param("lexical_consistency", "The Annet does not moor at the pier.", 0.5, id="negated"),
        pytest.param("lexical_consistency", "It was built for 700 pounds.", 2 / 3 * 0.3, id="another sum"),
    ],
)
def test_the_share_that_is_found(name: str, answer: str, expected: float) -> None:
    result = parse_metric(name).compute([a_sample()], [answered(answer, PIER, GULLS)])
    assert result.value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "output", "reason"),
    [
        *((name, answered("  ", PIER), "the answer is empty") for name in ALL),
        *((name, answered("x", "", " "), "the retrieved documents have no text") for name in ALL),
        pytest.param(
            "grounding_overlap", answered("It is.", PIER), "the answer has no content words", id="it is"
        ),
        pytest.param(
            "grounding_bigrams", answered("Three", PIER), "the answer is shorter than two words", id="one"
        ),
        pytest.param(
            "number_support", answered("Three", PIER), "the answer has no number in digits", id="digits"
        ),
        pytest.param(
            "name_support", answered("Three gulls", PIER), "the answer has no capitalised name", id="first"
        ),
        pytest.param(
            "best_sentence_overlap", answered("It is.", PIER), "the answer has no content words", id="is"
        ),
    ],
)
def test_what_cannot_be_measured_is_skipped_with_the_reason(
    name: str, output: SystemOutputs, reason: str
) -> None:
    (score,) = parse_metric(name).compute([a_sample()], [output]).scores
    assert (score.value, score.reason, score.failed) == (None, reason, False)


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "Z")), min_size=1))
@example("\ufb2aB")  # a letter that becomes a letter and a mark: one word
def test_an_answer_that_is_its_document_is_fully_grounded(text: str) -> None:
    quoted = without_marks(text)
    for name in ALL:
        (score,) = parse_metric(name).compute([a_sample()], [answered(quoted, quoted)]).scores
        assert score.value is None or score.value == pytest.approx(1.0) or without_marks(quoted) != quoted


@pytest.mark.skipif(not (DATA / "mtrag").is_dir(), reason="needs ../shared/data/mtrag")
@pytest.mark.parametrize(
    ("name", "answers", "correlation"),
    [
        ("grounding_overlap", 300, 0.73),
        ("grounding_bigrams", 300, 0.71),
        ("number_support", 133, 0.56),
        ("name_support", 228, 0.51),
        ("best_sentence_overlap", 300, 0.69),
        ("lexical_consistency", 300, 0.66),
    ],
)
def test_agreement_with_people_on_mtrag(name: str, answers: int, correlation: float) -> None:
    told = _mtrag()
    texts = {document["document_id"]: document["text"] for document in told["documents"]}
    contexts = {
        task["task_id"]: [texts[context["document_id"]] for context in task["contexts"]]
        for task in told["tasks"]
    }
    judged = [e for e in told["evaluations"] if e["model_id"] != "reference"]
    outputs = [answered(e["model_response"], *contexts[e["task_id"]]) for e in judged]
    scores = parse_metric(name).compute([EvaluationSample("", "q")] * len(judged), outputs).scores
    pairs = [
        (score.value, np.mean(_ratings(e)))
        for score, e in zip(scores, judged, strict=True)
        if score.value is not None
    ]
    assert len(pairs) == answers
    assert spearmanr(*zip(*pairs, strict=True)).statistic == pytest.approx(correlation, abs=0.006)


@pytest.mark.skipif(not (DATA / "attributionbench").is_dir(), reason="needs ../shared/data/attributionbench")
@pytest.mark.parametrize(
    ("name", "part", "claims", "auroc"),
    [
        ("grounding_overlap", "", 1193, 0.71),
        ("grounding_overlap", "LFQA", 110, 0.93),
        ("grounding_overlap", "ExpertQA", 465, 0.57),
        ("grounding_bigrams", "", 1191, 0.72),
        ("number_support", "", 203, 0.715),
        ("name_support", "", 543, 0.64),
        ("best_sentence_overlap", "", 1193, 0.72),
        ("lexical_consistency", "", 1193, 0.73),
    ],
)
def test_agreement_with_people_on_attributionbench(name: str, part: str, claims: int, auroc: float) -> None:
    path = DATA / "attributionbench" / "dev_all_subset_balanced.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if part in ("", row["src_dataset"])]
    outputs = [answered(row["claim"], *row["references"]) for row in rows]
    result = parse_metric(name).compute([EvaluationSample("", "q")] * len(rows), outputs)
    assert result.details["num_samples"] == claims
    assert _auroc(result, lambda n: rows[n]["attribution_label"] == "attributable") == pytest.approx(
        auroc, abs=0.006
    )


def _mtrag() -> Any:
    return json.loads((DATA / "mtrag" / "reference_subset_with_human_evaluations.json").read_text("utf-8"))


def _ratings(evaluation: Any) -> list[float]:
    return [float(rating["value"]) for rating in evaluation["annotations"]["faithfulness"].values()]


def _auroc(result: MetricResult, is_positive: Callable[[int], bool]) -> float:
    """The chance that a positive scores above a negative, ties half: Mann and Whitney's U / (m · n)."""
    scored = [(n, score.value) for n, score in enumerate(result.scores) if score.value is not None]
    ranks = rankdata([value for _, value in scored])
    positive = np.array([is_positive(n) for n, _ in scored])
    m, n = positive.sum(), (~positive).sum()
    return float((ranks[positive].sum() - m * (m + 1) / 2) / (m * n))
