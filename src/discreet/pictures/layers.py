"""The noise sandwich as a drawing: bread, noise, bread, from left to right, and the ledger below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from discreet.exact import decimal_text
from discreet.laplace.distribution import Laplace
from discreet.numerals import number_text
from discreet.pictures.canvas import Canvas, Drawing, Palette, line_height
from discreet.pictures.fonts import BOLDER, fitted, wrapped
from discreet.privacy import PrivacyLoss
from discreet.sandwich import Layer, Noise, Sandwich, axis_reach

__all__ = ["sandwich_figure"]

WIDTH = 1000.0
_MARGIN, _GAP = 16.0, 22.0
_PAD = 9.0
_ROWS, _WEIGHT, _CLOSED, _CURVE = 142.0, 182.0, 120.0, 254.0
_ANSWER = WIDTH - 2 * _MARGIN - 4 * _GAP - _ROWS - _WEIGHT - _CLOSED - _CURVE
_SIZE, _HEAD = 10.0, 10.5
_CURVE_HEIGHT = 76.0


def sandwich_figure(picture: Sandwich, format: str) -> Drawing:
    """Draw a sandwich."""
    query = wrapped(picture.query, _SIZE, WIDTH - 2 * _MARGIN, most=6)
    top = _MARGIN + 22 + len(query) * line_height(_SIZE) + 18
    heights = [_height(layer) for layer in picture.layers]
    body = max(sum(heights) + 8.0 * (len(heights) - 1), _side_height(picture))
    notes = [line for note in picture.notes for line in wrapped(note, _SIZE - 1, WIDTH - 2 * _MARGIN)]
    ledger = top + 20 + body + 30
    height = ledger + 54 + len(notes) * line_height(_SIZE - 1) + _MARGIN
    sheet = Canvas(WIDTH, height, format, _title(picture))
    sheet.words(_MARGIN, _MARGIN + 14, "The noise sandwich", 15, bold=True)
    sheet.lines(_MARGIN, _MARGIN + 20, query, _SIZE, color=Palette.QUIET)
    lefts = _columns()
    heads = (
        "rows and persons",
        "one person weighs",
        "exact totals",
        f"+ Laplace noise ({picture.level} band)",
        "= the answer",
    )
    for left, head in zip(lefts, heads, strict=True):
        sheet.words(left + 2, top + 10, head, _HEAD, bold=True)
    y = top + 20
    _side(sheet, picture, lefts[0], y, body)
    _closed(sheet, picture, lefts[2], y, body)
    room = (body - sum(heights) - 8.0 * (len(heights) - 1)) / len(heights)
    for layer, reach, row in zip(picture.layers, axis_reach(picture.layers), heights, strict=True):
        _row(sheet, layer, reach, y, row + room)
        y += row + room + 8.0
    _ledger(sheet, picture, ledger)
    sheet.lines(_MARGIN, ledger + 48, notes, _SIZE - 1, color=Palette.QUIET)
    return sheet.finish()


def _title(picture: Sandwich) -> str:
    parts = [f"The noise sandwich of a query to {picture.source}: {picture.query}."]
    for layer in picture.layers:
        noise = "" if layer.drawn is None else f" Laplace noise of scale {number_text(layer.drawn.scale)}."
        parts.append(f"{layer.name}:{noise} Half-width: {', '.join(layer.width) or 'none'}.")
    return " ".join([*parts, f"It costs epsilon {decimal_text(picture.cost.epsilon)}."])


def _columns() -> tuple[float, float, float, float, float]:
    rows = _MARGIN
    weight = rows + _ROWS + _GAP
    closed = weight + _WEIGHT + _GAP
    curve = closed + _CLOSED + _GAP
    return rows, weight, closed, curve, curve + _CURVE + _GAP


_Paragraphs: TypeAlias = list[list[str]]
"""Wrapped texts, with a little room between them."""

_ROOM = 4.0


def _paragraphs(texts: Sequence[str], width: float, size: float = _SIZE) -> _Paragraphs:
    return [wrapped(text, size, width) for text in texts]


def _tall(paragraphs: _Paragraphs, size: float = _SIZE) -> float:
    return sum(len(lines) * line_height(size) + _ROOM for lines in paragraphs)


def _write(sheet: Canvas, x: float, y: float, paragraphs: _Paragraphs, size: float = _SIZE) -> float:
    for lines in paragraphs:
        y = sheet.lines(x, y, lines, size) + _ROOM
    return y


def _weight(layer: Layer) -> _Paragraphs:
    asked = [] if layer.asked == layer.name else [layer.asked]
    return _paragraphs([*asked, *layer.weighs, f"costs {layer.costs}"], _WEIGHT - 2 * _PAD)


def _answer(layer: Layer) -> _Paragraphs:
    return _paragraphs([layer.becomes], _ANSWER - 2 * _PAD)


def _widths(layer: Layer) -> _Paragraphs:
    return _paragraphs(layer.width, _ANSWER - 2 * _PAD, _HEAD * BOLDER)


def _noises(layer: Layer) -> _Paragraphs:
    """What stands below the curve, or in its place."""
    texts = []
    for noise in layer.noises:
        measure = f" {noise.measure}" if noise.measure else ""
        if noise is layer.drawn:
            parts = f"{number_text(noise.sensitivity)} / {number_text(float(noise.epsilon))} = "
            levels = f" in the widest of {noise.copies} levels" if noise.copies > 1 else ""
            scale = f"{parts if noise.copies == 1 else ''}{number_text(noise.scale)}{measure}"
            texts.append(f"b = sensitivity / epsilon = {scale}{levels}")
        else:
            from_ = f", that of {noise.same_as}" if noise.same_as else ""
            texts.append(f"on the {noise.measured}: b = {number_text(noise.scale)}{measure}{from_}")
    if not texts:
        texts.append("no noise: no row can change it")
    return _paragraphs(texts, _CURVE - 8)


def _height(layer: Layer) -> float:
    curve = _CURVE_HEIGHT + 20 if layer.drawn is not None else 0.0
    head = 2 * _PAD + line_height(_HEAD)
    return max(
        head + _tall(_weight(layer)),
        head + _tall(_answer(layer)) + _tall(_widths(layer), _HEAD) + _ROOM,
        curve + _tall(_noises(layer)) + 10,
    )


def _side_texts(picture: Sandwich) -> tuple[_Paragraphs, _Paragraphs]:
    inner = _ROWS - 2 * _PAD
    return _paragraphs(picture.rows, inner), _paragraphs(picture.limits, inner)


def _side_height(picture: Sandwich) -> float:
    return 2 * _PAD + line_height(_HEAD) + 22 + sum(map(_tall, _side_texts(picture)))


def _side(sheet: Canvas, picture: Sandwich, x: float, y: float, height: float) -> None:
    """The rows, and how much one person may weigh in all of them."""
    sheet.box(x, y, _ROWS, height, fill=Palette.BREAD, edge=Palette.CRUST)
    rows, limits = _side_texts(picture)
    sheet.words(x + _PAD, y + _PAD + 10, fitted(picture.source, _HEAD * BOLDER, _ROWS - 2 * _PAD), _HEAD, bold=True)
    below = _write(sheet, x + _PAD, y + _PAD + 12, rows)
    sheet.line((x + _PAD, x + _ROWS - _PAD), (below + 7, below + 7), color=Palette.CRUST, width=0.8)
    _write(sheet, x + _PAD, below + 10, limits)


def _closed(sheet: Canvas, picture: Sandwich, x: float, y: float, height: float) -> None:
    """The exact totals: a closed box that goes through all rows."""
    sheet.box(x, y, _CLOSED, height, fill=Palette.CLOSED, edge=Palette.INK, hatch="////")
    lines = [line for text in picture.totals for line in wrapped(text, _SIZE, _CLOSED - 34)]
    tall = len(lines) * line_height(_SIZE) + 46
    top = y + (height - tall) / 2
    sheet.box(x + 10, top, _CLOSED - 20, tall, fill=Palette.PAPER, edge=Palette.INK)
    middle = x + _CLOSED / 2
    angle = np.linspace(np.pi, 2 * np.pi, 30)
    sheet.line(list(middle + 6 * np.cos(angle)), list(top + 18 + 8 * np.sin(angle)), width=2.2)
    sheet.box(middle - 9, top + 17, 18, 14, fill=Palette.INK, round=2)
    for i, text in enumerate(lines):
        sheet.words(middle, top + 33 + (i + 1) * line_height(_SIZE) - 3, text, _SIZE, align="center")


def _row(sheet: Canvas, layer: Layer, reach: float, y: float, height: float) -> None:
    """One statistic: what one person weighs in it, its noise, its answer."""
    _, weight, closed, curve, answer = _columns()
    middle = y + height / 2
    sheet.box(weight, y, _WEIGHT, height, fill=Palette.BREAD, edge=Palette.CRUST)
    sheet.words(weight + _PAD, y + _PAD + 10, fitted(layer.name, _HEAD * BOLDER, _WEIGHT - 2 * _PAD), _HEAD, bold=True)
    _write(sheet, weight + _PAD, y + _PAD + 12, _weight(layer))
    for left in (weight, closed, curve, answer):
        sheet.arrow(left - _GAP + 1, middle, left - 1 + (8 if left == curve else 0), middle)
    sheet.box(answer, y, _ANSWER, height, fill=Palette.BREAD, edge=Palette.CRUST)
    sheet.words(answer + _PAD, y + _PAD + 10, fitted(layer.name, _HEAD * BOLDER, _ANSWER - 2 * _PAD), _HEAD, bold=True)
    below = _write(sheet, answer + _PAD, y + _PAD + 12, _answer(layer))
    for lines in _widths(layer):
        for line in lines:
            below += line_height(_HEAD)
            sheet.words(answer + _PAD, below, line, _HEAD, bold=True, color=Palette.NOISE)
        below += _ROOM
    noises = _noises(layer)
    if layer.drawn is None:
        _write(sheet, curve + 12, y + (height - _tall(noises)) / 2, noises)
        return
    top = y + (height - _CURVE_HEIGHT - 20 - _tall(noises)) / 2
    _curve(sheet, layer.drawn, reach, curve + 10, top, _CURVE - 20)
    _write(sheet, curve + 8, top + _CURVE_HEIGHT + 18, noises)


def _curve(sheet: Canvas, noise: Noise, reach: float, x: float, y: float, width: float) -> None:
    """The density, to scale on the axis below it, with the band shaded and its ends written."""
    law = Laplace(str(noise.scale))
    base = y + _CURVE_HEIGHT
    around = np.concatenate([np.linspace(-reach, reach, 201), np.linspace(-5, 5, 201) * noise.scale])
    at = np.unique(np.clip(around, -reach, reach))
    tall = np.asarray(law.pdf(at)) / float(law.pdf(0)) * (_CURVE_HEIGHT - 6)
    xs = x + width / 2 * (1 + at / reach)
    inside = np.abs(at) <= noise.band
    sheet.area(xs[inside], base, base - tall[inside], color=Palette.NOISE_PALE)
    sheet.line(list(xs), list(base - tall), color=Palette.NOISE, width=1.6)
    sheet.line((x, x + width), (base, base), color=Palette.QUIET, width=0.8)
    middle = x + width / 2
    ends = [middle - width / 2 * noise.band / reach, middle + width / 2 * noise.band / reach]
    for place in (*ends, middle):
        sheet.line((place, place), (base, base + 4), color=Palette.QUIET, width=0.8)
    low, high = f"−{number_text(noise.band, 3)}", number_text(noise.band, 3)
    if ends[1] - ends[0] > 120:
        for place, text in ((ends[0], low), (middle, "0"), (ends[1], high)):
            sheet.words(place, base + 14, text, _SIZE - 1, color=Palette.QUIET, align="center")
    else:
        sheet.words(middle, base + 14, f"{low} … {high}", _SIZE - 1, color=Palette.QUIET, align="center")


def _ledger(sheet: Canvas, picture: Sandwich, y: float) -> None:
    """What is left of the budget before and after, as one bar."""
    sheet.words(_MARGIN + 2, y, "the ledger", _HEAD, bold=True)
    x, width = _MARGIN, WIDTH - 2 * _MARGIN
    cost = loss_text(picture.cost)
    total = picture.total
    if picture.before is None or picture.after is None or total is None:
        sheet.words(x + 2, y + 20, f"no budget is set yet; this query costs {cost}", _SIZE)
        return
    said = f"left before: {loss_text(picture.before)}   →   this query (coloured): {cost}   →   "
    if picture.enough:
        said += f"left after: {loss_text(picture.after)}"
    else:
        said += "the budget is too small: it would be refused"
    spent = float(1 - picture.before.epsilon / total.epsilon) * width
    own = min(float(picture.cost.epsilon / total.epsilon) * width, width - spent) if picture.enough else 0.0
    sheet.box(x, y + 10, width, 16, fill=Palette.PAPER, edge=Palette.QUIET, round=0)
    sheet.box(x, y + 10, spent, 16, fill=Palette.CLOSED, round=0)
    sheet.box(x + spent, y + 10, max(own, 2.0 if picture.enough else 0.0), 16, fill=Palette.MARK, round=0)
    sheet.words(x + 2, y + 42, said, _SIZE)


def loss_text(loss: PrivacyLoss) -> str:
    """A loss in words; delta only where it is not 0."""
    text = f"epsilon {decimal_text(loss.epsilon)}"
    return f"{text}, delta {decimal_text(loss.delta, digits=30)}" if loss.delta else text
