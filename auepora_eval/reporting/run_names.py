"""What runs are called where they stand side by side: never two by the same letters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..core.types import EvaluationRun
    from ..runs.compare import Comparison

LONGEST = 60  # letters of a name in a sentence


def compared_names(comparison: Comparison) -> tuple[str, str]:
    """Baseline and candidate: their systems, or the ids of the runs where both are of one system."""
    a, b = names_apart(
        [comparison.baseline_system, comparison.candidate_system],
        [comparison.baseline_id, comparison.candidate_id],
    )
    return a, b


def names_of_runs(runs: Sequence[EvaluationRun]) -> list[str]:
    """The same for any number of runs."""
    return names_apart([run.system_name for run in runs], [run.evaluation_id for run in runs])


def names_apart(systems: Sequence[str], run_ids: Sequence[str]) -> list[str]:
    """The systems' names, or the runs' ids if two names are the same, or these with their number.

    >>> names_apart(["rag", "rag"], ["monday", "tuesday"])
    ['monday', 'tuesday']
    """
    for names in ([_flat(name) for name in systems], [_flat(name) for name in run_ids]):
        if len(set(names)) == len(names):
            return shortened(names, LONGEST)
    return [f"{name} ({number})" for number, name in enumerate(shortened(names, LONGEST), start=1)]


def shortened(names: Sequence[str], width: int) -> list[str]:
    """Names cut to a width where they still differ; where they would not, to the least that they need.

    >>> shortened(["bm25_clapnq_lastturn", "bm25_clapnq_rewrite"], 8)
    ['bm25…urn', 'bm25…ite']
    """
    different = len(set(names))
    for letters in range(width, max((len(name) for name in names), default=0)):
        for cut in _cuts(names, letters):
            short = [name if len(name) <= letters else cut(name) for name in names]
            if len(set(short)) == different:
                return short
        if different < len(names):  # nothing tells all of them apart
            return [_head(name, letters) for name in names]
    return list(names)


def _cuts(names: Sequence[str], letters: int) -> Iterator[Callable[[str], str]]:
    """Ways to cut a name, the most usual first: its end, its middle, all but where the names part."""
    yield lambda name: _head(name, letters)
    tail = (letters - 1) // 2
    yield lambda name: f"{name[: letters - 1 - tail]}…{name[len(name) - tail :]}"
    start = max(0, _shared(names) - 1)
    yield lambda name: f"…{name[start : start + letters - 2]}…"


def _shared(names: Sequence[str]) -> int:
    """How many letters all names begin with."""
    columns = enumerate(zip(*names, strict=False))
    return next((place for place, letters in columns if len(set(letters)) > 1), min(map(len, names)))


def _head(name: str, letters: int) -> str:
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def _flat(name: str) -> str:
    """On one line, and nothing that a terminal or a page would act on."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in name).split())
