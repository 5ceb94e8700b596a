"""Public group keys: what a person lists, as values of the grouping column's type, each once, in order.

The keys are public knowledge: they come from the owner or the analyst, never from the data. Every listed
key appears in the answer with the same noise law, whether or not it has rows (design, section 6).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence

from discreet.binding import coerce
from discreet.errors import UsageError
from discreet.query import Scalar
from discreet.schema import Kind, Type

__all__ = [
    "MOST_KEYS",
    "KeyText",
    "cast_keys",
    "cast_rows",
    "parse_keys_option",
    "split_line",
    "split_name",
]

MOST_KEYS = 1_000_000
"""The most groups one query may ask for (all columns' keys multiplied)."""


class KeyText(str):
    """One key as the user wrote it on a command line: text, to be read as a value of the column's type."""

    __slots__ = ()


_QUOTED_NAME = re.compile(r'\s*"(?P<name>(?:[^"]|"")+)"\s*=(?P<rest>.*)', re.DOTALL)
_RANGE = re.compile(r"(?P<first>[^\s,\"]+?)\.\.(?P<last>[^\s,\"]+?)(?:\s+by\s+(?P<step>\S+))?")


def parse_keys_option(text: str) -> tuple[str, tuple[KeyText | None, ...]]:
    """``NAME=a,b,"c,d",NULL`` as its name and values; a bare ``NULL`` is the missing key.

    Raises:
        UsageError: no name or no value, or a quote that is not closed.
    """
    name, line = split_name(text)
    if not name:
        raise UsageError("--keys", "must be NAME=value,value,...", text, "write --keys action=A,M,D")
    return name, split_line(line, f"--keys {name}")


def split_name(text: str) -> tuple[str, str]:
    """``NAME=REST`` in two, at the first "="; ``"NAME"=REST`` with doubled quotes inside for any other name.

    Without a name or a "=", the first is empty.
    """
    if match := _QUOTED_NAME.fullmatch(text):
        return match["name"].replace('""', '"'), match["rest"]
    name, sign, rest = text.partition("=")
    return (name.strip(), rest) if sign else ("", text)


def split_line(line: str, thing: str) -> tuple[KeyText | None, ...]:
    """One CSV line as values; quotes hold commas (doubled inside), a bare ``NULL`` is None.

    Raises:
        UsageError: a quote that is not closed, or text after a closing quote; or no value at all.
    """
    values: list[KeyText | None] = []
    rest = line
    if not line.strip():
        raise UsageError(thing, "lists no value", hint='write "" for the empty text')
    while True:
        if rest.lstrip().startswith('"'):
            match = re.match(r'\s*"((?:[^"]|"")*)"\s*(,|$)', rest)
            if match is None:
                raise UsageError(thing, "has a quote that is not closed, or text beside quotes", line)
            values.append(KeyText(match[1].replace('""', '"')))
            end, more = match.end(), match[2] == ","
        else:
            field, sign, _ = rest.partition(",")
            values.append(None if field.strip() == "NULL" else KeyText(field.strip()))
            end, more = len(field) + len(sign), bool(sign)
        rest = rest[end:]
        if not more:
            return tuple(values)


def cast_keys(values: object, type_: Type, name: str) -> tuple[Scalar, ...]:
    """Listed keys as values of the column's type, each once, in the order given.

    Args:
        values: a list (text, numbers, dates, None), or the texts of a command line, of which one
            ``first..last [by step]`` stands for a range of integers, dates or times.
        type_: the grouping expression's type.
        name: what the grouping is called, for errors.

    Raises:
        UsageError: a value that is not of the type, a range that does not fit, no value, or too many.
    """
    thing = f"keys of {name!r}"
    found: dict[Scalar, None] = {}
    for value in _listed(values, thing, f'for example keys={{"{name}": ["A", "B"]}}'):
        for key in _expand(value, type_, thing):
            found[key] = None
            if len(found) > MOST_KEYS:
                raise UsageError(thing, f"must be at most {MOST_KEYS}")
    if not found:
        raise UsageError(thing, "lists no value")
    return tuple(found)


def cast_rows(rows: object, types: Sequence[Type], names: Sequence[str]) -> tuple[tuple[Scalar, ...], ...]:
    """Listed combinations of keys, each once, in the order given: one value a grouping column, no ranges.

    Args:
        rows: a list of tuples.
        types: of the grouping expressions, in the order of the tuples.
        names: what they are called, for errors.

    Raises:
        UsageError: a value that is not of its type, a tuple of another length, no tuple, or too many.
    """
    thing = f"keys of ({', '.join(map(repr, names))})"
    example = "for example keys={('a', 'b'): [(1, 'x'), (2, None)]}"
    things = [f"keys of {name!r}" for name in names]
    found: dict[tuple[Scalar, ...], None] = {}
    for row in _listed(rows, thing, example):
        if isinstance(row, str | bytes | Mapping) or not isinstance(row, Sequence) or len(row) != len(types):
            shown = len(row) if isinstance(row, Sequence) and not isinstance(row, str | bytes) else row
            raise UsageError(thing, f"must be tuples of {len(types)} values", shown, example)
        found[tuple(_one(v, t, what) for v, t, what in zip(row, types, things, strict=True))] = None
        if len(found) > MOST_KEYS:
            raise UsageError(thing, f"must be at most {MOST_KEYS}")
    if not found:
        raise UsageError(thing, "lists no value")
    return tuple(found)


def _listed(values: object, thing: str, example: str) -> Iterable[object]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise UsageError(thing, "must be a list of values", values, example)
    return values


def _expand(value: object, type_: Type, thing: str) -> Sequence[Scalar]:
    if isinstance(value, KeyText) and type_.kind in _RANGED:
        match = _RANGE.fullmatch(value.strip())
        if match:
            return _range(match, type_, thing)
    return (_one(value, type_, thing),)


_RANGED = (Kind.INTEGER, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


def _one(value: object, type_: Type, thing: str) -> Scalar:
    if value is None:
        return None
    if isinstance(value, KeyText):
        value = str(value)
    elif hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()  # a NumPy scalar
    if isinstance(value, float):
        if not value.is_integer():
            raise UsageError(thing, "cannot be fractions of a float", value)
        value = int(value)
    if not isinstance(value, bool | int | str | datetime.date) and type(value).__name__ != "Decimal":
        raise UsageError(thing, "must be text, whole numbers, decimals, dates, times, true, false or None", value)
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise UsageError(thing, "must be valid Unicode text", ascii(value)) from None
    return coerce(value, type_, thing).value  # type: ignore[arg-type]


def _range(match: re.Match[str], type_: Type, thing: str) -> Sequence[Scalar]:
    first = coerce(match["first"], type_, thing).value
    last = coerce(match["last"], type_, thing).value
    step = match["step"]
    if first > last:  # type: ignore[operator]
        raise UsageError(thing, "a range must not run backwards", match[0])
    if isinstance(first, datetime.datetime) and isinstance(last, datetime.datetime):
        return _moments(first, last, step or "day", thing)
    if isinstance(first, datetime.date) and isinstance(last, datetime.date):
        return _dates(first, last, step or "day", thing)
    if not isinstance(first, int) or not isinstance(last, int):
        raise UsageError(thing, "ranges are of whole numbers, dates or times", match[0])
    stride = 1 if step is None else coerce(step, type_, f"{thing}, step").value
    if not isinstance(stride, int) or stride < 1:
        raise UsageError(thing, "a step must be a whole number of at least 1", step)
    if (last - first) // stride >= MOST_KEYS:
        raise UsageError(thing, f"must be at most {MOST_KEYS}", match[0])
    return range(first, last + 1, stride)


_CLOCK = {"minute": datetime.timedelta(minutes=1), "hour": datetime.timedelta(hours=1)}


def _moments(first: datetime.datetime, last: datetime.datetime, step: str, thing: str) -> Sequence[Scalar]:
    """Times by hour or minute; by day and longer the dates' range at the first one's time of day."""
    unit = step.lower().rstrip("s")
    if unit not in _CLOCK:
        days = _dates(first.date(), last.date(), step, thing)
        moments = [datetime.datetime.combine(day, first.timetz()) for day in days if isinstance(day, datetime.date)]
        return [moment for moment in moments if moment <= last]
    number = (last - first) // _CLOCK[unit] + 1
    if number > MOST_KEYS:
        raise UsageError(thing, f"must be at most {MOST_KEYS}", f"{number} {unit}s")
    return [first + i * _CLOCK[unit] for i in range(number)]


def _dates(first: datetime.date, last: datetime.date, step: str, thing: str) -> Sequence[Scalar]:
    days = (last - first).days
    match step.lower().rstrip("s"):
        case "day":
            if days >= MOST_KEYS:
                raise UsageError(thing, f"must be at most {MOST_KEYS}", f"{days + 1} days")
            return [first + datetime.timedelta(days=i) for i in range(days + 1)]
        case "week":
            return [first + datetime.timedelta(days=i) for i in range(0, days + 1, 7)]
        case "month" | "quarter" | "year" as unit:
            stride = {"month": 1, "quarter": 3, "year": 12}[unit]
            if first.day > 28:
                raise UsageError(thing, f"a range by {unit} must start on day 1 to 28", first.isoformat())
            months = range(first.year * 12 + first.month - 1, last.year * 12 + last.month, stride)
            dates = (datetime.date(m // 12, m % 12 + 1, first.day) for m in months)
            return [day for day in dates if day <= last]
        case _:
            raise UsageError(
                thing, "a range goes by day, week, month, quarter or year; of times also by hour or minute", step
            )
