"""How numbers are written for people: grouped, rounded to what matters, never in a form that only programs read."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.exact import decimal_text

__all__ = ["number_text", "share_text"]

_LARGE = 1e15
_SMALL = 1e-4


def number_text(x: float, digits: int = 4) -> str:
    """A number with about `digits` significant digits: "2,500", "0.308", "-1.5". Whole numbers keep all of theirs; what
    is larger than 10^15 or smaller than 10^-4 is written as 1.234e+20."""
    if isinstance(x, int) and abs(x) < _LARGE:
        return f"{x:,}"
    x = float(x)
    if not math.isfinite(x):
        return str(x)
    if x == 0:
        return "0"
    if abs(x) >= _LARGE or abs(x) < _SMALL:
        return f"{x:.{digits}g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(x))))
    text = f"{x:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def share_text(share: Fraction) -> str:
    """A part of a whole: "all", "1/3", or "12.5 %" where the fraction is no plain one."""
    if share == 1:
        return "all"
    if share.denominator <= 12:
        return str(share)
    return f"{decimal_text(share * 100) if (share * 1000).denominator == 1 else f'{float(share * 100):.3g}'} %"
