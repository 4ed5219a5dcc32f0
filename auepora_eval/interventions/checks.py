"""Questions that may be at fault: the metric cannot recognise the reference, the gold does not hold it, or
several systems answer something else."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import combinations
from typing import NamedTuple

from ..core.matching import source_of
from ..core.metrics_base import SampleMetric
from ..core.scores import Batch, is_unanswerable
from ..core.types import (
    Document,
    EvaluationRun,
    EvaluationSample,
    Response,
    SampleScore,
    SystemOutputs,
    gold_documents,
)
from ..errors import ScoringError
from ..metrics.robustness.counterfactual import holds_answer
from ..metrics.robustness.rejection import HALF
from ..text.content_words import content_words
from ..text.refusal import declines
from ..text.tokens import words
from .documents import NOTHING, Case, Corpus

_LONG = 4  # content words: a longer reference is a sentence, which nobody repeats word by word
_NOBODY = "none of"
_METRIC = "does not recognise its reference, or accepts wrong answers"
_ALIKE = 0.6  # of the words of two answers: they say the same
_YES_NO = re.compile(r"(yes|no)\b", re.IGNORECASE)
_FIGURE = re.compile(r"\d[\d,]*(?:\.\d+)?")
# Questions whose answer may be computed from two numbers of the text.
_COMPUTES = re.compile(
    r"\b(?:total|combined|together|all|difference|more|less|fewer|\w+er than|by how|would|if|rais\w+|drop\w*"
    r"|increas\w+|develop\w*|how much|how many)\b",
    re.IGNORECASE,
)


def metric_can_tell(case: Case, metric: SampleMetric) -> bool:
    """Return whether the metric passes a test of its own: answers whose value is known.

    It must give 1 to the reference, 0 to a refusal and 0 to the opposite of yes or no. A long reference must
    be in the gold as it is, or no answer from the gold could repeat it.
    """
    reference = case.sample.reference_answer
    text = reference.text if reference else ""
    if not _is_right(case, metric, text) or _is_right(case, metric, "I don't know."):
        return False
    said = _YES_NO.match(text.strip())
    if said:
        other = "No, that is not the case." if said[1].lower() == "yes" else "Yes, that is the case."
        if _is_right(case, metric, other):
            return False
    is_long = all(len(content_words(form)) > _LONG for group in case.answers for form in group)
    return not is_long or holds_answer(case.gold_text, case.answers)


def _is_right(case: Case, metric: SampleMetric, answer: str) -> bool:
    try:
        score = metric.score(case.sample, SystemOutputs([], Response(answer)))
    except ScoringError:
        return False
    value = score.value if isinstance(score, SampleScore) else score
    return value is not None and value >= HALF


def is_stated(case: Case) -> bool:
    """Return whether the gold holds the reference: as it is, all its words, or two numbers that give it."""
    text = case.gold_text
    known = set(words(text, stemmed=True))
    for group in case.answers:
        if holds_answer(text, [group]):
            continue
        terms = (words(" ".join(content_words(form)), stemmed=True) for form in group)
        if any(len(some) > 1 and known.issuperset(some) for some in terms):
            continue
        if not (_COMPUTES.search(case.sample.query) and _is_computed(group, text)):
            return False
    return True


def _is_computed(group: list[str], text: str) -> bool:
    figures = sorted({size for size in map(size_of, _FIGURE.findall(text)) if size is not None})
    results = {
        round(value, 6)
        for n, one in enumerate(figures)
        for other in figures[n + 1 :]
        for value in (one + other, other - one, one * other)
    }
    return any(size_of(form) in results for form in group)


def size_of(value: str) -> float | None:
    """Return the first number of a text; None if there is none."""
    found = _FIGURE.search(value)
    return float(found[0].replace(",", "")) if found else None


class Suspect(NamedTuple):
    """A question with the reasons to doubt it; more of them weigh more."""

    sample_id: str
    reasons: tuple[str, ...]

    @property
    def is_hard(self) -> bool:
        """Whether all that is known is that nobody is right."""
        return len(self.reasons) == 1 and self.reasons[0].startswith(_NOBODY)


def suspects(
    samples: Sequence[EvaluationSample],
    runs: Sequence[EvaluationRun],
    metric: SampleMetric,
    corpus: Sequence[Document] = (),
) -> list[Suspect]:
    """Return the questions that may be at fault, those with the most reasons first."""
    known = Corpus(corpus, samples)
    texts, sources = {doc.doc_id: doc.text for doc in corpus}, set(map(source_of, corpus))
    outputs = [dict(zip((one.sample_id for one in run.samples), run.outputs, strict=True)) for run in runs]
    right = [_right(run, metric) for run in runs]
    # Weak systems share their errors. One that is strong is right on half of the other questions.
    strong = {n for n, side in enumerate(right) if sum(side.values()) >= HALF * (len(side) - 1)}
    found = []
    for sample in samples:
        if is_unanswerable(sample) or sample.reference_answer is None:
            continue
        asked = [n for n, side in enumerate(right) if sample.sample_id in side]
        wrong = [n for n in asked if not right[n][sample.sample_id]]
        answers = [outputs[n][sample.sample_id] for n in wrong if n in strong]
        reasons = [
            *_of_the_sample(Case(sample, NOTHING, known), metric),
            *_stale(sample, texts, sources),
        ]
        if asked and len(wrong) == len(asked):
            reasons.append(f"{_NOBODY} {len(asked)} systems is right")
        if _agree(answers):
            reasons.append("strong systems agree on another answer")
        # That one system is wrong says nothing about a question; that several are, may as well be a hard one.
        if len(reasons) > (len(wrong) == len(asked) == 1):
            found.append(Suspect(sample.sample_id, tuple(reasons)))
    # A metric that fails, and that nobody is right alone, are the least: the question itself may be sound.
    return sorted(found, key=lambda one: (one.is_hard, _METRIC in one.reasons[0], -len(one.reasons)))


def _right(run: EvaluationRun, metric: SampleMetric) -> dict[str, bool]:
    scores = metric.score_batch(Batch(run.samples, run.outputs))
    pairs = zip(scores.sample_ids, scores.values, strict=True)
    return {name: bool(value >= HALF) for name, value in pairs if value == value}


def _of_the_sample(case: Case, metric: SampleMetric) -> Iterator[str]:
    if not case.gold:
        return
    if not metric_can_tell(case, metric):  # often a long reference, which no gold holds word by word
        yield f"{metric.name} {_METRIC}"
    elif not is_stated(case):
        yield "its gold does not hold the reference"


def _stale(sample: EvaluationSample, texts: Mapping[str, str], sources: Container[str]) -> Iterator[str]:
    """Yield the gold documents and the source that the corpus no longer has, or has with another text."""
    if not texts:
        return
    for doc in gold_documents(sample):
        now = " ".join(texts.get(doc.doc_id, "").split())
        if doc.doc_id not in texts and source_of(doc) not in sources:
            yield f"{doc.doc_id} is no longer in the corpus"
        elif now and doc.text and " ".join(doc.text.split()) not in now:
            yield f"the text of {doc.doc_id} has changed since"
    # A generated question has the hash of the document that its spans are in.
    source, digest = str(sample.metadata.get("document")), sample.metadata.get("source_sha256")
    if digest and source not in texts:
        yield f"the source {source} is no longer in the corpus"
    elif digest and sha256(texts[source].encode()).hexdigest() != digest:
        yield f"the source {source} has changed since"


def _agree(answers: Sequence[SystemOutputs]) -> bool:
    given = [set(words(one.response.text)) for one in answers if not declines(one.response)]
    pairs = combinations([one for one in given if one], 2)
    return any(2 * len(a & b) / (len(a) + len(b)) >= _ALIKE for a, b in pairs)
