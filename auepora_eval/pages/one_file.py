"""The pages of a run or of a comparison as one file, to be sent and opened without a server.

They are the pages that the server has, each in a section whose id is its address. A link to a page that is in
the file leads to its section, any other link is dropped. file.js applies the filters that the server applies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from html import escape, unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import parse_qsl, urlencode

from ..comparison.compare import Comparison
from ..comparison.ranking import Ranking
from ..core.types import EvaluationRun
from ..io.files import write_bytes
from ..store.pages import Filter
from .compare import compare_page, compared_sample_page, ranking_page, shown_metric
from .comparisons import Pair
from .components.markup import Markup, join, raw_element, tag
from .layout import address, brand, crumbs, document, heading, inside, own_file
from .requests import Ask, Handler, Page
from .run import most_to_explain, run_page
from .samples import sample_page, samples_page
from .workspace import Workspace

MOST = 500  # samples; those that lost most, or the worst

Section = tuple[str, Page]  # the address of a page, and the page


def one_file(
    workspace: Workspace,
    run_ids: Sequence[str],
    *,
    comparison: Comparison | None = None,
    ranking: Ranking | None = None,
) -> str:
    """Return the pages of one run, of the comparison of two, or of the ranking of more."""
    if ranking is not None:
        sections = [(_compare_address(run_ids), ranking_page(workspace, run_ids, ranking))]
        pairs = zip(run_ids[1:], ranking.pairs, strict=False)  # those with the first run come first
        for other, pair in pairs:
            sections += _comparison(workspace, [run_ids[0], other], pair, MOST // (len(run_ids) - 1))
    elif comparison is not None:
        sections = list(_comparison(workspace, run_ids, comparison, MOST))
    else:
        sections = list(_run(workspace, run_ids[0]))
    known = {place: number for number, (place, _) in enumerate(sections)}
    texts: dict[str, str] = {}
    content = [_section(n, each, known, texts) for n, each in enumerate(sections)]
    body = tag(
        "body",
        tag("a", "Skip to the content", class_="skip", href="#main"),
        tag("header", brand(), tag("span", "one file", class_="mute"), class_="top"),
        tag("main", tag("div", content, _documents(texts), class_="pages"), id="main", tabindex=-1),
        tag("footer", _footer(workspace, run_ids)),
        raw_element("script", script := own_file("view.js") + own_file("file.js")),
        class_="alone filed",
    )
    return document(sections[0][1].title, inside(script, own_file("style.css")), body)


def write_run(run: EvaluationRun, path: Path, *, force: bool = False) -> None:
    """Write the pages of a run that is in memory to one file."""
    with TemporaryDirectory() as folder:
        workspace = Workspace.named(folder, [str(run.save(folder))])
        # An answer of a model may contain half of a surrogate pair, which UTF-8 cannot write.
        page = one_file(workspace, [run.evaluation_id]).encode("utf-8", "replace")
    write_bytes(path, page, force=force)


def _run(workspace: Workspace, run_id: str) -> Iterator[Section]:
    """Yield the page of a run, the list of its samples, and each of them."""
    index = workspace.index(run_id)
    metric = most_to_explain(index)
    about = {"run": run_id}
    yield address("run", run_id), _made(run_page, Ask(workspace, about, rows=MOST))
    if not index.size:
        return
    values = {"sort": metric} if metric else {}
    listed = Ask(workspace, about, values, rows=MOST)
    yield address("run", run_id, "samples"), _left_out(_made(samples_page, listed), index.size)
    for row in index.rows(index.page(index.matching(Filter()), metric, count=MOST).places):
        place = address("run", run_id, "sample", query={"id": row.sample_id})
        yield place, _made(sample_page, Ask(workspace, about, {**values, "id": row.sample_id}, rows=MOST))


def _comparison(
    workspace: Workspace, run_ids: Sequence[str], comparison: Comparison, most: int
) -> Iterator[Section]:
    """Yield the page of a comparison with its list of samples, and each of them in both runs."""
    a, b = map(workspace.index, run_ids)
    # The comparison that was made with the settings of the command, not the one that the pages would make.
    pair = workspace.kept.get(("pair", a.digest, b.digest), lambda: Pair(a, b, comparison))
    values, lists = {"outcome": "all"}, {"run": list(run_ids)}
    ask = Ask(workspace, values=values, lists=lists, rows=most)
    yield _compare_address(run_ids), _left_out(_made(compare_page, ask), pair.total, most)
    metric = shown_metric(ask, pair)
    if metric is None:
        return
    numbers, _ = pair.page(metric, "all", Filter(), count=most)
    for row in b.rows(pair.places[1][numbers].tolist()):
        query = [*(("run", run_id) for run_id in run_ids), ("id", row.sample_id)]
        one = Ask(workspace, values={**values, "id": row.sample_id}, lists=lists, rows=most)
        yield address("compare", "sample", query=query), _made(compared_sample_page, one)


def _compare_address(run_ids: Sequence[str]) -> str:
    return address("compare", query=[("run", run_id) for run_id in run_ids])


def _made(handler: Handler, ask: Ask) -> Page:
    reply = handler(ask)
    if not isinstance(reply, Page):
        raise TypeError("only pages can be written to a file")
    return reply


def _left_out(made: Page, total: int, most: int = MOST) -> Page:
    if total <= most:
        return made
    note = f"This file has {most:,} of the {total:,} samples; auepora view shows all."
    return replace(made, main=join(tag("p", note, class_="note"), made.main))


# A section of the file.

_ATTRIBUTE = re.compile(r' (href|id|action)="([^"]*)"')


def _section(number: int, section: Section, known: dict[str, int], texts: dict[str, str]) -> Markup:
    place, made = section
    way = crumbs(replace(made, crumbs=made.crumbs[-1:])) if number else None
    content = join(way, heading(made), made.main)

    def replaced(match: re.Match[str]) -> str:
        name, value = match[1], unescape(match[2])
        if name == "id":
            return f' id="{escape(f"p{number}-{value}")}"'
        if value.startswith("#"):
            return f' href="{escape(f"#p{number}-{value[1:]}")}"'
        inside = _in_file(value, known)
        return f' {name}="{escape(f"#{inside}")}"' if inside else ""

    # Safe on the text of markup: only attributes have quotes, those of texts are escaped.
    html = _ATTRIBUTE.sub(replaced, _SORTS.sub(_sort_key, content.text))
    once = partial(_once, texts, keeps_marks=number <= _INLINE)
    return tag("section", Markup(_DOCUMENT.sub(once, html)), id=place)


_SORTS = re.compile(r'(<th[^>]* aria-sort="[^"]*">)<a href="([^"]*)">')


def _sort_key(match: re.Match[str]) -> str:
    """Return the heading of a column, by which a script sorts."""
    key = dict(parse_qsl(unescape(match[2]).partition("?")[2])).get("sort", "")
    return f'{match[1]}<a role="button" tabindex="0" data-sort="{escape(key)}">'


# The text of a document is in the file once, since many samples have the same. A script puts it where it is
# shown, with its marks. Of the first samples the marked ones are complete, for readers without a script.
_INLINE = 20
_DOCUMENT = re.compile(r'<p class="text" dir="auto"([^>]*)>((?:[^<]|</?mark[^>]*>)*)</p>')
_MARK = re.compile(r'(<mark(?: class="(\w+)")?>)([^<]*)</mark>')


def _once(texts: dict[str, str], match: re.Match[str], *, keeps_marks: bool) -> str:
    if keeps_marks and "<mark" in match[2]:
        return match[0]
    plain, marks = "", []
    for before, kind, marked in _marked_pieces(match[2]):
        plain += unescape(before)
        if marked:
            # A browser counts in units of UTF-16.
            start, size = (len(each.encode("utf-16-le")) // 2 for each in (plain, unescape(marked)))
            marks.append(f"{start} {start + size} {kind}".strip())
        plain += unescape(marked)
    place = texts.setdefault(escape(plain), f"d{len(texts)}")
    about = f' data-marks="{",".join(marks)}"' if marks else ""
    return f'<p class="text" data-text="{place}"{about}{match[1]}><a href="#{place}">Text</a></p>'


def _marked_pieces(html: str) -> Iterator[tuple[str, str, str]]:
    """Yield each mark as (the text before it, its class, its text), and what comes behind the last."""
    done = 0
    for mark in _MARK.finditer(html):
        yield html[done : mark.start()], mark[2] or "", mark[3]
        done = mark.end()
    yield html[done:], "", ""


def _documents(texts: dict[str, str]) -> list[Markup]:
    """Return a page per document, for those who read the file without a script."""
    return [
        tag("section", tag("h1", "Document"), tag("p", Markup(text), class_="text", dir="auto"), id=place)
        for text, place in texts.items()
    ]


def _in_file(link: str, known: dict[str, int]) -> str:
    """Return the address of a page as its section has it; "" if the file does not have the page.

    Lists keep what they are filtered by, which file.js reads.
    """
    path, _, query = link.partition("#")[0].partition("?")
    pairs = parse_qsl(query)
    own = [(name, value) for name, value in pairs if name in ("run", "id")]
    section = f"{path}?{urlencode(own)}" if own else path
    if section not in known:
        return ""
    return section if path.endswith("/sample") or not query else f"{path}?{urlencode(pairs)}"


def _footer(workspace: Workspace, run_ids: Sequence[str]) -> Markup:
    lines = []
    for run in (workspace.index(run_id).run for run_id in run_ids):
        packages = run.environment.get("packages")
        version = packages.get("auepora-eval", "?") if isinstance(packages, dict) else "?"
        about = f"{run.evaluation_id}: {run.started_at}, {run.seconds:.1f} s"
        data = f"data {run.dataset_fingerprint[:12]}, seed {run.seed}"
        python = run.environment.get("python", "?")
        lines.append(tag("p", f"{about}, {data}, auepora-eval {version}, Python {python}", class_="note"))
    return join(lines)
