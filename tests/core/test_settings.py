"""The settings of a run: one definition, from which flags, plan keys, headers and schemas are derived."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auepora_eval.core.settings import (
    PATHS,
    PLAN_KEYS,
    RunSettings,
)
from auepora_eval.errors import PlanError
from auepora_eval.io.config.plan import BLOCKS, planned
from auepora_eval.io.schema import schema

VALUES = {
    "text": "some text",
    "whole number": 3,
    "number": 0.5,
    "switch": True,
    "names": ["a", "b"],
    "mapping": {"answer": "said"},
    "options": {"temperature": 0},
}


def test_the_schema_of_plans_has_all_settings_and_the_blocks() -> None:
    assert set(schema("config")["properties"]) == {*PLAN_KEYS, *BLOCKS}


@pytest.mark.parametrize("name", PLAN_KEYS)
def test_every_key_of_a_plan_is_described_and_reaches_the_settings(name: str, tmp_path: Path) -> None:
    setting = PLAN_KEYS[name]
    assert setting.help
    value = setting.choices[0] if setting.choices else VALUES[setting.kind]
    path = tmp_path / "plan.config.json"
    path.write_text(json.dumps({name: value}), encoding="utf-8")
    assert getattr(RunSettings.merged(planned(path)), name) == (
        str(tmp_path / str(value)) if name in PATHS else value
    )


def test_later_layers_win_and_none_is_left_out() -> None:
    merged = RunSettings.merged({"top_k": 3, "limit": 9}, {"top_k": 7, "limit": None, "unknown": 1})
    assert (merged.top_k, merged.limit, merged.seed) == (7, 9, 0)
    assert repr(RunSettings.merged({"limit": 2.0}).limit) == "2"


@pytest.mark.parametrize(("concurrency", "executor"), [(1, "serial"), (4, "threads")])
def test_the_executor_follows_the_concurrency(concurrency: int, executor: str) -> None:
    assert RunSettings(concurrency=concurrency).executor == executor


def test_stored_settings_round_trip() -> None:
    first = RunSettings(dataset="d.jsonl", system="m:f", limit=3, rpm=60, stop_when="clear", min=["mrr=0.5"])
    again = RunSettings.merged(first.as_stored())
    assert again.as_stored() == first.as_stored()
    assert first.as_stored()["rpm"] == 60
    assert "seed" not in first.as_stored()  # the header of a run has it


def test_the_call_policy() -> None:
    policy = RunSettings(system="openai:http://127.0.0.1#m", rpm=60, longest_wait=5).call_policy()
    assert (policy.retries, policy.requests_per_minute, policy.longest_retry_after) == (4, 60, 5)
    assert RunSettings(system="m:f", retries=2, retry_on="my.Loading").call_policy().retry_on[-1] == "Loading"
    with pytest.raises(PlanError, match="retry_on needs retries"):
        RunSettings(retry_on="Loading").call_policy()
    with pytest.raises(PlanError, match="budget_cost needs price_input"):
        RunSettings(budget_cost=1.0).call_policy()
