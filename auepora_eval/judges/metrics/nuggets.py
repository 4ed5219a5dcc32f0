"""Nugget recall: which facts that an answer should hold it does hold.

| labels["nuggets"] = [{"text": "north pier", "importance": "vital", "assignment": "support"}, ...]

`importance` is "vital" or "okay" ("okay" when absent). `assignment` says how an answer covers the nugget:
"support", "partial_support" or "not_support". It is about one answer: a system's own assignments belong into
`output.extra["nuggets"]`, in the same format, and go before those of the labels. Where an assignment is
missing, words decide. With [assign=judge] the judge of the run assigns all nuggets of the labels: they are
part of the dataset, so that every system is compared with the same facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.metrics_base import metric, skip
from ...core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...errors import BadOutputError, ScoringError
from ...metrics.answers.pairs import answer_text
from ...text.content_words import content_words
from ...text.refusal import declines
from ...text.tokens import words
from ..metric import JudgedMetric, declined
from ..question import Question, kind_named, numbered
from ..texts import cut_around

CREDITS = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}
IMPORTANCES = ("vital", "okay")
# The options of the judge, in the words of TREC.
_ASSIGNMENTS = {"full": "support", "partial": "partial_support", "none": "not_support"}

Nugget = Mapping[str, Any]


@metric("nugget_recall[vital={vital?},strict={strict?},assign={assign?}]")
class NuggetRecall(JudgedMetric):
    """Share of the nuggets (short facts that a good answer holds) that the answer holds.

    Σ credit / nuggets: 1 for support, 0.5 for partial support, 0 for none; [strict=true] gives nothing for
    partial support, [vital=true] looks at vital nuggets only (a sample without any is skipped, where
    AutoNuggetizer counts 0). A nugget without assignment is supported if the answer has all of its content
    words (stemmed), partially if at least half of them: a denial has them too. With [assign=judge] the judge
    says how the answer covers each nugget; an answer that declines covers none.
    """

    vital: bool = False
    strict: bool = False
    assign: str = ""
    target = TargetCategory.GENERATION_CORRECTNESS
    requires = ("labels.nuggets",)
    kinds = ("nuggets",)

    def __post_init__(self) -> None:
        if self.assign not in ("", "judge"):
            raise ValueError(f"nuggets can be assigned by a judge (assign=judge), not by {self.assign!r}")

    @property
    def needs_judge(self) -> bool:
        return self.assign == "judge"

    def judged(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        labelled = sample.labels.get("nuggets")
        nuggets = _checked(labelled if self.needs_judge else output.extra.get("nuggets") or labelled)
        if self.vital:
            nuggets = [nugget for nugget in nuggets if nugget.get("importance") == "vital"]
        if not nuggets:
            return skip("the sample has no vital nuggets")
        answer = answer_text(output)
        if not self.needs_judge:
            present = set(words(answer, stemmed=True))
            assignments = [
                one.get("assignment") or _assigned_by_words(one["text"], present) for one in nuggets
            ]
        elif answer.strip() and declines(output.response):
            return declined(sample)
        else:
            assignments = self._assigned_by_judge(nuggets, sample.query, answer)
        earned = [CREDITS[assignment] for assignment in assignments]
        return sum(float(credit == 1) if self.strict else credit for credit in earned) / len(earned)

    def _assigned_by_judge(self, nuggets: Sequence[Nugget], query: str, answer: str) -> list[str]:
        if not answer.strip():
            return ["not_support"] * len(nuggets)
        texts = [cut_around(nugget["text"], query) for nugget in nuggets]
        shown = cut_around(answer, " ".join(texts))
        material = {"question": query, "answer": shown, **numbered("information", texts)}
        verdict = self.ask_all([Question(kind_named("nuggets"), material)])[0]
        return [_ASSIGNMENTS[part.label] for part in verdict.parts]

    def signature(self) -> Mapping[str, object]:
        if self.needs_judge:
            return super().signature()
        return {"assigner": "labels, else content words (stemmed)"}


def _checked(nuggets: Any) -> list[Nugget]:
    if not isinstance(nuggets, list):
        raise BadOutputError(f"the nuggets must be a list, not {nuggets!r:.80}")
    for nugget in nuggets:
        if not isinstance(nugget, Mapping) or not isinstance(nugget.get("text"), str):
            raise BadOutputError(f"a nugget must have a text, unlike {nugget!r:.80}")
        for key, allowed in (("importance", IMPORTANCES), ("assignment", tuple(CREDITS))):
            if nugget.get(key) is not None and nugget[key] not in allowed:
                raise BadOutputError(
                    f"the {key} of a nugget is {nugget[key]!r:.80}, none of {', '.join(allowed)}"
                )
    return nuggets


def _assigned_by_words(text: str, present: set[str]) -> str:
    needed = set(content_words(text, stemmed=True)) or set(words(text, stemmed=True))
    if not needed:
        raise ScoringError(f"the nugget {text!r:.80} has no words and no assignment")
    # All words, or at least half of them: the thresholds of partial support.
    share = len(needed & present) / len(needed)
    if share == 1:
        return "support"
    return "partial_support" if share >= 0.5 else "not_support"
