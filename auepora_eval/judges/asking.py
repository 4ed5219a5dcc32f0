"""How judges are asked: by an executor, with retries, a pace and budgets, each verdict recorded at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import msgspec

from ..calls.executors import Executor
from ..calls.policy import PASSING, CallPolicy, Spent
from ..core.plan import EvaluationPlan
from ..core.runner import AueporaEvaluator
from ..core.systems.call import FURTHER_CALLS, attempts_of, failed_attempts
from ..core.types import EvaluationSample, Response, SystemOutputs
from ..errors import AccessRefusedError, ScoringError, warn_user
from .judge import Asked, Asker, Judge, Judging, PendingError, VerdictBook, as_judge
from .metric import JudgedMetric
from .question import Judgement, Question

_ASKED = "asked"  # in the metadata of a sample that carries a question
_VERDICT = "verdict"  # in the `extra` of an output that carries a verdict
OnVerdict = Callable[[Judgement], None]


class VerdictLog(Protocol):
    """Stores verdicts on the disk: `submit` numbers them, those up to `durable` are stored."""

    @property
    def durable(self) -> int: ...

    def submit(self, verdict: Judgement) -> int: ...

    def wait(self, number: int) -> None: ...


class _JudgeSystem:
    """Judges as a system: it gets a question in a sample, and its output holds the verdict."""

    name = "judge"
    keeps_time = True  # endpoints end late calls; a function of the user's own is not interrupted

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        judge, question = sample.metadata[_ASKED]
        verdict = judge.judge(question)
        return SystemOutputs(
            [], Response(""), extra={_VERDICT: verdict, FURTHER_CALLS: verdict.attempts - 1, **verdict.usage}
        )


@dataclass
class Asking:
    """Asks judges, and adds their verdicts to a book and a log.

    `spent` is what earlier sessions spent of the budgets of the policy.
    """

    book: VerdictBook
    executor: Executor | None = None
    policy: CallPolicy | None = None
    log: VerdictLog | None = None
    on_verdict: OnVerdict | None = None
    spent: Mapping[str, float] = field(default_factory=dict)
    cached: VerdictBook | None = None  # verdicts of other runs
    asked: list[Judgement] = field(default_factory=list)  # the verdicts of this session
    _evaluator: AueporaEvaluator | None = None

    def __call__(self, questions: Sequence[Asked]) -> None:
        """Ask; return when every question has its verdict, which may be a failed one."""
        evaluator = self._prepared()
        if evaluator.policy is not None:
            # Of this session too: each round counts from here.
            spent = spent_on(self.asked, evaluator.policy)
            evaluator.spent_before = {name: spent[name] + self.spent.get(name, 0.0) for name in spent}
        asked = self._not_cached(questions)
        recorder = _Recorder(asked, self.log)
        # A kill must not lose a reply that has arrived: whoever received it stores it before the next call.
        evaluator.on_result = None if self.log is None else recorder.take
        samples = (EvaluationSample(key, "", metadata={_ASKED: pair}) for key, pair in asked.items())
        for sample, _ in evaluator.outputs(samples, recorder):
            verdict = recorder.verdicts.pop(sample.sample_id)
            self.book.add(verdict)
            self.asked.append(verdict)
            if self.on_verdict is not None:
                self.on_verdict(verdict)

    def _not_cached(self, questions: Sequence[Asked]) -> dict[str, Asked]:
        """Return what has to be asked, by key; verdicts of other runs are recorded as those of this run."""
        asked = {}
        for judge, question in questions:
            key = question.key(judge.identity(question.kind))
            verdict = None if self.cached is None else self.cached.get(key)
            if verdict is None:
                asked[key] = (judge, question)
                continue
            # It cost this run nothing.
            verdict = msgspec.structs.replace(verdict, about=dict(question.about), usage={}, attempts=0)
            if self.log is not None:
                self.log.submit(verdict)
            self.book.add(verdict)
        return asked

    def stop(self) -> None:
        """Make no further call; those under way are finished."""
        self._prepared().stop()

    def _prepared(self) -> AueporaEvaluator:
        if self._evaluator is None:
            # Verdicts that fail are a part of the result: the answers that are judged were paid for.
            policy = replace(self.policy or CallPolicy(), keep_going=True)
            self._evaluator = AueporaEvaluator(
                _JudgeSystem(), EvaluationPlan(), executor=self.executor, policy=policy
            )
        return self._evaluator


class _Recorder:
    """The journal of the calls: it turns each output into a verdict and stores that."""

    def __init__(self, asked: Mapping[str, Asked], log: VerdictLog | None) -> None:
        self._asked, self._log = asked, log
        self._count = 0
        self._taken: dict[str, int] = {}  # numbers in the log, by sample
        self.verdicts: dict[str, Judgement] = {}

    @property
    def durable(self) -> int:
        return self._count if self._log is None else self._log.durable

    def take(self, sample: EvaluationSample, output: SystemOutputs) -> None:
        """Store the verdict of a call in the thread that made it."""
        self._taken[sample.sample_id] = self.submit(sample.sample_id, output)

    def submit(self, sample_id: str, output: SystemOutputs) -> int:
        if (number := self._taken.pop(sample_id, None)) is not None:
            return number
        judge, question = self._asked[sample_id]
        verdict = self.verdicts[sample_id] = completed(_verdict_in(output), judge, question)
        self._count += 1
        return self._count if self._log is None else self._log.submit(verdict)

    def wait(self, number: int) -> None:
        if self._log is not None:
            self._log.wait(number)


def _verdict_in(output: SystemOutputs) -> Judgement:
    """Return the verdict that an output carries; a failed one if the call failed."""
    if output.error is None:
        verdict = output.extra[_VERDICT]
        assert isinstance(verdict, Judgement)  # noqa: S101 - `_JudgeSystem` made it
        verdict.attempts = attempts_of(output)
        return verdict
    attempts = failed_attempts(output.extra)
    return Judgement(
        failed=f"{output.error.type}: {output.error.message}",
        may_pass=bool(attempts) and attempts[-1]["kind"] in PASSING,
        attempts=len(attempts),
        seconds=output.error.seconds,
    )


def completed(verdict: Judgement, judge: Judge, question: Question) -> Judgement:
    """Return a verdict with what it is the answer to."""
    verdict.identity = judge.identity(question.kind)
    verdict.key = question.key(verdict.identity)
    verdict.kind, verdict.about = question.kind.name, dict(question.about)
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


def spent_on(verdicts: Iterable[Judgement], policy: CallPolicy) -> dict[str, float]:
    """Return what verdicts have cost, by the budgets that a policy has."""
    spent = Spent()
    for verdict in verdicts:
        spent.calls += verdict.attempts
        spent.add([verdict.usage], policy)
    sums = {"max_calls": spent.calls, "max_tokens": spent.tokens, "max_cost": spent.cost(policy)}
    return {name: value for name, value in sums.items() if getattr(policy, name) is not None}


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
