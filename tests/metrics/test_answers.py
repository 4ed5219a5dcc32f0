"""Exact match, token overlap and required answers: by hand, then SQuAD's predictions and RGB's answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auepora_eval.core.scores import Batch
from auepora_eval.errors import UnknownNameError
from auepora_eval.metrics.generation_text import AnswerShare, ContainsAnswer, ExactMatch, TokenF1
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_sample, an_output

DATA = Path(__file__).parents[3] / "shared" / "data"


def value(metric: Any, answer: str, reference: str, *alternatives: str) -> float:
    sample = a_sample(reference=reference, alternatives=list(alternatives))
    result: float = metric.compute([sample], [an_output(answer=answer)]).value
    return result


@pytest.mark.parametrize(
    ("answer", "reference", "exact", "precision", "recall", "f1"),
    [
        pytest.param("The cat.", "cat", 1, 1, 1, 1, id="case, punctuation and articles do not count"),
        pytest.param("a cat sat", "the cat ran", 0, 0.5, 0.5, 0.5, id="one word of two shared"),
        pytest.param("cat cat", "cat", 0, 0.5, 1, 2 / 3, id="a repeat counts against precision"),
        pytest.param("cat", "cat dog fox", 0, 1, 1 / 3, 0.5, id="what is left out counts against recall"),
        pytest.param("", "", 1, 1, 1, 1, id="both empty"),
        pytest.param("", "cat", 0, 0, 0, 0, id="no answer"),
        pytest.param("the", "a", 1, 1, 1, 1, id="nothing left of either"),
        pytest.param("dog", "cat", 0, 0, 0, 0, id="nothing shared"),
        pytest.param("a\x00b", "b", 0, 0, 0, 0, id="NUL is a character like any other"),
    ],
)
def test_token_metrics(
    answer: str, reference: str, exact: float, precision: float, recall: float, f1: float
) -> None:
    assert value(ExactMatch(), answer, reference) == exact
    for name, expected in (("token_precision", precision), ("token_recall", recall), ("token_f1", f1)):
        assert value(parse_metric(name), answer, reference) == pytest.approx(expected)


def test_the_best_of_several_references_counts() -> None:
    assert value(ExactMatch(), "42 days", "six weeks", "42 days") == 1.0
    assert value(TokenF1(), "42 long days", "six weeks", "42 days") == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("pred_v1_bert_ensemble", (86.2062, 92.1956)), ("pred_v1_logreg", (40.1419, 50.9815))],
)
@pytest.mark.skipif(not (DATA / "squad").exists(), reason="no SQuAD predictions beside the repository")
def test_squad_predictions_score_as_published(name: str, expected: tuple[float, float]) -> None:
    # The values that SQuAD's own script prints for these predictions of the v1.1 dev set.
    predictions = json.loads((DATA / "squad" / f"{name}.json").read_text(encoding="utf-8"))
    samples, outputs = [], []
    for line in (DATA / "squad" / "squad_v1_dev_qa.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        first, *others = row["answers"]
        samples.append(a_sample(row["id"], row["question"], reference=first, alternatives=others))
        outputs.append(an_output(answer=predictions.get(row["id"], "")))
    batch = Batch(samples, outputs)
    found = [100 * float(np.mean(metric.score_batch(batch).values)) for metric in (ExactMatch(), TokenF1())]
    assert tuple(round(number, 4) for number in found) == expected


def required(
    answer: str, wanted: Any, *, structured: bool = True, rule: str = "words"
) -> tuple[float | None, float | None]:
    sample = a_sample(reference="unused")
    assert sample.reference_answer is not None
    if structured:
        sample.reference_answer.structured = {"required": wanted}
    else:
        sample.reference_answer.metadata["required"] = wanted
    outputs = [an_output(answer=answer)]
    contains, share = (
        metric.compute([sample], outputs).scores[0] for metric in (ContainsAnswer(rule), AnswerShare())
    )
    return contains.value, share.value


@pytest.mark.parametrize(
    ("answer", "wanted", "contains", "share"),
    [
        pytest.param("It was in  PARIS, in May.", ["Paris", "May"], 1, 1, id="all"),
        pytest.param("It was in Paris.", ["Paris", "May"], 0, 0.5, id="one of two"),
        pytest.param("It was in Paree.", [["Paris", "Paree"], "May"], 0, 0.5, id="alternatives"),
        pytest.param("New\n York", ["new york"], 1, 1, id="spaces are folded"),
        pytest.param("在 2022 年 2月4日", ["2022年2月4日"], 1, 1, id="Chinese: spaces do not count"),
        pytest.param("他在New York 工作", ["New York"], 1, 1, id="Latin among Chinese"),
        pytest.param("newyork", ["new york"], 0, 0, id="in English they count"),
        pytest.param("", ["Paris"], 0, 0, id="no answer"),
        pytest.param("in 1911", "1911", 1, 1, id="a text for a list"),
        pytest.param("in 1911", "19", 0, 0, id="whole numbers"),
        pytest.param("I know that you can.", ["No"], 0, 0, id="whole words"),
        pytest.param("No, you cannot.", ["No"], 1, 1, id="a word before a comma"),
        pytest.param("There are 120 of them.", ["2"], 0, 0, id="a digit of a number"),
        pytest.param("It is 3.2 m, at 7:12, for 1,200 crowns.", ["2"], 0, 0, id="a part of a number"),
        pytest.param("It costs 1200 crowns.", ["1,200"], 1, 1, id="digits in groups"),
        pytest.param("It was 5 degrees.", ["-5"], 0, 0, id="the sign of a number counts"),
        pytest.param("It was −5 °C.", ["5"], 0, 0, id="in the answer too"),
        pytest.param("It was minus 5 degrees.", ["-5"], 1, 1, id="a sign in words"),
        pytest.param("the years 1911-1944", ["1944"], 1, 1, id="a hyphen between numbers is no sign"),
        pytest.param("At noon.", ["at noon"], 1, 1, id="a full stop in the answer"),
        pytest.param("It closes at noon", ["At noon."], 1, 1, id="a full stop in the reference"),
        pytest.param("by the North Pier", ["“North-Pier”"], 1, 1, id="quotes and hyphens"),
        pytest.param("near Gull Stack", ["the Gull Stack"], 1, 1, id="a first article"),
        pytest.param("grade A", ["A"], 1, 1, id="an article alone is an answer"),
        pytest.param("in the US", ["U.S."], 1, 1, id="an abbreviation"),
        pytest.param("в интернете", ["нет"], 0, 0, id="Cyrillic: whole words"),
        pytest.param("서울은 큽니다", ["서울"], 1, 1, id="Korean: particles follow without a space"),
        pytest.param("ฉันอยู่กรุงเทพมหานคร", ["กรุงเทพ"], 1, 1, id="Thai: no spaces"),
        pytest.param("东京塔", ["东京"], 1, 1, id="Chinese: by characters"),
        pytest.param("13 berths.", ["13 berths [1]."], 1, 1, id="a citation mark in the reference"),
        pytest.param("13 [2] berths [1, 3]", ["13 berths"], 1, 1, id="citation marks in the answer"),
        pytest.param("the sign is +", ["+"], 1, 1, id="no words at all"),
    ],
)
def test_required_answers(answer: str, wanted: Any, contains: float, share: float) -> None:
    assert required(answer, wanted) == (contains, share)
    assert required(answer, wanted, structured=False) == (contains, share)


@pytest.mark.parametrize("wanted", [[""], [[]], [1], 5, [["a", None]], {"a": 1}, ["a", " "]])
def test_what_cannot_be_required_fails_the_sample(wanted: Any) -> None:
    assert required("a", wanted) == (None, None)


def test_without_a_list_one_reference_is_enough() -> None:
    assert value(ContainsAnswer(), "It is 42 days.", "six weeks", "42 days") == 1.0
    assert value(AnswerShare(), "It is two months.", "six weeks", "42 days") == 0.0
    score = ContainsAnswer().compute([a_sample(reference=" ")], [an_output(answer="x")]).scores[0]
    assert (score.value, score.failed) == (None, False)


def test_every_reference_is_looked_for_as_whole_words() -> None:
    for references in (("No", "2"), ("2", "No")):
        assert value(ContainsAnswer(), "I know that there are 120.", *references) == 0.0
        assert value(parse_metric("contains_answer[rgb]"), "I know that there are 120.", *references) == 1.0
    with pytest.raises(UnknownNameError, match="the rule is words or rgb"):
        parse_metric("contains_answer[squad]")


@pytest.mark.parametrize(
    "name",
    """exact_match token_precision token_recall token_f1 contains_answer contains_answer[rgb] answer_share
    rouge1 rouge2 rougeL_answer rougeLsum bleu chrf numeric_match numeric_f1 semantic_similarity""".split(),
)
@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("The pier has 13 berths.", "The pier has 13 berths [1]."),
        ("The pier has 13 berths [2].", "The pier has 13 berths."),
        ("The pier has 13 berths[1][2].", "The pier has 13 berths [2, 3]."),
        ("The pier has 13 berths [^1].", "The pier has 13 berths."),
        ("The pier has 13[1]berths.", "The pier has 13 berths."),
    ],
)
def test_citation_marks_are_not_words(name: str, answer: str, reference: str) -> None:
    metric = parse_metric(name)
    assert value(metric, answer, reference) == pytest.approx(metric.bounds[1])


def test_an_answer_of_brackets_alone_is_kept() -> None:
    assert value(ExactMatch(), "[4]", "[4]") == 1.0
    assert value(ExactMatch(), "[5]", "[4]") == 0.0


def rgb_check(answer: str, wanted: Any) -> bool:
    """RGB's rule: lower-case substrings, all of the list, one of an inner list."""
    items = wanted if isinstance(wanted, list) else [wanted]
    found = [
        any(text.lower() in answer.lower() for text in (item if isinstance(item, list) else [item]))
        for item in items
    ]
    return all(found)


@pytest.mark.skipif(not (DATA / "rgb").exists(), reason="no RGB data beside the repository")
@pytest.mark.parametrize(("name", "language"), [("en_fact.json", "en"), ("zh_fact.json", "zh")])
def test_containment_equals_rgbs_on_its_documents(name: str, language: str) -> None:
    checked = 0
    for line in (DATA / "rgb" / name).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for text in [*row["positive"], *row["positive_wrong"], *row["negative"]]:
            answer = text.replace(" ", "") if language == "zh" else text
            assert required(text, row["answer"], rule="rgb")[0] == float(rgb_check(answer, row["answer"])), (
                row["answer"],
                text,
            )
            checked += 1
    assert checked > 1000
