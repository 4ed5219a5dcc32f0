"""Runs on the disk whose calls are stored as they arrive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from ..calls.policy import PASSING, Limits
from ..core.dataset import EvaluationDataset, canonical_json
from ..core.plan import Survey
from ..core.rag_interface import name_of
from ..core.runner import AueporaEvaluator
from ..core.scoring import SIZE, Pair, now, utc_text
from ..core.systems.resources import counted_usage, failed_attempts, is_from_cache
from ..core.types import EvaluationRun, EvaluationSample, SystemOutputs
from ..errors import StorageError
from ..io.files import remove_leftovers
from .cache import CallCache, call_key
from .database import ANSWER, ANSWERED, FAILED, MAY_PASS, CallRow, Database, decoded_output
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
from .writer import RunWriter, WrittenRecord, call_reply, plan_match


@dataclass
class StoredRecord(WrittenRecord):
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

    def store(self, sample: EvaluationSample, output: SystemOutputs) -> None:
        """Store an output, in the cache too if it is a new answer."""
        reply, is_new = call_reply(sample.sample_id, output), not is_from_cache(output)
        usage = counted_usage(output) if is_new else None
        row = CallRow(self._key(sample), ANSWER, sample.sample_id, outcome_of(output), reply, usage)
        self._database.add_call(row)
        if self.cache is not None and is_new and row.outcome == ANSWERED:
            self.cache.add(row._replace(sample=None, usage=None))

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
        output = None if self.cache is None else self.cache.answer(self._key(sample))
        if output is None:
            return False
        self.store(sample, output)
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
        return decoded_output(reply, self.state.database.name)

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
