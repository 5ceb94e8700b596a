"""A chart of an answer: bars for groups, lines over time, with their intervals; grey where 0 is within the interval."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.chart import Chart, Mark, Panel
from discreet.numerals import number_text
from discreet.pictures.canvas import Canvas, Drawing, Palette, line_height
from discreet.pictures.fonts import BOLDER, fitted, width, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["MOST_BARS", "chart_figure"]

MOST_BARS = 200
"""Groups in one picture; of more, the first ones are drawn, and it says so."""

_MARGIN, _GAP = 18.0, 26.0
_SIZE, _HEAD = 10.0, 11.0
_ROW = 19.0
_LABELS = 230.0  # the most that keys may take
_SIDE_BY_SIDE = 4
_NARROW, _WIDE = 210.0, 460.0
_TIME_HEIGHT = 150.0
_AXIS = 26.0  # below a panel, for its numbers


def chart_figure(chart: Chart, format: str) -> Drawing:
    """Draw a chart."""
    if not any(panel.marks for panel in chart.panels):
        return _empty(chart, format)
    return _lines(chart, format) if chart.over_time else _bars(chart, format)


def _heading(chart: Chart, wide: float) -> list[str]:
    return wrapped(chart.title, _SIZE, wide - 2 * _MARGIN, most=5)


def _notes(chart: Chart, wide: float, *more: str) -> list[str]:
    return [line for note in (*more, *chart.notes) for line in wrapped(note, _SIZE - 1, wide - 2 * _MARGIN)]


def _empty(chart: Chart, format: str) -> Drawing:
    wide = 520.0
    lines = [*_heading(chart, wide), "There is nothing to draw: no group, or no statistic that is a number."]
    sheet = Canvas(wide, 2 * _MARGIN + len(lines) * line_height(_SIZE), format, " ".join(lines))
    sheet.lines(_MARGIN, _MARGIN, lines, _SIZE)
    return sheet.finish()


def _bars(chart: Chart, format: str) -> Drawing:
    """Groups one below the other; a panel a statistic, a few of them side by side."""
    shown = min(len(chart.panels[0].marks), MOST_BARS)
    labels = [mark.group for mark in chart.panels[0].marks[:shown]]
    room = min(_LABELS, max(40.0, *(width(label, _SIZE) for label in labels), width(chart.grouped_by, _SIZE)))
    beside = min(len(chart.panels), _SIDE_BY_SIDE)
    each = max(_NARROW, (_WIDE if beside == 1 else 700.0 / beside))
    wide = 2 * _MARGIN + room + 8 + beside * each + (beside - 1) * _GAP
    bands = [chart.panels[i : i + beside] for i in range(0, len(chart.panels), beside)]
    heading = _heading(chart, wide)
    left_out = len(chart.panels[0].marks) - shown
    more = [f"the first {shown} groups are drawn; {left_out:,} more are in the table"] if left_out else []
    notes = _notes(chart, wide, *more)
    band = 40.0 + shown * _ROW + _AXIS
    top = _MARGIN + len(heading) * line_height(_SIZE) + 10
    height = top + len(bands) * band + 12 + len(notes) * line_height(_SIZE - 1) + _MARGIN
    sheet = Canvas(wide, height, format, _said(chart))
    sheet.lines(_MARGIN, _MARGIN, heading, _SIZE, color=Palette.QUIET)
    for panels in bands:
        rows = top + 40.0
        sheet.words(_MARGIN, rows - 6, fitted(chart.grouped_by, _SIZE, room), _SIZE, color=Palette.QUIET)
        for i, label in enumerate(labels):
            sheet.words(_MARGIN + room, rows + (i + 0.5) * _ROW + 3.5, fitted(label, _SIZE, room), _SIZE, align="right")
        for i, panel in enumerate(panels):
            _panel(sheet, panel, shown, _MARGIN + room + 8 + i * (each + _GAP), rows, each)
        top += band
    sheet.lines(_MARGIN, top + 6, notes, _SIZE - 1, color=Palette.QUIET)
    return sheet.finish()


def _panel(sheet: Canvas, panel: Panel, shown: int, x: float, y: float, wide: float) -> None:
    sheet.words(x, y - 20, fitted(panel.name, _HEAD * BOLDER, wide), _HEAD, bold=True)
    if panel.described != panel.name:
        sheet.words(x, y - 6, fitted(panel.described, _SIZE - 1, wide), _SIZE - 1, color=Palette.QUIET)
    axes = sheet.axes(x, y, wide, shown * _ROW)
    axes.set_ylim(shown - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    for i, mark in enumerate(panel.marks[:shown]):
        if i % 2:
            axes.axhspan(i - 0.5, i + 0.5, color=Palette.STRIPE, zorder=0, linewidth=0)
        _bar(axes, mark, i, temporal=panel.temporal)
        if mark.value is None:  # nothing, or too large for an axis
            sheet.words(x + 4, y + (i + 0.5) * _ROW + 3.5, fitted(mark.shown, _SIZE - 1, wide - 8), _SIZE - 1)
    ends = [end for mark in panel.marks[:shown] for end in (mark.value, mark.low, mark.high) if end is not None]
    if not ends:
        axes.set_xticks([])
        return
    _scale(sheet, axes.xaxis, ends, wide, temporal=panel.temporal)
    if not panel.temporal:
        axes.axvline(0, color=Palette.QUIET, linewidth=0.8, zorder=2)


def _bar(axes: Axes, mark: Mark, i: int, *, temporal: bool) -> None:
    color = Palette.GREYED if mark.doubtful else Palette.NOISE
    if mark.value is None:
        return
    if not temporal and isinstance(mark.value, float):
        axes.barh(i, mark.value, height=0.62, color=color, alpha=0.45, linewidth=0, zorder=1)
    axes.plot([_number(mark.value)], [i], marker="|", markersize=9, markeredgewidth=2, color=color, zorder=4)
    if mark.low is not None and mark.high is not None:
        ends = [_number(mark.low), _number(mark.high)]
        axes.plot(ends, [i, i], color=color, linewidth=2, solid_capstyle="butt", zorder=3)
        axes.plot(ends, [i, i], "|", markersize=5, color=color, zorder=3)


def _scale(sheet: Canvas, axis: Axis, ends: Sequence[object], wide: float, *, temporal: bool) -> None:
    """Few enough numbers on an axis that none runs into another."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    if temporal:
        _calendar(axis, [end for end in ends if isinstance(end, datetime.datetime)], max(2, int(wide // 84)))
    else:
        numbers = [float(end) for end in ends if isinstance(end, float)]
        longest = max((width(number_text(end, 3), _SIZE - 1) for end in numbers), default=20.0)
        axis.set_major_locator(MaxNLocator(nbins=max(1, min(6, int(wide // (longest + 22)))), steps=[1, 2, 2.5, 5, 10]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value, 3)))
    for label in axis.get_ticklabels():
        label.set_fontproperties(sheet.lettering("", _SIZE - 1)[1])
    axis.set_tick_params(length=3, pad=2)


def _calendar(axis: Axis, ends: Sequence[datetime.datetime], most: int) -> None:
    """An axis of times that ends at the ends of the calendar, with at most so many dates written on it."""
    from matplotlib.dates import AutoDateLocator, DateFormatter
    from matplotlib.ticker import FixedLocator

    first, last = _number(min(ends)), _number(max(ends))
    room = (last - first) * 0.05 or 1.0
    limits = max(first - room, _number(_FIRST)), min(last + room, _number(_LAST))
    axis.axes.set(**{"xlim" if axis is axis.axes.xaxis else "ylim": limits})
    days = last - first
    if days > 3 * 365:
        years = max(ends).year - min(ends).year + 1
        step = next(step for step in _YEARS if years / step <= most)
        ticks = range(min(ends).year // step * step, max(ends).year + 1, step)
        axis.set_major_locator(FixedLocator([_number(datetime.datetime(max(y, 1), 1, 1)) for y in ticks]))
        axis.set_major_formatter(DateFormatter("%Y"))
        return
    axis.set_major_locator(AutoDateLocator(minticks=2, maxticks=most, interval_multiples=True))
    axis.set_major_formatter(DateFormatter("%Y-%m" if days > 100 else "%Y-%m-%d" if days > 4 else "%m-%d %H:%M"))


def _number(place: float | datetime.datetime) -> float:
    """A place on an axis, as the axis counts."""
    from matplotlib.dates import date2num

    return float(date2num(place)) if isinstance(place, datetime.datetime) else place


_YEARS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
_FIRST, _LAST = datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30)


def _lines(chart: Chart, format: str) -> Drawing:
    """Lines over time: a row a series, a column a statistic."""
    columns = chart.columns
    rows = [chart.panels[i : i + columns] for i in range(0, len(chart.panels), columns)]
    each = max(260.0, (560.0 if columns == 1 else 860.0 / columns))
    number_room = 62.0
    wide = 2 * _MARGIN + columns * (each + number_room) + (columns - 1) * _GAP
    heading, notes = _heading(chart, wide), _notes(chart, wide)
    band = 42.0 + _TIME_HEIGHT + _AXIS + 8
    top = _MARGIN + len(heading) * line_height(_SIZE) + 10
    height = top + len(rows) * band + 8 + len(notes) * line_height(_SIZE - 1) + _MARGIN
    sheet = Canvas(wide, height, format, _said(chart))
    sheet.lines(_MARGIN, _MARGIN, heading, _SIZE, color=Palette.QUIET)
    for panels in rows:
        for i, panel in enumerate(panels):
            x = _MARGIN + number_room + i * (each + number_room + _GAP)
            _line_panel(sheet, panel, x, top + 42.0, each)
        top += band
    sheet.lines(_MARGIN, top + 4, notes, _SIZE - 1, color=Palette.QUIET)
    return sheet.finish()


def _line_panel(sheet: Canvas, panel: Panel, x: float, y: float, wide: float) -> None:
    name = f"{panel.name}: {panel.series}" if panel.series else panel.name
    sheet.words(x, y - 20, fitted(name, _HEAD * BOLDER, wide), _HEAD, bold=True)
    if panel.described != panel.name:
        sheet.words(x, y - 6, fitted(panel.described, _SIZE - 1, wide), _SIZE - 1, color=Palette.QUIET)
    axes = sheet.axes(x, y, wide, _TIME_HEIGHT)
    marks = [mark for mark in panel.marks if mark.value is not None and mark.at is not None]
    for mark in marks:
        color = Palette.GREYED if mark.doubtful else Palette.NOISE
        if mark.low is not None and mark.high is not None:
            at = [_at(mark)] * 2
            axes.plot(at, [_number(mark.low), _number(mark.high)], color=color, linewidth=1.6, zorder=2)
    places, values = [_at(mark) for mark in marks], [_number(mark.value or 0.0) for mark in marks]
    axes.plot(places, values, color=Palette.NOISE, linewidth=0.9, alpha=0.6, zorder=1)
    for doubtful in (True, False):
        color = Palette.GREYED if doubtful else Palette.NOISE
        some = [i for i, mark in enumerate(marks) if mark.doubtful is doubtful]
        axes.plot(
            [places[i] for i in some],
            [values[i] for i in some],
            "o",
            markersize=4,
            color=color,
            markerfacecolor=Palette.PAPER if doubtful else color,
            zorder=3,
        )
    ends = [end for mark in marks for end in (mark.value, mark.low, mark.high) if end is not None]
    if not marks:
        axes.set(xticks=[], yticks=[])
        return
    _scale(sheet, axes.xaxis, [mark.at for mark in marks], wide, temporal=True)
    if panel.temporal:
        _scale(sheet, axes.yaxis, ends, 400.0, temporal=True)
    else:
        _scale(sheet, axes.yaxis, ends, 400.0, temporal=False)
        axes.axhline(0, color=Palette.QUIET, linewidth=0.8, zorder=0)


def _at(mark: Mark) -> float:
    return _number(mark.at or _FIRST)


def _said(chart: Chart) -> str:
    """The chart in words: what a screen reader reads out."""
    parts = [f"Answer to: {chart.title}."]
    for panel in chart.panels:
        marks = "; ".join(f"{mark.group}: {mark.shown}" for mark in panel.marks[:50])
        parts.append(f"{panel.name}{f' of {panel.series}' if panel.series else ''}: {marks}.")
    return " ".join(parts)
