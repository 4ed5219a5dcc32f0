"""Numbers in figures and in words."""

from __future__ import annotations

import re

_ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen""".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
IN_WORDS = [*_ONES, *(f"{ten}-{one}".removesuffix("-zero") for ten in _TENS for one in _ONES[:10])]
_FIGURE = r"\b\d+(?:,\d{3})*(?:\.\d+)?(?: [mb]illion)?(?![-–\w]|[.,]\d)"
NUMBER = rf"(?:{_FIGURE}|\b(?:{'|'.join(reversed(IN_WORDS[2:]))})\b)"


def spellings(answer: str) -> list[str]:
    """Return the answer with its small number in figures and in words: `ten years`, `10 years`."""
    match = re.search(NUMBER, answer)
    number = match.group() if match else ""
    other = str(IN_WORDS.index(number)) if number in IN_WORDS else ""
    if number.isdigit() and int(number) < len(IN_WORDS):
        other = IN_WORDS[int(number)]
    return [answer, answer.replace(number, other, 1)] if other else [answer]
