"""Experiments as files: what they may say, and every error at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auepora_eval.errors import DataError
from auepora_eval.io.config.experiment import (
    GuardRail,
    configuration_errors,
    experiment_errors,
    load_experiment,
)
from auepora_eval.io.config.plan import OtherBlockWarning, load_config
from auepora_eval.io.schema.validate import ErrorsError

SMALL = """
dataset: d.jsonl
top_k: 3
ab_testing:
  experiment_id: chunks
  variants:
    - {variant_id: small, system: "rag.py:Rag", config_overrides: {chunk_size: 256, top_k: 5}}
    - {variant_id: large, outputs: large.jsonl}
  traffic_allocation: {small: 0.5, large: 0.5}
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "e.config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def block(**changes: Any) -> dict[str, Any]:
    """A document with one experiment that is right, but for the changes."""
    variants = [{"variant_id": name, "system": "m:a"} for name in "ab"]
    experiment = {"experiment_id": "e", "variants": variants, "traffic_allocation": {"a": 0.5, "b": 0.5}}
    return {"dataset": "d.jsonl", "ab_testing": {**experiment, **changes}}


def variants(**changes: Any) -> list[dict[str, Any]]:
    return [{"variant_id": "a", "system": "m:a"}, {"variant_id": "b", "system": "m:a", **changes}]


def test_an_experiment_and_what_is_usual(tmp_path: Path) -> None:
    found = load_experiment(written(tmp_path, SMALL))
    assert (found.experiment_id, found.primary_metric, found.assignment) == ("chunks", "ndcg@5", "paired")
    assert (found.alpha, found.power, found.min_sample_size) == (0.05, 0.8, 1000)
    assert found.plan == {"dataset": "d.jsonl", "top_k": 3}
    small, large = found.variants
    assert (small.settings, small.arguments) == ({"system": "rag.py:Rag", "top_k": 5}, {"chunk_size": 256})
    assert large.settings == {"outputs": "large.jsonl"}
    assert found.shares == {"small": 0.5, "large": 0.5}


def test_everything_else_that_it_may_say(tmp_path: Path) -> None:
    more = """
  name: Chunks
  assignment: split
  statistical_test: welch
  minimum_lead: 0
  secondary_metrics: [mrr]
  guard_rails: [{metric: mrr, margin: 0.02}, {metric: failure_rate, max: 0.1}]
  max_duration_days: 30
"""
    found = load_experiment(written(tmp_path, SMALL + more))
    assert found.guard_rails == (GuardRail("mrr", "margin", 0.02), GuardRail("failure_rate", "max", 0.1))
    assert (found.minimum_lead, found.secondary_metrics) == (0, ("mrr",))
    assert found.unread == ("max_duration_days",)


def test_an_argument_may_be_called_as_a_setting_that_no_call_has(tmp_path: Path) -> None:
    found = load_experiment(written(tmp_path, SMALL.replace("chunk_size: 256", "alpha: 0.3")))
    assert found.variants[0].arguments == {"alpha": 0.3}


def test_shares_that_are_a_hundredth_off_are_of_a_whole(tmp_path: Path) -> None:
    thirds = SMALL.replace("small: 0.5, large: 0.5", "small: 0.33, large: 0.66").replace("0.66}", "0.661}")
    assert load_experiment(written(tmp_path, thirds)).shares["small"] == pytest.approx(0.33 / 0.991)


def test_one_of_several(tmp_path: Path) -> None:
    one = SMALL.split("ab_testing:\n")[1]
    listed = "\n".join(f"    {line}" for line in one.splitlines()).replace(
        "      experiment_id", "    - experiment_id"
    )
    path = written(tmp_path, f"ab_testing:\n  experiments:\n{listed}\n{listed.replace('chunks', 'other')}")
    assert load_experiment(path, "other").experiment_id == "other"
    with pytest.raises(DataError, match="There are chunks, other: give --experiment ID"):
        load_experiment(path)
    with pytest.raises(DataError, match="no experiment of that id"):
        load_experiment(path, "third")


def test_a_right_one_has_no_errors() -> None:
    assert experiment_errors(block()) == []


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (block(experiment_id="a/b"), "$.ab_testing.experiment_id: 'a/b' cannot be a file name"),
        (block(alpha=0), "$.ab_testing.alpha: it must be between 0 and 1"),
        (block(power=0.01), "$.ab_testing.power: it must be above alpha"),
        (block(statistical_test="z"), "$.ab_testing.statistical_test: there is no test 'z'"),
        (block(statistical_test="welch"), "welch is not for paired samples"),
        (block(assignment="some"), "$.ab_testing.assignment"),
        (block(traffic_allocation={"a": 0.5, "b": 0.6}), "the shares sum to 1.1, not 1"),
        (block(traffic_allocation={"a": 0.5, "c": 0.5}), "it does not name the variants"),
        (block(assignment="split", traffic_allocation={"a": 1, "b": 0}), "no sample would go to it"),
        (block(variants=variants()[:1], traffic_allocation={"a": 1}), "two variants or more"),
        (
            block(
                variants=variants(variant_id="x" * 61)[1:] + variants()[:1],
                traffic_allocation={"x" * 61: 0.5, "a": 0.5},
            ),
            "longer than 60",
        ),
        (
            block(variants=variants(variant_id="../b"), traffic_allocation={"a": 0.5, "../b": 0.5}),
            "$.ab_testing.variants[1].variant_id: '../b' cannot be a file name",
        ),
        (block(variants=variants(outputs="o.jsonl")), "it has a system and outputs"),
        (block(variants=[{"variant_id": "a"}, variants()[1]]), "$.ab_testing.variants[0]: it does not say"),
        (
            block(variants=variants(config_overrides={"top_k": 0})),
            "$.ab_testing.variants[1].config_overrides.top_k: 0 is out of range",
        ),
        (block(variants=variants(config_overrides={"seed": 1})), "it is the same for all variants"),
        (
            block(variants=variants(system="http://127.0.0.1/", config_overrides={"depth": 1})),
            "only a system that is Python code can be given arguments",
        ),
        (block(guard_rails=[{"metric": "mrr"}]), "$.ab_testing.guard_rails[0]: give one limit"),
        (block(guard_rails=[{"metric": "mrr", "max": 1, "min": 0}]), "give one limit"),
        (block(guard_rails=[{"metric": "mrr", "margin": 0}]), "a margin is above 0"),
        (block(guard_rails=[{"metric": "mrr", "most": 0}]), "$.ab_testing.guard_rails[0]"),
        ({**block(), "top_k": "x"}, "$.top_k: a whole number was expected"),
        ({**block(), "metrics": "mrr"}, "$.metrics: an experiment does not use it"),
        ({**block(), "id": "x"}, "$.id: an experiment does not use it"),
        ({**block(), "ab_testing": {"enabled": True}}, "$.ab_testing: there is no experiment in it"),
        (block(primary_metric="nonsense"), "$.ab_testing.primary_metric: no such metric"),
        (block(guard_rails=[{"metric": "mrr", "margin": -1}]), "a margin is above 0"),
        (
            block(guard_rails=[{"metric": "mrr", "max_increase": 0.1}]),
            "$.ab_testing.guard_rails[0].max_increase: not for that one",
        ),
        (block(experiment_id=""), "$.ab_testing.experiment_id: '' cannot be a file name"),
        (block(experiment_id="-rf"), "$.ab_testing.experiment_id: '-rf' cannot be a file name"),
        (block(power=2, alpha=0.05), "$.ab_testing.power"),
        (
            block(variants=variants(config_override={"p": 1})),
            "$.ab_testing.variants[1]: there is no field 'config_override'",
        ),
        (block(variants=variants(nonsense=3)), "$.ab_testing.variants[1]: there is no field 'nonsense'"),
        (block(variants=variants(top_k=3)), "$.ab_testing.variants[1]: there is no field 'top_k'"),
    ],
)
def test_errors(document: dict[str, Any], expected: str) -> None:
    errors = experiment_errors(
        document,
        lambda name: "no such metric" if name == "nonsense" else "",
        lambda name, kind: "not for that one" if kind == "max_increase" else "",
    )
    assert len(errors) == 1
    assert expected in errors[0]


METRICS_ALONE = [
    block(primary_metric="nonsense"),
    block(guard_rails=[{"metric": "mrr", "max_increase": 0.1}]),
]


@pytest.mark.parametrize(
    "document",
    [
        *(block(experiment_id=name) for name in ("", "-rf", "x:y", "a b", "../../evil")),
        block(variants=variants(variant_id="a/b"), traffic_allocation={"a": 0.5, "a/b": 0.5}),
        block(statistical_test="anova"),
        block(guard_rails=[{"metric": "mrr", "max": 1, "min": 0}]),
        block(guard_rails=[{"metric": "mrr", "margin": -1}]),
        block(variants=variants(outputs="o.jsonl")),
        block(variants=[{"variant_id": "a"}, variants()[1]]),
        block(variants=variants(config_overrides={"top_k": 0})),
        {**block(), "metrics": "mrr"},
        *METRICS_ALONE,
    ],
)
def test_the_validator_says_what_the_experiment_would_say(document: dict[str, Any]) -> None:
    told = configuration_errors(document)
    assert told == experiment_errors(document)
    assert bool(told) is (document not in METRICS_ALONE)


def test_settings_of_a_live_service_are_a_configuration() -> None:
    """No variant says what to evaluate: there is nothing to run here, but the form is checked."""
    live = [{"variant_id": name, "features_enabled": ["rerank"]} for name in "ab"]
    document = {**block(variants=live), "metrics": ["mrr"]}
    assert configuration_errors(document) == []
    assert len(experiment_errors(document)) == 3
    (error,) = configuration_errors(block(variants=live, statistical_test="anova"))
    assert error.startswith("$.ab_testing.statistical_test: there is no test 'anova'")
    assert configuration_errors({"ab_testing": {"enabled": True}}) == []


def test_a_plan_is_read_though_its_experiment_could_not_be_run(tmp_path: Path) -> None:
    path = written(tmp_path, f"metrics: [mrr]\n{SMALL}")
    with pytest.warns(OtherBlockWarning, match="ab_testing: not part of the plan"):
        assert load_config(path)["metrics"] == ["mrr"]


def test_a_wrong_power_is_told_beside_a_wrong_alpha() -> None:
    errors = experiment_errors(block(alpha=0, power=1))
    assert [error.partition(":")[0] for error in errors] == ["$.ab_testing.alpha", "$.ab_testing.power"]


def test_all_errors_at_once(tmp_path: Path) -> None:
    text = SMALL.replace("top_k: 5", "top_k: 0").replace("chunks", "a/b") + "  power: 0.01\n"
    with pytest.raises(ErrorsError) as caught:
        load_experiment(written(tmp_path, text))
    places = [error.partition(": ")[0].removeprefix("$.ab_testing.") for error in caught.value.errors]
    assert places == [
        "experiment_id",
        "power",
        "variants[0].config_overrides.top_k",
    ]


@pytest.mark.parametrize("text", ["dataset: d.jsonl\n", "[]\n", "ab_testing\n", "\n"])
def test_a_file_without_an_experiment(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match="there is no experiment in it"):
        load_experiment(written(tmp_path, text))


@pytest.mark.parametrize("value", [None, 3, [], {}, "x", [None], {"variants": 3}, {"experiments": [3]}])
def test_whatever_stands_there_has_an_error_and_no_crash(value: Any) -> None:
    assert experiment_errors({"ab_testing": value})


@pytest.mark.parametrize("key", ["experiment_id", "variants", "traffic_allocation", "guard_rails", "alpha"])
@pytest.mark.parametrize("value", [None, [3], {"a": []}, "x", float("inf")])
def test_a_wrong_value_has_an_error_and_no_crash(key: str, value: Any) -> None:
    errors = experiment_errors(block(**{key: value}))
    assert errors or (key == "experiment_id" and value == "x")
