"""Retrieval measured in characters of the source: it survives another way of cutting it into chunks.

The gold is spans of a source document: `metadata["spans"]` of a relevant document is a list of {"start",
"end"}, characters counted from 0, `end` not included; the source is its `metadata["source"]`, or its id. A
retrieved chunk says where it is from by `metadata["source"]`, `["start"]` and `["end"]`; one without start
and end is the whole document. Characters that several chunks hold count once. Relevant documents without
spans are left out, and so are those with a grade of 0 or less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.metrics_base import SampleMetric, metric, skip
from ...core.types import Document, EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...errors import ScoringError
from ..retrieval_basic import grade_of

Interval = tuple[int, int]
Marked = dict[str, list[Interval]]  # by source: disjoint half-open intervals, in order


@dataclass
class SpanMetric(SampleMetric):
    """A metric of the characters in the gold, in the first k chunks, and in both."""

    k: int
    target = TargetCategory.RETRIEVAL_RELEVANCE
    requires = ("relevant_docs",)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        gold = merged(
            (_source(doc), _interval(doc, span))
            for doc in sample.relevant_docs or ()
            for span in _spans(doc)
            if grade_of(doc) > 0
        )
        if not gold:
            return skip("no relevant document of the sample has spans")
        ranked = sorted(output.retrieved, key=lambda hit: hit.rank)[: self.k]
        chunks = merged((_source(hit.doc), _interval(hit.doc, hit.doc.metadata)) for hit in ranked)
        return self.of_lengths(length(gold), length(chunks), shared_length(gold, chunks))

    def of_lengths(self, gold: int, chunks: int, both: int) -> float:
        """Return the score from the numbers of characters."""
        raise NotImplementedError


@metric("span_recall@{k}")
class SpanRecall(SpanMetric):
    """Share of the gold characters that the first k chunks hold.

    |gold ∩ chunks| / |gold|, in characters of the source: however the source is cut, chunks that
    cover all of the gold score 1.
    """

    def of_lengths(self, gold: int, chunks: int, both: int) -> float:
        return both / gold


@metric("span_precision@{k}")
class SpanPrecision(SpanMetric):
    """Share of the characters in the first k chunks that belong to the gold.

    |gold ∩ chunks| / |chunks|, where an overlap between chunks counts once; 0 if nothing was retrieved.
    Long chunks lower it: they make the reader go through more for the same find.
    """

    def of_lengths(self, gold: int, chunks: int, both: int) -> float:
        return both / chunks if chunks else 0.0


@metric("span_iou@{k}")
class SpanIoU(SpanMetric):
    """How nearly the first k chunks are the gold, no less and no more: 1 only if they are just that.

    |gold ∩ chunks| / |gold ∪ chunks|, in characters of the source (intersection over union).
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
    #
    # A ∩ B
    #  =
    # A
    #  +
    # B
    #  -
    # A ∪ B
    # , without a second sweep over the intervals.
    return length(one) + length(other) - length(either)


def _length(intervals: list[Interval]) -> int:
    return sum(end - start for start, end in intervals)


def _source(doc: Document) -> str:
    return str(doc.metadata.get("source") or doc.doc_id)


def _spans(doc: Document) -> list[Mapping[str, Any]]:
    spans = doc.metadata.get("spans") or []
    if not isinstance(spans, list) or not all(isinstance(span, Mapping) for span in spans):
        raise ScoringError(
            f"the spans of document {doc.doc_id!r} are {str(spans)[:60]!r}, not a list of start and end"
        )
    return spans


def _interval(doc: Document, place: Mapping[str, Any]) -> Interval:
    """Return where a span or a chunk starts and ends; without either, a chunk is its whole document."""
    start, end = place.get("start"), place.get("end")
    if start is None and end is None and place is doc.metadata:
        return 0, len(doc.text)
    for number in (start, end):
        if isinstance(number, bool) or not isinstance(number, int):
            raise ScoringError(
                f"a span of document {doc.doc_id!r} goes from {start!r} to {end!r}, not whole numbers"
            )
    if not 0 <= start < end:  # type: ignore[operator]  # whole numbers, as checked above
        raise ScoringError(f"document {doc.doc_id!r} has a span from {start} to {end}, which is not a span")
    return start, end  # type: ignore[return-value]
