"""A judge made of judges: a jury, whose members all answer every question.

The verdicts of the members are stored, not those of the jury.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..errors import PlanError
from .judge import Asked, Judge, VerdictBook, nearest_label
from .question import Judgement, Kind, Part, Question, kind_named, with_parts

_CERTAIN = 0.01  # scores of 0 and 1 have infinite log-odds: one member would outvote all others


class Jury(Judge):
    """Several judges that all answer every question.

    Members that give probabilities are averaged in log-odds, and members that only choose an option vote.
    A verdict of the jury fails if one of its members failed: the rest would be another jury.
    """

    def __init__(self, members: Sequence[Judge]) -> None:
        if len(members) < 2:
            raise PlanError("A jury has at least two members: jury:[support:trained,URL#model].")
        self.members = tuple(members)
        self.compares_pairs = any(member.compares_pairs for member in members)

    def identity(self, kind: Kind) -> str:
        inside = ", ".join(member.identity(kind) for member in self.members)
        return f"{kind.name}/jury:[{inside}]"

    def judge(self, question: Question) -> Judgement:
        return self.combined(question.kind, [member.judge(question) for member in self.members])

    def missing(self, question: Question, book: VerdictBook) -> list[Asked]:
        return [each for member in self.members for each in member.missing(question, book)]

    def verdict(self, question: Question, book: VerdictBook) -> Judgement:
        return self.combined(question.kind, [member.verdict(question, book) for member in self.members])

    def close(self) -> None:
        for member in self.members:
            member.close()

    def combined(self, kind: Kind, verdicts: Sequence[Judgement]) -> Judgement:
        """Return the verdict of the jury from those of its members."""
        failed = [verdict.failed for verdict in verdicts if verdict.failed or verdict.score is None]
        flags = sorted({flag for verdict in verdicts for flag in verdict.flags})
        if failed:
            why = f"{len(failed)} of {len(verdicts)} members of the jury failed: {failed[0]}"
            return Judgement(failed=why, flags=flags, may_pass=any(each.may_pass for each in verdicts))
        if not kind.options:
            return verdicts[0]  # lists of texts cannot be averaged
        if kind.each:
            by_part = zip(*(verdict.parts for verdict in verdicts), strict=True)
            parts = [self._part(kind, of_members) for of_members in by_part]
            return with_parts(Judgement(flags=flags), parts, kind.each)
        scores = [verdict.score for verdict in verdicts if verdict.score is not None]
        score = self._score(kind, verdicts, scores)
        agreeing = [verdict for verdict in verdicts if verdict.label == nearest_label(score, kind.scores)]
        # The quote of a member that was outvoted would contradict the verdict.
        quoted = next((verdict for verdict in agreeing if verdict.quote), Judgement())
        return Judgement(
            score=score,
            label=nearest_label(score, kind.scores),
            quote=quoted.quote,
            quote_at=quoted.quote_at,
            flags=flags,
        )

    def _part(self, kind: Kind, parts: Sequence[Part]) -> Part:
        """Return the verdict on one of several texts, with the words of a member that agrees."""
        single = kind_named(kind.single)
        members = [Judgement(score=part.score, label=part.label) for part in parts]
        scores = [part.score or 0.0 for part in parts]
        score = self._score(single, members, scores)
        agreeing = [part for part in parts if ((part.score or 0.0) >= 0.5) == (score >= 0.5)]
        chosen = next((part for part in agreeing if part.quote), agreeing[0] if agreeing else parts[0])
        return Part(chosen.label, score, chosen.passages, chosen.quote)

    def _score(self, kind: Kind, verdicts: Sequence[Judgement], scores: Sequence[float]) -> float:
        # Log-odds are those of a yes; grades and three options have none.
        if set(kind.scores.values()) != {0.0, 1.0} or len(kind.scores) > 2:
            return math.fsum(scores) / len(scores)
        if any(verdict.probabilities or verdict.score not in (0.0, 1.0) for verdict in verdicts):
            return _chance(math.fsum(map(_log_odds, scores)) / len(scores))
        return math.fsum(scores) / len(scores)  # the share of yes: its label is that of the majority


def _log_odds(score: float) -> float:
    score = min(1 - _CERTAIN, max(_CERTAIN, score))
    return math.log(score / (1 - score))


def _chance(odds: float) -> float:
    # By tanh: exp of a large number overflows.
    return (1 + math.tanh(odds / 2)) / 2
