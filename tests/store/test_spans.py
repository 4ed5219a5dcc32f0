"""Runs as spans: what a collector gets, by the names of the conventions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.core.plan import EvaluationPlan, PartialCoverageWarning
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.types import EvaluationSample, Response, SystemOutputs
from auepora_eval.io.spans import Span
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.store.database import Database
from auepora_eval.store.spans import content_is_wanted, run_spans
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample, an_output

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


class Staged:
    """Answers the first sample with stages and tokens, fails on the second, has no stages on the third."""

    name = "staged"

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        if sample.sample_id == "s2":
            raise ConnectionError("no line")
        if sample.sample_id == "s3":
            return an_output("b", "no")
        timings = {"retrieval": 0.25, "generation": 0.5, "end_to_end": 1.0}
        output = an_output("ab", "yes", timings=timings, extra={"input_tokens": 11, "output_tokens": 5})
        output.response = Response("yes", metadata={"model": "small-1", "finish_reason": "stop"})
        return output


@pytest.fixture
def stored(tmp_path: Path) -> EvaluationResultsStorage:
    storage = EvaluationResultsStorage(tmp_path / "runs")
    plan = EvaluationPlan(parse_metrics("recall@2,exact_match"))
    configuration = {"system": "openai:http://127.0.0.1:1/v1#small"}
    evaluator = AueporaEvaluator(Staged(), plan, configuration=configuration)
    first, second = (
        a_sample("s1", "Is it?", relevant="a", reference="yes"),
        a_sample("s2", "Why?", reference="x"),
    )
    data = a_dataset(first, second, a_sample("s3", "And?", reference="yes"))
    with pytest.warns(PartialCoverageWarning):
        storage.evaluate(evaluator, data, evaluation_id="r")
    return storage


def by_sample(stored: EvaluationResultsStorage, *, content: bool = False) -> dict[str, list[Span]]:
    traces = run_spans(stored, "r", content)
    return {str(spans[0].attributes.get("auepora.sample.id", "")): spans for spans in traces}


def scores(span: Span) -> dict[str, Any]:
    told = [event.attributes for event in span.events if event.name == "gen_ai.evaluation.result"]
    return {
        each["gen_ai.evaluation.name"]: each.get(
            "gen_ai.evaluation.score.value", each.get("gen_ai.evaluation.score.label")
        )
        for each in told
    }


def test_a_call_has_its_stages_within_it(stored: EvaluationResultsStorage) -> None:
    call, retrieval, chat = by_sample(stored)["s1"]
    assert [span.name for span in (call, retrieval, chat)] == [
        "invoke_workflow staged",
        "retrieval",
        "chat small",
    ]
    assert [span.seconds for span in (call, retrieval, chat)] == pytest.approx([1.0, 0.25, 0.5], abs=1e-6)
    assert retrieval.parent_id == chat.parent_id == call.span_id
    assert {span.trace_id for span in (call, retrieval, chat)} == {call.trace_id}
    assert retrieval.end_ns == chat.start_ns
    with Database.read(stored.state("r").database) as database:
        ((at,),) = database.select("SELECT at FROM call WHERE sample = 's1'")
    assert call.end_ns == int(at * 1e9)
    told = {name: value for name, value in chat.attributes.items() if value is not None}
    assert told == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "small",
        "gen_ai.response.model": "small-1",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 5,
    }


def test_scores_are_events_of_what_they_judge(stored: EvaluationResultsStorage) -> None:
    traces = by_sample(stored)
    assert scores(traces["s1"][0]) == {"recall@2": 1.0, "exact_match": 1.0}
    assert scores(traces["s2"][0]) == {
        "recall@2": "skipped",
        "exact_match": "failed",
    }  # not measured is not 0
    assert scores(traces["s3"][0]) == {"recall@2": "skipped", "exact_match": 0.0}
    skipped = traces["s3"][0].events[0].attributes
    assert skipped["gen_ai.evaluation.explanation"]
    evaluation, scoring = traces[""]
    assert scoring.parent_id == evaluation.span_id
    assert scores(scoring) == {"recall@2": 1.0, "exact_match": 0.5}
    assert all((event.time_ns >= (traces["s1"][0].end_ns or 0)) for event in scoring.events)


def test_a_failed_call_is_an_error_and_what_was_not_timed_has_no_span(
    stored: EvaluationResultsStorage,
) -> None:
    traces = by_sample(stored)
    assert len(traces["s2"]) == len(traces["s3"]) == 1
    assert traces["s2"][0].error == "no line"
    assert traces["s2"][0].attributes["error.type"] == "ConnectionError"


def test_texts_are_in_spans_only_where_they_are_wanted(
    stored: EvaluationResultsStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ("Is it?", "text of a", '"yes"')
    quiet, open_ = (str(by_sample(stored, content=content)["s1"]) for content in (False, True))
    assert [text in quiet for text in texts] == [False] * 3
    assert [text in open_ for text in texts] == [True] * 3
    assert not content_is_wanted()
    monkeypatch.setenv(CONTENT, "true")
    assert content_is_wanted()


def test_a_run_that_is_exported_again_has_the_same_spans(stored: EvaluationResultsStorage) -> None:
    assert by_sample(stored) == by_sample(stored)
    assert by_sample(stored)["s1"][0].attributes["auepora.time.known"] is True


def test_no_times_are_invented_for_answers_that_were_only_scored(stored: EvaluationResultsStorage) -> None:
    run = replace(stored.load_run("r"), evaluation_id="scored")
    stored.save_run(run)
    call = list(run_spans(stored, "scored", False))[0][0]  # noqa: RUF015 - read to its end
    assert call.attributes["auepora.time.known"] is False
    assert call.seconds == pytest.approx(1.0, abs=1e-6)
