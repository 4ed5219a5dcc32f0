"""Evaluations on the disk: runs whose calls are stored as they arrive, and scored predictions."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from ..calls.policy import CALLS, PASSING, CallPolicy, Limits
from ..core.dataset import EvaluationDataset, canonical_json, dataset_fingerprint
from ..core.matching import BY_ID
from ..core.plan import EvaluationPlan, Survey
from ..core.rag_interface import with_contexts
from ..core.runner import AueporaEvaluator, name_of, score_record
from ..core.scores import Batch, Scores
from ..core.scoring import SIZE, Tally, now, utc_text
from ..core.systems.call import attempts_of, failed_attempts, is_from_cache
from ..core.systems.resources import checked_prices, usage_of
from ..core.types import EvaluationRun, EvaluationSample, SystemOutputs
from ..core.verdict import Stopping
from ..errors import StorageError
from ..io.detect import kind_of_file
from ..io.files import remove_leftovers
from ..io.outputs import PredictionFile, check_known_samples, missing_output
from ..read.records import read_prediction
from ..store.stopping import sequence_results
from .cache import CallCache, call_key
from .database import ANSWER, ANSWERED, FAILED, MAY_PASS, CallRow, Database, Usage
from .database import SUFFIX as DATABASE
from .identity import (
    Header,
    check_same_identity,
    facts_of_results,
    identity_hashes,
    identity_of,
    program_was_changed,
    run_facts,
)
from .lock import RunLock
from .state import RunState, read_results_head
from .writer import RunDraft, RunWriter, call_reply, warn_of_loss

Pair = tuple[EvaluationSample, SystemOutputs]


class Watch(Protocol):
    """Answers that are looked at as they arrive, until every goal of a rule is decided (`clear`)."""

    clear: bool

    def samples(self) -> Iterator[EvaluationSample]: ...

    def tell(self, sample: EvaluationSample, output: SystemOutputs) -> None: ...

    def outcome(self) -> Stopping: ...

    def used(self, dataset: EvaluationDataset) -> EvaluationDataset: ...


class StopRule(Protocol):
    """When a run may stop early: `decide.early_stop.StopRule`."""

    def as_dict(self) -> dict[str, object]: ...

    def watch(
        self, evaluator: AueporaEvaluator, dataset: EvaluationDataset, dataset_sha256: str
    ) -> Watch: ...


class Earlier(NamedTuple):
    """What earlier sessions of a run have left: how many samples were answered, and how many failed."""

    answered: int
    failed: int
    may_pass: int  # failures that a retry may fix

    @property
    def total(self) -> int:
        """Return how many samples have an answer or a failure."""
        return self.answered + self.failed + self.may_pass

    def retried(self, *, retry_failed: bool) -> int:
        """Return how many samples are called again."""
        return self.may_pass + (self.failed if retry_failed else 0)


@dataclass
class StoredRecord:
    """A run on the disk (a `core.runner.RunRecord` and a `core.calls.log.CallLog`).

    With `resume` answers are kept, and so are failures that would happen again. Other failures are retried
    (`retry_failed`: all of them). With a `stop_rule` samples run in random order until its goals are
    decided, and the run has only those. `on_start` is called with what earlier sessions left, after the run
    is locked and before the first call.
    """

    state: RunState
    evaluator: AueporaEvaluator
    dataset: EvaluationDataset
    resume: bool = False
    retry_failed: bool = False
    force: bool = False
    cache: CallCache | None = None
    stop_rule: StopRule | None = None
    survey: Survey = None  # type: ignore[assignment]  # made by __post_init__ if it is not given
    started_in: str | None = None  # the folder that the files of the run are named from
    on_start: Callable[[Earlier], None] | None = None

    tally: Tally = field(init=False)
    started_at: str = field(init=False)
    _database: Database = field(init=False)
    _lock: RunLock = field(init=False)
    _writer: RunWriter | None = field(init=False, default=None)
    _watch: Watch | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._used = self.dataset
        if self.survey is None:
            self.survey = Survey.of(self.dataset, self.evaluator.plan)
        self.survey.check_unique(self.dataset.name)
        self.survey.forget_ids()
        self._identity = identity_of(self.evaluator.system, begun_in=self.started_in)

    @property
    def evaluation_id(self) -> str:
        """Return the id of the run."""
        return self.state.evaluation_id

    @property
    def path(self) -> Path:
        """Return the path of the results file."""
        return self.state.path

    @property
    def log(self) -> StoredRecord:
        """Return where calls are stored: here."""
        return self

    def facts(self) -> Header:
        """Return what a run must have in common with the one that it resumes."""
        stop_when = None if self.stop_rule is None else self.stop_rule.as_dict()
        return run_facts(self.evaluator, self.dataset, self.survey, stop_when, self._identity)

    def check_same_run(self) -> None:
        """Raise StorageError if the stored run, which is complete, is not of this plan, data and system.

        A program that was changed since is only a warning.
        """
        current = self.facts()
        before = self.state.header
        if before is None:  # its outputs were scored, or it was saved from memory
            before = facts_of_results(read_results_head(self.state.path), current)
        check_same_identity(before, current, self.state.database)
        program_was_changed(
            before, current, "after this run, whose results are older. To measure it now, choose another id."
        )

    def __enter__(self) -> StoredRecord:
        if self.stop_rule is not None:
            self._watch = self.stop_rule.watch(self.evaluator, self.dataset, self.survey.sha256)
        self._lock = RunLock(self.state.database)
        try:
            self._header = self._opened()
            self._start()
        except BaseException:
            # `with` leaves only what it has entered: without this the run would stay locked.
            self.__exit__()
            raise
        return self

    def _opened(self) -> Header:
        """Open the run, new or as it is to be resumed, and return what it is."""
        state, facts = self.state, self.facts()
        if not self.resume:
            state.check_free(force=self.force)
            warn_of_loss(state)
            state.remove()
        before = state.header if self.resume else None
        if self.resume and before is None:
            raise StorageError(f"{state.database} has no run to resume. To start one, do not resume.")
        if before is not None:
            check_same_identity(before, facts, state.database)
            if program_was_changed(before, facts, _TWO_PROGRAMS):
                programs = [*before.get("programs", [before["program_sha256"]]), facts["program_sha256"]]
                before["programs"] = list(dict.fromkeys(programs))
        header = before or {"evaluation_id": self.evaluation_id, "begun_at": utc_text(now()), **facts}
        remove_leftovers(state.runs, (state.path.name, state.database.name))
        self._database = Database.write(state.database)
        self._database.set_meta(run=header, **identity_hashes(header))
        return header

    def _start(self) -> None:
        """Look at the answers of earlier sessions and of the cache."""
        self.started_at = str(self._header["begun_at"])
        outcomes = self._database.outcomes()
        earlier = Earlier(outcomes[ANSWERED], outcomes[FAILED], outcomes[MAY_PASS])
        evaluator = self.evaluator
        evaluator.has_answers = earlier.answered > 0
        evaluator.spent_before = spent(self.usages(), evaluator.policy) if earlier.total else {}
        if self.on_start is not None:
            self.on_start(earlier)

    def __exit__(self, *_: object) -> None:
        try:
            if hasattr(self, "_database"):
                self._database.close()
        finally:
            self._lock.release()

    # Calls.

    def known(self, request: EvaluationSample) -> SystemOutputs | None:
        """Return None: `missing` leaves out what is stored or cached, by one query for many samples."""
        return None

    def store(self, request: EvaluationSample, reply: SystemOutputs) -> None:
        """Store an output."""
        key = self._key(request)
        self._stored(request, reply, key=key)
        if self.cache is not None and reply.error is None:
            self.cache.add(CallRow(key, ANSWER, None, ANSWERED, call_reply(request.sample_id, reply)))

    def usages(self) -> Iterator[Usage]:
        """Yield what each call used so far."""
        return self._database.usages(ANSWER)

    def _stored(self, sample: EvaluationSample, output: SystemOutputs, *, key: bytes) -> None:
        reply = call_reply(sample.sample_id, output)
        usage = None if is_from_cache(output) else {**usage_of(output), CALLS: attempts_of(output)}
        self._database.add_call(CallRow(key, ANSWER, sample.sample_id, outcome_of(output), reply, usage))

    def _key(self, sample: EvaluationSample) -> bytes:
        """Return the hash of what is asked, and of who is asked.

        The whole sample: an edited question must be called again.
        """
        return call_key(ANSWER, self._who, canonical_json(sample))

    @cached_property
    def _who(self) -> bytes:
        system, more = self._identity, None if self.cache is None else self.cache.identity
        asked = [system.named, system.asks, system.program_sha256, self.evaluator.top_k, more]
        return canonical_json([name_of(self.evaluator.system), *asked])

    def _is_kept(self, outcome: int) -> bool:
        return outcome == ANSWERED or (outcome == FAILED and not self.retry_failed)

    def answered(self) -> Iterator[Pair]:
        """Yield the samples with an output of an earlier session that are not called again."""
        for chunk in chunks(self.dataset, SIZE):
            rows = self._database.answers([sample.sample_id for sample in chunk], "outcome, reply")
            for sample in chunk:
                row = rows.get(sample.sample_id)
                if row is not None and self._is_kept(row[1]):
                    yield sample, _output_of(row[2], self.state.database.name)

    def missing(self) -> Iterator[EvaluationSample]:
        """Yield the samples without an output, until the goals of the stop rule are decided."""
        if self._watch is not None:
            yield from self._missing_until_clear(self._watch)
            return
        for chunk in chunks(self.dataset, SIZE):
            ids = [sample.sample_id for sample in chunk]
            rows = self._database.answers(ids, "outcome") if self.resume else {}
            for sample in chunk:
                row = rows.get(sample.sample_id)
                if (row is None or not self._is_kept(row[1])) and not self._is_cached(sample):
                    yield sample

    def _missing_until_clear(self, watch: Watch) -> Iterator[EvaluationSample]:
        for sample in watch.samples():
            if watch.clear:
                return
            row = self._database.answers([sample.sample_id], "outcome, reply").get(sample.sample_id)
            if row is not None and self._is_kept(row[1]):
                # A resumed run replays its outputs in the same random order, as if it had never stopped.
                watch.tell(sample, _output_of(row[2], self.state.database.name))
            elif not self._is_cached(sample):
                yield sample

    def _is_cached(self, sample: EvaluationSample) -> bool:
        """Take the output of a sample from the cache, if it is there."""
        key = self._key(sample) if self.cache is not None else b""
        output = None if self.cache is None else self.cache.answer(key, sample)
        if output is None:
            return False
        self._stored(sample, output, key=key)
        if self.evaluator.on_output is not None:
            self.evaluator.on_output(sample, output)
        if self._watch is not None:
            self._watch.tell(sample, output)
        return True

    def keep(self, sample: EvaluationSample, output: SystemOutputs) -> None:
        """Take an output that has arrived, which is stored by now."""
        if self._watch is not None:
            self._watch.tell(sample, output)

    # Scores.

    @property
    def names_documents(self) -> bool:
        """Return whether an output has documents. Early stopping has watched the plan as it is."""
        return self._watch is not None

    def pairs(self) -> Iterator[Pair]:
        """Yield each sample with its stored output, in the order of the dataset."""
        if self._watch is not None:
            self._used = self._watch.used(self.dataset)
        self._waiting: list[tuple[int, bytes]] = []  # of the samples that are being scored
        for chunk in chunks(self._used, SIZE):
            rows = self._database.answers([sample.sample_id for sample in chunk])
            for sample in chunk:
                row = rows.get(sample.sample_id)
                if row is None:
                    raise StorageError(
                        f"{self.state.database} has no output of sample {sample.sample_id!r:.80}. Nothing is "
                        "stored. Resume the run (--resume, resume=True) to call it again."
                    )
                self._waiting.append((row[0], row[1].encode() + b"\n"))
                yield sample, _output_of(row[1], self.state.database.name)

    def add(self, batch: Batch, scores: Mapping[str, Scores]) -> None:
        """Write further samples and the rows of their scores."""
        if self._writer is None:
            self._writer = RunWriter(self.state, self._database, match=plan_match(self.evaluator.plan))
            self.tally = self._writer.tally
        taken, self._waiting = self._waiting[: len(batch)], self._waiting[len(batch) :]
        self._writer.add(
            batch,
            scores,
            answers=[number for number, _ in taken],
            replies=[reply for _, reply in taken],
        )

    def fingerprint(self) -> str:
        """Return the fingerprint of the samples that the run has."""
        return self.survey.sha256 if self._used is self.dataset else dataset_fingerprint(self._used)

    def finish(self, run: EvaluationRun) -> None:
        """Write the results file."""
        if self._watch is not None:
            run.stopping = self._watch.outcome()
            run.results = sequence_results(self.evaluator.plan.metrics, run.results, run.stopping)
        if len(programs := self._header.get("programs", ())) > 1:  # changed between two sessions
            run.configuration["programs_sha256"] = programs
        if self._writer is None:
            self.add(Batch([], []), {})
        assert self._writer is not None  # noqa: S101 - `add` made it
        if not self.state.database.exists():
            raise StorageError(f"{self.state.database} was removed during the run, with its answers.")
        self._writer.finish(run)


def replace_plan(state: RunState, facts: Mapping[str, Any]) -> None:
    """Give a run that has only answers other metrics: its answers do not depend on them."""
    with RunLock(state.database), Database.write(state.database) as database:
        header = database.meta("run") | {name: facts[name] for name in ("metrics", "configuration")}
        database.set_meta(run=header, **identity_hashes(header))


_TWO_PROGRAMS = (
    "after the run was started: this run has answers of both versions. The results have the sha256 of both "
    "(configuration.programs_sha256)."
)


def chunks(samples: Iterable[EvaluationSample], size: int) -> Iterator[list[EvaluationSample]]:
    """Yield lists of samples: one query for many is ten times as fast as one for each."""
    rest = iter(samples)
    return iter(lambda: list(islice(rest, size)), [])


def _output_of(reply: str, where: str) -> SystemOutputs:
    return read_prediction(msgspec.json.decode(reply), where)[1]


def plan_match(plan: EvaluationPlan) -> str:
    """Return by what the metrics of a plan compare documents."""
    matches = (getattr(metric, "match", BY_ID) for metric in plan.metrics)
    return next((match for match in matches if match != BY_ID), BY_ID)


# Failures that may not happen again, by the type of the exception: resuming a run retries them.
RETRYABLE = frozenset(
    """TimeoutError ConnectionError ConnectionResetError ConnectionRefusedError ConnectionAbortedError
    BrokenPipeError WorkerLostError MissingPrediction""".split()
)


def outcome_of(output: SystemOutputs) -> int:
    """Return whether an output is an answer, a failure, or a failure that a retry may fix."""
    if output.error is None:
        return ANSWERED
    attempts = failed_attempts(output.extra)
    may_pass = bool(attempts) and (attempts[-1]["kind"] in PASSING or attempts[-1].get("named") is True)
    return MAY_PASS if may_pass or output.error.type in RETRYABLE else FAILED


def spent(usages: Iterable[Usage], policy: CallPolicy | None) -> dict[str, float]:
    """Return what calls used of each budget that the policy has."""
    budgets = ("max_calls", "max_tokens", "max_cost")
    limited = [name for name in budgets if policy is not None and getattr(policy, name) is not None]
    if policy is None or not limited:
        return {}
    used = Limits(policy, usages).spent.used(policy)
    return {name: used[name] for name in limited}


# Predictions in a file, scored on a dataset in a file. Neither has to fit into memory.


class Predictions(Protocol):
    """Outputs that are looked up by id: in a file of predictions, or in the journal of a run."""

    longest: int

    def __len__(self) -> int: ...

    def check_known_samples(self, known: Container[str]) -> None: ...

    def outputs(self, sample_ids: Iterable[str]) -> Iterator[SystemOutputs]: ...


def predictions_at(path: str | Path, columns: Mapping[str, str] | None = None) -> Predictions:
    """Return the predictions in a file, which may be the database of a run or a file of another tool."""
    path = Path(path)
    if path.name.endswith(DATABASE):
        return StoredOutputs(path)
    kind = kind_of_file(path) if columns is None else None
    if kind == "predictions":  # as nearly always: the readers of other tools' files are not imported
        return PredictionFile(path)
    from ..io.outputs import FOREIGN_KINDS, predictions_of

    if kind is not None and kind not in FOREIGN_KINDS:
        return PredictionFile(path)
    return predictions_of(path, columns)


class StoredOutputs:
    """The outputs of a run, by its database; one that did not finish has them too."""

    def __init__(self, path: Path) -> None:
        self._database = Database.read(path)
        self._size = self._database.outcomes().total()
        self.longest = self._longest()

    def __len__(self) -> int:
        return self._size

    def _longest(self) -> int:
        decode = msgspec.json.Decoder(_Hits).decode
        replies = self._database.stream("SELECT reply FROM call WHERE kind = 'answer'")
        return max((decode(reply).count for (reply,) in replies), default=0)

    def check_known_samples(self, known: Container[str]) -> None:
        """Raise DataError if there are outputs of samples that the dataset does not have."""
        ids = self._database.stream("SELECT DISTINCT sample FROM call WHERE kind = 'answer'")
        check_known_samples((name for (name,) in ids), known, self._database.path.name)

    def outputs(self, sample_ids: Iterable[str]) -> Iterator[SystemOutputs]:
        """Yield an output for each sample, in order; a sample without one has failed."""
        for sample_id in sample_ids:
            row = self._database.answers([sample_id]).get(sample_id)
            yield missing_output() if row is None else _output_of(row[1], self._database.path.name)


class _Ranked(msgspec.Struct):
    doc_id: list[msgspec.Raw]


class _Hits(msgspec.Struct):
    retrieved: list[msgspec.Raw] | _Ranked = []

    @property
    def count(self) -> int:
        hits = self.retrieved
        return len(hits.doc_id) if isinstance(hits, _Ranked) else len(hits)


class PredictionRecord:
    """A run of predictions that are scored (a `core.runner.RunRecord`): no system is called.

    The dataset is read once: that it fits the plan and the predictions is checked at its end, before anything
    is stored. `known` are the ids that predictions may have, if not those of the dataset. `force` replaces
    stored results. `on_scored` is called for each sample that is stored, with whether its output has failed.
    """

    log = None

    def __init__(
        self,
        state: RunState,
        dataset: EvaluationDataset,
        predictions: Predictions,
        *,
        system_name: str,
        limit: int | None = None,
        force: bool = False,
        on_scored: Callable[[bool], None] | None = None,
        contexts_as_retrieved: bool = False,
        known: Container[str] | None = None,
    ) -> None:
        self.state, self.dataset, self.predictions = state, dataset, predictions
        self._contexts_as_retrieved = contexts_as_retrieved
        self.plan = EvaluationPlan()
        self.survey = Survey()
        self.evaluation_id, self.started_at = state.evaluation_id, utc_text(now())
        self.system_name = system_name
        self.names_documents = predictions.longest > 0 or contexts_as_retrieved
        self._limit, self._on_scored = limit, on_scored
        self._force, self._known = force, known
        self._lines: list[bytes] = []  # the outputs of the next batch, as they are stored
        if isinstance(predictions, PredictionFile) and not contexts_as_retrieved:
            predictions.lines = self._lines

    def __enter__(self) -> PredictionRecord:
        self._writer = RunDraft(self.state, force=self._force, match=plan_match(self.plan))
        self.tally = self._writer.tally
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.__exit__()

    def missing(self) -> Iterable[EvaluationSample]:
        """Return nothing: a sample without a prediction has failed."""
        return ()

    def keep(self, sample: EvaluationSample, output: SystemOutputs) -> None:
        """Do nothing: no output arrives."""

    def pairs(self) -> Iterator[Pair]:
        """Yield each sample with its prediction, in the order of the dataset."""
        waiting: list[EvaluationSample] = []

        def ids() -> Iterator[str]:
            for sample in self._surveyed():
                waiting.append(sample)
                yield sample.sample_id

        self._lines.clear()
        # `outputs` takes one id per output that it yields, so at most one sample waits.
        for output in self.predictions.outputs(ids()):
            sample = waiting.pop()
            yield sample, with_contexts(sample, output) if self._contexts_as_retrieved else output

    def _surveyed(self) -> Iterator[EvaluationSample]:
        """Yield the samples that are scored; count all of the dataset, and check what was counted."""
        survey = self.survey = Survey.new(self.plan)
        samples = iter(self.dataset)
        for sample in islice(samples, self._limit):
            survey.add(sample)
            yield sample
        for sample in samples:
            survey.add(sample)
        self.predictions.check_known_samples(survey.ids if self._known is None else self._known)
        survey.check_unique(self.dataset.name)
        survey.forget_ids()
        self.plan.validate_counts(survey.counts, survey.size, survey.unanswerable)

    def add(self, batch: Batch, scores: Mapping[str, Scores]) -> None:
        """Write the scores of further samples."""
        lines = self._lines[:] if len(self._lines) == len(batch) else None
        self._lines.clear()
        self._writer.add(batch, scores, replies=lines)
        self._report(len(batch), sum(output.error is not None for output in batch.outputs))

    def _report(self, count: int, failed: int) -> None:
        """Report a batch that is written."""
        if self._on_scored is not None:
            for number in range(count):
                self._on_scored(number < failed)

    def fingerprint(self) -> str:
        """Return the fingerprint of the samples that were scored."""
        return self._writer.dataset_sha256

    def finish(self, run: EvaluationRun) -> None:
        """Give the run its name."""
        self._writer.save(run)


def score_predictions(
    record: PredictionRecord,
    plan: EvaluationPlan,
    *,
    top_k: int = 5,
    seed: int = 0,
    configuration: Mapping[str, object] | None = None,
    price_input: float | None = None,
    price_output: float | None = None,
) -> EvaluationRun:
    """Score predictions chunk by chunk and store the run. Its samples and outputs are on the disk only.

    The run has no `resource_usage`: what the scoring uses says nothing about the system.
    """
    plan.check_metrics()
    record.plan = plan

    with record:
        return score_record(
            record,
            plan,
            system_name=record.system_name,
            top_k=top_k,
            seed=seed,
            configuration={**(configuration or {}), **checked_prices(price_input, price_output)},
        )
