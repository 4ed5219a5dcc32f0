"""Write questions by rules, without a model: each maker looks at each sentence of a document.

A maker yields nothing unless the sentence has one of a few safe forms: a wrong question is worse than none.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from .checks import Candidate
from .clauses import Clause, Reading, readings
from .english import (
    BE,
    DATE,
    DIMENSIONS,
    LEANING,
    MEASURES,
    NUMBER,
    NUMBER_WORD,
    PERSON_NOUNS,
    PREPOSITIONS,
    QUALIFIER,
    RELATIVE,
    STOP,
    TIMES,
    is_plural,
    participles,
    verbs,
)
from .passages import PERSON, CutDocument, Vocabulary, tidy

# Who, what and where: definitions, people, places.


_DEFINED = re.compile(r"(?:a|an|the|one of the) (?=[a-zA-Z])")
# `X is the result of ...` says nothing about what X is.
_VAGUE = frozenset(
    """result reason problem case example part number lot way fact same first last only most kind matter time
    question subject target focus cause basis aim goal key start end beginning sum total majority best worst
    latter former""".split()
)
_PLACED = {"lies", "lie", "lay", "stands", "stand", "stood"}
_PLACED_AFTER_BE = ("located", "situated", "housed", "held", "kept", "buried", "moored", "stored")
_AGENT = re.compile(
    r"[A-Z][\w'’.-]*(?: (?:(?:and|of|the|&) )?[A-Z][\w'’.-]*)*"
    r"|(?:the|an?|any) [a-z]+(?: [a-z]+){0,2}?(?: of [a-z]+)?(?= |$)"
)
_WHERE = re.compile(
    r"(?:in|on|at|near|beside|under|behind|between|off|along|within|above|below|outside|inside) "
)
_WHERE_AFTER_VERB = re.compile(r"(?:in|on|at|near|beside|within) ")  # not `kept under observation`
_TIME_OR_ACTION = re.compile(r"(?:in|on|at) (?:\d|[a-z]+ing )")
_HEAD_ENDS = re.compile(r" (?:of|in|at|on|for|from|by|who|that|which|to|with) ")


def about_definitions(reading: Reading, clause: Clause) -> Iterator[Candidate]:
    """`X is a ...`: what is X, or who is X."""
    if clause.verb not in BE or clause.lead or clause.is_cut or not _DEFINED.match(clause.main):
        return
    words, subject = clause.main.lower().split(), clause.subject
    if words[1] in _VAGUE or not 4 <= len(words) <= 25 or len(subject.split()) > 6:
        return
    if not reading.vocabulary.has_name(subject.removeprefix("the ")):
        return
    head = _HEAD_ENDS.split(clause.main)[0].split()[-1].lower()
    person = reading.vocabulary.is_person(subject)
    if (head in PERSON_NOUNS or head.endswith("ist")) and not person:
        person = bool(PERSON.fullmatch(subject))
        if not person:
            return
    word = "who" if person else "what"
    yield reading.put(
        "definition",
        "text",
        f"{word} {clause.verb} {subject}",
        clause.span(0, len(clause.main)),
        indirect=f"{word} {subject} {clause.verb}",
    )


def about_people(reading: Reading, clause: Clause) -> Iterator[Candidate]:
    """The person who does what the sentence says, or whom it names at its end, or by whom it was done."""
    if clause.lead or clause.is_cut:
        return
    is_person = reading.vocabulary.is_person
    doer = is_person(clause.subject) or (_is_role(clause.subject) and clause.verb not in BE)
    starts = reading.text.lower().startswith(clause.subject.lower())
    if doer and starts and not clause.main.startswith(("a ", "an ")):
        rest = f"who {clause.verb} {clause.main}"
        span = (0, len(clause.subject))
        yield reading.put("name", "name", rest, span, indirect=rest, subject=clause.main)
    elif PERSON.match(clause.main) and clause.verb in ("is", "was"):
        if PERSON.fullmatch(clause.main) and is_person(clause.main):
            yield reading.ask(clause, "name", "name", "who", "", clause.span(0, len(clause.main)))
    else:
        yield from _by_whom(reading, clause)


def _by_whom(reading: Reading, clause: Clause) -> Iterator[Candidate]:
    match = re.search(r" by (?=[A-Z]|the |an? |any )", clause.main)
    if match is None:
        return
    pre = clause.main[: match.start()]
    verb = pre.removeprefix("be ").split()[0]
    if verb not in participles() or RELATIVE & set(pre.lower().split()):
        return
    name = _AGENT.match(clause.main, match.end())
    if name is None or " " not in name.group() or (name.group()[0].islower() and not _is_role(name.group())):
        return
    after = clause.main[name.end() :].strip()
    if after.startswith(("and", "or", ",")):
        return
    span = clause.span(match.end(), name.end())
    other = (f"by {name.group()}",)
    yield reading.ask(clause, "name", "name", "by whom", f"{pre} {after}", span, other)


def _is_role(phrase: str) -> bool:
    """`the chief water engineer`, `any head of department`: someone, by what they do."""
    head = re.split(r" (?:of|in|at|on|for|from) ", phrase)[0].split()
    return len(head) > 1 and head[0] in ("the", "any", "a", "an") and head[-1] in PERSON_NOUNS - {"author"}


def about_places(reading: Reading, clause: Clause) -> Iterator[Candidate]:
    """Ask where something is."""
    if clause.lead or clause.is_cut:
        return
    start = 0
    if clause.verb in BE:
        first = clause.main.split(" ")[0]
        if first in _PLACED_AFTER_BE:
            start = len(first) + 1
    elif clause.verb not in _PLACED:
        return
    place = clause.main[start:]
    where = _WHERE_AFTER_VERB if start else _WHERE
    if not where.match(place) or len(place.split()) > 12 or _TIME_OR_ACTION.match(place):
        return
    if not re.search(r"[A-Z]", " ".join(place.split()[:7])):
        return
    span = clause.span(start, len(clause.main))
    yield reading.ask(clause, "place", "place", "where", clause.main[:start].strip(), span)


# When, since when, until when.


_WORDS = {"in": "when", "on": "when", "since": "since when", "until": "until when"}
_DATE_GOES_ON = re.compile(r"[–\-/]|(?:and|or|to|when|while|as|after|before)\b")
# With one of these before the date, it may belong to a subordinate clause.
_TIED = RELATIVE | {"since", "before", "after", "until", "between", "from", "through", "during", "for", "of"}


def about_dates(reading: Reading, clause: Clause) -> Iterator[Candidate]:
    """Ask for the only date of the main clause."""
    dates = list(DATE.finditer(clause.main))
    is_definition = clause.verb in BE and re.match(r"(?:the|an?|one) ", clause.main)
    has_date_in_front = clause.lead_word in _WORDS and DATE.fullmatch(clause.lead)
    if has_date_in_front and not dates and not clause.is_cut and not is_definition:
        span = (clause.lead_at, clause.lead_at + len(clause.lead))
        yield reading.ask(clause, "date", "date", _WORDS[clause.lead_word], clause.main, span)
    if len(dates) != 1 or clause.lead:
        return
    date = dates[0]
    pre, after = clause.main[: date.start()].rstrip(), clause.main[date.end() :].strip()
    preposition = pre.rpartition(" ")[2].lower()
    pre = pre[: len(pre) - len(preposition)].strip()
    if preposition not in _WORDS or _TIED & set(pre.lower().split()) or _DATE_GOES_ON.match(after):
        return
    if (after and clause.is_cut) or re.search(r"\bto [a-z]+", pre):
        return
    span = clause.span(*date.span())
    other = (f"{preposition} {date.group()}",)
    yield reading.ask(clause, "date", "date", _WORDS[preposition], f"{pre} {after}", span, other)


# How many, how much, how long, how often.

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
_KIND_OF_UNIT = {**dict.fromkeys(MEASURES, "measure"), **dict.fromkeys(TIMES, "time")}
_CURRENCY = frozenset("crown crowns dollar dollars euro euros cent cents pound pounds".split())
_PREPOSITION = re.compile(
    r"(?:^| )(at|in|on|for|within|over|after|with|every|through|across|from|to|by|of|under)$"
)
# `Table 3`, `version 2`: a number that names, not counts.
_NUMBERED = re.compile(
    r"(?:Figs?|Figure|Tables?|No|Nos|Section|Note|Notes|Chapter|Eq|Vol|Step|Item|page|pages|p|pp|version|type|class|grade|phase"
    r"|stage|level|post|room|channel|form|article|part|item|group|these|those|other|first|last|next|past"
    r"|previous|all|@-@|@,@|@.@)\.? $"
    r"|(?-i:[A-Z]{2,9} $)|\d%? (?:and|to|or|–|-) $",
    re.IGNORECASE,
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
    """Return the amounts in a text with their nouns; no dates, codes, page numbers or versions."""
    taken = [match.span() for match in DATE.finditer(text)]
    parsed = []
    for match in _AMOUNT.finditer(text):
        start, end = match.start("figure"), match.end("figure")
        in_date = any(first < end and start < last for first, last in taken)
        if in_date or _NUMBERED.search(text[max(0, start - 20) : start]):
            continue
        qualifier = (match["qualifier"] or "").strip()
        noun = _noun(text[end:])
        if match["money"]:
            parsed.append(Amount(start, end, end, "", "money", qualifier))
        elif match["percent"]:
            parsed.append(Amount(start, match.end("percent"), match.end("percent"), "", "percent", qualifier))
        elif noun:
            kind = _KIND_OF_UNIT.get(noun.split()[-1], "count")
            parsed.append(Amount(start, end, end + 1 + len(noun), noun, kind, qualifier))
    return parsed


def _noun(rest: str) -> str:
    """Return the noun phrase after a number: up to two words and a plural, or a unit."""
    words = re.match(r"(?: [a-z-]+(?=[ ,.;:)]|$)){1,3}", rest)
    if not words:
        return ""
    kept: list[str] = []
    for word in words.group().split():
        if word in STOP or (word in verbs() and not is_plural(word)):
            return ""
        kept.append(word)
        if word in MEASURES or word in TIMES or is_plural(word):
            return " ".join(kept)
    return ""


def about_numbers(reading: Reading, clause: Clause) -> Iterator[Candidate]:
    """Ask for an amount in the main clause, at most once per sentence."""
    about_subject = _counted_subject(reading, clause)
    if about_subject is not None:
        yield about_subject
        return
    for amount in amounts(clause.main):
        pre, after = clause.main[: amount.start], clause.main[amount.noun_end :].strip()
        if amount.qualifier:
            pre = pre[: pre.rfind(clause.main[amount.start - len(amount.qualifier) - 1 : amount.start - 1])]
        candidate = _about_amount(reading, clause, amount, pre.strip(), _one_clause(after))
        if candidate is not None:
            yield candidate
            return


def _one_clause(after: str) -> str:
    """Return the text after an amount up to the next statement."""
    for match in re.finditer(r"(?:^| )(?:and|or|but) (.+)", after):
        first = match[1].split(" ")[0]
        starts_clause = first in verbs() or first in BE or first in ("not", "so", "then", "twice", "once")
        if match.start() == 0 or starts_clause or re.search(r"\d", match[1]):
            return after[: match.start()].strip()
    return after


def _counted_subject(reading: Reading, clause: Clause) -> Candidate | None:
    """`Five members make a quorum`: how many members make a quorum?"""
    at = reading.text.lower().find(clause.subject.lower())
    counts = [amount for amount in amounts(clause.subject) if amount.start <= len(amount.qualifier) + 1]
    if len(counts) != 1 or counts[0].kind != "count" or at < 0 or clause.lead or clause.is_cut:
        return None
    count = counts[0]
    verb = verbs().get(count.noun.split()[-1])
    if verb is not None and verb.form == "present":
        return None  # "2 reflects changes": a footnote
    question = f"how many {clause.subject[count.end :].strip()} {clause.verb} {clause.main}"
    span = (at + count.start, at + count.end)
    return reading.put("number", "number", question, span, indirect=question, subject=clause.main)


class _Form(NamedTuple):
    """The question words, the text before and after the amount, and whether the answer includes its noun."""

    words: str
    pre: str
    after: str
    with_noun: bool


def _about_amount(reading: Reading, clause: Clause, amount: Amount, pre: str, after: str) -> Candidate | None:
    if RELATIVE & set(pre.lower().split()) or re.search(r"\S to [a-z]+", pre):
        return None  # the amount may belong to the other verb
    if clause.lead:
        after = f"{after} {clause.lead_word} {clause.lead}".strip()
    form = _after_preposition(clause, amount, pre, after) if pre else _direct_object(clause, amount, after)
    if form is None or not _is_whole(clause, form):
        return None
    noun_end, after = amount.noun_end, form.after
    start = amount.start - len("every ") if form.words == "how often" else amount.start
    if form.with_noun:
        rate = _RATE.match(clause.main, amount.noun_end)
        if rate:
            noun_end = rate.end()
            after = after.removeprefix(rate.group().strip()).strip()
        answer = clause.main[start:noun_end]
        others = (f"{amount.qualifier} {answer}",) if amount.qualifier else ()
    else:
        others = (clause.main[start:noun_end],)
    span = clause.span(start, noun_end if form.with_noun else amount.end)
    return reading.ask(clause, "number", "number", form.words, f"{form.pre} {after}", span, others)


def _is_whole(clause: Clause, form: _Form) -> bool:
    """Return whether the amount is complete: not one end of a range, a period or a part of something."""
    if form.pre.rpartition(" ")[2] in PREPOSITIONS or (form.after and clause.is_cut):
        return False
    return not re.match(r"(?:of|that|which|who) |(?:to|and|or|–|-) ?[$€£]?\d", form.after)


# (preposition, kind of the amount) -> question words.
_ASK_AFTER = {
    ("every", "time"): "how often",
    ("for", "time"): "for how long",
    ("for", "money"): "for how much",
    ("within", "time"): "within what time",
    ("by", "percent"): "by what percentage",
}


def _after_preposition(clause: Clause, amount: Amount, pre: str, after: str) -> _Form | None:
    """Return the form for an amount after a preposition, or after a verb behind an auxiliary."""
    match = _PREPOSITION.search(pre)
    if match is None:
        # `has carried 64 passengers`, `should take 50 minutes`.
        one_verb = clause.form == "auxiliary" and " " not in pre
        if one_verb and amount.kind == "count":
            return _Form(f"how many {amount.noun}", pre, after, with_noun=False)
        takes_time = amount.kind == "time" and pre in ("take", "last", "taken", "lasted")
        return _Form("how long", pre, after, with_noun=True) if one_verb and takes_time else None
    preposition, pre = match[1], pre[: match.start()].strip()
    words = _ASK_AFTER.get((preposition, amount.kind))
    if words is None:
        return _count_after(preposition, amount, pre, after)
    return _Form(words, pre, after, with_noun=True)


def _count_after(preposition: str, amount: Amount, pre: str, after: str) -> _Form | None:
    plain = preposition in ("at", "in", "on", "for", "over", "with", "through", "across")
    if plain and amount.kind == "count" and not amount.qualifier:
        return _Form(f"{preposition} how many {amount.noun}", pre, after, with_noun=False)
    return None


def _direct_object(clause: Clause, amount: Amount, after: str) -> _Form | None:
    """Return the form for an amount directly after the verb."""
    if clause.form == "auxiliary":
        return _after_be(clause, amount, after) if clause.verb in BE else None
    if clause.base in ("last", "take") and amount.kind == "time":
        return _Form("how long", "", after, with_noun=True)
    weighs = clause.base in ("weigh", "cost") and amount.kind in ("measure", "money")
    if weighs or (amount.kind == "money" and _AFTER.match(after)):
        return _Form("how much", "", after, with_noun=True)
    if amount.kind in ("count", "measure") or (amount.kind == "time" and clause.base == "have"):
        return _Form(f"how many {amount.noun}", "", after, with_noun=False)
    return None


def _after_be(clause: Clause, amount: Amount, after: str) -> _Form | None:
    first = after.partition(" ")[0]
    if first in DIMENSIONS and amount.kind in ("measure", "time"):
        words = "how wide" if first == "across" else f"how {first}"
        return _Form(words, "", after[len(first) :].strip(), with_noun=True)
    rate = re.match(_RATE.pattern.strip(), after)
    left = after[rate.end() :].strip() if rate else after
    if amount.kind == "count" or clause.is_cut or not _AFTER.match(left):
        return None
    is_price = amount.kind == "money" or amount.noun in _CURRENCY
    return _Form("how much" if is_price else "what", "", after, with_noun=True)


# Questions that the text asks itself, and lists.

_ENUMERATED = re.compile(
    rf"\b(?:the|its|their|these|into|of) ?(?P<count>{NUMBER_WORD}) (?P<noun>(?:[a-z-]+ ){{0,3}}[a-z-]+s) ?: "
    r"(?P<items>[^.;:!?]+?(?:,| ,) ?[^.;:!?]+? and [^.;:!?,]+)(?= ?[.;])"
)


def self_asked(reading: Reading) -> Iterator[Candidate]:
    """A question in the text, or as a heading, with the sentence that follows as its answer."""
    text, after = reading.text, reading.after
    if not text.endswith("?") or after is None or after.paragraph != reading.sentence.paragraph:
        return
    whole = reading.document.source.text
    answer = whole[after.start : after.end]
    words = text.lower().rstrip("?").split()
    paragraph = [each for each in reading.document.outline.sentences if each.paragraph == after.paragraph]
    if sum(whole[each.start : each.end].endswith("?") for each in paragraph) < 2 or "n't" in text:
        return  # a single question among statements is rhetorical
    if answer.endswith("?") or not 4 <= len(words) <= 25 or not 3 <= len(answer.split()) <= 60:
        return
    if words[0] not in ("who what when where which why how can may is are do does must will should".split()):
        return
    span = (after.start - reading.sentence.start, after.end - reading.sentence.start)
    evidence = (reading.sentence.start, after.end)
    question = reading.vocabulary.lowered(text[:1].lower() + text[1:])
    yield reading.put("self_asked", "text", question, span, subject=text, evidence=evidence)


def enumerated(reading: Reading) -> Iterator[Candidate]:
    """`the five islands: A, B, C, D and E`: what are the five islands?"""
    match = _ENUMERATED.search(reading.text)
    if match is None or len(match["items"].split()) > 40:
        return
    count, noun = match["count"], match["noun"]
    question, indirect = f"what are the {count} {noun}", f"what the {count} {noun} are"
    yield reading.put("list", "list", question, match.span("items"), indirect=indirect, subject="")


# Sentences with a blank, for facts whose sentence is too complex for a question.

BLANK = "____"
_FRONTED = frozenset("in on at by since during from after".split())  # prepositions that open a statement
_VAGUE_START = re.compile(
    r"The \w+ ?,|The (?:first|second|third|last|other|two|three|former|latter|others)\b (?:was|is|were|are)\b"
    r"|[A-Z][a-z]+(?:ed|ing) "
)
# A date behind one of these is the end of a range.
_RANGE = re.compile(
    r"\d ?(?:to|and|–|-) ?$|--? $|\b(?:from|between) \S+(?: \S+)? (?:to|and) $", re.IGNORECASE
)
_STANDS_ALONE = re.compile(
    r" ?[.,;]| (?:and|but|in|on|at|by|with|to|from|for|as|after|before|when|where|because|the)\b|$"
)


def with_a_blank(reading: Reading) -> Iterator[Candidate]:
    """The sentence with its one date, or its one amount, left out."""
    text = reading.text
    words = text.split()
    if reading.sentence.is_item or not 8 <= len(words) <= 32 or not text.endswith("."):
        return
    if words[0].lower().strip(",:;.") in LEANING - _FRONTED:
        return
    target = _target(text)
    if target is None:
        return
    kind, start, end = target
    sentence = f"{text[:start]}{BLANK}{text[end:]}"
    has_name = reading.vocabulary.has_name
    if not has_name(" ".join(sentence.split()[1:])) or not _names_enough(reading, sentence):
        return
    subject = reading.clause.subject if reading.clause else " ".join(words[1:5])
    source = "" if has_name(subject) else tidy(reading.topic)
    according = f', according to "{source}"' if source else ""
    offset = reading.sentence.start
    yield Candidate(
        "cloze",
        f'Fill in the blank{according}: "{tidy(sentence)}"',
        text[start:end],
        reading.document.source.name,
        offset + start,
        offset + end,
        (offset, reading.sentence.end),
        kind,
        topic=source or subject,
    )


def _target(text: str) -> tuple[str, int, int] | None:
    """What is left out: the only date, or the only amount."""
    dates, numbers = list(DATE.finditer(text)), amounts(text)
    if len(dates) == 1 and _RANGE.search(text[: dates[0].start()]):
        return None
    if len(dates) == 1 and _STANDS_ALONE.match(text, dates[0].end()):
        return "date", dates[0].start(), dates[0].end()
    if len(numbers) == 1 and not dates:
        amount = numbers[0]
        if re.match(r" ?(?:to|and|or|–|-) ?[$€£]?\d", text[amount.end :]):
            return None  # one end of a range
        if amount.kind == "count" and not text[amount.start].isdigit():
            return None  # a small number in words is guessed too easily
        end = amount.end if amount.kind == "count" else amount.noun_end
        return "number", amount.start, end
    return None


def _names_enough(reading: Reading, sentence: str) -> bool:
    """Return whether two names follow the first word, so that the subject is identifiable."""
    names = [word for word in sentence.split()[1:] if reading.vocabulary.is_name(word)]
    odd = (
        re.search(r"[\"“”()\[\]]", sentence)
        or ":" in " ".join(sentence.split()[:4])
        or _VAGUE_START.match(sentence)
    )
    return len(names) >= 2 and not odd


# All makers together.

CLAUSE_MAKERS = (
    about_definitions,
    about_people,
    about_places,
    about_dates,
    about_numbers,
)
SENTENCE_MAKERS = (self_asked, enumerated, with_a_blank)


def questions_by_rule(document: CutDocument, vocabulary: Vocabulary, chance: Random) -> Iterator[Candidate]:
    """Yield the questions about a document. The vocabulary is that of the whole corpus."""
    by_family: dict[str, list[Candidate]] = defaultdict(list)
    for reading in readings(document, vocabulary):
        candidates = [candidate for make in SENTENCE_MAKERS for candidate in make(reading)]
        if reading.clause is not None:
            for make in CLAUSE_MAKERS:
                candidates += make(reading, reading.clause)
        for candidate in candidates:
            by_family[candidate.family].append(candidate)
    yield from _in_turn(by_family, chance)


def _in_turn(by_family: dict[str, list[Candidate]], chance: Random) -> Iterator[Candidate]:
    """Yield one candidate of each family in turn, so that a few questions are not all of one kind.

    Sentences with a blank come last: they are for facts that no other maker could ask about.
    """
    blanks = by_family.pop("cloze", [])
    shuffled = [chance.sample(candidates, len(candidates)) for _, candidates in sorted(by_family.items())]
    while any(shuffled):
        for candidates in shuffled:
            if candidates:
                yield candidates.pop()
    yield from chance.sample(blanks, len(blanks))
