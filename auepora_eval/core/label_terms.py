"""The words of label sets: what an answer can be, and the scenarios that set how strictly it is judged."""

from __future__ import annotations

ACCURATE, HALLUCINATION, CONTRADICTION = "accurate", "hallucination", "contradiction"
LABELS = (ACCURATE, HALLUCINATION, CONTRADICTION)
RISK_TIERS = ("high", "medium", "low")
COMPLIANCE_TAGS = ("allowed", "restricted", "disallowed", "needs_clarification")

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

# Where a sample and an output keep them.
TRUE_LABEL, PREDICTED_LABEL, PAIR = "ground_truth_label", "predicted_label", "contradiction_pair_id"
STORED_OUTPUT = "stored_output"


def label_of(written: object) -> str | None:
    """The label that a detector means, whatever the case; None for anything else.

    >>> label_of(" Accurate")
    'accurate'
    """
    plain = written.strip().lower() if isinstance(written, str) else ""
    return plain if plain in LABELS else None


def scenario_id(name: str) -> str | None:
    """The id of a scenario by its id or its name, whatever the case; None for a name of another kind.

    >>> scenario_id("Multi-Ticker Comparison")
    'multi_ticker'
    """
    wanted = " ".join(name.split()).casefold()
    for known, title in SCENARIO_NAMES.items():
        if wanted in (known, title.casefold()):
            return known
    return None
