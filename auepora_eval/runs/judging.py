"""A stored run is judged: verdicts go to its folder (`runs/verdicts`), judged metrics to its results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ..calls.executors import Executor
from ..calls.policy import CallPolicy, Usage
from ..core.plan import EvaluationPlan
from ..core.scores import Batch, as_columns
from ..core.scoring import measurable
from ..core.types import MetricResult
from ..judges.asking import Asking, OnVerdict, usage_of
from ..judges.judge import Asked, Asker, Judge, Judging, VerdictBook
from ..judges.metric import JudgedMetric, add_note, ask_until_answered, open_questions
from ..judges.metrics.preference import Preference, preference
from ..judges.question import Judgement, Kind, Question, kind_named
from ..judges.trust.calibration import Rate
from ..judges.trust.probes import probed_kinds
from ..judges.trust.record import with_judge
from ..judges.trust.repeats import self_consistency, variance_parts
from .journal.journal import JOURNAL
from .journal.lock import RunLock
from .stopping import sequence_results
from .store.state import SUFFIX, RunState
from .store.storage import EvaluationResultsStorage
from .verdicts import (
    VERDICTS,
    JudgeAudit,
    JudgeRecord,
    Replay,
    VerdictCache,
    VerdictFile,
    VerdictWriter,
    read_audit,
    read_judge_record,
    write_judge_record,
)


@dataclass
class RunJudging:
    """Judges a stored run and adds the judged metrics to its results, under the lock of the run.

    `repeats` asks each question several times. `replay` is a file of verdicts that is used instead of calls.
    `prepare` is called before the questions of the run are asked: it may ask probes and labelled claims, and
    change `audit`, which is stored with every value. `labels` has people's scores of samples of the run.
    """

    storage: EvaluationResultsStorage
    name: str
    metrics: Sequence[JudgedMetric]
    judge: Judge
    executor: Executor | None = None
    policy: CallPolicy | None = None
    cache: VerdictCache | None = None
    replay: Path | None = None
    repeats: int = 1
    retry_failed: bool = False
    on_verdict: OnVerdict | None = None
    book: VerdictBook = field(default_factory=VerdictBook)
    asking: Asking | None = None  # while the judge is asked
    record: JudgeRecord | None = None  # written to `judge.json` with the results
    prepare: Callable[[Asker], None] | None = None
    labels: Mapping[str, float] = field(default_factory=dict)
    audit: JudgeAudit = field(init=False)  # what is known of the judge in this folder of runs

    def __post_init__(self) -> None:
        self.path = self.storage.find(self.name)
        self.state = RunState(self.path.parent, self.path.name.removesuffix(SUFFIX))
        self.run = self.storage.load_run(self.path)
        runs = self.storage.results_directory
        asked = [kind.name for metric in self.metrics for kind in metric.question_kinds()]
        # The claims that people labelled are asked about in the form that the metrics use.
        self.audited = next((name for name in asked if name in ("grounding", "support")), "grounding")
        self.audit = read_audit(runs, self.judge.identity(kind_named(self.audited)))
        for metric in self.bound():
            metric.ready()

    def bound(self, repeat: int = 0, seen: list[Question] | None = None) -> list[JudgedMetric]:
        """Return the metrics with the judge and the verdicts that are known."""
        calibration = self.audit.calibration
        chance = None if calibration is None else calibration.chance
        judging = Judging(self.judge, self.book, repeat, chance, seen=seen)
        plan = measurable(EvaluationPlan(self.metrics), self.run.outputs)
        measured = [metric for metric in plan.metrics if isinstance(metric, JudgedMetric)]
        return [metric.judged_by(judging) for metric in measured]

    def take_stored(self, stored: VerdictFile | None) -> None:
        """Take the verdicts of earlier sessions; failures that may pass are left out, and asked again."""
        for verdict in () if stored is None else stored.book.values():
            if not verdict.failed or not (verdict.may_pass or self.retry_failed):
                self.book.add(verdict)

    def open_questions(self) -> list[Asked]:
        """Return who would be asked what would be asked first; nothing is asked or written."""
        path = self.state.folder / VERDICTS
        self.take_stored(VerdictFile(path) if path.exists() else None)
        if self.cache is not None:
            self.book |= self.cache.book
        pairs = list(zip(self.run.samples, self.run.outputs, strict=True))
        metrics = [metric for repeat in range(self.repeats) for metric in self.bound(repeat)]
        return list(open_questions(metrics, pairs))

    def results(self) -> list[MetricResult]:
        """Ask what is missing, write the results of the run, and return those of the judged metrics."""
        if self.replay is not None:
            with RunLock(self.state.folder):
                return self._written(self.replayed(self.replay))
        with VerdictWriter(self.state.folder) as writer:
            stored = writer.stored
            self.take_stored(stored)
            usages = _usages(stored, self.judge, self._kinds())
            cached = None if self.cache is None else self.cache.book
            self.asking = Asking(
                self.book, self.executor, self.policy, writer, self.on_verdict, usages, cached
            )
            try:
                return self._written(self._scored(self.asking))
            finally:
                if self.cache is not None:
                    self.cache.add(self.book.values())

    def replayed(self, path: Path) -> list[MetricResult]:
        """Return the judged metrics by the verdicts of a file; nothing is asked or written."""
        self.take_stored(VerdictFile(path))
        return self._scored(Replay(self.book))

    def _scored(self, ask: Asker) -> list[MetricResult]:
        if self.prepare is not None:
            self.prepare(ask)
        pairs = list(zip(self.run.samples, self.run.outputs, strict=True))
        by_repeat = [self.bound(repeat) for repeat in range(self.repeats)]
        ask_until_answered([metric for metrics in by_repeat for metric in metrics], pairs, ask)
        batch = Batch(self.run.samples, self.run.outputs)
        metrics = by_repeat[0]
        results = [metric.summarise(metric.score_batch(batch)) for metric in metrics]
        for place, result in enumerate(results):
            if self.repeats > 1:
                self._note_repeats(result, [metrics[place] for metrics in by_repeat], batch)
        mixed = self._mixed()
        for result in results if mixed else ():
            add_note(result, f"Note on {result.name}: {mixed}.")
        # A run that stopped early needs intervals that are valid although it was watched.
        results = sequence_results(metrics, results, self.run.stopping)
        return [self._trusted(metric, result) for metric, result in zip(metrics, results, strict=True)]

    def _trusted(self, metric: JudgedMetric, result: MetricResult) -> MetricResult:
        """Return a result with what is known of its judge."""
        # People labelled whether claims are supported: that says nothing of other questions.
        kinds = {kind.name for kind in metric.question_kinds()} - {"claims"}
        is_audited = kinds == {self.audited}
        probed = probed_kinds(kind.name for kind in metric.question_kinds())
        return with_judge(
            result,
            self.audit.calibration if is_audited else None,
            [report for report in self.audit.probes if report.kind in probed],
            labels=self.labels,
            is_share=metric.is_share_of_yes,
            threshold=getattr(metric, "threshold", None),
            addressed=self._addressed(kinds),
        )

    def _addressed(self, kinds: Collection[str]) -> Rate:
        """Return how many verdicts of these kinds are on texts of the run that address the judge."""
        own = [
            "suspicious" in verdict.flags
            for verdict in self.verdicts()
            if verdict.kind in kinds and not {"probe", "labelled"} & verdict.about.keys()
        ]
        return Rate(sum(own), len(own))

    def _mixed(self) -> str:
        models = self._models()
        return f"mixed judge: the server reported the models {', '.join(models)}" if len(models) > 1 else ""

    def _kinds(self) -> list[Kind]:
        """Return the kinds of the questions that the metrics ask, each once."""
        kinds = {kind.name: kind for metric in self.metrics for kind in metric.question_kinds()}
        return list(kinds.values())

    def verdicts(self) -> list[Judgement]:
        """Return the verdicts of the judge, or of the members of a jury, on questions of the metrics."""
        asked = {identity for kind in self._kinds() for identity in self.judge.asked_identities(kind)}
        return [verdict for verdict in self.book.values() if verdict.identity in asked]

    def _models(self) -> list[str]:
        """Return the models that answered, as the servers report them; of a jury, none."""
        if self.judge.members:
            return []
        return sorted({verdict.model for verdict in self.verdicts() if verdict.model})

    def _note_repeats(self, result: MetricResult, metrics: Sequence[JudgedMetric], batch: Batch) -> None:
        """Note how far the judge agrees with itself."""
        columns = [as_columns(metric.score_batch(batch)).values for metric in metrics]
        seen: list[Question] = []
        bound = next(each for each in self.bound(seen=seen) if each.name == result.name)
        bound.score_batch(batch)
        questions = {question.key(""): question for question in seen}.values()
        judging = Judging(self.judge, self.book)
        labels = [
            [
                verdict.label
                for number in range(self.repeats)
                if not (verdict := judging.ask([replace(question, repeat=number)])[0]).failed
            ]
            for question in questions
        ]
        share = self_consistency(labels)
        parts = variance_parts(np.array(columns).T)
        add_note(
            result,
            f"{result.name}, asked {self.repeats} times: {parts}; {share:.0%} of the verdicts are the same "
            "each time.",
        )

    def _completed_record(self) -> JudgeRecord:
        """Return the record of the judge, with what the verdicts and the record before it add."""
        record, before = self.record or JudgeRecord(judge=""), read_judge_record(self.state.folder)
        record.models = self._models()
        record.calibration, record.probes = self.audit.calibration, self.audit.probes
        if not self.judge.members:
            record.identities = {kind.name: self.judge.identity(kind) for kind in self._kinds()}
            if before is not None and before.judge == record.judge:
                record.identities = before.identities | record.identities
        return record

    def _written(self, results: list[MetricResult]) -> list[MetricResult]:
        names = {result.name for result in results}
        kept = [result for result in self.run.results if result.name not in names]
        self.run = replace(self.run, results=kept + results)
        has_journal = (self.state.folder / JOURNAL).exists()
        with self.state.writer(force=True, with_outputs=not has_journal) as writer:
            scores = {result.name: result.scores for result in self.run.results if result.scores}
            writer.add(Batch(self.run.samples, self.run.outputs), scores)
            writer.finish(self.run)
        if self.record is not None:
            write_judge_record(self.state.folder, self._completed_record())
        return results

    def stop(self) -> None:
        """Ask nothing more; the calls under way are finished. For signal handlers."""
        if self.asking is not None:
            self.asking.stop()


def _usages(stored: VerdictFile | None, judge: Judge, kinds: Iterable[Kind]) -> list[Usage]:
    """Return what earlier sessions spent on this judge; other judges of the run have their own budgets."""
    own = {identity for kind in kinds for identity in judge.asked_identities(kind)}
    return [usage_of(verdict) for verdict in (stored.paid if stored else ()) if verdict.identity in own]


def judged_preference(
    storage: EvaluationResultsStorage,
    first: Path,
    second: Path,
    judge: Judge,
    executor: Executor | None = None,
    policy: CallPolicy | None = None,
) -> Preference:
    """Ask a judge which answers of two stored runs are better; the verdicts are stored with the second."""
    runs = storage.load_run(first), storage.load_run(second)
    folder = RunState(second.parent, second.name.removesuffix(SUFFIX)).folder
    with VerdictWriter(folder) as writer:
        stored = writer.stored
        book = VerdictBook() if stored is None else stored.book
        usages = _usages(stored, judge, [kind_named("preference")])
        return preference(*runs, Judging(judge, book), Asking(book, executor, policy, writer, None, usages))
