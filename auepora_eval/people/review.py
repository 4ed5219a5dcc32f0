"""Review a dataset: accept, reject or edit its questions, mark gold spans, and write a new version.

Every step is an answer about a sample in `NEW.review/steps.db`, saved before the next question is shown: all
that was changed of the sample so far. The original is never changed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..core.dataset import EvaluationDataset, InMemoryDataset, dataset_fingerprint
from ..core.display import visible_text
from ..core.matching import chunk_span
from ..core.types import Document, EvaluationSample, Response
from ..errors import DataError, StorageError
from ..io.loader import save_dataset
from ..store.labels import LabelTable

ACCEPT, REJECT = "accept", "reject"
REASONS = ("ambiguous", "not in the documents", "wrong reference answer", "duplicate", "too easy")
_STEP = "review"  # what was changed of a sample: its decision, its texts, its gold spans
# Answers about the review itself: the hashes of its two files, and the name of the first.
_DATASET, _WRITTEN, _SOURCE = "dataset", "written", "source"
STEPS, SUFFIX = "steps.db", ".review"  # of the folder beside the new version
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
    findings: Sequence[Finding]
    decision: str = ""
    reason: str = ""

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
        source: str = "",
    ) -> None:
        self.dataset, self._findings, self._source = dataset, findings or {}, source
        self.force = False  # whether another file of the name of the new version may be replaced
        self.target = folder.with_name(folder.name.removesuffix(SUFFIX))  # the file of the new version
        self._samples = list(dataset)
        if not self._samples:
            raise DataError(dataset.name, "there are no samples in it.")
        self._steps = LabelTable(folder / STEPS, "")
        fingerprint = dataset_fingerprint(self._samples)
        if self._known(_DATASET) not in (None, fingerprint):
            what = "the dataset has changed since this review was started."
            raise DataError(str(folder), what, fix="Review it into another file: --out NEW.")
        self._fingerprint = fingerprint

    def __len__(self) -> int:
        return len(self._samples)

    def at(self, place: int) -> Reviewed:
        """Return the sample at a place, from 0."""
        if not 0 <= place < len(self._samples):
            raise DataError("review", f"there is no question {place + 1}.")
        return self._now(place, self._states().get(self._samples[place].sample_id, {}))

    def all(self) -> list[Reviewed]:
        """Return every sample as it is now."""
        states = self._states()
        return [self._now(place, states.get(one.sample_id, {})) for place, one in enumerate(self._samples)]

    def next_open(self, place: int = 0) -> int | None:
        """Return the next place that is not decided, also before this one; None if all are decided."""
        undecided = [one.place for one in self.all() if not one.decision]
        return next((each for each in undecided if each >= place), undecided[0] if undecided else None)

    @property
    def can_undo(self) -> bool:
        """Whether there is a step to take back."""
        return self._steps.last((_STEP,)) is not None

    def decide(self, place: int, decision: str, reason: str = "") -> None:
        """Accept or reject a sample."""
        if decision not in (ACCEPT, REJECT) or reason not in ("", *REASONS):
            raise DataError("review", f"{decision!r:.20} ({reason!r:.60}) is not a decision.")
        self._add(place, decision=decision, reason=reason if decision == REJECT else "")

    def edit(self, place: int, query: str, reference: str) -> None:
        """Change the question and the reference answer; an empty answer removes it."""
        if not query.strip() or max(len(query), len(reference)) > _LONGEST:
            raise DataError("review", f"a question has from 1 to {_LONGEST:,} characters.")
        self._add(place, query=query, reference=reference)

    def mark(self, place: int, doc: int, start: int, end: int) -> None:
        """Mark a gold span in a relevant document, which is named by its place in the list."""
        document = _document(self.at(place).sample, doc)
        if not 0 <= start < end <= len(document.text):
            raise DataError("review", "the span is not in the document.", fix="Select it again.")
        first, _ = chunk_span(document) or (0, 0)  # spans count the characters of the source
        new = {"start": first + start, "end": first + end, "text": document.text[start:end]}
        spans = [*spans_of(document), new]
        self._mark(place, doc, sorted(spans, key=lambda span: (span.get("start", 0), span.get("end", 0))))

    def unmark(self, place: int, doc: int, span: int) -> None:
        """Remove a gold span of a relevant document, by its place in the list."""
        spans = spans_of(_document(self.at(place).sample, doc))
        if not 0 <= span < len(spans):
            raise DataError("review", "there is no such span.", fix="Load the page again.")
        self._mark(place, doc, spans[:span] + spans[span + 1 :])

    def undo(self) -> int | None:
        """Take back the latest step and return the place of its sample; None if there is none."""
        sample_id = self._steps.undo((_STEP,))
        places = (place for place, sample in enumerate(self._samples) if sample.sample_id == sample_id)
        return next(places, None)

    def result(self) -> InMemoryDataset:
        """Return the new version, without what was rejected."""
        samples = [one.sample for one in self.all() if one.decision != REJECT]
        info = dict(self.dataset.info)
        return InMemoryDataset(self.dataset.name, samples, info=info, documents=self.dataset.documents)

    def in_words(self) -> str:
        """Return how many questions were accepted, rejected, not decided and edited."""
        every = self.all()
        counts = Counter(one.decision for one in every)
        edited = sum(one.is_edited for one in every)
        return (
            f"{counts[ACCEPT]} accepted, {counts[REJECT]} rejected, {counts['']} not decided, {edited} edited"
        )

    def check_not_overwritten(self) -> None:
        """Raise StorageError if a file of the name of the new version is not what the review wrote there."""
        if not self.force and self.target.exists() and self._known(_WRITTEN) != _sha256(self.target):
            raise StorageError(
                f"{self.target} exists already, and this review did not write it. Choose another name, or "
                "use --force to replace it."
            )

    def write(self) -> InMemoryDataset:
        """Write the new version and return it; the review may replace it when it is continued."""
        self.check_not_overwritten()
        result = self.result()
        save_dataset(result, self.target, force=True)
        self._steps.add("", _WRITTEN, _sha256(self.target), instead_of=(_WRITTEN,))
        return result

    def _known(self, question: str) -> Any:
        latest = self._steps.last((question,))
        return None if latest is None else latest.answer

    def _states(self) -> dict[str, dict[str, Any]]:
        """Return what was changed of each sample, by its id: the latest step has all of it."""
        return {step.item: step.answer for step in self._steps.answers if step.question == _STEP}

    def _add(self, place: int, **changes: object) -> None:
        sample_id = self.at(place).original.sample_id
        if self._known(_DATASET) is None:
            self._steps.add("", _DATASET, self._fingerprint)
            self._steps.add("", _SOURCE, self._source)
        self._steps.add(sample_id, _STEP, {**self._states().get(sample_id, {}), **changes})

    def _mark(self, place: int, doc: int, spans: Sequence[Mapping[str, Any]]) -> None:
        marked = self._states().get(self.at(place).original.sample_id, {}).get("spans", {})
        self._add(place, spans={**marked, str(doc): spans})

    def _now(self, place: int, state: Mapping[str, Any]) -> Reviewed:
        """Return a sample with what was changed of it."""
        original = sample = self._samples[place]
        if "query" in state:
            sample = _edited(sample, state["query"], state["reference"])
        for doc, spans in state.get("spans", {}).items():
            sample = _with_spans(sample, int(doc), spans)
        findings = self._findings.get(original.sample_id, ())
        return Reviewed(place, original, sample, findings, state.get("decision", ""), state.get("reason", ""))


class Started(NamedTuple):
    """A review that was started: the name of its dataset, and how many questions are decided."""

    source: str
    decided: int


def started(folder: Path) -> Started:
    """Return how far the review of a folder is, without reading its dataset."""
    steps = LabelTable(folder / STEPS, "")
    source = steps.last((_SOURCE,))
    states = {step.item: step.answer for step in steps.answers if step.question == _STEP}
    decided = sum("decision" in state for state in states.values())
    return Started("" if source is None else str(source.answer), decided)


def _edited(sample: EvaluationSample, query: str, reference: str) -> EvaluationSample:
    before = sample.reference_answer
    # The alternatives belong to the old answer; they stay only if it stays.
    if before is None or before.text != reference:
        before = Response(reference) if reference else None
    return replace(sample, query=query, reference_answer=before)


def _with_spans(sample: EvaluationSample, doc: int, spans: list[dict[str, Any]]) -> EvaluationSample:
    docs = list(sample.relevant_docs or ())
    metadata = {name: value for name, value in docs[doc].metadata.items() if name != "spans"}
    docs[doc] = replace(docs[doc], metadata={**metadata, "spans": spans} if spans else metadata)
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


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
