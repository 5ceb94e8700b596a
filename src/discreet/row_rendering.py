"""Row expressions in DuckDB's words, as sqlglot expressions: conditions, choices, numbers and types.

Total, as `expressions` promises: no value of the operands' types can make a rendered expression raise. What
DuckDB does that the dialect does not is met here, beside the operator:

- integer arithmetic raises beyond the type: it is done in 128 bits and cast back by TRY_CAST;
- DECIMAL arithmetic raises beyond 38 digits, or beyond 18 if both operands have no more: the types are chosen
  so that neither can happen;
- `//` and `%` raise on 0 (since 2.0), abs(-2^63) and round(2^63 - 1, -1) raise: guarded, or done in 128 bits;
- NaN sorts above everything, and least(NULL, 1) is 1: doubles are made NULL where they are NaN before anything
  looks at them, and GREATEST and LEAST stand behind a CASE.

A double may be NaN between the operators of arithmetic, which all pass it on: `_raw` renders that, `_clean` the
value that others see.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from discreet.expressions import Expression, Field, Literal
from discreet.row_operands import Operands, Rule
from discreet.row_rendering_text import TEXT_RULES
from discreet.row_rendering_time import TIME_FAMILIES, TIME_RULES
from discreet.schema import FLOAT, HUGE, Kind, Type
from discreet.statement_parts import (
    BIGINT,
    HUGEINT,
    call,
    case,
    cast,
    column,
    decimal,
    engine_type,
    number,
    present,
    text,
    try_cast,
)

__all__ = ["render"]


def render(expression: Expression) -> exp.Expr:
    """A row expression in the engine's words, of exactly its type; never NaN."""
    if isinstance(expression, Literal) and expression.type.kind is Kind.INTEGER:
        return cast(_raw(expression), engine_type(expression.type))
    return _clean(expression)


def render_number(expression: Expression) -> exp.Expr:
    """The same, but a double may be NaN: for what tells NaN from numbers itself (`rendering.on_grid`)."""
    return _raw(expression) if expression.type == FLOAT else render(expression)


def _clean(expression: Expression) -> exp.Expr:
    raw = _raw(expression)
    if not _may_be_nan(expression):
        return raw
    return case([(exp.Not(this=call("isnan", raw.copy())), raw)])


_NAN_SOURCES = frozenset(("add", "subtract", "multiply", "divide"))
_NAN_PASSES = frozenset(("negate", "abs", "exp", "ln", "log10", "log2", "sqrt", "round_to"))


def _may_be_nan(expression: Expression) -> bool:
    if expression.type != FLOAT or isinstance(expression, Literal):
        return False
    if isinstance(expression, Field):
        return True  # sources leave NaN where it stands
    operator, operands = expression.operator, expression.operands
    if operator == "case":
        return any(_may_be_nan(value) for value in (*operands[1:-1:2], operands[-1]))
    return operator in _NAN_SOURCES or (operator in _NAN_PASSES and _may_be_nan(operands[0]))


def _raw(expression: Expression) -> exp.Expr:
    if isinstance(expression, Field):
        return column(f"c{expression.position}")
    if isinstance(expression, Literal):
        return _literal(expression)
    name = expression.operator
    operands = Operands(expression, _clean, _raw)
    if name in _RULES:
        return _RULES[name](operands)
    family, _, part = name.partition("_")
    return TIME_FAMILIES[family](operands, part)


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
