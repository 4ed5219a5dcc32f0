"""What a system tells as a time and cannot be one: the answer counts, the time is not measured."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.runner import NoTimeWarning
from auepora_eval.core.types import TIMES_LEFT_OUT, EvaluationSample, SystemOutputs
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_sample, an_output, one_output
from tests.servers import chat_server

HUGE = 1e308
EVERY = {"end_to_end": HUGE, "retrieval": HUGE, "generation": HUGE, "ttft": HUGE}
METRICS = (
    "exact_match,mean_latency,mean_latency[retrieval],latency@0.95,throughput,tokens_per_second,"
    "time_to_first_token,time_per_output_token,slo_share@2"
)

OF_STAGES = ("mean_latency[retrieval]", "time_to_first_token", "time_per_output_token")


class Tells:
    """A system that tells these times."""

    name = "tells"

    def __init__(self, timings: dict[str, Any]) -> None:
        self.timings = timings

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        return an_output("a", "yes", timings=self.timings)


@pytest.mark.parametrize(
    "told", [HUGE, math.inf, -math.inf, math.nan, -5.0, 1.1e9, np.float64("nan"), 10**400]
)
def test_the_answer_is_kept_and_the_time_is_not(told: Any) -> None:
    system = Tells({"end_to_end": told, "retrieval": 0.5, "ttft": told})
    with pytest.warns(NoTimeWarning, match="as end_to_end, which cannot be a time"):
        output = one_output(system)
    assert (output.error, output.response.text) == (None, "yes")
    assert set(output.timings) == {"end_to_end", "retrieval"}
    assert 0 < output.timings["end_to_end"] < 5  # our own clock, around the call
    assert set(output.extra[TIMES_LEFT_OUT]) == {"end_to_end", "ttft"}


@pytest.mark.parametrize("name", METRICS.split(",")[1:])
def test_a_metric_of_that_time_says_why_it_has_no_value(name: str) -> None:
    told = an_output("a", "yes", timings=dict(EVERY), extra={"output_tokens": 3})
    with pytest.warns(NoTimeWarning):
        checked = one_output(Tells(EVERY), top_k=5, sample=a_sample())
    checked.extra["output_tokens"] = 3
    for output in (told, checked):  # made by hand, and by a call
        result = parse_metric(name).compute([a_sample("1"), a_sample("2")], [output, output])
        if output is checked and name not in OF_STAGES:  # our own clock has measured it
            assert result.value >= 0
            continue
        assert math.isnan(result.value)
        assert result.scores[0].failed
        assert "is not a duration" in result.scores[0].reason


def test_an_endpoint_that_tells_them_can_be_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f'{{"sample_id": "{n}", "query": "q{n}", "reference_answer": "yes"}}\n' for n in range(3)]
    Path("d.jsonl").write_text("".join(lines), encoding="utf-8")
    reply = {"answer": "yes", "timings": EVERY, "usage": {"output_tokens": 4}}
    common = ["--metrics", METRICS, "--out", "runs", "--dataset", "d.jsonl"]
    with chat_server(says=lambda body: reply, bare=True) as server:
        words = [
            "run",
            "--system",
            f"http:{server.url}",
            "--id",
            "x",
            "--spans",
            "s.jsonl",
            *common,
        ]
        assert main(words) == 3  # the times of the stages are wanted, and not there
    span = json.loads(Path("s.jsonl").read_text(encoding="utf-8"))["resourceSpans"][0]["scopeSpans"][0][
        "spans"
    ][0]
    assert int(span["startTimeUnixNano"]) < int(span["endTimeUnixNano"])  # by our own clock
    shown = capsys.readouterr()
    assert "1.0000" in shown.out
    assert main(["show", "x", "--out", "runs"]) == 0
    table = capsys.readouterr().out
    assert shown.err.count("as end_to_end, which cannot be a time") == 1
    scored = {line.split()[0]: line for line in table.splitlines() if "/3 " in line}
    assert "3/3" in scored["mean_latency[end_to_end]"]
    assert "0/3" in scored["mean_latency[retrieval]"]
    # A journal of before holds them as they came.
    old = Path("old.jsonl")
    record = {"sample_id": "", "answer": "yes", "timings": EVERY}
    old.write_text("".join(json.dumps({**record, "sample_id": str(n)}) + "\n" for n in range(3)))
    words = ["score", "--outputs", str(old), "--id", "y", *common]
    assert main(words) == 3
    assert "1.0000" in capsys.readouterr().out
