"""The pages as one file: the same pages that the server has, which link to each other and to nothing else."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html import escape, unescape
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.comparison.ranking import rank_runs
from auepora_eval.comparison.tables import ranking_in_words
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
from auepora_eval.pages.components.parts import number
from auepora_eval.pages.one_file import MOST
from tests.comparison.test_margins_and_repeats import scored
from tests.pages.filed import file_of
from tests.pages.serving import serving

TARGET = TargetCategory.GENERATION_CORRECTNESS
EVIL = "<img src=x onerror=alert(1)>\"'></details></script><script>alert(2)</script>\u202e"


def three(names: tuple[str, str, str] = ("old", "mid", "new")) -> list[EvaluationRun]:
    values = ([0.0] * 20, [1.0] * 4 + [0.0] * 16, [1.0] * 20)
    runs = [scored(each, name) for each, name in zip(values, names, strict=True)]
    return [replace(run, evaluation_id=f"r{place}") for place, run in enumerate(runs)]


def sections(page: str) -> dict[str, str]:
    """The text of each page of the file, by its address."""
    parts = re.split(r'<section id="(/[^"]*)">', page)[1:]
    return {unescape(place): words(text) for place, text in zip(parts[::2], parts[1::2], strict=True)}


def words(markup: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def test_the_pages_are_those_of_the_server(tmp_path: Path) -> None:
    before, after, _ = three()
    pages = sections(file_of(tmp_path, before, after)) | sections(file_of(tmp_path, after))
    with serving(tmp_path) as client:
        client.enter()
        for address in ("/run/r1/sample?baseline=r0&id=s3", "/run/r1/sample?id=s3"):
            shown = client.get(f"{address}&outcome=all&sort=recall%401").text
            texts, _ = words(re.split(r'<dl class="qa">', shown)[1]).split("Label the answer", 1)
            assert texts in pages[address]
        listed = words(client.get("/run/r1/samples?sort=recall%401").text)
        rows = re.search(r"Sample Question Answer .*", pages["/run/r1/samples"])
        assert rows is not None
        assert rows[0].partition(" Runs r1")[0][:400] in listed


def test_every_link_stays_in_the_file(tmp_path: Path) -> None:
    for runs in (three()[:1], three()[:2], three()):
        page = file_of(tmp_path, *runs)
        assert not re.search(r'(href|src|action)="(?!#)', page.partition("</head>")[2])
        assert "http://" not in page
        assert "https://" not in page
        ids = [unescape(each) for each in re.findall(r' id="([^"]*)"', page)]
        assert len(ids) == len(set(ids))
        links = {unescape(each) for each in re.findall(r'(?:href|action)="#([^"]*)"', page)}
        assert links <= set(ids)  # without scripts too, which add what a list is sorted and filtered by


def test_a_ranking_has_the_pages_of_its_pairs(tmp_path: Path) -> None:
    runs = three()
    ranking = rank_runs(runs, resamples=100)
    page = file_of(tmp_path, *runs)
    assert escape(ranking_in_words(ranking)) in page
    shown = words(page)
    assert all(number(each.value) in shown for one in ranking.metrics for each in one.standings)
    pages = sections(page)
    assert {"/compare?run=r0&run=r1&run=r2", "/compare?run=r0&run=r1", "/compare?run=r0&run=r2"} <= set(pages)
    assert "new says 3" in pages["/run/r2/sample?baseline=r0&id=s3"]
    same = [replace(run, results=runs[0].results) for run in runs]
    assert "no difference shown" in file_of(tmp_path, *same)


def test_the_worst_come_first_and_what_is_not_scored_last(tmp_path: Path) -> None:
    before, after = scored([0.0, 1.0, 0.5, 0.0, None], "old"), scored([1.0, 0.0, 0.25, 0.0, 1.0], "new")
    found = re.findall(
        r"/run/new/sample\?baseline=old&id=(\w+)$",
        "\n".join(sections(file_of(tmp_path, before, after))),
        re.M,
    )
    assert found == ["s1", "s2", "s3", "s0", "s4"]
    one = sections(file_of(tmp_path, scored([0.5, None, 0.0, 1.0], "one")))
    assert [place.rpartition("=")[2] for place in one if "/sample?" in place] == ["s2", "s0", "s3", "s1"]


def test_of_very_many_samples_the_worst_are_in_the_file(tmp_path: Path) -> None:
    count = MOST + 50
    before, after = (scored([n / count for n in range(count)], name) for name in ("old", "new"))
    for runs in ([before], [before, after]):
        page = file_of(tmp_path, *runs)
        assert page.count("/sample?") >= MOST
        assert len([place for place in sections(page) if "/sample?" in place]) == MOST
        assert f"This file has {MOST:,} of the {count:,} samples" in page


def test_hostile_text_in_every_field(tmp_path: Path) -> None:
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
    one = EvaluationRun("a", EVIL, EVIL, EVIL, results, samples, [good] * 60, environment={"python": EVIL})
    other = replace(one, evaluation_id="b", system_name="b", outputs=[bad] * 60)
    page = file_of(tmp_path, one, other)
    assert "<img" not in page.partition("<body")[2]
    assert page.count("<script>") == page.count("</script>") == 1
    assert page.count("<section") == page.count("</section>")
    assert "\u202e" not in page
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))  # sixty ids of samples that differ only at their ends


def test_what_cannot_be_seen_is_not_in_the_file(tmp_path: Path) -> None:
    """An escape sequence for a terminal, and a letter that turns the direction of what follows."""
    runs = three(("a\x1b[31m\x00red", "b\u202eevil\u2066", "می\u200cخواهم"))
    runs[0].samples[0] = replace(runs[0].samples[0], query="gnp\u202e.exe\x9b")
    page = file_of(tmp_path, *runs)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    assert "bevil" in page
    assert "می\u200cخواهم" in page  # a joiner is a letter of Persian


def test_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--out", "runs"]) == 0
    text = (tmp_path / "runs" / "demo-bm25-vs-demo-hybrid.html").read_text(encoding="utf-8")
    assert len(text) < 2_000_000
    assert len([place for place in sections(text) if "/sample?" in place]) == 160
    assert text.index("is better at finding") < text.index(
        'id="p0-changes"'
    )  # the verdict in words is on top
    assert "not retrieved" in text
    names = ["demo-bm25", "demo-hybrid", "--out", "runs"]
    assert main(["show", names[0], "--out", "runs", "--html", "one.html"]) == 0
    assert "/run/demo-bm25/samples" in sections(Path("one.html").read_text(encoding="utf-8"))
    assert main(["compare", *names, "--html", "two.html", "--by", "difficulty", "--alpha", "0.01"]) == 0
    two = Path("two.html").read_text(encoding="utf-8")
    assert "α 0.01" in two
    assert "difficulty" in sections(two)["/compare?run=demo-bm25&run=demo-hybrid"]
