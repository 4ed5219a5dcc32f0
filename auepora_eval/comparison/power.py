"""How many samples does it take to see a change, and which changes could a run have missed?

Before a run: from a guess of how much scores vary. After it: from the run's own scores, or, best, from those
of two runs on the same samples. What `alpha` allows is shared by all metrics that are looked at, as in a
comparison; name those that matter.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

from ..core.display import NOT_MEASURED, TOO_FEW, value_text
from ..core.table import Table
from ..core.types import EvaluationRun
from ..errors import PlanError
from ..stats.intervals import clusters_worth
from ..stats.power import (
    POWER,
    Differing,
    cluster_design_effect,
    detectable_change,
    detectable_drop,
    fewest_units,
    minimum_detectable_effect,
    sample_size,
    samples_for_drop,
    sd_of_difference,
    units_needed,
)
from .compare import Runs, listed_runs, pairings_of
from .paired_tests import RESAMPLES, difference_error, differing_units, is_of_time, side_error
from .pairing import Pairing, data_mismatches, pooled, within_question_variance

# Scores of two systems on the same questions correlate by 0.3 to 0.7 (Miller 2024, "Adding error bars to
# evals"); in the middle a difference varies as much as one system's scores do.
CORRELATION = 0.5


@dataclass(frozen=True)
class MetricPower:
    """What can be seen of one metric, where both systems are asked the same samples and where they are not.

    `same_sd` and `other_sd` are standard deviations of the difference of one unit: a cluster of `per_unit`
    samples, or a sample. `differing` has how many units differ where the test counts them. For 0/1 scores
    `other_rate` is the larger share, and `other_design` how many samples are worth one independent sample;
    `reach` is how far apart two values can be, if there is an end to it. `detectable` is the smallest change
    that `samples` show with the power, `needed` how many samples (of each system) the effect takes. None is
    not known, not asked, or that no change, or no number of samples, would do.
    """

    name: str
    unit: str
    same_sd: float | None
    other_sd: float | None
    samples: int | None = None
    per_unit: float = 1.0
    values: tuple[float, ...] = ()
    correlation: float | None = None
    detectable_same: float | None = None
    detectable_other: float | None = None
    needed_same: int | None = None
    needed_other: int | None = None
    differing: Differing | None = None
    reach: float | None = None
    other_rate: float | None = None
    other_design: float = 1.0
    unit_worth: float = 1.0  # of clusters of different size, how many of equal size one stands for

    @property
    def other_is_known(self) -> bool:
        """Whether anything is known of how two systems' scores of other samples differ."""
        return self.other_sd is not None or self.other_rate is not None

    @property
    def is_known(self) -> bool:
        """Whether anything is known of how two systems' scores of the same sample differ."""
        return self.same_sd is not None or self.differing is not None

    @property
    def largest(self) -> float | None:
        """The largest change that there can be; None where there is no end to it, or none known."""
        if self.differing is not None and self.differing.counted:
            return self.differing.largest
        return self.reach


@dataclass(frozen=True)
class PowerReport:
    """What can be seen, metric by metric. `level` is what alpha leaves to each of them."""

    alpha: float
    level: float
    power: float
    metrics: list[MetricPower]
    effect: float | None = None
    runs: tuple[str, ...] = ()
    assumed_correlation: float | None = None
    per_question: int | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def tests(self) -> int:
        """How many metrics share alpha."""
        return round(self.alpha / self.level)

    def detectable(self, metric: MetricPower, samples: float, *, same: bool = True) -> float | None:
        """The smallest change that can be detected; None if nothing is known or there are too few samples."""
        units, reach = samples / metric.per_unit, math.inf if metric.reach is None else metric.reach
        if same:
            # Part of a unit shows nothing. The 1e-6 keeps 59.9999999 of a division from becoming 59.
            whole, sd = math.floor(units + 1e-6), metric.same_sd
            if whole * metric.unit_worth < fewest_units(self.level):
                return None
            return detectable_change(
                whole, sd, metric.differing, alpha=self.level, power=self.power, reach=reach
            )
        if metric.other_rate is not None:
            alone = math.floor(samples / metric.other_design + 1e-6)
            drop = detectable_drop(metric.other_rate, alone, alpha=self.level, power=self.power)
            if drop is None or not self._same_tells_more(metric):
                return drop
            least = self.detectable(metric, samples)
            return None if least is None else max(drop, least)
        if metric.other_sd is None or units < 2:
            return None
        found = minimum_detectable_effect(
            metric.other_sd, units, alpha=self.level, power=self.power, by="t", groups=2
        )
        return found if math.isfinite(found) and found <= reach else None

    def needed(self, metric: MetricPower, effect: float, *, same: bool = True) -> int | None:
        """How many samples show a change of that size; None where no number does, or nothing is known."""
        units: int | None
        if same:
            sd, differing = metric.same_sd, metric.differing
            units = units_needed(effect, sd, differing, alpha=self.level, power=self.power)
        elif metric.other_rate is not None:
            units = samples_for_drop(effect, metric.other_rate, alpha=self.level, power=self.power)
            alone = None if units is None else math.ceil(units * metric.other_design)
            if alone is None or not self._same_tells_more(metric):
                return alone
            least = self.needed(metric, effect)
            return None if least is None else max(alone, least)
        elif metric.other_sd is None:
            return None
        else:
            units = sample_size(effect, metric.other_sd, alpha=self.level, power=self.power, groups=2)
        return None if units is None else math.ceil(units * metric.per_unit)

    def _same_tells_more(self, metric: MetricPower) -> bool:
        """Whether the same samples can only help: scores go together, and how these differ is known.

        The exact test of few pairs is more careful than Welch's; still, no more is promised of other samples.
        """
        together = metric.correlation if metric.correlation is not None else self.assumed_correlation
        return metric.is_known and (together or 0.0) >= 0


def power_from_numbers(
    *,
    effect: float | None = None,
    n: int | None = None,
    sd: float | None = None,
    rate: float | None = None,
    correlation: float = CORRELATION,
    within_sd: float | None = None,
    per_question: int | None = None,
    cluster_size: float = 1.0,
    cluster_correlation: float = 0.0,
    alpha: float = 0.05,
    power: float = POWER,
    name: str = "the score",
) -> PowerReport:
    """How many samples an effect takes, or which effect n samples show, before anything was run.

    `sd` is the standard deviation of the difference between two systems on the same sample; or else `rate` is
    the share of right answers. `within_sd`, the standard deviation of one system's scores on the same
    question, says what `per_question` answers to each would save.

    >>> power_from_numbers(effect=0.2, sd=1.0).metrics[0].needed_same
    199
    """
    _check_levels(alpha, power)
    if (sd is None) == (rate is None):
        raise PlanError("how much do scores vary? Give either their sd, or the rate of right answers.")
    if sd is not None:
        same, other = sd, None
    else:
        same, other = _sd_of_rate(rate or 0.0, effect, correlation)
    design = cluster_design_effect(cluster_size, cluster_correlation)
    alone = other
    if per_question is not None:
        if within_sd is None:
            raise PlanError(_NO_WITHIN)
        # Means of k answers have 1/k of the variance within a question, on each of the two sides.
        less = 2 * within_sd**2 * (1 - 1 / per_question)
        same, other = _with_less(same, less), None if other is None else _with_less(other, less)
    # A cluster's mean varies less than one of its samples, but more than the mean of unrelated ones.
    shrunk = math.sqrt(design / cluster_size)
    metric = MetricPower(name, "", same * shrunk, None, n, cluster_size)
    if rate is not None and alone and other is not None:
        design_other = design * (other / alone) ** 2
        metric = replace(metric, other_rate=max(rate, 1 - rate), other_design=design_other, reach=1.0)
        if per_question in (None, 1):  # as many samples as the clusters are worth, each by itself
            metric = replace(metric, same_sd=same, per_unit=design, differing=_of_rate(rate, correlation))
    assumed = correlation if rate is not None else None
    report = PowerReport(alpha, alpha, power, [metric], effect, (), assumed, per_question)
    return _filled(report)


def power_from_runs(
    run: Runs,
    other: Runs | None = None,
    *,
    effect: float | None = None,
    n: int | None = None,
    correlation: float = CORRELATION,
    per_question: int | None = None,
    alpha: float = 0.05,
    power: float = POWER,
    metrics: Sequence[str] | None = None,
) -> PowerReport:
    """Which changes a run, or a pair of runs, could have seen; how many samples it takes to see an effect.

    One run shows how much its scores vary, and `correlation` is a guess of how much those of another system
    on the same samples would correlate. Two runs show that too. Several runs of a system are repeats: give
    them as a list. Failed answers count as the worst, as in a comparison.
    """
    _check_levels(alpha, power)
    first, second = listed_runs(run), None if other is None else listed_runs(other)
    everything = [*first, *(second or ())]
    data_mismatches(everything, allowed=False)
    # A single run is paired with itself: only the spread of one side is used then.
    a, b = pooled(first, second or first)
    pairings = [
        one
        for one in pairings_of(a, b, [], allow_mismatch=False)[0]
        if metrics is None or one.a.name in metrics
    ]
    _check_known(pairings, metrics, everything[0])
    times = [one.a.name for one in pairings if is_of_time(one.known)]
    pairings = [one for one in pairings if one.a.name not in times]
    if times and not pairings:
        raise PlanError(f"{', '.join(times)}: {_TIMES}.")
    guess = correlation if second is None else None
    found = []
    for pairing in pairings:
        less = 0.0
        if per_question is not None:
            less = _saved(pairing.a.name, first, second or first, per_question)
        one = _metric_power(pairing, guess, less, repeats=len(first))
        found.append(one if n is None else replace(one, samples=n))
    if not any(one.is_known or one.other_is_known for one in found):
        raise PlanError("no metric of the run has two scores that differ: nothing can be said of it.")
    names = tuple(one.evaluation_id for one in everything)
    left_out = [f"{', '.join(times)}: {_TIMES}"] if times else []
    # A comparison tests all of these, whether their samples differ or not; times where there are repeats.
    tests = len(found) + (len(times) if second is not None and len(first) > 1 else 0)
    report = PowerReport(alpha, alpha / tests, power, found, effect, names, guess, per_question)
    report.notes.extend(left_out)
    report.notes.extend(
        f"{one.evaluation_id} stopped early: its spread is that of the samples that were asked"
        for one in everything
        if one.stopping is not None and one.stopping.stopped_early
    )
    return _filled(report)


def _filled(report: PowerReport) -> PowerReport:
    """Return the report with what was asked for: detectable changes, samples needed for an effect."""
    filled = []
    for metric in report.metrics:
        if metric.samples is not None:
            metric = replace(
                metric,
                detectable_same=report.detectable(metric, metric.samples),
                detectable_other=report.detectable(metric, metric.samples, same=False),
            )
        if report.effect is not None:
            metric = replace(
                metric,
                needed_same=report.needed(metric, report.effect),
                needed_other=report.needed(metric, report.effect, same=False),
            )
        filled.append(metric)
    return replace(report, metrics=filled)


def _metric_power(pairing: Pairing, guess: float | None, less: float, *, repeats: int) -> MetricPower:
    """How much the differences of a metric vary; `guess` is the correlation, where there is one run only."""
    rows_a, rows_b, clusters = pairing.used()
    error_a, error_b = (side_error(pairing, rows) for rows in (rows_a, rows_b))
    other = math.hypot(error_a[0], error_b[0])
    value_a, value_b = (float(pairing.known.aggregate(rows)) for rows in (rows_a, rows_b))
    if guess is None:
        same, units = difference_error(pairing)
        # Var(B - A) = Var A + Var B - 2 r sd(A) sd(B), solved for the correlation r.
        spread = error_a[0] * error_b[0]
        known = (other**2 - same**2) / (2 * spread) if spread > 0 else math.nan
        share, differing = 1.0, differing_units(pairing, same, resamples=RESAMPLES)
    else:
        # With equal spread s on both sides, Var(B - A) = 2 s² (1 - r), and `other` is the root of 2 s².
        same, units, known = other * math.sqrt(1 - guess), error_a[1], guess
        share, counted = 1 - guess, pairing.is_mean and pairing.is_binary() and clusters is None
        differing = _of_rate(value_a, guess) if counted else None
    is_share = pairing.is_mean and pairing.is_binary() and not less
    questions = len(rows_a) / repeats
    per_unit = questions / units
    low, high = pairing.known.bounds
    return MetricPower(
        pairing.a.name,
        pairing.known.unit,
        _sd_of_unit(same, units, less * share / per_unit),
        _sd_of_unit(other, units, less / per_unit),
        round(questions),
        per_unit,
        (value_a,) if guess is not None else (value_a, value_b),
        known if math.isfinite(known) else None,
        # With more answers to a question other units would differ, and by less.
        differing=None if less else differing,
        reach=high - low if math.isfinite(high - low) else None,
        other_rate=max(value_a, 1 - value_a) if is_share else None,
        other_design=_design(value_a, error_a[0], questions, per_unit),
        unit_worth=1.0 if clusters is None else clusters_worth(list(Counter(clusters).values())) / units,
    )


def _design(share: float, error: float, questions: float, per_unit: float) -> float:
    """Return how many samples of a run are worth one independent sample."""
    if not error > 0:
        return per_unit
    # The error of the mean of n independent 0/1 scores is the root of p (1 - p) / (n - 1), solved for n.
    return questions / (share * (1 - share) / error**2 + 1)


def _sd_of_unit(error: float, units: int, less: float) -> float | None:
    """The standard deviation of one unit; where none differs it is not known how much others would."""
    # Both are estimates: the part can come out larger than the whole.
    found = math.sqrt(max(0.0, error**2 * units - less)) if math.isfinite(error) else 0.0
    return found or None


def _of_rate(rate: float, correlation: float) -> Differing:
    """How samples differ whose scores are 0 or 1, for the direction that takes more: towards a half."""
    return Differing(counted=True, rate=max(rate, 1 - rate), correlation=correlation)


_TIMES = "for times, more samples do not help, but more runs do: compare repeats of both (A1,A2,A3 B1,B2,B3)"
_NO_WITHIN = (
    "how much do the answers to one question vary? Give several runs of the system as repeats (A1,A2), or "
    "within_sd (--within-sd)."
)


def _saved(name: str, first: Sequence[EvaluationRun], second: Sequence[EvaluationRun], wanted: int) -> float:
    """Return by how much the variance of a question's difference shrinks with repeated answers."""
    if len(first) < 2:
        raise PlanError(_NO_WITHIN)
    within = within_question_variance(first, name) + within_question_variance(second, name)
    # Negative if fewer answers are planned than were measured: the variance then grows.
    return within * (1 / len(first) - 1 / wanted)


def _sd_of_rate(rate: float, effect: float | None, correlation: float) -> tuple[float, float]:
    """The sd of the difference of 0/1 scores, on the same and on other samples, for a rise or a drop."""
    if not 0 < rate < 1:
        raise PlanError(f"a rate of right answers is between 0 and 1, not {rate:g}.")
    change = effect or 0.0
    after = [then for then in (rate - change, rate + change) if 0 < then < 1]
    if not after:
        raise PlanError(f"a rate of {rate:g} cannot change by {change:g}.")
    now = math.sqrt(rate * (1 - rate))
    # Rates nearer to a half vary more: planned is for the direction that takes more samples.
    pairs = [(now, math.sqrt(then * (1 - then))) for then in after]
    same = max(sd_of_difference(*sds, correlation=correlation) for sds in pairs)
    return same, max(sd_of_difference(*sds) for sds in pairs)


def _with_less(sd: float, less: float) -> float:
    if sd**2 < less:
        raise PlanError("the answers to one question cannot vary more than the differences between systems.")
    return math.sqrt(sd**2 - less)


def _check_known(pairings: Sequence[Pairing], metrics: Sequence[str] | None, run: EvaluationRun) -> None:
    found = {pairing.a.name for pairing in pairings}
    for name in metrics or ():
        if name not in found:
            known = ", ".join(result.name for result in run.results)
            raise PlanError(f"{run.evaluation_id} has no scores of {name!r:.60} to go by; it has {known}.")


def _check_levels(alpha: float, power: float) -> None:
    if not 0 < alpha < power < 1:
        raise PlanError(f"alpha and power are between 0 and 1, alpha the smaller: not {alpha:g}, {power:g}.")


# What can be detected, and how many samples it takes, in words and as a table.


_SHOWN = 2  # sentences about metrics; the table has them all
_LEGEND = "Paired: both systems answer the same samples. Unpaired: each answers different samples."


def power_table(report: PowerReport) -> Table:
    """Return a row per metric: what its samples can detect, and how many samples the effect takes."""
    has_samples = any(metric.samples is not None for metric in report.metrics)
    headings = ["Metric"]
    headings += ["Value"] if report.runs else []
    headings += ["Samples", "Detectable (paired)", "Detectable (unpaired)"] if has_samples else []
    headings += ["Needed (paired)", "Needed (unpaired)"] if report.effect is not None else []
    rows = []
    for metric in report.metrics:
        row = [metric.name]
        if report.runs:
            row.append(" → ".join(value_text(value, metric.unit) for value in metric.values))
        if has_samples:
            row.append(_count(metric.samples))
            row.append(_seen(metric.detectable_same, metric, metric.is_known))
            row.append(_seen(metric.detectable_other, metric, metric.other_is_known))
        if report.effect is not None:
            row += [_count(metric.needed_same), _count(metric.needed_other)]
        rows.append(row)
    return Table(headings, rows, numeric=range(1, len(headings)))


def power_in_words(report: PowerReport) -> list[str]:
    """Sentences for whoever decides: what would be noticed, what would go unseen, what it would take."""
    sentences = []
    for metric in report.metrics[:_SHOWN]:
        if report.effect is not None:
            sentences.append(_needed_in_words(report, metric, report.effect))
        elif metric.samples is not None:
            sentences.append(_detectable_in_words(report, metric, metric.samples))
    if len(report.metrics) > _SHOWN:
        sentences.append("The table has the other metrics.")
    sentences.append(_how(report))
    sentences.append(_LEGEND)
    return sentences


def power_to_dict(report: PowerReport) -> dict[str, object]:
    """A report as JSON has it, with the sentences."""
    return {**asdict(report), "in_words": power_in_words(report)}


def _needed_in_words(report: PowerReport, metric: MetricPower, effect: float) -> str:
    change = f"a change of {_size(effect, metric.unit)} in {metric.name}"
    if not metric.is_known:
        return f"No sample differs in {metric.name}, so the number of samples that it takes is unknown."
    if metric.needed_same is None:
        if metric.largest is not None and effect > metric.largest:
            return f"{metric.name} cannot change by {_size(effect, metric.unit)}."
        return f"{change.capitalize()} is too small to detect: it takes more than 10¹² samples."
    words = f"Detecting {change} with {report.power:.0%} power takes {_samples(metric.needed_same)}"
    if metric.needed_other is not None:
        words += f" that both systems answer, or {metric.needed_other:,} different ones each"
    if metric.samples is not None and report.runs:
        less = metric.needed_same <= metric.samples
        words += f". There are {metric.samples:,}{', which is enough' if less else ''}"
    return f"{words}."


def _detectable_in_words(report: PowerReport, metric: MetricPower, samples: int) -> str:
    if not metric.is_known:
        return f"No sample differs in {metric.name}, so the change that they can detect is unknown."
    if metric.detectable_same is None:
        return f"{_samples(samples).capitalize()} are too few to detect any change in {metric.name}."
    least = _size(metric.detectable_same, metric.unit)
    words = (
        f"{_samples(samples).capitalize()} detect a change of {least} in {metric.name} with "
        f"{report.power:.0%} power if both systems answer them"
    )
    if metric.detectable_other is not None:
        words += f", or of {_size(metric.detectable_other, metric.unit)} if each answers different ones"
    return f"{words}. A smaller change may go unnoticed."


def _how(report: PowerReport) -> str:
    words = f"The significance level is {report.alpha:g}."
    if report.tests > 1:
        words = f"The significance level of {report.alpha:g} is shared by {report.tests} metrics, "
        words += f"{report.level:.2g} each: name those that matter (--metric)."
    if report.assumed_correlation is not None:
        words += (
            f" The correlation of the two systems' scores is unknown: {report.assumed_correlation:g} is "
            "assumed (--correlation). A second run would show it."
        )
    if report.per_question is not None:
        words += f" Each question is answered {report.per_question} times by each system."
    return " ".join([words, *(f"{note}." for note in report.notes)])


def _samples(count: int) -> str:
    return f"{count:,} sample{'' if count == 1 else 's'}"


def _count(count: int | None) -> str:
    return NOT_MEASURED if count is None else f"{count:,}"


def _seen(size: float | None, metric: MetricPower, is_known: bool) -> str:
    return TOO_FEW if size is None and is_known else value_text(size, metric.unit)


def _size(size: float, unit: str) -> str:
    return value_text(size, unit) if unit == "s" else f"{size:.3g}"
