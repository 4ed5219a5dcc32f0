"""Runs that were begun and have no results: how far each is, and what goes on with it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import AueporaError, NotFoundError
from .journal import read_header
from .lock import writer_of

if TYPE_CHECKING:
    from .storage import EvaluationResultsStorage

_USUAL = Path("data/evaluation/results")
_SHOWN = 5


@dataclass(frozen=True)
class Unfinished:
    """A run that was begun: how many samples have an output, of how many; None where that is not known.

    `line` is what goes on with it; `obstacle` says why nothing does for now.
    """

    evaluation_id: str
    begun_at: str = ""
    answered: int | None = None
    samples: int | None = None
    line: str = ""
    obstacle: str = ""

    @property
    def progress(self) -> str:
        """ "3 of 8" """
        return " of ".join("?" if count is None else str(count) for count in (self.answered, self.samples))


def unfinished_runs(storage: EvaluationResultsStorage) -> list[Unfinished]:
    """Every run of a folder that was begun and has no results."""
    return [unfinished_run(storage, name) for name in storage.unfinished()]


def unfinished_run(storage: EvaluationResultsStorage, name: str) -> Unfinished:
    """What is known of a run that was begun; nothing about it is an error."""
    folder = storage.run_folder(name)
    try:
        header = read_header(folder)
        answered = storage.answered(name) or 0
    except (AueporaError, OSError) as error:
        return Unfinished(name, obstacle=str(error))
    samples, writer = header.get("samples"), writer_of(folder)
    return Unfinished(
        name,
        str(header.get("begun_at") or ""),
        answered,
        samples if isinstance(samples, int) else None,
        _line(storage, name, header.get("configuration")),
        f"it is being written by {writer}" if writer else "",
    )


def not_found(storage: EvaluationResultsStorage, name: str, known: list[str]) -> NotFoundError:
    """What is said of a run that has no results: it is not finished, or there is none of that name."""
    where = str(storage.results_directory)
    begun = storage.unfinished()
    if (wanted := name.removesuffix(".results.json")) in begun:
        run = unfinished_run(storage, wanted)
        fix = _sentence(run.obstacle) if run.obstacle else f"Go on with it: {run.line}"
        what = f"run {wanted!r} is not finished: {run.progress} samples have an output."
        return NotFoundError(where, what, fix=fix)
    hint = f"It has {', '.join(known[:_SHOWN])}" if known else "It has no runs"
    if begun:
        hint += f"{'' if known else ' that are finished'}; not finished are {', '.join(begun[:_SHOWN])}"
    return NotFoundError(where, f"there is no run {name!r}.", fix=f"{hint}.")


def variant_of(configuration: Any) -> tuple[str, str] | None:
    """The experiment and the variant that a run is of, if it is of one."""
    about = configuration.get("experiment") if isinstance(configuration, dict) else None
    if not isinstance(about, dict) or "variant_id" not in about:
        return None
    return str(about.get("experiment_id")), str(about["variant_id"])


def _sentence(obstacle: str) -> str:
    """An obstacle on its own; the name of a file stays as it is written."""
    words = f"It{obstacle[2:]}" if obstacle.startswith("it ") else obstacle
    return f"{words.rstrip('.')}."


def _line(storage: EvaluationResultsStorage, name: str, configuration: Any) -> str:
    out = storage.results_directory
    where = "" if out == _USUAL else f" --out {shlex.quote(str(out))}"
    if variant_of(configuration) is not None:
        return f"auepora experiment FILE --resume{where}"
    told = configuration if isinstance(configuration, dict) else {}
    if told.get("dataset") and told.get("system"):
        return f"auepora run --resume {shlex.quote(name)}{where}"
    return f"in Python, evaluator.run(dataset, evaluation_id={name!r}, storage=storage, resume=True)"
