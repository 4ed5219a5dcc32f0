"""`metric`: a class or a function becomes a metric with a name that parses back."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from auepora_eval.core.metrics_base import METRICS, SampleMetric, metric, parse_metric, parse_metrics
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.types import EvaluationSample, SystemOutputs, TargetCategory
from auepora_eval.errors import UnknownNameError
from tests.builders import a_sample, an_output


@pytest.fixture(autouse=True)
def _registered_here() -> Iterator[None]:
    before = set(METRICS)
    yield
    for name in METRICS._things.keys() - before:
        del METRICS._things[name]


def brevity() -> Callable[..., SampleMetric]:
    @metric("brevity@{words}", target="generation_relevance")
    def brevity(sample: EvaluationSample, output: SystemOutputs, *, words: int = 10) -> float:
        """1 if the answer has at most `words` words, else 0."""
        return float(len(output.response.text.split()) <= words)

    return brevity


def test_a_function_is_a_metric() -> None:
    made = brevity()
    result = made(words=2).compute([a_sample()] * 2, [an_output(answer="a b"), an_output(answer="a b c")])
    assert result.name == "brevity@2"
    assert result.value == 0.5
    assert result.target is made().target is TargetCategory.GENERATION_RELEVANCE
    assert made.__doc__ == "1 if the answer has at most `words` words, else 0."
    assert made().name == "brevity@10"


def test_function_metric_by_name_in_a_plan() -> None:
    made = brevity()
    assert parse_metric("brevity@12") == made(words=12)
    assert [one.name for one in EvaluationPlan(parse_metrics("mrr,brevity@3")).metrics] == [
        "mrr",
        "brevity@3",
    ]


def test_a_class_with_optional_parts_of_its_name() -> None:
    @metric("near@{k?}[{kind?},strict={strict?},share={share?:g}]", ranges={"share": "(0, 1]"})
    class Near(SampleMetric):
        """A metric with a field of each kind."""

        k: int | None = None
        kind: str = "word"
        strict: bool = False
        share: float = 0.5
        target = TargetCategory.DIVERSITY

        def score(self, sample: EvaluationSample, output: SystemOutputs) -> float:
            return self.share

    every = Near(3, "line", True, 1.0)
    assert Near().name == "near"
    assert every.name == "near@3[line,strict=true,share=1]"
    assert parse_metric(every.name) == every
    assert hash(parse_metric(every.name)) == hash(every)
    assert Near.name_template.usage(Near) == "near[@k][kind][strict][share]"
    for wrong in ("near@0", "near[share=0]", "near[share=1.5]", "near[share=nan]", "near@1.5"):
        with pytest.raises(UnknownNameError):
            parse_metric(wrong)


def test_metric_is_immutable() -> None:
    recall = parse_metric("recall@5")
    with pytest.raises(FrozenInstanceError):
        recall.k = 3  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(recall)) == recall  # noqa: S301
    assert recall.unmeasured("nothing was retrieved").not_measured == "nothing was retrieved"


def test_duplicate_name_is_an_error() -> None:
    for template in ("recall", "bleu"):
        with pytest.raises(ValueError, match="already"):
            metric(template, target="latency")(lambda sample, output: 0.0)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("absent.py", None, "there is no file 'absent.py'"),
        ("json.py", "", "the module 'json' exists already"),
        ("broken_metrics.py", "1 / 0", "ZeroDivisionError"),
        ("empty_metrics.py", "", "has no metric 'x'. It has none"),
    ],
)
def test_a_file_without_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str | None, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / file).write_text(text, encoding="utf-8")
    with pytest.raises(UnknownNameError, match=message):
        parse_metric(f"{file}:x")


@pytest.mark.usefixtures("own_metrics")
def test_options_need_no_name() -> None:
    @metric(higher_is_better=False, bounds=(0, 9))
    def letters_too_many(sample: EvaluationSample, output: SystemOutputs) -> float:
        return 3.0

    made = letters_too_many()
    assert (made.name, made.higher_is_better, made.bounds) == ("letters_too_many", False, (0, 9))
