"""Runs as spans: what tracing tools and our own reader find in the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.plan import EvaluationPlan, PartialCoverageWarning
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.types import EvaluationSample, SystemOutputs
from auepora_eval.io.spans import Span, SpanDump
from auepora_eval.io.traces import TraceReader
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample, an_output

TIMES = {"retrieval": 0.25, "generation": 0.5, "end_to_end": 1.0}


class Staged:
    """Answers the first sample with stages and tokens, fails on the second, has no stages on the third."""

    name = "staged"

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        if sample.sample_id == "s2":
            raise ConnectionError("no line")
        if sample.sample_id == "s3":
            return an_output("b", "no")
        return an_output("ab", "yes", timings=TIMES, extra={"input_tokens": 11, "output_tokens": 5})


@pytest.fixture
def file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    plan = EvaluationPlan(parse_metrics("recall@2,exact_match"))
    data = a_dataset(
        a_sample("s1", "Is it?", relevant="a", reference="yes"),
        a_sample("s2", "Why?", reference="x"),
        a_sample("s3", "And?", reference="yes"),
    )
    storage = EvaluationResultsStorage(tmp_path / "runs")
    with pytest.warns(PartialCoverageWarning):
        storage.evaluate(AueporaEvaluator(Staged(), plan), data, evaluation_id="r")
    path = tmp_path / "spans.jsonl"
    words = ["show", "r", "--out", str(tmp_path / "runs"), "--spans", str(path)]
    assert main(words) == 0
    assert f"spans: 5 in {path}" in capsys.readouterr().err
    assert main(words) == 4  # it exists
    before = path.read_bytes()
    assert main([*words, "--force", "--json"]) == 0
    assert path.read_bytes() == before
    return path


def by_sample(path: Path) -> dict[str, list[Span]]:
    traces = TraceReader().add(SpanDump(path)).traces.values()
    return {str(spans[0].attributes["auepora.sample.id"]): spans for spans in traces}


def scores(span: Span) -> dict[str, Any]:
    names = ("gen_ai.evaluation.score.value", "gen_ai.evaluation.score.label")
    told = [event.attributes for event in span.events if event.name == "gen_ai.evaluation.result"]
    return {
        each["gen_ai.evaluation.name"]: next(each[name] for name in names if name in each) for each in told
    }


def test_a_call_has_its_stages_within_it(file: Path) -> None:
    call, retrieval, chat = by_sample(file)["s1"]
    assert [span.name for span in (call, retrieval, chat)] == ["invoke_workflow staged", "retrieval", "chat"]
    assert [span.seconds for span in (call, retrieval, chat)] == pytest.approx([1.0, 0.25, 0.5], abs=1e-6)
    assert retrieval.parent_id == chat.parent_id == call.span_id
    assert retrieval.end_ns == chat.start_ns


def test_scores_are_events_and_failures_are_errors(file: Path) -> None:
    traces = by_sample(file)
    assert scores(traces["s1"][0]) == {"recall@2": 1.0, "exact_match": 1.0}
    assert scores(traces["s2"][0]) == {"recall@2": "skipped", "exact_match": "failed"}  # not 0
    assert scores(traces["s3"][0]) == {"recall@2": "skipped", "exact_match": 0.0}
    assert len(traces["s2"]) == len(traces["s3"]) == 1
    assert traces["s2"][0].error == "no line"
    assert traces["s2"][0].attributes["error.type"] == "ConnectionError"


def test_what_is_written_can_be_imported_again(file: Path) -> None:
    read = {trace.sample.sample_id: trace for trace in TraceReader("auepora.sample.id").add(SpanDump(file))}
    assert [read[name].sample.query for name in ("s1", "s2", "s3")] == ["Is it?", "Why?", "And?"]
    first = read["s1"].output
    assert (first.response.text, [hit.doc.doc_id for hit in first.retrieved]) == ("yes", ["a", "b"])
    assert first.timings == pytest.approx(TIMES, abs=1e-6)
    assert (first.extra["input_tokens"], first.extra["output_tokens"]) == (11, 5)
    assert [hit.doc.doc_id for hit in read["s3"].output.retrieved] == ["b"]
    assert read["s2"].output.error is not None


def test_each_line_is_a_document_of_otlp(file: Path) -> None:
    documents = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    spans = [one for each in documents for one in each["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    assert {len(span["traceId"]) for span in spans} == {32}
    assert {len(span["spanId"]) for span in spans} == {16}
