"""A key that is a plain word stays in answers. A key that looks like a token is masked."""

from __future__ import annotations

import pytest

from auepora_eval.core.redaction import Redactor
from auepora_eval.errors import CallError
from auepora_eval.execution.systems import endpoint_system
from tests.builders import a_sample
from tests.servers import chat_server

WORDS = (
    "question",
    "Question",
    "QUESTION",
    "placeholder",
    "not-needed",
    "Not-Needed",
    "documents",
    "no_key_here",
)


@pytest.mark.parametrize("key", WORDS)
def test_plain_word_key_stays_in_answers_and_is_masked_in_errors(key: str) -> None:
    redacted = Redactor([key])
    told = {"answer": f"the {key} is", key: [{"id": key}]}
    assert redacted.within(told) == told
    assert redacted(f"401: {key} was refused") == "401: *** was refused"


@pytest.mark.parametrize(
    "key",
    [
        "question1",
        "queStion",
        "aBcDeFgH",
        "p@ss!word",
        "a-placeholder-of-words",
        "abcdefghijklmnop",
        "12345678",
    ],
)
def test_token_like_key_is_masked_everywhere(key: str) -> None:
    assert Redactor([key, "question"]).within({key: f"a question of {key}."}) == {"***": "a question of ***."}


def test_plain_word_key_does_not_change_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOCAL", "documents")
    reply = {"answer": "two documents", "documents": [{"id": "documents", "text": "of documents"}]}
    with chat_server(says=lambda body: reply, bare=True) as server:
        system = endpoint_system(f"http:{server.url}", {"api_key_env": "LOCAL"})
        output = system.run(a_sample())
        system.close()
    assert server.headers[0]["Authorization"] == "Bearer documents"
    (hit,) = output.retrieved
    assert (output.response.text, hit.doc.doc_id, hit.doc.text) == (
        "two documents",
        "documents",
        "of documents",
    )


def test_errors_do_not_show_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL", "documents")
    with chat_server(says=lambda body: {"documents": 3, "answer": "x"}, bare=True) as server:
        system = endpoint_system(f"http:{server.url}", {"api_key_env": "LOCAL"})
        with pytest.raises(CallError, match=r"what is under '\*\*\*' is not a list"):
            system.run(a_sample())
        system.close()
