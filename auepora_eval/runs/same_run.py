"""Whether a run that is gone on with is the one that was begun: two runs must not be mixed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import StorageError
from .dataset_marks import where_they_differ

# What decides the answers and the scores: resuming under another of these would mix two runs.
BINDING = ("dataset_sha256", "system", "metrics", "top_k", "seed", "stop_when")

# What a hash stands for, and the setting that names it.
_HASHES = {"prompt_sha256": ("the prompt", "prompt"), "request_sha256": ("request", "request")}


class ChangedProgramWarning(UserWarning):
    """The file of a system is not what it was when its run was begun."""


def refuse_other(before: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """StorageError that names what differs between the headers of two runs, as far as it decides anything."""
    told = [
        _dataset(before, now) if name == "dataset_sha256" else _told(name, before, now) for name in BINDING
    ]
    asked, asks = before.get("asks"), now.get("asks")
    if isinstance(asked, dict) and isinstance(asks, dict):  # a run of Python code, or an older one, has none
        told += [
            _of_hash(name, before, now) if name in _HASHES else _told(name, asked, asks)
            for name in sorted({*asked, *asks})
            if asked.get(name) != asks.get(name)
        ]
    different = "; ".join(words for words in told if words)
    if different:
        raise StorageError(
            f"{folder} is another run: {different}. Resume it as it was begun, or choose another id."
        )


def changed_program(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Warn if the program was changed in between; what the journal is to note of it."""
    first, last = before.get("program_sha256"), now.get("program_sha256")
    if not first or not last or first == last:
        return {}
    warnings.warn(
        "the file of the system is not what it was when the run was begun: answers of both are in this run. "
        "The results have the sha256 of both (configuration.programs_sha256).",
        ChangedProgramWarning,
        stacklevel=3,
    )
    return {"program_sha256": last}


def _of_hash(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What is known of a thing whose hash has changed: how it is called, and what it says if that is kept."""
    what, setting = _HASHES[name]
    then, here = (_mapping(facts.get("configuration")).get(setting) for facts in (before, now))
    if then != here:
        return f"{what} was {then!r:.80}, now it is {here!r:.80}"
    named = f" ({then!r:.80})" if isinstance(then, str) else ""
    old, new = (_mapping(facts.get("asks")).get(name) for facts in (before, now))
    return f"the text of {what}{named} was changed ({name} was {old!s:.12}, now it is {new!s:.12})"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _told(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    then, here = before.get(name), now.get(name)
    return "" if then == here else f"{name} was {then!r:.80}, now it is {here!r:.80}"


def _dataset(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What is known of a dataset's change: its name and size, else only that some sample differs."""
    then, here = before.get("dataset_sha256"), now.get("dataset_sha256")
    if then == here:
        return ""
    was, is_ = (f"{facts.get('dataset')!r:.80}, {facts.get('samples')} samples" for facts in (before, now))
    found = where_they_differ(before.get("dataset_marks"), now.get("dataset_marks"))
    where = f": {found}" if found else ""
    if was != is_ and "dataset" in before:
        return f"the dataset was {was}, now it is {is_}{where}"
    hashes = "" if found else f" (sha256 was {then!s:.12}, now it is {here!s:.12})"
    return f"the dataset's samples are not those of then{hashes}{where}"
