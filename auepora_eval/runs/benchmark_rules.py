"""Has an operation become slower, larger or worse, or better? Four rules, and how grave it is.

    sigma       the mean lies over 2 standard deviations above that of the last 7 days (10 samples or more):
                medium; over 3: high
    relative    it is worse by over 10%: medium, 25%: high, 50%: critical. Durations up, throughput down; of a
                mixture of experts routing down by 5%, gates 10%, reranking 15%, latency up by 20%
    factor      over 1.5 times the duration or 1.2 times the memory of the baseline (its thresholds): high
    failures    over 5% of the calls failed, and more than in the baseline: medium; 10%: high; 50%: critical.
                It holds for operations without a baseline, too

Which way is worse depends on the quantity: a latency that falls is no regression, nor a throughput that
rises. And a mean wavers: what chance alone does more often than `alpha` is low, whatever the rule (Welch's
test; of a single call, where it lies among those of the baseline; of failures, Fisher's exact test).

It is better if the way back would be worse: by the same rules, tests and thresholds, and with samples enough
to be a baseline. So a new baseline begins there, and whoever goes the way back is told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .benchmark_baselines import Baseline, pooled
from .benchmark_measurements import Measurement

ALPHA = 0.05
FAILURES = "failures"
SEVERITIES = ("low", "medium", "high", "critical")
_SIGMAS = ((3.0, "high"), (2.0, "medium"))
_SIGMA_SAMPLES = 10
_FAILURES = ((0.50, "critical"), (0.10, "high"), (0.05, "medium"))
_CLOCK = 1e-3  # seconds; what took less may be 0 in a file of another tool
_SHARES = ((0.50, "critical"), (0.25, "high"), (0.10, "medium"))
# Of a mixture of experts: the word in a quantity's name, by what share it may become worse, and which way is
# worse. Latency comes first: a "routing_latency" is a latency.
_EXPERTS = (("latency", 0.20, 1), ("routing", 0.05, -1), ("gate", 0.10, -1), ("rerank", 0.15, -1))


@dataclass(frozen=True, kw_only=True)
class _Change:
    """One quantity of an operation that changed: by which rules, and how much.

    `change` is the share by which it changed; `p_value`, where it is known, how often chance does as much.
    """

    operation: str
    quantity: str
    rules: tuple[str, ...]
    baseline: float
    current: float
    change: float
    p_value: float | None = None

    @property
    def message(self) -> str:
        """The finding as a sentence."""
        if self.quantity == FAILURES:
            known = math.isfinite(self.baseline)
            usual = f"{self.baseline:.0%} in the baseline" if known else "and there is no baseline"
            return f"{self.operation}: {self.current:.0%} of the calls failed, {usual}."
        if not math.isfinite(self.change):
            return f"{self.operation}: {self.quantity} is {self.current:.4g}, where the baseline has none."
        return (
            f"{self.operation}: {self.quantity} is {self.current:.4g}, {self.change:+.0%} against the "
            f"baseline of {self.baseline:.4g}."
        )


@dataclass(frozen=True, kw_only=True)
class Regression(_Change):
    """A change for the worse, and how grave it is."""

    severity: str


@dataclass(frozen=True, kw_only=True)
class Improvement(_Change):
    """A change for the better."""


def is_at_least(severity: str, limit: str) -> bool:
    """Whether one severity is as grave as another."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(limit)


def regressions(
    found: Sequence[Measurement], baselines: Mapping[str, Baseline], *, alpha: float | None = ALPHA
) -> list[Regression]:
    """Everything that became worse, the gravest first; of an operation without a baseline only failures.

    Without an `alpha` the rules alone decide.
    """
    worse = [
        _or_chance(regression, alpha)
        for one in found
        for regression in _of_failures(one, baselines.get(one.operation))
    ]
    worse += [
        _or_chance(regression, alpha)
        for one in found
        if one.operation in baselines and lacking_samples(baselines[one.operation]) == 0
        for regression in _of_operation(one, baselines[one.operation])
    ]
    return sorted(worse, key=lambda one: -SEVERITIES.index(one.severity))


def improvements(
    found: Sequence[Measurement], baselines: Mapping[str, Baseline], *, alpha: float | None = ALPHA
) -> list[Improvement]:
    """Everything that surely became better. Without an `alpha` the rules alone decide."""
    better = []
    for one in found:
        if one.operation in baselines:
            better += _since(one, baselines[one.operation], alpha)[1]
    return better


def new_beginnings(
    found: Sequence[Measurement],
    baselines: Mapping[str, Baseline],
    *,
    alpha: float | None = ALPHA,
    accept: bool = False,
) -> list[Measurement]:
    """The recordings with which a new baseline begins, one an operation: the first that is surely better.

    With `accept` it is the first that any rule finds changed, for better or worse, even if by chance.
    """
    first: dict[str, Measurement] = {}
    for one in found:
        baseline = baselines.get(one.operation)
        if baseline is None or not one.count or one.operation in first:
            continue
        since, better = _since(one, baseline, None if accept else alpha)
        if better and (accept or not baseline.knows(one)):
            first[one.operation] = since
        elif accept and regressions([one], baselines, alpha=None):
            first[one.operation] = one
    return list(first.values())


def _since(
    one: Measurement, baseline: Baseline, alpha: float | None
) -> tuple[Measurement, list[Improvement]]:
    """What became better, and the recording since when it is: the measurement, or one not long before it.

    The last recordings count as now where the measurement alone has too few samples, or where they were taken
    into the baseline because nothing was sure yet.
    """
    least = max(1, int(baseline.threshold("min_samples_for_baseline")))
    for cut in range(len(baseline.recordings), 0, -1):
        before, now = baseline.recordings[:cut], (*baseline.recordings[cut:], one)
        if one.count and all(sum(each.count for each in part) >= least for part in (before, now)):
            better = _better(before, replace(baseline, recordings=now), one.timestamp, alpha)
            if better:
                return now[0], better
    return one, []


def _better(
    before: Sequence[Measurement], now: Baseline, today: str, alpha: float | None
) -> list[Improvement]:
    """What is better now: the way back to what was recorded before would be worse, and to each recording.

    A machine is faster on some days. What beats the mean, but not the best that was recorded, is such a day.
    """
    back = [replace(each, timestamp=today) for each in before]  # as of today: sigma looks at the last days
    mean = pooled(back)
    found = [each for each in _worse(mean, now, alpha) if each.severity != SEVERITIES[0]]
    if found:
        each_now = [replace(now, recordings=(each,)) for each in now.recordings]
        ways = [(each, now) for each in back] + [(mean, each) for each in each_now]
        for way, there in ways:
            worse = {each.quantity for each in _worse(way, there, None)}
            found = [each for each in found if each.quantity in worse]
    return [_turned(each) for each in found]


def _worse(one: Measurement, baseline: Baseline, alpha: float | None) -> list[Regression]:
    """What is worse than a baseline, however few samples that has."""
    judged = [*_of_failures(one, baseline), *_of_operation(one, baseline)]
    return [_or_chance(each, alpha) for each in judged]


def _turned(back: Regression) -> Improvement:
    """The way there, from the way back."""
    now, before = back.baseline, back.current
    change = now / before - 1 if before else math.nan
    return Improvement(
        operation=back.operation,
        quantity=back.quantity,
        rules=back.rules,
        baseline=before,
        current=now,
        change=change,
        p_value=back.p_value,
    )


def _or_chance(one: Regression, alpha: float | None) -> Regression:
    if alpha is None or one.p_value is None or one.p_value < alpha:
        return one
    return replace(one, severity=SEVERITIES[0], rules=(*one.rules, "may be chance"))


def lacking_samples(baseline: Baseline) -> int:
    """How many samples a baseline lacks before anything is held against it."""
    there = baseline.expected.count if baseline.recordings else 0
    return max(0, int(baseline.threshold("min_samples_for_baseline")) - there)


def _of_failures(one: Measurement, baseline: Baseline | None) -> Iterator[Regression]:
    before = baseline.expected if baseline is not None and baseline.recordings else None
    usual = 0.0 if before is None else before.failed_share
    hits = [("failures", severity) for limit, severity in _FAILURES if one.failed_share > limit][:1]
    if one.failed_share > usual:
        told = math.nan if before is None else usual
        yield from _joined(one, FAILURES, hits, told, one.failed_share, _p_of_failures(one, before))


def _p_of_failures(one: Measurement, before: Measurement | None) -> float:
    """How often chance makes so many calls fail: if as many fail as in the baseline, or else 5%."""
    from scipy.stats import binomtest, hypergeom

    calls = one.count + one.failed
    if before is None:
        return float(binomtest(one.failed, calls, _FAILURES[-1][0], alternative="greater").pvalue)
    failed, every = one.failed + before.failed, calls + before.count + before.failed
    return float(hypergeom.sf(one.failed - 1, every, failed, calls))  # Fisher's exact test, one-sided


def _of_operation(one: Measurement, baseline: Baseline) -> Iterator[Regression]:
    expected = baseline.expected
    duration = [*_sigma(one, baseline), *_relative(one.mean_duration, expected.mean_duration, 1)]
    limit = baseline.threshold("duration_regression_threshold")
    duration += _factor(one.mean_duration, expected.mean_duration, limit)
    p_value = _p_value(one, expected)
    yield from _joined(one, "duration", duration, expected.mean_duration, one.mean_duration, p_value)
    if one.mean_memory is not None and expected.mean_memory is not None:
        limit = baseline.threshold("memory_regression_threshold")
        memory = _factor(one.mean_memory, expected.mean_memory, limit)
        yield from _joined(one, "memory", memory, expected.mean_memory, one.mean_memory)
    if one.throughput and expected.throughput:
        fewer = _relative(one.throughput, expected.throughput, -1)
        p_value = _p_value(_by_the_clock(one), _by_the_clock(expected))
        yield from _joined(one, "throughput", fewer, expected.throughput, one.throughput, p_value)
    for name, value in one.quantities.items():
        before = expected.quantities.get(name)
        if before is not None:
            yield from _joined(one, name, _of_experts(name, value, before), before, value)


def _joined(
    one: Measurement,
    quantity: str,
    hits: Sequence[tuple[str, str]],
    before: float,
    now: float,
    p_value: float | None = None,
) -> Iterator[Regression]:
    """What several rules say of a quantity is one finding, as grave as the gravest of them."""
    if hits:
        yield Regression(
            operation=one.operation,
            quantity=quantity,
            severity=max((severity for _, severity in hits), key=SEVERITIES.index),
            rules=tuple(rule for rule, _ in hits),
            baseline=before,
            current=now,
            change=now / before - 1 if before else math.inf,
            p_value=p_value,
        )


def _sigma(one: Measurement, baseline: Baseline) -> list[tuple[str, str]]:
    lately = baseline.lately(one)
    if lately is None or lately.count < _SIGMA_SAMPLES or not lately.std_duration:
        return []
    away = (one.mean_duration - lately.mean_duration) / lately.std_duration
    return [("sigma", severity) for limit, severity in _SIGMAS if away > limit][:1]


def _relative(now: float, before: float, worse: int, least: float = _SHARES[-1][0]) -> list[tuple[str, str]]:
    """`worse` is 1 where more is worse, -1 where less is."""
    if before == 0 and worse == 1 and now > _CLOCK:
        return [("relative", "critical")]
    if not before > 0:
        return []
    loss = worse * (now / before - 1)
    if not loss > least:
        return []
    graver = [severity for limit, severity in _SHARES if loss > limit]
    return [("relative", graver[0] if graver else "medium")]


def _factor(now: float, before: float, limit: float) -> list[tuple[str, str]]:
    return [("factor", "high")] if before > 0 and now > limit * before else []


def _of_experts(name: str, now: float, before: float) -> list[tuple[str, str]]:
    for word, least, worse in _EXPERTS:
        if word in name.lower():
            return _relative(now, before, worse, least)
    return []


def _by_the_clock(one: Measurement) -> Measurement:
    """The clock's seconds for each answer, as sure as the durations that they are made of."""
    seconds = 1 / (one.throughput or math.nan)
    spread = None
    if one.std_duration is not None and one.mean_duration > 0:
        spread = one.std_duration * seconds / one.mean_duration
    return replace(one, mean_duration=seconds, std_duration=spread)


def _p_value(one: Measurement, expected: Measurement) -> float | None:
    """Student's t-test on the two means, from their spreads (Welch's); None where nothing tells a spread.

    One call has no spread of its own: it is taken to be that of the others.
    """
    from scipy.stats import ttest_ind_from_stats

    spreads = [0.0 if side.count == 1 else side.std_duration for side in (one, expected)]
    known = [spread for spread in spreads if spread is not None]
    if len(known) < len(spreads) or not any(known):
        return None
    found = ttest_ind_from_stats(
        one.mean_duration,
        known[0],
        one.count,
        expected.mean_duration,
        known[1],
        expected.count,
        equal_var=1 in (one.count, expected.count),
    )
    return float(found.pvalue)
