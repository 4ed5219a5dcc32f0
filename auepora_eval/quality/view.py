"""A dataset as the quality checks read it, and their findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..core.dataset import EvaluationDataset
from ..core.types import Document, EvaluationSample, Response
from ..io.eval_json import OF_THE_SAMPLE

SEVERITIES = ("error", "warning", "note")  # worst first


class QualityIssue(str):
    """One finding. It is its own text, so a list of findings is a list of texts.

    An error makes scores wrong or samples unusable, a warning is likely a mistake, a note is worth a look.
    """

    __slots__ = ("check", "fix", "message", "sample_id", "severity", "where")
    severity: str
    check: str
    sample_id: str
    where: str
    message: str
    fix: str

    def __new__(
        cls, severity: str, check: str, message: str, *, where: str, sample_id: str = "", fix: str = ""
    ) -> QualityIssue:
        named = f"{where} ({sample_id})" if sample_id else where
        issue = super().__new__(cls, " ".join(part for part in (f"{named}:", message, fix) if part))
        issue.severity, issue.check, issue.message, issue.fix = severity, check, message, fix
        issue.sample_id, issue.where = sample_id, where
        return issue

    def as_record(self) -> dict[str, str]:
        """Return the parts for JSON."""
        names = ("severity", "check", "sample_id", "where", "message", "fix")
        return {name: getattr(self, name) for name in names}


@dataclass
class DatasetView:
    """Samples, corpus and description; and how to name a place in them."""

    samples: list[EvaluationSample]
    places: list[str]
    corpus: Sequence[Document]
    declared: Mapping[str, Any] = field(default_factory=dict)

    def issue(
        self, severity: str, check: str, message: str, *, place: int, part: str = "", fix: str = ""
    ) -> QualityIssue:
        """Return a finding about a sample, or about a part of it: "$.queries[3].citations[0]"."""
        where = self.places[place]
        if part:
            where = f"{where}.{part}" if where.startswith("$") else f"{where}: {part}"
        sample_id = self.samples[place].sample_id
        return QualityIssue(severity, check, message, where=where, sample_id=sample_id, fix=fix)

    def citations(self, place: int) -> list[Mapping[str, Any]]:
        """Return the citations of a sample that are objects."""
        return _objects(self.samples[place].metadata.get("citations"))

    @cached_property
    def places_of_ids(self) -> dict[str, list[int]]:
        """Where each sample id occurs."""
        places: dict[str, list[int]] = {}
        for place, sample in enumerate(self.samples):
            places.setdefault(sample.sample_id, []).append(place)
        return places

    def documents(self) -> Iterator[Document]:
        """Yield each document once: the corpus, then the documents that only samples have."""
        in_corpus = {id(doc) for doc in self.corpus}  # by identity: a copy may have another text
        yield from self.corpus
        for sample in self.samples:
            docs = (*(sample.relevant_docs or ()), *(sample.candidate_docs or ()))
            yield from (doc for doc in docs if id(doc) not in in_corpus)


def view_of(dataset: Mapping[str, Any] | EvaluationDataset) -> DatasetView:
    """Return the view of a `.eval.json` document or of a dataset.

    A document is read leniently, since one with mistakes is what the checks are for: what has no meaning at
    all, such as a query that is not an object, is left out. `DataFormatValidator` lists that.
    """
    if isinstance(dataset, EvaluationDataset):
        samples = list(dataset)
        places = [f"sample {number}" for number in range(1, len(samples) + 1)]
        return DatasetView(samples, places, dataset.documents, _mapping(dataset.info.get("metadata")))
    corpus = [
        Document(
            _text(record.get("document_id")),
            _text(record.get("content")),
            {
                **_mapping(record.get("metadata")),
                **{key: record[key] for key in ("title", "file_path") if key in record},
            },
        )
        for record in _objects(dataset.get("documents"))
    ]
    by_id = {doc.doc_id: doc for doc in reversed(corpus)}
    samples = [_sample(record, by_id) for record in _objects(dataset.get("queries"))]
    places = [f"$.queries[{n}]" for n, one in enumerate(_list(dataset.get("queries"))) if _is_object(one)]
    return DatasetView(samples, places, corpus, _mapping(dataset.get("metadata")))


def _sample(record: Mapping[str, Any], by_id: Mapping[str, Document]) -> EvaluationSample:
    ids = [one for one in _list(record.get("relevant_documents")) if isinstance(one, str)]
    gold = [by_id.get(one) or Document(one, "", {"text_missing": True}) for one in ids]
    metadata = dict(_mapping(record.get("metadata")))
    own = _mapping(metadata.pop(OF_THE_SAMPLE, None))  # what a sample has and the format has no place for
    if "citations" in record:
        metadata["citations"] = _objects(record["citations"])
    reference = record.get("ground_truth_answer")
    alternatives = dict(_mapping(_mapping(own.get("reference")).get("metadata")))
    labels = {key: record[key] for key in ("query_type", "difficulty") if record.get(key) is not None}
    return EvaluationSample(
        sample_id=_text(record.get("query_id")),
        query=_text(record.get("query_text")),
        relevant_docs=gold or None,
        reference_answer=Response(reference, None, alternatives) if isinstance(reference, str) else None,
        labels={**labels, **_mapping(own.get("labels"))},
        metadata=metadata,
    )


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in _list(value) if _is_object(one)]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
