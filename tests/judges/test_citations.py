"""Citations by a judge: one call per answer, about all claims and all cited passages."""

from __future__ import annotations

from typing import Any

import pytest

from auepora_eval.calls.chat import ChatModel
from auepora_eval.core.types import Document, MetricResult, Response, RetrievedDocument, SystemOutputs
from auepora_eval.errors import CallError
from auepora_eval.judges.ask import Asking
from auepora_eval.judges.llm import LlmJudge
from auepora_eval.judges.metric import JudgedMetric
from auepora_eval.judges.question import Question
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_sample
from tests.judges.oracles import judging_by
from tests.judges.scripted import judge_server, material_of, supported

PIER, CARS, GULLS = "The Annet moors at the north pier.", "She carries 22 cars.", "Gulls nest there."
ANSWER = "The Annet moors at the north pier [1]. She carries 22 cars [1][2]. Gulls nest there [9]. It is old."


def answered(text: str, **metadata: Any) -> SystemOutputs:
    texts = (PIER, CARS, GULLS)
    hits = [RetrievedDocument(Document(f"d{rank}", text), 1.0, rank) for rank, text in enumerate(texts, 1)]
    return SystemOutputs(hits, Response(text, metadata=metadata))


def metric_of(name: str, asking: Asking) -> JudgedMetric:
    metric = parse_metric(name)
    assert isinstance(metric, JudgedMetric)
    return metric.judged_by(asking)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("judged_citation_precision", 2 / 4),  # [1] and [2] are right; [1] of the second, and [9], are not
        ("judged_citation_recall", 2 / 4),  # the third leads nowhere, the fourth cites nothing
    ],
)
def test_by_hand_in_one_call(name: str, value: float) -> None:
    with judge_server(supported) as server, ChatModel(server.url, "m", plain_http=True) as chat:
        metric = metric_of(name, Asking(LlmJudge(chat)))
        result = metric.compute([a_sample()], [answered(ANSWER)])
        (shown,) = map(material_of, server.requests)
    assert result.value == value
    # Only claims that cite something, and only what is cited.
    assert list(shown) == ["passage 1", "passage 2", "claim 1", "claim 2"]


def score_of(name: str, output: SystemOutputs, judge: Any = supported) -> MetricResult:
    def said(question: Question) -> object:
        return judge(question.material)

    return metric_of(name, judging_by(said)).compute([a_sample()], [output])


def test_an_answer_that_cites_nothing_has_no_precision_and_the_worst_recall() -> None:
    none = answered(PIER)
    assert score_of("judged_citation_precision", none).scores[0].reason == "the answer cites nothing"
    assert score_of("judged_citation_recall", none).value == 0


def test_what_is_not_known_is_not_scored() -> None:
    def down(material: Any) -> object:
        raise CallError("the server is down", kind="http_5xx")

    listed = answered(f"{PIER} {CARS}", citations=[{"file_name": "d1"}])
    assert "it is not known which" in score_of("judged_citation_recall", listed).scores[0].reason
    score = score_of("judged_citation_recall", answered(ANSWER), down).scores[0]
    assert (score.value, score.failed) == (None, True)
    assert "the server is down" in score.reason
