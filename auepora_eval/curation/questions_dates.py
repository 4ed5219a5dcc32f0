"""Questions about time: when, since when, until when."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .asking import Reading
from .candidates import Candidate
from .english import BE, DATE, RELATIVE

_WORDS = {"in": "when", "on": "when", "since": "since when", "until": "until when"}
_SAID = frozenset(
    "report say announce state claim note tell ask argue show find declare confirm explain".split()
)
_TIED = RELATIVE | {"since", "before", "after", "until", "between", "from", "through", "during", "for", "of"}


def about_dates(reading: Reading) -> Iterator[Candidate]:
    """Questions whose answer is the one date of the main clause."""
    clause = reading.clause
    if clause is None or DATE.search(clause.subject):
        return
    dates = list(DATE.finditer(clause.main))
    lead = DATE.fullmatch(clause.lead)
    plain = not (clause.verb in BE and re.match(r"(?:the|an?|one) ", clause.main))
    if lead and clause.lead_word in _WORDS and not dates and not clause.is_cut and plain:
        words = _WORDS[clause.lead_word]
        span = (clause.lead_at, clause.lead_at + len(clause.lead))
        yield _put(reading, words, clause.main, span)
    if len(dates) != 1 or clause.lead:
        return
    date = dates[0]
    pre, after = clause.main[: date.start()].rstrip(), clause.main[date.end() :].strip()
    preposition = pre.rpartition(" ")[2].lower()
    pre = pre[: len(pre) - len(preposition)].strip()
    if (
        preposition not in _WORDS
        or _TIED & set(pre.lower().split())
        or re.match(r"[–\-/]|(?:and|or|to|when|while|as|after|before)\b", after)
    ):
        return
    if (
        (after and clause.is_cut)
        or re.search(r"\bto [a-z]+", pre)
        or (not pre and clause.form == "auxiliary")
    ):
        return
    if clause.base in _SAID and not pre and not after:
        return  # what was said comes behind the mark
    span = (clause.at + date.start(), clause.at + date.end())
    yield _put(reading, _WORDS[preposition], f"{pre} {after}", span, preposition)


def _put(reading: Reading, words: str, rest: str, span: tuple[int, int], preposition: str = "") -> Candidate:
    clause = reading.clause
    if clause is None:
        raise ValueError("a question about a date needs a clause")
    date = reading.text[slice(*span)]
    other = (f"{preposition} {date}",) if preposition else ()
    question, told = f"{words} {clause.asked(rest)}", f"{words} {clause.told(rest)}"
    return reading.put("date", "date", question, span, told=told, alternatives=other)
