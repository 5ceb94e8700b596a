"""A sheet to draw on, in points from its upper left corner, and the one style of all pictures."""

from __future__ import annotations

import io
import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from discreet.errors import OutputError
from discreet.pictures import fonts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.font_manager import FontProperties

__all__ = ["Canvas", "Drawing", "Palette", "style"]

_PNG_DPI = 144


class Palette:
    """Colours that can be told apart without seeing red and green (Okabe and Ito 2008), and by their lightness."""

    INK = "#1b1b1b"
    QUIET = "#5a5a5a"
    FAINT = "#c9c9c9"
    PAPER = "#ffffff"
    NOISE = "#0072b2"
    NOISE_PALE = "#cfe5f2"
    BREAD = "#f7ead0"
    CRUST = "#b98b3e"
    CLOSED = "#4a4a4a"
    MARK = "#d55e00"
    GREYED = "#a6a6a6"
    STRIPE = "#f4f4f4"


@dataclass(frozen=True)
class Drawing:
    """A picture. Notebooks show it.

    Attributes:
        content: of its file.
        format: "svg" or "png".
        missing: the signs in its texts that no installed font has; none in an SVG, whose texts stay texts.
    """

    content: bytes
    format: str
    missing: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"<{self.format.upper()} picture, {len(self.content):,} bytes>"

    def _repr_svg_(self) -> str | None:
        return self.content.decode() if self.format == "svg" else None

    def _repr_png_(self) -> bytes | None:
        return self.content if self.format == "png" else None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file.

        Raises:
            OutputError: the file cannot be written.
        """
        try:
            Path(path).write_bytes(self.content)
        except OSError as error:
            raise OutputError("picture", f"cannot be written ({(error.strerror or '').lower()})", str(path)) from None


@contextmanager
def style() -> Iterator[None]:
    """matplotlib's own defaults with ours on top, whatever the user's settings say; as they were afterwards."""
    import matplotlib

    log = logging.getLogger("matplotlib.font_manager")
    level = log.level
    log.setLevel(logging.CRITICAL)  # families for other machines' viewers are not installed here, and need not be
    settings: dict[str, Any] = {
        name: value
        for name, value in matplotlib.rcParamsDefault.items()
        if not name.startswith(("backend", "timezone"))
    }
    settings |= {
        "svg.fonttype": "none",
        "svg.hashsalt": "discreet",
        "text.parse_math": False,
        "axes.unicode_minus": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": Palette.QUIET,
        "xtick.color": Palette.QUIET,
        "ytick.color": Palette.QUIET,
        "hatch.linewidth": 0.6,
    }
    try:
        with matplotlib.rc_context(cast("Any", settings)):
            yield
    finally:
        log.setLevel(level)


class Canvas:
    """One picture, `width` by `height` points; y grows downwards.

    Args:
        format: "svg" or "png".
        title: what the picture is, in words: for those who do not see it.
    """

    def __init__(self, width: float, height: float, format: str, title: str) -> None:
        from matplotlib.figure import Figure

        self.width, self.height, self.format = width, height, format
        self._title = title
        self._missing: set[str] = set()
        self._figure = Figure(figsize=(width / 72.0, height / 72.0), dpi=72, facecolor=Palette.PAPER)
        self._sheet = self._figure.add_axes((0, 0, 1, 1))
        self._sheet.set(xlim=(0, width), ylim=(height, 0))
        self._sheet.axis("off")

    def words(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 10.0,
        *,
        color: str = Palette.INK,
        bold: bool = False,
        align: str = "left",
        turned: float = 0.0,
    ) -> None:
        """One line of text; its baseline starts at (x, y)."""
        shown, properties = self.lettering(text, size, bold=bold)
        self._sheet.text(
            x,
            y,
            shown,
            fontproperties=properties,
            color=color,
            ha=align,
            va="baseline",
            rotation=turned,
            rotation_mode="anchor",
        )

    def lines(self, x: float, y: float, texts: Sequence[str], size: float = 10.0, *, color: str = Palette.INK) -> float:
        """Lines of text one below the other, the first baseline a line's height below y; gives the y below them."""
        for text in texts:
            y += line_height(size)
            self.words(x, y, text, size, color=color)
        return y

    def lettering(self, text: str, size: float, *, bold: bool = False) -> tuple[str, FontProperties]:
        """A text as it can be shown here, and the fonts for it."""
        from matplotlib.font_manager import FontProperties

        names: Sequence[str] = fonts.SVG_FAMILIES
        text = "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)
        if self.format != "svg":
            names, missing = fonts.families(text)
            self._missing |= missing
            text = fonts.shown(text, missing)
        return text, FontProperties(family=list(names), size=size, weight="bold" if bold else "normal")

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = "none",
        edge: str = "none",
        hatch: str | None = None,
        line: float = 1.0,
        round: float = 6.0,
    ) -> None:
        """A rectangle with round corners."""
        from matplotlib.patches import FancyBboxPatch

        self._sheet.add_patch(
            FancyBboxPatch(
                (x, y),
                width,
                height,
                boxstyle=f"round,pad=0,rounding_size={round}" if round else "square,pad=0",
                facecolor=fill,
                edgecolor=edge,
                hatch=hatch,
                linewidth=line,
            )
        )

    def line(self, xs: Sequence[float], ys: Sequence[float], *, color: str = Palette.INK, width: float = 1.0) -> None:
        """A line through points."""
        self._sheet.plot(xs, ys, color=color, linewidth=width, solid_capstyle="butt")

    def area(self, xs: Any, low: Any, high: Any, *, color: str) -> None:
        """What lies between two curves."""
        self._sheet.fill_between(xs, low, high, color=color, linewidth=0)

    def arrow(self, x: float, y: float, to_x: float, to_y: float, *, color: str = Palette.QUIET) -> None:
        """An arrow from one point to another."""
        from matplotlib.patches import FancyArrowPatch

        self._sheet.add_patch(
            FancyArrowPatch((x, y), (to_x, to_y), arrowstyle="-|>", mutation_scale=11, color=color, linewidth=1.3)
        )

    def axes(self, x: float, y: float, width: float, height: float) -> Axes:
        """A part of the sheet with axes of its own."""
        from matplotlib.axes import Axes

        place = (x / self.width, 1 - (y + height) / self.height, width / self.width, height / self.height)
        axes = self._figure.add_axes(place)
        if not isinstance(axes, Axes):
            raise AssertionError
        axes.patch.set_visible(False)  # what is written on the sheet shows through
        return axes

    def finish(self) -> Drawing:
        """The picture's bytes; the same for the same picture, whenever and wherever it is drawn."""
        target = io.BytesIO()
        if self.format == "svg":
            with warnings.catch_warnings():
                # Its letters are drawn by whoever looks at it, and their places do not depend on fonts here.
                warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
                self._figure.savefig(target, format="svg", metadata={"Date": None, "Creator": "discreet"})
            return Drawing(_named(target.getvalue(), self._title), "svg")
        self._figure.savefig(
            target, format="png", dpi=_PNG_DPI, metadata={"Software": "discreet", "Title": _latin(self._title)}
        )
        return Drawing(target.getvalue(), "png", frozenset(self._missing))


def line_height(size: float) -> float:
    """From one line's baseline to the next one's."""
    return 1.4 * size


_IN_THE_DARK = {
    Palette.INK: "#ececec",
    Palette.QUIET: "#b4b4b4",
    Palette.FAINT: "#5a5a5a",
    Palette.PAPER: "#17191c",
    Palette.NOISE: "#6cb8ea",
    Palette.NOISE_PALE: "#1d3f57",
    Palette.BREAD: "#3a3122",
    Palette.CRUST: "#b98b3e",
    Palette.CLOSED: "#7d7d7d",
    Palette.MARK: "#f08a3c",
    Palette.GREYED: "#8a8a8a",
    Palette.STRIPE: "#202327",
}
"""Whoever prefers dark pages sees these instead, where the viewer knows of such preferences."""


def _dark() -> str:
    rules = "".join(
        f'[style*="{what}: {light}"]{{{what}:{dark} !important}}'
        for light, dark in _IN_THE_DARK.items()
        for what in ("fill", "stroke")
    )
    text = f"text:not([style*='fill:']){{fill:{_IN_THE_DARK[Palette.INK]}}}"
    return f"@media (prefers-color-scheme: dark){{{text}{rules}}}"


def _latin(text: str) -> str:
    return text.encode("latin-1", "backslashreplace").decode("latin-1")


def _named(svg: bytes, title: str) -> bytes:
    """The SVG with its title where screen readers look for it."""
    from xml.sax.saxutils import escape, quoteattr

    text = svg.decode()
    start = text.index("<svg ")
    end = text.index(">", start)
    said = "".join(sign if sign.isprintable() else " " for sign in title)
    text = text.replace("</style>", _dark() + "</style>", 1)
    head = f'{text[start:end]} role="img" aria-label={quoteattr(said)}>\n <title>{escape(said)}</title>'
    return (text[:start] + head + text[end + 1 :]).encode()
