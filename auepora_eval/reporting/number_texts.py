"""Numbers, intervals and lists as the text of a cell or a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence

NOT_MEASURED = "n/a"
TOO_FEW = "too few"  # samples, for any change to be seen


def value_text(value: float | None, unit: str = "", *, signed: bool = False) -> str:
    """A value in four decimals, seconds with their unit, "n/a" where nothing was measured."""
    if value is None or not math.isfinite(value):
        return NOT_MEASURED
    sign = "+" if signed else ""
    if unit != "s":
        return f"{value:{sign}.4f}"
    name, factor = _time_unit(value)
    return f"{value * factor:{sign}.3g} {name}"


def interval_text(interval: Sequence[float] | None, unit: str = "", *, signed: bool = False) -> str:
    """The limits, in one decimal less than a value: they are not known better than that.

    Without width it is none: samples that are all alike tell nothing of others.
    """
    if not interval or interval[0] == interval[-1]:
        return "-"
    sign = "+" if signed else ""
    if unit != "s":
        return f"[{', '.join(f'{limit:{sign}.3f}' for limit in interval)}]"
    name, factor = _time_unit(max(interval, key=abs))
    return f"[{', '.join(f'{limit * factor:{sign}.3g}' for limit in interval)}] {name}"


def _time_unit(seconds: float) -> tuple[str, float]:
    """The unit that a time reads best in, and how many of it make a second."""
    units = (("s", 1.0), ("ms", 1e3))
    return next(((unit, factor) for unit, factor in units if abs(seconds) * factor >= 1), ("µs", 1e6))


def bounds_text(bounds: Sequence[float | None] | None, unit: str = "") -> str:
    """What the value could be, had the failures been scored: from the lowest to the highest."""
    if not bounds:
        return "-"
    return " to ".join("unbounded" if bound is None else value_text(bound, unit) for bound in bounds)


def listed(items: Sequence[str]) -> str:
    """ "a, b and c"."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def p_text(p: float | None) -> str:
    """ "p = 0.012", in a sentence."""
    if p is None or math.isnan(p):
        return "no p"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def p_cell(p: float | None) -> str:
    """The same in a column of its own; "-" where there is no test."""
    if p is None or math.isnan(p):
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"
