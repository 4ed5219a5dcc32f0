"""The bundled systems: real ones, on real text, and the story that their comparison tells."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import wordllama

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.core.plan import EvaluationPlan, PartialCoverageWarning
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.types import retrieved_ids
from auepora_eval.demo import systems
from auepora_eval.demo.world import demo_corpus, demo_dataset, is_for_tuning
from auepora_eval.errors import MissingDependencyError
from auepora_eval.metrics import embeddings
from auepora_eval.metrics.parse import parse_metrics
from tests.builders import a_sample


@pytest.mark.parametrize("build", [systems.bm25, systems.bigram, systems.hybrid])
def test_a_question_in_the_documents_own_words_is_found_and_answered(build: object) -> None:
    system = build()  # type: ignore[operator]
    output = system.run(a_sample(query="How long is the North cable?"), top_k=3)
    assert [hit.rank for hit in output.retrieved] == [1, 2, 3]
    assert "9.2 kilometres" in output.retrieved[0].doc.text
    assert output.response.text == "9.2 kilometres"
    assert set(output.timings) == {"retrieval", "generation", "end_to_end"}


def test_a_closed_context_is_answered_from_it_alone() -> None:
    sample = next(s for s in demo_dataset() if s.labels["scenario"] == "counterfactual")
    run = AueporaEvaluator(systems.bm25(), "counterfactual_accuracy", top_k=2).run([sample])
    assert retrieved_ids(run.outputs[0].retrieved) == [doc.doc_id for doc in sample.candidate_docs or ()]
    assert run["counterfactual_accuracy"].coverage.scored == 1


def test_the_vectors_equal_those_of_the_package_that_they_come_from() -> None:
    texts = [doc.text for doc in demo_corpus()[:20]] + ["x", "Naïve 东京"]
    theirs = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    assert np.allclose(embeddings.StaticEmbedder().embed(texts), theirs.embed(texts, norm=True), atol=1e-6)
    assert not embeddings.StaticEmbedder().embed([""]).any()


def test_without_the_extra_the_demo_compares_with_word_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "find_spec", lambda name: None)
    embeddings.embedder.cache_clear()
    with pytest.raises(MissingDependencyError, match=r"pip install .*\[embeddings\]'"):
        systems.hybrid()
    assert systems.second_system().name == "bigram"
    monkeypatch.undo()
    embeddings.embedder.cache_clear()
    assert systems.second_system().name == "hybrid"


@pytest.mark.filterwarnings("ignore::auepora_eval.core.plan.PartialCoverageWarning")
def test_second_system_is_better_on_questions_that_it_was_not_tuned_on() -> None:
    """The other half of the questions decides. Their text was not used for the rules, their total was."""
    samples = [sample for sample in demo_dataset() if not is_for_tuning(sample)]
    values = {}
    for system in (systems.bm25(), systems.hybrid()):
        for result in AueporaEvaluator(system, "recall@5,contains_answer,rejection_rate").evaluate(samples):
            values[system.name, result.name] = result.value
    print({key: round(value, 3) for key, value in values.items()})
    assert values["hybrid", "contains_answer"] >= 0.35
    assert values["hybrid", "contains_answer"] >= 2 * values["bm25", "contains_answer"]
    assert values["hybrid", "recall@5"] >= values["bm25", "recall@5"] + 0.05
    assert values["hybrid", "rejection_rate"] >= 0.5
    assert values["bm25", "rejection_rate"] == 0


def test_the_demo_has_every_verdict() -> None:
    metrics = "recall@5,ndcg@5,contains_answer,token_f1,rejection_rate,grounding_overlap,lexical_diversity@5"
    began = time.process_time()
    runs = []
    for system in (systems.bm25(), systems.second_system()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PartialCoverageWarning)
            runs.append(AueporaEvaluator(system, EvaluationPlan(parse_metrics(metrics))).run(demo_dataset()))
    verdicts = {metric.name: str(metric.verdict) for metric in compare_runs(*runs).metrics}
    assert time.process_time() - began < 20
    better = {"recall@5", "ndcg@5", "contains_answer", "token_f1", "rejection_rate"}
    assert {name for name in better if verdicts[name] == "better"} == better
    assert verdicts["lexical_diversity@5"] == "worse"
    assert "inconclusive" in verdicts.values()
