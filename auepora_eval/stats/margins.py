"""Is a loss of a margin ruled out, where few samples differ? Tests that keep their word for rare losses.

A t-test takes the spread of the differences from the samples. Where losses are rare the samples often hold
none of them, or one, and the spread looks far too small: the test passes a run that is worse by the margin.
Samples of one cluster are lost together, so it is clusters that count there, and a whole one may be lost.

share_margin_p      differences of -1, 0 and 1 (two systems right or wrong): exact, whatever the shares
unseen_loss_p       no sample differs, or all by the same; with it unseen_loss and units_to_rule_out
bounded_margin_p    any differences within a reach, in clusters or not: under the likeliest distribution that
                    does lose the margin
paired_margin_test  the one of these, or the t-test, that fits
pseudo_gains        what each unit adds to the gain of an aggregate that is not a mean, for bounded_margin_p
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Array
from .intervals import mean_error
from .resamples import summed_by_unit

DRAWS, FEWER_DRAWS = 10_000, 2_000
_SHARES = 100  # shares of wins that the exact test tries
_WINDOW = 9.0  # deviations around the expected number of wins; beyond is nothing
_ALL_WINS = 5_000
_CELLS = 2_000_000  # of one block of resamples
_FEW_PLACES = 64  # different gains; of more, fewer resamples are made
_MOST_PLACES = 500  # of more than that those next to each other are put together
_SMALL = 0.25  # of the reach: what loses more is lost rather than noise
_STEPS = (400, 8)  # of a gain, and of the size of a cluster, where they are put together


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
    seen = float(_score(np.array([float(losses)]), np.array([float(wins)]), pairs, margin)[0])
    # Squares crowd the small shares, where the chance changes fastest.
    shares = (1 - margin) / 2 * np.linspace(0, 1, _SHARES) ** 2
    every = np.arange(pairs + 1, dtype=np.float64) if pairs <= _ALL_WINS else None
    most = None if every is None else _most_losses(every, seen, pairs, margin)
    return min(1.0, max(_chance(float(share), seen, pairs, margin, most) for share in shares))


def _score(losses: Array, wins: Array, pairs: int, margin: float) -> Array:
    """How many deviations better than the margin it looks; the spread is that of a run at the margin."""
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
    """Return the most losses that look at least as good with these wins; -1 where none do."""
    low, high = np.full(len(wins), -1.0), pairs - wins
    tie = seen - 1e-9 * (1 + abs(seen))
    while bool((low < high).any()):
        middle = np.ceil((low + high) / 2)
        good = _score(middle, wins, pairs, margin) >= tie
        low, high = np.where(good, middle, low), np.where(good, high, middle - 1)
    return low


def unseen_loss_p(units: int, gain: float, margin: float, reach: float, size: float = 1.0) -> float:
    """The p-value of "worse by the margin" where all units gained the same, and none can lose over `reach`.

    A mean loss of the margin takes a share of units that lose; that this many were asked and none of them was
    among these becomes unlikely with their number only. Clusters that are lost may be larger than the
    average, by the factor `size` (that of `lost_size`): then fewer of them make the loss.

    >>> round(unseen_loss_p(145, 0.0, 0.02, 1.0), 3), round(unseen_loss_p(4, 0.0, 0.1, 1.0), 3)
    (0.053, 0.656)
    """
    if not math.isfinite(reach) or gain + margin <= 0:
        return 1.0
    share = _unseen_share(gain, margin, reach, size)
    return float((1 - share) ** units) if share < 1 else 0.0


def units_to_rule_out(margin: float, reach: float, size: float = 1.0, *, level: float = 0.05) -> int:
    """How many units it takes to rule out a loss of the margin where none of them differs.

    >>> units_to_rule_out(0.02, 1.0), units_to_rule_out(0.05, 1.0), units_to_rule_out(1.0, 1.0)
    (149, 59, 1)
    """
    share = _unseen_share(0.0, margin, reach, size)
    return math.ceil(math.log(level) / math.log1p(-share)) if share < 1 else 1


def unseen_loss(units: int, reach: float, size: float = 1.0, *, level: float = 0.05) -> float:
    """Return the largest loss that these units, none of which differs, do not rule out.

    >>> round(unseen_loss(149, 1.0), 4)
    0.0199
    """
    share = 1 - math.exp(math.log(level) / units)
    return reach * share * size / (1 - share + share * size)


def _unseen_share(gain: float, margin: float, reach: float, size: float) -> float:
    lost = (reach - margin) * size
    return (gain + margin) / (gain + margin + lost) if lost > 0 else 1.0


def lost_size(sizes: ArrayLike) -> float:
    """How many times the average cluster one is that was lost: as large as that of a sample taken at random.

    So it is where a cluster of twice the size is twice as likely to be lost.

    >>> lost_size([2, 2, 2]), lost_size([1, 3])
    (1.0, 1.25)
    """
    numbers = np.asarray(sizes, dtype=np.float64)
    return float((numbers**2).mean() / numbers.mean() ** 2)


def bounded_margin_p(
    gains: ArrayLike,
    margin: float,
    reach: float,
    *,
    clusters: Sequence[Hashable] | None = None,
    draws: int | None = None,
    seed: int = 0,
) -> float:
    """The p-value of "the mean gain is -margin or less", of gains that lie between -reach and reach.

    Of all distributions that lose the margin the one is taken under which these gains are likeliest (the
    empirical likelihood, with a place for losses of the whole reach that no sample happened to show); p is
    how often its samples have a mean as good. With clusters, these are drawn whole, and what need not have
    been shown is the loss of a whole cluster, of `lost_size`. It is never surer than a run that does
    not differ would be, unless the mean is a gain.
    """
    values = np.asarray(gains, dtype=np.float64)
    if not len(values):
        return math.nan
    if not margin > 0 or not reach > 0:
        raise ValueError(f"a margin and a reach are positive, not {margin} and {reach}")
    if margin >= reach:
        return float(bool((values <= -reach).all()))
    mean = float(values.mean())
    if mean + margin <= 1e-12 * reach:
        return 1.0
    sizes = summed_by_unit(np.ones((len(values), 1)), clusters)[:, 0]
    sums = summed_by_unit(values.reshape(-1, 1), clusters)[:, 0]
    size = lost_size(sizes)
    gone = size * float(sizes.mean())
    floor = unseen_loss_p(len(sizes), max(mean, 0.0), margin, reach, size)
    if mean <= 0:
        share = _unseen_share(0.0, margin, reach, size)
        floor = max(floor, share_margin_p(0, 0, len(sizes), share))
    if not values.any():
        return floor
    places, above, counts = _places(sums, sums + margin * sizes, sizes)
    worst = min(-(reach - margin) * gone, float(above.min()))
    shares, unseen = _likeliest_at_margin(above, counts / len(sizes), worst)
    places, shares = np.append(places, -reach * gone), np.append(shares, unseen)
    limit = float(sums.sum()) - 1e-9 * (1 + float(np.abs(sums).sum())) - _tie(sums, sizes, reach)
    draws = draws or (DRAWS if len(places) <= _FEW_PLACES else FEWER_DRAWS)
    rng = np.random.default_rng(seed)
    chunk, extreme = max(1, _CELLS // len(places)), 0
    for done in range(0, draws, chunk):
        drawn = rng.multinomial(len(sizes), shares / shares.sum(), size=min(chunk, draws - done))
        extreme += int((drawn @ places >= limit).sum())
    return max(floor, (extreme + 1) / (draws + 1))


def _tie(sums: Array, sizes: Array, reach: float) -> float:
    """By how much two sums may differ and still look alike.

    Where all but a few units differ by next to nothing, the number of lost ones decides. Resamples have
    the noise of what was seen: every second one with as many losses would look worse by a hair, and p would
    be too small. Noise as large as half a lost unit blurs their number, and there is nothing to allow for.
    """
    noise = float(sums[sums > -_SMALL * reach * sizes].std()) * math.sqrt(len(sums))
    lost = reach * float(sizes.mean())
    return 1.5 * noise * max(0.0, 1 - 2 * noise / lost)


def _places(sums: Array, above: Array, sizes: Array) -> tuple[Array, Array, Array]:
    """The units that are alike, once each, with their counts; of too many kinds the nearest are averaged."""
    kinds, which, counts = np.unique(
        np.stack([sums, sizes], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    which = which.reshape(-1)
    if len(kinds) > _MOST_PLACES:
        steps = [_steps(column, most) for column, most in zip((above, sizes), _STEPS, strict=True)]
        _, which, counts = np.unique(
            steps[0] * (_STEPS[1] + 1) + steps[1], return_inverse=True, return_counts=True
        )
    summed = [np.bincount(which, weights=column, minlength=len(counts)) for column in (sums, above)]
    return summed[0] / counts, summed[1] / counts, counts.astype(np.float64)


def _steps(values: Array, most: int) -> Array:
    low, width = float(values.min()), float(np.ptp(values))
    return np.floor((values - low) / width * most) if width > 0 else np.zeros_like(values)


def _likeliest_at_margin(above: Array, weights: Array, worst: float) -> tuple[Array, float]:
    """The shares of each place, and of the worst, that make the units likeliest: on average 0 above."""
    from scipy.optimize import brentq

    most = -1 / worst

    def pull(strength: float) -> float:
        return float((weights * above / (1 + strength * above)).sum())

    last = most * (1 - 1e-12)
    strength = float(brentq(pull, 0.0, last)) if pull(last) < 0 else most
    shares = weights / (1 + strength * above) if strength < most else weights * worst / (worst - above)
    return shares, max(0.0, 1 - float(shares.sum()))


def paired_margin_test(
    gains: ArrayLike, margin: float, reach: float, *, clusters: Sequence[Hashable] | None = None
) -> MarginTest:
    """Is the candidate worse by less than the margin? By the test that holds for gains of this kind.

    `reach` is the largest loss that a sample can have; where it is not finite a t-test has to do.
    """
    values = np.asarray(gains, dtype=np.float64)
    by_t = non_inferiority_test(values, margin, clusters=clusters)
    if not len(values) or not math.isfinite(reach) or not reach > 0:
        # Without a bound, equal samples say nothing about the others.
        return by_t._replace(p_value=1.0) if len(values) and not np.ptp(values) else by_t
    if clusters is None and reach == 1.0 and bool(np.isin(values, (-1.0, 0.0, 1.0)).all()):
        losses, wins = int((values < 0).sum()), int((values > 0).sum())
        return MarginTest(share_margin_p(losses, wins, len(values), margin), "exact, by Tango's score")
    drawn = bounded_margin_p(values, margin, reach, clusters=clusters)
    p_value = drawn if math.isnan(by_t.p_value) else max(drawn, by_t.p_value)
    units = "" if clusters is None else f", {len(set(clusters))} clusters"
    return MarginTest(p_value, f"the larger of a t-test and of resamples at the margin{units}")


def pseudo_gains(
    rows_a: Array,
    rows_b: Array,
    of_sums: Callable[[Array], Array],
    *,
    clusters: Sequence[Hashable] | None = None,
) -> Array:
    """The jackknife's pseudo-values of the difference of an aggregate of sums, one for each unit.

    Their mean is the difference, less the bias of a small sample; of a mean they are the differences
    themselves. A unit that is lost stands out among them as it does among the differences of a mean.

    >>> import numpy as np
    >>> mean = lambda sums: sums[..., 0, 0] / sums[..., 0, 1]
    >>> ones = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    >>> pseudo_gains(ones, np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0]]), mean).round(6).tolist()
    [0.0, -1.0, 0.0]
    """
    units = len(summed_by_unit(rows_a, clusters))
    found = np.zeros(units)
    for sign, rows in ((-1, rows_a), (1, rows_b)):
        sums = summed_by_unit(rows, clusters)
        whole = sums.sum(axis=0)
        left_out = of_sums((whole - sums)[:, np.newaxis, :])
        found += sign * (units * float(of_sums(whole[np.newaxis, :])) - (units - 1) * left_out)
    return found


class MarginTest(NamedTuple):
    """How often chance alone looks as much within the margin, and how that was found."""

    p_value: float
    method: str


def non_inferiority_test(
    gains: ArrayLike,
    margin: float,
    *,
    clusters: Sequence[Hashable] | None = None,
) -> MarginTest:
    """Is the candidate worse by less than the margin? One-sided t-test on its gains over the baseline."""
    if not margin > 0:
        raise ValueError(f"a margin is positive, not {margin}")
    return MarginTest(_one_sided(gains, -margin, clusters), f"one-sided t-test at a margin of {margin:g}")


def _one_sided(values: ArrayLike, limit: float, clusters: Sequence[Hashable] | None) -> float:
    """The p-value of "the mean is at most the limit"; NaN where there is no telling."""
    from scipy.stats import t

    mean, error, freedom = mean_error(values, clusters=clusters)
    if not freedom:
        return math.nan
    if error == 0.0:
        return 0.0 if mean > limit else 1.0
    return float(t.sf((mean - limit) / error, freedom))
