"""The refusal detector: phrases a reader can check, then people's labels as the judge."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.core.types import Response
from auepora_eval.text.refusal import declines

DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I don't know.", "English"),
        ("I don’t know.", "English"),
        ("I'm sorry, but I cannot answer that.", "English"),
        ("I can not answer the question because of the insufficient information in documents.", "English"),
        ("Not enough information.", "English"),
        ("The capital of Atlantis is not mentioned in the provided passages.", "English"),
        ("Unable to answer based on given passages.", "English"),
        ("We were unable to determine the year.", "English"),
        ("The context does not provide any details about this.", "English"),
        ("There is no information about the pier in the documents.", "English"),
        ("The documents do not say.", "English"),
        ("It is impossible to determine the weight.", "English"),
        ("This cannot be determined.", "English"),
        ("N/A", "English"),
        ("To calculate the margin you would need the net income of both years.", "English"),
        ("The annual report is not in the provided context.", "English"),
        ("As an AI, I don't have real-time data. However, margins depend on many things.", "English"),
        ("The text does not state the ratio. However, you can calculate it from the report.", "English"),
        ("The text does not state the ratio. However, it is not possible to infer it.", "English"),
        ("In 2020 it was $271 million. Without 2018, it's not possible to calculate a mean.", "English"),
        ("Das weiß ich nicht.", "German"),
        ("Die Frage kann anhand der Dokumente nicht beantwortet werden.", "German"),
        ("Dazu liegen keine Informationen vor.", "German"),
        ("Je ne sais pas.", "French"),
        ("Le texte ne précise pas la date.", "French"),
        ("Il n'y a pas assez d'informations pour répondre.", "French"),
        ("No lo sé.", "Spanish"),
        ("El documento no menciona la fecha.", "Spanish"),
        ("No puedo responder a esa pregunta.", "Spanish"),
        ("Non lo so.", "Italian"),
        ("Non è possibile rispondere alla domanda.", "Italian"),
        ("Não sei.", "Portuguese"),
        ("Não há informações suficientes para responder.", "Portuguese"),
        ("Ik weet het niet.", "Dutch"),
        ("Nie wiem.", "Polish"),
        ("Bu konuda yeterli bilgi yok.", "Turkish"),
        ("Я не знаю.", "Russian"),
        ("В документе недостаточно информации.", "Russian"),
        ("由于文档信息不足，我无法基于提供的文档回答该问题。", "Chinese"),
        ("文档中没有提到这一点。", "Chinese"),
        ("わかりません。", "Japanese"),
        ("提供された情報では回答できません。", "Japanese"),
        ("잘 모르겠습니다.", "Korean"),
        ("لا أعرف", "Arabic"),
        ("मुझे नहीं पता।", "Hindi"),
    ],
)
def test_a_refusal_is_known_by_its_phrase(text: str, language: str) -> None:
    assert declines(Response(text)), language


@pytest.mark.parametrize(
    "text",
    [
        "The Annet moors at the north pier.",
        "Three boats.",
        "No.",
        "None of the above",
        "The Unknown Soldier",
        "A fee per unit of time, even when no data is transferred.",
        "There is no evidence that the lamp was moved.",
        "The staff cannot give legal advice.",
        "I'm sorry to hear that. Press the red button.",
        "Yes, answer is present in [1]. No answer is present in the other contexts.",
        "Yes, the report does not mention it.",
        "It leaves at noon. The documents do not say what it costs.",
        "While the documents do not say when, they name the north pier.",
        "You can order the report online, though it does not include your score.",
        "The text does not give a rate. However, it does mention 5 boats per month.",
        "The margin cannot be determined from this alone. If we assume that all costs count, it is 5%.",
        "It was $11,588 million. The document does not specify how much of it went to shareholders.",
        "If the code expired, you would need to contact the person who sent it.",
        "We did not find a lower prevalence among women who exercised.",
        "Er weilt nicht mehr unter uns: Er starb 1911.",
        "Elle est née en 1911.",
        "东京塔高333米。",
        "東京タワーの高さは333メートルです。",
    ],
)
def test_an_answer_is_no_refusal(text: str) -> None:
    assert not declines(Response(text))


# Invented; some phrases were added because of them. Still taken for answers: "Unknown.", "More information is
# needed to answer this question.", "I looked at all passages, but none of them says who owns the boat." Still
# taken for a refusal: "The data were not available to the public until 1990."
PLAIN_REFUSALS = [
    "I do not know the answer to that.",
    "I have no idea.",
    "I am unable to find that in the documents.",
    "I couldn't find any mention of the ferry in the sources.",
    "Sorry, I can't help with that.",
    "I'm afraid I don't have that information.",
    "Unfortunately, the passages do not say when the pier was built.",
    "There is not enough information to answer the question.",
    "There is insufficient information in the passages to answer.",
    "The provided context does not contain the answer.",
    "The documents provided do not include any details about parking.",
    "None of the documents mention the harbour master.",
    "Nothing in the context answers this question.",
    "No information about the opening hours is given.",
    "The answer is not in the documents.",
    "The answer cannot be found in the given text.",
    "This question cannot be answered from the documents.",
    "It is not possible to answer this from the passages.",
    "It's unclear from the documents when the ferry was sold.",
    "The text gives no indication of the cost.",
    "The document is silent on this point.",
    "I don't have access to the annual report.",
    "We do not have data on that.",
    "That is not covered in the material.",
    "The report does not disclose the margin. However, other companies in the industry report about 20%.",
    "The documents discuss the ferry, but they do not say when it leaves.",
    "Although the report discusses revenue, it does not state the margin.",
    "While the context mentions the pier, there is no information about its length.",
    "The other documents do not mention it either.",
    "I'm sorry, but the second passage does not say so either.",
    "Based on the provided documents, I cannot determine the captain's name.",
    "I would need more information to answer that.",
    "Please provide more context so that I can answer.",
    "The requested figure is not disclosed.",
    "Not specified.",
    "No answer.",
    "Cannot say.",
    "It is not stated.",
    "There is no mention of a lighthouse in the text.",
    "I can't tell from the context whether the boat is insured.",
    "I am not certain; the sources do not agree and none gives a date.",
    "The passages do not specify the year. However, you can ask the harbour office.",
]
PLAIN_ANSWERS = [
    "The ferry leaves at noon.",
    "He did not know that the pier had burned down.",
    "The captain said that he could not answer the question.",
    "The law does not mention dogs, so they are allowed.",
    "No ticket is needed on Sundays.",
    "There is no lift in the building.",
    "The contract does not include insurance.",
    "Children under six do not pay.",
    "It is unknown who built the pier, but the harbour master thinks it was Lund.",
    "The pier was closed because it could not be repaired.",
    "Although the report does not give a total, the two harbours had 40 boats each.",
    "The answer is 42.",
    "None of the boats was insured.",
    "The museum does not have a café.",
    "I don't think so: the ferry is painted white.",
    "The committee could not determine the cause of the fire.",
    "The company did not disclose its margin in 2020; in 2021 it was 12%.",
    "Sorry seems to be the hardest word.",
    "Unable to sleep, she went to the pier.",
    "You need a ticket and a valid passport.",
    "The report was not published until 1999.",
    "It is not clear whether he knew, but he signed the contract.",
    "The ferry does not run in winter.",
    "Yes, the report does not mention it, as the auditor confirmed.",
    "You cannot find parking at the pier; use the car park at the station.",
    "No data is lost when the power fails.",
    "Insufficient evidence led to his release.",
]


@pytest.mark.parametrize(
    ("text", "declined"),
    [*((text, True) for text in PLAIN_REFUSALS), *((text, False) for text in PLAIN_ANSWERS)],
)
def test_plain_refusals_and_answers(text: str, declined: bool) -> None:
    assert declines(Response(text)) is declined


@pytest.mark.parametrize("text", ["", "  \n\t", "\u3000"])
def test_an_empty_answer_declines(text: str) -> None:
    assert declines(Response(text))


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        pytest.param(Response("north pier", {"declined": True}), True, id="it says it declined"),
        pytest.param(Response("I don't know", {"no_answer": False}), False, id="it says it answered"),
        pytest.param(Response("", None, {"abstained": False}), False, id="a flag in the metadata"),
        pytest.param(Response("x", {"declined": False}, {"refused": True}), True, id="any true flag"),
        pytest.param(Response("x", {"declined": "no idea"}), False, id="a text is no flag"),
        pytest.param(Response("x", {"declined": None}), False, id="null is no flag"),
    ],
)
def test_the_systems_own_flag_comes_first(response: Response, expected: bool) -> None:
    assert declines(response) is expected


@given(st.text())
def test_any_text_is_decided(text: str) -> None:
    assert declines(Response(text)) in (True, False)


needs_financebench = pytest.mark.skipif(
    not (DATA / "financebench").is_dir(), reason="needs ../shared/data/financebench"
)


@needs_financebench
@pytest.mark.parametrize(
    ("files", "precision", "recall"),
    [
        pytest.param(("sharedStore", "singleStore"), 0.994, 0.973, id="held out"),
        pytest.param(("closedBook", "oracle", "oracle_reverse"), 0.942, 0.970, id="chosen on"),
    ],
)
def test_agreement_with_people_on_financebench(
    files: tuple[str, ...], precision: float, recall: float
) -> None:
    pairs = [
        (row["label"] == "Refusal", declines(Response(row["model_answer"])))
        for name in files
        for row in rows(DATA / "financebench" / "results" / f"gpt-4_{name}.jsonl")
    ]
    both = sum(human and declined for human, declined in pairs)
    assert both / sum(declined for _, declined in pairs) == pytest.approx(precision, abs=0.01)
    assert both / sum(human for human, _ in pairs) == pytest.approx(recall, abs=0.01)


@pytest.mark.skipif(not (DATA / "squad").is_dir(), reason="needs ../shared/data/squad")
def test_no_false_alarm_on_squad() -> None:
    answers = [a for row in rows(DATA / "squad" / "squad_v1_dev_qa.jsonl") for a in texts(row["answers"])]
    assert len(answers) == 34_726
    assert not [a for a in answers if declines(Response(a))]


@pytest.mark.skipif(not (DATA / "rgb").is_dir(), reason="needs ../shared/data/rgb")
def test_no_false_alarm_on_rgb() -> None:
    answers = [
        a
        for name in ("en", "zh")
        for row in rows(DATA / "rgb" / f"{name}_fact.json")
        for a in texts(row["answer"])
    ]
    assert len(answers) == 402
    assert not [a for a in answers if declines(Response(a))]


@pytest.mark.skipif(not (DATA / "mtrag").is_dir(), reason="needs ../shared/data/mtrag")
@pytest.mark.parametrize(("kind", "declined", "total"), [("ANSWERABLE", 2, 135), ("UNANSWERABLE", 6, 7)])
def test_human_written_answers_of_mtrag(kind: str, declined: int, total: int) -> None:
    told = json.loads((DATA / "mtrag" / "reference_subset_with_human_evaluations.json").read_text("utf-8"))
    kinds = {task["task_id"]: task["Answerability"] for task in told["tasks"]}
    answers = [
        e["model_response"]
        for e in told["evaluations"]
        if e["model_id"] == "reference" and kinds[e["task_id"]] == [kind]
    ]
    assert len(answers) == total
    assert sum(declines(Response(a)) for a in answers) == declined


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def texts(answers: object) -> Iterable[str]:
    """The texts in answers that may be lists of lists."""
    if isinstance(answers, str):
        yield answers
    elif isinstance(answers, dict):
        yield answers["text"]
    else:
        assert isinstance(answers, list)
        for answer in answers:
            yield from texts(answer)
