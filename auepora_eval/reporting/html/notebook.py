"""What runs and tables show in a notebook: a few cards and a table, without a script."""

from __future__ import annotations

from ...core.table import Table
from ...core.types import EvaluationRun
from .page import notebook
from .tables import Measured, cards, data_table, metric_card

MOST_CARDS = 6  # the table has every metric


def run_for_notebook(run: EvaluationRun) -> str:
    """Return a card for the first metric of each target, and the table."""
    first = {result.target.name: result for result in reversed(run.results)}
    kept = [result for result in run.results if first[result.target.name] is result][:MOST_CARDS]
    made = cards(metric_card([Measured(result)]) for result in kept)
    return notebook([made if kept else None, data_table(run.table())])


def table_for_notebook(table: Table) -> str:
    """Return a table of texts."""
    return notebook(data_table(table))
