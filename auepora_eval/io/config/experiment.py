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

from ...core.settings import BUDGETS, OF_ENDPOINT, OF_STOPPING
from ...errors import DataError
from ..files import file_name
from ..schema import check_no_errors, config_form_errors
from .plan import BLOCKS, check_config, config_document

# How a system is called. Any other name under config_overrides is the system's own business, even if a plan
# has a setting of that name (alpha, min).
_OF_CALLS = (
    *("system", "outputs", "top_k", "executor", "concurrency", "timeout", "max_failures", "retries"),
    *("retry_on", "longest_wait", "rpm", "tpm", "breaker", "address", "price_input", "price_output"),
    *(*BUDGETS, *OF_ENDPOINT),
)
_NOT_USED = ("metrics", "id", "min_coverage", *OF_STOPPING)
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
    experiments = {}
    if isinstance(document, dict) and "ab_testing" in document:
        check_config(document, where)
        experiments = {one.experiment_id: one for one in _experiments(document, where)}
    if not experiments:
        fix = "Put it under 'ab_testing:', with experiment_id and variants."
        raise DataError(where, "there is no experiment in it.", fix=fix)
    chosen = experiment_id or (next(iter(experiments)) if len(experiments) == 1 else "")
    if chosen not in experiments:
        fix = f"Give --experiment ID: {', '.join(experiments)}."
        raise DataError(where, "which experiment is meant?", fix=fix)
    for key in _NOT_USED:
        if key in document:
            raise DataError(f"{where}: {key}", "an experiment does not use it.", fix="Remove it.")
    return experiments[chosen]


def _experiments(document: Mapping[str, Any], where: str) -> list[Experiment]:
    """Return the experiments of a configuration whose form is right."""
    block = document.get("ab_testing", {})
    plan = {key: value for key, value in document.items() if key not in BLOCKS}
    listed = block.get("experiments", [block] if "experiment_id" in block else [])
    return [_experiment(one, plan, where) for one in listed]


def _experiment(block: Mapping[str, Any], plan: Mapping[str, Any], where: str) -> Experiment:
    file_name(block["experiment_id"], "experiment_id")
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
    if {"system", "outputs"} <= settings.keys():
        raise DataError(f"{where}: {name}", "it has a system and outputs.", fix="Keep one of them.")
    check_no_errors(config_form_errors(settings), f"{where}: {name}")
    arguments = {key: value for key, value in overrides.items() if key not in _OF_CALLS}
    return Variant(name, block.get("name", ""), block.get("description", ""), settings, arguments)
