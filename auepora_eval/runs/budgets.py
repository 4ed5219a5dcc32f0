"""Budgets are a run's, not a session's: what was spent before counts, until another number is given."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.policy import CallPolicy
from .spending import spent_before

# What ends a run when it is spent: the setting's name, and the policy's.
BUDGETS = {"budget_calls": "max_calls", "budget_tokens": "max_tokens", "budget_cost": "max_cost"}


def first_budgets(policy: CallPolicy | None, configuration: Mapping[str, Any]) -> dict[str, Any]:
    """What the header of a new run notes of its budgets, where the configuration does not tell them."""
    return {
        name: {"limit": limit, "after": 0}
        for name, limit in _limits(policy).items()
        if configuration.get(name) != limit
    }


def counted_and_given(
    folder: Path, header: Mapping[str, Any], policy: CallPolicy | None
) -> tuple[dict[str, float], dict[str, Any]]:
    """What was spent of the budgets that a run has, by the policy's names; and the budgets new to it.

    A budget is new by its number: it counts from here, with what was spent before it. The number that the run
    has already is the same budget, however often it is given.
    """
    limits = _limits(policy)
    if policy is None or not limits:
        return {}, {}
    spent, before = spent_before(folder, policy), budgets_of(header)
    counted, given = {}, {}
    for name, limit in limits.items():
        amount = spent.get(BUDGETS[name], 0)
        known, after = before.get(name, (None, 0))
        if known == limit:
            counted[BUDGETS[name]] = max(0, amount - after)
        else:
            given[name] = {"limit": limit, "after": amount}
    return counted, given


def budgets_of(header: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """The budgets of a run by their names: the limit, and what was spent before it counts."""
    configuration, later = header.get("configuration"), header.get("budgets")
    found: dict[str, tuple[float, float]] = {}
    for name in BUDGETS:
        first = configuration.get(name) if isinstance(configuration, Mapping) else None
        if isinstance(first, int | float):
            found[name] = (first, 0)
        told = later.get(name) if isinstance(later, Mapping) else None
        if isinstance(told, Mapping):
            limit, after = told.get("limit"), told.get("after")
            if isinstance(limit, int | float) and isinstance(after, int | float):
                found[name] = (limit, after)
    return found


def _limits(policy: CallPolicy | None) -> dict[str, float]:
    told = {name: getattr(policy, limit, None) for name, limit in BUDGETS.items()}
    return {name: limit for name, limit in told.items() if limit is not None}
