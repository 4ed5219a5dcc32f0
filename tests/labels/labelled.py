"""Label sets for tests: a sample with its stored answer in a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auepora_eval.core.types import EvaluationSample, SystemOutputs
from tests.builders import a_sample, an_output

REAL = Path(__file__).parents[3] / "shared" / "data" / "fhri"
real_data = pytest.mark.skipif(not REAL.exists(), reason="the public label set is not here")


def a_labelled(
    sample_id: str = "1",
    label: str = "accurate",
    answer: str = "The pier is long.",
    *,
    pair: str | None = None,
    scenario: str | None = None,
    passages: tuple[str, ...] = (),
    **metadata: Any,
) -> EvaluationSample:
    labels = {"ground_truth_label": label, "contradiction_pair_id": pair, "fhri_scenario": scenario}
    sample = a_sample(sample_id, labels={name: value for name, value in labels.items() if value is not None})
    sample.metadata = {"stored_output": {"answer": answer, "passages": list(passages)}, **metadata}
    return sample


def predicting(label: str, **extra: Any) -> SystemOutputs:
    return an_output(extra={"predicted_label": label, **extra})
