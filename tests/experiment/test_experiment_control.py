"""Nobody wins, and yet the control should go: the verdict says who is better than it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.io.config.experiment import GuardRail, Variant, experiment_errors, load_experiment
from tests.experiment.experimenting import EXPERIMENT, outcome, system
from tests.io.test_experiment_config import SMALL, block, written

THREE = replace(EXPERIMENT, variants=tuple(Variant(name, share=1 / 3) for name in "abc"))


def test_two_that_cannot_be_told_apart_both_beat_the_control(tmp_path: Path) -> None:
    found = outcome(tmp_path, THREE, system(20), system(44), system(45)).verdict
    assert found.winner == "none"
    assert re.fullmatch(
        r"inconclusive on recall@1: c and b do not differ significantly \(.*\)\. .* But b "
        r"\(\+0\.4, p < 0\.001\) and "
        r"c \(\+0\.4167, p < 0\.001\) are each better than a, the control\.",
        found.reason,
    )


def test_who_breaks_a_guard_rail_is_not_named(tmp_path: Path) -> None:
    """c is best but says the wrong words; b is better than the control and keeps to them."""
    guarded = replace(THREE, guard_rails=(GuardRail("token_f1", "min", 0.5),))
    found = outcome(tmp_path, guarded, system(20), system(35), system(55, words=10)).verdict
    assert found.winner == "none"
    assert found.reason.startswith("c is best on recall@1, but the value of token_f1 is")
    assert found.reason.endswith(" But b (+0.25, p < 0.001) is better than a, the control.")


@pytest.mark.parametrize("hits", [(45, 44, 20), (20, 21, 22)])
def test_where_nobody_beats_the_control_nobody_is_named(tmp_path: Path, hits: tuple[int, ...]) -> None:
    found = outcome(tmp_path, THREE, *map(system, hits)).verdict
    assert found.winner == "none"
    assert "the control" not in found.reason


def test_a_small_lead_over_the_control_is_none(tmp_path: Path) -> None:
    found = outcome(tmp_path, replace(THREE, minimum_lead=0.5), system(20), system(44), system(45)).verdict
    assert "the control" not in found.reason


def test_times_have_no_p_in_python_either(tmp_path: Path) -> None:
    timed = replace(EXPERIMENT, primary_metric="mean_latency")
    pairs = outcome(tmp_path, timed, system(20), system(45)).tests
    tests = [one.comparison.test for one in pairs]
    assert [(one.p, one.p_adjusted) for one in tests if one.not_tested] == [(None, None)]
    assert all(one.p_adjusted is not None for one in tests if not one.not_tested)


def without_shares(**changes: Any) -> dict[str, Any]:
    document = block(**changes)
    del document["ab_testing"]["traffic_allocation"]
    return document


def test_samples_that_all_variants_answer_have_no_shares(tmp_path: Path) -> None:
    assert experiment_errors(without_shares()) == []
    lines = [line for line in SMALL.splitlines() if "traffic_allocation" not in line]
    found = load_experiment(written(tmp_path, "\n".join(lines)))
    assert found.shares == {"small": 0.5, "large": 0.5}


def test_samples_that_are_split_have(tmp_path: Path) -> None:
    assert experiment_errors(without_shares(assignment="split")) == [
        "$.ab_testing.traffic_allocation: samples that are split need the share of each variant. Add it."
    ]
