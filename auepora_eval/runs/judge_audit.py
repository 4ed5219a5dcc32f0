"""How far a judge agrees with people: a support function, a metric, or scores that a judge has already given.

A score of at least the threshold says "borne out"; accuracy and kappa compare that with what people say,
AUROC asks whether claims that are borne out score higher, whatever the threshold. Beside it stand how far
scores can be read as chances, how well people agree, and what the judge's mean is worth once corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.metrics_base import SampleMetric
from ..core.types import Document, EvaluationSample, Response, RetrievedDocument, SystemOutputs
from ..errors import ScoringError, UnknownNameError
from ..judges.entailment import SUPPORTS, checked_support, support_function
from ..metrics.parse import parse_metric
from ..stats.calibration import BINS, Calibration, calibration
from ..stats.classification import accuracy, area_under_curve, cohen_kappa, confusion_table, table_interval
from ..stats.correlation import KINDS, correlation
from ..stats.intervals import bca_mean_interval, bootstrap_interval, mean_interval
from .judge_ceiling import ceiling, figure
from .judge_estimate import corrected, label_budget, rate_by_errors
from .judge_labels import Columns, Labelled, clusters_of, labelled_claims, unlabelled_claims

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..core.scores import Rows

    Array = NDArray[np.float64]

__all__ = ["Audit", "Columns", "Labelled", "audit", "judge_scores", "labelled_claims", "unlabelled_claims"]


@dataclass(frozen=True)
class Audit:
    """How to hold a judge against people: its threshold and theirs, bins, numbers of labels to plan for."""

    threshold: float = 0.7
    people_threshold: float = 0.5
    bins: int = BINS
    budget: Sequence[int] = ()
    seed: int = 0
    unscored_as: float | None = None  # the score of a claim that the judge cannot score; None leaves it out


def audit(
    labelled: Sequence[Labelled],
    judge: str | None,
    how: Audit = Audit(),  # noqa: B008 - it cannot be changed
    *,
    unlabelled: Sequence[Labelled] = (),
) -> dict[str, Any]:
    """A judge against the labels: agreement, confusion, calibration, the human ceiling, corrected means.

    `judge` names a support function or a metric; None takes the scores that the claims bring.
    """
    scores, rest = (
        [how.unscored_as if score is None else score for score in judge_scores(judge, claims)]
        for claims in (labelled, unlabelled)
    )
    pairs = list(zip(scores, labelled, strict=True))
    groups = sorted({one.group for one in labelled} - {""})
    by_group = {
        group: _agreement([(score, one) for score, one in pairs if one.group == group], how)
        for group in groups
    }
    scored = [(score, one) for score, one in pairs if score is not None]
    about = {"judge": judge, "threshold": how.threshold, "people_threshold": how.people_threshold}
    found = {**about, "seed": how.seed, **_agreement(pairs, how), **_as_numbers(scored, how)}
    others = [score for score in rest if score is not None]
    clusters = clusters_of(one for score, one in zip(rest, unlabelled, strict=True) if score is not None)
    found["estimate"] = _estimate(scored, others, clusters, how) if unlabelled else None
    found["unlabelled_not_scored"] = len(unlabelled) - len(others)
    return {**found, "by": by_group}


def judge_scores(judge: str | None, labelled: Sequence[Labelled]) -> list[float | None]:
    """A score from 0 to 1 for each claim, higher is better; None where the judge has nothing to say."""
    if judge is None:
        return [one.score for one in labelled]
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


def _agreement(pairs: Sequence[tuple[float | None, Labelled]], how: Audit) -> dict[str, Any]:
    import numpy as np

    scored = [(score, one.is_supported) for score, one in pairs if score is not None]
    rows = np.array(scored, dtype=np.float64).reshape(-1, 2)
    true, predicted = rows[:, 1] > 0, rows[:, 0] >= how.threshold
    table = confusion_table(true, predicted, 2)
    cells = np.eye(4)[true.astype(int) * 2 + predicted.astype(int)]
    right = (true == predicted).astype(np.float64)
    clusters = clusters_of(one for score, one in pairs if score is not None)
    # An area needs both kinds of labels, in the resamples too.
    both = bool(true.any() and (~true).any())
    return {
        "claims": len(pairs),
        "scored": len(scored),
        "supported": int(true.sum()),
        "accuracy": figure(
            float(accuracy(table)), mean_interval(right, clusters=clusters) if scored else None
        ),
        "auroc": figure(
            area_under_curve(rows[:, 0], true),
            bootstrap_interval(rows, _areas, clusters=clusters, seed=how.seed) if both else None,
        ),
        "kappa": figure(
            float(cohen_kappa(table)),
            table_interval(cells, cohen_kappa, clusters=clusters, seed=how.seed) if scored else None,
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


def _as_numbers(scored: Sequence[tuple[float, Labelled]], how: Audit) -> dict[str, Any]:
    """What the scores are worth as numbers: their bias, correlation, calibration, and the human ceiling."""
    if not scored:
        nothing = (
            "people_evenly_split",
            "people",
            "judge_mean",
            "bias",
            "correlation",
            "calibration",
            "human_ceiling",
            "budget",
        )
        return dict.fromkeys(nothing)
    judge, people = _columns(scored)
    graded = any(value not in (0.0, 1.0) for value in people.tolist())
    on_scale = bool(((judge >= 0) & (judge <= 1)).all())
    clusters = clusters_of(one for _, one in scored)
    sampled: dict[str, Any] = {"clusters": clusters, "seed": how.seed}
    bias = judge - people
    return {
        "people_evenly_split": sum(
            len(one.ratings) > 1 and one.people == how.people_threshold for _, one in scored
        ),
        "people": figure(float(people.mean()), mean_interval(people, bounds=(0.0, 1.0), **sampled)),
        "judge_mean": float(judge.mean()),
        "bias": figure(float(bias.mean()), bca_mean_interval(bias, **sampled)),
        "correlation": _correlations(judge, people, sampled) if graded else None,
        "calibration": _calibration(calibration(judge, people, bins=how.bins, **sampled), how.bins)
        if on_scale
        else None,
        "human_ceiling": ceiling(
            [one for _, one in scored],
            judge.tolist(),
            threshold=how.threshold,
            people_threshold=how.people_threshold,
            seed=how.seed,
        ),
        "budget": label_budget(people, judge, how.budget, seed=how.seed) if how.budget else None,
    }


def _estimate(
    scored: Sequence[tuple[float, Labelled]], rest: Sequence[float], of_rest: list[str] | None, how: Audit
) -> dict[str, Any]:
    """The mean of what people would say and, where they say yes or no, the share of yes by two ways."""
    import numpy as np

    judge, people = _columns(scored)
    others = np.array(rest, dtype=np.float64)
    is_yes = np.array([one.is_supported for _, one in scored], dtype=bool)
    own = clusters_of(one for _, one in scored)
    clusters = None if own is None or of_rest is None else (own, of_rest)
    judged = judge >= how.threshold, others >= how.threshold
    return {
        "mean": corrected(people, judge, others, clusters=clusters, seed=how.seed),
        "share_of_yes": corrected(
            is_yes.astype(np.float64),
            judge,
            others,
            clusters=clusters,
            seed=how.seed,
            yes_from=how.threshold,
        ),
        "share_of_yes_by_errors": rate_by_errors(is_yes, *judged, independent=clusters is None),
    }


def _columns(scored: Sequence[tuple[float, Labelled]]) -> tuple[Array, Array]:
    import numpy as np

    rows = np.array([(score, one.people) for score, one in scored], dtype=np.float64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


def _correlations(judge: Array, people: Array, sampled: Mapping[str, Any]) -> dict[str, Any]:
    found = {kind: correlation(judge, people, kind, **sampled) for kind in KINDS}
    return {kind: figure(each.value, each.interval) for kind, each in found.items()}


def _calibration(found: Calibration, bins: int) -> dict[str, Any]:
    return {
        "bins": bins,
        "expected_calibration_error": found.error,
        "by_chance": found.by_chance,
        "brier": figure(found.brier, found.brier_interval),
        "brier_of_the_mean": found.brier_of_mean,
        "table": [
            {
                "from": each.low,
                "to": each.high,
                "claims": each.samples,
                "judge": each.score if each.samples else None,
                "people": figure(each.label, each.interval),
            }
            for each in found.bins
        ],
    }
