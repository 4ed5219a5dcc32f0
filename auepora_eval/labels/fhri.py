"""The Finance Hallucination Reliability Index: a number from 0 to 1, higher is more trustworthy.

Five sub-scores, weighted by scenario: G grounding, N numeric or directional consistency, T temporal validity,
C citations, E confidence from entropy. It is here because label sets are published with it, with the
constants of its published code.

**It does not detect anything.** On the 100 public samples, without passages and labels, it ranks
hallucinations above accurate answers more often than below (area under the curve .441), and with the
published thresholds it reaches a macro-F1 of .150, where "always accurate" reaches .242.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

DEFAULT_WEIGHTS = {"G": 0.25, "N": 0.25, "T": 0.20, "C": 0.15, "E": 0.15}
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
    """Return the index: the weighted mean of what is there, with the published bonuses; None if nothing is.

    >>> weights = {"G": 0.20, "N": 0.50, "T": 0.20, "C": 0.05, "E": 0.05}
    >>> fhri(SubScores(G=0.741, N=0.70, T=0.75, C=1.0, E=0.58), weights)
    0.844
    """
    known: dict[str, float] = {name: value for name, value in asdict(scores).items() if value is not None}
    total = sum(weights.get(name, 0.0) for name in known)
    if not total:
        return None
    index = sum(weights.get(name, 0.0) * value for name, value in known.items()) / total
    if known.keys() >= {"E", "G", "N"} and known["G"] > 0.35 and known["N"] > 0.45 and known["E"] > 0.35:
        index += 0.05
    if index >= 0.55:
        index *= 1.05 + 0.07 * (index - 0.55) / 0.45
    return round(min(1.0, max(0.0, index)), 3)


def consistency(answer: str, evidence: Evidence) -> float:
    """N: figures that a reference confirms, or a direction that is stated consistently."""
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


# G of the FHRI: how far an answer's words, figures and names are found in what it was given.
#
# The constants are those of the published index, tuned by hand there.

# The published list, short as it is: a longer one would change the index.
_STOP_WORDS = frozenset("the a an and or but in on at to for of with by from is was are were".split())
_NO_TICKERS = frozenset("CEO CFO CTO USA USD EUR GBP API SEC ETF IPO TTM".split())
_WORD = re.compile(r"\w+")
_TICKER = re.compile(r"\b[A-Z]{2,5}\b")
# Possessive, and each run of names is looked at once: linear, whatever an answer is made of.
_NAMES = re.compile(r"([A-Z][a-z]++(?: [A-Z][a-z]++)*+)(\s++(?:Inc\.|Corp\.|Ltd\.|LLC|Co\.))?+")
_LEGAL_FORMS = frozenset("Inc Corp Ltd Co".split())

TOLERANCES = {
    "price": 0.05,
    "pct_change": 0.10,
    "returns": 0.15,
    "eps": 0.10,
    "revenue": 0.10,
    "market_cap": 0.10,
    "pe_ratio": 0.15,
    "dividend_yield": 0.20,
}
# The hyphen of "10-15%" is not a minus. A match never starts inside a number, which keeps this linear.
_NUMBER = r"((?:(?<![\w.%)])-)?(?<!\d)(?<!\d,)\d++(?:,\d++)*+(?:\.\d++)?+)"
_SOON = r"(?=\D{0,30}+\d)"  # asked first, because a no comes quickly
_EPS = re.compile(rf"\bEPS\b{_SOON}\D{{0,30}}?\$?{_NUMBER}", re.IGNORECASE)
_PRICE_EARNINGS = re.compile(rf"\bP/?E\b{_SOON}\D{{0,30}}?{_NUMBER}", re.IGNORECASE)
_AMOUNT = re.compile(rf"\${_NUMBER}(?:\s?(trillion|billion|million|[TBM])\b)?", re.IGNORECASE)
_PERCENT = re.compile(rf"{_NUMBER}\s?%")
_AROUND = 50  # characters on each side that show what a number is about


@dataclass(frozen=True)
class Evidence:
    """What an answer can be checked against, besides its question.

    `facts` are reference figures by name (price, pct_change, returns, eps, revenue, market_cap, pe_ratio,
    dividend_yield); `sources` the providers that were asked for `symbol`. The entropy of the answer is in
    nats, over `entropy_samples` samples.
    """

    passages: tuple[str, ...] = ()
    facts: Mapping[str, float] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    symbol: str = ""
    has_filings: bool = False
    entropy: float | None = None
    entropy_samples: int | None = None


class NumericCheck(NamedTuple):
    """The figures of an answer against reference figures."""

    total: int
    valid: int
    invalid: int

    @property
    def unknown(self) -> int:
        return self.total - self.valid - self.invalid

    @property
    def penalty(self) -> float:
        """1 without claims, .6 if none can be checked, else .2 to 1 by the share that is right."""
        if not self.total:
            return 1.0
        checked = self.valid + self.invalid
        return 0.2 + 0.8 * self.valid / checked if checked else 0.6


def grounding(answer: str, evidence: Evidence) -> float:
    """G: the share of the answer that is in its passages or sources, minus invented figures."""
    if not answer.strip():
        return 0.0
    words = _words(answer)
    if not words:
        return 0.70
    figures = check_figures(answer, evidence.facts) if evidence.facts else NumericCheck(0, 0, 0)
    if figures.invalid:
        return 0.2
    penalty = figures.penalty * _entity_penalty(answer, evidence)
    text = " ".join(evidence.passages)
    overlap = len(words & _words(text)) / len(words)
    if not evidence.sources:
        return _from_passages(answer, evidence, overlap) * penalty
    if evidence.symbol and evidence.symbol.lower() in text.lower():
        hybrid = 0.40 * overlap + 0.60 * (0.5 + min(0.5, 0.15 * len(evidence.sources)))
        return min(1.0, hybrid) * penalty
    return _from_sources(answer, evidence) * penalty


def check_figures(answer: str, facts: Mapping[str, float]) -> NumericCheck:
    """Count the answer's figures, and how many of them the reference figures confirm or refute.

    >>> check_figures("It trades at $105, up 2.1%.", {"price": 100.0})
    NumericCheck(total=2, valid=1, invalid=0)
    """
    total = valid = invalid = 0
    for kind, claim in figures_of(answer):
        total += 1
        reference = facts.get(kind)
        if reference is None:
            continue
        if reference == 0:
            right = claim == 0
        else:
            # A small tolerance: 5% of 100 is 5, despite binary fractions.
            right = abs(claim - reference) / abs(reference) <= TOLERANCES[kind] * (1 + 1e-9)
        valid, invalid = valid + right, invalid + (not right)
    return NumericCheck(total, valid, invalid)


def figures_of(answer: str) -> Iterator[tuple[str, float]]:
    """Return the figures that an answer claims, each with what it is a figure of."""
    taken = bytearray(len(answer))
    for pattern, kind in ((_EPS, "eps"), (_PRICE_EARNINGS, "pe_ratio")):
        for match in pattern.finditer(answer):
            taken[match.start() : match.end()] = b"\1" * (match.end() - match.start())
            yield kind, _number(match[1])
    for match in _PERCENT.finditer(answer):
        if not any(taken[match.start() : match.end()]):
            yield _kind_of_percentage(_near(answer, match)), _number(match[1])
    for match in _AMOUNT.finditer(answer):
        if not any(taken[match.start() : match.end()]):
            cap = match[2] is not None and "market cap" in _near(answer, match)
            yield ("market_cap" if cap else "price"), _amount(match)


def price_mismatch(answer: str, facts: Mapping[str, float], tolerance: float = 0.10) -> bool:
    """Return whether the first dollar amount of an answer is more than a tenth away from the quoted price."""
    price, found = facts.get("price"), _AMOUNT.search(answer)
    if price is None or price <= 0 or found is None:
        return False
    return abs(_number(found[1]) - price) / price > tolerance


def _from_passages(answer: str, evidence: Evidence, overlap: float) -> float:
    if not _words(" ".join(evidence.passages)):
        base = 0.45 if evidence.facts else 0.20
    else:
        base = 0.30 + 0.70 * overlap if overlap > 0 else 0.25
    said = answer.lower()
    named = any(name.lower() in said or str(value) in said for name, value in evidence.facts.items())
    return min(1.0, base + 0.20 * named)


def _from_sources(answer: str, evidence: Evidence) -> float:
    base = {1: 0.55, 2: 0.65}.get(len(evidence.sources), 0.75)
    base += 0.10 * evidence.has_filings
    others = (value for name, value in evidence.facts.items() if name not in ("price", "pct_change"))
    base += 0.15 * any(value and str(value) in answer for value in others)
    price = evidence.facts.get("price")
    base += 0.10 * (price is not None and (str(price) in answer or f"{price:.2f}" in answer))
    return min(1.0, base)


def _entity_penalty(answer: str, evidence: Evidence) -> float:
    """.3 if no ticker or company of the answer is in its evidence, 1 if all are or there are none."""
    text = " ".join(evidence.passages)
    known = {*_tickers(text), evidence.symbol, *_companies(text)}
    tickers, companies = _tickers(answer), _companies(answer)
    total = len(tickers) + len(companies)
    grounded = len({*tickers, *companies} & known)
    return 0.3 + 0.7 * grounded / total if total else 1.0


def _tickers(text: str) -> list[str]:
    return [word for word in _TICKER.findall(text) if word not in _NO_TICKERS]


def _companies(text: str) -> list[str]:
    """Return the names before a legal form: Annet Ferries of "Annet Ferries Ltd."."""
    found = []
    for match in _NAMES.finditer(text):
        names, _, last = match[1].rpartition(" ")
        if match[2]:
            found.append(match[1])
        elif names and last in _LEGAL_FORMS and text[match.end() : match.end() + 1] == ".":
            found.append(names)
    return found


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower())) - _STOP_WORDS


def _kind_of_percentage(near: str) -> str:
    if re.search(r"yield|dividend", near):
        return "dividend_yield"
    return "returns" if re.search(r"return|gain|growth|cagr", near) else "pct_change"


def _near(text: str, match: re.Match[str]) -> str:
    return text[max(0, match.start() - _AROUND) : match.end() + _AROUND].lower()


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _amount(match: re.Match[str]) -> float:
    scale = (match[2] or "").lower()[:1]
    if not scale:
        return _number(match[1])
    return _number(match[1]) * {"t": 1e12, "b": 1e9, "m": 1e6}[scale]
