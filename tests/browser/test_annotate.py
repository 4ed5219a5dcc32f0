"""`auepora annotate` in a browser: ten answers by keyboard alone, and the bar is always in the window."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from auepora_eval.cli.main import main
from auepora_eval.people.labels import read_labels
from auepora_eval.people.task import Kind, Passage, create_task
from tests.pages.serving import Served, served
from tests.people.tasks import a_task, an_item, stored_task

from .conftest import Visit, Visitor

LONG = "A sentence of a document that goes on for a while. " * 60


def opened(visit: Visitor, server: Served, path: str = "/label/task/ada", **how: object) -> Visit:
    """Open a page with the cookie that the test has exchanged the token for."""
    name, _, value = server.cookie.partition("=")
    address = f"http://127.0.0.1:{server.port}"
    cookie = {"name": name, "value": value, "domain": "127.0.0.1", "path": "/", "expires": -1}
    state = {"cookies": [{**cookie, "httpOnly": True, "secure": False, "sameSite": "Strict"}], "origins": []}
    return visit(f"{address}{path}", storage_state=state, **how)


def wait_for_labels(seen: Visit, count: int) -> None:
    seen.page.locator(f"progress[value='{count}']").wait_for()


def test_ten_answers_by_keyboard_alone(
    visit: Visitor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task, _ = stored_task(tmp_path, 10)
    with served("annotate", tmp_path) as server:
        seen = opened(visit, server)
        keys, times = seen.page.keyboard, []
        seen.press("?")
        assert seen.page.locator("#keys").is_visible()
        seen.press("1")  # not a label while the help is open
        seen.press("Escape")
        wait_for_labels(seen, 0)
        seen.press("n")
        keys.type("a note with 1 and u in it")
        seen.press("Escape")
        for count in range(1, 10):
            started = time.perf_counter()
            seen.press("2" if count % 3 else "1")
            wait_for_labels(seen, count)
            times.append(time.perf_counter() - started)
        seen.press("u")
        wait_for_labels(seen, 8)
        seen.press("s")  # the item comes back at the end
        seen.page.get_by_text("8 of 10 labelled, 1 skipped").wait_for()
        seen.press("0")
        wait_for_labels(seen, 9)
        seen.press("1")
        seen.page.get_by_role("heading", name="Done").wait_for()
        assert "All 10 items are done: 9 labels, 1 not sure." in seen.page.locator("main").inner_text()
        command = seen.page.locator("code").first.inner_text()
        print(f"label by key to next item: {sorted(times)[len(times) // 2] * 1000:.0f} ms at the median")
    labels = read_labels(tmp_path, task, "ada")
    assert list(labels.notes.values()) == ["a note with 1 and u in it"]
    capsys.readouterr()
    assert main(command.split()[1:]) == 0
    assert "9 labelled claims" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["answers", "claims", "documents", "pairs"])
def test_every_kind_of_item_in_every_look(visit: Visitor, tmp_path: Path, kind: Kind) -> None:
    documents = tuple(Passage(f"d{number}", LONG, "A title") for number in range(3))
    item = an_item(1, documents=documents, reference="A reference.", answer=LONG, second=LONG, text=LONG)
    create_task(tmp_path, a_task(kind), [item, an_item(2, second="b")])
    with served("annotate", tmp_path) as server:
        seen = opened(visit, server)
        if "sentence" not in seen.page.locator("main").inner_text():
            seen.press("1")
            wait_for_labels(seen, 1)
        for width, _ in seen.every_look():
            box = seen.boxes("form.bar-form")[0][1]
            assert 0 <= box["top"] < box["bottom"] <= 901, "the whole bar is in the window"
            assert box["right"] <= width
            assert seen.overlaps(".doc") == []
            assert seen.overlaps("form.bar-form button") == []


def test_a_page_zoomed_to_200_percent_still_shows_the_answers(visit: Visitor, tmp_path: Path) -> None:
    create_task(tmp_path, a_task(), [an_item(1, text=LONG)])
    with served("annotate", tmp_path) as server:
        seen = opened(visit, server, zoom=2)
        assert seen.is_in_window("form.bar-form .answers")
        assert not seen.scrolls_sideways()


def test_the_page_of_the_lead_before_any_label(visit: Visitor, tmp_path: Path) -> None:
    stored_task(tmp_path, 2)
    with served("annotate", tmp_path) as server:
        seen = opened(visit, server, "/label/task/_lead")
        list(seen.every_look())
        seen.page.get_by_role("link", name="ada").click()
        wait_for_labels(seen, 0)


def test_the_end_and_the_page_of_the_lead(visit: Visitor, tmp_path: Path) -> None:
    task, _ = stored_task(tmp_path, 6, people=("ada", "ben"))
    for number in range(1, 7):
        read_labels(tmp_path, task, "ada").label(str(number), "supported")
        read_labels(tmp_path, task, "ben").label(str(number), "supported" if number % 2 else "not supported")
    with served("annotate", tmp_path) as server:
        for path in ("/label/task", "/label/task/ada", "/label/task/_lead"):
            seen = opened(visit, server, path)
            list(seen.every_look())
        seen.page.get_by_role("button", name="supported", exact=True).first.click()
        seen.page.get_by_role("heading", name="2 of 3 disagreements to settle").wait_for()


def test_a_server_that_is_gone_is_reported_and_the_note_stays(visit: Visitor, tmp_path: Path) -> None:
    stored_task(tmp_path)
    with served("annotate", tmp_path) as server:
        seen = opened(visit, server)
        seen.press("n")
        seen.page.keyboard.type("half a thought")
        seen.page.wait_for_timeout(700)  # saved after a pause, without a label
        server.process.kill()
        server.process.wait()
        seen.press("Escape")
        seen.press("1")
        seen.page.get_by_role("alert").get_by_text("Not saved. The server does not answer.").wait_for()
        assert seen.page.locator("textarea").input_value() == "half a thought"
        assert all("ERR_CONNECTION_REFUSED" in line for line in seen.console)
        seen.console.clear()
    assert list(read_labels(tmp_path, a_task(), "ada").notes.values()) == ["half a thought"]


def test_labels_work_without_a_script(visit: Visitor, tmp_path: Path) -> None:
    stored_task(tmp_path, 2)
    with served("annotate", tmp_path) as server:
        seen = opened(visit, server, java_script_enabled=False)
        seen.page.get_by_role("button", name="2 supported").click()
        wait_for_labels(seen, 1)
        assert urlsplit(seen.page.url).path == "/label/task/ada"
