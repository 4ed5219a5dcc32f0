"""What every candidate must pass before it becomes a task; what does not pass is counted by reason."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from ..metrics.counterfactual import holds_answer
from ..metrics.text import words
from .candidates import Candidate
from .chunks import CutDocument
from .english import DATE, GENERIC, NUMBER, POINTING, PREPOSITIONS, STOP
from .vocabulary import NAME

_NO_PROSE = re.compile(
    r"<unk>|``|\'\'|[{}|\\<>_*~^=]|https?:|www\.|\S@\S|\[\d|&[a-z]+;|\?\?|\.\.\.|�|['\"]\w+['\"]:"
    r"|\bsee \w+ \d|\bet al\b|\bFigs?\b|\bFigures?\b|\bTables?\b"
    r"|\b20(?:13|14|19|1c|1d|22)[a-z]"  # a quotation mark or a dash that a converter wrote as its number
)
_RELATIVE_TIME = re.compile(
    r"\b(?:later|earlier|afterwards|meanwhile|ago|so far|to date|at the time|same (?:time|day|year)"
    r"|that (?:year|day|month|time|season|night)"
    r"|the (?:same|next|following|previous|other|new|latter|former|second|third|two|three)"
    r"|the \w+ ones?|ones)\b",
    re.IGNORECASE,
)
_FIRST_WORDS = re.compile(
    r"(?:who|what|when|where|which|why|how|by whom|(?:since|until) when"
    r"|(?:for|at|in|on|over|with|through|across) how (?:many|much|long)"
    r"|within what|by what|can|may|is|are|do|does|must|will|should|fill)\b",
    re.IGNORECASE,
)
_POSSESSIVE = {"its", "his", "her", "their"}
_NEAR = 0.8
_ELSEWHERE = 0.85
_MOST_COMPARED = 2_000  # a text that repeats itself thousands of times would take hours


@dataclass
class Evidence:
    """The sentences of a corpus by the words in them: is a question answered somewhere else?"""

    documents: Sequence[CutDocument]
    _by_word: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    _places: list[tuple[int, int, int]] = field(default_factory=list)
    _texts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._texts = {document.source.name: document.source.text for document in self.documents}
        for number, document in enumerate(self.documents):
            text = document.source.text
            for sentence in document.outline.sentences:
                for word in set(words(text[sentence.start : sentence.end], stemmed=True)):
                    self._by_word[word].append(len(self._places))
                self._places.append((number, sentence.start, sentence.end))

    def other_answers(self, candidate: Candidate, terms: set[str]) -> list[tuple[str, int, int]]:
        """(document, start, end) of other sentences that speak of the same and hold an answer of the kind."""
        # In a fixed order: sums of floats must not depend on how Python orders a set today.
        weights = {term: self._weight(term) for term in sorted(terms)}
        total = sum(weights.values())
        scores: Counter[int] = Counter()
        # A sentence must have nearly all the weight: it has one of the rarest words, whichever is left out.
        rarest = sorted(weights, key=lambda term: len(self._by_word.get(term, ())))
        allowed = (1 - _ELSEWHERE) * total
        spent = 0.0
        for term in rarest:
            if spent > allowed:
                break
            for place in self._by_word.get(term, ()):
                scores[place] = 1
            spent += weights[term]
        found = []
        for place in islice(scores, _MOST_COMPARED):
            number, start, end = self._places[place]
            document = self.documents[number].source
            if (
                document.name == candidate.document
                and start < candidate.evidence[1]
                and candidate.evidence[0] < end
            ):
                continue
            text = document.text[start:end]
            held = set(words(text, stemmed=True))
            share = sum(weight for term, weight in weights.items() if term in held) / total
            if share >= _ELSEWHERE and _has_kind(text, candidate.kind):
                found.append((document.name, start, end))
        return found

    def text(self, place: tuple[str, int, int]) -> str:
        """The sentence at a place."""
        name, start, end = place
        return self._texts[name][start:end]

    def _weight(self, term: str) -> float:
        return math.log(1 + len(self._places) / (1 + len(self._by_word.get(term, ()))))


def key_terms(question: str) -> set[str]:
    """The stems of a question that carry its meaning."""
    return {
        stem
        for word, stem in zip(words(question), words(question, stemmed=True), strict=True)
        if word not in STOP and len(word) > 1
    }


def body(question: str) -> str:
    """A question without the topic that was put before it."""
    return re.sub(r'^(Fill in the blank, according|According) to ".*?"[,:] ', "", question)


class Checker:
    """Passes a candidate or says why not; remembers what it passed, to find near duplicates."""

    def __init__(self, documents: Sequence[CutDocument]) -> None:
        self._documents = {document.source.name: document for document in documents}
        self._evidence = Evidence(documents)
        self._passed: dict[str, list[set[str]]] = defaultdict(list)
        self._sentences: set[tuple[str, int]] = set()
        self._keys: set[frozenset[str]] = set()

    def refusal(self, candidate: Candidate) -> str:
        """Why a candidate is not good enough; "" if it is."""
        for why, is_bad in _CHECKS:
            if is_bad(candidate):
                return why
        document = self._documents[candidate.document]
        if document.source.text[candidate.start : candidate.end] != candidate.answer:
            return "the span is not the answer"
        if not document.chunks_with(*candidate.evidence):
            return "no passage holds the whole evidence"
        if (candidate.document, candidate.evidence[1]) in self._sentences:
            return "another question asks about the sentence"
        terms = key_terms(candidate.question)
        if self._is_near_duplicate(candidate.document, terms):
            return "near duplicate"
        if self._is_answered_elsewhere(candidate):
            return "answered elsewhere, too, and differently"
        return ""

    def take(self, candidate: Candidate) -> None:
        """Remember a candidate that became a task."""
        terms = key_terms(candidate.question)
        self._passed[candidate.document].append(terms)
        self._keys.add(frozenset(terms))
        self._sentences.add((candidate.document, candidate.evidence[1]))

    def _is_near_duplicate(self, document: str, terms: set[str]) -> bool:
        if frozenset(terms) in self._keys:
            return True
        return any(len(terms & other) >= _NEAR * len(terms | other) for other in self._passed[document])

    def _is_answered_elsewhere(self, candidate: Candidate) -> bool:
        terms = key_terms(body(candidate.question))
        if not terms:
            return True
        named = candidate.question.startswith(("According to", "Fill in the blank, according"))
        for place in self._evidence.other_answers(candidate, terms):
            if named and place[0] != candidate.document:
                continue  # the topic tells the two apart
            if not holds_answer(self._evidence.text(place), candidate.answer):
                return True
        return False


def _has_kind(text: str, kind: str) -> bool:
    if kind == "number":
        return re.search(rf"\b{NUMBER}\b", text, re.IGNORECASE) is not None
    if kind == "date":
        return DATE.search(text) is not None
    if kind in ("name", "place"):
        return NAME.search(text) is not None
    return kind == "text"


def is_plain(text: str) -> bool:
    """Whether a text is prose: no markup, no references to figures, no debris of a conversion."""
    return not _NO_PROSE.search(text) and " @" not in text


def _is_no_prose(candidate: Candidate) -> bool:
    asked = candidate.question.replace("____", "")
    return not (is_plain(asked) and is_plain(candidate.answer))


def _is_malformed(candidate: Candidate) -> bool:
    asked = body(candidate.question)
    if candidate.family == "cloze":
        return candidate.question.count("____") != 1
    last = asked.rstrip("?").split(" ")[-1].lower()
    balanced = all(asked.count(first) == asked.count(second) for first, second in ("()", "[]", "“”"))
    if not asked.endswith("?") or not _FIRST_WORDS.match(asked) or asked.count('"') % 2 or not balanced:
        return True
    return last in PREPOSITIONS - {"in", "on", "off", "through", "over"} or last in (
        "and",
        "or",
        "the",
        "a",
        "-",
    )


def _has_bad_length(candidate: Candidate) -> bool:
    least = 3 if candidate.family in ("definition", "self_asked") else 4
    return not least <= len(body(candidate.question).split()) <= 40 or not candidate.answer.strip()


def _is_dangling(candidate: Candidate) -> bool:
    asked = body(candidate.question)
    found = set(POINTING) & set(words(asked))
    if candidate.family == "self_asked" and candidate.question.startswith("According to"):
        found -= {"i", "my", "me", "you", "your", "we", "there"}
    if found and found <= _POSSESSIVE:
        # `its` is clear where a name stands before it: "Which club left Rome for its home in 1905?"
        place = re.search(r"\b(?:its|his|her|their)\b", asked)
        if place and re.search(r"\s[A-Z]\w", asked[: place.start()]):
            found = set()
    if candidate.family == "self_asked" and len(key_terms(asked)) < 2:
        return True
    if found or _RELATIVE_TIME.search(asked):
        return True
    has_topic = candidate.question.startswith(("According to", "Fill in the blank, according"))
    if not has_topic and (not candidate.topic or GENERIC.search(asked)):
        return candidate.family != "list" or not candidate.topic
    return False


def _holds_its_answer(candidate: Candidate) -> bool:
    return holds_answer(candidate.question, candidate.answer)


def _has_odd_answer(candidate: Candidate) -> bool:
    answer = candidate.answer
    if candidate.family == "list":
        return False
    odd = "\n" in answer or answer != answer.strip() or len(answer.split()) > 60
    pointing = candidate.family == "definition" and bool(POINTING & set(words(answer)))
    unbalanced = answer.count("(") != answer.count(")") or answer.count('"') % 2 == 1
    return odd or pointing or unbalanced


_CHECKS = (
    ("not plain prose", _is_no_prose),
    ("too short or too long", _has_bad_length),
    ("not well formed", _is_malformed),
    ("the answer is in the question", _holds_its_answer),
    ("cannot be understood alone", _is_dangling),
    ("the answer is not one line or not complete", _has_odd_answer),
)
