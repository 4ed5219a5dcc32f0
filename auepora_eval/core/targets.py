"""The target space: how the ten targets group, and what each one asks."""

from __future__ import annotations

from .types import TargetCategory

RETRIEVAL_TARGETS = (TargetCategory.RETRIEVAL_RELEVANCE, TargetCategory.RETRIEVAL_ACCURACY)
GENERATION_TARGETS = (
    TargetCategory.GENERATION_RELEVANCE,
    TargetCategory.GENERATION_FAITHFULNESS,
    TargetCategory.GENERATION_CORRECTNESS,
)
ADDITIONAL_TARGETS = (
    TargetCategory.LATENCY,
    TargetCategory.DIVERSITY,
    TargetCategory.NOISE_ROBUSTNESS,
    TargetCategory.NEGATIVE_REJECTION,
    TargetCategory.COUNTERFACTUAL_ROBUSTNESS,
)

QUESTIONS: dict[TargetCategory, str] = {
    TargetCategory.RETRIEVAL_RELEVANCE: "Do the retrieved documents bear on the query?",
    TargetCategory.RETRIEVAL_ACCURACY: "Are the right documents ranked above the others?",
    TargetCategory.GENERATION_RELEVANCE: "Does the answer address the query?",
    TargetCategory.GENERATION_FAITHFULNESS: "Does the answer stay with the retrieved evidence?",
    TargetCategory.GENERATION_CORRECTNESS: "Does the answer agree with the reference answer?",
    TargetCategory.LATENCY: "How long does an answer take?",
    TargetCategory.DIVERSITY: "How varied are the retrieved documents and the answers?",
    TargetCategory.NOISE_ROBUSTNESS: "Does quality hold when queries or contexts are noisy?",
    TargetCategory.NEGATIVE_REJECTION: "Does the system decline when the documents hold no answer?",
    TargetCategory.COUNTERFACTUAL_ROBUSTNESS: "Does it withstand documents that are wrong?",
}


def parse_target(name: str) -> TargetCategory:
    """The target of that name, in any case: parse_target("latency") is TargetCategory.LATENCY."""
    try:
        return TargetCategory[name.strip().upper()]
    except KeyError:
        known = ", ".join(target.name for target in TargetCategory)
        raise ValueError(f"there is no target {name!r}; the targets are {known}") from None
