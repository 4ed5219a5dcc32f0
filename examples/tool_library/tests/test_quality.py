"""The build fails if the help desk gets worse, or is not good enough."""

from __future__ import annotations

import pytest
from evaluate import evaluate

from auepora_eval import EvaluationRun

BASELINE = "baseline"


@pytest.fixture(scope="session")
def run() -> EvaluationRun:
    return evaluate("this-change")


def test_no_answer_gets_lost(run, assert_no_regression):
    assert_no_regression(run, BASELINE, margin={"recall@3": 0.05, "contains_answer": 0.05})


def test_nothing_is_surely_worse(run, assert_no_regression):
    assert_no_regression(run, BASELINE)


def test_it_is_good_enough(run, assert_gate):
    assert_gate(run, BASELINE, rules="gate.yaml")
