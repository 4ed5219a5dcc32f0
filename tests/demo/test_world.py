"""The bundled demo data is complete, consistent and as described in its README."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parents[2] / "auepora_eval" / "demo" / "data"


Row = dict[str, Any]


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def load(name: str) -> list[Row]:
    text = (DATA / name).read_bytes().decode("utf-8")
    assert "\r" not in text, f"{name} has CR line ends"
    return [json.loads(line, parse_constant=_reject_constant) for line in text.splitlines()]


CORPUS = {row["doc_id"]: row for row in load("corpus.jsonl")}
EDITED = {row["doc_id"]: row for row in load("counterfactual.jsonl")}
SAMPLES = {row["sample_id"]: row for row in load("questions.jsonl")}


def scenario(name: str) -> list[Row]:
    return [s for s in SAMPLES.values() if s["labels"]["scenario"] == name]


def variants() -> list[Row]:
    return [s for s in SAMPLES.values() if s["labels"]["scenario"] not in {"base", "unanswerable"}]


def with_gold() -> list[Row]:
    return [s for s in SAMPLES.values() if s["relevant_docs"] is not None]


def grades(docs: list[Row]) -> dict[str, int]:
    return {doc["doc_id"]: doc["metadata"]["relevance"] for doc in docs}


def answering(sample: Row) -> set[str]:
    return {doc_id for doc_id, grade in grades(sample["relevant_docs"]).items() if grade == 2}


def answers(sample: Row) -> list[str]:
    reference = sample["reference_answer"]
    return [reference["text"], *reference["metadata"]["alternatives"]]


def occurs(phrase: str, text: str) -> bool:
    """Whether the phrase occurs in the text as whole words, whatever the case."""
    return re.search(rf"(?<!\w){re.escape(phrase.lower())}(?!\w)", text.lower()) is not None


def test_readme_gives_the_true_counts() -> None:
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    for label in ("scenario", "query_type"):
        for value, count in Counter(s["labels"][label] for s in SAMPLES.values()).items():
            assert f"{value} {count}" in readme, f"README lacks '{value} {count}'"
    assert f"{len(CORPUS)} documents" in readme
    assert 15 <= len(readme.splitlines()) <= 25


@pytest.mark.parametrize("doc", EDITED.values(), ids=lambda doc: doc["doc_id"])
def test_edited_document_differs_in_one_fact(doc: Row) -> None:
    metadata = doc["metadata"]
    original = CORPUS[metadata["counterfactual_of"]]
    assert doc["doc_id"] == f"{original['doc_id']}~edited"
    assert original["text"].count(metadata["true"]) == 1
    assert original["text"].replace(metadata["true"], metadata["fake"]) == doc["text"]
    assert metadata["fake"] not in original["text"]
    assert metadata["true"] not in doc["text"]
    assert {k: metadata[k] for k in original["metadata"]} == original["metadata"]


@pytest.mark.parametrize("sample", with_gold(), ids=lambda sample: sample["sample_id"])
def test_gold_documents_and_spans(sample: Row) -> None:
    for doc in sample["relevant_docs"]:
        assert doc["text"] == CORPUS[doc["doc_id"]]["text"], f"{doc['doc_id']} differs from the corpus"
        assert doc["metadata"]["relevance"] in {1, 2}
        assert doc["metadata"]["spans"], f"{doc['doc_id']} has no span"
        for span in doc["metadata"]["spans"]:
            assert span["text"] == doc["text"][span["start"] : span["end"]] != ""
    assert len(grades(sample["relevant_docs"])) == len(sample["relevant_docs"])
    assert answering(sample)


@pytest.mark.parametrize("sample", variants(), ids=lambda sample: sample["sample_id"])
def test_variant_agrees_with_its_base_question(sample: Row) -> None:
    base = SAMPLES[sample["labels"]["variant_of"]]
    assert base["labels"]["scenario"] == "base"
    assert sample["reference_answer"] == base["reference_answer"]
    assert sample["labels"]["query_type"] == base["labels"]["query_type"]
    if sample["labels"]["scenario"] in {"paraphrase", "typo"}:
        assert sample["query"] != base["query"]
        assert sample["relevant_docs"] == base["relevant_docs"]
    else:
        # A closed context holds only part of the background, but all that answers the question.
        assert sample["query"] == base["query"]
        assert sample["metadata"]["closed_context"] is True
        assert answering(sample) == answering(base)
        assert len(sample["candidate_docs"]) == 5


def test_noise_ratios_match_the_distractors() -> None:
    by_base: dict[str, list[float]] = {}
    for sample in scenario("noise"):
        ratio = sample["labels"]["noise_ratio"]
        by_base.setdefault(sample["labels"]["variant_of"], []).append(ratio)
        distractors = [d for d in sample["candidate_docs"] if d["metadata"]["relevance"] == 0]
        assert len(distractors) == round(5 * ratio), sample["sample_id"]
        telling = [d["doc_id"] for d in distractors if occurs(sample["reference_answer"]["text"], d["text"])]
        assert telling == [], sample["sample_id"]
    assert all(sorted(ratios) == [0.0, 0.2, 0.4, 0.6, 0.8] for ratios in by_base.values())
    assert len(by_base) == 3


@pytest.mark.parametrize("sample", scenario("counterfactual"), ids=lambda sample: sample["sample_id"])
def test_counterfactual_shows_only_the_edited_fact(sample: Row) -> None:
    (gold,) = sample["relevant_docs"]
    shown = {doc["doc_id"]: doc["text"] for doc in sample["candidate_docs"]}
    labels = sample["labels"]
    assert gold["doc_id"] not in shown
    assert occurs(labels["fake_answer"], shown[f"{gold['doc_id']}~edited"])
    assert [i for i, text in shown.items() if occurs(labels["true_answer"], text)] == []
    assert labels["true_answer"] == sample["reference_answer"]["text"]
    assert labels["fake_answer"] not in answers(sample)
