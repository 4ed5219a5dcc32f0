"""Score predictions or the outputs of a run; call no system.

The predictions have one line per sample, and a sample without one has failed:

  {"sample_id": "1", "retrieved": ["d7", "d2"], "answer": "42 days"}

A file that has the questions and the answers is named alone: auepora score FILE.
With --run the result is a new run, with the metrics of the old one and those in
--metrics. Judged metrics are computed from the verdicts that the run has.

  auepora run --dataset demo --system auepora_eval.demo.systems:bm25 --id first
  auepora score --run first --metrics recall@1,rouge2
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.matching import match_of
from ..core.plan import EvaluationPlan, Survey
from ..core.scoring import Tally, score_outputs, short_id
from ..core.settings import SPLITS_FOLDER, RunSettings, column_names
from ..core.types import EvaluationRun
from ..errors import DataError, PlanError
from ..metrics.parse import parse_metrics
from ..store.lock import locked
from ..store.predictions import PredictionRecord, predictions_at, score_predictions
from ..store.storage import EvaluationResultsStorage, database_of
from .common import (
    check_has_samples,
    default_plan,
    evaluated_dataset,
    named_plan,
    notes_printed_once,
    progress_bar,
    say_finished,
)
from .flags import add_flag, add_settings, settings_of

if TYPE_CHECKING:
    from ..core.dataset import EvaluationDataset
    from ..core.types import MetricResult
    from ..store.predictions import Predictions


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help="samples with their answers; the same as --dataset"
    )
    add_settings(parser, "dataset")
    add_flag(parser, "--outputs", "predictions (default: the answers in the dataset file)", "FILE")
    add_flag(parser, "--run", "score the outputs of this stored run, by id or path", "RUN")
    add_flag(parser, "--only", "with --run: leave out the metrics of the old run")
    add_settings(parser, "metrics", "format", "columns", "convert", "match", "limit", "judge", "config")
    add_flag(parser, "--name", "name of the system (default: the name of the file)", "NAME")
    add_settings(parser, "min_coverage", "id", "out", "force", "json")


def run(args: Namespace) -> int:
    settings = settings_of(args)
    if args.file is not None:
        if args.dataset is not None or args.run is not None:
            raise PlanError("FILE takes the place of --dataset and --run. Leave one out.")
        settings = replace(settings, dataset=args.file)
    if args.run is not None:
        return _score_run(args, settings)
    if args.only:
        raise PlanError("--only is for --run RUN. Leave it out.")
    if settings.dataset_type is not None and settings.dataset is None:
        settings = replace(settings, dataset=SPLITS_FOLDER)
    if not settings.dataset:
        raise PlanError("Name what to score: auepora score FILE, --dataset FILE, or --run RUN.")
    storage = EvaluationResultsStorage(settings.out)
    is_elsewhere = args.outputs is not None
    dataset = evaluated_dataset(settings, is_answered=not is_elsewhere, is_answered_elsewhere=is_elsewhere)
    named = named_plan(settings)
    judge = None
    if settings.judge is not None:
        from .judge import judge_stored, named_judge

        judge = named_judge(settings)
    check_has_samples(settings.dataset, next(iter(dataset), None) is not None)
    predictions = _predictions(args.outputs, settings, dataset)
    plan = named
    if plan is None:  # else the dataset is not read for it
        examples = Survey.of(dataset).examples
        plan = default_plan(settings, examples, settings.top_k, timed=predictions.timed)
    name = args.name or Path(args.outputs or settings.dataset).name.split(".")[0]
    evaluation_id = settings.id or storage.free_id(short_id(name))
    state = storage.state(evaluation_id)
    size = min(len(predictions), settings.limit or len(predictions))
    with progress_bar(size, name) as advance:
        record = PredictionRecord(
            state,
            dataset,
            predictions,
            plan,
            system_name=name,
            limit=settings.limit,
            force=settings.force,
            on_scored=advance,
            contexts_as_retrieved=bool(settings.contexts_as_retrieved),
        )
        with notes_printed_once(as_json=settings.json):
            finished = score_predictions(
                record,
                seed=settings.seed,
                configuration={
                    "dataset": settings.dataset,
                    "outputs": args.outputs or settings.dataset,
                    **_of_the_data(settings),
                },
            )
    if judge is not None:
        judged = judge_stored(judge, settings, storage, evaluation_id)
        finished = replace(finished, results=[*finished.results, *judged])
    return say_finished(settings, storage, finished, record.tally)


# --run: the outputs of a stored run, scored with other metrics.

_FOR_DATASETS = ("dataset", "outputs", "format", "columns", "convert", "match", "limit", "judge", "name")


def _score_run(args: Namespace, settings: RunSettings) -> int:
    _check_flags_of_run(args)
    storage = EvaluationResultsStorage(settings.out)
    old = storage.load_run(args.run)
    state = storage.state(settings.id or storage.free_id(f"{old.evaluation_id}-rescored"))
    with locked(state.database):  # refused now, not after the scoring
        state.check_free(force=settings.force)
    fresh = _fresh_results(args.run, old, storage, settings)
    kept = [] if args.only else _kept_results(args.run, old, {result.name for result in fresh})
    finished = replace(
        old,
        evaluation_id=state.evaluation_id,
        results=kept + fresh,
        configuration={**old.configuration, "rescored_from": old.evaluation_id},
    )
    storage.save_run(finished, force=settings.force)
    if any("judge" in result.signature for result in fresh):
        from ..judges.runs import copy_judging  # judges are imported only where there is one

        copy_judging(database_of(storage.find(args.run)), state.database)
    return say_finished(settings, storage, finished, Tally().add(finished.outputs))


def _check_flags_of_run(args: Namespace) -> None:
    given = [f"--{name}" for name in _FOR_DATASETS if getattr(args, name) is not None]
    if given:
        raise PlanError(f"--run does not take {', '.join(given)}: the run has its data. Leave it out.")
    if args.metrics is None:
        raise PlanError("--run needs the metrics to compute: add --metrics, such as recall@1,rouge2.")


def _fresh_results(
    name: str,
    old: EvaluationRun,
    storage: EvaluationResultsStorage,
    settings: RunSettings,
) -> list[MetricResult]:
    """Compute the named metrics from the outputs of a run, the judged ones from its verdicts."""
    from ..store.stopping import sequence_results

    match = match_of(old)  # the new values must be comparable with the old ones
    metrics = EvaluationPlan(parse_metrics(settings.metrics or ""), match=match).metrics
    judged = [metric.name for metric in metrics if getattr(metric, "needs_judge", False)]
    replays: list[MetricResult] = []
    if judged:
        from .judge import judged_metrics, replayed

        replays = replayed(storage, name, judged_metrics(",".join(judged)), settings)
    plan = EvaluationPlan([metric for metric in metrics if metric.name not in judged], match=match)
    plan.validate_dataset(old.samples)
    with notes_printed_once(as_json=settings.json):
        fresh = score_outputs(plan, old.samples, old.outputs)
    # A run that stopped early needs intervals that are valid although it was watched.
    return [*sequence_results(plan.metrics, fresh, old.stopping), *replays]


def _kept_results(name: str, old: EvaluationRun, computed: Collection[str]) -> list[MetricResult]:
    """Return the other results of the run, which must have a score for each sample, or none at all."""
    kept = [result for result in old.results if result.name not in computed]
    for result in kept:
        if result.scores and len(result.scores) != len(old.samples):
            what = f"{result.name} has scores for {len(result.scores)} of {len(old.samples)} samples."
            raise DataError(
                name, what, fix="Check it with auepora show --verify, or leave it out with --only."
            )
    return kept


def _predictions(outputs: str | None, settings: RunSettings, dataset: EvaluationDataset) -> Predictions:
    """Return the predictions of a file, or those that the dataset's own file holds."""
    if outputs is not None:
        predictions = predictions_at(outputs, column_names(settings.columns))
        if not settings.ignore_identical_ids:
            return predictions
    from ..io.outputs import ForeignPredictions, WithoutOwnIds

    if outputs is not None:
        return WithoutOwnIds(predictions)
    where = settings.dataset or ""
    if not dataset.outputs:
        raise DataError(where, "there are no answers in it.", fix="Give --columns answer=NAME or --outputs.")
    return ForeignPredictions(where, dataset.outputs)


def _of_the_data(settings: RunSettings) -> dict[str, object]:
    """Return the settings that say what was scored and what it cost, where they were given."""
    names = (
        *("ignore_identical_ids", "match", "columns", "dataset_type", "ground_truth"),
        *("contexts_as_retrieved", "system_version", "price_input", "price_output"),
    )
    return {name: value for name in names if (value := getattr(settings, name)) is not None}
