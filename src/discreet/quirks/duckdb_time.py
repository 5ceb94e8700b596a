"""Operators of dates and times in DuckDB's words. The session's zone is UTC (`engines.duckdb_connection`).

Every date and time lies in the years 1 to 9999; what an operator would move out of them is NULL. DuckDB itself
goes far beyond, so that nothing in between overflows.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

from sqlglot import exp

from discreet.quirks.shifts import shift_limit
from discreet.row_operands import Operands, Rule
from discreet.schema import DATE, Kind
from discreet.statement_parts import BIGINT, call, case, cast, decimal, engine_type, number, text, try_cast
from discreet.time_parts import SHIFTS

__all__ = ["TIME_FAMILIES", "TIME_RULES"]

_FIRST, _LAST = datetime.datetime.min, datetime.datetime.max
_DAY = datetime.timedelta(days=1)


def _moment(value: datetime.datetime, kind: Kind) -> exp.Expr:
    """A date or time as a constant of that kind."""
    written = value.date().isoformat() if kind is Kind.DATE else value.isoformat(sep=" ")
    zone = "+00" if kind is Kind.TIMESTAMPTZ else ""
    return cast(text(written + zone), engine_type(kind.name))


def _within(x: exp.Expr, kind: Kind, value: exp.Expr | None = None, *, margin: int = 0) -> exp.Expr:
    """`value` (else x itself) where x lies in the years 1 to 9999, `margin` days from their ends; NULL elsewhere."""
    low, high = _moment(_FIRST + margin * _DAY, kind), _moment(_LAST - margin * _DAY, kind)
    inside = exp.Between(this=x, low=low, high=high)
    return case([(inside, value if value is not None else x.copy())])


# --- parts ----------------------------------------------------------------------------------------------------


def _extracted(part: str, x: exp.Expr) -> exp.Expr:
    return exp.Extract(this=exp.Var(this=part), expression=x)


_ENGINE_PARTS = {"isoweek": "WEEK", "dayofyear": "DOY", "dow": "DOW"}


def _extract(x: Operands, part: str) -> exp.Expr:
    if part == "dayofweek":  # Sunday is 1; DuckDB's DOW has it 0
        value: exp.Expr = exp.Add(this=_extracted("DOW", x(0)), expression=number(1))
    elif part == "week":
        # Weeks begin on Sunday, and what lies before the year's first Sunday is week 0: (yday + 6 - dow) / 7
        # with yday from 1 and dow 0 on Sunday.
        sum_ = exp.Add(this=_extracted("DOY", x(0)), expression=number(6))
        value = exp.IntDiv(this=exp.paren(exp.Sub(this=sum_, expression=_extracted("DOW", x(0)))), expression=number(7))
    else:
        value = _extracted(_ENGINE_PARTS.get(part, part.upper()), x(0))
    return cast(value, BIGINT)


def _trunc(x: Operands, part: str) -> exp.Expr:
    type_ = x.operation.type
    if part != "week":
        name = {"isoweek": "week"}.get(part, part)
        return cast(call("date_trunc", text(name), x(0)), engine_type(type_))
    # DuckDB's weeks begin on Monday: from Sunday on, a day later is in the Monday week that a day earlier began.
    day = exp.Interval(this=exp.Literal.string("1"), unit=exp.Var(this="DAY"))
    later = exp.paren(exp.Add(this=x(0), expression=day))
    week = exp.Sub(this=call("date_trunc", text("week"), later), expression=day.copy())
    # The first week that begins in the year 1 begins on the 7th of January.
    known = exp.GTE(this=x(0), expression=_moment(_FIRST + 6 * _DAY, type_.kind))
    return case([(known, cast(exp.paren(week), engine_type(type_)))])


# --- differences ------------------------------------------------------------------------------------------------


def _minus(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.paren(exp.Sub(this=left, expression=right))


def _microseconds(x: exp.Expr) -> exp.Expr:
    return call("epoch_us", x)


def _week_number(x: exp.Expr, shift: int) -> exp.Expr:
    """Weeks since Monday, the first of January of the year 1 (`shift` 0), or since the Sunday before (1)."""
    days = exp.Sub(this=x, expression=_moment(_FIRST, Kind.DATE))
    shifted = exp.paren(exp.Add(this=days, expression=number(shift)))
    return exp.paren(exp.IntDiv(this=shifted, expression=number(7)))


def _diff(x: Operands, part: str) -> exp.Expr:
    if x.operation.operands[0].type.kind is not Kind.DATE:
        elapsed = _minus(_microseconds(x(0)), _microseconds(x(1)))
        value: exp.Expr = exp.IntDiv(this=elapsed, expression=number(SHIFTS[part.upper()]))
    elif part == "day":
        value = _minus(x(0), x(1))
    elif part in ("week", "isoweek"):
        shift = 1 if part == "week" else 0
        value = _minus(_week_number(x(0), shift), _week_number(x(1), shift))
    elif part == "isoyear":
        value = _minus(_extracted("ISOYEAR", x(0)), _extracted("ISOYEAR", x(1)))
    else:
        value = call("date_diff", text(part), x(1), x(0))
    return cast(value, BIGINT)


def _days_between(x: Operands) -> exp.Expr:
    return cast(_minus(x(0), x(1)), BIGINT)


def _seconds_between(x: Operands) -> exp.Expr:
    """Microseconds times 10^-6: at most 18 digits, and 12 before the point."""
    elapsed = cast(_minus(_microseconds(x(0)), _microseconds(x(1))), decimal(20, 0))
    seconds = exp.Mul(this=elapsed, expression=cast(text("0.000001"), decimal(6, 6)))
    return try_cast(exp.paren(seconds), engine_type(x.operation.type))


# --- shifts -------------------------------------------------------------------------------------------------------


def _shift(x: Operands, unit: str) -> exp.Expr:
    """x plus a literal interval, where that stays in the years 1 to 9999: decided by x, before it is moved."""
    type_, count = x.operation.type, x.whole(1)
    if unit == "month":
        moved: exp.Expr = exp.Add(this=x(0), expression=_interval(count, "MONTH"))
    elif type_ == DATE:
        moved = exp.Add(this=x(0), expression=number(count))
    else:
        moved = exp.Add(this=x(0), expression=_interval(count, "MICROSECOND"))
    sign, limit = shift_limit(type_, unit, count)
    known = {">=": exp.GTE, "<=": exp.LTE, "<": exp.LT}[sign](this=x(0), expression=_moment(limit, type_.kind))
    return case([(known, cast(exp.paren(moved), engine_type(type_)))])


def _interval(count: int, unit: str) -> exp.Expr:
    return exp.Interval(this=exp.Literal.string(str(count)), unit=exp.Var(this=unit))


def _last_day(x: Operands) -> exp.Expr:
    return cast(call("last_day", x(0)), engine_type(DATE))


# --- zones and epochs -----------------------------------------------------------------------------------------------


def _at_zone(x: Operands) -> exp.Expr:
    """A moment as the clocks of a zone show it, or back: two days from the ends of time, no zone leads out of it."""
    kind = x.operation.operands[0].type.kind
    zone = str(x.literal(1))
    if zone[0] in "+-":
        minutes = int(zone[1:3]) * 60 + int(zone[-2:])
        away = -1 if (zone[0] == "-") == (kind is Kind.TIMESTAMPTZ) else 1
        plain = cast(x(0), engine_type(x.operation.type))
        moved: exp.Expr = exp.paren(exp.Add(this=plain, expression=_interval(away * minutes, "MINUTE")))
    else:
        moved = call("timezone", text(zone), x(0))
    return _within(x(0), kind, moved, margin=2)


_UNITS = {"seconds": 10**6, "millis": 1_000, "micros": 1}
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def _unix(size: int) -> Rule:
    """Whole units of so many microseconds since 1970, rounded down: shifted to be positive first."""
    base = (_EPOCH - _FIRST) // _MICROSECOND

    def rule(x: Operands) -> exp.Expr:
        shifted = exp.paren(exp.Add(this=_microseconds(x(0)), expression=number(base)))
        whole = exp.paren(exp.IntDiv(this=shifted, expression=number(size)))
        return cast(exp.paren(exp.Sub(this=whole, expression=number(base // size))), BIGINT)

    return rule


def _from_unix(size: int) -> Rule:
    low, high = (_FIRST - _EPOCH) // _MICROSECOND // size, (_LAST - _EPOCH) // _MICROSECOND // size

    def rule(x: Operands) -> exp.Expr:
        micros = exp.Mul(this=cast(x(0), BIGINT), expression=number(size))
        moment = cast(call("make_timestamp", micros), engine_type("TIMESTAMPTZ"))
        return case([(exp.Between(this=x(0), low=number(low), high=number(high)), moment)])

    return rule


# --- from text and between the types of time ------------------------------------------------------------------------

_DATE_TEXT = r"(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{1,2}-[0-9]{1,2}"
_TIME_TEXT = r"[ T](?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
_ZONE_TEXT = r"(?: ?Z| UTC|[+-](?:0[0-9]|1[0-4])(?::?[0-5][0-9])?)?"
_FROM_TEXT = {
    Kind.DATE: rf"^\s*({_DATE_TEXT})(?:[ T][0-9]{{1,2}}:[0-9]{{2}}[^\n]*)?\s*$",
    Kind.TIMESTAMP: rf"^\s*({_DATE_TEXT}(?:{_TIME_TEXT})?)\s*$",
    Kind.TIMESTAMPTZ: rf"^\s*({_DATE_TEXT}(?:{_TIME_TEXT}{_ZONE_TEXT})?)\s*$",
}


def _to_time(x: Operands) -> exp.Expr:
    source, target = x.operation.operands[0].type.kind, x.operation.type
    if source is not Kind.TEXT:
        return try_cast(x(0), engine_type(target))
    # What does not match gives '', which is no date; the pattern lets no year before 1 through.
    found = call("regexp_extract", x(0), text(_FROM_TEXT[target.kind]), number(1))
    value = try_cast(found, engine_type(target))
    return _within(value, target.kind) if target.kind is Kind.TIMESTAMPTZ else value


TIME_RULES: dict[str, Rule] = {
    "days_between": _days_between,
    "seconds_between": _seconds_between,
    "last_day": _last_day,
    "at_zone": _at_zone,
    "from_zone": _at_zone,
    **{f"unix_{unit}": _unix(size) for unit, size in _UNITS.items()},
    **{f"from_unix_{unit}": _from_unix(size) for unit, size in _UNITS.items()},
    "to_date": _to_time,
    "to_timestamp": _to_time,
    "to_timestamptz": _to_time,
}

TIME_FAMILIES: dict[str, Callable[[Operands, str], exp.Expr]] = {
    "extract": _extract,
    "trunc": _trunc,
    "diff": _diff,
    "shift": _shift,
}
"""Operators whose name is one of these, an underscore, and a part."""
