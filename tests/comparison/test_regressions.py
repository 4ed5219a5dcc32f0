"""The samples that lost most: of which metric, and what both systems gave."""

from __future__ import annotations

from pathlib import Path

from auepora_eval.comparison.compare import Comparison, compare_runs
from auepora_eval.comparison.regressions import lost_most, lost_samples, stored_texts
from auepora_eval.comparison.tables import regression_table
from auepora_eval.core.types import EvaluationRun, TargetCategory
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_failure, a_sample, an_output
from tests.comparison.test_margins_and_repeats import scored
from tests.comparison.test_plain_words import metric

T = TargetCategory
REGRESSION = compare_runs(scored([1.0, 0.5]), scored([0.0, 0.5])).metrics[0].regressions


def chosen(*names: tuple[str, T, str]) -> str | None:
    metrics = [metric(name, target, verdict, regressions=REGRESSION) for name, target, verdict in names]
    found = lost_most(Comparison("a", "b", "a", "b", 0.05, metrics))
    return found.name if found else None


def test_regressions_are_of_quality_and_the_first_metric_is_the_one_that_matters() -> None:
    varied = ("lexical_diversity@5", T.DIVERSITY, "worse")
    slow = ("mean_latency", T.LATENCY, "worse")
    recall = ("recall@5", T.RETRIEVAL_RELEVANCE, "inconclusive")
    answers = ("token_f1", T.GENERATION_CORRECTNESS, "inconclusive")
    lost = ("mrr", T.RETRIEVAL_ACCURACY, "worse")
    assert chosen(varied, slow, recall, answers) == "recall@5"
    assert chosen(varied, recall, lost) == "mrr"
    assert chosen(varied, slow) is None


def with_documents(run: EvaluationRun) -> EvaluationRun:
    run.samples = [a_sample("s0", "q 0", relevant="ab"), a_sample("s1", "q 1", relevant="a")]
    run.outputs = [an_output("xacdbz", ""), a_failure()]
    return run


def test_what_was_found_is_shown_where_the_metric_is_about_documents(tmp_path: Path) -> None:
    before, now = with_documents(scored([1.0, 1.0], "old")), with_documents(scored([0.0, 0.0], "new"))
    now.outputs[0] = an_output("xyz", "")
    found = compare_runs(before, now).metrics[0]
    before.evaluation_id, now.evaluation_id = "before", "now"
    paths = [EvaluationResultsStorage(tmp_path).save_run(run) for run in (before, now)]
    texts = [stored_texts([path], {"s0", "s1"}) for path in paths]
    lost = lost_samples(found, texts[0], texts[1], 2)
    rows = regression_table(lost).rows
    assert rows[0][4:] == ("relevant at 2 and 5 of 6: x, a*, c, d, b*, …", "none relevant of 3: x, y, z")
    assert rows[1][5] == "failed: RuntimeError: no luck"
    assert (lost[1].now.answer, lost[1].now.error) == (None, "RuntimeError: no luck")
