"""What calls report of their cost: tokens and requests, by the names that answers give them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

Usage = Mapping[str, Any]  # what an answer reports: input_tokens, output_tokens, total_tokens, requests
COUNTS = ("input_tokens", "output_tokens", "total_tokens", "requests")
CALLS = "calls"  # in the usage of a stored call: the attempts that it took


def reported_count(usage: Usage, name: str) -> int | float | None:
    """Return a count that an answer reports, as a number of Python or NumPy; None if it does not."""
    count: Any = usage.get(name)
    is_number = isinstance(count, Real) and not isinstance(count, bool)
    if not is_number or not 0 <= count < math.inf:
        return None
    return int(count) if count == int(count) else float(count)


def reported_tokens(usage: Usage) -> tuple[float | None, float | None, float | None]:
    """Return the input, output and total tokens of an answer; None where it does not report them."""
    sent, written, total = (reported_count(usage, name) for name in COUNTS[:3])
    parts = (sent or 0) + (written or 0)
    if total is not None and (sent is None) != (written is None):  # the missing count is the rest
        rest = max(0, total - parts)
        sent, written = (rest, written) if sent is None else (sent, rest)
    if total is not None or None not in (sent, written):
        total = max(total or 0, parts)  # some servers count reasoning tokens only in the total
    return sent, written, total
