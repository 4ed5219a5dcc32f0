"""`auepora annotate`: labels through the server are kept whatever happens, and nobody else can write them."""

from __future__ import annotations

import html
import re
import shlex
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.types import EvaluationSample
from auepora_eval.io.jsonl import load_jsonl_dataset, save_jsonl_dataset
from auepora_eval.people.labels import read_labels
from auepora_eval.people.task import create_task, is_task
from auepora_eval.store.labels import LabelTable
from tests.pages.serving import Client, Served, served, serving, tags_of
from tests.people.tasks import a_task, an_item, stored_task

HOSTILE = """</script><script>alert(1)</script><img src=x onerror=alert(2)>"' hx-get=/ \u202etxt"""


def item_in(html: str) -> str:
    found = re.search(r'name="item" value="([^"]*)"', html)
    assert found is not None
    return found[1]


def test_a_queue_is_labelled_to_its_end_and_judge_audit_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored_task(tmp_path / "t")
    with served("annotate", tmp_path / "t") as server:
        for key in "2122":
            page = server.get("/label/task/ada").text
            reply = server.post("/label/task/ada/press", item=item_in(page), key=key, note="")
            assert (reply.status, reply.headers["location"]) == (303, "/label/task/ada")
        end = server.get("/label/task/ada").text
        assert "All 4 items are done: 4 labels, 0 not sure." in end
        command = f"auepora judge-audit --labels {tmp_path}/t/labels.jsonl --judge support:lexical"
        assert command in end
        assert server.stop() == 0
        assert "ada: 4 of 4 labelled" in server.printed
        assert f"  {command}\n" in server.printed
    assert main(command.split()[1:]) == 0
    assert "4 labelled claims, 3 of the scored ones supported" in capsys.readouterr().out


@pytest.mark.full
def test_kill_9_of_the_server_loses_no_label_and_no_note(tmp_path: Path) -> None:
    task, _ = stored_task(tmp_path)
    saved: dict[str, str] = {}
    for key, label in (("1", "not supported"), ("2", "supported")):
        with served("annotate", tmp_path) as server:
            item = item_in(server.get("/label/task/ada").text)
            assert (
                server.post("/label/task/ada/press", item=item, key=key, note=f"why {key}\r\nso").status
                == 303
            )
            saved[item] = label
            server.stop(signal.SIGKILL)
    labels = read_labels(tmp_path, task, "ada")
    assert labels.said == saved
    assert sorted(labels.notes.values()) == ["why 1\nso", "why 2\nso"]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A task whose texts are attacks, for two people, with the lead's pages."""
    folder = tmp_path_factory.mktemp("task")
    items = [
        an_item(
            number,
            sample_id=HOSTILE,
            query=HOSTILE,
            text=HOSTILE,
            reference=HOSTILE,
            documents=(an_item(1).documents[0].__class__(HOSTILE, HOSTILE, HOSTILE),),
            runs=("secret-system",),
        )
        for number in (1, 2)
    ]
    task = a_task(people=("ada", "ben"), question=HOSTILE, runs=("secret-system",))
    create_task(folder, task, items)
    for person, label in (("ada", "supported"), ("ben", "not supported")):
        read_labels(folder, task, person).label("1", label)
        read_labels(folder, task, person).note("1", HOSTILE)
    with served("annotate", folder) as server:
        yield server


@pytest.mark.parametrize("path", ["/label/task", "/label/task/ada", "/label/task/ben", "/label/task/_lead"])
def test_texts_stay_texts(hostile: Served, path: str) -> None:
    reply = hostile.get(path)
    assert reply.status == 200
    assert tags_of(reply.text).count("script") == 1, "our own"
    assert "img" not in tags_of(reply.text)
    assert "\u202e" not in reply.text
    assert "default-src 'none'" in reply.headers["content-security-policy"]


def test_an_annotator_sees_neither_the_system_nor_the_labels_of_others(hostile: Served) -> None:
    page = hostile.get("/label/task/ada").text
    assert "secret-system" not in page
    assert "ben" not in page


def test_the_lead_sees_disagreements_and_settles_them(hostile: Served) -> None:
    page = hostile.get("/label/task/_lead").text
    assert "1 of 1 disagreements to settle" in page
    # Cohen&#x27;s kappa
    assert "s kappa" in page
    assert hostile.post("/label/task/_settle", item="1", key="2").headers["location"] == "/label/task/_lead"
    page = hostile.get("/label/task/_lead").text
    assert "0 of 1 disagreements to settle" in page
    [command] = re.findall(r"auepora (annotate --agree [^<]+)", page)
    assert main(shlex.split(html.unescape(command))) == 0, "the labels are written where the page says"


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        ("/label/task/ada/press", {"item": "1", "key": "7"}, 400),
        ("/label/task/ada/press", {"item": "99", "key": "1"}, 400),
        ("/label/task/ada/press", {}, 400),
        ("/label/task/eve/press", {"item": "1", "key": "1"}, 400),
        ("/label/task/..%2f..%2fada/press", {"item": "1", "key": "1"}, 404),
        ("/label/task/_settle", {"item": "99", "key": "1"}, 400),
        ("/label/task/ada/press", {"item": "2", "key": "1", "note": "x" * 10_001}, 400),
        ("/label/task/ada/press", {"item": "2", "key": "1", "note": "x" * 1_000_001}, 413),
    ],
)
def test_what_cannot_be_a_label_is_an_error_and_saves_nothing(
    hostile: Served, path: str, fields: dict[str, str], status: int
) -> None:
    before = hostile.get("/label/task/ada").text
    assert hostile.post(path, **fields).status == status
    assert hostile.get("/label/task/ada").text == before


def test_only_our_own_page_can_label(hostile: Served) -> None:
    path, body = "/label/task/ada/press", "item=2&key=1"
    ours = {"origin": f"http://127.0.0.1:{hostile.port}", "sec_fetch_site": "same-origin"}
    cookie = hostile.cookie
    assert hostile.get(f"{path}?{body}").status == 405, "POST only"
    assert hostile.send("POST", path, body, cookie=cookie).status == 403, "no Origin"
    assert (
        hostile.send("POST", path, body, cookie=cookie, **{**ours, "origin": "http://evil.test"}).status
        == 403
    )
    assert (
        hostile.send("POST", path, body, cookie=cookie, **{**ours, "sec_fetch_site": "same-site"}).status
        == 403
    )
    assert hostile.send("POST", path, body, **ours).status == 401, "no cookie"
    assert hostile.send("POST", path, body, cookie=cookie, host="evil.test", **ours).status == 421
    assert item_in(hostile.get("/label/task/ada").text) == "2", "nothing was saved"


def test_an_annotator_may_be_served_only_their_own_pages(tmp_path: Path) -> None:
    stored_task(tmp_path, people=("ada", "ben"))
    with served("annotate", tmp_path, "--as", "ada") as server:
        assert server.get("/label/task/ada").status == 200
        assert server.get("/label/task/ben").status == 404
        assert server.get("/label/task/_lead").status == 404
        assert server.post("/label/task/_settle", item="1", key="1").status == 405
        assert "/label/task/_lead" not in server.get("/label/task").text


# In the view: labels on the page of a sample, and tasks beside the runs.


@pytest.fixture
def view(demo_runs: Path, tmp_path: Path) -> Iterator[Client]:
    shutil.copytree(demo_runs, tmp_path / "runs")
    with serving(tmp_path / "runs") as client:
        yield client.enter()


def test_an_answer_is_labelled_on_the_page_of_its_sample(view: Client) -> None:
    page = "/run/demo-hybrid/sample?id=q036&sort=recall%405"
    assert "Label the answer" in view.get(page).text
    body = urlencode({"id": "q036", "key": "partly", "back": page}).encode()
    reply = view.post("/run/demo-hybrid/label", body)
    assert (reply.status, reply.headers["location"]) == (303, page)
    assert 'data-key="2" aria-pressed="true"' in view.get(page).text
    stored = LabelTable(view.workspace.folder / "demo-hybrid.run.db", "me")
    assert [(one.item, one.answer) for one in stored.answers] == [("q036", "partly")]
    rows = view.get("/run/demo-hybrid/samples.csv").text.splitlines()
    assert sum(",partly," in row for row in rows) == 1, "the table that is exported has the labels"


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"id": "q036", "key": "superb"}, 404),
        ({"id": "none", "key": "right"}, 404),
        ({"id": "q036", "key": "right", "back": "//evil.test/"}, 303),
    ],
)
def test_what_is_not_a_label_of_a_sample_is_not_saved(
    view: Client, fields: dict[str, str], status: int
) -> None:
    reply = view.post("/run/demo-hybrid/label", urlencode(fields).encode())
    assert reply.status == status
    assert "evil" not in reply.headers.get("location", "")
    assert view.get("/run/demo-hybrid/label").status == 405, "POST only"


def test_a_task_is_created_labelled_and_listed_in_the_view(view: Client) -> None:
    reply = view.post("/label/new", b"run=demo-hybrid")
    assert reply.headers["location"] == "/label/demo-hybrid-answers/me"
    page = view.get(reply.headers["location"]).text
    pressed = view.post("/label/demo-hybrid-answers/me/press", f"item={item_in(page)}&key=1".encode())
    assert pressed.status == 303
    assert "me: 1 of 50 labelled" in view.get("/label").text
    assert "Nobody" not in view.get("/label/demo-hybrid-answers/_lead").text
    assert is_task(view.workspace.folder.parent / "annotations" / "demo-hybrid-answers")
    for name in ("..%2fruns", "none", "%2e%2e"):
        assert view.get(f"/label/{name}/me").status in (400, 404)


def test_the_questions_of_a_run_are_reviewed_in_the_view(
    view: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = view.workspace.folder.parent
    monkeypatch.chdir(folder)
    first = view.post("/review/new", b"run=demo-hybrid").headers["location"]
    assert first == "/review/demo-hybrid-questions.jsonl"
    assert view.get(first).headers["location"] == f"{first}/1"
    page = view.get(f"{first}/1").text
    assert "Question 1 of 160" in page
    assert "<mark" in page, "the gold spans of the run are marked"
    assert view.post(f"{first}/1/press", b"key=reject&reason=duplicate").headers["location"] == f"{first}/2"
    assert view.post(f"{first}/2/press", b"key=write").headers["location"] == f"{first}/done"
    assert "0 accepted, 1 rejected, 159 not decided" in view.get(f"{first}/done").text
    new = folder / "annotations" / "demo-hybrid-questions.jsonl"
    assert len(load_jsonl_dataset(new)) == 159
    for name in ("none", "..%2fruns", "%2e%2e"):
        assert view.get(f"/review/{name}/1").status == 404


def test_a_review_that_a_command_began_goes_on_in_the_view(
    view: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = view.workspace.folder.parent
    monkeypatch.chdir(folder)
    samples = [EvaluationSample(str(number), f"What is {number}?") for number in range(2)]
    save_jsonl_dataset(InMemoryDataset("numbers", samples), folder / "q.jsonl")
    with served("annotate", "--questions", "q.jsonl", "--out", "new.jsonl", folder=folder) as server:
        server.post("/review/task/1/press", key="accept")
        assert server.stop() == 0
    listed = view.get("/label").text
    assert "/review/new.jsonl" in listed
    assert "1 decided" in listed
    assert view.get("/review/new.jsonl").headers["location"] == "/review/new.jsonl/2"
    # The last decision writes the new version, which replaces what the command wrote.
    assert (
        view.post("/review/new.jsonl/2/press", b"key=reject").headers["location"] == "/review/new.jsonl/done"
    )
    assert [one.sample_id for one in load_jsonl_dataset(folder / "new.jsonl")] == ["0"]
    (folder / "new.jsonl").write_text("somebody else's")
    assert view.post("/review/new.jsonl/2/press", b"key=write").status == 400
    assert (folder / "new.jsonl").read_text() == "somebody else's"
