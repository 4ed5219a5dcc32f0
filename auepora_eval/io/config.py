"""A plan as a file: `*.config.yaml` or `.json`, every key a flag of `auepora run`."""

from __future__ import annotations

import difflib
import math
import warnings
from pathlib import Path
from typing import Any

from ..errors import DataError
from .json_text import parse_document
from .jsonl import BYTE_ORDER_MARK, opened
from .refusal import refuse_errors
from .schema_words import shown
from .yaml_text import parse_yaml

_MAX_BYTES = 1_000_000
_MINIMA = {"top_k": 1, "concurrency": 1, "timeout": 0.001, "max_failures": 0, "limit": 1, "seed": 0}
_MINIMA |= {"price_input": 0, "price_output": 0, "retries": 0, "rpm": 1, "tpm": 1, "budget_calls": 1}
_MINIMA |= {"budget_tokens": 1, "budget_cost": 0, "breaker": 1, "warm_up": 0}
_MINIMA |= {"longest_wait": 0.001, "min_coverage": 0}
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
    "price_input": (int, float),
    "price_output": (int, float),
    "retries": (int,),
    "retry_on": (list, str),
    "rpm": (int,),
    "tpm": (int,),
    "budget_calls": (int,),
    "budget_tokens": (int,),
    "budget_cost": (int, float),
    "breaker": (int,),
    "warm_up": (int,),
    "longest_wait": (int, float),
    "min_coverage": (int, float),
    "cache": (str,),
    "adaptive": (bool,),
    "plain_http": (bool,),
    "api_key_env": (str,),
    "prompt": (str,),
    "http": (dict,),
    "headers": (dict,),
    "request": (dict,),
    "address": (str,),
    "stop_when": (str,),
    "stop_on": (list, str),
    "min": (list, str),
    "max": (list, str),
    "baseline": (str,),
    "margin": (list, str),
    "alpha": (int, float),
    "out": (str,),
    "id": (str,),
}
_IN_WORDS: dict[type, str] = {str: "a text", int: "a whole number", float: "a number", list: "a list"}
_IN_WORDS |= {bool: "true or false", dict: "names of fields"}
BLOCKS = (
    "citation_accuracy",
    "retrieval_metrics",
    "evaluation",
    "ab_testing",
    "performance_benchmarking",
    "performance_monitoring",
)


class OtherBlockWarning(UserWarning):
    """A configuration has a block that is checked, but that no plan reads."""


def load_config(path: str | Path) -> dict[str, Any]:
    """The settings of a plan file; unknown keys and wrong types are errors that name them.

    A file of the whole team may have blocks for other tools too: they are checked, and left out.
    """
    path = Path(path)
    settings = read_config(path)
    blocks = [name for name in BLOCKS if name in settings]
    if blocks:
        warnings.warn(
            f"{path.name}: {', '.join(blocks)}: not a part of the plan, not read.",
            OtherBlockWarning,
            stacklevel=2,
        )
    return {name: value for name, value in settings.items() if name not in BLOCKS}


def read_config(path: str | Path) -> dict[str, Any]:
    """Everything in a configuration file, YAML or JSON, checked."""
    settings = config_document(path)
    refuse_wrong_config(settings, Path(path).name)
    checked: dict[str, Any] = settings
    return checked


def config_document(path: str | Path) -> Any:
    """What a configuration file says, not checked yet."""
    path = Path(path)
    with opened(path) as file:
        content = file.read(_MAX_BYTES + 1).removeprefix(BYTE_ORDER_MARK)
    if len(content) > _MAX_BYTES:
        raise DataError(path.name, "a plan of over 1 MB is not a plan.", fix="Is it the right file?")
    # A plan may have any name; only one that says JSON is read as such.
    is_json = path.name.lower().removesuffix(".gz").endswith(".json")
    return parse_document(content, path.name) if is_json else parse_yaml(content, path.name)


def refuse_wrong_config(settings: Any, where: str) -> None:
    """DataError if a document is no configuration."""
    from .validation import config_form_errors

    if not isinstance(settings, dict):
        raise DataError(where, "a plan is a list of 'key: value' lines.", fix="Begin with 'dataset: FILE'.")
    for key, value in settings.items():
        if key not in BLOCKS:
            refuse_wrong_setting(f"{where}: {' '.join(key.split()) or repr(key):.80}", key, value)
    refuse_errors(config_form_errors(settings), where)


def is_setting(key: str) -> bool:
    """Whether a plan has a setting of that name."""
    return key in _KINDS


def refuse_wrong_setting(where: str, key: str, value: Any) -> None:
    """DataError if a plan has no such setting, or if it cannot have this value."""
    if key not in _KINDS:
        near = difflib.get_close_matches(key[:80], (*_KINDS, *BLOCKS), n=1)
        hint = f"Did you mean {near[0]}?" if near else f"The keys are {', '.join(_KINDS)}."
        raise DataError(where, "there is no such setting.", fix=hint)
    kinds = _KINDS[key]
    if isinstance(value, bool) is not (kinds == (bool,)) or not isinstance(value, kinds):
        expected = " or ".join(_IN_WORDS[kind] for kind in kinds)
        got = "true or false" if isinstance(value, bool) else shown(value)
        raise DataError(where, f"expected {expected} but got {got}.", fix="Change or remove it.")
    if isinstance(value, int | float) and key in _MINIMA and not _MINIMA[key] <= value < math.inf:
        raise DataError(where, f"{value!r:.60} is out of range.", fix=f"Use at least {_MINIMA[key]}.")
    if isinstance(value, list) and not all(isinstance(item, str) for item in value):
        raise DataError(where, "expected a list of names.", fix="Write, for example, [recall@5, token_f1].")
