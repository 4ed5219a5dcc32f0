"""Samples in clusters, and resamples of them in bulk.

A resample is how often each unit was drawn, so that the sums of all columns over a block of resamples are one
product of matrices and no row is copied.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from .arrays import Array, Indices

CELLS_AT_ONCE = 4_000_000  # what a block of resamples may hold: 32 MB


def numbered(clusters: Sequence[Hashable]) -> Indices:
    """The number of each row's cluster, by first appearance.

    >>> numbered(["x", "y", "x"]).tolist()
    [0, 1, 0]
    """
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(cluster, len(numbers)) for cluster in clusters], dtype=np.intp)


def summed_by_unit(columns: Array, clusters: Sequence[Hashable] | None) -> Array:
    """The sum of each column over each cluster: (units, columns); without clusters the rows themselves."""
    if clusters is None:
        return columns
    unit_of = numbered(clusters)
    sums = np.zeros((int(unit_of.max(initial=-1)) + 1, columns.shape[1]))
    np.add.at(sums, unit_of, columns)
    return sums
