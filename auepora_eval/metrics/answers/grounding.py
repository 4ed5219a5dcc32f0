"""How much of an answer is in the retrieved documents, by its words, numbers and names.

These are overlaps, not checks of truth: none of them sees a negation or two things that changed places
("the boat rammed the pier", "the pier rammed the boat"). The documents are those that the system
retrieved, all of them. An answer without any is not supported: it scores 0. An answer that declines
(text/refusal.py) is skipped, with or without documents. Citation marks such as [2], and the numbers and
bullets of lists, are not counted.

How well each agrees with people, and which of them sees which failure: docs/metrics.md, by
benchmarks/grounding.py and tests/metrics/test_grounding.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ...core.metrics_base import SampleMetric, metric, skip
from ...core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...text.content_words import content_words, names, numbers, without_marks
from ...text.refusal import declines
from ...text.sentences import sentences
from ...text.tokens import words
from ..entailment import checked_support, support_function, support_identity


class GroundingMetric(SampleMetric):
    """A metric of the answer's text and the texts that were retrieved for it."""

    target = TargetCategory.GENERATION_FAITHFULNESS
    reads_documents = True

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        if not output.response.text.strip():
            return skip("the answer is empty")
        if declines(output.response):
            return skip("the answer declines")
        documents = [hit.doc.text for hit in output.retrieved if hit.doc.text.strip()]
        # Documents whose texts nobody recorded cannot be checked. Without any document, nothing is supported:
        # skipping such answers would reward a system that retrieves nothing for its inventions.
        if output.retrieved and not documents:
            return skip("the retrieved documents have no text")
        return self.support(without_marks(output.response.text), documents)

    def support(self, answer: str, documents: Sequence[str]) -> float | SampleScore:
        """Return the share of the answer that the documents support."""
        raise NotImplementedError

    def signature(self) -> Mapping[str, object]:
        return {"words": "unicode, cjk per character, not stemmed"}


@metric("grounding_overlap")
class GroundingOverlap(GroundingMetric):
    """Share of the answer's content words that are found in the retrieved documents.

    Content words of the answer that occur in any document / content words of the answer, repeats counted. It
    sees answers that are made up as a whole, but neither a negation nor two swapped names.
    """

    def support(self, answer: str, documents: Sequence[str]) -> float | SampleScore:
        return _share_in(_all_words(documents), content_words(answer), "the answer has no content words")


@metric("grounding_bigrams")
class GroundingBigrams(GroundingMetric):
    """Share of the answer's word pairs that are also adjacent in a retrieved document.

    Bigrams of the answer found in any document / bigrams of the answer, function words and repeats counted.
    Stricter than grounding_overlap: it rewards quoting and punishes paraphrase.
    """

    def support(self, answer: str, documents: Sequence[str]) -> float | SampleScore:
        source = {pair for text in documents for pair in _bigrams(text)}
        return _share_in(source, _bigrams(answer), "the answer is shorter than two words")


@metric("number_support")
class NumberSupport(GroundingMetric):
    """Share of the answer's numbers that are in the retrieved documents.

    Numbers in digits; "1,000" and "1000.0" are one number, 12% and 12 too. Answers without numbers are
    skipped. A sum that the answer worked out itself is not found, and a right number in a wrong relation is.
    """

    def support(self, answer: str, documents: Sequence[str]) -> float | SampleScore:
        source = {number for text in documents for number in numbers(text)}
        return _share_in(source, numbers(answer), "the answer has no number in digits")


@metric("name_support")
class NameSupport(GroundingMetric):
    """Share of the words in the answer's names that are found in the retrieved documents.

    Capitalised words found in any document, in any case / capitalised words of the answer; the first word of
    a sentence counts only if something else shows that it is a name. In German every noun counts as one;
    scripts without capitals have none, and such answers are skipped. Names that changed places are not seen.
    """

    def support(self, answer: str, documents: Sequence[str]) -> float | SampleScore:
        return _share_in(_all_words(documents), names(answer), "the answer has no capitalised name")


@metric("best_sentence_overlap")
class BestSentenceOverlap(GroundingMetric):
    """How much of each sentence of the answer is found in one single sentence of the documents.

    The largest share of its content words that one document sentence has; the mean over the sentences that
    have content words. A sentence pieced together from several loses. Negation is not seen.
    """

    def support(self, answer: str, documents: Sequence[str]) -> float | SampleScore:
        claimed = [tuple(content) for sentence in sentences(answer) if (content := content_words(sentence))]
        if not claimed:
            return skip("the answer has no content words")
        distinct = {frozenset(words(sentence)) for text in documents for sentence in sentences(text)}
        places = word_places(distinct)
        best = {content: max(hits(content, places).values(), default=0) for content in set(claimed)}
        return sum(best[content] / len(content) for content in claimed) / len(claimed)


@metric("support_model")
class SupportModel(GroundingMetric):
    """How far the retrieved documents support the answer, by a small trained model without an LLM.

    The support function `trained` (14 signed features of words, numbers, names and negation; logistic
    weights) for each sentence of the answer; the mean, sentences counted by their content words. The score is
    a rank, not a chance, until it is calibrated on your labels. In paraphrases it is near chance on
    negations, changed numbers and swapped roles, and it knows the negations of English only.
    """

    def ready(self) -> None:
        support_function("trained")

    def support(self, answer: str, documents: Sequence[str]) -> float | SampleScore:
        if not content_words(answer):
            return skip("the answer has no content words")
        return checked_support(support_function("trained"), "\n".join(documents), answer)

    def signature(self) -> Mapping[str, object]:
        return {**super().signature(), "support": support_identity("trained")}


def word_places(sentences: Iterable[Collection[str]]) -> dict[str, list[int]]:
    """Return the sentences that have each word, by their numbers: long documents have thousands."""
    places: dict[str, list[int]] = {}
    for place, sentence_words in enumerate(sentences):
        for word in sentence_words:
            places.setdefault(word, []).append(place)
    return places


def hits(content: Iterable[str], places: Mapping[str, Sequence[int]]) -> Counter[int]:
    """Return how many of the words each sentence has, repeats counted."""
    return Counter(place for word in content for place in places.get(word, ()))


def _share_in(source: set[Any], parts: Sequence[Any], if_none: str) -> float | SampleScore:
    return sum(part in source for part in parts) / len(parts) if parts else skip(if_none)


def _all_words(documents: Iterable[str]) -> set[str]:
    return {word for text in documents for word in words(text)}


def _bigrams(text: str) -> list[tuple[str, str]]:
    return list(pairwise(words(text)))
