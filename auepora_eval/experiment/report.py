"""What an experiment found as a document, `ab_test_<experiment_id>.results.json`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..comparison.paired_tests import ONE_RUN_EACH, judge_notes
from ..core.display import interval_text, number_or_null, p_cell, value_text
from ..core.scoring import Tally, now, utc_text
from ..core.table import Table
from ..core.types import EvaluationRun
from ..core.verdict import Verdict
from ..io.config.experiment import SPLIT
from ..io.files.atomic import file_name, write_bytes
from ..io.results.document import experiment_metrics
from ..metrics.parse import parse_metric
from ..runs.store.state import SUFFIX, indented, with_metadata
from ..runs.store.storage import EvaluationResultsStorage
from .decision import NOBODY, PairTest, minimum_lead
from .experiment import Outcome

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


def experiment_results(outcome: Outcome) -> dict[str, Any]:
    """The document: fields of a results file first, then those of an experiment."""
    experiment, decision = outcome.experiment, outcome.verdict
    tallies = outcome.tallies
    first = next(iter(outcome.runs.values()))
    secondary = {parse_metric(name).name for name in experiment.secondary_metrics}
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
        "winner": decision.winner,
        "reason": decision.reason,
        "confidence_level": 1 - experiment.alpha,
        "total_samples": sum(len(side.rows) for side in outcome.sides.values()),
        "variant_samples": {name: len(side.rows) for name, side in outcome.sides.items()},
        "missing_samples": decision.missing_samples,
        "primary_metric_results": _metric(outcome, outcome.primary),
        "secondary_metric_results": {name: _metric(outcome, name) for name in others if name in secondary},
        "guard_rail_metric_results": {
            name: _metric(outcome, name) for name in others if name not in secondary
        },
        "statistical_tests": _tests(of_primary),
        "guard_rails": [
            {"variant": one.variant, **asdict(one.rail), "holds": one.holds, "reason": one.reason}
            for one in decision.rails
        ],
        "configuration": _configuration(outcome),
        "variants": {name: _variant(outcome, name, run, tallies[name]) for name, run in outcome.runs.items()},
    }


def _metric(outcome: Outcome, name: str) -> dict[str, object]:
    """One metric of all variants. The smallest corrected p and the largest effect stand for its pairs.

    `means` and intervals count failed answers as the worst, as the tests do; `value` is of what was answered.
    """
    tests = [test for test in outcome.tests if test.metric == name]
    results = {variant: run.result(name) for variant, run in outcome.runs.items()}
    adjusted = [test.comparison.test.p_adjusted for test in tests]
    p_values = [p for p in adjusted if p is not None]
    effects = [abs(test.effect_size) for test in tests if test.effect_size is not None]
    values = {variant: outcome.value(name, variant) for variant in results}
    return {
        "metric_name": name,
        "higher_is_better": parse_metric(name).higher_is_better,
        "variant_results": {
            variant: {
                "value": number_or_null(result.value),
                "value_with_failures": values[variant],
                "num_samples": result.coverage.scored,
                "num_skipped": result.coverage.skipped,
                "num_failed": result.coverage.failed,
            }
            for variant, result in results.items()
        },
        "means": values,
        "confidence_intervals": {variant: outcome.interval(name, variant) for variant in results},
        "p_value": min(p_values, default=None),
        "effect_size": max(effects, default=None),
        "significant": any(test.better is not None for test in tests),
        "tests": _tests(tests),
    }


def _tests(tests: Sequence[PairTest]) -> dict[str, object]:
    return {f"{test.first}_vs_{test.second}": _test(test) for test in tests}


def _test(test: PairTest) -> dict[str, object]:
    compared = test.comparison
    return {
        "metric": test.metric,
        "test": compared.test.method or compared.test.not_tested,
        "difference": number_or_null(compared.effect.change),
        "confidence_interval": compared.effect.interval,
        "p_value": compared.test.p,
        "p_adjusted": compared.test.p_adjusted,
        "effect_size": test.effect_size,
        "effect_size_paired": compared.effect.d,
        "significant": test.better is not None,
        "better": test.better or NOBODY,
        "samples": dict(zip((test.first, test.second), test.samples, strict=True)),
        "samples_needed": compared.power.samples_needed,
    }


def _configuration(outcome: Outcome) -> dict[str, object]:
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


# An experiment in tables: what each variant scored, which differ, and what the guardrails say.
#
# They show the document, which `auepora show` reads from a file that anybody may have edited: what is not as
# it should be is an empty cell.

_TEST_HEADINGS = ("Metric", "Pair", "Difference", "95% interval", "p (Holm)", "d", "Better")
_RAIL_HEADINGS = ("Guardrail", "Variant", "Holds", "Result")
_RAIL_WORDS = {
    "min": "at least",
    "max": "at most",
    "max_increase": "increase of at most",
    "margin": "loss under",
}


def experiment_tables(results: Mapping[str, Any]) -> list[Table]:
    """Return the variants, the pairs and the guardrails; those without rows are left out."""
    tables = (_variant_table(results), _pair_table(results), _rail_table(results))
    return [table for table in tables if table.rows]


def _variant_table(results: Mapping[str, Any]) -> Table:
    """Return each metric's value in each variant, with its interval; the primary metric first, marked.

    Failed answers are in the values as the worst, as they are in the tests.
    """
    variants = _object(results, "variants")
    rows = []
    for place, block in enumerate(experiment_metrics(results)):
        metric, unit = _name_and_unit(block)
        means, intervals = _object(block, "means"), _object(block, "confidence_intervals")
        cells = [f"{metric} (primary)" if place == 0 else metric]
        for name in variants:
            interval = interval_text(_interval(intervals.get(name)), unit)
            cells.append(f"{value_text(_number(means.get(name)), unit)} {interval}")
        rows.append(cells)
    samples = _object(results, "variant_samples")
    rows.append(["samples", *(_text(samples.get(name)) for name in variants)])
    failed = {name: _object(variants, name).get("failed_queries") for name in variants}
    if any(failed.values()):
        rows.append(["failed", *map(_text, failed.values())])
    rows.append(["run", *(_text(_object(variants, name).get("run")) for name in variants)])
    return Table(["Metric", *variants], rows, numeric=range(1, len(variants) + 1))


def _pair_table(results: Mapping[str, Any]) -> Table:
    """Return every pair on every metric that measured anything, the primary metric first."""
    rows = []
    for block in experiment_metrics(results):
        metric, unit = _name_and_unit(block)
        if all(mean is None for mean in _object(block, "means").values()):
            continue
        tests = _object(block, "tests")
        rows += [_test_row(metric, unit, pair, _object(tests, pair)) for pair in tests]
    return Table(_TEST_HEADINGS, rows, numeric=range(2, 6), spare=(5, 3))


def _test_row(metric: str, unit: str, pair: str, test: Mapping[str, Any]) -> list[str]:
    sides = list(_object(test, "samples"))
    change, effect = _number(test.get("difference")), _number(test.get("effect_size"))
    better = _text(test.get("better"))
    if better == NOBODY:
        better = str(Verdict.INCONCLUSIVE) if change else "no difference"
        if test.get("test") == ONE_RUN_EACH:
            better = f"one run each: {Verdict.INCONCLUSIVE}"
    return [
        metric,
        f"{sides[1]} - {sides[0]}" if len(sides) == 2 else pair,
        value_text(change, unit, signed=True),
        interval_text(_interval(test.get("confidence_interval")), unit, signed=True),
        p_cell(_number(test.get("p_adjusted"))),
        "-" if effect is None else f"{effect:+.2f}",
        better,
    ]


def _rail_table(results: Mapping[str, Any]) -> Table:
    """Return what each guardrail found in each variant that it applies to."""
    rails = results.get("guard_rails")
    rows = [
        [
            f"{_text(rail.get('metric'))}: {_RAIL_WORDS.get(str(rail.get('kind')), '')} "
            f"{_text(rail.get('limit'))}",
            _text(rail.get("variant")),
            "yes" if rail.get("holds") is True else "NO",
            _text(rail.get("reason")),
        ]
        for rail in (rails if isinstance(rails, list) else [])
        if isinstance(rail, dict)
    ]
    return Table(_RAIL_HEADINGS, rows)


def _name_and_unit(block: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name of a metric, with an arrow if less is better, and its unit."""
    name = _text(block.get("metric_name"))
    try:
        unit = parse_metric(name).unit
    except ValueError:  # a metric of the user's own
        unit = ""
    return (f"{name} ↓" if block.get("higher_is_better") is False else name), unit


def _object(data: object, name: str) -> Mapping[str, Any]:
    value = data.get(name) if isinstance(data, Mapping) else None
    return value if isinstance(value, dict) else {}


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value + 0.0  # adding 0 turns -0 into 0


def _interval(limits: object) -> tuple[float, float] | None:
    low, high = limits if isinstance(limits, list | tuple) and len(limits) == 2 else (None, None)
    ends = _number(low), _number(high)
    return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])


def _text(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else "-"


def outcome_notes(outcome: Outcome) -> list[str]:
    """What the tables do not say of themselves: how failures are counted, and what was lost."""
    notes = []
    if any(tally.failed for tally in outcome.tallies.values()):
        timed = any(test.is_of_time for test in outcome.tests)
        times = "; on times as the slowest call of all variants" if timed else ""
        notes.append(f"Failed answers count as the worst of a metric{times}.")
    for name, tally in outcome.tallies.items():
        lost = outcome.unpredicted(name)
        if lost:
            lack = f"{lost:,} of its {tally.total:,} samples"
            notes.append(f"{name}: the predictions have no line for {lack}. They count as failed.")
    for test in outcome.tests:
        pair = f"{test.first} and {test.second}"
        if test.paired is not None:
            notes += [f"{pair}: {note}." for note in judge_notes([test.paired])]
    if outcome.experiment.assignment == SPLIT:
        # Two groups of questions: what is known of the judge is printed, and corrects nothing.
        for name, run in outcome.runs.items():
            judged = [result for result in run.results if "judge" in result.details]
            notes += [f"{name}: {note.rstrip('.')}." for result in judged for note in result.notes]
    return notes


def experiment_in_words(results: Mapping[str, Any]) -> str:
    """Return who won, or why nobody did."""
    winner = _text(results.get("winner"))
    return f"Winner: {winner}. {'Reason: ' if winner == NOBODY else ''}{_text(results.get('reason'))}"
