"""Which ids went by: some 16 bytes for each, however long they are."""

from __future__ import annotations

from array import array
from hashlib import blake2b


class SeenIds:
    """A set of texts that is told only whether one is new; it keeps 64 bits of each.

    Two different texts are taken for one with a chance of 3 in 100 million at a million texts.

    >>> seen = SeenIds()
    >>> seen.add("a"), seen.add("a"), "a" in seen, "b" in seen, len(seen)
    (True, False, True, False, 1)
    """

    def __init__(self) -> None:
        self._size = 0
        self._slots = array("Q", bytes(8 * 1024))

    def __len__(self) -> int:
        return self._size

    def __contains__(self, text: object) -> bool:
        key = _key(str(text))
        return self._slots[self._slot(key)] == key

    def add(self, text: str) -> bool:
        """Note a text; whether it is new."""
        key = _key(text)
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
        while slots[slot] not in (0, key):
            slot = (slot + 1) & mask
        return slot

    def _grow(self) -> None:
        before = self._slots
        self._slots = array("Q", bytes(8 * 2 * len(before)))
        for key in before:
            if key:
                self._slots[self._slot(key)] = key


def _key(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") or 1  # 0 is an empty slot
