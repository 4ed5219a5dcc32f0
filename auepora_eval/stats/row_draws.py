"""Draws for aggregates that need the rows themselves, not only their sums: rows are copied, in blocks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from .drawing import CELLS_AT_ONCE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Indices = NDArray[np.intp]


def groups_of(n: int, clusters: Sequence[Hashable] | None) -> Sequence[Indices]:
    """The row numbers of each independent unit, in order of first appearance."""
    import numpy as np

    if clusters is None:
        return np.arange(n).reshape(-1, 1)  # type: ignore[return-value]  # its rows, without a list of them
    members: dict[Hashable, list[int]] = {}
    for place, cluster in enumerate(clusters):
        members.setdefault(cluster, []).append(place)
    return [np.array(places) for places in members.values()]


def leave_one_out(rows: Array, groups: Sequence[Indices], aggregate: Callable[[Array], Array]) -> Array:
    """The aggregate without each of the units, in their order."""
    import numpy as np

    everything = np.arange(len(rows))
    if len(groups) < len(rows):
        return np.array([float(aggregate(np.delete(rows, group, axis=0))) for group in groups])
    chunk = max(1, CELLS_AT_ONCE // rows.size)
    stacks = [
        aggregate(
            rows[np.array([np.delete(everything, left_out) for left_out in everything[done : done + chunk]])]
        )
        for done in range(0, len(rows), chunk)
    ]
    return np.concatenate(stacks)


def each_resample(
    rows: Array,
    groups: Sequence[Indices],
    aggregate: Callable[[Array], Array],
    resamples: int,
    rng: np.random.Generator,
) -> list[float]:
    """The aggregate of each of so many resamples of the units."""
    import numpy as np

    count = len(groups)
    if all(len(group) == 1 for group in groups):
        chunk = max(1, CELLS_AT_ONCE // rows.size)
        stacks = (
            aggregate(rows[rng.integers(count, size=(min(chunk, resamples - done), count))])
            for done in range(0, resamples, chunk)
        )
        return [float(value) for stack in stacks for value in stack]
    # Clusters of unequal size give resamples of unequal length: those cannot be stacked.
    draws = rng.integers(count, size=(resamples, count))
    return [float(aggregate(rows[np.concatenate([groups[i] for i in draw])])) for draw in draws]
