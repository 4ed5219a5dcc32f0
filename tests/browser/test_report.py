"""The static report in a real browser, opened from a file as a colleague would open it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.comparison.compare import compare_runs
from auepora_eval.comparison.ranking import rank_runs
from auepora_eval.core.types import EvaluationRun, Failure, Response
from auepora_eval.pages.report import report_html
from auepora_eval.runs.store.storage import EvaluationResultsStorage

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


def expect_count(page: Page, text: str) -> None:
    """Wait until the page says how many samples it shows."""
    from playwright.sync_api import expect

    expect(page.locator(".count")).to_have_text(text)


def test_every_look(visit: Visitor, report: str) -> None:
    seen = visit(report)
    for place in (0, 1):
        seen.page.locator(".sample > summary").nth(place).click()
    assert seen.page.locator(".sample[open] mark").count() > 0
    for width, dark in seen.every_look():
        for rows in (
            ".sample > summary",
            ".sample[open] .docs > li",
            ".card",
            ".sample[open] .columns > div",
        ):
            assert seen.overlaps(rows) == [], (width, dark)
    seen.look(PHONE, dark=False)
    seen.page.evaluate("() => scrollTo(0, 0)")
    assert seen.is_in_window(".lead p")  # the verdict in words, without scrolling
    seen.page.locator("#changes").scroll_into_view_if_needed()
    verdicts = seen.boxes("#changes ~ .scroll .verdict")
    assert len(verdicts) == 4
    assert all(box["right"] <= PHONE for _, box in verdicts)  # and of each metric, without scrolling sideways


@pytest.fixture(scope="session")
def reports(demo: Path) -> dict[str, str]:
    """Reports of one run and of three, with failed calls, citations and answers that differ in a word."""
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
        comparison = compare_runs(*runs, resamples=100) if len(runs) == 2 else None
        ranking = rank_runs(runs, resamples=100) if len(runs) == 3 else None
        file = demo / f"{name}.html"
        file.write_text(report_html(runs, comparison, ranking=ranking), encoding="utf-8")
        written[name] = file.as_uri()
    return written


@pytest.mark.parametrize("name", ["one", "two", "three"])
def test_other_reports(visit: Visitor, reports: dict[str, str], name: str) -> None:
    seen = visit(reports[name], dark=name == "two")
    for place in (0, 1):
        seen.page.locator(".sample > summary").nth(place).click()
    assert seen.page.locator(".sample[open] .badge.cited").count() > 0
    assert seen.page.locator(".sample[open] mark.cited, .sample[open] mark.both").count() > 0
    assert seen.page.locator(".sample .badge.failed").count() == 5
    assert seen.page.locator(".card svg[role=img]").count() == (4 if name == "one" else 0)  # histograms
    assert seen.violations() == []
    seen.look(PHONE, dark=name != "two")
    assert seen.violations() == []
    assert not seen.scrolls_sideways()
    for rows in (".sample > summary", ".sample[open] .docs > li", ".card"):
        assert seen.overlaps(rows) == []


def test_twice_the_size(visit: Visitor, report: str) -> None:
    seen = visit(report, zoom=2)
    seen.page.locator(".sample > summary").first.click()
    assert not seen.scrolls_sideways()
    assert seen.overlaps(".sample > summary") == []
    assert seen.is_in_window(".sample > summary")


def test_from_a_metric_to_the_gold_span_in_two_clicks(visit: Visitor, report: str) -> None:
    page = visit(report).page
    page.locator("#changes ~ .scroll").get_by_role("link", name="ndcg@5").click()
    assert page.locator("select[name=metric]").input_value() == "ndcg@5"
    page.locator(".sample:visible > summary").first.click()
    assert page.locator(".sample[open] .docs mark").first.is_visible()


def test_filters(visit: Visitor, demo: Path, report: str) -> None:
    before, after = ({s.sample_id: s.value for s in run["contains_answer"].scores} for run in loaded(demo))
    gains = {name: after[name] - value for name, value in before.items() if value is not None}  # type: ignore[operator]
    page = visit(report).page
    shown = page.locator(".sample:not([hidden])")
    reset = page.get_by_role("button", name="Reset")
    expect_count(page, "30 samples")
    page.locator("select[name=metric]").select_option("contains_answer")
    for outcome, way in (("lost", -1), ("won", 1), ("same", 0)):
        page.locator("select[name=outcome]").select_option(outcome)
        wanted = {f"s-{name}" for name, gain in gains.items() if (gain > 0) - (gain < 0) == way}
        expect_count(page, f"{len(wanted)} of 30 samples")
        assert set(shown.evaluate_all("all => all.map(e => e.id)")) == wanted
    reset.click()
    page.locator("select[name=slice]").select_option("difficulty: hard")
    hard = sum(sample.labels["difficulty"] == "hard" for sample in loaded(demo)[0].samples)
    expect_count(page, f"{hard} of 30 samples")
    reset.click()
    page.locator("input[name=missed]").check()
    assert 0 < shown.count() < 30
    assert shown.locator("summary .badge.missed").count() == shown.count()
    page.locator("input[name=failed]").check()
    expect_count(page, "0 of 30 samples")
    reset.click()
    page.locator("input[name=words]").fill("power calf")
    expect_count(page, "1 of 30 samples")
    reset.click()
    page.locator("select[name=metric]").select_option("recall@5")
    page.locator("input[name=from]").fill("0.2")
    page.locator("input[name=to]").fill("0.8")
    scores = {s.sample_id: s.value for s in loaded(demo)[1]["recall@5"].scores}
    within = {f"s-{name}" for name, value in scores.items() if value is not None and 0.2 <= value <= 0.8}
    assert set(shown.evaluate_all("all => all.map(e => e.id)")) == within
    reset.click()
    expect_count(page, "30 samples")


def test_order(visit: Visitor, demo: Path, report: str) -> None:
    """The order of the script is that of Python: the page does not change when the script starts."""
    page = visit(report).page
    ids = "all => all.map(e => e.id)"
    at_first = page.locator(".sample").evaluate_all(ids)
    page.locator("input[name=words]").fill("x")
    page.locator("input[name=words]").fill("")
    assert page.locator(".sample").evaluate_all(ids) == at_first
    page.locator("select[name=metric]").select_option("mean_latency[end_to_end]")
    page.locator("select[name=order]").select_option("worst")
    seconds = {f"s-{s.sample_id}": s.value for s in loaded(demo)[1]["mean_latency[end_to_end]"].scores}
    slowest = max(value for value in seconds.values() if value is not None)
    first = seconds[page.locator(".sample").first.get_attribute("id") or ""]
    assert first == pytest.approx(slowest, rel=0.02)  # the page has three digits
    assert (
        "s → " in page.locator(".sample > summary > em").first.inner_text()
    )  # the row shows what it is ordered by


def test_keyboard_only(visit: Visitor, report: str) -> None:
    page = visit(report).page
    keys = page.keyboard
    keys.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to the content"
    keys.press("j")
    keys.press("j")
    focused = page.locator(":focus")
    assert focused.evaluate("e => e.parentNode === e.closest('.samples').children[1]")
    keys.press("Enter")
    assert page.locator(".sample[open]").count() == 1
    keys.press("k")
    assert focused.evaluate("e => e.parentNode === e.closest('.samples').children[0]")
    keys.press("/")
    keys.type("jetty kelp")  # j and k are letters here
    assert page.locator("input[name=words]").input_value() == "jetty kelp"
    keys.press("Escape")
    keys.press("j")
    assert page.locator(":focus").count() <= 1


def test_a_link_opens_its_sample_and_every_document_has_its_text(
    visit: Visitor, demo: Path, report: str
) -> None:
    """Texts that are not in the sample come from where they are, with the same marks as in Python."""
    from auepora_eval.pages.components.sample import marked_text, shown_documents

    runs = loaded(demo)
    page = visit(report).page
    last = page.locator(".sample").evaluate_all(
        "all => all.filter(e => e.querySelector('[data-marks]')).at(-1).id"
    )
    place = next(n for n, sample in enumerate(runs[0].samples) if f"s-{sample.sample_id}" == last)
    page.goto(f"{report}#{last}")
    sample = page.locator(f"[id='{last}'][open]")
    sample.wait_for()
    documents = shown_documents(runs[0].samples[place], [run.outputs[place] for run in runs])
    assert sample.locator(".docs .text").all_inner_texts() == [one.text for one in documents]
    wanted = [str(marked_text(one.text, one.gold, one.cited)).count("<mark") for one in documents]
    assert (
        sample.locator(".docs > li").evaluate_all("all => all.map(e => e.querySelectorAll('mark').length)")
        == wanted
    )
    assert sum(wanted) > 0
    assert sample.locator("a.own").get_attribute("href") == f"#{last}"
    assert "Skipped: " in sample.inner_text()


def test_without_script(visit: Visitor, report: str) -> None:
    seen = visit(report, java_script_enabled=False)
    page = seen.page
    assert not page.locator("#filters").is_visible()
    assert page.locator(".lead").is_visible()
    page.locator(".sample > summary").first.click()
    sample = page.locator(".sample[open]")
    assert sample.locator(".docs .text mark").first.is_visible()
    assert sample.locator(".docs > li").count() == sample.locator(".docs .text").count()
    # Everywhere else a link leads to the text.
    link = page.locator(".sample").last.locator(".docs a").first.get_attribute("href")
    assert page.locator(f"p{link}").count() == 1


def hostile(demo: Path) -> str:
    runs = loaded(demo)
    for run in runs:
        run.system_name, run.dataset_name = f"{EVIL}{run.system_name}", EVIL
        for sample, output in zip(run.samples, run.outputs, strict=True):
            sample.query, sample.labels = EVIL, {"kind": EVIL, EVIL: 1}
            output.response.text = EVIL
            for hit in output.retrieved:
                hit.doc.doc_id, hit.doc.text, hit.doc.metadata = f"{EVIL}{hit.rank}", EVIL, {"title": EVIL}
    return report_html(runs, compare_runs(*runs, resamples=100))


def test_hostile_text_does_nothing(visit: Visitor, demo: Path) -> None:
    text = hostile(demo)
    file = demo / "hostile.html"
    file.write_text(text, encoding="utf-8")
    seen = visit(file.as_uri())
    seen.page.locator(".sample > summary").first.click()
    seen.page.locator(".sample > summary").last.click()
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
