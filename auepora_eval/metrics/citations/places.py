"""Citation metrics against gold: are the cited places the right ones, and do they exist?

The gold is `metadata["citations"]` of a sample, a list of {"file_name", "page_number", "start_char",
"end_char"}. Where these name documents without spans, the span metrics take `metadata["spans"]` of the
relevant documents. What an answer cites is `metadata["citations"]` of its response, in the same form, or else
the marks in its text. A place that is cited twice counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.matching import grade_of
from ...core.metrics_base import metric
from ...core.types import EvaluationSample, SampleScore
from ...errors import ScoringError
from .answer import CitationMetric, CitationShare, CitedAnswer, share, spans_of
from .sources import (
    FABRICATED,
    GOOD,
    OUT_OF_RANGE,
    OVERLAP,
    TOLERANCE,
    UNRESOLVED,
    Match,
    citations_of,
    found,
)

_CITES_NOTHING = "the answer cites nothing"


class SpanAgreement(CitationShare):
    """A share of the gold spans, by the cited span that was assigned to each."""

    requires = ("metadata.citations",)
    scores_blank = True
    tolerance: int = TOLERANCE

    def of_answer(self, sample: EvaluationSample, answer: CitedAnswer) -> float | SampleScore:
        gold, _ = answer.span_places
        counted = self.counted(answer.matches(self.tolerance))
        return share(counted, len(gold), "the gold citations have no spans")

    def counted(self, assigned: Sequence[Match]) -> float:
        """Return what the assigned pairs are worth."""
        raise NotImplementedError

    def whole_if_failed(self, sample: EvaluationSample) -> float:
        try:
            gold = citations_of(sample.metadata.get("citations") or [], "the gold citations")
        except ScoringError:  # the sample failed for its gold: nothing can be said
            return 0.0
        spans = {citation for citation in gold if citation.span is not None}
        return float(len(spans or spans_of(sample)))


@metric("citation_span_accuracy@{tolerance?}", ranges={"tolerance": "[0, inf)"})
class CitationSpanAccuracy(SpanAgreement):
    """How nearly the cited spans are the gold ones, forgiving a few characters at either end.

    Mean over all gold spans of the Jaccard (characters in both / in either) with the cited span assigned to
    it, after boundaries within the tolerance (10 characters) were snapped to the gold ones. One to one, in
    one file and page, the best assignment; gold without a partner counts 0. Spans are half-open. A citation
    without a span cites the whole document, and matches no gold span if the document's text is not known.
    """

    tolerance: int = TOLERANCE
    counted_as = ("sum_of_jaccards", "gold_spans")

    def counted(self, assigned: Sequence[Match]) -> float:
        return sum(match.tolerant for match in assigned)


@metric("citation_span_exact")
class CitationSpanExact(SpanAgreement):
    """How nearly the cited spans are the gold ones, to the character.

    The same pairs as citation_span_accuracy, with their plain Jaccard: never more than that.
    """

    listed = False
    counted_as = ("sum_of_jaccards", "gold_spans")

    def counted(self, assigned: Sequence[Match]) -> float:
        return sum(match.exact for match in assigned)


@metric("citation_span_perfect")
class CitationSpanPerfect(SpanAgreement):
    """Share of the gold spans that are cited to the character."""

    listed = False
    counted_as = ("perfect_matches", "gold_spans")

    def counted(self, assigned: Sequence[Match]) -> float:
        return float(sum(match.exact == 1.0 for match in assigned))


@metric("citation_span_good@{tolerance?}", ranges={"tolerance": "[0, inf)"})
class CitationSpanGood(SpanAgreement):
    """Share of the gold spans that are cited well: with a tolerant Jaccard of at least 0.8.

    See citation_span_accuracy.
    """

    listed = False
    tolerance: int = TOLERANCE
    counted_as = ("good_matches", "gold_spans")

    def counted(self, assigned: Sequence[Match]) -> float:
        return float(sum(match.tolerant >= GOOD for match in assigned))


@dataclass
class FoundCitations(CitationMetric):
    """A metric of how many gold places are cited, and how many cited places are gold."""

    overlap: float = OVERLAP
    requires = ("metadata.citations",)
    ranges = {"overlap": "(0, 1]"}  # noqa: RUF012

    def of_answer(self, sample: EvaluationSample, answer: CitedAnswer) -> float | SampleScore:
        gold, cited = answer.places
        # Many-to-many: one long citation may cover two gold places.
        right_gold, right_cited = found(gold, cited, self.overlap)
        return self.of_counts(right_cited / len(cited) if cited else 0.0, right_gold / len(gold))

    def of_counts(self, precision: float, recall: float) -> float:
        """Return the score from the shares of right citations and of found gold."""
        raise NotImplementedError


@metric("citation_precision@{overlap?}")
class CitationPrecision(FoundCitations):
    """Share of the citations that are in the gold; 0 if nothing is cited though there is gold.

    Cited places that agree with a gold one / cited places, by answer. They agree in one file (and page, where
    both name one) with a tolerant Jaccard of at least 0.5, or if the gold one is a whole document. A citation
    without a span is the span of the whole document; citation_relevance goes by documents alone.
    """

    def of_counts(self, precision: float, recall: float) -> float:
        return precision


@metric("citation_recall@{overlap?}")
class CitationRecall(FoundCitations):
    """Share of the gold citations that the answer makes.

    Gold places that agree with a cited one / gold places, by answer; citation_precision says what agrees.
    """

    def of_counts(self, precision: float, recall: float) -> float:
        return recall


@metric("citation_f1@{overlap?}")
class CitationF1(FoundCitations):
    """Harmonic mean of citation_precision and citation_recall, by answer; 0 where both are."""

    def of_counts(self, precision: float, recall: float) -> float:
        return 2 * precision * recall / (precision + recall) if precision and recall else 0.0


@metric("citation_relevance")
class CitationRelevance(CitationShare):
    """Share of the citations that lead to a relevant document, whatever span of it.

    Over all answers. What leads nowhere is not relevant; an answer that cites nothing is skipped.
    """

    listed = False
    counted_as = ("relevant_citations", "total_citations")
    requires = ("relevant_docs",)

    def of_answer(self, sample: EvaluationSample, answer: CitedAnswer) -> float | SampleScore:
        source = answer.sources.source
        relevant = {source(doc) for doc in sample.relevant_docs or () if grade_of(doc) > 0}
        documents = [answer.find(citation).document for citation in answer.cited]
        right = sum(doc is not None and source(doc) in relevant for doc in documents)
        return share(right, len(documents), _CITES_NOTHING)


class TroubleRate(CitationShare):
    """A share of citations that there is something wrong with."""

    higher_is_better = False
    troubles: frozenset[str]

    def of_answer(self, sample: EvaluationSample, answer: CitedAnswer) -> float | SampleScore:
        cited = answer.cited
        wrong = sum(answer.find(citation).trouble in self.troubles for citation in cited)
        return share(wrong, len(cited), _CITES_NOTHING)


@metric("citation_fabricated_rate")
class CitationFabricatedRate(TroubleRate):
    """Share of the citations that are made up: no document has that name, or not the words quoted from it.

    Over all answers. Known are the documents that were retrieved, and the relevant and candidate ones of the
    sample.
    """

    listed = False
    counted_as = ("fabricated_citations", "total_citations")
    troubles = frozenset((UNRESOLVED, FABRICATED))


@metric("citation_out_of_range_rate")
class CitationOutOfRangeRate(TroubleRate):
    """Share of the citations that point beyond what there is: [7] of five documents, a span behind the end.

    Over all answers. An answer that cites nothing is skipped.
    """

    listed = False
    counted_as = ("out_of_range_citations", "total_citations")
    troubles = frozenset((OUT_OF_RANGE,))
