"""Questions about amounts: how many, how much, how long, how often."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .asking import Reading
from .candidates import Candidate
from .clauses import Clause
from .english import (
    BE,
    DATE,
    DIMENSIONS,
    MEASURES,
    NUMBER,
    PREPOSITIONS,
    QUALIFIER,
    RELATIVE,
    STOP,
    TIMES,
    is_plural,
    verbs,
)

_AMOUNT = re.compile(
    rf"(?<![\w.,$€£-])(?P<qualifier>{QUALIFIER})?"
    rf"(?P<figure>(?P<money>(?:US)?[$€£] ?)?{NUMBER})(?![\w-]| @| - |[.,:]\d)"
    rf"(?P<percent> ?%| per ?cent\b)?"
    rf"(?: \([^)]{{1,20}}\)(?=$|[ ,.]))?",
    re.IGNORECASE,
)
_RATE = re.compile(
    r" (?:a|an|per|each|every) (?:cubic |square )?(?:night|day|week|month|year|hour|minute|second|person"
    r"|passenger|share|(?:kilo|centi|milli)?(?:metre|meter|gram)|tonne|ton|litre|liter|mile|kilowatt-hour|megawatt-hour|unit|trip|head)\b"
)
_CURRENCY = frozenset("crown crowns dollar dollars euro euros cent cents pound pounds".split())
_PREPOSITION = re.compile(
    r"(?:^| )(at|in|on|for|within|over|after|with|every|through|across|from|to|by|of|under)$"
)
_NUMBERED = re.compile(
    r"(?:Figs?|Figure|Tables?|No|Nos|Section|Note|Notes|Chapter|Eq|Vol|Step|Item|page|pages|p|pp|version|type|class|grade|phase"
    r"|stage|level|post|room|channel|form|article|part|item|group|these|those|other|first|last|next|past"
    r"|previous|all|@-@|@,@|@.@)\.? $"
    r"|(?-i:[A-Z]{2,} $)|\d%? (?:and|to|or|–|-) $",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:increas|decreas|rise|rose|risen|fall|fell|reduc|declin|grow|grew|drop|improv|cut|lower)"
)
_AFTER = re.compile(r"(?:$|(?:in|on|at|for|per|from|to|under|during|after|before|by|with|when|if|as of) )")


class Amount(NamedTuple):
    """A number in a text and what it counts: text[start:end] is the figure, [end:noun_end] the noun."""

    start: int
    end: int
    noun_end: int
    noun: str
    kind: str  # money, percent, measure, time, count
    qualifier: str


def amounts(text: str) -> list[Amount]:
    """The amounts in a text whose noun can be told; no dates, no codes, no numbers of pages or versions."""
    taken = [match.span() for match in DATE.finditer(text)]
    found = []
    for match in _AMOUNT.finditer(text):
        start, end = match.start("figure"), match.end("figure")
        if any(first < end and start < last for first, last in taken) or _NUMBERED.search(
            text[max(0, start - 20) : start]
        ):
            continue
        qualifier = (match["qualifier"] or "").strip()
        if match["money"]:
            found.append(Amount(start, end, end, "", "money", qualifier))
        elif match["percent"]:
            found.append(Amount(start, match.end("percent"), match.end("percent"), "", "percent", qualifier))
        else:
            noun = _noun(text[end:])
            if noun:
                last = noun.split()[-1]
                kind = "time" if last in TIMES else "measure" if last in MEASURES else "count"
                found.append(Amount(start, end, end + 1 + len(noun), noun, kind, qualifier))
    return found


def _noun(rest: str) -> str:
    """The noun phrase right behind a number: up to two words and a plural, or a unit."""
    words = re.match(r"(?: [a-z-]+(?=[ ,.;:)]|$)){1,3}", rest)
    if not words:
        return ""
    kept: list[str] = []
    for word in words.group().split():
        if (
            word in STOP
            or (word in verbs() and not is_plural(word))
            or word in ("and", "or", "more", "other")
        ):
            return ""
        kept.append(word)
        if word in MEASURES or word in TIMES or is_plural(word):
            return " ".join(kept)
    return ""


def about_numbers(reading: Reading) -> Iterator[Candidate]:
    """Questions whose answer is an amount in the main clause; at most one a sentence."""
    clause = reading.clause
    if clause is None:
        return
    counted = _counted_subject(reading, clause) or _sized_subject(reading, clause)
    if counted is not None:
        yield counted
        return
    for amount in amounts(clause.main):
        pre, after = clause.main[: amount.start], clause.main[amount.noun_end :].strip()
        if amount.qualifier:
            pre = pre[: pre.rfind(clause.main[amount.start - len(amount.qualifier) - 1 : amount.start - 1])]
        pre = pre.strip()
        made = _asked(reading, clause, amount, pre, _one_clause(after))
        if made is not None:
            yield made
            return


def _sized_subject(reading: Reading, clause: Clause) -> Candidate | None:
    """`A deposit of 50 crowns is taken`: how large a deposit is taken?"""
    match = re.match(r"(an? [a-z-]+(?: [a-z-]+)?) of (?=\S)", clause.subject)
    found = amounts(clause.subject)
    if match is None or len(found) != 1 or found[0].kind not in ("money", "measure", "percent"):
        return None
    amount = found[0]
    if amount.start - len(amount.qualifier) - bool(amount.qualifier) != match.end():
        return None
    question = f"how large {match[1]} {clause.subject[amount.noun_end :].strip()} {clause.verb} {clause.main}"
    return reading.put("number", "number", question, (amount.start, amount.noun_end), told=question)


def _one_clause(after: str) -> str:
    """What comes behind an amount, up to where something else begins to be said."""
    for match in re.finditer(r"(?:^| )(?:and|or|but) (.+)", after):
        first = match[1].split(" ")[0]
        if (
            match.start() == 0
            or first in verbs()
            or first in BE
            or re.search(r"\d", match[1])
            or first in ("not", "so", "then", "twice", "once")
        ):
            return after[: match.start()].strip()
    return after


def _counted_subject(reading: Reading, clause: Clause) -> Candidate | None:
    """`Five members make a quorum`: how many members make a quorum?"""
    at = reading.text.lower().find(clause.subject.lower())
    found = [amount for amount in amounts(clause.subject) if amount.start <= len(amount.qualifier) + 1]
    if len(found) != 1 or found[0].kind != "count" or at < 0 or clause.lead:
        return None
    amount = found[0]
    verb = verbs().get(amount.noun.split()[-1])
    if clause.is_cut or (verb is not None and verb.form == "present"):
        return None  # "2 reflects changes": a footnote
    rest = f"{clause.subject[amount.end :].strip()} {clause.verb} {clause.main}"
    question = f"how many {rest}"
    span = (at + amount.start, at + amount.end)
    return reading.put("number", "number", question, span, told=question, subject=clause.main)


def _asked(reading: Reading, clause: Clause, amount: Amount, pre: str, after: str) -> Candidate | None:
    if RELATIVE & set(pre.lower().split()) or re.search(r"\S to [a-z]+", pre):
        return None  # the amount may belong to the other verb
    if clause.lead:
        after = f"{after} {clause.lead_word} {clause.lead}".strip()
    figure = (clause.at + amount.start, clause.at + amount.end)
    whole = (clause.at + amount.start, clause.at + amount.noun_end)
    form = _form(clause, amount, pre, after)
    if form is None:
        return None
    words, pre, after, with_noun = form
    is_small = not re.search(r"\d\d", reading.text[slice(*figure)])
    if amount.qualifier.lower() in ("over", "under", "around") and is_small:
        return None  # "over three seasons" is no number of seasons
    last = pre.rpartition(" ")[2]
    is_range = re.match(r"(?:to|and|or|–|-) ?[$€£]?\d", after) is not None
    if (
        last in PREPOSITIONS
        or after.startswith(("of ", "that ", "which ", "who "))
        or is_range
        or (after and clause.is_cut)
    ):
        return None
    span = whole if with_noun else figure
    if with_noun:
        rate = _RATE.match(clause.main, amount.noun_end)
        if rate:
            span = (span[0], clause.at + rate.end())
            after = after.removeprefix(rate.group().strip()).strip()
        if words == "how often":
            span = (span[0] - len("every "), span[1])
    rest = f"{pre} {after}"
    bare = () if with_noun else (f"{reading.text[slice(*whole)]}",)
    if amount.qualifier and with_noun:
        bare = (f"{amount.qualifier} {reading.text[slice(*span)]}",)
    question, told = f"{words} {clause.asked(rest)}", f"{words} {clause.told(rest)}"
    return reading.put("number", "number", question, span, told=told, alternatives=bare)


def _form(clause: Clause, amount: Amount, pre: str, after: str) -> tuple[str, str, str, bool] | None:
    """(question words, what is left before, after, whether the answer has its noun) or None."""
    if not pre:
        return _direct_object(clause, amount, after)
    match = _PREPOSITION.search(pre)
    if match is None:
        # The verb behind an auxiliary: `has carried 64 passengers`, `should take 50 minutes`.
        one_verb = clause.form == "auxiliary" and len(pre.split()) == 1
        if one_verb and amount.kind == "count":
            return f"how many {amount.noun}", pre, after, False
        if one_verb and amount.kind == "time" and pre in ("take", "last", "taken", "lasted"):
            return "how long", pre, after, True
        return None
    preposition, pre = match[1], pre[: match.start()].strip()
    if not pre and clause.form == "auxiliary" and clause.verb in BE and preposition != "within":
        return None
    if preposition == "every" and amount.kind == "time" and not amount.qualifier:
        return "how often", pre, after, True
    if preposition == "for" and amount.kind == "time":
        return "for how long", pre, after, True
    if preposition == "for" and amount.kind == "money":
        return "for how much", pre, after, True
    if preposition == "within" and amount.kind == "time":
        return "within what time", pre, after, True
    if preposition == "by" and amount.kind == "percent" and _CHANGE.search(f"{clause.base} {pre}"):
        return "by what percentage", pre, after, True
    plain = preposition in ("at", "in", "on", "for", "over", "with", "through", "across")
    if plain and amount.kind == "count" and not amount.qualifier and not after.startswith("of "):
        return f"{preposition} how many {amount.noun}", pre, after, False
    return None


def _direct_object(clause: Clause, amount: Amount, after: str) -> tuple[str, str, str, bool] | None:
    """The amount comes right behind the verb."""
    first = after.partition(" ")[0]
    if clause.form == "auxiliary":
        if clause.verb not in BE:
            return None
        if first in DIMENSIONS and amount.kind in ("measure", "time"):
            words = "how wide" if first == "across" else f"how {first}"
            return words, "", after[len(first) :].strip(), True
        rate = re.match(_RATE.pattern.strip(), after)
        left = after[rate.end() :].strip() if rate else after
        if (
            amount.kind in ("money", "measure", "percent", "time")
            and _AFTER.match(left)
            and not clause.is_cut
        ):
            price = amount.kind == "money" or amount.noun in _CURRENCY
            return "how much" if price else "what", "", after, True
        return None
    if after.startswith("of ") and amount.kind != "percent":
        return None
    if clause.base in ("weigh", "cost") and amount.kind in ("measure", "money"):
        return "how much", "", after, True
    if clause.base in ("last", "take") and amount.kind == "time":
        return "how long", "", after, True
    if amount.kind == "money" and _AFTER.match(after):
        return "how much", "", after, True
    if amount.kind in ("count", "measure") or (amount.kind == "time" and clause.base == "have"):
        return f"how many {amount.noun}", "", after, False
    return None
