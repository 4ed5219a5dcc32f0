"""What a run notes in an output about its call, under names that a system cannot set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .types import SystemOutputs

ATTEMPTS, CACHED = "attempts", "cached"
_OURS = frozenset({ATTEMPTS, CACHED})


def with_its_own_names(extra: dict[str, Any]) -> dict[str, Any]:
    """What a system says beside its answer; what it calls by a name of ours gets a `system_` before it.

    >>> with_its_own_names({"cached": 0, "model": "m"})
    {'model': 'm', 'system_cached': 0}
    """
    if not isinstance(extra, dict) or _OURS.isdisjoint(extra):
        return extra
    kept = {name: value for name, value in extra.items() if name not in _OURS}
    for name in sorted(_OURS & extra.keys()):
        free = f"system_{name}"
        while free in kept:
            free = f"system_{free}"
        kept[free] = extra[name]
    return kept


def failed_attempts(extra: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records of failed attempts; journals from before may have a system's own list in their place."""
    told = extra.get(ATTEMPTS)
    if not isinstance(told, list):
        return []
    return [record for record in told if isinstance(record, dict) and _is_ours(record)]


def attempts_of(output: SystemOutputs) -> int:
    """How many calls an output took, by its own records."""
    return len(failed_attempts(output.extra)) + (output.error is None)


def is_from_cache(output: SystemOutputs) -> bool:
    """Whether an answer was made by another run."""
    return output.extra.get(CACHED) is True


def _is_ours(record: Mapping[str, Any]) -> bool:
    return isinstance(record.get("kind"), str) and isinstance(record.get("attempt"), int)
