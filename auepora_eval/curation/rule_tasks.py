"""Questions by rule, without a model: every family of makers over every sentence of a document."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from .asking import readings
from .candidates import Candidate, TaskMaker
from .chunks import CutDocument
from .questions_cloze import with_a_blank
from .questions_dates import about_dates
from .questions_lists import enumerated, listed, self_asked
from .questions_names import about_definitions, about_people, about_places
from .questions_numbers import about_numbers
from .questions_reasons import about_reasons, about_things
from .vocabulary import Vocabulary

# In this order: where two ask about one sentence, the first that passes the checks is kept.
SENTENCE_MAKERS = (
    self_asked,
    about_definitions,
    about_people,
    about_places,
    about_dates,
    about_numbers,
    enumerated,
    about_reasons,
    about_things,
    with_a_blank,
)


def questions_by_rule(vocabulary: Vocabulary) -> TaskMaker:
    """The task maker that needs no model; the vocabulary is that of the whole corpus."""

    def make(document: CutDocument, chance: Random) -> Iterator[Candidate]:
        by_family: dict[str, list[Candidate]] = {}
        for reading in readings(document, vocabulary):
            for maker in SENTENCE_MAKERS:
                for candidate in maker(reading):
                    by_family.setdefault(candidate.family, []).append(candidate)
        for candidate in listed(document):
            by_family.setdefault(candidate.family, []).append(candidate)
        yield from _in_turn(by_family, chance)

    return make


def _in_turn(by_family: dict[str, list[Candidate]], chance: Random) -> Iterator[Candidate]:
    """One of each family, then the next of each: a few questions of a document are not all of one kind.

    Sentences with a blank come last: they are for what no other maker could ask about.
    """
    blanks = by_family.pop("cloze", [])
    shuffled = [chance.sample(found, len(found)) for _, found in sorted(by_family.items())]
    while any(shuffled):
        for found in shuffled:
            if found:
                yield found.pop()
    yield from chance.sample(blanks, len(blanks))
