"""Numbers on the command line: what flags take, and the words for what they do not."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from math import inf


def at_least(minimum: int) -> type[int]:
    """An argparse type: a whole number of at least that."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ArgumentTypeError(f"{text!r} is not a whole number") from None
        if number < minimum:
            raise ArgumentTypeError(f"{number} is less than {minimum}")
        return number

    return parse  # type: ignore[return-value]  # argparse takes any callable; its stubs want a type


def _number(fits: Callable[[float], bool], otherwise: str) -> Callable[[str], float]:
    """An argparse type: a number that fits; `otherwise` says what one that does not fit is not."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ArgumentTypeError(f"{text!r} is not a number") from None
        if not fits(value):
            raise ArgumentTypeError(f"{text} is not {otherwise}")
        return value

    return parse


positive = _number(lambda value: 0 < value < inf, "a positive number")
seconds = _number(lambda value: 0 < value < inf, "a positive number of seconds")
price = _number(lambda value: 0 <= value < inf, "a price")
share = _number(lambda value: 0 < value < 1, "between 0 and 1")
covered = _number(lambda value: 0 <= value <= 1, "from 0 to 1")
correlation = _number(lambda value: -1 <= value < 1, "a correlation between -1 and 1")
