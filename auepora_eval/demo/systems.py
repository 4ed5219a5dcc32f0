"""The bundled systems: a plain one to start from, and two that improve on it.

    bm25     BM25 over words (bm25s), answers by shared words
    hybrid   BM25 and static embeddings (wordllama, extra `embeddings`), answers by the type of the question
    bigram   BM25 over words and word pairs with the same answers, if no embeddings are installed

A sample that brings its own documents (`metadata["closed_context"]`) is answered from them alone, as by any
pair of a retriever and a generator: noise and counterfactual documents reach the system as they are labelled.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import OSA

from ..core.rag_interface import Generator, Retriever, SimpleRAGSystem
from ..core.types import Document, Response, RetrievedDocument
from ..errors import MissingDependencyError
from ..metrics.embeddings import embedder
from ..text.bm25 import bm25_scorer
from ..text.tokens import stemmed_word, words
from .world import demo_corpus

Scores = NDArray[np.float32]

Ranker = Callable[[Sequence[Document]], Callable[[str], "Scores"]]

Vector = Callable[[str], "Scores"]

_DENSE_WEIGHT = 0.8  # of the embeddings beside BM25, each scaled to 0-1; chosen on the tuning half


class DemoSystem(SimpleRAGSystem):
    """Ranks the corpus and answers from the best documents."""

    def __init__(self, name: str, ranker: Ranker, answerer: Generator) -> None:
        super().__init__(CorpusRetriever(ranker), answerer)
        self.name = name


class CorpusRetriever(Retriever):
    """Ranks the documents of the corpus."""

    def __init__(self, ranker: Ranker) -> None:
        self._corpus = demo_corpus()
        self._rank = ranker(self._corpus)

    def retrieve(self, query: str, *, top_k: int = 5) -> list[RetrievedDocument]:
        scores = self._rank(query)
        best = sorted(
            range(len(self._corpus)), key=lambda place: (-scores[place], self._corpus[place].doc_id)
        )
        return [
            RetrievedDocument(self._corpus[place], float(scores[place]), rank)
            for rank, place in enumerate(best[:top_k], start=1)
        ]


def bm25() -> DemoSystem:
    """Return BM25 over stemmed words."""
    return DemoSystem(
        "bm25", lambda documents: _bm25_scorer(documents, _terms), ExtractiveAnswerer(demo_corpus())
    )


def bigram() -> DemoSystem:
    """Return BM25 over stemmed words and word pairs, which rewards the word order of the query."""
    spelling = Spelling(map(titled, demo_corpus()))

    def rank(documents: Sequence[Document]) -> Callable[[str], Scores]:
        lexical = _bm25_scorer(documents, _terms_and_pairs)
        return lambda query: lexical(spelling.corrected(query))

    return DemoSystem("bigram", rank, TypedAnswerer(demo_corpus(), spelling))


def hybrid() -> DemoSystem:
    """Return BM25 and embeddings, the sum of both scores."""
    model = embedder("wordllama")
    spelling = Spelling(map(titled, demo_corpus()))

    @cache
    def vector(text: str) -> Scores:
        row: Scores = model.embed([text])[0]
        return row

    def rank(documents: Sequence[Document]) -> Callable[[str], Scores]:
        lexical, dense = _bm25_scorer(documents, _terms), _dense_scorer(documents, vector)

        def scores(query: str) -> Scores:
            query = spelling.corrected(query)
            return _scaled(lexical(query)) + np.float32(_DENSE_WEIGHT) * _scaled(dense(query))

        return scores

    return DemoSystem("hybrid", rank, TypedAnswerer(demo_corpus(), spelling, vector))


def second_system() -> DemoSystem:
    """Return the best installed system to compare BM25 with."""
    try:
        return hybrid()
    except MissingDependencyError:
        return bigram()


def _bm25_scorer(documents: Sequence[Document], terms: Callable[[str], list[str]]) -> Callable[[str], Scores]:
    scores = bm25_scorer([terms(titled(doc)) for doc in documents])
    return lambda query: scores(terms(query))


def _dense_scorer(documents: Sequence[Document], vector: Vector) -> Callable[[str], Scores]:
    """Rank documents by their most similar sentence: an average over all sentences would blur each fact."""
    pieces = [(place, sentence) for place, doc in enumerate(documents) for sentence in sentences(doc.text)]
    owners = np.array([place for place, _ in pieces])
    matrix = np.stack([vector(titled(documents[place], text)) for place, text in pieces])

    def scores(query: str) -> Scores:
        nearest = np.full(len(documents), -1.0, dtype=np.float32)
        np.maximum.at(nearest, owners, matrix @ vector(query))
        return nearest

    return scores


def _scaled(scores: Scores) -> Scores:
    """Return scores from 0 to 1: those of BM25 have no upper limit."""
    spread = scores.max() - scores.min()
    scaled: Scores = (scores - scores.min()) / (spread or np.float32(1))
    return scaled


def _terms(text: str) -> list[str]:
    return words(text, stemmed=True)


def _terms_and_pairs(text: str) -> list[str]:
    terms = _terms(text)
    return terms + [f"{first} {second}" for first, second in pairwise(terms)]


# Answers from documents without a model: two extractive answerers, a plain one and a better one.

DECLINED = "The documents do not say."

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")


def sentences(text: str) -> list[str]:
    """Return the sentences of a plain text."""
    return _SENTENCE_END.split(text)


def titled(document: Document, text: str | None = None) -> str:
    """Return a text of a document, or its whole text, behind the document's title."""
    return f"{document.metadata.get('title', '')} {document.text if text is None else text}"


def content_terms(text: str) -> set[str]:
    """Return the stems of the words that carry meaning."""
    return {term for term in words(text, stemmed=True) if term not in FUNCTION_WORDS}


class TermWeights:
    """Weighs terms by how few texts have them."""

    def __init__(self, texts: Iterable[str]) -> None:
        terms_of_texts = [content_terms(text) for text in texts]
        count = len(terms_of_texts)
        frequency = Counter(term for terms in terms_of_texts for term in terms)
        self._weights = {term: math.log(1 + count / times) for term, times in frequency.items()}
        self._unseen = math.log(1 + count)

    def share(self, wanted: set[str], text: str) -> float:
        """Return the share of the wanted terms' weight that a text has, from 0 to 1."""
        total = sum(map(self._weight, sorted(wanted)))
        return sum(map(self._weight, sorted(wanted & content_terms(text)))) / total if total else 0.0

    def _weight(self, term: str) -> float:
        return self._weights.get(term, self._unseen)


# The plain answerer.

_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_NUMBER = (
    r"(?:\d[\d,]*(?:\.\d+)?|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:-[a-z]+)?|one|two|three|four"
    r"|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen)"
)
# Kinds of question: the words that ask, and the pattern of an answer.
_KINDS = (
    (
        re.compile(r"\b(when|what day|what date|which day|which year|what year|what time)\b"),
        re.compile(
            rf"\b(?:\d{{1,2}} {_MONTH}(?: \d{{4}})?|{_MONTH} \d{{4}}|\d{{1,2}}[:.]\d\d|\d{{4}}|{_MONTH})\b"
        ),
    ),
    (
        re.compile(
            r"\bhow (many|much|long|far|often|old|high|deep|fast|heavy|wide)\b|\bwhat (price|fee|speed)\b"
        ),
        re.compile(
            rf"\b{_NUMBER}(?: (?:million|per cent))?(?: (?!and|of|in|on|at|a|the|with)[a-z]+)?", re.IGNORECASE
        ),
    ),
    (
        re.compile(r"\b(who|whose|whom|where|name the)\b"),
        re.compile(r"\b[A-Z][a-z'-]+(?: (?:of |the )?[A-Z][a-z'-]+)*"),
    ),
)
_OPENERS = frozenset(
    """a after all an and as at before but each every for from he her his if in it its no on one only our she
    since some the their there they this to until when while with you""".split()
)


class ExtractiveAnswerer(Generator):
    """Quotes the sentence that shares the rarest words with the query, and declines if none shares enough."""

    def __init__(self, corpus: Sequence[Document], *, least_support: float = 0.15) -> None:
        self._weights = TermWeights(doc.text for doc in corpus)
        self._least_support = least_support

    def generate(self, query: str, context_docs: list[Document]) -> Response:
        wanted = content_terms(query)
        shape = _asked_for(query)
        best, best_support, source = "", 0.0, ""
        for place, doc in enumerate(context_docs):
            about = self._weights.share(wanted, titled(doc))
            before = 0.0
            for sentence in sentences(doc.text):
                here = self._weights.share(wanted, sentence)
                answer = sentence if shape is None else _first_new(shape, sentence, query)
                # The title and the sentence before have the noun for a pronoun. A sentence without the
                # kind of answer that is asked for is only a fallback.
                support = (0.6 * here + 0.25 * about + 0.15 * before) * (1 - 0.03 * place)
                support *= 1.0 if answer else 0.5
                before = here
                if support > best_support:
                    best, best_support, source = answer or sentence, support, doc.doc_id
        if best_support < self._least_support:
            return Response(DECLINED, structured={"declined": True}, metadata={"support": best_support})
        return Response(best, metadata={"support": best_support, "source": source})


def _asked_for(query: str) -> re.Pattern[str] | None:
    """Return the pattern of the answer: a date, an amount, a name; None for other questions."""
    lowered = query.lower()
    return next((shape for cue, shape in _KINDS if cue.search(lowered)), None)


def _first_new(shape: re.Pattern[str], sentence: str, query: str) -> str:
    """Return the first match of the pattern that is not in the query already."""
    known = set(words(query)) | _OPENERS
    return next((m.group() for m in shape.finditer(sentence) if not set(words(m.group())) & known), "")


# The better answerer: it looks for an answer of the type that the question asks for.

# The lookbehind keeps the search linear: it starts at most once in a run of digits.
_FIGURE = rf"(?<![\d,.]){_NUMBER}(?: (?:hundred|thousand|million))?"
_UNITS = {
    "money": r"crowns?",
    "length": r"(?:kilo|centi|milli)?metres?|nautical miles|miles",
    "time": r"seconds?|minutes?|hours?|days?|nights?|weeks?|months?|years?",
    "weight": r"kilograms?|grams?|tonnes?",
    "share": r"per cent",
    "speed": r"knots|revolutions(?: (?:per|a) minute)?|kilometres an hour",
    "volume": r"litres?|cubic metres?",
    "power": r"(?:kilo|mega)?watts?(?:-hours?)?|volts?",
}


def _amount(*kinds: str) -> re.Pattern[str]:
    units = "|".join(_UNITS[kind] for kind in kinds or _UNITS)
    return re.compile(rf"\b{_FIGURE} (?:{units})(?: (?:a|an|per) [a-z]+)?\b", re.IGNORECASE)


_YEAR = r"(?:1[89]|20)\d\d"
_DATE = re.compile(rf"\b(?:\d{{1,2}} {_MONTH}(?: \d{{4}})?|{_MONTH} \d{{4}}|{_YEAR})\b")
_CLOCK = re.compile(
    rf"\b(?:\d{{1,2}}[:.]\d\d|(?:half|{_FIGURE} minutes) past {_FIGURE}|noon|midnight"
    rf"|{_FIGURE} (?:in the (?:morning|afternoon|evening)|at night))\b",
    re.IGNORECASE,
)
# A name behind one of these prepositions is a place.
_NAME = re.compile(
    r"(?<!\bin )(?<!\bat )(?<!\bon )(?<!\bto )(?<!\bfrom )(?<!\bnear )"
    r"\b[A-Z][a-z'-]+(?: (?:of |the )?[A-Z][a-z'-]+)+\b"
)
_REASON = re.compile(r"\b(?:because|owing to|due to|caused by)\b")
_QUESTION_WORD = re.compile(r"\b(?:what|which|who|whom|whose|when|where|why|how)\b.*")
# How a question goes on from its question word, and the pattern of the answers; the first that fits counts.
_TYPES = (
    (r"what time|which hour", _CLOCK),
    (r"(?:which|what) year", re.compile(rf"\b{_YEAR}\b")),
    (r"when|(?:which|what) (?:date|day|month)", _DATE),
    (r"how much (?:is|was|does|did|do|will|would|must) .*(?:cost|pay|paid|charge)", _amount("money")),
    (r"how much", _amount()),
    (r"(?:what|which) (?:price|fee|fine|fare|penalty|salary|rent)", _amount("money")),
    (r"what .*\b(?:costs?|pay|paid|charged?|owe)", _amount("money")),
    (r"how (?:long|old|soon|often)", _amount("time", "length")),
    (r"how (?:far|tall|high|deep|wide|thick|big|large|near|accurate)", _amount("length")),
    (r"how heavy|what .*\bweigh", _amount("weight")),
    (r"(?:what|which) (?:proportion|share|percentage)", _amount("share")),
    (r"how (?:fast|hard)|(?:what|which) (?:\w+ )?speed|what is the (?:\w+ )?speed", _amount("speed")),
    (r"who|whom|whose", _NAME),
)
_HOW_MANY = re.compile(r"how many (\w+)")
_YES_OR_NO = re.compile(r"(?:is|are|was|were|can|could|may|must|did|does|do|has|have|had|will|would|should) ")
_ASKING = frozenset("mani much year date day month time hour".split())  # stems that only ask
_NEGATIVE = frozenset("no not never only none nobody without nor cannot".split())
# Chosen on the tuning half of the questions (see `world.is_for_tuning`).
_WORDS_WEIGHT, _MEANING_WEIGHT = 0.3, 0.7
_RANK_PENALTY = 0.08  # for each document above
_TYPE_BONUS = 0.3  # for a sentence with an answer of the type
_QUOTED = 5  # sentences that answer an open question
_LEAST_SUPPORT = 0.15


class _Question:
    """A question with corrected spelling: its terms, and the pattern of the answers that it asks for."""

    def __init__(self, query: str, spelling: Spelling) -> None:
        self.text = spelling.corrected(query)
        self.terms = content_terms(self.text)
        self.words = set(self.text.split())
        self.years = re.findall(rf"\b{_YEAR}\b", self.text)
        self.is_yes_or_no = _YES_OR_NO.match(self.text) is not None
        self.is_negative = bool(_NEGATIVE & self.words)
        noun, self.pattern = self._type()
        self.wants_reason = self.text.startswith("why ")
        names = " ".join(re.findall(r"(?<!^)\b[A-Z][\w-]*", query))
        # What is asked about the names: a sentence that shares nothing else says something else of them.
        self.matter = self.terms - content_terms(spelling.corrected(names)) - content_terms(noun) - _ASKING

    def _type(self) -> tuple[str, re.Pattern[str] | None]:
        """Return the noun of `how many`, and the pattern of the answers."""
        asked = _QUESTION_WORD.search(self.text)
        if asked is None:
            return "", None
        how_many = _HOW_MANY.match(asked.group())
        if how_many:
            noun = re.escape(how_many[1][:4])  # `boxes` asks for `one box`, too
            counted = rf"(?:(?:[a-z]+ ){{0,2}}{noun}\w*|of (?:them|these)\b)"
            pattern = re.compile(rf"\b{_FIGURE} {counted}", re.IGNORECASE)
            return how_many[1], pattern
        types = (pattern for cue, pattern in _TYPES if re.match(rf"(?:{cue})\b", asked.group()))
        return "", next(types, None)

    def answers_in(self, sentence: str) -> list[re.Match[str]]:
        """Return the parts of a sentence that are of the type, without those that the question has."""
        if self.pattern is None:
            return []
        return [m for m in self.pattern.finditer(sentence) if not self.words.issuperset(words(m.group()))]


class _Evidence(NamedTuple):
    """A sentence of a document, how well it supports an answer, and the answers of the type in it."""

    support: float
    document: Document
    sentences: list[str]
    place: int
    answers: list[re.Match[str]]

    @property
    def sentence(self) -> str:
        """Return the sentence."""
        return self.sentences[self.place]


class TypedAnswerer(Generator):
    """Answers by the type of the question: a number, a date, a name, a reason, yes or no, or a passage.

    `vector` embeds a text. Without it, sentences are compared by their words alone. It declines questions
    that ask for a number, a date or a name if the best sentence has none, or is about something else.
    """

    def __init__(
        self,
        corpus: Sequence[Document],
        spelling: Spelling,
        vector: Callable[[str], NDArray[np.float32]] | None = None,
    ) -> None:
        self._weights = TermWeights(map(titled, corpus))
        self._spelling, self._vector = spelling, vector

    def generate(self, query: str, context_docs: list[Document]) -> Response:
        question = _Question(query, self._spelling)
        ranked = sorted(self._evidence(question, context_docs), key=lambda each: -each.support)
        if not ranked or _is_unsupported(question, ranked[0]):
            support = ranked[0].support if ranked else 0.0
            return Response(DECLINED, structured={"declined": True}, metadata={"support": support})
        source = {"support": ranked[0].support, "source": ranked[0].document.doc_id}
        return Response(_answer(question, ranked), metadata=source)

    def _evidence(self, question: _Question, documents: Sequence[Document]) -> Iterator[_Evidence]:
        for rank, document in enumerate(documents):
            parts = _statements(document.text)
            for place, sentence in enumerate(parts):
                shared = self._weights.share(question.terms, sentence)
                support = _WORDS_WEIGHT * shared + _MEANING_WEIGHT * self._similarity(
                    question.text, titled(document, sentence), shared
                )
                answers = question.answers_in(sentence)
                explains = question.wants_reason and _REASON.search(sentence) is not None
                support += _TYPE_BONUS * bool(answers or explains) - _RANK_PENALTY * rank
                yield _Evidence(support, document, parts, place, answers)

    def _similarity(self, query: str, text: str, shared: float) -> float:
        return shared if self._vector is None else float(self._vector(text) @ self._vector(query))


def _statements(text: str) -> list[str]:
    """Return the sentences of a text, a question together with the sentence that answers it."""
    parts: list[str] = []
    for sentence in sentences(text):
        if parts and parts[-1].endswith("?"):
            parts[-1] = f"{parts[-1]} {sentence}"
        else:
            parts.append(sentence)
    return parts


def _is_unsupported(question: _Question, evidence: _Evidence) -> bool:
    """Return whether the evidence is weak, of another year, or without what is asked for."""
    if evidence.support < _LEAST_SUPPORT:
        return True
    known = set(words(titled(evidence.document)))
    if not known.issuperset(question.years):
        return True
    if question.pattern is None:
        return False
    around = evidence.sentences[max(0, evidence.place - 1) : evidence.place + 2]
    is_off_topic = bool(question.matter) and not question.matter & content_terms(" ".join(around))
    return is_off_topic or not evidence.answers


def _answer(question: _Question, ranked: Sequence[_Evidence]) -> str:
    evidence = ranked[0]
    if question.is_yes_or_no:
        says_no = bool(_NEGATIVE.intersection(words(evidence.sentence)))
        return f"{'No' if says_no != question.is_negative else 'Yes'}. {evidence.sentence}"
    if len(evidence.answers) == 1:
        return evidence.answers[0].group()
    if evidence.answers:
        return evidence.sentence  # which of them is meant cannot be decided
    return " ".join(each.sentence for each in ranked[:_QUOTED])


# Correct the spelling of a query by the words of the corpus.

FUNCTION_WORDS = frozenset(
    """a an and any are as at be been by can did do does for from had has have how i if in into is it its many
    me much my of on or our than that the their there these they this to us was we were what when where which
    who whom whose why will with would you your""".split()
)
_SHORTEST = 4  # letters: shorter words have too many neighbours


class Spelling:
    """Replaces a word that the corpus lacks by the most frequent one with a letter more, less or swapped.

    Another letter in the place of one is not corrected: `soil` would become `sail`. Nor are function words:
    `many` would become `may`.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._counts = Counter(word for text in texts for word in words(text))
        self._stems = {stemmed_word(word) for word in self._counts}
        self._by_initial: dict[str, list[str]] = defaultdict(list)
        for word, _ in sorted(self._counts.items(), key=lambda item: (-item[1], item[0])):
            self._by_initial[word[0]].append(word)

    def corrected(self, query: str) -> str:
        """Return the words of a query in lower case, the misspelt ones corrected."""
        return " ".join(map(self._corrected_word, words(query)))

    def _corrected_word(self, word: str) -> str:
        is_known = stemmed_word(word) in self._stems or word in FUNCTION_WORDS
        if is_known or len(word) < _SHORTEST or not word.isalpha():
            return word
        return next((other for other in self._by_initial[word[0]] if _is_slip(word, other)), word)


def _is_slip(word: str, other: str) -> bool:
    if abs(len(word) - len(other)) > 1 or OSA.distance(word, other, score_cutoff=1) > 1:
        return False
    return len(word) != len(other) or sorted(word) == sorted(other)
