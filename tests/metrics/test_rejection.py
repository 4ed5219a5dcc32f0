"""Negative rejection: a table of four cells, scikit-learn as the judge, and CLAP NQ from end to end."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (  # type: ignore[import-untyped]
    balanced_accuracy_score,
    f1_score,
    precision_score,
)

import auepora_eval as ae
from auepora_eval.core.types import EvaluationSample, MetricResult
from auepora_eval.decide.gate import gate_run
from auepora_eval.errors import UnknownNameError
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_failure, a_sample, an_output, quick_scores

DATA = Path(__file__).parents[3] / "shared" / "data" / "clapnq"
NO = "I don't know."


def labelled(answerable: bool | None, reference: str | None = "pier") -> EvaluationSample:
    return a_sample(reference=reference, labels={} if answerable is None else {"answerable": answerable})


# Two unanswerable questions, one declined; four answerable ones: right, wrong, declined, without a word;
# the last sample does not say whether it is answerable.
SAMPLES = [labelled(False, None), labelled(False, None), *[labelled(True)] * 4, labelled(None)]
OUTPUTS = [an_output("", answer) for answer in (NO, "pier", "pier", "boat", NO, "", NO)]


@pytest.mark.parametrize(
    ("name", "expected", "samples"),
    [
        pytest.param("rejection_rate", 1 / 2, 2, id="of two unanswerable"),
        pytest.param("over_refusal_rate", 2 / 4, 4, id="of four answerable"),
        pytest.param("answer_rate", 3 / 6, 6, id="of six labelled"),
        pytest.param("abstention_precision", 1 / 3, 6, id="of three declined"),
        pytest.param("abstention_f1", 2 / 5, 6, id="2 / (2 + 2 + 1)"),
        pytest.param("abstention_balanced_accuracy", 1 / 2, 6, id="(1/2 + 2/4) / 2"),
        pytest.param("answered_accuracy", 1 / 2, 2, id="right and wrong"),
        pytest.param("answered_accuracy[token_f1]", 1 / 2, 2, id="by another metric"),
        pytest.param("conditioned_score", 2 / 6, 6, id="declined, and right"),
        pytest.param("conditioned_score[token_f1]", 2 / 6, 6, id="the same, by another metric"),
    ],
)
def test_the_table_of_six(name: str, expected: float, samples: int) -> None:
    result = parse_metric(name).compute(SAMPLES, OUTPUTS)
    assert result.value == pytest.approx(expected)
    assert result.details["num_samples"] == samples
    assert (
        result.scores[-1].reason == "the sample has neither labels.answerable nor the scenario 'unanswerable'"
    )


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
@settings(deadline=None, max_examples=40)
def test_scikit_learn_agrees(decisions: list[tuple[bool, bool]]) -> None:
    unanswerable = [not answerable for answerable, _ in decisions]
    declined = [refused for _, refused in decisions]
    samples = [labelled(answerable) for answerable, _ in decisions]
    outputs = [an_output("", NO if refused else "pier") for refused in declined]

    def value(name: str) -> float:
        return quick_scores(parse_metric(name), samples, outputs)[0]

    nan = math.nan
    assert value("abstention_precision") == pytest.approx(
        precision_score(unanswerable, declined, zero_division=nan), nan_ok=True
    )
    expected_f1 = f1_score(unanswerable, declined, zero_division=nan)
    assert value("abstention_f1") == pytest.approx(expected_f1, nan_ok=True)
    balanced = value("abstention_balanced_accuracy")
    if len(set(unanswerable)) == 2:
        assert balanced == pytest.approx(balanced_accuracy_score(unanswerable, declined))
        halves = value("rejection_rate") + 1 - value("over_refusal_rate")
        assert balanced == pytest.approx(halves / 2)
    else:
        assert math.isnan(balanced)


@pytest.mark.parametrize(
    ("name", "answerable", "bounds"),
    [
        pytest.param("rejection_rate", False, [1 / 3, 2 / 3], id="it could have declined or not"),
        pytest.param("rejection_rate", True, None, id="it plays no part"),
        pytest.param("over_refusal_rate", True, [2 / 5, 3 / 5], id="it could have declined or not "),
        pytest.param("abstention_precision", True, [1 / 4, 1 / 3], id="declined wrongly or answered"),
        pytest.param("abstention_precision", False, [1 / 3, 2 / 4], id="answered or declined rightly"),
        pytest.param("abstention_f1", False, [2 / 6, 4 / 7], id="1 of 3 or 2 of 3 found"),
        pytest.param("abstention_f1", None, None, id="no label, no part"),
        pytest.param("answered_accuracy", True, [1 / 3, 2 / 3], id="wrong or right"),
        pytest.param("answered_accuracy", False, None, id="no answer to be right"),
        pytest.param("conditioned_score", False, [2 / 7, 3 / 7], id="answered or declined"),
        pytest.param("conditioned_score", None, None, id="no label, no part "),
    ],
)
def test_a_failure_bounds_the_value(name: str, answerable: bool | None, bounds: list[float] | None) -> None:
    samples, outputs = [*SAMPLES, labelled(answerable)], [*OUTPUTS, a_failure()]
    details = parse_metric(name).compute(samples, outputs).details
    assert details["bounds_if_failed"] == (bounds and pytest.approx(bounds))
    assert details["num_failed"] == (bounds is not None)


@pytest.mark.parametrize(
    ("name", "concerned"),
    [
        ("rejection_rate", (False,)),
        ("over_refusal_rate", (True,)),
        ("answer_rate", (True, False)),
        ("abstention_f1", (True, False)),
        ("answered_accuracy", (True,)),
        ("conditioned_score", (True, False)),
    ],
)
def test_a_call_that_fails_elsewhere_changes_nothing(name: str, concerned: tuple[bool, ...]) -> None:
    """Ten questions of each kind; in the second run five calls fail on questions of one kind."""
    samples = [
        a_sample(str(n), reference="pier", labels={"answerable": n < 10, "scenario": "base"})
        for n in range(20)
    ]
    outputs = {sample.sample_id: an_output("", NO if n % 3 else "pier") for n, sample in enumerate(samples)}
    for answerable in (True, False):
        failed = {str(n): a_failure() for n in (range(5) if answerable else range(10, 15))}
        first = ae.score(samples, outputs, metrics=name)
        second = ae.score(samples, {**outputs, **failed}, metrics=name)
        row = ae.compare(first, second)[name]
        gated = gate_run(second, {"min": {name: 0.0}, "max_failed": 0.3})  # 5 of 20 calls failed
        if answerable in concerned:
            assert second[name].coverage.failed == 5
        else:
            assert second[name].coverage == first[name].coverage
            assert second[name].interval == first[name].interval
            assert (row.effect.change, row.effect.bounds, row.coverage.unmatched) == (0.0, None, 0)
            assert (row.coverage.failed_candidate, gated.exit_code) == (0, 0)


@pytest.mark.parametrize("labels", [{"answerable": "no"}, {"answerable": True, "scenario": "unanswerable"}])
@pytest.mark.parametrize("name", ["rejection_rate", "answer_rate", "abstention_f1", "right"])
def test_a_label_that_cannot_be_used_is_a_failure(name: str, labels: dict[str, Any]) -> None:
    """It says neither that there is an answer nor that there is none, whatever the system did."""
    sample = a_sample(reference="pier", labels=labels)
    for answer in (NO, "pier"):
        result = parse_metric(name).compute([sample], [an_output("", answer)])
        assert result.coverage.failed == 1
        assert "labels.answerable" in result.scores[0].reason


@pytest.mark.parametrize("base", ["bleu", "mean_latency", "over_refusal_rate"])
def test_a_base_that_cannot_be_mixed_with_0_and_1_is_refused(base: str) -> None:
    for name in ("answered_accuracy", "conditioned_score"):
        with pytest.raises(UnknownNameError, match="the base must"):
            parse_metric(f"{name}[{base}]")


@pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data/clapnq")
@pytest.mark.parametrize(
    ("answer", "values"),
    [
        pytest.param("The north pier.", (0, 0, 1, math.nan, 0, 0.5, 0), id="always answers"),
        pytest.param("Sorry, the passage does not say.", (1, 1, 0, 0.5, 2 / 3, 0.5, 0.5), id="declines"),
    ],
)
def test_clapnq_with_a_system_that_always_does_the_same(answer: str, values: tuple[float, ...]) -> None:
    samples = clapnq()
    outputs = [an_output("a", answer)] * len(samples)
    names = (
        "rejection_rate over_refusal_rate answer_rate abstention_precision abstention_f1"
        " abstention_balanced_accuracy conditioned_score"
    )
    for name, value in zip(names.split(), values, strict=True):
        result: MetricResult = parse_metric(name).compute(samples, outputs)
        assert result.value == pytest.approx(value, nan_ok=True), name
        # The first two are about unanswerable and answerable questions: half of them each.
        assert result.details["num_samples"] == (300 if name in names.split()[:2] else 600)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data/clapnq")
def test_clapnq_with_its_own_answers_is_all_but_perfect() -> None:
    samples = clapnq()
    outputs = [an_output("a", s.reference_answer.text if s.reference_answer else NO) for s in samples]
    result = parse_metric("conditioned_score").compute(samples, outputs)
    assert result.value > 0.99
    assert parse_metric("abstention_balanced_accuracy").compute(samples, outputs).value > 0.99


def clapnq() -> list[EvaluationSample]:
    """600 questions; a reference is the first answer that somebody wrote."""
    samples = []
    for kind in ("answerable", "unanswerable"):
        lines = (DATA / f"clapnq_dev_{kind}.jsonl").read_text(encoding="utf-8").splitlines()
        for row in map(json.loads, lines):
            written = [told["answer"] for told in row["output"] if len(told["answer"]) > 2]
            samples.append(
                a_sample(
                    row["id"],
                    row["input"],
                    reference=written[0] if kind == "answerable" else None,
                    labels={"answerable": kind == "answerable"},
                )
            )
    return samples
