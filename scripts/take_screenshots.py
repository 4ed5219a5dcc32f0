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
SCALE = 1.25  # pixels of the picture per pixel of the page
SAMPLE = "q027"  # a question that hybrid lost, with a gold span


def save(page: Page, name: str) -> None:
    """Write the window as a PNG with 256 colours at most."""
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    # By coverage: the median cut leaves few colours for what is small, and green became blue.
    reduced = picture.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    reduced.save(IMAGES / name, optimize=True)


@contextmanager
def opened_page() -> Iterator[Page]:
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        yield browser.new_page(viewport={"width": 1240, "height": 900}, device_scale_factor=SCALE)
        browser.close()


PAIR = "run=demo-bm25&run=demo-hybrid"
LOST = "baseline=demo-bm25&sort=contains_answer"
# The main states, each with its address, whether it is dark, and its width.
STATES = {
    "view-runs": ("", False, 1280),
    "view-run": ("run/demo-hybrid", False, 1280),
    "view-samples": ("run/demo-hybrid/samples?sort=recall%405", False, 1280),
    "view-sample": ("run/demo-hybrid/sample?id=q036&sort=recall%405", False, 1280),
    "view-compare": (f"compare?{PAIR}", False, 1280),
    "view-compare-dark": (f"compare?{PAIR}", True, 1280),
    "view-compared-sample": (
        f"run/demo-hybrid/sample?baseline=demo-bm25&id={SAMPLE}&sort=contains_answer",
        False,
        1280,
    ),
    "view-gate": ("gate?run=demo-hybrid&baseline=demo-bm25", False, 1280),
    "view-trend": ("trend?metric=recall%405", False, 1280),
    "view-diagnosis": ("run/demo-hybrid/diagnosis", False, 1280),
    "view-label": ("label/demo-hybrid-answers/me", False, 1280),
    "view-phone": ("run/demo-hybrid", False, 390),
}


def take(report: str) -> None:
    with opened_page() as page:
        page.goto(report)
        save(page, "report.png")
        page.goto(f"{report}#/run/demo-hybrid/sample?baseline=demo-bm25&id={SAMPLE}")
        save(page, "report-sample.png")


def take_view() -> None:
    """Take the pictures of `auepora view`, as a user starts it."""
    words = [sys.executable, "-m", "auepora_eval", "view", "--no-open"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own command
    with server, opened_page() as page:
        address = next(match[0] for line in server.stdout or () if (match := re.search(r"http://\S+", line)))
        page.goto(address)
        home = address.partition("?")[0]
        for name, (path, dark, width) in STATES.items():
            page.set_viewport_size({"width": width, "height": 844 if width < 800 else 900})
            page.emulate_media(color_scheme="dark" if dark else "light")
            page.goto(f"{home}{path}")
            save(page, f"{name}.png")
        server.terminate()


if __name__ == "__main__":
    # In a folder of its own, where the usual folder of runs is new: commands on a page then name no folder.
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        main(["demo"])
        take((Path(DEFAULT_OUT) / "demo-bm25-vs-demo-hybrid.html").absolute().as_uri())
        main(["diagnose", "demo-hybrid", "--system", "auepora_eval.demo.systems:hybrid"])
        main(["annotate", "demo-hybrid", "--prepare"])
        take_view()
