"""The settings of a run: one definition, from which flags, plan keys, headers and schemas are derived."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import field, make_dataclass
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.flags import add_settings
from auepora_eval.core import settings
from auepora_eval.core.settings import (
    COUNT,
    PATHS,
    PLAN_KEYS,
    SECONDS,
    SETTINGS,
    SHARE,
    RunSettings,
    Setting,
)
from auepora_eval.errors import DataError, PlanError
from auepora_eval.io.config.plan import BLOCKS, check_config, planned
from auepora_eval.io.schema import checker, schema

VALUES = {
    "text": "some text",
    "whole number": 3,
    "number": 0.5,
    "switch": True,
    "names": ["a", "b"],
    "mapping": {"answer": "said"},
    "options": {"temperature": 0},
}


@pytest.fixture
def shards(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[RunSettings]]:
    """RunSettings with one more field, as if it were in the source."""
    facts = Setting(help="parts of the dataset", metavar="N", number=COUNT)
    more = ("shards", int | None, field(default=None, metadata={"setting": facts}))
    extended: Any = make_dataclass("RunSettings", [more], bases=(RunSettings,))
    extended.__module__ = settings.__name__
    monkeypatch.setattr(settings, "RunSettings", extended)
    described = settings._described()
    for table in (SETTINGS, PLAN_KEYS):
        monkeypatch.setitem(table, "shards", described["shards"])
    monkeypatch.setattr(settings, "STORED", (*settings.STORED, "shards"))
    checker.cache_clear()
    yield extended
    checker.cache_clear()


def test_new_setting_is_flag_plan_key_stored_setting_and_schema(shards: Any) -> None:
    parser = ArgumentParser()
    add_settings(parser, *SETTINGS)
    assert parser.parse_args(["--shards", "3"]).shards == 3
    with pytest.raises(SystemExit):
        parser.parse_args(["--shards", "0"])
    check_config({"shards": 3}, "plan")
    with pytest.raises(DataError, match=r"plan: shards: 0 is out of range\. Use at least 1"):
        check_config({"shards": 0}, "plan")
    assert schema("config")["properties"]["shards"] == {"type": "integer", "minimum": 1}
    assert shards.merged({"shards": 3}).as_stored()["shards"] == 3


def test_the_schema_of_plans_has_all_settings_and_the_blocks() -> None:
    assert set(schema("config")["properties"]) == {*PLAN_KEYS, *BLOCKS}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("system", {"type": "string"}),
        ("top_k", {"type": "integer", "minimum": 1}),
        ("timeout", {"type": "number", "minimum": 0.001}),
        ("alpha", {"type": "number", "minimum": 0, "maximum": 1}),
        ("plain_http", {"type": "boolean"}),
        ("metrics", {"type": ["array", "string"], "items": {"type": "string"}}),
        ("http", {"type": "object", "additionalProperties": {"type": ["string"]}}),
        ("stop_when", {"enum": ["clear"]}),
    ],
)
def test_the_schema_of_a_setting(name: str, expected: dict[str, object]) -> None:
    assert SETTINGS[name].schema == expected


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


def test_the_settings_of_a_judge_are_those_that_start_with_its_name() -> None:
    calls = RunSettings.merged(
        {"judge_retries": 0, "judge_rpm": 60, "rpm": 9, "judge_timeout": 2.5}
    ).for_judge()
    assert (calls.retries, calls.rpm, calls.timeout, calls.concurrency) == (0, 60, 2.5, 8)


def test_later_layers_win_and_none_is_left_out() -> None:
    merged = RunSettings.merged({"top_k": 3, "limit": 9}, {"top_k": 7, "limit": None, "unknown": 1})
    assert (merged.top_k, merged.limit, merged.seed) == (7, 9, 0)


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


@pytest.mark.parametrize(
    ("number", "inside", "outside"), [(COUNT, 1, 0), (SECONDS, 0.1, 0), (SHARE, 0.5, 1), (SHARE, 0.5, 0)]
)
def test_ranges(number: settings.Number, inside: float, outside: float) -> None:
    assert number.accepts(inside)
    assert not number.accepts(outside)
    assert not number.accepts(float("nan"))
