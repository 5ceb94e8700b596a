"""Grouping expressions whose values everybody knows: their keys need not be listed.

Conditions, months and hours, bins, and CASE between constants can have no other values than these, whatever the
rows hold. The missing key is among them, last, where the expression can be missing: no row is left out unseen.
"""

from __future__ import annotations

from discreet.expressions import Expression, Field, Literal, Operation
from discreet.query import Scalar
from discreet.schema import Kind

__all__ = ["public_domain"]

_PARTS = {
    "extract_month": range(1, 13),
    "extract_quarter": range(1, 5),
    "extract_day": range(1, 32),
    "extract_hour": range(24),
    "extract_minute": range(60),
    "extract_second": range(60),
    "extract_dayofweek": range(1, 8),
    "extract_isodow": range(1, 8),
    "extract_dow": range(7),
    "extract_week": range(54),
    "extract_isoweek": range(1, 54),
}
_NEVER_MISSING = frozenset(("is_null", "is_distinct"))


def public_domain(expression: Expression) -> tuple[Scalar, ...] | None:
    """All values of the expression, in their order; None if the data decides what they are."""
    found = _values(expression)
    if found is None:
        return None
    distinct = dict.fromkeys(value for value in found if value is not None)
    return (*distinct, None) if None in found else tuple(distinct)


def _values(expression: Expression) -> tuple[Scalar, ...] | None:
    match expression:
        case Literal(value, _):
            return (value,)
        case Field():
            return (True, False, None) if expression.type.kind is Kind.BOOLEAN else None
        case Operation(operator, operands, type_):
            return _of_operation(operator, operands, type_.kind)


def _of_operation(operator: str, operands: tuple[Expression, ...], kind: Kind) -> tuple[Scalar, ...] | None:
    if operator in _PARTS:
        return (*_PARTS[operator], None)
    match operator:
        case "bin":
            # The value, then bins' values with the edges between them.
            bins = [_values(operand) for operand in operands[1::2]]
            return (*(value for one in bins if one is not None for value in one), None)
        case "case":
            return _union([*operands[1:-1:2], operands[-1]])
        case "coalesce":
            # Missing only if all are.
            found = _union(list(operands))
            last = _values(operands[-1])
            return found if found is None or last is None or None in last else tuple(v for v in found if v is not None)
    if kind is Kind.BOOLEAN:
        return (True, False) if operator in _NEVER_MISSING else (True, False, None)
    return None


def _union(operands: list[Expression]) -> tuple[Scalar, ...] | None:
    found: list[Scalar] = []
    for operand in operands:
        values = _values(operand)
        if values is None:
            return None
        found += values
    return tuple(found)
