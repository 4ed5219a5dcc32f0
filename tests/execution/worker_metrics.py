"""Metrics that tell where they are scored, or make trouble there: in a module that workers can import."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from auepora_eval.core.metrics_base import SampleMetric
from auepora_eval.core.types import EvaluationSample, SystemOutputs, TargetCategory


@dataclass
class Where(SampleMetric):
    """The process that scores."""

    name: str = "where"
    target = TargetCategory.GENERATION_RELEVANCE
    bounds = (0.0, float("inf"))

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float:
        return float(os.getpid())


@dataclass
class WhereAsked(Where):
    """The same, of a metric that asks a model."""

    name: str = "where_asked"
    asks_a_model = True


@dataclass
class Deadly(SampleMetric):
    """Kills the worker that scores certain samples: each time, or only the first time that a file lets it."""

    home: int  # the process that is spared
    at: tuple[str, ...]
    once: Path | None = None
    name: str = "deadly"
    target = TargetCategory.GENERATION_RELEVANCE

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float:
        if sample.sample_id in self.at and os.getpid() != self.home and self._first_time(sample.sample_id):
            os.kill(os.getpid(), signal.SIGKILL)
        return 1 / (1 + len(sample.sample_id + output.response.text))

    def _first_time(self, name: str) -> bool:
        if self.once is None:
            return True
        try:
            (self.once / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


@dataclass
class OnlyAtHome(SampleMetric):
    """Needs what workers do not have: a support function that a script registered, for example."""

    home: int
    name: str = "only_at_home"
    target = TargetCategory.GENERATION_RELEVANCE

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float:
        if os.getpid() != self.home:
            raise LookupError("there is no support 'mine' here")
        return len(output.response.text) / 100


@dataclass
class Wrong(SampleMetric):
    """Has a bug that shows at one sample."""

    at: str
    name: str = "wrong"
    target = TargetCategory.GENERATION_RELEVANCE

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float:
        return 1 / (sample.sample_id != self.at)


@dataclass
class Unsendable(SampleMetric):
    """Cannot be copied."""

    lock: Any = field(default_factory=threading.Lock)
    name: str = "unsendable"
    target = TargetCategory.GENERATION_RELEVANCE

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float:
        with self.lock:
            return len(output.response.text) / 100
