"""What the earlier sessions of a run spent, by its journal: a budget is the run's, not the session's."""

from __future__ import annotations

from pathlib import Path

from ..core.limits import attempts_of, cost_of
from ..core.policy import CallPolicy
from ..core.resources import ApiUsage
from ..io.records import read_prediction
from .journal import JOURNAL, run_key
from .journal_lines import Damage, good_records, opened_journal


def spent_before(folder: Path, policy: CallPolicy) -> dict[str, float]:
    """Calls, tokens and US dollars by the names of the budgets; answers from a cache cost nothing.

    Every output counts, also one that was replaced when its sample was asked again.
    """
    calls, usage = 0, ApiUsage()
    if not (folder / JOURNAL).exists():
        return {}
    key = run_key(folder)
    with opened_journal(folder / JOURNAL) as file:
        for offset, record in good_records(file, key, Damage()):
            if record.get("type") != "output":
                continue
            output = read_prediction(record["output"], f"{JOURNAL}: byte {offset}")[1]
            if "cached" not in output.extra:
                calls += attempts_of(output)
                usage.add(output)
    tokens = usage.sums["total_tokens"]
    return {"max_calls": calls, "max_tokens": tokens, "max_cost": cost_of(usage, policy)}
