"""A stored run is judged: verdicts go to its database (`ask.py`), judged metrics to its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import msgspec

from ..calls.executors import Executor
from ..calls.policy import CallPolicy
from ..core.metric_names import split_outside_brackets
from ..core.plan import EvaluationPlan
from ..core.scores import Batch
from ..core.scoring import measurable
from ..core.types import EvaluationRun, EvaluationSample, MetricResult, SystemOutputs
from ..errors import PlanError, ScoringError, StorageError
from ..metrics.parse import parse_metric
from ..store.cache import CallCache
from ..store.columns import score_row
from ..store.database import JUDGE, Database
from ..store.lock import locked
from ..store.state import SUFFIX, RunState
from ..store.stopping import sequence_results
from ..store.storage import EvaluationResultsStorage, database_of
from ..store.writer import rewrite
from .ask import Asked, Asking, keep_verdicts, key_of, stored_verdicts, verdicts_in
from .judge import Judge, as_judge
from .jury import Jury, judge_named
from .llm import LABEL
from .metric import JudgedMetric, add_note
from .metrics.faithfulness import CheckedClaims, ClaimCheck
from .metrics.preference import with_preference
from .question import Judgement, Kind, Question, kind_named
from .trust.audit import claim_questions, compare_with_people, probe_for, read_audit, write_audit
from .trust.labels import Record, labels_in
from .trust.probes import probe_questions
from .trust.record import ProbeReport
from .trust.repeats import repeats_in_words


def judge_of_run(path: Path) -> tuple[str, str] | None:
    """Return the last judge of a run, as --judge takes it, and its mode; None if the run was not judged."""
    if not path.exists():
        return None
    with Database.read(path) as database:
        record = database.meta(JUDGE)
    return None if record is None else (str(record["judge"]), str(record["mode"]))


@dataclass
class RunJudging:
    """Judges a stored run and adds the judged metrics to its results, under the lock of the run.

    `repeats` asks each question several times. `replay` is the database of a run whose verdicts are used
    instead of calls. `labelled` are records of what people labelled, claims or samples of the run, each with
    its place. Before the questions of the run, the judge is asked about these claims, and with `probes`
    questions with known answers.
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
    on_verdict: Callable[[Judgement], None] | None = None
    mode: str = LABEL  # of models, stored with the name of the judge
    labelled: Sequence[tuple[str, Record]] = ()
    probes: bool = False
    reports: list[ProbeReport] = field(default_factory=list)  # what the probes have shown

    def __post_init__(self) -> None:
        self.path = self.storage.find(self.name)
        self.state = RunState(self.path.parent, self.path.name.removesuffix(SUFFIX))
        self.run = self.storage.load_run(self.path)
        kinds = {kind.name: kind for metric in self.metrics for kind in metric.question_kinds()}
        self.kinds = list(kinds.values())
        # The claims that people labelled are asked about in the form that the metrics use.
        audited = next((name for name in kinds if name in ("grounding", "support")), "grounding")
        identity = self.judge.identity(kind_named(audited))
        self.audit = read_audit(self.storage.results_directory, identity, audited)
        sample_ids = {sample.sample_id for sample in self.run.samples}
        self.claims, self.labels = labels_in(self.labelled, sample_ids)
        if self.labels and (len(self.metrics) > 1 or not self.metrics[0].higher_is_better):
            names = ", ".join(metric.name for metric in self.metrics)
            raise PlanError(
                f"Labels of samples say how good each is, by one metric: they cannot correct {names}. Name "
                "one metric in --metrics, for which higher is better."
            )
        self.asking = self._asking(stored_verdicts(self.replay or self.state.database))
        for metric in self._bound():
            metric.ready()

    def _asking(self, stored: Sequence[Judgement], database: Database | None = None) -> Asking:
        return Asking(
            self.judge,
            stored,
            database,
            self.cache,
            self.executor,
            self.policy,
            self.on_verdict,
            is_replay=self.replay is not None,
            audit=self.audit,
            labels=self.labels,
        )

    def _bound(self, repeat: int = 0) -> list[JudgedMetric]:
        """Return the metrics with the judge and the verdicts that are known."""
        plan = measurable(EvaluationPlan(self.metrics), self.run.outputs)
        measured = [metric for metric in plan.metrics if isinstance(metric, JudgedMetric)]
        return [metric.judged_by(self.asking, repeat) for metric in measured]

    def open_questions(self) -> list[Asked]:
        """Return who would be asked what would be asked first; nothing is asked or written."""
        batch = Batch(self.run.samples, self.run.outputs)
        questions = list(filter(None, claim_questions(self.claims, self.audit.kind)))
        questions += probe_questions(kind.name for kind in self.kinds) if self.probes else []
        wanted = list(self.asking.unknown(questions))
        for repeat in range(self.repeats):
            wanted += [each for metric in self._bound(repeat) for each in metric.open_questions(batch)]
        return list({key_of(each): each for each in wanted}.values())

    def without_verdicts(self) -> list[str]:
        """Return the metrics that a judge, or a member of the jury, gave no verdicts for at all."""
        given = {verdict.identity for verdict in self.asking.stored}
        batch = Batch(self.run.samples, self.run.outputs)
        return [
            metric.name
            for metric in self._bound()
            if any(judge.identity(one.kind) not in given for judge, one in metric.open_questions(batch))
        ]

    def results(self) -> list[MetricResult]:
        """Ask what is missing, write the results of the run, and return those of the judged metrics."""
        with locked(self.state.database):
            # Another judge may have written since this one was made.
            self.run = self.storage.load_run(self.path)
            with Database.write(self.state.database) as database:
                if self.replay is None:
                    self.asking = self._asking(list(verdicts_in(database)), database)
                results = self.scored()
                if self.replay is not None:
                    keep_verdicts(self.asking.stored, database)  # they explain the scores
                return self._written(results, database)

    def scored(self) -> list[MetricResult]:
        """Return the judged metrics; what is not known is asked, and nothing but verdicts is written."""
        if self.claims:
            compare_with_people(self.audit, self.asking, self.claims)
        if self.probes:
            self.reports = probe_for(self.audit, self.asking, [kind.name for kind in self.kinds])
        if self.claims or self.probes:
            write_audit(self.storage.results_directory, self.audit)
        batch = Batch(self.run.samples, self.run.outputs)
        metrics = self._bound()
        results = [metric.summarise(metric.score_batch(batch)) for metric in metrics]
        if self.repeats > 1:
            again = [metrics, *(self._bound(repeat) for repeat in range(1, self.repeats))]
            for result, same in zip(results, zip(*again, strict=True), strict=True):
                add_note(result, f"{result.name}, {repeats_in_words(same, batch)}")
        for result in results if len(self.judge.members) == 1 else ():
            models = result.signature.get("models")
            if isinstance(models, list) and len(models) > 1:
                about = f"mixed judge: the server reported the models {', '.join(models)}"
                add_note(result, f"Note on {result.name}: {about}.")
        # A run that stopped early needs intervals that are valid although it was watched.
        return sequence_results(metrics, results, self.run.stopping)

    def _written(self, results: list[MetricResult], database: Database) -> list[MetricResult]:
        # In the places that they had: a replay gives the same document, to the byte.
        by_name = {result.name: result for result in results}
        placed = [by_name.pop(result.name, result) for result in self.run.results]
        placed += by_name.values()
        is_changed = list(map(_as_stored, placed)) != list(map(_as_stored, self.run.results))
        self.run = replace(self.run, results=placed)
        _store_judge(database, self.judge.name, self.mode)
        # A replay of the same verdicts leaves the files as they are, with the moment when they were saved.
        if is_changed:
            rewrite(self.state, database, self.run)
        return results

    def stop(self) -> None:
        """Ask nothing more; the calls under way are finished. For signal handlers."""
        self.asking.limits.halt()


def _as_stored(result: MetricResult) -> tuple[object, ...]:
    """Return what is stored of a result: two of them are equal if nothing has changed."""
    return (*score_row(result), str(result.value), msgspec.json.encode(result.details, order="sorted"))


def judged_preference(
    storage: EvaluationResultsStorage,
    first: Path,
    second: Path,
    judge: Judge,
    executor: Executor | None = None,
    policy: CallPolicy | None = None,
) -> tuple[EvaluationRun, EvaluationRun, list[str]]:
    """Ask a judge which answers of two stored runs are better; the verdicts are stored with the second."""
    runs, path = (storage.load_run(first), storage.load_run(second)), database_of(second)
    with locked(path), Database.write(path) as database:
        stored = list(verdicts_in(database))
        asking = Asking(judge, stored, database, executor=executor, policy=policy)
        return with_preference(*runs, asking)


def judged_plan(
    plan: EvaluationPlan, judge: object, executor: Executor | None = None, policy: CallPolicy | None = None
) -> EvaluationPlan:
    """Return the plan with a judge for its judged metrics, who is asked when they are computed."""
    chosen = judge_named(judge) if isinstance(judge, str) else as_judge(judge)
    asking = Asking(chosen, executor=executor, policy=policy, keeps_answers=True)
    return EvaluationPlan(
        [one.judged_by(asking) if isinstance(one, JudgedMetric) else one for one in plan.metrics]
    )


def copy_judging(path: Path, to: Path) -> None:
    """Copy the verdicts and the judge of a run to a run that was computed from them."""
    with locked(to), Database.read(path) as source, Database.write(to) as target:
        keep_verdicts(verdicts_in(source), target)
        record = source.meta(JUDGE)
        _store_judge(target, record["judge"], record["mode"])


def _store_judge(database: Database, judge: str, mode: str) -> None:
    """Store who judged a run last, and the hash of the verdicts until now."""
    ((calls,),) = database.select("SELECT max(n) FROM call")
    verdicts = database.verdicts_sha256(calls)
    database.set_meta(**{JUDGE: {"judge": judge, "mode": mode, "calls": calls, "verdicts_sha256": verdicts}})


# What the judges of a stored run said of the claims of its answers.


class _StoredJudge(Judge):
    """A judge of a stored run: it has verdicts, and cannot be asked."""

    def __init__(self, identities: Mapping[str, str]) -> None:
        self._identities = identities

    def identity(self, kind: Kind) -> str:
        return self._identities.get(kind.name, "")

    def judge(self, question: Question) -> Judgement:
        raise StorageError("a stored judge cannot be asked")


def checked_claims(
    path: Path, results: Iterable[MetricResult], sample: EvaluationSample, output: SystemOutputs
) -> list[tuple[str, list[ClaimCheck]]]:
    """Return the claims of an answer by the verdicts that its metrics were computed from.

    They are listed once for all metrics with the same verdicts, whose names come first.
    """
    names: dict[tuple[ClaimCheck, ...], list[str]] = {}
    for result in results:
        identities = result.signature.get("judge")
        if not isinstance(identities, list):
            continue
        metric = parse_metric(result.name)
        if isinstance(metric, CheckedClaims):
            asking = _stored_judge(path, path.stat().st_mtime_ns, tuple(identities))
            with suppress(ScoringError):  # the verdicts are not in the database of the run
                checks = tuple(metric.judged_by(asking).explain(sample, output))
                names.setdefault(checks, []).append(metric.name)
    return [(", ".join(listed), list(checks)) for checks, listed in names.items() if checks]


@lru_cache(maxsize=4)  # pages ask for the claims of one sample after the other
def _stored_judge(path: Path, changed: int, identities: tuple[str, ...]) -> Asking:
    """Return the judge of these identities, one for each kind of questions, with its verdicts."""
    members: dict[int, dict[str, str]] = {}
    for identity in identities:
        kind, _, rest = identity.partition("/")
        listed = [identity]
        if rest.startswith("jury:["):
            listed = split_outside_brackets(rest.removeprefix("jury:[").removesuffix("]"))
        for place, member in enumerate(listed):
            members.setdefault(place, {})[kind] = member.strip()
    judges = [_StoredJudge(each) for each in members.values()]
    judge = judges[0] if len(judges) == 1 else Jury(judges)
    return Asking(judge, stored_verdicts(path), is_replay=True)
