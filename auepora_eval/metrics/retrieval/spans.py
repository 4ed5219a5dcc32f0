"""Retrieval measured in characters of the source: it survives another way of cutting it into chunks.

The fields are those of `SpanRecall`. Spans are half-open; without an end, a chunk is as long as its text. A
chunk without a start is where the dataset says that the chunk of this id is, or else is searched in the text
of the relevant document. A document that has neither a source nor a start is whole. Characters that several
chunks hold count once. Relevant documents without spans, or with a grade of 0 or less, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...core.matching import Span, by_any_name, grade_of, located, own_span, source_of, spans_in
from ...core.metrics_base import SampleMetric, metric, skip
from ...core.types import Document, EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...text.document_names import base_name
from .hits import first_documents

Interval = Span
Marked = dict[str, list[Interval]]  # by source: disjoint half-open intervals, in order


@dataclass
class SpanMetric(SampleMetric):
    """A metric of the characters in the gold, in the first k chunks, and in both."""

    k: int
    target = TargetCategory.RETRIEVAL_RELEVANCE
    requires = ("relevant_docs",)
    scores_blank = True

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        gold = merged(
            (str(span.get("source") or source_of(doc)), (span["start"], span["end"]))
            for doc in sample.relevant_docs or ()
            for span in spans_in(doc)
            if grade_of(doc) > 0
        )
        if not gold:
            return skip("no relevant document of the sample has spans")
        try:
            judged = [*(sample.relevant_docs or ()), *(sample.candidate_docs or ())]
            known = _Known(judged, located(judged))
            chunks = merged(_place(doc, known, gold) for doc in first_documents(output, self.k))
        except _NotLocatedError as error:
            return skip(str(error))
        return self.of_lengths(length(gold), length(chunks), shared_length(gold, chunks))

    def of_lengths(self, gold: int, chunks: int, both: int) -> float:
        """Return the score from the numbers of characters."""
        raise NotImplementedError


@metric("span_recall@{k}")
class SpanRecall(SpanMetric):
    """Share of the gold characters that the first k chunks hold, however the source is cut.

    |gold ∩ chunks| / |gold|, in characters of the source.

    Fields: a relevant document has `metadata.spans`, a list of {"start", "end"}. A retrieved chunk has
    `metadata.source`, and its place as `start` and `end`, `start_index` (LangChain), `start_char_idx`
    (LlamaIndex), `split_idx_start` (Haystack) or `start_char`. A chunk without a place is searched in the
    text of the relevant document; if it is not found once, the sample is skipped with the reason.
    """

    def of_lengths(self, gold: int, chunks: int, both: int) -> float:
        return both / gold


@metric("span_precision@{k}")
class SpanPrecision(SpanMetric):
    """Share of the characters in the first k chunks that belong to the gold.

    |gold ∩ chunks| / |chunks|, where an overlap between chunks counts once; 0 if nothing was retrieved. It
    needs the fields of span_recall.
    """

    def of_lengths(self, gold: int, chunks: int, both: int) -> float:
        return both / chunks if chunks else 0.0


@metric("span_iou@{k}")
class SpanIoU(SpanMetric):
    """How nearly the first k chunks are the gold, no less and no more (intersection over union).

    |gold ∩ chunks| / |gold ∪ chunks|, in characters of the source. It needs the fields of span_recall.
    """

    def of_lengths(self, gold: int, chunks: int, both: int) -> float:
        return both / (gold + chunks - both)


def merged(pieces: Iterable[tuple[str, Interval]]) -> Marked:
    """Return the union of intervals by source; a source without any is not listed.

    >>> merged([("a", (5, 9)), ("a", (0, 6)), ("b", (1, 2))])
    {'a': [(0, 9)], 'b': [(1, 2)]}
    """
    marked: Marked = {}
    # Sorted by source and start: an interval can only touch the one before it.
    for source, (start, end) in sorted(pieces):
        intervals = marked.setdefault(source, [])
        if intervals and start <= intervals[-1][1]:
            intervals[-1] = (intervals[-1][0], max(end, intervals[-1][1]))
        else:
            intervals.append((start, end))
    return {source: intervals for source, intervals in marked.items() if _length(intervals)}


def length(marked: Marked) -> int:
    """Return how many characters are marked."""
    return sum(map(_length, marked.values()))


def shared_length(one: Marked, other: Marked) -> int:
    """Return how many characters are marked in both."""
    either = merged(
        (source, interval)
        for marked in (one, other)
        for source, intervals in marked.items()
        for interval in intervals
    )
    # A ∩ B = A + B - A ∪ B, without a second sweep over the intervals.
    return length(one) + length(other) - length(either)


def _length(intervals: list[Interval]) -> int:
    return sum(end - start for start, end in intervals)


class _NotLocatedError(Exception):
    """A chunk says nothing about where it is from, and its text does not show it."""


class _Known(NamedTuple):
    """The documents of the dataset, and the source of each with its place there, by its id."""

    judged: Sequence[Document]
    places: Mapping[str, tuple[str, Span | None]]

    def copy_of(self, doc: Document) -> str:
        """Return the id of the document with the same text; the document's own id if there is none."""
        text = doc.text.strip()
        same = (other.doc_id for other in self.judged if text and other.text.strip() == text)
        return next(same, doc.doc_id)


def _place(doc: Document, known: _Known, gold: Marked) -> tuple[str, Interval]:
    """Return the source of a retrieved chunk, and where in it the chunk starts and ends."""
    own, span, names = source_of(doc), own_span(doc), by_any_name(gold)
    named = next((names[name] for name in (own, base_name(own)) if name in names), own)
    has_source = own != doc.doc_id
    if has_source and span is not None:
        return named, span
    is_judged = doc.doc_id in known.places
    source, place = known.places.get(doc.doc_id if is_judged else known.copy_of(doc), (own, None))
    # Two files may have the same text.
    if has_source and (place is None or not (is_judged or source == named)):
        source, place = named, None
    span = span or place
    if span is not None:
        return source, span
    if source not in gold:
        # Where it is in its source changes nothing, but two chunks must not seem to overlap.
        return f"{source}\0{doc.text}" if has_source else source, (0, len(doc.text))
    # A text that is shorter than its spans reach is an excerpt.
    texts = (other.text for other in known.judged if other.doc_id == source)
    whole = next((text for text in texts if len(text) >= gold[source][-1][1]), "")
    if not has_source and not (whole and doc.text):
        return source, (0, len(whole or doc.text))
    return source, _located(doc, source, whole)


def _located(doc: Document, source: str, whole: str) -> Interval:
    """Return where a chunk's text is in the text of the document that it is from."""
    start = whole.find(doc.text) if doc.text else -1
    if start < 0 or whole.find(doc.text, start + 1) >= 0:
        reason = "its text is not in the text of the relevant document, or more than once"
        raise _NotLocatedError(f"the chunk {doc.doc_id!r:.60} of {source!r:.60} has no start, and {reason}")
    return start, start + len(doc.text)
