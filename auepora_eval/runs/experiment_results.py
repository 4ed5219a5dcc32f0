"""What an experiment found as a document, `ab_test_<experiment_id>.results.json`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..core.scoring import Tally, now, utc_text
from ..core.types import EvaluationRun
from ..io.atomic import write_bytes
from ..io.names import file_name
from ..io.results_json import number_or_null
from ..metrics.parse import parse_metric
from .experiment import Outcome
from .experiment_assignment import MISMATCH_BELOW
from .experiment_tests import PairTest
from .experiment_verdict import NOBODY, minimum_lead
from .storage import SUFFIX, EvaluationResultsStorage, read_results
from .writer import indented, with_metadata

KIND = "ab_test"


def results_name(experiment_id: str) -> str:
    """The evaluation id of an experiment's results."""
    return f"{KIND}_{experiment_id}"


def results_path(storage: EvaluationResultsStorage, experiment_id: str) -> Path:
    """Where the results of an experiment are, or will be."""
    return storage.results_directory / f"{file_name(results_name(experiment_id), 'experiment id')}{SUFFIX}"


def save_experiment(outcome: Outcome, storage: EvaluationResultsStorage, *, force: bool = False) -> Path:
    """Store what was found; an older file of the experiment is kept unless forced."""
    path = results_path(storage, outcome.experiment.experiment_id)
    document = with_metadata(experiment_results(outcome), KIND, path)
    write_bytes(path, indented(document), force=force)
    return path


def changed_rules(outcome: Outcome, storage: EvaluationResultsStorage) -> list[str]:
    """In what the verdict that is stored was made by other rules than this one: alpha, metrics, ..."""
    path = results_path(storage, outcome.experiment.experiment_id)
    before = read_results(path).get("configuration") if path.exists() else None
    if not isinstance(before, dict):
        return []
    return [key for key, value in _configuration(outcome).items() if before.get(key) != value]


def experiment_results(outcome: Outcome) -> dict[str, Any]:
    """The document: fields of a results file first, then those of an experiment."""
    experiment, found = outcome.experiment, outcome.verdict
    tallies = outcome.tallies
    first = next(iter(outcome.runs.values()))
    asked = {parse_metric(name).name for name in experiment.secondary_metrics}
    others = [result.name for result in first.results if result.name != outcome.primary]
    of_primary = [test for test in outcome.tests if test.metric == outcome.primary]
    total, failed = (sum(getattr(tally, key) for tally in tallies.values()) for key in ("total", "failed"))
    return {
        "evaluation_id": results_name(experiment.experiment_id),
        "timestamp": utc_text(now()),
        "system_version": " vs ".join(outcome.runs),
        "dataset_id": first.dataset_name,
        "summary": {"total_queries": total, "successful_queries": total - failed, "failed_queries": failed},
        "retrieval_metrics": {},
        "experiment_id": experiment.experiment_id,
        "name": experiment.name,
        "description": experiment.description,
        "status": "completed",
        "winner": found.winner,
        "reason": found.reason,
        "confidence_level": 1 - experiment.alpha,
        "total_samples": sum(len(side.rows) for side in outcome.sides.values()),
        "variant_samples": {name: len(side.rows) for name, side in outcome.sides.items()},
        "missing_samples": found.missing_samples,
        "primary_metric_results": _metric(outcome, outcome.primary),
        "secondary_metric_results": {name: _metric(outcome, name) for name in others if name in asked},
        "guard_rail_metric_results": {name: _metric(outcome, name) for name in others if name not in asked},
        "statistical_tests": _tests(of_primary),
        "guard_rails": [
            {"variant": one.variant, **asdict(one.rail), "holds": one.holds, "reason": one.reason}
            for one in found.rails
        ],
        "sample_ratio": None
        if outcome.ratio is None
        else {
            **asdict(outcome.ratio),
            "mismatch": outcome.ratio.is_mismatch,
            "mismatch_below": MISMATCH_BELOW,
        },
        "configuration": _configuration(outcome),
        "variants": {name: _variant(outcome, name, run, tallies[name]) for name, run in outcome.runs.items()},
    }


def _metric(outcome: Outcome, name: str) -> dict[str, Any]:
    """One metric of all variants. The smallest corrected p and the largest effect stand for its pairs.

    `means` and intervals count failed answers as the worst, as the tests do; `value` is of what was answered.
    """
    tests = [test for test in outcome.tests if test.metric == name]
    results = {variant: run.result(name) for variant, run in outcome.runs.items()}
    effects = [abs(test.effect_size) for test in tests if test.effect_size is not None]
    values = {variant: outcome.value(name, variant) for variant in results}
    return {
        "metric_name": name,
        "higher_is_better": parse_metric(name).higher_is_better,
        "variant_results": {
            variant: {
                "value": number_or_null(result.value),
                "value_with_failures": values[variant],
                **{key: result.details.get(key) for key in ("num_samples", "num_skipped", "num_failed")},
            }
            for variant, result in results.items()
        },
        "means": values,
        "confidence_intervals": {variant: outcome.interval(name, variant) for variant in results},
        "p_value": min((test.p_adjusted for test in tests if test.p_adjusted is not None), default=None),
        "effect_size": max(effects, default=None),
        "significant": any(test.better is not None for test in tests),
        "tests": _tests(tests),
    }


def _tests(tests: Sequence[PairTest]) -> dict[str, Any]:
    return {f"{test.first}_vs_{test.second}": _test(test) for test in tests}


def _test(test: PairTest) -> dict[str, Any]:
    return {
        "metric": test.metric,
        "test": test.test,
        "difference": number_or_null(test.difference),
        "confidence_interval": test.interval,
        "p_value": test.p_value,
        "p_adjusted": test.p_adjusted,
        "effect_size": test.effect_size,
        "effect_size_paired": test.effect_size_paired,
        "significant": test.better is not None,
        "better": test.better or NOBODY,
        "samples": dict(zip((test.first, test.second), test.samples, strict=True)),
        "samples_needed": test.samples_needed,
    }


def _configuration(outcome: Outcome) -> dict[str, Any]:
    experiment = outcome.experiment
    direct = ("assignment", "statistical_test", "alpha", "power", "min_sample_size")
    return {
        **{key: getattr(experiment, key) for key in direct},
        "minimum_lead": minimum_lead(experiment),
        "traffic_allocation": {one.variant_id: one.share for one in experiment.variants},
        "primary_metric": outcome.primary,
        "secondary_metrics": list(experiment.secondary_metrics),
        "guard_rails": [asdict(rail) for rail in experiment.guard_rails],
        "control": experiment.variants[0].variant_id,
    }


def _variant(outcome: Outcome, name: str, run: EvaluationRun, tally: Tally) -> Mapping[str, Any]:
    variant = outcome.experiment.variant(name)
    mean = math.fsum(tally.seconds) / len(tally.seconds) if tally.seconds else None
    return {
        "name": variant.name,
        "description": variant.description,
        "run": run.evaluation_id,
        "system": run.system_name,
        "dataset_sha256": run.dataset_fingerprint,
        "settings": dict(variant.settings),
        "arguments": dict(variant.arguments),
        "total_queries": tally.total,
        "failed_queries": tally.failed,
        "without_prediction": outcome.unpredicted(name),
        "mean_latency_seconds": mean,
    }
