"""Small pictures within pages, as SVG: an interval beside its number, a law of noise, a budget over time.

They hold no text: what they show stands beside them in words, for every reader.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from discreet.chart import Mark, Panel
from discreet.html.elements import Html, element
from discreet.laplace.distribution import Laplace
from discreet.sandwich import Noise

__all__ = ["budget_line", "curve", "intervals"]

_WIDE, _HIGH = 200.0, 20.0


def intervals(panel: Panel) -> list[Html]:
    """For each group its bar and interval, all on one axis."""
    marks = [[_number(end) for end in (mark.value, mark.low, mark.high)] for mark in panel.marks]
    ends = [end for three in marks for end in three if end is not None]
    if not panel.temporal:
        ends.append(0.0)
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    room = (high - low) * 0.04 or abs(high) * 0.04 or 1.0
    low, high = low - room, high + room

    def x(value: float) -> float:
        return round(_WIDE * ((value - low) / (high - low)), 2)

    zero = None if panel.temporal else x(0.0)
    places = [[None if v is None else x(v) for v in three] for three in marks]
    return [_interval(mark, three, zero) for mark, three in zip(panel.marks, places, strict=True)]


def _interval(mark: Mark, places: Sequence[float | None], zero: float | None) -> Html:
    value, low, high = places
    middle = _HIGH / 2
    parts: list[Html] = []
    if zero is not None and value is not None:
        left, wide = min(zero, value), round(abs(value - zero), 2)
        parts.append(element("rect", class_="bar", x=left, y=4, width=wide, height=_HIGH - 8))
    if zero is not None:
        parts.append(element("line", class_="zero", x1=zero, y1=0, x2=zero, y2=_HIGH))
    if low is not None and high is not None:
        whiskers = f"M{low} {middle - 4}v8M{high} {middle - 4}v8"
        parts.append(element("path", class_="line", d=f"M{low} {middle}H{high}{whiskers}"))
    if value is not None:
        parts.append(element("path", class_="line", d=f"M{value} 3v{_HIGH - 6}"))
    return element(
        "svg",
        element("g", parts, class_="doubt" if mark.doubtful else "sure"),
        class_="i",
        viewBox=f"0 0 {_WIDE:g} {_HIGH:g}",
        preserveAspectRatio="none",
        aria_hidden="true",
        focusable="false",
    )


def curve(noise: Noise, reach: float) -> Html:
    """The density of a noise, to scale, with its band shaded."""
    law = Laplace(str(noise.scale))
    peak = float(law.pdf(0.0))
    steps = 120
    places = sorted({reach * (2 * i / steps - 1) for i in range(steps + 1)} | {0.0, -noise.band, noise.band})
    points = [
        (round(_WIDE / 2 * (1 + at / reach), 2), round(58 - 54 * float(law.pdf(at)) / peak, 2), abs(at) <= noise.band)
        for at in places
        if abs(at) <= reach
    ]
    inside = [(x, y) for x, y, within in points if within]
    shape = f"{inside[0][0]},58 " + " ".join(f"{x},{y}" for x, y in inside) + f" {inside[-1][0]},58"
    line = " ".join(f"{x},{y}" for x, y, _ in points)
    return element(
        "svg",
        element("polygon", points=shape, class_="area"),
        element("line", class_="rule", x1=0, y1=58, x2=_WIDE, y2=58),
        element("polyline", points=line, class_="line"),
        class_="c",
        viewBox=f"0 0 {_WIDE:g} 60",
        preserveAspectRatio="none",
        aria_hidden="true",
        focusable="false",
    )


def budget_line(times: Sequence[str], spent: Sequence[float], totals: Sequence[float | None]) -> Html:
    """What was spent over time, as steps, below the line of the total.

    Args:
        times: ISO 8601, oldest first.
        spent, totals: after each.
    """
    moments = [datetime.datetime.fromisoformat(time).timestamp() for time in times]
    first, last = moments[0], moments[-1]
    top = max([*spent, *(total for total in totals if total is not None)]) * 1.08 or 1.0
    # Where all happened within moments of each other, the steps stand evenly.
    even = last - first < 1.0

    def x(i: int) -> float:
        part = i / max(1, len(moments) - 1) if even else (moments[i] - first) / (last - first)
        return round(10 + 570 * part, 2)

    def y(value: float) -> float:
        return round(190 - 180 * value / top, 2)

    steps = f"M10 {y(0.0)}" + "".join(f"H{x(i)}V{y(value)}" for i, value in enumerate(spent)) + "H590"
    known = [(i, total) for i, total in enumerate(totals) if total is not None]
    limit = None
    if known:
        line = f"M{x(known[0][0])} {y(known[0][1])}" + "".join(f"H{x(i)}V{y(t)}" for i, t in known) + "H590"
        limit = element("path", d=line, class_="total")
    return element(
        "svg",
        element("path", d=f"{steps}V190H10Z", class_="area"),
        element("path", d=steps, class_="line"),
        limit,
        element("line", class_="rule", x1=10, y1=190, x2=590, y2=190),
        class_="budget",
        viewBox="0 0 600 200",
        preserveAspectRatio="none",
        aria_hidden="true",
        focusable="false",
    )


def _number(place: float | datetime.datetime | None) -> float | None:
    if isinstance(place, datetime.datetime):
        return (place - datetime.datetime(1970, 1, 1)).total_seconds()
    return place
