"""Corrected values: by labels of the run, by error rates, and how often their intervals hold."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from auepora_eval.core.scores import Scores
from auepora_eval.core.types import MetricResult
from auepora_eval.errors import DataError
from auepora_eval.judges.ask import Asking
from auepora_eval.judges.trust.calibration import JudgeCalibration
from auepora_eval.judges.trust.correction import Corrected, corrected_value
from auepora_eval.judges.trust.probes import probe
from auepora_eval.judges.trust.record import JudgeTrust, trust_of, with_judge
from auepora_eval.stats.calibration import prediction_powered_mean
from benchmarks.judges import coverage_of_corrections
from tests.decide.gated import a_run
from tests.judges.functions import ALWAYS_YES, noisy
from tests.judges.judged_runs import METRIC, a_calibration, labels_of, truths


def a_result(scores: list[float]) -> MetricResult:
    return a_run("run", {METRIC: scores}).results[0]


def corrected(*args: object, **how: object) -> Corrected:
    found, reason = corrected_value(*args, **how)  # type: ignore[arg-type]
    assert found is not None, reason
    return found


def test_error_rates_are_undone() -> None:
    # 70 of 100 are true: 0.9 of these and 0.2 of the others are judged yes, 69 in all.
    found = corrected(a_result([1.0] * 69 + [0.0] * 31), {}, a_calibration())
    assert found.value == pytest.approx(0.7)
    assert found.interval[0] < 0.6 < 0.8 < found.interval[1]
    assert "Rogan-Gladen, Se 45 of 50, Sp 40 of 50" in found.method


def test_a_share_that_the_error_rates_exclude_is_not_corrected_to_a_certain_one() -> None:
    found, reason = corrected_value(a_result([1.0] * 1000), {}, a_calibration())
    assert found is None
    assert reason == (
        "the labels do not fit this run: with Se 45 of 50, Sp 40 of 50, 100% of yes is not possible"
    )
    note = with_judge(a_result([1.0] * 1000), a_calibration()).notes[-1]
    assert "; not corrected, since the labels do not fit this run" in note


def test_labels_of_the_run_come_first_and_are_those_of_ppi() -> None:
    rng = random.Random(3)
    people = truths(0.7, 300, rng)
    judged = noisy(people, rng)
    found = corrected(a_result(judged), labels_of(people, 100), a_calibration())
    labels, scores = np.array(people, dtype=float), np.array(judged)
    plain = prediction_powered_mean(labels[:100], scores[:100], scores[100:])
    assert found.value == pytest.approx(plain.value)
    assert "PPI++, 100 labels and 200 judged samples" in found.method
    width, plain_width = found.interval[1] - found.interval[0], 2 * 1.959964 * plain.error
    assert plain_width < width < 1.1 * plain_width


@pytest.mark.parametrize("others", [20, 1, 0])
def test_samples_of_one_conversation_do_not_show_how_much_conversations_differ(others: int) -> None:
    scores = Scores([f"s{n}" for n in range(30 + others)], [1.0, 0.0] * 15 + [1.0] * others)
    scores.clusters = ["talk"] * len(scores)
    result = replace(a_result([1.0]), scores=scores)
    labels = {f"s{n}": float(n % 3 > 0) for n in range(30)}
    low, high = corrected(result, labels).interval
    assert high - low > 0.99


@pytest.mark.parametrize("values", [[1.0, 0.0] * 50, [*[1.0] * 9, 0.0] * 10], ids=["half", "nine of ten"])
def test_error_rates_are_undone_for_as_many_verdicts_as_there_are_conversations(values: list[float]) -> None:
    """Of one conversation, or of two with the same share, nothing more is known than of two verdicts."""
    widths = []
    for clusters in ([], ["talk"] * 100, ["talk"] * 50 + ["chat"] * 50):
        scores = Scores([f"s{n}" for n in range(100)], values)
        scores.clusters = [*clusters] or None
        low, high = corrected(replace(a_result([1.0]), scores=scores), {}, a_calibration()).interval
        widths.append(high - low)
    assert widths[1] > 0.8 > 2 * widths[0]
    assert widths[2] == widths[1]


def test_labels_of_every_sample_need_no_judge() -> None:
    people = [1.0] * 30 + [0.0] * 10
    found = corrected(a_result([1.0] * 40), labels_of(people, 40))
    assert (found.value, found.method) == (0.75, "the mean of 40 labels")


@pytest.mark.parametrize(
    ("labels", "calibration", "is_share", "reason"),
    [
        pytest.param(19, None, True, "19 judged samples have a label", id="too few"),
        pytest.param(0, a_calibration(), False, "shares of yes and no", id="grades"),
        pytest.param(0, a_calibration((30, 50), (25, 50)), True, "this judge cannot tell", id="a coin"),
        pytest.param(0, a_calibration((1, 1), (5, 23)), True, "labels are too few: 1 of 1 yes", id="one yes"),
    ],
)
def test_without_enough_there_is_a_reason(
    labels: int, calibration: JudgeCalibration | None, is_share: bool, reason: str
) -> None:
    result = a_result([1.0, 0.0] * 50)
    found, why = corrected_value(result, labels_of([1.0] * 100, labels), calibration, is_share=is_share)
    assert found is None
    assert reason in why


def test_corrected_intervals_cover_the_truth_and_raw_ones_do_not() -> None:
    """The small version of `python benchmarks/judges.py`, at the rate of the bar: 93%."""
    for each in coverage_of_corrections(simulations=200, rates=(0.9,)):
        print(each)
        assert each.by_labels >= 0.92
        assert each.by_error_rates >= 0.92
        assert each.raw < 0.1
        assert abs(each.bias) > 0.05


def test_what_is_stored_with_a_result() -> None:
    result = a_result([1.0] * 69 + [0.0] * 31)
    assert trust_of(result) is None
    plain = with_judge(result, None)
    assert plain.notes == [f"{METRIC}: uncalibrated judge"]
    assert trust_of(plain) == JudgeTrust(not_corrected=plain.details["judge"]["not_corrected"])
    judged = with_judge(result, a_calibration(), [probe(Asking(ALWAYS_YES))])
    trust = trust_of(judged)
    assert trust is not None
    assert trust.uncorrected == ""
    assert trust.degraded == ["foreign", "negation", "number", "yes-bias"]
    assert judged.notes[0].startswith(f"{METRIC}: AUROC 0.85 [0.78, 0.92], kappa 0.70")
    assert "corrected by labels of people 0.7000 [" in judged.notes[0]
    assert "degraded: it failed the probes foreign" in trust.distrust
    broken = a_result([1.0])
    broken.details["judge"] = {"labels": 3}
    with pytest.raises(DataError, match="cannot be read"):
        trust_of(broken)
