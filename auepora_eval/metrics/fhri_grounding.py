"""G of the FHRI: how far an answer's words, figures and names are found in what it was given.

The constants are those of the published index, tuned by hand there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

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
# The hyphen of "10-15%" is no minus. A number is never begun in its middle, which keeps this linear, too.
_NUMBER = r"((?:(?<![\w.%)])-)?(?<!\d)(?<!\d,)\d++(?:,\d++)*+(?:\.\d++)?+)"
_SOON = r"(?=\D{0,30}+\d)"  # asked first, because a no comes quickly
_EPS = re.compile(rf"\bEPS\b{_SOON}\D{{0,30}}?\$?{_NUMBER}", re.IGNORECASE)
_PRICE_EARNINGS = re.compile(rf"\bP/?E\b{_SOON}\D{{0,30}}?{_NUMBER}", re.IGNORECASE)
_AMOUNT = re.compile(rf"\${_NUMBER}(?:\s?(trillion|billion|million|[TBM])\b)?", re.IGNORECASE)
_PERCENT = re.compile(rf"{_NUMBER}\s?%")
_AROUND = 50  # characters on each side that tell what a number is about


@dataclass(frozen=True)
class Evidence:
    """What an answer can be held against, beside its question.

    `facts` are reference figures by name (price, pct_change, returns, eps, revenue, market_cap, pe_ratio,
    dividend_yield); `sources` the providers that were asked for `symbol`. The entropy of the answer is in
    nats, over `entropy_samples` draws.
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
    """G: the share of the answer that stands in its passages or sources, less what is made up."""
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
            # A hair of room: 5% of 100 is 5, whatever binary fractions make of it.
            right = abs(claim - reference) / abs(reference) <= TOLERANCES[kind] * (1 + 1e-9)
        valid, invalid = valid + right, invalid + (not right)
    return NumericCheck(total, valid, invalid)


def figures_of(answer: str) -> Iterator[tuple[str, float]]:
    """The figures that an answer claims, each with what it is a figure of."""
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
    """Whether the first dollar amount of an answer is more than a tenth away from the quoted price."""
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
    """The names that stand before a legal form: Annet Ferries of "Annet Ferries Ltd."."""
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
