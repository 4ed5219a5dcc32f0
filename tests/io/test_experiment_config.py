"""Experiments as files: what they may say, and what is wrong with them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.errors import DataError
from auepora_eval.io.config.experiment import load_experiment
from auepora_eval.io.schema import config_form_errors

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
    assert (found.experiment_id, found.primary_metric) == ("chunks", "ndcg@5")
    assert (found.alpha, found.min_sample_size, found.unread) == (0.05, 1000, ("traffic_allocation",))
    assert found.plan == {"dataset": "d.jsonl", "top_k": 3}
    small, large = found.variants
    assert (small.settings, small.arguments) == ({"system": "rag.py:Rag", "top_k": 5}, {"chunk_size": 256})
    assert large.settings == {"outputs": "large.jsonl"}


def test_everything_else_that_it_may_say(tmp_path: Path) -> None:
    more = """
  name: Chunks
  secondary_metrics: [mrr]
  guard_rails: {margin: {mrr: 0.02}, max: {failure_rate: 0.1}}
  max_duration_days: 30
"""
    found = load_experiment(written(tmp_path, SMALL + more))
    assert found.guard_rails == {"margin": {"mrr": 0.02}, "max": {"failure_rate": 0.1}}
    assert found.secondary_metrics == ("mrr",)
    assert found.unread == ("traffic_allocation", "max_duration_days")


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (block(alpha=0), "$.ab_testing.alpha"),
        (block(assignment="split"), "'assignment'"),
        (block(traffic_allocation={"a": 0.5, "b": 0.6}), "the shares sum to 1.1, not 1"),
        (block(traffic_allocation={"a": 0.5, "c": 0.5}), "it does not name the variants"),
        (block(variants=variants()[:1], traffic_allocation={"a": 1}), "two or more"),
        (block(variants=variants(outputs="o.jsonl")), "b: it has a system and outputs"),
        (block(variants=variants(config_overrides={"top_k": 0})), "b: $.top_k: 0 is less than the minimum"),
        (block(guard_rails=[{"metric": "mrr", "max": 1}]), "$.ab_testing.guard_rails"),
        ({**block(), "top_k": "x"}, "$.top_k: 'x' is not of type"),
        ({**block(), "metrics": "mrr"}, "metrics: an experiment does not use it"),
        ({**block(), "id": "x"}, "id: an experiment does not use it"),
        ({**block(), "ab_testing": {"enabled": True}}, "there is no experiment in it"),
        ({"dataset": "d.jsonl"}, "there is no experiment in it"),
        (block(variants=variants(config_override={"p": 1})), "'config_override'"),
    ],
)
def test_errors(tmp_path: Path, document: dict[str, Any], expected: str) -> None:
    path = tmp_path / "e.config.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(DataError, match=re.escape(expected)):
        load_experiment(path)


@pytest.mark.parametrize("value", [3, [], "x", [None], {"variants": 3}, {"experiments": [3]}])
def test_whatever_stands_there_has_an_error_and_no_crash(value: Any) -> None:
    assert config_form_errors({"ab_testing": value})


@pytest.mark.parametrize("key", ["experiment_id", "variants", "traffic_allocation", "guard_rails", "alpha"])
@pytest.mark.parametrize("value", [None, [3], "x", float("inf")])
def test_a_wrong_value_has_an_error_and_no_crash(key: str, value: Any) -> None:
    errors = config_form_errors(block(**{key: value}))
    assert errors or (key == "experiment_id" and value == "x")
