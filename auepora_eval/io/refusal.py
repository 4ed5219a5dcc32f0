"""A document with errors is refused in one line: the first of them, and how many more there are."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import DataError


def refuse_errors(errors: Sequence[str], where: str) -> None:
    """DataError with the first error, if there is one."""
    if errors:
        more = f" And {len(errors) - 1} more: auepora dataset validate lists them." if len(errors) > 1 else ""
        raise DataError(where, errors[0] + more)
