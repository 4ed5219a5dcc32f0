"""Answers compared with references by their words: exact match, shared words, and ROUGE.

ROUGE equals rouge-score 0.1.2 to the last bit on ASCII text. Beyond ASCII rouge-score drops all words, so
that identical Chinese texts score 0 there; here words of any script count, and identical texts score 1.
Other tools differ by stemming (the Hugging Face wrapper leaves it off, as `[stem=false]` does here) and by
averaging recall or precision where this is the F-measure. A text without words shares nothing: 0, as there.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.metrics_base import BatchMetric, SampleMetric, metric, skip
from ..core.scores import Batch, Note, Rows, Scores
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ..errors import ScoringError
from ..stats.arrays import Counts
from ..text.content_words import without_citations
from ..text.ngrams import shared_ngrams
from ..text.tokens import folded, has_ideographs, squad_normalised, stemmed_word, word_search, words
from .answers.pairs import Codes, answer_text, lengths, references, text_pairs


class AnswerMetric(BatchMetric):
    """A metric of the answer's text and one reference text; the best of several references counts."""

    target = TargetCategory.GENERATION_CORRECTNESS
    requires = ("reference_answer",)

    def score_all(self, batch: Batch) -> Scores:
        return batch.once(text_pairs).best(batch, self.agreements(batch))

    def agreements(self, batch: Batch) -> Rows:
        """Return how well each answer agrees with each of its references, for all `text_pairs`."""
        raise NotImplementedError


@metric("exact_match")
class ExactMatch(AnswerMetric):
    """1 if the answer equals a reference, but for case, punctuation, articles and spaces.

    Only ASCII punctuation and English articles are left out, as SQuAD's script has it.
    """

    oracle = "SQuAD evaluate-v2.0"

    def agreements(self, batch: Batch) -> Rows:
        return batch.once(shared_tokens).equal


class TokenOverlap(AnswerMetric):
    """A metric of the normalised words that answer and reference share, repeated words counted."""

    def agreements(self, batch: Batch) -> Rows:
        given, gold, shared, equal = batch.once(shared_tokens)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self.of_counts(shared, given, gold)
        return np.where((given == 0) | (gold == 0), equal, values)

    def of_counts(self, shared: Counts, given: Counts, gold: Counts) -> Rows:
        """Return the value of each pair from its counts, where both texts have words."""
        raise NotImplementedError


@metric("token_precision")
class TokenPrecision(TokenOverlap):
    """Share of the answer's words that are in the reference: low when the answer adds other words.

    shared / words of the answer, normalised as in exact_match; two empty texts agree fully, an empty
    and a non-empty one not at all. It agrees with human ratings of correctness better than recall does.
    """

    def of_counts(self, shared: Counts, given: Counts, gold: Counts) -> Rows:
        return shared / given


@metric("token_recall")
class TokenRecall(TokenOverlap):
    """Share of the reference's words that are in the answer: low when the answer leaves things out.

    shared / words of the reference, normalised as in exact_match. It agrees with human ratings of
    completeness, and a longer answer scores higher: read token_precision beside it.
    """

    def of_counts(self, shared: Counts, given: Counts, gold: Counts) -> Rows:
        return shared / gold


@metric("token_f1")
class TokenF1(TokenOverlap):
    """Harmonic mean of precision and recall of the answer's words (normalised as in exact_match).

    2 · shared / (words of the answer + words of the reference), repeated words counted; two empty
    texts agree fully, an empty and a non-empty one not at all. Words are separated by spaces: in a script
    without spaces a sentence is one word, and rouge1 is more informative.
    """

    oracle = "SQuAD evaluate-v2.0"

    def of_counts(self, shared: Counts, given: Counts, gold: Counts) -> Rows:
        return f_measure(shared, given, gold)


def f_measure(shared: Counts | int, given: Counts | int, gold: Counts | int) -> Rows:
    """Return the harmonic mean of shared / given and shared / gold, 0 where nothing is shared."""
    # Precision and recall first, in this order: the last bit then equals the reference tools'.
    with np.errstate(divide="ignore", invalid="ignore"):
        precision, recall = np.divide(shared, given), np.divide(shared, gold)
        return np.where(np.greater(shared, 0), 2 * precision * recall / (precision + recall), 0.0)


class SharedTokens(NamedTuple):
    """The counts of each pair: normalised words of both texts, shared words, and whether they are equal."""

    given: Counts
    gold: Counts
    shared: Counts
    equal: Rows


def shared_tokens(batch: Batch) -> SharedTokens:
    """Count the normalised words of each pair; for batch.once."""
    pairs = batch.once(text_pairs)
    counts: list[tuple[int, int, int, bool]] = []
    before: str | None = None
    given: list[str] = []
    for answer, gold in zip(pairs.answers, pairs.golds, strict=True):
        if answer is not before:
            before, given = answer, _squad_words(answer)
        counts.append(_compared(given, _squad_words(gold)))
    columns = np.array(counts, dtype=np.int64).reshape(-1, 4)
    return SharedTokens(columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3].astype(np.float64))


def _compared(given: list[str], gold: list[str]) -> tuple[int, int, int, bool]:
    """Count the words of two texts, articles aside: in each, in both, and whether the texts are equal."""
    left: dict[str, int] = {}
    for word in gold:
        left[word] = left.get(word, 0) + 1
    size_gold = len(gold) - sum(left.pop(article, 0) for article in _SQUAD_ARTICLES)
    size_given, shared = len(given), 0
    for word in given:
        count = left.get(word)
        if count:
            left[word] = count - 1
            shared += 1
        elif word in _SQUAD_ARTICLES:
            size_given -= 1
    equal = shared == size_given == size_gold and _but_articles(given) == _but_articles(gold)
    return size_given, size_gold, shared, equal


def _but_articles(words: list[str]) -> list[str]:
    return [word for word in words if word not in _SQUAD_ARTICLES]


def _squad_byte(code: int) -> int:
    character = chr(code).lower()
    if code >= 128 or not (character.isalnum() or character.isspace()):
        return _CONTROL[0]
    return ord(" " if character.isspace() else character)


_CONTROL = b"\xff"  # in place of a control character
_SQUAD_BYTES = bytes(map(_squad_byte, range(256)))
_SQUAD_DELETED = string.punctuation.encode("ascii")
_SQUAD_ARTICLES = frozenset({"a", "an", "the"})


def _squad_words(text: str) -> list[str]:
    """Return the words of squad_normalised(text) with articles; plain ASCII takes no regular expression."""
    if text.isascii():
        plain = text.encode("ascii").translate(_SQUAD_BYTES, _SQUAD_DELETED)
        # A control character ends a word but is not a space: rare enough for the slow way.
        if _CONTROL not in plain:
            return plain.decode("ascii").split()
    return squad_normalised(text).split()


# Pairs of words to compare line by line: beyond this it takes minutes, and rouge-score hours.
_MOST_WORK = 200_000_000
_WORK_OF_A_LINE = 64
# Pairs of words of two whole texts: beyond this a longest common subsequence takes longer than half a second.
_MOST_PAIRS = 2_000_000_000


class CodedWords(NamedTuple):
    """The words of all answers and references of a batch, a character each, and how many they are."""

    given: list[str]
    gold: list[str]
    given_lengths: Counts
    gold_lengths: Counts
    given_lines: list[list[str]]
    gold_lines: list[list[str]]


class Rouge(AnswerMetric):
    """A ROUGE: what the words of two texts share, as an F-measure."""

    stem: bool
    oracle = "rouge-score 0.1.2 (ASCII text)"

    def signature(self) -> Mapping[str, object]:
        stemmer = "porter (nltk)" if self.stem else "none"
        return {"stemmer": stemmer, "words": "unicode, cjk per character"}


class RougeN(Rouge):
    """F-measure of shared n-grams of words."""

    n: int

    def agreements(self, batch: Batch) -> Rows:
        coded = batch.once(coded_words, self.stem)
        shared = batch.once(shared_words, self.stem)[:, self.n - 1]
        given, gold = (
            np.maximum(sizes - (self.n - 1), 0) for sizes in (coded.given_lengths, coded.gold_lengths)
        )
        return f_measure(shared, given, gold)


@metric("rouge1[stem={stem?}]")
class Rouge1(RougeN):
    """ROUGE-1: F-measure of the words that answer and reference share (stemmed).

    2PR / (P + R), P = shared / words of the answer, R = shared / words of the reference, repeats counted.
    """

    stem: bool = True
    n = 1


@metric("rouge2[stem={stem?}]")
class Rouge2(RougeN):
    """ROUGE-2: F-measure of the pairs of neighbouring words that answer and reference share (stemmed).

    As rouge1 with pairs for words: a text of one word has none, and scores 0 even against itself.
    """

    stem: bool = True
    n = 2


@metric("rougeL_answer[stem={stem?}]")
class RougeLAnswer(Rouge):
    """ROUGE-L: F-measure of the longest common subsequence of words (stemmed).

    2PR / (P + R), P = LCS / words of the answer, R = LCS / words of the reference: the order of the words
    counts, gaps do not. Equal to rouge-score on ASCII text; unlike it, 1.0 for identical texts in any script.
    """

    stem: bool = True

    def agreements(self, batch: Batch) -> Rows:
        return batch.once(rouge_l, self.stem)

    def score_all(self, batch: Batch) -> Scores:
        return _with_refusals(super().score_all(batch))


@metric("rougeLsum[stem={stem?}]")
class RougeLsum(Rouge):
    """ROUGE-Lsum: ROUGE-L line by line, so that the order of the lines does not count (stemmed).

    Of each line of the reference, the words in a longest common subsequence with any line of the answer
    are hits, each word at most as often as both texts have it; then the F-measure over all words. Lines
    end at line breaks, as in rouge-score; without line breaks it equals rougeL_answer.
    """

    stem: bool = True

    def score_all(self, batch: Batch) -> Scores:
        pairs = batch.once(text_pairs)
        has_lines = batch.once(_have_lines)
        # Without line breaks rougeL_answer has the same values.
        values = batch.once(rouge_l, self.stem, any(has_lines)).copy()
        coded = batch.once(coded_words, self.stem)
        too_long: dict[int, Note] = {}
        compared: list[int] = []
        counts: list[tuple[int, int, int]] = []
        for pair in np.flatnonzero(has_lines).tolist():
            is_same = pairs.answers[pair] == pairs.golds[pair]
            given, gold = coded.given_lines[pair], coded.gold_lines[pair]
            try:
                counts.append(_shared_by_lines(given, gold, same=is_same))
                compared.append(pair)
            except ScoringError as error:
                too_long[pairs.places[pair]] = Note(str(error), failed=True)
        values[compared] = f_measure(*np.array(counts, dtype=np.int64).reshape(-1, 3).T)
        scores = pairs.best(batch, values)
        scores.notes |= too_long
        return _with_refusals(scores)


def _with_refusals(scores: Scores) -> Scores:
    """Return the scores; those of texts that were not compared have the reason."""
    note = Note("answer and reference are too long for a longest common subsequence", failed=True)
    for place in np.flatnonzero(np.isnan(scores.values)).tolist():
        scores.notes.setdefault(place, note)
    return scores


def coded_words(batch: Batch, stemmed: bool) -> CodedWords:
    """Return the words of each pair of texts in code; for batch.once."""
    codes = Codes(_stems if stemmed else _itself)
    lines = codes.lines_of_pairs(batch.once(text_pairs), lambda text: map(words, text.split("\n")))
    given, gold = (["".join(each) for each in texts] for texts in lines)
    return CodedWords(given, gold, lengths(given), lengths(gold), *lines)


def shared_words(batch: Batch, stemmed: bool) -> Counts:
    """Return how many words and pairs of words each pair of texts shares; for batch.once."""
    coded = batch.once(coded_words, stemmed)
    return shared_ngrams(coded.given, coded.gold, 2)


def _have_lines(batch: Batch) -> list[bool]:
    """Return whether a text of each pair has a line break; for batch.once."""
    pairs = batch.once(text_pairs)
    return ["\n" in answer or "\n" in gold for answer, gold in zip(pairs.answers, pairs.golds, strict=True)]


def rouge_l(batch: Batch, stemmed: bool, without_lines: bool = False) -> Rows:
    """Return ROUGE-L of each pair of texts, NaN if they are too long; for batch.once.

    With `without_lines` it is also NaN if a text has line breaks: those are compared by lines.
    """
    from rapidfuzz.distance import LCSseq

    coded = batch.once(coded_words, stemmed)
    pairs = list(zip(coded.given, coded.gold, strict=True))
    too_long = [len(given) * len(gold) > _MOST_PAIRS and given != gold for given, gold in pairs]
    if without_lines:
        too_long = [far or lines for far, lines in zip(too_long, batch.once(_have_lines), strict=True)]
    common = (0 if far else LCSseq.similarity(*pair) for pair, far in zip(pairs, too_long, strict=True))
    sizes = np.fromiter(common, dtype=np.int64, count=len(pairs))
    values = f_measure(sizes, coded.given_lengths, coded.gold_lengths)
    values[too_long] = np.nan
    return values


def _stems(word: str) -> tuple[str, ...]:
    return (stemmed_word(word),)


def _itself(word: str) -> tuple[str, ...]:
    return (word,)


def _shared_by_lines(given: Sequence[str], gold: Sequence[str], *, same: bool) -> tuple[int, int, int]:
    """Count the words that two texts share by lines, and those of each; ScoringError if it takes minutes."""
    size_given, size_gold = sum(map(len, given)), sum(map(len, gold))
    if same:
        return size_gold, size_given, size_gold
    others, longest = set(given), max(map(len, gold))
    work = max(size_given, longest) * size_gold + _WORK_OF_A_LINE * len(others) * len(set(gold))
    if work > _MOST_WORK:
        raise ScoringError(f"texts of {size_given} and {size_gold} words are too long to compare by lines")
    in_common: dict[str, list[str]] = {}
    common: list[str] = []
    for line in gold:
        if line not in in_common:
            in_common[line] = _in_common(line, others)
        common += in_common[line]
    # A word counts at most as often as both texts have it. That the reference has it so often is clear.
    available = Counter("".join(given))
    hits = sum(min(count, available[word]) for word, count in Counter(common).items())
    return hits, size_given, size_gold


def _in_common(line: str, others: Iterable[str]) -> list[str]:
    """Return the words of a line that are in a longest common subsequence with any of the other lines."""
    places_of: dict[str, int] = {}
    for place, token in enumerate(line):
        places_of[token] = places_of.get(token, 0) | 1 << place
    common, full = 0, (1 << len(line)) - 1
    for other in others:
        common |= _one_in_common(other, places_of, full)
    # The lowest bit is the first place.
    return [token for token, bit in zip(line, bin(common)[:1:-1], strict=False) if bit == "1"]


def _one_in_common(other: str, places_of: dict[str, int], full: int) -> int:
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
    "2" in "120" or "3.2". Scripts without spaces are searched by characters. contains_answer[rgb] is RGB's
    rule, by characters in every script: "1911" contains "19". A longer answer contains more, and a denial
    contains what it denies.
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

    What is required, and what contains means: as for contains_answer. ALCE's STR-EM is this share
    by characters, with SQuAD's normalisation of both texts (punctuation and articles left out).
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
