"""Profiles: from which score on an answer counts as accurate, by scenario. They are data, in YAML files.

Two are included: `seed`, the table that the annotation guide names, and `final`, that of the last published
code. A file of your own needs only what differs from its `base`. It may have thresholds for scenarios of your
own. The thresholds can be applied to the scores of any detector; weights, the floor for high risk and the
limits of contradictions are used by the FHRI alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from ..core.types import EvaluationSample, Failure, Response, SystemOutputs
from ..errors import DataError, did_you_mean
from ..io.datasets.label_sets import ScoredSample
from ..io.json.documents import read_document
from ..io.json.records import converted
from ..text.label_terms import (
    ACCURATE,
    CONTRADICTION,
    DEFAULT_SCENARIO,
    HALLUCINATION,
    PREDICTED_LABEL,
    SCENARIO_NAMES,
)
from .fhri import DEFAULT_WEIGHTS

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
    """The scores from which an answer contradicts an earlier one.

    From soft to hard it is a contradiction ("label"), or is only marked for review ("flag").
    """

    hard: Share
    soft: Share
    soft_effect: Literal["label", "flag"] = "label"


class LabelProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The thresholds and weights that turn scores into labels.

    Without `contradiction` the answers of a pair are not compared. An answer is accurate if its score is
    above the threshold, or, if that is `inclusive`, at it.
    """

    name: str
    thresholds: dict[str, float]
    weights: dict[str, dict[str, float]]
    high_risk: HighRisk
    contradiction: ContradictionLimits | None
    inclusive: bool = False
    base: Literal["seed", "final"] = "seed"

    def threshold(self, scenario: str, sample_id: str) -> float:
        """Return the threshold of a sample's scenario; DataError if that is unknown or misspelt."""
        if scenario not in self.thresholds:
            others = f"Use {', '.join(self.thresholds)} or null, or add a threshold for it to a profile."
            raise DataError(
                f"sample {sample_id!r:.80}",
                f"the profile {self.name!r:.60} has no scenario {scenario!r:.60}.",
                fix=did_you_mean(scenario, self.thresholds, others),
            )
        return self.thresholds[scenario]

    @property
    def own_scenarios(self) -> list[str]:
        """The scenarios that only this profile has."""
        return [scenario for scenario in self.thresholds if scenario not in SCENARIO_NAMES]

    def is_accurate(self, score: float, threshold: float) -> bool:
        """Return whether an answer with this score counts as accurate."""
        return score > threshold or (self.inclusive and score == threshold)


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
    profile = converted(whole, LabelProfile, where)
    _check(profile, where)
    return profile


def _check(profile: LabelProfile, where: str) -> None:
    """Raise DataError for a name or a number that the types of a profile do not exclude."""
    for scenario in (*profile.weights, *profile.high_risk.scenarios):
        if scenario not in profile.thresholds:
            fix = did_you_mean(scenario, profile.thresholds, "Add it to thresholds.")
            raise DataError(where, f"the scenario {scenario!r:.60} has no threshold.", fix=fix)
    numbers = {f"thresholds.{name}": value for name, value in profile.thresholds.items()}
    for scenario, weights in profile.weights.items():
        numbers |= {f"weights.{scenario}.{name}": value for name, value in weights.items()}
        if not weights.keys() <= DEFAULT_WEIGHTS.keys() or not any(weights.values()):
            what = f"{weights!r:.80} has no weight above 0, or one of an unknown sub-score."
            raise DataError(f"{where}: weights.{scenario}", what, fix=f"Use {', '.join(DEFAULT_WEIGHTS)}.")
    for name, value in numbers.items():
        if not 0 <= value <= 1:
            raise DataError(f"{where}: {name}", f"{value!r} is not a number from 0 to 1.", fix="Change it.")
    limits = profile.contradiction
    if limits is not None and limits.soft > limits.hard:
        what = f"{limits.soft:g} is above contradiction.hard, {limits.hard:g}."
        raise DataError(f"{where}: contradiction.soft", what, fix="Lower it, or raise the other one.")


_FIELDS = LabelProfile.__struct_fields__


def scenario_of(sample: EvaluationSample) -> str:
    """Return the scenario of a sample, or `default` if it has none."""
    scenario = sample.labels.get("scenario")
    return DEFAULT_SCENARIO if scenario in (None, "") else str(scenario)


def labels_by_score(
    samples: Sequence[EvaluationSample], scores: Sequence[ScoredSample], profile: LabelProfile
) -> list[SystemOutputs]:
    """Return the labels that the scenarios' thresholds make of a detector's scores.

    What the detector called a contradiction stays one. A sample without a score is a failure.
    """
    return [_by_score(sample, one, profile) for sample, one in zip(samples, scores, strict=True)]


def _by_score(sample: EvaluationSample, scored: ScoredSample, profile: LabelProfile) -> SystemOutputs:
    scenario = scenario_of(sample)
    threshold = profile.threshold(scenario, sample.sample_id)
    if scored.contradiction:
        label = CONTRADICTION
    elif scored.score is None:
        return SystemOutputs([], Response(""), error=Failure("NoScore", "the detector gave no score"))
    else:
        label = ACCURATE if profile.is_accurate(scored.score, threshold) else HALLUCINATION
    decision = {"score": scored.score, "scenario": scenario, "threshold": threshold}
    return SystemOutputs([], Response(""), extra={PREDICTED_LABEL: label, "decision": decision})
