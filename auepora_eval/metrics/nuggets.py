"""Nugget recall: which facts that an answer should hold it does hold.

    labels["nuggets"] = [{"text": "north pier", "importance": "vital", "assignment": "support"}, ...]

`importance` is "vital" or "okay" ("okay" when absent). `assignment` says how an answer covers the nugget:
"support", "partial_support" or "not_support". It is about one answer: a system's own assignments belong into
`output.extra["nuggets"]`, in the same format, and go before those of the labels. Where an assignment is
missing, words decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.metrics_base import METRICS, SampleMetric, skip
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ..errors import ScoringError
from .content import content_words
from .pairs import answer_text
from .text import words

CREDITS = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}
IMPORTANCES = ("vital", "okay")


@METRICS.add("nugget_recall")
@dataclass
class NuggetRecall(SampleMetric):
    """Share of the nuggets (short facts that a good answer holds) that the answer holds.

    Σ credit / nuggets: 1 for support, 0.5 for partial support, 0 for none; [strict=true] gives nothing for
    partial support, [vital=true] looks at vital nuggets only (a sample without any is skipped, where
    AutoNuggetizer counts 0). A nugget without assignment is supported if the answer has all of its
    content words (stemmed), partially if at least half of them: a denial has them too. In TREC RAG,
    automatic assignment agrees well with people on systems, weakly on single answers.
    """

    vital: bool = False
    strict: bool = False
    target = TargetCategory.GENERATION_CORRECTNESS
    requires = ("labels.nuggets",)

    def __post_init__(self) -> None:
        options = [f"{name}=true" for name in ("vital", "strict") if getattr(self, name)]
        self.name = f"nugget_recall[{','.join(options)}]" if options else "nugget_recall"

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        nuggets = _nuggets(sample, output)
        if self.vital:
            nuggets = [nugget for nugget in nuggets if nugget.get("importance") == "vital"]
        if not nuggets:
            return skip("the sample has no vital nuggets")
        present = set(words(answer_text(output), stemmed=True))
        return sum(self._credit(nugget, present) for nugget in nuggets) / len(nuggets)

    def _credit(self, nugget: Mapping[str, Any], present: set[str]) -> float:
        assignment = nugget.get("assignment")
        if assignment is None:
            assignment = _assigned_by_words(nugget["text"], present)
        credit = CREDITS[assignment]
        return float(credit == 1) if self.strict else credit

    def signature(self) -> dict[str, Any]:
        return {"assigner": "labels, else content words (stemmed)"}


def _nuggets(sample: EvaluationSample, output: SystemOutputs) -> list[Mapping[str, Any]]:
    nuggets = output.extra.get("nuggets") or sample.labels.get("nuggets")
    if not isinstance(nuggets, list):
        raise ScoringError(f"the nuggets must be a list, not {nuggets!r:.80}")
    for nugget in nuggets:
        if not isinstance(nugget, Mapping) or not isinstance(nugget.get("text"), str):
            raise ScoringError(f"a nugget must have a text, unlike {nugget!r:.80}")
        for key, known in (("importance", IMPORTANCES), ("assignment", tuple(CREDITS))):
            if nugget.get(key) is not None and nugget[key] not in known:
                raise ScoringError(
                    f"the {key} of a nugget is {nugget[key]!r:.80}, none of {', '.join(known)}"
                )
    return nuggets


def _assigned_by_words(text: str, present: set[str]) -> str:
    needed = set(content_words(text, stemmed=True)) or set(words(text, stemmed=True))
    if not needed:
        raise ScoringError(f"the nugget {text!r:.80} has no words and no assignment")
    share = len(needed & present) / len(needed)
    return "support" if share == 1 else "partial_support" if share >= 0.5 else "not_support"
