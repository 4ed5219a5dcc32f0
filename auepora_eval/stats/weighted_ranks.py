"""Ranks and counts of items that occur as often as their weights say.

An item that is left out has a weight of 0, so a statistic without each item in turn is a matrix product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .arrays import Array, Indices

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def weighted_ranks(values: Array, weights: Array) -> Array:
    """The rank of each value where it occurs as often as its weight says; equal values share a rank.

    `values` is (items,), `weights` is (resamples, items). The ranks are middle ranks less one half: how much
    weight is below, and half of what is level.

    >>> import numpy as np
    >>> weighted_ranks(np.array([0.5, 0.9, 0.5]), np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 0.0]])).tolist()
    [[1.0, 2.5, 1.0], [1.0, 2.5, 1.0]]
    """
    levels, level_of = np.unique(values, return_inverse=True)
    counts = level_counts(np.arange(len(values)), level_of, (len(values), len(levels)))
    return ranks_of_levels(weights @ counts)[:, level_of]


def level_counts(items: Indices, level_of: Indices, shape: tuple[int, int]) -> csr_array:
    """How often each item was given each level, as (items, levels): mostly nothing, so it is kept sparse."""
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(items)), (items, level_of)), shape=shape)


def ranks_of_levels(weights: Array) -> Array:
    """The weight below each level, and half of its own: (resamples, levels)."""
    return np.asarray(np.cumsum(weights, axis=-1) - weights / 2)
