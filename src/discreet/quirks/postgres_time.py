"""Operators of dates and times in PostgreSQL's words. The session's zone is UTC, its DateStyle ISO.

Every date and time lies in the years 1 to 9999; what an operator would move out of them is NULL. PostgreSQL itself goes
far beyond on both sides, so that nothing in between overflows.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

from sqlglot import exp

from discreet.quirks.postgres_numbers import BLANK
from discreet.quirks.postgres_words import let, quoted, said, type_name
from discreet.quirks.shifts import shift_limit
from discreet.quirks.spelling import words
from discreet.row_operands import Operands, Rule
from discreet.schema import Kind, Type
from discreet.time_parts import SHIFTS

__all__ = ["TIME_FAMILIES", "TIME_RULES", "days", "microseconds"]

_FIRST, _LAST = datetime.datetime.min, datetime.datetime.max
_EPOCH = datetime.datetime(1970, 1, 1)
_DAY, _MICROSECOND = datetime.timedelta(days=1), datetime.timedelta(microseconds=1)
_DAY_MICROS = 86_400 * 10**6


def _moment(value: datetime.datetime, type_: Type) -> str:
    """A date or time as a constant of that type."""
    written = value.date().isoformat() if type_.kind is Kind.DATE else value.isoformat(sep=" ")
    return f"CAST('{written}{'+00' if type_.kind is Kind.TIMESTAMPTZ else ''}' AS {type_name(type_)})"


def _plain(value: str, type_: Type) -> str:
    """A date or time as a timestamp without a zone, as UTC shows it."""
    if type_.kind is Kind.TIMESTAMPTZ:
        return f"timezone('UTC', {value})"
    return f"CAST({value} AS timestamp without time zone)" if type_.kind is Kind.DATE else value


def _as(value: str, type_: Type) -> str:
    """What UTC shows, as a date or time of that type."""
    if type_.kind is Kind.TIMESTAMPTZ:
        return f"timezone('UTC', {value})"
    return f"CAST({value} AS date)" if type_.kind is Kind.DATE else value


def _interval(micros: int) -> str:
    """A fixed length of time: whole days, seconds and microseconds, each within 32 bits."""
    sign = "-" if micros < 0 else ""
    whole, rest = divmod(abs(micros), _DAY_MICROS)
    seconds, fraction = divmod(rest, 10**6)
    return f"interval '{sign}{whole} days {sign}{seconds} seconds {sign}{fraction} microseconds'"


def days(x: exp.Expr) -> exp.Expr:
    """Days since 1970-01-01."""
    return words(f"CAST({said(x)} - date '1970-01-01' AS bigint)")


def microseconds(x: exp.Expr) -> exp.Expr:
    """Microseconds since 1970-01-01: the epoch is an exact numeric since PostgreSQL 14."""
    return words(f"CAST(extract(epoch FROM {said(x)}) * 1000000 AS bigint)")


def _micros(value: str) -> str:
    return f"CAST(extract(epoch FROM {value}) * 1000000 AS bigint)"


# --- parts ----------------------------------------------------------------------------------------------------


def _part(part: str, value: str) -> str:
    """A whole part; seconds without their fraction."""
    return f"CAST(trunc(extract({part} FROM {value})) AS bigint)"


_NAMES = {"isoweek": "week", "dayofyear": "doy"}


def _extract(x: Operands, part: str) -> exp.Expr:
    value = _plain(said(x(0)), x.operation.operands[0].type)
    if part == "dayofweek":  # Sunday is 1; DOW has it 0
        return words(f"{_part('dow', value)} + 1")
    if part == "week":
        # Weeks begin on Sunday, and what lies before the year's first Sunday is week 0.
        return words(let([value], lambda v: f"({_part('doy', v)} + 6 - {_part('dow', v)}) / 7"))
    return words(_part(_NAMES.get(part, part), value))


def _trunc(x: Operands, part: str) -> exp.Expr:
    type_ = x.operation.type
    value = _plain(said(x(0)), type_)
    if part == "week":
        # Sunday's week: from Sunday on, a day later is in the Monday week that began a day before.
        first = _moment(_FIRST + 6 * _DAY, Type(Kind.TIMESTAMP))
        week = "date_trunc('week', {0} + interval '1 day') - interval '1 day'"
        return words(let([value], lambda v: f"CASE WHEN {v} >= {first} THEN {_as(week.format(v), type_)} END"))
    if part == "isoyear":
        # The fourth of January is in the first week of every year.
        fourth = f"make_date(CAST(extract(isoyear FROM {value}) AS integer), 1, 4)"
        value, part = f"CAST({fourth} AS timestamp without time zone)", "isoweek"
    return words(_as(f"date_trunc('{_NAMES.get(part, part)}', {value})", type_))


# --- differences ------------------------------------------------------------------------------------------------


def _week_number(value: str, shift: int) -> str:
    """Weeks since Monday, the first of January of the year 1 (`shift` 0), or since the Sunday before (1)."""
    return f"(({value} - date '0001-01-01' + {shift}) / 7)"


def _months(value: str, size: int) -> str:
    return f"div(extract(year FROM {value}) * 12 + extract(month FROM {value}) - 1, {size})"


_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def _diff(x: Operands, part: str) -> exp.Expr:
    left, right = said(x(0)), said(x(1))
    if x.operation.operands[0].type.kind is not Kind.DATE:
        return words(f"({_micros(left)} - {_micros(right)}) / {SHIFTS[part.upper()]}")
    if part == "day":
        value = f"{left} - {right}"
    elif part in ("week", "isoweek"):
        shift = 1 if part == "week" else 0
        value = f"{_week_number(left, shift)} - {_week_number(right, shift)}"
    elif part == "isoyear":
        value = f"extract(isoyear FROM {left}) - extract(isoyear FROM {right})"
    else:
        value = let([left, right], lambda a, b: f"{_months(a, _MONTHS[part])} - {_months(b, _MONTHS[part])}")
    return words(f"CAST({value} AS bigint)")


def _seconds_between(x: Operands) -> exp.Expr:
    elapsed = f"CAST({_micros(said(x(0)))} - {_micros(said(x(1)))} AS numeric)"
    return words(f"CAST({elapsed} * 0.000001 AS {type_name(x.operation.type)})")


# --- shifts -------------------------------------------------------------------------------------------------------


def _shift(x: Operands, unit: str) -> exp.Expr:
    """x plus a literal interval, where that stays in the years 1 to 9999: decided by x, before it is moved."""
    type_, count = x.operation.type, x.whole(1)
    if unit == "month":
        moved = f"interval '{count} months'"
    else:
        step = datetime.timedelta(days=count) if type_.kind is Kind.DATE else datetime.timedelta(microseconds=count)
        moved = _interval(step // _MICROSECOND)
    sign, limit = shift_limit(type_, unit, count)
    known = f"{sign} {_moment(limit, type_)}"
    return words(
        let(
            [said(x(0))],
            lambda v: f"CASE WHEN {v} {known} THEN {_as(f'{_plain(v, type_)} + {moved}', type_)} END",
        )
    )


def _last_day(x: Operands) -> exp.Expr:
    month = f"date_trunc('month', {_plain(said(x(0)), x.operation.operands[0].type)})"
    return words(f"CAST({month} + interval '1 month' - interval '1 day' AS date)")


# --- zones and epochs -----------------------------------------------------------------------------------------------


def _at_zone(x: Operands) -> exp.Expr:
    """A moment as the clocks of a zone show it, or back: two days from the ends of time, no zone leads out of it."""
    source = x.operation.operands[0].type
    zone = str(x.literal(1))
    low, high = _moment(_FIRST + 2 * _DAY, source), _moment(_LAST - 2 * _DAY, source)

    def moved(v: str) -> str:
        if zone[0] not in "+-":
            return f"timezone({quoted(zone)}, {v})"
        minutes = int(zone[1:3]) * 60 + int(zone[-2:])
        away = -1 if (zone[0] == "-") == (source.kind is Kind.TIMESTAMPTZ) else 1
        return _as(f"{_plain(v, source)} + {_interval(away * minutes * 60 * 10**6)}", x.operation.type)

    return words(let([said(x(0))], lambda v: f"CASE WHEN {v} BETWEEN {low} AND {high} THEN {moved(v)} END"))


_UNITS = {"seconds": 10**6, "millis": 1_000, "micros": 1}
_BASE = (_EPOCH - _FIRST) // _MICROSECOND


def _unix(size: int) -> Rule:
    """Whole units of so many microseconds since 1970, rounded down: shifted to be positive first."""
    return lambda x: words(f"({_micros(said(x(0)))} + {_BASE}) / {size} - {_BASE // size}")


def _from_unix(size: int) -> Rule:
    low, high = -(_BASE // size), (_LAST - _EPOCH) // _MICROSECOND // size

    def moment(micros: str) -> str:
        """Days and the rest apart: an interval times a number is computed in doubles."""
        day = f"date '0001-01-01' + CAST({micros} / {_DAY_MICROS} AS integer)"
        rest = f"({micros} % {_DAY_MICROS}) * interval '1 microsecond'"
        return f"timezone('UTC', CAST({day} AS timestamp without time zone) + {rest})"

    def rule(x: Operands) -> exp.Expr:
        def body(v: str) -> str:
            micros = let([f"CAST({v} AS bigint) * {size} + {_BASE}"], moment)
            return f"CASE WHEN {v} BETWEEN {low} AND {high} THEN {micros} END"

        return words(let([said(x(0))], body))

    return rule


# --- from text and between the types of time ------------------------------------------------------------------------

_DATE_TEXT = "([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
_TIME_TEXT = "[ T]([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\\.([0-9]{1,9}))?)?"
_ZONE_TEXT = "(?: ?Z| UTC|([+-])(0[0-9]|1[0-4])(?::?([0-5][0-9]))?)?"
_FROM_TEXT = {
    Kind.DATE: quoted(f"^{BLANK}{_DATE_TEXT}(?:[ T][0-9]{{1,2}}:[0-9]{{2}}[^\\n]*)?{BLANK}$"),
    Kind.TIMESTAMP: quoted(f"^{BLANK}{_DATE_TEXT}(?:{_TIME_TEXT})?{BLANK}$"),
    Kind.TIMESTAMPTZ: quoted(f"^{BLANK}{_DATE_TEXT}(?:{_TIME_TEXT}{_ZONE_TEXT})?{BLANK}$"),
}


def _day_of(y: str, m: str, d: str, then: Callable[[str], str]) -> str:
    """What is made of a date where there is such a day; NULL elsewhere: make_date() would raise."""
    leap = f"{y} % 4 = 0 AND ({y} % 100 <> 0 OR {y} % 400 = 0)"
    last = f"CASE WHEN {m} = 2 THEN CASE WHEN {leap} THEN 29 ELSE 28 END WHEN {m} IN (4, 6, 9, 11) THEN 30 ELSE 31 END"
    there = f"{y} >= 1 AND {m} BETWEEN 1 AND 12 AND {d} >= 1 AND {d} <= {last}"
    return f"CASE WHEN {there} THEN {then(f'make_date({y}, {m}, {d})')} END"


def _read(value: str, type_: Type) -> str:
    def integer(part: str) -> str:
        return f"CAST(coalesce({part}, '0') AS integer)"

    def clock(match: str, day: str) -> str:
        seconds = f"({integer(f'{match}[4]')} * 3600 + {integer(f'{match}[5]')} * 60 + {integer(f'{match}[6]')})"
        fraction = f"CAST(rpad(left(coalesce({match}[7], ''), 6), 6, '0') AS integer)"
        start = f"CAST({day} AS timestamp without time zone)"
        return f"{start} + {seconds} * interval '1 second' + {fraction} * interval '1 microsecond'"

    def zoned(match: str, moment: str) -> str:
        minutes = f"({integer(f'{match}[9]')} * 60 + {integer(f'{match}[10]')})"
        away = f"CASE WHEN {match}[8] = '-' THEN {minutes} ELSE -{minutes} END * interval '1 minute'"
        low, high = (_moment(end, Type(Kind.TIMESTAMP)) for end in (_FIRST, _LAST))
        return let(
            [f"{moment} + {away}"],
            lambda v: f"CASE WHEN {v} BETWEEN {low} AND {high} THEN timezone('UTC', {v}) END",
        )

    def then(match: str) -> Callable[[str], str]:
        if type_.kind is Kind.DATE:
            return lambda day: day
        if type_.kind is Kind.TIMESTAMP:
            return lambda day: clock(match, day)
        return lambda day: zoned(match, clock(match, day))

    def body(match: str) -> str:
        parts = [match, *(f"CAST({match}[{i}] AS integer)" for i in (1, 2, 3))]
        return let(parts, lambda found, y, m, d: _day_of(y, m, d, then(found)))

    return let([f"regexp_match({value}, {_FROM_TEXT[type_.kind]})"], body)


def _to_time(x: Operands) -> exp.Expr:
    source, target = x.operation.operands[0].type, x.operation.type
    value = said(x(0))
    if source.kind is Kind.TEXT:
        return words(_read(value, target))
    return words(_as(_plain(value, source), target))


TIME_RULES: dict[str, Rule] = {
    "days_between": lambda x: words(f"CAST({said(x(0))} - {said(x(1))} AS bigint)"),
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
