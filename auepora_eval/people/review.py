"""Review a dataset: accept, reject or edit its questions, mark gold spans, and write a new version.

Every step is an answer about a sample in `NEW.review/steps.db`, saved before the next question is shown. The
reviewed dataset is computed from the original and the steps. The original is never changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

import msgspec

from ..core.dataset import EvaluationDataset, InMemoryDataset, dataset_fingerprint
from ..core.display import visible_text
from ..core.types import Document, EvaluationSample, Response
from ..errors import DataError, StorageError
from ..io.files import write_bytes
from ..store.labels import Answer, LabelTable

ACCEPT, REJECT = "accept", "reject"
REASONS = ("ambiguous", "not in the documents", "wrong reference answer", "duplicate", "too easy")
_STEPS, _HEADER, _WRITTEN = "steps.db", "review.json", "written.sha256"
_LONGEST = 100_000  # characters of a question or an answer


class Finding(NamedTuple):
    """What a check found about a sample: error, warning or note, and the text."""

    severity: str
    text: str


@dataclass(frozen=True)
class Reviewed:
    """A sample as it is now: edited or not, accepted, rejected or not decided ("")."""

    place: int
    original: EvaluationSample
    sample: EvaluationSample
    decision: str
    reason: str
    findings: Sequence[Finding]

    @property
    def is_edited(self) -> bool:
        """Whether the sample differs from the original."""
        return self.sample != self.original


class Review:
    """A dataset under review."""

    def __init__(
        self,
        dataset: EvaluationDataset,
        folder: Path,
        findings: Mapping[str, Sequence[Finding]] | None = None,
    ) -> None:
        self.dataset, self.folder, self._findings = dataset, folder, findings or {}
        self._samples = list(dataset)
        if not self._samples:
            raise DataError(dataset.name, "there are no samples in it.")
        self._place = {sample.sample_id: place for place, sample in enumerate(self._samples)}
        _check_same_dataset(folder / _HEADER, dataset_fingerprint(self._samples))
        self._steps = LabelTable(folder / _STEPS, "")
        self._one_at_a_time = RLock()
        self._now: dict[str, Reviewed] = {}
        self._refresh(self._place)

    def __len__(self) -> int:
        return len(self._samples)

    def at(self, place: int) -> Reviewed:
        """Return the sample at a place, from 0."""
        if not 0 <= place < len(self._samples):
            raise DataError("review", f"there is no question {place + 1}.")
        return self._now[self._samples[place].sample_id]

    def all(self) -> list[Reviewed]:
        """Return every sample as it is now."""
        return [self._now[sample.sample_id] for sample in self._samples]

    def next_open(self, place: int = 0) -> int | None:
        """Return the next place that is not decided, also before this one; None if all are decided."""
        every = range(len(self._samples))
        return next((each for each in (*every[place:], *every[:place]) if not self.at(each).decision), None)

    @property
    def can_undo(self) -> bool:
        """Whether there is a step to take back."""
        return bool(self._steps.answers)

    def decide(self, place: int, decision: str, reason: str = "") -> None:
        """Accept or reject a sample."""
        if decision not in (ACCEPT, REJECT) or reason not in ("", *REASONS):
            raise DataError("review", f"{decision!r:.20} ({reason!r:.60}) is not a decision.")
        self._add("decide", place, decision=decision, reason=reason if decision == REJECT else "")

    def edit(self, place: int, query: str, reference: str) -> None:
        """Change the question and the reference answer; an empty answer removes it."""
        if not query.strip() or max(len(query), len(reference)) > _LONGEST:
            raise DataError("review", f"a question has from 1 to {_LONGEST:,} characters.")
        self._add("edit", place, query=query, reference=reference)

    def mark(self, place: int, doc: int, start: int, end: int) -> None:
        """Mark a gold span in a relevant document, which is named by its place in the list."""
        document = _document(self.at(place).sample, doc)
        if not 0 <= start < end <= len(document.text):
            raise DataError("review", "the span is not in the document.", fix="Select it again.")
        spans = [*spans_of(document), {"start": start, "end": end, "text": document.text[start:end]}]
        spans.sort(key=lambda span: (span.get("start", 0), span.get("end", 0)))
        self._add("spans", place, doc=doc, spans=spans)

    def unmark(self, place: int, doc: int, span: int) -> None:
        """Remove a gold span of a relevant document, by its place in the list."""
        spans = spans_of(_document(self.at(place).sample, doc))
        if not 0 <= span < len(spans):
            raise DataError("review", "there is no such span.", fix="Load the page again.")
        self._add("spans", place, doc=doc, spans=spans[:span] + spans[span + 1 :])

    def undo(self) -> int | None:
        """Take back the latest step and return the place of its sample; None if there is none."""
        with self._one_at_a_time:
            sample_id = self._steps.undo()
            if sample_id is None:
                return None
            self._refresh([sample_id])
            return self._place.get(sample_id)

    def result(self, *, only_accepted: bool = False, version: str | None = None) -> InMemoryDataset:
        """Return the new version: without what was rejected, and if asked without what is not decided."""
        wanted = (ACCEPT,) if only_accepted else (ACCEPT, "")
        samples = [one.sample for one in self.all() if one.decision in wanted]
        info = {**self.dataset.info, **({} if version is None else {"version": version})}
        return InMemoryDataset(self.dataset.name, samples, info=info, documents=self.dataset.documents)

    def close(self) -> None:
        """Close the file."""
        self._steps.close()

    def __enter__(self) -> Review:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, kind: str, place: int, **facts: object) -> None:
        with self._one_at_a_time:
            sample_id = self.at(place).original.sample_id
            self._steps.add(sample_id, kind, facts)
            self._refresh([sample_id])

    def _refresh(self, sample_ids: Sequence[str] | Mapping[str, int]) -> None:
        """Compute samples again from the original and the steps."""
        steps: dict[str, list[Answer]] = {}
        for step in self._steps.answers:
            steps.setdefault(step.item, []).append(step)
        for sample_id in sample_ids:
            if sample_id not in self._place:
                continue
            place = self._place[sample_id]
            original = self._samples[place]
            findings = self._findings.get(sample_id, ())
            start = Reviewed(place, original, original, "", "", findings)
            try:
                self._now[sample_id] = reduce(_after, steps.get(sample_id, ()), start)
            except (KeyError, IndexError, TypeError) as error:
                what = f"a step of {sample_id!r:.60} cannot be used: it was edited."
                raise DataError(str(self.folder / _STEPS), what) from error


def _after(one: Reviewed, step: Answer) -> Reviewed:
    """Return a reviewed sample after one more step."""
    if step.question == "decide":
        return replace(one, decision=step.answer["decision"], reason=step.answer["reason"])
    return replace(one, sample=_changed(one.sample, step))


def _changed(sample: EvaluationSample, step: Answer) -> EvaluationSample:
    """Return a sample after an edit or a change of its spans."""
    facts = step.answer
    if step.question == "edit":
        reference = None
        if facts["reference"]:
            before = sample.reference_answer
            # The alternatives belong to the old answer; they stay only if it stays.
            reference = (
                before if before and before.text == facts["reference"] else Response(facts["reference"])
            )
        return replace(sample, query=facts["query"], reference_answer=reference)
    docs = list(sample.relevant_docs or ())
    doc = docs[facts["doc"]]
    metadata = {name: value for name, value in doc.metadata.items() if name != "spans"}
    docs[facts["doc"]] = replace(
        doc, metadata={**metadata, **({"spans": facts["spans"]} if facts["spans"] else {})}
    )
    return replace(sample, relevant_docs=docs)


def _document(sample: EvaluationSample, doc: int) -> Document:
    docs = sample.relevant_docs or []
    if not 0 <= doc < len(docs):
        raise DataError("review", "there is no such document.", fix="Load the page again.")
    return docs[doc]


def spans_of(doc: Document) -> list[dict[str, Any]]:
    """Return the gold spans of a document."""
    spans = doc.metadata.get("spans")
    return [dict(span) for span in spans if isinstance(span, Mapping)] if isinstance(spans, list) else []


def selected_span(text: str, start: int, end: int, shown: str) -> tuple[int, int]:
    """Return the place in a text of what was selected on a page; DataError if it is not what was shown.

    A browser counts in units of UTF-16, and a page does not show control characters.

    >>> selected_span("a🙂b\\u202ec", 3, 5, "bc")
    (2, 5)
    """
    unit, first = 0, None
    for place, letter in enumerate(text):
        if not visible_text(letter):
            continue
        if unit == start:
            first = place
        unit += 2 if ord(letter) > 0xFFFF else 1
        if unit == end and first is not None and _flat(text[first : place + 1]) == _flat(shown) != "":
            return first, place + 1
    raise DataError("review", "the selected text is not in the document.", fix="Select it again.")


def _flat(text: str) -> str:
    # A form sends line breaks in its own way.
    return " ".join(visible_text(text).split())


# The new version is written again whenever a review is continued: only a file that we wrote is replaced.


def check_not_overwritten(target: Path, folder: Path) -> None:
    """Raise StorageError if a file of the name of the new version is not what the review wrote there."""
    if not target.exists():
        return
    note = folder / _WRITTEN
    if not note.exists() or note.read_text(encoding="utf-8").strip() != _sha256(target):
        raise StorageError(
            f"{target} exists already, and this review did not write it. Choose another name, or use --force "
            "to replace it."
        )


def note_written(target: Path, folder: Path) -> None:
    """Note what the review wrote, so that it may be replaced later."""
    write_bytes(folder / _WRITTEN, f"{_sha256(target)}\n".encode(), force=True)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_same_dataset(path: Path, fingerprint: str) -> None:
    """Note which dataset is reviewed; DataError if it was another one before."""
    if not path.exists():
        write_bytes(path, msgspec.json.encode({"dataset": fingerprint}) + b"\n")
        return
    try:
        known = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StorageError(f"{path} cannot be read: {error}.") from None
    if not isinstance(known, dict) or known.get("dataset") != fingerprint:
        what = "the dataset has changed since this review was started."
        raise DataError(str(path.parent), what, fix="Review it into another file: --out NEW.")
