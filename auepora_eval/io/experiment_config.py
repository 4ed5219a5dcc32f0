"""An experiment as a file: the block `ab_testing` of a `*.config.yaml`, in the plan that all variants share.

    dataset: questions.jsonl
    ab_testing:
      experiment_id: chunk_size
      variants:
        - {variant_id: small, system: "my_rag.py:build", config_overrides: {chunk_size: 256}}
        - {variant_id: large, system: "my_rag.py:build", config_overrides: {chunk_size: 800}}
      traffic_allocation: {small: 0.5, large: 0.5}
      primary_metric: ndcg@5

Everything that is wrong with it is told at once, each with its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import DataError
from .config import BLOCKS, config_document, is_setting, refuse_wrong_setting
from .names import file_name
from .refusal import refuse_errors
from .schema_words import SchemaError, Steps, json_path, shown

PAIRED, SPLIT = "paired", "split"
RAIL_KINDS = ("min", "max", "max_increase", "margin")
TESTS = {"auto": (PAIRED, SPLIT), "t_test": (PAIRED, SPLIT), "permutation": (PAIRED,), "welch": (SPLIT,)}
# Of the whole experiment: variants that differ in one of these cannot be compared.
_SHARED = ("dataset", "format", "limit", "seed", "out", "cache")
# How a system is called. Any other name under config_overrides is the system's own business, even if a plan
# has a setting of that name (alpha, min).
_OF_CALLS = frozenset(
    "system outputs top_k executor concurrency timeout max_failures retries rpm tpm budget_calls "
    "budget_tokens budget_cost breaker warm_up longest_wait adaptive plain_http api_key_env prompt http "
    "address price_input price_output".split()
)
_UNREAD = ("features_enabled", "features_disabled", "resource_limits")
_UNREAD_OF_ALL = ("max_duration_days", "auto_stop_enabled", "feature_flags")

_LONGEST_ID = 60  # two of them make the name of a run

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
    path = Path(path)
    document = config_document(path)
    if not isinstance(document, dict) or "ab_testing" not in document:
        raise DataError(
            path.name,
            "there is no experiment in it.",
            fix="Put it under 'ab_testing:', with experiment_id, variants and traffic_allocation.",
        )
    refuse_errors(experiment_errors(document, wrong_metric, wrong_rail), path.name)
    found = dict(_experiments(document["ab_testing"]))
    named = {block["experiment_id"]: block for block in found.values()}
    if experiment_id is None and len(named) == 1:
        experiment_id = next(iter(named))
    if experiment_id not in named:
        what = "does not say which experiment" if experiment_id is None else "has no experiment of that id"
        raise DataError(path.name, f"{what}.", fix=f"There are {', '.join(named)}: give --experiment ID.")
    return _experiment(named[experiment_id], {k: v for k, v in document.items() if k not in BLOCKS})


def experiment_errors(
    document: Mapping[str, Any],
    wrong_metric: MetricCheck | None = None,
    wrong_rail: RailCheck | None = None,
) -> list[str]:
    """Everything that keeps a document from being an experiment that can be run, each with its JSON path."""
    from .validation import DataFormatValidator

    errors = DataFormatValidator().validate_config(document)
    told = {error.partition(": ")[0] for error in errors}
    more = [*_plan_errors(document, told), *_block_errors(document, wrong_metric, wrong_rail)]
    # A place that the schema complained about is not complained about again.
    return [*errors, *(str(error) for error in more if error.path not in told)]


def _experiments(block: Any) -> Iterator[tuple[Steps, dict[str, Any]]]:
    if not isinstance(block, dict):
        return
    if isinstance(block.get("experiments"), list):
        for place, one in enumerate(block["experiments"]):
            if isinstance(one, dict):
                yield ("ab_testing", "experiments", place), one
    elif "experiment_id" in block:
        yield ("ab_testing",), block


def _plan_errors(document: Mapping[str, Any], told: set[str]) -> Iterator[SchemaError]:
    for key, value in document.items():
        if key not in BLOCKS and "$" not in told:
            yield from _setting_errors((key,), key, value)
        if is_setting(key) and key not in _OF_CALLS and key not in _SHARED:
            yield SchemaError(json_path((key,)), f"an experiment does not use it. Remove {key}.")


def _setting_errors(steps: Steps, key: str, value: Any) -> Iterator[SchemaError]:
    try:
        refuse_wrong_setting("", key, value)
    except DataError as error:
        yield SchemaError(json_path(steps), f"{error.what} {error.fix}")


def _block_errors(
    document: Mapping[str, Any], wrong_metric: MetricCheck | None, wrong_rail: RailCheck | None
) -> Iterator[SchemaError]:
    found = list(_experiments(document.get("ab_testing")))
    if not found:
        what = "there is no experiment in it. Write experiment_id, variants and traffic_allocation."
        yield SchemaError("$.ab_testing", what)
    yield from _alike_errors(
        [((*steps, "experiment_id"), block.get("experiment_id")) for steps, block in found], "experiment"
    )
    yield from _run_errors(found)
    ids = [block.get("experiment_id") for _, block in found]
    for steps, block in found:
        yield from _name_errors((*steps, "experiment_id"), block.get("experiment_id"))
        if ids.count(block.get("experiment_id")) > 1:
            what = "another experiment has this id too. Give each its own."
            yield SchemaError(json_path((*steps, "experiment_id")), what)
        yield from _number_errors(steps, block)
        yield from _variants_errors(steps, block, document)
        yield from _metrics_errors(steps, block, wrong_metric, wrong_rail)


def _alike_errors(ids: Sequence[tuple[Steps, Any]], what: str) -> Iterator[SchemaError]:
    """Ids that are one file name where case does not count, as on many disks."""
    names = [name for _, name in ids if isinstance(name, str)]
    folded = [name.casefold() for name in names]
    for steps, name in ids:
        if isinstance(name, str) and folded.count(name.casefold()) > names.count(name):
            than = "has this id but for the case of letters"
            yield SchemaError(json_path(steps), f"another {what} {than}. Give each its own.")


def _run_errors(found: Sequence[tuple[Steps, Mapping[str, Any]]]) -> Iterator[SchemaError]:
    """Variant b-c of experiment a, and variant c of a-b, would be one run."""
    seen: dict[str, Any] = {}
    for steps, block in found:
        experiment, variants = block.get("experiment_id"), block.get("variants")
        for place, variant in enumerate(variants if isinstance(variants, list) else ()):
            name = variant.get("variant_id") if isinstance(variant, dict) else None
            run = f"{experiment}-{name}".casefold()
            if seen.setdefault(run, experiment) != experiment:
                what = (
                    f"its run would be called {experiment}-{name}, as one of {shown(seen[run])}. Rename it."
                )
                yield SchemaError(json_path((*steps, "variants", place, "variant_id")), what)


def _name_errors(steps: Steps, name: Any) -> Iterator[SchemaError]:
    """Ids become the names of files: runs are called experiment-variant, results ab_test_experiment."""
    if not isinstance(name, str):
        return
    try:
        file_name(name)
    except DataError as error:
        yield SchemaError(json_path(steps), f"{shown(name)} {error.what} {error.fix}")
    else:
        if len(name) > _LONGEST_ID:
            yield SchemaError(json_path(steps), f"it is longer than {_LONGEST_ID} letters. Shorten it.")


def _number_errors(steps: Steps, block: Mapping[str, Any]) -> Iterator[SchemaError]:
    alpha, power = block.get("alpha", 0.05), block.get("power", 0.8)
    if _is_number(alpha) and not 0 < alpha < 1:
        yield SchemaError(json_path((*steps, "alpha")), "it must be between 0 and 1. The usual is 0.05.")
        alpha = 0.0
    if _is_number(power) and _is_number(alpha) and not alpha < power < 1:
        yield SchemaError(json_path((*steps, "power")), "it must be above alpha and below 1; usually 0.8.")
    test, how = block.get("statistical_test", "auto"), block.get("assignment", PAIRED)
    if isinstance(test, str) and test not in TESTS:
        what = f"there is no test {shown(test)}. There are {', '.join(TESTS)}."
        yield SchemaError(json_path((*steps, "statistical_test")), what)
    elif isinstance(test, str) and how in (PAIRED, SPLIT) and how not in TESTS[test]:
        yield SchemaError(
            json_path((*steps, "statistical_test")), f"{test} is not for {how} samples. Use auto."
        )


def _variants_errors(
    steps: Steps, block: Mapping[str, Any], document: Mapping[str, Any]
) -> Iterator[SchemaError]:
    variants = block.get("variants")
    if not isinstance(variants, list):
        return
    if len(variants) < 2:
        yield SchemaError(json_path((*steps, "variants")), "an experiment has two variants or more. Add one.")
    listed = [(n, one.get("variant_id")) for n, one in enumerate(variants) if isinstance(one, dict)]
    yield from _alike_errors([((*steps, "variants", n, "variant_id"), name) for n, name in listed], "variant")
    for place, variant in enumerate(variants):
        if isinstance(variant, dict):
            yield from _name_errors((*steps, "variants", place, "variant_id"), variant.get("variant_id"))
            yield from _variant_errors((*steps, "variants", place), variant, document)
    shares = block.get("traffic_allocation")
    if block.get("assignment") == SPLIT and isinstance(shares, dict):
        for name in (name for name, share in shares.items() if share == 0):
            what = "no sample would go to it. Give it a share, or remove the variant."
            yield SchemaError(json_path((*steps, "traffic_allocation", name)), what)


def _variant_errors(
    steps: Steps, variant: Mapping[str, Any], document: Mapping[str, Any]
) -> Iterator[SchemaError]:
    overrides = variant.get("config_overrides", {})
    overrides = overrides if isinstance(overrides, dict) else {}
    for key, value in overrides.items():
        place = (*steps, "config_overrides", key)
        if key in (*_SHARED, "metrics", "id"):
            what = "it is the same for all variants. Put it at the top of the file, or remove it."
            yield SchemaError(json_path(place), what)
        elif key in _OF_CALLS:
            yield from _setting_errors(place, key, value)
    settings = _settings(variant, overrides)
    if "system" in settings and "outputs" in settings:
        yield SchemaError(json_path(steps), "it has a system and outputs. Keep one of them.")
    named = {**document, **settings} if "outputs" not in settings else settings
    if not named.get("system") and not named.get("outputs"):
        what = "it does not say what to evaluate. Add 'system: module:attribute', or 'outputs: FILE'."
        yield SchemaError(json_path(steps), what)
    system = named.get("system")
    arguments = [key for key in overrides if key not in (*_OF_CALLS, *_SHARED, "metrics", "id")]
    if arguments and not (isinstance(system, str) and _is_python(system)):
        what = "only a system that is Python code can be given arguments. Is it a setting, misspelt?"
        yield SchemaError(json_path((*steps, "config_overrides", arguments[0])), what)


def _metrics_errors(
    steps: Steps,
    block: Mapping[str, Any],
    wrong_metric: MetricCheck | None,
    wrong_rail: RailCheck | None,
) -> Iterator[SchemaError]:
    names: list[tuple[Steps, Any]] = [((*steps, "primary_metric"), block.get("primary_metric", "ndcg@5"))]
    for key, field_name in (("secondary_metrics", None), ("guard_rails", "metric")):
        listed = block.get(key)
        for place, item in enumerate(listed if isinstance(listed, list) else ()):
            if field_name is None:
                names.append(((*steps, key, place), item))
            elif isinstance(item, dict):
                names.append(((*steps, key, place, field_name), item.get(field_name)))
                yield from _rail_errors((*steps, key, place), item, wrong_rail)
    for where, name in names:
        wrong = wrong_metric(name) if wrong_metric is not None and isinstance(name, str) else ""
        if wrong:
            yield SchemaError(json_path(where), wrong)


def _rail_errors(
    steps: Steps, rail: Mapping[str, Any], wrong_rail: RailCheck | None
) -> Iterator[SchemaError]:
    given = [kind for kind in RAIL_KINDS if kind in rail]
    if len(given) != 1:
        what = f"give one limit: {', '.join(RAIL_KINDS[:-1])} or {RAIL_KINDS[-1]}."
        yield SchemaError(json_path(steps), what)
        return
    (kind,) = given
    if kind == "margin" and _is_number(rail["margin"]) and not rail["margin"] > 0:
        what = "a margin is above 0: no data can rule out less. Use, for example, 0.02."
        yield SchemaError(json_path((*steps, "margin")), what)
    metric = rail.get("metric")
    wrong = wrong_rail(metric, kind) if wrong_rail is not None and isinstance(metric, str) else ""
    if wrong:
        yield SchemaError(json_path((*steps, kind)), wrong)


def _experiment(block: Mapping[str, Any], plan: Mapping[str, Any]) -> Experiment:
    shares = block["traffic_allocation"]
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
        _settings(variant, overrides),
        {key: value for key, value in overrides.items() if key not in _OF_CALLS},
    )


def _settings(variant: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    named = {key: variant[key] for key in ("system", "outputs") if key in variant}
    return {**named, **{key: value for key, value in overrides.items() if key in _OF_CALLS}}


def _unread(block: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields that mean something to a service that is live, and nothing to a run of a dataset."""
    found = [key for key in _UNREAD_OF_ALL if key in block]
    variants: Sequence[Mapping[str, Any]] = block["variants"]
    return (*found, *(key for key in _UNREAD if any(variant.get(key) for variant in variants)))


def _is_python(system: str) -> bool:
    return not system.startswith(("openai:", "http:", "https:"))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
