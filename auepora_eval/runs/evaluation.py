"""Evaluations on the disk: runs with a journal, scored predictions, and a cache of answers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from ..core.dataset import EvaluationDataset, canonical_json, dataset_fingerprint
from ..core.plan import EvaluationPlan, Survey
from ..core.rag_interface import with_contexts
from ..core.runner import AueporaEvaluator, score_record
from ..core.scores import Batch, Scores
from ..core.scoring import Tally, now, utc_text
from ..core.systems.call import CACHED, is_from_cache
from ..core.systems.resources import checked_prices
from ..core.types import EvaluationRun, EvaluationSample, SystemOutputs
from ..core.verdict import Stopping
from ..errors import StorageError
from ..io.detect import kind_of_file
from ..io.outputs import PredictionFile
from ..read.records import prediction_record, read_prediction
from .journal.identity import (
    check_same_identity,
    facts_of_results,
    identity_of,
    program_was_changed,
    run_facts,
)
from .journal.journal import (
    JOURNAL,
    Damage,
    Header,
    Journal,
    good_records,
    journal_line,
    opened_journal,
    read_header,
    record_of,
    spent_before,
    stored_places,
)
from .log import RunLog, logged
from .stopping import sequence_results
from .store.state import RunState, read_results

if TYPE_CHECKING:
    from .journal.journal import JournalPlaces
    from .store.state import RunWriter

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


@dataclass
class StoredRecord:
    """A run on the disk (a `core.runner.RunRecord`): outputs go to its journal, scores to its writer.

    With `resume` outputs are kept, and so are failures that would happen again. Other failures are retried
    (`retry_failed`: all of them). With a `stop_rule` samples run in random order until its goals are
    decided, and the run has only those. `on_start` is called with the outputs of earlier sessions, after
    the run is locked and before the first call.
    """

    state: RunState
    evaluator: AueporaEvaluator
    dataset: EvaluationDataset
    resume: bool = False
    retry_failed: bool = False
    force: bool = False
    cache: OutputCache | None = None
    stop_rule: StopRule | None = None
    survey: Survey = None  # type: ignore[assignment]  # made by __post_init__ if it is not given
    started_in: str | None = None  # the folder that the files of the run are named from
    on_start: Callable[[JournalPlaces | None], None] | None = None

    tally: Tally = field(init=False)
    started_at: str = field(init=False)
    journal: Journal = field(init=False)
    _places: JournalPlaces | None = field(init=False, default=None)
    _watch: Watch | None = field(init=False, default=None)
    _stack: ExitStack = field(init=False, default_factory=ExitStack)

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

    def facts(self) -> Header:
        """Return what a run must have in common with the one that it resumes."""
        stop_when = None if self.stop_rule is None else self.stop_rule.as_dict()
        return run_facts(self.evaluator, self.dataset, self.survey, stop_when, self._identity)

    def check_same_run(self) -> None:
        """Raise StorageError if the stored run, which is complete, is not of this plan, data and system.

        A program that was changed since is only a warning.
        """
        current = self.facts()
        if self.state.has_header:
            before = read_header(self.state.folder)
        else:  # its outputs were scored, or it was saved without a journal
            before = facts_of_results(read_results(self.state.path), current)
        check_same_identity(before, current, self.state.folder)
        program_was_changed(
            before, current, "after this run, whose results are older. To measure it now, choose another id."
        )

    def __enter__(self) -> StoredRecord:
        # A run with results may be resumed if something is left to do: then its results are replaced.
        self._replaces = self.resume and not self.state.is_complete(retry_failed=self.retry_failed)
        if not self._replaces:
            self.state.check_no_results(force=self.force)
        if self.stop_rule is not None:
            self._watch = self.stop_rule.watch(self.evaluator, self.dataset, self.survey.sha256)
        is_resumed = self.resume and self.state.has_header
        policy = self.evaluator.policy if is_resumed else None
        self.evaluator.spent_before = {} if policy is None else spent_before(self.state.folder, policy)
        header = {"evaluation_id": self.evaluation_id, "begun_at": utc_text(now()), **self.facts()}
        self.journal = self._opened_journal(header)
        try:
            self._start(header)
        except BaseException as error:
            # `with` leaves only what it has entered: without this the run would stay locked.
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def _start(self, header: Mapping[str, Any]) -> None:
        """Open the log and take the outputs of earlier sessions and of the cache."""
        self._header = header
        self.started_at = str(self.journal.header["begun_at"])
        places = self._places = self.journal.places
        self.evaluator.has_answers = places is not None and len(places) > sum(places.failed.values())
        kept = _kept(places, retry_failed=self.retry_failed) if self.resume else None
        log = RunLog(self.state.folder, restart=not self.resume)
        if self.on_start is not None:
            self.on_start(places)
        self._stack.enter_context(logged(self.evaluator, log, header, samples=self.survey.size, kept=kept))
        if self.force and not self.resume:
            self.state.remove_results()  # they were made of outputs that are discarded
        if self.cache is not None:
            self._add_to_cache(self.cache)

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        try:
            self._stack.__exit__(kind, *error)
        finally:
            # The journal last: it holds the lock, under which the log and the results are written.
            self.journal.close("stopped" if kind else "finished")

    def _opened_journal(self, header: Mapping[str, Any]) -> Journal:
        if not self.resume:
            return Journal.create(self.state.folder, header, force=self.force)
        journal = Journal.resume(self.state.folder, header, replaces=self.state.outputs_sha256())
        # Under the lock of the run: no other process can start to write these files meanwhile.
        self.state.remove_leftovers()
        return journal

    def _add_to_cache(self, cache: OutputCache) -> None:
        """Add the answers of earlier sessions to the cache."""
        places = self._places
        # Only answers of the current program may go to its cache.
        programs = {self.journal.header.get("program_sha256"), *(places.programs if places else ())}
        if places is not None and programs == {self._header.get("program_sha256")}:
            cache.add_all(places.pairs(sample for sample in self.dataset if sample.sample_id in places))

    def _is_done(self, sample: EvaluationSample) -> bool:
        places = self._places
        return places is not None and places.is_done(sample.sample_id, retry_failed=self.retry_failed)

    def answered(self) -> Iterator[Pair]:
        """Yield the samples with an output of an earlier session that are not called again."""
        if self._places is not None:
            yield from self._places.pairs(sample for sample in self.dataset if self._is_done(sample))

    def missing(self) -> Iterator[EvaluationSample]:
        """Yield the samples without an output, until the goals of the stop rule are decided."""
        watch = self._watch
        for sample in self.dataset if watch is None else watch.samples():
            if watch is not None and watch.clear:
                return
            if self._is_done(sample):
                if watch is not None and self._places is not None:
                    # A resumed run replays its outputs in the same random order, as if it had never stopped.
                    watch.tell(sample, next(self._places.outputs([sample.sample_id])))
            elif not self._is_cached(sample):
                yield sample

    def _is_cached(self, sample: EvaluationSample) -> bool:
        """Take the output of a sample from the cache, if it is there."""
        output = None if self.cache is None else self.cache.get(sample)
        if output is None:
            return False
        # Not waited for: scoring starts only once everything that was submitted is on the disk.
        self.journal.submit(sample.sample_id, output)
        if self.evaluator.on_output is not None:
            self.evaluator.on_output(sample, output)
        if self._watch is not None:
            self._watch.tell(sample, output)
        return True

    def keep(self, sample: EvaluationSample, output: SystemOutputs) -> None:
        """Pass on an output, which is in the journal by now."""
        if self._watch is not None:
            self._watch.tell(sample, output)
        if self.cache is not None:
            self.cache.add(sample, output)

    @property
    def names_documents(self) -> bool:
        """Return whether an output has documents. Early stopping has watched the plan as it is."""
        return self._watch is not None or self._outputs().longest > 0

    def _outputs(self) -> JournalPlaces:
        """Return where the outputs are, once all of them are in the journal."""
        if not hasattr(self, "_writer"):
            self._start_scoring()
        if self._places is None:
            raise StorageError(f"{self.state.folder} has lost its journal.")
        return self._places

    def _start_scoring(self) -> None:
        self.journal.check_not_lost()
        if self._watch is not None:
            self._used = self._watch.used(self.dataset)
        self.journal.places = self._places = None  # those of a million samples take 200 MB
        self._writer: RunWriter = self._stack.enter_context(
            self.state.writer(
                force=self.force or self._replaces,
                with_outputs=False,
                expected=self.survey.size if self._watch is None else 0,
            )
        )
        self.tally = self._writer.tally
        self._places = self.journal.undamaged_places()

    def pairs(self) -> Iterator[Pair]:
        """Yield each sample with its output in the journal, in the order of the dataset."""
        places = self._outputs()
        for sample, output in places.pairs(self._used):
            if output.error is not None and sample.sample_id not in places:
                raise StorageError(
                    f"{self.journal.path} has no output of sample {sample.sample_id!r:.80} any more. Nothing "
                    "is stored. Resume the run (--resume, resume=True) to call it again."
                )
            yield sample, output

    def add(self, batch: Batch, scores: Mapping[str, Scores]) -> None:
        """Write the scores of further samples."""
        self._writer.add(batch, scores)

    def fingerprint(self) -> str:
        """Return the fingerprint of the samples that the run has."""
        return self.survey.sha256 if self._used is self.dataset else dataset_fingerprint(self._used)

    def finish(self, run: EvaluationRun) -> None:
        """Write the results file."""
        if self._watch is not None:
            run.stopping = self._watch.outcome()
            run.results = sequence_results(self.evaluator.plan.metrics, run.results, run.stopping)
        programs = [header.get("program_sha256") for header in (self.journal.header, self._header)]
        if all(programs) and programs[0] != programs[1]:  # changed between two sessions
            run.configuration["programs_sha256"] = programs
        self.journal.check_not_lost()  # another process may have taken the run while this was computed
        self._writer.finish(run)


def _kept(places: JournalPlaces | None, *, retry_failed: bool) -> int:
    """Return how many samples are not called again."""
    if places is None:
        return 0
    return len(places) - places.failed[True] - (places.failed[False] if retry_failed else 0)


# Predictions in a file, scored on a dataset in a file. Neither has to fit into memory.


class Predictions(Protocol):
    """Outputs that are looked up by id: in a file of predictions, or in the journal of a run."""

    longest: int

    def __len__(self) -> int: ...

    def check_known_samples(self, known: Container[str]) -> None: ...

    def outputs(self, sample_ids: Iterable[str]) -> Iterator[SystemOutputs]: ...


def predictions_at(path: str | Path, columns: Mapping[str, str] | None = None) -> Predictions:
    """Return the predictions in a file, which may be the journal of a run or a file of another tool."""
    path = Path(path)
    places = stored_places(path.parent) if path.name == JOURNAL else None
    if places is not None:
        return places
    kind = kind_of_file(path) if columns is None else None
    if kind == "predictions":  # as nearly always: the readers of other tools' files are not imported
        return PredictionFile(path)
    from ..io.outputs import FOREIGN_KINDS, predictions_of

    if kind is not None and kind not in FOREIGN_KINDS:
        return PredictionFile(path)
    return predictions_of(path, columns)


class PredictionRecord:
    """A run of predictions that are scored (a `core.runner.RunRecord`): no system is called.

    The dataset is read once: that it fits the plan and the predictions is checked at its end, before anything
    is stored. `known` are the ids that predictions may have, if not those of the dataset. `force` replaces
    stored results. `on_scored` is called for each sample that is stored, with whether its output has failed.
    """

    journal = None

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
        self._stack = ExitStack()

    def __enter__(self) -> PredictionRecord:
        expected = min(len(self.predictions), self._limit or sys.maxsize)
        self._writer = self._stack.enter_context(self.state.writer(force=self._force, expected=expected))
        self.tally = self._writer.tally
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        self._stack.__exit__(kind, *error)

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
        self.plan.validate_counts(survey.counts, survey.size, survey.unanswerable)

    def add(self, batch: Batch, scores: Mapping[str, Scores]) -> None:
        """Write the scores of further samples."""
        lines = self._lines[:] if len(self._lines) == len(batch) else None
        self._lines.clear()
        self._writer.add(batch, scores, lines)
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
        """Write the results file."""
        self._writer.finish(run)


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


# A cache of answers for later runs with the same system, sample and top_k.

_KEY = b"auepora.cache/1"
_SUFFIX = ".cache.jsonl"


class OutputCache:
    """A folder of outputs. Only answers are kept: a failure is never reused.

    `identity` distinguishes systems: name, version, text of the program. Each run writes a file of its own,
    so that several may use the folder at once. A damaged line is skipped.
    """

    def __init__(self, folder: str | Path, identity: Sequence[Any], top_k: int) -> None:
        self._folder = Path(folder).absolute()  # a system may change the current folder
        self._system = canonical_json([*identity, top_k])
        self._places: dict[bytes, tuple[Path, int]] = {}
        self._file: BinaryIO | None = None
        self.used = 0
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{self._folder} cannot be a cache: {error.strerror or error}.") from error
        # Keys and offsets only: the outputs of a large cache do not fit into memory.
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            with opened_journal(path) as file:
                for offset, record in good_records(file, _KEY, Damage()):
                    self._places[bytes.fromhex(record["key"])] = (path, offset)

    def __enter__(self) -> OutputCache:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                if kind is None:  # otherwise the error of the block is raised
                    raise self._unwritable(error) from error

    def get(self, sample: EvaluationSample) -> SystemOutputs | None:
        """Return an earlier answer of the system to this sample; None if there is none."""
        path, offset = self._places.get(self._key(sample), (None, 0))
        if path is None:
            return None
        with opened_journal(path) as file:
            file.seek(offset)
            record = record_of(file.readline(), _KEY)
        if record is None:
            return None
        self.used += 1
        output = read_prediction(record["output"] | {"sample_id": sample.sample_id}, path.name)[1]
        output.extra[CACHED] = True
        return output

    def add(self, sample: EvaluationSample, output: SystemOutputs) -> None:
        """Add an answer. Failures and answers from the cache are left out."""
        if output.error is not None or is_from_cache(output):
            return
        record = {"key": self._key(sample).hex(), "output": prediction_record(sample.sample_id, output)}
        try:
            if self._file is None:
                name = f"{os.getpid()}-{os.urandom(6).hex()}{_SUFFIX}"
                self._file = (self._folder / name).open("xb")
            self._file.write(journal_line(record, _KEY))
            self._file.flush()  # the journal has it by now: a kill must not lose it here
        except OSError as error:
            raise self._unwritable(error) from error

    def add_all(self, pairs: Iterable[tuple[EvaluationSample, SystemOutputs]]) -> None:
        """Add the answers that the cache does not have yet."""
        for sample, output in pairs:
            if self._key(sample) not in self._places:
                self.add(sample, output)

    def _unwritable(self, error: OSError) -> StorageError:
        return StorageError(f"{self._folder} cannot be written: {error.strerror or error}.")

    def _key(self, sample: EvaluationSample) -> bytes:
        # The whole sample: an edited question must be called again. 16 bytes, since all keys are in memory.
        return blake2b(self._system + b"\n" + canonical_json(sample), digest_size=16).digest()
