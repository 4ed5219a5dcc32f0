"""A plan as a file: `*.config.yaml`, every key a flag of `auepora run`."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from ..errors import DataError
from .jsonl import opened

_MAX_BYTES = 1_000_000
_KINDS: dict[str, tuple[type, ...]] = {
    "dataset": (str,),
    "format": (str,),
    "system": (str,),
    "outputs": (str,),
    "metrics": (list, str),
    "top_k": (int,),
    "executor": (str,),
    "concurrency": (int,),
    "timeout": (int, float),
    "max_failures": (int,),
    "limit": (int,),
    "seed": (int,),
    "out": (str,),
    "id": (str,),
}


def load_config(path: str | Path) -> dict[str, Any]:
    """The settings of a plan file; unknown keys and wrong types are errors that name them."""
    import yaml

    path = Path(path)
    with opened(path) as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise DataError(path.name, "a plan of over 1 MB is not a plan.")
    try:
        settings = yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        place = getattr(error, "problem_mark", None)
        where = path.name if place is None else f"{path.name}:{place.line + 1}"
        raise DataError(where, f"not YAML: {getattr(error, 'problem', None) or error}.") from error
    if not isinstance(settings, dict):
        raise DataError(path.name, "a plan is a list of 'key: value' lines.")
    for key, value in settings.items():
        _check(f"{path.name}: {key}", str(key), value)
    return settings


def _check(where: str, key: str, value: Any) -> None:
    if key not in _KINDS:
        near = difflib.get_close_matches(key, _KINDS, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"The keys are {', '.join(_KINDS)}."
        raise DataError(where, "there is no such setting.", fix=hint)
    kinds = _KINDS[key]
    if isinstance(value, bool) or not isinstance(value, kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise DataError(where, f"expected {expected} but got {value!r:.60}.")
    if isinstance(value, list) and not all(isinstance(item, str) for item in value):
        raise DataError(where, "expected a list of names.")
