"""Score the stored outputs of a run with other metrics.

The new run has the metrics of the old one and the ones named here. Example:

  auepora run --dataset demo --system auepora_eval.demo.systems:bm25 --id first
  auepora rescore first --metrics recall@1,recall@3,rouge2
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..core.settings import SETTINGS
from . import echo
from .common import add_json, add_out, say_run, say_stored


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run_id", metavar="RUN", help="id or path of a stored run")
    parser.add_argument(
        "--metrics", metavar="NAMES", required=True, help="metrics to compute, such as recall@1,rouge2"
    )
    parser.add_argument("--only", action="store_true", help="leave out the metrics of the old run")
    parser.add_argument("--id", metavar="ID", help="id of the new run (default: RUN-rescored)")
    parser.add_argument("--force", action="store_true", help=SETTINGS["force"].help)
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from dataclasses import replace

    from ..core.plan import EvaluationPlan
    from ..core.scoring import score_outputs
    from ..early_stop.rule import sequence_results
    from ..errors import DataError
    from ..metrics.parse import parse_metrics
    from ..runs.store.storage import EvaluationResultsStorage

    storage = EvaluationResultsStorage(args.out)
    old = storage.load_run(args.run_id)
    plan = EvaluationPlan(parse_metrics(args.metrics))
    plan.validate_dataset(old.samples)
    fresh = score_outputs(plan, old.samples, old.outputs)
    # A run that stopped early needs intervals that are valid although it was watched.
    fresh = sequence_results(plan.metrics, fresh, old.stopping)
    names = {result.name for result in fresh}
    kept = [] if args.only else [result for result in old.results if result.name not in names]
    for result in kept:
        # A metric that scores no single samples has none at all.
        if result.scores and len(result.scores) != len(old.samples):
            what = f"{result.name} has scores for {len(result.scores)} of {len(old.samples)} samples."
            raise DataError(
                args.run_id, what, fix="Check it with auepora verify, or leave it out with --only."
            )
    new_id = args.id or storage.free_id(f"{old.evaluation_id}-rescored")
    configuration = {**old.configuration, "rescored_from": old.evaluation_id}
    finished = replace(old, evaluation_id=new_id, results=kept + fresh, configuration=configuration)
    path = storage.save_run(finished, force=args.force)
    if args.json:
        echo.say_json(storage.load_results(new_id))
    else:
        say_run(finished)
    say_stored(path)
    return 0
