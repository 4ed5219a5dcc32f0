"""Detect hallucinations and contradictions by the FHRI, with thresholds by scenario.

It decides in this order: contradiction, a price that is not the quoted one, entropy or the floor for high
risk, the threshold of the scenario. It is given a `Question`, which holds no true label, no notes, no rubric
and no hint, so it cannot use them. `labels.fhri` says how little the index detects.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from ..core.types import (
    STORED_OUTPUT,
    Document,
    EvaluationSample,
    Failure,
    Response,
    RetrievedDocument,
    SystemOutputs,
)
from ..errors import DataError, ScoringError, did_you_mean
from ..io.json.documents import read_document
from ..io.json.records import wrong_record
from ..metrics.answers.contradiction import lexical_contradiction
from ..text.label_terms import (
    ACCURATE,
    CONTRADICTION,
    DEFAULT_SCENARIO,
    HALLUCINATION,
    PREDICTED_LABEL,
    SCENARIO_NAMES,
)
from .fhri import DEFAULT_WEIGHTS, Evidence, fhri, price_mismatch, sub_scores
from .scoring import nearest_earlier, pairs_of

ContradictionScore = Callable[[str, str], float]
OTHER_PRICE, TOO_UNCERTAIN = "the price is not the quoted one", "the entropy is too high"
# Scenarios whose answers quote a price: another price is a hallucination at any score.
_PRICED = frozenset({"numeric_kpi", "intraday"})
_HIGH_RISK_QUESTION = re.compile(
    r"\bcurrent (?:price|quote)\b|\blast (?:close|closing price)\b|\b(?:as of|today|right now)\b"
    r"|\bdividend yield\b|\bP/?E\b|\bmarket cap(?:italization)?\b|\brevenue (?:last year|ttm|trailing)\b"
    r"|\bEPS\b|(?:%|\bpercent\b)\s*(?:growth|change)",
    re.IGNORECASE,
)


class EntropyWarning(UserWarning):
    """An entropy that cannot be judged, because its number of samples is missing."""


class Question(NamedTuple):
    """The parts of a sample that a detector may see: not its label, and not people's notes about it."""

    sample_id: str
    text: str
    scenario: str | None

    @classmethod
    def of(cls, sample: EvaluationSample) -> Question:
        scenario = sample.labels.get("scenario")
        return cls(sample.sample_id, sample.query, None if scenario in (None, "") else str(scenario))


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
    scenario_detected: str | None = None

    @property
    def holds_at_any_threshold(self) -> bool:
        """Whether the label is based on something else than the score."""
        return self.label == CONTRADICTION or self.reason in (OTHER_PRICE, TOO_UNCERTAIN)

    def as_output(self) -> SystemOutputs:
        """Return the decision as an output, which the metrics of labels score."""
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
        """Return a decision for each sample and its answer."""
        answered = [output.error is None for output in outputs]
        partners = nearest_earlier(pairs_of(samples), answered)
        decisions = []
        for sample, output, partner in zip(samples, outputs, partners, strict=True):
            premises = [str(text) for text in _list_of(output.extra, "earlier_answers")]
            if partner is not None:
                premises.append(outputs[partner].response.text)
            decisions.append(self._decided(Question.of(sample), output, premises))
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
        soft = conflict is not None and conflict >= self.profile.contradiction.soft
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
        """Return the label of the first rule that applies, and its reason."""
        profile, threshold = self.profile, self.profile.threshold(scenario)
        if conflict is not None and conflict >= profile.contradiction.hard:
            return CONTRADICTION, "contradicts an earlier answer (hard)"
        if conflict is not None and conflict >= profile.contradiction.soft and self.soft == "label":
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
        risk = self.profile.high_risk
        if risk.floor is None or index >= risk.floor:
            return False
        by_question = risk.by_question and _HIGH_RISK_QUESTION.search(question.text) is not None
        return by_question or scenario in risk.scenarios

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


def _known_scenario(scenario: str, sample_id: str) -> str:
    if scenario not in SCENARIO_NAMES:
        raise DataError(
            f"sample {sample_id!r:.80}",
            f"there is no scenario {scenario!r:.60}.",
            fix=f"Use {', '.join(SCENARIO_NAMES)}, or null.",
        )
    return scenario


def _too_uncertain(evidence: Evidence, share: float | None) -> bool:
    """Return whether the entropy is above a share of its maximum: ln of the number of samples."""
    if share is None or evidence.entropy is None:
        return False
    if not evidence.entropy_samples or evidence.entropy_samples < 2:
        warnings.warn(
            "an entropy without entropy_samples (2 or more) is ignored.",
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
        sources=tuple(str(source) for source in _list_of(extra, "sources")),
        symbol=str(extra.get("symbol") or ""),
        has_filings=bool(extra.get("has_filings")),
        entropy=float(extra["entropy"]) if _is_number(extra.get("entropy")) else None,
        entropy_samples=int(extra["entropy_samples"]) if _is_number(extra.get("entropy_samples")) else None,
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


# Profiles: from which score on an answer counts as accurate, by scenario. They are data, in YAML files.
#
# Two are included: `seed`, the table that the annotation guide names, and `final`, that of the last published
# code. A file of your own needs only what differs from its `base`.

PROFILES = ("seed", "final")
_FOLDER = Path(__file__).parent / "profiles"
# A profile has some 2 KB: anything far larger is another file.
_MAX_BYTES = 1_000_000

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class HighRisk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The score that an answer of high risk needs at least, and what makes a question one of high risk."""

    floor: Share | None
    scenarios: frozenset[str]
    by_question: bool


class ContradictionLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The scores from which an answer contradicts an earlier one."""

    hard: Share
    soft: Share


class LabelProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The thresholds and weights that turn scores into labels."""

    name: str
    thresholds: dict[str, float]
    weights: dict[str, dict[str, float]]
    high_risk: HighRisk
    contradiction: ContradictionLimits
    # None: the entropy decides nothing. Below 1, since an entropy is never above ln(number of samples).
    entropy_share: Annotated[float, msgspec.Meta(ge=0, lt=1)] | None
    base: Literal["seed", "final"] = "seed"

    def threshold(self, scenario: str) -> float:
        """Return the threshold of a scenario, or that of `default` where it has none of its own."""
        return self.thresholds.get(scenario, self.thresholds[DEFAULT_SCENARIO])


def load_profile(name: str | Path) -> LabelProfile:
    """Return an included profile by its name, or that of a YAML or JSON file."""
    if str(name) in PROFILES:
        return _included(str(name))
    path = Path(name)
    return _profile(read_document(path, max_bytes=_MAX_BYTES), path.name)


@cache
def _included(name: str) -> LabelProfile:
    return msgspec.convert(_document(name), LabelProfile)


def _document(name: str) -> Mapping[str, Any]:
    """Return an included profile in full: `seed` has everything, `final` only the differences."""
    own: Mapping[str, Any] = read_document(_FOLDER / f"{name}.yaml")
    return own if name == "seed" else _merged(_document("seed"), own)


def _merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a profile's own values over those of its base, part by part."""
    merged = {**base, **own}
    for part, values in base.items():
        if isinstance(values, dict) and isinstance(merged[part], dict):
            merged[part] = {**values, **merged[part]}
    return merged


def _profile(own: Any, where: str) -> LabelProfile:
    if not isinstance(own, dict):
        raise DataError(where, "an object was expected.", fix=f"Its fields are {', '.join(_FIELDS)}.")
    base = own.get("base")
    whole = _merged(_document(base if base in PROFILES else "seed"), {"name": where, **own})
    try:
        profile = msgspec.convert(whole, LabelProfile)
    except msgspec.ValidationError as error:
        path, what, fix = wrong_record(error, _FIELDS)
        raise DataError(f"{where}: {path[2:]}".removesuffix(": "), what, fix=fix) from None
    _check(profile, where)
    return profile


def _check(profile: LabelProfile, where: str) -> None:
    """Raise DataError for a name or a number that the types of a profile do not exclude."""
    for scenario in (*profile.thresholds, *profile.weights, *profile.high_risk.scenarios):
        if scenario not in SCENARIO_NAMES:
            fix = did_you_mean(scenario, SCENARIO_NAMES, f"Use {', '.join(SCENARIO_NAMES)}.")
            raise DataError(where, f"there is no scenario {scenario!r:.60}.", fix=fix)
    numbers = {f"thresholds.{name}": value for name, value in profile.thresholds.items()}
    for scenario, weights in profile.weights.items():
        numbers |= {f"weights.{scenario}.{name}": value for name, value in weights.items()}
        if not weights.keys() <= DEFAULT_WEIGHTS.keys() or not any(weights.values()):
            what = f"{weights!r:.80} has no weight above 0, or one of an unknown sub-score."
            raise DataError(f"{where}: weights.{scenario}", what, fix=f"Use {', '.join(DEFAULT_WEIGHTS)}.")
    for name, value in numbers.items():
        if not 0 <= value <= 1:
            raise DataError(f"{where}: {name}", f"{value!r} is not a number from 0 to 1.", fix="Change it.")
    hard, soft = profile.contradiction.hard, profile.contradiction.soft
    if soft > hard:
        what = f"{soft:g} is above contradiction.hard, {hard:g}."
        raise DataError(f"{where}: contradiction.soft", what, fix="Lower it, or raise the other one.")


_FIELDS = LabelProfile.__struct_fields__
