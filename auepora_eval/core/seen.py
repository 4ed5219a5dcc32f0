"""Ids as 64-bit keys: which went by, and where each is; a million of them fit into a few megabytes."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any


def key_of(text: str) -> int:
    """64 bits of a text, never 0. They hold for this process only: another one has other keys.

    Two different texts have the same key with a chance of 3 in 100 million at a million texts; whoever must
    be sure compares the texts themselves.
    """
    if _WIDE:
        return hash(text) or 1
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) or 1


_WIDE = sys.hash_info.width >= 64  # the hash of a 32-bit Python would take different ids for one


class SeenIds:
    """A set of texts that is told only whether one is new; it keeps the key of each, in some 16 bytes.

    >>> seen = SeenIds()
    >>> seen.add("a"), seen.add("a"), "a" in seen, "b" in seen, len(seen)
    (True, False, True, False, 1)
    """

    def __init__(self) -> None:
        self._size = 0
        self._slots = array("q", bytes(8 * 1024))

    def __len__(self) -> int:
        return self._size

    def __contains__(self, text: object) -> bool:
        key = key_of(str(text))
        return self._slots[self._slot(key)] == key

    def has_all(self, keys: Iterable[int]) -> bool:
        """Whether the text of every one of these keys went by."""
        return all(self._slots[self._slot(key)] == key for key in keys)

    def add(self, text: str) -> bool:
        """Note a text; whether it is new."""
        key = key_of(text)
        slot = self._slot(key)
        if self._slots[slot] == key:
            return False
        self._slots[slot] = key
        self._size += 1
        if 2 * self._size > len(self._slots):
            self._grow()
        return True

    def _slot(self, key: int) -> int:
        slots = self._slots
        mask = len(slots) - 1
        slot = key & mask
        while (there := slots[slot]) and there != key:
            slot = (slot + 1) & mask
        return slot

    def _grow(self) -> None:
        before = self._slots
        self._slots = array("q", bytes(8 * 2 * len(before)))
        for key in before:
            if key:
                self._slots[self._slot(key)] = key


class PlacesById:
    """Where the records of ids are, by the keys of these; each place is a number, in the order of arrival.

    >>> places = PlacesById(array("q", [key_of("a"), key_of("b"), key_of("a")]))
    >>> places.find("a"), places.find("b"), places.find("c")
    ([0, 2], [1], [])
    """

    def __init__(self, keys: array[int]) -> None:
        import numpy as np

        given: Any = np.frombuffer(keys, np.int64)
        order = np.argsort(given, kind="stable")  # equal keys stay in their order
        # Arrays of Python's own: looking up a single number in them is several times faster.
        self.keys = array("q", given[order].tobytes())
        self._order = order.astype(np.int32 if len(order) < 2**31 else np.int64)

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, text: str) -> list[int]:
        """The places under the key of a text: one, or none, unless it was given several times."""
        key, keys = key_of(text), self.keys
        start = end = bisect_left(keys, key)
        while end < len(keys) and keys[end] == key:
            end += 1
        found: list[int] = self._order[start:end].tolist()
        return found
