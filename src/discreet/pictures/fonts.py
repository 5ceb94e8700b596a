"""Letters: how wide they are, and which installed font has them.

Pictures are laid out by the widths of DejaVu Sans, which comes with matplotlib, so that they are the same on every
machine. In an SVG all text stays text: whoever looks at it has a font for it, or the browser finds one. A PNG
needs the font here. Signs that no installed font has are written as their code points, never as empty boxes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

__all__ = ["BOLDER", "SVG_FAMILIES", "families", "fitted", "shown", "width", "wrapped"]

BASE = "DejaVu Sans"
SVG_FAMILIES = (BASE, "Verdana", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", "sans-serif")
"""Verdana is about as wide as DejaVu Sans; browsers go on to any other font they have, sign by sign."""

BOLDER = 1.12
"""How much wider bold letters are, at the most."""

_LIKELY = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "SimHei",
    "Arial Unicode MS",
)
"""Tried first for signs that DejaVu Sans lacks; then every installed font, by name."""


@lru_cache
def _font(family: str) -> Any:
    """An installed font by its family's name, or None."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    try:
        return get_font(findfont(FontProperties(family=[family]), fallback_to_default=False))
    except (ValueError, RuntimeError):  # not installed; not a font that can be loaded
        return None


@lru_cache
def _has(family: str) -> frozenset[int]:
    font = _font(family)
    return frozenset() if font is None else frozenset(font.get_charmap())


@lru_cache(maxsize=4096)
def _advance(sign: str) -> float:
    """The width of one sign, as a part of the size."""
    if ord(sign) in _has(BASE):
        font = _font(BASE)
        font.set_size(100.0, 72.0)
        return float(font.load_char(ord(sign)).linearHoriAdvance) / 65536.0 / 100.0
    if unicodedata.combining(sign):
        return 0.0
    return 1.0 if unicodedata.east_asian_width(sign) in "WF" else 0.65


def width(text: str, size: float) -> float:
    """How wide a text is, in points, at a size in points."""
    return sum(map(_advance, text)) * size


def wrapped(text: str, size: float, limit: float, most: int = 0) -> list[str]:
    """Lines no wider than `limit` points, broken between words, or within one that is too long.

    Args:
        most: of lines; what is left over is cut with an ellipsis. 0 for any number.
    """
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if width(longer, size) <= limit:
            line = longer
            continue
        if line:
            lines.append(line)
        line = word
        while width(line, size) > limit and len(line) > 1:
            cut = _fitting(line, size, limit)
            lines.append(line[:cut])
            line = line[cut:]
    lines.append(line)
    if most and len(lines) > most:
        lines = [*lines[: most - 1], fitted(" ".join(lines[most - 1 :]), size, limit)]
    return lines


def fitted(text: str, size: float, limit: float) -> str:
    """The text, cut with an ellipsis where it is wider than `limit` points."""
    if width(text, size) <= limit:
        return text
    return text[: _fitting(text, size, limit - width("…", size))].rstrip() + "…"


def _fitting(text: str, size: float, limit: float) -> int:
    """How many signs fit; at least one."""
    used = 0.0
    for i, sign in enumerate(text):
        used += _advance(sign) * size
        if used > limit:
            return max(1, i)
    return len(text)


def families(text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """The installed fonts that a text needs, and its signs that none of them has."""
    missing = {sign for sign in text if ord(sign) not in _has(BASE) and not _needs_no_glyph(sign)}
    found = [BASE]
    for family in _candidates() if missing else ():
        covered = {sign for sign in missing if ord(sign) in _has(family)}
        if covered:
            found.append(family)
            missing -= covered
        if not missing:
            break
    return tuple(found), frozenset(missing)


def _needs_no_glyph(sign: str) -> bool:
    return unicodedata.category(sign) in ("Cf", "Mn", "Zs")


def _candidates() -> Iterable[str]:
    from matplotlib.font_manager import fontManager

    # The Last Resort font has a sign for everything, which shows nothing but that none was found.
    others = sorted({entry.name for entry in fontManager.ttflist} - {*_LIKELY, BASE, "Last Resort"})
    return (*_LIKELY, *(name for name in others if "Last Resort" not in name))


def shown(text: str, missing: frozenset[str]) -> str:
    """A text with the signs that no font has written as their code points."""
    return "".join(f"\\u{ord(sign):04x}" if sign in missing else sign for sign in text)
