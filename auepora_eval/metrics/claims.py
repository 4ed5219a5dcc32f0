"""Claim metrics, from claims that people or a model have checked already.

    output.extra["claims"] = {
        "answer_in_reference": [True, False],           # a flag for each claim of the answer
        "reference_in_answer": [True, True, False],     # a flag for each claim of the reference
        "answer_in_documents": [[True, False], [False, False]],  # of the answer, a flag for each document
    }

or the same in `labels["claims"]`, where one answer only was checked. Each metric needs its own entries; a
sample without them is skipped. True means entailed: a contradiction and no opinion are both false.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..core.metrics_base import METRICS, SampleMetric, skip
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ..errors import ScoringError


class ClaimMetric(SampleMetric):
    """A metric of checked claims; `needs` names the entries, `score` gives them to `of_claims`."""

    base: str
    needs: tuple[str, ...]
    target = TargetCategory.GENERATION_CORRECTNESS
    oracle = "RAGChecker, worked example"

    def __post_init__(self) -> None:
        self.name = self.base

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        claims = output.extra.get("claims") or sample.labels.get("claims")
        if claims is None:
            return skip("neither the output nor the labels have checked claims")
        if not isinstance(claims, dict):
            raise ScoringError(f"the claims must be lists by name, not {claims!r:.80}")
        for name in self.needs:
            if claims.get(name) is None:
                return skip(f"the claims have no {name}")
        return self.of_claims(*(_flags(name, claims[name]) for name in self.needs))

    def of_claims(self, *flags: list[bool]) -> float | SampleScore:
        """The score from whether each claim is supported, a list for each entry."""
        raise NotImplementedError


@METRICS.add("claim_precision")
@dataclass
class ClaimPrecision(ClaimMetric):
    """Share of the answer's claims that the reference supports: low when the answer says wrong things.

    Claims of the answer that the reference entails / claims of the answer. It needs checked claims
    (`answer_in_reference`, see `auepora_eval.metrics.claims`); an answer without claims is skipped.
    """

    base = "claim_precision"
    needs = ("answer_in_reference",)

    def of_claims(self, *flags: list[bool]) -> float | SampleScore:
        return _share(flags[0], "the answer makes no claims")


@METRICS.add("claim_recall")
@dataclass
class ClaimRecall(ClaimMetric):
    """Share of the reference's claims that the answer makes: low when the answer leaves things out.

    Claims of the reference that the answer entails / claims of the reference. It needs checked claims
    (`reference_in_answer`). RAGChecker calls this recall; its "claim recall" is about the documents.
    """

    base = "claim_recall"
    needs = ("reference_in_answer",)

    def of_claims(self, *flags: list[bool]) -> float | SampleScore:
        return _share(flags[0], "the reference makes no claims")


@METRICS.add("claim_f1")
@dataclass
class ClaimF1(ClaimMetric):
    """Harmonic mean of claim_precision and claim_recall, by answer.

    2PR / (P + R), 0 where both are; the mean over answers, as in RAGChecker, not the F1 of the means. It
    needs checked claims (`answer_in_reference`, `reference_in_answer`).
    """

    base = "claim_f1"
    needs = ("answer_in_reference", "reference_in_answer")

    def of_claims(self, *flags: list[bool]) -> float | SampleScore:
        of_answer, of_reference = flags
        if not of_reference:
            return skip("the reference makes no claims")
        if not any(of_answer) or not any(of_reference):
            return 0.0
        precision, recall = sum(of_answer) / len(of_answer), sum(of_reference) / len(of_reference)
        return 2 * precision * recall / (precision + recall)


@METRICS.add("claim_faithfulness")
@dataclass
class ClaimFaithfulness(ClaimMetric):
    """Share of the answer's claims that at least one retrieved document supports.

    Claims of the answer that some document entails / claims of the answer, whether they are right or not. It
    needs checked claims (`answer_in_documents`) and agrees with people as far as whoever checked them does:
    publish that agreement beside the value. Support by several documents together does not count.
    """

    base = "claim_faithfulness"
    needs = ("answer_in_documents",)
    target = TargetCategory.GENERATION_FAITHFULNESS

    def of_claims(self, *flags: list[bool]) -> float | SampleScore:
        return _share(flags[0], "the answer makes no claims")


def _flags(name: str, found: Any) -> list[bool]:
    """A flag for each claim; of several documents, one is enough."""
    if isinstance(found, list | tuple):
        if name == "answer_in_documents":
            rows = [row for row in found if isinstance(row, list | tuple)]
            if len(rows) == len(found) and all(isinstance(flag, bool) for row in rows for flag in row):
                return [any(row) for row in rows]
        elif all(isinstance(flag, bool) for flag in found):
            return list(found)
    kind = "lists of true or false" if name == "answer_in_documents" else "true or false"
    raise ScoringError(f"{name} must be a list of {kind}, not {found!r:.80}")


def _share(flags: list[bool], reason: str) -> float | SampleScore:
    return sum(flags) / len(flags) if flags else skip(reason)
