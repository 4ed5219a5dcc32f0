"""A document with errors is refused in one line: the first of them, and how many more there are."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import DataError


class ErrorsError(DataError):
    """A document with errors: it says the first, and knows them all."""

    def __init__(self, where: str, errors: Sequence[str]) -> None:
        self.errors = tuple(errors)
        more = f" And {len(errors) - 1} more: auepora dataset validate lists them." if len(errors) > 1 else ""
        super().__init__(where, errors[0] + more)


def refuse_errors(errors: Sequence[str], where: str) -> None:
    """DataError with the first error, if there is one."""
    if errors:
        raise ErrorsError(where, errors)
