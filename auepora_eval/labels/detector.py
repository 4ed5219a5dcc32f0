"""Detect hallucinations and contradictions by the FHRI, with thresholds by scenario.

It decides in this order: contradiction, the floor for high risk, the threshold of the scenario. It reads the
question, the scenario and the pair of a sample: no true label, no notes, no rubric and no hint.
`labels.fhri` says how little the index detects.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from numbers import Real
from typing import Any

from ..core.types import (
    STORED_OUTPUT,
    Document,
    EvaluationSample,
    Failure,
    Response,
    RetrievedDocument,
    SystemOutputs,
)
from ..errors import ScoringError
from ..metrics.answers.contradiction import lexical_contradiction
from ..text.label_terms import ACCURATE, CONTRADICTION, DEFAULT_SCENARIO, HALLUCINATION, PREDICTED_LABEL
from .fhri import SCENARIO_WEIGHTS, fhri, sub_scores
from .scoring import nearest_earlier, pairs_of
from .thresholds import SCENARIO_FHRI_THRESHOLDS, scenario_of, threshold_of

ContradictionScore = Callable[[str, str], float]
# From HARD on an answer contradicts an earlier one; from SOFT to HARD too, by a weaker sign.
HARD, SOFT = 0.40, 0.15
# The least score of an answer to a question of high risk: by its scenario, or by what it asks for.
HIGH_RISK_FLOOR = 0.85
_HIGH_RISK_SCENARIOS = frozenset(("numeric_kpi", "intraday", "directional", "regulatory"))
_HIGH_RISK_QUESTION = re.compile(
    r"\bcurrent (?:price|quote)\b|\blast (?:close|closing price)\b|\b(?:as of|today|right now)\b"
    r"|\bdividend yield\b|\bP/?E\b|\bmarket cap(?:italization)?\b|\brevenue (?:last year|ttm|trailing)\b"
    r"|\bEPS\b|(?:%|\bpercent\b)\s*(?:growth|change)",
    re.IGNORECASE,
)


def stored_output(sample: EvaluationSample) -> SystemOutputs:
    """Return the answer that the label describes as an output; a failure where there is none."""
    stored = sample.metadata.get(STORED_OUTPUT)
    stored = stored if isinstance(stored, dict) else {}
    answer = stored.get("answer")
    if not isinstance(answer, str) or not answer.strip():
        failure = Failure("NoStoredAnswer", "the label set has no answer for this sample")
        return SystemOutputs([], Response(""), error=failure)
    passages = [
        str(each.get("text", "")) if isinstance(each, dict) else str(each)
        for each in _list_of(stored, "passages")
    ]
    hits = [
        RetrievedDocument(Document(f"passage-{rank}", text), 1.0 / rank, rank)
        for rank, text in enumerate(passages, start=1)
    ]
    # The last turn is the answer that is judged; the others come before it.
    turns = [turn for turn in _list_of(stored, "turns")[:-1] if isinstance(turn, dict)]
    extra = {"earlier_answers": [str(turn.get("answer", "")) for turn in turns]} if turns else {}
    return SystemOutputs(hits, Response(answer), extra=extra)


def _list_of(record: Mapping[str, Any], name: str) -> list[Any]:
    """Return the list of that name, or an empty one: metadata may have any type."""
    value = record.get(name)
    return value if isinstance(value, list) else []


@dataclass(frozen=True)
class LabelDecision:
    """A label and the reasons for it; a label of None is a failure."""

    sample_id: str
    label: str | None
    reason: str
    scenario: str = DEFAULT_SCENARIO
    threshold: float | None = None
    fhri: float | None = None
    sub_scores: dict[str, float | None] | None = None
    contradiction_score: float | None = None
    needs_review: bool = False

    def as_output(self) -> SystemOutputs:
        """Return the decision as an output, which the metrics of labels score."""
        if self.label is None:
            return SystemOutputs([], Response(""), error=Failure("NoLabel", self.reason))
        return SystemOutputs([], Response(""), extra={PREDICTED_LABEL: self.label, "decision": asdict(self)})


@dataclass(frozen=True)
class FhriDetector:
    """Labels answers by the FHRI and by contradictions within a pair.

    `contradiction` scores (premise, hypothesis) from 0 to 1, and None leaves contradictions out. A sample
    without a scenario gets that of `default`.
    """

    thresholds: Mapping[str, float] = field(default_factory=lambda: SCENARIO_FHRI_THRESHOLDS)
    contradiction: ContradictionScore | None = lexical_contradiction

    def decide(
        self, samples: Sequence[EvaluationSample], outputs: Sequence[SystemOutputs]
    ) -> list[LabelDecision]:
        """Return a decision for each sample and its answer."""
        answered = [output.error is None for output in outputs]
        partners = nearest_earlier(pairs_of(samples), answered)
        decisions = []
        for sample, output, partner in zip(samples, outputs, partners, strict=True):
            premises = [str(text) for text in _list_of(output.extra, "earlier_answers")]
            if partner is not None:
                premises.append(outputs[partner].response.text)
            decisions.append(self._decided(sample, output, premises))
        return decisions

    def _decided(self, sample: EvaluationSample, output: SystemOutputs, premises: list[str]) -> LabelDecision:
        if output.error is not None:
            return LabelDecision(sample.sample_id, None, f"{output.error.type}: {output.error.message}")
        scenario, threshold = scenario_of(sample), threshold_of(sample, self.thresholds)
        answer, passages = output.response.text, [hit.doc.text for hit in output.retrieved]
        scores = sub_scores(sample.query, answer, passages, _entropy(output))
        index = fhri(scores, SCENARIO_WEIGHTS.get(scenario, SCENARIO_WEIGHTS[DEFAULT_SCENARIO]))
        conflict = self._conflict(premises, answer)
        label, reason = _label(sample.query, scenario, threshold, index, conflict)
        return LabelDecision(
            sample.sample_id,
            label,
            reason,
            scenario,
            threshold,
            index,
            asdict(scores),
            conflict,
            needs_review=(conflict or 0.0) >= SOFT or index is None or index < threshold,
        )

    def _conflict(self, premises: list[str], answer: str) -> float | None:
        """Return the highest score of either direction; None where there is nothing to contradict."""
        if self.contradiction is None or not premises:
            return None
        scores: list[float] = []
        for premise in premises:
            scores += [self.contradiction(premise, answer), self.contradiction(answer, premise)]
        wrong = [score for score in scores if not isinstance(score, Real) or not 0 <= score <= 1]
        if wrong:
            raise ScoringError(f"a contradiction is scored from 0 to 1, not {wrong[0]!r:.60}")
        return float(max(scores))


def _label(
    question: str, scenario: str, threshold: float, index: float | None, conflict: float | None
) -> tuple[str | None, str]:
    """Return the label of the first rule that applies and its reason; None if the answer has no score."""
    if conflict is not None and conflict >= SOFT:
        return CONTRADICTION, f"contradicts an earlier answer ({'hard' if conflict >= HARD else 'soft'})"
    if index is None:
        return None, "there is nothing to score it by"
    if index < HIGH_RISK_FLOOR and (scenario in _HIGH_RISK_SCENARIOS or _HIGH_RISK_QUESTION.search(question)):
        return HALLUCINATION, "below the floor for high risk"
    if index > threshold:
        return ACCURATE, "above the threshold"
    return HALLUCINATION, "not above the threshold"


def _entropy(output: SystemOutputs) -> float | None:
    value: object = output.extra.get("entropy")
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
