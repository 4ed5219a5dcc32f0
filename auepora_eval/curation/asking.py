"""A sentence as the question makers see it, and how a question is put: its subject named, its topic given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..metrics.text import words
from .candidates import Candidate
from .chunks import CutDocument
from .clauses import Clause, clause
from .english import GENERIC, PREPOSITIONS, is_plural
from .sentences import Sentence, tidy
from .vocabulary import PERSON, Vocabulary

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

    def _evidence_start(self) -> int:
        return self.sentence.start if self.evidence_start is None else self.evidence_start

    def put(
        self,
        family: str,
        kind: str,
        question: str,
        span: tuple[int, int],
        *,
        told: str = "",
        subject: str | None = None,
        alternatives: tuple[str, ...] = (),
        evidence: tuple[int, int] | None = None,
    ) -> Candidate:
        """A candidate whose answer is text[span] of the sentence; question and told begin small.

        Where neither the subject nor the rest names anything, the topic is put before the question: `the
        board` of which of the documents?
        """
        start, end = self.sentence.start + span[0], self.sentence.start + span[1]
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
            told = f'{tidy(told)}, according to "{topic}"' if told else ""
        else:
            question = f"{question[:1].upper()}{question[1:]}?"
        return Candidate(
            family,
            question,
            self.document.source.text[start:end],
            self.document.source.name,
            start,
            end,
            evidence or (self._evidence_start(), self.sentence.end),
            kind,
            tidy(told).rstrip(" .,?"),
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
        found, start = (None if sentence.is_item else clause(piece)), None
        subject = vocabulary.lowered(found.subject) if found is not None else ""
        if found is not None and subject:
            found = replace(found, subject=subject)
            before.meet(subject, piece, sentence, vocabulary)
        elif not sentence.is_item:
            found, start = before.resolved(piece)
            if found is None:
                before.meet("", piece, sentence, vocabulary)
        yield Reading(document, sentence, piece, found, vocabulary, following, start)


_SHIP = re.compile(r"(?:the )?(?:ferry|ship|vessel|boat|barge|launch|yacht|steamer|USS|HMS|SS) [A-Z]")


class _Before:
    """Who and what a paragraph has spoken of, for a sentence that begins with `he`, `she`, `it` or `its`."""

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
        """The clause with the pronoun's noun as its subject, and where the sentence with that noun begins."""
        match = re.match(r"(He|His|She|Her|It|Its)\b", piece)
        meant = self._meant(match[1]) if match else None
        if match is None or meant is None:
            return None, None
        stand_in = "X" * match.end()
        found = clause(stand_in + piece[match.end() :])
        if found is None or not found.subject.startswith(stand_in):
            return None, None
        rest = found.subject[len(stand_in) :]
        if bool(rest) != (match[1] in ("His", "Her", "Its")):
            return None, None
        subject = f"{meant[0]}'s{rest}" if rest else meant[0]
        return replace(found, subject=subject), meant[1]

    def _meant(self, pronoun: str) -> tuple[str, int] | None:
        if pronoun in ("It", "Its"):
            return self._thing
        if len(self._people) == 1:
            return next(iter(self._people.items()))
        return self._ship if pronoun in ("She", "Her") and not self._people else None
