"""A plan as a file: `*.config.yaml`, every key a flag of `auepora run`."""

from __future__ import annotations

import difflib
import math
from pathlib import Path
from typing import Any

from ..errors import DataError
from .jsonl import opened

_MAX_BYTES = 1_000_000
_MINIMA = {"top_k": 1, "concurrency": 1, "timeout": 0.001, "max_failures": 0, "limit": 1, "seed": 0}
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
    path = Path(path)
    with opened(path) as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise DataError(path.name, "a plan of over 1 MB is not a plan.", fix="Is it the right file?")
    settings = _parsed(content, path.name)
    if not isinstance(settings, dict):
        raise DataError(
            path.name, "a plan is a list of 'key: value' lines.", fix="Begin with 'dataset: FILE'."
        )
    for key, value in settings.items():
        _check(f"{path.name}: {key}", str(key), value)
    return settings


def _parsed(content: bytes, name: str) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                # A few lines of aliases of aliases unfold to billions of values.
                raise DataError(name, "a plan has no aliases (*name).", fix="Write the value out.")
            return super().compose_node(parent, index)

    try:
        return yaml.load(content, Loader)  # noqa: S506 - a SafeLoader
    except DataError:
        raise
    except Exception as error:  # a value like 2020-99-01 raises whatever its Python type does
        place = getattr(error, "problem_mark", None)
        where = name if place is None else f"{name}:{place.line + 1}"
        what = " ".join(str(getattr(error, "problem", None) or error).split())
        raise DataError(where, f"not YAML: {what}.", fix="Write one 'key: value' a line.") from error


def _check(where: str, key: str, value: Any) -> None:
    if key not in _KINDS:
        near = difflib.get_close_matches(key, _KINDS, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"The keys are {', '.join(_KINDS)}."
        raise DataError(where, "there is no such setting.", fix=hint)
    kinds = _KINDS[key]
    if isinstance(value, bool) or not isinstance(value, kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise DataError(where, f"expected {expected} but got {value!r:.60}.", fix="Change or remove it.")
    if isinstance(value, int | float) and not _MINIMA[key] <= value < math.inf:
        raise DataError(where, f"{value!r:.60} is out of range.", fix=f"Use at least {_MINIMA[key]}.")
    if isinstance(value, list) and not all(isinstance(item, str) for item in value):
        raise DataError(where, "expected a list of names.", fix="Write, for example, [recall@5, token_f1].")
