"""Evaluations on the disk: runs whose calls are stored as they arrive, and scored predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ..calls.policy import CALLS, PASSING, Limits
from ..core.dataset import EvaluationDataset, canonical_json
from ..core.matching import BY_ID
from ..core.plan import EvaluationPlan, Survey
from ..core.rag_interface import with_contexts
from ..core.runner import AueporaEvaluator, RunRecord, name_of, score_record
from ..core.scores import Batch, Scores
from ..core.scoring import SIZE, Tally, now, utc_text
from ..core.systems.call import attempts_of, failed_attempts, is_from_cache
from ..core.systems.resources import checked_prices, usage_of
from ..core.types import EvaluationRun, EvaluationSample, SystemOutputs
from ..errors import StorageError
from ..io.detect import kind_of_file
from ..io.files import remove_leftovers
from ..io.outputs import (
    OWN_LINES,
    PredictionFile,
    check_known_samples,
    is_packed,
    missing_output,
    predictions_of,
)
from ..read.records import read_prediction
from .cache import CallCache, call_key
from .database import ANSWER, ANSWERED, FAILED, MAY_PASS, CallRow, Database
from .database import SUFFIX as DATABASE
from .identity import (
    Header,
    check_same_identity,
    identity_hashes,
    run_facts,
    system_facts,
)
from .lock import locked
from .state import RunState
from .stopping import sequence_results
from .writer import RunWriter, call_reply, drafted

Pair = tuple[EvaluationSample, SystemOutputs]


class _WrittenRecord(RunRecord):
    """A run that is written to the disk while it is scored."""

    _writer: RunWriter

    @property
    def tally(self) -> Tally:
        """Return the outcome of the calls of the samples that were scored."""
        return self._writer.tally

    def add(self, batch: Batch, scores: Mapping[str, Scores]) -> None:
        """Write further samples and the rows of their scores."""
        self._writer.add(batch, scores)

    def fingerprint(self) -> str:
        """Return the fingerprint of the samples that the run has."""
        return self._writer.dataset_sha256

    def finish(self, run: EvaluationRun) -> None:
        """Write the results document."""
        self._writer.finish(run)


@dataclass
class StoredRecord(_WrittenRecord):
    """A run on the disk.

    With `resume` answers are kept, and so are failures that would happen again. Other failures are retried
    (`retry_failed`: all of them). With a `stop_rule` samples run in random order until its goals are
    decided, and the run has only those. `on_start` is called after the run is locked and before the first
    call, with how many samples earlier sessions left with each outcome, and with what these spent.
    """

    state: RunState
    evaluator: AueporaEvaluator
    dataset: EvaluationDataset
    resume: bool = False
    retry_failed: bool = False
    force: bool = False
    cache: CallCache | None = None
    stop_rule: Any = None  # decide.early_stop.StopRule
    survey: Survey = None  # type: ignore[assignment]  # made by __post_init__ if it is not given
    on_start: Callable[[Counter[int], Limits], None] | None = None

    started_at: str = field(init=False)
    _database: Database = field(init=False)
    _watch: Any = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._opened = ExitStack()
        self.evaluation_id = self.state.evaluation_id
        self.names_documents = self.stop_rule is not None  # early stopping has watched the plan as it is
        if self.survey is None:
            self.survey = Survey.of(self.dataset, self.evaluator.plan)
        self.survey.check_unique(self.dataset.name)
        self.survey.forget_ids()
        self._system = system_facts(self.evaluator.system)

    def facts(self) -> Header:
        """Return what a run must have in common with the one that it resumes."""
        stop_when = None if self.stop_rule is None else self.stop_rule.as_dict()
        return run_facts(self.evaluator, self.dataset, self.survey, stop_when, self._system)

    def check_same_run(self) -> Header:
        """Return the header of the stored run; StorageError if it is not of this plan, data and system."""
        before, facts = self.state.header, self.facts()
        if before is None:  # there is none, or its outputs were scored, or it was saved from memory
            raise StorageError(
                f"{self.state.database} does not say which system was called, so it cannot be resumed. Start "
                "the run without resuming it, load it (load_run), or choose another id."
            )
        if check_same_identity(before, facts, self.state.database):
            programs = [*before.get("programs", [before["program_sha256"]]), facts["program_sha256"]]
            before["programs"] = list(dict.fromkeys(programs))
        return before

    def __enter__(self) -> StoredRecord:
        if self.stop_rule is not None:
            self._watch = self.stop_rule.watch(self.evaluator, self.dataset, self.survey.sha256)
        # `with` leaves only what it has entered: an error here must not leave the run locked.
        with ExitStack() as stack:
            stack.enter_context(locked(self.state.database))
            remove_leftovers(self.state.runs, (self.state.path.name, self.state.database.name))
            self._header = self.check_same_run() if self.resume else self._new_header()
            self._database = stack.enter_context(Database.write(self.state.database))
            self._database.set_meta(run=self._header, **identity_hashes(self._header))
            self.started_at = str(self._header["begun_at"])
            outcomes = self._database.outcomes()
            usages = self._database.usages(ANSWER) if outcomes else ()
            limits = self.evaluator.start(usages, has_answers=outcomes[ANSWERED] > 0)
            if self.on_start is not None:
                self.on_start(outcomes, limits)
            self._opened = stack.pop_all()
        return self

    def _new_header(self) -> Header:
        """Return what a new run is; one that it replaces is removed."""
        self.state.check_free(force=self.force)
        self.state.warn_of_loss()
        self.state.remove()
        return {"evaluation_id": self.evaluation_id, "begun_at": utc_text(now()), **self.facts()}

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    # Calls.

    def store(self, pairs: Sequence[Pair]) -> None:
        """Store outputs, in the cache too if they are new answers."""
        rows = [self._row(sample, output) for sample, output in pairs]
        self._database.add_calls(rows)
        if self.cache is not None:
            new = [row for row in rows if row.outcome == ANSWERED and row.usage is not None]
            self.cache.add(row._replace(sample=None, usage=None) for row in new)

    def _row(self, sample: EvaluationSample, output: SystemOutputs) -> CallRow:
        reply = call_reply(sample.sample_id, output)
        usage = None if is_from_cache(output) else {**usage_of(output), CALLS: attempts_of(output)}
        return CallRow(self._key(sample), ANSWER, sample.sample_id, outcome_of(output), reply, usage)

    def _key(self, sample: EvaluationSample) -> bytes:
        """Return the hash of what is asked, and of who is asked.

        The whole sample: an edited question must be called again.
        """
        return call_key(ANSWER, self._who, canonical_json(sample))

    @cached_property
    def _who(self) -> bytes:
        more = None if self.cache is None else self.cache.identity
        return canonical_json([name_of(self.evaluator.system), self._system, self.evaluator.top_k, more])

    def _with_answers(
        self, samples: Iterable[EvaluationSample], columns: str
    ) -> Iterator[tuple[EvaluationSample, Any]]:
        """Yield each sample with columns of its last call: (number, outcome, ...), or None."""
        rest = iter(samples)
        # One query for many samples is ten times as fast as one for each.
        for chunk in iter(lambda: list(islice(rest, SIZE)), []):
            rows = self._database.answers([sample.sample_id for sample in chunk], columns)
            yield from ((sample, rows.get(sample.sample_id)) for sample in chunk)

    def _is_kept(self, row: Any) -> bool:
        return row is not None and (row[1] == ANSWERED or (row[1] == FAILED and not self.retry_failed))

    def answered(self) -> Iterator[Pair]:
        """Yield the samples with an output of an earlier session that are not called again."""
        for sample, row in self._with_answers(self.dataset, "outcome, reply"):
            if self._is_kept(row):
                yield sample, self._output_of(row[2])

    def missing(self) -> Iterator[EvaluationSample]:
        """Yield the samples without an output, until the goals of the stop rule are decided."""
        if self._watch is not None:
            yield from self._missing_until_clear(self._watch)
            return
        for sample, row in self._with_answers(self.dataset, "outcome"):
            if not self._is_kept(row) and not self._is_cached(sample):
                yield sample

    def _missing_until_clear(self, watch: Any) -> Iterator[EvaluationSample]:
        for sample in watch.samples():
            if watch.clear:
                return
            row = self._database.answers([sample.sample_id], "outcome, reply").get(sample.sample_id)
            if row is not None and self._is_kept(row):
                # A resumed run replays its outputs in the same random order, as if it had never stopped.
                watch.tell(sample, self._output_of(row[2]))
            elif not self._is_cached(sample):
                yield sample

    def _is_cached(self, sample: EvaluationSample) -> bool:
        """Take the output of a sample from the cache, if it is there."""
        output = None if self.cache is None else self.cache.answer(self._key(sample), sample)
        if output is None:
            return False
        self.store([(sample, output)])
        if self.evaluator.on_output is not None:
            self.evaluator.on_output(sample, output)
        self.keep(sample, output)
        return True

    def keep(self, sample: EvaluationSample, output: SystemOutputs) -> None:
        """Take an output that has arrived, which is stored by now."""
        if self._watch is not None:
            self._watch.tell(sample, output)

    # Scores.

    def pairs(self) -> Iterator[Pair]:
        """Yield each sample with its stored output, in the order of the dataset."""
        used = self.dataset if self._watch is None else self._watch.used(self.dataset)
        for sample, row in self._with_answers(used, "reply"):
            if row is None:
                raise StorageError(
                    f"{self.state.database} has no output of sample {sample.sample_id!r:.80}. Nothing is "
                    "stored. Resume the run (--resume, resume=True) to call it again."
                )
            yield sample, self._output_of(row[1])

    def _output_of(self, reply: str) -> SystemOutputs:
        return read_prediction(msgspec.json.decode(reply), self.state.database.name)[1]

    @cached_property
    def _writer(self) -> RunWriter:  # type: ignore[override]
        return RunWriter(self.state, self._database, match=plan_match(self.evaluator.plan))

    def finish(self, run: EvaluationRun) -> None:
        if self._watch is not None:
            run.stopping = self._watch.outcome()
            run.results = sequence_results(self.evaluator.plan.metrics, run.results, run.stopping)
        if len(programs := self._header.get("programs", ())) > 1:  # changed between two sessions
            run.configuration["programs_sha256"] = programs
        super().finish(run)


def replace_plan(state: RunState, facts: Mapping[str, Any]) -> None:
    """Give a run that has only answers other metrics: its answers do not depend on them."""
    with locked(state.database), Database.write(state.database) as database:
        header = database.meta("run") | {name: facts[name] for name in ("metrics", "configuration")}
        database.set_meta(run=header, **identity_hashes(header))


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


# Predictions in a file, scored on a dataset in a file. Neither has to fit into memory.


class Predictions(Protocol):
    """Outputs that are looked up by id (see `io.outputs`)."""

    longest: int
    timed: bool

    def __len__(self) -> int: ...

    def check_known_samples(self, known: Container[str]) -> None: ...

    def outputs(self, sample_ids: Iterable[str]) -> Iterator[SystemOutputs]: ...


def predictions_at(path: str | Path, columns: Mapping[str, str] | None = None) -> Predictions:
    """Return the predictions in a file, which may be the database of a run or a file of another tool."""
    path = Path(path)
    if path.name.endswith(DATABASE):
        return StoredOutputs(path)
    kind = kind_of_file(path) if columns is None else None
    if kind in OWN_LINES and not is_packed(path):
        return PredictionFile(path)
    return predictions_of(path, columns)


# Documents are a list, or columns of ids, texts and scores.
_LONGEST = (
    "SELECT max(coalesce(json_array_length(reply, '$.retrieved.doc_id'), "
    "json_array_length(reply, '$.retrieved'))) FROM call WHERE kind = 'answer'"
)


class StoredOutputs:
    """The outputs of a run, read from its database one by one; one that did not finish has them too."""

    timed = True

    def __init__(self, path: Path) -> None:
        self._database = Database.read(path)
        self._size = self._database.outcomes().total()
        self.longest: int = self._database.select(_LONGEST)[0][0] or 0

    def __len__(self) -> int:
        return self._size

    def check_known_samples(self, known: Container[str]) -> None:
        """Raise DataError if there are outputs of samples that the dataset does not have."""
        ids = self._database.stream("SELECT DISTINCT sample FROM call WHERE kind = 'answer'")
        check_known_samples((name for (name,) in ids), known, self._database.path.name)

    def outputs(self, sample_ids: Iterable[str]) -> Iterator[SystemOutputs]:
        """Yield an output for each sample, in order; a sample without one has failed."""
        for sample_id in sample_ids:
            row = self._database.answers([sample_id]).get(sample_id)
            where = self._database.path.name
            yield missing_output() if row is None else read_prediction(msgspec.json.decode(row[1]), where)[1]


@dataclass
class PredictionRecord(_WrittenRecord):
    """A run of predictions that are scored: no system is called.

    The dataset is read once: that it fits the plan and the predictions is checked at its end, before anything
    is stored. `known` are the ids that predictions may have, if not those of the dataset. `force` replaces
    stored results. `on_scored` is called for each sample that is stored, with whether its output has failed.
    """

    state: RunState
    dataset: EvaluationDataset
    predictions: Predictions
    _: KW_ONLY
    system_name: str
    limit: int | None = None
    force: bool = False
    on_scored: Callable[[bool], None] | None = None
    contexts_as_retrieved: bool = False
    known: Container[str] | None = None

    def __post_init__(self) -> None:
        self.plan, self.survey, self._opened = EvaluationPlan(), Survey(), ExitStack()
        self.evaluation_id, self.started_at = self.state.evaluation_id, utc_text(now())
        self.names_documents = self.predictions.longest > 0 or self.contexts_as_retrieved

    def __enter__(self) -> PredictionRecord:
        draft = drafted(self.state, force=self.force, match=plan_match(self.plan))
        self._writer = self._opened.enter_context(draft)
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def pairs(self) -> Iterator[Pair]:
        """Yield each sample with its prediction, in the order of the dataset."""
        waiting: list[EvaluationSample] = []

        def ids() -> Iterator[str]:
            for sample in self._surveyed():
                waiting.append(sample)
                yield sample.sample_id

        # `outputs` takes one id per output that it yields, so at most one sample waits.
        for output in self.predictions.outputs(ids()):
            sample = waiting.pop()
            yield sample, with_contexts(sample, output) if self.contexts_as_retrieved else output

    def _surveyed(self) -> Iterator[EvaluationSample]:
        """Yield the samples that are scored; count all of the dataset, and check what was counted."""
        survey = self.survey = Survey.new(self.plan)
        samples = iter(self.dataset)
        for sample in islice(samples, self.limit):
            survey.add(sample)
            yield sample
        for sample in samples:
            survey.add(sample)
        self.predictions.check_known_samples(survey.ids if self.known is None else self.known)
        survey.check_unique(self.dataset.name)
        survey.forget_ids()
        self.plan.validate_survey(survey)

    def add(self, batch: Batch, scores: Mapping[str, Scores]) -> None:
        super().add(batch, scores)
        if self.on_scored is not None:
            for output in batch.outputs:
                self.on_scored(output.error is not None)


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
