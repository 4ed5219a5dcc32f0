"""A loss within the margin is told from one beyond it, and no difference is not called one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auepora_eval.core.types import TargetCategory
from auepora_eval.reporting.html import report_html
from auepora_eval.reporting.interval_notes import interval_notes
from auepora_eval.reporting.tables import comparison_in_words, comparison_rows
from auepora_eval.reporting.verdict_words import margin_kept
from auepora_eval.runs.compare import Comparison, compare_runs
from tests.reporting.test_plain_words import metric, unclear, words
from tests.runs.test_compare_more import scored

ANSWERS = TargetCategory.GENERATION_CORRECTNESS
EXACT = metric(
    "exact_match",
    ANSWERS,
    "worse",
    baseline=0.67,
    candidate=0.63,
    difference=-0.04,
    margin=0.1,
    within_margin=True,
)
F1 = replace(EXACT, name="token_f1", baseline=0.75, candidate=0.7, difference=-0.047, margin=0.01)
F1 = replace(F1, within_margin=False)
BLEU = replace(F1, name="bleu", baseline=50.0, candidate=43.7, difference=-6.3, margin=10.0)
ROUGE = replace(F1, name="rougeL_answer", margin=None, within_margin=None)


def test_each_loss_is_held_against_its_own_margin() -> None:
    assert [margin_kept(one) for one in (EXACT, F1, BLEU, ROUGE)] == ["yes", "no", "perhaps", ""]
    [told] = words(EXACT, F1, ROUGE, BLEU)
    assert told == (
        "new gives worse answers: token_f1 is 0.70 instead of 0.75, which is more than the margin. That is "
        "more than chance explains (p = 0.004). exact_match (by less than its margin), rougeL_answer and "
        "bleu (perhaps by more than its margin) say so too."
    )
    [told] = words(EXACT)
    assert "instead of 67 (exact_match), though by less than the margin. That is" in told


def test_the_table_and_the_list_tell_them_apart_too() -> None:
    comparison = Comparison("a", "b", "old", "new", 0.05, [EXACT, F1, BLEU, ROUGE])
    assert [row[-1] for row in comparison_rows(comparison)] == ["worse, within margin", *["worse"] * 3]
    assert "exact_match (-0.0400, p = 0.004), though by less than the margin" in comparison_in_words(
        comparison
    )
    assert "token_f1 (-0.0470, p = 0.004), which is more than the margin" in comparison_in_words(comparison)
    runs = [scored([1.0] * 200, "old"), scored([1.0] * 190 + [0.0] * 10, "new")]
    found = compare_runs(*runs, margin=0.2, resamples=500)
    assert "<b class='worse'>worse, within margin</b>" in report_html(runs, found)


@pytest.mark.parametrize(
    ("name", "before", "now", "says"),
    [
        ("exact_match", 0.6, 0.6, "60 in 100 answers are exactly the right one, as before (exact_match)"),
        ("token_f1", 0.5, 0.5, "token_f1 is 0.50, as before"),
    ],
)
def test_as_many_gained_as_lost(name: str, before: float, now: float, says: str) -> None:
    even = unclear(name, ANSWERS, None, baseline=before, candidate=now, wins=24, losses=24)
    assert words(even) == [
        f"On right answers we cannot tell: on balance {says}, but 24 gained and 24 lost; a difference of up "
        "to 0.1200 either way cannot be ruled out."
    ]


def test_a_difference_in_the_last_digits_is_shown() -> None:
    [told, _] = words(metric("exact_match", ANSWERS, "better", baseline=0.6, candidate=0.60001))
    assert "60.001 in 100 answers are exactly the right one instead of 60.000" in told
    [told, _] = words(metric("my{own}", ANSWERS, "better", baseline=0.6, candidate=0.600001))
    assert "my{own} is 0.600001 instead of 0.600000" in told


def test_where_alpha_is_the_reason_it_is_said() -> None:
    bleu = unclear("bleu", ANSWERS, None, interval=(-6.0, -0.1), p_value=0.048)
    few = unclear("exact_match", ANSWERS, None, interval=(-0.2, -0.01), p_value=0.0625)
    assert interval_notes(Comparison("a", "b", "old", "new", 0.001, [bleu, few])) == [
        "bleu (p = 0.048): the interval, which is of 95%, leaves out 0, but alpha asks for p below 0.001.",
        "exact_match (p = 0.062): the interval leaves out 0, but too few samples differ for the test to be "
        "sure.",
    ]
