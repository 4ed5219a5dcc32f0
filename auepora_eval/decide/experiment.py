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
from ..core.dataset import EvaluationDataset
from ..core.display import p_text
from ..core.metrics_base import Metric
from ..core.plan import EvaluationPlan
from ..core.runner import AueporaEvaluator
from ..core.types import EvaluationRun
from ..core.verdict import Outcome
from ..io.config.experiment import Experiment, Variant, load_experiment
from ..metrics.parse import parse_metric
from ..store.record import PredictionRecord, Predictions, score_predictions
from ..store.storage import EvaluationResultsStorage
from .figures import GatedRun, canonical, metric_name
from .gate import gate_run
from .gate_report import problem_words
from .rules import ABSOLUTE, COVERAGE, GateReport, GateRules, rules_of

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
    guard_rules(experiment, Path(path).name)
    experiment_plan(experiment)
    return experiment


def guard_rules(experiment: Experiment, where: str = "ab_testing") -> GateRules:
    """Return the guardrails, which are rules of a gate."""
    return rules_of({"alpha": experiment.alpha, **experiment.guard_rails}, f"{where}: guard_rails")


def experiment_plan(experiment: Experiment) -> EvaluationPlan:
    """Return the metrics that need no judge: those are computed while a variant runs."""
    return EvaluationPlan([metric for metric in _metrics(experiment) if not _needs_judge(metric)])


def judged_names(experiment: Experiment) -> list[str]:
    """Return the metrics that a judge scores, when the variants are stored."""
    return [metric.name for metric in _metrics(experiment) if _needs_judge(metric)]


def _metrics(experiment: Experiment) -> list[Metric]:
    """Return the primary metric, the secondary ones, and those of the guardrails, each once."""
    rails = (metric_name(rule.name) for rule in guard_rules(experiment).rules)
    names = (experiment.primary_metric, *experiment.secondary_metrics, *filter(None, rails))
    return list({metric.name: metric for metric in map(parse_metric, names)}.values())


def _needs_judge(metric: Metric) -> bool:
    # By the attribute: judges are imported only where there is one.
    return bool(getattr(metric, "needs_judge", False))


def run_id(experiment: Experiment, variant: Variant) -> str:
    """Return the id under which the run of a variant is stored."""
    return f"{experiment.experiment_id}-{variant.variant_id}"


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
    plan = experiment_plan(experiment)
    for variant in experiment.variants:
        evaluator = AueporaEvaluator(systems[variant.variant_id], plan, top_k=top_k, seed=seed)
        run_variant(experiment, variant, evaluator, dataset, storage, **how)
    return analyse_experiment(experiment, storage, seed=seed)


def run_variant(
    experiment: Experiment,
    variant: Variant,
    source: AueporaEvaluator | Predictions,
    dataset: EvaluationDataset,
    storage: EvaluationResultsStorage,
    *,
    resume: bool = False,
    force: bool = False,
    **options: Any,
) -> EvaluationRun:
    """Run one variant, or resume it. Predictions are read again; the options are those of `StoredRecord`."""
    name, made = run_id(experiment, variant), {"arguments": dict(variant.arguments)}
    ids = {"experiment_id": experiment.experiment_id, "variant_id": variant.variant_id}
    about = {"experiment": {**ids, "settings": dict(variant.settings), **made}}
    if isinstance(source, AueporaEvaluator):
        source.configuration = {**source.configuration, **about}
        return storage.evaluate(source, dataset, evaluation_id=name, resume=resume, force=force, **options)
    state, force = storage.state(name), force or resume
    record = PredictionRecord(state, dataset, source, system_name=variant.variant_id, force=force)
    plan = experiment_plan(experiment)
    return score_predictions(record, plan, top_k=source.longest or 5, configuration=about)


def analyse_experiment(
    experiment: Experiment, storage: EvaluationResultsStorage, *, seed: int = 0
) -> ExperimentReport:
    """Decide on variants that were all run."""
    ids = {one.variant_id: run_id(experiment, one) for one in experiment.variants}
    runs = {variant: GatedRun.stored(storage, name) for variant, name in ids.items()}
    primary, *secondary = map(canonical, (experiment.primary_metric, *experiment.secondary_metrics))
    ranking = _ranking(runs, {primary}, experiment.alpha, seed)
    others = _ranking(runs, {*secondary} - {primary}, experiment.alpha, seed)
    gates = _gates(runs, guard_rules(experiment), seed)
    decision = _decision(experiment, primary, ranking, gates)
    return ExperimentReport(experiment, primary, runs, ranking, others, gates, *decision)


def _ranking(runs: Mapping[str, GatedRun], names: set[str], alpha: float, seed: int) -> Ranking:
    """Compare the variants on these metrics as `compare` does, with the ids of variants as names."""
    named = [
        replace(
            one.run, system_name=variant, results=[each for each in one.run.results if each.name in names]
        )
        for variant, one in runs.items()
    ]
    return rank_runs(named, alpha=alpha, seed=seed)


def _gates(runs: Mapping[str, GatedRun], rules: GateRules, seed: int) -> dict[str, GateReport]:
    """Return what the gate says of each variant; only the others are compared with the first, the control."""
    control = next(iter(runs.values()))
    alone = replace(rules, rules=tuple(rules.of(*ABSOLUTE, *COVERAGE)))
    by_variant = {name: alone if one is control else rules for name, one in runs.items()}
    return {
        name: gate_run(runs[name], each, baseline=control if each.relative else None, seed=seed)
        for name, each in by_variant.items()
        if each.rules
    }


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
        return NOBODY, f"{metric} cannot be tested: {ranking.pairs[0][metric].test.not_tested}."
    leader, beaten = ranking.systems[place], []
    for other, name in enumerate(ranking.systems):
        if other == place:
            continue
        words, needed = _difference_words(ranking, metric, place, other)
        if other not in standings[place].beats:
            what = f"inconclusive on {metric}: {leader} and {name} do not differ significantly"
            return NOBODY, f"{what} ({words}).{needed}"
        beaten.append(f"{name} ({words})")
    gate = gates.get(leader)
    if gate is not None and gate.outcome != Outcome.PASSED:
        return NOBODY, f"{leader} is best on {metric}, but {' And '.join(map(problem_words, gate.problems))}"
    return leader, f"{leader} is better on {metric} than {' and '.join(beaten)}."


def _difference_words(ranking: Ranking, metric: str, place: int, other: int) -> tuple[str, str]:
    """Return by how much one variant leads another, and how many samples would make that significant."""
    pair = {ranking.systems[place], ranking.systems[other]}
    one = next(each for each in ranking.pairs if {each.baseline_system, each.candidate_system} == pair)
    found = one[metric]
    if found.test.not_tested:
        return found.test.not_tested, ""
    lead = found.effect.change if one.candidate_system == ranking.systems[place] else -found.effect.change
    needed = found.power.samples_needed
    more = "" if needed is None else f" Detecting a difference of this size takes about {needed:,} samples."
    return f"{lead + 0.0:+.4g}, {p_text(found.test.p_adjusted)}", more
