"""The scales that the noise is built and tested for, and the one place that refuses the others."""

from __future__ import annotations

from fractions import Fraction

from discreet.errors import UsageError
from discreet.exact import parse_rational

__all__ = ["SCALE_MAX", "SCALE_MIN", "check_scale", "parse_scale"]

SCALE_MIN = Fraction(1, 10**12)
"""The smallest scale. At 10^-12 a draw other than 0 has a probability below 10^-434,000,000,000."""

SCALE_MAX = Fraction(2**128)
"""The largest scale."""

_RULE = "must be a number from 0.000000000001 (10^-12) to 2^128"


def parse_scale(value: object, *, name: str = "scale") -> Fraction:
    """A scale as an exact rational.

    Args:
        value: an int, a float (the decimal that was typed), a ``Decimal``, a ``Fraction`` or decimal text.
        name: the thing's name, for the error.

    Raises:
        UsageError: naming the range, for everything outside [10^-12, 2^128], NaN and booleans included.
    """
    scale = parse_rational(name, value, rule=_RULE)
    if not SCALE_MIN <= scale <= SCALE_MAX:
        raise UsageError(name, _RULE, str(value))
    return scale


def check_scale(scale: object) -> Fraction:
    """The last look at a scale before noise is drawn: never None, 0, NaN, a float or out of range.

    Raises:
        UsageError: if it is anything but a `Fraction` in [10^-12, 2^128].
    """
    if not isinstance(scale, Fraction) or not SCALE_MIN <= scale <= SCALE_MAX:
        raise UsageError("the scale of the noise", _RULE, str(scale))
    return scale
