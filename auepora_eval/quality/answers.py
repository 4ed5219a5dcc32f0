"""Checks of reference answers: given away by the question, or not supported by the gold documents.

Both go by words. Support is the share of the reference's content words (by their stems) and numbers that
are in its gold documents: a worked-out number or a paraphrase looks unsupported, a wrong sentence made of
the document's own words looks supported. Read what they list; do not delete by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from ..core.types import EvaluationSample, gold_documents
from ..errors import ScoringError
from .view import DatasetView, QualityIssue

# Measured on references with their own gold documents (false alarms) and with another sample's (caught):
# CLAP NQ 0 of 300 and all, RGB 0 of 29 and all, PubMedQA's conclusions 9% and all, FinanceBench, where many
# answers are worked out, 16% and 90%. At 0.5 a third or more of the latter two would be listed.
MIN_SUPPORT = 0.35
# Of a reference of one or two words, one that the documents write otherwise ("two", "2") is half of it.
FEWEST_WORDS = 3
# References of such a word alone are in many questions without being given away.
_VERDICTS = frozenset("yes no true false maybe none unknown both neither".split())
# Questions that offer their answers: the right one is in them by intent.
_CHOICE = re.compile(
    r"\b(?:or|versus|vs|whether|either|between|which of|is it true|of the (?:two|three|following)"
    r"|oder|zwischen|ou|entre|ovvero|oppure)\b|还是|還是"
)


class Support(NamedTuple):
    """The share of a reference's words that are in its gold documents, and the words that are not."""

    share: float
    missing: tuple[str, ...]


def check_answer_in_question(view: DatasetView) -> Iterator[QualityIssue]:
    """Questions that hold their own answer: a system that repeats the question looks right."""
    for place, sample in enumerate(view.samples):
        if _gives_itself_away(sample):
            message = f"the words of the reference {_reference(sample)!r:.60} are all in the question."
            fix = "Ask for something that the question does not say."
            yield view.issue("warning", "answer_in_question", message, place=place, fix=fix)


def check_reference_support(
    view: DatasetView, min_support: float = MIN_SUPPORT, fewest_words: int = FEWEST_WORDS
) -> Iterator[QualityIssue]:
    """References whose words are, for the most part, not in their gold documents."""
    for place, sample in enumerate(view.samples):
        support = reference_support(sample, fewest_words)
        if support is None or support.share >= min_support:
            continue
        missing = ", ".join(support.missing[:6])
        yield view.issue(
            "warning",
            "reference_support",
            f"{support.share:.0%} of the reference's words are in its gold documents; not there: {missing}.",
            place=place,
            fix="Look whether the right documents are gold, and whether the reference says what they say.",
        )


def reference_support(sample: EvaluationSample, fewest_words: int = FEWEST_WORDS) -> Support | None:
    """Return the support of a sample's reference, or of its best alternative; None if it is not known.

    It is not known without a reference or the gold documents' texts, for unanswerable questions and for
    references that decline, say yes or no, or have fewer content words and numbers than `fewest_words`.
    """
    from ..text.refusal import refusal

    reference, documents = sample.reference_answer, gold_documents(sample)
    if reference is None or not reference.text.strip() or not _is_answerable(sample):
        return None
    if not documents or not all(doc.text.strip() for doc in documents):
        return None
    alternatives = reference.metadata.get("alternatives")
    texts = [reference.text, *(alternatives if isinstance(alternatives, list) else ())]
    contents = [_content(text) for text in texts if isinstance(text, str)]
    # A long alternative does not make up for a short reference, which is not judged.
    if len(contents[0]) < fewest_words:
        return None
    titles = [title for doc in documents if isinstance(title := doc.metadata.get("title"), str)]
    forms = frozenset().union(*map(_forms, [*(doc.text for doc in documents), *titles]))
    judged = [content for content in contents if len(content) >= fewest_words]
    best = max((_support(content, forms) for content in judged), key=lambda support: support.share)
    return None if best.missing and refusal(reference).declined else best


def _support(content: tuple[str, ...], forms: frozenset[str]) -> Support:
    lacking = tuple(word for word in content if not _has_form_of(word, forms))
    return Support(1 - len(lacking) / len(content), lacking)


# Samples of one document often follow each other. A text of 1,000 words takes tens of KB.
@lru_cache(maxsize=1024)
def _forms(text: str) -> frozenset[str]:
    """Return the words of a text as they are and by their stems, and its numbers in one spelling."""
    from ..text.content_words import numbers
    from ..text.tokens import stemmed_word, words

    distinct = frozenset(words(text))
    return distinct.union(map(stemmed_word, distinct), numbers(text))


def _has_form_of(word: str, forms: frozenset[str]) -> bool:
    from ..text.tokens import stemmed_word

    return word in forms or stemmed_word(word) in forms


def _content(text: str) -> tuple[str, ...]:
    """Content words without digits, then the numbers in one spelling, each once."""
    from ..text.content_words import content_words, numbers, without_marks

    plain = without_marks(text)
    content = [word for word in content_words(plain) if not any(c.isdigit() for c in word)]
    return tuple(dict.fromkeys([*content, *numbers(plain)]))


def _gives_itself_away(sample: EvaluationSample) -> bool:
    from ..text.tokens import has_ideographs, words

    reference = _reference(sample)
    if not reference or not _is_answerable(sample) or _CHOICE.search(sample.query.lower()):
        return False
    content = _content(reference)
    if not content or set(content) <= _VERDICTS:
        return False
    if has_ideographs(reference):
        return reference.strip(" 。.") in sample.query
    question_words, reference_words = words(sample.query), words(reference)
    if len(content) == 1 and (content[0].isdigit() or len(content[0]) < 3):
        return False  # a lone number is in many questions without being their answer
    if f" {' '.join(reference_words)} " in f" {' '.join(question_words)} ":
        return True
    forms = _forms(sample.query)
    return len(content) >= FEWEST_WORDS and all(_has_form_of(word, forms) for word in content)


def _reference(sample: EvaluationSample) -> str:
    return "" if sample.reference_answer is None else sample.reference_answer.text.strip()


def _is_answerable(sample: EvaluationSample) -> bool:
    """Whether a sample's labels leave it answerable; labels that contradict each other say nothing."""
    from ..metrics.robustness.rejection import is_answerable

    try:
        return is_answerable(sample) is not False
    except ScoringError:
        return True
