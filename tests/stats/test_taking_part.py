"""Metrics in which only some samples take part: the others make no interval and no margin narrower."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

import auepora_eval as ae
from auepora_eval.cli.main import main
from auepora_eval.comparison.compare import MetricComparison, compare_runs
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.types import EvaluationRun, EvaluationSample, SystemOutputs
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.stats.intervals import t_quantile
from tests.builders import a_dataset, a_sample, an_output

NO, YES = "I don't know.", "It is at the pier."
Cases = list[tuple[bool, bool]]  # is there something to detect, was it detected
FEW: Cases = [(True, True)] * 12 + [(True, False)] * 3 + [(False, True)] * 2
OTHERS: Cases = [(False, False)] * 400


def _labelled(cases: Cases) -> tuple[list[EvaluationSample], list[SystemOutputs]]:
    names = ("accurate", "hallucination")
    samples = [
        a_sample(
            f"s{n}", f"q {n}", labels={"ground_truth_label": names[is_there], "answerable": not is_there}
        )
        for n, (is_there, _) in enumerate(cases)
    ]
    outputs = [
        an_output("", NO if found else YES, extra={"predicted_label": names[found]}) for _, found in cases
    ]
    return samples, outputs


def _interval(name: str, cases: Cases) -> tuple[float, float]:
    interval = parse_metric(name).compute(*_labelled(cases)).interval
    assert interval is not None
    return interval


@pytest.mark.parametrize(
    "name", ["label_f1", "label_precision", "label_recall", "abstention_f1", "abstention_precision"]
)
def test_samples_that_play_no_part_do_not_narrow_an_interval(name: str) -> None:
    assert _interval(name, FEW + OTHERS) == pytest.approx(_interval(name, FEW))


def test_a_perfect_f1_is_as_sure_as_the_recall_of_the_same_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """17 contradictions of 317 answers, all found: [0.8358, 1] for the three of them."""
    labels = ["contradiction"] * 17 + ["accurate"] * 300
    data, said = (tmp_path / name for name in ("data.jsonl", "said.jsonl"))
    records = (
        {"id": f"a{n}", "question": "?", "ground_truth_label": label} for n, label in enumerate(labels)
    )
    predictions = ({"id": f"a{n}", "predicted_label": label} for n, label in enumerate(labels))
    for path, lines in ((data, records), (said, predictions)):
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert main(["labels", "score", "--dataset", str(data), "--predictions", str(said), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["intervals"]["contradiction"]
    assert found == {
        kind: pytest.approx([0.8358, 1], abs=1e-4) for kind in ("precision", "recall", "f1_score")
    }


def _class(right: int, n: int) -> tuple[float, float]:
    """The middle and the squared error of a share, with one right and one wrong beside it."""
    middle = (right + 1) / (n + 2)
    return middle, ((right + 1) * (1 - middle) ** 2 + (n - right + 1) * middle**2) / ((n + 1) * (n + 2))


@pytest.mark.parametrize("name", ["label_balanced_accuracy", "abstention_balanced_accuracy"])
def test_balanced_accuracy_adds_up_the_errors_of_its_classes(name: str) -> None:
    """9 of 10 detected, 199 of 200 not detected: each class with its own two imaginary samples."""
    cases = [(True, n < 9) for n in range(10)] + [(False, n < 1) for n in range(200)]
    (middle_a, a), (middle_b, b) = _class(9, 10), _class(199, 200)
    freedom = (a + b) ** 2 / (a**2 / 9 + b**2 / 199)
    half = t_quantile(freedom, 0.975) * math.sqrt(a + b) / 2
    middle = (middle_a + middle_b) / 2
    assert _interval(name, cases) == pytest.approx((middle - half, min(1.0, middle + half)))


def test_macro_f1_is_no_surer_than_its_rarest_label_allows() -> None:
    """Five hallucinations of 300, all found: the F1 of this label alone is in an interval of [0.55, 1]."""
    low, high = _interval("label_macro_f1[supported=true]", [(True, True)] * 5 + [(False, False)] * 295)
    rare, _ = _interval("label_f1", [(True, True)] * 5)
    assert low == pytest.approx((rare + 1) / 2, abs=0.05)
    assert high == 1


def _run(name: str, cases: Cases, metrics: Sequence[str]) -> EvaluationRun:
    samples, outputs = _labelled(cases)
    by_query = {sample.query: output for sample, output in zip(samples, outputs, strict=True)}

    def system(query: str) -> SystemOutputs:
        return by_query[query]

    system.__name__ = name
    plan = EvaluationPlan([parse_metric(one) for one in metrics])
    return AueporaEvaluator(system, plan).run(a_dataset(*samples))


def _change(name: str, before: Cases, after: Cases) -> MetricComparison:
    comparison = compare_runs(_run("old", before, [name]), _run("new", after, [name]), margin=0.1)
    return comparison[name]


@pytest.mark.parametrize("name", ["abstention_f1", "label_f1", "label_recall"])
def test_samples_that_play_no_part_narrow_neither_a_change_nor_its_margin(name: str) -> None:
    worse: Cases = [(True, True)] * 9 + [(True, False)] * 6 + [(False, True)] * 2
    few = _change(name, FEW, worse)
    many = _change(name, FEW + OTHERS, worse + OTHERS)
    assert many.effect.interval == pytest.approx(few.effect.interval)
    assert many.margin.limit == pytest.approx(few.margin.limit)
    assert few.effect.interval is not None
    assert few.effect.interval[0] < -0.25 < 0 <= few.effect.interval[1]


def test_a_loss_in_the_rare_class_is_not_ruled_out_by_the_common_one() -> None:
    """15 unanswerable questions of 300 and no decision that differs: a loss may hide there."""
    cases = [(True, True)] * 15 + [(False, False)] * 285
    change = _change("abstention_balanced_accuracy", cases, cases)
    assert change.verdict is ae.Verdict.SAME
    assert change.margin.limit is not None
    assert change.margin.limit < -0.05
