"""Checks of reference answers: given away by the question, or not supported by the gold documents.

Both go by words. Support is the share of the reference's content words (by their stems) and numbers that
stand in its gold documents: a worked-out number or a paraphrase looks unsupported, a wrong sentence made of
the document's own words looks supported. Read what they list; do not delete by it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from functools import cached_property, lru_cache
from typing import NamedTuple

from ..core.types import EvaluationSample, Response
from ..errors import ScoringError
from .quality_issue import QualityIssue
from .quality_view import DatasetView

# Measured on references with their own gold documents (false alarms) and with another sample's (caught):
# CLAP NQ 0 of 300 and all, RGB 0 of 29 and all, PubMedQA's conclusions 9% and all, FinanceBench, where many
# answers are worked out, 16% and 90%. At 0.5 a third or more of the latter two would be listed.
MIN_SUPPORT = 0.35
# Of a reference of one or two words, one that the documents write otherwise ("two", "2") is half of it.
FEWEST_WORDS = 3
_VERDICTS = frozenset("yes no true false maybe none unknown both neither".split())
# Questions that offer their answers: the right one stands in them by intent.
_CHOICE = re.compile(
    r"\b(?:or|versus|vs|whether|either|between|which of|is it true|of the (?:two|three|following)"
    r"|oder|zwischen|ou|entre|ovvero|oppure)\b|还是|還是"
)


class Support(NamedTuple):
    """How much of a reference stands in its gold documents: the share, and the words that do not."""

    share: float
    missing: tuple[str, ...]


def check_answer_in_question(view: DatasetView) -> Iterator[QualityIssue]:
    """Questions that hold their own answer: a system that repeats the question looks right."""
    for place, sample in enumerate(view.samples):
        if _gives_itself_away(sample):
            yield QualityIssue(
                "warning",
                "answer_in_question",
                f"the words of the reference {_reference(sample)!r:.60} all stand in the question.",
                where=view.where(place),
                sample_id=sample.sample_id,
                fix="Ask for something that the question does not say.",
            )


def check_reference_support(
    view: DatasetView, min_support: float = MIN_SUPPORT, fewest_words: int = FEWEST_WORDS
) -> Iterator[QualityIssue]:
    """References whose words are, for the most part, not in their gold documents."""
    cases = {
        place: case for place, sample in enumerate(view.samples) if (case := _case(sample, fewest_words))
    }
    _look_up(cases.values(), _Case.look_for_words)
    # Most are supported by now; stems and numbers, which take longest, are for the others.
    unclear = {place: case for place, case in cases.items() if case.best().share < min_support}
    _look_up(unclear.values(), _Case.look_for_others)
    for place, case in unclear.items():
        support, sample = case.support(), view.samples[place]
        if support is None or support.share >= min_support:
            continue
        missing = ", ".join(support.missing[:6])
        yield QualityIssue(
            "warning",
            "reference_support",
            f"{support.share:.0%} of the reference's words are in its gold documents; not there: {missing}.",
            where=view.where(place),
            sample_id=sample.sample_id,
            fix="Look whether the right documents are gold, and whether the reference says what they say.",
        )


def reference_support(sample: EvaluationSample, fewest_words: int = FEWEST_WORDS) -> Support | None:
    """The support of a sample's reference, or of its best alternative; None where it cannot be told.

    It cannot without a reference or the gold documents' texts, for unanswerable questions and references
    that decline, for yes or no, and for references of fewer content words and numbers than `fewest_words`.
    """
    case = _case(sample, fewest_words)
    if case is None:
        return None
    for text in case.texts:
        known = _known(text)
        case.look_for_words(known)
        case.look_for_others(known)
    return case.support()


class _Case:
    """A reference and its alternatives, while their words are looked up in one text after another."""

    def __init__(self, reference: Response, contents: list[tuple[str, ...]], texts: list[str]) -> None:
        self._reference, self._contents, self.texts = reference, contents, texts
        self._missing = {word for content in contents for word in content}

    def look_for_words(self, known: _Known) -> None:
        """Strike out what a document has as it is."""
        self._missing -= known.words

    def look_for_others(self, known: _Known) -> None:
        """Strike out what it has in another form."""
        if self._missing:
            self._missing = {word for word in self._missing if not known.has_form_of(word)}

    def best(self) -> Support:
        """The support of the text that has most of its words found."""
        found = []
        for content in self._contents:
            missing = tuple(word for word in content if word in self._missing)
            found.append(Support(1 - len(missing) / len(content), missing))
        return max(found, key=lambda support: support.share)

    def support(self) -> Support | None:
        """The same; None for a reference that declines."""
        from ..metrics.refusal import refusal

        best = self.best()
        return None if best.missing and refusal(self._reference).declined else best


def _case(sample: EvaluationSample, fewest_words: int) -> _Case | None:
    reference = sample.reference_answer
    documents = sample.relevant_docs or []
    if reference is None or not reference.text.strip() or not _is_answerable(sample):
        return None
    if not documents or not all(doc.text.strip() for doc in documents):
        return None
    titles = [title for doc in documents if isinstance(title := doc.metadata.get("title"), str)]
    alternatives = reference.metadata.get("alternatives")
    texts = [reference.text, *(alternatives if isinstance(alternatives, list) else ())]
    contents = [_content(text) for text in texts if isinstance(text, str)]
    # A long alternative does not make up for a short reference, which is not judged.
    if len(contents[0]) < fewest_words:
        return None
    judged = [content for content in contents if len(content) >= fewest_words]
    return _Case(reference, judged, [*(doc.text for doc in documents), *titles])


def _look_up(cases: Collection[_Case], look: Callable[[_Case, _Known], None]) -> None:
    """Look into each text once, for all who need it: a corpus cut into words would not fit the memory."""
    waiting: dict[str, list[_Case]] = {}
    for case in cases:
        for text in case.texts:
            waiting.setdefault(text, []).append(case)
    for text, those in waiting.items():
        known = _Known(text)
        for case in those:
            look(case, known)


class _Known:
    """The words of a text; its numbers and stems only when a word is not found as it is."""

    def __init__(self, text: str) -> None:
        from ..metrics.text import words

        self._text = text
        self.words = frozenset(words(text))

    @cached_property
    def others(self) -> frozenset[str]:
        """The numbers in one spelling, and the words by their stems."""
        from ..metrics.content import numbers
        from ..metrics.text import stemmed_word

        return frozenset(numbers(self._text)) | frozenset(map(stemmed_word, self.words))

    def has_form_of(self, word: str) -> bool:
        """Whether the text has a number or a word as another form."""
        from ..metrics.text import stemmed_word

        return word in self.others or stemmed_word(word) in self.others


_known = lru_cache(maxsize=256)(_Known)


def _content(text: str) -> tuple[str, ...]:
    """Content words without digits, then the numbers in one spelling, each once."""
    from ..metrics.content import content_words, numbers, without_marks

    plain = without_marks(text)
    found = [word for word in content_words(plain) if not any(c.isdigit() for c in word)]
    return tuple(dict.fromkeys([*found, *numbers(plain)]))


def _gives_itself_away(sample: EvaluationSample) -> bool:
    from ..metrics.text import has_ideographs, words

    reference = _reference(sample)
    if not reference or not _is_answerable(sample) or _CHOICE.search(sample.query.lower()):
        return False
    content = _content(reference)
    if not content or set(content) <= _VERDICTS:
        return False
    if has_ideographs(reference):
        return reference.strip(" 。.") in sample.query
    asked, given = words(sample.query), words(reference)
    if len(content) == 1 and (content[0].isdigit() or len(content[0]) < 3):
        return False  # a lone number is in many questions without being their answer
    if f" {' '.join(given)} " in f" {' '.join(asked)} ":
        return True
    known = _Known(sample.query)
    return len(content) >= FEWEST_WORDS and all(
        word in known.words or known.has_form_of(word) for word in content
    )


def _reference(sample: EvaluationSample) -> str:
    return "" if sample.reference_answer is None else sample.reference_answer.text.strip()


def _is_answerable(sample: EvaluationSample) -> bool:
    """Whether a sample's labels leave it answerable; labels that contradict each other say nothing."""
    from ..metrics.rejection import is_answerable

    try:
        return is_answerable(sample) is not False
    except ScoringError:
        return True
