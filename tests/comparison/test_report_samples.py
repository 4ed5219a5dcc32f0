"""The samples of a report: which are shown, in which order, what is marked, and how large the page is."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.comparison.compare import compare_runs
from auepora_eval.core.types import (
    Document,
    EvaluationRun,
    EvaluationSample,
    Failure,
    MetricResult,
    Response,
    RetrievedDocument,
    SampleScore,
    SystemOutputs,
    TargetCategory,
)
from auepora_eval.pages.components.sample_choice import MOST_SAMPLES, choose_samples, most_to_explain
from auepora_eval.pages.report import report_html, slice_fields
from auepora_eval.pages.sample_list import slice_values
from tests.builders import a_sample

TARGET = TargetCategory.GENERATION_CORRECTNESS
EVIL = "<img src=x onerror=alert(1)>\"'></details></script><script>alert(2)</script>\u202e"


def a_run(name: str = "new", **scores: Sequence[float | str | None]) -> EvaluationRun:
    """A run with these scores of its metrics; None is skipped, a text is why it failed."""
    count = len(next(iter(scores.values())))
    results = []
    for metric, values in scores.items():
        every = [
            SampleScore(None, value, (), f"q{n}", failed=True)
            if isinstance(value, str)
            else SampleScore(value, "" if value is not None else "no gold", (), f"q{n}")
            for n, value in enumerate(values)
        ]
        known = [score.value for score in every if score.value is not None]
        details = {"bounds": [0.0, 1.0], "num_samples": len(known), "num_total": count}
        results.append(MetricResult(metric, TARGET, sum(known) / len(known), details, every))
    samples = [a_sample(f"q{n}", f"question {n}", relevant="a") for n in range(count)]
    hits = [RetrievedDocument(Document("a", "text of a"), 1.0, 1)]
    return EvaluationRun(
        f"run-{name}",
        name,
        "data",
        "f" * 64,
        results,
        samples,
        [SystemOutputs(hits, Response("yes")) for _ in samples],
    )


def order(*runs: EvaluationRun) -> list[str]:
    return choose_samples(runs).ids


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        pytest.param(
            {"flat": [1.0] * 4, "split": [0.0, 1.0, 0.0, 1.0]}, "split", id="not the one that is 1 everywhere"
        ),
        pytest.param({"rare": [0.0, 1.0, None, None], "all": [0.0, 1.0, 0.0, 1.0]}, "all", id="more samples"),
        pytest.param(
            {"mild": [0.4, 0.6, 0.4, 0.6], "split": [0.0, 1.0, 1.0, 1.0]}, "split", id="larger differences"
        ),
        pytest.param(
            {"fine": [1.0] * 4, "broken": [1.0, 1.0, 1.0, "timeout"]}, "broken", id="a failure is the worst"
        ),
        pytest.param({"one": [1.0] * 4, "two": [1.0] * 4}, "one", id="nothing to explain"),
    ],
)
def test_the_metric_with_the_most_to_explain(
    scores: dict[str, list[float | str | None]], expected: str
) -> None:
    metric = most_to_explain([a_run("new", **scores)])
    assert metric is not None
    assert metric.name == expected


def test_between_two_runs_the_difference_is_explained() -> None:
    before = a_run("old", split=[0.0, 1.0, 0.0, 1.0], moved=[0.5, 0.5, 0.5, 0.5])
    after = a_run("new", split=[0.0, 1.0, 0.0, 1.0], moved=[0.5, 0.5, 0.5, 1.0])
    metric = most_to_explain([before, after])
    assert metric is not None
    assert metric.name == "moved"


def test_the_worst_comes_first_and_what_is_not_scored_last() -> None:
    assert order(a_run(m=[0.5, None, 0.0, 1.0, "timeout"])) == ["q2", "q4", "q0", "q3", "q1"]


def test_of_two_runs_the_largest_loss_comes_first() -> None:
    before, after = a_run("old", m=[0.0, 1.0, 0.5, 0.0]), a_run("new", m=[1.0, 0.0, 0.25, 0.0])
    assert order(before, after) == ["q1", "q2", "q3", "q0"]


def test_lower_is_better() -> None:
    run = a_run(m=[0.1, 0.9, 0.5])
    run.results[0].details["higher_is_better"] = False
    assert order(run) == ["q1", "q2", "q0"]


def test_of_very_many_samples_some_are_shown_and_the_page_says_so() -> None:
    count = MOST_SAMPLES + 500
    values: list[float | str | None] = [n / count for n in range(count)]
    before, after = a_run("old", m=values), a_run("new", m=[*values[:-1], 0.0])
    assert len(order(before)) == pytest.approx(500 + 200, abs=60)
    page = report_html([before, after], compare_runs(before, after, resamples=200))
    shown = page.count('<details class="sample"')
    assert 600 < shown <= 1200
    about = "the 500 worst by m, the 500 with the largest change of it and 200 at random"
    assert f"Of {count:,} samples this page shows {about}" in page
    assert f'id="s-q{count - 1}"' in page  # the one that changed
    assert order(before) == order(before)  # not another 200 each time


def test_a_sample_that_one_run_lacks_is_shown_and_the_numbers_say_what_they_are_of() -> None:
    before, after = a_run("old", m=[0.0, 1.0] * 30), a_run("new", m=[1.0, 1.0] * 29 + [0.0])
    page = report_html([before, after], compare_runs(before, after))
    assert page.count('<details class="sample"') == 60
    assert "on the 59 of 60 samples that both runs have" in page
    assert "59 of 60<" in page  # beside the values of the comparison


def test_labels_that_make_slices() -> None:
    samples = [
        a_sample(str(n), labels={"kind": "who" if n % 2 else "why", "id": str(n), "same": 1, "list": [1]})
        for n in range(20)
    ]
    assert slice_values(samples) == {"kind": ["who", "why"]}


def test_hostile_text_in_every_field() -> None:
    doc = Document(EVIL, EVIL, {"title": EVIL, "spans": [{"start": 0, "end": 9}], "source": EVIL})
    samples = [
        EvaluationSample(f"{EVIL}{n}", EVIL, [doc], None, Response(EVIL), {"kind": EVIL, EVIL: EVIL})
        for n in range(60)
    ]
    good = SystemOutputs([RetrievedDocument(doc, 1.0, 1)], Response(f"{EVIL} [1] [{EVIL}:1:0-4]"))
    bad = SystemOutputs([], Response(""), error=Failure(EVIL, EVIL))
    scores = [SampleScore(n % 2, "", (), sample.sample_id) for n, sample in enumerate(samples)]
    skipped = [SampleScore(None, EVIL, (), sample.sample_id) for sample in samples]
    results = [
        MetricResult(EVIL, TARGET, 0.5, {"notes": [EVIL]}, scores),
        MetricResult("m", TARGET, math.nan, {}, skipped),
    ]
    one = EvaluationRun(EVIL, EVIL, EVIL, EVIL, results, samples, [good] * 60, environment={"python": EVIL})
    other = replace(one, evaluation_id="b", system_name="b", outputs=[bad] * 60)
    page = report_html([one, other], compare_runs(one, other, resamples=100))
    inside = page.partition("<body")[2]
    assert "<img" not in inside
    assert page.count("<script>") == page.count("</script>") == 1
    assert page.count("<details") == page.count("</details>") == 61
    assert "\u202e" not in page
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))  # sixty ids of samples that differ only at their ends


def test_the_demo_is_small_and_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--out", "runs"]) == 0
    page = (tmp_path / "runs" / "demo-bm25-vs-demo-hybrid.html").read_bytes()
    assert len(page) < 500_000
    text = page.decode()
    assert text.count('<details class="sample"') == 160
    assert "http://" not in text
    assert "https://" not in text
    assert text.index("is better at finding") < text.index('id="changes"')  # the verdict in words is on top
    assert "not retrieved" in text
    links = set(re.findall(r'href="#([^"]+)"', text))
    targets = set(re.findall(r' id="([^"]+)"', text))
    assert {link for link in links if not link.startswith(("metric=", "slice="))} <= targets
    from auepora_eval import compare, load_run

    runs = [load_run(tmp_path / "runs" / f"demo-{name}.results.json") for name in ("bm25", "hybrid")]
    assert "difficulty" in slice_fields(runs)
    for shown in (runs[0]._repr_html_(), compare(*runs)._repr_html_()):
        assert len(shown.encode()) < 20_000
        assert "<script" not in shown
