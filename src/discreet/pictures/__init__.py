"""Pictures as SVG and PNG. matplotlib, the extra `discreet[plot]`, is imported when something is drawn."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from discreet.errors import UsageError
from discreet.pictures.canvas import Drawing

if TYPE_CHECKING:
    from discreet.chart import Chart
    from discreet.sandwich import Sandwich

__all__ = ["FORMATS", "Drawing", "draw_chart", "draw_sandwich", "require"]

FORMATS = ("svg", "png")


def require() -> None:
    """Refuse if pictures cannot be drawn here.

    Raises:
        UsageError: with what to install.
    """
    if find_spec("matplotlib") is None:
        raise UsageError("picture", "needs the package matplotlib", hint="pip install 'discreet[plot]'")


def draw_sandwich(picture: Sandwich, format: str) -> Drawing:
    """The noise sandwich of a query.

    Args:
        picture: what to draw, from `Dataset.explain`.
        format: one of `FORMATS`.

    Raises:
        UsageError: matplotlib is not installed, or another format.
    """
    _check(format)
    from discreet.pictures.canvas import style
    from discreet.pictures.layers import sandwich_figure

    with style():
        return sandwich_figure(picture, format)


def draw_chart(chart: Chart, format: str) -> Drawing:
    """The bars or lines of an answer, with their intervals.

    Args:
        chart: what to draw, from `discreet.chart.chart`.
        format: one of `FORMATS`.

    Raises:
        UsageError: matplotlib is not installed, or another format.
    """
    _check(format)
    from discreet.pictures.bars import chart_figure
    from discreet.pictures.canvas import style

    with style():
        return chart_figure(chart, format)


def _check(format: str) -> None:
    require()
    if format not in FORMATS:
        raise UsageError("format of a picture", f"must be one of {', '.join(FORMATS)}", format)
