"""Drawings as SVG: intervals, histogram, scatter, sparkline, coverage.

Sizes are attributes and colours are classes, so a page needs no inline style. Each drawing has a text with
its values, for readers who cannot see it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.display import value_text
from ...core.types import Coverage
from .markup import Markup, join, tag

_EDGE = 7  # pixels at both ends of a scale, so that a dot at its end is whole
_ARROW = 8  # more pixels where an arrow says that something goes on beyond the scale
_NEAR = 6  # pixels from the zero line within which a dot does not show its side


class Scale:
    """Where a value lies, in pixels; values beyond the ends are drawn at the ends."""

    def __init__(self, low: float, high: float, width: int, edge: int = _EDGE) -> None:
        self.low, self.high, self.width = low, high, width
        self._span, self._edge = (high - low) or 1.0, edge

    def __call__(self, value: float) -> float:
        share = min(1.0, max(0.0, (value - self.low) / self._span))
        return round(self._edge + (self.width - 2 * self._edge) * share, 1)

    def of_all(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where many values lie."""
        shares: NDArray[np.float64] = np.clip((values - self.low) / self._span, 0.0, 1.0)
        return self._edge + (self.width - 2 * self._edge) * shares


@dataclass(frozen=True)
class Dot:
    """A value on a scale with its interval, and the range that failed samples leave open."""

    value: float | None
    interval: tuple[float, float] | None = None
    if_failed: tuple[float | None, float | None] | None = None
    kind: str = ""  # of a change: "gain" or "loss" if it is significant, else "open"; "" is a value


def interval_plot(
    dots: Sequence[Dot],
    low: float,
    high: float,
    *,
    label: str = "",
    zero: float | None = None,
    width: int = 240,
    ends: tuple[str, str] | None = None,
) -> Markup:
    """Draw each dot on a line of its own, all on the scale from `low` to `high`; `zero` is a dashed line.

    Without a label it is hidden from screen readers: for places where the numbers are beside it.
    """
    step = 14
    height = step * max(1, len(dots)) + (16 if ends else 2)
    at = Scale(low, high, width, _EDGE if ends else _EDGE + _ARROW)
    floor = step * max(1, len(dots)) + 1
    shapes = [tag("line", class_="axis", x1=at(low), x2=at(high), y1=floor, y2=floor)]
    if zero is not None and low <= zero <= high:
        shapes.append(tag("line", class_="zero", x1=at(zero), x2=at(zero), y1=0, y2=floor))
    for place, dot in enumerate(dots):
        shapes += _dot(dot, at, step * place + 7, zero)
    if ends:
        shapes.append(tag("text", ends[0], x=0, y=height - 2))
        shapes.append(tag("text", ends[1], x=width, y=height - 2, attrs={"text-anchor": "end"}))
    return _svg(width, height, label, *shapes)


def coverage_bar(coverage: Coverage, width: int = 120) -> Markup:
    """Draw the shares of scored, skipped and failed samples; the words are beside it."""
    counts = {"scored": coverage.scored, "skipped": coverage.skipped, "failed": coverage.failed}
    total = sum(counts.values()) or 1
    shapes, start = [], 0.0
    for kind, count in counts.items():
        share = width * count / total
        if count:
            shapes.append(tag("rect", class_=kind, x=_px(start), y=0, width=_px(max(1.0, share)), height=5))
        start += share
    return tag("svg", *shapes, viewBox=f"0 0 {width} 5", width=width, height=5, aria_hidden="true")


def histogram(
    values: Sequence[float] | NDArray[np.float64],
    low: float,
    high: float,
    *,
    label: str,
    unit: str = "",
    bins: int = 10,
    links: Sequence[str] = (),
    width: int = 240,
) -> Markup:
    """Draw how many values lie in each tenth of the scale; `links` has an address for each bar."""
    counts = bin_counts(values, low, high, bins)
    top, slot = max(counts, default=0) or 1, (width - 2 * _EDGE) / bins
    shapes = []
    for place, count in enumerate(counts):
        tall = 0 if not count else max(2.0, 46 * count / top)
        x = _EDGE + slot * place
        bar = tag("rect", class_="s0", x=_px(x + 1), y=_px(60 - tall), width=_px(slot - 2), height=_px(tall))
        number = tag("text", count, x=_px(x + slot / 2), y=_px(56 - tall), attrs={"text-anchor": "middle"})
        drawn = join(bar, number) if count else join()
        if links and count:
            about = f"{count} samples from {_bin_text(low, high, place, bins, unit)}"
            drawn = tag("a", drawn, href=links[place], aria_label=about)
        shapes.append(drawn)
    shapes.append(tag("line", class_="axis", x1=_EDGE, x2=width - _EDGE, y1=60, y2=60))
    shapes.append(tag("text", value_text(low, unit) if unit else f"{low:g}", x=0, y=73))
    end = value_text(high, unit) if unit else f"{high:g}"
    shapes.append(tag("text", end, x=width, y=73, attrs={"text-anchor": "end"}))
    said = ", ".join(
        f"{count} from {_bin_text(low, high, n, bins, unit)}" for n, count in enumerate(counts) if count
    )
    # A drawing with links is not an image: a reader must be able to follow them.
    return _svg(width, 76, f"{label}: {said or 'no values'}", *shapes, role="group" if links else "img")


def bin_counts(
    values: Sequence[float] | NDArray[np.float64], low: float, high: float, bins: int = 10
) -> list[int]:
    """Return how many values are in each bin; the last bin includes the end of the scale.

    >>> bin_counts([0.0, 0.05, 1.0], 0, 1, bins=2)
    [2, 1]
    """
    # By numpy: a run of 100,000 samples has a histogram for each metric.
    shares = (np.asarray(values, float) - low) / ((high - low) or 1.0)
    places = np.clip(np.floor(shares * bins), 0, bins - 1).astype(np.intp)
    return [int(count) for count in np.bincount(places, minlength=bins)]


def scatter(
    points: Sequence[tuple[float, float]] | NDArray[np.float64],
    low: float,
    high: float,
    *,
    x_name: str,
    y_name: str,
    label: str,
) -> Markup:
    """Draw pairs of scores; above the diagonal the second is higher. Equal points are one circle."""
    side, edge, room = 220, 26, 26  # a circle at the end of the scale needs space
    at = Scale(low, high, side, room)
    near = _near(np.asarray(points, float).reshape(-1, 2), at)
    ends = {"x1": edge + room, "y1": 4 + side - room, "x2": edge + side - room, "y2": 4 + room}
    shapes = [
        tag("rect", class_="grid", x=edge, y=4, width=side, height=side, fill="none"),
        tag("line", class_="zero", attrs=ends),
    ]
    for (x, y), count in sorted(near.items(), key=lambda item: -item[1]):
        kind = "s0"
        if y != x:
            kind = "s2" if y > x else "s1"
        cx, cy, radius = edge + x * 6, 4 + side - y * 6, min(24.0, 3 + 1.6 * math.sqrt(count))
        shapes.append(tag("circle", class_=f"{kind} bubble", cx=_px(cx), cy=_px(cy), r=_px(radius)))
        if radius > 9:
            shapes.append(tag("text", count, x=_px(cx), y=_px(cy + 4), attrs={"text-anchor": "middle"}))
        elif len(near) <= 12:  # beside a small circle, as long as there are few
            shapes.append(tag("text", count, x=_px(cx + radius + 3), y=_px(cy + 4)))
    shapes.append(tag("text", f"{x_name} →", x=edge, y=side + 20))
    turned = {"transform": f"rotate(-90 14 {side})"}
    shapes.append(tag("text", f"{y_name} →", x=14, y=side, attrs=turned))
    return _svg(side + edge + 4, side + 26, label, *shapes)


def _near(points: NDArray[np.float64], at: Scale) -> Counter[tuple[int, int]]:
    """Return how many points lie in each square of 6 pixels. By numpy: there may be 100,000."""
    places = np.rint(at.of_all(points) / 6).astype(int)
    squares, counts = np.unique(places[:, 0] * 1000 + places[:, 1], return_counts=True)
    return Counter(
        {divmod(int(square), 1000): int(count) for square, count in zip(squares, counts, strict=True)}
    )


def sparkline(values: Sequence[float | None], *, label: str, width: int = 110, height: int = 24) -> Markup:
    """Draw values over time as a line; a gap stays a gap, and the last value is a dot."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        return _svg(width, height, f"{label}: no values")
    low, high = min(known), max(known)
    at = Scale(low, high, height) if high > low else (lambda _: height / 2)
    step = (width - 2 * _EDGE) / max(1, len(values) - 1)
    path, pen_is_up = "", True
    last = (0.0, 0.0)
    for place, value in enumerate(values):
        if value is None or not math.isfinite(value):
            pen_is_up = True
            continue
        last = (_EDGE + step * place, height - at(value))
        path += f"{'M' if pen_is_up else 'L'}{_px(last[0])} {_px(last[1])}"
        pen_is_up = False
    return _svg(
        width,
        height,
        label,
        tag("path", class_="s0 line", d=path),
        tag("circle", class_="s0", cx=_px(last[0]), cy=_px(last[1]), r=3),
    )


def _dot(dot: Dot, at: Scale, y: int, zero: float | None) -> list[Markup]:
    if dot.value is None or not math.isfinite(dot.value):
        return [tag("text", "n/a", x=_EDGE, y=y + 4)]
    kind = dot.kind or "s0"
    shapes = []
    low, high = dot.if_failed or (None, None)
    if low is not None and high is not None:
        shapes.append(tag("line", class_=f"{kind} range", x1=at(low), x2=at(high), y1=y, y2=y))
    if dot.interval is not None:
        ends = [at(end) for end in dot.interval]
        shapes.append(tag("line", class_=f"{kind} interval", x1=ends[0], x2=ends[1], y1=y, y2=y))
    # Beside the scale, where no dot covers them.
    reach = (dot.value, *(dot.interval or ()))
    shapes += [tag("path", class_=kind, d=f"M1 {y}l6-4v8z")] * (min(reach) < at.low)
    shapes += [tag("path", class_=kind, d=f"M{at.width - 1} {y}l-6-4v8z")] * (max(reach) > at.high)
    x = at(dot.value)
    if not dot.kind or zero is None:
        return [*shapes, tag("circle", class_="s0", cx=_px(x), cy=_px(y), r=4.5)]
    if dot.kind != "open" and dot.value != zero and abs(x - at(zero)) < _NEAR:
        # Not to scale: a dot here would look like no change.
        tip = 9 if dot.value > zero else -9
        return [*shapes, tag("path", class_=kind, d=f"M{_px(at(zero))} {y - 5}v10l{tip}-5z")]
    return [*shapes, tag("circle", class_=kind, cx=_px(x), cy=_px(y), r=4.5)]


def _svg(width: int, height: int, label: str, *shapes: Markup, role: str = "img") -> Markup:
    size: dict[str, str | int] = {"viewBox": f"0 0 {width} {height}", "width": width, "height": height}
    if not label:
        return tag("svg", *shapes, attrs=size, aria_hidden="true")
    return tag("svg", *shapes, role=role, aria_label=label, attrs=size)


def _bin_text(low: float, high: float, place: int, bins: int, unit: str) -> str:
    ends = [low + (high - low) * (place + side) / bins for side in (0, 1)]
    return " to ".join(value_text(end, unit) if unit else f"{end:.3g}" for end in ends)


def _px(value: float) -> str:
    """Return a length with at most one decimal: a report has thousands of them."""
    return f"{value:.1f}".removesuffix(".0")
