"""An experiment: variants are ordinary runs, stored as `<experiment>-<variant>`, and then tested together.

systems = {"small": small_chunks, "large": large_chunks}
outcome = run_experiment(load_experiment("chunks.config.yaml"), dataset, systems, storage)
outcome.verdict.winner, outcome.verdict.reason
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from ..core.dataset import EvaluationDataset
from ..core.fingerprint import canonical_json
from ..core.plan import EvaluationPlan
from ..core.runner import AueporaEvaluator, OnOutput
from ..core.scoring import Tally
from ..core.types import EvaluationRun
from ..errors import StorageError, UnknownNameError
from ..io.experiment_config import SPLIT, Experiment, Variant, load_experiment
from ..io.predictions import MISSING_PREDICTION
from ..metrics.parse import parse_metric
from .cache import OutputCache
from .evaluation import evaluate_and_store
from .experiment_assignment import AssignedSamples, RatioCheck, ratio_check
from .experiment_sides import Side, sides_of
from .experiment_state import State, refuse_other_variant, score_again, stored_state
from .experiment_tests import PairTest, pair_tests
from .experiment_verdict import Verdict, verdict
from .paired_tests import is_of_time
from .scoring import Predictions, Survey, score_predictions
from .storage import EvaluationResultsStorage

Source = AueporaEvaluator | Predictions
# Settings that change no answer; which samples there are is told by their fingerprint.
_OF_NO_ANSWER = ("cache", "out", "limit")


@dataclass(frozen=True)
class Outcome:
    """What an experiment found. `every_side` has what each metric says of each variant, failures counted."""

    experiment: Experiment
    runs: Mapping[str, EvaluationRun]
    primary: str
    tests: Sequence[PairTest]
    every_side: Mapping[str, Mapping[str, Side]]
    tallies: Mapping[str, Tally]
    ratio: RatioCheck | None
    verdict: Verdict

    @property
    def sides(self) -> Mapping[str, Side]:
        """What the primary metric says of each variant."""
        return self.every_side[self.primary]

    def is_measured(self, metric: str) -> bool:
        """Whether a metric measured anything at all in some variant."""
        return any(side.measured for side in self.every_side[metric].values())

    def value(self, metric: str, variant: str) -> float | None:
        """A variant's value, failed answers counted as the worst; None where no variant has any."""
        value = self.every_side[metric][variant].value
        return value if self.is_measured(metric) and math.isfinite(value) else None

    def interval(self, metric: str, variant: str) -> tuple[float, float] | None:
        """The 95% interval of a variant's value, failed answers counted as the worst."""
        side, details = self.every_side[metric][variant], self.runs[variant].result(metric).details
        known = (
            details.get("confidence_interval") if not side.failed else side.interval(self.runs[variant].seed)
        )
        return None if known is None else (float(known[0]), float(known[1]))

    def unpredicted(self, variant: str) -> int:
        """How many samples the variant's file of predictions has no line for."""
        return _unpredicted(self.tallies[variant])


def read_experiment(path: str | Path, experiment_id: str | None = None) -> Experiment:
    """The experiment of a file, its metrics checked too; every error is told at once."""
    return load_experiment(path, experiment_id, wrong_metric=_wrong_metric, wrong_rail=_wrong_rail)


def experiment_plan(experiment: Experiment) -> EvaluationPlan:
    """The metrics of an experiment: the primary one, the secondary ones, and those of the guard rails."""
    rails = (rail.metric for rail in experiment.guard_rails)
    names = (experiment.primary_metric, *experiment.secondary_metrics, *rails)
    metrics = [parse_metric(name) for name in names]
    return EvaluationPlan(list({metric.name: metric for metric in metrics}.values()))


def run_id(experiment: Experiment, variant: Variant) -> str:
    """The id under which the run of a variant is stored."""
    return f"{experiment.experiment_id}-{variant.variant_id}"


def samples_of(experiment: Experiment, variant: Variant, dataset: EvaluationDataset) -> EvaluationDataset:
    """The samples that a variant is asked: all of them, or its share."""
    if experiment.assignment != SPLIT:
        return dataset
    return AssignedSamples(dataset, experiment.experiment_id, variant.variant_id, experiment.shares)


def run_experiment(
    experiment: Experiment,
    dataset: EvaluationDataset,
    systems: Mapping[str, Any],
    storage: EvaluationResultsStorage,
    *,
    top_k: int = 5,
    seed: int = 0,
    resume: bool = False,
    force: bool = False,
) -> Outcome:
    """Run every variant, by its id in `systems`, and say who won. With `resume` what is there is kept."""
    plan = experiment_plan(experiment)
    for variant in experiment.variants:
        source = AueporaEvaluator(systems[variant.variant_id], plan, top_k=top_k, seed=seed)
        run_variant(experiment, variant, source, dataset, storage, resume=resume, force=force)
    return analyse_experiment(experiment, storage, seed=seed)


def run_variant(
    experiment: Experiment,
    variant: Variant,
    source: Source,
    dataset: EvaluationDataset,
    storage: EvaluationResultsStorage,
    *,
    seed: int = 0,
    resume: bool = False,
    retry_failed: bool = False,
    force: bool = False,
    on_output: OnOutput | None = None,
    cache: OutputCache | None = None,
) -> bool:
    """Run one variant, or go on with it; False if no system had to be called.

    With `resume`, predictions are read once more, and metrics that a finished run lacks are scored on its
    stored outputs; with `retry_failed` its failures are tried again. Samples that came to the dataset since
    are asked if there is a `cache`, which has the answers to the others.
    """
    name, about = run_id(experiment, variant), {"experiment": identity(experiment, variant)}
    samples = samples_of(experiment, variant, dataset)
    plan = experiment_plan(experiment)
    survey = Survey.of(samples, plan)
    state = stored_state(storage, name, about["experiment"], survey.sha256, plan)
    calls = isinstance(source, AueporaEvaluator)
    if not force:
        refuse_other_variant(state, name, answers_known=cache is not None or not calls)
    if state is not State.NOTHING and not resume and not force:
        what = "is there already. Go on with it (--resume), or begin again (--force)."
        raise StorageError(f"{storage.run_folder(name)} {what}")
    mends = retry_failed and state is State.FINISHED and not storage.is_complete(name, retry_failed=True)
    if resume and state is State.FINISHED and calls and not mends:
        return False
    again = force or (resume and state in (State.FINISHED, State.LACKS_METRICS, State.OTHER_SAMPLES))
    if isinstance(source, AueporaEvaluator):
        source.configuration = {**source.configuration, **about}
        if on_output is not None:
            source.on_output = on_output
        if resume and state is State.LACKS_METRICS:
            score_again(source, samples, plan, storage, name)
            return False
        evaluate_and_store(
            source,
            samples,
            storage,
            evaluation_id=name,
            resume=resume and (state is State.BEGUN or mends),
            retry_failed=retry_failed,
            force=again,
            cache=cache,
            survey=survey,
        )
        return True
    plan.validate_counts(survey.counts, survey.size)
    source.refuse_strangers(Survey.of(dataset).ids)
    score_predictions(
        samples,
        source,
        plan,
        storage,
        system_name=variant.variant_id,
        evaluation_id=name,
        top_k=source.longest or 5,
        seed=seed,
        configuration=about,
        force=again,
        on_output=on_output,
    )
    return True


def identity(experiment: Experiment, variant: Variant) -> dict[str, Any]:
    """What a run must have in common with the variant that it is to be one of."""
    settings = {**experiment.plan, **variant.settings}
    told: dict[str, Any] = {
        "experiment_id": experiment.experiment_id,
        "variant_id": variant.variant_id,
        "settings": {key: value for key, value in settings.items() if key not in _OF_NO_ANSWER},
        "arguments": dict(variant.arguments),
        "assignment": experiment.assignment,
    }
    if experiment.assignment == SPLIT:
        told["shares"] = experiment.shares
    return dict(msgspec.json.decode(canonical_json(told)))


def analyse_experiment(
    experiment: Experiment, storage: EvaluationResultsStorage, *, seed: int = 0
) -> Outcome:
    """The verdict on variants that were all run."""
    runs = {
        variant.variant_id: _in_plan(storage.load_scores(run_id(experiment, variant)), experiment)
        for variant in experiment.variants
    }
    primary = parse_metric(experiment.primary_metric).name
    names = [result.name for result in next(iter(runs.values())).results]
    sides = {name: sides_of(runs, name) for name in names}
    tests = pair_tests(experiment, runs, primary, sides, seed=seed)
    tallies = {one.variant_id: storage.load_tally(run_id(experiment, one)) for one in experiment.variants}
    ratio = None
    if experiment.assignment == SPLIT:
        # What has no prediction was lost on the way, and is no answer that failed.
        units = {name: side.units - _lost(side, tallies[name]) for name, side in sides[primary].items()}
        ratio = ratio_check(units, experiment.shares)
    found = verdict(experiment, tests, primary, sides, ratio)
    return Outcome(experiment, runs, primary, tests, sides, tallies, ratio, found)


def _lost(side: Side, tally: Tally) -> int:
    """A rate of failures scores what was lost too: only the calls tell how much that is."""
    return _unpredicted(tally) if side.metric.scores_failures and side.clusters is None else side.lost


def _unpredicted(tally: Tally) -> int:
    return sum(count for (kind, _), count in tally.failures.items() if kind == MISSING_PREDICTION)


def _in_plan(run: EvaluationRun, experiment: Experiment) -> EvaluationRun:
    """The results that the experiment asks for: whatever else was scored would cost power."""
    names = {metric.name for metric in experiment_plan(experiment).metrics}
    return replace(run, results=[result for result in run.results if result.name in names])


def _wrong_metric(name: str) -> str:
    try:
        parse_metric(name)
    except UnknownNameError as error:
        text = str(error)
        return text if text.endswith(("?", ".")) else f"{text}."
    return ""


def _wrong_rail(name: str, kind: str) -> str:
    """A rail that keeps a winner from being better, or that nothing can keep to."""
    if _wrong_metric(name):
        return ""  # told already
    metric = parse_metric(name)
    if kind == "max_increase" and metric.higher_is_better:
        return f"more {metric.name} is better: an increase needs no limit. Use min, or margin for a loss."
    if kind == "margin" and is_of_time(metric):
        return f"{metric.name} is of times: one run each cannot rule out a loss. Use max or max_increase."
    return ""
