"""How judges are asked, and where their verdicts are kept: in the call table of a run, and in the cache.

Each verdict is stored before it counts, so that nothing is paid for twice. The rows have everything that
scores are computed from: a run can be scored again from them without a call (a replay).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ..calls.asking import Result, ask_all
from ..calls.executors import Executor
from ..calls.policy import CallPolicy, Limits
from ..calls.usage import CALLS, Usage
from ..errors import AccessRefusedError, ScoringError, warn_user
from ..store.cache import CallCache, call_key
from ..store.database import ANSWERED, FAILED, JUDGE, CallRow, Database
from .judge import Judge
from .question import Judgement, Kind, Question

if TYPE_CHECKING:
    from .trust.record import JudgeAudit

Asked = tuple[Judge, Question]


def key_of(asked: Asked) -> str:
    """Return what the verdict of a judge on a question is stored under."""
    judge, question = asked
    return question.key(judge.identity(question.kind))


def _call_key(key: str) -> bytes:
    return call_key(JUDGE, b"", key.encode())


def _row(verdict: Judgement) -> CallRow:
    sample = verdict.about.get("sample_id")
    return CallRow(
        _call_key(verdict.key),
        JUDGE,
        None if sample is None else str(sample),
        FAILED if verdict.failed else ANSWERED,
        msgspec.json.encode(verdict, order="deterministic").decode(),
        _usage(verdict) if verdict.attempts else None,
        verdict.identity,
    )


_decode = msgspec.json.Decoder(Judgement).decode


def verdicts_in(database: Database) -> Iterator[Judgement]:
    """Yield all verdicts, also those that a later one replaced."""
    for (reply,) in database.stream("SELECT reply FROM call WHERE kind = ? ORDER BY n", [JUDGE]):
        yield _decode(reply)


def stored_verdicts(path: Path) -> list[Judgement]:
    """Return the verdicts in the database of a run; none if it was not judged."""
    with Database.read(path) as database:
        return list(verdicts_in(database))


def keep_verdicts(verdicts: Iterable[Judgement], database: Database) -> None:
    """Store verdicts of another run that a run does not have; they cost it nothing."""
    failed = {verdict.key: bool(verdict.failed) for verdict in verdicts_in(database)}
    new = [each for each in verdicts if each.key not in failed or (failed[each.key] and not each.failed)]
    with database.transaction():
        for verdict in new:
            database.add_call(_row(_free(verdict)))


def _free(verdict: Judgement, **changes: Any) -> Judgement:
    return msgspec.structs.replace(verdict, usage={}, attempts=0, **changes)


class PendingError(ScoringError):
    """Raised while questions are collected: a metric needs these verdicts, which are not known yet."""

    def __init__(self, asked: Sequence[Asked]) -> None:
        super().__init__("the judge was not asked")
        self.asked = asked


@dataclass
class Asking:
    """A judge and its verdicts, by the key of their question. What is not known is asked for.

    It is asked by an executor, with retries, a pace and budgets; verdicts are stored in the database of a run
    and in a cache. `stored` are those of earlier sessions, of which the last on a question counts; one that
    failed is asked again. In a replay it is not, and a question without a verdict is a failure, not a call.
    `audit` is what is known of the judge, and `labels` has people's scores of samples. With `keeps_answers` a
    judge that refuses the key, or never answers, fails the verdicts, since the answers are in memory only.
    """

    judge: Judge
    stored: Sequence[Judgement] = ()
    database: Database | None = None
    cache: CallCache | None = None
    executor: Executor | None = None
    policy: CallPolicy | None = None
    on_verdict: Callable[[Judgement], None] | None = None
    is_replay: bool = False
    keeps_answers: bool = False
    audit: JudgeAudit | None = None
    labels: Mapping[str, float] = field(default_factory=dict)
    asked: list[Judgement] = field(default_factory=list)  # the verdicts of this process
    limits: Limits = field(init=False)

    def __post_init__(self) -> None:
        self.book = {verdict.key: verdict for verdict in self.stored}
        self.failed_before = {key for key, verdict in self.book.items() if verdict.failed}
        for key in () if self.is_replay else self.failed_before:
            del self.book[key]
        policy = self.policy or CallPolicy()
        if self.keeps_answers:  # they were paid for: verdicts that fail are a part of their result
            policy = replace(policy, keep_going=True)
        self.limits = Limits(policy, map(_usage, self.stored))

    def known(self, questions: Iterable[Question]) -> list[Judgement]:
        """Return the verdicts; PendingError with what has to be asked, if some are not known."""
        book, missing, found = self.book, [], []
        for question in questions:
            asked = [(member, question) for member in self.judge.members]
            keys = [key_of(each) for each in asked]
            missing += [each for each, key in zip(asked, keys, strict=True) if key not in book]
            if not missing:
                found.append(self.judge.combined(question.kind, [book[key] for key in keys]))
        if missing:
            raise PendingError(missing)
        return found

    def unknown(self, questions: Iterable[Question]) -> Sequence[Asked]:
        """Return who has to be asked what, to know the verdicts."""
        try:
            self.known(questions)
        except PendingError as pending:
            return pending.asked
        return []

    def verdicts(self, questions: Iterable[Question]) -> list[Judgement]:
        """Return the verdicts, failed ones included; those that are not known are asked for."""
        questions = list(questions)
        self.ask(self.unknown(questions))
        return self.known(questions)

    def ask(self, asked: Iterable[Asked]) -> None:
        """Ask; return when every question has its verdict, which may be a failed one."""
        wanted = {key_of(each): each for each in asked}
        for key, each in wanted.items():
            if (verdict := self._found(each)) is not None:
                self.book[key] = verdict
        todo = [each for key, each in wanted.items() if key not in self.book]
        store, executor = self._store, self.executor
        try:
            for _, verdict in ask_all(
                _Ask(), todo, self.limits, reply=_verdict, store=store, executor=executor
            ):
                self._add(verdict)
        except AccessRefusedError as error:
            if not self.keeps_answers:
                raise
            warn_user(f"The judge was not asked: {error}")
            for each in todo:
                if key_of(each) not in self.book:
                    self._add(_completed(Judgement(failed=str(error)), each))

    def _found(self, asked: Asked) -> Judgement | None:
        """Return the verdict on a question that the cache knows; in a replay, that there is none."""
        if self.is_replay:
            return _completed(Judgement(failed="not_stored: there is no verdict on this question"), asked)
        reply = None if self.cache is None else self.cache.reply(_call_key(key_of(asked)))
        if reply is None:
            return None
        verdict = _free(_decode(reply), about=dict(asked[1].about))
        if self.database is not None:
            self.database.add_call(_row(verdict))
        return verdict

    def _store(self, _: Asked, verdict: Judgement) -> None:
        if self.database is not None:
            self.database.add_call(_row(verdict))
        if self.cache is not None and not verdict.failed:
            self.cache.add(_row(verdict)._replace(sample=None))

    def _add(self, verdict: Judgement) -> None:
        self.book[verdict.key] = verdict
        self.asked.append(verdict)
        if self.on_verdict is not None:
            self.on_verdict(verdict)

    def of_judge(self, kinds: Iterable[Kind]) -> list[Judgement]:
        """Return what the judge, or the members of a jury, said to questions of these kinds."""
        own = {member.identity(kind) for kind in kinds for member in self.judge.members}
        return [verdict for verdict in self.book.values() if verdict.identity in own]


class _Ask:
    """Asks a judge one question, once."""

    keeps_time = True  # endpoints end late calls; a function of the user's own is not interrupted

    def __call__(self, asked: Asked) -> Judgement:
        judge, question = asked
        return judge.judge(question)

    def usage(self, verdict: Judgement) -> Usage:
        return _usage(verdict)


def _usage(verdict: Judgement) -> Usage:
    return {**verdict.usage, CALLS: verdict.attempts}


def _verdict(asked: Asked, result: Result[Judgement]) -> Judgement:
    """Return the verdict that asking came to; a failed one if the call failed."""
    attempts = len(result.attempts)
    if result.failure is None:
        verdict = result.answer()
        verdict.attempts += attempts
    else:
        verdict = Judgement(failed=str(result.failure), attempts=attempts, seconds=result.failure.seconds)
    return _completed(verdict, asked)


def _completed(verdict: Judgement, asked: Asked) -> Judgement:
    """Return a verdict with what it is the answer to."""
    judge, question = asked
    verdict.identity, verdict.key = judge.identity(question.kind), key_of(asked)
    verdict.kind, verdict.about = question.kind.name, dict(question.about)
    return verdict


def cost_of(verdict: Judgement, policy: CallPolicy) -> float:
    """Return what a verdict has cost, in US dollars; 0 without prices, which are per 1,000 tokens."""
    sent, written = verdict.usage.get("input_tokens", 0), verdict.usage.get("output_tokens", 0)
    return (sent * (policy.price_input or 0.0) + written * (policy.price_output or 0.0)) / 1000
