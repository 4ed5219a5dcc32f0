"""A loss within the margin is told from one beyond it, and no difference is not called one."""

from __future__ import annotations

from auepora_eval.comparison.compare import Comparison
from auepora_eval.comparison.tables import comparison_table
from auepora_eval.core.types import TargetCategory
from tests.comparison.test_plain_words import changed, metric, words

ANSWERS = TargetCategory.GENERATION_CORRECTNESS
EXACT = metric(
    "exact_match",
    ANSWERS,
    "worse",
    baseline=0.67,
    candidate=0.63,
    change=-0.04,
    margin_size=0.1,
    margin_within=True,
)
F1 = changed(EXACT, name="token_f1", baseline=0.75, candidate=0.7, change=-0.047, margin_size=0.01)
F1 = changed(F1, margin_within=False)


def test_each_loss_is_held_against_its_own_margin() -> None:
    [told] = words(EXACT, F1)
    assert told == (
        "new gives worse answers: token_f1 is 0.70, compared with 0.75. The difference is significant "
        "(p = 0.004). exact_match (by less than its margin) agrees."
    )
    [told] = words(EXACT)
    assert "compared with 67% (exact_match), though by less than the margin. The" in told
    comparison = Comparison("a", "b", "old", "new", 0.05, [EXACT, F1])
    assert [row[-1] for row in comparison_table(comparison).rows] == ["worse, within margin", "worse"]
