"""How a run ended that was to stop when its verdict is clear, in words."""

from __future__ import annotations

from ..core.stopping import GoalOutcome, Stopping
from .number_texts import interval_text, value_text


def stopping_in_words(stopping: Stopping) -> str:
    """What became clear, after how many samples, and how far its intervals may be trusted."""
    if stopping.stopped_early:
        begin = (
            f"Stopped early, after {stopping.samples_used:,} of {stopping.samples_in_dataset:,} samples in "
            f"random order (seed {stopping.seed}), when the verdict was clear."
        )
    else:
        begin = (
            f"All {stopping.samples_used:,} samples were asked, in random order (seed {stopping.seed}); the "
            "run would have stopped when the verdict was clear."
        )
    verdicts = " ".join(_goal_in_words(goal, stopping) for goal in stopping.goals)
    if not stopping.stopped_early and stopping.largest_cluster > 1:
        verdicts += f" Clusters of up to {stopping.largest_cluster} samples make a verdict take longer."
    end = (
        "Its intervals hold at whatever moment a run stops, and are wider for it; tests and intervals for a "
        "fixed number of samples do not hold here."
    )
    return f"{begin} {verdicts} {end}"


def _goal_in_words(goal: GoalOutcome, stopping: Stopping) -> str:
    of_baseline = goal.kind in ("better", "no worse")
    level = f"{100 * (1 - stopping.alpha):g}%"
    interval = interval_text(goal.interval, signed=of_baseline)
    number = f"{value_text(goal.value, signed=of_baseline)}, {level} interval {interval}"
    if goal.failed:
        number += f", {goal.failed} not measured and taken for the worst either way"
    if not of_baseline:
        limit = f"{goal.kind} {goal.limit:g}"
        words = {
            "yes": f"{goal.metric} is {limit}",
            "no": f"{goal.metric} is not {limit}",
        }.get(goal.verdict, f"It is not clear whether {goal.metric} is {limit}")
        return f"{words} ({number})."
    than = f"than {stopping.baseline_id} on {goal.metric}"
    words = {
        "better": f"It is better {than}",
        "worse": f"It is worse {than}"
        + (f", by more than {goal.limit:g}" if goal.kind == "no worse" else ""),
        "no worse": f"It is no worse {than}, within {goal.limit:g}",
    }.get(goal.verdict, f"It cannot be told whether it is {goal.kind} {than}")
    return f"{words} (change {number})."
