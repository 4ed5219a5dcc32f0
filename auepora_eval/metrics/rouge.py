"""ROUGE: the words, pairs of words and sequences of words that an answer shares with a reference.

Equal to rouge-score 0.1.2 to the last bit on ASCII text. Beyond ASCII rouge-score drops all words, so that
identical Chinese texts score 0 there; here words of any script count, and identical texts score 1.
Others differ by stemming (the Hugging Face wrapper leaves it off, as `[stem=false]` does here) and by
averaging recall or precision where this is the F-measure. A text without words shares nothing: 0, as there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.batch import Batch
from ..core.metrics_base import METRICS
from ..errors import ScoringError
from .answers import AnswerMetric, f_measure, f_measures
from .ngrams import ngrams, shared_ngrams
from .pairs import Codes, lengths, text_pairs
from .text import stemmed_word, words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..core.scores import Rows

    Counts = NDArray[np.int64]
    Line = tuple[str, ...] | str  # words, or a character for each

# Pairs of words to compare line by line: beyond this it takes minutes, and rouge-score hours.
_MOST_WORK = 200_000_000
_WORK_OF_A_LINE = 64


class CodedWords(NamedTuple):
    """The words of all answers and references of a batch, a character each, and how many they are."""

    given: list[str]
    gold: list[str]
    given_lengths: Counts
    gold_lengths: Counts
    codes: Codes


class Rouge(AnswerMetric):
    """A ROUGE: what the words of two texts share, as an F-measure."""

    base: str
    stem: bool
    oracle = "rouge-score 0.1.2"

    def __post_init__(self) -> None:
        self.name = self.base if self.stem else f"{self.base}[stem=false]"

    def signature(self) -> dict[str, Any]:
        return {
            "stemmer": "porter (nltk)" if self.stem else "none",
            "words": "unicode, cjk per character",
        }


class RougeN(Rouge):
    """F-measure of shared n-grams of words."""

    n: int

    def agreement(self, answer: str, reference: str) -> float:
        given, gold = (ngrams(words(text, stemmed=self.stem), self.n) for text in (answer, reference))
        return f_measure((given & gold).total(), given.total(), gold.total())

    def agreements(self, batch: Batch) -> Rows:
        import numpy as np

        coded = coded_words(batch, self.stem)
        shared = shared_words(batch, self.stem)[:, self.n - 1]
        given, gold = (
            np.maximum(sizes - (self.n - 1), 0) for sizes in (coded.given_lengths, coded.gold_lengths)
        )
        return f_measures(shared, given, gold)


@METRICS.add("rouge1")
@dataclass
class Rouge1(RougeN):
    """ROUGE-1: F-measure of the words that answer and reference share (stemmed).

    2PR / (P + R), P = shared / words of the answer, R = shared / words of the reference, repeats counted.
    """

    stem: bool = True
    base, n = "rouge1", 1


@METRICS.add("rouge2")
@dataclass
class Rouge2(RougeN):
    """ROUGE-2: F-measure of the pairs of neighbouring words that answer and reference share (stemmed).

    As rouge1 with pairs for words: a text of one word has none, and scores 0 even against itself.
    """

    stem: bool = True
    base, n = "rouge2", 2


@METRICS.add("rougeL_answer")
@dataclass
class RougeLAnswer(Rouge):
    """ROUGE-L: F-measure of the longest common subsequence of words (stemmed).

    2PR / (P + R), P = LCS / words of the answer, R = LCS / words of the reference: the order of the words
    counts, gaps do not. Equal to rouge-score on ASCII text; unlike it, 1.0 for identical texts in any script.
    """

    stem: bool = True
    base = "rougeL_answer"

    def agreement(self, answer: str, reference: str) -> float:
        from rapidfuzz.distance import LCSseq

        given, gold = words(answer, stemmed=self.stem), words(reference, stemmed=self.stem)
        return f_measure(LCSseq.similarity(given, gold), len(given), len(gold))

    def agreements(self, batch: Batch) -> Rows:
        return rouge_l(batch, self.stem)


@METRICS.add("rougeLsum")
@dataclass
class RougeLsum(Rouge):
    """ROUGE-Lsum: ROUGE-L line by line, so that the order of the lines does not count (stemmed).

    Of each line of the reference, the words in a longest common subsequence with any line of the answer
    are hits, each word at most as often as both texts have it; then the F-measure over all words. Lines
    end at line breaks, as in rouge-score; without line breaks it equals rougeL_answer.
    """

    stem: bool = True
    base = "rougeLsum"

    def agreement(self, answer: str, reference: str) -> float:
        given, gold = (
            [tuple(words(line, stemmed=self.stem)) for line in text.split("\n")]
            for text in (answer, reference)
        )
        return _of_lines(given, gold, same=answer == reference)

    def agreements(self, batch: Batch) -> Rows:
        pairs = batch.once(text_pairs)
        values = rouge_l(batch, self.stem).copy()
        codes = coded_words(batch, self.stem).codes
        for place, (answer, gold) in enumerate(zip(pairs.answers, pairs.golds, strict=True)):
            if "\n" not in answer and "\n" not in gold:
                continue
            codes.renew()
            given, right = (
                [codes.of_words(words(line)) for line in text.split("\n")] for text in (answer, gold)
            )
            try:
                values[place] = _of_lines(given, right, same=answer == gold)
            except ScoringError:
                values[place] = math.nan
        return values


def coded_words(batch: Batch, stemmed: bool) -> CodedWords:
    """The words of each pair of texts, found once for all metrics of a batch."""
    return batch.once(_coded_words, stemmed)  # type: ignore[arg-type]


def shared_words(batch: Batch, stemmed: bool) -> Counts:
    """How many words and pairs of words each pair of texts shares."""
    return batch.once(_shared_words, stemmed)  # type: ignore[arg-type]


def rouge_l(batch: Batch, stemmed: bool) -> Rows:
    """ROUGE-L of each pair of texts."""
    return batch.once(_rouge_l, stemmed)  # type: ignore[arg-type]


def _coded_words(batch: Batch, stemmed: bool) -> CodedWords:
    codes = Codes(_stems if stemmed else _itself)
    given, gold = codes.of_pairs(batch.once(text_pairs), words)
    return CodedWords(given, gold, lengths(given), lengths(gold), codes)


def _shared_words(batch: Batch, stemmed: bool) -> Counts:
    coded = coded_words(batch, stemmed)
    return shared_ngrams(coded.given, coded.gold, 2)


def _rouge_l(batch: Batch, stemmed: bool) -> Rows:
    import numpy as np
    from rapidfuzz.distance import LCSseq

    coded = coded_words(batch, stemmed)
    common = np.fromiter(
        map(LCSseq.similarity, coded.given, coded.gold), dtype=np.int64, count=len(coded.given)
    )
    return f_measures(common, coded.given_lengths, coded.gold_lengths)


def _stems(word: str) -> tuple[str, ...]:
    return (stemmed_word(word),)


def _itself(word: str) -> tuple[str, ...]:
    return (word,)


def _of_lines(given: Sequence[Line], gold: Sequence[Line], *, same: bool) -> float:
    """ROUGE-Lsum from the words of each line."""
    size_given, size_gold = sum(map(len, given)), sum(map(len, gold))
    if same:
        return float(size_gold > 0)
    others, longest = set(given), max(map(len, gold))
    work = max(size_given, longest) * size_gold + _WORK_OF_A_LINE * len(others) * len(set(gold))
    if work > _MOST_WORK:
        raise ScoringError(f"texts of {size_given} and {size_gold} words are too long to compare by lines")
    left_given, left_gold = (Counter(chain.from_iterable(lines)) for lines in (given, gold))
    known: dict[Line, list[int]] = {}
    hits = 0
    for line in gold:
        if line not in known:
            known[line] = _in_common(line, others)
        for place in known[line]:
            token = line[place]
            if left_given[token] > 0 and left_gold[token] > 0:
                hits += 1
                left_given[token] -= 1
                left_gold[token] -= 1
    return f_measure(hits, size_given, size_gold)


def _in_common(line: Line, others: Iterable[Line]) -> list[int]:
    """The places of a line that are in a longest common subsequence with any of the other lines."""
    places_of: dict[str, int] = {}
    for place, token in enumerate(line):
        places_of[token] = places_of.get(token, 0) | 1 << place
    found, full = 0, (1 << len(line)) - 1
    for other in others:
        found |= _one_in_common(other, places_of, full)
    return [place for place in range(len(line)) if found >> place & 1]


def _one_in_common(other: Line, places_of: dict[str, int], full: int) -> int:
    """As bits: the places of a line in one longest common subsequence with another line.

    Which one of several longest ones decides the value: the one that rouge-score finds. It walks back from
    both ends, takes two equal words, and else drops the line's word unless that would shorten the rest.
    """
    # Bit-parallel (Hyyrö 2004): after each word of the other line, a 0 at a place of this line says that
    # the longest common subsequence grows there. Words that are not in this line change nothing, and
    # for the way back one row stands for any number of them.
    flat, rows, gap = full, [], False
    for token in other:
        matches = places_of.get(token)
        if matches is not None:
            if gap:
                rows.append((full ^ flat, 0))
                gap = False
            grown = flat & matches
            flat = (flat + grown | flat - grown) & full
            rows.append((full ^ flat | matches, matches))
        elif rows:
            gap = True
    if gap:
        rows.append((full ^ flat, 0))
    found, below = 0, full
    for stops, matches in reversed(rows):
        stops &= below
        if not stops:
            break
        last = 1 << stops.bit_length() - 1
        if matches & last:
            found |= last
            below = last - 1
        else:
            below = 2 * last - 1
    return found
