"""How varied a system's answers are: within each answer, and from one answer to the next.

All of these move with the length of the answers: compare systems at similar lengths.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.metrics_base import BatchMetric, SampleMetric, metric, skip
from ...core.scores import Batch, Rows, Scores
from ...core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...text.ngrams import ngrams
from ...text.tokens import tokens_13a, words
from .translation import bleu, most_ngrams, statistics

REFERENCES = 101  # the answers that self_bleu compares each answer with, at most


@metric("distinct_n@{n?}")
class DistinctN(SampleMetric):
    """How little an answer repeats itself: share of its n-grams that are different ones.

    Different n-grams / n-grams of an answer, in words; the mean over the answers. Answers shorter than n
    words are skipped. Li et al. (2016) take distinct-n over all answers at once: distinct_n_corpus.
    """

    n: int = 2
    target = TargetCategory.DIVERSITY

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        grams = ngrams(words(output.response.text), self.n)
        return len(grams) / grams.total() if grams else skip(_too_short(self.n))


@metric("distinct_n_corpus@{n?}")
class DistinctNCorpus(BatchMetric):
    """How little a system's answers repeat each other: share of all their n-grams that are different ones.

    Different n-grams of all answers / n-grams of all answers (distinct-n, Li et al. 2016). It falls as
    answers are added: compare on the same questions only. Each n-gram is shared out among the answers that
    have it, which gives an answer its own value; the interval takes these shares as fixed.
    """

    listed = False
    n: int = 2
    target = TargetCategory.DIVERSITY
    whole_batch = True
    of_sums = True

    def score_all(self, batch: Batch) -> Scores:
        unscorable = self.unscorable(batch)
        answers = [
            ngrams([] if place in unscorable else words(output.response.text), self.n)
            for place, output in enumerate(batch.outputs)
        ]
        everywhere: Counter[Any] = Counter()
        for grams in answers:
            everywhere.update(grams)
        scores = []
        for grams in answers:
            own, total = sum(times / everywhere[gram] for gram, times in grams.items()), grams.total()
            scores.append(SampleScore(own / total, parts=(own, total)) if total else skip(_too_short(self.n)))
        return Scores.of(scores)

    def aggregate(self, rows: Rows) -> Rows:
        own, total = rows[..., 1].sum(axis=-1), rows[..., 2].sum(axis=-1)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(np.isinf(own), 1.0, own / total))

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        # An answer without end, of nothing new or of new things only.
        return SampleScore(float(high), parts=(float("inf") if high else 0.0, float("inf")))

    def counted_if_failed(self, sample: EvaluationSample, usual: Sequence[float]) -> SampleScore:
        if len(usual) < 2:
            return self.score_if_failed(sample, high=False)
        return SampleScore(0.0, parts=(0.0, usual[1]))  # as long as usual, and nothing in it is new


@metric("self_bleu")
class SelfBleu(BatchMetric):
    """How alike a system's answers are: the mean BLEU of each answer against the others (lower is better).

    0 to 100: sentence BLEU as sacrebleu computes it, with the other answers as references. With more than 101
    answers the references are the same 101 for all (without the answer itself), chosen by a hash of sample
    id and text, so that no order of the samples changes them. More references mean higher values: compare
    at equal numbers of samples. Tools that take NLTK's BLEU print 0 to 1, with another smoothing. The
    interval does not know that answers compared with each other are not independent, nor do the bounds know
    what a failed answer would have done to the others.
    """

    listed = False
    target = TargetCategory.DIVERSITY
    higher_is_better = False
    bounds = (0.0, 100.0)
    whole_batch = True
    scored_by_others = True
    oracle = "sacrebleu 2.6 sentence_bleu"

    def score_all(self, batch: Batch) -> Scores:
        unscorable = self.unscorable(batch)
        answers = [
            () if place in unscorable else tokens_13a(output.response.text.rstrip())
            for place, output in enumerate(batch.outputs)
        ]
        pool = _pool(batch, [place for place, tokens in enumerate(answers) if tokens])
        if len(pool) < 2:
            return Scores.of(skip("there is no other answer") for _ in answers)
        most = most_ngrams(answers[place] for place in pool)
        scores = []
        for place, tokens in enumerate(answers):
            if not tokens:
                scores.append(skip("the answer is empty"))
                continue
            # An answer that is a reference itself is compared with the others.
            others = [answers[other] for other in pool if other != place]
            allowed = most if len(others) == len(pool) else most_ngrams(others)
            parts = statistics(tokens, allowed, map(len, others))
            score = float(bleu(np.array(parts), effective_order=True))
            scores.append(SampleScore(min(100.0, score)))  # rounding may put it a hair above
        return Scores.of(scores)

    def signature(self) -> Mapping[str, object]:
        return {"signature": "case:mixed|eff:yes|tok:13a|smooth:exp", "references": f"at most {REFERENCES}"}


def _pool(batch: Batch, places: Sequence[int]) -> list[int]:
    """Return the places of the answers that serve as references."""

    def key(place: int) -> bytes:
        text = f"{batch.samples[place].sample_id}\0{batch.outputs[place].response.text}"
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    return list(places) if len(places) <= REFERENCES else sorted(places, key=key)[:REFERENCES]


def _too_short(n: int) -> str:
    return f"the answer is shorter than {n} words" if n > 1 else "the answer is empty"
