"""Declared bounds, from what a person wrote: exact, finite, in order.

The ends are numbers, dates, times, or durations; a duration is a text such as ``365 days``.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from fractions import Fraction

from discreet.errors import UsageError
from discreet.exact import decimal_text, parse_rational
from discreet.query import Bounds
from discreet.schema import Kind
from discreet.time_values import DAY, SECOND, number_of, seconds_of, time_of

__all__ = ["bounds_text", "checked_bounds", "fitted", "parse_bounds", "parse_bounds_option"]

_DURATIONS = {
    "microsecond": Fraction(1, SECOND),
    "millisecond": Fraction(1, 1000),
    "second": Fraction(1),
    "minute": Fraction(60),
    "hour": Fraction(3600),
    "day": Fraction(DAY, SECOND),
    "week": Fraction(7 * DAY, SECOND),
}
_DURATION = re.compile(r"(?P<count>[+-]?[0-9.]+)\s*(?P<unit>[a-z]+?)s?", re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*", re.DOTALL)


def checked_bounds(lower: Fraction, upper: Fraction, thing: str) -> Bounds:
    """Bounds in order.

    Raises:
        UsageError: lower is above upper; both numbers are named.
    """
    return _checked(Bounds(lower, upper), thing)


def _checked(bounds: Bounds, thing: str) -> Bounds:
    if bounds.lower > bounds.upper:
        got = " and ".join(_end_text(end, bounds.written) for end in (bounds.lower, bounds.upper))
        raise UsageError(thing, "the lower bound must not be above the upper bound", got)
    return bounds


def parse_bounds(value: object, thing: str, example: str = "") -> Bounds:
    """A pair (lower, upper) of finite numbers, or of dates, times or durations.

    Raises:
        UsageError: not a pair, neither numbers nor dates, NaN, infinities, or out of order.
    """
    if isinstance(value, Bounds):
        return value
    if isinstance(value, str | bytes) or not isinstance(value, Sequence) or len(value) != 2:
        raise UsageError(thing, "must be a pair (lower, upper)", value, example)
    ends = []
    for end, which in zip(value, ("lower", "upper"), strict=True):
        found = (
            _parse_text(f"{thing}, {which}", end) if isinstance(end, str) else _parse_value(f"{thing}, {which}", end)
        )
        if isinstance(end, str) and found[1] == "number":
            raise UsageError(thing, "must be numbers, not text", end, example)
        ends.append(found)
    return _joined(ends[0], ends[1], thing)


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
    ends = [_parse_text(f"{thing}, {w}", end) for w, end in (("lower", lower), ("upper", upper))]
    return name.strip(), _joined(ends[0], ends[1], thing)


def bounds_text(bounds: Bounds) -> tuple[str, str]:
    """Both ends as a person would write them."""
    return _end_text(bounds.lower, bounds.written), _end_text(bounds.upper, bounds.written)


_End = tuple[Fraction, str]
"""A number and what it was written as: see `query.Bounds`."""


def _parse_value(thing: str, value: object) -> _End:
    if getattr(getattr(value, "dtype", None), "kind", "") in ("M", "m"):
        # NumPy's own dates and durations; those in nanoseconds would become plain integers.
        value = value.astype(f"{value.dtype.kind}8[us]").item()  # type: ignore[attr-defined]
    if isinstance(value, datetime.date | datetime.timedelta):
        if value != value:  # noqa: PLR0124 - pandas' NaT is a datetime
            raise UsageError(thing, "must not be missing", str(value))
        if isinstance(value, datetime.timedelta):
            return seconds_of(value), "duration"
        return _moment(value)
    return parse_rational(thing, value), "number"


def _moment(value: datetime.date) -> _End:
    if not isinstance(value, datetime.datetime):
        return Fraction(number_of(value)), "date"
    return Fraction(number_of(value)), "time" if value.tzinfo is None else "instant"


def _parse_text(thing: str, text: str) -> _End:
    text = text.strip()
    if _DATE.fullmatch(text):
        try:
            return _moment(
                datetime.date.fromisoformat(text) if len(text) == 10 else datetime.datetime.fromisoformat(text)
            )
        except ValueError:
            hint = "write it as 2024-12-31 or 2024-12-31T23:59:59Z"
            raise UsageError(thing, "is not a date or time", text, hint) from None
    duration = _DURATION.fullmatch(text)
    if duration and duration["unit"].lower() in _DURATIONS:
        return parse_rational(thing, duration["count"]) * _DURATIONS[duration["unit"].lower()], "duration"
    return parse_rational(thing, text), "number"


def _joined(lower: _End, upper: _End, thing: str) -> Bounds:
    """Both ends as one kind: a date beside a time is its midnight, a 0 beside a duration has no length."""
    kinds = {lower[1], upper[1]}
    if len(kinds) == 1:
        return _checked(Bounds(lower[0], upper[0], lower[1]), thing)
    if kinds == {"number", "duration"} and any(end == 0 for end, written in (lower, upper) if written == "number"):
        return _checked(Bounds(lower[0], upper[0], "duration"), thing)
    if kinds <= {"date", "time", "instant"}:
        ends = [end * DAY if written == "date" else end for end, written in (lower, upper)]
        return _checked(Bounds(ends[0], ends[1], "instant" if "instant" in kinds else "time"), thing)
    got = " and ".join(_end_text(*end) for end in (lower, upper))
    raise UsageError(thing, "must be two numbers, two dates or times, or two durations", got)


_KINDS = {"date": Kind.DATE, "time": Kind.TIMESTAMP, "instant": Kind.TIMESTAMPTZ}


def _end_text(end: Fraction, written: str) -> str:
    if written in _KINDS:
        return time_of(end, _KINDS[written]).isoformat()
    return decimal_text(end) + (" seconds" if written == "duration" else "")


def fitted(bounds: Bounds, kind: Kind, unit: str, thing: str) -> Bounds:
    """The bounds as numbers on the scale of the values.

    Args:
        bounds: as they were written.
        kind: of the values.
        unit: for numbers that are a span of time, "day" or "second"; else "".
        thing: for errors.

    Raises:
        UsageError: they are of another kind than the values.
    """
    ends, written = (bounds.lower, bounds.upper), bounds.written
    found: tuple[Fraction, Fraction] | None = None
    if kind is Kind.DATE:
        found = ends if written == "date" else _whole_days(bounds)
    elif kind.is_temporal and written == "date":
        found = ends[0] * DAY, ends[1] * DAY
    elif (kind, written) in ((Kind.TIMESTAMP, "time"), (Kind.TIMESTAMPTZ, "time"), (Kind.TIMESTAMPTZ, "instant")):
        found = ends
    elif not kind.is_temporal and written == "duration" and unit:
        found = ends[0] / _DURATIONS[unit], ends[1] / _DURATIONS[unit]
    elif not kind.is_temporal and written == "number":
        found = ends
    if found is None:
        raise _misfit(bounds, kind, unit, thing)
    return Bounds(found[0], found[1])


def _whole_days(bounds: Bounds) -> tuple[Fraction, Fraction] | None:
    """Midnights as dates."""
    days = bounds.lower / DAY, bounds.upper / DAY
    whole = bounds.written in ("time", "instant") and all(day.denominator == 1 for day in days)
    return days if whole else None


def _misfit(bounds: Bounds, kind: Kind, unit: str, thing: str) -> UsageError:
    if kind.is_temporal:
        example = "2020-01-01..2024-12-31"
        rule = f"must be dates, as the values are {kind}"
        if bounds.written == "instant":
            rule = "must have no time zone, as the values have none"
        elif kind is Kind.DATE and bounds.written == "time":
            rule = "must be dates without a time of day, as the values are"
        return UsageError(thing, rule, "..".join(bounds_text(bounds)), f"for example {example}")
    rule = "must be numbers, as the values are"
    hint = "for example 0..100"
    if bounds.written == "duration":
        hint = "durations are bounds of x - y, the time between two dates or times"
    return UsageError(thing, rule, "..".join(bounds_text(bounds)), hint)
