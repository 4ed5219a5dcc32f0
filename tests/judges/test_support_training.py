"""The weights that ship come out of the training script; people agree with them as far as the docs say."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from auepora_eval.judges.support import Weights, WeightsFile, trained_support
from auepora_eval.judges.support_features import FEATURES
from auepora_eval.stats.classification import area_under_curve
from benchmarks.support import attributionbench, by_support
from benchmarks.train_support import DATA, WEIGHTS, Family, family, train, training_examples

pytestmark = pytest.mark.full

needs_training_data = pytest.mark.skipif(
    not (DATA / "mtrag").is_dir() or not (DATA / "clapnq").is_dir(),
    reason="needs ../shared/data/mtrag and ../shared/data/clapnq",
)


def a_family(seed: int, shift: float) -> Family:
    """Return answers whose label depends on `words`; `gap` speaks for support here, against its sign."""
    rng = np.random.default_rng(seed)
    rows = rng.random((500, len(FEATURES)))
    words, gap = (rows[:, FEATURES.index(name)] for name in ("words", "gap"))
    labels = (words + gap + rng.normal(0, 0.2, 500) > 1).astype(float)
    return Family(rows + shift, labels, np.full(500, 1 / 500))


def test_signs_hold_against_the_data() -> None:
    weights = train([a_family(0, 0.0)]).features
    assert weights["words"] > 0.2
    assert weights["gap"] == 0.0


def test_what_families_differ_in_is_not_learned() -> None:
    one, other = a_family(0, 0.0), a_family(1, 5.0)
    # All answers of the second family are moved by the same, and supported as often.
    both = train([one, other]).features
    assert both["words"] == pytest.approx(train([one]).features["words"], rel=0.3)


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
