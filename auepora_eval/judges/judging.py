"""A stored run is judged: verdicts go to its database (`verdicts.py`), judged metrics to its results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np

from ..calls.executors import Executor
from ..calls.policy import CallPolicy, Usage
from ..core.plan import EvaluationPlan
from ..core.scores import Batch, as_columns
from ..core.scoring import measurable
from ..core.types import MetricResult
from ..store.cache import CallCache
from ..store.database import Database
from ..store.lock import RunLock
from ..store.state import SUFFIX, RunState
from ..store.stopping import sequence_results
from ..store.storage import EvaluationResultsStorage, database_of
from ..store.writer import rewrite
from .asking import Asking, OnVerdict, usage_of
from .judge import Asked, Asker, Judge, Judging, VerdictBook
from .llm import language_models
from .metric import JudgedMetric, add_note, ask_until_answered, open_questions
from .metrics.preference import Preference, preference
from .question import Judgement, Kind, Question, kind_named
from .trust.calibration import Rate
from .trust.probes import probed_kinds
from .trust.record import with_judge
from .trust.repeats import self_consistency, variance_parts
from .verdicts import (
    JUDGE,
    JudgeAudit,
    JudgeRecord,
    Replay,
    StoredVerdicts,
    read_audit,
    verdict_book,
    verdicts_in,
)


@dataclass
class RunJudging:
    """Judges a stored run and adds the judged metrics to its results, under the lock of the run.

    `repeats` asks each question several times. `replay` is the database of a run whose verdicts are used
    instead of calls. `prepare` is called before the questions of the run are asked: it may ask probes and
    labelled claims, and change `audit`, which is stored with every value. `labels` has people's scores of
    samples of the run.
    """

    storage: EvaluationResultsStorage
    name: str
    metrics: Sequence[JudgedMetric]
    judge: Judge
    executor: Executor | None = None
    policy: CallPolicy | None = None
    cache: CallCache | None = None
    replay: Path | None = None
    repeats: int = 1
    retry_failed: bool = False
    on_verdict: OnVerdict | None = None
    book: VerdictBook = field(default_factory=VerdictBook)
    asking: Asking | None = None  # while the judge is asked
    record: JudgeRecord | None = None  # stored with the results
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
        self.audit = read_audit(runs, self.judge.identity(kind_named(self.audited)), self.judge.server)
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

    def take_stored(self, stored: Iterable[Judgement]) -> None:
        """Take the verdicts of earlier sessions; failures that may pass are left out, and asked again."""
        for verdict in stored:
            if not verdict.failed or not (verdict.may_pass or self.retry_failed):
                self.book.add(verdict)

    def _of_this_judge(self, stored: Iterable[Judgement]) -> Iterator[Judgement]:
        """Yield the verdicts without those of another server: it may have another model of that name."""
        models = language_models(self.judge)
        servers = {one.identity(kind): one.server for one in models for kind in self._kinds()}
        for verdict in stored:
            if not verdict.server or servers.get(verdict.identity, verdict.server) == verdict.server:
                yield verdict

    def open_questions(self) -> list[Asked]:
        """Return who would be asked what would be asked first; nothing is asked or written."""
        self.take_stored(self._of_this_judge(verdict_book(self.state.database).values()))
        pairs = list(zip(self.run.samples, self.run.outputs, strict=True))
        metrics = [metric for repeat in range(self.repeats) for metric in self.bound(repeat)]
        return list(open_questions(metrics, pairs))

    def results(self) -> list[MetricResult]:
        """Ask what is missing, write the results of the run, and return those of the judged metrics."""
        with RunLock(self.state.database):
            # Another judge may have written since this one was made.
            self.run = self.storage.load_run(self.path)
            with Database.write(self.state.database) as database:
                if self.replay is not None:
                    return self._written(self.replayed(self.replay), database)
                stored = list(verdicts_in(database))
                last = {verdict.key: verdict for verdict in self._of_this_judge(stored)}
                self.take_stored(last.values())
                usages = _usages(stored, self.judge, self._kinds())
                log = StoredVerdicts(database, self.cache)
                self.asking = Asking(
                    self.book, self.executor, self.policy, log, self.on_verdict, usages, log.cached
                )
                return self._written(self._scored(self.asking), database)

    def replayed(self, path: Path) -> list[MetricResult]:
        """Return the judged metrics by the verdicts in a database; nothing is asked or written."""
        self.take_stored(verdict_book(path).values())
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

    def _completed_record(self, database: Database) -> JudgeRecord:
        """Return the record of the judge, with what the verdicts and the record before it add."""
        record = self.record or JudgeRecord(judge="")
        stored = database.meta(JUDGE)
        before = None if stored is None else msgspec.convert(stored, JudgeRecord)
        record.models = self._models()
        record.calibration, record.probes = self.audit.calibration, self.audit.probes
        if not self.judge.members:
            record.identities = {kind.name: self.judge.identity(kind) for kind in self._kinds()}
            if before is not None and before.judge == record.judge:
                record.identities = before.identities | record.identities
        return record

    def _written(self, results: list[MetricResult], database: Database) -> list[MetricResult]:
        names = {result.name for result in results}
        kept = [result for result in self.run.results if result.name not in names]
        self.run = replace(self.run, results=kept + results)
        if self.record is not None:
            database.set_meta(**{JUDGE: msgspec.to_builtins(self._completed_record(database))})
        rewrite(self.state, database, self.run)
        return results

    def stop(self) -> None:
        """Ask nothing more; the calls under way are finished. For signal handlers."""
        if self.asking is not None:
            self.asking.stop()


def _usages(stored: Iterable[Judgement], judge: Judge, kinds: Iterable[Kind]) -> list[Usage]:
    """Return what earlier sessions spent on this judge; other judges of the run have their own budgets."""
    own = {identity for kind in kinds for identity in judge.asked_identities(kind)}
    return [usage_of(verdict) for verdict in stored if verdict.identity in own]


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
    path = database_of(second)
    with RunLock(path), Database.write(path) as database:
        stored, book = list(verdicts_in(database)), VerdictBook()
        for verdict in stored:
            book.add(verdict)
        usages = _usages(stored, judge, [kind_named("preference")])
        asking = Asking(book, executor, policy, StoredVerdicts(database), None, usages)
        return preference(*runs, Judging(judge, book), asking)
