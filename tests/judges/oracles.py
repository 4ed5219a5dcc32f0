"""Judges that are functions, asked as soon as a metric is computed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

from auepora_eval.core.metrics_base import METRICS, SampleMetric
from auepora_eval.errors import UnknownNameError
from auepora_eval.judges.ask import Asking
from auepora_eval.judges.judge import FunctionJudge
from auepora_eval.judges.metric import JudgedMetric
from auepora_eval.judges.question import Judgement, Question
from auepora_eval.metrics.parse import parse_metric

RUBRIC = Path(__file__).parent / "tone.md"


def judging_by(function: Callable[[Question], object], **options: Any) -> Asking:
    """A function as a judge; a CallError is a failed verdict. `len(asking.asked)` counts the calls."""
    return Asking(FunctionJudge(function, "oracle"), **options)


def any_option(question: Question) -> object:
    """Choose an option by the hash of the texts: the same question has the same answer."""
    if not question.kind.options:
        return Judgement(score=1.0, texts=[question.material["text"]])
    content = "\n".join(f"{key}: {text}" for key, text in sorted(question.material.items()))
    number = crc32(content.encode("utf-8", "surrogatepass"))
    return question.kind.options[number % len(question.kind.options)]


def with_judge(metric: SampleMetric) -> SampleMetric:
    """The metric, ready to be computed if it needs a judge."""
    if isinstance(metric, JudgedMetric) and metric.needs_judge:
        return metric.judged_by(judging_by(any_option))
    return metric


def example(base: str) -> SampleMetric:
    """The metric as one writes it: with a cutoff, a file or a judge where it needs one."""
    if base == "rubric":
        return with_judge(parse_metric(f"rubric[{RUBRIC}]"))
    try:
        return with_judge(parse_metric(base))
    except UnknownNameError:
        return with_judge(parse_metric(f"{base}@3"))


# Forms of metrics that ask a judge, besides those that always do.
JUDGED_FORMS = (
    "judged_faithfulness[soft=true]",
    "judged_faithfulness[claims=llm]",
    "nugget_recall[assign=judge]",
    "claim_f1[check=judge]",
    "claim_hallucination[check=judge,claims=llm]",
)

EVERY_METRIC = [*map(example, METRICS), *(with_judge(parse_metric(name)) for name in JUDGED_FORMS)]
