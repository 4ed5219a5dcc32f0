"""auepora import-traces: from the export of a tracing tool to a table of scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.store.storage import EvaluationResultsStorage, StoredRun


def trace_of(
    trace_id: str, query: str | None, answer: str | None, *docs: str, sample: str | None = None
) -> list[dict[str, Any]]:
    def span(span_id: str, parent: str | None, start: int, end: int, **attributes: Any) -> dict[str, Any]:
        times = {"start_time": f"2026-11-01T10:00:0{start}Z", "end_time": f"2026-11-01T10:00:0{end}Z"}
        ids = {"context": {"trace_id": trace_id, "span_id": span_id}, "parent_id": parent}
        return {"name": span_id, **ids, **times, "attributes": attributes}

    about = {"input.value": query, "output.value": answer, "app.sample": sample}
    found = [{"document.id": doc, "document.content": f"text of {doc}"} for doc in docs]
    return [
        span(
            f"{trace_id}-r",
            f"{trace_id}-0",
            1,
            2,
            **{"openinference.span.kind": "RETRIEVER", "retrieval.documents": found},
        ),
        span(f"{trace_id}-0", None, 0, 4, **{"openinference.span.kind": "CHAIN", **about}),
    ]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    traces = [
        trace_of("t1", "How many boats?", "three", "d1", "d2", sample="s1"),
        trace_of("t2", "who keeps  THE light?", "Ansel", "d3", sample="s2"),
        trace_of("t3", None, "no question"),
        trace_of("t4", "How many boats?", "four", "d1", sample="s1"),
        trace_of("t5", "\x1b[31mWhy?", None),
    ]
    spans = [span for trace in traces for span in trace]
    spans = spans[::2] + spans[1::2]  # the spans of a trace lie apart
    lines = [*map(json.dumps, spans), '{"no": "span"}']
    (tmp_path / "spans.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    gold = [
        {"sample_id": "s1", "query": "How many boats?", "relevant_docs": ["d1"], "reference_answer": "three"},
        {
            "sample_id": "s2",
            "query": "Who keeps the light?",
            "relevant_docs": ["d9"],
            "reference_answer": "Ansel",
        },
        {"sample_id": "s3", "query": "Never asked?", "relevant_docs": ["d9"], "reference_answer": "x"},
    ]
    (tmp_path / "gold.jsonl").write_text("\n".join(map(json.dumps, gold)), encoding="utf-8")
    return tmp_path


def records(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def test_traces_become_samples_and_outputs_that_are_scored(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import-traces", "spans.jsonl", "--samples", "live.jsonl", "--outputs", "live.p.jsonl"]) == 0
    said = capsys.readouterr().out
    assert "3 of 5 traces imported" in said
    assert "1 with no question (input.value, or a user's message): t3" in said
    assert "1 with neither an answer nor documents nor an error: t5" in said
    assert "1 records that are no spans" in said
    assert [(each["sample_id"], each["query"]) for each in records("live.jsonl")] == [
        ("t1", "How many boats?"),
        ("t2", "who keeps  THE light?"),
        ("t4", "How many boats?"),
    ]
    first = records("live.p.jsonl")[0]
    assert (first["response"]["text"], first["timings"]) == ("three", {"end_to_end": 4.0, "retrieval": 1.0})
    score = ["score", "--dataset", "live.jsonl", "--outputs", "live.p.jsonl", "--id", "live"]
    assert main([*score, "--metrics", "mean_latency[retrieval]"]) == 0
    assert "1 s" in capsys.readouterr().out


@pytest.mark.parametrize(
    "flags", [(), ("--id-attribute", "app.sample")], ids=["by the question", "by an attribute"]
)
def test_gold_is_joined(work: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]) -> None:
    asked = [*"import-traces spans.jsonl --dataset gold.jsonl --outputs p.jsonl --json".split(), *flags]
    assert main(asked) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["traces"], told["imported"], told["without_trace"]) == (5, 2, 1)
    assert told["left_out"]["the sample of a trace before it"] == ["t4"]
    assert sum(map(len, told["left_out"].values())) + told["imported"] == told["traces"]  # none is lost
    assert [each["sample_id"] for each in records("p.jsonl")] == ["s1", "s2"]
    assert main(
        ["score", "--dataset", "gold.jsonl", "--outputs", "p.jsonl", "--metrics", "recall@2", "--json"]
    ) in (0, 3)
    rows = json.loads(capsys.readouterr().out)["query_results"]
    assert [row["individual_metrics"].get("recall@2") for row in rows] == [1.0, 0.0, None]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("spans.jsonl", "--outputs", "p.jsonl"), 2, "either --samples"),
        (("gold.jsonl", "--outputs", "p.jsonl", "--samples", "s.jsonl"), 2, "none of its 0 traces"),
        (("spans.jsonl", "--outputs", "gold.jsonl", "--samples", "s.jsonl"), 4, "exists already"),
        (
            ("spans.jsonl", "--outputs", "p.jsonl", "--dataset", "gold.jsonl", "--id-attribute", "x"),
            2,
            "no attribute 'x'",
        ),
    ],
)
def test_impossible_requests_write_nothing(
    work: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, said: str
) -> None:
    assert main(["import-traces", *words]) == code
    assert said in capsys.readouterr().err
    assert not Path("p.jsonl").exists()
    assert not Path("s.jsonl").exists()


def test_own_spans_round_trip(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["run", "--dataset", "demo", "--system", "auepora_eval.demo.systems:bm25", "--id", "r"]
    assert main([*run, "--limit", "5", "--metrics", "recall@5"]) == 0
    assert main(["show", "r", "--spans", "own.jsonl"]) == 0
    asked = ["import-traces", "own.jsonl", "--dataset", "demo", "--outputs", "own.p.jsonl"]
    assert main([*asked, "--id-attribute", "auepora.sample.id"]) == 0
    path = EvaluationResultsStorage("data/evaluation/results").find("r")
    with StoredRun(path) as stored:
        outputs = [json.loads(reply) for _, reply in stored.records()]
    again = records("own.p.jsonl")
    assert len(again) == 5
    for before, after in zip(outputs, again, strict=True):
        assert before["sample_id"] == after["sample_id"]
        assert before["response"]["text"] == after["response"]["text"]
        assert [(hit["doc_id"], hit["text"], hit["rank"]) for hit in before["retrieved"]] == [
            (hit["doc_id"], hit["text"], hit["rank"]) for hit in after["retrieved"]
        ]
        assert after["timings"]["retrieval"] == pytest.approx(before["timings"]["retrieval"], abs=1e-6)
