"""What to expect of an operation: the baseline file, and the measurements that are added to it.

A baseline is the pool of its last recordings, which the file keeps: each counts by its samples, and the last
seven days can be looked at on their own. An entry of another tool, which has no recordings, is one recording.
Where an operation has changed significantly, a new baseline starts: pooled with earlier recordings, a later
change for the worse would not be seen. Earlier recordings are kept as `history` and not compared with.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import msgspec
from msgspec.structs import replace

from ..core.display import number_or_null
from ..core.scoring import utc_text
from ..core.types import is_time
from ..errors import DataError, StorageError
from ..io.benchmarks import load_benchmark, save_benchmark
from ..io.json.records import converted
from ..runs.journal.journal import JOURNAL
from ..runs.journal.lock import RunLock
from ..runs.store.state import SUFFIX, read_results
from ..runs.store.storage import EvaluationResultsStorage, stored_predictions

DEFAULT_FILE = "data/benchmarks/performance/baselines.benchmark.json"
THRESHOLDS: dict[str, float] = {
    "duration_regression_threshold": 1.5,
    "memory_regression_threshold": 1.2,
    "min_samples_for_baseline": 5,
}
WINDOW = timedelta(days=7)
_RECORDINGS = 100  # kept of an operation; older ones are dropped
_LOCK_TIMEOUT = 60  # seconds
SUITE = "query_processing"  # the one operation of a benchmark suite
_END_TO_END = "end_to_end"


class Measurement(msgspec.Struct, frozen=True, rename={"count": "sample_count", "failed": "failed_count"}):
    """What one source says of an operation. Durations are in seconds, memory in MB, throughput per second.

    `count` calls were answered and `failed` were not; if all failed, the mean is NaN. `quantities` are
    whatever else a suite measures of its experts: routing accuracy, latency, ...
    """

    operation: str
    count: int
    mean_duration: float = math.nan
    std_duration: float | None = None
    mean_memory: float | None = None
    throughput: float | None = None
    failed: int = 0
    quantities: dict[str, float] = {}
    timestamp: str = ""
    source: str = ""

    @property
    def failed_share(self) -> float:
        """The share of calls that failed."""
        return self.failed / (self.count + self.failed) if self.failed else 0.0


class Baseline(msgspec.Struct, frozen=True):
    """The recordings of an operation, oldest first, and the thresholds it is held to.

    `history` was recorded before this baseline started.
    """

    operation: str
    recordings: tuple[Measurement, ...]
    thresholds: dict[str, float] = msgspec.field(default_factory=lambda: dict(THRESHOLDS))
    history: tuple[Measurement, ...] = ()

    @property
    def expected(self) -> Measurement:
        """All recordings as one measurement."""
        return pooled(self.recordings)

    def recent(self, measurement: Measurement) -> Measurement | None:
        """Return what was recorded in the seven days before a measurement; None if nothing was."""
        now = time_of(measurement.timestamp)
        if now is None:
            return None
        times = [(time_of(one.timestamp), one) for one in self.recordings]
        recent = [one for then, one in times if then is not None and now - WINDOW <= then <= now]
        return pooled(recent) if recent else None

    def lacking_samples(self) -> int:
        """Return how many samples the baseline lacks before it is used."""
        recorded = sum(one.count for one in self.recordings)
        return max(0, int(self.thresholds["min_samples_for_baseline"]) - recorded)

    def restarted(self, first: Measurement) -> Baseline:
        """Return a new baseline from one of the recordings on; those before it are history."""
        place = self.recordings.index(first)
        history = (*self.history, *self.recordings[:place])[-_RECORDINGS:]
        return replace(self, recordings=self.recordings[place:], history=history)


def pooled(recordings: Sequence[Measurement]) -> Measurement:
    """Return several measurements of one operation as one, each counting by its samples."""
    failed = sum(one.failed for one in recordings)
    if not any(one.count for one in recordings):
        return replace(recordings[-1], failed=failed)
    recordings = [one for one in recordings if one.count]
    count = sum(one.count for one in recordings)
    mean = math.fsum(one.count * one.mean_duration for one in recordings) / count
    # The variance of the pool is that within recordings plus that between their means. If the spread of one
    # recording is unknown, so is that of the pool.
    within: float | None = 0.0
    for one in recordings:
        spread = 0.0 if one.count == 1 else one.std_duration
        within = None if within is None or spread is None else within + (one.count - 1) * spread**2
    between = math.fsum(one.count * (one.mean_duration - mean) ** 2 for one in recordings)
    timed = [one for one in recordings if one.throughput]
    # Rates are pooled by time: the mean of rates would overweight the fast recordings.
    seconds = math.fsum(one.count / (one.throughput or math.nan) for one in timed)
    names = dict.fromkeys(name for one in recordings for name in one.quantities)
    return replace(
        recordings[-1],
        count=count,
        mean_duration=mean,
        std_duration=None if within is None or count < 2 else math.sqrt((within + between) / (count - 1)),
        mean_memory=_mean([(one.mean_memory, one.count) for one in recordings]),
        throughput=sum(one.count for one in timed) / seconds if timed else None,
        failed=failed,
        quantities={
            name: value
            for name in names
            if (value := _mean([(one.quantities.get(name), one.count) for one in recordings])) is not None
        },
    )


def read_baselines(path: str | Path) -> dict[str, Baseline]:
    """Return the baselines of a file, by operation; none if there is no such file yet."""
    path = Path(path)
    if not path.exists():
        return {}
    entries = load_benchmark(path).get("baselines")
    if not isinstance(entries, dict):
        what = "it has benchmark data, but no baselines."
        raise DataError(path.name, what, fix="Name another file; a new one is created.")
    return {name: _baseline(name, entry, f"{path.name}: {name:.80}") for name, entry in entries.items()}


def with_recordings(
    baselines: Mapping[str, Baseline],
    measured: Sequence[Measurement],
    *,
    restarts: Collection[Measurement] = (),
) -> dict[str, Baseline]:
    """Return the baselines with further measurements; what was recorded before is not counted twice.

    With each of `restarts` a new baseline of its operation starts. An operation that failed every time
    gets no baseline.
    """
    changed = dict(baselines)
    for one in measured:
        before = changed.get(one.operation, Baseline(one.operation, ()))
        # A recording that starts a new baseline may be in the history, and is added again from there.
        recorded = before.recordings if one in restarts else (*before.recordings, *before.history)
        if one.count and one not in recorded:
            changed[one.operation] = replace(before, recordings=(*before.recordings, one)[-_RECORDINGS:])
    for first in restarts:
        if first.operation in changed and first in changed[first.operation].recordings:
            changed[first.operation] = changed[first.operation].restarted(first)
    return changed


def write_baselines(baselines: Mapping[str, Baseline], path: str | Path) -> None:
    """Write the file of baselines in place of the previous one."""
    entries = {name: _baseline_entry(baseline) for name, baseline in sorted(baselines.items())}
    save_benchmark({"baselines": entries}, path, force=True)


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Hold the right to read the baselines, decide by them and write them; other recorders wait."""
    path = Path(path)
    until = time.monotonic() + _LOCK_TIMEOUT
    while True:
        try:
            lock = RunLock(path.with_name(f".{path.name}.lock"))
            break
        except StorageError as error:
            if error.__cause__ is not None:  # no lock can be created there at all
                raise
            if time.monotonic() > until:
                what = f"Others have been recording in {path} for over {_LOCK_TIMEOUT} s. Try again later."
                raise StorageError(what) from error
            time.sleep(0.02)
    with lock:
        yield


def measurement_entry(one: Measurement) -> dict[str, object]:
    """Return a measurement as files have it, without when and where it was taken."""
    entry = _recording_entry(one)
    return {name: value for name, value in entry.items() if name not in ("timestamp", "source")}


def _recording_entry(one: Measurement) -> dict[str, object]:
    entry: dict[str, object] = msgspec.to_builtins(one)
    entry["mean_duration"] = number_or_null(one.mean_duration)
    if not one.quantities:
        del entry["quantities"]
    return entry


def _baseline_entry(baseline: Baseline) -> dict[str, object]:
    expected = baseline.expected
    return {
        **measurement_entry(expected),
        "last_updated": expected.timestamp,
        "thresholds": baseline.thresholds,
        "recordings": list(map(_recording_entry, baseline.recordings)),
        **({"history": list(map(_recording_entry, baseline.history))} if baseline.history else {}),
    }


def _baseline(name: str, entry: Mapping[str, Any], where: str) -> Baseline:
    stamp = str(entry.get("last_updated") or "")
    recordings, history = (
        [measurement_of(name, one, where, stamp) for one in records]
        for records in (entry.get("recordings") or [entry], entry.get("history") or [])
    )
    return Baseline(
        name,
        tuple(one for one in recordings if one.count),
        {**THRESHOLDS, **(entry.get("thresholds") or {})},
        tuple(one for one in history if one.count),
    )


def measurement_of(
    name: str, entry: object, where: str, timestamp: str = "", source: str = ""
) -> Measurement:
    """Return the measurement that an entry of a file has; null is a number that was not measured."""
    fields = entry if isinstance(entry, dict) else {}
    # An entry has its own time and source, if it is a recording of a baseline.
    about = {"operation": name, "timestamp": timestamp, "source": source}
    about |= {key: str(fields[key]) for key in ("timestamp", "source") if fields.get(key)}
    measured = {key: value for key, value in fields.items() if value is not None}
    one = converted({**measured, **about}, Measurement, where)
    if one.count and math.isnan(one.mean_duration):
        raise DataError(where, "the field 'mean_duration' is missing.", fix="Add it.")
    return one


def _mean(pairs: Sequence[tuple[float | None, int]]) -> float | None:
    values = [(value, count) for value, count in pairs if value is not None]
    total = sum(count for _, count in values)
    return math.fsum(value * count for value, count in values) / total if total else None


# How long operations took and what they used: measured from a stored run, or read from a benchmark file.
#
# Every timing of a run is an operation (`end_to_end`, `retrieval`, ...); each benchmark record has its own;
# the queries of a suite are `query_processing`. Failed calls are counted and are not part of the means.
# Throughput is by the clock of a whole run, and unknown where there is no clock: 1 / duration would add
# nothing, and would not show that eight calls at a time became one.


def measurements(name: str, storage: EvaluationResultsStorage) -> list[Measurement]:
    """Return what a source says: a stored run by id or path, a results file, or a benchmark file."""
    path = Path(name)
    if path.is_file() and not path.name.removesuffix(".gz").endswith(SUFFIX):
        measured = measurements_of_benchmark(load_benchmark(path), path.name)
    else:
        path = storage.find(name)
        measured = _of_results(read_results(path), path)
    if not measured:
        what = "nothing was timed in it."
        raise DataError(path.name, what, fix="Name a run whose outputs have timings, or benchmark records.")
    return measured


def time_of(stamp: object) -> datetime | None:
    """Return the time of a timestamp, ISO 8601 or seconds since 1970; None if it is neither."""
    try:
        if isinstance(stamp, str):
            time = datetime.fromisoformat(stamp)
            # Taken as UTC, because a naive time cannot be compared with an aware one.
            return time if time.tzinfo else time.replace(tzinfo=UTC)
        return datetime.fromtimestamp(stamp, UTC) if isinstance(stamp, int | float) else None
    except (ValueError, OverflowError, OSError):
        return None


def measurements_of_results(results: Mapping[str, Any], where: str) -> list[Measurement]:
    """Return what a recording of ours says of its operations; none if it is not a recording."""
    stamp, source = _text_of(results.get("timestamp")), str(results.get("evaluation_id") or where)
    operations = results.get("operations")
    entries = operations.items() if isinstance(operations, dict) else ()
    return [measurement_of(name, entry, f"{where}: {name:.80}", stamp, source) for name, entry in entries]


def _of_results(results: Mapping[str, Any], path: Path) -> list[Measurement]:
    if isinstance(results.get("operations"), dict):
        return measurements_of_results(results, path.name)
    usage = _dig(results, "performance_metrics", "resource_usage")
    memory = _number(_dig(usage, "memory_mb", "mean"))
    total = _number(_dig(results, "summary", "total_evaluation_time_seconds"))
    folder = path.with_name(path.name.removesuffix(SUFFIX) + ".run")
    if folder.is_dir():
        # A run that was only scored called nothing, and one that was resumed had several clocks.
        called = usage is not None and not _was_resumed(folder)
        workers = _number(_dig(results, "configuration", "concurrency")) or 1.0
        measured = _of_timings(path, memory, (total, workers) if called and total else None)
    else:
        measured = _of_foreign_results(results, memory, total)
    stamp, source = _text_of(results.get("timestamp")), str(results.get("evaluation_id") or path.name)
    return [replace(one, timestamp=stamp, source=source) for one in measured]


def _of_foreign_results(
    results: Mapping[str, Any], memory: float | None, total: float | None
) -> list[Measurement]:
    """Return what a results file of another tool says, which has no outputs to measure."""
    mean = _number(_dig(results, "performance_metrics", "latency_stats", "mean"))  # milliseconds
    count = int(_number(_dig(results, "summary", "successful_queries")) or 0)
    if mean is None or count < 1:
        return []
    failed = int(_number(_dig(results, "summary", "failed_queries")) or 0)
    throughput = count / total if total else None
    one = Measurement(_END_TO_END, count, mean / 1000, None, memory, throughput, failed)
    return [one]


def _of_timings(path: Path, memory: float | None, clock: tuple[float, float] | None) -> list[Measurement]:
    """Return the timings of a stored run by name. Memory, failures and the clock are of whole calls.

    `clock` is how long the run took, in seconds, and how many calls it made at a time.
    """
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
        # An outage has no timings. Without an entry its failures would go unreported.
        seconds = {_END_TO_END: []}
    measured = {name: _measured(name, values) for name, values in seconds.items()}
    if _END_TO_END in seconds:
        calls = seconds[_END_TO_END]
        throughput = None
        # If the calls took longer than the clock allows, the clock missed some: answers were kept before.
        if clock is not None and calls and math.fsum(calls) <= 1.01 * clock[0] * clock[1]:
            throughput = len(calls) / clock[0]
        whole = replace(measured[_END_TO_END], mean_memory=memory, failed=failed, throughput=throughput)
        measured[_END_TO_END] = whole
    return list(measured.values())


def _was_resumed(folder: Path) -> bool:
    journal = folder / JOURNAL
    if not journal.is_file():
        return False
    with journal.open("rb") as lines:  # inside a text the quotes would be escaped
        return any(b'"type":"resume"' in line for line in lines)


def measurements_of_benchmark(data: Mapping[str, Any], where: str) -> list[Measurement]:
    """Return what benchmark data say: records, a suite or a report."""
    if isinstance(data.get("records"), list):
        return _of_records(data["records"], where)
    if isinstance(data.get(SUITE), dict):
        return [_of_suite(data, where)]
    operations = data.get("detailed_results")
    if isinstance(operations, dict):
        stamp = _text_of(_dig(data, "metadata", "generated_at"))
        return [
            measurement_of(name, entry, f"{where}: {name:.80}", stamp, where)
            for name, entry in operations.items()
        ]
    what = "it has no measurements: neither records nor the results of a suite."
    raise DataError(where, what, fix="Name a file of baselines with --baselines.")


def _of_records(records: Iterable[Mapping[str, Any]], where: str) -> list[Measurement]:
    by_operation: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        by_operation.setdefault(record["operation"], []).append(record)
    measured = []
    for name, each in by_operation.items():
        good = [record for record in each if record.get("success", True)]
        memory = [record["memory_usage"] for record in good if record.get("memory_usage") is not None]
        times = [time for record in each if (time := time_of(record["timestamp"])) is not None]
        one = _measured(name, [float(record["duration"]) for record in good])
        measured.append(
            replace(
                one,
                mean_memory=fmean(memory) if memory else None,
                failed=len(each) - len(good),
                timestamp=utc_text(max(times).astimezone(UTC)) if times else "",
                source=where,
            )
        )
    return measured


def _of_suite(suite: Mapping[str, Any], where: str) -> Measurement:
    queries = suite[SUITE]
    mean, count = _number(queries.get("average_time")), _number(queries.get("total_queries"))
    if mean is None or not count:
        what = "a suite needs average_time and total_queries."
        raise DataError(f"{where}: {SUITE}", what, fix="Add them.")
    experts = {name: _number(value) for name, value in (suite.get("moe_performance") or {}).items()}
    memory = _dig(suite, "resource_usage", "memory_mb")
    return Measurement(
        operation=SUITE,
        count=int(count),
        mean_duration=mean,
        std_duration=_number(queries.get("standard_deviation")),
        mean_memory=_number(memory["mean"] if isinstance(memory, dict) and "mean" in memory else memory),
        throughput=_number(queries.get("throughput")),
        quantities={name: value for name, value in experts.items() if value is not None},
        timestamp=_text_of(_dig(suite, "summary", "benchmark_timestamp")),
        source=where,
    )


def _measured(name: str, seconds: list[float]) -> Measurement:
    mean = fmean(seconds) if seconds else math.nan
    return Measurement(name, len(seconds), mean, stdev(seconds) if len(seconds) > 1 else None)


def _dig(data: Any, *names: str) -> Any:
    """Return what is under names in nested objects; None if there is no such thing."""
    for name in names:
        data = data.get(name) if isinstance(data, dict) else None
    return data


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _text_of(stamp: object) -> str:
    time = time_of(stamp)
    return "" if time is None else utc_text(time.astimezone(UTC))
