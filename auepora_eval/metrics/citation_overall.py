"""The four parts of an answer's citation accuracy, and the one figure that is made of them.

A part that cannot be measured is None, not 0: without gold citations there is no span accuracy, without the
texts of what is cited no quality and no consistency, without documents no hallucination rate. The weights are
then divided by the sum of those that remain. A citation that leads nowhere bears out nothing, which is 0 and
not unknown, and so is claiming something and citing nothing: neither may pay.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, pvariance
from typing import Any, NamedTuple

from .citation_answer import JudgedAnswer
from .citation_sources import Citation
from .citation_spans import GOOD, TOLERANCE

VALID = 0.7
CONSISTENT = 0.8


class Scores(NamedTuple):
    """The parts, each from 0 to 1, higher is better; None where it was not measured."""

    span: float | None
    quality: float | None
    consistency: float | None
    hallucination: float | None


class Weights(NamedTuple):
    """What each part counts."""

    span: float = 0.30
    quality: float = 0.30
    consistency: float = 0.25
    hallucination: float = 0.15

    def check(self) -> None:
        """ValueError for weights that are none."""
        for name, weight in self._asdict().items():
            is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
            if not is_number or not math.isfinite(weight) or weight < 0:
                raise ValueError(f"the weight {name} must be 0 or more, not {weight!r}")
        if not any(self):
            raise ValueError("at least one weight must be above 0")

    def of(self, scores: Scores) -> tuple[float | None, dict[str, float]]:
        """The weighted mean of what was measured, and the weights as they were used."""
        measured = {name: score for name, score in scores._asdict().items() if score is not None}
        given = {name: weight for name, weight in self._asdict().items() if name in measured and weight > 0}
        total = math.fsum(given.values())
        used = {name: weight / total for name, weight in given.items()}
        if not used:
            return None, used
        # To 12 digits: a mean of ones is one, whatever binary fractions make of it.
        return round(math.fsum(weight * measured[name] for name, weight in used.items()), 12), used

    def of_all(self, scores: Scores) -> tuple[float, dict[str, float]]:
        """The weighted sum with the weights as they are, nothing for what was not measured."""
        parts = scores._asdict()
        return sum(w * (parts[name] or 0.0) for name, w in self._asdict().items()), self._asdict()


WEIGHTS = Weights()


@dataclass(frozen=True)
class Assessed:
    """An answer's parts with what they are made of, in the sections of the results format."""

    span_accuracy: dict[str, Any]
    citation_quality: dict[str, Any]
    answer_consistency: dict[str, Any]
    hallucination_detection: dict[str, Any]
    scores: Scores
    not_measured: Mapping[str, str]


def assessed(
    answer: JudgedAnswer,
    *,
    tolerance: int = TOLERANCE,
    good: float = GOOD,
    valid: float = VALID,
    consistent: float = CONSISTENT,
) -> Assessed:
    """Measure whatever can be measured of an answer's citations."""
    span = span_section(answer, tolerance, good)
    quality = _quality_section(answer, valid)
    consistency = _consistency_section(answer, consistent)
    hallucination = _hallucination_section(answer, valid)
    rate = hallucination["hallucination_rate"]
    scores = Scores(
        span["mean_tolerance_jaccard"],
        quality["citation_validity_rate"],
        consistency["mean_consistency"],
        None if rate is None else 1 - rate,
    )
    unknown = "only documents without a text are cited" if answer.answer.attached else "no claims"
    reasons = {
        "span": "no gold citations with spans" if not span["gold_spans"] else "the citations have no spans",
        "quality": unknown,
        "consistency": unknown,
        "hallucination": "no claims" if not answer.claims else "no document has a text",
    }
    lacking = {name: reasons[name] for name, score in scores._asdict().items() if score is None}
    return Assessed(span, quality, consistency, hallucination, scores, lacking)


def span_section(answer: JudgedAnswer, tolerance: int, good: float) -> dict[str, Any]:
    """How well the cited spans agree with the gold ones."""
    gold, cited = answer.answer.places
    spans = [place for place in gold if place.span is not None]
    unspanned = bool(cited) and all(place.span is None for place in cited)
    counted = len(spans) and not unspanned
    pairs = answer.answer.matches(tolerance)
    return {
        "mean_exact_jaccard": sum(pair.exact for pair in pairs) / len(spans) if counted else None,
        "mean_tolerance_jaccard": sum(pair.tolerant for pair in pairs) / len(spans) if counted else None,
        "perfect_matches": sum(pair.exact == 1.0 for pair in pairs),
        "good_matches": sum(pair.tolerant >= good for pair in pairs),
        "gold_spans": len(spans),
        "cited_spans": sum(place.span is not None for place in cited),
    }


def _quality_section(answer: JudgedAnswer, valid: float) -> dict[str, Any]:
    details = []
    for citation, found, support in zip(answer.answer.attached, answer.found, answer.supports, strict=True):
        problem = found.trouble or ("" if support is not None else "no text")
        details.append(
            {
                **_described(citation),
                "document_id": None if found.document is None else found.document.doc_id,
                "support_score": support,
                "valid": None if problem == "no text" else support is not None and support >= valid,
                "problem": problem or None,
            }
        )
    judged = _judged(answer)
    measured = [support for support in answer.supports if support is not None]
    return {
        "citation_validity_rate": sum(score >= valid for score in judged) / len(judged) if judged else None,
        "mean_support_score": fmean(measured) if measured else None,
        "invalid_citations": sum(detail["valid"] is False for detail in details),
        "problems": dict(Counter(detail["problem"] for detail in details if detail["problem"])),
        "validation_details": details,
    }


def _consistency_section(answer: JudgedAnswer, consistent: float) -> dict[str, Any]:
    judged = _judged(answer)
    return {
        "mean_consistency": fmean(judged) if judged else None,
        "consistency_variance": pvariance(judged) if judged else None,
        "consistent_citations": sum(score >= consistent for score in judged),
        "total_citations": len(answer.supports_or_zero),
    }


def _judged(answer: JudgedAnswer) -> list[float]:
    """The support of each citation, 0 where it leads nowhere; claims that cite nothing have one 0."""
    return [0.0] if answer.claims and not answer.answer.attached else answer.supports_or_zero


def _hallucination_section(answer: JudgedAnswer, valid: float) -> dict[str, Any]:
    measured = bool(answer.claims and answer.answer.sources.texts)
    pairs = zip(answer.claims, answer.best_of_sources, strict=True) if measured else ()
    unsupported = [claim.text for claim, best in pairs if best < valid]
    return {
        "hallucination_rate": len(unsupported) / len(answer.claims) if measured else None,
        "unsupported_claims": len(unsupported),
        "total_claims": len(answer.claims),
        "unsupported_claim_texts": unsupported,
    }


def _described(citation: Citation) -> dict[str, Any]:
    start, end = citation.span or (None, None)
    name = citation.file_name if citation.number is None else f"[{citation.number}]"
    return {"file_name": name, "page_number": citation.page, "start_char": start, "end_char": end}
