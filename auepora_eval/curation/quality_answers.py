"""Checks of reference answers: given away by the question, or not supported by the gold documents.

Both go by words. Support is the share of the reference's content words (by their stems) and numbers that
stand in its gold documents: a worked-out number or a paraphrase looks unsupported, a wrong sentence made of
the document's own words looks supported. Read what they list; do not delete by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from ..core.types import EvaluationSample
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
    for place, sample in enumerate(view.samples):
        support = reference_support(sample, fewest_words)
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
    from ..metrics.refusal import refusal

    reference = sample.reference_answer
    documents = sample.relevant_docs or []
    if reference is None or not reference.text.strip() or not _is_answerable(sample):
        return None
    if not documents or not all(doc.text.strip() for doc in documents):
        return None
    known = [_known(doc.text) for doc in documents]
    known += [_known(title) for doc in documents if isinstance(title := doc.metadata.get("title"), str)]
    alternatives = reference.metadata.get("alternatives")
    texts = [reference.text, *(alternatives if isinstance(alternatives, list) else ())]
    contents = [_content(text) for text in texts if isinstance(text, str)]
    judged = [_support(content, known) for content in contents if len(content) >= fewest_words]
    # A long alternative does not make up for a short reference, which is not judged.
    if len(contents[0]) < fewest_words:
        return None
    best = max(judged, key=lambda support: support.share)
    return None if best.missing and refusal(reference).declined else best


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

    def has(self, word: str) -> bool:
        if word in self.words:
            return True
        from ..metrics.text import stemmed_word

        return word in self.others or stemmed_word(word) in self.others


@lru_cache(maxsize=4096)
def _known(text: str) -> _Known:
    return _Known(text)


def _support(content: Sequence[str], known: list[_Known]) -> Support:
    missing = tuple(word for word in content if not any(each.has(word) for each in known))
    return Support(1 - len(missing) / len(content), missing)


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
    return len(content) >= FEWEST_WORDS and _support(content, [_known(sample.query)]).share == 1


def _reference(sample: EvaluationSample) -> str:
    return "" if sample.reference_answer is None else sample.reference_answer.text.strip()


def _is_answerable(sample: EvaluationSample) -> bool:
    """Whether a sample's labels leave it answerable; labels that contradict each other say nothing."""
    from ..metrics.rejection import is_answerable

    try:
        return is_answerable(sample) is not False
    except ScoringError:
        return True
