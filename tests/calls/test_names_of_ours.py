"""What a system calls "attempts" or "cached" is its own: it never steers what a run counts and keeps."""

from __future__ import annotations

from typing import Any

from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from tests.builders import a_dataset, a_sample, an_output

OWN = {"attempts": ["plan", "search", "answer"], "cached": False, "seen": 1}


def run_with(extra: dict[str, Any]) -> dict[str, Any]:
    class Agent:
        def run(self, sample: Any, *, top_k: int = 5) -> Any:
            return an_output("a", "x", extra=extra)

    return AueporaEvaluator(Agent(), EvaluationPlan([])).run(a_dataset(a_sample("s"))).outputs[0].extra


def test_the_systems_own_names_are_kept_under_other_ones() -> None:
    extra = dict(OWN)
    assert run_with(extra) == {"system_attempts": OWN["attempts"], "system_cached": False, "seen": 1}
    assert extra == OWN  # the system's own object is left alone
