"""What to fix first: where wrong answers of a run were lost, and what each fix would bring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..store.pages import RunSamples
from .components import charts
from .components import parts as ui
from .components.markup import Markup, Node, join, tag
from .layout import address, with_id
from .requests import Ask, Page, Reply

if TYPE_CHECKING:
    from ..interventions.report import Diagnosis, Fix, StageShare

# Whose fault a stage is, with its colour; stages that are not named here are the generator's.
GROUPS = {
    "Generator": ("generator", ()),
    "Retrieval": ("retrieval", ("index", "search", "cutoff", "missed", "passage", "context")),
    "Both": ("both", ("both",)),
    "Test set": ("data", ("metric", "suspect")),
    "Not known": ("data", ("untraced",)),
    "Calls": ("data", ("failed", "unstable")),
}


def diagnosis_of(index: RunSamples) -> Diagnosis | None:
    """Return the stored diagnosis of a run; None if there is none."""
    document = index.database.meta("diagnosis")
    if not isinstance(document, dict):
        return None
    from ..interventions.report import Diagnosis  # most runs have none

    return Diagnosis.of(document)


def diagnosis_page(ask: Ask) -> Reply:
    """Show the stages as a bar and a table, the gain of each fix with its interval, and what to do first."""
    run_id = ask.path["run"]
    found = diagnosis_of(ask.workspace.index(run_id))
    crumbs = [("Runs", "/"), (run_id, address("run", run_id))]
    corpus = ["--corpus", found.corpus] if found and found.corpus else []
    command = ask.workspace.command("diagnose", ask.workspace.name(run_id), *corpus)
    if found is None:
        main = ui.lead("This run was not diagnosed yet. In a terminal: ", tag("code", command))
        return Page("What to fix first", main, command, crumbs=crumbs, run=run_id)
    main = join(_strip(found), *(() if found.unreached else _parts(run_id, found)), ui.notes(found.notes))
    by = "their references" if found.metric == "right" else found.metric
    facts = f"{found.n:,} answers of {run_id}, judged by {by}"
    return Page("What to fix first", main, command, facts=facts, crumbs=crumbs, run=run_id)


def _parts(run_id: str, found: Diagnosis) -> Iterator[Node]:
    """Yield the bar and the tables."""
    groups = _grouped(found.stages)
    yield ui.section(f"Where {found.n:,} answers end", _bar(found, groups), about=_right(found))
    if groups:
        yield tag("div", _stages(run_id, found, groups), _fixes(run_id, found), class_="halves")


def _grouped(stages: Sequence[StageShare]) -> dict[str, list[StageShare]]:
    groups: dict[str, list[StageShare]] = {name: [] for name in GROUPS}
    for one in stages:
        named = (name for name, (_, members) in GROUPS.items() if one.name in members)
        groups[next(named, "Generator")].append(one)
    return {name: members for name, members in groups.items() if members}


def _right(found: Diagnosis) -> str:
    value, *limits = (ui.number(each, digits=2) for each in (found.value, *(found.interval or ())))
    return f"right {value}, 95% interval {' to '.join(limits)}" if limits else f"right {value}"


def _strip(found: Diagnosis) -> Markup:
    if found.unreached:
        return ui.strip("warn", found.unreached)
    from ..interventions.report import verdict

    first, _, rest = (verdict(found) or "Too little was tried.").partition(". ")
    return ui.strip("news" if found.first else "same", first.rstrip("."), rest, sign="→")


def _bar(found: Diagnosis, groups: dict[str, list[StageShare]]) -> Markup:
    right = found.n - found.wrong
    sums = [(name, sum(one.count for one in members)) for name, members in groups.items()]
    counts = [("Right", right, "right"), *((name, count, GROUPS[name][0]) for name, count in sums)]
    parts = [(count, f"s-{kind}", f"{name}: {count:,}") for name, count, kind in counts]
    words = ", ".join(f"{name} {count:,}" for name, count, _ in counts)
    legend = (
        tag("li", tag("svg", tag("rect", width=10, height=10, class_=f"s-{kind}")), f"{name} {count:,}")
        for name, count, kind in counts
    )
    bar = charts.bar_of(parts, height=36, label=words)
    return tag("div", bar, tag("ul", legend, class_="legend"), class_="stages")


def _stages(run_id: str, found: Diagnosis, groups: dict[str, list[StageShare]]) -> Markup:
    scale = charts.linear_scale(
        [0.0, *(end for one in found.stages for end in (one.share, *(one.interval or ())))], count=3
    )
    rows: list[Markup | list[Node]] = []
    for name, members in groups.items():
        rows.append(ui.group_row(5, name, f"{sum(one.count for one in members):,} answers"))
        rows += [_stage_row(run_id, one, scale) for one in members]
    columns = [
        ui.Column("Stage"),
        ui.Column("Answers", "n"),
        ui.Column("Share", "n"),
        ui.Column(charts.axis("Share", scale), "c"),
        ui.Column("Example"),
    ]
    about = f"share of {found.n:,} with 95% interval"
    return ui.section("Where they were lost", ui.table("Stages", columns, rows, kind="bars"), about=about)


def _stage_row(run_id: str, one: StageShare, scale: charts.Scale) -> list[Node]:
    href = address("run", run_id, "samples", query={"stage": one.name})
    example = one.sample_ids[0] if one.sample_ids else ""
    page = address("run", run_id, "sample", query={"stage": one.name})
    return [
        ui.row_link(_name(one.words), href, title=one.rule),
        f"{one.count:,}",
        f"{one.share:.0%}",
        charts.interval_bar(scale, one.share, one.interval, kind="same"),
        tag("a", ui.short(example, 12), href=with_id(page, example), class_="id") if example else None,
    ]


def _name(text: str) -> str:
    return text if text.startswith("top_k") else text[:1].upper() + text[1:]


def _fixes(run_id: str, found: Diagnosis) -> Markup:
    fixes = found.shown_fixes
    ends = [end for one in fixes for end in (one.gain, *(one.interval or ()))]
    scale = charts.linear_scale([0.0, *ends], count=3)
    rows = [_fix_row(run_id, one, scale) for one in fixes]
    columns = [
        ui.Column("Fix", "words"),
        ui.Column("At most", "n"),
        ui.Column("Expect", "n"),
        ui.Column(charts.axis("Gain", scale, signed=True), "c"),
        ui.Column("Gain"),
    ]
    about = "Shown: different from 0 after Holm over all fixes."
    calls = [
        (f"Calls to {name}", f"{count:,}, {count / max(1, found.n):.1f} per question")
        for name, count in found.calls.items()
        if count
    ]
    content = ui.table("Fixes", columns, rows, kind="bars")
    gains = ui.section("What a fix would bring", content, ui.notes([about])) if fixes else None
    cost = ui.card("Cost of the diagnosis", ui.facts(calls)) if calls else None
    return tag("div", gains, cost, class_="column")


def _fix_row(run_id: str, one: Fix, scale: charts.Scale) -> list[Node]:
    is_shown = one.p_holm < 0.05 and one.gain > 0
    expected = ui.number(one.expected, signed=True, digits=2)
    gain = tag("b", ui.number(one.gain, signed=True, digits=2))
    drawn = charts.interval_bar(scale, one.gain, one.interval, kind="up" if is_shown else "same")
    name = _name(one.text)
    href = address("compare", query=[("run", run_id), ("run", one.run_id)]) if one.run_id else None
    return [
        ui.row_link(name, href) if href else name,
        gain,
        "tried" if one.kind == "tried" else expected,
        drawn,
        ui.verdict("shown" if is_shown else "not shown"),
    ]
