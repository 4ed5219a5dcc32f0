"""The three functions that most users need: evaluate a system, compare two runs, load a stored run.

They only combine what is below: the evaluator, the loader of datasets, the store of runs and the comparison.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from numbers import Integral, Real
from pathlib import Path
from types import NoneType
from typing import Any

from .comparison.compare import Comparison, compare_runs
from .comparison.tables import comparison_table
from .comparison.words import comparison_in_plain_words
from .core.calls.executor import Executor
from .core.calls.policy import CallPolicy
from .core.dataset import DatasetForms, EvaluationDataset, as_dataset
from .core.display import html_text, terminal_line
from .core.plan import EvaluationPlan, MetricForms
from .core.runner import AueporaEvaluator
from .core.table import Table, terminal_width
from .core.types import EvaluationRun
from .errors import check_type, wrong_type
from .io.loader import load_dataset
from .metrics.parse import default_metrics
from .runs.store.storage import EvaluationResultsStorage

Run = EvaluationRun | str | Path
_DATASET_FORMS = "a dataset, a list of samples or dicts, a DataFrame, or a path"
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

    def _repr_html_(self) -> str:
        words = "".join(f"<p>{html_text(sentence)}</p>" for sentence in comparison_in_plain_words(self))
        return words + self.table().to_html()

    def table(self) -> Table:
        """Return each metric's values, difference, interval, p-value and verdict."""
        left_out = [f"{name} is not compared: {reason}" for name, reason in self.not_compared.items()]
        notes = [f"Note: {text}." for text in (*self.mismatches, *self.notes, *left_out)]
        return replace(comparison_table(self), notes=notes)


def evaluate(
    system: Any,
    dataset: DatasetForms | str | Path,
    *,
    metrics: MetricForms | None = None,
    top_k: int = 5,
    evaluation_id: str | None = None,
    executor: Executor | None = None,
    policy: CallPolicy | None = None,
    max_failures: int | None = None,
    seed: int = 0,
) -> EvaluationRun:
    """Run a system on a dataset and return the run with its results.

    `system` is anything that `as_system` accepts, such as a function of the query. `dataset` is a dataset, a
    list of samples or dicts, a DataFrame, or the path of a file. `metrics` are names or objects; without it
    the standard metrics for what the samples have are used. `executor` makes calls in parallel, `policy` sets
    timeouts, retries and budgets; a call that fails is recorded and counted.

    >>> samples = [{"sample_id": "1", "query": "How many?", "reference_answer": "22"}]
    >>> evaluate(lambda query: "22", samples, metrics="exact_match")["exact_match"].value
    1.0
    """
    # The evaluator checks top_k too, but the default metrics need it before.
    check_type("top_k", top_k, "a whole number", Integral)
    samples: EvaluationDataset
    if isinstance(dataset, str | Path):
        samples = load_dataset(dataset)
    else:
        samples = as_dataset(dataset, accepted=_DATASET_FORMS)
    plan = EvaluationPlan(default_metrics(list(samples), top_k=top_k) if metrics is None else metrics)
    evaluator = AueporaEvaluator(
        system, plan, top_k=top_k, executor=executor, policy=policy, max_failures=max_failures, seed=seed
    )
    return evaluator.run(samples, evaluation_id=evaluation_id)


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
