"""How varied a system's answers are.

It moves with the length of the answers: compare systems at similar lengths.
"""

from __future__ import annotations

from ...core.metrics_base import SampleMetric, metric, skip
from ...core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...text.ngrams import ngrams
from ...text.tokens import words


@metric("distinct_n@{n?}")
class DistinctN(SampleMetric):
    """How little an answer repeats itself: share of its n-grams that are different ones.

    Different n-grams / n-grams of an answer, in words; the mean over the answers. Answers shorter than n
    words are skipped. Li et al. (2016) take distinct-n over all answers at once.
    """

    n: int = 2
    target = TargetCategory.DIVERSITY

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        grams = ngrams(words(output.response.text), self.n)
        if not grams:
            return skip(f"the answer is shorter than {self.n} words" if self.n > 1 else "the answer is empty")
        return len(grams) / grams.total()
