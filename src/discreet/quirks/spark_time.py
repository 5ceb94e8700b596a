"""Operators of dates and times in Spark SQL's words. The session's zone is UTC.

Times without a zone are TIMESTAMP_NTZ, moments are TIMESTAMP; between the two, UTC shows the one as the other. Every
date and time lies in the years 1 to 9999; what an operator would move out of them is NULL. Times are moved as
microseconds, so that no interval can overflow.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

from sqlglot import exp

from discreet.quirks.shifts import shift_limit
from discreet.quirks.spark_statements import quoted, refuse, said, type_name
from discreet.quirks.spark_words import BLANK, let
from discreet.quirks.spelling import words
from discreet.row_operands import Operands, Rule
from discreet.schema import TIMESTAMPTZ, Kind, Type
from discreet.time_parts import SHIFTS

__all__ = ["TIME_FAMILIES", "TIME_RULES"]

_FIRST, _LAST = datetime.datetime.min, datetime.datetime.max
_EPOCH = datetime.datetime(1970, 1, 1)
_DAY, _MICROSECOND = datetime.timedelta(days=1), datetime.timedelta(microseconds=1)
_BASE = (_EPOCH - _FIRST) // _MICROSECOND
_BASE_DAYS = (_EPOCH - _FIRST).days


def _moment(value: datetime.datetime, type_: Type) -> str:
    """A date or time as a constant of that type."""
    written = value.date().isoformat() if type_.kind is Kind.DATE else value.isoformat(sep=" ")
    return f"CAST('{written}{'+00:00' if type_.kind is Kind.TIMESTAMPTZ else ''}' AS {type_name(type_)})"


def _as(value: str, type_: Type) -> str:
    """A date or time of any type, as UTC shows it."""
    return f"CAST({value} AS {type_name(type_)})"


def _micros(value: str) -> str:
    return f"unix_micros({_as(value, TIMESTAMPTZ)})"


def _of_micros(value: str, type_: Type) -> str:
    return _as(f"timestamp_micros({value})", type_)


# --- parts ------------------------------------------------------------------------------------------------------------

_PARTS = {
    "day": "dayofmonth({0})",
    "isoweek": "weekofyear({0})",
    "isoyear": "extract(YEAROFWEEK FROM {0})",
    "doy": "dayofyear({0})",
    "dow": "dayofweek({0}) - 1",
    "isodow": "weekday({0}) + 1",
    # Weeks begin on Sunday, and what lies before the year's first Sunday is week 0.
    "week": "(dayofyear({0}) + 7 - dayofweek({0})) DIV 7",
}


def _extract(x: Operands, part: str) -> exp.Expr:
    form = _PARTS.get(part, f"{part}({{0}})")
    return words(let([said(x(0))], lambda v: f"CAST({form.format(v)} AS BIGINT)"))


def _trunc(x: Operands, part: str) -> exp.Expr:
    type_ = x.operation.type
    value = _as(said(x(0)), TIMESTAMPTZ)
    if part == "week":
        # Sunday's week: from Sunday on, a day later is in the Monday week that began a day before.
        day = SHIFTS["DAY"]

        def week(v: str) -> str:
            later = f"date_trunc('WEEK', timestamp_micros(unix_micros({v}) + {day}))"
            known = f"{v} >= {_moment(_FIRST + 6 * _DAY, TIMESTAMPTZ)}"
            return f"CASE WHEN {known} THEN {_of_micros(f'unix_micros({later}) - {day}', type_)} END"

        return words(let([value], week))
    if part == "isoyear":
        # The fourth of January is in the first week of every year.
        value, part = _as(f"make_date(extract(YEAROFWEEK FROM {value}), 1, 4)", TIMESTAMPTZ), "isoweek"
    name = {"isoweek": "week"}.get(part, part).upper()
    return words(_as(f"date_trunc('{name}', {value})", type_))


# --- differences ------------------------------------------------------------------------------------------------------


def _week_number(value: str, shift: int) -> str:
    """Weeks since Monday, the first of January of the year 1 (`shift` 0), or since the Sunday before (1)."""
    return f"((unix_date({value}) + {_BASE_DAYS + shift}) DIV 7)"


_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def _months(value: str, size: int) -> str:
    return f"((year({value}) * 12 + month({value}) - 1) DIV {size})"


def _diff(x: Operands, part: str) -> exp.Expr:
    left, right = said(x(0)), said(x(1))
    if x.operation.operands[0].type.kind is not Kind.DATE:
        return words(f"({_micros(left)} - {_micros(right)}) DIV {SHIFTS[part.upper()]}")
    if part == "day":
        value = f"datediff({left}, {right})"
    elif part in ("week", "isoweek"):
        shift = 1 if part == "week" else 0
        value = f"{_week_number(left, shift)} - {_week_number(right, shift)}"
    elif part == "isoyear":
        value = f"extract(YEAROFWEEK FROM {left}) - extract(YEAROFWEEK FROM {right})"
    else:
        value = let([left, right], lambda a, b: f"{_months(a, _MONTHS[part])} - {_months(b, _MONTHS[part])}")
    return words(f"CAST({value} AS BIGINT)")


def _seconds_between(x: Operands) -> exp.Expr:
    elapsed = f"CAST({_micros(said(x(0)))} - {_micros(said(x(1)))} AS DECIMAL(20, 0))"
    return words(f"try_cast({elapsed} * CAST('0.000001' AS DECIMAL(6, 6)) AS {type_name(x.operation.type)})")


# --- shifts -----------------------------------------------------------------------------------------------------------


def _shift(x: Operands, unit: str) -> exp.Expr:
    """x plus a literal interval, where that stays in the years 1 to 9999: decided by x, before it is moved."""
    type_, count = x.operation.type, x.whole(1)
    if unit == "month":
        moved = "add_months({v}, " + f"{count})" if type_.kind is Kind.DATE else _by_month(count, type_)
    else:
        moved = (
            f"date_add({{v}}, {count})" if type_.kind is Kind.DATE else _of_micros(f"{_micros('{v}')} + {count}", type_)
        )
    sign, limit = shift_limit(type_, unit, count)
    known = f"{sign} {_moment(limit, type_)}"
    return words(let([said(x(0))], lambda v: f"CASE WHEN {v} {known} THEN {moved.format(v=v)} END"))


def _by_month(count: int, type_: Type) -> str:
    """The day moved, and the time of day as it was."""
    day = "CAST({v} AS DATE)"
    clock = f"({_micros('{v}')} - {_micros(day)})"
    return _of_micros(f"{_micros(f'add_months({day}, {count})')} + {clock}", type_)


# --- zones and epochs -------------------------------------------------------------------------------------------------


_OLDER_NAMES = {"Europe/Kyiv": "Europe/Kiev", "Pacific/Kanton": "Pacific/Enderbury"}
_NEWER_ZONES = ("America/Ciudad_Juarez", "America/Coyhaique")
"""Zones and names of zones that came after the first Java 17 (tz database 2021a), which would raise for them."""


def _known_zone(zone: str) -> str:
    """The zone by a name that every Java from 17 on knows.

    Raises:
        RefusedError: there is none.
    """
    if zone in _NEWER_ZONES:
        raise refuse(f"the zone {zone}", "Java 17 may not know it; write an offset such as '-03:00'")
    return _OLDER_NAMES.get(zone, zone)


def _at_zone(x: Operands) -> exp.Expr:
    """A moment as the clocks of a zone show it, or back: two days from the ends of time, no zone leads out of it."""
    source, target = x.operation.operands[0].type, x.operation.type
    zone = _known_zone(str(x.literal(1)))
    low, high = _moment(_FIRST + 2 * _DAY, source), _moment(_LAST - 2 * _DAY, source)

    def moved(v: str) -> str:
        if zone[0] in "+-":
            minutes = int(zone[1:3]) * 60 + int(zone[-2:])
            away = -1 if (zone[0] == "-") == (source.kind is Kind.TIMESTAMPTZ) else 1
            return _of_micros(f"{_micros(v)} + {away * minutes * 60 * 10**6}", target)
        if source.kind is Kind.TIMESTAMPTZ:
            return _as(f"from_utc_timestamp({v}, {quoted(zone)})", target)
        return _later_reading(_as(v, TIMESTAMPTZ), quoted(zone))

    return words(let([said(x(0))], lambda v: f"CASE WHEN {v} BETWEEN {low} AND {high} THEN {moved(v)} END"))


def _later_reading(clock: str, zone: str) -> str:
    """The moment at which the clocks of a zone show a time. What they show twice is the second time, as ICU has it.

    Spark takes the first one. Clocks are set back by a day at most, so a day later they have been; with the offset of
    then the moment is the second one, if they do show the time at it. What they never show, when they are set forward,
    is read with the offset before, by both.
    """

    def second(shown: str, first: str) -> str:
        day = f"timestamp_micros(unix_micros({first}) + {SHIFTS['DAY']})"
        offset = f"(unix_micros(from_utc_timestamp({day}, {zone})) - unix_micros({day}))"
        return let(
            [f"timestamp_micros(unix_micros({shown}) - {offset})"],
            lambda v: (
                f"CASE WHEN {v} > {first} AND from_utc_timestamp({v}, {zone}) = {shown} THEN {v} ELSE {first} END"
            ),
        )

    return let([clock], lambda shown: let([shown, f"to_utc_timestamp({shown}, {zone})"], second))


_UNITS = {"seconds": 10**6, "millis": 1_000, "micros": 1}


def _unix(size: int) -> Rule:
    """Whole units of so many microseconds since 1970, rounded down: shifted to be positive first."""
    return lambda x: words(f"({_micros(said(x(0)))} + {_BASE}) DIV {size} - {_BASE // size}")


def _from_unix(size: int) -> Rule:
    low, high = -(_BASE // size), (_LAST - _EPOCH) // _MICROSECOND // size

    def rule(x: Operands) -> exp.Expr:
        return words(
            let(
                [said(x(0))],
                lambda v: (
                    f"CASE WHEN {v} BETWEEN {low} AND {high} THEN timestamp_micros(CAST({v} AS BIGINT) * {size}) END"
                ),
            )
        )

    return rule


# --- from text and between the types of time ----------------------------------------------------------------------

_DATE_TEXT = "((?!0000)[0-9]{4}+-[0-9]{1,2}+-[0-9]{1,2}+)"
_TIME_TEXT = "[ T]([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\\.([0-9]{1,9}+))?+)?+"
_ZONE_TEXT = "(?: ?+Z| UTC|([+-])(0[0-9]|1[0-4])(?::?+([0-5][0-9]))?+)?+"
_FROM_TEXT = {
    Kind.DATE: quoted(f"\\A{BLANK}{_DATE_TEXT}(?:[ T][0-9]{{1,2}}+:[0-9]{{2}}[^\\n]*+)?+{BLANK}\\z"),
    Kind.TIMESTAMP: quoted(f"\\A{BLANK}{_DATE_TEXT}(?:{_TIME_TEXT})?+{BLANK}\\z"),
    Kind.TIMESTAMPTZ: quoted(f"\\A{BLANK}{_DATE_TEXT}(?:{_TIME_TEXT}{_ZONE_TEXT})?+{BLANK}\\z"),
}


def _read(value: str, type_: Type) -> str:
    """The day is cast where there is one; hours, minutes, seconds and the offset are added to it as microseconds."""
    pattern = _FROM_TEXT[type_.kind]

    def group(v: str, i: int) -> str:
        return f"regexp_extract({v}, {pattern}, {i})"

    def integer(v: str, i: int) -> str:
        return f"CAST(concat('0', {group(v, i)}) AS BIGINT)"

    if type_.kind is Kind.DATE:
        return f"try_cast({group(value, 1)} AS DATE)"

    def body(v: str, day: str) -> str:
        seconds = f"{integer(v, 2)} * 3600 + {integer(v, 3)} * 60 + {integer(v, 4)}"
        fraction = f"CAST(rpad(substring({group(v, 5)}, 1, 6), 6, '0') AS BIGINT)"
        micros = f"{_micros(day)} + ({seconds}) * 1000000 + {fraction}"
        if type_.kind is Kind.TIMESTAMPTZ:
            minutes = f"({integer(v, 7)} * 60 + {integer(v, 8)})"
            away = f"CASE WHEN {group(v, 6)} = '-' THEN {minutes} ELSE -{minutes} END"
            micros = f"{micros} + {away} * 60000000"
        low, high = -_BASE, (_LAST - _EPOCH) // _MICROSECOND
        known = let([micros], lambda m: f"CASE WHEN {m} BETWEEN {low} AND {high} THEN timestamp_micros({m}) END")
        return _as(f"CASE WHEN {day} IS NOT NULL THEN {known} END", type_)

    return let([value], lambda v: let([v, f"try_cast({group(v, 1)} AS DATE)"], body))


def _to_time(x: Operands) -> exp.Expr:
    source, target = x.operation.operands[0].type, x.operation.type
    value = said(x(0))
    return words(_read(value, target) if source.kind is Kind.TEXT else _as(value, target))


TIME_RULES: dict[str, Rule] = {
    "days_between": lambda x: words(f"CAST(datediff({said(x(0))}, {said(x(1))}) AS BIGINT)"),
    "seconds_between": _seconds_between,
    "last_day": lambda x: words(f"last_day({_as(said(x(0)), Type(Kind.DATE))})"),
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
