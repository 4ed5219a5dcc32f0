"""Numeric answers: by hand, then TAT-QA's 39 cases with what its evaluator says about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.metrics.answers.numbers import NumericF1, NumericMatch
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_sample, an_output

TATQA = Path(__file__).parents[3] / "shared" / "data" / "tatqa" / "expected_metric_cases.json"
CASES = json.loads(TATQA.read_text(encoding="utf-8")) if TATQA.exists() else []


def value(metric: Any, answer: str, reference: str) -> float | None:
    result: float | None = (
        metric.compute([a_sample(reference=reference)], [an_output(answer=answer)]).scores[0].value
    )
    return result


def as_text(answer: Any, scale: str) -> str:
    """An answer and its scale as one text; several spans sorted, as TAT-QA's evaluator has them."""
    spans = sorted(map(str, answer)) if isinstance(answer, list) else [str(answer)]
    return " ".join(span if not scale or "%" in span else f"{span} {scale}" for span in spans)


@pytest.mark.skipif(not CASES, reason="no TAT-QA cases beside the repository")
@pytest.mark.parametrize(
    "case", CASES, ids=[f"{n}-{as_text(c['pred'], '')[:20]}" for n, c in enumerate(CASES)]
)
def test_the_cases_of_tatqa(case: dict[str, Any]) -> None:
    reference = as_text(case["gold"]["answer"], case["gold"]["scale"])
    answer = as_text(case["pred"], case["pred_scale"])
    assert value(NumericMatch(whole=True), answer, reference) == case["em"]
    assert value(NumericF1(), answer, reference) == pytest.approx(case["f1"], abs=0.005)


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [
        pytest.param("Revenue was $1.2 million in 2019.", "1,200,000", 1, id="a scale word"),
        pytest.param("It rose by 22.12%.", "0.2212", 1, id="percent and share"),
        pytest.param("It rose by 22.12.", "22.12 percent", 0, id="a percentage without its sign"),
        pytest.param("It fell: -5 points", "5", 0, id="the sign counts"),
        pytest.param("from 2010-2019", "2019", 1, id="a hyphen is no sign"),
        pytest.param("10 - 15 cars", "15", 1, id="a dash between two numbers is no sign"),
        pytest.param("5% - 7%", "7%", 1, id="nor behind a percentage"),
        pytest.param("a change of - 5", "5", 0, id="a sign with a space"),
        pytest.param("$2 bn", "2 billion", 1, id="a short scale behind a space"),
        pytest.param("5K", "5,000", 1, id="thousands"),
        pytest.param("5.004", "5", 1, id="two decimals"),
        pytest.param("0.0049", "0.0012", 0, id="small numbers are not all 0"),
        pytest.param("1911, then 1944", "1944 and 1911", 1, id="both, in any order"),
        pytest.param("1911", "1944 and 1911", 0, id="one of two"),
        pytest.param("共3亿元", "300 million", 1, id="Chinese scale"),
        pytest.param("１２３", "123", 1, id="full-width digits"),
        pytest.param("no idea", "5", 0, id="no number"),
        pytest.param("5", "five", None, id="a reference in words is skipped"),
        pytest.param("3.5bn", "3,500 Million", 1, id="short and capital scales"),
    ],
)
def test_numbers_anywhere_in_the_answer(answer: str, reference: str, expected: float | None) -> None:
    assert value(NumericMatch(), answer, reference) == expected


def test_a_tolerance_is_relative_to_the_reference() -> None:
    assert value(NumericMatch(0.05), "about 1.2 million", "1,234,567") == 1.0
    assert value(NumericMatch(0.01), "about 1.2 million", "1,234,567") == 0.0
    assert value(NumericMatch(0.01, whole=True), "1.23 million", "1,234,567") == 1.0
    assert NumericMatch(0.01, whole=True).name == "numeric_match@0.01[whole=true]"
    with pytest.raises(ValueError, match="tolerance"):
        NumericMatch(-1.0)


def test_the_best_of_several_references_counts() -> None:
    sample = a_sample(reference="five", alternatives=["5", "6"])
    assert NumericMatch().compute([sample], [an_output(answer="it is 6")]).value == 1.0


SIGNS = "5 - $ ( ) . , % million 万".split()
pieces = st.sampled_from([*SIGNS, " ", "\n", "percentage points", "9" * 400, "\ud800"])


@settings(max_examples=300, deadline=None)
@given(st.lists(pieces, max_size=8).map("".join), st.lists(pieces, max_size=8).map("".join))
def test_any_text_gets_a_verdict_or_a_reason(answer: str, reference: str) -> None:
    for name in ("numeric_match", "numeric_match@0.1", "numeric_match[whole=true]", "numeric_f1"):
        score = (
            parse_metric(name).compute([a_sample(reference=reference)], [an_output(answer=answer)]).scores[0]
        )
        assert not score.failed
        assert score.reason or 0 <= (score.value or 0) <= 1
        same = value(parse_metric(name), reference, reference)
        assert same is None or same == 1.0
