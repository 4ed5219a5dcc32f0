"""A plausible other value for a number, a date or a name: what a fact is edited to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from .english import MONTH, NUMBER, NUMBER_WORD

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_MONTHS = "January February March April May June July August September October November December".split()
_FIGURE = re.compile(rf"\b{NUMBER}\b", re.IGNORECASE)


def in_words(number: int) -> str:
    """A number below a hundred in words.

    >>> in_words(25)
    'twenty-five'
    """
    if number < 20:
        return _ONES[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_ONES[ones]}" if ones else "")


_FROM_WORDS = {in_words(number): number for number in range(100)}


def spellings(answer: str) -> list[str]:
    """The answer with its small number in figures and in words: `ten years`, `10 years`."""
    found = [answer]
    match = _FIGURE.search(answer)
    if match:
        figure = match.group().lower()
        if figure in _FROM_WORDS:
            found.append(f"{answer[: match.start()]}{_FROM_WORDS[figure]}{answer[match.end() :]}")
        elif figure.isdigit() and int(figure) < 100:
            found.append(f"{answer[: match.start()]}{in_words(int(figure))}{answer[match.end() :]}")
    return found


def other_value(answer: str, kind: str, chance: Random, names: Sequence[str] = ()) -> str | None:
    """Another value of the same kind and form; None where there is none."""
    if kind == "number":
        return _other_number(answer, chance)
    if kind == "date":
        return _other_date(answer, chance)
    if kind == "name":
        fitting = [name for name in names if len(name.split()) == len(answer.split())]
        fitting = [name for name in fitting if not set(name.split()) & set(answer.split())]
        return chance.choice(fitting) if fitting else None
    return None


def _other_number(answer: str, chance: Random) -> str | None:
    match = _FIGURE.search(answer)
    if match is None:
        return None
    figure = match.group().split(" ")[0]
    end = match.start() + len(figure)
    if re.fullmatch(NUMBER_WORD, figure, re.IGNORECASE):
        number = _FROM_WORDS[figure.lower()]
        near = [
            n
            for n in range(max(2, number - number // 2 - 1), number + number // 2 + 3)
            if n not in (number, 1)
        ]
        other = in_words(chance.choice([n for n in near if n < 100]))
        other = other.capitalize() if figure[0].isupper() else other
    else:
        other = _other_figure(figure, chance)
    return f"{answer[: match.start()]}{other}{answer[end:]}"


def _other_figure(figure: str, chance: Random) -> str:
    """Another number with as many decimals, of about the same size."""
    decimals = len(figure.partition(".")[2])
    unit = 10**-decimals
    value = float(figure.replace(",", ""))
    while True:
        other = round(value * chance.choice((0.5, 0.6, 0.7, 0.8, 1.2, 1.3, 1.4, 1.5, 1.8)), decimals)
        if round(other, decimals) == round(value, decimals) or other <= 0:
            other = value + unit * chance.randint(1, 3)
        text = f"{other:,.{decimals}f}" if "," in figure else f"{other:.{decimals}f}"
        if text != figure:
            return text


def _other_date(answer: str, chance: Random) -> str | None:
    year = re.search(r"\b(?:1\d|20)\d\d\b", answer)
    month = re.search(MONTH, answer, re.IGNORECASE)
    if year:
        shift = chance.choice([n for n in range(-7, 8) if n])
        answer = f"{answer[: year.start()]}{int(year.group()) + shift}{answer[year.end() :]}"
    if month:
        other = chance.choice([name for name in _MONTHS if name.lower() != month.group().lower()])
        other = other.lower() if month.group().islower() else other
        answer = answer[: month.start()] + other + answer[month.end() :]
        return re.sub(r"\b(?:29|30|31)(?=(?:st|nd|rd|th)? )", "28", answer)  # no 30 February
    return answer if year else None
