"""run a system on a dataset, score it and store the run

The system is module:attribute (or file.py:attribute): an object with run(sample, top_k=...), a class
without arguments, or a function of the query. Example, on the bundled data:

  auepora run --dataset demo --system auepora_eval.demo.systems:bm25 --metrics recall@5,ndcg@5,token_f1

A plan can be a file (--config plan.config.yaml) with these flags as keys; flags override it.

Every output is on the disk before it counts. A run that was stopped, or killed, goes on where it was:

  auepora run --resume ID

With --json a run that was stopped prints {"evaluation_id", "stopped", "kept", "samples", "resume"}.

It may stop as soon as its verdict is clear, and stays right although it looks after every sample:

  auepora run --dataset demo --system auepora_eval.demo.systems:bm25 --stop-when clear --min recall@5=0.4
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import echo
from .call_flags import (
    CALL_SETTINGS,
    add_call_flags,
    as_measured,
    call_executor,
    call_policy,
    named_system,
)
from .common import (
    add_run_output,
    chosen_metrics,
    exit_code,
    open_samples,
    out_flag,
    progress,
    refuse_no_metrics,
    refuse_no_samples,
    say_run,
    say_stored,
)
from .interrupts import StopNow, finishing_first
from .numbers import at_least, seconds
from .resuming import (
    begun,
    exit_code_of_finished,
    is_compared,
    is_complete,
    new_in_plan,
    refuse_missing,
    refuse_words,
    say_complete,
    say_how_to_raise,
    say_how_to_resume,
    say_resuming,
    system_identity,
)
from .span_flags import add_span_flags, deliver_spans, span_sinks
from .stop_flags import STOP_SETTINGS, add_stop_flags, stop_rule
from .stopped import say_stopped

if TYPE_CHECKING:
    from ..core.dataset import EvaluationDataset
    from ..core.runner import AueporaEvaluator
    from ..runs.cache import OutputCache
    from ..runs.journal_places import JournalPlaces
    from ..runs.scoring import Survey
    from ..runs.spans import Moments
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
    from ..runs.evaluation import FirstSamples, refuse_another_run
    from ..runs.scoring import Survey
    from ..runs.storage import EvaluationResultsStorage

    settings = _settings(args)
    storage = EvaluationResultsStorage(settings["out"])
    is_done = args.resume is not None and is_complete(storage, settings["id"], retry_failed=args.retry_failed)
    if is_done and not is_compared(args):
        return _finished(args, storage)
    dataset = open_samples(settings["dataset"], settings.get("format"))
    if settings.get("limit") is not None:
        dataset = FirstSamples(dataset, settings["limit"])
    named = settings.get("metrics")
    asked = None if named is None else EvaluationPlan(parse_metrics(named))
    survey = Survey.of(dataset, asked)
    refuse_no_samples(settings["dataset"], survey.size)
    seen = as_measured(settings["system"], survey.examples)
    plan = asked or EvaluationPlan(chosen_metrics(None, seen, settings["top_k"]))
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
    rule = stop_rule(settings, plan, storage, is_told=not is_done)
    if is_done:
        refuse_another_run(evaluator, dataset, storage, settings["id"], survey, rule, is_read=True)
        return _finished(args, storage)
    try:
        return _evaluate(args, settings, evaluator, dataset, storage, survey, rule)
    except StopNow as stop:  # it came while what is left was put away
        return 128 + int(stop.args[0])


def _finished(args: Namespace, storage: EvaluationResultsStorage) -> int:
    """Say that a run is finished, and end as it did."""
    sinks = span_sinks(args)
    say_complete(storage, args.id)
    if args.json:
        echo.say_json(storage.load_results(args.id))
    deliver_spans(args, sinks, storage, args.id)
    return exit_code_of_finished(storage, args.id, args.min_coverage)


def _evaluate(
    args: Namespace,
    settings: dict[str, Any],
    evaluator: AueporaEvaluator,
    dataset: EvaluationDataset,
    storage: EvaluationResultsStorage,
    survey: Survey,
    rule: StopRule | None,
) -> int:
    from ..core.runner import InterruptedRunError
    from ..errors import RunStoppedError
    from ..runs.evaluation import evaluate_and_store, refuse_another_run
    from ..runs.spans import Moments
    from ..runs.system_identity import identity_of

    sinks, moments = span_sinks(args), Moments.none()
    identity = identity_of(evaluator.system, begun_in=str(Path.cwd()))
    if args.resume is not None:
        refuse_another_run(evaluator, dataset, storage, settings["id"], survey, rule, identity)
    shown = _Shown(evaluator, survey.size, moments if sinks else None, retry_failed=args.retry_failed)
    with ExitStack() as stack:
        cache = _cache(settings, evaluator)
        if cache is not None:
            stack.enter_context(cache)
        signalled = stack.enter_context(finishing_first(evaluator.stop))
        try:
            # What a system prints is not a result.
            with shown, redirect_stdout(sys.stderr):
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
                    identity=identity,
                    on_begun=shown.begin,
                )
        except (InterruptedRunError, StopNow):
            signalled.is_heeded = True
            shown.say_how_to_resume(storage, settings)
            if args.json:
                say_stopped(storage, settings, survey.size, signalled.reason)
            return signalled.exit_code
        except BaseException as error:
            signalled.is_heeded = True
            shown.say_how_to_resume(storage, settings)
            if isinstance(error, RunStoppedError):
                say_how_to_raise(error, settings)
                if args.json:
                    say_stopped(storage, settings, survey.size, error)
            raise
    if cache is not None:
        echo.note(f"cache: {cache.used} of {survey.size} answers were there")
    if args.json:
        echo.say_json(storage.load_results(settings["id"]))
    else:
        say_run(stored.run, stored.tally)
        echo.say(f"Look closer: auepora show {settings['id']}{out_flag(settings['out'])}")
    say_stored(stored.path)
    deliver_spans(args, sinks, storage, settings["id"], moments)
    return exit_code(stored.run, stored.tally, settings.get("min_coverage"))


class _Shown(ExitStack):
    """What is said of a run once it is ours, and its bar: before that, what is there may be another's."""

    def __init__(
        self, evaluator: AueporaEvaluator, size: int, moments: Moments | None, *, retry_failed: bool
    ) -> None:
        super().__init__()
        self._evaluator, self._size, self._moments = evaluator, size, moments
        self._retry_failed = retry_failed
        self._is_begun = False

    def begin(self, places: JournalPlaces | None) -> None:
        from ..core.runner import name_of

        self._is_begun = True
        evaluator, moments = self._evaluator, self._moments
        spent, policy = evaluator.spent_before, evaluator.policy
        there = say_resuming(places, self._size, spent, policy, retry_failed=self._retry_failed)
        bar = self.enter_context(progress(self._size - there, name_of(evaluator.system)))
        evaluator.on_output = bar if moments is None else moments.noted_before(bar)

    def say_how_to_resume(self, storage: EvaluationResultsStorage, settings: dict[str, Any]) -> None:
        if self._is_begun:
            say_how_to_resume(storage, settings)


def _cache(settings: dict[str, Any], evaluator: AueporaEvaluator) -> OutputCache | None:
    """The answers of earlier runs, if they are kept: those of this very system, asked in this way."""
    from ..core.runner import name_of
    from ..runs.cache import OutputCache

    if not settings.get("cache"):
        return None
    name, system = settings["system"], evaluator.system
    fields = [settings["http"]] if settings.get("http") else []
    identity = [*system_identity(name, name_of(system), system), *fields]
    return OutputCache(settings["cache"], identity, evaluator.top_k)


_STORED = (
    *("dataset", "format", "system", "executor", "concurrency", "timeout", "max_failures", "limit"),
    *CALL_SETTINGS,
    *STOP_SETTINGS,
)


def _settings(args: Namespace) -> dict[str, Any]:
    """Defaults, then the plan file, then the flags."""
    from ..io.config import load_config
    from .common import DEFAULT_OUT

    refuse_words(args)
    planned = load_config(args.config) if args.config else {}
    if "out" in planned and args.out == DEFAULT_OUT:
        args.out = planned["out"]
    before = {}
    if args.resume is not None:
        before = begun(args, planned, _STORED)
        planned = new_in_plan(args, planned, before) if planned else {}
    settings = {**_DEFAULTS, **before, **planned}
    flags = {name: value for name, value in vars(args).items() if value is not None}
    settings.update(flags)
    settings.setdefault("executor", "threads" if settings["concurrency"] > 1 else "serial")
    if settings.get("id") is None:
        settings.pop("id", None)
    refuse_missing(settings, resumes=args.resume is not None)
    for name in ("dataset", "prompt", "cache"):
        if name in planned and name not in flags and settings[name] != "demo":
            # A path in a plan is meant from where the plan lies.
            settings[name] = str(Path(args.config).parent / settings[name])
    return settings
