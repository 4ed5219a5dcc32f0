"""The document of a recording, `benchmark_*.results.json` or `*.benchmark.json`, and its table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..core.display import number_or_null, value_text
from ..core.scoring import environment, utc_text
from ..core.scoring import now as right_now
from ..core.table import Table
from ..errors import PlanError
from ..io.benchmarks import save_benchmark
from ..io.files.atomic import write_bytes
from ..runs.store.state import SUFFIX, indented, with_metadata
from .bench import Baseline, Measurement, measurement_entry, pooled
from .bench_rules import Change

KIND = "benchmark"
Document = dict[str, Any]  # of JSON
_REPORTS = (".benchmark.json", ".benchmark.yaml", ".benchmark.parquet", ".benchmark.h5")


def recording(
    measured: Sequence[Measurement],
    baselines: Mapping[str, Baseline],
    worse: Sequence[Change],
    better: Sequence[Change] = (),
) -> Document:
    """Return what was measured, what was expected, and what became worse or better."""
    names = dict.fromkeys(one.operation for one in measured)
    together = {name: pooled([one for one in measured if one.operation == name]) for name in names}
    return {
        "operations": {name: measurement_entry(one) for name, one in together.items()},
        "comparisons": {
            name: _comparison(one, baselines[name])
            for name, one in together.items()
            if name in baselines and baselines[name].recordings and one.count
        },
        "not_measured": [name for name in baselines if name not in names],
        "regressions": [_change(one) for one in worse],
        "worst_severity": worse[0].severity if worse else None,
        "improvements": [_change(one) for one in better],
    }


def save_recording(document: Document, path: str | Path, *, force: bool = False) -> Path:
    """Write the document in the form that the name says."""
    path = Path(path)
    if path.name.endswith(SUFFIX):
        results = with_metadata(_as_results(document, path), KIND, path)
        write_bytes(path, indented(results), force=force)
    else:
        save_benchmark(_as_report(document), path, force=force)
    return path


def check_report_name(path: str | Path) -> None:
    """Raise PlanError for a name that no command would recognise as a report."""
    name = Path(path).name
    if not name.endswith((SUFFIX, *_REPORTS)):
        stem = Path(name).stem
        fix = f"Use benchmark_{stem}{SUFFIX} or {stem}{_REPORTS[0]}."
        raise PlanError(f"--report {name!r:.80}: the name must show what the file is. {fix}")


def _change(one: Change) -> Document:
    fields = asdict(one)
    del fields["verdict"]  # the list that the change is in says it
    if not one.severity:
        del fields["severity"]
    # A baseline of 0 has no relative change, and a new operation has no baseline.
    numbers = {"change": number_or_null(one.change), "baseline": number_or_null(one.baseline)}
    return {**fields, **numbers, "message": one.message}


def _comparison(one: Measurement, baseline: Baseline) -> Document:
    expected = baseline.expected
    change = one.mean_duration / expected.mean_duration - 1 if expected.mean_duration else None
    return {
        "current_mean": one.mean_duration,
        "baseline_mean": expected.mean_duration,
        "improvement": None if change is None else -change,
        "baseline_samples": expected.count,
        "lacking_samples": baseline.lacking_samples(),
    }


def _as_results(document: Document, path: Path) -> Document:
    entries = document["operations"].values()
    # Operations are parts of the same calls: their sum would count a call several times.
    good = max((entry["sample_count"] for entry in entries), default=0)
    failed = max((entry["failed_count"] for entry in entries), default=0)
    return {
        "evaluation_id": path.name.removesuffix(SUFFIX),
        "timestamp": utc_text(right_now()),
        "dataset_id": KIND,
        "summary": {"total_queries": good + failed, "successful_queries": good, "failed_queries": failed},
        "retrieval_metrics": {},
        **document,
        "metadata": {"evaluation_environment": environment()},
    }


def _as_report(document: Document) -> Document:
    entries = document["operations"]

    def each(key: str) -> Document:
        return {name: entry[key] for name, entry in entries.items() if entry[key] is not None}

    return {
        "metadata": {
            "generated_at": utc_text(right_now()),
            "benchmark_type": "recording",
            "hardware_specs": environment(),
        },
        "summary": {
            "latency_stats": each("mean_duration"),
            "throughput_stats": each("throughput"),
            "resource_stats": {"memory_mb": each("mean_memory")},
        },
        "detailed_results": entries,
        "comparisons": document["comparisons"],
        "recommendations": [
            {"type": one["quantity"], "severity": one["severity"], "message": one["message"], "actions": []}
            for one in document["regressions"]
        ],
    }


def measurement_table(
    measured: Sequence[Measurement],
    baselines: Mapping[str, Baseline] | None = None,
    changes: Sequence[Change] = (),
) -> Table:
    """Return what was measured of each operation; with baselines, also how it compares with them."""
    headings = ["Operation", "Answered", "Failed", "Mean", "Memory", "Throughput"]
    rows = [
        [
            one.operation,
            f"{one.count:,}",
            f"{one.failed:,}",
            value_text(one.mean_duration, "s"),
            "-" if one.mean_memory is None else f"{one.mean_memory:,.0f} MB",
            "-" if one.throughput is None else f"{one.throughput:.3g}/s",
        ]
        for one in measured
    ]
    if baselines is not None:
        headings += ["Baseline", "Change", "State"]
        for row, one in zip(rows, measured, strict=True):
            row += _against_baseline(one, baselines.get(one.operation), changes)
    return Table(headings, rows, numeric=range(1, 8))


def _against_baseline(one: Measurement, baseline: Baseline | None, changes: Sequence[Change]) -> list[str]:
    own = [change for change in changes if change.operation == one.operation]
    state = own[0].severity or str(own[0].verdict) if own else "ok"
    if baseline is None or not baseline.recordings:
        return ["-", "-", state if own else "new"]
    if not own and baseline.lacking_samples():
        state = f"baseline lacks {baseline.lacking_samples()}"
    mean = baseline.expected.mean_duration
    change = f"{one.mean_duration / mean - 1:+.0%}" if mean and math.isfinite(one.mean_duration) else "-"
    return [value_text(mean, "s"), change, state]
