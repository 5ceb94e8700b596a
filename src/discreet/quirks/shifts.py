"""How far a date or time can be moved: the same for every engine, whatever its words for moving it."""

from __future__ import annotations

import datetime

from discreet.schema import Kind, Type

__all__ = ["shift_limit"]


def shift_limit(type_: Type, unit: str, count: int) -> tuple[str, datetime.datetime]:
    """Where x plus an interval stays in the years 1 to 9999: decided by x, before it is moved.

    Args:
        type_: of x.
        unit: "month"; else the interval is in days of a date, and in microseconds of a time.
        count: how many of them.

    Returns:
        ">=", "<=" or "<", and what x must be so against.
    """
    first, last = datetime.datetime.min, datetime.datetime.max
    if unit == "month":
        # Months move a day within its month, so the first day of a month decides.
        if count < 0:
            return ">=", _month(first, -count)
        return "<", _month(_month(datetime.datetime(9999, 12, 1), -count), 1)
    step = datetime.timedelta(days=count) if type_.kind is Kind.DATE else datetime.timedelta(microseconds=count)
    return (">=", first - step) if count < 0 else ("<=", last - step)


def _month(day: datetime.datetime, months: int) -> datetime.datetime:
    """The first day of the month so many months later."""
    index = day.year * 12 + day.month - 1 + months
    return datetime.datetime(index // 12, index % 12 + 1, 1)
