"""Which of two runs has the better answers? A judge is asked about each pair twice, in both orders.

A win must survive the swap: where the judge prefers another answer once the two have changed places, it is a
tie. How often that happens (the flip rate), and how often the longer answer wins, say how far to trust it.

    found = preference(baseline, candidate, asking)
    comparison = compare_runs(*found.added_to(baseline, candidate))

A comparison then tests `judged_preference` as it tests any metric: 1 for a win, 0.5 for a tie, 0 for a loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...core.metrics_base import skip
from ...core.scores import Batch, Scores
from ...core.types import (
    EvaluationRun,
    EvaluationSample,
    MetricResult,
    SampleScore,
    SystemOutputs,
    TargetCategory,
)
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
        verdicts = self.answers_to(
            question_about("preference", query, {name: (text, query) for name, text in order.items()})
            for order in orders
        )
        labels = ["" if verdict.failed else verdict.label for verdict in verdicts]
        labels[1] = _SWAPPED.get(labels[1], "")  # as if ours had been the first one
        if "" in labels:
            if "tie" in labels:  # whatever the other verdict was, nothing has survived the swap
                return _scored(_TIE)
            raise ScoringError(next(f"a verdict failed: {v.failed:.200}" for v in verdicts if v.failed))
        if labels[0] != labels[1] or labels[0] == "tie":
            return _scored(_TIE, 1, labels[0] != labels[1])
        score, longer = _WIN if labels[0] == "first" else _LOSS, len(ours) - len(theirs)
        return _scored(score, 1, 0, longer != 0, longer != 0 and (score == _WIN) == (longer > 0))


def _scored(score: float, *parts: float) -> SampleScore:
    return SampleScore(score, parts=tuple(map(float, (*parts, 0, 0, 0, 0)[:4])))


@dataclass(frozen=True)
class Preference:
    """Two runs as a judge prefers them. Wins, ties and losses are those of the second run.

    `asked` counts the pairs that the judge was asked about and answered, `flipped` those among them whose
    verdict changed with the order. Of the `decided` ones with answers of unequal length, the longer answer
    won `longer_won`.
    """

    results: tuple[MetricResult, MetricResult]
    wins: int
    ties: int
    losses: int
    failed: int
    asked: int
    flipped: int
    decided: int
    longer_won: int

    def added_to(self, first: EvaluationRun, second: EvaluationRun) -> tuple[EvaluationRun, EvaluationRun]:
        """Return the two runs with the preference among their results, to be compared."""
        a, b = (
            replace(run, results=[*run.results, result])
            for run, result in zip((first, second), self.results, strict=True)
        )
        return a, b

    def notes(self) -> list[str]:
        """Return what a reader has to know beside the values."""
        notes = []
        if self.asked:
            notes.append(
                f"judged_preference: flip rate {self.flipped / self.asked:.2f}. The verdict on "
                f"{self.flipped} of {self.asked} pairs changed with the order of the answers: these count as "
                "ties."
            )
        if self.decided:
            notes.append(
                f"judged_preference: the longer answer won {self.longer_won} of {self.decided} decided pairs "
                f"({self.longer_won / self.decided:.0%})."
            )
        return notes


def preference(first: EvaluationRun, second: EvaluationRun, asking: Asking) -> Preference:
    """Ask a judge which answers of two runs are better, each pair in both orders."""
    firsts = dict(zip((sample.sample_id for sample in first.samples), first.outputs, strict=True))
    metric = Preferred(firsts).judged_by(asking)
    scores = metric.score_batch(Batch(second.samples, second.outputs))
    mirrored = Scores(scores.sample_ids, 1 - scores.values, notes=scores.notes)
    # A failed sample is between 0 and 1, and so is its mirror image: the bounds stay as they are.
    mirrored.clusters, mirrored.if_failed = scores.clusters, scores.if_failed
    rows = scores.rows()
    values, counts = rows[:, 0].tolist(), rows[:, 1:].sum(axis=0).astype(int).tolist()
    asked, flipped, decided, longer_won = counts or [0] * 4
    return Preference(
        results=(metric.summarise(mirrored), metric.summarise(scores)),
        wins=values.count(_WIN),
        ties=values.count(_TIE),
        losses=values.count(_LOSS),
        failed=scores.coverage().failed,
        asked=asked,
        flipped=flipped,
        decided=decided,
        longer_won=longer_won,
    )
