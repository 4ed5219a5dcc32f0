"""Plans, targets, registry and fingerprints."""

from __future__ import annotations

import re
from typing import Any

import pytest

from auepora_eval.core.dataset import dataset_fingerprint
from auepora_eval.core.plan import EvaluationPlan, PartialCoverageWarning
from auepora_eval.core.targets import TargetCategory
from auepora_eval.errors import MissingDependencyError, PlanError, UnknownNameError
from auepora_eval.metrics import embeddings
from auepora_eval.metrics.parse import default_metrics, parse_metric, parse_metrics
from tests.builders import a_sample


def test_metrics_are_grouped_by_target() -> None:
    plan = EvaluationPlan(parse_metrics("recall@5,token_f1,hit@1"))
    grouped = plan.grouped_by_target()
    assert [m.name for m in grouped[TargetCategory.RETRIEVAL_RELEVANCE]] == ["recall@5", "hit@1"]
    assert list(grouped) == [TargetCategory.RETRIEVAL_RELEVANCE, TargetCategory.GENERATION_CORRECTNESS]


def test_empty_list_counts_as_missing() -> None:
    with pytest.raises(PlanError, match="relevant_docs"):
        EvaluationPlan(parse_metrics("recall@5")).validate_dataset([a_sample(relevant="")])


def test_partial_coverage_is_a_warning_with_the_count() -> None:
    samples = [a_sample("1", relevant="a"), a_sample("2"), a_sample("3")]
    with pytest.warns(
        PartialCoverageWarning, match="1 of 3 samples have relevant_docs: recall@5, mrr"
    ) as seen:
        EvaluationPlan(parse_metrics("recall@5,mrr")).validate_dataset(samples)
    assert len(seen) == 1


_TIME = "latency@0.95[end_to_end]"


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        pytest.param({}, ["grounding_overlap", _TIME], id="nothing"),
        pytest.param({"relevant": "a"}, ["recall@3", "ndcg@3", "grounding_overlap", _TIME], id="documents"),
        pytest.param(
            {"reference": "22 cars"}, ["contains_answer", "grounding_overlap", _TIME], id="a short reference"
        ),
        pytest.param(
            {"reference": "It carries 22 cars on deck"},
            ["token_f1", "grounding_overlap", _TIME],
            id="a sentence",
        ),
        pytest.param(
            {"labels": {"answerable": False}},
            ["grounding_overlap", "rejection_rate", "over_refusal_rate", _TIME],
            id="unanswerable",
        ),
    ],
)
def test_the_default_metrics_are_those_that_the_samples_support(
    sample: dict[str, Any], expected: list[str]
) -> None:
    assert [metric.name for metric in default_metrics([a_sample(**sample)], top_k=3)] == expected


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("recal@5", "Did you mean recall"),
        ("rouge_l", "Did you mean rouge"),
        ("zzzz", "Known: "),
        ("recall@5@6", "not a metric name"),
        ("", "not a metric name"),
        ("exact_match@5", "takes no number"),
        ("r_precision@5", "takes no number"),
        ("mean_latency[a=b]", "its options are: timing_key"),
        ("rouge1[stem=perhaps]", "must be of type bool"),
    ],
)
def test_an_unknown_metric_gets_a_hint(wrong: str, hint: str) -> None:
    with pytest.raises(UnknownNameError, match=hint):
        parse_metric(wrong)


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("mean_latency[retrieval,generation]", "timing_key: 'retrieval' and 'generation'"),
        ("noise_drop[recall@5,token_f1]", "'recall@5' and 'token_f1'"),
        ("latency@0.5[a,b,c]", "timing_key: 'a' and 'b'"),
        ("latency@0.5[q=0.9]", "q: 0.5 and 0.9"),
        ("recall@5[level=1,level=2]", "level: 1.0 and 2.0"),
        ("recall@5[level=1,level=1]", "level: 1.0 and 1.0"),
    ],
)
def test_an_option_that_is_given_twice_is_refused(name: str, option: str) -> None:
    with pytest.raises(UnknownNameError, match=f"has two values for .*{re.escape(option)}"):
        parse_metric(name)


@pytest.mark.parametrize("level", ["2", "0.5", "2.0000001", "1234567.5", "0.1"])
def test_a_name_keeps_its_number(level: str) -> None:
    for base in ("recall@5", "precision@5", "f1@5", "hit@5", "mrr", "map", "r_precision", "bpref"):
        metric = parse_metric(f"{base}[level={level}]")
        assert metric.name == f"{base}[level={level}]"
        assert getattr(metric, "level", None) == float(level)


def test_fingerprint_depends_on_content_and_order_not_on_key_order() -> None:
    one, two = a_sample("1", labels={"a": 1, "b": 2}), a_sample("1", labels={"b": 2, "a": 1})
    other = a_sample("2")
    assert dataset_fingerprint([one]) == dataset_fingerprint([two])
    assert dataset_fingerprint([one, other]) != dataset_fingerprint([other, one])
    assert len(dataset_fingerprint([])) == 64


@pytest.mark.parametrize(
    "name",
    ["semantic_similarity", "query_answer_similarity", "query_doc_similarity@5", "embedding_diversity@5"],
)
def test_missing_package_is_an_error_before_the_first_call(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "find_spec", lambda package: None)
    embeddings.embedder.cache_clear()
    with pytest.raises(MissingDependencyError, match="embeddings"):
        EvaluationPlan(parse_metrics(name)).validate_dataset([a_sample(relevant="a", reference="b")])
    monkeypatch.undo()
    embeddings.embedder.cache_clear()


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("context_precision", "map[ragas]"),
        ("FaithfulnessMetric", "judged_faithfulness"),
        ("Answer_Relevancy", "judged_answer_relevance"),
        ("context-recall", "recall@5"),
        ("llm-rubric", "rubric[FILE]"),
        ("hit_rate@7", "hit@7"),
        ("nDCG@10", "ndcg@10"),
        ("P_10", "precision@10"),
        ("map_cut_100", "map@100"),
        ("includes", "contains_answer"),
    ],
)
def test_names_of_other_tools_are_answered_with_ours(name: str, ours: str) -> None:
    with pytest.raises(UnknownNameError, match=f"The nearest here is {re.escape(ours)}: "):
        parse_metric(name)
