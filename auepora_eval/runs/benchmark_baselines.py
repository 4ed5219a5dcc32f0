"""What to expect of an operation: the baseline file, and measurements that are taken into it.

A baseline is the pool of its last recordings, which the file keeps: so each counts by its samples, and the
last seven days can be looked at by themselves. An entry of another tool, which has no recordings, is one.
Where an operation has surely changed a new baseline begins: pooled with what was before, a later change for
the worse would not be seen. What was before is kept as `history`, and nothing is held against it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from ..errors import DataError, StorageError
from ..io.benchmark_json import load_benchmark, save_benchmark
from ..io.results_json import number_or_null
from .benchmark_measurements import Measurement, time_of
from .lock import RunLock

DEFAULT_FILE = "data/benchmarks/performance/baselines.benchmark.json"
THRESHOLDS: dict[str, float] = {
    "duration_regression_threshold": 1.5,
    "memory_regression_threshold": 1.2,
    "min_samples_for_baseline": 5,
}
WINDOW = timedelta(days=7)
_RECORDINGS = 100
_PATIENCE = 60  # seconds


@dataclass(frozen=True)
class Baseline:
    """The recordings of an operation, oldest first, and the thresholds it is held to.

    `history` was recorded before this baseline began.
    """

    operation: str
    recordings: tuple[Measurement, ...]
    thresholds: Mapping[str, float] = field(default_factory=lambda: dict(THRESHOLDS))
    history: tuple[Measurement, ...] = ()

    @property
    def expected(self) -> Measurement:
        """All recordings as one measurement."""
        return pooled(self.recordings)

    def threshold(self, name: str) -> float:
        """One of the thresholds, as the file has it, or else as it usually is."""
        return self.thresholds.get(name, THRESHOLDS[name])

    def lately(self, measurement: Measurement) -> Measurement | None:
        """What was recorded in the seven days before a measurement; None if there was nothing."""
        now = time_of(measurement.timestamp)
        if now is None:
            return None
        times = [(time_of(one.timestamp), one) for one in self.recordings]
        recent = [one for then, one in times if then is not None and now - WINDOW <= then <= now]
        return pooled(recent) if recent else None

    def knows(self, measurement: Measurement) -> bool:
        """Whether this very measurement was recorded before; another one of the same name and time is not."""
        return measurement in self.recordings or measurement in self.history

    def beginning_with(self, first: Measurement) -> Baseline:
        """A new baseline from one of the recordings on; those before it are history."""
        place = self.recordings.index(first)
        history = (*self.history, *self.recordings[:place])[-_RECORDINGS:]
        return replace(self, recordings=self.recordings[place:], history=history)


def pooled(recordings: Sequence[Measurement]) -> Measurement:
    """Several measurements of one operation as one, each counting by its samples."""
    failed = sum(one.failed for one in recordings)
    if not any(one.count for one in recordings):
        return replace(recordings[-1], failed=failed)
    recordings = [one for one in recordings if one.count]
    count = sum(one.count for one in recordings)
    mean = math.fsum(one.count * one.mean_duration for one in recordings) / count
    within: float | None = 0.0
    for one in recordings:
        spread = 0.0 if one.count == 1 else one.std_duration
        within = None if within is None or spread is None else within + (one.count - 1) * spread**2
    between = math.fsum(one.count * (one.mean_duration - mean) ** 2 for one in recordings)
    known = [one for one in recordings if one.throughput]
    seconds = math.fsum(one.count / (one.throughput or math.nan) for one in known)
    names = dict.fromkeys(name for one in recordings for name in one.quantities)
    return replace(
        recordings[-1],
        count=count,
        mean_duration=mean,
        std_duration=None if within is None or count < 2 else math.sqrt((within + between) / (count - 1)),
        mean_memory=_mean([(one.mean_memory, one.count) for one in recordings]),
        throughput=sum(one.count for one in known) / seconds if known else None,
        failed=failed,
        quantities={
            name: value
            for name in names
            if (value := _mean([(one.quantities.get(name), one.count) for one in recordings])) is not None
        },
    )


def read_baselines(path: str | Path) -> dict[str, Baseline]:
    """The baselines of a file, by operation; none if there is no such file yet."""
    path = Path(path)
    if not path.exists():
        return {}
    data = load_benchmark(path)
    entries = data.get("baselines")
    if not isinstance(entries, dict):
        what = "these are benchmark data, but no baselines."
        raise DataError(path.name, what, fix="Name another file; a new one is made.")
    return {name: _baseline(name, entry, f"{path.name}: {name:.80}") for name, entry in entries.items()}


def with_recordings(
    baselines: Mapping[str, Baseline], found: Sequence[Measurement], *, anew: Collection[Measurement] = ()
) -> dict[str, Baseline]:
    """The baselines with further measurements in them; what was recorded before is not counted twice.

    With each of `anew` a new baseline of its operation begins. Of an operation that failed every time there
    is nothing to expect.
    """
    changed = dict(baselines)
    for one in found:
        before = changed.get(one.operation, Baseline(one.operation, ()))
        known = before.recordings if one in anew else (*before.recordings, *before.history)
        if one.count and one not in known:
            changed[one.operation] = replace(before, recordings=(*before.recordings, one)[-_RECORDINGS:])
    for first in anew:
        if first.operation in changed and first in changed[first.operation].recordings:
            changed[first.operation] = changed[first.operation].beginning_with(first)
    return changed


def with_min_samples(baselines: Mapping[str, Baseline], count: int | None) -> dict[str, Baseline]:
    """The baselines, each asked for so many samples before anything is held against it."""
    if count is None:
        return dict(baselines)
    asked = {"min_samples_for_baseline": count}
    return {name: replace(one, thresholds={**one.thresholds, **asked}) for name, one in baselines.items()}


def write_baselines(baselines: Mapping[str, Baseline], path: str | Path) -> None:
    """Write the file of baselines, in the place of the one before."""
    entries = {name: _entry(baseline) for name, baseline in sorted(baselines.items())}
    save_benchmark({"baselines": entries}, path, force=True)


@contextmanager
def held(path: str | Path) -> Iterator[None]:
    """The right to read the baselines, judge by them and write them: whoever else records waits."""
    path = Path(path)
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            lock = RunLock(path.with_name(f".{path.name}.lock"))
            break
        except StorageError as error:
            if error.__cause__ is not None:  # no lock can be made there at all
                raise
            if time.monotonic() > until:
                what = f"{path} is being recorded in by others for over {_PATIENCE} s. Try again later."
                raise StorageError(what) from error
            time.sleep(0.02)
    with lock:
        yield


def measurement_entry(one: Measurement) -> dict[str, Any]:
    """A measurement as files have it."""
    return {
        "operation": one.operation,
        "mean_duration": number_or_null(one.mean_duration),
        "std_duration": one.std_duration,
        "mean_memory": one.mean_memory,
        "throughput": one.throughput,
        "sample_count": one.count,
        "failed_count": one.failed,
        **({"quantities": dict(one.quantities)} if one.quantities else {}),
    }


def _entry(baseline: Baseline) -> dict[str, Any]:
    expected = baseline.expected
    return {
        **measurement_entry(expected),
        "last_updated": expected.timestamp,
        "thresholds": {**THRESHOLDS, **baseline.thresholds},
        "recordings": list(map(_recording_entry, baseline.recordings)),
        **({"history": list(map(_recording_entry, baseline.history))} if baseline.history else {}),
    }


def _recording_entry(one: Measurement) -> dict[str, Any]:
    return {"timestamp": one.timestamp, "source": one.source, **measurement_entry(one)}


def _baseline(name: str, entry: Mapping[str, Any], where: str) -> Baseline:
    told, before = entry.get("recordings"), entry.get("history")
    recordings = told if isinstance(told, list) and told else [entry]
    history = before if isinstance(before, list) else []
    return Baseline(
        name,
        _recordings(name, recordings, where),
        {**THRESHOLDS, **(entry.get("thresholds") or {})},
        _recordings(name, history, where),
    )


def _recordings(name: str, records: Sequence[Any], where: str) -> tuple[Measurement, ...]:
    return tuple(one for record in records if (one := _recording(name, record, where)).count)


def _recording(name: str, record: Any, where: str) -> Measurement:
    fields = record if isinstance(record, dict) else {}
    numbers = ("mean_duration", "std_duration", "mean_memory", "throughput")
    values = {key: fields.get(key) for key in numbers}
    count, quantities = fields.get("sample_count"), fields.get("quantities") or {}
    wrong = [key for key, value in values.items() if value is not None and not _is_number(value)]
    if wrong or values["mean_duration"] is None or not isinstance(count, int) or isinstance(count, bool):
        what = f"a recording is not one: {wrong[0] if wrong else 'mean_duration or sample_count'} is wrong."
        raise DataError(where, what, fix="Correct it, or remove 'recordings' and 'history'.")
    if not isinstance(quantities, dict) or not all(map(_is_number, quantities.values())):
        raise DataError(where, "its quantities are not numbers.", fix="Correct them.")
    return Measurement(
        operation=name,
        count=count,
        failed=fields["failed_count"] if isinstance(fields.get("failed_count"), int) else 0,
        quantities=quantities,
        timestamp=str(fields.get("timestamp") or fields.get("last_updated") or ""),
        source=str(fields.get("source") or ""),
        mean_duration=float(values.pop("mean_duration") or 0.0),
        **{key: None if value is None else float(value) for key, value in values.items()},
    )


def _mean(pairs: Sequence[tuple[float | None, int]]) -> float | None:
    known = [(value, count) for value, count in pairs if value is not None]
    total = sum(count for _, count in known)
    return math.fsum(value * count for value, count in known) / total if total else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
