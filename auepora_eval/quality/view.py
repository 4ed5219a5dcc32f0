"""A dataset as the quality checks read it, and their findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..core.dataset import EvaluationDataset
from ..core.types import Document, EvaluationSample, Response

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
        cls,
        severity: str,
        check: str,
        message: str,
        *,
        where: str = "$",
        sample_id: str = "",
        fix: str = "",
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


def at_least(issue: QualityIssue, severity: str) -> bool:
    """Whether a finding is of this severity or a worse one."""
    return SEVERITIES.index(issue.severity) <= SEVERITIES.index(severity)


# A `.eval.json` document is read leniently: a file with mistakes is what these checks are for. What has no
# meaning at all (a query that is not an object) is left out and listed.


@dataclass
class DatasetView:
    """Samples, corpus and description; and how to name a place in them."""

    samples: list[EvaluationSample]
    places: list[str]
    corpus: Sequence[Document]
    has_corpus: bool
    declared: Mapping[str, Any] = field(default_factory=dict)
    declared_at: str = "$.metadata"
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def issue(
        self, severity: str, check: str, message: str, *, place: int, part: str = "", fix: str = ""
    ) -> QualityIssue:
        """Return a finding about a sample, or about a part of it."""
        return QualityIssue(
            severity,
            check,
            message,
            where=self.where(place, part),
            sample_id=self.samples[place].sample_id,
            fix=fix,
        )

    def where(self, place: int, part: str = "") -> str:
        """Return the place of a sample, or of a part of it: "$.queries[3].citations[0]"."""
        joined = self.places[place]
        if not part:
            return joined
        return f"{joined}.{part}" if joined.startswith("$") else f"{joined}: {part}"

    def citations(self, place: int) -> list[Mapping[str, Any]]:
        """The citations of a sample that are objects."""
        listed = self.samples[place].metadata.get("citations")
        return [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []

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
    """The view of a document as seed 003 prints it, or of a dataset."""
    if isinstance(dataset, EvaluationDataset):
        samples = list(dataset)
        metadata = dataset.info.get("metadata")
        return DatasetView(
            samples=samples,
            places=[f"sample {number}" for number in range(1, len(samples) + 1)],
            corpus=dataset.documents,
            has_corpus=bool(dataset.documents),
            declared=metadata if isinstance(metadata, Mapping) else {},
            declared_at="metadata",
        )
    return _view_of_document(dataset)


def _view_of_document(document: Mapping[str, Any]) -> DatasetView:
    left_out: list[tuple[str, str]] = []
    corpus: list[Document] = []
    for where, record in _objects(document, "documents", left_out):
        title_and_path = {key: record[key] for key in ("title", "file_path") if key in record}
        corpus.append(
            Document(
                _text(record.get("document_id")),
                _text(record.get("content")),
                {**_mapping(record.get("metadata")), **title_and_path},
            )
        )
        if not isinstance(record.get("document_id"), str):
            left_out.append((f"{where}.document_id", "there is no id here."))
    by_id = {doc.doc_id: doc for doc in reversed(corpus)}
    samples, places = [], []
    for where, record in _objects(document, "queries", left_out):
        samples.append(_sample(record, where, by_id, left_out))
        places.append(where)
    return DatasetView(
        samples=samples,
        places=places,
        corpus=corpus,
        has_corpus=bool(document.get("documents")),
        declared=_mapping(document.get("metadata")),
        left_out=left_out,
    )


def _sample(
    record: Mapping[str, Any], where: str, by_id: Mapping[str, Document], left_out: list[tuple[str, str]]
) -> EvaluationSample:
    from ..io.eval_json import OF_THE_SAMPLE

    if not isinstance(record.get("query_id"), str):
        left_out.append((f"{where}.query_id", "there is no id here."))
    gold = []
    listed = record.get("relevant_documents")
    for number, doc_id in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(doc_id, str):
            gold.append(by_id.get(doc_id) or Document(doc_id, "", {"text_missing": True}))
        else:
            left_out.append((f"{where}.relevant_documents[{number}]", "this is not the id of a document."))
    metadata = dict(_mapping(record.get("metadata")))
    own = _mapping(metadata.pop(OF_THE_SAMPLE, None))  # what a sample has and the format has no place for
    if isinstance(record.get("citations"), list):
        metadata["citations"] = [each for _, each in _objects(record, "citations", left_out, where)]
    reference = record.get("ground_truth_answer")
    of_the_reference = _mapping(_mapping(own.get("reference")).get("metadata"))
    labels = {key: record[key] for key in ("query_type", "difficulty") if record.get(key) is not None}
    return EvaluationSample(
        sample_id=_text(record.get("query_id")),
        query=_text(record.get("query_text")),
        relevant_docs=gold or None,
        reference_answer=Response(reference, None, {**of_the_reference})
        if isinstance(reference, str)
        else None,
        labels={**labels, **_mapping(own.get("labels"))},
        metadata=metadata,
    )


def _objects(
    parent: Mapping[str, Any], key: str, left_out: list[tuple[str, str]], where: str = "$"
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    listed = parent.get(key)
    if listed is not None and not isinstance(listed, list):
        left_out.append((f"{where}.{key}", "a list was expected here."))
        return
    for number, each in enumerate(listed or ()):
        if isinstance(each, Mapping):
            yield f"{where}.{key}[{number}]", each
        else:
            left_out.append((f"{where}.{key}[{number}]", "an object was expected here."))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
