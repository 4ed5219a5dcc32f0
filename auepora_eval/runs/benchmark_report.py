"""What a recording found as a document: `benchmark_*.results.json`, or a report, `*.benchmark.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..core.scoring import environment, utc_text
from ..core.scoring import now as right_now
from ..errors import PlanError
from ..io.atomic import write_bytes
from ..io.benchmark_json import save_benchmark
from ..io.results_json import number_or_null
from .benchmark_baselines import Baseline, measurement_entry, pooled
from .benchmark_measurements import Measurement
from .benchmark_rules import Improvement, Regression, lacking_samples
from .storage import SUFFIX
from .writer import indented, with_metadata

KIND = "benchmark"
_REPORTS = (".benchmark.json", ".benchmark.yaml", ".benchmark.parquet", ".benchmark.h5")


def recording(
    found: Sequence[Measurement],
    baselines: Mapping[str, Baseline],
    worse: Sequence[Regression],
    better: Sequence[Improvement] = (),
) -> dict[str, Any]:
    """What was measured, what was expected, and what became worse or better."""
    names = dict.fromkeys(one.operation for one in found)
    together = {name: pooled([one for one in found if one.operation == name]) for name in names}
    return {
        "operations": {name: measurement_entry(one) for name, one in together.items()},
        "comparisons": {
            name: _comparison(one, baselines[name])
            for name, one in together.items()
            if name in baselines and baselines[name].recordings and one.count
        },
        "not_measured": [name for name in baselines if name not in names],
        "regressions": [_regression(one) for one in worse],
        "worst_severity": worse[0].severity if worse else None,
        "improvements": [
            {**asdict(one), "change": number_or_null(one.change), "message": one.message} for one in better
        ],
    }


def save_recording(document: Mapping[str, Any], path: str | Path, *, force: bool = False) -> Path:
    """Write the document in the form that the name says."""
    path = Path(path)
    if path.name.endswith(SUFFIX):
        results = with_metadata(_as_results(document, path), KIND, path)
        write_bytes(path, indented(results), force=force)
    else:
        save_benchmark(_as_report(document), path, force=force)
    return path


def refuse_report_name(path: str | Path) -> None:
    """PlanError for a name that no command would know again as a report."""
    name = Path(path).name
    if not name.endswith((SUFFIX, *_REPORTS)):
        raise PlanError(
            f"--report {name!r:.80}: the name tells what a file is. Use benchmark_{Path(name).stem}{SUFFIX} "
            f"or {Path(name).stem}{_REPORTS[0]}."
        )


def _regression(one: Regression) -> dict[str, Any]:
    # Of nothing no share is known, and an operation that is new has no baseline.
    numbers = {"change": number_or_null(one.change), "baseline": number_or_null(one.baseline)}
    return {**asdict(one), **numbers, "message": one.message}


def _comparison(one: Measurement, baseline: Baseline) -> dict[str, Any]:
    expected = baseline.expected
    change = one.mean_duration / expected.mean_duration - 1 if expected.mean_duration else None
    return {
        "current_mean": one.mean_duration,
        "baseline_mean": expected.mean_duration,
        "improvement": None if change is None else -change,
        "baseline_samples": expected.count,
        "lacking_samples": lacking_samples(baseline),
    }


def _as_results(document: Mapping[str, Any], path: Path) -> dict[str, Any]:
    entries = document["operations"].values()
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


def _as_report(document: Mapping[str, Any]) -> dict[str, Any]:
    entries = document["operations"]

    def each(key: str) -> dict[str, Any]:
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
