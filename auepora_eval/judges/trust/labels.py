"""Read human labels to compare a judge with: labelled claims, ratings by several people, stored scores.

A record is {"evidence": text or texts, "claim": text, "label": ...}. The label is 0 or 1, a word, or a number
on a scale; the labels of several people are an object by name, or a list with one place per person. If the
record has the judge's score, neither evidence nor claim is needed.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from ...errors import DataError

# Names of the columns in AttributionBench and in datasets of natural language inference.
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

TIE_DIGITS = 12  # decimals of a mean rating: fewer than floating point has, so that equal means tie
Record = Mapping[str, Any]
Scale = tuple[float, float]


@dataclass(frozen=True)
class Labelled:
    """A claim, the texts it is checked against, its labels, and the group that it is reported in.

    `ratings` has each person's label, from 0 to 1; it is empty if there is one label for all people.
    """

    evidence: tuple[str, ...]
    claim: str
    is_supported: bool
    group: str = ""
    ratings: Mapping[str, float] = field(default_factory=dict)
    score: float | None = None  # that the judge gave before
    cluster: str | None = None  # shared by claims that are not independent: a question, a conversation
    is_on_scale: bool = False  # the label is a number on a scale, though it may be one of its ends

    @property
    def people(self) -> float:
        """The mean of people's ratings, from 0 to 1."""
        # Thirds do not add up exactly in floating point, but equal means must tie when they are ranked.
        return round(fmean(self.ratings.values()), TIE_DIGITS) if self.ratings else float(self.is_supported)


@dataclass(frozen=True)
class Columns:
    """The columns of a record; empty means the usual names. `positive` is the label of a supported claim.

    With a `scale` the labels are numbers between its two ends; without one, yes or no. A mean label, from 0
    to 1, of at least `people_threshold` counts as yes. `score` is the column of a judge's stored scores, on
    `score_scale`; claims with the same value of `cluster` are not independent.
    """

    evidence: str = ""
    claim: str = ""
    label: str = ""
    positive: str = ""
    by: str = ""
    scale: Scale | None = None
    people_threshold: float = 0.5
    score: str = ""
    score_scale: Scale = (0.0, 1.0)
    cluster: str = ""


def labelled_claims(records: Iterable[tuple[str, Record]], columns: Columns) -> list[Labelled]:
    """Return the labelled claims of (place, record) pairs; DataError for a record that lacks something."""
    claims, has_group = [], False
    for where, record in records:
        claims.append(_labelled(where, record, columns))
        has_group = has_group or columns.by in record
    if claims and columns.positive and not any(one.is_supported for one in claims):
        what = f"none of the {len(claims)} claims has the label {columns.positive!r:.60}."
        raise DataError("--positive", what, fix="Give a label that occurs, as it is written there.")
    if claims and columns.by and not has_group:
        what = f"none of the {len(claims)} claims has a field {columns.by!r:.60}."
        raise DataError("--columns by", what, fix="Give a field that occurs, or leave it out.")
    return claims


def labels_in(
    records: Sequence[tuple[str, Record]], sample_ids: Container[str]
) -> tuple[list[Labelled], dict[str, float]]:
    """Return the labelled claims of (place, record) pairs, or the labels of samples of a run by their ids."""
    if not all("sample_id" in record for _, record in records):
        return labelled_claims(records, Columns()), {}
    labels: dict[str, float] = {}
    for where, record in records:
        label = record.get("label")
        if isinstance(label, dict):  # by person
            given = [one for one in label.values() if isinstance(one, int | float)]
            label = fmean(given) if given and len(given) == len(label) else label
        if not isinstance(label, int | float) or not 0 <= label <= 1:
            raise DataError(where, f"the label {label!r:.40} is not a number from 0 to 1.")
        if record["sample_id"] not in sample_ids:
            raise DataError(where, f"the run has no sample {record['sample_id']!r:.80}.")
        labels[record["sample_id"]] = float(label)
    return [], labels


def unlabelled_claims(records: Iterable[tuple[str, Record]], columns: Columns) -> list[Labelled]:
    """Return claims that only the judge scores; their labels, if any, are ignored."""
    return [_labelled(where, record, columns, is_labelled=False) for where, record in records]


def clusters_of(claims: Iterable[Labelled]) -> list[str] | None:
    """Return the cluster of each claim; None if the claims are independent."""
    clusters = [one.cluster for one in claims]
    if all(cluster is None for cluster in clusters):
        return None
    return [str(cluster) for cluster in clusters]


def _labelled(where: str, record: Record, columns: Columns, *, is_labelled: bool = True) -> Labelled:
    has_score = bool(columns.score)
    evidence, claim = ((), "") if has_score else _texts(where, record, columns)
    score = _stored_score(where, record, columns) if has_score else None
    group = "" if not columns.by else str(record.get(columns.by, "none"))
    cluster = str(_column(where, record, columns.cluster, (), "cluster")) if columns.cluster else None
    if not is_labelled:
        return Labelled(evidence, claim, False, group, score=score, cluster=cluster)
    label = _column(where, record, columns.label, LABEL, "label")
    if isinstance(label, Mapping | list):
        ratings = _ratings(where, label, columns)
        is_supported = round(fmean(ratings.values()), TIE_DIGITS) >= columns.people_threshold
    else:
        rating = _rating(where, label, columns)
        is_supported = rating >= columns.people_threshold
        ratings = {"": rating} if columns.scale else {}
    is_on_scale = columns.scale is not None
    return Labelled(evidence, claim, is_supported, group, ratings, score, cluster, is_on_scale)


def _texts(where: str, record: Record, columns: Columns) -> tuple[tuple[str, ...], str]:
    evidence = _column(where, record, columns.evidence, EVIDENCE, "evidence")
    texts = [evidence] if isinstance(evidence, str) else evidence
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise DataError(where, f"the evidence is {evidence!r:.60}, not a text or texts.", fix="Correct it.")
    claim = _column(where, record, columns.claim, CLAIM, "claim")
    if not isinstance(claim, str):
        raise DataError(where, f"the claim is {claim!r:.60}, not a text.", fix="Correct it.")
    return tuple(texts), claim


def _stored_score(where: str, record: Record, columns: Columns) -> float | None:
    """Return the judge's score, from 0 to 1; None if it gave none."""
    if columns.score not in record:
        raise DataError(
            where, f"there is no {columns.score!r:.60} in it.", fix="Name the column with --score."
        )
    value = record[columns.score]
    return None if value is None else _on_scale(where, value, columns.score_scale, "score", "--score-scale")


def _ratings(where: str, label: Mapping[str, Any] | list[Any], columns: Columns) -> dict[str, float]:
    labels = label.items() if isinstance(label, Mapping) else enumerate(label, start=1)
    ratings = {str(name): _rating(where, one, columns) for name, one in labels if one is not None}
    if not ratings:
        raise DataError(where, "it has no rating.", fix="Leave it out, or give it to --unlabelled.")
    return ratings


def _rating(where: str, label: Any, columns: Columns) -> float:
    """Return one person's label, from 0 to 1."""
    if columns.scale is None:
        return float(_is_supported(where, label, columns.positive))
    return _on_scale(where, label, columns.scale, "label", "--scale")


def _on_scale(where: str, value: Any, scale: Scale, what: str, flag: str) -> float:
    low, high = scale
    try:
        # float(True) is 1.0, but a column of true and false is not on a scale.
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not low <= number <= high:
        problem = f"the {what} {value!r:.60} is not a number from {low:g} to {high:g}."
        raise DataError(where, problem, fix=f"Correct it, or give the scale: {flag} LOW,HIGH.")
    return (number - low) / (high - low)


def _column(where: str, record: Record, named: str, usual: Sequence[str], field: str) -> Any:
    for name in (named,) if named else usual:
        if record.get(name) is not None:
            return record[name]
    wanted = repr(named) if named else " or ".join(usual)
    raise DataError(where, f"there is no {wanted} in it.", fix=f"Name the column: --columns {field}=NAME.")


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
        fix="Give the label that means yes, --positive LABEL, or the scale of numbers, --scale LOW,HIGH.",
    )
