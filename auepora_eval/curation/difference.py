"""What changed between two datasets: samples by id, their fields, the description and the corpus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.dataset import EvaluationDataset
from ..core.fingerprint import canonical_json
from ..core.types import Document, EvaluationSample, Response
from ..errors import DataError


@dataclass(frozen=True)
class FieldChange:
    """A field that differs: "labels.difficulty", its old value and its new one; None is not there."""

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
    """Two datasets side by side. `not_compared` says what only one of them can tell."""

    samples: Group
    documents: Group
    description: tuple[FieldChange, ...]
    not_compared: list[str]
    reordered: bool

    @property
    def same(self) -> bool:
        """Whether nothing differs; the order of the samples does not count."""
        return not (self.samples or self.documents or self.description)


def dataset_difference(old: EvaluationDataset, new: EvaluationDataset) -> DatasetDifference:
    """What became of a dataset, whatever the two are stored as.

    Not every format holds a description or a corpus: what one side has none of at all is not compared.
    """
    before, after = _by_id(old), _by_id(new)
    not_compared = []
    description: tuple[FieldChange, ...] = ()
    if bool(old.info) == bool(new.info):
        description = tuple(_changes("", old.info, new.info))
    else:
        not_compared.append(f"the description: {_side(old.info)} has none")
    documents = Group()
    if bool(old.documents) == bool(new.documents):
        corpora = [{doc.doc_id: doc for doc in each.documents} for each in (old, new)]
        documents = _compared(corpora[0], corpora[1])
        if any(_without_texts(before[name], after[name]) for name in before if name in after):
            not_compared.append("the texts of documents that one dataset has only the ids of")
    else:
        not_compared.append(f"the corpus: {_side(old.documents)} has none")
    shared = [sample_id for sample_id in after if sample_id in before]
    return DatasetDifference(
        samples=_compared(before, after),
        documents=documents,
        description=description,
        not_compared=not_compared,
        reordered=shared != [sample_id for sample_id in before if sample_id in after],
    )


def _side(old: object) -> str:
    return "the second dataset" if old else "the first dataset"


def _by_id(dataset: EvaluationDataset) -> dict[str, EvaluationSample]:
    found: dict[str, EvaluationSample] = {}
    for sample in dataset:
        if sample.sample_id in found:
            raise DataError(
                dataset.name,
                f"the sample_id {sample.sample_id!r:.80} occurs twice.",
                fix="Samples are matched by id: give each its own.",
            )
        found[sample.sample_id] = sample
    return found


def _compared(before: Mapping[str, Any], after: Mapping[str, Any]) -> Group:
    group = Group(
        added=[each for each in after if each not in before],
        removed=[each for each in before if each not in after],
    )
    for name, old in before.items():
        new = after.get(name)
        if new is None:
            continue
        # Most are equal, and equal things have equal JSON, which is much quicker to tell.
        equal = old is new or canonical_json(old) == canonical_json(new)
        fields = () if equal else tuple(_changes("", *_records(old, new)))
        if fields:
            group.changed.append(Change(name, fields))
        else:
            group.unchanged += 1
    return group


def _changes(path: str, old: Any, new: Any) -> Iterator[FieldChange]:
    """Down to the smallest fields that differ; a list is one field."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(key for key in new if key not in old)]:
            name = f"{path}.{key}" if path else str(key)
            yield from _changes(name, old.get(key), new.get(key))
    elif not _equal(old, new):
        yield FieldChange(path, old, new)


def _equal(old: Any, new: Any) -> bool:
    """Equality in which true is not 1; 1 and 1.0 are one number."""
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return old.keys() == new.keys() and all(_equal(old[key], new[key]) for key in old)
    if isinstance(old, Sequence) and isinstance(new, Sequence) and not isinstance(old, str):
        return len(old) == len(new) and all(map(_equal, old, new))
    return bool(old == new)


_DOCS = ("relevant_docs", "candidate_docs")


def _records(old: Any, new: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two things by their fields; of a document that one side has only the id of, only the id counts."""
    before, after = _record(old), _record(new)
    if isinstance(old, EvaluationSample):
        for name in _DOCS:
            docs, others = before.get(name, {}), after.get(name, {})
            # Where ids repeat, documents go by their place: then they may be different ones.
            for doc_id in (each for each in docs.keys() & others.keys() if "doc_id" not in docs[each]):
                if _is_bare(docs[doc_id]) or _is_bare(others[doc_id]):
                    docs[doc_id] = others[doc_id] = {}
    return before, after


def _is_bare(record: Mapping[str, Any]) -> bool:
    return record.get("metadata", {}).get("text_missing") is True and not record.get("text")


def _without_texts(old: EvaluationSample, new: EvaluationSample) -> bool:
    """Whether a document that both samples name has its text in one of them only."""
    for name in _DOCS:
        first, second = (
            {doc.doc_id: _is_bare(_record(doc)) for doc in getattr(each, name) or ()} for each in (old, new)
        )
        if any(bare != second[doc_id] for doc_id, bare in first.items() if doc_id in second):
            return True
    return False


def _record(thing: Any) -> dict[str, Any]:
    """A sample, document or response by its fields; what is empty is not there."""
    record: dict[str, Any]
    if isinstance(thing, Document):
        record = {"text": thing.text, "metadata": thing.metadata}
    elif isinstance(thing, Response):
        record = {"text": thing.text, "structured": thing.structured, "metadata": thing.metadata}
    else:
        record = {
            "query": thing.query,
            "relevant_docs": _by_doc_id(thing.relevant_docs),
            "candidate_docs": _by_doc_id(thing.candidate_docs),
            "reference_answer": None if thing.reference_answer is None else _record(thing.reference_answer),
            "labels": thing.labels,
            "metadata": thing.metadata,
        }
    return {name: value for name, value in record.items() if value not in (None, {}, [])}


def _by_doc_id(docs: list[Document] | None) -> dict[str, Any]:
    """Documents by id, in whichever order; by their place where two share an id."""
    listed = docs or []
    by_id = {doc.doc_id: _record(doc) for doc in listed}
    if len(by_id) < len(listed):
        return {f"[{place}]": {"doc_id": doc.doc_id, **_record(doc)} for place, doc in enumerate(listed)}
    return by_id
