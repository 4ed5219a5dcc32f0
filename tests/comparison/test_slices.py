"""Slices: the same comparison on fewer samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import auepora_eval as ae
from auepora_eval.comparison.compare import compare_runs
from auepora_eval.comparison.tables import slice_table, slices_in_words
from auepora_eval.comparison.words import comparison_in_plain_words
from auepora_eval.core.types import EvaluationRun
from auepora_eval.decide.gate import gate_run
from auepora_eval.stats.significance import benjamini_hochberg
from tests.comparison.test_margins_and_repeats import scored


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
    assert comparison_in_plain_words(compare_runs(a, b)) == [
        f"Inconclusive on noise_retention: {whole.test.not_tested}."
    ]
    report = gate_run(b, {"no_regression": ["noise_retention"]}, baseline=a)
    assert (report.exit_code, "calls that failed" in report.verdicts[0].fix) == (3, False)
