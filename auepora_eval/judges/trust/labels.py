"""Read human labels to compare a judge with: labelled claims, ratings by several people, stored scores.

A record is {"evidence": text or texts, "claim": text, "label": ...}. The label is a word of yes or no, or a
number from 0 to 1; the labels of several people are an object by name, or a list with one place per person,
and `settled` is what was decided where they differ.
If the record has the judge's score, neither evidence nor claim is needed.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from ...errors import DataError

# Names of the columns in AttributionBench and in datasets of natural language inference.
EVIDENCE = ("evidence", "premise", "references", "context", "contexts")
CLAIM = ("claim", "hypothesis")
LABEL = ("label", "attribution_label")
CLUSTER = ("cluster", "query_id")
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

_TIE_DIGITS = 12  # decimals of a mean rating: fewer than floating point has, so that equal means tie
PEOPLE_THRESHOLD = 0.5  # of the mean label, from which it counts as yes
Record = Mapping[str, Any]


@dataclass(frozen=True)
class Labelled:
    """A claim, the texts it is checked against, and its labels.

    `ratings` has each person's label, from 0 to 1; it is empty if there is one label for all people.
    """

    evidence: tuple[str, ...]
    claim: str
    is_supported: bool
    ratings: Mapping[str, float] = field(default_factory=dict)
    score: float | None = None  # that the judge gave before
    cluster: str | None = None  # shared by claims that are not independent: a question, a conversation

    @property
    def people(self) -> float:
        """The mean of people's ratings, from 0 to 1."""
        return _mean(self.ratings) if self.ratings else float(self.is_supported)


def _mean(ratings: Mapping[str, float]) -> float:
    # Thirds do not add up exactly in floating point, but equal means must tie when they are ranked.
    return round(fmean(ratings.values()), _TIE_DIGITS)


def labelled_claims(records: Iterable[tuple[str, Record]], score: str = "") -> list[Labelled]:
    """Return the labelled claims of (place, record) pairs; DataError for a record that lacks something.

    `score` is the field with a judge's stored scores.
    """
    return [_labelled(where, record, score) for where, record in records]


def labels_in(
    records: Sequence[tuple[str, Record]], sample_ids: Container[str]
) -> tuple[list[Labelled], dict[str, float]]:
    """Return the labelled claims of (place, record) pairs, or the labels of samples of a run by their ids."""
    if not records or not all("sample_id" in record for _, record in records):
        return labelled_claims(records), {}
    labels: dict[str, float] = {}
    for where, record in records:
        sample_id = record["sample_id"]
        if sample_id not in sample_ids:
            raise DataError(where, f"the run has no sample {sample_id!r:.80}.")
        if sample_id in labels:
            fix = 'Write the labels of several people as {"ada": 1, "ben": 0}.'
            raise DataError(where, f"{sample_id!r:.80} is labelled twice.", fix=fix)
        labels[sample_id] = _mean(_ratings(where, _column(where, record, ("settled", *LABEL))))
    return [], labels


def clusters_of(claims: Iterable[Labelled]) -> list[str] | None:
    """Return the cluster of each claim; None if the claims are independent."""
    clusters = [one.cluster for one in claims]
    if len(set(clusters)) == len(clusters) or None in clusters:
        return None
    return [str(cluster) for cluster in clusters]


def _labelled(where: str, record: Record, score: str) -> Labelled:
    evidence, claim = ((), "") if score else _texts(where, record)
    label = _column(where, record, LABEL)
    listed = isinstance(label, Mapping | list)
    ratings = _ratings(where, label)
    cluster = next((str(record[name]) for name in CLUSTER if record.get(name) is not None), None)
    return Labelled(
        evidence,
        claim,
        is_supported=_rating(where, record.get("settled", _mean(ratings))) >= PEOPLE_THRESHOLD,
        ratings=ratings if listed or ratings[""] not in (0.0, 1.0) else {},
        score=_stored_score(where, record, score) if score else None,
        cluster=cluster,
    )


def _texts(where: str, record: Record) -> tuple[tuple[str, ...], str]:
    evidence, claim = _column(where, record, EVIDENCE), _column(where, record, CLAIM)
    texts = [evidence] if isinstance(evidence, str) else evidence
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in [*texts, claim]):
        raise DataError(where, f"the evidence or the claim is not a text: {evidence!r:.60}, {claim!r:.60}.")
    return tuple(texts), claim


def _stored_score(where: str, record: Record, name: str) -> float | None:
    """Return the judge's score, from 0 to 1; None if it gave none."""
    if name not in record:
        raise DataError(where, f"there is no {name!r:.60} in it.", fix="Name the field with --score.")
    value = record[name]
    if value is not None and not _is_share(value):
        raise DataError(where, f"the score {value!r:.60} is not a number from 0 to 1.", fix="Scale it.")
    return None if value is None else float(value)


def _ratings(where: str, label: Any) -> dict[str, float]:
    """Return the label of each person; a single label has no name."""
    labels: Iterable[tuple[object, Any]] = [("", label)]
    if isinstance(label, Mapping | list):
        labels = label.items() if isinstance(label, Mapping) else enumerate(label, start=1)
    ratings = {str(name): _rating(where, one) for name, one in labels if one is not None}
    if not ratings:
        raise DataError(where, "it has no rating.", fix="Leave it out.")
    return ratings


def _rating(where: str, label: Any) -> float:
    """Return one person's label, from 0 to 1."""
    if _is_share(label):
        return float(label)
    word = str(label).strip().lower().replace("_", " ")
    if word in _YES or word in _NO:
        return float(word in _YES)
    what = f"the label {label!r:.60} is neither yes nor no, nor a number from 0 to 1."
    raise DataError(where, what, fix="Write 1 for supported, 0 for not.")


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


def _column(where: str, record: Record, names: Sequence[str]) -> Any:
    for name in names:
        if record.get(name) is not None:
            return record[name]
    raise DataError(where, f"there is no {' or '.join(names)} in it.", fix="Rename the field.")
