"""What an experiment found as a document, `ab_test_<experiment_id>.results.json`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..comparison.ranking import Ranking
from ..comparison.tables import metric_to_dict
from ..core.display import number_or_null
from ..core.scoring import Tally, now, utc_text
from ..io.files import file_name, write_bytes
from ..store.state import SUFFIX
from ..store.storage import EvaluationResultsStorage
from ..store.writer import indented, with_metadata
from .experiment import NOBODY, ExperimentReport, run_id
from .figures import GatedRun
from .gate_report import verdict_to_dict

KIND = "ab_test"


def results_path(storage: EvaluationResultsStorage, experiment_id: str) -> Path:
    """Return where the results of an experiment are, or will be."""
    return storage.results_directory / f"{file_name(f'{KIND}_{experiment_id}', 'experiment id')}{SUFFIX}"


def save_experiment(
    report: ExperimentReport, storage: EvaluationResultsStorage, *, force: bool = False
) -> Path:
    """Store what was found; an older file of the experiment is kept unless forced."""
    path = results_path(storage, report.experiment.experiment_id)
    write_bytes(path, indented(with_metadata(experiment_results(report), KIND, path)), force=force)
    return path


def experiment_results(report: ExperimentReport) -> dict[str, Any]:
    """Return the document: fields of a results file first, then those of an experiment."""
    experiment, runs = report.experiment, report.runs
    tallies = {name: one.tally or Tally() for name, one in runs.items()}
    total, failed = (sum(getattr(one, key) for one in tallies.values()) for key in ("total", "failed"))
    primary = _block(report.primary, report.metric, runs)
    samples = {
        name: one["num_samples"] + one["num_failed"] for name, one in primary["variant_results"].items()
    }
    return {
        "evaluation_id": f"{KIND}_{experiment.experiment_id}",
        "timestamp": utc_text(now()),
        "system_version": " vs ".join(runs),
        "dataset_id": next(iter(runs.values())).run.dataset_name,
        "summary": {"total_queries": total, "successful_queries": total - failed, "failed_queries": failed},
        "retrieval_metrics": {},
        "experiment_id": experiment.experiment_id,
        "name": experiment.name,
        "description": experiment.description,
        "status": "completed",
        "winner": report.winner,
        "reason": report.reason,
        "confidence_level": 1 - experiment.alpha,
        "total_samples": sum(samples.values()),
        "variant_samples": samples,
        "primary_metric_results": primary,
        "secondary_metric_results": {
            one.name: _block(report.secondary, one.name, runs) for one in report.secondary.metrics
        },
        "statistical_tests": primary["tests"],
        "guard_rails": [
            {"variant": name, **verdict_to_dict(one, gate)}
            for name, gate in report.gates.items()
            for one in gate.verdicts
        ],
        "configuration": {
            "control": next(iter(runs)),
            "primary_metric": report.metric,
            "secondary_metrics": list(experiment.secondary_metrics),
            "guard_rails": dict(experiment.guard_rails),
            "alpha": experiment.alpha,
            "min_sample_size": experiment.min_sample_size,
        },
        "variants": {
            one.variant_id: {
                "name": one.name,
                "description": one.description,
                "run": run_id(experiment, one),
                "system": runs[one.variant_id].run.system_name,
                "settings": dict(one.settings),
                "arguments": dict(one.arguments),
                "total_queries": tallies[one.variant_id].total,
                "failed_queries": tallies[one.variant_id].failed,
            }
            for one in experiment.variants
        },
        "notes": list(dict.fromkeys([*report.primary.notes, *report.secondary.notes])),
    }


def _block(ranking: Ranking, name: str, runs: Mapping[str, GatedRun]) -> dict[str, Any]:
    """Return one metric of all variants. The smallest corrected p and the largest effect stand for its pairs.

    `means` and intervals count failed answers as the worst, as the tests do; `value` is of what was answered.
    """
    ranked = next((one for one in ranking.metrics if one.name == name), None)
    standings = dict(zip(runs, ranked.standings, strict=True)) if ranked else {}
    compared = {(one.baseline_system, one.candidate_system): one[name] for one in ranking.pairs if ranked}
    results = {variant: one.run.result(name) for variant, one in runs.items()}
    p_values = [one.test.p_adjusted for one in compared.values() if one.test.p_adjusted is not None]
    effects = [abs(one.effect.d) for one in compared.values() if one.effect.d is not None]
    return {
        "metric_name": name,
        "higher_is_better": next(iter(results.values())).higher_is_better,
        "unit": next(iter(results.values())).unit,
        "variant_results": {
            variant: {
                "value": number_or_null(result.value),
                "num_samples": result.coverage.scored,
                "num_skipped": result.coverage.skipped,
                "num_failed": result.coverage.failed,
            }
            for variant, result in results.items()
        },
        "means": {variant: number_or_null(one.value) for variant, one in standings.items()},
        "confidence_intervals": {variant: one.interval for variant, one in standings.items()},
        "p_value": min(p_values, default=None),
        "effect_size": max(effects, default=None),
        "significant": any(one.verdict.is_significant for one in compared.values()),
        "tests": {f"{a}_vs_{b}": metric_to_dict(one) for (a, b), one in compared.items()},
    }


def experiment_in_words(results: Mapping[str, Any]) -> str:
    """Return who won, or why nobody did. Anybody may have edited the document."""
    winner, reason = str(results.get("winner")), str(results.get("reason"))
    return f"Winner: {winner}. {'Reason: ' * (winner == NOBODY)}{reason}"


def variant_runs(results: Mapping[str, Any]) -> dict[str, str]:
    """Return the id of the run of each variant, the control first."""
    variants = results.get("variants")
    entries = variants.items() if isinstance(variants, dict) else ()
    runs = {name: entry.get("run") for name, entry in entries if isinstance(entry, dict)}
    return {name: run for name, run in runs.items() if isinstance(run, str)}
