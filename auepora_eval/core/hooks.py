"""What a run can do only by packages above this one; `auepora_eval/__init__` says how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# By the methods of `EvaluationRun`: save(run, folder, force), to_html(run, path, force), view(arguments).
RUN_ACTIONS: dict[str, Callable[..., Any]] = {}
