"""A pilot: call the system for a few samples of a run, and estimate what the whole run takes.

The outputs of the pilot are those of the run. To resume the run is to call the other samples, so no
call is made twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..calls.policy import CallPolicy
from ..core.display import NOT_MEASURED, value_text
from ..core.runner import check_before_calls, in_this_folder
from ..core.scoring import score_outputs
from ..core.settings import PILOT
from ..core.systems.resources import ApiUsage, attempts_of, is_from_cache, usage_of
from ..core.table import Table
from ..core.types import END_TO_END, EvaluationSample, MetricResult, SystemOutputs
from ..errors import InterruptedRunError
from ..store.record import StoredRecord

# What one output took, by name; None where the system does not report it.
Use = dict[str, float | None]


@dataclass
class Pilot:
    """What was measured: the use of every call of the run so far, and a few samples with their outputs."""

    size: int  # samples of the whole run
    to_call: int = 0  # samples that the whole run calls the system for: those of a cache cost nothing
    failed: int = 0
    uses: list[Use] = field(default_factory=list)
    pairs: list[tuple[EvaluationSample, SystemOutputs]] = field(default_factory=list)
    results: list[MetricResult] = field(default_factory=list)


class PilotFinishedError(InterruptedRunError):
    """The pilot is over: the run stops here, as it would at Ctrl-C."""


def run_pilot(record: StoredRecord, *, scored: bool = False) -> Pilot:
    """Call the system until the run has the outputs of a pilot; `scored` computes the plan's metrics on them.

    The samples are spread over the dataset: its first ones are often alike.
    """
    evaluator, policy = record.evaluator, record.evaluator.policy or CallPolicy()
    check_before_calls(evaluator, record.survey)
    pilot = Pilot(record.survey.size)

    def add(sample: EvaluationSample, output: SystemOutputs) -> None:
        if is_from_cache(output):
            return  # it shows nothing of what a call takes
        pilot.uses.append(use_of(output, policy))
        pilot.failed += output.error is not None
        if len(pilot.pairs) < PILOT:
            pilot.pairs.append((sample, output))

    try:
        with record:
            for sample, output in record.answered():
                add(sample, output)
            waiting = [sample.sample_id for sample in record.missing()]
            chosen = _spread(waiting, PILOT - len(pilot.uses))
            pilot.to_call = len(pilot.uses) + len(waiting)
            samples = (sample for sample in record.dataset if sample.sample_id in chosen)
            for sample, output in in_this_folder(evaluator.outputs(samples, record.store)):
                record.keep(sample, output)
                add(sample, output)
            if scored:
                asked, outputs = [one for one, _ in pilot.pairs], [one for _, one in pilot.pairs]
                pilot.results = score_outputs(evaluator.plan, asked, outputs)
            # The record is left by an error, so that it stays unfinished and can be resumed.
            raise PilotFinishedError(f"stopped after a pilot of {len(pilot.uses)} samples.")
    except PilotFinishedError:
        return pilot


def _spread(ids: Sequence[str], count: int) -> set[str]:
    """Return ids at equal distances, the first one included."""
    if count >= len(ids):
        return set(ids)
    return {ids[place * len(ids) // count] for place in range(count)} if count > 0 else set()


def use_of(output: SystemOutputs, policy: CallPolicy) -> Use:
    """Return what an output took, by its own count and the prices of the policy."""
    usage = ApiUsage()
    usage.add(usage_of(output))
    prices = {"price_input": policy.price_input, "price_output": policy.price_output}
    sums = usage.as_dict(prices) or {}
    failed = output.error.seconds if output.error is not None else None
    return {
        # Attempts count retries of ours, `requests` the calls inside the system. Both see only their part.
        "calls": max(attempts_of(output), usage_of(output).get("requests", 0)),
        "input_tokens": sums.get("input_tokens"),
        "output_tokens": sums.get("output_tokens"),
        "total_tokens": sums.get("total_tokens"),
        "cost": sums.get("estimated_cost_usd"),
        "seconds": output.timings.get(END_TO_END, failed),
    }


class Estimate(NamedTuple):
    """What the whole run takes: the mean of the calls so far, their lowest and highest, times its samples."""

    per_sample: float
    total: float
    low: float
    high: float


Estimates = dict[str, Estimate | None]  # None if nothing was measured
_NAMES = ("calls", "input_tokens", "output_tokens", "total_tokens", "cost", "seconds")


def estimated(pilot: Pilot, policy: CallPolicy, concurrency: int) -> Estimates:
    """Return what the whole run takes, by what its calls have taken so far.

    Calls that run at the same time share their seconds; limits per minute make the run last longer.
    """

    def of(name: str) -> Estimate | None:
        known = [value for use in pilot.uses if (value := use[name]) is not None]
        if not known:
            return None
        mean, count = math.fsum(known) / len(known), pilot.to_call
        return Estimate(mean, mean * count, min(known) * count, max(known) * count)

    estimates = {name: of(name) for name in _NAMES}
    if (seconds := estimates["seconds"]) is not None:
        limits = {"calls": policy.requests_per_minute, "total_tokens": policy.tokens_per_minute}
        least = [
            60 * one.total / limit for name, limit in limits.items() if limit and (one := estimates[name])
        ]
        # seconds[1:] is the total, the lowest and the highest. A limit per minute holds for each of them.
        totals = (max([total / concurrency, *least]) for total in seconds[1:])
        estimates["seconds"] = Estimate(seconds.per_sample, *totals)
    return estimates


def estimate_table(pilot: Pilot, estimates: Estimates, concurrency: int) -> Table:
    """Return the estimates as a table, with a note for each one that is missing."""
    at_once = f" ({concurrency} calls at once)" if concurrency > 1 else ""
    rows: list[tuple[str, Estimate | None, Callable[[float], str]]] = [
        ("calls", estimates["calls"], _count),
        ("input tokens", estimates["input_tokens"], _count),
        ("output tokens", estimates["output_tokens"], _count),
        ("cost in USD", estimates["cost"], lambda value: f"{value:,.4g}"),
        (f"time{at_once}", estimates["seconds"], duration_text),
    ]
    if estimates["input_tokens"] is None and estimates["total_tokens"] is not None:
        rows[1:3] = [("tokens", estimates["total_tokens"], _count)]
    notes = []
    if estimates["total_tokens"] is None and estimates["input_tokens"] is None:
        notes.append("Tokens: the system reports none, so its cost is unknown too.")
    elif estimates["cost"] is None:
        notes.append("Cost: unknown. Set price_input and price_output (USD per 1,000 tokens) in a plan.")
    return Table(
        ("", "Per sample", "All samples", "Lowest to highest"),
        [(name, *_cells(estimate, text)) for name, estimate, text in rows],
        title=f"Estimate for {pilot.size:,} samples, based on {len(pilot.uses):,}",
        notes=notes,
        numeric=(1, 2, 3),
    )


def _cells(estimate: Estimate | None, text: Callable[[float], str]) -> tuple[str, str, str]:
    if estimate is None:
        return NOT_MEASURED, NOT_MEASURED, "-"
    low, high = text(estimate.low), text(estimate.high)
    bounds = "-" if low == high else f"{low} to {high}"
    return text(estimate.per_sample), f"about {text(estimate.total)}", bounds


def _count(value: float) -> str:
    # The mean of a few whole numbers may have decimals; a total of thousands does not need them.
    return f"{value:,.1f}" if value < 10 and value % 1 else f"{value:,.0f}"


def duration_text(seconds: float) -> str:
    """Return a time in the unit in which it is easiest to read: "850 ms", "4.2 min", "1.5 h"."""
    if seconds < 60:
        return value_text(seconds, "s")
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
