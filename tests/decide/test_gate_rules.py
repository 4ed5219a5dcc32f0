"""The rules of a gate as files and records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.decide.rules import ALL, GateRules, Rule, read_rules, rules_of
from auepora_eval.errors import DataError

FILE = """
alpha: 0.1
if_inconclusive: fail
min:
  recall@5: 0.8
  ndcg@10: {limit: 0.6, on: bound}
max: {latency_stats.p95: 2000}
margin: {recall@5: 0.02}
no_regression: [token_f1, mrr]
max_loss: {memory_mb.peak: {limit: 0.2, on: value}}
max_count_drop: {limit: 0.2}
max_failed: 0.01
"""


def test_a_file_of_rules(tmp_path: Path) -> None:
    path = tmp_path / "gate.yaml"
    path.write_text(FILE, encoding="utf-8")
    assert read_rules(path) == GateRules(
        (
            Rule("min", "recall@5", 0.8),
            Rule("min", "ndcg@10", 0.6, on="bound"),
            Rule("max", "latency_stats.p95", 2000),
            Rule("margin", "recall@5", 0.02),
            Rule("no_regression", "token_f1"),
            Rule("no_regression", "mrr"),
            Rule("max_loss", "memory_mb.peak", 0.2),
            Rule("max_count_drop", "", 0.2),
            Rule("max_failed", "", 0.01),
        ),
        alpha=0.1,
        if_inconclusive="fail",
    )


@pytest.mark.parametrize(
    ("record", "rules"),
    [
        pytest.param({"margin": 0.02}, [Rule("margin", ALL, 0.02)], id="one margin for all"),
        pytest.param(
            {"margin": {"all": 0.02, "mrr": 0.1}}, [Rule("margin", ALL, 0.02), Rule("margin", "mrr", 0.1)]
        ),
        pytest.param({"no_regression": True}, [Rule("no_regression", ALL)], id="true"),
        pytest.param({"no_regression": False}, [], id="false"),
        pytest.param({"no_regression": "a, b"}, [Rule("no_regression", "a"), Rule("no_regression", "b")]),
        pytest.param(
            {"no_regression": {"mrr": None, "all": None}},
            [Rule("no_regression", "mrr"), Rule("no_regression", ALL)],
        ),
        pytest.param({"max": None}, [], id="null is nothing"),
    ],
)
def test_short_forms(record: dict[str, Any], rules: list[Rule]) -> None:
    assert list(rules_of(record).rules) == rules


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ([], "Expected"),
        ({"mins": {}}, "Did you mean min?"),
        ({"min": {"all": 0.8}}, "needs the name of a metric"),
        ({"min": {"mrr": "much"}}, "rules: min.mrr: limit: Expected"),
        ({"min": {"mrr": float("nan")}}, "nan is out of range"),
        ({"min": {"mrr": {"on": "bound"}}}, "there is no limit"),
        ({"min": {"mrr": {"limit": 1, "on": "top"}}}, "Use value or bound"),
        ({"margin": {"mrr": 0}}, "Use a positive number"),
        ({"max_failed": 1}, "Use a share"),
        ({"no_regression": {"mrr": {"limit": 1}}}, "this rule has no limit"),
        ({"alpha": 1}, "< 1"),
        ({"if_inconclusive": "shrug"}, "stop, pass or fail"),
    ],
)
def test_what_is_no_rule_is_refused(record: Any, says: str) -> None:
    with pytest.raises(DataError, match=says.replace("?", r"\?")):
        rules_of(record)


def test_flags_are_on_top_of_a_file() -> None:
    file = rules_of({"min": {"mrr": 0.5, "recall@5": 0.8}, "max_failed": 0.1})
    flags = rules_of({"min": {"mrr": 0.6}})
    assert list(flags.over(file).rules) == [
        Rule("min", "recall@5", 0.8),
        Rule("max_failed", "", 0.1),
        Rule("min", "mrr", 0.6),
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(record=st.dictionaries(st.sampled_from(["min", "margin", "no_regression", "max_loss", "alpha"]), JSON))
def test_any_record_is_rules_or_a_data_error(record: dict[str, Any]) -> None:
    found: Any = None
    try:
        found = rules_of(record)
    except DataError as error:
        found = error
    assert isinstance(found, GateRules) or str(found).startswith("rules: ")
