"""What is not known is not shown as if it were: few clusters, no spread, and one figure for a margin."""

from __future__ import annotations

import numpy as np
import pytest

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.comparison.power import power_from_runs
from auepora_eval.comparison.words import comparison_in_plain_words
from tests.comparison.test_power import a_run
from tests.decide.test_gate_margins import RIGHT, WRONG, margin_verdict


def clustered(count: int, size: int) -> list[str]:
    return [f"c{n // size}" for n in range(count * size)]


def test_a_comparison_of_few_clusters_says_so() -> None:
    rng = np.random.default_rng(0)
    clusters = clustered(2, 50)
    before, after = (a_run(name, clusters, hit_5=(rng.random(100) < 0.7).astype(float)) for name in "ab")
    found = compare_runs(before, after)
    assert found.metrics[0].test.clusters == 2
    assert found.metrics[0].power.samples_needed is None
    assert found.notes == [
        "hit@5: the 100 pairs come in 2 clusters, and those of one count together. "
        "More clusters would help, more samples of the same would not"
    ]
    low, high = found.metrics[0].effect.interval or (0.0, 0.0)
    assert low < 0 < high
    assert low >= -1
    assert high <= 1


def test_one_large_cluster_is_worth_no_more_than_one() -> None:
    rng = np.random.default_rng(4)
    clusters = ["talk"] * 90 + [f"c{n}" for n in range(10)]
    before, after = (a_run(name, clusters, hit_5=(rng.random(100) < 0.7).astype(float)) for name in "ab")
    found = compare_runs(before, after)
    assert "in 11 clusters (worth 1.2 of equal size), and" in found.notes[0]
    assert found.metrics[0].power.samples_needed is None
    assert found.metrics[0].power.too_few
    assert power_from_runs(before, after).metrics[0].detectable is None


@pytest.mark.parametrize(("lost", "won"), [(4, 3), (1, 1)])
def test_a_comparison_and_a_gate_ask_for_the_same_number_of_samples(lost: int, won: int) -> None:
    """Whether a loss of 0.05 is ruled out: one question, and one figure."""
    before = [RIGHT] * (40 - won) + [WRONG] * won
    after = [WRONG] * lost + [RIGHT] * (40 - lost)
    verdict = margin_verdict(before, after, "exact_match", 0.05)
    flags = [[float(one is RIGHT) for one in side] for side in (before, after)]
    found = compare_runs(
        *(a_run(name, hit_5=np.array(v)) for name, v in zip("ab", flags, strict=True)), margin=0.05
    )
    needed = found.metrics[0].margin.samples_needed
    assert verdict.fix.startswith(f"About {needed} samples would rule it out if there is no difference")
    [words] = comparison_in_plain_words(found)
    assert words.endswith(
        f" Ruling out a loss of the margin takes about {needed} questions, if there is no difference."
    )
