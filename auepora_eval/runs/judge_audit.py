"""How far a judge agrees with people: a support function, or a metric, against claims that people labelled.

A labelled claim is a record {"evidence": text or texts, "claim": text, "label": 0 or 1, or a word}. A score
of at least the threshold says "borne out"; accuracy and kappa compare that with the labels, AUROC asks
whether claims that are borne out score higher, whatever the threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.metrics_base import SampleMetric
from ..core.types import Document, EvaluationSample, Response, RetrievedDocument, SystemOutputs
from ..errors import DataError, ScoringError, UnknownNameError
from ..judges.entailment import SUPPORTS, checked_support, support_function
from ..metrics.parse import parse_metric
from ..stats.classification import accuracy, area_under_curve, cohen_kappa, confusion_table, table_interval
from ..stats.intervals import Interval, bootstrap_interval, wilson_interval

if TYPE_CHECKING:
    from ..core.scores import Rows

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


class Labelled(NamedTuple):
    """A claim, the texts it is held against, what people said of it, and the part it is reported under."""

    evidence: tuple[str, ...]
    claim: str
    is_supported: bool
    group: str = ""


@dataclass(frozen=True)
class Columns:
    """Where a record has what; empty means the usual names. `positive` is the label of a claim borne out."""

    evidence: str = ""
    claim: str = ""
    label: str = ""
    positive: str = ""
    group: str = ""


def labelled_claims(records: Iterable[tuple[str, Mapping[str, Any]]], columns: Columns) -> list[Labelled]:
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


def audit(labelled: Sequence[Labelled], judge: str, *, threshold: float, seed: int = 0) -> dict[str, Any]:
    """Scores of the judge against the labels: accuracy, AUROC, kappa with intervals, the confusion table."""
    scores = judge_scores(judge, labelled)
    groups = sorted({one.group for one in labelled} - {""})
    by_group = {
        group: _agreement(
            [(score, one) for score, one in zip(scores, labelled, strict=True) if one.group == group],
            threshold,
            seed,
        )
        for group in groups
    }
    whole = _agreement(list(zip(scores, labelled, strict=True)), threshold, seed)
    return {"judge": judge, "threshold": threshold, "seed": seed, **whole, "by": by_group}


def judge_scores(judge: str, labelled: Sequence[Labelled]) -> list[float | None]:
    """A score from 0 to 1 for each claim, higher is better; None where the judge has nothing to say."""
    score = _judge(judge)
    return [score(one) for one in labelled]


def _judge(name: str) -> Callable[[Labelled], float | None]:
    if name in SUPPORTS:
        support = support_function(name)
        return lambda one: _support_score(support, one)
    try:
        metric = parse_metric(name)
    except UnknownNameError as error:
        known = ", ".join(SUPPORTS)
        what = f"there is no judge {name!r}: the support functions are {known}; as for metrics, {error}"
        raise UnknownNameError(what) from None
    metric.ready()
    return lambda one: _metric_score(metric, one)


def _support_score(support: Callable[[str, str], float], one: Labelled) -> float | None:
    try:
        return checked_support(support, "\n".join(one.evidence), one.claim)
    except ScoringError:
        return None


def _metric_score(metric: SampleMetric, one: Labelled) -> float | None:
    documents = [Document(str(rank), text) for rank, text in enumerate(one.evidence, start=1)]
    hits = [RetrievedDocument(doc, 1 / rank, rank) for rank, doc in enumerate(documents, start=1)]
    sample = EvaluationSample("claim", one.claim, relevant_docs=documents)
    found = metric.compute([sample], [SystemOutputs(hits, Response(one.claim))]).scores[0].value
    if found is None or metric.higher_is_better:
        return found
    low, high = metric.bounds
    return low + high - found


def _agreement(pairs: Sequence[tuple[float | None, Labelled]], threshold: float, seed: int) -> dict[str, Any]:
    import numpy as np

    scored = [(score, one.is_supported) for score, one in pairs if score is not None]
    rows = np.array(scored, dtype=np.float64).reshape(-1, 2)
    true, predicted = rows[:, 1] > 0, rows[:, 0] >= threshold
    table = confusion_table(true, predicted, 2)
    cells = np.eye(4)[true.astype(int) * 2 + predicted.astype(int)]
    right = int((true == predicted).sum())
    # An area needs both kinds of labels, in the resamples too.
    both = bool(true.any() and (~true).any())
    return {
        "claims": len(pairs),
        "scored": len(scored),
        "supported": int(true.sum()),
        "accuracy": _figure(float(accuracy(table)), wilson_interval(right, len(scored)) if scored else None),
        "auroc": _figure(
            area_under_curve(rows[:, 0], true),
            bootstrap_interval(rows, _areas, seed=seed) if both else None,
        ),
        "kappa": _figure(
            float(cohen_kappa(table)), table_interval(cells, cohen_kappa, seed=seed) if scored else None
        ),
        "confusion": {
            "supported": {"judged supported": int(table[1, 1]), "judged not": int(table[1, 0])},
            "not supported": {"judged supported": int(table[0, 1]), "judged not": int(table[0, 0])},
        },
    }


def _areas(rows: Rows) -> Rows:
    import numpy as np

    stack = rows.reshape(-1, *rows.shape[-2:])
    areas = [area_under_curve(one[:, 0], one[:, 1] > 0) for one in stack]
    return np.asarray(areas).reshape(rows.shape[:-2])


def _figure(value: float, interval: Interval | None) -> dict[str, Any]:
    return {
        "value": value if math.isfinite(value) else None,
        "confidence_interval": None if interval is None else [interval.low, interval.high],
        "interval_method": "not estimable" if interval is None else interval.method,
    }


def _labelled(where: str, record: Mapping[str, Any], columns: Columns) -> Labelled:
    evidence = _column(where, record, columns.evidence, EVIDENCE, "--evidence")
    texts = [evidence] if isinstance(evidence, str) else evidence
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise DataError(where, f"the evidence is {evidence!r:.60}, not a text or texts.", fix="Correct it.")
    claim = _column(where, record, columns.claim, CLAIM, "--claim")
    if not isinstance(claim, str):
        raise DataError(where, f"the claim is {claim!r:.60}, not a text.", fix="Correct it.")
    label = _column(where, record, columns.label, LABEL, "--label")
    group = "" if not columns.group else str(record.get(columns.group, "none"))
    return Labelled(tuple(texts), claim, _is_supported(where, label, columns.positive), group)


def _column(where: str, record: Mapping[str, Any], named: str, usual: Sequence[str], flag: str) -> Any:
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
        fix="Say which one means yes: --positive LABEL.",
    )
