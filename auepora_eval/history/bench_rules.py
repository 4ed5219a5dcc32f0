"""Has an operation become slower, larger or worse, or better? Four rules, and the severity of each.

    sigma       the mean lies over 2 standard deviations above that of the last 7 days (10 samples or more):
                medium; over 3: high
    relative    it is worse by over 10%: medium, 25%: high, 50%: critical. Durations up, throughput down; of a
                mixture of experts routing down by 5%, gates 10%, reranking 15%, latency up by 20%
    factor      over 1.5 times the duration or 1.2 times the memory of the baseline (its thresholds): high
    failures    over 5% of the calls failed, and more than in the baseline: medium; 10%: high; 50%: critical.
                It holds for operations without a baseline, too

Which way is worse depends on the quantity: a latency that falls is not a regression, nor a throughput that
rises. And a mean wavers: what chance alone does more often than `alpha` is low, whatever the rule (Welch's
test; of a single call, where it lies among those of the baseline; of failures, Fisher's exact test).

It is better if the way back would be worse: by the same rules, tests and thresholds, and with samples enough
to be a baseline. So a new baseline starts there, and going back is reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as with_fields

from ..core.verdict import Verdict
from ..gate.rules import LEAST_LOSS, size_of
from .bench import Baseline, Measurement, pooled

ALPHA = 0.05
FAILURES = "failures"
SEVERITIES = ("low", "medium", "high", "critical")
_SIGMAS = ((3.0, "high"), (2.0, "medium"))
_SIGMA_SAMPLES = 10
_FAILURES = ((0.50, "critical"), (0.10, "high"), (0.05, "medium"))
_CLOCK = 1e-3  # seconds; what took less may be 0 in a file of another tool
# Of a mixture of experts: the word in a quantity's name, by what share it may become worse, and which way is
# worse. Latency comes first: a "routing_latency" is a latency.
_EXPERTS = (("latency", 0.20, 1), ("routing", 0.05, -1), ("gate", 0.10, -1), ("rerank", 0.15, -1))


@dataclass(frozen=True, kw_only=True)
class Change:
    """One quantity of an operation that changed: for better or worse, by which rules, and how much.

    The verdict is inconclusive if the change may be chance. `change` is relative to the baseline; `p_value`,
    where it is known, is how often chance does as much. A change for the better has no severity.
    """

    verdict: Verdict
    operation: str
    quantity: str
    rules: tuple[str, ...]
    baseline: float
    current: float
    change: float
    p_value: float | None = None
    severity: str = ""

    @property
    def message(self) -> str:
        """The finding as a sentence."""
        if self.quantity == FAILURES:
            usual = "and there is no baseline"
            if math.isfinite(self.baseline):
                usual = f"{self.baseline:.0%} in the baseline"
            return f"{self.operation}: {self.current:.0%} of the calls failed, {usual}."
        now = f"{self.operation}: {self.quantity} is {self.current:.4g}"
        if not math.isfinite(self.change):
            return f"{now}, where the baseline has none."
        return f"{now}, {self.change:+.0%} against the baseline of {self.baseline:.4g}."


def is_at_least(severity: str, limit: str) -> bool:
    """Whether one severity is as high as another."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(limit)


def regressions(
    measured: Sequence[Measurement], baselines: Mapping[str, Baseline], *, alpha: float | None = ALPHA
) -> list[Change]:
    """Return everything that became worse, the most severe first.

    Without an `alpha` the rules alone decide. Of an operation without a baseline only failures are checked.
    """
    worse: list[Change] = []
    for one in measured:
        worse += _of_failures(one, baselines.get(one.operation))
    for one in measured:
        baseline = baselines.get(one.operation)
        if baseline is not None and baseline.lacking_samples() == 0:
            worse += _of_operation(one, baseline)
    marked = [_or_chance(change, alpha) for change in worse]
    return sorted(marked, key=lambda change: -SEVERITIES.index(change.severity))


def improvements(
    measured: Sequence[Measurement], baselines: Mapping[str, Baseline], *, alpha: float | None = ALPHA
) -> list[Change]:
    """Return everything that became significantly better. Without an `alpha` the rules alone decide."""
    better = []
    for one in measured:
        if one.operation in baselines:
            better += _better(one, baselines[one.operation], alpha)
    return better


def baseline_restarts(
    measured: Sequence[Measurement],
    baselines: Mapping[str, Baseline],
    *,
    alpha: float | None = ALPHA,
    accept: bool = False,
) -> list[Measurement]:
    """Return the recordings with which a new baseline starts: the first of each operation that is better.

    With `accept` it is the first that any rule finds changed, for better or worse, even if by chance.
    """
    first: dict[str, Measurement] = {}
    for one in measured:
        baseline = baselines.get(one.operation)
        if baseline is None or not one.count or one.operation in first:
            continue
        changes = _better(one, baseline, None if accept else alpha)
        if accept:
            changes += regressions([one], baselines, alpha=None)
        elif one in (*baseline.recordings, *baseline.history):
            continue
        if changes:
            first[one.operation] = one
    return list(first.values())


def _better(one: Measurement, baseline: Baseline, alpha: float | None) -> list[Change]:
    """Return what is better than the baseline: going back to it, and to each of its recordings, is worse.

    A machine is faster on some days. What beats the mean, but not the best recording, is such a day.
    """
    least = max(1, int(baseline.thresholds["min_samples_for_baseline"]))
    if one.count < least or baseline.lacking_samples() or not baseline.recordings:
        return []
    now = with_fields(baseline, recordings=(one,))
    # As of today: the rule of sigma looks at the last seven days.
    before = [with_fields(each, timestamp=one.timestamp) for each in baseline.recordings]
    better = [each for each in _worse(pooled(before), now, alpha) if each.severity != SEVERITIES[0]]
    for recording in before:
        # By the rules alone: the pool has been tested above, and one recording may be too small for a test.
        worse = {each.quantity for each in _worse(recording, now, None)}
        better = [each for each in better if each.quantity in worse]
    return [_reversed(each) for each in better]


def _worse(one: Measurement, baseline: Baseline, alpha: float | None) -> list[Change]:
    """What is worse than a baseline, however few samples that has."""
    judged = [*_of_failures(one, baseline), *_of_operation(one, baseline)]
    return [_or_chance(each, alpha) for each in judged]


def _reversed(back: Change) -> Change:
    """Return the change for the better, from what the way back would be."""
    change = back.baseline / back.current - 1 if back.current else math.nan
    return replace(
        back,
        verdict=Verdict.BETTER,
        baseline=back.current,
        current=back.baseline,
        change=change,
        severity="",
    )


def _or_chance(one: Change, alpha: float | None) -> Change:
    if alpha is None or one.p_value is None or one.p_value < alpha:
        return one
    rules = (*one.rules, "may be chance")
    return replace(one, verdict=Verdict.INCONCLUSIVE, severity=SEVERITIES[0], rules=rules)


def _of_failures(one: Measurement, baseline: Baseline | None) -> Iterator[Change]:
    before = baseline.expected if baseline is not None and baseline.recordings else None
    usual = 0.0 if before is None else before.failed_share
    hits = [("failures", severity) for limit, severity in _FAILURES if one.failed_share > limit][:1]
    if one.failed_share > usual:
        baseline_share = math.nan if before is None else usual
        yield from _joined(one, FAILURES, hits, baseline_share, one.failed_share, _p_of_failures(one, before))


def _p_of_failures(one: Measurement, before: Measurement | None) -> float:
    """Return how often chance makes this many calls fail, if the rate is that of the baseline, or else 5%."""
    from scipy.stats import binomtest, hypergeom

    calls = one.count + one.failed
    if before is None:
        return float(binomtest(one.failed, calls, _FAILURES[-1][0], alternative="greater").pvalue)
    failed, every = one.failed + before.failed, calls + before.count + before.failed
    return float(hypergeom.sf(one.failed - 1, every, failed, calls))  # Fisher's exact test, one-sided


def _of_operation(one: Measurement, baseline: Baseline) -> Iterator[Change]:
    expected = baseline.expected
    duration = [*_sigma(one, baseline), *_relative(one.mean_duration, expected.mean_duration, 1)]
    limit = baseline.thresholds["duration_regression_threshold"]
    duration += _factor(one.mean_duration, expected.mean_duration, limit)
    p_value = _p_value(one, expected)
    yield from _joined(one, "duration", duration, expected.mean_duration, one.mean_duration, p_value)
    if one.mean_memory is not None and expected.mean_memory is not None:
        limit = baseline.thresholds["memory_regression_threshold"]
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
) -> Iterator[Change]:
    """What several rules say of a quantity is one finding, as grave as the gravest of them."""
    if hits:
        yield Change(
            verdict=Verdict.WORSE,
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
    recent = baseline.recent(one)
    if recent is None or recent.count < _SIGMA_SAMPLES or not recent.std_duration:
        return []
    away = (one.mean_duration - recent.mean_duration) / recent.std_duration
    return [("sigma", severity) for limit, severity in _SIGMAS if away > limit][:1]


def _relative(now: float, before: float, worse: int, least: float = LEAST_LOSS) -> list[tuple[str, str]]:
    """`worse` is 1 where more is worse, -1 where less is."""
    if before == 0 and worse == 1 and now > _CLOCK:
        return [("relative", "critical")]
    if not before > 0:
        return []
    loss = worse * (now / before - 1)
    if not loss > least:
        return []
    return [("relative", size_of(loss) or "medium")]


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
    return with_fields(one, mean_duration=seconds, std_duration=spread)


def _p_value(one: Measurement, expected: Measurement) -> float | None:
    """Student's t-test on the two means, from their spreads (Welch's); None where no spread is known.

    One call has no spread of its own: it is taken to be that of the others.
    """
    from scipy.stats import ttest_ind_from_stats

    spreads = [0.0 if side.count == 1 else side.std_duration for side in (one, expected)]
    known_spreads = [spread for spread in spreads if spread is not None]
    if len(known_spreads) < len(spreads) or not any(known_spreads):
        return None
    test = ttest_ind_from_stats(
        one.mean_duration,
        known_spreads[0],
        one.count,
        expected.mean_duration,
        known_spreads[1],
        expected.count,
        # Welch's test needs a spread on both sides. One call has none, so the variances are pooled.
        equal_var=1 in (one.count, expected.count),
    )
    return float(test.pvalue)
