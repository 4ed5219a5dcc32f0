"""The weights that ship come out of the training script; people agree with them as far as the docs say."""

from __future__ import annotations

import msgspec
import pytest

from auepora_eval.judges.support import Weights, WeightsFile, trained_support
from auepora_eval.stats.classification import area_under_curve
from benchmarks.support import attributionbench, by_support
from benchmarks.train_support import DATA, WEIGHTS, family, train, training_examples

pytestmark = pytest.mark.full

needs_training_data = pytest.mark.skipif(
    not (DATA / "mtrag").is_dir() or not (DATA / "clapnq").is_dir(),
    reason="needs ../shared/data/mtrag and ../shared/data/clapnq",
)


@needs_training_data
def test_the_script_gives_the_weights_that_ship() -> None:
    stored = msgspec.json.decode(WEIGHTS.read_bytes(), type=WeightsFile).weights
    made = train([family(listed) for listed in training_examples(DATA).values()])

    def numbers(weights: Weights) -> dict[str, float]:
        return {"intercept": weights.intercept, **weights.features}

    assert numbers(made) == pytest.approx(numbers(stored), abs=1e-6)


@pytest.mark.skipif(not (DATA / "attributionbench").is_dir(), reason="needs ../shared/data/attributionbench")
def test_it_ranks_attributionbench_as_well_as_the_bar() -> None:
    examples = list(attributionbench(DATA))
    of = by_support(trained_support())
    scores = [of(each) for each in examples]
    assert area_under_curve(scores, [each.label > 0 for each in examples]) >= 0.73
