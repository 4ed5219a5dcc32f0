"""run a system on a dataset, score it and store the run

The system is module:attribute (or file.py:attribute): an object with run(sample, top_k=...), a class
without arguments, or a function of the query. Example, on the bundled data:

  auepora run --dataset demo --system auepora_eval.demo.systems:bm25 --metrics recall@5,ndcg@5,token_f1

A plan can be a file (--config plan.config.yaml) with these flags as keys; flags override it.

Every output is on the disk before it counts. A run that was stopped, or killed, goes on where it was:

  auepora run --resume ID

It may stop as soon as its verdict is clear, and stays right although it looks after every sample:

  auepora run --dataset demo --system auepora_eval.demo.systems:bm25 --stop-when clear --min recall@5=0.4
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack, redirect_stdout
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import echo
from .call_flags import CALL_SETTINGS, add_call_flags, call_executor, call_policy, named_system
from .common import (
    add_run_output,
    at_least,
    chosen_metrics,
    exit_code,
    open_samples,
    progress,
    refuse_no_metrics,
    refuse_no_samples,
    say_run,
    say_stored,
    seconds,
)
from .interrupts import StopNow, finishing_first
from .span_flags import add_span_flags, deliver_spans, span_sinks
from .stop_flags import STOP_SETTINGS, add_stop_flags, stop_rule

if TYPE_CHECKING:
    from ..core.dataset import EvaluationDataset
    from ..core.runner import AueporaEvaluator
    from ..runs.scoring import Survey
    from ..runs.stopping import StopRule
    from ..runs.storage import EvaluationResultsStorage

_DEFAULTS: dict[str, Any] = {"top_k": 5, "concurrency": 1, "seed": 0}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dataset", metavar="FILE", help="a dataset file, or `demo` for the bundled one")
    parser.add_argument("--format", metavar="NAME", help="the dataset's format (default: detected)")
    parser.add_argument(
        "--system", metavar="MODULE:ATTR", help="what to evaluate, or openai:URL#MODEL, or http:URL"
    )
    parser.add_argument("--config", metavar="FILE", help="a plan with these flags as keys")
    parser.add_argument("--top-k", type=at_least(1), metavar="N", help="documents to ask for (5)")
    parser.add_argument(
        "--executor", metavar="NAME", help="serial, threads, async, processes or ray (threads if N > 1)"
    )
    parser.add_argument("--concurrency", type=at_least(1), metavar="N", help="calls at a time (1)")
    parser.add_argument("--timeout", type=seconds, metavar="S", help="seconds after which a call has failed")
    parser.add_argument("--max-failures", type=at_least(0), metavar="N", help="stop after more failed calls")
    parser.add_argument("--limit", type=at_least(1), metavar="N", help="only the first N samples")
    parser.add_argument(
        "--resume", nargs="?", const="", metavar="ID", help="go on with the run ID (or --id), as it was begun"
    )
    parser.add_argument(
        "--retry-failed", action="store_true", help="with --resume: try all failed samples again"
    )
    parser.add_argument("--cache", metavar="DIR", help="keep answers there, and use those of earlier runs")
    add_call_flags(parser)
    add_stop_flags(parser)
    add_span_flags(parser)
    add_run_output(parser)


def run(args: Namespace) -> int:
    from ..core.plan import EvaluationPlan
    from ..core.runner import AueporaEvaluator, name_of
    from ..core.scoring import new_evaluation_id, now
    from ..metrics.parse import parse_metrics
    from ..runs.evaluation import FirstSamples
    from ..runs.scoring import Survey
    from ..runs.storage import EvaluationResultsStorage

    settings = _settings(args)
    storage = EvaluationResultsStorage(settings["out"])
    if args.resume is not None and storage.is_finished(settings["id"]):
        echo.note(f"{echo.one_line(settings['id'])} is finished; there is nothing to go on with.")
        return 0
    dataset = open_samples(settings["dataset"], settings.get("format"))
    if settings.get("limit") is not None:
        dataset = FirstSamples(dataset, settings["limit"])
    named = settings.get("metrics")
    asked = None if named is None else EvaluationPlan(parse_metrics(named))
    survey = Survey.of(dataset, asked)
    refuse_no_samples(settings["dataset"], survey.size)
    plan = asked or EvaluationPlan(chosen_metrics(None, list(survey.examples.values()), settings["top_k"]))
    refuse_no_metrics(plan.metrics)
    evaluator = AueporaEvaluator(
        named_system(settings),
        plan,
        top_k=settings["top_k"],
        executor=call_executor(settings),
        policy=call_policy(settings),
        max_failures=settings.get("max_failures"),
        seed=settings["seed"],
        configuration={name: settings[name] for name in _STORED if settings.get(name) is not None},
        price_input=settings.get("price_input"),
        price_output=settings.get("price_output"),
    )
    system_name = name_of(evaluator.system)
    settings.setdefault("id", new_evaluation_id(system_name, dataset.name, now()))
    rule = stop_rule(settings, plan, storage)
    return _evaluate(args, settings, evaluator, dataset, storage, survey, rule)


def _evaluate(
    args: Namespace,
    settings: dict[str, Any],
    evaluator: AueporaEvaluator,
    dataset: EvaluationDataset,
    storage: EvaluationResultsStorage,
    survey: Survey,
    rule: StopRule | None,
) -> int:
    from ..core.runner import InterruptedRunError, name_of
    from ..runs.cache import OutputCache
    from ..runs.evaluation import evaluate_and_store
    from ..runs.run_log import RunLog, logged
    from ..runs.spans import Moments

    sinks, moments = span_sinks(args), Moments.none()
    with ExitStack() as stack:
        cache = None
        if settings.get("cache"):
            identity = system_identity(settings["system"], name_of(evaluator.system))
            cache = stack.enter_context(OutputCache(settings["cache"], identity, evaluator.top_k))
        signalled = stack.enter_context(finishing_first(evaluator.stop))
        there = 0 if args.resume is None else storage.answered(settings["id"]) or 0
        if there:
            echo.note(f"resuming: {there} of {survey.size} samples have an output")
        log = RunLog(storage.run_folder(settings["id"]), anew=args.resume is None)
        began = None if args.resume is None else there
        try:
            with (
                progress(survey.size - there, name_of(evaluator.system)) as evaluator.on_output,
                redirect_stdout(sys.stderr),  # what a system prints is not a result
                logged(
                    evaluator,
                    log,
                    evaluation_id=settings["id"],
                    dataset=dataset.name,
                    samples=survey.size,
                    there=began,
                    also=moments.note if sinks else None,
                ),
            ):
                stored = evaluate_and_store(
                    evaluator,
                    dataset,
                    storage,
                    evaluation_id=settings["id"],
                    resume=args.resume is not None,
                    retry_failed=args.retry_failed,
                    force=args.force,
                    cache=cache,
                    survey=survey,
                    stop_rule=rule,
                )
        except (InterruptedRunError, StopNow):
            _say_how_to_resume(storage, settings)
            return signalled.exit_code
        except BaseException:
            _say_how_to_resume(storage, settings)
            raise
    if cache is not None:
        echo.note(f"cache: {cache.used} of {survey.size} answers were there")
    if args.json:
        echo.say_json(storage.load_results(settings["id"]))
    else:
        say_run(stored.run, stored.tally)
        echo.say(f"Look closer: auepora show {settings['id']}{_out_flag(settings['out'])}")
    say_stored(stored.path)
    deliver_spans(args, sinks, storage, settings["id"], moments)
    return exit_code(stored.run, stored.tally, settings.get("min_coverage"))


def _say_how_to_resume(storage: EvaluationResultsStorage, settings: dict[str, Any]) -> None:
    """Say what is kept of a run that stopped, and how to go on with it."""
    from ..errors import StorageError

    try:
        kept = storage.answered(settings["id"])
    except StorageError:
        return  # it is the storage that failed; the error says so
    if kept is not None and not storage.is_finished(settings["id"]):
        echo.note(f"kept: {kept} outputs in {storage.run_folder(settings['id'])}")
        echo.note(f"resume: auepora run --resume {settings['id']}{_out_flag(settings['out'])}")


_STORED = (
    *("dataset", "format", "system", "executor", "concurrency", "timeout", "max_failures", "limit"),
    *CALL_SETTINGS,
    *STOP_SETTINGS,
)


def _settings(args: Namespace) -> dict[str, Any]:
    """Defaults, then the plan file, then the flags."""
    from ..errors import DataError
    from ..io.config import load_config
    from .common import DEFAULT_OUT

    before = {} if args.resume is None else _begun(args)
    planned = load_config(args.config) if args.config else {}
    settings = {**_DEFAULTS, **before, **planned}
    flags = {name: value for name, value in vars(args).items() if value is not None}
    if "out" in settings and flags["out"] == DEFAULT_OUT:
        del flags["out"]
    settings.update(flags)
    settings.setdefault("executor", "threads" if settings["concurrency"] > 1 else "serial")
    if settings.get("id") is None:
        settings.pop("id", None)
    for name in ("dataset", "system"):
        if not settings.get(name):
            raise DataError(
                f"--{name}", "is missing.", fix="Give the flag, or put it into the plan (--config)."
            )
    for name in ("dataset", "prompt", "cache"):
        if name in planned and name not in flags and settings[name] != "demo":
            # A path in a plan is meant from where the plan lies.
            settings[name] = str(Path(args.config).parent / settings[name])
    return settings


def _begun(args: Namespace) -> dict[str, Any]:
    """The settings of the run to go on with, from its header: the flags need not be typed again."""
    from ..errors import DataError, NotFoundError
    from ..runs.journal import HEADER, read_header
    from ..runs.storage import EvaluationResultsStorage

    name = args.resume or args.id
    if not name:
        raise DataError("--resume", "does not say which run.", fix="Write --resume ID.")
    if args.force:
        raise DataError(
            "--force", "would throw away what --resume goes on with.", fix="Leave one of them out."
        )
    storage = EvaluationResultsStorage(args.out)
    args.id = name
    folder = storage.run_folder(name)
    if storage.is_finished(name):
        return {"dataset": "-", "system": "-"}  # they are not looked at
    if not (folder / HEADER).is_file():
        begun = storage.unfinished()
        hint = f"Not finished are {', '.join(begun[:5])}." if begun else "Every run in it is finished."
        raise NotFoundError(args.out, f"there is no run {name!r:.80} to go on with.", fix=hint)
    header = read_header(folder)
    stored = header.get("configuration")
    known = (
        {key: value for key, value in stored.items() if key in _STORED} if isinstance(stored, dict) else {}
    )
    metrics = header.get("metrics")
    known |= {"top_k": header.get("top_k"), "seed": header.get("seed")}
    return known | {"metrics": list(metrics) if isinstance(metrics, dict) else None}


def system_identity(name: str, system_name: str) -> list[str]:
    """What tells a system from another: its name and the text of the file that it is in."""
    from importlib.util import find_spec

    module = name.rpartition(":")[0]
    try:
        origin = module if module.endswith(".py") else getattr(find_spec(module), "origin", None)
        content = Path(origin).read_bytes() if origin else b""
    except (OSError, ImportError, ValueError):
        content = b""
    return [name, system_name, sha256(content).hexdigest()]


def _out_flag(out: str) -> str:
    from .common import DEFAULT_OUT

    return "" if out == DEFAULT_OUT else f" --out {out}"
