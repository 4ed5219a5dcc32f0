"""`auepora view` in a real browser: every page, by mouse and by keyboard, with scripts and without."""

from __future__ import annotations

import contextlib
import io
import re
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
    "compared sample": f"/compare/sample?{PAIR}&id=q036",
    "gate": "/gate",
    "gate without a baseline": "/gate?run=demo-bm25&baseline=",
    "metrics": "/metrics?words=recall",  # all of them have the same parts, and axe looks at each
    "trend": "/trend",
    "not found": "/run/none",
}
# Of other runs: three to rank, judged answers with citations, an experiment.
MORE_PAGES = {
    "runs and others": "/",
    "ranking": "/compare?run=one&run=two&run=three",
    "claims": "/run/cited/sample?id=1",
    "claims of two": "/compare/sample?run=cited&run=cited-again&id=1",
    "experiment": "/experiment/ab_test_demo",
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
        assert seen.overlaps("main h2, main form, main table.list tbody tr, main .card, .turns") == []
        assert seen.is_in_window("h1")


@pytest.fixture(scope="module")
def more(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("more")
    storage = EvaluationResultsStorage(folder)
    ranked = [a_sample(str(n), f"question {n}", relevant="a") for n in range(12)]
    for name, documents in (("one", "a"), ("two", "ba"), ("three", "a")):
        evaluator = AueporaEvaluator(Constant(list(documents), "x"), EvaluationPlan("mrr"))
        evaluator.run(a_dataset(*ranked), evaluation_id=name, storage=storage)
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
    seen.page.get_by_role("link", name="[1]").click()
    assert "The pier opens at 9" in seen.page.locator("li:target").inner_text()
    assert seen.is_in_window("li:target")


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
    seen.page.locator("[data-row]").first.click()
    assert seen.page.locator("mark").first.is_visible()
    assert "not retrieved" in seen.page.inner_text("main")


def test_three_keys_from_a_bad_metric_to_the_marked_gold_span(enter: Enter) -> None:
    seen = enter("/run/demo-bm25")
    seen.press("j")  # the first metric
    seen.press("Enter")
    seen.page.wait_for_url("**/samples?*")
    seen.press("Enter")  # the worst sample
    seen.page.wait_for_url("**/sample?*")
    assert seen.page.locator("mark").first.is_visible()


def test_keys_lead_from_a_rule_to_a_sample_that_it_is_about(enter: Enter) -> None:
    seen = enter("/gate")
    seen.page.keyboard.press("j")
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_url("**/compare?*metric=*")
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_url("**/compare/sample?*")
    assert "lost by " in seen.page.inner_text("main")


def test_two_clicks_from_the_first_page_to_a_lost_question(enter: Enter) -> None:
    seen = enter("/")
    seen.page.get_by_role("link", name="Compare demo-hybrid with demo-bm25").click()
    seen.page.locator("table.list [data-row]").first.click()
    text = seen.page.inner_text("main")
    assert "Answer of hybrid" in text
    assert "lost by" in text


def test_ticking_two_runs_compares_them(enter: Enter) -> None:
    seen = enter("/")
    for name in ("demo-bm25", "demo-hybrid"):
        seen.page.get_by_label(f"Compare {name}", exact=True).check()
    seen.page.get_by_role("button", name="Compare the ticked runs").click()
    assert seen.page.inner_text("h1") == "hybrid against bm25"


def test_keys_walk_through_samples(enter: Enter) -> None:
    seen = enter("/run/demo-bm25/samples?sort=ndcg@5")
    focused = "() => document.activeElement.textContent"
    names = seen.page.locator("[data-row]").all_inner_texts()
    for key, name in (("j", names[0]), ("j", names[1]), ("j", names[2]), ("k", names[1])):
        seen.press(key)
        assert seen.page.evaluate(focused) == name
    seen.press("Enter")
    seen.page.wait_for_url("**/sample?*")
    assert names[1] in seen.page.inner_text("h1")
    seen.press("j")  # the next worst
    seen.page.wait_for_url(f"**id={names[2]}")
    seen.press("k")
    seen.page.wait_for_url(f"**id={names[1]}")
    seen.press("u")
    seen.page.wait_for_url("**/samples?*")


def test_typed_letters_are_not_keys(enter: Enter) -> None:
    seen = enter("/run/demo-bm25/samples?sort=ndcg@5")
    seen.press("/")
    seen.page.keyboard.type("junk ferry")
    assert seen.page.locator("[name=words]").input_value() == "junk ferry"
    seen.page.locator("[name=words]").fill("ferry")
    seen.press("Enter")
    seen.page.wait_for_url("**words=ferry*")
    assert "samples, worst first by ndcg@5" in seen.page.inner_text(".count")


def test_the_address_has_the_state_of_the_list(enter: Enter) -> None:
    seen = enter("/run/demo-bm25/samples")
    with seen.page.expect_navigation():
        seen.page.get_by_label("Worst first by").select_option("contains_answer")
    with seen.page.expect_navigation():
        seen.page.get_by_label("difficulty").select_option("difficulty:hard")
    with seen.page.expect_navigation():
        seen.page.get_by_label("gold missed").check()
    rows = seen.page.locator("[data-row]").all_inner_texts()
    assert seen.page.url.endswith("samples?sort=contains_answer&slice=difficulty%3Ahard&gold=1")
    again = enter(seen.page.url.partition("127.0.0.1")[2].partition("/")[2].join(["/", ""]))
    assert again.page.locator("[data-row]").all_inner_texts() == rows
    assert again.page.get_by_label("difficulty").input_value() == "difficulty:hard"


def test_every_page_can_be_reached_by_tab(enter: Enter) -> None:
    seen = enter("/run/demo-bm25/samples?sort=ndcg@5")
    seen.press("Tab")
    assert seen.page.evaluate("() => document.activeElement.textContent") == "Skip to the content"
    stops = set()
    for _ in range(40):
        seen.press("Tab")
        stops.add(
            seen.page.evaluate("() => document.activeElement.name || document.activeElement.textContent")
        )
    assert {"Runs", "Metrics", "words", "sort", "low", "gold", "Clear", "q003"} <= stops


def test_it_works_without_scripts(client: Client, visit: Visitor, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    context.add_cookies([{"name": n, "value": v, "url": client.origin} for n, v in client.cookies.items()])
    page = context.new_page()
    page.goto(f"{client.origin}/run/demo-bm25/samples")
    page.get_by_label("Worst first by").select_option("contains_answer")
    page.get_by_role("button", name="Filter").click()
    assert "worst first by contains_answer" in page.inner_text(".count")
    page.locator("[data-row]").first.click()
    assert "Reference" in page.inner_text("main")
    context.close()


def test_on_a_phone_the_sample_is_a_page_of_its_own(enter: Enter) -> None:
    seen = enter("/run/demo-bm25/samples?sort=ndcg@5", width=PHONE)
    seen.page.locator("[data-row]").first.click()
    assert seen.is_in_window(".query")
    assert seen.page.locator("table.list").count() == 0


def test_a_run_that_is_going_is_followed(tmp_path: Path, visit: Visitor) -> None:
    going, finish = threading.Event(), threading.Event()

    def slow(query: str) -> dict[str, object]:
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
            assert seen.violations() == []
            finish.set()
            seen.page.get_by_role("heading", name="Latency", exact=True).wait_for()  # it reloaded itself
            assert seen.page.inner_text("h1") == "Run x"
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
