"""Constants as literals of a type, and the common type of several expressions; from types alone, exact.

A constant takes the type of what it stands beside: the text '2024-01-01' beside a date is that day, 0.1 beside
a float is the double nearest to a tenth, beside a decimal it is a tenth.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from discreet.errors import UsageError
from discreet.exact import parse_rational
from discreet.expressions import Expression, Field, Literal, Operation
from discreet.query import Scalar
from discreet.schema import (
    BOOLEAN,
    DATE,
    FLOAT,
    HUGE,
    INTEGER,
    OTHER,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    Type,
)

__all__ = [
    "MOST_DIGITS",
    "coerce",
    "common_type",
    "comparable",
    "constant",
    "convert",
    "digits",
    "exact_type",
    "is_null",
    "shown",
    "unify",
]

MOST_DIGITS = 38
"""The digits of the widest DECIMAL."""

_LARGEST_INTEGER = 2**126


def shown(expression: Expression) -> str:
    """How errors name an expression."""
    if isinstance(expression, Field):
        return f"column {expression.name!r}"
    return "a constant" if isinstance(expression, Literal) else "an expression"


def is_null(expression: Expression) -> bool:
    """Whether it is a NULL that has no type yet."""
    return isinstance(expression, Literal) and expression.value is None and expression.type == OTHER


def constant(value: Scalar) -> Literal:
    """A constant with the type that it has by itself.

    Raises:
        UsageError: a whole number too large, or text that cannot be written in a statement.
    """
    if value is None:
        return Literal(None, OTHER)
    if isinstance(value, bool):
        return Literal(value, BOOLEAN)
    if isinstance(value, int):
        if abs(value) >= _LARGEST_INTEGER:
            raise UsageError("a whole number in the query", "must be below 2^126", str(value))
        return Literal(value, INTEGER if -(2**63) <= value < 2**63 else HUGE)
    if isinstance(value, Decimal):
        return _decimal_literal(parse_rational("a number in the query", value))
    if isinstance(value, str):
        return Literal(_checked_text(value), TEXT)
    if isinstance(value, datetime.datetime):
        return Literal(value, TIMESTAMPTZ if value.tzinfo else TIMESTAMP)
    return Literal(value, DATE)


def _checked_text(value: str) -> str:
    if "\x00" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise UsageError("a text in the query", "must not hold NUL or half of a surrogate pair")
    return value


def _decimal_literal(number: Fraction) -> Literal:
    """A decimal number with as many digits as it needs; beyond 38 of them as a double."""
    scale = 0
    while (number * 10**scale).denominator != 1 and scale <= MOST_DIGITS:
        scale += 1
    whole = len(str(abs(int(number)))) if abs(number) >= 1 else 0
    if whole + scale > MOST_DIGITS or (number * 10**scale).denominator != 1:
        return _float_literal(number, "a number in the query")
    return Literal(_decimal(number, scale), Type(Kind.DECIMAL, precision=max(whole + scale, 1), scale=scale))


def _decimal(number: Fraction, scale: int) -> Decimal:
    return Decimal(f"{int(number * 10**scale)}e-{scale}")


def _float_literal(number: Fraction, thing: str) -> Literal:
    try:
        return Literal(Decimal(repr(float(number))), FLOAT)
    except OverflowError:
        raise UsageError(thing, "is too large for a double") from None


# --- the common type of several ---------------------------------------------------------------------------------


def digits(expression: Expression) -> tuple[int, int]:
    """The digits before and after the point that every value of an INTEGER or DECIMAL expression fits in."""
    type_ = expression.type
    if isinstance(expression, Literal) and isinstance(expression.value, int):
        return len(str(abs(expression.value))), 0
    if type_.kind is Kind.DECIMAL:
        return type_.precision - type_.scale, type_.scale
    return (19, 0) if type_.bits == 64 else (39, 0)


def exact_type(whole: int, scale: int) -> Type | None:
    """The DECIMAL with so many digits before and after the point, if there is one."""
    if whole + scale > MOST_DIGITS:
        return None
    return Type(Kind.DECIMAL, precision=max(whole + scale, 1), scale=scale)


def unify(left: Expression, right: Expression) -> Type | None:
    """The type that holds the values of both; None if there is none.

    INTEGER with DECIMAL is the DECIMAL that holds both exactly, else FLOAT; DATE with TIMESTAMP is TIMESTAMP.
    """
    a, b = left.type, right.type
    if is_null(left) or is_null(right):
        return b if is_null(left) else a
    if a == b:
        return a
    if a.kind.is_number and b.kind.is_number:
        if Kind.FLOAT in (a.kind, b.kind):
            return FLOAT
        if a.kind is Kind.INTEGER and b.kind is Kind.INTEGER:
            return HUGE
        wholes, scales = zip(digits(left), digits(right), strict=True)
        return exact_type(max(wholes), max(scales)) or FLOAT
    if {a.kind, b.kind} == {Kind.DATE, Kind.TIMESTAMP}:
        return TIMESTAMP
    return None


def common_type(expressions: Sequence[Expression], thing: str) -> Type:
    """The one type of several expressions, to which `convert` brings each.

    Raises:
        UsageError: they do not go together, or all are NULL.
    """
    known = [e for e in expressions if not is_null(e)]
    if not known:
        raise UsageError(thing, "has no value but NULL", hint="write CAST(NULL AS BIGINT), or another type")
    typed: list[Expression] = [e for e in known if not isinstance(e, Literal)]
    # A text in quotes beside a date, time or true/false means one of those; a number keeps its own type.
    typed += [e for e in known if isinstance(e, Literal) and (not typed or e.type.kind is not Kind.TEXT)]
    sample = typed[0]
    for other in typed[1:]:
        together = unify(sample, other)
        if together is None and isinstance(other, Literal):
            continue  # `convert` says what is wrong with it
        if together is None:
            rule = f"cannot be put together: one is {sample.type.kind}, the other {other.type.kind}"
            hint = "convert one with CAST, or declare its type with --types"
            raise UsageError(f"{thing}: {shown(sample)} and {shown(other)}", rule, hint=hint)
        if together != sample.type:
            sample = Operation("", (), together)
        elif isinstance(sample, Literal) and sample.type.kind is Kind.INTEGER and digits(other) > digits(sample):
            sample = other  # 5 and 10 beside 0.5 need two digits before the point
    timed = [e for e in known if isinstance(e, Literal) and is_time_of_day(e.value)]
    return TIMESTAMP if sample.type.kind is Kind.DATE and timed else sample.type


def convert(expression: Expression, type_: Type, thing: str = "") -> Expression:
    """The expression at the type that `common_type` or `unify` found for it.

    Raises:
        UsageError: a constant that is not a value of the type.
    """
    if expression.type == type_:
        return expression
    if is_null(expression):
        return Literal(None, type_)
    if isinstance(expression, Literal):
        if type_ == FLOAT and expression.type.kind.is_number:
            return _float_literal(parse_rational(thing, expression.value), thing or "a number in the query")
        return coerce(expression.value, type_, thing or "a constant")
    name = "huge" if type_ == HUGE else str(type_.kind)
    return Operation(f"to_{name}", (expression,), type_)


def is_time_of_day(value: Scalar) -> bool:
    """Whether a constant says a time of day, so that a date beside it becomes a time."""
    if isinstance(value, datetime.datetime):
        return True
    return isinstance(value, str) and ":" in value


def comparable(left: Expression, right: Expression, thing: str) -> tuple[Expression, Expression]:
    """Both sides at one type, such that the comparison is exact where it can be and never raises.

    Raises:
        UsageError: the two cannot be compared.
    """
    if isinstance(left, Literal) and not isinstance(right, Literal):
        right, left = comparable(right, left, thing)
        return left, right
    if isinstance(right, Literal) and left.type.kind.is_number and not isinstance(right.value, bool | datetime.date):
        return _number_and_literal(left, right)
    type_ = left.type
    if isinstance(right, Literal) and not isinstance(left, Literal):
        if type_.kind is Kind.DATE and is_time_of_day(right.value):
            type_ = TIMESTAMP
        return convert(left, type_), coerce(right.value, type_, shown(left))
    together = unify(left, right)
    if together is None:
        rule = f"cannot be compared: one is {left.type.kind}, the other {right.type.kind}"
        hint = "convert one with CAST, or declare its type with --types"
        if {left.type.kind, right.type.kind} <= {Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ}:
            hint = "compare DATE(x) with dates"
        raise UsageError(f"{shown(left)} and {shown(right)}", rule, hint=hint)
    return convert(left, together), convert(right, together)


def _number_and_literal(left: Expression, right: Literal) -> tuple[Expression, Expression]:
    thing = f"the number beside {shown(left)}"
    number = parse_rational(thing, right.value)
    if left.type.kind is Kind.INTEGER and number.denominator == 1:
        return left, constant(int(number))
    if left.type.kind is Kind.DECIMAL:
        scaled = number * 10**left.type.scale
        if scaled.denominator == 1 and abs(scaled) < 10**left.type.precision:
            return left, Literal(_decimal(number, left.type.scale), left.type)
    # A fraction beside an integer, or more digits than a decimal has: both as doubles, which cannot raise.
    return convert(left, FLOAT), _float_literal(number, thing)


# --- constants of a wanted type ---------------------------------------------------------------------------------


def coerce(value: Scalar, type_: Type, thing: str) -> Literal:
    """A constant as a literal of exactly `type_`: the text '2024-01-01' beside a date is that day.

    Raises:
        UsageError: the constant is not a value of that type.
    """
    kind = type_.kind
    try:
        match kind:
            case Kind.TEXT if isinstance(value, str):
                return Literal("".join(value), TEXT)
            case Kind.BOOLEAN if isinstance(value, bool):
                return Literal(value, BOOLEAN)
            case Kind.BOOLEAN if isinstance(value, str) and value.lower() in ("true", "false"):
                return Literal(value.lower() == "true", BOOLEAN)
            case Kind.INTEGER if not isinstance(value, bool):
                number = parse_rational(thing, value)
                largest = 2**63 if type_.bits == 64 else _LARGEST_INTEGER
                if number.denominator == 1 and -largest <= number < largest:
                    return Literal(int(number), type_)
            case Kind.DECIMAL if not isinstance(value, bool):
                number = parse_rational(thing, value)
                if (number * 10**type_.scale).denominator == 1 and abs(number) < 10 ** (type_.precision - type_.scale):
                    return Literal(_decimal(number, type_.scale), type_)
            case Kind.FLOAT if not isinstance(value, bool):
                return _float_literal(parse_rational(thing, value), thing)
            case Kind.DATE if isinstance(value, str):
                return Literal(datetime.date.fromisoformat(value.strip()), DATE)
            case Kind.DATE if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
                return Literal(datetime.date(value.year, value.month, value.day), DATE)
            case Kind.TIMESTAMP | Kind.TIMESTAMPTZ if isinstance(value, str | datetime.date):
                return _moment(value, type_, thing)
    except (ValueError, OverflowError) as error:
        if isinstance(error, UsageError) and error.hint:
            raise
    hints = {
        Kind.DATE: "write it as 2024-12-31",
        Kind.TIMESTAMP: "write it as 2024-12-31T23:59:59",
        Kind.TIMESTAMPTZ: "write it as 2024-12-31T23:59:59Z",
        Kind.TEXT: "write text in single quotes",
        Kind.BOOLEAN: "write true or false",
    }
    text = value.isoformat() if isinstance(value, datetime.date) else str(value)
    raise UsageError(thing, f"is {kind}, and this is not a value of that type", text, hints.get(kind, ""))


def _moment(value: str | datetime.date, type_: Type, thing: str) -> Literal:
    """A time as a plain `datetime`: a subclass may hold more than microseconds (pandas has nanoseconds), and two
    constants that differ in Python would then be one value to the engine."""
    if getattr(value, "nanosecond", 0):
        raise UsageError(thing, "times are kept to the microsecond", str(value), "round it first")
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value.strip())
    elif not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    else:
        time = (value.hour, value.minute, value.second, value.microsecond, value.tzinfo)
        value = datetime.datetime(value.year, value.month, value.day, *time, fold=value.fold)
    if type_.kind is Kind.TIMESTAMP:
        if value.tzinfo is not None:
            hint = "write the time without a zone"
            raise UsageError(thing, "has no time zone", value.isoformat(), hint)
        return Literal(value, TIMESTAMP)
    aware = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
    return Literal(aware.astimezone(datetime.UTC), TIMESTAMPTZ)
