"""Where does it get better, and where worse? A comparison within each value of a label or metadata field."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.types import EvaluationSample
from ..errors import PlanError
from ..stats.correction import benjamini_hochberg
from .paired_tests import Tested, tested_all
from .pairing import Pairing
from .repeats import question_of

FEW = 20  # samples; below, a slice is marked: its numbers say little
MOST_VALUES = 50  # of one field; a field with more is an id, or a text


@dataclass(frozen=True)
class SliceComparison:
    """One metric on the samples of which a field has one value. `few` marks fewer than 20 questions.

    `questions` counts a sample once that was asked several times, `pairs` each time.
    """

    field: str
    value: str
    metric: str
    unit: str
    pairs: int
    baseline: float
    candidate: float
    difference: float
    gain: float  # the difference, positive where the candidate is better
    interval: tuple[float, float] | None
    p_value: float
    p_adjusted: float
    verdict: str
    few: bool
    questions: int


def slice_comparisons(
    pairings: Sequence[Pairing],
    fields: Sequence[str],
    samples: Iterable[EvaluationSample],
    *,
    alpha: float,
    seed: int,
    resamples: int,
    repeats: int = 1,
) -> tuple[list[SliceComparison], list[str]]:
    """Every metric in every slice, the worst first, p-values corrected by Benjamini-Hochberg; and notes.

    Of runs that were pooled, `repeats` is how many there were.
    """
    if not fields:
        return [], []
    values, notes = _values(samples, fields)
    tested: list[tuple[str, str, Tested]] = []
    for name, members in values.items():
        for value, ids in members.items():
            parts = [pairing.at(_places(pairing, ids)) for pairing in pairings]
            scored = [part for part in parts if part.scored]
            tested += [(name, value, one) for one in tested_all(scored, seed=seed, resamples=resamples)]
    adjusted = benjamini_hochberg([one.test.p_value for _, _, one in tested])
    found = [
        (_slice(name, value, one, p, alpha, repeats), _range(one))
        for (name, value, one), p in zip(tested, adjusted, strict=True)
    ]
    return [one for one, _ in sorted(found, key=lambda each: _worst_first(*each))], notes


def field_values(sample: EvaluationSample, name: str) -> list[str]:
    """What a sample has under "query_type", "labels.query_type" or "metadata.source"; each of a list."""
    where, _, rest = name.partition(".")
    homes: list[Mapping[str, Any]] = [sample.labels, sample.metadata]
    if rest and where in ("labels", "metadata"):
        homes, name = [getattr(sample, where)], rest
    for home in homes:
        if name in home:
            value = home[name]
            members = value if isinstance(value, list) else [value]
            return [str(one) for one in members if isinstance(one, str | int | float | bool)]
    return []


def _values(
    samples: Iterable[EvaluationSample], fields: Sequence[str]
) -> tuple[dict[str, dict[str, set[str]]], list[str]]:
    """The sample ids of each value of each field; those of rare values of a field with very many are left."""
    found: dict[str, dict[str, set[str]]] = {name: {} for name in fields}
    for sample in samples:
        for name in fields:
            for value in field_values(sample, name):
                found[name].setdefault(value, set()).add(sample.sample_id)
    notes = []
    for name, members in found.items():
        if not members:
            raise PlanError(f"no sample has a label or metadata field {name!r} to slice by. Check its name.")
        if len(members) > MOST_VALUES:
            kept = Counter({value: len(ids) for value, ids in members.items()}).most_common(MOST_VALUES)
            notes.append(f"{name} has {len(members)} values; the {MOST_VALUES} most frequent are compared")
            found[name] = {value: members[value] for value, _ in kept}
    return found, notes


def _places(pairing: Pairing, ids: set[str]) -> list[int]:
    return [place for place, sample_id in enumerate(pairing.sample_ids) if sample_id in ids]


def _slice(
    name: str, value: str, tested: Tested, p_adjusted: float, alpha: float, repeats: int
) -> SliceComparison:
    metric, both = tested.pairing.known, tested.pairing.both.tolist()
    asked = zip(tested.pairing.sample_ids, both, strict=True)
    questions = len({question_of(sample_id, repeats) for sample_id, there in asked if there})
    gain = tested.difference if metric.higher_is_better else -tested.difference
    verdict = "cannot tell" if tested.pairing.differs() else "same"
    if p_adjusted < alpha and gain:
        verdict = "better" if gain > 0 else "worse"
    interval = tested.interval
    return SliceComparison(
        name,
        value,
        tested.pairing.a.name,
        metric.unit,
        sum(both),
        tested.value_a,
        tested.value_b,
        tested.difference,
        gain,
        None if interval is None else (interval.low, interval.high),
        tested.test.p_value,
        p_adjusted,
        verdict,
        questions < FEW,
        questions,
    )


def _range(tested: Tested) -> float:
    """What a change is measured by, so that metrics can be told apart whatever they count in."""
    low, high = tested.pairing.known.bounds
    if math.isfinite(high - low) and high > low:
        return high - low
    return max(abs(tested.value_a), abs(tested.value_b)) or 1.0


def _worst_first(one: SliceComparison, span: float) -> tuple[int, bool, float, float]:
    """What is surely worse, what looks worse, what is alike, what looks better, what is better.

    What is sure goes by the size of the loss, as a share of what the metric can lose; what may be chance goes
    by how likely that is. Slices of few questions come after the others of their kind.
    """
    looks = 2 if one.verdict == "same" or not one.gain else 1 if one.gain < 0 else 3
    kind = {"worse": 0, "better": 4}.get(one.verdict, looks)
    chance = {1: one.p_adjusted, 3: -one.p_adjusted}.get(kind, 0.0)
    return kind, one.few, chance, one.gain / span
