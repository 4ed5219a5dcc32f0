"""Answers from documents that are wrong."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.core.types import EvaluationSample, MetricResult, Response, SystemOutputs
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.metrics.robustness.counterfactual import holds_answer
from auepora_eval.text.refusal import flags_an_error
from tests.builders import a_failure, a_sample, an_output

DATA = Path(__file__).parents[3] / "shared" / "data"
needs_rgb = pytest.mark.skipif(not (DATA / "rgb").is_dir(), reason="needs ../shared/data/rgb")
needs_answers = pytest.mark.skipif(
    not (DATA / "financebench").is_dir() or not (DATA / "mtrag").is_dir(),
    reason="needs ../shared/data/financebench and mtrag",
)
NAMES = (
    "counterfactual_accuracy",
    "fake_adoption_rate",
    "error_detection_rate",
    "error_correction_rate",
    "misleading_rate",
    "mistake_reappearance_rate",
)


def an_edited_sample(
    sample_id: str = "1", *, true: Any = "1911", fake: Any = "1944", **labels: Any
) -> EvaluationSample:
    known = {"scenario": "counterfactual", "true_answer": true, "fake_answer": fake, **labels}
    return a_sample(sample_id, labels=known)


def computed(name: str, answers: list[str], **more: Any) -> MetricResult:
    samples = [an_edited_sample(str(n), **more) for n in range(len(answers))]
    return parse_metric(name).compute(samples, [an_output(answer=answer) for answer in answers])


@pytest.mark.parametrize(
    ("text", "label", "held"),
    [
        pytest.param("Built in 1911.", "1911", True, id="a number"),
        pytest.param("Built in 19110.", "1911", False, id="the start of a longer number"),
        pytest.param("It cost 3.5 million.", "5", False, id="the end of a decimal"),
        pytest.param("It cost 1,911 crowns.", "911", False, id="the end of a grouped number"),
        pytest.param("In 1911, not in 1944.", "1911", True, id="before a comma"),
        pytest.param("NORWAY  won", "norway", True, id="case"),
        pytest.param("the north\n pier", "North Pier", True, id="spaces"),
        pytest.param("a Normand", "norman", False, id="part of a word"),
        pytest.param("Norway's team", "Norway", True, id="possessive"),
        pytest.param("the U.S. team", "U.S.", True, id="ends in a dot"),
        pytest.param("共有170个议席", "70", False, id="a number in Chinese text"),
        pytest.param("共有70个议席", "70", True, id="a number beside ideographs"),
        pytest.param("在东京塔举行", "东京", True, id="part of a Chinese text"),
        pytest.param("2021 年 7 月", "2021年7月", True, id="spaces beside ideographs"),
        pytest.param("１９１１年", "1911", True, id="full width"),
        pytest.param("서울은 크다", "서울", True, id="Korean particles"),
        pytest.param("Sydney", ["Melbourne", "Sydney"], True, id="alternatives"),
        pytest.param("Sydney", [["Australia"], ["Sydney"]], False, id="both required"),
        pytest.param("Sydney, Australia", [["Australia", "AU"], "Sydney"], True, id="both there"),
        pytest.param("1911", 1911, True, id="a label that is a number"),
    ],
)
def test_what_holds_an_answer(text: str, label: Any, held: bool) -> None:
    assert holds_answer(text, label) is held


# answer: right, adopts the fake, flags an error, edited words that come back
TRUE, FAKE, BOTH, NEITHER = "It was 1911.", "It was 1944.", "Not 1944 but 1911.", "No idea."
FLAG = "There are factual errors in the documents. "


@pytest.mark.parametrize(
    ("name", "answers", "expected"),
    [
        pytest.param("counterfactual_accuracy", [TRUE, FAKE, BOTH, NEITHER], 0.5, id="accuracy"),
        pytest.param("fake_adoption_rate", [TRUE, FAKE, BOTH, NEITHER], 0.25, id="adoption"),
        pytest.param("error_detection_rate", [FLAG + TRUE, FLAG + FAKE, TRUE, FAKE], 0.5, id="detection"),
        pytest.param("error_correction_rate", [FLAG + TRUE, FLAG + FAKE, TRUE, FAKE], 0.5, id="correction"),
        pytest.param("error_correction_rate", [TRUE, FAKE], math.nan, id="nothing detected"),
        pytest.param("mistake_reappearance_rate", [TRUE, FAKE, BOTH, NEITHER], 0.5, id="reappearance"),
    ],
)
def test_by_hand(name: str, answers: list[str], expected: float) -> None:
    assert computed(name, answers).value == pytest.approx(expected, nan_ok=True)


def test_a_conditional_rate_says_of_how_many() -> None:
    # RGB's ChatGPT-en, n = 100: it flags 7 and corrects 4 of them, printed as 57.14.
    result = computed("error_correction_rate", [FLAG + TRUE] * 4 + [FLAG + FAKE] * 3 + [FAKE] * 93)
    assert round(100 * result.value, 2) == 57.14
    assert (result.details["numerator"], result.details["denominator"]) == (4, 7)
    assert result.details["num_samples"] == 100
    assert result.details["confidence_interval"] == pytest.approx([0.125677, 0.985434], abs=1e-6)


def test_mistakes_are_counted_in_words() -> None:
    answers = ["Glendale it is.", "Tampa, Florida", "Glendale, Arizona"]
    result = computed(
        "mistake_reappearance_rate", answers, true="Tampa, Florida", fake="Glendale, Arizona, Florida"
    )
    assert [score.parts for score in result.scores] == [(1, 2), (0, 2), (2, 2)]
    assert result.value == 0.5
    alternatives = computed("mistake_reappearance_rate", ["in 1944"], fake=["nineteen forty-four", "1944"])
    assert alternatives.value == 1.0
    nothing = computed("mistake_reappearance_rate", ["x"], true="Tampa Florida", fake="Florida")
    assert nothing.scores[0].reason == "every word of the fake answer is in the true one"


def edited_with(without: dict[str, Any], answer: str) -> tuple[list[EvaluationSample], list[SystemOutputs]]:
    """An edited sample of the question q, and what else is known: own, closed_book, base."""
    samples, outputs = [an_edited_sample("q-edited", variant_of="q")], [an_output(answer=answer)]
    if "own" in without:
        outputs[0].extra["closed_book"] = without["own"]
    for kind, sample_id, labels in (
        ("closed_book", "q-closed", {"scenario": "closed_book", "variant_of": "q"}),
        ("base", "q", {"scenario": "base"}),
    ):
        if kind in without:
            samples.append(a_sample(sample_id, labels=labels))
            outputs.append(without[kind] if without[kind] is FAILED else an_output(answer=without[kind]))
    return samples, outputs


FAILED = a_failure()


@pytest.mark.parametrize(
    ("without", "answer", "expected"),
    [
        pytest.param({"base": TRUE}, FAKE, 1.0, id="misled"),
        pytest.param({"base": TRUE}, TRUE, 0.0, id="not misled"),
        pytest.param({"base": FAKE}, FAKE, math.nan, id="did not know: not in the denominator"),
        pytest.param({"base": TRUE, "closed_book": NEITHER}, FAKE, math.nan, id="closed book goes first"),
        pytest.param({"base": NEITHER, "closed_book": TRUE}, FAKE, 1.0, id="closed book knew"),
        pytest.param({"base": NEITHER, "own": TRUE}, FAKE, 1.0, id="the system's own closed book"),
        pytest.param({}, FAKE, "there is no answer to its question without", id="nothing to compare"),
        pytest.param({"base": FAILED}, FAKE, "the answer without the edited documents failed", id="failed"),
    ],
)
def test_misleading_rate(without: dict[str, Any], answer: str, expected: float | str) -> None:
    result = parse_metric("misleading_rate").compute(*edited_with(without, answer))
    if isinstance(expected, str):
        assert expected in result.scores[0].reason
        assert result.scores[0].failed is bool(without)
    else:
        assert result.value == pytest.approx(expected, nan_ok=True)
        assert result.details["num_samples"] == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("label", [[], [[]], {"a": 1}, True, ["", "x"], " "])
def test_unusable_labels_are_failures_with_a_reason(name: str, label: Any) -> None:
    sample = an_edited_sample(true=label, fake=label)
    result = parse_metric(name).compute([sample], [an_output(answer="x", extra={"closed_book": "x"})])
    if name != "error_detection_rate":  # which does not look at them
        assert result.scores[0].value is None
        assert result.scores[0].reason


@pytest.mark.parametrize("name", NAMES)
def test_other_scenarios_are_left_out_even_if_they_fail(name: str) -> None:
    result = parse_metric(name).compute([an_edited_sample(scenario="closed_book")], [a_failure()])
    assert result.details["num_skipped"] == 1
    assert result.scores[0].reason == "its scenario is 'closed_book', not 'counterfactual'"


@pytest.mark.parametrize(
    ("text", "flagged"),
    [
        ("There are factual errors in the provided documents.", True),
        ("The provided document is incorrect: it was 1911.", True),
        ("The context contains several errors.", True),
        ("文档中存在事实性错误，应为1911年。", True),
        ("文件內容與事實不符。", True),
        ("資料には事実誤認があります。", True),
        ("문서에 사실 오류가 있습니다.", True),
        ("Die Dokumente enthalten sachliche Fehler.", True),
        ("Les documents contiennent des erreurs factuelles.", True),
        ("El documento contiene un error factual.", True),
        ("Il documento contiene errori fattuali.", True),
        ("O documento contém erros factuais.", True),
        ("De tekst bevat feitelijke fouten.", True),
        ("W tekście są błędy rzeczowe.", True),
        ("Документ содержит фактические ошибки.", True),
        ("في الوثيقة أخطاء واقعية.", True),
        ("There are no factual errors in the provided documents.", False),
        ("I did not find any factual errors.", False),
        ("文档中没有事实性错误。", False),
        ("Die Dokumente enthalten keine sachlichen Fehler.", False),
        ("Il n'y a pas d'erreurs factuelles.", False),
        ("Нет фактических ошибок.", False),
        ("The pilot was wrong about the weather.", False),
        ("", False),
    ],
)
def test_who_says_that_the_documents_are_wrong(text: str, flagged: bool) -> None:
    assert flags_an_error(Response(text)) is flagged


def test_a_flag_of_the_system_decides() -> None:
    assert flags_an_error(Response("Fine.", structured={"factual_error": True}))
    assert not flags_an_error(Response("There are factual errors.", metadata={"error_detected": False}))
    assert flags_an_error(Response("There are factual errors.", structured={"factual_error": "maybe"}))


@given(st.text(max_size=60), st.text(min_size=1, max_size=20))
@settings(max_examples=100, deadline=None)
def test_any_text_holds_itself(before: str, answer: str) -> None:
    if not answer.strip():
        return
    assert holds_answer(f"{before} . {answer} . {before}", answer)
    flags_an_error(Response(before + answer))


def rgb(language: str) -> list[dict[str, Any]]:
    lines = (DATA / "rgb" / f"{language}_fact.json").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def as_label(answer: str | list[Any]) -> Any:
    """RGB requires every item of a list; an inner list holds alternatives."""
    return (
        answer if isinstance(answer, str) else [item if isinstance(item, list) else [item] for item in answer]
    )


@needs_rgb
@pytest.mark.parametrize(
    ("language", "field", "documents", "true", "fake"),
    [
        # By plain substring (RGB's own way) 2 of 395 and 13 of 418 edited documents hold the true answer: ten
        # of the thirteen are numbers within numbers, such as 70 in 170. Not found among the positives:
        # "May 15, 2012.12:01 AM" and "05月12日".
        ("en", "positive", 395, 394, 0),
        ("en", "positive_wrong", 395, 2, 392),
        ("zh", "positive", 418, 417, 0),
        ("zh", "positive_wrong", 418, 3, 417),
    ],
)
def test_rgbs_documents_hold_what_they_should(
    language: str, field: str, documents: int, true: int, fake: int
) -> None:
    pairs = [(row, text) for row in rgb(language) for text in row[field]]
    assert len(pairs) == documents
    assert sum(holds_answer(text, as_label(row["answer"])) for row, text in pairs) == true
    assert sum(holds_answer(text, as_label(row["fakeanswer"])) for row, text in pairs) == fake


@needs_rgb
@pytest.mark.parametrize(
    ("language", "copied", "expected"),
    [
        # accuracy, adoption, detection, misleading, reappearance of systems that copy all their documents
        # and know from the clean ones; only "2012.12:01" keeps the clean English copies from 1.00.
        ("en", "positive_wrong", (0.02, 0.97, 0.0, 97 / 99, 181 / 181)),
        ("en", "positive", (0.99, 0.0, 0.0, 0 / 99, 5 / 181)),
        ("zh", "positive_wrong", (0.01, 0.99, 0.0, 99 / 100, 250 / 250)),
        ("zh", "positive", (1.0, 0.0, 0.0, 0 / 100, 45 / 250)),
    ],
)
def test_parrots_of_rgb(language: str, copied: str, expected: tuple[float, ...]) -> None:
    rows = rgb(language)
    samples = [
        an_edited_sample(str(row["id"]), true=as_label(row["answer"]), fake=as_label(row["fakeanswer"]))
        for row in rows
    ]
    outputs = [
        an_output(answer="\n".join(row[copied]), extra={"closed_book": "\n".join(row["positive"])})
        for row in rows
    ]
    found = [parse_metric(name).compute(samples, outputs).value for name in (*NAMES[:3], *NAMES[4:])]
    assert found == pytest.approx(expected)


@needs_rgb
@needs_answers
def test_answers_that_do_not_blame_their_documents() -> None:
    texts = [
        text
        for lang in ("en", "zh")
        for row in rgb(lang)
        for f in ("positive", "negative", "positive_wrong")
        for text in row[f]
    ]
    answers = [
        json.loads(line)["model_answer"] or ""
        for path in sorted((DATA / "financebench" / "results").rglob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    mtrag = json.loads(
        (DATA / "mtrag" / "reference_subset_with_human_evaluations.json").read_text(encoding="utf-8")
    )
    spoken = [evaluation["model_response"] for evaluation in mtrag["evaluations"]]
    assert (len(texts), len(answers), len(spoken)) == (2750, 750, 477)
    assert [text for text in (*texts, *answers, *spoken) if flags_an_error(Response(text))] == []
