"""An experiment as a file: the block `ab_testing` of a `*.config.yaml`, in the plan that all variants share.

    dataset: questions.jsonl
    ab_testing:
      experiment_id: chunk_size
      variants:
        - {variant_id: small, system: "my_rag.py:build", config_overrides: {chunk_size: 256}}
        - {variant_id: large, system: "my_rag.py:build", config_overrides: {chunk_size: 800}}
      primary_metric: ndcg@5

Everything that is wrong with it is told at once, each with its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import DataError
from .config import BLOCKS, config_document
from .refusal import refuse_errors
from .schema_words import Steps

PAIRED, SPLIT = "paired", "split"
RAIL_KINDS = ("min", "max", "max_increase", "margin")
# How a system is called. Any other name under config_overrides is the system's own business, even if a plan
# has a setting of that name (alpha, min).
OF_CALLS = frozenset(
    "system outputs top_k executor concurrency timeout max_failures retries retry_on rpm tpm budget_calls "
    "budget_tokens budget_cost breaker warm_up longest_wait adaptive plain_http api_key_env prompt http "
    "address price_input price_output".split()
)
_UNREAD = ("features_enabled", "features_disabled", "resource_limits")
_UNREAD_OF_ALL = ("max_duration_days", "auto_stop_enabled", "feature_flags")

MetricCheck = Callable[[str], str]
RailCheck = Callable[[str, str], str]


@dataclass(frozen=True)
class GuardRail:
    """What a winner must keep to: a limit of one metric. `kind` is one of RAIL_KINDS."""

    metric: str
    kind: str
    limit: float


@dataclass(frozen=True)
class Variant:
    """One of the systems of an experiment: settings of a plan, and arguments that its system is made with."""

    variant_id: str
    name: str = ""
    description: str = ""
    share: float = 0.0
    settings: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """Which variants are compared, on what, and what it takes to win. The first variant is the control.

    `minimum_lead` is None where it was not set: 0.01 then, and nothing for a metric with a unit.
    """

    experiment_id: str
    variants: tuple[Variant, ...]
    primary_metric: str = "ndcg@5"
    secondary_metrics: tuple[str, ...] = ()
    guard_rails: tuple[GuardRail, ...] = ()
    name: str = ""
    description: str = ""
    assignment: str = PAIRED
    statistical_test: str = "auto"
    alpha: float = 0.05
    power: float = 0.8
    min_sample_size: int = 1000
    minimum_lead: float | None = None
    plan: Mapping[str, Any] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    def variant(self, variant_id: str) -> Variant:
        """One of the variants, by its id."""
        return next(one for one in self.variants if one.variant_id == variant_id)

    @property
    def shares(self) -> dict[str, float]:
        """The share of each variant, of a whole of 1: a file may be off by a hundredth."""
        total = sum(variant.share for variant in self.variants)
        return {variant.variant_id: variant.share / total for variant in self.variants}


def load_experiment(
    path: str | Path,
    experiment_id: str | None = None,
    *,
    wrong_metric: MetricCheck | None = None,
    wrong_rail: RailCheck | None = None,
) -> Experiment:
    """The experiment of a file; of several, the one of that id.

    `wrong_metric` says what is wrong with a metric's name, "" if nothing is; `wrong_rail` what is wrong with
    a kind of guard rail for that metric.
    """
    from .experiment_checks import experiment_errors

    path = Path(path)
    document = config_document(path)
    if not isinstance(document, dict) or "ab_testing" not in document:
        raise DataError(
            path.name,
            "there is no experiment in it.",
            fix="Put it under 'ab_testing:', with experiment_id and variants.",
        )
    refuse_errors(experiment_errors(document, wrong_metric, wrong_rail), path.name)
    found = dict(experiments_of(document["ab_testing"]))
    named = {block["experiment_id"]: block for block in found.values()}
    if experiment_id is None and len(named) == 1:
        experiment_id = next(iter(named))
    if experiment_id not in named:
        what = "does not say which experiment" if experiment_id is None else "has no experiment of that id"
        raise DataError(path.name, f"{what}.", fix=f"There are {', '.join(named)}: give --experiment ID.")
    return _experiment(named[experiment_id], {k: v for k, v in document.items() if k not in BLOCKS})


def experiments_of(block: Any) -> Iterator[tuple[Steps, dict[str, Any]]]:
    """The experiments of a block `ab_testing`, each with its place; none where it is not one."""
    if not isinstance(block, dict):
        return
    if isinstance(block.get("experiments"), list):
        for place, one in enumerate(block["experiments"]):
            if isinstance(one, dict):
                yield ("ab_testing", "experiments", place), one
    elif "experiment_id" in block:
        yield ("ab_testing",), block


def _experiment(block: Mapping[str, Any], plan: Mapping[str, Any]) -> Experiment:
    # Paired samples have no shares: every variant is asked all of them.
    ids = [one["variant_id"] for one in block["variants"]]
    shares = block.get("traffic_allocation", dict.fromkeys(ids, 1 / len(ids)))
    rails = [
        GuardRail(rail["metric"], kind, float(rail[kind]))
        for rail in block.get("guard_rails", ())
        for kind in RAIL_KINDS
        if kind in rail
    ]
    direct = ("name", "description", "assignment", "statistical_test", "alpha", "power", "min_sample_size")
    optional = (*direct, "primary_metric", "minimum_lead")
    return Experiment(
        experiment_id=block["experiment_id"],
        variants=tuple(_variant(one, shares[one["variant_id"]]) for one in block["variants"]),
        secondary_metrics=tuple(block.get("secondary_metrics", ())),
        guard_rails=tuple(rails),
        plan=dict(plan),
        unread=_unread(block),
        **{key: block[key] for key in optional if key in block},
    )


def _variant(variant: Mapping[str, Any], share: float) -> Variant:
    overrides = variant.get("config_overrides", {})
    return Variant(
        variant["variant_id"],
        variant.get("name", ""),
        variant.get("description", ""),
        float(share),
        settings_of(variant, overrides),
        {key: value for key, value in overrides.items() if key not in OF_CALLS},
    )


def settings_of(variant: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """What a variant says of its calls: what is asked, and how."""
    named = {key: variant[key] for key in ("system", "outputs") if key in variant}
    return {**named, **{key: value for key, value in overrides.items() if key in OF_CALLS}}


def _unread(block: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields that mean something to a service that is live, and nothing to a run of a dataset."""
    found = [key for key in _UNREAD_OF_ALL if key in block]
    variants: Sequence[Mapping[str, Any]] = block["variants"]
    return (*found, *(key for key in _UNREAD if any(variant.get(key) for variant in variants)))
