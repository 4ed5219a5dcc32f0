"""The functions that most users need: evaluate a system, score answers, compare runs, gate a run.

They only combine what is below: the evaluator, the loader of datasets, the store of runs and the comparison.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from numbers import Integral, Real
from pathlib import Path
from types import NoneType
from typing import Any

from .calls.executors import Executor
from .calls.policy import CallPolicy
from .comparison.compare import Comparison, compare_runs
from .comparison.tables import comparison_table
from .comparison.words import comparison_in_plain_words
from .core.dataset import DatasetForms, EvaluationDataset, rare_collections
from .core.display import html_text, terminal_line, terminal_width
from .core.matching import BY_ID
from .core.metrics_base import SampleMetric
from .core.plan import EvaluationPlan, MetricForms
from .core.runner import AueporaEvaluator
from .core.scoring import Pair, RunRecord, score_in_chunks, score_record
from .core.table import Table, frame_of
from .core.types import EvaluationRun, MetricResult
from .decide.gate import gate_run
from .decide.gate_report import GateReport
from .decide.rules import read_rules, rules_of
from .errors import ArgumentError, DataError, check_type, warn_user, wrong_type
from .io.loader import load_dataset
from .io.outputs import predictions_of
from .io.trec import by_query, judged_sample, ranked_output, read_run
from .metrics.parse import default_metrics
from .read.convert import Convert
from .read.fields import columns_of_samples
from .store.storage import EvaluationResultsStorage

Run = EvaluationRun | str | Path
_LONGEST = 2000  # characters of one sentence; names of systems and metrics may be of any length


# Here and not in comparison.compare: words and tables are made from a Comparison, by modules above it.
class RunComparison(Comparison):
    """A comparison that prints as the verdict in words, then the table."""

    def __str__(self) -> str:
        width = terminal_width()
        words = [terminal_line(sentence, _LONGEST) for sentence in comparison_in_plain_words(self)]
        return "\n".join(
            [*(textwrap.fill(each, width) for each in words), "", self.table().to_terminal(width)]
        )

    def __repr__(self) -> str:
        verdicts = self.counts_in_words() or "no metrics"
        return f"<RunComparison {self.candidate_id} with {self.baseline_id}: {verdicts}>"

    def _repr_html_(self) -> str:
        words = (f"<p>{html_text(sentence)}</p>" for sentence in comparison_in_plain_words(self))
        return f"{''.join(words)}{self.table().to_html()}"

    def to_records(self) -> list[dict[str, object]]:
        """Return one dict per metric: both values, the difference, its interval, the p-value, the verdict."""
        return [
            {
                "metric": metric.name,
                "baseline": metric.baseline,
                "candidate": metric.candidate,
                "difference": metric.effect.change,
                "low": None if metric.effect.interval is None else metric.effect.interval[0],
                "high": None if metric.effect.interval is None else metric.effect.interval[1],
                "p": metric.test.p,
                "p_adjusted": metric.test.p_adjusted,
                "verdict": metric.verdict.value,
            }
            for metric in self.metrics
        ]

    def to_frame(self) -> Any:
        """Return `to_records()` as a DataFrame of pandas or, if only that is installed, of polars."""
        return frame_of(self.to_records())

    def table(self) -> Table:
        """Return each metric's values, difference, interval, p-value and verdict."""
        left_out = [f"{name} is not compared: {reason}" for name, reason in self.not_compared.items()]
        notes = [f"Note: {text}." for text in (*self.mismatches, *self.notes, *left_out)]
        return replace(comparison_table(self), notes=notes)


def evaluate(
    system: Any,
    dataset: DatasetForms | str | Path | None = None,
    *,
    metrics: MetricForms | None = None,
    match: str = BY_ID,
    top_k: int = 5,
    columns: Mapping[str, str] | None = None,
    convert: Convert | None = None,
    evaluation_id: str | None = None,
    executor: Executor | None = None,
    policy: CallPolicy | None = None,
    max_failures: int | None = None,
    seed: int = 0,
    judge: object = None,
) -> EvaluationRun:
    """Run a system on a dataset and return the run with its results.

    `system` is anything that `as_system` accepts, such as a function of the query. `dataset` is a dataset, a
    list of samples or dicts, a DataFrame, the path of a file, or "demo"; `columns` and `convert` are those of
    `load_dataset`. `metrics` are names, metrics, or functions of a sample and an output; without it
    the standard metrics for what the samples have are used. `match` says by what retrieved documents are
    compared with the relevant ones: "id", "source" or "text". `executor` makes calls in parallel, `policy`
    sets timeouts, retries and budgets; a call that fails is recorded and counted (`run.failures()`), and
    EvaluationError is raised if none was answered. `judge` answers the
    questions of judged metrics: a name such as "http://127.0.0.1:8000/v1#model", a Judge, or a function of a
    question. It is called by the same executor, with the policy's retries, and budgets of its own.

    >>> samples = [{"sample_id": "1", "query": "How many?", "reference_answer": "22"}]
    >>> evaluate(lambda query: "22", samples, metrics="exact_match")["exact_match"].value
    1.0
    """
    if dataset is None:
        raise ArgumentError("evaluate needs a dataset. To score answers that you have, use score(rows).")
    # The evaluator checks top_k too, but the default metrics need it before.
    check_type("top_k", top_k, "a whole number", Integral)
    samples = _dataset(dataset, columns, convert)
    chosen = default_metrics(list(samples), top_k=top_k) if metrics is None else metrics
    plan = EvaluationPlan(chosen, match=match)
    if judge is not None:
        from .judges.runs import judged_plan

        plan = judged_plan(plan, judge, executor, policy)
    evaluator = AueporaEvaluator(
        system, plan, top_k=top_k, executor=executor, policy=policy, max_failures=max_failures, seed=seed
    )
    return evaluator.run(samples, evaluation_id=evaluation_id)


def score(
    dataset: DatasetForms | str | Path,
    outputs: Any = None,
    *,
    metrics: MetricForms | None = None,
    match: str = BY_ID,
    columns: Mapping[str, str] | None = None,
    convert: Convert | None = None,
    name: str = "outputs",
    evaluation_id: str | None = None,
    judge: object = None,
) -> EvaluationRun:
    """Score answers that a system gave before and return the run; no system is called.

    `outputs` are a path, a list of dicts, a DataFrame, or a dict of outputs by sample id. Without them,
    `dataset` must hold the answers too, as files of ragas and DeepEval do. A sample without an answer counts
    as failed. `judge` answers the questions of judged metrics, as in `evaluate`.

    >>> samples = [{"sample_id": "1", "query": "How many?", "reference_answer": "22"}]
    >>> score(samples, {"1": "22"}, metrics="exact_match")["exact_match"].value
    1.0
    """
    of_samples = columns if outputs is None else columns_of_samples(columns)
    samples = _dataset(dataset, of_samples, convert, is_answered=outputs is None)
    if outputs is None and not samples.outputs:
        fix = "Give columns={'answer': NAME}, or pass them as `outputs`."
        raise DataError(samples.name, "there are no answers in it.", fix=fix)
    answers = predictions_of(samples.outputs if outputs is None else outputs, columns)
    ids = [sample.sample_id for sample in samples]
    answers.check_known_samples(set(ids))
    depth = answers.longest or 5
    if metrics is None:
        metrics = default_metrics(list(samples), timed=answers.timed)
    plan = EvaluationPlan(metrics, match=match)
    if judge is not None:
        from .judges.runs import judged_plan

        plan = judged_plan(plan, judge)
    record = RunRecord(samples, plan, name, evaluation_id)
    survey = record.survey
    plan.validate_survey(survey)
    for sample, output in zip(samples, answers.outputs(ids), strict=True):
        record.keep(sample, output)
    run = score_record(record, plan, system_name=name, top_k=depth, seed=0, configuration={})
    if failed := run.failures_in_words():
        warn_user(f"{failed}.")
    return run


def score_rankings(
    qrels: Any, run: Any, *, metrics: str | Sequence[str] = "recall@10,precision@10,mrr,map,ndcg@10"
) -> dict[str, MetricResult]:
    """Score rankings against judgements and return the result of each metric; there are no other data.

    Both are dicts of dicts as pytrec_eval has them, files of TREC, or tables with the columns query_id,
    doc_id and relevance or score. Documents are ordered by score, then by id in descending order. A query
    that the run lacks has no documents, and one that only the run has is left out.

    >>> score_rankings({"1": {"d7": 1}}, {"1": {"d7": 0.2, "d9": 0.5}}, metrics="mrr")["mrr"].value
    0.5
    """
    plan = EvaluationPlan(metrics)
    for metric in plan.metrics:
        if not isinstance(metric, SampleMetric) or set(metric.requires) - {"relevant_docs"}:
            raise ArgumentError(f"{metric.name} needs more than judgements and rankings: use score() for it")
    with rare_collections():
        results = score_in_chunks(plan, _judged_lists(qrels, run), lambda batch, scores: None)
    return {result.name: result for result in results}


def _judged_lists(qrels: Any, run: Any) -> Iterator[Pair]:
    """Yield each judged query with the documents that were retrieved for it."""
    judged, ranked = by_query(qrels, "relevance"), read_run(run)
    for query, grades in judged.items():
        yield judged_sample(query, *grades), ranked.get(query) or ranked_output([])


def compare(
    baseline: Run | Sequence[Run],
    candidate: Run | Sequence[Run],
    *,
    alpha: float = 0.05,
    margin: float | Mapping[str, float] | None = None,
    by: str | Sequence[str] = (),
    seed: int = 0,
) -> RunComparison:
    """Compare two runs of the same dataset, sample by sample, and return the comparison with its verdicts.

    A run is an EvaluationRun or the path of a stored one; a list of runs are repeats of one system. `margin`
    is the loss that does not matter, `by` names labels or metadata fields to compare by.
    """
    check_type("alpha", alpha, "a number between 0 and 1", Real)
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, not {alpha}")
    check_type("margin", margin, "a number, a dict of numbers by metric, or None", Real, Mapping, NoneType)
    runs = (_runs("baseline", baseline), _runs("candidate", candidate))
    fields_to_slice = [by] if isinstance(by, str) else by
    comparison = compare_runs(*runs, alpha=alpha, margin=margin, by=fields_to_slice, seed=seed)
    return RunComparison(**{field.name: getattr(comparison, field.name) for field in fields(comparison)})


def gate(
    run: Run,
    baseline: Run | None = None,
    *,
    min: Mapping[str, Any] | None = None,  # noqa: A002 - as the file of rules has it
    max: Mapping[str, Any] | None = None,  # noqa: A002
    margin: float | Mapping[str, Any] | None = None,
    rules: str | Path | Mapping[str, Any] | None = None,
    seed: int = 0,
) -> GateReport:
    """Pass or fail a run by rules and return the report: `report.outcome`, `print(report)`.

    `min` and `max` are limits by metric, `margin` is the largest acceptable loss against the baseline.
    `rules` are all that a file of rules can have, or its path. With a baseline and no rule about it, no
    metric may be significantly worse.

    >>> samples = [{"sample_id": "1", "query": "How many?", "reference_answer": "22"}]
    >>> run = evaluate(lambda query: "22", samples, metrics="exact_match")
    >>> gate(run, min={"exact_match": 0.8}).outcome.value
    'passed'
    """
    ground = read_rules(rules) if isinstance(rules, str | Path) else rules_of(rules or {})
    named = {"min": min, "max": max, "margin": margin}
    own = rules_of({name: value for name, value in named.items() if value is not None})
    combined = replace(ground, rules=own.over(ground).rules)
    base = None if baseline is None else _run("baseline", baseline)
    return gate_run(_run("run", run), combined, baseline=base, seed=seed)


def load_run(path: str | Path) -> EvaluationRun:
    """Load a stored run: "results/mine", "results/mine.results.json", or an id in the default folder."""
    check_type("path", path, "the path or the id of a stored run", str, Path)
    return EvaluationResultsStorage().load_run(path)


def _runs(argument: str, value: Run | Sequence[Run]) -> EvaluationRun | list[EvaluationRun]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_run(f"{argument}[{place}]", one) for place, one in enumerate(value)]
    return _run(argument, value)


def _run(argument: str, value: object) -> EvaluationRun:
    if isinstance(value, EvaluationRun):
        return value
    if isinstance(value, str | Path):
        return load_run(value)
    raise wrong_type(argument, "a run, the path of a stored run, or a list of these", value)


def _dataset(
    source: Any, columns: Mapping[str, str] | None, convert: Convert | None, *, is_answered: bool = False
) -> EvaluationDataset:
    if isinstance(source, str) and source == "demo":
        from .demo.world import demo_dataset

        return demo_dataset()
    return load_dataset(source, columns=columns, convert=convert, is_answered=is_answered)
