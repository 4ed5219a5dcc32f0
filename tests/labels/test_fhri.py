"""The FHRI: three published vectors, and each sub-score by hand."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.labels.fhri import (
    DEFAULT_WEIGHTS,
    SubScores,
    _companies,
    attribution,
    confidence,
    consistency,
    fhri,
    grounding,
    sub_scores,
    timeliness,
)

ONLY_G = {"G": 1.0, "N": 0.0, "T": 0.0, "C": 0.0, "E": 0.0}
NUMERIC = {"G": 0.20, "N": 0.50, "T": 0.20, "C": 0.05, "E": 0.05}
MULTI = {"G": 0.30, "N": 0.30, "T": 0.15, "C": 0.15, "E": 0.10}


@pytest.mark.parametrize(
    ("scores", "weights", "expected"),
    [
        pytest.param(SubScores(0.741, 0.70, 0.75, 1.0, 0.58), NUMERIC, 0.844, id="all five, both bonuses"),
        pytest.param(SubScores(0.245, 0.70, 0.70, 0.0), MULTI, 0.432, id="no entropy, no bonus"),
        pytest.param(SubScores(0.447, 0.70, 0.70, 0.387), NUMERIC, 0.670, id="no entropy, upper bonus"),
        pytest.param(SubScores(1.0, 1.0, 1.0, 1.0, 1.0), DEFAULT_WEIGHTS, 1.0, id="no more than 1"),
        pytest.param(SubScores(0.55, None, None, None), {"G": 1.0}, 0.578, id="the upper bonus from .55 on"),
        pytest.param(SubScores(0.549, None, None, None), {"G": 1.0}, 0.549, id="not below"),
        pytest.param(SubScores(0.36, 0.46, None, None, 0.36), ONLY_G, 0.41, id="the bonus for agreement"),
        pytest.param(SubScores(0.35, 0.46, None, None, 0.36), ONLY_G, 0.35, id="G must be above .35"),
        pytest.param(SubScores(0.36, 0.45, None, None, 0.36), ONLY_G, 0.36, id="N must be above .45"),
        pytest.param(SubScores(0.36, 0.46, None, None, 0.35), ONLY_G, 0.36, id="E must be above .35"),
        pytest.param(SubScores(None, None, None, None), DEFAULT_WEIGHTS, None, id="nothing is not 0"),
    ],
)
def test_the_index(scores: SubScores, weights: dict[str, float], expected: float | None) -> None:
    assert fhri(scores, weights) == expected


def test_a_whole_answer() -> None:
    answer = "Tesla offers a robust dividend yield of 3.5%, which is paid out quarterly to shareholders."
    scores = sub_scores("What is the dividend yield for Tesla?", answer)
    assert (round(scores.G or 0, 3), scores.N, scores.T, round(scores.C or 0, 3)) == (0.447, 0.7, 0.7, 0.387)
    assert scores.E is None
    assert fhri(scores, NUMERIC) == 0.670


@pytest.mark.parametrize(
    ("answer", "passages", "expected"),
    [
        pytest.param("", (), 0.0, id="no answer"),
        pytest.param("The and of", (), 0.70, id="no content"),
        pytest.param("Boats sail", (), 0.20, id="no passages"),
        pytest.param("NVDA sails", (), 0.20 * 0.3, id="a ticker from nowhere"),
        pytest.param("Boats sail", ("boats float",), 0.30 + 0.70 * 0.5, id="half of it"),
        pytest.param("Boats sail", ("gulls fly",), 0.25, id="none of it"),
        pytest.param("NVDA sails", ("NVDA sails",), 1.0, id="all of it, ticker and all"),
        pytest.param("NVDA and AMD", ("NVDA",), (0.30 + 0.70 * 0.5) * 0.65, id="one of two tickers"),
    ],
)
def test_grounding(answer: str, passages: tuple[str, ...], expected: float) -> None:
    assert grounding(answer, passages) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("", 0.0),
        ("It has 3 sails", 0.70),
        ("It sails", 0.50),
        ("It went higher", 0.70),
        ("It went higher, then lower", 0.40),
    ],
)
def test_consistency(answer: str, expected: float) -> None:
    assert consistency(answer) == expected


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("How many?", "Three", 0.70),
        ("How many in 2024?", "Three in 2024", 0.95),
        ("How many in 2024?", "Three in 2023", 0.55),
        ("How many in 2024?", "Three", 0.50),
        ("How many?", "Three in 2023", 0.75),
        ("How many?", " ", 0.0),
    ],
)
def test_timeliness(question: str, answer: str, expected: float) -> None:
    assert timeliness(question, answer) == expected


@pytest.mark.parametrize(
    ("answer", "passages", "expected"),
    [
        ("It sails", (), 0.0),
        ("Reuters says so", (), 0.20),
        ("According to Reuters and Bloomberg", (), 0.65),
        ("It is paid quarterly", (), 0.15),
        ("It sails", ("a",) * 9, 0.35),
    ],
)
def test_attribution(answer: str, passages: tuple[str, ...], expected: float) -> None:
    assert attribution(answer, passages) == pytest.approx(expected)


def test_confidence_is_nearly_constant_at_the_published_entropies() -> None:
    assert [round(confidence(entropy), 2) for entropy in (1.788, 1.792)] == [0.58, 0.58]
    assert confidence(0.0) == 1.0
    assert confidence(9.0) == 0.0


@given(st.lists(st.sampled_from(["Abc", "Inc", "Inc.", "Co.", "Co", "LLC", "x", " ", "  ", "\n", "Mc"])))
def test_companies_are_those_of_the_published_pattern(pieces: list[str]) -> None:
    text = "".join(pieces)
    published = r"([A-Z][a-z]+(?: [A-Z][a-z]+)*)\s+(?:Inc\.|Corp\.|Ltd\.|LLC|Co\.)"
    assert _companies(text) == re.findall(published, text)


@given(question=st.text(max_size=60), answer=st.text(max_size=200), passage=st.text(max_size=60))
def test_any_text_scores_between_0_and_1(question: str, answer: str, passage: str) -> None:
    index = fhri(sub_scores(question, answer, (passage,), entropy=1.5))
    assert index is not None
    assert 0 <= index <= 1
