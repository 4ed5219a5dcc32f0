"""Score the stored outputs of a run with other metrics.

The result is a new run. It has the metrics of the old run and those in --metrics. Judged metrics are computed
from the verdicts that the run has; nothing is asked. Example:

  auepora run --dataset demo --system auepora_eval.demo.systems:bm25 --id first
  auepora rescore first --metrics recall@1,recall@3,rouge2
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace

from ..core.settings import SETTINGS
from ..errors import DataError
from . import echo
from .common import add_flag, add_json, add_out, exit_code, notes_printed_once, say_run, say_stored
from .flags import add_call_settings, add_settings, metric_calls, settings_of
from .judge import judged_metrics, replayed


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run_id", metavar="RUN", help="id or path of a stored run")
    add_flag(parser, "--metrics", "metrics to compute, such as recall@1,rouge2", "NAMES", required=True)
    add_flag(parser, "--only", "leave out the metrics of the old run")
    add_flag(parser, "--id", "id of the new run (default: RUN-rescored)", "ID")
    add_flag(parser, "--force", SETTINGS["force"].help)
    add_out(parser)
    add_call_settings(parser)
    add_settings(parser, [SETTINGS["min_coverage"]])
    add_json(parser)


def run(args: Namespace) -> int:
    from ..core.plan import EvaluationPlan
    from ..core.scoring import Tally
    from ..early_stop.rule import sequence_results
    from ..metrics.parse import parse_metrics
    from ..runs.evaluation import rescored
    from ..runs.store.storage import EvaluationResultsStorage, run_folder
    from ..runs.verdicts import copy_verdicts

    storage = EvaluationResultsStorage(args.out)
    old = storage.load_run(args.run_id)
    match = old.configuration.get("match") or "id"  # the new values must be comparable with the old ones
    plan = EvaluationPlan(parse_metrics(args.metrics), match=match)
    settings = settings_of(args)
    judged = [metric.name for metric in plan.metrics if getattr(metric, "needs_judge", False)]
    replays = replayed(storage, args.run_id, judged_metrics(",".join(judged)), settings) if judged else []
    plan = EvaluationPlan([metric for metric in plan.metrics if metric.name not in judged], match=match)
    plan.validate_dataset(old.samples)
    new_id = args.id or storage.free_id(f"{old.evaluation_id}-rescored")
    state = storage.state(new_id)
    state.check_no_results(force=args.force)  # before a model is asked
    with metric_calls(settings, plan, state) as (evaluator, cache), notes_printed_once(as_json=args.json):
        fresh = rescored(old, plan, state, evaluator, cache, force=args.force)
    # A run that stopped early needs intervals that are valid although it was watched.
    fresh = [*sequence_results(plan.metrics, fresh, old.stopping), *replays]
    names = {result.name for result in fresh}
    kept = [] if args.only else [result for result in old.results if result.name not in names]
    for result in kept:
        # A metric that scores no single samples has none at all.
        if result.scores and len(result.scores) != len(old.samples):
            what = f"{result.name} has scores for {len(result.scores)} of {len(old.samples)} samples."
            raise DataError(
                args.run_id, what, fix="Check it with auepora verify, or leave it out with --only."
            )
    configuration = {**old.configuration, "rescored_from": old.evaluation_id}
    finished = replace(old, evaluation_id=new_id, results=kept + fresh, configuration=configuration)
    path = storage.save_run(finished, force=args.force)
    if judged:
        copy_verdicts(run_folder(storage.find(args.run_id)), state.folder)
    tally = Tally().add(finished.outputs)
    if args.json:
        echo.say_json(storage.load_results(new_id))
    else:
        say_run(finished, tally)
    say_stored(path)
    return exit_code(finished, tally, args.min_coverage)
