"""Words beside a verdict say what the verdict says, and why it is not another."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.comparison.compare import cluster_notes, compare_runs
from auepora_eval.comparison.ranking import rank_runs
from auepora_eval.comparison.tables import ranking_in_words, ranking_legend
from auepora_eval.comparison.words import comparison_in_plain_words
from auepora_eval.core.types import EvaluationRun, SystemOutputs, TargetCategory
from auepora_eval.decide.figures import GatedRun
from auepora_eval.decide.gate import gate_run
from auepora_eval.errors import PlanError
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_failure, an_output
from tests.comparison.test_crashing import SIZE, questions, reference, run_of
from tests.comparison.test_plain_words import inconclusive, metric, words
from tests.decide.gated import a_run

WHY = (
    "answers are scored by each other, and some of the better run failed: answered, they might make it worse"
)
DULL = [an_output(answer=reference(0))] * SIZE
VARIED = [an_output(answer=reference(n)) for n in range(SIZE)]
FAILED_ONCE = [a_failure(), *VARIED[1:]]


def side(name: str, outputs: list[SystemOutputs]) -> EvaluationRun:
    return run_of(name, outputs, "self_bleu")


def test_what_a_failure_leaves_untold_is_not_put_down_to_the_machine() -> None:
    told = comparison_in_plain_words(compare_runs(side("a", DULL), side("b", FAILED_ONCE), resamples=200))
    assert told[-1] == f"Inconclusive on diversity: self_bleu is 2.50, compared with 100.00, but {WHY}."
    assert not any("speed" in text or "machine" in text for text in told)


def test_a_gate_does_not_propose_repeats_for_what_failed() -> None:
    report = gate_run(
        side("b", FAILED_ONCE), {"no_regression": ["self_bleu"]}, baseline=side("a", DULL), resamples=200
    )
    assert WHY in report.verdicts[0].why
    assert report.verdicts[0].fix == "Fix the calls that failed, and judge again."


def test_ranks_are_missing_for_the_right_reason() -> None:
    runs = [side("a", DULL), side("b", VARIED), side("c", FAILED_ONCE)]
    ranking = rank_runs(runs, resamples=200)
    assert "times" not in ranking_legend(ranking)
    assert "no rank: answers are scored by each other, and some failed" in ranking_legend(ranking)
    assert "Failed answers leave open who is best on self_bleu." in ranking_in_words(ranking)


def test_more_clusters_are_asked_for_only_where_something_is_left_open() -> None:
    told = metric("hit@5", TargetCategory.RETRIEVAL_RELEVANCE, "better", clusters=9, clusters_worth=9.0)
    left = inconclusive("mrr", TargetCategory.RETRIEVAL_RELEVANCE, None, clusters=9, clusters_worth=9.0)
    common = "the 100 pairs come in 9 clusters, and those of one count together"
    assert cluster_notes([told], 0.05) == [f"hit@5: {common}: the verdict rests on 9 clusters"]
    assert cluster_notes([left], 0.05) == [
        f"mrr: {common}. More clusters would help, more samples of the same would not"
    ]
    assert [note.partition(":")[0] for note in cluster_notes([told, left], 0.05)] == ["hit@5", "mrr"]


@pytest.mark.parametrize("margin", [0.001, 2.0])
def test_a_sure_gain_of_few_clusters_says_what_stands_in_the_way(margin: float) -> None:
    samples = questions()
    for n, sample in enumerate(samples):
        sample.metadata["cluster"] = f"c{n // 7}"
    wrong = [an_output(answer=f"x{n} y{n}") if n % 2 else VARIED[n] for n in range(SIZE)]
    before, now = (
        run_of(name, outputs, "bleu", samples=samples) for name, outputs in (("a", wrong), ("b", VARIED))
    )
    verdict = gate_run(now, {"margin": {"bleu": margin}}, baseline=before, resamples=200).verdicts[0]
    assert verdict.outcome == "inconclusive", verdict
    assert verdict.fix == (
        "The gain is significant, but 6 clusters are too few to rule out a loss that none of them shows. "
        "More clusters would, more samples of the same would not; or allow a wider margin."
    )


def test_a_number_that_nobody_will_measure_is_not_given() -> None:
    values = [0.1 * (n % 10) for n in range(40)]
    a, b = a_run("a", {"token_f1": values}), a_run("b", {"token_f1": values[::-1]})
    verdict = gate_run(b, {"margin": {"token_f1": 0.0001}}, baseline=a, resamples=200).verdicts[0]
    assert verdict.fix == (
        "It would take more than 10,000 samples to rule out so small a loss: allow a wider margin."
    )
    told = comparison_in_plain_words(compare_runs(a, b, margin=0.0001, resamples=200))
    assert told[-1].endswith(" Ruling out a loss of the margin takes more than 10,000 questions.")


def test_of_several_topics_only_the_near_ones_have_a_number() -> None:
    far = inconclusive("bleu", TargetCategory.GENERATION_CORRECTNESS, None, margin_samples_needed=9_274_740)
    near = inconclusive("hit@5", TargetCategory.RETRIEVAL_RELEVANCE, None, margin_samples_needed=149)
    less = inconclusive("distinct_n", TargetCategory.DIVERSITY, None, margin_samples_needed=120)
    assert words(far, near, less)[-1].endswith(
        " Ruling out a loss of the margin takes about 120 questions for diversity, 149 for finding the "
        "right documents, more than 10,000 for correctness, if there is no difference."
    )


def test_a_run_is_not_its_own_baseline(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    run, equal = a_run("r", {"hit@5": [1.0] * 40}), a_run("r", {"hit@5": [1.0] * 40})
    storage.save_run(run)
    stored = [GatedRun.stored(storage, name) for name in ("r", str(tmp_path / "r.results.json"))]
    for one, other in ((run, run), (GatedRun.of(run), run), (stored[0], stored[1])):
        with pytest.raises(PlanError, match="r is its own baseline"):
            gate_run(one, baseline=other)
    assert gate_run(equal, baseline=run, resamples=200).outcome == "passed"


def test_every_metric_is_named_whose_margin_cannot_be_told() -> None:
    target = TargetCategory.GENERATION_CORRECTNESS
    kept = metric("token_f1", target, "no worse", margin_size=0.05)
    open_ones = [
        inconclusive(name, target, None, margin_size=0.05) for name in ("contains_answer", "rougeL_answer")
    ]
    assert any("correctness (contains_answer and rougeL_answer)" in text for text in words(kept, *open_ones))
    better = metric("token_f1", target, "better", margin_size=0.05)
    assert words(better, *open_ones)[-1] == (
        "A loss as large as the margin cannot be ruled out for contains_answer and rougeL_answer."
    )


def test_pooled_repeats_know_what_failures_could_have_been() -> None:
    a = [run_of(f"a{n}", VARIED, "bleu") for n in range(2)]
    b = [run_of(f"b{n}", FAILED_ONCE, "bleu") for n in range(2)]
    pooled, single = compare_runs(a, b, resamples=200), compare_runs(a[0], b[0], resamples=200)
    found, alone = pooled.metrics[0].effect.bounds, single.metrics[0].effect.bounds
    assert found == pytest.approx(alone)
