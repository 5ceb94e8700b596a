"""Declared bounds, from what a person wrote: exact, finite, in order."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.errors import UsageError
from discreet.exact import decimal_text, parse_rational
from discreet.query import Bounds

__all__ = ["checked_bounds", "parse_bounds", "parse_bounds_option"]


def checked_bounds(lower: Fraction, upper: Fraction, thing: str) -> Bounds:
    """Bounds in order.

    Raises:
        UsageError: lower is above upper; both numbers are named.
    """
    if lower > upper:
        got = f"{decimal_text(lower)} and {decimal_text(upper)}"
        raise UsageError(thing, "the lower bound must not be above the upper bound", got)
    return Bounds(lower, upper)


def parse_bounds(value: object, thing: str, example: str = "") -> Bounds:
    """A pair (lower, upper) of finite numbers.

    Raises:
        UsageError: not a pair, not numbers, NaN, infinities, or out of order.
    """
    if isinstance(value, Bounds):
        return value
    if isinstance(value, str | bytes) or not isinstance(value, Sequence) or len(value) != 2:
        raise UsageError(thing, "must be a pair (lower, upper)", value, example)
    for end in value:
        if isinstance(end, str):
            raise UsageError(thing, "must be numbers, not text", end, example)
    lower, upper = (parse_rational(f"{thing}, {w}", end) for w, end in zip(("lower", "upper"), value, strict=True))
    return checked_bounds(lower, upper, thing)


def parse_bounds_option(text: str) -> tuple[str, Bounds]:
    """``NAME=LOWER..UPPER`` as on the command line.

    Raises:
        UsageError: as `parse_bounds`, or the form is not that.
    """
    name, sign, span = text.rpartition("=")
    lower, dots, upper = span.partition("..")
    if not sign or not name.strip() or not dots:
        raise UsageError("--bounds", "must be NAME=LOWER..UPPER", text, "for example --bounds files=0..50")
    thing = f"--bounds {name.strip()}"
    ends = [parse_rational(f"{thing}, {w}", end) for w, end in (("lower", lower), ("upper", upper))]
    return name.strip(), checked_bounds(ends[0], ends[1], thing)
