"""Score the predictions in a file; no system is called.

The predictions have one line per sample: {"sample_id": "1", "retrieved": ["d7", "d2"], "answer": "42 days"}.
A sample without a line counts as failed. Example, on outputs of the bundled data:

  auepora run --dataset demo --system auepora_eval.demo.systems:bm25 --id first
  auepora score --dataset demo --outputs data/evaluation/results/first.run/journal.jsonl --metrics recall@3
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..core.settings import SETTINGS
from . import echo
from .common import (
    check_has_metrics,
    check_has_samples,
    chosen_metrics,
    exit_code,
    open_samples,
    progress,
    say_run,
    say_stored,
)
from .flags import (
    add_settings,
    add_shared_settings,
    deliver_spans,
    settings_of,
    span_sinks,
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
    add_settings(parser, [SETTINGS["format"], SETTINGS["limit"]])
    add_shared_settings(parser)


def run(args: Namespace) -> int:
    from ..core.plan import EvaluationPlan, Survey
    from ..core.scoring import new_evaluation_id, now
    from ..io.traces.spans import check_spans
    from ..metrics.parse import parse_metrics
    from ..runs.evaluation import PredictionRecord, predictions_at, score_predictions
    from ..runs.store.storage import EvaluationResultsStorage

    settings = settings_of(args)
    storage = EvaluationResultsStorage(settings.out)
    sinks = span_sinks(settings)
    dataset = open_samples(args.dataset, settings.format)
    named = None if settings.metrics is None else EvaluationPlan(parse_metrics(settings.metrics))
    survey = Survey.of(dataset, named)
    check_has_samples(args.dataset, survey.size)
    check_spans(Path(args.outputs))
    predictions = predictions_at(args.outputs)
    predictions.check_known_samples(survey.ids)
    survey.check_unique(dataset.name)
    survey.forget_ids()
    depth = min(predictions.longest or 5, 10)
    plan = named or EvaluationPlan(chosen_metrics(None, list(survey.examples.values()), depth))
    check_has_metrics(plan.metrics)
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
        )
        finished = score_predictions(
            record,
            plan,
            top_k=predictions.longest or 5,
            seed=settings.seed,
            configuration={"dataset": args.dataset, "outputs": args.outputs},
            price_input=settings.price_input,
            price_output=settings.price_output,
        )
    if settings.json:
        echo.say_json(storage.load_results(evaluation_id))
    else:
        say_run(finished, record.tally)
    say_stored(record.state.path)
    deliver_spans(settings, sinks, storage, evaluation_id)
    return exit_code(finished, record.tally, settings.min_coverage)
