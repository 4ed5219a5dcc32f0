"""What people would say of everything, from a few of their labels and a judge that has seen it all.

A judge's own mean is off by its errors; the labels tell by how much. Both corrections take the labelled
samples for a random part of all: choose them by lot, not by interest.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from ..stats.intervals import mean_interval
from ..stats.prediction_powered import prediction_powered_mean, true_rate, true_rate_interval
from .judge_ceiling import figure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Clusters = tuple[Sequence[Hashable], Sequence[Hashable]]  # of the labelled claims and of the others
SPLITS = 2_000
_LEAST = 2  # labels, and judgements without one


def corrected(
    people: Array,
    scores: Array,
    rest: Array,
    *,
    clusters: Clusters | None = None,
    seed: int = 0,
    yes_from: float | None = None,
) -> dict[str, Any]:
    """The mean of what people would say: by their labels alone, by the judge alone, and by both (PPI++).

    Where the labels are yes or no, the judge alone says yes from the score `yes_from` on; to correct its
    errors the scores themselves are used, which tell more than its yes and no.
    """
    import numpy as np

    if len(people) < _LEAST or len(rest) < _LEAST:
        what = f"{len(people)} labelled and {len(rest)} other claims have a score."
        raise DataError("--unlabelled", what, fix="A correction needs two of each at least, better hundreds.")
    try:
        both = prediction_powered_mean(people, scores, rest, clusters=clusters)
    except ValueError as error:
        raise DataError("--unlabelled", f"{error}.", fix="Bring claims of more than one cluster.") from error
    alone = prediction_powered_mean(people, scores, rest, weight=0.0, clusters=clusters)
    groups = None if clusters is None else clusters[0]
    interval = mean_interval(people, clusters=groups, bounds=(0.0, 1.0), seed=seed)
    everything = np.concatenate([scores, rest])
    return {
        "labels": len(people),
        "unlabelled": len(rest),
        "people_alone": figure(float(people.mean()), interval),
        "judge_alone": float((everything if yes_from is None else everything >= yes_from).mean()),
        "corrected": figure(both.value, both.interval),
        "weight": both.weight,
        # So many labels alone would give an interval as narrow.
        "worth_labels": None if both.error == 0 else len(people) * (alone.error / both.error) ** 2,
    }


def rate_by_errors(
    is_yes: NDArray[np.bool_],
    judged_yes: NDArray[np.bool_],
    rest_yes: NDArray[np.bool_],
    *,
    independent: bool = True,
) -> dict[str, Any]:
    """The share of yes behind the judge's, by how often it errs on the labels (Rogan & Gladen).

    `value` is None, with the reason, where the judge is right no more often than a coin. The interval is for
    independent claims: of others there is none.
    """
    right_yes, all_yes = int((judged_yes & is_yes).sum()), int(is_yes.sum())
    right_no, all_no = int((~judged_yes & ~is_yes).sum()), int((~is_yes).sum())
    reported = int(rest_yes.sum())
    found: dict[str, Any] = {
        "reported": reported / len(rest_yes),
        "sensitivity": right_yes / all_yes if all_yes else None,
        "specificity": right_no / all_no if all_no else None,
        **figure(math.nan, None),
    }
    if not all_yes or not all_no:
        return {**found, "reason": "the labels are all yes or all no"}
    shares = (reported, len(rest_yes)), (right_yes, all_yes), (right_no, all_no)
    try:
        value = true_rate(*(yes / n for yes, n in shares))
        interval = true_rate_interval(*shares) if independent else None
    except ValueError as error:
        return {**found, "reason": str(error)}
    return {**found, **figure(value, interval), "reason": None}


def label_budget(
    people: Array, scores: Array, counts: Sequence[int], *, splits: int = SPLITS, seed: int = 0
) -> list[dict[str, Any]]:
    """How wide the 95% interval of the mean would be with so many labels, the rest being only judged.

    The mean over random splits of the labelled samples: by labels alone, by the judge at full weight (which
    can be worse than no judge), and by the judge at the weight that is best for it.
    """
    import numpy as np

    most = len(people) - _LEAST
    for count in counts:
        if not _LEAST <= count <= most:
            what = f"{count} is not from {_LEAST} to {most}: {len(people)} labelled claims have a score."
            raise DataError("--budget", what, fix="Name fewer labels than there are.")
    rng = np.random.default_rng(seed)
    twice_z = 2 * NormalDist().inv_cdf(0.975)
    rows = []
    for count in counts:
        widths = np.empty((splits, 3))
        for split in range(splits):
            order = rng.permutation(len(people))
            some, rest = order[:count], order[count:]
            widths[split, 0] = twice_z * float(people[some].std(ddof=1)) / math.sqrt(count)
            for place, weight in ((1, 1.0), (2, None)):
                found = prediction_powered_mean(people[some], scores[some], scores[rest], weight=weight)
                widths[split, place] = twice_z * found.error
        alone, full, tuned = widths.mean(axis=0).tolist()
        rows.append({"labels": count, "people_alone": alone, "judge_at_weight_1": full, "judge_tuned": tuned})
    return rows
