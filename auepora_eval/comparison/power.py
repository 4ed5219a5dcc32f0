"""How many samples does it take to see a change, and which changes could a run have missed?

Both systems answer the same samples. Before a run: from a guess of how much scores vary. After it: from the
run's own scores, or, best, from those of two runs. What `alpha` allows is shared by all metrics that are
looked at, as in a comparison; name those that matter.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from ..core.display import NOT_MEASURED, TOO_FEW, value_text
from ..core.table import Table
from ..core.types import EvaluationRun
from ..errors import PlanError
from ..stats.intervals import clusters_worth
from ..stats.power import POWER, Spread, detectable_change, fewest_units, units_needed
from .checks import data_mismatches
from .paired_tests import is_of_time, side_units, spread_of
from .pairs import Pairs, Runs, listed_runs, pairs_of

# Scores of two systems on the same questions correlate by 0.3 to 0.7 (Miller 2024, "Adding error bars to
# evals"); in the middle a difference varies as much as one system's scores do.
CORRELATION = 0.5


@dataclass(frozen=True)
class MetricPower:
    """What can be seen of one metric.

    `spread` is how one unit differs: a cluster of `per_unit` samples, or a sample. `reach` is how far apart
    two values can be, if there is an end to it. `detectable` is the smallest change that `samples` show with
    the power, `needed` how many samples the effect takes. None is not known, not asked, or that no change, or
    no number of samples, would do.
    """

    name: str
    unit: str
    spread: Spread | None
    samples: int | None = None
    per_unit: float = 1.0
    values: tuple[float, ...] = ()
    detectable: float | None = None
    needed: int | None = None
    reach: float | None = None
    unit_worth: float = 1.0  # of clusters of different size, how many of equal size one stands for


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
    notes: list[str] = field(default_factory=list)

    @property
    def tests(self) -> int:
        """How many metrics share alpha."""
        return round(self.alpha / self.level)


def power_from_numbers(
    *,
    effect: float | None = None,
    n: int | None = None,
    sd: float | None = None,
    rate: float | None = None,
    correlation: float = CORRELATION,
    alpha: float = 0.05,
    power: float = POWER,
    name: str = "the score",
) -> PowerReport:
    """How many samples an effect takes, or which effect n samples show, before anything was run.

    `sd` is the standard deviation of the difference between two systems on the same sample; or else `rate` is
    the share of right answers.

    >>> power_from_numbers(effect=0.2, sd=1.0).metrics[0].needed
    202
    """
    _check_levels(alpha, power)
    if (sd is None) == (rate is None):
        raise PlanError("give either sd (of the differences of two systems), or the rate of right answers.")
    if rate is None:
        metric = MetricPower(name, "", Spread(sd or 0.0, sd or 0.0), n)
        return _filled(PowerReport(alpha, alpha, power, [metric], effect))
    if not 0 < rate < 1:
        raise PlanError(f"a rate of right answers is between 0 and 1, not {rate:g}.")
    reach = max(rate, 1 - rate)
    if effect is not None and effect >= reach:
        raise PlanError(f"a rate of {rate:g} cannot change by {effect:g}.")
    metric = MetricPower(name, "", _of_rate(rate, correlation), n, reach=reach)
    return _filled(PowerReport(alpha, alpha, power, [metric], effect, (), correlation))


def power_from_runs(
    run: Runs,
    other: Runs | None = None,
    *,
    effect: float | None = None,
    n: int | None = None,
    correlation: float = CORRELATION,
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
    pairings, left_out = pairs_of(first, second or first, [], allow_mismatch=False)
    pairings = [one for one in pairings if metrics is None or one.name in metrics]
    _check_known(pairings, metrics, everything[0], left_out)
    times = [one.name for one in pairings if is_of_time(one.known)]
    pairings = [one for one in pairings if one.name not in times]
    about_times = [f"{', '.join(times)}: {_TIMES}"] if times else []
    if times and not pairings:
        raise PlanError(f"{about_times[0]}.")
    guess = correlation if second is None else None
    powers = [_metric_power(pairs, guess, n) for pairs in pairings]
    if all(one.spread is None for one in powers):
        raise PlanError("no metric of the run has two scores that differ: nothing can be said of it.")
    # A comparison tests all of these, whether their samples differ or not; times where there are repeats.
    tests = len(powers) + (len(times) if second is not None and len(first) > 1 else 0)
    stopped = [
        f"{one.evaluation_id} stopped early: its spread is that of the samples that were asked"
        for one in everything
        if one.stopping is not None and one.stopping.stopped_early
    ]
    names = tuple(one.evaluation_id for one in everything)
    notes = [*about_times, *stopped]
    return _filled(PowerReport(alpha, alpha / tests, power, powers, effect, names, guess, notes))


def _filled(report: PowerReport) -> PowerReport:
    """Return the report with what was asked for: detectable changes, samples needed for an effect."""
    return replace(report, metrics=[_asked(report, metric) for metric in report.metrics])


def _asked(report: PowerReport, metric: MetricPower) -> MetricPower:
    """Return a metric with what can be detected, and how many samples the effect takes, where known."""
    spread = metric.spread
    if spread is None:
        return metric
    levels = {"alpha": report.level, "power": report.power}
    reach = math.inf if metric.reach is None else metric.reach
    if metric.samples is not None:
        # Part of a unit shows nothing. The 1e-6 keeps 59.9999999 of a division from becoming 59.
        units = math.floor(metric.samples / metric.per_unit + 1e-6)
        if units * metric.unit_worth >= fewest_units(report.level):
            detectable = detectable_change(units, spread, reach=reach, **levels)
            metric = replace(metric, detectable=detectable)
    if report.effect is not None and report.effect <= reach:
        needed = units_needed(report.effect, spread, **levels)
        metric = replace(metric, needed=None if needed is None else math.ceil(needed * metric.per_unit))
    return metric


def _metric_power(pairs: Pairs, guess: float | None, samples: int | None) -> MetricPower:
    """How much the differences of a metric vary; `guess` is the correlation, where there is one run only."""
    rows_a, rows_b, clusters = pairs.used()
    side = side_units(pairs, rows_a)
    units = len(side.numbers)
    values = [float(pairs.known.aggregate(rows)) for rows in (rows_a, rows_b)]
    spread: Spread | None
    if guess is None:
        spread = spread_of(pairs)
    elif pairs.is_mean and pairs.is_binary() and clusters is None:
        spread = _of_rate(values[0], guess, size=units)
    else:
        # With equal spread s on both sides, Var(B - A) = 2 s² (1 - r).
        sd = float(side.numbers.std(ddof=1)) * math.sqrt(2 * (1 - guess)) if units > 1 else 0.0
        spread = Spread(sd, sd) if math.isfinite(sd) else None
    questions = len(rows_a) / len(pairs.repeats)
    low, high = pairs.known.bounds
    return MetricPower(
        pairs.name,
        pairs.known.unit,
        spread if spread is not None and spread.size else None,
        round(questions) if samples is None else samples,
        questions / units,
        tuple(values[:1] if guess is not None else values),
        reach=high - low if math.isfinite(high - low) else None,
        unit_worth=1.0 if clusters is None else clusters_worth(list(Counter(clusters).values())) / units,
    )


def _of_rate(rate: float, correlation: float, size: int | None = None) -> Spread:
    """Return how 0/1 scores differ: nearer to a half they vary more, by (2 rate - 1) per unit of change.

    The rate of a sample of this size varies a little less than that of all.
    """
    correction = 1.0 if size is None or size < 2 else size / (size - 1)
    sd = math.sqrt(2 * rate * (1 - rate) * correction * (1 - correlation))
    return Spread(sd, 1.0, abs(2 * rate - 1) * (1 - correlation))


_TIMES = "for times, more samples do not help, but more runs do: compare repeats of both (A1,A2,A3 B1,B2,B3)"


def _check_known(
    pairings: Sequence[Pairs],
    metrics: Sequence[str] | None,
    run: EvaluationRun,
    left_out: Mapping[str, str],
) -> None:
    names = {pairs.name for pairs in pairings}
    for name in metrics or ():
        if name in left_out:
            raise PlanError(f"{name:.60} cannot be planned for: {left_out[name]}.")
        if name not in names:
            listed = ", ".join(result.name for result in run.results)
            raise PlanError(f"{run.evaluation_id} has no scores of {name!r:.60} to go by; it has {listed}.")


def _check_levels(alpha: float, power: float) -> None:
    if not 0 < alpha < power < 1:
        raise PlanError(f"alpha and power are between 0 and 1, alpha the smaller: not {alpha:g}, {power:g}.")


# What can be detected, and how many samples it takes, in words and as a table.

_NO_SPREAD = "no sample differs, or too few samples count"
_SHOWN = 2  # sentences about metrics; the table has them all


def power_table(report: PowerReport) -> Table:
    """Return a row per metric: what its samples can detect, and how many samples the effect takes."""
    has_samples = any(metric.samples is not None for metric in report.metrics)
    headings = ["Metric"]
    headings += ["Value"] if report.runs else []
    headings += ["Samples", "Detectable"] if has_samples else []
    headings += ["Needed"] if report.effect is not None else []
    rows = []
    for metric in report.metrics:
        row = [metric.name]
        if report.runs:
            row.append(" → ".join(value_text(value, metric.unit) for value in metric.values))
        if has_samples:
            too_few = metric.detectable is None and metric.spread is not None
            row.append(_count(metric.samples))
            row.append(TOO_FEW if too_few else value_text(metric.detectable, metric.unit))
        if report.effect is not None:
            row.append(_count(metric.needed))
        rows.append(row)
    return Table(headings, rows, numeric=range(1, len(headings)))


def power_in_words(report: PowerReport) -> list[str]:
    """Sentences for whoever decides: what would be noticed, what would go unseen, what it would take."""
    shown = report.metrics[:_SHOWN]
    if report.effect is not None:
        sentences = [_needed_in_words(report, metric, report.effect) for metric in shown]
    else:
        sentences = [_detectable_in_words(report, one, one.samples) for one in shown if one.samples]
    if len(report.metrics) > _SHOWN:
        sentences.append("The table has the other metrics.")
    words = f"The significance level is {report.alpha:g}."
    if report.tests > 1:
        words = f"The significance level of {report.alpha:g} is shared by {report.tests} metrics, "
        words += f"{report.level:.2g} each: name those that matter (--metric)."
    if report.assumed_correlation is not None:
        words += (
            f" The correlation of the two systems' scores is unknown: {report.assumed_correlation:g} is "
            "assumed (--correlation). A second run would show it."
        )
    return [*sentences, " ".join([words, *(f"{note}." for note in report.notes)])]


def power_to_dict(report: PowerReport) -> dict[str, object]:
    """A report as JSON has it, with the sentences."""
    document = {**asdict(report), "in_words": power_in_words(report)}
    for metric in document["metrics"]:
        spread = metric.pop("spread")
        metric["sd"] = None if spread is None else spread["sd"]
    return document


def _needed_in_words(report: PowerReport, metric: MetricPower, effect: float) -> str:
    change = f"a change of {_size(effect, metric.unit)} in {metric.name}"
    if metric.needed is None:
        why = "it cannot change so much" if metric.spread else _NO_SPREAD
        return f"How many samples detect {change} is unknown: {why}."
    words = f"Detecting {change} with {report.power:.0%} power takes {_samples(metric.needed)}"
    if metric.samples is not None and report.runs:
        enough = ", which is enough" if metric.needed <= metric.samples else ""
        words += f". There are {metric.samples:,}{enough}"
    return f"{words}."


def _detectable_in_words(report: PowerReport, metric: MetricPower, samples: int) -> str:
    if metric.detectable is None:
        why = f"{_samples(samples)} are too few" if metric.spread else _NO_SPREAD
        return f"The smallest change in {metric.name} that is detected is unknown: {why}."
    return (
        f"{_samples(samples).capitalize()} detect a change of {_size(metric.detectable, metric.unit)} in "
        f"{metric.name} with {report.power:.0%} power. A smaller change may go unnoticed."
    )


def _samples(count: int) -> str:
    return f"{count:,} sample{'' if count == 1 else 's'}"


def _count(count: int | None) -> str:
    return NOT_MEASURED if count is None else f"{count:,}"


def _size(size: float, unit: str) -> str:
    return value_text(size, unit) if unit == "s" else f"{size:.3g}"
