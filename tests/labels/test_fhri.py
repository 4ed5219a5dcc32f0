"""The FHRI: three published vectors, and each sub-score by hand."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.labels.fhri import (
    DEFAULT_WEIGHTS,
    Evidence,
    NumericCheck,
    SubScores,
    _companies,
    attribution,
    check_figures,
    confidence,
    consistency,
    fhri,
    figures_of,
    grounding,
    price_mismatch,
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
    ("answer", "evidence", "expected"),
    [
        pytest.param("", Evidence(), 0.0, id="no answer"),
        pytest.param("The and of", Evidence(), 0.70, id="no content"),
        pytest.param("Boats sail", Evidence(), 0.20, id="no passages"),
        pytest.param("NVDA sails", Evidence(), 0.20 * 0.3, id="a ticker from nowhere"),
        pytest.param("Boats sail", Evidence(("boats float",)), 0.30 + 0.70 * 0.5, id="half of it"),
        pytest.param("Boats sail", Evidence(("gulls fly",)), 0.25, id="none of it"),
        pytest.param("NVDA sails", Evidence(("NVDA sails",)), 1.0, id="all of it, ticker and all"),
        pytest.param(
            "NVDA and AMD", Evidence(("NVDA",)), (0.30 + 0.70 * 0.5) * 0.65, id="one of two tickers"
        ),
        pytest.param("It is $90", Evidence(facts={"price": 100.0}), 0.2, id="a wrong figure"),
        pytest.param("Boats sail", Evidence(facts={"price": 100.0}), 0.45, id="facts, but no passages"),
        pytest.param("Boats sail", Evidence(sources=("a", "b")), 0.65, id="two sources"),
        pytest.param(
            "Boats sail", Evidence(sources=("a",), has_filings=True), 0.65, id="a source and filings"
        ),
        pytest.param(
            "XY sails",
            Evidence(("XY floats",), sources=("a",), symbol="XY"),
            0.40 * 0.5 + 0.60 * 0.65,
            id="both",
        ),
    ],
)
def test_grounding(answer: str, evidence: Evidence, expected: float) -> None:
    assert grounding(answer, evidence) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("EPS was $1.46.", ("eps", 1.46)),
        ("The P/E is 30.", ("pe_ratio", 30.0)),
        ("It trades at $1,105.20.", ("price", 1105.2)),
        ("It is up 2.1%.", ("pct_change", 2.1)),
        ("After a growth of 12%.", ("returns", 12.0)),
        ("The dividend yield is 0.5%.", ("dividend_yield", 0.5)),
        ("It is down -2.1%.", ("pct_change", -2.1)),
        ("In the range 10-15%.", ("pct_change", 15.0)),
        ("It moved,-5% that is.", ("pct_change", -5.0)),
        ("Some 1,200.5% more.", ("pct_change", 1200.5)),
        ("Its market cap is $3.1T.", ("market_cap", 3.1e12)),
        ("Its market cap is $31 billion.", ("market_cap", 3.1e10)),
    ],
)
def test_the_figures_of_an_answer(text: str, expected: tuple[str, float]) -> None:
    assert list(figures_of(text)) == [expected]


@pytest.mark.parametrize(
    ("answer", "facts", "expected", "penalty"),
    [
        pytest.param("No figure", {"price": 1.0}, NumericCheck(0, 0, 0), 1.0, id="no claims"),
        pytest.param("It is $105", {"price": 100.0}, NumericCheck(1, 1, 0), 1.0, id="within 5%"),
        pytest.param("It is $106", {"price": 100.0}, NumericCheck(1, 0, 1), 0.2, id="beyond 5%"),
        pytest.param("It is $106", {"eps": 1.0}, NumericCheck(1, 0, 0), 0.6, id="nothing to check by"),
        pytest.param("It is $0 or $5", {"price": 0.0}, NumericCheck(2, 1, 1), 0.6, id="a reference of 0"),
    ],
)
def test_figures_against_references(
    answer: str, facts: dict[str, float], expected: NumericCheck, penalty: float
) -> None:
    assert check_figures(answer, facts) == expected
    assert expected.penalty == pytest.approx(penalty)
    assert expected.unknown == expected.total - expected.valid - expected.invalid


@pytest.mark.parametrize(
    ("text", "kind", "within", "beyond"),
    [
        ("It trades at ${}", "price", 105, 106),
        ("It moved by {}%", "pct_change", 110, 111),
        ("A return of {}%", "returns", 115, 116),
        ("EPS {}", "eps", 110, 111),
        ("A market cap of ${}T", "market_cap", 110, 111),
        ("P/E {}", "pe_ratio", 115, 116),
        ("A dividend of {}%", "dividend_yield", 120, 121),
    ],
)
def test_how_far_a_figure_may_be_off(text: str, kind: str, within: int, beyond: int) -> None:
    facts = {kind: 100e12 if kind == "market_cap" else 100.0}
    assert check_figures(text.format(within), facts) == NumericCheck(1, 1, 0)
    assert check_figures(text.format(beyond), facts) == NumericCheck(1, 0, 1)
    assert check_figures(text.format(200 - within), facts) == NumericCheck(1, 1, 0)
    assert check_figures(text.format(200 - beyond), facts) == NumericCheck(1, 0, 1)


@pytest.mark.parametrize(
    ("answer", "facts", "expected"),
    [
        ("", {}, 0.0),
        ("It has 3 sails", {}, 0.70),
        ("It costs 3.25", {"eps": 3.25}, 0.88),
        ("It costs 3.25", {"price": 3.25}, 0.92),
        ("It is up 3", {"pct_change": 2.5}, 0.75),
        ("It is down 3", {"pct_change": 2.5}, 0.30),
        ("It sails", {}, 0.50),
        ("It went higher", {}, 0.70),
        ("It went higher, then lower", {}, 0.40),
        ("It went higher", {"pct_change": 0.9}, 0.80),
    ],
)
def test_consistency(answer: str, facts: dict[str, float], expected: float) -> None:
    assert consistency(answer, Evidence(facts=facts)) == expected


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
    ("answer", "evidence", "expected"),
    [
        ("It sails", Evidence(), 0.0),
        ("Reuters says so", Evidence(), 0.20),
        ("According to Reuters and Bloomberg", Evidence(), 0.65),
        ("It is paid quarterly", Evidence(), 0.15),
        ("It sails", Evidence(("a",) * 9), 0.35),
        ("It sails", Evidence(sources=("a", "b", "c")), 0.20),
    ],
)
def test_attribution(answer: str, evidence: Evidence, expected: float) -> None:
    assert attribution(answer, evidence) == pytest.approx(expected)


def test_confidence_is_nearly_constant_at_the_published_entropies() -> None:
    assert [round(confidence(entropy), 2) for entropy in (1.788, 1.792)] == [0.58, 0.58]
    assert confidence(0.0) == 1.0
    assert confidence(9.0) == 0.0


def test_a_price_that_is_not_the_quoted_one() -> None:
    assert price_mismatch("It is at $112", {"price": 100.0})
    assert not price_mismatch("It is at $110", {"price": 100.0})
    assert not price_mismatch("It is at 112", {"price": 100.0})
    assert not price_mismatch("It is at $112", {})


@pytest.mark.parametrize(
    "piece", ["Abc ", "Abc Inc ", "1,", "1.", "1,,", "-1", "EPS 1 2% ", "$1,", "EPS ", "NVDA ", "P/E"]
)
def test_a_long_answer_takes_no_longer_than_its_length_asks_for(piece: str) -> None:
    answer = piece * (200_000 // len(piece))
    start = time.process_time()
    grounding(answer, Evidence((answer,), {"price": 1.0}))
    price_mismatch(answer, {"price": 1.0})
    assert time.process_time() - start < 1


@given(st.lists(st.sampled_from(["Abc", "Inc", "Inc.", "Co.", "Co", "LLC", "x", " ", "  ", "\n", "Mc"])))
def test_companies_are_those_of_the_published_pattern(pieces: list[str]) -> None:
    text = "".join(pieces)
    published = r"([A-Z][a-z]+(?: [A-Z][a-z]+)*)\s+(?:Inc\.|Corp\.|Ltd\.|LLC|Co\.)"
    assert _companies(text) == re.findall(published, text)


@given(question=st.text(max_size=60), answer=st.text(max_size=200), passage=st.text(max_size=60))
def test_any_text_scores_between_0_and_1(question: str, answer: str, passage: str) -> None:
    evidence = Evidence((passage,), {"price": 10.0, "pct_change": -1.0}, entropy=1.5, entropy_samples=6)
    index = fhri(sub_scores(question, answer, evidence))
    assert index is not None
    assert 0 <= index <= 1
