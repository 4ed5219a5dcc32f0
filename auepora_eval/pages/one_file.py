"""The pages of a run or of a comparison as one file, to be sent and opened without a server.

They are the pages that the server has, each in a section whose id is its address. A link to a page that is in
the file leads to its section, any other link is dropped. file.js applies the filters that the server applies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from html import escape, unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import parse_qsl, urlencode

from ..comparison.compare import Comparison
from ..comparison.ranking import Ranking
from ..core.types import EvaluationRun
from ..errors import UnknownNameError
from ..io.files import write_bytes
from .compare import compare_page, ranking_page, shown_metric
from .comparisons import pair_of
from .components.markup import Markup, join, raw_element, tag
from .layout import address, brand, compare_address, crumbs, document, heading, inside, own_file
from .requests import Ask, Page
from .run import most_to_explain, run_page
from .samples import sample_page, samples_page, selection_of
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
        sections = [(compare_address(run_ids), ranking_page(workspace, run_ids, ranking))]
        pairs = zip(run_ids[1:], ranking.pairs, strict=False)  # those with the first run come first
        for other, pair in pairs:
            sections += _comparison(workspace, [run_ids[0], other], pair, MOST // (len(run_ids) - 1))
    elif comparison is not None:
        sections = list(_comparison(workspace, run_ids, comparison, MOST))
    else:
        sections = list(_run(workspace, run_ids[0]))
    known = {place for place, _ in sections}
    content = [_section(number, each, known) for number, each in enumerate(sections)]
    body = tag(
        "body",
        tag("a", "Skip to the content", class_="skip", href="#main"),
        tag("header", brand(), tag("span", "one file", class_="mute"), class_="top"),
        tag("main", tag("div", content, class_="pages"), id="main", tabindex=-1),
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
    about, index = {"run": run_id}, workspace.index(run_id)
    yield address("run", run_id), run_page(Ask(workspace, about, rows=MOST))
    if index.size:
        metric = most_to_explain(index)
        yield from _samples(Ask(workspace, about, {"sort": [metric]} if metric else {}, rows=MOST))


def _comparison(
    workspace: Workspace, run_ids: Sequence[str], comparison: Comparison, most: int
) -> Iterator[Section]:
    """Yield the page of a comparison, the list of its samples, and each of them in both runs."""
    # The comparison that was made with the settings of the command, not the one that the pages would make.
    baseline, candidate = run_ids
    pair = pair_of(workspace, baseline, candidate, comparison)
    ask = Ask(workspace, lists={"run": list(run_ids)}, rows=most)
    yield compare_address(run_ids), compare_page(ask)
    if metric := shown_metric(ask, pair):
        lists = {"baseline": [baseline], "sort": [metric]}
        yield from _samples(Ask(workspace, {"run": candidate}, lists, rows=most))


def _samples(ask: Ask) -> Iterator[Section]:
    """Yield the list of samples, and the page of each that is in it."""
    selection, most = selection_of(ask), ask.rows or MOST
    made = samples_page(ask)
    if selection.index.size > most:
        note = f"This file has {most:,} of the {selection.index.size:,} samples; auepora view shows all."
        made = replace(made, main=join(tag("p", note, class_="note"), made.main))
    own = [("baseline", name) for name in ask.lists.get("baseline", ())]
    yield address("run", ask.path["run"], "samples", query=own), made
    for row in selection.index.rows(selection.page(None, most).places):
        one = replace(ask, lists={**ask.lists, "id": [row.sample_id]})
        place = address("run", ask.path["run"], "sample", query=[*own, ("id", row.sample_id)])
        with suppress(UnknownNameError):  # a sample that the baseline does not have
            yield place, sample_page(one)


# A section of the file.

_ATTRIBUTE = re.compile(r' (href|id|action)="([^"]*)"')


def _section(number: int, section: Section, known: set[str]) -> Markup:
    place, made = section
    way = crumbs(replace(made, crumbs=made.crumbs[-1:])) if number else None
    content = join(way, heading(made), made.main)

    def replaced(match: re.Match[str]) -> str:
        name, value = match[1], unescape(match[2])
        if name == "id":
            return f' id="{escape(f"p{number}-{value}")}"'
        if value.startswith("#"):
            return f' href="{escape(f"#p{number}-{value[1:]}")}"'
        inside, more = _in_file(value, known)
        kept = f' data-more="{escape(more)}"' if more else ""
        return f' {name}="{escape(f"#{inside}")}"{kept}' if inside else ""

    # Safe on the text of markup: only attributes have quotes, those of texts are escaped.
    return tag("section", Markup(_ATTRIBUTE.sub(replaced, content.text)), id=place)


def _in_file(link: str, known: set[str]) -> tuple[str, str]:
    """Return the address of a page as its section has it ("" if the file does not have it), and the rest.

    The rest of the query is what a list is sorted and filtered by: file.js adds it to the link,
    which leads to the list without scripts too.
    """
    path, _, query = link.partition("#")[0].partition("?")
    pairs = parse_qsl(query)
    own = [pair for name in ("run", "baseline", "id") for pair in pairs if pair[0] == name]
    section = path + address(query=own).removeprefix("/")
    if section not in known:
        return "", ""
    more = [] if path.endswith("/sample") else [pair for pair in pairs if pair not in own]
    return section, urlencode(more)


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
