"""How judges are asked: by an executor, with retries, a pace and budgets, each verdict recorded at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from ..calls.asking import Result, ask_all
from ..calls.executors import Executor
from ..calls.log import CallLog
from ..calls.policy import CALLS, PASSING, CallPolicy, Limits, Usage
from ..core.plan import EvaluationPlan
from ..errors import AccessRefusedError, ScoringError, warn_user
from .judge import Asked, Asker, Judge, Judging, PendingError, VerdictBook, as_judge
from .metric import JudgedMetric
from .question import Judgement, Question

OnVerdict = Callable[[Judgement], None]
VerdictLog = CallLog[Asked, Judgement]


class _Ask:
    """Asks a judge one question, once."""

    keeps_time = True  # endpoints end late calls; a function of the user's own is not interrupted

    def __call__(self, asked: Asked) -> Judgement:
        judge, question = asked
        return judge.judge(question)

    def usage(self, verdict: Judgement) -> Usage:
        return usage_of(verdict)


def usage_of(verdict: Judgement) -> Usage:
    """Return what a verdict took: its calls and tokens."""
    return {**verdict.usage, CALLS: verdict.attempts}


@dataclass
class Asking:
    """Asks judges, and adds their verdicts to a book and a log.

    `usages` are those of the verdicts of earlier sessions, for the budgets of the policy.
    """

    book: VerdictBook
    executor: Executor | None = None
    policy: CallPolicy | None = None
    log: VerdictLog | None = None
    on_verdict: OnVerdict | None = None
    usages: Iterable[Usage] = ()
    cached: Callable[[Judge, Question], Judgement | None] | None = None  # verdicts of other runs
    asked: list[Judgement] = field(default_factory=list)  # the verdicts of this process
    limits: Limits = field(init=False)

    def __post_init__(self) -> None:
        # Verdicts that fail are a part of the result: the answers that are judged were paid for.
        self.limits = Limits(replace(self.policy or CallPolicy(), keep_going=True), self.usages)

    def __call__(self, questions: Sequence[Asked]) -> None:
        """Ask; return when every question has its verdict, which may be a failed one."""
        todo = self._not_cached(questions)
        replies = ask_all(
            _Ask(), todo, log=self.log, reply=_verdict, executor=self.executor, limits=self.limits
        )
        for _, verdict in replies:
            self.book.add(verdict)
            self.asked.append(verdict)
            if self.on_verdict is not None:
                self.on_verdict(verdict)

    def _not_cached(self, questions: Sequence[Asked]) -> Iterable[Asked]:
        """Return what has to be asked; verdicts of other runs are recorded as those of this run."""
        asked = {}
        for judge, question in questions:
            key = question.key(judge.identity(question.kind))
            verdict = None if self.cached is None else self.cached(judge, question)
            if verdict is None:
                asked[key] = (judge, question)
            else:
                self.book.add(verdict)
        return asked.values()

    def stop(self) -> None:
        """Make no further call; those under way are finished."""
        self.limits.halt()


def _verdict(asked: Asked, result: Result[Judgement]) -> Judgement:
    """Return the verdict that asking came to; a failed one if the call failed."""
    attempts, failure = result.attempts, result.failure
    if failure is None:
        verdict = result.answer()
        verdict.attempts += len(attempts)
    else:
        verdict = Judgement(
            failed=str(failure),
            may_pass=bool(attempts) and attempts[-1]["kind"] in PASSING,
            attempts=len(attempts),
            seconds=failure.seconds,
        )
    return completed(verdict, *asked)


def completed(verdict: Judgement, judge: Judge, question: Question) -> Judgement:
    """Return a verdict with what it is the answer to."""
    verdict.identity = judge.identity(question.kind)
    verdict.key = question.key(verdict.identity)
    verdict.kind, verdict.about, verdict.server = question.kind.name, dict(question.about), judge.server
    if question.about.get("cut"):
        verdict.flags = [*verdict.flags, "cut"]
    return verdict


def verdicts_on(judging: Judging, questions: Iterable[Question], ask: Asker | None = None) -> list[Judgement]:
    """Return the verdicts on questions, failed ones included; those that are not known are asked for."""
    questions, ask = list(questions), ask or judging.asker or Asking(judging.book)
    asked: set[str] = set()
    while True:
        judging.wanted.clear()
        try:
            return judging.ask(questions)
        except PendingError:
            # An asker that adds nothing to the book would be called for ever.
            if asked.issuperset(judging.wanted):
                raise ScoringError("the judge was asked, and its verdicts were not recorded") from None
            asked.update(judging.wanted)
            ask(list(judging.wanted.values()))


def cost_of(verdict: Judgement, policy: CallPolicy) -> float:
    """Return what a verdict has cost, in US dollars; 0 without prices, which are per 1,000 tokens."""
    sent, written = verdict.usage.get("input_tokens", 0), verdict.usage.get("output_tokens", 0)
    return (sent * (policy.price_input or 0.0) + written * (policy.price_output or 0.0)) / 1000


def _kept_answers(ask: Asking) -> Asker:
    """Return an asker for answers that are only in memory: if the judge refuses the key, they are kept."""

    def asker(questions: Sequence[Asked]) -> None:
        try:
            ask(questions)
        except AccessRefusedError as error:
            warn_user(f"The judge was not asked: {error}")
            for judge, question in questions:
                if question.key(judge.identity(question.kind)) not in ask.book:
                    ask.book.add(completed(Judgement(failed=str(error)), judge, question))

    return asker


def judged_plan(
    plan: EvaluationPlan, judge: object, executor: Executor | None = None, policy: CallPolicy | None = None
) -> EvaluationPlan:
    """Return the plan with a judge for its judged metrics, who is asked when they are computed."""
    from .names import judge_named

    book = VerdictBook()
    chosen = judge_named(judge) if isinstance(judge, str) else as_judge(judge)
    judging = Judging(chosen, book, asker=_kept_answers(Asking(book, executor, policy)))
    metrics = [
        metric.judged_by(judging) if isinstance(metric, JudgedMetric) else metric for metric in plan.metrics
    ]
    return EvaluationPlan(metrics)
