"""An experiment as a file: the block `ab_testing` of a `*.config.yaml`, in the plan that all variants share.

    dataset: questions.jsonl
    ab_testing:
      experiment_id: chunk_size
      variants:
        - {variant_id: small, system: "my_rag.py:build", config_overrides: {chunk_size: 256}}
        - {variant_id: large, system: "my_rag.py:build", config_overrides: {chunk_size: 800}}
      primary_metric: ndcg@5

All errors are reported together, each with its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ...core.settings import PLAN_KEYS
from ...errors import DataError
from ..files.atomic import file_name
from ..schema.validate import check_no_errors, config_form_errors
from ..schema.words import SchemaError, Steps, json_path, shown
from .plan import BLOCKS, check_setting, config_document

PAIRED, SPLIT = "paired", "split"
RAIL_KINDS = ("min", "max", "max_increase", "margin")
# How a system is called. Any other name under config_overrides is the system's own business, even if a plan
# has a setting of that name (alpha, min).
OF_CALLS = frozenset(name for name, one in PLAN_KEYS.items() if one.experiment == "variant")
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
    a kind of guardrail for that metric.
    """
    path = Path(path)
    document = config_document(path)
    if not isinstance(document, dict) or "ab_testing" not in document:
        raise DataError(
            path.name,
            "there is no experiment in it.",
            fix="Put it under 'ab_testing:', with experiment_id and variants.",
        )
    check_no_errors(experiment_errors(document, wrong_metric, wrong_rail), path.name)
    experiments = {block.experiment.experiment_id: block.experiment for block in _blocks(document)}
    if experiment_id is None and len(experiments) == 1:
        experiment_id = next(iter(experiments))
    if experiment_id not in experiments:
        what = "does not say which experiment" if experiment_id is None else "has no experiment of that id"
        fix = f"There are {', '.join(experiments)}: give --experiment ID."
        raise DataError(path.name, f"{what}.", fix=fix)
    return experiments[experiment_id]


class _Block(NamedTuple):
    """An experiment of a file whose form is right: its place, what the file says, and what that means."""

    steps: Steps
    raw: Mapping[str, Any]
    experiment: Experiment


def _blocks(document: Mapping[str, Any]) -> list[_Block]:
    """Return the experiments of a document whose form is right."""
    block = document.get("ab_testing")
    if not isinstance(block, dict):
        return []
    plan = {key: value for key, value in document.items() if key not in BLOCKS}
    listed = block.get("experiments")
    if isinstance(listed, list):
        steps = ("ab_testing", "experiments")
        return [_Block((*steps, n), one, _experiment(one, plan)) for n, one in enumerate(listed)]
    return [_Block(("ab_testing",), block, _experiment(block, plan))] if "experiment_id" in block else []


def _experiment(block: Mapping[str, Any], plan: Mapping[str, Any]) -> Experiment:
    variants: list[Mapping[str, Any]] = block["variants"]
    # Paired samples need no shares: every variant is asked all of them.
    shares = block.get("traffic_allocation") or dict.fromkeys(_ids(variants), 1 / max(1, len(variants)))
    rails = [(rail, kind) for rail in block.get("guard_rails", ()) for kind in RAIL_KINDS if kind in rail]
    unread = [key for key in _UNREAD_OF_ALL if key in block]
    unread += [key for key in _UNREAD if any(variant.get(key) for variant in variants)]
    direct = ("name", "description", "assignment", "statistical_test", "alpha", "power", "min_sample_size")
    optional = (*direct, "primary_metric", "minimum_lead")
    return Experiment(
        experiment_id=block["experiment_id"],
        variants=tuple(_variant(one, shares[one["variant_id"]]) for one in variants),
        secondary_metrics=tuple(block.get("secondary_metrics", ())),
        guard_rails=tuple(GuardRail(rail["metric"], kind, float(rail[kind])) for rail, kind in rails),
        plan=plan,
        unread=tuple(unread),
        **{key: block[key] for key in optional if key in block},
    )


def _ids(variants: Sequence[Mapping[str, Any]]) -> list[str]:
    return [variant["variant_id"] for variant in variants]


def _variant(variant: Mapping[str, Any], share: float) -> Variant:
    overrides = variant.get("config_overrides", {})
    settings = {key: variant[key] for key in ("system", "outputs") if key in variant}
    settings |= {key: value for key, value in overrides.items() if key in OF_CALLS}
    arguments = {key: value for key, value in overrides.items() if key not in OF_CALLS}
    about = variant.get("name", ""), variant.get("description", "")
    return Variant(variant["variant_id"], *about, float(share), settings, arguments)


# What is wrong with an experiment that a configuration file describes: every error, each with its place.
# The schema checks the form; what follows assumes it.

TESTS = {"auto": (PAIRED, SPLIT), "t_test": (PAIRED, SPLIT), "permutation": (PAIRED,), "welch": (SPLIT,)}
# Of the whole experiment: variants that differ in one of these cannot be compared.
_SHARED = frozenset(name for name, one in PLAN_KEYS.items() if one.experiment == "all")
_OF_ALL = (*_SHARED, "metrics", "id")  # what no variant may set
_LONGEST_ID = 60  # two of them make the name of a run


def experiment_errors(
    document: Mapping[str, Any],
    wrong_metric: MetricCheck | None = None,
    wrong_rail: RailCheck | None = None,
) -> list[str]:
    """Return everything that keeps a document from being an experiment, each error with its JSON path."""
    errors = config_form_errors(document)
    if errors:
        return errors
    blocks = _blocks(document)
    findings = [*_plan_errors(document), *_block_errors(blocks, wrong_metric, wrong_rail)]
    findings += _source_errors(blocks, document)
    if not blocks:
        what = "there is no experiment in it. Write experiment_id and variants."
        findings.append(SchemaError("$.ab_testing", what))
    return [str(error) for error in findings]


def configuration_errors(document: Any) -> list[str]:
    """Return everything that is wrong with a configuration, without checking metrics or systems.

    An experiment in which nothing says what to evaluate is one of a live service: its form is checked, and
    that it cannot be run here is not an error.
    """
    errors = config_form_errors(document)
    if errors or not isinstance(document, dict):
        return errors
    blocks = _blocks(document)
    settings = [variant.settings for block in blocks for variant in block.experiment.variants]
    has_source = any(name in one for one in (document, *settings) for name in ("system", "outputs"))
    if blocks and has_source:
        return experiment_errors(document)
    return [str(error) for error in _block_errors(blocks)]


def _plan_errors(document: Mapping[str, Any]) -> Iterator[SchemaError]:
    for key, value in document.items():
        if key not in BLOCKS:
            yield from _setting_errors((key,), key, value)
        if key in PLAN_KEYS and key not in OF_CALLS and key not in _SHARED:
            yield SchemaError(json_path((key,)), f"an experiment does not use it. Remove {key}.")


def _setting_errors(steps: Steps, key: str, value: Any) -> Iterator[SchemaError]:
    try:
        check_setting("", key, value)
    except DataError as error:
        yield SchemaError(json_path(steps), f"{error.what} {error.fix}")


def _block_errors(
    blocks: Sequence[_Block], wrong_metric: MetricCheck | None = None, wrong_rail: RailCheck | None = None
) -> Iterator[SchemaError]:
    ids = [((*block.steps, "experiment_id"), block.experiment.experiment_id) for block in blocks]
    yield from _id_errors(ids)
    for block in blocks:
        yield from _number_errors(block)
        yield from _variants_errors(block)
        yield from _metrics_errors(block, wrong_metric, wrong_rail)


def _id_errors(ids: Sequence[tuple[Steps, str]]) -> Iterator[SchemaError]:
    """Check ids, which become names of files."""
    for steps, name in ids:
        try:
            file_name(name)
        except DataError as error:
            yield SchemaError(json_path(steps), f"{shown(name)} {error.what} {error.fix}")
            continue
        if len(name) > _LONGEST_ID:
            yield SchemaError(json_path(steps), f"it is longer than {_LONGEST_ID} letters. Shorten it.")


def _number_errors(block: _Block) -> Iterator[SchemaError]:
    steps, experiment = block.steps, block.experiment
    alpha = experiment.alpha if 0 < experiment.alpha < 1 else 0.0
    if not alpha:
        yield SchemaError(json_path((*steps, "alpha")), "it must be between 0 and 1. The usual is 0.05.")
    if not alpha < experiment.power < 1:
        yield SchemaError(json_path((*steps, "power")), "it must be above alpha and below 1; usually 0.8.")
    test, where = experiment.statistical_test, json_path((*steps, "statistical_test"))
    if test not in TESTS:
        yield SchemaError(where, f"there is no test {shown(test)}. There are {', '.join(TESTS)}.")
    elif experiment.assignment not in TESTS[test]:
        yield SchemaError(where, f"{test} is not for {experiment.assignment} samples. Use auto.")


def _variants_errors(block: _Block) -> Iterator[SchemaError]:
    steps, variants = block.steps, block.experiment.variants
    if len(variants) < 2:
        what = "an experiment has two variants or more. Add one."
        yield SchemaError(json_path((*steps, "variants")), what)
    ids = [((*steps, "variants", n, "variant_id"), one.variant_id) for n, one in enumerate(variants)]
    yield from _id_errors(ids)
    for place, variant in enumerate(variants):
        yield from _variant_errors((*steps, "variants", place), variant)
    if block.experiment.assignment != SPLIT:
        return
    if "traffic_allocation" not in block.raw:
        what = "samples that are split need the share of each variant. Add it."
        yield SchemaError(json_path((*steps, "traffic_allocation")), what)
    for variant in variants:
        if variant.share == 0:
            what = "no sample would go to it. Give it a share, or remove the variant."
            yield SchemaError(json_path((*steps, "traffic_allocation", variant.variant_id)), what)


def _variant_errors(steps: Steps, variant: Variant) -> Iterator[SchemaError]:
    for key, value in variant.settings.items():
        yield from _setting_errors((*steps, "config_overrides", key), key, value)
    for key in variant.arguments:
        if key in _OF_ALL:
            what = "it is the same for all variants. Put it at the top of the file, or remove it."
            yield SchemaError(json_path((*steps, "config_overrides", key)), what)
    if {"system", "outputs"} <= variant.settings.keys():
        yield SchemaError(json_path(steps), "it has a system and outputs. Keep one of them.")


def _source_errors(blocks: Sequence[_Block], document: Mapping[str, Any]) -> Iterator[SchemaError]:
    """Check that each variant says what to evaluate, and gives arguments only to what takes them."""
    for block in blocks:
        for place, variant in enumerate(block.experiment.variants):
            where = (*block.steps, "variants", place)
            settings = variant.settings
            source = settings if "outputs" in settings else {**document, **settings}
            system = source.get("system")
            if not system and not source.get("outputs"):
                what = "it does not say what to evaluate. Add 'system: module:attribute', or 'outputs: FILE'."
                yield SchemaError(json_path(where), what)
            arguments = [key for key in variant.arguments if key not in _OF_ALL]
            is_python = bool(system) and not str(system).startswith(("openai:", "http:", "https:"))
            if arguments and not is_python:
                what = "only a system that is Python code can be given arguments. Is it a setting, misspelt?"
                yield SchemaError(json_path((*where, "config_overrides", arguments[0])), what)


def _metrics_errors(
    block: _Block, wrong_metric: MetricCheck | None, wrong_rail: RailCheck | None
) -> Iterator[SchemaError]:
    steps, experiment = block.steps, block.experiment
    names: list[tuple[Steps, str]] = [((*steps, "primary_metric"), experiment.primary_metric)]
    names += [((*steps, "secondary_metrics", n), name) for n, name in enumerate(experiment.secondary_metrics)]
    for place, rail in enumerate(block.raw.get("guard_rails", ())):
        where = (*steps, "guard_rails", place)
        names.append(((*where, "metric"), rail["metric"]))
        kinds = [kind for kind in RAIL_KINDS if kind in rail]
        if len(kinds) != 1:
            what = f"give one limit: {', '.join(RAIL_KINDS[:-1])} or {RAIL_KINDS[-1]}."
            yield SchemaError(json_path(where), what)
            continue
        if kinds[0] == "margin" and not rail["margin"] > 0:
            what = "a margin is above 0: no data can rule out less. Use, for example, 0.02."
            yield SchemaError(json_path((*where, "margin")), what)
        wrong = wrong_rail(rail["metric"], kinds[0]) if wrong_rail is not None else ""
        if wrong:
            yield SchemaError(json_path((*where, kinds[0])), wrong)
    for place_of_name, name in names:
        wrong = wrong_metric(name) if wrong_metric is not None else ""
        if wrong:
            yield SchemaError(json_path(place_of_name), wrong)
