"""Earlier turns of a conversation are kept, and reach systems that ask for them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.core.dataset import as_dataset
from auepora_eval.io.loader import load_dataset
from auepora_eval.read.fields import ReadingNote

MTRAG = Path(__file__).parents[3] / "shared/data/mtrag/reference_subset_with_human_evaluations.json"
BEFORE = [{"role": "user", "content": "Which ferry?"}, {"role": "assistant", "content": "The Annet."}]
QUESTION = {"role": "user", "content": "How many cars?"}

FORMS: dict[str, Any] = {
    "OpenAI": {"id": "1", "messages": [*BEFORE, QUESTION]},
    "ragas": {
        "id": "1",
        "user_input": [
            {"type": "human", "content": "Which ferry?"},
            {"type": "ai", "content": "The Annet."},
            {"type": "human", "content": "How many cars?"},
        ],
    },
    "MTRAG": {
        "task_id": "1",
        "task_type": "rag",
        "input": [
            {"speaker": "user", "text": "Which ferry?"},
            {"speaker": "agent", "text": "The Annet."},
            {"speaker": "user", "text": "How many cars?"},
        ],
        "targets": [{"speaker": "agent", "text": "22"}],
    },
    "a question and pairs": {
        "id": "1",
        "question": "How many cars?",
        "chat_history": [["human", "Which ferry?"], ["ai", "The Annet."]],
    },
    "a question and messages": {"id": "1", "query": "How many cars?", "messages": BEFORE},
    "parts": {
        "id": "1",
        "messages": [*BEFORE, {"role": "user", "content": [{"type": "text", "text": "How many cars?"}]}],
    },
}


@pytest.mark.filterwarnings("ignore::auepora_eval.read.fields.ReadingNote")
@pytest.mark.parametrize("form", FORMS)
def test_earlier_turns_are_the_history_of_a_sample(tmp_path: Path, form: str) -> None:
    for name in ("talk.json", "talk.jsonl"):
        record = FORMS[form]
        text = json.dumps([record] if name == "talk.json" else record)
        (tmp_path / name).write_text(text, encoding="utf-8")
        [sample] = load_dataset(tmp_path / name)
        assert (sample.sample_id, sample.query) == ("1", "How many cars?")
        assert sample.metadata["history"] == BEFORE


def test_conversations_are_counted_in_the_note() -> None:
    with pytest.warns(ReadingNote, match="1 record has earlier turns, which are in metadata.history"):
        load_dataset([FORMS["ragas"]])


@pytest.mark.filterwarnings("ignore::auepora_eval.read.fields.ReadingNote")
def test_what_follows_the_last_question_is_the_answer_of_the_system() -> None:
    talk = [*BEFORE, QUESTION, {"role": "assistant", "content": "22."}]
    dataset = load_dataset([{"id": "1", "messages": talk, "reference": "22"}])
    assert dataset.outputs["1"].response.text == "22."
    assert ae.score(dataset, metrics="contains_answer").results[0].value == 1.0


SAMPLE = {"sample_id": "1", "query": "How many cars?", "metadata": {"history": BEFORE}}


def test_a_function_gets_the_history_or_all_messages() -> None:
    got: list[Any] = []

    def with_history(query: str, history: list[dict[str, str]]) -> str:
        got.append((query, history))
        return "22"

    def with_messages(messages: list[dict[str, str]]) -> str:
        got.append(messages)
        return "22"

    for system in (with_history, with_messages):
        ae.evaluate(system, [SAMPLE], metrics="answer_rate")
    assert got == [("How many cars?", BEFORE), [*BEFORE, QUESTION]]


def test_a_client_of_the_chat_protocol_gets_all_messages() -> None:
    def create(model: str, messages: list[dict[str, str]]) -> Any:
        return json.dumps(messages)

    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    run = ae.evaluate(ae.as_system(client, model="m"), [SAMPLE], metrics="answer_rate")
    assert json.loads(run.outputs[0].response.text) == [*BEFORE, QUESTION]


def test_a_system_that_does_not_get_the_history_is_reported() -> None:
    with pytest.warns(UserWarning, match="1 sample has earlier turns .* that the system does not get"):
        ae.evaluate(lambda query: "22", [SAMPLE], metrics="answer_rate")


@pytest.mark.skipif(not MTRAG.is_file(), reason="needs ../shared/data/mtrag")
def test_the_conversations_of_mtrag() -> None:
    with pytest.warns(ReadingNote, match="139 records have earlier turns"):
        samples = list(load_dataset(MTRAG))
    assert len(samples) == 159
    sample = next(sample for sample in samples if "history" in sample.metadata)
    assert [turn["role"] for turn in sample.metadata["history"][:2]] == ["user", "assistant"]
    assert sample.reference_answer is not None
    assert sample.relevant_docs is not None
    assert sample.relevant_docs[0].text
    assert sum(sample.labels["answerable"] is False for sample in samples) == 7


def test_an_unread_column_like_one_that_a_metric_needs_is_named() -> None:
    rows = [{"id": "1", "question": "q", "refernce": "a"}]
    with pytest.warns(ReadingNote), pytest.raises(ae.AueporaError) as caught:
        ae.evaluate(lambda query: "a", rows, metrics="token_f1")
    assert "'refernce' was not read" in str(caught.value)
    assert "--columns reference_answer=refernce" in str(caught.value)


def test_the_same_last_question_of_two_conversations_is_not_a_duplicate(tmp_path: Path) -> None:
    talks = [{**SAMPLE, "sample_id": "1"}, {**SAMPLE, "sample_id": "2"}]
    found = ae.DataQualityChecker().issues(load_dataset(talks))
    assert "near_duplicates" not in {issue.check for issue in found}


TURNS = [{"role": "user", "content": "Which?"}, {"role": "assistant", "content": "The Annet."}]


@pytest.mark.parametrize(
    "history",
    [
        [["Which?", "The Annet."]],
        ["Which?", "The Annet."],
        [{"question": "Which?", "answer": "The Annet."}],
        [{"user": "Which?", "assistant": "The Annet."}],
        [{"inputs": {"question": "Which?"}, "outputs": {"answer": "The Annet."}}],
    ],
)
def test_a_history_of_pairs_is_read(history: list[Any]) -> None:
    with pytest.warns(ReadingNote, match="1 record has earlier turns"):
        [sample] = as_dataset([{"id": "1", "question": "How many?", "chat_history": history}])
    assert sample.metadata["history"] == TURNS


def test_a_history_that_cannot_be_read_is_kept() -> None:
    with pytest.warns(UserWarning, match="not read.*chat_history"):
        [sample] = as_dataset([{"id": "1", "question": "How many?", "chat_history": "Which? The Annet."}])
    assert sample.metadata["chat_history"] == "Which? The Annet."
