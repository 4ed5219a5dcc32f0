"""What is wrong with an experiment that a configuration file describes: every error, each with its place.

One checker for all who ask: `auepora experiment`, which knows the metrics too, and `dataset validate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import DataError
from .config import BLOCKS, is_setting, refuse_wrong_setting
from .experiment_config import (
    OF_CALLS,
    PAIRED,
    RAIL_KINDS,
    SPLIT,
    MetricCheck,
    RailCheck,
    experiments_of,
    settings_of,
)
from .names import file_name
from .schema_words import SchemaError, Steps, json_path, shown
from .validation import config_form_errors

TESTS = {"auto": (PAIRED, SPLIT), "t_test": (PAIRED, SPLIT), "permutation": (PAIRED,), "welch": (SPLIT,)}
# Of the whole experiment: variants that differ in one of these cannot be compared.
_SHARED = ("dataset", "format", "limit", "seed", "out", "cache")
_LONGEST_ID = 60  # two of them make the name of a run

Found = Sequence[tuple[Steps, Mapping[str, Any]]]


def experiment_errors(
    document: Mapping[str, Any],
    wrong_metric: MetricCheck | None = None,
    wrong_rail: RailCheck | None = None,
) -> list[str]:
    """Everything that keeps a document from being an experiment that can be run, each with its JSON path."""
    found = list(experiments_of(document.get("ab_testing")))
    errors = config_form_errors(document)
    told = {error.partition(": ")[0] for error in errors}
    more = list(_plan_errors(document, told))
    if not found:
        what = "there is no experiment in it. Write experiment_id and variants."
        more.append(SchemaError("$.ab_testing", what))
    more += _block_errors(found, wrong_metric, wrong_rail)
    more += _source_errors(found, document)
    # A place that was complained about is not complained about again.
    return [*errors, *(str(error) for error in more if error.path not in told)]


def configuration_errors(document: Any) -> list[str]:
    """Everything that is wrong with a configuration, as far as that can be told without metrics or systems.

    An experiment in which nothing says what to evaluate is one of a service that is live: its form is
    checked, and that it cannot be run here is not held against it.
    """
    found = list(experiments_of(document.get("ab_testing"))) if isinstance(document, dict) else []
    if any(_names_a_source(block, document) for _, block in found):
        return experiment_errors(document)
    errors = config_form_errors(document)
    told = {error.partition(": ")[0] for error in errors}
    return [*errors, *(str(error) for error in _block_errors(found) if error.path not in told)]


def _names_a_source(block: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    variants = block.get("variants")
    listed = [one for one in variants if isinstance(one, dict)] if isinstance(variants, list) else []
    places = (document, *listed, *map(_overrides, listed))
    return any(name in one for one in places for name in ("system", "outputs"))


def _plan_errors(document: Mapping[str, Any], told: set[str]) -> Iterator[SchemaError]:
    for key, value in document.items():
        if key not in BLOCKS and "$" not in told:
            yield from _setting_errors((key,), key, value)
        if is_setting(key) and key not in OF_CALLS and key not in _SHARED:
            yield SchemaError(json_path((key,)), f"an experiment does not use it. Remove {key}.")


def _setting_errors(steps: Steps, key: str, value: Any) -> Iterator[SchemaError]:
    try:
        refuse_wrong_setting("", key, value)
    except DataError as error:
        yield SchemaError(json_path(steps), f"{error.what} {error.fix}")


def _block_errors(
    found: Found, wrong_metric: MetricCheck | None = None, wrong_rail: RailCheck | None = None
) -> Iterator[SchemaError]:
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
        yield from _variants_errors(steps, block)
        yield from _metrics_errors(steps, block, wrong_metric, wrong_rail)


def _alike_errors(ids: Sequence[tuple[Steps, Any]], what: str) -> Iterator[SchemaError]:
    """Ids that are one file name where case does not count, as on many disks."""
    names = [name for _, name in ids if isinstance(name, str)]
    folded = [name.casefold() for name in names]
    for steps, name in ids:
        if isinstance(name, str) and folded.count(name.casefold()) > names.count(name):
            than = "has this id but for the case of letters"
            yield SchemaError(json_path(steps), f"another {what} {than}. Give each its own.")


def _run_errors(found: Found) -> Iterator[SchemaError]:
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


def _variants_errors(steps: Steps, block: Mapping[str, Any]) -> Iterator[SchemaError]:
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
            yield from _variant_errors((*steps, "variants", place), variant)
    shares = block.get("traffic_allocation")
    if block.get("assignment") == SPLIT and "traffic_allocation" not in block:
        what = "samples that are split need the share of each variant. Add it."
        yield SchemaError(json_path((*steps, "traffic_allocation")), what)
    if block.get("assignment") == SPLIT and isinstance(shares, dict):
        for name in (name for name, share in shares.items() if share == 0):
            what = "no sample would go to it. Give it a share, or remove the variant."
            yield SchemaError(json_path((*steps, "traffic_allocation", name)), what)


def _variant_errors(steps: Steps, variant: Mapping[str, Any]) -> Iterator[SchemaError]:
    overrides = _overrides(variant)
    for key, value in overrides.items():
        place = (*steps, "config_overrides", key)
        if key in (*_SHARED, "metrics", "id"):
            what = "it is the same for all variants. Put it at the top of the file, or remove it."
            yield SchemaError(json_path(place), what)
        elif key in OF_CALLS:
            yield from _setting_errors(place, key, value)
    settings = settings_of(variant, overrides)
    if "system" in settings and "outputs" in settings:
        yield SchemaError(json_path(steps), "it has a system and outputs. Keep one of them.")


def _overrides(variant: Mapping[str, Any]) -> dict[str, Any]:
    overrides = variant.get("config_overrides")
    return overrides if isinstance(overrides, dict) else {}


def _source_errors(found: Found, document: Mapping[str, Any]) -> Iterator[SchemaError]:
    """Each variant says what to evaluate, and gives arguments only to what takes them."""
    for steps, block in found:
        variants = block.get("variants")
        for place, variant in enumerate(variants if isinstance(variants, list) else ()):
            if isinstance(variant, dict):
                yield from _variant_source_errors((*steps, "variants", place), variant, document)


def _variant_source_errors(
    steps: Steps, variant: Mapping[str, Any], document: Mapping[str, Any]
) -> Iterator[SchemaError]:
    overrides = _overrides(variant)
    settings = settings_of(variant, overrides)
    named = {**document, **settings} if "outputs" not in settings else settings
    if not named.get("system") and not named.get("outputs"):
        what = "it does not say what to evaluate. Add 'system: module:attribute', or 'outputs: FILE'."
        yield SchemaError(json_path(steps), what)
    system = named.get("system")
    arguments = [key for key in overrides if key not in (*OF_CALLS, *_SHARED, "metrics", "id")]
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


def _is_python(system: str) -> bool:
    return not system.startswith(("openai:", "http:", "https:"))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
