"""How many n-grams two texts share, for many pairs at once.

A text is a string here: of its characters, or of one character for each token (`pairs.Codes`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..stats.arrays import Counts

Words = NDArray[np.uint64]

_CHUNK = 1 << 17  # characters that are sorted at once: some megabytes of keys


def ngrams(tokens: Sequence[Any], n: int) -> Counter[Any]:
    """Return the n-grams of a sequence with their counts; substrings of a string, tuples of a list."""
    if isinstance(tokens, str):
        return Counter([tokens[start : start + n] for start in range(len(tokens) - n + 1)])
    return Counter(zip(*(tokens[start:] for start in range(n)), strict=False))


def shared_ngrams(given: Sequence[str], gold: Sequence[str], orders: int) -> Counts:
    """Return the n-grams that the texts of each pair share, repeats counted, for n = 1 ... orders.

    Of shape (pairs, orders). All n-grams of a chunk of pairs are packed into whole numbers and sorted
    once: sorted by n-grams of the highest order, they are sorted by all their beginnings as well.
    """
    counts = np.zeros((len(given), orders), dtype=np.int64)
    start = size = 0
    for place in range(len(given) + 1):
        more = len(given[place]) + len(gold[place]) if place < len(given) else _CHUNK
        if place > start and size + more > _CHUNK:
            counts[start:place] = _shared_in_chunk(given[start:place], gold[start:place], orders)
            start, size = place, 0
        size += more
    return counts


def _shared_in_chunk(given: Sequence[str], gold: Sequence[str], orders: int) -> Counts:
    pairs = len(given)
    local, sizes, vocabulary = _codes([*given, *gold], gap=orders - 1)
    bits = vocabulary.bit_length()
    if orders * bits + (pairs - 1).bit_length() + 1 > 64:  # does not fit into one number: smaller chunks
        if pairs == 1:
            return np.array([_shared_one_by_one(given[0], gold[0], orders)])
        half = pairs // 2
        return np.concatenate(
            [
                _shared_in_chunk(given[:half], gold[:half], orders),
                _shared_in_chunk(given[half:], gold[half:], orders),
            ]
        )
    keys = np.repeat(np.tile(np.arange(pairs, dtype=np.uint64), 2), sizes)
    ahead = np.concatenate([local, np.zeros(orders - 1, dtype=np.uint64)])
    for step in range(orders):
        keys <<= np.uint64(bits)
        keys |= ahead[step : step + len(local)]
    keys <<= np.uint64(1)
    keys[int(sizes[:pairs].sum()) :] |= np.uint64(1)  # the last bit says which side a key is from
    # Keys that start in the gap after a text are not n-grams.
    keys = keys[local != 0]
    keys.sort()
    return _shared_in_sorted(keys, pairs, orders, bits)


def _shared_in_sorted(keys: Words, pairs: int, orders: int, bits: int) -> Counts:
    """Count the runs of equal keys, then those of their beginnings, one token shorter each time."""
    counts = np.zeros((pairs, orders), dtype=np.int64)
    if not len(keys):
        return counts
    from_gold = (keys & np.uint64(1)).astype(np.int64)
    from_both = np.ones(len(keys), dtype=np.int64)
    keys >>= np.uint64(1)
    last_token = np.uint64((1 << bits) - 1)
    for n in range(orders, 0, -1):
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        keys = keys[starts]
        from_gold, from_both = np.add.reduceat(from_gold, starts), np.add.reduceat(from_both, starts)
        shared = np.minimum(from_gold, from_both - from_gold)
        shared[(keys & last_token) == 0] = 0  # the text ended before the n-gram was complete
        of_pair = (keys >> np.uint64(bits * n)).astype(np.int64)
        # Exact: a float holds whole numbers up to 2**53.
        counts[:, n - 1] = np.bincount(of_pair, weights=shared, minlength=pairs).astype(np.int64)
        keys >>= np.uint64(bits)
    return counts


def _codes(texts: list[str], *, gap: int) -> tuple[Words, Counts, int]:
    """Return all characters as numbers from 1, `gap` zeros after each text, the sizes, and the highest."""
    space = "\0" * gap
    characters = np.frombuffer(
        (space.join(texts) + space).encode("utf-32-le", "surrogatepass"), dtype=np.dtype("<u4")
    )
    sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)) + gap
    highest = int(characters.max(initial=0))
    # A table of all code points up to the highest would cost more than sorting: a short text with an emoji.
    if highest > 16 * len(characters):
        _, ranks = np.unique(characters, return_inverse=True)
        local = (ranks + 1).astype(np.uint64)
    else:
        present = np.zeros(highest + 1, dtype=np.bool_)
        present[characters] = True
        local = np.cumsum(present).astype(np.uint64)[characters]
    vocabulary = int(local.max(initial=0))
    if gap:
        local[(np.cumsum(sizes)[:, np.newaxis] - 1 - np.arange(gap)).ravel()] = 0
    return local, sizes, vocabulary


def _shared_one_by_one(given: str, gold: str, orders: int) -> list[int]:
    """Count by hash tables, for texts with too many different characters; also the oracle of the tests."""
    return [(ngrams(given, n) & ngrams(gold, n)).total() for n in range(1, orders + 1)]
