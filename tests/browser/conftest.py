"""Pages in a real browser: one Chromium per file of tests, a new context for each visit.

`visit(address)` opens a page and returns a Visit. When the test ends, every visit must have been quiet: no
message on the console, no request to another host. `scripts/set_up_browser.sh` installs what is needed.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
AXE = ROOT / ".browser" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# No look-up of Google's hosts, no first-run page; the sandbox does not work for root.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDE, PHONE = 1280, 390
# A test may stop its server while the last page still loads its style. What is not there is a 404 instead.
STOPPED = re.compile(r"net::ERR_CONNECTION_(RESET|REFUSED)$")
# Every page is looked at in these: width, and whether it is dark. A look takes less time than a visit.
LOOKS = [(width, dark) for width in (WIDE, PHONE) for dark in (False, True)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder: `pytest -m browser`, or `-m "not browser"`."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


def lacking(what: str) -> NoReturn:
    """Skip with the reason, or fail where CI is set: there, a browser is never missing by accident."""
    reason = f"{what} is missing: run scripts/set_up_browser.sh"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@dataclass
class Visit:
    """A page that was opened, and what it said and asked for since."""

    page: Page
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def press(self, *keys: str) -> None:
        """Press keys one by one, each on a loaded page: before its script runs, a key does nothing."""
        for key in keys:
            self.page.wait_for_load_state()
            self.page.keyboard.press(key)

    def look(self, width: int, dark: bool) -> None:
        """Change the width of the window and the colour scheme."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme="dark" if dark else "light")

    def every_look(self) -> Iterator[tuple[int, bool]]:
        """Show the page in every look: in none, axe objects to anything or the page scrolls sideways.

        Contrast takes nearly all of axe's time. It depends on the colours and not on the width, so it is
        checked once per colour scheme, and the other rules once per width.
        """
        for width, dark in LOOKS:
            self.look(width, dark)
            if not dark:
                assert self.violations(contrast=width == WIDE) == [], (width, dark)
            elif width == PHONE:
                assert self.violations(contrast_only=True) == [], (width, dark)
            assert not self.scrolls_sideways(), (width, dark)
            yield width, dark

    def violations(self, *, contrast: bool = True, contrast_only: bool = False) -> list[str]:
        """Return what axe-core objects to: rule, help and the first elements."""
        options = {
            "runOnly": {"type": "rule", "values": ["color-contrast"]} if contrast_only else RULES,
            "rules": {"color-contrast": {"enabled": contrast}},
            "resultTypes": ["violations"],
        }
        check = "async options => (await axe.run(document, options)).violations"
        found = self.page.evaluate(check, options)
        return [
            f"{one['id']}: {one['help']}: {[node['target'] for node in one['nodes'][:3]]}" for one in found
        ]

    def boxes(self, selector: str) -> list[tuple[str, dict[str, float]]]:
        """Return the text and the box of each visible element, in the order of the page."""
        read = "all => all.map(e => [e.textContent.trim().slice(0, 40), e.getBoundingClientRect().toJSON()])"
        boxes: list[tuple[str, dict[str, float]]] = self.page.locator(selector).evaluate_all(read)
        return [(text, box) for text, box in boxes if box["width"] and box["height"]]

    def overlaps(self, selector: str) -> list[str]:
        """Return the elements that lie on top of the one before: axe does not see an unreadable page."""
        boxes = self.boxes(selector)
        return [
            f"{text!r} begins at {box['top']:.0f}, {before!r} ends at {above['bottom']:.0f}"
            for (before, above), (text, box) in pairwise(boxes)
            if box["top"] < above["bottom"] - 1
            and box["left"] < above["right"] - 1
            and above["left"] < box["right"] - 1
        ]

    def is_in_window(self, selector: str) -> bool:
        """Return whether the first such element is inside the window, sideways as well."""
        window = self.page.viewport_size or {"width": 0, "height": 0}
        boxes = self.boxes(selector)
        if not boxes:
            return False
        box = boxes[0][1]
        return (
            box["left"] >= 0 and box["right"] <= window["width"] + 1 and 0 <= box["top"] <= window["height"]
        )

    def scrolls_sideways(self) -> bool:
        """Return whether the page as a whole is wider than the window."""
        return bool(self.page.evaluate("() => document.documentElement.scrollWidth > innerWidth"))


# Not for the whole session: Playwright's event loop runs in this thread until it is stopped, and every test
# after it would find itself inside a running loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, started once per file."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        lacking("the package playwright")
    chromium = shutil.which("chromium") or lacking("Chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core."""
    return AXE.read_text(encoding="utf-8") if AXE.exists() else lacking("axe-core")


Visitor = Callable[..., Visit]


@pytest.fixture
def visit(browser: Browser, axe: str) -> Iterator[Visitor]:
    """Open pages: visit(address, width=390, dark=True, zoom=2, script=False)."""
    visits: list[tuple[Visit, str]] = []

    def opened(
        address: str,
        *,
        width: int = WIDE,
        height: int = 900,
        dark: bool = False,
        zoom: int = 1,
        **options: Any,
    ) -> Visit:
        # Zooming by 2 gives the page half of the pixels, each twice as large.
        context = browser.new_context(
            viewport={"width": width // zoom, "height": height // zoom},
            device_scale_factor=zoom,
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            **options,
        )
        # Not a <script>: the page's own policy would refuse it.
        context.add_init_script(axe)
        context.set_default_timeout(5_000)
        seen = Visit(context.new_page())
        seen.page.on("console", lambda message: seen.console.append(f"{message.type}: {message.text}"))
        seen.page.on("pageerror", lambda error: seen.console.append(f"error: {error}"))
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        visits.append((seen, address))
        seen.page.goto(address)
        return seen

    yield opened
    for seen, address in visits:
        seen.page.context.close()
        home = urlsplit(address)[:2]
        assert [message for message in seen.console if not STOPPED.search(message)] == []
        assert [
            url for url in seen.requests if urlsplit(url)[:2] != home and not url.startswith("data:")
        ] == []
