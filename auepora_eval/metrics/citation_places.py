"""Citation metrics against gold: are the cited places the right ones, and do they exist?

The gold is `metadata["citations"]` of a sample, a list of {"file_name", "page_number", "start_char",
"end_char"}. What an answer cites is `metadata["citations"]` of its response, in the same form, or else the
marks in its text. A place that is cited twice counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..core.metrics_base import METRICS, skip
from ..core.types import EvaluationSample, SampleScore
from ..errors import ScoringError
from .citation_answer import CitedAnswer
from .citation_base import CitationMetric, CitationShare, share
from .citation_sources import FABRICATED, OUT_OF_RANGE, UNRESOLVED, citations_of, source_of
from .citation_spans import GOOD, OVERLAP, TOLERANCE, Match, found
from .retrieval_hits import grade_of

_CITES_NOTHING = "the answer cites nothing"


class SpanAgreement(CitationShare):
    """A share of the gold spans, by the cited span that was assigned to each."""

    requires = ("metadata.citations",)
    tolerance: int = TOLERANCE

    def of_answer(self, sample: EvaluationSample, answer: CitedAnswer) -> float | SampleScore:
        gold, cited = answer.places
        spans = sum(place.span is not None for place in gold)
        if cited and all(place.span is None for place in cited):
            return skip("the citations have no spans")
        counted = self.counted(answer.matches(self.tolerance))
        return share(counted, spans, "the gold citations have no spans")

    def counted(self, assigned: Sequence[Match]) -> float:
        """What the assigned pairs are worth."""
        raise NotImplementedError

    def whole_if_failed(self, sample: EvaluationSample) -> float:
        try:
            gold = citations_of(sample.metadata.get("citations") or [], "the gold citations")
        except ScoringError:  # the sample failed for its gold: nothing can be said
            return 0.0
        return float(len({citation for citation in gold if citation.span is not None}))

    def _name(self) -> str:
        if isinstance(self.tolerance, bool) or not isinstance(self.tolerance, int) or self.tolerance < 0:
            raise ValueError(
                f"the tolerance must be a whole number of characters, 0 or more, not {self.tolerance!r}"
            )
        return self.base if self.tolerance == TOLERANCE else f"{self.base}@{self.tolerance}"


@METRICS.add("citation_span_accuracy")
@dataclass
class CitationSpanAccuracy(SpanAgreement):
    """How nearly the cited spans are the gold ones, forgiving a few characters at either end.

    Mean over all gold spans of the Jaccard (characters in both / in either) with the cited span assigned to
    it, after boundaries within the tolerance (10 characters) were snapped to the gold ones. One to one, in
    one file and page, the best assignment; gold without a partner counts 0. Spans are half-open.
    """

    tolerance: int = TOLERANCE
    base = "citation_span_accuracy"
    counted_as = ("sum_of_jaccards", "gold_spans")

    def __post_init__(self) -> None:
        self.name = self._name()

    def counted(self, assigned: Sequence[Match]) -> float:
        return sum(match.tolerant for match in assigned)


@METRICS.add("citation_span_exact")
@dataclass
class CitationSpanExact(SpanAgreement):
    """How nearly the cited spans are the gold ones, to the character.

    The same pairs as citation_span_accuracy, with their plain Jaccard: never more than that.
    """

    base = "citation_span_exact"
    counted_as = ("sum_of_jaccards", "gold_spans")

    def counted(self, assigned: Sequence[Match]) -> float:
        return sum(match.exact for match in assigned)


@METRICS.add("citation_span_perfect")
@dataclass
class CitationSpanPerfect(SpanAgreement):
    """Share of the gold spans that are cited to the character.

    Gold spans whose assigned cited span is equal / gold spans. Each of them is also a good match.
    """

    base = "citation_span_perfect"
    counted_as = ("perfect_matches", "gold_spans")

    def counted(self, assigned: Sequence[Match]) -> float:
        return float(sum(match.exact == 1.0 for match in assigned))


@METRICS.add("citation_span_good")
@dataclass
class CitationSpanGood(SpanAgreement):
    """Share of the gold spans that are cited well: with a tolerant Jaccard of at least 0.8.

    Gold spans whose assigned cited span reaches that / gold spans; see citation_span_accuracy.
    """

    tolerance: int = TOLERANCE
    base = "citation_span_good"
    counted_as = ("good_matches", "gold_spans")

    def __post_init__(self) -> None:
        self.name = self._name()

    def counted(self, assigned: Sequence[Match]) -> float:
        return float(sum(match.tolerant >= GOOD for match in assigned))


class FoundCitations(CitationMetric):
    """A metric of how many gold places are cited, and how many cited places are gold."""

    requires = ("metadata.citations",)
    overlap: float = OVERLAP

    def __post_init__(self) -> None:
        if not 0 < self.overlap <= 1:
            raise ValueError(f"the overlap must be above 0 and at most 1, not {self.overlap!r}")
        self.name = self.base if self.overlap == OVERLAP else f"{self.base}@{self.overlap!r}"

    def of_answer(self, sample: EvaluationSample, answer: CitedAnswer) -> float | SampleScore:
        gold, cited = answer.places
        right_gold, right_cited = found(gold, cited, answer.overlapping(), self.overlap)
        return self.of_counts(right_cited / len(cited) if cited else 0.0, right_gold / len(gold))

    def of_counts(self, precision: float, recall: float) -> float:
        """The score from the shares of right citations and of found gold."""
        raise NotImplementedError


@METRICS.add("citation_precision")
@dataclass
class CitationPrecision(FoundCitations):
    """Share of the citations that are in the gold; 0 if nothing is cited though there is gold.

    Cited places that agree with a gold one / cited places, by answer. They agree in one file (and page, where
    both name one) with a tolerant Jaccard of at least 0.5, or if one of them is a whole document.
    """

    overlap: float = OVERLAP
    base = "citation_precision"

    def of_counts(self, precision: float, recall: float) -> float:
        return precision


@METRICS.add("citation_recall")
@dataclass
class CitationRecall(FoundCitations):
    """Share of the gold citations that the answer makes.

    Gold places that agree with a cited one / gold places, by answer; citation_precision says what agrees.
    """

    overlap: float = OVERLAP
    base = "citation_recall"

    def of_counts(self, precision: float, recall: float) -> float:
        return recall


@METRICS.add("citation_f1")
@dataclass
class CitationF1(FoundCitations):
    """Harmonic mean of citation_precision and citation_recall, by answer; 0 where both are."""

    overlap: float = OVERLAP
    base = "citation_f1"

    def of_counts(self, precision: float, recall: float) -> float:
        return 2 * precision * recall / (precision + recall) if precision and recall else 0.0


@METRICS.add("citation_relevance")
@dataclass
class CitationRelevance(CitationShare):
    """Share of the citations that lead to a relevant document, whatever span of it.

    Citations whose document is among the sample's relevant ones / citations, over all answers. What leads
    nowhere is not relevant; an answer that cites nothing is skipped.
    """

    base = "citation_relevance"
    counted_as = ("relevant_citations", "total_citations")
    requires = ("relevant_docs",)

    def of_answer(self, sample: EvaluationSample, answer: CitedAnswer) -> float | SampleScore:
        relevant = {source_of(doc) for doc in sample.relevant_docs or () if grade_of(doc) > 0}
        documents = [answer.found(citation).document for citation in answer.cited]
        right = sum(doc is not None and source_of(doc) in relevant for doc in documents)
        return share(right, len(documents), _CITES_NOTHING)


class TroubleRate(CitationShare):
    """A share of citations that there is something wrong with."""

    higher_is_better = False
    troubles: frozenset[str]

    def of_answer(self, sample: EvaluationSample, answer: CitedAnswer) -> float | SampleScore:
        cited = answer.cited
        wrong = sum(answer.found(citation).trouble in self.troubles for citation in cited)
        return share(wrong, len(cited), _CITES_NOTHING)


@METRICS.add("citation_fabricated_rate")
@dataclass
class CitationFabricatedRate(TroubleRate):
    """Share of the citations that are made up: no document has that name, or not the words quoted from it.

    Citations of unknown files or with an excerpt that is not in the document / citations, over all answers.
    Known are the documents that were retrieved, and the relevant and candidate ones of the sample.
    """

    base = "citation_fabricated_rate"
    counted_as = ("fabricated_citations", "total_citations")
    troubles = frozenset((UNRESOLVED, FABRICATED))


@METRICS.add("citation_out_of_range_rate")
@dataclass
class CitationOutOfRangeRate(TroubleRate):
    """Share of the citations that point beyond what there is: [7] of five documents, a span behind the end.

    Citations with such a number or span / citations, over all answers. An answer that cites nothing is
    skipped.
    """

    base = "citation_out_of_range_rate"
    counted_as = ("out_of_range_citations", "total_citations")
    troubles = frozenset((OUT_OF_RANGE,))
