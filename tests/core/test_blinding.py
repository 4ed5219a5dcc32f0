"""The fields of a labelled sample that a system may see."""

from __future__ import annotations

from auepora_eval.core.systems.call import as_shown, without_answers
from auepora_eval.core.types import Response
from tests.builders import a_sample


def test_label_is_hidden_from_the_system() -> None:
    kept = {"contradiction_pair_id": "p", "scenario": "news", "risk_tier": "low"}
    told = {"ground_truth_label": "accurate", "category": "easy", "compliance_tag": "allowed"}
    sample = a_sample("1", "How long?", labels={**kept, **told})
    stored = {"answer": "The pier is long.", "passages": []}
    sample.metadata = {"stored_output": stored, "notes": "n", "rubric": ["r"], "ground_truth_hint": "h"}
    sample.reference_answer = Response("40 metres")
    blind = as_shown(sample)
    assert (blind.sample_id, blind.query, blind.labels) == ("1", "How long?", kept)
    assert blind.metadata == {"stored_output": stored}
    assert blind.reference_answer is None
    assert without_answers(sample, sample_id="sample-1").sample_id == "sample-1"
    assert sample.labels == {**kept, **told}
    assert "notes" in sample.metadata


def test_sample_without_label_is_unchanged() -> None:
    sample = a_sample("1", labels={"unanswerable": True})
    assert as_shown(sample) == sample
    assert as_shown(sample) is not sample  # a system may change what it gets
