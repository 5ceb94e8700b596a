"""DuckDB's own words: conditions, choices, numbers and types of row expressions, and the parts of statements.

Total, as `expressions` promises: no value of the operands' types can make a rendered expression raise. What
DuckDB does that the dialect does not is met here, beside the operator:

- integer arithmetic raises beyond the type: it is done in 128 bits and cast back by TRY_CAST;
- DECIMAL arithmetic raises beyond 38 digits, or beyond 18 if both operands have no more: the types are chosen
  so that neither can happen;
- `//` and `%` raise on 0 (since 2.0), abs(-2^63) and round(2^63 - 1, -1) raise: guarded, or done in 128 bits;
- NaN sorts above everything, and least(NULL, 1) is 1: doubles are made NULL where they are NaN before anything
  looks at them, and GREATEST and LEAST stand behind a CASE.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from discreet.expressions import Literal
from discreet.grid import Grid
from discreet.quirks.duckdb_text import TEXT_RULES
from discreet.quirks.duckdb_time import TIME_FAMILIES, TIME_RULES
from discreet.quirks.table import Quirks
from discreet.row_operands import Operands, Rule
from discreet.schema import DATE, HUGE, TEXT, Kind, Type
from discreet.statement_parts import (
    BIGINT,
    DOUBLE,
    HUGEINT,
    call,
    case,
    cast,
    clamp,
    decimal,
    engine_type,
    number,
    present,
    text,
    try_cast,
    whole_ends,
)

__all__ = ["DUCKDB"]


def _literal(literal: Literal) -> exp.Expr:
    value, kind = literal.value, literal.type.kind
    if value is None:
        return cast(exp.Null(), engine_type(literal.type))
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if kind is Kind.INTEGER and isinstance(value, int):
        return number(value)
    if isinstance(value, str):
        return text(value)
    if isinstance(value, datetime.datetime):
        name, written = "TIMESTAMPTZ" if value.tzinfo else "TIMESTAMP", value.isoformat(sep=" ")
    elif isinstance(value, datetime.date):
        name, written = "DATE", value.isoformat()
    elif isinstance(value, Decimal):
        name, written = str(literal.type), f"{value:f}" if kind is Kind.DECIMAL else str(value)
    else:
        raise AssertionError("a literal without a rendering")
    return cast(text(written), engine_type(name))


# --- conditions ---------------------------------------------------------------------------------------------------


def _infix(node: Callable[..., exp.Expr]) -> Rule:
    return lambda x: exp.paren(node(this=x(0), expression=x(1)))


def _all_of(x: Operands) -> exp.Expr:
    return exp.paren(exp.and_(*x.all()))


def _any_of(x: Operands) -> exp.Expr:
    return exp.paren(exp.or_(*x.all()))


# --- choices ------------------------------------------------------------------------------------------------------


def _value(x: Operands, i: int, *, raw: bool = False) -> exp.Expr:
    """An operand that becomes the result: a whole number written out is given the result's width."""
    operand = x.operation.operands[i]
    if isinstance(operand, Literal) and operand.type.kind is Kind.INTEGER and operand.value is not None:
        return cast(x(i), engine_type(x.operation.type))
    return x.raw(i) if raw else x(i)


def _case(x: Operands) -> exp.Expr:
    last = len(x) - 1
    branches = [(x(i), _value(x, i + 1, raw=True)) for i in range(0, last, 2)]
    return case(branches, _value(x, last, raw=True))


def _coalesce(x: Operands) -> exp.Expr:
    first, *rest = (_value(x, i) for i in range(len(x)))
    return exp.Coalesce(this=first, expressions=rest)


def _nullif(x: Operands) -> exp.Expr:
    return case([(exp.EQ(this=x(1), expression=x(2)), exp.Null())], x(0))


def _extreme(function: str) -> Rule:
    def rule(x: Operands) -> exp.Expr:
        known = exp.and_(*(present(operand) for operand in x.all()))
        return case([(known, call(function, *(_value(x, i) for i in range(len(x)))))])

    return rule


# --- numbers ------------------------------------------------------------------------------------------------------

# Terms of 37 digits add up to 38 at most, and factors of 19 digits multiply to 38 at most: less than 2^127.
_TERM, _FACTOR, _WIDEST = decimal(37, 0), decimal(19, 0), decimal(38, 0)


def _wide(x: exp.Expr, type_: Type, limit: exp.DataType) -> exp.Expr:
    """A whole number in 128 bits; NULL where one that already has them goes beyond the limit."""
    return cast(try_cast(x, limit) if type_ == HUGE else x, HUGEINT)


def _back(x: exp.Expr, type_: Type) -> exp.Expr:
    """From 128 bits to the result's width."""
    return x if type_ == HUGE else try_cast(x, BIGINT)


def _arithmetic(node: Callable[..., exp.Expr], limit: exp.DataType) -> Rule:
    def rule(x: Operands) -> exp.Expr:
        type_ = x.operation.type
        if type_.kind is Kind.INTEGER:
            left, right = (_wide(x(i), x.operation.operands[i].type, limit) for i in (0, 1))
            return _back(exp.paren(node(this=left, expression=right)), type_)
        if type_.kind is not Kind.DECIMAL:
            return exp.paren(node(this=x.raw(0), expression=x.raw(1)))
        # Of operands with at most 18 digits DuckDB keeps the product at 18, and raises beyond.
        first = x.operation.operands[0].type
        left = x(0) if first.precision > 18 else try_cast(x(0), decimal(19, first.scale))
        return try_cast(exp.paren(node(this=left, expression=x(1))), engine_type(type_))

    return rule


def _divide(x: Operands) -> exp.Expr:
    divisor = x.operation.operands[1]
    if isinstance(divisor, Literal) and isinstance(divisor.value, Decimal) and divisor.value != 0:
        by = x.raw(1)
    else:
        by = case([(exp.NEQ(this=x.raw(1), expression=number(0)), x.raw(1))])
    return exp.paren(exp.Div(this=x.raw(0), expression=by))


def _whole_division(node: Callable[..., exp.Expr], *, remainder: bool) -> Rule:
    """DIV and MOD: `//` and `%` round towards zero. By -1, the quotient may be beyond the type, and the remainder is 0
    (that of a division by 1)."""

    def rule(x: Operands) -> exp.Expr:
        type_ = x.operation.type
        divisor = x.operation.operands[1]
        plain = type_ != HUGE
        sides = [_value(x, i) if plain else _wide(x(i), x.operation.operands[i].type, _WIDEST) for i in (0, 1)]

        def division(by: exp.Expr) -> exp.Expr:
            return exp.paren(node(this=sides[0].copy(), expression=by))

        if isinstance(divisor, Literal) and divisor.value not in (0, -1, None):
            return division(sides[1])
        by_minus_one = division(number(1)) if remainder else _negated(sides[0].copy(), type_)
        return case(
            [
                (exp.EQ(this=sides[1].copy(), expression=number(0)), exp.Null()),
                (exp.EQ(this=sides[1].copy(), expression=number(-1)), by_minus_one),
            ],
            division(sides[1].copy()),
        )

    return rule


def _negated(x: exp.Expr, type_: Type) -> exp.Expr:
    return _back(exp.paren(exp.Neg(this=_wide(x, type_, _WIDEST))), type_)


def _negate(x: Operands) -> exp.Expr:
    type_ = x.operation.type
    if type_.kind is Kind.INTEGER:
        return _negated(x(0), type_)
    return exp.paren(exp.Neg(this=x.raw(0)))


def _absolute(x: Operands) -> exp.Expr:
    type_ = x.operation.type
    if type_.kind is Kind.INTEGER:
        return _back(call("abs", _wide(x(0), type_, _WIDEST)), type_)
    return call("abs", x.raw(0))


def _round_to(x: Operands) -> exp.Expr:
    type_, places = x.operation.type, number(x.whole(1))
    if type_.kind is Kind.INTEGER:
        return _back(call("round", _wide(x(0), type_, _TERM), places), type_)
    if type_.kind is Kind.DECIMAL:
        return try_cast(x(0), engine_type(type_))  # rounds halves away from zero
    return call("round", x.raw(0), places)


def _whole(function: str) -> Rule:
    """FLOOR and the like, to 64 bits."""
    return lambda x: try_cast(call(function, x.raw(0)), BIGINT)


def _sign(x: Operands) -> exp.Expr:
    return cast(call("sign", x(0)), BIGINT)


def _function(name: str) -> Rule:
    return lambda x: call(name, x.raw(0))


def _from(name: str, least: Callable[..., exp.Expr]) -> Rule:
    """A function of what lies above 0 (or from 0 on); NULL below. NaN compares as large, and stays NaN."""
    return lambda x: case([(least(this=x.raw(0), expression=number(0)), call(name, x.raw(0)))])


def _power(x: Operands) -> exp.Expr:
    """x ^ y; NULL for 0 to a negative power (a division by 0) and for fractional powers of negative numbers. The
    operands are not NaN here: NaN ^ 0 is 1."""
    zero = exp.and_(exp.EQ(this=x(0), expression=number(0)), exp.LT(this=x(1), expression=number(0)))
    power = call("pow", x(0), x(1))
    return case([(zero, exp.Null()), (exp.Not(this=call("isnan", power.copy())), power)])


def _bin(x: Operands) -> exp.Expr:
    """By halving: x(0) < edge decides which half of the bins."""

    def search(first: int, last: int) -> exp.Expr:
        """Among bins first..last; bin i has its value at place 2 i + 1 and its lower edge before it."""
        if first == last:
            return _value(x, 2 * first + 1)
        middle = (first + last + 1) // 2
        below = exp.LT(this=x(0), expression=x(2 * middle))
        return case([(below, search(first, middle - 1))], search(middle, last))

    missing = exp.Is(this=x(0), expression=exp.Null())
    return case([(missing, exp.Null())], search(0, len(x) // 2 - 1))


# --- types --------------------------------------------------------------------------------------------------------


def _to_number(x: Operands) -> exp.Expr:
    """To INTEGER: halves away from zero. A double is rounded first, as casting it would take halves to even."""
    source, target = x.operation.operands[0].type, engine_type(x.operation.type)
    if source.kind is Kind.FLOAT:
        return try_cast(call("round", x.raw(0)), target)
    return try_cast(x.raw(0), target)


def _to_boolean(x: Operands) -> exp.Expr:
    return exp.paren(exp.NEQ(this=x(0), expression=number(0)))


def _to_type(x: Operands) -> exp.Expr:
    return try_cast(x.raw(0), engine_type(x.operation.type))


_FROM_TEXT = {
    Kind.BOOLEAN: r"^\s*((?i:true|false))\s*$",
    Kind.INTEGER: r"^\s*([+-]?[0-9]{1,38})\s*$",
    Kind.DECIMAL: r"^\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))\s*$",
    Kind.FLOAT: r"^\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*$",
}
"""What a text must be to have a value of the kind: the first group, which the engine then reads."""


def _parsed(then: Rule) -> Rule:
    def rule(x: Operands) -> exp.Expr:
        if x.operation.operands[0].type.kind is not Kind.TEXT:
            return then(x)
        pattern = _FROM_TEXT[x.operation.type.kind]
        # What does not match gives '', which is no value of any of these types.
        return try_cast(call("regexp_extract", x(0), text(pattern), number(1)), engine_type(x.operation.type))

    return rule


_RULES: dict[str, Rule] = {
    "eq": _infix(exp.EQ),
    "ne": _infix(exp.NEQ),
    "lt": _infix(exp.LT),
    "le": _infix(exp.LTE),
    "gt": _infix(exp.GT),
    "ge": _infix(exp.GTE),
    "is_distinct": _infix(exp.NullSafeNEQ),
    "and": _all_of,
    "or": _any_of,
    "not": lambda x: exp.paren(exp.Not(this=exp.paren(x(0)))),
    "in": lambda x: exp.paren(exp.In(this=x(0), expressions=x.all()[1:])),
    "is_null": lambda x: exp.paren(exp.Is(this=x(0), expression=exp.Null())),
    "case": _case,
    "coalesce": _coalesce,
    "nullif": _nullif,
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
    "add": _arithmetic(exp.Add, _TERM),
    "subtract": _arithmetic(exp.Sub, _TERM),
    "multiply": _arithmetic(exp.Mul, _FACTOR),
    "divide": _divide,
    "div": _whole_division(exp.IntDiv, remainder=False),
    "modulo": _whole_division(exp.Mod, remainder=True),
    "negate": _negate,
    "abs": _absolute,
    "sign": _sign,
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "trunc": _whole("trunc"),
    "round": _to_number,
    "round_to": _round_to,
    "exp": _function("exp"),
    "ln": _from("ln", exp.GT),
    "log10": _from("log10", exp.GT),
    "log2": _from("log2", exp.GT),
    "sqrt": _from("sqrt", exp.GTE),
    "pow": _power,
    "bin": _bin,
    "to_boolean": _parsed(_to_boolean),
    "to_integer": _parsed(_to_number),
    "to_huge": _parsed(_to_number),
    "to_decimal": _parsed(_to_type),
    "to_float": _parsed(_to_type),
    "to_text": _to_type,
    **TEXT_RULES,
    **TIME_RULES,
}


# --- steps and statements -----------------------------------------------------------------------------------------


def _known(x: exp.Expr) -> exp.Expr:
    return case([(exp.Not(this=call("isnan", x.copy())), x)])


def _floor_scaled(x: exp.Expr, factor: float, fits: bool) -> exp.Expr:
    scaled = exp.Floor(this=exp.Mul(this=x, expression=cast(text(repr(factor)), DOUBLE)))
    return (cast if fits else try_cast)(scaled, BIGINT)


_SHORT_DECIMAL = 18
"""DuckDB gives the product of two decimals of at most so many digits no more digits than that, and raises for
the row where it has more. One longer factor gives the product all 38."""


def _decimal_steps(x: exp.Expr, type_: Type, grid: Grid, wide: bool) -> exp.Expr:
    low, high = whole_ends(grid)
    reach = 10 ** (type_.precision - type_.scale)  # a decimal column lies strictly within +-reach
    literals = [cast(text(str(end)), engine_type(type_)) if abs(end) < reach else None for end in (low, high)]
    digits = len(str(max(abs(low), abs(high)))) + type_.scale
    if digits + grid.places + 1 > _SHORT_DECIMAL:
        digits = max(digits, _SHORT_DECIMAL + 1)
    clamped = try_cast(clamp(x, *literals), decimal(min(38, digits), type_.scale))
    power = cast(text(str(10**grid.places)), decimal(grid.places + 1, 0))
    return try_cast(exp.Mul(this=clamped, expression=power), HUGEINT if wide else BIGINT)


def _days(x: exp.Expr) -> exp.Expr:
    return cast(exp.paren(exp.Sub(this=exp.paren(x), expression=cast(text("1970-01-01"), engine_type(DATE)))), BIGINT)


def _quotient(left: exp.Expr, right: exp.Expr, wide: bool) -> exp.Expr:
    return exp.IntDiv(this=left, expression=right)


def _to_text(x: exp.Expr, type_: Type) -> exp.Expr:
    return cast(x, engine_type(TEXT))


def _pair_hash(values: list[exp.Expr], types: list[Type], hash_key: int) -> exp.Expr:
    """The engine's own hash: md5 takes ten times as long, and nothing private rests on it. Applied twice, since it
    combines the hashes of several values by XOR: in the order of that, a group whose hash is like no other's would
    come first more often than others, in every query."""
    return call("hash", call("hash", text(f"{hash_key:032x}"), *values))


def _same(left: exp.Expr, right: exp.Expr, type_: Type) -> exp.Expr:
    return exp.NullSafeEQ(this=left, expression=right)


DUCKDB = Quirks(
    title="DuckDB",
    dialect="duckdb",
    rules=_RULES,
    families=TIME_FAMILIES,
    literal=_literal,
    known=_known,
    floor_scaled=_floor_scaled,
    decimal_steps=_decimal_steps,
    days=_days,
    microseconds=lambda x: call("epoch_us", x),
    quotient=_quotient,
    to_text=_to_text,
    md5=lambda x: exp.MD5(this=x),
    pair_hash=_pair_hash,
    same=_same,
    sql=lambda statement: statement.sql(dialect="duckdb"),
)
