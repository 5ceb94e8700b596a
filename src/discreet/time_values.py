"""Dates and times as whole numbers, and back: what averages and quantiles of them are computed with.

A date is its number of days since 1970-01-01, a time its number of microseconds since that midnight (in UTC, if it has
a zone); earlier ones are negative. All of the years 1 to 9999 fit into 64 bits.
"""

from __future__ import annotations

import datetime
import math
from fractions import Fraction

from discreet.exact import decimal_text
from discreet.schema import Kind

__all__ = ["DAY", "SECOND", "number_of", "quantity_text", "seconds_of", "time_of"]

SECOND = 10**6
DAY = 86_400 * SECOND
"""In microseconds."""

_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_FIRST, _LAST = datetime.datetime.min, datetime.datetime.max


def number_of(value: datetime.date) -> int:
    """Days of a date, microseconds of a date with a time of day (without a zone: as it stands)."""
    if not isinstance(value, datetime.datetime):
        return value.toordinal() - _EPOCH.toordinal()
    if value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return (value - _EPOCH) // _MICROSECOND


def seconds_of(value: datetime.timedelta) -> Fraction:
    """The exact length of a duration, in seconds."""
    return Fraction(value // _MICROSECOND, SECOND)


def time_of(number: Fraction | float, kind: Kind, *, up: bool | None = None) -> datetime.date:
    """The date or time nearest to a number; with `up` the next one above it, or below it.

    What lies beyond the years 1 to 9999 becomes their end.
    """
    whole = math.floor(number + Fraction(1, 2)) if up is None else math.ceil(number) if up else math.floor(number)
    if kind is Kind.DATE:
        ordinal = whole + _EPOCH.toordinal()
        return datetime.date.fromordinal(min(max(ordinal, _FIRST.toordinal()), _LAST.toordinal()))
    within = min(max(whole, number_of(_FIRST)), number_of(_LAST))
    moment = _EPOCH + within * _MICROSECOND
    return moment.replace(tzinfo=datetime.UTC) if kind is Kind.TIMESTAMPTZ else moment


def quantity_text(number: Fraction, kind: Kind) -> str:
    """A number for people: as the date or time it stands for, if the kind is one."""
    return time_of(number, kind).isoformat() if kind.is_temporal else decimal_text(number)
