"""The Finance Hallucination Reliability Index: a number from 0 to 1, higher is more trustworthy.

Five sub-scores, weighted by scenario: G grounding, N numeric or directional consistency, T temporal validity,
C citations, E confidence from entropy. It is here because label sets are published with it, with the
constants of its published code.

**It is no detector.** On the 100 public samples, without passages and without a look at the labels, it ranks
hallucinations above accurate answers more often than below (area under the curve .441), and with the
published thresholds it reaches a macro-F1 of .150, where "always accurate" reaches .242.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from .fhri_grounding import Evidence, grounding

PARTS = ("G", "N", "T", "C", "E")
DEFAULT_WEIGHTS = {"G": 0.25, "N": 0.25, "T": 0.20, "C": 0.15, "E": 0.15}
ENTROPY_SCALE = 2.0

_UP = "up increase gain growth rise higher positive improved".split()
_DOWN = "down decrease loss decline fall lower negative declined".split()
_FLAT = "flat unchanged stable steady".split()
_TIMES = (
    *("yesterday", "today", "last quarter", "q1", "q2", "q3", "q4", "last year", "this year", "month"),
    *("week", "2020", "2021", "2022", "2023", "2024", "2025"),
)
_SOURCES = (
    *("sec.gov", "sec filing", "10-k", "10-q", "8-k", "reuters", "bloomberg", "yahoo finance", "finnhub"),
    *("company filing", "official report", "investor relations", "annual report", "quarterly report"),
    *("press release", "twelvedata", "coingecko", "financialmodelingprep", "yfinance"),
)
_ATTRIBUTIONS = (
    *("according to", "sources indicate", "reported by", "as per", "data from", "based on", "verified by"),
)
_IMPLICIT = (
    *("recent earnings", "latest report", "company's", "quarterly", "annual", "market data"),
    *("financial data", "trading data", "price data", "earnings report", "financial report"),
    *("company report", "official data"),
)


@dataclass(frozen=True)
class SubScores:
    """The five sub-scores, each from 0 to 1; None where there is nothing to measure it by."""

    G: float | None
    N: float | None
    T: float | None
    C: float | None
    E: float | None = None


def sub_scores(question: str, answer: str, evidence: Evidence | None = None) -> SubScores:
    """Score an answer in the five ways. G and C come as square roots, as the index uses them."""
    evidence = evidence or Evidence()
    return SubScores(
        G=math.sqrt(grounding(answer, evidence)),
        N=consistency(answer, evidence),
        T=timeliness(question, answer),
        C=math.sqrt(attribution(answer, evidence)),
        E=None if evidence.entropy is None else confidence(evidence.entropy),
    )


def fhri(scores: SubScores, weights: Mapping[str, float] = DEFAULT_WEIGHTS) -> float | None:
    """The index: the weighted mean of what is there, with the published bonuses; None if nothing is.

    >>> weights = {"G": 0.20, "N": 0.50, "T": 0.20, "C": 0.05, "E": 0.05}
    >>> fhri(SubScores(G=0.741, N=0.70, T=0.75, C=1.0, E=0.58), weights)
    0.844
    """
    known: dict[str, float] = {name: value for name, value in asdict(scores).items() if value is not None}
    total = sum(weights[name] for name in known)
    if not total:
        return None
    index = sum(weights[name] * value for name, value in known.items()) / total
    if known.keys() >= {"E", "G", "N"} and known["G"] > 0.35 and known["N"] > 0.45 and known["E"] > 0.35:
        index += 0.05
    if index >= 0.55:
        index *= 1.05 + 0.07 * (index - 0.55) / 0.45
    return round(min(1.0, max(0.0, index)), 3)


def consistency(answer: str, evidence: Evidence) -> float:
    """N: figures that a reference confirms, or a direction that is told consistently."""
    if not answer.strip():
        return 0.0
    said = answer.lower()
    up, down, flat = (any(word in said for word in listed) for listed in (_UP, _DOWN, _FLAT))
    change = evidence.facts.get("pct_change")
    if not any(character.isdigit() for character in answer):
        score = {0: 0.5, 1: 0.7}.get(up + down + flat, 0.4)
        agrees = change is not None and ((change > 0.5 and up) or (change < -0.5 and down))
        return max(score, 0.8) if agrees else score
    price = evidence.facts.get("price")
    if price is not None and _written(price, answer):
        return 0.92
    score = 0.88 if any(_written(value, answer) for value in evidence.facts.values()) else 0.70
    if change:
        with_it, against = (up, down) if change > 0 else (down, up)
        if against:
            return min(score, 0.30)
        return max(score, 0.75) if with_it else score
    return score


def timeliness(question: str, answer: str) -> float:
    """T: whether question and answer speak of the same time."""
    if not answer.strip():
        return 0.0
    asked, told = ({time for time in _TIMES if time in text.lower()} for text in (question, answer))
    if asked and told:
        return 0.95 if asked & told else 0.55
    if asked:
        return 0.50
    return 0.75 if told else 0.70


def attribution(answer: str, evidence: Evidence) -> float:
    """C: whether the answer names where it has it from."""
    if not answer.strip():
        return 0.0
    said = answer.lower()
    named = sum(source in said for source in _SOURCES)
    providers = (0.0, 0.10, 0.15, 0.20)[min(3, len(evidence.sources))]
    return min(
        1.0,
        min(0.6, 0.20 * named)
        + 0.25 * any(phrase in said for phrase in _ATTRIBUTIONS)
        + 0.15 * any(phrase in said for phrase in _IMPLICIT)
        + min(0.35, 0.07 * len(evidence.passages))
        + providers,
    )


def confidence(entropy: float) -> float:
    """E: high where the entropy of resampled answers (in nats) is low."""
    return min(1.0, 1.05 * (1 - min(entropy / (2 * ENTROPY_SCALE), 1.0)))


def _written(value: float, answer: str) -> bool:
    return str(value) in answer or f"{value:.2f}" in answer
