"""System-level metrics: latency, throughput, tokens per second, failures, time limits and cost.

Everything is read from the record of each call: `timings`, `extra["output_tokens"]` and `error`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np

from ..core.metrics_base import SampleMetric, metric, skip
from ..core.scores import Rows
from ..core.systems.resources import ApiUsage, usage_of
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory, seconds_of
from ..errors import BadOutputError
from ..stats.intervals import Interval, quantile_interval

# Seconds: no clock measures less, and a rate would overflow.
_SHORTEST = 1e-12
# Tokens: above this a float cannot distinguish whole numbers.
_MOST = 2**53


class TimingMetric(SampleMetric):
    """A metric of the seconds under one key of `SystemOutputs.timings`; lower is better."""

    timing_key: str
    target = TargetCategory.LATENCY
    higher_is_better = False
    unit = "s"
    bounds = (0.0, math.inf)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> SampleScore:
        seconds = seconds_of(output, self.timing_key)
        return skip(f"no timing {self.timing_key!r}") if seconds is None else SampleScore(seconds)


@metric("mean_latency[{timing_key}]")
class MeanLatency(TimingMetric):
    """Mean seconds per answer, or per stage: mean_latency[retrieval]."""

    timing_key: str = "end_to_end"


@metric("latency@{q:.15g}[{timing_key}]", ranges={"q": "(0, 1)"})
class LatencyQuantile(TimingMetric):
    """The time within which a share q of the answers came, in seconds.

    Linear interpolation between order statistics; its interval needs no assumption about the distribution,
    and is "not estimable" below the number of samples that it takes (72 for p95) and for samples that share
    clusters.
    """

    q: float = 0.95
    timing_key: str = "end_to_end"
    oracle = "numpy.quantile (linear)"

    def aggregate(self, rows: Rows) -> Rows:
        # A failed answer may count as infinity, and interpolating between two of those is not a number.
        with np.errstate(invalid="ignore"):
            return np.asarray(np.quantile(rows[..., 0], self.q, axis=-1))

    def interval(self, rows: Rows, clusters: Sequence[Hashable] | None) -> Interval | None:
        # Order statistics count samples as independent, which those of a cluster are not.
        return quantile_interval(rows[:, 0], self.q) if clusters is None else None


class AmountPerSecond(SampleMetric):
    """An amount per second of system time: the sum of the amounts / the sum of the seconds.

    A sample's own value is its amount / its seconds; the mean of those would be another number.
    """

    timing_key: str
    target = TargetCategory.LATENCY
    bounds = (0.0, math.inf)
    of_sums = True

    def amount(self, output: SystemOutputs) -> float | None:
        """Return the amount of one call; None where the call does not report it."""
        raise NotImplementedError

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> SampleScore:
        amount, seconds = self.amount(output), seconds_of(output, self.timing_key)
        if seconds is None:
            return skip(f"no timing {self.timing_key!r}")
        if amount is None:
            return skip("the output does not say how many output_tokens it has")
        if seconds < _SHORTEST:
            raise BadOutputError(f"the timing {self.timing_key!r} is {seconds}: nothing takes no time")
        return SampleScore(amount / seconds, parts=(amount, seconds))

    def aggregate(self, rows: Rows) -> Rows:
        amounts, seconds = rows[..., 1].sum(axis=-1), rows[..., 2].sum(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(amounts / seconds)

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        # The value is not a finite one, so that comparisons leave the sample out, as they do for latency.
        return SampleScore(math.inf, parts=(math.inf, 1.0) if high else (0.0, math.inf))


@metric("throughput[{timing_key?}]")
class Throughput(AmountPerSecond):
    """Answers per second of one worker: how many come out if calls are made one after another.

    answers / Σ their seconds, which are the system's own, not those of the clock on the wall. A run with c
    calls at a time and no queue gets through up to c times as many; timings under load contain the waiting.
    """

    timing_key: str = "end_to_end"

    def amount(self, output: SystemOutputs) -> float:
        return 1.0


@metric("tokens_per_second[{timing_key?}]")
class TokensPerSecond(AmountPerSecond):
    """Output tokens per second of one worker: Σ output tokens / Σ seconds.

    Tokens are those that the system reports in `extra["output_tokens"]` (or the response's metadata), so
    different tokenizers are not on one scale. tokens_per_second[generation] leaves retrieval out.
    """

    timing_key: str = "end_to_end"

    def amount(self, output: SystemOutputs) -> float | None:
        return output_tokens(output)


@metric("time_to_first_token")
class TimeToFirstToken(TimingMetric):
    """Mean seconds until the first token of the answer is there: `timings["ttft"]`.

    For its quantiles write latency@0.95[ttft].
    """

    timing_key = "ttft"


@metric("time_per_output_token")
class TimePerOutputToken(SampleMetric):
    """Mean seconds between two tokens of an answer, after the first.

    (end_to_end - ttft) / (output tokens - 1), averaged over answers. Answers of a single token are skipped.
    """

    target = TargetCategory.LATENCY
    higher_is_better = False
    unit = "s"
    bounds = (0.0, math.inf)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        whole, first = (seconds_of(output, key) for key in ("end_to_end", "ttft"))
        if whole is None or first is None:
            return skip(f"no timing {'end_to_end' if whole is None else 'ttft'!r}")
        tokens = output_tokens(output)
        if tokens is None:
            return skip("the output does not say how many output_tokens it has")
        if tokens < 2:
            return skip("the answer has fewer than two tokens")
        # The first token is not part of the stream that is measured.
        streaming = whole - first
        if streaming < 0:
            raise BadOutputError("the first token came after the end: ttft is larger than end_to_end")
        return streaming / (tokens - 1)


@metric(
    "cost[price_input={price_input?},price_output={price_output?}]",
    ranges=dict.fromkeys(("price_input", "price_output"), "[0, inf)"),
)
class Cost(SampleMetric):
    """Mean cost of an answer in US dollars.

    What the system reports in `extra["cost_usd"]`, or its tokens at the prices of 1,000 tokens:
    cost[price_input=0.15,price_output=0.6]. An answer that reports neither is skipped.
    """

    price_input: float | None = None
    price_output: float | None = None
    target = TargetCategory.LATENCY
    higher_is_better = False
    unit = "USD"
    bounds = (0.0, math.inf)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        if (reported := output.extra.get("cost_usd")) is not None:
            if isinstance(reported, bool) or not isinstance(reported, int | float):
                raise BadOutputError(f"cost_usd is {reported!r:.60}, not a number")
            return float(reported)
        usage = ApiUsage()
        usage.add(usage_of(output))
        prices = {"price_input": self.price_input, "price_output": self.price_output}
        cost = (usage.as_dict(prices) or {}).get("estimated_cost_usd")
        return skip("the output reports no cost, and no tokens that have a price") if cost is None else cost


class CallRate(SampleMetric):
    """A share of all calls, the failed ones among them: those are what it is about."""

    target = TargetCategory.LATENCY
    scores_failures = True


@metric("failure_rate")
class FailureRate(CallRate):
    """Share of the calls that failed: an exception, a time-out, an output that could not be read."""

    higher_is_better = False

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float:
        return float(output.error is not None)


@metric("timeout_rate")
class TimeoutRate(CallRate):
    """Share of the calls that took too long and were given up: their error's type names a timeout.

    TimeoutError, and what clients call theirs (ReadTimeout, APITimeoutError, ...).
    """

    higher_is_better = False

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float:
        return float(output.error is not None and "timeout" in output.error.type.lower())


@metric("slo_share@{seconds:.15g}[{timing_key?}]", ranges={"seconds": "(0, inf)"})
class SloShare(CallRate):
    """Share of the calls that were answered within a time limit in seconds: slo_share@2.

    Denominator: the calls that have the timing, and those that failed, which are not within any limit.
    """

    seconds: float
    timing_key: str = "end_to_end"

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        if output.error is not None:
            return 0.0
        seconds = seconds_of(output, self.timing_key)
        return skip(f"no timing {self.timing_key!r}") if seconds is None else float(seconds <= self.seconds)


def output_tokens(output: SystemOutputs) -> float | None:
    """Return the tokens of the answer, by the system's own count; None if it has none."""
    for place in (output.extra, output.response.metadata):
        count = place.get("output_tokens")
        if count is None:
            continue
        if isinstance(count, bool) or not isinstance(count, int | float) or not 0 <= count <= _MOST:
            raise BadOutputError(f"output_tokens is {count!r:.60}, not a count")
        return float(count)
    return None
