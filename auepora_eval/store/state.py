"""The files of a run, and how far it is: new, unfinished or complete."""

from __future__ import annotations

import glob
import os
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..core.settings import DEFAULT_OUT
from ..errors import AueporaError, DataError, NotFoundError, StorageError, did_you_mean, warn_user
from ..io.documents import read_document
from ..io.files import file_name
from ..io.results.document import check_version
from ..read.text import kind_of, parse_document
from .database import FAILED, JUDGE, MAY_PASS, Database, remove_database
from .database import SUFFIX as DATABASE
from .lock import locked, writer_of

SUFFIX = ".results.json"
YAML = (".results.yaml", ".results.yml")  # as `dataset convert` writes them; read by their path
_MOST_SHOWN = 5  # ids in an error message


@dataclass(frozen=True)
class RunState:
    """How far the run of one id is. Everything is read from the disk when it is needed."""

    runs: Path  # the folder of all runs
    evaluation_id: str

    @cached_property
    def path(self) -> Path:
        """Return the path of the results document."""
        return self.runs / f"{file_name(self.evaluation_id, 'evaluation id')}{SUFFIX}"

    @cached_property
    def database(self) -> Path:
        """Return the path of the samples, calls and scores."""
        return self.runs / f"{file_name(self.evaluation_id, 'evaluation id')}{DATABASE}"

    @property
    def has_results(self) -> bool:
        """Return whether the run has its results document."""
        return self.path.exists()

    @property
    def header(self) -> dict[str, Any] | None:
        """Return what the run is; None if no system was called for it."""
        if not self.database.exists():
            return None
        with Database.read(self.database) as database:
            header = database.meta("run")
        return header if isinstance(header, dict) else None

    def is_complete(self, *, retry_failed: bool = False) -> bool:
        """Return whether the run has its results, and resuming it would change nothing."""
        return self.has_results and not self.remaining(retry_failed=retry_failed)

    def remaining(self, *, retry_failed: bool = False) -> int:
        """Return how many samples would be called if the run were resumed.

        A run with results may have some too: an endpoint that was down for an hour leaves failures that a
        retry may fix. New answers that the results were not made of count as one.
        """
        if not self.database.exists():
            return 0
        with Database.read(self.database) as database:
            header, outcomes = database.meta("run"), database.outcomes()
            if header is None:
                return 0
            is_scored = self.has_results and is_made_of(read_results_head(self.path), database)
            finished = database.meta("finished") or {"calls": 0}
            newer = "SELECT 1 FROM call WHERE n > ? AND kind = 'answer' LIMIT 1"
            is_scored = is_scored and not database.select(newer, [finished["calls"]])
        retried = retried_of(outcomes, retry_failed=retry_failed)
        # A run that stops early does not need its last samples.
        missing = 0 if "stop_when" in header else max(0, header["samples"] - outcomes.total())
        return retried + missing + (self.has_results and not is_scored)

    @property
    def answered(self) -> int | None:
        """Return how many samples have an answer or a failure; None if the run was not started."""
        if not self.database.exists():
            return None
        with Database.read(self.database) as database:
            return database.outcomes().total()

    def check_free(self, *, force: bool = False) -> None:
        """Raise StorageError if there are results, or answers without results, that must not be replaced."""
        if force:
            return
        if self.has_results:
            raise StorageError(
                f"{self.path} exists already. Choose another id, or overwrite it: --force "
                "(in Python force=True)."
            )
        if kept := self.answered:
            raise StorageError(
                f"{self.database} has {kept:,} answers of a run that did not finish. Resume it (--resume, "
                "resume=True), choose another id, or discard them (--force, force=True)."
            )

    def warn_of_loss(self) -> None:
        """Warn of the answers, verdicts and labels that are lost when the run is replaced by force."""
        if not self.database.exists():
            return
        with Database.read(self.database) as database:
            kept = database.outcomes().total() if database.meta("run") is not None else 0
            ((verdicts,),) = database.select("SELECT count(*) FROM call WHERE kind = ?", [JUDGE])
            labels = database.select("SELECT count(*) FROM label")[0][0]
        probes = len(self.interventions())
        lost = ["the results"] if kept and self.has_results else []
        lost += [f"{kept:,} answers"] if kept else []
        lost += [f"{verdicts:,} verdicts of judges"] if verdicts else []
        lost += [f"{labels:,} labels of people"] if labels else []
        lost += [f"{probes} runs of its diagnosis"] if probes else []
        if lost:
            what = f"--force discards {' and '.join(lost)} of {self.evaluation_id!r:.80}."
            warn_user(what, ReplacedRunWarning)

    def remove(self) -> None:
        """Remove the run, and those that a diagnosis made of it. It must be locked by this process."""
        self.remove_interventions()
        self.path.unlink(missing_ok=True)
        remove_database(self.database)

    @property
    def calls(self) -> Path:
        """Return the file of the calls that diagnoses of the run made."""
        return self.runs / f"{self.evaluation_id}~calls.db"

    def interventions(self) -> list[RunState]:
        """Return the runs that a diagnosis made of this one."""
        files = self.runs.glob(f"{glob.escape(self.evaluation_id)}~*{SUFFIX}")
        runs = (RunState(self.runs, path.name.removesuffix(SUFFIX)) for path in files)
        return [one for one in runs if _made_of(one) == self.evaluation_id]

    def remove_interventions(self) -> None:
        """Remove what a diagnosis made of the run; StorageError if one is going on."""
        with locked(self.calls):
            for run in self.interventions():
                run.remove()
            remove_database(self.calls)


def _made_of(state: RunState) -> str:
    """Return the id of the run whose diagnosis made this one; "" if it is another run."""
    probed = (read_results_head(state.path).get("configuration") or {}).get("intervention")
    return str(probed.get("of")) if isinstance(probed, Mapping) else ""


class ReplacedRunWarning(UserWarning):
    """A run is replaced by force."""


def is_made_of(results: Mapping[str, Any], database: Database) -> bool:
    """Return whether results were made of the outputs of a database: copied, or a kill came between."""
    finished, metadata = database.meta("finished"), results.get("metadata")
    if not isinstance(finished, dict) or not isinstance(metadata, dict):
        return False
    return bool(finished.get("outputs_sha256") == metadata.get("outputs_sha256"))


def retried_of(outcomes: Counter[int], *, retry_failed: bool) -> int:
    """Return how many samples with these outcomes are called again when their run is resumed."""
    return outcomes[MAY_PASS] + (outcomes[FAILED] if retry_failed else 0)


# How `writer` writes the rows, behind the head. JSON has no line break within a text, so this is the key of
# the document itself.
ROWS_START, ROWS_END = b',\n  "query_results": [\n', b"\n  ]\n}\n"
_BLOCK = 1 << 16  # bytes


def read_results_head(path: Path) -> dict[str, Any]:
    """Return the document of a results file without its rows, which are not read if they come last."""
    head = b""
    try:
        with path.open("rb") as file:
            while (start := head.find(ROWS_START)) < 0 and (block := file.read(_BLOCK)):
                head += block
            file.seek(-len(ROWS_END), os.SEEK_END)
            is_ours = start >= 0 and file.read() == ROWS_END
    except OSError:
        is_ours = False  # read_results says what is wrong
    if is_ours:
        return _checked(parse_document(head[:start] + b"\n}", path.name), path)
    results = read_results(path)
    results.pop("query_results", None)
    return results


def read_results(path: Path) -> dict[str, Any]:
    """Return the document of a results file; DataError if it is not one, or has a later version."""
    return _checked(read_document(path), path)


def _checked(results: Any, path: Path) -> dict[str, Any]:
    if not isinstance(results, dict):
        what = f"not a results file: an object was expected, not {kind_of(results)}."
        raise DataError(path.name, what, fix="Is it the right file?")
    check_version(results, path.name)
    return results


# Unfinished runs as people see them: how far each is, and the command that resumes it.


@dataclass(frozen=True)
class Unfinished:
    """A run without results: how many of its samples have an output; None where that is unknown.

    `line` is the command that resumes it; `obstacle` says why that is not possible now.
    """

    evaluation_id: str
    begun_at: str = ""
    answered: int | None = None
    samples: int | None = None
    line: str = ""
    obstacle: str = ""
    is_running: bool = False  # a process writes to it now

    @property
    def progress(self) -> str:
        """Return the progress as "3 of 8"."""
        return " of ".join("?" if count is None else str(count) for count in (self.answered, self.samples))


def unfinished_ids(runs: Path) -> list[str]:
    """Return the ids of the runs in a folder that were started and have no results."""
    started = (path.name.removesuffix(DATABASE) for path in runs.glob(f"*{DATABASE}") if path.name[0] != ".")
    return sorted(name for name in started if not (runs / f"{name}{SUFFIX}").exists())


def unfinished_runs(runs: Path) -> list[Unfinished]:
    """Return every run of a folder that was started and has no results."""
    return [unfinished_run(RunState(runs, name)) for name in unfinished_ids(runs)]


def unfinished_run(state: RunState) -> Unfinished:
    """Return how far a run is. A run that cannot be read has an obstacle, not an error."""
    try:
        header, answered = state.header or {}, state.answered or 0
    except (AueporaError, OSError) as error:
        return Unfinished(state.evaluation_id, obstacle=str(error))
    samples, writer = header.get("samples"), writer_of(state.database)
    return Unfinished(
        state.evaluation_id,
        str(header.get("begun_at") or ""),
        answered,
        samples if isinstance(samples, int) else None,
        _resume_command(state, header.get("configuration")),
        f"It is being written by {writer}." if writer else "",
        is_running=bool(writer),
    )


def not_found(runs: Path, name: str, stored: list[str]) -> NotFoundError:
    """Return the error about a run without results: it is unfinished, or it does not exist."""
    unfinished = unfinished_ids(runs)
    if (wanted := name.removesuffix(SUFFIX)) in unfinished:
        run = unfinished_run(RunState(runs, wanted))
        what = f"run {wanted!r} is not finished: {run.progress} samples have an output."
        return NotFoundError(str(runs), what, fix=run.obstacle or f"Resume it: {run.line}")
    own = [one for one in stored if "~" not in one] or stored  # those of a diagnosis are rarely named
    hint = f"Available: {_first(own)}." if own else "It has no finished runs."
    hint = did_you_mean(name, stored, hint)
    if unfinished:
        hint += f" Unfinished: {_first(unfinished)}."
    return NotFoundError("", f"No run {name!r} in {runs}.", fix=hint)


def _first(ids: list[str]) -> str:
    return ", ".join(ids[:_MOST_SHOWN]) + (", ... (auepora list)" if len(ids) > _MOST_SHOWN else "")


def variant_of(configuration: object) -> tuple[str, str] | None:
    """Return the experiment and the variant that a run belongs to; None if it is not of an experiment."""
    about = configuration.get("experiment") if isinstance(configuration, Mapping) else None
    if not isinstance(about, Mapping) or "variant_id" not in about:
        return None
    return str(about.get("experiment_id")), str(about["variant_id"])


def _resume_command(state: RunState, configuration: object) -> str:
    out = "" if state.runs == Path(DEFAULT_OUT) else f" --out {shlex.quote(str(state.runs))}"
    if variant_of(configuration) is not None:
        return f"auepora experiment FILE --resume{out}"
    stored = configuration if isinstance(configuration, Mapping) else {}
    if stored.get("stress"):
        return "the same `auepora stress` again"
    if stored.get("dataset") and stored.get("system"):
        return f"auepora run --resume {shlex.quote(state.evaluation_id)}{out}"
    name = repr(state.evaluation_id)
    return f"in Python, evaluator.run(dataset, evaluation_id={name}, storage=storage, resume=True)"
