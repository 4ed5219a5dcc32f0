"""Take the pictures of docs/images from the demo: `python scripts/take_screenshots.py`.

Needs what the browser tests need (scripts/set_up_browser.sh, the extra `check`);
Pillow, which comes with it, reduces the colours so that a picture stays below 150 KB.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from auepora_eval.cli.main import main
from auepora_eval.core.settings import DEFAULT_OUT

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
SCALE = 1.5  # pixels of the picture per pixel of the page
SAMPLE = "q027"  # a question that hybrid lost, with a gold span


def save(page: Page, name: str) -> None:
    """Write the window as a PNG with 96 colours at most."""
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    reduced = picture.quantize(96, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    reduced.save(IMAGES / name, optimize=True)


@contextmanager
def opened_page() -> Iterator[Page]:
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        yield browser.new_page(viewport={"width": 1240, "height": 900}, device_scale_factor=SCALE)
        browser.close()


def take(report: str) -> None:
    with opened_page() as page:
        page.goto(report)
        save(page, "report.png")
        page.goto(f"{report}#/compare/sample?run=demo-bm25&run=demo-hybrid&id={SAMPLE}")
        save(page, "report-sample.png")


def take_view() -> None:
    """Take the pictures of `auepora view`, as a user starts it."""
    words = [sys.executable, "-m", "auepora_eval", "view", "--no-open"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own command
    with server, opened_page() as page:
        address = next(match[0] for line in server.stdout or () if (match := re.search(r"http://\S+", line)))
        page.goto(address)
        home = address.partition("?")[0]
        page.goto(f"{home}run/demo-hybrid")
        save(page, "view-run.png")
        page.goto(f"{home}compare?run=demo-bm25&run=demo-hybrid")
        save(page, "view-compare.png")
        server.terminate()


if __name__ == "__main__":
    # In a folder of its own, where the usual folder of runs is new: commands on a page then name no folder.
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        main(["demo"])
        take((Path(DEFAULT_OUT) / "demo-bm25-vs-demo-hybrid.html").absolute().as_uri())
        take_view()
