"""Judge the citations of one answer, without a dataset or a run: spans, support, consistency, hallucination.

    evaluator = CitationEvaluator({"span_tolerance": 10, "support": "lexical"})
    evaluator.evaluate_answer_citations(answer, citations, {"ferries": "The Annet carries 22 cars."}, query)

The same as metrics, for runs: `citation_accuracy`, `citation_span_accuracy`, `citation_correctness`, ...

A part that cannot be measured is None, not 0: without gold citations there is no span accuracy, without the
texts of what is cited no quality and no consistency, without the texts of the documents no hallucination
rate. The weights are then divided by the sum of those that remain. A citation that leads nowhere supports
nothing: that is 0, not unknown. So is an answer that claims something and cites nothing, or has no documents.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, pvariance
from typing import Annotated, Any

import msgspec

from ...core.types import Document, Response
from ...errors import DataError
from ..entailment import Support, support_function
from .answer import THRESHOLD, CitedAnswer
from .sources import GOOD, TOLERANCE, Sources

CONSISTENT = 0.8
WEIGHTS = {"span": 0.30, "quality": 0.30, "consistency": 0.25, "hallucination": 0.15}  # of the four parts
_DOCUMENTS = "Give {document_id: content}, or a list of documents with document_id and content."

Section = dict[str, Any]  # one section of the results format
Scores = dict[str, float | None]  # by part, each from 0 to 1, higher is better; None if it was not measured
Threshold = Annotated[float, msgspec.Meta(gt=0, le=1)]
Part = Annotated[str, msgspec.Meta(pattern=f"^({'|'.join(WEIGHTS)})$")]


class CitationConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What can be set.

    `support` is the name of a support function or a function (premise, hypothesis) -> score from 0 to 1,
    `claims` a function that splits an answer into its claims.
    """

    span_tolerance: Annotated[int, msgspec.Meta(ge=0)] = TOLERANCE
    good_match_threshold: Threshold = GOOD
    support_threshold: Threshold = THRESHOLD
    consistency_threshold: Threshold = CONSISTENT
    weights: dict[Part, Annotated[float, msgspec.Meta(ge=0, le=1e9)]] = {}
    support: Any = "lexical"
    claims: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.support, str) and not callable(self.support):
            raise ValueError(f"support must be a name or a function, not {self.support!r:.60}")
        if self.claims is not None and not callable(self.claims):
            raise ValueError(f"claims must be a function, not {self.claims!r:.60}")
        check_weights({**WEIGHTS, **self.weights})


def check_weights(weights: Mapping[str, float]) -> None:
    """Raise ValueError unless something counts."""
    if not any(weights.values()):
        raise ValueError("at least one weight must be above 0")


def weighted(scores: Scores, weights: Mapping[str, float]) -> tuple[float | None, dict[str, float]]:
    """Return the weighted mean of the measured parts, and the weights as they were used."""
    measured = {name: score for name, score in scores.items() if score is not None and weights[name] > 0}
    total = math.fsum(weights[name] for name in measured)
    used = {name: weights[name] / total for name in measured}
    if not used:
        return None, used
    # To 12 digits: a mean of ones is one, whatever binary fractions make of it.
    return round(math.fsum(used[name] * score for name, score in measured.items()), 12), used


class CitationEvaluator:
    """Judges answers with citations, one at a time; it keeps nothing between them."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        try:
            self.config = msgspec.convert(config or {}, CitationConfig)
        except msgspec.ValidationError as error:
            known = ", ".join(CitationConfig.__struct_fields__)
            raise ValueError(f"The citation config is wrong: {error}. Its fields are {known}.") from None
        support = self.config.support
        self._support: Support = support_function(support) if isinstance(support, str) else support

    def evaluate_answer_citations(
        self,
        answer: str,
        citations: Sequence[Any] | None,
        source_documents: Mapping[str, Any] | Iterable[Any],
        ground_truth: Mapping[str, Any] | Sequence[Any] | None = None,
    ) -> dict[str, Any]:
        """Return all figures of one answer's citations, and their mean, overall_citation_accuracy.

        `citations` are records with file_name, page_number, start_char and end_char; without any, the marks
        in the answer count. Numbers in the answer count the citations, or else the documents.
        `source_documents` is {document_id: content}, or documents with their file_path and title, by which
        file names are found as well. `ground_truth` has the right ones, as `citations` or `citation_spans`.

        A part that cannot be measured is None, and `measured` says why; the overall figure is then the
        weighted mean of the other parts (NaN where there are none).
        """
        sources = Sources((), _documents(source_documents))
        gold = _gold(ground_truth)
        cited = CitedAnswer(
            Response(answer), citations, sources, gold, split=self.config.claims, support_of=self._support
        )
        sections = assessed(cited, self.config)
        scores = part_scores(sections)
        overall, used = weighted(scores, {**WEIGHTS, **self.config.weights})
        unknown = "only documents without a text are cited" if cited.attached else "no claims"
        reasons = {
            "span": "no gold citations with spans",
            "quality": unknown,
            "consistency": unknown,
            "hallucination": "the documents have no text" if cited.claims else "no claims",
        }
        return {
            **sections,
            "overall_scores": {
                "span_accuracy_score": scores["span"],
                "citation_quality_score": scores["quality"],
                "answer_consistency_score": scores["consistency"],
                "hallucination_score": scores["hallucination"],
                "overall_citation_accuracy": math.nan if overall is None else overall,
            },
            "measured": {
                "weights": used,
                "not_measured": {name: reasons[name] for name, score in scores.items() if score is None},
            },
        }


def _gold(ground_truth: Mapping[str, Any] | Sequence[Any] | None) -> Any:
    if not isinstance(ground_truth, Mapping):
        return ground_truth
    return next((ground_truth[key] for key in ("citations", "citation_spans") if ground_truth.get(key)), None)


def _documents(sources: Mapping[str, Any] | Iterable[Any]) -> list[Document]:
    if isinstance(sources, Mapping):
        return [_document(content, str(doc_id)) for doc_id, content in sources.items()]
    if isinstance(sources, str | bytes):
        raise DataError("source_documents", "a text is not a collection of documents.", fix=_DOCUMENTS)
    return [_document(source, "") for source in sources]


def _document(source: Any, doc_id: str) -> Document:
    if isinstance(source, Document):
        return source
    if isinstance(source, str) and doc_id:
        return Document(doc_id, source)
    if isinstance(source, Mapping):
        doc_id = str(source.get("document_id") or source.get("doc_id") or doc_id)
        text = source.get("content", source.get("text")) or ""
        if doc_id and isinstance(text, str):
            metadata = {key: source[key] for key in ("file_path", "title") if source.get(key)}
            return Document(doc_id, text, metadata)
    raise DataError("source_documents", f"{source!r:.80} is not a document.", fix=_DOCUMENTS)


def assessed(answer: CitedAnswer, config: CitationConfig | None = None) -> dict[str, Section]:
    """Return all parts of an answer's citation accuracy, with what they are made of."""
    config = config or CitationConfig()
    return {
        "span_accuracy": _span_section(answer, config.span_tolerance, config.good_match_threshold),
        "citation_quality": _quality_section(answer, config.support_threshold),
        "answer_consistency": _consistency_section(answer, config.consistency_threshold),
        "hallucination_detection": _hallucination_section(answer, config.support_threshold),
    }


def part_scores(sections: Mapping[str, Section]) -> Scores:
    """Return the score of each part; None where it could not be measured."""
    rate = sections["hallucination_detection"]["hallucination_rate"]
    return {
        "span": sections["span_accuracy"]["mean_tolerance_jaccard"],
        "quality": sections["citation_quality"]["citation_validity_rate"],
        "consistency": sections["answer_consistency"]["mean_consistency"],
        "hallucination": None if rate is None else 1 - rate,
    }


def _span_section(answer: CitedAnswer, tolerance: int, good: float) -> Section:
    """Return how well the cited spans agree with the gold ones."""
    spans, _ = answer.span_places
    pairs = answer.matches(tolerance)
    return {
        "mean_exact_jaccard": sum(pair.exact for pair in pairs) / len(spans) if spans else None,
        "mean_tolerance_jaccard": sum(pair.tolerant for pair in pairs) / len(spans) if spans else None,
        "perfect_matches": sum(pair.exact == 1.0 for pair in pairs),
        "good_matches": sum(pair.tolerant >= good for pair in pairs),
        "gold_spans": len(spans),
        "cited_spans": len({one._replace(at=None) for one in answer.cited if one.span is not None}),
    }


def _quality_section(answer: CitedAnswer, valid: float) -> Section:
    details = []
    for citation, found, support in zip(answer.attached, answer.found, answer.supports, strict=True):
        # No text is not a fault of the citation: it is neither valid nor invalid.
        problem = found.trouble or ("" if support is not None else "no text")
        start, end = citation.span or (None, None)
        details.append(
            {
                "file_name": citation.file_name if citation.number is None else f"[{citation.number}]",
                "page_number": citation.page,
                "start_char": start,
                "end_char": end,
                "document_id": None if found.document is None else found.document.doc_id,
                "support_score": support,
                "valid": None if problem == "no text" else support is not None and support >= valid,
                "problem": problem or None,
            }
        )
    judged = consistencies(answer)
    measured = [support for support in answer.supports if support is not None]
    return {
        "citation_validity_rate": sum(score >= valid for score in judged) / len(judged) if judged else None,
        "mean_support_score": fmean(measured) if measured else None,
        "invalid_citations": sum(detail["valid"] is False for detail in details),
        "problems": dict(Counter(detail["problem"] for detail in details if detail["problem"])),
        "validation_details": details,
    }


def _consistency_section(answer: CitedAnswer, consistent: float) -> Section:
    judged = consistencies(answer)
    return {
        "mean_consistency": fmean(judged) if judged else None,
        "consistency_variance": pvariance(judged) if judged else None,
        "consistent_citations": sum(score >= consistent for score in judged),
        "total_citations": len(answer.supports_or_zero),
    }


def consistencies(answer: CitedAnswer) -> list[float]:
    """Return how consistent each citation is with its claim: its support, 0 where it leads nowhere.

    Claims that cite nothing have one 0.
    """
    return [0.0] if answer.claims and not answer.attached else answer.supports_or_zero


def _hallucination_section(answer: CitedAnswer, valid: float) -> Section:
    measured = bool(answer.claims) and not answer.sources.are_without_texts
    pairs = zip(answer.claims, answer.best_of_sources, strict=True) if measured else ()
    unsupported = [claim.text for claim, best in pairs if best < valid]
    return {
        "hallucination_rate": len(unsupported) / len(answer.claims) if measured else None,
        "unsupported_claims": len(unsupported),
        "total_claims": len(answer.claims),
        "unsupported_claim_texts": unsupported,
    }
