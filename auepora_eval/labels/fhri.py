"""The Finance Hallucination Reliability Index: a number from 0 to 1, higher is more trustworthy.

Five sub-scores, weighted by scenario: G grounding, N numeric or directional consistency, T temporal validity,
C citations, E confidence from entropy. It is here because label sets are published with it, with the
constants of its published code, as far as an answer can be judged by its question and its passages: the
published code also asks providers of market data.

**It does not detect anything.** On the 100 public samples, without passages and labels, it ranks
hallucinations above accurate answers more often than below (area under the curve .441), and with the
published thresholds it reaches a macro-F1 of .150, where "always accurate" reaches .242.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

DEFAULT_WEIGHTS = {"G": 0.25, "N": 0.25, "T": 0.20, "C": 0.15, "E": 0.15}
SCENARIO_WEIGHTS: Mapping[str, Mapping[str, float]] = {
    scenario: dict(zip("GNTCE", weights, strict=True))
    for scenario, weights in {
        "numeric_kpi": (0.20, 0.50, 0.20, 0.05, 0.05),
        "intraday": (0.20, 0.50, 0.20, 0.05, 0.05),
        "directional": (0.25, 0.45, 0.20, 0.05, 0.05),
        "fundamentals": (0.25, 0.40, 0.15, 0.10, 0.10),
        "regulatory": (0.20, 0.05, 0.20, 0.40, 0.15),
        "advice": (0.25, 0.30, 0.15, 0.10, 0.20),
        "portfolio_advice": (0.25, 0.30, 0.15, 0.10, 0.20),
        "multi_ticker": (0.30, 0.30, 0.15, 0.15, 0.10),
        "news": (0.45, 0.10, 0.20, 0.15, 0.10),
        "crypto": (0.35, 0.15, 0.20, 0.20, 0.10),
        "default": (0.40, 0.20, 0.15, 0.15, 0.10),
    }.items()
}
# Nats: the published code divides by twice this number.
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


def sub_scores(
    question: str, answer: str, passages: Sequence[str] = (), entropy: float | None = None
) -> SubScores:
    """Score an answer in the five ways. G and C come as square roots, as the index uses them.

    `entropy` is that of resampled answers, in nats.
    """
    return SubScores(
        G=math.sqrt(grounding(answer, passages)),
        N=consistency(answer),
        T=timeliness(question, answer),
        C=math.sqrt(attribution(answer, passages)),
        E=None if entropy is None else confidence(entropy),
    )


def fhri(scores: SubScores, weights: Mapping[str, float] = DEFAULT_WEIGHTS) -> float | None:
    """Return the index: the weighted mean of what is there, with the published bonuses; None if nothing is.

    >>> weights = {"G": 0.20, "N": 0.50, "T": 0.20, "C": 0.05, "E": 0.05}
    >>> fhri(SubScores(G=0.741, N=0.70, T=0.75, C=1.0, E=0.58), weights)
    0.844
    """
    measured: dict[str, float] = {name: value for name, value in asdict(scores).items() if value is not None}
    total = sum(weights.get(name, 0.0) for name in measured)
    if not total:
        return None
    index = sum(weights.get(name, 0.0) * value for name, value in measured.items()) / total
    if (
        measured.keys() >= {"E", "G", "N"}
        and measured["G"] > 0.35
        and measured["N"] > 0.45
        and measured["E"] > 0.35
    ):
        index += 0.05
    if index >= 0.55:
        index *= 1.05 + 0.07 * (index - 0.55) / 0.45
    return round(min(1.0, max(0.0, index)), 3)


def grounding(answer: str, passages: Sequence[str]) -> float:
    """G: the share of the answer's words that are in its passages, lowered by invented names."""
    if not answer.strip():
        return 0.0
    words = _words(answer)
    if not words:
        return 0.70
    text = " ".join(passages)
    penalty = _entity_penalty(answer, text)
    if not _words(text):
        return 0.20 * penalty
    overlap = len(words & _words(text)) / len(words)
    return (0.30 + 0.70 * overlap if overlap > 0 else 0.25) * penalty


def consistency(answer: str) -> float:
    """N: figures, or a direction that is stated consistently."""
    if not answer.strip():
        return 0.0
    if any(character.isdigit() for character in answer):
        return 0.70
    lower = answer.lower()
    directions = sum(any(word in lower for word in listed) for listed in (_UP, _DOWN, _FLAT))
    return {0: 0.5, 1: 0.7}.get(directions, 0.4)


def timeliness(question: str, answer: str) -> float:
    """T: whether question and answer speak of the same time."""
    if not answer.strip():
        return 0.0
    in_question = {time for time in _TIMES if time in question.lower()}
    in_answer = {time for time in _TIMES if time in answer.lower()}
    if in_question and in_answer:
        return 0.95 if in_question & in_answer else 0.55
    if in_question:
        return 0.50
    return 0.75 if in_answer else 0.70


def attribution(answer: str, passages: Sequence[str]) -> float:
    """C: whether the answer names its sources."""
    if not answer.strip():
        return 0.0
    lower = answer.lower()
    sources = sum(source in lower for source in _SOURCES)
    return min(
        1.0,
        min(0.6, 0.20 * sources)
        + 0.25 * any(phrase in lower for phrase in _ATTRIBUTIONS)
        + 0.15 * any(phrase in lower for phrase in _IMPLICIT)
        + min(0.35, 0.07 * len(passages)),
    )


def confidence(entropy: float) -> float:
    """E: high where the entropy of resampled answers (in nats) is low."""
    return min(1.0, 1.05 * (1 - min(entropy / (2 * ENTROPY_SCALE), 1.0)))


# The published list, short as it is: a longer one would change the index.
_STOP_WORDS = frozenset("the a an and or but in on at to for of with by from is was are were".split())
_NO_TICKERS = frozenset("CEO CFO CTO USA USD EUR GBP API SEC ETF IPO TTM".split())
_WORD = re.compile(r"\w+")
_TICKER = re.compile(r"\b[A-Z]{2,5}\b")
# Each run of names is looked at once: linear, whatever an answer is made of.
_NAMES = re.compile(r"([A-Z][a-z]+(?: [A-Z][a-z]+)*)(\s+(?:Inc\.|Corp\.|Ltd\.|LLC|Co\.))?")
_LEGAL_FORMS = frozenset("Inc Corp Ltd Co".split())


def _entity_penalty(answer: str, text: str) -> float:
    """.3 if no ticker or company of the answer is in its passages, 1 if all are or there are none."""
    tickers, companies = _tickers(answer), _companies(answer)
    total = len(tickers) + len(companies)
    grounded = len({*tickers, *companies} & {*_tickers(text), *_companies(text)})
    return 0.3 + 0.7 * grounded / total if total else 1.0


def _tickers(text: str) -> list[str]:
    return [word for word in _TICKER.findall(text) if word not in _NO_TICKERS]


def _companies(text: str) -> list[str]:
    """Return the names before a legal form: Annet Ferries of "Annet Ferries Ltd."."""
    companies = []
    for match in _NAMES.finditer(text):
        names, _, last = match[1].rpartition(" ")
        if match[2]:
            companies.append(match[1])
        elif names and last in _LEGAL_FORMS and text[match.end() : match.end() + 1] == ".":
            companies.append(names)
    return companies


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower())) - _STOP_WORDS
