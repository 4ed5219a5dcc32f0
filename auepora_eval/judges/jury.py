"""A jury: several judges that all answer every question, and the names of judges.

The verdicts of the members are stored, not those of the jury.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..calls.chat import ChatModel, split_endpoint
from ..calls.keys import key_from_environment
from ..core.metric_names import split_outside_brackets
from ..core.systems.named import imported
from ..errors import DataError, PlanError
from .judge import Judge, SupportJudge, as_judge, nearest_label
from .llm import LABEL, LlmJudge
from .question import Judgement, Kind, Part, Question, with_parts


class Jury(Judge):
    """Several judges that all answer every question.

    The score is the mean of theirs, which is the share of yes where they choose an option. A verdict of the
    jury fails if one of its members failed: the rest would be another jury.
    """

    def __init__(self, members: Sequence[Judge]) -> None:
        if len(members) < 2:
            raise PlanError("A jury has at least two members: jury:[support:trained,URL#model].")
        self._members = tuple(one for member in members for one in member.members)
        self.name = f"jury:[{','.join(one.name for one in self._members)}]"
        self.compares_pairs = any(member.compares_pairs for member in members)

    @property
    def members(self) -> Sequence[Judge]:
        return self._members

    def identity(self, kind: Kind) -> str:
        inside = ", ".join(member.identity(kind) for member in self.members)
        return f"{kind.name}/jury:[{inside}]"

    def judge(self, question: Question) -> Judgement:
        return self.combined(question.kind, [member.judge(question) for member in self.members])

    def answers(self, kind: Kind) -> bool:
        return all(member.answers(kind) for member in self.members)

    def close(self) -> None:
        for member in self.members:
            member.close()

    def combined(self, kind: Kind, verdicts: Sequence[Judgement]) -> Judgement:
        failed = [verdict.failed for verdict in verdicts if verdict.failed or verdict.score is None]
        if failed:
            why = f"{len(failed)} of {len(verdicts)} members of the jury failed: {failed[0]}"
            return Judgement(failed=why)
        if not kind.options:
            return verdicts[0]  # lists of texts cannot be averaged
        if kind.each:
            by_part = zip(*(verdict.parts for verdict in verdicts), strict=True)
            parts = [_voted(kind, of_members) for of_members in by_part]
            return with_parts(Judgement(), parts, kind.each)
        voted = _voted(kind, [Part(one.label, one.score, [], one.quote) for one in verdicts])
        return Judgement(score=voted.score, label=voted.label, quote=voted.quote)


def _voted(kind: Kind, parts: Sequence[Part]) -> Part:
    """Return the mean verdict of all members on one text, with the words of a member that agrees."""
    score = math.fsum(part.score or 0.0 for part in parts) / len(parts)
    label = nearest_label(score, kind.scores)
    # Several options may have the same score: contradicted and unmentioned. The quote of a member that was
    # outvoted would contradict the verdict.
    agreeing = [part for part in parts if kind.scores.get(part.label) == kind.scores[label]] or [Part(label)]
    labels = [part.label for part in agreeing]
    chosen = max(agreeing, key=lambda part: (labels.count(part.label), bool(part.quote)))
    return Part(chosen.label, score, chosen.passages, chosen.quote)


def judge_named(
    name: str,
    mode: str = LABEL,
    *,
    api_key_env: str | None = None,
    plain_http: bool = False,
    timeout: float = 60.0,
) -> Judge:
    """Return the judge of a name: URL#model, support:NAME, module:attribute, jury:[A,B].

    The models of a jury are all called in the same way.
    """
    form, _, rest = name.partition(":")
    if form == "support":
        return SupportJudge(rest)
    if form == "jury":
        names = [part.strip() for part in split_outside_brackets(rest.removeprefix("[").removesuffix("]"))]
        member = partial(judge_named, api_key_env=api_key_env, plain_http=plain_http, timeout=timeout)
        return Jury([member(part, mode) for part in names if part])
    if form in ("http", "https") or (form == "openai" and "://" in rest):
        url, model = split_endpoint(rest if form == "openai" else name)
        key = None if api_key_env is None else key_from_environment(api_key_env)
        chat = ChatModel(url, model, api_key=key, timeout=timeout, plain_http=plain_http, private=True)
        return as_judge(LlmJudge(chat, mode), name)
    if name and not {":", "#"} & set(name):
        fix = f"Write support:{name:.40} for a support function, URL#model, or my_judge.py:judge."
        raise DataError(f"--judge {name:.80}", "is not a judge.", fix=fix)
    return as_judge(imported(f"--judge {name}", name, str(Path.cwd())), name)
