"""Two or more runs: is one better, where, and on which samples?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, groupby
from typing import Any

import numpy as np

from ..comparison.checks import NOT_ALIKE
from ..comparison.compare import MetricComparison
from ..comparison.ranking import MetricRanking, Ranking, Standing
from ..comparison.regressions import lost_most
from ..comparison.slices import SliceComparison
from ..comparison.tables import SLICES_CORRECTED, ranking_in_words
from ..comparison.words import comparison_in_plain_words, interval_notes, verdict_text
from ..core.display import p_cell
from ..core.verdict import Verdict
from ..errors import DataError
from ..store.pages import Filter
from .comparisons import Pair, pair_of, ranking_of
from .components import charts
from .components import parts as ui
from .components.charts import Scale
from .components.markup import Markup, Node, join, tag
from .layout import address
from .requests import Ask, Download, Page, Reply
from .run import sample_items, strip_kind, verdict_counts
from .samples import change_cell
from .workspace import Workspace

_SLICES = 16  # those that differ most
_LOST = 8  # samples beside them
_ORDER = (Verdict.WORSE, Verdict.BETTER, Verdict.NO_WORSE, Verdict.INCONCLUSIVE, Verdict.SAME)


def compare_page(ask: Ask) -> Page:
    """Compare the runs that the address names: the first is the baseline."""
    run_ids = list(dict.fromkeys(filter(None, ask.lists.get("run", []))))
    if len(run_ids) < 2:
        return _choose_page(ask, run_ids)
    if len(run_ids) > 2:
        return ranking_page(ask.workspace, run_ids, ranking_of(ask.workspace, run_ids))
    pair = pair_of(ask.workspace, run_ids[0], run_ids[1])
    metric, names = shown_metric(ask, pair), pair.names
    total = pair.baseline.size + pair.index.size - pair.paired
    columns: Node = None
    if metric is not None:
        beside = [lost_card(pair, run_ids, metric), _scatter(pair, run_ids, metric)]
        halves = [tag("div", beside, class_="column"), _slices(pair, run_ids, metric)]
        columns = join(_choice(ask, pair, metric), tag("div", halves, class_="halves"))
    return Page(
        f"{names[1]} against {names[0]}",
        join(_verdict(pair, run_ids), _changes(pair, run_ids), columns),
        ask.workspace.command("compare", *map(ask.workspace.name, run_ids)),
        facts=f"{pair.paired:,} of {total:,} samples paired, α {pair.comparison.alpha:g} with Holm",
        actions=_actions(run_ids),
        crumbs=[("Runs", "/"), *((run_id, address("run", run_id)) for run_id in run_ids)],
        run=run_ids[1],
    )


def _choose_page(ask: Ask, chosen: Sequence[str]) -> Page:
    """Let two runs be chosen; those on the same samples come first."""
    runs = ask.workspace.runs()
    if len(runs) < 2:
        main = ui.lead("A comparison needs two runs. Make them: ", tag("code", "auepora demo"))
        return Page("Compare", main, ask.workspace.command("list"))
    candidate = chosen[0] if chosen else runs[0].id
    others = ask.workspace.before(candidate, runs) or [one.id for one in runs if one.id != candidate]
    names = [one.id for one in runs]
    form = tag(
        "form",
        ui.run_box("run", "Baseline", names, others[0]),
        ui.run_box("run", "Candidate", names, candidate),
        tag("button", "Compare", type="submit", class_="main"),
        class_="filters",
        action="/compare",
    )
    why = "Choose two runs, or tick more on the page of all runs."
    return Page("Compare", join(ui.lead(why), form), ask.workspace.command("list"))


def _actions(run_ids: Sequence[str]) -> list[Node]:
    both = [("run", run_id) for run_id in run_ids]
    gate = address("gate", query={"run": run_ids[1], "baseline": run_ids[0]})
    return [
        ui.button_link("Swap", address("compare", query=reversed(both))),
        ui.button_link("Gate", gate),
        ui.button_link("Export CSV", address("compare.csv", query=both)),
    ]


def _samples(run_ids: Sequence[str], page: str = "samples", **query: str) -> str:
    """Return the address of samples in both runs."""
    return address("run", run_ids[1], page, query={"baseline": run_ids[0], **query})


def _verdict(pair: Pair, run_ids: Sequence[str]) -> Markup:
    """Return the strip with the counts, and the comparison in words below it."""
    comparison = pair.comparison
    first, *rest = comparison_in_plain_words(comparison)
    kind = strip_kind(comparison)
    word = {"up": "better", "down": "worse"}.get(kind, "inconclusive")
    others = verdict_counts(comparison, but=word)
    lost, href = lost_most(comparison), None
    if lost is not None and lost.name in pair.metrics:
        href = tag("a", "Samples that got worse", href=_samples(run_ids, sort=lost.name, outcome="lost"))
    head = ui.strip(
        kind, f"{comparison.counts.get(Verdict(word), 0)} {word}", others, href=href, sign=ui.SIGNS[word][0]
    )
    more = ui.folded("All of it in words", (tag("p", text) for text in rest)) if rest else None
    return join(head, tag("div", tag("p", first), class_="lead"), more)


def shown_metric(ask: Ask, pair: Pair) -> str | None:
    """Return the metric whose samples are shown: the one asked for, or the one that lost most."""
    worst = lost_most(pair.comparison)
    wanted = (ask.values.get("metric"), worst.name if worst is not None else None, *pair.metrics)
    return next((name for name in wanted if name in pair.metrics), None)


# The changes: one row per metric, worse first, on one axis.


def _changes(pair: Pair, run_ids: Sequence[str]) -> Markup:
    comparison = pair.comparison
    ordered = sorted(comparison.metrics, key=lambda one: _ORDER.index(one.verdict))
    scale = charts.change_scale((one.effect.change, one.effect.interval) for one in ordered if one.is_share)
    columns = [
        ui.Column("Metric"),
        ui.Column("Verdict"),
        ui.Column(charts.axis("Interval of the change", scale, signed=True), "c"),
        *(ui.Column(ui.short(name, 24), "n spare mute") for name in pair.names),
        ui.Column("Change", "n"),
        ui.Column("95% interval", "n spare wide-only mute"),
        ui.Column("p (Holm)", "n spare mute"),
        ui.Column("Samples", "spare vast-only"),
        ui.Column("Won tied lost", "n won spare"),
    ]
    rows = [_change_row(one, scale, _samples(run_ids, sort=one.name, outcome="lost")) for one in ordered]
    unlike: list[str] = []  # what both runs have: a reader misses it in the table
    others: list[str] = []
    for name, reason in comparison.not_compared.items():
        listed = unlike if reason.startswith(NOT_ALIKE) else others
        listed.append(f"{name}: not compared, {reason}.")
    texts = [
        *interval_notes(comparison),
        *others,
        *(f"{note}." for note in (*comparison.mismatches, *comparison.notes)),
    ]
    return tag(
        "section",
        ui.table("Changes with 95% intervals", columns, rows, kind="forest"),
        ui.notes([*unlike, _FOREST]),
        ui.folded("Notes", ui.notes(texts)) if texts else None,
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
    drawn: Node = tag("small", ui.interval(effect.interval, one.unit) or "no interval")
    if one.is_share:
        kind = ui.sign_of(one.verdict)[1]
        up = one.higher_is_better
        drawn = charts.gain_bar(scale, effect.change, effect.interval, up=up, kind=kind)
    counts = [(effect.wins, "up", "won"), (effect.ties, "", "tied"), (effect.losses, "down", "lost")]
    parts = [(count, kind, f"{count:,} {word}") for count, kind, word in counts]
    return [
        ui.row_link(ui.breakable(ui.arrow(one.name, up=one.higher_is_better)), href),
        ui.verdict(verdict_text(one)),
        drawn,
        ui.number(one.baseline, one.unit),
        ui.number(one.candidate, one.unit),
        tag("b", ui.number(effect.change, one.unit, signed=True)),
        ui.interval(effect.interval, one.unit, signed=True),
        p_cell(one.test.p_adjusted),
        tag("div", charts.bar_of(parts), class_="wins"),
        [ui.span(kind, f"{count:,}") for count, kind, _ in counts],
    ]


def compare_csv(ask: Ask) -> Reply:
    """Return the table of changes."""
    run_ids = ask.lists.get("run", [])
    if len(run_ids) != 2:
        raise DataError("", "A comparison needs two runs.", fix="Tick them on the page of all runs.")
    return Download("comparison", _csv(pair_of(ask.workspace, run_ids[0], run_ids[1])))


def _csv(pair: Pair) -> Iterator[Sequence[Any]]:
    yield "metric verdict baseline candidate change low high p_holm won tied lost".split()
    for one in pair.comparison.metrics:
        effect = one.effect
        values = one.baseline, one.candidate, effect.change, *(effect.interval or ("", ""))
        counts = effect.wins, effect.ties, effect.losses
        yield [one.name, str(one.verdict), *values, one.test.p_adjusted, *counts]


# By one metric: slices, the samples that lost most, and all of them in a plane.


def _choice(ask: Ask, pair: Pair, metric: str) -> Node:
    if ask.rows:  # one file has those of one metric
        return None
    box = ui.select_box("metric", [(name, name) for name in pair.metrics], metric, "Metric")
    kept = ui.hidden_fields(ask.query(metric=None))
    return ui.choice_form("/compare#by", tag("h2", "By slice and sample", id="by"), kept, box)


def _slices(pair: Pair, run_ids: Sequence[str], metric: str) -> Markup:
    every = [one for one in pair.comparison.slices if one.metric == metric]
    if not every:
        return ui.section(f"Slices of {metric}", ui.notes(["The samples have no labels to slice by."]))
    every.sort(key=lambda one: (not one.verdict.is_significant, -abs(one.difference)))
    chosen, result = every[:_SLICES], pair.index.metrics[metric]
    scale = charts.change_scale((one.difference, one.interval) for one in chosen)
    order = {name: place for place, name in enumerate(pair.index.fields)}
    chosen.sort(key=lambda one: order.get(one.field, len(order)))
    rows: list[Markup | list[Node]] = []
    for name, members in groupby(chosen, lambda one: one.field):
        rows.append(ui.group_row(5, ui.short(name, 60)))
        for one in members:
            href = _samples(run_ids, sort=metric, slice=f"{one.field}:{one.value}")
            rows.append(_slice_row(one, scale if result.is_share else None, href, up=result.higher_is_better))
    head = charts.axis("Interval", scale, signed=True) if result.is_share else None
    columns = [
        ui.Column("Slice"),
        ui.Column("Pairs", "n"),
        ui.Column("Change", "n"),
        ui.Column(head, "c"),
        ui.Column("Verdict"),
    ]
    content = ui.table(f"{metric} by slice", columns, rows, kind="forest")
    more = f"those that differ most of {len(every)}" if len(every) > _SLICES else None
    return ui.section(f"Slices of {metric}", content, ui.notes([SLICES_CORRECTED]), about=more)


def _slice_row(one: SliceComparison, scale: Scale | None, href: str, *, up: bool) -> list[Node]:
    drawn = None
    if scale:
        kind = ui.sign_of(one.verdict)[1]
        drawn = charts.gain_bar(scale, one.difference, one.interval, up=up, kind=kind)
    return [
        tag("a", ui.short(one.value, 60) or "(empty)", href=href),
        [f"{one.questions:,}", ui.span("warn", " few") if one.few else None],
        ui.number(one.difference, one.unit, signed=True),
        drawn,
        ui.verdict(str(one.verdict)),
    ]


def lost_items(pair: Pair, run_ids: Sequence[str], metric: str, count: int) -> Node:
    """Return the samples that lost most on a metric; None if no sample was lost."""
    index = pair.index
    mask = index.matching(Filter()) & pair.scores(metric).mask("lost")
    places = index.page(mask, pair.order(metric), count=count).places
    page = _samples(run_ids, "sample", sort=metric, outcome="lost")
    return sample_items(index, places, page, lambda place: change_cell(pair, metric, place))


def lost_card(pair: Pair, run_ids: Sequence[str], metric: str) -> Markup:
    """Return a panel with the samples that lost most."""
    items = lost_items(pair, run_ids, metric, _LOST) or tag("p", "No sample was lost.", class_="pad mute")
    every = tag("a", "All samples", href=_samples(run_ids, sort=metric))
    return ui.card(f"Lost most by {metric}", items, about=every)


def _scatter(pair: Pair, run_ids: Sequence[str], metric: str) -> Node:
    """Return both scores of each sample; a circle leads to the samples of its outcome."""
    scores, result = pair.scores(metric), pair.index.metrics[metric]
    known = ~np.isnan(scores.gain)
    if not known.any():
        return None

    def drawn() -> tuple[Scale, list[charts.Circle]]:
        points = np.stack([scores.before[known], scores.after[known]], axis=1)
        scale = charts.SHARE if result.is_share else charts.linear_scale(charts.scale_of(result, points))
        return scale, charts.bubbles(points, scale)

    # Counted once: there may be 100,000 samples.
    scale, circles = pair.index.once(f"circles of {pair.order(metric)}", drawn)

    def href(x: float, y: float) -> str:
        gain = (y - x) * (1 if result.higher_is_better else -1)
        return _samples(run_ids, sort=metric, outcome="tied" if not gain else "won" if gain > 0 else "lost")

    names = [ui.short(name, 30) for name in pair.names]
    label = f"{metric} of each sample: above the line {names[1]} scored higher"
    effect = pair.comparison[metric].effect
    words = f"{effect.wins:,} won, {effect.ties:,} tied, {effect.losses:,} lost"
    return ui.card("Each sample", charts.scatter(circles, scale, names, href, label=label), about=words)


# Three runs or more.

_RANKS = "Bold: the best value; #1–2: the ranks that the tests leave open (Holm over all pairs and metrics)."


def ranking_page(workspace: Workspace, run_ids: Sequence[str], ranking: Ranking) -> Page:
    """Rank runs: a dot per run on each metric; each pair leads to its own comparison."""
    columns = [
        ui.Column("Metric"),
        *(ui.Column(ui.short(name, 24), "n spare") for name in ranking.systems),
        ui.Column(charts.axis("Intervals", charts.SHARE), "c"),
        ui.Column("Best"),
    ]
    rows = [_standing_row(one, ranking) for one in ranking.metrics]
    main = join(
        ui.strip("news", _ranking_headline(ranking), sign="→"),
        ui.lead(ranking_in_words(ranking)),
        charts.legend(ranking.systems),
        ui.table("Ranking", columns, rows, kind="bars"),
        ui.notes([_RANKS, *(f"Note: {text}." for text in (*ranking.mismatches, *ranking.notes))]),
        ui.section("Each pair", tag("ul", _pairs(run_ids, ranking), class_="links")),
    )
    command = workspace.command("compare", *map(workspace.name, run_ids))
    return Page(f"Ranking of {len(run_ids)} runs", main, command, crumbs=[("Runs", "/")])


def _ranking_headline(ranking: Ranking) -> str:
    wins = [
        sum(one.standings[place].best for one in ranking.metrics if len(one.standings) > place)
        for place in range(len(ranking.systems))
    ]
    place = int(np.argmax(wins))
    name = ui.short(ranking.systems[place], 40)
    return f"{name} is among the best on {wins[place]} of {len(ranking.metrics)} metrics"


def _standing_row(one: MetricRanking, ranking: Ranking) -> list[Node]:
    known = [each for each in one.standings if math.isfinite(each.value)]
    is_share = not one.unit and all(0 <= each.value <= 1 for each in known)
    named = list(zip(ranking.systems, one.standings, strict=True))
    values = {name: ui.number(each.value, one.unit) for name, each in named}
    dots = [
        (each.value, each.interval, f"{name} {values[name]}, {ui.interval(each.interval, one.unit)}")
        for name, each in named
    ]
    best = [name for name, each in named if each.best]
    none = ui.span("mute", "no difference shown")
    return [
        ui.arrow(one.name, up=one.higher_is_better),
        *([tag("b" if each.best else "span", values[name]), _rank(each)] for name, each in named),
        charts.dot_rows(charts.SHARE, dots) if is_share else None,
        ui.short(", ".join(best), 60) if len(best) < len(named) else none,
    ]


def _rank(each: Standing) -> Node:
    if each.rank is None:
        return None
    low, high = each.rank_interval or (each.rank, each.rank)
    text = f" #{each.rank}" if low == high else f" #{low}–{high}"
    return tag("small", text, title="rank, or the ranks that the tests leave open")


def _pairs(run_ids: Sequence[str], ranking: Ranking) -> Iterator[Markup]:
    for (x, y), pair in zip(combinations(run_ids, 2), ranking.pairs, strict=False):
        name = ui.row_link(f"{y} against {x}", address("compare", query=[("run", x), ("run", y)]))
        yield tag("li", name, " ", ((each, " ") for each in verdict_counts(pair)))
