"""Scenarios whose output is a page in the browser: reports, and what `auepora view` serves.

A page is recorded as what its reader sees, a block on a line, with the addresses of links and the fields of
forms. Colours, classes and shapes of charts are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

from tests.journeys.material import with_runs
from tests.journeys.recording import RESULTS, call, stable_text
from tests.pages.serving import serving

# What begins a line, and the mark before it.
_BLOCKS = {
    **dict.fromkeys(
        ("html", "body", "main", "header", "footer", "nav", "section", "article", "div", "p"), ""
    ),
    **dict.fromkeys(("table", "thead", "tbody", "caption", "ul", "ol", "dl", "form", "fieldset"), ""),
    **dict.fromkeys(("pre", "blockquote", "figure", "figcaption", "br", "hr", "svg", "label", "tr"), ""),
    **{f"h{level}": "#" * level + " " for level in range(1, 7)},
    **{"title": "title: ", "li": "- ", "dt": "- ", "dd": "  ", "details": "", "summary": "> "},
}
_UNSEEN = {"script", "style", "template"}
# Marks before and after the text of an element. The end of a cell or an option may be left out in HTML.
_BEFORE = {"mark": "==", "del": "~~", "button": "[", "option": " / ", "td": " | ", "th": " | ", "text": " "}
_AFTER = {"mark": "==", "del": "~~", "button": "]"}


class _Reader(HTMLParser):
    """Collects the lines that a reader of a page sees."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = [""]
        self._unseen = 0
        self._addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in _UNSEEN:
            self._unseen += 1
        if tag in _BLOCKS:
            self.lines.append(_BLOCKS[tag])
        self.lines[-1] += _BEFORE.get(tag, "") + _words_of(tag, given)
        if tag == "a":
            address = given.get("href", "")
            if "data-more" in given:  # added by file.js
                address += f"{'&' if '?' in address else '?'}{given['data-more']}"
            self._addresses.append(address)

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSEEN:
            self._unseen -= 1
        if tag == "a":
            self.lines[-1] += f" <{self._addresses.pop()}>"
        self.lines[-1] += _AFTER.get(tag, "")
        if tag in _BLOCKS:
            self.lines.append("")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.lines[-1] += re.sub(r"\s+", " ", data)


def _words_of(tag: str, given: Mapping[str, str]) -> str:
    """Return what an element says by its attributes: to a screen reader, in a hint, or as a field."""
    words = [given[name] for name in ("aria-label", "title", "placeholder") if given.get(name)]
    if tag in ("input", "select", "textarea"):
        checked = ["checked"] if "checked" in given else []
        words = [tag, given.get("name", ""), given.get("value", ""), *checked, *words]
    if tag == "option" and "selected" in given:
        words.append("selected")
    return f"{{{' '.join(filter(None, words))}}} " if words else ""


def text_of_page(page: str) -> str:
    """Return what a reader sees of a page."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    lines = (line.strip() for line in reader.lines)
    return stable_text("\n".join(line for line in lines if line.strip("|>#- ")))


def report_page() -> str:
    with_runs("few2")
    call("show few2 --html report.html")
    return text_of_page(Path("report.html").read_text(encoding="utf-8"))


def comparison_page() -> str:
    with_runs("few", "few2")
    call("compare few few2 --html report.html")
    return text_of_page(Path("report.html").read_text(encoding="utf-8"))


def ranking_page() -> str:
    with_runs("few", "few2", "few3")
    call("compare few few2 few3 --html report.html")
    return text_of_page(Path("report.html").read_text(encoding="utf-8"))


def _served(*paths: str, rules: str | None = None) -> str:
    """Return pages of `auepora view`, each below its address."""
    shown = []
    with serving(RESULTS, rules=Path(rules) if rules else None) as client:
        client.enter()
        for path in paths:
            answer = client.get(path)
            # How long ago a run was depends on how long the test takes.
            text = re.sub(r"(now|\d+ (min|h|d|y))$", "AGE", text_of_page(answer.text), flags=re.MULTILINE)
            shown.append(f"GET {path}: {answer.status}\n{text}")
    return "\n".join(shown)


def view_runs() -> str:
    with_runs("steady", "shaky", "few", "few2")
    return _served("/", "/run/none", "/nowhere")


def view_run() -> str:
    with_runs("few2")
    return _served("/run/few2?slices=ndcg@5")


def view_samples() -> str:
    with_runs("few2")
    return _served(
        "/run/few2/samples?sort=ndcg@5",
        "/run/few2/samples?slice=answerable:False",
        "/run/few2/sample?id=q001&sort=ndcg@5",
        "/run/few2/sample?id=q043",
    )


def view_comparison() -> str:
    with_runs("few", "few2")
    pair = "run=few&run=few2"
    return _served(
        f"/compare?{pair}",
        "/run/few2/samples?baseline=few",
        "/run/few2/sample?baseline=few&id=q043",
        "/compare?run=few",
    )


def view_gate() -> str:
    with_runs("steady", "shaky")
    Path("gate.yaml").write_text(
        "min: {recall@5: 0.9}\nno_regression: [mrr]\nmax_failed: 0.01\n", encoding="utf-8"
    )
    usual = _served("/gate?run=shaky&baseline=steady", "/trend?metric=recall@5")
    return usual + "\n" + _served("/gate?run=shaky&baseline=steady", rules="gate.yaml")


SCENARIOS = (
    *(report_page, comparison_page, ranking_page),
    *(view_runs, view_run, view_samples, view_comparison, view_gate),
)
