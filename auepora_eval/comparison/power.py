"""How many samples does it take to see a change, and which changes could a run have missed?

Before a run: from a guess of how much scores vary. After it: from the run's own scores, or, best, from those
of two runs on the same samples. What `alpha` allows is shared by all metrics that are looked at, as in a
comparison; name those that matter.
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
from ..stats.power import (
    POWER,
    Spread,
    detectable_change,
    fewest_units,
    units_needed,
)
from .checks import data_mismatches
from .paired_tests import is_of_time, side_units, spread_of
from .pairs import Pairs, Runs, listed_runs, pairs_of

# Scores of two systems on the same questions correlate by 0.3 to 0.7 (Miller 2024, "Adding error bars to
# evals"); in the middle a difference varies as much as one system's scores do.
CORRELATION = 0.5


@dataclass(frozen=True)
class MetricPower:
    """What can be seen of one metric, where both systems are asked the same samples and where they are not.

    `same` and `other` are how one unit differs: a cluster of `per_unit` samples, or a sample. `reach` is how
    far apart two values can be, if there is an end to it. `detectable` is the smallest change that `samples`
    show with the power, `needed` how many samples (of each system) the effect takes. None is not known, not
    asked, or that no change, or no number of samples, would do.
    """

    name: str
    unit: str
    same: Spread | None
    other: Spread | None
    samples: int | None = None
    per_unit: float = 1.0
    values: tuple[float, ...] = ()
    correlation: float | None = None
    detectable_same: float | None = None
    detectable_other: float | None = None
    needed_same: int | None = None
    needed_other: int | None = None
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

    def detectable(self, metric: MetricPower, samples: float, *, same: bool = True) -> float | None:
        """The smallest change that can be detected; None if nothing is known or there are too few samples."""
        spread = metric.same if same else metric.other
        # Part of a unit shows nothing. The 1e-6 keeps 59.9999999 of a division from becoming 59.
        units = math.floor(samples / metric.per_unit + 1e-6)
        if spread is None or units * metric.unit_worth < fewest_units(self.level):
            return None
        reach = math.inf if metric.reach is None else metric.reach
        return detectable_change(
            units, spread, alpha=self.level, power=self.power, reach=reach, groups=1 if same else 2
        )

    def needed(self, metric: MetricPower, effect: float, *, same: bool = True) -> int | None:
        """How many samples show a change of that size; None where no number does, or nothing is known."""
        spread = metric.same if same else metric.other
        if spread is None or (metric.reach is not None and effect > metric.reach):
            return None
        units = units_needed(effect, spread, alpha=self.level, power=self.power, groups=1 if same else 2)
        return None if units is None else math.ceil(units * metric.per_unit)


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

    >>> power_from_numbers(effect=0.2, sd=1.0).metrics[0].needed_same
    202
    """
    _check_levels(alpha, power)
    if (sd is None) == (rate is None):
        raise PlanError("how much do scores vary? Give either their sd, or the rate of right answers.")
    if rate is not None:
        _check_rate(rate, effect)
        other = math.sqrt(2 * rate * (1 - rate))
        same = _of_rate(rate, other * math.sqrt(1 - correlation), correlation)
        metric = MetricPower(name, "", same, _of_rate(rate, other, 0.0), n, reach=max(rate, 1 - rate))
    else:
        metric = MetricPower(name, "", Spread(sd or 0.0, sd or 0.0), None, n)
    assumed = correlation if rate is not None else None
    return _filled(PowerReport(alpha, alpha, power, [metric], effect, (), assumed))


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
    pairings = [one for one in pairings if metrics is None or one.a.name in metrics]
    _check_known(pairings, metrics, everything[0], left_out)
    times = [one.a.name for one in pairings if is_of_time(one.known)]
    pairings = [one for one in pairings if one.a.name not in times]
    if times and not pairings:
        raise PlanError(f"{', '.join(times)}: {_TIMES}.")
    guess = correlation if second is None else None
    powers = []
    for pairs in pairings:
        one = _metric_power(pairs, guess)
        powers.append(one if n is None else replace(one, samples=n))
    if all(one.same is None and one.other is None for one in powers):
        raise PlanError("no metric of the run has two scores that differ: nothing can be said of it.")
    names = tuple(one.evaluation_id for one in everything)
    about_times = [f"{', '.join(times)}: {_TIMES}"] if times else []
    # A comparison tests all of these, whether their samples differ or not; times where there are repeats.
    tests = len(powers) + (len(times) if second is not None and len(first) > 1 else 0)
    report = PowerReport(alpha, alpha / tests, power, powers, effect, names, guess)
    report.notes.extend(about_times)
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


def _metric_power(pairs: Pairs, guess: float | None) -> MetricPower:
    """How much the differences of a metric vary; `guess` is the correlation, where there is one run only."""
    rows_a, rows_b, clusters = pairs.used()
    sides = [side_units(pairs, rows) for rows in (rows_a, rows_b)]
    units = len(sides[0].numbers)
    sds = [float(side.numbers.std(ddof=1)) if units > 1 else 0.0 for side in sides]
    values = [float(pairs.known.aggregate(rows)) for rows in (rows_a, rows_b)]
    is_share = pairs.is_mean and pairs.is_binary() and clusters is None
    questions = len(rows_a) / len(pairs.repeats)
    per_unit = questions / units
    sd = math.hypot(*sds)
    other = _of_rate(values[0], sd, 0.0) if is_share else Spread(sd, sd)
    correlation = guess
    if guess is None:
        same = spread_of(pairs)
        if same is not None and sds[0] * sds[1] > 0:
            # Var(B - A) = Var A + Var B - 2 r sd(A) sd(B), solved for the correlation r.
            correlation = (math.hypot(*sds) ** 2 - same.sd**2) / (2 * sds[0] * sds[1])
    else:
        # With equal spread s on both sides, Var(B - A) = 2 s² (1 - r), and that of `other` is 2 s².
        sd = other.sd * math.sqrt(1 - guess)
        same = _of_rate(values[0], sd, guess) if is_share else Spread(sd, sd)
    if same is not None and same.size > other.size:
        other = replace(other, size=same.size)  # no more is promised of other samples than of the same
    low, high = pairs.known.bounds
    return MetricPower(
        pairs.name,
        pairs.known.unit,
        same if same is not None and same.size else None,
        other if other.size else None,
        round(questions),
        per_unit,
        tuple(values[:1] if guess is not None else values),
        correlation,
        reach=high - low if math.isfinite(high - low) else None,
        unit_worth=1.0 if clusters is None else clusters_worth(list(Counter(clusters).values())) / units,
    )


def _of_rate(rate: float, sd: float, correlation: float) -> Spread:
    """Return how 0/1 scores differ: nearer to a half they vary more, by (2 rate - 1) per unit of change."""
    return Spread(sd, 1.0, abs(2 * rate - 1) * (1 - correlation))


_TIMES = "for times, more samples do not help, but more runs do: compare repeats of both (A1,A2,A3 B1,B2,B3)"


def _check_rate(rate: float, effect: float | None) -> None:
    if not 0 < rate < 1:
        raise PlanError(f"a rate of right answers is between 0 and 1, not {rate:g}.")
    if effect is not None and effect >= max(rate, 1 - rate):
        raise PlanError(f"a rate of {rate:g} cannot change by {effect:g}.")


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
            row.append(_seen(metric.detectable_same, metric, metric.same))
            row.append(_seen(metric.detectable_other, metric, metric.other))
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
    document = {**asdict(report), "in_words": power_in_words(report)}
    for metric in document["metrics"]:
        for name in ("same", "other"):
            spread = metric.pop(name)
            metric[f"{name}_sd"] = None if spread is None else spread["sd"]
    return document


def _needed_in_words(report: PowerReport, metric: MetricPower, effect: float) -> str:
    change = f"a change of {_size(effect, metric.unit)} in {metric.name}"
    if metric.same is None:
        return f"No sample differs in {metric.name}, so the number of samples that it takes is unknown."
    if metric.needed_same is None:
        if metric.reach is not None and effect > metric.reach:
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
    if metric.same is None:
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
    return " ".join([words, *(f"{note}." for note in report.notes)])


def _samples(count: int) -> str:
    return f"{count:,} sample{'' if count == 1 else 's'}"


def _count(count: int | None) -> str:
    return NOT_MEASURED if count is None else f"{count:,}"


def _seen(size: float | None, metric: MetricPower, spread: Spread | None) -> str:
    return TOO_FEW if size is None and spread is not None else value_text(size, metric.unit)


def _size(size: float, unit: str) -> str:
    return value_text(size, unit) if unit == "s" else f"{size:.3g}"
