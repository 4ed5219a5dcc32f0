"""Run a system on a dataset, score its outputs, store the run.

More settings are keys of the plan file (--config): docs/commands.md#plan-files

  auepora run --dataset demo --system auepora_eval.demo.systems:bm25
"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..calls.keys import without_secrets
from ..calls.streams import stdout_for_results
from ..core.dataset import first_samples
from ..core.metrics_base import import_metrics, metric_file
from ..core.plan import Survey
from ..core.rag_interface import name_of
from ..core.runner import evaluate
from ..core.scoring import Tally, short_id
from ..core.settings import PILOT, SETTINGS, SPLITS_FOLDER, STORED, RunSettings, as_names, out_flag
from ..errors import (
    AccessRefusedError,
    AueporaError,
    DataError,
    EvaluationError,
    InterruptedRunError,
    NotFoundError,
    PlanError,
    RunStoppedError,
    StorageError,
)
from ..io.config.plan import planned
from ..io.results.document import is_ours
from ..store.state import read_results_head, retried_of, unfinished_ids, variant_of
from ..store.storage import EvaluationResultsStorage
from . import echo
from .common import (
    check_has_samples,
    coverage_code,
    default_plan,
    evaluated_dataset,
    exit_code,
    named_plan,
    notes_printed_once,
    progress,
    say_failures,
    say_finished,
    say_run_summary,
    say_stored,
)
from .flags import (
    JUDGED_METRIC,
    add_settings,
    call_cache,
    evaluator_of,
    named_system,
    stop_rule,
)
from .interrupts import Signalled, StopNow, finishing_first

if TYPE_CHECKING:
    from ..calls.policy import Limits
    from ..core.dataset import EvaluationDataset
    from ..core.plan import EvaluationPlan
    from ..decide.pilot import Pilot
    from ..judges.judge import Judge
    from ..store.record import StoredRecord
    from ..store.state import RunState

T = TypeVar("T")
_MOST_SHOWN = 5  # ids in a message

# Flags that say what the run is: a finished run that is resumed is compared with them.
_IDENTIFY = (
    *("dataset", "columns", "convert", "dataset_type", "system", "metrics", "match", "config"),
    *("top_k", "limit"),
)
_FLAGS = (
    *("dataset", "format", "columns", "convert", "dataset_type", "system", "metrics", "match", "top_k"),
    *("limit", "judge", "config", "estimate", "concurrency", "executor", "timeout", "budget_calls", "cache"),
    *("api_key_env", "min_coverage"),
)


def add_arguments(parser: ArgumentParser) -> None:
    add_settings(parser, *_FLAGS)
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--resume", metavar="ID", nargs="?", const="", help=SETTINGS["resume"].help)
    add_settings(either, "force")
    add_settings(parser, "retry_failed", "keep_going", "id", "out", "json")


def run(args: Namespace) -> int:
    _check_flags(args)
    plan = planned(args.config)
    settings = RunSettings.merged(plan, vars(args))
    storage = EvaluationResultsStorage(settings.out)
    is_complete = False
    if settings.resume is not None:
        # The header of the run has its settings, so that the flags need not be typed again.
        state = _resumed(settings, storage)
        own = {"id": state.evaluation_id}
        is_complete = state.is_complete(retry_failed=settings.retry_failed)
        is_compared = any(getattr(args, name) is not None for name in _IDENTIFY)
        if is_complete and not is_compared:  # the dataset and the system may be gone by now
            return _say_complete(RunSettings.merged(_configuration(state), plan, vars(args), own), storage)
        settings = RunSettings.merged(_stored_settings(storage, state), plan, vars(args), own)
    if settings.dataset_type is not None and settings.dataset is None:
        settings.dataset = SPLITS_FOLDER
    check_present(settings)
    judge, record = prepared(settings, storage)
    if is_complete:
        record.check_same_run()
        return _say_complete(settings, storage)
    command = RunCommand(settings, storage, record, judge)
    return command.estimate() if settings.estimate else command.run()


def prepared(
    settings: RunSettings,
    storage: EvaluationResultsStorage,
    *,
    configuration: dict[str, Any] | None = None,
) -> tuple[Judge | None, StoredRecord]:
    """Return the judge and the run that the settings describe; nothing is called yet.

    The run keeps its settings unless another configuration is given.
    """
    dataset = evaluated_dataset(settings)
    if settings.limit is not None:
        dataset = first_samples(dataset, settings.limit)
    system = named_system(settings)  # first: its file may define metrics of the plan
    plan, survey = _planned(settings, dataset)
    judge = None
    if settings.judge is not None:
        from .judge import named_judge

        judge = named_judge(settings)
    evaluator = evaluator_of(settings, system, plan, configuration or settings.as_stored())
    # Chosen before the run starts: the message of an interrupted run has to name it.
    settings.id = settings.id or storage.free_id(short_id(name_of(evaluator.system)))
    return judge, storage.record(
        evaluator,
        dataset,
        evaluation_id=settings.id,
        resume=settings.resume is not None,
        retry_failed=settings.retry_failed,
        force=settings.force,
        survey=survey,
        stop_rule=stop_rule(settings, plan, storage),
    )


def _planned(settings: RunSettings, dataset: EvaluationDataset) -> tuple[EvaluationPlan, Survey]:
    """Return the plan, and what the dataset has."""
    for file in settings.metric_files or ():
        import_metrics(Path(file))
    files = (metric_file(name) for name in as_names(settings.metrics))
    settings.metric_files = sorted({str(file) for file in files if file} | {*(settings.metric_files or ())})
    named = named_plan(settings)
    survey = Survey.of(dataset, named)
    check_has_samples(settings.dataset or "", survey.size)
    return named or default_plan(settings, survey.examples, settings.top_k), survey


class RunCommand:
    """The evaluation, with its progress bar, its signals, and the messages about how it ended."""

    def __init__(
        self,
        settings: RunSettings,
        storage: EvaluationResultsStorage,
        record: StoredRecord,
        judge: Judge | None = None,
        resume: str = "",
    ) -> None:
        self.settings, self.storage, self.record, self.judge = settings, storage, record, judge
        self.evaluator, self.size = record.evaluator, record.survey.size
        out = out_flag(settings.out)
        self.resume = resume or f"auepora run --resume {shlex.quote(settings.id or '')}{out}"
        self.has_started = False  # before that, what is in the folder may be another process's
        self.display = ExitStack()  # the progress bar
        record.on_start = self._start

    def run(self) -> int:
        """Evaluate, judge, print and store the run; return the exit code."""
        finished, code = self.called(lambda: evaluate(self.evaluator, self.record))
        if finished is None:
            return code
        cache = self.record.cache
        if self.judge is not None:
            from .judge import judge_stored

            judged = judge_stored(self.judge, self.settings, self.storage, finished.evaluation_id)
            finished = replace(finished, results=[*finished.results, *judged])
        if cache is not None:
            echo.note(f"cache: {cache.used} of {self.size} answers reused")
        return say_finished(self.settings, self.storage, finished, self.record.tally)

    def estimate(self) -> int:
        """Call a few samples and print what the whole run takes; return the exit code."""
        pilot, code = self.pilot()
        return code if pilot is None else self.say_estimate(pilot)

    def pilot(self, *, scored: bool = False) -> tuple[Pilot | None, int]:
        """Return what a few calls took, or None and the exit code if they were interrupted."""
        from ..decide.pilot import run_pilot

        return self.called(lambda: run_pilot(self.record, scored=scored))

    def say_estimate(self, pilot: Pilot) -> int:
        """Print what the whole run takes and the command that resumes it; return the exit code."""
        from ..decide.pilot import estimate_table, estimated

        settings, concurrency = self.settings, getattr(self.evaluator.executor, "concurrency", 1)
        estimates = estimated(pilot, self.evaluator.policy or settings.call_policy(), concurrency)
        if settings.json:
            named = {name: one and one._asdict() for name, one in estimates.items()}
            counts = {"samples": pilot.size, "pilot": len(pilot.uses), "failed": pilot.failed}
            named_run = {"evaluation_id": settings.id, **counts}
            echo.say_json({**named_run, "estimate": named, "resume": self.resume})
        else:
            echo.show(estimate_table(pilot, estimates, concurrency))
            if self.judge is not None:
                echo.say_words(
                    "The calls of the judge are not included: auepora judge RUN --dry-run counts them."
                )
            say_failures(Tally().add(output for _, output in pilot.pairs))
            echo.say(f"Next: {self.resume}")
        least, every = settings.min_coverage, "every call failed"
        return coverage_code(pilot.failed, len(pilot.uses), least, "the calls", none=every)

    def called(self, work: Callable[[], T]) -> tuple[T | None, int]:
        """Do the work with its cache, its progress bar and its signals; None if it was interrupted."""
        cache = self.record.cache = call_cache(self.settings)
        try:
            with cache or nullcontext(), finishing_first(self.evaluator.stop) as signalled:
                return self._guarded(work, signalled), signalled.exit_code
        except StopNow as stop:  # the second signal came while the run was being closed
            return None, 128 + int(stop.args[0])

    def _guarded(self, work: Callable[[], T], signalled: Signalled) -> T | None:
        try:
            with self.display, stdout_for_results(), notes_printed_once(as_json=self.settings.json):
                return work()
        except BaseException as error:
            # Before the messages: a further signal must not cut off the command that resumes the run.
            signalled.is_heeded = True
            is_interrupted = isinstance(error, InterruptedRunError | StopNow)
            self._say_stopped(signalled.reason if is_interrupted else error)
            if not is_interrupted:
                raise
            return None

    def _start(self, outcomes: Counter[int], limits: Limits) -> None:
        """Report what is kept of earlier sessions, and show the progress of the rest."""
        self.has_started = True
        kept = _say_resuming(outcomes, limits, self.size, retry_failed=self.settings.retry_failed)
        calls = PILOT if self.settings.estimate else self.size - kept
        bar = progress(calls, name_of(self.evaluator.system))
        self.evaluator.on_output = self.display.enter_context(bar)

    def _say_stopped(self, reason: object) -> None:
        """Print what is kept of a run that has started and stopped, and the command that resumes it."""
        state, settings = self.record.state, self.settings
        try:
            kept = state.answered if self.has_started else None
            is_over = kept is None or state.is_complete()
        except AueporaError:
            kept, is_over = None, True  # the storage itself failed, and the error reports it
        if not is_over and (kept or not isinstance(reason, AccessRefusedError)):
            echo.note(f"kept: {kept} outputs in {state.database}")
            if state.has_results:
                echo.note(
                    f"The results of {echo.one_line(state.evaluation_id)} stay until there are new ones."
                )
            # Failures that would happen again are kept: after a fix of the system they are called again.
            again = " --retry-failed" if isinstance(reason, EvaluationError) else ""
            echo.note(f"resume: {self.resume}{again}")
            if isinstance(reason, RunStoppedError) and "budget" in str(reason) and not again:
                echo.note("The budget is used up: resume with a larger one.")
        if settings.json and isinstance(reason, str | RunStoppedError):
            # The one document that --json prints for a run without results.
            echo.say_json(
                {
                    "evaluation_id": settings.id,
                    "stopped": without_secrets(str(reason)).removeprefix("stopped: "),
                    "kept": kept,
                    "samples": self.size,
                    "resume": self.resume,
                }
            )


def _check_flags(args: Namespace) -> None:
    """Raise PlanError if flags contradict each other."""
    if args.resume is None and args.retry_failed:
        raise PlanError("--retry-failed needs a run to resume: add --resume ID.")
    if args.resume and args.id and args.resume != args.id:
        raise PlanError(f"--id {args.id:.80} contradicts --resume {args.resume:.80}: leave one of them out.")


def check_present(
    settings: RunSettings, fix: str = "Give the flag, or put it into the plan (--config)."
) -> None:
    """Raise PlanError if there is no dataset or no system."""
    for name in ("dataset", "system"):
        if not getattr(settings, name):
            raise PlanError(f"--{name} is missing. {fix}")


def _resumed(settings: RunSettings, storage: EvaluationResultsStorage) -> RunState:
    """Return the state of the run to resume, which --resume, --id or the plan names."""
    name = settings.resume or settings.id
    if not name:
        raise PlanError(f"--resume needs a run id: --resume ID. {_unfinished(storage)}".rstrip())
    return storage.state(name)


def _configuration(state: RunState) -> Mapping[str, Any]:
    """Return the configuration in the header of a run, as far as it has one."""
    configuration = (state.header or {}).get("configuration")
    return configuration if isinstance(configuration, Mapping) else {}


def _stored_settings(storage: EvaluationResultsStorage, state: RunState) -> dict[str, Any]:
    """Return the settings in the header of a run; an error if `auepora run` did not start it."""
    name, header = f"{state.evaluation_id:.80}", state.header
    if header is None:
        if state.has_results:
            what = (
                f"Run {name!r} is complete and was not made by auepora run, so the flags cannot be compared."
            )
            raise StorageError(f"{what} Leave the other flags out, or choose another id.")
        what = f"No run {name!r} to resume in {storage.results_directory}."
        raise NotFoundError("", what, fix=_unfinished(storage) or "See auepora list.")
    configuration = _configuration(state)
    if variant := variant_of(configuration):
        what = f"is variant {variant[1]!r:.80} of the experiment {variant[0]!r:.80}."
        out = out_flag(str(storage.results_directory))
        fix = f"Resume the experiment: auepora experiment FILE --resume{out}"
        raise DataError(f"--resume {name}", what, fix=fix)
    if not (configuration.get("dataset") and configuration.get("system")):
        what = "was started in Python, so its header names no dataset and no system."
        raise DataError(f"--resume {name}", what, fix="Resume it there: resume=True.")
    stored = {key: configuration.get(key) for key in STORED}
    metrics = list(header.get("metrics") or ()) or None
    return {**stored, "top_k": header.get("top_k"), "seed": header.get("seed"), "metrics": metrics}


def _unfinished(storage: EvaluationResultsStorage) -> str:
    names = unfinished_ids(storage.results_directory)
    return f"Unfinished: {', '.join(names[:_MOST_SHOWN])}." if names else ""


def _say_complete(settings: RunSettings, storage: EvaluationResultsStorage) -> int:
    """Report that a run is complete, and return the exit code that it had."""
    name = settings.id or ""
    failed = storage.state(name).remaining(retry_failed=True)
    more = f" {failed} failures would happen again; --retry-failed retries them anyway." if failed else ""
    if not _judge_the_rest(settings, storage):
        echo.note(f"Run {echo.one_line(name)!r} is already complete; nothing to resume.{more}")
    if settings.json:
        echo.say_json(storage.load_results(name))
    if not is_ours(read_results_head(storage.find(name))):
        return 0  # another tool wrote the results: they have no coverage that a minimum could apply to
    stored = storage.load_summary(name)
    return exit_code(stored, storage.load_tally(name), settings.min_coverage)


def _judge_the_rest(settings: RunSettings, storage: EvaluationResultsStorage) -> bool:
    """Judge a run that was stopped after its last answer; return whether there was something to judge."""
    name = settings.id or ""
    if settings.judge is None:
        return False
    known = {result.name for result in storage.load_summary(name).results}
    settings.judge_metrics = [one for one in settings.judge_metrics or [JUDGED_METRIC] if one not in known]
    if not settings.judge_metrics:
        return False
    from .judge import judge_stored, named_judge

    echo.note(f"Run {echo.one_line(name)!r} has all answers; the judge is asked what is missing.")
    judge_stored(named_judge(settings), settings, storage, name)
    finished = storage.load_run(name)
    if not settings.json:
        say_run_summary(finished, storage.load_tally(name), is_named=True)
    say_stored(storage.find(name))
    return True


def _say_resuming(outcomes: Counter[int], limits: Limits, size: int, *, retry_failed: bool) -> int:
    """Report the outputs and the spending of earlier sessions; return how many samples are not called."""
    total, retried = outcomes.total(), retried_of(outcomes, retry_failed=retry_failed)
    if total:
        more = f"; {retried} of them failed and are retried" if retried else ""
        echo.note(f"resuming: {total} of {size} samples have an output{more}")
    for name, amount in limits.spent.used(limits.policy).items() if total else ():
        if (most := getattr(limits.policy, name)) is not None:
            unit = {"max_calls": "calls", "max_tokens": "tokens"}.get(name, "US dollars")
            echo.note(f"budget: {amount:,.10g} of {most:,.10g} {unit} were spent before")
    return total - retried
