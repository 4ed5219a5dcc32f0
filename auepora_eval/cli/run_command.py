"""run a system on a dataset, score it and store the run

The system is module:attribute (or file.py:attribute): an object with run(sample, top_k=...), a class
without arguments, or a function of the query. Example, on the bundled data:

  auepora run --dataset demo --system auepora_eval.demo.systems:bm25 --metrics recall@5,ndcg@5,token_f1

A plan can be a file (--config plan.config.yaml) with these flags as keys; flags override it.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import echo
from .common import (
    add_run_output,
    at_least,
    chosen_metrics,
    exit_code,
    load_samples,
    progress,
    say_run,
    say_stored,
    seconds,
)

if TYPE_CHECKING:
    pass

_DEFAULTS: dict[str, Any] = {"top_k": 5, "concurrency": 1, "seed": 0}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dataset", metavar="FILE", help="a dataset file, or `demo` for the bundled one")
    parser.add_argument("--format", metavar="NAME", help="the dataset's format (default: detected)")
    parser.add_argument("--system", metavar="MODULE:ATTR", help="what to evaluate")
    parser.add_argument("--config", metavar="FILE", help="a plan with these flags as keys")
    parser.add_argument("--top-k", type=at_least(1), metavar="N", help="documents to ask for (5)")
    parser.add_argument("--executor", metavar="NAME", help="serial, threads or async (threads if N > 1)")
    parser.add_argument("--concurrency", type=at_least(1), metavar="N", help="calls at a time (1)")
    parser.add_argument("--timeout", type=seconds, metavar="S", help="seconds after which a call has failed")
    parser.add_argument("--max-failures", type=at_least(0), metavar="N", help="stop after more failed calls")
    parser.add_argument("--limit", type=at_least(1), metavar="N", help="only the first N samples")
    add_run_output(parser)


def run(args: Namespace) -> int:
    from ..core.plan import EvaluationPlan
    from ..core.runner import AueporaEvaluator, name_of
    from ..core.scoring import Tally, new_evaluation_id, now
    from ..execution.local import EXECUTORS
    from ..runs.storage import EvaluationResultsStorage
    from .system import load_system

    settings = _settings(args)
    dataset = load_samples(settings["dataset"], settings.get("format"), settings.get("limit"))
    samples = list(dataset)
    executor = EXECUTORS.get(settings["executor"])
    evaluator = AueporaEvaluator(
        load_system(settings["system"]),
        EvaluationPlan(chosen_metrics(settings.get("metrics"), samples, settings["top_k"])),
        top_k=settings["top_k"],
        executor=executor(concurrency=settings["concurrency"], timeout=settings.get("timeout")),
        max_failures=settings.get("max_failures"),
        seed=settings["seed"],
        configuration={name: settings[name] for name in _STORED if settings.get(name) is not None},
        price_input=settings.get("price_input"),
        price_output=settings.get("price_output"),
    )
    system_name = name_of(evaluator.system)
    evaluation_id = settings.get("id") or new_evaluation_id(system_name, dataset.name, now())
    storage = EvaluationResultsStorage(settings["out"])
    try:
        with (
            storage.outputs_as_they_arrive(evaluation_id, force=args.force) as keep,
            progress(len(samples), system_name) as advance,
            redirect_stdout(sys.stderr),  # what a system prints is not a result
        ):
            evaluator.on_output = lambda sample, output: (keep(sample, output), advance(sample, output))[0]
            finished = evaluator.run(dataset, evaluation_id=evaluation_id)
    except BaseException:
        _note_kept(storage.partial_outputs(evaluation_id), settings["dataset"])
        raise
    path = storage.save_run(finished, force=args.force)
    tally = Tally().add(finished.outputs)
    if args.json:
        echo.say_json(storage.load_results(evaluation_id))
    else:
        say_run(finished, tally)
        echo.say(f"Look closer: auepora show {evaluation_id}{_out_flag(settings['out'])}")
    say_stored(path)
    return exit_code(tally)


def _note_kept(path: Path, dataset: str) -> None:
    """Say where the finished outputs of a run that stopped are, and what can be done with them."""
    if path.exists():
        echo.note(f"kept: {path}\nscore it: auepora score --dataset {dataset} --outputs {path}")


_STORED = ("dataset", "format", "system", "executor", "concurrency", "timeout", "max_failures", "limit")


def _settings(args: Namespace) -> dict[str, Any]:
    """Defaults, then the plan file, then the flags."""
    from ..errors import DataError
    from ..io.config import load_config
    from .common import DEFAULT_OUT

    settings = {**_DEFAULTS, **(load_config(args.config) if args.config else {})}
    flags = {name: value for name, value in vars(args).items() if value is not None}
    if "out" in settings and flags["out"] == DEFAULT_OUT:
        del flags["out"]
    settings.update(flags)
    settings.setdefault("executor", "threads" if settings["concurrency"] > 1 else "serial")
    for name in ("dataset", "system"):
        if not settings.get(name):
            raise DataError(
                f"--{name}", "is missing.", fix="Give the flag, or put it into the plan (--config)."
            )
    if args.config and not args.dataset and settings["dataset"] != "demo":
        # A path in a plan is meant from where the plan lies.
        settings["dataset"] = str(Path(args.config).parent / settings["dataset"])
    return settings


def _out_flag(out: str) -> str:
    from .common import DEFAULT_OUT

    return "" if out == DEFAULT_OUT else f" --out {out}"
