"""The pages of a run or of a comparison as one file, to be sent and opened without a server.

They are the pages that the server has, each in a section whose id is its address. A link to a page that is in
the file leads to its section, any other link is dropped. file.js applies the filters that the server applies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape, unescape
from urllib.parse import parse_qsl, urlencode

from ..comparison.compare import Comparison
from ..comparison.ranking import Ranking
from ..store.pages import Filter
from .compare import compare_page, compared_sample_page, ranking_page, shown_metric
from .components.markup import Markup, join, tag
from .layout import address
from .page import inside, own_file, page
from .pairs import Pair
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
    title = sections[0][1].title
    lists = [(place, each.title) for place, each in sections if "/sample?" not in place]
    links = (tag("li", tag("a", name, href=f"#{place}")) for place, name in lists)
    main = tag("div", (_section(n, each, known) for n, each in enumerate(sections)), class_="pages")
    return page(
        title,
        assets=inside(own_file("view.js") + own_file("file.js"), "style.css", "view.css"),
        header=tag("nav", tag("ul", links), aria_label="Pages"),
        main=main,
        footer=_footer(workspace, run_ids),
    )


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
    return Page(made.title, join(tag("p", note, class_="small"), made.main))


# A section of the file.

_ATTRIBUTE = re.compile(r' (href|id|action)="([^"]*)"')


def _section(number: int, section: Section, known: dict[str, int]) -> Markup:
    place, made = section
    content = join(tag("h1", made.title), made.main)

    def replaced(match: re.Match[str]) -> str:
        name, value = match[1], unescape(match[2])
        if name == "id":
            return f' id="{escape(f"p{number}-{value}")}"'
        if value.startswith("#"):
            return f' href="{escape(f"#p{number}-{value[1:]}")}"'
        inside = _in_file(value, known)
        return f' {name}="{escape(f"#{inside}")}"' if inside else ""

    # Safe on the text of markup: only attributes have quotes, those of texts are escaped.
    return tag("section", Markup(_ATTRIBUTE.sub(replaced, content.text)), id=place)


def _in_file(link: str, known: dict[str, int]) -> str:
    """Return the address of a page as its section has it; "" if the file does not have the page.

    Lists keep what they are filtered by, which file.js reads.
    """
    path, _, query = link.partition("#")[0].partition("?")
    pairs = parse_qsl(query)
    own = [(name, value) for name, value in pairs if name in ("run", "id")]
    section = f"{path}?{urlencode(own)}" if own else path
    if path == "/compare" and not own:  # the form, whose fields name the runs
        return path
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
        lines.append(tag("p", f"{about}, {data}, auepora-eval {version}, Python {python}", class_="small"))
    return join(lines)
