"""What a model behind an endpoint says: a key that is a plain word stays in it, and thoughts are counted."""

from __future__ import annotations

import pytest

from auepora_eval.core.systems.named import endpoint_system
from tests.builders import a_sample
from tests.servers import chat_server, completion


def test_a_model_that_was_given_a_word_as_its_key_answers_as_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL", "question")
    with chat_server(
        says=lambda body: completion("a good question", model="question-7b"), bare=True
    ) as server:
        system = endpoint_system(f"openai:{server.url}#m", {"api_key_env": "LOCAL"})
        said = system.run(a_sample()).response
        system.close()
    assert (said.text, said.metadata["model"]) == ("a good question", "question-7b")


@pytest.mark.parametrize(("total", "told"), [(500, {"total_tokens": 500}), (11, {}), (3, {}), (None, {})])
def test_a_total_is_told_where_it_holds_more_than_its_parts(total: int | None, told: dict[str, int]) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": total}
    with chat_server(says=lambda body: completion("x", usage=usage), bare=True) as server:
        system = endpoint_system(f"openai:{server.url}#m", {})
        extra = system.run(a_sample()).extra
        system.close()
    assert {name: count for name, count in extra.items() if name.endswith("_tokens")} == {
        "input_tokens": 10,
        "output_tokens": 1,
        **told,
    }
