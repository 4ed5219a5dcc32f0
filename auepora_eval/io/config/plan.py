"""Read plan files: `*.config.yaml` or `.json`, with the settings of `auepora run` as keys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.settings import PATHS, PLAN_KEYS
from ...errors import DataError, did_you_mean, warn_user
from ...read.text import parse_settings
from ..documents import read_content
from ..schema import check_no_errors, config_form_errors

_MAX_BYTES = 1_000_000
BLOCKS = (
    "citation_accuracy",
    "retrieval_metrics",
    "evaluation",
    "ab_testing",
    "performance_benchmarking",
    "performance_monitoring",
)


class OtherBlockWarning(UserWarning):
    """A configuration has a block that is checked, but that is not part of a plan."""


def load_config(path: str | Path) -> dict[str, Any]:
    """Return the settings of a plan file. Unknown keys and wrong types raise a DataError that names them.

    A file that a team shares may have blocks for other tools. They are checked and left out.
    """
    path = Path(path)
    settings = read_config(path)
    blocks = [name for name in BLOCKS if name in settings]
    if blocks:
        warn_user(f"{path.name}: {', '.join(blocks)}: not part of the plan, ignored.", OtherBlockWarning)
    return {name: value for name, value in settings.items() if name not in BLOCKS}


def planned(path: str | Path | None) -> dict[str, Any]:
    """Return the settings of a plan file, if there is one; its paths are relative to the file."""
    return located(load_config(path), path) if path else {}


def located(settings: Mapping[str, Any], path: str | Path) -> dict[str, Any]:
    """Return the settings of a file with its paths as seen from here; in the file they are relative to it."""
    paths = {name: settings[name] for name in PATHS if settings.get(name, "demo") != "demo"}
    return {**settings, **{name: str(Path(path).parent / value) for name, value in paths.items()}}


def read_config(path: str | Path) -> dict[str, Any]:
    """Return everything in a configuration file, YAML or JSON, after checking it."""
    settings = config_document(path)
    check_config(settings, Path(path).name)
    checked: dict[str, Any] = settings
    return checked


def config_document(path: str | Path) -> Any:
    """Return the document in a configuration file, not checked yet."""
    path = Path(path)
    content = read_content(path, _MAX_BYTES)
    # A plan may have any name. Only one that ends in .json is read as JSON.
    if path.name.lower().removesuffix(".gz").endswith(".json"):
        return parse_settings(content, path.name)
    from ...read.plain_yaml import parse_yaml  # with PyYAML: most commands read no plan

    return parse_yaml(content, path.name)


def check_config(settings: object, where: str) -> None:
    """Raise DataError if a document is not a valid configuration."""
    if not isinstance(settings, dict):
        raise DataError(where, "a plan has 'key: value' lines.", fix="Start with 'dataset: FILE'.")
    for key in settings:
        if key not in PLAN_KEYS and key not in BLOCKS:
            fix = did_you_mean(key, (*PLAN_KEYS, *BLOCKS), f"The keys are {', '.join(PLAN_KEYS)}.")
            place = f"{where}: {' '.join(key.split()) or repr(key):.80}"
            raise DataError(place, "there is no such setting.", fix=fix)
    check_no_errors(config_form_errors(settings), where)
