"""score predictions that are in a file; no system is called

One line a sample in the predictions: {"sample_id": "1", "retrieved": ["d7", "d2"], "answer": "42 days"}.
A sample without a line counts as failed. Example, on outputs of the bundled data:

  auepora run --dataset demo --system auepora_eval.demo.systems:bm25 --id first
  auepora score --dataset demo --outputs data/evaluation/results/first.run/outputs.jsonl --metrics recall@3
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from . import echo
from .common import add_run_output, at_least, chosen_metrics, exit_code, load_samples, say_run, say_stored


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dataset", metavar="FILE", required=True, help="a dataset file, or `demo`")
    parser.add_argument("--format", metavar="NAME", help="the dataset's format (default: detected)")
    parser.add_argument("--outputs", metavar="FILE", required=True, help="the predictions, JSON Lines")
    parser.add_argument("--name", metavar="NAME", help="what to call the system (default: the file's name)")
    parser.add_argument("--limit", type=at_least(1), metavar="N", help="only the first N samples")
    add_run_output(parser)


def run(args: Namespace) -> int:
    from ..core.plan import EvaluationPlan
    from ..core.runner import scored_run
    from ..io.predictions import load_predictions, matched_outputs
    from ..runs.storage import EvaluationResultsStorage

    dataset = load_samples(args.dataset, args.format, None)
    outputs = matched_outputs(list(dataset), load_predictions(args.outputs), args.outputs)
    samples = list(dataset)[: args.limit]
    outputs = outputs[: args.limit]
    top_k = max((len(output.retrieved) for output in outputs), default=0) or 5
    finished = scored_run(
        EvaluationPlan(chosen_metrics(args.metrics, samples, min(top_k, 10))),
        samples,
        outputs,
        system_name=args.name or Path(args.outputs).name.split(".")[0],
        dataset_name=dataset.name,
        top_k=top_k,
        seed=args.seed or 0,
        evaluation_id=args.id,
        configuration={"dataset": args.dataset, "outputs": args.outputs},
    )
    storage = EvaluationResultsStorage(args.out)
    path = storage.save_run(finished, force=args.force)
    if args.json:
        echo.say_json(storage.load_results(finished.evaluation_id))
    else:
        say_run(finished)
    say_stored(path)
    return exit_code(finished)
