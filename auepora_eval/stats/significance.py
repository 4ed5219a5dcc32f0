"""Tests: could this difference between two systems be chance?"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


CLOSED_FORM_ABOVE = 2_000
NORMAL_ABOVE = 20_000
_LARGEST_SHARE = 1 / 200  # of the sum of squares that one unit may have where a sum is called normal


class PairedTest(NamedTuple):
    """How often chance alone does as well, and how that was found."""

    p_value: float
    statistic: float
    method: str


def paired_permutation_test(
    a: Sequence[float] | Array,
    b: Sequence[float] | Array,
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> PairedTest:
    """Two-sided sign-flip test on paired scores: were the systems exchangeable, sample by sample?

    The statistic is mean(b - a). Samples of one cluster are flipped together. With no more units
    than can be enumerated within `resamples`, all flips are tried and the p-value is exact. Above 2,000
    units the sum of the flips is normal to far less than the noise of the draws, and none are made.
    """
    import numpy as np

    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1 or not len(first):
        raise ValueError(
            f"paired scores come in two equal, non-empty lists, not {first.shape} and {second.shape}"
        )
    differences = second - first
    units = _summed_by_cluster(differences, clusters)
    units = units[units != 0]
    observed = float(differences.mean())
    if not len(units):
        return PairedTest(1.0, observed, "sign flip, exact: no sample differs")
    total = abs(float(units.sum()))
    # A flip that ties with the observed sum must count: sums of floats tie only up to rounding.
    threshold = total - 1e-12 * float(np.abs(units).sum())
    if 2 ** len(units) <= resamples:
        signs = 1 - 2 * ((np.arange(2 ** len(units))[:, np.newaxis] >> np.arange(len(units))) & 1)
        extreme = int((np.abs(signs @ units) >= threshold).sum())
        return PairedTest(extreme / 2 ** len(units), observed, f"sign flip, exact, {len(units)} units")
    squares = units**2
    if len(units) > CLOSED_FORM_ABOVE and squares.max() <= _LARGEST_SHARE * squares.sum():
        sizes = np.abs(units)
        # Where all units are of one size, sums come in steps of two of it: half a step is the correction.
        step = float(sizes[0]) if float(np.ptp(sizes)) == 0.0 else 0.0
        p_value = _two_sided(max(0.0, total - step) / math.sqrt(float(squares.sum())))
        return PairedTest(p_value, observed, f"sign flip, normal form, {len(units)} units")
    rng = np.random.default_rng(seed)
    extreme, chunk = 0, max(1, 8_000_000 // len(units))
    for done in range(0, resamples, chunk):
        size = (min(chunk, resamples - done), len(units))
        flips = rng.integers(0, 2, size=size, dtype=np.int8).astype(np.float32) * 2 - 1
        extreme += int((np.abs(flips @ units) >= threshold).sum())
    # The observed labelling is one of the permutations: without the +1 a test could report
    # p = 0, which no finite number of draws can show (Phipson & Smyth 2010).
    p_value = (extreme + 1) / (resamples + 1)
    return PairedTest(p_value, observed, f"sign flip, {resamples} draws, seed {seed}")


def paired_swap_test(
    rows_a: Array,
    rows_b: Array,
    aggregate: Callable[[Array], Array],
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = 2_000,
    seed: int = 0,
) -> PairedTest:
    """The same test for any aggregate (corpus BLEU, a quantile): swap samples between the systems.

    `aggregate` reduces the second-last axis of (..., samples, columns). Above 20,000 units the p-value is
    that of the normal distribution with the spread of 200 draws.
    """
    import numpy as np

    observed = float(aggregate(rows_b) - aggregate(rows_a))
    if np.array_equal(rows_a, rows_b):
        return PairedTest(1.0, observed, "swap: no sample differs")
    units = np.arange(len(rows_a)) if clusters is None else _numbered(clusters)
    count = int(units.max()) + 1
    if count > NORMAL_ABOVE:
        resamples = min(resamples, 200)
    rng = np.random.default_rng(seed)
    extreme, squares, chunk = 0, 0.0, max(1, 2_000_000 // rows_a.size)
    for done in range(0, resamples, chunk):
        swaps = rng.integers(0, 2, size=(min(chunk, resamples - done), count), dtype=np.int8)
        mask = swaps[:, units, np.newaxis].astype(bool)
        differences = aggregate(np.where(mask, rows_a, rows_b)) - aggregate(np.where(mask, rows_b, rows_a))
        extreme += int((np.abs(differences) >= abs(observed) * (1 - 1e-12)).sum())
        squares += float((differences**2).sum())
    if count > NORMAL_ABOVE and squares > 0 and math.isfinite(squares):
        p_value = _two_sided(abs(observed) / math.sqrt(squares / resamples))
        return PairedTest(p_value, observed, f"swap, normal, spread of {resamples} draws, seed {seed}")
    return PairedTest((extreme + 1) / (resamples + 1), observed, f"swap, {resamples} draws, seed {seed}")


def mcnemar_exact(only_a: int, only_b: int) -> PairedTest:
    """McNemar's exact test: are two detectors right equally often, by the samples that only one got right?

    Under chance each of these goes to either side like a coin; the statistic is the share that went to b.
    """
    from scipy.stats import binomtest

    if only_a < 0 or only_b < 0:
        raise ValueError(f"counts of samples are not negative: {only_a}, {only_b}")
    if not only_a + only_b:
        return PairedTest(1.0, math.nan, "McNemar, exact: no sample differs")
    found = binomtest(only_b, only_a + only_b, 0.5)
    return PairedTest(
        float(found.pvalue), only_b / (only_a + only_b), f"McNemar, exact, {only_a + only_b} samples"
    )


def _two_sided(z: float) -> float:
    """How often a normal number is at least so many deviations away from its mean; never quite never."""
    return max(math.erfc(z / math.sqrt(2)), 1e-300)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: the chance of even one false alarm among them stays at alpha."""
    adjusted = [math.nan] * len(p_values)
    largest = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, p_values[index] * (len(p_values) - place)))
        adjusted[index] = largest
    return adjusted


def _summed_by_cluster(differences: Array, clusters: Sequence[Hashable] | None) -> Array:
    import numpy as np

    if clusters is None:
        return differences
    sums: dict[Hashable, float] = {}
    for cluster, difference in zip(clusters, differences, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + float(difference)
    return np.array(list(sums.values()))


def _numbered(clusters: Sequence[Hashable]) -> NDArray[np.intp]:
    import numpy as np

    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(cluster, len(numbers)) for cluster in clusters])
