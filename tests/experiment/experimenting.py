"""Small experiments with known results, for the tests of experiments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.experiment.experiment import Outcome, run_experiment
from auepora_eval.io.config.experiment import Experiment, Variant
from auepora_eval.runs.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample, an_output

EXPERIMENT = Experiment(
    "test",
    (Variant("a", share=0.5), Variant("b", share=0.5)),
    primary_metric="recall@1",
    secondary_metrics=("token_f1",),
    min_sample_size=10,
)


def world(size: int = 60, **fields: Any) -> InMemoryDataset:
    return a_dataset(
        *(a_sample(f"s{n}", f"q {n}", relevant="a", reference="white light", **fields) for n in range(size))
    )


def system(hits: int, *, words: int = 1000, seconds: float = 0.1, failing: int = 0) -> Callable[[str], Any]:
    """Finds the document of the first questions, says the right words to the first, fails on the first."""

    def answer(query: str) -> Any:
        number = int(query.split()[1])
        if number < failing:
            raise RuntimeError("down")
        text = "white light" if number < words else "dark"
        return an_output("ab" if number < hits else "ba", text, timings={"end_to_end": seconds})

    return answer


def outcome(tmp_path: Path, experiment: Experiment, *systems: Any, size: int = 60) -> Outcome:
    named = {one.variant_id: each for one, each in zip(experiment.variants, systems, strict=True)}
    return run_experiment(experiment, world(size), named, EvaluationResultsStorage(tmp_path))
