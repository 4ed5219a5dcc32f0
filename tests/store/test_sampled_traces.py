"""Traces become a test set: each question once, all kinds of traces, personal data masked and listed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.cli.main import main
from auepora_eval.core.types import (
    Document,
    EvaluationSample,
    Failure,
    Response,
    RetrievedDocument,
    SystemOutputs,
)
from auepora_eval.quality.imported_traces import import_traces
from auepora_eval.quality.sampled_traces import Pair, sample_traces


def pair(
    number: int, query: str, answer: str = "yes", *, failed: bool = False, value: float | None = None
) -> Pair:
    extra: dict[str, Any] = {} if value is None else {"feedback": [{"name": "thumbs", "value": value}]}
    error = Failure("Timeout", "no reply from ada@example.org") if failed else None
    hits = [RetrievedDocument(Document("d", "Call +49 30 1234567."), 1.0, 1)]
    sample = EvaluationSample(f"{number:032x}", query, metadata={"cluster": "ada@example.org"})
    return sample, SystemOutputs(hits, Response(answer), extra=extra, error=error)


QUESTIONS = [
    "How many cars fit on the ferry?",
    "how many car fits on the ferry",  # other endings
    "How many cars fit on the fery?",  # a wrong letter
    "When is water tested?",
    "What does plan 100 cost?",
    "What does plan 200 cost?",  # another number is another question
]


def test_questions_that_are_nearly_the_same_count_once() -> None:
    sampled = sample_traces([pair(n, query) for n, query in enumerate(QUESTIONS)], {}, 10)
    assert [sample.query for sample, _ in sampled.pairs] == [QUESTIONS[n] for n in (0, 3, 4, 5)]
    assert sampled.repeated == 2


def test_rare_groups_are_chosen_and_the_seed_decides_the_rest() -> None:
    topics = [f"topic{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(100)]
    pairs = [pair(n, f"What about {topic}?") for n, topic in enumerate(topics)]
    pairs[40] = pair(40, "What about a failure in this very long question of ours?", failed=True)
    pairs[60] = pair(60, "What about complaints?", value=-1.0)
    started = {sample.sample_id: n for n, (sample, _) in enumerate(pairs)}
    first, again, other = (sample_traces(pairs, started, 8, seed=seed).pairs for seed in (1, 1, 2))
    assert first == again != other
    for chosen in (first, other):
        groups = [sample.metadata["group"] for sample, _ in chosen]
        assert len(chosen) == 8
        assert {group["outcome"] for group in groups} == {"answered", "failed"}
        assert {group["feedback"] for group in groups} == {"no feedback", "bad feedback"}
        assert {group["time"] for group in groups} == {"period 1", "period 2", "period 3", "period 4"}
        assert [sample.sample_id for sample, _ in chosen] == sorted(sample.sample_id for sample, _ in chosen)


@pytest.mark.parametrize(
    ("text", "kept", "kind"),
    [
        ("Write to ada.b+c@mail.example.org!", "Write to [e-mail address]!", "e-mail address"),
        ("Call +49 (0)30 123-4567 now", "Call [phone number] now", "phone number"),
        ("Call 030 1234567.", "Call [phone number].", "phone number"),
        ("Call (555) 123-4567 or 555-123-4567", "Call [phone number] or [phone number]", "phone number"),
        ("My key is sk-proj-abcdef1234567890XYZ", "My key is [key]", "key"),
        ("Token 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "Token [key]", "key"),
        ("On 2026-11-17 it cost 1.250,00 for 10 000 000 units", None, ""),
        ("Version 3.11.7 of 2024, 22 cars, 0.5 seconds, chapter 10.2.3", None, ""),
    ],
)
def test_personal_data_are_masked_and_listed(text: str, kept: str | None, kind: str) -> None:
    sampled = sample_traces([pair(1, text, text)], {}, 1)
    ((sample, output),) = sampled.pairs
    assert sample.query == output.response.text == (kept or text)
    assert output.retrieved[0].doc.text == "Call [phone number]."
    assert sample.metadata["cluster"].startswith("masked-")  # and not the same for two people
    counts = sampled.masked_by_kind()
    assert counts["e-mail address"] == 1 + 2 * (kind == "e-mail address")
    assert counts["key"] == 2 * (kind == "key")


def trace(number: int, query: str, **more: Any) -> list[dict[str, Any]]:
    common = {"trace_id": f"{number:032x}", "start_time": f"2026-11-1{number}T10:00:00Z"}
    hops = [
        {
            **common,
            "span_id": f"{number}{hop}",
            "parent_id": f"{number}0",
            "name": "search",
            "attributes": {
                "openinference.span.kind": "RETRIEVER",
                "input.value": f"{query} {hop}",
                "retrieval.documents.0.document.id": f"d{hop}",
                "retrieval.documents.0.document.content": "text",
            },
        }
        for hop in (1, 2)
    ]
    root = {
        **common,
        "span_id": f"{number}0",
        "name": "ask",
        "attributes": {"input.value": query, "output.value": "yes"},
    }
    return [{**root, **more}, *hops]


def test_the_command_writes_samples_and_says_what_it_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {
        "name": "gen_ai.evaluation.result",
        "attributes": {"gen_ai.evaluation.score.value": 0.0, "gen_ai.evaluation.name": "thumbs"},
    }
    spans = [
        *trace(1, "Who is bob@example.org?"),
        *trace(2, "When is it?", events=[said]),
        *trace(3, "When is it"),
    ]
    path = tmp_path / "spans.jsonl"
    path.write_text("".join(json.dumps(span) + "\n" for span in spans))
    out = ["--samples", str(tmp_path / "s.jsonl"), "--outputs", str(tmp_path / "o.jsonl")]
    assert main(["import-traces", str(path), *out, "--sample", "5"]) == 0
    text = capsys.readouterr().out
    assert "1 traces ask nearly the same as another one" in text
    assert "bad feedback: 1 of 1" in text
    assert "masked: e-mail address" in text
    assert [sample.query for sample in ae.load_dataset(tmp_path / "s.jsonl")] == [
        "Who is [e-mail address]?",
        "When is it?",
    ]
    assert "bob" not in (tmp_path / "o.jsonl").read_text()
    assert main(["import-traces", str(path), *out, "--sample", "5", "--json", "--force"]) == 0
    assert json.loads(capsys.readouterr().out)["repeated_questions"] == 1


def test_each_hop_of_a_retrieval_is_kept_in_order(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    path.write_text("".join(json.dumps(span) + "\n" for span in trace(1, "Why?")))
    ((_, output),) = import_traces(path).pairs
    assert output.extra["retrievals"] == [
        {"query": "Why? 1", "documents": ["d1"]},
        {"query": "Why? 2", "documents": ["d2"]},
    ]
    assert [hit.doc.doc_id for hit in output.retrieved] == ["d1", "d2"]


def test_feedback_and_tokens_of_mlflow(tmp_path: Path) -> None:
    attributes = {
        "mlflow.spanType": '"CHAT_MODEL"',
        "mlflow.spanInputs": '"Why?"',
        "mlflow.spanOutputs": '"So."',
        "mlflow.chat.tokenUsage": '{"input_tokens": 7, "output_tokens": 2}',
    }
    assessment = {"assessment_name": "helpful", "feedback": {"value": False}}
    document = {
        "info": {"trace_id": "tr-1", "assessments": [assessment]},
        "data": {
            "spans": [
                {"span_id": "a", "name": "ask", "attributes": {"mlflow.spanInputs": '"Why?"'}},
                {"span_id": "b", "parent_span_id": "a", "name": "chat", "attributes": attributes},
            ]
        },
    }
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document))
    ((_, output),) = import_traces(path).pairs
    assert output.extra["feedback"] == [{"name": "feedback helpful", "value": 0.0}]
    assert (output.extra["input_tokens"], output.extra["output_tokens"]) == (7, 2)
