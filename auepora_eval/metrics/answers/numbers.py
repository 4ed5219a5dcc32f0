"""Numeric answers: the right number, however it is written, scaled and rounded."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from ...core.metrics_base import SampleMetric, metric, skip
from ...core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...text.tokens import squad_normalised
from ..generation_text import f_measure
from .pairs import answer_text, references

_SCALES = {
    **{"%": 1e-2, "percent": 1e-2, "per cent": 1e-2, "percentage point": 1e-2},
    **{"k": 1e3, "thousand": 1e3, "千": 1e3, "万": 1e4, "萬": 1e4},
    **{"m": 1e6, "mn": 1e6, "million": 1e6, "百万": 1e6, "亿": 1e8, "億": 1e8},
    **{"b": 1e9, "bn": 1e9, "billion": 1e9, "tn": 1e12, "trillion": 1e12},
}
_QUANTITY = re.compile(
    r"""
    (?P<sign> (?<![\w.)%]) [-−] (?: \s (?<! [\d.)%]\s.\s ) )? )? [$€£¥]? (?P<inner> (?<=[$€£¥]) [-−] )?
    (?P<digits> (?:\d{1,3} (?:(?:[,'’]|,\ (?=000\b)) \d{3})+ (?!\d)
      | (?<=[$€£¥])\d{1,3}(?:,\ \d{3})+(?!\d) | \d+) (?:\.\d+)? | (?<!\d) \.\d+ )
    (?P<scale> \s*% | \s?(?:百万|[千万萬亿億]) | (?:[kKMB] | \s?(?:mn|bn|tn))\b
      | [\s-]?(?i:per\ ?cent|percentage\ points?|thousands?|millions?|billions?|trillions?)\b )?
    """,
    re.VERBOSE,
)
_SEPARATORS = re.compile(r"[,'’ ]")
_AROUND = " \t\r\n[]'\""


class Quantity(NamedTuple):
    """A number as it is written, and what its scale word multiplies it with."""

    number: float
    scale: float

    @property
    def value(self) -> float:
        return self.number * self.scale


@metric("numeric_match@{tolerance?}[whole={whole?}]", ranges={"tolerance": "[0, 1)"})
class NumericMatch(SampleMetric):
    """1 if the answer gives the reference's numbers, however they are written, scaled and rounded.

    Every number of the reference must stand somewhere in the answer, with its scale: "22.12%" is "0.2212",
    "$1.2 million" is "1,200,000". Numbers are compared rounded to two decimals in their own scale (numbers
    below 0.1 to two digits), or numeric_match@0.01 compares them within 1% of the reference. Numbers in words
    ("three") are not read, and a reference without numbers is skipped. With [whole=true] the answer must be
    the number and nothing else, and texts that are no numbers must equal the reference (case, punctuation and
    articles aside): TAT-QA's exact match.
    """

    tolerance: float | None = None
    whole: bool = False
    target = TargetCategory.GENERATION_CORRECTNESS
    requires = ("reference_answer",)
    scores_blank = True
    oracle = "TAT-QA evaluator, exact match, on its 39 test cases (whole=true)"

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        answer = answer_text(output)
        if self.whole:
            return float(any(_same(answer, gold, self.tolerance) for gold in references(sample)))
        wanted = [numbers for numbers in map(quantities, references(sample)) if numbers]
        if not wanted:
            return skip("the reference has no number in digits")
        given = set(quantities(answer))
        return float(any(all(_has(given, q, self.tolerance) for q in numbers) for numbers in wanted))


@metric("numeric_f1")
class NumericF1(SampleMetric):
    """TAT-QA's F1: as numeric_match[whole=true] for numbers, shared words for texts.

    Where the reference is a text: 2PR / (P + R) of the words of both, numbers compared by value. Unlike in
    token_f1, a repeated word counts once.
    """

    target = TargetCategory.GENERATION_CORRECTNESS
    requires = ("reference_answer",)
    oracle = "TAT-QA evaluator, F1, on its 39 test cases"

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float:
        answer = answer_text(output)
        return max(_set_f1(answer, gold) for gold in references(sample))


def quantities(text: str) -> list[Quantity]:
    """Return the numbers in digits of a text, with their signs and scale words.

    >>> quantities("Up 5.5% to $1.2 million")
    [Quantity(number=5.5, scale=0.01), Quantity(number=1.2, scale=1000000.0)]
    """
    numbers = [_quantity(match) for match in _QUANTITY.finditer(_readable(text))]
    return [quantity for quantity in numbers if math.isfinite(quantity.value)]


def whole_quantity(text: str) -> Quantity | None:
    """Return the number that a text is, or None where it says anything else; (5) in brackets is -5."""
    text = _readable(text).strip(_AROUND)
    # Accountants write negative numbers in brackets.
    negative = text.startswith("(") and text.endswith(")")
    match = _QUANTITY.fullmatch(text.strip("()") if negative else text)
    if match is None:
        return None
    quantity = _quantity(match)
    if not math.isfinite(quantity.value):
        return None
    return quantity._replace(number=-quantity.number) if negative else quantity


def _readable(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _quantity(match: re.Match[str]) -> Quantity:
    number = float(_SEPARATORS.sub("", match["digits"]))
    scale = (match["scale"] or "").strip().lstrip("-").removesuffix("s").lower()
    negative = match["sign"] or match["inner"]
    return Quantity(-number if negative else number, _SCALES[scale] if scale else 1.0)


def _has(given: Iterable[Quantity], gold: Quantity, tolerance: float | None) -> bool:
    """Return whether one of the numbers is the gold one, within the tolerance or by rounding."""
    if tolerance is not None:
        return any(_is_near(q.value, gold.value, tolerance * abs(gold.value)) for q in given)
    digits = _decimals(gold.number)
    target = round(gold.number, digits) * gold.scale
    plain = gold.value if gold.scale == 1 else target
    return any(
        _is_near(round(q.number, digits) * q.scale, target, 1e-9 * abs(target))
        # 0.2212 for 22.12%: where one of two has no scale, they are compared as they are, to four decimals.
        # 0.5% of the number at most, so that small numbers are not all equal.
        or (1 in (q.scale, gold.scale) and _is_near(q.value, plain, min(5e-5, 5e-3 * abs(plain))))
        for q in given
    )


def _is_near(value: float, target: float, margin: float) -> bool:
    return target - margin <= value <= target + margin


def _decimals(number: float) -> int:
    """Return two decimals, and for small numbers as many as show two digits: 0.00123 is not 0."""
    if number == 0 or abs(number) >= 0.1:
        return 2
    return min(1 - math.floor(math.log10(abs(number))), 300)


def _same(answer: str, gold: str, tolerance: float | None) -> bool:
    wanted, given = whole_quantity(gold), whole_quantity(answer)
    if wanted is not None and given is not None:
        return _has([given], wanted, tolerance)
    return _tokens(answer) == _tokens(gold)


def _tokens(text: str) -> list[str]:
    """Words normalised one by one; a number as its value, so that 1,000.0 and 1000 are the same word."""
    tokens = []
    for word in text.split():
        number = whole_quantity(word)
        tokens += squad_normalised(word).split() if number is None else [f"{number.value:.4f}"]
    return tokens


def _set_f1(answer: str, gold: str) -> float:
    if whole_quantity(gold) is not None:
        return float(_same(answer, gold, None))
    given, right = set(_tokens(answer)), set(_tokens(gold))
    if not given or not right:
        return float(given == right)
    return float(f_measure(len(given & right), len(given), len(right)))
