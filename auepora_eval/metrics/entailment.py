"""Support functions by name: how far a text supports a claim, from 0 to 1.

A function of your own takes (premise, hypothesis) and is registered under its name, as what makes it:

    @SUPPORTS.add("mine")
    def make() -> Support:
        model = load_it()
        return lambda premise, hypothesis: model.probability_of_entailment(premise, hypothesis)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from ..core.registry import Registry
from ..errors import ScoringError

Support = Callable[[str, str], float]  # (premise, hypothesis) to a score from 0 to 1

SUPPORTS: Registry[Callable[[], Support]] = Registry(
    "support",
    {
        "consistent": "auepora_eval.metrics.answers.contradiction",
        "lexical": "auepora_eval.metrics.citations.evaluator",
        "trained": "auepora_eval.judges.support",
    },
)


@cache
def support_function(name: str) -> Support:
    """The support function of that name, made once."""
    return SUPPORTS.get(name)()


def support_identity(name: str) -> str:
    """Return the name of a support function, with its version if it has one: trained/3f9a12c4.

    A function with a `version` (a text) gives scores that can be compared only with those of that version.
    """
    version = getattr(support_function(name), "version", None)
    return name if version is None else f"{name}/{version}"


def checked_support(support: Support, premise: str, hypothesis: str) -> float:
    """What a support function says, if it is a number from 0 to 1."""
    score = support(premise, hypothesis)
    if isinstance(score, bool) or not isinstance(score, int | float):
        try:
            score = float(score)  # numpy's numbers, and True for "entailed"
        except (TypeError, ValueError):
            raise ScoringError(f"the support function returned {score!r:.80}, not a number") from None
    if not math.isfinite(score) or not 0 <= score <= 1:
        raise ScoringError(f"the support function returned {score!r:.80}, not a number from 0 to 1")
    return float(score)
