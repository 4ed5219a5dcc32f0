"""Tests: could this difference between two systems be chance?"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .drawing import CELLS_AT_ONCE, FEW_VALUES, extreme_flips, numbered, summed_by_unit, swapped_of_sums

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


RESAMPLES = 10_000
DRAWS_UP_TO = 20_000  # units of many different values; above, the sum of the flips is called normal
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
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PairedTest:
    """Two-sided sign-flip test on paired scores: were the systems exchangeable, sample by sample?

    The statistic is mean(b - a). See `sign_flip_tests`.
    """
    import numpy as np

    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1 or not len(first):
        raise ValueError(
            f"paired scores come in two equal, non-empty lists, not {first.shape} and {second.shape}"
        )
    differences = (second - first).reshape(-1, 1)
    return sign_flip_tests(differences, clusters=clusters, resamples=resamples, seed=seed)[0]


def sign_flip_tests(
    differences: Array,
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[PairedTest]:
    """Could the mean of each column of paired differences be chance? The same flips serve all columns.

    NaN is a pair that is not there. Samples of one cluster are flipped together. With no more units than
    can be enumerated within `resamples`, all flips are tried and the p-value is exact. Above 20,000 units
    of many different values the sum of the flips is normal to far less than the noise of the draws, and
    none are made, unless a few units carry most of it.
    """
    import numpy as np

    there = np.isfinite(differences)
    units = summed_by_unit(np.where(there, differences, 0.0), clusters)
    sizes = there.sum(axis=0)
    observed = np.divide(units.sum(axis=0), sizes, out=np.full(len(sizes), math.nan), where=sizes > 0)
    found: list[PairedTest | None] = [
        _without_draws(column, float(mean), resamples) for column, mean in zip(units.T, observed, strict=True)
    ]
    drawing = [place for place, test in enumerate(found) if test is None]
    if drawing:
        chosen = units[:, drawing]
        thresholds = np.array([_threshold(column) for column in chosen.T])
        extreme = extreme_flips(chosen, thresholds, resamples=resamples, seed=seed)
        for place, count in zip(drawing, extreme.tolist(), strict=True):
            # The observed labelling is one of the permutations: without the +1 a test could report
            # p = 0, which no finite number of draws can show (Phipson & Smyth 2010).
            p_value = (count + 1) / (resamples + 1)
            method = f"sign flip, {resamples} draws, seed {seed}"
            found[place] = PairedTest(p_value, float(observed[place]), method)
    return [test for test in found if test is not None]


def _threshold(units: Array) -> float:
    """A flip that ties with the observed sum must count: sums of floats tie only up to rounding."""
    import numpy as np

    return abs(float(units.sum())) - 1e-11 * float(np.abs(units).sum())


def _without_draws(units: Array, observed: float, resamples: int) -> PairedTest | None:
    """The test where it is exact, or normal; None where flips have to be drawn."""
    import numpy as np

    units = units[units != 0]
    if not len(units):
        return PairedTest(1.0, observed, "sign flip, exact: no sample differs")
    if 2 ** min(len(units), 64) <= resamples:
        signs = 1 - 2 * ((np.arange(2 ** len(units))[:, np.newaxis] >> np.arange(len(units))) & 1)
        extreme = int((np.abs(signs @ units) >= _threshold(units)).sum())
        return PairedTest(extreme / 2 ** len(units), observed, f"sign flip, exact, {len(units)} units")
    if len(units) <= DRAWS_UP_TO:
        return None
    squares = units**2
    few = len(np.unique(np.abs(units))) <= FEW_VALUES
    if few or squares.max() > _LARGEST_SHARE * squares.sum():
        return None
    p_value = _two_sided(abs(float(units.sum())) / math.sqrt(float(squares.sum())))
    return PairedTest(p_value, observed, f"sign flip, normal form, {len(units)} units")


def paired_swap_test(
    rows_a: Array,
    rows_b: Array,
    aggregate: Callable[[Array], Array],
    *,
    clusters: Sequence[Hashable] | None = None,
    of_sums: bool = False,
    resamples: int = 2_000,
    seed: int = 0,
) -> PairedTest:
    """The same test for any aggregate (corpus BLEU, a quantile): swap samples between the systems.

    `aggregate` reduces the second-last axis of (..., samples, columns); `of_sums` says that it needs no more
    than the sum of each column, which is much quicker. Above 20,000 units the p-value is that of the normal
    distribution with the spread of 200 draws.
    """
    import numpy as np

    observed = float(aggregate(rows_b) - aggregate(rows_a))
    if np.array_equal(rows_a, rows_b):
        return PairedTest(1.0, observed, "swap: no sample differs")
    if of_sums and bool(np.isfinite(rows_a).all() and np.isfinite(rows_b).all()):
        units_a, units_b = (summed_by_unit(rows, clusters) for rows in (rows_a, rows_b))
        count = len(units_a)
        resamples = min(resamples, 200) if count > NORMAL_ABOVE else resamples
        drawn = swapped_of_sums(units_a, units_b, aggregate, resamples=resamples, seed=seed)
    else:
        units = np.arange(len(rows_a)) if clusters is None else numbered(clusters)
        count = int(units.max()) + 1
        resamples = min(resamples, 200) if count > NORMAL_ABOVE else resamples
        drawn = _swapped(rows_a, rows_b, aggregate, units, resamples=resamples, seed=seed)
    extreme = int((np.abs(drawn) >= abs(observed) * (1 - 1e-10)).sum())
    squares = float((drawn**2).sum())
    if count > NORMAL_ABOVE and squares > 0 and math.isfinite(squares):
        p_value = _two_sided(abs(observed) / math.sqrt(squares / resamples))
        return PairedTest(p_value, observed, f"swap, normal, spread of {resamples} draws, seed {seed}")
    return PairedTest((extreme + 1) / (resamples + 1), observed, f"swap, {resamples} draws, seed {seed}")


def _swapped(
    rows_a: Array,
    rows_b: Array,
    aggregate: Callable[[Array], Array],
    units: NDArray[np.intp],
    *,
    resamples: int,
    seed: int,
) -> Array:
    """The difference between the systems with rows swapped, those of one unit together."""
    import numpy as np

    rng = np.random.default_rng(seed)
    chunk, count = max(1, CELLS_AT_ONCE // 2 // rows_a.size), int(units.max()) + 1
    found = []
    for done in range(0, resamples, chunk):
        swaps = rng.integers(0, 2, size=(min(chunk, resamples - done), count), dtype=np.int8)
        mask = swaps[:, units, np.newaxis].astype(bool)
        swapped = aggregate(np.where(mask, rows_a, rows_b)) - aggregate(np.where(mask, rows_b, rows_a))
        found.append(swapped)
    return np.concatenate(found)


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
