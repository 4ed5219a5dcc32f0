"""How long operations took and what they used: measured from a stored run, or read from a benchmark file.

Of a run every timing is an operation (`end_to_end`, `retrieval`, ...); of benchmark records each has its own;
a suite's queries are `query_processing`. Failed calls are counted and take no part in the means. Throughput
is by the clock of a whole run, and not known where no clock tells it: 1 / duration would say nothing new, and
would not see that eight calls at a time became one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from ..core.scoring import utc_text
from ..core.types import is_time
from ..errors import DataError
from ..io.benchmark_json import load_benchmark
from .journal import JOURNAL
from .storage import SUFFIX, EvaluationResultsStorage, read_results, stored_predictions

SUITE = "query_processing"
_END_TO_END = "end_to_end"


@dataclass(frozen=True)
class Measurement:
    """What one source says of an operation. Durations are in seconds, memory is in MB, throughput a second.

    `count` calls were answered and `failed` were not; if all failed, the mean is NaN. `quantities` are
    whatever else a suite measures of its experts: routing accuracy, latency, ...
    """

    operation: str
    count: int
    mean_duration: float
    std_duration: float | None = None
    mean_memory: float | None = None
    throughput: float | None = None
    failed: int = 0
    quantities: Mapping[str, float] = field(default_factory=dict)
    timestamp: str = ""
    source: str = ""

    @property
    def failed_share(self) -> float:
        """The share of calls that failed."""
        return self.failed / (self.count + self.failed) if self.failed else 0.0


class _From(NamedTuple):
    """When something was measured, and what says so."""

    timestamp: str
    source: str


def measurements(name: str, storage: EvaluationResultsStorage) -> list[Measurement]:
    """What a source says: a stored run by id or path, a results file, or a benchmark file."""
    path = Path(name)
    if path.is_file() and not path.name.removesuffix(".gz").endswith(SUFFIX):
        found = measurements_of_benchmark(load_benchmark(path), path.name)
    else:
        path = storage.find(name)
        found = _of_results(read_results(path), path)
    if not found:
        what = "nothing was timed in it."
        raise DataError(path.name, what, fix="Name a run whose outputs have timings, or benchmark records.")
    return found


def time_of(stamp: Any) -> datetime | None:
    """A timestamp of a file, ISO 8601 or seconds since 1970; None where it is neither."""
    try:
        if isinstance(stamp, str):
            time = datetime.fromisoformat(stamp)
            return time if time.tzinfo else time.replace(tzinfo=UTC)
        return None if stamp is None else datetime.fromtimestamp(float(stamp), UTC)
    except (ValueError, OverflowError, OSError, TypeError):
        return None


def measurements_of_results(results: Mapping[str, Any], where: str) -> list[Measurement]:
    """What a recording of ours says of its operations."""
    about = _From(_text_of(results.get("timestamp")), str(results.get("evaluation_id") or where))
    told = results.get("operations")
    operations = told if isinstance(told, dict) else {}
    return [_told(name, entry, about, where) for name, entry in operations.items()]


def _of_results(results: Mapping[str, Any], path: Path) -> list[Measurement]:
    stamp = results.get("timestamp")
    about = _From(_text_of(stamp), str(results.get("evaluation_id") or path.name))
    if isinstance(results.get("operations"), dict):
        return measurements_of_results(results, path.name)
    performance = results.get("performance_metrics")
    performance = performance if isinstance(performance, dict) else {}
    memory = _number(_dig(performance, "resource_usage", "memory_mb", "mean"))
    total = _number(_dig(results, "summary", "total_evaluation_time_seconds"))
    folder = path.with_name(path.name.removesuffix(SUFFIX) + ".run")
    if folder.is_dir():
        # A run that was only scored called nothing, and one that was gone on with had several clocks.
        called = performance.get("resource_usage") is not None and not _was_resumed(folder)
        workers = _number(_dig(results, "configuration", "concurrency")) or 1.0
        return _of_timings(path, memory, about, (total, workers) if called and total else None)
    # A results file of another tool: it has no outputs, but may say how long they took.
    mean = _number(_dig(performance, "latency_stats", "mean"))
    count = _dig(results, "summary", "successful_queries")
    if mean is None or not isinstance(count, int) or isinstance(count, bool) or count < 1:
        return []
    failed = _dig(results, "summary", "failed_queries")
    return [
        Measurement(
            _END_TO_END,
            count,
            mean / 1000,
            mean_memory=memory,
            throughput=count / total if total else None,
            failed=failed if isinstance(failed, int) and failed > 0 else 0,
            timestamp=about.timestamp,
            source=about.source,
        )
    ]


def _of_timings(
    path: Path, memory: float | None, about: _From, clock: tuple[float, float] | None
) -> list[Measurement]:
    """The timings of a stored run, by their names. Memory, failures and the clock are of its whole calls."""
    seconds: dict[str, list[float]] = {}
    failed = 0
    total = 0
    for _, record in stored_predictions(path):
        total += 1
        failed += record.get("error") is not None
        timings = record.get("timings") if record.get("error") is None else None
        for name, value in (timings or {}).items():
            if is_time(value):
                seconds.setdefault(name, []).append(float(value))
    if failed and failed == total:
        seconds = {_END_TO_END: []}
    return [
        replace(_measured(name, values, memory, failed, about), throughput=_by_the_clock(values, clock))
        if name == _END_TO_END
        else _measured(name, values, None, 0, about)
        for name, values in seconds.items()
    ]


def _by_the_clock(seconds: list[float], clock: tuple[float, float] | None) -> float | None:
    """Answers a second; None if the clock cannot have run all the while, as when answers were kept before."""
    if clock is None or not seconds or math.fsum(seconds) > 1.01 * clock[0] * clock[1]:
        return None
    return len(seconds) / clock[0]


def _was_resumed(folder: Path) -> bool:
    journal = folder / JOURNAL
    if not journal.is_file():
        return False
    with journal.open("rb") as lines:  # inside a text the quotes would be escaped
        return any(b'"type":"resume"' in line for line in lines)


def measurements_of_benchmark(data: Mapping[str, Any], where: str) -> list[Measurement]:
    """What benchmark data say: records, a suite or a report."""
    if isinstance(data.get("records"), list):
        return _of_records(data["records"], where)
    if isinstance(data.get(SUITE), dict):
        return [_of_suite(data, where)]
    operations = _dig(data, "detailed_results")
    if isinstance(operations, dict):
        about = _From(_text_of(_dig(data, "metadata", "generated_at")), where)
        return [_told(name, entry, about, where) for name, entry in operations.items()]
    what = "it has no measurements: neither records nor the results of a suite."
    raise DataError(where, what, fix="Baselines go behind --baselines.")


def _of_records(records: Iterable[Mapping[str, Any]], where: str) -> list[Measurement]:
    by_operation: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        by_operation.setdefault(record["operation"], []).append(record)
    found = []
    for name, each in by_operation.items():
        good = [record for record in each if record.get("success", True)]
        memory = [record["memory_usage"] for record in good if record.get("memory_usage") is not None]
        latest = max((time_of(record["timestamp"]) for record in each), key=_or_earliest)
        about = _From(utc_text(latest.astimezone(UTC)) if latest else "", where)
        durations = [float(record["duration"]) for record in good]
        failed = len(each) - len(good)
        found.append(_measured(name, durations, fmean(memory) if memory else None, failed, about))
    return found


def _or_earliest(time: datetime | None) -> datetime:
    return time or datetime.min.replace(tzinfo=UTC)


def _of_suite(suite: Mapping[str, Any], where: str) -> Measurement:
    told = suite[SUITE]
    mean, count = _number(told.get("average_time")), told.get("total_queries")
    if mean is None or not isinstance(count, int) or count < 1:
        what = "a suite without average_time or total_queries measures nothing."
        raise DataError(f"{where}: $.{SUITE}", what, fix="Add them.")
    quantities = suite.get("moe_performance")
    numbers = {name: _number(value) for name, value in (quantities or {}).items()}
    usage = suite.get("resource_usage") or {}
    memory = [_number(_dig(usage, "memory_mb", "mean")), _number(usage.get("memory_mb"))]
    return Measurement(
        operation=SUITE,
        count=count,
        mean_duration=mean,
        std_duration=_number(told.get("standard_deviation")),
        mean_memory=next((value for value in memory if value is not None), None),
        throughput=_number(told.get("throughput")),
        quantities={name: value for name, value in numbers.items() if value is not None},
        timestamp=_text_of(_dig(suite, "summary", "benchmark_timestamp")),
        source=where,
    )


def _told(name: str, entry: Any, about: _From, where: str) -> Measurement:
    """An operation of a document that we wrote ourselves."""
    fields = entry if isinstance(entry, dict) else {}
    mean, count = _number(fields.get("mean_duration")), fields.get("sample_count")
    failed = fields.get("failed_count")
    failed = failed if isinstance(failed, int) and failed > 0 else 0
    if mean is None and count == 0 and failed:
        mean = math.nan
    if mean is None or not isinstance(count, int):
        raise DataError(f"{where}: {name:.80}", "has no mean_duration or sample_count.", fix="Add them.")
    quantities = fields.get("quantities")
    return Measurement(
        operation=name,
        count=count,
        mean_duration=mean,
        std_duration=_number(fields.get("std_duration")),
        mean_memory=_number(fields.get("mean_memory")),
        throughput=_number(fields.get("throughput")),
        failed=failed,
        quantities={
            key: float(value)
            for key, value in (quantities if isinstance(quantities, dict) else {}).items()
            if _number(value) is not None
        },
        timestamp=about.timestamp,
        source=about.source,
    )


def _measured(
    name: str, seconds: list[float], memory: float | None, failed: int, about: _From
) -> Measurement:
    return Measurement(
        operation=name,
        count=len(seconds),
        mean_duration=fmean(seconds) if seconds else math.nan,
        std_duration=stdev(seconds) if len(seconds) > 1 else None,
        mean_memory=memory,
        failed=failed,
        timestamp=about.timestamp,
        source=about.source,
    )


def _dig(data: Any, *names: str) -> Any:
    for name in names:
        data = data.get(name) if isinstance(data, dict) else None
    return data


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


def _text_of(stamp: Any) -> str:
    time = time_of(stamp)
    return "" if time is None else utc_text(time.astimezone(UTC))
