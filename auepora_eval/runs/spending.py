"""What the earlier sessions of a run spent, by its journal: a budget is the run's, not the session's."""

from __future__ import annotations

from pathlib import Path

from ..core.call_records import attempts_of, is_from_cache
from ..core.policy import CallPolicy
from ..core.spent import Spent
from ..io.records import read_prediction
from .journal import JOURNAL, run_key
from .journal_lines import Damage, good_records, opened_journal


def spent_before(folder: Path, policy: CallPolicy) -> dict[str, float]:
    """Calls, tokens and US dollars by the names of the budgets; answers from a cache cost nothing.

    Every output counts, also one that was replaced when its sample was asked again, and every warm-up.
    """
    spent = Spent()
    if not (folder / JOURNAL).exists():
        return {}
    key = run_key(folder)
    with opened_journal(folder / JOURNAL) as file:
        for offset, record in good_records(file, key, Damage()):
            if record.get("type") == "warm_up":
                spent.add_sums(record)
            if record.get("type") != "output":
                continue
            output = read_prediction(record["output"], f"{JOURNAL}: byte {offset}")[1]
            if not is_from_cache(output):
                spent.calls += attempts_of(output)
                spent.add(output, policy)
    return {"max_calls": spent.calls, "max_tokens": spent.tokens, "max_cost": spent.cost(policy)}
