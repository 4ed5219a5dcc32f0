"""Answers that contain what is required: texts, or nuggets (short facts)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.metrics_base import SampleMetric, metric, skip
from ...core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...errors import ScoringError
from ...text.content_words import content_words
from ...text.tokens import folded, has_ideographs, words
from .pairs import answer_text, references


class RequiredAnswers(SampleMetric):
    """A metric of the required answers that the text of the answer contains."""

    target = TargetCategory.GENERATION_CORRECTNESS
    requires = ("reference_answer",)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        groups = required_answers(sample)
        if not groups:
            return skip("the reference is empty, and every text contains that")
        answer = folded(answer_text(output))
        contained = [any(contains(answer, text) for text in alternatives) for alternatives in groups]
        return self.of_contained(contained)

    def of_contained(self, contained: list[bool]) -> float:
        raise NotImplementedError


@metric("contains_answer")
class ContainsAnswer(RequiredAnswers):
    """1 if the answer contains everything that is required, anywhere in its text.

    `reference_answer.structured["required"]` (or `.metadata["required"]`) lists what is required; a list
    inside the list holds alternatives, one of which is enough. Without it, one of the references
    is enough. Compared as lower-case text with single spaces (none in a text with ideographs), not
    by words: "1911" contains "19". A longer answer contains more, and a denial contains what it denies.
    """

    oracle = "RGB checkanswer"

    def of_contained(self, contained: list[bool]) -> float:
        return float(all(contained))


@metric("answer_share")
class AnswerShare(RequiredAnswers):
    """Share of the required answers that the answer contains (STR-EM: partial credit for a list).

    What is required, and what contains means: as for contains_answer. ALCE's STR-EM is this share
    with SQuAD's normalisation of both texts (punctuation and articles left out).
    """

    def of_contained(self, contained: list[bool]) -> float:
        return sum(contained) / len(contained)


def required_answers(sample: EvaluationSample) -> list[list[str]]:
    """Return what an answer must contain: one text of each inner list."""
    reference = sample.reference_answer
    required: Any = None
    if reference is not None:
        structured = reference.structured if isinstance(reference.structured, dict) else {}
        required = structured.get("required") or reference.metadata.get("required")
    if required is None or required == []:
        texts = [text for text in references(sample) if folded(text)]
        return [texts] if texts else []
    if isinstance(required, str):
        required = [required]
    groups = []
    # Anything but a list becomes [None], which fails the check below.
    for item in required if isinstance(required, list | tuple) else [None]:
        group: list[Any] = list(item) if isinstance(item, list | tuple) else [item]
        if not group or not all(isinstance(text, str) and folded(text) for text in group):
            raise ScoringError(
                f"'required' must be a list of texts or lists of texts, none empty, not {required!r:.80}"
            )
        groups.append(group)
    return groups


def contains(folded_answer: str, text: str) -> bool:
    """Return whether a folded answer contains a text."""
    wanted = folded(text)
    if wanted in folded_answer:
        return True
    # Among ideographs, "New York" has lost its space.
    return has_ideographs(folded_answer) and wanted.replace(" ", "") in folded_answer


# Nugget recall: which facts that an answer should hold it does hold.
#
# | labels["nuggets"] = [{"text": "north pier", "importance": "vital", "assignment": "support"}, ...]
#
# `importance` is "vital" or "okay" ("okay" when absent). `assignment` says how an answer covers the nugget:
# "support", "partial_support" or "not_support". It is about one answer: a system's own assignments belong
# into
# `output.extra["nuggets"]`, in the same format, and go before those of the labels. Where an assignment is
# missing, words decide.

CREDITS = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}
IMPORTANCES = ("vital", "okay")


@metric("nugget_recall[vital={vital?},strict={strict?}]")
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

    def signature(self) -> Mapping[str, object]:
        return {"assigner": "labels, else content words (stemmed)"}


def _nuggets(sample: EvaluationSample, output: SystemOutputs) -> list[Mapping[str, Any]]:
    nuggets = output.extra.get("nuggets") or sample.labels.get("nuggets")
    if not isinstance(nuggets, list):
        raise ScoringError(f"the nuggets must be a list, not {nuggets!r:.80}")
    for nugget in nuggets:
        if not isinstance(nugget, Mapping) or not isinstance(nugget.get("text"), str):
            raise ScoringError(f"a nugget must have a text, unlike {nugget!r:.80}")
        for key, allowed in (("importance", IMPORTANCES), ("assignment", tuple(CREDITS))):
            if nugget.get(key) is not None and nugget[key] not in allowed:
                raise ScoringError(
                    f"the {key} of a nugget is {nugget[key]!r:.80}, none of {', '.join(allowed)}"
                )
    return nuggets


def _assigned_by_words(text: str, present: set[str]) -> str:
    needed = set(content_words(text, stemmed=True)) or set(words(text, stemmed=True))
    if not needed:
        raise ScoringError(f"the nugget {text!r:.80} has no words and no assignment")
    # All words, or at least half of them: the thresholds of partial support.
    share = len(needed & present) / len(needed)
    return "support" if share == 1 else "partial_support" if share >= 0.5 else "not_support"
