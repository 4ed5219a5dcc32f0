"""Correct the spelling of a query by the words of the corpus."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from rapidfuzz.distance import OSA

from ..text.tokens import stemmed_word, words

FUNCTION_WORDS = frozenset(
    """a an and any are as at be been by can did do does for from had has have how i if in into is it its many
    me much my of on or our than that the their there these they this to us was we were what when where which
    who whom whose why will with would you your""".split()
)
_SHORTEST = 4  # letters: shorter words have too many neighbours


class Spelling:
    """Replaces a word that the corpus lacks by the most frequent one with a letter more, less or swapped.

    Another letter in the place of one is not corrected: `soil` would become `sail`. Nor are function words:
    `many` would become `may`.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._counts = Counter(word for text in texts for word in words(text))
        self._stems = {stemmed_word(word) for word in self._counts}
        self._by_initial: dict[str, list[str]] = defaultdict(list)
        for word, _ in sorted(self._counts.items(), key=lambda item: (-item[1], item[0])):
            self._by_initial[word[0]].append(word)

    def corrected(self, query: str) -> str:
        """Return the words of a query in lower case, the misspelt ones corrected."""
        return " ".join(map(self._corrected_word, words(query)))

    def _corrected_word(self, word: str) -> str:
        is_known = stemmed_word(word) in self._stems or word in FUNCTION_WORDS
        if is_known or len(word) < _SHORTEST or not word.isalpha():
            return word
        return next((other for other in self._by_initial[word[0]] if _is_slip(word, other)), word)


def _is_slip(word: str, other: str) -> bool:
    if abs(len(word) - len(other)) > 1 or OSA.distance(word, other, score_cutoff=1) > 1:
        return False
    return len(word) != len(other) or sorted(word) == sorted(other)
