"""Score the predictions in a file; no system is called.

The predictions have one line per sample: {"sample_id": "1", "retrieved": ["d7", "d2"], "answer": "42 days"}.
A sample without a line counts as failed. Example, on outputs of the bundled data:

  auepora run --dataset demo --system auepora_eval.demo.systems:bm25 --id first
  auepora score --dataset demo --outputs data/evaluation/results/first.run/journal.jsonl --metrics recall@3
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.settings import SETTINGS, RunSettings
from . import echo
from .common import (
    add_flag,
    check_has_samples,
    default_plan,
    evaluated_dataset,
    exit_code,
    named_plan,
    notes_printed_once,
    progress_bar,
    say_run,
    say_stored,
)
from .flags import (
    add_settings,
    add_shared_settings,
    check_span_file,
    deliver_spans,
    metric_calls,
    settings_of,
)
from .judge import judge_stored, prepared_judge, without_judged

if TYPE_CHECKING:
    from ..core.dataset import EvaluationDataset
    from ..runs.evaluation import Predictions


def add_arguments(parser: ArgumentParser) -> None:
    add_flag(parser, "--dataset", SETTINGS["dataset"].help, "FILE", required=True)
    add_flag(
        parser,
        "--outputs",
        "predictions (JSONL, CSV, a TREC run, a file of another tool), or the journal.jsonl of a run "
        "(default: the answers in the dataset file)",
        "FILE",
    )
    add_flag(parser, "--ignore-identical-ids", "leave out hits with the id of the query, as BEIR does")
    add_flag(parser, "--name", "name of the system (default: the name of the file)", "NAME")
    add_flag(
        parser,
        "--engine",
        "duckdb: metrics of retrieved ids (recall, precision, f1, hit, mrr, map, ndcg, r_precision, rbp) for "
        "millions of samples in JSONL or Parquet, printed only: no run is stored (extra duckdb)",
        choices=("duckdb",),
    )
    add_settings(parser, [SETTINGS[name] for name in ("format", "columns", "dataset_type", "limit")])
    add_shared_settings(parser)


def run(args: Namespace) -> int:
    from ..core.plan import Survey
    from ..core.scoring import new_evaluation_id, now
    from ..runs.evaluation import PredictionRecord, score_predictions
    from ..runs.store.storage import EvaluationResultsStorage

    settings = settings_of(args)
    if args.engine is not None:
        return _run_duckdb(args, settings)
    storage = EvaluationResultsStorage(settings.out)
    check_span_file(settings)
    dataset = evaluated_dataset(settings, is_answered_elsewhere=args.outputs is not None)
    named = without_judged(named_plan(settings.metrics, settings.match), settings)
    judge = prepared_judge(settings)
    check_has_samples(args.dataset, next(iter(dataset), None) is not None)
    predictions = _predictions(args, dataset)
    depth = min(predictions.longest or 5, 10)
    plan = named or default_plan(list(Survey.of(dataset).examples.values()), depth, settings.match)
    if any(getattr(metric, "asked_metric", None) for metric in plan.metrics):
        # Before the first call, which costs money. Otherwise the one pass over the data finds it.
        survey = Survey.of(dataset, plan)
        plan.validate_counts(survey.counts, survey.size, survey.unanswerable)
    name = args.name or Path(args.outputs or args.dataset).name.split(".")[0]
    evaluation_id = settings.id or new_evaluation_id(name, dataset.name, now())
    state = storage.state(evaluation_id)
    size = min(len(predictions), settings.limit or len(predictions))
    shown = progress_bar(size, name, in_a_thread=False)  # with threads there would be no other processes
    with shown as advance, metric_calls(settings, plan, state) as (evaluator, cache):
        record = PredictionRecord(
            state,
            dataset,
            predictions,
            system_name=name,
            limit=settings.limit,
            force=settings.force,
            on_scored=advance,
            contexts_as_retrieved=bool(settings.contexts_as_retrieved),
            score_cache=cache,
        )
        with notes_printed_once(as_json=settings.json):
            finished = score_predictions(
                record,
                plan,
                evaluator=evaluator,
                top_k=predictions.longest or 5,
                seed=settings.seed,
                configuration={
                    "dataset": args.dataset,
                    "outputs": args.outputs or args.dataset,
                    **({"ignore_identical_ids": True} if args.ignore_identical_ids else {}),
                    **_of_the_data(settings),
                },
                price_input=settings.price_input,
                price_output=settings.price_output,
            )
    if judge is not None:
        judged = judge_stored(judge, settings, storage, evaluation_id)
        finished = replace(finished, results=[*finished.results, *judged])
    if settings.json:
        echo.say_json(storage.load_results(evaluation_id))
    else:
        say_run(finished, record.tally)
    say_stored(record.state.path)
    deliver_spans(settings, storage, evaluation_id)
    return exit_code(finished, record.tally, settings.min_coverage)


_FOR_DUCKDB = ("dataset", "outputs", "metrics", "match", "json", "min_coverage")


def _run_duckdb(args: Namespace, settings: RunSettings) -> int:
    """Print the values of predictions that DuckDB reads."""
    from ..core.scoring import Tally
    from ..core.types import EvaluationRun
    from ..errors import PlanError
    from ..io.results.document import metric_entry
    from ..runs.duckdb_engine import score_with_duckdb

    usual = RunSettings()
    flags = [
        setting.flag_name
        for name, setting in SETTINGS.items()
        if name not in _FOR_DUCKDB and getattr(settings, name) != getattr(usual, name)
    ]
    if args.ignore_identical_ids:
        flags.append("--ignore-identical-ids")
    if flags:
        raise PlanError(f"--engine duckdb does not take {', '.join(flags)}. Leave out one or the other.")
    plan = named_plan(settings.metrics, settings.match)
    if plan is None or args.outputs is None:
        raise PlanError("--engine duckdb needs --outputs FILE and --metrics, such as recall@5,mrr,ndcg@5.")
    scored = score_with_duckdb(args.dataset, args.outputs, plan.metrics)
    name, dataset = (Path(path).name.split(".")[0] for path in (args.outputs, args.dataset))
    run = EvaluationRun("", args.name or name, dataset, "", scored.results, [], [], top_k=scored.longest or 5)
    tally = Tally(scored.samples, scored.failures)
    if settings.json:
        metrics = {result.name: metric_entry(result) for result in run.results}
        echo.say_json({"samples": tally.total, "failed": tally.failed, "metrics": metrics})
    else:
        say_run(run, tally)
    echo.note("not stored: --engine duckdb keeps no scores of single samples")
    return exit_code(run, tally, settings.min_coverage)


def _predictions(args: Namespace, dataset: EvaluationDataset) -> Predictions:
    """Return the predictions of a file, or those that the dataset's own file holds."""
    from ..core.settings import column_names
    from ..errors import DataError
    from ..runs.evaluation import predictions_at

    if args.outputs is not None:
        predictions = predictions_at(args.outputs, column_names(args.columns))
        if not args.ignore_identical_ids:
            return predictions
        from ..io.foreign.outputs import WithoutOwnIds

        return WithoutOwnIds(predictions)
    from ..io.foreign.outputs import ForeignPredictions

    if not dataset.outputs:
        raise DataError(args.dataset, "there are no answers in it.", fix="Name their file: --outputs FILE.")
    return ForeignPredictions(args.dataset, dataset.outputs)


def _of_the_data(settings: RunSettings) -> dict[str, object]:
    """Return the settings that say what was scored, where they were given."""
    names = ("match", "columns", "dataset_type", "ground_truth", "contexts_as_retrieved", "system_version")
    return {name: value for name in names if (value := getattr(settings, name)) is not None}
