"""The gate keeps its word on runs whose truth is known; `benchmarks/gate.py` is the same with 2,000 pairs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from auepora_eval.core.metrics_base import METRICS
from benchmarks.gate import Kind, Made, cluster_kinds, counted, kinds, rare_kinds

pytestmark = pytest.mark.full

PAIRS = 40
KINDS = [*kinds(), *rare_kinds(), *cluster_kinds()]


@pytest.fixture(autouse=True)
def _made_metric() -> Iterator[None]:
    METRICS.add("made")(Made)
    yield
    del METRICS._things["made"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_false_alarms_and_power_are_as_promised(kind: Kind) -> None:
    result = counted(kind, PAIRS, seed=1, resamples=400)
    assert result.held(), f"{result.found} of {PAIRS} {kind.counted}"


def test_a_gate_that_fails_too_often_would_be_caught() -> None:
    """The bars can be missed: pairs with a true loss, passed off as pairs without."""
    lossy = next(kind for kind in KINDS if kind.name.startswith("a loss of 0.05 in one of 1"))
    assert not counted(lossy._replace(at_most=0.05, at_least=None), PAIRS, seed=1, resamples=400).held()
