"""The rules of web/security.py. For each: the attack fails, and works once the rule is left out."""

from __future__ import annotations

import re
import shutil
import socket
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest

from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.errors import StorageError, UnknownNameError
from auepora_eval.pages import security
from auepora_eval.pages.app import ROUTES
from auepora_eval.pages.requests import Ask, Page, Redirect, Route
from auepora_eval.pages.security import BODY_BYTES, HEADERS, RULES, Guard, listening_socket
from auepora_eval.store.pages import Filter, RunSamples
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample
from tests.pages.serving import served, serving

SECRET = "the secret of the run"  # noqa: S105


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    evaluator = AueporaEvaluator(
        lambda query: {"retrieved": ["a"], "answer": SECRET}, EvaluationPlan("recall@1,mrr")
    )
    samples = [a_sample(str(n), f"question {n}", relevant="ab") for n in range(6)]
    for name in ("inside", "other"):
        evaluator.run(a_dataset(*samples), evaluation_id=name, storage=EvaluationResultsStorage(folder))
    return folder


def without(rule: security.Rule) -> partial[Guard]:
    """Return a guard that leaves one rule out."""
    return partial(Guard, rules=[each for each in RULES if each is not rule])


SAMPLE = "/run/inside/sample?id=0"


def test_the_page_that_is_attacked_has_the_secret(runs: Path) -> None:
    with serving(runs) as client:
        assert SECRET in client.enter().get(SAMPLE).text


# 1. Only this machine.


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="only Linux answers on all of 127.0.0.0/8")
def test_rule_1_only_the_loopback_address_is_answered() -> None:
    def answers(server: socket.socket) -> bool:
        try:
            # Any other address of this machine would do: this one needs no network.
            socket.create_connection(("127.0.0.2", server.getsockname()[1]), timeout=2).close()
        except OSError:
            return False
        return True

    with listening_socket() as ours, socket.socket() as open_to_all:
        assert ours.getsockname()[0] == "127.0.0.1"
        open_to_all.bind(("", 0))
        open_to_all.listen()
        assert not answers(ours)
        assert answers(open_to_all)


def test_rule_1_the_port_is_random() -> None:
    with listening_socket() as first, listening_socket() as second:
        assert first.getsockname()[1] != second.getsockname()[1]


# 2. Only who has the printed address.


@pytest.mark.parametrize(
    "path", ["/", "/run/inside", SAMPLE, "/run/inside/samples", "/style.css", "/view.js", "/nowhere"]
)
def test_rule_2_nothing_without_the_cookie(runs: Path, path: str) -> None:
    with serving(runs) as client:
        answer = client.get(path)
        assert (answer.status, SECRET in answer.text) == (401, False)
    with serving(runs, guard=without(security.check_session)) as client:
        assert client.get(path).status in (200, 404)


def test_rule_2_the_token_works_once_and_leaves_the_address(runs: Path) -> None:
    with serving(runs) as client:
        token = client.access.token or ""
        assert len(token) >= 32
        first = client.get(f"/?token={token}")
        assert (first.status, first.headers["location"]) == (303, "/")
        cookie = first.headers["set-cookie"].lower()
        assert cookie.startswith(f"auepora_{client.access.port}=")
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert client.get("/").status == 200
        client.cookies.clear()
        assert client.get(f"/?token={token}").status == 401


@pytest.mark.parametrize("token", ["", "x", "é", "None", "%00"])
def test_rule_2_other_tokens_and_cookies_are_refused(runs: Path, token: str) -> None:
    with serving(runs) as client:
        assert client.get(f"/?token={token.encode().hex()}").status == 401
        client.cookies = {client.access.cookie: token or '"'}
        assert client.send("GET", "/").status == 401 if token.isascii() else True
        assert client.access.token is not None, "a wrong token must not use up the right one"


@pytest.mark.parametrize("value", ['{"a": 1}', "a b", '"', "a=b=c", "", "é"])
def test_cookies_of_other_programs_do_not_lock_the_user_out(runs: Path, value: str) -> None:
    """Browsers send the cookies of all ports of a host, older ones first."""
    with serving(runs) as client:
        client.enter()
        client.cookies = {"theme": value.encode().decode("latin-1"), **client.cookies}
        assert client.get("/").status == 200


# 3. Only by its own name (DNS rebinding).


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", "[::1]:{port}"]
)
def test_rule_3_other_hosts_are_refused(runs: Path, host: str) -> None:
    with serving(runs) as client:
        client.enter()
        answer = client.get(SAMPLE, host=host.format(port=client.access.port))
        assert (answer.status, SECRET in answer.text) == (421, False)
        assert client.get(SAMPLE, host=f"localhost:{client.access.port}").status == 200
    with serving(runs, guard=without(security.check_host)) as client:
        assert SECRET in client.enter().get(SAMPLE, host=host.format(port=client.access.port)).text


# 4. Changes only by POST from our own pages.


def changing() -> tuple[list[Route], list[str]]:
    changes: list[str] = []

    def change(ask: Ask) -> Redirect:
        changes.append(ask.values.get("label", ""))
        return Redirect("/")

    return [*ROUTES, Route("/change", change, changes=True)], changes


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"origin": "http://evil.example"}, id="another site"),
        pytest.param({"origin": "http://127.0.0.1:1"}, id="another port"),
        pytest.param({"origin": "null"}, id="a sandboxed frame"),
        pytest.param({"origin": ""}, id="no origin"),
        pytest.param({"sec_fetch_site": "cross-site"}, id="the browser says cross-site"),
        pytest.param({"sec_fetch_site": "same-site"}, id="another port of this host"),
        pytest.param({"sec_fetch_site": ""}, id="not a browser"),
    ],
)
def test_rule_4_changes_come_from_our_own_pages(runs: Path, headers: dict[str, str]) -> None:
    routes, changes = changing()
    with serving(runs, routes=routes) as client:
        client.enter()
        assert client.post("/change", b"label=forged", **headers).status == 403
        assert changes == []
        assert client.post("/change", b"label=own").status == 303
        assert changes == ["own"]
    with serving(runs, routes=routes, guard=without(security.check_origin)) as client:
        assert client.enter().post("/change", b"label=forged", **headers).status == 303
        assert changes == ["own", "forged"]


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_rule_4_other_methods_change_nothing(runs: Path, method: str) -> None:
    routes, changes = changing()
    with serving(runs, routes=routes) as client:
        assert client.enter().send(method, "/change?label=forged").status == 405
    assert changes == []


def test_rule_4_parts_are_not_loaded_by_other_sites(runs: Path) -> None:
    with serving(runs) as client:
        client.enter()
        assert client.get("/view.js", sec_fetch_site="cross-site", sec_fetch_mode="no-cors").status == 403
        assert client.get("/", sec_fetch_site="cross-site", sec_fetch_mode="navigate").status == 200
    with serving(runs, guard=without(security.check_origin)) as client:
        assert (
            client.enter().get("/view.js", sec_fetch_site="cross-site", sec_fetch_mode="no-cors").status
            == 200
        )


# 5. Headers on every answer. That the policy stops a script is shown in tests/browser.


@pytest.mark.parametrize("path", ["/", SAMPLE, "/style.css", "/nowhere", "/run/none", "/?token=x"])
def test_rule_5_every_answer_has_the_headers(runs: Path, path: str) -> None:
    with serving(runs) as client:
        refused = client.get(path)
        entered = client.enter().get(path)
    for answer in (refused, entered):
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
        assert "server" not in answer.headers
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    with serving(runs, guard=partial(Guard, headers={})) as client:
        assert "content-security-policy" not in client.enter().get(path).headers


# 7. Names from a list, values as parameters, runs by their ids.


@pytest.mark.parametrize(
    "run_id",
    [
        "..%2Foutside%2Fhidden",
        "%2E%2E%2Fhidden",
        "..",
        "hidden%00",
        "%2Fetc%2Fpasswd",
        "inside.results.json",
        "-x",
        ".",
    ],
)
def test_rule_7_a_run_is_not_a_path(runs: Path, run_id: str) -> None:
    with serving(runs) as client:
        answer = client.enter().get(f"/run/{run_id}")
        assert answer.status == 404
        assert SECRET not in answer.text


SQL = [
    pytest.param("none' OR n = 3 --", id="another sample"),
    pytest.param("none' UNION SELECT length(value) - length(value) FROM meta --", id="another table"),
]


@pytest.mark.parametrize("text", SQL)
def test_rule_7_what_is_asked_for_is_not_sql(runs: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attack = f"/run/inside/sample?id={quote(text)}"
    with serving(runs) as client:
        answer = client.enter().get(attack)
        assert (answer.status, SECRET in answer.text) == (404, False)
        for name in ("sort", "words", "slice", "range", "error", "after", "low"):
            answer = client.get(f"/run/inside/samples?{name}={quote(text)}")
            assert (answer.status, "sqlite" in answer.text.lower()) == (200, False)

    def joined(index: RunSamples, sample_id: str) -> int:
        ((place,), *_) = index.database.select(f"SELECT n FROM sample WHERE id = '{sample_id}'")  # noqa: S608
        return int(place)

    monkeypatch.setattr(
        RunSamples, "place_of", joined
    )  # the rule switched off: text becomes a part of the SQL
    with serving(runs) as client:
        answer = client.enter().get(attack)
        assert (answer.status, SECRET in answer.text) == (200, True)


def test_rule_7_the_database_is_opened_read_only(runs: Path, tmp_path: Path) -> None:
    for file in ("inside.results.json", "inside.run.db"):
        shutil.copy(runs / file, tmp_path / file)
    index = RunSamples(tmp_path / "inside.results.json")
    with pytest.raises(StorageError, match="readonly"):
        index.database.select("DELETE FROM sample")
    index.close()


def test_rule_7_a_metric_is_one_of_the_list(runs: Path) -> None:
    index = RunSamples(runs / "inside.results.json")
    with pytest.raises(UnknownNameError):
        index.column("mrr\0<f8")
    with serving(runs) as client:
        page = client.enter().get("/run/inside/samples?sort=mrr%00%3Cf8").text
    assert "worst first by recall@1" in page, "the usual metric instead"


def test_rule_7_words_are_parameters(runs: Path) -> None:
    with RunSamples(runs / "inside.results.json") as index:
        for attack in ("') OR 1 --", "question%", "x' OR '1'='1"):
            assert index.matching(Filter(words=attack)).sum() == 0


# 8. Bodies are limited, and nothing is written but the cache.


def pieces(count: int) -> Iterator[bytes]:
    yield b"label="
    for _ in range(count):
        yield b"x" * 100_000


@pytest.mark.parametrize("kind", ["announced", "chunked"])
def test_rule_8_bodies_are_limited(runs: Path, kind: str) -> None:
    routes, changes = changing()
    size = BODY_BYTES // 100_000 + 1

    def sent(client: object) -> int:
        body = pieces(size) if kind == "chunked" else b"".join(pieces(size))
        own = {"origin": client.origin, "sec-fetch-site": "same-origin"}  # type: ignore[attr-defined]
        return client.send("POST", "/change", body, own).status  # type: ignore[attr-defined,no-any-return]

    with serving(runs, routes=routes) as client:
        assert sent(client.enter()) == 413
        assert changes == []
    with serving(runs, routes=routes, guard=partial(Guard, body_bytes=10**9)) as client:
        assert sent(client.enter()) == 303
        assert len(changes) == 1


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def changed_by(folder: Path, paths: Iterable[str], routes: list[Route] | None = None) -> set[str]:
    """Return the files that are other ones after some pages were shown: new, changed or removed."""
    before = contents(folder)
    with serving(folder, routes=routes) as client:
        client.enter()
        for path in paths:
            assert client.get(path).status in (200, 303), path
    after = contents(folder)
    return {name for name in {*before, *after} if before.get(name) != after.get(name)}


PAIR = "run=inside&run=other"
EVERY_PAGE = [
    "/",
    "/run/inside",
    "/run/inside/samples?sort=mrr",
    SAMPLE,
    "/ticked?run=inside",
    f"/compare?{PAIR}",
    "/run/other/sample?baseline=inside&id=0",
    "/gate",
    "/trend",
    "/metrics",
]


def test_rule_8_only_the_cache_is_written(runs: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(runs, tmp_path / "runs")
    assert changed_by(folder, EVERY_PAGE) == set()

    def careless(ask: Ask) -> Page:
        path = ask.workspace.path("inside")
        path.write_bytes(path.read_bytes() + b"\n")
        return Page("Seen", "")

    # The rule switched off: a page that writes into a run is noticed.
    assert changed_by(folder, ["/seen"], [Route("/seen", careless)]) == {"inside.results.json"}
    assert changed_by(folder, ["/"]) == set()


def test_rule_8_annotating_writes_labels_only(runs: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(runs, tmp_path / "runs")
    before, task = contents(folder), tmp_path / "task"
    with served("annotate", "inside", "--out", folder, "--task", task) as server:
        page = server.get("/label/task/me").text
        item = re.search(r'name="item" value="([^"]*)"', page)
        assert item is not None
        assert server.post("/label/task/me/press", item=item[1], key="1", note="").status == 303
        server.stop()
    assert contents(folder) == before
    assert {name.partition("/")[0] for name in contents(task)} <= {
        "annotations", "items.jsonl", "labels.gt.json", "labels.jsonl", "task.json",
    }  # fmt: skip


def test_hostile_text_is_only_text(tmp_path: Path) -> None:
    attack = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202e"
    evaluator = AueporaEvaluator(
        lambda query: {"retrieved": [{"doc_id": attack, "text": attack}], "answer": attack},
        EvaluationPlan("mrr"),
    )
    samples = [a_sample(attack, attack, relevant=[attack], reference=attack, labels={attack: attack})]
    samples += [a_sample(str(n), attack, relevant="a", labels={attack: str(n % 2)}) for n in range(8)]
    evaluator.run(a_dataset(*samples), evaluation_id="x", storage=EvaluationResultsStorage(tmp_path))
    with serving(tmp_path) as client:
        client.enter()
        for path in (
            "/",
            "/run/x",
            "/run/x/samples",
            f"/run/x/sample?id={quote(attack)}",
            f"/run/{quote(attack)}",
        ):
            text = client.get(path).text
            assert "<img src" not in text
            assert "<script>alert" not in text
            assert "\u202e" not in text


def test_an_error_in_a_page_shows_no_internals(runs: Path) -> None:
    def broken(ask: Ask) -> Page:
        raise RuntimeError(SECRET)

    with serving(runs, routes=[Route("/broken", broken)]) as client:
        answer = client.enter().get("/broken")
    assert answer.status == 500
    assert SECRET not in answer.text
    assert "content-security-policy" in answer.headers
