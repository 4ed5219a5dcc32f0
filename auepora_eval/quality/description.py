"""What is in a dataset, which of Auepora's targets it can measure, and how two datasets differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

import numpy as np

from ..core.dataset import EvaluationDataset, canonical_json, checked_samples, dataset_fingerprint
from ..core.scores import has_field, is_given
from ..core.types import Document, EvaluationSample, TargetCategory, gold_documents
from ..text.tokens import words

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
            if not is_given(value):
                continue
            text = value if isinstance(value, str) else canonical_json(value).decode()[:200]
            values.setdefault(name, Counter())[text] += 1
    return {
        name: {
            "samples": counter.total(),
            "distinct": len(counter),
            "values": dict(counter.most_common(_MOST_VALUES)),
        }
        for name, counter in values.items()
    }


def _lengths(samples: Sequence[EvaluationSample]) -> dict[str, Any]:
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
    """Return for each target the metrics that some sample has all fields for, and what the others lack.

    A metric without required fields needs only what the system returns (timings, documents, an answer).
    """
    from ..core.metrics_base import METRICS

    @cache
    def count(needs: tuple[str, ...]) -> int:
        return sum(all(_has(sample, name) for name in needs) for sample in samples)

    targets = []
    for target in TargetCategory:
        counts: dict[str, int] = {}
        by_data: list[int] = []
        lacking: dict[str, None] = {}
        for name in METRICS:
            metric = METRICS.get(name)
            if metric.target is not target or not metric.listed:
                continue
            # Metrics of refusals skip a sample that does not say whether it has an answer.
            needs = (*metric.requires, *[_ANSWERABLE] * (target is TargetCategory.NEGATIVE_REJECTION))
            if count(needs):
                counts[name] = count(needs)
                by_data += [count(needs)] * bool(needs)
            else:
                lacking |= dict.fromkeys(each for each in needs if not count((each,)))
        # How far the data reach, where some metric needs them; every sample gets an output.
        reach = max(by_data or counts.values(), default=0)
        targets.append({"target": target.name, "metrics": counts, "samples": reach, "lacks": list(lacking)})
    return targets


def _has(sample: EvaluationSample, field: str) -> bool:
    if field == _ANSWERABLE and sample.labels.get("scenario") == "unanswerable":
        return True
    return has_field(sample, field)


# What changed between two datasets: samples by id, their fields, and the corpus. What is empty is absent, as
# most formats do not store it.

Record = dict[str, Any]  # a sample or a document by its fields
_ID_ONLY = "only the id is known"  # in place of the record of a document without a text


@dataclass(frozen=True)
class FieldChange:
    """A field that differs, such as "labels.difficulty", with its old and new value; None is absent."""

    field: str
    old: Any
    new: Any


@dataclass(frozen=True)
class Change:
    """A sample or a document that is in both datasets but not the same."""

    id: str
    fields: tuple[FieldChange, ...]


@dataclass
class Group:
    """What happened to things with ids."""

    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    changed: list[Change] = field(default_factory=list)
    unchanged: int = 0

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


@dataclass
class DatasetDifference:
    """Two datasets side by side. `not_compared` names what only one of them has."""

    samples: Group
    documents: Group
    not_compared: list[str]

    @property
    def same(self) -> bool:
        """Whether nothing differs; the order of the samples does not count."""
        return not (self.samples or self.documents)


def dataset_difference(old: EvaluationDataset, new: EvaluationDataset) -> DatasetDifference:
    """Return what changed between two datasets, whatever the formats of their files.

    Not every format holds a corpus: it is not compared if one side has none at all.
    """
    not_compared, documents = [], Group()
    if bool(old.documents) != bool(new.documents):
        side = "second" if old.documents else "first"
        not_compared.append(f"the corpus: the {side} dataset has none")
    else:
        documents = _compared(_by_doc_id(old.documents), _by_doc_id(new.documents))
        if _has_bare_documents(old) != _has_bare_documents(new):
            not_compared.append("the texts of documents that one dataset has only the ids of")
    return DatasetDifference(_compared(_records(old), _records(new)), documents, not_compared)


def _compared(before: Mapping[str, Any], after: Mapping[str, Any]) -> Group:
    group = Group(
        added=[each for each in after if each not in before],
        removed=[each for each in before if each not in after],
    )
    for name in (each for each in before if each in after):
        fields = tuple(_changes("", before[name], after[name]))
        if fields:
            group.changed.append(Change(name, fields))
        else:
            group.unchanged += 1
    return group


def _changes(path: str, old: Any, new: Any) -> Iterator[FieldChange]:
    """Yield the smallest fields that differ; a list is one field."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(key for key in new if key not in old)]:
            name = f"{path}.{key}" if path else str(key)
            yield from _changes(name, old.get(key), new.get(key))
    elif _ID_ONLY in (old, new) and None not in (old, new):
        return
    # In JSON true is not 1, but 1 and 1.0 are one number.
    elif old != new or (isinstance(old, bool) != isinstance(new, bool)):
        yield FieldChange(path, old, new)


def _records(dataset: EvaluationDataset) -> dict[str, Record]:
    """Return the samples by id."""
    records: dict[str, Record] = {}
    for sample in checked_samples(dataset.name, dataset):
        answer = sample.reference_answer
        records[sample.sample_id] = _filled(
            query=sample.query,
            relevant_docs=_by_doc_id(sample.relevant_docs or ()),
            candidate_docs=_by_doc_id(sample.candidate_docs or ()),
            reference_answer=None if answer is None else _filled(**asdict(answer)),
            labels=sample.labels,
            metadata=sample.metadata,
        )
    return records


def _by_doc_id(docs: Sequence[Document]) -> Record:
    """Return documents by id, in any order; by their place if two have the same id."""
    records = [_ID_ONLY if _is_bare(doc) else _filled(text=doc.text, metadata=doc.metadata) for doc in docs]
    if len({doc.doc_id for doc in docs}) < len(docs):
        pairs = enumerate(zip(docs, records, strict=True))
        return {f"[{n}]": {"doc_id": doc.doc_id, "document": record} for n, (doc, record) in pairs}
    return dict(zip((doc.doc_id for doc in docs), records, strict=True))


def _filled(**fields: Any) -> Record:
    return {name: value for name, value in fields.items() if value not in (None, {}, [])}


def _is_bare(doc: Document) -> bool:
    return doc.metadata.get("text_missing") is True and not doc.text


def _has_bare_documents(dataset: EvaluationDataset) -> bool:
    return any(_is_bare(doc) for sample in dataset for doc in sample.relevant_docs or ())
