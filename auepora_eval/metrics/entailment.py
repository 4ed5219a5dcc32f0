"""Support functions by name: how far a text supports a claim, from 0 to 1.

A function of your own takes (premise, hypothesis) and is named by its file, my_nli.py:entails: an NLI model,
a classifier, rules. A function with a `version` (a text) gives scores that are compared only with those of
that version; without one, its source text is its version.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import cache, lru_cache
from hashlib import blake2b
from pathlib import Path

from ..core.registry import Registry
from ..core.systems.named import imported
from ..errors import DataError, ScoringError
from ..text.content_words import content_words, numbers, without_marks
from ..text.tokens import words

Support = Callable[[str, str], float]  # (premise, hypothesis) to a score from 0 to 1

SUPPORTS: Registry[Callable[[], Support]] = Registry(
    "support",
    search=[
        "auepora_eval.metrics.answers.contradiction",
        "auepora_eval.judges.support",
    ],
)


@SUPPORTS.add("lexical")
def _lexical() -> Support:
    return lexical_support


def lexical_support(premise: str, hypothesis: str) -> float:
    """Return the share of the hypothesis's content words, or of its numbers if less, in the premise.

    It sees no negation and not that two things changed places. `auepora judge-audit` measures how far it
    agrees with people; docs/how-to/citations.md shows it.

    >>> lexical_support("The Annet moors at the north pier.", "The Annet moors at 2 piers")
    0.0
    """
    claimed, figures = _content(hypothesis)
    if not claimed:
        return 0.0
    premise_words, premise_figures = _vocabulary(premise)
    # Numbers count apart: a wrong number among many right words is not supported.
    shares = [sum(word in premise_words for word in claimed) / len(claimed)]
    if figures:
        shares.append(sum(figure in premise_figures for figure in figures) / len(figures))
    return min(shares)


# A document is looked at again for each claim of an answer.
@lru_cache(maxsize=256)
def _content(text: str) -> tuple[list[str], list[str]]:
    bare = without_marks(text)
    return content_words(bare), numbers(bare)


@lru_cache(maxsize=256)
def _vocabulary(text: str) -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(words(text)), frozenset(numbers(text))


@cache
def support_function(name: str) -> Support:
    """The support function of that name, made once; that of a file, if it is named file.py:function."""
    if ":" not in name:
        return SUPPORTS.get(name)()
    where = f"the support function {name:.80}"
    function: Support = imported(where, name, str(Path.cwd()))
    try:
        inspect.signature(function).bind(None, None)
    except (TypeError, ValueError):
        raise DataError(
            where, "is not a function of two texts.", fix="Write def f(passage, claim)."
        ) from None
    return function


def support_identity(name: str) -> str:
    """Return the name of a support function, with its version if it has one: trained/3f9a12c4."""
    function = support_function(name)
    version = getattr(function, "version", None)
    if version is None and ":" in name:
        version = source_hash(function).removeprefix("@") or None
    return name if version is None else f"{name}/{version}"


def source_hash(function: Callable[..., object]) -> str:
    """Return "@" and a hash of the text of a function; "" if its text is not known."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):  # typed at a prompt, or an object that can be called
        return ""
    return f"@{blake2b(source.encode(), digest_size=4).hexdigest()}"


def checked_support(support: Support, premise: str, hypothesis: str) -> float:
    """What a support function says, if it is a number from 0 to 1."""
    returned = support(premise, hypothesis)
    try:
        score = float(returned)  # numpy's numbers, and True for "entailed"
    except (TypeError, ValueError):
        score = math.nan
    if not 0 <= score <= 1:
        raise ScoringError(f"the support function returned {returned!r:.80}, not a number from 0 to 1")
    return score
