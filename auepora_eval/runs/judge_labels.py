"""What people said, to hold a judge against: labelled claims, answers rated by several people, stored scores.

A record is {"evidence": text or texts, "claim": text, "label": ...}. The label is 0 or 1, a word, or a number
on a scale; several people's are an object of their names, or a list with a place for each of them. Where the
judge has already spoken, its score stands in the record and neither evidence nor claim is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from ..errors import DataError

EVIDENCE = ("evidence", "premise", "references", "context", "contexts")
CLAIM = ("claim", "hypothesis")
LABEL = ("label", "attribution_label")
_YES = frozenset("1 true yes supported support entailed entailment attributable accurate".split())
_NO = frozenset(
    (
        *"0 false no unsupported refuted contradiction neutral hallucination".split(),
        "not supported",
        "not support",
        "not attributable",
        "not entailed",
        "not entailment",
    )
)

TIE_DIGITS = 12
Record = Mapping[str, Any]
Scale = tuple[float, float]


@dataclass(frozen=True)
class Labelled:
    """A claim, the texts it is held against, what people said of it, and the part it is reported under.

    `ratings` has what each person said, from 0 to 1; it is empty where one label stands for all of them.
    """

    evidence: tuple[str, ...]
    claim: str
    is_supported: bool
    group: str = ""
    ratings: Mapping[str, float] = field(default_factory=dict)
    score: float | None = None  # of a judge that has already spoken
    cluster: str | None = None  # what claims that are not independent share: a question, a conversation

    @property
    def people(self) -> float:
        """What people say, from 0 to 1: the mean of their ratings."""
        # Thirds of a scale of four do not add up to the last bit; what is equal must tie when it is ranked.
        return round(fmean(self.ratings.values()), TIE_DIGITS) if self.ratings else float(self.is_supported)


@dataclass(frozen=True)
class Columns:
    """Where a record has what; empty means the usual names. `positive` is the label of a claim borne out.

    With a `scale` the labels are numbers from its first to its second; without, yes or no. From
    `people_threshold` on, the mean of what people said, from 0 to 1, counts as yes. `score` is the column of
    a judge's stored scores, on `score_scale`; `cluster` that of what claims that go together share.
    """

    evidence: str = ""
    claim: str = ""
    label: str = ""
    positive: str = ""
    group: str = ""
    scale: Scale | None = None
    people_threshold: float = 0.5
    score: str = ""
    score_scale: Scale = (0.0, 1.0)
    cluster: str = ""


def labelled_claims(records: Iterable[tuple[str, Record]], columns: Columns) -> list[Labelled]:
    """The labelled claims of (place, record) pairs; DataError for a record that lacks something."""
    found, has_group = [], False
    for where, record in records:
        found.append(_labelled(where, record, columns))
        has_group = has_group or columns.group in record
    if found and columns.positive and not any(one.is_supported for one in found):
        what = f"not one of the {len(found)} claims has the label {columns.positive!r:.60}."
        raise DataError("--positive", what, fix="Name one that occurs, as it is written there.")
    if found and columns.group and not has_group:
        what = f"not one of the {len(found)} claims has a field {columns.group!r:.60}."
        raise DataError("--by", what, fix="Name one that occurs, or leave it out.")
    return found


def unlabelled_claims(records: Iterable[tuple[str, Record]], columns: Columns) -> list[Labelled]:
    """Claims that only the judge sees; a label that one of them has is not looked at."""
    return [_labelled(where, record, columns, is_labelled=False) for where, record in records]


def clusters_of(claims: Iterable[Labelled]) -> list[str] | None:
    """The cluster of each claim; None where they are independent."""
    found = [one.cluster for one in claims]
    return [str(cluster) for cluster in found] if any(cluster is not None for cluster in found) else None


def _labelled(where: str, record: Record, columns: Columns, *, is_labelled: bool = True) -> Labelled:
    has_score = bool(columns.score)
    evidence, claim = ((), "") if has_score else _texts(where, record, columns)
    score = _stored_score(where, record, columns) if has_score else None
    group = "" if not columns.group else str(record.get(columns.group, "none"))
    cluster = str(_column(where, record, columns.cluster, (), "--cluster")) if columns.cluster else None
    if not is_labelled:
        return Labelled(evidence, claim, False, group, score=score, cluster=cluster)
    label = _column(where, record, columns.label, LABEL, "--label")
    if isinstance(label, Mapping | list):
        ratings = _ratings(where, label, columns)
        is_supported = round(fmean(ratings.values()), TIE_DIGITS) >= columns.people_threshold
        return Labelled(evidence, claim, is_supported, group, ratings, score, cluster)
    rating = _rating(where, label, columns)
    ratings = {"": rating} if columns.scale else {}
    return Labelled(evidence, claim, rating >= columns.people_threshold, group, ratings, score, cluster)


def _texts(where: str, record: Record, columns: Columns) -> tuple[tuple[str, ...], str]:
    evidence = _column(where, record, columns.evidence, EVIDENCE, "--evidence")
    texts = [evidence] if isinstance(evidence, str) else evidence
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise DataError(where, f"the evidence is {evidence!r:.60}, not a text or texts.", fix="Correct it.")
    claim = _column(where, record, columns.claim, CLAIM, "--claim")
    if not isinstance(claim, str):
        raise DataError(where, f"the claim is {claim!r:.60}, not a text.", fix="Correct it.")
    return tuple(texts), claim


def _stored_score(where: str, record: Record, columns: Columns) -> float | None:
    """What the judge said, from 0 to 1; None where it said nothing."""
    if columns.score not in record:
        raise DataError(
            where, f"there is no {columns.score!r:.60} in it.", fix="Name the column with --score."
        )
    value = record[columns.score]
    return None if value is None else _on_scale(where, value, columns.score_scale, "score", "--score-scale")


def _ratings(where: str, label: Mapping[str, Any] | list[Any], columns: Columns) -> dict[str, float]:
    given = label.items() if isinstance(label, Mapping) else enumerate(label, start=1)
    ratings = {str(name): _rating(where, said, columns) for name, said in given if said is not None}
    if not ratings:
        raise DataError(where, "nobody has rated it.", fix="Leave it out, or give it to --unlabelled.")
    return ratings


def _rating(where: str, label: Any, columns: Columns) -> float:
    """What one person said, from 0 to 1."""
    if columns.scale is None:
        return float(_is_supported(where, label, columns.positive))
    return _on_scale(where, label, columns.scale, "label", "--scale")


def _on_scale(where: str, value: Any, scale: Scale, what: str, flag: str) -> float:
    low, high = scale
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not low <= number <= high:
        said = f"the {what} {value!r:.60} is not a number from {low:g} to {high:g}."
        raise DataError(where, said, fix=f"Correct it, or say what the scale is: {flag} LOW,HIGH.")
    return (number - low) / (high - low)


def _column(where: str, record: Record, named: str, usual: Sequence[str], flag: str) -> Any:
    for name in (named,) if named else usual:
        if record.get(name) is not None:
            return record[name]
    wanted = repr(named) if named else " or ".join(usual)
    raise DataError(where, f"there is no {wanted} in it.", fix=f"Name the column with {flag}.")


def _is_supported(where: str, label: Any, positive: str) -> bool:
    word = str(label).strip()
    if positive:
        return word == positive
    word = word.lower().replace("_", " ")
    if word in _YES or word in _NO:
        return word in _YES
    raise DataError(
        where,
        f"the label {label!r:.60} is neither yes nor no.",
        fix="Say which one means yes, --positive LABEL, or the scale of the numbers, --scale LOW,HIGH.",
    )
