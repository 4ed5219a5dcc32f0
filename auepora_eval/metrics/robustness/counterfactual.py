"""What a system makes of documents that are wrong.

A sample of the scenario "counterfactual" is answered from documents in which the true answer was replaced
by a fake one: `labels.true_answer` and `labels.fake_answer`, each a text or a list of alternatives (a list
of lists: of each inner list one). Answers are searched for them as whole words, as contains_answer does
("1911" is not in "19110", "70" not in "170"). The survey that coined the targets files misleading and mistake
reappearance rates under noise; their authors (RECALL) define them on edited documents, so they are here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.metrics_base import BatchMetric, metric, skip
from ...core.scores import NOT_GIVEN, Batch, Rows, Scores, given_documents, has_field
from ...core.types import (
    DOCUMENTS_GIVEN,
    EvaluationSample,
    SampleScore,
    SystemOutputs,
    TargetCategory,
)
from ...errors import ScoringError
from ...text.refusal import flags_an_error
from ...text.tokens import word_search, words
from .paired_samples import ConditionalRate, OnGivenDocuments, base_questions, scenario

_FAKE = "labels.fake_answer"


class CounterfactualMetric(OnGivenDocuments):
    """A metric of the answers to samples of the scenario "counterfactual"."""

    target = TargetCategory.COUNTERFACTUAL_ROBUSTNESS
    requires = ("labels.true_answer", _FAKE)

    def not_about(self, sample: EvaluationSample, output: SystemOutputs) -> str:
        if scenario(sample) not in ("counterfactual", ""):
            return f"its scenario is {scenario(sample)!r}, not 'counterfactual'"
        if output.error is None and not _met_the_false(sample, output):
            return NOT_GIVEN
        return super().not_about(sample, output)


def _met_the_false(sample: EvaluationSample, output: SystemOutputs) -> bool:
    documents = given_documents(sample)
    if not documents or output.extra.get(DOCUMENTS_GIVEN) is True or not has_field(sample, _FAKE):
        return True
    fake = sample.labels["fake_answer"]
    try:
        false = {doc.doc_id for doc in documents if holds_answer(doc.text, fake)}
    except ScoringError:  # the label is unusable, which the score says
        return True
    found = (hit.doc for hit in output.retrieved)
    return not false or any(doc.doc_id in false or holds_answer(doc.text, fake) for doc in found)


@metric("counterfactual_accuracy")
class CounterfactualAccuracy(CounterfactualMetric):
    """Share of the answers that hold the true answer although the documents say something else.

    Denominator: all counterfactual samples. An answer that names both the true and the fake one counts.
    """

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float:
        return float(holds_answer(output.response.text, sample.labels["true_answer"]))


@metric("fake_adoption_rate")
class FakeAdoptionRate(CounterfactualMetric):
    """Share of the answers that repeat the fake answer of the documents and do not hold the true one.

    Denominator: all counterfactual samples.
    """

    higher_is_better = False

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float:
        text = output.response.text
        adopted = holds_answer(text, sample.labels["fake_answer"])
        return float(adopted and not holds_answer(text, sample.labels["true_answer"]))


@metric("error_detection_rate")
class ErrorDetectionRate(CounterfactualMetric):
    """Share of the answers that say that the documents are wrong (RGB's ED).

    Denominator: all counterfactual samples. An answer says so by a flag of the system's own
    (`structured["factual_error"]`) or by a phrase, in thirteen languages. RGB looks for "factual errors"
    and "事实性错误" alone, which its prompt asks for, and counts "no factual errors" too.
    """

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float:
        return float(flags_an_error(output.response))


@metric("error_correction_rate")
class ErrorCorrectionRate(ConditionalRate, CounterfactualMetric):
    """Share of the answers that give the true answer, among those that call the documents wrong (RGB's CR).

    Denominator: the counterfactual samples whose answer flags an error, often very few: RGB's printed 57.14
    is 4 of 7. Not a number where no answer flags one.
    """

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> SampleScore:
        flagged = flags_an_error(output.response)
        right = holds_answer(output.response.text, sample.labels["true_answer"])
        return SampleScore(float(flagged and right), parts=(float(flagged),))


@metric("misleading_rate")
class MisleadingRate(ConditionalRate, CounterfactualMetric, BatchMetric):
    """Share of what a system knows that wrong documents talk it out of (RECALL's M-Rate).

    wrong with the edited documents and right without / right without, where right means that the true answer
    is in the text. Without is the first of these that the run has: the system's own `extra["closed_book"]`, a
    sample of the scenario "closed_book" with the same `variant_of`, the base question (which has clean
    documents, so that the rate is then one of lost answers).
    """

    higher_is_better = False
    whole_batch = True

    def score_all(self, batch: Batch) -> Scores:
        return self.score_each(batch, self._score_at, ((batch, place) for place in range(len(batch))))

    def _score_at(self, batch: Batch, place: int) -> SampleScore:
        output, truth = batch.outputs[place], batch.samples[place].labels["true_answer"]
        without = output.extra.get("closed_book")
        if not isinstance(without, str):
            other = _without_edits(batch, place)
            if other is None or other == place:
                return skip("there is no answer to its question without the edited documents")
            if (error := batch.outputs[other].error) is not None:
                reason = f"the answer without the edited documents failed: {error.type}"
                return SampleScore(None, reason, failed=True)
            without = batch.outputs[other].response.text
        knew = holds_answer(without, truth)
        misled = knew and not holds_answer(output.response.text, truth)
        return SampleScore(float(misled), parts=(float(knew),))


@metric("mistake_reappearance_rate")
class MistakeReappearanceRate(CounterfactualMetric):
    """Share of the edited words of the documents that come back in the answer (RECALL's R-Rate).

    Σ found / Σ edited. Edited words are those of the fake answer that the true one does not have, repeated
    ones counted, so a long fake answer weighs more; one is found if the answer has it at all. Of several fake
    answers the one that comes back most counts.
    """

    higher_is_better = False
    of_sums = True

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> SampleScore:
        answer_words = set(words(output.response.text))
        fakes = _edited_words(sample)
        if not fakes:
            return skip("every word of the fake answer is in the true one")
        counts = [(sum(word in answer_words for word in edited), len(edited)) for edited in fakes]
        repeated, edited = max(counts, key=lambda count: count[0] / count[1])
        return SampleScore(repeated / edited, parts=(repeated, edited))

    def aggregate(self, rows: Rows) -> Rows:
        with np.errstate(invalid="ignore"):
            return np.asarray(rows[..., 1].sum(axis=-1) / rows[..., 2].sum(axis=-1))

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        try:
            # The longest fake answer: the bounds must hold whichever one would have come back.
            count = max(map(len, _edited_words(sample)), default=0)
        except ScoringError:
            count = 1  # the labels are unusable, and so the length is unknown
        return SampleScore(float(high), parts=(float(high * count), float(count)))


def _edited_words(sample: EvaluationSample) -> list[list[str]]:
    """Return the words of each fake answer that the true one lacks; an answer without any is left out."""
    true_words = {word for text in _texts(sample.labels["true_answer"]) for word in words(text)}
    fakes = [words(text) for text in _texts(sample.labels["fake_answer"])]
    return [edited for fake in fakes if (edited := [word for word in fake if word not in true_words])]


def holds_answer(text: str, label: Any) -> bool:
    """Return whether a text holds an answer: a text, one of a list, or of each list within a list one.

    >>> holds_answer("It opened in 19110.", "1911"), holds_answer("1911年建成", "1911")
    (False, True)
    """
    contains = word_search(text)
    return all(any(map(contains, group)) for group in _groups(label))


def _groups(label: Any) -> list[list[str]]:
    """Return what must be there: of each inner list one."""
    items = label if isinstance(label, list | tuple) else [label]
    # A flat list holds alternatives; a list of lists needs one of each.
    nested = any(isinstance(item, list | tuple) for item in items)
    groups = [item if isinstance(item, list | tuple) else [item] for item in items] if nested else [items]
    if not all(group and all(map(_is_answer, group)) for group in groups):
        raise ScoringError(f"an answer is a text or a list of texts, none empty, not {label!r:.80}")
    return [[str(item) for item in group] for group in groups]


def _is_answer(item: Any) -> bool:
    return isinstance(item, str | int | float) and not isinstance(item, bool) and bool(str(item).strip())


def _texts(label: Any) -> list[str]:
    return [text for group in _groups(label) for text in group]


def _closed_books(batch: Batch) -> dict[str, int]:
    """Return the place of the closed-book variant of each question, by that question's id; for batch.once."""
    return {
        str(sample.labels.get("variant_of")): place
        for place, sample in enumerate(batch.samples)
        if scenario(sample) == "closed_book"
    }


def _without_edits(batch: Batch, place: int) -> int | None:
    """Return the place of the same question without edited documents, if the batch has it."""
    sample, closed_books = batch.samples[place], batch.once(_closed_books)
    other = closed_books.get(str(sample.labels.get("variant_of")), batch.once(base_questions).get(place))
    # The edited sample may itself be the question that the closed-book variant belongs to.
    return closed_books.get(sample.sample_id, other)
