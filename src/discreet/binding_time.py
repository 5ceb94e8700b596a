"""Functions of dates and times: their types, from the operands' types alone.

All is computed in UTC unless AT TIME ZONE says otherwise. Weeks as in BigQuery: WEEK begins on Sunday, ISOWEEK
on Monday; DAYOFWEEK is 1 on Sunday.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable

from discreet.coercion import convert, shown, unify
from discreet.errors import UsageError
from discreet.expressions import Expression, Literal, Operation
from discreet.schema import DATE, INTEGER, TEXT, TIMESTAMP, TIMESTAMPTZ, Kind, Type
from discreet.time_parts import DATE_PARTS, SHIFTS, TIME_PARTS

__all__ = ["TIMES", "date_plus_days", "extract", "is_zone", "moments_between"]

_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_MOST_YEARS = 9_998
_ELAPSED = ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
_EPOCHS = ("SECONDS", "MILLIS", "MICROS")


def _require_time(operand: Expression, thing: str) -> Kind:
    kind = operand.type.kind
    if not kind.is_temporal:
        hint = ""
        if kind is Kind.TEXT:
            hint = "write CAST(x AS TIMESTAMP), or declare it with --types, for example --types time=TIMESTAMPTZ"
        elif kind is Kind.INTEGER:
            hint = "seconds since 1970 become a time with TIMESTAMP_SECONDS(x)"
        raise UsageError(f"{thing} of {shown(operand)}", f"needs a date or time, not {kind}", hint=hint)
    return kind


def extract(name: str, operand: Expression) -> Expression:
    """EXTRACT(PART FROM x), by the name ``extract_part``.

    Raises:
        UsageError: not a date or time; a time of day from a date.
    """
    part = name.removeprefix("extract_").upper()
    kind = _require_time(operand, part)
    if part in TIME_PARTS and kind is Kind.DATE:
        raise UsageError(f"{part} of {shown(operand)}", "needs a time, not a date")
    return Operation(name, (operand,), INTEGER)


def _part(operand: Expression, thing: str) -> str:
    if not isinstance(operand, Literal) or not isinstance(operand.value, str):
        raise UsageError(thing, "takes a part such as MONTH that is written out")
    return operand.value.upper()


def _trunc(operands: list[Expression]) -> Expression:
    subject, part = operands[0], _part(operands[1], "DATE_TRUNC")
    kind = _require_time(subject, "DATE_TRUNC")
    if part not in DATE_PARTS + TIME_PARTS:
        raise UsageError("DATE_TRUNC", f"knows {', '.join(DATE_PARTS + TIME_PARTS)}", part)
    if kind is Kind.DATE and part in TIME_PARTS:
        raise UsageError(f"DATE_TRUNC of {shown(subject)} to {part}", "needs a time, not a date")
    if kind is Kind.DATE and part == "DAY":
        return subject
    return Operation(f"trunc_{part.lower()}", (subject,), subject.type)


def _two_moments(left: Expression, right: Expression, thing: str) -> tuple[Expression, Expression]:
    """Both at one type; a text in quotes takes the other's."""
    for operand, other in ((left, right), (right, left)):
        if not (isinstance(operand, Literal) and operand.type.kind is Kind.TEXT and other.type.kind.is_temporal):
            _require_time(operand, thing)
    if left.type.kind is Kind.TEXT or right.type.kind is Kind.TEXT:
        type_ = right.type if left.type.kind is Kind.TEXT else left.type
    else:
        found = unify(left, right)
        if found is None and (isinstance(left, Literal) or isinstance(right, Literal)):
            found = left.type if isinstance(right, Literal) else right.type
        if found is None:
            hint = "convert one: x AT TIME ZONE 'UTC', or CAST(x AS TIMESTAMP)"
            raise UsageError(thing, f"cannot set {left.type.kind} against {right.type.kind}", hint=hint)
        type_ = found
    return convert(left, type_, thing), convert(right, type_, thing)


def moments_between(left: Expression, right: Expression) -> Expression:
    """x - y: days (a whole number) between dates, seconds (6 decimal places) between times."""
    left, right = _two_moments(left, right, "-")
    if left.type.kind is Kind.DATE:
        return Operation("days_between", (left, right), INTEGER)
    return Operation("seconds_between", (left, right), Type(Kind.DECIMAL, precision=18, scale=6))


def _diff(operands: list[Expression]) -> Expression:
    part = _part(operands[2], "DATE_DIFF")
    left, right = _two_moments(operands[0], operands[1], "DATE_DIFF")
    if left.type.kind is Kind.DATE:
        if part not in DATE_PARTS:
            raise UsageError("DATE_DIFF", f"of dates knows {', '.join(DATE_PARTS)}", part)
    elif part not in _ELAPSED:
        hint = "for months and weeks of times: DATE_DIFF(DATE(x), DATE(y), MONTH)"
        raise UsageError("DATE_DIFF", f"of times knows {', '.join(_ELAPSED)}", part, hint)
    return Operation(f"diff_{part.lower()}", (left, right), INTEGER)


def _add(operands: list[Expression]) -> Expression:
    subject, count, unit = operands[0], operands[1], _part(operands[2], "an interval")
    kind = _require_time(subject, "an interval added to a date")
    if not isinstance(count, Literal) or not isinstance(count.value, int) or isinstance(count.value, bool):
        raise UsageError("INTERVAL", "takes a whole number that is written out", hint="INTERVAL 7 DAY")
    if unit not in SHIFTS and unit not in _MONTHS:
        raise UsageError("INTERVAL", f"knows {', '.join([*SHIFTS, *_MONTHS])}", unit)
    if kind is Kind.DATE and unit in SHIFTS and SHIFTS[unit] < SHIFTS["DAY"]:
        hint = "write CAST(x AS TIMESTAMP) + INTERVAL 1 HOUR"
        raise UsageError(f"INTERVAL of {unit}", "cannot be added to a date", hint=hint)
    if unit in _MONTHS:
        return _shift(subject, "month", count.value * _MONTHS[unit], 12 * _MOST_YEARS)
    if kind is Kind.DATE:
        return date_plus_days(subject, count.value * (SHIFTS[unit] // SHIFTS["DAY"]))
    return _shift(subject, "microsecond", count.value * SHIFTS[unit], _MOST_YEARS * 365 * SHIFTS["DAY"])


def date_plus_days(subject: Expression, days: int) -> Expression:
    """A date so many days later.

    Raises:
        UsageError: more than 9,998 years.
    """
    return _shift(subject, "day", days, _MOST_YEARS * 365)


def _shift(subject: Expression, unit: str, count: int, most: int) -> Expression:
    if abs(count) > most:
        raise UsageError("INTERVAL", f"must be at most {_MOST_YEARS} years")
    return Operation(f"shift_{unit}", (subject, Literal(count, INTEGER)), subject.type) if count else subject


def _date(operands: list[Expression]) -> Expression:
    subject = _at_zone(operands) if len(operands) > 1 else operands[0]
    kind = _require_time(subject, "DATE")
    return subject if kind is Kind.DATE else Operation("to_date", (subject,), DATE)


def _datetime(operands: list[Expression]) -> Expression:
    subject = _at_zone(operands) if len(operands) > 1 else operands[0]
    _require_time(subject, "DATETIME")
    return convert(subject, TIMESTAMP, "DATETIME")


def _timestamp(operands: list[Expression]) -> Expression:
    _require_time(operands[0], "TIMESTAMP")
    return convert(operands[0], TIMESTAMPTZ, "TIMESTAMP")


_OFFSET = re.compile(r"[+-](0\d|1[0-4]):?([0-5]\d)")


def _at_zone(operands: list[Expression]) -> Expression:
    subject, zone = operands
    kind = _require_time(subject, "AT TIME ZONE")
    if kind is Kind.DATE:
        raise UsageError("AT TIME ZONE", "needs a time, not a date")
    if not isinstance(zone, Literal) or not isinstance(zone.value, str):
        raise UsageError("AT TIME ZONE", "takes a zone that is written out", hint="AT TIME ZONE 'Asia/Shanghai'")
    name = zone.value
    if not is_zone(name):
        hint = "write a name such as 'Europe/Berlin' or 'UTC', or an offset such as '+08:00'"
        raise UsageError("AT TIME ZONE", "is not a known time zone", name, hint)
    literal = Literal(name, TEXT)
    if kind is Kind.TIMESTAMPTZ:
        return Operation("at_zone", (subject, literal), TIMESTAMP)
    return Operation("from_zone", (subject, literal), TIMESTAMPTZ)


def is_zone(name: str) -> bool:
    """An offset from UTC, or a zone of the tz database: Area/City, or UTC."""
    if name == "UTC" or _OFFSET.fullmatch(name):
        return True
    return "/" in name and name in zoneinfo.available_timezones()


def _last_day(operands: list[Expression]) -> Expression:
    kind = _require_time(operands[0], "LAST_DAY")
    subject = operands[0] if kind is Kind.DATE else Operation("to_date", (operands[0],), DATE)
    return Operation("last_day", (subject,), DATE)


def _unix(unit: str) -> Callable[[list[Expression]], Expression]:
    def build(operands: list[Expression]) -> Expression:
        _require_time(operands[0], f"UNIX_{unit.upper()}")
        return Operation(f"unix_{unit}", tuple(operands), INTEGER)

    return build


def _from_unix(unit: str) -> Callable[[list[Expression]], Expression]:
    def build(operands: list[Expression]) -> Expression:
        thing = f"TIMESTAMP_{unit.upper()}"
        if operands[0].type.kind is not Kind.INTEGER:
            hint = "write CAST(x AS BIGINT)"
            raise UsageError(thing, f"needs whole numbers; {shown(operands[0])} is {operands[0].type.kind}", hint=hint)
        return Operation(f"from_unix_{unit}", tuple(operands), TIMESTAMPTZ)

    return build


TIMES: dict[str, Callable[[list[Expression]], Expression]] = {
    "date": _date,
    "datetime": _datetime,
    "timestamp": _timestamp,
    "date_trunc": _trunc,
    "date_diff": _diff,
    "date_add": _add,
    "at_time_zone": _at_zone,
    "last_day": _last_day,
    **{f"unix_{unit.lower()}": _unix(unit.lower()) for unit in _EPOCHS},
    **{f"timestamp_{unit.lower()}": _from_unix(unit.lower()) for unit in _EPOCHS},
}
