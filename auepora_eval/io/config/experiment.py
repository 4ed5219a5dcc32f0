"""An experiment as a file: the block `ab_testing` of a `*.config.yaml`, in the plan that all variants share.

dataset: questions.jsonl
ab_testing:
  experiment_id: chunk_size
  variants:
    - {variant_id: small, system: "my_rag.py:build", config_overrides: {chunk_size: 256}}
    - {variant_id: large, system: "my_rag.py:build", config_overrides: {chunk_size: 800}}
  primary_metric: ndcg@5
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...core.settings import BUDGETS, OF_JUDGE, PLAN_KEYS, is_endpoint
from ...errors import DataError
from ..files import file_name
from ..schema import config_form_errors
from .plan import BLOCKS, check_config, check_setting, config_document

# How a system is called. Any other name under config_overrides is the system's own business, even if a plan
# has a setting of that name (alpha, min).
_OF_CALLS = frozenset(
    {
        *("system", "outputs", "top_k", "executor", "concurrency", "timeout", "max_failures", "retries"),
        *("retry_on", "longest_wait", "rpm", "tpm", "breaker", "address", *BUDGETS),
        *("api_key_env", "prompt", "plain_http", "http", "price_input", "price_output"),
    }
)
_OF_ALL = frozenset({"dataset", "format", "limit", "cache", "seed", "out", *OF_JUDGE} & PLAN_KEYS.keys())
_FIELDS = ("name", "description", "primary_metric", "guard_rails", "alpha", "min_sample_size")
# Of live services, and of other tests than those of `compare`.
_UNREAD = (
    *("traffic_allocation", "statistical_test", "power", "max_duration_days", "auto_stop_enabled"),
    *("feature_flags", "features_enabled", "features_disabled", "resource_limits"),
)


@dataclass(frozen=True)
class Variant:
    """One of the systems of an experiment: settings of a plan, and arguments that its system is made with."""

    variant_id: str
    name: str = ""
    description: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """Which variants are compared, on what, and what it takes to win. The first variant is the control.

    `guard_rails` are rules of a gate; `unread` are the fields of the file that have no effect.
    """

    experiment_id: str
    variants: tuple[Variant, ...]
    primary_metric: str = "ndcg@5"
    secondary_metrics: tuple[str, ...] = ()
    guard_rails: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    description: str = ""
    alpha: float = 0.05
    min_sample_size: int = 1000
    plan: Mapping[str, Any] = field(default_factory=dict)
    unread: tuple[str, ...] = ()


def load_experiment(path: str | Path, experiment_id: str | None = None) -> Experiment:
    """Return the experiment of a file; of several, the one of that id."""
    document, where = config_document(path), Path(path).name
    if isinstance(document, dict) and "ab_testing" in document:
        check_config(document, where)
        experiments = {one.experiment_id: one for one in _experiments(document, where)}
    else:
        experiments = {}
    if not experiments:
        fix = "Put it under 'ab_testing:', with experiment_id and variants."
        raise DataError(where, "there is no experiment in it.", fix=fix)
    only = next(iter(experiments)) if len(experiments) == 1 else None
    chosen = experiments.get(experiment_id or only or "")
    if chosen is None:
        fix = f"Give --experiment ID: {', '.join(experiments)}."
        raise DataError(where, "which experiment is meant?", fix=fix)
    for key in chosen.plan.keys() - _OF_CALLS - _OF_ALL:
        raise DataError(f"{where}: {key}", "an experiment does not use it.", fix="Remove it.")
    for variant in chosen.variants:
        _check_source({**chosen.plan, **variant.settings}, variant, f"{where}: {variant.variant_id}")
    return chosen


def configuration_errors(document: Any) -> list[str]:
    """Return what is wrong with a configuration. Metrics, guardrails and systems are not checked."""
    errors = config_form_errors(document)
    if not errors and isinstance(document, dict):
        try:
            _experiments(document, "$.ab_testing")
        except DataError as error:
            return [str(error)]
    return errors


def _experiments(document: Mapping[str, Any], where: str) -> list[Experiment]:
    """Return the experiments of a configuration whose form is right."""
    block = document.get("ab_testing", {})
    plan = {key: value for key, value in document.items() if key not in BLOCKS}
    listed = block.get("experiments", [block] if "experiment_id" in block else [])
    return [_experiment(one, plan, where) for one in listed]


def _experiment(block: Mapping[str, Any], plan: Mapping[str, Any], where: str) -> Experiment:
    file_name(block["experiment_id"], "experiment_id")
    if not 0 < block.get("alpha", 0.05) < 1:
        raise DataError(f"{where}: alpha", "it must be between 0 and 1.", fix="The usual is 0.05.")
    if len(block["variants"]) < 2:
        raise DataError(f"{where}: variants", "an experiment has two or more.", fix="Add one.")
    keys = {*block}.union(*({key for key, value in one.items() if value} for one in block["variants"]))
    return Experiment(
        block["experiment_id"],
        tuple(_variant(one, where) for one in block["variants"]),
        secondary_metrics=tuple(block.get("secondary_metrics", ())),
        plan=plan,
        unread=tuple(key for key in _UNREAD if key in keys),
        **{key: block[key] for key in _FIELDS if key in block},
    )


def _variant(block: Mapping[str, Any], where: str) -> Variant:
    name, overrides = file_name(block["variant_id"], "variant_id"), block.get("config_overrides", {})
    settings = {key: block[key] for key in ("system", "outputs") if key in block}
    settings |= {key: value for key, value in overrides.items() if key in _OF_CALLS}
    for key, value in settings.items():
        check_setting(f"{where}: {name}: {key}", key, value)
    for key in overrides.keys() & {*_OF_ALL, "metrics", "id"}:
        fix = "Put it at the top of the file, or remove it."
        raise DataError(f"{where}: {name}: {key}", "it is the same for all variants.", fix=fix)
    arguments = {key: value for key, value in overrides.items() if key not in _OF_CALLS}
    return Variant(name, block.get("name", ""), block.get("description", ""), settings, arguments)


def _check_source(settings: Mapping[str, Any], variant: Variant, where: str) -> None:
    """Raise DataError unless a variant says what to evaluate, and gives arguments only to what takes them."""
    if {"system", "outputs"} <= variant.settings.keys():
        raise DataError(where, "it has a system and outputs.", fix="Keep one of them.")
    if not settings.get("system") and not settings.get("outputs"):
        fix = "Add 'system: module:attribute', or 'outputs: FILE'."
        raise DataError(where, "it does not say what to evaluate.", fix=fix)
    for key in variant.arguments:
        if "outputs" in variant.settings or is_endpoint(settings.get("system") or "http:"):
            what = "only a system that is Python code can be given arguments."
            raise DataError(f"{where}: {key}", what, fix="Is it a setting, misspelt?")
