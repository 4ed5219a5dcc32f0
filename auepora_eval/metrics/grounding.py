"""How much of an answer stands in the retrieved documents, by its words, numbers and names.

These are overlaps, not checks of truth: none of them sees a negation or two things that changed places
("the boat rammed the pier", "the pier rammed the boat"). The documents are those that the system
retrieved, all of them; refusals are scored like any text. Citation marks such as [2], and the numbers and
bullets of lists, are not counted.

How well each agrees with people is measured on two sets (tests/metrics/test_grounding.py): Spearman's
correlation with the mean faithfulness that about three people gave to the 300 answers of two models that had
documents (MTRAG; one rater against the mean of the others: 0.58), and AUROC for telling 599 claims that
people found attributable to their evidence from 599 that they did not (AttributionBench, dev; 0.5 is chance).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ..core.metrics_base import METRICS, SampleMetric, skip
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from .content import content_words, names, numbers, without_marks
from .sentences import sentences
from .text import words


class GroundingMetric(SampleMetric):
    """A metric of the answer's text and the texts that were retrieved for it."""

    target = TargetCategory.GENERATION_FAITHFULNESS

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        answer = output.response.text
        if not answer.strip():
            return skip("the answer is empty")
        if not output.retrieved:
            return skip("no document was retrieved")
        documents = [hit.doc.text for hit in output.retrieved if hit.doc.text.strip()]
        if not documents:
            return skip("the retrieved documents have no text")
        return self.support(without_marks(answer), documents)

    def support(self, answer: str, documents: Sequence[str]) -> float | SampleScore:
        """The share of the answer that the documents support."""
        raise NotImplementedError

    def signature(self) -> dict[str, Any]:
        return {"words": "unicode, cjk per character, not stemmed"}


@METRICS.add("grounding_overlap")
@dataclass
class GroundingOverlap(GroundingMetric):
    """Share of the answer's content words that are found in the retrieved documents.

    Content words of the answer that occur in any document / content words of the answer, repeats counted.
    Function words are left out: they are found anywhere.

    Agreement with people: Spearman 0.71 on MTRAG, AUROC 0.71 on AttributionBench dev (0.93 on its LFQA part,
    0.58 on ExpertQA). Reported elsewhere (metrics dossier, not re-measured here): AUROC 0.88 on
    AttributionBench's out-of-domain set, 0.58 on QAGS CNN/DM. Negation and swapped relations are not seen.
    """

    def __post_init__(self) -> None:
        self.name = "grounding_overlap"

    def support(self, answer: str, documents: Sequence[str]) -> float | SampleScore:
        given = content_words(answer)
        return _share_found(given, _all_words(documents), "the answer has no content words")


@METRICS.add("grounding_bigrams")
@dataclass
class GroundingBigrams(GroundingMetric):
    """Share of the answer's word pairs that stand side by side in a retrieved document too.

    Bigrams of the answer found in any document / bigrams of the answer, function words and repeats
    counted. Stricter than grounding_overlap: it rewards quoting and punishes paraphrase.

    Agreement with people: Spearman 0.69 on MTRAG, AUROC 0.72 on AttributionBench dev. Negation and swapped
    relations are seen only where they change neighbours.
    """

    def __post_init__(self) -> None:
        self.name = "grounding_bigrams"

    def support(self, answer: str, documents: Sequence[str]) -> float | SampleScore:
        found = {pair for text in documents for pair in _bigrams(text)}
        return _share_found(_bigrams(answer), found, "the answer is shorter than two words")


@METRICS.add("number_support")
@dataclass
class NumberSupport(GroundingMetric):
    """Share of the answer's numbers that stand in the retrieved documents.

    Numbers in digits found in any document / numbers of the answer; "1,000" and "1000.0" are one number, 12%
    and 12 too. Answers without numbers are skipped. A sum that the answer worked out itself is not found.

    Agreement with people, where an answer has numbers: Spearman 0.52 on MTRAG (132 answers), AUROC 0.71 on
    AttributionBench dev (204 claims). A right number in a wrong relation, or negated, is not seen.
    """

    def __post_init__(self) -> None:
        self.name = "number_support"

    def support(self, answer: str, documents: Sequence[str]) -> float | SampleScore:
        found = {number for text in documents for number in numbers(text)}
        return _share_found(numbers(answer), found, "the answer has no number in digits")


@METRICS.add("name_support")
@dataclass
class NameSupport(GroundingMetric):
    """Share of the words in the answer's names that are found in the retrieved documents.

    Capitalised words found in any document, in any case / capitalised words of the answer; the first word
    of a sentence counts only if something else shows that it is a name. In German every noun counts as one;
    scripts without capitals have none, and such answers are skipped.

    Agreement with people, where an answer has names: Spearman 0.48 on MTRAG (226 answers), AUROC 0.64 on
    AttributionBench dev (546 claims). Names that changed places, and negation, are not seen.
    """

    def __post_init__(self) -> None:
        self.name = "name_support"

    def support(self, answer: str, documents: Sequence[str]) -> float | SampleScore:
        return _share_found(names(answer), _all_words(documents), "the answer has no capitalised name")


@METRICS.add("best_sentence_overlap")
@dataclass
class BestSentenceOverlap(GroundingMetric):
    """How much of each sentence of the answer is found in one single sentence of the documents.

    For each sentence of the answer the largest share of its content words that one document sentence has;
    the mean over the sentences that have content words. A sentence pieced together from several loses.

    Agreement with people: Spearman 0.67 on MTRAG, AUROC 0.72 on AttributionBench dev. Negation and swapped
    relations are not seen.
    """

    def __post_init__(self) -> None:
        self.name = "best_sentence_overlap"

    def support(self, answer: str, documents: Sequence[str]) -> float | SampleScore:
        given = [tuple(content) for sentence in sentences(answer) if (content := content_words(sentence))]
        if not given:
            return skip("the answer has no content words")
        distinct = {frozenset(words(sentence)) for text in documents for sentence in sentences(text)}
        places: dict[str, list[int]] = {}
        for place, known in enumerate(distinct):
            for word in known:
                places.setdefault(word, []).append(place)
        best = {content: _best_share(content, places) for content in set(given)}
        return sum(best[content] for content in given) / len(given)


def _best_share(content: Sequence[str], places: dict[str, list[int]]) -> float:
    hits: Counter[int] = Counter()
    for word, times in Counter(content).items():
        for place in places.get(word, ()):
            hits[place] += times
    return max(hits.values(), default=0) / len(content)


def _share_found(given: Sequence[Any], found: set[Any], if_none: str) -> float | SampleScore:
    return sum(thing in found for thing in given) / len(given) if given else skip(if_none)


def _all_words(documents: Iterable[str]) -> set[str]:
    return {word for text in documents for word in words(text)}


def _bigrams(text: str) -> list[tuple[str, str]]:
    found = words(text)
    return list(pairwise(found))
