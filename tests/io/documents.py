"""A valid document for every schema, and ways to spoil it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

SEED = Path(__file__).parents[1] / "golden" / "seed_003"


def seed_example(name: str) -> Any:
    """A JSON example of seed 003."""
    return msgspec.json.decode((SEED / name).read_bytes())


DATASET = seed_example("personal_rag.eval.json")
SAMPLE = seed_example("sample_eval_v1.0.0.eval.json")
CITATIONS = seed_example("citation_annotation.gt.json")
QUALITY = seed_example("answer_quality_annotation.gt.json")
RESULTS = seed_example("comprehensive.results.json")
RECORD = {
    "operation": "search",
    "timestamp": "2025-08-30T12:00:00Z",
    "duration": 0.25,
    "memory_usage": 812.5,
    "memory_delta": 0.5,
    "cpu_percent": 40,
    "success": True,
    "error_message": None,
    "metadata": {"k": 5},
}
BASELINE = {
    "search": {
        "operation": "search",
        "mean_duration": 0.2,
        "std_duration": 0.01,
        "mean_memory": 800,
        "sample_count": 12,
        "last_updated": "2025-08-30",
        "thresholds": {"duration_regression_threshold": 1.5, "min_samples_for_baseline": 5},
    }
}
SUITE = {
    "system_info": {"cpu": "x"},
    "query_processing": {"total_queries": 10, "average_time": 0.2, "p95_time": None},
    "summary": {"benchmark_timestamp": 1756555200, "performance_score": 0.9, "recommendations": ["rest"]},
}
REPORT = {
    "metadata": {"generated_at": "2025-08-30T12:00:00Z", "benchmark_type": "weekly"},
    "summary": {"latency_stats": {"p95": 2.1}},
    "detailed_results": [{"n": 1}],
    "recommendations": [{"type": "latency", "severity": "high", "message": "m", "actions": ["cache"]}],
}
CONFIG: dict[str, Any] = {
    "dataset": "ferries.jsonl",
    "metrics": ["recall@5", "mrr"],
    "top_k": 5,
    "timeout": 2.5,
    "retrieval_metrics": {"k_values": [1, 3, 5, 10]},
    "citation_accuracy": {"span_tolerance": 10, "min_overlap_threshold": 0.5},
    "ab_testing": {
        "experiment_id": "rerank",
        "variants": [{"variant_id": "a"}, {"variant_id": "b", "features_enabled": ["rerank"]}],
        "traffic_allocation": {"a": 0.5, "b": 0.5},
        "alpha": 0.05,
        "secondary_metrics": ["mrr"],
    },
    "performance_monitoring": {"thresholds": {"latency_ms": 5000}},
}
PREDICTION = {
    "sample_id": "1",
    "retrieved": [{"doc_id": "a", "text": "t", "score": 7.1, "rank": 1, "metadata": {}}, "b"],
    "response": {"text": "22 cars", "structured": None},
    "answer": None,
    "timings": {"end_to_end": 0.8},
    "error": {"type": "TimeoutError", "message": "late", "seconds": 30},
}

LABEL_SAMPLE: dict[str, Any] = {
    "id": "l1",
    "question": "Which is less risky?",
    "retrieved_passages": ["An index is diversified.", {"text": "A stock is not.", "page": 3}],
    "llm_answer": "The index.",
    "ground_truth_label": "accurate",
    "your_annotation": "",
    "notes": "Explain it.",
    "fhri_spec": {
        "expected_behavior": "Explain it.",
        "rubric": ["Explains it"],
        "risk_tier": "high",
        "compliance_tag": "allowed",
        "category": "investment_advice",
        "hallucination_check": {"requires_verifiable_facts": False, "ground_truth_hint": ""},
        "contradiction_pair_id": "pair-1",
        "scenario_override": "multi_ticker",
        "expected_scenario": "Multi-Ticker Comparison",
    },
}
CONVERSATION: dict[str, Any] = {
    "id": "l2",
    "question_sequence": [
        {"turn": 1, "question": "Did it rise?", "answer": "Yes, by 4%."},
        {"turn": 2, "question": "Are you sure?", "answer": "No, it fell by 2%."},
    ],
    "ground_truth_label": "contradiction",
}

VALID: list[tuple[str, Any]] = [
    ("evaluation_dataset", DATASET),
    ("evaluation_dataset", SAMPLE),
    ("ground_truth", CITATIONS),
    ("ground_truth", QUALITY),
    ("ground_truth", [CITATIONS, QUALITY]),
    ("ground_truth", {"dataset_id": "d", "version": "1.0.0", "annotations": [QUALITY, CITATIONS]}),
    ("evaluation_results", RESULTS),
    ("benchmark", RECORD),
    ("benchmark", [RECORD, RECORD]),
    ("benchmark", {"records": [RECORD]}),
    ("benchmark", BASELINE),
    ("benchmark", SUITE),
    ("benchmark", REPORT),
    ("config", CONFIG),
    ("config", {"ab_testing": {"max_concurrent_experiments": 3, "experiments": [CONFIG["ab_testing"]]}}),
    ("label_set", {"metadata": {"version": "2.0"}, "samples": [[LABEL_SAMPLE], CONVERSATION]}),
    ("prediction", PREDICTION),
    ("prediction", {"sample_id": "1", "retrieved": ["a", "b"], "answer": "22", "error": "late"}),
]

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats(-1e6, 1e6)
    | st.sampled_from([0.5, 3.0, -1, "easy", "esay", "2025-08-30T12:00:00Z", "2025-02-30T12:00:00Z", ""])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def spoilt(draw: st.DrawFn, document: Any) -> Any:
    """The document after one to four changes: a part replaced, removed, renamed, added or doubled."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 4))):
        holder, key = draw(st.sampled_from(_places(document)))
        if holder is None:
            document = draw(json_values)
            continue
        change = draw(st.sampled_from(["replace", "replace", "remove", "rename", "add", "double"]))
        if change == "replace":
            holder[key] = draw(json_values)
        elif change == "remove":
            del holder[key]
        elif isinstance(holder, list):
            holder.append(draw(json_values) if change == "add" else copy.deepcopy(holder[key]))
        elif change == "rename":
            holder[f"{key}s"] = holder.pop(key)
        else:
            holder[draw(st.text(max_size=5))] = draw(json_values)
    return document


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Every (holder, key) in a document, and (None, None) for the whole."""
    places: list[tuple[Any, Any]] = [(None, None)]
    rest = [document]
    while rest:
        part = rest.pop()
        inner = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        for key, value in inner:
            places.append((part, key))
            rest.append(value)
    return places
