"""The ten targets of Auepora, as questions, and the targets that users name."""

from __future__ import annotations

from .types import NamedTarget, Target, TargetCategory, as_target, target_of

__all__ = ["QUESTIONS", "NamedTarget", "Target", "TargetCategory", "as_target", "target_of"]

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
