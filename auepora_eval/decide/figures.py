"""The numbers of a run that a gate can ask about: its metrics, and what its calls took.

What the calls took goes by its name in a results file: `latency_stats.p95` (milliseconds), `memory_mb.peak`,
`cpu_percent.mean`, `total_tokens`, `total_requests`, `estimated_cost_usd`, `total_evaluation_time_seconds`.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..comparison.checks import failed_by_metric
from ..comparison.paired_tests import is_of_time
from ..core.scores import as_columns
from ..core.scoring import Tally
from ..core.types import EvaluationRun, MetricResult
from ..errors import AueporaError, DataError, did_you_mean
from ..io.results.document import latency_stats
from ..metrics.parse import parse_metric
from ..store.state import read_results_head
from ..store.storage import EvaluationResultsStorage
from .gate_report import Limits

_TO_STORE = "runs"  # folder for a run that is in memory: a command reads stored runs only
_API = ("total_tokens", "total_requests", "estimated_cost_usd", "input_tokens", "output_tokens")


@dataclass(frozen=True)
class Figure:
    """A number of a run: its 95% interval, and its range had all that failed scored lowest, and highest."""

    name: str
    value: float
    interval: Limits | None = None
    unit: str = ""
    higher_is_better: bool = False
    if_failed: tuple[float | None, float | None] | None = None
    scored: int | None = None
    failed: int = 0
    unmeasured: int = 0  # of those that failed: the metric could not score the answer
    of_time: bool = False  # seconds, what is done in a second, or answers in time
    counted: str = ""  # how the value was corrected, or how failed answers are counted in it
    judge: str = ""  # that scored it last, as --judge takes it
    uncorrected: str = ""  # why nobody knows how far the value of a judge is from that of people
    distrust: str = ""  # why the value of a judge cannot be used

    def worst(self, *, lowest: bool) -> float | None:
        """Return the value if all that failed had scored lowest, or highest; None if none could count."""
        if not self.failed or self.if_failed is None:
            return None
        worst = self.if_failed[0 if lowest else 1]
        if worst is None or math.isnan(worst):  # unbounded: seconds
            return -math.inf if lowest else math.inf
        return worst


@dataclass(frozen=True)
class GatedRun:
    """A run with what became of its calls, where that is known."""

    run: EvaluationRun
    tally: Tally | None = None
    latency: Mapping[str, Any] | None = None  # of the calls, in milliseconds
    api_usage: Mapping[str, Any] | None = None
    typed: str = ""  # how a user named the run, where one did
    flags: str = ""  # what a command needs besides to find it, " --out DIR"
    path: Path | None = None  # where it is stored, if it is read from there
    _figures: dict[str, Figure] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, run: EvaluationRun | GatedRun) -> GatedRun:
        """A run that is in memory; its outputs show what became of the calls."""
        if isinstance(run, GatedRun):
            return run
        if not run.outputs:
            return cls(run)
        tally = Tally().add(run.outputs)
        return cls(run, tally, latency_stats(tally.seconds), tally.usage.as_dict(run.configuration))

    @classmethod
    def stored(
        cls, storage: EvaluationResultsStorage, name: str, flags: str = "", *, with_scores: bool = True
    ) -> GatedRun:
        """A stored run, by its id or path; only rules that need a baseline need the scores."""
        path = storage.find(name)
        # This also checks that the document is what it should be.
        run = storage.load_run(path, texts=False) if with_scores else storage.load_summary(path)
        parts = read_results_head(path).get("performance_metrics", {})
        return cls(
            run,
            storage.load_tally(path),
            parts.get("latency_stats"),
            parts.get("api_usage"),
            typed=name,
            flags=flags,
            path=path.resolve(),
        )

    @property
    def evaluation_id(self) -> str:
        return self.run.evaluation_id

    @property
    def named(self) -> str:
        """The run as a command takes it; one that is in memory as it will be stored (`command_for`)."""
        name = self.typed or self.evaluation_id
        return shlex.quote((name if self.path is not None else f"{_TO_STORE}/{name}")[:200])

    def figures(self) -> Mapping[str, Figure]:
        """Every figure by its name."""
        if not self._figures:
            self._figures.update({figure.name: figure for figure in self._each()})
        return self._figures

    def find(self, name: str) -> Figure | None:
        """A figure by its name, or by another way to write the name of a metric (mean_latency)."""
        figure = self.figures().get(name)
        return figure if figure is not None else self.figures().get(canonical(name))

    def near(self, name: str) -> str:
        """What to do about a name that is not there."""
        metric = metric_name(name)
        if metric is not None:
            return self.score_command(metric, "Score it")
        names = list(self.figures())
        more = ", ..." if len(names) > 12 else ""
        return did_you_mean(name, names, f"The run has {', '.join(names[:12])}{more}.")

    def needs_judge(self, metric: str) -> bool:
        """Whether a metric is one of verdicts."""
        name = metric_name(metric)
        return name is not None and parse_metric(name).needs_judge

    def score_command(self, metric: str, what: str, judge: str = "") -> str:
        """What to do, with the command that computes a metric; failed verdicts are asked again by it.

        It names the judge, by default that of the run.
        """
        command = f"score --run {self.named}"
        if self.needs_judge(metric):
            known = self.find(metric)
            judge = judge or (known.judge if known is not None and known.judge else "NAME")
            command = f"judge {self.named} --judge {shlex.quote(judge)}"
        return f"{what}: {command_for(f'{command} --metrics {shlex.quote(metric)}', self)}"

    def _each(self) -> Iterator[Figure]:
        yield from (metric_figure(result) for result in self.run.results)
        usage = self.run.resource_usage
        for part, unit in (("memory_mb", "MB"), ("cpu_percent", "%")):
            yield from _numbers(usage.get(part) if isinstance(usage, Mapping) else None, part, unit)
        yield from self._times()
        if isinstance(self.api_usage, Mapping):
            yield from _numbers({name: self.api_usage.get(name) for name in _API})
        if self.run.seconds:
            yield Figure("total_evaluation_time_seconds", self.run.seconds, unit="s")

    def _times(self) -> Iterator[Figure]:
        """What the answered calls took, and what it could be with those that failed."""
        tally = self.tally or Tally()
        failed = tally.failed
        # A call that failed could have taken any time.
        low, high = (latency_stats([*tally.seconds, *[end] * failed]) or {} for end in (0.0, math.inf))
        for figure in _numbers(self.latency, "latency_stats", "ms"):
            part = figure.name.removeprefix("latency_stats.")
            limits = (low.get(part), high.get(part)) if failed else None
            yield replace(figure, if_failed=limits, failed=failed)


def command_for(words: str, *runs: GatedRun) -> str:
    """Return a command that reads runs. Those that are only in memory have to be stored first."""
    flags = next((run.flags for run in runs if run.flags), "")
    store = "" if all(run.path is not None for run in runs) else f'run.save("{_TO_STORE}"), then '
    return f"{store}auepora {words}{flags}"


def metric_figure(result: MetricResult) -> Figure:
    """Return a metric's value with its interval, its range with failures scored, and its coverage."""
    for name, limits in (("confidence_interval", result.interval), ("bounds_if_failed", result.if_failed)):
        value = result.details.get(name)
        # Not measured is null. Anything else that cannot be read as limits must not pass as "no limits".
        if value is not None and limits is None:
            what, fix = f"its {name} is {value!r:.60}, which no run writes.", "auepora show RUN --verify"
            raise DataError(result.name[:200], what, fix=f"Was the file edited? {fix} checks it.")
    trust = None
    if "judge" in result.details or "judge" in result.signature:
        from ..judges.trust.record import trust_of  # imported only for judged metrics: it takes time

        trust = trust_of(result)
    corrected = None if trust is None else trust.corrected
    counted = "" if trust is None else f"as the judge gave it; {trust.uncorrected}"
    if corrected is not None:
        counted = f"corrected by labels of people; the judged value is {result.value:.4g}"
    coverage = as_columns(result.scores).coverage() if len(result.scores) else result.coverage
    if_failed = result.if_failed
    if coverage.failed and "bounds_if_failed" not in result.details:
        # A metric of a user's own without a score per sample: what failed could have been anything.
        if_failed = (None, None)
    return Figure(
        result.name,
        # A gate decides on the corrected value and its interval, never on one of each.
        result.value if corrected is None else corrected.value,
        result.interval if corrected is None else corrected.interval,
        "s" if result.unit == "s" else "",
        result.higher_is_better,
        if_failed,
        coverage.scored if len(result.scores) or result.reports_coverage else None,
        coverage.failed,
        failed_by_metric(result),
        is_of_time(result),
        counted,
        judge="" if trust is None else trust.judge,
        uncorrected="" if trust is None else trust.uncorrected,
        distrust="" if trust is None else trust.distrust,
    )


def canonical(name: str) -> str:
    """The name that a run keeps a metric under: mean_latency is mean_latency[end_to_end]."""
    return metric_name(name) or name


def metric_name(name: str) -> str | None:
    """Return the same, or None for a name that is not a metric."""
    try:
        return parse_metric(name).name
    except (AueporaError, ValueError):
        return None


def _numbers(record: Any, under: str = "", unit: str = "") -> Iterator[Figure]:
    """The numbers of a part of a results file; one that was not measured is NaN."""
    if not isinstance(record, Mapping):
        return
    for key, value in record.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        name = f"{under}.{key}" if under else str(key)
        yield Figure(name, float(value) if number else math.nan, unit=unit)
