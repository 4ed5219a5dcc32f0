"""Two or more runs: is one better, where, and on which samples?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, groupby
from typing import Any
from urllib.parse import urlencode

import numpy as np

from ..comparison.compare import MetricComparison
from ..comparison.ranking import MetricRanking, Ranking, Standing
from ..comparison.regressions import lost_most
from ..comparison.slices import SliceComparison
from ..comparison.tables import ranking_in_words, ranking_legend, slice_notes
from ..comparison.words import comparison_in_plain_words, interval_notes, names_apart, verdict_text
from ..core.display import p_cell
from ..core.verdict import Verdict
from ..errors import DataError
from ..store.pages import Filter
from .comparisons import OUTCOMES, Pair, pair_of, ranking_of
from .components.charts import (
    SHARE,
    Bubble,
    Scale,
    axis,
    bar_of,
    bubbles,
    change_scale,
    dot_rows,
    interval_bar,
    legend,
    linear_scale,
    scale_of,
    scatter,
)
from .components.markup import Markup, Node, join, tag
from .components.parts import (
    SIGNS,
    Column,
    button_link,
    card,
    chip,
    group_row,
    hidden_fields,
    interval,
    kind_of,
    notes,
    number,
    row_link,
    search_form,
    section,
    short,
    span,
    strip,
    table,
    verdict,
)
from .components.sample import labels_of, sample_parts
from .layout import address, link, select_box, with_id
from .requests import Ask, Download, Page, Reply
from .run import strip_kind, verdict_counts
from .samples import answered, selection_of, variants_section, walk_link
from .workspace import Workspace

ROWS = 20  # samples on a page
_SLICES = 16  # those that differ most
_ORDER = (Verdict.WORSE, Verdict.BETTER, Verdict.NO_WORSE, Verdict.INCONCLUSIVE, Verdict.SAME)


def compare_page(ask: Ask) -> Reply:
    """Compare the runs that the address names: the first is the baseline."""
    run_ids = list(dict.fromkeys(filter(None, ask.lists.get("run", []))))
    if len(run_ids) < 2:
        return _choose_page(ask, run_ids)
    if len(run_ids) > 2:
        return ranking_page(ask.workspace, run_ids, ranking_of(ask.workspace, run_ids))
    pair = pair_of(ask.workspace, *run_ids)
    metric = shown_metric(ask, pair)
    names = names_of(pair)
    main = join(
        _kept(pair, lambda: _verdict(pair), "verdict"),
        _kept(pair, lambda: _changes(ask, pair, names, run_ids), "changes", *run_ids),
        _samples_section(ask, pair, names, run_ids, metric) if metric else None,
        _kept(pair, lambda: _slices(ask, pair, run_ids, metric), "slices", metric, *run_ids)
        if metric
        else None,
    )
    matched = len(pair.places[0])
    return Page(
        f"{names[1]} against {names[0]}",
        main,
        ask.workspace.command("compare", *map(ask.workspace.name, run_ids)),
        facts=f"{matched:,} of {pair.total:,} samples paired, α {pair.comparison.alpha:g} with Holm",
        actions=_actions(run_ids),
        crumbs=[("Runs", "/"), *((run_id, address("run", run_id)) for run_id in run_ids)],
        run=run_ids[1],
    )


def _choose_page(ask: Ask, chosen: Sequence[str]) -> Page:
    """Let two runs be chosen; those that were compared most recently come first."""
    runs = ask.workspace.runs()
    if len(runs) < 2:
        main = tag(
            "p", "A comparison needs two runs. Make them: ", tag("code", "auepora demo"), class_="lead"
        )
        return Page("Compare", main, ask.workspace.command("list"))
    candidate = chosen[0] if chosen else runs[0].id
    others = ask.workspace.before(candidate, runs) or [one.id for one in runs if one.id != candidate]
    options = [(one.id, short(one.id, 60)) for one in runs]
    form = tag(
        "form",
        tag("label", "Baseline ", select_box("run", options, others[0], "Baseline")),
        tag("label", "Candidate ", select_box("run", options, candidate, "Candidate")),
        tag("button", "Compare", type="submit", class_="main"),
        class_="filters",
        method="get",
        action="/compare",
    )
    pairs = [(one.id, before[0]) for one in runs[:10] if (before := ask.workspace.before(one.id, runs))]
    items = (
        tag("li", link(f"{new} against {old}", "compare", query=[("run", old), ("run", new)]))
        for new, old in pairs
    )
    why = "Choose two runs, or tick more on the page of all runs."
    main = join(tag("p", why, class_="lead"), form, tag("ul", items, class_="links"))
    return Page("Compare", main, ask.workspace.command("list"))


def names_of(pair: Pair) -> list[str]:
    """Return the names of both systems, or the ids of the runs if both are of one system."""
    runs = pair.a.run, pair.b.run
    return names_apart([run.system_name for run in runs], [run.evaluation_id for run in runs])


def _kept(pair: Pair, make: Callable[[], Node], *key: str) -> Node:
    """Return a part of the page that does not depend on the filters; it is made once."""
    if key not in pair.drawn:
        pair.drawn[key] = make()
    kept: Node = pair.drawn[key]
    return kept


def _actions(run_ids: Sequence[str]) -> list[Node]:
    swap = address("compare", query=[("run", run_id) for run_id in reversed(run_ids)])
    gate = address("gate", query={"run": run_ids[1], "baseline": run_ids[0]})
    export = address("compare.csv", query=[("run", run_id) for run_id in run_ids])
    return [button_link("Swap", swap), button_link("Gate", gate), button_link("Export CSV", export)]


def _verdict(pair: Pair) -> Markup:
    """Return the strip with the counts, and the comparison in words below it."""
    comparison = pair.comparison
    first, *rest = comparison_in_plain_words(comparison)
    kind = strip_kind(comparison)
    word = {"up": "better", "down": "worse"}.get(kind, "inconclusive")
    count = sum(str(one.verdict) == word for one in comparison.metrics)
    others = [each for each in verdict_counts(comparison) if f" {word}" not in each.text]
    href = tag("a", "Samples that got worse", href="#samples") if lost_most(comparison) is not None else None
    more = tag("details", tag("summary", "All of it in words"), (tag("p", text) for text in rest))
    head = strip(kind, f"{count} {word}", others, href=href, sign=SIGNS[word][0])
    return join(head, tag("div", tag("p", first), class_="lead"), more if rest else None)


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


# The changes: one row per metric, worse first, on one axis.


def _gain(
    change: float, limits: Sequence[float] | None, *, up: bool
) -> tuple[float, tuple[float, float] | None]:
    """Return a change as it is drawn: better is to the right."""
    if up:
        return change, (limits[0], limits[1]) if limits else None
    return -change, (-limits[1], -limits[0]) if limits else None


def reach(change: float, limits: Sequence[float] | None) -> float:
    """Return how far from 0 a change and its interval go, as far as they are finite."""
    ends = (abs(end) for end in (change, *(limits or ())))
    return max((end for end in ends if math.isfinite(end)), default=0.0)


def _changes(ask: Ask, pair: Pair, names: Sequence[str], run_ids: Sequence[str]) -> Markup:
    comparison = pair.comparison
    ordered = sorted(comparison.metrics, key=lambda one: _ORDER.index(one.verdict))
    scale = change_scale(reach(one.effect.change, one.effect.interval) for one in ordered if one.is_share)
    columns = [
        Column("Metric"),
        Column("Verdict"),
        Column(axis("Interval of the change", scale, signed=True), "c"),
        *(Column(short(name, 24), "n spare mute") for name in names),
        Column("Change", "n"),
        Column("95% interval", "n spare wide-only mute"),
        Column("p (Holm)", "n spare mute"),
        Column("Samples", "spare wide-only"),
        Column("Won tied lost", "n won spare"),
    ]
    rows = [_change_row(one, scale, _href(ask, run_ids, one.name) + "#samples") for one in ordered]
    texts = [
        *interval_notes(comparison),
        *(f"{name}: not compared, {reason}." for name, reason in comparison.not_compared.items()),
        *(f"{note}." for note in (*comparison.mismatches, *comparison.notes)),
    ]
    return tag(
        "section",
        table("Changes with 95% intervals", columns, rows, kind="forest"),
        notes([_FOREST]),
        tag("details", tag("summary", "Notes"), notes(texts)) if texts else None,
        id="changes",
        class_="part",
    )


_FOREST = (
    "Left of 0 is worse, right is better. On this square-root scale a change of 0.007 and one of 0.7 can "
    "both be seen. Arrow: the interval goes on. ↓ lower is better, drawn as gain. Failed answers count as "
    "the worst."
)


def _change_row(one: MetricComparison, scale: Scale, href: str) -> list[Node]:
    effect = one.effect
    value, limits = _gain(effect.change, effect.interval, up=one.higher_is_better)
    drawn: Node = tag("small", interval(effect.interval, one.unit) or "no interval")
    if one.is_share:
        drawn = interval_bar(scale, value, limits, kind=kind_of(str(one.verdict)))
    counts = [(effect.wins, "up", "won"), (effect.ties, "", "tied"), (effect.losses, "down", "lost")]
    parts = [(count, kind, f"{count:,} {word}") for count, kind, word in counts]
    return [
        row_link(one.name if one.higher_is_better else f"{one.name} ↓", href),
        verdict(verdict_text(one)),
        drawn,
        number(one.baseline, one.unit),
        number(one.candidate, one.unit),
        tag("b", number(effect.change, one.unit, signed=True)),
        interval(effect.interval, one.unit, signed=True),
        p_cell(one.test.p_adjusted),
        tag("div", bar_of(parts), class_="wins"),
        [span(kind, f"{count:,}") for count, kind, _ in counts],
    ]


def _href(ask: Ask, run_ids: Sequence[str], metric: str, outcome: str = "", *parts: str) -> str:
    """Return the address of the samples by a metric; with an outcome, those that are filtered now."""
    query = [("run", run_id) for run_id in run_ids]
    query += [("metric", metric), ("outcome", outcome)]
    if outcome:
        query += [(name, text) for name in ("slice", "words") for text in ask.lists.get(name, ())]
    return address("compare", *parts, query=query)


def compare_csv(ask: Ask) -> Reply:
    """Return the table of changes."""
    run_ids = ask.lists.get("run", [])
    if len(run_ids) != 2:
        raise DataError("", "A comparison needs two runs.", fix="Tick them on the page of all runs.")
    return Download("comparison", _csv(pair_of(ask.workspace, *run_ids)))


def _csv(pair: Pair) -> Iterator[Sequence[Any]]:
    yield [
        "metric",
        "verdict",
        "baseline",
        "candidate",
        "change",
        "low",
        "high",
        "p_holm",
        "won",
        "tied",
        "lost",
    ]
    for one in pair.comparison.metrics:
        effect = one.effect
        low, high = effect.interval or ("", "")
        counts = effect.wins, effect.ties, effect.losses
        yield [
            one.name,
            str(one.verdict),
            one.baseline,
            one.candidate,
            effect.change,
            low,
            high,
            one.test.p_adjusted,
            *counts,
        ]


def _slices(ask: Ask, pair: Pair, run_ids: Sequence[str], metric: str) -> Node:
    every = [one for one in pair.comparison.slices if one.metric == metric]
    if not every:
        return None
    every.sort(key=lambda one: (not one.verdict.is_significant, -abs(one.difference)))
    chosen = every[:_SLICES]
    is_share, up = pair.b.metrics[metric].is_share, pair.b.metrics[metric].higher_is_better
    scale = change_scale(reach(one.difference, one.interval) for one in chosen)
    order = {name: place for place, name in enumerate(pair.b.fields)}
    page = _href(ask, run_ids, metric)
    rows: list[Markup | list[Node]] = []
    by_field = groupby(
        sorted(chosen, key=lambda one: order.get(one.field, len(order))), lambda one: one.field
    )
    for name, members in by_field:
        rows.append(group_row(5, short(name, 60)))
        rows += [_slice_row(one, scale if is_share else None, page, up=up) for one in members]
    drawn = Column(axis("Interval", scale, signed=True) if is_share else None, "c")
    columns = [Column("Slice"), Column("Pairs", "n"), Column("Change", "n"), drawn, Column("Verdict")]
    content = table(f"{metric} by slice", columns, rows, kind="forest")
    why = notes(slice_notes(every, len(pair.comparison.slices)))
    more = f"those that differ most of {len(every)}" if len(every) > _SLICES else None
    return section(f"Slices of {metric}", content, why, about=more, anchor="slices")


def _slice_row(one: SliceComparison, scale: Scale | None, page: str, *, up: bool) -> list[Node]:
    href = f"{page}&{urlencode({'slice': f'{one.field}:{one.value}'})}#samples"
    value, limits = _gain(one.difference, one.interval, up=up)
    return [
        tag("a", short(one.value, 60) or "(empty)", href=href),
        [f"{one.questions:,}", span("warn", " few") if one.few else None],
        number(one.difference, one.unit, signed=True),
        interval_bar(scale, value, limits, kind=kind_of(str(one.verdict))) if scale else None,
        verdict(str(one.verdict)),
    ]


# The samples that were won and lost.


def _samples_section(
    ask: Ask, pair: Pair, names: Sequence[str], run_ids: Sequence[str], metric: str
) -> Markup:
    outcome = outcome_of(ask)
    wanted = selection_of(ask, pair.b).wanted
    start = ask.number("start") or 0
    numbers, total = pair.page(metric, outcome, wanted, start=start, count=ask.rows or ROWS)
    content = tag(
        "div",
        _form(ask, pair, run_ids, metric, outcome, wanted, total),
        _rows(ask, pair, run_ids, metric, numbers, outcome),
        _turns(ask, start, total),
        class_="column",
        id="list" if not ask.rows else None,
    )
    drawn = _kept(pair, lambda: _scatter(ask, pair, names, run_ids, metric), "scatter", metric, *run_ids)
    return tag(
        "section",
        tag("header", tag("h2", f"Samples by {metric}", id="samples")),
        tag("div", content, drawn, class_="sides"),
        class_="part",
    )


def outcome_of(ask: Ask) -> str:
    """Return which samples are shown: lost, won, tied or all."""
    outcome = ask.values.get("outcome", "lost")
    return outcome if outcome in OUTCOMES else "lost"


def _form(
    ask: Ask, pair: Pair, run_ids: Sequence[str], metric: str, outcome: str, wanted: Filter, total: int
) -> Markup:
    effect = pair.comparison[metric].effect
    counts = {"lost": effect.losses, "won": effect.wins, "tied": effect.ties, "all": len(pair.places[0])}
    count = tag("span", f"{total:,} samples", class_="count", role="status")
    if ask.rows:  # a script filters what is in the file
        return tag("div", search_form("samples", "", kind="local"), count, class_="filters")
    metrics = [(name, name) for name in pair.b.metrics if name in pair.a.metrics]
    # A slice that the run has, or none: what is kept must not grow with what an address says.
    chosen = next((f"{name}:{value}" for name, value in wanted.slices), "")
    outcomes = [(name, f"{name} ({counts[name]:,})") for name in OUTCOMES]
    return search_form(
        "samples",
        wanted.words,
        hidden_fields(("run", run_id) for run_id in run_ids),
        select_box("metric", metrics, metric, "Metric"),
        select_box("outcome", outcomes, outcome, "Outcome"),
        _kept(pair, lambda: _slice_box(pair, chosen), "slice", chosen),
        count,
        action="/compare",
    )


def _slice_box(pair: Pair, chosen: str) -> Node:
    slices = [
        (f"{name}:{value}", f"{short(name, 24)}: {short(value, 40)}")
        for name, values in pair.b.fields.items()
        for value in values
    ]
    return select_box("slice", [("", "all slices"), *slices], chosen, "Slice") if slices else None


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
    result = pair.b.metrics[metric]
    page = _href(ask, run_ids, metric, outcome, "sample")
    # A server shows another metric when it is asked to, a file has the changes of all.
    shared = [name for name in pair.b.metrics if name in pair.a.metrics and name != metric]
    others = shared if ask.rows else []
    rows: list[list[Node]] = []
    for place, row in zip(numbers, pair.b.rows(pair.places[1][numbers].tolist()), strict=True):
        change = number(float(after[place] - before[place]), result.unit, signed=True, digits=2)
        scores = (chip(_known(values[place]), result) for values in (before, after))
        name = row_link(short(row.sample_id, 40), with_id(page, row.sample_id))
        more = (_change_of(pair, other, int(place)) for other in others)
        rows.append([name, short(row.query, 160), *scores, change, *more])
    columns = [
        Column("Sample", None, "sample"),
        Column("Question", "cut"),
        *(Column(short(name, 24), "n", f"run{place}") for place, name in enumerate(names_of(pair))),
        Column("Change", "n", metric),
        *(Column(_named(pair, other), "n spare", other) for other in others),
    ]
    # In one file a script sorts: the address is only the place of the column.
    href = (lambda key, order: f"/compare?sort={key}") if ask.rows else None
    return table("Samples", columns, rows, kind="list", href=href)


def _change_of(pair: Pair, metric: str, place: int) -> str:
    scores, unit = pair.scores(metric), pair.b.metrics[metric].unit
    return number(float(scores.after[place] - scores.before[place]), unit, signed=True, digits=2)


def _named(pair: Pair, metric: str) -> str:
    return metric if pair.b.metrics[metric].higher_is_better else f"{metric} ↓"


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _turns(ask: Ask, start: int, total: int) -> Node:
    if ask.rows:
        return None  # all are on one page
    kept = [(name, text) for name, given in ask.lists.items() if name != "start" for text in given]
    links = []
    for text, rel, place in (("Previous", "prev", start - ROWS), ("Next", "next", start + ROWS)):
        if 0 <= place < total:
            href = address("compare", query=[*kept, ("start", str(place))]) + "#samples"
            links.append(tag("a", text, href=href, rel=rel))
    if not links:
        return None
    words = f"{start + 1:,} to {min(total, start + ROWS):,} of {total:,} "
    return tag("p", words, ((each, " ") for each in links))


def _scatter(ask: Ask, pair: Pair, names: Sequence[str], run_ids: Sequence[str], metric: str) -> Node:
    scores = pair.scores(metric)
    known = np.flatnonzero(~np.isnan(scores.gain))
    if not len(known):
        return None
    points = np.stack([scores.before[known], scores.after[known]], axis=1)
    low, high = scale_of([pair.a.metrics[metric], pair.b.metrics[metric]])
    low, high = min(low, float(points.min())), max(high, float(points.max()))
    scale = SHARE if (low, high) == (0.0, 1.0) else linear_scale([low, high])
    drawn = [
        _led(one, ask, run_ids, metric, up=pair.b.metrics[metric].higher_is_better)
        for one in bubbles(points, scale)
    ]
    effect = pair.comparison[metric].effect
    label = f"{metric} of each sample: above the line {names[1]} scored higher"
    words = f"{effect.wins:,} won, {effect.ties:,} tied, {effect.losses:,} lost"
    return card(
        "Each sample", scatter(drawn, scale, [short(name, 30) for name in names], label=label), about=words
    )


def _led(one: Bubble, ask: Ask, run_ids: Sequence[str], metric: str, *, up: bool) -> Bubble:
    """Return a circle with the address of the samples of its outcome."""
    gain = (one.y - one.x) * (1 if up else -1)
    outcome = "tied" if not gain else "won" if gain > 0 else "lost"
    return Bubble(one.x, one.y, one.count, _href(ask, run_ids, metric, outcome) + "#samples")


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
    metric, outcome = shown_metric(ask, pair), outcome_of(ask)
    columns = [(name, index, metric) for name, index in zip(names, (pair.a, pair.b), strict=True) if metric]
    page = _href(ask, run_ids, metric or "", outcome, "sample")
    words, turns = _walk(ask, pair, run_ids, places[1])
    pairing = address("compare", query=[("run", run_id) for run_id in run_ids])
    return Page(
        short(sample_id, 60),
        join(
            sample_parts(sample, answers, metric, in_file=ask.rows is not None),
            None if ask.rows else variants_section(pair.b, places[1], page, columns),
        ),
        ask.workspace.command("show", ask.workspace.name(run_ids[1]), "--sample", sample_id),
        facts=[f"{names[1]} against {names[0]} ", *((each, " ") for each in labels_of(sample)), words],
        actions=turns,
        crumbs=[
            ("Runs", "/"),
            (f"{names[1]} against {names[0]}", pairing),
            (f"Samples by {metric}", _href(ask, run_ids, metric or "", outcome) + "#samples"),
        ],
        run=run_ids[1],
    )


def _walk(ask: Ask, pair: Pair, run_ids: Sequence[str], place: int) -> tuple[str, list[Markup]]:
    """Return where the sample is among those of its outcome, with links to those before and after it."""
    metric, outcome = shown_metric(ask, pair), outcome_of(ask)
    if metric is None:
        return "", []
    numbers, total = pair.page(metric, outcome, selection_of(ask, pair.b).wanted, count=pair.b.size)
    at = np.flatnonzero(pair.places[1][numbers] == place)
    if not len(at):
        return "", []
    links = []
    page = _href(ask, run_ids, metric, outcome, "sample")
    for rel, other in (("prev", at[0] - 1), ("next", at[0] + 1)):
        if 0 <= other < total:
            (row,) = pair.b.rows([int(pair.places[1][numbers[other]])])
            links.append(walk_link(rel, with_id(page, row.sample_id), row.sample_id))
    kind = "" if outcome == "all" else f" {outcome}"
    return f"{int(at[0]) + 1:,} of {total:,}{kind} by {metric}", links


# Three runs or more.


def ranking_page(workspace: Workspace, run_ids: Sequence[str], ranking: Ranking) -> Page:
    """Rank runs: a dot per run on each metric; each pair leads to its own comparison."""
    columns = [
        Column("Metric"),
        *(Column(short(name, 24), "n") for name in ranking.systems),
        Column(axis("Intervals", SHARE), "c"),
        Column("Best"),
    ]
    rows = [_standing_row(one, ranking) for one in ranking.metrics]
    main = join(
        strip("news", _ranking_headline(ranking)),
        tag("p", ranking_in_words(ranking), class_="lead"),
        legend(ranking.systems),
        table("Ranking", columns, rows, kind="bars"),
        notes([ranking_legend(ranking), *(f"{text}." for text in (*ranking.mismatches, *ranking.notes))]),
        section("Each pair", tag("ul", _pairs(run_ids, ranking), class_="links")),
    )
    command = workspace.command("compare", *map(workspace.name, run_ids))
    return Page(f"Ranking of {len(run_ids)} runs", main, command, crumbs=[("Runs", "/")])


def _ranking_headline(ranking: Ranking) -> str:
    wins = [
        sum(one.standings[place].best for one in ranking.metrics if len(one.standings) > place)
        for place in range(len(ranking.systems))
    ]
    place = int(np.argmax(wins))
    name = short(ranking.systems[place], 40)
    return f"{name} is among the best on {wins[place]} of {len(ranking.metrics)} metrics"


def _standing_row(one: MetricRanking, ranking: Ranking) -> list[Node]:
    known = [each for each in one.standings if math.isfinite(each.value)]
    is_share = not one.unit and all(0 <= each.value <= 1 for each in known)
    named = list(zip(ranking.systems, one.standings, strict=True))
    values = {name: number(each.value, one.unit) for name, each in named}
    dots = [
        (each.value, each.interval, f"{name} {values[name]}, {interval(each.interval, one.unit)}")
        for name, each in named
    ]
    best = [name for name, each in named if each.best]
    none = span("mute", "no difference shown")
    return [
        one.name if one.higher_is_better else f"{one.name} ↓",
        *([tag("b" if each.best else "span", values[name]), _rank(each)] for name, each in named),
        dot_rows(SHARE, dots) if is_share else None,
        short(", ".join(best), 60) if len(best) < len(named) else none,
    ]


def _rank(each: Standing) -> Node:
    if each.rank is None:
        return None
    low, high = each.rank_interval or (each.rank, each.rank)
    text = f" #{each.rank}" if low == high else f" #{low}–{high}"
    return tag("small", text, title="rank, and where it lies in 95% of the resamples")


def _pairs(run_ids: Sequence[str], ranking: Ranking) -> Iterator[Markup]:
    pairs: Mapping[tuple[int, int], Any] = dict(
        zip(combinations(range(len(run_ids)), 2), ranking.pairs, strict=False)
    )
    for (x, y), pair in pairs.items():
        query = [("run", run_ids[x]), ("run", run_ids[y])]
        text = f"{run_ids[y]} against {run_ids[x]}"
        name = tag("a", text, href=address("compare", query=query), data_row=True)
        yield tag("li", name, " ", ((each, " ") for each in verdict_counts(pair)))
