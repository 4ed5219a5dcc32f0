"""Short answers: equal to a reference, made of the same words, or containing what is required."""

from __future__ import annotations

import string
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.batch import Batch
from ..core.metrics_base import METRICS, SampleMetric, skip
from ..core.scores import Note, Scores
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ..errors import ScoringError
from .pairs import answer_text, references, text_pairs
from .text import folded, has_ideographs, squad_normalised

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..core.scores import Rows

    Counts = NDArray[np.int64]


class AnswerMetric(SampleMetric):
    """A metric of the answer's text and one reference text; the best of several references counts."""

    target = TargetCategory.GENERATION_CORRECTNESS
    requires = ("reference_answer",)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        answer = answer_text(output)
        return max(self.agreement(answer, reference) for reference in references(sample))

    def score_all(self, batch: Batch) -> Scores:
        try:
            values = self.agreements(batch)
        except OverflowError:  # a pair with more than a million different words: take the plain way
            return super().score_all(batch)
        scores = batch.once(text_pairs).best(batch, values)
        self.explain(batch, scores)
        return scores

    def explain(self, batch: Batch, scores: Scores) -> None:
        """Ask the plain way about the places that the fast one left open."""
        import numpy as np

        for place in np.flatnonzero(np.isnan(scores.values)).tolist():
            if place not in scores.notes and batch.samples[place].reference_answer is not None:
                score = self._guarded(batch.samples[place], batch.outputs[place])
                if score.value is None:
                    scores.notes[place] = Note(score.reason, score.failed)
                else:
                    scores.values[place] = score.value

    def agreement(self, answer: str, reference: str) -> float:
        """How well an answer agrees with one reference."""
        raise NotImplementedError

    def agreements(self, batch: Batch) -> Rows:
        """The same for all `text_pairs` of a batch; NaN where `agreement` has to tell."""
        raise NotImplementedError


class SharedTokens(NamedTuple):
    """For each pair: the normalised words of both texts, those that they share, and if they are equal."""

    given: Counts
    gold: Counts
    shared: Counts
    equal: Rows


@METRICS.add("exact_match")
@dataclass
class ExactMatch(AnswerMetric):
    """1 if the answer equals a reference, but for case, punctuation, articles and spaces.

    Only ASCII punctuation and English articles are left out, as SQuAD's script has it.
    """

    oracle = "SQuAD evaluate-v2.0"

    def __post_init__(self) -> None:
        self.name = "exact_match"

    def agreement(self, answer: str, reference: str) -> float:
        return float(squad_normalised(answer) == squad_normalised(reference))

    def agreements(self, batch: Batch) -> Rows:
        return batch.once(shared_tokens).equal


class TokenOverlap(AnswerMetric):
    """A metric of the normalised words that answer and reference share, repeated words counted."""

    def agreement(self, answer: str, reference: str) -> float:
        given, gold = squad_normalised(answer).split(), squad_normalised(reference).split()
        if not given or not gold:
            return float(given == gold)
        value: float = self.of_counts((Counter(given) & Counter(gold)).total(), len(given), len(gold))
        return value

    def agreements(self, batch: Batch) -> Rows:
        import numpy as np

        given, gold, shared, equal = batch.once(shared_tokens)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self.of_counts(shared, given, gold)
        return np.where((given == 0) | (gold == 0), equal, values)

    def of_counts(self, shared: Any, given: Any, gold: Any) -> Any:
        """The value from counts above 0: of one pair, or of arrays of them."""
        raise NotImplementedError


@METRICS.add("token_precision")
@dataclass
class TokenPrecision(TokenOverlap):
    """Share of the answer's words that are in the reference: low when the answer says more (or else).

    shared / words of the answer, normalised as in exact_match; two empty texts agree fully, an empty
    and a non-empty one not at all. It follows what people call correctness more closely than recall does.
    """

    def __post_init__(self) -> None:
        self.name = "token_precision"

    def of_counts(self, shared: Any, given: Any, gold: Any) -> Any:
        return shared / given


@METRICS.add("token_recall")
@dataclass
class TokenRecall(TokenOverlap):
    """Share of the reference's words that are in the answer: low when the answer leaves things out.

    shared / words of the reference, normalised as in exact_match. It follows what people call
    completeness, and a longer answer scores higher: look at token_precision beside it.
    """

    def __post_init__(self) -> None:
        self.name = "token_recall"

    def of_counts(self, shared: Any, given: Any, gold: Any) -> Any:
        return shared / gold


@METRICS.add("token_f1")
@dataclass
class TokenF1(TokenOverlap):
    """Harmonic mean of precision and recall of the answer's words (normalised as in exact_match).

    2 · shared / (words of the answer + words of the reference), repeated words counted; two empty
    texts agree fully, an empty and a non-empty one not at all. Words are what stands between spaces: in a
    script without spaces a sentence is one word, and rouge1 says more.
    """

    oracle = "SQuAD evaluate-v2.0"

    def __post_init__(self) -> None:
        self.name = "token_f1"

    def of_counts(self, shared: Any, given: Any, gold: Any) -> Any:
        return (f_measure if isinstance(shared, int) else f_measures)(shared, given, gold)


class RequiredAnswers(SampleMetric):
    """A metric of the required answers that the text of the answer contains."""

    target = TargetCategory.GENERATION_CORRECTNESS
    requires = ("reference_answer",)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        groups = required_answers(sample)
        if not groups:
            return skip("the reference is empty, and every text contains that")
        answer = folded(answer_text(output))
        found = [any(contains(answer, text) for text in alternatives) for alternatives in groups]
        return self.of_found(found)

    def of_found(self, found: list[bool]) -> float:
        raise NotImplementedError


@METRICS.add("contains_answer")
@dataclass
class ContainsAnswer(RequiredAnswers):
    """1 if the answer contains all that is required, wherever it stands in the text.

    `reference_answer.structured["required"]` (or `.metadata["required"]`) lists what is required; a list
    inside the list holds alternatives, one of which is enough. Without it, one of the references
    is enough. Compared as lower-case text with single spaces (none in a text with ideographs), not
    by words: "1911" contains "19". A longer answer contains more, and a denial contains what it denies.
    """

    oracle = "RGB checkanswer"

    def __post_init__(self) -> None:
        self.name = "contains_answer"

    def of_found(self, found: list[bool]) -> float:
        return float(all(found))


@METRICS.add("answer_share")
@dataclass
class AnswerShare(RequiredAnswers):
    """Share of the required answers that the answer contains (STR-EM: partial credit for a list).

    What is required, and what contains means: as for contains_answer. ALCE's STR-EM is this share
    with SQuAD's normalisation of both texts (punctuation and articles left out).
    """

    def __post_init__(self) -> None:
        self.name = "answer_share"

    def of_found(self, found: list[bool]) -> float:
        return sum(found) / len(found)


def required_answers(sample: EvaluationSample) -> list[list[str]]:
    """What an answer must contain: of each inner list, one text."""
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
    for item in required if isinstance(required, list | tuple) else [None]:
        group: list[Any] = list(item) if isinstance(item, list | tuple) else [item]
        if not group or not all(isinstance(text, str) and folded(text) for text in group):
            raise ScoringError(
                f"'required' must be a list of texts or lists of texts, none empty, not {required!r:.80}"
            )
        groups.append(group)
    return groups


def contains(folded_answer: str, text: str) -> bool:
    """Whether a text stands in an answer that is folded already."""
    wanted = folded(text)
    if wanted in folded_answer:
        return True
    # Among ideographs, "New York" has lost its space.
    return has_ideographs(folded_answer) and wanted.replace(" ", "") in folded_answer


def f_measure(shared: int, given: int, gold: int) -> float:
    """The harmonic mean of shared / given and shared / gold."""
    # Precision and recall first, in this order: the last bit then equals the reference tools'.
    if shared == 0:
        return 0.0
    precision, recall = shared / given, shared / gold
    return 2 * precision * recall / (precision + recall)


def f_measures(shared: Counts, given: Counts, gold: Counts) -> Rows:
    """f_measure for many pairs, to the same bit."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        precision, recall = shared / given, shared / gold
        return np.where(shared > 0, 2 * precision * recall / (precision + recall), 0.0)


def shared_tokens(batch: Batch) -> SharedTokens:
    """The counts that exact match and the token metrics need; for batch.once."""
    import numpy as np

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
    """The words of two texts but articles: how many in each, in both, and whether they are the same."""
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
        return _STRANGE[0]
    return ord(" " if character.isspace() else character)


_STRANGE = b"\xff"
_SQUAD_BYTES = bytes(map(_squad_byte, range(256)))
_SQUAD_DELETED = string.punctuation.encode("ascii")
_SQUAD_ARTICLES = frozenset({"a", "an", "the"})


def _squad_words(text: str) -> list[str]:
    """The words of squad_normalised(text), and articles; no regular expressions where the text is plain."""
    if text.isascii():
        plain = text.encode("ascii").translate(_SQUAD_BYTES, _SQUAD_DELETED)
        # A control character ends a word and is no space: rare enough for the slow way.
        if _STRANGE not in plain:
            return plain.decode("ascii").split()
    return squad_normalised(text).split()
