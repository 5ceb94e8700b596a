"""The two output histograms of an audit as a picture."""

from __future__ import annotations

from discreet.audit.report import Report, power
from discreet.errors import UsageError
from discreet.pictures import Drawing
from discreet.pictures.canvas import Canvas, Palette, style
from discreet.pictures.fonts import wrapped

__all__ = ["draw_histograms"]

_WIDE, _HIGH = 620.0, 330.0
_MARGIN = 22.0


def draw_histograms(report: Report, format: str) -> Drawing:
    """What many runs give on the table with the unit and on the one without it.

    Args:
        report: of an audit that made runs.
        format: "svg" or "png".

    Raises:
        UsageError: there is nothing to draw.
    """
    seen = report.seen
    if seen is None or not seen.histogram[0]:
        raise UsageError("--plot", "has nothing to draw: no unit changed a total")
    edges, whole, without = seen.histogram
    lines = [
        *wrapped(f"{seen.drawn}: {seen.runs:,} runs with {report.worst}, as many without it", 10, _WIDE - 2 * _MARGIN),
        f"claimed: epsilon {seen.claimed:g}; certified: at least {seen.shown.bound:.3g}",
        power(seen),
    ]
    with style():
        sheet = Canvas(_WIDE, _HIGH, format, " ".join(lines))
        below = sheet.lines(_MARGIN, 8, lines, 10)
        sheet.words(_MARGIN, below + 20, "with the unit", 10, color=Palette.NOISE, bold=True)
        sheet.words(_MARGIN + 110, below + 20, "without it", 10, color=Palette.MARK, bold=True)
        axes = sheet.axes(_MARGIN + 34, below + 28, _WIDE - 2 * _MARGIN - 40, _HIGH - below - 60)
        for counts, color in ((whole, Palette.NOISE), (without, Palette.MARK)):
            axes.stairs(counts, list(edges), color=color, linewidth=1.6)
        axes.axvline(0, color=Palette.FAINT, linewidth=1, zorder=0)
        for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
            label.set_fontproperties(sheet.lettering("", 9)[1])
        return sheet.finish()
