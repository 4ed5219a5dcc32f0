"""Charts as SVG. Across, they are in percent and fill any width; upwards, in pixels: texts never stretch.

Sizes are attributes and colours are classes, so a page needs no inline style. Each chart has a text with its
values for readers who cannot see it, and an axis with numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from ...core.types import MetricResult
from .markup import Markup, Node, join, tag
from .parts import number

ROW = 28  # pixels of a chart in a row of a table
_MID = ROW // 2


@dataclass(frozen=True)
class Scale:
    """Where a value lies, in percent; beyond the ends it lies at the end.

    With `is_root` distances shrink like a square root: 0.007 and 0.7 can both be seen.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    is_root: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = self.low, self.high, value
        if self.is_root:
            low, high, at = (math.copysign(math.sqrt(abs(each)), each) for each in (low, high, value))
        return round(100 * min(1.0, max(0.0, (at - low) / ((high - low) or 1.0))), 1)


SHARE = Scale(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0))


def change_scale(reaches: Iterable[float]) -> Scale:
    """Return the scale of changes around 0 that fits the largest of them."""
    reach = max((each for each in reaches if math.isfinite(each)), default=0.0)
    end = next((step for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if reach <= step), 1.0)
    ends = (end, end / 4)
    return Scale(-end, end, (*(-each for each in ends), 0.0, *reversed(ends)), is_root=True)


def linear_scale(values: Iterable[float], *, count: int = 4) -> Scale:
    """Return a scale with round numbers around the values."""
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(known), max(known)
    if high - low < 1e-9:
        low, high = low - (abs(low) * 0.1 or 0.1), high + (abs(high) * 0.1 or 0.1)
    rough = (high - low) / count
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * each for each in (1, 2, 2.5, 5, 10) if size * each >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(round(place * step, 12) for place in range(first, last + 1))
    return Scale(ticks[0], ticks[-1], ticks)


def tick_text(value: float, *, signed: bool = False) -> str:
    """Return the number at a tick: ".25", "+.1", "1".

    >>> tick_text(0.25), tick_text(-0.1, signed=True), tick_text(1.0), tick_text(0)
    ('.25', '−.1', '1', '0')
    """
    text = f"{value:{'+' if signed and value else ''}.3g}"
    return (
        text.replace("0.", ".", 1).replace("-", "−") if abs(value) < 1 and value else text.replace("-", "−")
    )


def axis(name: str, scale: Scale, *, signed: bool = False) -> Markup:
    """Return the numbers of a scale, as the heading of a column of charts; the name is for screen readers."""
    ticks = [
        tag("text", tick_text(tick, signed=signed), x=_percent(scale(tick)), y=12) for tick in scale.ticks
    ]
    return join(
        tag("span", name, class_="unseen"), tag("svg", ticks, class_="chart axis", aria_hidden="true")
    )


def _grid(scale: Scale, height: int = ROW) -> list[Markup]:
    """Return the lines of a scale: in a table they run through all rows."""
    return [_upright("zero" if not tick else "grid", scale(tick), height) for tick in scale.ticks]


def _upright(kind: str, x: float, height: int, start: int = 0) -> Markup:
    return tag("line", class_=kind, x1=_percent(x), x2=_percent(x), y1=start, y2=height)


def _percent(x: float) -> str:
    return f"{x:g}%"


def interval_bar(
    scale: Scale,
    value: float,
    limits: Sequence[float] | None = None,
    *,
    baseline: float | None = None,
    kind: str = "mine",
    title: str = "",
    height: int = ROW,
) -> Markup:
    """Return a value with its interval on a scale; `baseline` is a tick of another run on the same bar."""
    shapes: list[Node] = [tag("title", title) if title else None, *_grid(scale)]
    middle = height // 2
    if not scale.ticks:  # without numbers, the line itself shows how long it is
        shapes.append(tag("line", class_="grid", x1=0, x2="100%", y1=middle, y2=middle))
    if baseline is not None and math.isfinite(baseline):
        shapes.append(_upright("other", scale(baseline), middle + 7, middle - 7))
    shapes += _dot(scale, value, limits, kind, middle)
    return tag("svg", shapes, class_="chart", aria_hidden="true")


def _dot(
    scale: Scale, value: float, limits: Sequence[float] | None, kind: str, y: int = _MID
) -> list[Markup]:
    if not math.isfinite(value):
        return []
    shapes = []
    if limits:
        low, high = (_percent(scale(limit)) for limit in limits[:2])
        shapes.append(tag("line", class_=f"ci {kind}", x1=low, x2=high, y1=y, y2=y))
        # An interval that goes on beyond the scale ends in an arrow.
        if limits[0] < scale.low - 1e-9:
            shapes.append(_arrow(0, "-1 0l6-4v8z", kind, y))
        if limits[1] > scale.high + 1e-9:
            shapes.append(_arrow(100, "1 0l-6-4v8z", kind, y))
    shapes.append(tag("circle", class_=f"dot {kind}", cx=_percent(scale(value)), cy=y, r=4))
    return shapes


def _arrow(x: float, shape: str, kind: str, y: int) -> Markup:
    # A path cannot be in percent, a drawing inside the drawing can.
    return tag("svg", tag("path", class_=f"dot {kind}", d=f"M{shape}"), x=_percent(x), y=y, class_="at")


def histogram(counts: Sequence[int], *, links: Sequence[str] = (), label: str = "") -> Markup:
    """Return how many scores lie in each tenth of the scale; small, or with a link and a number per bar."""
    top, size = max(counts, default=0) or 1, 100 / max(1, len(counts))
    tall = 34 if links else 20
    shapes: list[Node] = []
    for place, count in enumerate(counts):
        height = max(1.5, tall * count / top) if count else 0
        where = {"x": _percent(round(place * size + 0.5, 1)), "width": _percent(round(size - 1, 1))}
        bar = tag("rect", attrs=where, y=round(tall + 14 * bool(links) - height, 1), height=round(height, 1))
        if links and count:
            middle = _percent(round((place + 0.5) * size, 1))
            text = tag("text", f"{count:,}", x=middle, y=round(tall + 10 - height, 1))
            hit = tag("rect", attrs=where, class_="hit", y=0, height=tall + 14)
            about = f"{count} {'sample' if count == 1 else 'samples'}"
            bar = tag("a", hit, bar, text, href=links[place], aria_label=f"{about} of bar {place + 1}")
        shapes.append(bar)
    if not links:
        return tag("svg", shapes, class_="chart hist", aria_hidden="true")
    # A drawing with links is not an image: a reader must be able to follow them.
    return tag("svg", shapes, class_="chart hist large", role="group", aria_label=label)


def bin_counts(values: NDArray[np.float64], low: float, high: float, bins: int = 10) -> list[int]:
    """Return how many values are in each bin; the last bin includes the end of the scale.

    >>> bin_counts(np.array([0.0, 0.05, 1.0]), 0, 1, bins=2)
    [2, 1]
    """
    # By numpy: a run of 100,000 samples has a histogram for each metric.
    shares = (values - low) / ((high - low) or 1.0)
    places = np.clip(np.floor(shares * bins), 0, bins - 1).astype(np.intp)
    return [int(count) for count in np.bincount(places, minlength=bins)]


def bar_of(parts: Sequence[tuple[float, str, str]], *, height: int = 8, label: str = "") -> Markup:
    """Return shares side by side, each with its class and what a pointer shows: won, tied and lost."""
    total, start = sum(size for size, _, _ in parts) or 1, 0.0
    shapes = []
    for size, kind, title in parts:
        width = 100 * size / total
        where = {"x": _percent(round(start, 2)), "width": _percent(round(width, 2))}
        if size:
            shapes.append(tag("rect", tag("title", title), attrs=where, class_=kind, y=0, height=height))
        start += width
    if label:
        return tag("svg", shapes, class_="chart bar", role="img", aria_label=label, height=height)
    return tag("svg", shapes, class_="chart bar", aria_hidden="true", height=height)


def scale_of(results: Sequence[MetricResult]) -> tuple[float, float]:
    """Return the ends of the scale that results of one metric are drawn on.

    A metric with two bounds has those. Without, the scale starts at its bound, or at 0, and ends a little
    beyond what there is to draw.
    """
    low, high = results[0].bounds or (None, None)
    seen = [
        each
        for result in results
        for each in (result.value, *(result.interval or ()), *(result.if_failed or ()))
        if each is not None and math.isfinite(each)
    ]
    start = min([0.0, *seen]) if low is None or not math.isfinite(low) else low
    end = 1.1 * max([0.0, *seen]) if high is None or not math.isfinite(high) else high
    if results[0].bounds is None and not results[0].unit and all(0 <= each <= 1 for each in seen):
        start, end = 0.0, 1.0
    return start, end if end > start else start + 1.0


# Pairs of scores.


_BUBBLES = 60  # circles; more are joined


@dataclass(frozen=True)
class Bubble:
    """Samples that have about the same two scores: where, how many, and where they are listed."""

    x: float
    y: float
    count: int
    href: str = ""


def bubbles(points: NDArray[np.float64], scale: Scale, cells: int = 20) -> list[Bubble]:
    """Return the points joined where they are near to each other. By numpy: there may be 100,000."""
    span = (scale.high - scale.low) or 1.0
    places = np.rint(np.clip((points - scale.low) / span, 0, 1) * cells).astype(int)
    squares, counts = np.unique(places[:, 0] * 1000 + places[:, 1], return_counts=True)
    if len(squares) > _BUBBLES and cells > 8:
        return bubbles(points, scale, 8)  # a page with a circle for each of hundreds is slow to read
    joined = []
    for square, count in zip(squares.tolist(), counts.tolist(), strict=True):
        x, y = (scale.low + span * place / cells for place in divmod(square, 1000))
        joined.append(Bubble(x, y, count))
    return joined


def scatter(members: Sequence[Bubble], scale: Scale, names: Sequence[str], *, label: str) -> Markup:
    """Return pairs of scores: above the diagonal the second run is higher; circles lead to their samples."""
    side = 200
    top = max((one.count for one in members), default=1)

    def up(value: float) -> float:
        return round(side * (1 - scale(value) / 100), 1)

    shapes: list[Node] = []
    for tick in scale.ticks:
        shapes += [
            _upright("grid", scale(tick), side),
            tag("line", class_="grid", x1=0, x2="100%", y1=up(tick), y2=up(tick)),
            tag("text", tick_text(tick), x=_percent(scale(tick)), y=side + 16),
            tag("text", tick_text(tick), x=-18, y=up(tick) + 4, class_="end"),
        ]
    shapes.append(tag("line", class_="zero dash", x1="0%", y1=side, x2="100%", y2=0))
    for one in sorted(members, key=lambda each: -each.count):
        kind = "same" if one.x == one.y else "up" if one.y > one.x else "down"
        words = f"{one.count:,} × {number(one.x, digits=2)} → {number(one.y, digits=2)}"
        radius = round(4 + 12 * math.sqrt(one.count / top), 1)
        drawn: Node = _circle(words, kind, scale(one.x), up(one.y), radius)
        if one.href:
            drawn = tag("a", drawn, href=one.href, aria_label=words)
        shapes.append(drawn)
    shapes += [
        tag("text", f"{names[0]} →", x="50%", y=side + 32),
        tag("text", f"{names[1]} ↑", x=0, y=-8, class_="start"),
    ]
    drawing = tag("svg", shapes, class_="chart scatter", role="group", aria_label=label, height=side)
    return tag("div", drawing, class_="plot")


def _circle(words: str, kind: str, x: float, y: float, radius: float) -> Markup:
    # Not `circle` by itself: an element with a <title> inside is not a void one.
    shape = tag("circle", class_=f"bubble {kind}", cx=_percent(x), cy=y, r=radius)
    return tag("g", tag("title", words), shape)


# A metric over time.

SERIES = ("mine", "other", "third", "fourth", "fifth", "sixth")


@dataclass(frozen=True)
class Point:
    """A run on a line: when, its value with the interval, what a pointer shows, and its page."""

    when: datetime
    value: float
    limits: tuple[float, float] | None
    title: str
    href: str = ""


@dataclass(frozen=True)
class Line:
    """The runs of one system, oldest first."""

    name: str
    points: Sequence[Point]


def trend_chart(lines: Sequence[Line], *, label: str, height: int = 240) -> Markup:
    """Return values over time: a line with points and the band of the intervals for each system."""
    known = [point for line in lines for point in line.points if math.isfinite(point.value)]
    scale = linear_scale(each for point in known for each in (point.value, *(point.limits or ())))
    first, last = min(point.when for point in known), max(point.when for point in known)
    span = (last - first).total_seconds()

    def across(point: Point) -> float:
        return round(100 * (point.when - first).total_seconds() / span, 1) if span else 50.0

    def up(value: float) -> float:
        return round(height * (1 - scale(value) / 100), 1)

    shapes: list[Node] = []
    for tick in scale.ticks:
        shapes.append(tag("line", class_="grid", x1="0%", x2="100%", y1=up(tick), y2=up(tick)))
        shapes.append(tag("text", f"{tick:.3g}", x=-8, y=up(tick) + 4, class_="end"))
    dates = sorted({across(point): _date(point.when, first, last) for point in known}.items())
    shapes += [tag("text", text, x=_percent(x), y=height + 16) for x, text in _apart(dates)]
    for kind, line in zip(SERIES, lines, strict=False):
        drawn = [point for point in line.points if math.isfinite(point.value)]
        shapes.append(_band(drawn, kind, across, up, height))
        for point in drawn:
            circle = tag("circle", class_=f"dot {kind}", cx=_percent(across(point)), cy=up(point.value), r=4)
            hit = tag("circle", class_="hit", cx=_percent(across(point)), cy=up(point.value), r=12)
            content = join(tag("title", point.title), hit, circle)
            shapes.append(
                tag("a", content, href=point.href, aria_label=point.title)
                if point.href
                else tag("g", content)
            )
    drawing = tag("svg", shapes, class_="chart trend", role="group", aria_label=label, height=height)
    return tag("div", drawing, class_="plot")


def _band(
    points: Sequence[Point],
    kind: str,
    across: Callable[[Point], float],
    up: Callable[[float], float],
    height: int,
) -> Markup:
    """Return the line and its band in a drawing that stretches; only lines may do that."""
    path = " ".join(f"{across(point)},{up(point.value)}" for point in points)
    limited = [point for point in points if point.limits]
    tops = [f"{across(point)},{up(point.limits[1])}" for point in limited if point.limits]
    floors = [f"{across(point)},{up(point.limits[0])}" for point in reversed(limited) if point.limits]
    shapes = [
        tag("polygon", class_=f"band {kind}", points=" ".join([*tops, *floors]))
        if len(limited) > 1
        else None,
        tag("polyline", class_=f"line {kind}", points=path) if len(points) > 1 else None,
    ]
    box = f"0 0 100 {height}"
    return tag("svg", shapes, viewBox=box, preserveAspectRatio="none", width="100%", height=height)


def _date(when: datetime, first: datetime, last: datetime) -> str:
    days = (last - first).total_seconds() / 86_400
    return f"{when:%H:%M}" if days < 1 else f"{when.day} {when:%b}" if days < 300 else f"{when:%b %Y}"


def _apart(dates: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Return the dates that do not touch each other."""
    kept: list[tuple[float, str]] = []
    for x, text in dates:
        if not kept or (x - kept[-1][0] >= 9 and text != kept[-1][1]):
            kept.append((x, text))
    return kept


def legend(names: Sequence[str]) -> Markup:
    """Return the names of the lines with their colours and signs."""
    items = (
        tag("li", tag("span", "●", class_=kind, aria_hidden="true"), f" {name}")
        for kind, name in zip(SERIES, names, strict=False)
    )
    return tag("ul", items, class_="legend")


def dot_rows(scale: Scale, dots: Sequence[tuple[float, Sequence[float] | None, str]]) -> Markup:
    """Return several values with their intervals on one scale, each in the colour of its run."""
    shapes: list[Node] = []
    height = 12 * len(dots) + 4
    shapes += _grid(scale, height)
    for place, (value, limits, _) in enumerate(dots):
        shapes += _dot(scale, value, limits, SERIES[place % len(SERIES)], 8 + 12 * place)
    words = "; ".join(title for _, _, title in dots)
    return tag("svg", shapes, class_="chart rows", role="img", aria_label=words, height=height)
