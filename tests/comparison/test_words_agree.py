"""Words beside a verdict say what the verdict says, and why it is not another."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.comparison.ranking import rank_runs
from auepora_eval.comparison.tables import ranking_in_words, ranking_legend
from auepora_eval.comparison.words import comparison_in_plain_words
from auepora_eval.core.types import EvaluationRun, SystemOutputs
from auepora_eval.decide.figures import GatedRun
from auepora_eval.decide.gate import gate_run
from auepora_eval.errors import PlanError
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_failure, an_output
from tests.comparison.test_crashing import SIZE, reference, run_of
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
    assert "repeats" not in report.verdicts[0].fix


def test_ranks_are_missing_for_the_right_reason() -> None:
    runs = [side("a", DULL), side("b", VARIED), side("c", FAILED_ONCE)]
    ranking = rank_runs(runs, resamples=200)
    assert "times" not in ranking_legend(ranking)
    assert "no rank: answers are scored by each other, and some failed" in ranking_legend(ranking)
    assert "Failed answers leave open who is best on self_bleu." in ranking_in_words(ranking)


def test_a_run_is_not_its_own_baseline(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    run, equal = a_run("r", {"hit@5": [1.0] * 40}), a_run("r", {"hit@5": [1.0] * 40})
    storage.save_run(run)
    stored = [GatedRun.stored(storage, name) for name in ("r", str(tmp_path / "r.results.json"))]
    for one, other in ((run, run), (GatedRun.of(run), run), (stored[0], stored[1])):
        with pytest.raises(PlanError, match="r is its own baseline"):
            gate_run(one, baseline=other)
    assert gate_run(equal, baseline=run, resamples=200).outcome == "passed"
