"""The pages: what they show is what the commands print, and their links lead where they say."""

from __future__ import annotations

import html
import json
import logging
import math
import re
import shlex
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.decide.rules import read_rules
from auepora_eval.errors import AueporaError
from auepora_eval.interventions.report import Diagnosis, Fix, StageShare
from auepora_eval.pages import workspace as workspaces
from auepora_eval.pages.comparisons import Scores, comparison_of, gate_of, ranking_of
from auepora_eval.store.lock import locked
from auepora_eval.store.pages import RunSamples
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample
from tests.pages.serving import Client, serving

PAIR = "run=demo-bm25&run=demo-hybrid"
PAGES = [
    "/",
    "/run/demo-bm25",
    "/run/demo-bm25/samples?sort=ndcg@5",
    "/run/demo-bm25/sample?id=q001&sort=ndcg@5",
    f"/compare?{PAIR}",
    "/run/demo-hybrid/sample?baseline=demo-bm25&id=q036",
    "/gate",
    "/metrics",
    "/trend",
]


@pytest.fixture(scope="module")
def client(demo_runs: Path) -> Iterator[Client]:
    with serving(demo_runs) as client:
        yield client.enter()


@dataclass
class Constant:
    """A system with one answer."""

    answer: str
    __name__ = "constant"

    def __call__(self, query: str) -> dict[str, object]:
        return {"answer": self.answer}


@dataclass
class Retrieving:
    """A system with one ranking."""

    documents: list[str]
    __name__ = "retrieving"

    def __call__(self, query: str) -> dict[str, object]:
        return {"retrieved": self.documents}


def text_of(page: str) -> str:
    """Return what a reader sees, on one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def links(page: str, start: str = "/") -> list[str]:
    found = map(html.unescape, re.findall(r'href="([^"]*)"', page))
    return [address for address in found if address.startswith(start)]


@pytest.mark.parametrize("path", PAGES)
def test_every_page_shows_a_command_that_works(
    client: Client, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = client.get(path)
    assert answer.status == 200
    assert len(answer.text) < 60_000
    shown = re.search(r"In a terminal: <code>(.*?)</code>", answer.text)
    assert shown is not None
    words = shlex.split(html.unescape(shown[1]))
    assert words[0] == "auepora"
    assert main(words[1:]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("path", PAGES)
def test_no_link_is_broken(client: Client, path: str) -> None:
    page = client.get(path).text
    for address in sorted(set(links(page)))[:40]:
        assert client.get(address.partition("#")[0]).status in (200, 303), address


def test_a_bar_of_a_histogram_leads_to_as_many_samples_as_it_says(client: Client) -> None:
    page = client.get("/run/demo-bm25/samples?sort=ndcg@5").text
    bars = re.findall(r'<a href="([^"]*)" aria-label="(\d+) samples?', page)
    assert len(bars) > 5
    for address, count in bars:
        listed = text_of(client.get(html.unescape(address)).text)
        assert f" {count} of 160 samples" in listed, address
    address, count = bars[0]
    shown = client.get(html.unescape(address)).text
    other = next(each for each in links(shown) if "sort=recall%405" in each and "low=" in each)
    assert f" {count} of 160 samples" in text_of(client.get(other).text), "the range stays if another sorts"


def test_worst_first_is_what_show_worst_prints(
    client: Client, capsys: pytest.CaptureFixture[str], demo_runs: Path
) -> None:
    assert main(["show", "demo-bm25", "--worst", "ndcg@5", "--n", "20", "--out", str(demo_runs)]) == 0
    printed = re.findall(r"^(q\d+)", capsys.readouterr().out, re.MULTILINE)
    page = client.get("/run/demo-bm25/samples?sort=ndcg@5").text
    assert re.findall(r">(q\d+)</a>", page)[:20] == printed


def test_pages_of_samples_join_to_all_of_them(client: Client) -> None:
    address, seen, pages = "/run/demo-bm25/samples?sort=ndcg@5", [], 0
    while True:
        page = client.get(address).text
        pages += 1
        seen += re.findall(r">(q\d+)</a>", page)
        following = re.search(r'href="([^"]*)" rel="next"', page)
        if following is None:
            break
        address = html.unescape(following[1])
    assert pages == 4
    assert len(seen) == len(set(seen)) == 160
    back = re.search(r'href="([^"]*)" rel="prev"', page)
    assert back is not None
    assert "101 to 150" in text_of(client.get(html.unescape(back[1])).text)


def test_sample_page_marks_the_gold_span_and_names_what_was_missed(client: Client) -> None:
    page = client.get("/run/demo-bm25/sample?id=q001").text
    assert "<mark>lies in the narrows between Northmoss and the Calf Rock</mark>" in page
    assert "<mark>Tobin Verrill has been keeper of Northmoss Station since 2022</mark>" in page
    assert "not retrieved" in page
    assert "Tobin Verrill" in text_of(page)


def test_judged_claims_are_marked_in_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = "The pier opens at 9 [1]. Whales sing at night."
    documents = [{"doc_id": "pier", "text": "The pier opens at 9. Dogs are welcome."}]
    evaluator = AueporaEvaluator(
        lambda query: {"retrieved": documents, "answer": answer}, EvaluationPlan("mean_latency")
    )
    samples = [a_sample("1", "When?"), a_sample("2", "Who?")]
    evaluator.run(a_dataset(*samples), evaluation_id="r", storage=EvaluationResultsStorage(tmp_path))
    assert main(["judge", "r", "--judge", "support:lexical", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    with serving(tmp_path) as client:
        page = client.enter().get("/run/r/sample?id=1").text
    assert "<u>The pier opens at 9 </u>" in page
    assert "<sup>✓</sup>" in page
    assert '<u class="unsupported">Whales sing at night.</u><sup class="unsupported">✗</sup>' in page
    assert '<a href="#c0">[1]</a>' in page
    assert 'id="c0">' in page
    assert "Claims, judged_faithfulness ✓" in text_of(page)
    assert "✗ unsupported Whales sing at night. — 0.00" in text_of(page)


def test_a_missing_sample_or_run_is_a_page_that_says_so(client: Client) -> None:
    for path in (
        "/run/none",
        "/run/demo-bm25/sample?id=none",
        "/nowhere",
        "/run/demo-hybrid/sample?baseline=demo-bm25&id=none",
    ):
        answer = client.get(path)
        assert answer.status == 404
        assert "Not found" in answer.text
    assert "Choose two runs" in client.get("/compare?run=demo-bm25").text


# Comparisons.


def test_samples_beside_a_baseline_are_sorted_by_what_they_lost(client: Client) -> None:
    effect = comparison_of(client.workspace, "demo-bm25", "demo-hybrid")["ndcg@5"].effect
    counts = {"lost": effect.losses, "won": effect.wins, "tied": effect.ties, "all": 160}
    for outcome, count in counts.items():
        address = f"/run/demo-hybrid/samples?baseline=demo-bm25&sort=ndcg@5&outcome={outcome}"
        page = client.get(address).text
        assert f" {count} of 160 samples" in text_of(page)
        changes = re.findall(r'<td class="n"><span class="\w+">([−+=])(?: ?)([\d.]+)', page)
        signed = [{"−": -1, "+": 1, "=": 0}[sign] * float(value) for sign, value in changes]
        assert signed == sorted(signed)
        assert outcome != "lost" or max(signed) < 0


def test_scores_that_differ_in_their_last_bit_are_tied_as_in_the_comparison() -> None:
    before = np.array([0.1 + 0.2, 0.5, 1.0, math.nan])
    scores = Scores(before, np.array([0.3, 0.75, 0.5, 1.0]), up=True)
    masks = {outcome: scores.mask(outcome).tolist() for outcome in ("tied", "won", "lost")}
    assert masks == {
        "tied": [True, False, False, False],
        "won": [False, True, False, False],
        "lost": [False, False, True, False],
    }


def test_a_comparison_is_shown_whatever_was_opened_in_between(tmp_path: Path) -> None:
    """A server keeps a few runs in memory. A run that is opened again is the one that is compared."""
    names = [str(number) for number in range(8)]
    ranked_runs(tmp_path, {"one": "a", "two": "ba"} | dict.fromkeys(names, "a"))
    page = "/run/two/sample?baseline=one&id=3&sort=mrr"
    with serving(tmp_path) as client:
        first = client.enter().get(page)
        for name in names:
            assert client.get(f"/run/{name}/samples").status == 200
        again = client.get(page)
    assert (first.status, again.status) == (200, 200)
    assert "two against one" in text_of(again.text)


def test_the_page_of_a_sample_opens_no_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside its own run and the baseline it shows others; all of them stay open for the next sample."""
    opened: list[Path] = []

    class Counted(RunSamples):
        def __init__(self, results: Path) -> None:
            opened.append(results)
            super().__init__(results)

    monkeypatch.setattr(workspaces, "RunSamples", Counted)
    ranked_runs(tmp_path, dict.fromkeys([str(number) for number in range(9)], "a"))
    with serving(tmp_path) as client:
        client.enter()
        for sample in "12":
            assert client.get(f"/run/8/sample?id={sample}&baseline=0").status == 200
    assert len(opened) == len(set(opened))


def ranked_runs(folder: Path, runs: Mapping[str, str] | None = None, metrics: str = "mrr") -> None:
    """Store runs of twelve samples, of which "two" has the right document second."""
    storage = EvaluationResultsStorage(folder)
    samples = [a_sample(str(n), str(n), relevant="a") for n in range(12)]
    for name, documents in (runs or {"one": "a", "two": "ba", "three": "a"}).items():
        evaluator = AueporaEvaluator(Retrieving(list(documents)), EvaluationPlan(metrics))
        evaluator.run(a_dataset(*samples), evaluation_id=name, storage=storage)


def test_three_runs_are_ranked(tmp_path: Path) -> None:
    ranked_runs(tmp_path)
    with serving(tmp_path) as client:
        page = client.enter().get("/compare?run=one&run=two&run=three").text
    assert "Ranking of 3 runs" in page
    pairs = re.findall(r'<a href="([^"]*)" data-row>([^<]*)</a>(.*?)(?=<li>|</ul>)', page)
    assert {name: (html.unescape(href), text_of(words)) for href, name, words in pairs} == {
        "two against one": ("/compare?run=one&run=two", "▼ 1 worse"),
        "three against one": ("/compare?run=one&run=three", "= 1 same"),
        "three against two": ("/compare?run=two&run=three", "▲ 1 better"),
    }
    assert "one #1–2 three #1–2" not in page
    assert 'aria-label="one 1.000' in page, "a dot for each run, with its value in words"


def test_a_comparison_has_the_colour_of_the_larger_count(tmp_path: Path) -> None:
    """One metric is better and two are worse: the page is not green. The other way round it is."""
    storage = EvaluationResultsStorage(tmp_path)
    samples = [a_sample(str(n), str(n), relevant="ad") for n in range(12)]
    for name, documents in (("one", "a"), ("two", "bad")):
        evaluator = AueporaEvaluator(Retrieving(list(documents)), EvaluationPlan("recall@5,mrr,hit@1"))
        evaluator.run(a_dataset(*samples), evaluation_id=name, storage=storage)
    for pair, kind, words in (
        ("one two", "down", "▼ 2 worse ▲ 1 better"),
        ("two one", "up", "▲ 2 better ▼ 1 worse"),
    ):
        run, other = pair.split()
        with serving(tmp_path) as client:
            page = client.enter().get(f"/compare?run={run}&run={other}").text
        assert words in text_of(page)
        assert f'class="strip {kind}"' in page


# The gate, experiments and trends.


def test_the_gate_is_that_of_the_command(
    client: Client, demo_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = client.get("/gate").text  # the newest run against the one before it
    command = ["gate", "demo-hybrid", "--baseline", "demo-bm25", "--out", str(demo_runs)]
    assert main([*command, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    seen = text_of(page)
    assert f"✓ PASSED: all {len(report['verdicts'])} rules" in seen
    assert "exit code 0" in seen
    assert "Note: times depend on the machine" in seen
    for one in report["verdicts"]:
        assert (one["name"] or one["rule"]) in seen
    named = next(one for one in report["verdicts"] if one["name"])
    leads = next(
        address for address in links(page, "/run/demo-hybrid/samples") if quote(named["name"]) in address
    )
    assert f"hybrid against bm25, worst first by {named['name']}" in text_of(client.get(leads).text)


def test_a_gate_by_the_rules_of_a_file(demo_runs: Path, tmp_path: Path) -> None:
    rules = tmp_path / "gate.yaml"
    rules.write_text("min: {recall@5: 0.7}\nmax_failed: 0.01\n")
    with serving(demo_runs, rules=rules) as client:
        page = client.enter().get("/gate?run=demo-hybrid&baseline=").text
        assert "✓ PASSED: all 2 rules" in text_of(page)
        assert "--rules" in page
        assert "/run/demo-hybrid/samples?sort=recall%405" in page
        rules.write_text("min: {recall@5: 0.9}\n")  # the next request reads it again
        failed = text_of(client.get("/gate?run=demo-hybrid&baseline=").text)
        assert "✕ FAILED: 1 of 1 rules" in failed
        assert "required: ≥ 0.9" in failed


def test_a_gate_on_a_metric_that_the_baseline_lacks(tmp_path: Path) -> None:
    ranked_runs(tmp_path, {"old": "ba"})
    ranked_runs(tmp_path, {"new": "a"}, "mrr,hit@1")
    (rules := tmp_path / "gate.yaml").write_text("no_regression: [hit@1]\n")
    with serving(tmp_path, rules=rules) as client:
        page = client.enter().get("/gate?run=new&baseline=old").text
    assert "INCONCLUSIVE" in text_of(page)
    assert "/run/new/samples?sort=hit%401" in page


def test_a_diagnosis_leads_to_the_samples_of_a_stage(demo_runs: Path, tmp_path: Path) -> None:
    shutil.copytree(demo_runs, tmp_path / "runs")
    found = Diagnosis(
        "demo-hybrid",
        "contains_answer",
        0.5,
        (0.4, 0.6),
        100,
        50,
        [StageShare("declined", "declined <on> its gold", "a rule", 2, 0.02, (0.0, 0.06), ("q013", "q014"))],
        [Fix("declines", "answer where it declines", "oracle", 0.1, (0.04, 0.16), 0.001, 0.01, 0.06)],
        "declines",
        calls={"generate": 7},
        corpus="my docs",
    )
    EvaluationResultsStorage(tmp_path / "runs").save_fact("demo-hybrid", diagnosis=found.to_dict())
    with serving(tmp_path / "runs") as client:
        assert "not diagnosed yet" in client.enter().get("/run/demo-bm25/diagnosis").text
        page = client.get("/run/demo-hybrid/diagnosis").text
        seen = text_of(page)
        assert "→ First: the generator (declines on its gold)" in seen
        assert "auepora diagnose demo-hybrid --corpus 'my docs'" in seen
        assert "Right 50 Generator 2" in seen
        assert "Answer where it declines +0.10 +0.06" in seen
        (stage,) = links(page, "/run/demo-hybrid/samples?stage")
        assert "2 of 160 samples" in text_of(client.get(stage).text)
        (example,) = links(page, "/run/demo-hybrid/sample?stage")
        assert "1 of 2" in text_of(client.get(example).text)


def test_an_experiment_leads_to_its_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "demo", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    (document,) = tmp_path.glob("ab_test_*.results.json")
    results = json.loads(document.read_text())
    with serving(tmp_path) as client:
        page = client.enter().get(f"/experiment/{results['evaluation_id']}").text
        assert f"Winner: {results['winner']}" in text_of(page)
        assert results["name"] in text_of(page)
        assert ">Runs</a>" in page.partition('class="crumbs"')[2].partition("</nav>")[0]
        for one in results["variants"].values():
            assert f"/run/{one['run']}" in links(page)
        (compare,) = links(page, "/compare?")
        assert client.get(compare).status == 200


# Large runs, runs that change, runs that are going.


def test_large_runs_are_compared_in_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auepora_eval.pages.comparisons.SMALL", 5)
    ranked_runs(tmp_path)
    pages = {
        "/compare?run=one&run=two": "two against one",
        "/compare?run=one&run=two&run=three": "Ranking of 3 runs",
        "/gate?run=two&baseline=one": "FAILED: 1 of",
    }
    with serving(tmp_path) as client:
        client.enter()
        for path, words in pages.items():
            first = client.get(path).text
            assert words in first or ("One moment" in first and 'http-equiv="refresh"' in first)
            until = time.monotonic() + 60
            while "One moment" in (text := client.get(path).text):
                assert time.monotonic() < until
                time.sleep(0.05)
            assert words in text
        made = comparisons_of(client.workspace)
    monkeypatch.setattr("auepora_eval.pages.comparisons.SMALL", 100)
    with serving(tmp_path) as client:
        assert comparisons_of(client.workspace) == made


def test_what_goes_wrong_in_the_background_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auepora_eval.pages.comparisons.SMALL", 5)
    ranked_runs(tmp_path)
    (rules := tmp_path / "rules.yaml").write_text("no_such_rule: 1")
    workspace, until = workspaces.Workspace(tmp_path, rules=rules), time.monotonic() + 60
    said = ""
    while not said and time.monotonic() < until:
        try:
            gate_of(workspace, "two", "one")
        except AueporaError as error:
            said = str(error)
        except workspaces.NotReadyError:
            time.sleep(0.05)
    with pytest.raises(AueporaError, match="no_such_rule") as here:
        read_rules(rules)
    assert said == str(here.value)


def comparisons_of(workspace: workspaces.Workspace) -> list[str]:
    """Return a comparison, a ranking and a gate as texts: NaN is not equal to itself."""
    return [
        repr(comparison_of(workspace, "one", "two")),
        repr(ranking_of(workspace, ["one", "two", "three"])),
        repr(gate_of(workspace, "two", "one")),
    ]


def test_a_run_that_is_replaced_is_shown_anew(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    with serving(tmp_path) as client:
        client.enter()
        for answer in ("first answer", "second answer"):
            evaluator = AueporaEvaluator(Constant(answer), EvaluationPlan("mean_latency"))
            storage.save_run(evaluator.run(a_dataset(a_sample("1")), evaluation_id="x"), force=True)
            assert answer in client.get("/run/x/sample?id=1").text


@pytest.mark.full
def test_a_run_that_is_going_is_followed(tmp_path: Path) -> None:
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
    with serving(tmp_path) as client:
        client.enter()
        thread.start()
        try:
            assert going.wait(30)
            assert "x" in client.get("/").text
            page = client.get("/run/x").text
            assert "samples have an output" in text_of(page)
            assert "data-going" in page
            # The page may be asked for before the outputs are stored.
            while not re.search("[23] of 4", client.get("/run/x").text):
                time.sleep(0.05)
        finally:
            finish.set()
            thread.join(30)
        assert "mean_latency" in client.get("/run/x").text


def test_a_run_that_was_stopped_has_not_the_sign_of_one_that_is_going(tmp_path: Path) -> None:
    words = ["run", "--dataset", "demo", "--system", "auepora_eval.demo.systems:bm25", "--id", "x"]
    assert main([*words, "--budget-calls", "3", "--metrics", "mrr", "--out", str(tmp_path)]) == 1
    with serving(tmp_path) as client:
        assert "! x not finished" in text_of(client.enter().get("/metrics").text)
        with locked(tmp_path / "x.run.db"):
            assert "◔ x not finished" in text_of(client.get("/metrics").text)


def test_damaged_files_do_not_hide_the_others(demo_runs: Path, tmp_path: Path) -> None:
    shutil.copy(demo_runs / "demo-bm25.results.json", tmp_path)
    (tmp_path / "broken.results.json").write_text("{")
    (tmp_path / "foreign.results.json").write_text('{"summary": {}}')
    with serving(tmp_path) as client:
        page = client.enter().get("/").text
        assert "demo-bm25" in page
        assert "broken.results.json" in page
        lost = client.get("/run/demo-bm25")
        assert lost.status == 400
        assert "is missing" in lost.text
        assert client.get("/run/foreign").status == 400


def test_only_the_named_runs_are_shown(demo_runs: Path) -> None:
    only = {"demo-bm25": demo_runs / "demo-bm25.results.json"}
    with serving(demo_runs, only=only) as client:
        page = client.enter().get("/").text
        assert "demo-bm25" in page
        assert "demo-hybrid" not in page
        assert "1 runs" not in text_of(page)
        assert "1 runs" not in text_of(client.get("/trend").text)
        assert client.get("/run/demo-hybrid").status == 404


def test_an_empty_folder_says_what_to_do(tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        assert "auepora demo" in client.enter().get("/").text
        assert client.get("/trend").status == 200


@pytest.mark.parametrize("number", ["9" * 5_000, "-1", "²", "1e3"])
def test_a_number_that_is_not_one_is_left_out(client: Client, number: str) -> None:
    # int() raises on more than 4,300 digits.
    pages = ["/?start=", "/run/demo-bm25/samples?after=", "/run/demo-bm25/samples?error="]
    for page in [*pages, f"/compare?{PAIR}&start="]:
        assert client.get(page + quote(number)).status == 200, page


def test_a_server_leaves_the_log_handlers_of_the_program_open(tmp_path: Path) -> None:
    # Libraries such as absl close their stream, which is stderr, together with their handler.
    handler = logging.FileHandler(tmp_path / "program.log", mode="w")  # is not opened again
    logger = logging.getLogger("a program")
    logger.addHandler(handler)
    try:
        with serving(tmp_path):
            logger.warning("still open")
        assert handler.stream is not None
        assert "still open" in (tmp_path / "program.log").read_text()
    finally:
        logger.removeHandler(handler)
        handler.close()
