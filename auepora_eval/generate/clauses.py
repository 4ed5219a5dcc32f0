"""Parse the main clause of a plain statement: subject, verb, rest. Other sentences have none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from ..text.tokens import words
from .checks import Candidate
from .english import (
    ADVERBS,
    AUXILIARIES,
    BE,
    DETERMINERS,
    GENERIC,
    HAVE,
    LEANING,
    NEGATIVE,
    PREPOSITIONS,
    RELATIVE,
    is_plural,
    participles,
    verbs,
)
from .passages import PERSON, CutDocument, Sentence, Vocabulary, tidy

_LEAD = re.compile(r"(In|On|By|Since|During|From|Until) ([^,]{3,40}?) ?, (?=\S)")
_ASIDE = re.compile(r"^([A-Z][^,;:()]{2,60}?) \([^()]{1,60}\)(?= [a-z])")  # behind the subject, in brackets
_WORD = re.compile(r"\S+")
_EDGE = "\"'“”‘’.,;:!?()[]"
# Where the main clause ends: a mark, but not the comma within a date or a number.
_BREAK = re.compile(r" ?(?:,(?! ?(?:1\d|20)\d\d\b)(?=\s)|[;:—]|(?<!\d)–|(?<!\d) – |\(| - |--)| \. ")
_LIST_GOES_ON = re.compile(r" ?\S{1,90}(?: \S{1,90}){0,3}?(?: ?,| and | or )")
_LONGEST_SUBJECT = 9  # words: in a longer one the verb is probably misread


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause as written: "In 1941, " + subject + verb + main. `at` is where main starts in the sentence."""

    subject: str
    verb: str
    base: str
    form: str  # "auxiliary", "present", "past" or "base"
    main: str
    at: int
    lead: str = ""
    lead_at: int = 0
    lead_word: str = ""
    is_cut: bool = False  # main ends within a list

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the offsets in the sentence of main[start:end]."""
        return self.at + start, self.at + end

    def as_question(self, rest: str) -> str:
        """Return verb and subject in the order of a question: `was the pier built`, `does the boat carry`."""
        if self.form == "auxiliary":
            return f"{self.verb} {self.subject} {rest}"
        helper = {"past": "did", "present": "does", "base": "do"}[self.form]
        return f"{helper} {self.subject} {self.base} {rest}"

    def as_statement(self, rest: str) -> str:
        """Return them in the order of a statement, for an indirect question: `the pier was built`."""
        return f"{self.subject} {self.verb} {rest}"


def clause(sentence: str) -> Clause | None:
    """Return the main clause of a sentence, or None if it is not plain enough for a question."""
    if sentence.endswith(("?", "!")):
        return None
    sentence = _ASIDE.sub(
        lambda aside: aside[1] + " " * (len(aside.group()) - len(aside[1])), sentence, count=1
    )
    match = _LEAD.match(sentence)
    lead, lead_at, begin = (match[2], match.start(2), match.end()) if match else ("", 0, 0)
    lead_word = match[1].lower() if match else ""
    tokens = [(match.group(), match.start()) for match in _WORD.finditer(sentence, begin)]
    small = [word.strip(_EDGE).lower() for word, _ in tokens]
    place = _verb_place(tokens, small)
    if place is None:
        return None
    word, start = tokens[place]
    at = start + len(word) + 1
    main, is_cut = _main_part(sentence[at:])
    if not main or _has_second_verb(main) or NEGATIVE & set(small[place : place + 3]):
        return None
    base, form = _reading(small[place], small[place + 1] if place + 1 < len(small) else "")
    subject = " ".join(sentence[tokens[0][1] : start].split())
    return Clause(subject, word, base, form, main, at, lead, lead_at, lead_word, is_cut)


def _verb_place(tokens: list[tuple[str, int]], small: list[str]) -> int | None:
    """Return the position of the verb after a subject that is a plain noun phrase."""
    # `some 40 boats`: before a number the word does not refer to another sentence.
    is_count = small[:1] == ["some"] and "".join(small[1:2])[:1].isdigit()
    if not tokens or (small[0] in LEANING and not is_count):
        return None
    for place in range(1, min(len(tokens), _LONGEST_SUBJECT + 1)):
        word = small[place]
        if tokens[place - 1][0][-1] in ",;:—" or word in RELATIVE or word in NEGATIVE:
            return None
        if not _may_be_verb(word, small, place) or tokens[place][0][0].isupper():
            continue
        before = small[place - 1]
        if before in PREPOSITIONS or before in DETERMINERS or before in ADVERBS or before.endswith("ly"):
            return None
        # "The ferry rules apply": a verb right behind it shows that this one is a noun.
        after = small[place + 1] if place + 1 < len(small) else ""
        if word not in AUXILIARIES and (after in AUXILIARIES or after in verbs()):
            continue
        return place if _is_subject([token for token, _ in tokens[:place]], small[:place]) else None
    return None


def _may_be_verb(word: str, small: list[str], place: int) -> bool:
    if word in AUXILIARIES:
        return True
    verb = verbs().get(word)
    return verb is not None and (verb.form != "base" or is_plural(small[place - 1]))


def _is_subject(tokens: list[str], small: list[str]) -> bool:
    """Return whether this is a noun phrase without marks, verbs or words that start another clause."""
    text = " ".join(tokens)
    if re.search(r",(?!\d)|[;:()\[\]\"“”*<>{}|/\\=]", text):
        return False
    initials = any(re.fullmatch(r"[B-HJ-Z]", token) for token in tokens)  # as in a list of references
    behind = zip(small, tokens[1:], strict=False)
    perhaps_verb = any(word.endswith("ed") and before not in DETERMINERS for before, word in behind)
    if initials or perhaps_verb:
        return False
    # A participle or an adverb in front: the sentence is turned round, and its subject comes later.
    return not (tokens[0].islower() or tokens[0].istitle()) or not small[0].endswith(("ing", "ed", "ly"))


# "between", "either" or "both" whose "and" or "or" does not follow; the last of several is enough to look at.
_OPEN_PAIR = re.compile(
    r"(?>.*\bbetween )(?!.* and )|(?>.*\beither )(?!.* or )|(?>.*\bboth )(?!.* and )", re.DOTALL
)


def _main_part(rest: str) -> tuple[str, bool]:
    """The rest of the clause, up to a mark or to a second verb behind `and`; whether a list was cut there."""
    rest = rest.rstrip().rstrip(".!?").rstrip()
    match = _BREAK.search(rest)
    part = rest[: match.start()] if match else rest
    is_cut = match is not None and bool(_LIST_GOES_ON.match(rest, match.end()) or _goes_on(rest, match))
    if _OPEN_PAIR.match(part):
        return "", False  # the mark stood within the phrase
    for joined in re.finditer(r" (?:and|but|or|so|yet) (\S+)(?: (\S+))?", part):
        after = {joined[1].lower(), (joined[2] or "").lower()}
        if after & AUXILIARIES or any(word in verbs() and verbs()[word].form != "base" for word in after):
            return part[: joined.start()], False
        next_words = part[joined.start(2) :].lower().split()[1:4] if joined[2] else []
        # `and the board approved`: a past verb or an auxiliary among the next words.
        says_more = any(
            word in AUXILIARIES or (word in verbs() and verbs()[word].form == "past") for word in next_words
        )
        if joined[1].lower() in DETERMINERS and says_more:
            return part[: joined.start()], False
    return part, is_cut


def _goes_on(rest: str, mark: re.Match[str]) -> bool:
    """Return whether a phrase continues after the mark: `a tall, detached house`, `41 feet (12 m) wide`."""
    if mark.group().endswith(","):
        word = (rest[mark.end() :].split() or [""])[0]
        plain = word.isalpha() or "-" in word
        starts = word in LEANING or word in PREPOSITIONS or word in RELATIVE or word in DETERMINERS
        return plain and word.islower() and not starts and not word.endswith(("ing", "ed", "ly"))
    if mark.group().strip() in (":", "-", "--", "—", "–"):
        return True
    if not mark.group().endswith("("):
        return False
    behind = rest[mark.end() :].partition(")")[2].strip()
    return not mark.group().startswith(" ") or behind[:1].isalpha()


def _has_second_verb(main: str) -> bool:
    """Return whether a second auxiliary follows in the same clause, so that the verb was misread."""
    clause_words = takewhile(lambda word: word not in RELATIVE, main.lower().split())
    return any(word in BE or word in HAVE for word in clause_words)


def _reading(word: str, after: str) -> tuple[str, str]:
    """(base, form) of the verb; `has` before anything but a participle is a verb of its own."""
    is_perfect = after in participles() or after in ADVERBS or after.endswith(("ed", "ly"))
    if word in HAVE and not is_perfect:
        return "have", {"has": "present", "had": "past", "have": "base"}[word]
    if word in AUXILIARIES:
        return word, "auxiliary"
    verb = verbs()[word]
    return verb.base, verb.form


# Readings: sentences with their main clauses, and how a question is written from them.

_BEFORE_PREPOSITION = re.compile(rf" (?:{'|'.join(sorted(PREPOSITIONS))}) ")


@dataclass(frozen=True)
class Reading:
    """A sentence with its main clause, if it has a plain one; `after` is the sentence that follows it."""

    document: CutDocument
    sentence: Sentence
    text: str
    clause: Clause | None
    vocabulary: Vocabulary
    after: Sentence | None = None
    evidence_start: int | None = None  # of the sentence that says who `he` or what `it` is

    @property
    def topic(self) -> str:
        """What the sentence is about: the highest heading above it, or else the document's title."""
        return self.sentence.topic or self.document.source.title

    def ask(
        self,
        clause: Clause,
        family: str,
        kind: str,
        words: str,
        rest: str,
        span: tuple[int, int],
        alternatives: tuple[str, ...] = (),
    ) -> Candidate:
        """Return a candidate in the words of the clause: `when` with `built` to `when was the pier built`."""
        question, indirect = f"{words} {clause.as_question(rest)}", f"{words} {clause.as_statement(rest)}"
        return self.put(family, kind, question, span, indirect=indirect, alternatives=alternatives)

    def put(
        self,
        family: str,
        kind: str,
        question: str,
        span: tuple[int, int],
        *,
        indirect: str = "",
        subject: str | None = None,
        alternatives: tuple[str, ...] = (),
        evidence: tuple[int, int] | None = None,
    ) -> Candidate:
        """Return a candidate whose answer is text[span] of the sentence. `question` starts in lower case.

        If neither the subject nor the rest has a name, the topic is put before the question. Otherwise `the
        board` could be that of any document.
        """
        start, end = self.sentence.start + span[0], self.sentence.start + span[1]
        evidence_start = self.sentence.start if self.evidence_start is None else self.evidence_start
        # `the Annet` says enough, `the length of the Annet` may have been measured twice.
        named = subject
        if subject is None:
            subject = self.clause.subject if self.clause else ""
            named = _BEFORE_PREPOSITION.split(subject)[0]
        question = tidy(question).rstrip(" .,?")
        enough = self.vocabulary.has_name(named or "") and not GENERIC.search(question)
        topic = "" if enough else tidy(self.topic)
        if topic:
            question = f'According to "{topic}", {question}?'
            indirect = f'{tidy(indirect)}, according to "{topic}"' if indirect else ""
        else:
            question = f"{question[:1].upper()}{question[1:]}?"
        return Candidate(
            family,
            question,
            self.document.source.text[start:end],
            self.document.source.name,
            start,
            end,
            evidence or (evidence_start, self.sentence.end),
            kind,
            tidy(indirect).rstrip(" .,?"),
            tuple(dict.fromkeys(tidy(other) for other in alternatives)),
            topic or (subject if self.vocabulary.has_name(subject) else ""),
        )


def readings(document: CutDocument, vocabulary: Vocabulary) -> Iterator[Reading]:
    """The sentences of a document, each with its clause; the subject as it reads within a sentence."""
    text = document.source.text
    sentences = document.outline.sentences
    before = _Before()
    for place, sentence in enumerate(sentences):
        piece = text[sentence.start : sentence.end]
        following = sentences[place + 1] if place + 1 < len(sentences) else None
        if sentence.paragraph != before.paragraph:
            before = _Before(sentence.paragraph, sentence.topic or document.source.title)
        main_clause, start = (None if sentence.is_item else clause(piece)), None
        subject = vocabulary.lowered(main_clause.subject) if main_clause is not None else ""
        if main_clause is not None and subject:
            main_clause = replace(main_clause, subject=subject)
            before.meet(subject, piece, sentence, vocabulary)
        elif not sentence.is_item:
            main_clause, start = before.resolved(piece)
            if main_clause is None:
                before.meet("", piece, sentence, vocabulary)
        yield Reading(document, sentence, piece, main_clause, vocabulary, following, start)


_SHIP = re.compile(r"(?:the )?(?:ferry|ship|vessel|boat|barge|launch|yacht|steamer|USS|HMS|SS) [A-Z]")


class _Before:
    """The people and things a paragraph has named, to resolve `he`, `she`, `it` and `its`."""

    def __init__(self, paragraph: int = -1, topic: str = "") -> None:
        self.paragraph = paragraph
        self._topic = topic
        self._people: dict[str, int] = {}
        self._thing: tuple[str, int] | None = None
        self._ship: tuple[str, int] | None = None

    def meet(self, subject: str, piece: str, sentence: Sentence, vocabulary: Vocabulary) -> None:
        for match in PERSON.finditer(piece):
            if vocabulary.is_person(match.group()):
                self._people.setdefault(match.group(), sentence.start)
        # "The strainer ... It weighs": what a document is about is in its title, a part of it is not.
        head = subject.rpartition(" ")[2].lower()
        named = vocabulary.has_name(subject) or (subject.startswith("the ") and head in words(self._topic))
        simple = len(subject.split()) <= 5 and not re.search(r"\b(?:and|of|in|by|for|at|on)\b", subject)
        single = not is_plural(subject.rpartition(" ")[2].lower())
        fits = named and simple and single and not vocabulary.is_person(subject)
        self._thing = (subject, sentence.start) if fits else None
        if self._ship is None and _SHIP.match(subject):
            self._ship = (subject, sentence.start)

    def resolved(self, piece: str) -> tuple[Clause | None, int | None]:
        """Return the clause with the noun for its pronoun, and the start of the sentence with the noun."""
        match = re.match(r"(He|His|She|Her|It|Its)\b", piece)
        meant = self._meant(match[1]) if match else None
        if match is None or meant is None:
            return None, None
        stand_in = "X" * match.end()
        main_clause = clause(stand_in + piece[match.end() :])
        if main_clause is None or not main_clause.subject.startswith(stand_in):
            return None, None
        rest = main_clause.subject[len(stand_in) :]
        subject = f"{meant[0]}'s{rest}" if rest else meant[0]
        return replace(main_clause, subject=subject), meant[1]

    def _meant(self, pronoun: str) -> tuple[str, int] | None:
        if pronoun in ("It", "Its"):
            return self._thing
        # With two people in the paragraph it is not certain who `he` is.
        if len(self._people) == 1:
            return next(iter(self._people.items()))
        return self._ship if pronoun in ("She", "Her") and not self._people else None
