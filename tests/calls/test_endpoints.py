"""Systems behind an endpoint, asked over a real connection on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.calls.chat import fence_of
from auepora_eval.core.systems.named import load_system
from auepora_eval.core.systems.resources import ApiUsage, usage_of
from auepora_eval.core.types import CONTEXTS_AS_RETRIEVED, Document, EvaluationSample, SystemOutputs
from auepora_eval.errors import AccessRefusedError, DataError
from tests.builders import a_sample, one_output
from tests.servers import chat_server

REPLY: dict[str, Any] = {
    "answer": "at the north pier",
    "documents": [{"id": "d2", "text": "The pier.", "score": 0.9}, {"id": 7}, "d3"],
    "timings": {"retrieval": 0.25, "generation": 0.5, "note": "slow today"},
    "usage": {"prompt_tokens": 30, "completion_tokens": 4},
}


def asked(name: str, **options: Any) -> SystemOutputs:
    output = one_output(load_system(name, options), top_k=3, sample=a_sample("s1", "Where does it moor?"))
    assert isinstance(output, SystemOutputs)
    return output


def test_an_http_system_answers_with_documents_timings_and_tokens() -> None:
    with chat_server(says=lambda body: REPLY, bare=True) as server:
        output = asked(f"http:{server.url}/ask")
        assert server.requests == [{"query": "Where does it moor?", "top_k": 3}]
        assert server.paths == ["/v1/ask"]
    assert output.error is None
    assert output.response.text == "at the north pier"
    found = [(hit.doc.doc_id, hit.doc.text, hit.score, hit.rank) for hit in output.retrieved]
    assert found == [("d2", "The pier.", 0.9, 1), ("7", "", 0.5, 2), ("d3", "", 1 / 3, 3)]
    assert (output.timings["retrieval"], output.timings["generation"]) == (0.25, 0.5)
    assert 0 < output.timings["end_to_end"] < 5
    usage = ApiUsage()
    usage.add(usage_of(output))
    assert usage.sums == {"input_tokens": 30, "output_tokens": 4, "total_tokens": 34, "requests": 1}


def test_the_fields_of_another_server_are_mapped() -> None:
    reply = {"result": {"text": "yes", "hits": [{"key": "a", "body": "b", "similarity": 2}]}}
    fields = {"query": "input.question", "top_k": "input.k", "answer": "result.text"}
    fields |= {"documents": "result.hits", "id": "key", "text": "body", "score": "similarity"}
    with chat_server(says=lambda body: reply, bare=True) as server:
        output = asked(f"http:{server.url}", fields=fields)
        assert server.requests == [{"input": {"question": "Where does it moor?", "k": 3}}]
    assert output.response.text == "yes"
    assert [(h.doc.doc_id, h.doc.text, h.score) for h in output.retrieved] == [("a", "b", 2.0)]


def test_documents_may_have_the_names_that_functions_give_them() -> None:
    reply: dict[str, Any] = {"answer": "yes", "contexts": [{"id": "a", "text": "The pier."}]}
    with chat_server(says=lambda body: reply, bare=True) as server:
        with pytest.warns(UserWarning, match="Read 'contexts' as retrieved"):
            assert [hit.doc.doc_id for hit in asked(f"http:{server.url}").retrieved] == ["a"]
        reply["contexts"] = 3
        output = asked(f"http:{server.url}")
        assert output.error is not None
        assert "retrieved must be a list of documents" in output.error.message
        reply["contexts"] = [{"id": "a"}]
        named = asked(f"http:{server.url}", fields={"documents": "found"})
        assert named.extra["documents_missing"] is True, "the plan names another field"


def test_a_document_says_by_its_metadata_which_file_it_is_from() -> None:
    source = {"source": "docs/harbour.md"}
    reply = {"answer": "yes", "documents": [{"id": "7f3a", "text": "The pier.", "metadata": source}]}
    with chat_server(says=lambda body: reply, bare=True) as server:
        (hit,) = asked(f"http:{server.url}").retrieved
    assert hit.doc.metadata["source"] == "docs/harbour.md"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({"text": "yes"}, "there is no text under 'answer'"),
        ({"answer": None}, "there is no text under 'answer'"),
        ({"answer": "yes", "documents": {"id": "a"}}, "is not a list"),
        ({"answer": "yes", "documents": [{"name": "a"}]}, "document 1 has no id under 'id'"),
        ({"answer": "yes", "documents": [{"id": "a", "text": 3}]}, "is not a text"),
    ],
)
def test_a_reply_of_another_form_is_a_failure_in_words(reply: Any, words: str) -> None:
    with chat_server(says=lambda body: reply, bare=True) as server:
        output = asked(f"http:{server.url}")
    assert output.error is not None
    assert words in output.error.message
    assert output.extra["attempts"][0]["kind"] == "bad_output"


def test_a_chat_model_answers_from_the_passages_of_the_sample() -> None:
    sample = a_sample("s1", "Where?", candidate_docs=[Document(f"d{n}", f"text {n}") for n in range(5)])
    with chat_server(says=lambda body: "at the pier") as server:
        output = one_output(load_system(f"openai:{server.url}#small"), top_k=2, sample=sample)
        sent = server.requests[0]
    assert sent["model"] == "small"
    said = sent["messages"][1]["content"]
    assert '"question":"Where?"' in said
    assert '"text 1"' in said
    assert '"text 2"' not in said  # top_k
    assert output.response.text == "at the pier"
    assert [hit.doc.doc_id for hit in output.retrieved] == ["d0", "d1"]
    assert (output.extra["input_tokens"], output.extra["output_tokens"]) == (11, 5)
    assert output.timings["generation"] > 0


@given(st.text())
def test_no_material_holds_its_own_fence(text: str) -> None:
    fence = fence_of(text)
    assert fence not in text
    assert fence_of(text) == fence
    assert fence_of(text + fence) not in text + fence


def test_fields_of_the_request_are_set_or_left_out() -> None:
    fields = {"temperature": None, "max_tokens": None, "max_completion_tokens": 99, "seed": 3}
    with chat_server() as server:
        asked(f"openai:{server.url}#m", request=fields)
        asked(f"openai:{server.url}#m")
        chosen, usual = server.requests
    assert {name: chosen.get(name) for name in fields} == fields
    assert "temperature" not in chosen
    assert (usual["temperature"], usual["max_tokens"]) == (0.0, 2048)


def test_what_is_asked_for_is_a_part_of_the_identity() -> None:
    def identity(fields: dict[str, Any]) -> Any:
        return load_system("openai:http://127.0.0.1:1/v1#m", {"request": fields}).identity  # type: ignore[attr-defined]

    assert identity({"top_p": 0.5}) == identity({"top_p": 0.5}) != identity({"top_p": 0.6})
    http = [
        load_system("http:http://127.0.0.1:1/ask", {"fields": {"answer": name}}).identity  # type: ignore[attr-defined]
        for name in ("answer", "text")
    ]
    assert http[0] != http[1]


@pytest.mark.parametrize(
    "name", ["http:http://127.0.0.1:1/ask?index={}", "openai:http://127.0.0.1:1/v1?v={}#m"]
)
def test_the_parameters_of_the_url_are_a_part_of_the_identity(name: str) -> None:
    first, same, other = (load_system(name.format(value)).identity for value in ("left", "left", "right"))  # type: ignore[attr-defined]
    assert first == same != other
    assert "left" not in str(first), "a parameter may be a key"


@pytest.mark.parametrize("kind", ["openai", "http"])
def test_headers_come_from_the_environment(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY", "canary-7531")
    with chat_server(["401"]) as server:  # it repeats every header in its message
        name = f"openai:{server.url}#m" if kind == "openai" else f"http:{server.url}/ask"
        with pytest.raises(AccessRefusedError, match=r"the header x-api-key \(GATEWAY\)") as refused:
            asked(name, headers={"x-api-key": "env:GATEWAY"})
        assert server.headers[0]["x-api-key"] == "canary-7531"
        assert "Authorization" not in server.headers[0]
    assert "'x-api-key': '***'" in str(refused.value)
    assert "canary-7531" not in str(refused.value)


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"x-api-key": "abcdef-the-key"}, "not env:NAME"),
        ({"x-api-key": "env:NOT_SET_ANYWHERE"}, "is not set"),
        ({"bad name": "env:GATEWAY"}, "is not the name of a header"),
        ({"x\r\ny": "env:GATEWAY"}, "is not the name of a header"),
        ({"Content-Length": "env:GATEWAY"}, "is set by auepora"),
        ({"authorization": "env:GATEWAY"}, "--api-key-env"),
    ],
)
def test_headers_that_cannot_be_sent_are_refused_and_no_key_is_repeated(
    headers: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY", "canary-7531")
    with pytest.raises(DataError, match=words) as refused:
        load_system("http:http://127.0.0.1:1/ask", {"headers": headers})
    assert "abcdef" not in str(refused.value)


def test_a_header_whose_variable_is_not_set_is_named_with_it() -> None:
    with pytest.raises(DataError) as refused:
        load_system("http:http://127.0.0.1:1/ask", {"headers": {"x-api-key": "env:GATEWAY_KEY_7"}})
    for part in ("variable GATEWAY_KEY_7 for the header x-api-key: is not set", "(export GATEWAY_KEY_7=...)"):
        assert part in str(refused.value)
    typed = "AKIAIOSFODNN7EXAMPLE"  # a key where a name was asked for
    for name in (typed, typed.lower(), "sk_live_0123"):
        with pytest.raises(DataError, match="that was named for the header x-api-key: is not set") as refused:
            load_system("http:http://127.0.0.1:1/ask", {"headers": {"x-api-key": f"env:{name}"}})
        assert name not in str(refused.value)


def test_a_prompt_of_the_user_is_used(tmp_path: Path) -> None:
    prompt = tmp_path / "mine.md"
    prompt.write_text("# system\nBe brief.\n# user\nQ: {{material}}\n", encoding="utf-8")
    with chat_server() as server:
        asked(f"openai:{server.url}#m", prompt=str(prompt))
        assert server.requests[0]["messages"][0]["content"] == "Be brief."
    prompt.write_text("# system\nBe brief.\n# user\nQ\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"no \{\{material"):
        load_system("openai:http://127.0.0.1:1/v1#m", {"prompt": str(prompt)})


def a_record(prompt: str = "You are a pilot.\n[1] At the pier.\nWhere?") -> EvaluationSample:
    """Return a sample of a split, with a candidate document."""
    sample = a_sample("s1", "Where does it moor?", candidate_docs=[Document("d1", "x")])
    sample.metadata["split"] = {"rag_prompt": prompt, "contexts": ["[1] At the pier."], "sources": ["d9"]}
    return sample


def test_a_chat_model_is_sent_the_prompt_of_the_record(tmp_path: Path) -> None:
    prompt = tmp_path / "mine.md"
    prompt.write_text("# system\nBe brief.\n# user\n{{rag_prompt}}\n", encoding="utf-8")
    with chat_server() as server:
        name = f"openai:{server.url}#m"
        output = one_output(load_system(name, {"prompt": str(prompt)}), top_k=3, sample=a_record())
        assert server.requests[0]["messages"][1]["content"] == "You are a pilot.\n[1] At the pier.\nWhere?"
        # The candidate documents were not shown.
        assert (output.retrieved, output.extra["documents_missing"]) == ([], True)
        options = {"prompt": str(prompt), CONTEXTS_AS_RETRIEVED: True}
        output = one_output(load_system(name, options), top_k=3, sample=a_record())
        assert [hit.doc.doc_id for hit in output.retrieved] == ["d9"]
        output = one_output(load_system(name, {"prompt": str(prompt)}), top_k=3, sample=a_record(""))
        assert output.error is not None
        assert "asks for {{rag_prompt}}, and the sample has no prompt" in output.error.message


@pytest.mark.parametrize("name", ["openai:http://192.0.2.1/v1#m", "http:http://192.0.2.1/ask"])
def test_questions_do_not_cross_a_network_unencrypted_unasked(name: str) -> None:
    with pytest.raises(DataError, match="every question would cross the network unencrypted"):
        load_system(name)
    load_system(name, {"plain_http": True})
    load_system(name.replace("http://", "https://"))


@pytest.mark.parametrize("name", ["openai:http://127.0.0.1/v1?api_key=K#m", "http:https://h/?sig=abc"])
def test_a_key_in_the_url_is_refused_since_the_url_is_stored(name: str) -> None:
    with pytest.raises(DataError, match="seems to hold a key"):
        load_system(name)


def test_a_document_without_a_score_is_marked() -> None:
    sample = a_sample("s1", "Where?", candidate_docs=[Document("d", "text", {"page": 3})])
    with chat_server(says=lambda body: REPLY, bare=True) as server:
        hits = asked(f"http:{server.url}/ask").retrieved
    assert [hit.doc.metadata for hit in hits] == [{}, {"score_missing": True}, {"score_missing": True}]
    with chat_server() as server:
        (hit,) = one_output(load_system(f"openai:{server.url}#small"), top_k=2, sample=sample).retrieved
    assert hit.doc.metadata == {"page": 3, "score_missing": True}
    assert sample.candidate_docs is not None
    assert sample.candidate_docs[0].metadata == {"page": 3}
