"""A system as commands take it: the name of a stored run, or of several, joined by commas: its repeats."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.types import EvaluationRun
    from ..runs.storage import EvaluationResultsStorage


def load_named_runs(storage: EvaluationResultsStorage, name: str) -> list[EvaluationRun]:
    """The runs that a name stands for, with their scores."""
    return [storage.load_scores(part) for part in named_ids(storage, name)]


def named_ids(storage: EvaluationResultsStorage, name: str) -> list[str]:
    """A run by its name, which may hold a comma, or else several runs."""
    from ..errors import DataError

    if "," not in name:
        return [name]
    try:
        storage.find(name)
    except DataError:
        return [part.strip() for part in name.split(",") if part.strip()]
    return [name]


def refuse_repeats(storage: EvaluationResultsStorage, names: Iterable[str]) -> None:
    """A gate judges what goes out, and that is one run."""
    from ..errors import PlanError

    for name in names:
        count = len(named_ids(storage, name))
        if count > 1:
            what = f"{name!r:.100} names {count} runs, and a gate takes one, and one baseline"
            raise PlanError(f"{what}. Judge each by itself; repeats are for 'auepora compare A1,A2 B1,B2'.")


def refuse_the_same_run_twice(storage: EvaluationResultsStorage, names: Iterable[str]) -> None:
    """A run does not differ from itself; whoever compares it has mistyped a name."""
    from ..errors import PlanError

    seen = set()
    for name in names:
        for part in named_ids(storage, name):
            path = storage.find(part).resolve()
            if path in seen:
                raise PlanError(f"{part} is named twice. Name different runs.")
            seen.add(path)
