"""What a corpus shows about its words: which are names, which names are people, which begin small."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from .chunks import CutDocument
from .english import DETERMINERS, GIVEN_NAMES, PERSON_NOUNS, PERSON_TITLES, is_plural

_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_COMPANY = re.compile(r"\b([a-z][a-z&-]{2,30})(?: [a-z&-]{1,30})? ?,? (?:inc|corp|corporation|plc|llc|ltd)\b")
NAME = re.compile(r"[A-Z][\w'’-]+(?: (?:[A-Z]\.? )?(?:(?:de|van|von|der|la|of the|of) )?[A-Z][\w'’-]+)+")
PERSON = re.compile(r"(?:(?:[A-Z][a-z]+\.? )?)[A-Z][a-zà-ÿ'’-]+(?: [A-Z]\.?)?(?: [A-Z][a-zà-ÿ'’-]+){1,2}")
_COPULA = re.compile(r" (?:is|was|has been|became) ((?:[a-z'-]+ ?){1,6})")
_LIVES = re.compile(r" ,? ?(?:was born|married|joined|retired|died in|wrote|graduated|resigned)\b")
_NO_PEOPLE = frozenset(
    """Station Street River Island County College Award Series Institute University Hospital School Church
    Park Bridge House Company Group Museum Society Bank Theatre Theater Library Press City Lake Mountain
    Valley Road Club Party Council Court Foundation Association Corporation""".split()
)
# RT, PAM: within one text they are clear, in a corpus they are not.
_INITIALS = re.compile(r"[A-Z]{1,3}s?")
_CALENDAR = frozenset(
    """january february march april may june july august september october november december monday tuesday
    wednesday thursday friday saturday sunday christmas easter""".split()
)


@dataclass
class Vocabulary:
    """Counts of words within sentences, with a capital and without, and the names of people."""

    small: Counter[str] = field(default_factory=Counter)
    capital: Counter[str] = field(default_factory=Counter)
    people: set[str] = field(default_factory=set)
    names: Counter[str] = field(default_factory=Counter)
    companies: set[str] = field(default_factory=set)
    texts: list[str] = field(default_factory=list)
    _judged: dict[str, bool] = field(default_factory=dict, repr=False)

    def is_name(self, word: str) -> bool:
        """Whether a capitalised word is one by itself, not because a sentence begins with it."""
        known = self._judged.get(word)
        if known is None:
            known = self._judged[word] = self._is_name(word)
        return known

    def _is_name(self, word: str) -> bool:
        core = re.sub(r"['’]s?$", "", word.strip("\"'“”‘’.,;:!?()"))
        if core in ("I", "I'm", "A") or core.lower() in _CALENDAR:
            return False
        if re.search(r"\d", core) and re.search(r"[A-Z]", core):
            return True  # a code: KM-4S
        if re.fullmatch(r"(?:[A-Z]\.?){2,}s?", core):
            return True
        lowered = core.lower()
        return core[:1].isupper() and self.capital[lowered] > 2 * self.small[lowered]

    def lowered(self, text: str) -> str:
        """A text that begins a sentence as it would read within one; "" if that cannot be told."""
        first, space, rest = text.partition(" ")
        small = first[:1].lower() + first[1:]
        if small in DETERMINERS:
            return small + space + rest
        if rest[:1].isupper() and self.small[small] and not self.capital[small]:
            return ""  # "Current Harmonix", "Table Mountain"
        if first == "I" or self.is_name(first) or re.search(r"[A-Z]", first[1:]) or rest[:1].isupper():
            return text
        if not rest and not self.small[small] and not is_plural(small):
            return ""
        return small + space + rest

    def is_person(self, name: str) -> bool:
        """Whether the corpus, or the name itself, says that this is a person."""
        words = name.replace(".", "").split()
        if not 2 <= len(words) <= 4 or not all(word[:1].isupper() for word in words):
            return False
        return (
            name in self.people or words[0].lower() in PERSON_TITLES or words[0].lower() in GIVEN_NAMES
        ) and not {"Station", "Street", "River", "Island", "County", "College", "Award", "Series"} & set(
            words
        )

    def knows(self, name: str) -> bool:
        """Whether the corpus has a name, also as a part of a longer one or at the start of a sentence."""
        return any(name in text for text in self.texts)

    def has_name(self, text: str) -> bool:
        """Whether a text names something: a name, a code, or a company in a text without capitals."""
        words = text.split()
        telling = [
            word for word in words if not _INITIALS.fullmatch(word) and word.lower() not in GIVEN_NAMES
        ]
        named = any(self.is_name(word) for word in telling)
        return named or bool(words and words[0] in self.companies)


def vocabulary_of(documents: Iterable[CutDocument]) -> Vocabulary:
    """Read a corpus for its words."""
    found = Vocabulary()
    for document in documents:
        text = document.source.text
        found.texts.append(text)
        before = ""
        for sentence in document.outline.sentences:
            piece = text[sentence.start : sentence.end]
            _count(piece, found)
            if before and re.match(r"(?:He|She)\b", piece):
                match = PERSON.match(before)
                if match:
                    found.people.add(match.group())
            before = piece
        found.companies |= {match[1] for match in _COMPANY.finditer(text)}
    found.companies -= {
        "the",
        "and",
        "company",
        "with",
        "for",
        "our",
        "holdings",
        "financial",
        "parent",
        "group",
    }
    return found


def _count(piece: str, found: Vocabulary) -> None:
    for place, match in enumerate(_WORD.finditer(piece)):
        if place == 0:
            continue
        word = match.group()
        if word[0].isupper():
            found.capital[word.lower()] += 1
        else:
            found.small[word] += 1
    for match in NAME.finditer(piece):
        if match.start() > 0:
            found.names[match.group()] += 1
    for match in PERSON.finditer(piece):
        rest = piece[match.end() : match.end() + 80]
        said = _COPULA.match(rest)
        titled = match.group().split()[0].rstrip(".").lower() in PERSON_TITLES
        if titled or _LIVES.match(rest) or (said and PERSON_NOUNS & set(said[1].split(" of ")[0].split())):
            found.people.add(match.group())
