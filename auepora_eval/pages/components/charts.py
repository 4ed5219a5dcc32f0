"""Charts as SVG. Across, they are in percent and fill any width; upwards, in pixels: texts never stretch.

Sizes are attributes and colours are classes, so a page needs no inline style. Each chart has a text with its
values for readers who cannot see it, and an axis with numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from ...core.types import MetricResult
from .markup import Markup, Node, join, tag
from .parts import number

ROW = 28  # pixels of a chart in a row of a table


Changed = tuple[float, Sequence[float] | None]  # a change, and its interval


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


def change_scale(changes: Iterable[Changed]) -> Scale:
    """Return the scale around 0 that fits the largest change, or end of its interval."""
    sizes = (abs(end) for change, limits in changes for end in (change, *(limits or ())))
    reach = max(filter(math.isfinite, sizes), default=0.0)
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
    text = f"{value:{'+' if signed and value else ''}.3g}".replace("-", "−")
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def axis(name: str, scale: Scale, *, signed: bool = False) -> Markup:
    """Return the numbers of a scale, as the heading of a column of charts; the name is for screen readers."""
    # A narrow window has space for the ends, 0 and the middle only.
    kept = {scale.low, scale.high, 0.0, scale.ticks[len(scale.ticks) // 2]}
    ticks = [
        tag(
            "text",
            tick_text(tick, signed=signed),
            x=_percent(scale(tick)),
            y=12,
            class_=None if tick in kept else "minor",
        )
        for tick in scale.ticks
    ]
    drawn = tag("svg", ticks, class_="chart axis", aria_hidden="true")
    return join(tag("span", name, class_="unseen"), drawn)


def _grid(scale: Scale, height: int = ROW) -> list[Markup]:
    """Return the lines of a scale: in a table they run through all rows."""
    return [_upright("zero" if not tick else "grid", scale(tick), height) for tick in scale.ticks]


def _upright(kind: str, x: float, height: float, start: float = 0) -> Markup:
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


def gain_bar(scale: Scale, change: float, limits: Sequence[float] | None, *, up: bool, kind: str) -> Markup:
    """Return a change with its interval as gain: better is to the right."""
    if up:
        return interval_bar(scale, change, limits, kind=kind)
    return interval_bar(scale, -change, (-limits[1], -limits[0]) if limits else None, kind=kind)


def _dot(scale: Scale, value: float, limits: Sequence[float] | None, kind: str, y: int) -> list[Markup]:
    if not math.isfinite(value):
        return []
    shapes, at = [], scale(value)
    low, high = (limits or (value, value))[:2]
    if limits:
        ends = {"x1": _percent(scale(low)), "x2": _percent(scale(high))}
        shapes.append(tag("line", class_=f"ci {kind}", attrs=ends, y1=y, y2=y))
    # What goes on beyond the scale ends in an arrow, beside a dot that lies at the same end.
    if low < scale.low - 1e-9:
        shapes.append(_arrow(0, f"{-11 if at < 3 else -1} 0l6-4v8z", kind, y))
    if high > scale.high + 1e-9:
        shapes.append(_arrow(100, f"{11 if at > 97 else 1} 0l-6-4v8z", kind, y))
    shapes.append(tag("circle", class_=f"dot {kind}", cx=_percent(at), cy=y, r=4))
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


def bar_of(parts: Sequence[tuple[float, str, str]], *, height: int = 8, label: str = "") -> Markup:
    """Return shares side by side, each with its class and what a pointer shows: won, tied and lost."""
    total, start, shapes = sum(size for size, _, _ in parts) or 1, 0.0, []
    for size, kind, title in parts:
        width = 100 * size / total
        if size:
            where = {"x": _percent(round(start, 2)), "width": _percent(round(width, 2))}
            rect = tag("rect", attrs=where, class_=kind, height=height)
            is_wide = height > 20 and width > 4  # high and wide enough for its number
            middle = _percent(round(start + width / 2, 2))
            text = tag("text", f"{size:,.0f}", x=middle, y=height // 2 + 4) if is_wide else None
            shapes.append(tag("g", tag("title", title), rect, text))
        start += width
    about = {"role": "img", "aria-label": label} if label else {"aria-hidden": "true"}
    return tag("svg", shapes, class_="chart bar", height=height, attrs=about)


def scale_of(result: MetricResult, values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the ends of the scale of scores: those of the metric, or what there is to draw."""
    if result.is_share:
        return 0.0, 1.0
    low, high = result.bounds or (None, None)
    start = float(min(0.0, values.min(initial=0.0))) if low is None or not math.isfinite(low) else low
    end = float(values.max(initial=start)) if high is None or not math.isfinite(high) else high
    return start, end if end > start else start + 1.0


# Pairs of scores.

_BUBBLES = 60  # circles; more are joined

Circle = tuple[float, float, int]  # the first score, the second, and how many samples have about these


def bubbles(points: NDArray[np.float64], scale: Scale, cells: int = 20) -> list[Circle]:
    """Return the points joined where they are near to each other. By numpy: there may be 100,000."""
    span = (scale.high - scale.low) or 1.0
    places = np.rint(np.clip((points - scale.low) / span, 0, 1) * cells).astype(int)
    squares, counts = np.unique(places[:, 0] * 1000 + places[:, 1], return_counts=True)
    if len(squares) > _BUBBLES and cells > 8:
        return bubbles(points, scale, 8)  # a page with a circle for each of hundreds is slow to read
    ends = scale.low + span * np.stack(np.divmod(squares, 1000)) / cells
    return list(zip(*ends.tolist(), counts.tolist(), strict=True))


def scatter(
    circles: Sequence[Circle],
    scale: Scale,
    names: Sequence[str],
    href: Callable[[float, float], str],
    *,
    label: str,
) -> Markup:
    """Return pairs of scores: above the diagonal the second run is higher; circles lead to their samples."""
    side = 200
    top = max((count for _, _, count in circles), default=1)
    up = _upwards(scale, side)
    shapes: list[Node] = [
        *_grid(scale, side),
        *(_level(scale, tick, side, tick_text(tick)) for tick in scale.ticks),
        *(tag("text", tick_text(tick), x=_percent(scale(tick)), y=side + 16) for tick in scale.ticks),
        tag("line", class_="zero dash", x1="0%", y1=side, x2="100%", y2=0),
    ]
    for x, y, count in sorted(circles, key=lambda one: -one[2]):
        kind = "same" if x == y else "up" if y > x else "down"
        words = f"{count:,} × {number(x, digits=2)} → {number(y, digits=2)}"
        radius = round(4 + 12 * math.sqrt(count / top), 1)
        circle = tag("circle", class_=f"bubble {kind}", cx=_percent(scale(x)), cy=up(y), r=radius)
        shapes.append(tag("a", tag("title", words), circle, href=href(x, y), aria_label=words))
    shapes += [
        tag("text", f"{names[0]} →", x="50%", y=side + 32),
        tag("text", f"{names[1]} ↑", x=0, y=-20, class_="start"),
    ]
    drawing = tag("svg", shapes, class_="chart scatter", role="group", aria_label=label, height=side)
    return tag("div", drawing, class_="plot")


def _upwards(scale: Scale, height: int) -> Callable[[float], float]:
    return lambda value: round(height * (1 - scale(value) / 100), 1)


def _level(scale: Scale, tick: float, height: int, text: str) -> Markup:
    """Return a line across a chart with its number on the left."""
    y = _upwards(scale, height)(tick)
    line = tag("line", class_="grid", x1="0%", x2="100%", y1=y, y2=y)
    return join(line, tag("text", text, x=-16, y=y + 4, class_="end"))


# A metric over time.

SERIES = ("mine", "other", "third", "fourth", "fifth", "sixth")


@dataclass(frozen=True)
class Point:
    """A run on a line: when, its value with the interval, what a pointer shows, and its page."""

    when: datetime
    value: float
    limits: tuple[float, float] | None
    title: str
    href: str


def trend_chart(
    lines: Iterable[Sequence[Point]], *, names: Sequence[str] = (), label: str, height: int = 240
) -> Markup:
    """Return values over time: a line with points and the band of the intervals for each system.

    With `names`, each line has its name at its end.
    """
    drawings = [[point for point in line if math.isfinite(point.value)] for line in lines]
    known = [point for drawn in drawings for point in drawn]
    scale = linear_scale(each for point in known for each in (point.value, *(point.limits or ())))
    first, last = min(point.when for point in known), max(point.when for point in known)
    span = (last - first).total_seconds()
    up = _upwards(scale, height)

    def across(point: Point) -> float:
        return round(100 * (point.when - first).total_seconds() / span, 1) if span else 50.0

    dates = sorted({across(point): _date(point.when, first, last) for point in known}.items())
    shapes: list[Node] = [_level(scale, tick, height, f"{tick:.3g}") for tick in scale.ticks]
    shapes += [tag("text", text, x=_percent(x), y=height + 16) for x, text in _apart(dates)]
    for kind, drawn in zip(SERIES, drawings, strict=False):
        places = [(across(point), up(point.value)) for point in drawn]
        tops = [(across(point), up(point.limits[1])) for point in drawn if point.limits]
        floors = [(across(point), up(point.limits[0])) for point in drawn if point.limits]
        paths = [
            tag("polygon", class_=f"band {kind}", points=_path([*tops, *reversed(floors)])),
            tag("polyline", class_=f"line {kind}", points=_path(places)),
        ]
        # A drawing of its own that stretches: only lines may do that.
        box = {"viewBox": f"0 0 100 {height}", "preserveAspectRatio": "none"}
        shapes.append(tag("svg", paths, attrs=box, width="100%", height=height))
        for point, (x, y) in zip(drawn, places, strict=True):
            ends = [up(end) for end in point.limits or ()]
            limits = _upright(f"ci {kind}", x, ends[0], ends[1]) if ends else None
            hit = tag("circle", class_="hit", cx=_percent(x), cy=y, r=12)
            dot = tag("circle", class_=f"dot {kind}", cx=_percent(x), cy=y, r=4)
            title = tag("title", point.title)
            shapes.append(tag("a", title, hit, limits, dot, href=point.href, aria_label=point.title))
    shapes += _line_names(names, [up(drawn[-1].value) for drawn in drawings])
    drawing = tag("svg", shapes, class_="chart trend", role="group", aria_label=label, height=height)
    return tag("div", drawing, class_="plot named" if names else "plot")


def _line_names(names: Sequence[str], ends: Sequence[float]) -> Iterator[Markup]:
    """Yield the names of lines at the height of their ends, moved down where they would touch."""
    lowest = -math.inf
    for y, kind, name in sorted(zip(ends, SERIES, names, strict=False)):
        lowest = max(y, lowest + 14)
        yield tag("text", name, x="100%", dx=12, y=lowest + 4, class_=f"name {kind}", aria_hidden="true")


def _path(places: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in places)


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
    height = 12 * len(dots) + 4
    shapes = _grid(scale, height)
    for place, (value, limits, _) in enumerate(dots):
        shapes += _dot(scale, value, limits, SERIES[place % len(SERIES)], 8 + 12 * place)
    words = "; ".join(title for _, _, title in dots)
    return tag("svg", shapes, class_="chart rows", role="img", aria_label=words, height=height)
