"""Pictures as SVG and PNG. matplotlib, the extra `discreet[plot]`, is imported when something is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from discreet.errors import UsageError
from discreet.pictures.canvas import Drawing

if TYPE_CHECKING:
    from discreet.chart import Chart
    from discreet.outlook import Outlook
    from discreet.sandwich import Sandwich

__all__ = ["FORMATS", "Drawing", "draw_chart", "draw_outlook", "draw_sandwich", "format_of", "require"]

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


def draw_outlook(picture: Outlook, format: str) -> Drawing:
    """How the half-widths of a query depend on its epsilon.

    Args:
        picture: what to draw, from `discreet.outlook.outlook`.
        format: one of `FORMATS`.

    Raises:
        UsageError: matplotlib is not installed, or another format.
    """
    _check(format)
    from discreet.pictures.canvas import style
    from discreet.pictures.outlooks import outlook_figure

    with style():
        return outlook_figure(picture, format)


def format_of(path: object, option: str = "picture", *, also: Sequence[str] = ()) -> str:
    """What a file is to hold, by its ending; `also` are endings that the error may name beside these.

    Raises:
        UsageError: another ending than .svg or .png.
    """
    ending = str(path).lower().rpartition(".")[2]
    if ending not in FORMATS:
        known = [*(f".{name}" for name in FORMATS), *also]
        raise UsageError(option, f"must name a file that ends in {', '.join(known[:-1])} or {known[-1]}", str(path))
    return ending


def _check(format: str) -> None:
    require()
    if format not in FORMATS:
        raise UsageError("format of a picture", f"must be one of {', '.join(FORMATS)}", format)
