"""Answers compared with references by their words: exact match, shared words, and ROUGE.

ROUGE equals rouge-score 0.1.2 to the last bit on ASCII text. Beyond ASCII rouge-score drops all words, so
that identical Chinese texts score 0 there; here words of any script count, and identical texts score 1.
Other tools differ by stemming (the Hugging Face wrapper leaves it off, as `[stem=false]` does here) and by
averaging recall or precision where this is the F-measure. A text without words shares nothing: 0, as there.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

from ..core.metrics_base import SampleMetric, metric, skip
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ..errors import BadOutputError, ScoringError
from ..text.content_words import without_citations
from ..text.ngrams import shared_ngrams
from ..text.tokens import folded, has_ideographs, squad_normalised, word_search, words
from .answers.pairs import answer_text, compared_texts, references


class AnswerMetric(SampleMetric):
    """A metric of the answer's text and one reference text; the best of several references counts."""

    target = TargetCategory.GENERATION_CORRECTNESS
    requires = ("reference_answer",)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float:
        answer, golds = compared_texts(sample, output)
        return max(self.agreement(answer, gold) for gold in golds)

    @abstractmethod
    def agreement(self, answer: str, gold: str) -> float:
        """Return how well an answer agrees with a reference."""


@metric("exact_match")
class ExactMatch(AnswerMetric):
    """1 if the answer equals a reference, but for case, punctuation, articles and spaces.

    Only ASCII punctuation and English articles are left out, as SQuAD's script has it.
    """

    oracle = "SQuAD evaluate-v2.0"

    def agreement(self, answer: str, gold: str) -> float:
        return float(squad_normalised(answer) == squad_normalised(gold))


class TokenOverlap(AnswerMetric):
    """A metric of the normalised words that answer and reference share, repeated words counted."""

    def agreement(self, answer: str, gold: str) -> float:
        given, right = squad_normalised(answer).split(), squad_normalised(gold).split()
        if not given or not right:
            return float(given == right)
        return self.of_counts(shared_ngrams(given, right, 1), len(given), len(right))

    @abstractmethod
    def of_counts(self, shared: int, given: int, gold: int) -> float:
        """Return the value from the numbers of words, where both texts have some."""


@metric("token_precision")
class TokenPrecision(TokenOverlap):
    """Share of the answer's words that are in the reference: low when the answer adds other words.

    Words and empty texts as in token_f1.
    """

    def of_counts(self, shared: int, given: int, gold: int) -> float:
        return shared / given


@metric("token_recall")
class TokenRecall(TokenOverlap):
    """Share of the reference's words that are in the answer: low when the answer leaves things out.

    Words and empty texts as in token_f1. It agrees with human ratings of completeness, and a longer answer
    scores higher: read token_precision beside it.
    """

    def of_counts(self, shared: int, given: int, gold: int) -> float:
        return shared / gold


@metric("token_f1")
class TokenF1(TokenOverlap):
    """Harmonic mean of precision and recall of the answer's words (normalised as in exact_match).

    2 · shared / (words of the answer + words of the reference), repeated words counted; two empty
    texts agree fully, an empty and a non-empty one not at all. Words are separated by spaces: in a script
    without spaces a sentence is one word, and rouge1 is more informative.
    """

    oracle = "SQuAD evaluate-v2.0"

    def of_counts(self, shared: int, given: int, gold: int) -> float:
        return f_measure(shared, given, gold)


def f_measure(shared: int, given: int, gold: int) -> float:
    """Return the harmonic mean of shared / given and shared / gold, 0 where nothing is shared."""
    if not shared:
        return 0.0
    # Precision and recall first, in this order: the last bit then equals the reference tools'.
    precision, recall = shared / given, shared / gold
    return 2 * precision * recall / (precision + recall)


# Pairs of words to compare line by line: beyond this it takes minutes, and rouge-score hours.
_MOST_WORK = 200_000_000
_WORK_OF_A_LINE = 64
# Pairs of words of two whole texts: beyond this a longest common subsequence takes longer than half a second.
_MOST_PAIRS = 2_000_000_000
Line = tuple[str, ...]


@dataclass
class Rouge(AnswerMetric):
    """A ROUGE: what the words of two texts share, as an F-measure."""

    stem: bool = True
    oracle = "rouge-score 0.1.2 (ASCII text)"

    def agreement(self, answer: str, gold: str) -> float:
        return self.of_words(_words(answer, self.stem), _words(gold, self.stem))

    @abstractmethod
    def of_words(self, given: Line, gold: Line) -> float:
        """Return the value from the words of both texts."""

    def signature(self) -> Mapping[str, object]:
        stemmer = "porter (nltk)" if self.stem else "none"
        return {"stemmer": stemmer, "words": "unicode, cjk per character"}


@lru_cache(maxsize=1 << 10)  # of a batch, which several metrics go through one after the other
def _words(text: str, stemmed: bool) -> Line:
    return tuple(words(text, stemmed=stemmed))


class RougeN(Rouge):
    """F-measure of shared n-grams of words."""

    n: int

    def of_words(self, given: Line, gold: Line) -> float:
        shared = shared_ngrams(given, gold, self.n)
        return f_measure(shared, len(given) - self.n + 1, len(gold) - self.n + 1)


@metric("rouge1[stem={stem?}]")
class Rouge1(RougeN):
    """ROUGE-1: F-measure of the words that answer and reference share, repeats counted (stemmed)."""

    n = 1


@metric("rouge2[stem={stem?}]")
class Rouge2(RougeN):
    """ROUGE-2: F-measure of the pairs of neighbouring words that answer and reference share (stemmed).

    A text of one word has no pairs, and scores 0 even against itself.
    """

    n = 2


@metric("rougeL_answer[stem={stem?}]")
class RougeLAnswer(Rouge):
    """ROUGE-L: F-measure of the longest common subsequence of words (stemmed).

    The order of the words counts, gaps do not. Beyond ASCII, unlike in rouge-score, identical texts score 1.
    """

    def of_words(self, given: Line, gold: Line) -> float:
        from rapidfuzz.distance import LCSseq

        if len(given) * len(gold) > _MOST_PAIRS and given != gold:
            raise BadOutputError("answer and reference are too long for a longest common subsequence")
        return f_measure(LCSseq.similarity(given, gold), len(given), len(gold))


@metric("rougeLsum[stem={stem?}]")
class RougeLsum(RougeLAnswer):
    """ROUGE-Lsum: ROUGE-L line by line, so that the order of the lines does not count (stemmed).

    Of each line of the reference, the words in a longest common subsequence with any line of the answer are
    hits, each word at most as often as both texts have it. Without line breaks it equals rougeL_answer.
    """

    def agreement(self, answer: str, gold: str) -> float:
        if answer == gold or ("\n" not in answer and "\n" not in gold):
            return super().agreement(answer, gold)
        given, right = ([_words(line, self.stem) for line in text.split("\n")] for text in (answer, gold))
        return f_measure(*_shared_by_lines(given, right))


def _shared_by_lines(given: list[Line], gold: list[Line]) -> tuple[int, int, int]:
    """Count the words that two texts share by lines, and those of each; ScoringError if it takes minutes."""
    size_given, size_gold = sum(map(len, given)), sum(map(len, gold))
    others, lines, longest = set(given), Counter(gold), max(map(len, gold))
    work = max(size_given, longest) * size_gold + _WORK_OF_A_LINE * len(others) * len(lines)
    if work > _MOST_WORK:
        raise BadOutputError(f"texts of {size_given} and {size_gold} words are too long to compare by lines")
    common: Counter[str] = Counter()
    for line, times in lines.items():
        for word in _in_common(line, others):
            common[word] += times
    # A word counts at most as often as both texts have it. That the reference has it so often is clear.
    hits = (common & Counter(chain.from_iterable(given))).total()
    return hits, size_given, size_gold


def _in_common(line: Line, others: Iterable[Line]) -> list[str]:
    """Return the words of a line that are in a longest common subsequence with any of the other lines."""
    places_of: dict[str, int] = {}
    for place, token in enumerate(line):
        places_of[token] = places_of.get(token, 0) | 1 << place
    common, full = 0, (1 << len(line)) - 1
    for other in others:
        common |= _one_in_common(other, places_of, full)
    # The lowest bit is the first place.
    return [token for token, bit in zip(line, bin(common)[:1:-1], strict=False) if bit == "1"]


def _one_in_common(other: Line, places_of: dict[str, int], full: int) -> int:
    """Return as bits the places of a line in one longest common subsequence with another line.

    Which one of several longest ones decides the value: the one that rouge-score finds. It walks back from
    both ends, takes two equal words, and else drops the line's word unless that would shorten the rest.
    """
    # Bit-parallel (Hyyrö 2004): after each word of the other line, a 0 at a place of this line says that
    # the longest common subsequence grows there. Words that are not in this line change nothing, and
    # for the way back one row represents any number of them.
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
    common, below = 0, full
    for stops, matches in reversed(rows):
        stops &= below
        if not stops:
            break
        last = 1 << stops.bit_length() - 1
        if matches & last:
            common |= last
            below = last - 1
        else:
            below = 2 * last - 1
    return common


# Answers that contain the texts that are required.


class RequiredAnswers(SampleMetric):
    """A metric of the required answers that the text of the answer contains."""

    target = TargetCategory.GENERATION_CORRECTNESS
    requires = ("reference_answer",)
    scores_blank = True

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        groups = required_answers(sample)
        if not groups:
            return skip("the reference is empty, and every text contains that")
        contains = self.search(answer_text(output))
        return self.of_contained([any(map(contains, alternatives)) for alternatives in groups])

    def search(self, answer: str) -> Callable[[str], bool]:
        """Return the function that decides whether the answer contains a text."""
        return word_search(answer)

    def of_contained(self, contained: list[bool]) -> float:
        raise NotImplementedError


@metric("contains_answer[{rule?}]")
class ContainsAnswer(RequiredAnswers):
    """1 if the answer contains everything that is required, as whole words, anywhere in its text.

    `reference_answer.structured["required"]` (or `.metadata["required"]`) lists what is required; a list
    inside the list holds alternatives, one of which is enough. Without it, one of the references
    is enough. Case, punctuation, citation marks and a first article do not count: "No" is not in "know", nor
    "2" in "120", "3.2" or "-2". Scripts without spaces are searched by characters. contains_answer[rgb] is
    RGB's rule, by characters in every script: "1911" contains "19". A longer answer contains more, and a
    denial contains what it denies.
    """

    rule: str = "words"
    oracle = "RGB checkanswer (contains_answer[rgb])"

    def __post_init__(self) -> None:
        if self.rule not in ("words", "rgb"):
            raise ValueError(f"the rule is words or rgb, not {self.rule!r:.40}")

    def search(self, answer: str) -> Callable[[str], bool]:
        if self.rule == "words":
            return super().search(answer)
        plain = folded(answer)
        return lambda text: contains(plain, text)

    def of_contained(self, contained: list[bool]) -> float:
        return float(all(contained))


@metric("answer_share")
class AnswerShare(RequiredAnswers):
    """Share of the required answers that the answer contains (STR-EM: partial credit for a list).

    As for contains_answer. ALCE's STR-EM is this share by characters, after SQuAD's normalisation.
    """

    def of_contained(self, contained: list[bool]) -> float:
        return sum(contained) / len(contained)


def required_answers(sample: EvaluationSample) -> list[list[str]]:
    """Return what an answer must contain: one text of each inner list."""
    reference = sample.reference_answer
    required: Any = None
    if reference is not None:
        structured = reference.structured if isinstance(reference.structured, dict) else {}
        required = structured.get("required") or reference.metadata.get("required")
    if required is None or required == []:
        texts = [text for text in references(sample) if folded(text)]
        return [texts] if texts else []
    if isinstance(required, str):
        required = [required]
    groups = []
    # Anything but a list becomes [None], which fails the check below.
    for item in required if isinstance(required, list | tuple) else [None]:
        group: list[Any] = list(item) if isinstance(item, list | tuple) else [item]
        if not group or not all(isinstance(text, str) and folded(text) for text in group):
            raise ScoringError(
                f"'required' must be a list of texts or lists of texts, none empty, not {required!r:.80}"
            )
        groups.append([without_citations(text) for text in group])
    return groups


def contains(folded_answer: str, text: str) -> bool:
    """Return whether a folded answer contains a text, by RGB's rule."""
    wanted = folded(text)
    if wanted in folded_answer:
        return True
    # Among ideographs, "New York" has lost its space.
    return has_ideographs(folded_answer) and wanted.replace(" ", "") in folded_answer
