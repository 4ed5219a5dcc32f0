"""An experiment: variants are ordinary runs, stored as `<experiment>-<variant>`, and then tested together.

systems = {"small": small_chunks, "large": large_chunks}
outcome = run_experiment(load_experiment("chunks.config.yaml"), dataset, systems, storage)
outcome.verdict.winner, outcome.verdict.reason
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from ..core.dataset import EvaluationDataset
from ..core.fingerprint import canonical_json
from ..core.plan import EvaluationPlan
from ..core.runner import AueporaEvaluator, OnOutput
from ..core.types import EvaluationRun
from ..errors import StorageError, UnknownNameError
from ..io.experiment_config import SPLIT, Experiment, Variant, load_experiment
from ..metrics.parse import parse_metric
from .evaluation import evaluate_and_store
from .experiment_assignment import AssignedSamples, RatioCheck, ratio_check
from .experiment_tests import PairTest, Side, pair_tests, side_of
from .experiment_verdict import Verdict, verdict
from .journal import HEADER, read_header
from .scoring import Predictions, Survey, score_predictions
from .storage import EvaluationResultsStorage, read_results

Source = AueporaEvaluator | Predictions


@dataclass(frozen=True)
class Outcome:
    """What an experiment found."""

    experiment: Experiment
    runs: Mapping[str, EvaluationRun]
    primary: str
    tests: Sequence[PairTest]
    sides: Mapping[str, Side]
    ratio: RatioCheck | None
    verdict: Verdict


def read_experiment(path: str | Path, experiment_id: str | None = None) -> Experiment:
    """The experiment of a file, its metrics checked too; every error is told at once."""
    return load_experiment(path, experiment_id, wrong_metric=_wrong_metric)


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
    force: bool = False,
    on_output: OnOutput | None = None,
) -> bool:
    """Run one variant, or go on with it; False if it was finished already."""
    name, about = run_id(experiment, variant), {"experiment": identity(experiment, variant)}
    samples = samples_of(experiment, variant, dataset)
    plan = experiment_plan(experiment)
    survey = Survey.of(samples, plan)
    begun = resume and _is_begun(storage, name, about, survey, plan)
    if begun and storage.is_finished(name):
        return False
    if isinstance(source, AueporaEvaluator):
        source.configuration = {**source.configuration, **about}
        if on_output is not None:
            source.on_output = on_output
        evaluate_and_store(
            source, samples, storage, evaluation_id=name, resume=begun, force=force, survey=survey
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
        force=force,
        on_output=on_output,
    )
    return True


def identity(experiment: Experiment, variant: Variant) -> dict[str, Any]:
    """What a run must have in common with the variant that it is to be one of."""
    told: dict[str, Any] = {
        "experiment_id": experiment.experiment_id,
        "variant_id": variant.variant_id,
        "settings": {**experiment.plan, **variant.settings},
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
    sides = {name: side_of(run, primary) for name, run in runs.items()}
    tests = pair_tests(experiment, runs, primary, seed=seed)
    ratio = None
    if experiment.assignment == SPLIT:
        ratio = ratio_check({name: side.units for name, side in sides.items()}, experiment.shares)
    found = verdict(experiment, runs, tests, primary, sides, ratio)
    return Outcome(experiment, runs, primary, tests, sides, ratio, found)


def _in_plan(run: EvaluationRun, experiment: Experiment) -> EvaluationRun:
    """The results that the experiment asks for: whatever else was scored would cost power."""
    names = {metric.name for metric in experiment_plan(experiment).metrics}
    return replace(run, results=[result for result in run.results if result.name in names])


def _is_begun(
    storage: EvaluationResultsStorage,
    name: str,
    about: Mapping[str, Any],
    survey: Survey,
    plan: EvaluationPlan,
) -> bool:
    """Whether there is a run of that id to go on with; StorageError if it is one of something else."""
    folder = storage.run_folder(name)
    if storage.is_finished(name):
        results = read_results(storage.find(name))
        configuration, metadata = results.get("configuration"), results.get("metadata")
        sha256 = metadata.get("dataset_sha256") if isinstance(metadata, dict) else None
        metrics = configuration.get("metrics") if isinstance(configuration, dict) else None
        lacking = [one.name for one in plan.metrics if one.name not in (metrics or ())]
        if lacking:
            raise StorageError(f"{name} has no {lacking[0]}. Begin it again with --force.")
    elif (folder / HEADER).is_file():
        header = read_header(folder)
        configuration, sha256 = header.get("configuration"), header.get("dataset_sha256")
    else:
        return False
    before = configuration.get("experiment") if isinstance(configuration, dict) else None
    if before != about["experiment"]:
        raise StorageError(
            f"{name} was begun with other settings. Go on with those, or begin again with --force."
        )
    if sha256 != survey.sha256:
        raise StorageError(f"{name} was begun on other samples. Go on with those, or use --force.")
    return True


def _wrong_metric(name: str) -> str:
    try:
        parse_metric(name)
    except UnknownNameError as error:
        text = str(error)
        return text if text.endswith(("?", ".")) else f"{text}."
    return ""
