"""How well could a judge do? As well as people agree: one of them against the others, and the judge likewise.

For each item and each person who rated it, that person is left out; the mean of the others is the target that
both the person and the judge are held against. So the two stand on the same pairs.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..stats.agreement import Statistic, agreement
from ..stats.correlation import correlation
from ..stats.intervals import Interval, bca_mean_interval, mean_interval
from .judge_labels import TIE_DIGITS, Labelled, clusters_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


NOT_ESTIMABLE = "not estimable"


class _Pairs(NamedTuple):
    """A row for each person left out: item, cluster, who, what they said, the others' mean, the judge."""

    items: list[int]
    clusters: list[Hashable]
    names: list[str]
    person: Array
    others: Array
    judge: Array


def ceiling(
    labelled: Sequence[Labelled],
    scores: Sequence[float],
    *,
    threshold: float,
    people_threshold: float,
    seed: int = 0,
) -> dict[str, Any] | None:
    """People's agreement (Krippendorff's alpha), and one against the others; None without two of them.

    `agreement` is how often yes or no is the same as the others', `spearman` the rank correlation with them.
    """
    import numpy as np

    pairs = _pairs(labelled, scores)
    if not pairs.items:
        return None
    names = sorted({name for one in labelled for name in one.ratings})
    ratings = np.array([[one.ratings.get(name, math.nan) for name in names] for one in labelled])
    is_binary = bool(np.isin(ratings[~np.isnan(ratings)], (0.0, 1.0)).all())
    statistic: Statistic = "krippendorff_alpha_nominal" if is_binary else "krippendorff_alpha_ordinal"
    alpha = agreement(ratings, statistic, clusters=clusters_of(labelled), seed=seed)
    yes = pairs.others >= people_threshold
    same = (pairs.person >= people_threshold) == yes, (pairs.judge >= threshold) == yes
    by_name = np.array(pairs.names)
    return {
        "annotators": len(names),
        "items": len(set(pairs.items)),
        "alpha": {"statistic": statistic, **figure(alpha.value, alpha.interval)},
        "one_person": _against_others(pairs.person, pairs, same[0], seed),
        "judge": _against_others(pairs.judge, pairs, same[1], seed),
        "judge_less_person": _difference(same[1].astype(float) - same[0], pairs.clusters, seed),
        "each": {
            name: {
                "items": int((by_name == name).sum()),
                "person": float(same[0][by_name == name].mean()),
                "judge": float(same[1][by_name == name].mean()),
            }
            for name in names
            if name in pairs.names
        },
    }


def figure(value: float, interval: Interval | None) -> dict[str, Any]:
    """A number as JSON has it, with its interval and how that was found.

    An interval of no width, where all resamples are equal, would say that the number is known for sure.
    """
    wide = interval is not None and interval.low < interval.high
    return {
        "value": value if math.isfinite(value) else None,
        "confidence_interval": [interval.low, interval.high] if interval is not None and wide else None,
        "interval_method": NOT_ESTIMABLE if interval is None else interval.method,
    }


def _pairs(labelled: Sequence[Labelled], scores: Sequence[float]) -> _Pairs:
    import numpy as np

    items: list[int] = []
    clusters: list[Hashable] = []
    names, rows = [], []
    for item, (one, score) in enumerate(zip(labelled, scores, strict=True)):
        total, count = math.fsum(one.ratings.values()), len(one.ratings)
        for name, said in one.ratings.items() if count > 1 else ():
            items.append(item)
            clusters.append(item if one.cluster is None else one.cluster)
            names.append(name)
            rows.append((said, round((total - said) / (count - 1), TIE_DIGITS), score))
    person, others, judge = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    return _Pairs(items, clusters, names, person, others, judge)


def _against_others(values: Array, pairs: _Pairs, same: NDArray[np.bool_], seed: int) -> dict[str, Any]:
    import numpy as np

    shared = same.astype(np.float64)
    together = correlation(values, pairs.others, "spearman", clusters=pairs.clusters, seed=seed)
    interval = mean_interval(shared, clusters=pairs.clusters, bounds=(0.0, 1.0), seed=seed)
    return {
        "agreement": figure(float(shared.mean()), interval),
        "spearman": figure(together.value, together.interval),
    }


def _difference(differences: Array, clusters: Sequence[Hashable], seed: int) -> dict[str, Any]:
    return figure(float(differences.mean()), bca_mean_interval(differences, clusters=clusters, seed=seed))
