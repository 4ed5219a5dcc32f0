"""The terms of label sets: the labels of an answer, and the scenarios that set how strictly it is judged."""

from __future__ import annotations

ACCURATE, HALLUCINATION, CONTRADICTION = "accurate", "hallucination", "contradiction"
LABELS = (ACCURATE, HALLUCINATION, CONTRADICTION)

DEFAULT_SCENARIO = "default"
SCENARIO_NAMES = {
    "numeric_kpi": "Numeric KPI / Ratios",
    "directional": "Directional Recap",
    "intraday": "Intraday / Real-time",
    "fundamentals": "Fundamentals / Long Horizon",
    "regulatory": "Regulatory / Policy",
    "advice": "Portfolio Advice / Suitability",
    "multi_ticker": "Multi-Ticker Comparison",
    "news": "News Summarization",
    "crypto": "Crypto / Blockchain",
    "portfolio_advice": "Portfolio Advice",
    DEFAULT_SCENARIO: "Default",
}

PREDICTED_LABEL = "predicted_label"  # the key of an output's label
FHRI_SCENARIO = "fhri_scenario"  # the label of a sample; `scenario` is a kind of robustness variant


def label_of(text: object) -> str | None:
    """Return the label that a detector wrote, in any case; None for any other text.

    >>> label_of(" Accurate")
    'accurate'
    """
    plain = text.strip().lower() if isinstance(text, str) else ""
    return plain if plain in LABELS else None


def scenario_id(name: str) -> str | None:
    """Return the id of a scenario by its id or its name, in any case; None for any other name.

    >>> scenario_id("Multi-Ticker Comparison")
    'multi_ticker'
    """
    wanted = " ".join(name.split()).casefold()
    for scenario, title in SCENARIO_NAMES.items():
        if wanted in (scenario, title.casefold()):
            return scenario
    return None
