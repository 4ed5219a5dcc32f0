"""Slices: the same comparison on fewer samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import auepora_eval as ae
from auepora_eval.comparison.compare import compare_runs
from auepora_eval.comparison.slices import MOST_VALUES, field_values
from auepora_eval.comparison.tables import slice_notes, slice_table, slices_in_words
from auepora_eval.comparison.words import comparison_in_plain_words
from auepora_eval.core.types import EvaluationRun
from auepora_eval.core.verdict import Verdict
from auepora_eval.decide.gate import gate_run
from auepora_eval.errors import PlanError
from auepora_eval.stats.significance import benjamini_hochberg
from tests.builders import a_sample
from tests.comparison.test_compare_more import scored


def labelled(values: Any, kinds: list[Any], name: str = "r") -> EvaluationRun:
    run = scored(np.asarray(values).tolist(), name, "mrr")
    samples = [replace(s, labels={"kind": kind}) for s, kind in zip(run.samples, kinds, strict=True)]
    return replace(run, samples=samples)


def test_a_loss_in_one_slice_is_found_behind_a_gain_over_all() -> None:
    rng = np.random.default_rng(0)
    kinds = ["easy"] * 150 + ["hard"] * 50 + ["rare"] * 5
    a = rng.random(205)
    shift = np.where(np.array(kinds) == "hard", -0.2, 0.2)
    comparison = compare_runs(
        labelled(a, kinds), labelled(a + shift + rng.normal(0, 0.1, 205), kinds), by=["kind"]
    )
    assert comparison.metrics[0].verdict == "better"
    assert [(one.value, one.verdict, one.few) for one in comparison.slices] == [
        ("hard", "worse", False),
        ("rare", "inconclusive", True),
        ("easy", "better", False),
    ]
    hard = comparison.slices[0]
    assert hard.pairs == 50
    assert hard.difference == pytest.approx(hard.candidate - hard.baseline)
    assert [one.p_adjusted for one in comparison.slices] == pytest.approx(
        benjamini_hochberg([one.p_value for one in comparison.slices])
    )
    assert slice_table(comparison.slices).rows[1][2] == "5*"
    assert slices_in_words(comparison.slices).startswith("Worse in 1 of 3 slices: mrr where kind is hard.")


def test_losses_come_before_gains_by_their_size_and_slices_are_counted_once() -> None:
    """Four kinds, two metrics; by hand: -0.4 on 30, -0.1 on 30, -0.5 on 5 samples, +0.3 on 30."""
    kinds = ["b"] * 30 + ["c"] * 30 + ["few"] * 5 + ["gain"] * 30
    rng = np.random.default_rng(3)
    shift = {"b": -0.1, "c": -0.4, "few": -0.5, "gain": 0.3}
    a = labelled(rng.random(95), kinds)
    moved = rng.normal(0, 2.0, 95)  # so much noise that nothing is sure
    for kind, step in shift.items():
        mine = np.array(kinds) == kind
        moved[mine] += step - moved[mine].mean()
    b = labelled(np.array([score.value for score in a.results[0].scores]) + moved, kinds, "b")
    for run in (a, b):
        run.results.append(replace(run.results[0], name="ndcg@5"))
    slices = compare_runs(a, b, by=["kind"]).slices
    assert {one.verdict for one in slices} == {"inconclusive"}
    assert [one.value for one in slices] == ["c", "c", "b", "b", "few", "few", "gain", "gain"]
    assert slices_in_words(slices) == "Worse in 0 of 4 slices. 1 marked * have fewer than 20 questions."
    several = [replace(one, verdict=Verdict.WORSE) for one in slices[:2]]
    assert slices_in_words([*several, *slices[2:]]).startswith(
        "Worse in 1 of 4 slices: mrr where kind is c, ndcg@5 where kind is c."
    )


def test_why_a_slice_is_inconclusive_though_its_interval_excludes_0() -> None:
    """Ten slices: one gains, with p = 0.03 alone, which is 0.3 of ten tests."""
    rng = np.random.default_rng(1)
    kinds = [f"kind {n}" for n in range(10) for _ in range(30)]
    change = rng.normal(0, 1, 300)
    for n in range(10):
        part = slice(30 * n, 30 * n + 30)
        change[part] -= change[part].mean()
        change[part] += 0.41 * change[part].std() if n == 4 else 0.01
    slices = compare_runs(labelled(np.zeros(300), kinds), labelled(change, kinds), by=["kind"]).slices
    (one,) = (one for one in slices if one.value == "kind 4")
    assert one.interval is not None
    assert one.interval[0] > 0
    assert (one.p_value < 0.05, one.p_adjusted > 0.05, one.verdict) == (True, True, "inconclusive")
    (note,) = slice_notes(slices, len(slices))
    assert note.startswith("mrr where kind is kind 4: the interval excludes 0, but 10 slices were tested")
    assert slice_notes([each for each in slices if each is not one], 10) == []
    assert slice_notes([replace(one, value=str(n)) for n in range(5)], 5)[0].startswith(
        "mrr where kind is 0, mrr where kind is 1, mrr where kind is 2 and 2 more: the interval"
    )


def test_a_difference_in_the_last_bit_is_none() -> None:
    a = labelled([0.1 + 0.2] * 20, ["x"] * 20)
    b = labelled([0.3] * 20, ["x"] * 20)
    comparison = compare_runs(a, b, by=["kind"])
    assert [one.verdict for one in comparison.slices] == ["same"]
    assert comparison.metrics[0].verdict == "same"


def test_a_slice_is_the_comparison_of_its_samples() -> None:
    rng = np.random.default_rng(1)
    kinds = ["x", "y"] * 30
    a, b = rng.random(60), rng.random(60)
    [one] = [
        s for s in compare_runs(labelled(a, kinds), labelled(b, kinds), by=["kind"]).slices if s.value == "x"
    ]
    [alone] = compare_runs(
        scored(a[::2].tolist(), metric="mrr"), scored(b[::2].tolist(), metric="mrr")
    ).metrics
    assert one.p_value == alone.test.p
    assert one.interval == pytest.approx(alone.effect.interval)


def test_fields_are_found_in_labels_then_in_metadata() -> None:
    sample = a_sample("1", labels={"kind": "a", "tags": ["x", "y", {}], "n": 2, "d": {}})
    sample.metadata = {"kind": "m", "source": "web"}
    assert field_values(sample, "kind") == ["a"]
    assert field_values(sample, "metadata.kind") == ["m"]
    assert field_values(sample, "labels.kind") == ["a"]
    assert field_values(sample, "source") == ["web"]
    assert field_values(sample, "tags") == ["x", "y"]
    assert field_values(sample, "n") == ["2"]
    assert field_values(sample, "d") == field_values(sample, "nothing") == []


def test_a_field_that_nobody_has_is_refused_and_one_with_very_many_values_cut() -> None:
    a = labelled(np.linspace(0, 1, 120), [f"k{n // 2}" for n in range(120)])
    with pytest.raises(PlanError, match="no sample has a label or metadata field 'nope'"):
        compare_runs(a, a, by=["nope"])
    comparison = compare_runs(a, a, by=["kind"])
    assert len(comparison.slices) == MOST_VALUES
    assert comparison.notes == ["kind has 60 values; the 50 most frequent are compared"]


def test_slices_of_repeats_hold_all_of_them() -> None:
    rng = np.random.default_rng(2)
    kinds = ["x"] * 20 + ["y"] * 20
    runs = [labelled(rng.random(40), kinds, name) for name in ("a1", "a2", "b1", "b2")]
    comparison = compare_runs(runs[:2], runs[2:], by=["kind"], samples=runs[0].samples)
    assert [one.pairs for one in comparison.slices] == [40, 40]


def test_a_slice_where_one_run_has_no_value_is_inconclusive() -> None:
    """Without a right answer on clean documents, the share that noise leaves is 0 / 0."""
    rows: list[dict[str, Any]] = [
        {"sample_id": f"{kind}{n}", "query": "q", "reference_answer": "22", "labels": labels}
        for kind in "xy"
        for n in range(40)
        if (labels := {"kind": kind, "noise_ratio": n % 2 * 0.8})
    ]
    never_in_x = {row["sample_id"]: "no" if row["sample_id"][0] == "x" else "22" for row in rows}
    always = dict.fromkeys(never_in_x, "22")
    a, b = (
        ae.score(rows, {name: {"answer": text} for name, text in answers.items()}, metrics="noise_retention")
        for answers in (never_in_x, always)
    )
    for baseline, candidate in ((a, b), (b, a)):
        by_value = {one.value: one for one in compare_runs(baseline, candidate, by=["kind"]).slices}
        assert np.isnan(by_value["x"].difference)
        assert (by_value["x"].verdict, by_value["x"].p_value) == ("inconclusive", 1.0)
        assert by_value["y"].verdict == "same"
    only_x = [row for row in rows if row["sample_id"].startswith("x")]
    a, b = (
        ae.score(only_x, {row["sample_id"]: {"answer": text} for row in only_x}, metrics="noise_retention")
        for text in ("no", "22")
    )
    whole = compare_runs(a, b).metrics[0]
    assert (whole.verdict, whole.test.p) == ("inconclusive", None)
    assert "no value in one of the runs" in whole.test.not_tested
    assert "noise_retention is 1.0000, compared with n/a, but it" in " ".join(
        comparison_in_plain_words(compare_runs(a, b))
    )
    report = gate_run(b, {"no_regression": ["noise_retention"]}, baseline=a)
    assert (report.exit_code, "calls that failed" in report.verdicts[0].fix) == (3, False)
