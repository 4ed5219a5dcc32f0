"""Questions about who, what and where: definitions, people, makers, places."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .asking import Reading
from .candidates import Candidate
from .clauses import Clause
from .english import BE, PERSON_NOUNS, RELATIVE, participles
from .vocabulary import PERSON

_DEFINED = re.compile(r"(?:a|an|the|one of the) (?=[a-zA-Z])")
_VAGUE = frozenset(
    """result reason problem case example part number lot way fact same first last only most kind matter time
    question subject target focus cause basis aim goal key start end beginning sum total majority best worst
    latter former""".split()
)
_KIN = frozenset(
    """character descendant son daughter brother sister native graduate winner cousin nephew friend man
    woman""".split()
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


def about_definitions(reading: Reading) -> Iterator[Candidate]:
    """`X is a ...`: what is X, or who is X."""
    clause = reading.clause
    if clause is None or clause.verb not in BE or clause.lead or not _DEFINED.match(clause.main):
        return
    if clause.is_cut:
        return
    words = clause.main.lower().split()
    subject = clause.subject
    if words[1] in _VAGUE or not 4 <= len(words) <= 25 or len(subject.split()) > 6:
        return
    if not _names_a_thing(reading, clause) or re.search(
        r"\b(?:of|in|at|on|for|from|by|and|about|to|with)\b", subject
    ):
        return
    person = reading.vocabulary.is_person(subject)
    head = (
        re.split(r" (?:of|in|at|on|for|from|by|who|that|which|to|with) ", clause.main)[0].split()[-1].lower()
    )
    if head in _VAGUE:
        return
    if _is_profession(head) and not person and not subject.lower().startswith(("a ", "an ", "the ")):
        person = clause.verb in ("is", "was") and bool(PERSON.fullmatch(subject))
        if not person:
            return
    if not person and PERSON_NOUNS & set(subject.lower().split()):
        return
    word = "who" if person else "what"
    span = (clause.at, clause.at + len(clause.main))
    told = f"{word} {subject} {clause.verb}"
    yield reading.put("definition", "text", f"{word} {clause.verb} {subject}", span, told=told)


def _is_profession(noun: str) -> bool:
    return noun in PERSON_NOUNS or noun in _KIN or bool(re.search(r"(?:ologist|ist|grapher|ician)$", noun))


def _names_a_thing(reading: Reading, clause: Clause) -> bool:
    """Whether a subject can be asked about by itself: a name, or a kind of thing (`a quorum`)."""
    first = clause.subject.split()[0]
    if first in ("a", "an"):
        return bool(re.match(r"an? ", clause.main)) and len(clause.subject.split()) <= 3
    if re.fullmatch(r"[A-Z.]{1,3}", clause.subject):
        return False  # initials, as of the authors of a paper
    return reading.vocabulary.has_name(clause.subject.removeprefix("the "))


def about_people(reading: Reading) -> Iterator[Candidate]:
    """The person who does what the sentence says, or whom it names at its end, or by whom it was done."""
    clause = reading.clause
    if clause is None or clause.lead or clause.is_cut:
        return
    vocabulary = reading.vocabulary
    at = reading.text.lower().find(clause.subject.lower())
    doer = vocabulary.is_person(clause.subject) or (_is_role(clause.subject) and clause.verb not in BE)
    if doer and at == 0 and len(clause.main.split()) >= 2 and not clause.main.startswith(("a ", "an ")):
        rest = f"who {clause.verb} {clause.main}"
        span = (at, at + len(clause.subject))
        yield reading.put("name", "name", rest, span, told=rest, subject=clause.main)
        return
    match = PERSON.match(clause.main)
    if match and clause.verb in ("is", "was") and match.end() == len(clause.main):
        if vocabulary.is_person(match.group()):
            span = (clause.at, clause.at + match.end())
            told = f"who {clause.subject} {clause.verb}"
            yield reading.put("name", "name", f"who {clause.asked('')}", span, told=told)
        return
    yield from _by_whom(reading, clause)


def _by_whom(reading: Reading, clause: Clause) -> Iterator[Candidate]:
    match = re.search(r" by (?=[A-Z]|the |an? |any )", clause.main)
    if match is None or clause.form != "auxiliary":
        return
    pre = clause.main[: match.start()]
    verb = pre.removeprefix("be ").split()[0]
    if verb not in participles() or RELATIVE & set(pre.lower().split()):
        return
    name = _AGENT.match(clause.main, match.end())
    if name is None or " " not in name.group() or (name.group()[0].islower() and not _is_role(name.group())):
        return
    after = clause.main[name.end() :].strip()
    if re.match(r"(?:and|or|,)", after):
        return
    span = (clause.at + match.end(), clause.at + name.end())
    rest = f"{pre} {after}"
    question, told = f"by whom {clause.asked(rest)}", f"by whom {clause.told(rest)}"
    yield reading.put("name", "name", question, span, told=told, alternatives=(f"by {name.group()}",))


def _is_role(phrase: str) -> bool:
    """`the chief water engineer`, `any head of department`: someone, by what they do."""
    head = re.split(r" (?:of|in|at|on|for|from) ", phrase)[0].split()
    return len(head) > 1 and head[0] in ("the", "any", "a", "an") and head[-1] in PERSON_NOUNS - {"author"}


def about_places(reading: Reading) -> Iterator[Candidate]:
    """Where something lies, stands or is held."""
    clause = reading.clause
    if clause is None or clause.lead or clause.is_cut:
        return
    start = 0
    if clause.verb in BE:
        first = clause.main.split(" ")[0]
        if first in _PLACED_AFTER_BE:
            start = len(first) + 1
        elif re.search(
            r"^\S+ (?:\S+ )?(?:charge|order|force|use|favour|favor|part|danger|line|time|contact)\b",
            clause.main,
        ):
            return
    elif clause.verb not in _PLACED:
        return
    place = clause.main[start:]
    if (
        not _WHERE.match(place)
        or len(place.split()) > 12
        or re.match(r"(?:in|on|at) (?:\d|[a-z]+ing )", place)
    ):
        return
    if start and not re.match(r"(?:in|on|at|near|beside|within) ", place):
        return  # kept under observation
    if not re.search(r"[A-Z]", " ".join(place.split()[:7])) or RELATIVE & set(place.lower().split()):
        return
    pre = clause.main[:start].strip()
    span = (clause.at + start, clause.at + len(clause.main))
    question, told = f"where {clause.asked(pre)}", f"where {clause.told(pre)}"
    yield reading.put("place", "place", question, span, told=told)
