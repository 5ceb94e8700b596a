"""Arithmetic and mathematical functions: their types and exactness, from the operands' types alone.

- Whole numbers: `+ - *`, DIV, MOD, unary minus and ABS are exact; a result beyond 64 bits is NULL. With a 128-bit
  operand the result has 128 bits; then terms have at most 37 digits and factors at most 19, else NULL.
- Decimals: exact where 38 digits, 12 of them after the point for products, hold every value of the operands'
  types; else both are taken as FLOAT.
- `/` is always a division of doubles; x / 0 is NULL. DIV and MOD round towards zero, so that MOD has the dividend's
  sign.
- FLOOR, CEIL, TRUNC and ROUND to no decimal place give whole numbers of 64 bits (so that they can be group
  keys); what lies beyond, infinities among it, is NULL.
- Doubles: NULL where there is no value (0 / 0, the logarithm of -1); infinite where it is too large.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from discreet.binding_time import date_plus_days, moments_between
from discreet.coercion import coerce, constant, convert, digits, exact_type, shown
from discreet.errors import UsageError
from discreet.exact import decimal_text, parse_rational
from discreet.expressions import Expression, Literal, Operation
from discreet.schema import FLOAT, HUGE, INTEGER, Kind, Type

__all__ = ["NUMBERS"]

_MOST_PRODUCT_PLACES = 12
_MOST_BINS = 1_000
_MOST_BIN_PLACES = 9
_BIN_DIGITS = 19
_ROUND_PLACES = (-18, 30)


def _require_number(operand: Expression, thing: str) -> None:
    if operand.type.kind.is_number:
        return
    hint = "write CASE WHEN x THEN 1 ELSE 0 END" if operand.type.kind is Kind.BOOLEAN else ""
    if operand.type.kind is Kind.TEXT:
        hint = "write CAST(x AS DOUBLE), or declare its type with --types"
    if operand.type.kind.is_temporal:
        hint = "write x + INTERVAL 1 DAY, DATE_DIFF(x, y, DAY) or EXTRACT(YEAR FROM x)"
    raise UsageError(thing, f"needs numbers; {shown(operand)} is {operand.type.kind}", hint=hint)


_SIGNS = {"add": "+", "subtract": "-", "multiply": "*"}


def _arithmetic(operator: str) -> Callable[[list[Expression]], Expression]:
    def build(operands: list[Expression]) -> Expression:
        left, right = operands
        if left.type.kind.is_temporal or right.type.kind.is_temporal:
            return _temporal(operator, left, right)
        for operand in operands:
            _require_number(operand, _SIGNS[operator])
        kinds = {left.type.kind, right.type.kind}
        if kinds == {Kind.INTEGER}:
            type_ = HUGE if HUGE in (left.type, right.type) else INTEGER
            return Operation(operator, (left, right), type_)
        if Kind.FLOAT not in kinds:
            exact = _exact(operator, left, right)
            if exact is not None:
                return exact
        return Operation(operator, (convert(left, FLOAT), convert(right, FLOAT)), FLOAT)

    return build


def _temporal(operator: str, left: Expression, right: Expression) -> Expression:
    times = [e.type.kind.is_temporal or (isinstance(e, Literal) and e.type.kind is Kind.TEXT) for e in (left, right)]
    if operator == "subtract" and all(times):
        return moments_between(left, right)
    sign = {"add": 1, "subtract": -1}.get(operator)
    if operator == "add" and left.type == INTEGER:
        left, right = right, left
    if sign and left.type.kind is Kind.DATE and isinstance(right, Literal) and isinstance(right.value, int):
        return date_plus_days(left, sign * right.value)
    hint = "write x + INTERVAL 1 DAY, x - y, or DATE_DIFF(x, y, DAY)"
    raise UsageError(_SIGNS[operator], f"cannot compute with {left.type.kind} and {right.type.kind}", hint=hint)


def _exact(operator: str, left: Expression, right: Expression) -> Expression | None:
    """In decimals whose digits hold every result."""
    (whole_a, scale_a), (whole_b, scale_b) = digits(left), digits(right)
    a, b = exact_type(whole_a, scale_a), exact_type(whole_b, scale_b)
    if operator == "multiply":
        result = exact_type(whole_a + whole_b, scale_a + scale_b)
        if scale_a + scale_b > _MOST_PRODUCT_PLACES:
            return None
    else:
        # |x + y| < 10^w + 10^w <= 10^(w + 1)
        result = exact_type(max(whole_a, whole_b) + 1, max(scale_a, scale_b))
        a = b = result
    if result is None or a is None or b is None:
        return None
    return Operation(operator, (convert(left, a), convert(right, b)), result)


def _divide(operands: list[Expression]) -> Expression:
    for operand in operands:
        _require_number(operand, "/")
    return Operation("divide", tuple(convert(operand, FLOAT, "/") for operand in operands), FLOAT)


def _whole_division(operator: str, thing: str) -> Callable[[list[Expression]], Expression]:
    def build(operands: list[Expression]) -> Expression:
        for operand in operands:
            _require_number(operand, thing)
            if operand.type.kind is not Kind.INTEGER:
                hint = "write FLOOR(x / y), or convert with CAST(x AS BIGINT)"
                raise UsageError(thing, f"needs whole numbers; {shown(operand)} is {operand.type.kind}", hint=hint)
        type_ = HUGE if any(operand.type == HUGE for operand in operands) else INTEGER
        return Operation(operator, tuple(operands), type_)

    return build


def _same(operator: str, thing: str) -> Callable[[list[Expression]], Expression]:
    """A function from a number to one of the same type."""

    def build(operands: list[Expression]) -> Expression:
        _require_number(operands[0], thing)
        return Operation(operator, tuple(operands), operands[0].type)

    return build


def _whole(operator: str, thing: str) -> Callable[[list[Expression]], Expression]:
    """FLOOR, CEIL, TRUNC and ROUND to whole numbers."""

    def build(operands: list[Expression]) -> Expression:
        _require_number(operands[0], thing)
        if operands[0].type.kind is Kind.INTEGER:
            return operands[0]
        return Operation(operator, tuple(operands), INTEGER)

    return build


def _sign(operands: list[Expression]) -> Expression:
    _require_number(operands[0], "SIGN")
    return Operation("sign", tuple(operands), INTEGER)


def _round(operands: list[Expression]) -> Expression:
    if len(operands) == 1:
        return _whole("round", "ROUND")(operands)
    subject, places = operands
    _require_number(subject, "ROUND")
    if not isinstance(places, Literal) or not isinstance(places.value, int) or isinstance(places.value, bool):
        raise UsageError("ROUND", "takes a number of decimal places that is written out", hint="ROUND(x, 2)")
    low, high = _ROUND_PLACES
    if not low <= places.value <= high:
        raise UsageError("ROUND", f"takes {low} to {high} decimal places", places.value)
    if subject.type.kind is Kind.INTEGER:
        return subject if places.value >= 0 else Operation("round_to", (subject, places), subject.type)
    if subject.type.kind is Kind.FLOAT:
        return Operation("round_to", (subject, places), FLOAT)
    if places.value >= subject.type.scale:
        return subject
    if places.value < 0:
        raise UsageError("ROUND", "takes 0 or more places of a decimal", places.value, "ROUND(CAST(x AS BIGINT), -2)")
    # One more digit before the point, for 9.99 -> 10.0; it fits, as at least one after the point goes.
    whole = subject.type.precision - subject.type.scale + 1
    type_ = Type(Kind.DECIMAL, precision=whole + places.value, scale=places.value)
    return Operation("round_to", (subject, places), type_)


def _double(operator: str, thing: str) -> Callable[[list[Expression]], Expression]:
    def build(operands: list[Expression]) -> Expression:
        for operand in operands:
            _require_number(operand, thing)
        return Operation(operator, tuple(convert(operand, FLOAT, thing) for operand in operands), FLOAT)

    return build


def _log(operands: list[Expression]) -> Expression:
    """LOG(x) is the natural logarithm, LOG(x, b) that to base b: ln x / ln b, NULL for b = 1."""
    natural = [_double("ln", "LOG")([operand]) for operand in operands]
    return natural[0] if len(natural) == 1 else Operation("divide", tuple(natural), FLOAT)


def _bin(operands: list[Expression]) -> Expression:
    """BIN(x, lo, hi, n): the lower edge of x's bin among n equal bins over [lo, hi].

    Bin i holds lo + i w <= x < lo + (i + 1) w, w = (hi - lo) / n; the last bin holds hi too. What lies below lo
    is counted in the first bin and what lies above hi in the last: bounds clamp, here as everywhere.
    """
    example = "for example BIN(x, 0, 100, 20)"
    subject, *given = operands
    _require_number(subject, "BIN")
    if not all(isinstance(o, Literal) and o.type.kind.is_number for o in given):
        raise UsageError("BIN", "takes an expression and then three numbers that are written out", hint=example)
    low, high, count = (parse_rational("BIN", o.value) for o in given if isinstance(o, Literal))
    if low >= high:
        got = f"{decimal_text(low)} and {decimal_text(high)}"
        raise UsageError("BIN", "the lower end must lie below the upper end", got, example)
    if count.denominator != 1 or not 1 <= count <= _MOST_BINS:
        raise UsageError("BIN", f"takes 1 to {_MOST_BINS} bins", decimal_text(count), example)
    edges = [low + (high - low) * i / int(count) for i in range(int(count))]
    scale = next((s for s in range(_MOST_BIN_PLACES + 1) if all((e * 10**s).denominator == 1 for e in edges)), None)
    if scale is None or max(abs(low), abs(high)) >= 10 ** (_BIN_DIGITS - 1):
        rule = f"has edges with more than {_MOST_BIN_PLACES} decimal places, or too large"
        raise UsageError("BIN", rule, hint="choose ends and a number of bins that divide evenly")
    if subject.type.kind is Kind.DECIMAL:
        whole, places = digits(subject)
        subject = convert(subject, exact_type(max(whole, _BIN_DIGITS), places) or FLOAT)
    values = [_exact_literal(edge, scale) for edge in edges]
    type_ = values[0].type
    bounds = [_edge(edge, subject.type) for edge in edges[1:]]
    if len({bound.value for bound in bounds}) < len(bounds):
        raise UsageError("BIN", "has bins too narrow for the values' type", hint=example)
    rest = [part for pair in zip(bounds, values[1:], strict=True) for part in pair]
    return Operation("bin", (subject, values[0], *rest), type_)


def _exact_literal(number: Fraction, scale: int) -> Literal:
    """A rational with at most `scale` decimal places."""
    if scale == 0:
        return constant(int(number))
    type_ = Type(Kind.DECIMAL, precision=_BIN_DIGITS + scale, scale=scale)
    return coerce(Decimal(f"{int(number * 10**scale)}e-{scale}"), type_, "BIN")


def _edge(edge: Fraction, type_: Type) -> Literal:
    """The smallest value of the type that is not below the edge (of doubles, the nearest)."""
    if type_.kind is Kind.FLOAT:
        return coerce(Decimal(repr(float(edge))), FLOAT, "BIN")
    scale = type_.scale if type_.kind is Kind.DECIMAL else 0
    raised = math.ceil(edge * 10**scale)
    return constant(raised) if scale == 0 else coerce(Decimal(f"{raised}e-{scale}"), type_, "BIN")


NUMBERS: dict[str, Callable[[list[Expression]], Expression]] = {
    "add": _arithmetic("add"),
    "subtract": _arithmetic("subtract"),
    "multiply": _arithmetic("multiply"),
    "divide": _divide,
    "div": _whole_division("div", "DIV"),
    "modulo": _whole_division("modulo", "MOD"),
    "negate": _same("negate", "-"),
    "abs": _same("abs", "ABS"),
    "sign": _sign,
    "floor": _whole("floor", "FLOOR"),
    "ceil": _whole("ceil", "CEIL"),
    "trunc": _whole("trunc", "TRUNC"),
    "round": _round,
    "exp": _double("exp", "EXP"),
    "ln": _double("ln", "LN"),
    "log": _log,
    "log10": _double("log10", "LOG10"),
    "log2": _double("log2", "LOG2"),
    "sqrt": _double("sqrt", "SQRT"),
    "pow": _double("pow", "POW"),
    "bin": _bin,
}
