"""Choose what to annotate.

    random            each item with the same chance
    slice:NAME        the same number from each value of a label of the samples, as far as it has them
    run               the same number from each run
    disagree:A,B      where two metrics differ most
    narrow:METRIC     where a label adds most to what the metric shows: near its 0.5

Each item keeps the chance with which it was chosen, so that the mean over all items can be estimated from any
of these except `disagree`, which takes the extremes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import msgspec
import numpy as np

from ...errors import DataError, did_you_mean
from ...stats.arrays import Array
from ...stats.sampling import inclusion_chances, systematic_sample
from .task import Item

HOW = ("random", "slice:NAME", "run", "disagree:A,B", "narrow:METRIC")
# Share of the chances that is the same for all items: a metric that is wrong must not hide a part of them.
_EVEN = 0.5


def chosen(items: Sequence[Item], how: str, count: int, *, seed: int) -> list[Item]:
    """Return `count` items, or all if there are fewer, numbered from 1, each with its chance."""
    if not items:
        raise DataError("annotate", "there is nothing to judge.", fix="Choose other --items or runs.")
    kind, _, about = how.partition(":")
    choose = _WAYS.get(kind)
    if choose is None or bool(about) != (kind not in ("random", "run")):
        raise DataError("--choose", f"{how!r:.60} is not one of {', '.join(HOW)}.")
    chances, places = choose(items, about, min(count, len(items)), Random(f"{seed}/choice"))  # noqa: S311
    return [
        msgspec.structs.replace(items[place], item_id=str(number), chance=round(chances[place], 9))
        for number, place in enumerate(places, start=1)
    ]


Choice = tuple[Sequence[float], list[int]]  # the chance of each item, and the places of the chosen ones


def _random(items: Sequence[Item], about: str, count: int, random: Random) -> Choice:
    return [count / len(items)] * len(items), random.sample(range(len(items)), count)


def _stratified(items: Sequence[Item], count: int, random: Random, stratum: Callable[[Item], str]) -> Choice:
    strata: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        strata.setdefault(stratum(item), []).append(place)
    if count < len(strata):
        what = f"{count} items are fewer than the {len(strata)} groups to choose from."
        raise DataError("--count", what, fix=f"Give at least {len(strata)}.")
    # Smallest first: what a small stratum lacks is shared by the others.
    left, chances, places = count, [0.0] * len(items), []
    by_size = sorted(strata.values(), key=len)
    for number, members in enumerate(by_size):
        share = min(len(members), -(-left // (len(by_size) - number)))
        left -= share
        places += random.sample(members, share)
        for place in members:
            chances[place] = share / len(members)
    random.shuffle(places)
    return chances, places


def _by_slice(items: Sequence[Item], about: str, count: int, random: Random) -> Choice:
    names = sorted({name for item in items for name in item.slices})
    if about not in names:
        hint = did_you_mean(about, names, f"There are: {', '.join(names)[:200] or 'none'}.")
        raise DataError("--choose", f"no sample has a label {about!r:.60}.", fix=hint)
    return _stratified(items, count, random, lambda item: item.slices.get(about, ""))


def _by_run(items: Sequence[Item], about: str, count: int, random: Random) -> Choice:
    return _stratified(items, count, random, lambda item: item.runs[0])


def _disagreeing(items: Sequence[Item], about: str, count: int, random: Random) -> Choice:
    one, other = _two_metrics(items, about)
    order = [place for place, item in enumerate(items) if one in item.scores and other in item.scores]
    random.shuffle(order)  # among equal differences
    order.sort(key=lambda place: -abs(items[place].scores[one] - items[place].scores[other]))
    return [1.0] * len(items), order[:count]


def _two_metrics(items: Sequence[Item], about: str) -> tuple[str, str]:
    # A name may have commas in its brackets, so every comma is tried.
    names = metric_names(items)
    for place, letter in enumerate(about):
        one, other = about[:place].strip(), about[place + 1 :].strip()
        if letter == "," and one in names and other in names and one != other:
            return one, other
    what = f"{about!r:.80} are not two metrics of the run with scores from 0 to 1."
    raise DataError("--choose", what, fix=f"There are: {', '.join(names)[:300] or 'none'}.")


def metric_names(items: Sequence[Item]) -> list[str]:
    """Return the metrics that some items have a score of."""
    return list(dict.fromkeys(name for item in items for name in item.scores))


def _narrowing(items: Sequence[Item], about: str, count: int, random: Random) -> Choice:
    names = metric_names(items)
    if about not in names:
        hint = did_you_mean(about, names, f"There are: {', '.join(names)[:300] or 'none'}.")
        raise DataError("--choose", f"the run has no metric {about!r:.60} from 0 to 1.", fix=hint)
    # An item that the metric could not score is as open as one at 0.5.
    scores = np.array([item.scores.get(about, 0.5) for item in items])
    chances = inclusion_chances(doubts(scores), count)
    return chances.tolist(), systematic_sample(chances, random)


def doubts(scores: Array) -> Array:
    """Return how open each label is: the standard deviation of a yes with this chance, and an even part."""
    open_labels = np.sqrt(scores * (1 - scores))
    mean = float(open_labels.mean())
    if mean == 0:
        return np.ones(len(scores))
    return (1 - _EVEN) * open_labels / mean + _EVEN


_WAYS: dict[str, Callable[[Sequence[Item], str, int, Random], Choice]] = {
    "random": _random,
    "slice": _by_slice,
    "run": _by_run,
    "disagree": _disagreeing,
    "narrow": _narrowing,
}
