"""Verify stored experiments, recordings of benchmarks and baselines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import AueporaError, DataError
from ..io.benchmarks.document import load_benchmark
from ..io.files.atomic import file_name
from ..io.results.document import experiment_metrics
from ..io.schema.validate import DataFormatValidator, ErrorsError
from ..runs.store.state import SUFFIX, read_results
from ..runs.store.storage import EvaluationResultsStorage, metric_values
from ..runs.store.verify import (
    DOES_NOT_FIT,
    FITS,
    RUN_OF,
    UNCHECKED,
    Check,
    Verification,
    check_same,
    verify_run,
)
from .bench import Baseline, measurement_entry, read_baselines

AB_TEST, BENCHMARK = "ab_test", "benchmark"
_BENCHMARKS = (".json", ".yaml", ".yml", ".parquet", ".h5", ".hdf5")
_SUMMARY = ("total_queries", "failed_queries")


def document_kind(results: Mapping[str, Any]) -> str | None:
    """`ab_test` or `benchmark`, for the documents that we store beside runs; None for everything else."""
    note = results.get("_metadata")
    kind = note.get("evaluation_type") if isinstance(note, dict) else None
    return kind if kind in (AB_TEST, BENCHMARK) else None


def is_benchmark_file(name: str | Path) -> bool:
    """Whether a file of that name is there, and its name does not say that it is a run's."""
    plain = Path(name).name.removesuffix(".gz")
    try:
        return plain.endswith(_BENCHMARKS) and not plain.endswith(SUFFIX) and Path(name).is_file()
    except (OSError, ValueError):  # too long, a NUL character
        return False


def verify_stored(storage: EvaluationResultsStorage, name: str | Path) -> Verification:
    """Recompute what can be recomputed, of a run or of a document beside runs; no system is called."""
    if is_benchmark_file(name):
        return _verified(Path(name).name, _benchmark_file(Path(name)), Path(name))
    path = storage.find(name)
    results = read_results(path)
    kind = document_kind(results)
    if kind is None:
        return verify_run(storage, name)
    checks = _experiment(results, path) if kind == AB_TEST else _recording(results, path)
    return _verified(str(results.get("evaluation_id")), checks, path)


def _verified(name: str, checks: Iterator[Check], path: Path) -> Verification:
    found = Verification(name)
    try:
        found.checks += checks
    except AueporaError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"cannot be read: {error!r:.80} is missing or wrong."
        raise DataError(path.name, what, fix="Was it edited?") from error
    return found


def _form(results: Mapping[str, Any], path: Path) -> Iterator[Check]:
    errors = DataFormatValidator().validate_evaluation_results(results)
    yield Check("form", DOES_NOT_FIT if errors else FITS, "; ".join(errors[:3]))
    # A copied or renamed file still has the id of the original.
    yield check_same("evaluation_id", results.get("evaluation_id"), path.name.removesuffix(SUFFIX))


def _experiment(results: Mapping[str, Any], path: Path) -> Iterator[Check]:
    """The runs of the variants are there, on the samples and with the values that the verdict is based on."""
    yield from _form(results, path)
    variants, winner = results["variants"], results["winner"]
    known = winner == "none" or winner in variants
    told = "" if known else f"{winner!r:.60} is none of the variants"
    yield Check("winner", FITS if known else DOES_NOT_FIT, told)
    totals = {key: sum(variant[key] for variant in variants.values()) for key in _SUMMARY}
    yield check_same("summary", {key: results["summary"][key] for key in _SUMMARY}, totals)
    for name, variant in variants.items():
        yield from _variant(results, name, variant, path.parent)
    what = "no test is made again: auepora experiment --force makes them"
    yield Check("tests and guardrails", UNCHECKED, what)


def _variant(
    results: Mapping[str, Any], name: str, variant: Mapping[str, Any], folder: Path
) -> Iterator[Check]:
    what = f"{RUN_OF}{name:.60}"
    path = folder / f"{file_name(variant['run'], 'run')}{SUFFIX}"
    if not path.is_file():
        # Not an error: results may be passed on without the runs they are based on.
        yield Check(what, UNCHECKED, f"{path.name} is not beside it")
        return
    run = read_results(path)
    yield check_same(f"{what}: dataset_sha256", variant["dataset_sha256"], run["metadata"]["dataset_sha256"])
    summary = {key: run["summary"][key] for key in _SUMMARY}
    yield check_same(f"{what}: summary", {key: variant[key] for key in _SUMMARY}, summary)
    values = {metric: value for metric, value, _ in metric_values(run)}
    told = {one["metric_name"]: one["variant_results"][name]["value"] for one in experiment_metrics(results)}
    yield check_same(f"{what}: values", told, {metric: values.get(metric) for metric in told})


def _recording(results: Mapping[str, Any], path: Path) -> Iterator[Check]:
    yield from _form(results, path)
    operations = results["operations"]
    means = {name: one["current_mean"] for name, one in results["comparisons"].items()}
    yield check_same("comparisons", means, {name: operations[name]["mean_duration"] for name in means})
    worse = results["regressions"]
    yield check_same("worst_severity", results["worst_severity"], worse[0]["severity"] if worse else None)
    yield Check("measurements", UNCHECKED, "they are of the files and runs that were recorded")


def _benchmark_file(path: Path) -> Iterator[Check]:
    try:
        data = load_benchmark(path)
    except ErrorsError as error:
        yield Check("form", DOES_NOT_FIT, "; ".join(error.errors[:3]))
        return
    yield Check("form", FITS)
    entries = data.get("baselines")
    if not isinstance(entries, dict):
        yield Check("measurements", UNCHECKED, "the file has nothing to compare them with")
        return
    for name, baseline in read_baselines(path).items():
        yield _pool(name, entries[name], baseline)


def _pool(name: str, entry: Mapping[str, Any], baseline: Baseline) -> Check:
    what = f"baseline {name:.60}"
    if not entry.get("recordings"):
        return Check(what, UNCHECKED, "it keeps no recordings")
    expected = measurement_entry(baseline.expected) if baseline.recordings else {}
    keys = ("mean_duration", "std_duration", "mean_memory", "sample_count")
    return check_same(what, {key: entry.get(key) for key in keys}, {key: expected.get(key) for key in keys})
