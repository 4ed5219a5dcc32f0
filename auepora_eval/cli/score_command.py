"""score predictions that are in a file; no system is called

One line a sample in the predictions: {"sample_id": "1", "retrieved": ["d7", "d2"], "answer": "42 days"}.
A sample without a line counts as failed. Example, on outputs of the bundled data:

  auepora run --dataset demo --system auepora_eval.demo.systems:bm25 --id first
  auepora score --dataset demo --outputs data/evaluation/results/first.run/journal.jsonl --metrics recall@3
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from . import echo
from .call_flags import add_scoring_flags, scoring_executor
from .common import (
    add_run_output,
    chosen_metrics,
    exit_code,
    open_samples,
    progress,
    refuse_no_metrics,
    refuse_no_samples,
    say_run,
    say_stored,
)
from .numbers import at_least
from .span_flags import add_span_flags, deliver_spans, span_sinks


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dataset", metavar="FILE", required=True, help="a dataset file, or `demo`")
    parser.add_argument("--format", metavar="NAME", help="the dataset's format (default: detected)")
    parser.add_argument("--outputs", metavar="FILE", required=True, help="predictions, or a run's journal")
    parser.add_argument("--name", metavar="NAME", help="what to call the system (default: the file's name)")
    parser.add_argument("--limit", type=at_least(1), metavar="N", help="only the first N samples")
    add_scoring_flags(parser)
    add_span_flags(parser)
    add_run_output(parser)


def run(args: Namespace) -> int:
    from ..core.plan import EvaluationPlan
    from ..core.scoring import new_evaluation_id, now
    from ..io.span_dump import refuse_spans
    from ..metrics.parse import parse_metrics
    from ..runs.scoring import Survey, predictions_at, score_predictions
    from ..runs.storage import EvaluationResultsStorage

    storage = EvaluationResultsStorage(args.out)
    sinks = span_sinks(args)
    executor = scoring_executor(args)
    dataset = open_samples(args.dataset, args.format)
    asked = None if args.metrics is None else EvaluationPlan(parse_metrics(args.metrics))
    survey = Survey.of(dataset, asked)
    refuse_no_samples(args.dataset, survey.size)
    refuse_spans(Path(args.outputs))
    predictions = predictions_at(args.outputs)
    predictions.refuse_strangers(survey.ids)
    survey.forget_ids()
    depth = min(predictions.longest or 5, 10)
    plan = asked or EvaluationPlan(chosen_metrics(None, list(survey.examples.values()), depth))
    refuse_no_metrics(plan.metrics)
    plan.validate_counts(survey.counts, survey.size)
    name = args.name or Path(args.outputs).name.split(".")[0]
    evaluation_id = args.id or new_evaluation_id(name, dataset.name, now())
    with progress(min(survey.size, args.limit or survey.size), name) as advance:
        finished, tally, path = score_predictions(
            dataset,
            predictions,
            plan,
            storage,
            system_name=name,
            evaluation_id=evaluation_id,
            top_k=predictions.longest or 5,
            seed=args.seed or 0,
            limit=args.limit,
            configuration={"dataset": args.dataset, "outputs": args.outputs},
            price_input=args.price_input,
            price_output=args.price_output,
            force=args.force,
            all_differ=not survey.repeated,
            on_output=advance,
            executor=executor,
        )
    if args.json:
        echo.say_json(storage.load_results(finished.evaluation_id))
    else:
        say_run(finished, tally)
    say_stored(path)
    deliver_spans(args, sinks, storage, evaluation_id)
    return exit_code(finished, tally, args.min_coverage)
