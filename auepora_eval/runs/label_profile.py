"""Profiles: from which score on an answer counts as accurate, by scenario. They are data, in YAML files.

Two are on board: `seed`, the table that the annotation guide names, and `final`, that of the last published
code. A file of your own needs to hold only what differs from its `base`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..core.label_terms import DEFAULT_SCENARIO, SCENARIO_NAMES
from ..errors import DataError
from ..io.document_file import read_document
from ..metrics.fhri import PARTS

PROFILES = ("seed", "final")
_FOLDER = Path(__file__).parent / "profiles"
_PARTS = {
    "name": None,
    "base": None,
    "thresholds": tuple(SCENARIO_NAMES),
    "weights": tuple(SCENARIO_NAMES),
    "high_risk": ("floor", "scenarios", "by_question"),
    "contradiction": ("hard", "soft"),
    "entropy_share": None,
}
_MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class LabelProfile:
    """What turns scores into labels."""

    name: str
    thresholds: Mapping[str, float]
    weights: Mapping[str, Mapping[str, float]]
    high_risk_floor: float | None
    high_risk_scenarios: frozenset[str]
    high_risk_by_question: bool
    contradiction_hard: float
    contradiction_soft: float
    entropy_share: float | None  # None: the entropy decides nothing

    def threshold(self, scenario: str) -> float:
        """The threshold of a scenario, or that of `default` where it has none of its own."""
        return self.thresholds.get(scenario, self.thresholds[DEFAULT_SCENARIO])


def load_profile(name: str | Path) -> LabelProfile:
    """A profile on board by its name, or that of a YAML or JSON file."""
    if str(name) in PROFILES:
        return _on_board(str(name))
    return _profile(read_document(Path(name), max_bytes=_MAX_BYTES), Path(name).name)


@cache
def _on_board(name: str) -> LabelProfile:
    return _read(_ground(name), f"{name}.yaml")


def _ground(name: str) -> dict[str, Any]:
    """A profile on board, whole: `seed` has everything, `final` what differs from it."""
    own: dict[str, Any] = read_document(_FOLDER / f"{name}.yaml")
    return own if name == "seed" else _over(_ground("seed"), own)


def _profile(record: Any, where: str) -> LabelProfile:
    own = _checked(record, where)
    base = own.get("base", "seed")
    if base not in PROFILES:
        raise DataError(f"{where}: base", f"{base!r:.60} is not a profile.", fix="Use seed or final.")
    return _read({**_over(_ground(base), own), "name": own.get("name", where)}, where)


def _over(ground: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """A profile's own values over those of its base, part by part."""
    return {
        **ground,
        **{part: {**ground[part], **v} if isinstance(v, dict) else v for part, v in own.items()},
    }


def _read(whole: dict[str, Any], where: str) -> LabelProfile:
    risk, contradiction = whole["high_risk"], whole["contradiction"]
    hard = _share(contradiction["hard"], f"{where}: contradiction.hard")
    soft = _share(contradiction["soft"], f"{where}: contradiction.soft")
    if soft > hard:
        what = f"{soft:g} is above contradiction.hard, {hard:g}."
        raise DataError(f"{where}: contradiction.soft", what, fix="Lower it, or raise the other one.")
    return LabelProfile(
        name=_text(whole["name"], f"{where}: name"),
        thresholds={
            scenario: _share(value, f"{where}: thresholds.{scenario}")
            for scenario, value in whole["thresholds"].items()
        },
        weights={
            scenario: _weights(value, f"{where}: weights.{scenario}")
            for scenario, value in whole["weights"].items()
        },
        high_risk_floor=None if risk["floor"] is None else _share(risk["floor"], f"{where}: high_risk.floor"),
        high_risk_scenarios=_scenarios(risk["scenarios"], f"{where}: high_risk.scenarios"),
        high_risk_by_question=_yes_or_no(risk["by_question"], f"{where}: high_risk.by_question"),
        contradiction_hard=hard,
        contradiction_soft=soft,
        entropy_share=_entropy_share(whole["entropy_share"], f"{where}: entropy_share"),
    )


def _checked(record: Any, where: str) -> dict[str, Any]:
    _refuse_unknown(record, tuple(_PARTS), where)
    for part, known in _PARTS.items():
        if known is not None and part in record:
            _refuse_unknown(record[part], known, f"{where}: {part}")
    checked: dict[str, Any] = record
    return checked


def _refuse_unknown(record: Any, known: tuple[str, ...], where: str) -> None:
    if not isinstance(record, dict):
        raise DataError(where, "an object was expected.", fix=f"Its fields are {', '.join(known)}.")
    for name in record:
        if name not in known:
            near = difflib.get_close_matches(str(name)[:80], known, n=1)
            fix = f"Did you mean {near[0]}?" if near else f"Use {', '.join(known)}."
            raise DataError(where, f"there is no {str(name)[:60]!r}.", fix=fix)


def _share(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise DataError(where, f"{value!r:.60} is not a number from 0 to 1.", fix="Change it.")
    return float(value)


def _entropy_share(value: Any, where: str) -> float | None:
    """A share below 1, or None: an entropy is never above all of ln(draws)."""
    share = None if value is None else _share(value, where)
    if share == 1:
        what = "no entropy is above the most that it can be, so 1 says nothing."
        raise DataError(where, what, fix="Use less, such as 0.9, or null for no limit.")
    return share


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise DataError(where, f"{value!r:.60} is not a name.", fix="Write a text, or leave it out.")
    return value


def _yes_or_no(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise DataError(where, f"{value!r:.60} is neither true nor false.", fix="Write it without quotes.")
    return value


def _weights(value: Any, where: str) -> dict[str, float]:
    _refuse_unknown(value, PARTS, where)
    weights = {part: _share(value.get(part, 0.0), f"{where}.{part}") for part in PARTS}
    if not sum(weights.values()):
        raise DataError(where, "all weights are 0.", fix="Give one of them some weight.")
    return weights


def _scenarios(value: Any, where: str) -> frozenset[str]:
    if not isinstance(value, list) or not all(
        isinstance(name, str) and name in SCENARIO_NAMES for name in value
    ):
        raise DataError(where, "a list of scenarios was expected.", fix=f"Use {', '.join(SCENARIO_NAMES)}.")
    return frozenset(value)
