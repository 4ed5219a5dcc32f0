"""Is a loss of a margin ruled out, where few samples differ? Tests that keep their word for rare losses.

A t-test takes the spread of the differences from the samples. Where losses are rare the samples often hold
none of them, or one, and the spread looks far too small: the test passes a run that is worse by the margin.

share_margin_p      differences of -1, 0 and 1 (two systems right or wrong): exact, whatever the shares
bounded_margin_p    any differences within a reach: under the likeliest distribution that does lose the margin
paired_margin_test  the one of these, or the t-test, that fits
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from .equivalence import MarginTest, non_inferiority_test

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

DRAWS, FEWER_DRAWS = 10_000, 2_000
_SHARES = 100  # shares of wins that the exact test tries
_WINDOW = 9.0  # deviations around the expected number of wins; beyond is nothing
_ALL_WINS = 5_000
_CELLS = 2_000_000  # of one block of draws
_FEW_PLACES = 64  # different gains; of more, fewer draws are made
_MOST_PLACES = 500  # of more than that no few decide the spread


@lru_cache(maxsize=4_096)
def share_margin_p(losses: int, wins: int, pairs: int, margin: float) -> float:
    """The p-value of "the share of losses is above that of wins by the margin or more", by exact counting.

    How often does a run that loses the margin look as good as this one? Looks are ranked by Tango's score
    (1998); the answer is the largest over all shares of wins, of which nothing is known.

    >>> round(share_margin_p(0, 0, 145, 0.02), 4), round(0.98**145, 4)
    (0.0534, 0.0534)
    """
    if min(losses, wins) < 0 or losses + wins > pairs or not pairs:
        raise ValueError(f"{losses} losses and {wins} wins are not among {pairs} pairs")
    if not margin > 0:
        raise ValueError(f"a margin is positive, not {margin}")
    if margin >= 1:
        return 1.0 if losses == pairs else 0.0
    import numpy as np

    seen = float(_score(np.array([float(losses)]), np.array([float(wins)]), pairs, margin)[0])
    # Squares crowd the small shares, where the chance changes fastest.
    shares = (1 - margin) / 2 * np.linspace(0, 1, _SHARES) ** 2
    every = np.arange(pairs + 1, dtype=np.float64) if pairs <= _ALL_WINS else None
    most = None if every is None else _most_losses(every, seen, pairs, margin)
    return min(1.0, max(_chance(float(share), seen, pairs, margin, most) for share in shares))


def _score(losses: Array, wins: Array, pairs: int, margin: float) -> Array:
    """How many deviations better than the margin it looks; the spread is that of a run at the margin."""
    import numpy as np

    gain = wins - losses + pairs * margin
    # The likeliest share of wins, given that losses are above it by the margin: the root of a quadratic.
    linear = -losses - wins + margin * (2 * pairs - losses + wins)
    constant = -wins * margin * (1 - margin)
    root = np.sqrt(np.maximum(linear**2 - 8 * pairs * constant, 0.0))
    # Of the two ways to write a root, the one that does not subtract what is nearly equal.
    down = linear + root
    with np.errstate(divide="ignore", invalid="ignore"):
        other = np.where(down > 0, -2 * constant / down, 0.0)
    likeliest = np.where(linear > 0, other, (root - linear) / (4 * pairs))
    spread = np.sqrt(np.maximum(pairs * (2 * likeliest + margin * (1 - margin)), 1e-300))
    return np.asarray(gain / spread)


def _chance(share: float, seen: float, pairs: int, margin: float, known: Array | None) -> float:
    """How often a run at the margin that wins this share looks at least as good.

    `known` has the most losses for every number of wins, where these are not too many.
    """
    import numpy as np
    from scipy.special import bdtr, gammaln, xlog1py, xlogy

    middle, sd = pairs * share, math.sqrt(pairs * share * (1 - share))
    low, high = (max(0, math.floor(middle - _WINDOW * sd - 3)), math.ceil(middle + _WINDOW * sd + 3))
    last = min(pairs, high) + 1
    wins = np.arange(low, last, dtype=np.float64)
    most = _most_losses(wins, seen, pairs, margin) if known is None else known[low:last]
    rest = (pairs - wins).astype(np.int64)
    fewer = bdtr(np.maximum(most, 0), rest, min(1.0, (share + margin) / (1 - share)))
    ways = gammaln(pairs + 1) - gammaln(wins + 1) - gammaln(rest + 1)
    so_many = np.exp(ways + xlogy(wins, share) + xlog1py(rest, -share))
    return float((so_many * np.where(most >= 0, fewer, 0.0)).sum())


def _most_losses(wins: Array, seen: float, pairs: int, margin: float) -> Array:
    """With so many wins, the most losses that look at least as good; -1 where none do. More look worse."""
    import numpy as np

    low, high = np.full(len(wins), -1.0), pairs - wins
    tie = seen - 1e-9 * (1 + abs(seen))
    while bool((low < high).any()):
        middle = np.ceil((low + high) / 2)
        good = _score(middle, wins, pairs, margin) >= tie
        low, high = np.where(good, middle, low), np.where(good, high, middle - 1)
    return low


def bounded_margin_p(
    gains: ArrayLike, margin: float, reach: float, *, draws: int | None = None, seed: int = 0
) -> float:
    """The p-value of "the mean gain is -margin or less", of gains that lie between -reach and reach.

    Of all distributions that lose the margin the one is taken under which these gains are likeliest (the
    empirical likelihood, with a place for losses of the whole reach that no sample happened to show); p is
    how often its samples have a mean as good. With no sample that differs that is (1 - margin / reach) ** n.
    """
    import numpy as np

    values = np.asarray(gains, dtype=np.float64)
    if not len(values):
        return math.nan
    if not margin > 0 or not reach > 0:
        raise ValueError(f"a margin and a reach are positive, not {margin} and {reach}")
    if margin >= reach:
        return float(bool((values <= -reach).all()))
    if values.mean() + margin <= 1e-12 * reach:
        return 1.0
    places, counts = np.unique(values, return_counts=True)
    shares, worst = _likeliest_at_margin(places, counts / len(values), margin, reach)
    rng = np.random.default_rng(seed)
    places, shares = np.append(places, -reach), np.append(shares, worst)
    limit = float(values.sum()) - 1e-9 * (1 + float(np.abs(values).sum()))
    draws = draws or (DRAWS if len(places) <= _FEW_PLACES else FEWER_DRAWS)
    chunk, extreme = max(1, _CELLS // len(places)), 0
    for done in range(0, draws, chunk):
        drawn = rng.multinomial(len(values), shares / shares.sum(), size=min(chunk, draws - done))
        extreme += int((drawn @ places >= limit).sum())
    return (extreme + 1) / (draws + 1)


def _likeliest_at_margin(places: Array, weights: Array, margin: float, reach: float) -> tuple[Array, float]:
    """The shares of each place, and of a loss of the whole reach, that make the gains likeliest."""
    from scipy.optimize import brentq

    above = places + margin
    most = 1 / (reach - margin)

    def pull(strength: float) -> float:
        return float((weights * above / (1 + strength * above)).sum())

    last = most * (1 - 1e-12)
    strength = float(brentq(pull, 0.0, last)) if pull(last) < 0 else most
    shares = (
        weights / (1 + strength * above) if strength < most else weights * (reach - margin) / (reach + places)
    )
    return shares, max(0.0, 1 - float(shares.sum()))


def paired_margin_test(
    gains: ArrayLike, margin: float, reach: float, *, clusters: Sequence[Hashable] | None = None
) -> MarginTest:
    """Is the candidate worse by less than the margin? By the test that holds for gains of this kind.

    `reach` is the largest loss that a sample can have. Clusters, gains without a reach, and hundreds of
    different gains go by a t-test; 0/1 gains in clusters are never surer than if none had differed.
    """
    import numpy as np

    values = np.asarray(gains, dtype=np.float64)
    by_t = non_inferiority_test(values, margin, clusters=clusters)
    if not len(values) or not math.isfinite(reach) or not reach > 0:
        return by_t
    all_or_nothing = bool(np.isin(values, (-reach, 0.0, reach)).all())
    if clusters is not None:
        # A t-test of rare losses is too sure; of scores between 0 and 1 it is about right.
        unseen = max(0.0, 1 - margin / reach) ** len(set(clusters)) if all_or_nothing else 0.0
        return MarginTest(max(by_t.p_value, unseen), f"{by_t.method}, {len(set(clusters))} clusters")
    if reach == 1.0 and all_or_nothing:
        losses, wins = int((values < 0).sum()), int((values > 0).sum())
        return MarginTest(share_margin_p(losses, wins, len(values), margin), "exact, by Tango's score")
    if len(np.unique(values)) > _MOST_PLACES:
        return by_t
    drawn = bounded_margin_p(values, margin, reach)
    p_value = drawn if math.isnan(by_t.p_value) else max(drawn, by_t.p_value)
    return MarginTest(p_value, "the larger of a t-test and of draws at the margin")
