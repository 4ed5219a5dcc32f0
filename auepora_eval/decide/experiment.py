"""An experiment: each variant is an ordinary run, `<experiment>-<variant>`; then they are compared and gated.

    systems = {"small": small_chunks, "large": large_chunks}
    report = run_experiment(read_experiment("chunks.config.yaml"), dataset, systems, storage)
    report.winner, report.reason

A variant wins if it is significantly better than every other one on the primary metric, as `compare` has it,
and passes the gate whose rules are the guardrails. The primary metric is compared by itself: it was named
beforehand, so that other metrics do not make it prove more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..comparison.ranking import Ranking, rank_runs
from ..comparison.tables import metric_to_dict
from ..core.dataset import EvaluationDataset
from ..core.display import number_or_null, p_text
from ..core.metrics_base import Metric
from ..core.plan import EvaluationPlan
from ..core.runner import AueporaEvaluator
from ..core.scoring import Tally, now, utc_text
from ..core.verdict import Outcome
from ..io.config.experiment import Experiment, Variant, load_experiment
from ..io.files import file_name, write_bytes
from ..metrics.parse import parse_metric
from ..store.state import SUFFIX
from ..store.storage import EvaluationResultsStorage
from ..store.writer import indented, with_metadata
from .figures import GatedRun, canonical, metric_name
from .gate import gate_run
from .gate_report import GateReport, problem_words, verdict_to_dict
from .rules import RELATIVE, GateRules, rules_of

KIND = "ab_test"
NOBODY = "none"  # as a winner


class ExperimentReport(NamedTuple):
    """What an experiment found. The winner is "none" if there is none; the reason says why.

    `runs` and `gates`, what the guardrails say, are by variant; `metric` is the primary one.
    """

    experiment: Experiment
    metric: str
    runs: Mapping[str, GatedRun]
    primary: Ranking
    secondary: Ranking
    gates: Mapping[str, GateReport]
    winner: str
    reason: str


def read_experiment(path: str | Path, experiment_id: str | None = None) -> Experiment:
    """Read the experiment of a file and check its metrics and guardrails."""
    experiment = load_experiment(path, experiment_id)
    experiment_metrics(experiment, Path(path).name)
    return experiment


def guard_rules(experiment: Experiment, where: str = "ab_testing") -> GateRules:
    """Return the guardrails, which are rules of a gate."""
    return rules_of({"alpha": experiment.alpha, **experiment.guard_rails}, f"{where}: guard_rails")


def experiment_metrics(experiment: Experiment, where: str = "ab_testing") -> list[Metric]:
    """Return the primary metric, the secondary ones, and those of the guardrails, each once."""
    rails = (metric_name(rule.name) for rule in guard_rules(experiment, where).rules)
    names = (experiment.primary_metric, *experiment.secondary_metrics, *filter(None, rails))
    return list({metric.name: metric for metric in map(parse_metric, names)}.values())


def run_id(experiment: Experiment, variant: Variant) -> str:
    """Return the id under which the run of a variant is stored."""
    return f"{experiment.experiment_id}-{variant.variant_id}"


def variant_configuration(experiment: Experiment, variant: Variant) -> dict[str, Any]:
    """Return what the run of a variant says about it."""
    ids = {"experiment_id": experiment.experiment_id, "variant_id": variant.variant_id}
    made = {"settings": dict(variant.settings), "arguments": dict(variant.arguments)}
    return {"experiment": {**ids, **made}}


def run_experiment(
    experiment: Experiment,
    dataset: EvaluationDataset,
    systems: Mapping[str, Any],
    storage: EvaluationResultsStorage,
    *,
    top_k: int = 5,
    seed: int = 0,
    **how: bool,
) -> ExperimentReport:
    """Run every variant, by its id in `systems`, and decide. `resume` keeps stored answers, `force` none."""
    plan = EvaluationPlan(experiment_metrics(experiment))
    for variant in experiment.variants:
        evaluator = AueporaEvaluator(
            systems[variant.variant_id],
            plan,
            top_k=top_k,
            seed=seed,
            configuration=variant_configuration(experiment, variant),
        )
        storage.evaluate(evaluator, dataset, evaluation_id=run_id(experiment, variant), **how)
    return analyse_experiment(experiment, storage, seed=seed)


def analyse_experiment(
    experiment: Experiment, storage: EvaluationResultsStorage, *, seed: int = 0
) -> ExperimentReport:
    """Decide on variants that were all run."""
    ids = {one.variant_id: run_id(experiment, one) for one in experiment.variants}
    runs = {variant: GatedRun.stored(storage, name) for variant, name in ids.items()}
    primary, *secondary = map(canonical, (experiment.primary_metric, *experiment.secondary_metrics))
    ranking = _ranking(runs, {primary}, experiment.alpha, seed)
    others = _ranking(runs, {*secondary} - {primary}, experiment.alpha, seed)
    control, rules = next(iter(runs.values())), guard_rules(experiment)
    gates = {}
    for variant, one in runs.items():
        # Only the others are compared with the first, the control.
        kept = tuple(rule for rule in rules.rules if one is not control or rule.kind not in RELATIVE)
        if kept:
            own = replace(rules, rules=kept)
            gates[variant] = gate_run(one, own, baseline=control if own.relative else None, seed=seed)
    decision = _decision(experiment, primary, ranking, gates)
    return ExperimentReport(experiment, primary, runs, ranking, others, gates, *decision)


def _ranking(runs: Mapping[str, GatedRun], names: set[str], alpha: float, seed: int) -> Ranking:
    """Compare the variants on these metrics as `compare` does, with the ids of variants as names."""
    named = []
    for variant, one in runs.items():
        results = [result for result in one.run if result.name in names]
        named.append(replace(one.run, system_name=variant, results=results))
    return rank_runs(named, alpha=alpha, seed=seed)


def _decision(
    experiment: Experiment, metric: str, ranking: Ranking, gates: Mapping[str, GateReport]
) -> tuple[str, str]:
    """Return the winner and the reason."""
    if not ranking.metrics:
        return NOBODY, f"{metric} cannot be compared: {ranking.pairs[0].not_compared[metric]}."
    fewest, least = min(one[metric].pairs for one in ranking.pairs), experiment.min_sample_size
    if fewest < least:
        what = f"{metric} has {fewest:,} samples, and {least:,} are required (min_sample_size)"
        return NOBODY, f"{what}: {least - fewest:,} are missing."
    standings = ranking.metrics[0].standings
    place = next((n for n, one in enumerate(standings) if one.best), None)
    if place is None:
        why = next(filter(None, (one[metric].test.not_tested for one in ranking.pairs)))
        return NOBODY, f"{metric} cannot be tested: {why}."
    leader, beaten = ranking.systems[place], []
    for other, name in enumerate(ranking.systems):
        if other == place:
            continue
        words, needed = _difference_words(ranking, metric, leader, name)
        if other not in standings[place].beats:
            what = f"inconclusive on {metric}: {leader} and {name} do not differ significantly"
            return NOBODY, f"{what} ({words}).{needed}"
        beaten.append(f"{name} ({words})")
    gate = gates.get(leader)
    if gate is not None and gate.outcome != Outcome.PASSED:
        return NOBODY, f"{leader} is best on {metric}, but {' And '.join(map(problem_words, gate.problems))}"
    return leader, f"{leader} is better on {metric} than {' and '.join(beaten)}."


def _difference_words(ranking: Ranking, metric: str, leader: str, other: str) -> tuple[str, str]:
    """Return by how much one variant leads another, and how many samples would make that significant."""
    one = next(
        each for each in ranking.pairs if {each.baseline_system, each.candidate_system} == {leader, other}
    )
    found = one[metric]
    if found.test.not_tested:
        return found.test.not_tested, ""
    lead = found.effect.change if one.candidate_system == leader else -found.effect.change
    needed = found.power.samples_needed
    more = "" if needed is None else f" Detecting a difference of this size takes about {needed:,} samples."
    return f"{lead + 0.0:+.4g}, {p_text(found.test.p_adjusted)}", more


# The document, `ab_test_<experiment_id>.results.json`.


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
