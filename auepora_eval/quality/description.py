"""What is in a dataset: counts, labels, lengths, and which of Auepora's targets it can measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.dataset import EvaluationDataset, dataset_fingerprint
from ..core.scores import has_field
from ..core.types import EvaluationSample, TargetCategory, gold_documents

# Titles for people, and the fields that they are about.
FIELDS = {
    "reference answer": "reference_answer",
    "gold documents": "relevant_docs",
    "candidate documents": "candidate_docs",
    "citations": "metadata.citations",
    "cluster": "metadata.cluster",
}
# Values of a label that are listed; the others are only counted.
_MOST_VALUES = 50
_ANSWERABLE = "labels.answerable"


def describe(dataset: EvaluationDataset) -> dict[str, Any]:
    """A dataset in numbers, ready for JSON; what is not known is None."""
    samples = list(dataset)
    info = dataset.info
    return {
        "name": dataset.name,
        "dataset_id": info.get("dataset_id"),
        "version": info.get("version"),
        "description": info.get("description"),
        "created_at": info.get("created_at"),
        "fingerprint": dataset_fingerprint(samples),
        "samples": len(samples),
        "fields": {
            **{title: sum(has_field(s, name) for s in samples) for title, name in FIELDS.items()},
            "gold documents": sum(bool(gold_documents(s)) for s in samples),
        },
        "labels": _labels(samples),
        "lengths": _lengths(samples),
        "documents": _documents(dataset, samples),
        "targets": _targets(samples),
    }


def _labels(samples: Sequence[EvaluationSample]) -> dict[str, Any]:
    """Of each label: on how many samples it is, how many values it has, the frequent ones."""
    values: dict[str, Counter[str]] = {}
    for sample in samples:
        for name, value in sample.labels.items():
            text = value if isinstance(value, str) else _plain(value)
            values.setdefault(name, Counter())[text] += 1
    return {
        name: {
            "samples": counter.total(),
            "distinct": len(counter),
            "values": dict(counter.most_common(_MOST_VALUES)),
        }
        for name, counter in values.items()
    }


def _plain(value: Any) -> str:
    from ..core.dataset import canonical_json

    return canonical_json(value).decode()[:200]


def _lengths(samples: Sequence[EvaluationSample]) -> dict[str, Any]:
    from ..text.tokens import words

    queries = [len(words(sample.query)) for sample in samples]
    answers = [len(words(s.reference_answer.text)) for s in samples if s.reference_answer is not None]
    gold = [doc for sample in samples for doc in gold_documents(sample) if doc.text]
    texts = {doc.doc_id: doc.text for doc in gold}
    return {
        "words of a query": _spread(queries),
        "words of a reference": _spread(answers),
        "gold documents of a sample": _spread([len(gold_documents(s)) for s in samples if s.relevant_docs]),
        "candidates of a sample": _spread([len(s.candidate_docs) for s in samples if s.candidate_docs]),
        "words of a gold document": _spread([len(words(text)) for text in texts.values()]),
    }


def _spread(counts: list[int]) -> dict[str, float] | None:
    """Median, 95th percentile and largest."""
    if not counts:
        return None
    median, p95 = np.quantile(counts, [0.5, 0.95])
    return {"median": float(median), "p95": float(p95), "max": max(counts)}


def _documents(dataset: EvaluationDataset, samples: Sequence[EvaluationSample]) -> dict[str, Any]:
    """How many documents there are in the corpus (None without one), and how many different ones are gold."""
    corpus = {doc.doc_id for doc in dataset.documents}
    gold = {doc.doc_id for sample in samples for doc in gold_documents(sample)}
    candidates = {doc.doc_id for sample in samples for doc in sample.candidate_docs or ()}
    missing = {doc.doc_id for sample in samples for doc in gold_documents(sample) if not doc.text.strip()}
    return {
        "corpus": len(corpus) or None,
        "gold": len(gold),
        "candidates": len(candidates),
        "gold without text": len(missing),
    }


def _targets(samples: Sequence[EvaluationSample]) -> list[dict[str, Any]]:
    """Of each target: the metrics that some sample has all fields for, and what the others lack.

    A metric without required fields needs only what the system returns (timings, documents, an answer).
    """
    from ..core.metrics_base import METRICS

    counts: dict[tuple[str, ...], int] = {}
    targets = []
    for target in TargetCategory:
        possible: dict[str, int] = {}
        by_data: list[int] = []
        lacking: Counter[str] = Counter()
        for name in METRICS:
            metric = METRICS.get(name)
            if metric.target is not target:
                continue
            needs = tuple(metric.requires)
            if target is TargetCategory.NEGATIVE_REJECTION:
                needs += (_ANSWERABLE,)  # they skip a sample that does not say so in either of two ways
            if needs not in counts:
                counts[needs] = sum(all(_has(s, field) for field in needs) for s in samples)
            if counts[needs]:
                possible[name] = counts[needs]
                by_data += [counts[needs]] if needs else []
            else:
                lacking.update(field for field in needs if not any(_has(s, field) for s in samples))
        targets.append(
            {
                "target": target.name,
                "metrics": possible,
                # How far the data reach, where some metric needs them; every sample gets an output.
                "samples": max(by_data or possible.values(), default=0),
                "lacks": list(lacking),
            }
        )
    return targets


def _has(sample: EvaluationSample, field: str) -> bool:
    if field == _ANSWERABLE and sample.labels.get("scenario") == "unanswerable":
        return True
    return has_field(sample, field)
