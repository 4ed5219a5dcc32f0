"""The checks of the browser tests can fail: each is shown a page that it must object to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .conftest import Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def written(folder: Path, body: str) -> str:
    file = folder / "page.html"
    file.write_text(f"<!doctype html><html lang=en><title>t</title><body>{body}", encoding="utf-8")
    return file.as_uri()


def test_messages_and_requests_are_seen(visit: Visitor, tmp_path: Path) -> None:
    seen = visit(
        written(
            tmp_path, "<script>console.log('hello')</script><img alt='' src='http://127.0.0.1:1999/x.png'>"
        )
    )
    assert "log: hello" in seen.console
    assert "http://127.0.0.1:1999/x.png" in seen.requests
    seen.console.clear()
    seen.requests.clear()


def test_violations_overlaps_and_widths_are_seen(visit: Visitor, tmp_path: Path) -> None:
    body = """<p style='color: #bbb'>pale</p><div class=row style='height: 40px'>one</div>
    <div class=row style='margin-top: -20px'>two</div><div id=far style='margin-left: 3000px'>far</div>"""
    seen = visit(written(tmp_path, body))
    assert any(one.startswith("color-contrast") for one in seen.violations())
    assert len(seen.overlaps(".row")) == 1
    assert seen.scrolls_sideways()
    assert not seen.is_in_window("#far")
    assert seen.is_in_window("p")


# Sizes are explicit: how large a button is otherwise depends on the fonts of the machine.
SIZES = "button { width: 48px; height: 48px; margin: 8px; font-size: 16px }"
CLEAN = f"<style>{SIZES}</style><main><h1>Title</h1><p>text</p><button>a</button><button>b</button></main>"


@pytest.mark.parametrize(
    ("style", "fault"),
    [
        pytest.param("", "", id="clean"),
        pytest.param("p { color: #ccc }", "color-contrast", id="pale"),
        pytest.param(
            "@media (prefers-color-scheme: dark) { p { color: #444; background: #333 } }",
            "color-contrast",
            id="dark",
        ),
        pytest.param(
            "@media (max-width: 400px) { button { width: 5px; height: 5px; margin: 0; padding: 0 } }",
            "target-size",
            id="phone",
        ),
    ],
)
def test_a_fault_of_one_look_is_seen(visit: Visitor, tmp_path: Path, style: str, fault: str) -> None:
    seen = visit(written(tmp_path, f"{CLEAN}<style>{style}</style>"))
    if not fault:
        assert len(list(seen.every_look())) == 4
        return
    with pytest.raises(AssertionError, match=fault):
        list(seen.every_look())


def test_a_page_can_be_seen_in_the_dark_and_on_a_phone(visit: Visitor, tmp_path: Path) -> None:
    seen = visit(written(tmp_path, "<p>text"), zoom=2)
    assert seen.page.evaluate("() => innerWidth") == 640
    seen.look(390, dark=True)
    assert seen.page.evaluate("() => matchMedia('(prefers-color-scheme: dark)').matches")
    assert seen.page.evaluate("() => innerWidth") == 390


def test_there_is_one_browser_for_all_tests(browser: Browser) -> None:
    assert browser.is_connected()
