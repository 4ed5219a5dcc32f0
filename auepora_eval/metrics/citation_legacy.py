"""The citation figures of a tool of old, kept so that its numbers can be compared with: `legacy` mode.

What is different here, and why the default is: only the best pair of spans counts, so a missed second span is
not seen; ends are included, files and pages ignored; a perfect match of L characters has a tolerance Jaccard
of L / (L + 20), so that it is "good" only from 80 characters on; claims are cut at every full stop, also in
3.5; each citation is held against the first of them; a text supports a claim if more than 0.3 of their words
are shared (Jaccard of the word sets); hallucination is judged by the cited texts alone; and a part that could
not be measured counts 0, so that without gold nothing exceeds 0.70.
"""

from __future__ import annotations

from statistics import fmean, pvariance
from typing import Any

from .citation_answer import CitedAnswer
from .citation_overall import CONSISTENT, Assessed, Scores
from .citation_spans import GOOD, legacy_jaccards

_SUPPORTED = 0.3


def legacy_assessed(answer: CitedAnswer, *, tolerance: int, has_gold: bool) -> Assessed:
    """The four parts as they were counted then; what was not measured is 0."""
    gold = [citation.span for citation in answer.gold if citation.span is not None]
    citations = answer.cited
    cited = [citation.span for citation in citations if citation.span is not None]
    exact, tolerant = legacy_jaccards(gold, cited, tolerance)
    texts = [answer.found(citation).text for citation in citations]
    claims = [piece.strip() for piece in answer.text.split(".") if piece.strip()]
    supports = [_shared_words(claims[0], text) if claims else 0.0 for text in texts]
    invalid = sum(score <= _SUPPORTED for score in supports)
    validity = 1 - invalid / len(supports) if supports else 0.0
    unsupported = [claim for claim in claims if not _is_supported(claim, texts)]
    rate = len(unsupported) / len(claims) if claims else 0.0
    mean = fmean(supports) if supports else 0.0
    span: dict[str, Any] = {
        "mean_exact_jaccard": exact,
        "mean_tolerance_jaccard": tolerant,
        "perfect_matches": int(exact == 1.0),
        "good_matches": int(tolerant >= GOOD),
    }
    quality: dict[str, Any] = {
        "citation_validity_rate": validity,
        "mean_support_score": mean,
        "invalid_citations": invalid,
        "validation_details": [{"support_score": score} for score in supports],
    }
    consistency: dict[str, Any] = {
        "mean_consistency": mean,
        "consistency_variance": pvariance(supports) if supports else 0.0,
        "consistent_citations": sum(score >= CONSISTENT for score in supports),
    }
    hallucination: dict[str, Any] = {
        "hallucination_rate": rate,
        "unsupported_claims": len(unsupported),
        "total_claims": len(claims),
        "unsupported_claim_texts": unsupported,
    }
    lacking = {} if has_gold else {"span": "no gold citations; counted as 0"}
    scores = Scores(tolerant, validity, mean, 1 - rate)
    return Assessed(span, quality, consistency, hallucination, scores, lacking)


def _is_supported(claim: str, texts: list[str]) -> bool:
    return any(_shared_words(claim, text) > _SUPPORTED for text in texts)


def _shared_words(one: str, other: str) -> float:
    left, right = set(one.lower().split()), set(other.lower().split())
    return len(left & right) / len(left | right) if left and right else 0.0
