"""Flags: derived from the settings of a run, and what commands make of them."""

from __future__ import annotations

import math
import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core import settings as known
from ..core.settings import DEFAULT_OUT, SETTINGS, Number, RunSettings, named_number
from ..errors import PlanError
from . import echo

if TYPE_CHECKING:
    from argparse import _ActionsContainer

    from ..calls.executors import Executor
    from ..core.plan import EvaluationPlan
    from ..core.rag_interface import RAGSystemProtocol
    from ..core.runner import AueporaEvaluator
    from ..decide.early_stop import StopRule
    from ..store.cache import CallCache
    from ..store.storage import EvaluationResultsStorage

ALPHA = 0.05
JUDGED_METRIC = "judged_faithfulness"  # of a judge, if no judged metric is named


def add_flag(
    parser: _ActionsContainer, name: str, text: str, metavar: str | None = None, **options: Any
) -> None:
    """Add a flag with a value, or a switch if it has neither a metavar nor choices.

    The help ends with the default, if that is a number or a text.
    """
    if metavar is None and not options:
        parser.add_argument(name, action="store_true", help=text)
        return
    default = options.get("default")
    if isinstance(default, int | float):
        default = f"{default:,.15g}"
    if default and isinstance(default, str):
        text = f"{text} (default: {default})"
    parser.add_argument(name, metavar=metavar, help=text, **options)


def add_settings(parser: _ActionsContainer, *names: str, **renamed: str) -> None:
    """Add the flag of each setting, by another name if it has one: mode="judge_mode".

    Without the flag its value is None, so that a plan can have one.
    """
    for flag, name in {**dict(zip(names, names, strict=True)), **renamed}.items():
        setting = SETTINGS[name]
        options: dict[str, Any] = {"metavar": setting.metavar}
        if setting.kind == "switch":
            options = {"action": "store_true", "default": None}
        elif setting.choices:
            options["choices"] = setting.choices
        elif setting.number is not None:
            options["type"] = number_type(setting.number)
        parser.add_argument(f"--{flag.replace('_', '-')}", dest=name, help=setting.help, **options)


def settings_of(args: Namespace) -> RunSettings:
    """Return the settings of a command: defaults, then its plan file, then its flags."""
    plan: dict[str, Any] = {}
    if getattr(args, "config", None):
        from ..io.config.plan import planned

        plan = planned(args.config)
    return RunSettings.merged(plan, vars(args))


def add_out(parser: _ActionsContainer) -> None:
    parser.add_argument("--out", metavar="DIR", default=DEFAULT_OUT, help=SETTINGS["out"].help)


def add_json(parser: _ActionsContainer) -> None:
    add_flag(parser, "--json", SETTINGS["json"].help)


# Numbers on the command line. Only a callable's result matters to argparse, whatever its stubs ask for.


def number_type(number: Number) -> Callable[[str], float]:
    """Return an argparse type that accepts the numbers of a range."""

    def parse(text: str) -> float:
        try:
            value = int(text) if number.is_whole else float(text)
        except ValueError:
            value = math.nan
        if not number.accepts(value):
            raise ArgumentTypeError(f"{text!r:.60} is not {number.words}")
        return value

    return parse


def at_least(least: int) -> Callable[[str], float]:
    """Return an argparse type that accepts whole numbers from `least` on."""
    return number_type(known.at_least(least))


positive, correlation = number_type(known.POSITIVE), number_type(known.CORRELATION)
share, covered = number_type(known.SHARE), number_type(known.COVERAGE)
port = number_type(known.PORT)
count = at_least(1)


def limit(*, for_all: bool = False) -> Callable[[str], tuple[str, float]]:
    """Return an argparse type for "recall@5=0.8"; `for_all` also accepts "0.8", which has the name ""."""

    def parse(text: str) -> tuple[str, float]:
        try:
            name, number = named_number(text)
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from None
        if not name and (not for_all or "=" in text):
            raise ArgumentTypeError(f"{text!r} is not NAME=NUMBER")
        return name, number

    return parse


def add_alpha(parser: ArgumentParser, default: float | None = ALPHA) -> None:
    parser.add_argument(
        "--alpha", metavar="X", type=share, default=default, help="significance level (default: 0.05)"
    )


def add_resamples(parser: ArgumentParser) -> None:
    add_flag(parser, "--resamples", "number of resamples", "N", type=at_least(100), default=10_000)


# What a run is made of, by its settings.


def named_system(settings: RunSettings) -> RAGSystemProtocol:
    """Return the system that the settings name."""
    from ..calls.streams import stdout_for_results
    from ..core.systems.named import load_system
    from ..core.types import CONTEXTS_AS_RETRIEVED

    name = settings.system or ""
    options = settings.given(known.OF_ENDPOINT)
    of_any: dict[str, Any] = {CONTEXTS_AS_RETRIEVED: True} if settings.contexts_as_retrieved else {}
    if known.is_endpoint(name):
        for argument in settings.arguments or ():
            raise PlanError(f"{argument}: only a system that is Python code takes arguments. Is it misspelt?")
        options["fields"] = options.pop("http", None)
        return load_system(name, {**options, **of_any, "timeout": settings.timeout})
    if settings.arguments:
        of_any["arguments"] = dict(settings.arguments)
    for option in options:
        raise PlanError(f"{option} is for an endpoint: --system openai:URL#MODEL or http:URL.")
    with stdout_for_results():  # its module may print while it is imported
        return load_system(name, of_any)


def without_judged(plan: EvaluationPlan | None, settings: RunSettings) -> EvaluationPlan | None:
    """Return the plan without its judged metrics, whose names the settings keep until the run is stored.

    PlanError if there are some and no judge, before anything is called.
    """
    from ..core.plan import EvaluationPlan

    # By the attribute: judges are imported only where there is one.
    judged = [metric for metric in plan.metrics if getattr(metric, "needs_judge", False)] if plan else []
    if settings.judge is None:
        return plan  # a plan with judged metrics is refused, as all plans are checked
    if judged or not settings.judge_metrics:
        settings.judge_metrics = [metric.name for metric in judged] or [JUDGED_METRIC]
    if plan is None or not judged:
        return plan
    return EvaluationPlan([metric for metric in plan.metrics if metric not in judged])


def call_executor(settings: RunSettings) -> Executor:
    """Return the executor that the settings name."""
    from ..core.systems.call import EXECUTORS

    options: dict[str, Any] = {"concurrency": settings.concurrency}
    if settings.address:
        if settings.executor != "ray":
            raise PlanError("address is for a cluster: add --executor ray, or leave it out.")
        options["address"] = settings.address
    return EXECUTORS.get(settings.executor)(**options)


def evaluator_of(
    settings: RunSettings,
    system: RAGSystemProtocol,
    plan: EvaluationPlan,
    configuration: dict[str, Any] | None = None,
) -> AueporaEvaluator:
    """Return the evaluator that calls a system as the settings say."""
    from ..core.runner import AueporaEvaluator

    return AueporaEvaluator(
        system,
        plan,
        top_k=settings.top_k,
        executor=call_executor(settings),
        policy=settings.call_policy(),
        max_failures=settings.max_failures,
        seed=settings.seed,
        configuration=configuration,
        price_input=settings.price_input,
        price_output=settings.price_output,
    )


def call_cache(settings: RunSettings) -> CallCache | None:
    """Return the file of replies that runs share, if one is named."""
    from ..store.cache import CallCache

    path = cache_path(settings.cache)
    if path is None:
        return None
    # The names of the fields decide what is read from a reply, so they are part of the key. Variants of an
    # experiment may share a system, and differ in its arguments.
    parts = {
        "arguments": settings.arguments or None,
        "http": settings.http,
        "address": settings.address,
        "contexts_as_retrieved": settings.contexts_as_retrieved,
    }
    return CallCache(path, parts)


def cache_path(named: str | None) -> str | None:
    """Return the file of the cache: the one that is named, or that of the environment."""
    return named or os.environ.get("AUEPORA_CACHE") or None


# Early stopping: the goals that the flags name.


def stop_rule(
    settings: RunSettings, plan: EvaluationPlan, storage: EvaluationResultsStorage
) -> StopRule | None:
    """Return when the run may stop early, or None if it uses all samples."""
    if settings.stop_when is None:
        for name in settings.given(known.OF_STOPPING):
            raise PlanError(f"{name} is for early stopping: add 'stop_when: clear', or leave it out.")
        return None
    if settings.stop_when != "clear":
        raise PlanError(f"stop_when accepts only `clear`, not {settings.stop_when!r:.40}.")
    from ..decide.early_stop import StopRule
    from ..decide.goals import goal_in_words, goals_of

    baseline = None if settings.baseline is None else storage.load_run(settings.baseline, texts=False)
    rule = StopRule(tuple(goals_of(settings, plan)), settings.alpha or ALPHA, baseline)
    goals = ", ".join(f"{goal.metric} {goal_in_words(goal)}" for goal in rule.goals)
    order = f"samples run in random order (seed {settings.seed}), those of a cluster together"
    echo.note(f"{order}, until this is decided: {goals}")
    return rule
