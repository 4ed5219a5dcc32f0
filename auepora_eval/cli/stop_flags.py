"""The flags of `auepora run` that say when it may stop before the last sample."""

from __future__ import annotations

import math
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import echo
from .numbers import share

if TYPE_CHECKING:
    from ..core.plan import EvaluationPlan
    from ..core.stopping import Goal, GoalKind
    from ..runs.stopping import StopRule
    from ..runs.storage import EvaluationResultsStorage

STOP_SETTINGS: tuple[str, ...] = ("stop_when", "stop_on", "min", "max", "baseline", "margin", "alpha")
_ALPHA = 0.05


def add_stop_flags(parser: ArgumentParser) -> None:
    """What is to become clear."""
    group = parser.add_argument_group("stopping as soon as the verdict is clear (--stop-when clear)")
    group.add_argument(
        "--stop-when",
        choices=["clear"],
        help="ask samples in random order, and stop when it is clear which side of the limit the truth is on",
    )
    for name, word in (("min", "least"), ("max", "most")):
        about = f"is the metric at {word} that much?"
        group.add_argument(f"--{name}", action="append", metavar="METRIC=VALUE", help=about)
    group.add_argument(
        "--baseline", metavar="RUN", help="is it better than this run, sample by sample? (id or path)"
    )
    group.add_argument(
        "--stop-on", action="append", metavar="METRIC", help="with --baseline: by which metric"
    )
    group.add_argument(
        "--margin",
        action="append",
        metavar="[METRIC=]SIZE",
        help="with --baseline: is it no worse than by so much?",
    )
    group.add_argument("--alpha", type=share, help="chance of a wrong verdict, over all that is asked (0.05)")


def stop_rule(
    settings: Mapping[str, Any],
    plan: EvaluationPlan,
    storage: EvaluationResultsStorage,
    *,
    is_told: bool = True,
) -> StopRule | None:
    """When the run may stop, told to the user if it is to be run; None if it is to ask all samples."""
    from ..errors import PlanError
    from ..runs.stopping import StopRule

    if settings.get("stop_when") is None:
        given = next((name for name in STOP_SETTINGS if settings.get(name) is not None), None)
        if given is not None:
            flag = f"--{given.replace('_', '-')}"
            raise PlanError(f"{flag} says when to stop: add --stop-when clear, or leave it out.")
        return None
    if settings["stop_when"] != "clear":
        raise PlanError(f"a run stops when clear, not when {settings['stop_when']!r:.40}.")
    baseline = settings.get("baseline")
    rule = StopRule(
        tuple(_goals(settings, plan)),
        settings.get("alpha") or _ALPHA,
        None if baseline is None else storage.load_scores(baseline),
    )
    asked = ", ".join(f"{goal.metric} {_in_words(goal)}" for goal in rule.goals)
    if not is_told:
        return rule
    echo.note(
        f"samples are asked in random order (seed {settings['seed']}), those of a cluster together, until it "
        f"is clear: {asked}?"
    )
    return rule


def _in_words(goal: Goal) -> str:
    if goal.kind == "better":
        return "better than the baseline"
    return f"no worse by {goal.limit:g}" if goal.kind == "no worse" else f"{goal.kind} {goal.limit:g}"


def _goals(settings: Mapping[str, Any], plan: EvaluationPlan) -> list[Goal]:
    from ..core.stopping import Goal
    from ..errors import PlanError

    kinds: tuple[tuple[str, GoalKind], ...] = (("min", "at least"), ("max", "at most"))
    goals = []
    for name, kind in kinds:
        for text in _texts(settings.get(name)):
            metric, limit = _named_number(text, name)
            if not metric:
                raise PlanError(f"--{name} {text!r:.60} names no metric. Write, for example, recall@5=0.8.")
            goals.append(Goal(_known(metric), kind, limit))
    margins = dict(_named_number(text, "margin") for text in _texts(settings.get("margin")))
    if settings.get("baseline") is None:
        if margins or settings.get("stop_on"):
            raise PlanError("--margin and --stop-on are about a --baseline: name the run.")
        return goals
    return [
        *goals,
        *_goals_of_baseline(settings, plan, {_known(m) if m else m: v for m, v in margins.items()}),
    ]


def _goals_of_baseline(
    settings: Mapping[str, Any], plan: EvaluationPlan, margins: Mapping[str, float]
) -> list[Goal]:
    from ..core.stopping import Goal
    from ..errors import PlanError

    if any(size <= 0 for size in margins.values()):
        raise PlanError("a margin is a positive number, such as 0.02.")
    names = [_known(text) for text in _texts(settings.get("stop_on"))]
    names = list(dict.fromkeys([*names, *(name for name in margins if name)]))
    if not names:
        if len(plan.metrics) != 1:
            measured = ", ".join(metric.name for metric in plan.metrics)
            raise PlanError(
                f"--baseline: which metric decides? Name it with --stop-on; there are {measured}."
            )
        names = [plan.metrics[0].name]
    sizes = {name: margins.get(name, margins.get("")) for name in names}
    return [
        Goal(name, "better") if size is None else Goal(name, "no worse", size) for name, size in sizes.items()
    ]


def _known(name: str) -> str:
    """A metric's name as results have it; one that is not ours stays as it is."""
    from ..errors import UnknownNameError
    from ..metrics.parse import parse_metric

    try:
        return parse_metric(name).name
    except UnknownNameError:
        return name


def _named_number(text: str, flag: str) -> tuple[str, float]:
    """ "recall@5=0.8" as ("recall@5", 0.8); "0.8" as ("", 0.8)."""
    from ..errors import PlanError

    name, _, number = str(text).rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise PlanError(f"--{flag} {text!r:.60} has no number. Write, for example, recall@5=0.8.")
    return name.strip(), value


def _texts(given: str | Sequence[str] | None) -> Sequence[str]:
    if given is None:
        return ()
    return given.split(",") if isinstance(given, str) else given
