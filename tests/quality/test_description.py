"""What `dataset check` tells of a dataset, on samples small enough to count."""

from __future__ import annotations

from auepora_eval.core.dataset import InMemoryDataset, dataset_fingerprint
from auepora_eval.core.types import Document
from auepora_eval.quality.description import describe
from tests.builders import a_dataset, a_sample, small_world


def test_counts_lengths_and_labels() -> None:
    samples = [
        a_sample("1", "one two three", relevant="ab", reference="x y", labels={"kind": "a", "deep": [1]}),
        a_sample("2", "one", relevant="b", labels={"kind": "a"}),
        a_sample("3", "one two", labels={"kind": "b"}),
    ]
    samples[1].metadata["citations"] = [{"file_name": "b.pdf"}]
    about = describe(
        InMemoryDataset(
            "d", samples, info={"version": "1.0.0"}, documents=[Document("a", "t"), Document("b", "")]
        )
    )
    assert about["samples"] == 3
    assert about["version"] == "1.0.0"
    assert about["dataset_id"] is None
    assert about["fingerprint"] == dataset_fingerprint(samples)
    assert about["fields"] == {
        "reference answer": 1,
        "gold documents": 2,
        "candidate documents": 0,
        "citations": 1,
        "cluster": 0,
    }
    assert about["labels"] == {
        "kind": {"samples": 3, "distinct": 2, "values": {"a": 2, "b": 1}},
        "deep": {"samples": 1, "distinct": 1, "values": {"[1]": 1}},
    }
    assert about["lengths"]["words of a query"] == {"median": 2.0, "p95": 2.9, "max": 3}
    assert about["lengths"]["candidates of a sample"] is None
    assert about["documents"] == {"corpus": 2, "gold": 2, "candidates": 0, "gold without text": 0}


def test_targets_are_those_that_the_fields_allow() -> None:
    targets = {each["target"]: each for each in describe(a_dataset(a_sample(reference="x")))["targets"]}
    assert targets["NOISE_ROBUSTNESS"]["metrics"] == {}
    assert set(targets["NOISE_ROBUSTNESS"]["lacks"]) == {"labels.variant_of", "labels.noise_ratio"}
    assert targets["NEGATIVE_REJECTION"]["lacks"] == ["labels.answerable"]
    assert "recall" not in targets["RETRIEVAL_RELEVANCE"]["metrics"]
    assert targets["GENERATION_CORRECTNESS"]["metrics"]["exact_match"] == 1
    samples, _ = small_world()
    full = describe(a_dataset(*samples))["targets"]
    assert all(each["metrics"] and not each["lacks"] for each in full)
    assert {each["target"]: each["samples"] for each in full}["RETRIEVAL_ACCURACY"] == 9
