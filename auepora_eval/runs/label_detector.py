"""A detector of hallucinations and contradictions that shows its work: the FHRI with thresholds by scenario.

It decides in this order: contradiction, a price that is not the quoted one, entropy or the floor for high
risk, the threshold of the scenario. It is given a `Question`, which holds no true label, no notes, no rubric
and no hint: what it must not know it cannot use. How little it sees is told in `metrics.fhri`.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, Literal, NamedTuple

from ..core.label_terms import (
    ACCURATE,
    CONTRADICTION,
    DEFAULT_SCENARIO,
    HALLUCINATION,
    PAIR,
    PREDICTED_LABEL,
    SCENARIO_NAMES,
    STORED_OUTPUT,
)
from ..core.types import Document, EvaluationSample, Failure, Response, RetrievedDocument, SystemOutputs
from ..errors import DataError, ScoringError
from ..metrics.contradiction import lexical_contradiction
from ..metrics.fhri import fhri, sub_scores
from ..metrics.fhri_grounding import Evidence, price_mismatch
from .label_pairs import nearest_earlier
from .label_profile import LabelProfile

ContradictionScore = Callable[[str, str], float]
OTHER_PRICE, TOO_UNCERTAIN = "the price is not the quoted one", "the entropy is too high"
_PRICED = frozenset({"numeric_kpi", "intraday"})
_HIGH_RISK_QUESTION = re.compile(
    r"\bcurrent (?:price|quote)\b|\blast (?:close|closing price)\b|\b(?:as of|today|right now)\b"
    r"|\bdividend yield\b|\bP/?E\b|\bmarket cap(?:italization)?\b|\brevenue (?:last year|ttm|trailing)\b"
    r"|\bEPS\b|(?:%|\bpercent\b)\s*(?:growth|change)",
    re.IGNORECASE,
)


class EntropyWarning(UserWarning):
    """An entropy that nobody can judge, because the number of draws is not told."""


class Question(NamedTuple):
    """All that a detector may know of a sample."""

    sample_id: str
    text: str
    scenario: str | None
    pair: str | None


def blinded(sample: EvaluationSample) -> Question:
    """A sample without its label and without what people wrote about it."""
    scenario, pair = sample.labels.get("scenario"), sample.labels.get(PAIR)
    return Question(
        sample.sample_id,
        sample.query,
        None if scenario in (None, "") else str(scenario),
        None if pair is None else str(pair),
    )


def stored_output(sample: EvaluationSample) -> SystemOutputs:
    """The answer that the label describes, as an output; a failure where there is none."""
    stored = sample.metadata.get(STORED_OUTPUT)
    stored = stored if isinstance(stored, dict) else {}
    answer = stored.get("answer")
    if not isinstance(answer, str) or not answer.strip():
        failure = Failure("NoStoredAnswer", "the label set has no answer for this sample")
        return SystemOutputs([], Response(""), error=failure)
    passages = [
        str(each.get("text", "")) if isinstance(each, dict) else str(each)
        for each in _listed(stored, "passages")
    ]
    hits = [
        RetrievedDocument(Document(f"passage-{rank}", text), 1.0 / rank, rank)
        for rank, text in enumerate(passages, start=1)
    ]
    turns = [turn for turn in _listed(stored, "turns")[:-1] if isinstance(turn, dict)]
    extra = {"earlier_answers": [str(turn.get("answer", "")) for turn in turns]} if turns else {}
    return SystemOutputs(hits, Response(answer), extra=extra)


def _listed(record: dict[str, Any], name: str) -> list[Any]:
    """The list of that name, or an empty one: what others wrote into metadata may be anything."""
    found = record.get(name)
    return found if isinstance(found, list) else []


@dataclass(frozen=True)
class LabelDecision:
    """A label and everything that led to it; a label of None is a failure."""

    sample_id: str
    label: str | None
    reason: str
    scenario: str = DEFAULT_SCENARIO
    threshold: float | None = None
    fhri: float | None = None
    sub_scores: dict[str, float | None] | None = None
    contradiction_score: float | None = None
    needs_review: bool = False
    scenario_detected: str | None = None

    @property
    def holds_at_any_threshold(self) -> bool:
        """Whether the label came from something else than the score."""
        return self.label == CONTRADICTION or self.reason in (OTHER_PRICE, TOO_UNCERTAIN)

    def as_output(self) -> SystemOutputs:
        """The decision as an output, which the metrics of labels score."""
        if self.label is None:
            return SystemOutputs([], Response(""), error=Failure("NoLabel", self.reason))
        extra = {PREDICTED_LABEL: self.label, "decision": asdict(self)}
        if self.scenario_detected is not None:
            extra["scenario_detected"] = self.scenario_detected
        return SystemOutputs([], Response(""), extra=extra)


@dataclass(frozen=True)
class FhriDetector:
    """Labels answers by the FHRI and by contradictions within a pair.

    `contradiction` scores (premise, hypothesis) from 0 to 1, and None leaves contradictions out. A score from
    the profile's soft to its hard threshold is a contradiction (`soft="label"`) or only marks the sample for
    review (`soft="flag"`). An answer is accurate if its score is above the threshold, or, with `inclusive`,
    at it. A sample's own scenario decides; `detect_scenario` decides where it has none, and without it that
    is `default`. What it detects is recorded for every sample, so that its accuracy can be measured.
    """

    profile: LabelProfile
    contradiction: ContradictionScore | None = lexical_contradiction
    soft: Literal["label", "flag"] = "label"
    inclusive: bool = False
    detect_scenario: Callable[[str], str] | None = None

    def decide(
        self, samples: Sequence[EvaluationSample], outputs: Sequence[SystemOutputs]
    ) -> list[LabelDecision]:
        """A decision for each sample and the answer that is there for it."""
        questions = [blinded(sample) for sample in samples]
        answered = [output.error is None for output in outputs]
        earlier = nearest_earlier([question.pair for question in questions], answered)
        decisions = []
        for place, (question, output) in enumerate(zip(questions, outputs, strict=True)):
            premises = [str(text) for text in _listed(output.extra, "earlier_answers")]
            partner = earlier[place]
            if partner is not None:
                premises.append(outputs[partner].response.text)
            decisions.append(self._decided(question, output, premises))
        return decisions

    def _decided(self, question: Question, output: SystemOutputs, premises: list[str]) -> LabelDecision:
        if output.error is not None:
            return LabelDecision(question.sample_id, None, f"{output.error.type}: {output.error.message}")
        evidence, answer = _evidence(output), output.response.text
        detected = self.detect_scenario(question.text) if self.detect_scenario else None
        scenario = _known_scenario(question.scenario or detected or DEFAULT_SCENARIO, question.sample_id)
        scores = sub_scores(question.text, answer, evidence)
        index = fhri(scores, self.profile.weights.get(scenario, self.profile.weights[DEFAULT_SCENARIO]))
        conflict = self._conflict(premises, answer)
        label, reason = self._label(question, answer, evidence, scenario, index, conflict)
        soft = conflict is not None and conflict >= self.profile.contradiction_soft
        threshold = self.profile.threshold(scenario)
        return LabelDecision(
            question.sample_id,
            label,
            reason,
            scenario,
            threshold,
            index,
            asdict(scores),
            conflict,
            needs_review=soft or index is None or index < threshold,
            scenario_detected=detected,
        )

    def _label(
        self,
        question: Question,
        answer: str,
        evidence: Evidence,
        scenario: str,
        index: float | None,
        conflict: float | None,
    ) -> tuple[str, str]:
        """The first rule that applies, and which one it was."""
        profile, threshold = self.profile, self.profile.threshold(scenario)
        if conflict is not None and conflict >= profile.contradiction_hard:
            return CONTRADICTION, "contradicts an earlier answer (hard)"
        if conflict is not None and conflict >= profile.contradiction_soft and self.soft == "label":
            return CONTRADICTION, "contradicts an earlier answer (soft)"
        if scenario in _PRICED and price_mismatch(answer, evidence.facts):
            return HALLUCINATION, OTHER_PRICE
        if _too_uncertain(evidence, profile.entropy_share):
            return HALLUCINATION, TOO_UNCERTAIN
        if index is None:
            return ACCURATE, "nothing to score"
        if self._breaches_floor(question, scenario, index):
            return HALLUCINATION, "below the floor for high risk"
        if index > threshold or (self.inclusive and index == threshold):
            return ACCURATE, "above the threshold"
        return HALLUCINATION, "not above the threshold"

    def _breaches_floor(self, question: Question, scenario: str, index: float) -> bool:
        profile = self.profile
        if profile.high_risk_floor is None or index >= profile.high_risk_floor:
            return False
        asked = profile.high_risk_by_question and _HIGH_RISK_QUESTION.search(question.text) is not None
        return asked or scenario in profile.high_risk_scenarios

    def _conflict(self, premises: list[str], answer: str) -> float | None:
        """The highest score of either direction; None where there is nothing to contradict."""
        if self.contradiction is None or not premises:
            return None
        score = self.contradiction
        found = [value for premise in premises for value in (score(premise, answer), score(answer, premise))]
        wrong = [value for value in found if not isinstance(value, Real) or not 0 <= value <= 1]
        if wrong:
            raise ScoringError(f"a contradiction is scored from 0 to 1, not {wrong[0]!r:.60}")
        return float(max(found))


def _known_scenario(scenario: str, sample_id: str) -> str:
    if scenario not in SCENARIO_NAMES:
        raise DataError(
            f"sample {sample_id!r:.80}",
            f"there is no scenario {scenario!r:.60}.",
            fix=f"Use {', '.join(SCENARIO_NAMES)}, or null.",
        )
    return scenario


def _too_uncertain(evidence: Evidence, share: float | None) -> bool:
    """Whether the entropy is above a share of the most that it can be: ln of the number of draws."""
    if share is None or evidence.entropy is None:
        return False
    if not evidence.entropy_samples or evidence.entropy_samples < 2:
        warnings.warn(
            "an entropy without entropy_samples (2 or more) says nothing: it is not looked at.",
            EntropyWarning,
            stacklevel=2,
        )
        return False
    return evidence.entropy > share * math.log(evidence.entropy_samples)


def _evidence(output: SystemOutputs) -> Evidence:
    extra: dict[str, Any] = output.extra
    facts = extra.get("facts") if isinstance(extra.get("facts"), dict) else {}
    return Evidence(
        passages=tuple(hit.doc.text for hit in output.retrieved),
        facts={str(name): float(value) for name, value in (facts or {}).items() if _is_number(value)},
        sources=tuple(str(source) for source in _listed(extra, "sources")),
        symbol=str(extra.get("symbol") or ""),
        has_filings=bool(extra.get("has_filings")),
        entropy=float(extra["entropy"]) if _is_number(extra.get("entropy")) else None,
        entropy_samples=int(extra["entropy_samples"]) if _is_number(extra.get("entropy_samples")) else None,
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
