"""Kappa and macro-F1 of few samples: a note says that their intervals may be too narrow."""

from __future__ import annotations

import numpy as np
import pytest

from auepora_eval.core.types import results_table
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.stats.agreement import agreement
from auepora_eval.stats.classification import cohen_kappa, table_interval
from auepora_eval.stats.intervals import TOO_NARROW
from tests.builders import a_sample, an_output


@pytest.mark.parametrize(("samples", "has_note"), [(49, True), (50, False)])
def test_a_kappa_of_few_samples_says_so(samples: int, has_note: bool) -> None:
    rng = np.random.default_rng(0)
    ratings = rng.integers(0, 2, (samples, 2)).astype(np.float64)
    interval = agreement(ratings, "cohen_kappa").interval
    assert interval is not None
    assert (TOO_NARROW in interval.method) == has_note
    cells = np.eye(4)[rng.integers(0, 4, samples)]
    of_table = table_interval(cells, cohen_kappa, bounds=(-1.0, 1.0))
    assert of_table is not None
    assert (TOO_NARROW in of_table.method) == has_note


@pytest.mark.parametrize(("count", "notes"), [(10, 1), (60, 0)])
def test_the_table_of_a_run_has_the_note(count: int, notes: int) -> None:
    samples = [
        a_sample(f"s{n}", labels={"ground_truth_label": ("accurate", "hallucination")[n % 2]})
        for n in range(count)
    ]
    outputs = [an_output(answer="x", extra={"predicted_label": "accurate"}) for _ in range(count)]
    results = [parse_metric(name).compute(samples, outputs) for name in ("label_macro_f1", "label_accuracy")]
    table = results_table(results)
    expected = ["Fewer than 50 samples: if a label is rare, intervals are too narrow (label_macro_f1)"]
    assert list(table.notes) == expected[:notes]
