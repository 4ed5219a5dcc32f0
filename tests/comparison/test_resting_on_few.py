"""What a verdict does not rest on: samples without a pair, and rare losses that few samples cannot show."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from auepora_eval.comparison.compare import Comparison, compare_runs
from auepora_eval.comparison.tables import comparison_table
from auepora_eval.comparison.words import comparison_in_plain_words
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.types import EvaluationRun
from auepora_eval.core.verdict import Verdict
from auepora_eval.metrics.parse import parse_metrics
from tests.builders import a_dataset, a_sample
from tests.decide.gated import a_run

DOCUMENT = "The ferry leaves the north pier at noon."


def _answering(name: str, answers: Sequence[str]) -> EvaluationRun:
    """A run in which every sample has the same document and an answer of its own."""
    samples = [a_sample(f"s{n}", f"q {n}", labels={"kind": "odd" if n % 2 else "even"}) for n in range(20)]

    def system(query: str) -> dict[str, object]:
        return {"answer": answers[int(query.split()[1])], "retrieved": [{"doc_id": "d", "text": DOCUMENT}]}

    system.__name__ = name
    plan = EvaluationPlan(parse_metrics("grounding_overlap"))
    return AueporaEvaluator(system, plan).run(a_dataset(*samples))


@pytest.fixture(scope="module")
def declining() -> Comparison:
    """The baseline makes up ten of twenty answers. The candidate declines these ten, and gives the others."""
    good, bad, no = "The ferry leaves at noon.", "Bananas ripen quickly outdoors.", "I don't know."
    old, new = (_answering(name, [good] * 10 + [rest] * 10) for name, rest in (("old", bad), ("new", no)))
    return compare_runs(old, new, by=["kind"])


def test_pairs_that_are_missing_are_not_the_same(declining: Comparison) -> None:
    metric = declining["grounding_overlap"]
    assert (metric.baseline, metric.candidate, metric.effect.change) == (1, 1, 0)
    assert (metric.pairs, metric.coverage.unmatched) == (10, 10)
    assert metric.verdict is Verdict.INCONCLUSIVE
    assert {one.verdict for one in declining.slices} == {Verdict.INCONCLUSIVE}


def test_the_words_and_the_first_table_say_how_many_pairs_there_are(declining: Comparison) -> None:
    assert comparison_in_plain_words(declining) == [
        "Inconclusive on grounding_overlap: of the 10 samples that both answered none differs, but 10 others "
        "have a score in one run only."
    ]
    table = comparison_table(declining)
    assert dict(zip(table.headings, table.rows[0], strict=True))["Pairs"] == "10/20"


def _words(comparison: Comparison) -> str:
    return " ".join(comparison_in_plain_words(comparison))


def _change(gains: Sequence[float], margin: float | None = None, size: int = 50) -> Comparison:
    before = [0.5] * size
    after = [0.5 + gain for gain in gains] + before[len(gains) :]
    return compare_runs(a_run("old", {"token_f1": before}), a_run("new", {"token_f1": after}), margin=margin)


@pytest.mark.parametrize(
    ("gains", "rests_on"),
    [
        # 7 x 0.1 / 50 = 0.014, which a loss of 1 in one sample of 71 takes back.
        pytest.param([0.1] * 7, (7, 50, 1.0, 71), id="all up"),
        pytest.param([0.1] * 12 + [-0.01] * 2, (14, 50, 1.0, 42), id="12 of 14 up"),
        pytest.param([-0.1] * 7, (7, 50, 1.0, 71), id="all down"),
        pytest.param([0.1] * 19 + [-0.01], None, id="20 differ"),
        pytest.param([0.1] * 15 + [-0.01] * 3, None, id="15 of 18 up"),
        pytest.param([0.1] * 5, None, id="not significant"),
    ],
)
def test_a_verdict_on_few_samples_that_go_one_way_has_a_caution(
    gains: list[float], rests_on: tuple[int, int, float, int] | None
) -> None:
    comparison = _change(gains)
    assert comparison["token_f1"].rests_on == rests_on
    assert ("rests on" in _words(comparison)) is (rests_on is not None)


def test_a_margin_that_is_kept_needs_no_caution() -> None:
    assert _change([0.1] * 7, margin=0.1)["token_f1"].rests_on is None
    assert _change([0.1] * 7, margin=0.01)["token_f1"].rests_on is not None


def test_scores_of_0_and_1_need_none() -> None:
    """No loss can be larger than the gains that were seen: McNemar's test is exact."""
    old, new = [0.0] * 25 + [1.0] * 25, [1.0] * 7 + [0.0] * 18 + [1.0] * 25
    comparison = compare_runs(a_run("old", {"exact_match": old}), a_run("new", {"exact_match": new}))
    assert comparison["exact_match"].verdict is Verdict.BETTER
    assert comparison["exact_match"].rests_on is None
