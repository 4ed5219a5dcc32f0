"""Tables and cards of numbers: a table of texts, a metric with its interval and coverage, slices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...core.display import bounds_text, interval_text, value_text
from ...core.table import Table
from ...core.types import Coverage, MetricResult
from ...core.verdict import Verdict
from .charts import Dot, coverage_bar, interval_plot
from .markup import Markup, Node, join, tag

_VERDICTS = {*map(str, Verdict), "pass", "fail"}  # the last two are of a gate
_LONGEST = 600  # characters of one cell


def short(text: str, limit: int = _LONGEST) -> str:
    """Return text cut to `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def verdict_badge(verdict: str) -> Markup:
    """Return a verdict with its sign: "worse, within margin" is a kind of worse."""
    return tag("span", verdict, class_=f"verdict {_verdict_of(verdict).replace(' ', '-')}")


def _verdict_of(text: str) -> str:
    """Return the verdict itself: "FAIL" is fail, "fail (warning)" too."""
    return text.partition(",")[0].partition(" (")[0].lower()


def _kind(verdict: str) -> str:
    """Return how a change is drawn."""
    return {"better": "gain", "worse": "loss"}.get(_verdict_of(verdict), "open")


def scroll_box(label: str, content: Node) -> Markup:
    """Return a box that scrolls sideways by itself and can be reached by keyboard."""
    return tag("div", content, class_="scroll", role="region", aria_label=label, tabindex=0)


def sample_table(label: str, headings: Sequence[str], scores: Sequence[str], rows: Iterable[Node]) -> Markup:
    """Return a list of samples; a phone has no space for their answers."""
    head = (
        *(tag("th", text, scope="col", class_="spare" if text == "Answer" else None) for text in headings),
        *(tag("th", text, scope="col", class_="num") for text in scores),
    )
    table = tag("table", tag("thead", tag("tr", head)), tag("tbody", rows), class_="list")
    return scroll_box(label, table)


def data_table(table: Table, label: str = "", *, links: Mapping[str, str] | None = None) -> Markup:
    """Return a table of texts; a cell that is a verdict becomes a badge, one of `links` leads there."""
    head = (
        tag("th", heading, scope="col", class_="num" if place in table.numeric else None)
        if heading
        else tag("td")  # a heading without words says nothing to a screen reader
        for place, heading in enumerate(table.headings)
    )
    links = links or {}
    body = (tag("tr", _cells(table, row, links), class_=_group_class(table, row)) for row in table.rows)
    content = tag(
        "table",
        tag("caption", table.title) if table.title else None,
        tag("thead", tag("tr", head)),
        tag("tbody", body),
    )
    return join(scroll_box(label or table.title or "Table", content), notes(table.notes))


def notes(texts: Iterable[str]) -> Markup:
    """Return notes below a table, each on its own line."""
    return join(tag("p", text, class_="small") for text in texts)


def _cells(table: Table, row: Sequence[str], links: Mapping[str, str]) -> Iterable[Markup]:
    if len(row) == 1 < len(table.headings):
        yield tag("th", row[0], colspan=len(table.headings), scope="colgroup")
        return
    for place, text in enumerate(row):
        kind = "num" if place in table.numeric else None
        shown: Node = short(text)
        if text in links:
            shown = tag("a", shown, href=links[text], data_row=True)  # a stop of the keys j and k
        if place == 0:
            yield tag("th", shown, scope="row")
        elif _verdict_of(text) in _VERDICTS:
            yield tag("td", verdict_badge(text), class_=kind)
        else:
            yield tag("td", shown, class_=kind)


def _group_class(table: Table, row: Sequence[str]) -> str | None:
    return "group" if len(row) == 1 < len(table.headings) else None


# Cards.


def metric_card(
    result: MetricResult, *, note: str = "", href: str = "", about: str = "", more: Node = None
) -> Markup:
    """Return one metric: value, interval on its scale, unit, coverage, "if failed".

    `about` is the metric's meaning in one line, `more` goes below, such as a histogram.
    """
    name: Node = result.name if result.higher_is_better else f"{result.name} ↓"
    low, high = scale_of([result])
    value = result.value if math.isfinite(result.value) else None
    dot = Dot(value, result.interval, result.if_failed)
    return tag(
        "li",
        tag("h3", tag("a", name, href=href) if href else name),
        tag("p", about, class_="small") if about else None,
        _value(result),
        interval_plot([dot], low, high, ends=(_end(low, result.unit), _end(high, result.unit))),
        None if result.higher_is_better else tag("p", "↓ lower is better", class_="small"),
        tag("p", note, class_="small") if note else None,
        more,
        class_="card",
    )


def cards(members: Iterable[Node]) -> Markup:
    """Return a grid of cards."""
    return tag("ul", members, class_="cards")


def _value(result: MetricResult) -> Markup:
    value = tag("b", value_text(result.value, result.unit, interval=result.interval))
    interval = (
        tag("span", interval_text(result.interval, result.unit), class_="soft") if result.interval else None
    )
    shown = [tag("p", value, interval, class_="value")]
    if result.reports_coverage:
        coverage = result.coverage
        shown.append(tag("p", coverage_text(coverage), class_="small"))
        if coverage.skipped or coverage.failed:
            shown.append(coverage_bar(coverage))
    if result.if_failed:
        text = f"{bounds_text(result.if_failed, result.unit)}, had the failed samples been scored"
        shown.append(tag("p", text, class_="small"))
    if result.not_measured:
        shown.append(tag("p", f"Not measured: {result.not_measured}", class_="small"))
    return join(shown)


def coverage_text(coverage: Coverage) -> str:
    """Return "147 of 160 scored, 13 skipped"; what is 0 is left out.

    >>> coverage_text(Coverage(160, 147, 10, 3))
    '147 of 160 scored, 10 skipped, 3 failed'
    """
    parts = [f"{coverage.scored:,} of {coverage.total:,} scored"]
    parts += [f"{coverage.skipped:,} skipped"] * bool(coverage.skipped)
    parts += [f"{coverage.failed:,} failed"] * bool(coverage.failed)
    return ", ".join(parts)


def scale_of(results: Sequence[MetricResult]) -> tuple[float, float]:
    """Return the ends of the scale that results of one metric are drawn on.

    A metric with two bounds has those. Without, the scale starts at its bound, or at 0, and ends a little
    beyond what there is to draw.
    """
    low, high = results[0].bounds or (None, None)
    seen = [
        number
        for result in results
        for number in (result.value, *(result.interval or ()), *(result.if_failed or ()))
        if number is not None and math.isfinite(number)
    ]
    start = min([0.0, *seen]) if low is None or not math.isfinite(low) else low
    end = 1.1 * max([0.0, *seen]) if high is None or not math.isfinite(high) else high
    if results[0].bounds is None and not results[0].unit and all(0 <= number <= 1 for number in seen):
        start, end = 0.0, 1.0
    return start, end if end > start else start + 1.0


def _end(value: float, unit: str) -> str:
    return value_text(value, unit) if unit and value else f"{value:.3g}"


# Slices.


@dataclass(frozen=True)
class Slice:
    """A metric on the samples of which a field has one value; one value per run, `None` if none was scored.

    `change` and its interval are of two runs that are compared; `few` marks slices whose numbers say little.
    """

    field: str
    value: str
    samples: int
    values: Sequence[float | None]
    change: float | None = None
    interval: tuple[float, float] | None = None
    verdict: str = ""
    few: bool = False
    href: str = ""


def slices_table(slices: Sequence[Slice], names: Sequence[str], *, metric: str, unit: str = "") -> Markup:
    """Return slices grouped by field, with a plot of the change where two runs are compared."""
    compared = any(one.change is not None for one in slices)
    reach = _shared_reach([_reach(one.change, one.interval) for one in slices])
    headings = [
        "Slice",
        *(["Verdict"] if compared else []),
        "Samples",
        *names,
        *(["Change", "95% interval", "− change +"] if compared else []),
    ]
    head = (tag("th", text, scope="col", class_=_number_class(text)) for text in headings)
    rows: list[Markup] = []
    for place, one in enumerate(slices):
        if place == 0 or one.field != slices[place - 1].field:
            rows.append(
                tag("tr", tag("th", one.field, colspan=len(headings), scope="colgroup"), class_="group")
            )
        rows.append(tag("tr", _slice_cells(one, unit, reach, compared=compared)))
    content = tag(
        "table", tag("caption", f"{metric} by slice"), tag("thead", tag("tr", head)), tag("tbody", rows)
    )
    note = ["* fewer than 20 samples: the numbers say little."] if any(one.few for one in slices) else []
    return join(scroll_box(f"{metric} by slice", content), notes(note))


def _number_class(heading: str) -> str | None:
    return None if heading in ("Slice", "Verdict", "− change +") else "num"


def _slice_cells(one: Slice, unit: str, reach: float, *, compared: bool) -> Iterable[Markup]:
    name: Node = short(one.value, 60) or "(empty)"
    yield tag("th", tag("a", name, href=one.href) if one.href else name, scope="row")
    if compared:
        yield tag("td", verdict_badge(one.verdict) if one.verdict else None)
    yield tag("td", f"{one.samples:,}{'*' if one.few else ''}", class_="num")
    for value in one.values:
        yield tag("td", value_text(value, unit), class_="num")
    if compared:
        yield tag("td", value_text(one.change, unit, signed=True), class_="num")
        yield tag("td", interval_text(one.interval, unit, signed=True), class_="num")
        yield tag(
            "td",
            interval_plot(
                [Dot(one.change, one.interval, kind=_kind(one.verdict))], -reach, reach, zero=0, width=140
            ),
        )


# Forest plot.


@dataclass(frozen=True)
class Change:
    """One metric in two runs: both values, the change with its interval, and the verdict."""

    name: str
    before: float
    after: float
    change: float
    interval: tuple[float, float] | None
    verdict: str
    unit: str = ""
    p: str = ""
    higher_is_better: bool = True
    is_share: bool = True
    samples: str = ""
    href: str = ""

    @property
    def gain(self) -> Dot:
        """The change as it is drawn: better is to the right, and only a significant change is filled."""
        kind = _kind(self.verdict)
        if self.higher_is_better:
            return Dot(self.change, self.interval, kind=kind)
        interval = None if self.interval is None else (-self.interval[1], -self.interval[0])
        return Dot(-self.change, interval, kind=kind)

    @property
    def is_drawn(self) -> bool:
        """Whether there is a scale to draw it on: that of the shares, or that of its own interval."""
        return self.is_share or self.interval is not None


FOREST_NOTE = (
    "Filled dots are significant changes, and a triangle is one that is too small for the scale. "
    "Shares are drawn on one scale, other metrics each on that of its interval. "
    "An arrow goes on beyond the scale."
)


def forest(changes: Sequence[Change], names: tuple[str, str]) -> Markup:
    """Return the changes as a table with a plot: shares on one scale, each other metric on its own.

    A change that has neither is in words only: no length could show how large it is.
    """
    reach = _shared_reach([_reach(one.change, one.interval) for one in changes if one.is_share])
    headings = (
        "Metric",
        "Verdict",
        "Worse ← change → better",
        *names,
        "Change",
        "95% interval",
        "p (Holm)",
        "Samples",
    )
    head = (
        tag("th", text, scope="col", class_="num" if place > 2 else None)
        for place, text in enumerate(headings)
    )
    rows = (tag("tr", _change_cells(one, reach)) for one in changes)
    content = tag("table", tag("thead", tag("tr", head)), tag("tbody", rows))
    return scroll_box("Changes with 95% intervals", content)


def _reach(change: float | None, interval: tuple[float, float] | None) -> float:
    """Return how far from 0 a change and its interval reach."""
    ends = (abs(end) for end in (*(interval or ()), change or 0.0))
    return max((end for end in ends if math.isfinite(end)), default=0.0)


def _shared_reach(reaches: Sequence[float]) -> float:
    """Return the end of a scale for many changes: some wide intervals must not make all others dots."""
    if not reaches:
        return 1.0
    usual = sorted(reaches)[len(reaches) // 2]
    return min(max(reaches), 2.5 * usual) or max(reaches) or 1.0


def _change_cells(one: Change, reach: float) -> Iterable[Markup]:
    scale = reach if one.is_share else _reach(one.change, one.interval) or 1.0
    change = value_text(one.change, one.unit, signed=True, interval=one.interval)
    interval = interval_text(one.interval, one.unit, signed=True)
    name: Node = one.name if one.higher_is_better else f"{one.name} ↓"
    yield tag("th", tag("a", name, href=one.href) if one.href else name, scope="row")
    yield tag("td", verdict_badge(one.verdict))
    plot = interval_plot([one.gain], -scale, scale, zero=0, width=220)
    yield tag("td", plot) if one.is_drawn else tag("td", "no interval", class_="soft")
    for value in (one.before, one.after):
        yield tag("td", value_text(value, one.unit, interval=one.interval), class_="num")
    for text in (change, interval, one.p, one.samples):
        yield tag("td", text, class_="num")
