"""How much of an answer is in the retrieved documents, by its words, numbers and names.

These are overlaps, not checks of truth: none of them sees a negation or two things that changed places
("the boat rammed the pier", "the pier rammed the boat"). The documents are those that the system
retrieved, all of them. An answer without any is not supported: it scores 0. An answer that declines
(text/refusal.py) is skipped, with or without documents. Citation marks such as [2], and the numbers and
bullets of lists, are not counted.

How well each agrees with people is measured on two sets (tests/metrics/test_grounding.py): Spearman's
correlation with the mean faithfulness that about three people gave to the 309 answers of two models that do
not decline (MTRAG; one rater against the mean of the others: 0.58), and AUROC for separating 599 claims that
people found attributable to their evidence from 599 that they did not (AttributionBench, dev; 0.5 is chance).
Which of them sees which failure, by changing one thing in answers that are faithful: docs/metrics.md, printed
by benchmarks/grounding.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ...core.metrics_base import SampleMetric, metric, skip
from ...core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...errors import ScoringError
from ...text.content_words import content_words, names, numbers, without_marks
from ...text.refusal import refusal
from ...text.sentences import sentences
from ...text.tokens import words


class GroundingMetric(SampleMetric):
    """A metric of the answer's text and the texts that were retrieved for it."""

    target = TargetCategory.GENERATION_FAITHFULNESS
    reads_documents = True

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        if not output.response.text.strip():
            return skip("the answer is empty")
        if refusal(output.response).declined:
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

    Content words of the answer that occur in any document / content words of the answer, repeats counted.
    Function words are left out: they are found anywhere.

    Agreement with people: Spearman 0.74 on MTRAG, AUROC 0.71 on AttributionBench dev (0.93 on its LFQA part,
    0.57 on ExpertQA). It sees answers that are made up as a whole. Where one thing is wrong in an answer that
    is otherwise right, it is no better than chance: AUROC 0.50 for a negation and for two names that changed
    places, 0.53 for another number in a paraphrase. Use lexical_consistency, grounding_bigrams and
    number_support there.
    """

    def support(self, answer: str, documents: Sequence[str]) -> float | SampleScore:
        return _share_in(_all_words(documents), content_words(answer), "the answer has no content words")


@metric("grounding_bigrams")
class GroundingBigrams(GroundingMetric):
    """Share of the answer's word pairs that are also adjacent in a retrieved document.

    Bigrams of the answer found in any document / bigrams of the answer, function words and repeats
    counted. Stricter than grounding_overlap: it rewards quoting and punishes paraphrase.

    Agreement with people: Spearman 0.72 on MTRAG, AUROC 0.72 on AttributionBench dev. A negation and names
    that changed places are seen where the answer is close to the wording of the documents (AUROC 0.68 and
    0.75 on CLAP NQ), hardly where it is a paraphrase (0.51 and 0.56 on MTRAG).
    """

    def support(self, answer: str, documents: Sequence[str]) -> float | SampleScore:
        source = {pair for text in documents for pair in _bigrams(text)}
        return _share_in(source, _bigrams(answer), "the answer is shorter than two words")


@metric("number_support")
class NumberSupport(GroundingMetric):
    """Share of the answer's numbers that are in the retrieved documents.

    Numbers in digits found in any document / numbers of the answer; "1,000" and "1000.0" are one number, 12%
    and 12 too. Answers without numbers are skipped. A sum that the answer worked out itself is not found.

    Agreement with people, where an answer has numbers: Spearman 0.56 on MTRAG (135 answers), AUROC 0.71 on
    AttributionBench dev (203 claims). A wrong number is seen (AUROC 0.96 on CLAP NQ, 0.83 on MTRAG), a right
    one in a wrong relation, or negated, is not.
    """

    def support(self, answer: str, documents: Sequence[str]) -> float | SampleScore:
        source = {number for text in documents for number in numbers(text)}
        return _share_in(source, numbers(answer), "the answer has no number in digits")


@metric("name_support")
class NameSupport(GroundingMetric):
    """Share of the words in the answer's names that are found in the retrieved documents.

    Capitalised words found in any document, in any case / capitalised words of the answer; the first word
    of a sentence counts only if something else shows that it is a name. In German every noun counts as one;
    scripts without capitals have none, and such answers are skipped.

    Agreement with people, where an answer has names: Spearman 0.52 on MTRAG (232 answers), AUROC 0.64 on
    AttributionBench dev (544 claims). A wrong name is seen (AUROC 0.94 on CLAP NQ, 0.85 on MTRAG), names that
    changed places, and negation, are not.
    """

    def support(self, answer: str, documents: Sequence[str]) -> float | SampleScore:
        return _share_in(_all_words(documents), names(answer), "the answer has no capitalised name")


@metric("best_sentence_overlap")
class BestSentenceOverlap(GroundingMetric):
    """How much of each sentence of the answer is found in one single sentence of the documents.

    For each sentence of the answer the largest share of its content words that one document sentence has;
    the mean over the sentences that have content words. A sentence pieced together from several loses.

    Agreement with people: Spearman 0.70 on MTRAG, AUROC 0.72 on AttributionBench dev. Negation and swapped
    relations are not seen.
    """

    def support(self, answer: str, documents: Sequence[str]) -> float | SampleScore:
        claimed = [tuple(content) for sentence in sentences(answer) if (content := content_words(sentence))]
        if not claimed:
            return skip("the answer has no content words")
        distinct = {frozenset(words(sentence)) for text in documents for sentence in sentences(text)}
        # An index by word: long documents have thousands of sentences.
        places: dict[str, list[int]] = {}
        for place, sentence_words in enumerate(distinct):
            for word in sentence_words:
                places.setdefault(word, []).append(place)
        best = {content: _best_share(content, places) for content in set(claimed)}
        return sum(best[content] for content in claimed) / len(claimed)


def _best_share(content: Sequence[str], places: dict[str, list[int]]) -> float:
    hits: Counter[int] = Counter()
    for word, times in Counter(content).items():
        for place in places.get(word, ()):
            hits[place] += times
    return max(hits.values(), default=0) / len(content)


def _share_in(source: set[Any], parts: Sequence[Any], if_none: str) -> float | SampleScore:
    return sum(part in source for part in parts) / len(parts) if parts else skip(if_none)


def _all_words(documents: Iterable[str]) -> set[str]:
    return {word for text in documents for word in words(text)}


def _bigrams(text: str) -> list[tuple[str, str]]:
    return list(pairwise(words(text)))


# Claim metrics, from claims that people or a model have checked already.
#
# | output.extra["claims"] = {
# |     "answer_in_reference": [True, False],           # a flag for each claim of the answer
# |     "reference_in_answer": [True, True, False],     # a flag for each claim of the reference
# |     "answer_in_documents": [[True, False], [False, False]],  # of the answer, a flag for each document
# | }
#
# or the same in `labels["claims"]`, where one answer only was checked. Each metric needs its own entries; a
# sample without them is skipped. True means entailed: a contradiction and no opinion are both false.


class ClaimMetric(SampleMetric):
    """A metric of checked claims; `needs` names the entries, `score` gives them to `of_claims`."""

    base: str
    needs: tuple[str, ...]
    target = TargetCategory.GENERATION_CORRECTNESS
    oracle = "RAGChecker, worked example"

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        claims = output.extra.get("claims") or sample.labels.get("claims")
        if claims is None:
            return skip("neither the output nor the labels have checked claims")
        if not isinstance(claims, dict):
            raise ScoringError(f"the claims must be lists by name, not {claims!r:.80}")
        for name in self.needs:
            if claims.get(name) is None:
                return skip(f"the claims have no {name}")
        return self.of_claims(*(_flags(name, claims[name]) for name in self.needs))

    def of_claims(self, *flags: list[bool]) -> float | SampleScore:
        """Return the score from whether each claim is supported, a list for each entry."""
        raise NotImplementedError


@metric("claim_precision")
class ClaimPrecision(ClaimMetric):
    """Share of the answer's claims that the reference supports: low when the answer says wrong things.

    Claims of the answer that the reference entails / claims of the answer. It needs checked claims
    (`answer_in_reference`, see `auepora_eval.metrics.answers.grounding`). An answer without claims is
    skipped.
    """

    needs = ("answer_in_reference",)

    def of_claims(self, *flags: list[bool]) -> float | SampleScore:
        return _share(flags[0], "the answer makes no claims")


@metric("claim_recall")
class ClaimRecall(ClaimMetric):
    """Share of the reference's claims that the answer makes: low when the answer leaves things out.

    Claims of the reference that the answer entails / claims of the reference. It needs checked claims
    (`reference_in_answer`). RAGChecker calls this recall; its "claim recall" is about the documents.
    """

    needs = ("reference_in_answer",)

    def of_claims(self, *flags: list[bool]) -> float | SampleScore:
        return _share(flags[0], "the reference makes no claims")


@metric("claim_f1")
class ClaimF1(ClaimMetric):
    """Harmonic mean of claim_precision and claim_recall, by answer.

    2PR / (P + R), 0 where both are; the mean over answers, as in RAGChecker, not the F1 of the means. It
    needs checked claims (`answer_in_reference`, `reference_in_answer`).
    """

    needs = ("answer_in_reference", "reference_in_answer")

    def of_claims(self, *flags: list[bool]) -> float | SampleScore:
        of_answer, of_reference = flags
        if not of_reference:
            return skip("the reference makes no claims")
        # Precision and recall are both 0, and their harmonic mean has no value.
        if not any(of_answer) or not any(of_reference):
            return 0.0
        precision, recall = sum(of_answer) / len(of_answer), sum(of_reference) / len(of_reference)
        return 2 * precision * recall / (precision + recall)


@metric("claim_faithfulness")
class ClaimFaithfulness(ClaimMetric):
    """Share of the answer's claims that at least one retrieved document supports.

    Claims of the answer that some document entails / claims of the answer, whether they are right or not. It
    needs checked claims (`answer_in_documents`) and agrees with people as far as whoever checked them does:
    publish that agreement beside the value. Support by several documents together does not count.
    """

    needs = ("answer_in_documents",)
    target = TargetCategory.GENERATION_FAITHFULNESS

    def of_claims(self, *flags: list[bool]) -> float | SampleScore:
        return _share(flags[0], "the answer makes no claims")


def _flags(name: str, listed: Any) -> list[bool]:
    """Return a flag for each claim; of several documents, one is enough."""
    if isinstance(listed, list | tuple):
        if name == "answer_in_documents":
            rows = [row for row in listed if isinstance(row, list | tuple)]
            if len(rows) == len(listed) and all(isinstance(flag, bool) for row in rows for flag in row):
                return [any(row) for row in rows]
        elif all(isinstance(flag, bool) for flag in listed):
            return list(listed)
    kind = "lists of true or false" if name == "answer_in_documents" else "true or false"
    raise ScoringError(f"{name} must be a list of {kind}, not {listed!r:.80}")


def _share(flags: list[bool], reason: str) -> float | SampleScore:
    return sum(flags) / len(flags) if flags else skip(reason)
