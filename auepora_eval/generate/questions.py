"""Questions about definitions, numbers, dates and names, made from plain English sentences by templates.

A sentence gives a question if its subject comes first, its verb is in a short list and the rest fits a
template. The value must be in no other sentence of the corpus, nor the words of the question together: then
a person who has the corpus can answer it, and in one way only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..metrics.robustness.counterfactual import holds_answer
from ..text.content_words import content_words
from ..text.spelled_numbers import NUMBER
from ..text.tokens import words
from .passages import CutDocument, Span

_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_YEAR = r"(?:1[4-9]|20)\d\d"
_DAY = rf"\d\d? {_MONTH}(?: {_YEAR})?|{_MONTH} \d\d?(?:, {_YEAR})?"
DATE = rf"\b(?:{_DAY}|{_MONTH} {_YEAR}|{_YEAR})\b(?![-–%,.]?\d)"
NAME = r"(?<![\w'’-])[A-Z][\w'’-]++(?: [A-Z][\w'’-]++){1,2}"
VALUES = {"number": NUMBER, "date": DATE, "name": NAME}

# Forms of verbs, each with its base. A sentence with another verb gives no question instead of a wrong one.
_PRESENT = """has have costs cost weighs weigh holds hold carries carry contains contain takes take lasts last
    needs need employs employ keeps keep gives give makes make produces produce receives receive requires
    require uses use includes include joins join leads lead lives live owns own pays pay reaches reach runs
    run sells sell serves serve stands stand stores store lies lie"""
_PAST = """had have cost cost weighed weigh held hold carried carry took take lasted last needed need employed
    employ kept keep gave give made make produced produce received receive required require used use included
    include joined join led lead lived live lost lose paid pay reached reach ran run sold sell served serve
    published publish became become began begin built build bought buy came come covered cover designed design
    died die ended end founded found invented invent left leave moved move opened open released release
    replaced replace retired retire returned return started start stood stand won win wrote write approved
    approve"""
_BE = ("is", "are", "was", "were")
_AUXILIARY = (*_BE, *"can could may might must should will would".split())
_ARTICLES = ("The", "A", "An", "Every", "Each")
# Words that refer to another sentence.
POINTING = frozenset(
    """it its he she they him them his her their this these those we us our i me my you your here there then
    such former latter later earlier same other others another next previous following also too again one ones
    ago""".split()
)
_NO_PROSE = re.compile(r"[<>{}|\\_*~^=\[\]@]|https?:|www\.| [.,]|''|\.\.\.|\S{40}|�|\b(?:Figure|Table)s?\b")
_NEGATED = re.compile(r"\b(?:no|not|never|nobody|none|neither|nothing|cannot)\b|n't\b")
_END_OF_CLAUSE = re.compile(
    r"[;:(–—\"“]|,(?! \d{4}\b)(?!\d)|\.(?!\d)"
    r"| (?:and|but|or|which|who|whose|that|when|where|while|because|so|as|until|unless|if|than)\b"
)


def _verb_forms() -> dict[str, tuple[str, str]]:
    """Return the auxiliary and the base of each form: (does, carry) of carries."""
    forms = {verb: (verb, "") for verb in _AUXILIARY}
    forms |= {f"{verb} been": (verb, "been") for verb in ("has", "have", "had")}
    for auxiliary, listed in (("does", _PRESENT.split()), ("did", _PAST.split())):
        forms |= {form: (auxiliary, base) for form, base in zip(listed[::2], listed[1::2], strict=True)}
    return forms


_FORMS = _verb_forms()
_ACTIVE = tuple(verb for verb in _FORMS if verb not in _BE)
_VERB = rf"(?P<verb>{'|'.join(sorted(_FORMS, key=len, reverse=True))})\b"
_WORD = r"(?!(?:that|which|who|whose|when|to)\b)[\w'’-]+"
_MAIN = re.compile(
    rf"(?:(?P<lead>(?:In|On) (?P<date>{DATE})),? )?"
    rf"(?P<subject>{_WORD}(?: {_WORD}){{0,7}}?(?:, [^,]{{2,40}},)?)(?: \([^()]*\))? {_VERB}"
)
_ALSO = re.compile(rf",? (?:and )?{_VERB}")
_PERFECT = re.compile(r"ha(?:s|d|ve) (?!been)\w+(?:ed|en|nt) ")
_ABOUT = "(?:about |some |nearly |almost |around |roughly |only |at least |at most |up to )?"
_NOUN = r"(?:(?!of |to |in |and )[a-z-]+ ){0,2}?(?:[a-z-]+[^\Wsu]s|people|children|men|women)\b"
_RATE = r"(?: (?:a|an|per) (?:minute|hour|day|night|week|month|year)\b)?"
_AMOUNT = rf"{_ABOUT}(?P<value>(?:[$€£]{NUMBER}|{NUMBER} {_NOUN}){_RATE})"
_COUNT = rf"{_ABOUT}(?P<value>{NUMBER}) (?P<noun>{_NOUN}{_RATE}(?: of .*)?)"
_MONEY = rf"{_ABOUT}(?P<value>[$€£]{NUMBER}|{NUMBER} (?:crowns|dollars|euros|pounds))"
_BEFORE, _AFTER = "(?P<before>.*?)", "(?P<after>(?:(?! between ).)*)"
_PLACE = "(?P<preposition>for|within|after|at|in|on|with)"
_MORE = "(?P<after>$| (?:at|for|from|in|on|to|with) .*)"
_DEFINITION = re.compile(
    r" (?P<value>(?:an?|the) (?!first|last|same|result|reason|case)[a-z][^,;:()\"]{8,}?)"
    r"(?=[.,;:(]| and (?:is|are|was|were|has|had|gives|keeps|lives|makes|serves|works) )"
)
# (kind, verbs if not all, question words, what follows the verb); the first that fits is taken.
_TEMPLATES = [
    (kind, verbs, how, re.compile(rf"\A{pattern}"))
    for kind, verbs, how, pattern in (
        ("date", (), "when", rf"{_BEFORE} (?:in|on) (?P<value>{DATE})"),
        ("date", (), "{preposition} when", rf"{_BEFORE} (?P<preposition>since|until) (?P<value>{DATE})"),
        ("number", (), "how often", rf"{_BEFORE} (?P<value>every {NUMBER} {_NOUN}){_AFTER}"),
        ("number", _BE, "how {how}", rf" {_AMOUNT} (?P<how>long|high|wide|deep|tall|old)\b{_AFTER}"),
        ("number", ("costs", "weighs", "cost", "weighed"), "how much", rf" {_AMOUNT}{_AFTER}"),
        ("number", (), "for how much", rf"{_BEFORE} (?:for|at) {_MONEY}{_AFTER}"),
        ("number", (), "{preposition} how many {noun}", rf"{_BEFORE} {_PLACE} {_COUNT}{_AFTER}"),
        ("number", _ACTIVE, "how many {noun}", rf"(?P<before>(?: (?!the |all )[a-z]+)?) {_COUNT}{_AFTER}"),
        ("name", _BE, "by whom", rf"{_BEFORE} by (?P<value>{NAME}){_MORE}"),
    )
]
_THING = re.compile(r"(?:the |an? )?[A-Z][\w'’-]*(?: (?:of |of the |and )?[A-Z0-9][\w'’-]*){0,4}")
_ROLE = re.compile(
    rf"(?<!on )(?<!at )(?<!in )(?<!of )\b(?P<role>[Tt]he [a-z-]+(?: [a-z-]+)?)(?:, | is | was )"
    rf"(?P<value>{NAME})(?=[,.])"
)
# A word in more sentences identifies none of them. This also bounds the time per question.
_MOST = 300


class Question(NamedTuple):
    """A question whose answer is text[start:end] of its document; `evidence` is the span of its sentences.

    `kind` is definition, number, date or name. `indirect` is the question in the order of a statement.
    """

    kind: str
    text: str
    indirect: str
    answer: str
    start: int
    end: int
    evidence: Span = (0, 0)
    alternatives: tuple[str, ...] = ()


def is_plain(sentence: str) -> bool:
    """Return whether a sentence is a statement in prose that does not lean on the one before it."""
    first = sentence.partition(" ")[0]
    is_statement = 4 <= len(words(sentence)) <= 40 and sentence[0].isupper() and sentence.endswith(".")
    is_start = first in _ARTICLES or (content_words(first) and first.lower() not in POINTING)
    return bool(is_statement and is_start and not _NO_PROSE.search(sentence))


def has_clause(sentence: str) -> bool:
    """Return whether a sentence starts with a subject and a known verb: no instruction, no fragment."""
    return _MAIN.match(sentence) is not None


class Facts:
    """The sentences of a corpus by their words, to find what is said only once."""

    def __init__(self, documents: Sequence[CutDocument]) -> None:
        self._sentences: list[str] = []
        self._places: dict[str, set[int]] = defaultdict(set)
        self._small: set[str] = set()  # words without a capital
        self._capital: set[str] = set()  # words with a capital inside a sentence
        values: dict[str, set[str]] = {kind: set() for kind in VALUES}
        for document in documents:
            for start, end in document.sentences:
                sentence = document.source.text[start:end]
                for stem in set(words(sentence, stemmed=True)):
                    self._places[stem].add(len(self._sentences))
                self._sentences.append(f" {' '.join(words(sentence))} ")
                self._small.update(re.findall(r"(?<![\w'’-])[a-z][a-z'’-]+", sentence))
                self._capital.update(re.findall(r" ([A-Z][\w'’-]+)", sentence))
                for kind, pattern in VALUES.items():
                    values[kind].update(re.findall(pattern, sentence))
        values["name"] = set(filter(self.is_person, values["name"]))
        # Sorted, because the order of a set differs between processes.
        self.values = {kind: sorted(found) for kind, found in values.items()}

    def places(self, stems: Iterable[str]) -> set[int]:
        """Return the sentences with all stems, or those of the rarest one if they are too many to compare."""
        sets = sorted((self._places.get(stem, set()) for stem in stems), key=len) or [set()]
        return set.intersection(*sets) if len(sets[0]) <= _MOST else sets[0]

    def count(self, value: str) -> int:
        """Return how often the corpus has a value, or a large number if its words are too common to count."""
        places, said = self.places(words(value, stemmed=True)), f" {' '.join(words(value))} "
        if len(places) > _MOST:
            return _MOST
        return sum(self._sentences[place].count(said) for place in places)

    def is_person(self, name: str) -> bool:
        """Return whether no word of a name is also written small, as `port` of Port Ennick is."""
        return not any(word.lower() in self._small for word in name.split())

    def lowered(self, subject: str) -> str:
        """Return the start of a sentence as it is written inside one, or "" if that is not known."""
        first, _, rest = subject.partition(" ")
        is_word = first in _ARTICLES or (first.lower() in self._small and not rest[:1].isupper())
        if not is_word and (rest[:1].isupper() or not first[1:].islower() or first in self._capital):
            return subject
        return subject[0].lower() + subject[1:] if is_word or first.endswith("s") else ""


class _Clause(NamedTuple):
    """A subject and its verb; sentence[begin:end] follows. `lead` is "in 2030" before the subject."""

    subject: str
    verb: str
    begin: int
    end: int
    lead: str
    date: Span

    def ask(self, how: str, before: str = "", after: str = "") -> tuple[str, str]:
        """Return the question and its indirect form; `before` and `after` are the texts around the value."""
        auxiliary, base = _FORMS[self.verb]
        question = " ".join(f"{how} {auxiliary} {self.subject} {base} {before} {after}".split())
        indirect = " ".join(f"{how} {self.subject} {self.verb} {before} {after}".split())
        return f"{question[0].upper()}{question[1:]}?", indirect


def questions(document: CutDocument, facts: Facts) -> Iterator[Question]:
    """Yield the questions about a document, in the order of its sentences."""
    text = document.source.text
    named, named_at, last_end = "", 0, 0  # the last subject with a name, for which a pronoun may stand
    for start, end in document.sentences:
        sentence = text[start:end]
        pronoun = re.match("(Its?|He|She|His|Her) ", sentence)
        is_near = "\n\n" not in text[last_end:start]
        subject = named if pronoun and is_near and (pronoun[1][0] == "I" or facts.is_person(named)) else ""
        clauses = list(_clauses(sentence, subject, facts))
        evidence = (named_at if subject else start, end)
        for each in _candidates(sentence, clauses, facts):
            question = each._replace(start=start + each.start, end=start + each.end, evidence=evidence)
            if document.chunks_with(*evidence) and _is_good(question, text[slice(*evidence)], facts):
                yield question
        if not subject:
            first = clauses[0].subject.partition(",")[0] if clauses else ""
            named, named_at = first if re.search("[A-Z]", first) else "", start
        last_end = end


def _clauses(sentence: str, subject: str, facts: Facts) -> Iterator[_Clause]:
    """Yield the main clause and those that share its subject: `holds 480 litres and costs 68 crowns`.

    `subject` is what the pronoun at the start stands for.
    """
    match = _MAIN.match(sentence)
    own = re.sub("^(?:It|He|She)\\b", subject, match["subject"]) if match else ""
    own = re.sub("^(?:Its|His|Her)\\b", f"{subject}'s", own)
    if match and not match["lead"] and not subject:
        own = facts.lowered(own)
    if match is None or not own or not is_plain(own[0].upper() + own[1:] + sentence[match.end("subject") :]):
        return
    lead, date = (match["lead"] or "").lower(), match.span("date")
    while match:
        stop = _END_OF_CLAUSE.search(sentence, match.end())
        end = stop.start() if stop else len(sentence)
        # "The company founded in 1911 was sold": founded is not the verb.
        others = set(sentence[match.end() : end].split()) & set(_AUXILIARY)
        if not others and not _PERFECT.match(sentence, match.start("verb")):
            yield _Clause(own, match["verb"], match.end(), end, lead, date)
        match = _ALSO.match(sentence, end)


def _candidates(sentence: str, clauses: Sequence[_Clause], facts: Facts) -> Iterator[Question]:
    for clause in clauses:
        if clause.lead:
            asked = clause.ask("when", sentence[clause.begin : clause.end])
            yield Question("date", *asked, sentence[slice(*clause.date)], *clause.date)
        yield from _fitting(sentence, clause, facts)
    for match in _ROLE.finditer(sentence):
        of = f"the name of {facts.lowered(match['role'])}"
        if facts.is_person(match["value"]):
            yield Question("name", f"What is {of}?", f"what {of} is", match["value"], *match.span("value"))


def _fitting(sentence: str, clause: _Clause, facts: Facts) -> Iterator[Question]:
    """Yield the question of the first template that fits a clause."""
    match = _DEFINITION.match(sentence, clause.begin) if clause.verb in _BE else None
    if match:
        what = "who or what" if clause.subject[0].isupper() else "what"
        is_once = facts.count(f"{clause.subject} {clause.verb}") == 1
        if is_once and not clause.lead and _THING.fullmatch(clause.subject):
            yield Question("definition", *clause.ask(what), match["value"], *match.span("value"))
        return
    rest = sentence[clause.begin : clause.end]
    for kind, verbs, how, pattern in _TEMPLATES:
        match = pattern.match(rest)
        if match and (not verbs or clause.verb in verbs):
            parts = {"before": "", "after": "", "noun": "", **match.groupdict()}
            asked = clause.ask(how.format(**parts), parts["before"], f"{parts['after']} {clause.lead}")
            whole = (rest[match.start("value") : match.end("noun")],) if parts["noun"] else ()
            start, end = (clause.begin + place for place in match.span("value"))
            if kind != "name" or facts.is_person(parts["value"]):
                yield Question(kind, *asked, parts["value"], start, end, alternatives=whole)
            return


def _is_good(question: Question, evidence: str, facts: Facts) -> bool:
    """Return whether a question can be understood alone and has one answer in the corpus."""
    said = words(question.text)
    if len(said) > 30 or _NEGATED.search(question.text) or POINTING & {*said, *words(question.answer)}:
        return False
    if holds_answer(question.text, question.answer):
        return False
    if facts.count((*question.alternatives, question.answer)[0]) != 1:
        return False
    stems = set(content_words(question.text, stemmed=True)) & set(words(evidence, stemmed=True))
    # Without a name, it takes more words to say what the question is about.
    is_named = re.search("[A-Z]", question.text[1:]) or question.kind == "name"
    is_told_once = question.kind == "definition" or len(facts.places(stems)) < 2
    return len(stems) >= (1 if is_named else 5) and is_told_once
