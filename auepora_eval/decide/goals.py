"""The goals of early stopping, by the settings of a run: min, max, baseline, stop_on and margin."""

from __future__ import annotations

from ..core.plan import EvaluationPlan
from ..core.settings import RunSettings, as_names, named_number
from ..core.verdict import Goal, GoalKind
from ..errors import PlanError
from .figures import canonical


def goal_in_words(goal: Goal) -> str:
    """Return a goal after the name of its metric: "at least 0.8"."""
    if goal.kind == "better":
        return "better than the baseline"
    return f"no worse by {goal.limit:g}" if goal.kind == "no worse" else f"{goal.kind} {goal.limit:g}"


def goals_of(settings: RunSettings, plan: EvaluationPlan) -> list[Goal]:
    """Return the goals that the settings name; PlanError if one of them cannot be decided."""
    kinds: tuple[tuple[str, GoalKind], ...] = (("min", "at least"), ("max", "at most"))
    goals = []
    for name, kind in kinds:
        for text in as_names(getattr(settings, name)):
            metric, limit = _number_of(text, name)
            if not metric:
                raise PlanError(f"{name}: {text!r:.60} names no metric. Write, for example, recall@5=0.8.")
            goals.append(Goal(canonical(metric), kind, limit))
    if settings.baseline is None:
        if settings.margin or settings.stop_on:
            raise PlanError("margin and stop_on need a baseline: add 'baseline: RUN'.")
        return goals
    return [*goals, *_goals_of_baseline(settings, plan)]


def _goals_of_baseline(settings: RunSettings, plan: EvaluationPlan) -> list[Goal]:
    """Return one goal per deciding metric: better, or no worse if there is a margin for it."""
    margins: dict[str, float] = {}
    for text in as_names(settings.margin):
        metric, size = _number_of(text, "margin")
        if size <= 0:
            raise PlanError("A margin is a positive number, such as 0.02.")
        margins[canonical(metric) if metric else ""] = size
    names = [canonical(text) for text in as_names(settings.stop_on)]
    names = list(dict.fromkeys([*names, *(name for name in margins if name)]))
    if not names:
        if len(plan.metrics) != 1:
            measured = ", ".join(metric.name for metric in plan.metrics)
            raise PlanError(f"baseline needs the metric that decides: add stop_on, one of {measured}.")
        names = [plan.metrics[0].name]
    goals = []
    for name in names:
        margin = margins.get(name, margins.get(""))  # a margin without a metric is for all of them
        goals.append(Goal(name, "better") if margin is None else Goal(name, "no worse", margin))
    return goals


def _number_of(text: str, key: str) -> tuple[str, float]:
    try:
        return named_number(text)
    except ValueError as error:
        raise PlanError(f"{key}: {error}.") from None
