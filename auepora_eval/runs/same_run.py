"""Whether a run that is gone on with is the one that was begun: two runs must not be mixed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import StorageError
from ..execution.systems import is_endpoint
from .dataset_marks import where_they_differ
from .system_identity import NO_PROGRAM, program_file

# What decides the answers and the scores: resuming under another of these would mix two runs.
BINDING = ("dataset_sha256", "system", "metrics", "top_k", "seed", "stop_when")

# What a hash stands for, and the setting that names it.
_HASHES = {"prompt_sha256": ("the prompt", "prompt"), "request_sha256": ("request", "request")}
_LONGEST = 80  # letters of a value that is shown


class ChangedProgramWarning(UserWarning):
    """The file of a system is not what it was when its run was begun."""


def refuse_other(before: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """StorageError that names what differs between the headers of two runs, as far as it decides anything."""
    told = [
        _dataset(before, now) if name == "dataset_sha256" else _told(name, before, now) for name in BINDING
    ]
    if before.get("system") == now.get("system"):
        told.append(_another_program(before, now))
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


def facts_of_results(results: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """What the results of a run without a header tell of it; how its metrics are computed is not compared."""
    configuration, metadata = _mapping(results.get("configuration")), _mapping(results.get("metadata"))
    signatures, names = _mapping(now.get("metrics")), configuration.get("metrics")
    return {
        "dataset_sha256": metadata.get("dataset_sha256"),
        "system": results.get("system_version"),
        "metrics": {name: signatures.get(name) for name in names} if isinstance(names, list) else names,
        "top_k": configuration.get("retrieval_k"),
        "seed": _mapping(metadata.get("evaluation_parameters")).get("random_seed"),
    }


def changed_program(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Warn if the program was changed in between; what the journal is to note of it."""
    words = (
        "the file of the system is not what it was when the run was begun: answers of both are in this run. "
        "The results have the sha256 of both (configuration.programs_sha256)."
    )
    return {"program_sha256": now["program_sha256"]} if _warned(before, now, words) else {}


def changed_since(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Warn if the program of a finished run was changed since."""
    words = (
        "the file of the system is not what it was when the run was made; its results are of then. To "
        "measure the program as it is now, choose another id."
    )
    _warned(before, now, words)


def _warned(before: Mapping[str, Any], now: Mapping[str, Any], words: str) -> bool:
    first, last = before.get("program_sha256"), now.get("program_sha256")
    if not first or not last or first == last:
        return False
    warnings.warn(words, ChangedProgramWarning, stacklevel=4)
    return True


def _another_program(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What is said where a run was begun with another module, file or attribute.

    Another way to write the same file is no difference, and neither is a file that was moved as it is.
    """
    then, here = _named(before), _named(now)
    if not then or not here or then == here or (is_endpoint(then) and is_endpoint(here)):
        return ""
    if then.rpartition(":")[2] == here.rpartition(":")[2]:
        text = now.get("program_sha256")
        if text == before.get("program_sha256") != NO_PROGRAM:
            return ""
        old, new = (
            program_file(name, Path(str(facts.get("begun_in") or "")))
            for name, facts in ((then, before), (here, now))
        )
        if old is not None and new is not None and old.resolve() == new.resolve():
            return ""
    return _apart("system", repr(then), repr(here))


def _named(facts: Mapping[str, Any]) -> str:
    """The name that a system was loaded by, if it was."""
    name = facts.get("named") or _mapping(facts.get("configuration")).get("system")
    return name if isinstance(name, str) else ""


def _of_hash(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What is known of a thing whose hash has changed: how it is called, and what it says if that is kept."""
    what, setting = _HASHES[name]
    then, here = (_mapping(facts.get("configuration")).get(setting) for facts in (before, now))
    if then != here:
        return _apart(what, repr(then), repr(here))
    named = f" ({then!r:.80})" if isinstance(then, str) else ""
    old, new = (_mapping(facts.get("asks")).get(name) for facts in (before, now))
    return f"the text of {what}{named} was changed ({name} was {old!s:.12}, now it is {new!s:.12})"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _told(name: str, before: Mapping[str, Any], now: Mapping[str, Any], inside: str = "") -> str:
    then, here = before.get(name), now.get(name)
    if then == here:
        return ""
    if isinstance(then, Mapping) and isinstance(here, Mapping):
        if name == "metrics" and then.keys() != here.keys():
            return _apart(name, ", ".join(then), ", ".join(here))
        parts = (_told(key, then, here, f"{inside}{name}: ") for key in sorted({*then, *here}))
        return "; ".join(part for part in parts if part)
    return _apart(f"{inside}{name}", repr(then), repr(here))


def _apart(name: str, then: str, here: str) -> str:
    """Two texts, cut off where they are long: shown is where they differ."""
    begin = 0
    if max(len(then), len(here)) > _LONGEST:
        same = next((n for n, (a, b) in enumerate(zip(then, here, strict=False)) if a != b), 0)
        begin = max(0, same - _LONGEST // 4)
    old, new = (f"{'…' if begin else ''}{text[begin : begin + _LONGEST]}" for text in (then, here))
    return f"{name} was {old}, now it is {new}"


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
