"""Answers as a whole, nuggets, and rubrics: tables by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.core.types import EvaluationSample, SampleScore
from auepora_eval.errors import CallError, DataError, UnknownNameError
from auepora_eval.judges.metric import JudgedMetric
from auepora_eval.judges.metrics.rubric import read_rubric
from auepora_eval.judges.question import Question
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_sample, an_output
from tests.judges.oracles import RUBRIC, judging_by


def metric_by(function: Callable[[Question], object], name: str) -> JudgedMetric:
    metric = parse_metric(name)
    assert isinstance(metric, JudgedMetric)
    return metric.judged_by(judging_by(function))


def score_of(metric: JudgedMetric, answer: str, **sample: Any) -> SampleScore:
    return metric.compute([a_sample(**sample)], [an_output("a", answer)]).scores[0]


def down(question: Question) -> object:
    raise CallError("the server is down", kind="http_5xx")


# Does the answer address the question?


@pytest.mark.parametrize(("said", "value"), [("yes", 1.0), ("partly", 0.5), ("no", 0.0), (0.7, 0.7)])
def test_answer_relevance(said: object, value: float) -> None:
    def judge(question: Question) -> object:
        assert dict(question.material) == {"question": "Where is it?", "answer": "At sea."}
        return said

    metric = metric_by(judge, "judged_answer_relevance")
    assert score_of(metric, "At sea.", query="Where is it?").value == value


# Does it say what the reference says?


@pytest.mark.parametrize(("said", "value"), [("same", 1.0), ("incomplete", 0.5), ("contradicts", 0.0)])
def test_correctness(said: str, value: float) -> None:
    def judge(question: Question) -> str:
        assert dict(question.material) == {
            "question": "Where is it?",
            "reference": "at sea",
            "answer": "At sea.",
        }
        return said

    metric = metric_by(judge, "judged_correctness")
    assert score_of(metric, "At sea.", query="Where is it?", reference="at sea").value == value


@pytest.mark.parametrize("answer", ["I don't know.", "Ask the harbour master."])
@pytest.mark.parametrize(
    ("sample", "value"),
    [
        (a_sample(reference="at sea"), 0.0),
        (a_sample(reference="at sea", labels={"answerable": True}), 0.0),
        (a_sample(reference="at sea", labels={"answerable": False}), None),
        (a_sample(reference="at sea", labels={"scenario": "unanswerable"}), None),
        (a_sample(reference="The documents do not say."), None),
    ],
)
def test_a_refusal_is_wrong_if_there_is_an_answer(
    answer: str, sample: EvaluationSample, value: float | None
) -> None:
    """By its words or by the judge."""
    metric = metric_by(lambda _: "refusal", "judged_correctness")
    result = metric.compute([sample], [an_output("", answer)])
    assert (result.scores[0].value, result.scores[0].reason) == (value, "the answer declines")
    assert result.details["num_declined"] == 1


def test_declining_nearly_everything_is_not_correct() -> None:
    """One of 23 questions is answered, and rightly."""
    samples = [a_sample(str(n), reference="at sea") for n in range(23)]
    outputs = [an_output("", "At sea." if n == 0 else "I don't know.") for n in range(23)]
    result = metric_by(lambda _: "same", "judged_correctness").compute(samples, outputs)
    assert result.value == pytest.approx(1 / 23)
    assert result.coverage.scored == 23
    assert result.notes == [
        "22 of 23 answers decline a question that has an answer: metrics of correctness count them as wrong.",
        "judged_correctness: uncalibrated judge oracle",
    ]


def test_an_empty_answer_is_wrong_without_a_call() -> None:
    metric = metric_by(down, "judged_correctness")
    assert score_of(metric, " ", reference="at sea").value == 0.0


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ({"at sea": "contradicts", "on the water": "same"}, 1.0),
        ({"at sea": "incomplete", "on the water": "contradicts"}, 0.5),
        ({"at sea": None, "on the water": "same"}, None),
        ({"at sea": None, "on the water": None}, None),
    ],
)
def test_the_best_of_several_references_counts(said: dict[str, str | None], value: float | None) -> None:
    def judge(question: Question) -> object:
        return said[question.material["reference"]] or down(question)

    score = score_of(
        metric_by(judge, "judged_correctness"), "Afloat.", reference="at sea", alternatives=["on the water"]
    )
    assert (score.value, score.failed) == (value, value is None)


# Nuggets

NUGGETS = [
    {"text": "north pier", "importance": "vital", "assignment": "support"},
    {"text": "red hull", "importance": "okay"},
    {"text": "built 1911", "importance": "vital"},
    {"text": "two masts", "importance": "okay"},
]


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ("", (1 + 0.5 + 0 + 1) / 4),
        ("strict=true,", 2 / 4),
        ("vital=true,", 1 / 2),
    ],
)
def test_the_judge_assigns_the_nuggets_of_the_dataset(options: str, value: float) -> None:
    said = {"north pier": "full", "red hull": "partial", "built 1911": "none", "two masts": "full"}

    def judge(question: Question) -> str:
        assert set(question.material) == {"question", "answer", "information"}
        return said[question.material["information"]]

    metric = metric_by(judge, f"nugget_recall[{options}assign=judge]")
    assert metric.name == f"nugget_recall[{options}assign=judge]"
    assert score_of(metric, "She has two masts.", labels={"nuggets": NUGGETS}).value == value
    assert str(metric.signature()["judge"]).startswith("['nuggets/function:oracle")


def test_nuggets_refusals_empty_answers_and_failures() -> None:
    name, sample = "nugget_recall[assign=judge]", {"labels": {"nuggets": NUGGETS}}
    refused = score_of(metric_by(down, name), "I don't know.", **sample)
    assert (refused.value, refused.reason) == (0.0, "the answer declines")
    assert score_of(metric_by(down, name), "", **sample).value == 0.0
    failed = score_of(metric_by(down, name), "At sea.", **sample)
    assert (failed.value, failed.failed) == (None, True)
    assert failed.reason == "1 of 1 verdicts failed, the first with CallError: the server is down"
    with pytest.raises(UnknownNameError, match="assign=judge"):
        parse_metric("nugget_recall[assign=people]")


# Rubrics


@pytest.mark.parametrize(("said", "value"), [("0", 0.0), ("1", 0.5), ("2", 1.0), (0.25, 0.25)])
def test_a_rubric_scales_its_grades(said: object, value: float) -> None:
    metric = metric_by(lambda _: said, f"rubric[{RUBRIC}]")
    assert score_of(metric, "Gladly: at sea.").value == value


def test_the_judge_reads_the_rubric_and_is_shown_what_it_names(tmp_path: Path) -> None:
    path = tmp_path / "complete.md"
    path.write_text(
        "# Complete\n\nSees: reference, passages\n\n- 5: everything\n- 1: nothing\n", encoding="utf-8"
    )
    seen: list[Question] = []

    def judge(question: Question) -> str:
        seen.append(question)
        return "5"

    metric = metric_by(judge, f"rubric[{path}]")
    assert score_of(metric, "At sea.", query="Where?", reference="at sea").value == 1.0
    assert dict(seen[0].material) == {
        "question": "Where?",
        "answer": "At sea.",
        "reference": "at sea",
        "passages": "text of a",
    }
    assert "- 5: everything\n- 1: nothing" in seen[0].kind.prompt.system
    assert seen[0].kind.options == ("1", "5")
    messages = seen[0].kind.prompt.filled(fence="=", material="{}", reply="Choose.")
    assert "{{" not in messages[0]["content"] + messages[1]["content"]
    assert score_of(metric, "At sea.").reason == "the sample has no reference_answer"


def test_the_hash_of_a_rubric_is_its_version(tmp_path: Path) -> None:
    path = tmp_path / "tone.md"
    signatures, kinds = [], []
    for grade in ("rude", "very rude"):
        path.write_text(f"# Tone\n- 1: polite\n- 0: {grade}\n", encoding="utf-8")
        metric = metric_by(lambda _: "1", f"rubric[{path}]")
        signatures.append(metric.signature()["judge"])
        kinds.append(metric.question_kinds()[0])
    assert signatures[0] != signatures[1]
    assert kinds[0].name != kinds[1].name
    assert kinds[0].prompt.sha256 != kinds[1].prompt.sha256


def test_stored_results_are_read_without_the_file() -> None:
    metric = parse_metric("rubric[gone.md]")
    assert (metric.name, metric.bounds) == ("rubric[gone.md]", (0.0, 1.0))
    with pytest.raises(DataError, match=r"gone.md: the rubric cannot be read: No such file"):
        metric.ready()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# Tone\nBe kind.", "at least two grades, each once"),
        ("- 1: a\n- 1: b", "at least two grades, each once"),
        ("- 1: a\n- 0: b {{material}}", "no {{"),
        ("Sees: gold\n- 1: a\n- 0: b", "a judge can see question, answer, reference, passages; not 'gold'"),
        ("- 1: a\n- 0: b" + " " * 100_000, "more than 100,000 characters"),
    ],
)
def test_a_rubric_that_cannot_be_used_is_an_error(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.md"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_rubric(path)
