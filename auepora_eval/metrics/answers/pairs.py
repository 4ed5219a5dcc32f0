"""Answers beside their references, and texts as short strings: what the text metrics share in a batch.

A sample may have several right answers: `reference_answer.text` and the list in
`reference_answer.metadata["alternatives"]`. Each answer is scored against all of them, and the best counts.
Citation marks such as [2] are left out of both: whether they are right is for the citation metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.scores import Batch, Note, Rows, Scores
from ...core.types import EvaluationSample, SystemOutputs
from ...errors import ScoringError
from ...text.content_words import without_citations

_MANY_CODES = 500_000
# Of an answer and its reference: a pair of that length has fewer different words than Unicode has characters.
_MOST_CHARACTERS = 2_000_000


def references(sample: EvaluationSample) -> list[str]:
    """Return the right answers of a sample, without citation marks: the reference, then its alternatives."""
    if sample.reference_answer is None:
        raise ScoringError("the sample has no reference_answer")
    text = sample.reference_answer.text
    if not isinstance(text, str):
        raise ScoringError(f"the reference must be a text, not {text!r:.80}")
    alternatives = sample.reference_answer.metadata.get("alternatives")
    if not alternatives:
        return [without_citations(text)]
    if not isinstance(alternatives, list | tuple) or not all(
        isinstance(other, str) for other in alternatives
    ):
        raise ScoringError(
            f"the alternatives of the reference must be a list of texts, not {alternatives!r:.80}"
        )
    return [without_citations(each) for each in (text, *alternatives)]


def answer_text(output: SystemOutputs) -> str:
    """Return the text of the answer without citation marks; ScoringError for anything but a text."""
    text = output.response.text
    if not isinstance(text, str):
        raise ScoringError(f"the answer must be a text, not {text!r:.80}")
    return without_citations(text)


class Pairs(NamedTuple):
    """Every answer with each of its references, sample by sample; notes on samples that have none."""

    answers: list[str]
    golds: list[str]
    places: list[int]
    notes: dict[int, Note]

    def firsts(self) -> NDArray[np.int64]:
        """Return where in the pairs each sample starts."""
        places = np.asarray(self.places, dtype=np.int64)
        return np.flatnonzero(np.diff(places, prepend=-1))

    def firsts_of_the_best(self, values: Rows) -> NDArray[np.int64]:
        """Return for each sample the pair with its highest value; the first of several."""
        if not self.places:
            return np.zeros(0, dtype=np.int64)
        firsts = self.firsts()
        highest = np.repeat(np.maximum.reduceat(values, firsts), np.diff(firsts, append=len(values)))
        best = np.flatnonzero(values == highest)
        return best[np.flatnonzero(np.diff(np.asarray(self.places)[best], prepend=-1))]

    def best(self, batch: Batch, values: Rows) -> Scores:
        """Return each sample's score: the highest of its pairs."""
        scores = np.full(len(batch), np.nan)
        if self.places:
            firsts = self.firsts()
            scores[np.asarray(self.places)[firsts]] = np.maximum.reduceat(values, firsts)
        return Scores(batch.sample_ids(), scores, notes=self.notes)


def text_pairs(batch: Batch) -> Pairs:
    """Return the pairs of a batch; for batch.once."""
    pairs = Pairs([], [], [], {})
    answers, golds, places, notes = pairs
    for place, (sample, output) in enumerate(zip(batch.samples, batch.outputs, strict=True)):
        if sample.reference_answer is None:
            continue  # `unscorable` notes it
        try:
            right, answer = references(sample), answer_text(output)
            if len(answer) + max(map(len, right)) > _MOST_CHARACTERS:
                raise ScoringError(f"answer and reference have more than {_MOST_CHARACTERS:,} characters")
        except ScoringError as error:
            notes[place] = Note(str(error), failed=True)
            continue
        for gold in right:
            answers.append(answer)
            golds.append(gold)
            places.append(place)
    return pairs


class Codes(dict[str, str]):
    """Words to characters, assigned at first use: a text becomes a string with one for each token.

    Such strings are small and quick to compare. Compare them within a pair only: between pairs, a
    vocabulary that has grown large is cleared.
    """

    def __init__(self, tokens: Callable[[str], Iterable[str]]) -> None:
        super().__init__()
        self._tokens = tokens
        self._characters: dict[str, str] = {}

    def __missing__(self, word: str) -> str:
        characters = self._characters
        code = ""
        for token in self._tokens(word):
            if token not in characters:
                characters[token] = chr(len(characters))
            code += characters[token]
        self[word] = code
        return code

    def of_pairs(self, pairs: Pairs, cut: Callable[[str], list[str]]) -> tuple[list[str], list[str]]:
        """Return the answers and the references in code."""
        given, gold = self.lines_of_pairs(pairs, lambda text: [cut(text)])
        return [line for [line] in given], [line for [line] in gold]

    def lines_of_pairs(
        self, pairs: Pairs, cut: Callable[[str], Iterable[list[str]]]
    ) -> tuple[list[list[str]], list[list[str]]]:
        """Return the lines of the answers and of the references in code; `cut` returns the words of each."""
        given, right = [], []
        before, lines = None, list[str]()
        for answer, gold in zip(pairs.answers, pairs.golds, strict=True):
            if self.renew() or answer is not before:
                before, lines = answer, [self.of_words(words) for words in cut(answer)]
            given.append(lines)
            right.append([self.of_words(words) for words in cut(gold)])
        return given, right

    def of_words(self, words: Iterable[str]) -> str:
        """Return words in code."""
        return "".join(map(self.__getitem__, words))

    def renew(self) -> bool:
        """Clear the vocabulary if it is large; call it between pairs."""
        if len(self._characters) <= _MANY_CODES:
            return False
        self.clear()
        self._characters.clear()
        return True


def lengths(codes: list[str]) -> NDArray[np.int64]:
    """Return how many tokens each coded text has."""
    return np.fromiter(map(len, codes), dtype=np.int64, count=len(codes))
