"""Conditions, and what chooses among values: their types, from the operands' types alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from discreet.coercion import common_type, comparable, convert, is_null, shown
from discreet.errors import UsageError
from discreet.expressions import Expression, Literal, Operation
from discreet.schema import BOOLEAN, Kind

__all__ = ["CONDITIONS", "require_boolean"]

_SIGNS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "is_distinct": "IS DISTINCT FROM"}


def require_boolean(operands: Sequence[Expression], thing: str) -> None:
    """
    Raises:
        UsageError: one of the operands is not true or false.
    """
    for operand in operands:
        if operand.type != BOOLEAN:
            hint = "write a comparison, for example x > 0 or x IS NOT NULL"
            raise UsageError(thing, f"needs conditions; {shown(operand)} is {operand.type.kind}", hint=hint)


def _comparison(operator: str) -> Callable[[list[Expression]], Expression]:
    def build(operands: list[Expression]) -> Expression:
        pair = comparable(operands[0], operands[1], _SIGNS[operator])
        return Operation(operator, pair, BOOLEAN)

    return build


def _logical(operator: str) -> Callable[[list[Expression]], Expression]:
    def build(operands: list[Expression]) -> Expression:
        operands = [Literal(None, BOOLEAN) if is_null(operand) else operand for operand in operands]
        require_boolean(operands, operator.upper())
        return Operation(operator, tuple(operands), BOOLEAN)

    return build


def _in(operands: list[Expression]) -> Expression:
    pairs = [comparable(operands[0], value, "IN") for value in operands[1:]]
    if all(left == pairs[0][0] for left, _ in pairs):
        return Operation("in", (pairs[0][0], *(right for _, right in pairs)), BOOLEAN)
    equalities = [Operation("eq", pair, BOOLEAN) for pair in pairs]
    return Operation("or", tuple(equalities), BOOLEAN)


def _is_null(operands: list[Expression]) -> Expression:
    return Operation("is_null", tuple(operands), BOOLEAN)


def _typed(operator: str, operands: Sequence[Expression], thing: str) -> Expression:
    type_ = common_type(operands, thing)
    return Operation(operator, tuple(convert(o, type_, thing) for o in operands), type_)


def _case(operands: list[Expression]) -> Expression:
    conditions = [Literal(None, BOOLEAN) if is_null(o) else o for o in operands[:-1:2]]
    require_boolean(conditions, "CASE WHEN")
    values = [*operands[1:-1:2], operands[-1]]
    type_ = common_type(values, "CASE")
    values = [convert(value, type_, "CASE") for value in values]
    pairs = [part for pair in zip(conditions, values[:-1], strict=True) for part in pair]
    return Operation("case", (*pairs, values[-1]), type_)


def _coalesce(operands: list[Expression]) -> Expression:
    if len(operands) == 1:
        return operands[0]
    return _typed("coalesce", operands, "COALESCE")


def _nullif(operands: list[Expression]) -> Expression:
    """NULLIF(a, b): a, but NULL where a = b. Its type is a's."""
    left, right = comparable(operands[0], operands[1], "NULLIF")
    if isinstance(operands[0], Literal):
        raise UsageError("NULLIF", "must begin with an expression, not a constant")
    return Operation("nullif", (operands[0], left, right), operands[0].type)


def _extreme(operator: str) -> Callable[[list[Expression]], Expression]:
    def build(operands: list[Expression]) -> Expression:
        thing = operator.upper()
        if len(operands) == 1:
            return operands[0]
        found = _typed(operator, operands, thing)
        if found.type.kind in (Kind.BOOLEAN, Kind.OTHER):
            raise UsageError(thing, f"needs numbers, dates, times or text, not {found.type.kind}")
        return found

    return build


CONDITIONS: dict[str, Callable[[list[Expression]], Expression]] = {
    **{name: _comparison(name) for name in _SIGNS},
    "and": _logical("and"),
    "or": _logical("or"),
    "not": _logical("not"),
    "in": _in,
    "is_null": _is_null,
    "case": _case,
    "coalesce": _coalesce,
    "nullif": _nullif,
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
}
