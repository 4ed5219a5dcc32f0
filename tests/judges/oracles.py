"""Judges that are functions, asked as soon as a metric is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from auepora_eval.core.metrics_base import METRICS, SampleMetric
from auepora_eval.errors import UnknownNameError
from auepora_eval.judges.ask import Asking
from auepora_eval.judges.judge import FunctionJudge, Judge
from auepora_eval.judges.metric import JudgedMetric
from auepora_eval.judges.question import Judgement, Kind, Part, Question, numbered_texts, with_parts
from auepora_eval.metrics.parse import parse_metric

RUBRIC = Path(__file__).parent / "tone.md"


def judging_by(function: Callable[[Question], object], **options: Any) -> Asking:
    """A function as a judge; a CallError is a failed verdict. `len(asking.asked)` counts the calls."""
    return Asking(FunctionJudge(function, "oracle"), **options)


class AnyOption(Judge):
    """Chooses an option by the hash of the texts: the same question has the same answer."""

    def identity(self, kind: Kind) -> str:
        return f"{kind.name}/any"

    def judge(self, question: Question) -> Judgement:
        kind = question.kind
        if not kind.options:
            return Judgement(score=1.0, texts=[question.material["text"]])
        if not kind.each:
            option = _any_of(kind.options, *question.material.values())
            return Judgement(score=kind.scores[option], label=option)
        passages = numbered_texts(question, "passage")
        options = [_any_of(kind.options, text, *passages) for text in numbered_texts(question, kind.each)]
        parts = [Part(option, kind.scores[option], [1] if passages else []) for option in options]
        return with_parts(Judgement(), parts, kind.each)


def _any_of(options: Sequence[str], *texts: str) -> str:
    number = crc32("\n".join(texts).encode("utf-8", "surrogatepass"))
    return options[number % len(options)]


def with_judge(metric: SampleMetric) -> SampleMetric:
    """The metric, ready to be computed if it needs a judge."""
    if isinstance(metric, JudgedMetric) and metric.needs_judge:
        return metric.judged_by(Asking(AnyOption()))
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
    "judged_faithfulness[ask=claim]",
    "judged_faithfulness[claims=llm]",
    "nugget_recall[assign=judge]",
    "claim_f1[check=judge]",
    "claim_hallucination[check=judge,claims=llm]",
)

EVERY_METRIC = [*map(example, METRICS), *(with_judge(parse_metric(name)) for name in JUDGED_FORMS)]
