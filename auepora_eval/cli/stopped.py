"""A run that was stopped, for programs: the one document that --json prints where there are no results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import echo
from .resuming import line_to_resume

if TYPE_CHECKING:
    from ..runs.storage import EvaluationResultsStorage


def say_stopped(
    storage: EvaluationResultsStorage, settings: Mapping[str, Any], size: int, reason: object
) -> None:
    """Print why a run ended early, how many of its samples have an output, and the line that goes on."""
    from ..core.redaction import without_secrets

    name = settings["id"]
    echo.say_json(
        {
            "evaluation_id": name,
            "stopped": without_secrets(str(reason)).removeprefix("stopped: "),
            "kept": _kept(storage, name),
            "samples": size,
            "resume": line_to_resume(settings),
        }
    )


def _kept(storage: EvaluationResultsStorage, name: str) -> int | None:
    from ..errors import AueporaError

    try:
        return storage.answered(name)
    except AueporaError:
        return None  # it cannot be read, which is said on stderr
