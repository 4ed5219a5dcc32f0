"""Judges: a model (`llm.py`), a function, a support function, or a jury of them (`jury.py`).

A judge answers a question with a verdict. Its identity says what decides the answer: the kind of question,
the model, its server, the prompt, the mode and the parameters. Verdicts are stored under the question and the
identity, so that the same question is never paid for twice.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real

from ..calls.executors import awaited
from ..errors import ScoringError, wrong_type
from ..metrics.entailment import checked_support, source_hash, support_function, support_identity
from .question import Judgement, Kind, Part, Question, kind_named, numbered_texts, with_parts
from .texts import chunk_spans

YES_FROM = 0.5  # the score from which a verdict is more of a yes than of a no
_LETTERS_PER_TOKEN, _REPLY_TOKENS = 4, 40  # about: English text, and a quote with a verdict


class Judge(ABC):
    """Answers questions. A judge of your own overrides `judge` and `identity`."""

    compares_pairs = False  # whether it compares each claim with each passage by itself
    name = ""  # what reports call it

    @property
    def members(self) -> Sequence[Judge]:
        """Return those who are asked: the judge itself, or the members of a jury."""
        return (self,)

    @abstractmethod
    def identity(self, kind: Kind) -> str:
        """Return what decides the verdicts on questions of this kind; verdicts are stored under it."""

    @abstractmethod
    def judge(self, question: Question) -> Judgement:
        """Answer a question. Raise CallError or another exception if there is no answer."""

    def combined(self, kind: Kind, verdicts: Sequence[Judgement]) -> Judgement:
        """Return the verdict from those of the members."""
        return verdicts[0]

    def answers(self, kind: Kind) -> bool:
        """Return whether it can answer questions of this kind at all."""
        return True

    def tokens(self, question: Question) -> tuple[int, int]:
        """Return about how many tokens a call sends and gets; of a function, those of the texts."""
        verdicts = len(numbered_texts(question, question.kind.each)) or 1
        return estimated_tokens(question.material.values()), _REPLY_TOKENS * verdicts

    def close(self) -> None:  # noqa: B027 - most judges have nothing to close
        """Close connections."""


def estimated_tokens(texts: Iterable[str]) -> int:
    """Return about how many tokens texts have, by their letters."""
    return sum(map(len, texts)) // _LETTERS_PER_TOKEN


class FunctionJudge(Judge):
    """A function of a question, as a judge: it returns a score, an option, or a Judgement."""

    compares_pairs = True

    def __init__(self, function: Callable[[Question], object], name: str = "") -> None:
        self.function = function
        self.name = name or getattr(function, "__qualname__", type(function).__name__)
        self._version = f"function:{self.name}{source_hash(function)}"

    def identity(self, kind: Kind) -> str:
        return f"{kind.name}/{self._version}"

    def judge(self, question: Question) -> Judgement:
        if question.kind.each:
            return one_by_one(question, self.judge)
        value = self.function(question)
        return as_verdict(awaited(value) if inspect.isawaitable(value) else value, question.kind)


class SupportJudge(FunctionJudge):
    """A support function (`support:NAME`), as a judge of whether a passage supports a claim."""

    def __init__(self, name: str) -> None:
        support = support_function(name)
        self.function = lambda question: checked_support(
            support, question.material["passage"], question.material["claim"]
        )
        self.name, self._version = f"support:{name}", f"support:{support_identity(name).replace('/', '@')}"

    def answers(self, kind: Kind) -> bool:
        return "support" in (kind.name, kind.single)


_LABELS = {"yes": "supported", "no": "unmentioned"}  # of a pair, in the words of a question about several


def one_by_one(question: Question, judge: Callable[[Question], Judgement]) -> Judgement:
    """Answer a question about several texts by questions about two, for judges that compare two texts.

    A claim is compared with each chunk of each passage, and the highest score counts.
    """
    kind, single = question.kind, kind_named(question.kind.single)
    shared = {name: text for name, text in question.material.items() if not name[-1].isdigit()}
    chunks: list[tuple[int, dict[str, str]]] = [(0, {})]  # with the number of the passage
    if kind.quoted == "passage":
        chunks = [
            (number, {"passage": passage[start:end]})
            for number, passage in enumerate(numbered_texts(question, "passage"), start=1)
            for start, end in chunk_spans(passage)
        ]
    parts = []
    for text in numbered_texts(question, kind.each):
        own = {**shared, kind.each: text}
        asked = [
            (number, replace(question, kind=single, material={**own, **chunk})) for number, chunk in chunks
        ]
        parts.append(_best_part([(number, judge(one)) for number, one in asked]))
    return with_parts(Judgement(), parts, kind.each)


def _best_part(verdicts: Sequence[tuple[int, Judgement]]) -> Part:
    """Return the highest score, with the passages that have a yes; failed, if one of the verdicts is."""
    failed = next((verdict.failed for _, verdict in verdicts if verdict.failed), "")
    if failed or not verdicts:
        return Part(failed=failed or "no_text: there is nothing to compare it with")
    ranked = sorted(verdicts, key=lambda each: -(each[1].score or 0.0))
    best = ranked[0][1]
    passages = [number for number, one in ranked if number and (one is best or (one.score or 0) >= YES_FROM)]
    label = _LABELS.get(best.label, best.label)
    return Part(label, best.score, list(dict.fromkeys(passages)), best.quote)


def as_verdict(value: object, kind: Kind) -> Judgement:
    """Return what a function said as a verdict, with its label and score; ScoringError if it is none."""
    verdict = value if isinstance(value, Judgement) else Judgement()
    if verdict.failed or (verdict is value and not kind.options):
        return verdict
    if isinstance(value, str):
        verdict.label = value
    elif isinstance(value, Real):
        verdict.score = float(value)
    if verdict.score is None:
        verdict.score = kind.scores.get(verdict.label)
    if verdict.score is None or not 0 <= verdict.score <= 1:
        options = ", ".join(kind.options)
        raise ScoringError(
            f"the judge returned {value!r:.60}, neither one of {options} nor a number from 0 to 1"
        )
    if verdict.label not in kind.scores:
        verdict.label = nearest_label(verdict.score, kind.scores)
    return verdict


def nearest_label(score: float, scores: Mapping[str, float]) -> str:
    """Return the option whose score is nearest, the first one of several."""
    return min(scores, key=lambda option: abs(scores[option] - score))


def as_judge(judge: object, name: str = "") -> Judge:
    """Return a judge from a judge or a function of a question, with its name in reports."""
    if callable(judge) and not isinstance(judge, Judge):
        judge = FunctionJudge(judge)
    if isinstance(judge, Judge):
        judge.name = name or judge.name
        return judge
    raise wrong_type("judge", "a Judge, a function of a question, or a name such as URL#model", judge)
