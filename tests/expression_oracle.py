"""What a row expression means, in plain Python: exact numbers, code points, `datetime`. Shares nothing with the
rendering; where Python cannot know the engine's last digit or its tables of letters it says so (`UnknownError`).
"""

from __future__ import annotations

import calendar
import datetime as dt
import math
import re
import zoneinfo
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from discreet.expressions import LONGEST_READ_TEXT, Expression, Field, Literal, Operation
from discreet.schema import HUGE, Kind, Type

UTC = dt.UTC
BLANKS = "".join(chr(i) for i in range(0x110000) if chr(i).isspace() and not 0x1C <= i <= 0x1F)


class UnknownError(Exception):
    """Python cannot tell."""


@dataclass(frozen=True)
class Roughly:
    """A double known to about 12 digits."""

    value: float


def evaluate(expression: Expression, row: Sequence[Any]) -> Any:
    """The value in one row: None, bool, int, Fraction (for decimals), float, Roughly, str, date or datetime."""
    match expression:
        case Field(position, _, type_):
            return _from_engine(row[position], type_)
        case Literal(value, type_):
            if type_.kind is Kind.FLOAT and value is not None:
                return float(value)  # type: ignore[arg-type]
            return _from_engine(value, type_)
        case Operation(operator, operands, type_):
            if operator == "case":
                return _case(operands, row)
            values = [evaluate(operand, row) for operand in operands]
            if operator not in _PASS_ROUGH and any(isinstance(value, Roughly) for value in values):
                raise UnknownError
            return _apply(operator, values, [operand.type for operand in operands], type_)


_PASS_ROUGH = frozenset(("coalesce", "is_null"))


def _from_engine(value: Any, type_: Type) -> Any:
    return Fraction(value) if type_.kind is Kind.DECIMAL and value is not None else value


def _case(operands: tuple[Expression, ...], row: Sequence[Any]) -> Any:
    for condition, value in zip(operands[:-1:2], operands[1:-1:2], strict=True):
        if evaluate(condition, row) is True:
            return evaluate(value, row)
    return evaluate(operands[-1], row)


def _apply(operator: str, v: list[Any], types: list[Type], type_: Type) -> Any:
    match operator:
        case "and":
            return False if False in v else None if None in v else True
        case "or":
            return True if True in v else None if None in v else False
        case "is_null":
            return v[0] is None
        case "is_distinct":
            return v[0] != v[1]
        case "coalesce":
            return next((value for value in v if value is not None), None)
        case "nullif":
            return None if v[1] is not None and v[1] == v[2] else v[0]
        case "in":
            return None if v[0] is None else v[0] in v[1:]
    if None in v:
        return None
    if operator in ("add", "subtract", "multiply"):
        return _arithmetic(operator, v, types, type_)
    family, _, part = operator.partition("_")
    if operator in _STRICT:
        return _STRICT[operator](*v)
    if family == "trunc" and part:
        return _trunc(part, v, types, type_)
    if family in _FAMILIES:
        return _FAMILIES[family](part, v, types, type_)
    raise AssertionError(operator)


# --- numbers ----------------------------------------------------------------------------------------------------------


def _arithmetic(operator: str, v: list[Any], types: list[Type], type_: Type) -> Any:
    a, b = v
    if type_.kind is Kind.FLOAT:
        return _float({"add": a + b, "subtract": a - b, "multiply": a * b}[operator])
    limit = 10**19 if operator == "multiply" else 10**37
    if any(kind == HUGE and abs(value) >= limit for value, kind in zip(v, types, strict=True)):
        return None
    return _fits({"add": a + b, "subtract": a - b, "multiply": a * b}[operator], type_)


def _float(x: float) -> float | None:
    return None if math.isnan(x) else x


def _fits(x: Any, type_: Type) -> Any:
    if type_.kind is Kind.INTEGER:
        bits = type_.bits - 1
        return int(x) if -(2**bits) <= x < 2**bits else None
    return x if abs(x) < 10 ** (type_.precision - type_.scale) else None


def _divide(a: float, b: float) -> float | None:
    if b == 0:
        return None
    try:
        return _float(a / b)
    except OverflowError:
        return math.copysign(math.inf, a) * math.copysign(1, b)


def _away(x: Fraction) -> int:
    """To the nearest whole number, halves away from zero."""
    size = math.floor(abs(x) + Fraction(1, 2))
    return size if x >= 0 else -size


def _whole(rule: Callable[[Fraction], int]) -> Callable[..., Any]:
    def apply(part: str, v: list[Any], types: list[Type], type_: Type) -> Any:
        if isinstance(v[0], float) and math.isinf(v[0]):
            return None
        return _fits(rule(Fraction(v[0])), type_)

    return apply


def _round(part: str, v: list[Any], types: list[Type], type_: Type) -> Any:
    if part != "to":
        return _whole(_away)(part, v, types, type_)
    x, places = v
    if isinstance(x, float):
        return Roughly(x if math.isinf(x) else float(Fraction(_away(Fraction(x) * 10**places)) / 10**places))
    if type_ == HUGE and abs(x) >= 10**37:
        return None
    rounded = Fraction(_away(Fraction(x) * Fraction(10) ** places)) / Fraction(10) ** places
    return _fits(rounded, type_)


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a >= 0) == (b >= 0) else -1)


def _division(part: str, v: list[Any], types: list[Type], type_: Type, *, remainder: bool) -> Any:
    a, b = v
    if b == 0 or any(kind == HUGE and abs(x) >= 10**38 for x, kind in zip(v, types, strict=True)):
        return None
    return a - b * _truncated(a, b) if remainder else _fits(_truncated(a, b), type_)


def _sized(rule: Callable[[Any], Any]) -> Callable[..., Any]:
    """Unary minus and ABS."""

    def apply(part: str, v: list[Any], types: list[Type], type_: Type) -> Any:
        if type_ == HUGE and abs(v[0]) >= 10**38:
            return None
        return rule(v[0]) if type_.kind is not Kind.INTEGER else _fits(rule(v[0]), type_)

    return apply


def _sign(x: Any) -> int:
    return (x > 0) - (x < 0)


def _real(rule: Callable[..., float], least: Callable[[float], bool] = lambda x: True) -> Callable[..., Any]:
    def apply(*v: float) -> Any:
        if not least(v[0]):
            return None
        try:
            return Roughly(rule(*v))
        except OverflowError:
            return Roughly(math.inf)

    return apply


def _pow(x: float, y: float) -> Any:
    if x == 0 and y < 0:
        return None
    try:
        return Roughly(math.pow(x, y))
    except OverflowError:
        odd = y == math.floor(y) and y % 2 == 1
        return Roughly(-math.inf if x < 0 and odd else math.inf)
    except ValueError:
        return None


def _bin(part: str, v: list[Any], types: list[Type], type_: Type) -> Any:
    subject, value, *rest = v
    for edge, after in zip(rest[::2], rest[1::2], strict=True):
        if subject >= edge:
            value = after
    return value


# --- text -------------------------------------------------------------------------------------------------------------


def _letters(rule: Callable[[str], str]) -> Callable[[str], str]:
    def apply(text: str) -> str:
        changed = [rule(letter) for letter in text]
        if any(len(letter) != 1 for letter in changed) or any(
            ord(letter) > 0x24F for letter in text + "".join(changed)
        ):
            raise UnknownError  # letters that change their number, and alphabets that Unicode still extends
        return "".join(changed)

    return apply


def _like(text: str, pattern: str) -> bool:
    """By the table of what a prefix of the pattern and a prefix of the text match."""
    pieces: list[tuple[str, bool]] = []
    characters = iter(pattern)
    for sign in characters:
        pieces.append((next(characters), False) if sign == "\\" else (sign, sign in "%_"))
    if len(text) > 2_000:
        raise UnknownError  # too slow here
    reach = [True] + [False] * len(text)
    for sign, wild in pieces:
        if wild and sign == "%":
            first = reach.index(True) if True in reach else len(text) + 1
            reach = [i >= first for i in range(len(text) + 1)]
        else:
            reach = [False] + [reach[i] and (wild or text[i] == sign) for i in range(len(text))]
    return reach[-1]


def _ilike(text: str, pattern: str) -> bool:
    if not (text + pattern).isascii():
        raise UnknownError
    return _like(text.lower(), pattern.lower())


def _regexp(text: str, pattern: str) -> bool:
    pattern = re.sub(r"\\x\{([0-9A-F]+)\}", lambda m: chr(int(m[1], 16)), pattern)
    if (pattern.startswith("(?i)") and not text.isascii()) or len(text) > 100:
        raise UnknownError  # letters that fold in more than one way; Python goes back, and never ends
    return re.search(re.sub(r"\$$", r"\\Z", pattern), text, re.ASCII) is not None


# --- dates and times --------------------------------------------------------------------------------------------------


def _day_of(x: Any) -> dt.date:
    return x.date() if isinstance(x, dt.datetime) else x  # type: ignore[no-any-return]


def _at(day: dt.date, like: Any) -> Any:
    """Midnight of a day, as a value of the same type as another."""
    if isinstance(like, dt.datetime):
        return dt.datetime(day.year, day.month, day.day, tzinfo=like.tzinfo)
    return day


def _extract(part: str, v: list[Any], types: list[Type], type_: Type) -> int:
    x = v[0]
    day = _day_of(x)
    match part:
        case "quarter":
            return (day.month + 2) // 3
        case "week":
            return (day.timetuple().tm_yday + 6 - day.isoweekday() % 7) // 7
        case "isoweek" | "isoyear":
            return day.isocalendar()[1 if part == "isoweek" else 0]
        case "dow" | "dayofweek":
            return day.isoweekday() % 7 + (1 if part == "dayofweek" else 0)
        case "isodow":
            return day.isoweekday()
        case "doy" | "dayofyear":
            return day.timetuple().tm_yday
        case _:
            return int(getattr(x, part))


def _trunc(part: str, v: list[Any], types: list[Type], type_: Type) -> Any:
    x = v[0]
    day = _day_of(x)
    try:
        match part:
            case "year":
                return _at(day.replace(month=1, day=1), x)
            case "quarter":
                return _at(day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1), x)
            case "month":
                return _at(day.replace(day=1), x)
            case "week":
                return _at(day - dt.timedelta(days=day.isoweekday() % 7), x)
            case "isoweek":
                return _at(day - dt.timedelta(days=day.isoweekday() - 1), x)
            case "isoyear":
                return _at(dt.date.fromisocalendar(day.isocalendar()[0], 1, 1), x)
            case "day":
                return _at(day, x)
            case "hour":
                return x.replace(minute=0, second=0, microsecond=0)
            case "minute":
                return x.replace(second=0, microsecond=0)
            case _:
                return x.replace(microsecond=0)
    except OverflowError:
        return None


_MICROSECOND = dt.timedelta(microseconds=1)
_UNITS = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
_UNITS |= {"millisecond": 1_000, "microsecond": 1}


def _diff(part: str, v: list[Any], types: list[Type], type_: Type) -> int:
    a, b = v
    if isinstance(a, dt.datetime):
        return _truncated((a - b) // _MICROSECOND, _UNITS[part])
    months = (a.year - b.year) * 12 + a.month - b.month
    match part:
        case "day":
            return int((a - b).days)
        case "week":
            return (a.toordinal() - a.isoweekday() % 7 - b.toordinal() + b.isoweekday() % 7) // 7
        case "isoweek":
            return (a.toordinal() - a.isoweekday() - b.toordinal() + b.isoweekday()) // 7
        case "month":
            return int(months)
        case "quarter":
            return int((a.year - b.year) * 4 + (a.month - 1) // 3 - (b.month - 1) // 3)
        case "year":
            return int(a.year - b.year)
        case _:
            return int(a.isocalendar()[0] - b.isocalendar()[0])


def _shift(part: str, v: list[Any], types: list[Type], type_: Type) -> Any:
    x, count = v
    try:
        if part == "month":
            index = x.year * 12 + x.month - 1 + count
            year, month = index // 12, index % 12 + 1
            if not 1 <= year <= 9999:
                return None
            return x.replace(year=year, month=month, day=min(x.day, calendar.monthrange(year, month)[1]))
        return x + (dt.timedelta(days=count) if part == "day" else dt.timedelta(microseconds=count))
    except OverflowError:
        return None


def _zone(part: str, v: list[Any], types: list[Type], type_: Type) -> Any:
    x, name = v
    plain = x.replace(tzinfo=None)
    if not dt.datetime(1, 1, 3) <= plain <= dt.datetime(9999, 12, 29, 23, 59, 59, 999999):
        return None
    if name[0] in "+-":
        minutes = (int(name[1:3]) * 60 + int(name[-2:])) * (1 if name[0] == "+" else -1)
        zone: dt.tzinfo = dt.timezone(dt.timedelta(minutes=minutes))
    elif name == "UTC":
        zone = UTC
    elif 1970 < plain.year < 2037:
        zone = zoneinfo.ZoneInfo(name)
    else:
        raise UnknownError
    if x.tzinfo is not None:
        return x.astimezone(zone).replace(tzinfo=None)
    early, late = x.replace(tzinfo=zone, fold=0), x.replace(tzinfo=zone, fold=1)
    if early.utcoffset() != late.utcoffset():
        raise UnknownError
    return early.astimezone(UTC)


def _unix(part: str, v: list[Any], types: list[Type], type_: Type) -> int:
    x = v[0] if isinstance(v[0], dt.datetime) else dt.datetime(v[0].year, v[0].month, v[0].day)
    micros = (x.replace(tzinfo=None) - dt.datetime(1970, 1, 1)) // _MICROSECOND
    return int(micros // {"seconds": 1_000_000, "millis": 1_000, "micros": 1}[part])


def _from(part: str, v: list[Any], types: list[Type], type_: Type) -> Any:
    if part == "zone":
        return _zone(part, v, types, type_)
    size = {"unix_seconds": 1_000_000, "unix_millis": 1_000, "unix_micros": 1}[part]
    try:
        return dt.datetime(1970, 1, 1, tzinfo=UTC) + dt.timedelta(microseconds=v[0] * size)
    except OverflowError:
        return None


def _seconds(a: dt.datetime, b: dt.datetime) -> Fraction:
    return Fraction((a - b) // _MICROSECOND, 10**6)


# --- casts ------------------------------------------------------------------------------------------------------------

_BLANK = "[ \t\n\f\r]*"
_DATE = r"(\d{4})-(\d{1,2})-(\d{1,2})"
_CLOCK = r"[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?"
_OFFSET = r"( ?Z| UTC|[+-](?:0\d|1[0-4])(?::?[0-5]\d)?)?"


def _to(part: str, v: list[Any], types: list[Type], type_: Type) -> Any:
    x, source = v[0], types[0].kind
    if source is Kind.TEXT:
        return x if part == "text" else _read(x, part, type_)
    match part:
        case "boolean":
            return x != 0
        case "integer" | "huge":
            return _whole(_away)("", [int(x) if source is Kind.BOOLEAN else x], types, type_)
        case "decimal":
            if source is Kind.FLOAT:
                raise UnknownError
            return _fits(Fraction(_away(Fraction(x) * 10**type_.scale), 10**type_.scale), type_)
        case "float":
            exact = abs(x) < 2**53 if source is Kind.INTEGER else abs(x * 10 ** types[0].scale) < 2**53
            exact = exact or (source is Kind.INTEGER and types[0].bits == 64)
            return float(x) if exact else Roughly(float(x))
        case "text":
            return _printed(x, types[0])
        case "date":
            return _day_of(x)
        case _:
            moment = x if isinstance(x, dt.datetime) else dt.datetime(x.year, x.month, x.day)
            return moment.replace(tzinfo=UTC if part == "timestamptz" else None)


def _printed(x: Any, source: Type) -> str:
    match source.kind:
        case Kind.BOOLEAN:
            return "true" if x else "false"
        case Kind.INTEGER:
            return str(x)
        case Kind.DECIMAL:
            whole, rest = divmod(abs(int(x * 10**source.scale)), 10**source.scale)
            point = f".{rest:0{source.scale}d}" if source.scale else ""
            digits = str(whole) if whole or source.precision > source.scale else ""
            return ("-" if x < 0 else "") + digits + point
        case Kind.DATE:
            return str(x.isoformat())
        case _:
            text = x.replace(tzinfo=None).isoformat(sep=" ")
            return (text.rstrip("0") if "." in text else text) + ("+00" if x.tzinfo else "")


def _read(text: str, part: str, type_: Type) -> Any:
    text = text[:LONGEST_READ_TEXT]
    if part in ("date", "timestamp", "timestamptz"):
        return _read_time(text, part)
    if part == "boolean":
        word = text.strip(" \t\n\f\r").lower()
        return {"true": True, "false": False}.get(word)
    if part in ("integer", "huge"):
        match = re.fullmatch(rf"{_BLANK}([+-]?[0-9]{{1,38}}){_BLANK}", text)
        return _fits(int(match[1]), type_) if match else None
    exponent = r"(?:[eE][+-]?[0-9]+)?" if part == "float" else ""
    match = re.fullmatch(rf"{_BLANK}([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+){exponent}){_BLANK}", text)
    if match is None:
        return None
    if part == "float":
        return float(match[1])
    return _fits(Fraction(_away(Fraction(match[1]) * 10**type_.scale), 10**type_.scale), type_)


def _read_time(text: str, part: str) -> Any:
    clock = r"(?:[ T][0-9]{1,2}:[0-9]{2}[^\n]*)?" if part == "date" else rf"(?:{_CLOCK}{_OFFSET})?"
    match = re.fullmatch(rf"{_BLANK}{_DATE}{clock}{_BLANK}", text, re.ASCII)
    if match is None:
        return None
    try:
        day = dt.date(*map(int, match.groups()[:3]))
        if part == "date":
            return day
        hour, minute, second, fraction, zone = match.groups()[3:]
        if zone and part == "timestamp":
            return None
        micros = int((fraction or "0")[:6].ljust(6, "0"))
        moment = dt.datetime(day.year, day.month, day.day, int(hour or 0), int(minute or 0), int(second or 0), micros)
        if part == "timestamp":
            return moment
        digits = re.sub(r"[^0-9]", "", zone or "").ljust(4, "0")
        offset = dt.timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        shifted = moment + (offset if "-" in (zone or "") else -offset)
        return shifted.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


_STRICT: dict[str, Callable[..., Any]] = {
    "not": lambda a: not a,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "greatest": lambda *v: max(v),
    "least": lambda *v: min(v),
    "divide": _divide,
    "sign": _sign,
    "exp": _real(math.exp),
    "ln": _real(math.log, lambda x: x > 0),
    "log10": _real(math.log10, lambda x: x > 0),
    "log2": _real(math.log2, lambda x: x > 0),
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else None,
    "pow": _pow,
    "lower": _letters(str.lower),
    "upper": _letters(str.upper),
    "trim": lambda text, characters: text.strip(characters),
    "ltrim": lambda text, characters: text.lstrip(characters),
    "rtrim": lambda text, characters: text.rstrip(characters),
    "substr": lambda text, start, length: text[start - 1 :][:length],
    "left": lambda text, length: text[:length],
    "cut": lambda text, length: text[:length],
    "right": lambda text, length: text[-length:] if length else "",
    "concat": lambda *texts: "".join(texts),
    "replace": lambda text, old, new: text.replace(old, new),
    "split_part": lambda text, separator, place: [*text.split(separator), *[""] * place][place - 1],
    "length": len,
    "byte_length": lambda text: len(text.encode()),
    "strpos": lambda text, part: text.find(part) + 1,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "like": _like,
    "ilike": _ilike,
    "regexp_contains": _regexp,
    "days_between": lambda a, b: (a - b).days,
    "seconds_between": _seconds,
    "last_day": lambda day: day.replace(day=calendar.monthrange(day.year, day.month)[1]),
}

_FAMILIES: dict[str, Callable[..., Any]] = {
    "div": lambda part, *rest: _division(part, *rest, remainder=False),
    "modulo": lambda part, *rest: _division(part, *rest, remainder=True),
    "negate": _sized(lambda x: -x),
    "abs": _sized(abs),
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "trunc": _whole(math.trunc),
    "round": _round,
    "bin": _bin,
    "extract": _extract,
    "diff": _diff,
    "shift": _shift,
    "at": _zone,
    "from": _from,
    "unix": _unix,
    "to": _to,
}


def agrees(found: Any, meant: Any) -> bool:
    """Whether the engine's value is what is meant."""
    if isinstance(meant, Roughly):
        if math.isnan(meant.value):
            return found is None
        return found is not None and (
            found == meant.value or math.isclose(found, meant.value, rel_tol=1e-11, abs_tol=5e-324)
        )
    if isinstance(found, Decimal):
        return meant is not None and Fraction(found) == meant
    return type(found) is type(meant) and found == meant
