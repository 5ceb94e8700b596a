"""Half-width against epsilon, with the chosen one marked; of counts also the relative error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.exact import decimal_text
from discreet.numerals import number_text
from discreet.outlook import Curve, Line, Outlook
from discreet.pictures.canvas import Canvas, Drawing, Palette, line_height
from discreet.pictures.fonts import BOLDER, fitted, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["outlook_figure"]

_WIDTH = 880.0
_MARGIN, _SIZE, _HEAD = 18.0, 10.0, 11.0
_LEFT, _PANEL, _HIGH = 74.0, 270.0, 170.0
_LABEL = 92.0  # to the right of a panel, for its lines' names
_BAND = _HIGH + 92.0
_DASHES = ("-", "--", "-.", ":")


def outlook_figure(picture: Outlook, format: str) -> Drawing:
    """Draw an outlook: a row a statistic."""
    heading = wrapped(picture.query, _SIZE, _WIDTH - 2 * _MARGIN, most=5)
    top = _MARGIN + len(heading) * line_height(_SIZE) + 14
    level = f"{decimal_text(picture.confidence * 100)} %"
    notes = wrapped(
        f"orange: epsilon {decimal_text(picture.chosen)}, the chosen one; half-widths at {level} cover the noise, not "
        "what limits and bounds clip; no data was read for this",
        _SIZE - 1,
        _WIDTH - 2 * _MARGIN,
    )
    empty = [] if picture.curves else ["There is nothing to draw: everything is computed from other statistics."]
    height = top + len(picture.curves) * _BAND + (len(notes) + 2 * len(empty)) * line_height(_SIZE) + _MARGIN
    sheet = Canvas(_WIDTH, height, format, _said(picture, level))
    sheet.lines(_MARGIN, _MARGIN, heading, _SIZE, color=Palette.QUIET)
    for curve in picture.curves:
        _row(sheet, curve, picture, level, top)
        top += _BAND
    top = sheet.lines(_MARGIN, top, empty, _SIZE)
    sheet.lines(_MARGIN, top, notes, _SIZE - 1, color=Palette.QUIET)
    return sheet.finish()


def _row(sheet: Canvas, curve: Curve, picture: Outlook, level: str, y: float) -> None:
    measure = f", {curve.measure}" if curve.measure and curve.measure != "of the rows" else ""
    name = f"{curve.name}: {curve.described}" if curve.described != curve.name else curve.name
    sheet.words(_MARGIN, y + 14, fitted(name, _HEAD * BOLDER, _WIDTH - 2 * _MARGIN), _HEAD, bold=True)
    parts = curve.measure == "of the rows"
    head = f"{level} half-width{measure}" if not parts else f"{level} half-width, as a part of the rows"
    x = _MARGIN + _LEFT
    sheet.words(x, y + 32, head, _SIZE - 1, color=Palette.QUIET)
    _panel(sheet, curve.widths, picture, x, y + 42, percent=parts)
    if curve.relative:
        x += _PANEL + _LABEL + _LEFT - 10
        sheet.words(x, y + 32, "the same, relative to the count", _SIZE - 1, color=Palette.QUIET)
        axes = _panel(sheet, curve.relative, picture, x, y + 42, percent=True)
        axes.axhline(1.0, color=Palette.FAINT, linewidth=1, zorder=0)


def _panel(sheet: Canvas, lines: Sequence[Line], picture: Outlook, x: float, y: float, *, percent: bool) -> Axes:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes = sheet.axes(x, y, _PANEL, _HIGH)
    epsilons = [float(epsilon) for epsilon in picture.epsilons]
    axes.set_xscale("log")
    values = [value for line in lines for value in line.values if value is not None]
    positive = [value for value in values if value > 0]
    if positive:
        axes.set_yscale("log")
        axes.set_ylim(min(positive) / 1.5, max(positive) * 1.5)
    axes.set_xlim(epsilons[0], epsilons[-1])
    axes.axvline(float(picture.chosen), color=Palette.MARK, linewidth=1, zorder=1)
    for i, line in enumerate(lines):
        points = [(e, v) for e, v in zip(epsilons, line.values, strict=True) if v is not None and v > 0]
        axes.plot(*zip(*points, strict=True) if points else ([], []), _DASHES[i % 4], color=Palette.NOISE, zorder=2)
        if line.chosen:
            axes.plot([float(picture.chosen)], [line.chosen], "o", markersize=6, color=Palette.MARK, zorder=3)
    axes.xaxis.set_major_locator(LogLocator(base=10, numticks=5))
    axes.yaxis.set_major_locator(LogLocator(base=10, numticks=6))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value, 3)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _text(value, percent=percent)))
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_fontproperties(sheet.lettering("", _SIZE - 1)[1])
    sheet.words(x + _PANEL / 2, y + _HIGH + 30, "epsilon", _SIZE - 1, color=Palette.QUIET, align="center")
    _names(sheet, axes, lines, x, y, percent=percent)
    return axes


def _names(sheet: Canvas, axes: Axes, lines: Sequence[Line], x: float, y: float, *, percent: bool) -> None:
    """Beside the panel, near the end of each line: what it is, and its value at the chosen epsilon."""
    ends = []
    for line in lines:
        last = next((value for value in reversed(line.values) if value is not None and value > 0), None)
        place = (
            0.0 if last is None else float(axes.transAxes.inverted().transform(axes.transData.transform((1, last)))[1])
        )
        ends.append(y + _HIGH * (1 - min(max(place, 0.0), 1.0)))
    order = sorted(range(len(lines)), key=lambda i: ends[i])
    lowest = y + 6.0
    for rank, i in enumerate(order):
        after = len(order) - rank - 1
        place = min(max(ends[i], lowest), y + _HIGH - after * 25.0)
        lowest = place + 25.0
        line = lines[i]
        color = Palette.INK if line.label else Palette.MARK
        value = "" if line.chosen is None else f"± {_text(line.chosen, percent=percent)}"
        sheet.words(x + _PANEL + 6, place - 2, line.label or value, _SIZE - 1, color=color)
        if line.label:
            sheet.words(x + _PANEL + 6, place + 9, value, _SIZE - 1, color=Palette.MARK)


def _text(value: float, *, percent: bool) -> str:
    return f"{number_text(100 * value, 3)} %" if percent else number_text(value, 3)


def _said(picture: Outlook, level: str) -> str:
    parts = [f"Half-width against epsilon of {picture.query}."]
    for curve in picture.curves:
        widths = "; ".join(
            f"{line.label + ': ' if line.label else ''}{number_text(line.chosen or 0.0)}" for line in curve.widths
        )
        parts.append(f"{curve.name}: {level} half-width at epsilon {decimal_text(picture.chosen)}: {widths}.")
    return " ".join(parts)
