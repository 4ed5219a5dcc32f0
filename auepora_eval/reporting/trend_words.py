"""What tells the lines of a trend apart, in words."""

from __future__ import annotations

from ..core.fingerprint import canonical_json
from ..runs.trend import Trend, TrendLine


def settings_in_words(trend: Trend, line: TrendLine) -> str:
    """The settings in which a line differs from others of its system: "top_k=3, pieces=two"."""
    others = [one for one in trend.lines if one is not line and one.system == line.system]
    return ", ".join(
        f"{name}={_text(line, name)}"
        for name in line.settings
        if any(_text(one, name) != _text(line, name) for one in others)
    )


def _text(line: TrendLine, name: str) -> str:
    if name not in line.settings:
        return ""
    value = line.settings[name]
    return value if isinstance(value, str) else canonical_json(value).decode()
