"""What core can do only by packages above it; `auepora_eval/__init__` says which they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# By the methods of `EvaluationRun`: save(run, folder, force), to_html(run, path, force), view(arguments).
RUN_ACTIONS: dict[str, Callable[..., Any]] = {}
METRIC_MODULES: list[str] = []  # that register metrics, in the order in which a name is looked for
