"""Two or more runs: is one better, where, and on which samples?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from urllib.parse import urlencode

import numpy as np

from ..comparison.compare import MetricComparison, lost_most
from ..comparison.ranking import Ranking
from ..comparison.tables import (
    letter,
    pair_table,
    ranking_in_words,
    ranking_legend,
    ranking_table,
    slice_notes,
)
from ..comparison.words import comparison_in_plain_words, interval_notes, names_apart, verdict_text
from ..core.display import p_cell, value_text
from ..errors import DataError
from ..store.pages import Filter
from .comparisons import ranking_of
from .components.charts import scatter
from .components.markup import Markup, Node, join, tag
from .components.sample import sample_body
from .components.tables import (
    FOREST_NOTE,
    Change,
    Slice,
    data_table,
    forest,
    notes,
    sample_table,
    scale_of,
    short,
    slices_table,
)
from .layout import address, link, metric_box, select_box, with_id
from .pairs import OUTCOMES, Pair, pair_of
from .requests import Ask, Page, Reply
from .samples import Column, answered, meanings_of, selection_of, variants_section
from .workspace import Workspace

ROWS = 20  # samples on a page


def compare_page(ask: Ask) -> Reply:
    """Compare the runs that the address names: the first is the baseline."""
    run_ids = list(dict.fromkeys(ask.lists.get("run", [])))
    if len(run_ids) < 2:
        raise DataError("", "A comparison needs two runs.", fix="Tick them on the page of all runs.")
    if len(run_ids) > 2:
        return ranking_page(ask.workspace, run_ids, ranking_of(ask.workspace, run_ids))
    pair = pair_of(ask.workspace, *run_ids)
    metric = shown_metric(ask, pair)
    names = names_of(pair)
    main = join(
        _kept(pair, lambda: _lead(pair), "lead"),
        _kept(pair, lambda: _links(pair, run_ids), "links", *run_ids),
        _kept(pair, lambda: _changes(ask, pair, names, run_ids), "changes", *run_ids),
        _samples_section(ask, pair, names, run_ids, metric) if metric else None,
        _kept(pair, lambda: _slices(ask, pair, names, run_ids, metric), "slices", metric, *run_ids)
        if metric
        else None,
    )
    command = ask.workspace.command("compare", *map(ask.workspace.name, run_ids))
    return Page(f"{names[1]} against {names[0]}", main, command)


def _lead(pair: Pair) -> Markup:
    return tag("div", (tag("p", text) for text in comparison_in_plain_words(pair.comparison)), class_="lead")


def _kept(pair: Pair, make: Callable[[], Node], *key: str) -> Node:
    """Return a part of the page that does not depend on the filters; it is made once."""
    if key not in pair.drawn:
        pair.drawn[key] = make()
    kept: Node = pair.drawn[key]
    return kept


def names_of(pair: Pair) -> list[str]:
    """Return the names of both systems, or the ids of the runs if both are of one system."""
    runs = pair.a.run, pair.b.run
    return names_apart([run.system_name for run in runs], [run.evaluation_id for run in runs])


def _links(pair: Pair, run_ids: Sequence[str]) -> Markup:
    swap = [("run", run_id) for run_id in reversed(run_ids)]
    links = [
        *(link(f"Run {run_id}", "run", run_id) for run_id in run_ids),
        link("Swap the runs", "compare", query=swap),
        link("Gate", "gate", query={"run": run_ids[1], "baseline": run_ids[0]}),
        *(tag("a", name, href=f"#{name.lower()}") for name in ("Changes", "Samples")),
        tag("a", "Slices", href="#slices") if pair.comparison.slices else None,
    ]
    return tag("p", ((each, " ") for each in links), class_="turns")


def shown_metric(ask: Ask, pair: Pair) -> str | None:
    """Return the metric whose samples are shown: the one asked for, or the one that lost most."""
    shared = [
        one.name
        for one in pair.comparison.metrics
        if one.name in pair.a.metrics and one.name in pair.b.metrics
    ]
    if (asked := ask.values.get("metric")) in shared:
        return asked
    worst = lost_most(pair.comparison)
    return worst.name if worst is not None and worst.name in shared else next(iter(shared), None)


def _changes(ask: Ask, pair: Pair, names: Sequence[str], run_ids: Sequence[str]) -> Markup:
    comparison = pair.comparison
    changes = [
        _change(one, f"{one.pairs:,} of {pair.total:,}", _href(ask, run_ids, one.name) + "#samples")
        for one in comparison.metrics
    ]
    texts = [
        f"Paired tests, Holm-corrected, α {comparison.alpha:g}; a failed answer counts as the worst.",
        f"Each value is of the samples that both runs have. {FOREST_NOTE}",
        *interval_notes(comparison),
        *(f"{name}: not compared, {reason}." for name, reason in comparison.not_compared.items()),
        *(f"{note}." for note in (*comparison.mismatches, *comparison.notes)),
    ]
    table = join(forest(changes, (names[0], names[1])), notes(texts))
    return tag("section", tag("h2", "Changes", id="changes"), table)


def _href(ask: Ask, run_ids: Sequence[str], metric: str, outcome: str = "", *parts: str) -> str:
    """Return the address of the samples by a metric; with an outcome, those that are filtered now."""
    query = [("run", run_id) for run_id in run_ids]
    query += [("metric", metric), ("outcome", outcome)]
    if outcome:
        query += [(name, text) for name in ("slice", "words") for text in ask.lists.get(name, ())]
    return address("compare", *parts, query=query)


def _slices(ask: Ask, pair: Pair, names: Sequence[str], run_ids: Sequence[str], metric: str) -> Node:
    chosen = [one for one in pair.comparison.slices if one.metric == metric]
    if not chosen:
        return None
    order = {name: place for place, name in enumerate(pair.b.fields)}
    page = _href(ask, run_ids, metric)
    rows = [
        Slice(
            one.field,
            one.value,
            one.questions,
            [one.baseline, one.candidate],
            one.difference,
            one.interval,
            str(one.verdict),
            one.few,
            f"{page}&{urlencode({'slice': f'{one.field}:{one.value}'})}#samples",
        )
        for one in sorted(chosen, key=lambda one: order.get(one.field, len(order)))
    ]
    table = slices_table(rows, names, metric=metric, unit=chosen[0].unit)
    why = notes(slice_notes(chosen, len(pair.comparison.slices)))
    return join(tag("h2", "Slices", id="slices"), table, why)


def _change(metric: MetricComparison, samples: str, href: str) -> Change:
    """Return the row of a metric in the table of changes."""
    return Change(
        metric.name,
        metric.baseline,
        metric.candidate,
        metric.effect.change,
        metric.effect.interval,
        verdict_text(metric),
        metric.unit,
        p_cell(metric.test.p_adjusted),
        metric.higher_is_better,
        metric.is_share,
        samples,
        href,
    )


# The samples that were won and lost.


def _samples_section(
    ask: Ask, pair: Pair, names: Sequence[str], run_ids: Sequence[str], metric: str
) -> Markup:
    outcome = ask.values.get("outcome", "lost")
    outcome = outcome if outcome in OUTCOMES else "lost"
    wanted = selection_of(ask, pair.b).wanted
    start = ask.number("start") or 0
    numbers, total = pair.page(metric, outcome, wanted, start=start, count=ask.rows or ROWS)
    return tag(
        "section",
        tag("h2", f"Samples by {metric}", id="samples"),
        _form(pair, run_ids, metric, outcome, wanted),
        tag(
            "div",
            tag("div", _rows(ask, pair, run_ids, metric, numbers, outcome), _turns(ask, start, total)),
            _kept(pair, lambda: _scatter(pair, names, metric), "scatter", metric),
            class_="beside",
        ),
    )


def _form(pair: Pair, run_ids: Sequence[str], metric: str, outcome: str, wanted: Filter) -> Markup:
    effect = pair.comparison[metric].effect
    counts = {"lost": effect.losses, "won": effect.wins, "tied": effect.ties, "all": len(pair.places[0])}
    metrics = [one for name, one in pair.b.metrics.items() if name in pair.a.metrics]
    # A slice that the run has, or none: what is kept must not grow with what an address says.
    chosen = next((f"{name}:{value}" for name, value in wanted.slices), "")
    return tag(
        "form",
        (tag("input", type="hidden", name="run", value=run_id) for run_id in run_ids),
        tag("label", "Metric", metric_box("metric", metrics, metric)),
        tag(
            "label",
            "Outcome",
            select_box("outcome", [(name, f"{name} ({counts[name]:,})") for name in OUTCOMES], outcome),
        ),
        _kept(pair, lambda: _slice_box(pair, chosen), "slice", chosen),
        tag("label", "Words", tag("input", type="search", name="words", value=wanted.words)),
        tag("button", "Show", type="submit"),
        class_="filters",
        method="get",
        action="/compare#samples",
        data_submits=True,
    )


def _slice_box(pair: Pair, chosen: str) -> Node:
    slices = [
        (f"{name}:{value}", f"{name}: {short(value, 40)}")
        for name, values in pair.b.fields.items()
        for value in values
    ]
    return tag("label", "Slice", select_box("slice", [("", "all"), *slices], chosen)) if slices else None


def _rows(
    ask: Ask,
    pair: Pair,
    run_ids: Sequence[str],
    metric: str,
    numbers: Sequence[int] | np.ndarray,
    outcome: str,
) -> Markup:
    if not len(numbers):
        words = {"lost": "No sample was lost.", "won": "No sample was won.", "tied": "No sample tied."}
        return tag("p", words.get(outcome, "No sample matches."), class_="lead")
    before, after = pair.scores(metric).before, pair.scores(metric).after
    unit = pair.b.metrics[metric].unit
    rows = []
    page = _href(ask, run_ids, metric, outcome, "sample")
    for number, row in zip(numbers, pair.b.rows(pair.places[1][numbers].tolist()), strict=True):
        href = with_id(page, row.sample_id)
        scores = (value_text(float(values[number]), unit) for values in (before, after))
        rows.append(
            tag(
                "tr",
                tag("th", tag("a", short(row.sample_id, 40), href=href, data_row=True), scope="row"),
                tag("td", short(row.query, 160), dir="auto"),
                (tag("td", text, class_="num") for text in scores),
                tag("td", value_text(float(after[number] - before[number]), unit, signed=True), class_="num"),
            )
        )
    return sample_table("Samples", ("Sample", "Question"), (*names_of(pair), "Change"), rows)


def _turns(ask: Ask, start: int, total: int) -> Node:
    if ask.rows:
        return None  # all are on one page
    kept = [(name, text) for name, given in ask.lists.items() if name != "start" for text in given]
    links = []
    for text, rel, place in (("Previous", "prev", start - ROWS), ("Next", "next", start + ROWS)):
        if 0 <= place < total:
            href = address("compare", query=[*kept, ("start", str(place))]) + "#samples"
            links.append(tag("a", text, href=href, rel=rel))
    return (
        tag("p", f"{start + 1:,} to {min(total, start + ROWS):,} of {total:,} ", links, class_="turns")
        if links
        else None
    )


def _scatter(pair: Pair, names: Sequence[str], metric: str) -> Node:
    scores = pair.scores(metric)
    known = np.flatnonzero(~np.isnan(scores.gain))
    if not len(known):
        return None
    points = np.stack([scores.before[known], scores.after[known]], axis=1)
    low, high = scale_of([pair.a.metrics[metric], pair.b.metrics[metric]])
    low, high = min(low, float(points.min())), max(high, float(points.max()))
    effect = pair.comparison[metric].effect
    label = f"{metric} of each sample: above the line {names[1]} scored higher"
    words = f"{effect.wins:,} won, {effect.ties:,} tied, {effect.losses:,} lost"
    drawn = scatter(points, low, high, x_name=names[0], y_name=names[1], label=label)
    return tag("figure", drawn, tag("figcaption", words, class_="small"))


# One sample in both runs.


def compared_sample_page(ask: Ask) -> Reply:
    """Show one sample in both runs: answers with the words that differ, documents with how they moved."""
    run_ids, sample_id = ask.lists.get("run", []), ask.values.get("id", "")
    if len(run_ids) != 2:
        raise DataError("", "A sample is compared in two runs.", fix="Tick them on the page of all runs.")
    pair = pair_of(ask.workspace, *run_ids)
    names = names_of(pair)
    places = [index.place_of(sample_id) for index in (pair.a, pair.b)]
    samples = [index.sample(place) for index, place in zip((pair.a, pair.b), places, strict=True)]
    answers = [
        answered(index, place, sample, output, name)
        for index, place, (sample, output), name in zip((pair.a, pair.b), places, samples, names, strict=True)
    ]
    sample = samples[1][0]
    metric, outcome = shown_metric(ask, pair), ask.values.get("outcome", "lost")
    columns = [
        Column(name, index, metric) for name, index in zip(names, (pair.a, pair.b), strict=True) if metric
    ]
    page = _href(ask, run_ids, metric or "", outcome, "sample")
    main = join(
        _walk(ask, pair, run_ids, places[1]),
        tag("p", sample.query, class_="query", dir="auto"),
        sample_body(sample, answers, about=None if ask.rows else meanings_of(pair.b.metrics)),
        variants_section(pair.b, places[1], page, columns),
        notes(
            [f"The scores of the variants are of {metric}; the answers are those of {names[1]}."]
            if pair.b.variants(places[1])
            else []
        ),
    )
    command = ask.workspace.command("show", ask.workspace.name(run_ids[1]), "--sample", sample_id)
    return Page(f"Sample {short(sample_id, 60)}: {names[1]} against {names[0]}", main, command)


def _walk(ask: Ask, pair: Pair, run_ids: Sequence[str], place: int) -> Markup:
    """Return where the sample is among those of its outcome, with links to those before and after it."""
    metric, outcome = shown_metric(ask, pair), ask.values.get("outcome", "lost")
    outcome = outcome if outcome in OUTCOMES else "lost"
    links: list[Node] = []
    words = ""
    if metric is not None:
        links.append(tag("a", "List", href=_href(ask, run_ids, metric, outcome) + "#samples", rel="up"))
        numbers, total = pair.page(metric, outcome, selection_of(ask, pair.b).wanted, count=pair.b.size)
        at = np.flatnonzero(pair.places[1][numbers] == place)
        if len(at):
            kind = "" if outcome == "all" else f" {outcome}"
            words = f"{int(at[0]) + 1:,} of {total:,}{kind} by {metric} "
            for text, rel, other in (("Previous", "prev", at[0] - 1), ("Next", "next", at[0] + 1)):
                if 0 <= other < total:
                    (row,) = pair.b.rows([int(pair.places[1][numbers[other]])])
                    href = with_id(_href(ask, run_ids, metric, outcome, "sample"), row.sample_id)
                    links.append(tag("a", text, href=href, rel=rel))
    return tag("p", words, ((each, " ") for each in links), class_="turns")


# Three runs or more.


def ranking_page(workspace: Workspace, run_ids: Sequence[str], ranking: Ranking) -> Page:
    """Rank runs; each pair with the first leads to its own comparison."""
    command = workspace.command("compare", *map(workspace.name, run_ids))
    pairs = (
        tag(
            "li",
            link(f"{run_id} against {run_ids[0]}", "compare", query=[("run", run_ids[0]), ("run", run_id)]),
        )
        for run_id in run_ids[1:]
    )
    differing = pair_table(ranking)
    main = join(
        tag("p", ranking_in_words(ranking), class_="lead"),
        data_table(ranking_table(ranking), "Ranking"),
        notes([ranking_legend(ranking)]),
        tag("h2", "Pairs that differ significantly"),
        data_table(differing, "Pairs that differ significantly", links=_pair_links(run_ids))
        if differing.rows
        else tag("p", "No pair differs significantly on any metric."),
        notes(f"{text}." for text in (*ranking.mismatches, *ranking.notes)),
        tag("h2", "In detail"),
        tag("ul", pairs, class_="links"),
    )
    return Page(f"Ranking of {len(run_ids)} runs", main, command)


def _pair_links(run_ids: Sequence[str]) -> dict[str, str]:
    """Return the comparison of each pair, by its name in the table: "b - a"."""
    return {
        f"{letter(y)} - {letter(x)}": address("compare", query=[("run", run_ids[x]), ("run", run_ids[y])])
        for x, y in combinations(range(len(run_ids)), 2)
    }
