"""The pages as one file in a real browser, opened as a colleague would open it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.types import EvaluationRun, Failure, Response
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.pages.filed import file_of

from .conftest import PHONE, Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Page

EVIL = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">\u202e"
COMMON = [
    "--dataset",
    "demo",
    "--limit",
    "30",
    "--metrics",
    "recall@5,ndcg@5,contains_answer,rejection_rate,mean_latency",
]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs of the demo's first 30 questions, and their report."""
    folder = tmp_path_factory.mktemp("demo")
    for name in ("bm25", "bigram"):
        system = f"auepora_eval.demo.systems:{name}"
        assert main(["run", "--system", system, "--id", name, "--out", str(folder), *COMMON]) == 0
    assert (
        main(["compare", "bm25", "bigram", "--out", str(folder), "--html", str(folder / "report.html")]) == 0
    )
    return folder


@pytest.fixture(scope="session")
def report(demo: Path) -> str:
    return (demo / "report.html").as_uri()


def loaded(demo: Path) -> list[EvaluationRun]:
    return [EvaluationResultsStorage(demo).load_run(name) for name in ("bm25", "bigram")]


LIST = "#/run/bigram/samples?baseline=bm25"  # the page of all samples in both runs
ROWS = ".here table.list tbody tr:visible"


def expect_rows(page: Page, count: int) -> None:
    """Wait until the list shows this many samples."""
    from playwright.sync_api import expect

    expect(page.locator(ROWS)).to_have_count(count)


def shown_ids(page: Page) -> list[str]:
    ids: list[str] = page.locator(f"{ROWS} th").all_inner_texts()
    return ids


def test_every_look(visit: Visitor, report: str) -> None:
    seen = visit(report)
    for width, dark in seen.every_look():
        assert seen.overlaps(".here tbody tr") == [], (width, dark)
    seen.look(PHONE, dark=False)
    seen.page.evaluate("() => scrollTo(0, 0)")
    assert seen.is_in_window(".here .lead p")  # the verdict in words, without scrolling
    verdicts = seen.boxes(".here #p0-changes .verdict")
    assert len(verdicts) == 4
    assert all(box["right"] <= PHONE for _, box in verdicts)  # and of each metric, without scrolling sideways
    seen.page.get_by_role("link", name="All samples").click()
    for width, dark in seen.every_look():
        assert seen.overlaps(".here table.list tbody tr") == [], (width, dark)
    seen.page.locator(f"{ROWS} a").first.click()
    seen.page.locator(".here .docs mark").first.wait_for()
    for width, dark in seen.every_look():
        assert seen.overlaps(".here .docs > li") == [], (width, dark)


@pytest.fixture(scope="session")
def reports(demo: Path) -> dict[str, str]:
    """Files of one run and of three, with failed calls, citations and answers that differ in a word."""
    first, second = loaded(demo)
    third = loaded(demo)[0]
    third.evaluation_id = third.system_name = "third"
    for place, output in enumerate(third.outputs):
        name = output.retrieved[0].doc.doc_id
        output.response = Response(f"{output.response.text} [1], see [{name}:5-40].")
        if place % 7 == 0:
            output.error = Failure("TimeoutError", "no answer within 60 s")
    written = {}
    for name, runs in {"one": [third], "two": [first, third], "three": [first, second, third]}.items():
        file = demo / f"{name}.html"
        file.write_text(file_of(demo / name, *runs), encoding="utf-8")
        written[name] = file.as_uri()
    return written


@pytest.mark.parametrize("name", ["one", "two", "three"])
def test_other_files(visit: Visitor, reports: dict[str, str], name: str) -> None:
    seen = visit(reports[name], dark=name == "two")
    assert seen.violations() == []
    seen.look(PHONE, dark=name != "two")
    assert seen.violations() == []
    assert not seen.scrolls_sideways()
    if name == "one":
        seen.page.get_by_role("link", name="Samples 30").click()
        expect_rows(seen.page, 30)
        assert seen.page.locator(f"{ROWS} .tag.down").count() == 5
    else:
        if name == "three":
            seen.page.get_by_role("link", name="third against bm25").last.click()
        seen.page.locator(".here").get_by_role("link", name="All samples").click()
        expect_rows(seen.page, 30)
    seen.page.locator(f"{ROWS} a").last.click()
    seen.page.locator(".here .tag", has_text="cited").first.wait_for()
    assert seen.page.locator(".here mark.cited, .here mark.both").count() > 0
    assert seen.violations() == []
    assert not seen.scrolls_sideways()


def test_twice_the_size(visit: Visitor, report: str) -> None:
    seen = visit(f"{report}{LIST}", zoom=2)
    assert not seen.scrolls_sideways()
    seen.page.locator(f"{ROWS} a").first.click()
    seen.page.locator(".here .docs").wait_for()
    assert not seen.scrolls_sideways()
    assert seen.is_in_window(".here h1")


def test_from_a_metric_to_the_gold_span_in_two_clicks(visit: Visitor, report: str) -> None:
    page = visit(report).page
    page.locator("#p0-changes").get_by_role("link", name="ndcg@5").click()
    page.locator(".here thead [aria-sort=descending]", has_text="ndcg@5").wait_for()
    page.locator(f"{ROWS} a").first.click()
    page.locator(".here .docs mark").first.wait_for()


def test_the_list_of_two_runs_is_sorted_and_filtered(visit: Visitor, demo: Path, report: str) -> None:
    before, after = ({s.sample_id: s.value for s in run["contains_answer"].scores} for run in loaded(demo))
    gains = {name: after[name] - value for name, value in before.items() if value is not None}  # type: ignore[operator]
    page = visit(f"{report}{LIST}").page
    expect_rows(page, 30)
    page.locator(".here thead").get_by_role("link", name="contains_answer").click()
    listed = [gains[name] for name in shown_ids(page) if name in gains]
    assert listed == sorted(gains.values()), "those that lost most come first"
    page.locator(".here input[name=words]").fill("power calf")
    expect_rows(page, 1)
    assert page.locator(".here .count").inner_text() == "1 of 30 samples"


def test_the_list_of_one_run(visit: Visitor, demo: Path, reports: dict[str, str]) -> None:
    page = visit(f"{reports['one']}#/run/third/samples").page
    expect_rows(page, 30)
    for words, count in (
        ("failed", 5),
        ("difficulty:hard", sum(each.labels["difficulty"] == "hard" for each in loaded(demo)[0].samples)),
        ("", 30),
    ):
        page.locator(".here input[name=words]").fill(words)
        expect_rows(page, count)
    page.locator(".here thead").get_by_role("link", name="mean_latency").click()
    seconds = {s.sample_id: s.value for s in loaded(demo)[0]["mean_latency[end_to_end]"].scores}
    measured = [value for name in shown_ids(page) if (value := seconds[name]) is not None]
    assert measured[5] == pytest.approx(max(measured[5:]), rel=0.02)  # after five failures, the slowest first


def test_keyboard_only(visit: Visitor, report: str) -> None:
    seen = visit(report)
    page = seen.page
    seen.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to the content"
    page.get_by_role("link", name="All samples").click()
    page.locator(f"{ROWS} a").first.focus()
    first, second = shown_ids(page)[:2]
    seen.press("j")
    assert page.locator(":focus").inner_text() == second
    seen.press("Enter")
    page.locator(".here h1", has_text=second).wait_for()
    seen.press("[")
    page.locator(".here h1", has_text=first).wait_for()
    seen.press("u")
    expect_rows(page, 30)
    seen.press("/")
    page.keyboard.type("jetty kelp")  # j and k are letters here
    assert page.locator(".here input[name=words]").input_value() == "jetty kelp"


def test_without_script(visit: Visitor, report: str) -> None:
    page = visit(report, java_script_enabled=False).page
    assert page.locator(".lead").is_visible()
    page.get_by_role("link", name="All samples").click()
    page.locator("table.list tbody tr a").first.click()
    assert page.locator(".docs .text mark:visible").first.is_visible()
    assert not page.locator(".lead").is_visible()
    page.get_by_role("link", name="Samples by").locator("visible=true").first.click()
    assert page.locator("table.list").is_visible()


def hostile(demo: Path) -> str:
    runs = loaded(demo)
    for run in runs:
        run.system_name, run.dataset_name = f"{EVIL}{run.system_name}", EVIL
        for sample, output in zip(run.samples, run.outputs, strict=True):
            sample.query, sample.labels = EVIL, {"kind": EVIL, EVIL: 1}
            output.response.text = EVIL
            for hit in output.retrieved:
                hit.doc.doc_id, hit.doc.text, hit.doc.metadata = f"{EVIL}{hit.rank}", EVIL, {"title": EVIL}
    return file_of(demo / "hostile", *runs)


def test_hostile_text_does_nothing(visit: Visitor, demo: Path) -> None:
    file = demo / "hostile.html"
    file.write_text(hostile(demo), encoding="utf-8")
    seen = visit(file.as_uri())
    seen.page.get_by_role("link", name="All samples").click()
    seen.page.locator(f"{ROWS} a").first.click()
    seen.page.locator(".here .docs").wait_for()
    assert seen.page.title() != "taken"
    assert seen.page.locator("main img, main script").count() == 0
    assert not seen.scrolls_sideways()


@pytest.mark.parametrize("options", [{}, {"bypass_csp": True}], ids=["with the policy", "without it"])
def test_the_policy_stops_what_escaping_would_miss(
    visit: Visitor, demo: Path, options: dict[str, Any]
) -> None:
    """The test of hostile text can fail: put into the page by hand, the same text acts without the policy."""
    file = demo / "injected.html"
    text = hostile(demo)
    file.write_text(text.replace('<div class="lead">', f'{EVIL}<div class="lead">', 1), encoding="utf-8")
    seen = visit(file.as_uri(), **options)
    assert (seen.page.title() == "taken") is bool(options)
    seen.console.clear()
    seen.requests.clear()


def test_only_the_lost_samples(visit: Visitor, report: str) -> None:
    page = visit(report).page
    page.get_by_role("link", name="Samples that got worse").click()
    page.locator(".here select[name=outcome]").wait_for()
    lost = page.locator(ROWS).count()
    assert 0 < lost < 30
    place = page.locator(".here th[aria-sort=descending]").evaluate("head => head.cellIndex")
    assert page.locator(f"{ROWS} > :nth-child({place + 1}) .down").count() == lost
    page.locator(".here select[name=outcome]").select_option("all")
    expect_rows(page, 30)
