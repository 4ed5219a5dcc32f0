"""Score the predictions in a file; no system is called.

The predictions have one line per sample: {"sample_id": "1", "retrieved": ["d7", "d2"], "answer": "42 days"}.
A sample without a line counts as failed. Example, on outputs of the bundled data:

  auepora run --dataset demo --system auepora_eval.demo.systems:bm25 --id first
  auepora score --dataset demo --outputs data/evaluation/results/first.run/journal.jsonl --metrics recall@3
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..core.settings import SETTINGS, RunSettings
from . import echo
from .common import (
    check_has_samples,
    default_plan,
    evaluated_dataset,
    exit_code,
    named_plan,
    progress,
    say_run,
    say_stored,
)
from .flags import (
    add_settings,
    add_shared_settings,
    check_span_file,
    deliver_spans,
    settings_of,
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dataset", metavar="FILE", required=True, help=SETTINGS["dataset"].help)
    parser.add_argument(
        "--outputs",
        metavar="FILE",
        required=True,
        help="predictions file (JSONL), or the journal.jsonl of a run",
    )
    parser.add_argument("--name", metavar="NAME", help="name of the system (default: the name of the file)")
    add_settings(parser, [SETTINGS[name] for name in ("format", "dataset_type", "limit")])
    add_shared_settings(parser)


def run(args: Namespace) -> int:
    from ..core.plan import Survey
    from ..core.scoring import new_evaluation_id, now
    from ..runs.evaluation import PredictionRecord, predictions_at, score_predictions
    from ..runs.store.storage import EvaluationResultsStorage

    settings = settings_of(args)
    storage = EvaluationResultsStorage(settings.out)
    check_span_file(settings)
    dataset = evaluated_dataset(settings)
    named = named_plan(settings.metrics)
    survey = Survey.of(dataset, named)
    check_has_samples(args.dataset, survey.size)
    predictions = predictions_at(args.outputs)
    predictions.check_known_samples(survey.ids)
    survey.check_unique(dataset.name)
    survey.forget_ids()
    depth = min(predictions.longest or 5, 10)
    plan = named or default_plan(list(survey.examples.values()), depth)
    plan.validate_counts(survey.counts, survey.size, survey.unanswerable)
    name = args.name or Path(args.outputs).name.split(".")[0]
    evaluation_id = settings.id or new_evaluation_id(name, dataset.name, now())
    with progress(min(survey.size, settings.limit or survey.size), name) as advance:
        record = PredictionRecord(
            storage.state(evaluation_id),
            dataset,
            predictions,
            system_name=name,
            limit=settings.limit,
            force=settings.force,
            on_output=advance,
            contexts_as_retrieved=bool(settings.contexts_as_retrieved),
        )
        finished = score_predictions(
            record,
            plan,
            top_k=predictions.longest or 5,
            seed=settings.seed,
            configuration={"dataset": args.dataset, "outputs": args.outputs, **_of_the_data(settings)},
            price_input=settings.price_input,
            price_output=settings.price_output,
        )
    if settings.json:
        echo.say_json(storage.load_results(evaluation_id))
    else:
        say_run(finished, record.tally)
    say_stored(record.state.path)
    deliver_spans(settings, storage, evaluation_id)
    return exit_code(finished, record.tally, settings.min_coverage)


def _of_the_data(settings: RunSettings) -> dict[str, object]:
    """Return the settings that say what was scored, where they were given."""
    names = ("dataset_type", "ground_truth", "contexts_as_retrieved", "system_version")
    return {name: value for name in names if (value := getattr(settings, name)) is not None}
