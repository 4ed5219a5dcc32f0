"""Candidates, which are questions with exact answers, and the checks that they must pass."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ..metrics.robustness.counterfactual import holds_answer
from ..text.tokens import words
from .corpus import SourceDocument
from .english import DATE, GENERIC, NUMBER, POINTING, PREPOSITIONS, STOP
from .passages import NAME, CutDocument

_NO_PROSE = re.compile(
    r"<unk>|``|\'\'|[{}|\\<>_*~^=]|https?:|www\.|\S@\S|\[\d|&[a-z]+;|\?\?|\.\.\.|�|['\"]\w+['\"]:"
    r"|\bsee \w+ \d|\bet al\b|\bFigs?\b|\bFigures?\b|\bTables?\b"
    r"|\b20(?:13|14|19|1c|1d|22)[a-z]"  # a quotation mark or a dash that a converter wrote as its number
)
# Words that need the sentence before: `later`, `that year`, `the other`.
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
# A question that ends with one of these lost its last word.
_OPEN_ENDS = PREPOSITIONS - {"in", "on", "off", "through", "over"} | {"and", "or", "the", "a", "-"}
_POSSESSIVE = {"its", "his", "her", "their"}
# Two questions with this share of common key terms are duplicates.
_NEAR = 0.8
# A sentence with this share of the weight of the key terms is on the same subject.
_ELSEWHERE = 0.85
# A text that repeats itself thousands of times would take hours.
_MOST_COMPARED = 2_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question before it is checked. `answer` is exactly document.text[start:end].

    `evidence` is the span of its sentence. `kind` is number, date, name, place, list or text. `indirect` is
    the question in the order of a statement, for a paraphrase.
    """

    family: str
    question: str
    answer: str
    document: str
    start: int
    end: int
    evidence: tuple[int, int]
    kind: str
    indirect: str = ""
    alternatives: tuple[str, ...] = ()
    topic: str = ""


class SentenceIndex:
    """An index of the sentences of a corpus by their words, to find other answers to a question."""

    def __init__(self, documents: Sequence[CutDocument]) -> None:
        self._sentences: list[tuple[SourceDocument, int, int]] = []
        self._by_word: dict[str, list[int]] = defaultdict(list)
        for document in documents:
            for sentence in document.outline.sentences:
                text = document.source.text[sentence.start : sentence.end]
                for word in set(words(text, stemmed=True)):
                    self._by_word[word].append(len(self._sentences))
                self._sentences.append((document.source, sentence.start, sentence.end))

    def other_answers(self, candidate: Candidate, terms: set[str]) -> Iterator[tuple[str, str]]:
        """Yield (document, text) of other sentences on the subject with an answer of this kind."""
        counts = {term: len(self._by_word.get(term, ())) for term in sorted(terms)}
        # Sorted, because sums of floats must not depend on the order of a set.
        weights = {term: math.log(1 + len(self._sentences) / (1 + count)) for term, count in counts.items()}
        total = sum(weights.values())
        # A sentence needs nearly all the weight, so it must contain one of the rarest words.
        spent, numbers = 0.0, {}
        for term in sorted(weights, key=counts.__getitem__):
            if spent > (1 - _ELSEWHERE) * total:
                break
            numbers.update(dict.fromkeys(self._by_word.get(term, ())))
            spent += weights[term]
        first, last = candidate.evidence
        for number in islice(numbers, _MOST_COMPARED):
            document, start, end = self._sentences[number]
            if document.name == candidate.document and start < last and first < end:
                continue
            text = document.text[start:end]
            stems = set(words(text, stemmed=True))
            share = sum(weight for term, weight in weights.items() if term in stems) / total
            if share >= _ELSEWHERE and _has_kind(text, candidate.kind):
                yield document.name, text


def key_terms(question: str) -> set[str]:
    """Return the stems of the content words of a question."""
    return {
        stem
        for word, stem in zip(words(question), words(question, stemmed=True), strict=True)
        if word not in STOP and len(word) > 1
    }


def is_near(terms: set[str], others: Iterable[set[str]]) -> bool:
    """Return whether a question has nearly the key terms of another one."""
    return any(len(terms & other) >= _NEAR * max(1, len(terms | other)) for other in others)


def has_topic(question: str) -> bool:
    """Return whether a question says which document it is about."""
    return question.startswith(("According to", "Fill in the blank, according"))


def body(question: str) -> str:
    """Return a question without the topic in front of it."""
    return re.sub(r'^(Fill in the blank, according|According) to ".*?"[,:] ', "", question)


class Checker:
    """Check candidates, and remember the accepted ones to find near duplicates."""

    def __init__(self, documents: Sequence[CutDocument]) -> None:
        self._documents = {document.source.name: document for document in documents}
        self._index = SentenceIndex(documents)
        self._passed: dict[str, list[set[str]]] = defaultdict(list)
        self._sentences: set[tuple[str, int]] = set()
        self._keys: set[frozenset[str]] = set()

    def rejection(self, candidate: Candidate) -> str:
        """Return why a candidate is rejected, or "" if it is accepted."""
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
        others = self._passed[candidate.document]
        if is_near(terms, others) or frozenset(terms) in self._keys:
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

    def _is_answered_elsewhere(self, candidate: Candidate) -> bool:
        terms = key_terms(body(candidate.question))
        if not terms:
            return True
        for document, text in self._index.other_answers(candidate, terms):
            if has_topic(candidate.question) and document != candidate.document:
                continue  # the topic distinguishes the two
            if not holds_answer(text, candidate.answer):
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
    """Return whether a text is prose: no markup, references to figures, or debris of a conversion."""
    return not _NO_PROSE.search(text) and " @" not in text


def _is_no_prose(candidate: Candidate) -> bool:
    bare_question = candidate.question.replace("____", "")
    return not (is_plain(bare_question) and is_plain(candidate.answer))


def _is_malformed(candidate: Candidate) -> bool:
    bare_question = body(candidate.question)
    if candidate.family == "cloze":
        return candidate.question.count("____") != 1
    last = bare_question.rstrip("?").split(" ")[-1].lower()
    is_question = bare_question.endswith("?") and _FIRST_WORDS.match(bare_question)
    unbalanced = bare_question.count("(") != bare_question.count(")") or bare_question.count('"') % 2 == 1
    return not is_question or unbalanced or last in _OPEN_ENDS


def _has_bad_length(candidate: Candidate) -> bool:
    least = 3 if candidate.family in ("definition", "self_asked") else 4
    return not least <= len(body(candidate.question).split()) <= 40 or not candidate.answer.strip()


def _is_dangling(candidate: Candidate) -> bool:
    bare_question = body(candidate.question)
    pointing = set(POINTING) & set(words(bare_question))
    if candidate.family == "self_asked" and candidate.question.startswith("According to"):
        pointing -= {"i", "my", "me", "you", "your", "we", "there"}
    if pointing and pointing <= _POSSESSIVE:
        # `its` is clear after a name: "Which club left Rome for its home in 1905?"
        place = re.search(r"\b(?:its|his|her|their)\b", bare_question)
        if place and re.search(r"\s[A-Z]\w", bare_question[: place.start()]):
            pointing = set()
    if candidate.family == "self_asked" and len(key_terms(bare_question)) < 2:
        return True
    if pointing or _RELATIVE_TIME.search(bare_question):
        return True
    return not has_topic(candidate.question) and bool(not candidate.topic or GENERIC.search(bare_question))


def _has_odd_answer(candidate: Candidate) -> bool:
    answer = candidate.answer
    unbalanced = answer.count("(") != answer.count(")") or answer.count('"') % 2 == 1
    return unbalanced or (candidate.family != "list" and "\n" in answer)


# In the order of the report: the first that applies is the reason.
_CHECKS = (
    ("not plain prose", _is_no_prose),
    ("too short or too long", _has_bad_length),
    ("not well formed", _is_malformed),
    ("the answer is in the question", lambda candidate: holds_answer(candidate.question, candidate.answer)),
    ("cannot be understood alone", _is_dangling),
    ("the answer is not one line or not complete", _has_odd_answer),
)
