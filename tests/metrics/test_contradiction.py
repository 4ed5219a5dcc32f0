"""Lexical contradiction: what it sees, what it lets pass, and the public pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.metrics.answers.contradiction import consistent_support, lexical_contradiction
from auepora_eval.metrics.entailment import support_function

PAIRS = Path(__file__).parents[3] / "shared" / "data" / "fhri" / "data__contradiction_pairs.json"


@pytest.mark.parametrize(
    ("premise", "hypothesis"),
    [
        pytest.param("The ferry carries cars.", "The ferry does not carry cars.", id="negation"),
        pytest.param("Water prices rose in May.", "Water prices fell in May.", id="direction"),
        pytest.param("The route is safe in winter.", "The route is risky in winter.", id="opposite"),
        pytest.param("The pier is 40 metres long.", "The pier is 55 metres long.", id="number"),
        pytest.param("Water prices did not fall.", "Water prices fell.", id="a direction denied"),
        pytest.param("Water prices are not stable.", "Water prices are stable.", id="change or none"),
        pytest.param("The toll was 5 crowns in Q1.", "The toll was 6 crowns in Q1.", id="one quarter"),
        pytest.param("It opened on 1 October 2009.", "It opened on April 4, 1998.", id="a day is no period"),
        pytest.param("Yes, the pier is open.", "No, the pier is shut.", id="yes and no"),
    ],
)
def test_a_contradiction_in_either_direction(premise: str, hypothesis: str) -> None:
    assert lexical_contradiction(premise, hypothesis) >= 0.4
    assert lexical_contradiction(hypothesis, premise) == lexical_contradiction(premise, hypothesis)


@pytest.mark.parametrize(
    ("premise", "hypothesis"),
    [
        pytest.param("The pier is 40 metres long.", "The pier is 40 metres long.", id="the same"),
        pytest.param("The pier is 1,000 metres long.", "The pier is 1000 metres long.", id="the same number"),
        pytest.param("The pier is long.", "The pier is 40 metres long.", id="one number more"),
        pytest.param("Water prices rose in May.", "The light keeper fell asleep.", id="another matter"),
        pytest.param("Prices rose in 2023.", "Prices rose in 2024.", id="years are not figures"),
        pytest.param("Water prices did not fall.", "Water prices rose.", id="not down is up"),
        pytest.param("Water prices didn't really fall.", "Water prices were unchanged.", id="or unchanged"),
        pytest.param("Water prices never rose.", "Water prices did not fall.", id="neither way"),
        pytest.param("The toll was 5 crowns in Q1.", "The toll was 6 crowns in Q2.", id="two quarters"),
        pytest.param(
            "The toll was 5 crowns in the first quarter.", "In Q3 the toll was 6 crowns.", id="in words"
        ),
        pytest.param("In 2021 the toll was 5 crowns.", "In 2022 the toll was 6 crowns.", id="two years"),
        pytest.param("", "The pier is long.", id="nothing said"),
    ],
)
def test_no_contradiction(premise: str, hypothesis: str) -> None:
    assert lexical_contradiction(premise, hypothesis) < 0.15


@given(text=st.text(max_size=200), other=st.text(max_size=200))
@settings(max_examples=30, deadline=None)
def test_any_texts_get_a_share_and_a_text_agrees_with_itself(text: str, other: str) -> None:
    assert 0 <= lexical_contradiction(text, other) <= 1


@pytest.mark.skipif(not PAIRS.exists(), reason="the public contradiction pairs are not here")
def test_the_public_pairs_are_told_apart() -> None:
    pairs = json.loads(PAIRS.read_text(encoding="utf-8"))["pairs"]
    assert len(pairs) == 55
    for pair in pairs:
        score = lexical_contradiction(pair["statement_1"], pair["statement_2"])
        assert score > 0.6 if pair["label"] == "contradiction" else score < 0.3, pair


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        pytest.param("Water prices rose in May.", 1.0, id="the same"),
        pytest.param("Water prices fell in May.", 0.1875, id="3 of 4 words, the other direction"),
        pytest.param("Dragons ate the light keeper.", 0.0, id="another matter"),
        pytest.param("It is.", 0.0, id="no content words"),
    ],
)
def test_a_claim_is_supported_by_a_text_that_does_not_contradict_it(claim: str, expected: float) -> None:
    text = "The toll is 5 crowns. Water prices rose in May."
    assert consistent_support(text, claim) == pytest.approx(expected)
    assert support_function("consistent") is consistent_support
