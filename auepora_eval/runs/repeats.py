"""Several runs of one system: how much of its score is luck of the draw, and one run made of them all.

The answers to one question are not independent: in the pooled run each question is a cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import stdev
from typing import TYPE_CHECKING

from ..core.metrics_base import SampleMetric
from ..core.scores import Scores, as_columns
from ..core.types import EvaluationRun, EvaluationSample, MetricResult
from ..errors import PlanError
from ..stats.intervals import Interval
from ..stats.significance import PairedTest
from ..stats.unpaired import welch_difference
from .paired_tests import Tested, is_of_time
from .pairing import Pairing, metric_of

if TYPE_CHECKING:
    from ..core.scores import Rows

ONE_RUN_EACH = (
    "one run each cannot tell about times, which move with the machine from run to run: run both several "
    "times and compare A1,A2,A3 B1,B2,B3"
)


@dataclass(frozen=True)
class RunToRun:
    """A metric's value in each repeat of the two systems, and the standard deviation of these values."""

    baseline: tuple[float, ...]
    candidate: tuple[float, ...]

    @property
    def baseline_sd(self) -> float | None:
        return _spread(self.baseline)

    @property
    def candidate_sd(self) -> float | None:
        return _spread(self.candidate)


def run_to_run(
    baselines: Sequence[EvaluationRun], candidates: Sequence[EvaluationRun]
) -> dict[str, RunToRun]:
    """What the repeats of either system scored, by metric; nothing where there are none.

    Failed answers count as they do in the comparison of one repeat with the other system's.
    """
    if len(baselines) == len(candidates) == 1 or len(baselines) != len(candidates):
        return {}
    runs = [*baselines, *candidates]
    samples = {sample.sample_id: sample for run in runs for sample in run.samples}
    tables = [_by_name(run) for run in runs]
    found = {}
    for name in tables[0]:
        if all(name in table for table in tables):
            pairs = zip(tables[: len(baselines)], tables[len(baselines) :], strict=True)
            values = [_values(samples, a[name], b[name]) for a, b in pairs]
            found[name] = RunToRun(tuple(a for a, _ in values), tuple(b for _, b in values))
    return found


def pooled(
    baselines: Sequence[EvaluationRun], candidates: Sequence[EvaluationRun]
) -> tuple[EvaluationRun, EvaluationRun]:
    """One run of all repeats on either side: the first with the first, the second with the second, ..."""
    if len(baselines) != len(candidates):
        counts = f"{len(baselines)} and {len(candidates)}"
        raise PlanError(f"the systems were run {counts} times. Give equally many repeats of both.")
    for runs in (baselines, candidates):
        ids = [run.evaluation_id for run in runs]
        twice = next((name for name in ids if ids.count(name) > 1), None)
        if twice is not None:
            raise PlanError(f"{twice} is named twice as a repeat of itself. Name different runs.")
    return _pooled(baselines), _pooled(candidates)


def times_by_run(
    tested: Sequence[Tested], baselines: Sequence[EvaluationRun], candidates: Sequence[EvaluationRun]
) -> list[Tested]:
    """The tests with those of times made anew: all samples of a run share the state of the machine.

    So the run is what is counted, and not the sample: Welch's test on the values of the repeats. With one run
    each nothing can be told.
    """
    return [_by_run(one, baselines, candidates) if is_of_time(one.pairing.known) else one for one in tested]


def _by_run(
    tested: Tested, baselines: Sequence[EvaluationRun], candidates: Sequence[EvaluationRun]
) -> Tested:
    if len(baselines) < 2:
        return replace(tested, interval=None, error=math.nan, untold=ONE_RUN_EACH)
    name = tested.pairing.a.name
    values: tuple[list[float], list[float]] = ([], [])
    for a, b in zip(baselines, candidates, strict=True):
        found = _values({}, _by_name(a)[name], _by_name(b)[name])
        # A call that failed has no time: its pair is left out on both sides.
        if not any(map(math.isnan, found)):
            for side, value in zip(values, found, strict=True):
                side.append(value)
    welch = welch_difference(*values)
    if math.isnan(welch.p_value):
        return replace(tested, interval=None, error=math.nan, untold="fewer than two runs have times")
    a_mean, b_mean = (sum(side) / len(side) for side in values)
    method = f"{welch.method}, {len(values[0])} runs each"
    return replace(
        tested,
        value_a=a_mean,
        value_b=b_mean,
        interval=Interval(welch.low, welch.high, method),
        test=PairedTest(welch.p_value, welch.difference, method),
        error=welch.error,
        freedom=welch.freedom,
    )


def within_question_variance(runs: Sequence[EvaluationRun], name: str) -> float:
    """How much one system's scores vary from run to run on the same question, on average; NaN if unknown."""
    import numpy as np

    tables = []
    for run in runs:
        scores = as_columns(_by_name(run)[name].scores)
        tables.append(dict(zip(scores.sample_ids, scores.values.tolist(), strict=True)))
    shared = [key for key in tables[0] if all(math.isfinite(table.get(key, math.nan)) for table in tables)]
    if len(runs) < 2 or not shared:
        return math.nan
    scored = np.array([[table[key] for table in tables] for key in shared])
    return float(scored.var(axis=1, ddof=1).mean())


def each_repeated(samples: Iterable[EvaluationSample], times: int) -> Iterator[EvaluationSample]:
    """The samples as a pooled run names them, once for each repeat."""
    for sample in samples:
        yield sample
        for number in range(1, times):
            yield from _renamed([sample], number)


def _pooled(runs: Sequence[EvaluationRun]) -> EvaluationRun:
    if len(runs) == 1:
        return runs[0]
    names = [result.name for result in runs[0].results]
    shared = [name for name in names if all(name in _by_name(run) for run in runs)]
    samples = [sample for number, run in enumerate(runs) for sample in _renamed(run.samples, number)]
    by_id = {sample.sample_id: sample for sample in samples}
    return replace(
        runs[0],
        evaluation_id=", ".join(run.evaluation_id for run in runs),
        results=[_pooled_result([_by_name(run)[name] for run in runs], by_id) for name in shared],
        samples=samples,
        outputs=[],
    )


def _if_failed(
    metric: SampleMetric, scores: Scores, samples: Mapping[str, EvaluationSample]
) -> tuple[Rows, Rows] | None:
    """What the failed answers could have scored, at the least and at the most; None if that is not known."""
    failed = [scores.sample_ids[place] for place, note in scores.notes.items() if note.failed]
    if not failed or any(name not in samples for name in failed):
        return None
    low, high = (
        Scores.of(metric.score_if_failed(samples[name], high=best) for name in failed).rows()
        for best in (False, True)
    )
    return low, high


def _pooled_result(results: Sequence[MetricResult], samples: Mapping[str, EvaluationSample]) -> MetricResult:
    signatures = [result.details.get("signature") for result in results]
    if any(signature != signatures[0] for signature in signatures):
        what = f"{results[0].name} was not computed alike in the repeats: {signatures}"
        raise PlanError(f"{what}. Score them again alike.")
    pieces = []
    for number, result in enumerate(results):
        scores = as_columns(result.scores)
        piece = Scores(
            [_name(sample_id, number) for sample_id in scores.sample_ids],
            scores.values,
            parts=scores.parts,
            notes=scores.notes,
        )
        piece.clusters = list(scores.clusters) if scores.clusters is not None else list(scores.sample_ids)
        pieces.append(piece)
    failed = sum(result.details.get("num_failed", 0) for result in results)
    whole = Scores.joined(pieces)
    metric, value, bounds = metric_of(results[0]), math.nan, None
    if metric is not None and whole.coverage()["num_samples"]:
        # What the first repeat's failures could have been says nothing of all of them.
        whole.if_failed = _if_failed(metric, whole, samples)
        value, bounds = float(metric.aggregate(whole.rows())), metric.bounds_if_failed(whole)
    details = {**results[0].details, "num_failed": failed, "bounds_if_failed": bounds}
    return replace(results[0], value=value, details=details, scores=whole)


def _renamed(samples: Sequence[EvaluationSample], number: int) -> list[EvaluationSample]:
    return [replace(sample, sample_id=_name(sample.sample_id, number)) for sample in samples]


def single_id(pooled_id: str, number: int) -> str | None:
    """What a sample of the pooled run is called in a repeat, counted from 0; None if it is of another."""
    mark = _name("", number)
    return pooled_id.removesuffix(mark) if pooled_id.endswith(mark) else None


def question_of(pooled_id: str, repeats: int) -> str:
    """The sample that a sample of the pooled run is a repeat of."""
    found = (single_id(pooled_id, number) for number in range(1, repeats))
    return next((single for single in found if single is not None), pooled_id)


def _name(sample_id: str, number: int) -> str:
    return sample_id if number == 0 else f"{sample_id} (repeat {number + 1})"


def _by_name(run: EvaluationRun) -> Mapping[str, MetricResult]:
    return {result.name: result for result in run.results}


def _values(samples: Mapping[str, EvaluationSample], a: MetricResult, b: MetricResult) -> tuple[float, float]:
    """The values of one repeat of both on the samples that are compared."""
    pairing = Pairing(samples, a, b)
    if pairing.metric is None:  # nothing is compared then, but the values are known
        return a.value, b.value
    if not pairing.scored:
        return math.nan, math.nan
    rows_a, rows_b, _ = pairing.used()
    return float(pairing.known.aggregate(rows_a)), float(pairing.known.aggregate(rows_b))


def _spread(values: Sequence[float]) -> float | None:
    return stdev(values) if len(values) >= 2 and all(map(math.isfinite, values)) else None
