"""`auepora view` in a real browser: every page, by mouse and by keyboard, with scripts and without."""

from __future__ import annotations

import contextlib
import csv
import io
import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.interventions.report import Diagnosis, Fix, StageShare
from auepora_eval.pages.app import ROUTES
from auepora_eval.pages.layout import waiting_page
from auepora_eval.pages.requests import Route
from auepora_eval.pages.security import Guard
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.browser.conftest import PHONE, Visit, Visitor
from tests.builders import a_dataset, a_sample
from tests.pages.serving import Client, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PAIR = "run=demo-bm25&run=demo-hybrid"
PAGES = {
    "runs": "/",
    "run": "/run/demo-hybrid",
    "samples": "/run/demo-bm25/samples?sort=ndcg@5",
    "no sample": "/run/demo-bm25/samples?words=nothing+has+these+words",
    "sample": "/run/demo-bm25/sample?id=q001&sort=ndcg@5",
    "compare": f"/compare?{PAIR}",
    "compared sample": "/run/demo-hybrid/sample?baseline=demo-bm25&id=q036",
    "gate": "/gate",
    "gate without a baseline": "/gate?run=demo-bm25&baseline=",
    "metrics": "/metrics?words=recall",  # all of them have the same parts, and axe looks at each
    "trend": "/trend",
    "choose runs": "/compare",
    "find": "/find?words=ferry",
    "label": "/label",
    "not found": "/run/none",
}
# Of other runs: three to rank, judged answers with citations, an experiment.
MORE_PAGES = {
    "runs and others": "/",
    "ranking": "/compare?run=one&run=two&run=three",
    "claims": "/run/cited/sample?id=1",
    "claims of two": "/run/cited-again/sample?baseline=cited&id=1",
    "experiment": "/experiment/ab_test_demo",
    "diagnosis": "/run/one/diagnosis",
    "indexing": "/waiting",
}

Enter = Callable[..., Visit]


@pytest.fixture(scope="module")
def client(demo_runs: Path) -> Iterator[Client]:
    with serving(demo_runs) as client:
        client.enter().get(PAGES["compare"])  # the comparison is made once
        yield client


def entering(client: Client, visit: Visitor) -> Enter:
    """Return a way to open pages with the cookie, as a browser has it after the printed address."""
    cookies = [
        {
            "name": name,
            "value": value,
            "domain": "127.0.0.1",
            "path": "/",
            "httpOnly": True,
            "sameSite": "Strict",
        }
        for name, value in client.cookies.items()
    ]
    # Chromium wants a time after which a cookie is dropped; -1 is "with the session".
    state = {"cookies": [{**each, "expires": -1, "secure": False} for each in cookies], "origins": []}
    return lambda path, **options: visit(f"{client.origin}{path}", storage_state=state, **options)


@pytest.fixture
def enter(client: Client, visit: Visitor) -> Enter:
    return entering(client, visit)


@pytest.mark.parametrize("name", PAGES)
def test_every_page_in_every_look(enter: Enter, name: str) -> None:
    seen = enter(PAGES[name])
    if name == "not found":
        seen.console.clear()  # Chromium reports the status
    check_every_look(seen)


def check_every_look(seen: Visit) -> None:
    for _ in seen.every_look():
        for parts in ("main > *", "main h2", "table.list tbody tr", ".column > *", ".docs > li"):
            assert seen.overlaps(parts) == [], parts
        assert seen.is_in_window("h1")


@pytest.fixture(scope="module")
def more(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("more")
    storage = EvaluationResultsStorage(folder)
    ranked = [a_sample(str(n), f"question {n}", relevant="a") for n in range(12)]
    for name, documents in (("one", "a"), ("two", "ba"), ("three", "a")):
        evaluator = AueporaEvaluator(Constant(list(documents), "x"), EvaluationPlan("mrr"))
        evaluator.run(a_dataset(*ranked), evaluation_id=name, storage=storage)
    lost = StageShare("declined", "declined on its gold", "a rule", 2, 0.17, (0.02, 0.48), ("1", "2"))
    fix = Fix("declines", "answer where it declines", "oracle", 0.17, (0.04, 0.3), 0.001, 0.01, 0.1)
    calls = {"generate": 24, "retrieve": 12}
    found = Diagnosis("one", "mrr", 0.8, (0.5, 0.95), 12, 2, [lost], [fix], "declines", calls=calls)
    storage.save_fact("one", diagnosis=found.to_dict())
    pier = {"doc_id": "pier", "text": "The pier opens at 9. Dogs are welcome."}
    asked = [a_sample("1", "When does the pier open?"), a_sample("2", "When?", labels={"variant_of": "1"})]
    for name, more in (("cited", ""), ("cited-again", " Tickets are free.")):
        system = Constant([pier], f"The pier opens at 9 [1]. Whales sing at night.{more}")
        evaluator = AueporaEvaluator(system, EvaluationPlan("mean_latency"))
        evaluator.run(a_dataset(*asked), evaluation_id=name, storage=storage)
    commands = [
        "judge cited --judge support:lexical",
        "judge cited-again --judge support:lexical",
        "experiment demo",
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        for command in commands:
            assert main([*command.split(), "--out", str(folder)]) == 0
    # Without loading itself again: axe would lose the page while it looks at it.
    waiting = Route("/waiting", lambda ask: replace(waiting_page("Comparing samples"), refresh=None))
    with serving(folder, routes=[*ROUTES, waiting]) as client:
        yield client.enter()


@pytest.mark.parametrize("name", MORE_PAGES)
def test_more_pages_in_every_look(more: Client, visit: Visitor, name: str) -> None:
    check_every_look(entering(more, visit)(MORE_PAGES[name]))


def test_a_citation_leads_to_its_document(more: Client, visit: Visitor) -> None:
    seen = entering(more, visit)(MORE_PAGES["claims"], height=300)
    assert seen.page.locator("u.unsupported + sup").inner_text() == "✗"
    colour = "element => getComputedStyle(element).color"
    signs = [seen.page.locator(f"{mark}.unsupported").first.evaluate(colour) for mark in ("sup", ".claims b")]
    assert signs[0] == signs[1] != seen.page.locator(".claims b").first.evaluate(colour)
    seen.page.get_by_role("link", name="[1]").click()
    assert "The pier opens at 9" in seen.page.locator(".doc :target").inner_text()  # its fold has opened
    assert seen.is_in_window(".doc :target")


@dataclass
class Constant:
    """A system that always answers the same."""

    documents: list[object]
    answer: str
    __name__ = "constant"

    def __call__(self, query: str) -> dict[str, object]:
        return {"retrieved": self.documents, "answer": self.answer}


@pytest.mark.parametrize("name", ["run", "samples", "sample", "compare", "gate"])
def test_at_200_percent_nothing_is_lost(enter: Enter, name: str) -> None:
    seen = enter(PAGES[name], zoom=2)
    assert not seen.scrolls_sideways()
    assert seen.violations() == []


def test_the_printed_address_is_exchanged_once(tmp_path: Path, visit: Visitor) -> None:
    with serving(tmp_path) as client:
        seen = visit(f"{client.origin}/?token={client.access.token}")
        assert seen.page.url == f"{client.origin}/"
        assert "auepora demo" in seen.page.inner_text("main")
        assert seen.page.evaluate("() => document.cookie") == ""


def test_two_clicks_from_a_bad_metric_to_the_marked_gold_span(enter: Enter) -> None:
    seen = enter("/run/demo-bm25")
    seen.page.get_by_role("link", name="recall@5", exact=True).click()
    seen.page.locator("table.list [data-row]").first.click()
    seen.page.wait_for_selector("mark")
    assert "gold, not retrieved" in seen.page.inner_text("main")


def test_three_keys_from_a_bad_metric_to_the_marked_gold_span(enter: Enter) -> None:
    seen = enter("/run/demo-bm25")
    seen.press("j")  # the first metric
    seen.press("Enter")
    seen.page.wait_for_url("**/samples?*")
    seen.press("Enter")  # the worst sample
    seen.page.wait_for_url("**/sample?*")
    assert seen.page.locator("mark").first.is_visible()


def test_two_clicks_from_the_runs_to_the_gold_span_of_the_worst_sample(enter: Enter) -> None:
    seen = enter("/")
    seen.page.locator("main").get_by_role("link", name="demo-hybrid").click()
    seen.page.locator(".samples a").first.click()
    seen.page.wait_for_selector("mark")
    assert seen.page.locator(".scores .led").inner_text().startswith("contains_answer")


def test_two_clicks_from_a_failed_gate_to_a_failing_sample(
    demo_runs: Path, tmp_path: Path, visit: Visitor
) -> None:
    rules = tmp_path / "gate.yaml"
    rules.write_text("min: {recall@5: 0.9}\nno_regression: [ndcg@5]\n")
    with serving(demo_runs, rules=rules) as client:
        seen = entering(client.enter(), visit)("/gate")
        assert seen.page.locator(".strip").inner_text().startswith("✕ FAILED: 1 of 3 rules")
        assert seen.violations() == []
        seen.page.get_by_role("link", name="Samples", exact=True).click()
        assert "worst first by recall@5" in seen.page.inner_text("main")
        seen.page.locator("table.list [data-row]").first.click()
        assert "gold, not retrieved" in seen.page.inner_text("main")


def test_keys_lead_from_a_rule_to_a_sample_that_it_is_about(enter: Enter) -> None:
    seen = enter("/gate")
    seen.press("j")
    seen.press("Enter")
    seen.page.wait_for_url("**/samples?*outcome=lost*")
    seen.page.locator("table.list [data-row]").first.click()
    seen.page.wait_for_url("**/sample?*")
    assert " lost, worst " in seen.page.inner_text("main")


# The frame.


def test_the_breadcrumb_leads_up_and_switches_the_run(enter: Enter) -> None:
    seen = enter("/run/demo-bm25/sample?id=q001&sort=ndcg@5")
    names = seen.page.locator(".crumbs ol > li > :first-child").all_inner_texts()
    assert names == [
        "Runs",
        "demo-bm25",
        "Samples by ndcg@5",
        "q001",
    ]
    seen.page.get_by_label("Switch to another run").click()
    seen.page.locator(".crumbs .menu").get_by_role("link", name="demo-hybrid").click()
    assert seen.page.inner_text("h1") == "demo-hybrid"


def test_search_from_anywhere(enter: Enter) -> None:
    seen = enter("/run/demo-hybrid")
    seen.press("Control+k")
    seen.page.locator("#find").get_by_role("link", name="demo-bm25").wait_for()  # before anything is typed
    seen.page.keyboard.type("turbine")
    seen.page.locator("#find .found", has_text="Samples").wait_for()
    assert seen.violations() == []
    seen.press("ArrowDown")
    seen.press("Enter")
    seen.page.wait_for_url("**/run/demo-hybrid/sample?*")
    assert "turbine" in seen.page.inner_text("main").lower()


@pytest.mark.parametrize(
    ("path", "shown", "not_shown"),
    [
        ("/run/demo-hybrid/samples", {"j", "k", "/", "Ctrl", "u", "["}, {"x", "1"}),
        ("/", {"j", "/", "x"}, {"[", "u"}),
        ("/trend", {"Ctrl", "?"}, {"j", "/", "["}),
    ],
)
def test_help_lists_the_keys_that_work_on_the_page(
    enter: Enter, path: str, shown: set[str], not_shown: set[str]
) -> None:
    seen = enter(path)
    seen.press("?")
    keys = set(" ".join(seen.page.locator("#keys kbd").all_inner_texts()).split())
    assert shown <= keys
    assert not keys & not_shown
    seen.press("Escape")
    assert not seen.page.locator("#keys").is_visible()


# Strip, run page, tables.


def test_the_strip_says_how_it_stands_in_words(enter: Enter) -> None:
    for path, words in (
        ("/run/demo-hybrid", "All 160 samples answered, none failed"),
        (f"/compare?{PAIR}", "better"),
        ("/gate", "PASSED: all"),
    ):
        seen = enter(path)
        assert words in seen.page.locator(".strip").first.inner_text()
        assert seen.is_in_window(".strip")


def test_the_run_is_on_one_screen_beside_its_baseline(enter: Enter) -> None:
    seen = enter("/run/demo-hybrid")
    rows = seen.boxes("[aria-label=Metrics] tbody tr")
    assert len(rows) > 5
    assert all(box["bottom"] <= 900 for _, box in rows)
    assert "Against demo-bm25" in seen.page.inner_text(".actions")
    row = seen.page.locator("tr", has_text="recall@5").first.inner_text()
    assert "+0." in row
    assert "better" in row
    seen.page.get_by_text("Against demo-bm25 ⌄").click()
    seen.page.get_by_role("link", name="no baseline").click()
    assert "Change" not in seen.page.locator("table.bars thead").first.inner_text()


def test_runs_are_sorted_filtered_and_compared(enter: Enter) -> None:
    seen = enter("/")
    seen.page.get_by_role("link", name="contains_answer", exact=True).click()
    seen.page.wait_for_url("**sort=contains_answer*")
    assert seen.page.locator("tbody th").all_inner_texts() == ["demo-bm25", "demo-hybrid"]
    seen.page.get_by_role("link", name="contains_answer", exact=True).click()
    seen.page.wait_for_url("**order=down*")
    assert seen.page.locator("tbody th").all_inner_texts() == ["demo-hybrid", "demo-bm25"]
    seen.page.get_by_label("Filter runs").fill("hyb")
    seen.page.locator(".count", has_text="1 run").wait_for()
    seen.page.wait_for_url("**words=hyb*")
    seen.page.get_by_label("Filter runs").fill("")
    seen.page.locator(".count", has_text="2 runs").wait_for()
    button = seen.page.locator("[data-ticked]")
    assert button.is_disabled()
    for name in ("demo-bm25", "demo-hybrid"):
        seen.page.get_by_label(f"Compare {name}", exact=True).check()
    button.click()
    seen.page.wait_for_url("**/compare?*")
    assert " against " in seen.page.inner_text("h1")


def test_columns_are_chosen_and_the_table_is_exported(enter: Enter) -> None:
    seen = enter("/run/demo-bm25/samples?sort=ndcg@5")
    seen.page.get_by_text("Columns ⌄").click()
    seen.page.get_by_label("recall@5", exact=True).uncheck()
    seen.page.get_by_label("contains_answer", exact=True).uncheck()
    seen.page.get_by_role("button", name="Show").click()
    seen.page.wait_for_url("**col=*")
    heads = seen.page.locator("table.list thead").inner_text()
    assert "ndcg@5" in heads
    assert "contains_answer" not in heads
    with seen.page.expect_download() as saved:
        seen.page.get_by_role("link", name="Export CSV").click()
    rows = list(csv.DictReader(Path(saved.value.path()).read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 160
    assert rows[0]["sample"] == seen.page.locator("[data-row]").first.inner_text()
    assert {"question", "answer", "contains_answer"} <= set(rows[0])


# Charts.


def test_charts_have_axes_and_lead_to_samples(enter: Enter, more: Client, visit: Visitor) -> None:
    seen = enter(f"/compare?{PAIR}&metric=recall%405")
    assert seen.page.locator("table.forest .axis").first.locator("text").nth(2).text_content() == "0"
    marks = seen.page.locator(".scatter a")
    assert seen.page.locator(".scatter text").count() > 8
    marks.last.dispatch_event("click")
    seen.page.wait_for_url("**outcome=*")
    ranking = entering(more, visit)(MORE_PAGES["ranking"])
    assert ranking.page.locator("svg.rows").first.get_attribute("aria-label").startswith("one ")
    trend = enter("/trend?metric=recall%405")
    assert trend.page.locator(".trend a").count() == 2
    assert trend.page.locator(".trend text").count() > 3
    assert trend.page.locator(".trend .name").all_text_contents() == ["hybrid", "bm25"]
    assert trend.page.locator(".legend").inner_text().split() == ["●", "bm25", "●", "hybrid"]
    assert "demo-hybrid: 0." in trend.page.locator(".trend a title").last.text_content()


def test_an_answer_is_labelled_by_key_where_it_is_read(
    demo_runs: Path, tmp_path: Path, visit: Visitor
) -> None:
    shutil.copytree(demo_runs, tmp_path / "runs")
    with serving(tmp_path / "runs") as client:
        seen = entering(client.enter(), visit)("/run/demo-hybrid/sample?id=q036&sort=recall@5")
        seen.press("3")
        seen.page.locator("[aria-pressed=true]", has_text="wrong").wait_for()
        seen.press("1")
        seen.page.locator("[aria-pressed=true]", has_text="right").wait_for()
        assert seen.page.locator("[aria-pressed=true]").count() == 1
        assert seen.page.get_by_text("1 labelled").is_visible()
        assert seen.violations() == []
        seen.press("1")  # the same again takes it back
        seen.page.get_by_text("1 labelled").wait_for(state="hidden")
        assert seen.page.locator("[aria-pressed=true]").count() == 0
        seen.page.goto(f"{client.origin}/label")
        seen.page.get_by_role("button", name="Label 50 of its answers").click()
        seen.page.locator("form.bar-form").wait_for()
        seen.press("1")
        seen.page.locator("progress[value='1']").wait_for()
        assert seen.violations() == []


def test_print_leaves_out_the_frame(enter: Enter) -> None:
    seen = enter("/run/demo-hybrid")
    seen.page.emulate_media(media="print")
    assert not seen.page.locator(".rail").is_visible()
    assert not seen.page.locator(".actions").is_visible()
    assert seen.page.locator("table.bars").first.is_visible()


# Lists by keyboard.


def test_keys_walk_through_samples(enter: Enter) -> None:
    seen = enter("/run/demo-bm25/samples?sort=ndcg@5")
    focused = "() => document.activeElement.textContent"
    names = seen.page.locator("[data-row]").all_inner_texts()
    for key, name in (("j", names[0]), ("j", names[1]), ("j", names[2]), ("k", names[1])):
        seen.press(key)
        assert seen.page.evaluate(focused) == name
    seen.press("Enter")
    seen.page.wait_for_url("**/sample?*")
    assert seen.page.inner_text("h1") == names[1]
    seen.press("]")  # the next worst
    seen.page.wait_for_url(f"**id={names[2]}")
    seen.press("[")
    seen.page.wait_for_url(f"**id={names[1]}")
    seen.press("u")
    seen.page.wait_for_url("**/samples?*")


def test_filter_as_you_type_and_typed_letters_are_not_keys(enter: Enter) -> None:
    seen = enter("/run/demo-bm25/samples?sort=ndcg@5")
    seen.press("/")
    seen.page.keyboard.type("junk ferry")
    field = seen.page.get_by_label("Filter samples")
    seen.page.get_by_text("No sample matches.").wait_for()
    assert field.input_value() == "junk ferry"
    field.fill("ferry")
    seen.page.wait_for_url("**words=ferry*")
    seen.page.locator("table.list").wait_for()
    assert " of 160 samples" in seen.page.inner_text(".count")
    assert seen.page.evaluate("() => document.activeElement.name") == "words", "one can go on typing"


def test_the_address_has_the_state_of_the_list(enter: Enter) -> None:
    seen = enter("/run/demo-bm25/samples")
    seen.page.locator("thead [aria-sort=descending] a").click()
    seen.page.wait_for_url("**order=up*")  # the best come first now
    seen.page.get_by_label("difficulty").select_option("difficulty:hard")
    seen.page.wait_for_url("**slice=difficulty%3Ahard*")
    seen.page.get_by_label("gold missed").check()
    seen.page.wait_for_url("**gold=1*")
    rows = seen.page.locator("[data-row]").all_inner_texts()
    again = enter(seen.page.url.partition("127.0.0.1")[2].partition("/")[2].join(["/", ""]))
    assert again.page.locator("[data-row]").all_inner_texts() == rows
    assert again.page.get_by_label("difficulty").input_value() == "difficulty:hard"


def test_every_page_can_be_reached_by_tab(enter: Enter) -> None:
    seen = enter("/run/demo-bm25/samples?sort=ndcg@5")
    seen.press("Tab")
    assert seen.page.evaluate("() => document.activeElement.textContent") == "Skip to the content"
    stops = set()
    for _ in range(50):
        seen.press("Tab")
        stops.add(
            seen.page.evaluate("() => document.activeElement.name || document.activeElement.textContent")
        )
    assert {"Runs", "Metrics", "Export CSV", "words", "slice", "gold", "Columns ⌄", "q003"} <= stops


def test_it_works_without_scripts(client: Client, visit: Visitor, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    context.add_cookies([{"name": n, "value": v, "url": client.origin} for n, v in client.cookies.items()])
    page = context.new_page()
    page.goto(f"{client.origin}/run/demo-bm25/samples")
    page.get_by_label("Filter samples").fill("ferry")
    page.get_by_role("button", name="Filter").click()
    page.locator("thead").get_by_role("link", name="recall@5").click()
    assert "worst first by recall@5" in page.inner_text("main")
    page.locator("[data-row]").first.click()
    assert "Reference" in page.inner_text("main")
    page.get_by_role("button", name="Find").click()
    page.locator("#find [name=words]").fill("hybrid")
    page.locator("#find [name=words]").press("Enter")
    assert page.locator("main .found a").first.inner_text().startswith("demo-hybrid")
    context.close()


def test_on_a_phone_the_sample_is_a_page_of_its_own(enter: Enter) -> None:
    seen = enter("/run/demo-bm25/samples?sort=ndcg@5", width=PHONE)
    seen.page.locator("[data-row]").first.click()
    seen.page.wait_for_selector(".query")
    assert seen.is_in_window(".query")
    assert seen.is_in_window(".rail nav ul"), "the pages to go to are a bar at the bottom"
    assert seen.page.locator("table.list").count() == 0
    seen.page.get_by_role("button", name="Find").click()  # a phone has no Ctrl+K
    seen.page.locator("#find").get_by_role("link", name="demo-bm25").first.wait_for()


def test_a_run_that_is_going_is_followed(tmp_path: Path, visit: Visitor) -> None:
    going, finish = threading.Event(), threading.Event()

    def slow(query: str) -> dict[str, object]:
        if query == "1":
            raise ValueError("no 1")
        if query == "2":
            going.set()
            assert finish.wait(30)
        return {"answer": query}

    evaluator = AueporaEvaluator(slow, EvaluationPlan("mean_latency"))
    dataset = a_dataset(*(a_sample(str(n), str(n)) for n in range(4)))
    storage = EvaluationResultsStorage(tmp_path)
    thread = threading.Thread(target=lambda: evaluator.run(dataset, evaluation_id="x", storage=storage))
    thread.start()
    try:
        with serving(tmp_path) as client:
            assert going.wait(30)
            seen = entering(client.enter(), visit)("/run/x")
            assert "of 4 samples have an output" in seen.page.inner_text("main")
            seen.page.get_by_text("1 failed", exact=False).wait_for()
            assert "ValueError: no 1" in seen.page.inner_text("main")
            assert seen.violations() == []
            # A request that gets no answer, such as one while the machine sleeps, is not the last one.
            with seen.page.expect_event("requestfailed"):
                seen.page.route("**/run/x", lambda route: route.abort("connectionrefused"), times=1)
            finish.set()
            seen.page.locator("table.bars", has_text="mean_latency").wait_for()  # it reloaded itself
            assert seen.page.inner_text("h1") == "x"
            seen.page.context.close()
    finally:
        finish.set()
        thread.join(30)


# Hostile text. A script that runs calls `ran`, and a request that leaves arrives at `elsewhere`.


class Elsewhere:
    """Another server, which counts what it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        with contextlib.suppress(OSError):  # closed at the end
            while True:
                connection, _ = self._socket.accept()
                connection.settimeout(2)
                with connection, contextlib.suppress(OSError):
                    # Chromium may connect in advance and send nothing: that is not a request.
                    self.asked += bool(connection.recv(1000))

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Elsewhere]:
    server = Elsewhere()
    yield server
    server.close()


def attack_on(address: str) -> str:
    return " ".join(
        [
            "<script>ran()</script>",
            "<img src=x onerror=ran()>",
            "</title></style></textarea></script><svg onload=ran()>",
            "\"><a href='javascript:ran()' autofocus onfocus=ran()>x</a>",
            f"<b hx-on:click='ran()' hx-get='{address}/' hx-trigger='load'>x</b>",
            f"<link rel=stylesheet href={address}/x.css><iframe src={address}/></iframe>",
            f"<img src={address}/x.png>",
            f"{{{{7*7}}}} ${{ran()}} [x](javascript:ran()) ![x]({address}/x.png)",
            "\u202egnirts\u2066 \x00\x1b[31m",
        ]
    )


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, elsewhere: Elsewhere) -> Path:
    folder, attack = tmp_path_factory.mktemp("hostile"), attack_on(elsewhere.address)

    def system(query: str) -> dict[str, object]:
        if query.startswith("1"):
            raise ValueError(attack)
        return {"retrieved": [{"doc_id": attack, "text": attack, "score": 1.0}], "answer": attack}

    samples = [
        a_sample(
            f"{n}{attack}",
            f"{n} {attack}",
            relevant=[attack],
            reference=attack,
            labels={attack: f"{n % 2}{attack}"},
        )
        for n in range(12)
    ]
    for name in ("first", "second"):
        evaluator = AueporaEvaluator(system, EvaluationPlan("recall@1,token_f1"))
        evaluator.run(a_dataset(*samples), evaluation_id=name, storage=EvaluationResultsStorage(folder))
    return folder


def hostile_pages(elsewhere: Elsewhere) -> list[str]:
    attack = attack_on(elsewhere.address)
    sample = quote(f"0{attack}")
    return [
        f"/run/first/sample?id={sample}",
        f"/compare/sample?run=first&run=second&id={sample}",
        "/",
        "/run/first",
        "/run/first/samples?sort=token_f1",
        f"/run/first/samples?words={quote(attack)}&sort={quote(attack)}",
        "/compare?run=first&run=second",
        f"/metrics?words={quote(attack)}",
        "/gate?run=second&baseline=first",
        f"/gate?run={quote(attack)}",
        "/run/%3Cimg%20src=x%20onerror=ran()%3E",
    ]


def scripts_that_ran(client: Client, browser: Browser, paths: list[str]) -> list[str]:
    """Return which attacks ran, or would run at a click, over some pages."""
    context = browser.new_context()
    context.add_cookies([{"name": n, "value": v, "url": client.origin} for n, v in client.cookies.items()])
    ran: list[str] = []
    context.expose_function("ran", lambda: ran.append("ran"))
    page = context.new_page()
    for path in paths:
        page.goto(client.origin + path)
        read = "all => all.map(each => each.getAttribute('href') || '')"
        links = page.locator("a").evaluate_all(read)
        ran += [href for href in links if href.lower().startswith("javascript:")]
    page.wait_for_timeout(300)
    context.close()
    return ran


def unescaped(text: str) -> str:
    return text


def test_hostile_text_runs_nothing_and_asks_for_nothing(
    hostile: Path, browser: Browser, elsewhere: Elsewhere
) -> None:
    before = elsewhere.asked
    with serving(hostile) as client:
        assert scripts_that_ran(client.enter(), browser, hostile_pages(elsewhere)) == []
    assert elsewhere.asked == before


def test_the_policy_stops_a_script_even_if_escaping_is_forgotten(
    hostile: Path, browser: Browser, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("auepora_eval.pages.components.markup.escaped", unescaped)
    before, first = elsewhere.asked, hostile_pages(elsewhere)[:1]
    with serving(hostile) as client:
        assert "<script>ran()</script>" in client.enter().get(first[0]).text
        assert "ran" not in scripts_that_ran(client, browser, first)
    assert elsewhere.asked == before


def test_without_escaping_and_policy_the_script_runs(
    hostile: Path, browser: Browser, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: with both rules off the attack works, so the tests above can fail."""
    monkeypatch.setattr("auepora_eval.pages.components.markup.escaped", unescaped)
    before, first = elsewhere.asked, hostile_pages(elsewhere)[:1]
    with serving(hostile, guard=partial(Guard, headers={})) as client:
        assert "ran" in scripts_that_ran(client.enter(), browser, first)
    assert elsewhere.asked > before


def test_another_site_cannot_frame_a_page(client: Client, browser: Browser, tmp_path: Path) -> None:
    """Clickjacking: a frame of ours in another page stays empty; without the policy it is filled."""
    with serving(client.workspace.folder, guard=partial(Guard, headers={})) as unprotected:
        framed = [_framed(each, browser) for each in (client, unprotected.enter())]
    assert framed == [False, True]


def _framed(client: Client, browser: Browser) -> bool:
    context = browser.new_context()
    cookies = [{"name": n, "value": v, "url": client.origin} for n, v in client.cookies.items()]
    context.add_cookies(cookies)
    page = context.new_page()
    page.goto(client.origin + "/")
    # The same origin, which is the friendliest case for the attacker: even its cookie is sent.
    page.evaluate("() => { document.body.appendChild(document.createElement('iframe')).src = '/'; }")
    page.wait_for_timeout(500)
    frame = page.frames[-1]
    filled = frame != page.main_frame and bool(re.search("Runs", frame.content()))
    context.close()
    return filled
