"""Which of two runs has the better answers? A judge is asked about each pair twice, in both orders.

A win must survive the swap: where the judge prefers another answer once the two have changed places, it is a
tie. How often that happens (the flip rate), and how often the longer answer wins, say how far to trust it.

    baseline, candidate, notes = with_preference(baseline, candidate, asking)
    comparison = compare_runs(baseline, candidate)

A comparison then tests `judged_preference` as it tests any metric: 1 for a win, 0.5 for a tie, 0 for a loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...core.metrics_base import skip
from ...core.scores import Batch, Scores
from ...core.types import EvaluationRun, EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...errors import ScoringError
from ..ask import Asking
from ..metric import JudgedMetric
from ..texts import question_about

_WIN, _TIE, _LOSS = 1.0, 0.5, 0.0
_SWAPPED = {"first": "second", "second": "first", "tie": "tie"}


class Preferred(JudgedMetric):
    """Whether a judge prefers the answers of a run to those of another run.

    It needs the outputs of the other run, so it has no name that could be given to --metrics. The parts of a
    score are whether both orders were answered, whether the verdict changed with them, whether one of two
    answers of unequal length won, and whether that was the longer one.
    """

    name = "judged_preference"
    target = TargetCategory.GENERATION_CORRECTNESS
    kinds = ("preference",)
    scores_failures = True  # an answer that failed loses against one that did not

    def __init__(self, others: Mapping[str, SystemOutputs]) -> None:
        self.others = others

    def judged(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        other = self.others.get(sample.sample_id)
        if other is None:
            return skip("the other run does not have the sample")
        if output.error is not None or other.error is not None:
            if output.error is not None and other.error is not None:
                raise ScoringError("both runs failed on the sample")
            # Decided without the judge: no system gains by crashing.
            return _scored(_LOSS if output.error is not None else _WIN)
        ours, theirs = output.response.text.strip(), other.response.text.strip()
        # No call: on equal answers a judge can only show its preference for a position.
        if ours == theirs:
            return _scored(_TIE)
        query = sample.query
        orders = ({"first": ours, "second": theirs}, {"first": theirs, "second": ours})
        verdicts = self.ask_all(
            question_about("preference", query, {name: (text, query) for name, text in order.items()})
            for order in orders
        )
        # The second one as if ours had been shown first.
        label, again = verdicts[0].label, _SWAPPED[verdicts[1].label]
        if label != again or label == "tie":
            return _scored(_TIE, 1, label != again)
        score, longer = _WIN if label == "first" else _LOSS, len(ours) - len(theirs)
        return _scored(score, 1, 0, longer != 0, longer != 0 and (score == _WIN) == (longer > 0))


def _scored(score: float, *parts: float) -> SampleScore:
    return SampleScore(score, parts=tuple(map(float, (*parts, 0, 0, 0, 0)[:4])))


def with_preference(
    first: EvaluationRun, second: EvaluationRun, asking: Asking
) -> tuple[EvaluationRun, EvaluationRun, list[str]]:
    """Ask a judge which answers of two runs are better, each pair in both orders.

    Return the runs with the preference among their results, and what a reader has to know beside the values.
    """
    firsts = dict(zip((sample.sample_id for sample in first.samples), first.outputs, strict=True))
    metric = Preferred(firsts).judged_by(asking)
    scores = metric.score_batch(Batch(second.samples, second.outputs))
    mirrored = Scores(scores.sample_ids, 1 - scores.values, notes=scores.notes)
    # A failed sample is between 0 and 1, and so is its mirror image: the bounds stay as they are.
    mirrored.clusters, mirrored.if_failed = scores.clusters, scores.if_failed
    a, b = (
        replace(run, results=[*run.results, metric.summarise(each)])
        for run, each in ((first, mirrored), (second, scores))
    )
    asked, flipped, decided, longer = scores.rows()[:, 1:].sum(axis=0).astype(int).tolist() or [0] * 4
    notes = []
    if asked:
        notes.append(
            f"judged_preference: flip rate {flipped / asked:.2f}. The verdict on {flipped} of {asked} pairs "
            "changed with the order of the answers: these count as ties."
        )
    if decided:
        notes.append(
            f"judged_preference: the longer answer won {longer} of {decided} decided pairs "
            f"({longer / decided:.0%})."
        )
    return a, b, notes
